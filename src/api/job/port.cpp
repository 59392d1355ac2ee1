// SPDX-License-Identifier: BSD-3-Clause
// Jobs that connect by ports and sockets (dynamic.h).

#include "job/port.h"

#include <mobius/dynamic.h>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/check.h"
#include "os/sync/futex.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_not_null;
using api::check_team;
using base::fail;
using engine::Team;

namespace {

uint64_t port_number(mob_port_t port) { return reinterpret_cast<uintptr_t>(port); }
mob_bridge_t bridge_handle(uint64_t number) { return reinterpret_cast<mob_bridge_t>(number); }

engine::Registry<job::Port>& ports() { return engine::engine().bridges().ports(); }

// Whether this job can connect with others.
mob_status_t check_can_connect(const char* call) {
  job::Job& job = engine::engine().peers().job();
  if (job.host().control().header.window_bytes.load(std::memory_order_relaxed) != 0) return MOB_OK;
  return fail(MOB_ERR_STATE, "%s: the ranks of this job are threads; jobs of processes can connect",
              call);
}

mob_status_t check_name(const char* call, std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  job::PortText text;
  if (!name.empty() && name.size() <= job::kMostNameBytes &&
      std::ranges::all_of(name, is_allowed) && !job::parse_port_text(name, &text)) {
    return MOB_OK;
  }
  return fail(
      MOB_ERR_ARGUMENT,
      "%s: \"%.*s\" is no name of a port: 1 to %zu letters, digits and the characters . - _", call,
      static_cast<int>(std::min(name.size(), job::kMostNameBytes)), name.data(),
      job::kMostNameBytes);
}

// How others reach a port of this process.
job::PortReach own_reach() {
  engine::Engine& engine = engine::engine();
  return {engine.peers().job().hosts() == 1, !engine.instrumentation().hooked(),
          engine.settings().text(base::SettingId::kInterface)};
}

uint64_t seconds_of(const mob_connect_options_t& options) {
  if (options.seconds != 0) return options.seconds;
  return engine::engine().settings().number(base::SettingId::kJoinSeconds);
}

mob_status_t check_root(const char* call, const Team& team, mob_rank_t root) {
  if (root >= 0 && root < team.size()) return MOB_OK;
  return fail(MOB_ERR_RANK, "%s: rank %d is the root; the team's ranks are 0 to %d", call, root,
              team.size() - 1);
}

// Whether the processes of a team can connect to another job.
mob_status_t check_may_visit(const char* call, const Team& team) {
  if (team.services().peers.is_guest()) {
    return fail(MOB_ERR_STATE, "%s: the team is of another job, with which this one has connected",
                call);
  }
  if (!team.services().instrumentation.hooked()) return MOB_OK;
  return fail(MOB_ERR_STATE, "%s: not with hooks; unset MOBIUS_HOOKS", call);
}

}  // namespace

mob_status_t mob_port_open(const char* name, mob_port_t* port, char* text) {
  constexpr const char* kCall = "mob_port_open";
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (const mob_status_t status = check_not_null(kCall, port, "the result")) return status;
  if (const mob_status_t status = check_can_connect(kCall)) return status;
  if (name != nullptr) {
    if (const mob_status_t status = check_name(kCall, name)) return status;
  }
  return api::without_exceptions(kCall, [&] {
    engine::Registry<job::Port>::Place place(ports());
    if (const mob_status_t status = place.check(kCall)) return status;
    auto made = std::make_unique<job::Port>();
    const mob_status_t status = made->open(kCall, name != nullptr ? name : "", own_reach());
    if (status != MOB_OK) return status;
    const std::string wanted = made->text().text();
    static_assert(job::kPortTextBytes == MOB_PORT_BYTES);
    if (text != nullptr) std::memcpy(text, wanted.c_str(), wanted.size() + 1);
    *port = reinterpret_cast<mob_port_t>(place.fill(std::move(made)));
    return MOB_OK;
  });
}

