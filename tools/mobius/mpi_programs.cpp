// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_programs.h"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace mobius::command {
namespace {

struct AbiNames {
  MpiAbi abi;
  const char* name;
  const char* title;
};
constexpr AbiNames kAbiNames[] = {
    {MpiAbi::kOmpi, "ompi", "Open MPI"},
    {MpiAbi::kMpich, "mpich", "MPICH"},
    {MpiAbi::kMpiAbi, "mpiabi", "the standard ABI of MPI"},
};

// A file mapped for reading; empty if it cannot be.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status{};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      const auto bytes = static_cast<size_t>(status.st_size);
      void* at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) text_ = {static_cast<const char*>(at), bytes};
    }
    close(file);
  }
  ~MappedFile() {
    if (!text_.empty()) munmap(const_cast<char*>(text_.data()), text_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view text() const { return text_; }

  // Whether it holds the word as a string of its own, as the names of symbols are kept.
  bool has_symbol(std::string_view name) const {
    std::string wanted(1, '\0');
    wanted += name;
    wanted += '\0';
    return memmem(text_.data(), text_.size(), wanted.data(), wanted.size()) != nullptr;
  }

 private:
  std::string_view text_;
};

// The program that an ELF file names as its loader; empty for static programs and other files.
std::string loader_of(std::string_view file, bool* is_elf) {
  Elf64_Ehdr header{};
  *is_elf = file.size() >= sizeof header && file.starts_with(ELFMAG) &&
            file[EI_CLASS] == ELFCLASS64 && file[EI_DATA] == ELFDATA2LSB;
  if (!*is_elf) return {};
  std::memcpy(&header, file.data(), sizeof header);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const size_t at = header.e_phoff + i * sizeof part;
    if (at > file.size() || file.size() - at < sizeof part) break;
    std::memcpy(&part, file.data() + at, sizeof part);
    if (part.p_type != PT_INTERP) continue;
    if (part.p_offset > file.size() || file.size() - part.p_offset < part.p_filesz) break;
    const std::string_view name = file.substr(part.p_offset, part.p_filesz);
    return std::string(name.substr(0, name.find('\0')));
  }
  return {};
}

// A program's output of ten seconds, up to 64 KiB; empty if it cannot be started.
std::string output_of(const std::vector<std::string>& words) {
  constexpr size_t kMost = 65536;
  constexpr auto kLongest = std::chrono::seconds(10);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return {};
  }
  if (child == 0) {
    // A library preloaded here would be listed as one that the program needs.
    unsetenv("LD_PRELOAD");
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (text.size() < kMost) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd readable{ends[0], POLLIN, 0};
    if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count())) <= 0) break;
    std::array<char, 4096> piece;
    const ssize_t got = read(ends[0], piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  // It has told what it was asked for, or does not answer.
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// An MPI by the name of its library, where the file itself cannot be looked at: Open MPI's has had
// the numbers 20 and 40 since version 2, MPICH and its kin share 12.
MpiAbi abi_of_soname(std::string_view name) {
  const bool open_mpi = name.starts_with("libmpi.so.40") || name.starts_with("libmpi.so.20");
  return open_mpi ? MpiAbi::kOmpi : MpiAbi::kMpich;
}

// Sets what is known from one library that the loader would load.
void consider(const std::string& name, const std::string& path, MpiProgram* program) {
  for (const AbiNames& known : kAbiNames) {
    if (name.starts_with(std::string("libmobius_") + known.name + ".so")) {
      program->fronts.emplace_back(known.name);
    }
  }
  const bool standard = name.starts_with("libmpi_abi.so");
  if (!name.starts_with("libmpi.so") && !name.starts_with("libmpich.so") &&
      !name.starts_with("libmpi_") && !standard) {
    return;
  }
  // Fortran's and C++'s part of an MPI is found beside the library itself, which comes first or
  // later.
  if (program->kind == MpiProgram::Kind::kShared && !standard && !name.starts_with("libmpi.so") &&
      !name.starts_with("libmpich.so")) {
    return;
  }
  const MappedFile file(path);
  program->kind = MpiProgram::Kind::kShared;
  program->library = path.empty() ? name : path;
  if (file.text().empty()) {
    program->abi = standard ? MpiAbi::kMpiAbi : abi_of_soname(name);
    program->of_open_mpi = program->abi == MpiAbi::kOmpi;
    return;
  }
  program->of_open_mpi = file.has_symbol("ompi_mpi_init") || file.has_symbol("ompi_mpi_comm_world");
  program->abi = standard ? MpiAbi::kMpiAbi : program->of_open_mpi ? MpiAbi::kOmpi : MpiAbi::kMpich;
}

// "word 5.0.11" behind `mark`, up to the end of a line or a space.
std::string version_behind(const std::string& text, std::string_view mark) {
  size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  at = text.find_first_not_of(' ', at + mark.size());
  if (at == std::string::npos) return {};
  return text.substr(at, text.find_first_of(" \n", at) - at);
}

}  // namespace

