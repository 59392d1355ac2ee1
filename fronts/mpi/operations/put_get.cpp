// SPDX-License-Identifier: BSD-3-Clause

// MPI_Put() and MPI_Get(), with and without requests.

#include <cstring>

#include "binding/bootstrap.h"
#include "binding/real.h"
#include "operations/requests.h"
#include "operations/transfer.h"

namespace mobius::mpi {
namespace {

// As short_way() in transfer.h, for as many elements of one type on both sides.
inline char* short_way_alike(Window* window, const void* origin, int rank, MPI_Aint displacement,
                             int64_t count, int64_t target_count, MPI_Datatype type,
                             MPI_Datatype target_type, const Target** target, size_t* bytes) {
  if (type != target_type || count != target_count || origin == nullptr) [[unlikely]] {
    return nullptr;
  }
  const size_t unit = solid_bytes(type);
  *bytes = static_cast<size_t>(count) * unit;
  return short_way(window, rank, displacement, count, unit, target);
}

int transfer_long_way(mob_kind_t kind, const Side& origin, int rank, MPI_Aint displacement,
                      const Side& there, Window* window, Completion completion,
                      mob_handle_t* handle) {
  const Datatype* origin_type = nullptr;
  const Datatype* target_type = nullptr;
  if (const int error = check_buffer(*window, origin, &origin_type)) return error;
  if (const int error = check_side(*window, there, &target_type)) return error;
  const Place place = find_place(window, rank, displacement, there.count, *target_type);
  if (place.error != MPI_SUCCESS || place.is_nobody) return place.error;
  const Runs local(origin.address, origin.count, *origin_type);
  const Runs remote(place.address, there.count, *target_type);
  if (local.bytes() != remote.bytes()) return raise(*window, MPI_ERR_TYPE);
  if (local.bytes() == 0) return MPI_SUCCESS;
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.rank = place.target->owner;
  note_transfer(*place.target);
  describe_shape(&transfer, local, remote, &lists_of_thread());
  return raise_if(start(transfer, completion, handle), *window);
}

int put(const void* origin, int64_t count, MPI_Datatype type, int rank, MPI_Aint displacement,
        int64_t target_count, MPI_Datatype target_type, Window* window, Completion completion) {
  const Target* target = nullptr;
  size_t bytes = 0;
  char* const remote = short_way_alike(window, origin, rank, displacement, count, target_count,
                                       type, target_type, &target, &bytes);
  if (remote == nullptr) [[unlikely]] {
    return transfer_long_way(MOB_PUT, {const_cast<void*>(origin), count, type}, rank, displacement,
                             {nullptr, target_count, target_type}, window, completion, nullptr);
  }
  note_store(*target);
  if (bytes == 8) {
    uint64_t value = 0;
    std::memcpy(&value, origin, sizeof value);
    return raise_if(mob_put8(target->owner, remote, value), *window);
  }
  if (bytes == 4) {
    uint32_t value = 0;
    std::memcpy(&value, origin, sizeof value);
    return raise_if(mob_put4(target->owner, remote, value), *window);
  }
  return raise_if(completion == Completion::kNow || target->is_here
                      ? mob_put(target->owner, remote, origin, bytes)
                      : mob_put_nbi(target->owner, remote, origin, bytes),
                  *window);
}

int get(void* origin, int64_t count, MPI_Datatype type, int rank, MPI_Aint displacement,
        int64_t target_count, MPI_Datatype target_type, Window* window, Completion completion,
        mob_handle_t* handle) {
  const Target* target = nullptr;
  size_t bytes = 0;
  const char* const remote = short_way_alike(window, origin, rank, displacement, count,
                                             target_count, type, target_type, &target, &bytes);
  if (remote == nullptr) [[unlikely]] {
    return transfer_long_way(MOB_GET, {origin, count, type}, rank, displacement,
                             {nullptr, target_count, target_type}, window, completion, handle);
  }
  if (!target->is_here) note_transfer(*target);
  if (!target->is_here && completion == Completion::kLater) {
    return raise_if(mob_get_nbi(target->owner, remote, origin, bytes), *window);
  }
  if (!target->is_here && completion == Completion::kAsked) {
    return raise_if(mob_get_nb(target->owner, remote, origin, bytes, handle), *window);
  }
  if (bytes == 8) {
    uint64_t value = 0;
    const mob_status_t status = mob_get8(target->owner, remote, &value);
    if (status == MOB_OK) std::memcpy(origin, &value, sizeof value);
    return raise_if(status, *window);
  }
  return raise_if(mob_get(target->owner, remote, origin, bytes), *window);
}

int with_request(int result, mob_handle_t transfer, const Window& window, MPI_Request* request) {
  if (result != MPI_SUCCESS) return result;
  const int made = make_request(transfer, request);
  return made == MPI_SUCCESS ? MPI_SUCCESS : raise(window, made);
}

// The calls of the standard with int counts and with MPI_Count. `own` is the MPI's function of that
// name.
template <typename Own, typename Count>
int call_put(const Own& own, const void* origin, Count count, MPI_Datatype type, int rank,
             MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) [[unlikely]] {
    return own(origin, count, type, rank, displacement, target_count, target_type, win);
  }
  return put(origin, count, type, rank, displacement, target_count, target_type, window,
             Completion::kLater);
}

template <typename Own, typename Count>
int call_get(const Own& own, void* origin, Count count, MPI_Datatype type, int rank,
             MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) [[unlikely]] {
    return own(origin, count, type, rank, displacement, target_count, target_type, win);
  }
  return get(origin, count, type, rank, displacement, target_count, target_type, window,
             Completion::kLater, nullptr);
}

