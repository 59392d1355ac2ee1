// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Xfer: every type of transfer, with counters and with handlers instead.

#include <array>
#include <cstring>

#include "fixture.h"

namespace lapi_test {
namespace {

struct XferTarget {
  lapi_cntr_t counter;
  std::array<long, 64> data;
};
XferTarget mine;

struct Told {
  int times = 0;
  unsigned target = 0;
  unsigned reason = 77;
};

void tell(lapi_handle_t* hndl, void* param, lapi_sh_info_t* info) {
  EXPECT_EQ(*hndl, handle);
  auto* told = static_cast<Told*>(param);
  ++told->times;
  told->target = info->src;
  told->reason = info->reason;
}

void tell_arrival(lapi_handle_t*, void* param) { ++static_cast<Told*>(param)->times; }

class Xfer : public testing::Test {
 protected:
  void SetUp() override {
    ok(LAPI_Setcntr(handle, &mine.counter, 0));
    mine.data.fill(-1);
    all_ = addresses_of(&mine);
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<long>(100 * me + i);
  }
  void run(lapi_xfer_t& command) { ok(LAPI_Xfer(handle, &command)); }
  void await_target() { ok(LAPI_Waitcntr(handle, &mine.counter, 1, nullptr)); }
  static long from_left(size_t i) { return static_cast<long>(100 * left() + i); }
  static lapi_long_t address(const void* place) { return reinterpret_cast<lapi_long_t>(place); }
  lapi_long_t their_counter() { return address(&all_[right()]->counter); }
  lapi_long_t their_data(size_t i) { return address(&all_[right()]->data[i]); }
  void expect_told() {
    EXPECT_EQ(told_.times, 1);
    EXPECT_EQ(told_.target, right());
    EXPECT_EQ(told_.reason, static_cast<unsigned>(LAPI_SUCCESS));
  }

