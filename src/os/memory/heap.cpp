// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/status.h"
#include "os/memory/mappings.h"
#include "os/memory/pages.h"

namespace mobius::os {
namespace {

using base::fail;

// The start of the heap, as the kernel reports it; 0 if there is none.
uintptr_t heap_start() {
  uintptr_t found = 0;
  for_each_mapping([&](const Mapping& mapping) {
    if (std::strstr(mapping.line, "[heap]") != nullptr) found = mapping.first;
    return found == 0;
  });
  return found;
}

}  // namespace

#ifdef __GLIBC__
mob_status_t grow_heap(size_t bytes, uintptr_t* start, uintptr_t* end) {
  if (mallopt(M_MMAP_MAX, 0) != 1 || mallopt(M_TRIM_THRESHOLD, -1) != 1 ||
      mallopt(M_ARENA_MAX, 1) != 1) {
    return fail(MOB_ERR_ARGUMENT, "malloc() refused the settings that keep the heap in place");
  }
  // The block that is freed last is the end of the heap, and stays there.
  void* block = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc): it is malloc's heap
  if (block == nullptr) {
    return fail(MOB_ERR_MEMORY, "the heap cannot grow by %zu bytes of address space", bytes);
  }
  const auto address = reinterpret_cast<uintptr_t>(block);
  std::free(block);  // NOLINT(cppcoreguidelines-no-malloc)
  *start = heap_start();
  const auto last = reinterpret_cast<uintptr_t>(sbrk(0)) - 1;
  if (*start == 0 || address < *start || address > last || last - address < bytes) {
    return fail(MOB_ERR_ARGUMENT,
                "malloc() does not take its memory from the end of the program's data: it is not "
                "the C library's, or another mapping follows the heap");
  }
  *end = page_start(last) + page_bytes();
  return MOB_OK;
}
#else
mob_status_t grow_heap(size_t, uintptr_t*, uintptr_t*) {
  return fail(MOB_ERR_ARGUMENT, "only the heap of the GNU C library can be moved");
}
#endif

}  // namespace mobius::os
