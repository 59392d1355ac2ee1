// SPDX-License-Identifier: BSD-3-Clause

// Transfers of every kind, shape and way of completion, compared with the model of tests/model.

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "fixture.h"
#include "model/elements.h"
#include "model/plan.h"

using mobius_test::barrier;
using mobius_test::Description;
using mobius_test::outcome;
using mobius_test::Plan;
using mobius_test::Random;
using mobius_test::Shared;

namespace {

using Bytes = std::vector<unsigned char>;

constexpr size_t kAreaBytes = 6000;

enum class How { kBlocking, kWait, kTest, kAll, kAny, kSome, kImplicitLocal, kImplicit };
constexpr How kEveryHow[] = {How::kBlocking, How::kWait, How::kTest,          How::kAll,
                             How::kAny,      How::kSome, How::kImplicitLocal, How::kImplicit};

mob_status_t complete(How how, mob_rank_t target, mob_handle_t* handle) {
  int done = 0;
  size_t index = 7;
  size_t completed = 0;
  mob_status_t status = MOB_OK;
  switch (how) {
    case How::kBlocking:
      return MOB_OK;
    case How::kWait:
      return mob_wait(handle);
    case How::kTest:
      while (status == MOB_OK && done == 0) status = mob_test(handle, &done);
      return status;
    case How::kAll:
      return mob_wait_all(handle, 1);
    case How::kAny:
      return mob_wait_any(handle, 1, &index);
    case How::kSome:
      return mob_wait_some(handle, 1, &index, &completed);
    case How::kImplicitLocal:
      return mob_flush_local(target);
    case How::kImplicit:
      return mob_flush_all();
  }
  return status;
}

// Runs a transfer up to local completion.
mob_status_t run(How how, const mob_transfer_t& transfer) {
  mob_handle_t handle = MOB_HANDLE_DONE;
  const mob_status_t status = how == How::kBlocking ? mob_transfer(&transfer)
                              : how == How::kImplicitLocal || how == How::kImplicit
                                  ? mob_transfer_nbi(&transfer)
                                  : mob_transfer_nb(&transfer, &handle);
  if (status != MOB_OK) return status;
  const mob_status_t completed = complete(how, transfer.rank, &handle);
  return handle == MOB_HANDLE_DONE ? completed : MOB_ERR_HANDLE;
}

// One origin's view of a target that only it writes: the expected contents at the target and at the
// origin.
class Mirror {
 public:
  Mirror(const Shared& memory, mob_rank_t target, Bytes remote, Bytes local)
      : memory_(memory),
        target_(target),
        remote_(std::move(remote)),
        local_(std::move(local)),
        fetched_(kAreaBytes),
        real_local_(local_),
        real_fetched_(kAreaBytes) {}

  void check(How how, const Plan& plan) {
    const Description expected(plan, remote_.data(), local_.data(), fetched_.data());
    mobius_test::carry_out(expected.transfer);
    const Description real(plan, memory_.at(target_), real_local_.data(), real_fetched_.data());
    EXPECT_EQ(run(how, real.transfer), MOB_OK) << mob_last_error() << " " << plan.text();
    EXPECT_EQ(mob_flush(target_), MOB_OK);
    Bytes seen(remote_.size());
    EXPECT_EQ(mob_get(target_, memory_.at(target_), seen.data(), seen.size()), MOB_OK);
    const auto same = [&](const Bytes& a, const Bytes& b) {
      if (a == b) return true;
      return plan.accumulates() && mobius_test::equal(plan.type, a.data(), b.data(), a.size());
    };
    EXPECT_TRUE(same(seen, remote_)) << plan.text();
    EXPECT_TRUE(same(real_local_, local_)) << plan.text();
    EXPECT_TRUE(same(real_fetched_, fetched_)) << plan.text();
  }

 private:
  const Shared& memory_;
  const mob_rank_t target_;
  Bytes remote_;
  Bytes local_;
  Bytes fetched_;
  Bytes real_local_;
  Bytes real_fetched_;
};

Bytes random_bytes(uint64_t seed) {
  Bytes result(kAreaBytes);
  Random random(seed);
  random.fill(result.data(), result.size());
  return result;
}

Bytes exact_elements(uint64_t seed, mob_type_t type) {
  Bytes result(kAreaBytes);
  Random random(seed);
  const size_t element = mobius_test::bytes_of(type);
  for (size_t at = 0; at + element <= kAreaBytes; at += element) {
    mobius_test::write_exact(random, type, &result[at]);
  }
  return result;
}

// Every rank fills its own part, and only its left neighbour writes to it.
template <typename Fill, typename Check>
void with_mirror(Fill fill, Check check) {
  const Shared memory(kAreaBytes);
  const auto me = static_cast<uint64_t>(mob_rank());
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  std::memcpy(memory.local(), fill(me).data(), kAreaBytes);
  barrier();
  Mirror mirror(memory, target, fill(static_cast<uint64_t>(target)), fill(1000 + me));
  check(mirror, target);
  barrier();
}

class Shapes : public testing::TestWithParam<std::tuple<int, int>> {};

}  // namespace

