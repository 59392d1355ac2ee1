/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multiplies two matrices. Each thread has rows of A and C, and columns of B in blocks; it computes
 * its rows of C and reads of B what it needs.
 *
 *   mobupcc -O2 matmul.upc -o matmul && mobius run -n 4 ./matmul
 */
#include <stdio.h>
#include <upc_relaxed.h>

#define N (48 * THREADS)
#define INNER 64
#define WIDTH 40

shared [INNER] double a[48 * THREADS][INNER];
shared [WIDTH] double b[INNER * THREADS][WIDTH];
shared [WIDTH] double c[48 * THREADS][WIDTH];
shared int wrong[THREADS];

int main(void) {
  int i, j, k, errors = 0;

  upc_forall (i = 0; i < N; i++; &a[i][0])
    for (k = 0; k < INNER; k++) a[i][k] = i + k;
  upc_forall (k = 0; k < INNER; k++; &b[k][0])
    for (j = 0; j < WIDTH; j++) b[k][j] = k - j;
  upc_barrier;

  upc_forall (i = 0; i < N; i++; &c[i][0]) {
    double row[WIDTH] = {0};
    for (k = 0; k < INNER; k++)
      for (j = 0; j < WIDTH; j++) row[j] += a[i][k] * b[k][j];
    for (j = 0; j < WIDTH; j++) c[i][j] = row[j];
  }
  upc_barrier;

  /* The sum of (i + k)(k - j) over k is known. */
  upc_forall (i = 0; i < N; i++; i)
    for (j = 0; j < WIDTH; j++) {
      const double n = INNER, sum = n * (n - 1) / 2, squares = (n - 1) * n * (2 * n - 1) / 6;
      if (c[i][j] != squares + (i - j) * sum - n * i * j) errors++;
    }
  wrong[MYTHREAD] = errors;
  upc_barrier;
  if (MYTHREAD == 0) {
    for (i = 1; i < THREADS; i++) errors += wrong[i];
    printf("%d x %d by %d threads: %s\n", N, WIDTH, THREADS, errors ? "WRONG" : "right");
  }
  return errors != 0;
}
