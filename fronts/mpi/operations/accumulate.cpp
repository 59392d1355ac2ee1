// SPDX-License-Identifier: BSD-3-Clause
#include "operations/accumulate.h"

#include <cstring>

#include "binding/bootstrap.h"
#include "binding/real.h"
#include "operations/requests.h"

namespace mobius::mpi {

void copy_runs(const Runs& to, const Runs& from) {
  std::vector<mob_span_t> there;
  std::vector<mob_span_t> here;
  to.list(&there);
  from.list(&here);
  size_t used = 0;  // of the first span there
  size_t next = 0;
  for (const mob_span_t& span : here) {
    size_t done = 0;
    while (done < span.bytes && next < there.size()) {
      const size_t bytes = std::min(span.bytes - done, there[next].bytes - used);
      std::memcpy(static_cast<char*>(there[next].address) + used,
                  static_cast<char*>(span.address) + done, bytes);
      done += bytes;
      used += bytes;
      if (used == there[next].bytes) {
        ++next;
        used = 0;
      }
    }
  }
}

namespace {

// An accumulate with all that it comes with; the result's type is null if nothing is fetched.
struct Update {
  Side origin;
  Side result;
  bool fetches;
  int rank;
  MPI_Aint displacement;
  int64_t target_count;
  MPI_Datatype target_type;
  MPI_Op op;
};

const Datatype& bytes_alone() {
  static const Datatype* const type = [] {
    auto* made = new Datatype;
    made->solid_bytes = 1;
    made->bytes = 1;
    made->extent = 1;
    return made;
  }();
  return *type;
}

bool are_alike(const Element& one, const Element& other) {
  return &one == &other || (one.is_known && other.is_known && one.type == other.type &&
                            one.kind != ElementKind::kPair && other.kind != ElementKind::kPair);
}

// Whether all elements at the target are aligned, as they have to be for Möbius.
bool is_aligned(const char* address, int64_t count, const Datatype& type) {
  const size_t mask = static_cast<size_t>(type.element->alignment) - 1;
  size_t bits = reinterpret_cast<uintptr_t>(address);
  if (count > 1) bits |= static_cast<size_t>(type.extent);
  for (const Block& block : type.blocks) bits |= static_cast<size_t>(block.offset) | block.bytes;
  return (bits & mask) == 0;
}

// Fetches into memory that may have gaps.
mob_status_t fetch_into(mob_transfer_t* transfer, const Runs& result, Completion completion,
                        mob_handle_t* handle) {
  if (result.is_solid()) {
    transfer->fetched = result.base();
    return start(*transfer, completion, handle);
  }
  std::vector<char> old(result.bytes());
  transfer->fetched = old.data();
  const mob_status_t status = mob_transfer(transfer);
  if (status != MOB_OK) return status;
  copy_runs(result, Runs(old.data(), static_cast<int64_t>(old.size()), bytes_alone()));
  return MOB_OK;
}

int update(const Update& call, Window* window, Completion completion, mob_handle_t* handle) {
  const bool changes = call.op != MPI_NO_OP;
  const Datatype* origin_type = nullptr;
  const Datatype* result_type = nullptr;
  const Datatype* target_type = nullptr;
  const Side there{nullptr, call.target_count, call.target_type};
  if (changes) {
    if (const int error = check_buffer(*window, call.origin, &origin_type)) return error;
  }
  if (call.fetches) {
    if (const int error = check_buffer(*window, call.result, &result_type)) return error;
  }
  if (const int error = check_side(*window, there, &target_type)) return error;
  const Place place =
      find_place(window, call.rank, call.displacement, call.target_count, *target_type);
  if (place.error != MPI_SUCCESS || place.is_nobody) return place.error;
  const Runs remote(place.address, call.target_count, *target_type);
  const Runs result(call.result.address, call.result.count,
                    call.fetches ? *result_type : *target_type);
  const Runs local = changes ? Runs(call.origin.address, call.origin.count, *origin_type)
                             : Runs(place.address, call.target_count, *target_type);
  if (local.bytes() != remote.bytes() || (call.fetches && result.bytes() != remote.bytes())) {
    return raise(*window, MPI_ERR_TYPE);
  }
  if (remote.bytes() == 0) return MPI_SUCCESS;
  note_transfer(*place.target);
  const Element* element = target_type->element;
  if (element == nullptr || (changes && (origin_type->element == nullptr ||
                                         !are_alike(*origin_type->element, *element)))) {
    return raise(*window, MPI_ERR_TYPE);
  }
  mob_op_t op = MOB_SUM;
  const OpKind kind = op_kind(call.op, *element, &op);
  if (kind == OpKind::kInvalid) return raise(*window, MPI_ERR_OP);
  if (kind == OpKind::kLocked || place.target->is_copied ||
      !is_aligned(place.address, call.target_count, *target_type)) {
    return raise_if(update_locked({*element, call.op, *window, *place.target, remote,
                                   changes ? &local : nullptr, call.fetches ? &result : nullptr}),
                    *window);
  }
  mob_transfer_t transfer{};
  transfer.kind = call.fetches ? MOB_FETCH_ACCUMULATE : MOB_ACCUMULATE;
  transfer.rank = place.target->owner;
  transfer.type = element->type;
  transfer.op = op;
  std::vector<char> nothing;
  if (!changes && remote.is_solid()) {
    transfer.remote = remote.base();  // without an operand
    transfer.bytes = remote.bytes();
  } else {
    // Without an operand only the shape of the local side counts.
    if (!changes) nothing.resize(remote.bytes());
    const Runs brought =
        changes ? local : Runs(nothing.data(), static_cast<int64_t>(nothing.size()), bytes_alone());
    describe_shape(&transfer, brought, remote, &lists_of_thread());
  }
  // Accumulates of one origin to one place are done in their order.
  if (window->orders_accumulates) static_cast<void>(mob_fence());
  if (!call.fetches) return raise_if(start(transfer, completion, handle), *window);
  // The memory that stands for the operand must live as long as the transfer.
  return raise_if(
      fetch_into(&transfer, result, nothing.empty() ? completion : Completion::kNow, handle),
      *window);
}

template <typename Word>
mob_status_t fetch_add(mob_rank_t owner, char* address, const void* origin, void* result) {
  Word value = 0;
  std::memcpy(&value, origin, sizeof value);
  mob_status_t status = MOB_OK;
  if constexpr (sizeof(Word) == 8) {
    status = mob_fetch_add8(owner, address, value, &value);
  } else {
    status = mob_fetch_add4(owner, address, value, &value);
  }
  if (status == MOB_OK) std::memcpy(result, &value, sizeof value);
  return status;
}

int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int rank,
                 MPI_Aint displacement, MPI_Op op, Window* window) {
  const Datatype* known = datatypes.find(type);
  const Target* target = nullptr;
  mob_op_t translated = MOB_SUM;
  if (known != nullptr && known->element != nullptr && known->solid_bytes == known->element->bytes)
      [[likely]] {
    const Element& element = *known->element;
    char* const address = short_way(window, rank, displacement, 1, element.bytes, &target);
    const bool is_aligned_here =
        (reinterpret_cast<uintptr_t>(address) & (element.alignment - 1u)) == 0;
    const bool has_buffers = result != nullptr && (origin != nullptr || op == MPI_NO_OP);
    if (address != nullptr && is_aligned_here && has_buffers &&
        op_kind(op, element, &translated) == OpKind::kMobius) [[likely]] {
      if (target->is_copied) [[unlikely]] {
        note_transfer(*target);
        return raise_if(fetch_and_op_locked({element, *target, address, result}, origin, op),
                        *window);
      }
      const mob_rank_t owner = target->owner;
      if (translated == MOB_SUM && element.kind == ElementKind::kInteger) {
        note_update(*target);
        if (element.bytes == 8) {
          return raise_if(fetch_add<uint64_t>(owner, address, origin, result), *window);
        }
        if (element.bytes == 4) {
          return raise_if(fetch_add<uint32_t>(owner, address, origin, result), *window);
        }
      }
      note_transfer(*target);
      return raise_if(mob_fetch_op(owner, address, element.type, translated,
                                   translated == MOB_NO_OP ? nullptr : origin, result),
                      *window);
    }
  }
  return update({{const_cast<void*>(origin), 1, type},
                 {result, 1, type},
                 true,
                 rank,
                 displacement,
                 1,
                 type,
                 op},
                window, Completion::kNow, nullptr);
}

// A word of 1 or 2 bytes, as part of the aligned one of 4 bytes that has it.
template <typename T>
mob_status_t swap_part(mob_rank_t owner, char* address, T expected, T desired, T* old) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  auto* const word = reinterpret_cast<char*>(place & ~uintptr_t{3});
  const size_t at = place & 3;
  uint32_t held = 0;
  uint32_t nothing = 0;
  mob_status_t status = mob_fetch_op(owner, word, MOB_UINT32, MOB_NO_OP, &nothing, &held);
  while (status == MOB_OK) {
    std::memcpy(old, reinterpret_cast<char*>(&held) + at, sizeof *old);
    if (*old != expected) break;
    uint32_t changed = held;
    std::memcpy(reinterpret_cast<char*>(&changed) + at, &desired, sizeof desired);
    uint32_t found = 0;
    status = mob_compare_swap4(owner, word, held, changed, &found);
    if (found == held) break;
    held = found;
  }
  return status;
}

