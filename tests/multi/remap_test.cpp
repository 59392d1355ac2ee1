// SPDX-License-Identifier: BSD-3-Clause

// Exposed memory whose pages move into shared memory: the program's own view of it stays, and local
// peers access it like an allocation.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "fixture.h"
#include "leaks.h"
#include "mappings.h"

namespace mobius_test {
namespace {

constexpr size_t kPage = 4096;

alignas(kPage) unsigned char static_area[3 * kPage];
unsigned char small_static_area[24];

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Heap = std::unique_ptr<unsigned char[], Free>;

// malloc() itself is tested.
Heap heap(size_t bytes) {
  return Heap(static_cast<unsigned char*>(std::malloc(bytes)));  // NOLINT
}

// Memory of this process that is moved during the object's lifetime.
class Moved {
 public:
  Moved(void* address, size_t bytes) {
    EXPECT_EQ(mob_expose(address, bytes, MOB_EXPOSE_REMAP, &handle_), MOB_OK) << mob_last_error();
    theirs_ = static_cast<unsigned char*>(exchange_address(address));
  }
  ~Moved() {
    barrier();
    EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
    barrier();
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  unsigned char* theirs() const { return theirs_; }

 private:
  mob_exposed_t handle_ = nullptr;
  unsigned char* theirs_ = nullptr;
};

void put_and_get(unsigned char* mine, size_t bytes) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  const auto before = patterned(bytes, me, 1);
  std::memcpy(mine, before.data(), bytes);
  {
    const Moved moved(mine, bytes);
    EXPECT_EQ(access_of(mine), moved_access());
    EXPECT_EQ(access_of(mine + bytes - 1), moved_access());
    EXPECT_TRUE(holds(mine, before, bytes)) << bytes;
    std::vector<unsigned char> got(bytes);
    EXPECT_EQ(mob_get(right, moved.theirs(), got.data(), bytes), MOB_OK) << mob_last_error();
    EXPECT_TRUE(holds(got.data(), patterned(bytes, right, 1), bytes)) << bytes;
    barrier();
    const auto data = patterned(bytes, me, 2);
    EXPECT_EQ(mob_put(right, moved.theirs(), data.data(), bytes), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_flush_all(), MOB_OK);
    barrier();
    EXPECT_TRUE(holds(mine, patterned(bytes, left_of(me), 2), bytes)) << bytes;
    void* direct = nullptr;
    if (mobius_test::same_host(right) && mobius_test::on_team.is_one_job) {
      EXPECT_EQ(mob_ptr(right, moved.theirs(), &direct), MOB_OK) << mob_last_error();
    }
    if (direct != nullptr) {
      EXPECT_TRUE(holds(static_cast<unsigned char*>(direct), data, bytes));
    }
    // The first byte after the end is not exposed, although it is on the same page.
    unsigned char byte = 0;
    EXPECT_EQ(mob_get(right, moved.theirs() + bytes, &byte, 1), MOB_ERR_RANGE);
    EXPECT_EQ(mob_get(right, moved.theirs() - 1, &byte, 1), MOB_ERR_RANGE);
  }
  EXPECT_TRUE(holds(mine, patterned(bytes, left_of(me), 2), bytes)) << bytes;
  EXPECT_EQ(access_of(mine), "rw-p");
}

TEST(Remap, HeapBlocksOfManySizes) {
  for (const size_t bytes : {size_t{1}, size_t{24}, size_t{1000}, kPage, size_t{40'000},
                             size_t{300'000}, (size_t{5} << 20) + 17}) {
    const Heap mine = heap(bytes);
    put_and_get(mine.get(), bytes);
  }
}

TEST(Remap, StaticMemory) {
  put_and_get(static_area, sizeof static_area);
  put_and_get(small_static_area, sizeof small_static_area);
}

TEST(Remap, NeighboursOnThePagesStay) {
  std::vector<Heap> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(heap(100));
    std::memset(blocks.back().get(), i, 100);
  }
  const mob_rank_t right = right_of(mob_rank());
  {
    const Moved moved(blocks[100].get(), 100);
    // Neighbouring blocks and the heap stay in use.
    for (int i = 0; i < 200; ++i)
      EXPECT_TRUE(
          all_are(blocks[static_cast<size_t>(i)].get(), 100, static_cast<unsigned char>(i)));
    blocks[99] = heap(100);
    std::memset(blocks[99].get(), 1, 100);
    blocks[101].reset();
    const auto data = patterned(100, mob_rank(), 5);
    barrier();
    EXPECT_EQ(mob_put(right, moved.theirs(), data.data(), 100), MOB_OK) << mob_last_error();
  }
  EXPECT_TRUE(holds(blocks[100].get(), patterned(100, left_of(mob_rank()), 5), 100));
  EXPECT_TRUE(all_are(blocks[99].get(), 100, 1));
  EXPECT_TRUE(all_are(blocks[102].get(), 100, 102));
}

TEST(Remap, ValuesAtomicsAndAccumulates) {
  const mob_rank_t me = mob_rank();
  alignas(kPage) static std::atomic<uint64_t> words[kPage / 8];
  for (auto& word : words) word.store(0);
  const Moved moved(words, sizeof words);
  const Shared mail(sizeof(uint64_t));
  const auto address = reinterpret_cast<uintptr_t>(words);
  std::memcpy(mail.local(), &address, sizeof address);
  barrier();
  uint64_t first = 0;
  EXPECT_EQ(mob_get8(0, mail.at(0), &first), MOB_OK);
  auto* of_zero = reinterpret_cast<uint64_t*>(first);
  constexpr uint64_t kTurns = 2000;
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    uint64_t old = 0;
    EXPECT_EQ(mob_fetch_add8(0, of_zero, 1, &old), MOB_OK) << mob_last_error();
    // The owner's own instructions and those of its local peers exclude each other.
    if (me == 0) words[0].fetch_add(1);
    uint32_t old4 = 0;
    EXPECT_EQ(mob_fetch_add4(0, of_zero + 1, 1, &old4), MOB_OK);
    const double half = 0.5;
    EXPECT_EQ(mob_accumulate(0, of_zero + 2, &half, 1, MOB_DOUBLE, MOB_SUM), MOB_OK);
    uint64_t seen = 0;
    uint64_t expected = 0;
    do {
      expected = seen;
      EXPECT_EQ(mob_compare_swap8(0, of_zero + 3, expected, expected + 1, &seen), MOB_OK);
    } while (seen != expected);
  }
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  barrier();
  if (me == 0) {
    const uint64_t all = kTurns * static_cast<uint64_t>(mob_size());
    EXPECT_EQ(words[0].load(), all + kTurns);
    EXPECT_EQ(words[1].load(), all);
    double sum = 0;
    std::memcpy(&sum, &words[2], sizeof sum);
    EXPECT_EQ(sum, 0.5 * static_cast<double>(all));
    EXPECT_EQ(words[3].load(), all);
  }
  barrier();
  auto* theirs = reinterpret_cast<uint64_t*>(moved.theirs());
  const mob_rank_t right = right_of(me);
  EXPECT_EQ(mob_put8(right, theirs + 10, 77), MOB_OK);
  EXPECT_EQ(mob_put1(right, reinterpret_cast<uint8_t*>(theirs + 11), 5), MOB_OK);
  const uint64_t data = 3;
  EXPECT_EQ(mob_put_signal(right, theirs + 12, &data, sizeof data, theirs + 13, 9, MOB_SIGNAL_SET),
            MOB_OK)
      << mob_last_error();
  uint64_t value = 0;
  EXPECT_EQ(mob_get8(right, theirs + 10, &value), MOB_OK);
  EXPECT_EQ(value, 77u);
  while (words[13].load() != 9) EXPECT_EQ(mob_poll(), MOB_OK);
  EXPECT_EQ(words[12].load(), 3u);
}

TEST(Remap, Strided) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  constexpr size_t kBytes = 1 << 20;
  constexpr size_t kRun = 24;
  const size_t rows = 1000;
  const ptrdiff_t stride = 1000;
  const ptrdiff_t packed = kRun;
  const Heap mine = heap(kBytes);
  std::memset(mine.get(), 0xaa, kBytes);
  const Moved moved(mine.get(), kBytes);
  const auto data = patterned(kRun * rows, me, 3);
  EXPECT_EQ(mob_put_strided(right, moved.theirs(), &stride, data.data(), &packed, kRun, &rows, 1),
            MOB_OK)
      << mob_last_error();
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  barrier();
  const auto expected = patterned(kRun * rows, left_of(me), 3);
  size_t wrong = 0;
  for (size_t row = 0; row < rows; ++row) {
    const unsigned char* at = mine.get() + row * static_cast<size_t>(stride);
    wrong += std::memcmp(at, &expected[row * kRun], kRun) != 0 || at[kRun] != 0xaa;
  }
  EXPECT_EQ(wrong, 0u);
  std::vector<unsigned char> back(data.size());
  EXPECT_EQ(mob_get_strided(right, moved.theirs(), &stride, back.data(), &packed, kRun, &rows, 1),
            MOB_OK);
  EXPECT_TRUE(back == data);
  barrier();
}

mob_status_t try_to_move(void* address, size_t bytes) {
  mob_exposed_t handle = nullptr;
  const mob_status_t status = mob_expose(address, bytes, MOB_EXPOSE_REMAP, &handle);
  EXPECT_EQ(handle == nullptr, status != MOB_OK);
  return status;
}

TEST(Remap, UnmovablePagesAreRefused) {
  unsigned char stack[100] = {7};
  EXPECT_EQ(try_to_move(stack, sizeof stack), MOB_ERR_ARGUMENT);
  EXPECT_NE(std::string(mob_last_error()).find("stack"), std::string::npos) << mob_last_error();
  EXPECT_EQ(stack[0], 7);
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* area = static_cast<unsigned char*>(
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, anonymous, -1, 0));
  EXPECT_EQ(mprotect(area + kPage, kPage, PROT_READ), 0);
  EXPECT_EQ(try_to_move(area + kPage, 8), MOB_ERR_ARGUMENT);
  EXPECT_EQ(try_to_move(area + kPage - 1, 2), MOB_ERR_ARGUMENT);
  EXPECT_EQ(munmap(area + 3 * kPage, kPage), 0);
  EXPECT_EQ(try_to_move(area + 2 * kPage, kPage + 1), MOB_ERR_ARGUMENT);
  EXPECT_EQ(munmap(area, 3 * kPage), 0);
  void* shared = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(try_to_move(shared, kPage), MOB_ERR_ARGUMENT);
  EXPECT_EQ(munmap(shared, kPage), 0);
  const Shared allocated(kPage);
  EXPECT_EQ(try_to_move(allocated.local(), kPage), MOB_ERR_ARGUMENT);
  // Twice, and memory that only shares a page with it.
  mob_exposed_t moved = nullptr;
  EXPECT_EQ(mob_expose(static_area + kPage, 8, MOB_EXPOSE_REMAP, &moved), MOB_OK);
  EXPECT_EQ(try_to_move(static_area + kPage, 8), MOB_ERR_STATE);
  EXPECT_EQ(try_to_move(static_area + 2 * kPage - 1, 2), MOB_ERR_STATE);
  mob_exposed_t plain = nullptr;
  EXPECT_EQ(mob_expose(static_area + kPage, 16, 0, &plain), MOB_OK);
  EXPECT_EQ(mob_withdraw(plain), MOB_OK);
  EXPECT_EQ(mob_withdraw(moved), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_withdraw(moved), MOB_ERR_HANDLE);
  mob_exposed_t unknown = nullptr;
  EXPECT_EQ(mob_expose(static_area, 8, MOB_EXPOSE_REMAP << 1, &unknown), MOB_ERR_ARGUMENT);
  barrier();
}

// Bytes of one transfer in moved and in merely exposed memory.
TEST(Remap, NextToMemoryThatIsMerelyExposed) {
  const mob_rank_t right = right_of(mob_rank());
  std::memset(static_area, 0, sizeof static_area);
  mob_exposed_t plain = nullptr;
  EXPECT_EQ(mob_expose(static_area, sizeof static_area, 0, &plain), MOB_OK);
  {
    const Moved moved(static_area + kPage, kPage);
    const auto data = patterned(sizeof static_area, mob_rank(), 6);
    EXPECT_EQ(mob_put(right, moved.theirs() - kPage, data.data(), data.size()), MOB_OK)
        << mob_last_error();
    EXPECT_EQ(mob_flush_all(), MOB_OK);
  }
  EXPECT_TRUE(holds(static_area, patterned(sizeof static_area, left_of(mob_rank()), 6),
                    sizeof static_area));
  EXPECT_EQ(mob_withdraw(plain), MOB_OK);
  barrier();
}

// A process's cached look-ups are invalid once the owner has withdrawn the memory, and when it is
// at another place then.
TEST(Remap, EarlierHitsDoNotCountAfterWithdrawal) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  unsigned char* theirs = nullptr;
  for (uint64_t round = 1; round <= 3; ++round) {
    std::memset(static_area, 0, sizeof static_area);
    {
      const Moved moved(static_area, kPage * round);
      theirs = moved.theirs();
      const uint64_t value = 100 * round + static_cast<uint64_t>(me);
      auto* const word = reinterpret_cast<uint64_t*>(theirs + 16);
      uint64_t old = 0;
      for (uint64_t turn = 0; turn < 40; ++turn) {
        EXPECT_EQ(mob_put8(right, theirs, value), MOB_OK) << mob_last_error();
        EXPECT_EQ(mob_put(right, theirs + 8, &value, 8), MOB_OK) << mob_last_error();
        EXPECT_EQ(mob_fetch_add8(right, word, 1, &old), MOB_OK) << mob_last_error();
        EXPECT_EQ(old, turn);
      }
      EXPECT_EQ(mob_flush_all(), MOB_OK);
      barrier();
    }
    const uint64_t expected[] = {100 * round + static_cast<uint64_t>(left_of(me)),
                                 100 * round + static_cast<uint64_t>(left_of(me)), 40};
    EXPECT_EQ(std::memcmp(static_area, expected, sizeof expected), 0) << round;
    // If the target is on another host, the flush may report the error.
    const auto with_flush = [right](mob_status_t status) {
      return status != MOB_OK ? status : mob_flush(right);
    };
    uint64_t value = 0;
    EXPECT_EQ(with_flush(mob_put8(right, theirs, 7)), MOB_ERR_RANGE);
    EXPECT_EQ(with_flush(mob_put(right, theirs, &value, 8)), MOB_ERR_RANGE);
    EXPECT_EQ(mob_get8(right, theirs, &value), MOB_ERR_RANGE);
    EXPECT_EQ(mob_get(right, theirs, &value, 8), MOB_ERR_RANGE);
    EXPECT_EQ(mob_fetch_add8(right, reinterpret_cast<uint64_t*>(theirs + 16), 1, &value),
              MOB_ERR_RANGE);
    barrier();
    EXPECT_EQ(std::memcmp(static_area, expected, sizeof expected), 0) << round;
  }
}

