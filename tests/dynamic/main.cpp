// SPDX-License-Identifier: BSD-3-Clause

// Processes that join a running job. The processes that spawn run the tests, all in the same order;
// those that they spawn run the same program, with the name of what they are to do. Checks are
// EXPECT_…: a process that left a test early would block the others.

#include <mobius/mobius.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "exercise.h"

using mobius_test::exercise;
using mobius_test::segment_bytes;

namespace {

const char* program = "";

// Whether the processes that this one spawns, or those that spawned it, are another job: the test
// sets the variable where the hosts are real ones.
bool spawns_jobs() { return std::getenv("SPAWNS_JOBS") != nullptr && mob_host_size() < mob_size(); }
bool is_own_job() {
  return mob_parent() != MOB_BRIDGE_NONE && mob_team_number(MOB_TEAM_WORLD, 0) == 0;
}

mob_rank_t own_rank() { return mob_team_rank(MOB_TEAM_WORLD); }

// Starts `count` processes of this program, beside the members of the team by turns.
mob_bridge_t spawn(const char* what, mob_rank_t count, mob_team_t team = MOB_TEAM_WORLD) {
  const std::array<const char*, 2> arguments{what, nullptr};
  std::vector<mob_rank_t> beside;
  for (mob_rank_t i = 0; i < count; ++i) {
    beside.push_back(mob_team_number(team, i % mob_team_size(team)));
  }
  const mob_spawn_options_t options{0, 0, nullptr, nullptr, beside.data()};
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  EXPECT_EQ(mob_spawn(team, program, arguments.data(), count, &options, &bridge), MOB_OK)
      << mob_last_error();
  return bridge;
}

void disconnect(mob_bridge_t bridge) {
  EXPECT_EQ(mob_bridge_disconnect(bridge), MOB_OK) << mob_last_error();
}

mob_team_t merged(mob_bridge_t bridge, int children_first = 0) {
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_bridge_merge(bridge, children_first, &team), MOB_OK) << mob_last_error();
  return team;
}

// Messages to the processes that spawn, enough for a larger ring.
constexpr unsigned kStream = 20;
constexpr int kStreamed = 300;
constexpr size_t kStreamedBytes = 8000;
std::atomic<int> streamed = 0;
void on_stream(const mob_message_t* message, void*, mob_delivery_t*) {
  if (message->payload_bytes == kStreamedBytes) ++streamed;
}

// Whether a process that was spawned for this is still there.
bool any_process(const char* mark) {
  for (const auto& folder : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(folder.path() / "cmdline");
    std::string name;
    std::string argument;
    if (!std::getline(file, name, '\0') || !std::getline(file, argument, '\0')) continue;
    if (name == program && argument == mark) return true;
  }
  return false;
}

}  // namespace

TEST(Spawn, ChildrenHaveNumbersAndAWorldOfTheirOwn) {
  EXPECT_EQ(mob_parent(), MOB_BRIDGE_NONE);
  const mob_rank_t before = mob_size();
  const mob_bridge_t bridge = spawn("numbers", 3);
  EXPECT_EQ(mob_size(), before);
  EXPECT_EQ(own_rank(), mob_rank());
  std::array<mob_rank_t, 3> children{};
  EXPECT_EQ(mob_bridge_others(bridge, children.data()), 3);
  for (size_t i = 1; i < children.size(); ++i) EXPECT_EQ(children[i], children[0] + mob_rank_t(i));
  EXPECT_GE(children[0], before);
  for (size_t i = 0; i < children.size(); ++i) {
    const mob_rank_t beside = mob_rank_t(i) % before;
    EXPECT_EQ(mob_is_host_mate(children[i]), mob_is_host_mate(beside)) << i;
  }
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(mob_team_size(team), before + 3);
  EXPECT_EQ(mob_team_rank(team), own_rank());
  EXPECT_EQ(mob_team_number(team, before), children[0]);
  mob_rank_t found = 0;
  EXPECT_EQ(mob_team_translate(team, before, MOB_TEAM_WORLD, &found), MOB_OK);
  EXPECT_EQ(found, -1);
  EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  const mob_team_t other = merged(bridge, 1);
  EXPECT_EQ(mob_team_rank(other), own_rank() + 3);
  EXPECT_EQ(mob_team_number(other, 0), children[0]);
  EXPECT_EQ(mob_team_free(other), MOB_OK) << mob_last_error();
  disconnect(bridge);
}

