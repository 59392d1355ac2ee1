// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/process/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "job/launch/options.h"

namespace mobius::launch {
namespace {

// 0, or why `path` cannot be executed.
int executable(const std::string& path) {
  struct stat information{};
  if (stat(path.c_str(), &information) != 0) return errno;
  if (S_ISDIR(information.st_mode)) return EISDIR;
  if (!S_ISREG(information.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

Program refuse(int exit_code, std::string problem) { return {{}, exit_code, std::move(problem)}; }

Program not_executable(const std::string& path, int error) {
  if (error == EISDIR) return refuse(kExitNotExecutable, fmt::format("{} is a folder", path));
  if (error == EACCES && access(path.c_str(), F_OK) == 0) {
    return refuse(
        kExitNotExecutable,
        fmt::format("{} may not be executed; is it a program (chmod +x {})?", path, path));
  }
  return refuse(kExitNotExecutable,
                fmt::format("{} cannot be executed: {}", path, std::strerror(error)));
}

}  // namespace

Program find_program(const std::string& name, const char* search_path) {
  if (name.empty()) return refuse(kExitNotFound, "the name of the program is empty");
  if (name.find('/') != std::string::npos) {
    const int error = executable(name);
    if (error == 0) return {name, 0, {}};
    if (error == ENOENT || error == ENOTDIR) {
      return refuse(kExitNotFound, fmt::format("{} does not exist", name));
    }
    return not_executable(name, error);
  }

  if (search_path == nullptr) search_path = "/bin:/usr/bin";
  std::string not_ours;  // found, but not executable: only worth telling when there is no other
  std::string_view rest = search_path;
  while (true) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);  // empty means the current one
    const std::string path = fmt::format("{}{}{}", folder.empty() ? "." : folder,
                                         folder.ends_with('/') ? "" : "/", name);
    const int error = executable(path);
    if (error == 0) return {path, 0, {}};
    if (error == EACCES && not_ours.empty() && access(path.c_str(), F_OK) == 0) not_ours = path;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!not_ours.empty()) return not_executable(not_ours, EACCES);
  const bool here = executable("./" + name) == 0;
  return refuse(kExitNotFound,
                fmt::format("program {} was not found in PATH ({}){}", name, search_path,
                            here ? "; did you mean ./" + name + "?" : ""));
}

}  // namespace mobius::launch
