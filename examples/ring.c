/* SPDX-License-Identifier: BSD-3-Clause */

/* Each process puts a number into its right neighbour. Build and run:
 *   mobcc ring.c -o ring && mobius run -n 4 --tag ./ring */

#include <mobius/mobius.h>

#include <stdio.h>

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error()); /* ends the job and says why */
}

int main(void) {
  mob_mem_t mem;
  void* remote;
  check(mob_init());
  check(mob_mem_alloc(sizeof(uint64_t), &mem)); /* 8 bytes in every process, zeros */
  const mob_rank_t right = (mob_rank() + 1) % mob_size();
  check(mob_mem_address(mem, right, 0, &remote)); /* its address in the neighbour */
  check(mob_put8(right, remote, 100 + (uint64_t)mob_rank()));
  check(mob_barrier()); /* the puts of all are complete */
  printf("rank %d got %d\n", (int)mob_rank(), (int)*(uint64_t*)mob_mem_local(mem));
  check(mob_mem_free(mem));
  check(mob_finalize());
  return 0;
}
