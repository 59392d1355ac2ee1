// SPDX-License-Identifier: BSD-3-Clause

// Errors of transfers with wrong descriptions: transfer.h, rma.h and strided.h.

#include <climits>
#include <functional>
#include <string>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::Shared;

namespace {

constexpr size_t kRoomBytes = 4096;

// A legal transfer to make wrong, and the memory in which it must leave no trace.
class Wrong : public testing::Test {
 protected:
  Wrong() : memory_(kRoomBytes), target_(mobius_test::right_of(mob_rank())) {
    std::memset(memory_.local(), 0x5A, kRoomBytes);
    barrier();
  }
  ~Wrong() override {
    barrier();
    EXPECT_TRUE(mobius_test::all_are(memory_.local(), kRoomBytes, 0x5A)) << "a refused call wrote";
    EXPECT_TRUE(mobius_test::all_are(local_, sizeof local_, 0)) << "a refused call wrote";
    barrier();
  }

  mob_transfer_t contiguous(mob_kind_t kind = MOB_PUT) {
    mob_transfer_t t{};
    t.kind = kind;
    t.rank = target_;
    t.remote = memory_.at(target_, 1024);
    t.local = local_;
    t.bytes = 64;
    t.type = MOB_INT64;
    t.fetched = local_ + 512;
    return t;
  }
  mob_transfer_t strided(mob_kind_t kind = MOB_PUT) {
    mob_transfer_t t = contiguous(kind);
    t.shape = MOB_STRIDED;
    t.bytes = 16;
    t.dimensions = 2;
    t.counts = counts_;
    t.remote_strides = remote_strides_;
    t.local_strides = local_strides_;
    return t;
  }
  mob_transfer_t pieces(mob_kind_t kind = MOB_PUT) {
    mob_transfer_t t = contiguous(kind);
    t.shape = MOB_PIECES;
    t.bytes = 8;
    t.count = 2;
    for (size_t i = 0; i < 2; ++i) {
      remotes_[i] = memory_.at(target_, 64 * (i + 1));
      locals_[i] = local_ + 64 * i;
    }
    t.remotes = remotes_;
    t.locals = locals_;
    return t;
  }
  mob_transfer_t spans(mob_kind_t kind = MOB_PUT) {
    mob_transfer_t t = contiguous(kind);
    t.shape = MOB_SPANS;
    remote_spans_[0] = {memory_.at(target_, 8), 16};
    remote_spans_[1] = {memory_.at(target_, 128), 8};
    local_spans_[0] = {local_, 24};
    t.remote_spans = remote_spans_;
    t.remote_span_count = 2;
    t.local_spans = local_spans_;
    t.local_span_count = 1;
    return t;
  }

  // Every call that runs it refuses it alike, and starts nothing.
  void refuse(const mob_transfer_t& t, mob_status_t status, const std::string& detail) {
    expect_error(mob_transfer(&t), status, "mob_transfer", detail);
    mob_handle_t handle = 77;
    expect_error(mob_transfer_nb(&t, &handle), status, "mob_transfer_nb", detail);
    EXPECT_EQ(handle, 77u);
    expect_error(mob_transfer_nbi(&t), status, "mob_transfer_nbi", detail);
  }

