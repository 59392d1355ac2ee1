// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network_bulk.h"

#include <bit>
#include <utility>

#include "base/settings.h"
#include "base/status.h"
#include "engine/network.h"
#include "os/futex.h"

namespace mobius::engine {

using transport::ofi::Posted;

void BulkMoves::open(uint64_t least_bytes, bool is_stream) {
  const bool is_automatic = least_bytes == base::kAutomatic;
  least_bytes_ = is_automatic ? kLeastBytes : least_bytes;
  tries_messages_ = is_automatic && is_stream;
}

WayTrial* BulkMoves::trial_of(mob_kind_t kind, size_t bytes) {
  if (!tries_messages_ || bytes <= kRushBytes || bytes > kMostTriedBytes) return nullptr;
  const auto size = static_cast<size_t>(std::bit_width((bytes - 1) / kRushBytes)) - 1;
  return &trials_[kind == MOB_GET ? 1 : 0][size];
}

bool BulkMoves::is_worth_waiting_for(mob_kind_t kind, size_t bytes) {
  if (!is_worth(bytes)) return false;
  const WayTrial* const trial = trial_of(kind, bytes);
  if (trial == nullptr) return true;
  const std::lock_guard lock(trial_mutex_);
  return trial->takes_first();
}

bool BulkMoves::is_tried_out(mob_kind_t kind, size_t bytes) {
  WayTrial* const trial = trial_of(kind, bytes);
  if (trial == nullptr) return false;
  const std::lock_guard lock(trial_mutex_);
  return trial->begins();
}

void BulkMoves::note(mob_kind_t kind, size_t bytes, bool in_bulk, uint64_t ns) {
  WayTrial* const trial = trial_of(kind, bytes);
  if (trial == nullptr) return;
  const std::lock_guard lock(trial_mutex_);
  trial->add(in_bulk, static_cast<int64_t>(ns));
}

void BulkMoves::read(mob_rank_t origin, void* here, size_t bytes, Place there, Done done) {
  start({origin, true, here, bytes, there, std::move(done)});
}

void BulkMoves::write(mob_rank_t origin, const void* here, size_t bytes, Place there, Done done) {
  start({origin, false, const_cast<void*>(here), bytes, there, std::move(done)});
}

void BulkMoves::start(Move move) {
  {
    const std::lock_guard lock(mutex_);
    const uint64_t id = ++last_id_;
    waiting_[move.origin].moves.push_back(id);
    under_way_.emplace(id, std::move(move));
    waiting_count_.fetch_add(1, std::memory_order_seq_cst);
  }
  pump();
}

Posted BulkMoves::post(uint64_t id, const Move& move) {
  Link* link = nullptr;
  if (network_.link(move.origin, &link) != MOB_OK) return Posted::kFailed;
  const transport::ofi::PeerId peer = link->peer_id();
  return move.reads
             ? endpoint_.read(peer, move.here, move.bytes, move.there.base, move.there.key, id)
             : endpoint_.write(peer, move.here, move.bytes, move.there.base, move.there.key, id);
}

// Needs mutex_. Until there is no room; whether there was any.
bool BulkMoves::post_all(Queue& queue, std::vector<Failure>& failures) {
  bool any = false;
  while (!queue.moves.empty()) {
    const auto found = under_way_.find(queue.moves.front());
    // Its end may be told as soon as it is posted: that waits for the lock.
    const Posted posted = post(found->first, found->second);
    if (posted == Posted::kAgain) return any;
    any = true;
    queue.next_look_ns = 0;
    queue.moves.pop_front();
    waiting_count_.fetch_sub(1, std::memory_order_seq_cst);
    if (posted == Posted::kFailed) {
      failures.push_back({std::move(found->second.done), mob_last_error()});
      under_way_.erase(found);
    }
  }
  return any;
}

bool BulkMoves::pump() {
  if (!has_waiting()) return false;
  bool any = false;
  std::vector<Failure> failures;
  std::vector<mob_rank_t> stuck;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t now = os::now_ns();
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      Queue& queue = each->second;
      any |= post_all(queue, failures);
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
  for (const Failure& failure : failures) {
    failure.done(base::fail(MOB_ERR_PEER, "%s", failure.text.c_str()));
  }
  // Nobody here waits for these. One that turns out to be silent is lost, and its moves fail.
  for (const mob_rank_t origin : stuck) static_cast<void>(network_.is_dead(origin));
  return any;
}

void BulkMoves::ended(uint64_t operation, mob_status_t status, const char* text) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(operation);
    if (found == under_way_.end()) return;
    done = std::move(found->second.done);
    under_way_.erase(found);
  }
  if (status != MOB_OK) base::fail(status, "%s", text);
  done(status);
}

}  // namespace mobius::engine
