// SPDX-License-Identifier: BSD-3-Clause

// Two jobs that connect. check_connect.sh starts this program twice: the two jobs get the same name
// of a port and the same list of steps, and one of them accepts.
//
//   connect_tests accept|connect NAME STEP…
//
// A name with a slash is a file instead, through which the text of the port is passed on: between
// hosts there are no names.

#include <mobius/mobius.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "exercise.h"

using mobius_test::exercise;

namespace {

int failures = 0;
bool accepts = false;
std::string name;

#define EXPECT(condition)                                                                  \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      ++failures;                                                                          \
      std::fprintf(stderr, "%s, rank %d: %s:%d: %s: %s\n", accepts ? "accept" : "connect", \
                   mob_rank(), __FILE__, __LINE__, #condition, mob_last_error());          \
    }                                                                                      \
  } while (false)
#define OK(call) EXPECT((call) == MOB_OK)

mob_port_t port = MOB_PORT_NONE;

bool uses_file() { return name.find('/') != std::string::npos; }

void open_port() {
  char text[MOB_PORT_BYTES] = {};
  OK(mob_port_open(uses_file() ? nullptr : name.c_str(), &port, text));
  if (!uses_file()) return;
  const std::string unfinished = name + ".part";
  std::FILE* const file = std::fopen(unfinished.c_str(), "w");
  EXPECT(file != nullptr && std::fputs(text, file) >= 0 && std::fclose(file) == 0);
  EXPECT(std::rename(unfinished.c_str(), name.c_str()) == 0);
}

// What to connect to; empty if it is not there yet.
std::string destination() {
  if (!uses_file()) return name;
  char text[MOB_PORT_BYTES] = {};
  std::FILE* const file = std::fopen(name.c_str(), "r");
  if (file == nullptr) return {};
  const size_t bytes = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  return {text, bytes};
}

bool is_root() { return mob_rank() == 0; }

// Connects all processes of both jobs. The other job may not have opened its port yet.
mob_bridge_t join(mob_team_t team = MOB_TEAM_WORLD) {
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  if (accepts) {
    OK(mob_accept(team, port, nullptr, &bridge));
    return bridge;
  }
  mob_status_t status = MOB_ERR_PEER;
  for (int i = 0; i < 5000 && status == MOB_ERR_PEER; ++i) {
    // Only the root's counts.
    std::string where;
    while (is_root() && (where = destination()).empty()) usleep(2000);
    status = mob_connect(team, where.c_str(), nullptr, &bridge);
    if (status != MOB_OK) usleep(2000);
  }
  OK(status);
  return bridge;
}

mob_team_t merged(mob_bridge_t bridge, int connected_first = 0) {
  mob_team_t team = MOB_TEAM_NONE;
  OK(mob_bridge_merge(bridge, connected_first, &team));
  return team;
}

void leave(mob_bridge_t bridge) { OK(mob_bridge_disconnect(bridge)); }

void numbers() {
  const mob_rank_t before = mob_size();
  const mob_rank_t own = mob_rank();
  const mob_bridge_t bridge = join();
  EXPECT(mob_size() == before && mob_rank() == own && mob_parent() == MOB_BRIDGE_NONE);
  const mob_rank_t count = mob_bridge_others(bridge, nullptr);
  EXPECT(count >= 1);
  std::vector<mob_rank_t> others(static_cast<size_t>(count));
  EXPECT(mob_bridge_others(bridge, others.data()) == count);
  for (const mob_rank_t other : others) EXPECT(other >= before && mob_rank_alive(other) == 1);
  const mob_team_t team = merged(bridge);
  const mob_rank_t offset = accepts ? 0 : count;
  EXPECT(mob_team_size(team) == before + count && mob_team_rank(team) == own + offset);
  EXPECT(mob_team_number(team, own + offset) == own);
  EXPECT(mob_team_number(team, accepts ? before : 0) == others[0]);
  mob_rank_t found = -2;
  OK(mob_team_translate(team, own + offset, MOB_TEAM_WORLD, &found));
  EXPECT(found == own);
  OK(mob_team_translate(team, accepts ? before : 0, MOB_TEAM_WORLD, &found));
  EXPECT(found == -1);
  OK(mob_team_translate(MOB_TEAM_WORLD, own, team, &found));
  EXPECT(found == own + offset);
  OK(mob_team_free(team));
  leave(bridge);
  uint64_t word = 0;
  EXPECT(accepts || mob_rank_alive(others[0]) == MOB_ERR_RANK);
  EXPECT(mob_put8(others[0], &word, 1) != MOB_OK);
}

