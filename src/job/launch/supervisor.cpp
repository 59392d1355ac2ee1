// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "job/launch/output/pseudo_terminal.h"
#include "job/launch/process/descendants.h"
#include "job/launch/process/limits.h"
#include "job/launch/process/processors.h"
#include "os/process/process.h"

namespace mobius::launch {
namespace {

using std::chrono::milliseconds;

// Between asking ranks to end (SIGTERM) and ending them (SIGKILL), when another has failed.
constexpr milliseconds kGraceAfterFailure{250};
// The same, when a user asked by a signal: programs may save their work first, or dump core.
constexpr milliseconds kGraceAfterInterrupt{5000};
// A lost connection mostly means that the process is ending. Its exit status, soon after, says
// more.
constexpr milliseconds kGraceAfterLoss{100};

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Supervisor::Supervisor(const Plan& plan, int front)
    : plan_(plan),
      front_(front),
      output_(poller_, plan.options.processes, plan.options.tag),
      rendezvous_(poller_),
      ranks_(static_cast<size_t>(plan.options.processes)) {}

void Supervisor::open() {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  children_ = signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (children_ < 0) throw_errno("signalfd");
  poller_.add(children_, EPOLLIN, {Source::kChildren});
  // await_front() may have read what an event told of.
  fcntl(front_, F_SETFL, O_NONBLOCK);
  poller_.add(front_, EPOLLIN, {Source::kFront});
  descriptor_limit_ = raise_descriptor_limit(static_cast<uint64_t>(plan_.options.processes),
                                             Rendezvous::kMostUnknown);
  if (plan_.options.binding == Binding::kCore) processors_ = allowed_processors();
  input_rank_ = plan_.options.input_rank;
  // A terminal stops background process groups that read it, so this rank shares our group.
  if (input_rank_ >= 0 && isatty(STDIN_FILENO) != 0) grouped_rank_ = input_rank_;
  if (plan_.options.processes > 1 || input_rank_ < 0) {
    null_input_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_input_ < 0) throw_errno("/dev/null");
  }
}

int Supervisor::run() {
  open();
  if (rendezvous_.open(plan_.options.processes, plan_.options.virtual_hosts) != MOB_OK) {
    output_.say(mob_last_error());
    return kExitFailed;
  }
  while (!all_started() || running_ > 0) {
    start_some();
    settle_output();
    wait_and_handle();
  }
  for (const pid_t pid : end_descendants()) {
    output_.say(fmt::format("process {}, started by a rank, could not be ended", pid));
  }
  // All writers have ended, so the pipes hold all that will ever come.
  while (!output_.exhausted()) {
    settle_output();
    wait_and_handle();
  }
  output_.finish();
  for (settle_output(); !output_.empty(); settle_output()) wait_and_handle();
  return exit_code_;
}

void Supervisor::wait_and_handle() {
  std::array<epoll_event, 64> events;
  const size_t count = poller_.wait(events, timeout_ms());
  // Signals and deaths first: they must not wait while outsiders keep the listener busy.
  for (size_t i = 0; i < count; ++i) {
    const Source source = Poller::tag(events[i]).source;
    if (source == Source::kFront) on_front();
    if (source == Source::kChildren) on_children();
  }
  for (size_t i = 0; i < count; ++i) {
    const Tag tag = Poller::tag(events[i]);
    switch (tag.source) {
      case Source::kFront:
      case Source::kChildren:
        break;
      case Source::kListener:
        rendezvous_.on_listener();
        break;
      case Source::kConnection:
        rendezvous_.on_connection(tag.index);
        break;
      case Source::kDetached:
        rendezvous_.on_detached(static_cast<mob_rank_t>(tag.index));
        break;
      case Source::kStreams:
        output_.on_streams(tag.index);
        break;
      case Source::kSink:
        output_.on_room(tag.index);
        break;
    }
  }
  on_changes();
  check_deadlines();
}

int Supervisor::timeout_ms() const {
  if (!all_started()) return 0;
  Clock::time_point next = std::min({kill_at_, output_.deadline(), rendezvous_.deadline()});
  if (rendezvous_.lost() > 0) {
    for (const Rank& rank : ranks_) next = std::min(next, rank.lost_at);
  }
  if (next == kNever) return -1;
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<long>(left.count(), 0));
}

void Supervisor::start_some() {
  start_spawned();
  if (first_started()) return;
  for (int i = 0; i < kStartsPerTurn && !first_started(); ++i) {
    if (!start(next_)) break;
    ++next_;
  }
  // From here on only the ranks hold them, so the reader of such a pipe sees its end when the ranks
  // close it.
  if (first_started()) {
    for (const int descriptor : plan_.inherited) close(descriptor);
  }
}

bool Supervisor::gets_descriptors(mob_rank_t rank) const {
  return rank == input_rank_ || plan_.options.keep_descriptors;
}

