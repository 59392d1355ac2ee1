// SPDX-License-Identifier: BSD-3-Clause

// RDMA between translated memory: LAPI_RDMA_XFER and the commands that prepare it.

#include <array>
#include <atomic>
#include <vector>

#include "fixture.h"

namespace lapi_test {
namespace {

constexpr lapi_rdma_tag_t kTag = 22;

std::array<long, 64> exposed;

lapi_user_pvo_t translate(void* address, size_t bytes) {
  lapi_util_t util = {};
  util.Pvo = {LAPI_XLATE_ADDRESS, static_cast<unsigned>(bytes), 0, address, LAPI_RDMA_ACQUIRE};
  ok(LAPI_Util(handle, &util));
  EXPECT_NE(util.Pvo.usr_pvo, 0u);
  return util.Pvo.usr_pvo;
}

void release(lapi_user_pvo_t translation) {
  lapi_util_t util = {};
  util.Pvo = {LAPI_XLATE_ADDRESS, 0, translation, nullptr, LAPI_RDMA_RELEASE};
  ok(LAPI_Util(handle, &util));
}

lapi_user_cxt_t remote_context(unsigned task) {
  lapi_util_t util = {};
  util.Rcxt = {LAPI_REMOTE_RCXT, LAPI_RDMA_ACQUIRE, static_cast<int>(task), 0};
  ok(LAPI_Util(handle, &util));
  return util.Rcxt.usr_rcxt;
}

int register_notice(unsigned flags, lapi_cntr_t* cntr, remote_hndlr_t* callback, void* sinfo) {
  lapi_util_t util = {};
  util.RdmaNotify = {
      LAPI_REGISTER_NOTIFICATION, kTag, static_cast<lapi_rdma_flg_t>(flags), cntr, callback, sinfo};
  return LAPI_Util(handle, &util);
}

struct Told {
  std::atomic<int> times = 0;
  int source = -1;
  long seen = 0;
};

void tell_target(lapi_handle_t* hndl, void* sinfo, int* src) {
  EXPECT_EQ(*hndl, handle);
  auto* told = static_cast<Told*>(sinfo);
  told->source = *src;
  told->seen = exposed[3];
  ++told->times;
}

void tell_origin(lapi_handle_t*, void* sinfo, lapi_sh_info_t* info) {
  EXPECT_EQ(info->src, right());
  ++static_cast<Told*>(sinfo)->times;
}

class Rdma : public testing::Test {
 protected:
  void SetUp() override {
    exposed.fill(-1);
    mine_ = translate(exposed.data(), sizeof exposed);
    here_ = translate(source_.data(), sizeof source_);
    theirs_.resize(tasks);
    ok(LAPI_Address_init64(handle, mine_, theirs_.data()));
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<long>(100 * me + i);
    context_ = remote_context(right());
  }
  void TearDown() override {
    gfence();
    release(mine_);
    release(here_);
    lapi_util_t util = {};
    util.Rcxt = {LAPI_REMOTE_RCXT, LAPI_RDMA_RELEASE, static_cast<int>(right()), context_};
    ok(LAPI_Util(handle, &util));
  }
  // Words `from` … of the source to or from word `to` … of the right neighbour.
  lapi_xfer_t transfer(unsigned op, unsigned from, unsigned to, unsigned words) {
    lapi_xfer_t command = {};
    command.HwXfer = {LAPI_RDMA_XFER,
                      right(),
                      static_cast<lapi_rdma_op_t>(op),
                      kTag,
                      context_,
                      here_,
                      theirs_[right()],
                      8 * from,
                      8 * to,
                      8 * words,
                      origin_.get(),
                      nullptr,
                      nullptr};
    return command;
  }
  int run(unsigned op, unsigned from, unsigned to, unsigned words) {
    lapi_xfer_t command = transfer(op, from, to, words);
    return LAPI_Xfer(handle, &command);
  }
  static long from_left(size_t i) { return static_cast<long>(100 * left() + i); }

