// SPDX-License-Identifier: BSD-3-Clause

// One job of the soak (`./mobius test --soak`): soak_driver SEED MOMENT ENDING FATES. The seed
// chooses the operations of every rank. MOMENT is "early" or "late": fates begin before mob_init()
// or when all ranks are ready. ENDING is "survive" if the other ranks go on to the end, "end" if
// they may be ended. FATES is "-" or a list, with commas, of RANK:KIND:MICROSECONDS[:LENGTH]: a
// rank dies, or stops for a while, whatever it is doing then.
//
// A rank that found everything in order prints "rank N survived". A line that begins with WRONG is
// a promise that does not hold.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "job.h"

namespace soak {
namespace {

std::atomic<bool> complained = false;

constexpr struct {
  const char* name;
  Fate::Kind kind;
} kFates[] = {{"kill", Fate::kKill}, {"segv", Fate::kSegv},   {"exit", Fate::kExit},
              {"code", Fate::kCode}, {"abort", Fate::kAbort}, {"stop", Fate::kStop}};

void exit_with_success(int) { _exit(0); }
void exit_with_code(int) { _exit(7); }

// Sends a signal to this process at some moment, whatever it is doing then.
void arm(clockid_t clock, int signal, long after_us) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  timer_t timer{};
  itimerspec at{};
  at.it_value.tv_sec = after_us / 1'000'000;
  at.it_value.tv_nsec = after_us % 1'000'000 * 1000 + 1;
  if (timer_create(clock, &event, &timer) != 0 || timer_settime(timer, 0, &at, nullptr) != 0) {
    complain("no timer");
  }
}

// Half of the ranks die after so much of their own processor time, since on a loaded machine the
// others all die in their first operations. A rank that sleeps uses none; it dies somewhat later.
void arm(const Fate& fate, uint64_t seed, int signal) {
  constexpr long kLater = 10;
  if ((seed + static_cast<uint64_t>(fate.rank)) % 2 == 0) {
    return arm(CLOCK_MONOTONIC, signal, fate.after_us);
  }
  arm(CLOCK_PROCESS_CPUTIME_ID, signal, fate.after_us);
  arm(CLOCK_MONOTONIC, signal, kLater * fate.after_us);
}

// A child stops and continues this process, and ends with it.
void arm_stop(long after_us, long length_us) {
  const pid_t parent = getpid();
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  for (int descriptor = 0; descriptor < 64; ++descriptor) close(descriptor);
  usleep(static_cast<useconds_t>(after_us));
  kill(parent, SIGSTOP);
  usleep(static_cast<useconds_t>(length_us));
  kill(parent, SIGCONT);
  _exit(0);
}

void meet_fate(const Fate& fate, uint64_t seed) {
  switch (fate.kind) {
    case Fate::kKill:
      return arm(fate, seed, SIGKILL);
    case Fate::kSegv:
      return arm(fate, seed, SIGSEGV);
    case Fate::kExit:
      signal(SIGUSR1, exit_with_success);
      return arm(fate, seed, SIGUSR1);
    case Fate::kCode:
      signal(SIGUSR1, exit_with_code);
      return arm(fate, seed, SIGUSR1);
    case Fate::kAbort:
      std::thread([after = fate.after_us] {
        usleep(static_cast<useconds_t>(after));
        mob_abort(42, "because");
      }).detach();
      return;
    case Fate::kStop:
      return;  // begun before mob_init()
  }
}

void meet_fates(const Plan& plan, mob_rank_t rank) {
  for (const Fate& fate : plan.fates) {
    if (fate.rank == rank) meet_fate(fate, plan.seed);
  }
}

std::vector<Fate> parse_fates(const std::string& text) {
  std::vector<Fate> fates;
  for (size_t start = 0; text != "-" && start < text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    int rank = 0;
    char name[16] = "";
    long after = 0;
    long length = 0;
    const std::string word = text.substr(start, end - start);
    if (std::sscanf(word.c_str(), "%d:%15[a-z]:%ld:%ld", &rank, name, &after, &length) < 3) {
      std::fprintf(stderr, "soak_driver: no fate: %s\n", word.c_str());
      std::exit(2);
    }
    const auto* known = std::ranges::find_if(
        kFates, [&](const auto& each) { return std::strcmp(each.name, name) == 0; });
    if (known == std::end(kFates)) std::exit(2);
    fates.push_back({rank, known->kind, after, length});
    start = end + 1;
  }
  return fates;
}

// The files that this process has open. The library keeps one of the process' own map open.
std::vector<std::string> descriptors() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string file = std::filesystem::read_symlink(entry.path(), error).string();
    if (!error && !file.ends_with("/maps")) found.push_back(file);
  }
  return found;
}

// After mob_finalize() the process holds nothing of the job.
void check_nothing_left(size_t descriptors_before) {
  const std::vector<std::string> now = descriptors();
  if (now.size() > descriptors_before) {
    std::string which;
    for (const std::string& file : now) which += " " + file;
    complain("%zu descriptors before mob_init(), %zu after mob_finalize():%s", descriptors_before,
             now.size(), which.c_str());
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:") != std::string::npos) complain("still mapped: %s", line.c_str());
  }
}

int run(const Plan& plan) {
  const char* own_rank = std::getenv("MOBIUS_RANK");
  const mob_rank_t rank = own_rank == nullptr ? 0 : std::atoi(own_rank);
  for (const Fate& fate : plan.fates) {
    if (fate.rank == rank && fate.kind == Fate::kStop) arm_stop(fate.after_us, fate.length_us);
  }
  const size_t before = descriptors().size();
  if (plan.early) meet_fates(plan, rank);
  const mob_status_t status = mob_init();
  if (status != MOB_OK) {
    if (status != MOB_ERR_PEER || (!plan.early && plan.survived)) {
      complain("mob_init gave %s: %s", mob_status_name(status), mob_last_error());
    }
    if (!has_complained()) std::printf("rank %d survived\n", rank);
    return has_complained() ? 99 : 3;
  }
  Job job(plan);
  if (job.set_up()) {
    if (!plan.early) meet_fates(plan, rank);
    job.run();
    while (plan.is_victim(rank)) usleep(1000);  // until it dies
    job.check_end();
  } else {
    while (plan.is_victim(rank)) usleep(1000);
  }
  const mob_status_t left = mob_finalize();
  if (left != MOB_OK) complain("mob_finalize gave %s: %s", mob_status_name(left), mob_last_error());
  check_nothing_left(before);
  if (!has_complained()) std::printf("rank %d survived\n", rank);
  return has_complained() ? 99 : 0;
}

}  // namespace

void complain(const char* format, ...) {
  char text[1500];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "WRONG at rank %s: %s\n", std::getenv("MOBIUS_RANK"), text);
  complained = true;
}

bool has_complained() { return complained; }

bool Plan::is_victim(mob_rank_t rank) const {
  return std::ranges::any_of(
      fates, [&](const Fate& fate) { return fate.rank == rank && fate.kind != Fate::kStop; });
}

}  // namespace soak

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: soak_driver SEED early|late survive|end FATES\n");
    return 2;
  }
  soak::Plan plan;
  plan.seed = std::strtoull(argv[1], nullptr, 10);
  plan.early = std::string_view(argv[2]) == "early";
  plan.survived = std::string_view(argv[3]) == "survive";
  plan.fates = soak::parse_fates(argv[4]);
  return soak::run(plan);
}
