// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The modes of the launcher's terminal (termios). A rank that reads the terminal may switch off
// echo or the input of lines; if it crashes then, nobody else switches them on again.

#include <termios.h>

#include <optional>

namespace mobius::launch {

class TerminalModes {
 public:
  // Reads those of the terminal that standard input is, if it is one.
  TerminalModes();

  // Sets them as they were, unless another job has the terminal now.
  void restore() const;

 private:
  std::optional<termios> modes_;
};

}  // namespace mobius::launch