bool Supervisor::start(mob_rank_t rank) {
  const os::Spawned spawned = start(rank, {plan_.program.c_str(), plan_.options.command,
                                           plan_.environment.of_rank(rendezvous_.key(), rank)});
  if (spawned.pid > 0) return true;
  const bool interpreter = spawned.error == ENOENT;  // the file itself was found before
  output_.say(fmt::format("rank {} of {} could not be started: {} ({}, {}){}", rank,
                          plan_.options.processes, std::strerror(spawned.error), spawned.step,
                          plan_.program,
                          interpreter ? "; is the interpreter that it names installed?" : ""));
  exit_code_ = std::strcmp(spawned.step, "execve") != 0 ? kExitFailed
               : interpreter                            ? kExitNotFound
                                                        : kExitNotExecutable;
  end_ranks();
  return false;
}

os::Spawned Supervisor::start(mob_rank_t rank, const Start& how) {
  int out[2] = {-1, -1};
  int err[2] = {-1, -1};
  os::Spawned spawned;
  const int input = rank == input_rank_ ? STDIN_FILENO : null_input_;
  const bool have_output =
      (plan_.options.output == OutputKind::kLine && open_pseudo_terminal(out)) ||
      pipe2(out, O_CLOEXEC) == 0;
  if (!have_output || pipe2(err, O_CLOEXEC) != 0) {
    spawned.error = errno;
    spawned.step = "pipe";
  } else {
    // Only the reading ends, because programs expect output to block.
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    std::vector<char*> arguments;
    for (const std::string& argument : how.arguments) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    ProcessorSet processor;
    if (!processors_.empty()) {
      processor.set_only(processors_[static_cast<size_t>(rank) % processors_.size()]);
    }
    spawned =
        os::spawn({how.program, arguments.data(), how.environment, how.folder, input, out[1],
                   err[1], processor.get(), processor.bytes(), &plan_.signal_mask,
                   descriptor_limit_ ? &*descriptor_limit_ : nullptr, rank != grouped_rank_,
                   how.world == 0 && gets_descriptors(rank) ? std::span<const int>(plan_.inherited)
                                                            : std::span<const int>()});
  }
  if (out[1] >= 0) close(out[1]);
  if (err[1] >= 0) close(err[1]);
  if (spawned.pid > 0) {
    output_.add(rank, Output::Channel::kOut, out[0]);
    output_.add(rank, Output::Channel::kErr, err[0]);
    Rank& started = ranks_[static_cast<size_t>(rank)];
    started.started = started.pid = spawned.pid;
    started.world = how.world;
    started.program = how.arguments[0];
    rank_of_[spawned.pid] = rank;
    ++running_;
    ++started_;
    return spawned;
  }
  if (out[0] >= 0) close(out[0]);
  if (err[0] >= 0) close(err[0]);
  return spawned;
}

void Supervisor::on_front() {
  unsigned char signals[64];
  const ssize_t got = read(front_, signals, sizeof signals);
  if (got == 0) {
    // The front process is gone, so everything ends now.
    end_descendants();
    _exit(kExitFailed);
  }
  for (ssize_t i = 0; i < got; ++i) {
    on_signal(signals[i] & ~kFromTerminal, (signals[i] & kFromTerminal) != 0);
  }
}

void Supervisor::on_signal(int signal, bool from_terminal) {
  if (signal == SIGTSTP) {
    signal_ranks(SIGSTOP);  // programs may ignore SIGTSTP and would go on alone
    return;
  }
  if (signal == SIGWINCH) output_.on_resize();
  // The terminal has sent it to our process group, and so to the rank that shares the group.
  signal_ranks(signal, from_terminal ? grouped_rank_ : -1);
  const bool urges = signal == SIGINT || signal == SIGTERM;
  if (!urges && signal != SIGHUP && signal != SIGQUIT) return;
  if (!urges) {
    passed_on_ = signal;
    // The programs decide whether the job ends, unless some have not been started yet.
    if (all_started() || interrupt_ != 0 || phase_ != Phase::kRunning) return;
  }
  const bool urged = interrupt_ == SIGINT || interrupt_ == SIGTERM;
  if (urged || phase_ != Phase::kRunning) {
    if (exit_code_ == 0) exit_code_ = kExitSignal + interrupt_;
    kill_ranks();
    output_.abandon_blocked();  // the user may be waiting for a reader that does not read
    return;
  }
  interrupt_ = signal;
  kill_at_ = Clock::now() + kGraceAfterInterrupt;
  if (!all_started()) {
    exit_code_ = kExitSignal + signal;
    end_ranks();
  }
}

