// SPDX-License-Identifier: BSD-3-Clause

// Ordinary memory as a target: every kind of transfer on heap, stack and static variables of the
// right neighbour.

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "fixture.h"

namespace mobius_test {
namespace {

constexpr size_t kExposedBytes = 3 << 20;

unsigned char static_area[4096];

// Memory of this process that is exposed during the object's lifetime.
class Exposed {
 public:
  Exposed(void* address, size_t bytes) {
    EXPECT_EQ(mob_expose(address, bytes, 0, &handle_), MOB_OK) << mob_last_error();
    theirs_ = static_cast<unsigned char*>(exchange_address(address));
  }
  ~Exposed() {
    barrier();
    EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
  }
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;

  unsigned char* theirs() const { return theirs_; }

 private:
  mob_exposed_t handle_ = nullptr;
  unsigned char* theirs_ = nullptr;
};

std::unique_ptr<unsigned char[]> zeros(size_t bytes) {
  return std::make_unique<unsigned char[]>(bytes);
}

void flush() { EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error(); }

TEST(Exposed, HeapStackAndStaticMemory) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  unsigned char stack[4096] = {};
  const auto heap = zeros(4096);
  std::memset(static_area, 0, sizeof static_area);
  for (unsigned char* mine : {stack, heap.get(), static_area}) {
    const Exposed exposed(mine, 4096);
    for (const size_t bytes : {1, 2, 4, 8, 100, 4095}) {
      const auto data = patterned(bytes, me, 1);
      EXPECT_EQ(mob_put(right, exposed.theirs() + 1, data.data(), bytes), MOB_OK)
          << mob_last_error();
      flush();
      barrier();
      EXPECT_TRUE(holds(mine + 1, patterned(bytes, left_of(me), 1), bytes)) << bytes;
      std::vector<unsigned char> back(bytes);
      EXPECT_EQ(mob_get(right, exposed.theirs() + 1, back.data(), bytes), MOB_OK);
      EXPECT_EQ(back, data);
      barrier();
    }
    EXPECT_EQ(mob_put8(right, exposed.theirs(), 77), MOB_OK);
    uint64_t value = 0;
    EXPECT_EQ(mob_get8(right, exposed.theirs(), &value), MOB_OK);
    EXPECT_EQ(value, 77u);
  }
}

// The kernel may copy, the target may serve while it waits, or it may get a message: the get may
// take another path than the put.
TEST(Exposed, AGetSeesWhatWasPutThereBefore) {
  const mob_rank_t right = right_of(mob_rank());
  const auto mine = zeros(8);
  const Exposed exposed(mine.get(), 8);
  for (uint64_t i = 1; i <= 500; ++i) {
    ASSERT_EQ(mob_put8(right, exposed.theirs(), i), MOB_OK) << mob_last_error();
    uint64_t value = 0;
    ASSERT_EQ(mob_get8(right, exposed.theirs(), &value), MOB_OK) << mob_last_error();
    ASSERT_EQ(value, i);
  }
  flush();
}

TEST(Exposed, LargeTransfersOfEveryKind) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  const auto mine = zeros(kExposedBytes);
  const Exposed exposed(mine.get(), kExposedBytes);
  const auto data = patterned(kExposedBytes, me, 2);
  EXPECT_EQ(mob_put(right, exposed.theirs(), data.data(), kExposedBytes), MOB_OK)
      << mob_last_error();
  flush();
  barrier();
  EXPECT_TRUE(holds(mine.get(), patterned(kExposedBytes, left_of(me), 2), kExposedBytes));
  std::vector<unsigned char> back(kExposedBytes);
  mob_handle_t handle = MOB_HANDLE_DONE;
  EXPECT_EQ(mob_get_nb(right, exposed.theirs(), back.data(), kExposedBytes, &handle), MOB_OK);
  EXPECT_EQ(mob_wait(&handle), MOB_OK) << mob_last_error();
  EXPECT_TRUE(back == data);
  barrier();
  // Bytes of the pattern, as integers: two sums show in every element.
  constexpr size_t kCount = kExposedBytes / sizeof(uint32_t);
  EXPECT_EQ(mob_accumulate(right, exposed.theirs(), data.data(), kCount, MOB_UINT32, MOB_SUM),
            MOB_OK)
      << mob_last_error();
  flush();
  barrier();
  const auto left = patterned(kExposedBytes, left_of(me), 2);
  size_t wrong = 0;
  for (size_t i = 0; i < kCount; ++i) {
    uint32_t put = 0;
    uint32_t now = 0;
    std::memcpy(&put, &left[i * sizeof put], sizeof put);
    std::memcpy(&now, &mine[i * sizeof now], sizeof now);
    wrong += now != 2 * put;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(Exposed, BoxesDenseAndSparse) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  const auto mine = zeros(kExposedBytes);
  const Exposed exposed(mine.get(), kExposedBytes);
  struct Box {
    size_t run;
    size_t rows;
    ptrdiff_t stride;
  };
  for (const Box box : {Box{512, 128, 1024}, Box{8, 2000, 24}, Box{3, 40, 70'000},
                        Box{100'000, 20, 150'000}, Box{1, 5, 2}}) {
    const auto packed = static_cast<ptrdiff_t>(box.run);
    const auto data = patterned(box.run * box.rows, me, 3);
    std::memset(mine.get(), 0xaa, kExposedBytes);
    barrier();
    EXPECT_EQ(mob_put_strided(right, exposed.theirs(), &box.stride, data.data(), &packed, box.run,
                              &box.rows, 1),
              MOB_OK)
        << mob_last_error();
    flush();
    barrier();
    const auto expected = patterned(box.run * box.rows, left_of(me), 3);
    for (size_t row = 0; row < box.rows; ++row) {
      const unsigned char* at = mine.get() + static_cast<ptrdiff_t>(row) * box.stride;
      EXPECT_EQ(std::memcmp(at, &expected[row * box.run], box.run), 0) << box.run << " " << row;
      EXPECT_EQ(at[box.run], 0xaa) << box.run << " " << row;
    }
    std::vector<unsigned char> back(data.size());
    EXPECT_EQ(mob_get_strided(right, exposed.theirs(), &box.stride, back.data(), &packed, box.run,
                              &box.rows, 1),
              MOB_OK)
        << mob_last_error();
    EXPECT_TRUE(back == data) << box.run;
    barrier();
  }
}

TEST(Exposed, PiecesSpansAndFetches) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  const auto mine = zeros(64 << 10);
  const Exposed exposed(mine.get(), 64 << 10);
  constexpr size_t kPieces = 500;
  const auto data = patterned(kPieces * 16, me, 4);
  std::vector<void*> remotes;
  std::vector<void*> locals;
  for (size_t i = 0; i < kPieces; ++i) {
    remotes.push_back(exposed.theirs() + i * 48);
    locals.push_back(const_cast<unsigned char*>(&data[(kPieces - 1 - i) * 16]));
  }
  EXPECT_EQ(mob_put_pieces(right, remotes.data(), locals.data(), kPieces, 16), MOB_OK)
      << mob_last_error();
  flush();
  barrier();
  const auto expected = patterned(kPieces * 16, left_of(me), 4);
  for (size_t i = 0; i < kPieces; ++i) {
    EXPECT_EQ(std::memcmp(&mine[i * 48], &expected[(kPieces - 1 - i) * 16], 16), 0) << i;
  }
  barrier();
  const uint64_t ones[] = {1, 1, 1, 1};
  uint64_t old[4] = {};
  mob_transfer_t transfer{};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.shape = MOB_SPANS;
  transfer.rank = right;
  const mob_span_t remote[] = {{exposed.theirs(), 8}, {exposed.theirs() + 48, 24}};
  const mob_span_t local[] = {{const_cast<uint64_t*>(ones), 32}};
  transfer.remote_spans = remote;
  transfer.remote_span_count = 2;
  transfer.local_spans = local;
  transfer.local_span_count = 1;
  transfer.type = MOB_UINT64;
  transfer.op = MOB_SUM;
  transfer.fetched = old;
  EXPECT_EQ(mob_transfer(&transfer), MOB_OK) << mob_last_error();
  uint64_t was = 0;
  std::memcpy(&was, &data[(kPieces - 1) * 16], sizeof was);
  EXPECT_EQ(old[0], was);
  barrier();
  std::memcpy(&was, &expected[(kPieces - 1) * 16], sizeof was);
  uint64_t now = 0;
  std::memcpy(&now, mine.get(), sizeof now);
  EXPECT_EQ(now, was + 1);
}

TEST(Exposed, AtomicsWhileTheTargetComputes) {
  const mob_rank_t me = mob_rank();
  alignas(16) std::atomic<uint64_t> words[4] = {};
  mob_exposed_t exposed = nullptr;
  EXPECT_EQ(mob_expose(words, sizeof words, 0, &exposed), MOB_OK) << mob_last_error();
  const Shared mail(sizeof(uint64_t));
  uint64_t address = reinterpret_cast<uintptr_t>(words);
  std::memcpy(mail.local(), &address, sizeof address);
  barrier();
  EXPECT_EQ(mob_get8(0, mail.at(0), &address), MOB_OK);
  auto* counter = reinterpret_cast<uint64_t*>(address);
  constexpr uint64_t kTurns = 50;
  if (me == 0 && mob_size() > 1) {
    // The target makes no call meanwhile: its library thread serves.
    const uint64_t all = kTurns * static_cast<uint64_t>(mob_size() - 1);
    const bool polls = std::getenv("MOBIUS_PROGRESS") != nullptr &&
                       std::string_view(std::getenv("MOBIUS_PROGRESS")) == "poll";
    while (words[0].load() < all || words[2].load() < all) {
      if (polls) {
        EXPECT_EQ(mob_poll(), MOB_OK);
      }
    }
  } else if (me > 0) {
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      uint64_t old = 0;
      EXPECT_EQ(mob_fetch_add8(0, counter, 1, &old), MOB_OK) << mob_last_error();
      EXPECT_LT(old, kTurns * static_cast<uint64_t>(mob_size()));
      double value = 0;
      const double half = 0.5;
      EXPECT_EQ(mob_fetch_op(0, counter + 1, MOB_DOUBLE, MOB_SUM, &half, &value), MOB_OK);
      uint64_t seen = 0;
      uint64_t expected = 0;
      do {
        expected = seen;
        EXPECT_EQ(mob_compare_swap8(0, counter + 2, expected, expected + 1, &seen), MOB_OK);
      } while (seen != expected);
    }
  }
  barrier();
  if (me == 0) {
    const auto others = static_cast<uint64_t>(mob_size() - 1);
    EXPECT_EQ(words[0].load(), kTurns * others);
    EXPECT_EQ(words[2].load(), kTurns * others);
    double sum = 0;
    std::memcpy(&sum, &words[1], sizeof sum);
    EXPECT_EQ(sum, 0.5 * static_cast<double>(kTurns * others));
  }
  EXPECT_EQ(mob_withdraw(exposed), MOB_OK);
}

