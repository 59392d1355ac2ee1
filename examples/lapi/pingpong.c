/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ping-pong with counters: two tasks put the same bytes back and forth, as in Jackson's report on
 * LAPI and MPI-2 on HPCx. Prints the time of one put and its bandwidth, one to a million integers.
 *
 *   moblapicc pingpong.c -o pingpong && mobius run -n 2 pingpong
 */

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000000, REPETITIONS = 100 };

static lapi_handle_t handle;
static int data[MOST];
static lapi_cntr_t arrived;

static void check(int code, const char* call) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s: %s\n", call, text);
  exit(1);
}
#define CHECK(call) check(call, #call)

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void) {
  lapi_info_t info;
  void *places[64], *counters[64];
  int me, tasks, right = 1;
  memset(&info, 0, sizeof info);
  CHECK(LAPI_Init(&handle, &info));
  CHECK(LAPI_Qenv(handle, TASK_ID, &me));
  CHECK(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  CHECK(LAPI_Setcntr(handle, &arrived, 0));
  if (tasks > 64) return 1;
  CHECK(LAPI_Address_init(handle, data, places));
  CHECK(LAPI_Address_init(handle, &arrived, counters));
  if (tasks >= 2 && me < 2) {
    unsigned other = (unsigned)(1 - me);
    for (size_t count = 1; count <= MOST; count *= 10) {
      double start = seconds();
      for (int i = 0; i < REPETITIONS; i++) {
        if (me == 1) CHECK(LAPI_Waitcntr(handle, &arrived, 1, NULL));
        data[count - 1]++;
        CHECK(LAPI_Put(handle, other, count * sizeof(int), places[other], data, counters[other],
                       NULL, NULL));
        if (me == 0) CHECK(LAPI_Waitcntr(handle, &arrived, 1, NULL));
      }
      /* Both have added one at each turn. */
      if (me == 0) {
        double one = (seconds() - start) / (2 * REPETITIONS);
        right = right && data[count - 1] == 2 * REPETITIONS;
        printf("%8zu bytes %10.2f us %10.1f MB/s\n", count * sizeof(int), 1e6 * one,
               1e-6 * (double)(count * sizeof(int)) / one);
      }
      CHECK(LAPI_Fence(handle));
    }
  }
  CHECK(LAPI_Gfence(handle));
  if (me == 0) printf("pingpong: %d tasks: %s\n", tasks, right ? "right" : "wrong");
  CHECK(LAPI_Term(handle));
  return right ? 0 : 1;
}
