// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Joins a job: through the launcher under `mobius run`, through PMIx under a launcher that speaks
// it, by a common address under another launcher of an MPI library, otherwise as a job of one. How
// the processes find each other is in job/bootstrap.

#include <mobius/job.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/settings.h"
#include "job/bootstrap/directory.h"
#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/mpi_directory.h"
#include "job/bootstrap/mpi_launcher.h"
#include "job/bootstrap/proof.h"
#include "job/child_starter.h"
#include "job/host_group.h"
#include "job/layout.h"
#include "job/spawn_request.h"
#include "os/file/unix_socket.h"
#include "os/sync/waiter.h"

namespace mobius::job {

// How long waits spin and yield, given how the processes of this machine fit on its processors and
// how many hosts the job has.
os::WaitPolicy wait_policy(const base::Settings& settings, os::Room room, mob_rank_t hosts);

// The place of a process in a meeting (meeting/far_port.h).
struct MeetingSeat {
  std::unique_ptr<Directory> directory;
  Secret secret{};
  mob_rank_t rank = 0;
  mob_rank_t size = 0;
  // Of the process in its own job: the number of its host, if the hosts are virtual; else 0.
  int32_t virtual_host = 0;
  bool is_virtual = false;
};

class Job {
 public:
  // Finds out how this process was started and joins. Blocks until all processes of the host have
  // joined.
  mob_status_t join(const base::Settings& settings);

  // Joins with the processes of a communicator of the MPI that runs in this process; null means all
  // of its processes. Blocks until they have joined.
  mob_status_t join_mpi(const base::Settings& settings, const mpi::Communicator* communicator);

  // Joins as one of several threads of this process that share `segment` and its control block. The
  // caller keeps both. `directory`: only where the block is of a job on several hosts.
  mob_status_t join_threads(const base::Settings& settings, int segment, ControlBlock& block,
                            mob_rank_t rank, std::unique_ptr<Directory> directory = nullptr);

  // Joins another job as one of the processes that it admits through a port (port.h), besides the
  // job of this process. Owns `segment` from now on.
  mob_status_t join_as_guest(const base::Settings& settings, int segment, mob_rank_t number,
                             bool pid_is_shared);

  // Joins the meeting of two teams of different jobs, besides the job of this process.
  mob_status_t join_meeting(const base::Settings& settings, MeetingSeat seat);

  // Tells the launcher that this process leaves in order. Call after the last collective step.
  void leave();

  // Tells the others that this process starts no more operations. Call before leave().
  void start_leaving();

  // Leaves after a failure, without Goodbye. The launcher then ends the job, because others may be
  // waiting for this process.
  void abandon();

  // The number of this process, which names it in all processes of the job.
  mob_rank_t rank() const { return rank_; }
  // The processes that were started together with this one, or by one spawn. Their numbers are
  // consecutive.
  mob_rank_t size() const { return size_; }
  mob_rank_t first() const { return first_; }
  // All numbers in use are lower; processes may be spawned at any time.
  mob_rank_t bound() const {
    if (hosts_ == 1) return host_.bound();
    // Acquire: the places of lower numbers are known.
    return host_.control().header.job_numbers.load(std::memory_order_acquire);
  }
  // All numbers that will ever be in use are lower.
  mob_rank_t most() const { return can_grow() ? kMostLocalPeers : size_; }

  // The same for the processes of this host.
  mob_rank_t most_here() const { return can_grow() ? kMostLocalPeers : host_.size(); }

  // Whether processes can be spawned, as far as the hosts of the job matter.
  bool can_grow() const {
    return hosts_ == 1 || (directory_ != nullptr && directory_->worlds() != nullptr);
  }
  // Whether the launcher can start processes for it as a job of their own, and has them started
  // (bootstrap/directory.h).
  bool launches() const { return directory_ != nullptr && directory_->launches(); }
  // The record of a spawn, by the number of its first process. On several hosts this is the one of
  // the whole job.
  World& world(mob_rank_t first) const {
    return hosts_ == 1 ? host_.control().world(first) : directory_->worlds()->world(first);
  }
  // The descriptor of the segment in which the records' memory is.
  int worlds_segment() const {
    return hosts_ == 1 ? host_.segment() : directory_->worlds_segment();
  }