void Supervisor::on_children() {
  std::array<signalfd_siginfo, 8> information;
  while (read(children_, information.data(), sizeof information) > 0) {
  }
  struct Ended {
    mob_rank_t rank;
    int status;
  };
  std::vector<Ended> ended;
  std::vector<mob_rank_t> ended_ranks;
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
    // Orphaned descendants of ranks are reaped here, too.
    const auto found = rank_of_.find(pid);
    if (found == rank_of_.end()) continue;
    ended.push_back({found->second, status});
    ended_ranks.push_back(found->second);
    ranks_[static_cast<size_t>(found->second)].pid = 0;
    rank_of_.erase(found);
    --running_;
  }
  for (const Ended& end : ended) {
    if (end.rank == grouped_rank_ && WIFSIGNALED(end.status)) await_front(WTERMSIG(end.status));
  }
  rendezvous_.catch_up(ended_ranks);
  for (const Ended& end : ended) on_rank_end(end.rank, end.status);
  on_changes();
}

// The terminal sends a signal to all of our process group at once, and the rank in it may end
// before the front process has passed the signal on. We are in the group, too: then the signal is
// pending here, where all are blocked, and the front is about to tell of it.
void Supervisor::await_front(int signal) {
  constexpr int kLimitMs = 1000;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  const timespec at_once{};
  if (sigtimedwait(&set, nullptr, &at_once) != signal) return;
  pollfd front{front_, POLLIN, 0};
  if (interrupt_ == 0 && poll(&front, 1, kLimitMs) > 0) on_front();
}

void Supervisor::on_rank_end(mob_rank_t rank, int status) {
  Rank& ended = ranks_[static_cast<size_t>(rank)];
  ended.lost_at = kNever;
  if (ended.given_up) {
    note_ended(ended.world);
    return;
  }
  if (phase_ != Phase::kRunning) return;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const bool passed_on = signal != 0 && signal == passed_on_;
  if (passed_on && interrupt_ == 0) {
    interrupt_ = signal;
    kill_at_ = Clock::now() + kGraceAfterInterrupt;
  }
  if (interrupt_ != 0) {
    // The user ended the job, so there is no message; the exit codes of the ranks count.
    if (signal == interrupt_ || passed_on) {
      exit_code_ = kExitSignal + signal;
    } else if (signal != 0) {
      fail(rank, "was killed by " + signal_text(signal), kExitSignal + signal);
    } else if (exit_code_ == 0) {
      exit_code_ = code;
    }
    return;
  }
  using State = Rendezvous::State;
  const State state = rendezvous_.member(rank).state;
  if (signal != 0) {
    fail(rank, "was killed by " + signal_text(signal) + (WCOREDUMP(status) ? ", core dumped" : ""),
         kExitSignal + signal);
  } else if (code != 0) {
    fail(rank, fmt::format("exited with code {}", code), code);
  } else if (rendezvous_.member(rank).aborted) {
    // mob_abort(0): the job is done, and has succeeded if no rank has failed before.
    output_.drain(rank);
    end_ranks();
  } else if (state == State::kJoined || state == State::kLost) {
    fail(rank, "exited without mob_finalize()", kExitFailed);
  } else if (state == State::kAbsent) {
    if (rendezvous_.joined() > 0) {
      fail(rank, "exited without mob_init(), which another rank has called", kExitFailed);
    } else {
      absent_.push_back(rank);
    }
  }
}

void Supervisor::on_changes() {
  on_worlds();
  for (const Rendezvous::Change& change : rendezvous_.take_changes()) {
    Rank& rank = ranks_[static_cast<size_t>(change.rank)];
    if (change.state == Rendezvous::State::kJoined) {
      for (const mob_rank_t absent : std::exchange(absent_, {})) {
        fail(absent, "exited without mob_init(), which another rank has called", kExitFailed);
      }
    }
    if (change.state == Rendezvous::State::kLost && rank.pid != 0 && !rank.given_up) {
      rank.lost_at = Clock::now() + kGraceAfterLoss;
    }
  }
}

void Supervisor::check_deadlines() {
  const Clock::time_point now = Clock::now();
  output_.on_time(now);
  rendezvous_.on_time(now);
  if (!rendezvous_.failure().empty() && phase_ == Phase::kRunning) {
    exit_code_ = kExitFailed;
    output_.say(rendezvous_.failure() + "; the ranks were ended");
    end_ranks();
  }
  if (kill_at_ <= now) {
    if (phase_ == Phase::kRunning) {
      if (running_ > 0) {
        output_.say(fmt::format("{} of {} ranks did not end within {} s of {} and were killed",
                                running_, started_, kGraceAfterInterrupt.count() / 1000,
                                signal_text(interrupt_)));
      }
      exit_code_ = kExitSignal + interrupt_;
      output_.abandon_blocked();
    }
    kill_ranks();
  }
  if (rendezvous_.lost() == 0 || phase_ != Phase::kRunning || interrupt_ != 0) return;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].lost_at > now) continue;
    if (is_ending(static_cast<mob_rank_t>(i))) {
      ranks_[i].lost_at = now + kGraceAfterLoss;
      continue;
    }
    ranks_[i].lost_at = kNever;
    fail(static_cast<mob_rank_t>(i), "left the job without mob_finalize()", kExitFailed);
  }
}

