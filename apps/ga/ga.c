/* SPDX-License-Identifier: BSD-3-Clause */

/* Two uses of Global Arrays, to be linked with one ARMCI or another: a product of distributed
 * matrices, and the access of a quantum-chemistry program, as NWChem's, whose tasks get patches of
 * one matrix and accumulate into patches of another. README.md has how to build and run it. */

#include <errno.h>
#include <ga.h>
#include <getopt.h>
#include <macdecls.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kPatch = 24,
  kTasksPerProcess = 400,
  kMostSize = 1 << 15,
  kMostRepeats = 1 << 20,
  kQuietSeconds = 3
};

typedef struct {
  int size, repeats, json, patches;
} options_t;

/* Small integers, so that all sums are exact in any order. */
static double element(int matrix, int row, int column) {
  return (double)((row * 7 + column * (3 + matrix)) % 11 - 5);
}

static _Noreturn void fail(const char* reason) {
  fprintf(stderr, "ga: %s\n", reason);
  GA_Error("it ended", 1);
  abort();
}

static int make_matrix(int size, const char* name) {
  int extent[2] = {size, size};
  char text[16];
  snprintf(text, sizeof text, "%s", name);
  const int handle = NGA_Create(C_DBL, 2, extent, text, NULL);
  if (handle == 0) fail("no memory for a matrix");
  return handle;
}

static void fill(int handle, int matrix) {
  int low[2], high[2], pitch;
  double* own;
  NGA_Distribution(handle, GA_Nodeid(), low, high);
  if (low[0] < 0 || high[0] < low[0]) return; /* this process has no part */
  NGA_Access(handle, low, high, &own, &pitch);
  for (int i = low[0]; i <= high[0]; ++i) {
    for (int j = low[1]; j <= high[1]; ++j) {
      own[(long)(i - low[0]) * pitch + j - low[1]] = element(matrix, i, j);
    }
  }
  NGA_Release_update(handle, low, high);
}

/* One row of the product, which each process checks for itself. */
static int product_is_right(int c, int size) {
  const int row = (GA_Nodeid() * 37 + 5) % size;
  double* found = malloc((size_t)size * sizeof *found);
  int low[2] = {row, 0}, high[2] = {row, size - 1}, pitch = size, right = found != NULL;
  if (found != NULL) NGA_Get(c, low, high, found, &pitch);
  for (int j = 0; j < size && right; ++j) {
    double sum = 0.0;
    for (int k = 0; k < size; ++k) sum += element(0, row, k) * element(1, k, j);
    right = found[j] == sum;
  }
  free(found);
  return right;
}

static double product(int a, int b, int c, int size) {
  GA_Zero(c);
  GA_Sync();
  const double start = MPI_Wtime();
  GA_Dgemm('n', 'n', size, size, size, 1.0, a, b, 0.0, c);
  GA_Sync();
  return MPI_Wtime() - start;
}

/* Where a task's patch begins: the same in every process. */
static void place(int task, int which, int size, int low[2], int high[2]) {
  const unsigned mixed = ((unsigned)task * 2654435761u) ^ ((unsigned)which * 40503u << 8);
  const int places = size - kPatch + 1;
  low[0] = (int)((mixed >> 4) % (unsigned)places);
  low[1] = (int)((mixed >> 13) % (unsigned)places);
  high[0] = low[0] + kPatch - 1;
  high[1] = low[1] + kPatch - 1;
}

/* A counter hands out tasks. Each gets two patches of `a`, and adds their product to a patch of
 * `c`. Returns the seconds; adds those of transfers to `transfers`. */
static double patches(int a, int c, int counter, int size, double* transfers) {
  static double x[kPatch][kPatch], y[kPatch][kPatch], z[kPatch][kPatch];
  const long tasks = (long)kTasksPerProcess * GA_Nnodes();
  int first = 0, pitch = kPatch;
  double one = 1.0;
  GA_Zero(c);
  GA_Zero(counter);
  GA_Sync();
  const double start = MPI_Wtime();
  for (;;) {
    int low[2], high[2];
    double begin = MPI_Wtime();
    const long task = NGA_Read_inc(counter, &first, 1);
    if (task >= tasks) break;
    place((int)task, 0, size, low, high);
    NGA_Get(a, low, high, x, &pitch);
    place((int)task, 1, size, low, high);
    NGA_Get(a, low, high, y, &pitch);
    *transfers += MPI_Wtime() - begin;
    memset(z, 0, sizeof z);
    for (int i = 0; i < kPatch; ++i) {
      for (int k = 0; k < kPatch; ++k) {
        for (int j = 0; j < kPatch; ++j) z[i][j] += x[i][k] * y[k][j];
      }
    }
    begin = MPI_Wtime();
    place((int)task, 2, size, low, high);
    NGA_Acc(c, low, high, z, &pitch, &one);
    *transfers += MPI_Wtime() - begin;
  }
  GA_Sync();
  return MPI_Wtime() - start;
}

