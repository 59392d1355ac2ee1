// SPDX-License-Identifier: BSD-3-Clause

// Large contiguous transfers compared with memcpy between two private buffers.

#include <cstring>

#include "micro.h"

namespace micro {
namespace {

template <typename Copy>
Variant variant(std::string name, size_t bytes, Copy copy) {
  return {std::move(name), [=] {
            if (mob_rank() != 0) return 0.0;
            const int repeats =
                static_cast<int>(std::max<size_t>(8, (size_t{256} << 20) / bytes / 8));
            copy();
            const double start = now_ns();
            for (int i = 0; i < repeats; ++i) copy();
            return (now_ns() - start) / repeats;
          }};
}

}  // namespace

std::vector<Benchmark> copy_benchmarks() {
  const mob_rank_t target = mob_size() - 1;
  std::vector<Benchmark> result;
  struct Size {
    const char* name;
    size_t bytes;
  };
  for (const Size size : {Size{"4k", 4 << 10}, Size{"64k", 64 << 10}, Size{"512k", 512 << 10},
                          Size{"4m", 4 << 20}, Size{"16m", 16 << 20}}) {
    const size_t bytes = size.bytes;
    void* remote = shared_memory(bytes, target);
    void* source = private_memory(bytes);
    void* destination = private_memory(bytes);
    if (mob_rank() == target) std::memset(remote, 2, bytes);
    result.push_back({std::string("copy_") + size.name,
                      "transfer of " + std::to_string(bytes) + " bytes",
                      {variant("memcpy, private to private", bytes,
                               [=] {
                                 std::memcpy(destination, source, bytes);
                                 __asm__ volatile("" ::: "memory");
                               }),
                       variant("mob_put", bytes,
                               [=] { require(mob_put(target, remote, source, bytes), "mob_put"); }),
                       variant("mob_get", bytes, [=] {
                         require(mob_get(target, remote, destination, bytes), "mob_get");
                       })}});
  }
  return result;
}

}  // namespace micro
