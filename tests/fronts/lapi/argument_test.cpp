// SPDX-License-Identifier: BSD-3-Clause

// Every documented error of every call: the code, the call's name in the text, and no effect.

#include <climits>

#include "fixture.h"

namespace lapi_test {
namespace {

constexpr lapi_handle_t kNoHandle = 13;
int kept;
lapi_cntr_t resting;

void* header_handler(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                     void**) {
  *comp_h = nullptr;
  return nullptr;
}
void* const kHandler = reinterpret_cast<void*>(header_handler);

// A call with a wrong argument must not count or write anything.
class Arguments : public testing::Test {
 protected:
  void SetUp() override {
    kept = 5;
    ok(LAPI_Setcntr(handle, &resting, 0));
    gfence();
  }
  void TearDown() override {
    gfence();
    int value = -1;
    ok(LAPI_Getcntr(handle, &resting, &value));
    EXPECT_EQ(value, 0);
    EXPECT_EQ(kept, 5);
    EXPECT_TRUE(take_reported().empty());
    gfence();
  }
};

TEST_F(Arguments, Handles) {
  int value = 0;
  void* pointer = nullptr;
  void* table[64];
  lapi_long_t table64[64];
  lapi_msg_info_t info;
  lapi_xfer_t xfer = {};
  lapi_util_t util = {};
  util.Util_type = LAPI_GET_THREAD_FUNC;
  long long word64 = 0;
  for (const lapi_handle_t wrong : {0u, kNoHandle, 17u, UINT_MAX}) {
    const auto invalid = [](int code, const char* call) {
      refused(code, LAPI_ERR_HNDL_INVALID, call);
    };
    invalid(LAPI_Qenv(wrong, TASK_ID, &value), "LAPI_Qenv");
    invalid(LAPI_Senv(wrong, ERROR_CHK, 1), "LAPI_Senv");
    invalid(LAPI_Util(wrong, &util), "LAPI_Util");
    invalid(LAPI_Probe(wrong), "LAPI_Probe");
    invalid(LAPI_Msgpoll(wrong, 1, &info), "LAPI_Msgpoll");
    invalid(LAPI_Put(wrong, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr), "LAPI_Put");
    invalid(LAPI_Get(wrong, 0, 0, nullptr, nullptr, nullptr, nullptr), "LAPI_Get");
    invalid(LAPI_Putv(wrong, 0, nullptr, nullptr, nullptr, nullptr, nullptr), "LAPI_Putv");
    invalid(LAPI_Getv(wrong, 0, nullptr, nullptr, nullptr, nullptr), "LAPI_Getv");
    invalid(LAPI_Rmw(wrong, SWAP, 0, &kept, &value, nullptr, nullptr), "LAPI_Rmw");
    invalid(LAPI_Rmw64(wrong, SWAP, 0, &word64, &word64, nullptr, nullptr), "LAPI_Rmw64");
    invalid(LAPI_Amsend(wrong, 0, kHandler, nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr),
            "LAPI_Amsend");
    invalid(LAPI_Amsendv(wrong, 0, kHandler, nullptr, 0, nullptr, nullptr, nullptr, nullptr),
            "LAPI_Amsendv");
    invalid(LAPI_Xfer(wrong, &xfer), "LAPI_Xfer");
    invalid(LAPI_Setcntr(wrong, &resting, 1), "LAPI_Setcntr");
    invalid(LAPI_Getcntr(wrong, &resting, &value), "LAPI_Getcntr");
    invalid(LAPI_Waitcntr(wrong, &resting, 1, nullptr), "LAPI_Waitcntr");
    invalid(LAPI_Setcntr_wstatus(wrong, &resting, 0, nullptr, nullptr), "LAPI_Setcntr_wstatus");
    invalid(LAPI_Nopoll_wait(wrong, &resting, 1, nullptr), "LAPI_Nopoll_wait");
    invalid(LAPI_Fence(wrong), "LAPI_Fence");
    invalid(LAPI_Gfence(wrong), "LAPI_Gfence");
    invalid(LAPI_Address_init(wrong, &kept, table), "LAPI_Address_init");
    invalid(LAPI_Address_init64(wrong, 0, table64), "LAPI_Address_init64");
    invalid(LAPI_Addr_set(wrong, kHandler, 1), "LAPI_Addr_set");
    invalid(LAPI_Addr_get(wrong, &pointer, 1), "LAPI_Addr_get");
    invalid(LAPI_Purge_totask(wrong, 0), "LAPI_Purge_totask");
    invalid(LAPI_Resume_totask(wrong, 0), "LAPI_Resume_totask");
    invalid(LAPI_Term(wrong), "LAPI_Term");
  }
}

TEST_F(Arguments, Targets) {
  int value = 1;
  long long word64 = 0;
  void* info[] = {&value};
  unsigned long len[] = {4};
  lapi_vec_t vector = {LAPI_GEN_GENERIC, 1, info, len};
  for (const unsigned wrong : {tasks, UINT_MAX}) {
    const auto no_target = [](int code, const char* call) { refused(code, LAPI_ERR_TGT, call); };
    for (const unsigned long bytes : {0ul, 4ul}) {
      no_target(LAPI_Put(handle, wrong, bytes, &kept, &value, nullptr, &resting, &resting),
                "LAPI_Put");
      no_target(LAPI_Get(handle, wrong, bytes, &kept, &value, nullptr, &resting), "LAPI_Get");
    }
    no_target(LAPI_Putv(handle, wrong, &vector, &vector, nullptr, &resting, &resting), "LAPI_Putv");
    no_target(LAPI_Getv(handle, wrong, &vector, &vector, nullptr, &resting), "LAPI_Getv");
    no_target(LAPI_Rmw(handle, SWAP, wrong, &kept, &value, nullptr, &resting), "LAPI_Rmw");
    no_target(LAPI_Rmw64(handle, SWAP, wrong, &word64, &word64, nullptr, &resting), "LAPI_Rmw64");
    no_target(
        LAPI_Amsend(handle, wrong, kHandler, nullptr, 0, nullptr, 0, nullptr, &resting, &resting),
        "LAPI_Amsend");
    no_target(
        LAPI_Amsendv(handle, wrong, kHandler, nullptr, 0, &vector, nullptr, &resting, &resting),
        "LAPI_Amsendv");
    no_target(LAPI_Purge_totask(handle, wrong), "LAPI_Purge_totask");
    no_target(LAPI_Resume_totask(handle, wrong), "LAPI_Resume_totask");
    unsigned list[] = {wrong};
    int status[] = {0};
    no_target(LAPI_Setcntr_wstatus(handle, &resting, 1, list, status), "LAPI_Setcntr_wstatus");
  }
}

TEST_F(Arguments, PutAndGet) {
  int value = 1;
  refused(LAPI_Put(handle, right(), 4, nullptr, &value, nullptr, &resting, nullptr),
          LAPI_ERR_TGT_ADDR_NULL, "LAPI_Put");
  refused(LAPI_Put(handle, right(), 4, &kept, nullptr, nullptr, &resting, nullptr),
          LAPI_ERR_ORG_ADDR_NULL, "LAPI_Put");
  refused(LAPI_Put(handle, right(), LAPI_MAX_MSG_SZ + 1, &kept, &value, nullptr, &resting, nullptr),
          LAPI_ERR_DATA_LEN, "LAPI_Put");
  refused(LAPI_Get(handle, right(), 4, nullptr, &value, nullptr, &resting), LAPI_ERR_TGT_ADDR_NULL,
          "LAPI_Get");
  refused(LAPI_Get(handle, right(), 4, &kept, nullptr, nullptr, &resting), LAPI_ERR_ORG_ADDR_NULL,
          "LAPI_Get");
  refused(LAPI_Get(handle, right(), ULONG_MAX, &kept, &value, nullptr, &resting), LAPI_ERR_DATA_LEN,
          "LAPI_Get");
}

TEST_F(Arguments, AddressesThatAreNotMapped) {
  if (tasks == 1) return;  // a task's own wrong addresses are not checked
  int value = 1;
  void* kernel = reinterpret_cast<void*>(~0ul - 100);
  if (is_far(right())) {  // which reports it later
    ok(LAPI_Put(handle, right(), 4, kernel, &value, nullptr, nullptr, &resting));
    refused(LAPI_Fence(handle), LAPI_ERR_TGT_RANGE, "LAPI_Fence");
    return;
  }
  refused(LAPI_Put(handle, right(), 4, kernel, &value, nullptr, &resting, nullptr),
          LAPI_ERR_TGT_RANGE, "LAPI_Put");
}

TEST_F(Arguments, Rmw) {
  int in[2] = {1, 2};
  long long in64[2] = {1, 2};
  static long long word64;
  refused(LAPI_Rmw(handle, static_cast<RMW_ops_t>(4), me, &kept, in, nullptr, &resting),
          LAPI_ERR_RMW_OP, "LAPI_Rmw");
  refused(LAPI_Rmw(handle, static_cast<RMW_ops_t>(-1), me, &kept, in, nullptr, &resting),
          LAPI_ERR_RMW_OP, "LAPI_Rmw");
  refused(LAPI_Rmw(handle, SWAP, me, nullptr, in, nullptr, &resting), LAPI_ERR_TGT_VAR_NULL,
          "LAPI_Rmw");
  refused(LAPI_Rmw(handle, SWAP, me, &kept, nullptr, nullptr, &resting), LAPI_ERR_IN_VAL_NULL,
          "LAPI_Rmw");
  auto* odd = reinterpret_cast<int*>(reinterpret_cast<char*>(&kept) + 1);
  refused(LAPI_Rmw(handle, SWAP, me, odd, in, nullptr, &resting), LAPI_ERR_TGT_VAR_ALIGN,
          "LAPI_Rmw");
  refused(LAPI_Rmw64(handle, SWAP, me, nullptr, in64, nullptr, &resting), LAPI_ERR_TGT_VAR_NULL,
          "LAPI_Rmw64");
  refused(LAPI_Rmw64(handle, SWAP, me, &word64, nullptr, nullptr, &resting), LAPI_ERR_IN_VAL_NULL,
          "LAPI_Rmw64");
  refused(LAPI_Rmw64(handle, static_cast<RMW_ops_t>(9), me, &word64, in64, nullptr, &resting),
          LAPI_ERR_RMW_OP, "LAPI_Rmw64");
}

TEST_F(Arguments, ActiveMessages) {
  char data[8] = {};
  int most = 0;
  ok(LAPI_Qenv(handle, MAX_UHDR_SZ, &most));
  const auto send = [&](void* handler, void* uhdr, unsigned uhdr_len, void* udata,
                        unsigned long udata_len) {
    return LAPI_Amsend(handle, right(), handler, uhdr, uhdr_len, udata, udata_len, nullptr,
                       &resting, &resting);
  };
  refused(send(nullptr, nullptr, 0, nullptr, 0), LAPI_ERR_HDR_HNDLR_NULL, "LAPI_Amsend");
  refused(send(kHandler, nullptr, 4, nullptr, 0), LAPI_ERR_UHDR_NULL, "LAPI_Amsend");
  refused(send(kHandler, data, static_cast<unsigned>(most) + 4, nullptr, 0), LAPI_ERR_UHDR_LEN,
          "LAPI_Amsend");
  refused(send(kHandler, data, UINT_MAX, nullptr, 0), LAPI_ERR_UHDR_LEN, "LAPI_Amsend");
  refused(send(kHandler, data, 3, nullptr, 0), LAPI_ERR_UHDR_LEN, "LAPI_Amsend");
  refused(send(kHandler, nullptr, 0, nullptr, 8), LAPI_ERR_ORG_ADDR_NULL, "LAPI_Amsend");
  refused(send(kHandler, nullptr, 0, data, ULONG_MAX), LAPI_ERR_DATA_LEN, "LAPI_Amsend");
  lapi_vec_t vector = {};
  const auto sendv = [&](void* handler, void* uhdr, unsigned uhdr_len, lapi_vec_t* vec) {
    return LAPI_Amsendv(handle, right(), handler, uhdr, uhdr_len, vec, nullptr, &resting, &resting);
  };
  refused(sendv(nullptr, nullptr, 0, &vector), LAPI_ERR_HDR_HNDLR_NULL, "LAPI_Amsendv");
  refused(sendv(kHandler, nullptr, 4, &vector), LAPI_ERR_UHDR_NULL, "LAPI_Amsendv");
  refused(sendv(kHandler, data, 5, &vector), LAPI_ERR_UHDR_LEN, "LAPI_Amsendv");
  refused(sendv(kHandler, nullptr, 0, nullptr), LAPI_ERR_ORG_VEC_NULL, "LAPI_Amsendv");
}

TEST_F(Arguments, Vectors) {
  char data[8] = {};
  void* info[] = {data, data};
  void* with_null[] = {data, nullptr};
  unsigned long len[] = {4, 4};
  unsigned long short_len[] = {4, 3};
  unsigned long long_len[] = {LAPI_MAX_MSG_SZ, 4};
  const lapi_vec_t good = {LAPI_GEN_IOVECTOR, 2, info, len};
  const auto put = [&](lapi_vec_t tgt, lapi_vec_t org) {
    return LAPI_Putv(handle, right(), &tgt, &org, nullptr, &resting, &resting);
  };
  const auto get = [&](lapi_vec_t tgt, lapi_vec_t org) {
    return LAPI_Getv(handle, right(), &tgt, &org, nullptr, &resting);
  };
  const auto expect_both = [&](lapi_vec_t tgt, lapi_vec_t org, int code) {
    refused(put(tgt, org), code, "LAPI_Putv");
    refused(get(tgt, org), code, "LAPI_Getv");
  };
  lapi_vec_t vector = good;
  refused(LAPI_Putv(handle, right(), nullptr, &vector, nullptr, nullptr, nullptr),
          LAPI_ERR_TGT_VEC_NULL, "LAPI_Putv");
  refused(LAPI_Putv(handle, right(), &vector, nullptr, nullptr, nullptr, nullptr),
          LAPI_ERR_ORG_VEC_NULL, "LAPI_Putv");
  refused(LAPI_Getv(handle, right(), nullptr, &vector, nullptr, nullptr), LAPI_ERR_TGT_VEC_NULL,
          "LAPI_Getv");
  refused(LAPI_Getv(handle, right(), &vector, nullptr, nullptr, nullptr), LAPI_ERR_ORG_VEC_NULL,
          "LAPI_Getv");
  const auto wrong_type = static_cast<lapi_vectype_t>(3);
  expect_both(good, {wrong_type, 2, info, len}, LAPI_ERR_ORG_VEC_TYPE);
  expect_both({wrong_type, 2, info, len}, good, LAPI_ERR_TGT_VEC_TYPE);
  expect_both(good, {LAPI_GEN_IOVECTOR, 2, with_null, len}, LAPI_ERR_ORG_VEC_ADDR);
  expect_both({LAPI_GEN_IOVECTOR, 2, nullptr, len}, good, LAPI_ERR_TGT_VEC_ADDR);
  expect_both(good, {LAPI_GEN_IOVECTOR, 2, info, nullptr}, LAPI_ERR_ORG_VEC_LEN);
  expect_both({LAPI_GEN_IOVECTOR, 2, info, long_len}, good, LAPI_ERR_TGT_VEC_LEN);
  expect_both({LAPI_GEN_GENERIC, 2, info, len}, good, LAPI_ERR_VEC_TYPE_DIFF);
  expect_both({LAPI_GEN_IOVECTOR, 1, info, len}, good, LAPI_ERR_VEC_NUM_DIFF);
  expect_both({LAPI_GEN_IOVECTOR, 2, info, short_len}, good, LAPI_ERR_VEC_LEN_DIFF);
  expect_both({LAPI_GEN_GENERIC, 2, info, short_len}, {LAPI_GEN_GENERIC, 2, info, len},
              LAPI_ERR_VEC_LEN_DIFF);
}

TEST_F(Arguments, StridedVectors) {
  char data[64] = {};
  const auto number = [](unsigned long value) { return reinterpret_cast<void*>(value); };
  void* good_info[] = {data, number(4), number(8)};
  void* null_info[] = {nullptr, number(4), number(8)};
  void* overlapping[] = {data, number(8), number(4)};
  void* huge[] = {data, number(4), number(LAPI_MAX_MSG_SZ)};
  void* other_block[] = {data, number(8), number(8)};
  const auto strided = [](void** info, unsigned count = 4) {
    return lapi_vec_t{LAPI_GEN_STRIDED_XFER, count, info, nullptr};
  };
  const auto expect_both = [&](lapi_vec_t tgt, lapi_vec_t org, int code) {
    refused(LAPI_Putv(handle, right(), &tgt, &org, nullptr, &resting, nullptr), code, "LAPI_Putv");
    refused(LAPI_Getv(handle, right(), &tgt, &org, nullptr, &resting), code, "LAPI_Getv");
  };
  const lapi_vec_t good = strided(good_info);
  expect_both(good, strided(null_info), LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL);
  expect_both(strided(nullptr), good, LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL);
  expect_both(good, strided(overlapping), LAPI_ERR_ORG_STRIDE);
  expect_both(strided(overlapping), good, LAPI_ERR_TGT_STRIDE);
  expect_both(good, strided(huge), LAPI_ERR_ORG_EXTENT);
  expect_both(strided(huge), good, LAPI_ERR_TGT_EXTENT);
  expect_both(strided(good_info, 3), good, LAPI_ERR_VEC_NUM_DIFF);
  expect_both(strided(other_block), good, LAPI_ERR_VEC_LEN_DIFF);
}

TEST_F(Arguments, Counters) {
  int value = 0;
  int status[1];
  refused(LAPI_Setcntr(handle, nullptr, 0), LAPI_ERR_CNTR_NULL, "LAPI_Setcntr");
  refused(LAPI_Getcntr(handle, nullptr, &value), LAPI_ERR_CNTR_NULL, "LAPI_Getcntr");
  refused(LAPI_Getcntr(handle, &resting, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Getcntr");
  refused(LAPI_Waitcntr(handle, nullptr, 1, &value), LAPI_ERR_CNTR_NULL, "LAPI_Waitcntr");
  refused(LAPI_Nopoll_wait(handle, nullptr, 1, &value), LAPI_ERR_CNTR_NULL, "LAPI_Nopoll_wait");
  refused(LAPI_Nopoll_wait(handle, &resting, 0, &value), LAPI_ERR_CNTR_VAL, "LAPI_Nopoll_wait");
  refused(LAPI_Setcntr_wstatus(handle, nullptr, 0, nullptr, nullptr), LAPI_ERR_CNTR_NULL,
          "LAPI_Setcntr_wstatus");
  refused(LAPI_Setcntr_wstatus(handle, &resting, -1, nullptr, nullptr), LAPI_ERR_NUM_DEST,
          "LAPI_Setcntr_wstatus");
  refused(LAPI_Setcntr_wstatus(handle, &resting, 1, nullptr, status), LAPI_ERR_NUM_DEST,
          "LAPI_Setcntr_wstatus");
}

TEST_F(Arguments, AddressesAndQueries) {
  unsigned long address = 0;
  void* pointer = nullptr;
  int value = 0;
  refused(LAPI_Address(nullptr, &address), LAPI_ERR_ORG_ADDR_NULL, "LAPI_Address");
  refused(LAPI_Address(&kept, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Address");
  refused(LAPI_Address_init(handle, &kept, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Address_init");
  refused(LAPI_Address_init64(handle, 0, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Address_init64");
  int size = 0;
  ok(LAPI_Qenv(handle, LOC_ADDRTBL_SZ, &size));
  for (const int wrong : {0, -1, size, INT_MAX, INT_MIN}) {
    refused(LAPI_Addr_set(handle, kHandler, wrong), LAPI_ERR_ADDR_HNDL_RANGE, "LAPI_Addr_set");
    refused(LAPI_Addr_get(handle, &pointer, wrong), LAPI_ERR_ADDR_HNDL_RANGE, "LAPI_Addr_get");
  }
  refused(LAPI_Addr_get(handle, nullptr, 1), LAPI_ERR_RET_PTR_NULL, "LAPI_Addr_get");
  refused(LAPI_Qenv(handle, LAST_QUERY, &value), LAPI_ERR_QUERY_TYPE, "LAPI_Qenv");
  refused(LAPI_Qenv(handle, static_cast<lapi_query_t>(-1), &value), LAPI_ERR_QUERY_TYPE,
          "LAPI_Qenv");
  refused(LAPI_Qenv(handle, TASK_ID, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Qenv");
  refused(LAPI_Senv(handle, TASK_ID, 1), LAPI_ERR_QUERY_TYPE, "LAPI_Senv");
  refused(LAPI_Senv(handle, LAST_QUERY, 1), LAPI_ERR_QUERY_TYPE, "LAPI_Senv");
  refused(LAPI_Senv(handle, TIMEOUT, 1), LAPI_ERR_SET_VAL, "LAPI_Senv");
  refused(LAPI_Senv(handle, TIMEOUT, INT_MAX), LAPI_ERR_SET_VAL, "LAPI_Senv");
  refused(LAPI_Senv(handle, ACK_THRESHOLD, 0), LAPI_ERR_SET_VAL, "LAPI_Senv");
  refused(LAPI_Msgpoll(handle, 1, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Msgpoll");
}

TEST_F(Arguments, TransfersAndCommands) {
  refused(LAPI_Xfer(handle, nullptr), LAPI_ERR_XFER_CMD, "LAPI_Xfer");
  lapi_xfer_t xfer = {};
  xfer.Xfer_type = LAPI_LAST_XFER;
  refused(LAPI_Xfer(handle, &xfer), LAPI_ERR_XFER_CMD, "LAPI_Xfer");
  xfer = {};
  xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
  xfer.Rmw.size = 16;
  refused(LAPI_Xfer(handle, &xfer), LAPI_ERR_OP_SZ, "LAPI_Xfer");
  xfer = {};
  xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
  refused(LAPI_Xfer(handle, &xfer), LAPI_ERR_TGT_VEC_NULL, "LAPI_Xfer");
  xfer = {};
  xfer.Put.Xfer_type = LAPI_PUT_XFER;
  xfer.Put.tgt = tasks;
  refused(LAPI_Xfer(handle, &xfer), LAPI_ERR_TGT, "LAPI_Xfer");
  refused(LAPI_Util(handle, nullptr), LAPI_ERR_UTIL_CMD, "LAPI_Util");
  lapi_util_t util = {};
  util.Util_type = LAPI_LAST_UTIL;
  refused(LAPI_Util(handle, &util), LAPI_ERR_UTIL_CMD, "LAPI_Util");
  util.Util_type = LAPI_ADD_UDP_DEST_PORT;
  refused(LAPI_Util(handle, &util), LAPI_ERR_NO_UDP_HNDLR, "LAPI_Util");
}

// Without checks, valid calls work, and errors that the engine detects are still errors.
TEST_F(Arguments, ErrorCheckingCanBeSwitchedOff) {
  ok(LAPI_Senv(handle, ERROR_CHK, 0));
  int value = -1;
  ok(LAPI_Qenv(handle, ERROR_CHK, &value));
  EXPECT_EQ(value, 0);
  static int target;
  const auto all = addresses_of(&target);
  int data = static_cast<int>(me);
  ok(LAPI_Put(handle, right(), sizeof data, all[right()], &data, nullptr, nullptr, nullptr));
  gfence();
  EXPECT_EQ(target, static_cast<int>(left()));
  EXPECT_NE(LAPI_Put(handle, tasks, 4, &kept, &data, nullptr, &resting, nullptr), LAPI_SUCCESS);
  ok(LAPI_Senv(handle, ERROR_CHK, 1));
}

TEST(MsgString, EveryCodeHasItsName) {
  for (int code = LAPI_ERR_BASE_ + 1; code < LAPI_ERR_END_; ++code) {
    const std::string text = text_of(code);
    EXPECT_EQ(text.rfind("LAPI_ERR_", 0), 0u) << code;
    EXPECT_GT(text.size(), 20u) << text;
  }
  EXPECT_NE(text_of(LAPI_ERR_TGT).find("LAPI_ERR_TGT:"), std::string::npos);
  EXPECT_EQ(text_of(LAPI_SUCCESS).rfind("LAPI_SUCCESS", 0), 0u);
  char text[LAPI_MAX_ERR_STRING];
  refused(LAPI_Msg_string(LAPI_ERR_TGT, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Msg_string");
  for (const int code :
       {-1, 1, static_cast<int>(LAPI_ERR_BASE_), static_cast<int>(LAPI_ERR_END_)}) {
    refused(LAPI_Msg_string(code, text), LAPI_ERR_CODE_UNKNOWN, "LAPI_Msg_string");
  }
}

}  // namespace
}  // namespace lapi_test
