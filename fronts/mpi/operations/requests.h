// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Requests of operations that bring data from another host. They are the MPI's generalised
// requests. The calls of MPI that wait for requests, test them or free them pass through the front,
// which completes those that are its own first. Only a thread of the program completes them, as the
// MPI may be at a level of thread support that allows no other.

#include <mobius/mobius.h>

#include "binding/abi.h"

namespace mobius::mpi {

// A request that completes when a transfer is complete at this process. Returns the class of the
// error, or MPI_SUCCESS.
int make_request(mob_handle_t transfer, MPI_Request* request);

// Before the job ends: completes the requests that the program has freed.
void finish_requests();

}  // namespace mobius::mpi
