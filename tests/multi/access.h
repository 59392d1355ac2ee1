// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// An object for access to the members of a team, freed at the end of a test's scope.

#include <mobius/access.h>

#include <gtest/gtest.h>

namespace mobius_test {

class Access {
 public:
  explicit Access(mob_team_t team = MOB_TEAM_WORLD) {
    EXPECT_EQ(mob_access_create(team, &access_), MOB_OK) << mob_last_error();
  }
  ~Access() { EXPECT_EQ(mob_access_free(access_), MOB_OK) << mob_last_error(); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  operator mob_access_t() const { return access_; }  // NOLINT(google-explicit-constructor)

 private:
  mob_access_t access_ = nullptr;
};

}  // namespace mobius_test
