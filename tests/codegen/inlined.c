/* SPDX-License-Identifier: BSD-3-Clause */

/* One function per inlined operation, for check_inline.py to examine. */

#include <mobius/mobius.h>

mob_status_t check_put8(mob_rank_t rank, void* remote, uint64_t value) {
  return mob_put8(rank, remote, value);
}
mob_status_t check_put4(mob_rank_t rank, void* remote, uint32_t value) {
  return mob_put4(rank, remote, value);
}
mob_status_t check_put2(mob_rank_t rank, void* remote, uint16_t value) {
  return mob_put2(rank, remote, value);
}
mob_status_t check_put1(mob_rank_t rank, void* remote, uint8_t value) {
  return mob_put1(rank, remote, value);
}
mob_status_t check_get8(mob_rank_t rank, const void* remote, uint64_t* value) {
  return mob_get8(rank, remote, value);
}
mob_status_t check_get4(mob_rank_t rank, const void* remote, uint32_t* value) {
  return mob_get4(rank, remote, value);
}
mob_status_t check_get2(mob_rank_t rank, const void* remote, uint16_t* value) {
  return mob_get2(rank, remote, value);
}
mob_status_t check_get1(mob_rank_t rank, const void* remote, uint8_t* value) {
  return mob_get1(rank, remote, value);
}
mob_status_t check_flush(mob_rank_t rank) { return mob_flush(rank); }
mob_status_t check_flush_all(void) { return mob_flush_all(); }
mob_status_t check_fence(void) { return mob_fence(); }

mob_status_t check_fetch_add8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_fetch_add8(rank, remote, value, old);
}
mob_status_t check_swap8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_swap8(rank, remote, value, old);
}
mob_status_t check_compare_swap8(mob_rank_t rank, void* remote, uint64_t expected, uint64_t desired,
                                 uint64_t* old) {
  return mob_compare_swap8(rank, remote, expected, desired, old);
}

mob_status_t check_put_nbi(mob_rank_t rank, void* remote, const void* from, size_t bytes) {
  return mob_put_nbi(rank, remote, from, bytes);
}
mob_status_t check_get_nbi(mob_rank_t rank, const void* remote, void* to, size_t bytes) {
  return mob_get_nbi(rank, remote, to, bytes);
}

/* The loops whose instructions docs/performance.md counts. */
void check_loop8(mob_rank_t rank, uint64_t* remote, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) (void)mob_put8(rank, remote + i, i);
}

/* Loops whose results go to a local variable, whose address needs no check. */
uint64_t check_loop_get8(mob_rank_t rank, const uint64_t* remote, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    (void)mob_get8(rank, remote + i, &value);
    sum += value;
  }
  return sum;
}
uint64_t check_loop_add8(mob_rank_t rank, uint64_t* remote, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t old = 0;
    (void)mob_fetch_add8(rank, remote + i, 1, &old);
    sum += old;
  }
  return sum;
}
uint64_t check_loop_compare_swap8(mob_rank_t rank, uint64_t* remote, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t old = 0;
    (void)mob_compare_swap8(rank, remote + i, i, 1, &old);
    sum += old;
  }
  return sum;
}
