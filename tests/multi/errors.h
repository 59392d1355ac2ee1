// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <gtest/gtest.h>

#include <string>

#include "on_team.h"

namespace mobius_test {

// Expects an error whose text names the call and contains `detail`.
inline void expect_error(mob_status_t got, mob_status_t expected, const std::string& call,
                         const std::string& detail) {
  EXPECT_EQ(got, expected) << mob_status_name(got) << ": " << mob_last_error();
  const std::string text = mob_last_error();
  EXPECT_EQ(text.rfind(name_on_team(call) + ":", 0), 0u) << text;
  EXPECT_NE(text.find(detail), std::string::npos) << text;
}

}  // namespace mobius_test