  const Shared memory_;
  const mob_rank_t target_;
  unsigned char local_[1024] = {};
  size_t counts_[7] = {2, 3, 1, 1, 1, 1, 1};
  ptrdiff_t remote_strides_[7] = {32, 128};
  ptrdiff_t local_strides_[7] = {16, 64};
  void* remotes_[2] = {};
  void* locals_[2] = {};
  mob_span_t remote_spans_[2] = {};
  mob_span_t local_spans_[2] = {};
};

using WrongTransfer = Wrong;

template <typename Enum>
Enum out_of_range(int value) {
  Enum result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

}  // namespace

TEST_F(WrongTransfer, Null) {
  mob_handle_t handle = 0;
  const mob_transfer_t good = contiguous();
  expect_error(mob_transfer(nullptr), MOB_ERR_ARGUMENT, "mob_transfer", "description is null");
  expect_error(mob_transfer_nb(nullptr, &handle), MOB_ERR_ARGUMENT, "mob_transfer_nb", "null");
  expect_error(mob_transfer_nb(&good, nullptr), MOB_ERR_ARGUMENT, "mob_transfer_nb", "handle");
  expect_error(mob_transfer_nbi(nullptr), MOB_ERR_ARGUMENT, "mob_transfer_nbi", "null");
  expect_error(mob_put_nb(target_, good.remote, local_, 8, nullptr), MOB_ERR_ARGUMENT, "mob_put_nb",
               "handle");
  expect_error(mob_get_nb(target_, good.remote, local_, 8, nullptr), MOB_ERR_ARGUMENT, "mob_get_nb",
               "handle");
}

TEST_F(WrongTransfer, RankKindShapeTypeAndOperation) {
  for (const mob_rank_t rank : {-1, mob_size(), INT_MAX, INT_MIN}) {
    mob_transfer_t t = contiguous();
    t.rank = rank;
    refuse(t, MOB_ERR_RANK, "rank " + std::to_string(mobius_test::number_of(rank)));
  }
  for (const int value : {-1, 4, INT_MAX}) {
    mob_transfer_t t = contiguous();
    t.kind = out_of_range<mob_kind_t>(value);
    refuse(t, MOB_ERR_ARGUMENT, "mob_kind_t");
    t = contiguous();
    t.shape = out_of_range<mob_shape_t>(value);
    refuse(t, MOB_ERR_ARGUMENT, "mob_shape_t");
  }
  for (const mob_kind_t kind : {MOB_ACCUMULATE, MOB_FETCH_ACCUMULATE}) {
    for (const int value : {-1, int{MOB_TYPE_COUNT}, INT_MAX}) {
      mob_transfer_t t = contiguous(kind);
      t.type = out_of_range<mob_type_t>(value);
      refuse(t, MOB_ERR_ARGUMENT, "type");
      t = contiguous(kind);
      t.op = out_of_range<mob_op_t>(value);
      refuse(t, MOB_ERR_ARGUMENT, "operation");
    }
    mob_transfer_t t = contiguous(kind);
    t.type = MOB_DOUBLE;
    t.op = MOB_BAND;
    refuse(t, MOB_ERR_ARGUMENT, "not defined");
    t.type = MOB_COMPLEX_FLOAT;
    t.op = MOB_MAX;
    refuse(t, MOB_ERR_ARGUMENT, "not defined");
  }
}

TEST_F(WrongTransfer, AddressesAndSizes) {
  for (const mob_kind_t kind : {MOB_PUT, MOB_GET, MOB_ACCUMULATE, MOB_FETCH_ACCUMULATE}) {
    mob_transfer_t t = contiguous(kind);
    t.remote = nullptr;
    refuse(t, MOB_ERR_ARGUMENT, "remote address");
    t = contiguous(kind);
    t.local = nullptr;
    refuse(t, MOB_ERR_ARGUMENT, "local buffer");
    t = contiguous(kind);
    t.remote = memory_.at(target_, kRoomBytes - 56);
    refuse(t, MOB_ERR_RANGE, "rank " + std::to_string(target_));
    t.remote = memory_.at(target_, 0) - 8;
    refuse(t, MOB_ERR_RANGE, "");
    t = contiguous(kind);
    t.bytes = SIZE_MAX - 7;
    refuse(t, MOB_ERR_RANGE, "");
    t.bytes = size_t{1} << 62;
    refuse(t, MOB_ERR_RANGE, "");
  }
}

TEST_F(WrongTransfer, ElementsScalesAndFetched) {
  for (const mob_kind_t kind : {MOB_ACCUMULATE, MOB_FETCH_ACCUMULATE}) {
    mob_transfer_t t = contiguous(kind);
    t.bytes = 60;
    refuse(t, MOB_ERR_ARGUMENT, "not whole elements of 8 bytes");
    t = contiguous(kind);
    t.remote = memory_.at(target_, 1028);
    refuse(t, MOB_ERR_ARGUMENT, "multiple of 8");
    const int64_t scale = 2;
    t = contiguous(kind);
    t.scale = &scale;
    t.op = MOB_PROD;
    refuse(t, MOB_ERR_ARGUMENT, "scale");
    t = strided(kind);
    remote_strides_[0] = 36;
    refuse(t, MOB_ERR_ARGUMENT, "remote stride 36");
    remote_strides_[0] = 32;
    t = pieces(kind);
    remotes_[1] = static_cast<char*>(remotes_[1]) + 1;
    refuse(t, MOB_ERR_ARGUMENT, "multiple of 8");
    t = spans(kind);
    remote_spans_[1].bytes = 4;
    refuse(t, MOB_ERR_ARGUMENT, "whole elements");
  }
  mob_transfer_t t = contiguous(MOB_FETCH_ACCUMULATE);
  t.fetched = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "fetched elements is null");
}

