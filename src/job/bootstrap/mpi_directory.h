// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A directory through the MPI that already runs in this process, for launchers that do not speak
// PMIx (Hydra: MPICH, Intel MPI) and start processes on several hosts. The MPI is found among the
// loaded libraries and is not needed to build this. A fence exchanges all values.

#include <mobius/job.h>

#include <memory>

#include "job/bootstrap/directory.h"

namespace mobius::job::mpi {

// Whether an MPI of a known kind is loaded, has started and has not ended.
bool is_up();
// Whether such an MPI has started and ended.
bool has_ended();

// A communicator as it is passed in a register: an int or a pointer.
using Communicator = const void*;

// Makes a communicator of its own like the one given, or like MPI_COMM_WORLD; collective over that.
// Its fence() fails once MPI has ended. If it is destroyed without leave(), MPI ends the job.
mob_status_t connect(const Communicator* like, mob_rank_t* rank, mob_rank_t* size,
                     std::unique_ptr<Directory>* directory);

}  // namespace mobius::job::mpi
