// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/memory.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_handle;
using api::check_live;
using api::check_not_null;
using api::check_rank;
using base::fail;
using engine::Slab;

namespace {

const engine::Part& part_of(const Slab& slab, mob_rank_t rank) {
  return slab.parts[static_cast<size_t>(engine::engine().host_index(rank))];
}

}  // namespace

mob_status_t mob_mem_alloc(size_t bytes, mob_mem_t* mem) {
  if (const mob_status_t status = check_live("mob_mem_alloc")) return status;
  // Even a wrong call takes part: the others are waiting for it.
  Slab* slab = nullptr;
  const mob_status_t status = api::without_exceptions(
      "mob_mem_alloc", [&] { return engine::engine().allocate(bytes, mem != nullptr, &slab); });
  if (status != MOB_OK) return status;
  *mem = reinterpret_cast<mob_mem_t>(slab);
  return MOB_OK;
}

mob_status_t mob_mem_free(mob_mem_t mem) {
  if (const mob_status_t status = check_live("mob_mem_free")) return status;
  if (mem == nullptr) {
    engine::engine().host().barrier();
    return MOB_OK;
  }
  Slab* slab = nullptr;
  if (const mob_status_t status = check_handle("mob_mem_free", mem, &slab)) return status;
  return api::without_exceptions("mob_mem_free", [&] { return engine::engine().release(slab); });
}

mob_status_t mob_mem_address(mob_mem_t mem, mob_rank_t rank, size_t offset, void** address) {
  if (const mob_status_t status = check_rank("mob_mem_address", rank)) return status;
  if (const mob_status_t status = check_not_null("mob_mem_address", address, "the result")) {
    return status;
  }
  Slab* slab = nullptr;
  if (const mob_status_t status = check_handle("mob_mem_address", mem, &slab)) return status;
  const engine::Part& part = part_of(*slab, rank);
  if (offset > part.bytes) {
    return fail(MOB_ERR_RANGE, "mob_mem_address: offset %zu is beyond the %zu bytes of rank %d",
                offset, static_cast<size_t>(part.bytes), rank);
  }
  *address = reinterpret_cast<void*>(engine::engine().owner_address(part) + offset);
  return MOB_OK;
}

mob_status_t mob_mem_bytes(mob_mem_t mem, mob_rank_t rank, size_t* bytes) {
  if (const mob_status_t status = check_rank("mob_mem_bytes", rank)) return status;
  if (const mob_status_t status = check_not_null("mob_mem_bytes", bytes, "the result")) {
    return status;
  }
  Slab* slab = nullptr;
  if (const mob_status_t status = check_handle("mob_mem_bytes", mem, &slab)) return status;
  *bytes = part_of(*slab, rank).bytes;
  return MOB_OK;
}

void* mob_mem_local(mob_mem_t mem) {
  Slab* slab = nullptr;
  if (check_live("mob_mem_local") != MOB_OK ||
      check_handle("mob_mem_local", mem, &slab) != MOB_OK) {
    return nullptr;
  }
  const engine::Part& part = part_of(*slab, engine::engine().rank());
  if (part.bytes == 0) {
    fail(MOB_ERR_RANGE, "mob_mem_local: the own part of this allocation is empty");
    return nullptr;
  }
  return reinterpret_cast<void*>(engine::engine().owner_address(part));
}

mob_status_t mob_ptr(mob_rank_t rank, const void* address, void** pointer) {
  if (const mob_status_t status = check_rank("mob_ptr", rank)) return status;
  if (const mob_status_t status = check_not_null("mob_ptr", pointer, "the result")) return status;
  void* reached = engine::engine().reach(rank, address, 0);
  if (reached == nullptr) return engine::engine().explain_unreachable("mob_ptr", rank, address, 0);
  *pointer = reached;
  return MOB_OK;
}
