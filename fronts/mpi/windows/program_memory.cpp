// SPDX-License-Identifier: BSD-3-Clause
#include "windows/program_memory.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace mobius::mpi {

struct Exposure {
  uintptr_t start = 0;
  uintptr_t end = 0;
  mob_exposed_t exposed = nullptr;
  bool has_moved = false;
  int users = 0;
};

namespace {

struct Range {
  uintptr_t start = 0;
  uintptr_t end = 0;
  bool holds(uintptr_t from, uintptr_t to) const { return from >= start && to <= end; }
};

// A reserve of address space for a heap that grows. It costs no memory, but limits (ulimit -v) may
// not allow more.
constexpr size_t kMostHeapBytes = size_t{16} << 30;

constexpr uintptr_t kWordBytes = 8;

struct OwnMemory {
  uintptr_t end;
  Placed placed;
  OwnKind kind;
};

struct ProgramMemory {
  std::mutex mutex;  // guards all of it
  Range statics;
  Range heap;  // its end grows
  mob_exposed_t statics_moved = nullptr;
  mob_exposed_t heap_moved = nullptr;
  bool is_known = false;  // where statics and heap are
  bool tried_statics = false;
  bool tried_heap = false;
  std::vector<Exposure*> live;         // pages that were moved, by address
  std::map<uintptr_t, OwnMemory> own;  // memory of Möbius: from where to where
};

ProgramMemory& program_memory() {
  static ProgramMemory instance;
  return instance;
}

uintptr_t page_bytes() {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uintptr_t page_of(uintptr_t address) { return address & ~(page_bytes() - 1); }
uintptr_t page_end(uintptr_t address) { return page_of(address + page_bytes() - 1); }

// The static variables of the program itself: its segment that can be written, less what the loader
// made read-only. The program is the first object that is visited.
int find_program_statics(dl_phdr_info* object, size_t, void* found) {
  Range range;
  uintptr_t read_only_end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO) read_only_end = start + header.p_memsz;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
      range = {start, start + header.p_memsz};
    }
  }
  range.start = std::max(range.start, page_end(read_only_end));
  *static_cast<Range*>(found) = range;
  return 1;
}

Range find_heap() {
  Range heap;
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return heap;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    if (std::strstr(line, "[heap]") == nullptr) continue;
    unsigned long start = 0;
    unsigned long end = 0;
    if (std::sscanf(line, "%lx-%lx", &start, &end) == 2) heap = {start, end};
    break;
  }
  static_cast<void>(std::fclose(maps));
  return heap;
}

bool moves_pages() {
  const char* wish = std::getenv("MOBIUS_MPI_MOVE");
  return wish == nullptr || std::string_view(wish) != "off";
}

void look_where_all_is(ProgramMemory* memory) {
  if (memory->is_known) return;
  memory->is_known = true;
  dl_iterate_phdr(find_program_statics, &memory->statics);
  memory->heap = find_heap();
}

// Static variables and heap move as a whole, once: they are not unmapped, so that nothing need go
// back when a window is freed.
bool is_in_statics(ProgramMemory* memory, uintptr_t start, uintptr_t end) {
  if (!memory->statics.holds(start, end)) return false;
  if (!memory->tried_statics) {
    memory->tried_statics = true;
    static_cast<void>(mob_expose(reinterpret_cast<void*>(memory->statics.start),
                                 memory->statics.end - memory->statics.start, MOB_EXPOSE_REMAP,
                                 &memory->statics_moved));
  }
  return memory->statics_moved != nullptr;
}

bool is_in_heap(ProgramMemory* memory, uintptr_t start, uintptr_t end) {
  memory->heap.end = std::max(memory->heap.end, reinterpret_cast<uintptr_t>(sbrk(0)));
  if (memory->heap.start == 0 || !memory->heap.holds(start, end)) return false;
  if (!memory->tried_heap) {
    memory->tried_heap = true;
    const size_t physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
    static_cast<void>(mob_expose_heap(std::min(physical / 2, kMostHeapBytes), &memory->heap_moved));
  }
  return memory->heap_moved != nullptr;
}

bool is_own(const ProgramMemory& memory, uintptr_t start, uintptr_t end, Placed* placed) {
  auto after = memory.own.upper_bound(start);
  if (after == memory.own.begin()) return false;
  const auto& [first, own] = *std::prev(after);
  if (end > own.end) return false;
  *placed = {own.placed.owner, static_cast<char*>(own.placed.address) + (start - first)};
  return true;
}

