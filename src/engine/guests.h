// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Engines by which this process takes part in other jobs, besides its own: it is their *guest*
// after mob_connect(). A guest's engine has joined the segment of the other job, as a spawned
// process does, so every component works there as it does at home. Two things differ. The other
// job gives the process numbers of its own, so the numbers that the program uses are translated
// where it calls the library, and where handlers tell it a source. And each call has to find the
// engine that it is for: by the rank it names, by the handle, or by the address.
//
// Two jobs of which one is on several hosts, or that are on different hosts, have no segment that
// all could join. Both teams are then guests of a third job that they found for the purpose, their
// *meeting* (job/meeting/far_port.h).
//
// Only processes that are ranks themselves can be guests, not ranks that are threads.

#include <mobius/job.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/network/thread_pause.h"
#include "job/bootstrap/launched_job.h"
#include "job/port.h"

namespace mobius::engine {

struct Guest {
  Guest() = default;
  ~Guest();
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  // Whether the program's number is that of a process of the other job; or of a process that is a
  // guest there, too, and the address is one of the other job's window there. `*inner`: its number
  // in the other job.
  bool names(mob_rank_t rank, mob_rank_t* inner) const;
  bool holds(mob_rank_t rank, const void* address, mob_rank_t* inner) const;
  // The same for this process.
  bool holds(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - base < bytes;
  }

  // The team is `own`; its first member has that number there, and all there have lower ones than
  // `numbers_there`.
  void name_own(const Team& team, mob_rank_t first_there, mob_rank_t numbers_there);
  // When the engine has joined.
  mob_status_t find_windows();

  std::unique_ptr<Engine> engine;
  // Processes of the other job have the program's numbers from `first` on, in this order.
  mob_rank_t first = 0;
  std::vector<mob_rank_t> others;
  // Of the processes that are guests together: the program's numbers. Theirs in the other job are
  // consecutive.
  std::vector<mob_rank_t> own;
  mob_rank_t own_first = 0;
  std::vector<mob_rank_t> inner_numbers;  // by the program's number of one of them; -1: is none
  // By number in the other job: the program's.
  std::vector<mob_rank_t> public_numbers;
  // What the program has exposed: the handle in the guest's engine, by the one that it got.
  std::map<uint64_t, uint64_t> exposed;
  uintptr_t base = 0;  // of the other job's window
  size_t bytes = 0;
  std::vector<WindowPlace> windows;  // where each of `own` has it
  bool is_meeting = false;
  job::Secret id{};                  // of a meeting, the same in all its processes
  std::unique_ptr<job::JobTie> tie;  // to the other job, if a launcher started one for the other
};

// The guests of this process, by the tag of their handles; the first has none.
inline constexpr size_t kMostGuests = 15;
extern std::array<std::atomic<Guest*>, kMostGuests + 1> guests;
extern std::atomic<int> guests_live;
extern std::atomic<size_t> guests_end;  // all tags in use are lower
// Whether there ever was one: some numbers may name processes of jobs that are gone.
extern std::atomic<bool> guests_ever;

inline bool any_guests() { return guests_live.load(std::memory_order_relaxed) != 0; }

// An engine, and a process' number in it.
struct EngineOf {
  Engine& engine;
  mob_rank_t rank;
};

EngineOf find_engine_of(mob_rank_t rank, const void* address);
Engine& find_engine_of_handle(uint64_t handle);
Engine& find_engine_at(const void* address);

// For a rank of the job, or of another that a bridge connects.
inline EngineOf engine_of(mob_rank_t rank, const void* address = nullptr) {
  if (!any_guests()) [[likely]] {
    return {engine(), rank};
  }
  return find_engine_of(rank, address);
}
// Whether the program's number, which is none of this job's, names a process of another job.
bool is_of_other_job(mob_rank_t rank);
// For a handle, which may be any number.
inline Engine& engine_of_handle(uint64_t handle) {
  return tag_of_handle(handle) == 0 ? engine() : find_engine_of_handle(handle);
}
template <typename Object>
Engine& engine_of_object(Object* handle) {
  return engine_of_handle(reinterpret_cast<uintptr_t>(handle));
}
// For memory of this process.
inline Engine& engine_at(const void* address) {
  return any_guests() ? find_engine_at(address) : engine();
}
// Completes what this process has under way in the jobs that it is in, but for that of `here`: a
// barrier completes all operations of its callers, and looks after those of its own team's job.
[[gnu::cold]] mob_status_t complete_in_others(const char* call, const Engine& here);
inline mob_status_t complete_elsewhere(const char* call, const Engine& here) {
  return any_guests() ? complete_in_others(call, here) : MOB_OK;
}

// Calls visit(engine) for the engine of each guest.
template <typename Visit>
void for_each_guest(Visit visit) {
  if (!any_guests()) return;
  for (const std::atomic<Guest*>& each : guests) {
    Guest* const guest = each.load(std::memory_order_acquire);
    if (guest != nullptr) visit(*guest->engine);
  }
}

// What the program exposes is exposed in all jobs that this process is in. `handle` is the
// program's.
mob_status_t expose_to_guests(uint64_t handle, uintptr_t address, uint64_t bytes);
void withdraw_from_guests(uint64_t handle);

// While an object of this class lives, the library runs no threads in other jobs (thread_pause.h).
class GuestsPause {
 public:
  GuestsPause();
  // Restarts the threads. A thread that cannot be started is a line in the log: until the guest
  // ends, this process then serves that job only while it is in a call of the library.
  ~GuestsPause();
  GuestsPause(const GuestsPause&) = delete;
  GuestsPause& operator=(const GuestsPause&) = delete;

 private:
  // No guest ends, and none is added, meanwhile.
  std::unique_lock<std::mutex> lock_;
  std::vector<std::unique_ptr<ThreadPause>> pauses_;
};

// Joins the job at a port, by its text or name, as the guests of this job that a team has. The
// bridge is one of the guest's engine. Collective over the team; `where` and `seconds` count in the
// member `root` alone, `mine` is the outcome of the caller's checks.
mob_status_t connect_to_port(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                             std::string_view where, uint64_t seconds, uint64_t* handle);
// Lets the processes of another job join that come to a port of the member `root`, or meets them.
// As connect_to_port(); `bridges` are those of the team's engine, and an error of `look` ends the
// wait.
mob_status_t accept_at_port(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                            Bridges& bridges, job::Port* port, uint64_t seconds, uint64_t* handle,
                            const std::function<mob_status_t()>& look = {});
// In a job on several hosts that cannot grow: has the launcher start processes as a job of their
// own, which connects with the team. As Bridges::spawn(). Each of them calls connect_to_parent() in
// mob_init(), which makes its end of the bridge.
mob_status_t spawn_by_launcher(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                               const Bridges::Wish& wish, uint64_t* handle);
mob_status_t connect_to_parent();
extern std::atomic<uint64_t> parent_by_launcher;  // that end; 0 if there is none
// Ends the bridge of a guest, and the guest. Collective over all processes of the bridge.
mob_status_t disconnect_guest(const char* call, uint64_t handle);
// The engines of all guests. All processes have those that they share in the same order.
std::vector<Engine*> guest_engines();
// Ends a guest, whose engine has started to leave; `all_met` as in Engine::stop().
void remove_guest(Engine& engine, bool all_met);
// In a child of fork(): nothing of the guests may be used or freed.
void forget_guests();

}  // namespace mobius::engine
