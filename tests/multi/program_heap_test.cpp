// SPDX-License-Identifier: BSD-3-Clause

// The program's own heap, moved into shared memory: malloc() gives memory that host-mates reach
// like an allocation, and a child of fork() has its own.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "fixture.h"
#include "leaks.h"
#include "mappings.h"

namespace mobius_test {
namespace {

constexpr size_t kRoom = size_t{16} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<unsigned char[], Free>;

// malloc() itself is what is tested.
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

TEST_F(ProgramHeap, WhatMallocGivesIsATarget) {
  const mob_rank_t me = mob_rank();
  const mob_rank_t right = right_of(me);
  for (const size_t bytes : {size_t{8}, size_t{1000}, size_t{300'000}, (size_t{3} << 20) + 5}) {
    const Block mine = allocate(bytes);
    ASSERT_NE(mine, nullptr);
    const auto before = patterned(bytes, me, 1);
    std::memcpy(mine.get(), before.data(), bytes);
    auto* theirs = static_cast<unsigned char*>(exchange_address(mine.get()));
    EXPECT_EQ(access_of(mine.get() + bytes - 1), moved_access()) << bytes;
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
    if (same_host(right)) {
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
    // All of it as it was, and what is done to it is nobody else's business.
    bool right = all_are(mine.get(), kBytes, 1);
    std::memset(mine.get(), 2, kBytes);
    for (int i = 0; i < 1000; ++i) {
      const Block more = allocate(static_cast<size_t>(i) * 97 + 1);
      std::memset(more.get(), 3, static_cast<size_t>(i) * 97 + 1);
    }
    right = right && all_are(mine.get(), kBytes, 2) && access_of(mine.get()).compare("rw-p") == 0;
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

// Room that nobody has used takes no memory; what was used before does.
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
  EXPECT_NE(std::string(mob_last_error()).find("moved already"), std::string::npos)
      << mob_last_error();
  EXPECT_EQ(mob_expose_heap(0, &again), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose_heap(SIZE_MAX, &again), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_expose_heap(kRoom, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(again, nullptr);
}

// Another thread could write to pages while they move.
TEST_F(ProgramHeap, MovesOnlyWhileThereIsOneThread) {
  std::atomic<bool> end = false;
  std::thread other([&] {
    while (!end.load()) std::this_thread::yield();
  });
  if (mob_host_size() > 1) {
    EXPECT_EQ(mob_withdraw(handle_), MOB_ERR_STATE);
    EXPECT_NE(std::string(mob_last_error()).find("threads"), std::string::npos) << mob_last_error();
  }
  mob_exposed_t none = nullptr;
  static unsigned char area[100];
  EXPECT_EQ(mob_expose(area, sizeof area, MOB_EXPOSE_REMAP | MOB_EXPOSE_ALONE, &none),
            MOB_ERR_STATE);
  EXPECT_EQ(mob_expose(area, sizeof area, MOB_EXPOSE_ALONE, &none), MOB_ERR_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  end.store(true);
  other.join();
}

}  // namespace
}  // namespace mobius_test
