// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/network_rma.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/settings.h"
#include "base/status.h"
#include "engine/network/network.h"
#include "os/sync/futex.h"

namespace mobius::engine {

using transport::ofi::Posted;

void NetworkRma::open(uint64_t least_bytes) {
  const bool is_automatic = least_bytes == base::kAutomatic;
  least_bytes_ = is_automatic ? kLeastBytes : least_bytes;
  least_bare_ = is_automatic ? kLeastBare : least_bytes;
  tries_messages_ = is_automatic && endpoint_.description().is_stream;
}

NetworkRma::Extent NetworkRma::extent_of(mob_kind_t kind, const transport::Shape& shape) const {
  Extent extent{kind, shape.total_bytes, 0};
  if (shape.total_bytes == 0) return extent;
  if (shape.kind == MOB_CONTIGUOUS) {
    extent.runs = 1;
  } else if (shape.kind != MOB_SPANS) {
    extent.runs = shape.total_bytes / shape.run_bytes;
  } else {
    extent.runs = std::max(shape.remote_span_count, shape.local_span_count);
    // There may be more runs. If this minimum rules the path out already, do not count them.
    if (!shape.is_paired && is_worth(extent)) {
      extent.runs = 0;
      transport::for_each_run(shape, [&](const char*, const char*, size_t) {
        ++extent.runs;
        return MOB_OK;
      });
    }
  }
  return extent;
}

AbTuner* NetworkRma::tuner_of(const Extent& extent) {
  if (!tries_messages_ || !is_worth(extent) || extent.bytes <= kRushBytes ||
      extent.bytes > kMostTriedBytes) {
    return nullptr;
  }
  const auto size = static_cast<size_t>(std::bit_width((extent.bytes - 1) / kRushBytes)) - 1;
  return &tuners_[extent.runs > 1 ? 1 : 0][extent.kind == MOB_GET ? 1 : 0][size];
}

bool NetworkRma::is_worth_waiting_for(const Extent& extent) {
  if (!is_worth(extent)) return false;
  const AbTuner* const tuner = tuner_of(extent);
  if (tuner == nullptr) return true;
  const std::lock_guard lock(tuner_mutex_);
  return tuner->takes_first();
}

bool NetworkRma::is_tried_out(const Extent& extent) {
  AbTuner* const tuner = tuner_of(extent);
  if (tuner == nullptr) return false;
  const std::lock_guard lock(tuner_mutex_);
  return tuner->begins();
}

void NetworkRma::note(const Extent& extent, bool in_bulk, uint64_t ns) {
  AbTuner* const tuner = tuner_of(extent);
  if (tuner == nullptr) return;
  const std::lock_guard lock(tuner_mutex_);
  tuner->add(in_bulk, static_cast<int64_t>(ns));
}

void NetworkRma::note_offered(mob_rank_t target, size_t runs) {
  const std::lock_guard lock(offered_mutex_);
  offered_[target] += runs;
}

void NetworkRma::note_withdrawn(mob_rank_t target, size_t runs) {
  const std::lock_guard lock(offered_mutex_);
  const auto found = offered_.find(target);
  if ((found->second -= runs) == 0) offered_.erase(found);
}

bool NetworkRma::has_room_for_more(mob_rank_t target) {
  const std::lock_guard lock(offered_mutex_);
  const auto found = offered_.find(target);
  return found == offered_.end() || found->second < kMostOffered;
}

void NetworkRma::move(mob_rank_t origin, mob_kind_t kind, std::span<const Run> runs, bool ahead,
                      bool noted, Done done) {
  const auto whole = std::make_shared<Whole>(std::move(done), runs.size());
  {
    const std::lock_guard lock(mutex_);
    wait_for_room({origin, kind == MOB_PUT, ahead && kind == MOB_GET, noted, {}, whole}, runs);
  }
  pump();
}

void NetworkRma::write(mob_rank_t target, std::span<const Run> runs, Done done) {
  const auto whole = std::make_shared<Whole>(std::move(done), runs.size());
  const std::lock_guard lock(mutex_);
  Queue& queue = wait_for_room({target, false, false, false, {}, whole}, runs);
  const size_t ended = ended_.size();
  try {
    post_all(target, queue, ended_);
  } catch (const std::bad_alloc&) {
    return;  // the next poll tries again
  }
  if (queue.moves.empty()) waiting_.erase(target);
  waiting_count_.fetch_add(ended_.size() - ended, std::memory_order_seq_cst);
}

// Needs mutex_. Queues all runs, or none if there is no memory. `move` holds their common values.
NetworkRma::Queue& NetworkRma::wait_for_room(Move move, std::span<const Run> runs) {
  const size_t most_ahead = move.ahead ? endpoint_.description().ahead_bytes : 0;
  std::list<uint64_t> ids;
  std::map<uint64_t, Move> moves;
  for (const Run& run : runs) {
    move.run = run;
    move.ahead = run.bytes <= most_ahead;
    ids.push_back(++last_id_);
    moves.emplace_hint(moves.end(), last_id_, move);
  }
  Queue& queue = waiting_[move.peer];
  queue.moves.splice(queue.moves.end(), ids);
  under_way_.merge(moves);
  waiting_count_.fetch_add(runs.size(), std::memory_order_seq_cst);
  return queue;
}

// The last run reports the outcome of all.
void NetworkRma::end_run(Whole& whole, mob_status_t status) {
  whole.error.keep(status);
  // Both: the last run sees the bytes that the others moved and the errors they kept.
  if (whole.left.fetch_sub(1, std::memory_order_acq_rel) == 1) whole.done(whole.error.take());
}

Posted NetworkRma::post(uint64_t id, const Move& move) {
  Link* link = nullptr;
  if (network_.link(move.peer, &link) != MOB_OK) return Posted::kFailed;
  const transport::ofi::PeerId peer = link->peer_id();
  const Run& run = move.run;
  auto* here = reinterpret_cast<void*>(run.mover);
  if (move.reads) return endpoint_.read(peer, here, run.bytes, run.base, run.key, id);
  const uint64_t note = move.noted ? run.key : 0;
  return move.ahead ? endpoint_.write_ahead(peer, here, run.bytes, run.base, run.key, id, note)
                    : endpoint_.write(peer, here, run.bytes, run.base, run.key, id);
}

// Needs mutex_. Posts moves until there is no room, or until moves under way have to end first.
// Returns whether it posted any. Throws before it posts any, if at all.
bool NetworkRma::post_all(mob_rank_t peer, Queue& queue, std::vector<Outcome>& outcomes) {
  outcomes.reserve(outcomes.size() + queue.moves.size());
  Burst& burst = bursts_[peer];
  bool any = false;
  while (!queue.moves.empty()) {
    const auto found = under_way_.find(queue.moves.front());
    Move& move = found->second;
    if (!move.ahead && !burst.has_room_for(move)) break;
    // The end of the move may be reported as soon as it is posted; that thread waits for the lock.
    const Posted posted = post(found->first, move);
    if (posted == Posted::kAgain) break;
    any = true;
    queue.next_look_ns = 0;
    queue.moves.pop_front();
    waiting_count_.fetch_sub(1, std::memory_order_seq_cst);
    if (posted == Posted::kDone && !move.ahead) {
      burst.begin(move);
      continue;
    }
    outcomes.push_back({std::move(move.whole), {}});
    if (posted == Posted::kDone) continue;
    outcomes.back().error.keep(MOB_ERR_PEER);
    under_way_.erase(found);
  }
  if (burst.is_over()) bursts_.erase(peer);
  return any;
}

void NetworkRma::end_runs(const std::vector<Outcome>& outcomes) {
  for (const Outcome& each : outcomes) end_run(*each.whole, each.error.tell());
}

bool NetworkRma::pump() {
  if (!has_waiting()) return false;
  bool any = false;
  std::vector<Outcome> outcomes;
  std::vector<mob_rank_t> stuck;
  {
    const std::lock_guard lock(mutex_);
    outcomes.swap(ended_);
    waiting_count_.fetch_sub(outcomes.size(), std::memory_order_seq_cst);
    const uint64_t now = os::now_ns();
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      Queue& queue = each->second;
      any |= post_all(each->first, queue, outcomes);
      if (queue.moves.empty()) {
        each = waiting_.erase(each);
        continue;
      }
      if (now >= queue.next_look_ns) {
        if (queue.next_look_ns != 0) stuck.push_back(each->first);
        queue.next_look_ns = now + kLookNs;
      }
      ++each;
    }
  }
  end_runs(outcomes);
  // Maybe no thread here waits for these peers. A silent one is lost here, and its moves fail.
  for (const mob_rank_t peer : stuck) static_cast<void>(network_.is_dead(peer));
  return any;
}

void NetworkRma::ended(uint64_t operation, mob_status_t status, const char* text) {
  std::shared_ptr<Whole> whole;
  mob_rank_t peer = 0;
  bool ahead = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(operation);
    if (found == under_way_.end()) return;
    const Move& move = found->second;
    peer = move.peer;
    ahead = move.ahead;
    if (!move.ahead) {
      const auto burst = bursts_.find(peer);
      burst->second.end(move);
      if (burst->second.is_over()) bursts_.erase(burst);
    }
    whole = std::move(found->second.whole);
    under_way_.erase(found);
  }
  // Messages of this peer may wait for as long as its other transfers take, so the end of a move
  // counts as a sign of life. The end of a move ahead only tells that the bytes have left here.
  if (status == MOB_OK && !ahead) network_.note_heard(peer);
  if (whole == nullptr) return;  // a move ahead: nobody is left to be told of an error
  if (status != MOB_OK) base::fail(status, "%s", text);
  end_run(*whole, status);
}

}  // namespace mobius::engine
