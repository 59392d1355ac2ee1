// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/process/descendants.h"

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

#include "os/process/process.h"

namespace mobius::launch {
namespace {

// Reads the kernel's list; false if the kernel has none (CONFIG_PROC_CHILDREN).
bool listed_children(pid_t process, std::vector<pid_t>* children) {
  const std::string name = process == getpid() ? "self" : std::to_string(process);
  const std::string tasks = "/proc/" + name + "/task";
  DIR* folder = opendir(tasks.c_str());
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(folder)) {  // each thread has children of its own
    std::FILE* file = std::fopen((tasks + '/' + entry->d_name + "/children").c_str(), "re");
    if (file == nullptr) continue;
    found = true;
    int pid = 0;
    while (std::fscanf(file, "%d", &pid) == 1) children->push_back(pid);
    std::fclose(file);
  }
  closedir(folder);
  return found;
}

// The ids of a process in the namespaces of process ids that it is in, from that of /proc inwards.
std::vector<pid_t> ids_of(const std::string& process) {
  std::vector<pid_t> ids;
  std::FILE* file = std::fopen(("/proc/" + process + "/status").c_str(), "re");
  if (file == nullptr) return ids;
  char line[512];
  while (ids.empty() && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "NSpid:", 6) != 0) continue;
    char* rest = line + 6;
    for (long id = 0; (id = std::strtol(rest, &rest, 10)) > 0;) {
      ids.push_back(static_cast<pid_t>(id));
    }
  }
  std::fclose(file);
  return ids;
}

// The children of this process where /proc numbers processes as another namespace does.
std::vector<pid_t> children_elsewhere() {
  std::vector<pid_t> listed;
  std::vector<pid_t> found;
  listed_children(getpid(), &listed);
  const size_t depth = ids_of("self").size();
  for (const pid_t child : listed) {
    const std::vector<pid_t> ids = ids_of(std::to_string(child));
    if (depth > 0 && ids.size() >= depth) found.push_back(ids[depth - 1]);
  }
  return found;
}

std::vector<pid_t> children(pid_t process) {
  std::vector<pid_t> found;
  if (!os::proc_is_ours()) return process == getpid() ? children_elsewhere() : found;
  if (listed_children(process, &found)) return found;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return found;
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && os::process_parent(pid) == process) found.push_back(pid);
  }
  closedir(processes);
  return found;
}

}  // namespace

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<pid_t> with_descendants(pid_t pid) {
  std::vector<pid_t> found{pid};
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<pid_t> below = children(found[i]);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

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
    const std::vector<pid_t> remaining = children(getpid());
    if (steady_clock::now() > give_up) return remaining;
    for (const pid_t child : remaining) kill(child, SIGKILL);
    // The pause is short, because SIGCHLD may have come before the list was read.
    const timespec pause{0, 5'000'000};
    sigtimedwait(&child_ended, nullptr, &pause);
  }
}

}  // namespace mobius::launch
