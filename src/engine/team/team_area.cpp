// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team_area.h"

#include <vector>

#include "engine/remote/remote_objects.h"
#include "engine/segment/segment.h"

namespace mobius::engine {

mob_status_t TeamArea::claim(uint64_t* offset) {
  const TeamServices& services = team_->services();
  uint64_t first = 0;
  if (const mob_status_t status = services.segment.chunks().claim(chunks_of(bytes_), &first))
    return status;
  *offset = first << kChunkShift;
  const mob_status_t status = services.segment.reserve_memory(*offset, bytes_);
  if (status != MOB_OK) services.segment.chunks().release(first, chunks_of(bytes_));
  return status;
}

void TeamArea::give_back() {
  const TeamServices& services = team_->services();
  services.segment.release_memory(offset_, chunks_of(bytes_) << kChunkShift);
  services.segment.chunks().release(offset_ >> kChunkShift, chunks_of(bytes_));
}

mob_status_t TeamArea::make(Team& team, size_t bytes, mob_status_t mine, const char* call,
                            RemoteObject& object) {
  struct Place {
    mob_status_t status;
    uint64_t offset;
    uint64_t name;
  };
  team_ = &team;
  bytes_ = sizeof(Header) + bytes;
  // The first member of each host makes the memory.
  const Team& local_team = team.local_team();
  const mob_rank_t first = local_team.map().world_rank(0);
  const bool leader = local_team.rank() == 0;
  RemoteObjects& remote = team.services().remote_objects;
  Place place{mine, 0, 0};
  if (leader && mine == MOB_OK) place.status = claim(&place.offset);
  if (team.rank() == 0) place.name = remote.new_name();
  std::vector<Place> places;
  mob_status_t status = team.exchange(place, &places);
  if (status != MOB_OK) return status;
  const Place& made = places[static_cast<size_t>(team.map().rank_of(first))];
  const bool claimed = made.status == MOB_OK;
  offset_ = made.offset;
  status = place.status;
  if (status == MOB_OK && claimed) {
    status = team.services().segment.window().allow(offset_, chunks_of(bytes_));
  }
  header_ = static_cast<Header*>(team.services().segment.local_address(offset_));
  if (status == MOB_OK && claimed && team.spans_hosts()) {
    name_ = places[0].name;
    remote.add(name_, object);
  }
  if ((status = team.agree(status, call))) {
    if (name_ != 0) remote.remove(name_);
    // With a dead member, the call may have succeeded for others, which use the memory.
    if (leader && claimed && !team.is_broken()) give_back();
    return status;
  }
  team.add_user();
  return MOB_OK;
}

mob_status_t TeamArea::release() {
  const mob_status_t status = team_->barrier();
  if (name_ != 0) team_->services().remote_objects.remove(name_);
  // Both: the last member has seen the others' last use of the area.
  const uint32_t before = header_->departed.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == static_cast<uint32_t>(team_->local_team().size())) give_back();
  // After an error the object stays, and its team with it.
  if (status == MOB_OK) team_->remove_user();
  return status;
}

}  // namespace mobius::engine