TEST(Spawn, EveryOperationWorksOnSpawnedAndOnMergedTeams) {
  const mob_bridge_t bridge = spawn("exercise", 3);
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(exercise(team, !spawns_jobs()), 0);
  EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  EXPECT_EQ(exercise(MOB_TEAM_WORLD), 0);
  disconnect(bridge);
  // Nothing that was sent to the children is under way any more when they have gone.
  while (any_process("exercise")) usleep(1000);
  EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
  EXPECT_EQ(exercise(MOB_TEAM_WORLD), 0);
}

TEST(Spawn, SpawnedProcessesSpawn) {
  const mob_bridge_t bridge = spawn("spawn", 2);
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(exercise(team, !spawns_jobs()), 0);
  EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  disconnect(bridge);
}

TEST(Spawn, APartOfTheJobSpawns) {
  mob_team_t half = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, own_rank() % 2, 0, &half), MOB_OK);
  // Both at the same time.
  const mob_bridge_t bridge = spawn("exercise_merged", 1, half);
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(exercise(team, !spawns_jobs()), 0);
  EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  disconnect(bridge);
  EXPECT_EQ(mob_team_free(half), MOB_OK) << mob_last_error();
}

// On several hosts the team that spawns is on one host, and none of the new processes is there.
TEST(Spawn, ProcessesStartBesideAnyProcess) {
  mob_team_t one = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, own_rank() == 0 ? 0 : -1, 0, &one), MOB_OK);
  if (own_rank() == 0) {
    const std::array<const char*, 2> arguments{"exercise_merged", nullptr};
    const std::array<mob_rank_t, 3> beside{mob_size() - 1, mob_size() / 2, mob_size() - 1};
    const mob_spawn_options_t options{0, 0, nullptr, nullptr, beside.data()};
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    EXPECT_EQ(mob_spawn(one, program, arguments.data(), 3, &options, &bridge), MOB_OK)
        << mob_last_error();
    std::array<mob_rank_t, 3> children{};
    EXPECT_EQ(mob_bridge_others(bridge, children.data()), 3);
    for (size_t i = 0; i < children.size(); ++i) {
      EXPECT_EQ(mob_is_host_mate(children[i]), mob_is_host_mate(beside[i])) << i;
    }
    const mob_team_t team = merged(bridge);
    EXPECT_EQ(exercise(team, !spawns_jobs()), 0);
    EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
    disconnect(bridge);
    EXPECT_EQ(mob_team_free(one), MOB_OK) << mob_last_error();
  }
  EXPECT_EQ(exercise(MOB_TEAM_WORLD), 0);
}

TEST(Spawn, OneByOneLeavesNothingBehind) {
  constexpr int kTimes = 20;
  uint64_t first = 0;
  streamed = 0;
  for (int i = 0; i < kTimes; ++i) {
    disconnect(spawn("keep", 1));
    while (any_process("keep")) usleep(1000);
    if (i == 0) first = segment_bytes();
  }
  EXPECT_EQ(streamed, kTimes * kStreamed);
  // A number is never given out again, and has some pages of its own. The rings of senders that
  // have left are used again: there may be one more than after the first time, in each process.
  constexpr uint64_t kOfANumber = uint64_t{24} << 10;
  constexpr uint64_t kRings = uint64_t{68 + 1028} << 10;
  EXPECT_LT(segment_bytes(),
            first + (kTimes - 1) * kOfANumber + static_cast<uint64_t>(mob_size()) * kRings);
  const size_t bytes = size_t{1} << 20;
  mob_mem_t mem = nullptr;
  EXPECT_EQ(mob_mem_alloc(bytes, &mem), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_mem_free(mem), MOB_OK) << mob_last_error();
}

