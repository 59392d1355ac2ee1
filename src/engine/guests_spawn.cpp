// SPDX-License-Identifier: BSD-3-Clause
// Spawning in a job on several hosts that has no memory in which it could grow: the launcher starts
// the processes as a job of their own, and both jobs meet at a port of the root (decision 0027).

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/guest_making.h"
#include "job/bootstrap/launched_job.h"
#include "job/layout.h"
#include "job/port.h"
#include "os/sync/futex.h"

namespace mobius::engine {
namespace {

using base::fail;

// The root sends this to all members of the team, and each member looks whether its host can start
// the program. The root does not leave that to the launcher, which may never answer where a host
// cannot.
struct Program {
  mob_status_t status = MOB_OK;
  char path[PATH_MAX] = {};
  char folder[PATH_MAX] = {};
};

// A member's answer.
struct Ability {
  int32_t host;
  int32_t problem;  // an errno; 0: it can
  int32_t is_folder;
  char name[40];  // of the host
};
static_assert(sizeof(Ability) <= kTeamExchangeBytes);

Ability ability_here(Engine& home, const Program& program) {
  Ability mine{home.peers().job().own_host(), 0, 0, {}};
  static_cast<void>(gethostname(mine.name, sizeof mine.name - 1));  // may be cut
  int problem = 0;
  job::find_executable(program.path, nullptr, &problem);
  if (problem == 0 && access(program.folder, X_OK) != 0) {
    problem = errno;
    mine.is_folder = 1;
  }
  mine.problem = problem;
  return mine;
}

// The root of a spawn uses this to have the processes started, and to watch the launcher's reports
// on them until they have joined.
class Launch {
 public:
  Launch(const char* call, Engine& home, const Bridges::Wish& wish)
      : call_(call), home_(home), wish_(wish), beside_(wish.beside) {}

  // Fills in the program that the root sends to the members. `parents`: the size of the team.
  void ask(mob_rank_t parents, Program* program) {
    const job::SpawnRequest& request = wish_.request;
    if (wish_.count > job::kMostRanks - parents) {
      program->status =
          fail(MOB_ERR_RANGE, "%s: %d processes would meet %d, more than the %d of a job", call_,
               wish_.count, parents, job::kMostRanks);
    } else if (request.path.size() >= PATH_MAX || request.folder.size() >= PATH_MAX) {
      program->status = fail(MOB_ERR_ARGUMENT, "%s: a path of more than %d bytes", call_, PATH_MAX);
    } else {
      std::ranges::copy(request.path, program->path);
      std::ranges::copy(request.folder, program->folder);
    }
  }

  mob_status_t begin(const std::vector<Ability>& members) {
    const job::Job& job = home_.peers().job();
    for (size_t i = 0; i < beside_.size();) {
      const int32_t host = job.place_of(beside_[i]).host;
      const auto unable = std::ranges::find_if(
          members, [&](const Ability& each) { return each.host == host && each.problem != 0; });
      if (unable == members.end()) {
        ++i;
        continue;
      }
      const mob_status_t status =
          fail(MOB_ERR_SYSTEM, "%s: process %zu of %zu cannot be started on %s: %s: %s", call_, i,
               beside_.size(), unable->name,
               (unable->is_folder != 0 ? wish_.request.folder : wish_.request.path).c_str(),
               std::strerror(unable->problem));
      if (!leave_out(static_cast<mob_rank_t>(i))) return status;
      i = 0;
    }
    const job::PortReach reach{false, true, home_.settings().text(base::SettingId::kInterface)};
    if (const mob_status_t status = port_.open(call_, "", reach)) return status;
    end_ns_ = os::now_ns() + limit_s() * 1'000'000'000;
    return start();
  }

  // The processes have come, or an error of this ends the wait for them.
  mob_status_t look() {
    mob_rank_t failed = -1;
    const mob_status_t status = started_->look(call_, &failed);
    if (status == MOB_ERR_SYSTEM && leave_out(failed)) {
      started_->end([this] { home_.waiter().poll(); });
      return start();
    }
    if (status != MOB_OK || os::now_ns() < end_ns_) return status;
    return fail(
        MOB_ERR_PEER,
        "%s: the processes have not called mob_init() within %zu seconds "
        "(MOBIUS_JOIN_SECONDS)%s",
        call_, static_cast<size_t>(limit_s()),
        started_->has_answered() ? "" : "; the launcher has not said that they have started");
  }

  void end() {
    if (started_ != nullptr) started_->end([this] { home_.waiter().poll(); });
  }

