/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Accumulate by active messages: every task adds its vector to one of every other task. The header
 * handler returns a buffer for the data that is to arrive; the completion handler adds it.
 *
 *   moblapicc accumulate.c -o accumulate && mobius run -n 4 accumulate
 */

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 5000, ROUNDS = 20, ADD = 1 };

static lapi_handle_t handle;
static double sum[ELEMENTS];
static pthread_mutex_t sum_lock = PTHREAD_MUTEX_INITIALIZER;

static void check(int code, const char* call) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s: %s\n", call, text);
  exit(1);
}
#define CHECK(call) check(call, #call)

typedef struct {
  size_t first;
  size_t count;
} header_t;

typedef struct {
  header_t header;
  double* data;
} arrival_t;

/* Runs in a thread of its own, so it may take locks, wait and communicate. */
static void add(lapi_handle_t* hndl, void* user_info) {
  arrival_t* arrival = user_info;
  (void)hndl;
  pthread_mutex_lock(&sum_lock);
  for (size_t i = 0; i < arrival->header.count; i++) {
    sum[arrival->header.first + i] += arrival->data[i];
  }
  pthread_mutex_unlock(&sum_lock);
  free(arrival->data);
  free(arrival);
}

static void* on_add(lapi_handle_t* hndl, void* uhdr, uint* uhdr_len, ulong* msg_len,
                    compl_hndlr_t** comp_h, void** user_info) {
  arrival_t* arrival = malloc(sizeof *arrival);
  (void)hndl;
  (void)uhdr_len;
  if (arrival == NULL) exit(1);
  memcpy(&arrival->header, uhdr, sizeof arrival->header);
  arrival->data = malloc(*msg_len);
  *comp_h = add;
  *user_info = arrival;
  return arrival->data;
}

int main(void) {
  lapi_info_t info;
  lapi_cntr_t sent, added;
  static double mine[ELEMENTS];
  int me, tasks, right = 1;
  memset(&info, 0, sizeof info);
  CHECK(LAPI_Init(&handle, &info));
  CHECK(LAPI_Qenv(handle, TASK_ID, &me));
  CHECK(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  CHECK(LAPI_Addr_set(handle, (void*)(uintptr_t)on_add, ADD));
  CHECK(LAPI_Setcntr(handle, &sent, 0));
  CHECK(LAPI_Setcntr(handle, &added, 0));
  for (size_t i = 0; i < ELEMENTS; i++) mine[i] = (double)(me + 1);
  CHECK(LAPI_Gfence(handle)); /* all tasks have the handler */
  for (int round = 0; round < ROUNDS; round++) {
    for (int task = 0; task < tasks; task++) {
      header_t header = {0, (round % 2) != 0 ? 10 : ELEMENTS};
      CHECK(LAPI_Amsend(handle, (uint)task, (void*)ADD, &header, sizeof header, mine,
                        header.count * sizeof(double), NULL, &sent, &added));
      CHECK(LAPI_Waitcntr(handle, &sent, 1, NULL));
    }
  }
  CHECK(LAPI_Waitcntr(handle, &added, ROUNDS * tasks, NULL));
  CHECK(LAPI_Gfence(handle));
  for (size_t i = 0; i < ELEMENTS; i++) {
    double rounds = i < 10 ? ROUNDS : ROUNDS / 2;
    right = right && sum[i] == rounds * tasks * (tasks + 1) / 2;
  }
  if (me == 0) printf("accumulate: %d tasks: %s\n", tasks, right ? "right" : "wrong");
  CHECK(LAPI_Term(handle));
  return right ? 0 : 1;
}
