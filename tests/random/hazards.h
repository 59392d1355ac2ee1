// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The operations that one actor has under way, and the completion that its next step needs first.

#include <algorithm>
#include <vector>

#include "random/program.h"

namespace random_program {

struct Access {
  mob_rank_t rank = -1;  // -1: the actor's own memory
  Range range;
  bool writes = false;
  bool puts = false;     // may be ordered by a fence
  int block = -1;        // as in segments
  bool message = false;  // a handler carries it out
};

class Hazards {
 public:
  // A remote completion includes the others; of the other two, neither includes the other.
  struct Need {
    bool fence = false;
    bool local = false;
    bool remote = false;
  };

  Need need_before(const std::vector<Access>& accesses) const {
    Need need;
    for (const Access& access : accesses) {
      for (const Open& open : open_) {
        if (open.access.rank != access.rank || open.access.block != access.block) continue;
        if (!open.access.range.overlaps(access.range)) continue;
        if (!open.access.writes && !access.writes) continue;
        if (access.rank < 0) {
          need.local = true;
        } else if (!open.access.puts || !access.puts) {
          need.remote = true;
        } else if (!open.fenced) {
          need.fence = true;
        }
      }
    }
    return need;
  }

  // Whether a handler may still have to run.
  bool has_messages() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const Open& open) { return open.access.message; });
  }

  void add(const Access& access) { open_.push_back({access, false}); }
  void fence() {
    for (Open& open : open_) open.fenced = true;
  }
  void complete_locally() {
    std::erase_if(open_, [](const Open& open) { return open.access.rank < 0; });
  }
  void complete(mob_rank_t rank) {
    std::erase_if(open_, [rank](const Open& open) { return open.access.rank == rank; });
  }
  void complete() { open_.clear(); }

 private:
  struct Open {
    Access access;
    bool fenced;
  };
  std::vector<Open> open_;
};

}  // namespace random_program
