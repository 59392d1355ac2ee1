// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/mpi_directory.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/bootstrap/gathered_entries.h"

namespace mobius::job::mpi {
namespace {

using base::fail;

// A handle of MPI as an argument: Open MPI's and those of the standard ABI are pointers, MPICH's
// and its descendants' (which have one ABI) numbers of 32 bits; both fit.
using Handle = void*;

Handle number(uint32_t value) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));  // NOLINT: not a pointer
}

// The functions and handles of the MPI that is loaded. The functions are those that a profiler goes
// on with: what happens here is no call of the program.
struct Mpi {
  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*comm_rank)(Handle, int*);
  int (*comm_size)(Handle, int*);
  int (*comm_test_inter)(Handle, int*);
  int (*comm_dup)(Handle, Handle*);
  int (*comm_free)(Handle*);
  int (*allgather)(const void*, int, Handle, void*, int, Handle, Handle);
  int (*allgatherv)(const void*, int, Handle, void*, const int*, const int*, Handle, Handle);
  int (*abort)(Handle, int);
  Handle world;
  Handle none;  // MPI_COMM_NULL
  Handle byte;
  bool is_of_session;  // the job's communicator

  bool find_all(void* library, bool has_standard_abi);
};

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// A program that is linked with the MPI may hold the object itself (R_X86_64_COPY); one that has
// loaded the MPI with dlopen() does not.
void* find_object(void* library, const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? found : dlsym(library, name);
}

bool Mpi::find_all(void* library, bool has_standard_abi) {
  const bool found =
      find(library, "PMPI_Initialized", &initialized) &&
      find(library, "PMPI_Finalized", &finalized) && find(library, "PMPI_Comm_rank", &comm_rank) &&
      find(library, "PMPI_Comm_size", &comm_size) &&
      find(library, "PMPI_Comm_test_inter", &comm_test_inter) &&
      find(library, "PMPI_Comm_dup", &comm_dup) && find(library, "PMPI_Comm_free", &comm_free) &&
      find(library, "PMPI_Allgather", &allgather) &&
      find(library, "PMPI_Allgatherv", &allgatherv) && find(library, "PMPI_Abort", &abort);
  if (!found) return false;
  if (has_standard_abi) {
    world = number(0x101);
    none = number(0x100);
    byte = number(0x247);
    return true;
  }
  world = find_object(library, "ompi_mpi_comm_world");
  none = find_object(library, "ompi_mpi_comm_null");
  byte = find_object(library, "ompi_mpi_byte");
  if (world != nullptr && byte != nullptr) return true;
  // Only MPICH and its descendants have these functions and numbers.
  world = number(0x44000000);
  none = number(0x04000000);
  byte = number(0x4c00010d);
  return dlsym(library, "MPIR_Err_create_code") != nullptr ||
         dlsym(library, "MPIX_Comm_agree") != nullptr || dlsym(library, "MPID_Abort") != nullptr;
}

// The path of the library that has the MPI's functions, if that is the library `path` or one that
// it needs: profilers (libmpiP.so) have names as MPIs have. Empty if it is not.
std::string path_of_functions(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {};
  Dl_info owner{};
  void* const function = dlsym(library, "PMPI_Comm_rank");
  const bool is_found = function != nullptr && dladdr(function, &owner) != 0;
  dlclose(library);
  return is_found ? owner.dli_fname : std::string();
}

// Finds the first loaded MPI by the names of the libraries. dlsym(RTLD_DEFAULT) would not find
// those that Python's modules load.
void* loaded_mpi(bool* has_standard_abi) {
  std::vector<std::string> names;
  const auto look = [](dl_phdr_info* library, size_t /*bytes*/, void* data) {
    const std::string_view name = library->dlpi_name;
    if (name.substr(name.rfind('/') + 1).starts_with("libmpi")) {
      static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    }
    return 0;
  };
  dl_iterate_phdr(look, &names);
  for (const std::string& name : names) {
    const std::string path = path_of_functions(name.c_str());
    if (path.empty()) continue;
    // MPI-5 §20: its handles are the same in every MPI.
    *has_standard_abi = path.find("libmpi_abi.so") != std::string::npos;
    return dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  }
  return nullptr;
}

struct Stage {
  bool has_started;
  bool has_ended;
};

Stage stage(const Mpi& mpi) {
  int has_started = 0;
  int has_ended = 1;
  mpi.initialized(&has_started);
  mpi.finalized(&has_ended);
  return {has_started != 0, has_ended != 0};
}

// The MPI does not say whether a session lives: the caller of mob_init_mpi() does.
bool is_running(const Mpi& mpi) {
  if (mpi.is_of_session) return true;
  const Stage at = stage(mpi);
  return at.has_started && !at.has_ended;
}

bool find_loaded_mpi(Mpi* mpi) {
  bool has_standard_abi = false;
  void* library = loaded_mpi(&has_standard_abi);
  return library != nullptr && mpi->find_all(library, has_standard_abi);
}

// False if no MPI is running.
bool find_mpi(Mpi* mpi) { return find_loaded_mpi(mpi) && is_running(*mpi); }

using Bytes = std::vector<unsigned char>;

