// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective/peer_buffers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/peer_memory.h"
#include "engine/segment/segment.h"

namespace mobius::engine {

PeerBuffer PeerBuffers::lend(const void* memory, size_t bytes) const {
  const TeamServices& services = team_.services();
  const uint64_t offset = reinterpret_cast<uintptr_t>(memory) - services.segment.window().base();
  if (bytes == 0) return {PeerBuffer::Kind::kWindow, 0};
  if (offset < services.segment.window().bytes() &&
      services.segment.reach(services.peers.rank(), memory, bytes) != nullptr) {
    return {PeerBuffer::Kind::kWindow, offset};
  }
  if (!attaches_) return {};
  return {PeerBuffer::Kind::kPrivate, reinterpret_cast<uintptr_t>(memory)};
}

uintptr_t PeerBuffers::address(mob_rank_t member, const PeerBuffer& buffer, size_t offset) const {
  const TeamServices& services = team_.services();
  const uintptr_t start =
      buffer.kind == PeerBuffer::Kind::kPrivate
          ? buffer.at
          : services.segment.address_in(services.peers.host_index(team_.map().world_rank(member)),
                                        buffer.at);
  return start + offset;
}

const unsigned char* PeerBuffers::look(mob_rank_t member, const PeerBuffer& buffer, size_t offset,
                                       size_t bytes) const {
  return static_cast<const unsigned char*>(mapped(team_.services().segment,
                                                  team_.map().world_rank(member),
                                                  address(member, buffer, offset), bytes));
}

void PeerBuffers::copy(mob_rank_t member, const PeerBuffer& buffer, size_t offset, void* local,
                       size_t bytes, bool put) {
  if (bytes == 0) return;
  const mob_rank_t rank = team_.map().world_rank(member);
  if (const int error =
          copy_with_peer(team_.services().segment, team_.services().kernel_copy.allowed(rank), rank,
                         address(member, buffer, offset), local, bytes, put)) {
    unreached_ = member;
    is_gone_ = is_gone_ || error == ESRCH;
  }
}

mob_status_t PeerBuffers::exchange(PeerBufferList mine) {
  mine.may_attach = attaches_ && team_.services().kernel_copy.is_still_allowed() ? 1 : 0;
  const mob_status_t status = team_.exchange(mine, &all_);
  if (status == MOB_OK && attaches_ && !std::ranges::all_of(all_, &PeerBufferList::may_attach)) {
    for (PeerBufferList& offered : all_) {
      for (PeerBuffer* buffer : {&offered.in, &offered.out, &offered.list}) {
        if (buffer->kind == PeerBuffer::Kind::kPrivate) *buffer = {};
      }
    }
  }
  began_ns_ = os::now_ns();
  return status;
}

bool PeerBuffers::has_private() const {
  return std::ranges::any_of(all_, [](const PeerBufferList& offered) {
    return offered.in.kind == PeerBuffer::Kind::kPrivate ||
           offered.out.kind == PeerBuffer::Kind::kPrivate;
  });
}

// The kernel removes a process's memory shortly before the process itself is dead. Waits for that,
// so that no error blames the member that could not reach the other.
void PeerBuffers::await_death(mob_rank_t rank) {
  constexpr auto kAtMost = std::chrono::seconds(1);
  const auto end = std::chrono::steady_clock::now() + kAtMost;
  while (!team_.services().peers.is_dead(rank) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

mob_status_t PeerBuffers::settle() {
  constexpr const char* kWhat = "a collective call";
  if (is_gone_) {
    const mob_rank_t rank = team_.map().world_rank(unreached_);
    await_death(rank);
    // The dead member may have finished its part of the meeting, and then the others would not
    // notice.
    const TeamFailure loss{TeamFailure::Kind::kDead, rank};
    team_.rounds().give_up(loss);
    return fail_for(team_.services(), loss);
  }
  // Expects the others after as long as this member took: they have about as much to copy.
  const mob_status_t status =
      team_.agree(unreached_ < 0 ? MOB_OK : MOB_ERR_RANGE, kWhat, os::now_ns() - began_ns_);
  if (team_.is_broken()) return MOB_ERR_PEER;  // the loss explains the failure
  if (unreached_ < 0) return status;
  return base::fail(MOB_ERR_RANGE,
                    "%s cannot reach all of the memory that rank %d or this one passed to it; pass "
                    "mapped memory, writable for results",
                    kWhat, team_.map().world_rank(unreached_));
}

}  // namespace mobius::engine
