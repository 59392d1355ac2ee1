/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_SETSIZE */
#endif
#include "options.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char probe_usage[] =
    "usage: probe_LIB --cells CELL[,CELL...] --sizes BYTES[,BYTES...] --out FILE [options]\n"
    "\n"
    "Measures one-sided communication between two ranks and writes JSON lines to FILE.\n"
    "A CELL is experiment:operation:sync:memory, for example pingpong:put:flush:allocate.\n"
    "  experiment  pingpong, completion\n"
    "  operation   put, get, sendrecv, copy, line\n"
    "  sync        flush, fence, pscw, lock, none\n"
    "  memory      allocate, create, local\n"
    "\n"
    "  --min-samples N   samples of each cell and size, at least (100)\n"
    "  --max-seconds S   time of one cell and size once it has them (0.25)\n"
    "  --pin CPU,CPU     CPU of each rank (not pinned)\n"
    "  --seed N          decides the data that are sent (1)\n"
    "  --turns FILE:N    measures in turns, as program N of this board (bench/turns)\n"
    "  --groups N,N...   group of each cell, ascending; one is measured in the same rounds (0)\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0 every cell was measured or refused, 2 bad arguments, 1 otherwise.\n";

static const char* const kExperiments[] = {"pingpong", "completion", NULL};
static const char* const kOperations[] = {"put", "get", "sendrecv", "copy", "line", NULL};
static const char* const kSyncs[] = {"flush", "fence", "pscw", "lock", "none", NULL};
static const char* const kMemories[] = {"allocate", "create", "local", NULL};

/* Splits off the text before `separator`. Returns its length; `*text` moves behind the separator,
 * or becomes null after the last part. */
static size_t take_part(const char** text, char separator, const char** part) {
  *part = *text;
  const char* end = strchr(*text, separator);
  size_t length = end != NULL ? (size_t)(end - *text) : strlen(*text);
  *text = end != NULL ? end + 1 : NULL;
  return length;
}

static int index_of(const char* const* names, const char* text, size_t length) {
  for (int i = 0; names[i] != NULL; i++)
    if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
  return -1;
}

static int parse_cell(const char* text, size_t length, probe_cell_t* cell, char* problem) {
  static const struct {
    const char* what;
    const char* const* names;
    const char* choices;
  } kParts[] = {{"experiment", kExperiments, "pingpong, completion"},
                {"operation", kOperations, "put, get, sendrecv, copy, line"},
                {"sync", kSyncs, "flush, fence, pscw, lock, none"},
                {"memory", kMemories, "allocate, create, local"}};
  int values[4];
  if (length >= sizeof cell->name) {
    snprintf(problem, PROBE_TEXT_BYTES, "--cells: '%.40s...' is too long for a cell", text);
    return 0;
  }
  memcpy(cell->name, text, length);
  cell->name[length] = '\0';

  const char* rest = cell->name;
  for (int i = 0; i < 4; i++) {
    if (rest == NULL) {
      snprintf(problem, PROBE_TEXT_BYTES,
               "--cells: '%s' lacks its %s; a cell is experiment:operation:sync:memory", cell->name,
               kParts[i].what);
      return 0;
    }
    const char* part;
    size_t part_length = take_part(&rest, ':', &part);
    values[i] = index_of(kParts[i].names, part, part_length);
    if (values[i] < 0) {
      snprintf(problem, PROBE_TEXT_BYTES, "--cells: '%.*s' in '%s' is no %s; use one of %s",
               (int)part_length, part, cell->name, kParts[i].what, kParts[i].choices);
      return 0;
    }
  }
  if (rest != NULL) {
    snprintf(problem, PROBE_TEXT_BYTES,
             "--cells: '%s' has more than four parts; a cell is experiment:operation:sync:memory",
             cell->name);
    return 0;
  }
  cell->experiment = (probe_experiment_t)values[0];
  cell->operation = (probe_operation_t)values[1];
  cell->sync = (probe_sync_t)values[2];
  cell->memory = (probe_memory_t)values[3];
  return 1;
}

/* A decimal number of `length` characters, all of them digits, from `low` to `high`. */
static int parse_number(const char* text, size_t length, uint64_t low, uint64_t high,
                        uint64_t* number) {
  uint64_t value = 0;
  if (length == 0) return 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return 0;
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) return 0;
    value = value * 10 + digit;
  }
  if (value < low || value > high) return 0;
  *number = value;
  return 1;
}

static int parse_cells(const char* text, probe_options_t* options) {
  options->cell_count = 0;
  while (text != NULL) {
    const char* part;
    size_t length = take_part(&text, ',', &part);
    if (options->cell_count == PROBE_MAX_CELLS) {
      snprintf(options->problem, PROBE_TEXT_BYTES, "--cells: at most %d cells in one launch",
               PROBE_MAX_CELLS);
      return 0;
    }
    if (!parse_cell(part, length, &options->cells[options->cell_count], options->problem)) return 0;
    options->cell_count++;
  }
  return 1;
}

