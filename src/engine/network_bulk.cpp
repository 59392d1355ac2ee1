// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network_bulk.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/settings.h"
#include "base/status.h"
#include "engine/network.h"
#include "os/futex.h"

namespace mobius::engine {

using transport::ofi::Posted;

void BulkMoves::open(uint64_t least_bytes) {
  const bool is_automatic = least_bytes == base::kAutomatic;
  least_bytes_ = is_automatic ? kLeastBytes : least_bytes;
  tries_messages_ = is_automatic && endpoint_.description().is_stream;
}

BulkMoves::Extent BulkMoves::extent_of(mob_kind_t kind, const transport::Shape& shape) const {
  Extent extent{kind, shape.total_bytes, 0};
  if (shape.total_bytes == 0) return extent;
  if (shape.kind == MOB_CONTIGUOUS) {
    extent.runs = 1;
  } else if (shape.kind != MOB_SPANS) {
    extent.runs = shape.total_bytes / shape.run_bytes;
  } else {
    extent.runs = std::max(shape.remote_span_count, shape.local_span_count);
    // There may be more. Where so few are too many, nobody asks how many more.
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

WayTrial* BulkMoves::trial_of(const Extent& extent) {
  if (!tries_messages_ || !is_worth(extent) || extent.bytes <= kRushBytes ||
      extent.bytes > kMostTriedBytes) {
    return nullptr;
  }
  const auto size = static_cast<size_t>(std::bit_width((extent.bytes - 1) / kRushBytes)) - 1;
  return &trials_[extent.runs > 1 ? 1 : 0][extent.kind == MOB_GET ? 1 : 0][size];
}

bool BulkMoves::is_worth_waiting_for(const Extent& extent) {
  if (!is_worth(extent)) return false;
  const WayTrial* const trial = trial_of(extent);
  if (trial == nullptr) return true;
  const std::lock_guard lock(trial_mutex_);
  return trial->takes_first();
}

bool BulkMoves::is_tried_out(const Extent& extent) {
  WayTrial* const trial = trial_of(extent);
  if (trial == nullptr) return false;
  const std::lock_guard lock(trial_mutex_);
  return trial->begins();
}

void BulkMoves::note(const Extent& extent, bool in_bulk, uint64_t ns) {
  WayTrial* const trial = trial_of(extent);
  if (trial == nullptr) return;
  const std::lock_guard lock(trial_mutex_);
  trial->add(in_bulk, static_cast<int64_t>(ns));
}

void BulkMoves::note_offered(mob_rank_t target, size_t runs) {
  const std::lock_guard lock(offered_mutex_);
  offered_[target] += runs;
}

void BulkMoves::note_withdrawn(mob_rank_t target, size_t runs) {
  const std::lock_guard lock(offered_mutex_);
  const auto found = offered_.find(target);
  if ((found->second -= runs) == 0) offered_.erase(found);
}

bool BulkMoves::has_room_for_more(mob_rank_t target) {
  const std::lock_guard lock(offered_mutex_);
  const auto found = offered_.find(target);
  return found == offered_.end() || found->second < kMostOffered;
}

void BulkMoves::move(mob_rank_t origin, mob_kind_t kind, std::span<const Run> runs, bool ahead,
                     Done done) {
  const size_t most_ahead = ahead && kind == MOB_GET ? endpoint_.description().ahead_bytes : 0;
  const auto whole = std::make_shared<Whole>(std::move(done), runs.size());
  {
    const std::lock_guard lock(mutex_);
    Queue& queue = waiting_[origin];
    for (const Run& run : runs) {
      const uint64_t id = ++last_id_;
      queue.moves.push_back(id);
      under_way_.emplace(id, Move{origin, kind == MOB_PUT, run.bytes <= most_ahead, run, whole});
    }
    waiting_count_.fetch_add(runs.size(), std::memory_order_seq_cst);
  }
  pump();
}

// The last one tells what became of all.
void BulkMoves::end_run(Whole& whole, mob_status_t status) {
  whole.error.keep(status);
  // Both: who is last sees what the others moved and kept.
  if (whole.left.fetch_sub(1, std::memory_order_acq_rel) == 1) whole.done(whole.error.take());
}

Posted BulkMoves::post(uint64_t id, const Move& move) {
  Link* link = nullptr;
  if (network_.link(move.origin, &link) != MOB_OK) return Posted::kFailed;
  const transport::ofi::PeerId peer = link->peer_id();
  const Run& run = move.run;
  auto* here = reinterpret_cast<void*>(run.remote);
  if (move.reads) return endpoint_.read(peer, here, run.bytes, run.base, run.key, id);
  return move.ahead ? endpoint_.write_ahead(peer, here, run.bytes, run.base, run.key, id)
                    : endpoint_.write(peer, here, run.bytes, run.base, run.key, id);
}

// Needs mutex_. Until there is no room, or what is read has to come first; whether anything went.
bool BulkMoves::post_all(mob_rank_t origin, Queue& queue, std::vector<Outcome>& outcomes) {
  bool any = false;
  while (!queue.moves.empty()) {
    const auto found = under_way_.find(queue.moves.front());
    const auto burst = bursts_.find(origin);
    if (found->second.reads && burst != bursts_.end() && burst->second.bytes >= kBurstBytes) {
      return any;
    }
    // Its end may be told as soon as it is posted: that waits for the lock.
    const Posted posted = post(found->first, found->second);
    if (posted == Posted::kAgain) return any;
    if (posted == Posted::kDone && found->second.reads) {
      Burst& grown = bursts_[origin];
      ++grown.under_way;
      grown.bytes += found->second.run.bytes;
    }
    any = true;
    queue.next_look_ns = 0;
    queue.moves.pop_front();
    waiting_count_.fetch_sub(1, std::memory_order_seq_cst);
    if (posted == Posted::kFailed) {
      outcomes.push_back({std::move(found->second.whole), mob_last_error()});
      under_way_.erase(found);
    } else if (found->second.ahead) {
      outcomes.push_back({std::move(found->second.whole), std::nullopt});
    }
  }
  return any;
}

bool BulkMoves::pump() {
  if (!has_waiting()) return false;
  bool any = false;
  std::vector<Outcome> outcomes;
  std::vector<mob_rank_t> stuck;
  {
    const std::lock_guard lock(mutex_);
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
  for (const Outcome& each : outcomes) {
    end_run(*each.whole,
            each.failure ? base::fail(MOB_ERR_PEER, "%s", each.failure->c_str()) : MOB_OK);
  }
  // Nobody here waits for these. One that turns out to be silent is lost, and its moves fail.
  for (const mob_rank_t origin : stuck) static_cast<void>(network_.is_dead(origin));
  return any;
}

void BulkMoves::ended(uint64_t operation, mob_status_t status, const char* text) {
  std::shared_ptr<Whole> whole;
  mob_rank_t origin = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(operation);
    if (found == under_way_.end()) return;
    origin = found->second.origin;
    const auto burst = bursts_.find(origin);
    if (found->second.reads && --burst->second.under_way == 0) bursts_.erase(burst);
    whole = std::move(found->second.whole);
    under_way_.erase(found);
  }
  // Messages of it may wait for as long as others of its transfers take.
  if (status == MOB_OK) network_.note_heard(origin);
  if (whole == nullptr) return;  // one that went ahead; of an error nobody is left to be told
  if (status != MOB_OK) base::fail(status, "%s", text);
  end_run(*whole, status);
}

}  // namespace mobius::engine
