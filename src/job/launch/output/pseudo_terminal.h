// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The pseudo-terminal that a rank has as standard output. C libraries, Fortran and Python buffer
// output by the line on a terminal and by some kilobytes on a pipe, and what is in such a buffer
// when the process crashes is lost.

namespace mobius::launch {

// Makes a pseudo-terminal that passes every byte unchanged: `ends[0]` reads what is written to
// `ends[1]`, which is open for writing only and is nobody's controlling terminal. Both close on
// exec. False, with errno, where the system has none to give.
bool open_pseudo_terminal(int ends[2]);

// Gives the pseudo-terminal the size of the launcher's own terminal, if standard output is one.
void copy_terminal_size(int reading_end);

}  // namespace mobius::launch
