// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::os {

// Opens /dev/null as whichever of descriptors 0 to 2 is closed, so that nothing that is opened
// later becomes the program's standard input, output or error, and is read or written as that.
void open_standard_descriptors();

}  // namespace mobius::os