template <typename Own, typename Count>
int call_rput(const Own& own, const void* origin, Count count, MPI_Datatype type, int rank,
              MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win,
              MPI_Request* request) {
  Window* window = find_window(win);
  if (window == nullptr) [[unlikely]] {
    return own(origin, count, type, rank, displacement, target_count, target_type, win, request);
  }
  if (request == nullptr) return raise(*window, MPI_ERR_REQUEST);
  return with_request(put(origin, count, type, rank, displacement, target_count, target_type,
                          window, Completion::kNow),
                      MOB_HANDLE_DONE, *window, request);
}

template <typename Own, typename Count>
int call_rget(const Own& own, void* origin, Count count, MPI_Datatype type, int rank,
              MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win,
              MPI_Request* request) {
  Window* window = find_window(win);
  if (window == nullptr) [[unlikely]] {
    return own(origin, count, type, rank, displacement, target_count, target_type, win, request);
  }
  if (request == nullptr) return raise(*window, MPI_ERR_REQUEST);
  mob_handle_t transfer = MOB_HANDLE_DONE;
  const int result = get(origin, count, type, rank, displacement, target_count, target_type, window,
                         Completion::kAsked, &transfer);
  return with_request(result, transfer, *window, request);
}

}  // namespace
}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Put)
(const void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
 int target_count, MPI_Datatype target_type, MPI_Win win) {
  return call_put(real::Put, origin, count, type, rank, displacement, target_count, target_type,
                  win);
}

MOBIUS_MPI_TWIN(Get)
(void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement, int target_count,
 MPI_Datatype target_type, MPI_Win win) {
  return call_get(real::Get, origin, count, type, rank, displacement, target_count, target_type,
                  win);
}

MOBIUS_MPI_TWIN(Rput)
(const void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
 int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return call_rput(real::Rput, origin, count, type, rank, displacement, target_count, target_type,
                   win, request);
}

MOBIUS_MPI_TWIN(Rget)
(void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement, int target_count,
 MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return call_rget(real::Rget, origin, count, type, rank, displacement, target_count, target_type,
                   win, request);
}

#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
MOBIUS_MPI_TWIN(Put_c)
(const void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint displacement,
 MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return call_put(real::Put_c, origin, count, type, rank, displacement, target_count, target_type,
                  win);
}

MOBIUS_MPI_TWIN(Get_c)
(void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint displacement,
 MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return call_get(real::Get_c, origin, count, type, rank, displacement, target_count, target_type,
                  win);
}

MOBIUS_MPI_TWIN(Rput_c)
(const void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint displacement,
 MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return call_rput(real::Rput_c, origin, count, type, rank, displacement, target_count, target_type,
                   win, request);
}

MOBIUS_MPI_TWIN(Rget_c)
(void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint displacement,
 MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return call_rget(real::Rget_c, origin, count, type, rank, displacement, target_count, target_type,
                   win, request);
}
#endif
