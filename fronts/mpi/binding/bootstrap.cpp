// SPDX-License-Identifier: BSD-3-Clause
#include "binding/bootstrap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "binding/agreement.h"
#include "binding/program_imports.h"
#include "binding/real.h"
#include "binding/sessions.h"
#include "operations/requests.h"
#include "windows/carriers.h"
#include "windows/members.h"
#include "windows/program_memory.h"
#include "windows/window.h"

namespace mobius::mpi {
namespace {

enum class Stage { kBefore, kJoined, kRefused, kEnded };

struct Life {
  std::mutex mutex;
  std::atomic<Stage> stage = Stage::kBefore;
  std::atomic<bool> may_call_mpi = false;
  MPI_Comm silent = MPI_COMM_NULL;            // nobody sends over it
  MPI_Group everybody = MPI_GROUP_NULL;       // in the job, in its order
  std::atomic<bool> has_called_init = false;  // the program; by a function that passes through here
  bool is_of_session = false;
  uint64_t served = 0;
  std::map<std::string, uint64_t> left;  // windows of the MPI's own, by reason
  std::string refusal;                   // why there is no job
  bool is_ours = true;                   // the job, to be ended by the front
};

Life& life() {
  static Life instance;
  return instance;
}

thread_local int progress_depth __attribute__((tls_model("initial-exec"))) = 0;
thread_local bool has_hook __attribute__((tls_model("initial-exec"))) = false;

// Any call that looks for messages has the MPI do what there is to do.
void drive_mpi() {
  if (!life().may_call_mpi.load(std::memory_order_relaxed)) return;
  int flag = 0;
  static_cast<void>(real::Iprobe(MPI_ANY_SOURCE, 0, life().silent, &flag, MPI_STATUS_IGNORE));
}

// Intel MPI says in a session, too, that it is initialised.
bool has_world() {
  if (life().has_called_init) return true;
  if (has_opened_session()) return false;
  int is_initialized = 0;
  return real::Initialized(&is_initialized) == MPI_SUCCESS && is_initialized != 0;
}

bool is_of_everybody(MPI_Comm comm) {
  int relation = MPI_UNEQUAL;
  if (is_intercommunicator(comm)) return false;
  if (!has_world()) return is_of_session_world(comm);
  return real::Comm_compare(comm, MPI_COMM_WORLD, &relation) == MPI_SUCCESS &&
         relation != MPI_UNEQUAL;
}

bool is_off() {
  const char* wish = std::getenv("MOBIUS_MPI_WINDOWS");
  return wish != nullptr && std::strcmp(wish, "off") == 0;
}

// A program may have joined a job by itself.
bool is_job_of(MPI_Comm everybody) {
  int rank = 0;
  int size = 0;
  static_cast<void>(real::Comm_rank(everybody, &rank));
  static_cast<void>(real::Comm_size(everybody, &size));
  return mob_rank() == rank && mob_size() == size;
}

bool may_share_memory() {
  const int memory = memfd_create("mobius", MFD_CLOEXEC);
  if (memory >= 0) static_cast<void>(close(memory));
  return memory >= 0;
}

// What keeps any process from the job keeps all of them, as they join it together.
constexpr unsigned kMakesWindows = 1;  // the program itself does
constexpr unsigned kIsOff = 2;
constexpr unsigned kMayNotShare = 4;  // mob_init_mpi() would end all processes
constexpr unsigned kHasNoJob = 8;     // of its own
constexpr unsigned kHasJob = 16;
constexpr unsigned kHasOtherJob = 32;
constexpr unsigned kIsNotOfAll = 64;  // the communicator, as far as a process can tell

unsigned own_facts(MPI_Comm everybody) {
  unsigned facts = program_makes_windows() ? kMakesWindows : 0;
  if (is_off()) facts |= kIsOff;
  if (mob_initialized() == 0) {
    facts |= kHasNoJob;
    if (!may_share_memory()) facts |= kMayNotShare;
  } else {
    facts |= is_job_of(everybody) ? kHasJob : kHasOtherJob;
  }
  return facts;
}

const char* reason_of(unsigned facts) {
  if (facts == kUnknownFacts) return "the MPI could not exchange what its processes can";
  if ((facts & kIsOff) != 0) return "MOBIUS_MPI_WINDOWS=off";
  if ((facts & kMayNotShare) != 0) return "a process may not make shared memory (memfd_create)";
  if ((facts & kHasOtherJob) != 0 || (facts & (kHasJob | kHasNoJob)) == (kHasJob | kHasNoJob)) {
    return "the program's job of Möbius is not that of MPI_COMM_WORLD";
  }
  return nullptr;
}

// The reason why there is no job; empty if there is one. `facts` are those of all.
std::string begin_job(Life* own, MPI_Comm everybody, unsigned facts) {
  if (const char* reason = reason_of(facts)) return reason;
  if (own->is_of_session) {
    everybody = own->silent = open_own_session(everybody);
    if (everybody == MPI_COMM_NULL) return "the MPI could not make a session and a communicator";
  }
  own->is_ours = mob_initialized() == 0;
  const auto* handle = reinterpret_cast<const void*>(number_of(everybody));
  if (own->is_ours && mob_init_mpi(handle) != MOB_OK) return mob_last_error();
  if ((!own->is_of_session && real::Comm_dup(MPI_COMM_SELF, &own->silent) != MPI_SUCCESS) ||
      real::Comm_group(everybody, &own->everybody) != MPI_SUCCESS) {
    return "the MPI could not make a communicator";
  }
  if (!open_carriers()) return mob_last_error();
  return {};
}

// Frees the objects of the MPI that the job needs, or that a job was to need that did not begin.
void free_mpi_objects(Life* own) {
  if (own->everybody != MPI_GROUP_NULL) static_cast<void>(real::Group_free(&own->everybody));
  if (own->silent != MPI_COMM_NULL) static_cast<void>(real::Comm_free(&own->silent));
  close_own_session();
}

#if defined(MOBIUS_MPI_OMPI)
// Open MPI gives one request, which nobody changes, for every message to nobody.
void find_done_request(MPI_Comm silent) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (MPI_Request& request : requests) {
    if (real::Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, silent, &request) != MPI_SUCCESS)
      return;
  }
  if (requests[0] == requests[1] && requests[0] == find_object("ompi_request_empty")) {
    done_request = requests[0];
  }
  for (MPI_Request& request : requests) {
    static_cast<void>(real::Wait(&request, MPI_STATUS_IGNORE));
  }
}
#endif

