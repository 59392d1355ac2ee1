/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Möbius through its public C interface. Sizes of 8, 4, 2 and 1 bytes use the inlined calls, as in
 * a program that knows its sizes; all others use mob_put() and mob_get().
 */

#include <mobius/mobius.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "loops.h"

const char probe_adapter_name[] = "mobius";

typedef struct library {
  const probe_cell_t* cell;
  mob_rank_t me;
  mob_rank_t peer;
  mob_mem_t region; /* for cells with memory that Möbius allocates */
  void* own;        /* for cells with malloc(): exposed, with its base at each rank */
  mob_exposed_t exposed;
  unsigned char* bases[PROBE_RANKS];
  int waits; /* wait for the flag in the library: the peer is on another host, or `own` is set */
  mob_mem_t board; /* one probe_note_t per rank, for notes of the peer */
} library_t;

const size_t probe_state_bytes = sizeof(library_t);

/* ---- steps ---- */

typedef uint64_t __attribute__((may_alias)) word8_t;
typedef uint32_t __attribute__((may_alias)) word4_t;
typedef uint16_t __attribute__((may_alias)) word2_t;
typedef uint8_t __attribute__((may_alias)) word1_t;

/* The data is complete at the peer before the signal. */
static PROBE_INLINE int tell(library_t* library, probe_transfer_t* transfer) {
  int error = mob_put8(library->peer, transfer->peer_flag, ++transfer->sent);
  return error != MOB_OK ? error : mob_flush(library->peer);
}

static PROBE_INLINE int await_flag(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  uint64_t expected = ++transfer->seen, value;
  int error;
  if (library->waits) return mob_wait_until_u8((uint64_t*)transfer->flag, MOB_GE, expected);
  do error = mob_get8(library->me, transfer->flag, &value);
  while (value != expected && error == MOB_OK);
  return error;
}

/* Everything for one width. `put_data` and `get_data` are expressions of `library` and `transfer`.
 */