// More ranges than are mapped at their owners' addresses here, in turns and newly each time.
TEST(Remap, ManyAtATimeAndInTurns) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  constexpr size_t kRanges = 100;
  const size_t bytes = 2 * kRanges * kPage;  // every second page, so that none are neighbours
  void* area = nullptr;
  ASSERT_EQ(posix_memalign(&area, kPage, bytes), 0);
  const Heap mine(static_cast<unsigned char*>(area));
  auto* const theirs = static_cast<unsigned char*>(exchange_address(mine.get()));
  const auto word = [](unsigned char* base, size_t range) {
    return reinterpret_cast<uint64_t*>(base + 2 * range * kPage + 8 * range);
  };
  const int rounds = mobius_test::rounds(5, 2);
  for (int round = 0; round < rounds; ++round) {
    std::memset(mine.get(), 0, bytes);
    std::vector<mob_exposed_t> handles(kRanges);
    // In an order that gives them other places in shared memory each time.
    for (size_t i = 0; i < kRanges; ++i) {
      const size_t range = (i * 7 + static_cast<size_t>(round) * 13) % kRanges;
      ASSERT_EQ(
          mob_expose(mine.get() + 2 * range * kPage, kPage, MOB_EXPOSE_REMAP, &handles[range]),
          MOB_OK)
          << mob_last_error();
    }
    barrier();
    for (uint64_t turn = 0; turn < 70; ++turn) {
      for (size_t range = 0; range < kRanges; ++range) {
        uint64_t old = 0;
        ASSERT_EQ(mob_get8(right, word(theirs, range), &old), MOB_OK) << mob_last_error();
        EXPECT_EQ(old, turn);
        ASSERT_EQ(mob_put8(right, word(theirs, range), turn + 1), MOB_OK);
      }
      ASSERT_EQ(mob_flush(right), MOB_OK);
    }
    barrier();
    for (size_t range = 0; range < kRanges; ++range) {
      EXPECT_EQ(*word(mine.get(), range), 70u) << range;
      EXPECT_EQ(mob_withdraw(handles[range]), MOB_OK) << mob_last_error();
    }
    barrier();
  }
}

