// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operations whose failure is detected after the call that started them.

#include <mobius/mobius.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "fixture.h"

namespace mobius_test {

// An exposed page that not even its owner can access. Collective.
class Closed {
 public:
  Closed()
      : page_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(page_, MAP_FAILED);
    EXPECT_EQ(mob_expose(page_, kBytes, 0, &handle_), MOB_OK) << mob_last_error();
    theirs_ = exchange_address(page_);
    EXPECT_EQ(mprotect(page_, kBytes, PROT_NONE), 0);
    barrier();
  }
  ~Closed() {
    barrier();
    EXPECT_EQ(mob_withdraw(handle_), MOB_OK) << mob_last_error();
    EXPECT_EQ(munmap(page_, kBytes), 0);
  }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;

  // Starts a put or an accumulate to the right neighbour's page. The next flush reports the error
  // of an accumulate, and of a put unless the call itself does: MOB_ERR_RANGE.
  mob_status_t start(mob_kind_t kind) const {
    mob_transfer_t transfer{};
    transfer.kind = kind;
    transfer.rank = right_of(mob_rank());
    transfer.remote = theirs_;
    transfer.local = const_cast<uint64_t*>(&one_);
    transfer.bytes = sizeof one_;
    transfer.type = MOB_UINT64;
    transfer.op = MOB_SUM;
    return mob_transfer_nbi(&transfer);
  }
  void start_failing() const { EXPECT_EQ(start(MOB_ACCUMULATE), MOB_OK) << mob_last_error(); }

 private:
  static constexpr size_t kBytes = 4096;

  void* page_;
  void* theirs_ = nullptr;
  mob_exposed_t handle_ = nullptr;
  const uint64_t one_ = 1;
};

}  // namespace mobius_test
