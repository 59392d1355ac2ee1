// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace mobius::schedule {
namespace {

// Largest header of a piece (wire.cpp): kind, distance, length, and a signal's fields; and the
// number and stride that rows add.
constexpr size_t kPieceHeaderBytes = 32;
constexpr size_t kRowsHeaderBytes = 16;

// A strided piece pays from this number of rows on.
constexpr uint32_t kFewestRows = 3;

// A scattered piece pays from this number of rows on, of rows up to this size; with longer rows the
// headers do not matter.
constexpr uint32_t kFewestScattered = 4;
constexpr size_t kMostScatteredBytes = 64;

// Among scattered rows, so many neighbours, or rows at one distance, are worth a piece of their
// own. With fewer, the header takes as much as their offsets would.
constexpr uint32_t kFewestBetween = 8;

// A slow link is this many times slower than copying: up to 2 Gbit/s by default. The limit is low
// because a faster link may be measured at a tenth of its bandwidth from a few messages of medium
// size that wait for each other.
constexpr double kTimesSlower = 20;

// Limit of the comparisons of single operations in a plan, which tell conflicts from mere
// neighbours. Beyond it the order is kept.
constexpr size_t kMostLooks = 4096;

struct Range {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;

  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  void cover(const Range& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

Range remote_range(const Operation& operation) {
  if (operation.kind == Kind::kTell) return {};
  return {operation.remote, operation.remote + operation.bytes};
}

// The user's memory that the operation reads or writes; empty for copies.
Range local_range(const Operation& operation) {
  if (operation.kept || operation.local == nullptr) return {};
  const auto begin = reinterpret_cast<uintptr_t>(operation.local);
  return {begin, begin + operation.bytes};
}

// Destination of a fetching accumulate's answer.
Range fetched_range(const Operation& operation) {
  if (operation.fetched() == nullptr) return {};
  const auto begin = reinterpret_cast<uintptr_t>(operation.fetched());
  return {begin, begin + operation.bytes};
}

bool conflict(const Operation& a, const Operation& b) {
  return remote_range(a).meets(remote_range(b)) || local_range(a).meets(local_range(b)) ||
         local_range(a).meets(fetched_range(b)) || fetched_range(a).meets(local_range(b));
}

struct Bounds {
  Range remote;
  Range local;

  void cover(const Operation& operation) {
    remote.cover(remote_range(operation));
    local.cover(local_range(operation));
    local.cover(fetched_range(operation));
  }
  bool may_conflict(const Operation& operation) const {
    return remote.meets(remote_range(operation)) || local.meets(local_range(operation)) ||
           local.meets(fetched_range(operation));
  }
};

}  // namespace

size_t most_packed_bytes(const Costs& costs) {
  const auto bytes = static_cast<size_t>(costs.message_ns * costs.copy_bytes_per_ns);
  return std::min(bytes, costs.message_bytes / 2);
}

Costs without_answers(const Costs& costs) {
  Costs spared = costs;
  spared.message_ns += costs.latency_ns;
  return spared;
}

class Planner {
 public:
  Planner(std::span<const Operation> queue, const Costs& costs, Policy policy, Plan& plan)
      : queue_(queue),
        costs_(costs),
        policy_(policy),
        most_packed_(most_packed_bytes(costs)),
        plan_(plan) {}

  void run() {
    plan_.order.clear();
    plan_.pieces.clear();
    plan_.issues.clear();
    plan_.segments_.clear();
    plan_.savings = {};
    plan_.why = "as they came";
    if (queue_.size() == 1) return run_single();
    look_at_all();
    if (policy_ == Policy::kFifo || policy_ == Policy::kAggregate || !has_both_kinds_) {
      keep_order();
    } else {
      reorder();
    }
    make_pieces();
    set_free();
    count();
  }

 private:
  // Plans a single operation: the usual queue when a thread waits for its result.
  void run_single() {
    plan_.order.push_back(0);
    plan_.segments_.push_back(0);
    plan_.pieces.push_back(single(0));
    issue(plan_.pieces.back());
    plan_.issues.back().is_free = !plan_.issues.back().packed;
    count();
  }

  bool packs() const { return policy_ == Policy::kAggregate || policy_ == Policy::kAdaptive; }

  void look_at_all() {
    size_t gets = 0;
    size_t fenced = 0;
    for (const Operation& operation : queue_) {
      gets += changes(operation.kind) ? 0 : 1;
      fenced += operation.fenced ? 1 : 0;
    }
    has_both_kinds_ = gets != 0 && gets != queue_.size();
    has_fences_ = fenced != 0;
  }