template <typename T>
mob_status_t swap(mob_rank_t owner, char* address, const void* origin, const void* compare,
                  void* result) {
  T desired{};
  T expected{};
  T old{};
  std::memcpy(&desired, origin, sizeof desired);
  std::memcpy(&expected, compare, sizeof expected);
  mob_status_t status = MOB_OK;
  if constexpr (sizeof(T) == 8) {
    status = mob_compare_swap8(owner, address, expected, desired, &old);
  } else if constexpr (sizeof(T) == 4) {
    status = mob_compare_swap4(owner, address, expected, desired, &old);
  } else {
    status = swap_part(owner, address, expected, desired, &old);
  }
  if (status == MOB_OK) std::memcpy(result, &old, sizeof old);
  return status;
}

int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type,
                     int rank, MPI_Aint displacement, Window* window) {
  const Datatype* known = datatypes.find(type);
  if (known == nullptr || known->element == nullptr || !known->element->is_known ||
      known->solid_bytes != known->element->bytes) {
    return raise(*window, MPI_ERR_TYPE);
  }
  if (origin == nullptr || compare == nullptr || result == nullptr) {
    return raise(*window, MPI_ERR_BUFFER);
  }
  const ElementKind kind = known->element->kind;
  if (kind != ElementKind::kInteger && kind != ElementKind::kLogical &&
      kind != ElementKind::kByte) {
    return raise(*window, MPI_ERR_TYPE);
  }
  const Place place = find_place(window, rank, displacement, 1, *known);
  if (place.error != MPI_SUCCESS || place.is_nobody) return place.error;
  // The address decides which word has it all.
  if (reinterpret_cast<uintptr_t>(place.address) % known->solid_bytes != 0) {
    return raise(*window, MPI_ERR_ARG);
  }
  if (place.target->is_copied) {
    note_transfer(*place.target);
    return raise_if(compare_and_swap_locked({*known->element, *place.target, place.address, result},
                                            origin, compare),
                    *window);
  }
  const mob_rank_t owner = place.target->owner;
  note_update(*place.target);
  switch (known->solid_bytes) {
    case 8:
      return raise_if(swap<uint64_t>(owner, place.address, origin, compare, result), *window);
    case 4:
      return raise_if(swap<uint32_t>(owner, place.address, origin, compare, result), *window);
    case 2:
      return raise_if(swap<uint16_t>(owner, place.address, origin, compare, result), *window);
    default:
      return raise_if(swap<uint8_t>(owner, place.address, origin, compare, result), *window);
  }
}

