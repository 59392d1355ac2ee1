// SPDX-License-Identifier: BSD-3-Clause

// Active messages. Handlers may run on any thread of the process, so all that they change is
// atomic.

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "fixture.h"
#include "leaks.h"
#include "messages.h"

using mobius_test::barrier;
using mobius_test::flush_all;
using mobius_test::poll_until;
using mobius_test::register_handler;
using mobius_test::send;
using mobius_test::Shared;

namespace {

// Every test has its own identifiers, so that a handler never changes between tests; those of
// handler_test.cpp begin at 100.
enum Id : unsigned {
  kStore,
  kStarted,
  kStoreReplying,
  kStoreReply,
  kOrdered,
  kFlood,
  kFloodReply,
  kForbidden,
  kCount,
  kDiscard,
  kCounted,
  kWhere,
  kWhole,
  kWholeReply,
  kNever = MOB_MAX_HANDLERS - 2,
};

bool has_progress_thread() {
  const char* mode = std::getenv("MOBIUS_PROGRESS");
  return mode == nullptr || std::string_view(mode) != "poll";
}

// Stores payloads in memory of its own and checks them when they have arrived.
std::atomic<uint64_t> stored{0};
std::atomic<uint64_t> wrong{0};

struct Label {
  uint64_t bytes;
  int32_t source;
  int32_t round;
};

struct Storage {
  Label label;
  std::vector<unsigned char> bytes;
};

void check_stored(mob_token_t /*token*/, void* argument) {
  const std::unique_ptr<Storage> storage(static_cast<Storage*>(argument));
  const Label& label = storage->label;
  const auto expected = mobius_test::patterned(label.bytes, label.source, label.round);
  if (!mobius_test::holds(storage->bytes.data(), expected, label.bytes)) ++wrong;
  ++stored;
}

void store(const mob_message_t* message, void* /*argument*/, mob_delivery_t* delivery) {
  auto storage = std::make_unique<Storage>();
  if (message->header_bytes != sizeof(Label)) ++wrong;
  std::memcpy(&storage->label, message->header, sizeof(Label));
  if (storage->label.bytes != message->payload_bytes) ++wrong;
  if (storage->label.source != mobius_test::member_of(message->source)) ++wrong;
  if (reinterpret_cast<uintptr_t>(message->header) % 16 != 0) ++wrong;
  storage->bytes.resize(message->payload_bytes);
  delivery->payload = storage->bytes.data();
  delivery->handler = check_stored;
  delivery->argument = storage.release();
}

void start_storing() {
  register_handler(kStore, store);
  stored = 0;
  wrong = 0;
  barrier();
}

// Call it when all ranks have flushed their messages.
void expect_stored(uint64_t count) {
  barrier();
  EXPECT_EQ(stored.load(), count);
  EXPECT_EQ(wrong.load(), 0u);
  barrier();
}

constexpr auto kSizes =
    std::to_array<size_t>({0, 1, 8, 16, 17, 32, 33, 4096, 8100, 8176, 8177, 16383, 16384, 16385,
                           65536, 100000, 1 << 20, (4 << 20) + 3});

}  // namespace

TEST(Message, PayloadsOfAllSizesBetweenAllPairs) {
  start_storing();
  const mob_rank_t me = mob_rank();
  int round = 0;
  for (const size_t bytes : kSizes) {
    const std::vector<unsigned char> payload = mobius_test::patterned(bytes, me, round);
    const Label label{bytes, me, round};
    for (mob_rank_t target = 0; target < mob_size(); ++target) {
      send(target, kStore, &label, sizeof label, payload.data(), bytes);
    }
    ++round;
  }
  flush_all();
  expect_stored(kSizes.size() * static_cast<size_t>(mob_size()));
}

TEST(Message, PayloadsInSharedMemory) {
  const size_t largest = kSizes.back();
  const Shared memory(largest);
  start_storing();
  const mob_rank_t me = mob_rank();
  int round = 0;
  for (const size_t bytes : kSizes) {
    const auto payload = mobius_test::patterned(bytes, me, round);
    if (bytes != 0) std::memcpy(memory.local(), payload.data(), bytes);
    const Label label{bytes, me, round};
    send(mobius_test::right_of(me), kStore, &label, sizeof label, memory.local(), bytes);
    // The payload may be reused.
    std::memset(memory.local(), 0xee, largest);
    ++round;
  }
  flush_all();
  expect_stored(kSizes.size());
}

