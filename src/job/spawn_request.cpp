// SPDX-License-Identifier: BSD-3-Clause
#include "job/spawn_request.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mobius::job {
namespace {

// A list begins with its length; each text ends with a zero.
void append(std::string* text, const std::string& word) {
  text->append(word.c_str(), word.size() + 1);
}

void append(std::string* text, const std::vector<std::string>& words) {
  const auto count = static_cast<uint32_t>(words.size());
  text->append(reinterpret_cast<const char*>(&count), sizeof count);
  for (const std::string& word : words) append(text, word);
}

bool take(std::string_view* text, std::string* word) {
  const size_t end = text->find('\0');
  if (end == std::string_view::npos) return false;
  *word = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

bool take(std::string_view* text, std::vector<std::string>* words) {
  uint32_t count = 0;
  if (text->size() < sizeof count) return false;
  std::memcpy(&count, text->data(), sizeof count);
  text->remove_prefix(sizeof count);
  if (count > text->size()) return false;
  words->resize(count);
  for (std::string& word : *words) {
    if (!take(text, &word)) return false;
  }
  return true;
}

// 0, or why `path` cannot be executed.
int executable(const std::string& path) {
  struct stat information{};
  if (stat(path.c_str(), &information) != 0) return errno;
  if (S_ISDIR(information.st_mode)) return EISDIR;
  if (!S_ISREG(information.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char here[4096];
  return getcwd(here, sizeof here) == nullptr ? path : std::string(here) + "/" + path;
}

}  // namespace

std::string SpawnRequest::encoded() const {
  std::string text;
  append(&text, path);
  append(&text, folder);
  append(&text, arguments);
  append(&text, environment);
  return text;
}

bool SpawnRequest::decode(std::string_view text, SpawnRequest* request) {
  return take(&text, &request->path) && take(&text, &request->folder) &&
         take(&text, &request->arguments) && take(&text, &request->environment) && text.empty();
}

std::string find_executable(const std::string& name, const char* search_path, int* problem) {
  *problem = ENOENT;
  if (name.find('/') != std::string::npos || name.empty()) {
    if (!name.empty()) *problem = executable(name);
    return *problem == 0 ? absolute(name) : "";
  }
  std::string_view rest = search_path != nullptr ? search_path : "/bin:/usr/bin";
  while (true) {
    const size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));  // empty means the current one
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const int error = executable(path);
    if (error == 0) {
      *problem = 0;
      return absolute(path);
    }
    if (error == EACCES) *problem = EACCES;
    if (colon == std::string_view::npos) return "";
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace mobius::job
