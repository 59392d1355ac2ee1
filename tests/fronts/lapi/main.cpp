// SPDX-License-Identifier: BSD-3-Clause

// Runs the same tests in the same order in every task. Checks are EXPECT_…: a task that left a test
// early would block the others.

#include <cstdio>
#include <mutex>

#include "fixture.h"

namespace lapi_test {

lapi_handle_t handle = 0;
unsigned me = 0;
unsigned tasks = 0;

namespace {

std::mutex mutex;
std::vector<int> reported;

void take_error(lapi_handle_t*, int* code, lapi_err_t*, int*, int*) {
  const std::lock_guard lock(mutex);
  reported.push_back(*code);
}

class QuietPrinter : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "task %u: %s.%s: %s:%d: %s\n", me,
                 test_ != nullptr ? test_->test_suite_name() : "",
                 test_ != nullptr ? test_->name() : "", result.file_name(), result.line_number(),
                 result.message());
  }

  const testing::TestInfo* test_ = nullptr;
};

}  // namespace

std::vector<int> take_reported() {
  const std::lock_guard lock(mutex);
  return std::exchange(reported, {});
}

int run() {
  lapi_info_t info = {};
  info.err_hndlr = take_error;
  info.lib_vers = LAST_LIB;
  const int code = LAPI_Init(&handle, &info);
  if (code != LAPI_SUCCESS) {
    std::fprintf(stderr, "LAPI_Init: %s\n", text_of(code).c_str());
    return 1;
  }
  int value = 0;
  ok(LAPI_Qenv(handle, TASK_ID, &value));
  me = static_cast<unsigned>(value);
  ok(LAPI_Qenv(handle, NUM_TASKS, &value));
  tasks = static_cast<unsigned>(value);
  if (me != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new QuietPrinter);
  }
  int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) result = 1;
  if (LAPI_Term(handle) != LAPI_SUCCESS) result = 1;
  return result;
}

}  // namespace lapi_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return lapi_test::run();
}
