/* SPDX-License-Identifier: BSD-3-Clause */

/* The partners of transfers. In a leg every rank transfers to one other rank or to none. */

#include "../suite.h"

static int two_legs(int size) {
  (void)size;
  return 2;
}

static int one_leg(int size) {
  (void)size;
  return 1;
}

static int all_legs(int size) { return size - 1; }

/* Rank 0 to rank 1 and back; the others are idle. */
static void pair(int rank, int size, int leg, int* to, int* from) {
  (void)size;
  if (rank > 1) return;
  if (rank == leg)
    *to = 1 - rank;
  else
    *from = 1 - rank;
}

/* All ranks to the next one, at the same time. */
static void ring(int rank, int size, int leg, int* to, int* from) {
  (void)leg;
  *to = (rank + 1) % size;
  *from = (rank + size - 1) % size;
}

/* Rank i of the lower half with rank i of the upper half, all pairs at the same time. */
static void pairs(int rank, int size, int leg, int* to, int* from) {
  int half = size / 2, low = rank < half;
  if (rank >= 2 * half) return;
  int peer = low ? rank + half : rank - half;
  if (low == (leg == 0))
    *to = peer;
  else
    *from = peer;
}

/* All pairs of ranks, in rounds. */
static void everyone(int rank, int size, int leg, int* to, int* from) {
  *to = (rank + leg + 1) % size;
  *from = (rank + size - leg - 1) % size;
}

static suite_partner_block_t pair_block = {
    {SUITE_PARTNER, "pair", "ranks 0 and 1, there and back", NULL}, 2, two_legs, pair};
static suite_partner_block_t one_way_block = {
    {SUITE_PARTNER, "one-way", "rank 0 to rank 1", NULL}, 2, one_leg, pair};
static suite_partner_block_t ring_block = {
    {SUITE_PARTNER, "ring", "each rank to the next one, all at once", NULL}, 2, one_leg, ring};
static suite_partner_block_t pairs_block = {
    {SUITE_PARTNER, "pairs", "lower half and upper half, there and back", NULL},
    2,
    two_legs,
    pairs};
/* Like the pairs above; path.c refuses it unless the ranks of each pair are on different hosts. */
static suite_partner_block_t hosts_block = {
    {SUITE_PARTNER, "hosts", "pairs of ranks of different hosts, there and back", NULL},
    2,
    two_legs,
    pairs};
static suite_partner_block_t everyone_block = {
    {SUITE_PARTNER, "all", "each rank to every other one, in turn", NULL}, 2, all_legs, everyone};
SUITE_REGISTER(pair_block)
SUITE_REGISTER(one_way_block)
SUITE_REGISTER(ring_block)
SUITE_REGISTER(pairs_block)
SUITE_REGISTER(hosts_block)
SUITE_REGISTER(everyone_block)
