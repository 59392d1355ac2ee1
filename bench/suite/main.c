/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The test-suite: measures cells, combinations of blocks (suite.h), and writes JSON lines
 * (docs/instrument-formats.md). One program per library.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity, gethostname */
#endif

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

enum { kMeasured = 0, kFailed = 1, kBadArguments = 2 };

static const char kUsage[] =
    "usage: suite_LIB --cells CELL[,CELL...] --sizes SIZES[,SIZES...] [options]\n"
    "\n"
    "Measures one-sided communication and writes JSON lines.\n"
    "A CELL is experiment:transfer:sync:memory[:option=value]..., all of them names of blocks\n"
    "(--list), for example sync-cost:put:fence:allocate:comm=split:type=vector:block=64.\n"
    "  options   comm=, type= (block=, stride= bytes; pack=hand), partner=, n= (transfers per "
    "leg),\n"
    "            and those of the experiment\n"
    "\n"
    "  SIZES     bytes, or a range of them that multiplies, 1..65536*2, or adds, "
    "65536..131072+4096\n"
    "\n"
    "  --out FILE        write there (standard output); mpi-io:FILE writes through MPI-I/O, where\n"
    "                    the library has it\n"
    "  --min-samples N   samples of each cell and size, at least (50)\n"
    "  --max-seconds S   time of one cell and size once it has them (0.05)\n"
    "  --pin CPU,CPU...  CPU of each rank, cyclically (not pinned)\n"
    "  --seed N          decides the data that are sent (1)\n"
    "  --spawn-on HOST   where the processes are started that are spawned\n"
    "  --port-file FILE  by which two programs meet for comm=applications, started alike but for\n"
    "  --joins yes|no    which of them connects (no)\n"
    "  --interface NAME  network interface of plain sockets (the first that is up)\n"
    "  --turns FILE:N    measures in turns, as program N of this board (bench/turns)\n"
    "  --groups N,N...   group of each cell, ascending; one is measured in the same rounds (0)\n"
    "  --list            blocks of this library\n"
    "\n"
    "Exit status: 0 every cell was measured or refused, 2 bad arguments, 1 otherwise.\n";

typedef struct options {
  suite_job_t* job;
  suite_cell_t* cells;
  int cell_count;
  const char* out;
  int pins[64];
  int pin_count;
  const char* turns; /* as --turns */
  int groups[SUITE_MAX_CELLS];
  int group_count;
  int help, list;
  char problem[SUITE_TEXT_BYTES];
} options_t;

static int copy_word(char* to, const char* from, size_t length) {
  if (length == 0 || length >= SUITE_WORD_BYTES) return 0;
  memcpy(to, from, length);
  to[length] = '\0';
  return 1;
}

static int parse_cell(const char* text, size_t length, suite_cell_t* cell, char* problem) {
  char* const words[4] = {cell->experiment, cell->transfer, cell->sync, cell->memory};
  memset(cell, 0, sizeof *cell);
  if (length < sizeof cell->name) {
    memcpy(cell->name, text, length);
    const char* rest = cell->name;
    for (int i = 0; rest != NULL; i++) {
      const char* end = strchr(rest, ':');
      size_t part = end != NULL ? (size_t)(end - rest) : strlen(rest);
      if (i < 4) {
        if (!copy_word(words[i], rest, part)) break;
      } else {
        const char* equals = memchr(rest, '=', part);
        if (equals == NULL || cell->option_count == SUITE_MAX_OPTIONS) break;
        size_t name = (size_t)(equals - rest);
        if (!copy_word(cell->options[cell->option_count].name, rest, name)) break;
        if (!copy_word(cell->options[cell->option_count].value, equals + 1, part - name - 1)) break;
        cell->option_count++;
      }
      rest = end != NULL ? end + 1 : NULL;
      if (rest == NULL && i >= 3) return 1;
    }
  }
  snprintf(problem, SUITE_TEXT_BYTES,
           "--cells: '%.*s' is no cell; write experiment:transfer:sync:memory[:option=value]...",
           length > 120 ? 120 : (int)length, text);
  return 0;
}

static int parse_cells(const char* text, options_t* options) {
  while (text != NULL && *text != '\0') {
    const char* end = strchr(text, ',');
    size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
    if (options->cell_count == SUITE_MAX_CELLS) {
      snprintf(options->problem, SUITE_TEXT_BYTES, "--cells: at most %d in one launch",
               SUITE_MAX_CELLS);
      return 0;
    }
    if (!parse_cell(text, length, &options->cells[options->cell_count], options->problem)) return 0;
    options->cell_count++;
    text = end != NULL ? end + 1 : NULL;
  }
  return 1;
}