// So much of a ring's capacity that the pair changes to a wider ring, in the middle of it.
TEST(Message, ManyOfMiddleSize) {
  start_storing();
  constexpr int kMessages = 250;
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = mobius_test::right_of(me);
  for (int round = 0; round < kMessages; ++round) {
    const size_t bytes = 9000 + static_cast<size_t>(round) % 7 * 1111;
    const auto payload = mobius_test::patterned(bytes, me, round);
    const Label label{bytes, me, round};
    send(right, kStore, &label, sizeof label, payload.data(), bytes);
  }
  flush_all();
  expect_stored(kMessages);
}

// More senders than a process has large rings: the others have smaller ones.
TEST(Message, MuchFromEverybodyToOne) {
  start_storing();
  const size_t shared = mobius_test::shared_bytes();
  constexpr int kMessages = 100;
  const mob_rank_t me = mob_rank();
  for (int round = 0; round < kMessages; ++round) {
    const size_t bytes = 30'000 + static_cast<size_t>(round) % 7 * 3333;
    const auto payload = mobius_test::patterned(bytes, me, round);
    const Label label{bytes, me, round};
    send(0, kStore, &label, sizeof label, payload.data(), bytes);
  }
  flush_all();
  expect_stored(me == 0 ? uint64_t{kMessages} * static_cast<uint64_t>(mob_size()) : 0);
  // Each also has a narrow ring (src/engine/segment/ring_size.h).
  constexpr size_t kKiB = 1024;
  constexpr size_t kOfLarge = 4 * 1028 * kKiB;
  const size_t of_each = (260 + 68) * kKiB;
  EXPECT_LE(mobius_test::shared_bytes(),
            shared + kOfLarge + static_cast<size_t>(mob_size()) * of_each);
}

// In a ring that is wide by then: the payload just fits in one record, or just does not, or fits in
// two.
TEST(Message, PayloadsAboutAsLongAsRecords) {
  start_storing();
  std::vector<size_t> sizes(60, 16'000);
  for (size_t bytes = 16'300; bytes <= 16'390; ++bytes) sizes.push_back(bytes);
  for (size_t bytes = 32'680; bytes <= 32'740; ++bytes) sizes.push_back(bytes);
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = mobius_test::right_of(me);
  int round = 0;
  for (const size_t bytes : sizes) {
    const auto payload = mobius_test::patterned(bytes, me, round);
    const Label label{bytes, me, round};
    send(right, kStore, &label, sizeof label, payload.data(), bytes);
    ++round;
  }
  flush_all();
  expect_stored(sizes.size());
}

// Started with handles, started without, and sent: in one order, and reusable as documented.
TEST(Message, StartedOnesOfAllSizes) {
  start_storing();
  const mob_rank_t me = mob_rank();
  uint64_t sent = 0;
  int round = 0;
  std::vector<std::vector<unsigned char>> payloads;
  std::vector<mob_handle_t> handles;
  // The caller and the ranks after it.
  const mob_rank_t targets = std::min<mob_rank_t>(mob_size(), 4);
  for (const size_t bytes : kSizes) {
    for (mob_rank_t i = 0; i < targets; ++i) {
      const mob_rank_t target = (me + i) % mob_size();
      Label label{bytes, me, round};
      payloads.push_back(mobius_test::patterned(bytes, me, round++));
      handles.push_back(MOB_HANDLE_DONE);
      EXPECT_EQ(mob_message_send_nb(target, kStore, &label, sizeof label, payloads.back().data(),
                                    bytes, nullptr, &handles.back()),
                MOB_OK)
          << mob_last_error();
      label.round = round;
      payloads.push_back(mobius_test::patterned(bytes, me, round++));
      EXPECT_EQ(mob_message_send_nbi(target, kStore, &label, sizeof label, payloads.back().data(),
                                     bytes, nullptr),
                MOB_OK)
          << mob_last_error();
      label = {8, me, round};
      const auto small = mobius_test::patterned(8, me, round++);
      send(target, kStore, &label, sizeof label, small.data(), small.size());
      label = {};  // the headers may be reused at once
      sent += 3;
    }
  }
  EXPECT_EQ(mob_wait_all(handles.data(), handles.size()), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_flush_local(mobius_test::right_of(me)), MOB_OK) << mob_last_error();
  for (auto& payload : payloads) std::fill(payload.begin(), payload.end(), 0xee);
  flush_all();
  expect_stored(sent);
}

TEST(Message, StartedOnesKeepTheirOrder) {
  static std::atomic<uint64_t> next[64];
  static std::atomic<uint64_t> disorder;
  for (auto& each : next) each = 0;
  disorder = 0;
  register_handler(kStarted, [](const mob_message_t* message, void*, mob_delivery_t*) {
    uint64_t number = 0;
    std::memcpy(&number, message->header, sizeof number);
    if (next[mobius_test::member_of(message->source) % 64].fetch_add(1) != number) ++disorder;
  });
  barrier();
  constexpr uint64_t kMessages = 300;
  const std::vector<unsigned char> payload(300'000);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  constexpr auto kBytes = std::to_array<size_t>({0, 100, 8000, 20'000, 140'000, 300'000});
  for (uint64_t i = 0; i < kMessages; ++i) {
    const size_t bytes = kBytes[i * 7 % kBytes.size()];
    if (i % 3 == 0) {
      send(target, kStarted, &i, sizeof i, payload.data(), bytes);
    } else {
      EXPECT_EQ(
          mob_message_send_nbi(target, kStarted, &i, sizeof i, payload.data(), bytes, nullptr),
          MOB_OK)
          << mob_last_error();
    }
  }
  EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
  barrier();
  EXPECT_EQ(disorder.load(), 0u);
  EXPECT_EQ(next[mobius_test::left_of(mob_rank()) % 64].load(), kMessages);
  barrier();
}

