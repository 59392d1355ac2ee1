// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Spawning processes, and the bridges to them.

#include <mobius/job.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/common/registry.h"
#include "engine/dynamic/bridge.h"
#include "engine/team/team.h"
#include "engine/team/teams.h"
#include "job/port.h"
#include "job/spawn_request.h"
#include "os/file/unix_socket.h"

namespace mobius::engine {

class Bridges {
 public:
  Bridges(const TeamServices& services, Teams& teams) : services_(services), teams_(teams) {}

  // What the process that spawns asks for.
  struct Wish {
    job::SpawnRequest request;
    mob_rank_t count = 0;
    mob_rank_t least = 0;            // 1 or count
    std::vector<int32_t> hosts;      // of each process, in a job on several hosts
    std::vector<mob_rank_t> beside;  // for each process one of this job on its host
  };

  // Starts processes and makes a bridge between the team and them. Collective over the team, with
  // the same outcome at all members that live. `mine`
  // is the outcome of the caller's checks; `wish` counts in the member `root` alone.
  mob_status_t spawn(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                     const Wish& wish, uint64_t* handle);

  // Lets processes of another job join that come to a port of the member `root`, and makes a bridge
  // between the team and them. Collective over the team. `port` and `seconds` count in the root
  // alone; `mine` is the outcome of the caller's checks. An error of `look` ends the wait. If those
  // who come are to meet the team (meeting/far_port.h), `*is_far` says so, there is no bridge, and
  // the root gets their `*visitor`, to whom it has not answered.
  mob_status_t accept(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                      job::Port* port, uint64_t seconds, const std::function<mob_status_t()>& look,
                      uint64_t* handle, job::Visitor* visitor, bool* is_far);

  // In a process that was spawned, or came through a port: makes its end of the bridge. Collective
  // over all processes of the bridge, in mob_init() or mob_connect(). Calls `made`, if there is
  // one, before a process of the other side can send anything.
  mob_status_t open_parent(const std::function<mob_status_t(const Bridge&)>& made);
  // In a meeting of two jobs: makes the bridge between the `parents` processes with the first ranks
  // and the others. Collective over all of them. `made` as above.
  mob_status_t open_meeting(mob_rank_t parents,
                            const std::function<mob_status_t(const Bridge&)>& made);
  // Takes numbers for `count` processes, which are in no world that has joined.
  mob_status_t allot(const char* call, mob_rank_t count, mob_rank_t* first);
  // The bridge to the processes that spawned this one; 0 if there is none.
  uint64_t parent() const { return parent_; }

  bool any();

  // The ports that this process has opened.
  Registry<job::Port>& ports() { return ports_; }

  // The bridge of a handle, which may be any number; null if it is not live.
  Bridge* find(uint64_t handle) const { return live_.find(handle); }

  // A team of all processes of the bridge. Collective over them; all that live get the same
  // outcome, whoever dies meanwhile.
  mob_status_t merge(const char* call, Bridge& bridge, mob_status_t mine, bool children_first,
                     uint64_t* handle);

  // Ends the connection and the bridge. Collective over all of its processes.
  mob_status_t disconnect(const char* call, uint64_t handle);

  // Tells the processes of all bridges that this one has come to its end. All that it has started
  // is complete.
  void announce_end();
  // Waits until the living processes of all bridges have done so, too.
  void await_ends();
  void close();

 private:
  class JoinWatch;

  // What the root of a spawn or an accept tells the others.
  struct Place {
    mob_status_t status = MOB_OK;
    mob_rank_t first = 0;  // of the new processes; 0: no number was given out
    mob_rank_t count = 0;
    uint64_t memory = 0;  // offsets in the window
    uint64_t chunks = 0;
    uint64_t bridge = 0;
    bool is_far = false;  // nothing else is set
  };

  // What the root of a spawn or an accept does first. `*callers` gets connections that end when a
  // process does that has not joined yet.
  using Begin = std::function<mob_status_t(Place* place, std::vector<os::UnixSocket>* callers)>;

