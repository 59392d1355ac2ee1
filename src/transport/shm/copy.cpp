// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy.h"

#include <unistd.h>

#include "transport/shm/kernels.h"

namespace mobius::transport {
namespace {

constinit CopyTuning tuning = {.rep_movsb_from_bytes = SIZE_MAX, .stream_from_bytes = 2 << 20};

#ifdef __x86_64__
void rep_movsb(void* to, const void* from, size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#endif

}  // namespace

namespace detail {

constinit size_t memcpy_below_bytes = 2 << 20;

void copy_large(void* to, const void* from, size_t bytes) {
  if (bytes >= tuning.stream_from_bytes) {
    kernels().stream(to, from, bytes);
    return;
  }
#ifdef __x86_64__
  rep_movsb(to, from, bytes);
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace detail

CopyTuning copy_tuning() { return tuning; }

void set_copy_tuning(const CopyTuning& wanted) {
  tuning = wanted;
  detail::memcpy_below_bytes = wanted.rep_movsb_from_bytes < wanted.stream_from_bytes
                                   ? wanted.rep_movsb_from_bytes
                                   : wanted.stream_from_bytes;
}

}  // namespace mobius::transport
