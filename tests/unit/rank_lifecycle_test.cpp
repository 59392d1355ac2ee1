// SPDX-License-Identifier: BSD-3-Clause

// Threads that act for a rank that is a thread.

#include <mobius/mobius.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace mobius {
namespace {

void run_pair(void (*body)()) {
  const auto run = [](void* argument) {
    ASSERT_EQ(mob_init(), MOB_OK) << mob_last_error();
    reinterpret_cast<void (*)()>(argument)();
    ASSERT_EQ(mob_finalize(), MOB_OK) << mob_last_error();
  };
  ASSERT_EQ(mob_threads_run(2, run, reinterpret_cast<void*>(body)), MOB_OK) << mob_last_error();
}

void expect_text(const char* part) {
  EXPECT_NE(std::strstr(mob_last_error(), part), nullptr) << mob_last_error();
}

TEST(ThreadsActFor, TheRankTheyName) {
  run_pair([] {
    mob_mem_t memory = nullptr;
    ASSERT_EQ(mob_mem_alloc(8, &memory), MOB_OK);
    void* word = nullptr;
    ASSERT_EQ(mob_mem_address(memory, 0, 0, &word), MOB_OK);
    const mob_rank_t rank = mob_rank();
    std::thread([&] {
      EXPECT_EQ(mob_initialized(), 0);
      ASSERT_EQ(mob_threads_act_for(rank), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_initialized(), 1);
      EXPECT_EQ(mob_rank(), rank);
      uint64_t old = 0;
      EXPECT_EQ(mob_fetch_add8(0, word, 1, &old), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_notify(1 - rank), MOB_OK) << mob_last_error();
    }).join();
    // The thread that acts for the other rank sent this notification.
    EXPECT_EQ(mob_notify_wait(1 - rank, nullptr), MOB_OK) << mob_last_error();
    ASSERT_EQ(mob_barrier(), MOB_OK);
    uint64_t sum = 0;
    EXPECT_EQ(mob_get8(0, word, &sum), MOB_OK);
    EXPECT_EQ(sum, 2U);
    ASSERT_EQ(mob_mem_free(memory), MOB_OK);
  });
}

TEST(ThreadsActFor, AnotherRankInTheDefaultContext) {
  run_pair([] {
    ASSERT_EQ(mob_barrier(), MOB_OK);
    const mob_rank_t rank = mob_rank();
    std::thread([&] {
      ASSERT_EQ(mob_threads_act_for(1 - rank), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_rank(), 1 - rank);
      mob_context_t context = MOB_CONTEXT_DEFAULT;
      ASSERT_EQ(mob_context_create(&context), MOB_OK);
      ASSERT_EQ(mob_context_use(context), MOB_OK);
      ASSERT_EQ(mob_threads_act_for(rank), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT);
      EXPECT_EQ(mob_rank(), rank);
      ASSERT_EQ(mob_threads_act_for(1 - rank), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_context_free(context), MOB_OK) << mob_last_error();
    }).join();
    ASSERT_EQ(mob_barrier(), MOB_OK);
  });
}

TEST(ThreadsActFor, ARankThatDoesNotEndMeanwhile) {
  run_pair([] {
    const mob_rank_t rank = mob_rank();
    std::atomic<int> step = 0;
    std::thread helper([&] {
      ASSERT_EQ(mob_threads_act_for(rank), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_finalize(), MOB_ERR_STATE);
      expect_text("by a thread that acts for rank");
      EXPECT_EQ(mob_init(), MOB_ERR_STATE);
      step = 1;
      step.notify_one();
      step.wait(1);
      EXPECT_EQ(mob_threads_act_for(-1), MOB_OK);
      EXPECT_EQ(mob_initialized(), 0);
    });
    step.wait(0);
    EXPECT_EQ(mob_finalize(), MOB_ERR_STATE);
    expect_text("1 other threads act for rank");
    step = 2;
    step.notify_one();
    helper.join();
  });
}

TEST(ThreadsActFor, NobodyElse) {
  EXPECT_EQ(mob_threads_act_for(0), MOB_ERR_RANK);
  expect_text("rank 0 is no thread of this process");
  EXPECT_EQ(mob_threads_act_for(-1), MOB_OK);
  run_pair([] {
    EXPECT_EQ(mob_threads_act_for(1 - mob_rank()), MOB_ERR_STATE);
    expect_text("a thread that is a rank");
    std::thread([] {
      EXPECT_EQ(mob_threads_act_for(2), MOB_ERR_RANK);
      expect_text("rank 2");
    }).join();
    ASSERT_EQ(mob_barrier(), MOB_OK);
  });
}

TEST(ThreadsActFor, NobodyInAChildOfFork) {
  run_pair([] {
    const pid_t child = fork();
    if (child == 0) _exit(mob_threads_act_for(0) == MOB_ERR_RANK ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(mob_barrier(), MOB_OK);
  });
}

}  // namespace
}  // namespace mobius
