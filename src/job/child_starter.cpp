// SPDX-License-Identifier: BSD-3-Clause
#include "job/child_starter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "os/process/spawn.h"

namespace mobius::job {
namespace {

using base::fail;
using base::fail_errno;

// Connections of other processes of this user, at one time.
constexpr size_t kMostStrangers = 256;

std::string end_of(int status) {
  if (WIFSIGNALED(status)) {
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return WEXITSTATUS(status) == 0 ? "exited without mob_init()"
                                  : "exited with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

ChildStarter::~ChildStarter() {
  settle();
  for (const Child& child : children_) {
    if (child.pidfd >= 0) close(child.pidfd);
  }
  if (stop_ >= 0) close(stop_);
}

mob_status_t ChildStarter::listen() {
  mob_status_t status = make_secret(&secret_);
  if (status == MOB_OK) status = nonces_.open();
  if (status != MOB_OK) return status;
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "no descriptor to end a thread with");
  sockaddr_un address{};
  const socklen_t length = job_address(secret_, &address);
  bool taken = false;
  return listener_.listen(address, length, &taken);
}

mob_status_t ChildStarter::start(const SpawnRequest& request, std::string* reason) {
  program_ = request.arguments[0];
  mob_status_t status = listen();
  if (status != MOB_OK) *reason = mob_last_error();
  if (status == MOB_OK) status = start_all(request, reason);
  const auto started = static_cast<mob_rank_t>(children_.size());
  if (status != MOB_OK && started < std::max(world().least, 1)) {
    write_reason(segment_, world(), *reason);
    change_state(world(), WorldState::kAsked, WorldState::kFailed);
    return status;
  }
  world().size = started;
  change_state(world(), WorldState::kAsked, WorldState::kStarted);
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return MOB_OK;
}

mob_status_t ChildStarter::start_all(const SpawnRequest& request, std::string* reason) {
  const mob_rank_t count = world().size;
  const int null_input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_input < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "/dev/null");
  std::vector<char*> arguments;
  for (const std::string& each : request.arguments) {
    arguments.push_back(const_cast<char*>(each.c_str()));
  }
  arguments.push_back(nullptr);
  // No handler of the program runs in a child that still shares its memory.
  sigset_t all;
  sigset_t mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  mob_status_t status = MOB_OK;
  for (mob_rank_t i = 0; status == MOB_OK && i < count; ++i) {
    std::vector<std::string> entries = request.environment;
    entries.push_back(std::string(kJobVariable) + "=" + to_hex(secret_));
    entries.push_back(std::string(kRankVariable) + "=" + std::to_string(first_ + i));
    std::vector<char*> environment;
    for (std::string& entry : entries) environment.push_back(entry.data());
    environment.push_back(nullptr);
    const os::Spawned spawned = os::spawn({request.path.c_str(),
                                           arguments.data(),
                                           environment.data(),
                                           request.folder.c_str(),
                                           null_input,
                                           STDOUT_FILENO,
                                           STDERR_FILENO,
                                           nullptr,
                                           0,
                                           &mask,
                                           nullptr,
                                           false,
                                           {}});
    if (spawned.pid > 0) {
      Child child;
      child.pid = spawned.pid;
      child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, spawned.pid, 0));
      if (child.pidfd >= 0) fcntl(child.pidfd, F_SETFD, FD_CLOEXEC);
      children_.push_back(std::move(child));
      continue;
    }
    *reason = "process " + std::to_string(i) + " of " + std::to_string(count) + ", " +
              request.path +
              ", could not be started on this host: " + std::strerror(spawned.error) + " (" +
              spawned.step + ")";
    status = fail(MOB_ERR_SYSTEM, "%s", reason->c_str());
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  close(null_input);
  return status;
}

// The thread: lets processes join, and watches them.
void ChildStarter::serve() {
  constexpr int kLookMs = 50;
  std::vector<pollfd> watched;
  while (true) {
    watched.assign({{stop_, POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}});
    for (const Unknown& each : unknown_) watched.push_back({each.socket.descriptor(), POLLIN, 0});
    bool looks = false;
    for (const Child& child : children_) {
      if (child.pid == 0) continue;
      if (child.pidfd >= 0) watched.push_back({child.pidfd, POLLIN, 0});
      looks = looks || child.pidfd < 0;  // before Linux 5.3
    }
    if (poll(watched.data(), watched.size(), looks ? kLookMs : -1) < 0) continue;
    if (watched[0].revents != 0) return;
    // Each of them: what has come is read, whatever order it came in.
    std::vector<Unknown> silent;
    for (Unknown& each : unknown_) {
      if (!receive_hello(each)) silent.push_back(std::move(each));
    }
    unknown_ = std::move(silent);
    if (watched[1].revents != 0) accept_some();
    note_ends();
    if (world().state.load(std::memory_order_acquire) == WorldState::kEnded) return;
  }
}

void ChildStarter::accept_some() {
  for (size_t i = 0; i < kMostStrangers; ++i) {
    Unknown unknown;
    bool is_empty = false;
    if (listener_.accept(&unknown.socket, &unknown.pid, &is_empty) != MOB_OK || is_empty) return;
    if (!unknown.socket.is_open()) continue;  // another user's
    if (unknown_.size() >= kMostStrangers) unknown_.erase(unknown_.begin());
    unknown.nonce = nonces_.next();
    Message challenge;
    challenge.type = MessageType::kChallenge;
    challenge.nonce = unknown.nonce;
    if (unknown.socket.send(&challenge, sizeof challenge) == MOB_OK) {
      unknown_.push_back(std::move(unknown));
    }
  }
}

// Lets the process join, or drops the connection. False if nothing has arrived.
bool ChildStarter::receive_hello(Unknown& unknown) {
  pollfd there{unknown.socket.descriptor(), POLLIN, 0};
  if (poll(&there, 1, 0) <= 0) return false;
  Message hello;
  int unasked = -1;
  const ssize_t got =
      os::receive_message(unknown.socket.descriptor(), &hello, sizeof hello, &unasked);
  if (unasked >= 0) close(unasked);
  const bool is_ours = got == static_cast<ssize_t>(sizeof hello) && hello.magic == kProtocolMagic &&
                       hello.version == kProtocolVersion && hello.type == MessageType::kHello &&
                       is_proven(hello, secret_, unknown.nonce);
  const mob_rank_t index = hello.rank - first_;
  if (!is_ours || index < 0 || index >= static_cast<mob_rank_t>(children_.size())) return true;
  Child& child = children_[static_cast<size_t>(index)];
  if (child.connection.is_open()) return true;
  Message answer;
  answer.type = MessageType::kAdopted;
  answer.rank = hello.rank;
  answer.pid = unknown.pid;
  seal(answer, secret_, hello.nonce);
  if (unknown.socket.send(&answer, sizeof answer, segment_) == MOB_OK) {
    child.connection = std::move(unknown.socket);
  }
  return true;
}

void ChildStarter::note_ends() {
  std::string first_end;
  for (size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    int status = 0;
    if (child.pid == 0) continue;
    const pid_t ended = waitpid(child.pid, &status, WNOHANG);
    const bool is_reaped_by_others = ended < 0 && errno == ECHILD && kill(child.pid, 0) != 0;
    if (ended <= 0 && !is_reaped_by_others) continue;
    if (first_end.empty()) {
      first_end = "rank " + std::to_string(first_ + static_cast<mob_rank_t>(i)) + " (process " +
                  std::to_string(child.pid) + ", " + program_ + ") " +
                  (ended > 0 ? end_of(status) : "has ended") + " before all had joined";
    }
    child.pid = 0;
  }
  if (!first_end.empty()) give_up(first_end);
  if (world().state.load(std::memory_order_acquire) == WorldState::kFailed && have_ended()) {
    change_state(world(), WorldState::kFailed, WorldState::kEnded);
  }
}

// Ends the processes of a world that has not joined.
void ChildStarter::give_up(const std::string& reason) {
  const WorldState state = world().state.load(std::memory_order_acquire);
  if (state == WorldState::kStarted) {
    world().failure = MOB_ERR_PEER;
    write_reason(segment_, world(), reason);
    if (!change_state(world(), state, WorldState::kFailed)) return;
  } else if (state != WorldState::kFailed) {
    return;
  }
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].pid != 0) kill(children_[i].pid, SIGKILL);
    declare_dead(block_.slot(first_ + static_cast<mob_rank_t>(i)));
  }
}

void ChildStarter::settle() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = write(stop_, &one, sizeof one);
    thread_.join();
  }
  listener_.close();
  unknown_.clear();
}

void ChildStarter::cancel() {
  settle();
  for (size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    if (child.pid != 0) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
      child.pid = 0;
    }
    declare_dead(block_.slot(first_ + static_cast<mob_rank_t>(i)));
  }
  change_state(world(), WorldState::kFailed, WorldState::kEnded);
}

bool ChildStarter::have_ended() {
  bool all = true;
  for (Child& child : children_) {
    if (child.pid == 0) continue;
    const pid_t ended = waitpid(child.pid, nullptr, WNOHANG);
    if (ended > 0 || (ended < 0 && errno == ECHILD)) {
      child.pid = 0;
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace mobius::job
