// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/private_views.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "os/memory/fork_copies.h"
#include "os/memory/map_query.h"

namespace mobius::os {
namespace {

// Pages of the program that are a view of their place, in the midst of a file; each page has a mark
// of its own.
class View : public testing::Test {
 protected:
  static constexpr size_t kPages = 40;

  void SetUp() override {
    file_ = memfd_create("private_views_test", MFD_CLOEXEC);
    ASSERT_GE(file_, 0);
    ASSERT_EQ(ftruncate(file_, static_cast<off_t>(3 * bytes_)), 0);
    there_ = map(MAP_SHARED, file_, bytes_);
    pages_ = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < kPages; ++i) pages_[i * page_] = mark(i);
    ASSERT_EQ(make_shared(start(), bytes_, false, place()), MOB_OK);
    if (!make_view(start(), bytes_, place())) GTEST_SKIP() << "SKIP: no memory may be locked here";
  }
  ~View() override {
    munmap(pages_, bytes_);
    munmap(there_, bytes_);
    close(file_);
  }

  unsigned char* map(int flags, int file, size_t offset) const {
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(offset));
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<unsigned char*>(memory);
  }
  static unsigned char mark(size_t page) { return static_cast<unsigned char>(page + 1); }
  uintptr_t start() const { return reinterpret_cast<uintptr_t>(pages_); }
  SharedPlace place() const { return {file_, bytes_}; }
  size_t marked(const unsigned char* at) const {
    size_t right = 0;
    for (size_t i = 0; i < kPages; ++i) right += at[i * page_] == mark(i) ? 1 : 0;
    return right;
  }
  // Whoever gets the place next.
  void use_place() const { std::fill_n(there_, bytes_, static_cast<unsigned char>(0xee)); }

  const size_t page_ = page_bytes();
  const size_t bytes_ = kPages * page_;
  int file_ = -1;
  unsigned char* pages_ = nullptr;
  unsigned char* there_ = nullptr;
};

TEST_F(View, IsTheProgramsOwnAndIsSharedAgainWithWhatItWrote) {
  EXPECT_EQ(marked(pages_), kPages);
  pages_[3 * page_] = 200;
  pages_[5 * page_ + 9] = 201;
  EXPECT_EQ(there_[3 * page_], mark(3));
  EXPECT_EQ(there_[5 * page_ + 9], 0);
  ASSERT_TRUE(share_view(start(), bytes_, place()));
  EXPECT_EQ(there_[3 * page_], 200);
  EXPECT_EQ(there_[5 * page_ + 9], 201);
  EXPECT_EQ(marked(there_), kPages - 1);
  there_[7 * page_] = 202;
  EXPECT_EQ(pages_[7 * page_], 202);
  ASSERT_TRUE(make_view(start(), bytes_, place()));
  EXPECT_EQ(pages_[7 * page_], 202);
}

TEST_F(View, OfOnePageIsNotMade) {
  ASSERT_TRUE(share_view(start(), bytes_, place()));
  EXPECT_FALSE(make_view(start(), page_, place()));
  EXPECT_TRUE(make_view(start(), 2 * page_, place()));
}

TEST_F(View, EndsAsMemoryOfItsOwn) {
  pages_[3 * page_] = 200;
  ASSERT_EQ(end_views(place(), bytes_), MOB_OK);
  use_place();
  EXPECT_EQ(pages_[3 * page_], 200);
  EXPECT_EQ(marked(pages_), kPages - 1);
  EXPECT_FALSE(share_view(start(), bytes_, place()));
}

TEST_F(View, MemoryThatTheProgramMappedInsteadIsNone) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  void* at = pages_ + 8 * page_;
  ASSERT_EQ(mmap(at, 4 * page_, PROT_READ | PROT_WRITE, flags, -1, 0), at);
  pages_[8 * page_] = 77;
  ASSERT_EQ(munmap(pages_ + 20 * page_, page_), 0);
  EXPECT_FALSE(share_view(start(), bytes_, place()));
  ASSERT_EQ(end_views(place(), bytes_), MOB_OK);
  use_place();
  EXPECT_EQ(pages_[8 * page_], 77);
  EXPECT_EQ(pages_[9 * page_], 0);
  EXPECT_EQ(pages_[7 * page_], mark(7));
  EXPECT_EQ(pages_[21 * page_], mark(21));
  DescribedMapping hole{};
  const MapAnswer answer = MapQuery().mapping_of(start() + 20 * page_, &hole);
  EXPECT_NE(answer, MapAnswer::kFound);
}

