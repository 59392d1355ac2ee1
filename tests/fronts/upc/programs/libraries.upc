/* SPDX-License-Identifier: BSD-3-Clause
 * The libraries of the language, called from UPC: their headers are UPC there. */
#include "check.h"

#include <bupc_collectivev.h>
#include <upc_atomic.h>
#include <upc_castable.h>
#include <upc_collective.h>
#include <upc_io.h>
#include <upc_nb.h>
#include <upc_tick.h>

#if __UPC_IO__ != 2 || !defined(UPC_ASYNC) || !__UPC_ATOMIC__ || !__UPC_CASTABLE__ || !__UPC_NB__
#error "a program finds the optional libraries by these macros"
#endif

#define COUNT 4

shared [COUNT] int all[COUNT * THREADS];
shared [] int source[COUNT];
shared int sum;
shared long counter;

static void collectives(void) {
  const int mode = UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC;
  int i;
  if (MYTHREAD == 0)
    for (i = 0; i < COUNT; i++) source[i] = 10 + i;
  upc_all_broadcast(all, source, COUNT * sizeof(int), mode);
  for (i = 0; i < COUNT * THREADS; i++) CHECK(all[i] == 10 + i % COUNT);
  upc_all_reduceI(&sum, all, UPC_ADD, COUNT * THREADS, COUNT, NULL, mode);
  CHECK(sum == 46 * THREADS);
  CHECK(bupc_allv_reduce_all(int, MYTHREAD, UPC_ADD) == THREADS * (THREADS - 1) / 2);
}

static void updates(void) {
  upc_atomicdomain_t *domain = upc_all_atomicdomain_alloc(UPC_LONG, UPC_ADD | UPC_GET, 0);
  upc_lock_t *lock = upc_all_lock_alloc();
  long mine = MYTHREAD + 1;
  upc_atomic_relaxed(domain, NULL, UPC_ADD, &counter, &mine, NULL);
  upc_lock(lock);
  sum++;
  upc_unlock(lock);
  upc_barrier;
  CHECK(counter == THREADS * (THREADS + 1) / 2 && sum == 47 * THREADS);
  upc_all_lock_free(lock);
  upc_all_atomicdomain_free(domain);
}

static void copies(void) {
  const int next = (MYTHREAD + 1) % THREADS;
  int here[COUNT], *there;
  upc_handle_t handle = upc_memget_nb(here, &all[COUNT * next], sizeof here);
  upc_tick_t start = upc_ticks_now();
  upc_sync(handle);
  CHECK(here[2] == 12);
  there = upc_cast(&all[COUNT * next]);
  CHECK(there == NULL || there[1] == 11);
  CHECK(upc_ticks_to_ns(upc_ticks_now() - start) > 0);
}

int main(void) {
  collectives();
  updates();
  copies();
  DONE();
  return 0;
}