// At another address each time, so that a local peer that accesses it maps it anew.
TEST(Remap, LocalPeersDoNotKeepWithdrawnMemory) {
  const mob_rank_t right = right_of(mob_rank());
  const int rounds = mobius_test::rounds(200, 40);
  const size_t bytes = 2 * static_cast<size_t>(rounds) * kPage;
  const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  void* reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  size_t mappings_before = 0;
  for (int round = 0; round < rounds; ++round) {
    if (round == 10) mappings_before = mappings();
    unsigned char* page =
        static_cast<unsigned char*>(reserved) + 2 * static_cast<size_t>(round) * kPage;
    ASSERT_NE(mmap(page, kPage, PROT_READ | PROT_WRITE, fixed, -1, 0), MAP_FAILED);
    {
      const Moved moved(page, kPage);
      auto* const theirs = reinterpret_cast<uint64_t*>(moved.theirs());
      EXPECT_EQ(mob_put8(right, theirs + 1, 5), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_flush(right), MOB_OK);
      barrier();
      EXPECT_EQ(page[sizeof(uint64_t)], 5);
    }
    ASSERT_NE(mmap(page, kPage, PROT_NONE, fixed, -1, 0), MAP_FAILED);
  }
  EXPECT_LE(mappings(), mappings_before + kMappingsOfOthers);
  barrier();
  EXPECT_EQ(munmap(reserved, bytes), 0);
}

