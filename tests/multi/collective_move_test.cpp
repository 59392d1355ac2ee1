// SPDX-License-Identifier: BSD-3-Clause

// Collective calls that move data: every size that takes another path, private and shared buffers,
// every root, several teams.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "errors.h"
#include "team_fixture.h"

using mobius_test::Shared;
using mobius_test::Teams;
using mobius_test::TestTeam;

namespace {

constexpr size_t kSizes[] = {0, 1, 7, 56, 57, 400, 4096, 20'000, 100'000, (1 << 20) + 3};
constexpr size_t kMostBytes = (size_t{2} << 20) + 64;  // in one buffer

// Two buffers, for input and output, in private or in shared memory.
class Buffers {
 public:
  explicit Buffers(bool shared) : shared_(shared ? 2 * kMostBytes : 0) {
    if (!shared) private_.resize(2 * kMostBytes);
    in = shared ? shared_.local() : private_.data();
    out = in + kMostBytes;
  }

  unsigned char* in = nullptr;
  unsigned char* out = nullptr;

 private:
  Shared shared_;
  std::vector<unsigned char> private_;
};

// The number of a block from one member to another; rounds distinguish calls.
int block_id(mob_rank_t from, mob_rank_t to) { return from * 31 + to * 7; }

void fill(unsigned char* at, size_t bytes, int writer, int round) {
  const auto data = mobius_test::patterned(bytes, writer, round);
  if (bytes != 0) std::memcpy(at, data.data(), bytes);
}
bool holds(const unsigned char* at, size_t bytes, int writer, int round) {
  return mobius_test::holds(at, mobius_test::patterned(bytes, writer, round), bytes);
}

// Calls visit(team, buffers, bytes, round) for all sizes that fit into the buffers with `blocks`
// blocks per member.
template <typename Visit>
void for_each_case(bool many_blocks, Visit visit) {
  for (const bool shared : {false, true}) {
    Buffers buffers(shared);
    const Teams teams;
    for (const TestTeam& team : teams) {
      int round = team.kind * 40 + (shared ? 20 : 0);
      for (const size_t bytes : kSizes) {
        ++round;
        const size_t blocks = many_blocks ? static_cast<size_t>(team.size) : 1;
        if (bytes * blocks > kMostBytes) continue;
        SCOPED_TRACE(team.name + (shared ? ", shared, " : ", private, ") + std::to_string(bytes));
        visit(team, buffers, bytes, round);
      }
    }
    mobius_test::barrier();
  }
}

}  // namespace

TEST(Collective, BroadcastFromEveryRoot) {
  for_each_case(false, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    for (mob_rank_t root = 0; root < team.size; ++root) {
      if (team.rank == root) fill(buffers.in, bytes, root, round);
      EXPECT_EQ(mob_broadcast(team.handle, root, buffers.in, bytes), MOB_OK) << mob_last_error();
      EXPECT_TRUE(holds(buffers.in, bytes, root, round)) << "root " << root;
    }
  });
}

TEST(Collective, GatherAtEveryRoot) {
  for_each_case(true, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    const auto members = static_cast<size_t>(team.size);
    for (mob_rank_t root = 0; root < team.size; ++root) {
      const bool is_root = team.rank == root;
      const bool in_place = is_root && round % 2 == 0;
      unsigned char* in = in_place ? buffers.out + static_cast<size_t>(root) * bytes : buffers.in;
      fill(in, bytes, block_id(team.rank, root), round);
      EXPECT_EQ(mob_gather(team.handle, root, in, is_root ? buffers.out : nullptr, bytes), MOB_OK);
      for (size_t r = 0; is_root && r < members; ++r) {
        EXPECT_TRUE(holds(buffers.out + r * bytes, bytes,
                          block_id(static_cast<mob_rank_t>(r), root), round))
            << "root " << root << " member " << r;
      }
    }
  });
}

TEST(Collective, AllgatherAlsoInPlace) {
  for_each_case(true, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    for (const bool in_place : {false, true}) {
      unsigned char* in =
          in_place ? buffers.out + static_cast<size_t>(team.rank) * bytes : buffers.in;
      fill(in, bytes, team.rank, round + in_place);
      EXPECT_EQ(mob_allgather(team.handle, in, buffers.out, bytes), MOB_OK) << mob_last_error();
      for (mob_rank_t r = 0; r < team.size; ++r) {
        EXPECT_TRUE(holds(buffers.out + static_cast<size_t>(r) * bytes, bytes, r, round + in_place))
            << "member " << r;
      }
    }
  });
}