// Collective over the communicator, which is of all processes, in the order that the job gets.
void join(MPI_Comm everybody, unsigned facts) {
  Life& own = life();
  own.refusal = begin_job(&own, everybody, facts);
  const bool is_joined_now = own.refusal.empty();
  if (!is_joined_now) free_mpi_objects(&own);
#if defined(MOBIUS_MPI_OMPI)
  if (is_joined_now) find_done_request(own.silent);
#endif
  own.may_call_mpi = is_joined_now;
  own.stage.store(is_joined_now ? Stage::kJoined : Stage::kRefused, std::memory_order_release);
}

constexpr const char* kMakingWindow = "a call that makes a window";

// Whether a communicator is of all processes. Without MPI_Init() a process knows that only from the
// one session that it has open, so the members ask each other.
bool all_say_everybody(MPI_Comm comm) {
  const bool mine = is_of_everybody(comm);
  if (has_world() || is_intercommunicator(comm)) return mine;
  return facts_of_all(mine ? 0 : kIsNotOfAll, comm, kMakingWindow) == 0;
}

// With the first window of all processes. The communicator is the window's: over MPI_COMM_WORLD
// another thread, or a call that does not block, may have begun something.
void join_with_window(MPI_Comm comm) {
  Life& own = life();
  const std::lock_guard lock(own.mutex);
  if (own.stage.load(std::memory_order_relaxed) != Stage::kBefore) return;
  own.is_of_session = !has_world();
  if (own.is_of_session) {
    join(comm, facts_of_all(own_facts(comm), comm, kMakingWindow));
    return;
  }
  int rank = 0;
  MPI_Comm in_order = MPI_COMM_NULL;
  if (real::Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
      real::Comm_split(comm, 0, rank, &in_order) != MPI_SUCCESS) {
    return;
  }
  join(in_order, facts_of_all(own_facts(in_order), in_order, kMakingWindow));
  static_cast<void>(real::Comm_free(&in_order));
}

bool wants_statistics() {
  const char* wish = std::getenv("MOBIUS_STATS");
  return wish != nullptr && *wish != '\0' && std::strcmp(wish, "0") != 0;
}