/* The sum of all elements, which the tasks decide. */
static int patches_are_right(int c, int size) {
  const long tasks = (long)kTasksPerProcess * GA_Nnodes();
  double expected = 0.0, found = 0.0, *own;
  int low[2], high[2], pitch;
  for (long task = GA_Nodeid(); task < tasks; task += GA_Nnodes()) {
    int x[2], y[2];
    place((int)task, 0, size, x, high);
    place((int)task, 1, size, y, high);
    for (int k = 0; k < kPatch; ++k) {
      double column = 0.0, row = 0.0;
      for (int i = 0; i < kPatch; ++i) {
        column += element(0, x[0] + i, x[1] + k);
        row += element(0, y[0] + k, y[1] + i);
      }
      expected += column * row;
    }
  }
  NGA_Distribution(c, GA_Nodeid(), low, high);
  if (low[0] >= 0 && high[0] >= low[0]) {
    NGA_Access(c, low, high, &own, &pitch);
    for (int i = 0; i <= high[0] - low[0]; ++i) {
      for (int j = 0; j <= high[1] - low[1]; ++j) found += own[(long)i * pitch + j];
    }
    NGA_Release(c, low, high);
  }
  GA_Dgop(&expected, 1, "+");
  GA_Dgop(&found, 1, "+");
  return found == expected;
}

static _Noreturn void refuse(const char* option, const char* value, const char* wanted) {
  fprintf(stderr, "ga: %s%s%s: %s; see ga --help\n", option, *option == 0 ? "" : " ", value,
          wanted);
  exit(2);
}

static int number(const char* option, const char* text, int least, int most) {
  char* end;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || errno != 0 || value < least || value > most) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a number from %d to %d is wanted", least, most);
    refuse(option, text, wanted);
  }
  return (int)value;
}

static options_t read_options(int argc, char** argv) {
  static const struct option kOptions[] = {
      {"patches", no_argument, NULL, 'p'},      {"size", required_argument, NULL, 'n'},
      {"repeat", required_argument, NULL, 'r'}, {"json", no_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
  options_t options = {1024, 3, 0, 0};
  int option;
  while ((option = getopt_long(argc, argv, "pn:r:h", kOptions, NULL)) != -1) {
    switch (option) {
      case 'p':
        options.patches = 1;
        break;
      case 'n':
        options.size = number("--size", optarg, kPatch, kMostSize);
        break;
      case 'r':
        options.repeats = number("--repeat", optarg, 1, kMostRepeats);
        break;
      case 'j':
        options.json = 1;
        break;
      case 'h':
        puts(
            "Multiplies matrices of Global Arrays, or gets and accumulates patches of them.\n\n"
            "  mpiexec -n 2 ga [OPTIONS]\n\n"
            "  -p, --patches   patches, instead of a product\n"
            "  -n, --size N    rows and columns of the matrices (1024)\n"
            "  -r, --repeat N  how often (3)\n"
            "      --json      print the result as one line of JSON\n"
            "  -h, --help      print this");
        exit(0);
      default:
        exit(2);
    }
  }
  if (optind != argc) refuse("", argv[optind], "this is no option");
  return options;
}

static void print(const options_t* options, const double* seconds, double share, int right) {
  double best = seconds[0];
  for (int i = 1; i < options->repeats; ++i) best = fmin(best, seconds[i]);
  const char* what = options->patches ? "patches" : "product";
  if (!options->json) {
    printf("ga: %s of %d x %d, %d processes: %.4f s", what, options->size, options->size,
           GA_Nnodes(), best);
    if (options->patches) printf(", %.1f %% of it transfers", 100.0 * share);
    printf(": %s\n", right ? "right" : "WRONG");
    return;
  }
  printf("{\"program\":\"ga\",\"what\":\"%s\",\"processes\":%d,\"size\":%d,", what, GA_Nnodes(),
         options->size);
  if (options->patches) printf("\"communication\":%.6g,", share);
  printf("\"right\":%s,\"seconds_each\":[", right ? "true" : "false");
  for (int i = 0; i < options->repeats; ++i) printf("%s%.9g", i > 0 ? "," : "", seconds[i]);
  printf("]}\n");
}

int main(int argc, char** argv) {
  const options_t options = read_options(argc, argv);
  int tasks = 1;
  double transfers = 0.0, all = 0.0;
  MPI_Init(&argc, &argv);
  GA_Initialize();
  if (!MA_init(C_DBL, 1 << 22, 1 << 22)) fail("no memory");
  const int a = make_matrix(options.size, "a"), b = make_matrix(options.size, "b");
  const int c = make_matrix(options.size, "c");
  const int counter = NGA_Create(C_LONG, 1, &tasks, (char[]){"tasks"}, NULL);
  double* seconds = calloc((size_t)options.repeats, sizeof *seconds);
  if (counter == 0 || seconds == NULL) fail("no memory");
  fill(a, 0);
  fill(b, 1);
  GA_Sync();
  for (int i = 0; i < options.repeats; ++i) {
    seconds[i] = options.patches ? patches(a, c, counter, options.size, &transfers)
                                 : product(a, b, c, options.size);
    all += seconds[i];
    if (GA_Nodeid() == 0 && all > kQuietSeconds) {
      fprintf(stderr, "ga: %d of %d after %.0f s\n", i + 1, options.repeats, all);
    }
  }
  GA_Sync();
  int right =
      options.patches ? patches_are_right(c, options.size) : product_is_right(c, options.size);
  double shares = transfers / all;
  GA_Dgop(&shares, 1, "+");
  /* A process that came late, because others had its processor, has seen only a part. */
  GA_Dgop(seconds, options.repeats, "max");
  GA_Igop(&right, 1, "min");
  if (GA_Nodeid() == 0) print(&options, seconds, shares / GA_Nnodes(), right);
  GA_Terminate();
  MPI_Finalize();
  free(seconds);
  return !right;
}
