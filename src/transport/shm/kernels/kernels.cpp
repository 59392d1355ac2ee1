// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/kernels/kernels.h"

namespace mobius::transport {
namespace {

// Valid before any constructor has run: code that runs earlier uses the base set.
constinit const Kernels* chosen = &kBaseKernels;

#ifdef __x86_64__
[[gnu::constructor]] void choose() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    chosen = &kAvx512Kernels;
  } else if (__builtin_cpu_supports("avx2")) {
    chosen = &kAvx2Kernels;
  }
  asks_for_next_run = !__builtin_cpu_is("amd");
}
#endif

}  // namespace

constinit bool asks_for_next_run = true;

const Kernels& kernels() { return *chosen; }

}  // namespace mobius::transport
