// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/exposed/exposures.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "engine/network/thread_pause.h"
#include "engine/rma/delegation.h"
#include "engine/rma/exposed/remaps.h"
#include "engine/rma/request_path.h"
#include "engine/segment/segment.h"
#include "os/memory/fork_copies.h"
#include "os/memory/heap.h"
#include "transport/cma/cma.h"

namespace mobius::engine {

using base::fail;
using base::in_handler;

namespace {

mob_status_t check_may_move(const char* call) {
  if (!in_handler) return MOB_OK;
  return fail(MOB_ERR_STATE, "%s: a message handler must not move memory", call);
}

}  // namespace

Exposures::Exposures(Segment& segment, LocalHeap& local_heap, Delegation& delegation,
                     Remaps& remaps, RequestPath& requests, Network& network, Progress& progress)
    : segment_(segment),
      delegation_(delegation),
      remaps_(remaps),
      requests_(requests),
      network_(network),
      progress_(progress),
      list_(segment, local_heap) {}

Exposures::~Exposures() { close(); }

void Exposures::open() {
  list_.open(segment_.own_process().exposures);
  os::add_fork_guard({this, [](void* self) { static_cast<Exposures*>(self)->hold_for_fork(); },
                      [](void* self) { static_cast<Exposures*>(self)->go_on_after_fork(); },
                      [](void* self) { static_cast<Exposures*>(self)->stay_alone(); }});
}

void Exposures::close() { os::remove_fork_guard(this); }

// The child's copy of the heap has to be consistent: no thread of the library may write meanwhile.
void Exposures::hold_for_fork() {
  if (in_handler) return;  // the handler may run in one of these threads
  fork_pause_ = std::make_unique<ThreadPause>(network_, progress_);
}

void Exposures::go_on_after_fork() { fork_pause_.reset(); }

// A child is no process of the job: its threads stay stopped.
void Exposures::stay_alone() { static_cast<void>(fork_pause_.release()); }

mob_status_t Exposures::add(uintptr_t address, uint64_t bytes, uint64_t* handle) {
  // An origin that finds the range in the table may ask for operations that only this process can
  // carry out.
  if (const mob_status_t status = requests_.require()) return status;
  transport::allow_attach();
  if (const mob_status_t status = delegation_.require()) return status;
  const std::lock_guard lock(mutex_);
  return add_locked({address, address + bytes, 0}, handle);
}

mob_status_t Exposures::add_moved(uintptr_t address, uint64_t bytes, uint64_t* handle) {
  return add_pages("mob_expose", {address, address + bytes, address}, bytes, false, handle);
}

mob_status_t Exposures::add_heap(uint64_t bytes, uint64_t* handle) {
  constexpr const char* kCall = "mob_expose_heap";
  if (live_.find(heap_) != nullptr) {
    return fail(MOB_ERR_STATE, "%s: the heap was moved already; withdraw that first", kCall);
  }
  uintptr_t start = 0;
  uintptr_t end = 0;
  if (const mob_status_t status = os::grow_heap(bytes, &start, &end)) return status;
  if (const mob_status_t status = delegation_.require()) return status;
  const mob_status_t status = add_pages(kCall, {0, kEverything, start}, end - start, true, handle);
  if (status == MOB_OK) heap_ = *handle;
  return status;
}

mob_status_t Exposures::add_pages(const char* call, const Exposed& exposed, uint64_t bytes,
                                  bool anonymous, uint64_t* handle) {
  if (const mob_status_t status = requests_.require()) return status;
  transport::allow_attach();
  if (const mob_status_t status = check_may_move(call)) return status;
  // Before the lock: the threads end only after the handler that they run, which may need the lock.
  ThreadPause pause(network_, progress_);
  const std::lock_guard lock(mutex_);
  if (const mob_status_t status = add_pages_locked(call, exposed, bytes, anonymous, handle)) {
    return status;
  }
  const mob_status_t status = pause.end();
  if (status != MOB_OK) static_cast<void>(remove_locked(*handle));
  return status;
}

mob_status_t Exposures::add_pages_locked(const char* call, const Exposed& exposed, uint64_t bytes,
                                         bool anonymous, uint64_t* handle) {
  if (const mob_status_t status = remaps_.add(call, exposed.moved, bytes, anonymous)) {
    return status;
  }
  mob_status_t status = MOB_OK;
  try {
    status = add_locked(exposed, handle);
  } catch (const std::bad_alloc&) {
    status = fail(MOB_ERR_MEMORY, "%s: this process has no memory left", call);
  }
  if (status != MOB_OK) static_cast<void>(remaps_.remove(exposed.moved));
  return status;
}

mob_status_t Exposures::add_locked(const Exposed& exposed, uint64_t* handle) {
  // At most as many ranges as exposures. Fewer need no more room, so that removing one cannot fail.
  if (const mob_status_t status = list_.reserve(count_ + 1)) return status;
  std::vector<ListedRange> ranges;
  ranges.reserve(count_ + 1);
  const uint64_t added = live_.add(std::make_unique<Exposed>(exposed));
  if (added == 0) return fail(MOB_ERR_MEMORY, "mob_expose: too much is exposed already");
  ++count_;
  publish(std::move(ranges));
  *handle = added;
  return MOB_OK;
}

mob_status_t Exposures::remove(uint64_t handle) {
  if (has_moved(handle)) {
    if (const mob_status_t status = check_may_move("mob_withdraw")) return status;
  }
  {
    const std::lock_guard lock(mutex_);
    Exposed* exposed = live_.find(handle);
    const bool stays = exposed == nullptr || exposed->moved == 0;
    if (stays || remaps_.leave(exposed->moved)) {
      if (!stays) exposed->moved = 0;
      return remove_locked(handle);
    }
  }
  ThreadPause pause(network_, progress_);
  const std::lock_guard lock(mutex_);
  if (const mob_status_t status = remove_locked(handle)) return status;
  if (pause.end() != MOB_OK)
    base::log(base::LogLevel::kError, "mob_withdraw: %s", mob_last_error());
  return MOB_OK;
}

mob_status_t Exposures::remove_locked(uint64_t handle) {
  const Exposed* exposed = live_.find(handle);
  if (exposed == nullptr) {
    return fail(MOB_ERR_HANDLE, "mob_withdraw: not exposed (withdrawn before, or never exposed)");
  }
  // No step may fail halfway: memory that can no longer be withdrawn would stay a target forever.
  std::vector<ListedRange> ranges;
  ranges.reserve(count_);
  if (exposed->moved != 0) {
    if (const mob_status_t status = remaps_.remove(exposed->moved)) return status;
  }
  live_.remove(handle);
  --count_;
  publish(std::move(ranges));
  delegation_.forget_memory();
  return MOB_OK;
}

// `ranges` has room for all live exposures.
void Exposures::publish(std::vector<ListedRange> ranges) {
  live_.for_each([&](const Exposed& each) { ranges.push_back({each.start, each.end, 0}); });
  std::ranges::sort(ranges, {}, &ListedRange::start);
  size_t merged = 0;
  for (const ListedRange& range : ranges) {
    if (merged > 0 && range.start <= ranges[merged - 1].end) {
      ranges[merged - 1].end = std::max(ranges[merged - 1].end, range.end);
    } else {
      ranges[merged++] = range;
    }
  }
  ranges.resize(merged);
  list_.publish(ranges);
}

bool Exposures::find_and_cover(mob_rank_t rank, uintptr_t address, size_t bytes,
                               ListedRange* found) {
  const mob_rank_t index = segment_.peers().host_index(rank);
  if (index < 0) return false;
  const RangeTable& table = segment_.process(index).exposures;
  uint64_t version = 0;
  if (!find_range(segment_, rank, table, address, found, &version)) {
    *found = {};
    return false;
  }
  return bytes <= found->end - address;
}

}  // namespace mobius::engine
