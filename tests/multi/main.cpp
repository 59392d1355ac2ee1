// SPDX-License-Identifier: BSD-3-Clause

// Runs the same tests in the same order in every process of the job. Checks are EXPECT_…, never
// ASSERT_… before a collective call: a process that left a test early would block the others.
//
//   multi_tests                 on the world
//   multi_tests spawned         on a team of the processes and as many that they spawn
//   multi_tests accept NAME     on a team of two jobs, with one that connects; see
//   multi_tests connect NAME    tests/dynamic/check_connect.sh
//   multi_tests joined          on a team of two processes that join over a socket

#include <mobius/mobius.h>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "on_team.h"

namespace {

using mobius_test::on_team;

void check(mob_status_t status, const char* call) {
  if (status == MOB_OK) return;
  std::fprintf(stderr, "%s: %s\n", call, mob_last_error());
  std::abort();
}

// How the team is made, in the words of the command line.
struct Origin {
  std::string_view how;
  const char* name = "";  // of the port
  int socket = -1;        // to the process that joins
};

mob_bridge_t connect_to(const char* name) {
  constexpr int kTries = 5000;  // the other job may not have opened its port yet
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  mob_status_t status = MOB_ERR_PEER;
  for (int i = 0; i < kTries && status == MOB_ERR_PEER; ++i) {
    status = mob_connect(MOB_TEAM_WORLD, name, nullptr, &bridge);
    if (status != MOB_OK) usleep(2000);
  }
  check(status, "mob_connect");
  return bridge;
}

mob_bridge_t accept_at(const char* name) {
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  mob_port_t port = MOB_PORT_NONE;
  if (mob_rank() == 0) check(mob_port_open(name, &port, nullptr), "mob_port_open");
  check(mob_accept(MOB_TEAM_WORLD, port, nullptr, &bridge), "mob_accept");
  check(mob_port_close(port), "mob_port_close");
  return bridge;
}

mob_bridge_t spawn(char** argv) {
  mob_bridge_t bridge = mob_parent();
  if (bridge != MOB_BRIDGE_NONE) return bridge;
  check(mob_spawn(MOB_TEAM_WORLD, argv[0], argv + 1, mob_size(), nullptr, &bridge), "mob_spawn");
  return bridge;
}

// Makes the team and lets the tests run on it.
mob_bridge_t make_team(const Origin& origin, char** argv) {
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  if (origin.how == "spawned") {
    bridge = spawn(argv);
  } else if (origin.how == "accept") {
    bridge = accept_at(origin.name);
  } else if (origin.how == "connect") {
    bridge = connect_to(origin.name);
  } else {
    check(mob_join(origin.socket, &bridge), "mob_join");
  }
  mob_team_t team = MOB_TEAM_NONE;
  check(mob_bridge_merge(bridge, 0, &team), "mob_bridge_merge");
  std::vector<mob_rank_t> numbers;
  for (mob_rank_t i = 0; i < mob_team_size(team); ++i) numbers.push_back(mob_team_number(team, i));
  on_team = {team, origin.how == "spawned", numbers};
  return bridge;
}

void free_team(mob_bridge_t bridge) {
  const mob_team_t team = on_team.team;
  on_team = {MOB_TEAM_NONE, true, {}};
  check(mob_team_free(team), "mob_team_free");
  check(mob_bridge_disconnect(bridge), "mob_bridge_disconnect");
}

// Each of the two processes is a job of its own. Returns the child's process id in the parent.
pid_t fork_joined(Origin* origin) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const pid_t child = fork();
  origin->socket = ends[child == 0 ? 0 : 1];
  return child;
}

// Prints nothing about successes; each rank prints its own failures.
class QuietPrinter : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s.%s: %s:%d: %s\n", mob_rank(),
                 test_ != nullptr ? test_->test_suite_name() : "",
                 test_ != nullptr ? test_->name() : "", result.file_name(), result.line_number(),
                 result.message());
  }

  const testing::TestInfo* test_ = nullptr;  // gtest cannot be asked inside OnTestPartResult()
};

}  // namespace

int main(int argc, char** argv) {
  // Before GoogleTest takes its arguments off the list: a spawned process gets all of them.
  std::vector<char*> arguments(argv, argv + argc + 1);
  testing::InitGoogleTest(&argc, argv);
  Origin origin;
  if (argc > 1) origin.how = argv[1];
  if (argc > 2) origin.name = argv[2];
  const pid_t child = origin.how == "joined" ? fork_joined(&origin) : -1;
  if (mob_init() != MOB_OK) {
    std::fprintf(stderr, "mob_init: %s\n", mob_last_error());
    return 1;
  }
  const mob_bridge_t bridge =
      origin.how.empty() ? MOB_BRIDGE_NONE : make_team(origin, arguments.data());
  if (mob_rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new QuietPrinter);
  }
  int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) result = 1;
  if (bridge != MOB_BRIDGE_NONE) free_team(bridge);
  if (mob_finalize() != MOB_OK) {
    std::fprintf(stderr, "mob_finalize: %s\n", mob_last_error());
    result = 1;
  }
  int ended = 0;
  if (child > 0 && (waitpid(child, &ended, 0) != child || ended != 0)) result = 1;
  return result;
}
