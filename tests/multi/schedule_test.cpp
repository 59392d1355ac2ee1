// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "fixture.h"
#include "messages.h"

// Operations that are recorded for other hosts and sent later (docs/scheduler.md). On one host the
// same programs run, where everything happens at once.
namespace mobius_test {
namespace {

constexpr size_t kPlaces = 3001;

// Each place once, never at the same distance twice in a row: powers modulo a prime.
size_t scattered_place(size_t i) {
  size_t place = 1;
  for (int factors = 0; factors < 7; ++factors) place = place * i % kPlaces;
  return place;
}

TEST(Schedule, ManyScatteredPutsAreAllThere) {
  Shared shared(kPlaces * 64);
  std::vector<uint64_t> values(kPlaces);
  for (size_t i = 0; i < kPlaces; ++i) values[i] = i * 3 + 1;
  for (size_t i = 0; i < kPlaces; ++i) {
    const size_t place = scattered_place(i);
    auto* to = shared.at(right_of(mob_rank()), place * 64);
    if (i < kPlaces / 2) {  // a message of these alone
      ASSERT_EQ(mob_put_nbi(right_of(mob_rank()), to, &values[place], 8), MOB_OK);
    } else if (place % 3 == 0) {
      ASSERT_EQ(mob_put8(right_of(mob_rank()), to, values[place]), MOB_OK);
    } else if (place % 3 == 1) {
      ASSERT_EQ(mob_put_nbi(right_of(mob_rank()), to, &values[place], 8), MOB_OK);
    } else {
      const uint64_t value = values[place];  // the caller's again at once
      ASSERT_EQ(mob_put(right_of(mob_rank()), to, &value, 8), MOB_OK);
    }
  }
  ASSERT_EQ(mob_flush(right_of(mob_rank())), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  for (size_t i = 0; i < kPlaces; ++i) {
    uint64_t found = 0;
    std::memcpy(&found, shared.at(mob_rank(), i * 64), sizeof found);
    ASSERT_EQ(found, values[i]) << i;
  }
  // And gets of some of them: the bytes that were put, a part of them, or more.
  constexpr size_t kGets = 300;
  for (const size_t bytes : {size_t{4}, size_t{8}, size_t{24}}) {
    std::vector<unsigned char> got(kGets * bytes);
    std::vector<unsigned char> expected(kGets * bytes);
    for (size_t i = 0; i < kGets; ++i) {
      const size_t place = scattered_place(i * (kPlaces / kGets));
      std::memcpy(&expected[i * bytes], &values[place], std::min<size_t>(bytes, 8));
      const auto* from = shared.at(right_of(mob_rank()), place * 64);
      ASSERT_EQ(mob_get_nbi(right_of(mob_rank()), from, &got[i * bytes], bytes), MOB_OK);
    }
    ASSERT_EQ(mob_flush(right_of(mob_rank())), MOB_OK);
    EXPECT_EQ(got, expected) << bytes;
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// Recorded operations keep that order (docs/scheduler.md). Longer ones, which are sent alone, are
// not ordered without a flush.
TEST(Schedule, AGetSeesWhatWasPutThereBefore) {
  if (reorders()) GTEST_SKIP() << "a hook may change that order";
  constexpr size_t kBytes = 100'000;
  Shared shared(2 * kBytes);
  const mob_rank_t target = right_of(mob_rank());
  for (const size_t bytes : {size_t{1}, size_t{8}, size_t{600}, kBytes}) {
    const auto first = patterned(bytes, mob_rank(), 1);
    const auto second = patterned(bytes, mob_rank(), 2);
    std::vector<unsigned char> got(bytes);
    std::vector<unsigned char> other(bytes);
    const auto order = [&] { ASSERT_EQ(bytes == kBytes ? mob_flush(target) : MOB_OK, MOB_OK); };
    ASSERT_EQ(mob_put_nbi(target, shared.at(target, 0), first.data(), bytes), MOB_OK);
    order();
    ASSERT_EQ(mob_get_nbi(target, shared.at(target, kBytes), other.data(), bytes), MOB_OK);
    ASSERT_EQ(mob_get_nbi(target, shared.at(target, 0), got.data(), bytes), MOB_OK);
    order();
    ASSERT_EQ(mob_fence(), MOB_OK);
    ASSERT_EQ(mob_put_nbi(target, shared.at(target, 0), second.data(), bytes), MOB_OK);
    ASSERT_EQ(mob_flush(target), MOB_OK);
    EXPECT_EQ(got, first);
    ASSERT_EQ(mob_get(target, shared.at(target, 0), got.data(), bytes), MOB_OK);
    EXPECT_EQ(got, second);
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

// A blocking get may overtake operations that were only started; none may be lost.
TEST(Schedule, AGetThatIsWaitedForOvertakesAndLosesNothing) {
  constexpr size_t kBytes = 300'000;
  Shared shared(2 * kBytes);
  const mob_rank_t target = right_of(mob_rank());
  *reinterpret_cast<uint64_t*>(shared.at(mob_rank(), kBytes)) = 77;
  ASSERT_EQ(mob_barrier(), MOB_OK);
  const auto data = patterned(kBytes, mob_rank(), 3);
  ASSERT_EQ(mob_put_nbi(target, shared.at(target, 0), data.data(), kBytes), MOB_OK);
  std::array<uint64_t, 2> got{};
  ASSERT_EQ(mob_get8(target, shared.at(target, kBytes), got.data()), MOB_OK);
  EXPECT_EQ(got[0], 77u);
  mob_handle_t handle = MOB_HANDLE_DONE;
  ASSERT_EQ(mob_put_nbi(target, shared.at(target, 0), data.data(), kBytes), MOB_OK);
  ASSERT_EQ(mob_get_nb(target, shared.at(target, kBytes), &got[1], 8, &handle), MOB_OK);
  ASSERT_EQ(mob_wait(&handle), MOB_OK);
  EXPECT_EQ(got[1], 77u);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  EXPECT_TRUE(holds(shared.at(mob_rank(), 0), patterned(kBytes, left_of(mob_rank()), 3), kBytes));
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

TEST(Schedule, PutsAreSeenWithoutAFlush) {
  Shared shared(64);
  const mob_rank_t target = right_of(mob_rank());
  for (uint64_t i = 1; i <= 300; ++i) {
    ASSERT_EQ(mob_put8(target, shared.at(target, 0), i), MOB_OK);
  }
  // Without a call into the library that could send anything.
  uint64_t seen = 0;
  while (seen != 300) {
    std::this_thread::yield();
    ASSERT_EQ(mob_get8(mob_rank(), shared.at(mob_rank(), 0), &seen), MOB_OK);
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

TEST(Schedule, AccumulatesKeepTheirOrderAmongPuts) {
  if (reorders()) GTEST_SKIP() << "a hook may change that order";
  Shared shared(64);
  const mob_rank_t target = right_of(mob_rank());
  auto* word = shared.at(target, 0);
  const uint64_t start = 5;
  const uint64_t one = 1;
  uint64_t before = 0;
  ASSERT_EQ(mob_put_nbi(target, word, &start, 8), MOB_OK);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(mob_accumulate(target, word, &one, 1, MOB_UINT64, MOB_SUM), MOB_OK);
  }
  mob_transfer_t fetch{};
  fetch.kind = MOB_FETCH_ACCUMULATE;
  fetch.rank = target;
  fetch.remote = word;
  fetch.local = const_cast<uint64_t*>(&one);
  fetch.bytes = 8;
  fetch.type = MOB_UINT64;
  fetch.op = MOB_SUM;
  fetch.fetched = &before;
  ASSERT_EQ(mob_transfer_nbi(&fetch), MOB_OK);
  ASSERT_EQ(mob_flush(target), MOB_OK);
  EXPECT_EQ(before, 105u);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(shared.at(mob_rank(), 0)), 106u);
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

TEST(Schedule, AnErrorOfOneLeavesTheOthers) {
  // All ranks or none: on another host, if all hosts have the same number of ranks.
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "on one host the call itself fails";
  const auto target = static_cast<mob_rank_t>((mob_rank() + mob_size() / 2) % mob_size());
  Shared shared(4096);
  std::array<uint64_t, 10> values{};  // the library's until the flush
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = i;
    ASSERT_EQ(mob_put_nbi(target, shared.at(target, i * 8), &values[i], 8), MOB_OK);
    if (i == 5) {
      ASSERT_EQ(mob_put_nbi(target, reinterpret_cast<void*>(64), &values[i], 8), MOB_OK);
    }
  }
  EXPECT_EQ(mob_flush(target), MOB_ERR_RANGE);
  EXPECT_EQ(std::strncmp(mob_last_error(), "mob_flush: rank ", 16), 0) << mob_last_error();
  EXPECT_NE(std::strstr(mob_last_error(), "not in one of its allocations"), nullptr)
      << mob_last_error();
  EXPECT_EQ(mob_flush(target), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  uint64_t value = 0;
  EXPECT_EQ(mob_get(target, reinterpret_cast<void*>(64), &value, 8), MOB_ERR_RANGE);
  EXPECT_EQ(std::strncmp(mob_last_error(), "mob_get: rank ", 14), 0) << mob_last_error();
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(shared.at(mob_rank(), i * 8)), i);
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

TEST(Schedule, PiecesOfOneBufferArriveAsOne) {
  constexpr size_t kPieces = 500;
  constexpr size_t kPiece = 300;
  Shared shared(kPieces * kPiece);
  const mob_rank_t target = right_of(mob_rank());
  const auto data = patterned(kPieces * kPiece, mob_rank(), 4);
  std::vector<unsigned char> back(data.size());
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t at = i * kPiece;
    ASSERT_EQ(mob_put_nbi(target, shared.at(target, at), data.data() + at, kPiece), MOB_OK);
  }
  ASSERT_EQ(mob_flush(target), MOB_OK);
  for (size_t i = 0; i < kPieces; i += 2) {  // every other row
    const size_t at = i * kPiece;
    ASSERT_EQ(mob_get_nbi(target, shared.at(target, at), back.data() + at, kPiece), MOB_OK);
  }
  ASSERT_EQ(mob_flush(target), MOB_OK);
  for (size_t i = 0; i < kPieces; i += 2) {
    ASSERT_EQ(std::memcmp(back.data() + i * kPiece, data.data() + i * kPiece, kPiece), 0) << i;
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  EXPECT_TRUE(
      holds(shared.at(mob_rank(), 0), patterned(data.size(), left_of(mob_rank()), 4), data.size()));
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// An operation that continues the former one is merged with it when it is recorded, if possible:
// with pieces that are copied and pieces that are not, gets as well as puts, among puts whose bytes
// the caller may reuse at once, and others that continue the former one on one side only.
TEST(Schedule, PiecesOfAnyLengthMakeUpOneBuffer) {
  constexpr size_t kBytes = 60'000;
  Shared shared(3 * kBytes);
  const mob_rank_t target = right_of(mob_rank());
  const auto data = patterned(kBytes, mob_rank(), 5);
  for (const std::vector<size_t>& lengths :
       {std::vector<size_t>{48}, {3, 5}, {8}, {5, 8, 11}, {64, 65}, {700, 20}, {9, 5000}}) {
    std::vector<unsigned char> back(kBytes);
    std::array<unsigned char, 5000> own{};
    size_t beside = 0;
    size_t rest = 0;
    size_t at = 0;
    for (size_t i = 0; at < kBytes; ++i) {
      const size_t bytes = std::min(lengths[i % lengths.size()], kBytes - at);
      void* to = shared.at(target, at);
      if (i % 50 == 20) {
        std::memcpy(own.data(), data.data() + at, bytes);
        ASSERT_EQ(mob_put(target, to, own.data(), bytes), MOB_OK);
        own.fill(0);
      } else {
        ASSERT_EQ(mob_put_nbi(target, to, data.data() + at, bytes), MOB_OK);
      }
      if (i % 50 == 40) {  // continues at the origin, not at the target
        beside = at + bytes;
        rest = std::min<size_t>(40, kBytes - beside);
        void* elsewhere = shared.at(target, kBytes + beside);
        ASSERT_EQ(mob_put_nbi(target, elsewhere, data.data() + beside, rest), MOB_OK);
      }
      at += bytes;
    }
    ASSERT_EQ(mob_flush(target), MOB_OK);
    at = 0;
    for (size_t i = 0; at < kBytes; ++i) {
      const size_t bytes = std::min(lengths[i % lengths.size()], kBytes - at);
      ASSERT_EQ(mob_get_nbi(target, shared.at(target, at), back.data() + at, bytes), MOB_OK);
      at += bytes;
    }
    ASSERT_EQ(mob_flush(target), MOB_OK);
    ASSERT_EQ(back, data) << lengths[0];
    if (rest != 0) {
      ASSERT_EQ(mob_get(target, shared.at(target, kBytes + beside), back.data(), rest), MOB_OK);
      ASSERT_EQ(std::memcmp(back.data(), data.data() + beside, rest), 0) << lengths[0];
    }
    ASSERT_EQ(mob_barrier(), MOB_OK);
    std::memset(shared.at(mob_rank(), 0), 0, 2 * kBytes);
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

// One thread puts and gets neighbours, mostly alone, and has the queue to itself
// (os/sync/biased_lock.h). Another thread comes along now and then and sends everything recorded,
// in the middle of it.
TEST(Schedule, NeighboursOfOneThreadStayWholeWhereOthersComeAlong) {
  constexpr size_t kBytes = 24'000;
  constexpr size_t kWords = 64;
  Shared shared(kBytes + kWords * 64);
  const mob_rank_t target = right_of(mob_rank());
  const auto data = patterned(kBytes, mob_rank(), 7);
  std::atomic<bool> is_over = false;
  std::vector<uint64_t> values(kWords);
  std::thread other([&] {
    for (uint64_t turn = 1; !is_over.load(); ++turn) {
      for (size_t i = 0; i < kWords; ++i) values[i] = turn + i;
      for (size_t i = 0; i < kWords; ++i) {
        ASSERT_EQ(mob_put_nbi(target, shared.at(target, kBytes + i * 64), &values[i], 8), MOB_OK);
      }
      ASSERT_EQ(mob_flush(target), MOB_OK);
      // From none to some hundred rounds of the first thread.
      std::this_thread::sleep_for(std::chrono::microseconds(uint64_t{1} << turn % 14));
    }
  });
  const size_t rounds = one_host() ? 40 : 400;  // the other thread never comes where nothing waits
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<unsigned char> back(kBytes);
    for (const bool puts : {true, false}) {
      for (size_t at = 0, bytes = 0; at < kBytes; at += bytes) {
        bytes = std::min(9 + (round * 31 + at) % 120, kBytes - at);
        void* there = shared.at(target, at);
        ASSERT_EQ(puts ? mob_put_nbi(target, there, data.data() + at, bytes)
                       : mob_get_nbi(target, there, back.data() + at, bytes),
                  MOB_OK);
        if (at % 1000 == 7) {
          ASSERT_EQ(mob_fence(), MOB_OK);
        }
      }
      ASSERT_EQ(mob_flush(target), MOB_OK);
    }
    ASSERT_EQ(back, data) << round;
    back.assign(kBytes, 0);
    ASSERT_EQ(mob_put(target, shared.at(target, 0), back.data(), kBytes), MOB_OK);
    ASSERT_EQ(mob_flush(target), MOB_OK);
  }
  is_over.store(true);
  other.join();
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t found = 0;
    ASSERT_EQ(mob_get8(target, shared.at(target, kBytes + i * 64), &found), MOB_OK);
    ASSERT_EQ(found, values[i]) << i;
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// An operation that continues the former one but belongs to another context stays separate: here it
// is one outside the target's memory, whose error belongs to that context alone.
TEST(Schedule, NeighboursOfTwoContextsStayApart) {
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "on one host the call itself fails";
  constexpr size_t kPiece = 48;
  constexpr size_t kPieces = 600;
  Shared shared(kPieces * kPiece);
  const auto target = static_cast<mob_rank_t>((mob_rank() + mob_size() / 2) % mob_size());
  const auto data = patterned((kPieces + 1) * kPiece, mob_rank(), 8);
  mob_context_t context;
  ASSERT_EQ(mob_context_create(&context), MOB_OK);
  for (int round = 0; round < 20; ++round) {
    std::vector<unsigned char> back(kPieces * kPiece);
    const auto put = [&](size_t i) {
      const size_t at = i * kPiece;
      ASSERT_EQ(mob_put_nbi(target, shared.at(target, 0) + at, data.data() + at, kPiece), MOB_OK);
    };
    for (size_t i = 0; i < kPieces; ++i) put(i);
    ASSERT_EQ(mob_context_use(context), MOB_OK);
    put(kPieces);
    EXPECT_EQ(mob_flush(target), MOB_ERR_RANGE) << round;
    ASSERT_EQ(mob_context_use(MOB_CONTEXT_DEFAULT), MOB_OK);
    EXPECT_EQ(mob_flush(target), MOB_OK) << round;
    ASSERT_EQ(mob_get(target, shared.at(target, 0), back.data(), back.size()), MOB_OK);
    ASSERT_EQ(std::memcmp(back.data(), data.data(), back.size()), 0) << round;
  }
  ASSERT_EQ(mob_context_free(context), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// The same for a call without "nb", whose bytes the caller may reuse at once, also if the next put
// continues in the same buffer.
TEST(Schedule, BuffersOfTheCallerAreNotReadLater) {
  constexpr size_t kPiece = 40;
  constexpr size_t kPieces = 30;
  Shared shared(kPieces * kPiece);
  const mob_rank_t target = right_of(mob_rank());
  const auto data = patterned(kPieces * kPiece, mob_rank(), 6);
  for (int round = 0; round < 50; ++round) {
    std::vector<unsigned char> own = data;
    for (size_t i = 0; i < kPieces; ++i) {
      unsigned char* from = own.data() + i * kPiece;
      if (i % 10 == 9) {
        ASSERT_EQ(mob_put_nbi(target, shared.at(target, i * kPiece), from, kPiece), MOB_OK);
      } else {
        ASSERT_EQ(mob_put(target, shared.at(target, i * kPiece), from, kPiece), MOB_OK);
        std::memset(from, 0, kPiece);
      }
    }
    ASSERT_EQ(mob_flush(target), MOB_OK);
    ASSERT_EQ(mob_barrier(), MOB_OK);
    ASSERT_TRUE(holds(shared.at(mob_rank(), 0), patterned(data.size(), left_of(mob_rank()), 6),
                      data.size()));
    std::memset(shared.at(mob_rank(), 0), 0, data.size());
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

constexpr std::array kSchedules = {MOB_SCHEDULE_DEFAULT,    MOB_SCHEDULE_ADAPTIVE,
                                   MOB_SCHEDULE_FIFO,       MOB_SCHEDULE_INTERLEAVE,
                                   MOB_SCHEDULE_GETS_FIRST, MOB_SCHEDULE_AGGREGATE};

// Two allocations with hints of their own, or the second without. Puts to one alternate with gets
// from the other, and a word of the first is put again and again. Operations that became long by
// merging, and long puts that are only started, take a path on which others could overtake them.
class LongTransfers : public ::testing::Test {
 protected:
  static constexpr size_t kPieces = 16;
  static constexpr size_t kBytes = size_t{1} << 20;
  static constexpr uint64_t kRounds = 12;

  // In pieces, or in one.
  void start(uint64_t round, size_t pieces) {
    std::memset(data_.data(), static_cast<int>(round), kBytes);
    const size_t bytes = kBytes / pieces;
    for (size_t i = 0; i < pieces; ++i) {
      ASSERT_EQ(
          mob_put_nbi(target_, shared_.at(target_, i * bytes), data_.data() + i * bytes, bytes),
          MOB_OK);
    }
  }
  bool has_come(uint64_t round) const {
    const auto* own = static_cast<const unsigned char*>(shared_.at(mob_rank(), 0));
    return std::all_of(own, own + kBytes, [&](unsigned char byte) { return byte == round; });
  }

  const mob_rank_t target_ = right_of(mob_rank());
  const Shared shared_{kBytes + 64};
  std::vector<unsigned char> data_ = std::vector<unsigned char>(kBytes);
};

TEST_F(LongTransfers, AFenceOrdersThem) {
  if (reorders()) GTEST_SKIP() << "what a target waits for here is started, and never flushed";
  auto* flag = reinterpret_cast<uint64_t*>(shared_.at(mob_rank(), kBytes));
  for (uint64_t round = 1; round <= kRounds; ++round) {
    start(round, round % 2 == 0 ? 1 : kPieces);
    // Sent by a poll, before the fence or after it, or by a later put.
    if (round % 3 == 0) {
      ASSERT_EQ(mob_poll(), MOB_OK);
    }
    ASSERT_EQ(mob_fence(), MOB_OK);
    if (round % 4 == 1) {
      ASSERT_EQ(mob_poll(), MOB_OK);
    }
    ASSERT_EQ(mob_put8(target_, shared_.at(target_, kBytes), round), MOB_OK);
    ASSERT_EQ(mob_wait_until_u8(flag, MOB_EQ, round), MOB_OK) << mob_last_error();
    EXPECT_TRUE(has_come(round)) << round;
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

TEST_F(LongTransfers, AMessageComesBehindThem) {
  if (reorders()) GTEST_SKIP() << "a hook keeps what is started until a flush or a fence";
  struct Heard {
    const LongTransfers* self;
    bool (LongTransfers::*has_come)(uint64_t) const;
    std::atomic<uint64_t> round = 0;
    std::atomic<bool> was_there = false;
  } heard{this, &LongTransfers_AMessageComesBehindThem_Test::has_come};
  register_handler(
      11,
      [](const mob_message_t* message, void* argument, mob_delivery_t*) {
        auto& all = *static_cast<Heard*>(argument);
        uint64_t round = 0;
        std::memcpy(&round, message->header, sizeof round);
        all.was_there.store((all.self->*all.has_come)(round));
        all.round.store(round);
      },
      &heard);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    start(round, round % 2 == 0 ? 1 : kPieces);
    if (round % 3 == 0) {
      ASSERT_EQ(mob_poll(), MOB_OK);
    }
    if (round % 4 < 2) {
      send(target_, 11, &round, sizeof round);
    } else {
      ASSERT_EQ(mob_message_send_nbi(target_, 11, &round, sizeof round, nullptr, 0, nullptr),
                MOB_OK);
    }
    poll_until([&] { return heard.round.load() == round; });
    EXPECT_TRUE(heard.was_there.load()) << round;
    ASSERT_EQ(mob_flush_all(), MOB_OK);
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

TEST_F(LongTransfers, AnUpdateOfAWordComesBehindThem) {
  auto* flag = reinterpret_cast<uint64_t*>(shared_.at(mob_rank(), kBytes));
  void* word = shared_.at(target_, kBytes);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    start(round, round % 2 == 0 ? 1 : kPieces);
    if (round % 4 < 2) {
      ASSERT_EQ(mob_poll(), MOB_OK);
    }
    uint64_t old = 0;
    switch (round % 3) {
      case 0:
        ASSERT_EQ(mob_fetch_add8(target_, word, 1, &old), MOB_OK) << mob_last_error();
        break;
      case 1:
        ASSERT_EQ(mob_swap8(target_, word, round, &old), MOB_OK) << mob_last_error();
        break;
      default:
        ASSERT_EQ(mob_compare_swap8(target_, word, round - 1, round, &old), MOB_OK)
            << mob_last_error();
    }
    EXPECT_EQ(old, round - 1);
    ASSERT_EQ(mob_wait_until_u8(flag, MOB_EQ, round), MOB_OK) << mob_last_error();
    EXPECT_TRUE(has_come(round)) << round;
    ASSERT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

TEST_F(LongTransfers, AnEpochEndsBehindThem) {
  mob_epoch_t epoch = nullptr;
  ASSERT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK);
  const mob_rank_t left = left_of(mob_rank());
  for (uint64_t round = 1; round <= kRounds; ++round) {
    ASSERT_EQ(mob_epoch_post(epoch, &left, 1), MOB_OK);
    ASSERT_EQ(mob_epoch_start(epoch, &target_, 1), MOB_OK);
    start(round, round % 2 == 0 ? 1 : kPieces);
    if (round % 3 == 0) {
      ASSERT_EQ(mob_poll(), MOB_OK);
    }
    ASSERT_EQ(mob_epoch_complete(epoch), MOB_OK);
    ASSERT_EQ(mob_epoch_wait(epoch), MOB_OK);
    EXPECT_TRUE(has_come(round)) << round;
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
  ASSERT_EQ(mob_epoch_free(epoch), MOB_OK);
}

TEST(Schedule, EveryHintOfAnAllocationKeepsWhatIsPromised) {
  if (reorders()) GTEST_SKIP() << "a hook may change that order";
  constexpr size_t kWords = 400;
  Shared first(kWords * 8);
  Shared second(kWords * 8);
  const mob_rank_t target = right_of(mob_rank());
  for (size_t i = 0; i < kWords; ++i) {
    reinterpret_cast<uint64_t*>(second.at(mob_rank(), 0))[i] = i + 7;
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  for (const mob_schedule_t schedule : kSchedules) {
    SCOPED_TRACE(static_cast<int>(schedule));
    ASSERT_EQ(mob_mem_schedule(first.handle(), schedule), MOB_OK);
    std::vector<uint64_t> sent(kWords);
    std::vector<uint64_t> got(kWords);
    for (size_t i = 0; i < kWords; ++i) {
      sent[i] = i * 1000 + static_cast<uint64_t>(schedule);
      ASSERT_EQ(mob_put_nbi(target, first.at(target, i * 8), &sent[i], 8), MOB_OK);
      ASSERT_EQ(mob_get_nbi(target, second.at(target, i * 8), &got[i], 8), MOB_OK);
      ASSERT_EQ(mob_fence(), MOB_OK);
      ASSERT_EQ(mob_put8(target, first.at(target, 0), i), MOB_OK);
    }
    uint64_t last = 0;
    ASSERT_EQ(mob_get8(target, first.at(target, 0), &last), MOB_OK);
    EXPECT_EQ(last, kWords - 1);
    ASSERT_EQ(mob_flush(target), MOB_OK);
    for (size_t i = 0; i < kWords; ++i) ASSERT_EQ(got[i], i + 7);
    ASSERT_EQ(mob_barrier(), MOB_OK);
    for (size_t i = 1; i < kWords; ++i) {
      ASSERT_EQ(reinterpret_cast<uint64_t*>(first.at(mob_rank(), 0))[i],
                i * 1000 + static_cast<uint64_t>(schedule));
    }
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

TEST(Schedule, EveryHintOfAnEpochEndsItWithAllThere) {
  constexpr size_t kBytes = 20'000;
  Shared shared(2 * kBytes);
  mob_epoch_t epoch = nullptr;
  ASSERT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK);
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = left_of(mob_rank());
  std::memset(shared.at(mob_rank(), kBytes), 5, kBytes);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  for (const mob_schedule_t schedule : kSchedules) {
    SCOPED_TRACE(static_cast<int>(schedule));
    const auto data = patterned(kBytes, mob_rank(), static_cast<uint64_t>(schedule));
    std::vector<unsigned char> got(kBytes);
    ASSERT_EQ(mob_epoch_schedule(epoch, schedule), MOB_OK);
    ASSERT_EQ(mob_epoch_post(epoch, &origin, 1), MOB_OK);
    ASSERT_EQ(mob_epoch_start(epoch, &target, 1), MOB_OK);
    EXPECT_EQ(mob_epoch_schedule(epoch, schedule), MOB_ERR_STATE);
    for (size_t at = 0; at < kBytes; at += 1000) {
      ASSERT_EQ(mob_put_nbi(target, shared.at(target, at), data.data() + at, 1000), MOB_OK);
      ASSERT_EQ(mob_get_nbi(target, shared.at(target, kBytes + at), got.data() + at, 1000), MOB_OK);
    }
    ASSERT_EQ(mob_epoch_complete(epoch), MOB_OK);
    ASSERT_EQ(mob_epoch_wait(epoch), MOB_OK);
    EXPECT_EQ(got, std::vector<unsigned char>(kBytes, 5));
    EXPECT_TRUE(holds(shared.at(mob_rank(), 0),
                      patterned(kBytes, origin, static_cast<uint64_t>(schedule)), kBytes));
  }
  ASSERT_EQ(mob_epoch_free(epoch), MOB_OK);
}

// Exclusive access; and shared access twice at a time, with a change of the hint in between.
TEST(Schedule, EveryHintOfAnObjectForAccessKeepsWhatIsPromised) {
  constexpr size_t kWords = 300;
  Shared shared(2 * kWords * 8);
  mob_access_t access = nullptr;
  ASSERT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK);
  const mob_rank_t target = right_of(mob_rank());
  for (size_t i = 0; i < kWords; ++i) {
    reinterpret_cast<uint64_t*>(shared.at(mob_rank(), kWords * 8))[i] = i + 3;
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  for (const mob_schedule_t schedule : kSchedules) {
    for (const mob_access_mode_t mode : {MOB_EXCLUSIVE, MOB_SHARED}) {
      SCOPED_TRACE(10 * static_cast<int>(schedule) + static_cast<int>(mode));
      const uint64_t tag = 1000 * static_cast<uint64_t>(schedule) + static_cast<uint64_t>(mode);
      std::vector<uint64_t> got(kWords);
      ASSERT_EQ(mob_access_schedule(access, schedule), MOB_OK);
      ASSERT_EQ(mob_access_lock(access, target, mode, nullptr), MOB_OK);
      if (mode == MOB_SHARED) {
        ASSERT_EQ(mob_access_schedule(access, MOB_SCHEDULE_FIFO), MOB_OK);
        ASSERT_EQ(mob_access_lock(access, target, mode, nullptr), MOB_OK);
      }
      for (size_t i = 0; i < kWords; ++i) {
        const size_t at = i * 8;
        ASSERT_EQ(mob_put8(target, shared.at(target, at), tag + i), MOB_OK);
        ASSERT_EQ(mob_get_nbi(target, shared.at(target, (kWords + i) * 8), &got[i], 8), MOB_OK);
      }
      if (mode == MOB_SHARED) {
        ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
      }
      ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
      for (size_t i = 0; i < kWords; ++i) ASSERT_EQ(got[i], i + 3);
      ASSERT_EQ(mob_barrier(), MOB_OK);
      for (size_t i = 0; i < kWords; ++i) {
        ASSERT_EQ(reinterpret_cast<uint64_t*>(shared.at(mob_rank(), 0))[i], tag + i);
      }
      ASSERT_EQ(mob_barrier(), MOB_OK);
    }
  }
  ASSERT_EQ(mob_access_free(access), MOB_OK);
}

// Two contexts with hints of their own, or the second without, in turns. Puts of both go to words
// of their own, and to one word that the last put decides.
TEST(Schedule, EveryHintOfAContextKeepsWhatIsPromised) {
  if (reorders()) GTEST_SKIP() << "a hook may change that order";
  constexpr size_t kWords = 200;
  Shared shared((2 * kWords + 1) * 8);
  const mob_rank_t target = right_of(mob_rank());
  mob_context_t contexts[2] = {};
  for (mob_context_t& context : contexts) ASSERT_EQ(mob_context_create(&context), MOB_OK);
  uint64_t* own = reinterpret_cast<uint64_t*>(shared.at(mob_rank(), 0));
  for (const mob_schedule_t schedule : kSchedules) {
    SCOPED_TRACE(static_cast<int>(schedule));
    ASSERT_EQ(mob_context_schedule(contexts[0], schedule), MOB_OK);
    const uint64_t tag = 1000 * static_cast<uint64_t>(schedule);
    std::vector<uint64_t> sent(2 * kWords);
    for (size_t i = 0; i < 2 * kWords; ++i) {
      sent[i] = tag + i;
      ASSERT_EQ(mob_context_use(contexts[i % 2]), MOB_OK);
      ASSERT_EQ(mob_put_nbi(target, shared.at(target, i * 8), &sent[i], 8), MOB_OK);
      ASSERT_EQ(mob_fence(), MOB_OK);
      ASSERT_EQ(mob_put8(target, shared.at(target, 2 * kWords * 8), sent[i]), MOB_OK);
    }
    for (const mob_context_t context : contexts) {
      ASSERT_EQ(mob_context_use(context), MOB_OK);
      ASSERT_EQ(mob_flush(target), MOB_OK);
    }
    ASSERT_EQ(mob_context_use(MOB_CONTEXT_DEFAULT), MOB_OK);
    ASSERT_EQ(mob_barrier(), MOB_OK);
    for (size_t i = 0; i < 2 * kWords; ++i) ASSERT_EQ(own[i], tag + i);
    EXPECT_EQ(own[2 * kWords], tag + 2 * kWords - 1);
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
  // The default context, like any other.
  ASSERT_EQ(mob_context_schedule(MOB_CONTEXT_DEFAULT, MOB_SCHEDULE_FIFO), MOB_OK);
  ASSERT_EQ(mob_put8(target, shared.at(target, 0), 1), MOB_OK);
  ASSERT_EQ(mob_context_schedule(MOB_CONTEXT_DEFAULT, MOB_SCHEDULE_DEFAULT), MOB_OK);
  ASSERT_EQ(mob_put8(target, shared.at(target, 8), 2), MOB_OK);
  ASSERT_EQ(mob_flush(target), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  EXPECT_EQ(own[0], 1U);
  EXPECT_EQ(own[1], 2U);
  ASSERT_EQ(mob_context_free(contexts[0]), MOB_OK);
  EXPECT_EQ(mob_context_schedule(contexts[0], MOB_SCHEDULE_FIFO), MOB_ERR_HANDLE);
  ASSERT_EQ(mob_context_free(contexts[1]), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// A barrier, in whatever form, completes all started operations, however long: puts have arrived,
// gets have arrived, and no operation still reads memory that its owner changes next.
TEST(Schedule, EveryBarrierEndsStartedOperations) {
  constexpr size_t kBytes = 300'000;
  constexpr size_t kCounter = 4 * kBytes;
  Shared shared(4 * kBytes + 64);
  mob_epoch_t epoch = nullptr;
  ASSERT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK);
  const auto meet = [&](int round) {
    return round % 3 == 0   ? mob_barrier()
           : round % 3 == 1 ? mob_team_barrier(MOB_TEAM_WORLD)
                            : mob_epoch_fence(epoch);
  };
  const mob_rank_t self = mob_rank();
  const mob_rank_t right = right_of(self);
  const auto half = [&](int round) { return static_cast<size_t>(round % 2) * kBytes; };
  const auto offer = [&](int round) {
    const auto own = patterned(kBytes, self, round);
    std::memcpy(shared.at(self, 2 * kBytes + half(round)), own.data(), kBytes);
  };
  offer(0);
  offer(1);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  // A rank that starts nothing has nothing to wait for, and checks sooner.
  const auto acts = [](mob_rank_t rank, int round) { return round % 2 == 0 || rank % 2 == 0; };
  int round = 0;
  uint64_t least = 0;
  for (const size_t bytes : {size_t{1}, size_t{8}, size_t{600}, size_t{20'000}, size_t{100'000},
                             kBytes, size_t{8}, size_t{5'000}, kBytes, size_t{64}}) {
    for (int times = 0; times < 6; ++times, ++round) {
      const auto put = patterned(bytes, self, 100 + round);
      const auto theirs = patterned(bytes, right, round);
      const auto expected = patterned(bytes, left_of(self), 100 + round);
      std::vector<unsigned char> got(bytes);
      const uint64_t one = 1;
      if (acts(self, round)) {
        ASSERT_EQ(mob_get_nbi(right, shared.at(right, 2 * kBytes + half(round)), got.data(), bytes),
                  MOB_OK);
        ASSERT_EQ(mob_put_nbi(right, shared.at(right, half(round)), put.data(), bytes), MOB_OK);
        // It is not only started, and takes everything recorded before along.
        ASSERT_EQ(times < 3 ? mob_accumulate(right, shared.at(right, kCounter), &one, 1, MOB_UINT64,
                                             MOB_SUM)
                            : MOB_OK,
                  MOB_OK);
      }
      ASSERT_EQ(meet(round), MOB_OK);
      if (acts(left_of(self), round)) {
        least += times < 3 ? 1 : 0;
        ASSERT_TRUE(holds(shared.at(self, half(round)), expected, bytes)) << round;
      }
      // The left neighbour may be in the next round already.
      const uint64_t count =
          __atomic_load_n(reinterpret_cast<uint64_t*>(shared.at(self, kCounter)), __ATOMIC_ACQUIRE);
      ASSERT_GE(count, least) << round;
      ASSERT_LE(count, least + 1) << round;
      offer(round + 2);
      if (acts(self, round)) {
        ASSERT_EQ(got, theirs) << round;
      }
    }
  }
  ASSERT_EQ(mob_epoch_free(epoch), MOB_OK);
}

TEST(Schedule, WrongHintsAreRefused) {
  Shared shared(64);
  mob_epoch_t epoch = nullptr;
  mob_access_t access = nullptr;
  ASSERT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK);
  ASSERT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK);
  for (const int wrong : {6, 7}) {
    EXPECT_EQ(mob_mem_schedule(shared.handle(), static_cast<mob_schedule_t>(wrong)),
              MOB_ERR_ARGUMENT);
    EXPECT_EQ(mob_epoch_schedule(epoch, static_cast<mob_schedule_t>(wrong)), MOB_ERR_ARGUMENT);
    EXPECT_EQ(mob_access_schedule(access, static_cast<mob_schedule_t>(wrong)), MOB_ERR_ARGUMENT);
    EXPECT_EQ(mob_context_schedule(MOB_CONTEXT_DEFAULT, static_cast<mob_schedule_t>(wrong)),
              MOB_ERR_ARGUMENT);
  }
  EXPECT_EQ(mob_mem_schedule(nullptr, MOB_SCHEDULE_FIFO), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_epoch_schedule(nullptr, MOB_SCHEDULE_FIFO), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_schedule(nullptr, MOB_SCHEDULE_FIFO), MOB_ERR_HANDLE);
  ASSERT_EQ(mob_access_free(access), MOB_OK);
  ASSERT_EQ(mob_epoch_free(epoch), MOB_OK);
}

}  // namespace
}  // namespace mobius_test