// Without a call that waits: the progress thread, or polling, continues started messages.
TEST(Message, StartedOnesAreTestedAndCounted) {
  static std::atomic<uint64_t> arrived;
  arrived = 0;
  mob_counter_t origin = nullptr;
  EXPECT_EQ(mob_counter_create(&origin), MOB_OK);
  register_handler(kStarted, [](const mob_message_t*, void*, mob_delivery_t* delivery) {
    delivery->handler = [](mob_token_t, void*) { ++arrived; };
  });
  barrier();
  const mob_notify_t notify = {origin, nullptr, nullptr};
  const std::vector<unsigned char> payload(500'000, 1);
  constexpr size_t kMessages = 10;
  std::array<mob_handle_t, kMessages> handles{};
  for (mob_handle_t& handle : handles) {
    EXPECT_EQ(mob_message_send_nb(mobius_test::right_of(mob_rank()), kStarted, nullptr, 0,
                                  payload.data(), payload.size(), &notify, &handle),
              MOB_OK);
  }
  for (mob_handle_t& handle : handles) {
    int done = 0;
    while (done == 0) {
      if (mob_test(&handle, &done) != MOB_OK) {
        ADD_FAILURE() << mob_last_error();
        break;
      }
      sched_yield();
    }
  }
  uint64_t left = 1;
  EXPECT_EQ(mob_counter_wait(origin, kMessages, &left), MOB_OK);
  EXPECT_EQ(left, 0u);
  poll_until([] { return arrived.load() == kMessages; });
  EXPECT_EQ(mob_counter_free(origin), MOB_OK);
  barrier();
}

// Handlers reply while their process is in the middle of sending a large payload to the same rank.
TEST(Message, LargeOnesStayWholeWhileHandlersReply) {
  static std::atomic<uint64_t> answered;
  answered = 0;
  stored = 0;
  wrong = 0;
  register_handler(kStoreReply, [](const mob_message_t*, void*, mob_delivery_t*) { ++answered; });
  register_handler(
      kStoreReplying, [](const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
        store(message, argument, delivery);
        for (int i = 0; i < 3; ++i) {
          if (mob_message_reply(message->token, kStoreReply, nullptr, 0, nullptr, 0, nullptr) !=
              MOB_OK) {
            ++wrong;
          }
        }
      });
  barrier();
  constexpr int kRounds = 40;
  const mob_rank_t me = mob_rank();
  for (int round = 0; round < kRounds; ++round) {
    const size_t bytes = 70'000 + static_cast<size_t>(round) * 1000;
    const auto payload = mobius_test::patterned(bytes, me, round);
    const Label label{bytes, me, round};
    for (mob_rank_t target = 0; target < mob_size(); ++target) {
      send(target, kStoreReplying, &label, sizeof label, payload.data(), bytes);
    }
  }
  const uint64_t expected = static_cast<uint64_t>(mob_size()) * kRounds;
  poll_until([&] { return stored.load() >= expected && answered.load() >= 3 * expected; });
  EXPECT_EQ(answered.load(), 3 * expected);
  EXPECT_EQ(stored.load(), expected);
  EXPECT_EQ(wrong.load(), 0u);
  barrier();
}

TEST(Message, HandlersStartLargeOnes) {
  static const std::vector<unsigned char> large(400'000, 7);
  static std::atomic<uint64_t> answers;
  static std::atomic<uint64_t> bad;
  answers = bad = 0;
  register_handler(kStoreReplying, [](const mob_message_t* message, void*, mob_delivery_t*) {
    if (mob_message_send_nbi(mobius_test::member_of(message->source), kStoreReply, nullptr, 0,
                             large.data(), large.size(), nullptr) != MOB_OK) {
      ++bad;
    }
  });
  register_handler(kStoreReply, [](const mob_message_t* message, void*, mob_delivery_t* delivery) {
    auto memory = std::make_unique<std::vector<unsigned char>>(message->payload_bytes);
    delivery->payload = memory->data();
    delivery->argument = memory.release();
    delivery->handler = [](mob_token_t, void* argument) {
      const std::unique_ptr<std::vector<unsigned char>> taken(
          static_cast<std::vector<unsigned char>*>(argument));
      if (*taken != large) ++bad;
      ++answers;
    };
  });
  barrier();
  for (int i = 0; i < 20; ++i) {
    for (mob_rank_t target = 0; target < mob_size(); ++target) send(target, kStoreReplying);
  }
  const uint64_t expected = 20 * static_cast<uint64_t>(mob_size());
  poll_until([&] { return answers.load() >= expected; });
  EXPECT_EQ(answers.load(), expected);
  EXPECT_EQ(bad.load(), 0u);
  EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
  barrier();
}

// Headers of every size, with and without a payload.
TEST(Message, HeadersOfAllSizes) {
  static std::atomic<uint64_t> good;
  good = 0;
  register_handler(kDiscard, [](const mob_message_t* message, void*, mob_delivery_t*) {
    const auto expected =
        mobius_test::patterned(message->header_bytes, mobius_test::member_of(message->source), 5);
    bool same = mobius_test::holds(static_cast<const unsigned char*>(message->header), expected,
                                   expected.size());
    if (message->payload_bytes != 0) {
      same = same && message->payload != nullptr &&
             reinterpret_cast<uintptr_t>(message->payload) % 16 == 0 &&
             *static_cast<const unsigned char*>(message->payload) == 77;
    }
    if (same) ++good;
  });
  barrier();
  const auto header = mobius_test::patterned(MOB_MAX_HEADER_BYTES, mob_rank(), 5);
  const unsigned char byte = 77;
  uint64_t sent = 0;
  for (size_t bytes = 0; bytes <= MOB_MAX_HEADER_BYTES; bytes += bytes < 40 ? 1 : 41) {
    send(mobius_test::right_of(mob_rank()), kDiscard, header.data(), bytes);
    send(mobius_test::right_of(mob_rank()), kDiscard, header.data(), bytes, &byte, 1);
    sent += 2;
  }
  flush_all();
  barrier();
  EXPECT_EQ(good.load(), sent);
  barrier();
}

namespace {

constexpr size_t kSenders = 3;  // threads
std::atomic<uint64_t> last_number[64][kSenders];
std::atomic<uint64_t> out_of_order{0};
std::atomic<uint64_t> in_handlers{0};

}  // namespace

TEST(Message, OneThreadsMessagesStartInOrderAndHandlersOneAtATime) {
  struct Number {
    uint64_t thread;
    uint64_t value;
  };
  for (auto& numbers : last_number) {
    for (auto& number : numbers) number = 0;
  }
  out_of_order = 0;
  register_handler(kOrdered, [](const mob_message_t* message, void*, mob_delivery_t*) {
    if (in_handlers.fetch_add(1) != 0) ++out_of_order;
    Number number;
    std::memcpy(&number, message->header, sizeof number);
    auto& last = last_number[mobius_test::member_of(message->source) % 64][number.thread];
    if (last.load() + 1 != number.value) ++out_of_order;
    last = number.value;
    --in_handlers;
  });
  barrier();
  constexpr uint64_t kMessages = 500;
  const std::vector<unsigned char> payload(20000);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kSenders; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= kMessages; ++i) {
        const Number number{t, i};
        for (mob_rank_t target = 0; target < mob_size(); ++target) {
          // Also many without payload, which take another path.
          const size_t bytes = i % 50 == 0 ? payload.size() : i % 3 == 0 ? i % 100 : 0;
          send(target, kOrdered, &number, sizeof number, payload.data(), bytes);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  flush_all();
  barrier();
  EXPECT_EQ(out_of_order.load(), 0u);
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    for (auto& number : last_number[rank]) EXPECT_EQ(number.load(), kMessages);
  }
  barrier();
}

namespace {

std::atomic<uint64_t> replies{0};
std::atomic<uint64_t> refused{0};

}  // namespace

// All ranks send to all, and two replies answer every message, one of them larger than the queues.
TEST(Message, FloodsWithRepliesDoNotDeadlock) {
  replies = 0;
  refused = 0;
  register_handler(kFlood, [](const mob_message_t* message, void*, mob_delivery_t* delivery) {
    static const std::vector<unsigned char> large(30000);
    if (mob_message_reply(message->token, kFloodReply, nullptr, 0, nullptr, 0, nullptr) != MOB_OK) {
      ++refused;
    }
    const size_t bytes = message->payload_bytes > 5000 ? large.size() : 100;
    if (mob_message_reply(message->token, kFloodReply, &bytes, sizeof bytes, large.data(), bytes,
                          nullptr) != MOB_OK) {
      ++refused;
    }
    delivery->payload = nullptr;
  });
  register_handler(kFloodReply, [](const mob_message_t*, void*, mob_delivery_t*) { ++replies; });
  barrier();
  const uint64_t rounds = mob_size() > 8 ? 60 : 300;
  const std::vector<unsigned char> payload(70000);
  for (uint64_t i = 0; i < rounds; ++i) {
    for (mob_rank_t target = 0; target < mob_size(); ++target) {
      send(target, kFlood, &i, sizeof i, payload.data(), i % 10 == 0 ? payload.size() : i * 7);
    }
  }
  const uint64_t expected = 2 * rounds * static_cast<uint64_t>(mob_size());
  poll_until([&] { return replies.load() >= expected; });
  EXPECT_EQ(replies.load(), expected);
  EXPECT_EQ(refused.load(), 0u);
  barrier();
}

namespace {

std::atomic<int> barrier_status{0};
std::atomic<int> flush_status{0};
std::atomic<int> allocation_status{0};
std::atomic<int> put_status{0};

}  // namespace

// A thread that waits for room in the middle of a payload runs handlers; their messages to the same
// target come after that payload, not into it.
TEST(Message, RepliesDoNotTearPayloadsThatAreHalfWritten) {
  constexpr int kRounds = 20;
  constexpr std::array<size_t, 2> kLong = {100'000, size_t{1} << 20};
  static std::atomic<uint64_t> replies;
  stored = wrong = replies = 0;
  register_handler(
      kWhole, [](const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
        store(message, argument, delivery);
        for (int i = 0; i < 3; ++i) {
          if (mob_message_reply(message->token, kWholeReply, &i, sizeof i, nullptr, 0, nullptr) !=
              MOB_OK) {
            ++wrong;
          }
        }
      });
  register_handler(kWholeReply, [](const mob_message_t* message, void*, mob_delivery_t*) {
    int place = 0;
    if (message->header_bytes == sizeof place) std::memcpy(&place, message->header, sizeof place);
    if (place != static_cast<int>(replies.fetch_add(1) % 3) || message->payload_bytes != 0) ++wrong;
  });
  // In pairs (a rank without partner with itself), so that both send at once.
  const mob_rank_t me = mob_rank();
  const mob_rank_t partner = (me ^ 1) < mob_size() ? me ^ 1 : me;
  barrier();
  for (int round = 0; round < kRounds; ++round) {
    for (const size_t bytes : kLong) {
      const auto payload = mobius_test::patterned(bytes, me, round);
      const Label label{bytes, me, round};
      send(partner, kWhole, &label, sizeof label, payload.data(), bytes);
    }
  }
  constexpr uint64_t kExpected = kRounds * kLong.size();
  poll_until([] { return stored.load() == kExpected && replies.load() == 3 * kExpected; });
  EXPECT_EQ(wrong.load(), 0u);
  barrier();
}

TEST(Message, HandlersMustNotWait) {
  static uint64_t word;
  static mob_rank_t target;
  const Shared memory(64);
  const mob_rank_t me = mob_rank();
  target = mobius_test::right_of(me);
  static unsigned char* remote;
  remote = memory.at(target);
  barrier_status = flush_status = allocation_status = put_status = 1;
  register_handler(kForbidden, [](const mob_message_t*, void*, mob_delivery_t* delivery) {
    delivery->handler = [](mob_token_t token, void*) {
      barrier_status = mob_barrier();
      mob_mem_t mem = nullptr;
      allocation_status = mob_mem_alloc(64, &mem);
      put_status = mob_put8(target, remote, 4711);
      mob_message_send(target, kCount, nullptr, 0, nullptr, 0, nullptr);
      flush_status = mob_message_flush(target);
      if (mob_message_reply(token, kCount, nullptr, 0, nullptr, 0, nullptr) != MOB_OK) word = 1;
    };
  });
  static std::atomic<int> counted;
  counted = 0;
  register_handler(kCount, [](const mob_message_t*, void*, mob_delivery_t*) { ++counted; });
  barrier();
  send(target, kForbidden);
  poll_until([] { return counted.load() == 2; });
  flush_all();
  barrier();
  EXPECT_EQ(barrier_status.load(), MOB_ERR_STATE);
  EXPECT_EQ(allocation_status.load(), MOB_ERR_STATE);
  EXPECT_EQ(put_status.load(), MOB_OK);
  EXPECT_TRUE(flush_status.load() == MOB_ERR_STATE || flush_status.load() == MOB_OK);
  EXPECT_EQ(word, 0u);
  uint64_t value = 0;
  EXPECT_EQ(mob_get8(me, memory.local(), &value), MOB_OK);
  EXPECT_EQ(value, 4711u);
  barrier();
}

TEST(Message, TargetThatComputesIsServed) {
  if (!has_progress_thread()) GTEST_SKIP() << "MOBIUS_PROGRESS=poll";
  static std::atomic<int> arrived;
  arrived = 0;
  register_handler(kCount, [](const mob_message_t*, void*, mob_delivery_t*) { ++arrived; });
  barrier();
  const int messages = 50;
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  // Each rank waits for its messages without the library, so no thread polls.
  for (int i = 1; i <= messages; ++i) {
    send(target, kCount);
    while (arrived.load() < i) sched_yield();
  }
  EXPECT_EQ(arrived.load(), messages);
  barrier();
  // The last thread that polls stops: the library's thread has to notice.
  if (mob_rank() == 0) {
    for (int i = 0; i < 100'000; ++i) EXPECT_EQ(mob_poll(), MOB_OK);
  }
  barrier();
  for (int i = 1; i <= messages; ++i) {
    send(target, kCount);
    while (arrived.load() < messages + i) sched_yield();
  }
  barrier();
}

TEST(Message, CountersOfAllKinds) {
  static mob_counter_t arrived;
  mob_counter_t local = nullptr;
  mob_counter_t origin = nullptr;
  mob_counter_t completion = nullptr;
  for (mob_counter_t* counter : {&arrived, &local, &origin, &completion}) {
    EXPECT_EQ(mob_counter_create(counter), MOB_OK) << mob_last_error();
  }
  register_handler(kCounted, [](const mob_message_t*, void*, mob_delivery_t* delivery) {
    delivery->counter = arrived;
  });
  const Shared counters(sizeof(mob_counter_t));
  std::memcpy(counters.local(), &local, sizeof local);
  barrier();
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  mob_notify_t notify = {origin, nullptr, completion};
  EXPECT_EQ(mob_get(target, counters.at(target), &notify.target_counter, sizeof(mob_counter_t)),
            MOB_OK);
  const uint64_t messages = 20;
  const std::vector<unsigned char> payload(100'000);
  for (uint64_t i = 0; i < messages; ++i) {
    EXPECT_EQ(mob_message_send(target, kCounted, nullptr, 0, payload.data(), i * 5000, &notify),
              MOB_OK)
        << mob_last_error();
  }
  for (mob_counter_t counter : {origin, completion, local, arrived}) {
    uint64_t left = 1;
    EXPECT_EQ(mob_counter_wait(counter, messages, &left), MOB_OK) << mob_last_error();
    EXPECT_EQ(left, 0u);
  }
  mob_notify_t wrong_one = {};
  wrong_one.origin_counter = reinterpret_cast<mob_counter_t>(&wrong_one);
  EXPECT_EQ(mob_message_send(target, kCounted, nullptr, 0, nullptr, 0, &wrong_one), MOB_ERR_HANDLE);
  EXPECT_NE(std::string(mob_last_error()).find("mob_message_send"), std::string::npos);
  barrier();
  for (mob_counter_t counter : {arrived, local, origin, completion}) {
    EXPECT_EQ(mob_counter_free(counter), MOB_OK);
  }
}

// Handlers run where the program says, and messages that came while no thread served are not lost.
TEST(Message, ProgressCanBeChanged) {
  static std::atomic<std::thread::id> ran_on;
  const auto note = [](const mob_message_t*, void*, mob_delivery_t*) {
    ran_on = std::this_thread::get_id();
  };
  register_handler(kWhere, note);
  const Shared flags(2 * sizeof(uint64_t));  // of the target: sent; of rank 0: the target is ready
  const mob_rank_t me = mob_rank();
  const mob_rank_t target = mob_size() - 1;
  const auto await = [&](size_t flag, uint64_t round) {
    const auto* word = reinterpret_cast<const uint64_t*>(flags.local()) + flag;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round) sched_yield();
  };
  // The target sees the message without having called the library since it came.
  const auto send_and_see = [&](uint64_t round) {
    barrier();
    if (me == target) {
      EXPECT_EQ(mob_put8(0, flags.at(0, 8), round), MOB_OK);
    }
    if (me == 0) {
      await(1, round);
      send(target, kWhere);
      EXPECT_EQ(mob_put8(target, flags.at(target), round), MOB_OK);
    }
    if (me == target) await(0, round);
  };
  mob_progress_t before = MOB_PROGRESS_POLL;
  EXPECT_EQ(mob_progress_set(MOB_PROGRESS_POLL, &before), MOB_OK) << mob_last_error();
  EXPECT_EQ(before, has_progress_thread() ? MOB_PROGRESS_THREAD : MOB_PROGRESS_POLL);
  for (uint64_t round = 1; round <= 20; ++round) {
    ran_on = std::thread::id();
    send_and_see(round);
    if (me != target) continue;
    EXPECT_EQ(ran_on.load(), std::thread::id());
    poll_until([] { return ran_on.load() != std::thread::id(); });
    EXPECT_EQ(ran_on.load(), std::this_thread::get_id());
  }
  ran_on = std::thread::id();
  send_and_see(21);
  EXPECT_EQ(mob_progress_set(MOB_PROGRESS_THREAD, &before), MOB_OK) << mob_last_error();
  EXPECT_EQ(before, MOB_PROGRESS_POLL);
  if (me == target) {
    while (ran_on.load() == std::thread::id()) sched_yield();
    EXPECT_NE(ran_on.load(), std::this_thread::get_id());
  }
  barrier();
  const bool had_thread = has_progress_thread();
  EXPECT_EQ(mob_progress_set(had_thread ? MOB_PROGRESS_THREAD : MOB_PROGRESS_POLL, nullptr),
            MOB_OK);
  EXPECT_EQ(mob_progress_set(static_cast<mob_progress_t>(7), &before), MOB_ERR_ARGUMENT);
  barrier();
}

TEST(MessageBadInput, EveryArgument) {
  const auto nothing = [](const mob_message_t*, void*, mob_delivery_t*) {};
  register_handler(kCount, nothing);
  barrier();
  const auto expect = [](mob_status_t got, mob_status_t expected, const std::string& detail) {
    EXPECT_EQ(got, expected) << mob_status_name(got) << ": " << mob_last_error();
    EXPECT_NE(std::string(mob_last_error()).find(detail), std::string::npos) << mob_last_error();
  };
  const mob_rank_t me = mob_rank();
  char byte = 0;
  mob_handle_t handle = 4711;
  expect(mob_message_send_nb(me, kCount, nullptr, 0, nullptr, 0, nullptr, nullptr),
         MOB_ERR_ARGUMENT, "handle is null");
  expect(mob_message_send_nb(me, kNever, nullptr, 0, nullptr, 0, nullptr, &handle), MOB_ERR_HANDLE,
         "mob_message_send_nb");
  expect(mob_message_send_nbi(me, kCount, nullptr, 0, nullptr, 1, nullptr), MOB_ERR_ARGUMENT,
         "payload is null");
  for (const mob_rank_t target : {me, mobius_test::right_of(me)}) {
    expect(mob_message_send(target, kCount, nullptr, 0, &byte, SIZE_MAX, nullptr), MOB_ERR_RANGE,
           "a payload of 18446744073709551615 bytes");
  }
  EXPECT_EQ(handle, 4711u);
  expect(mob_handler_register(MOB_MAX_HANDLERS, nothing, nullptr), MOB_ERR_ARGUMENT,
         "mob_handler_register: handler 1024");
  expect(mob_handler_register(UINT_MAX, nothing, nullptr), MOB_ERR_ARGUMENT, "out of bounds");
  expect(mob_handler_register(0, nullptr, nullptr), MOB_ERR_ARGUMENT, "handler is null");
  for (const mob_rank_t rank : {-1, mob_size(), INT_MAX, INT_MIN}) {
    expect(mob_message_send(rank, kCount, nullptr, 0, nullptr, 0, nullptr), MOB_ERR_RANK, "rank");
    expect(mob_message_send_nb(rank, kCount, nullptr, 0, nullptr, 0, nullptr, &handle),
           MOB_ERR_RANK, "rank");
    expect(mob_message_send_nbi(rank, kCount, nullptr, 0, nullptr, 0, nullptr), MOB_ERR_RANK,
           "rank");
    expect(mob_message_flush(rank), MOB_ERR_RANK, "mob_message_flush");
  }
  expect(mob_message_send(me, MOB_MAX_HANDLERS, nullptr, 0, nullptr, 0, nullptr), MOB_ERR_ARGUMENT,
         "out of bounds");
  expect(mob_message_send(me, MOB_MAX_HANDLERS + 1, nullptr, 0, nullptr, 0, nullptr),
         MOB_ERR_ARGUMENT, "out of bounds");
  // If the target is on another host, the next flush reports the error.
  const mob_rank_t right = mobius_test::right_of(me);
  const mob_status_t sent = mob_message_send(right, kNever, nullptr, 0, nullptr, 0, nullptr);
  EXPECT_EQ(sent == MOB_OK, !mobius_test::same_host(right));
  expect(sent != MOB_OK ? sent : mob_message_flush(right), MOB_ERR_HANDLE,
         "rank " + std::to_string(right) + " has no handler " + std::to_string(kNever));
  EXPECT_EQ(mob_message_flush(right), MOB_OK) << mob_last_error();
  mob_counter_t freed = nullptr;
  ASSERT_EQ(mob_counter_create(&freed), MOB_OK);
  ASSERT_EQ(mob_counter_free(freed), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  // A counter of the target at the same place is freed too.
  const mob_notify_t told{nullptr, freed, nullptr};
  const mob_status_t counted = mob_message_send(right, kCount, nullptr, 0, nullptr, 0, &told);
  // So does one in another job.
  if (mobius_test::on_team.is_one_job) {
    EXPECT_EQ(counted == MOB_OK, !mobius_test::same_host(right));
  }
  expect(counted != MOB_OK ? counted : mob_message_flush(right), MOB_ERR_HANDLE, "counter");
  EXPECT_EQ(mob_message_flush(right), MOB_OK) << mob_last_error();
  expect(mob_message_send(me, kCount, nullptr, 1, nullptr, 0, nullptr), MOB_ERR_ARGUMENT,
         "header is null");
  expect(mob_message_send(me, kCount, &byte, MOB_MAX_HEADER_BYTES + 1, nullptr, 0, nullptr),
         MOB_ERR_ARGUMENT, "1025");
  expect(mob_message_send(me, kCount, &byte, SIZE_MAX, nullptr, 0, nullptr), MOB_ERR_ARGUMENT,
         "header");
  expect(mob_message_send(me, kCount, nullptr, 0, nullptr, 1, nullptr), MOB_ERR_ARGUMENT,
         "payload is null");
  for (const mob_token_t token : {mob_token_t{0}, mob_token_t{1}, UINT64_MAX}) {
    expect(mob_message_reply(token, kCount, nullptr, 0, nullptr, 0, nullptr), MOB_ERR_HANDLE,
           "token");
  }
  barrier();
}
