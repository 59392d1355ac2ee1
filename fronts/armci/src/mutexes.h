// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::armci {

// Frees the remaining mutexes of ARMCI_Create_mutexes(); collective.
void mutexes_close();

}  // namespace mobius::armci
