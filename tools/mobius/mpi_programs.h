// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which MPI a program was built for and which one a launcher starts, found without running the
// program.

#include <string>
#include <string_view>
#include <vector>

namespace mobius::command {

// The binary interfaces of MPI for which there is a front.
enum class MpiAbi { kUnknown, kOmpi, kMpich, kMpiAbi };

// As in libmobius_NAME.so; empty for kUnknown.
const char* abi_name(MpiAbi abi);
// As users know it: "Open MPI".
const char* abi_title(MpiAbi abi);
MpiAbi abi_of_name(std::string_view name);

// The MPI that the loader would load for a program.
struct MpiProgram {
  enum class Kind { kOther, kShared, kInside };

  Kind kind =
      Kind::kOther;  // an MPI as a shared library, one linked statically, none or no ELF file
  MpiAbi abi = MpiAbi::kUnknown;    // kShared
  std::string library;              // kShared: the path of the MPI, or its name if it is not found
  bool of_open_mpi = false;         // kShared: who made the library, whatever its ABI
  std::vector<std::string> fronts;  // names of the fronts it is linked with
};

MpiProgram describe_program(const std::string& path);

struct MpiLauncher {
  enum class Kind { kNone, kOpenMpi, kHydra, kIntel, kPrrte, kSlurm, kOther };

  Kind kind = Kind::kNone;
  std::string title;  // "Open MPI 5.0.11"
};

// `path` is run with --version, but only if it is called as launchers are.
MpiLauncher describe_launcher(const std::string& path);

// The build's record of each front: the MPI it was made with, or the reason why it was not made.
struct MpiFront {
  MpiAbi abi;
  bool is_made;
  std::string reason;
};
std::vector<MpiFront> read_fronts();

// The folder of bin and lib: of a build, or of an installed tree that may have been moved.
std::string own_tree();

}  // namespace mobius::command
