// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "fixture.h"

// Recorded operations for other hosts at limits: the ends of memory, other threads, a target that
// does not answer. On one host the same programs run, where everything happens at once. What takes
// a network that does what the test says is in tests/unit (scheduler_test.cpp and its neighbours).
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
  mob_status_t get(void* remote, unsigned char* to) {
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
    return mob_transfer_nbi(&transfer);
  }

  const bool gets_ = mob_rank() < mob_size() / 2;
  const mob_rank_t other_ = on_other_host();
  mob_progress_t before_{};
};

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
        ASSERT_EQ(get(shared.at(other_), got.data() + i * kBytes), MOB_OK);
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

INSTANTIATE_TEST_SUITE_P(Of, UnansweredGets,
                         ::testing::Values(MOB_CONTIGUOUS, MOB_STRIDED, MOB_SPANS));

}  // namespace
}  // namespace mobius_test
