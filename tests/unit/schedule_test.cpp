// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "schedule/link_meter.h"
#include "schedule/plan.h"
#include "schedule/text.h"
#include "schedule/wire.h"

namespace mobius::schedule {
namespace {

constexpr Policy kPolicies[] = {Policy::kAdaptive, Policy::kFifo, Policy::kInterleave,
                                Policy::kGetsFirst, Policy::kAggregate};

// A target's memory, which carries out operations as the target would; a sum of bytes stands for
// all accumulates.
struct Memory {
  std::vector<unsigned char> bytes;

  void apply(Kind kind, uint64_t remote, size_t count, const unsigned char* data, uint64_t value,
             std::vector<unsigned char>* answer) {
    ASSERT_LE(remote + count, bytes.size());
    unsigned char* at = bytes.data() + remote;
    if (is_answered_with_data(kind)) answer->insert(answer->end(), at, at + count);
    if (kind == Kind::kPut) std::memcpy(at, data, count);
    if (kind == Kind::kSignal) std::memcpy(at, &value, sizeof value);
    for (size_t i = 0; i < count && (kind == Kind::kAccumulate || kind == Kind::kFetch); ++i) {
      at[i] = static_cast<unsigned char>(at[i] * 3 + data[i]);  // does not commute
    }
  }
};

unsigned char* bytes_of(char* local) { return reinterpret_cast<unsigned char*>(local); }

// The messages of a plan in order, or with the free ones behind the others, as the scheduler sends
// them: puts first.
std::vector<Issue> issues_of(const Plan& plan, const std::vector<Operation>& queue,
                             bool is_free_last) {
  std::vector<Issue> issues = plan.issues;
  if (!is_free_last) return issues;
  const auto turn = [&](const Issue& issue) {
    if (!issue.is_free) return 0;
    return changes(queue[plan.order[plan.pieces[issue.first].first]].kind) ? 1 : 2;
  };
  std::ranges::stable_sort(issues, {}, turn);
  return issues;
}

// Carries out a plan by its messages, each answered before the next is sent. Returns the answer for
// each operation.
std::vector<std::vector<unsigned char>> carry_out(const std::vector<Operation>& queue,
                                                  const Plan& plan, const Costs& costs,
                                                  Memory* memory, bool is_free_last = false) {
  std::vector<std::vector<unsigned char>> answers(queue.size());
  std::vector<unsigned char> wire(most_wire_bytes(costs));
  for (const Issue& issue : issues_of(plan, queue, is_free_last)) {
    std::vector<unsigned char> answer;
    if (issue.packed) {
      const Written written = write_pack(queue, plan, issue, wire.data());
      EXPECT_LE(written.bytes, wire.size());
      PackReader reader({wire.data(), written.bytes});
      Arrived piece;
      bool only_puts = true;
      while (reader.next(&piece)) {
        const size_t count = piece.kind == Kind::kTell ? 0 : piece.row_bytes;
        only_puts = only_puts && piece.kind == Kind::kPut;
        for (uint32_t row = 0; row < piece.rows; ++row) {
          if (only_puts) {
            EXPECT_GE(piece.row(row), written.lowest);
            EXPECT_LE(piece.row(row) + count, written.highest);
          }
          memory->apply(piece.kind, piece.row(row), count, piece.data + row * piece.row_bytes,
                        piece.value, &answer);
        }
      }
      EXPECT_TRUE(reader.is_whole());
      EXPECT_EQ(written.only_puts, only_puts);
    } else {
      EXPECT_EQ(issue.count, 1u);
      const Piece& piece = plan.pieces[issue.first];
      const Operation& first = queue[plan.order[piece.first]];
      EXPECT_EQ(piece.rows, 1u);
      EXPECT_TRUE(piece.is_local_contiguous);
      memory->apply(first.kind, first.remote, piece.row_bytes, bytes_of(first.local), 0, &answer);
    }
    const unsigned char* from = answer.data();
    for (uint32_t i = issue.first; i < issue.first + issue.count; ++i) {
      const Piece& piece = plan.pieces[i];
      for (uint32_t place = piece.first; place < piece.first + piece.count; ++place) {
        const uint32_t index = plan.order[place];
        if (!is_answered_with_data(queue[index].kind)) continue;
        answers[index].assign(from, from + queue[index].bytes);
        const bool is_get = queue[index].kind == Kind::kGet;
        std::ranges::copy(answers[index],
                          bytes_of(is_get ? queue[index].local : queue[index].fetched()));
        from += queue[index].bytes;
      }
    }
    EXPECT_EQ(from, answer.data() + answer.size());
  }
  return answers;
}

class Queues {
 public:
  explicit Queues(uint64_t seed) : random_(seed), local_(kOwnBytes + kSharedBytes) {
    for (char& byte : local_) byte = static_cast<char>(random_());
  }

