// SPDX-License-Identifier: BSD-3-Clause
#include "binding/agreement.h"

#include <sched.h>
#include <time.h>

#include <cstdio>

#include "binding/real.h"

namespace mobius::mpi {
namespace {

constexpr time_t kPatienceSeconds = 10;

time_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// Two processes say it: the first one may be the one that the others wait for.
void say_that_some_are_missing(MPI_Comm comm, const char* call) {
  int rank = 0;
  if (real::Comm_rank(comm, &rank) != MPI_SUCCESS || rank > 1) return;
  std::fprintf(stderr,
               "libmobius_" MOBIUS_MPI_FRONT
               ": rank %d has waited %d s in %s for other processes; each process of the job needs "
               "libmobius_" MOBIUS_MPI_FRONT ", preloaded or linked: has one none?\n",
               rank, static_cast<int>(kPatienceSeconds), call);
}

bool wait_for_all(MPI_Request* request, MPI_Comm comm, const char* call) {
  const time_t start = now();
  bool has_said = false;
  for (unsigned rounds = 0;; ++rounds) {
    int flag = 0;
    if (real::Test(request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (flag != 0) return true;
    constexpr unsigned kSpins = 1000;
    if (rounds < kSpins) continue;
    sched_yield();
    if (!has_said && now() - start >= kPatienceSeconds) {
      has_said = true;
      say_that_some_are_missing(comm, call);
    }
  }
}

}  // namespace

unsigned facts_of_all(unsigned mine, MPI_Comm comm, const char* call) {
  unsigned all = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const bool is_known =
      real::Iallreduce(&mine, &all, 1, MPI_UNSIGNED, MPI_BOR, comm, &request) == MPI_SUCCESS &&
      wait_for_all(&request, comm, call);
  return is_known ? all : kUnknownFacts;
}

}  // namespace mobius::mpi
