// SPDX-License-Identifier: BSD-3-Clause

// Pointers: their arithmetic, and every transfer and update through them.

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "fixture.h"

using mobius_test::left_of;
using mobius_test::right_of;
using mobius_test::thrown;

namespace {

enum class Colour : uint16_t { kRed = 7, kBlue = 40000 };

struct Point {
  double x, y, z;
  bool operator==(const Point&) const = default;
};

struct Slot {
  uint64_t ready;
  Point points[4];
  int32_t level;
};

template <typename T>
class Values : public testing::Test {};
using ValueTypes =
    testing::Types<int8_t, bool, char, Colour, int16_t, int32_t, uint32_t, float, int64_t, uint64_t,
                   long long, double, std::complex<float>, std::complex<double>, Point>;
TYPED_TEST_SUITE(Values, ValueTypes);

template <typename T>
T value_of(mob_rank_t rank, int round) {
  const int number = (rank * 3 + round) % 100;
  if constexpr (std::is_same_v<T, Point>) {
    return {number + 0.5, -1.0 * number, 1e9 * number};
  } else if constexpr (std::is_same_v<T, Colour>) {
    return number % 2 == 0 ? Colour::kRed : Colour::kBlue;
  } else {
    return static_cast<T>(static_cast<float>(number));
  }
}

template <typename T>
class Words : public testing::Test {};
using WordTypes = testing::Types<int32_t, uint32_t, int64_t, uint64_t, long long>;
TYPED_TEST_SUITE(Words, WordTypes);

template <typename T>
concept HasFetchAdd = requires(mob::Pointer<T> pointer, T value) { pointer.fetch_add(value); };
template <typename T>
concept HasAccumulate = requires(mob::Pointer<T> pointer, T value) { pointer.accumulate(value); };

}  // namespace

static_assert(mob::Transferable<mob::Pointer<Point>>);
static_assert(!mob::Transferable<std::vector<int>> && !mob::Transferable<const int> &&
              !mob::Transferable<int[2]> && !mob::Transferable<int&> && !mob::Transferable<int*>);
static_assert(mob::type_of<long long> == MOB_INT64 && mob::type_of<unsigned long> == MOB_UINT64);
static_assert(mob::type_of<signed char> == MOB_INT8 && mob::type_of<unsigned short> == MOB_UINT16);
static_assert(mob::type_of<std::complex<float>> == MOB_COMPLEX_FLOAT);
static_assert(!mob::Reducible<bool> && !mob::Reducible<long double> && !mob::Reducible<Point> &&
              !mob::Reducible<Colour> && !mob::Reducible<int*>);
static_assert(HasFetchAdd<long long> && !HasFetchAdd<double> && !HasFetchAdd<short>);
static_assert(HasAccumulate<double> && !HasAccumulate<Point>);
static_assert(mob::WritableBuffer<std::vector<int>&> &&
              !mob::WritableBuffer<std::span<const int>> && mob::Buffer<const int (&)[3]>);

TYPED_TEST(Values, ArePutAndGot) {
  const mob_rank_t me = mob_rank(), right = right_of(me);
  const mob::Array<TypeParam> array(2);
  const mob::Pointer<TypeParam> there = array.at(right);
  there.put(value_of<TypeParam>(me, 1));
  (there + 1).put(value_of<TypeParam>(me, 2));
  mob::check(mob_barrier());
  EXPECT_EQ(array.local()[0], value_of<TypeParam>(left_of(me), 1));
  EXPECT_EQ(array.local()[1], value_of<TypeParam>(left_of(me), 2));
  EXPECT_EQ(there.get(), value_of<TypeParam>(me, 1));
  EXPECT_EQ((there + 1).get(), value_of<TypeParam>(me, 2));
  mob::check(mob_barrier());
}

