// SPDX-License-Identifier: BSD-3-Clause
#include "engine/dynamic/bridges.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/common/peers.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"
#include "engine/team/together.h"

namespace mobius::engine {

job::World& Bridges::world(mob_rank_t first) const { return services_.peers.job().world(first); }

// Opens the memory of the bridge whose header is at an offset of the window.
mob_status_t Bridges::open_memory(mob_rank_t first, uint64_t offset, BridgeHeader** header) {
  Segment& segment = services_.segment;
  const uint64_t start = world(first).memory - job::kWindowOffset;
  // The header tells how many chunks there are.
  const uint64_t known = chunks_of(offset - start + sizeof(BridgeHeader));
  if (const mob_status_t status = segment.window().allow(start, known)) return status;
  *header = static_cast<BridgeHeader*>(segment.local_address(offset));
  return segment.window().allow(start, (*header)->chunks);
}

// Makes this process' end of a bridge. All children have joined: how the members meet depends on
// their processors.
std::unique_ptr<Bridge> Bridges::make_bridge(BridgeHeader& header, mob_rank_t first,
                                             mob_rank_t count) {
  std::vector<mob_rank_t> members(header.numbers(), header.numbers() + header.parents);
  for (mob_rank_t i = 0; i < count; ++i) members.push_back(first + i);
  TeamMap map = TeamMap::of(members);
  const mob_rank_t own = map.rank_of(services_.peers.rank());
  auto made = std::make_unique<Bridge>();
  made->header = &header;
  made->world = first;
  made->parents = header.parents;
  made->children = count;
  made->is_child = own >= header.parents;
  made->all = std::make_unique<Team>(services_, std::move(map), own,
                                     services_.segment.local_address(header.area), header.area);
  return made;
}

mob_status_t Bridges::open_parent(const std::function<mob_status_t(const Bridge&)>& made) {
  const mob_rank_t first = services_.peers.first();
  if (first == 0) return MOB_OK;
  if (services_.peers.job().hosts() > 1) {
    return without_exceptions("mob_init", [&] { return open_parent_on_hosts(); });
  }
  const job::World& own = world(first);
  BridgeHeader* header = nullptr;
  if (const mob_status_t status = open_memory(first, own.bridge, &header)) return status;
  std::unique_ptr<Bridge> bridge = make_bridge(*header, first, services_.peers.size());
  if (made) {
    if (const mob_status_t status = made(*bridge)) return status;
  }
  // Sequentially consistent: also the fence before the checks for sleepers.
  bridge->header->joined.fetch_add(1, std::memory_order_seq_cst);
  for (mob_rank_t i = 0; i < bridge->parents; ++i) {
    services_.waiter.ring_after_fence(bridge->header->numbers()[i]);
  }
  if (own.is_foreign.load(std::memory_order_relaxed) != 0) {
    if (const mob_status_t status = await_opened(first)) return status;
  }
  if (const mob_status_t status = bridge->all->barrier()) return status;
  parent_ = live_.add(std::move(bridge));
  return parent_ != 0 ? MOB_OK : base::fail(MOB_ERR_MEMORY, "no memory for the bridge");
}

// In a process that came through a port: waits until all have come, so that no member of the team
// that accepts fails before it meets them.
mob_status_t Bridges::await_opened(mob_rank_t first) {
  class Opening final : public os::Watch {
   public:
    Opening(Bridges& bridges, mob_rank_t first) : bridges_(bridges), first_(first) {}
    mob_status_t look() override {
      Peers& peers = bridges_.services_.peers;
      for (mob_rank_t rank = first_; rank < first_ + peers.size(); ++rank) {
        if (peers.is_dead(rank)) return died(rank);
      }
      const mob_rank_t acceptor = bridges_.world(first_).spawner;
      return peers.is_dead(acceptor) ? died(acceptor) : MOB_OK;
    }

   private:
    static mob_status_t died(mob_rank_t rank) {
      return base::fail(MOB_ERR_PEER, "rank %d of the other job died before all had joined", rank);
    }

    Bridges& bridges_;
    const mob_rank_t first_;
  } watch(*this, first);
  const std::atomic<job::WorldState>& state = world(first).state;
  const mob_status_t status = services_.waiter.wait_until(
      [&] { return state.load(std::memory_order_acquire) != job::WorldState::kStarted; }, &watch);
  if (status != MOB_OK || state.load(std::memory_order_acquire) == job::WorldState::kJoined) {
    return status;
  }
  return base::fail(MOB_ERR_PEER, "the other job gave up: %s", reason_of(first).c_str());
}

mob_status_t Bridges::merge(const char* call, Bridge& bridge, mob_status_t mine,
                            bool children_first, uint64_t* handle) {
  Team& all = *bridge.all;
  uint64_t made = 0;
  mob_status_t status = together(call, all, [&] {
    // Both sides pass the same order, or one that follows from it: which one counts is decided
    // here.
    std::vector<int> orders;
    if (const mob_status_t heard = all.exchange(children_first ? 1 : 0, &orders)) return heard;
    for (size_t i = 1; i < orders.size() && mine == MOB_OK; ++i) {
      if (orders[i] != orders[0]) {
        mine =
            base::fail(MOB_ERR_ARGUMENT, "%s: ranks %d and %d ask for different orders", call,
                       all.map().world_rank(0), all.map().world_rank(static_cast<mob_rank_t>(i)));
      }
    }
    const int key = bridge.is_child == (orders[0] != 0) ? 0 : 1;
    return teams_.split(call, all, mine, 0, key, &made);
  });
  // A member that dies may have failed it for some: from here on the outcome is the same at all
  // that live.
  status = all.spans_hosts() ? all.agree(status, call) : all.consensus().agree(call, status);
  if (status != MOB_OK) {
    const std::string text = mob_last_error();
    if (made != 0) static_cast<void>(teams_.release(made));
    return base::fail(status, "%s", text.c_str());
  }
  *handle = made;
  return MOB_OK;
}

mob_status_t Bridges::disconnect(const char* call, uint64_t handle) {
  Bridge& bridge = *live_.find(handle);
  if (bridge.is_meeting) return disconnect_meeting(call, handle);
  if (bridge.spans_hosts) return disconnect_on_hosts(call, handle);
  const mob_status_t completed = services_.completion.complete_all(call);
  const mob_status_t met = bridge.all->barrier();
  world(bridge.world).is_connected.store(0, std::memory_order_release);
  const std::unique_ptr<Bridge> ended = live_.remove(handle);
  if (handle == parent_) parent_ = 0;
  BridgeHeader& header = *ended->header;
  const uint64_t memory = header.memory;
  const uint64_t chunks = header.chunks;
  // Both: the last member has seen the others' last use of the memory.
  const bool is_last = header.departed.fetch_add(1, std::memory_order_acq_rel) + 1 ==
                       static_cast<uint32_t>(ended->parents + ended->children);
  if (is_last) free_memory(memory, chunks);
  return met != MOB_OK ? met : completed;
}

bool Bridges::any() {
  bool found = false;
  live_.for_each([&](Bridge&) { found = true; });
  return found;
}

void Bridges::announce_end() {
  live_.for_each([&](Bridge& bridge) {
    if (bridge.is_meeting) return;
    if (bridge.spans_hosts) return announce_end_on_hosts(bridge);
    bridge.header->end_of(bridge.all->rank()).store(1, std::memory_order_release);
  });
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between changes and checks for sleepers
  live_.for_each([&](Bridge& bridge) {
    for (mob_rank_t i = 0; !bridge.is_meeting && i < bridge.all->size(); ++i) {
      services_.waiter.ring_after_fence(bridge.all->map().world_rank(i));
    }
  });
}

void Bridges::await_ends() {
  std::vector<Bridge*> bridges;
  live_.for_each([&](Bridge& bridge) {
    if (!bridge.is_meeting) bridges.push_back(&bridge);
  });
  if (bridges.empty()) return;
  size_t next = 0;        // bridges before it have met
  mob_rank_t member = 0;  // and its members before this one
  const auto all_came = [&] {
    for (; next < bridges.size(); ++next, member = 0) {
      Bridge& bridge = *bridges[next];
      for (; member < bridge.all->size(); ++member) {
        const mob_rank_t rank = bridge.all->map().world_rank(member);
        if (bridge.spans_hosts) {
          if (!has_ended_on_hosts(bridge, rank)) return false;
          continue;
        }
        if (bridge.header->end_of(member).load(std::memory_order_acquire) != 0) continue;
        if (!services_.peers.has_left(rank) && !services_.peers.liveness().is_known_dead(rank)) {
          return false;
        }
      }
    }
    return true;
  };
  // Detects processes that died; never ends the wait.
  struct Finder final : os::Watch {
    explicit Finder(Peers& all) : peers(all) {}
    mob_status_t look() override {
      for (mob_rank_t rank = 0; rank < peers.bound(); ++rank) {
        static_cast<void>(peers.is_dead(rank));
      }
      return MOB_OK;
    }
    Peers& peers;
  } finder(services_.peers);
  static_cast<void>(services_.waiter.wait_until(all_came, &finder));
}

void Bridges::close() {
  live_.for_each([](Bridge& bridge) { bridge.all.reset(); });
}

void Bridges::free_memory(uint64_t offset, uint64_t chunks) {
  services_.segment.release_memory(offset, chunks << kChunkShift);
  services_.segment.chunks().release(offset >> kChunkShift, chunks);
}

}  // namespace mobius::engine