static int parse_number(const char* text, char stop, uint64_t low, uint64_t high, uint64_t* number,
                        const char** rest) {
  char* end;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  *number = strtoull(text, &end, 10);
  if (errno != 0 || *number < low || *number > high || (*end != '\0' && *end != stop)) return 0;
  *rest = *end == stop && stop != '\0' ? end + 1 : NULL;
  return 1;
}

/* A size, or a range: A..B*F multiplies, A..B+S adds. */
static int parse_sizes(const char* text, suite_session_t* session) {
  while (text != NULL) {
    uint64_t first, last, step = 0;
    char* end;
    if (*text < '0' || *text > '9') return 0;
    first = last = strtoull(text, &end, 10);
    char how = '+';
    if (end[0] == '.' && end[1] == '.' && end[2] >= '0' && end[2] <= '9') {
      last = strtoull(end + 2, &end, 10);
      how = *end;
      if ((how != '*' && how != '+') || end[1] < '0' || end[1] > '9') return 0;
      step = strtoull(end + 1, &end, 10);
      if (step < (how == '*' ? 2 : 1) || last < first) return 0;
    }
    if (first == 0 || last > SUITE_MOST_BYTES || (*end != '\0' && *end != ',')) return 0;
    text = *end == ',' ? end + 1 : NULL;
    for (uint64_t size = first; size <= last; size = how == '*' ? size * step : size + step) {
      if (session->size_count == SUITE_MAX_SIZES) return 0;
      session->sizes[session->size_count++] = (size_t)size;
      if (step == 0) break;
    }
  }
  return 1;
}

static int parse_option(const char* name, const char* value, options_t* options,
                        suite_session_t* session) {
  const char* rest = value;
  uint64_t number;
  if (strcmp(name, "--cells") == 0) return parse_cells(value, options);
  if (strcmp(name, "--turns") == 0) {
    options->turns = value;
    return 1;
  }
  if (strcmp(name, "--out") == 0) {
    options->out = value;
    return 1;
  }
  if (strcmp(name, "--spawn-on") == 0) {
    options->job->spawn_on = value;
    return 1;
  }
  if (strcmp(name, "--port-file") == 0) {
    options->job->port_file = value;
    return 1;
  }
  if (strcmp(name, "--interface") == 0) {
    options->job->interface = value;
    return 1;
  }
  if (strcmp(name, "--joins") == 0) {
    options->job->joins = strcmp(value, "yes") == 0;
    if (options->job->joins || strcmp(value, "no") == 0) return 1;
  } else if (strcmp(name, "--sizes") == 0) {
    if (parse_sizes(value, session)) return 1;
  } else if (strcmp(name, "--groups") == 0) {
    uint64_t least = 0;
    while (rest != NULL && options->group_count < SUITE_MAX_CELLS &&
           parse_number(rest, ',', least, 100000, &number, &rest)) {
      options->groups[options->group_count++] = (int)number;
      least = number;
    }
    if (rest == NULL) return 1;
  } else if (strcmp(name, "--pin") == 0) {
    while (rest != NULL && options->pin_count < 64 &&
           parse_number(rest, ',', 0, CPU_SETSIZE - 1, &number, &rest))
      options->pins[options->pin_count++] = (int)number;
    if (rest == NULL) return 1;
  } else if (strcmp(name, "--min-samples") == 0) {
    if (parse_number(value, '\0', 1, 1000000, &session->min_samples, &rest)) return 1;
  } else if (strcmp(name, "--seed") == 0) {
    if (parse_number(value, '\0', 0, UINT64_MAX, &session->seed, &rest)) return 1;
  } else if (strcmp(name, "--max-seconds") == 0) {
    char* end;
    session->max_seconds = strtod(value, &end);
    if (end != value && *end == '\0' && session->max_seconds >= 0 && session->max_seconds < 86400)
      return 1;
  } else {
    snprintf(options->problem, SUITE_TEXT_BYTES, "'%.60s' is no option; see --help", name);
    return 0;
  }
  snprintf(options->problem, SUITE_TEXT_BYTES, "%s: '%.60s' is not what it takes; see --help", name,
           value);
  return 0;
}

static void parse(int argc, char** argv, options_t* options, suite_session_t* session) {
  session->min_samples = 50;
  session->max_seconds = 0.05;
  session->seed = 1;
  for (int i = 1; i < argc; i++) {
    options->help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    if (strcmp(argv[i], "--list") == 0) {
      options->list = 1;
      continue;
    }
    if (options->help) return;
    if (i + 1 == argc) {
      snprintf(options->problem, SUITE_TEXT_BYTES, "%.60s needs a value; see --help", argv[i]);
      return;
    }
    if (!parse_option(argv[i], argv[i + 1], options, session)) return;
    i++;
  }
  if (!options->help && !options->list && (options->cell_count == 0 || session->size_count == 0))
    snprintf(options->problem, SUITE_TEXT_BYTES, "%s is missing; see --help",
             options->cell_count == 0 ? "--cells" : "--sizes");
  if (options->group_count > 0 && options->group_count != options->cell_count)
    snprintf(options->problem, SUITE_TEXT_BYTES, "--groups: one number for each cell");
}

