// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Put and LAPI_Get: the data, and each of the counters, anywhere in the target's memory.

#include <mobius/memory.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

#include "fixture.h"

namespace lapi_test {
namespace {

struct Target {
  lapi_cntr_t counter;
  std::array<int, 1000> data;
};

Target in_static_memory;

std::vector<int> numbers(int first) {
  std::vector<int> result(1000);
  std::iota(result.begin(), result.end(), first);
  return result;
}

// Puts to the right neighbour, which waits for its counter, and gets the data back.
void exchange(Target& mine) {
  ok(LAPI_Setcntr(handle, &mine.counter, 0));
  mine.data.fill(-1);
  const auto all = addresses_of(&mine);
  Target* theirs = all[right()];
  Counter origin;
  Counter completion;
  std::vector<int> data = numbers(static_cast<int>(1000 * me));
  for (const size_t count : {0, 1, 2, 7, 1000}) {
    ok(LAPI_Put(handle, right(), count * sizeof(int), theirs->data.data(), data.data(),
                &theirs->counter, origin.get(), completion.get()));
    EXPECT_EQ(origin.wait(1), 0);
    EXPECT_EQ(completion.wait(1), 0);
    int left_over = -1;
    ok(LAPI_Waitcntr(handle, &mine.counter, 1, &left_over));
    EXPECT_EQ(left_over, 0);
    const std::vector<int> expected = numbers(static_cast<int>(1000 * left()));
    EXPECT_EQ(std::memcmp(mine.data.data(), expected.data(), count * sizeof(int)), 0) << count;
    gfence();
  }
  std::vector<int> back(1000);
  ok(LAPI_Get(handle, right(), 1000 * sizeof(int), theirs->data.data(), back.data(),
              &theirs->counter, origin.get()));
  origin.wait(1);
  EXPECT_EQ(back, data);
  ok(LAPI_Waitcntr(handle, &mine.counter, 1, nullptr));
  gfence();
}

TEST(PutGet, StaticMemory) { exchange(in_static_memory); }

TEST(PutGet, StackMemory) {
  Target target;
  exchange(target);
}

TEST(PutGet, HeapMemory) { exchange(*std::make_unique<Target>()); }

// Whether a local peer's memory is accessed without the kernel.
bool is_direct(void* remote) {
  void* here = nullptr;
  return mob_ptr(static_cast<mob_rank_t>(right()), remote, &here) == MOB_OK;
}

TEST(PutGet, StaticMemoryAndTheHeapAreShared) {
  const char* statics = std::getenv("LAPI_STATIC_MEMORY");
  const std::vector<Target> small(1);
  const std::vector<Target> large(1000);  // so large that malloc() would normally map it
  const Target on_stack{};
  EXPECT_EQ(is_direct(addresses_of(&in_static_memory)[right()]),
            !is_far(right()) && statics == nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const bool direct = !is_far(right()) && std::getenv("LAPI_HEAP_MEMORY") == nullptr;
  EXPECT_EQ(is_direct(const_cast<Target*>(addresses_of(small.data())[right()])), direct);
  EXPECT_EQ(is_direct(const_cast<Target*>(addresses_of(&large.back())[right()])), direct);
#endif
  EXPECT_FALSE(is_direct(const_cast<Target*>(addresses_of(&on_stack)[right()])));
  gfence();
}

TEST(PutGet, CountersMayBeMissing) {
  static int value;
  value = -1;
  const auto all = addresses_of(&value);
  int data = static_cast<int>(me);
  ok(LAPI_Put(handle, right(), sizeof data, all[right()], &data, nullptr, nullptr, nullptr));
  gfence();
  EXPECT_EQ(value, static_cast<int>(left()));
  int back = -1;
  ok(LAPI_Get(handle, right(), sizeof back, all[right()], &back, nullptr, nullptr));
  ok(LAPI_Fence(handle));
  EXPECT_EQ(back, static_cast<int>(me));
  gfence();
}

TEST(PutGet, ManyPutsShareTheirCounters) {
  static std::array<lapi_cntr_t, 1> counter;
  static std::array<long, 256> data;
  ok(LAPI_Setcntr(handle, counter.data(), 0));
  data.fill(0);
  const auto counters = addresses_of(counter.data());
  const auto places = addresses_of(data.data());
  Counter origin;
  Counter completion;
  std::vector<long> values(data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    values[i] = static_cast<long>(1000 * me + i);
    ok(LAPI_Put(handle, right(), sizeof(long), places[right()] + i, &values[i], counters[right()],
                origin.get(), completion.get()));
  }
  origin.wait(100);
  EXPECT_EQ(origin.wait(156), 0);
  EXPECT_EQ(completion.wait(256), 0);
  ok(LAPI_Waitcntr(handle, counter.data(), 256, nullptr));
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data[i], static_cast<long>(1000 * left() + i));
  }
  gfence();
}

TEST(PutGet, LargeTransfers) {
  const size_t count = 1 << 20;
  std::vector<int> mine(count, -1);
  const auto all = addresses_of(mine.data());
  std::vector<int> data(count);
  std::iota(data.begin(), data.end(), static_cast<int>(me));
  Counter completion;
  ok(LAPI_Put(handle, right(), count * sizeof(int), all[right()], data.data(), nullptr, nullptr,
              completion.get()));
  completion.wait(1);
  gfence();
  EXPECT_EQ(mine[0], static_cast<int>(left()));
  EXPECT_EQ(mine[count - 1], static_cast<int>(left() + count - 1));
  std::vector<int> back(count);
  Counter origin;
  ok(LAPI_Get(handle, right(), count * sizeof(int), all[right()], back.data(), nullptr,
              origin.get()));
  origin.wait(1);
  EXPECT_EQ(back, data);
  gfence();
}

TEST(PutGet, OneCounterForAllThree) {
  static lapi_cntr_t counter;
  ok(LAPI_Setcntr(handle, &counter, 0));
  const auto counters = addresses_of(&counter);
  static int word;
  const auto words = addresses_of(&word);
  int data = 7;
  // To the task itself: all three arguments are the same counter there.
  ok(LAPI_Put(handle, me, sizeof data, words[me], &data, counters[me], &counter, &counter));
  ok(LAPI_Waitcntr(handle, &counter, 3, nullptr));
  EXPECT_EQ(word, 7);
  gfence();
}

TEST(PutGet, FromManyThreads) {
  static lapi_cntr_t counter;
  static std::array<std::array<int, 100>, 4> data;
  ok(LAPI_Setcntr(handle, &counter, 0));
  const auto counters = addresses_of(&counter);
  const auto places = addresses_of(&data);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Counter completion;
      for (int i = 0; i < 100; ++i) {
        int value = 1000 * t + i;
        int* place = &(*places[right()])[static_cast<size_t>(t)][static_cast<size_t>(i)];
        ok(LAPI_Put(handle, right(), sizeof value, place, &value, counters[right()], nullptr,
                    completion.get()));
        completion.wait(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ok(LAPI_Waitcntr(handle, &counter, 400, nullptr));
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(data[static_cast<size_t>(t)][static_cast<size_t>(i)], 1000 * t + i);
    }
  }
  gfence();
}

}  // namespace
}  // namespace lapi_test
