// SPDX-License-Identifier: BSD-3-Clause
// Processes that ranks spawn. Until all processes of a world have joined, the end of one of them is
// an error of the call that spawned them, and ends nothing but the others of its world.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/launch/process/limits.h"
#include "job/launch/supervisor.h"
#include "job/worlds.h"

namespace mobius::launch {
namespace {

using job::World;
using job::WorldState;

// Longer requests than any environment can be.
constexpr uint64_t kMostRequestBytes = uint64_t{64} << 20;

bool read_at(int segment, uint64_t offset, void* to, size_t bytes) {
  return pread(segment, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

}  // namespace

void Supervisor::on_worlds() {
  for (const mob_rank_t first : rendezvous_.take_worlds()) {
    const Rendezvous::Segment& segment = rendezvous_.worlds();
    const mob_rank_t numbers = segment.block->header.numbers.load(std::memory_order_acquire);
    if (first < plan_.options.processes || first >= numbers || numbers > job::kMostLocalPeers) {
      continue;
    }
    const WorldState state = world(first).state.load(std::memory_order_acquire);
    const bool is_known = first < static_cast<mob_rank_t>(ranks_.size()) &&
                          ranks_[static_cast<size_t>(first)].world == first;
    if (state == WorldState::kAsked && !is_known) accept_spawn(first);
    if (state == WorldState::kFailed && is_known) give_up(first, MOB_ERR_PEER, "");
  }
}

void Supervisor::accept_spawn(mob_rank_t first) {
  const World& record = world(first);
  const int segment = rendezvous_.worlds().descriptor;
  const mob_rank_t end = first + record.size;
  if (record.size < 1 || end > job::kMostLocalPeers) return;
  ranks_.resize(std::max(ranks_.size(), static_cast<size_t>(end)));
  output_.grow(end);
  rendezvous_.grow(end);
  for (mob_rank_t rank = first; rank < end; ++rank) {
    ranks_[static_cast<size_t>(rank)].world = first;
  }
  Spawn spawn{first, first, end, {}};
  job::SpawnMemory head{};
  std::string text;
  bool is_read = read_at(segment, record.memory, &head, sizeof head) &&
                 head.request_bytes <= kMostRequestBytes;
  if (is_read) {
    text.resize(head.request_bytes);
    is_read = read_at(segment, record.memory + sizeof head, text.data(), text.size()) &&
              job::SpawnRequest::decode(text, &spawn.request) && !spawn.request.arguments.empty();
  }
  if (!is_read) {
    give_up(first, MOB_ERR_SYSTEM, "the launcher cannot read the request");
    return;
  }
  if (const mob_status_t status = place(first)) {
    give_up(first, status, mob_last_error());
    return;
  }
  if (null_input_ < 0) null_input_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  static_cast<void>(raise_descriptor_limit(static_cast<uint64_t>(end), Rendezvous::kMostUnknown));
  spawning_.push_back(std::move(spawn));
}

// On virtual hosts each process is to be on one of them.
mob_status_t Supervisor::place(mob_rank_t first) {
  if (!rendezvous_.has_virtual_hosts()) return MOB_OK;
  std::vector<mob_rank_t> parents;
  std::vector<int32_t> hosts;
  if (!job::read_members(rendezvous_.worlds().descriptor, world(first), &parents, &hosts)) {
    return base::fail(MOB_ERR_SYSTEM, "the launcher cannot read the request");
  }
  return rendezvous_.place_world(first, hosts);
}

// As the end of "on …".
std::string Supervisor::host_of(mob_rank_t rank) const {
  const int32_t host = rendezvous_.virtual_host_of(rank);
  return host < 0 ? "this host" : fmt::format("virtual host {}", host);
}

void Supervisor::start_spawned() {
  if (phase_ != Phase::kRunning) spawning_.clear();
  for (int i = 0; i < kStartsPerTurn && !spawning_.empty(); ++i) {
    Spawn& spawn = spawning_.front();
    if (world(spawn.world).state.load(std::memory_order_acquire) != WorldState::kAsked) {
      spawning_.pop_front();  // given up
      continue;
    }
    std::vector<std::string> changes = spawn.request.environment;
    changes.push_back(std::string(job::kJobVariable) + "=" + rendezvous_.key());
    changes.push_back(std::string(job::kRankVariable) + "=" + std::to_string(spawn.next));
    std::vector<char*> environment;
    for (std::string& entry : changes) environment.push_back(entry.data());
    environment.push_back(nullptr);
    const Start how{spawn.request.path.c_str(), spawn.request.arguments, environment.data(),
                    spawn.request.folder.c_str(), spawn.world};
    // Without descriptors the launcher could not let the processes join.
    const Limit files = descriptor_limit();
    std::string problem;
    if (static_cast<uint64_t>(running_) >= files.processes) {
      problem = files.reason;
    } else if (const os::Spawned spawned = start(spawn.next, how); spawned.pid <= 0) {
      problem = fmt::format("{} ({})", std::strerror(spawned.error), spawned.step);
    }
    if (problem.empty()) {
      ++spawn.next;
    } else {
      problem = fmt::format("process {} of {}, {}, could not be started on {}: {}",
                            spawn.next - spawn.world, spawn.end - spawn.world, spawn.request.path,
                            host_of(spawn.next), problem);
    }
    if (spawn.next == spawn.end || !problem.empty()) {
      end_start(spawn, problem);
      spawning_.pop_front();
    }
  }
}

// All that can be started have been.
void Supervisor::end_start(const Spawn& spawn, const std::string& problem) {
  World& record = world(spawn.world);
  const mob_rank_t count = spawn.next - spawn.world;
  if (!problem.empty() && count < std::max(record.least, 1)) {
    give_up(spawn.world, MOB_ERR_SYSTEM, problem);
    return;
  }
  rendezvous_.start_world(spawn.world, count);
  record.size = count;
  job::change_state(record, WorldState::kAsked, WorldState::kStarted);
}

// Ends the processes of a world that has not joined. False if it has.
bool Supervisor::give_up(mob_rank_t first, mob_status_t failure, const std::string& reason) {
  World& record = world(first);
  WorldState state = record.state.load(std::memory_order_acquire);
  // The process that spawns may change the state at the same time: to kJoined, or to kFailed when
  // it finds the same death.
  while (state == WorldState::kAsked || state == WorldState::kStarted) {
    job::write_reason(rendezvous_.worlds().descriptor, record, reason);
    record.failure = failure;
    if (job::change_state(record, state, WorldState::kFailed)) break;
    state = record.state.load(std::memory_order_acquire);
  }
  if (state == WorldState::kJoined || state == WorldState::kEnded) return false;
  rendezvous_.fail_world(first);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (rank.world != first) continue;
    rank.given_up = true;
    rank.lost_at = kNever;
    signal_rank(static_cast<mob_rank_t>(i), SIGKILL);
    // Those that wait for it look at its slot.
    rendezvous_.declare_dead(static_cast<mob_rank_t>(i));
  }
  note_ended(first);
  return true;
}

bool Supervisor::give_up_joining(mob_rank_t rank, std::string_view what) {
  const mob_rank_t first = ranks_[static_cast<size_t>(rank)].world;
  if (first == 0 || interrupt_ != 0 || rendezvous_.member(rank).aborted) return false;
  return give_up(first, MOB_ERR_PEER,
                 fmt::format("{} {} before all had joined", describe(rank), what));
}

// Tells the process that waits for it when the processes of a world that was given up have ended.
void Supervisor::note_ended(mob_rank_t first) {
  for (const Rank& rank : ranks_) {
    if (rank.world == first && rank.pid != 0) return;
  }
  job::change_state(world(first), WorldState::kFailed, WorldState::kEnded);
}

}  // namespace mobius::launch
