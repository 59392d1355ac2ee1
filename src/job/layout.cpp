// SPDX-License-Identifier: BSD-3-Clause
#include "job/layout.h"

#include <algorithm>

namespace mobius::job {

Layout::Layout(std::span<const int32_t> host_of_rank) {
  int32_t hosts = 0;
  for (const int32_t host : host_of_rank) hosts = std::max(hosts, host + 1);
  local_sizes_.resize(static_cast<size_t>(hosts));
  places_.reserve(host_of_rank.size());
  for (const int32_t host : host_of_rank) {
    places_.push_back({host, local_sizes_[static_cast<size_t>(host)]++});
  }
}

Layout Layout::blocks(mob_rank_t size, int32_t hosts) {
  std::vector<int32_t> host_of_rank(static_cast<size_t>(size));
  for (mob_rank_t rank = 0; rank < size; ++rank) {
    host_of_rank[static_cast<size_t>(rank)] =
        static_cast<int32_t>(static_cast<int64_t>(rank) * hosts / size);
  }
  return Layout(host_of_rank);
}

std::vector<uint32_t> Layout::encoded() const {
  std::vector<uint32_t> words(places_.size());
  std::ranges::transform(places_, words.begin(), encode);
  return words;
}

std::vector<int32_t> Layout::ranks_of(int32_t host) const {
  std::vector<int32_t> ranks;
  for (mob_rank_t rank = 0; rank < size(); ++rank) {
    if (place_of(rank).host == host) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace mobius::job