TEST(Remap, NothingIsLeftOver) {
  constexpr size_t kBytes = 100'000;
  const Heap mine = heap(kBytes);
  std::memset(mine.get(), 5, kBytes);
  const auto cycle = [&] {
    mob_exposed_t handle = nullptr;
    EXPECT_EQ(mob_expose(mine.get(), kBytes, MOB_EXPOSE_REMAP, &handle), MOB_OK)
        << mob_last_error();
    mine[0] = static_cast<unsigned char>(mine[0] + 1);
    EXPECT_EQ(mob_withdraw(handle), MOB_OK) << mob_last_error();
  };
  // The first cycles allocate what stays: memory for the lists, and separately mapped pieces of the
  // heap.
  for (int i = 0; i < 10; ++i) cycle();
  barrier();
  const size_t mappings_before = mappings();
  const size_t descriptors_before = descriptors();
  const size_t bytes_before = shared_bytes();
  barrier();
  const int cycles = mobius_test::rounds(300, 40);
  for (int i = 0; i < cycles; ++i) cycle();
  barrier();
  EXPECT_LE(mappings(), mappings_before + kMappingsOfOthers);
  EXPECT_LE(descriptors(), descriptors_before + watch_descriptors());
  // The table of chunks may have grown.
  EXPECT_LE(shared_bytes(), bytes_before + (size_t{1} << 20));
  EXPECT_EQ(mine[0], static_cast<unsigned char>(15 + cycles));
  EXPECT_TRUE(all_are(mine.get() + 1, kBytes - 1, 5));
  barrier();
}