#define DEFINE_LOOPS(width, put_data, get_data)                                              \
  static PROBE_INLINE int put_##width(probe_rank_t* rank, probe_transfer_t* transfer) {      \
    library_t* library = rank->state;                                                        \
    int error = put_data;                                                                    \
    return error != MOB_OK ? error : mob_flush(library->peer);                               \
  }                                                                                          \
  static PROBE_INLINE int get_##width(probe_rank_t* rank, probe_transfer_t* transfer) {      \
    library_t* library = rank->state;                                                        \
    return get_data;                                                                         \
  }                                                                                          \
  static PROBE_INLINE int turn_put_##width(probe_rank_t* rank, probe_transfer_t* transfer) { \
    int error = put_##width(rank, transfer);                                                 \
    return error != MOB_OK ? error : tell(rank->state, transfer);                            \
  }                                                                                          \
  static PROBE_INLINE int turn_get_##width(probe_rank_t* rank, probe_transfer_t* transfer) { \
    int error = get_##width(rank, transfer);                                                 \
    if (error == MOB_OK) error = mob_fence(); /* the peer gets what was stored here */       \
    return error != MOB_OK ? error : tell(rank->state, transfer);                            \
  }                                                                                          \
  PROBE_DEFINE_PINGPONG(pingpong_put_##width, turn_put_##width, await_flag)                  \
  PROBE_DEFINE_PINGPONG(pingpong_get_##width, turn_get_##width, await_flag)                  \
  PROBE_DEFINE_COMPLETION(completion_put_##width, put_##width)                               \
  PROBE_DEFINE_COMPLETION(completion_get_##width, get_##width)

#define DEFINE_VALUE_LOOPS(width)                                                            \
  static PROBE_INLINE int get_value##width(library_t* library, probe_transfer_t* transfer) { \
    word##width##_t value;                                                                   \
    int error = mob_get##width(library->peer, transfer->peer_data, &value);                  \
    /* Volatile: a loop of gets must store each of them, not the last one. */                \
    if (error == MOB_OK) *(volatile word##width##_t*)(void*)transfer->data = value;          \
    return error;                                                                            \
  }                                                                                          \
  DEFINE_LOOPS(width,                                                                        \
               mob_put##width(library->peer, transfer->peer_data,                            \
                              *(volatile word##width##_t*)(void*)transfer->data),            \
               get_value##width(library, transfer))

DEFINE_VALUE_LOOPS(8)
DEFINE_VALUE_LOOPS(4)
DEFINE_VALUE_LOOPS(2)
DEFINE_VALUE_LOOPS(1)
DEFINE_LOOPS(n, mob_put(library->peer, transfer->peer_data, transfer->data, transfer->bytes),
             mob_get(library->peer, transfer->peer_data, transfer->data, transfer->bytes))

/* By experiment, operation (put, get) and width. */
#define LOOPS_OF(experiment)                                                          \
  {                                                                                   \
    {experiment##_put_8, experiment##_put_4, experiment##_put_2, experiment##_put_1,  \
     experiment##_put_n},                                                             \
    {                                                                                 \
      experiment##_get_8, experiment##_get_4, experiment##_get_2, experiment##_get_1, \
          experiment##_get_n                                                          \
    }                                                                                 \
  }
static probe_loop_t* const kLoops[2][2][5] = {LOOPS_OF(pingpong), LOOPS_OF(completion)};

/* ---- adapter ---- */

probe_loop_t* probe_prepare(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  void *data = NULL, *flag = NULL;
  /* A place outside the region stays null; the first put reports it. */
  if (library->own != NULL) {
    data = library->bases[library->peer] + transfer->peer_data_offset;
    flag = library->bases[library->peer] + transfer->peer_flag_offset;
  } else {
    mob_mem_address(library->region, library->peer, transfer->peer_data_offset, &data);
    mob_mem_address(library->region, library->peer, transfer->peer_flag_offset, &flag);
  }
  transfer->peer_data = data;
  transfer->peer_flag = flag;

  int width = 4;
  switch (transfer->bytes) {
    case 8:
      width = 0;
      break;
    case 4:
      width = 1;
      break;
    case 2:
      width = 2;
      break;
    case 1:
      width = 3;
      break;
    default:
      break;
  }
  return kLoops[library->cell->experiment == PROBE_COMPLETION]
               [library->cell->operation == PROBE_GET][width];
}

const char* probe_open(probe_rank_t* rank, const probe_cell_t* cell, size_t bytes, void** region) {
  library_t* library = rank->state;
  if (cell->operation != PROBE_PUT && cell->operation != PROBE_GET)
    return "Möbius offers put and get; this operation is not offered by this version";
  if (cell->sync != PROBE_FLUSH)
    return "Möbius synchronises by flush; this way is not offered by this version";
  if (cell->memory != PROBE_ALLOCATE && cell->memory != PROBE_CREATE)
    return "this memory is not offered by this version";
  library->cell = cell;
  library->waits = !mob_is_host_mate(library->peer) || cell->memory == PROBE_CREATE;
  if (cell->memory == PROBE_CREATE) {
    if (posix_memalign(&library->own, 4096, (bytes + 4095) / 4096 * 4096) != 0) {
      library->own = NULL;
      return "no memory";
    }
    if (mob_expose(library->own, bytes, 0, &library->exposed) != MOB_OK ||
        mob_publish(MOB_TEAM_WORLD, library->own, (void**)library->bases) != MOB_OK)
      return mob_last_error();
    *region = library->own;
    return NULL;
  }
  if (mob_mem_alloc(bytes, &library->region) != MOB_OK) return mob_last_error();
  *region = mob_mem_local(library->region);
  return NULL;
}

int probe_close(probe_rank_t* rank) {
  library_t* library = rank->state;
  if (library->own == NULL) return mob_mem_free(library->region);
  int error = mob_barrier();
  if (error == MOB_OK) error = mob_withdraw(library->exposed);
  free(library->own);
  library->own = NULL;
  return error;
}

/* A barrier completes all puts; no target has to take part. */
int probe_settle(probe_rank_t* rank) {
  (void)rank;
  return mob_barrier();
}

int probe_exchange(probe_rank_t* rank, const probe_note_t* mine, probe_note_t* theirs) {
  library_t* library = rank->state;
  void* place = NULL;
  int error = mob_mem_address(library->board, library->peer, 0, &place);
  if (error == MOB_OK) error = mob_put(library->peer, place, mine, sizeof *mine);
  if (error == MOB_OK) error = mob_barrier();
  if (error != MOB_OK) return error;
  memcpy(theirs, mob_mem_local(library->board), sizeof *theirs);
  return mob_barrier(); /* from now on the next note may overwrite this one */
}

const char* probe_explain(probe_rank_t* rank, int error) {
  const char* text = mob_last_error();
  (void)rank;
  return text[0] != '\0' ? text : mob_status_name((mob_status_t)error);
}

void probe_abort(probe_rank_t* rank, int status) {
  (void)rank;
  mob_abort(status, "the probe gave up");
}

int probe_launch(int argc, char** argv, probe_main_t* main, const void* context) {
  probe_rank_t rank;
  library_t library;
  (void)argc;
  (void)argv;
  memset(&rank, 0, sizeof rank);
  memset(&library, 0, sizeof library);
  if (mob_init() != MOB_OK) {
    fprintf(stderr, "probe_mobius: %s\n", mob_last_error());
    return 1;
  }
  rank.rank = mob_rank();
  rank.size = mob_size();
  rank.state = &library;
  snprintf(rank.library, sizeof rank.library, "mobius");
  snprintf(rank.version, sizeof rank.version, "%s", mob_version());
  library.me = rank.rank;
  library.peer = 1 - rank.rank;
  if (rank.size == PROBE_RANKS && mob_mem_alloc(sizeof(probe_note_t), &library.board) != MOB_OK) {
    fprintf(stderr, "probe_mobius: %s\n", mob_last_error());
    return 1;
  }
  int status = main(&rank, context);
  if (rank.size == PROBE_RANKS) mob_mem_free(library.board);
  return mob_finalize() == MOB_OK ? status : 1;
}
