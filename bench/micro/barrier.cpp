// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstring>
#include <memory>

#include "micro.h"

namespace micro {
namespace {

// Two flags in shared memory, each set by one side and awaited by the other: the limit of a
// barrier.
struct Flag {
  alignas(64) std::atomic<uint32_t> turn;
};

double flags(Flag* own, Flag* other) {
  const uint32_t turns = 4000;
  static uint32_t turn = 0;
  if (mob_rank() > 1) return 0;
  const auto one = [&] {
    own->turn.store(++turn, std::memory_order_release);
    while (static_cast<int32_t>(other->turn.load(std::memory_order_acquire) - turn) < 0) {
    }
  };
  for (uint32_t i = 0; i < turns / 10; ++i) one();
  const double start = now_ns();
  for (uint32_t i = 0; i < turns; ++i) one();
  return (now_ns() - start) / turns;
}

// Nanoseconds of a call that all ranks make `turns` times. The barrier at the end makes calls count
// whole even if their root runs ahead.
template <typename Call>
double time_of(int turns, const char* what, Call call) {
  for (int i = 0; i < turns / 10 + 1; ++i) require(call(), what);
  require(mob_barrier(), "mob_barrier");
  const double start = now_ns();
  for (int i = 0; i < turns; ++i) require(call(), what);
  require(mob_barrier(), "mob_barrier");
  return (now_ns() - start) / turns;
}

Variant barriers() {
  return {"mob_barrier", [] { return time_of(4000, "mob_barrier", mob_barrier); }};
}

struct Buffers {
  explicit Buffers(size_t bytes)
      : in(new double[bytes / sizeof(double)]()), out(new double[bytes / sizeof(double)]()) {}
  std::shared_ptr<double[]> in;
  std::shared_ptr<double[]> out;
};

Variant copies(const char* name, const Buffers& buffers, size_t bytes, int turns) {
  return {name, [=] {
            return time_of(turns, "memcpy", [&] {
              std::memcpy(buffers.out.get(), buffers.in.get(), bytes);
              __asm__ volatile("" ::: "memory");
              return MOB_OK;
            });
          }};
}

Variant broadcasts(const char* name, void* buffer, const std::shared_ptr<double[]>& owner,
                   size_t bytes, int turns) {
  return {name, [=] {
            static_cast<void>(owner);
            return time_of(turns, "mob_broadcast",
                           [&] { return mob_broadcast(MOB_TEAM_WORLD, 0, buffer, bytes); });
          }};
}

Variant allreduces(const Buffers& buffers, size_t bytes, int turns) {
  return {"mob_allreduce, sum of doubles", [=] {
            return time_of(turns, "mob_allreduce", [&] {
              return mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_DOUBLE, buffers.in.get(),
                                   buffers.out.get(), bytes / sizeof(double));
            });
          }};
}

}  // namespace

std::vector<Benchmark> barrier_benchmarks() {
  std::vector<Benchmark> result;
  Benchmark barrier{"barrier", "a barrier of all processes", {}};
  if (mob_size() == 2) {
    mob_mem_t memory = nullptr;
    require(mob_mem_alloc(sizeof(Flag), &memory), "mob_mem_alloc");
    auto* own = static_cast<Flag*>(mob_mem_local(memory));
    const mob_rank_t peer = 1 - mob_rank();
    void* remote = nullptr;
    void* other = nullptr;
    require(mob_mem_address(memory, peer, 0, &remote), "mob_mem_address");
    require(mob_ptr(peer, remote, &other), "mob_ptr");
    barrier.variants.push_back(
        {"two flags", [=] { return flags(own, static_cast<Flag*>(other)); }});
  }
  barrier.variants.push_back(barriers());
  result.push_back(std::move(barrier));

  const Buffers small(sizeof(double));
  result.push_back({"collective8",
                    "collective calls of 8 bytes",
                    {barriers(), broadcasts("mob_broadcast", small.in.get(), small.in, 8, 4000),
                     allreduces(small, 8, 4000)}});
  constexpr size_t kLarge = size_t{1} << 20;
  const Buffers large(kLarge);
  result.push_back(
      {"collective1m",
       "collective calls of 1 MiB",
       {copies("memcpy", large, kLarge, 40),
        broadcasts("mob_broadcast, private", large.in.get(), large.in, kLarge, 40),
        broadcasts("mob_broadcast, shared", shared_memory(kLarge, mob_rank()), nullptr, kLarge, 40),
        allreduces(large, kLarge, 40)}});
  return result;
}

}  // namespace micro