  static constexpr size_t kRemoteBytes = 4096;

  std::vector<Operation> make() {
    std::vector<Operation> queue;
    is_written_.assign(kSharedBytes, 0);
    next_ = 0;
    shares_ = below(2) == 0;
    const size_t count = below(60);
    while (queue.size() < count) {
      const uint64_t what = below(8);
      if (what < 2) {
        add_run(&queue);
      } else if (what == 2) {
        add_scattered(&queue);
      } else {
        add(&queue, static_cast<Kind>(below(kKinds)), below(kRemoteBytes / 2), 1 + below(40));
      }
    }
    const uint64_t most_fences = below(2);
    for (Operation& operation : queue) operation.fenced = below(20) < most_fences;
    return queue;
  }

  // The origin's memory.
  std::vector<char>& local() { return local_; }

  uint64_t below(uint64_t limit) { return random_() % limit; }

 private:
  void add(std::vector<Operation>* queue, Kind kind, uint64_t remote, size_t bytes) {
    if (kind == Kind::kSignal) bytes = sizeof(uint64_t);
    Operation operation;
    operation.kind = kind;
    operation.bytes = bytes;
    operation.remote = remote;
    operation.kept = below(2) == 0 && changes(kind);
    operation.local = operation.kept ? own_place(bytes) : place(bytes, kind == Kind::kGet);
    if (kind == Kind::kFetch) operation.set_fetched(place(bytes, true));
    if (kind == Kind::kSignal) operation.set_value(random_());
    if (kind == Kind::kPut || kind == Kind::kGet) {
      operation.calls = static_cast<uint16_t>(1 + below(3));
    }
    queue->push_back(operation);
  }

  char* own_place(size_t bytes) {
    next_ += bytes;
    return local_.data() + next_ - bytes;
  }

  // Memory of the origin, now and then shared with another operation. It is never written before an
  // earlier operation has read it, because the time of the answer is unknown.
  char* place(size_t bytes, bool writes) {
    const size_t begin = below(kSharedBytes - bytes);
    const auto written = std::span(is_written_).subspan(begin, bytes);
    const bool is_awaited = !writes && std::ranges::find(written, 1) != written.end();
    if (!shares_ || is_awaited || below(4) != 0) return own_place(bytes);
    if (writes) std::ranges::fill(written, 1);
    return local_.data() + kOwnBytes + begin;
  }

  // Neighbours, or rows at one distance.
  void add_run(std::vector<Operation>* queue) {
    const Kind kind = below(2) == 0 ? Kind::kPut : Kind::kGet;
    const size_t bytes = 1 + below(16);
    const size_t stride = bytes + below(3) * 5;
    uint64_t remote = below(kRemoteBytes / 2);
    for (uint64_t i = 1 + below(8); i > 0; --i, remote += stride) add(queue, kind, remote, bytes);
  }

  // Operations of equal size at any place.
  void add_scattered(std::vector<Operation>* queue) {
    const Kind kind = below(2) == 0 ? Kind::kPut : Kind::kGet;
    const size_t bytes = 1 + below(8);
    const uint64_t reach = below(2) == 0 ? 200 : kRemoteBytes - bytes;
    for (uint64_t i = below(12); i > 0; --i) add(queue, kind, below(reach), bytes);
  }

  static constexpr size_t kOwnBytes = size_t{1} << 14;
  static constexpr size_t kSharedBytes = 512;

