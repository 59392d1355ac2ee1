// SPDX-License-Identifier: BSD-3-Clause

// Data gather/scatter programs: registering, packing, and messages that use them at either end.

#include <array>
#include <numeric>

#include "fixture.h"

namespace lapi_test {
namespace {

// Every second of 8 ints, then a gap of as many.
std::array<long, 8> every_second = {LAPI_DGSM_GOSUB, 4, 8, 5, LAPI_DGSM_ITERATE,
                                    LAPI_DGSM_COPY,  4, 0};
std::array<long, 9> with_return;

lapi_dgsp_descr_t description() {
  std::copy(every_second.begin(), every_second.end(), with_return.begin());
  with_return[8] = LAPI_DGSM_RETURN;
  return {with_return.data(), 9, 2, 0, 16, 64, 0, 28, 0};
}

class Program {
 public:
  Program() {
    lapi_dgsp_descr_t what = description();
    lapi_util_t util = {};
    util.RegDgsp = {LAPI_REGISTER_DGSP, &what, nullptr, -1};
    ok(LAPI_Util(handle, &util));
    ok(util.RegDgsp.status);
    handle_ = util.RegDgsp.dgsp_handle;
  }
  ~Program() { ok(release()); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  int release() {
    lapi_util_t util = {};
    util.DrefDgsp = {LAPI_UNRESERVE_DGSP, handle_, -1};
    return LAPI_Util(handle, &util);
  }
  int reserve() {
    lapi_util_t util = {};
    util.ResvDgsp = {LAPI_RESERVE_DGSP, handle_, -1};
    return LAPI_Util(handle, &util);
  }
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

TEST(Programs, PackAndUnpack) {
  Program program;
  ok(program.reserve());
  ok(program.release());
  std::array<int, 64> data;
  std::iota(data.begin(), data.end(), 0);
  std::array<int, 12> packed;
  packed.fill(-1);
  lapi_util_t util = {};
  util.PackDgsp = {LAPI_DGSP_PACK, program.get(), data.data(), 40,
                   packed.data(),  sizeof packed, 4,           -1};
  ok(LAPI_Util(handle, &util));
  EXPECT_EQ(util.PackDgsp.position, 44u);
  EXPECT_EQ(packed, (std::array<int, 12>{-1, 0, 2, 4, 6, 16, 18, 20, 22, 32, 34, -1}));
  std::array<int, 64> back;
  back.fill(-1);
  util.UnpackDgsp = {
      LAPI_DGSP_UNPACK, packed.data(), sizeof packed, 4, back.data(), 40, program.get(), -1};
  ok(LAPI_Util(handle, &util));
  EXPECT_EQ(util.UnpackDgsp.position, 44u);
  EXPECT_EQ(back[22], 22);
  EXPECT_EQ(back[34], 34);
  EXPECT_EQ(std::count(back.begin(), back.end(), -1), 54);
  util.PackDgsp = {LAPI_DGSP_PACK, program.get(), data.data(), 48,
                   packed.data(),  sizeof packed, 4,           -1};
  refused(LAPI_Util(handle, &util), LAPI_ERR_PACK_SZ, "LAPI_Util");
  util.UnpackDgsp = {LAPI_DGSP_UNPACK, packed.data(), 40, 4, back.data(), 40, program.get(), -1};
  refused(LAPI_Util(handle, &util), LAPI_ERR_UNPACK_SZ, "LAPI_Util");
  util.PackDgsp.Util_type = LAPI_DGSP_PACK;
  util.PackDgsp.dgsp_handle = &util;
  refused(LAPI_Util(handle, &util), LAPI_ERR_DGSP, "LAPI_Util");
}

TEST(Programs, WrongOnesAreRefused) {
  const auto refuse = [](std::vector<long> code, int depth, int atom, int expected) {
    lapi_dgsp_descr_t what = {code.data(), static_cast<int>(code.size()), depth, 0, 0, 0, 0, 0,
                              atom};
    lapi_util_t util = {};
    util.RegDgsp = {LAPI_REGISTER_DGSP, &what, nullptr, -1};
    refused(LAPI_Util(handle, &util), expected, "LAPI_Util");
    EXPECT_EQ(util.RegDgsp.status, expected);
  };
  refuse({}, 1, 0, LAPI_ERR_DGSP);
  refuse({LAPI_DGSM_ITERATE, 0}, 1, 0, LAPI_ERR_DGSP);
  refuse({99}, 1, 0, LAPI_ERR_DGSP_OPC);
  refuse({LAPI_DGSM_COPY, 4}, 1, 0, LAPI_ERR_DGSP_BRANCH);
  refuse({LAPI_DGSM_COPY, 4, 0}, 1, 0, LAPI_ERR_DGSP_BRANCH);
  refuse({LAPI_DGSM_COPY, -4, 0, LAPI_DGSM_ITERATE, 0}, 1, 0, LAPI_ERR_DGSP_COPY_SZ);
  refuse({LAPI_DGSM_MCOPY, 1000, 0}, 1, 0, LAPI_ERR_DGSP_BRANCH);
  refuse({LAPI_DGSM_GOSUB, 1, 0, 1000, LAPI_DGSM_ITERATE, 0}, 2, 0, LAPI_ERR_DGSP_BRANCH);
  refuse({LAPI_DGSM_GOSUB, 1, 0, 0, LAPI_DGSM_ITERATE, 0}, 5, 0, LAPI_ERR_DGSP_STACK);
  refuse({LAPI_DGSM_COPY, 4, 0, LAPI_DGSM_ITERATE, 0}, 1, -1, LAPI_ERR_DGSP_ATOM);
  lapi_util_t util = {};
  util.DrefDgsp = {LAPI_UNRESERVE_DGSP, &util, 0};
  refused(LAPI_Util(handle, &util), LAPI_ERR_DGSP_FREE, "LAPI_Util");
  util.ResvDgsp = {LAPI_RESERVE_DGSP, nullptr, 0};
  refused(LAPI_Util(handle, &util), LAPI_ERR_DGSP, "LAPI_Util");
  util = {};
  util.DdmFunc.Util_type = LAPI_REG_DDM_FUNC;
  ok(LAPI_Util(handle, &util));
}

std::array<int, 100'000> scattered;
void* target_program;

void* scatter(lapi_handle_t*, void*, unsigned*, unsigned long* msg_len, compl_hndlr_t** comp_h,
              void**) {
  reinterpret_cast<lapi_return_info_t*>(msg_len)->dgsp_handle = target_program;
  *comp_h = nullptr;
  return scattered.data();
}

TEST(Programs, GatherAtTheOriginScatterAtTheTarget) {
  Program program;
  target_program = program.get();
  ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(scatter), 40));
  std::vector<int> source(100'000);
  std::iota(source.begin(), source.end(), static_cast<int>(1000 * me));
  for (const size_t count : {size_t{4}, size_t{20'000}}) {
    scattered.fill(-1);
    gfence();
    Counter completion;
    lapi_xfer_t command = {};
    command.Dgsp = {LAPI_DGSP_XFER,
                    0,
                    right(),
                    40,
                    0,
                    nullptr,
                    source.data(),
                    count * sizeof(int),
                    nullptr,
                    nullptr,
                    0,
                    nullptr,
                    completion.get(),
                    program.get(),
                    -1};
    ok(LAPI_Xfer(handle, &command));
    ok(command.Dgsp.status);
    completion.wait(1);
    gfence();
    bool all_right = true;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = i / 4 * 16 + i % 4 * 2;
      all_right &= scattered[at] == static_cast<int>(1000 * left() + at) && scattered[at + 1] == -1;
    }
    EXPECT_TRUE(all_right) << count;
  }
  lapi_xfer_t command = {};
  command.Dgsp.Xfer_type = LAPI_DGSP_XFER;
  command.Dgsp.hdr_hdl = 40;
  refused(LAPI_Xfer(handle, &command), LAPI_ERR_DGSP, "LAPI_Xfer");
  gfence();
}

}  // namespace
}  // namespace lapi_test