TEST_F(WrongTransfer, Boxes) {
  mob_transfer_t t = strided();
  for (const int dimensions : {-1, 8, INT_MAX}) {
    t.dimensions = dimensions;
    refuse(t, MOB_ERR_ARGUMENT, std::to_string(dimensions) + " dimensions");
  }
  t = strided();
  t.counts = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "counts is null");
  t = strided();
  t.remote_strides = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "remote strides is null");
  t = strided();
  t.local_strides = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "local strides is null");
  // Written twice: at the target by a put, at the origin by a get.
  for (const ptrdiff_t stride : {0, 8, -8}) {
    remote_strides_[0] = stride;
    refuse(strided(), MOB_ERR_ARGUMENT, "remote strides overlap");
    refuse(strided(MOB_ACCUMULATE), MOB_ERR_ARGUMENT, "remote strides overlap");
    remote_strides_[0] = 32;
    local_strides_[0] = stride;
    refuse(strided(MOB_GET), MOB_ERR_ARGUMENT, "local strides overlap");
    local_strides_[0] = 16;
  }
  // Sizes and distances that overflow.
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 16, size_t{1} << 60}) {
    counts_[1] = count;
    refuse(strided(), MOB_ERR_RANGE, "overflows");
  }
  counts_[1] = 3;
  for (const ptrdiff_t stride : {PTRDIFF_MAX, PTRDIFF_MIN, PTRDIFF_MAX / 2}) {
    remote_strides_[1] = stride;
    refuse(strided(), MOB_ERR_RANGE, "overflows");
    remote_strides_[1] = 128;
    local_strides_[1] = stride;
    refuse(strided(), MOB_ERR_RANGE, "overflows");
    local_strides_[1] = 64;
  }
  remote_strides_[1] = static_cast<ptrdiff_t>(kRoomBytes);
  refuse(strided(), MOB_ERR_RANGE, "rank " + std::to_string(target_));
  remote_strides_[1] = 128;
}

TEST_F(WrongTransfer, Lists) {
  mob_transfer_t t = pieces();
  t.remotes = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "remote addresses is null");
  t = pieces();
  t.locals = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "local addresses is null");
  t = pieces();
  remotes_[1] = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "remote address is null");
  t = pieces();
  locals_[1] = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "local buffer is null");
  t = pieces();
  remotes_[1] = memory_.at(target_, kRoomBytes - 7);
  refuse(t, MOB_ERR_RANGE, "offset 4089");
  t = pieces();
  t.bytes = SIZE_MAX / 2 + 1;
  refuse(t, MOB_ERR_RANGE, "overflows");

  t = spans();
  t.remote_spans = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "remote spans is null");
  t = spans();
  t.local_spans = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "local spans is null");
  t = spans();
  remote_spans_[1].address = nullptr;
  refuse(t, MOB_ERR_ARGUMENT, "remote span 1 is null");
  t = spans();
  local_spans_[0].bytes = 23;
  refuse(t, MOB_ERR_ARGUMENT, "the remote spans have 24 bytes, the local spans 23");
  t = spans();
  remote_spans_[0].bytes = SIZE_MAX;
  refuse(t, MOB_ERR_RANGE, "overflows");
  t = spans();
  remote_spans_[1].address = memory_.at(target_, kRoomBytes);
  refuse(t, MOB_ERR_RANGE, "rank " + std::to_string(target_));
}

