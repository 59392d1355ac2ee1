// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The worker process of `mobius run`: starts the ranks, watches them, and, when one fails, ends
// them all or tells the others, as the job is set. One thread, one event loop, no step that waits
// for a single rank.

#include <mobius/job.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/settings.h"
#include "job/launch/options.h"
#include "job/launch/output/output.h"
#include "job/launch/poller.h"
#include "job/launch/process/environment.h"
#include "job/launch/rendezvous.h"
#include "job/spawn_request.h"
#include "os/process/spawn.h"

namespace mobius::launch {

// Marks a signal that the terminal sent to our whole process group.
inline constexpr int kFromTerminal = 0x80;

// The job as the front process has checked it.
struct Plan {
  const RunOptions& options;
  std::string program;  // path to execute
  Environment& environment;
  const std::vector<int>& inherited;  // descriptors from 3 on, which close on exec
  sigset_t signal_mask;               // of the ranks
  base::OnDeath on_death = base::OnDeath::kEnd;
};

class Supervisor {
 public:
  // `front` delivers one byte for each signal to pass on, and ends when the front process does. The
  // byte is the signal's number, with kFromTerminal added if the terminal sent it.
  Supervisor(const Plan& plan, int front);

  // Returns the exit code of the job.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kNever = Clock::time_point::max();

  // Ranks started between two checks for signals and failures.
  static constexpr int kStartsPerTurn = 16;

  enum class Phase {
    kRunning,
    kEnding,  // told to end, killed at kill_at_
    kKilled
  };
  struct Rank {
    pid_t started = 0;
    pid_t pid = 0;  // as started, until its end is known
    Clock::time_point lost_at = kNever;
    bool failed = false;    // and the others went on
    mob_rank_t world = 0;   // the number of the first process that was started with it
    bool given_up = false;  // with its world, before that had joined
    std::string program;    // as its user named it
  };

  // How to start a rank.
  struct Start {
    const char* program;  // path to execute
    const std::vector<std::string>& arguments;
    char* const* environment;
    const char* folder = nullptr;  // null: as ours
    mob_rank_t world = 0;
  };
  // Processes that a rank has asked for and that are being started.
  struct Spawn {
    mob_rank_t world;
    mob_rank_t next;
    mob_rank_t end;
    job::SpawnRequest request;
  };

  void open();
  void start_some();
  bool gets_descriptors(mob_rank_t rank) const;
  bool start(mob_rank_t rank);
  os::Spawned start(mob_rank_t rank, const Start& how);

  // supervisor_spawn.cpp
  void on_worlds();
  void accept_spawn(mob_rank_t world);
  void start_spawned();
  void end_start(const Spawn& spawn, const std::string& problem);
  bool give_up(mob_rank_t world, mob_status_t failure, const std::string& reason);
  bool give_up_joining(mob_rank_t rank, std::string_view what);
  void note_ended(mob_rank_t world);
  job::World& world(mob_rank_t first) { return rendezvous_.worlds().block->world(first); }
  mob_status_t place(mob_rank_t world);
  std::string host_of(mob_rank_t rank) const;
  void wait_and_handle();
  int timeout_ms() const;
  void on_front();
  void on_children();
  void await_front(int signal);
  void on_signal(int signal, bool from_terminal);
  void on_rank_end(mob_rank_t rank, int status);
  void on_changes();
  bool is_ending(mob_rank_t rank) const;
  void check_deadlines();
  void settle_output();

  // The first failure decides the exit code, and is the only one reported if it ends the job.
  void fail(mob_rank_t rank, std::string_view what, int exit_code);
  void go_on_without(mob_rank_t rank, std::string_view what);
  void end_ranks();
  void kill_ranks();
  void signal_ranks(int signal, mob_rank_t except = -1);
  void signal_rank(mob_rank_t rank, int signal);
  std::string describe(mob_rank_t rank) const;
  std::string fate_of_others() const;
  bool all_started() const {
    return first_started() && (spawning_.empty() || phase_ != Phase::kRunning);
  }
  // Whether the ranks that the job begins with have been started.
  bool first_started() const {
    return next_ == plan_.options.processes || phase_ != Phase::kRunning;
  }

  const Plan& plan_;
  const int front_;
  Poller poller_;
  Output output_;
  Rendezvous rendezvous_;
  std::vector<Rank> ranks_;
  std::unordered_map<pid_t, mob_rank_t> rank_of_;  // of those still running
  std::vector<int> processors_;                    // for Binding::kCore
  std::optional<rlimit> descriptor_limit_;         // of the ranks
  int children_ = -1;                              // signalfd
  int null_input_ = -1;                            // standard input of the other ranks
  mob_rank_t input_rank_ = 0;                      // has our standard input; -1: none
  mob_rank_t grouped_rank_ = -1;  // is in our process group, to read the terminal; -1: none
  mob_rank_t next_ = 0;           // to start
  mob_rank_t running_ = 0;
  mob_rank_t started_ = 0;          // ever
  std::deque<Spawn> spawning_;      // the first one is under way
  std::vector<mob_rank_t> absent_;  // ranks that ended well without joining
  Phase phase_ = Phase::kRunning;
  Clock::time_point kill_at_ = kNever;
  int interrupt_ = 0;  // the signal that asked the job to end, or that did end a rank
  int passed_on_ = 0;  // the last SIGHUP or SIGQUIT, which programs may handle and go on
  int exit_code_ = 0;
};

}  // namespace mobius::launch