  void keep_order() {
    plan_.order.resize(queue_.size());
    std::iota(plan_.order.begin(), plan_.order.end(), 0u);
    if (!queue_.empty()) plan_.segments_.push_back(0);
    if (!has_fences_) return;
    for (uint32_t i = 1; i < queue_.size(); ++i) {
      if (queue_[i].fenced) plan_.segments_.push_back(i);
    }
  }

  // Divides the queue into segments: within one, no get conflicts with an operation that changes
  // memory, so the two kinds may overtake each other.
  void reorder() {
    Bounds read;
    Bounds changed;
    for (uint32_t i = 0; i < queue_.size(); ++i) {
      const Operation& next = queue_[i];
      const bool is_get = !changes(next.kind);
      const bool conflicts = is_get ? in_conflict(changed, plan_.changes_, next)
                                    : in_conflict(read, plan_.gets_, next);
      if (next.fenced || conflicts) {
        end_segment();
        read = {};
        changed = {};
      }
      (is_get ? plan_.gets_ : plan_.changes_).push_back(i);
      (is_get ? read : changed).cover(next);
    }
    end_segment();
    uint32_t latest = 0;
    for (const uint32_t index : plan_.order) {
      if (index < latest) plan_.savings.reordered += queue_[index].calls;
      latest = std::max(latest, index);
    }
  }

  bool in_conflict(const Bounds& bounds, const std::vector<uint32_t>& others,
                   const Operation& operation) {
    if (!bounds.may_conflict(operation)) return false;
    for (const uint32_t other : others) {
      if (++looks_ > kMostLooks || conflict(queue_[other], operation)) return true;
    }
    return false;
  }

  // Bytes of the operations that are at most `most` long.
  size_t bytes_of(const std::vector<uint32_t>& indices, size_t most) const {
    size_t bytes = 0;
    for (const uint32_t i : indices) bytes += queue_[i].bytes <= most ? queue_[i].bytes : 0;
    return bytes;
  }

  // On a slow link with work for both directions, alternating keeps both busy to the end. Otherwise
  // the gets go first: their answers arrive while the rest is still being sent. On a link nearly as
  // fast as memory, alternating was slower, since copying takes the time. The exception are
  // operations that fill several messages anyway: half as many messages are enough if each is full
  // in both directions.
  const char* why_alternate() const {
    if (policy_ == Policy::kInterleave) return "gets and the others alternate";
    if (policy_ != Policy::kAdaptive || plan_.changes_.size() < 2 || plan_.gets_.size() < 2) {
      return nullptr;
    }
    const double rate = std::max(costs_.out_bytes_per_ns, costs_.in_bytes_per_ns);
    if (rate * kTimesSlower < costs_.copy_bytes_per_ns) {
      const auto out = static_cast<double>(bytes_of(plan_.changes_, SIZE_MAX));
      const auto in = static_cast<double>(bytes_of(plan_.gets_, SIZE_MAX));
      const double busy_ns = std::min(out / costs_.out_bytes_per_ns, in / costs_.in_bytes_per_ns);
      return busy_ns > 4 * costs_.latency_ns
                 ? "gets and the others alternate: both directions are busy"
                 : nullptr;
    }
    const size_t packed =
        std::min(bytes_of(plan_.changes_, most_packed_), bytes_of(plan_.gets_, most_packed_));
    return packed > costs_.message_bytes
               ? "gets and the others alternate: their messages are full both ways"
               : nullptr;
  }

  // Takes the next operations of one kind when kinds alternate: small neighbours that can be merged
  // stay together. Large ones gain nothing by that, and use both directions if they alternate.
  size_t take_run(const std::vector<uint32_t>& indices, size_t first) {
    size_t next = first;
    do {
      plan_.order.push_back(indices[next++]);
    } while (next < indices.size() && packs() &&
             continues(queue_[indices[next - 1]], queue_[indices[next]]));
    return next;
  }

  bool continues(const Operation& before, const Operation& next) const {
    return next.bytes <= most_packed_ && next.kind == before.kind && is_mergeable(before) &&
           is_mergeable(next) && next.kept == before.kept && !may_begin_memory(next.remote) &&
           next.remote == before.remote + before.bytes && next.local == before.local + before.bytes;
  }