// A view of another place of the same file.
TEST_F(View, WhatLiesElsewhereInTheFileIsNotItsOwn) {
  void* at = mmap(pages_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_, 0);
  ASSERT_EQ(at, pages_);
  EXPECT_FALSE(share_view(start(), bytes_, place()));
}

TEST_F(View, IsFoundWhereTheProgramMovedIt) {
  unsigned char* const elsewhere = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const size_t half = bytes_ / 2;
  ASSERT_EQ(mremap(pages_, half, half, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere), elsewhere);
  EXPECT_FALSE(share_view(start(), bytes_, place()));
  ASSERT_EQ(end_views(place(), bytes_), MOB_OK);
  use_place();
  for (size_t i = 0; i < kPages; ++i) {
    EXPECT_EQ((i < kPages / 2 ? elsewhere : pages_)[i * page_], mark(i)) << i;
  }
  munmap(elsewhere, bytes_);
}

// realloc() of the GNU C library lets its mappings grow so, and copies where the kernel refuses.
TEST_F(View, DoesNotGrow) {
  EXPECT_EQ(mremap(pages_, bytes_, 2 * bytes_, MREMAP_MAYMOVE), MAP_FAILED);
  EXPECT_EQ(mremap(pages_, bytes_, bytes_ + page_, 0), MAP_FAILED);
  EXPECT_EQ(marked(pages_), kPages);
}

// Other allocators take pages for zeros after a call that has succeeded.
TEST_F(View, ItsContentsAreNotGivenUp) {
  const int result = madvise(pages_, bytes_, MADV_DONTNEED);
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(marked(pages_), kPages);
}

TEST_F(View, ProtectionStays) {
  pages_[3 * page_] = 200;
  ASSERT_EQ(mprotect(pages_ + 2 * page_, 4 * page_, PROT_NONE), 0);
  ASSERT_EQ(mprotect(pages_ + 10 * page_, page_, PROT_READ), 0);
  EXPECT_FALSE(share_view(start(), bytes_, place()));
  ASSERT_EQ(end_views(place(), bytes_), MOB_OK);
  use_place();
  MapReader reader;
  DescribedMapping mapping{};
  int seen = 0;
  while (reader.next(&mapping) == MapAnswer::kFound) {
    const auto holds = [&](size_t page) {
      return mapping.start <= start() + page * page_ && start() + page * page_ < mapping.end;
    };
    if (holds(3)) seen += mapping.protection == PROT_NONE ? 1 : 0;
    if (holds(10)) seen += mapping.protection == PROT_READ ? 1 : 0;
    if (holds(11)) seen += mapping.protection == (PROT_READ | PROT_WRITE) ? 1 : 0;
  }
  EXPECT_EQ(seen, 3);
  ASSERT_EQ(mprotect(pages_, bytes_, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(pages_[3 * page_], 200);
  EXPECT_EQ(marked(pages_), kPages - 1);
}

// A child of fork() keeps what it has, whatever comes to the place later, and where the program has
// mapped other memory meanwhile.
TEST_F(View, AChildHasACopy) {
  ASSERT_EQ(begin_copies(start(), bytes_, place()), MOB_OK);
  void* other = pages_ + 8 * page_;
  ASSERT_EQ(
      mmap(other, page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      other);
  pages_[8 * page_] = mark(8);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const bool goes = read(go[0], &byte, 1) == 1;
    pages_[3 * page_] = mark(3);
    _exit(goes && marked(pages_) == kPages ? 0 : 1);
  }
  use_place();
  EXPECT_EQ(write(go[1], "", 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(go[0]);
  close(go[1]);
  end_copies(start(), place());
}

}  // namespace
}  // namespace mobius::os
