// SPDX-License-Identifier: BSD-3-Clause
#include "engine/window.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/address_window.h"
#include "os/memfd.h"

namespace mobius::os {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(AddressWindow, DoesNotTakeWhatIsTaken) {
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

TEST(AddressWindow, MapsSharedMemoryAndTakesItAway) {
  AddressWindow window;
  ASSERT_TRUE(window.reserve_anywhere(64 * kMiB, 2 * kMiB));
  int fd = -1;
  ASSERT_EQ(memfd_create_sized("window", 4 * kMiB, &fd), MOB_OK);
  ASSERT_EQ(window.map(2 * kMiB, 4 * kMiB, fd), MOB_OK);
  auto* word = reinterpret_cast<volatile int*>(window.base() + 2 * kMiB);
  *word = 42;
  int got = 0;
  EXPECT_EQ(pread(fd, &got, sizeof got, 0), 4);
  EXPECT_EQ(got, 42);
  window.unmap(2 * kMiB, 4 * kMiB);
  // Still reserved: nobody else gets the place.
  AddressWindow other;
  EXPECT_FALSE(other.reserve_at(window.base() + 2 * kMiB, 4 * kMiB));
  close(fd);
}

TEST(AddressWindow, MoreThanTheAddressSpaceFails) {
  AddressWindow window;
  EXPECT_FALSE(window.reserve_anywhere(size_t{1} << 60, 2 * kMiB));
  EXPECT_FALSE(window.reserve_at(0x600000000000, size_t{1} << 60));
}

}  // namespace
}  // namespace mobius::os
