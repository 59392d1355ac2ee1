/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A producer and its consumers: task 0 puts items into slots of each other task, which signals a
 * free slot through a counter. No task sends a message that must be received.
 *
 *   moblapicc producer.c -o producer && mobius run -n 4 producer
 */

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, ITEMS = 1000, MOST_TASKS = 64 };

static lapi_handle_t handle;

static void check(int code, const char* call) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s: %s\n", call, text);
  exit(1);
}
#define CHECK(call) check(call, #call)

/* Other tasks write here; any memory works. */
static long slots[SLOTS];
static lapi_cntr_t filled;            /* at a consumer: items in slots */
static lapi_cntr_t freed[MOST_TASKS]; /* at the producer: free slots of each consumer */
static long results[MOST_TASKS];      /* at the producer: the result of each consumer */

static void produce(int tasks, void** slot_tab, void** filled_tab) {
  lapi_cntr_t sent;
  CHECK(LAPI_Setcntr(handle, &sent, 0));
  for (long item = 0; item < ITEMS; item++) {
    for (int task = 1; task < tasks; task++) {
      long value = item * task;
      long* slot = (long*)slot_tab[task] + item % SLOTS;
      CHECK(LAPI_Waitcntr(handle, &freed[task], 1, NULL));
      CHECK(LAPI_Put(handle, (unsigned)task, sizeof value, slot, &value, filled_tab[task], &sent,
                     NULL));
      CHECK(LAPI_Waitcntr(handle, &sent, 1, NULL)); /* `value` may be reused */
    }
  }
}

static void consume(int me, void** freed_tab, void** result_tab) {
  lapi_cntr_t* my_freed = (lapi_cntr_t*)freed_tab[0] + me;
  long sum = 0;
  lapi_cntr_t done;
  for (long item = 0; item < ITEMS; item++) {
    CHECK(LAPI_Waitcntr(handle, &filled, 1, NULL));
    sum += slots[item % SLOTS];
    CHECK(LAPI_Put(handle, 0, 0, NULL, NULL, my_freed, NULL, NULL));
  }
  CHECK(LAPI_Setcntr(handle, &done, 0));
  CHECK(LAPI_Put(handle, 0, sizeof sum, (long*)result_tab[0] + me, &sum, NULL, NULL, &done));
  CHECK(LAPI_Waitcntr(handle, &done, 1, NULL));
}

int main(void) {
  lapi_info_t info;
  void *slot_tab[MOST_TASKS], *filled_tab[MOST_TASKS], *freed_tab[MOST_TASKS],
      *result_tab[MOST_TASKS];
  int me, tasks, right = 1;
  memset(&info, 0, sizeof info);
  CHECK(LAPI_Init(&handle, &info));
  CHECK(LAPI_Qenv(handle, TASK_ID, &me));
  CHECK(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  if (tasks > MOST_TASKS) {
    fprintf(stderr, "producer: at most %d tasks\n", MOST_TASKS);
    return 1;
  }
  CHECK(LAPI_Setcntr(handle, &filled, 0));
  for (int task = 0; task < tasks; task++) CHECK(LAPI_Setcntr(handle, &freed[task], SLOTS));
  CHECK(LAPI_Address_init(handle, slots, slot_tab));
  CHECK(LAPI_Address_init(handle, &filled, filled_tab));
  CHECK(LAPI_Address_init(handle, freed, freed_tab));
  CHECK(LAPI_Address_init(handle, results, result_tab));
  if (me == 0) {
    produce(tasks, slot_tab, filled_tab);
  } else {
    consume(me, freed_tab, result_tab);
  }
  CHECK(LAPI_Gfence(handle));
  if (me == 0) {
    for (int task = 1; task < tasks; task++) {
      right = right && results[task] == (long)task * ITEMS * (ITEMS - 1) / 2;
    }
    printf("producer: %d consumers: %s\n", tasks - 1, right ? "right" : "wrong");
  }
  CHECK(LAPI_Term(handle));
  return right ? 0 : 1;
}
