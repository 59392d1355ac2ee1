/* SPDX-License-Identifier: BSD-3-Clause */

/* Each process puts a number into its right neighbour. Build and run:
 *   mobcc ring.c -o ring && mobius run -n 4 --tag ./ring */

#include <mobius/mobius.h>

#include <stdio.h>

int main(void) {
  mob_mem_t mem;
  void* remote;
  if (mob_init() || mob_mem_alloc(4096, &mem)) return fprintf(stderr, "%s\n", mob_last_error()), 1;
  const mob_rank_t right = (mob_rank() + 1) % mob_size();
  mob_mem_address(mem, right, 0, &remote);               /* the address in its owner */
  mob_put8(right, remote, (uint64_t)(100 + mob_rank())); /* the neighbour does nothing */
  mob_barrier();
  printf("rank %d got %d\n", (int)mob_rank(), *(int*)mob_mem_local(mem));
  return mob_finalize();
}
