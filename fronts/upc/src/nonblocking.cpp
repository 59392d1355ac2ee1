// SPDX-License-Identifier: BSD-3-Clause

// Copies that go on while the program does, and private pointers to others' memory.

#include <upc.h>
#include <upc_castable.h>
#include <upc_nb.h>

#include "front.h"

namespace mobius::upc {
namespace {

bool is_here(mob_upc_ptr_t p) { return mob_upc_bases_[p.thread] != nullptr; }
mob_rank_t rank_of(mob_upc_ptr_t p) { return static_cast<mob_rank_t>(p.thread); }

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

upc_handle_t upc_memget_nb(void* dst, mob_upc_ptr_t src, size_t n) {
  constexpr const char* kCall = "upc_memget_nb";
  if (n == 0) return UPC_COMPLETE_HANDLE;
  check_pointer(src, kCall, "src");
  if (!is_here(src)) order_read(src, n, kCall);
  mob_handle_t handle = MOB_HANDLE_DONE;
  check(mob_get_nb(rank_of(src), remote(src), dst, n, &handle), kCall);
  return handle;
}

upc_handle_t upc_memput_nb(mob_upc_ptr_t dst, const void* src, size_t n) {
  constexpr const char* kCall = "upc_memput_nb";
  if (n == 0) return UPC_COMPLETE_HANDLE;
  check_pointer(dst, kCall, "dst");
  if (!is_here(dst)) order_write(dst, n, kCall);
  mob_handle_t handle = MOB_HANDLE_DONE;
  check(mob_put_nb(rank_of(dst), remote(dst), src, n, &handle), kCall);
  return handle;
}

upc_handle_t upc_memcpy_nb(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t n) {
  constexpr const char* kCall = "upc_memcpy_nb";
  if (n == 0) return UPC_COMPLETE_HANDLE;
  check_pointer(dst, kCall, "dst");
  check_pointer(src, kCall, "src");
  if (const void* const source = mob_upc_here(src)) return upc_memput_nb(dst, source, n);
  if (void* const target = mob_upc_here(dst)) return upc_memget_nb(target, src, n);
  upc_memcpy(dst, src, n);
  return UPC_COMPLETE_HANDLE;
}

upc_handle_t upc_memset_nb(mob_upc_ptr_t dst, int c, size_t n) {
  upc_memset(dst, c, n);
  return UPC_COMPLETE_HANDLE;
}

void upc_sync(upc_handle_t handle) { check(mob_wait(&handle), "upc_sync"); }

int upc_sync_attempt(upc_handle_t handle) {
  int done = 0;
  check(mob_test(&handle, &done), "upc_sync_attempt");
  return done;
}

void upc_memget_nbi(void* dst, mob_upc_ptr_t src, size_t n) {
  constexpr const char* kCall = "upc_memget_nbi";
  if (n == 0) return;
  check_pointer(src, kCall, "src");
  if (!is_here(src)) order_read(src, n, kCall);
  check(mob_get_nbi(rank_of(src), remote(src), dst, n), kCall);
}

void upc_memput_nbi(mob_upc_ptr_t dst, const void* src, size_t n) {
  constexpr const char* kCall = "upc_memput_nbi";
  if (n == 0) return;
  check_pointer(dst, kCall, "dst");
  if (!is_here(dst)) order_write(dst, n, kCall);
  check(mob_put_nbi(rank_of(dst), remote(dst), src, n), kCall);
}

void upc_memcpy_nbi(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t n) {
  constexpr const char* kCall = "upc_memcpy_nbi";
  if (n == 0) return;
  check_pointer(dst, kCall, "dst");
  check_pointer(src, kCall, "src");
  if (const void* const source = mob_upc_here(src)) {
    upc_memput_nbi(dst, source, n);
  } else if (void* const target = mob_upc_here(dst)) {
    upc_memget_nbi(target, src, n);
  } else {
    upc_memcpy(dst, src, n);
  }
}

void upc_memset_nbi(mob_upc_ptr_t dst, int c, size_t n) { upc_memset(dst, c, n); }

void upc_synci(void) { check(mob_flush_local_all(), "upc_synci"); }

int upc_synci_attempt(void) {
  // What is only recorded would never begin without a flush.
  upc_synci();
  return 1;
}

void* upc_cast(mob_upc_ptr_t ptr) {
  if (mob_upc_is_null(ptr) || ptr.thread >= static_cast<uint32_t>(threads())) return nullptr;
  if (ptr.offset < area_bytes() || mob_upc_is_mine(ptr)) return mob_upc_here(ptr);
  // Memory of upc_alloc() is mapped when somebody asks for it.
  void* here = nullptr;
  if (!is_here(ptr) || mob_ptr(rank_of(ptr), remote(ptr), &here) != MOB_OK) return nullptr;
  return here;
}

upc_thread_info_t upc_thread_info(size_t threadId) {
  upc_thread_info_t info = {0, 0};
  if (threadId < static_cast<size_t>(threads()) && mob_upc_bases_[threadId] != nullptr) {
    info = {UPC_CASTABLE_ALL, UPC_CASTABLE_ALL};
  }
  return info;
}

}  // extern "C"
