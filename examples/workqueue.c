/* SPDX-License-Identifier: BSD-3-Clause */

/* A queue of tasks of very different length. There is no master: a counter has the number of the
 * next task, and a free rank takes it with one fetch-and-add. Build and run:
 *   mobcc workqueue.c -o workqueue && mobius run -n 4 ./workqueue */

#include <mobius/mobius.h>

#include <stdio.h>

enum { kTasks = 2000, kNumbersPerTask = 50 };

/* The memory of the rank that hosts the queue. */
typedef struct {
  uint64_t next; /* number of the next task */
  uint64_t results[kTasks];
} queue_t;

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

/* The work: steps of the Collatz sequences from some numbers down to 1. */
static uint64_t run_task(uint64_t task) {
  uint64_t steps = 0;
  for (uint64_t i = 1; i <= kNumbersPerTask; ++i) {
    for (uint64_t n = task * kNumbersPerTask + i; n != 1; ++steps) {
      n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    }
  }
  return steps;
}

int main(void) {
  if (mob_init()) return fprintf(stderr, "%s\n", mob_last_error()), 1;
  const mob_rank_t host = 0; /* hosts the queue, and works, too */
  const int is_host = mob_rank() == host;
  mob_mem_t mem;
  void* address;
  check(mob_mem_alloc(is_host ? sizeof(queue_t) : 0, &mem)); /* zeros */
  check(mob_mem_address(mem, host, 0, &address));
  queue_t* queue = address; /* its address in the host: for puts and gets, not to be dereferenced */

  uint64_t done = 0;
  for (;;) {
    uint64_t task;
    check(mob_fetch_add8(host, &queue->next, 1, &task));
    if (task >= kTasks) break;
    check(mob_put8(host, &queue->results[task], run_task(task)));
    ++done;
  }

  /* The reduction tells the host the number of finished tasks; puts are complete after the barrier.
   */
  uint64_t all_done = 0;
  check(mob_reduce(MOB_TEAM_WORLD, host, MOB_SUM, MOB_UINT64, &done, &all_done, 1));
  check(mob_barrier());
  int wrong = 0;
  if (is_host) {
    const queue_t* own = mob_mem_local(mem);
    wrong = all_done != kTasks;
    for (uint64_t i = 0; i < kTasks; ++i) wrong += own->results[i] != run_task(i);
    printf("workqueue: %d tasks by %d ranks, each done once: %s\n", kTasks, (int)mob_size(),
           wrong == 0 ? "right" : "WRONG");
  }
  check(mob_mem_free(mem));
  check(mob_finalize());
  return wrong != 0;
}