int update_with_request(const Update& call, Window* window, MPI_Request* request) {
  if (request == nullptr) return raise(*window, MPI_ERR_REQUEST);
  mob_handle_t transfer = MOB_HANDLE_DONE;
  const Completion completion = call.fetches ? Completion::kAsked : Completion::kNow;
  if (const int result = update(call, window, completion, &transfer)) return result;
  const int made = make_request(transfer, request);
  return made == MPI_SUCCESS ? MPI_SUCCESS : raise(*window, made);
}

// The calls of the standard with int counts and with MPI_Count. `own` is the MPI's function of that
// name.
template <typename Own, typename Count>
int call_accumulate(const Own& own, const void* origin, Count count, MPI_Datatype type, int rank,
                    MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Op op,
                    MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) {
    return own(origin, count, type, rank, displacement, target_count, target_type, op, win);
  }
  const Update call{{const_cast<void*>(origin), count, type},
                    {},
                    false,
                    rank,
                    displacement,
                    target_count,
                    target_type,
                    op};
  return update(call, window, Completion::kLater, nullptr);
}

template <typename Own, typename Count>
int call_get_accumulate(const Own& own, const void* origin, Count count, MPI_Datatype type,
                        void* result, Count result_count, MPI_Datatype result_type, int rank,
                        MPI_Aint displacement, Count target_count, MPI_Datatype target_type,
                        MPI_Op op, MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) {
    return own(origin, count, type, result, result_count, result_type, rank, displacement,
               target_count, target_type, op, win);
  }
  const Update call{{const_cast<void*>(origin), count, type},
                    {result, result_count, result_type},
                    true,
                    rank,
                    displacement,
                    target_count,
                    target_type,
                    op};
  return update(call, window, Completion::kLater, nullptr);
}