// A job of one process has no reason to move the pages before others come.
TEST(Spawn, MemoryThatWasExposedBeforeIsReached) {
  constexpr size_t kBytes = 8192;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const words = static_cast<uint64_t*>(memory);
  mob_exposed_t exposed = nullptr;
  EXPECT_EQ(mob_expose(memory, kBytes, MOB_EXPOSE_REMAP, &exposed), MOB_OK) << mob_last_error();
  words[0] = 42;
  const mob_bridge_t bridge = spawn("reach", 1);
  const mob_team_t team = merged(bridge);
  std::vector<void*> addresses(static_cast<size_t>(mob_team_size(team)));
  EXPECT_EQ(mob_publish(team, memory, addresses.data()), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_team_barrier(team), MOB_OK) << mob_last_error();
  EXPECT_EQ(words[1], 43u);
  EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  disconnect(bridge);
  EXPECT_EQ(mob_withdraw(exposed), MOB_OK) << mob_last_error();
  EXPECT_EQ(words[1], 43u);
  munmap(memory, kBytes);
}

TEST(Spawn, TheRootGivesFolderAndEnvironment) {
  const std::array<const char*, 2> arguments{"options", nullptr};
  const std::array<const char*, 2> changes{"MOBIUS_DYNAMIC_TEST=from the root", nullptr};
  const mob_spawn_options_t options{0, mob_size() - 1, "/", changes.data(), nullptr};
  const bool is_root = own_rank() == mob_size() - 1;
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, is_root ? program : nullptr,
                      is_root ? arguments.data() : nullptr, is_root ? 1 : -5, &options, &bridge),
            MOB_OK)
      << mob_last_error();
  disconnect(bridge);
}

namespace {

// A spawn that fails; `reason` is part of the error.
void expect_failure(const char* path, std::vector<const char*> arguments, mob_rank_t count,
                    mob_status_t status, const char* reason) {
  arguments.push_back(nullptr);
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  const mob_status_t got =
      mob_spawn(MOB_TEAM_WORLD, path, arguments.data(), count, nullptr, &bridge);
  const bool is_root = own_rank() == 0;
  EXPECT_EQ(got, is_root || got == status ? status : MOB_ERR_PEER) << mob_last_error();
  if (is_root) {
    EXPECT_NE(std::strstr(mob_last_error(), reason), nullptr) << mob_last_error();
  }
  EXPECT_EQ(bridge, MOB_BRIDGE_NONE);
  // The job is as before.
  EXPECT_EQ(mob_team_barrier(MOB_TEAM_WORLD), MOB_OK) << mob_last_error();
}

}  // namespace

TEST(Spawn, ProgramsThatCannotBeStartedAreNamed) {
  expect_failure("/nowhere/program", {}, 1, MOB_ERR_SYSTEM, "/nowhere/program");
  expect_failure("no-such-program-anywhere", {}, 2, MOB_ERR_SYSTEM, "PATH");
  expect_failure("/etc/passwd", {}, 1, MOB_ERR_SYSTEM, "Permission denied");
  expect_failure("/tmp", {}, 1, MOB_ERR_SYSTEM, "Is a directory");
}

TEST(Spawn, ProgramsThatEndWithoutJoiningAreErrors) {
  expect_failure("/bin/sh", {"-c", "exit 0"}, 1, MOB_ERR_PEER, "exited without mob_init()");
  expect_failure("/bin/sh", {"-c", "exit 7"}, 3, MOB_ERR_PEER, "exited with code 7");
  expect_failure("/bin/sh", {"-c", "kill -9 $$"}, 1, MOB_ERR_PEER, "signal 9");
}

// One of the processes ends; those that wait for it are ended, too.
TEST(Spawn, AProcessThatDiesWhileJoiningEndsTheOthersOfItsSpawn) {
  const mob_rank_t bound = mob_size();
  expect_failure(program, {"die_while_joining"}, 3, MOB_ERR_PEER, "before all had joined");
  EXPECT_FALSE(any_process("die_while_joining"));
  disconnect(spawn("leave", 1));
  EXPECT_EQ(mob_size(), bound);
}

