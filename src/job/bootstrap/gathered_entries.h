// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The entries of a directory whose fence gives everything that was published to all processes, so
// that a fetch asks nobody.

#include <mobius/job.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mobius::job {

// publish(), unsent() and forget_sent() are for one thread at a time; take() and fetch() for any.
class GatheredEntries {
 public:
  mob_status_t publish(std::string_view key, std::span<const unsigned char> value);
  // The entries that this process has published since its last forget_sent(), in the format that
  // take() reads. A fence of the directory sends them to the other processes.
  const std::vector<unsigned char>& unsent() const { return unsent_; }
  void forget_sent() { unsent_.clear(); }

  // Keeps what a process has published. False if the bytes have another format.
  bool take(mob_rank_t rank, std::span<const unsigned char> entries);
  mob_status_t fetch(mob_rank_t rank, std::string_view key, std::vector<unsigned char>* value);

 private:
  std::vector<unsigned char> unsent_;
  std::mutex mutex_;  // guards known_
  std::map<std::pair<mob_rank_t, std::string>, std::vector<unsigned char>> known_;
};

}  // namespace mobius::job
