// SPDX-License-Identifier: BSD-3-Clause

// Processes that the program spawns get the front as those that spawn them have it. Hydra hands on
// its variables; Open MPI does not hand on those that its launcher set by -x.

#include "binding/abi.h"

#if defined(MOBIUS_MPI_OMPI)

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/real.h"

namespace mobius::mpi {
namespace {

// The info key for "NAME=VALUE" lines of spawned processes. Open MPI 5 takes the old one, too, and
// says each time that it is old.
const char* key_of_variables() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  static_cast<void>(real::Get_library_version(text, &length));
  return std::strstr(text, "Open MPI v4") != nullptr ? "env" : "PMIX_ENVAR";
}

std::string lines_of(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  if (info == MPI_INFO_NULL ||
      real::Info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &flag) != MPI_SUCCESS || flag == 0) {
    return {};
  }
  return value;
}

bool has_front(std::string_view preload) {
  return preload.find("libmobius_" MOBIUS_MPI_FRONT) != std::string_view::npos;
}

// Adds a line if it fits into the value of an info key.
bool add_line(std::string* lines, std::string_view line) {
  const size_t bytes = lines->size() + (lines->empty() ? 0 : 1) + line.size();
  if (bytes >= MPI_MAX_INFO_VAL) return false;
  if (!lines->empty()) lines->push_back('\n');
  lines->append(line);
  return true;
}

// The program's info with the variables that the front needs; freed at the end.
class ChildInfo {
 public:
  explicit ChildInfo(MPI_Info given) : info_(given) {
    const char* preload = std::getenv("LD_PRELOAD");
    if (preload == nullptr || !has_front(preload)) return;  // linked: it comes with the program
    const char* const key = key_of_variables();
    std::string lines = lines_of(given, key);
    if (lines.find("LD_PRELOAD=") != std::string::npos) return;
    if (!add_line(&lines, std::string("LD_PRELOAD=") + preload)) {
      std::fprintf(stderr,
                   "libmobius_" MOBIUS_MPI_FRONT
                   ": LD_PRELOAD is too long to be handed on to spawned processes (%d bytes of an "
                   "info value): their windows are the MPI's\n",
                   static_cast<int>(MPI_MAX_INFO_VAL));
      return;
    }
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::string_view(*entry).starts_with("MOBIUS_")) add_line(&lines, *entry);
    }
    MPI_Info made = MPI_INFO_NULL;
    const int result =
        given == MPI_INFO_NULL ? real::Info_create(&made) : real::Info_dup(given, &made);
    if (result != MPI_SUCCESS) return;
    static_cast<void>(real::Info_set(made, key, lines.c_str()));
    info_ = made;
    is_mine_ = true;
  }
  ChildInfo(const ChildInfo&) = delete;
  ChildInfo& operator=(const ChildInfo&) = delete;
  ChildInfo(ChildInfo&& other) noexcept
      : info_(other.info_), is_mine_(std::exchange(other.is_mine_, false)) {}
  ChildInfo& operator=(ChildInfo&&) = delete;
  ~ChildInfo() {
    if (is_mine_) static_cast<void>(real::Info_free(&info_));
  }
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_;
  bool is_mine_ = false;
};

// Only the root's commands and infos count.
bool is_root(int root, MPI_Comm comm) {
  int rank = -1;
  return comm != MPI_COMM_NULL && real::Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

}  // namespace
}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Comm_spawn)
(const char* command, char* argv[], int count, MPI_Info info, int root, MPI_Comm comm,
 MPI_Comm* children, int codes[]) {
  if (!is_root(root, comm)) {
    return real::Comm_spawn(command, argv, count, info, root, comm, children, codes);
  }
  const ChildInfo own(info);
  return real::Comm_spawn(command, argv, count, own.get(), root, comm, children, codes);
}

MOBIUS_MPI_TWIN(Comm_spawn_multiple)
(int count, char* commands[], char** argvs[], const int counts[], const MPI_Info infos[], int root,
 MPI_Comm comm, MPI_Comm* children, int codes[]) {
  if (!is_root(root, comm) || count <= 0 || infos == nullptr) {
    return real::Comm_spawn_multiple(count, commands, argvs, counts, infos, root, comm, children,
                                     codes);
  }
  std::vector<ChildInfo> owned;
  std::vector<MPI_Info> all;
  for (int i = 0; i < count; ++i) all.push_back(owned.emplace_back(infos[i]).get());
  return real::Comm_spawn_multiple(count, commands, argvs, counts, all.data(), root, comm, children,
                                   codes);
}

#endif
