// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "transport/shm/copy.h"
#include "transport/shm/move.h"

namespace mobius::transport {
namespace {

// A strided transfer with its lists.
struct Strided {
  mob_transfer_t transfer = {};
  std::vector<size_t> counts;
  std::vector<ptrdiff_t> remote_strides;
  std::vector<ptrdiff_t> local_strides;

  Strided(mob_kind_t kind, void* remote, void* local, size_t bytes, std::vector<size_t> times,
          std::vector<ptrdiff_t> remote_steps, std::vector<ptrdiff_t> local_steps)
      : counts(std::move(times)),
        remote_strides(std::move(remote_steps)),
        local_strides(std::move(local_steps)) {
    transfer.kind = kind;
    transfer.shape = MOB_STRIDED;
    transfer.remote = remote;
    transfer.local = local;
    transfer.bytes = bytes;
    transfer.dimensions = static_cast<int>(counts.size());
    transfer.counts = counts.data();
    transfer.remote_strides = remote_strides.data();
    transfer.local_strides = local_strides.data();
  }
  Strided(const Strided&) = delete;
  Strided& operator=(const Strided&) = delete;
};

mob_status_t status_of(const mob_transfer_t& transfer) {
  Shape shape;
  return normalise("test", transfer, &shape);
}

void expect_refused(const mob_transfer_t& transfer, mob_status_t status, const char* text) {
  EXPECT_EQ(status_of(transfer), status);
  EXPECT_NE(std::string(mob_last_error()).find(text), std::string::npos) << mob_last_error();
}

alignas(16) char remote_bytes[4096];
alignas(16) char local_bytes[4096];

TEST(Shape, DimensionsOfOneAreDroppedAndNeighboursMerged) {
  const Strided rows(MOB_PUT, remote_bytes, local_bytes, 8, {4, 1, 5, 3}, {8, 999, 32, 1000},
                     {8, -5, 32, 200});
  Shape shape;
  ASSERT_EQ(normalise("test", rows.transfer, &shape), MOB_OK);
  EXPECT_EQ(shape.kind, MOB_STRIDED);
  EXPECT_EQ(shape.run_bytes, 160u);
  ASSERT_EQ(shape.dimensions, 1);
  EXPECT_EQ(shape.counts[0], 3u);
  EXPECT_EQ(shape.remote_strides[0], 1000);
  EXPECT_EQ(shape.local_strides[0], 200);
  EXPECT_EQ(shape.total_bytes, 480u);
  EXPECT_EQ(shape.lowest, reinterpret_cast<uintptr_t>(remote_bytes));
  EXPECT_EQ(shape.highest, reinterpret_cast<uintptr_t>(remote_bytes) + 2160);
}

TEST(Shape, OuterDimensionsMergeToo) {
  const Strided rows(MOB_PUT, remote_bytes, local_bytes, 8, {4, 5}, {16, 64}, {24, 96});
  Shape shape;
  ASSERT_EQ(normalise("test", rows.transfer, &shape), MOB_OK);
  ASSERT_EQ(shape.dimensions, 1);
  EXPECT_EQ(shape.counts[0], 20u);
  EXPECT_EQ(shape.run_bytes, 8u);
}

TEST(Shape, ABoxWithoutGapsIsContiguous) {
  const Strided box(MOB_GET, remote_bytes, local_bytes, 8, {4, 5}, {8, 32}, {8, 32});
  Shape shape;
  ASSERT_EQ(normalise("test", box.transfer, &shape), MOB_OK);
  EXPECT_EQ(shape.kind, MOB_CONTIGUOUS);
  EXPECT_EQ(shape.run_bytes, 160u);
}

TEST(Shape, NothingToDoNeedsNoAddresses) {
  Shape shape;
  for (const size_t zero : {0, 1}) {
    const Strided box(MOB_PUT, nullptr, nullptr, zero == 0 ? 0 : 8, {zero == 0 ? 3u : 0u, 5},
                      {0, 0}, {0, 0});
    ASSERT_EQ(normalise("test", box.transfer, &shape), MOB_OK);
    EXPECT_EQ(shape.total_bytes, 0u);
    move(shape, 0, true);
  }
}

TEST(Shape, NegativeStridesReachBelowTheFirstByte) {
  const Strided box(MOB_PUT, remote_bytes + 1000, local_bytes, 8, {4, 3}, {-16, 100}, {8, 32});
  Shape shape;
  ASSERT_EQ(normalise("test", box.transfer, &shape), MOB_OK);
  EXPECT_EQ(shape.lowest, reinterpret_cast<uintptr_t>(remote_bytes) + 1000 - 48);
  EXPECT_EQ(shape.highest, reinterpret_cast<uintptr_t>(remote_bytes) + 1000 + 200 + 8);
}

TEST(Shape, OnlyTheWrittenSideMayNotOverlap) {
  const Strided put(MOB_PUT, remote_bytes, local_bytes, 8, {4}, {4}, {8});
  expect_refused(put.transfer, MOB_ERR_ARGUMENT, "remote strides overlap");
  const Strided get(MOB_GET, remote_bytes, local_bytes, 8, {4}, {8}, {0});
  expect_refused(get.transfer, MOB_ERR_ARGUMENT, "local strides overlap");
  const Strided spread(MOB_PUT, remote_bytes, local_bytes, 8, {4}, {8}, {0});
  EXPECT_EQ(status_of(spread.transfer), MOB_OK);
  const Strided repeated(MOB_GET, remote_bytes, local_bytes, 8, {4}, {4}, {8});
  EXPECT_EQ(status_of(repeated.transfer), MOB_OK);
}

TEST(Shape, BadDescriptionsOfBoxes) {
  const Strided good(MOB_PUT, remote_bytes, local_bytes, 8, {4}, {16}, {8});
  ASSERT_EQ(status_of(good.transfer), MOB_OK);
  mob_transfer_t bad = good.transfer;
  bad.kind = static_cast<mob_kind_t>(17);
  expect_refused(bad, MOB_ERR_ARGUMENT, "kind");
  bad = good.transfer;
  bad.shape = static_cast<mob_shape_t>(-1);
  expect_refused(bad, MOB_ERR_ARGUMENT, "shape");
  bad = good.transfer;
  bad.dimensions = MOB_MAX_DIMENSIONS;
  expect_refused(bad, MOB_ERR_ARGUMENT, "dimensions");
  bad.dimensions = -1;
  expect_refused(bad, MOB_ERR_ARGUMENT, "dimensions");
  bad = good.transfer;
  bad.counts = nullptr;
  expect_refused(bad, MOB_ERR_ARGUMENT, "counts");
  bad = good.transfer;
  bad.local_strides = nullptr;
  expect_refused(bad, MOB_ERR_ARGUMENT, "local strides");
  bad = good.transfer;
  bad.remote = nullptr;
  expect_refused(bad, MOB_ERR_ARGUMENT, "remote address is null");
  bad = good.transfer;
  bad.local = nullptr;
  expect_refused(bad, MOB_ERR_ARGUMENT, "local buffer is null");
}

TEST(Shape, SizesThatOverflow) {
  const size_t half = size_t{1} << 63;
  const ptrdiff_t far = ptrdiff_t{1} << 62;
  for (const mob_kind_t kind : {MOB_PUT, MOB_GET}) {
    const Strided many(kind, remote_bytes, local_bytes, 8, {half, 4}, {8, 8}, {8, 8});
    expect_refused(many.transfer, MOB_ERR_RANGE, "overflows");
    const Strided wide(kind, remote_bytes, local_bytes, 8, {4, 4}, {far, far}, {8, 32});
    expect_refused(wide.transfer, MOB_ERR_RANGE, "overflows");
    const Strided below(kind, remote_bytes, local_bytes, 8, {4}, {8}, {-far});
    expect_refused(below.transfer, MOB_ERR_RANGE, "overflows");
    const Strided least(kind, remote_bytes, local_bytes, 8, {2}, {PTRDIFF_MIN}, {8});
    expect_refused(least.transfer, MOB_ERR_RANGE, "overflows");
  }
  mob_transfer_t contiguous = {};
  contiguous.remote = remote_bytes;
  contiguous.local = local_bytes;
  contiguous.bytes = SIZE_MAX;
  expect_refused(contiguous, MOB_ERR_RANGE, "overflows");
  void* addresses[2] = {remote_bytes, local_bytes};
  mob_transfer_t pieces = {};
  pieces.shape = MOB_PIECES;
  pieces.bytes = half;
  pieces.count = 2;
  pieces.remotes = addresses;
  pieces.locals = addresses;
  expect_refused(pieces, MOB_ERR_RANGE, "overflows");
}

TEST(Shape, AccumulatesNeedWholeAlignedElements) {
  const Strided good(MOB_ACCUMULATE, remote_bytes, local_bytes + 1, 16, {4}, {24}, {17});
  mob_transfer_t transfer = good.transfer;
  transfer.type = MOB_DOUBLE;
  transfer.op = MOB_SUM;
  EXPECT_EQ(status_of(transfer), MOB_OK);

  mob_transfer_t bad = transfer;
  bad.bytes = 12;
  expect_refused(bad, MOB_ERR_ARGUMENT, "whole elements");
  bad = transfer;
  bad.remote = remote_bytes + 4;
  expect_refused(bad, MOB_ERR_ARGUMENT, "multiple of 8");
  const ptrdiff_t odd[1] = {20};
  bad = transfer;
  bad.remote_strides = odd;
  expect_refused(bad, MOB_ERR_ARGUMENT, "stride 20 is not a multiple of 8");
  bad.type = MOB_COMPLEX_FLOAT;  // aligned to 4
  EXPECT_EQ(status_of(bad), MOB_OK);
  bad = transfer;
  bad.op = MOB_BAND;
  expect_refused(bad, MOB_ERR_ARGUMENT, "not defined");
  bad.op = static_cast<mob_op_t>(99);
  expect_refused(bad, MOB_ERR_ARGUMENT, "not an operation");
  bad = transfer;
  bad.type = static_cast<mob_type_t>(-3);
  expect_refused(bad, MOB_ERR_ARGUMENT, "not a type");
  const double scale = 2;
  bad = transfer;
  bad.scale = &scale;
  EXPECT_EQ(status_of(bad), MOB_OK);
  bad.op = MOB_MAX;
  expect_refused(bad, MOB_ERR_ARGUMENT, "scale");
  bad = transfer;
  bad.kind = MOB_FETCH_ACCUMULATE;
  expect_refused(bad, MOB_ERR_ARGUMENT, "fetched");
  bad.op = MOB_NO_OP;
  bad.fetched = local_bytes;
  bad.local = nullptr;
  bad.local_strides = nullptr;
  EXPECT_EQ(status_of(bad), MOB_OK);
}

TEST(Shape, ListsAreChecked) {
  void* remotes[3] = {remote_bytes, remote_bytes + 100, remote_bytes + 200};
  void* locals[3] = {local_bytes, local_bytes + 8, local_bytes + 16};
  mob_transfer_t pieces = {};
  pieces.shape = MOB_PIECES;
  pieces.bytes = 8;
  pieces.count = 3;
  pieces.remotes = remotes;
  pieces.locals = locals;
  EXPECT_EQ(status_of(pieces), MOB_OK);
  mob_transfer_t sum = pieces;
  sum.kind = MOB_ACCUMULATE;
  sum.type = MOB_INT64;
  expect_refused(sum, MOB_ERR_ARGUMENT, "multiple of 8");  // + 100
  locals[1] = nullptr;
  expect_refused(pieces, MOB_ERR_ARGUMENT, "null");
  pieces.locals = nullptr;
  expect_refused(pieces, MOB_ERR_ARGUMENT, "list of local addresses");

  const mob_span_t remote_spans[2] = {{remote_bytes, 24}, {remote_bytes + 100, 8}};
  const mob_span_t local_spans[3] = {{local_bytes, 8}, {nullptr, 0}, {local_bytes + 100, 24}};
  mob_transfer_t spans = {};
  spans.shape = MOB_SPANS;
  spans.remote_spans = remote_spans;
  spans.remote_span_count = 2;
  spans.local_spans = local_spans;
  spans.local_span_count = 3;
  EXPECT_EQ(status_of(spans), MOB_OK);
  spans.local_span_count = 2;
  expect_refused(spans, MOB_ERR_ARGUMENT, "the remote spans have 32 bytes, the local spans 8");
  spans.local_span_count = 0;
  spans.local_spans = nullptr;
  spans.remote_span_count = 0;
  EXPECT_EQ(status_of(spans), MOB_OK);
  spans.remote_span_count = 1;
  spans.remote_spans = nullptr;
  expect_refused(spans, MOB_ERR_ARGUMENT, "list of remote spans");
}

// Two memories whose bytes tell their place.
class Memory {
 public:
  static constexpr size_t kBytes = 1 << 14;