  // Whether `mobius run` starts the processes of this job, spawned ones too.
  bool has_launcher() const { return launcher_secret_.has_value(); }
  // Whoever starts the processes of a world looks at its record, which asks for them: the launcher,
  // or this process. `*reason` says why it fails.
  mob_status_t start_world(mob_rank_t world, const SpawnRequest& request, std::string* reason);
  // The processes of a world that this process spawned have joined.
  void settle_world(mob_rank_t world);
  // Ends the processes of a world that this process spawned and whose record says so. Returns when
  // they have ended, or after an error.
  mob_status_t end_world(mob_rank_t world);

  // Hosts are numbered from 0.
  int32_t hosts() const { return hosts_; }
  int32_t own_host() const { return own_host_; }
  Place place_of(mob_rank_t rank) const {
    return hosts_ == 1 ? Place{0, rank} : decode(places_[rank]);
  }
  // The rank's number among the processes of this host; -1 if it is on another one.
  mob_rank_t index_here(mob_rank_t rank) const {
    if (hosts_ == 1) [[likely]] {
      return rank;
    }
    const Place place = decode(places_[rank]);
    return place.host == own_host_ ? place.index : -1;
  }
  // The rank of a process of this host.
  mob_rank_t rank_at(mob_rank_t index) const { return hosts_ == 1 ? index : ranks_[index]; }
  // The lowest rank of this process' world on a host; -1 if it has none there.
  mob_rank_t leader_of(int32_t host) const { return leaders_[static_cast<size_t>(host)]; }

  // Never null in a job of several hosts.
  Directory* directory() const { return directory_.get(); }
  // Known only to processes of the job; zeros in a job of one host.
  const std::array<unsigned char, 16>& secret() const { return secret_; }
  // The hosts are parts of this machine (mobius run --virtual-hosts).
  bool is_virtual() const { return is_virtual_; }
  // It is a meeting of processes that have jobs of their own.
  bool is_meeting() const { return is_meeting_; }
  HostGroup& host() { return host_; }
  // Sets how long waits of this process spin. Call when all processes of the host have joined, and
  // when others have. `others`: how this process waits in another job that it is in, or null.
  void settle_waiting(const base::Settings& settings, const os::WaitPolicy* others = nullptr);
  const HostGroup& host() const { return host_; }

 private:
  mob_status_t join_alone(const base::Settings& settings);
  mob_status_t join_launcher(const base::Settings& settings, const Secret& secret, mob_rank_t rank);
  mob_status_t greet_launcher(const Secret& secret, mob_rank_t rank, Nonce* nonce, Message* answer,
                              int* descriptor, bool* dropped);
  mob_status_t join_foreign(const base::Settings& settings);
  mob_status_t join_pmix(const base::Settings& settings);
  mob_status_t join_others(const base::Settings& settings, mob_rank_t rank, mob_rank_t size,
                           std::span<const mob_rank_t> neighbours);
  mob_status_t join_mpi_launch(const base::Settings& settings, const MpiLaunch& launch);
  mob_status_t enter(const base::Settings& settings, int segment, mob_rank_t rank,
                     bool pid_is_shared, ControlBlock* block = nullptr);
  void tell_launcher(MessageType type);
  mob_status_t tell_launcher_of(mob_rank_t world);
  void close();
  mob_status_t find_place(ControlBlock& block, mob_rank_t rank, mob_rank_t* index);
  mob_status_t find_world(ControlBlock& block, mob_rank_t rank, mob_rank_t index);
  void find_leaders();
  mob_status_t receive_directory(const base::Settings& settings, const Secret& secret,
                                 const Nonce& nonce, bool pid_is_shared);

  mob_rank_t rank_ = 0;
  mob_rank_t size_ = 1;
  mob_rank_t first_ = 0;
  bool is_guest_ = false;
  bool is_meeting_ = false;
  std::optional<Secret> launcher_secret_;
  std::mutex starters_mutex_;  // guards starters_ and what ends the starters
  std::map<mob_rank_t, std::unique_ptr<ChildStarter>> starters_;  // by world
  os::UnixSocket launcher_;  // open while we are part of a launched job
  HostGroup host_;

  int32_t hosts_ = 1;
  int32_t own_host_ = 0;
  const uint32_t* places_ = nullptr;      // in the segment; several hosts only, as all below
  const int32_t* ranks_ = nullptr;        // in the segment: the ranks of this host
  std::vector<mob_rank_t> leaders_;       // by host
  std::unique_ptr<Directory> directory_;  // under PMIx also in a job of one host
  std::array<unsigned char, 16> secret_{};
  bool is_virtual_ = false;
};

// Asks the launcher, if there is one, to end the job. Any thread, at any time.
void request_abort(const char* const* environment, int exit_code, const char* reason);

}  // namespace mobius::job
