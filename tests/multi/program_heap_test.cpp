// SPDX-License-Identifier: BSD-3-Clause

// The program's own heap, moved into shared memory: local peers access memory from malloc() like an
// allocation, and a child of fork() has its own copy.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "fixture.h"
#include "leaks.h"
#include "mappings.h"

namespace mobius_test {
namespace {

constexpr size_t kLargestRecycled = 1032;
constexpr size_t kRoom = size_t{16} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<unsigned char[], Free>;

// malloc() itself is tested.
Block allocate(size_t bytes) {
  return Block(static_cast<unsigned char*>(std::malloc(bytes)));  // NOLINT
}

class ProgramHeap : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    EXPECT_EQ(mob_expose_heap(kRoom, &handle_), MOB_ERR_ARGUMENT);
    GTEST_SKIP() << "SKIP: a sanitizer's malloc() does not use the heap";
#else
    ASSERT_EQ(mob_expose_heap(kRoom, &handle_), MOB_OK) << mob_last_error();
#endif
  }
  void TearDown() override {
    barrier();
    EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
    barrier();
  }

  mob_exposed_t handle_ = nullptr;
};

TEST_F(ProgramHeap, MemoryOfMallocIsATarget) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  for (const size_t bytes :
       {size_t{8}, size_t{1000}, size_t{1100}, size_t{300'000}, (size_t{3} << 20) + 5}) {
    const Block mine = allocate(bytes);
    ASSERT_NE(mine, nullptr);
    const auto before = patterned(bytes, me, 1);
    std::memcpy(mine.get(), before.data(), bytes);
    auto* theirs = static_cast<unsigned char*>(exchange_address(mine.get()));
    // Small blocks may belong to other threads' arenas, freed by this thread and not moved.
    if (bytes > kLargestRecycled) {
      EXPECT_EQ(access_of(mine.get() + bytes - 1), moved_access()) << bytes;
    }
    std::vector<unsigned char> got(bytes);
    EXPECT_EQ(mob_get(right, theirs, got.data(), bytes), MOB_OK) << mob_last_error();
    EXPECT_TRUE(holds(got.data(), patterned(bytes, right, 1), bytes)) << bytes;
    barrier();
    const auto data = patterned(bytes, me, 2);
    EXPECT_EQ(mob_put(right, theirs, data.data(), bytes), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_flush_all(), MOB_OK);
    barrier();
    EXPECT_TRUE(holds(mine.get(), patterned(bytes, left_of(me), 2), bytes)) << bytes;
    void* direct = nullptr;
    // Other jobs get no pointers to moved memory.
    const bool has_pointers = same_host(right) && mobius_test::on_team.is_one_job;
    if (has_pointers && bytes > kLargestRecycled) {
      EXPECT_EQ(mob_ptr(right, theirs, &direct), MOB_OK) << mob_last_error();
    }
    barrier();
  }
}

TEST_F(ProgramHeap, AChildHasItsOwn) {
  constexpr size_t kBytes = 500'000;
  const Block mine = allocate(kBytes);
  std::memset(mine.get(), 1, kBytes);
  const pid_t child = fork();
  if (child == 0) {
    // All of it is as it was, and changes to it are invisible elsewhere.
    bool right = all_are(mine.get(), kBytes, 1);
    std::memset(mine.get(), 2, kBytes);
    for (int i = 0; i < 1000; ++i) {
      const Block more = allocate(static_cast<size_t>(i) * 97 + 1);
      std::memset(more.get(), 3, static_cast<size_t>(i) * 97 + 1);
    }
    right = right && all_are(mine.get(), kBytes, 2) && access_of(mine.get()).compare("rw-p") == 0;
    // The child is not in the job, and its own children have the same contents.
    constexpr size_t kMore = size_t{2} << 20;
    const Block more = allocate(kMore);
    std::memset(more.get(), 4, kMore);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(all_are(more.get(), kMore, 4) ? 0 : 1);
    int status = -1;
    right = right && waitpid(grandchild, &status, 0) == grandchild && status == 0;
    const std::filesystem::directory_iterator threads("/proc/self/task");
    right = right && std::distance(begin(threads), end(threads)) == 1;
    _exit(right ? 7 : 8);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(all_are(mine.get(), kBytes, 1));
  EXPECT_EQ(access_of(mine.get()), moved_access());
}

// Room that was never used takes no memory; memory used before does.
TEST_F(ProgramHeap, TakesMemoryAsItIsUsed) {
  constexpr size_t kMuch = size_t{256} << 20;
  EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
  barrier();
  const size_t before = shared_bytes();
  barrier();
  EXPECT_EQ(mob_expose_heap(kMuch, &handle_), MOB_OK) << mob_last_error();
  const Block mine = allocate(1000);
  std::memset(mine.get(), 1, 1000);
  barrier();
  EXPECT_LT(shared_bytes(), before + kMuch / 2 * static_cast<size_t>(mob_host_size()));
  barrier();
}

TEST_F(ProgramHeap, BadInput) {
  mob_exposed_t again = nullptr;
  EXPECT_EQ(mob_expose_heap(kRoom, &again), MOB_ERR_STATE);
  EXPECT_NE(std::string(mob_last_error()).find("mob_expose_heap: the heap was moved already"),
            std::string::npos)
      << mob_last_error();
  EXPECT_EQ(mob_expose_heap(0, &again), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose_heap(SIZE_MAX, &again), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose_heap(kRoom, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(again, nullptr);
}

// A block of the heap that was moved before prevents moving the rest.
TEST_F(ProgramHeap, NotOverPagesMovedBefore) {
  EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
  const Block block = allocate(50'000);
  mob_exposed_t moved = nullptr;
  EXPECT_EQ(mob_expose(block.get(), 50'000, MOB_EXPOSE_REMAP, &moved), MOB_OK) << mob_last_error();
  mob_exposed_t none = nullptr;
  EXPECT_EQ(mob_expose_heap(kRoom, &none), MOB_ERR_STATE);
  EXPECT_NE(std::string(mob_last_error()).find("mob_expose_heap: pages"), std::string::npos)
      << mob_last_error();
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(mob_withdraw(moved), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_expose_heap(kRoom, &handle_), MOB_OK) << mob_last_error();
}

// Threads that keep writing to pages while these move, there and back, lose nothing.
TEST_F(ProgramHeap, MovesUnderThreads) {
  // Every move is collective, and each of many processes waits for the others' threads.
  const bool are_few = mob_host_size() <= 4;
  const int moves = are_few ? mobius_test::rounds(5, 2) : 1;
  constexpr size_t kThreads = 3;
  const size_t running = are_few ? kThreads : 1;
  std::atomic<bool> end = false;
  std::vector<uint64_t> words(1000 * kThreads);  // of the heap
  std::array<uint64_t, kThreads> written{};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < running; ++i) {
    threads.emplace_back([&, i] {
      volatile uint64_t* mine = &words[1000 * i];
      uint64_t count = 0;
      for (; !end.load(std::memory_order_relaxed); ++count)
        mine[count % 1000] = mine[count % 1000] + 1;
      written[i] = count;
    });
  }
  for (int move = 0; move < moves; ++move) {
    EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_expose_heap(kRoom, &handle_), MOB_OK) << mob_last_error();
  }
  end.store(true);
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    const auto* mine = &words[1000 * i];
    EXPECT_EQ(std::accumulate(mine, mine + 1000, uint64_t{0}), written[i]);
  }
}

// A thread that sleeps on a word of such a page is still woken.
TEST_F(ProgramHeap, SleepersAreWoken) {
  struct Sleep {
    std::mutex mutex;
    std::condition_variable changed;
    bool go = false;
  };
  const auto sleep = std::make_unique<Sleep>();
  std::thread sleeper([&] {
    std::unique_lock lock(sleep->mutex);
    sleep->changed.wait(lock, [&] { return sleep->go; });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_expose_heap(kRoom, &handle_), MOB_OK) << mob_last_error();
  {
    const std::lock_guard lock(sleep->mutex);
    sleep->go = true;
  }
  sleep->changed.notify_one();
  sleeper.join();
}

TEST_F(ProgramHeap, AThreadThatCannotBeStopped) {
  std::atomic<int> state = 0;
  // A running thread may be about to accept the signal, so it is waited for for seconds; one job
  // tests that for all.
  const bool runs = std::getenv("UNSTOPPABLE_TEST_RUNS") != nullptr;
  std::thread other([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    state.store(1);
    while (state.load() == 1) {
      if (runs) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  });
  while (state.load() == 0) std::this_thread::yield();
  if (mob_host_size() > 1) {
    EXPECT_EQ(mob_withdraw(handle_), MOB_ERR_STATE);
    EXPECT_NE(std::string(mob_last_error()).find("SIGURG"), std::string::npos) << mob_last_error();
    static unsigned char area[100];
    mob_exposed_t none = nullptr;
    EXPECT_EQ(mob_expose(area, sizeof area, MOB_EXPOSE_REMAP, &none), MOB_ERR_STATE);
    EXPECT_EQ(none, nullptr);
  }
  state.store(2);
  other.join();
}

}  // namespace
}  // namespace mobius_test
