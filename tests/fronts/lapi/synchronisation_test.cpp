// SPDX-License-Identifier: BSD-3-Clause

// Fences, addresses, polling, and purged tasks.

#include <thread>

#include "fixture.h"

namespace lapi_test {
namespace {

TEST(Fences, APutBeforeTheFenceIsThereBeforeOneAfterIt) {
  static long data[64];
  static lapi_cntr_t counter;
  ok(LAPI_Setcntr(handle, &counter, 0));
  const auto places = addresses_of(data);
  const auto counters = addresses_of(&counter);
  for (long round = 1; round <= 50; ++round) {
    std::vector<long> values(64, round);
    ok(LAPI_Put(handle, right(), sizeof data, places[right()], values.data(), nullptr, nullptr,
                nullptr));
    ok(LAPI_Fence(handle));
    ok(LAPI_Put(handle, right(), 0, nullptr, nullptr, counters[right()], nullptr, nullptr));
    ok(LAPI_Waitcntr(handle, &counter, 1, nullptr));
    EXPECT_EQ(data[0], round);
    EXPECT_EQ(data[63], round);
    gfence();
  }
}

TEST(Addresses, AreExchanged) {
  int mine = 0;
  std::vector<void*> all(tasks);
  ok(LAPI_Address_init(handle, &mine, all.data()));
  EXPECT_EQ(all[me], &mine);
  std::vector<lapi_long_t> all64(tasks);
  ok(LAPI_Address_init64(handle, 0x123456789abcull + me, all64.data()));
  for (unsigned task = 0; task < tasks; ++task) EXPECT_EQ(all64[task], 0x123456789abcull + task);
  ok(LAPI_Address_init(handle, nullptr, all.data()));
  EXPECT_EQ(all[right()], nullptr);
  unsigned long address = 0;
  ok(LAPI_Address(&mine, &address));
  EXPECT_EQ(address, reinterpret_cast<unsigned long>(&mine));
}

// A task that has not called LAPI_Address_init() yet can be a target since LAPI_Init().
TEST(Addresses, TargetsNeedNotHavePublished) {
  static int word;  // the same program, so at the same address, apart from randomisation
  word = -1;
  gfence();
  const auto all = addresses_of(&word);
  if (me == 0) {
    int data = 3;
    Counter completion;
    for (unsigned task = 0; task < tasks; ++task) {
      ok(LAPI_Put(handle, task, sizeof data, all[task], &data, nullptr, nullptr, completion.get()));
    }
    completion.wait(static_cast<int>(tasks));
  }
  const auto again = addresses_of(&word);
  EXPECT_EQ(again, all);
  EXPECT_EQ(word, 3);
  gfence();
}

void* take(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h, void**) {
  *comp_h = nullptr;
  return nullptr;
}

TEST(Polling, MsgpollReportsArrivals) {
  ok(LAPI_Senv(handle, INTERRUPT_SET, 0));
  ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(take), 60));
  gfence();
  lapi_msg_info_t info = {};
  ok(LAPI_Msgpoll(handle, 10, &info));
  EXPECT_EQ(info.status, LAPI_DISP_CNTR);
  gfence();
  // To itself: only the calls below make progress.
  Counter completion;
  ok(LAPI_Amsend(handle, me, reinterpret_cast<void*>(60), nullptr, 0, nullptr, 0, nullptr, nullptr,
                 completion.get()));
  int seen = 0;
  while ((seen & LAPI_SEND_COMPLETE) == 0 || (seen & LAPI_RECV_COMPLETE) == 0) {
    ok(LAPI_Msgpoll(handle, 1000, &info));
    seen |= info.status;
  }
  completion.wait(1);
  ok(LAPI_Senv(handle, INTERRUPT_SET, 1));
  gfence();
}

TEST(Recovery, NothingGoesToAPurgedTask) {
  static int word;
  static lapi_cntr_t counter;
  word = 1;
  const auto all = addresses_of(&word);
  unsigned list[] = {right()};
  int status[] = {-1};
  ok(LAPI_Setcntr_wstatus(handle, &counter, 1, list, status));
  ok(LAPI_Purge_totask(handle, right()));
  EXPECT_EQ(status[0], LAPI_MSG_PURGED);
  int data = 2;
  refused(LAPI_Put(handle, right(), sizeof data, all[right()], &data, nullptr, nullptr, nullptr),
          LAPI_ERR_TGT_PURGED, "LAPI_Put");
  refused(LAPI_Amsend(handle, right(), reinterpret_cast<void*>(60), nullptr, 0, nullptr, 0, nullptr,
                      nullptr, nullptr),
          LAPI_ERR_TGT_PURGED, "LAPI_Amsend");
  refused(LAPI_Rmw(handle, SWAP, right(), all[right()], &data, nullptr, nullptr),
          LAPI_ERR_TGT_PURGED, "LAPI_Rmw");
  ok(LAPI_Setcntr_wstatus(handle, &counter, 1, list, status));
  EXPECT_EQ(status[0], LAPI_MSG_INVALID);
  ok(LAPI_Resume_totask(handle, right()));
  ok(LAPI_Put(handle, right(), sizeof data, all[right()], &data, nullptr, nullptr, nullptr));
  gfence();
  EXPECT_EQ(word, 2);
  ok(LAPI_Setcntr_wstatus(handle, &counter, 0, nullptr, nullptr));
  gfence();
}

TEST(Recovery, APurgeEndsWaitsThatDoNotPoll) {
  Counter counter;
  std::atomic<bool> ended = false;
  std::thread waiter([&] {
    EXPECT_EQ(LAPI_Nopoll_wait(handle, counter.get(), 1, nullptr), LAPI_ERR_TGT_PURGED);
    ended = true;
  });
  while (!ended) {
    ok(LAPI_Purge_totask(handle, right()));
    sched_yield();
  }
  waiter.join();
  ok(LAPI_Resume_totask(handle, right()));
  gfence();
}

// One task exchanges addresses in a thread while the other ones are in a fence.
TEST(Addresses, MayBeExchangedBesideAFence) {
  std::vector<void*> all(tasks);
  const auto exchange = [&] {
    ok(LAPI_Address_init(handle, reinterpret_cast<void*>(uintptr_t{me} + 1), all.data()));
  };
  std::thread thread;
  if (me == 0) thread = std::thread(exchange);
  gfence();
  if (me == 0) {
    thread.join();
  } else {
    exchange();
  }
  for (unsigned i = 0; i < tasks; ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(all[i]), i + 1);
  gfence();
}

}  // namespace
}  // namespace lapi_test