TEST_P(Shapes, MovesWhatTheModelMoves) {
  const auto [kind, shape] = GetParam();
  with_mirror(random_bytes, [&](Mirror& mirror, mob_rank_t target) {
    Random random(static_cast<uint64_t>(mob_rank() * 100 + kind * 10 + shape));
    for (int round = 0; round < 10; ++round) {
      for (const How how : kEveryHow) {
        Plan plan;
        plan.kind = static_cast<mob_kind_t>(kind);
        plan.rank = target;
        if (!mobius_test::shape_plan(random, static_cast<mob_shape_t>(shape), {0, kAreaBytes},
                                     {0, kAreaBytes}, &plan)) {
          continue;
        }
        mirror.check(how, plan);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(PutAndGet, Shapes,
                         testing::Combine(testing::Values(int{MOB_PUT}, int{MOB_GET}),
                                          testing::Range(0, MOB_SPANS + 1)));

class Accumulates : public testing::TestWithParam<int> {};

TEST_P(Accumulates, EveryOperationInEveryShape) {
  const auto type = static_cast<mob_type_t>(GetParam());
  for (int o = 0; o < MOB_OP_COUNT; ++o) {
    const auto op = static_cast<mob_op_t>(o);
    EXPECT_EQ(mob_op_is_defined(op, type), mobius_test::is_defined(op, type) ? 1 : 0);
    if (!mobius_test::is_defined(op, type)) continue;
    const auto fill = [type](uint64_t seed) { return exact_elements(seed, type); };
    with_mirror(fill, [&](Mirror& mirror, mob_rank_t target) {
      Random random(static_cast<uint64_t>(mob_rank() * 1000 + type * 100 + o));
      for (int round = 0; round < 3; ++round) {
        for (int shape = 0; shape <= MOB_SPANS; ++shape) {
          for (const mob_kind_t kind : {MOB_ACCUMULATE, MOB_FETCH_ACCUMULATE}) {
            Plan plan;
            plan.kind = kind;
            plan.rank = target;
            plan.type = type;
            plan.op = op;
            if (op == MOB_SUM && round > 0) {
              plan.scale.resize(mobius_test::bytes_of(type));
              mobius_test::write_exact(random, type, plan.scale.data());
            }
            if (!mobius_test::shape_plan(random, static_cast<mob_shape_t>(shape), {0, kAreaBytes},
                                         {0, kAreaBytes}, &plan)) {
              continue;
            }
            mirror.check(kEveryHow[random.below(std::size(kEveryHow))], plan);
          }
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Accumulates, testing::Range(0, int{MOB_TYPE_COUNT}));

// The first and the last byte of a part, from the first to the last rank.
TEST(Borders, EveryShapeReachesTheEnds) {
  constexpr size_t kSmall = 96;
  // The allocation in front of it is freed: memory that the library kept for later would be a
  // target too.
  std::array<std::optional<Shared>, 8> in_front;
  for (auto& each : in_front) each.emplace(kSmall);
  const Shared memory(kSmall);
  for (auto& each : in_front) each.reset();
  for (mob_rank_t target = 0; target < mob_size(); ++target) {
    barrier();
    std::memset(memory.local(), 0, kSmall);
    barrier();
    if (target == mobius_test::right_of(mob_rank())) {
      unsigned char* start = memory.at(target);
      unsigned char bytes[kSmall];
      std::memset(bytes, 0xA5, sizeof bytes);
      const ptrdiff_t apart = kSmall - 1;
      const ptrdiff_t next = 1;
      const ptrdiff_t back = -apart;
      const size_t two = 2;
      EXPECT_EQ(mob_put_strided(target, start, &apart, bytes, &next, 1, &two, 1), MOB_OK);
      EXPECT_EQ(mob_put_strided(target, start + apart, &back, bytes, &next, 1, &two, 1), MOB_OK);
      void* remotes[] = {start + kSmall - 2, start + 1};
      void* locals[] = {bytes, bytes};
      EXPECT_EQ(mob_put_pieces(target, remotes, locals, 2, 1), MOB_OK);
      // One byte more is refused at either end, and nothing of it is written.
      remotes[0] = start + kSmall;
      EXPECT_EQ(outcome(target, mob_put_pieces(target, remotes, locals, 2, 1)), MOB_ERR_RANGE);
      const ptrdiff_t too_far = kSmall;
      EXPECT_EQ(
          outcome(target, mob_put_strided(target, start + 2, &too_far, bytes, &next, 1, &two, 1)),
          MOB_ERR_RANGE);
      const ptrdiff_t before = -3;
      EXPECT_EQ(
          outcome(target, mob_put_strided(target, start + 2, &before, bytes, &next, 1, &two, 1)),
          MOB_ERR_RANGE);
    }
    barrier();
    if (mob_rank() == target) {
      for (size_t at = 0; at < kSmall; ++at) {
        const bool written = at < 2 || at >= kSmall - 2;
        EXPECT_EQ(memory.local()[at], written ? 0xA5 : 0) << at;
      }
    }
  }
  barrier();
}

// Rows that go between hosts one by one, by remote memory access (MOBIUS_RMA_BYTES), as one
// transfer.
class LargeRows : public testing::Test {
 protected:
  static constexpr size_t kRows = 6;
  static constexpr size_t kRowBytes = (size_t{160} << 10) + 24;
  static constexpr size_t kApart = kRowBytes + 4000;
  static constexpr size_t kWindow = kRows * kApart;

  // The rows of a transfer that moves them in one of the shapes, between `remote` and `local`.
  struct Rows {
    Rows(mob_kind_t kind, mob_shape_t shape, mob_rank_t target, unsigned char* remote,
         unsigned char* local) {
      transfer.kind = kind;
      transfer.shape = shape;
      transfer.rank = target;
      transfer.remote = remote;
      transfer.local = local;
      transfer.bytes = kRowBytes;
      transfer.dimensions = 2;
      transfer.counts = counts;
      transfer.remote_strides = transfer.local_strides = strides;
      for (size_t row = 0; row < kRows; ++row) {
        remotes[row] = remote + row * kApart;
        locals[row] = local + row * kApart;
        remote_spans[row] = {remotes[row], kRowBytes};
        local_spans[row] = {locals[row], kRowBytes};
      }
      // The tail of the last row is a span of its own.
      local_spans[kRows - 1].bytes -= 100;
      local_spans[kRows] = {local + (kRows - 1) * kApart + kRowBytes - 100, 100};
      transfer.count = kRows;
      transfer.remotes = remotes;
      transfer.locals = locals;
      transfer.remote_spans = remote_spans;
      transfer.remote_span_count = kRows;
      transfer.local_spans = local_spans;
      transfer.local_span_count = kRows + 1;
    }
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;

    // Every second row, then the others.
    const size_t counts[2] = {kRows / 2, 2};
    const ptrdiff_t strides[2] = {2 * kApart, kApart};
    void* remotes[kRows];
    void* locals[kRows];
    mob_span_t remote_spans[kRows];
    mob_span_t local_spans[kRows + 1];
    mob_transfer_t transfer{};
  };

  static constexpr mob_shape_t kShapes[] = {MOB_STRIDED, MOB_PIECES, MOB_SPANS};

  // Whether `memory` holds rows of `from`, and between them the bytes of `gaps`.
  static bool has_rows(const unsigned char* memory, const Bytes& from, const Bytes& gaps) {
    for (size_t row = 0; row < kRows; ++row) {
      const size_t at = row * kApart;
      if (std::memcmp(memory + at, &from[at], kRowBytes) != 0 ||
          std::memcmp(memory + at + kRowBytes, &gaps[at + kRowBytes], kApart - kRowBytes) != 0) {
        return false;
      }
    }
    return true;
  }

  unsigned char* there() const { return memory_.at(target_); }
  uint64_t* word_at(mob_rank_t rank) const {
    return reinterpret_cast<uint64_t*>(memory_.at(rank, kWindow));
  }

  const mob_rank_t target_ = mobius_test::right_of(mob_rank());
  const Shared memory_{kWindow + 64};
};

TEST_F(LargeRows, GoThereAndBack) {
  const Bytes before = mobius_test::patterned(kWindow, mob_rank(), 0);
  std::memcpy(memory_.local(), before.data(), kWindow);
  const Bytes before_there = mobius_test::patterned(kWindow, target_, 0);
  int round = 0;
  for (const mob_shape_t shape : kShapes) {
    for (const How how : kEveryHow) {
      barrier();
      Bytes sent = mobius_test::patterned(kWindow, mob_rank(), ++round);
      const Rows put(MOB_PUT, shape, target_, there(), sent.data());
      EXPECT_EQ(run(how, put.transfer), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_flush(target_), MOB_OK) << mob_last_error();
      barrier();
      EXPECT_TRUE(has_rows(memory_.local(),
                           mobius_test::patterned(kWindow, mobius_test::left_of(mob_rank()), round),
                           before))
          << shape << ' ' << round;
      const Bytes blank(kWindow);
      Bytes got = blank;
      const Rows get(MOB_GET, shape, target_, there(), got.data());
      EXPECT_EQ(run(how, get.transfer), MOB_OK) << mob_last_error();
      EXPECT_TRUE(has_rows(got.data(), sent, blank)) << shape << ' ' << round;
    }
  }
  barrier();
  Bytes all(kWindow);
  EXPECT_EQ(mob_get(target_, there(), all.data(), kWindow), MOB_OK);
  EXPECT_TRUE(has_rows(all.data(), all, before_there));
  barrier();
}

// So many that their list takes several records, where each row goes alone.
TEST_F(LargeRows, ManySmallOnes) {
  constexpr size_t kMany = 5000;
  constexpr size_t kSmall = 64;
  const Bytes sent = mobius_test::patterned(kMany * kSmall, mob_rank(), 3);
  const size_t count = kMany;
  const ptrdiff_t packed = kSmall;
  const ptrdiff_t apart = 2 * kSmall;
  static_assert(kMany * 2 * kSmall <= kWindow);
  std::memset(memory_.local(), 0, kWindow);
  barrier();
  EXPECT_EQ(mob_put_strided(target_, there(), &apart, sent.data(), &packed, kSmall, &count, 1),
            MOB_OK);
  EXPECT_EQ(mob_flush(target_), MOB_OK) << mob_last_error();
  Bytes got(kMany * kSmall);
  EXPECT_EQ(mob_get_strided(target_, there(), &apart, got.data(), &packed, kSmall, &count, 1),
            MOB_OK)
      << mob_last_error();
  EXPECT_EQ(got, sent);
  barrier();
  for (size_t row = 0; row < kMany; ++row) {
    EXPECT_TRUE(mobius_test::all_are(memory_.local() + (2 * row + 1) * kSmall, kSmall, 0)) << row;
  }
  barrier();
}

TEST_F(LargeRows, AreToldOfOnceAndWhenAllAreThere) {
  if (mobius_test::reorders()) GTEST_SKIP() << "what a target waits for here may be kept back";
  constexpr uint64_t kRounds = 6;
  mob_counter_t origin = nullptr;
  mob_counter_t completion = nullptr;
  ASSERT_EQ(mob_counter_create(&origin), MOB_OK);
  ASSERT_EQ(mob_counter_create(&completion), MOB_OK);
  mob_counter_t arrived = nullptr;
  ASSERT_EQ(mob_counter_create(&arrived), MOB_OK);
  auto* const arrived_there = static_cast<mob_counter_t>(mobius_test::exchange_address(arrived));
  *word_at(mob_rank()) = 0;
  const Bytes blank(kWindow);
  std::memset(memory_.local(), 0, kWindow);
  barrier();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    Bytes sent = mobius_test::patterned(kWindow, mob_rank(), static_cast<int>(round));
    Rows put(MOB_PUT, kShapes[round % std::size(kShapes)], target_, there(), sent.data());
    put.transfer.origin_counter = origin;
    put.transfer.completion_counter = completion;
    put.transfer.target_counter = arrived_there;
    put.transfer.signal = word_at(target_);
    put.transfer.signal_value = 1;
    put.transfer.signal_op = MOB_SIGNAL_ADD;
    EXPECT_EQ(mob_transfer_nbi(&put.transfer), MOB_OK) << mob_last_error();
    const mob_rank_t writer = mobius_test::left_of(mob_rank());
    const Bytes expected = mobius_test::patterned(kWindow, writer, static_cast<int>(round));
    if (round % 2 == 0) {
      EXPECT_EQ(mob_wait_until_u8(word_at(mob_rank()), MOB_EQ, round), MOB_OK);
      EXPECT_TRUE(has_rows(memory_.local(), expected, blank)) << round;
      EXPECT_EQ(mob_counter_wait(arrived, 1, nullptr), MOB_OK);
    } else {
      EXPECT_EQ(mob_counter_wait(arrived, 1, nullptr), MOB_OK);
      EXPECT_TRUE(has_rows(memory_.local(), expected, blank)) << round;
    }
    EXPECT_EQ(mob_counter_wait(origin, 1, nullptr), MOB_OK);
    EXPECT_EQ(mob_counter_wait(completion, 1, nullptr), MOB_OK);
    EXPECT_EQ(mob_flush(target_), MOB_OK) << mob_last_error();
    barrier();
    EXPECT_EQ(*word_at(mob_rank()), round);
    for (const mob_counter_t counter : {origin, completion, arrived}) {
      uint64_t left = 1;
      EXPECT_EQ(mob_counter_get(counter, &left), MOB_OK);
      EXPECT_EQ(left, 0u);
    }
    barrier();
  }
  for (const mob_counter_t counter : {origin, completion, arrived}) {
    EXPECT_EQ(mob_counter_free(counter), MOB_OK);
  }
}

TEST_F(LargeRows, AFenceOrdersThem) {
  if (mobius_test::reorders()) GTEST_SKIP() << "what a target waits for here may be kept back";
  const Bytes blank(kWindow);
  std::memset(memory_.local(), 0, kWindow);
  *word_at(mob_rank()) = 0;
  barrier();
  for (uint64_t round = 1; round <= 6; ++round) {
    Bytes sent = mobius_test::patterned(kWindow, mob_rank(), static_cast<int>(round));
    const Rows put(MOB_PUT, kShapes[round % std::size(kShapes)], target_, there(), sent.data());
    EXPECT_EQ(mob_transfer_nbi(&put.transfer), MOB_OK) << mob_last_error();
    if (round % 2 == 0) {
      EXPECT_EQ(mob_fence(), MOB_OK);
      EXPECT_EQ(mob_put8(target_, word_at(target_), round), MOB_OK);
    } else {  // an update itself waits for them
      uint64_t old = 0;
      EXPECT_EQ(mob_fetch_add8(target_, word_at(target_), 1, &old), MOB_OK);
    }
    EXPECT_EQ(mob_wait_until_u8(word_at(mob_rank()), MOB_EQ, round), MOB_OK);
    const mob_rank_t writer = mobius_test::left_of(mob_rank());
    EXPECT_TRUE(has_rows(memory_.local(),
                         mobius_test::patterned(kWindow, writer, static_cast<int>(round)), blank))
        << round;
    barrier();
  }
}

// One row lies outside the target's memory: none is written or read, no counter is counted, and the
// error is reported once.
TEST_F(LargeRows, OneIsWrong) {
  std::memset(memory_.local(), 0, kWindow + 64);
  barrier();
  Bytes local(kWindow, 0xA5);
  for (size_t wrong = 0; wrong < kRows; ++wrong) {
    Rows put(MOB_PUT, MOB_PIECES, target_, there(), local.data());
    put.remotes[wrong] = reinterpret_cast<void*>(64);
    put.transfer.signal = word_at(target_);
    put.transfer.signal_value = 1;
    mob_handle_t handle = MOB_HANDLE_DONE;
    mob_status_t status = mob_transfer_nb(&put.transfer, &handle);
    if (status == MOB_OK) status = mob_wait(&handle);
    EXPECT_EQ(outcome(target_, status), MOB_ERR_RANGE);
    EXPECT_EQ(mob_flush(target_), MOB_OK) << mob_last_error();
    Rows get(MOB_GET, MOB_PIECES, target_, there(), local.data());
    get.remotes[wrong] = reinterpret_cast<void*>(64);
    EXPECT_EQ(mob_transfer(&get.transfer), MOB_ERR_RANGE);
    EXPECT_EQ(mob_flush(target_), MOB_OK) << mob_last_error();
    EXPECT_TRUE(mobius_test::all_are(local.data(), kWindow, 0xA5));
  }
  barrier();
  EXPECT_TRUE(mobius_test::all_are(memory_.local(), kWindow + 64, 0));
  barrier();
}

// Complex elements need only the alignment of one real.
TEST(Accumulate, ComplexElementsAlignedToOnePart) {
  const Shared memory(64);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  const float values[] = {1, 2, 3, 4};
  EXPECT_EQ(mob_accumulate(target, memory.at(target, 4), values, 2, MOB_COMPLEX_FLOAT, MOB_SUM),
            MOB_OK)
      << mob_last_error();
  const double numbers[] = {5, 6};
  EXPECT_EQ(mob_accumulate(target, memory.at(target, 24), numbers, 1, MOB_COMPLEX_DOUBLE, MOB_SUM),
            MOB_OK)
      << mob_last_error();
  barrier();
  float got_values[4];
  double got_numbers[2];
  std::memcpy(got_values, memory.local() + 4, sizeof got_values);
  std::memcpy(got_numbers, memory.local() + 24, sizeof got_numbers);
  EXPECT_TRUE(std::ranges::equal(got_values, values));
  EXPECT_TRUE(std::ranges::equal(got_numbers, numbers));
  barrier();
}
