// SPDX-License-Identifier: BSD-3-Clause

// Handlers of messages: what flushes wait for, replaced handlers, and their errors. They may run on
// any thread of the process, so all that they change is atomic.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "messages.h"

using mobius_test::barrier;
using mobius_test::flush_all;
using mobius_test::poll_until;
using mobius_test::register_handler;
using mobius_test::send;
using mobius_test::Shared;

namespace {

// Every test has its own identifiers, so that a handler never changes between tests.
enum Id : unsigned {
  kCovered = 100,
  kSlow,
  kFailing,
  kWaiting,
  kAwaited,
  kRefused,
  kReplaced = MOB_MAX_HANDLERS - 1,
};

}  // namespace

TEST(Message, FlushesCoverMessages) {
  static std::atomic<int> handled;
  handled = 0;
  register_handler(kCovered, [](const mob_message_t*, void*, mob_delivery_t*) { ++handled; });
  barrier();
  for (int i = 0; i < 100; ++i) {
    send(mobius_test::right_of(mob_rank()), kCovered);
    EXPECT_EQ(mob_flush(mobius_test::right_of(mob_rank())), MOB_OK) << mob_last_error();
    barrier();
    EXPECT_EQ(handled.load(), i + 1);
    barrier();
  }
}

TEST(Message, FlushesWaitForHandlersAmongPuts) {
  // A slow completion handler has ended when the flush returns, whatever the library sends to the
  // same target before and after. All ranks are on this machine, so they share one clock.
  static std::atomic<int64_t> ended_ns;
  static const auto now_ns = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  };
  register_handler(kSlow, [](const mob_message_t*, void*, mob_delivery_t* delivery) {
    delivery->handler = [](mob_token_t, void*) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ended_ns = now_ns();
    };
  });
  const Shared memory(2 * sizeof(uint64_t));
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  const Shared stamps(sizeof(int64_t));
  const std::vector<unsigned char> payload(200'000, 7);
  for (const size_t bytes : {size_t{0}, payload.size()}) {
    for (int i = 0; i < 12; ++i) {
      barrier();
      const uint64_t value = static_cast<uint64_t>(i) + 1;
      EXPECT_EQ(mob_put8(target, memory.at(target), value), MOB_OK) << mob_last_error();
      if (i % 2 == 0) {
        send(target, kSlow, nullptr, 0, payload.data(), bytes);
      } else {
        EXPECT_EQ(mob_message_send_nbi(target, kSlow, nullptr, 0, payload.data(), bytes, nullptr),
                  MOB_OK)
            << mob_last_error();
      }
      EXPECT_EQ(mob_put_nbi(target, memory.at(target, sizeof value), &value, sizeof value), MOB_OK)
          << mob_last_error();
      const mob_status_t flushed = i % 3 == 0   ? mob_message_flush(target)
                                   : i % 3 == 1 ? mob_flush(target)
                                                : mob_flush_all();
      EXPECT_EQ(flushed, MOB_OK) << mob_last_error();
      const int64_t flushed_ns = now_ns();
      EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
      barrier();
      EXPECT_EQ(std::memcmp(memory.local(), memory.local() + sizeof value, sizeof value), 0);
      const int64_t mine = ended_ns;
      std::memcpy(stamps.local(), &mine, sizeof mine);
      barrier();
      int64_t theirs = 0;
      EXPECT_EQ(mob_get(target, stamps.at(target), &theirs, sizeof theirs), MOB_OK);
      EXPECT_LE(theirs, flushed_ns) << "round " << i << ", " << bytes << " bytes";
    }
  }
  barrier();
}

TEST(Message, HandlersCanBeReplaced) {
  static std::atomic<int> value;
  value = 0;
  const auto set = [](const mob_message_t*, void* argument, mob_delivery_t*) {
    value += *static_cast<int*>(argument);
  };
  static int one = 1;
  static int hundred = 100;
  const mob_rank_t me = mob_rank();
  register_handler(kReplaced, set, &one);
  barrier();
  send(mobius_test::right_of(me), kReplaced);
  flush_all();
  barrier();
  EXPECT_EQ(value.load(), 1);
  register_handler(kReplaced, set, &hundred);
  barrier();
  send(mobius_test::right_of(me), kReplaced);
  flush_all();
  barrier();
  EXPECT_EQ(value.load(), 101);
  barrier();
}