void operations() {
  const mob_bridge_t bridge = join();
  for (const int order : {0, 1}) {
    const mob_team_t team = merged(bridge, order);
    failures += exercise(team, false);
    OK(mob_team_free(team));
  }
  failures += exercise(MOB_TEAM_WORLD);
  leave(bridge);
  failures += exercise(MOB_TEAM_WORLD);
}

// A part of each job connects.
void parts() {
  mob_team_t half = MOB_TEAM_NONE;
  OK(mob_team_split(MOB_TEAM_WORLD, mob_rank() == 0 ? 0 : -1, 0, &half));
  if (half != MOB_TEAM_NONE) {
    const mob_bridge_t bridge = join(half);
    const mob_team_t team = merged(bridge);
    failures += exercise(team, false);
    mob_heap_t heap = nullptr;
    void* block = nullptr;
    void* remote = nullptr;
    OK(mob_heap_create(team, 1 << 20, 1 << 20, &heap));
    OK(mob_heap_malloc(heap, 64, &block));
    for (mob_rank_t i = 0; i < mob_team_size(team); ++i) {
      const mob_rank_t number = mob_team_number(team, i);
      OK(mob_heap_address(heap, number, block, &remote));
      uint64_t old = 0;
      OK(mob_fetch_add8(number, remote, 1, &old));
    }
    OK(mob_team_barrier(team));
    EXPECT(*static_cast<uint64_t*>(block) == static_cast<uint64_t>(mob_team_size(team)));
    auto* const lock = static_cast<mob_lock_t*>(block) + 1;
    void* shared = nullptr;
    OK(mob_heap_address(heap, mob_team_number(team, 0), lock, &remote));
    OK(mob_ptr(mob_team_number(team, 0), remote, &shared));
    OK(mob_lock(static_cast<mob_lock_t*>(shared), nullptr));
    OK(mob_unlock(static_cast<mob_lock_t*>(shared)));
    OK(mob_heap_destroy(heap));
    const mob_rank_t other = mob_team_number(team, 1 - mob_team_rank(team));
    OK(mob_notify(other));
    OK(mob_notify_wait(other, nullptr));
    OK(mob_team_free(team));
    leave(bridge);
    OK(mob_team_free(half));
  }
  OK(mob_barrier());
}

// Bytes of a job's own allocations are not reached from the other job; those of the job that
// accepts are.
void reach() {
  mob_mem_t own = nullptr;
  OK(mob_mem_alloc(64, &own));
  *static_cast<uint64_t*>(mob_mem_local(own)) = 42;
  const mob_bridge_t bridge = join();
  const mob_team_t team = merged(bridge);
  std::vector<void*> all(static_cast<size_t>(mob_team_size(team)));
  OK(mob_publish(team, mob_mem_local(own), all.data()));
  std::vector<mob_rank_t> others(static_cast<size_t>(mob_bridge_others(bridge, nullptr)));
  mob_bridge_others(bridge, others.data());
  const size_t first = accepts ? static_cast<size_t>(mob_size()) : 0;
  for (size_t i = 0; i < others.size(); ++i) {
    for (int round = 0; round < 2; ++round) {
      uint64_t got = 0;
      const mob_status_t status = mob_get8(others[i], all[first + i], &got);
      EXPECT(accepts ? status == MOB_ERR_RANGE : status == MOB_OK && got == 42);
    }
  }
  mob_bridge_t more = MOB_BRIDGE_NONE;
  const std::array<const char*, 1> none{nullptr};
  EXPECT(mob_connect(team, "nowhere", nullptr, &more) != MOB_OK);
  EXPECT(mob_spawn(team, "/bin/true", none.data(), 1, nullptr, &more) != MOB_OK);
  OK(mob_team_free(team));
  leave(bridge);
  OK(mob_mem_free(own));
}

