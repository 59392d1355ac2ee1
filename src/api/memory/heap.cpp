// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/heap.h>

#include <memory>
#include <utility>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using base::fail;
using engine::Engine;
using engine::SymmetricHeap;
using Fault = engine::Allocations::Fault;

namespace {

mob_status_t check_heap(const char* call, mob_heap_t heap, SymmetricHeap** result) {
  if (const mob_status_t status = check_live(call)) return status;
  *result = engine::engine_of_object(heap).heaps().find(reinterpret_cast<uintptr_t>(heap));
  if (*result != nullptr) return MOB_OK;
  return fail(MOB_ERR_HANDLE, "%s: %p is not a live heap (destroyed before, or never made)", call,
              static_cast<void*>(heap));
}

// As check_heap(), for collective calls.
mob_status_t check_meeting(const char* call, mob_heap_t heap, SymmetricHeap** result) {
  if (const mob_status_t status = check_heap(call, heap, result)) return status;
  return api::check_may_wait(call);
}

// A wrong call takes part too, because the other members wait for it.
mob_status_t allocate(const char* call, mob_heap_t heap, size_t alignment, size_t bytes,
                      void** pointer) {
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_meeting(call, heap, &found)) return status;
  mob_status_t argument = check_not_null(call, pointer, "the result");
  if (argument == MOB_OK) argument = api::check_alignment(call, alignment);
  return api::together(call, found->team(),
                       [&] { return found->allocate(call, argument, bytes, alignment, pointer); });
}

}  // namespace

mob_status_t mob_heap_create(mob_team_t team, size_t initial_bytes, size_t maximum_bytes,
                             mob_heap_t* heap) {
  constexpr const char* kCall = "mob_heap_create";
  engine::Team* found = nullptr;
  if (const mob_status_t status = api::check_team(kCall, team, &found)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  Engine& engine = engine::engine_of_object(team);
  // A wrong call takes part too, because the other members wait for it.
  Fault fault = heap != nullptr ? Fault::kNone : Fault::kNullResult;
  engine::Registry<SymmetricHeap>::Place place(engine.heaps());
  if (fault == Fault::kNone && !place) fault = Fault::kNoPlace;
  return api::together(kCall, *found, [&] {
    std::unique_ptr<SymmetricHeap> made;
    const mob_status_t status = SymmetricHeap::make(engine.allocations(), kCall, *found,
                                                    initial_bytes, maximum_bytes, fault, &made);
    if (status != MOB_OK) return status;
    *heap = reinterpret_cast<mob_heap_t>(place.fill(std::move(made)));
    return MOB_OK;
  });
}

mob_status_t mob_heap_destroy(mob_heap_t heap) {
  constexpr const char* kCall = "mob_heap_destroy";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (heap == nullptr) return MOB_OK;
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_meeting(kCall, heap, &found)) return status;
  return api::together(kCall, found->team(), [&] {
    const mob_status_t status = found->destroy(kCall);
    if (!found->is_alive())
      engine::engine_of_object(heap).heaps().remove(reinterpret_cast<uintptr_t>(heap));
    return status;
  });
}

mob_status_t mob_heap_malloc(mob_heap_t heap, size_t bytes, void** pointer) {
  return allocate("mob_heap_malloc", heap, 0, bytes, pointer);
}

mob_status_t mob_heap_align(mob_heap_t heap, size_t alignment, size_t bytes, void** pointer) {
  return allocate("mob_heap_align", heap, alignment, bytes, pointer);
}

mob_status_t mob_heap_calloc(mob_heap_t heap, size_t count, size_t bytes, void** pointer) {
  constexpr const char* kCall = "mob_heap_calloc";
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_meeting(kCall, heap, &found)) return status;
  const mob_status_t argument = check_not_null(kCall, pointer, "the result");
  size_t total = 0;
  // Larger than any heap, so it fails like any such request.
  if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
  return api::together(kCall, found->team(),
                       [&] { return found->allocate_zeros(kCall, argument, total, pointer); });
}

mob_status_t mob_heap_realloc(mob_heap_t heap, void* pointer, size_t bytes, void** result) {
  constexpr const char* kCall = "mob_heap_realloc";
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_meeting(kCall, heap, &found)) return status;
  const mob_status_t argument = check_not_null(kCall, result, "the result");
  return api::together(kCall, found->team(),
                       [&] { return found->resize(kCall, argument, pointer, bytes, result); });
}

mob_status_t mob_heap_free(mob_heap_t heap, void* pointer) {
  constexpr const char* kCall = "mob_heap_free";
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_meeting(kCall, heap, &found)) return status;
  return api::together(kCall, found->team(), [&] { return found->release(kCall, pointer); });
}

mob_status_t mob_heap_address(mob_heap_t heap, mob_rank_t rank, const void* pointer,
                              void** remote) {
  constexpr const char* kCall = "mob_heap_address";
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_heap(kCall, heap, &found)) return status;
  if (const mob_status_t status = check_not_null(kCall, remote, "the result")) return status;
  const mob_rank_t member = api::member_of(found->team(), rank);
  if (member < 0) {
    return fail(MOB_ERR_RANK, "%s: rank %d is not in the team of this heap", kCall, rank);
  }
  Engine& engine = engine::engine_of_object(heap);
  const uint64_t within =
      pointer != nullptr ? engine.segment().offset_of(pointer) - found->own_offset() : 0;
  if (within >= found->maximum()) {
    return fail(MOB_ERR_RANGE, "%s: %p is not in the caller's part of this heap", kCall, pointer);
  }
  *remote = reinterpret_cast<void*>(found->address_in(member) + within);
  return MOB_OK;
}

mob_status_t mob_heap_stride(mob_heap_t heap, size_t* stride_bytes) {
  constexpr const char* kCall = "mob_heap_stride";
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_heap(kCall, heap, &found)) return status;
  if (const mob_status_t status = check_not_null(kCall, stride_bytes, "the result")) return status;
  const bool equal =
      engine::engine_of_object(heap).segment().window().same_address() && found->has_stride();
  *stride_bytes = equal ? found->stride() : 0;
  return MOB_OK;
}

mob_status_t mob_heap_bytes(mob_heap_t heap, size_t* bytes, size_t* used) {
  SymmetricHeap* found = nullptr;
  if (const mob_status_t status = check_heap("mob_heap_bytes", heap, &found)) return status;
  if (bytes != nullptr) *bytes = found->bytes();
  if (used != nullptr) *used = found->used();
  return MOB_OK;
}
