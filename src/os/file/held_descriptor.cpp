// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/held_descriptor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/status.h"

namespace mobius::os {

HeldDescriptor& HeldDescriptor::operator=(HeldDescriptor&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

void HeldDescriptor::hold(int descriptor) {
  if (descriptor == descriptor_) return;
  close();
  struct stat about{};
  if (descriptor < 0 || fstat(descriptor, &about) != 0) return;
  descriptor_ = descriptor;
  device_ = about.st_dev;
  inode_ = about.st_ino;
}

void HeldDescriptor::close() {
  if (is_ours()) ::close(descriptor_);
  descriptor_ = -1;
}

bool HeldDescriptor::is_ours() const {
  struct stat about{};
  return descriptor_ >= 0 && fstat(descriptor_, &about) == 0 && about.st_dev == device_ &&
         about.st_ino == inode_;
}

mob_status_t fail_closed(const char* what) {
  return base::fail(MOB_ERR_STATE,
                    "the descriptor of the %s was closed by the program, which closed descriptors "
                    "that are not its own; close only those that it opened, or close all before "
                    "mob_init()",
                    what);
}

}  // namespace mobius::os
