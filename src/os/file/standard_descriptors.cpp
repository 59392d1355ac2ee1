// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace mobius::os {

void open_standard_descriptors() {
  int descriptor = 0;
  do {
    descriptor = open("/dev/null", O_RDWR);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

}  // namespace mobius::os
