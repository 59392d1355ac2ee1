// SPDX-License-Identifier: BSD-3-Clause
#include "job/worlds.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "job/bootstrap/shm_directory.h"
#include "os/memory/memfd.h"

namespace mobius::job {
namespace {

using base::fail;

bool read_at(int segment, uint64_t offset, void* to, size_t bytes) {
  return pread(segment, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// The lists behind the text of a request: the number of parents, their numbers, the hosts.
std::string members_of(const WorldRequest& wanted) {
  std::string text;
  const auto add = [&text](int32_t word) {
    text.append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  add(static_cast<int32_t>(wanted.parents.size()));
  for (const mob_rank_t parent : wanted.parents) add(parent);
  for (const int32_t host : wanted.hosts) add(host);
  return text;
}

}  // namespace

mob_status_t take_numbers(const char* call, std::atomic<int32_t>& numbers, mob_rank_t count,
                          mob_rank_t most,
                          const std::function<mob_status_t(mob_rank_t first)>& reserve,
                          mob_rank_t* first) {
  most = std::min(most, kMostLocalPeers);
  mob_rank_t begin = numbers.load(std::memory_order_relaxed);
  do {
    if (count > most - begin) {
      return fail(
          MOB_ERR_RANGE,
          "%s: %d more processes are asked for, but this job has had %d and can have %d in its "
          "life (MOBIUS_MAX_PROCESSES): no number is given out twice, so keep processes and give "
          "them the next work",
          call, count, begin, most);
    }
    if (const mob_status_t status = reserve(begin)) return status;
  } while (!numbers.compare_exchange_weak(begin, begin + count, std::memory_order_acq_rel));
  *first = begin;
  return MOB_OK;
}

mob_status_t write_request(const char* call, Directory& directory, const WorldRequest& wanted,
                           mob_rank_t most, mob_rank_t* first) {
  ControlBlock& block = *directory.worlds();
  const auto count = static_cast<mob_rank_t>(wanted.hosts.size());
  const std::string request = wanted.request.encoded();
  const std::string members = members_of(wanted);
  if (sizeof(SpawnMemory) + request.size() + members.size() > kWorldMemoryBytes) {
    return fail(MOB_ERR_RANGE, "%s: the arguments and the environment have %zu bytes, too many",
                call, request.size());
  }
  const mob_status_t status = take_numbers(
      call, block.header.numbers, count, most,
      [&](mob_rank_t begin) { return directory.make_room(begin, count); }, first);
  if (status != MOB_OK) return status;
  for (mob_rank_t i = *first; i < *first + count; ++i) block.slot(i).world = *first;
  World& world = block.world(*first);
  world.size = count;
  world.least = wanted.least;
  world.spawner = wanted.spawner;
  world.parent = wanted.parent;
  world.memory = world_memory(*first);
  world.bridge = world.memory + sizeof(SpawnMemory) + request.size();
  world.is_connected.store(1, std::memory_order_relaxed);
  SpawnMemory head{};
  head.request_bytes = request.size();
  const std::string text =
      std::string(reinterpret_cast<const char*>(&head), sizeof head) + request + members;
  if (pwrite(directory.worlds_segment(), text.data(), text.size(),
             static_cast<off_t>(world.memory)) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    world.state.store(WorldState::kEnded, std::memory_order_release);
    return base::fail_errno(MOB_ERR_MEMORY, error, "%s: the request cannot be written", call);
  }
  // Release: who sees the state sees the fields above.
  world.state.store(WorldState::kAsked, std::memory_order_release);
  return MOB_OK;
}

bool read_members(int segment, const World& world, std::vector<mob_rank_t>* parents,
                  std::vector<int32_t>* hosts) {
  int32_t count = 0;
  if (!read_at(segment, world.bridge, &count, sizeof count) || count < 1 || count > kMostRanks ||
      world.size < 0 || world.size > kMostLocalPeers) {
    return false;
  }
  parents->resize(static_cast<size_t>(count));
  hosts->resize(static_cast<size_t>(world.size));
  const uint64_t start = world.bridge + sizeof count;
  const size_t bytes = parents->size() * sizeof(mob_rank_t);
  return read_at(segment, start, parents->data(), bytes) &&
         read_at(segment, start + bytes, hosts->data(), hosts->size() * sizeof(int32_t));
}

std::string read_reason(int segment, const World& world) {
  char text[sizeof SpawnMemory::reason];
  if (!read_at(segment, world.memory + offsetof(SpawnMemory, reason), text, sizeof text)) return {};
  return {text, strnlen(text, sizeof text)};
}

void free_request(int segment, const World& world) {
  os::memfd_release(segment, world.memory, kWorldMemoryBytes);
}

}  // namespace mobius::job
