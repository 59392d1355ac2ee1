// SPDX-License-Identifier: BSD-3-Clause

// Atomic updates by all ranks and several threads at once, and their joint result.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "fixture.h"
#include "model/elements.h"
#include "serve.h"

using mobius_test::barrier;
using mobius_test::Shared;

namespace {

constexpr int kThreads = 3;
constexpr uint64_t kRounds = 300;

template <typename Run>
void in_threads(Run run) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(run, t);
}

uint64_t total() { return static_cast<uint64_t>(mob_size()) * kThreads * kRounds; }

template <typename T>
T word_at(const Shared& memory, size_t offset) {
  T value;
  std::memcpy(&value, memory.local() + offset, sizeof value);
  return value;
}

// Every rank updates every rank at once: few and many elements, on both sides of the end of a
// lock's block.
TEST(Atomics, FewElementsAroundTheEndOfABlock) {
  constexpr size_t kBlock = 64 << 10;
  constexpr size_t kMost = 600;
  const Shared mem(2 * kBlock + kMost * sizeof(double));
  const std::vector<double> ones(kMost, 1.0);
  const double half = 0.5;
  double expected[2] = {};
  for (const size_t count : {size_t{1}, size_t{3}, size_t{512}, kMost}) {
    for (mob_rank_t target = 0; target < mob_size(); ++target) {
      const auto start = reinterpret_cast<uintptr_t>(mem.at(target));
      auto* end_of_block = reinterpret_cast<double*>((start / kBlock + 1) * kBlock);
      EXPECT_EQ(mob_accumulate(target, end_of_block - 1, ones.data(), count, MOB_DOUBLE, MOB_SUM),
                MOB_OK);
      EXPECT_EQ(mob_accumulate_scaled(target, end_of_block, ones.data(), count, MOB_DOUBLE, &half),
                MOB_OK);
    }
    expected[0] += mob_size();                                    // the last of the block
    expected[1] += mob_size() * (count > 1 ? 1.0 + half : half);  // the first of the next
  }
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  barrier();
  const auto start = reinterpret_cast<uintptr_t>(mem.local());
  const auto* end_of_block = reinterpret_cast<const double*>((start / kBlock + 1) * kBlock);
  EXPECT_EQ(end_of_block[-1], expected[0]);
  EXPECT_EQ(end_of_block[0], expected[1]);
}

}  // namespace

TEST(Atomics, AdditionsOfAllAreCounted) {
  const Shared memory(128);
  in_threads([&](int) {
    for (uint64_t i = 0; i < kRounds; ++i) {
      uint64_t old8 = 0;
      uint32_t old4 = 0;
      EXPECT_EQ(mob_fetch_add8(0, memory.at(0), 3, &old8), MOB_OK);
      EXPECT_EQ(mob_fetch_add4(0, memory.at(0, 8), 5, &old4), MOB_OK);
    }
  });
  barrier();
  if (mob_rank() == 0) {
    EXPECT_EQ(word_at<uint64_t>(memory, 0), 3 * total());
    EXPECT_EQ(word_at<uint32_t>(memory, 8), 5 * total());
  }
  barrier();
}

// Every call that adds to a word of a type, on one word.
TEST(Atomics, FetchesAndAccumulatesOfOneTypeCountTogether) {
  const Shared memory(256);
  const mob_rank_t target = mob_size() - 1;
  for (int t = 0; t < MOB_TYPE_COUNT; ++t) {
    const auto type = static_cast<mob_type_t>(t);
    const size_t element = mobius_test::bytes_of(type);
    unsigned char* word = memory.at(target, static_cast<size_t>(t) * 16);
    alignas(16) unsigned char one[16] = {};
    if (type == MOB_FLOAT || type == MOB_COMPLEX_FLOAT) {
      const float value = 1;
      std::memcpy(one, &value, sizeof value);
    } else if (mobius_test::is_real_or_complex(type)) {
      const double value = 1;
      std::memcpy(one, &value, sizeof value);
    } else {
      one[0] = 1;
    }
    in_threads([&](int) {
      for (uint64_t i = 0; i < kRounds / 3; ++i) {
        unsigned char old[16];
        EXPECT_EQ(mob_accumulate(target, word, one, 1, type, MOB_SUM), MOB_OK);
        EXPECT_EQ(mob_fetch_op(target, word, type, MOB_SUM, one, old), MOB_OK);
        EXPECT_EQ(mob_fetch_accumulate(target, word, one, old, 1, type, MOB_SUM), MOB_OK);
      }
    });
    barrier();
    if (mob_rank() == target) {
      unsigned char expected[16] = {};
      for (uint64_t i = 0; i < total(); ++i) {
        mobius_test::combine(type, MOB_SUM, expected, one, nullptr);
      }
      EXPECT_EQ(std::memcmp(memory.local() + t * 16, expected, element), 0)
          << mobius_test::name_of(type);
    }
    barrier();
  }
}