// A wrong program that unmaps moved memory before it withdraws it, and may have mapped something
// else there: the rest goes back with its contents, and what lies there now stays.
TEST(Remap, UnmappedPagesAreNotMovedBack) {
  constexpr size_t kPages = 6;
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* area = static_cast<unsigned char*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, anonymous, -1, 0));
  ASSERT_NE(area, MAP_FAILED);
  for (size_t i = 0; i < kPages; ++i) area[i * kPage] = static_cast<unsigned char>(i + 1);
  mob_exposed_t moved = nullptr;
  ASSERT_EQ(mob_expose(area, kPages * kPage, MOB_EXPOSE_REMAP, &moved), MOB_OK) << mob_last_error();
  barrier();
  ASSERT_EQ(munmap(area + kPage, kPage), 0);
  auto* other = static_cast<unsigned char*>(
      mmap(area + 3 * kPage, kPage, PROT_READ | PROT_WRITE, anonymous | MAP_FIXED, -1, 0));
  ASSERT_EQ(other, area + 3 * kPage);
  *other = 77;
  EXPECT_EQ(mob_withdraw(moved), MOB_OK) << mob_last_error();
  for (const size_t i : {size_t{0}, size_t{2}, size_t{4}, size_t{5}}) {
    EXPECT_EQ(area[i * kPage], i + 1);
  }
  EXPECT_EQ(*other, 77);
  // All of a range.
  EXPECT_EQ(mob_expose(area + 4 * kPage, kPage, MOB_EXPOSE_REMAP, &moved), MOB_OK);
  EXPECT_EQ(munmap(area + 4 * kPage, kPage), 0);
  EXPECT_EQ(mob_withdraw(moved), MOB_OK) << mob_last_error();
  EXPECT_EQ(munmap(area, kPages * kPage), 0);
  barrier();
}

