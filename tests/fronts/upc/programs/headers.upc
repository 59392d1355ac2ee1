/* SPDX-License-Identifier: BSD-3-Clause
 * The headers of the C library parse, and declare what the program's macros ask for. */
#define _GNU_SOURCE
#include <assert.h>
#include <complex.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "check.h"

shared double roots[THREADS];
static jmp_buf place;

int main(void) {
  char *text;
  uint64_t large = UINT64_C(1) << 40;
  va_list *unused = NULL;
  (void)unused;
  roots[MYTHREAD] = sqrt(4.0 * MYTHREAD * MYTHREAD);
  upc_barrier;
  CHECK(roots[THREADS - 1] == 2.0 * (THREADS - 1));
  CHECK(asprintf(&text, "%" PRIu64 " %c", large, toupper('a')) == 15); /* declared for GNU alone */
  CHECK(strcmp(text, "1099511627776 A") == 0);
  free(text);
  if (setjmp(place) == 0) longjmp(place, 1);
  CHECK(cabs(3.0 + 4.0 * I) == 5.0 && isnan(NAN) && offsetof(struct timeval, tv_usec) > 0);
  DONE();
  return 0;
}
