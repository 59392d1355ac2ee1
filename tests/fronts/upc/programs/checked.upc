/* SPDX-License-Identifier: BSD-3-Clause
 * Makes the mistake that its number of arguments chooses. */
#include "check.h"

shared int a[10 * THREADS];

int main(int argc, char **argv) {
  shared int *p = a, *none = NULL;
  int *mine = (int *)&a[MYTHREAD];
  *mine = argc;
  p[3] = a[4] + (argv == NULL);
  upc_barrier;
  if (MYTHREAD == 0) {
    if (argc == 2) a[8 * THREADS + argc + 2] = 1;
    if (argc == 3) *none = 2;
    if (argc == 4) mine = (int *)&a[1];
  }
  DONE();
  return *mine == 0;
}
