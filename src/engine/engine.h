// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a process has while it takes part in a job, and the translation of remote addresses.

#include <mobius/memory.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "engine/slab.h"
#include "engine/window.h"
#include "job/job.h"

namespace mobius::engine {

class Engine {
 public:
  // Collective over the job. After an error the object is as before.
  mob_status_t start(const char* const* environment);
  void stop();

  mob_rank_t rank() const { return job_.rank(); }
  mob_rank_t size() const { return job_.size(); }
  job::HostGroup& host() { return job_.host(); }
  Slabs& slabs() { return slabs_; }

  // All processes of a job are on one host, in rank order.
  static mob_rank_t host_index(mob_rank_t rank) { return rank; }

  mob_status_t allocate(size_t bytes, bool valid_call, Slab** slab);
  mob_status_t release(Slab* slab);

  // The address of `part` in its owner.
  uintptr_t owner_address(const Part& part) const {
    return window_.base_of(part.host_index) + part.offset;
  }

  // A pointer here to `bytes` bytes at `remote` in `rank` (0 <= rank < size()); null if they do not
  // lie in one part of it. Also readies the inlined path for that part. Any thread.
  void* reach(mob_rank_t rank, const void* remote, size_t bytes) {
    const mob_rank_t index = host_index(rank);
    const uint64_t offset = reinterpret_cast<uintptr_t>(remote) - window_.base_of(index);
    const Part* part = slabs_.find(offset);
    if (part == nullptr || part->host_index != index) return nullptr;
    const uint64_t within = offset - part->offset;
    if (within > part->bytes || bytes > part->bytes - within) return nullptr;
    if (window_.same_address()) target_remember(rank, window_.base() + part->offset, part->limits);
    return reinterpret_cast<void*>(window_.base() + offset);
  }

  // The error for what reach() refused. `call` names the public function in the text.
  [[gnu::cold]] mob_status_t explain_unreachable(const char* call, mob_rank_t rank,
                                                 const void* remote, size_t bytes) const;

 private:
  // No inlined operation reaches the slab any more.
  void forget(const Slab& slab) const;

  job::Job job_;
  Window window_;
  Slabs slabs_;
};

enum class State : int { kBefore, kLive, kAfter };

// The state of this process, and its engine while kLive.
State state();
Engine& engine();
mob_status_t engine_start();
void engine_stop();

}  // namespace mobius::engine
