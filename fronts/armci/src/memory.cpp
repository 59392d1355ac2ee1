// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "front.h"
#include "groups.h"

namespace mobius::armci {
namespace {

struct Allocation {
  mob_mem_t mem;
  mob_team_t team;
  std::vector<void*> parts;  // by rank in the team, null for parts of 0 bytes
};

struct Allocations {
  std::mutex mutex;
  std::vector<Allocation> live;
};

Allocations& allocations() {
  static Allocations instance;
  return instance;
}

int allocate(void** base_ptrs, armci_size_t bytes, mob_team_t team, const char* function) {
  check_not_null(base_ptrs, "the array of addresses", function, mob_rank());
  check_not_negative(bytes, "the number of bytes", function, mob_rank());
  mob_mem_t mem = nullptr;
  const mob_status_t status = mob_team_alloc(team, static_cast<size_t>(bytes), 0, &mem);
  if (status == MOB_ERR_MEMORY || status == MOB_ERR_RANGE) return 1;
  if (status == MOB_ERR_PEER) {
    // Another process lacks memory, or died; the processes that wait for it get that error.
    return 1;
  }
  check(status, function);
  Allocation made{mem, team, {}};
  bool is_empty = true;
  for (mob_rank_t i = 0; i < mob_team_size(team); ++i) {
    mob_rank_t proc = -1;
    size_t size = 0;
    void* address = nullptr;
    check(mob_team_translate(team, i, MOB_TEAM_WORLD, &proc), function);
    check(mob_mem_bytes(mem, proc, &size), function, proc);
    if (size > 0) {
      check(mob_mem_address(mem, proc, 0, &address), function, proc);
      is_empty = false;
    }
    made.parts.push_back(address);
    base_ptrs[i] = address;
  }
  if (is_empty) {  // no process could name it in order to free it
    check(mob_mem_free(mem), function);
    return 0;
  }
  const std::lock_guard lock(allocations().mutex);
  allocations().live.push_back(std::move(made));
  return 0;
}

// Removes and returns the allocation of a team in which member `rank` has the part `address`; an
// empty one if there is none. Without a team: any allocation in which the caller has that part.
Allocation take(mob_team_t team, mob_rank_t rank, const void* address) {
  const std::lock_guard lock(allocations().mutex);
  std::vector<Allocation>& live = allocations().live;
  for (auto at = live.begin(); at != live.end(); ++at) {
    if (at->team != team || at->parts[static_cast<size_t>(rank)] != address) continue;
    Allocation taken = std::move(*at);
    live.erase(at);
    return taken;
  }
  return {nullptr, MOB_TEAM_NONE, {}};
}

// The team of the allocation in which the caller's part begins at `address`.
mob_team_t team_of(const void* address, const char* function) {
  const std::lock_guard lock(allocations().mutex);
  for (const Allocation& allocation : allocations().live) {
    const mob_rank_t rank = mob_team_rank(allocation.team);
    if (allocation.parts[static_cast<size_t>(rank)] == address) return allocation.team;
  }
  die(function,
      "rank %d: %p is not an address from ARMCI_Malloc() in this process, or was freed "
      "before",
      mob_rank(), address);
}

// Members without bytes cannot name the allocation; the other members tell them.
int release(void* ptr, mob_team_t team, const char* function) {
  if (ptr != nullptr) team = team_of(ptr, function);
  std::vector<void*> named(static_cast<size_t>(mob_team_size(team)));
  check(mob_publish(team, ptr, named.data()), function);
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i] == nullptr) continue;
    const Allocation freed = take(team, static_cast<mob_rank_t>(i), named[i]);
    if (freed.mem == nullptr) {
      die(function, "rank %d: the processes of the group free different memory", mob_rank());
    }
    check(mob_mem_free(freed.mem), function);
    break;
  }
  return 0;
}

}  // namespace