TEST(Pointers, AreComputedAndCompared) {
  const mob::Array<Point> array(10);
  mob::Pointer<Point> p = array.at(0);
  EXPECT_EQ(p + 3, array.at(0, 3));
  EXPECT_EQ(array.at(0, 7) - array.at(0, 9), -2);
  EXPECT_EQ((++p).address(), array.at(0, 1).address());
  EXPECT_EQ(--p, array.at(0));
  EXPECT_EQ((p += 4) -= 3, array.at(0, 1));
  EXPECT_LT(array.at(0), p);
  EXPECT_GE(p, array.at(0, 1));
  EXPECT_LT(p, mob::Pointer<Point>(1, nullptr));  // the rank decides first
  EXPECT_NE(mob::Pointer<int>(0, nullptr), mob::Pointer<int>(1, nullptr));
  EXPECT_FALSE(mob::Pointer<int>());
  EXPECT_TRUE(p);
}

TEST(Pointers, FindMembers) {
  const mob_rank_t me = mob_rank(), right = right_of(me);
  const mob::Array<Slot> slots(2);
  const mob::Pointer<Slot> slot = slots.at(right, 1);
  (slot.member(&Slot::points) + 2).put(Point{1, 2, 3.0 + me});
  slot.member(&Slot::level).fetch_add(me - 5);
  slot.member(&Slot::ready).put(9);
  mob::check(mob_barrier());
  const Slot& mine = slots.local()[1];
  EXPECT_EQ(mine.points[2], (Point{1, 2, 3.0 + left_of(me)}));
  EXPECT_EQ(mine.level, left_of(me) - 5);
  EXPECT_EQ(mine.ready, 9u);
  EXPECT_EQ(slots.local()[0].ready, 0u);
  mob::check(mob_barrier());
}

TEST(Pointers, AreMappedByLocalPeers) {
  const mob::Array<int> array(4);
  array.local()[3] = 30 + mob_rank();
  mob::check(mob_barrier());
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    const mob::Pointer<int> there = array.at(rank, 3);
    if (mob_is_host_mate(rank) == 1) {
      EXPECT_EQ(*there.mapped(), 30 + rank);
    } else {
      EXPECT_EQ(thrown([&] { static_cast<void>(there.mapped()); }, "mob_ptr:"), MOB_ERR_RANK);
    }
  }
  mob::check(mob_barrier());
}

TEST(Pointers, TransferSpans) {
  const mob_rank_t me = mob_rank(), right = right_of(me);
  const mob::Array<int> array(1000);
  std::vector<int> values(100), got(100);
  std::iota(values.begin(), values.end(), me * 1000);

  array.at(right, 10).put(values);
  mob::Handle started = array.at(right, 200).put_nb(values);
  array.at(right, 400).put_nbi(values);
  array.at(right).put(std::span<const int>());
  started.wait();
  mob::check(mob_barrier());
  for (const size_t first : {size_t{10}, size_t{200}, size_t{400}}) {
    for (size_t i = 0; i < 100; ++i) {
      ASSERT_EQ(array.local()[first + i], left_of(me) * 1000 + static_cast<int>(i));
    }
  }
  EXPECT_EQ(array.local()[9] + array.local()[110] + array.local()[0], 0);

  array.at(right, 10).get(got);
  EXPECT_EQ(got, values);
  got.assign(100, -1);
  started = array.at(right, 200).get_nb(got);
  while (!started.test()) {
  }
  EXPECT_EQ(got, values);
  got.assign(100, -1);
  array.at(right, 400).get_nbi(got);
  mob::check(mob_flush_local(right));
  EXPECT_EQ(got, values);
  mob::check(mob_barrier());
}