const char* abi_name(MpiAbi abi) {
  for (const AbiNames& known : kAbiNames) {
    if (known.abi == abi) return known.name;
  }
  return "";
}

const char* abi_title(MpiAbi abi) {
  for (const AbiNames& known : kAbiNames) {
    if (known.abi == abi) return known.title;
  }
  return "an unknown MPI";
}

MpiAbi abi_of_name(std::string_view name) {
  for (const AbiNames& known : kAbiNames) {
    if (known.name == name) return known.abi;
  }
  return MpiAbi::kUnknown;
}

MpiProgram describe_program(const std::string& path) {
  MpiProgram program;
  const MappedFile file(path);
  bool is_elf = false;
  const std::string loader = loader_of(file.text(), &is_elf);
  if (!is_elf) return program;
  if (!loader.empty()) {
    // "\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x…)", or "… => not found".
    std::istringstream lines(output_of({loader, "--list", path}));
    for (std::string line; std::getline(lines, line);) {
      const size_t arrow = line.find(" => ");
      const size_t start = line.find_first_not_of(" \t");
      if (start == std::string::npos) continue;
      const std::string name = line.substr(start, line.find(' ', start) - start);
      std::string found = arrow == std::string::npos ? name : line.substr(arrow + 4);
      found.resize(std::min(found.find(" ("), found.size()));
      consider(file_name(name), found.starts_with('/') ? found : "", &program);
    }
  }
  // Linkers keep MPI_Init as the end of this name.
  if (program.kind == MpiProgram::Kind::kOther && file.has_symbol("PMPI_Init")) {
    program.kind = MpiProgram::Kind::kInside;
  }
  return program;
}

MpiLauncher describe_launcher(const std::string& path) {
  using Kind = MpiLauncher::Kind;
  const std::string name = file_name(path);
  if (name == "srun") return {Kind::kSlurm, "Slurm"};
  bool called_so = false;
  for (const char* start : {"mpirun", "mpiexec", "orterun", "prterun", "prun"}) {
    called_so = called_so || name.starts_with(start);
  }
  if (!called_so) return {};
  if (name == "prterun" || name == "prun") return {Kind::kPrrte, "PRRTE"};
  const std::string text = output_of({path, "--version"});
  for (const char* mark : {"(Open MPI)", "(OpenRTE)"}) {
    if (const std::string version = version_behind(text, mark); !version.empty()) {
      return {Kind::kOpenMpi, "Open MPI " + version};
    }
  }
  if (text.find("Intel(R) MPI Library") != std::string::npos) {
    return {Kind::kIntel, "Intel MPI " + version_behind(text, "Version")};
  }
  if (text.find("HYDRA") != std::string::npos || text.find("Hydra") != std::string::npos) {
    return {Kind::kHydra, "MPICH " + version_behind(text, "Version:")};
  }
  return {Kind::kOther, name};
}

std::string own_tree() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return own.parent_path().parent_path();
}

std::vector<MpiFront> read_fronts() {
  std::vector<MpiFront> fronts;
  // Lines of ABI|made|reason or ABI|missing|reason.
  std::ifstream report(own_tree() + "/share/mobius/mpi-fronts");
  for (std::string line; std::getline(report, line);) {
    const size_t first = line.find('|');
    const size_t second = line.find('|', first + 1);
    if (second == std::string::npos) continue;
    const MpiAbi abi = abi_of_name(line.substr(0, first));
    if (abi == MpiAbi::kUnknown) continue;
    const bool is_made = line.substr(first + 1, second - first - 1) == "made";
    fronts.push_back({abi, is_made, line.substr(second + 1)});
  }
  return fronts;
}

}  // namespace mobius::command
