// SPDX-License-Identifier: BSD-3-Clause

// Boxes compared with a loop of memcpy calls, and a sweep that looks for sizes, alignments and
// strides that cost more than their neighbours.

#include <algorithm>
#include <cstring>

#include "micro.h"

namespace micro {
namespace {

constexpr size_t kAreaBytes = size_t{4} << 20;

// The loop of a program whose run length the compiler does not know.
[[gnu::noinline]] void copy_rows(char* to, ptrdiff_t to_stride, const char* from,
                                 ptrdiff_t from_stride, size_t run, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    const auto step = static_cast<ptrdiff_t>(row);
    std::memcpy(to + step * to_stride, from + step * from_stride, run);
  }
}

// The limit: no copy is faster than its stores alone.
[[gnu::noinline]] void fill_rows(char* to, ptrdiff_t to_stride, size_t run, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    std::memset(to + static_cast<ptrdiff_t>(row) * to_stride, 3, run);
  }
}

struct Box {
  size_t run;
  size_t rows;
  ptrdiff_t stride;
};

template <typename Body>
Variant repeated(std::string name, size_t bytes, Body body) {
  return {std::move(name), [=] {
            if (mob_rank() != 0) return 0.0;
            const int turns = static_cast<int>(std::max<size_t>(16, (size_t{32} << 20) / bytes));
            body();
            const double start = now_ns();
            for (int i = 0; i < turns; ++i) body();
            return (now_ns() - start) / turns;
          }};
}

Benchmark box_benchmark(std::string name, const Box& box, mob_rank_t target, char* remote,
                        char* local) {
  const size_t bytes = box.run * box.rows;
  return {std::move(name),
          std::to_string(box.rows) + " × " + std::to_string(box.run) + " bytes, stride " +
              std::to_string(box.stride),
          {repeated("loop of memcpy", bytes,
                    [=] { copy_rows(remote, box.stride, local, box.stride, box.run, box.rows); }),
           repeated("its stores alone (memset)", bytes,
                    [=] { fill_rows(remote, box.stride, box.run, box.rows); }),
           repeated("mob_put_strided", bytes,
                    [=] {
                      require(mob_put_strided(target, remote, &box.stride, local, &box.stride,
                                              box.run, &box.rows, 1),
                              "mob_put_strided");
                    }),
           repeated("mob_get_strided", bytes, [=] {
             require(mob_get_strided(target, remote, &box.stride, local, &box.stride, box.run,
                                     &box.rows, 1),
                     "mob_get_strided");
           })}};
}

// Nanoseconds per byte of a call that transfers `bytes`.
template <typename Call>
Variant per_byte(std::string name, size_t bytes, Call call) {
  return {std::move(name) + ", per byte", [=] {
            if (mob_rank() != 0) return 0.0;
            const size_t turns = std::max<size_t>(8, std::min<size_t>(20'000, (4 << 20) / bytes));
            for (size_t i = 0; i < turns / 8 + 1; ++i) call();
            const double start = now_ns();
            for (size_t i = 0; i < turns; ++i) call();
            return (now_ns() - start) / static_cast<double>(turns * bytes);
          }};
}

}  // namespace

std::vector<Benchmark> strided_benchmarks() {
  const mob_rank_t target = mob_size() - 1;
  auto* remote = static_cast<char*>(shared_memory(kAreaBytes, target));
  auto* local = static_cast<char*>(private_memory(kAreaBytes));
  if (mob_rank() == target) std::memset(remote, 2, kAreaBytes);
  std::vector<Benchmark> result;
  for (const Box box : {Box{8, 1024, 16}, Box{64, 512, 128}, Box{512, 128, 1024},
                        Box{512, 128, 4096}, Box{4096, 64, 8192}}) {
    result.push_back(
        box_benchmark("strided_" + std::to_string(box.run) + "_" + std::to_string(box.stride), box,
                      target, remote, local));
  }
  return result;
}

// One variant per size, alignment or stride: each is the limit of the one after it.
std::vector<Benchmark> neighbour_benchmarks() {
  const mob_rank_t target = mob_size() - 1;
  auto* remote = static_cast<char*>(shared_memory(kAreaBytes, target));
  auto* local = static_cast<char*>(private_memory(kAreaBytes));
  if (mob_rank() == target) std::memset(remote, 2, kAreaBytes);
  const auto put = [=](size_t to, size_t from, size_t bytes) {
    return [=] { require(mob_put(target, remote + to, local + from, bytes), "mob_put"); };
  };
  Benchmark sizes{"neighbours", "sizes of mob_put, one after the other", {}, true};
  for (size_t bytes = 16; bytes <= kAreaBytes; bytes += std::max<size_t>(bytes / 4, 8)) {
    sizes.variants.push_back(per_byte(std::to_string(bytes) + " bytes", bytes, put(0, 0, bytes)));
  }
  Benchmark alignments{
      "alignments", "2048 bytes at all alignments in a cache line, of target and source", {}, true};
  for (const size_t to : {0, 1, 2, 4, 8, 16, 31, 32, 48, 63}) {
    for (const size_t from : {0, 1, 8, 32, 63}) {
      alignments.variants.push_back(per_byte(
          "at " + std::to_string(to) + " from " + std::to_string(from), 2048, put(to, from, 2048)));
    }
  }
  // Memory of malloc() begins 16 bytes after a page boundary.
  Benchmark distances{
      "distances", "16384 bytes, by how far the target lies behind the source in a page", {}, true};
  for (const size_t behind : {0, 1, 8, 16, 31, 32, 64, 256, 2048, 4080}) {
    distances.variants.push_back(
        per_byte("put " + std::to_string(behind) + " behind", 16384, put(behind, 0, 16384)));
    distances.variants.push_back(per_byte("got " + std::to_string(behind) + " behind", 16384, [=] {
      require(mob_get(target, remote, local + behind, 16384), "mob_get");
    }));
  }
  Benchmark strides{"strides", "boxes of 128 × 256 bytes, one stride after the other", {}, true};
  for (size_t stride = 256; stride <= 16384; stride += std::max<size_t>(stride / 4, 64)) {
    const auto step = static_cast<ptrdiff_t>(stride);
    strides.variants.push_back(per_byte("stride " + std::to_string(stride), size_t{128} * 256, [=] {
      const size_t rows = 128;
      require(mob_put_strided(target, remote, &step, local, &step, 256, &rows, 1),
              "mob_put_strided");
    }));
  }
  return {std::move(sizes), std::move(alignments), std::move(distances), std::move(strides)};
}

}  // namespace micro
