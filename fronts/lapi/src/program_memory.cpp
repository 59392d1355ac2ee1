// SPDX-License-Identifier: BSD-3-Clause
#include "program_memory.h"

#include <mobius/expose.h>

#include <dirent.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace lapi {
namespace {

mob_exposed_t everything = nullptr;
mob_exposed_t statics = nullptr;

struct Range {
  uintptr_t start = 0;
  uintptr_t end = 0;
};

// The static variables of the program itself: its segment that can be written, less what the loader
// made read-only. The program is the first object that is visited.
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
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  range.start = std::max(range.start, (read_only_end + page - 1) & ~(page - 1));
  *static_cast<Range*>(found) = range;
  return 1;
}

bool has_one_thread() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  int threads = 0;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] != '.') ++threads;
  }
  closedir(tasks);
  return threads == 1;
}

}  // namespace

mob_status_t expose_program() {
  const bool alone = has_one_thread();  // not counting the library's, which exposing starts
  if (const mob_status_t status = mob_expose_all(&everything)) return status;
  const char* wish = std::getenv("LAPI_STATIC_MEMORY");
  if (wish != nullptr && std::string_view(wish) == "private") return MOB_OK;
  if (!alone) return MOB_OK;
  Range range;
  dl_iterate_phdr(find_statics, &range);
  if (range.start >= range.end) return MOB_OK;
  // Without it all works, by way of the kernel.
  if (mob_expose(reinterpret_cast<void*>(range.start), range.end - range.start, MOB_EXPOSE_REMAP,
                 &statics) != MOB_OK) {
    statics = nullptr;
  }
  return MOB_OK;
}

void withdraw_program() {
  static_cast<void>(mob_withdraw(statics));
  static_cast<void>(mob_withdraw(everything));
  statics = nullptr;
  everything = nullptr;
}

}  // namespace lapi
