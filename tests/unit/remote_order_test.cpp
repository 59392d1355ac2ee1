// SPDX-License-Identifier: BSD-3-Clause

// Random programs of one rank on memory of two others, over a network that takes random time,
// against memory that is changed in the order of the calls.

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "engine/transfer/router.h"
#include "fake_hosts.h"

namespace mobius::engine {
namespace {

constexpr size_t kMemory = 1 << 20;

class Program {
 public:
  Program(uint64_t seed, const std::string& policy)
      : random_(seed), hosts_(3, {"MOBIUS_SCHEDULE=" + policy}) {
    hosts_.fabric().take_random_time(seed);
    for (mob_rank_t rank = 1; rank <= 2; ++rank) {
      memory_[rank - 1] = hosts_[rank].allocate(kMemory);
      model_[rank - 1].assign(kMemory, 0);
    }
  }

  void run(int calls) {
    for (int i = 0; i < calls && !testing::Test::HasFatalFailure(); ++i) call();
    for (const mob_rank_t rank : {1, 2}) flush(rank);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(std::memcmp(memory_[i], model_[i].data(), kMemory), 0) << "of rank " << i + 1;
    }
  }

 private:
  // Bytes that an operation reads here, or that it must have read from there.
  struct Read {
    mob_rank_t rank;
    Bytes got;
    Bytes expected;
  };

  size_t below(size_t limit) { return random_() % limit; }

  // Few places, so that operations meet.
  size_t place(size_t bytes) {
    return below(4) == 0 ? below(kMemory - bytes) : below(40) * 64 + below(2) * 8;
  }

  Bytes fresh(size_t bytes) {
    Bytes data(bytes);
    for (unsigned char& each : data) each = static_cast<unsigned char>(random_());
    return data;
  }

  void call() {
    const auto rank = static_cast<mob_rank_t>(1 + below(2));
    constexpr size_t kSizes[] = {1, 8, 8, 8, 24, 100, 1000, 5000, 30'000};
    const size_t bytes = kSizes[below(std::size(kSizes))];
    switch (below(12)) {
      case 0:
        return flush(rank);
      case 1:
        ASSERT_EQ(hosts_[0].fence(), MOB_OK);
        return;
      case 2:
        return put_long(rank);
      case 3:
      case 4:
        return add(rank);
      case 5:
      case 6:
      case 7:
        return get(rank, bytes);
      default:
        return put(rank, place(bytes), bytes, below(3) == 0);
    }
  }

  void put(mob_rank_t rank, size_t at, size_t bytes, bool blocks) {
    const Bytes& data = kept_.emplace_back(fresh(bytes));
    std::ranges::copy(data, model_[rank - 1].begin() + static_cast<ptrdiff_t>(at));
    unsigned char* const there = memory_[rank - 1] + at;
    ASSERT_EQ(blocks ? hosts_[0].put(rank, there, data.data(), bytes)
                     : hosts_[0].put_nbi(rank, there, data.data(), bytes),
              MOB_OK);
  }

  // Puts of that size are ordered with others by fences alone.
  void put_long(mob_rank_t rank) {
    ASSERT_EQ(hosts_[0].fence(), MOB_OK);
    put(rank, below(1000), 150'000, below(2) == 0);
    if (below(2) == 0) {
      ASSERT_EQ(hosts_[0].fence(), MOB_OK);
    } else {
      flush(rank);
    }
  }

  void get(mob_rank_t rank, size_t bytes) {
    const size_t at = place(bytes);
    const auto from = model_[rank - 1].begin() + static_cast<ptrdiff_t>(at);
    Read& read = reads_.emplace_back(
        Read{rank, Bytes(bytes, 0xdd), Bytes(from, from + static_cast<ptrdiff_t>(bytes))});
    const unsigned char* const there = memory_[rank - 1] + at;
    if (below(3) != 0) {
      ASSERT_EQ(hosts_[0].get_nbi(rank, there, read.got.data(), bytes), MOB_OK);
      return;
    }
    uint64_t handle = 0;
    if (below(2) == 0) {
      ASSERT_EQ(hosts_[0].get(rank, there, read.got.data(), bytes), MOB_OK);
    } else {
      ASSERT_EQ(hosts_[0].get_nb(rank, there, read.got.data(), bytes, &handle), MOB_OK);
      ASSERT_EQ(hosts_[0].wait(handle), MOB_OK);
    }
    ASSERT_EQ(read.got, read.expected);
  }

  // Adds to words, with or without their former values.
  void add(mob_rank_t rank) {
    const size_t count = 1 + below(4);
    const size_t at = below(40) * 64;
    const size_t bytes = count * sizeof(uint64_t);
    const Bytes& data = kept_.emplace_back(fresh(bytes));
    unsigned char* const model = model_[rank - 1].data() + at;
    Read read{rank, Bytes(bytes, 0xdd), Bytes(model, model + bytes)};
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
      uint64_t word = 0;
      uint64_t operand = 0;
      std::memcpy(&word, model + i, sizeof word);
      std::memcpy(&operand, data.data() + i, sizeof operand);
      word += operand;
      std::memcpy(model + i, &word, sizeof word);
    }
    const bool fetches = below(2) == 0;
    mob_transfer_t transfer = contiguous(fetches ? MOB_FETCH_ACCUMULATE : MOB_ACCUMULATE, rank,
                                         memory_[rank - 1] + at, data.data(), bytes);
    transfer.type = MOB_UINT64;
    transfer.op = MOB_SUM;
    if (fetches) transfer.fetched = reads_.emplace_back(std::move(read)).got.data();
    ASSERT_EQ(hosts_[0].transfer(transfer, below(3) == 0 ? Mode::kBlocking : Mode::kImplicit),
              MOB_OK);
  }

  void flush(mob_rank_t rank) {
    ASSERT_EQ(hosts_[0].flush(rank), MOB_OK) << mob_last_error();
    std::erase_if(reads_, [rank](const Read& read) {
      if (read.rank != rank) return false;
      EXPECT_EQ(read.got, read.expected);
      return true;
    });
  }

  std::mt19937_64 random_;
  FakeHosts hosts_;
  unsigned char* memory_[2] = {};
  Bytes model_[2];
  std::deque<Bytes> kept_;  // unchanged until the end
  std::deque<Read> reads_;  // of operations that no flush has followed
};

class RemoteOrder : public testing::TestWithParam<const char*> {};

TEST_P(RemoteOrder, RandomProgramsOverASlowNetworkHaveTheResultsOfTheirCalls) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program(seed, GetParam()).run(150);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, RemoteOrder,
                         testing::Values("adaptive", "fifo", "interleave", "gets-first",
                                         "aggregate"),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace mobius::engine
