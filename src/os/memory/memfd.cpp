// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/status.h"
#include "os/file/held_descriptor.h"
#include "os/file/small_file.h"

namespace mobius::os {
namespace {

using base::fail_errno;

}  // namespace

mob_status_t memfd_create_sized(const char* name, size_t bytes, int* descriptor) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return fail_errno(MOB_ERR_SYSTEM, errno, "memfd_create failed; shared memory is not available");
  }
  mob_status_t status = MOB_OK;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    status = fail_errno(MOB_ERR_MEMORY, errno, "cannot make shared memory of %zu bytes", bytes);
  } else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    status = fail_errno(MOB_ERR_SYSTEM, errno, "sealing shared memory failed");
  }
  if (status != MOB_OK) {
    close(fd);
    return status;
  }
  *descriptor = fd;
  return MOB_OK;
}

mob_status_t memfd_reserve(int descriptor, uint64_t offset, size_t bytes) {
  if (descriptor < 0) return fail_closed("shared memory");
  if (bytes == 0) return MOB_OK;
  int result = 0;
  do {
    result = fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0
                 ? 0
                 : errno;
  } while (result == EINTR);
  if (result == 0) return MOB_OK;
  return fail_errno(MOB_ERR_MEMORY, result, "cannot reserve %zu bytes of shared memory", bytes);
}

void memfd_release(int descriptor, uint64_t offset, size_t bytes) {
  if (bytes == 0 || descriptor < 0) return;
  while (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0 &&
         errno == EINTR) {
  }
}

std::string shared_huge_pages() {
  // "always within_size [advise] never deny force"
  const std::string choices = read_small_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const size_t open = choices.find('[');
  const size_t close = choices.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return choices.substr(open + 1, close - open - 1);
}

}  // namespace mobius::os