void report() {
  Life& own = life();
  if (!wants_statistics() || (own.served == 0 && own.left.empty())) return;
  int rank = -1;
  if (mob_initialized() != 0) {
    rank = mob_rank();
  } else if (has_world()) {
    static_cast<void>(real::Comm_rank(MPI_COMM_WORLD, &rank));
  }
  std::string text = "mobius: rank " + std::to_string(rank) + ": " + std::to_string(own.served) +
                     " MPI windows served";
  for (const auto& [reason, count] : own.left) {
    text += ", " + std::to_string(count) + " left to the MPI (" + reason + ")";
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  own.served = 0;
  own.left.clear();
}

// After MPI_Init(): a program that makes windows has the job at once, so that windows of some of
// its processes can be served before there is one of all. The job may be of several programs, of
// which some make none.
void after_init() {
  Life& own = life();
  const std::lock_guard lock(own.mutex);
  own.has_called_init = true;
  if (own.stage.load(std::memory_order_relaxed) != Stage::kBefore) return;
  const unsigned facts = facts_of_all(own_facts(MPI_COMM_WORLD), MPI_COMM_WORLD, "MPI_Init()");
  if ((facts & kMakesWindows) != 0) join(MPI_COMM_WORLD, facts);
}

void end_job() {
  Life& own = life();
  report();
  if (own.stage.load(std::memory_order_acquire) != Stage::kJoined) return;
  finish_requests();
  own.refusal = "the job of Möbius has ended";
  own.stage = Stage::kEnded;
  {
    const Progressing progressing_until_all_came;
    static_cast<void>(mob_barrier());
    free_all_spares();
  }
  if (windows.any() != nullptr) {
    std::fprintf(stderr,
                 "libmobius_" MOBIUS_MPI_FRONT
                 ": the MPI ends with windows that were not freed; MPI_Win_free() frees them\n");
  }
  close_carriers();
  forget_program_memory();
  if (own.is_ours) {
    const Progressing progressing_until_all_came;
    static_cast<void>(mob_finalize());
  }
  own.may_call_mpi = false;
  free_mpi_objects(&own);
}

}  // namespace

#if defined(MOBIUS_MPI_OMPI)
constinit MPI_Request done_request = nullptr;
#endif

bool is_joined() { return life().stage.load(std::memory_order_acquire) == Stage::kJoined; }

bool is_intercommunicator(MPI_Comm comm) {
  int is_inter = 0;
  return real::Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter != 0;
}

bool join_job(MPI_Comm comm) {
  if (life().stage.load(std::memory_order_acquire) == Stage::kBefore && all_say_everybody(comm)) {
    join_with_window(comm);
  }
  return is_joined();
}

std::vector<mob_rank_t> job_ranks(MPI_Comm comm) {
  MPI_Group group{};
  int size = 0;
  if (real::Comm_group(comm, &group) != MPI_SUCCESS) return {};
  static_cast<void>(real::Group_size(group, &size));
  std::vector<int> members(static_cast<size_t>(size));
  std::vector<mob_rank_t> ranks(members.size());
  std::iota(members.begin(), members.end(), 0);
  static_cast<void>(
      real::Group_translate_ranks(group, size, members.data(), life().everybody, ranks.data()));
  static_cast<void>(real::Group_free(&group));
  for (const mob_rank_t rank : ranks) {
    if (rank == MPI_UNDEFINED) return {};
  }
  return ranks;
}

// The hook stays, as setting it for each short epoch would take longer than the rest of it.
Progressing::Progressing() {
  ++progress_depth;
  if (!std::exchange(has_hook, true)) {
    mob_wait_hook(
        [](void* /*nothing*/) {
          if (progress_depth > 0) drive_mpi();
        },
        nullptr);
  }
}

Progressing::~Progressing() { --progress_depth; }

void let_mpi_progress() { drive_mpi(); }

int make_done_request(MPI_Request* request) {
#if defined(MOBIUS_MPI_OMPI)
  if (done_request != nullptr) [[likely]] {
    *request = done_request;
    return MPI_SUCCESS;
  }
#endif
  return real::Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, life().silent, request);
}

void end_job_of_session() {
  if (life().is_of_session || !has_world()) end_job();
}

void count_served() {
  const std::lock_guard lock(life().mutex);
  ++life().served;
}

void count_left(const char* reason) {
  const std::lock_guard lock(life().mutex);
  ++life().left[reason];
}

const char* why_not_joined() {
  return life().stage.load(std::memory_order_acquire) == Stage::kBefore
             ? "no window of all processes was made before it"
             : life().refusal.c_str();
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Init)(int* argc, char*** argv) {
  check_mpi();
  const int result = real::Init(argc, argv);
  if (result == MPI_SUCCESS) after_init();
  return result;
}

MOBIUS_MPI_TWIN(Init_thread)(int* argc, char*** argv, int required, int* provided) {
  check_mpi();
  const int result = real::Init_thread(argc, argv, required, provided);
  if (result == MPI_SUCCESS) after_init();
  return result;
}

MOBIUS_MPI_TWIN(Finalize)(void) {
  if (!life().is_of_session) end_job();
  return real::Finalize();
}
