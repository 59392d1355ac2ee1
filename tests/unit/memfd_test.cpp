// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/memfd.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace mobius::os {
namespace {

TEST(Memfd, ReservesOnlyWhatIsAskedAndCannotShrinkOrGrow) {
  int fd = -1;
  ASSERT_EQ(memfd_create_sized("test", 16 << 20, &fd), MOB_OK);
  struct stat before{};
  ASSERT_EQ(fstat(fd, &before), 0);
  EXPECT_EQ(before.st_size, 16 << 20);
  EXPECT_EQ(before.st_blocks, 0);
  ASSERT_EQ(memfd_reserve(fd, 4 << 20, 1), MOB_OK);
  struct stat after{};
  ASSERT_EQ(fstat(fd, &after), 0);
  EXPECT_GE(after.st_blocks * 512, 1);
  EXPECT_LE(after.st_blocks * 512, 2 << 20);  // one page, huge at most
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_NE(ftruncate(fd, 32 << 20), 0);
  close(fd);
}

TEST(Memfd, SizesThatNoFileCanHaveFail) {
  int fd = -1;
  EXPECT_EQ(memfd_create_sized("test", SIZE_MAX, &fd), MOB_ERR_MEMORY);
  EXPECT_EQ(fd, -1);
  EXPECT_NE(std::string(mob_last_error()).find("18446744073709551615"), std::string::npos);
}

}  // namespace
}  // namespace mobius::os
