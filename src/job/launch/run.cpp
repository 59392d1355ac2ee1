// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

#include "base/settings.h"
#include "job/bootstrap/local_protocol.h"
#include "job/launch/output/say.h"
#include "job/launch/output/terminal_modes.h"
#include "job/launch/process/descendants.h"
#include "job/launch/process/limits.h"
#include "job/launch/process/program.h"
#include "job/launch/supervisor.h"
#include "os/file/standard_descriptors.h"

namespace mobius::launch {
namespace {

constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                             SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT};

// Makes sure that descriptors 0 to 2 exist, so that none of ours becomes a rank's standard output.
// Returns the descriptors from 3 on that we inherited; all of them close on exec from now on.
std::vector<int> tidy_descriptors() {
  os::open_standard_descriptors();
  std::vector<int> inherited;
  const auto take = [&](int descriptor) {
    if (descriptor > STDERR_FILENO && fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0) {
      inherited.push_back(descriptor);
    }
  };
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(folder)) {
      if (std::atoi(entry->d_name) != dirfd(folder)) take(std::atoi(entry->d_name));
    }
    closedir(folder);
    return inherited;
  }
  // Without /proc the numbers that shells use are tried.
  constexpr long kMostTried = 4096;
  for (int other = 3; other < std::min(sysconf(_SC_OPEN_MAX), kMostTried); ++other) take(other);
  return inherited;
}

// Those of kPassedOn that were not ignored when we were started; nohup ignores SIGHUP for us.
sigset_t signals_to_take() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : kPassedOn) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&taken, signal);
    }
  }
  return taken;
}

// Programs write colours to a terminal. Where our output is a file or a pipe they shall not,
// although they have a pseudo-terminal.
std::vector<std::string> rank_environment(const RunOptions& options) {
  std::vector<std::string> changes = options.environment;
  const bool hides_pipe = options.output == OutputKind::kLine && isatty(STDOUT_FILENO) == 0;
  if (hides_pipe && std::getenv("TERM") != nullptr) changes.insert(changes.begin(), "TERM=dumb");
  return changes;
}

int check(const RunOptions& options, const Environment& environment, Program* program,
          base::OnDeath* on_death) {
  base::Settings settings;
  if (settings.load(environment.common()) != MOB_OK) {
    say("{}", mob_last_error());
    return kExitUsage;
  }
  for (const std::string& warning : settings.unknown()) say("warning: {}", warning);
  *on_death = settings.on_death();
  *program = find_program(options.command[0], environment.get("PATH"));
  if (program->exit_code != 0) {
    say("{}", program->problem);
    return program->exit_code;
  }
  const auto wanted = static_cast<uint64_t>(options.processes);
  const Limit limit = process_limit(wanted);
  if (wanted > limit.processes) {
    say("-n {} is more than the {} processes that this host allows now: {}", wanted,
        limit.processes, limit.reason);
    return kExitUsage;
  }
  return 0;
}

[[noreturn]] void work(const Plan& plan, int front) {
  prctl(PR_SET_NAME, "mobius-worker", 0, 0, 0);
  become_subreaper();
  int exit_code = kExitFailed;
  try {
    exit_code = Supervisor(plan, front).run();
  } catch (const std::exception& problem) {
    say("{}; the ranks were ended", problem.what());
    end_descendants();
  }
  _exit(exit_code);
}

// Passes signals on until the worker has ended; returns its exit code.
int wait_for(pid_t worker, int to_worker, const sigset_t& taken) {
  sigset_t awaited = taken;
  sigaddset(&awaited, SIGCHLD);
  int urgent = 0;
  while (true) {
    int status = 0;
    if (waitpid(worker, &status, WNOHANG) == worker) {
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      const int signal = WTERMSIG(status);
      say("the launcher's worker (process {}) was killed by signal {} ({}); all ranks were ended",
          worker, signal, strsignal(signal));
      return kExitSignal + signal;
    }
    siginfo_t information{};
    const int signal = sigwaitinfo(&awaited, &information);
    if (signal <= 0 || signal == SIGCHLD) continue;
    // The worker kills the ranks at the second signal. At the fourth it has evidently not done so.
    if ((signal == SIGINT || signal == SIGTERM) && ++urgent == 4) kill(worker, SIGKILL);
    const int origin = information.si_code == SI_KERNEL ? kFromTerminal : 0;
    const auto byte = static_cast<unsigned char>(signal | origin);
    [[maybe_unused]] const ssize_t wrote = write(to_worker, &byte, 1);
    if (signal == SIGTSTP) kill(getpid(), SIGSTOP);  // the shell waits for this
  }
}

}  // namespace

int run(const RunOptions& options) {
  const std::vector<int> inherited = tidy_descriptors();
  const TerminalModes terminal;
  signal(SIGCHLD, SIG_DFL);  // if it were ignored, the kernel would discard the exit codes
  Environment environment(environ, rank_environment(options));
  Program program;
  base::OnDeath on_death{};
  if (const int exit_code = check(options, environment, &program, &on_death)) return exit_code;

  Plan plan{options, program.path, environment, inherited, {}, on_death};
  const sigset_t taken = signals_to_take();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &plan.signal_mask);
  become_subreaper();
  int ends[2];
  pid_t worker = -1;
  if (pipe2(ends, O_CLOEXEC) == 0) worker = fork();
  if (worker < 0) {
    say("cannot start the launcher's worker: {}", std::strerror(errno));
    return kExitFailed;
  }
  if (worker == 0) {
    close(ends[1]);
    work(plan, ends[0]);
  }
  close(ends[0]);
  for (const int descriptor : inherited) close(descriptor);  // the worker keeps them for the ranks
  fcntl(ends[1], F_SETFL, O_NONBLOCK);  // a stopped worker must not block the front
  // The worker blocks all signals, the front only those that it waits for.
  sigset_t blocked = taken;
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SIGPIPE);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);

  const int exit_code = wait_for(worker, ends[1], taken);
  for (const pid_t pid : end_descendants()) say("process {} could not be ended", pid);
  // A program that succeeds may have set the terminal on purpose, as stty does.
  if (exit_code != 0) terminal.restore();
  return exit_code;
}

}  // namespace mobius::launch
