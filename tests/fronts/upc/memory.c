/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory, copies, locks and strict references. */
#include <sched.h>
#include <upc.h>

#include "upc_tests.h"

/* shared int counter; strict shared int flags[2 * THREADS]; shared [] int slots[64]; */
static uint64_t counter;
static uint64_t flags;
static uint64_t slots;
static uint64_t pointers; /* shared void *shared pointers[THREADS]; */
static const mob_upc_object_t objects[] = {
    {"counter", &counter, sizeof(int), 1, 1, 0, 0, NULL, 0, HERE},
    {"flags", &flags, 64, 1, 2, MOB_UPC_TIMES_THREADS, 0, NULL, 0, HERE},
    {"slots", &slots, sizeof(int), 0, 64, 0, 0, NULL, 0, HERE},
    {"pointers", &pointers, sizeof(mob_upc_ptr_t), 1, 1, MOB_UPC_TIMES_THREADS, 0, NULL, 0, HERE},
};
REGISTER(objects, NULL)

static mob_upc_ptr_t counter_at(void) { return mob_upc_pointer(counter, 0, 0); }
static mob_upc_ptr_t flag_at(int i) { return mob_upc_element_cyclic(flags, (uint64_t)i, 64); }
static mob_upc_ptr_t pointer_at(int i) {
  return mob_upc_element_cyclic(pointers, (uint64_t)i, sizeof(mob_upc_ptr_t));
}

static void allocations(void) {
  const int right = (MYTHREAD + 1) % THREADS;
  int i, j;
  mob_upc_ptr_t all, mine, other;
  CHECK(mob_upc_is_null(upc_all_alloc(0, 8)) && mob_upc_is_null(upc_all_alloc(8, 0)));
  CHECK(mob_upc_is_null(upc_global_alloc(0, 8)) && mob_upc_is_null(upc_alloc(0)));
  upc_free(mob_upc_null());
  all = upc_all_alloc((size_t)(5 * THREADS + 1), 3 * sizeof(int));
  CHECK(all.thread == 0 && all.phase == 0 && all.offset % 64 == 0);
  for (i = 0; i < 15 * THREADS + 3; ++i) {
    other = mob_upc_add_blocked(all, i, sizeof(int), 3);
    if (mob_upc_is_mine(other)) mob_upc_put_int(other, i);
  }
  mob_upc_barrier(HERE);
  for (i = 0; i < 15 * THREADS + 3; ++i) {
    CHECK(mob_upc_get_int(mob_upc_add_blocked(all, i, sizeof(int), 3)) == i);
  }
  /* Blocks of one thread, which another reads and frees. */
  for (j = 0; j < 3; ++j) {
    const size_t bytes = j == 0 ? 40 : j == 1 ? 100000 : 3000000;
    mine = upc_alloc(bytes);
    CHECK(mob_upc_is_mine(mine) && mine.phase == 0);
    memset(mob_upc_to_private(mine), MYTHREAD + 1, bytes);
    mob_upc_put_shared(pointer_at(MYTHREAD), mine);
    mob_upc_barrier(HERE);
    other = mob_upc_get_shared(pointer_at(right));
    CHECK(mob_upc_get_char(other) == right + 1);
    CHECK(mob_upc_get_char(mob_upc_add_indefinite(other, (int64_t)bytes - 1, 1)) == right + 1);
    mob_upc_put_char(mob_upc_add_indefinite(other, (int64_t)bytes - 1, 1), 99);
    mob_upc_barrier(HERE);
    CHECK(((char*)mob_upc_to_private(mine))[bytes - 1] == 99);
    mob_upc_barrier(HERE);
    if (MYTHREAD % 2 == 0) {
      upc_free(other);
    } else {
      upc_free(other);
    }
    mob_upc_barrier(HERE);
  }
  /* One thread allocates, all use, another frees. */
  for (j = 0; j < 6; ++j) {
    if (MYTHREAD == j % THREADS) {
      mob_upc_put_shared(pointer_at(0),
                         upc_global_alloc((size_t)THREADS, (size_t)(64 << (j % 10))));
    }
    mob_upc_barrier(HERE);
    other = mob_upc_get_shared(pointer_at(0));
    CHECK(!mob_upc_is_null(other) && other.thread == 0);
    upc_memset(mob_upc_pointer(other.offset, (uint32_t)right, 0), j, (size_t)(64 << (j % 10)));
    mob_upc_barrier(HERE);
    CHECK(*(char*)mob_upc_local(other.offset + (uint64_t)(64 << (j % 10)) - 1) == j);
    mob_upc_barrier(HERE);
    if (MYTHREAD == (j + 1) % THREADS) upc_free(other);
  }
  upc_all_free(all);
  upc_all_free(mob_upc_null());
}

