// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_PROCESSES_MPI_JOB_H
#define MD_PROCESSES_MPI_JOB_H

#include <mpi.h>

#include <cstdio>

#include "../processes.h"

namespace md {

/// A job of MPI processes. Errors of MPI calls end it: MPI_ERRORS_ARE_FATAL is the default.
class OverMpi : public Processes {
 public:
  OverMpi() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
    int leader = rank_;
    MPI_Bcast(&leader, 1, MPI_INT, 0, host);
    MPI_Comm_free(&host);
    leaders_.resize(static_cast<size_t>(size_));
    MPI_Allgather(&leader, 1, MPI_INT, leaders_.data(), 1, MPI_INT, MPI_COMM_WORLD);
  }
  ~OverMpi() override { MPI_Finalize(); }

  void sum(std::span<int64_t> values) override { combine(values, MPI_SUM); }
  void largest(std::span<int64_t> values) override { combine(values, MPI_MAX); }

  [[noreturn]] void fail(const std::string& reason) override {
    std::fprintf(stderr, "md: rank %d: %s\n", rank_, reason.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    __builtin_unreachable();
  }

 private:
  void combine(std::span<int64_t> values, MPI_Op operation) {
    const Timer timer(times_.waiting);
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T,
                  operation, MPI_COMM_WORLD);
  }
};

}  // namespace md

#endif
