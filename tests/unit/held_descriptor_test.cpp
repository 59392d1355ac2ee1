// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/held_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/status.h"
#include "os/memory/memfd.h"

namespace mobius::os {
namespace {

int memory() {
  int descriptor = -1;
  EXPECT_EQ(memfd_create_sized("test", 1 << 16, &descriptor), MOB_OK);
  return descriptor;
}

TEST(HeldDescriptor, ANumberThatTheProgramUsesAnewIsNotTouched) {
  const int number = memory();
  HeldDescriptor held(number);
  EXPECT_EQ(held.get(), number);
  const int other = memory();
  ASSERT_EQ(dup2(other, number), number);  // as close() and open() of the program do
  EXPECT_TRUE(held.is_held());
  EXPECT_FALSE(held.is_ours());
  EXPECT_EQ(held.get(), -1);
  held.close();
  EXPECT_GE(fcntl(number, F_GETFD), 0);
  close(number);
  close(other);
}

TEST(HeldDescriptor, AClosedNumberIsNobodys) {
  const int number = memory();
  HeldDescriptor held(number);
  close(number);
  EXPECT_EQ(held.get(), -1);
  held.close();
  EXPECT_FALSE(held.is_held());
}

TEST(HeldDescriptor, MovesAndClosesItsOwn) {
  const int number = memory();
  HeldDescriptor first(number);
  HeldDescriptor second(static_cast<HeldDescriptor&&>(first));
  EXPECT_FALSE(first.is_held());
  EXPECT_EQ(second.get(), number);
  second.close();
  EXPECT_LT(fcntl(number, F_GETFD), 0);
}

TEST(HeldDescriptor, ReservingWithoutItNamesTheCause) {
  EXPECT_EQ(memfd_reserve(-1, 0, 4096), MOB_ERR_STATE);
  EXPECT_NE(std::strstr(mob_last_error(), "was closed by the program"), nullptr);
  memfd_release(-1, 0, 4096);  // does nothing
}

}  // namespace
}  // namespace mobius::os