  void end_segment() {
    std::vector<uint32_t>& changed = plan_.changes_;
    std::vector<uint32_t>& gets = plan_.gets_;
    if (changed.empty() && gets.empty()) return;
    plan_.segments_.push_back(static_cast<uint32_t>(plan_.order.size()));
    if (!gets.empty() && !changed.empty()) {
      const char* const why = why_alternate();
      const bool alternate = why != nullptr;
      plan_.why = alternate ? why : "gets first: nothing they read waits for what is sent";
      size_t next_get = 0;
      size_t next_change = 0;
      while (alternate && next_get < gets.size() && next_change < changed.size()) {
        next_get = take_run(gets, next_get);
        next_change = take_run(changed, next_change);
      }
      plan_.order.insert(plan_.order.end(), gets.begin() + static_cast<ptrdiff_t>(next_get),
                         gets.end());
      plan_.order.insert(plan_.order.end(), changed.begin() + static_cast<ptrdiff_t>(next_change),
                         changed.end());
    } else {
      plan_.order.insert(plan_.order.end(), gets.begin(), gets.end());
      plan_.order.insert(plan_.order.end(), changed.begin(), changed.end());
    }
    gets.clear();
    changed.clear();
  }

  const Operation& at(size_t place) const { return queue_[plan_.order[place]]; }

  static bool is_mergeable(const Operation& operation) {
    return (operation.kind == Kind::kPut || operation.kind == Kind::kGet) &&
           operation.waiter() == nullptr;
  }

  Piece single(size_t place) const {
    const Operation& one = at(place);
    return {static_cast<uint32_t>(place), 1, one.calls, 1, true, one.bytes};
  }

  // The contiguous piece that begins at `first` and ends before `end`; a single operation if
  // nothing can be merged. Values are not merged, so that each is stored whole.
  Piece contiguous(size_t first, size_t end) const {
    const Operation& begin = at(first);
    Piece piece = single(first);
    if (is_value(begin.bytes)) return piece;
    for (size_t place = first + 1; place < end; ++place) {
      const Operation& next = at(place);
      const Operation& before = at(place - 1);
      if (next.kind != begin.kind || !is_mergeable(next) || is_value(next.bytes) ||
          next.remote != begin.remote + piece.row_bytes || may_begin_memory(next.remote) ||
          piece.row_bytes + next.bytes > SIZE_MAX / 2) {
        break;
      }
      const bool follows = next.local == before.local + before.bytes && next.kept == begin.kept;
      // An operation long enough to go alone is not copied just to be merged with its neighbour.
      if (!follows && std::max(piece.row_bytes, next.bytes) > most_packed_) break;
      piece.is_local_contiguous &= follows;
      if (!piece.is_local_contiguous && piece.row_bytes + next.bytes > most_packed_) break;
      piece.row_bytes += next.bytes;
      piece.calls += next.calls;
      ++piece.count;
    }
    return piece;
  }

  // Equal rows at regular distances that do not overlap.
  Piece rows(size_t first, size_t end) const {
    static_assert(kFewestRows == 3);
    const Operation& begin = at(first);
    if (first + kFewestRows > end || begin.bytes > most_packed_) return single(first);
    const uint64_t second = at(first + 1).remote;
    const auto stride = static_cast<int64_t>(second - begin.remote);
    const auto bytes = static_cast<int64_t>(begin.bytes);
    if (static_cast<int64_t>(at(first + 2).remote - second) != stride ||
        (stride < bytes && stride > -bytes)) {
      return single(first);
    }
    uint32_t count = 1;
    uint32_t calls = begin.calls;
    bool is_local_contiguous = true;
    for (size_t place = first + 1; place < end; ++place, ++count) {
      const Operation& next = at(place);
      const Operation& before = at(place - 1);
      if (next.kind != begin.kind || !is_mergeable(next) || next.bytes != begin.bytes ||
          static_cast<int64_t>(next.remote - before.remote) != stride) {
        break;
      }
      is_local_contiguous &= next.local == before.local + before.bytes;
      calls += next.calls;
    }
    if (count < kFewestRows) return single(first);
    return {static_cast<uint32_t>(first), count,       calls, count,
            is_local_contiguous,          begin.bytes, stride};
  }