// Both sides stay connected until the end of the jobs.
void stay() { failures += exercise(merged(join()), false); }

// Each job connects to the other one, and both stay connected until their end.
void both_ways() {
  const mob_bridge_t first = join();
  const std::string own_name = name;
  const mob_port_t own_port = port;
  name += "-back";
  accepts = !accepts;
  if (accepts && is_root()) OK(mob_port_open(name.c_str(), &port, nullptr));
  const mob_bridge_t second = join();
  if (accepts) OK(mob_port_close(port));
  accepts = !accepts;
  name = own_name;
  port = own_port;
  for (const mob_bridge_t bridge : {first, second}) failures += exercise(merged(bridge), false);
}

// Jobs that connect again and again.
void cycle(int times, int before) {
  mobius_test::Resources first{};
  for (int i = 0; i < times; ++i) {
    const mob_bridge_t bridge = join();
    const mob_team_t team = merged(bridge);
    OK(mob_team_barrier(team));
    OK(mob_team_free(team));
    leave(bridge);
    if (i == before) first = mobius_test::resources();
  }
  EXPECT(mobius_test::has_not_grown(first, (times - before) * mob_size()));
}

// Under --full: so many times that any leak shows.
void cycles() { cycle(1000, 50); }
void few_cycles() { cycle(100, 30); }

// A second bridge to the same job fails, and nothing of it is left.
void refused() {
  constexpr int kTimes = 60;
  constexpr int kFirst = 10;
  const mob_bridge_t bridge = join();
  const mob_team_t team = merged(bridge);
  mobius_test::Resources first{};
  for (int i = 0; i < kTimes; ++i) {
    mob_bridge_t second = MOB_BRIDGE_NONE;
    const mob_status_t status = accepts
                                    ? mob_accept(MOB_TEAM_WORLD, port, nullptr, &second)
                                    : mob_connect(MOB_TEAM_WORLD, name.c_str(), nullptr, &second);
    EXPECT(status != MOB_OK && second == MOB_BRIDGE_NONE);
    OK(mob_team_barrier(team));
    if (i == kFirst) first = mobius_test::resources();
  }
  EXPECT(mobius_test::has_not_grown(first, (kTimes - kFirst) * mob_size()));
  failures += exercise(team, false);
  OK(mob_team_free(team));
  leave(bridge);
}

// Sends something that is no greeting to the port's name.
void shout() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = "mobius-name-" + std::to_string(geteuid()) + "-" + name;
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  for (int i = 0; i < 200; ++i) {
    const int socket_made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const char noise[160] = {};
    if (connect(socket_made, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      static_cast<void>(send(socket_made, noise, i % 3 == 0 ? 10 : sizeof noise, MSG_NOSIGNAL));
    }
    close(socket_made);
  }
}