static int parse_sizes(const char* text, probe_options_t* options) {
  options->size_count = 0;
  while (text != NULL) {
    const char* part;
    uint64_t bytes;
    size_t length = take_part(&text, ',', &part);
    if (options->size_count == PROBE_MAX_SIZES) {
      snprintf(options->problem, PROBE_TEXT_BYTES, "--sizes: at most %d sizes in one launch",
               PROBE_MAX_SIZES);
      return 0;
    }
    if (!parse_number(part, length, 1, PROBE_MAX_BYTES, &bytes)) {
      snprintf(options->problem, PROBE_TEXT_BYTES,
               "--sizes: '%.*s' is no number of bytes from 1 to %d", length > 40 ? 40 : (int)length,
               part, PROBE_MAX_BYTES);
      return 0;
    }
    options->sizes[options->size_count++] = (size_t)bytes;
  }
  return 1;
}

static int parse_pin(const char* text, probe_options_t* options) {
  const char* rest = text;
  for (int rank = 0; rank < PROBE_RANKS && rest != NULL; rank++) {
    const char* part;
    uint64_t cpu;
    size_t length = take_part(&rest, ',', &part);
    if (!parse_number(part, length, 0, CPU_SETSIZE - 1, &cpu)) break;
    options->cpus[rank] = (int)cpu;
    if (rank == PROBE_RANKS - 1 && rest == NULL) return 1;
  }
  snprintf(options->problem, PROBE_TEXT_BYTES,
           "--pin: '%.40s' is not two CPU numbers from 0 to %d, as in 0,1", text, CPU_SETSIZE - 1);
  return 0;
}

/* As many numbers as cells are checked at the end. */
static int parse_groups(const char* text, probe_options_t* options) {
  options->group_count = 0;
  while (text != NULL) {
    const char* part;
    uint64_t group;
    size_t length = take_part(&text, ',', &part);
    const int last = options->group_count > 0 ? options->groups[options->group_count - 1] : 0;
    if (options->group_count == PROBE_MAX_CELLS ||
        !parse_number(part, length, (uint64_t)last, 100000, &group)) {
      snprintf(options->problem, PROBE_TEXT_BYTES, "--groups: expected ascending numbers");
      return 0;
    }
    options->groups[options->group_count++] = (int)group;
  }
  return 1;
}

static int parse_option(const char* name, const char* value, probe_options_t* options) {
  if (strcmp(name, "--cells") == 0) return parse_cells(value, options);
  if (strcmp(name, "--sizes") == 0) return parse_sizes(value, options);
  if (strcmp(name, "--pin") == 0) return parse_pin(value, options);
  if (strcmp(name, "--groups") == 0) return parse_groups(value, options);
  if (strcmp(name, "--turns") == 0) {
    options->turns = value;
    return 1;
  }
  if (strcmp(name, "--out") == 0) {
    options->out = value;
    return 1;
  }
  if (strcmp(name, "--min-samples") == 0) {
    if (parse_number(value, strlen(value), 1, 1000000, &options->min_samples)) return 1;
    snprintf(options->problem, PROBE_TEXT_BYTES,
             "--min-samples: '%.40s' is no number from 1 to 1000000", value);
    return 0;
  }
  if (strcmp(name, "--seed") == 0) {
    if (parse_number(value, strlen(value), 0, UINT64_MAX, &options->seed)) return 1;
    snprintf(options->problem, PROBE_TEXT_BYTES, "--seed: '%.40s' is no number of 64 bits", value);
    return 0;
  }
  /* --max-seconds, the only other option that the caller passes */
  char* end;
  double seconds = strtod(value, &end);
  if (end != value && *end == '\0' && seconds >= 0 && seconds <= 86400) {
    options->max_seconds = seconds;
    return 1;
  }
  snprintf(options->problem, PROBE_TEXT_BYTES,
           "--max-seconds: '%.40s' is no number of seconds from 0 to 86400", value);
  return 0;
}

void probe_options_parse(int argc, char** argv, probe_options_t* options) {
  static const char* const kNames[] = {"--cells",       "--sizes", "--out",  "--min-samples",
                                       "--max-seconds", "--pin",   "--seed", "--turns",
                                       "--groups",      NULL};
  memset(options, 0, sizeof *options);
  options->min_samples = 100;
  options->max_seconds = 0.25;
  options->seed = 1;
  for (int rank = 0; rank < PROBE_RANKS; rank++) options->cpus[rank] = -1;

  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      options->help = 1;
      return;
    }
    const char* equals = strchr(argv[i], '=');
    size_t length = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
    int known = index_of(kNames, argv[i], length);
    if (known < 0) {
      snprintf(options->problem, PROBE_TEXT_BYTES, "'%.60s' is no option; see --help", argv[i]);
      return;
    }
    const char* value = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
    if (value == NULL) {
      snprintf(options->problem, PROBE_TEXT_BYTES, "%s needs a value; see --help", kNames[known]);
      return;
    }
    if (!parse_option(kNames[known], value, options)) return;
  }
  if (options->cell_count == 0 || options->size_count == 0 || options->out == NULL)
    snprintf(options->problem, PROBE_TEXT_BYTES, "%s is missing; see --help",
             options->cell_count == 0   ? "--cells"
             : options->size_count == 0 ? "--sizes"
                                        : "--out");
  else if (options->group_count > 0 && options->group_count != options->cell_count)
    snprintf(options->problem, PROBE_TEXT_BYTES, "--groups: one number for each cell");
}
