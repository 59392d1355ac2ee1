// SPDX-License-Identifier: BSD-3-Clause

// Collective calls that move data, in a job whose victim dies.

#include <algorithm>
#include <iterator>

#include "job.h"
#include "scenarios.h"

namespace faults {

namespace {

// The blocks of one collective call: few bytes and many, with each rank as root in turn.
class Blocks {
 public:
  explicit Blocks(const Job& job)
      : rank_(job.rank()), size_(job.size()), in_(words()), out_(words()) {}

  void next() {
    ++round_;
    std::ranges::fill(out_, 0);
  }
  size_t count() const { return kCounts[round_ % std::size(kCounts)]; }
  size_t bytes() const { return count() * sizeof(uint64_t); }
  mob_rank_t root() const { return static_cast<mob_rank_t>(round_ / std::size(kCounts)) % size_; }
  bool is_root() const { return root() == rank_; }
  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return size_; }
  uint64_t* in() { return in_.data(); }
  uint64_t* out() { return out_.data(); }

  // The value from `from` for `to` in this round.
  uint64_t value(mob_rank_t from, mob_rank_t to) const {
    return (round_ * kMostRanks + static_cast<uint64_t>(from)) * kMostRanks +
           static_cast<uint64_t>(to);
  }
  void fill(mob_rank_t block, uint64_t value) {
    std::fill_n(in() + static_cast<size_t>(block) * count(), count(), value);
  }
  void check(const char* what, mob_rank_t block, uint64_t value) {
    check(what, block, value, count());
  }
  void check(const char* what, mob_rank_t block, uint64_t value, size_t words) {
    const uint64_t* start = out() + static_cast<size_t>(block) * count();
    if (start[0] != value || start[words - 1] != value) complain("%s gave wrong values", what);
  }

 private:
  static constexpr size_t kCounts[] = {8, 700, 12000};
  size_t words() const { return static_cast<size_t>(size_) * kCounts[std::size(kCounts) - 1]; }

  const mob_rank_t rank_;
  const mob_rank_t size_;
  uint64_t round_ = 0;
  std::vector<uint64_t> in_;
  std::vector<uint64_t> out_;
};

// Makes one such call after the other; `check` examines the result of each.
template <typename Call, typename Check>
void repeat(Job& job, const char* what, Call call, Check check) {
  Blocks blocks(job);
  job.until_failure(what, [&] {
    blocks.next();
    const mob_status_t status = call(blocks);
    if (status == MOB_OK) check(blocks);
    return status;
  });
  job.finish();
}

// The sum of the first `count` members' values for themselves.
uint64_t sum(const Blocks& blocks, mob_rank_t count) {
  uint64_t result = 0;
  for (mob_rank_t each = 0; each < count; ++each) result += blocks.value(each, each);
  return result;
}

}  // namespace

void broadcast(Job& job) {
  repeat(
      job, "mob_broadcast",
      [](Blocks& b) {
        if (b.is_root()) std::fill_n(b.out(), b.count(), b.value(b.rank(), 0));
        return mob_broadcast(MOB_TEAM_WORLD, b.root(), b.out(), b.bytes());
      },
      [](Blocks& b) { b.check("mob_broadcast", 0, b.value(b.root(), 0)); });
}

void gather(Job& job) {
  repeat(
      job, "mob_gather",
      [](Blocks& b) {
        b.fill(0, b.value(b.rank(), b.root()));
        return mob_gather(MOB_TEAM_WORLD, b.root(), b.in(), b.out(), b.bytes());
      },
      [](Blocks& b) {
        for (mob_rank_t from = 0; b.is_root() && from < b.size(); ++from) {
          b.check("mob_gather", from, b.value(from, b.root()));
        }
      });
}

void scatter(Job& job) {
  repeat(
      job, "mob_scatter",
      [](Blocks& b) {
        for (mob_rank_t to = 0; to < b.size(); ++to) b.fill(to, b.value(b.root(), to));
        return mob_scatter(MOB_TEAM_WORLD, b.root(), b.in(), b.out(), b.bytes());
      },
      [](Blocks& b) { b.check("mob_scatter", 0, b.value(b.root(), b.rank())); });
}

void alltoall(Job& job) {
  repeat(
      job, "mob_alltoall",
      [](Blocks& b) {
        for (mob_rank_t to = 0; to < b.size(); ++to) b.fill(to, b.value(b.rank(), to));
        return mob_alltoall(MOB_TEAM_WORLD, b.in(), b.out(), b.bytes());
      },
      [](Blocks& b) {
        for (mob_rank_t from = 0; from < b.size(); ++from) {
          b.check("mob_alltoall", from, b.value(from, b.rank()));
        }
      });
}

// Some members have much data for each other, others a word.
void alltoallv(Job& job) {
  const auto words_of = [](const Blocks& b, mob_rank_t from, mob_rank_t to) {
    return (from + to) % 3 == 0 ? b.count() : 1;
  };
  repeat(
      job, "mob_alltoallv",
      [&](Blocks& b) {
        std::vector<size_t> given;
        std::vector<size_t> taken;
        std::vector<size_t> places;
        for (mob_rank_t other = 0; other < b.size(); ++other) {
          b.fill(other, b.value(b.rank(), other));
          given.push_back(words_of(b, b.rank(), other) * sizeof(uint64_t));
          taken.push_back(words_of(b, other, b.rank()) * sizeof(uint64_t));
          places.push_back(static_cast<size_t>(other) * b.bytes());
        }
        return mob_alltoallv(MOB_TEAM_WORLD, b.in(), given.data(), places.data(), b.out(),
                             taken.data(), places.data());
      },
      [&](Blocks& b) {
        for (mob_rank_t from = 0; from < b.size(); ++from) {
          b.check("mob_alltoallv", from, b.value(from, b.rank()), words_of(b, from, b.rank()));
        }
      });
}

void reduce(Job& job) {
  repeat(
      job, "mob_reduce",
      [](Blocks& b) {
        b.fill(0, b.value(b.rank(), b.rank()));
        return mob_reduce(MOB_TEAM_WORLD, b.root(), MOB_SUM, MOB_UINT64, b.in(), b.out(),
                          b.count());
      },
      [](Blocks& b) {
        if (b.is_root()) b.check("mob_reduce", 0, sum(b, b.size()));
      });
}

void scan(Job& job) {
  repeat(
      job, "mob_scan",
      [](Blocks& b) {
        b.fill(0, b.value(b.rank(), b.rank()));
        return mob_scan(MOB_TEAM_WORLD, MOB_SUM, MOB_UINT64, b.in(), b.out(), b.count());
      },
      [](Blocks& b) { b.check("mob_scan", 0, sum(b, b.rank() + 1)); });
}

// Vectors that take many rounds.
void allreduce(Job& job) {
  const std::vector<double> ones(5 * kDoubles, 1.0);
  std::vector<double> sums(ones.size());
  job.until_failure("mob_allreduce", [&] {
    const mob_status_t status =
        mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_DOUBLE, ones.data(), sums.data(), ones.size());
    for (const double sum : sums) {
      if (status == MOB_OK && sum != job.size()) complain("mob_allreduce gave a wrong sum");
    }
    return status;
  });
  job.finish();
}

}  // namespace faults