void strangers() {
  if (!accepts && is_root()) {
    usleep(100'000);
    shout();
  }
  operations();
}

// One process of the job that connects is killed at a random time; the other job goes on.
void killed() {
  if (!accepts) {
    std::srand(static_cast<unsigned>(getpid()));
    if (mob_rank() == mob_size() - 1) {
      const auto wait = std::chrono::microseconds(std::rand() % 4000);
      std::thread([wait] {
        std::this_thread::sleep_for(wait);
        raise(SIGKILL);
      }).detach();
    }
    for (;;) {
      mob_bridge_t bridge = MOB_BRIDGE_NONE;
      if (mob_connect(MOB_TEAM_WORLD, name.c_str(), nullptr, &bridge) == MOB_OK) {
        mob_bridge_disconnect(bridge);
      } else if (mob_team_barrier(MOB_TEAM_WORLD) != MOB_OK) {
        std::exit(9);  // the job ends with the code of the one that was killed
      }
    }
  }
  const mob_connect_options_t options{0, 1};
  uint64_t is_over = 0;
  while (is_over == 0) {
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    const mob_status_t status = mob_accept(MOB_TEAM_WORLD, port, &options, &bridge);
    EXPECT(status == MOB_OK || status == MOB_ERR_PEER);
    is_over = std::strstr(mob_last_error(), "nobody has connected") != nullptr ? 1 : 0;
    if (status == MOB_OK) {
      is_over = 0;
      mob_bridge_disconnect(bridge);
    }
    OK(mob_broadcast(MOB_TEAM_WORLD, 0, &is_over, sizeof is_over));
  }
  failures += exercise(MOB_TEAM_WORLD);
}

// Calls that are wrong, or that nobody answers. One job alone.
void misuse() {
  char text[MOB_PORT_BYTES] = {};
  mob_port_t own = MOB_PORT_NONE;
  mob_port_t second = MOB_PORT_NONE;
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  const mob_connect_options_t short_time{0, 1};
  const mob_connect_options_t wrong_root{mob_size(), 0};
  if (!is_root()) return;
  mob_team_t self = MOB_TEAM_WORLD;
  const std::string mine = "misuse-" + std::to_string(getpid());
  OK(mob_port_open(mine.c_str(), &own, text));
  EXPECT(mob_port_open(mine.c_str(), &second, nullptr) == MOB_ERR_STATE);
  EXPECT(mob_port_open("", &second, nullptr) == MOB_ERR_ARGUMENT);
  EXPECT(mob_port_open("a b", &second, nullptr) == MOB_ERR_ARGUMENT);
  EXPECT(mob_port_open(text, &second, nullptr) == MOB_ERR_ARGUMENT);
  EXPECT(mob_port_open(std::string(65, 'x').c_str(), &second, nullptr) == MOB_ERR_ARGUMENT);
  EXPECT(mob_port_open(nullptr, nullptr, nullptr) == MOB_ERR_ARGUMENT);
  EXPECT(mob_accept(self, MOB_PORT_NONE, nullptr, &bridge) == MOB_ERR_HANDLE);
  EXPECT(mob_accept(self, own, nullptr, nullptr) == MOB_ERR_ARGUMENT);
  EXPECT(mob_accept(self, own, &wrong_root, &bridge) == MOB_ERR_RANK);
  EXPECT(mob_accept(MOB_TEAM_NONE, own, nullptr, &bridge) == MOB_ERR_HANDLE);
  EXPECT(mob_accept(self, own, &short_time, &bridge) == MOB_ERR_PEER);
  EXPECT(std::strstr(mob_last_error(), "nobody has connected") != nullptr);
  EXPECT(mob_connect(self, nullptr, nullptr, &bridge) == MOB_ERR_ARGUMENT);
  EXPECT(mob_connect(self, "no name", nullptr, &bridge) == MOB_ERR_ARGUMENT);
  EXPECT(mob_connect(self, "nowhere-at-all", nullptr, &bridge) == MOB_ERR_PEER);
  EXPECT(std::strstr(mob_last_error(), "no such port") != nullptr);
  EXPECT(mob_connect(self, text, &wrong_root, &bridge) == MOB_ERR_RANK);
  EXPECT(mob_connect(self, text, &short_time, &bridge) == MOB_ERR_PEER);
  EXPECT(std::strstr(mob_last_error(), "nobody has accepted") != nullptr);
  OK(mob_port_close(own));
  OK(mob_port_close(MOB_PORT_NONE));
  EXPECT(mob_port_close(own) == MOB_ERR_HANDLE);
  EXPECT(mob_connect(self, text, nullptr, &bridge) == MOB_ERR_PEER);
  EXPECT(mob_join(-1, &bridge) == MOB_ERR_SYSTEM);
  int ends[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  close(ends[1]);
  EXPECT(mob_join(ends[0], &bridge) == MOB_ERR_PEER);
  close(ends[0]);
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const std::string noise(200, 'x');
  EXPECT(write(ends[1], noise.data(), noise.size()) == 200);
  EXPECT(mob_join(ends[0], &bridge) == MOB_ERR_PEER);
  close(ends[0]);
  close(ends[1]);
  EXPECT(bridge == MOB_BRIDGE_NONE);
  failures += exercise(self);
}

// A TCP connection to a process of the other job. The number of the port goes through a socket
// whose name both know.
int tcp_to_other() {
  sockaddr_un meeting{};
  meeting.sun_family = AF_UNIX;
  const std::string text = "mobius-test-" + name;
  std::memcpy(meeting.sun_path + 1, text.data(), text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const auto* const known = reinterpret_cast<const sockaddr*>(&meeting);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&there);
  socklen_t bytes = sizeof there;
  const int tells = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int result = tcp;
  if (accepts) {
    EXPECT(bind(tcp, generic, bytes) == 0 && listen(tcp, 1) == 0 &&
           getsockname(tcp, generic, &bytes) == 0);
    EXPECT(bind(tells, known, length) == 0 && listen(tells, 1) == 0);
    const int to = accept(tells, nullptr, nullptr);
    EXPECT(write(to, &there, sizeof there) == sizeof there);
    close(to);
    result = accept(tcp, nullptr, nullptr);
    close(tcp);
  } else {
    while (connect(tells, known, length) != 0) usleep(2000);
    EXPECT(read(tells, &there, sizeof there) == sizeof there);
    EXPECT(connect(tcp, generic, sizeof there) == 0);
  }
  close(tells);
  return result;
}

// One process of each job joins the other.
void joined() {
  if (is_root()) {
    const int socket_made = tcp_to_other();
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    OK(mob_join(socket_made, &bridge));
    close(socket_made);
    const mob_team_t team = merged(bridge);
    EXPECT(mob_team_size(team) == 2);
    failures += exercise(team, false);
    OK(mob_team_free(team));
    leave(bridge);
  }
  OK(mob_barrier());
}

// Two processes with a socket between them, each of which is a job of its own.
int run_joined(int type) {
  int ends[2];
  if (socketpair(AF_UNIX, type, 0, ends) != 0) return 1;
  const pid_t child = fork();
  accepts = child != 0;  // for messages alone
  if (mob_init() != MOB_OK) return 1;
  mobius_test::register_exercise();
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  OK(mob_join(ends[child == 0 ? 0 : 1], &bridge));
  const mob_team_t team = merged(bridge);
  EXPECT(mob_team_size(team) == 2);
  failures += exercise(team, false);
  OK(mob_team_free(team));
  leave(bridge);
  OK(mob_finalize());
  if (child == 0) _exit(failures != 0 ? 1 : 0);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 && failures == 0 ? 0 : 1;
}

struct Step {
  const char* name;
  void (*run)();
};
const Step kSteps[] = {{"numbers", numbers}, {"operations", operations}, {"parts", parts},
                       {"reach", reach},     {"strangers", strangers},   {"killed", killed},
                       {"stay", stay},       {"misuse", misuse},         {"both_ways", both_ways},
                       {"cycles", cycles},   {"few_cycles", few_cycles}, {"joined", joined},
                       {"refused", refused}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (std::string_view(argv[1]) == "join") {
    return run_joined(std::string_view(argv[2]) == "stream" ? SOCK_STREAM : SOCK_SEQPACKET);
  }
  accepts = std::string_view(argv[1]) == "accept";
  name = argv[2];
  if (mob_init() != MOB_OK) {
    std::fprintf(stderr, "mob_init: %s\n", mob_last_error());
    return 1;
  }
  mobius_test::register_exercise();
  if (accepts && is_root() && name != "-") open_port();
  for (int i = 3; i < argc; ++i) {
    bool found = false;
    for (const Step& step : kSteps) {
      if (std::string_view(argv[i]) != step.name) continue;
      found = true;
      step.run();
    }
    EXPECT(found);
  }
  OK(mob_port_close(port));
  OK(mob_finalize());
  return failures != 0 ? 1 : 0;
}
