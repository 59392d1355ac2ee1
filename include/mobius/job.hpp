/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_JOB_HPP
#define MOBIUS_JOB_HPP

/**
 * @file
 * Being in a job, from a place in the program to the end of its scope.
 */

#include <mobius/error.hpp>
#include <mobius/job.h>

namespace mob {

/**
 * Joins the job, and leaves it when it is destroyed. What owns something in the job is declared
 * after it and so goes before it. One per process; not copied, not moved.
 *
 * While an exception unwinds the stack the destructor does not leave the job (error.hpp): the
 * process is then to end, and counts as one that died.
 *
 * Thread safety: single, as mob_init() and mob_finalize().
 */
class Job {
 public:
  /** As mob_init(): collective, blocks. @throws Error as it fails */
  Job() { check(mob_init()); }
  /** As mob_init_mpi(), which says what to pass: collective over the communicator.
   *  @throws Error as it fails */
  explicit Job(const void* communicator) { check(mob_init_mpi(communicator)); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /** As mob_finalize(): collective, blocks. Does nothing if the program has called that. */
  ~Job() {
    if (!unwinding_) static_cast<void>(mob_finalize());
  }

 private:
  detail::Unwinding unwinding_;
};

}  // namespace mob

#endif
