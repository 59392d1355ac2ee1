// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team_area.h"

#include <vector>

#include "engine/engine.h"

namespace mobius::engine {

mob_status_t TeamArea::claim(uint64_t* offset) {
  Engine& engine = team_->engine();
  uint64_t first = 0;
  if (const mob_status_t status = engine.chunks().claim(chunks_of(bytes_), &first)) return status;
  *offset = first << kChunkShift;
  const mob_status_t status = engine.reserve_memory(*offset, bytes_);
  if (status != MOB_OK) engine.chunks().release(first, chunks_of(bytes_));
  return status;
}

void TeamArea::give_back() {
  Engine& engine = team_->engine();
  engine.release_memory(offset_, chunks_of(bytes_) << kChunkShift);
  engine.chunks().release(offset_ >> kChunkShift, chunks_of(bytes_));
}

mob_status_t TeamArea::make(Team& team, size_t bytes, mob_status_t mine, const char* call) {
  struct Place {
    mob_status_t status;
    uint64_t offset;
  };
  team_ = &team;
  bytes_ = sizeof(Header) + bytes;
  const bool leader = team.rank() == 0;
  Place place{mine, 0};
  if (leader && mine == MOB_OK) place.status = claim(&place.offset);
  std::vector<Place> places;
  mob_status_t status = team.exchange(place, &places);
  if (status != MOB_OK) return status;
  const bool claimed = places[0].status == MOB_OK;
  offset_ = places[0].offset;
  status = place.status;
  if (status == MOB_OK && claimed) {
    status = team.engine().window().allow(offset_, chunks_of(bytes_));
  }
  if ((status = team.agree(status, call))) {
    if (leader && claimed) give_back();
    return status;
  }
  header_ = static_cast<Header*>(team.engine().local_address(offset_));
  return MOB_OK;
}

mob_status_t TeamArea::release() {
  const mob_status_t status = team_->barrier();
  // Both: who is last has seen the others' last use of the area.
  const uint32_t before = header_->departed.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == static_cast<uint32_t>(team_->size())) give_back();
  return status;
}

}  // namespace mobius::engine