// Pages that were withdrawn keep their place in shared memory for a while, whatever the program
// does with its memory meanwhile.
TEST(Remap, AgainAndAgainOnMemoryThatChangesMeanwhile) {
  constexpr size_t kBytes = 40 * kPage;
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  const auto map = [&](void* at, int flags) {
    void* memory = mmap(at, kBytes, PROT_READ | PROT_WRITE, anonymous | flags, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<unsigned char*>(memory);
  };
  unsigned char* area = map(nullptr, 0);
  const auto last = [&] { return patterned(kBytes, left_of(mob_rank()), 2); };
  // Nothing, and a write to one page and another.
  for (int round = 0; round < 3; ++round) put_and_get(area, kBytes);
  {
    area[3 * kPage] = 9;
    area[17 * kPage + 5] = 8;
    const auto kept = last();
    const Moved moved(area, kBytes);
    unsigned char byte = 0;
    EXPECT_EQ(mob_get(right_of(mob_rank()), moved.theirs() + 3 * kPage, &byte, 1), MOB_OK);
    EXPECT_EQ(byte, 9);
    EXPECT_EQ(mob_get(right_of(mob_rank()), moved.theirs() + 17 * kPage + 5, &byte, 1), MOB_OK);
    EXPECT_EQ(byte, 8);
    EXPECT_EQ(std::memcmp(area + 20 * kPage, kept.data() + 20 * kPage, 20 * kPage), 0);
  }
  // A part of it, and with what lies around.
  put_and_get(area + 4 * kPage, 30 * kPage);
  put_and_get(area, kBytes);
  // Other memory at the same address, all of it and a part.
  EXPECT_EQ(munmap(area, kBytes), 0);
  ASSERT_EQ(map(area, MAP_FIXED), area);
  EXPECT_TRUE(all_are(area, kBytes, 0));
  {
    const Moved moved(area, kBytes);
    std::vector<unsigned char> got(kBytes, 1);
    EXPECT_EQ(mob_get(right_of(mob_rank()), moved.theirs(), got.data(), kBytes), MOB_OK);
    EXPECT_TRUE(all_are(got.data(), kBytes, 0));
  }
  put_and_get(area, kBytes);
  ASSERT_NE(mmap(area + 5 * kPage, kPage, PROT_READ | PROT_WRITE, anonymous | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_TRUE(all_are(area + 5 * kPage, kPage, 0));
  EXPECT_EQ(std::memcmp(area, last().data(), 5 * kPage), 0);
  put_and_get(area, kBytes);
  // Moved elsewhere, with new memory at the old address.
  unsigned char* const other = map(nullptr, 0);
  const size_t half = kBytes / 2;
  ASSERT_EQ(mremap(area, half, half, MREMAP_MAYMOVE | MREMAP_FIXED, other), other);
  ASSERT_NE(mmap(area, half, PROT_READ | PROT_WRITE, anonymous | MAP_FIXED, -1, 0), MAP_FAILED);
  put_and_get(area, kBytes);
  EXPECT_EQ(std::memcmp(other, last().data(), half), 0);
  // Protected: the pages do not move, and stay protected.
  ASSERT_EQ(mprotect(area + kPage, kPage, PROT_READ), 0);
  EXPECT_EQ(try_to_move(area, kBytes), MOB_ERR_ARGUMENT);
  EXPECT_EQ(access_of(area + kPage), "r--p");
  EXPECT_EQ(std::memcmp(area, last().data(), kBytes), 0);
  ASSERT_EQ(mprotect(area, kBytes, PROT_READ | PROT_WRITE), 0);
  put_and_get(area, kBytes);
  // A child of fork() has a copy, while its parent goes on.
  const auto before = last();
  const pid_t child = fork();
  if (child == 0) {
    usleep(1000);
    const bool is_same = std::memcmp(area, before.data(), kBytes) == 0;
    area[0] = 1;
    _exit(is_same ? 0 : 1);
  }
  put_and_get(area, kBytes);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::memcmp(area, before.data(), kBytes), 0);
  EXPECT_EQ(munmap(area, kBytes), 0);
  EXPECT_EQ(munmap(other, kBytes), 0);
  barrier();
}

// More memory in turn than keeps its place, and blocks that realloc() moves or lets grow.
TEST(Remap, ManyBlocksInTurn) {
  constexpr size_t kBlocks = 20;
  constexpr size_t kBytes = 5 << 20;
  const size_t mappings_before = mappings();
  const mob_rank_t right = right_of(mob_rank());
  for (size_t i = 0; i < kBlocks; ++i) {
    unsigned char* block = static_cast<unsigned char*>(std::malloc(kBytes));  // NOLINT
    for (int turn = 0; turn < 2; ++turn) {
      const auto value = static_cast<unsigned char>(10 * i + static_cast<size_t>(turn));
      block[kBytes - 1] = value;
      const Moved moved(block, kBytes);
      unsigned char byte = 0;
      EXPECT_EQ(mob_get(right, moved.theirs() + kBytes - 1, &byte, 1), MOB_OK);
      EXPECT_EQ(byte, value);
    }
    block[0] = 5;
    const auto* longer = static_cast<unsigned char*>(std::realloc(block, 2 * kBytes));  // NOLINT
    EXPECT_EQ(longer[0], 5);
    EXPECT_EQ(longer[kBytes - 1], 10 * i + 1);
    std::free(const_cast<unsigned char*>(longer));  // NOLINT
  }
  barrier();
  EXPECT_LE(mappings(), mappings_before + 20 * 2 + kMappingsOfOthers);
  barrier();
}

}  // namespace
}  // namespace mobius_test