static void list(void) {
  static const char* const kKinds[] = {"communicator", "memory",   "synchronisation",
                                       "transfer",     "datatype", "partner",
                                       "experiment",   "loop",     "arrival"};
  for (int kind = 0; kind < SUITE_KINDS; kind++)
    for (const suite_block_t* block = suite_blocks((suite_kind_t)kind); block != NULL;
         block = block->next)
      printf("%-16s %-16s %s\n", kKinds[kind], block->name, block->summary);
}

static void pin(const suite_job_t* job, const options_t* options) {
  if (options->pin_count == 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)options->pins[(job->rank + job->child) % options->pin_count], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0 && job->rank == 0)
    fprintf(stderr, "suite_%s: --pin: %s; not pinned\n", suite_library.name, strerror(errno));
}

static double timer_overhead_ns(void) {
  enum { kReads = 2000 };
  double best = 1e9;
  for (int round = 0; round < 5; round++) {
    int64_t begin = suite_now_ns();
    for (int i = 0; i < kReads; i++) suite_now_ns();
    double each = (double)(suite_now_ns() - begin) / (kReads + 1);
    if (each < best) best = each;
  }
  return best;
}

/* Collective. */
static int write_environment(suite_session_t* session, const options_t* options) {
  enum { kNameBytes = 256 };
  size_t size = (size_t)session->job->size;
  char hostname[kNameBytes] = "", text[1200], *hostnames = calloc(size, kNameBytes);
  if (hostnames == NULL) return kFailed;
  gethostname(hostname, sizeof hostname - 1);
  int error = suite_library.gather(&session->world, hostname, hostnames, sizeof hostname);
  if (error != 0 || session->out == NULL) {
    free(hostnames);
    return error != 0 ? kFailed : kMeasured;
  }
  suite_record_text(session, "library", NULL, "version", session->job->version);
  int length = snprintf(text, sizeof text, "{\"type\":\"environment\",\"library\":\"%s\",",
                        session->job->library);
  length += snprintf(text + length, sizeof text - (size_t)length,
                     "\"adapter\":\"%s\",\"timer\":{\"name\":\"clock_gettime(CLOCK_MONOTONIC)\","
                     "\"overhead_ns\":%.1f,\"resolution_ns\":1.0},\"hostname\":\"%s\",\"pid\":%ld,",
                     suite_library.name, session->timer_overhead_ns, hostname, (long)getpid());
  fputs(text, session->out);
  fprintf(session->out, "\"processes\":%d,\"cpus\":[", session->job->size);
  for (int i = 0; i < options->pin_count; i++)
    fprintf(session->out, i > 0 ? ",%d" : "%d", options->pins[i]);
  fputs(options->pin_count == 0 ? "-1],\"hostnames\":[" : "],\"hostnames\":[", session->out);
  for (size_t i = 0; i < size; i++)
    fprintf(session->out, "%s\"%s\"", i > 0 ? "," : "", hostnames + i * kNameBytes);
  fputs("]}\n", session->out);
  fflush(session->out);
  free(hostnames);
  return kMeasured;
}

/* Whether one cell has the options of another, apart from policy and n. */
static int has_options_of(const suite_cell_t* one, const suite_cell_t* other) {
  for (int i = 0; i < other->option_count; i++) {
    const char* name = other->options[i].name;
    if (strcmp(name, "policy") == 0 || strcmp(name, "n") == 0) continue;
    if (strcmp(suite_option(one, name, ""), other->options[i].value) != 0) return 0;
  }
  return 1;
}

/* Whether two cells differ only in the policy, which both name, and the number of pieces. */
static int take_turns(const suite_cell_t* a, const suite_cell_t* b) {
  if (suite_option(a, "policy", NULL) == NULL || suite_option(b, "policy", NULL) == NULL ||
      strcmp(a->experiment, b->experiment) != 0 || strcmp(a->transfer, b->transfer) != 0 ||
      strcmp(a->sync, b->sync) != 0 || strcmp(a->memory, b->memory) != 0) {
    return 0;
  }
  return has_options_of(a, b) && has_options_of(b, a);
}