  // Scattered equal rows, up to what fits into a message, or to rows that are better as a piece of
  // their own.
  Piece scattered(size_t first, size_t end) const {
    const Operation& begin = at(first);
    if (first + kFewestScattered > end || begin.bytes > kMostScatteredBytes ||
        !is_mergeable(begin)) {
      return single(first);
    }
    constexpr size_t kHeaderBytes = kPieceHeaderBytes + kRowsHeaderBytes;
    const size_t row_bytes = begin.bytes + sizeof(uint64_t);
    size_t room = costs_.message_bytes;
    if (is_open_) room -= std::min(room, std::max(out_, plan_.issues.back().answer_bytes));
    if (room < kHeaderBytes + kFewestScattered * row_bytes) room = costs_.message_bytes;
    Irregular rows(begin);
    const size_t last =
        end_of_irregular(first, std::min(end, first + (room - kHeaderBytes) / row_bytes), &rows);
    if (last - first < kFewestScattered) return single(first);
    if (last - first != rows.count) {
      // The search read ahead, into rows at regular distances: add up again without them.
      rows = Irregular(begin);
      for (size_t place = first + 1; place < last; ++place) rows.add(at(place));
    }
    if (rows.highest > UINT64_MAX - begin.bytes) return single(first);
    Piece piece = single(first);
    piece.calls = rows.calls;
    piece.count = rows.count;
    piece.rows = rows.count;
    piece.is_local_contiguous = false;
    piece.lowest = rows.lowest;
    piece.highest = rows.highest + begin.bytes;
    const auto bits = static_cast<unsigned>(std::bit_width(rows.highest - rows.lowest));
    piece.offset_bytes = static_cast<uint8_t>(bits <= 32 ? std::max(1u, (bits + 7) / 8) : 8);
    return piece;
  }

  // Scattered equal rows.
  struct Irregular {
    explicit Irregular(const Operation& first)
        : lowest(first.remote), highest(first.remote), calls(first.calls) {}
    void add(const Operation& next) {
      lowest = std::min(lowest, next.remote);
      highest = std::max(highest, next.remote);
      calls += next.calls;
      ++count;
    }

    uint64_t lowest;
    uint64_t highest;  // where the last row begins
    uint32_t calls;
    uint32_t count = 1;
  };

  // Finds where scattered equal rows from `first` on end, or where kFewestBetween of them at one
  // distance begin. `rows` sums up all rows read.
  size_t end_of_irregular(size_t first, size_t end, Irregular* rows) const {
    const Operation& begin = at(first);
    const Kind kind = begin.kind;
    const size_t bytes = begin.bytes;
    Irregular seen = *rows;
    uint64_t distance = 0;
    uint32_t alike = 0;  // equal distances in a row
    uint64_t before = begin.remote;
    size_t found = end;
    for (size_t place = first + 1; place < end; ++place) {
      const Operation& next = at(place);
      if (next.kind != kind || next.bytes != bytes || !is_mergeable(next)) {
        found = place;
        break;
      }
      alike = next.remote - before == distance ? alike + 1 : 1;
      distance = next.remote - before;
      before = next.remote;
      seen.add(next);
      if (alike + 1 == kFewestBetween && distance >= bytes && distance <= -bytes) {
        found = place - alike;
        break;
      }
    }
    *rows = seen;
    return found;
  }

  // Checks only the next two operations, which is enough for most scattered ones.
  bool may_merge(size_t place, size_t end) const {
    if (place + 1 >= end) return false;
    const Operation& begin = at(place);
    const Operation& next = at(place + 1);
    if (next.kind != begin.kind || !is_mergeable(begin)) return false;
    const uint64_t stride = next.remote - begin.remote;
    return stride == begin.bytes ||
           (place + 2 < end && at(place + 2).remote - next.remote == stride);
  }

  // Makes pieces, and puts each into the open message or into an issue of its own.
  void make_pieces() {
    const bool merges = packs();
    const size_t places = plan_.order.size();
    plan_.pieces.reserve(places);
    size_t segment = 0;
    size_t end = 0;  // of the segment
    for (size_t place = 0; place < places;) {
      while (place >= end) {
        end = ++segment < plan_.segments_.size() ? plan_.segments_[segment] : places;
      }
      Piece& piece = plan_.pieces.emplace_back(single(place));
      if (merges && may_merge(place, end)) {
        piece = contiguous(place, end);
        if (piece.count == 1) piece = rows(place, end);
        if (piece.bytes() > costs_.message_bytes && !goes_alone(piece)) cut(piece);
      }
      if (merges && piece.count < kFewestBetween) {
        const Piece rows = scattered(place, end);
        if (rows.count > piece.count) piece = rows;
      }
      place += piece.count;
      issue(piece);
    }
  }

