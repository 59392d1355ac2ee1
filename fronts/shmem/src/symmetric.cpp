// SPDX-License-Identifier: BSD-3-Clause
#include "symmetric.h"

#include "front.h"

namespace mobius::shmem {
namespace {

[[noreturn, gnu::cold]] void refuse(const void* here, const char* call, const char* argument) {
  check_started(call);
  die(call,
      "%s %p is not symmetric: it must lie in a block of shmem_malloc() or in a static variable of "
      "the program, or of a library that the program links",
      argument, here);
}

}  // namespace

char* find_in(const void* here, int pe) {
  char* const there = find_in_heap(here, pe);
  return there != nullptr ? there : find_in_statics(here, pe);
}

char* place_in(const void* here, int pe, const char* call, const char* argument) {
  char* const there = find_in(here, pe);
  if (__builtin_expect(there == nullptr, 0)) {
    size_t offset = 0;
    if (offset_in_statics(here, &offset)) {
      die(call, "%s %p: PE %d runs another program, which has no such variable", argument, here,
          pe);
    }
    refuse(here, call, argument);
  }
  return there;
}

size_t offset_of(const void* here, const char* call, const char* argument) {
  size_t offset = 0;
  if (!offset_in_heap(here, &offset) && !offset_in_statics(here, &offset)) {
    refuse(here, call, argument);
  }
  return offset;
}

int world_pe(shmem_ctx_t ctx, int pe, const char* call) {
  check_started(call);
  if (ctx == SHMEM_CTX_DEFAULT) {
    if (pe >= 0 && pe < shmem_state_.n_pes) return pe;
    const bool came_later = pe >= 0 && mob_rank_alive(pe) == 1;
    die(call, "pe is %d; there are PEs 0 to %d%s", pe, shmem_state_.n_pes - 1,
        came_later ? "; processes that came later are no PEs: reach them by mob_put() and the like"
                   : "");
  }
  check_context(ctx, call);
  const auto* const rest = static_cast<const ContextRest*>(ctx->more);
  if (pe >= 0 && pe < rest->team->size) return rest->team->world_pe(pe);
  die(call, "pe is %d; the team of the context has PEs 0 to %d", pe, rest->team->size - 1);
}

}  // namespace mobius::shmem
