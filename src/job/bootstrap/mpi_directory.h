// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A directory through the MPI that runs in this process already, for launchers that speak no PMIx
// (Hydra: MPICH, Intel MPI) and start on several hosts. The MPI is found among what is loaded;
// nothing of it is needed to build this. What is fenced is in every process after it.

#include <mobius/job.h>

#include <memory>

#include "job/bootstrap/directory.h"

namespace mobius::job::mpi {

// Whether an MPI of a kind that we know is loaded here, has started and has not ended.
bool is_up();
// Whether one has started and has ended.
bool has_ended();

// A communicator as it is passed in a register: an int or a pointer.
using Communicator = const void*;

// Makes a communicator of its own like the one given, or like MPI_COMM_WORLD; collective over that.
// Its fence() fails once MPI has ended. If it is destroyed without leave(), MPI ends the job.
mob_status_t connect(const Communicator* like, mob_rank_t* rank, mob_rank_t* size,
                     std::unique_ptr<Directory>* directory);

}  // namespace mobius::job::mpi