TEST_F(WrongTransfer, SignalsAndCounters) {
  mob_transfer_t t = contiguous();
  t.signal = reinterpret_cast<uint64_t*>(memory_.at(target_, 4));
  refuse(t, MOB_ERR_ARGUMENT, "not aligned to 8 bytes");
  uint64_t own = 0;
  t.signal = &own;
  refuse(t, MOB_ERR_RANGE, "rank " + std::to_string(target_));
  t.signal = reinterpret_cast<uint64_t*>(memory_.at(target_, 2048));
  t.signal_op = out_of_range<mob_signal_op_t>(2);
  refuse(t, MOB_ERR_ARGUMENT, "signal operation");
  auto* counter = reinterpret_cast<mob_counter_t>(&own);
  for (mob_counter_t mob_transfer_t::* member :
       {&mob_transfer_t::origin_counter, &mob_transfer_t::target_counter,
        &mob_transfer_t::completion_counter}) {
    // A process of another job looks for its counter itself.
    if (member == &mob_transfer_t::target_counter && !mobius_test::on_team.is_one_job) continue;
    t = contiguous();
    t.*member = counter;
    refuse(t, MOB_ERR_HANDLE, "not a live counter");
    t.*member = reinterpret_cast<mob_counter_t>(memory_.at(target_, 1024));
    refuse(t, MOB_ERR_HANDLE, "not a live counter");
  }
  uint64_t* word = reinterpret_cast<uint64_t*>(memory_.at(target_, 4));
  expect_error(mob_put_signal(target_, memory_.at(target_), local_, 8, nullptr, 1, MOB_SIGNAL_SET),
               MOB_ERR_ARGUMENT, "mob_put_signal", "signal word");
  expect_error(mob_put_signal(target_, memory_.at(target_), local_, 8, word, 1, MOB_SIGNAL_SET),
               MOB_ERR_ARGUMENT, "mob_put_signal", "aligned");
  expect_error(mob_get_signal(target_, memory_.at(target_), local_, 8, nullptr, 1, MOB_SIGNAL_SET),
               MOB_ERR_ARGUMENT, "mob_get_signal", "signal word");
  expect_error(mob_get_signal(target_, memory_.at(target_), local_, 8, word, 1, MOB_SIGNAL_ADD),
               MOB_ERR_ARGUMENT, "mob_get_signal", "aligned");
}

// The named calls refuse what mob_transfer() refuses, under their own name.
TEST_F(WrongTransfer, CallsByName) {
  const mob_transfer_t s = strided();
  const mob_transfer_t p = pieces();
  void* outside = memory_.at(target_, kRoomBytes);
  mob_handle_t handle = 77;
  const mob_rank_t nobody = mob_size();
  struct Case {
    const char* name;
    std::function<mob_status_t(mob_rank_t rank, void* remote)> call;
  };
  const Case cases[] = {
      {"mob_put", [&](auto rank, auto* at) { return mob_put(rank, at, local_, 8); }},
      {"mob_get", [&](auto rank, auto* at) { return mob_get(rank, at, local_, 8); }},
      {"mob_put_nb", [&](auto rank, auto* at) { return mob_put_nb(rank, at, local_, 8, &handle); }},
      {"mob_get_nb", [&](auto rank, auto* at) { return mob_get_nb(rank, at, local_, 8, &handle); }},
      {"mob_put_nbi", [&](auto rank, auto* at) { return mob_put_nbi(rank, at, local_, 8); }},
      {"mob_get_nbi", [&](auto rank, auto* at) { return mob_get_nbi(rank, at, local_, 8); }},
      {"mob_put_strided",
       [&](auto rank, auto* at) {
         return mob_put_strided(rank, at, s.remote_strides, local_, s.local_strides, 16, s.counts,
                                2);
       }},
      {"mob_get_strided",
       [&](auto rank, auto* at) {
         return mob_get_strided(rank, at, s.remote_strides, local_, s.local_strides, 16, s.counts,
                                2);
       }},
      {"mob_accumulate_strided",
       [&](auto rank, auto* at) {
         return mob_accumulate_strided(rank, at, s.remote_strides, local_, s.local_strides, 16,
                                       s.counts, 2, MOB_INT8, MOB_SUM, nullptr);
       }},
      {"mob_put_pieces",
       [&](auto rank, auto* at) {
         void* list[] = {at};
         return mob_put_pieces(rank, list, p.locals, 1, 8);
       }},
      {"mob_get_pieces",
       [&](auto rank, auto* at) {
         void* list[] = {at};
         return mob_get_pieces(rank, list, p.locals, 1, 8);
       }},
      {"mob_accumulate_pieces",
       [&](auto rank, auto* at) {
         void* list[] = {at};
         return mob_accumulate_pieces(rank, list, p.locals, 1, 8, MOB_INT8, MOB_SUM, nullptr);
       }},
      {"mob_accumulate",
       [&](auto rank, auto* at) { return mob_accumulate(rank, at, local_, 8, MOB_INT8, MOB_SUM); }},
      {"mob_accumulate_scaled",
       [&](auto rank, auto* at) {
         return mob_accumulate_scaled(rank, at, local_, 8, MOB_INT8, local_);
       }},
      {"mob_fetch_accumulate",
       [&](auto rank, auto* at) {
         return mob_fetch_accumulate(rank, at, local_, local_ + 64, 8, MOB_INT8, MOB_SUM);
       }},
      {"mob_fetch_op",
       [&](auto rank, auto* at) {
         return mob_fetch_op(rank, at, MOB_INT8, MOB_SUM, local_, local_ + 64);
       }},
  };
  for (const Case& c : cases) {
    expect_error(c.call(nobody, memory_.at(target_)), MOB_ERR_RANK, c.name, "rank");
    expect_error(c.call(target_, outside), MOB_ERR_RANGE, c.name,
                 "rank " + std::to_string(target_));
    expect_error(c.call(target_, nullptr), MOB_ERR_ARGUMENT, c.name, "null");
  }
  EXPECT_EQ(handle, 77u);
  for (const mob_rank_t rank : {-1, mob_size()}) {
    expect_error(mob_flush(rank), MOB_ERR_RANK, "mob_flush", "rank");
    expect_error(mob_flush_local(rank), MOB_ERR_RANK, "mob_flush_local", "rank");
  }
}

