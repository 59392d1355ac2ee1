/* SPDX-License-Identifier: BSD-3-Clause */

/* The last task ends without LAPI_Term(). Each call of the others that needs it returns
 * LAPI_ERR_TIMEOUT after calling the error handler, none waits for ever, and operations on living
 * tasks continue. Needs three tasks or more, and --on-death error. */

#include <lapi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lapi_handle_t handle;
static int me;
static int tasks;
static int failures;
static lapi_cntr_t from_left; /* counted by the left neighbour among the living */
static lapi_cntr_t ended;     /* counted by all other living tasks when they have finished */
static lapi_cntr_t never;     /* never counted */

/* The last code that the error handler got, and the number of its calls. */
static int told;
static int told_code;
static int told_source;

static void take_error(lapi_handle_t* hndl, int* code, lapi_err_t* type, int* task, int* source) {
  if (*hndl != handle || *type != COM_ERR || *task != me) ++failures;
  ++told;
  told_code = *code;
  told_source = *source;
}

static void expect(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "task %d: %s\n", me, what);
  ++failures;
}

/* Expects the result of a call that needs the dead task. */
static void expect_dead(int code, const char* what) {
  char text[LAPI_MAX_ERR_STRING];
  if (code != LAPI_ERR_TIMEOUT) {
    LAPI_Msg_string(code, text);
    fprintf(stderr, "task %d: %s: %s\n", me, what, text);
    ++failures;
  }
  expect(told == 1 && told_code == LAPI_ERR_TIMEOUT, "the error handler was not told once");
  expect(told_source == tasks - 1, "the error handler was told of another task");
  told = 0;
}

static void* throw_away(lapi_handle_t* hndl, void* uhdr, unsigned* uhdr_len, unsigned long* msg_len,
                        compl_hndlr_t** comp_h, void** user_info) {
  (void)hndl, (void)uhdr, (void)uhdr_len, (void)user_info;
  *comp_h = NULL;
  ((lapi_return_info_t*)(void*)msg_len)->ctl_flags = LAPI_BURY_MSG;
  return NULL;
}

int main(void) {
  lapi_info_t info;
  void* words[64];
  void* counters[64];
  void* ends[64];
  lapi_cntr_t completion;
  long value = 7;
  /* On the stack, because the heap of a dead task is shared memory that still exists. */
  long word = 0;
  int code;
  unsigned dead;
  memset(&info, 0, sizeof info);
  info.err_hndlr = take_error;
  info.lib_vers = LAST_LIB;
  if (LAPI_Init(&handle, &info) != LAPI_SUCCESS) return 1;
  LAPI_Qenv(handle, TASK_ID, &me);
  LAPI_Qenv(handle, NUM_TASKS, &tasks);
  if (tasks < 3 || tasks > 64) return 1;
  dead = (unsigned)tasks - 1;
  LAPI_Addr_set(handle, (void*)(uintptr_t)throw_away, 1);
  LAPI_Setcntr(handle, &from_left, 0);
  LAPI_Setcntr(handle, &ended, 0);
  LAPI_Setcntr(handle, &never, 0);
  LAPI_Setcntr(handle, &completion, 0);
  LAPI_Address_init(handle, &word, words);
  LAPI_Address_init(handle, &from_left, counters);
  LAPI_Address_init(handle, &ended, ends);
  LAPI_Gfence(handle);
  if (me == (int)dead) _exit(0);

  expect_dead(LAPI_Waitcntr(handle, &never, 1, NULL), "LAPI_Waitcntr");
  do {
    code =
        LAPI_Amsend(handle, dead, (void*)1, NULL, 0, &value, sizeof value, NULL, NULL, &completion);
    if (code == LAPI_SUCCESS) code = LAPI_Waitcntr(handle, &completion, 1, NULL);
  } while (code == LAPI_SUCCESS);
  expect_dead(code, "LAPI_Amsend");
  do {
    code = LAPI_Put(handle, dead, sizeof value, words[dead], &value, NULL, NULL, &completion);
    if (code == LAPI_SUCCESS) code = LAPI_Waitcntr(handle, &completion, 1, NULL);
  } while (code == LAPI_SUCCESS);
  expect_dead(code, "LAPI_Put");
  do {
    code =
        LAPI_Rmw64(handle, FETCH_AND_ADD, dead, words[dead], (long long*)(void*)&value, NULL, NULL);
  } while (code == LAPI_SUCCESS);
  expect_dead(code, "LAPI_Rmw64");
  expect_dead(LAPI_Gfence(handle), "LAPI_Gfence");
  expect_dead(LAPI_Nopoll_wait(handle, &never, 1, NULL), "LAPI_Nopoll_wait");

  /* From here on no call waits for it. */
  expect(LAPI_Purge_totask(handle, dead) == LAPI_SUCCESS, "LAPI_Purge_totask");
  expect(LAPI_Put(handle, dead, sizeof value, words[dead], &value, NULL, NULL, NULL) ==
             LAPI_ERR_TGT_PURGED,
         "a put to a purged task");
  code =
      LAPI_Put(handle, (unsigned)((me + 1) % (tasks - 1)), sizeof value,
               words[(me + 1) % (tasks - 1)], &value, counters[(me + 1) % (tasks - 1)], NULL, NULL);
  expect(code == LAPI_SUCCESS, "a put to a living task");
  expect(LAPI_Waitcntr(handle, &from_left, 1, NULL) == LAPI_SUCCESS, "a wait for a living task");
  expect(word == value, "the value of a living task");
  expect(LAPI_Fence(handle) == LAPI_SUCCESS, "LAPI_Fence");
  expect(told == 0, "the error handler was told of a purged task");
  /* A task that leaves looks dead to tasks that have not finished yet. */
  for (unsigned other = 0; other < dead; ++other) {
    if (other != (unsigned)me) {
      LAPI_Put(handle, other, 0, NULL, NULL, ends[other], NULL, NULL);
    }
  }
  LAPI_Waitcntr(handle, &ended, (int)dead - 1, NULL); /* fails if another task has finished */
  LAPI_Term(handle);                                  /* may fail: not all tasks are there */
  if (failures == 0) printf("task %d: right\n", me);
  return failures != 0;
}