TEST(Collective, ScatterFromEveryRoot) {
  for_each_case(true, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    for (mob_rank_t root = 0; root < team.size; ++root) {
      const bool is_root = team.rank == root;
      for (mob_rank_t r = 0; is_root && r < team.size; ++r) {
        fill(buffers.in + static_cast<size_t>(r) * bytes, bytes, block_id(root, r), round);
      }
      const bool in_place = is_root && round % 2 == 0;
      unsigned char* out = in_place ? buffers.in + static_cast<size_t>(root) * bytes : buffers.out;
      EXPECT_EQ(mob_scatter(team.handle, root, is_root ? buffers.in : nullptr, out, bytes), MOB_OK);
      EXPECT_TRUE(holds(out, bytes, block_id(root, team.rank), round)) << "root " << root;
    }
  });
}

TEST(Collective, AlltoallAlsoInPlace) {
  for_each_case(true, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    for (const bool in_place : {false, true}) {
      unsigned char* in = in_place ? buffers.out : buffers.in;
      for (mob_rank_t r = 0; r < team.size; ++r) {
        fill(in + static_cast<size_t>(r) * bytes, bytes, block_id(team.rank, r), round + in_place);
      }
      EXPECT_EQ(mob_alltoall(team.handle, in, buffers.out, bytes), MOB_OK) << mob_last_error();
      for (mob_rank_t r = 0; r < team.size; ++r) {
        EXPECT_TRUE(holds(buffers.out + static_cast<size_t>(r) * bytes, bytes,
                          block_id(r, team.rank), round + in_place))
            << "member " << r;
      }
    }
  });
}

namespace {

// Sizes that differ by pair, some of them 0, and places with gaps in reverse order.
size_t uneven(size_t bytes, mob_rank_t from, mob_rank_t to) {
  return (from + to) % 3 == 1 ? 0 : bytes * static_cast<size_t>(1 + (from * 2 + to) % 4) / 4;
}

struct Lists {
  std::vector<size_t> counts;
  std::vector<size_t> displacements;
};

template <typename Size>
Lists lists_of(mob_rank_t members, Size size) {
  Lists lists{std::vector<size_t>(static_cast<size_t>(members)),
              std::vector<size_t>(static_cast<size_t>(members))};
  size_t at = 0;
  for (mob_rank_t r = members - 1; r >= 0; --r) {
    const auto i = static_cast<size_t>(r);
    lists.counts[i] = size(r);
    lists.displacements[i] = at;
    at += lists.counts[i] + 1;
  }
  return lists;
}

}  // namespace

TEST(Collective, GathersOfDifferentSizes) {
  for_each_case(true, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    const mob_rank_t root = static_cast<mob_rank_t>(round) % team.size;
    const Lists lists = lists_of(team.size, [&](mob_rank_t r) { return uneven(bytes, r, r * 5); });
    const size_t mine = lists.counts[static_cast<size_t>(team.rank)];
    const auto holds_all = [&](int call) {
      for (mob_rank_t r = 0; r < team.size; ++r) {
        const auto i = static_cast<size_t>(r);
        EXPECT_TRUE(holds(buffers.out + lists.displacements[i], lists.counts[i], r, call))
            << "member " << r;
      }
    };
    fill(buffers.in, mine, team.rank, round);
    const bool is_root = team.rank == root;
    EXPECT_EQ(mob_gatherv(team.handle, root, buffers.in, mine, is_root ? buffers.out : nullptr,
                          is_root ? lists.counts.data() : nullptr,
                          is_root ? lists.displacements.data() : nullptr),
              MOB_OK)
        << mob_last_error();
    if (is_root) holds_all(round);
    fill(buffers.in, mine, team.rank, round + 1);
    EXPECT_EQ(mob_allgatherv(team.handle, buffers.in, buffers.out, lists.counts.data(),
                             lists.displacements.data()),
              MOB_OK)
        << mob_last_error();
    holds_all(round + 1);
  });
}