static void find_turns(options_t* options) {
  for (int i = options->cell_count - 2; suite_library.rule != NULL && i >= 0; i--) {
    if (!take_turns(&options->cells[i], &options->cells[i + 1])) continue;
    options->cells[i].turns = options->cells[i + 1].turns + 1;
  }
}

typedef struct group {
  suite_session_t* session;
  const suite_cell_t* cells;
} group_t;

static void measure_one(void* context, int index) {
  const group_t* group = context;
  suite_session_t* session = group->session;
  const suite_cell_t* cell = &group->cells[index];
  suite_record_text(session, "start", cell, NULL, NULL);
  const suite_experiment_block_t* experiment =
      (const suite_experiment_block_t*)suite_find(SUITE_EXPERIMENT, cell->experiment);
  const char* refused = experiment != NULL ? experiment->measure(session, cell)
                                           : "there is no such experiment in this program";
  if (refused != NULL)
    suite_record_text(session, "refused", cell, "reason", refused);
  else
    suite_record_text(session, "end", cell, NULL, NULL);
}

static int measure_all(suite_session_t* session, const options_t* options) {
  for (int first = 0, last; first < options->cell_count; first = last) {
    group_t group = {session, &options->cells[first]};
    last = first + 1;
    if (session->turns == NULL) {
      measure_one(&group, 0);
      continue;
    }
    while (last < options->cell_count && options->groups[last] == options->groups[first]) last++;
    turns_run(session->turns, options->groups[first], last - first, measure_one, &group);
  }
  return session->wrong ? kFailed : kMeasured;
}

static FILE* open_out(const char* name) {
  static const char kPrefix[] = "mpi-io:";
  if (name == NULL) return stdout;
  if (strncmp(name, kPrefix, sizeof kPrefix - 1) != 0) return fopen(name, "w");
  if (suite_library.open_file == NULL) {
    errno = ENOTSUP;
    return NULL;
  }
  return suite_library.open_file(name + sizeof kPrefix - 1);
}

static int run(suite_session_t* session, options_t* options) {
  suite_job_t* job = session->job;
  int leader = job->rank == 0 && !job->child;
  if (options->help || options->list) {
    if (leader && options->help) fputs(kUsage, stdout);
    if (leader && options->list) list();
    return kMeasured;
  }
  if (suite_library.world(job, &session->world) != 0) return kFailed;
  if (leader && options->problem[0] == '\0') {
    session->out = open_out(options->out);
    if (session->out == NULL)
      snprintf(options->problem, sizeof options->problem, "--out: cannot write '%.200s' (%s)",
               options->out, strerror(errno));
  }
  const char* problem = options->problem[0] != '\0' ? options->problem : NULL;
  if (problem == NULL && options->turns != NULL && !job->child)
    session->turns = turns_open(options->turns, job->size, job->rank, &problem);
  problem = suite_agree(session, &session->world, problem);
  if (problem != NULL) {
    if (leader) fprintf(stderr, "suite_%s: %s\n", suite_library.name, problem);
    return kBadArguments;
  }
  pin(job, options);
  session->timer_overhead_ns = timer_overhead_ns();
  int status = write_environment(session, options);
  if (session->turns == NULL) find_turns(options);
  if (status == kMeasured) status = measure_all(session, options);
  if (session->out != NULL) {
    if (status == kMeasured) suite_record_text(session, "done", NULL, NULL, NULL);
    if (ferror(session->out) || fflush(session->out) != 0) {
      fprintf(stderr, "suite_%s: --out: the records could not be written completely\n",
              suite_library.name);
      status = kFailed;
    }
    if (session->out != stdout && fclose(session->out) != 0) status = kFailed;
    session->out = NULL;
  }
  return status;
}

int main(int argc, char** argv) {
  static suite_session_t session;
  static suite_job_t job;
  options_t* options = calloc(1, sizeof *options);
  if (options != NULL) options->cells = calloc(SUITE_MAX_CELLS, sizeof *options->cells);
  if (options == NULL || options->cells == NULL) {
    fprintf(stderr, "suite_%s: no memory\n", suite_library.name);
    return kFailed;
  }
  session.job = &job;
  job.argc = argc;
  job.argv = argv;
  options->job = &job;
  parse(argc, argv, options, &session);
  int error = suite_library.init(&argc, &argv, &job);
  if (error != 0) {
    fprintf(stderr, "suite_%s: %s\n", suite_library.name, suite_library.explain(error));
    return kFailed;
  }
  job.child = job.child || job.joins;
  int status = run(&session, options);
  if (status == kFailed && !session.wrong) suite_library.abort(&job, status);
  error = suite_library.leave(&job);
  free(options->cells);
  free(options);
  return error != 0 ? kFailed : status;
}
