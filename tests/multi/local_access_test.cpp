// SPDX-License-Identifier: BSD-3-Clause

// Local memory that the caller may not read or write, in operations of every kind and size on ranks
// of other hosts: an error of the call. On one host the calling thread may copy, and would fault as
// in memcpy().

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::right_of;
using mobius_test::same_host;
using mobius_test::Shared;

namespace {

constexpr size_t kBytes = size_t{1} << 20;

// Pages that may not be accessed, between pages that may.
class Guarded {
 public:
  explicit Guarded(int access) {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    start_ = static_cast<unsigned char*>(mmap(nullptr, kBytes + 2 * page_, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(start_, MAP_FAILED);
    std::memset(start_, 7, kBytes + 2 * page_);
    EXPECT_EQ(mprotect(start_ + page_, kBytes, access), 0);
  }
  ~Guarded() { EXPECT_EQ(munmap(start_, kBytes + 2 * page_), 0); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // Bytes of which all, or only the last, may not be accessed.
  unsigned char* inside() const { return start_ + page_; }
  unsigned char* ending_inside(size_t bytes) const { return start_ + page_ + 1 - bytes; }
  unsigned char* start() const { return start_; }
  void expect_unchanged() const {
    EXPECT_EQ(mprotect(start_ + page_, kBytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_TRUE(mobius_test::all_are(start_ + page_, kBytes, 7));
  }

 private:
  size_t page_ = 0;
  unsigned char* start_ = nullptr;
};

// Starts an operation in each way, and expects the error in the end.
void expect_refused(mob_rank_t target, const mob_transfer_t& transfer, const std::string& name) {
  EXPECT_EQ(mob_transfer(&transfer), MOB_ERR_ARGUMENT) << name << ": " << mob_last_error();
  EXPECT_NE(std::string(mob_last_error()).find("the caller's memory"), std::string::npos)
      << name << ": " << mob_last_error();
  mob_handle_t handle = MOB_HANDLE_DONE;
  mob_status_t status = mob_transfer_nb(&transfer, &handle);
  if (status == MOB_OK) status = mob_wait(&handle);
  EXPECT_EQ(status, MOB_ERR_ARGUMENT) << name << " with a handle";
  status = mob_transfer_nbi(&transfer);
  const mob_status_t flushed = mob_flush(target);
  EXPECT_EQ(status != MOB_OK ? status : flushed, MOB_ERR_ARGUMENT) << name << " without a handle";
  EXPECT_EQ(mob_flush(target), MOB_OK) << name << ": reported once";
}

// Every kind and shape of transfer whose local side is `local`, or that fetches to it.
void expect_all_refused(mob_rank_t target, unsigned char* remote, unsigned char* local,
                        size_t bytes, bool to_write) {
  const std::string name =
      std::to_string(bytes) + (to_write ? " bytes to write" : " bytes to read");
  std::vector<unsigned char> operand(bytes, 1);
  mob_transfer_t transfer{};
  transfer.rank = target;
  transfer.remote = remote;
  transfer.local = local;
  transfer.bytes = bytes;
  transfer.kind = to_write ? MOB_GET : MOB_PUT;
  expect_refused(target, transfer, name);

  const size_t counts[] = {2};
  const auto half = static_cast<ptrdiff_t>(bytes / 2);
  const ptrdiff_t strides[] = {half + 8};
  mob_transfer_t rows = transfer;
  rows.shape = MOB_STRIDED;
  rows.dimensions = 1;
  rows.counts = counts;
  rows.remote_strides = rows.local_strides = strides;
  rows.bytes = bytes / 2;
  if (rows.bytes > 0) expect_refused(target, rows, name + ", strided");

  const mob_span_t there[] = {{remote, bytes / 2}, {remote + bytes / 2 + 16, bytes - bytes / 2}};
  const mob_span_t here{local, bytes};
  mob_transfer_t spans = transfer;
  spans.shape = MOB_SPANS;
  spans.remote_spans = there;
  spans.remote_span_count = 2;
  spans.local_spans = &here;
  spans.local_span_count = 1;
  expect_refused(target, spans, name + ", spans");

  if (bytes % 8 != 0) return;
  mob_transfer_t combined = transfer;
  combined.kind = to_write ? MOB_FETCH_ACCUMULATE : MOB_ACCUMULATE;
  combined.type = MOB_UINT64;
  combined.op = MOB_SUM;
  if (to_write) {
    combined.local = operand.data();
    combined.fetched = local;
  }
  // A fetch may have changed the target before the answer finds no place.
  expect_refused(target, combined, name + ", combined");
}

void expect_at(mob_rank_t target, unsigned char* remote) {
  for (const bool to_write : {true, false}) {
    const Guarded memory(to_write ? PROT_READ : PROT_NONE);
    for (const size_t bytes : {size_t{1}, size_t{8}, size_t{64}, size_t{1000}, size_t{4096},
                               size_t{70'000}, size_t{500'000}, kBytes - 4096}) {
      expect_all_refused(target, remote, memory.inside(), bytes, to_write);
      if (bytes > 1 && bytes <= 4096) {
        expect_all_refused(target, remote, memory.ending_inside(bytes), bytes, to_write);
      }
    }
    if (to_write) memory.expect_unchanged();
  }
}

}  // namespace

TEST(LocalAccess, MemoryOfTheCallerThatItMayNotAccessIsAnErrorBetweenHosts) {
  const Shared memory(2 * kBytes);
  const mob_rank_t target = right_of(mob_rank());
  if (!same_host(target)) {
    expect_at(target, memory.at(target));
    uint64_t there = 0;
    const Guarded guarded(PROT_READ);
    auto* word = reinterpret_cast<uint64_t*>(guarded.inside());
    EXPECT_EQ(mob_get(target, memory.at(target), word, 8), MOB_ERR_ARGUMENT);
    EXPECT_EQ(mob_get8(target, memory.at(target), word), MOB_ERR_ARGUMENT);
    const Guarded hidden(PROT_NONE);
    EXPECT_EQ(mob_put(target, memory.at(target), hidden.inside(), 8), MOB_ERR_ARGUMENT);
    EXPECT_EQ(mob_put(target, memory.at(target), hidden.inside(), kBytes), MOB_ERR_ARGUMENT);
    // The link works as before, in both directions.
    EXPECT_EQ(mob_get8(target, memory.at(target), &there), MOB_OK) << mob_last_error();
    std::vector<unsigned char> bytes(kBytes, 3);
    EXPECT_EQ(mob_put(target, memory.at(target), bytes.data(), kBytes), MOB_OK) << mob_last_error();
    std::memset(bytes.data(), 0, kBytes);
    EXPECT_EQ(mob_get(target, memory.at(target), bytes.data(), kBytes), MOB_OK) << mob_last_error();
    EXPECT_TRUE(mobius_test::all_are(bytes.data(), kBytes, 3));
  }
  barrier();
}

// Operations that are recorded behind others, and only read when they are sent.
TEST(LocalAccess, RecordedPutsFromMemoryThatIsNotReadableFailAlone) {
  constexpr size_t kRow = 200;
  constexpr int kRows = 40;
  const Shared memory(kRows * kRow);
  const mob_rank_t target = right_of(mob_rank());
  if (!same_host(target)) {
    const Guarded guarded(PROT_NONE);
    std::vector<unsigned char> good(kRow, 9);
    // Neighbours at both sides, which become one operation, run into the memory.
    const unsigned char* const from = guarded.inside() - (kRows / 2) * kRow;
    // One that is not recorded fails at once, the others by the flush.
    int errors = 0;
    const auto note = [&errors](mob_status_t status) {
      EXPECT_TRUE(status == MOB_OK || status == MOB_ERR_ARGUMENT) << mob_last_error();
      if (status != MOB_OK) ++errors;
    };
    for (int row = 0; row < kRows; ++row) {
      const mob_status_t status =
          mob_put_nbi(target, memory.at(target, row * kRow), from + row * kRow, kRow);
      if (row < kRows / 2) {
        EXPECT_EQ(status, MOB_OK) << mob_last_error();
      }
      note(status);
    }
    note(mob_flush(target));
    EXPECT_GT(errors, 0);
    errors = 0;
    // Others are carried out.
    for (int row = 0; row < kRows; row += 4) {
      EXPECT_EQ(mob_put_nbi(target, memory.at(target, row * kRow), good.data(), kRow), MOB_OK);
      const unsigned char* bad = guarded.inside() + row * (kRow + 8);
      note(mob_put_nbi(target, memory.at(target, (row + 2) * kRow), bad, kRow));
    }
    note(mob_flush(target));
    EXPECT_GT(errors, 0);
    EXPECT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
  }
  barrier();
  const bool is_written = !same_host(mobius_test::left_of(mob_rank()));
  for (int row = 0; row < kRows && is_written; row += 4) {
    EXPECT_TRUE(mobius_test::all_are(memory.local() + row * kRow, kRow, 9)) << row;
  }
  barrier();
}

// Gaps between rows, or between spans, may be memory that the caller may not access.
TEST(LocalAccess, GapsMayBeInaccessible) {
  const Shared memory(4096);
  const mob_rank_t target = right_of(mob_rank());
  const Guarded guarded(PROT_NONE);
  const size_t counts[] = {2};
  const ptrdiff_t remote_strides[] = {64};
  const auto page = static_cast<ptrdiff_t>(sysconf(_SC_PAGESIZE));
  const ptrdiff_t local_strides[] = {static_cast<ptrdiff_t>(kBytes) + page};
  mob_transfer_t transfer{};
  transfer.kind = MOB_GET;
  transfer.rank = target;
  transfer.remote = memory.at(target);
  transfer.local = guarded.start();
  transfer.bytes = 64;
  transfer.shape = MOB_STRIDED;
  transfer.dimensions = 1;
  transfer.counts = counts;
  transfer.remote_strides = remote_strides;
  transfer.local_strides = local_strides;
  EXPECT_EQ(mob_transfer(&transfer), MOB_OK) << mob_last_error();
  transfer.kind = MOB_PUT;
  EXPECT_EQ(mob_transfer(&transfer), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_flush(target), MOB_OK) << mob_last_error();
  EXPECT_TRUE(mobius_test::all_are(guarded.start(), 64, 0));
  barrier();
}

TEST(LocalAccess, MemoryOfTheCallerThatItMayNotAccessIsAnErrorForExposedMemoryToo) {
  std::vector<unsigned char> mine(2 * kBytes);
  mob_exposed_t exposed = nullptr;
  ASSERT_EQ(mob_expose(mine.data(), mine.size(), 0, &exposed), MOB_OK) << mob_last_error();
  const mob_rank_t target = right_of(mob_rank());
  auto* const there = static_cast<unsigned char*>(mobius_test::exchange_address(mine.data()));
  if (!same_host(target)) expect_at(target, there);
  barrier();
  EXPECT_EQ(mob_withdraw(exposed), MOB_OK) << mob_last_error();
}
