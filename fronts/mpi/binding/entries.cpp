// SPDX-License-Identifier: BSD-3-Clause

// A program calls the front's functions as MPI_X(), which this file defines. The front does its
// work in PMPI_X(). A profiler is a library that defines MPI_X(), too, and calls PMPI_X() from it.
// If the loader searches the profiler before the front, the program calls the profiler without our
// help. If the loader searches it after the front, the program calls the front's MPI_X(), which
// then calls the profiler's. Inside, the front calls neither MPI_X() nor PMPI_X().

#include <dlfcn.h>

#include <cstddef>
#include <tuple>

#include "binding/real.h"

namespace mobius::mpi {
namespace {

// Whether a library defines the name itself.
bool defines(const Dl_info& library, const char* name) {
  void* const opened = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (opened == nullptr) return false;
  void* const found = dlsym(opened, name);
  dlclose(opened);
  Dl_info owner{};
  return found != nullptr && dladdr(found, &owner) != 0 && owner.dli_fbase == library.dli_fbase;
}

// The function that a profiler behind the front has by this name; null if there is none. An MPI,
// and another front, have both names.
void* find_profiler(const char* name) {
  void* const next = dlsym(RTLD_NEXT, name + 1);
  Dl_info library{};
  if (next == nullptr || dladdr(next, &library) == 0 || defines(library, name)) return nullptr;
  return next;
}

template <typename Signature>
class Entry;

// Leads the calls of MPI_X() to a profiler or to the front, decided by the first of them.
template <typename Result, typename... Arguments>
class Entry<Result(Arguments...)> {
 public:
  using Function = Result (*)(Arguments...);
  template <size_t kIndex>
  using Argument = std::tuple_element_t<kIndex, std::tuple<Arguments...>>;

  constexpr explicit Entry(Function first) noexcept : function_(first) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  Function function() const { return function_.load(std::memory_order_relaxed); }

  // `name` with the prefix PMPI_.
  Function decide(const char* name, Function own) {
    void* const profiler = find_profiler(name);
    const auto chosen = profiler != nullptr ? reinterpret_cast<Function>(profiler) : own;
    function_.store(chosen, std::memory_order_relaxed);
    return chosen;
  }

 private:
  std::atomic<Function> function_;
};

}  // namespace
}  // namespace mobius::mpi

// A parameter's type and name, parameters by their number, and their names.
#define MOBIUS_MPI_P(name, index, letter) decltype(entry_of_##name)::Argument<index> letter
#define MOBIUS_MPI_PARAMETERS_0(name) void
#define MOBIUS_MPI_PARAMETERS_1(name) MOBIUS_MPI_P(name, 0, a)
#define MOBIUS_MPI_PARAMETERS_2(name) MOBIUS_MPI_PARAMETERS_1(name), MOBIUS_MPI_P(name, 1, b)
#define MOBIUS_MPI_PARAMETERS_3(name) MOBIUS_MPI_PARAMETERS_2(name), MOBIUS_MPI_P(name, 2, c)
#define MOBIUS_MPI_PARAMETERS_4(name) MOBIUS_MPI_PARAMETERS_3(name), MOBIUS_MPI_P(name, 3, d)
#define MOBIUS_MPI_PARAMETERS_5(name) MOBIUS_MPI_PARAMETERS_4(name), MOBIUS_MPI_P(name, 4, e)
#define MOBIUS_MPI_PARAMETERS_6(name) MOBIUS_MPI_PARAMETERS_5(name), MOBIUS_MPI_P(name, 5, f)
#define MOBIUS_MPI_PARAMETERS_7(name) MOBIUS_MPI_PARAMETERS_6(name), MOBIUS_MPI_P(name, 6, g)
#define MOBIUS_MPI_PARAMETERS_8(name) MOBIUS_MPI_PARAMETERS_7(name), MOBIUS_MPI_P(name, 7, h)
#define MOBIUS_MPI_PARAMETERS_9(name) MOBIUS_MPI_PARAMETERS_8(name), MOBIUS_MPI_P(name, 8, i)
#define MOBIUS_MPI_PARAMETERS_10(name) MOBIUS_MPI_PARAMETERS_9(name), MOBIUS_MPI_P(name, 9, j)
#define MOBIUS_MPI_PARAMETERS_11(name) MOBIUS_MPI_PARAMETERS_10(name), MOBIUS_MPI_P(name, 10, k)
#define MOBIUS_MPI_PARAMETERS_12(name) MOBIUS_MPI_PARAMETERS_11(name), MOBIUS_MPI_P(name, 11, l)
#define MOBIUS_MPI_PARAMETERS_13(name) MOBIUS_MPI_PARAMETERS_12(name), MOBIUS_MPI_P(name, 12, m)
#define MOBIUS_MPI_NAMES_0
#define MOBIUS_MPI_NAMES_1 a
#define MOBIUS_MPI_NAMES_2 a, b
#define MOBIUS_MPI_NAMES_3 a, b, c
#define MOBIUS_MPI_NAMES_4 a, b, c, d
#define MOBIUS_MPI_NAMES_5 a, b, c, d, e
#define MOBIUS_MPI_NAMES_6 a, b, c, d, e, f
#define MOBIUS_MPI_NAMES_7 a, b, c, d, e, f, g
#define MOBIUS_MPI_NAMES_8 a, b, c, d, e, f, g, h
#define MOBIUS_MPI_NAMES_9 a, b, c, d, e, f, g, h, i
#define MOBIUS_MPI_NAMES_10 a, b, c, d, e, f, g, h, i, j
#define MOBIUS_MPI_NAMES_11 a, b, c, d, e, f, g, h, i, j, k
#define MOBIUS_MPI_NAMES_12 a, b, c, d, e, f, g, h, i, j, k, l
#define MOBIUS_MPI_NAMES_13 a, b, c, d, e, f, g, h, i, j, k, l, m