TEST(Spawn, WrongArgumentsAreRefusedEverywhere) {
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  EXPECT_NE(mob_spawn(MOB_TEAM_WORLD, program, nullptr, 0, nullptr, &bridge), MOB_OK);
  EXPECT_NE(mob_spawn(MOB_TEAM_WORLD, nullptr, nullptr, 1, nullptr, &bridge), MOB_OK);
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, program, nullptr, 1, nullptr, nullptr), MOB_ERR_ARGUMENT);
  mob_spawn_options_t options{8, 0, nullptr, nullptr, nullptr};
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, program, nullptr, 1, &options, &bridge), MOB_ERR_ARGUMENT);
  options = {0, mob_size(), nullptr, nullptr, nullptr};
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, program, nullptr, 1, &options, &bridge), MOB_ERR_RANK);
  const mob_rank_t nobody = mob_size() + 4000;
  options = {0, 0, nullptr, nullptr, &nobody};
  EXPECT_NE(mob_spawn(MOB_TEAM_WORLD, program, nullptr, 1, &options, &bridge), MOB_OK);
  EXPECT_EQ(mob_spawn(MOB_TEAM_NONE, program, nullptr, 1, nullptr, &bridge), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, program, nullptr, 20000, nullptr, &bridge), MOB_ERR_RANGE);
  EXPECT_EQ(bridge, MOB_BRIDGE_NONE);
  EXPECT_EQ(mob_bridge_disconnect(MOB_BRIDGE_NONE), MOB_OK);
  const auto dead = reinterpret_cast<mob_bridge_t>(uintptr_t{12345});
  EXPECT_EQ(mob_bridge_disconnect(dead), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_bridge_others(dead, nullptr), MOB_ERR_HANDLE);
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_bridge_merge(dead, 0, &team), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_team_number(MOB_TEAM_WORLD, mob_size()), MOB_ERR_RANK);
  EXPECT_EQ(mob_put8(mob_size() + 4000, &bridge, 1), MOB_ERR_RANK);
}

TEST(Cxx, ABridgeIsAnObject) {
  mob::SpawnOptions options;
  options.arguments = {"leave"};
  mob::Bridge bridge = mob::Bridge::spawn(mob::Team::world(), program, 2, options);
  EXPECT_TRUE(static_cast<bool>(bridge));
  EXPECT_EQ(bridge.others().size(), 2u);
  bridge.disconnect();
  EXPECT_FALSE(static_cast<bool>(bridge));
  EXPECT_THROW(static_cast<void>(mob::Bridge::spawn(mob::Team::world(), "/nowhere/program", 1)),
               mob::Error);
}

// Run under --full: thousands of processes.
TEST(DISABLED_Cycles, AThousandSpawnsLeaveNothingBehind) {
  constexpr int kTimes = 1000;
  constexpr int kFirst = 50;
  mobius_test::Resources first{};
  for (int i = 0; i < kTimes; ++i) {
    const mob_bridge_t bridge = spawn("exercise_merged", 1);
    const mob_team_t team = merged(bridge);
    EXPECT_EQ(exercise(team, !spawns_jobs()), 0);
    EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
    disconnect(bridge);
    if (i == kFirst) first = mobius_test::resources();
  }
  while (any_process("exercise_merged")) usleep(1000);
  EXPECT_TRUE(mobius_test::has_not_grown(first, kTimes - kFirst));
}

// These end the job; the test looks at what the launcher makes of it.
TEST(DISABLED_Ends, ASpawnedProcessExits) {
  const mob_bridge_t bridge = spawn("exit", 2);
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(mob_team_barrier(team), MOB_ERR_PEER);
}

TEST(DISABLED_Ends, OthersGoOnWithoutASpawnedProcess) {
  const mob_bridge_t bridge = spawn("exit", 2);
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(mob_team_barrier(team), MOB_ERR_PEER) << mob_last_error();
  EXPECT_EQ(exercise(MOB_TEAM_WORLD), 0);
}

TEST(DISABLED_Ends, ASpawnedProcessAborts) {
  const mob_bridge_t bridge = spawn("abort", 1);
  static_cast<void>(merged(bridge));
}

TEST(DISABLED_Ends, NobodyJoins) {
  expect_failure("/bin/sleep", {"1000"}, 2, MOB_ERR_PEER, "MOBIUS_JOIN_SECONDS");
}

