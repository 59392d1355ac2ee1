// SPDX-License-Identifier: BSD-3-Clause
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "front.h"
#include "groups.h"
#include "handles.h"
#include "inbox.h"
#include "memory.h"
#include "mpi_beside.h"
#include "mutexes.h"
#include "topology.h"

namespace mobius::armci {
namespace {

struct Life {
  std::mutex mutex;
  int starts = 0;        // calls of ARMCI_Init() without their ARMCI_Finalize() so far
  bool is_ours = false;  // ARMCI_Init() called mob_init()
};

Life& life() {
  static Life instance;
  return instance;
}

// Programs mix ranks of both, so the ranks must be the same.
void compare_with_mpi(const char* function, mpi_beside::Comm comm, const char* name) {
  int rank = -1;
  int size = 0;
  if (!mpi_beside::place(comm, &rank, &size)) return;
  if (rank == mob_rank() && size == mob_size()) return;
  die(function,
      "%s has this process as rank %d of %d, and ARMCI as %d of %d; start the program with the "
      "launcher of its MPI (mpirun, mpiexec), and pass communicators of all its processes in their "
      "order",
      name, rank, size, mob_rank(), mob_size());
}

int start(const char* function, const mpi_beside::Comm* comm) {
  const std::lock_guard lock(life().mutex);
  if (life().starts++ > 0) return 0;
  life().is_ours = mob_initialized() == 0;
  if (life().is_ours) {
    // The launcher's job is that of the world; any other communicator makes a job of its own.
    const bool is_part = comm != nullptr && !mpi_beside::is_like_world(*comm);
    check(is_part ? mob_init_mpi(reinterpret_cast<const void*>(*comm)) : mob_init(), function);
  }
  if (mob_parent() != MOB_BRIDGE_NONE) {
    die(function,
        "mob_spawn() started this process; ARMCI needs ranks from 0, which only the processes of "
        "`mobius run -n` have: start more of those, or call mob_put() and the like in this one");
  }
  mpi_beside::Comm world = 0;
  if (comm != nullptr) {
    world = *comm;
    compare_with_mpi(function, world, "the communicator");
  } else if (mpi_beside::is_live() && mpi_beside::world(&world)) {
    compare_with_mpi(function, world, "MPI_COMM_WORLD");
  }
  topology().find(function);
  groups().open(world, function);
  inbox().open(function);
  // No process may send before all can receive.
  check(mob_barrier(), function);
  return 0;
}

}  // namespace

void die(const char* function, const char* format, ...) {
  char text[1024];
  const int length = std::snprintf(text, sizeof text, "%s: ", function);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length), format, arguments);
  va_end(arguments);
  ARMCI_Error(text, EXIT_FAILURE);
  std::abort();  // the program has replaced the function by one that returns
}

void die_of(const char* function, int proc) {
  die(function, "process %d: %s", proc, mob_last_error());
}

void check(mob_status_t status, const char* function) {
  if (status != MOB_OK) die(function, "%s", mob_last_error());
}

void check_initialised(const char* function) {
  if (life().starts == 0 || mob_initialized() == 0) die(function, "called before ARMCI_Init()");
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int PARMCI_Init(void) { return start("ARMCI_Init", nullptr); }
int PARMCI_Init_args(int*, char***) { return start("ARMCI_Init_args", nullptr); }
int PARMCI_Init_thread(int) { return start("ARMCI_Init_thread", nullptr); }

// armci.h declares it only where there is an MPI_Comm.
__attribute__((visibility("default"))) int PARMCI_Init_mpi_comm(mobius::mpi_beside::Comm comm) {
  return start("ARMCI_Init_mpi_comm", &comm);
}
__attribute__((visibility("default"))) int PARMCI_Init_thread_comm(int,
                                                                   mobius::mpi_beside::Comm comm) {
  return start("ARMCI_Init_thread_comm", &comm);
}

int PARMCI_Initialized(void) {
  const std::lock_guard lock(life().mutex);
  return life().starts > 0 ? 1 : 0;
}

int PARMCI_Finalize(void) {
  const std::lock_guard lock(life().mutex);
  if (life().starts == 0) die("ARMCI_Finalize", "called without ARMCI_Init()");
  if (--life().starts > 0) return 0;
  handles().wait_all("ARMCI_Finalize");
  check(mob_barrier(), "ARMCI_Finalize");
  mutexes_close();
  memory_close();
  inbox().close();
  groups().close();
  if (life().is_ours) check(mob_finalize(), "ARMCI_Finalize");
  return 0;
}

void PARMCI_Cleanup(void) {}

void PARMCI_Error(const char* message, int code) {
  const char* text = message != nullptr ? message : "no message";
  const int exit_code = code >= 1 && code <= 255 ? code : EXIT_FAILURE;
  char line[1280];
  if (mob_initialized() != 0) {
    std::snprintf(line, sizeof line, "ARMCI, rank %d: %s (code %d)", mob_rank(), text, code);
  } else {
    std::snprintf(line, sizeof line,
                  "ARMCI, outside ARMCI_Init() ... ARMCI_Finalize(): %s (code %d)", text, code);
  }
  if (mobius::mpi_beside::is_live()) {
    std::fprintf(stderr, "%s\n", line);
    std::fflush(stderr);
    mobius::mpi_beside::abort(exit_code);
  }
  mob_abort(exit_code, line);
}

ARMCI_TWIN(Init);
ARMCI_TWIN(Init_args);
ARMCI_TWIN(Init_thread);
ARMCI_TWIN(Init_mpi_comm) __attribute__((visibility("default")));
ARMCI_TWIN(Init_thread_comm) __attribute__((visibility("default")));
ARMCI_TWIN(Initialized);
ARMCI_TWIN(Finalize);
ARMCI_TWIN(Cleanup);
ARMCI_TWIN(Error);

}  // extern "C"
