// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.h"
#include "help_texts.h"
#include "job/launch/options.h"
#include "job/launch/process/program.h"
#include "mpi_programs.h"

namespace mobius::command {
namespace {

constexpr const char* kPreload = "LD_PRELOAD";

template <typename... Arguments>
int refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::print(stderr, "mobius mpirun: {}\n",
             fmt::format(format, std::forward<Arguments>(arguments)...));
  return launch::kExitUsage;
}

struct MpirunOptions {
  bool stats = false;
  bool quiet = false;
  bool show = false;
  MpiAbi front = MpiAbi::kUnknown;
  std::vector<std::string> words;  // the launcher and its arguments
};

// Exit code, or -1 to go on.
int parse_mpirun(std::span<char*> arguments, MpirunOptions* options) {
  size_t at = 0;
  for (; at < arguments.size(); ++at) {
    std::string_view word = arguments[at];
    if (!word.starts_with('-')) break;
    if (word == "--") {
      ++at;
      break;
    }
    if (word == "-h" || word == "--help") {
      fmt::print("{}", kMpirunHelp);
      return 0;
    }
    if (word == "--stats") {
      options->stats = true;
    } else if (word == "--quiet") {
      options->quiet = true;
    } else if (word == "--show") {
      options->show = true;
    } else if (word == "--front" || word.starts_with("--front=")) {
      if (word == "--front" && ++at == arguments.size()) {
        return refuse("--front needs a value; see mobius mpirun --help");
      }
      const std::string_view name = word == "--front" ? arguments[at] : word.substr(8);
      options->front = abi_of_name(name);
      if (options->front == MpiAbi::kUnknown) {
        return refuse("--front '{}': one of ompi, mpich, mpiabi", name);
      }
    } else if (word.starts_with("-n")) {
      return refuse(
          "{} belongs to the launcher, whose name comes first: mobius mpirun mpirun {} ...", word,
          word);
    } else {
      return refuse("unknown option {}; see mobius mpirun --help", word);
    }
  }
  options->words.assign(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  if (!options->words.empty()) return -1;
  return refuse("no launcher given, as in: mobius mpirun mpirun -n 4 ./program");
}

// Why a front is not there, as the build has recorded it.
std::string why_missing(MpiAbi abi) {
  for (const MpiFront& front : read_fronts()) {
    if (front.abi == abi && !front.is_made) return ": when Möbius was built, " + front.reason;
  }
  return "";
}

// The launcher and program to start, as far as they are known.
struct Found {
  MpiLauncher launcher;
  std::string program;  // the word that names the program; empty if no program of an MPI was found
  MpiProgram mpi;
};

// Looks at each word that names a file that can be executed: options of launchers take words, too,
// and only some of them have values.
Found look_at(const std::vector<std::string>& words, const std::string& first) {
  Found found;
  const char* search_path = std::getenv("PATH");
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty() || word.starts_with('-')) continue;
    const launch::Program file =
        i == 0 ? launch::Program{first, 0, {}} : launch::find_program(word, search_path);
    if (file.exit_code != 0) continue;
    MpiProgram mpi = describe_program(file.path);
    if (mpi.kind != MpiProgram::Kind::kOther) {
      found.program = word;
      found.mpi = std::move(mpi);
      break;
    }
  }
  if (found.program != words[0]) found.launcher = describe_launcher(first);
  return found;
}

MpiAbi abi_of_launcher(const MpiLauncher& launcher) {
  switch (launcher.kind) {
    case MpiLauncher::Kind::kOpenMpi:
    case MpiLauncher::Kind::kPrrte:
      return MpiAbi::kOmpi;
    case MpiLauncher::Kind::kHydra:
    case MpiLauncher::Kind::kIntel:
      return MpiAbi::kMpich;
    default:
      return MpiAbi::kUnknown;
  }
}

// Each process would be a job of its own where the launcher is of another MPI; "" if it is not.
std::string mismatch(const Found& found) {
  if (found.mpi.kind != MpiProgram::Kind::kShared) return "";
  const MpiLauncher::Kind kind = found.launcher.kind;
  const bool hydra = kind == MpiLauncher::Kind::kHydra || kind == MpiLauncher::Kind::kIntel;
  const bool wrong = found.mpi.of_open_mpi ? hydra : kind == MpiLauncher::Kind::kOpenMpi;
  if (!wrong) return "";
  return fmt::format("{} is linked with {} ({}), but the launcher is that of {}: start it with {}",
                     found.program, found.mpi.of_open_mpi ? "Open MPI" : "MPICH or one of its kin",
                     found.mpi.library, found.launcher.title,
                     found.mpi.of_open_mpi ? "Open MPI's mpirun" : "the mpiexec of that MPI");
}

// The fronts among what is preloaded already.
std::vector<std::string> preloaded_fronts() {
  std::vector<std::string> fronts;
  const char* value = std::getenv(kPreload);
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t length = std::min(rest.find_first_of(": "), rest.size());
    const std::string_view path = rest.substr(0, length);
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (const MpiAbi abi : {MpiAbi::kOmpi, MpiAbi::kMpich, MpiAbi::kMpiAbi}) {
      if (name.starts_with(fmt::format("libmobius_{}.so", abi_name(abi)))) {
        fronts.emplace_back(abi_name(abi));
      }
    }
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return fronts;
}

bool sets_preload(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("LD_PRELOAD=")) return true;
    const std::string& before = words[i - 1];
    if (words[i] == kPreload && (before == "-x" || before.ends_with("env"))) return true;
  }
  return false;
}

