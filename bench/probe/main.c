/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A probe: measures one library and writes JSON lines (docs/instrument-formats.md). The library is
 * chosen when linking: adapter.h lists the functions of an adapter. This file and the other shared
 * files contain nothing that is specific to a library.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "measure.h"
#include "options.h"
#include "output.h"

enum { kMeasured = 0, kFailed = 1, kBadArguments = 2 };

/* The result of a problem: the larger of the ranks' exit statuses, and the text from rank 0. */
static int agree(probe_rank_t* rank, const char* problem) {
  probe_note_t mine, theirs;
  memset(&mine, 0, sizeof mine);
  memset(&theirs, 0, sizeof theirs);
  snprintf(mine.text, sizeof mine.text, "%s", problem);
  if (rank->size == PROBE_RANKS) {
    int error = probe_exchange(rank, &mine, &theirs);
    if (error != 0) {
      fprintf(stderr, "probe_%s: %s\n", probe_adapter_name, probe_explain(rank, error));
      probe_abort(rank, kFailed);
    }
  }
  const char* first = mine.text[0] != '\0' ? mine.text : theirs.text;
  if (first[0] == '\0') return kMeasured;
  if (rank->rank == 0) fprintf(stderr, "probe_%s: %s\n", probe_adapter_name, first);
  return kBadArguments;
}

static void pin(const probe_rank_t* rank, const probe_options_t* options, char* problem) {
  int cpu = options->cpus[rank->rank];
  if (cpu < 0 || problem[0] != '\0') return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    snprintf(problem, PROBE_TEXT_BYTES, "--pin: rank %d cannot run on CPU %d (%s); see nproc --all",
             rank->rank, cpu, strerror(errno));
}

typedef struct group {
  probe_session_t* session;
  const probe_cell_t* cells;
  int right;
} group_t;

static void measure_one(void* context, int index) {
  group_t* group = context;
  group->right &= probe_measure_cell(group->session, &group->cells[index]);
}

/* Returns 0 if some data were wrong. */
static int measure_all(probe_session_t* session) {
  const probe_options_t* options = session->options;
  group_t group = {session, options->cells, 1};
  for (int first = 0, last; first < options->cell_count; first = last) {
    last = first + 1;
    group.cells = &options->cells[first];
    if (session->turns == NULL) {
      measure_one(&group, 0);
      continue;
    }
    while (last < options->cell_count && options->groups[last] == options->groups[first]) last++;
    turns_run(session->turns, options->groups[first], last - first, measure_one, &group);
  }
  return group.right;
}

static int rank_main(probe_rank_t* rank, const void* context) {
  const probe_options_t* options = context;
  probe_session_t session;
  char problem[PROBE_TEXT_BYTES];
  memset(&session, 0, sizeof session);
  session.rank = rank;
  session.options = options;

  if (options->help) {
    if (rank->rank == 0) fputs(probe_usage, stdout);
    return kMeasured;
  }
  memcpy(problem, options->problem, sizeof problem);
  if (problem[0] == '\0' && rank->size != PROBE_RANKS)
    snprintf(problem, sizeof problem,
             "needs %d processes, was started with %d; start it with -n %d", PROBE_RANKS,
             rank->size, PROBE_RANKS);
  if (rank->size != PROBE_RANKS) {
    if (rank->rank == 0) fprintf(stderr, "probe_%s: %s\n", probe_adapter_name, problem);
    return kBadArguments;
  }
  pin(rank, options, problem);
  if (rank->rank == 0 && problem[0] == '\0') {
    session.file = fopen(options->out, "w");
    if (session.file == NULL)
      snprintf(problem, sizeof problem, "--out: cannot write '%.200s' (%s)", options->out,
               strerror(errno));
  }
  if (options->turns != NULL && problem[0] == '\0') {
    const char* reason;
    session.turns = turns_open(options->turns, rank->size, rank->rank, &reason);
    if (session.turns == NULL) snprintf(problem, sizeof problem, "%s", reason);
  }
  int status = agree(rank, problem);
  if (status != kMeasured) {
    if (session.file != NULL) fclose(session.file);
    return status;
  }

  if (rank->rank == 0) session.timer = probe_timer_measure();
  probe_write_environment(session.file, rank, &session.timer, options->cpus);
  if (!measure_all(&session)) status = kFailed;

  if (session.file != NULL) {
    if (status == kMeasured) probe_write_done(session.file);
    int lost = ferror(session.file);
    if (fclose(session.file) != 0 || lost) {
      fprintf(stderr, "probe_%s: --out: '%s' could not be written completely\n", probe_adapter_name,
              options->out);
      status = kFailed;
    }
  }
  if (session.turns != NULL) turns_close(session.turns);
  return status;
}

int main(int argc, char** argv) {
  probe_options_t* options = malloc(sizeof *options);
  if (options == NULL) {
    fprintf(stderr, "probe_%s: no memory\n", probe_adapter_name);
    return kFailed;
  }
  probe_options_parse(argc, argv, options);
  int status = probe_launch(argc, argv, rank_main, options);
  free(options);
  return status;
}