  std::array<long, 64> source_;
  std::vector<lapi_long_t> theirs_;
  lapi_user_pvo_t mine_ = 0;
  lapi_user_pvo_t here_ = 0;
  lapi_user_cxt_t context_ = 0;
  Counter origin_;
};

TEST_F(Rdma, PutIsAtTheTargetWhenTheOriginCounts) {
  ok(run(LAPI_RDMA_PUT, 2, 5, 10));
  EXPECT_EQ(origin_.wait(1), 0);
  gfence();
  EXPECT_EQ(exposed[4], -1);
  EXPECT_EQ(exposed[5], from_left(2));
  EXPECT_EQ(exposed[14], from_left(11));
  EXPECT_EQ(exposed[15], -1);
}

TEST_F(Rdma, GetFillsTheSource) {
  for (size_t i = 0; i < exposed.size(); ++i) exposed[i] = static_cast<long>(1000 * me + i);
  gfence();
  ok(run(LAPI_RDMA_GET, 7, 20, 3));
  origin_.wait(1);
  EXPECT_EQ(source_[6], static_cast<long>(100 * me + 6));
  EXPECT_EQ(source_[7], static_cast<long>(1000 * right() + 20));
  EXPECT_EQ(source_[9], static_cast<long>(1000 * right() + 22));
  EXPECT_EQ(source_[10], static_cast<long>(100 * me + 10));
}

TEST_F(Rdma, TheTargetCountsAPutAndAGet) {
  Counter arrived;
  ok(register_notice(LAPI_RCNTR_UPDATE, arrived.get(), nullptr, nullptr));
  gfence();
  ok(run(LAPI_RDMA_PUT | LAPI_RCNTR_UPDATE, 0, 0, 64));
  arrived.wait(1);
  EXPECT_EQ(exposed[0], from_left(0));
  EXPECT_EQ(exposed[63], from_left(63));
  origin_.wait(1);
  gfence();
  ok(run(LAPI_RDMA_GET | LAPI_RCNTR_UPDATE, 0, 1, 1));
  arrived.wait(1);
  origin_.wait(1);
  EXPECT_EQ(source_[0], static_cast<long>(100 * me + 1));
  gfence();
}

TEST_F(Rdma, TheTargetRunsAFunctionWhenTheDataIsThere) {
  Told told;
  Counter arrived;
  ok(register_notice(LAPI_RCALLBACK | LAPI_RCNTR_UPDATE, arrived.get(), tell_target, &told));
  gfence();
  ok(run(LAPI_RDMA_PUT | LAPI_RCALLBACK | LAPI_RCNTR_UPDATE, 0, 0, 8));
  origin_.wait(1);  // counted after the function has returned
  gfence();
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.source, static_cast<int>(left()));
  EXPECT_EQ(told.seen, from_left(3));
  EXPECT_EQ(arrived.value(), 1);
}

TEST_F(Rdma, ATagWithoutACounterIsReportedAtTheTarget) {
  ok(register_notice(0, nullptr, nullptr, nullptr));
  gfence();
  ok(run(LAPI_RDMA_PUT | LAPI_RCNTR_UPDATE, 0, 0, 1));
  origin_.wait(1);
  gfence();
  EXPECT_EQ(take_reported(), std::vector<int>{LAPI_ERR_NO_CNTR_REG});
  EXPECT_EQ(exposed[0], from_left(0));
}

TEST_F(Rdma, SendCompletionHandlerRuns) {
  Told told;
  lapi_xfer_t command = transfer(LAPI_RDMA_PUT, 0, 0, 1);
  command.HwXfer.shdlr = tell_origin;
  command.HwXfer.sinfo = &told;
  ok(LAPI_Xfer(handle, &command));
  EXPECT_EQ(told.times, 1);
  origin_.wait(1);
}

TEST_F(Rdma, WrongArguments) {
  const auto refuse = [](lapi_xfer_t command, int expected) {
    refused(LAPI_Xfer(handle, &command), expected, "LAPI_Xfer");
  };
  refuse(transfer(LAPI_RDMA_PUT | LAPI_RDMA_GET, 0, 0, 1), LAPI_ERR_XFER_CMD);
  refuse(transfer(LAPI_RCNTR_UPDATE, 0, 0, 1), LAPI_ERR_XFER_CMD);
  lapi_xfer_t command = transfer(LAPI_RDMA_PUT, 0, 0, 1);
  command.HwXfer.remote_cxt = 0;
  refuse(command, LAPI_ERR_TGT_CONTEXT);
  command = transfer(LAPI_RDMA_PUT, 0, 0, 1);
  command.HwXfer.src_pvo = 0;
  refuse(command, LAPI_ERR_SRC_BUFHNDL);
  command = transfer(LAPI_RDMA_PUT, 0, 0, 1);
  command.HwXfer.tgt_pvo = 0;
  refuse(command, LAPI_ERR_TGT_BUFHNDL);
  command = transfer(LAPI_RDMA_PUT, 0, 0, 1);
  command.HwXfer.tgt = tasks;
  refuse(command, LAPI_ERR_TGT);
  lapi_util_t util = {};
  util.Rcxt = {LAPI_REMOTE_RCXT, LAPI_RDMA_ACQUIRE, static_cast<int>(tasks), 0};
  refused(LAPI_Util(handle, &util), LAPI_ERR_TGT, "LAPI_Util");
  util.Pvo = {LAPI_XLATE_ADDRESS, 8, 0, nullptr, LAPI_RDMA_ACQUIRE};
  refused(LAPI_Util(handle, &util), LAPI_ERR_XLATE_FAILED, "LAPI_Util");
  refused(register_notice(LAPI_RCNTR_UPDATE, nullptr, nullptr, nullptr), LAPI_ERR_CNTR_NULL,
          "LAPI_Util");
  EXPECT_EQ(origin_.value(), 0);
}

}  // namespace
}  // namespace lapi_test
