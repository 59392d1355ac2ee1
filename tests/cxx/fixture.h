// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.hpp>

#include <gtest/gtest.h>

#include <string>

namespace mobius_test {

inline mob_rank_t right_of(mob_rank_t rank) { return (rank + 1) % mob_size(); }
inline mob_rank_t left_of(mob_rank_t rank) { return (rank + mob_size() - 1) % mob_size(); }

// Returns the status that a call throws, MOB_OK if it throws nothing; expects the given beginning
// of its text.
template <typename Call>
mob_status_t thrown(Call&& call, const std::string& text = "mob") {
  try {
    call();
  } catch (const mob::Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind(text, 0), 0u) << error.what();
    return error.status();
  }
  return MOB_OK;
}

}  // namespace mobius_test
