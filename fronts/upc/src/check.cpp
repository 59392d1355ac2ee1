// SPDX-License-Identifier: BSD-3-Clause

// Checks of programs that are compiled with -fsanitize=shared.

#include "front.h"

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

namespace {

const char* place(const char* where) { return where != nullptr ? where : "UPC program"; }

}  // namespace

extern "C" {

mob_upc_ptr_t mob_upc_checked(mob_upc_ptr_t p, uint64_t bytes, const char* where) {
  check_pointer(p, place(where), "the pointer");
  if (!is_in_area(p, bytes)) {
    die(place(where),
        "%llu bytes at offset %llu of thread %u lie in no shared object and in no block of shared "
        "memory",
        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(p.offset),
        p.thread);
  }
  return p;
}

int64_t mob_upc_checked_index(int64_t index, uint64_t count, const char* name, const char* where) {
  if (__builtin_expect(static_cast<uint64_t>(index) >= count, 0)) {
    die(place(where), "index %lld of shared array '%s' is out of range: it has elements 0 to %lld",
        static_cast<long long>(index), name, static_cast<long long>(count) - 1);
  }
  return index;
}

mob_upc_ptr_t mob_upc_checked_cast(mob_upc_ptr_t p, const char* where) {
  if (!mob_upc_is_null(p) && !mob_upc_is_mine(p)) {
    die(place(where),
        "cast of a pointer with affinity to thread %u to a private pointer: only thread %u may; "
        "test upc_threadof(p) == MYTHREAD before, or use upc_cast()",
        p.thread, p.thread);
  }
  return p;
}

}  // extern "C"
