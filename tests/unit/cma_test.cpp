// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cma/cma.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "transport/shm/copy.h"

namespace mobius::transport {
namespace {

// The test's own process plays the other process: the kernel treats them alike.
class Cma : public testing::Test {
 protected:
  void SetUp() override {
    unsigned long word = 1;
    unsigned long got = 0;
    mob_transfer_t transfer{};
    transfer.kind = MOB_GET;
    transfer.remote = &word;
    transfer.local = &got;
    transfer.bytes = sizeof word;
    Shape shape;
    ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK);
    if (cma_get(getpid(), shape, true) == EPERM) GTEST_SKIP() << "not allowed here";
  }
};

TEST_F(Cma, BoxesOfAllDensities) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const size_t run = 1 + random() % 700;
    const size_t counts[2] = {1 + random() % 300, 1 + random() % 4};
    const auto gap = static_cast<ptrdiff_t>(random() % 4000);
    const auto inner = static_cast<ptrdiff_t>(run) + gap;
    const ptrdiff_t remote_strides[2] = {inner, inner * static_cast<ptrdiff_t>(counts[0])};
    const auto packed = static_cast<ptrdiff_t>(run);
    const ptrdiff_t local_strides[2] = {packed, packed * static_cast<ptrdiff_t>(counts[0])};
    std::vector<unsigned char> remote(static_cast<size_t>(remote_strides[1]) * counts[1] + run);
    for (auto& byte : remote) byte = static_cast<unsigned char>(random());
    std::vector<unsigned char> local(run * counts[0] * counts[1], 0xee);
    mob_transfer_t transfer{};
    transfer.kind = MOB_GET;
    transfer.shape = MOB_STRIDED;
    transfer.remote = remote.data();
    transfer.local = local.data();
    transfer.bytes = run;
    transfer.dimensions = 2;
    transfer.counts = counts;
    transfer.remote_strides = remote_strides;
    transfer.local_strides = local_strides;
    Shape shape;
    ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK) << mob_last_error();
    ASSERT_EQ(cma_get(getpid(), shape, round % 2 == 0), 0);
    std::vector<unsigned char> expected;
    for (size_t j = 0; j < counts[1]; ++j) {
      for (size_t i = 0; i < counts[0]; ++i) {
        const auto* from = remote.data() + static_cast<ptrdiff_t>(i) * remote_strides[0] +
                           static_cast<ptrdiff_t>(j) * remote_strides[1];
        expected.insert(expected.end(), from, from + run);
      }
    }
    ASSERT_EQ(local, expected);
    // And back, to another place: the bytes between the runs stay unchanged.
    std::vector<unsigned char> other(remote.size(), 0x55);
    transfer.kind = MOB_PUT;
    transfer.remote = other.data();
    ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK);
    ASSERT_EQ(cma_put(getpid(), shape), 0);
    for (size_t j = 0; j < counts[1]; ++j) {
      for (size_t i = 0; i < counts[0]; ++i) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(i) * remote_strides[0] +
                             static_cast<ptrdiff_t>(j) * remote_strides[1];
        ASSERT_EQ(std::memcmp(other.data() + at, remote.data() + at, run), 0);
        if (gap > 0 && i + 1 < counts[0]) {
          ASSERT_EQ(other[static_cast<size_t>(at) + run], 0x55);
        }
      }
    }
  }
}