TEST(Exposed, CountersAndSignals) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  struct Area {
    uint64_t data[8];
    uint64_t signal;
  };
  auto mine = std::make_unique<Area>();
  const Exposed exposed(mine.get(), sizeof(Area));
  auto* theirs = reinterpret_cast<Area*>(exposed.theirs());
  mob_counter_t completion = nullptr;
  EXPECT_EQ(mob_counter_create(&completion), MOB_OK);
  const uint64_t data[8] = {1, 2, 3, 4, 5, 6, 7, static_cast<uint64_t>(me)};
  mob_transfer_t transfer{};
  transfer.kind = MOB_PUT;
  transfer.rank = right;
  transfer.remote = theirs->data;
  transfer.local = const_cast<uint64_t*>(data);
  transfer.bytes = sizeof data;
  transfer.completion_counter = completion;
  transfer.signal = &theirs->signal;
  transfer.signal_value = 5;
  EXPECT_EQ(mob_transfer_nbi(&transfer), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_counter_wait(completion, 1, nullptr), MOB_OK);
  while (__atomic_load_n(&mine->signal, __ATOMIC_ACQUIRE) != 5) EXPECT_EQ(mob_poll(), MOB_OK);
  EXPECT_EQ(mine->data[7], static_cast<uint64_t>(left_of(me)));
  flush();
  barrier();
  EXPECT_EQ(mob_counter_free(completion), MOB_OK);
}

