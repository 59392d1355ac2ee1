// SPDX-License-Identifier: BSD-3-Clause

// No message is left unserved when its target stops polling: streams in which the target leaves a
// wait to compute, stops polling, or falls asleep at any point, while the sender continues. Of each
// pair of ranks one sends, then the other.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "messages.h"

using mobius_test::barrier;
using mobius_test::register_handler;
using mobius_test::send;

namespace {

enum Id : unsigned { kPart = 140, kAnswer };

std::atomic<uint64_t> handled;
std::atomic<uint64_t> answered;
mob_counter_t arrived = nullptr;
std::vector<unsigned char> landing(size_t{64} << 10);

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

void take(const mob_message_t*, void*, mob_delivery_t* delivery) {
  delivery->payload = landing.data();
  delivery->counter = arrived;
  delivery->handler = [](mob_token_t, void*) { handled.fetch_add(1, std::memory_order_release); };
}

void note_answer(const mob_message_t*, void*, mob_delivery_t*) {
  answered.fetch_add(1, std::memory_order_release);
}

// A lost message would be found by the next call of the library, so none is made any more.
template <typename Condition, typename Meanwhile>
void insist(const char* what, uint64_t episode, Condition condition, Meanwhile meanwhile) {
  constexpr uint64_t kLongNs = 20'000'000'000;
  const uint64_t end = now_ns() + kLongNs;
  while (!condition()) {
    meanwhile();
    if (now_ns() < end) continue;
    std::fprintf(stderr, "rank %d: %s is lost in episode %llu\n", mob_rank(), what,
                 static_cast<unsigned long long>(episode));
    std::abort();
  }
}

// The facts of an episode that both ends know.
struct Episode {
  explicit Episode(uint64_t seed, bool has_thread) : random(seed) {
    messages = 1 + below(below(2) == 0 ? 40 : 2000);
    payload = below(3) == 0 ? 0 : below(2) == 0 ? 4096 : 1 + below(6000);
    // Mostly while the last messages are under way: no later message would lead to their discovery.
    const uint64_t left = below(4) == 0 ? below(messages + 1) : below(3);
    leaves_after = messages - std::min(left, messages);
    polls = below(2) == 0;
    // Without a library thread, only a target that keeps waiting must get the rest.
    waits_for_rest = !has_thread || below(3) == 0;
    // No requests come meanwhile, so the next wait may begin without polling.
    waits_before = below(4) == 0 ? 300 : 0;
  }
  uint64_t below(uint64_t limit) { return random() % limit; }

  std::mt19937_64 random;
  uint64_t messages;
  size_t payload;
  uint64_t leaves_after;
  bool polls;
  bool waits_for_rest;
  int waits_before;
};

void pause_for(uint64_t ns) {
  for (const uint64_t end = now_ns() + ns; now_ns() < end;) {
  }
}

void run_sender(mob_rank_t peer, Episode episode, uint64_t number) {
  static const std::vector<unsigned char> payload(8192, 1);
  std::mt19937_64 own(number * 7919 + 13);
  for (uint64_t i = 0; i < episode.messages; ++i) {
    send(peer, kPart, nullptr, 0, payload.data(), episode.payload);
    // Now and then the target catches up and falls asleep.
    if (own() % 512 == 0) pause_for(own() % 60'000);
  }
  insist(
      "an answer", number, [&] { return answered.load(std::memory_order_acquire) == number + 1; },
      [] {
        EXPECT_EQ(mob_poll(), MOB_OK);
        std::this_thread::yield();
      });
}

// `before`: the messages of all earlier episodes. Some of this episode may have arrived already.
void run_target(mob_rank_t peer, const Episode& episode, uint64_t number, uint64_t before) {
  uint64_t waited = 0;
  if (episode.polls) {
    while (handled.load(std::memory_order_acquire) - before < episode.leaves_after) {
      EXPECT_EQ(mob_poll(), MOB_OK);
    }
  } else if (episode.leaves_after != 0) {
    waited = episode.leaves_after;
    EXPECT_EQ(mob_counter_wait(arrived, waited, nullptr), MOB_OK) << mob_last_error();
  }
  if (!episode.waits_for_rest) {
    insist(
        "a message", number,
        [&] { return handled.load(std::memory_order_acquire) - before == episode.messages; },
        [] { std::this_thread::yield(); });
  }
  if (waited != episode.messages) {
    EXPECT_EQ(mob_counter_wait(arrived, episode.messages - waited, nullptr), MOB_OK)
        << mob_last_error();
  }
  insist(
      "a handler", number,
      [&] { return handled.load(std::memory_order_acquire) - before == episode.messages; },
      [] { std::this_thread::yield(); });
  send(peer, kAnswer);
}

void notify_each_other(mob_rank_t peer) {
  ASSERT_EQ(mob_notify(peer), MOB_OK) << mob_last_error();
  ASSERT_EQ(mob_notify_wait(peer, nullptr), MOB_OK) << mob_last_error();
}

uint64_t episodes() {
  const char* wanted = std::getenv("WAKEUP_TEST_EPISODES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 60;
}

}  // namespace

TEST(Message, NoneIsLeftLyingWhenTheTargetStopsLooking) {
  ASSERT_EQ(mob_counter_create(&arrived), MOB_OK) << mob_last_error();
  handled = 0;
  answered = 0;
  register_handler(kPart, take);
  register_handler(kAnswer, note_answer);
  barrier();
  const char* progress = std::getenv("MOBIUS_PROGRESS");
  const bool has_thread = progress == nullptr || std::string(progress) != "poll";
  const mob_rank_t peer = mob_rank() ^ 1;
  if (peer < mob_size()) {
    const uint64_t seed = static_cast<uint64_t>(mob_rank() / 2) << 32;
    for (const mob_rank_t sends : {0, 1}) {
      uint64_t before = 0;
      const uint64_t count = episodes() / static_cast<uint64_t>(mob_size() > 4 ? 8 : 1);
      for (uint64_t number = 0; number < count; ++number) {
        const Episode episode(seed + number * 2 + static_cast<uint64_t>(sends), has_thread);
        for (int i = 0; i < episode.waits_before; ++i) notify_each_other(peer);
        if (mob_rank() % 2 == sends) {
          run_sender(peer, episode, number);
        } else {
          run_target(peer, episode, number, before);
          before += episode.messages;
        }
      }
    }
  }
  barrier();
  EXPECT_EQ(mob_counter_free(arrived), MOB_OK) << mob_last_error();
}