mob_status_t mob_port_close(mob_port_t port) {
  constexpr const char* kCall = "mob_port_close";
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (port == MOB_PORT_NONE || ports().remove(port_number(port)) != nullptr) return MOB_OK;
  return fail(MOB_ERR_HANDLE, "%s: %p is not a live port (closed before, or never opened)", kCall,
              static_cast<void*>(port));
}

mob_status_t mob_accept(mob_team_t team, mob_port_t port, const mob_connect_options_t* options,
                        mob_bridge_t* bridge) {
  constexpr const char* kCall = "mob_accept";
  Team* members = nullptr;
  if (const mob_status_t status = check_team(kCall, team, &members)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (const mob_status_t status = check_can_connect(kCall)) return status;
  const mob_connect_options_t chosen = options != nullptr ? *options : mob_connect_options_t{};
  uint64_t handle = 0;
  // A wrong call takes part too, because the other members wait for it.
  const mob_status_t status = api::together(kCall, *members, [&] {
    mob_status_t mine = check_not_null(kCall, bridge, "the result");
    if (mine == MOB_OK) mine = check_root(kCall, *members, chosen.root);
    job::Port* found = nullptr;
    if (mine == MOB_OK && members->rank() == chosen.root) {
      found = ports().find(port_number(port));
      if (found == nullptr) {
        mine = fail(MOB_ERR_HANDLE, "%s: %p is not a live port (closed before, or never opened)",
                    kCall, static_cast<void*>(port));
      }
    }
    return engine::accept_at_port(kCall, *members, chosen.root, mine,
                                  engine::engine_of_object(team).bridges(), found,
                                  seconds_of(chosen), &handle);
  });
  engine::learn_numbers();
  if (status == MOB_OK) *bridge = bridge_handle(handle);
  return status;
}

mob_status_t mob_connect(mob_team_t team, const char* port, const mob_connect_options_t* options,
                         mob_bridge_t* bridge) {
  constexpr const char* kCall = "mob_connect";
  Team* members = nullptr;
  if (const mob_status_t status = check_team(kCall, team, &members)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (const mob_status_t status = check_can_connect(kCall)) return status;
  const mob_connect_options_t chosen = options != nullptr ? *options : mob_connect_options_t{};
  uint64_t handle = 0;
  const mob_status_t status = api::together(kCall, *members, [&] {
    mob_status_t mine = check_not_null(kCall, bridge, "the result");
    if (mine == MOB_OK) mine = check_root(kCall, *members, chosen.root);
    if (mine == MOB_OK) mine = check_may_visit(kCall, *members);
    const bool is_root = members->rank() == chosen.root;
    if (mine == MOB_OK && is_root) mine = check_not_null(kCall, port, "the port");
    job::PortText text;
    if (mine == MOB_OK && is_root && !job::parse_port_text(port, &text)) {
      mine = check_name(kCall, port);
    }
    const std::string_view where = is_root && port != nullptr ? port : "";
    return engine::connect_to_port(kCall, *members, chosen.root, mine, where, seconds_of(chosen),
                                   &handle);
  });
  engine::learn_numbers();
  if (status == MOB_OK) *bridge = bridge_handle(handle);
  return status;
}

namespace {

// Each of the two processes in mob_join() sends this greeting to the other one, then the text of
// its port (MOB_PORT_BYTES). The process with the lower number accepts, the other one connects.
struct JoinGreeting {
  char mark[16];
  job::Nonce number;
};
constexpr char kJoinMark[16] = "mobius join 2\n";
constexpr unsigned char kJoinFailed = 1;

mob_status_t closed(const char* call) {
  return fail(MOB_ERR_PEER, "%s: the other end of the socket was closed", call);
}

mob_status_t send_all(const char* call, int socket, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return closed(call);
    if (sent < 0) return base::fail_errno(MOB_ERR_SYSTEM, errno, "%s: sending failed", call);
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return MOB_OK;
}

mob_status_t receive_all(const char* call, int socket, uint64_t end_ns, void* data, size_t bytes) {
  constexpr int kWorkMs = 1;
  auto* at = static_cast<char*>(data);
  while (bytes != 0) {
    pollfd there{socket, POLLIN, 0};
    if (poll(&there, 1, kWorkMs) <= 0) {
      engine::engine().waiter().poll();
      if (os::now_ns() < end_ns) continue;
      return fail(MOB_ERR_PEER,
                  "%s: the other end of the socket has not called it in time "
                  "(MOBIUS_JOIN_SECONDS)",
                  call);
    }
    const ssize_t got = recv(socket, at, bytes, MSG_DONTWAIT);
    if (got == 0) return closed(call);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && errno == ECONNRESET) return closed(call);
    if (got < 0) return base::fail_errno(MOB_ERR_SYSTEM, errno, "%s: receiving failed", call);
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return MOB_OK;
}

mob_status_t join(const char* call, int socket, engine::Engine& engine, Team& own,
                  uint64_t* handle) {
  const uint64_t seconds = seconds_of({});
  job::Port port;
  if (const mob_status_t status = port.open(call, "", own_reach())) return status;
  const std::string own_text = port.text().text();
  JoinGreeting mine{};
  JoinGreeting theirs{};
  std::memcpy(mine.mark, kJoinMark, sizeof kJoinMark);
  char port_there[MOB_PORT_BYTES] = {};
  char port_here[MOB_PORT_BYTES] = {};
  std::memcpy(port_here, own_text.c_str(), own_text.size() + 1);
  const uint64_t end_ns = os::now_ns() + seconds * 1'000'000'000;
  const auto stranger = [&] {
    return fail(MOB_ERR_PEER, "%s: the other end of the socket is not in mob_join()", call);
  };
  mob_status_t status = job::make_random(mine.number);
  if (status == MOB_OK) status = send_all(call, socket, &mine, sizeof mine);
  if (status == MOB_OK) status = send_all(call, socket, port_here, sizeof port_here);
  if (status == MOB_OK) status = receive_all(call, socket, end_ns, &theirs, sizeof theirs);
  if (status != MOB_OK) return status;
  if (std::memcmp(theirs.mark, kJoinMark, sizeof kJoinMark) != 0 || mine.number == theirs.number) {
    return stranger();
  }
  status = receive_all(call, socket, end_ns, port_there, sizeof port_there);
  if (status != MOB_OK) return status;
  port_there[sizeof port_there - 1] = '\0';
  job::PortText there;
  if (!job::parse_port_text(port_there, &there)) return stranger();
  if (mine.number < theirs.number) {
    const auto look = [&] {
      unsigned char outcome = 0;
      const ssize_t got = recv(socket, &outcome, sizeof outcome, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return MOB_OK;
      if (got <= 0) return closed(call);
      return fail(MOB_ERR_PEER, "%s: the process at the other end could not join", call);
    };
    return engine::accept_at_port(call, own, 0, MOB_OK, engine.bridges(), &port, seconds, handle,
                                  look);
  }
  status = engine::connect_to_port(call, own, 0, check_may_visit(call, own), port_there, seconds,
                                   handle);
  if (status != MOB_OK) {
    const std::string text = mob_last_error();
    static_cast<void>(send_all(call, socket, &kJoinFailed, sizeof kJoinFailed));
    return fail(status, "%s", text.c_str());
  }
  return MOB_OK;
}

}  // namespace

mob_status_t mob_join(int socket, mob_bridge_t* bridge) {
  constexpr const char* kCall = "mob_join";
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (const mob_status_t status = check_not_null(kCall, bridge, "the result")) return status;
  if (const mob_status_t status = check_can_connect(kCall)) return status;
  uint64_t handle = 0;
  const mob_status_t status = api::without_exceptions(kCall, [&] {
    engine::Engine& engine = engine::engine();
    std::unique_ptr<Team> own;
    if (const mob_status_t made = engine.teams().make_own(&own)) return made;
    const mob_status_t joined = join(kCall, socket, engine, *own, &handle);
    engine.teams().end_own(*own);
    return joined;
  });
  engine::learn_numbers();
  if (status == MOB_OK) *bridge = bridge_handle(handle);
  return status;
}
