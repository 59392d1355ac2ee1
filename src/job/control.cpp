// SPDX-License-Identifier: BSD-3-Clause
#include "job/control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"
#include "os/memfd.h"

namespace mobius::job {

using base::fail;
using base::fail_errno;

mob_status_t control_create(mob_rank_t size, int* descriptor) {
  const size_t bytes = control_bytes(size);
  int fd = -1;
  if (const mob_status_t status = os::memfd_create_sized("mobius-control", bytes, &fd))
    return status;
  mob_status_t status = os::memfd_reserve(fd, 0, bytes);
  if (status == MOB_OK) {
    const ControlHeader header{kControlMagic, kControlVersion, size};
    if (pwrite(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
      status = fail_errno(MOB_ERR_SYSTEM, errno, "writing the job's control block failed");
    }
  }
  if (status != MOB_OK) {
    close(fd);
    return status;
  }
  *descriptor = fd;
  return MOB_OK;
}

mob_status_t control_map(int descriptor, ControlBlock** block) {
  struct stat information{};
  if (fstat(descriptor, &information) != 0) {
    return fail_errno(MOB_ERR_SYSTEM, errno, "looking at the job's control block failed");
  }
  const size_t bytes = static_cast<size_t>(information.st_size);
  if (bytes < sizeof(ControlBlock)) {
    return fail(MOB_ERR_SYSTEM, "the job's control block has only %zu bytes", bytes);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    return fail_errno(MOB_ERR_MEMORY, errno, "mapping the job's control block failed");
  }
  auto* mapped = static_cast<ControlBlock*>(memory);
  const ControlHeader& header = mapped->header;
  if (header.magic != kControlMagic || header.version != kControlVersion || header.size < 1 ||
      control_bytes(header.size) > bytes) {
    munmap(memory, bytes);
    return fail(MOB_ERR_SYSTEM,
                "the launcher's control block is of another version; use the `mobius` command that "
                "came with this library");
  }
  *block = mapped;
  return MOB_OK;
}

void control_unmap(ControlBlock* block) { munmap(block, control_bytes(block->header.size)); }

}  // namespace mobius::job
