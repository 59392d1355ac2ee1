/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The limits: the machine's speed without any library. The ranks are two threads of one process,
 * and each reads and writes the other's region by plain loads and stores.
 *
 *   pingpong:line:none:local    payload and flag with stores alone, without a fence: the fastest
 * way to pass bytes to another core. A cache line per direction. completion:copy:none:local  memcpy
 * from one region to the other by one thread.
 *
 * Regions are shared anonymous mappings, whose pages are of the same kind as those of memory shared
 * between processes.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, gnu_get_libc_version */
#endif

#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adapter.h"
#include "loops.h"

const char probe_adapter_name[] = "limits";

typedef struct shared {
  pthread_barrier_t barrier;
  probe_note_t notes[PROBE_RANKS];
  unsigned char* regions[PROBE_RANKS]; /* while a cell is opened */
  probe_main_t* main;
  const void* context;
} shared_t;

typedef struct library {
  shared_t* shared;
  const probe_cell_t* cell;
  unsigned char *region, *peer;
  size_t bytes;
} library_t;

const size_t probe_state_bytes = sizeof(library_t);

typedef struct thread {
  probe_rank_t rank;
  library_t library;
  int status;
} thread_t;

/* ---- steps ---- */

typedef uint64_t __attribute__((may_alias)) word8_t;
typedef uint32_t __attribute__((may_alias)) word4_t;
typedef uint16_t __attribute__((may_alias)) word2_t;
typedef uint8_t __attribute__((may_alias)) word1_t;

static PROBE_INLINE int await_flag(probe_rank_t* rank, probe_transfer_t* transfer) {
  uint64_t expected = ++transfer->seen;
  (void)rank;
  while (__atomic_load_n(transfer->flag, __ATOMIC_ACQUIRE) != expected) continue;
  return 0;
}

#define DEFINE_LOOP(width, store_data)                                                   \
  static PROBE_INLINE int turn_##width(probe_rank_t* rank, probe_transfer_t* transfer) { \
    (void)rank;                                                                          \
    store_data;                                                                          \
    __atomic_store_n(transfer->peer_flag, ++transfer->sent, __ATOMIC_RELEASE);           \
    return 0;                                                                            \
  }                                                                                      \
  PROBE_DEFINE_PINGPONG(line_##width, turn_##width, await_flag)

#define STORE_WORD(width) \
  *(volatile word##width##_t*)(void*)transfer->peer_data = *(word##width##_t*)(void*)transfer->data

DEFINE_LOOP(8, STORE_WORD(8))
DEFINE_LOOP(4, STORE_WORD(4))
DEFINE_LOOP(2, STORE_WORD(2))
DEFINE_LOOP(1, STORE_WORD(1))
DEFINE_LOOP(n, memcpy(transfer->peer_data, transfer->data, transfer->bytes))

static PROBE_INLINE int copy(probe_rank_t* rank, probe_transfer_t* transfer) {
  (void)rank;
  memcpy(transfer->peer_data, transfer->data, transfer->bytes);
  __asm__ __volatile__("" ::: "memory"); /* each copy of a loop is made */
  return 0;
}

PROBE_DEFINE_COMPLETION(completion_copy, copy)

/* ---- adapter ---- */

probe_loop_t* probe_prepare(probe_rank_t* rank, probe_transfer_t* transfer) {
  const library_t* library = rank->state;
  transfer->peer_data = library->peer + transfer->peer_data_offset;
  transfer->peer_flag = (uint64_t*)(void*)(library->peer + transfer->peer_flag_offset);
  if (library->cell->operation == PROBE_COPY) return completion_copy;
  switch (transfer->bytes) {
    case 8:
      return line_8;
    case 4:
      return line_4;
    case 2:
      return line_2;
    case 1:
      return line_1;
    default:
      return line_n;
  }
}

int probe_settle(probe_rank_t* rank) {
  shared_t* shared = ((library_t*)rank->state)->shared;
  pthread_barrier_wait(&shared->barrier);
  return 0;
}

const char* probe_open(probe_rank_t* rank, const probe_cell_t* cell, size_t bytes, void** region) {
  library_t* library = rank->state;
  int line = cell->experiment == PROBE_PINGPONG && cell->operation == PROBE_LINE;
  int copied = cell->experiment == PROBE_COMPLETION && cell->operation == PROBE_COPY;
  if ((!line && !copied) || cell->sync != PROBE_NONE || cell->memory != PROBE_LOCAL)
    return "the limits are pingpong:line:none:local and completion:copy:none:local";
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int error = errno;
  library->shared->regions[rank->rank] = memory;
  probe_settle(rank);
  library->peer = library->shared->regions[1 - rank->rank];
  probe_settle(rank); /* the next cell may use the place now */
  if (memory == MAP_FAILED) {
    snprintf(rank->explained, sizeof rank->explained, "mmap of %zu bytes: %s", bytes,
             strerror(error));
    return rank->explained;
  }
  library->cell = cell;
  library->region = memory;
  library->bytes = bytes;
  *region = memory;
  return NULL;
}

int probe_close(probe_rank_t* rank) {
  const library_t* library = rank->state;
  probe_settle(rank); /* the peer may still use it */
  return munmap(library->region, library->bytes) == 0 ? 0 : errno;
}

int probe_exchange(probe_rank_t* rank, const probe_note_t* mine, probe_note_t* theirs) {
  shared_t* shared = ((library_t*)rank->state)->shared;
  shared->notes[rank->rank] = *mine;
  probe_settle(rank);
  *theirs = shared->notes[1 - rank->rank];
  return probe_settle(rank);
}

const char* probe_explain(probe_rank_t* rank, int error) {
  snprintf(rank->explained, sizeof rank->explained, "%s", strerror(error));
  return rank->explained;
}

void probe_abort(probe_rank_t* rank, int status) {
  (void)rank;
  _Exit(status);
}

static void* run_thread(void* argument) {
  thread_t* thread = argument;
  const shared_t* shared = thread->library.shared;
  thread->status = shared->main(&thread->rank, shared->context);
  return NULL;
}

int probe_launch(int argc, char** argv, probe_main_t* main, const void* context) {
  shared_t shared;
  thread_t threads[PROBE_RANKS];
  pthread_t second;
  (void)argc;
  (void)argv;
  memset(&shared, 0, sizeof shared);
  memset(threads, 0, sizeof threads);
  shared.main = main;
  shared.context = context;
  for (int i = 0; i < PROBE_RANKS; i++) {
    threads[i].rank.rank = i;
    threads[i].rank.size = PROBE_RANKS;
    threads[i].library.shared = &shared;
    threads[i].rank.state = &threads[i].library;
    snprintf(threads[i].rank.library, sizeof threads[i].rank.library, "limit");
    snprintf(threads[i].rank.version, sizeof threads[i].rank.version, "glibc %s",
             gnu_get_libc_version());
  }
  int error = pthread_barrier_init(&shared.barrier, NULL, PROBE_RANKS);
  if (error == 0) error = pthread_create(&second, NULL, run_thread, &threads[1]);
  if (error != 0) {
    fprintf(stderr, "probe_limits: cannot start a second thread: %s\n", strerror(error));
    return 1;
  }
  run_thread(&threads[0]);
  pthread_join(second, NULL);
  pthread_barrier_destroy(&shared.barrier);
  return threads[0].status > threads[1].status ? threads[0].status : threads[1].status;
}