// A handle whose wait was refused in a handler can be waited for later.
TEST(Message, HandlesOutliveAWaitThatAHandlerIsRefused) {
  static std::atomic<bool> refused;
  static std::vector<unsigned char> payload;
  static mob_handle_t handles[2];
  refused = false;
  payload.assign(1 << 20, 7);  // taken only after this handler
  register_handler(kAwaited, [](const mob_message_t*, void*, mob_delivery_t*) {});
  register_handler(kWaiting, [](const mob_message_t*, void*, mob_delivery_t*) {
    for (mob_handle_t& handle : handles) {
      EXPECT_EQ(mob_message_send_nb(mob_rank(), kAwaited, nullptr, 0, payload.data(),
                                    payload.size(), nullptr, &handle),
                MOB_OK);
      const mob_handle_t started = handle;
      EXPECT_NE(started, MOB_HANDLE_DONE);
      EXPECT_EQ(mob_wait(&handle), MOB_ERR_STATE);
      EXPECT_EQ(handle, started);
    }
    const mob_handle_t started[] = {handles[0], handles[1]};
    EXPECT_EQ(mob_wait_all(handles, 2), MOB_ERR_STATE);
    EXPECT_TRUE(std::equal(started, started + 2, handles));
    refused = true;
  });
  send(mob_rank(), kWaiting);
  poll_until([] { return refused.load(); });
  for (mob_handle_t& handle : handles) {
    EXPECT_EQ(mob_wait(&handle), MOB_OK) << mob_last_error();
    EXPECT_EQ(handle, MOB_HANDLE_DONE);
  }
  barrier();
}

// A call that would have to wait in a handler starts nothing: its buffers are not written
// afterwards, and no counter is counted.
TEST(Message, CallsRefusedInHandlersAreNotStarted) {
  constexpr size_t kLong = size_t{1} << 20;
  static std::vector<unsigned char> got;
  static std::atomic<bool> refused;
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "only between hosts";
  const Shared memory(kLong);
  static const Shared* shared;
  static mob_rank_t target;
  static mob_mutexes_t mutexes;
  shared = &memory;
  target = (mob_rank() + mob_size() / 2) % mob_size();
  got.assign(kLong, 7);
  refused = false;
  std::memset(memory.local(), 0, kLong);
  ASSERT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes), MOB_OK) << mob_last_error();
  register_handler(kRefused, [](const mob_message_t*, void*, mob_delivery_t*) {
    void* from = shared->at(target);
    void* to = got.data();
    auto* word = static_cast<uint64_t*>(to);
    auto* signal = reinterpret_cast<uint64_t*>(shared->at(target, 64));
    static const uint64_t one = 1;
    // A put under way, which gets could overtake.
    EXPECT_EQ(mob_put_nbi(target, shared->at(target, 128), &one, sizeof one), MOB_OK);
    for (const size_t bytes : {size_t{8}, size_t{10'000}, kLong}) {
      EXPECT_EQ(mob_get(target, from, to, bytes), MOB_ERR_STATE);
    }
    EXPECT_EQ(mob_get8(target, from, word), MOB_ERR_STATE);
    EXPECT_EQ(mob_get_signal(target, from, to, 8, signal, 1, MOB_SIGNAL_ADD), MOB_ERR_STATE);
    EXPECT_EQ(mob_fetch_add8(target, from, 1, word), MOB_ERR_STATE);
    EXPECT_EQ(mob_compare_swap8(target, from, 0, 1, word), MOB_ERR_STATE);
    EXPECT_EQ(mob_fetch_op(target, from, MOB_UINT64, MOB_SUM, &one, to), MOB_ERR_STATE);
    EXPECT_EQ(mob_fetch_accumulate(target, from, &one, to, 1, MOB_UINT64, MOB_SUM), MOB_ERR_STATE);
    EXPECT_EQ(mob_mutex_lock(mutexes, 0, target, nullptr), MOB_ERR_STATE);
    refused = true;
  });
  barrier();
  send(mob_rank(), kRefused);
  poll_until([] { return refused.load(); });
  EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
  barrier();
  EXPECT_TRUE(mobius_test::all_are(got.data(), kLong, 7));
  EXPECT_TRUE(mobius_test::all_are(memory.local(), 128, 0));
  int acquired = 0;
  EXPECT_EQ(mob_mutex_trylock(mutexes, 0, target, &acquired, nullptr), MOB_OK);
  EXPECT_EQ(acquired, 1);
  EXPECT_EQ(mob_mutex_unlock(mutexes, 0, target), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
}

// Errors in a handler that runs in a waiting or polling call are not errors of that call.
TEST(Message, ErrorsInHandlersLeaveThoseOfTheProgram) {
  static std::atomic<int> failed;
  failed = 0;
  register_handler(kFailing, [](const mob_message_t*, void*, mob_delivery_t*) {
    EXPECT_EQ(mob_put1(-7, &failed, 1), MOB_ERR_RANK);
    EXPECT_NE(std::string(mob_last_error()).find("-7"), std::string::npos) << mob_last_error();
    ++failed;
  });
  barrier();
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(mob_put1(-5, &failed, 1), MOB_ERR_RANK);
    const std::string before = mob_last_error();
    send((mob_rank() + 1) % mob_size(), kFailing);
    poll_until([&] { return failed == i; });
    EXPECT_EQ(mob_last_error(), before);
    barrier();
  }
}