TEST_F(WrongTransfer, Handles) {
  int done = 7;
  size_t index = 7;
  size_t completed = 7;
  mob_handle_t never = 12345;
  mob_handle_t all_ones = UINT64_MAX;
  expect_error(mob_wait(nullptr), MOB_ERR_ARGUMENT, "mob_wait", "handle is null");
  expect_error(mob_test(nullptr, &done), MOB_ERR_ARGUMENT, "mob_test", "handle is null");
  expect_error(mob_test(&never, nullptr), MOB_ERR_ARGUMENT, "mob_test", "null");
  expect_error(mob_wait_all(nullptr, 1), MOB_ERR_ARGUMENT, "mob_wait_all", "null");
  expect_error(mob_wait_any(nullptr, 1, &index), MOB_ERR_ARGUMENT, "mob_wait_any", "null");
  expect_error(mob_wait_any(&never, 1, nullptr), MOB_ERR_ARGUMENT, "mob_wait_any", "null");
  expect_error(mob_wait_some(nullptr, 1, &index, &completed), MOB_ERR_ARGUMENT, "mob_wait_some",
               "null");
  expect_error(mob_wait_some(&never, 1, nullptr, &completed), MOB_ERR_ARGUMENT, "mob_wait_some",
               "null");
  expect_error(mob_wait_some(&never, 1, &index, nullptr), MOB_ERR_ARGUMENT, "mob_wait_some",
               "null");
  for (mob_handle_t* handle : {&never, &all_ones}) {
    const std::string text = "not a transfer that was started";
    expect_error(mob_wait(handle), MOB_ERR_HANDLE, "mob_wait", text);
    expect_error(mob_test(handle, &done), MOB_ERR_HANDLE, "mob_test", text);
    expect_error(mob_wait_all(handle, 1), MOB_ERR_HANDLE, "mob_wait_all", text);
    expect_error(mob_wait_any(handle, 1, &index), MOB_ERR_HANDLE, "mob_wait_any", text);
    expect_error(mob_wait_some(handle, 1, &index, &completed), MOB_ERR_HANDLE, "mob_wait_some",
                 text);
  }
  EXPECT_EQ(done, 7);
  EXPECT_EQ(index, 7u);
}
