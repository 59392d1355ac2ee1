/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARMCI_MESSAGE_H
#define MOBIUS_ARMCI_MESSAGE_H

/**
 * @file Another name of <armci_msg.h>, used by ARMCI-MPI and ComEx.
 */

#include <armci_msg.h>

#endif