// The launcher's words with those by which it sets variables for the processes of all hosts. In a
// call of several programs Open MPI takes options with each of them.
std::vector<std::string> with_variables(const MpirunOptions& options, MpiLauncher::Kind kind,
                                        const std::string& preload) {
  std::vector<std::string> added;
  if (kind == MpiLauncher::Kind::kOpenMpi || kind == MpiLauncher::Kind::kPrrte) {
    added = {"-x", fmt::format("{}={}", kPreload, preload)};
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (!text.starts_with("MOBIUS_")) continue;
      added.emplace_back("-x");
      added.emplace_back(text.substr(0, text.find('=')));
    }
  } else if (kind == MpiLauncher::Kind::kHydra || kind == MpiLauncher::Kind::kIntel) {
    // It hands on all others.
    added = {"-genv", kPreload, preload};
  }
  std::vector<std::string> words;
  for (size_t i = 0; i < options.words.size(); ++i) {
    words.push_back(options.words[i]);
    const bool next = options.words[i] == ":" && !added.empty() && added[0] == "-x";
    if (i == 0 || next) words.insert(words.end(), added.begin(), added.end());
  }
  return words;
}

std::string shell_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}()<>|&;#~!") == std::string::npos) {
    return word;
  }
  std::string text = "'";
  for (const char letter : word)
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

}  // namespace

int mpirun_command(std::span<char*> arguments) {
  MpirunOptions options;
  if (const int code = parse_mpirun(arguments, &options); code >= 0) return code;
  const launch::Program first = launch::find_program(options.words[0], std::getenv("PATH"));
  if (first.exit_code != 0) {
    refuse("{}", first.problem);
    return first.exit_code;
  }
  const Found found = look_at(options.words, first.path);
  if (options.front == MpiAbi::kUnknown) {
    if (found.mpi.kind == MpiProgram::Kind::kInside) {
      return refuse(
          "{} holds its MPI itself (linked statically), and the calls of such an MPI cannot be "
          "served: link it with its MPI as a shared library (docs/fronts/mpi.md)",
          found.program);
    }
    if (const std::string problem = mismatch(found); !problem.empty()) return refuse("{}", problem);
  }
  MpiAbi abi = options.front;
  if (abi == MpiAbi::kUnknown) abi = found.mpi.abi;
  if (abi == MpiAbi::kUnknown) abi = abi_of_launcher(found.launcher);
  if (abi == MpiAbi::kUnknown) {
    return refuse(
        "no word of the command is a program that is linked with an MPI, and '{}' is no launcher "
        "of an "
        "MPI that is known here; name its front: --front ompi, mpich or mpiabi",
        options.words[0]);
  }
  const std::string name = abi_name(abi);

  std::vector<std::string> fronts = preloaded_fronts();
  const bool preloaded = !fronts.empty();
  fronts.insert(fronts.end(), found.mpi.fronts.begin(), found.mpi.fronts.end());
  for (const std::string& other : fronts) {
    if (other == name) continue;
    return refuse(
        "libmobius_{} is {}, but {} is what {} needs, and a process has one front: remove it",
        other, preloaded ? "in LD_PRELOAD" : "linked into the program", "libmobius_" + name,
        found.program.empty() ? "the launcher's MPI" : found.program);
  }
  if (sets_preload(options.words)) {
    return refuse(
        "the command sets LD_PRELOAD for its processes, which would replace the front: set it in "
        "the "
        "environment of mobius mpirun instead");
  }
  const std::string front = fmt::format("{}/lib/libmobius_{}.so", own_tree(), name);
  if (access(front.c_str(), R_OK) != 0) {
    return refuse("there is no front for {}, {}{}", abi_title(abi), front, why_missing(abi));
  }

  if (options.stats) setenv("MOBIUS_STATS", "1", 1);
  std::vector<std::string> words = options.words;
  std::string preload;
  const char* before = std::getenv(kPreload);
  if (fronts.empty()) {
    preload = front + (before != nullptr && *before != '\0' ? fmt::format(":{}", before) : "");
  } else if (preloaded) {
    preload = before;
  }
  if (!preload.empty()) {
    words = with_variables(options, found.launcher.kind, preload);
    // Launchers that were not given it as words hand on what they have themselves.
    if (words.size() == options.words.size()) setenv(kPreload, preload.c_str(), 1);
  }
  const std::string what =
      found.program.empty()
          ? fmt::format("processes of {}",
                        found.launcher.title.empty() ? options.words[0] : found.launcher.title)
          : fmt::format("{}, linked with {} ({})", found.program, abi_title(abi),
                        found.mpi.library);
  if (options.show) {
    std::string line;
    if (words.size() == options.words.size() && !preload.empty()) {
      line += fmt::format("{}={} ", kPreload, shell_word(preload));
    }
    if (options.stats) line += "MOBIUS_STATS=1 ";
    for (const std::string& word : words)
      line += shell_word(word) + (&word == &words.back() ? "" : " ");
    fmt::print("{}\n", line);
    return 0;
  }
  if (!options.quiet) {
    fmt::print(stderr, "mobius mpirun: {}: windows by libmobius_{}{}\n", what, name,
               fronts.empty() ? ""
               : preloaded    ? ", which is in LD_PRELOAD already"
                              : ", which it is linked with");
  }
  std::vector<char*> call;
  for (std::string& word : words) call.push_back(word.data());
  call.push_back(nullptr);
  execv(first.path.c_str(), call.data());
  fmt::print(stderr, "mobius mpirun: {} cannot be started: {}\n", first.path, std::strerror(errno));
  return launch::kExitNotExecutable;
}

}  // namespace mobius::command
