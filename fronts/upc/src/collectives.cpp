// SPDX-License-Identifier: BSD-3-Clause

// Collective calls that move data. Each thread fetches what its own blocks get, or sends what its
// own block has to give, so there is nothing to wait for but the barriers that `flags` ask for.

#include "collectives.h"

#include <upc.h>
#include <upc_collective.h>

#include "front.h"

namespace mobius::upc {

void check_flags(upc_flag_t flags, const char* call) {
  check_started(call);
  constexpr upc_flag_t kIn = UPC_IN_ALLSYNC | UPC_IN_MYSYNC | UPC_IN_NOSYNC;
  constexpr upc_flag_t kOut = UPC_OUT_ALLSYNC | UPC_OUT_MYSYNC | UPC_OUT_NOSYNC;
  const int in = flags & kIn;
  const int out = flags & kOut;
  if ((in & (in - 1)) != 0 || (out & (out - 1)) != 0) {
    die(call, "flags 0x%x has two ways to synchronise; give one UPC_IN_* and one UPC_OUT_*", flags);
  }
}

void enter(upc_flag_t flags, const char* call) {
  check_flags(flags, call);
  if ((flags & UPC_IN_NOSYNC) == 0) library_barrier(call);
}

void leave(upc_flag_t flags, const char* call) {
  if ((flags & UPC_OUT_NOSYNC) == 0) library_barrier(call);
}

void check_blocks(mob_upc_ptr_t p, const char* call, const char* argument) {
  check_pointer(p, call, argument);
  if (p.thread != 0 || p.phase != 0) {
    die(call,
        "%s has thread %u and phase %u, but an array over all threads begins in thread 0, "
        "with phase 0",
        argument, p.thread, p.phase);
  }
}

namespace {

void* mine(mob_upc_ptr_t p, size_t bytes = 0) { return mob_upc_local(p.offset + bytes); }

mob_upc_ptr_t of_thread(mob_upc_ptr_t p, uint32_t thread, size_t bytes = 0) {
  return mob_upc_pointer(p.offset + bytes, thread, 0);
}

// All threads, beginning with the caller, so that they do not all ask the same one.
template <typename Do>
void each_thread(Do&& act) {
  const auto all = static_cast<uint32_t>(threads());
  for (uint32_t i = 0; i < all; ++i) act((static_cast<uint32_t>(mythread()) + i) % all);
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void upc_all_broadcast(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nbytes, upc_flag_t flags) {
  constexpr const char* kCall = "upc_all_broadcast";
  enter(flags, kCall);
  if (nbytes == 0) return leave(flags, kCall);
  check_blocks(dst, kCall, "dst");
  check_pointer(src, kCall, "src");
  upc_memget(mine(dst), src, nbytes);
  leave(flags, kCall);
}

void upc_all_scatter(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nbytes, upc_flag_t flags) {
  constexpr const char* kCall = "upc_all_scatter";
  enter(flags, kCall);
  if (nbytes == 0) return leave(flags, kCall);
  check_blocks(dst, kCall, "dst");
  check_pointer(src, kCall, "src");
  upc_memget(mine(dst), mob_upc_member(src, static_cast<size_t>(mythread()) * nbytes), nbytes);
  leave(flags, kCall);
}

void upc_all_gather(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nbytes, upc_flag_t flags) {
  constexpr const char* kCall = "upc_all_gather";
  enter(flags, kCall);
  if (nbytes == 0) return leave(flags, kCall);
  check_pointer(dst, kCall, "dst");
  check_blocks(src, kCall, "src");
  upc_memput(mob_upc_member(dst, static_cast<size_t>(mythread()) * nbytes), mine(src), nbytes);
  leave(flags, kCall);
}

void upc_all_gather_all(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nbytes, upc_flag_t flags) {
  constexpr const char* kCall = "upc_all_gather_all";
  enter(flags, kCall);
  if (nbytes == 0) return leave(flags, kCall);
  check_blocks(dst, kCall, "dst");
  check_blocks(src, kCall, "src");
  each_thread([&](uint32_t i) { upc_memget(mine(dst, i * nbytes), of_thread(src, i), nbytes); });
  leave(flags, kCall);
}

void upc_all_exchange(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nbytes, upc_flag_t flags) {
  constexpr const char* kCall = "upc_all_exchange";
  enter(flags, kCall);
  if (nbytes == 0) return leave(flags, kCall);
  check_blocks(dst, kCall, "dst");
  check_blocks(src, kCall, "src");
  const size_t at = static_cast<size_t>(mythread()) * nbytes;
  each_thread(
      [&](uint32_t i) { upc_memget(mine(dst, i * nbytes), of_thread(src, i, at), nbytes); });
  leave(flags, kCall);
}

void upc_all_permute(mob_upc_ptr_t dst, mob_upc_ptr_t src, mob_upc_ptr_t perm, size_t nbytes,
                     upc_flag_t flags) {
  constexpr const char* kCall = "upc_all_permute";
  enter(flags, kCall);
  if (nbytes == 0) return leave(flags, kCall);
  check_blocks(dst, kCall, "dst");
  check_blocks(src, kCall, "src");
  check_blocks(perm, kCall, "perm");
  const int to = *static_cast<const int*>(mine(perm));
  if (to < 0 || to >= threads()) {
    die(kCall, "perm[%d] is %d; there are threads 0 to %d", mythread(), to, threads() - 1);
  }
  upc_memput(of_thread(dst, static_cast<uint32_t>(to)), mine(src), nbytes);
  leave(flags, kCall);
}

}  // extern "C"
