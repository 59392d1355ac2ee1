// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::armci {

// Frees the mutexes of ARMCI_Create_mutexes() that are left; collective.
void mutexes_close();

}  // namespace mobius::armci
