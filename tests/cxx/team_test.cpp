// SPDX-License-Identifier: BSD-3-Clause

// Teams: splitting, and every collective call on values, vectors, arrays and spans.

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "fixture.h"

using mobius_test::right_of;
using mobius_test::thrown;

namespace {

struct Range {
  int start, end;
  bool operator==(const Range&) const = default;
};

// The sum of the values of ranks 0 … last.
int sum_to(mob_rank_t last) { return last * (last + 1) / 2; }

template <typename Op, typename T>
concept CanReduce = requires(const mob::Team& team, Op op, T value) { team.allreduce(op, value); };

}  // namespace

static_assert(CanReduce<mob_op_t, double> && !CanReduce<mob_op_t, Range>);
static_assert(CanReduce<Range (*)(Range, Range), Range> && !CanReduce<Range (*)(Range), Range>);

TEST(Teams, AreSplit) {
  const mob::Team world = mob::Team::world();
  const mob_rank_t me = mob_rank(), size = mob_size();
  EXPECT_EQ(world.rank(), me);
  EXPECT_EQ(world.size(), size);
  EXPECT_EQ(world.handle(), MOB_TEAM_WORLD);

  const mob::Team back = world.split(0, -me);
  EXPECT_EQ(back.rank(), size - 1 - me);
  EXPECT_EQ(back.world_rank(0), size - 1);
  EXPECT_EQ(back.translate(0, world), size - 1);
  EXPECT_EQ(thrown([&] { static_cast<void>(back.world_rank(size)); }), MOB_ERR_RANK);

  const mob::Team even = world.split_strided(0, 2, (size + 1) / 2);
  EXPECT_EQ(static_cast<bool>(even), me % 2 == 0);
  if (even) {
    EXPECT_EQ(even.rank(), me / 2);
    EXPECT_EQ(even.translate(0, world), 0);
  } else {
    EXPECT_EQ(thrown([&] { static_cast<void>(even.rank()); }), MOB_ERR_HANDLE);
    EXPECT_EQ(thrown([&] { even.barrier(); }), MOB_ERR_HANDLE);
  }
  const std::array<mob_rank_t, 1> last{size - 1};
  mob::Team alone = world.split_list(last);
  EXPECT_EQ(static_cast<bool>(alone), me == size - 1);
  if (alone) {
    EXPECT_EQ(world.translate(0, alone), size == 1 ? 0 : -1);
  }
  EXPECT_EQ(thrown([&] { static_cast<void>(world.split_list({})); }), MOB_ERR_ARGUMENT);

  const mob::Team none = world.split(-1);
  EXPECT_FALSE(none);
  mob::Team taken(alone.release());
  EXPECT_FALSE(alone);
  taken.free();
  EXPECT_EQ(thrown([] { mob::Team::world().free(); }), MOB_OK);
  world.barrier();
}

TEST(Teams, Publish) {
  const mob_rank_t me = mob_rank(), size = mob_size();
  const mob::Team back = mob::Team::world().split(0, -me);
  void* block = nullptr;
  mob::check(mob_local_alloc(sizeof(double), alignof(double), &block));
  const std::vector<mob::Pointer<double>> all = back.publish(static_cast<double*>(block));
  ASSERT_EQ(all.size(), static_cast<size_t>(size));
  const mob::Pointer<double> next = all[static_cast<size_t>(right_of(back.rank()))];
  EXPECT_EQ(next.rank(), back.world_rank(right_of(back.rank())));
  next.put(me + 0.5);
  back.barrier();
  EXPECT_EQ(*static_cast<double*>(block), right_of(me) + 0.5);
  mob::check(mob_local_free(block));
}

TEST(Teams, BroadcastAndReduce) {
  const mob::Team world = mob::Team::world();
  const mob_rank_t me = mob_rank(), size = mob_size(), last = size - 1;
  EXPECT_EQ(world.broadcast(last, 10 * me), 10 * last);
  EXPECT_EQ(world.broadcast(0, Range{me, me + 1}), (Range{0, 1}));
  std::vector<double> vector(5000, me);
  world.broadcast(last, vector);
  EXPECT_EQ(vector, std::vector<double>(5000, last));
  int array[2] = {me, me};
  world.broadcast(0, array);
  EXPECT_EQ(array[1], 0);
  world.broadcast(0, std::span<int>());

  EXPECT_EQ(world.allreduce(MOB_SUM, me), sum_to(last));
  EXPECT_EQ(world.allreduce(MOB_MAX, me + 0.5), last + 0.5);
  const int at_root = world.reduce(last, MOB_SUM, me);
  EXPECT_EQ(at_root, me == last ? sum_to(last) : me);
  EXPECT_EQ(world.scan(MOB_SUM, me), sum_to(me));
  EXPECT_EQ(world.exscan(MOB_SUM, me, -1), me == 0 ? -1 : sum_to(me - 1));

  const std::array<long long, 3> in{me, 2 * me, 1};
  std::vector<long long> out(3);
  world.allreduce(MOB_SUM, in, out);
  EXPECT_EQ(out, (std::vector<long long>{sum_to(last), 2 * sum_to(last), size}));
  world.allreduce(MOB_PROD, out, out);  // in place
  out.assign(3, -1);
  world.scan(MOB_SUM, in, out);
  EXPECT_EQ(out[1], 2 * sum_to(me));
  out.assign(3, -1);
  world.exscan(MOB_SUM, in, out);
  EXPECT_EQ(out[2], me == 0 ? -1 : me);
  std::vector<long long> result(me == 0 ? 3u : 0u);
  world.reduce(0, MOB_SUM, in, result);  // only the root has room for it
  if (me == 0) {
    EXPECT_EQ(result[1], 2 * sum_to(last));
  }
}