void memory_close() {
  const std::lock_guard lock(allocations().mutex);
  allocations().live.clear();
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int PARMCI_Malloc(void** base_ptrs, armci_size_t bytes) {
  check_initialised("ARMCI_Malloc");
  return allocate(base_ptrs, bytes, MOB_TEAM_WORLD, "ARMCI_Malloc");
}

int PARMCI_Free(void* ptr) {
  check_initialised("ARMCI_Free");
  return release(ptr, MOB_TEAM_WORLD, "ARMCI_Free");
}

int PARMCI_Malloc_group(void** base_ptrs, armci_size_t bytes, ARMCI_Group* group) {
  constexpr const char* kName = "ARMCI_Malloc_group";
  return allocate(base_ptrs, bytes, groups().get_mine(group, kName).team, kName);
}

int PARMCI_Free_group(void* ptr, ARMCI_Group* group) {
  constexpr const char* kName = "ARMCI_Free_group";
  return release(ptr, groups().get_mine(group, kName).team, kName);
}

int PARMCI_Malloc_memdev(void** base_ptrs, armci_size_t bytes, const char*) {
  check_initialised("ARMCI_Malloc_memdev");
  return allocate(base_ptrs, bytes, MOB_TEAM_WORLD, "ARMCI_Malloc_memdev");
}

int PARMCI_Malloc_group_memdev(void** base_ptrs, armci_size_t bytes, ARMCI_Group* group,
                               const char*) {
  constexpr const char* kName = "ARMCI_Malloc_group_memdev";
  return allocate(base_ptrs, bytes, groups().get_mine(group, kName).team, kName);
}

int PARMCI_Free_memdev(void* ptr) {
  check_initialised("ARMCI_Free_memdev");
  return release(ptr, MOB_TEAM_WORLD, "ARMCI_Free_memdev");
}

void* PARMCI_Malloc_local(armci_size_t bytes) {
  constexpr const char* kName = "ARMCI_Malloc_local";
  check_not_negative(bytes, "the number of bytes", kName, mob_rank());
  void* pointer = nullptr;
  const mob_status_t status = mob_local_alloc(static_cast<size_t>(bytes), 0, &pointer);
  if (status == MOB_ERR_MEMORY) return nullptr;
  check(status, kName);
  return pointer;
}

int PARMCI_Free_local(void* ptr) {
  check(mob_local_free(ptr), "ARMCI_Free_local", mob_rank());
  return 0;
}

void PARMCI_Memget(size_t bytes, armci_meminfo_t* info, int) {
  constexpr const char* kName = "ARMCI_Memget";
  check_not_null(info, "the information", kName, mob_rank());
  void* pointer = nullptr;
  check(mob_local_alloc(bytes, 0, &pointer), kName, mob_rank());
  *info = {};
  info->armci_addr = static_cast<char*>(pointer);
  info->addr = info->armci_addr;
  info->size = bytes;
  info->cpid = mob_rank();
}

void* PARMCI_Memat(armci_meminfo_t* info, long offset) {
  constexpr const char* kName = "ARMCI_Memat";
  check_not_null(info, "the information", kName, mob_rank());
  if (offset < 0 || static_cast<unsigned long>(offset) > info->size) {
    die(kName, "process %d: offset %ld is not in its %lu bytes", info->cpid, offset, info->size);
  }
  const int is_local = mob_is_host_mate(info->cpid);
  if (is_local < 0) die_of(kName, info->cpid);
  if (is_local == 0) return nullptr;
  void* pointer = nullptr;
  check(mob_ptr(info->cpid, info->armci_addr, &pointer), kName, info->cpid);
  return static_cast<char*>(pointer) + offset;
}

void PARMCI_Memdt(armci_meminfo_t* info, long) {
  check_not_null(info, "the information", "ARMCI_Memdt", mob_rank());
}

void PARMCI_Memctl(armci_meminfo_t* info) {
  constexpr const char* kName = "ARMCI_Memctl";
  check_not_null(info, "the information", kName, mob_rank());
  if (info->cpid != mob_rank()) {
    die(kName, "rank %d: the memory belongs to process %d, which must free it", mob_rank(),
        info->cpid);
  }
  check(mob_local_free(info->armci_addr), kName, info->cpid);
  info->armci_addr = nullptr;
}

// Shared memory is coherent, so only the caller's own operations under way matter.
void PARMCI_Access_begin(void* ptr) {
  check_not_null(ptr, "the address", "ARMCI_Access_begin", mob_rank());
  check(mob_flush_all(), "ARMCI_Access_begin");
}

void PARMCI_Access_end(void* ptr) {
  check_not_null(ptr, "the address", "ARMCI_Access_end", mob_rank());
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

ARMCI_TWIN(Malloc);
ARMCI_TWIN(Free);
ARMCI_TWIN(Malloc_group);
ARMCI_TWIN(Free_group);
ARMCI_TWIN(Malloc_memdev);
ARMCI_TWIN(Malloc_group_memdev);
ARMCI_TWIN(Free_memdev);
ARMCI_TWIN(Malloc_local);
ARMCI_TWIN(Free_local);
ARMCI_TWIN(Memget);
ARMCI_TWIN(Memat);
ARMCI_TWIN(Memdt);
ARMCI_TWIN(Memctl);
ARMCI_TWIN(Access_begin);
ARMCI_TWIN(Access_end);

}  // extern "C"
