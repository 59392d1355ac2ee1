/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of the UPC programs beside it. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <upc.h>

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      printf("%s:%d: thread %d: not %s\n", __FILE__, __LINE__, MYTHREAD, #condition); \
      fflush(stdout);                                                                 \
      upc_global_exit(1);                                                             \
    }                                                                                 \
  } while (0)

#define DONE()                         \
  do {                                 \
    upc_barrier;                       \
    if (MYTHREAD == 0) printf("ok\n"); \
  } while (0)

#endif