  explicit Memory(unsigned seed) : bytes_(kBytes) {
    for (size_t i = 0; i < kBytes; ++i) {
      bytes_[i] = static_cast<char>(i * 37 + (i >> 8) * 11 + seed);
    }
  }
  char* middle() { return bytes_.data() + kBytes / 2; }
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

 private:
  std::vector<char> bytes_;
};

constexpr size_t kRoom = Memory::kBytes / 2 - 64;

// The largest distance of a box's bytes from its first byte.
size_t reach(size_t run, const std::vector<size_t>& counts, const std::vector<ptrdiff_t>& strides) {
  size_t bytes = run;
  for (size_t d = 0; d < counts.size(); ++d) {
    bytes += (counts[d] - 1) * static_cast<size_t>(std::abs(strides[d]));
  }
  return bytes;
}

// Random boxes, moved by the library and byte by byte; bytes outside the box must not change.
void check_random_boxes(unsigned seed) {
  std::mt19937 random(seed);
  int moved = 0;
  for (int round = 0; round < 6000; ++round) {
    const bool puts = round % 2 == 0;
    const size_t dimensions = random() % 5;
    const size_t run = 1 + random() % (random() % 4 == 0 ? 700 : 40);
    std::vector<size_t> counts;
    std::vector<ptrdiff_t> strides[2];
    for (size_t d = 0; d < dimensions; ++d) {
      counts.push_back(1 + random() % 4);
      for (std::vector<ptrdiff_t>& side : strides) {
        auto stride = static_cast<ptrdiff_t>(run);
        for (size_t inner = 0; inner < d; ++inner) {
          stride = std::max(stride, static_cast<ptrdiff_t>(counts[inner]) * std::abs(side[inner]));
        }
        if (random() % 2 == 0) stride += static_cast<ptrdiff_t>(random() % 20);
        if (random() % 4 == 0) stride = -stride;
        const bool written = (&side == &strides[0]) == puts;
        if (!written && random() % 5 == 0) stride = 0;
        side.push_back(stride);
      }
    }
    if (std::max(reach(run, counts, strides[0]), reach(run, counts, strides[1])) > kRoom) continue;
    ++moved;
    Memory remote(1);
    Memory local(2);
    Memory remote_model(1);
    Memory local_model(2);
    // The target has its memory 64 bytes away from its address in this process.
    constexpr ptrdiff_t kDelta = 64;
    const Strided box(puts ? MOB_PUT : MOB_GET, remote.middle() - kDelta, local.middle(), run,
                      counts, strides[0], strides[1]);
    Shape shape;
    ASSERT_EQ(normalise("test", box.transfer, &shape), MOB_OK) << mob_last_error();
    move(shape, kDelta, puts);

    std::vector<size_t> index(dimensions, 0);
    for (bool more = true; more;) {
      char* at[2] = {remote_model.middle(), local_model.middle()};
      for (size_t d = 0; d < dimensions; ++d) {
        for (int side = 0; side < 2; ++side) {
          at[side] += static_cast<ptrdiff_t>(index[d]) * strides[side][d];
        }
      }
      std::memcpy(at[puts ? 0 : 1], at[puts ? 1 : 0], run);
      size_t d = 0;
      while (d < dimensions && ++index[d] == counts[d]) index[d++] = 0;
      more = d < dimensions;
    }
    ASSERT_TRUE(remote == remote_model && local == local_model) << "round " << round;
  }
  EXPECT_GT(moved, 2000);
}

TEST(Move, RandomBoxesAgreeWithAModel) { check_random_boxes(11); }

TEST(Move, RandomBoxesThatStreamAgreeWithAModel) {
  const CopyTuning before = copy_tuning();
  set_copy_tuning({.rep_movsb_from_bytes = SIZE_MAX, .stream_from_bytes = 600});
  check_random_boxes(12);
  set_copy_tuning(before);
}

TEST(Move, PiecesAndSpans) {
  Memory remote(1);
  Memory local(2);
  Memory remote_model(1);
  std::vector<void*> remotes;
  std::vector<void*> locals;
  for (int i = 0; i < 50; ++i) {
    remotes.push_back(remote.middle() + (i * 37 % 50) * 20);
    locals.push_back(local.middle() - i * 13);
    std::memcpy(remote_model.middle() + (i * 37 % 50) * 20, local.middle() - i * 13, 19);
  }
  mob_transfer_t pieces = {};
  pieces.shape = MOB_PIECES;
  pieces.bytes = 19;
  pieces.count = 50;
  pieces.remotes = remotes.data();
  pieces.locals = locals.data();
  Shape shape;
  ASSERT_EQ(normalise("test", pieces, &shape), MOB_OK);
  move(shape, 0, true);
  EXPECT_TRUE(remote == remote_model);

  // Spans: both lists are one sequence of bytes, cut at different places.
  std::vector<mob_span_t> remote_spans;
  std::vector<mob_span_t> local_spans;
  std::string sequence;
  for (const size_t bytes : {0, 3, 70, 1, 0, 500, 26}) {
    char* address = local.middle() - 2000 + static_cast<ptrdiff_t>(sequence.size()) * 2;
    local_spans.push_back({address, bytes});
    sequence.append(address, bytes);
  }
  for (const size_t bytes : {100, 400, 0, 90, 10, 0}) {
    remote_spans.push_back({remote.middle() + 4000 + 700 * remote_spans.size(), bytes});
  }
  mob_transfer_t spans = {};
  spans.shape = MOB_SPANS;
  spans.remote_spans = remote_spans.data();
  spans.remote_span_count = remote_spans.size();
  spans.local_spans = local_spans.data();
  spans.local_span_count = local_spans.size();
  ASSERT_EQ(normalise("test", spans, &shape), MOB_OK) << mob_last_error();
  EXPECT_EQ(shape.total_bytes, 600u);
  move(shape, 0, true);
  std::string arrived;
  for (const mob_span_t& span : remote_spans) {
    arrived.append(static_cast<const char*>(span.address), span.bytes);
  }
  EXPECT_EQ(arrived, sequence);
}

// Cuts `total` bytes into spans of `even` bytes, or of random sizes if that is 0, at separate
// places in random order.
std::vector<mob_span_t> cut(std::mt19937& random, char* room, size_t total, size_t even) {
  std::vector<size_t> lengths;
  for (size_t left = total; left != 0; left -= lengths.back()) {
    lengths.push_back(std::min<size_t>(left, even != 0 ? even : 1 + random() % 40));
  }
  std::vector<char*> places;
  for (const size_t bytes : lengths) {
    places.push_back(room);
    room += std::max(bytes, even != 0 ? even : 40) + random() % 3;
  }
  std::shuffle(places.begin(), places.end(), random);
  std::vector<mob_span_t> spans;
  for (size_t i = 0; i < lengths.size(); ++i) spans.push_back({places[i], lengths[i]});
  return spans;
}

// Lists that are cut alike, and lists of one span, take paths of their own.
TEST(Move, RandomSpansAgreeWithAModel) {
  constexpr ptrdiff_t kDelta = 64;  // the target has its memory at another address
  std::mt19937 random(14);
  for (int round = 0; round < 6000; ++round) {
    const bool puts = random() % 2 == 0;
    const size_t run = random() % 3 == 0 ? size_t{1} << (random() % 7) : 1 + random() % 100;
    const size_t count = 1 + random() % 30;
    const size_t total = run * count;
    const bool even = random() % 3 != 0;
    Memory remote(1);
    Memory local(2);
    Memory remote_model(1);
    Memory local_model(2);
    char* const there = remote.middle() - kRoom;
    char* const here = local.middle() - kRoom;
    std::vector<mob_span_t> remotes = cut(random, there - kDelta, total, even ? run : 0);
    std::vector<mob_span_t> locals = cut(random, here, total, even ? run : 0);
    switch (random() % 4) {
      case 0:
        locals = {{here, total}};
        break;
      case 1:
        remotes = {{there - kDelta, total}};
        break;
      case 2:  // cut alike
        for (size_t i = 0; i < remotes.size() && i < locals.size(); ++i) {
          locals[i].address = here + (static_cast<char*>(remotes[i].address) - there + kDelta);
          locals[i].bytes = remotes[i].bytes;
        }
        for (size_t i = locals.size(); i < remotes.size(); ++i) {
          locals.push_back(
              {here + (static_cast<char*>(remotes[i].address) - there + kDelta), remotes[i].bytes});
        }
        locals.resize(remotes.size());
        break;
      default:
        break;
    }
    if (random() % 8 == 0) locals.insert(locals.begin() + 1, mob_span_t{nullptr, 0});
    mob_transfer_t spans = {};
    spans.kind = puts ? MOB_PUT : MOB_GET;
    spans.shape = MOB_SPANS;
    spans.remote_spans = remotes.data();
    spans.remote_span_count = remotes.size();
    spans.local_spans = locals.data();
    spans.local_span_count = locals.size();
    Shape shape;
    ASSERT_EQ(normalise("test", spans, &shape), MOB_OK) << mob_last_error();
    ASSERT_EQ(shape.total_bytes, total);
    for (const mob_span_t& span : remotes) {
      const auto start = reinterpret_cast<uintptr_t>(span.address);
      ASSERT_GE(start, shape.lowest);
      ASSERT_LE(start + span.bytes, shape.highest);
    }
    move(shape, kDelta, puts);

    std::vector<std::pair<char*, char*>> bytes[2];
    const std::vector<mob_span_t>* lists[2] = {&remotes, &locals};
    for (int side = 0; side < 2; ++side) {
      for (const mob_span_t& span : *lists[side]) {
        for (size_t i = 0; i < span.bytes; ++i) {
          char* at = static_cast<char*>(span.address) + i;
          bytes[side].emplace_back(side == 0
                                       ? remote_model.middle() + (at + kDelta - remote.middle())
                                       : local_model.middle() + (at - local.middle()),
                                   nullptr);
        }
      }
    }
    for (size_t i = 0; i < total; ++i) {
      *bytes[puts ? 0 : 1][i].first = *bytes[puts ? 1 : 0][i].first;
    }
    ASSERT_TRUE(remote == remote_model && local == local_model) << "round " << round;
  }
}

TEST(Shape, TheIntersectionOfSpansIsFound) {
  const mob_span_t far[3] = {{remote_bytes + 100, 8}, {remote_bytes, 8}, {remote_bytes + 50, 8}};
  const mob_span_t near[3] = {{local_bytes, 8}, {local_bytes + 8, 8}, {local_bytes + 16, 8}};
  const mob_span_t whole[1] = {{local_bytes, 24}};
  const mob_span_t uneven[3] = {{local_bytes, 4}, {local_bytes + 8, 12}, {local_bytes + 32, 8}};
  mob_transfer_t spans = {};
  spans.shape = MOB_SPANS;
  spans.remote_spans = far;
  spans.remote_span_count = 3;
  const auto with = [&](const mob_span_t* locals, size_t count) {
    spans.local_spans = locals;
    spans.local_span_count = count;
    Shape shape;
    EXPECT_EQ(normalise("test", spans, &shape), MOB_OK);
    EXPECT_EQ(shape.lowest, reinterpret_cast<uintptr_t>(remote_bytes));
    EXPECT_EQ(shape.highest, reinterpret_cast<uintptr_t>(remote_bytes + 108));
    return std::pair(shape.run_bytes, shape.is_paired);
  };
  EXPECT_EQ(with(near, 3), std::pair(size_t{8}, true));
  EXPECT_EQ(with(whole, 1), std::pair(size_t{8}, false));
  EXPECT_EQ(with(uneven, 3), std::pair(size_t{0}, false));
  // Lengths whose sum wraps, and an address beyond the address space.
  const mob_span_t wrapping[2] = {{remote_bytes, SIZE_MAX}, {remote_bytes, 25}};
  spans.remote_spans = wrapping;
  spans.remote_span_count = 2;
  expect_refused(spans, MOB_ERR_RANGE, "overflows");
}

// The place of each byte of a shape, on both sides, in order.
std::vector<std::pair<char*, char*>> bytes_of(const Shape& shape) {
  std::vector<std::pair<char*, char*>> all;
  EXPECT_EQ(for_each_run(shape,
                         [&](char* remote, char* local, size_t bytes) {
                           for (size_t i = 0; i < bytes; ++i)
                             all.emplace_back(remote + i, local + i);
                           return MOB_OK;
                         }),
            MOB_OK);
  return all;
}

TEST(Shape, PartsAreTheWholeInOrder) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    Shape whole;
    whole.remote = remote_bytes + 2048;
    whole.local = local_bytes + 2048;
    whole.total_bytes = whole.run_bytes = static_cast<size_t>(pick(1, 40));
    whole.dimensions = pick(0, 3);
    if (whole.dimensions > 0) whole.kind = MOB_STRIDED;
    for (int i = 0; i < whole.dimensions; ++i) {
      whole.counts[i] = static_cast<size_t>(pick(2, 6));
      whole.remote_strides[i] = pick(-100, 100);
      whole.local_strides[i] = pick(-100, 100);
      whole.total_bytes *= whole.counts[i];
    }
    const auto most = static_cast<size_t>(pick(1, 300));
    std::vector<std::pair<char*, char*>> found;
    for (Parts parts(whole, most); !parts.is_at_end();) {
      const Shape part = parts.next();
      ASSERT_LE(part.total_bytes, most) << round;
      const auto bytes = bytes_of(part);
      ASSERT_EQ(bytes.size(), part.total_bytes) << round;
      const auto [first, last] = std::ranges::minmax_element(bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(first->first), part.lowest) << round;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(last->first) + 1, part.highest) << round;
      found.insert(found.end(), bytes.begin(), bytes.end());
    }
    ASSERT_EQ(found, bytes_of(whole)) << round << ", parts of " << most;
  }
}