class MpiDirectory final : public Directory {
 public:
  explicit MpiDirectory(const Mpi& mpi) : mpi_(mpi) {}
  ~MpiDirectory() override {
    if (!is_in_ || !is_running(mpi_)) return;
    report_end_of_job();
    mpi_.abort(own_, 1);
  }

  mob_status_t open(const Communicator* like, mob_rank_t* rank, mob_rank_t* size);

  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override {
    return entries_.publish(key, value);
  }
  mob_status_t fence() override;
  mob_status_t fetch(mob_rank_t rank, std::string_view key, Bytes* value) override {
    return entries_.fetch(rank, key, value);
  }
  bool is_dead(mob_rank_t /*rank*/) override { return false; }
  bool has_left(mob_rank_t /*rank*/) override { return false; }
  void leave() override;

 private:
  const Mpi mpi_;
  Handle own_{};
  mob_rank_t size_ = 0;
  bool is_in_ = false;  // others wait for this process
  GatheredEntries entries_;
};

mob_status_t MpiDirectory::open(const Communicator* like, mob_rank_t* rank, mob_rank_t* size) {
  const auto model = like != nullptr ? const_cast<Handle>(*like) : mpi_.world;
  // MPI itself would end the job over these, or misread them.
  if (model == nullptr || model == mpi_.none) {
    return fail(MOB_ERR_ARGUMENT, "mob_init_mpi: the communicator is MPI_COMM_NULL");
  }
  int is_inter = 0;
  if (mpi_.comm_test_inter(model, &is_inter) == 0 && is_inter != 0) {
    return fail(MOB_ERR_ARGUMENT,
                "mob_init_mpi: an intercommunicator has two groups of processes, a job one; "
                "MPI_Intercomm_merge() makes one of them");
  }
  if (mpi_.comm_dup(model, &own_) != 0 || mpi_.comm_rank(own_, rank) != 0 ||
      mpi_.comm_size(own_, size) != 0) {
    return fail(MOB_ERR_SYSTEM, "mob_init: MPI could not make a communicator");
  }
  size_ = *size;
  is_in_ = true;
  return MOB_OK;
}

mob_status_t MpiDirectory::fence() {
  if (!is_running(mpi_)) {
    return fail(MOB_ERR_STATE,
                "MPI has ended, which this job of Möbius needs: call mob_finalize() "
                "before MPI_Finalize()");
  }
  const auto ranks = static_cast<size_t>(size_);
  const Bytes& unsent = entries_.unsent();
  const int own_bytes = static_cast<int>(unsent.size());
  constexpr int kWord = sizeof own_bytes;
  std::vector<int> bytes(ranks);
  std::vector<int> offsets(ranks);
  if (mpi_.allgather(&own_bytes, kWord, mpi_.byte, bytes.data(), kWord, mpi_.byte, own_) != 0) {
    return fail(MOB_ERR_PEER, "MPI could not exchange what the processes of the job publish");
  }
  int64_t all = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    offsets[rank] = static_cast<int>(all);
    all += bytes[rank];
  }
  if (all > INT32_MAX) return fail(MOB_ERR_RANGE, "the job's directory is full");
  Bytes everything(static_cast<size_t>(all));
  if (mpi_.allgatherv(unsent.data(), own_bytes, mpi_.byte, everything.data(), bytes.data(),
                      offsets.data(), mpi_.byte, own_) != 0) {
    return fail(MOB_ERR_PEER, "MPI could not exchange what the processes of the job publish");
  }
  entries_.forget_sent();
  for (size_t rank = 0; rank < ranks; ++rank) {
    const std::span<const unsigned char> entries(everything.data() + offsets[rank],
                                                 static_cast<size_t>(bytes[rank]));
    if (!entries_.take(static_cast<mob_rank_t>(rank), entries)) {
      return fail(MOB_ERR_SYSTEM,
                  "rank %zu publishes in another format; do all processes use the same libmobius?",
                  rank);
    }
  }
  return MOB_OK;
}

void MpiDirectory::leave() {
  is_in_ = false;
  if (is_running(mpi_)) mpi_.comm_free(&own_);
}

}  // namespace

bool is_up() {
  Mpi mpi{};
  return find_mpi(&mpi);
}

bool has_ended() {
  Mpi mpi{};
  if (!find_loaded_mpi(&mpi)) return false;
  const Stage at = stage(mpi);
  return at.has_started && at.has_ended;
}

mob_status_t connect(const Communicator* like, mob_rank_t* rank, mob_rank_t* size,
                     std::unique_ptr<Directory>* directory) {
  Mpi mpi{};
  const bool is_loaded = find_loaded_mpi(&mpi);
  // MPI_COMM_WORLD comes with MPI_Init(); any other communicator before it is of a session.
  mpi.is_of_session = is_loaded && like != nullptr && *like != mpi.world && !stage(mpi).has_started;
  if (!is_loaded || !is_running(mpi)) {
    return fail(MOB_ERR_STATE,
                "mob_init: no MPI runs in this process; call MPI_Init() before, and use MPICH, "
                "Open MPI, or one of their kin");
  }
  auto made = std::make_unique<MpiDirectory>(mpi);
  if (const mob_status_t status = made->open(like, rank, size)) return status;
  *directory = std::move(made);
  return MOB_OK;
}

}  // namespace mobius::job::mpi
