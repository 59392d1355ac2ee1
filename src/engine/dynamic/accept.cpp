// SPDX-License-Identifier: BSD-3-Clause
// How a team lets processes of another job join. They get numbers and a world as spawned ones do,
// and join by the descriptor of the segment. One member, the root, has the port; the others wait
// for the outcome.

#include <poll.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/common/peers.h"
#include "engine/dynamic/bridges.h"
#include "engine/progress/waiter.h"
#include "os/sync/futex.h"

namespace mobius::engine {

using base::fail;
using job::World;
using job::WorldState;

mob_status_t Bridges::accept(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                             job::Port* port, uint64_t seconds,
                             const std::function<mob_status_t()>& look, uint64_t* handle,
                             job::Visitor* visitor, bool* is_far) {
  return grow(
      call, team, root, mine,
      [&](Place* place, std::vector<os::UnixSocket>* callers) {
        return without_exceptions(
            call, [&] { return admit(call, team, *port, seconds, look, visitor, place, callers); });
      },
      handle, is_far);
}

mob_status_t Bridges::admit(const char* call, Team& team, job::Port& port, uint64_t seconds,
                            const std::function<mob_status_t()>& look, job::Visitor* far,
                            Place* place, std::vector<os::UnixSocket>* callers) {
  job::PortWait wait{os::now_ns() + seconds * 1'000'000'000, [&] { services_.waiter.poll(); },
                     [&] {
                       for (mob_rank_t member = 0; member < team.size(); ++member) {
                         const mob_rank_t rank = team.map().world_rank(member);
                         if (!services_.peers.has_gone(rank)) continue;
                         return fail(MOB_ERR_PEER, "%s: rank %d of the team %s", call, rank,
                                     services_.peers.fate_of_lost(rank).c_str());
                       }
                       return look ? look() : MOB_OK;
                     }};
  job::Visitor visitor;
  if (const mob_status_t status = port.accept(call, wait, &visitor)) return status;
  if (visitor.is_far) {
    place->is_far = true;
    *far = std::move(visitor);
    return MOB_OK;
  }
  // The others of the other job come at once, or something is wrong with them.
  wait.end_ns =
      os::now_ns() + services_.settings.number(base::SettingId::kJoinSeconds) * 1'000'000'000;
  mob_rank_t first = 0;
  Wish wish;
  wish.count = visitor.count;
  mob_status_t status = allot(call, visitor.count, &first);
  if (status == MOB_OK) {
    place->first = first;
    status = make_memory(call, team, wish, place);
  }
  if (status != MOB_OK) {
    const std::string text = mob_last_error();
    job::Port::refuse(port.key(), visitor, text.c_str());
    place->first = 0;
    return fail(status, "%s", text.c_str());
  }
  World& record = world(first);
  record.size = visitor.count;
  record.least = visitor.count;
  record.spawner = services_.peers.rank();
  record.parent = services_.peers.first();
  record.memory = job::kWindowOffset + place->memory;
  record.bridge = place->bridge;
  record.failure = MOB_ERR_PEER;
  record.is_foreign.store(1, std::memory_order_relaxed);
  record.is_connected.store(1, std::memory_order_relaxed);
  // Release: they see the fields above.
  record.state.store(WorldState::kStarted, std::memory_order_release);
  place->count = visitor.count;
  return port.admit(call, wait, visitor, services_.peers.host().segment(), first, team.size(),
                    callers);
}

void Bridges::abandon(const Place& place, std::vector<os::UnixSocket> callers) {
  const std::lock_guard lock(abandoned_mutex_);
  abandoned_.push_back({place, std::move(callers)});
}

// Gives the memory of failed accepts back whose processes have all given up, or died.
void Bridges::free_abandoned() {
  const std::lock_guard lock(abandoned_mutex_);
  std::erase_if(abandoned_, [&](Abandoned& each) {
    std::erase_if(each.callers, [](const os::UnixSocket& caller) {
      pollfd end{caller.descriptor(), POLLIN, 0};
      return poll(&end, 1, 0) > 0;  // nothing else comes but the end
    });
    if (!each.callers.empty()) return false;
    free_memory(each.place.memory, each.place.chunks);
    return true;
  });
}

}  // namespace mobius::engine
