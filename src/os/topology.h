// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::os {

// Processors that the calling thread may run on, at least 1.
int processors_allowed();

}  // namespace mobius::os
