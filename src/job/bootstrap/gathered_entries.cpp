// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/gathered_entries.h"

#include <cstring>

#include "base/status.h"
#include "job/bootstrap/directory.h"

namespace mobius::job {
namespace {

using base::fail;

// Before each entry, with its key and its value behind it.
struct EntryHead {
  uint32_t key_bytes;
  uint32_t value_bytes;
};

}  // namespace

mob_status_t GatheredEntries::publish(std::string_view key, std::span<const unsigned char> value) {
  if (value.size() > kDirectoryValueBytes) {
    return fail(MOB_ERR_RANGE, "%zu bytes are too many for the job's directory", value.size());
  }
  const EntryHead entry{static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())};
  const auto* bytes = reinterpret_cast<const unsigned char*>(&entry);
  unsent_.insert(unsent_.end(), bytes, bytes + sizeof entry);
  unsent_.insert(unsent_.end(), key.begin(), key.end());
  unsent_.insert(unsent_.end(), value.begin(), value.end());
  return MOB_OK;
}

bool GatheredEntries::take(mob_rank_t rank, std::span<const unsigned char> entries) {
  const std::lock_guard lock(mutex_);
  while (!entries.empty()) {
    EntryHead entry{};
    if (entries.size() >= sizeof entry) std::memcpy(&entry, entries.data(), sizeof entry);
    const size_t bytes = sizeof entry + size_t{entry.key_bytes} + entry.value_bytes;
    if (entry.key_bytes == 0 || bytes > entries.size()) return false;
    const auto* key = reinterpret_cast<const char*>(entries.data() + sizeof entry);
    const auto value = entries.subspan(sizeof entry + entry.key_bytes, entry.value_bytes);
    known_[{rank, std::string(key, entry.key_bytes)}].assign(value.begin(), value.end());
    entries = entries.subspan(bytes);
  }
  return true;
}

mob_status_t GatheredEntries::fetch(mob_rank_t rank, std::string_view key,
                                    std::vector<unsigned char>* value) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find({rank, std::string(key)});
  if (found == known_.end()) {
    return fail(MOB_ERR_PEER, "rank %d has not published its %.*s", rank,
                static_cast<int>(key.size()), key.data());
  }
  *value = found->second;
  return MOB_OK;
}

}  // namespace mobius::job
