// SPDX-License-Identifier: BSD-3-Clause
#include "engine/exposures.h"

#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/message_reader.h"

namespace mobius::engine {

using base::fail;

namespace {

mob_status_t check_may_move(const char* call) {
  if (!in_handler) return MOB_OK;
  return fail(MOB_ERR_STATE, "%s: a message handler must not move memory", call);
}

// What the progress thread works with may lie on the pages that move: it ends, and begins again.
class ProgressPause {
 public:
  explicit ProgressPause(Progress& progress) : progress_(progress), ran_(progress.pause()) {}
  ~ProgressPause() { static_cast<void>(end()); }
  ProgressPause(const ProgressPause&) = delete;
  ProgressPause& operator=(const ProgressPause&) = delete;

  mob_status_t end() { return std::exchange(ran_, false) ? progress_.require() : MOB_OK; }

 private:
  Progress& progress_;
  bool ran_;
};

}  // namespace

void Exposures::open() { list_.open(engine_.process(engine_.host().index()).exposures); }

mob_status_t Exposures::add(uintptr_t address, uint64_t bytes, bool remap, uint64_t* handle) {
  // Whoever finds the range in the table may ask for what only this process can do.
  if (const mob_status_t status = engine_.served().require()) return status;
  allow_attach();
  if (!remap) {
    const std::lock_guard lock(mutex_);
    return add_locked({address, address + bytes, false}, handle);
  }
  if (const mob_status_t status = check_may_move("mob_expose")) return status;
  // Before the lock: the thread ends only after the handler that it runs, which may need the lock.
  ProgressPause pause(engine_.progress());
  const std::lock_guard lock(mutex_);
  if (const mob_status_t status = add_remapped(address, bytes, handle)) return status;
  const mob_status_t status = pause.end();
  if (status != MOB_OK) static_cast<void>(remove_locked(*handle));
  return status;
}

mob_status_t Exposures::add_remapped(uintptr_t address, uint64_t bytes, uint64_t* handle) {
  if (const mob_status_t status = engine_.remaps().add(address, bytes)) return status;
  const mob_status_t status = add_locked({address, address + bytes, true}, handle);
  if (status != MOB_OK) static_cast<void>(engine_.remaps().remove(address));
  return status;
}

mob_status_t Exposures::add_locked(const Exposed& exposed, uint64_t* handle) {
  // As many ranges as there are exposures at most; fewer need no more room, so that removing one
  // cannot fail.
  if (const mob_status_t status = list_.reserve(count_ + 1)) return status;
  const uint64_t added = live_.add(std::make_unique<Exposed>(exposed));
  if (added == 0) return fail(MOB_ERR_MEMORY, "mob_expose: too much is exposed already");
  ++count_;
  publish();
  *handle = added;
  return MOB_OK;
}

mob_status_t Exposures::remove(uint64_t handle) {
  const Exposed* exposed = live_.find(handle);
  if (exposed == nullptr || !exposed->is_remapped) {
    const std::lock_guard lock(mutex_);
    return remove_locked(handle);
  }
  if (const mob_status_t status = check_may_move("mob_withdraw")) return status;
  ProgressPause pause(engine_.progress());
  const std::lock_guard lock(mutex_);
  const mob_status_t status = remove_locked(handle);
  return status != MOB_OK ? status : pause.end();
}

mob_status_t Exposures::remove_locked(uint64_t handle) {
  const Exposed* exposed = live_.find(handle);
  if (exposed == nullptr) {
    return fail(MOB_ERR_HANDLE, "mob_withdraw: not exposed (withdrawn before, or never exposed)");
  }
  if (exposed->is_remapped) {
    if (const mob_status_t status = engine_.remaps().remove(exposed->start)) return status;
  }
  live_.remove(handle);
  --count_;
  publish();
  return MOB_OK;
}

// Where only ancestors may attach (Yama), a process can allow others.
void Exposures::allow_attach() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

void Exposures::publish() {
  std::vector<ListedRange> ranges;
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

bool Exposures::covers(mob_rank_t rank, uintptr_t address, size_t bytes) {
  if (!engine_.is_here(rank)) return false;
  const RangeTable& table = engine_.process(engine_.host_index(rank)).exposures;
  ListedRange found{};
  uint64_t version = 0;
  return find_range(engine_, rank, table, address, &found, &version) &&
         bytes <= found.end - address;
}

}  // namespace mobius::engine