// Whether the exit status of a rank that has lost its connection is about to come. The kernel may
// take long to end a process with several threads.
bool Supervisor::is_ending(mob_rank_t rank) const {
  siginfo_t ended{};
  const auto child = static_cast<id_t>(ranks_[static_cast<size_t>(rank)].pid);
  if (waitid(P_PID, child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
    return true;
  }
  return os::process_is_ending(rendezvous_.member(rank).pid);
}

void Supervisor::settle_output() {
  output_.flush();
  const int error = output_.error();
  if (error == 0 || phase_ != Phase::kRunning) return;
  if (error == EPIPE) {
    // Ends without a message, as a program does that writes to a pipe without reader.
    exit_code_ = kExitSignal + SIGPIPE;
  } else {
    exit_code_ = kExitFailed;
    output_.say(fmt::format("writing standard {} failed: {}; the ranks were ended",
                            output_.standard_output_failed() ? "output" : "error",
                            std::strerror(error)));
  }
  end_ranks();
}

void Supervisor::fail(mob_rank_t rank, std::string_view what, int exit_code) {
  if (phase_ != Phase::kRunning) return;
  if (give_up_joining(rank, what)) return;
  const bool ends_job =
      plan_.on_death == base::OnDeath::kEnd || interrupt_ != 0 || rendezvous_.member(rank).aborted;
  if (exit_code_ == 0 || ends_job) exit_code_ = exit_code;
  if (!ends_job) {
    go_on_without(rank, what);
    return;
  }
  output_.drain(rank);
  output_.say(fmt::format("{} {}{}", describe(rank), what, fate_of_others()));
  end_ranks();
}

void Supervisor::go_on_without(mob_rank_t rank, std::string_view what) {
  Rank& gone = ranks_[static_cast<size_t>(rank)];
  const Rendezvous::Member& member = rendezvous_.member(rank);
  // The others count this rank as dead and take over its locks, so it must not go on. It may still
  // run if it closed its connection or outlived a wrapper.
  if (gone.pid != 0) signal_rank(rank, SIGKILL);
  if (member.state == Rendezvous::State::kJoined) kill(member.pid, SIGKILL);
  rendezvous_.declare_dead(rank);
  if (std::exchange(gone.failed, true)) return;
  output_.drain(rank);
  const mob_rank_t others = running_ - (gone.pid != 0 ? 1 : 0);
  output_.say(fmt::format("{} {}{}", describe(rank), what,
                          others > 0 ? "; the others go on (MOBIUS_ON_DEATH=error)" : ""));
}

std::string Supervisor::describe(mob_rank_t rank) const {
  const pid_t joined = rendezvous_.member(rank).pid;
  const pid_t pid = ranks_[static_cast<size_t>(rank)].started;
  return fmt::format("rank {} (process {}, {})", rank, joined != 0 ? joined : pid,
                     ranks_[static_cast<size_t>(rank)].program);
}

std::string Supervisor::fate_of_others() const {
  const mob_rank_t others = started_ - 1;
  if (running_ == 0) return "";
  if (running_ < others) {
    if (running_ == 1) return "; the one rank still running was ended";
    return fmt::format("; the {} ranks still running were ended", running_);
  }
  if (others == 1) return "; the other rank was ended";
  return fmt::format("; the other {} ranks were ended", others);
}

void Supervisor::end_ranks() {
  phase_ = Phase::kEnding;
  kill_at_ = Clock::now() + kGraceAfterFailure;
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // a stopped process handles SIGTERM only then
}

void Supervisor::kill_ranks() {
  phase_ = Phase::kKilled;
  kill_at_ = kNever;
  signal_ranks(SIGKILL);
}

void Supervisor::signal_ranks(int signal, mob_rank_t except) {
  for (mob_rank_t rank = 0; rank < static_cast<mob_rank_t>(ranks_.size()); ++rank) {
    if (rank != except) signal_rank(rank, signal);
  }
}

// Reaches the processes of the rank's process group. One rank may be in ours.
void Supervisor::signal_rank(mob_rank_t rank, int signal) {
  const pid_t pid = ranks_[static_cast<size_t>(rank)].pid;
  if (pid == 0) return;
  if (rank != grouped_rank_) {
    kill(-pid, signal);
    return;
  }
  const pid_t own_group = getpgrp();
  for (const pid_t each : with_descendants(pid)) {
    if (each == pid || getpgid(each) == own_group) kill(each, signal);
  }
}

}  // namespace mobius::launch
