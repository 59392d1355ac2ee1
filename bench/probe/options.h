/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_OPTIONS_H
#define PROBE_OPTIONS_H

/**
 * @file
 * The command line of a probe.
 */

#include "adapter.h"

enum { PROBE_MAX_CELLS = 256, PROBE_MAX_SIZES = 1024, PROBE_MAX_BYTES = 1 << 30 };

typedef struct probe_options {
  probe_cell_t cells[PROBE_MAX_CELLS];
  int cell_count;
  size_t sizes[PROBE_MAX_SIZES];
  int size_count;
  const char* out;
  uint64_t min_samples;
  double max_seconds;
  int cpus[PROBE_RANKS]; /* -1: not pinned */
  uint64_t seed;
  const char* turns;           /* as --turns, or null: samples are taken at once */
  int groups[PROBE_MAX_CELLS]; /* of each cell, ascending: with turns, a group is measured together
                                */
  int group_count;
  int help;
  char problem[PROBE_TEXT_BYTES]; /* the error in the arguments, or "" */
} probe_options_t;

/** Reads the arguments; one rank reports an error later, from `options->problem`. */
void probe_options_parse(int argc, char** argv, probe_options_t* options);

/** The text of --help. */
extern const char probe_usage[];

#endif
