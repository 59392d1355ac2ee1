// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "fixture.h"

// Recorded operations for other hosts at limits: the ends of memory, wrong addresses, other
// threads, a target that does not answer. On one host the same programs run, where everything
// happens at once.
namespace mobius_test {
namespace {

// The address space of one allocation, so that the next one may begin where it ends.
constexpr size_t kWhole = size_t{2} << 20;

mob_rank_t on_other_host() {
  return static_cast<mob_rank_t>((mob_rank() + mob_size() / 2) % mob_size());
}

// Two allocations of kWhole bytes; the second begins where the first ends.
class Neighbours {
 public:
  explicit Neighbours(mob_rank_t target) : target_(target) {
    for (auto& each : all_) each = std::make_unique<Shared>(kWhole);
    for (const auto& one : all_) {
      for (const auto& other : all_) {
        if (other->at(target) == one->at(target) + kWhole) {
          first_ = one.get();
          second_ = other.get();
          return;
        }
      }
    }
  }

  bool are_there() const { return first_ != nullptr; }
  // An address in the target, as if the two were one.
  unsigned char* at(size_t offset) const {
    return offset < kWhole ? first_->at(target_, offset) : second_->at(target_, offset - kWhole);
  }

 private:
  const mob_rank_t target_;
  std::array<std::unique_ptr<Shared>, 6> all_;
  Shared* first_ = nullptr;
  Shared* second_ = nullptr;
};

void move_in_pieces(const Neighbours& neighbours, size_t begin, size_t end, size_t piece) {
  const mob_rank_t target = on_other_host();
  const auto data = patterned(end - begin, mob_rank(), static_cast<int>(piece % 7));
  std::vector<unsigned char> got(data.size());
  for (size_t at = begin; at < end; at += piece) {
    ASSERT_EQ(mob_put_nbi(target, neighbours.at(at), data.data() + (at - begin), piece), MOB_OK);
  }
  ASSERT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
  for (size_t at = begin; at < end; at += piece) {
    ASSERT_EQ(mob_get_nbi(target, neighbours.at(at), got.data() + (at - begin), piece), MOB_OK);
  }
  ASSERT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
  ASSERT_EQ(std::memcmp(got.data(), data.data(), data.size()), 0) << piece;
}

TEST(Schedule, NeighboursInTwoAllocationsAreAllThere) {
  const int32_t local_size = mob_host_size();
  int32_t most = 0;  // on any host: all ranks skip it, or none
  ASSERT_EQ(mob_allreduce(MOB_TEAM_WORLD, MOB_MAX, MOB_INT32, &local_size, &most, 1), MOB_OK);
  if (most > 1) GTEST_SKIP() << "what lies side by side belongs to several ranks";
  const Neighbours neighbours(on_other_host());
  ASSERT_TRUE(neighbours.are_there());
  move_in_pieces(neighbours, kWhole - 64, kWhole + 64, 64);
  move_in_pieces(neighbours, kWhole - 640, kWhole + 640, 64);
  move_in_pieces(neighbours, kWhole - 40'960, kWhole + 40'960, 8192);
  move_in_pieces(neighbours, 0, 2 * kWhole, size_t{64} << 10);
  // A put that leads from one into the other is wrong by itself.
  const auto data = patterned(128, mob_rank(), 1);
  EXPECT_EQ(outcome(on_other_host(),
                    mob_put(on_other_host(), neighbours.at(kWhole - 64), data.data(), 128)),
            MOB_ERR_RANGE);
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

TEST(Schedule, AnErrorOfOneOfManyRowsLeavesTheOthers) {
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "on one host the call itself fails";
  constexpr size_t kRows = 10;
  constexpr size_t kRow = 64;
  constexpr size_t kDistance = 128;
  const mob_rank_t target = on_other_host();
  Shared shared(kRows * kDistance);
  const auto data = patterned((kRows + 1) * kRow, mob_rank(), 1);
  for (size_t row = 0; row <= kRows; ++row) {  // the last lies behind the end
    ASSERT_EQ(
        mob_put_nbi(target, shared.at(target) + row * kDistance, data.data() + row * kRow, kRow),
        MOB_OK);
  }
  EXPECT_EQ(mob_flush(target), MOB_ERR_RANGE);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  const auto expected = patterned((kRows + 1) * kRow, on_other_host(), 1);
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(std::memcmp(shared.local() + row * kDistance, expected.data() + row * kRow, kRow), 0)
        << row;
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// Rows at one distance that leads around the end of the address space.
TEST(Schedule, RowsBeyondAllAddressesAreRefused) {
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "on one host the call itself fails";
  if (reorders()) GTEST_SKIP() << "which of two puts to one place is the last one matters";
  const mob_rank_t target = on_other_host();
  Shared shared(4096);
  for (const uint64_t far : {uint64_t{1} << 63, uint64_t{1} << 62}) {
    const auto data = patterned(size_t{3} * 100, mob_rank(), 2);
    auto* const near = shared.at(target);
    for (uint64_t row = 0; row < 3; ++row) {
      auto* const to = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(near) + row * far);
      ASSERT_EQ(mob_put_nbi(target, to, data.data() + row * 100, 100), MOB_OK);
    }
    EXPECT_EQ(mob_flush(target), MOB_ERR_RANGE);
    EXPECT_NE(std::strstr(mob_last_error(), "not in one of its allocations"), nullptr)
        << mob_last_error();
    ASSERT_EQ(mob_barrier(), MOB_OK);
    // With the first distance the third row would be the first again.
    const auto expected = patterned(size_t{3} * 100, on_other_host(), 2);
    const size_t last = far << 1 == 0 ? 200 : 0;
    EXPECT_EQ(std::memcmp(shared.local(), expected.data() + last, 100), 0);
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
}

TEST(Schedule, HintsAndAllocationsComeAndGoBesideTransfers) {
  const mob_rank_t target = on_other_host();
  Shared shared(4096);
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    const std::array<uint64_t, 4> data{1, 2, 3, 4};
    while (!is_over) {
      for (size_t i = 0; i < data.size(); ++i) {
        ASSERT_EQ(mob_put_nbi(target, shared.at(target, i * 512), data.data(), sizeof data),
                  MOB_OK);
      }
      ASSERT_EQ(mob_flush(target), MOB_OK);
    }
  });
  const int rounds = mobius_test::rounds(200, 20);
  for (int round = 0; round < rounds; ++round) {
    const Shared passing(4096);
    const auto hint = round % 2 == 0 ? MOB_SCHEDULE_AGGREGATE : MOB_SCHEDULE_INTERLEAVE;
    EXPECT_EQ(mob_mem_schedule(passing.handle(), hint), MOB_OK);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(mob_context_schedule(MOB_CONTEXT_DEFAULT, hint), MOB_OK);
      EXPECT_EQ(mob_context_schedule(MOB_CONTEXT_DEFAULT, MOB_SCHEDULE_DEFAULT), MOB_OK);
    }
  }
  is_over = true;
  other.join();
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// The thread that records many operations keeps the lock of its queue by plain stores. Another
// thread that processes answers meanwhile must not take it away: then every call would cost ten
// times as much, for up to a million of them.
TEST(Schedule, AnswersLeaveTheShortWayOpen) {
  const mob_rank_t target = on_other_host();
  const Shared shared(64 << 10);
  const std::vector<unsigned char> data = patterned(64 << 10, mob_rank(), 0);
  constexpr size_t kPiece = 64;
  const auto put_neighbours = [&] {
    for (size_t at = 0; at < data.size(); at += kPiece) {
      ASSERT_EQ(mob_put_nbi(target, shared.at(target, at), data.data() + at, kPiece), MOB_OK);
    }
  };
  const auto is_open = [] {
    return __atomic_load_n(&mob_append_run_->bias.thread, __ATOMIC_RELAXED) == mob_thread_();
  };
  bool was_open = false;
  // The kernel takes some time to grant this to a process.
  for (int round = 0; !was_open && round < 30; ++round) {
    put_neighbours();
    was_open = is_open();
    ASSERT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (int round = 0; was_open && round < 10; ++round) {
    put_neighbours();
    // It is sent at once, with all earlier puts.
    ASSERT_EQ(mob_put(target, shared.at(target), data.data(), kPiece), MOB_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
  }
  put_neighbours();
  EXPECT_EQ(is_open(), was_open);
  ASSERT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
  ASSERT_EQ(mob_barrier(), MOB_OK);
  if (!was_open) GTEST_SKIP() << "nothing is recorded on a short way here";
}

// One thread's put becomes visible while another thread has exclusive access to the target.
TEST(Schedule, ThreadsDoNotWaitForTheEpochsOfOthers) {
  if (mob_size() == 1) GTEST_SKIP() << "needs a target";
  const mob_rank_t origin = 0;
  const auto target = static_cast<mob_rank_t>(mob_size() - 1);
  Shared shared(2 * sizeof(uint64_t));
  std::memset(shared.local(), 0, 2 * sizeof(uint64_t));
  mob_access_t access = nullptr;
  ASSERT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  if (mob_rank() == target) {
    ASSERT_EQ(mob_wait_until_u8(reinterpret_cast<uint64_t*>(shared.local()), MOB_EQ, 1), MOB_OK);
    ASSERT_EQ(mob_put8(origin, shared.at(origin, 8), 1), MOB_OK);
    ASSERT_EQ(mob_flush(origin), MOB_OK);
  } else if (mob_rank() == origin) {
    std::atomic<int> step = 0;
    std::thread holder([&] {
      EXPECT_EQ(mob_access_lock(access, target, MOB_EXCLUSIVE, nullptr), MOB_OK);
      step = 1;
      step.wait(1);
      EXPECT_EQ(mob_access_unlock(access, target), MOB_OK);
    });
    while (step == 0) std::this_thread::yield();
    ASSERT_EQ(mob_put8(target, shared.at(target), 1), MOB_OK);
    // Without a call that would send it. The limit turns a hang into a failure.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto* const reply = reinterpret_cast<uint64_t*>(shared.local() + 8);
    while (__atomic_load_n(reply, __ATOMIC_ACQUIRE) == 0 &&
           std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_EQ(__atomic_load_n(reply, __ATOMIC_ACQUIRE), 1u);
    step = 2;
    step.notify_all();
    holder.join();
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  ASSERT_EQ(mob_access_free(access), MOB_OK);
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// AddressSanitizer keeps freed memory for a while, and ThreadSanitizer needs much beside it.
void expect_grown_by_less_than([[maybe_unused]] size_t bytes, [[maybe_unused]] size_t begin) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_bytes(), begin + bytes);
#endif
}

// Transfers too long for a packed message, one by one, to a target that does not answer for a
// while.
TEST(Schedule, LongTransfersToOneThatDoesNotAnswerAreFew) {
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "only between hosts";
  constexpr size_t kBytes = 12'000;
  constexpr size_t kMany = 8000;
  const bool puts = mob_rank() < mob_size() / 2;
  Shared shared(2 * kBytes);
  const mob_rank_t target = on_other_host();
  const auto data = patterned(kBytes, mob_rank(), 1);
  const auto put_often = [&](size_t times) {
    for (size_t i = 0; i < times; ++i) {
      ASSERT_EQ(mob_put_nbi(target, shared.at(target, i % 2 * kBytes), data.data(), kBytes),
                MOB_OK);
    }
  };
  // Buffers that stay.
  put_often(1000);
  ASSERT_EQ(mob_flush(target), MOB_OK);
  mob_progress_t before{};
  ASSERT_EQ(puts ? MOB_OK : mob_progress_set(MOB_PROGRESS_POLL, &before), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  if (puts) {
    const size_t begin = resident_bytes();
    put_often(kMany);
    // All of them together would be twelve times as many.
    expect_grown_by_less_than(size_t{8} << 20, begin);
    ASSERT_EQ(mob_flush(target), MOB_OK);
  } else {
    usleep(300'000);
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  ASSERT_EQ(puts ? MOB_OK : mob_progress_set(before, nullptr), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// A long put is sent from the caller's buffer if that stays unchanged. It does not stay if the call
// returns before the put is sent, here to a target that accepts nothing for a while.
TEST(Schedule, LongPutsThatAreTheCallersAgainAreNotReadLater) {
  if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "only between hosts";
  constexpr size_t kBytes = 60'000;
  constexpr size_t kPuts = 100;
  const bool puts = mob_rank() < mob_size() / 2;
  const Shared shared(kPuts * kBytes);
  const mob_rank_t target = on_other_host();
  const auto value = [](mob_rank_t origin, size_t i) {
    return static_cast<unsigned char>(1 + (i + static_cast<size_t>(origin)) % 200);
  };
  mob_progress_t before{};
  ASSERT_EQ(puts ? MOB_OK : mob_progress_set(MOB_PROGRESS_POLL, &before), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  if (puts) {
    std::vector<unsigned char> own(kBytes);
    for (size_t i = 0; i < kPuts; ++i) {
      std::memset(own.data(), value(mob_rank(), i), kBytes);
      ASSERT_EQ(mob_put(target, shared.at(target, i * kBytes), own.data(), kBytes), MOB_OK);
      std::memset(own.data(), 255, kBytes);
    }
    ASSERT_EQ(mob_flush(target), MOB_OK);
  } else {
    usleep(200'000);
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  for (size_t i = 0; !puts && i < kPuts; ++i) {
    ASSERT_TRUE(all_are(shared.local() + i * kBytes, kBytes, value(target, i))) << i;
  }
  ASSERT_EQ(puts ? MOB_OK : mob_progress_set(before, nullptr), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
}

// Half of the ranks get from the others, and process answers only where they wait for them. They
// get one contiguous range, or rows with gaps that their target has to pack.
class UnansweredGets : public ::testing::TestWithParam<mob_shape_t> {
 protected:
  static constexpr size_t kRows = 100;
  static constexpr size_t kRowBytes = 1000;
  static constexpr size_t kBytes = kRows * kRowBytes;
  static constexpr size_t kDistance = kRowBytes + 16;
  static constexpr size_t kExtent = kRows * kDistance;

  void SetUp() override {
    if (mob_host_size() * 2 > mob_size()) GTEST_SKIP() << "only between hosts";
    if (gets_) {
      ASSERT_EQ(mob_progress_set(MOB_PROGRESS_POLL, &before_), MOB_OK);
    }
  }
  void TearDown() override {
    ASSERT_EQ(mob_barrier(), MOB_OK);
    if (gets_ && !IsSkipped()) {
      ASSERT_EQ(mob_progress_set(before_, nullptr), MOB_OK);
    }
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }

  // Starts a get of all rows of the memory at `remote` in the other rank.
  mob_status_t get(void* remote, unsigned char* to, mob_handle_t* handle) {
    constexpr size_t kCount = kRows;
    constexpr ptrdiff_t kRemote = kDistance;
    constexpr ptrdiff_t kLocal = kRowBytes;
    mob_transfer_t transfer{};
    transfer.kind = MOB_GET;
    transfer.shape = GetParam();
    transfer.rank = other_;
    transfer.remote = remote;
    transfer.local = to;
    transfer.bytes = transfer.shape == MOB_CONTIGUOUS ? kBytes : kRowBytes;
    transfer.dimensions = 1;
    transfer.counts = &kCount;
    transfer.remote_strides = &kRemote;
    transfer.local_strides = &kLocal;
    std::vector<mob_span_t> spans;
    for (size_t row = 0; row < kRows; ++row) {
      spans.push_back({static_cast<char*>(remote) + row * kDistance, kRowBytes});
    }
    const mob_span_t whole{to, kBytes};
    transfer.remote_spans = spans.data();
    transfer.remote_span_count = kRows;
    transfer.local_spans = &whole;
    transfer.local_span_count = 1;
    return handle != nullptr ? mob_transfer_nb(&transfer, handle) : mob_transfer_nbi(&transfer);
  }

  // The bytes that this get reads of a pattern.
  static std::vector<unsigned char> rows_of(const std::vector<unsigned char>& pattern) {
    const size_t distance = GetParam() == MOB_CONTIGUOUS ? kRowBytes : kDistance;
    std::vector<unsigned char> rows(kBytes);
    for (size_t row = 0; row < kRows; ++row) {
      std::memcpy(rows.data() + row * kRowBytes, pattern.data() + row * distance, kRowBytes);
    }
    return rows;
  }

  // So many that most are under way.
  std::vector<mob_handle_t> get_often(void* remote) {
    std::vector<mob_handle_t> handles(2000);
    got_.resize(kBytes);
    for (mob_handle_t& handle : handles) EXPECT_EQ(get(remote, got_.data(), &handle), MOB_OK);
    return handles;
  }

  std::vector<unsigned char> got_;
  const bool gets_ = mob_rank() < mob_size() / 2;
  const mob_rank_t other_ = on_other_host();
  mob_progress_t before_{};
};

TEST_P(UnansweredGets, CostTheirTargetLittle) {
  Shared shared(kExtent);
  const auto mine = patterned(kExtent, mob_rank(), 1);
  std::memcpy(shared.local(), mine.data(), kExtent);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  if (gets_) {
    std::vector<mob_handle_t> handles = get_often(shared.at(other_));
    usleep(500'000);
    ASSERT_EQ(mob_wait_all(handles.data(), handles.size()), MOB_OK) << mob_last_error();
    EXPECT_EQ(got_, rows_of(patterned(kExtent, other_, 1)));
  } else {
    const size_t begin = resident_bytes();
    usleep(300'000);
    // All answers together would be six times as many.
    expect_grown_by_less_than(size_t{32} << 20, begin);
  }
}

// A rank that waits for an epoch may overwrite what others read in it.
TEST_P(UnansweredGets, AreReadBeforeTheirEpochEnds) {
  constexpr size_t kMany = 200;
  Shared shared(kExtent);
  mob_epoch_t epoch = nullptr;
  ASSERT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK);
  std::vector<unsigned char> got(gets_ ? kMany * kBytes : 0);
  for (int round = 1; round < 8; ++round) {
    std::memset(shared.local(), round, kExtent);
    ASSERT_EQ(mob_barrier(), MOB_OK);
    if (gets_) {
      ASSERT_EQ(mob_epoch_start(epoch, &other_, 1), MOB_OK);
      for (size_t i = 0; i < kMany; ++i) {
        ASSERT_EQ(get(shared.at(other_), got.data() + i * kBytes, nullptr), MOB_OK);
      }
      ASSERT_EQ(mob_epoch_complete(epoch), MOB_OK);
      EXPECT_TRUE(all_are(got.data(), got.size(), static_cast<unsigned char>(round))) << round;
    } else {
      ASSERT_EQ(mob_epoch_post(epoch, &other_, 1), MOB_OK);
      ASSERT_EQ(mob_epoch_wait(epoch), MOB_OK);
      std::memset(shared.local(), 77, kExtent);
    }
    ASSERT_EQ(mob_barrier(), MOB_OK);
  }
  ASSERT_EQ(mob_epoch_free(epoch), MOB_OK);
}

// The target withdraws the memory while none of its threads serves.
TEST_P(UnansweredGets, DoNotTouchWithdrawnMemory) {
  Shared where(sizeof(uint64_t));
  void* mine = mmap(nullptr, kExtent, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mine, MAP_FAILED);
  std::memset(mine, 7, kExtent);
  mob_exposed_t exposed{};
  ASSERT_EQ(mob_expose(mine, kExtent, 0, &exposed), MOB_OK) << mob_last_error();
  ASSERT_EQ(mob_put8(other_, where.at(other_), reinterpret_cast<uintptr_t>(mine)), MOB_OK);
  ASSERT_EQ(mob_barrier(), MOB_OK);
  mob_progress_t before{};
  if (gets_) {
    uintptr_t theirs = 0;
    std::memcpy(&theirs, where.local(), sizeof theirs);
    std::vector<mob_handle_t> handles = get_often(reinterpret_cast<void*>(theirs));
    usleep(400'000);
    bool any = false;
    for (mob_handle_t& handle : handles) {
      const mob_status_t status = mob_wait(&handle);
      any |= status == MOB_OK;
      EXPECT_TRUE(status == MOB_OK || status == MOB_ERR_RANGE) << mob_last_error();
    }
    EXPECT_TRUE(!any || all_are(got_.data(), kBytes, 7));
  } else {
    usleep(200'000);
    ASSERT_EQ(mob_progress_set(MOB_PROGRESS_POLL, &before), MOB_OK);
  }
  ASSERT_EQ(mob_withdraw(exposed), MOB_OK) << mob_last_error();
  ASSERT_EQ(munmap(mine, kExtent), 0);
  if (!gets_) {
    ASSERT_EQ(mob_progress_set(before, nullptr), MOB_OK);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, UnansweredGets,
                         ::testing::Values(MOB_CONTIGUOUS, MOB_STRIDED, MOB_SPANS));

}  // namespace
}  // namespace mobius_test
