// SPDX-License-Identifier: BSD-3-Clause
#include "os/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mobius::os {
namespace {

constexpr int kPopulateRead = 22;  // Linux 5.14

// Five pages, of which the kernel can be asked.
class Accessible : public testing::Test {
 protected:
  void SetUp() override {
    if (madvise(nullptr, 0, kPopulateRead) != 0) {
      GTEST_SKIP() << "SKIP: the kernel cannot be asked what is accessible (Linux 5.14)";
    }
  }
  ~Accessible() override { munmap(memory_, 5 * page_); }

  void map(int flags, int file) {
    memory_ = mmap(nullptr, 5 * page_, PROT_READ | PROT_WRITE, flags, file, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void* page(size_t index) const { return static_cast<char*>(memory_) + index * page_; }
  // Of `bytes` bytes from the last byte of a page on.
  bool may(size_t index, size_t bytes, bool write) const {
    return is_accessible(reinterpret_cast<uintptr_t>(page(index)) + page_ - 1, bytes, write);
  }

  const size_t page_ = page_bytes();
  void* memory_ = nullptr;
};

TEST_F(Accessible, PrivateMemory) {
  map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  EXPECT_TRUE(may(0, 1, true));
  EXPECT_TRUE(may(0, 3 * page_, true));
  ASSERT_EQ(mprotect(page(2), page_, PROT_READ), 0);
  EXPECT_TRUE(may(0, 3 * page_, false));
  EXPECT_FALSE(may(0, 3 * page_, true));
  EXPECT_TRUE(may(0, page_ + 1, true));
  ASSERT_EQ(mprotect(page(2), page_, PROT_NONE), 0);
  EXPECT_FALSE(may(0, 3 * page_, false));
  ASSERT_EQ(munmap(page(2), page_), 0);
  EXPECT_FALSE(may(0, 3 * page_, false));
  EXPECT_FALSE(may(0, page_ + 2, false));
  EXPECT_FALSE(may(2, page_ + 1, true));
  EXPECT_TRUE(may(3, page_ + 1, true));
}

TEST_F(Accessible, MappingLongerThanItsFile) {
  const int file = memfd_create("pages_test", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(3 * page_)), 0);
  map(MAP_SHARED, file);
  close(file);
  EXPECT_TRUE(may(0, page_ + 2, true));
  EXPECT_FALSE(may(0, 4 * page_, true));
  EXPECT_FALSE(may(0, 4 * page_, false));
}

}  // namespace
}  // namespace mobius::os
