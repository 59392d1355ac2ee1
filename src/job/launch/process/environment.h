// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The environment of the ranks: the launcher's own with what --env changes, and each rank's place
// in the job.

#include <mobius/job.h>

#include <string>
#include <string_view>
#include <vector>

namespace mobius::launch {

class Environment {
 public:
  // `inherited` stays valid as long as this object.
  Environment(char* const* inherited, const std::vector<std::string>& changes);

  // Null when the variable is not set.
  const char* get(std::string_view name) const;

  // Without MOBIUS_JOB, MOBIUS_RANK and MOBIUS_PARENT, which belong to a job that the launcher
  // itself is part of.
  const char* const* common() const { return entries_.data(); }

  // Valid until the next call.
  char* const* of_rank(std::string_view key, mob_rank_t rank);

 private:
  std::vector<std::string> changes_;
  std::vector<char*> entries_;  // as environ, with the terminating null
  std::vector<char*> of_rank_;
  std::string job_;
  std::string rank_;
};

}  // namespace mobius::launch
