// SPDX-License-Identifier: BSD-3-Clause
#include "collective_checks.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "front.h"

namespace mobius::shmem {
namespace {

// FNV-1a. A program does not choose names so that they collide.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 14695981039346656037u;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  }
  return hash;
}

// All members come here if their functions differ.
[[noreturn]] void name_other_function(mob_team_t team, const char* name) {
  constexpr size_t kBytes = 64;
  char mine[kBytes] = {};
  std::strncpy(mine, name, kBytes - 1);
  const auto size = static_cast<size_t>(mob_team_size(team));
  std::vector<char> all(size * kBytes);
  check(mob_allgather(team, mine, all.data(), kBytes), name);
  for (size_t member = 0; member < size; ++member) {
    const char* const theirs = &all[member * kBytes];
    if (std::strcmp(theirs, mine) != 0) {
      die(name, "the PEs of the team call different functions: PE %zu of it calls %s", member,
          theirs);
    }
  }
  die(name, "the PEs of the team call different functions");
}

void compare(mob_team_t team, const CollectiveCall& call) {
  const uint64_t hash = hash_of(call.name);
  const auto root = static_cast<uint64_t>(call.root);
  // The greatest complement is that of the least number.
  const uint64_t mine[] = {hash, ~hash, call.bytes, ~call.bytes, root, ~root};
  uint64_t most[6];
  check(mob_allreduce(team, MOB_MAX, MOB_UINT64, mine, most, 6), call.name);
  if (most[0] != ~most[1]) name_other_function(team, call.name);
  const auto compare_one = [&](const char* what, uint64_t here, uint64_t greatest, uint64_t least) {
    if (greatest == least) return;
    die(call.name,
        "the PEs of the team pass different arguments: %s is %llu here; the least is %llu, the "
        "greatest %llu",
        what, static_cast<unsigned long long>(here), static_cast<unsigned long long>(least),
        static_cast<unsigned long long>(greatest));
  };
  compare_one("the number of bytes", call.bytes, most[2], ~most[3]);
  compare_one("PE_root", root, most[4], ~most[5]);
}

// One buffer for both is allowed.
void check_overlap(const CollectiveCall& call) {
  const auto dest = reinterpret_cast<uintptr_t>(call.dest);
  const auto source = reinterpret_cast<uintptr_t>(call.source);
  const bool overlap = dest - source < call.source_bytes || source - dest < call.dest_bytes;
  if (dest == source || !overlap) return;
  die(call.name, "dest %p (%zu bytes) and source %p (%zu bytes) overlap", call.dest,
      call.dest_bytes, call.source, call.source_bytes);
}

}  // namespace

void check_collective(mob_team_t team, const CollectiveCall& call) {
  if (!debugs()) return;
  if (call.dest_bytes != 0 && call.source_bytes != 0) {
    offset_of(call.dest, call.name, "dest");
    offset_of(call.source, call.name, "source");
    check_overlap(call);
  }
  compare(team, call);
}

void check_of_active_set(mob_team_t team, const long* p_sync, const CollectiveCall& call) {
  if (!debugs()) return;
  offset_of(p_sync, call.name, "pSync");
  check_collective(team, call);
}

}  // namespace mobius::shmem
