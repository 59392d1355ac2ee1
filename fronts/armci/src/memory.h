// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::armci {

// Forgets the allocations that are left; mob_finalize() frees them.
void memory_close();

}  // namespace mobius::armci