TEST(Pointers, HandlesAreWaitedFor) {
  const mob_rank_t right = right_of(mob_rank());
  const mob::Array<double> array(64);
  const std::vector<double> values(64, 2.5);
  mob::Handle handles[3];
  for (int i = 0; i < 3; ++i) {
    handles[i] = array.at(right, static_cast<size_t>(i) * 16).put_nb(std::span(values).first(16));
  }
  mob::wait_all(handles);
  for (mob::Handle& handle : handles) EXPECT_TRUE(handle.test());
  EXPECT_EQ(mob::wait_any(handles), 3u);
  mob::wait_all({});
  EXPECT_EQ(mob::wait_any({}), 0u);

  std::vector<double> got(16);
  handles[1] = array.at(right, 16).get_nb(got);
  const size_t which = mob::wait_any(handles);
  EXPECT_TRUE(which == 1 || which == 3);  // complete at once between local peers
  EXPECT_EQ(got[15], 2.5);
  {
    const mob::Handle dropped = array.at(right, 48).put_nb(std::span(values).first(16));
  }
  mob_handle_t raw = array.at(right, 48).get_nb(got).release();
  EXPECT_EQ(mob_wait(&raw), MOB_OK);
  mob::check(mob_barrier());
  EXPECT_EQ(array.local()[63], 2.5);
  mob::Handle wrong(UINT64_C(1) << 60);
  EXPECT_EQ(thrown([&] { wrong.wait(); }, "mob_wait:"), MOB_ERR_HANDLE);
  EXPECT_EQ(wrong.release(), UINT64_C(1) << 60);
}

TEST(Pointers, SignalAndWait) {
  const mob_rank_t me = mob_rank(), right = right_of(me);
  const mob::Array<Slot> slots(1);
  const mob::Array<uint64_t> taken(1);
  const Point points[4] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12.0 + me}};
  const mob::Pointer<Slot> there = slots.at(right);
  there.member(&Slot::points).put_signal(points, there.member(&Slot::ready), 3, MOB_SIGNAL_ADD);
  mob::wait_until(&slots.local()[0].ready, MOB_GE, 3);
  EXPECT_EQ(slots.local()[0].points[3], (Point{10, 11, 12.0 + left_of(me)}));
  mob::check(mob_barrier());

  Point got[4];
  slots.at(left_of(me))
      .member(&Slot::points)
      .get_signal(got, slots.at(left_of(me)).member(&Slot::ready), 8);
  mob::wait_until(&slots.local()[0].ready, MOB_EQ, 8);
  EXPECT_EQ(got[0], points[0]);
  if (mob_size() > 1) {
    EXPECT_EQ(
        thrown([&] {
          there.member(&Slot::points).put_signal(points, slots.at(me).member(&Slot::ready), 1);
        }),
        MOB_ERR_ARGUMENT);
  }
  mob::check(mob_barrier());
}

TEST(Pointers, Accumulate) {
  const mob_rank_t me = mob_rank(), size = mob_size();
  const mob::Array<double> array(4);
  const double values[3] = {1.0, 10.0, 100.0};
  for (mob_rank_t rank = 0; rank < size; ++rank) {
    array.at(rank).accumulate(values);
    array.at(rank, 1).accumulate(0.5);
    array.at(rank, 1).accumulate_scaled(std::span(values).first(2), 2.0);
    array.at(rank, 3).accumulate(me + 1.0, MOB_MAX);
  }
  mob::check(mob_barrier());
  EXPECT_EQ(array.local()[0], 1.0 * size);
  EXPECT_EQ(array.local()[1], 12.5 * size);
  EXPECT_EQ(array.local()[2], 120.0 * size);
  EXPECT_EQ(array.local()[3], 1.0 * size);
  mob::check(mob_barrier());

  double old[3] = {};
  const mob::Pointer<double> there = array.at(right_of(me));
  there.fetch_accumulate(values, old, MOB_REPLACE);
  mob::check(mob_flush_all());
  EXPECT_EQ(old[1], 12.5 * size);
  EXPECT_EQ(there.get(), 1.0);
  EXPECT_EQ(there.fetch_op(4.0, MOB_PROD), 1.0);
  EXPECT_EQ(there.fetch_op(0.0, MOB_NO_OP), 4.0);
  EXPECT_EQ(thrown([&] { there.fetch_accumulate(values, std::span(old).first(2)); }),
            MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([&] { there.accumulate(values, MOB_BAND); }, "mob_accumulate:"),
            MOB_ERR_ARGUMENT);
  const mob::Array<std::complex<double>> numbers(1);
  numbers.at(0).accumulate({1.0, static_cast<double>(me)});
  mob::check(mob_barrier());
  if (me == 0) {
    EXPECT_EQ(numbers.local()[0], std::complex<double>(size, size * (size - 1) / 2));
  }
}