TEST(Exposed, MemoryThatIsNotExposedIsRefused) {
  const mob_rank_t right = right_of(mob_rank());
  const auto mine = zeros(8192);
  uint64_t value = 0;
  void* theirs = nullptr;
  {
    const Exposed exposed(mine.get() + 100, 1000);
    theirs = exposed.theirs();
    auto* first = exposed.theirs();
    EXPECT_EQ(mob_put(right, first - 1, &value, 2), MOB_ERR_RANGE);
    EXPECT_EQ(mob_put(right, first + 999, &value, 2), MOB_ERR_RANGE);
    EXPECT_EQ(mob_get(right, first + 1000, &value, 1), MOB_ERR_RANGE);
    EXPECT_EQ(mob_put(right, first + 992, &value, 8), MOB_OK) << mob_last_error();
    barrier();
    // A second exposure that overlaps the first is merged with it.
    mob_exposed_t more = nullptr;
    EXPECT_EQ(mob_expose(mine.get() + 1000, 1000, 0, &more), MOB_OK);
    barrier();
    EXPECT_EQ(mob_put(right, first + 999, &value, 2), MOB_OK) << mob_last_error();
    flush();
    barrier();
    EXPECT_EQ(mob_withdraw(more), MOB_OK);
    EXPECT_EQ(mob_withdraw(more), MOB_ERR_HANDLE);
    barrier();
    EXPECT_EQ(mob_put(right, first + 999, &value, 2), MOB_ERR_RANGE);
  }
  barrier();
  EXPECT_EQ(mob_put(right, theirs, &value, 8), MOB_ERR_RANGE);
  mob_exposed_t exposed = nullptr;
  EXPECT_EQ(mob_expose(nullptr, 8, 0, &exposed), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose(mine.get(), 0, 0, &exposed), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose(mine.get(), 8, 8, &exposed), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose(mine.get(), 8, 0, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose(mine.get(), SIZE_MAX, 0, &exposed), MOB_ERR_RANGE);
  EXPECT_EQ(mob_expose_all(nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_withdraw(nullptr), MOB_OK);
  barrier();
}

// An access to exposed memory that its owner has unmapped is an error of the caller, whichever path
// it takes, and must not kill the owner. (The range stays reserved, so that nothing else is mapped
// there.)
TEST(Exposed, UnmappedMemoryIsAnError) {
  constexpr size_t kPages = 64 << 10;
  void* mine = mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mine, MAP_FAILED);
  const Exposed exposed(mine, kPages);
  ASSERT_EQ(mprotect(mine, kPages, PROT_NONE), 0);
  barrier();
  if (mob_size() == 1) return;  // a process that writes to its own memory gets no help
  const mob_rank_t right = right_of(mob_rank());
  unsigned char* theirs = exposed.theirs();
  std::vector<unsigned char> data(kPages, 1);
  // An operation that is complete at the origin before the target has carried it out fails in the
  // flush.
  const auto fails = [&](mob_status_t status) {
    return (status == MOB_OK ? mob_flush(right) : status) == MOB_ERR_RANGE;
  };
  EXPECT_TRUE(fails(mob_put(right, theirs, data.data(), 4096))) << mob_last_error();
  EXPECT_TRUE(fails(mob_put4(right, theirs, 1))) << mob_last_error();
  EXPECT_EQ(mob_get(right, theirs, data.data(), 4096), MOB_ERR_RANGE);
  uint64_t old = 0;
  EXPECT_EQ(mob_fetch_add8(right, theirs, 1, &old), MOB_ERR_RANGE);
  EXPECT_EQ(mob_compare_swap8(right, theirs, 0, 1, &old), MOB_ERR_RANGE);
  // Boxes of many runs, close to each other and far apart.
  for (const ptrdiff_t stride : {16, 512}) {
    const ptrdiff_t packed = 8;
    const size_t count = 128;
    EXPECT_EQ(mob_get_strided(right, theirs, &stride, data.data(), &packed, 8, &count, 1),
              MOB_ERR_RANGE);
    EXPECT_TRUE(fails(mob_put_strided(right, theirs, &stride, data.data(), &packed, 8, &count, 1)))
        << mob_last_error();
  }
  // Nothing is transferred, because the signal word is not mapped.
  mob_transfer_t transfer{};
  transfer.kind = MOB_PUT;
  transfer.shape = MOB_SPANS;
  transfer.rank = right;
  transfer.signal = reinterpret_cast<uint64_t*>(theirs);
  transfer.signal_value = 1;
  transfer.signal_op = MOB_SIGNAL_SET;
  EXPECT_TRUE(fails(mob_transfer(&transfer))) << mob_last_error();
}

// The same for a part of exposed memory that other ranks reach from the parts beside it, while the
// target waits, and while it does not.
TEST(Exposed, APartWithoutAccessIsAnError) {
  constexpr size_t kPage = 4096;
  constexpr size_t kPages = 64;
  void* memory =
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* mine = static_cast<unsigned char*>(memory);
  const Exposed exposed(mine, kPages * kPage);
  const mob_rank_t right = right_of(mob_rank());
  unsigned char* theirs = exposed.theirs();
  std::vector<unsigned char> data(kPages * kPage, 1);
  const auto put = [&](size_t at, size_t bytes) {
    const mob_status_t status = mob_put(right, theirs + at, data.data(), bytes);
    return status == MOB_OK ? mob_flush(right) : status;
  };
  EXPECT_EQ(put(20 * kPage, 16), MOB_OK) << mob_last_error();
  barrier();
  ASSERT_EQ(mprotect(mine + 20 * kPage, kPage, PROT_NONE), 0);
  barrier();
  if (mob_size() > 1) {  // a process that writes to its own memory gets no help
    for (int round = 0; round < 2; ++round) {
      // All at once, or each target waits for its turn.
      for (mob_rank_t turn = 0; turn < mob_size(); ++turn) {
        if (round == 0 || turn == mob_rank()) {
          EXPECT_EQ(put(19 * kPage, 16), MOB_OK) << mob_last_error();
          for (const size_t at : {20 * kPage, 20 * kPage - 8, 21 * kPage - 8}) {
            EXPECT_EQ(put(at, 16), MOB_ERR_RANGE) << at;
            EXPECT_EQ(mob_get(right, theirs + at, data.data(), 16), MOB_ERR_RANGE) << at;
          }
          EXPECT_EQ(put(0, kPages * kPage), MOB_ERR_RANGE);
          EXPECT_EQ(put(21 * kPage, 16), MOB_OK) << mob_last_error();
        }
        if (round == 1) barrier();
      }
    }
  }
  barrier();
  ASSERT_EQ(mprotect(mine + 20 * kPage, kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(mine[20 * kPage], 1);  // written before
}

// Access is removed and restored between waits that follow each other directly. The rank whose turn
// it is puts while its target waits in a barrier.
TEST(Exposed, AccessThatComesAndGoesBetweenWaits) {
  if (mob_size() == 1) GTEST_SKIP() << "a process that writes to its own memory is on its own";
  constexpr size_t kPage = 4096;
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Exposed exposed(memory, kPage);
  const mob_rank_t right = right_of(mob_rank());
  unsigned char* theirs = exposed.theirs();
  const uint64_t rounds = mob_size() <= 4 ? 60 : 6;
  for (mob_rank_t turn = 0; turn < mob_size(); ++turn) {
    for (uint64_t round = 1; round <= rounds; ++round) {
      const bool is_there = round % 3 != 0;
      ASSERT_EQ(mprotect(memory, kPage, is_there ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
      ASSERT_EQ(mob_barrier(), MOB_OK);
      for (int i = 0; turn == mob_rank() && i < 4; ++i) {
        mob_status_t status = mob_put(right, theirs, &round, sizeof round);
        if (status == MOB_OK) status = mob_flush(right);
        ASSERT_EQ(status, is_there ? MOB_OK : MOB_ERR_RANGE) << round << " " << i;
      }
      ASSERT_EQ(mob_barrier(), MOB_OK);
      if (is_there && right_of(turn) == mob_rank()) {
        ASSERT_EQ(std::memcmp(memory, &round, sizeof round), 0);
      }
    }
  }
  ASSERT_EQ(mprotect(memory, kPage, PROT_READ | PROT_WRITE), 0);
}

// The same by a handler, while its process waits all the time.
TEST(Exposed, AccessThatAHandlerTakesAndGives) {
  if (mob_size() == 1) GTEST_SKIP() << "a process that writes to its own memory is on its own";
  constexpr size_t kPage = 4096;
  constexpr unsigned kId = 61;
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto protect = [](const mob_message_t* message, void* page, mob_delivery_t*) {
    int access = 0;
    std::memcpy(&access, message->header, sizeof access);
    if (mprotect(page, kPage, access) != 0) mob_abort(1, "mprotect");
  };
  ASSERT_EQ(mob_handler_register(kId, protect, memory), MOB_OK);
  const Exposed exposed(memory, kPage);
  const mob_rank_t right = right_of(mob_rank());
  unsigned char* theirs = exposed.theirs();
  for (mob_rank_t turn = 0; turn < mob_size(); ++turn) {
    barrier();
    for (uint64_t round = 1; turn == mob_rank() && round <= 100; ++round) {
      const int access = round % 2 == 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
      ASSERT_EQ(mob_message_send(right, kId, &access, sizeof access, nullptr, 0, nullptr), MOB_OK);
      ASSERT_EQ(mob_flush(right), MOB_OK) << mob_last_error();
      for (int i = 0; i < 3; ++i) {
        mob_status_t status = mob_put(right, theirs, &round, sizeof round);
        if (status == MOB_OK) status = mob_flush(right);
        ASSERT_EQ(status, access == PROT_NONE ? MOB_ERR_RANGE : MOB_OK) << round << " " << i;
      }
    }
  }
  barrier();
}

// Memory between the runs of a list may be exposed but unmapped, or not exposed at all; the runs
// must be both.
TEST(Exposed, BetweenTheRunsOfAList) {
  constexpr size_t kPage = 4096;
  void* memory =
      mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* mine = static_cast<unsigned char*>(memory);
  const Exposed first(mine, 3 * kPage);
  const Exposed last(mine + 4 * kPage, kPage);
  ASSERT_EQ(mprotect(mine + kPage, kPage, PROT_NONE), 0);
  barrier();
  const mob_rank_t right = right_of(mob_rank());
  unsigned char* theirs = first.theirs();
  const uint64_t ones[] = {1, 1, 1};
  const mob_span_t local[] = {{const_cast<uint64_t*>(ones), sizeof ones}};
  mob_transfer_t transfer{};
  transfer.kind = MOB_ACCUMULATE;
  transfer.shape = MOB_SPANS;
  transfer.rank = right;
  transfer.type = MOB_UINT64;
  transfer.op = MOB_SUM;
  transfer.local_spans = local;
  transfer.local_span_count = 1;
  const auto add = [&](size_t a, size_t b, size_t c) {
    const mob_span_t remote[] = {{theirs + a, 8}, {theirs + b, 8}, {theirs + c, 8}};
    transfer.remote_spans = remote;
    transfer.remote_span_count = 3;
    const mob_status_t status = mob_transfer(&transfer);
    return status == MOB_OK ? mob_flush(right) : status;
  };
  EXPECT_EQ(add(4 * kPage + 8, 0, 2 * kPage), MOB_OK) << mob_last_error();
  EXPECT_EQ(add(8, 0, kPage - 8), MOB_OK) << mob_last_error();
  if (mob_size() > 1) {  // a process that writes to its own memory gets no help
    EXPECT_EQ(add(16, kPage, 2 * kPage), MOB_ERR_RANGE);
  }
  EXPECT_EQ(add(16, 3 * kPage, 2 * kPage), MOB_ERR_RANGE);
  barrier();
  const auto word = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, mine + at, sizeof value);
    return value;
  };
  EXPECT_EQ(word(0), 2u);
  EXPECT_EQ(word(8), 1u);
  EXPECT_EQ(word(16), 0u);
  EXPECT_EQ(word(kPage - 8), 1u);
  EXPECT_EQ(word(2 * kPage), 1u);
  EXPECT_EQ(word(4 * kPage + 8), 1u);
  barrier();
  ASSERT_EQ(mprotect(mine + kPage, kPage, PROT_READ | PROT_WRITE), 0);
}

// One rank waits in a barrier and is the target of all others, each in a part of its own:
// contiguous ranges of every length that takes another path, boxes and lists, and more at once than
// it can serve. Then it comes late, so that some ranks find no server.
TEST(Exposed, WhileTheTargetWaits) {
  constexpr size_t kPart = 72 << 10;
  const mob_rank_t me = mob_rank();
  const auto mine = zeros(kPart * static_cast<size_t>(mob_size()));
  mob_exposed_t handle = nullptr;
  ASSERT_EQ(mob_expose(mine.get(), kPart * static_cast<size_t>(mob_size()), 0, &handle), MOB_OK);
  const Shared mail(sizeof(uint64_t));
  uint64_t address = reinterpret_cast<uintptr_t>(mine.get());
  std::memcpy(mail.local(), &address, sizeof address);
  barrier();
  for (mob_rank_t target = 0; target < mob_size(); ++target) {
    EXPECT_EQ(mob_get8(target, mail.at(target), &address), MOB_OK);
    auto* theirs = reinterpret_cast<unsigned char*>(address) + kPart * static_cast<size_t>(me);
    std::vector<unsigned char> back(kPart);
    for (unsigned round = 0; round < 20 && me != target; ++round) {
      for (const size_t bytes : {1, 2, 4, 8, 31, 32, 33, 56, 57, 4096, 40000, 65536, 65537}) {
        const auto data = patterned(bytes, me, round + static_cast<unsigned>(bytes));
        back.resize(bytes);
        ASSERT_EQ(mob_put(target, theirs + round, data.data(), bytes), MOB_OK) << mob_last_error();
        ASSERT_EQ(mob_get(target, theirs + round, back.data(), bytes), MOB_OK) << mob_last_error();
        ASSERT_TRUE(back == data) << bytes << " " << round;
      }
      // Two dimensions; every other byte between them stays.
      const auto before = back;
      const ptrdiff_t strides[] = {32, 2048};
      const ptrdiff_t packed[] = {8, 8 * 16};
      const size_t counts[] = {16, 4};
      const auto data = patterned(8 * 16 * 4, me, round);
      back.resize(data.size());
      ASSERT_EQ(mob_put_strided(target, theirs + round, strides, data.data(), packed, 8, counts, 2),
                MOB_OK);
      ASSERT_EQ(mob_get_strided(target, theirs + round, strides, back.data(), packed, 8, counts, 2),
                MOB_OK);
      ASSERT_TRUE(back == data) << round;
      // Lists: few pieces, many, and more than one request has room for.
      for (const size_t count : {3, 1000, 1500}) {
        std::vector<void*> remotes;
        std::vector<void*> locals;
        const auto list = patterned(count * 8, me, round + 1);
        for (size_t i = 0; i < count; ++i) {
          remotes.push_back(theirs + 8192 + i * 24);
          locals.push_back(const_cast<unsigned char*>(&list[(count - 1 - i) * 8]));
        }
        ASSERT_EQ(mob_put_pieces(target, remotes.data(), locals.data(), count, 8), MOB_OK);
        ASSERT_EQ(mob_flush(target), MOB_OK);
        back.assign(count * 8, 0);
        for (size_t i = 0; i < count; ++i) locals[i] = &back[(count - 1 - i) * 8];
        ASSERT_EQ(mob_get_pieces(target, remotes.data(), locals.data(), count, 8), MOB_OK);
        ASSERT_TRUE(back == list) << count << " " << round;
      }
      back.resize(before.size());
      ASSERT_EQ(mob_get(target, theirs + round, back.data(), back.size()), MOB_OK);
      for (size_t at = 8; at < 2048; ++at) {
        if (at % 32 >= 8 && at < 512) {
          ASSERT_EQ(back[at], before[at]) << at;
        }
      }
    }
    barrier();
  }
  EXPECT_EQ(mob_withdraw(handle), MOB_OK);
}

// All update the same words of a rank that waits, then comes late: no update is lost, whichever
// thread carries it out.
TEST(Exposed, UpdatesWhileTheTargetWaits) {
  const uint64_t rounds = mob_size() <= 4 ? 200 : 50;
  const mob_rank_t me = mob_rank();
  // By atomic instructions; by accumulates of integers and of numbers; and by compare and swap.
  struct Words {
    uint64_t added;
    int32_t sums[100];
    double numbers[100];
    uint64_t swapped;
  } mine{};
  const Exposed exposed(&mine, sizeof mine);
  for (mob_rank_t target = 0; target < mob_size(); ++target) {
    const Shared mail(sizeof(uint64_t));
    uint64_t address = reinterpret_cast<uintptr_t>(&mine);
    std::memcpy(mail.local(), &address, sizeof address);
    barrier();
    ASSERT_EQ(mob_get8(target, mail.at(target), &address), MOB_OK);
    auto* theirs = reinterpret_cast<Words*>(address);
    const std::vector<int32_t> ones(100, 1);
    const std::vector<double> halves(100, 0.5);
    for (uint64_t round = 0; round < rounds && me != target; ++round) {
      uint64_t old = 0;
      ASSERT_EQ(mob_fetch_add8(target, &theirs->added, 1, &old), MOB_OK) << mob_last_error();
      ASSERT_GE(old, round);
      ASSERT_EQ(mob_accumulate(target, theirs->sums, ones.data(), 100, MOB_INT32, MOB_SUM), MOB_OK);
      ASSERT_EQ(mob_accumulate(target, theirs->numbers, halves.data(), 100, MOB_DOUBLE, MOB_SUM),
                MOB_OK);
      uint64_t guess = old;
      do {
        guess = old;
        ASSERT_EQ(mob_compare_swap8(target, &theirs->swapped, guess, guess + 1, &old), MOB_OK);
      } while (old != guess);
    }
    ASSERT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
    barrier();
  }
  const auto others = static_cast<uint64_t>(mob_size() - 1);
  EXPECT_EQ(mine.added, rounds * others);
  EXPECT_EQ(mine.swapped, rounds * others);
  for (size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(mine.sums[i], static_cast<int32_t>(rounds * others)) << i;
    ASSERT_EQ(mine.numbers[i], 0.5 * static_cast<double>(rounds * others)) << i;
  }
}

// A signal without data arrives, also at a word that only its owner has mapped.
TEST(Exposed, SignalsWithoutData) {
  uint64_t word = 0;
  const Exposed exposed(&word, sizeof word);
  mob_transfer_t transfer{};
  transfer.kind = MOB_PUT;
  transfer.shape = MOB_SPANS;
  transfer.rank = right_of(mob_rank());
  transfer.signal = reinterpret_cast<uint64_t*>(exposed.theirs());
  transfer.signal_value = 7;
  transfer.signal_op = MOB_SIGNAL_SET;
  EXPECT_EQ(mob_transfer(&transfer), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_wait_until_u8(&word, MOB_EQ, 7), MOB_OK) << mob_last_error();
}

// Puts that were only started wait for others to share a call: nothing may overtake them, and none
// may be lost.
TEST(Exposed, ManySmallPutsThatWereOnlyStarted) {
  if (reorders()) GTEST_SKIP() << "a hook may change that order";
  constexpr size_t kPuts = 1000;
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  const auto mine = zeros(kPuts * 64);
  const Exposed exposed(mine.get(), kPuts * 64);
  std::vector<uint64_t> values(kPuts);
  for (size_t i = 0; i < kPuts; ++i) {
    values[i] = i + 1;
    ASSERT_EQ(mob_put_nbi(right, exposed.theirs() + i * 64, &values[i], 8), MOB_OK);
  }
  flush();
  barrier();
  for (size_t i = 0; i < kPuts; ++i) {
    uint64_t found = 0;
    std::memcpy(&found, &mine[i * 64], sizeof found);
    ASSERT_EQ(found, i + 1);
  }
  barrier();
  const uint64_t one = 1;
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(mob_put_nbi(right, exposed.theirs(), &values[i], 8), MOB_OK);
    uint64_t value = 0;
    switch (i % 5) {
      case 0:
        ASSERT_EQ(mob_get8(right, exposed.theirs(), &value), MOB_OK);
        ASSERT_EQ(value, i + 1);
        break;
      case 1:
        ASSERT_EQ(mob_get(right, exposed.theirs(), &value, 8), MOB_OK);
        ASSERT_EQ(value, i + 1);
        break;
      case 2:
        ASSERT_EQ(mob_put8(right, exposed.theirs(), 5), MOB_OK);
        ASSERT_EQ(mob_get8(right, exposed.theirs(), &value), MOB_OK);
        ASSERT_EQ(value, 5u);
        break;
      case 3:
        // The target carries it out after the puts; a flush waits for it.
        ASSERT_EQ(mob_accumulate(right, exposed.theirs(), &one, 1, MOB_UINT64, MOB_SUM), MOB_OK);
        flush();
        ASSERT_EQ(mob_get8(right, exposed.theirs(), &value), MOB_OK);
        ASSERT_EQ(value, i + 2);
        break;
      default:
        ASSERT_EQ(mob_poll(), MOB_OK);
        ASSERT_EQ(mob_get8(right, exposed.theirs(), &value), MOB_OK);
        ASSERT_EQ(value, i + 1);
    }
  }
  flush();
}

// Only one put fails. The flush reports it if the put waited for others, else the call. A single
// put mostly goes at once; several wait for each other.
TEST(Exposed, PutsThatWereOnlyStartedKeepTheirOrderFewAtATime) {
  if (reorders()) GTEST_SKIP() << "a hook may change that order";
  constexpr uint64_t kRounds = 300;
  constexpr uint64_t kMost = 4;
  const mob_rank_t right = right_of(mob_rank());
  const auto memory = zeros(4096);
  const Exposed exposed(memory.get(), 4096);
  for (uint64_t round = 0; round < kRounds; ++round) {
    uint64_t values[kMost] = {};
    const uint64_t puts = round < kRounds / 2 ? 1 + round / 40 % 2 : 1 + round * 7 % kMost;
    for (uint64_t i = 0; i < puts; ++i) {
      values[i] = round * kMost + i;
      EXPECT_EQ(mob_put_nbi(right, exposed.theirs(), &values[i], sizeof values[i]), MOB_OK);
      EXPECT_EQ(mob_put_nbi(right, exposed.theirs() + 8 + 8 * i, &values[i], 8), MOB_OK);
      if (round % 3 != 0) continue;
      EXPECT_EQ(mob_put8(right, exposed.theirs() + 128, values[i]), MOB_OK);
    }
    flush();
    uint64_t found[1 + kMost] = {};
    EXPECT_EQ(mob_get(right, exposed.theirs(), found, sizeof found), MOB_OK);
    ASSERT_EQ(found[0], values[puts - 1]) << round;
    for (uint64_t i = 0; i < puts; ++i) ASSERT_EQ(found[1 + i], values[i]) << round;
    uint64_t last = 0;
    EXPECT_EQ(mob_get8(right, exposed.theirs() + 128, &last), MOB_OK);
    ASSERT_TRUE(round % 3 != 0 || last == values[puts - 1]) << round;
    if (round % 50 == 0) barrier();  // some waits are those of a target that serves
  }
  barrier();
}

TEST(Exposed, OneOfManySmallPutsFails) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  if (mob_host_size() != mob_size()) GTEST_SKIP() << "for local peers";
  constexpr size_t kPage = 4096;
  auto* pages = static_cast<unsigned char*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  {
    const Exposed exposed(pages, 3 * kPage);
    ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
    barrier();
    const uint64_t value = 9;
    mob_status_t at_once = MOB_OK;
    for (size_t page = 0; page < 3; ++page) {
      const mob_status_t status =
          mob_put_nbi(right, exposed.theirs() + page * kPage, &value, sizeof value);
      if (me == right) {
        // A rank accesses its own memory by loads and stores, of which this one would crash.
        break;
      }
      if (page == 1) at_once = status;
      ASSERT_TRUE(status == MOB_OK || (page == 1 && status == MOB_ERR_RANGE)) << mob_last_error();
    }
    if (me != right) {
      EXPECT_EQ(mob_flush(right), at_once == MOB_OK ? MOB_ERR_RANGE : MOB_OK);
    }
    barrier();
    ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_READ | PROT_WRITE), 0);
    if (me != right) {
      EXPECT_EQ(pages[0], 9);
      EXPECT_EQ(pages[kPage], 0);
      EXPECT_EQ(pages[2 * kPage], 9);
    }
  }
  munmap(pages, 3 * kPage);
}

}  // namespace
}  // namespace mobius_test