// Threads update words while others add arrays to the same memory, whose words were not updated
// before.
TEST(Atomics, WordsAreUpdatedAmongAccumulatedArrays) {
  constexpr size_t kWords = size_t{512} << 10;
  constexpr uint64_t kArrays = 12;
  const Shared memory(kWords * sizeof(uint32_t));
  const mob_rank_t target = mob_size() / 2;
  std::memset(memory.local(), 0, kWords * sizeof(uint32_t));
  barrier();
  in_threads([&](int thread) {
    const std::vector<uint32_t> ones(kWords, 1);
    const bool late = (mob_rank() + thread) % 2 == 1;
    for (uint64_t i = 0; i < kArrays; ++i) {
      if (late && i >= kArrays / 2) {
        for (size_t word = 0; word < kWords; word += 512) {
          uint32_t old = 0;
          EXPECT_EQ(mob_fetch_add4(target, memory.at(target, word * 4), 1, &old), MOB_OK);
        }
      } else {
        EXPECT_EQ(
            mob_accumulate(target, memory.at(target), ones.data(), kWords, MOB_UINT32, MOB_SUM),
            MOB_OK);
      }
    }
    EXPECT_EQ(mob_flush(target), MOB_OK);
  });
  barrier();
  if (mob_rank() == target) {
    uint64_t late = 0;
    for (mob_rank_t r = 0; r < mob_size(); ++r) {
      for (int t = 0; t < kThreads; ++t) late += static_cast<uint64_t>((r + t) % 2);
    }
    const uint64_t all = static_cast<uint64_t>(mob_size()) * kThreads * kArrays;
    for (size_t word = 0; word < kWords; ++word) {
      const uint64_t expected = word % 512 == 0 ? all : all - late * (kArrays / 2);
      ASSERT_EQ(word_at<uint32_t>(memory, word * 4), expected) << word;
    }
  }
  barrier();
}

// Half of the threads update a few words in `kFewAmong` bytes of the target while the others add
// arrays to all of them. Each round uses other words: far apart, and in every second round in three
// adjacent places that become known for their updates one by one. `update` adds 1000 to a word. It
// is slow where it needs a message and an answer, which may be so for some ranks only.
constexpr size_t kFewAmong = size_t{48} << 10;