template <typename Own, typename Count>
int call_raccumulate(const Own& own, const void* origin, Count count, MPI_Datatype type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Op op,
                     MPI_Win win, MPI_Request* request) {
  Window* window = find_window(win);
  if (window == nullptr) {
    return own(origin, count, type, rank, displacement, target_count, target_type, op, win,
               request);
  }
  const Update call{{const_cast<void*>(origin), count, type},
                    {},
                    false,
                    rank,
                    displacement,
                    target_count,
                    target_type,
                    op};
  return update_with_request(call, window, request);
}

template <typename Own, typename Count>
int call_rget_accumulate(const Own& own, const void* origin, Count count, MPI_Datatype type,
                         void* result, Count result_count, MPI_Datatype result_type, int rank,
                         MPI_Aint displacement, Count target_count, MPI_Datatype target_type,
                         MPI_Op op, MPI_Win win, MPI_Request* request) {
  Window* window = find_window(win);
  if (window == nullptr) {
    return own(origin, count, type, result, result_count, result_type, rank, displacement,
               target_count, target_type, op, win, request);
  }
  const Update call{{const_cast<void*>(origin), count, type},
                    {result, result_count, result_type},
                    true,
                    rank,
                    displacement,
                    target_count,
                    target_type,
                    op};
  return update_with_request(call, window, request);
}

}  // namespace
}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Accumulate)
(const void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
 int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return call_accumulate(real::Accumulate, origin, count, type, rank, displacement, target_count,
                         target_type, op, win);
}

MOBIUS_MPI_TWIN(Get_accumulate)
(const void* origin, int count, MPI_Datatype type, void* result, int result_count,
 MPI_Datatype result_type, int rank, MPI_Aint displacement, int target_count,
 MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return call_get_accumulate(real::Get_accumulate, origin, count, type, result, result_count,
                             result_type, rank, displacement, target_count, target_type, op, win);
}

MOBIUS_MPI_TWIN(Raccumulate)
(const void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
 int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return call_raccumulate(real::Raccumulate, origin, count, type, rank, displacement, target_count,
                          target_type, op, win, request);
}

MOBIUS_MPI_TWIN(Rget_accumulate)
(const void* origin, int count, MPI_Datatype type, void* result, int result_count,
 MPI_Datatype result_type, int rank, MPI_Aint displacement, int target_count,
 MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return call_rget_accumulate(real::Rget_accumulate, origin, count, type, result, result_count,
                              result_type, rank, displacement, target_count, target_type, op, win,
                              request);
}

MOBIUS_MPI_TWIN(Fetch_and_op)
(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
 MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) {
    return real::Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op,
                              win);
  }
  return fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, window);
}

MOBIUS_MPI_TWIN(Compare_and_swap)
(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
 int target_rank, MPI_Aint target_disp, MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) {
    return real::Compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank,
                                  target_disp, win);
  }
  return compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank,
                          target_disp, window);
}

#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
MOBIUS_MPI_TWIN(Accumulate_c)
(const void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint displacement,
 MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return call_accumulate(real::Accumulate_c, origin, count, type, rank, displacement, target_count,
                         target_type, op, win);
}

MOBIUS_MPI_TWIN(Get_accumulate_c)
(const void* origin, MPI_Count count, MPI_Datatype type, void* result, MPI_Count result_count,
 MPI_Datatype result_type, int rank, MPI_Aint displacement, MPI_Count target_count,
 MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return call_get_accumulate(real::Get_accumulate_c, origin, count, type, result, result_count,
                             result_type, rank, displacement, target_count, target_type, op, win);
}

MOBIUS_MPI_TWIN(Raccumulate_c)
(const void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint displacement,
 MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return call_raccumulate(real::Raccumulate_c, origin, count, type, rank, displacement,
                          target_count, target_type, op, win, request);
}

MOBIUS_MPI_TWIN(Rget_accumulate_c)
(const void* origin, MPI_Count count, MPI_Datatype type, void* result, MPI_Count result_count,
 MPI_Datatype result_type, int rank, MPI_Aint displacement, MPI_Count target_count,
 MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return call_rget_accumulate(real::Rget_accumulate_c, origin, count, type, result, result_count,
                              result_type, rank, displacement, target_count, target_type, op, win,
                              request);
}
#endif