// Weak, as an MPI's are: a profiler may be a part of a program, together with the front's archive.
#define MOBIUS_MPI_ENTRY(name, count)                                                          \
  extern "C" __attribute__((visibility("hidden"))) decltype(PMPI_##name) mobius_mpi_##name;    \
  static decltype(PMPI_##name) first_##name;                                                   \
  static constinit mobius::mpi::Entry<decltype(PMPI_##name)> entry_of_##name{first_##name};    \
  static int first_##name(MOBIUS_MPI_PARAMETERS_##count(name)) {                               \
    return entry_of_##name.decide("PMPI_" #name, mobius_mpi_##name)(MOBIUS_MPI_NAMES_##count); \
  }                                                                                            \
  extern "C" __attribute__((visibility("default"), weak)) int MPI_##name(                      \
      MOBIUS_MPI_PARAMETERS_##count(name)) {                                                   \
    return entry_of_##name.function()(MOBIUS_MPI_NAMES_##count);                               \
  }

MOBIUS_MPI_ENTRY(Accumulate, 9)
MOBIUS_MPI_ENTRY(Alloc_mem, 3)
MOBIUS_MPI_ENTRY(Comm_disconnect, 1)
MOBIUS_MPI_ENTRY(Comm_free, 1)
MOBIUS_MPI_ENTRY(Compare_and_swap, 7)
MOBIUS_MPI_ENTRY(Fetch_and_op, 7)
MOBIUS_MPI_ENTRY(Finalize, 0)
MOBIUS_MPI_ENTRY(Free_mem, 1)
MOBIUS_MPI_ENTRY(Get, 8)
MOBIUS_MPI_ENTRY(Get_accumulate, 12)
MOBIUS_MPI_ENTRY(Group_free, 1)
MOBIUS_MPI_ENTRY(Init, 2)
MOBIUS_MPI_ENTRY(Init_thread, 4)
MOBIUS_MPI_ENTRY(Put, 8)
MOBIUS_MPI_ENTRY(Raccumulate, 10)
MOBIUS_MPI_ENTRY(Request_free, 1)
MOBIUS_MPI_ENTRY(Request_get_status, 3)
MOBIUS_MPI_ENTRY(Rget, 9)
MOBIUS_MPI_ENTRY(Rget_accumulate, 13)
MOBIUS_MPI_ENTRY(Rput, 9)
MOBIUS_MPI_ENTRY(Test, 3)
MOBIUS_MPI_ENTRY(Testall, 4)
MOBIUS_MPI_ENTRY(Testany, 5)
MOBIUS_MPI_ENTRY(Testsome, 5)
MOBIUS_MPI_ENTRY(Wait, 2)
MOBIUS_MPI_ENTRY(Waitall, 3)
MOBIUS_MPI_ENTRY(Waitany, 4)
MOBIUS_MPI_ENTRY(Waitsome, 5)
MOBIUS_MPI_ENTRY(Win_allocate, 6)
MOBIUS_MPI_ENTRY(Win_allocate_shared, 6)
MOBIUS_MPI_ENTRY(Win_attach, 3)
MOBIUS_MPI_ENTRY(Win_complete, 1)
MOBIUS_MPI_ENTRY(Win_create, 6)
MOBIUS_MPI_ENTRY(Win_create_dynamic, 3)
MOBIUS_MPI_ENTRY(Win_detach, 2)
MOBIUS_MPI_ENTRY(Win_fence, 2)
MOBIUS_MPI_ENTRY(Win_flush, 2)
MOBIUS_MPI_ENTRY(Win_flush_all, 1)
MOBIUS_MPI_ENTRY(Win_flush_local, 2)
MOBIUS_MPI_ENTRY(Win_flush_local_all, 1)
MOBIUS_MPI_ENTRY(Win_free, 1)
MOBIUS_MPI_ENTRY(Win_get_attr, 4)
MOBIUS_MPI_ENTRY(Win_get_info, 2)
MOBIUS_MPI_ENTRY(Win_lock, 4)
MOBIUS_MPI_ENTRY(Win_lock_all, 2)
MOBIUS_MPI_ENTRY(Win_post, 3)
MOBIUS_MPI_ENTRY(Win_set_attr, 3)
MOBIUS_MPI_ENTRY(Win_set_errhandler, 2)
MOBIUS_MPI_ENTRY(Win_set_info, 2)
MOBIUS_MPI_ENTRY(Win_set_name, 2)
MOBIUS_MPI_ENTRY(Win_shared_query, 5)
MOBIUS_MPI_ENTRY(Win_start, 3)
MOBIUS_MPI_ENTRY(Win_sync, 1)
MOBIUS_MPI_ENTRY(Win_test, 2)
MOBIUS_MPI_ENTRY(Win_unlock, 2)
MOBIUS_MPI_ENTRY(Win_unlock_all, 1)
MOBIUS_MPI_ENTRY(Win_wait, 1)

#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
MOBIUS_MPI_ENTRY(Accumulate_c, 9)
MOBIUS_MPI_ENTRY(Get_accumulate_c, 12)
MOBIUS_MPI_ENTRY(Get_c, 8)
MOBIUS_MPI_ENTRY(Put_c, 8)
MOBIUS_MPI_ENTRY(Raccumulate_c, 10)
MOBIUS_MPI_ENTRY(Rget_accumulate_c, 13)
MOBIUS_MPI_ENTRY(Rget_c, 9)
MOBIUS_MPI_ENTRY(Rput_c, 9)
MOBIUS_MPI_ENTRY(Win_allocate_c, 6)
MOBIUS_MPI_ENTRY(Win_allocate_shared_c, 6)
MOBIUS_MPI_ENTRY(Win_create_c, 6)
MOBIUS_MPI_ENTRY(Win_shared_query_c, 5)
#endif

#ifdef MOBIUS_MPI_HAS_STATUS_OF_SEVERAL
MOBIUS_MPI_ENTRY(Request_get_status_all, 4)
MOBIUS_MPI_ENTRY(Request_get_status_any, 5)
MOBIUS_MPI_ENTRY(Request_get_status_some, 5)
#endif

#ifdef MOBIUS_MPI_HAS_SESSIONS
MOBIUS_MPI_ENTRY(Session_finalize, 1)
MOBIUS_MPI_ENTRY(Session_init, 3)
#endif

#if defined(MOBIUS_MPI_OMPI)
MOBIUS_MPI_ENTRY(Comm_spawn, 8)
MOBIUS_MPI_ENTRY(Comm_spawn_multiple, 9)
#endif