/* Every thread allocates and frees at random; what is freed is found again, and no block overlaps.
 */
static void heap_use(void) {
  enum { kBlocks = 50 };
  mob_upc_ptr_t blocks[kBlocks];
  size_t sizes[kBlocks];
  unsigned seed = (unsigned)MYTHREAD * 77 + 5;
  int i, round;
  size_t k;
  memset(blocks, 0, sizeof blocks);
  for (round = 0; round < 150; ++round) {
    seed = seed * 1103515245 + 12345;
    i = (int)(seed >> 16) % kBlocks;
    if (mob_upc_is_null(blocks[i])) {
      sizes[i] = (seed >> 8) % 5000 + 1;
      blocks[i] = upc_global_alloc((size_t)THREADS, sizes[i]);
      CHECK(!mob_upc_is_null(blocks[i]));
      memset(mob_upc_local(blocks[i].offset), i + 1, sizes[i]);
    } else {
      for (k = 0; k < sizes[i]; ++k) CHECK(((char*)mob_upc_local(blocks[i].offset))[k] == i + 1);
      upc_free(blocks[i]);
      blocks[i] = mob_upc_null();
    }
  }
  for (i = 0; i < kBlocks; ++i) upc_free(blocks[i]);
  mob_upc_barrier(HERE);
  /* All of it is one piece again: a block of nearly the whole heap of 16 MiB (CMakeLists.txt). */
  if (MYTHREAD == 0) {
    mob_upc_ptr_t most = upc_global_alloc((size_t)THREADS, (size_t)15 << 20);
    CHECK(!mob_upc_is_null(most));
    CHECK(mob_upc_is_null(upc_global_alloc((size_t)THREADS, (size_t)15 << 20)));
    upc_free(most);
  }
  mob_upc_barrier(HERE);
  /* A collective call makes the heap grow. */
  {
    mob_upc_ptr_t large = upc_all_alloc((size_t)THREADS, (size_t)20 << 20);
    CHECK(!mob_upc_is_null(large));
    ((char*)mob_upc_local(large.offset))[(20 << 20) - 1] = 1;
    CHECK(mob_upc_is_null(upc_all_alloc((size_t)THREADS, (size_t)1 << 41)));
    upc_all_free(large);
  }
}

static void copies(void) {
  enum { kMost = 70000 };
  static const size_t sizes[] = {0, 1, 7, 64, 2048, 2049, 4097, kMost};
  static char buffer[kMost], back[kMost];
  const uint32_t right = (uint32_t)((MYTHREAD + 1) % THREADS);
  const uint32_t left = (uint32_t)((MYTHREAD + THREADS - 1) % THREADS);
  mob_upc_ptr_t all = upc_all_alloc((size_t)THREADS, 2 * kMost);
  size_t i, k;
  for (i = 0; i < COUNT(sizes); ++i) {
    for (k = 0; k < sizes[i]; ++k) buffer[k] = (char)(k * 7 + (size_t)MYTHREAD + i);
    upc_memput(mob_upc_pointer(all.offset, right, 0), buffer, sizes[i]);
    memset(back, 0, sizeof back);
    upc_memget(back, mob_upc_pointer(all.offset, right, 0), sizes[i]);
    CHECK(memcmp(buffer, back, sizes[i]) == 0);
    mob_upc_barrier(HERE);
    /* From the left neighbour's part to the right neighbour's. */
    upc_memcpy(mob_upc_pointer(all.offset + kMost, right, 0), mob_upc_pointer(all.offset, left, 0),
               sizes[i]);
    mob_upc_barrier(HERE);
    upc_memget(back, mob_upc_pointer(all.offset + kMost, (uint32_t)MYTHREAD, 0), sizes[i]);
    for (k = 0; k < sizes[i]; ++k) {
      CHECK(back[k] == (char)(k * 7 + (size_t)((MYTHREAD + 3 * THREADS - 3) % THREADS) + i));
    }
    mob_upc_barrier(HERE);
    upc_memset(mob_upc_pointer(all.offset, right, 0), 0x1ab, sizes[i]);
    mob_upc_barrier(HERE);
    for (k = 0; k < sizes[i]; ++k) CHECK(((unsigned char*)mob_upc_local(all.offset))[k] == 0xab);
    mob_upc_barrier(HERE);
  }
  upc_all_free(all);
}

