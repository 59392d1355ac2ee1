/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Measures the cost of a message between two hosts: rank 0 measures its link to the first rank of
 * another host, and prints the resulting setting, latency and bandwidth. Started by `mobius tune`.
 */

#include <mobius/mobius.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MANY 256                /* messages of a series */
#define SERIES 200              /* the fastest one counts: other work only adds time */
#define LARGE ((size_t)4 << 20) /* bytes of the transfer that measures bandwidth */
#define LARGE_SERIES 20

static void check(mob_status_t status) {
  if (status == MOB_OK) return;
  fprintf(stderr, "mobius tune: %s\n", mob_last_error());
  exit(1);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static char* there;
static char* here;
static mob_rank_t target;

static void puts_of_8(int count) {
  for (int i = 0; i < count; ++i) check(mob_put_nbi(target, there + 64 * i, here, 8));
  check(mob_flush(target));
}
static void put_large(int count) {
  (void)count;
  check(mob_put(target, there, here, LARGE));
  check(mob_flush(target));
}
static void get_large(int count) {
  (void)count;
  check(mob_get(target, there, here, LARGE));
}

static double best_ns(void (*run)(int), int count, int series) {
  double best = 0;
  for (int i = 0; i < series; ++i) {
    const double begin = now_ns();
    run(count);
    const double took = now_ns() - begin;
    if (best == 0 || took < best) best = took;
  }
  return best;
}

static void measure(void) {
  const double one = best_ns(puts_of_8, 1, SERIES);
  const double many = best_ns(puts_of_8, MANY, SERIES);
  const double message = many > one ? (many - one) / (MANY - 1) : 1;
  const double out = best_ns(put_large, 1, LARGE_SERIES);
  const double in = best_ns(get_large, 1, LARGE_SERIES);
  printf(
      "# rank 0 to rank %d: latency %.1f us, one more message %.2f us, out %.0f MB/s, in %.0f "
      "MB/s\n",
      target, one / 2000, message / 1000, (double)LARGE / out * 1000, (double)LARGE / in * 1000);
  printf("export MOBIUS_MESSAGE_NS=%.0f\n", message < 1 ? 1 : message);
}

int main(void) {
  mob_mem_t mem;
  void* address = NULL;
  check(mob_init());
  while (target < mob_size() && mob_is_host_mate(target)) ++target;
  if (mob_rank() == 0 && target == mob_size()) {
    fprintf(stderr, "mobius tune: the job is on one host; --hosts a,b -n 2 makes one of two\n");
  }
  if (target == mob_size()) {
    check(mob_finalize());
    return 1;
  }
  check(mob_mem_alloc(LARGE, &mem));
  check(mob_mem_address(mem, target, 0, &address));
  /* One message per put: this measures messages, not how puts share them. */
  check(mob_mem_schedule(mem, MOB_SCHEDULE_FIFO));
  there = address;
  here = calloc(1, LARGE);
  if (here == NULL) return 1;
  if (mob_rank() == 0) measure();
  check(mob_mem_free(mem)); /* collective: the other ranks wait here */
  free(here);
  check(mob_finalize());
  return 0;
}