  std::unique_ptr<job::JobTie> tie() { return started_->tie(); }
  job::Port* port() { return &port_; }
  uint64_t limit_s() const { return home_.settings().number(base::SettingId::kJoinSeconds); }

 private:
  mob_status_t start() {
    const job::LaunchOrder order{wish_.request, beside_,
                                 home_.settings().on_death() == base::OnDeath::kError,
                                 home_.settings().is_set(base::SettingId::kTag)};
    const std::string where = port_.text().text();
    const mob_status_t status = home_.peers().job().directory()->launch(order, where, &started_);
    if (status == MOB_OK) return MOB_OK;
    const std::string reason = mob_last_error();
    return fail(status, "%s: %s", call_, reason.c_str());
  }

  // A launcher starts all processes or none. Where fewer are enough, those on the host of the one
  // that could not be started are left out, or half of them if it is not known which. False if too
  // few are left.
  bool leave_out(mob_rank_t failed) {
    if (static_cast<mob_rank_t>(beside_.size()) <= wish_.least) return false;
    const job::Job& job = home_.peers().job();
    std::vector<mob_rank_t> left = beside_;
    if (failed >= 0 && failed < static_cast<mob_rank_t>(beside_.size())) {
      const int32_t host = job.place_of(beside_[static_cast<size_t>(failed)]).host;
      std::erase_if(left, [&](mob_rank_t rank) { return job.place_of(rank).host == host; });
    }
    if (failed < 0) {
      left.assign(beside_.begin(), beside_.begin() + static_cast<ptrdiff_t>(beside_.size() / 2));
    }
    beside_ = std::move(left);
    return static_cast<mob_rank_t>(beside_.size()) >= std::max(wish_.least, 1);
  }

  const char* const call_;
  Engine& home_;
  const Bridges::Wish& wish_;
  std::vector<mob_rank_t> beside_;  // of the processes that are to start
  job::Port port_;
  uint64_t end_ns_ = 0;
  std::unique_ptr<job::LaunchedJob> started_;
};

void keep_tie(uint64_t bridge, std::unique_ptr<job::JobTie> tie) {
  guests[tag_of_handle(bridge)].load(std::memory_order_relaxed)->tie = std::move(tie);
}

}  // namespace

mob_status_t spawn_by_launcher(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                               const Bridges::Wish& wish, uint64_t* handle) {
  // Longer than look() waits, whose error tells more.
  constexpr uint64_t kMoreSeconds = 5;
  Engine& home = engine();
  if (const mob_status_t status = team.agree(mine, call)) return status;
  const bool is_root = team.rank() == root;
  Launch launch(call, home, wish);
  Program program;
  if (is_root) launch.ask(team.size(), &program);
  if (const mob_status_t status = hear_root(call, team, root, &program)) return status;
  std::vector<Ability> members;
  if (const mob_status_t status = team.exchange(ability_here(home, program), &members)) {
    return status;
  }
  struct {
    mob_status_t status = MOB_OK;
  } told;
  if (is_root) told.status = without_exceptions(call, [&] { return launch.begin(members); });
  mob_status_t status = hear_root(call, team, root, &told);
  if (status == MOB_OK) {
    status =
        accept_at_port(call, team, root, MOB_OK, home.bridges(), is_root ? launch.port() : nullptr,
                       launch.limit_s() + kMoreSeconds, handle, [&] { return launch.look(); });
  }
  if (status == MOB_OK) {
    if (is_root) keep_tie(*handle, launch.tie());
    return MOB_OK;
  }
  const std::string text = mob_last_error();
  if (is_root) launch.end();
  // No process is left when the call returns anywhere.
  if (!team.is_broken()) static_cast<void>(team.barrier());
  return fail(status, "%s", text.c_str());
}

mob_status_t connect_to_parent() {
  Engine& home = engine();
  job::Directory* const directory = home.peers().job().directory();
  if (directory == nullptr || !home.settings().is_set(base::SettingId::kParent)) return MOB_OK;
  std::unique_ptr<job::JobTie> tie;
  const std::string port = directory->parent(home.settings().text(base::SettingId::kParent), &tie);
  if (port.empty()) return MOB_OK;
  uint64_t handle = 0;
  const mob_status_t status =
      connect_to_port("mob_init", home.teams().world(), 0, MOB_OK, port,
                      home.settings().number(base::SettingId::kJoinSeconds), &handle);
  if (status != MOB_OK) return status;
  parent_by_launcher.store(handle, std::memory_order_relaxed);
  keep_tie(handle, std::move(tie));
  return MOB_OK;
}

}  // namespace mobius::engine
