// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/output/terminal_modes.h"

#include <unistd.h>

namespace mobius::launch {

TerminalModes::TerminalModes() {
  termios modes{};
  if (tcgetattr(STDIN_FILENO, &modes) == 0) modes_ = modes;
}

void TerminalModes::restore() const {
  // Not TCSADRAIN: it may wait for ever on a terminal whose output is stopped.
  if (modes_ && tcgetpgrp(STDIN_FILENO) == getpgrp()) tcsetattr(STDIN_FILENO, TCSANOW, &*modes_);
}

}  // namespace mobius::launch