// Where string instructions are very slow, the bytes take another path, in parts of 64 KiB.
TEST_F(Cma, NearInThePageByAnotherWay) {
  const CopyTuning before = copy_tuning();
  CopyTuning tuning = before;
  tuning.slow_near_in_page = true;
  set_copy_tuning(tuning);
  constexpr size_t kPage = 4096;
  constexpr size_t kMost = size_t{150'000};
  std::vector<unsigned char> memory(2 * kMost + 8 * kPage);
  unsigned char* page = memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & (kPage - 1));
  for (const bool put : {false, true}) {
    for (const ptrdiff_t behind : {ptrdiff_t{0}, ptrdiff_t{1}, ptrdiff_t{16}, ptrdiff_t{31}}) {
      for (const size_t bytes :
           {size_t{100}, size_t{2048}, size_t{65'536}, size_t{65'537}, kMost}) {
        unsigned char* from = page + 5;
        unsigned char* to = page + 38 * kPage + 5 + behind;
        for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 31 + bytes);
        std::memset(to - 1, 0xee, bytes + 2);
        ASSERT_EQ(put ? cma_copy(getpid(), reinterpret_cast<uintptr_t>(to), from, bytes, true)
                      : cma_copy(getpid(), reinterpret_cast<uintptr_t>(from), to, bytes, false),
                  0);
        ASSERT_EQ(std::memcmp(to, from, bytes), 0) << bytes << " bytes, " << behind << " behind";
        ASSERT_EQ(to[-1], 0xee);
        ASSERT_EQ(to[bytes], 0xee);
        std::memset(to, 0, bytes);
        mob_transfer_t transfer{};
        transfer.kind = put ? MOB_PUT : MOB_GET;
        transfer.remote = put ? to : from;
        transfer.local = put ? from : to;
        transfer.bytes = bytes;
        Shape shape;
        ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK);
        ASSERT_EQ(put ? cma_put(getpid(), shape) : cma_get(getpid(), shape, true), 0);
        ASSERT_EQ(std::memcmp(to, from, bytes), 0) << bytes << " bytes, " << behind << " behind";
      }
    }
  }
  set_copy_tuning(before);
}

TEST_F(Cma, MemoryThatIsNotThereAndProcessesThatAreGone) {
  void* hole = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  unsigned long word = 0;
  mob_transfer_t transfer{};
  transfer.kind = MOB_PUT;
  transfer.remote = hole;
  transfer.local = &word;
  transfer.bytes = sizeof word;
  Shape shape;
  ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK);
  EXPECT_EQ(cma_put(getpid(), shape), EFAULT);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(cma_put(child, shape), ESRCH);
  munmap(hole, 4096);
}

TEST_F(Cma, PiecesAndSpans) {
  std::vector<unsigned char> remote(10'000);
  std::vector<unsigned char> local(10'000);
  for (size_t i = 0; i < local.size(); ++i) local[i] = static_cast<unsigned char>(i * 7);
  std::vector<void*> remotes;
  std::vector<void*> locals;
  for (size_t i = 0; i < 1000; ++i) {
    remotes.push_back(&remote[i * 10]);
    locals.push_back(&local[(999 - i) * 10]);
  }
  mob_transfer_t transfer{};
  transfer.kind = MOB_PUT;
  transfer.shape = MOB_PIECES;
  transfer.bytes = 10;
  transfer.count = 1000;
  transfer.remotes = remotes.data();
  transfer.locals = locals.data();
  Shape shape;
  ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK);
  EXPECT_EQ(cma_put_pieces(shape), 1000u);
  ASSERT_EQ(cma_put(getpid(), shape), 0);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(std::memcmp(&remote[i * 10], &local[(999 - i) * 10], 10), 0);
  }
  const mob_span_t there[] = {{remote.data(), 3}, {remote.data() + 100, 0}, {&remote[50], 4997}};
  const mob_span_t here[] = {{local.data(), 2500}, {&local[5000], 2500}};
  transfer = {};
  transfer.kind = MOB_PUT;
  transfer.shape = MOB_SPANS;
  transfer.remote_spans = there;
  transfer.remote_span_count = 3;
  transfer.local_spans = here;
  transfer.local_span_count = 2;
  ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK) << mob_last_error();
  ASSERT_EQ(cma_put(getpid(), shape), 0);
  EXPECT_EQ(std::memcmp(remote.data(), local.data(), 3), 0);
  EXPECT_EQ(std::memcmp(&remote[50], &local[3], 2497), 0);
  EXPECT_EQ(std::memcmp(&remote[50 + 2497], &local[5000], 2500), 0);
}

}  // namespace
}  // namespace mobius::transport
