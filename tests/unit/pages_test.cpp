// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
#include <vector>

#include "os/memory/fork_copies.h"

namespace mobius::os {
namespace {

constexpr int kPopulateRead = 22;  // Linux 5.14

// Five pages about which the kernel can be asked.
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
  // For `bytes` bytes from the last byte of a page on.
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

// The range around the bytes ends where the property ends.
TEST_F(Accessible, AsFarAsItHolds) {
  map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  ASSERT_EQ(mprotect(page(1), page_, PROT_READ), 0);
  ASSERT_EQ(munmap(page(4), page_), 0);
  const auto at = [this](size_t index) { return reinterpret_cast<uintptr_t>(page(index)); };
  AddressRange around{};
  ASSERT_TRUE(is_accessible(at(2) + 8, 8, true, &around));
  EXPECT_EQ(around.start, at(2));
  EXPECT_GE(around.end, at(3));
  EXPECT_LE(around.end, at(4));
  // Neighbours may all be readable, named or not, up to the hole.
  ASSERT_TRUE(is_accessible(at(1), page_ + 1, false, &around));
  EXPECT_LE(around.start, at(1));
  EXPECT_GE(around.end, at(3));
  EXPECT_LE(around.end, at(4));
  EXPECT_FALSE(is_accessible(at(1) + page_ - 1, 2, true, &around));
  EXPECT_FALSE(is_accessible(at(4), 1, false, &around));
}

TEST_F(Accessible, MappingLongerThanItsFile) {
  const int file = memfd_create("pages_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(3 * page_)), 0);
  map(MAP_SHARED, file);
  close(file);
  EXPECT_TRUE(may(0, page_ + 2, true));
  EXPECT_FALSE(may(0, 4 * page_, true));
  EXPECT_FALSE(may(0, 4 * page_, false));
  AddressRange around{};
  const auto start = reinterpret_cast<uintptr_t>(memory_);
  ASSERT_TRUE(is_accessible(start + page_, page_ + 1, true, &around));
  EXPECT_GE(around.start, start);
  EXPECT_LE(around.end, start + 3 * page_);
}

// The kernel allocates no pages in mappings of devices, and then answers as where access is not
// permitted. The ring of a performance counter is such a mapping since Linux 6.15.
TEST_F(Accessible, MemoryOfADevice) {
  perf_event_attr counter{};
  counter.size = sizeof counter;
  counter.type = PERF_TYPE_SOFTWARE;
  counter.config = PERF_COUNT_SW_CPU_CLOCK;
  counter.exclude_kernel = 1;
  const auto file = static_cast<int>(syscall(SYS_perf_event_open, &counter, 0, -1, -1, 0));
  if (file < 0) GTEST_SKIP() << "no performance counters here";
  const size_t bytes = 3 * page_;  // a page about the ring, and the ring
  void* ring = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (ring == MAP_FAILED) GTEST_SKIP() << "a performance counter cannot be mapped here";
  const auto start = reinterpret_cast<uintptr_t>(ring);
  for (const size_t size : {size_t{8}, bytes}) {
    EXPECT_TRUE(is_accessible(start, size, false));
    EXPECT_TRUE(is_accessible(start, size, true));
  }
  EXPECT_EQ(munmap(ring, bytes), 0);
  EXPECT_FALSE(is_accessible(start, 8, false));
}

// Pages that move into shared memory and back; some were never touched.
class Moving : public testing::Test {
 protected:
  static constexpr size_t kPages = 5000;

  void SetUp() override {
    file_ = memfd_create("pages_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_GE(file_, 0);
    ASSERT_EQ(ftruncate(file_, static_cast<off_t>(bytes_ + page_)), 0);
    pages_ = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    copy_ = map(MAP_SHARED, file_, page_);
    for (const size_t page : kUsed) pages_[page * page_ + page % page_] = mark(page);
  }
  ~Moving() override {
    munmap(pages_, bytes_);
    munmap(copy_, bytes_);
    close(file_);
  }

  unsigned char* map(int flags, int file, size_t offset, void* where = nullptr) const {
    void* memory =
        mmap(where, bytes_, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(offset));
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<unsigned char*>(memory);
  }
  static unsigned char mark(size_t page) { return static_cast<unsigned char>(page % 200 + 1); }
  uintptr_t start() const { return reinterpret_cast<uintptr_t>(pages_); }
  SharedPlace place() const { return {file_, page_}; }
  size_t used_pages() const {
    struct stat status{};
    EXPECT_EQ(fstat(file_, &status), 0);
    return static_cast<size_t>(status.st_blocks) * 512 / page_;
  }
  // Each page is in its place, with the contents written to it, seen by reading it whole.
  void expect_contents() const {
    size_t sum = 0;
    size_t expected = 0;
    for (size_t i = 0; i < bytes_; ++i) sum += pages_[i];
    for (const size_t page : kUsed) {
      EXPECT_EQ(pages_[page * page_ + page % page_], mark(page)) << page;
      expected += mark(page);
    }
    EXPECT_EQ(sum, expected);
  }

  // Also the first and the last, and around the places where the kernel's answer is cut.
  static constexpr size_t kUsed[] = {0, 1, 7, 4094, 4095, 4096, 4100, kPages - 1};
  const size_t page_ = page_bytes();
  const size_t bytes_ = kPages * page_;
  int file_ = -1;
  unsigned char* pages_ = nullptr;
  unsigned char* copy_ = nullptr;
};

TEST_F(Moving, ThereAndBackWithoutThePagesThatNobodyTouched) {
  ASSERT_EQ(make_shared(start(), bytes_, true, place()), MOB_OK);
  // Without pagemap all pages are copied.
  if (access("/proc/self/pagemap", R_OK) == 0) {
    EXPECT_EQ(used_pages(), std::size(kUsed));
  }
  copy_[7 * page_ + 9] = 1;
  EXPECT_EQ(pages_[7 * page_ + 9], 1);
  copy_[7 * page_ + 9] = 0;
  ASSERT_EQ(make_private(start(), bytes_, place()), MOB_OK);
  copy_[7 * page_ + 9] = 1;
  expect_contents();
}

// Untouched pages of a file have the file's contents.
TEST_F(Moving, AllPagesOfAFile) {
  const int program = memfd_create("pages_test_program", MFD_CLOEXEC);
  ASSERT_GE(program, 0);
  ASSERT_EQ(ftruncate(program, static_cast<off_t>(bytes_)), 0);
  for (const size_t page : kUsed) {
    const unsigned char value = mark(page);
    ASSERT_EQ(pwrite(program, &value, 1, static_cast<off_t>(page * page_ + page % page_)), 1);
  }
  munmap(pages_, bytes_);
  pages_ = map(MAP_PRIVATE, program, 0);
  close(program);
  ASSERT_EQ(make_shared(start(), bytes_, false, place()), MOB_OK);
  expect_contents();
  ASSERT_EQ(make_private(start(), bytes_, place()), MOB_OK);
  expect_contents();
}

// The program has split the mapping, and has put a file of its own into its midst.
TEST_F(Moving, StayAsTheyWereWhereThereIsNoSharedMemory) {
  ASSERT_EQ(fcntl(file_, F_ADD_SEALS, F_SEAL_WRITE), -1);  // it is mapped
  munmap(copy_, bytes_);
  ASSERT_EQ(fcntl(file_, F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(make_shared(start(), bytes_, true, place()), MOB_ERR_MEMORY);
  copy_ = map(MAP_PRIVATE, file_, page_);
  expect_contents();
}

TEST_F(Moving, PagesThatWereUsedAreMappedAtOnce) {
  ASSERT_EQ(make_shared(start(), bytes_, true, place()), MOB_OK);
  map_used_pages(start(), bytes_, place());
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) GTEST_SKIP() << "no pagemap";
  for (const size_t page : {size_t{2}, kUsed[1], kPages - 1}) {
    uint64_t entry = 0;
    const auto at = static_cast<off_t>((start() / page_ + page) * sizeof entry);
    ASSERT_EQ(pread(pagemap, &entry, sizeof entry, at), static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(entry >> 63, page != 2) << page;
  }
  close(pagemap);
  EXPECT_EQ(used_pages(), std::size(kUsed));
  expect_contents();
}

TEST_F(Moving, EachPartComesBackAndOtherFilesStay) {
  ASSERT_EQ(make_shared(start(), bytes_, true, place()), MOB_OK);
  for (size_t page = 100; page < 400; page += 2) {
    ASSERT_EQ(mprotect(pages_ + page * page_, page_, PROT_READ), 0);
  }
  const int program = memfd_create("pages_test_program", MFD_CLOEXEC);
  ASSERT_GE(program, 0);
  ASSERT_EQ(ftruncate(program, static_cast<off_t>(page_)), 0);
  unsigned char* const own = pages_ + 1000 * page_;
  ASSERT_EQ(mmap(own, page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, program, 0), own);
  const std::vector<AddressRange> parts = still_shared(start(), bytes_, place());
  EXPECT_GE(parts.size(), 300u);
  ASSERT_EQ(make_private(parts, start(), place()), MOB_OK);
  EXPECT_TRUE(still_shared(start(), bytes_, place()).empty());
  for (const size_t page : kUsed) copy_[page * page_ + page % page_] = 0;
  expect_contents();
  *own = 9;
  unsigned char seen = 0;
  EXPECT_EQ(pread(program, &seen, 1, 0), 1);
  EXPECT_EQ(seen, 9);
  close(program);
}

template <typename What>
void in_child(What what) {
  const pid_t child = fork();
  if (child == 0) {
    what();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Moving, AChildHasACopyUntilTheCopiesEnd) {
  ASSERT_EQ(make_shared(start(), bytes_, true, place()), MOB_OK);
  ASSERT_EQ(begin_copies(start(), bytes_, place()), MOB_OK);
  static int guards;
  guards = 0;
  add_fork_guard({this, [](void*) { guards += 1; }, [](void*) { guards += 10; },
                  [](void*) { guards += 100; }});
  in_child([&] {
    if (guards != 101) _exit(1);
    pages_[0] = 77;
    pages_[2 * page_] = 78;  // a page that is empty in its parent
    // Its own children have the same contents.
    in_child([&] {
      if (pages_[0] != 77 || pages_[2 * page_] != 78 || guards != 101) _exit(1);
    });
    if (testing::Test::HasFailure()) _exit(1);
  });
  expect_contents();
  EXPECT_EQ(guards, 11);
  remove_fork_guard(this);
  end_copies(start(), place());
  in_child([&] { pages_[0] = 77; });
  EXPECT_EQ(pages_[0], 77);
  EXPECT_EQ(guards, 11);
}

TEST_F(Moving, AreMappedASecondTimeOnlyWhereNothingIs) {
  const auto heap = reinterpret_cast<uintptr_t>(sbrk(0));
  const int on_stack = 0;
  const uintptr_t stack = page_start(reinterpret_cast<uintptr_t>(&on_stack));
  // The kernel may have put the pages where the stack may grow.
  munmap(pages_, bytes_);
  void* const between = reinterpret_cast<void*>(page_start(heap / 2 + stack / 2));
  pages_ = map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0, between);
  EXPECT_FALSE(map_where_free(start(), bytes_, place()));
  EXPECT_FALSE(map_where_free(start() - page_, 2 * page_, place()));
  ASSERT_EQ(munmap(pages_, bytes_), 0);
  ASSERT_TRUE(map_where_free(start(), bytes_, place()));
  EXPECT_FALSE(map_where_free(start(), page_, place()));
  copy_[page_] = 5;
  EXPECT_EQ(pages_[page_], 5);
  unmap(start(), bytes_);
  pages_ = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // Nothing is mapped where the heap and the stack may grow, although those ranges are free.
  EXPECT_FALSE(map_where_free(page_start(heap) + (uintptr_t{1} << 30), page_, place()));
  EXPECT_FALSE(map_where_free(stack - (uintptr_t{1} << 30), page_, place()));
}

}  // namespace
}  // namespace mobius::os
