/* SPDX-License-Identifier: BSD-3-Clause */

/* Inlined functions called through pointers, some with values that the compiler knows: every level
 * of optimisation must accept that. */

#include <mobius/mobius.h>

static mob_status_t apply(mob_status_t (*put)(mob_rank_t, void*, uint64_t), void* at) {
  return put(1, at, 3);
}

static mob_status_t (*const flushes[])(mob_rank_t) = {mob_flush, mob_flush_local};

mob_status_t through_pointers(void* at, int which);

mob_status_t through_pointers(void* at, int which) {
  mob_status_t (*const put)(mob_rank_t, void*, uint64_t) = mob_put8;
  mob_status_t (*const get)(mob_rank_t, const void*, uint64_t*) = mob_get8;
  mob_status_t (*const add)(mob_rank_t, void*, uint64_t, uint64_t*) = mob_fetch_add8;
  mob_status_t (*const wait)(const uint64_t*, mob_compare_t, uint64_t) = mob_wait_until_u8;
  uint64_t word = 0;
  mob_status_t status = put(2, at, 5);
  if (status == MOB_OK) status = apply(mob_put8, at);
  if (status == MOB_OK) status = get(2, at, &word);
  if (status == MOB_OK) status = add(2, at, 1, &word);
  if (status == MOB_OK) status = wait(&word, MOB_EQ, 0);
  if (status == MOB_OK) status = flushes[1](3);
  return status != MOB_OK ? status : flushes[which & 1](0);
}