  // Of an accept that has failed: the memory, and the connections of processes of the other job
  // that may still look into it. Those close them when they have given up.
  struct Abandoned {
    Place place;
    std::vector<os::UnixSocket> callers;
  };

  mob_status_t grow(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                    const Begin& begin, uint64_t* handle, bool* is_far = nullptr);
  mob_status_t begin_and_meet(const char* call, Team& team, mob_rank_t root, const Begin& begin,
                              Place* place, std::vector<os::UnixSocket>* callers,
                              std::unique_ptr<Bridge>* bridge);
  void abandon(const Place& place, std::vector<os::UnixSocket> callers);
  void free_abandoned();
  mob_status_t admit(const char* call, Team& team, job::Port& port, uint64_t seconds,
                     const std::function<mob_status_t()>& look, job::Visitor* visitor, Place* place,
                     std::vector<os::UnixSocket>* callers);
  mob_status_t await_opened(mob_rank_t first);
  mob_status_t start(const char* call, Team& team, const Wish& wish, Place* place);
  mob_status_t make_memory(const char* call, Team& team, const Wish& wish, Place* place);
  mob_status_t ask(const char* call, const Wish& wish, const Place& place);
  mob_status_t await_started(const char* call, mob_rank_t first);
  mob_status_t await_joined(const char* call, BridgeHeader& header, mob_rank_t first,
                            mob_rank_t count, std::span<const os::UnixSocket> callers);
  mob_status_t open_memory(mob_rank_t first, uint64_t offset, BridgeHeader** header);
  std::unique_ptr<Bridge> make_bridge(BridgeHeader& header, mob_rank_t first, mob_rank_t count);
  void cancel(const Place& place);
  void free_memory(uint64_t offset, uint64_t chunks);
  std::string reason_of(mob_rank_t first) const;
  job::World& world(mob_rank_t first) const;

  // spawn_on_hosts.cpp. There a Place has the memory of the area that this process has made for the
  // members on its host, and their number instead of that of chunks.
  mob_status_t spawn_on_hosts(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                              const Wish& wish, uint64_t* handle);
  mob_status_t start_and_meet_on_hosts(const char* call, Team& team, mob_rank_t root,
                                       const Wish& wish, Place* place,
                                       std::unique_ptr<Bridge>* bridge);
  mob_status_t start_on_hosts(const char* call, Team& team, const Wish& wish, Place* place);
  // The processes of a bridge, the parents first.
  struct Ends {
    std::vector<mob_rank_t> members;
    mob_rank_t parents = 0;
    mob_rank_t child_here = -1;  // the first child on this host; -1: none
    uint64_t area = 0;           // where those on this host meet, as an offset in the window
    bool is_meeting = false;
  };
  mob_status_t find_area(const char* call, Team& side, const std::vector<mob_rank_t>& parents,
                         Place* place, Ends* ends);
  mob_status_t open_on_hosts(const Ends& ends, const Place& place, std::unique_ptr<Bridge>* bridge);
  mob_status_t await_area(const char* call, mob_rank_t leader, mob_rank_t child_here,
                          uint64_t* offset);
  mob_status_t await_joined_on_hosts(const char* call, const Place& place);
  mob_status_t tell_joined(mob_rank_t spawner);
  mob_status_t open_parent_on_hosts();
  job::World& world_here(mob_rank_t child) const;
  void note_joined_here(const Bridge& bridge);
  mob_status_t disconnect_meeting(const char* call, uint64_t handle);
  mob_status_t disconnect_on_hosts(const char* call, uint64_t handle);
  void announce_end_on_hosts(const Bridge& bridge);
  bool has_ended_on_hosts(const Bridge& bridge, mob_rank_t rank);

  const TeamServices& services_;
  Teams& teams_;
  Registry<Bridge> live_;
  Registry<job::Port> ports_;
  std::mutex abandoned_mutex_;
  std::vector<Abandoned> abandoned_;
  uint64_t parent_ = 0;
};

}  // namespace mobius::engine
