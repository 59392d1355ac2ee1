// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A descriptor that the library keeps open and uses again later, by number. A program may close
// descriptors that are not its own, as daemons do, and its next file gets the number. So every use
// first checks that the number still refers to the held file.

#include <mobius/status.h>

#include <sys/types.h>

namespace mobius::os {

class HeldDescriptor {
 public:
  HeldDescriptor() = default;
  explicit HeldDescriptor(int descriptor) { hold(descriptor); }
  HeldDescriptor(HeldDescriptor&& other) noexcept { *this = static_cast<HeldDescriptor&&>(other); }
  HeldDescriptor& operator=(HeldDescriptor&& other) noexcept;
  ~HeldDescriptor() { close(); }

  // Owns `descriptor` (-1: none) from now on, and closes the one held before.
  void hold(int descriptor);
  // Closes the descriptor, unless its number belongs to the program by now.
  void close();

  bool is_held() const { return descriptor_ >= 0; }
  // Whether the number still refers to the held file. A system call.
  bool is_ours() const;
  // The number; -1 if no descriptor is held, or if the program has closed it.
  int get() const { return is_ours() ? descriptor_ : -1; }

 private:
  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// The error of a call that needs a descriptor which the program has closed. `what` names the file,
// such as "shared memory".
mob_status_t fail_closed(const char* what);

}  // namespace mobius::os
