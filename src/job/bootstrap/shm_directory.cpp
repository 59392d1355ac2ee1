// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/shm_directory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "os/memory/memfd.h"

namespace mobius::job {

using base::fail;

// The entries of one rank, each with lengths, key and value. Written before a fence, read after it.
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
  return reinterpret_cast<Page*>(pages_)[static_cast<size_t>(rank)];
}

mob_status_t ShmDirectory::create(mob_rank_t size, int* descriptor) {
  if (const mob_status_t status = control_create(size, descriptor)) return status;
  const size_t pages_bytes = static_cast<size_t>(size) * sizeof(Page);
  mob_status_t status = os::memfd_reserve(*descriptor, kEngineOffset, pages_bytes + sizeof(Page));
  Secret secret;
  if (status == MOB_OK) status = make_secret(&secret);
  const auto place = static_cast<off_t>(kEngineOffset + pages_bytes);
  if (status == MOB_OK && pwrite(*descriptor, secret.data(), secret.size(), place) !=
                              static_cast<ssize_t>(secret.size())) {
    status = base::fail_errno(MOB_ERR_SYSTEM, errno, "writing the job's secret failed");
  }
  if (status != MOB_OK) ::close(*descriptor);
  return status;
}

Secret ShmDirectory::secret() const {
  Secret secret;
  std::memcpy(secret.data(), &page(group_.size()), secret.size());
  return secret;
}

mob_status_t ShmDirectory::open(int segment, mob_rank_t rank, const os::WaitPolicy& policy,
                                bool pid_is_shared) {
  if (const mob_status_t status = group_.open(segment, rank, pid_is_shared)) return status;
  group_.set_policy(policy);
  bytes_ = (static_cast<size_t>(group_.size()) + 1) * sizeof(Page);
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

void ShmDirectory::leave() {
  group_.slot(group_.index()).state.store(ProcessState::kLeft, std::memory_order_release);
}

}  // namespace mobius::job
