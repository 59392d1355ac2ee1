// SPDX-License-Identifier: BSD-3-Clause
#include <armci.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

// Every rank runs all tests in the same order; the job fails if one rank fails.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (ARMCI_Initialized() != 0) return EXIT_FAILURE;
  if (ARMCI_Init_args(&argc, &argv) != 0 || ARMCI_Initialized() != 1) return EXIT_FAILURE;
  if (armci_msg_me() != 0) {
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  }
  class Printer : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult& result) override {
      if (result.failed() && armci_msg_me() != 0) {
        std::fprintf(stderr, "rank %d: %s:%d: %s\n", armci_msg_me(), result.file_name(),
                     result.line_number(), result.summary());
      }
    }
  };
  testing::UnitTest::GetInstance()->listeners().Append(new Printer);
  int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) failed = 1;
  armci_msg_igop(&failed, 1, const_cast<char*>("max"));
  ARMCI_Init();  // counted: needs one more ARMCI_Finalize()
  ARMCI_Finalize();
  if (ARMCI_Init_thread(3) != 0) failed = 1;  // MPI_THREAD_MULTIPLE
  ARMCI_Finalize();
  ARMCI_Cleanup();  // frees nothing
  if (ARMCI_Initialized() != 1) failed = 1;
  ARMCI_Finalize();
  if (ARMCI_Initialized() != 0) failed = 1;
  return failed;
}
