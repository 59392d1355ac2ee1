// SPDX-License-Identifier: BSD-3-Clause

// Exposed memory from malloc() of a local peer: compared with the bare system call, and while the
// target computes and makes no call. Remapped memory: compared with allocated memory.

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "micro.h"

namespace micro {
namespace {

constexpr size_t kAreaBytes = size_t{1} << 20;
constexpr size_t kRows = 128;
constexpr size_t kRun = 512;
constexpr ptrdiff_t kStride = 1024;

struct Target {
  mob_rank_t rank;
  pid_t pid;
  char* memory;
  char* moved;      // exposed and remapped: its pages are in shared memory
  char* allocated;  // an allocation of the same size
  uint64_t* stop;   // in shared memory of the target: 1 ends its computation
};

// The target exposes `kAreaBytes` of ordinary memory and tells all ranks the address.
Target make_target() {
  Target target{mob_size() - 1, 0, nullptr, nullptr, nullptr, nullptr};
  target.stop = static_cast<uint64_t*>(shared_memory(sizeof(uint64_t), target.rank));
  target.allocated = static_cast<char*>(shared_memory(kAreaBytes, target.rank));
  auto* mail = static_cast<uint64_t*>(shared_memory(3 * sizeof(uint64_t), target.rank));
  if (mob_rank() == target.rank) {
    static mob_exposed_t exposed = nullptr;
    auto* memory = private_memory(kAreaBytes);
    require(mob_expose(memory, kAreaBytes, 0, &exposed), "mob_expose");
    require(mob_put8(target.rank, mail, reinterpret_cast<uintptr_t>(memory)), "mob_put8");
    require(mob_put8(target.rank, mail + 1, static_cast<uint64_t>(getpid())), "mob_put8");
    auto* moved = private_memory(kAreaBytes);
    require(mob_expose(moved, kAreaBytes, MOB_EXPOSE_REMAP, &exposed), "mob_expose");
    require(mob_put8(target.rank, mail + 2, reinterpret_cast<uintptr_t>(moved)), "mob_put8");
  }
  require(mob_barrier(), "mob_barrier");
  uint64_t value = 0;
  require(mob_get8(target.rank, mail, &value), "mob_get8");
  target.memory = reinterpret_cast<char*>(value);
  require(mob_get8(target.rank, mail + 1, &value), "mob_get8");
  target.pid = static_cast<pid_t>(value);
  require(mob_get8(target.rank, mail + 2, &value), "mob_get8");
  target.moved = reinterpret_cast<char*>(value);
  return target;
}

// Rank 0 measures while the target waits in a barrier, or computes without a call.
template <typename Body>
Variant measured(std::string name, const Target& target, bool target_computes, int turns,
                 Body body) {
  return {std::move(name), [=] {
            double result = 0;
            if (mob_rank() == target.rank && mob_rank() != 0 && target_computes) {
              while (__atomic_load_n(target.stop, __ATOMIC_ACQUIRE) == 0) {
              }
              __atomic_store_n(target.stop, 0, __ATOMIC_RELAXED);
            } else if (mob_rank() == 0) {
              for (int i = 0; i < turns / 10 + 1; ++i) body();
              const double start = now_ns();
              for (int i = 0; i < turns; ++i) body();
              result = (now_ns() - start) / turns;
              if (target_computes) require(mob_put8(target.rank, target.stop, 1), "mob_put8");
            }
            require(mob_barrier(), "mob_barrier");
            return result;
          }};
}

Benchmark put8(const Target& target, char* local) {
  const auto system_call = [=] {
    iovec here{local, 8};
    iovec there{target.memory, 8};
    if (process_vm_writev(target.pid, &here, 1, &there, 1, 0) != 8) {
      mob_abort(1, "process_vm_writev failed");
    }
  };
  const auto put = [=] { require(mob_put(target.rank, target.memory, local, 8), "mob_put"); };
  return {"exposed_put8",
          "8 bytes to memory from malloc()",
          {measured("process_vm_writev", target, false, 5000, system_call),
           measured("mob_put", target, false, 5000, put),
           measured("mob_put, target computes", target, true, 5000, put)}};
}

Benchmark boxes(const Target& target, char* local) {
  const size_t rows = kRows;
  const auto pieces = [=] {
    iovec here{local, kRun * kRows};
    iovec there[kRows];
    for (size_t i = 0; i < kRows; ++i) {
      there[i] = {target.memory + static_cast<ptrdiff_t>(i) * kStride, kRun};
    }
    if (process_vm_writev(target.pid, &here, 1, there, kRows, 0) < 0) {
      mob_abort(1, "process_vm_writev failed");
    }
  };
  const ptrdiff_t remote_stride = kStride;
  const ptrdiff_t local_stride = kRun;
  return {"exposed_strided",
          "128 × 512 bytes, stride 1024, of memory from malloc()",
          {measured("process_vm_writev, 128 pieces", target, false, 500, pieces),
           measured("mob_put_strided", target, false, 500,
                    [=] {
                      require(mob_put_strided(target.rank, target.memory, &remote_stride, local,
                                              &local_stride, kRun, &rows, 1),
                              "mob_put_strided");
                      require(mob_flush(target.rank), "mob_flush");
                    }),
           measured("mob_put_strided, target computes", target, true, 500,
                    [=] {
                      require(mob_put_strided(target.rank, target.memory, &remote_stride, local,
                                              &local_stride, kRun, &rows, 1),
                              "mob_put_strided");
                      require(mob_flush(target.rank), "mob_flush");
                    }),
           measured("mob_get_strided", target, false, 500, [=] {
             require(mob_get_strided(target.rank, target.memory, &remote_stride, local,
                                     &local_stride, kRun, &rows, 1),
                     "mob_get_strided");
           })}};
}

Benchmark atomics(const Target& target) {
  const auto add = [=] {
    uint64_t old = 0;
    require(mob_fetch_add8(target.rank, target.memory, 1, &old), "mob_fetch_add8");
  };
  return {"exposed_fetch_add8",
          "fetch-and-add on memory from malloc()",
          {measured("target waits in a barrier", target, false, 500, add),
           measured("target computes", target, true, 500, add)}};
}

Benchmark moved_put8(const Target& target, char* local) {
  const auto put_to = [=](char* remote) {
    return [=] { require(mob_put(target.rank, remote, local, 8), "mob_put"); };
  };
  const auto value_to = [=](char* remote) {
    return [=] { require(mob_put8(target.rank, remote, 1), "mob_put8"); };
  };
  constexpr int kTurns = 100'000;
  return {"moved_put8",
          "8 bytes to memory from malloc() whose pages were moved",
          {measured("mob_put, allocated", target, false, kTurns, put_to(target.allocated)),
           measured("mob_put, moved", target, false, kTurns, put_to(target.moved)),
           measured("mob_put8, allocated", target, false, kTurns, value_to(target.allocated)),
           measured("mob_put8, moved", target, false, kTurns, value_to(target.moved)),
           measured("mob_put, exposed", target, false, kTurns / 20, put_to(target.memory))}};
}

Benchmark moved_boxes(const Target& target, char* local) {
  const auto put_to = [=](char* remote) {
    return [=] {
      const size_t rows = kRows;
      const ptrdiff_t remote_stride = kStride;
      const ptrdiff_t local_stride = kRun;
      require(mob_put_strided(target.rank, remote, &remote_stride, local, &local_stride, kRun,
                              &rows, 1),
              "mob_put_strided");
      require(mob_flush(target.rank), "mob_flush");
    };
  };
  return {"moved_strided",
          "128 × 512 bytes, stride 1024, of memory whose pages were moved",
          {measured("allocated", target, false, 2000, put_to(target.allocated)),
           measured("moved", target, false, 2000, put_to(target.moved)),
           measured("exposed", target, false, 500, put_to(target.memory))}};
}

Benchmark moved_atomics(const Target& target) {
  const auto add_to = [=](char* remote) {
    return [=] {
      uint64_t old = 0;
      require(mob_fetch_add8(target.rank, remote, 1, &old), "mob_fetch_add8");
    };
  };
  return {"moved_fetch_add8",
          "fetch-and-add on memory whose pages were moved",
          {measured("allocated", target, false, 20'000, add_to(target.allocated)),
           measured("moved", target, false, 20'000, add_to(target.moved))}};
}

}  // namespace

std::vector<Benchmark> exposed_benchmarks() {
  if (mob_size() < 2) return {};
  const Target target = make_target();
  auto* local = static_cast<char*>(private_memory(kAreaBytes));
  return {put8(target, local),       boxes(target, local),       atomics(target),
          moved_put8(target, local), moved_boxes(target, local), moved_atomics(target)};
}

}  // namespace micro
