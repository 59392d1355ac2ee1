// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>
#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mobius::engine {

class Team;
class TeamMap;

// Lets the members of a team on several hosts meet and exchange data. The collective layer
// implements it. Members are named by their ranks in the whole team.
class TeamBackend {
 public:
  TeamBackend() = default;
  virtual ~TeamBackend() = default;
  TeamBackend(const TeamBackend&) = delete;
  TeamBackend& operator=(const TeamBackend&) = delete;

  // The team of the members on this host.
  virtual Team& local_team() = 0;
  // A member's rank in local_team(); -1 if it is on another host.
  virtual mob_rank_t place_here(mob_rank_t member) const = 0;
  // In a team of two on two hosts, the other member; else -1.
  virtual mob_rank_t only_other() const = 0;

  // Collective over the team, as the functions of Team.
  virtual mob_status_t barrier() = 0;
  virtual mob_status_t exchange(const void* mine, size_t bytes, void* all) = 0;

  // Whether a collective call was given up; the team is unusable then.
  virtual bool is_broken() const = 0;
  // Gives up the call that this member is in for lack of memory, and tells the others.
  virtual void resign() noexcept = 0;
};

// Makes the backends of teams.
class TeamBackends {
 public:
  // `map` outlives the backend. `id` identifies the team on all hosts. `local_team` is the team of
  // the members on this host, by increasing rank.
  virtual std::unique_ptr<TeamBackend> make_backend(const TeamMap& map, mob_rank_t rank,
                                                    uint64_t id,
                                                    std::unique_ptr<Team> local_team) = 0;

 protected:
  ~TeamBackends() = default;
};

// State that a higher layer keeps with a team until the team ends.
class TeamExtension {
 public:
  TeamExtension() = default;
  virtual ~TeamExtension() = default;
  TeamExtension(const TeamExtension&) = delete;
  TeamExtension& operator=(const TeamExtension&) = delete;
};

}  // namespace mobius::engine
