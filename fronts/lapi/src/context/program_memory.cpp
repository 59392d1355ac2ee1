// SPDX-License-Identifier: BSD-3-Clause
#include "context/program_memory.h"

#include <mobius/expose.h>

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lapi {
namespace {

mob_exposed_t everything = nullptr;
mob_exposed_t statics = nullptr;
mob_exposed_t heap = nullptr;

// All tasks of a host get an equal share of one window.
constexpr size_t kMostHeapBytes = size_t{16} << 30;

uintptr_t page_bytes() { return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)); }

struct Range {
  uintptr_t start = 0;
  uintptr_t end = 0;
};

// Finds the static variables of the program itself: its writable segment, less the part that the
// loader made read-only. The program is the first object that is visited.
int find_statics(dl_phdr_info* object, size_t, void* found) {
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
  range.start = std::max(range.start, (read_only_end + page_bytes() - 1) & ~(page_bytes() - 1));
  *static_cast<Range*>(found) = range;
  return 1;
}

bool stays_private(const char* setting) {
  const char* wish = std::getenv(setting);
  return wish != nullptr && std::string_view(wish) == "private";
}

void expose_statics() {
  Range range;
  dl_iterate_phdr(find_statics, &range);
  if (range.start >= range.end) return;
  static_cast<void>(mob_expose(reinterpret_cast<void*>(range.start), range.end - range.start,
                               MOB_EXPOSE_REMAP, &statics));
}

// Address space costs nothing. More than the host's memory is not needed, and not always available.
void expose_heap() {
  const auto memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  static_cast<void>(mob_expose_heap(std::min(memory / 2, kMostHeapBytes), &heap));
}

}  // namespace

mob_status_t expose_program() {
  if (const mob_status_t status = mob_expose_all(&everything)) return status;
  // All works without this too, through the kernel.
  if (!stays_private("LAPI_STATIC_MEMORY")) expose_statics();
  if (!stays_private("LAPI_HEAP_MEMORY")) expose_heap();
  return MOB_OK;
}

void withdraw_program() {
  for (mob_exposed_t* each : {&heap, &statics, &everything}) {
    // Memory that cannot be withdrawn now is withdrawn at the end of the job, or stays as it is.
    static_cast<void>(mob_withdraw(std::exchange(*each, nullptr)));
  }
}

}  // namespace lapi
