/* SPDX-License-Identifier: BSD-3-Clause */

/* A histogram whose bins are spread over all ranks. Each rank counts its own samples privately and
 * adds its counts to all ranks' bins, with one accumulate per owner; rare samples outside the range
 * are counted at once, with a fetch-and-add. Build and run: mobcc histogram.c -o histogram &&
 * mobius run -n 4 ./histogram */

#include <mobius/mobius.h>

#include <stdio.h>
#include <stdlib.h>

enum { kSamples = 100000, kBinsPerRank = 256 };

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

/* The samples of a rank: numbers from 0 on, most of them below `bins`. */
static uint64_t next_sample(uint64_t* state, uint64_t bins) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  const uint64_t random = *state >> 33;
  return random % 1000 == 0 ? bins : random % (bins / 2) + (random >> 16) % (bins / 2);
}

/* Samples of one rank, counted in bins 0 … bins - 1; returns how many lie outside. */
static uint64_t count(mob_rank_t rank, uint64_t bins, uint64_t* counts) {
  uint64_t state = (uint64_t)rank + 1, outside = 0;
  for (int i = 0; i < kSamples; ++i) {
    const uint64_t sample = next_sample(&state, bins);
    if (sample < bins) {
      ++counts[sample];
    } else {
      ++outside;
    }
  }
  return outside;
}

/* Whether the bins of all ranks have the counts that a single process computes. */
static int is_right(mob_mem_t mem, const uint64_t* outside_word) {
  const uint64_t bins = (uint64_t)mob_size() * kBinsPerRank;
  uint64_t* counts = calloc(bins, sizeof(uint64_t));
  uint64_t outside = 0, wrong = 0;
  if (counts == NULL) mob_abort(1, "no memory");
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) outside += count(rank, bins, counts);
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    uint64_t part[kBinsPerRank];
    void* remote;
    check(mob_mem_address(mem, rank, 0, &remote));
    check(mob_get(rank, remote, part, sizeof part));
    for (int i = 0; i < kBinsPerRank; ++i) wrong += part[i] != counts[rank * kBinsPerRank + i];
  }
  free(counts);
  return wrong == 0 && *outside_word == outside;
}

int main(void) {
  if (mob_init()) return fprintf(stderr, "%s\n", mob_last_error()), 1;
  const mob_rank_t size = mob_size(), rank = mob_rank();
  const uint64_t bins = (uint64_t)size * kBinsPerRank;

  /* The bins of each rank, and a word, of which only rank 0's is used, in an allocation of its own:
   * arrays are accumulated faster without atomic updates of words. All are zero. */
  mob_mem_t mem, word;
  void *remote, *outside_word;
  check(mob_mem_alloc(kBinsPerRank * sizeof(uint64_t), &mem));
  check(mob_mem_alloc(sizeof(uint64_t), &word));
  check(mob_mem_address(word, 0, 0, &outside_word));

  uint64_t* counts = calloc(bins, sizeof(uint64_t));
  if (counts == NULL) mob_abort(1, "no memory");
  const uint64_t outside = count(rank, bins, counts);
  uint64_t before;
  for (uint64_t i = 0; i < outside; ++i) check(mob_fetch_add8(0, outside_word, 1, &before));
  for (mob_rank_t i = 0; i < size; ++i) {
    const mob_rank_t owner = (rank + i) % size; /* so that the ranks begin at different owners */
    check(mob_mem_address(mem, owner, 0, &remote));
    check(mob_accumulate(owner, remote, counts + owner * kBinsPerRank, kBinsPerRank, MOB_UINT64,
                         MOB_SUM));
  }
  free(counts);         /* accumulates are locally complete when they return */
  check(mob_barrier()); /* and complete at their targets after a barrier, or a flush */

  int right = 1;
  if (rank == 0) {
    right = is_right(mem, (const uint64_t*)outside_word);
    printf("histogram: %d samples in %d bins: %s\n", (int)size * kSamples, (int)bins,
           right ? "right" : "WRONG");
  }
  check(mob_mem_free(word));
  check(mob_mem_free(mem));
  check(mob_finalize());
  return !right;
}
