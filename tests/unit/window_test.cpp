// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/window.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/memory/address_window.h"
#include "os/memory/memfd.h"

namespace mobius::os {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(AddressWindow, DoesNotTakeMappedAddresses) {
  AddressWindow first;
  ASSERT_TRUE(first.reserve_anywhere(64 * kMiB, 2 * kMiB));
  EXPECT_EQ(first.base() % (2 * kMiB), 0u);
  AddressWindow second;
  EXPECT_FALSE(second.reserve_at(first.base() + 32 * kMiB, 64 * kMiB));
  EXPECT_EQ(second.bytes(), 0u);
  const uintptr_t base = first.base();
  first.release();
  EXPECT_TRUE(second.reserve_at(base, 64 * kMiB));
}

TEST(AddressWindow, AllowsAndDeniesPartsOfSharedMemory) {
  AddressWindow window;
  ASSERT_TRUE(window.reserve_anywhere(64 * kMiB, 2 * kMiB));
  int fd = -1;
  ASSERT_EQ(memfd_create_sized("window", 80 * kMiB, &fd), MOB_OK);
  ASSERT_EQ(window.attach(fd, 16 * kMiB), MOB_OK);
  ASSERT_EQ(window.allow(2 * kMiB, 4 * kMiB), MOB_OK);
  auto* word = reinterpret_cast<volatile int*>(window.base() + 2 * kMiB);
  *word = 42;
  int got = 0;
  EXPECT_EQ(pread(fd, &got, sizeof got, static_cast<off_t>(18 * kMiB)), 4);
  EXPECT_EQ(got, 42);
  EXPECT_DEATH(*reinterpret_cast<volatile int*>(window.base()) = 1, "");
  window.deny(2 * kMiB, 4 * kMiB);
  EXPECT_DEATH(*word = 1, "");
  // Still reserved: no other mapping gets the place.
  AddressWindow other;
  EXPECT_FALSE(other.reserve_at(window.base() + 2 * kMiB, 4 * kMiB));
  memfd_release(fd, 18 * kMiB, 2 * kMiB);
  EXPECT_EQ(pread(fd, &got, sizeof got, static_cast<off_t>(18 * kMiB)), 4);
  EXPECT_EQ(got, 0);
  close(fd);
}

TEST(AddressWindow, MoreThanTheAddressSpaceFails) {
  AddressWindow window;
  EXPECT_FALSE(window.reserve_anywhere(size_t{1} << 60, 2 * kMiB));
  EXPECT_FALSE(window.reserve_at(0x600000000000, size_t{1} << 60));
}

}  // namespace
}  // namespace mobius::os
