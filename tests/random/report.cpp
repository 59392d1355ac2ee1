// SPDX-License-Identifier: BSD-3-Clause
#include "random/report.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace random_program {

namespace {

// A program takes milliseconds, or seconds under a sanitizer: this long is a hang.
constexpr unsigned kHangSeconds = 120;

char replay[1024] = "";

void end_a_hang(int) {
  constexpr char kText[] = "random program: it hangs; repeat it with\n  ";
  bool written = write(STDERR_FILENO, kText, sizeof kText - 1) > 0;
  written = write(STDERR_FILENO, replay, strlen(replay)) > 0 && written;
  _exit(written ? 3 : 4);
}

}  // namespace

void set_replay(const std::string& command) {
  if (replay[0] == '\0') std::signal(SIGALRM, end_a_hang);
  alarm(kHangSeconds);
  std::snprintf(replay, sizeof replay, "%s\n", command.c_str());
}

void report(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s\nrepeat it with\n  %s", mob_rank(), what.c_str(), replay);
  mob_abort(1, "a random program went wrong");
}

void check(mob_status_t status, const char* call) {
  if (status == MOB_OK) return;
  report(std::string(call) + " failed: " + mob_status_name(status) + ": " + mob_last_error());
}

}  // namespace random_program