TEST(Teams, CombineByFunctions) {
  const mob::Team world = mob::Team::world();
  const mob_rank_t me = mob_rank(), last = mob_size() - 1;
  const auto hull = [](const Range& a, const Range& b) {
    return Range{std::min(a.start, b.start), std::max(a.end, b.end)};
  };
  const Range mine{10 - me, 20 + me};
  EXPECT_EQ(world.allreduce(hull, mine), (Range{10 - last, 20 + last}));
  EXPECT_EQ(world.scan(hull, mine), mine);
  EXPECT_EQ(world.exscan(hull, mine, Range{0, 0}),
            me == 0 ? (Range{0, 0}) : (Range{11 - me, 19 + me}));
  const Range reduced = world.reduce(0, hull, mine);
  EXPECT_EQ(reduced, me == 0 ? (Range{10 - last, 20 + last}) : mine);

  // In rank order, with the state of a function object, and with more than one element.
  const int ten = 10;
  std::vector<uint64_t> digits(3000, static_cast<uint64_t>(me)), number(3000);
  world.allreduce([&](uint64_t a, uint64_t b) { return a * static_cast<unsigned>(ten) + b; },
                  digits, number);
  uint64_t expected = 0;
  for (mob_rank_t rank = 0; rank <= last; ++rank) {
    expected = expected * 10 + static_cast<uint64_t>(rank);
  }
  EXPECT_EQ(number, std::vector<uint64_t>(3000, expected));
  EXPECT_EQ(world.allreduce(std::plus<>(), static_cast<short>(me)), sum_to(last));
}

TEST(Teams, GatherScatterAndExchange) {
  const mob::Team world = mob::Team::world();
  const mob_rank_t me = mob_rank(), size = mob_size();
  const size_t members = static_cast<size_t>(size);
  const int mine[2] = {me, -me};
  std::vector<int> expected;
  for (int rank = 0; rank < size; ++rank) expected.insert(expected.end(), {rank, -rank});

  std::vector<int> all(2 * members);
  world.allgather(mine, all);
  EXPECT_EQ(all, expected);
  std::vector<int> collected(me == 0 ? 2 * members : 0);
  world.gather(0, mine, collected);
  if (me == 0) {
    EXPECT_EQ(collected, expected);
  }
  const std::vector<Range> ranges = world.allgather(Range{me, me});
  ASSERT_EQ(ranges.size(), members);
  EXPECT_EQ(ranges[members - 1], (Range{size - 1, size - 1}));

  int part[2] = {7, 7};
  world.scatter(0, collected, part);
  EXPECT_EQ(part[0], me);
  EXPECT_EQ(part[1], -me);

  std::vector<int> blocks;
  for (int rank = 0; rank < size; ++rank) blocks.insert(blocks.end(), {me * 100 + rank, rank});
  std::vector<int> exchanged(2 * members);
  world.alltoall(blocks, exchanged);
  world.alltoall(blocks, blocks);  // in place
  EXPECT_EQ(blocks, exchanged);
  for (size_t rank = 0; rank < members; ++rank) {
    EXPECT_EQ(exchanged[2 * rank], static_cast<int>(rank) * 100 + me);
    EXPECT_EQ(exchanged[2 * rank + 1], me);
  }
  world.alltoall(std::span<const int>(), std::span<int>());
  world.allgather(std::span<const int>(), std::span<int>());
}

// Detected before this rank has taken part: all ranks make the mistake and continue.
TEST(Teams, TellNumbersThatDoNotFit) {
  const mob::Team world = mob::Team::world();
  const mob_rank_t me = mob_rank(), size = mob_size();
  std::vector<int> two(2), three(3), many(2 * static_cast<size_t>(size) + 1);
  EXPECT_EQ(thrown([&] { world.allreduce(MOB_SUM, two, three); }), MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { world.scan(MOB_SUM, two, three); }), MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { world.exscan(MOB_SUM, three, two); }), MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { world.reduce(me, MOB_SUM, two, three); }), MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { world.allgather(two, many); }), MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { world.gather(me, two, many); }), MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { world.scatter(me, many, two); }), MOB_ERR_ARGUMENT);
  std::vector<int> more(static_cast<size_t>(size));
  EXPECT_EQ(thrown([&] { world.alltoall(more, many); }), MOB_ERR_ARGUMENT);
  if (size > 1) {
    EXPECT_EQ(thrown([&] { world.alltoall(many, many); }), MOB_ERR_ARGUMENT);
  }
  EXPECT_EQ(thrown([&] { static_cast<void>(world.allreduce(MOB_BAND, 1.0)); }, "mob_allreduce:"),
            MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { static_cast<void>(world.broadcast(size, 1)); }), MOB_ERR_RANK);
  EXPECT_EQ(world.allreduce(MOB_SUM, 1), size);
}
