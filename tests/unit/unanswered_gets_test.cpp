// SPDX-License-Identifier: BSD-3-Clause

// Gets from a rank of another host that cannot send its answers.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/transfer/router.h"
#include "fake_hosts.h"

namespace mobius::engine {
namespace {

// Gets of 40 rows of 1000 bytes, side by side or not, whose target has no room for the answers. The
// first answer fills a frame that cannot go, the second is read and waits for the frame; later ones
// are not read.
class RemoteUnansweredGets : public testing::TestWithParam<mob_shape_t> {
 protected:
  static constexpr size_t kRows = 40;
  static constexpr size_t kRow = 1000;
  static constexpr size_t kBytes = kRows * kRow;
  static constexpr size_t kDistance = kRow + 16;

  mob_status_t get(unsigned char* from, Bytes* to) {
    constexpr size_t kCount = kRows;
    constexpr ptrdiff_t kRemote = kDistance;
    constexpr ptrdiff_t kLocal = kRow;
    to->assign(kBytes, 9);
    mob_transfer_t transfer = contiguous(MOB_GET, 1, from, to->data(), kBytes);
    transfer.shape = GetParam();
    if (transfer.shape == MOB_STRIDED) {
      transfer.bytes = kRow;
      transfer.dimensions = 1;
      transfer.counts = &kCount;
      transfer.remote_strides = &kRemote;
      transfer.local_strides = &kLocal;
    }
    std::vector<mob_span_t> spans;
    for (size_t row = 0; row < kRows; ++row) spans.push_back({from + row * kDistance, kRow});
    const mob_span_t whole{to->data(), kBytes};
    transfer.remote_spans = spans.data();
    transfer.remote_span_count = spans.size();
    transfer.local_spans = &whole;
    transfer.local_span_count = 1;
    return hosts_.own.transfer(transfer, Mode::kImplicit);
  }

  void get_with_room_for_none(unsigned char* from) {
    hosts_.fabric().refuse(1, transport::ofi::FakeFabric::kAlways);
    for (Bytes& each : before_) ASSERT_EQ(get(hosts_.memory + kLongBytes, &each), MOB_OK);
    ASSERT_EQ(get(from, &got_), MOB_OK);
    hosts_.settle();
    EXPECT_EQ(hosts_.count(1, InternalHandler::kServed), 0u);
  }
  mob_status_t make_room() {
    hosts_.fabric().refuse(1, 0);
    return hosts_.own.flush(1);
  }

  TwoHosts hosts_{{"MOBIUS_SCHEDULE=fifo"}};
  unsigned char* const memory_ = hosts_[1].allocate(kRows * kDistance);
  Bytes before_[2];
  Bytes got_;
};

TEST_P(RemoteUnansweredGets, CarryTheBytesFromBeforeTheNextPut) {
  std::fill_n(memory_, kRows * kDistance, 1);
  get_with_room_for_none(memory_);
  const Bytes data(kRows * kDistance, 2);
  ASSERT_EQ(hosts_.own.put_nbi(1, memory_, data.data(), data.size()), MOB_OK);
  hosts_.settle();
  EXPECT_EQ(memory_[0], 2);
  EXPECT_EQ(make_room(), MOB_OK);
  EXPECT_EQ(got_, Bytes(kBytes, 1));
}

TEST_P(RemoteUnansweredGets, AreNotCopiedBeforeThereIsRoom) {
  std::fill_n(memory_, kRows * kDistance, 1);
  get_with_room_for_none(memory_);
  std::fill_n(memory_, kRows * kDistance, 3);
  EXPECT_EQ(make_room(), MOB_OK);
  EXPECT_EQ(got_, Bytes(kBytes, 3));
}

TEST_P(RemoteUnansweredGets, DoNotTouchWhatWasFreed) {
  get_with_room_for_none(memory_);
  hosts_[1].free(memory_);
  EXPECT_EQ(make_room(), MOB_ERR_RANGE);
  EXPECT_TRUE(says("rank 1: ") && says("not in one of its allocations")) << mob_last_error();
  EXPECT_EQ(got_, Bytes(kBytes, 9));
}

INSTANTIATE_TEST_SUITE_P(Of, RemoteUnansweredGets,
                         testing::Values(MOB_CONTIGUOUS, MOB_STRIDED, MOB_SPANS));

}  // namespace
}  // namespace mobius::engine
