/* SPDX-License-Identifier: BSD-3-Clause */

/* More static memory than is moved into shared memory: it is symmetric all the same, and takes no
 * memory that the program does not use. The program has a global variable of an old name. */

#define SHMEM_NO_OLD_NAMES
#include <sys/resource.h>

#include "check.h"

static char large[400 << 20];
static long word;
static uint64_t signal_word;
static int my_pe;

int main(void) {
  struct rusage usage;
  char back[64];
  const long rounds = 50;
  long i;
  shmem_init();
  my_pe = shmem_my_pe();
  memset(large + (200 << 20), my_pe + 1, sizeof back);
  shmem_barrier_all();
  shmem_getmem(back, large + (200 << 20), sizeof back, right_pe());
  CHECK(back[0] == right_pe() + 1 && back[63] == right_pe() + 1);
  shmem_char_p(&large[sizeof large - 1], (char)(my_pe + 5), right_pe());
  for (i = 0; i < rounds; ++i) shmem_long_atomic_inc(&word, right_pe());
  shmem_quiet();
  CHECK(shmem_long_atomic_fetch(&word, right_pe()) == rounds);
  shmem_putmem_signal(large, back, sizeof back, &signal_word, 3, SHMEM_SIGNAL_SET, right_pe());
  shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 3);
  shmem_barrier_all();
  CHECK(large[sizeof large - 1] == left_pe() + 5 && word == rounds);
  getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < 300 << 10);
  shmem_finalize();
  return 0;
}
