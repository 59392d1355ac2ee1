// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <gtest/gtest.h>

namespace mobius_test {

// For loops that poll memory by calls which on one host are loads and stores. With
// MOBIUS_PROGRESS=poll nothing else would serve other hosts meanwhile, or send recorded operations.
inline void serve_other_hosts() {
  if (mob_host_size() == mob_size()) return;
  EXPECT_EQ(mob_poll(), MOB_OK) << mob_last_error();
}

}  // namespace mobius_test
