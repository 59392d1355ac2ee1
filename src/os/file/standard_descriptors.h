// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::os {

// Opens /dev/null as each of descriptors 0 to 2 that is closed. Otherwise a file that is opened
// later could become the program's standard input, output or error.
void open_standard_descriptors();

}  // namespace mobius::os