  std::mt19937_64 random_;
  std::vector<char> local_;
  bool shares_ = false;           // the next queue shares memory
  std::vector<char> is_written_;  // per byte of the shared memory
  size_t next_ = 0;               // next byte of the memory that is not shared
};

TEST(Plan, RandomQueuesLeaveWhatTheyWouldInTheirOwnOrder) {
  Queues queues(1);
  Plan plan;
  for (int round = 0; round < 4000; ++round) {
    const std::vector<Operation> queue = queues.make();
    Memory start;
    for (size_t i = 0; i < Queues::kRemoteBytes; ++i) {
      start.bytes.push_back(static_cast<unsigned char>(i * 7));
    }
    Costs costs;
    costs.message_bytes = 64 + queues.below(1000);
    costs.message_ns = static_cast<double>(queues.below(20));
    Plan fifo;
    make_plan(queue, costs, Policy::kFifo, &fifo);
    Memory expected = start;
    const std::vector<char> local = queues.local();
    const auto answers = carry_out(queue, fifo, costs, &expected);
    const std::vector<char> expected_local = queues.local();
    for (const Policy policy : kPolicies) {
      SCOPED_TRACE(std::to_string(round) + " " +
                   std::string(kPolicyNames[static_cast<size_t>(policy)]));
      make_plan(queue, costs, policy, &plan);
      std::vector<uint32_t> order = plan.order;
      std::ranges::sort(order);
      for (uint32_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
      ASSERT_EQ(order.size(), queue.size());
      size_t calls = 0;
      size_t issued = 0;
      for (const Operation& operation : queue) calls += operation.calls;
      for (const Issue& issue : plan.issues) issued += issue.operations;
      ASSERT_EQ(issued, calls);
      for (const bool is_free_last : {false, true}) {
        Memory memory = start;
        std::ranges::copy(local, queues.local().begin());
        ASSERT_EQ(carry_out(queue, plan, costs, &memory, is_free_last), answers);
        ASSERT_EQ(memory.bytes, expected.bytes);
        ASSERT_EQ(queues.local(), expected_local);
      }
    }
    std::ranges::copy(local, queues.local().begin());
  }
}

TEST(Plan, NothingPassesAFenceAndWhatChangesKeepsItsOrder) {
  Queues queues(2);
  Plan plan;
  for (int round = 0; round < 500; ++round) {
    const std::vector<Operation> queue = queues.make();
    for (const Policy policy : kPolicies) {
      make_plan(queue, {}, policy, &plan);
      std::vector<int> fences(queue.size());
      for (size_t i = 1; i < queue.size(); ++i) {
        fences[i] = fences[i - 1] + (queue[i].fenced ? 1 : 0);
      }
      uint32_t changed = 0;
      for (size_t place = 0; place < plan.order.size(); ++place) {
        const uint32_t index = plan.order[place];
        if (place > 0) {
          ASSERT_LE(fences[plan.order[place - 1]], fences[index]);
        }
        if (!changes(queue[index].kind)) continue;
        ASSERT_LE(changed, index);
        changed = index;
      }
    }
  }
}

Operation operation(Kind kind, uint64_t remote, char* local, size_t bytes) {
  Operation made;
  made.kind = kind;
  made.remote = remote;
  made.local = local;
  made.bytes = bytes;
  return made;
}

TEST(Plan, WithoutAnswersToWaitForLongerPutsArePacked) {
  const Costs costs;
  const Costs spared = without_answers(costs);
  std::vector<char> local(64 << 10);
  for (const size_t bytes : {size_t{1'000}, size_t{8'000}, size_t{20'000}, size_t{40'000}}) {
    const std::vector<Operation> queue{operation(Kind::kPut, 4096, local.data(), bytes)};
    Plan plan;
    for (const Costs& each : {costs, spared}) {
      make_plan(queue, each, Policy::kAdaptive, &plan);
      ASSERT_EQ(plan.issues.size(), 1u);
      EXPECT_EQ(plan.issues[0].packed, bytes <= most_packed_bytes(each)) << bytes;
    }
  }
  EXPECT_LT(most_packed_bytes(costs), 8'000u);
  EXPECT_GE(most_packed_bytes(spared), 20'000u);
  EXPECT_LE(most_packed_bytes(spared), costs.message_bytes / 2);
}

TEST(Plan, ScatteredPutsAreOnePieceOfElevenBytesEach) {
  std::vector<char> local(8000);
  std::vector<Operation> queue;
  std::mt19937_64 random(4);
  for (size_t i = 0; i < 1000; ++i) {
    queue.push_back(operation(Kind::kPut, random() % 8000 * 64, local.data() + 8 * i, 8));
  }
  Plan plan;
  make_plan(queue, {}, Policy::kAdaptive, &plan);
  ASSERT_EQ(plan.issues.size(), 1u);
  EXPECT_EQ(plan.savings.packed, 1000u);
  EXPECT_EQ(plan.savings.merged, 0u);
  ASSERT_EQ(plan.pieces.size(), 1u);
  EXPECT_TRUE(plan.pieces[0].is_scattered());
  std::vector<unsigned char> wire(most_wire_bytes({}));
  EXPECT_LE(write_pack(queue, plan, plan.issues[0], wire.data()).bytes, 11'020u);
}

// Two or three operations in a row are at one distance.
TEST(Plan, AFewRowsAtOneDistanceStayAmongScatteredOnes) {
  std::vector<char> local(8000);
  std::vector<Operation> queue;
  for (size_t i = 0; i < 600; ++i) {
    queue.push_back(
        operation(Kind::kPut, i * 5167 % 8192 * 64, local.data() + 8 * queue.size(), 8));
  }
  Plan plan;
  make_plan(queue, {}, Policy::kAdaptive, &plan);
  ASSERT_EQ(plan.pieces.size(), 1u);
  EXPECT_TRUE(plan.pieces[0].is_scattered());
  // A long run has a piece of its own with one address; the operations behind it have another.
  for (size_t i = 0; i < 100; ++i) {
    queue.push_back(operation(Kind::kPut, (1 << 20) + i * 24, local.data() + 8 * queue.size(), 8));
  }
  for (size_t i = 0; i < 100; ++i) {
    queue.push_back(
        operation(Kind::kPut, i * 5167 % 8192 * 64, local.data() + 8 * queue.size(), 8));
  }
  make_plan(queue, {}, Policy::kAdaptive, &plan);
  ASSERT_EQ(plan.issues.size(), 1u);
  ASSERT_EQ(plan.pieces.size(), 3u);
  EXPECT_EQ(plan.pieces[0].rows, 600u);
  EXPECT_FALSE(plan.pieces[1].is_scattered());
  EXPECT_EQ(plan.pieces[1].rows, 100u);
  EXPECT_EQ(plan.pieces[1].stride, 24);
  EXPECT_EQ(plan.pieces[2].rows, 100u);
}

// The same place again and again is not a distance; the last operation wins.
TEST(Plan, RowsAtOnePlaceKeepTheirOrder) {
  uint64_t values[12];
  std::vector<Operation> queue;
  for (uint64_t& value : values) {
    value = 1 + queue.size();
    queue.push_back(operation(Kind::kPut, 16, reinterpret_cast<char*>(&value), 8));
  }
  Plan plan;
  make_plan(queue, {}, Policy::kAdaptive, &plan);
  ASSERT_EQ(plan.issues.size(), 1u);
  EXPECT_EQ(plan.pieces.size(), 1u);
  Memory memory{std::vector<unsigned char>(64)};
  carry_out(queue, plan, {}, &memory);
  EXPECT_EQ(memory.bytes[16], std::size(values));
}

TEST(Plan, OperationsMergedWhileRecordedCount) {
  std::vector<char> local(1 << 16);
  std::vector<Operation> queue = {operation(Kind::kPut, 0, local.data(), 300),
                                  operation(Kind::kPut, 300, local.data() + 300, 100),
                                  operation(Kind::kPut, 4096, local.data() + 4096, 20'000),
                                  operation(Kind::kPut, 1024, local.data() + 1024, 10)};
  queue[0].calls = 3;
  queue[2].calls = 50;
  Plan plan;
  make_plan(queue, {}, Policy::kAdaptive, &plan);
  ASSERT_EQ(plan.issues.size(), 3u);
  EXPECT_EQ(plan.issues[0].operations, 4u);
  EXPECT_EQ(plan.issues[1].operations, 50u);
  EXPECT_EQ(plan.issues[2].operations, 1u);
  EXPECT_EQ(plan.savings.merged, 3u + 49u);
  EXPECT_EQ(plan.savings.packed, 4u);
}

TEST(Plan, ScatteredRowsAreFoundWhereverTheyLie) {
  std::vector<char> local(64);
  for (const unsigned bits : {0u, 7u, 8u, 15u, 16u, 23u, 24u, 31u, 32u, 33u, 63u}) {
    // The farthest two are that many bits apart; the others are near one of them.
    const uint64_t base = uint64_t{1} << 40;
    const uint64_t far = base + (uint64_t{1} << bits) - 1;
    const uint64_t places[] = {far, base, base, far, base + (far - base) / 2, far};
    std::vector<Operation> queue;
    for (const uint64_t place : places) {
      queue.push_back(operation(Kind::kGet, place, local.data() + 8 * queue.size(), 8));
    }
    Plan plan;
    make_plan(queue, {}, Policy::kAggregate, &plan);
    ASSERT_EQ(plan.pieces.size(), 1u) << bits;
    std::vector<unsigned char> wire(most_wire_bytes({}));
    const Written written = write_pack(queue, plan, plan.issues[0], wire.data());
    EXPECT_EQ(written.lowest, base);
    EXPECT_EQ(written.highest, far + 8);
    EXPECT_FALSE(written.only_puts);
    PackReader reader({wire.data(), written.bytes});
    Arrived piece;
    ASSERT_TRUE(reader.next(&piece));
    EXPECT_TRUE(reader.is_whole());
    ASSERT_EQ(piece.rows, std::size(places));
    std::vector<uint64_t> rows;
    piece.for_rows([&](uint64_t row) { rows.push_back(row); });
    EXPECT_TRUE(std::ranges::equal(rows, places)) << bits;
    for (uint32_t row = 0; row < piece.rows; ++row) {
      EXPECT_EQ(piece.row(row), places[row]) << bits;
      EXPECT_EQ(piece.only(row).remote, places[row]);
      EXPECT_EQ(piece.only(row).bytes(), 8u);
    }
  }
}

TEST(Plan, PiecesOfOneBufferAreOneTransfer) {
  std::vector<char> local(1 << 20);
  for (const size_t pieces : {1, 16, 1024}) {
    std::vector<Operation> queue;
    const size_t bytes = local.size() / pieces;
    for (size_t i = 0; i < pieces; ++i) {
      queue.push_back(operation(Kind::kPut, i * bytes, local.data() + i * bytes, bytes));
    }
    Plan plan;
    make_plan(queue, {}, Policy::kAdaptive, &plan);
    ASSERT_EQ(plan.issues.size(), 1u);
    EXPECT_FALSE(plan.issues[0].packed);
    EXPECT_EQ(plan.pieces[0].bytes(), local.size());
    EXPECT_EQ(plan.savings.merged, pieces - 1);
  }
}

TEST(Plan, FreeIsTheLastOfItsKindWhereNothingConflicts) {
  std::vector<char> local(1 << 20);
  constexpr size_t kHalf = size_t{1} << 19;
  const auto long_put = operation(Kind::kPut, 0, local.data(), 1 << 17);
  const auto long_get = operation(Kind::kGet, kHalf, local.data() + kHalf, 1 << 17);
  const auto small_put = operation(Kind::kPut, 1 << 18, local.data() + (1 << 18), 8);
  const auto free_of = [](const std::vector<Operation>& queue, Policy policy = Policy::kAdaptive) {
    Plan plan;
    make_plan(queue, {}, policy, &plan);
    std::vector<bool> free;
    for (const Issue& issue : plan.issues) free.push_back(issue.is_free);
    return free;
  };
  EXPECT_EQ(free_of({long_put}), std::vector<bool>{true});
  EXPECT_EQ(free_of({long_put, long_get}), (std::vector<bool>{true, true}));
  EXPECT_EQ(free_of({small_put, long_put}), (std::vector<bool>{false, true}));
  EXPECT_EQ(free_of({long_put, small_put}), (std::vector<bool>{false, false}));
  Operation fenced = small_put;
  fenced.fenced = true;
  EXPECT_EQ(free_of({long_put, fenced}), (std::vector<bool>{false, false}));
  // Reads the bytes that were put.
  Operation reads = long_get;
  reads.remote = 100;
  for (const Policy policy : kPolicies) EXPECT_FALSE(free_of({long_put, reads}, policy)[0]);
}

TEST(Plan, RowsAreOnePiece) {
  std::vector<char> local(1 << 12);
  std::vector<Operation> queue;
  for (size_t i = 0; i < 64; ++i) {
    queue.push_back(operation(Kind::kGet, (63 - i) * 100, local.data() + 24 * i, 24));
  }
  Plan plan;
  make_plan(queue, {}, Policy::kAdaptive, &plan);
  ASSERT_EQ(plan.pieces.size(), 1u);
  EXPECT_EQ(plan.pieces[0].rows, 64u);
  EXPECT_EQ(plan.pieces[0].stride, -100);
}

TEST(Plan, GetsGoFirstUnlessTheyReadEarlierPuts) {
  std::vector<char> local(1 << 20);
  std::vector<Operation> queue{operation(Kind::kPut, 0, local.data(), 1 << 18),
                               operation(Kind::kGet, 1 << 19, local.data() + (1 << 18), 64)};
  Plan plan;
  for (const Policy policy : {Policy::kAdaptive, Policy::kGetsFirst, Policy::kInterleave}) {
    make_plan(queue, {}, policy, &plan);
    EXPECT_EQ(plan.order, (std::vector<uint32_t>{1, 0}));
    EXPECT_EQ(plan.savings.reordered, 1u);
  }
  queue[1].remote = 100;
  for (const Policy policy : kPolicies) {
    make_plan(queue, {}, policy, &plan);
    EXPECT_EQ(plan.order, (std::vector<uint32_t>{0, 1}));
  }
}

TEST(Plan, InterleaveAlternates) {
  std::vector<char> local(1 << 21);
  std::vector<Operation> queue;
  for (size_t i = 0; i < 16; ++i) {
    queue.push_back(operation(Kind::kPut, i << 16, local.data() + (i << 16), 1 << 15));
  }
  for (size_t i = 16; i < 32; ++i) {
    queue.push_back(operation(Kind::kGet, i << 16, local.data() + (i << 16), 1 << 15));
  }
  Plan plan;
  make_plan(queue, {}, Policy::kInterleave, &plan);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(plan.order[2 * i], 16 + i);
    EXPECT_EQ(plan.order[2 * i + 1], i);
  }
}

// Reads the bytes that write_queue() wrote.
std::vector<Operation> written_and_read(const std::vector<Operation>& queue) {
  QueueReader reader;
  std::istringstream lines(write_queue(queue, '\n'));
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(reader.add(line)) << line;
  return reader.queue;
}

TEST(Text, AQueueInWordsHasTheSamePlan) {
  Queues queues(6);
  Plan plan;
  Plan other;
  for (int round = 0; round < 300; ++round) {
    std::vector<Operation> queue = queues.make();
    for (Operation& operation : queue) {
      const bool is_put = operation.kind == Kind::kPut;
      operation.kept = is_put ? operation.kept : carries_data(operation.kind);
      if (operation.kind == Kind::kSignal) operation.local = nullptr;
      if (operation.kind == Kind::kGet && queues.below(9) == 0) operation.set_waiter(&plan);
      if (operation.kind == Kind::kGet && queues.below(4) == 0) operation.kept = true;
    }
    const std::vector<Operation> read = written_and_read(queue);
    ASSERT_EQ(read.size(), queue.size());
    for (const Policy policy : kPolicies) {
      make_plan(queue, {}, policy, &plan);
      make_plan(read, {}, policy, &other);
      ASSERT_EQ(plan.order, other.order);
      ASSERT_EQ(plan.pieces.size(), other.pieces.size());
      ASSERT_EQ(plan.issues.size(), other.issues.size());
      ASSERT_EQ(plan.savings.merged, other.savings.merged);
      ASSERT_EQ(plan.savings.packed, other.savings.packed);
    }
  }
}

TEST(Text, ARunIsOneLine) {
  std::vector<char> local(4096);
  std::vector<Operation> queue;
  for (size_t i = 0; i < 64; ++i) {
    queue.push_back(operation(Kind::kPut, 4096 + i * 64, local.data() + i * 64, 64));
  }
  const std::string text = write_queue(queue, ';');
  EXPECT_TRUE(text.starts_with("x 64 put 0x1000 64 0x")) << text;
  EXPECT_EQ(text.find(';'), std::string::npos) << text;
}

TEST(Text, NumbersThatAreNoneOrTooLargeAreRefused) {
  for (const char* line : {"put +5 8", "put 0 18446744073709551615K", "put 0 18446744073709551616",
                           "put 0x 8", "put 0x-1 8", "put 0 8KM", "put -1 8", "put 0 8G"}) {
    QueueReader reader;
    EXPECT_FALSE(reader.add(line)) << line;
    EXPECT_TRUE(reader.queue.empty()) << line;
  }
  QueueReader reader;
  EXPECT_TRUE(reader.add("put 0xff 17592186044415M"));
  EXPECT_EQ(reader.queue[0].remote, 0xffU);
  EXPECT_EQ(reader.queue[0].bytes, UINT64_MAX >> 20 << 20);
}

TEST(Text, NonsenseIsRefused) {
  for (const char* line : {"put",
                           "put 0",
                           "put 0 0",
                           "put x 8",
                           "put 0 8 1 2",
                           "get 0 8 copied",
                           "put 0 8 waited",
                           "x 0 put 0 8",
                           "x 8",
                           "fence 1",
                           "send 0 8",
                           "fetch 0 8 1 2 3",
                           "signal",
                           "put 0 8 merged",
                           "put 0 8 merged 0",
                           "put 0 8 merged 70000",
                           "acc 0 8 merged 2",
                           "put 0 8 packed",
                           "signal 0 8",
                           "tell 8 0",
                           "put 0xffffffffffffffff 8",
                           "x 3 put 0xfffffffffffffff0 8",
                           "put 0 8 0xffffffffffffffff"}) {
    QueueReader reader;
    EXPECT_FALSE(reader.add(line)) << line;
    EXPECT_FALSE(reader.problem.empty()) << line;
    EXPECT_TRUE(reader.queue.empty()) << line;
  }
  QueueReader reader;
  for (const char* line :
       {"", "# nothing", "fence", "put 1K 2M", "x 3 get 0x10 8 # three", "fetch 0 8 1 2",
        "signal 8", "tell 40", "put 0 8 5 copied", "get 0 60 1 merged 4", "get 0 60 1 packed"}) {
    EXPECT_TRUE(reader.add(line)) << line;
  }
  ASSERT_EQ(reader.queue.size(), 10u);
  EXPECT_EQ(reader.queue[8].calls, 4u);
  EXPECT_TRUE(reader.queue[0].fenced);
  EXPECT_EQ(reader.queue[0].remote, 1024u);
  EXPECT_EQ(reader.queue[3].remote, 32u);
  EXPECT_TRUE(reader.queue[9].kept);
}

// Messages of a link of 20 µs that carries 0.1 bytes per nanosecond out and 0.2 in. Other traffic
// of the machine often delays them.
TEST(LinkMeter, MeasuresTheCostOfALink) {
  std::mt19937_64 random(8);
  LinkMeter meter;
  Costs costs;
  meter.update(&costs);
  EXPECT_EQ(costs.latency_ns, Costs{}.latency_ns);
  const auto disturbed = [&](double ns) {
    return random() % 4 == 0 ? ns : ns + static_cast<double>(random() % 100'000);
  };
  for (int i = 0; i < 200; ++i) {
    meter.answered(64, 8, disturbed(40'000));
    meter.answered(40'000, 0, disturbed(40'000 + 400'000));
    meter.answered(64, 40'000, disturbed(40'000 + 200'000));
    meter.answered(40'000, 40'000, disturbed(440'000));  // says nothing
  }
  meter.update(&costs);
  EXPECT_NEAR(costs.latency_ns, 20'000, 200);
  EXPECT_NEAR(costs.out_bytes_per_ns, 0.1, 0.002);
  EXPECT_NEAR(costs.in_bytes_per_ns, 0.2, 0.004);
  // A link that other traffic fills for a while is not slower.
  for (int i = 0; i < 500; ++i) meter.answered(64, 8, disturbed(800'000));
  meter.update(&costs);
  EXPECT_NEAR(costs.latency_ns, 20'000, 200);
  // A link that has become slower is slower.
  for (int i = 0; i < 2100; ++i) meter.answered(64, 8, disturbed(80'000));
  meter.update(&costs);
  EXPECT_NEAR(costs.latency_ns, 40'000, 400);
}

TEST(LinkMeter, BelievesLongTransfersRatherThanConcurrentOnes) {
  LinkMeter meter;
  Costs costs;
  meter.answered(40'000, 0, 40'000);
  meter.update(&costs);
  EXPECT_NEAR(costs.out_bytes_per_ns, 1, 1e-6);
  meter.answered(200'000, 0, 2'000'000);
  meter.answered(40'000, 0, 40'000);
  meter.update(&costs);
  EXPECT_NEAR(costs.out_bytes_per_ns, 0.1, 1e-6);
  EXPECT_EQ(costs.in_bytes_per_ns, Costs{}.in_bytes_per_ns);
}

// Programs that send nothing small have no other way to tell.
TEST(LinkMeter, TakesMuchForBandwidthBeforeItKnowsLatency) {
  LinkMeter meter;
  Costs costs;
  meter.answered(10'000, 0, 100'000);  // may be latency
  meter.update(&costs);
  EXPECT_EQ(costs.out_bytes_per_ns, Costs{}.out_bytes_per_ns);
  meter.answered(64'000, 0, 640'000);
  meter.answered(0, 64'000, 320'000);
  meter.update(&costs);
  EXPECT_EQ(costs.latency_ns, Costs{}.latency_ns);
  EXPECT_NEAR(costs.out_bytes_per_ns, 0.1, 1e-6);
  EXPECT_NEAR(costs.in_bytes_per_ns, 0.2, 1e-6);
}

TEST(Plan, AdaptiveAlternatesUnmergedOperationsOnASlowLink) {
  std::vector<char> local(1 << 22);
  std::vector<Operation> apart;
  std::vector<Operation> together;
  for (size_t i = 0; i < 32; ++i) {
    const Kind kind = i < 16 ? Kind::kPut : Kind::kGet;
    apart.push_back(operation(kind, i << 20, local.data() + (i << 16), 1 << 15));
    together.push_back(operation(kind, i << 12, local.data() + (i << 12), 1 << 12));
  }
  Costs slow;
  slow.out_bytes_per_ns = slow.in_bytes_per_ns = 0.1;
  Plan plan;
  make_plan(apart, slow, Policy::kAdaptive, &plan);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(plan.order[2 * i], 16 + i);
    EXPECT_EQ(plan.order[2 * i + 1], i);
  }
  make_plan(apart, {}, Policy::kAdaptive, &plan);
  EXPECT_EQ(plan.order[15], 31u);  // gets first
  for (const Costs& costs : {slow, Costs{}}) {
    make_plan(together, costs, Policy::kAdaptive, &plan);
    EXPECT_EQ(plan.issues.size(), 2u);
    EXPECT_EQ(plan.order[0], 16u);
  }
}

TEST(Plan, ManySmallOfBothKindsShareMessagesThatAreFullBothWays) {
  const Costs costs;
  constexpr size_t kBytes = 1000;
  std::vector<char> local(2 * kBytes);
  for (const size_t times : {1, 4}) {
    // That many messages' worth of puts, then of gets.
    const size_t count = times * costs.message_bytes / kBytes;
    std::vector<Operation> queue;
    for (size_t i = 0; i < 2 * count; ++i) {
      queue.push_back(i < count
                          ? operation(Kind::kPut, 3 * kBytes * i, local.data(), kBytes)
                          : operation(Kind::kGet, 3 * kBytes * i, local.data() + kBytes, kBytes));
      queue.back().remote += i % 2;  // not rows
    }
    Plan plan;
    make_plan(queue, costs, Policy::kAdaptive, &plan);
    EXPECT_EQ(plan.order[1], times == 1 ? count + 1 : 0) << times;
    EXPECT_LE(plan.issues.size(), times == 1 ? 2 : times + 1);
  }
}

// A piece of a few bytes must not stand for any number of operations: no bytes limit rows without
// data.
TEST(Wire, RowsThatCarryNothingAreRefused) {
  constexpr unsigned char kRows = 0x08;
  const auto is_refused = [](Kind kind, unsigned char length, unsigned char rows, size_t further) {
    std::vector<unsigned char> bytes = {
        static_cast<unsigned char>(static_cast<unsigned>(kind) | kRows), 0, length, rows, 2};
    bytes.resize(bytes.size() + further);
    PackReader reader(bytes);
    Arrived piece;
    return !reader.next(&piece) && !reader.is_whole();
  };
  EXPECT_FALSE(is_refused(Kind::kGet, 1, 100, 0));
  EXPECT_TRUE(is_refused(Kind::kGet, 0, 100, 0));
  EXPECT_FALSE(is_refused(Kind::kPut, 1, 100, 100));
  EXPECT_TRUE(is_refused(Kind::kPut, 0, 100, 0));
  EXPECT_TRUE(is_refused(Kind::kSignal, 8, 100, 9));
  EXPECT_FALSE(is_refused(Kind::kSignal, 8, 1, 9));
}

TEST(Wire, BytesOfNobodyAreRefused) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<unsigned char> bytes(random() % 64);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    PackReader reader(bytes);
    Arrived piece;
    while (reader.next(&piece)) {
      if (piece.offsets != nullptr) {
        ASSERT_GE(piece.offsets, bytes.data());
        ASSERT_LE(piece.offsets + size_t{piece.rows} * piece.offset_bytes,
                  bytes.data() + bytes.size());
      }
      if (piece.data == nullptr) continue;
      ASSERT_GE(piece.data, bytes.data());
      ASSERT_LE(piece.data + piece.bytes(), bytes.data() + bytes.size());
    }
  }
}

}  // namespace
}  // namespace mobius::schedule
