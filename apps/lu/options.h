/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LU_OPTIONS_H
#define LU_OPTIONS_H

#include <stdint.h>

#include "layout.h"

typedef struct {
  int size, block;
  placement_t placement;
  int ranges;       /* that each host has in a row or column, if the placement is hybrid */
  const char* blas; /* library with the kernels; NULL: plain loops */
  int copy;         /* copy blocks of others that could be read in place */
  int per_host;     /* processes of a host; 0: ask the library */
  int threads;      /* of lu-threads */
  int bound;        /* each of these has a processor of its own */
  int repeats;
  uint64_t seed;
  const char* output; /* file for the factors, or NULL */
  int json;
} options_t;

extern const char* const placement_names[];

/** Reads the command line. Ends the program after --help, and after a message if it is wrong. */
options_t options_read(int argc, char** argv);

#endif
