// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which rank of a job is on which host.

#include <mobius/job.h>

#include <cstdint>
#include <span>
#include <vector>

namespace mobius::job {

// Where a rank is: its host, and its index among the processes of that host in the order of ranks.
struct Place {
  int32_t host;
  mob_rank_t index;
};

// The most ranks that a job can have.
inline constexpr mob_rank_t kMostRanks = 16'000;

// A place as one word.
inline constexpr unsigned kPlaceIndexBits = 12;
constexpr uint32_t encode(Place place) {
  return static_cast<uint32_t>(place.host) << kPlaceIndexBits | static_cast<uint32_t>(place.index);
}
constexpr Place decode(uint32_t word) {
  return {static_cast<int32_t>(word >> kPlaceIndexBits),
          static_cast<mob_rank_t>(word & ((1u << kPlaceIndexBits) - 1))};
}

class Layout {
 public:
  // `host_of_rank[r]` is the host of rank r; hosts are numbered from 0 without gaps.
  explicit Layout(std::span<const int32_t> host_of_rank);
  // Ranks in blocks, one per host, whose sizes differ by one at most.
  static Layout blocks(mob_rank_t size, int32_t hosts);

  mob_rank_t size() const { return static_cast<mob_rank_t>(places_.size()); }
  int32_t hosts() const { return static_cast<int32_t>(local_sizes_.size()); }
  Place place_of(mob_rank_t rank) const { return places_[static_cast<size_t>(rank)]; }
  mob_rank_t local_size_of(int32_t host) const { return local_sizes_[static_cast<size_t>(host)]; }

  // One word per rank.
  std::vector<uint32_t> encoded() const;
  // The ranks of a host, in the order of their indices.
  std::vector<int32_t> ranks_of(int32_t host) const;

 private:
  std::vector<Place> places_;
  std::vector<mob_rank_t> local_sizes_;  // by host
};

}  // namespace mobius::job