TEST(Collective, AlltoallOfDifferentSizes) {
  for_each_case(true, [](const TestTeam& team, Buffers& buffers, size_t bytes, int round) {
    const Lists in = lists_of(team.size, [&](mob_rank_t r) { return uneven(bytes, team.rank, r); });
    const Lists out =
        lists_of(team.size, [&](mob_rank_t r) { return uneven(bytes, r, team.rank); });
    for (mob_rank_t r = 0; r < team.size; ++r) {
      const auto i = static_cast<size_t>(r);
      fill(buffers.in + in.displacements[i], in.counts[i], block_id(team.rank, r), round);
    }
    EXPECT_EQ(mob_alltoallv(team.handle, buffers.in, in.counts.data(), in.displacements.data(),
                            buffers.out, out.counts.data(), out.displacements.data()),
              MOB_OK)
        << mob_last_error();
    for (mob_rank_t r = 0; r < team.size; ++r) {
      const auto i = static_cast<size_t>(r);
      EXPECT_TRUE(
          holds(buffers.out + out.displacements[i], out.counts[i], block_id(r, team.rank), round))
          << "member " << r;
    }
  });
}

// Little data between some hosts, much between others, in one direction or both; most members send
// none.
TEST(Collective, AlltoallOfAFewLargeBlocksAmongSmallOnes) {
  using Size = size_t (*)(mob_rank_t from, mob_rank_t to);
  constexpr Size kPatterns[] = {
      [](mob_rank_t, mob_rank_t) { return size_t{0}; },
      [](mob_rank_t from, mob_rank_t to) {
        return from > to ? size_t{20'000} : static_cast<size_t>(to);
      },
      [](mob_rank_t from, mob_rank_t to) { return from == 0 && to != 0 ? size_t{30'000} : 0; },
      [](mob_rank_t from, mob_rank_t to) { return to == 0 && from != 0 ? size_t{30'000} : 0; },
      // About the size up to which leaders exchange the blocks, just below and just above.
      [](mob_rank_t from, mob_rank_t to) { return size_t{2044} + static_cast<size_t>(from + to); },
      [](mob_rank_t from, mob_rank_t to) { return size_t{2042} + static_cast<size_t>(from + to); },
      [](mob_rank_t from, mob_rank_t to) {
        return (from + to) % 5 == 0 ? size_t{9000} : static_cast<size_t>(from + to);
      },
  };
  Buffers buffers(false);
  const Teams teams;
  for (const TestTeam& team : teams) {
    int round = 0;
    for (const Size size : kPatterns) {
      SCOPED_TRACE(team.name + ", pattern " + std::to_string(round));
      const Lists in = lists_of(team.size, [&](mob_rank_t r) { return size(team.rank, r); });
      const Lists out = lists_of(team.size, [&](mob_rank_t r) { return size(r, team.rank); });
      const bool in_place = in.counts == out.counts;
      unsigned char* const to = in_place ? buffers.in : buffers.out;
      for (mob_rank_t r = 0; r < team.size; ++r) {
        const auto i = static_cast<size_t>(r);
        fill(buffers.in + in.displacements[i], in.counts[i], block_id(team.rank, r), round);
      }
      EXPECT_EQ(mob_alltoallv(team.handle, buffers.in, in.counts.data(), in.displacements.data(),
                              to, out.counts.data(), out.displacements.data()),
                MOB_OK)
          << mob_last_error();
      for (mob_rank_t r = 0; r < team.size; ++r) {
        const auto i = static_cast<size_t>(r);
        EXPECT_TRUE(holds(to + out.displacements[i], out.counts[i], block_id(r, team.rank), round))
            << "member " << r;
      }
      ++round;
    }
  }
  mobius_test::barrier();
}

// The next call must not write to a call's buffers before all members have read them.
TEST(Collective, BackToBackCallsWithChangingRoots) {
  constexpr size_t kChanging[] = {8, 500, 12'000, 40'000, 100};
  const mob_rank_t me = mob_rank();
  std::vector<unsigned char> in(40'000);
  std::vector<unsigned char> out(40'000 * static_cast<size_t>(mob_size()));
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    const size_t bytes = kChanging[i % 5];
    const auto root = static_cast<mob_rank_t>(i * 7 / 3) % mob_size();
    const auto mark = [i](mob_rank_t rank) { return static_cast<unsigned char>(i * 13 + rank); };
    std::memset(in.data(), mark(me), bytes);
    switch (i % 4) {
      case 0:
      case 1:
        wrong += mob_broadcast(MOB_TEAM_WORLD, root, in.data(), bytes) != MOB_OK;
        wrong += !mobius_test::all_are(in.data(), bytes, mark(root));
        break;
      case 2:
        wrong += mob_gather(MOB_TEAM_WORLD, root, in.data(), out.data(), bytes) != MOB_OK;
        for (mob_rank_t r = 0; me == root && r < mob_size(); ++r) {
          wrong +=
              !mobius_test::all_are(out.data() + static_cast<size_t>(r) * bytes, bytes, mark(r));
        }
        break;
      default:
        wrong += mob_reduce(MOB_TEAM_WORLD, root, MOB_SUM, MOB_UINT8, in.data(), out.data(),
                            bytes) != MOB_OK;
        if (me == root) {
          unsigned char sum = 0;
          for (mob_rank_t r = 0; r < mob_size(); ++r)
            sum = static_cast<unsigned char>(sum + mark(r));
          wrong += !mobius_test::all_are(out.data(), bytes, sum);
        }
    }
  }
  EXPECT_EQ(wrong, 0);
  mobius_test::barrier();
}

// The same where members run ahead of each other by as many calls as there is memory for, with
// sizes that divide it at ever other places.
TEST(Collective, CallsOfAnySizesByMembersThatFallBehind) {
  constexpr int kCalls = 3000;
  constexpr size_t kMost = 20'000;
  const auto members = static_cast<size_t>(mob_size());
  const mob_rank_t me = mob_rank();
  const mob_rank_t last = mob_size() - 1;
  uint64_t state = 12345;  // the same in all members
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  std::vector<unsigned char> in(kMost * members);
  std::vector<unsigned char> out(kMost * members);
  int wrong = 0;
  for (int i = 0; i < kCalls; ++i) {
    // Mostly short ones, of which many fit.
    const size_t bytes = 1 + random(random(4) == 0 ? kMost : (random(2) == 0 ? 64 : 3000));
    const auto root = static_cast<mob_rank_t>(random(members));
    const auto mark = [i](mob_rank_t rank) { return static_cast<unsigned char>(i * 13 + rank); };
    const auto sum_up_to = [&](mob_rank_t rank) {
      unsigned char sum = 0;
      for (mob_rank_t r = 0; r <= rank; ++r) sum = static_cast<unsigned char>(sum + mark(r));
      return sum;
    };
    const auto holds_all = [&](size_t each) {
      for (mob_rank_t r = 0; r <= last; ++r) {
        if (!mobius_test::all_are(out.data() + static_cast<size_t>(r) * each, each, mark(r))) {
          return false;
        }
      }
      return true;
    };
    if (random(100) < 3 && static_cast<mob_rank_t>(random(members)) == me) usleep(300);
    std::memset(in.data(), mark(me), bytes * members);
    mob_status_t status = MOB_OK;
    bool right = true;
    switch (random(7)) {
      case 0:
        status = mob_broadcast(MOB_TEAM_WORLD, root, in.data(), bytes);
        right = mobius_test::all_are(in.data(), bytes, mark(root));
        break;
      case 1:
        status = mob_gather(MOB_TEAM_WORLD, root, in.data(), out.data(), bytes);
        right = me != root || holds_all(bytes);
        break;
      case 2:
        status = mob_scatter(MOB_TEAM_WORLD, root, in.data(), out.data(), bytes);
        right = mobius_test::all_are(out.data(), bytes, mark(root));
        break;
      case 3:
        status = mob_alltoall(MOB_TEAM_WORLD, in.data(), out.data(), bytes);
        right = holds_all(bytes);
        break;
      case 4:
        status = mob_scan(MOB_TEAM_WORLD, MOB_SUM, MOB_UINT8, in.data(), out.data(), bytes);
        right = mobius_test::all_are(out.data(), bytes, sum_up_to(me));
        break;
      case 5:
        status = mob_reduce(MOB_TEAM_WORLD, root, MOB_SUM, MOB_UINT8, in.data(), in.data(), bytes);
        right = me != root || mobius_test::all_are(in.data(), bytes, sum_up_to(last));
        break;
      default:
        status = mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_UINT8, in.data(), out.data(), bytes);
        right = mobius_test::all_are(out.data(), bytes, sum_up_to(last));
    }
    wrong += status != MOB_OK || !right;
  }
  EXPECT_EQ(wrong, 0);
  mobius_test::barrier();
}

// Members that only send must not fill the memory of a late member: they wait for it first.
TEST(Collective, LateMembersHoldUpThoseThatGive) {
  if (mobius_test::one_host()) GTEST_SKIP() << "only between hosts";
  constexpr size_t kBytes = size_t{1} << 20;
  constexpr uint64_t kCalls = 25;
  constexpr uint64_t kMostAhead = 4;
  const mob_rank_t last = mob_size() - 1;
  const bool is_late = mob_rank() >= mob_size() / 2;
  const Shared calls(sizeof(uint64_t));
  std::vector<unsigned char> one(kBytes);
  std::vector<unsigned char> all(kBytes * static_cast<size_t>(mob_size()));
  const auto call = [&](int kind) {
    switch (kind) {
      case 0:
        return mob_broadcast(MOB_TEAM_WORLD, 0, one.data(), kBytes);
      case 1:
        return mob_scatter(MOB_TEAM_WORLD, 0, all.data(), one.data(), kBytes);
      default:
        return mob_gather(MOB_TEAM_WORLD, last, one.data(), all.data(), kBytes);
    }
  };
  for (int kind = 0; kind < 3; ++kind) {
    std::memset(calls.local(), 0, sizeof(uint64_t));
    mobius_test::barrier();
    if (is_late) usleep(300'000);
    uint64_t ahead = 0;
    EXPECT_EQ(mob_get8(mob_rank(), calls.local(), &ahead), MOB_OK);
    EXPECT_LE(ahead, kMostAhead) << kind;
    for (uint64_t i = 1; i <= kCalls; ++i) {
      EXPECT_EQ(call(kind), MOB_OK) << mob_last_error();
      if (mob_rank() != 0) continue;
      EXPECT_EQ(mob_put8(last, calls.at(last), i), MOB_OK);
      EXPECT_EQ(mob_flush(last), MOB_OK);
    }
    mobius_test::barrier();
  }
}

// The receiver of a block with an unexpected size gets an error, and the next call finds its own
// block.
TEST(Collective, WrongSizesAreToldAndTheNextCallWorks) {
  constexpr size_t kRight[] = {0, 8, 3000, 100'000};
  const Teams teams;
  for (const TestTeam& team : teams) {
    const mob_rank_t wrong = team.size - 1;
    mob_rank_t wrong_rank = -1;
    EXPECT_EQ(mob_team_translate(team.handle, wrong, MOB_TEAM_WORLD, &wrong_rank), MOB_OK);
    for (const size_t bytes : kRight) {
      SCOPED_TRACE(team.name + ", " + std::to_string(bytes));
      const auto members = static_cast<size_t>(team.size);
      const bool is_wrong = team.rank == wrong;
      Lists lists = lists_of(team.size, [&](mob_rank_t) { return bytes; });
      std::vector<unsigned char> in((bytes + 2) * members);
      std::vector<unsigned char> out((bytes + 2) * members);
      const std::string text = "member " + std::to_string(wrong) + " passes ";
      const auto gather = [&](mob_rank_t root, size_t mine, int round) {
        fill(in.data(), mine, team.rank, round);
        return mob_gatherv(team.handle, root, in.data(), mine, out.data(), lists.counts.data(),
                           lists.displacements.data());
      };
      for (mob_rank_t root = 0; root < team.size; ++root) {
        for (const size_t sent : {bytes + 1, bytes / 2, size_t{400'000}}) {
          in.resize(std::max(in.size(), sent));
          const mob_status_t status = gather(root, is_wrong ? sent : bytes, 1);
          if (team.rank != root || sent == bytes) {
            EXPECT_EQ(status, MOB_OK) << mob_last_error();
          } else {
            mobius_test::expect_error(status, MOB_ERR_ARGUMENT, "mob_gatherv",
                                      text + std::to_string(sent) + " bytes");
          }
        }
        EXPECT_EQ(gather(root, bytes, 2), MOB_OK) << mob_last_error();
        for (mob_rank_t r = 0; team.rank == root && r < team.size; ++r) {
          const size_t at = lists.displacements[static_cast<size_t>(r)];
          EXPECT_TRUE(holds(out.data() + at, bytes, r, 2)) << "root " << root << " member " << r;
        }
      }
      // A receiver that shares memory takes as much of the block as it expects.
      const bool is_told = team.rank == 0 && !mobius_test::same_host(wrong_rank);
      if (mobius_test::one_host() || members == 1) continue;
      Lists sent = lists;
      if (is_wrong) sent.counts[0] = bytes + 1;
      const mob_status_t status =
          mob_alltoallv(team.handle, in.data(), sent.counts.data(), sent.displacements.data(),
                        out.data(), lists.counts.data(), lists.displacements.data());
      if (is_told) {
        mobius_test::expect_error(status, MOB_ERR_ARGUMENT, "mob_alltoallv",
                                  text + std::to_string(bytes + 1) + " bytes");
      } else {
        EXPECT_EQ(status, MOB_OK) << mob_last_error();
      }
      for (mob_rank_t r = 0; r < team.size; ++r) {
        fill(in.data() + lists.displacements[static_cast<size_t>(r)], bytes, block_id(team.rank, r),
             3);
      }
      EXPECT_EQ(
          mob_alltoallv(team.handle, in.data(), lists.counts.data(), lists.displacements.data(),
                        out.data(), lists.counts.data(), lists.displacements.data()),
          MOB_OK)
          << mob_last_error();
      for (mob_rank_t r = 0; r < team.size; ++r) {
        const size_t at = lists.displacements[static_cast<size_t>(r)];
        EXPECT_TRUE(holds(out.data() + at, bytes, block_id(r, team.rank), 3)) << "member " << r;
      }
    }
  }
  mobius_test::barrier();
}

// Where members write into each other's memory, unwritable memory is an error in all of them.
TEST(Collective, MemoryThatCannotBeWrittenIsAnErrorAtAll) {
  const char* setting = std::getenv("MOBIUS_COLLECTIVES");
  if (setting == nullptr || std::string(setting) != "attach" || mob_size() == 1 ||
      !mobius_test::one_host()) {
    GTEST_SKIP() << "not by cross-memory attach";
  }
  constexpr size_t kBytes = size_t{256} << 10;
  void* buffer = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(buffer, MAP_FAILED);
  const mob_rank_t last = mob_size() - 1;
  if (mob_rank() == last) {
    EXPECT_EQ(mprotect(buffer, kBytes, PROT_READ), 0);
  }
  const mob_status_t status = mob_broadcast(MOB_TEAM_WORLD, 0, buffer, kBytes);
  if (mob_rank() == last) {
    EXPECT_EQ(status, MOB_ERR_RANGE);
    EXPECT_NE(std::string(mob_last_error()).find("rank 0"), std::string::npos) << mob_last_error();
  } else if (mob_rank() == 0) {
    EXPECT_EQ(status, MOB_ERR_RANGE);  // it writes a part itself
  } else {
    EXPECT_EQ(status, MOB_ERR_PEER);
  }
  // The team is as usable as before.
  EXPECT_EQ(mprotect(buffer, kBytes, PROT_READ | PROT_WRITE), 0);
  if (mob_rank() == 0) std::memset(buffer, 7, kBytes);
  EXPECT_EQ(mob_broadcast(MOB_TEAM_WORLD, 0, buffer, kBytes), MOB_OK) << mob_last_error();
  EXPECT_TRUE(mobius_test::all_are(static_cast<unsigned char*>(buffer), kBytes, 7));
  EXPECT_EQ(munmap(buffer, kBytes), 0);
}

// Unreadable memory is an error in all members, also on other hosts than its owner's.
TEST(Collective, MemoryThatCannotBeReadIsAnErrorAtAll) {
  const char* setting = std::getenv("MOBIUS_COLLECTIVES");
  if (setting == nullptr || std::string(setting) != "attach" || mob_size() == 1) {
    GTEST_SKIP() << "not by cross-memory attach";
  }
  const mob_rank_t last = mob_size() - 1;
  int local_size = mob_host_size();
  EXPECT_EQ(mob_broadcast(MOB_TEAM_WORLD, last, &local_size, sizeof local_size), MOB_OK);
  if (local_size == 1) GTEST_SKIP() << "nobody else would read it";
  constexpr size_t kBytes = size_t{40} << 10;
  void* in = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(in, MAP_FAILED);
  std::memset(in, mob_rank() + 1, kBytes);
  std::vector<unsigned char> all(kBytes * static_cast<size_t>(mob_size()));
  const auto call = [&](bool gathers) {
    return gathers ? mob_gather(MOB_TEAM_WORLD, 0, in, all.data(), kBytes)
                   : mob_allgather(MOB_TEAM_WORLD, in, all.data(), kBytes);
  };
  for (const bool gathers : {false, true}) {
    if (!gathers && mobius_test::one_host()) continue;  // there each member copies its own block
    if (mob_rank() == last) {
      EXPECT_EQ(mprotect(in, kBytes, PROT_NONE), 0);
    }
    const mob_status_t status = call(gathers);
    if (!gathers || mob_rank() == 0 || mob_rank() == last) {
      EXPECT_TRUE(status == MOB_ERR_RANGE || status == MOB_ERR_PEER) << mob_status_name(status);
    }
    EXPECT_EQ(mprotect(in, kBytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(call(gathers), MOB_OK) << mob_last_error();
    for (mob_rank_t r = 0; (!gathers || mob_rank() == 0) && r < mob_size(); ++r) {
      EXPECT_TRUE(mobius_test::all_are(all.data() + static_cast<size_t>(r) * kBytes, kBytes,
                                       static_cast<unsigned char>(r + 1)))
          << "member " << r;
    }
  }
  EXPECT_EQ(munmap(in, kBytes), 0);
  mobius_test::barrier();
}

TEST(Collective, TwoTeamsInTwoThreadsAtOnce) {
  mob_team_t teams[2] = {MOB_TEAM_NONE, MOB_TEAM_NONE};
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, 0, &teams[0]), MOB_OK);
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, -mob_rank(), &teams[1]), MOB_OK);
  int wrong[2] = {0, 0};
  std::thread threads[2];
  for (size_t t = 0; t < 2; ++t) {
    threads[t] = std::thread([team = teams[t], &bad = wrong[t]] {
      std::vector<uint64_t> values(3000);
      for (uint64_t i = 0; i < 300; ++i) {
        const size_t count = i % 3 == 0 ? 3000 : 1 + i % 30;
        const auto me = static_cast<uint64_t>(mob_team_rank(team));
        const auto size = static_cast<uint64_t>(mob_team_size(team));
        std::fill_n(values.begin(), count, i + me);
        bad +=
            mob_allreduce(team, MOB_SUM, MOB_UINT64, values.data(), values.data(), count) != MOB_OK;
        const uint64_t sum = i * size + size * (size - 1) / 2;
        bad += std::count(values.begin(), values.begin() + static_cast<ptrdiff_t>(count), sum) !=
               static_cast<ptrdiff_t>(count);
        const auto root = static_cast<mob_rank_t>(i % size);
        bad += mob_broadcast(team, root, values.data(), count * sizeof(uint64_t)) != MOB_OK;
        bad += mob_team_barrier(team) != MOB_OK;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
  for (mob_team_t team : teams) EXPECT_EQ(mob_team_free(team), MOB_OK);
}

TEST(Collective, TeamBarrierSeparatesPhases) {
  // Each team has a place of its own for the words, because a process may be ahead in another team.
  const size_t bytes = sizeof(uint64_t) * static_cast<size_t>(mob_size());
  const Teams teams;
  const Shared phases(bytes * Teams::kKinds);
  for (const TestTeam& team : teams) {
    const size_t place = bytes * static_cast<size_t>(team.kind - 1);
    int wrong = 0;
    for (uint64_t phase = 1; phase <= 100; ++phase) {
      for (mob_rank_t r = 0; r < team.size; ++r) {
        mob_rank_t world = -1;
        wrong += mob_team_translate(team.handle, r, MOB_TEAM_WORLD, &world) != MOB_OK;
        void* there = phases.at(world, place + sizeof(uint64_t) * static_cast<size_t>(team.rank));
        wrong += mob_put8(world, there, phase) != MOB_OK;
      }
      wrong += mob_team_barrier(team.handle) != MOB_OK;
      const auto* seen = reinterpret_cast<const uint64_t*>(phases.local() + place);
      for (mob_rank_t r = 0; r < team.size; ++r) wrong += seen[r] != phase;
      wrong += mob_team_barrier(team.handle) != MOB_OK;
    }
    EXPECT_EQ(wrong, 0) << team.name;
  }
  mobius_test::barrier();
}
