// SPDX-License-Identifier: BSD-3-Clause

// Runs the same tests in the same order in every process of the job. Checks are EXPECT_…, never
// ASSERT_… before a collective call: a process that left a test early would block the others.
//
//   multi_tests                 on the world
//   multi_tests spawned …       on other teams: joined_team.h

#include <gtest/gtest.h>

#include <cstdio>

#include "joined_team.h"

namespace {

// Prints nothing about successes; each rank prints its own failures.
class QuietPrinter : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s.%s: %s:%d: %s\n", mob_rank(),
                 test_ != nullptr ? test_->test_suite_name() : "",
                 test_ != nullptr ? test_->name() : "", result.file_name(), result.line_number(),
                 result.message());
  }

  const testing::TestInfo* test_ = nullptr;  // gtest cannot be asked inside OnTestPartResult()
};

}  // namespace

int main(int argc, char** argv) {
  mobius_test::JoinedTeam team(&argc, argv);
  testing::InitGoogleTest(&argc, argv);
  if (mob_init() != MOB_OK) {
    std::fprintf(stderr, "mob_init: %s\n", mob_last_error());
    return 1;
  }
  team.make();
  if (mob_rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new QuietPrinter);
  }
  int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) result = 1;
  team.free();
  if (mob_finalize() != MOB_OK) {
    std::fprintf(stderr, "mob_finalize: %s\n", mob_last_error());
    result = 1;
  }
  return team.child_failed() ? 1 : result;
}
