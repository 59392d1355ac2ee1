// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Makes the team of which on_team.h speaks, as the command line of a test says:
//
//   spawned         the processes and as many that they spawn
//   accept NAME     two jobs, with one that connects; see
//   connect NAME    tests/dynamic/check_connect.sh
//   joined          two processes that join over a socket

#include <mobius/mobius.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "on_team.h"

namespace mobius_test {

class JoinedTeam {
 public:
  // Before mob_init(): of two processes that join, each is a job of its own. Takes its words off
  // the list of arguments; spawned processes get all of `argv`.
  JoinedTeam(int* argc, char** argv) : all_(argv, argv + *argc + 1) {
    if (*argc < 2) return;
    const std::string_view how = argv[1];
    const bool has_name = how == "accept" || how == "connect";
    if (how != "spawned" && how != "joined" && !(has_name && *argc > 2)) return;
    how_ = all_[1];
    if (has_name) name_ = all_[2];
    const int taken = has_name ? 2 : 1;
    *argc -= taken;
    for (int i = 1; i <= *argc; ++i) argv[i] = all_[static_cast<size_t>(i + taken)];
    if (how == "joined") fork_joined();
  }
  JoinedTeam(const JoinedTeam&) = delete;
  JoinedTeam& operator=(const JoinedTeam&) = delete;
  ~JoinedTeam() = default;

  explicit operator bool() const { return !how_.empty(); }

  // After mob_init(): from now on the tests run on the team.
  void make() {
    if (how_.empty()) return;
    if (how_ == "spawned") {
      spawn();
    } else if (how_ == "accept") {
      accept();
    } else if (how_ == "connect") {
      connect();
    } else {
      check(mob_join(socket_, &bridge_), "mob_join");
    }
    mob_team_t team = MOB_TEAM_NONE;
    check(mob_bridge_merge(bridge_, 0, &team), "mob_bridge_merge");
    std::vector<mob_rank_t> numbers;
    for (mob_rank_t i = 0; i < mob_team_size(team); ++i) {
      numbers.push_back(mob_team_number(team, i));
    }
    on_team = {team, how_ == "spawned", std::move(numbers)};
  }

  // Before mob_finalize().
  void free() {
    if (how_.empty()) return;
    const mob_team_t team = on_team.team;
    on_team = {MOB_TEAM_NONE, true, {}};
    check(mob_team_free(team), "mob_team_free");
    check(mob_bridge_disconnect(bridge_), "mob_bridge_disconnect");
  }

  // After mob_finalize(): whether the process that joined this one has failed.
  bool child_failed() const {
    int ended = 0;
    return child_ > 0 && (waitpid(child_, &ended, 0) != child_ || ended != 0);
  }

 private:
  static void check(mob_status_t status, const char* call) {
    if (status == MOB_OK) return;
    std::fprintf(stderr, "%s: %s\n", call, mob_last_error());
    std::abort();
  }

  void fork_joined() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    child_ = fork();
    socket_ = ends[child_ == 0 ? 0 : 1];
  }

  void spawn() {
    bridge_ = mob_parent();
    if (bridge_ != MOB_BRIDGE_NONE) return;
    check(mob_spawn(MOB_TEAM_WORLD, all_[0], all_.data() + 1, mob_size(), nullptr, &bridge_),
          "mob_spawn");
  }

  void accept() {
    mob_port_t port = MOB_PORT_NONE;
    if (mob_rank() == 0) check(mob_port_open(name_, &port, nullptr), "mob_port_open");
    check(mob_accept(MOB_TEAM_WORLD, port, nullptr, &bridge_), "mob_accept");
    check(mob_port_close(port), "mob_port_close");
  }

  void connect() {
    constexpr int kTries = 5000;  // the other job may not have opened its port yet
    mob_status_t status = MOB_ERR_PEER;
    for (int i = 0; i < kTries && status == MOB_ERR_PEER; ++i) {
      status = mob_connect(MOB_TEAM_WORLD, name_, nullptr, &bridge_);
      if (status != MOB_OK) usleep(2000);
    }
    check(status, "mob_connect");
  }

  std::vector<char*> all_;  // arguments
  std::string_view how_;
  const char* name_ = "";  // of the port
  int socket_ = -1;        // to the other process
  pid_t child_ = -1;       // the process that joins this one
  mob_bridge_t bridge_ = MOB_BRIDGE_NONE;
};

}  // namespace mobius_test
