/* SPDX-License-Identifier: BSD-3-Clause */

/* A program of Global Arrays, with MPI beside it: put, get, accumulate, matrix product, and a
 * counter that hands out work. Every process checks its results. */

#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 120, TASKS = 1000 };

static int failures;

static void expect(int ok, const char* what) {
  if (ok) return;
  printf("process %d: %s\n", GA_Nodeid(), what);
  ++failures;
}

static double element(int i, int j) { return (double)((i * 7 + j * 3) % 11); }

static void check_product(int a, int b, int c) {
  static double row[N];
  int lo[2] = {GA_Nodeid() % N, 0};
  int hi[2] = {GA_Nodeid() % N, N - 1};
  int ld = N;
  int ok = 1;
  GA_Dgemm('n', 'n', N, N, N, 1.0, a, b, 0.0, c);
  NGA_Get(c, lo, hi, row, &ld);
  for (int j = 0; j < N; ++j) {
    double sum = 0;
    for (int k = 0; k < N; ++k) sum += element(lo[0], k) * element(k, j);
    ok = ok && row[j] == sum;
  }
  expect(ok, "ga_dgemm");
}

int main(int argc, char** argv) {
  static double block[N][N];
  int me;
  int size;
  int ranks;
  int dims[2] = {N, N};
  int lo[2] = {0, 0};
  int hi[2] = {N - 1, N - 1};
  int ld = N;
  int tasks = TASKS;
  int zero = 0;
  double one = 1.0;
  int ok = 1;
  long done = 0;
  MPI_Init(&argc, &argv);
  GA_Initialize();
  MA_init(C_DBL, 1 << 20, 1 << 20);
  me = GA_Nodeid();
  size = GA_Nnodes();
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  expect(size == ranks, "as many processes as MPI");
  const int a = NGA_Create(C_DBL, 2, dims, "a", NULL);
  const int b = NGA_Create(C_DBL, 2, dims, "b", NULL);
  const int c = NGA_Create(C_DBL, 2, dims, "c", NULL);
  const int counter = NGA_Create(C_INT, 1, &tasks, "counter", NULL);

  /* Each process puts every size-th row. */
  for (int i = me; i < N; i += size) {
    for (int j = 0; j < N; ++j) block[0][j] = element(i, j);
    lo[0] = hi[0] = i;
    NGA_Put(a, lo, hi, block, &ld);
    NGA_Put(b, lo, hi, block, &ld);
  }
  GA_Sync();
  lo[0] = 0;
  hi[0] = N - 1;
  NGA_Get(a, lo, hi, block, &ld);
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) ok = ok && block[i][j] == element(i, j);
  }
  expect(ok, "put and get");

  GA_Zero(c);
  NGA_Acc(c, lo, hi, block, &ld, &one);
  GA_Sync();
  NGA_Get(c, lo, hi, block, &ld);
  ok = 1;
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) ok = ok && block[i][j] == size * element(i, j);
  }
  expect(ok, "accumulate");
  GA_Sync();
  check_product(a, b, c);

  GA_Zero(counter);
  while (NGA_Read_inc(counter, &zero, 1) < TASKS) ++done;
  GA_Lgop(&done, 1, "+");
  expect(done == TASKS, "ga_read_inc");

  GA_Igop(&failures, 1, "+");
  if (me == 0) printf("global arrays: %s\n", failures == 0 ? "right" : "wrong");
  GA_Terminate();
  MPI_Finalize();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
