/* SPDX-License-Identifier: BSD-3-Clause */

/* One row of the tables of docs/scaling.md: the time of mob_init(), and of a put to every rank with
 * a barrier after it, at the slowest process; and the largest private memory of a process after
 * each.
 *
 *   build/release/bin/mobius run -n 64 build/release/bin/scale_bench
 *   build/release/bin/mobius run -n 64 --virtual-hosts 2 build/release/bin/scale_bench
 */

#include <mobius/mobius.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Private dirty memory as the kernel counts it; 0 if it does not tell. */
static double private_kib(void) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  double kib = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Private_Dirty: %lf kB", &kib) == 1) break;
  }
  if (file != NULL) fclose(file);
  return kib;
}

static void need(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

int main(void) {
  enum { kInit, kPuts, kBefore, kAfter, kFigures };
  double own[kFigures];
  double most[kFigures];
  mob_mem_t mem = NULL;
  const double started = now_ms();
  if (mob_init() != MOB_OK) {
    fprintf(stderr, "%s\n", mob_last_error());
    return 1;
  }
  own[kInit] = now_ms() - started;
  own[kBefore] = private_kib();
  const mob_rank_t size = mob_size();
  const size_t bytes = (size_t)size * sizeof(uint64_t);
  need(mob_mem_alloc(bytes, &mem));
  need(mob_barrier());
  const double puts = now_ms();
  for (mob_rank_t i = 0; i < size; ++i) {
    const mob_rank_t rank =
        (mob_rank() + i) % size; /* so that ranks do not all put to the same one */
    void* place = NULL;
    need(mob_mem_address(mem, rank, (size_t)mob_rank() * sizeof(uint64_t), &place));
    need(mob_put8(rank, place, (uint64_t)mob_rank() + 1));
  }
  need(mob_flush_all());
  need(mob_barrier());
  own[kPuts] = now_ms() - puts;
  own[kAfter] = private_kib();
  const uint64_t* words = mob_mem_local(mem);
  for (mob_rank_t i = 0; i < size; ++i) {
    if (words[i] != (uint64_t)i + 1) mob_abort(1, "a put is not there");
  }
  need(mob_allreduce(MOB_TEAM_WORLD, MOB_MAX, MOB_DOUBLE, own, most, kFigures));
  if (mob_rank() == 0) {
    printf("%" PRId32
           " processes: mob_init %.1f ms, put to all and barrier %.1f ms, "
           "private memory %.0f, then %.0f KiB\n",
           size, most[kInit], most[kPuts], most[kBefore], most[kAfter]);
  }
  need(mob_finalize());
  return 0;
}
