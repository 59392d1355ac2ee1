/* SPDX-License-Identifier: BSD-3-Clause */

/* Producers and consumers: each rank makes items for its right neighbour and takes those of its
 * left one. Items go through a ring of slots in the consumer's memory. An item and its
 * signal travel in one call, mob_put_signal(); a rank with nothing to do sleeps. Build and run:
 *   mobcc producer.c -o producer && mobius run -n 4 ./producer */

#include <mobius/mobius.h>

#include <stddef.h>
#include <stdio.h>

enum { kItems = 5000, kSlots = 8, kWordsPerItem = 64 };

typedef struct {
  uint64_t words[kWordsPerItem];
} item_t;

/* The shared memory of each rank. */
typedef struct {
  uint64_t arrived; /* items that the left neighbour has put into `slots`, since the start */
  uint64_t taken;   /* items that the right neighbour has taken from its own */
  item_t slots[kSlots];
} box_t;

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

static uint64_t word_of(mob_rank_t producer, int64_t item, int i) {
  return ((uint64_t)producer << 48) + ((uint64_t)item << 8) + (uint64_t)i;
}

static box_t* box_of(mob_mem_t mem, mob_rank_t rank) {
  void* address;
  check(mob_mem_address(mem, rank, 0, &address));
  return address;
}

int main(void) {
  if (mob_init()) return fprintf(stderr, "%s\n", mob_last_error()), 1;
  const mob_rank_t size = mob_size(), rank = mob_rank();
  const mob_rank_t right = (rank + 1) % size, left = (rank + size - 1) % size;
  mob_mem_t mem;
  check(mob_mem_alloc(sizeof(box_t), &mem)); /* zeros: nothing arrived, nothing taken */
  box_t* own = mob_mem_local(mem);
  box_t* consumer = box_of(mem, right); /* addresses for puts, not to be dereferenced */
  box_t* producer = box_of(mem, left);

  int64_t produced = 0, consumed = 0;
  uint64_t wrong = 0;
  while (produced < kItems || consumed < kItems) {
    /* Wait for an item (arrived > consumed) or for a free slot at the consumer
     * (taken > produced - kSlots). */
    const int64_t beyond[2] = {consumed, produced - kSlots};
    const int finished[2] = {consumed == kItems, produced == kItems};
    const mob_wait_set_t set = {.words = &own->arrived,
                                .count = 2,
                                .type = MOB_INT64,
                                .compare = MOB_GT,
                                .values = beyond,
                                .excluded = finished};
    size_t which;
    check(mob_wait_until_any(&set, &which));
    if (which == 0) {
      const item_t* item = &own->slots[consumed % kSlots];
      for (int i = 0; i < kWordsPerItem; ++i) wrong += item->words[i] != word_of(left, consumed, i);
      ++consumed;
      /* Only a signal, no bytes: the slot is free. */
      check(mob_put_signal(left, NULL, NULL, 0, &producer->taken, 1, MOB_SIGNAL_ADD));
    } else {
      item_t item;
      for (int i = 0; i < kWordsPerItem; ++i) item.words[i] = word_of(rank, produced, i);
      check(mob_put_signal(right, &consumer->slots[produced % kSlots], &item, sizeof item,
                           &consumer->arrived, 1, MOB_SIGNAL_ADD));
      ++produced;
    }
  }

  uint64_t all_wrong = 0;
  check(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_UINT64, &wrong, &all_wrong, 1));
  if (rank == 0) {
    printf("producer: %d items through %d rings, in order: %s\n", (int)size * kItems, (int)size,
           all_wrong == 0 ? "right" : "WRONG");
  }
  check(mob_mem_free(mem)); /* waits for all ranks: no rank signals any more */
  check(mob_finalize());
  return all_wrong != 0;
}
