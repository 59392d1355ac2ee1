// SPDX-License-Identifier: BSD-3-Clause
#include <thread>

#include "fixture.h"

using mobius_test::barrier;
using mobius_test::Shared;

TEST(Contexts, BelongToTheThreadThatUsesThem) {
  EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT);
  mob_context_t context = nullptr;
  EXPECT_EQ(mob_context_create(&context), MOB_OK) << mob_last_error();
  EXPECT_NE(context, MOB_CONTEXT_DEFAULT);
  EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT);
  EXPECT_EQ(mob_context_use(context), MOB_OK);
  EXPECT_EQ(mob_context_current(), context);
  std::jthread([] { EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT); }).join();
  EXPECT_EQ(mob_context_use(MOB_CONTEXT_DEFAULT), MOB_OK);
  EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT);
  EXPECT_EQ(mob_context_use(context), MOB_OK);
  EXPECT_EQ(mob_context_free(context), MOB_OK);
  EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT);
  EXPECT_EQ(mob_context_free(MOB_CONTEXT_DEFAULT), MOB_OK);
  barrier();
}

// Every thread flushes its operations in a context of its own.
TEST(Contexts, FlushCompletesTheirOperations) {
  constexpr size_t kThreads = 4;
  constexpr size_t kBytes = 500;
  const Shared memory(kThreads * kBytes);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        mob_context_t context = nullptr;
        EXPECT_EQ(mob_context_create(&context), MOB_OK);
        EXPECT_EQ(mob_context_use(context), MOB_OK);
        for (int round = 0; round < 50; ++round) {
          const auto data = mobius_test::patterned(kBytes, mob_rank(), static_cast<int>(t));
          std::vector<unsigned char> back(kBytes);
          EXPECT_EQ(mob_put_nbi(target, memory.at(target, t * kBytes), data.data(), kBytes),
                    MOB_OK);
          EXPECT_EQ(mob_flush(target), MOB_OK);
          EXPECT_EQ(mob_get_nbi(target, memory.at(target, t * kBytes), back.data(), kBytes),
                    MOB_OK);
          EXPECT_EQ(mob_flush_local_all(), MOB_OK);
          EXPECT_EQ(back, data);
        }
        EXPECT_EQ(mob_context_free(context), MOB_OK);
      });
    }
  }
  barrier();
  const mob_rank_t origin = mobius_test::left_of(mob_rank());
  for (size_t t = 0; t < kThreads; ++t) {
    EXPECT_TRUE(mobius_test::holds(memory.local() + t * kBytes,
                                   mobius_test::patterned(kBytes, origin, static_cast<int>(t)),
                                   kBytes));
  }
  barrier();
}
