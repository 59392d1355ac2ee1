// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace mobius::os {

// The contents of one small file of /proc or /sys; empty if it cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace mobius::os
