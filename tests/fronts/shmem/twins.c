/* SPDX-License-Identifier: BSD-3-Clause */

/* A counting tool in the program: it defines some functions and calls their twins. */

#define SHMEM_NO_INLINE
#include <pshmem.h>
#include <stdio.h>

static int puts_seen;
static int barriers_seen;
static long word;

void shmem_long_p(long* dest, long value, int pe) {
  ++puts_seen;
  pshmem_long_p(dest, value, pe);
}

void shmem_barrier_all(void) {
  ++barriers_seen;
  pshmem_barrier_all();
}

int main(void) {
  int failed;
  shmem_init();
  shmem_long_p(&word, 5 + pshmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  failed = puts_seen != 1 || barriers_seen != 1 ||
           word != 5 + (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
  if (failed) fprintf(stderr, "%d puts, %d barriers, %ld\n", puts_seen, barriers_seen, word);
  pshmem_finalize();
  return failed;
}