  // Cuts a piece to half of a message's capacity. None of its operations is longer than that.
  void cut(Piece& piece) const {
    const size_t most = costs_.message_bytes / 2;
    if (piece.rows > 1) {
      piece.rows = static_cast<uint32_t>(std::max<size_t>(most / piece.row_bytes, 1));
      piece.count = piece.rows;
    } else {
      size_t bytes = at(piece.first).bytes;
      uint32_t count = 1;
      while (count < piece.count && bytes + at(piece.first + count).bytes <= most) {
        bytes += at(piece.first + count++).bytes;
      }
      piece.count = count;
      piece.row_bytes = bytes;
    }
    piece.calls = 0;
    for (uint32_t i = 0; i < piece.count; ++i) piece.calls += at(piece.first + i).calls;
  }

  // A piece goes alone if it is contiguous at both sides and too long to be copied.
  bool goes_alone(const Piece& piece) const {
    const Operation& first = at(piece.first);
    if (first.waiter() != nullptr) return true;
    if (!is_mergeable(first) || piece.rows != 1 || !piece.is_local_contiguous || first.kept) {
      return false;
    }
    return piece.bytes() > most_packed_;
  }

  // Puts the last piece into a message, or issues it alone.
  void issue(const Piece& piece) {
    const auto index = static_cast<uint32_t>(plan_.pieces.size() - 1);
    plan_.savings.merged += piece.calls - (piece.is_scattered() ? piece.count : 1);
    if (goes_alone(piece)) {
      plan_.issues.push_back({false, index, 1, piece.calls, 0});
      is_open_ = false;
      return;
    }
    const Kind kind = at(piece.first).kind;
    const size_t bytes = piece.bytes();
    const size_t out = kPieceHeaderBytes + (piece.rows > 1 ? kRowsHeaderBytes : 0) +
                       size_t{piece.rows} * piece.offset_bytes + (carries_data(kind) ? bytes : 0);
    const size_t in = is_answered_with_data(kind) ? bytes : 0;
    if (!is_open_ || !packs() || out_ + out > costs_.message_bytes ||
        plan_.issues.back().answer_bytes + in > costs_.message_bytes) {
      plan_.issues.push_back({true, index, 0, 0, 0});
      is_open_ = true;
      out_ = 0;
    }
    Issue& message = plan_.issues.back();
    ++message.count;
    message.operations += piece.calls;
    message.answer_bytes += in;
    out_ += out;
  }

  // Marks as free the last issue of each kind that goes alone, if there is no fence and no later
  // operation has to come after it.
  void set_free() {
    if (plan_.segments_.size() > 1) return;
    bool any_get = false;
    bool any_other = false;
    for (auto issue = plan_.issues.rbegin(); issue != plan_.issues.rend(); ++issue) {
      if (issue->packed) {
        for (uint32_t i = issue->first; i < issue->first + issue->count; ++i) {
          (changes(at(plan_.pieces[i].first).kind) ? any_other : any_get) = true;
        }
        continue;
      }
      const Piece& piece = plan_.pieces[issue->first];
      bool& any = changes(at(piece.first).kind) ? any_other : any_get;
      issue->is_free = !any && !has_conflict_behind(piece);
      any = true;
    }
  }

  // For a piece that goes alone: it is contiguous at both sides.
  bool has_conflict_behind(const Piece& piece) {
    Operation whole = at(piece.first);
    whole.bytes = piece.bytes();
    for (size_t place = piece.first + piece.count; place < plan_.order.size(); ++place) {
      if (++looks_ > kMostLooks || conflict(whole, at(place))) return true;
    }
    return false;
  }

  void count() {
    Savings& savings = plan_.savings;
    savings.messages = plan_.issues.size();
    for (const Issue& issue : plan_.issues) {
      if (issue.packed && issue.operations > 1) savings.packed += issue.operations;
    }
  }

  const std::span<const Operation> queue_;
  const Costs& costs_;
  const Policy policy_;
  const size_t most_packed_;
  Plan& plan_;
  bool has_both_kinds_ = false;  // otherwise no operation can overtake another
  bool has_fences_ = false;
  size_t looks_ = 0;
  bool is_open_ = false;  // the last message has room
  size_t out_ = 0;        // bytes in it
};

void make_plan(std::span<const Operation> queue, const Costs& costs, Policy policy, Plan* plan) {
  Planner(queue, costs, policy, *plan).run();
}

}  // namespace mobius::schedule
