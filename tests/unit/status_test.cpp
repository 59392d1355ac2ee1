// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <thread>

namespace mobius::base {
namespace {

TEST(Status, FailRecordsTheTextAndReturnsTheStatus) {
  EXPECT_EQ(fail(MOB_ERR_RANK, "rank %d", 7), MOB_ERR_RANK);
  EXPECT_STREQ(mob_last_error(), "rank 7");
}

TEST(Status, FailErrnoAppendsTheReason) {
  EXPECT_EQ(fail_errno(MOB_ERR_SYSTEM, ENOENT, "opening %s", "x"), MOB_ERR_SYSTEM);
  EXPECT_STREQ(mob_last_error(), "opening x: No such file or directory");
}

TEST(Status, LongTextsAreCutNotOverrun) {
  fail_errno(MOB_ERR_SYSTEM, ENOENT, "%s", std::string(2000, 'a').c_str());
  EXPECT_EQ(std::string(mob_last_error()).size(), 511u);
}

TEST(Status, EachThreadHasItsOwnText) {
  fail(MOB_ERR_RANK, "mine");
  std::string seen_before;
  std::thread([&] {
    seen_before = mob_last_error();
    fail(MOB_ERR_RANGE, "theirs");
  }).join();
  EXPECT_EQ(seen_before, "");
  EXPECT_STREQ(mob_last_error(), "mine");
}

TEST(Status, EveryStatusHasItsName) {
  EXPECT_STREQ(mob_status_name(MOB_OK), "MOB_OK");
  EXPECT_STREQ(mob_status_name(MOB_ERR_PEER), "MOB_ERR_PEER");
  EXPECT_STREQ(mob_status_name(static_cast<mob_status_t>(-99)), "MOB_ERR_UNKNOWN");
}

}  // namespace
}  // namespace mobius::base
