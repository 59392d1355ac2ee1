// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The MPI's own functions, by the names they have without the prefix: real::Win_free() is the
// PMPI_Win_free() of the MPI behind this front.

#include <atomic>

#include "binding/abi.h"

namespace mobius::mpi {

// A function of the MPI that is loaded; ends the process with a line if there is none.
void* find_function(const char* name);
// The same; null if there is none.
void* look_for_function(const char* name);

template <typename Signature>
class Real;

template <typename Result, typename... Arguments>
class Real<Result(Arguments...)> {
 public:
  using Function = Result (*)(Arguments...);

  constexpr explicit Real(const char* name) : name_(name) {}
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;

  Result operator()(Arguments... arguments) const { return function()(arguments...); }

  Function function() const {
    void* known = function_.load(std::memory_order_relaxed);
    if (known == nullptr) [[unlikely]] {
      known = find_function(name_);
      function_.store(known, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function>(known);
  }

 private:
  const char* name_;
  mutable std::atomic<void*> function_ = nullptr;
};

namespace real {

#define MOBIUS_MPI_REAL(name) \
  inline constinit const Real<decltype(PMPI_##name)> name { "PMPI_" #name }

MOBIUS_MPI_REAL(Abort);
MOBIUS_MPI_REAL(Accumulate);
MOBIUS_MPI_REAL(Allgather);
MOBIUS_MPI_REAL(Alloc_mem);
MOBIUS_MPI_REAL(Comm_call_errhandler);
MOBIUS_MPI_REAL(Comm_compare);
MOBIUS_MPI_REAL(Comm_create_keyval);
MOBIUS_MPI_REAL(Comm_delete_attr);
MOBIUS_MPI_REAL(Comm_disconnect);
MOBIUS_MPI_REAL(Comm_dup);
MOBIUS_MPI_REAL(Comm_free);
MOBIUS_MPI_REAL(Comm_get_attr);
MOBIUS_MPI_REAL(Comm_group);
MOBIUS_MPI_REAL(Comm_rank);
MOBIUS_MPI_REAL(Comm_set_attr);
MOBIUS_MPI_REAL(Comm_size);
MOBIUS_MPI_REAL(Comm_spawn);
MOBIUS_MPI_REAL(Comm_spawn_multiple);
MOBIUS_MPI_REAL(Comm_split);
MOBIUS_MPI_REAL(Comm_test_inter);
MOBIUS_MPI_REAL(Compare_and_swap);
MOBIUS_MPI_REAL(Errhandler_free);
MOBIUS_MPI_REAL(Fetch_and_op);
MOBIUS_MPI_REAL(Finalize);
MOBIUS_MPI_REAL(Finalized);
MOBIUS_MPI_REAL(Free_mem);
MOBIUS_MPI_REAL(Get);
MOBIUS_MPI_REAL(Get_accumulate);
MOBIUS_MPI_REAL(Get_library_version);
MOBIUS_MPI_REAL(Grequest_complete);
MOBIUS_MPI_REAL(Grequest_start);
MOBIUS_MPI_REAL(Group_compare);
MOBIUS_MPI_REAL(Group_free);
MOBIUS_MPI_REAL(Group_incl);
MOBIUS_MPI_REAL(Group_rank);
MOBIUS_MPI_REAL(Group_size);
MOBIUS_MPI_REAL(Group_translate_ranks);
MOBIUS_MPI_REAL(Iallreduce);
MOBIUS_MPI_REAL(Info_create);
MOBIUS_MPI_REAL(Info_dup);
MOBIUS_MPI_REAL(Info_free);
MOBIUS_MPI_REAL(Info_get);
MOBIUS_MPI_REAL(Info_set);
MOBIUS_MPI_REAL(Init);
MOBIUS_MPI_REAL(Init_thread);
MOBIUS_MPI_REAL(Initialized);
MOBIUS_MPI_REAL(Iprobe);
MOBIUS_MPI_REAL(Isend);
MOBIUS_MPI_REAL(Put);
MOBIUS_MPI_REAL(Query_thread);
MOBIUS_MPI_REAL(Raccumulate);
MOBIUS_MPI_REAL(Reduce_local);
MOBIUS_MPI_REAL(Request_free);
MOBIUS_MPI_REAL(Request_get_status);
MOBIUS_MPI_REAL(Rget);
MOBIUS_MPI_REAL(Rget_accumulate);
MOBIUS_MPI_REAL(Rput);
MOBIUS_MPI_REAL(Status_set_cancelled);
MOBIUS_MPI_REAL(Status_set_elements);
MOBIUS_MPI_REAL(Test);
MOBIUS_MPI_REAL(Testall);
MOBIUS_MPI_REAL(Testany);
MOBIUS_MPI_REAL(Testsome);
MOBIUS_MPI_REAL(Type_create_keyval);
MOBIUS_MPI_REAL(Type_free);
MOBIUS_MPI_REAL(Type_free_keyval);
MOBIUS_MPI_REAL(Type_get_contents);
MOBIUS_MPI_REAL(Type_get_envelope);
MOBIUS_MPI_REAL(Type_get_extent);
MOBIUS_MPI_REAL(Type_get_true_extent);
MOBIUS_MPI_REAL(Type_set_attr);
MOBIUS_MPI_REAL(Type_size);
MOBIUS_MPI_REAL(Wait);
MOBIUS_MPI_REAL(Waitall);
MOBIUS_MPI_REAL(Waitany);
MOBIUS_MPI_REAL(Waitsome);
MOBIUS_MPI_REAL(Win_allocate);
MOBIUS_MPI_REAL(Win_allocate_shared);
MOBIUS_MPI_REAL(Win_attach);
MOBIUS_MPI_REAL(Win_call_errhandler);
MOBIUS_MPI_REAL(Win_complete);
MOBIUS_MPI_REAL(Win_create);
MOBIUS_MPI_REAL(Win_create_dynamic);
MOBIUS_MPI_REAL(Win_detach);
MOBIUS_MPI_REAL(Win_fence);
MOBIUS_MPI_REAL(Win_flush);
MOBIUS_MPI_REAL(Win_flush_all);
MOBIUS_MPI_REAL(Win_flush_local);
MOBIUS_MPI_REAL(Win_flush_local_all);
MOBIUS_MPI_REAL(Win_free);
MOBIUS_MPI_REAL(Win_get_attr);
MOBIUS_MPI_REAL(Win_get_errhandler);
MOBIUS_MPI_REAL(Win_get_group);
MOBIUS_MPI_REAL(Win_get_info);
MOBIUS_MPI_REAL(Win_get_name);
MOBIUS_MPI_REAL(Win_lock);
MOBIUS_MPI_REAL(Win_lock_all);
MOBIUS_MPI_REAL(Win_post);
MOBIUS_MPI_REAL(Win_set_attr);
MOBIUS_MPI_REAL(Win_set_errhandler);
MOBIUS_MPI_REAL(Win_set_info);
MOBIUS_MPI_REAL(Win_set_name);
MOBIUS_MPI_REAL(Win_shared_query);
MOBIUS_MPI_REAL(Win_start);
MOBIUS_MPI_REAL(Win_sync);
MOBIUS_MPI_REAL(Win_test);
MOBIUS_MPI_REAL(Win_unlock);
MOBIUS_MPI_REAL(Win_unlock_all);
MOBIUS_MPI_REAL(Win_wait);

#ifdef MOBIUS_MPI_HAS_SESSIONS
MOBIUS_MPI_REAL(Comm_create_from_group);
MOBIUS_MPI_REAL(Group_from_session_pset);
MOBIUS_MPI_REAL(Session_finalize);
MOBIUS_MPI_REAL(Session_init);
#endif

#ifdef MOBIUS_MPI_HAS_STATUS_OF_SEVERAL
MOBIUS_MPI_REAL(Request_get_status_all);
MOBIUS_MPI_REAL(Request_get_status_any);
MOBIUS_MPI_REAL(Request_get_status_some);
#endif

#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
MOBIUS_MPI_REAL(Accumulate_c);
MOBIUS_MPI_REAL(Get_accumulate_c);
MOBIUS_MPI_REAL(Get_c);
MOBIUS_MPI_REAL(Put_c);
MOBIUS_MPI_REAL(Raccumulate_c);
MOBIUS_MPI_REAL(Rget_accumulate_c);
MOBIUS_MPI_REAL(Rget_c);
MOBIUS_MPI_REAL(Rput_c);
MOBIUS_MPI_REAL(Type_get_contents_c);
MOBIUS_MPI_REAL(Type_get_envelope_c);
MOBIUS_MPI_REAL(Win_allocate_c);
MOBIUS_MPI_REAL(Win_allocate_shared_c);
MOBIUS_MPI_REAL(Win_create_c);
MOBIUS_MPI_REAL(Win_shared_query_c);
#endif

#undef MOBIUS_MPI_REAL

}  // namespace real
}  // namespace mobius::mpi

// A function of the front: defines PMPI_name, and a name of the front's own by which entries.cpp
// reaches it from MPI_name. Followed by parameters and body.
#define MOBIUS_MPI_TWIN(name)                                                               \
  extern "C" __attribute__((visibility("hidden"),                                           \
                            alias("PMPI_" #name))) decltype(PMPI_##name) mobius_mpi_##name; \
  extern "C" __attribute__((visibility("default"))) int PMPI_##name