TEST(Shape, ABoxOfAllDimensionsIsWalkedInOrder) {
  constexpr int kDimensions = MOB_MAX_DIMENSIONS - 1;
  std::vector<ptrdiff_t> far;  // with gaps in every dimension
  std::vector<ptrdiff_t> near;
  for (ptrdiff_t i = 0, stride = 1; i < kDimensions; ++i, stride *= 3) {
    far.push_back(stride * 2);
    near.push_back(ptrdiff_t{1} << i);
  }
  const Strided box(MOB_PUT, remote_bytes, local_bytes, 1, std::vector<size_t>(kDimensions, 2), far,
                    near);
  Shape shape;
  ASSERT_EQ(normalise("test", box.transfer, &shape), MOB_OK);
  ASSERT_EQ(shape.dimensions, kDimensions);
  std::vector<std::pair<char*, char*>> expected;
  for (size_t run = 0; run < size_t{1} << kDimensions; ++run) {
    ptrdiff_t at = 0;
    for (size_t i = 0; i < kDimensions; ++i) at += (run >> i & 1) != 0 ? far[i] : 0;
    expected.emplace_back(remote_bytes + at, local_bytes + run);
  }
  EXPECT_EQ(bytes_of(shape), expected);
}

TEST(Shape, AVisitorCanStopTheWalk) {
  const Strided box(MOB_PUT, remote_bytes, local_bytes, 8, {4, 5}, {16, 100}, {8, 32});
  Shape shape;
  ASSERT_EQ(normalise("test", box.transfer, &shape), MOB_OK);
  int visits = 0;
  EXPECT_EQ(
      for_each_run(
          shape, [&visits](char*, char*, size_t) { return ++visits == 7 ? MOB_ERR_PEER : MOB_OK; }),
      MOB_ERR_PEER);
  EXPECT_EQ(visits, 7);
}

}  // namespace
}  // namespace mobius::transport
