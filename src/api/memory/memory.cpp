// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/memory.h>

#include <algorithm>
#include <vector>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_handle;
using api::check_live;
using api::check_not_null;
using api::check_rank;
using api::check_team;
using base::fail;
using engine::Allocation;

namespace {

// Finds the part of a member of an allocation's team, at its address in its owner.
mob_status_t find_part(const char* call, mob_mem_t mem, mob_rank_t rank,
                       Allocation::Member* member) {
  const Allocation* allocation = nullptr;
  if (const mob_status_t status = check_handle(call, mem, &allocation)) return status;
  engine::Team& team = *allocation->team;
  const mob_rank_t index = api::member_of(team, rank);
  if (index < 0) {
    return fail(MOB_ERR_RANK, "%s: rank %d is not in the team that made this allocation", call,
                rank);
  }
  engine::Engine& engine = engine::engine_of_object(mem);
  if (!allocation->members.empty()) {
    *member = allocation->members[static_cast<size_t>(index)];
    return MOB_OK;
  }
  engine::Region part{};
  engine.segment().chunks().find(allocation->region_offset(index), &part);
  *member = {engine.segment().address_in(part.owner, part.offset), part.bytes};
  return MOB_OK;
}

// A wrong call takes part too, because the other members wait for it.
mob_status_t allocate(const char* call, engine::Engine& engine, engine::Team& team, size_t bytes,
                      size_t alignment, mob_mem_t* mem) {
  if (const mob_status_t status = api::check_may_wait(call)) return status;
  using Fault = engine::Allocations::Fault;
  Fault fault = Fault::kNone;
  if (mem == nullptr) {
    fault = Fault::kNullResult;
  } else if (api::check_alignment(call, alignment) != MOB_OK) {
    fault = Fault::kAlignment;
  }
  uint64_t handle = 0;
  const mob_status_t status = api::together(call, team, [&] {
    return engine.allocations().allocate(call, team, bytes, 0, fault, &handle);
  });
  if (status == MOB_OK) *mem = reinterpret_cast<mob_mem_t>(handle);
  return status;
}

}  // namespace

mob_status_t mob_mem_alloc(size_t bytes, mob_mem_t* mem) {
  if (const mob_status_t status = check_live("mob_mem_alloc")) return status;
  engine::Engine& engine = engine::engine();
  return allocate("mob_mem_alloc", engine, engine.teams().world(), bytes, 0, mem);
}

mob_status_t mob_team_alloc(mob_team_t team, size_t bytes, size_t alignment, mob_mem_t* mem) {
  engine::Team* found = nullptr;
  if (const mob_status_t status = check_team("mob_team_alloc", team, &found)) return status;
  return allocate("mob_team_alloc", engine::engine_of_object(team), *found, bytes, alignment, mem);
}

mob_status_t mob_publish(mob_team_t team, const void* mine, void** all) {
  engine::Team* found = nullptr;
  if (const mob_status_t status = check_team("mob_publish", team, &found)) return status;
  if (const mob_status_t status = api::check_may_wait("mob_publish")) return status;
  return api::together("mob_publish", *found, [&] {
    struct Entry {
      const void* address;
      bool valid_call;
    };
    std::vector<Entry> entries;
    const mob_status_t status = found->exchange(Entry{mine, all != nullptr}, &entries);
    if (status != MOB_OK) return status;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].valid_call) continue;
      return fail(all == nullptr ? MOB_ERR_ARGUMENT : MOB_ERR_PEER,
                  "mob_publish: rank %d of the team passed a null result", static_cast<int>(i));
    }
    std::ranges::transform(entries, all,
                           [](const Entry& entry) { return const_cast<void*>(entry.address); });
    return MOB_OK;
  });
}

mob_status_t mob_mem_free(mob_mem_t mem) {
  constexpr const char* kCall = "mob_mem_free";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  engine::Allocations& memory = engine::engine_of_object(mem).allocations();
  if (mem == nullptr) {
    return api::together(kCall, engine::engine().teams().world(),
                         [&] { return memory.release_none(kCall); });
  }
  const Allocation* allocation = nullptr;
  if (const mob_status_t status = check_handle(kCall, mem, &allocation)) return status;
  return api::together(kCall, *allocation->team,
                       [&] { return memory.release(kCall, reinterpret_cast<uintptr_t>(mem)); });
}

mob_status_t mob_mem_address(mob_mem_t mem, mob_rank_t rank, size_t offset, void** address) {
  if (const mob_status_t status = check_rank("mob_mem_address", rank)) return status;
  if (const mob_status_t status = check_not_null("mob_mem_address", address, "the result")) {
    return status;
  }
  Allocation::Member part{};
  if (const mob_status_t status = find_part("mob_mem_address", mem, rank, &part)) return status;
  if (offset > part.bytes) {
    return fail(MOB_ERR_RANGE, "mob_mem_address: offset %zu is beyond the %zu bytes of rank %d",
                offset, static_cast<size_t>(part.bytes), rank);
  }
  *address = reinterpret_cast<void*>(part.address + offset);
  return MOB_OK;
}

mob_status_t mob_mem_bytes(mob_mem_t mem, mob_rank_t rank, size_t* bytes) {
  if (const mob_status_t status = check_rank("mob_mem_bytes", rank)) return status;
  if (const mob_status_t status = check_not_null("mob_mem_bytes", bytes, "the result")) {
    return status;
  }
  Allocation::Member part{};
  if (const mob_status_t status = find_part("mob_mem_bytes", mem, rank, &part)) return status;
  *bytes = part.bytes;
  return MOB_OK;
}

void* mob_mem_local(mob_mem_t mem) {
  Allocation::Member part{};
  if (check_live("mob_mem_local") != MOB_OK ||
      find_part("mob_mem_local", mem, engine::engine().peers().rank(), &part) != MOB_OK) {
    return nullptr;
  }
  if (part.bytes == 0) {
    fail(MOB_ERR_RANGE, "mob_mem_local: this process's part of the allocation is empty");
    return nullptr;
  }
  return reinterpret_cast<void*>(part.address);
}

mob_status_t mob_ptr(mob_rank_t rank, const void* address, void** pointer) {
  if (const mob_status_t status = check_rank("mob_ptr", rank)) return status;
  if (const mob_status_t status = check_not_null("mob_ptr", pointer, "the result")) return status;
  if (const mob_status_t status = check_not_null("mob_ptr", address, "the address")) return status;
  const engine::EngineOf at = engine::engine_of(rank, address);
  void* reached = at.engine.segment().pointer_to(at.rank, address);
  if (reached == nullptr)
    return at.engine.segment().explain_unreachable("mob_ptr", at.rank, address, 0);
  *pointer = reached;
  return MOB_OK;
}
