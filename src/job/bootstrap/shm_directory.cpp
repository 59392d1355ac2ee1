// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/shm_directory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "os/memory/memfd.h"

namespace mobius::job {

using base::fail;

// The entries of one rank, each with lengths, key and value. Written before a fence, or before a
// message to the reader.
struct ShmDirectory::Page {
  uint32_t used;
  unsigned char entries[4092];
};

namespace {

struct Entry {
  uint16_t key_bytes;
  uint16_t value_bytes;
};

}  // namespace

ShmDirectory::Page& ShmDirectory::page(mob_rank_t rank) const {
  return reinterpret_cast<Page*>(pages_)[static_cast<size_t>(rank) + 1];
}

mob_status_t ShmDirectory::create(mob_rank_t size, int* descriptor) {
  if (const mob_status_t status = control_create(size, descriptor)) return status;
  mob_status_t status =
      os::memfd_reserve(*descriptor, kEngineOffset, (static_cast<size_t>(size) + 1) * sizeof(Page));
  Secret secret;
  if (status == MOB_OK) status = make_secret(&secret);
  if (status == MOB_OK &&
      pwrite(*descriptor, secret.data(), secret.size(), static_cast<off_t>(kEngineOffset)) !=
          static_cast<ssize_t>(secret.size())) {
    status = base::fail_errno(MOB_ERR_SYSTEM, errno, "writing the job's secret failed");
  }
  if (status != MOB_OK) ::close(*descriptor);
  return status;
}

Secret ShmDirectory::secret() const {
  Secret secret;
  std::memcpy(secret.data(), pages_, secret.size());
  return secret;
}

mob_status_t ShmDirectory::open(int segment, mob_rank_t rank, const os::WaitPolicy& policy,
                                bool pid_is_shared) {
  if (const mob_status_t status = group_.open(segment, rank, pid_is_shared)) return status;
  group_.set_policy(policy);
  bytes_ = (size_t{kMostLocalPeers} + 1) * sizeof(Page);
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, segment,
                      static_cast<off_t>(kEngineOffset));
  if (memory == MAP_FAILED) {
    return base::fail_errno(MOB_ERR_MEMORY, errno, "mapping the job's directory failed");
  }
  pages_ = static_cast<unsigned char*>(memory);
  return MOB_OK;
}

void ShmDirectory::close() {
  if (pages_ != nullptr) munmap(pages_, bytes_);
  pages_ = nullptr;
  group_.close();
}

mob_status_t ShmDirectory::publish(std::string_view key, std::span<const unsigned char> value) {
  Page& own = page(group_.index());
  const size_t bytes = sizeof(Entry) + key.size() + value.size();
  if (value.size() > kDirectoryValueBytes || own.used + bytes > kDirectoryBytes) {
    return fail(MOB_ERR_RANGE, "%zu bytes are too many for the job's directory", value.size());
  }
  const Entry entry{static_cast<uint16_t>(key.size()), static_cast<uint16_t>(value.size())};
  unsigned char* to = own.entries + own.used;
  std::memcpy(to, &entry, sizeof entry);
  std::memcpy(to + sizeof entry, key.data(), key.size());
  if (!value.empty()) std::memcpy(to + sizeof entry + key.size(), value.data(), value.size());
  own.used += static_cast<uint32_t>(bytes);
  return MOB_OK;
}

mob_status_t ShmDirectory::fetch(mob_rank_t rank, std::string_view key,
                                 std::vector<unsigned char>* value) {
  const Page& theirs = page(rank);
  for (size_t offset = 0; offset < theirs.used;) {
    Entry entry;
    std::memcpy(&entry, theirs.entries + offset, sizeof entry);
    const unsigned char* found = theirs.entries + offset + sizeof entry;
    if (std::string_view(reinterpret_cast<const char*>(found), entry.key_bytes) == key) {
      value->assign(found + entry.key_bytes, found + entry.key_bytes + entry.value_bytes);
      return MOB_OK;
    }
    offset += sizeof entry + entry.key_bytes + entry.value_bytes;
  }
  return fail(MOB_ERR_PEER, "rank %d has not published its %.*s", rank,
              static_cast<int>(key.size()), key.data());
}

mob_status_t ShmDirectory::make_room(mob_rank_t first, mob_rank_t count) {
  const int segment = group_.segment();
  const mob_status_t status = control_reserve(segment, first, count);
  if (status != MOB_OK) return status;
  return os::memfd_reserve(segment, kEngineOffset + (static_cast<size_t>(first) + 1) * sizeof(Page),
                           static_cast<size_t>(count) * sizeof(Page));
}

void ShmDirectory::start_leaving() {
  // Release pairs with the acquire in Liveness.
  group_.slot(group_.index()).state.store(ProcessState::kLeaving, std::memory_order_release);
}

bool ShmDirectory::have_connected_come() {
  for (mob_rank_t rank = 0; rank < group_.bound(); ++rank) {
    if (group_.is_own(rank) || !group_.is_connected(rank)) continue;
    if (!group_.liveness().is_leaving(rank) && !group_.liveness().is_dead(rank)) return false;
  }
  return true;
}

void ShmDirectory::leave() {
  group_.slot(group_.index()).state.store(ProcessState::kLeft, std::memory_order_release);
}

}  // namespace mobius::job