// Run where the launcher may open few files.
TEST(DISABLED_FewFiles, SomeOfTheProcessesAreEnough) {
  constexpr mob_rank_t kMany = 40;
  const std::array<const char*, 2> arguments{"leave", nullptr};
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, program, arguments.data(), kMany, nullptr, &bridge),
            MOB_ERR_SYSTEM);
  const char* const where =
      mob_host_size() == mob_size() ? "could not be started on this host" : "on virtual host 0";
  EXPECT_NE(std::strstr(mob_last_error(), where), nullptr) << mob_last_error();
  EXPECT_NE(std::strstr(mob_last_error(), "files"), nullptr) << mob_last_error();
  const mob_spawn_options_t options{MOB_SPAWN_SOME, 0, nullptr, nullptr, nullptr};
  EXPECT_EQ(mob_spawn(MOB_TEAM_WORLD, program, arguments.data(), kMany, &options, &bridge), MOB_OK)
      << mob_last_error();
  const mob_rank_t started = mob_bridge_others(bridge, nullptr);
  EXPECT_GE(started, 1);
  EXPECT_LT(started, kMany);
  disconnect(bridge);
}

// Run where a job can have few processes in its life.
TEST(DISABLED_FewNumbers, WhenTheyAreUsedUpTheErrorSaysSoAndTheJobGoesOn) {
  constexpr mob_rank_t kNumbers = 6;  // MOBIUS_MAX_PROCESSES
  for (mob_rank_t left = kNumbers - mob_size(); left > 0; --left) disconnect(spawn("leave", 1));
  expect_failure(program, {"leave"}, 1, MOB_ERR_RANGE, "this job has had 6 and can have 6");
  expect_failure(program, {"leave"}, 1, MOB_ERR_RANGE, "give them the next work");
  EXPECT_EQ(exercise(MOB_TEAM_WORLD), 0);
}

// Last: the processes stay connected until mob_finalize(), which waits for them.
TEST(Spawn, TheEndOfTheJobIsThatOfAllConnectedProcesses) {
  const mob_bridge_t bridge = spawn("stay", 2);
  const mob_team_t team = merged(bridge);
  EXPECT_EQ(exercise(team, !spawns_jobs()), 0);
}

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "spawned rank %d: %s: %s\n", mob_rank(), what, mob_last_error());
}

void exercise_merged() {
  const mob_team_t team = merged(mob_parent());
  failures += exercise(team, !is_own_job());
  expect(mob_team_free(team) == MOB_OK, "mob_team_free");
}

void stream() {
  const std::vector<unsigned char> payload(kStreamedBytes);
  std::vector<mob_rank_t> parents(static_cast<size_t>(mob_bridge_others(mob_parent(), nullptr)));
  mob_bridge_others(mob_parent(), parents.data());
  for (int i = 0; i < kStreamed; ++i) {
    for (const mob_rank_t parent : parents) {
      expect(mob_message_send(parent, kStream, nullptr, 0, payload.data(), payload.size(),
                              nullptr) == MOB_OK,
             "mob_message_send");
    }
  }
  for (const mob_rank_t parent : parents) {
    expect(mob_message_flush(parent) == MOB_OK, "mob_message_flush");
  }
}

