/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARMCI_MESSAGE_H
#define MOBIUS_ARMCI_MESSAGE_H

/** @file Another name of <armci_msg.h>, by which ARMCI-MPI and ComEx know it. */

#include <armci_msg.h>

#endif
