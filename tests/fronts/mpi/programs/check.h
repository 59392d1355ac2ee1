/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TESTS_FRONTS_MPI_PROGRAMS_CHECK_H
#define MOBIUS_TESTS_FRONTS_MPI_PROGRAMS_CHECK_H

/* Common to the programs of this folder: MPI programs, which know nothing of Möbius. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank, check_size;

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "rank %d: %s:%d: %s\n", check_rank, __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                        \
    }                                                                                      \
  } while (0)

#define MPI(call) CHECK((call) == MPI_SUCCESS)

/* The class of the error that a call returns. */
static inline int check_class(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

#define FAILS(call, expected)                                                                     \
  do {                                                                                            \
    int class_ = check_class(call);                                                               \
    if (class_ != (expected)) {                                                                   \
      char text_[MPI_MAX_ERROR_STRING];                                                           \
      int length_;                                                                                \
      MPI_Error_string(class_, text_, &length_);                                                  \
      fprintf(stderr, "rank %d: %s:%d: %s: got \"%s\", not %s\n", check_rank, __FILE__, __LINE__, \
              #call, text_, #expected);                                                           \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                               \
    }                                                                                             \
  } while (0)

static inline void check_begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}

static inline int check_end(const char* name) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (check_rank == 0) printf("%s passed\n", name);
  return 0;
}

#endif