template <typename Update>
void update_few_words_among_arrays(mob_rank_t target, const unsigned char* local,
                                   unsigned char* theirs, size_t round, bool is_quick,
                                   Update update) {
  const std::vector<uint32_t> ones(kFewAmong, 1);
  const bool is_near = round % 2 == 1;
  std::vector<size_t> few;
  for (size_t i = 0; i < (is_near ? 32 : 3); ++i) {
    few.push_back((round * 4099 + i * (is_near ? 24 : 15'013) + 255) % kFewAmong);
  }
  const uint64_t times = is_quick ? 80 : 4;
  const uint64_t updates = is_quick ? 1200 / few.size() : 2;
  std::atomic<uint64_t> arrays = 0;
  in_threads([&](int thread) {
    for (uint64_t i = 0; i < times; ++i) {
      if ((mob_rank() + thread) % 2 == 0) {
        EXPECT_EQ(mob_accumulate(target, theirs, ones.data(), kFewAmong, MOB_UINT32, MOB_SUM),
                  MOB_OK);
        ++arrays;
        continue;
      }
      for (uint64_t n = 0; n < updates; ++n) {
        for (const size_t word : few) EXPECT_EQ(update(theirs + word * 4), MOB_OK);
      }
    }
    EXPECT_EQ(mob_flush(target), MOB_OK);
  });
  uint64_t mine = arrays;
  uint64_t added = 0;
  EXPECT_EQ(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_UINT64, &mine, &added, 1), MOB_OK);
  if (mob_rank() == target) {
    const uint64_t all = static_cast<uint64_t>(mob_size()) * kThreads * times;
    std::vector<uint64_t> expected(kFewAmong, added);
    for (const size_t word : few) expected[word] += (all - added) * updates * 1000;
    for (size_t word = 0; word < kFewAmong; ++word) {
      uint32_t value = 0;
      std::memcpy(&value, local + word * 4, sizeof value);
      ASSERT_EQ(value, static_cast<uint32_t>(expected[word])) << word;
    }
  }
  barrier();
}

// Hooks may delay each update.
bool updates_are_quick() {
  return mobius_test::one_host() && std::getenv("MOBIUS_HOOKS") == nullptr;
}

template <typename Update>
void update_few_words_of_allocations(Update update) {
  const mob_rank_t target = mob_size() - 1;
  const bool is_quick = updates_are_quick();
  for (size_t round = 0; round < 6; ++round) {
    // Lies at the former one's address.
    const Shared memory(kFewAmong * sizeof(uint32_t));
    std::memset(memory.local(), 0, kFewAmong * sizeof(uint32_t));
    barrier();
    update_few_words_among_arrays(target, memory.local(), memory.at(target), round, is_quick,
                                  [&](unsigned char* word) { return update(target, word); });
  }
}

mob_status_t fetch_and_add(mob_rank_t target, unsigned char* word) {
  uint32_t old = 0;
  return mob_fetch_add4(target, word, 1000, &old);
}

mob_status_t accumulate_one(mob_rank_t target, unsigned char* word) {
  const uint32_t one = 1000;
  return mob_accumulate(target, word, &one, 1, MOB_UINT32, MOB_SUM);
}

TEST(Atomics, FewWordsAreUpdatedAmongAccumulatedArrays) {
  update_few_words_of_allocations(fetch_and_add);
}

TEST(Atomics, FewIntegersAreAccumulatedAmongArrays) {
  update_few_words_of_allocations(accumulate_one);
}

void update_few_words_of_exposed_memory(unsigned flags) {
  constexpr size_t kPage = 4096;
  constexpr size_t kBytes = kFewAmong * sizeof(uint32_t);
  const mob_rank_t target = mob_size() - 1;
  const bool is_quick = flags == MOB_EXPOSE_REMAP && updates_are_quick();
  for (size_t round = 0; round < 3; ++round) {
    std::vector<unsigned char> space(kBytes + 2 * kPage);
    auto address = reinterpret_cast<uintptr_t>(space.data()) + kPage;
    address -= address % kPage;
    const auto own = address;
    mob_exposed_t exposed = nullptr;
    ASSERT_EQ(mob_expose(reinterpret_cast<void*>(own), kBytes, flags, &exposed), MOB_OK)
        << mob_last_error();
    ASSERT_EQ(mob_broadcast(MOB_TEAM_WORLD, target, &address, sizeof address), MOB_OK);
    update_few_words_among_arrays(
        target, reinterpret_cast<unsigned char*>(own), reinterpret_cast<unsigned char*>(address),
        round, is_quick, [&](unsigned char* word) {
          return is_quick || mob_rank() % 2 == 0 ? fetch_and_add(target, word)
                                                 : accumulate_one(target, word);
        });
    ASSERT_EQ(mob_withdraw(exposed), MOB_OK) << mob_last_error();
  }
}

TEST(Atomics, FewWordsOfExposedMemoryAreUpdatedAmongArrays) {
  update_few_words_of_exposed_memory(0);
}

TEST(Atomics, FewWordsOfMovedMemoryAreUpdatedAmongArrays) {
  update_few_words_of_exposed_memory(MOB_EXPOSE_REMAP);
}

TEST(Atomics, CompareSwapMakesALock) {
  const Shared memory(64);
  uint64_t* lock = reinterpret_cast<uint64_t*>(memory.at(0));
  unsigned char* guarded = memory.at(0, 8);
  in_threads([&](int) {
    for (uint64_t i = 0; i < kRounds / 10; ++i) {
      uint64_t old = 1;
      while (old != 0) {
        EXPECT_EQ(mob_compare_swap8(0, lock, 0, 1, &old), MOB_OK);
        if (old != 0) {
          mobius_test::serve_other_hosts();
          std::this_thread::yield();
        }
      }
      uint64_t value = 0;
      EXPECT_EQ(mob_get(0, guarded, &value, sizeof value), MOB_OK);
      ++value;
      EXPECT_EQ(mob_put(0, guarded, &value, sizeof value), MOB_OK);
      EXPECT_EQ(mob_flush(0), MOB_OK);
      EXPECT_EQ(mob_swap8(0, lock, 0, &old), MOB_OK);
      EXPECT_EQ(old, 1u);
    }
  });
  barrier();
  if (mob_rank() == 0) {
    EXPECT_EQ(word_at<uint64_t>(memory, 8), total() / 10);
  }
  barrier();
}

// Every rank swaps in values of its own and takes others out: no value is lost, and none is taken
// twice.
TEST(Atomics, SwapsFormAChain) {
  const Shared memory(8);
  const Shared taken(kThreads * kRounds * sizeof(uint32_t));
  in_threads([&](int thread) {
    auto* out = reinterpret_cast<uint32_t*>(taken.local()) + static_cast<size_t>(thread) * kRounds;
    for (uint64_t i = 0; i < kRounds; ++i) {
      const auto value = static_cast<uint32_t>(
          (static_cast<uint64_t>(mob_rank()) * kThreads + static_cast<uint64_t>(thread)) * kRounds +
          i + 1);
      EXPECT_EQ(mob_swap4(0, memory.at(0), value, &out[i]), MOB_OK);
    }
  });
  barrier();
  if (mob_rank() == 0) {
    std::vector<uint32_t> all{word_at<uint32_t>(memory, 0)};
    for (mob_rank_t r = 0; r < mob_size(); ++r) {
      const size_t start = all.size();
      all.resize(start + kThreads * kRounds);
      EXPECT_EQ(mob_get(r, taken.at(r), &all[start], kThreads * kRounds * sizeof(uint32_t)),
                MOB_OK);
    }
    std::ranges::sort(all);
    size_t wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) wrong += all[i] != i;
    EXPECT_EQ(all.size(), total() + 1);
    EXPECT_EQ(wrong, 0u);
  }
  barrier();
}

TEST(Atomics, BitwiseUpdatesFetchWhatWasThere) {
  const Shared memory(16);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  for (int repeat = 0; repeat < 2; ++repeat) {  // out of line, then inlined
    void* word = memory.at(target);
    uint64_t old = 0;
    EXPECT_EQ(mob_swap8(target, word, 0xF0F0, &old), MOB_OK);
    EXPECT_EQ(mob_fetch_or8(target, word, 0x000F, &old), MOB_OK);
    EXPECT_EQ(old, 0xF0F0u);
    EXPECT_EQ(mob_fetch_and8(target, word, 0x00FF, &old), MOB_OK);
    EXPECT_EQ(old, 0xF0FFu);
    EXPECT_EQ(mob_fetch_xor8(target, word, 0xFF00, &old), MOB_OK);
    EXPECT_EQ(old, 0x00FFu);
    EXPECT_EQ(mob_compare_swap8(target, word, 1, 2, &old), MOB_OK);
    EXPECT_EQ(old, 0xFFFFu);
    EXPECT_EQ(mob_compare_swap8(target, word, 0xFFFF, UINT64_MAX, &old), MOB_OK);
    EXPECT_EQ(old, 0xFFFFu);
    EXPECT_EQ(mob_fetch_add8(target, word, 2, &old), MOB_OK);
    EXPECT_EQ(old, UINT64_MAX);
    uint32_t half = 0;
    void* second = memory.at(target, 12);
    EXPECT_EQ(mob_swap4(target, second, 0xF0, &half), MOB_OK);
    EXPECT_EQ(mob_fetch_or4(target, second, 0x0F, &half), MOB_OK);
    EXPECT_EQ(half, 0xF0u);
    EXPECT_EQ(mob_fetch_and4(target, second, 0x3C, &half), MOB_OK);
    EXPECT_EQ(half, 0xFFu);
    EXPECT_EQ(mob_fetch_xor4(target, second, 0xFF, &half), MOB_OK);
    EXPECT_EQ(half, 0x3Cu);
    EXPECT_EQ(mob_compare_swap4(target, second, 0xC3, UINT32_MAX, &half), MOB_OK);
    EXPECT_EQ(half, 0xC3u);
    EXPECT_EQ(mob_fetch_add4(target, second, 1, &half), MOB_OK);
    EXPECT_EQ(half, UINT32_MAX);
    EXPECT_EQ(mob_get8(target, word, &old), MOB_OK);
    EXPECT_EQ(old, 1u);
  }
  barrier();
}