TYPED_TEST(Words, AreUpdated) {
  using T = TypeParam;
  const mob_rank_t me = mob_rank(), size = mob_size();
  const mob::Array<T> array(2);
  const mob::Pointer<T> shared = array.at(0), there = array.at(right_of(me), 1);
  const T ticket = shared.fetch_add(1);
  EXPECT_LT(ticket, static_cast<T>(size));
  mob::check(mob_barrier());
  EXPECT_EQ(shared.get(), static_cast<T>(size));

  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  EXPECT_EQ(there.swap(high), T{0});
  EXPECT_EQ(there.fetch_add(1), high);
  EXPECT_EQ(there.fetch_or(5), low);
  EXPECT_EQ(there.fetch_and(static_cast<T>(low | 4)), static_cast<T>(low | 5));
  EXPECT_EQ(there.fetch_xor(6), static_cast<T>(low | 4));
  EXPECT_EQ(there.compare_swap(1, 3), static_cast<T>(low | 2));  // not changed
  EXPECT_EQ(there.compare_swap(static_cast<T>(low | 2), 3), static_cast<T>(low | 2));
  EXPECT_EQ(there.get(), T{3});
  mob::check(mob_barrier());

  there.put(high);
  mob::wait_until(&array.local()[1], MOB_EQ, high);
  EXPECT_TRUE(mob::test_until(&array.local()[1], MOB_GT, 3));
  EXPECT_FALSE(mob::test_until(&array.local()[1], MOB_LT, 3));
  mob::check(mob_barrier());
  there.swap(static_cast<T>(-2));  // less depends on the sign
  mob::check(mob_barrier());
  EXPECT_EQ(mob::test_until(&array.local()[1], MOB_LT, 3), std::is_signed_v<T>);
  mob::check(mob_barrier());
  T* const none = nullptr;
  EXPECT_EQ(thrown([&] { mob::wait_until(none, MOB_EQ, 0); }), MOB_ERR_ARGUMENT);
}

TEST(Pointers, TellMistakes) {
  const mob_rank_t me = mob_rank();
  const mob::Array<double> array(4);
  const std::vector<double> values(5);
  const mob::Pointer<double> mine = array.at(me), nowhere(mob_size(), mine.address());
  EXPECT_EQ(thrown([&] { mine.put(values); }, "mob_put:"), MOB_ERR_RANGE);
  EXPECT_EQ(thrown([&] { (mine - 1).put(1.0); }, "mob_put8:"), MOB_ERR_RANGE);
  EXPECT_EQ(thrown([&] { (mine + std::numeric_limits<std::ptrdiff_t>::max()).put(1.0); }),
            MOB_ERR_RANGE);
  EXPECT_EQ(thrown([&] { nowhere.put(1.0); }), MOB_ERR_RANK);
  EXPECT_EQ(thrown([&] { static_cast<void>(nowhere.get()); }, "mob_get8:"), MOB_ERR_RANK);
  EXPECT_EQ(thrown([&] { static_cast<void>(nowhere.put_nb(values)); }), MOB_ERR_RANK);
  const mob::Pointer<uint64_t> unaligned(
      me, reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(mine.address()) + 4));
  EXPECT_EQ(thrown([&] { unaligned.fetch_add(1); }, "mob_fetch_add8:"), MOB_ERR_ARGUMENT);
  EXPECT_EQ(array.local()[0], 0.0);
  mob::check(mob_barrier());
}