static void locks(void) {
  mob_upc_ptr_t lock = upc_all_lock_alloc();
  mob_upc_ptr_t mine = upc_global_lock_alloc();
  int i, tries = 0;
  CHECK(!mob_upc_is_null(lock) && mob_upc_is_mine(mine));
  for (i = 0; i < 60; ++i) {
    if (i % 3 == 0) {
      while (!upc_lock_attempt(lock)) ++tries, sched_yield();
    } else {
      upc_lock(lock);
    }
    mob_upc_put_int(counter_at(), mob_upc_get_int(counter_at()) + 1);
    upc_unlock(lock);
  }
  mob_upc_barrier(HERE);
  CHECK(mob_upc_get_int(counter_at()) == 60 * THREADS);
  /* Several at once, not in order. */
  mob_upc_put_shared(pointer_at(MYTHREAD), mine);
  mob_upc_barrier(HERE);
  for (i = 0; i < THREADS; ++i) upc_lock(mob_upc_get_shared(pointer_at(i)));
  mob_upc_put_int(counter_at(), mob_upc_get_int(counter_at()) + 1);
  for (i = 0; i < THREADS; ++i) upc_unlock(mob_upc_get_shared(pointer_at(i)));
  mob_upc_barrier(HERE);
  CHECK(mob_upc_get_int(counter_at()) == 61 * THREADS);
  /* A held lock fails an attempt. */
  if (MYTHREAD == 0) upc_lock(lock);
  mob_upc_barrier(HERE);
  if (MYTHREAD != 0) CHECK(upc_lock_attempt(lock) == 0);
  mob_upc_barrier(HERE);
  if (MYTHREAD == 0) upc_unlock(lock);
  upc_lock_free(mob_upc_get_shared(pointer_at((MYTHREAD + 1) % THREADS)));
  upc_lock_free(mob_upc_null());
  upc_all_lock_free(lock);
  for (i = 0; i < 200; ++i) {
    mine = upc_global_lock_alloc();
    upc_lock(mine);
    upc_unlock(mine);
    upc_lock_free(mine);
  }
}

/* Store buffering with a strict read behind a relaxed write, and message passing with a strict flag
 * around relaxed data: what the memory model forbids does not happen. */
static void litmus(void) {
  int i, n = 100;
  const int me = MYTHREAD;
  mob_upc_ptr_t data, flag, x, y;
  if (THREADS < 2) return;
  for (i = 0; i < THREADS; ++i) {
    if (mob_upc_here(flag_at(i)) == NULL) n = 20;
  }
  data = mob_upc_member(flag_at(1), 8);
  flag = flag_at(0);
  for (i = 1; i <= n; ++i) {
    if (me == 0) {
      mob_upc_put_int(data, i);
      mob_upc_put_int(mob_upc_member(data, 4), 2 * i);
      mob_upc_put_strict_int(flag, i);
      while (mob_upc_get_strict_int(flag_at(1)) != i) sched_yield();
    } else if (me == 1) {
      while (mob_upc_get_strict_int(flag) != i) sched_yield();
      CHECK(mob_upc_get_int(data) == i && mob_upc_get_int(mob_upc_member(data, 4)) == 2 * i);
      mob_upc_put_strict_int(flag_at(1), i);
    }
  }
  mob_upc_barrier(HERE);
  /* Each thread writes first its own memory, then the other's. */
  for (i = 1; i <= 2 * n; ++i) {
    x = mob_upc_member(flag_at(i > n), 16);
    y = mob_upc_member(flag_at(i <= n), 16);
    if (me < 2) {
      int seen;
      if (me == 0) {
        mob_upc_put_int(x, i);
        seen = mob_upc_get_strict_int(y);
      } else {
        mob_upc_put_strict_int(y, i);
        seen = mob_upc_get_int(x);
      }
      mob_upc_put_int(mob_upc_element_indefinite(slots, (uint64_t)me, sizeof(int)), seen);
    }
    mob_upc_barrier(HERE);
    CHECK(mob_upc_get_int(mob_upc_element_indefinite(slots, 0, sizeof(int))) == i ||
          mob_upc_get_int(mob_upc_element_indefinite(slots, 1, sizeof(int))) == i);
    mob_upc_barrier(HERE);
  }
}

MOB_UPC_API int mob_upc_main(void);
int mob_upc_main(void) {
  allocations();
  heap_use();
  copies();
  locks();
  litmus();
  return 0;
}
