/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_JOB_HPP
#define MOBIUS_JOB_HPP

/**
 * @file
 * Membership of a job as the scope of an object. */

#include <mobius/error.hpp>
#include <mobius/job.h>

namespace mob {

/**
 * Joins the job when it is made, and leaves the job when it is destroyed. Declare owners of objects
 * of the job after it, so that they are destroyed before it. One per process; neither copied nor
 * moved.
 *
 * While an exception unwinds the stack, the destructor does not leave the job (error.hpp): the
 * process must then end, and counts as one that died.
 *
 * Thread safety: single, as mob_init() and mob_finalize().
 */
class Job {
 public:
  /** Joins as mob_init(): collective, blocks. @throws Error if it fails */
  Job() { check(mob_init()); }
  /**
   * Joins as mob_init_mpi(), which says what to pass: collective over the communicator, blocks.
   * @throws Error  if it fails
   */
  explicit Job(const void* communicator) { check(mob_init_mpi(communicator)); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /** Leaves as mob_finalize(): collective, blocks. Does nothing if the program has called that. */
  ~Job() {
    if (!unwinding_) static_cast<void>(mob_finalize());
  }

 private:
  detail::Unwinding unwinding_;
};

}  // namespace mob

#endif
