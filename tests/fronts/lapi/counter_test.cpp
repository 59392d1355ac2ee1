// SPDX-License-Identifier: BSD-3-Clause

// Values of counters, and waits for them.

#include <thread>

#include "fixture.h"

namespace lapi_test {
namespace {

TEST(Counters, SetAndGet) {
  Counter counter(5);
  EXPECT_EQ(counter.value(), 5);
  ok(LAPI_Setcntr(handle, counter.get(), -3));
  EXPECT_EQ(counter.value(), -3);
}

TEST(Counters, WaitingSubtracts) {
  Counter counter(10);
  EXPECT_EQ(counter.wait(4), 6);
  EXPECT_EQ(counter.wait(6), 0);
  EXPECT_EQ(counter.wait(0), 0);
  EXPECT_EQ(counter.value(), 0);
  ok(LAPI_Setcntr(handle, counter.get(), 2));
  ok(LAPI_Waitcntr(handle, counter.get(), 1, nullptr));
  EXPECT_EQ(counter.value(), 1);
}

TEST(Counters, ThreadsWaitUntilAnotherSets) {
  Counter counter;
  std::thread waiter([&] { EXPECT_EQ(counter.wait(3), 4); });
  ok(LAPI_Setcntr(handle, counter.get(), 7));
  waiter.join();
}

// Waits continue as far as the counter suffices for each; together they subtract everything
// counted.
TEST(Counters, ManyThreadsShareOne) {
  static lapi_cntr_t counter;
  ok(LAPI_Setcntr(handle, &counter, 0));
  const auto counters = addresses_of(&counter);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) ok(LAPI_Waitcntr(handle, &counter, 2, nullptr));
    });
  }
  for (int i = 0; i < 400; ++i) {
    ok(LAPI_Put(handle, right(), 0, nullptr, nullptr, counters[right()], nullptr, nullptr));
  }
  for (auto& thread : threads) thread.join();
  int value = -1;
  ok(LAPI_Getcntr(handle, &counter, &value));
  EXPECT_EQ(value, 0);
  gfence();
}

// Set again while transfers count it: no later count is lost.
TEST(Counters, ReusedWhileInFlight) {
  static lapi_cntr_t counter;
  ok(LAPI_Setcntr(handle, &counter, 0));
  const auto counters = addresses_of(&counter);
  const auto signal = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ok(LAPI_Put(handle, right(), 0, nullptr, nullptr, counters[right()], nullptr, nullptr));
    }
  };
  signal(50);
  ok(LAPI_Setcntr(handle, &counter, 1));  // may come before, between and after them
  gfence();
  int value = -1;
  ok(LAPI_Getcntr(handle, &counter, &value));
  EXPECT_GE(value, 1);
  EXPECT_LE(value, 51);
  gfence();
  ok(LAPI_Setcntr(handle, &counter, 0));
  gfence();
  signal(50);
  ok(LAPI_Waitcntr(handle, &counter, 50, &value));
  EXPECT_EQ(value, 0);
  gfence();
}

TEST(Counters, NopollWaitIsServedAndSubtracts) {
  static lapi_cntr_t counter;
  ok(LAPI_Setcntr(handle, &counter, 0));
  const auto counters = addresses_of(&counter);
  for (int i = 0; i < 3; ++i) {
    ok(LAPI_Put(handle, right(), 0, nullptr, nullptr, counters[right()], nullptr, nullptr));
  }
  int left_over = -1;
  ok(LAPI_Nopoll_wait(handle, &counter, 2, &left_over));
  ok(LAPI_Nopoll_wait(handle, &counter, 1, nullptr));
  int value = -1;
  ok(LAPI_Getcntr(handle, &counter, &value));
  EXPECT_EQ(value, 0);
  gfence();
}

TEST(Counters, StatusNamesTasksThatAnswered) {
  static lapi_cntr_t counter;
  std::vector<unsigned> list;
  for (unsigned task = 0; task < tasks; ++task) list.push_back(task);
  std::vector<int> status(tasks, -1);
  ok(LAPI_Setcntr_wstatus(handle, &counter, static_cast<int>(tasks), list.data(), status.data()));
  for (const int each : status) EXPECT_EQ(each, LAPI_MSG_INITIAL);
  ok(LAPI_Addr_set(handle,
                   reinterpret_cast<void*>(+[](lapi_handle_t*, void*, unsigned*, unsigned long*,
                                               compl_hndlr_t** comp, void**) -> void* {
                     *comp = nullptr;
                     return nullptr;
                   }),
                   900));
  gfence();
  // Every task answers.
  for (unsigned task = 0; task < tasks; ++task) {
    ok(LAPI_Amsend(handle, task, reinterpret_cast<void*>(900), nullptr, 0, nullptr, 0, nullptr,
                   nullptr, &counter));
  }
  ok(LAPI_Nopoll_wait(handle, &counter, static_cast<int>(tasks), nullptr));
  for (const int each : status) EXPECT_EQ(each, LAPI_MSG_RECVD);
  gfence();
  ok(LAPI_Setcntr_wstatus(handle, &counter, 0, nullptr, nullptr));
}

TEST(Counters, OnlyOneThreadMayWaitWithStatus) {
  static lapi_cntr_t counter;
  unsigned list[] = {me};
  int status[] = {-1};
  ok(LAPI_Setcntr_wstatus(handle, &counter, 1, list, status));
  std::vector<int> codes(2, -1);
  std::vector<std::thread> threads;
  std::atomic<int> refused_waits = 0;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      codes[t] = LAPI_Nopoll_wait(handle, &counter, 1, nullptr);
      if (codes[t] == LAPI_ERR_MULTIPLE_WAITERS) ++refused_waits;
    });
  }
  while (refused_waits == 0) sched_yield();
  const auto counters = std::vector<lapi_cntr_t*>{&counter};
  ok(LAPI_Put(handle, me, 0, nullptr, nullptr, counters[0], nullptr, nullptr));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(codes[0] + codes[1], LAPI_SUCCESS + LAPI_ERR_MULTIPLE_WAITERS);
  ok(LAPI_Setcntr_wstatus(handle, &counter, 0, nullptr, nullptr));
  gfence();
}

}  // namespace
}  // namespace lapi_test
