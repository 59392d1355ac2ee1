// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/descendants.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace mobius::launch {
namespace {

// The list that the kernel keeps; false where it is built without (CONFIG_PROC_CHILDREN).
bool listed_children(std::vector<pid_t>* children) {
  const std::string path = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  int pid = 0;
  while (std::fscanf(file, "%d", &pid) == 1) children->push_back(pid);
  std::fclose(file);
  return true;
}

pid_t parent_of(const char* process) {
  std::FILE* file = std::fopen(("/proc/" + std::string(process) + "/stat").c_str(), "re");
  if (file == nullptr) return 0;
  char line[512];
  const size_t length = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[length] = '\0';
  // The name of a process may contain anything, so the fields start after the last parenthesis.
  const char* name_end = std::strrchr(line, ')');
  int parent = 0;
  return name_end != nullptr && std::sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : 0;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  if (listed_children(&found)) return found;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return found;
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && parent_of(entry->d_name) == getpid()) found.push_back(pid);
  }
  closedir(processes);
  return found;
}

}  // namespace

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<pid_t> end_descendants() {
  using std::chrono::steady_clock;
  const auto give_up = steady_clock::now() + std::chrono::seconds(5);
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  while (true) {
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG | __WALL)) > 0) {
    }
    if (reaped < 0) return {};
    const std::vector<pid_t> remaining = children();
    if (steady_clock::now() > give_up) return remaining;
    for (const pid_t child : remaining) kill(child, SIGKILL);
    // A signal that came before the list was read is not a reason to wait long.
    const timespec pause{0, 5'000'000};
    sigtimedwait(&child_ended, nullptr, &pause);
  }
}

}  // namespace mobius::launch