int run_child(std::string_view what) {
  expect(mob_parent() != MOB_BRIDGE_NONE, "mob_parent");
  if (what == "numbers") {
    expect(mob_size() == 3 && mob_team_size(MOB_TEAM_WORLD) == 3, "size");
    mob_rank_t here = 0;  // of this world
    for (mob_rank_t i = 0; i < 3; ++i) {
      here += mob_is_host_mate(mob_team_number(MOB_TEAM_WORLD, i));
    }
    expect(mob_host_size() == here && mob_host_rank() < here, "host");
    mob_rank_t self = -1;
    expect(mob_host_mate(mob_host_rank(), &self) == MOB_OK && self == mob_rank(), "host rank");
    expect(own_rank() == mob_rank() - mob_team_number(MOB_TEAM_WORLD, 0), "number");
    const mob_rank_t parents = mob_bridge_others(mob_parent(), nullptr);
    std::vector<mob_rank_t> numbers(static_cast<size_t>(parents));
    mob_bridge_others(mob_parent(), numbers.data());
    expect(numbers[0] == 0 || is_own_job(), "first parent");
    for (const int order : {0, 1}) {
      const mob_team_t team = merged(mob_parent(), order);
      expect(mob_team_rank(team) == own_rank() + (order == 0 ? parents : 0), "merged rank");
      expect(mob_team_free(team) == MOB_OK, "mob_team_free");
    }
  } else if (what == "exercise") {
    failures += exercise(MOB_TEAM_WORLD);
    exercise_merged();
  } else if (what == "exercise_merged") {
    exercise_merged();
  } else if (what == "spawn") {
    const mob_bridge_t more = spawn("exercise_merged", 2);
    const mob_team_t team = merged(more);
    failures += exercise(team, !spawns_jobs());
    expect(mob_team_free(team) == MOB_OK, "mob_team_free");
    disconnect(more);
    exercise_merged();
  } else if (what == "reach") {
    const mob_team_t team = merged(mob_parent());
    std::vector<void*> addresses(static_cast<size_t>(mob_team_size(team)));
    expect(mob_publish(team, nullptr, addresses.data()) == MOB_OK, "mob_publish");
    for (mob_rank_t member = 0; member + 1 < mob_team_size(team); ++member) {
      auto* const words = static_cast<uint64_t*>(addresses[static_cast<size_t>(member)]);
      const mob_rank_t number = mob_team_number(team, member);
      uint64_t got = 0;
      expect(mob_get8(number, words, &got) == MOB_OK && got == 42, "mob_get8");
      expect(mob_put8(number, words + 1, got + 1) == MOB_OK, "mob_put8");
    }
    expect(mob_team_barrier(team) == MOB_OK, "mob_team_barrier");
    expect(mob_team_free(team) == MOB_OK, "mob_team_free");
  } else if (what == "keep") {
    // Frees nothing.
    void* block = nullptr;
    mob_counter_t counter = nullptr;
    mob_mem_t mem = nullptr;
    expect(mob_local_alloc(1000, 0, &block) == MOB_OK, "mob_local_alloc");
    expect(mob_counter_create(&counter) == MOB_OK, "mob_counter_create");
    expect(mob_mem_alloc(size_t{1} << 20, &mem) == MOB_OK, "mob_mem_alloc");
    stream();
  } else if (what == "options") {
    const char* const given = std::getenv("MOBIUS_DYNAMIC_TEST");
    expect(given != nullptr && std::string_view(given) == "from the root", "environment");
    std::array<char, 64> folder{};
    expect(getcwd(folder.data(), folder.size()) != nullptr && folder[1] == '\0', "folder");
  } else if (what == "exit") {
    static_cast<void>(merged(mob_parent()));
    std::printf("one of two\n");
    std::fflush(stdout);
    if (own_rank() == 1) _exit(9);
    mob_team_barrier(MOB_TEAM_WORLD);
    return 0;
  } else if (what == "abort") {
    mob_abort(11, "the spawned process has had enough");
  } else if (what == "stay") {
    failures += exercise(merged(mob_parent()), !is_own_job());
    return failures;
  } else {
    expect(what == "leave", "what to do");
  }
  disconnect(mob_parent());
  expect(mob_parent() == MOB_BRIDGE_NONE, "mob_parent after disconnect");
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  testing::InitGoogleTest(&argc, argv);
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "die_while_joining") {
    const char* rank = std::getenv("MOBIUS_RANK");
    if (rank == nullptr) rank = std::getenv("PMIX_RANK");
    if (rank != nullptr && std::atoi(rank) % 3 == 1) raise(SIGKILL);
  }
  if (mob_init() != MOB_OK) {
    std::fprintf(stderr, "mob_init: %s\n", mob_last_error());
    return 1;
  }
  mobius_test::register_exercise();
  EXPECT_EQ(mob_handler_register(kStream, on_stream, nullptr), MOB_OK);
  int result = 0;
  if (!what.empty()) {
    result = run_child(what);
  } else {
    result = RUN_ALL_TESTS();
    if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) result = 1;
  }
  if (mob_finalize() != MOB_OK) {
    std::fprintf(stderr, "mob_finalize: %s\n", mob_last_error());
    result = 1;
  }
  return result;
}