Exposure* expose(uintptr_t start, uintptr_t end, unsigned flags) {
  mob_exposed_t exposed = nullptr;
  if (mob_expose(reinterpret_cast<void*>(start), end - start, flags, &exposed) != MOB_OK) {
    return nullptr;
  }
  return new Exposure{start, end, exposed, (flags & MOB_EXPOSE_REMAP) != 0, 1};
}

// Moves the pages of a range that have not moved yet, and counts one more user of the others. False
// if some cannot move; `*used` then names those that did.
bool move_pages(ProgramMemory* memory, uintptr_t start, uintptr_t end,
                std::vector<Exposure*>* used) {
  uintptr_t next = page_of(start);
  const uintptr_t last = page_end(end);
  std::vector<Exposure*> made;
  for (Exposure* moved : memory->live) {
    if (moved->end <= next || moved->start >= last) continue;
    if (moved->start > next) {
      Exposure* gap = expose(next, moved->start, MOB_EXPOSE_REMAP);
      if (gap == nullptr) break;
      made.push_back(gap);
    }
    ++moved->users;
    used->push_back(moved);
    next = moved->end;
  }
  if (next < last) {
    Exposure* rest = expose(next, last, MOB_EXPOSE_REMAP);
    if (rest != nullptr) {
      made.push_back(rest);
      next = last;
    }
  }
  for (Exposure* each : made) {
    used->push_back(each);
    memory->live.push_back(each);
  }
  std::ranges::sort(memory->live, {}, &Exposure::start);
  return next >= last;
}

void let_go(ProgramMemory* memory, Exposure* exposure) {
  if (--exposure->users > 0) return;
  std::erase(memory->live, exposure);
  static_cast<void>(mob_withdraw(exposure->exposed));
  delete exposure;
}

}  // namespace

bool expose_memory(void* address, size_t bytes, std::vector<Exposure*>* exposures, Placed* placed) {
  *placed = {mob_rank(), address};
  if (bytes == 0) return true;
  ProgramMemory& memory = program_memory();
  const std::lock_guard lock(memory.mutex);
  const auto start = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = start + bytes;
  if (end < start) return false;
  look_where_all_is(&memory);
  if (is_own(memory, start, end, placed)) return true;
  const bool moves = moves_pages();
  if (moves && (is_in_statics(&memory, start, end) || is_in_heap(&memory, start, end))) return true;
  std::vector<Exposure*> used;
  const bool all_moved = moves && move_pages(&memory, start, end, &used);
  if (!all_moved || used.size() > 1) {
    // The kernel copies transfers beyond the end of pages that moved together, and those of pages
    // that did not move. Whole words, as updates of a byte are updates of its word.
    Exposure* whole =
        expose(start & ~(kWordBytes - 1), (end + kWordBytes - 1) & ~(kWordBytes - 1), 0);
    if (whole == nullptr) {
      for (Exposure* each : used) let_go(&memory, each);
      return false;
    }
    used.push_back(whole);
    placed->is_copied = true;
  }
  exposures->insert(exposures->end(), used.begin(), used.end());
  return true;
}

void withdraw_memory(std::vector<Exposure*>* exposures) {
  ProgramMemory& memory = program_memory();
  const std::lock_guard lock(memory.mutex);
  for (Exposure* each : *exposures) let_go(&memory, each);
  exposures->clear();
}

void add_own_memory(const void* address, size_t bytes, Placed placed, OwnKind kind) {
  ProgramMemory& memory = program_memory();
  const std::lock_guard lock(memory.mutex);
  const auto start = reinterpret_cast<uintptr_t>(address);
  memory.own[start] = {start + bytes, placed, kind};
}

OwnKind own_memory_at(const void* address) {
  ProgramMemory& memory = program_memory();
  const std::lock_guard lock(memory.mutex);
  const auto found = memory.own.find(reinterpret_cast<uintptr_t>(address));
  return found != memory.own.end() ? found->second.kind : OwnKind::kNone;
}

void remove_own_memory(const void* address) {
  ProgramMemory& memory = program_memory();
  const std::lock_guard lock(memory.mutex);
  memory.own.erase(reinterpret_cast<uintptr_t>(address));
}

void forget_program_memory() {
  ProgramMemory& memory = program_memory();
  const std::lock_guard lock(memory.mutex);
  for (mob_exposed_t* each : {&memory.heap_moved, &memory.statics_moved}) {
    // Pages that cannot move back now do so at the end of the job, or stay where they are.
    static_cast<void>(mob_withdraw(std::exchange(*each, nullptr)));
  }
}

}  // namespace mobius::mpi
