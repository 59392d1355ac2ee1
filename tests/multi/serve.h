// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <gtest/gtest.h>

namespace mobius_test {

// For loops that look at memory by calls which are loads and stores on one host: with
// MOBIUS_PROGRESS=poll nobody serves the other hosts meanwhile, nor sends them what is recorded.
inline void serve_other_hosts() {
  if (mob_host_size() == mob_size()) return;
  EXPECT_EQ(mob_poll(), MOB_OK) << mob_last_error();
}

}  // namespace mobius_test