  std::vector<XferTarget*> all_;
  std::array<long, 64> source_;
  Told told_;
  Counter origin_;
  Counter completion_;
};

TEST_F(Xfer, Put) {
  lapi_xfer_t command = {};
  command.Put = {LAPI_PUT_XFER, 0,      right(),         their_data(0), source_.data(),   80,
                 tell,          &told_, their_counter(), nullptr,       completion_.get()};
  run(command);
  expect_told();
  completion_.wait(1);
  await_target();
  EXPECT_EQ(mine.data[9], from_left(9));
  EXPECT_EQ(mine.data[10], -1);
  gfence();
}

TEST_F(Xfer, Get) {
  mine.data = source_;
  gfence();
  std::array<long, 64> back = {};
  lapi_xfer_t command = {};
  command.Get = {LAPI_GET_XFER, 0,      right(),         their_data(3), back.data(), 16,
                 tell_arrival,  &told_, their_counter(), origin_.get()};
  run(command);
  origin_.wait(1);
  EXPECT_EQ(told_.times, 1);
  EXPECT_EQ(back[0], static_cast<long>(100 * right() + 3));
  EXPECT_EQ(back[1], static_cast<long>(100 * right() + 4));
  await_target();
  gfence();
}

TEST_F(Xfer, PutvAndGetv) {
  lapi_long_t there[] = {their_data(5), their_data(20)};
  void* here[] = {&source_[0], &source_[2]};
  unsigned long len[] = {16, 8};
  lapi_lvec_t tgt = {LAPI_GEN_IOVECTOR, 2, there, len};
  lapi_vec_t org = {LAPI_GEN_IOVECTOR, 2, here, len};
  lapi_xfer_t command = {};
  command.Putv = {LAPI_PUTV_XFER, 0,    right(),         tell,          &told_,
                  &tgt,           &org, their_counter(), origin_.get(), completion_.get()};
  run(command);
  expect_told();
  origin_.wait(1);
  completion_.wait(1);
  await_target();
  EXPECT_EQ(mine.data[6], from_left(1));
  EXPECT_EQ(mine.data[20], from_left(2));
  gfence();
  std::array<long, 3> back = {};
  void* back_info[] = {&back[0], &back[2]};
  lapi_vec_t back_vec = {LAPI_GEN_IOVECTOR, 2, back_info, len};
  told_ = {};
  command = {};
  command.Getv = {LAPI_GETV_XFER, 0,      right(), &tgt,         &back_vec,
                  tell_arrival,   &told_, 0,       origin_.get()};
  run(command);
  origin_.wait(1);
  EXPECT_EQ(told_.times, 1);
  EXPECT_EQ(back[2], source_[2]);
  gfence();
}

TEST_F(Xfer, Rmw) {
  mine.data[0] = 40;
  gfence();
  lapi_long_t previous = 0;
  lapi_xfer_t command = {};
  command.Rmw = {LAPI_RMW_XFER, 0,    right(), FETCH_AND_ADD, 64, their_data(0), 2, &previous,
                 origin_.get(), tell, &told_};
  run(command);
  expect_told();
  origin_.wait(1);
  EXPECT_EQ(previous, 40u);
  gfence();
  EXPECT_EQ(mine.data[0], 42);
  gfence();
  long long values[2] = {42, 7};
  command.Rmw = {LAPI_RMW_XFER,   0,         right(),       COMPARE_AND_SWAP, 64,     their_data(0),
                 address(values), &previous, origin_.get(), nullptr,          nullptr};
  run(command);
  origin_.wait(1);
  EXPECT_EQ(previous, 1u);
  command.Rmw = {LAPI_RMW_XFER, 0,       right(), FETCH_AND_OR, 32, their_data(0), 8, &previous,
                 origin_.get(), nullptr, nullptr};
  run(command);
  origin_.wait(1);
  EXPECT_EQ(previous, 7u);
  gfence();
  EXPECT_EQ(mine.data[0], 15);
  gfence();
}

void* store(lapi_handle_t*, void* uhdr, unsigned*, unsigned long*, compl_hndlr_t** comp_h, void**) {
  long at = 0;
  std::memcpy(&at, uhdr, sizeof at);
  *comp_h = nullptr;
  return &mine.data[static_cast<size_t>(at)];
}

TEST_F(Xfer, ActiveMessages) {
  ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(store), 30));
  gfence();
  for (const lapi_xfer_type_t type : {LAPI_AM_XFER, LAPI_AM_LW_XFER}) {
    mine.data.fill(-1);
    gfence();
    told_ = {};
    long at = 11;
    lapi_xfer_t command = {};
    command.Am = {type, 0,      right(),         30,      sizeof at,        &at, source_.data(), 24,
                  tell, &told_, their_counter(), nullptr, completion_.get()};
    run(command);
    expect_told();
    completion_.wait(1);
    await_target();
    EXPECT_EQ(mine.data[10], -1);
    EXPECT_EQ(mine.data[13], from_left(2));
    EXPECT_EQ(mine.data[14], -1);
    gfence();
  }
}

lapi_vec_t* store_vector(lapi_handle_t*, void*, unsigned*, unsigned long* len_vec[],
                         compl_hndlr_t** comp_h, void**) {
  static void* info[2];
  static unsigned long len[2];
  static lapi_vec_t vector = {LAPI_GEN_IOVECTOR, 2, info, len};
  for (size_t i = 0; i < 2; ++i) {
    info[i] = &mine.data[30 * i];
    len[i] = (*len_vec)[i];
  }
  *comp_h = nullptr;
  return &vector;
}

TEST_F(Xfer, ActiveMessagesOfVectors) {
  ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(store_vector), 31));
  gfence();
  void* info[] = {&source_[1], &source_[5]};
  unsigned long len[] = {8, 16};
  lapi_vec_t vector = {LAPI_GEN_IOVECTOR, 2, info, len};
  lapi_xfer_t command = {};
  command.Amv = {LAPI_AMV_XFER,
                 0,
                 right(),
                 31,
                 0,
                 nullptr,
                 tell,
                 &told_,
                 &vector,
                 their_counter(),
                 origin_.get(),
                 completion_.get()};
  run(command);
  expect_told();
  completion_.wait(1);
  await_target();
  EXPECT_EQ(mine.data[0], from_left(1));
  EXPECT_EQ(mine.data[31], from_left(6));
  gfence();
}

}  // namespace
}  // namespace lapi_test
