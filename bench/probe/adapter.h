/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_ADAPTER_H
#define PROBE_ADAPTER_H

/**
 * @file
 * The functions that a probe needs from a library. A program links the shared sources with one
 * adapter_*.c, which defines the functions below; a new library needs one such file.
 *
 * A launch has two ranks. Each has one *region* of exposed memory. The data is inside it between
 * two guards, the same number of bytes from the start of a page in every library, with an 8-byte
 * *flag* directly behind them (at the next multiple of 8, so that a small message and its flag
 * share a cache line):
 *
 *     region │ guard below │ data (bytes) │ pad │ flag │ guard above │
 *
 * Data moves from region to region: put copies the own data over the peer's, get the peer's over
 * the own. So in a ping-pong the same bytes go back and forth, as in paper 1, and they really move:
 * each rank reads the bytes that the other rank wrote last.
 *
 * The experiments' loops are in loops.h and are compiled inside the adapter, so that a library's
 * inline functions are inlined and no function pointer is called between two operations. So that
 * every library does the same work, all adapters follow this protocol:
 *
 *   turn   (flush)  data, flush, then the flag, flush: data is complete before the signal
 *   turn   (lock)   lock, data, unlock, then lock, flag, unlock
 *   turn   (active) data and the call that completes them (fence; start … complete); no flag
 *   await  (flush, lock)  poll the own flag, served as the library needs it
 *   await  (active) the matching call (fence; post … wait)
 *   operate         data and their completion, nothing else
 */

#include <stddef.h>
#include <stdint.h>

enum { PROBE_TEXT_BYTES = 384, PROBE_NOTE_WORDS = 6, PROBE_RANKS = 2 };

typedef enum probe_experiment { PROBE_PINGPONG, PROBE_COMPLETION } probe_experiment_t;
typedef enum probe_operation {
  PROBE_PUT,
  PROBE_GET,
  PROBE_SENDRECV,
  PROBE_COPY,
  PROBE_LINE
} probe_operation_t;
typedef enum probe_sync {
  PROBE_FLUSH,
  PROBE_FENCE,
  PROBE_PSCW,
  PROBE_LOCK,
  PROBE_NONE
} probe_sync_t;
typedef enum probe_memory { PROBE_ALLOCATE, PROBE_CREATE, PROBE_LOCAL } probe_memory_t;

/** One thing to measure, and its name: `experiment:operation:sync:memory`. */
typedef struct probe_cell {
  char name[64];
  probe_experiment_t experiment;
  probe_operation_t operation;
  probe_sync_t sync;
  probe_memory_t memory;
} probe_cell_t;

/** A message between the ranks, between measurements. */
typedef struct probe_note {
  uint64_t words[PROBE_NOTE_WORDS];
  char text[PROBE_TEXT_BYTES];
} probe_note_t;

/** One of the two ranks. Filled in by probe_launch(). */
typedef struct probe_rank {
  int rank;
  int size;
  char library[64];                 /* the library's own short name */
  char version[PROBE_TEXT_BYTES];   /* one line */
  void* state;                      /* the adapter's own */
  char explained[PROBE_TEXT_BYTES]; /* where probe_open() and probe_explain() may write */
} probe_rank_t;

/** The place of the data of one size. The shared code sets all but `peer_data` and `peer_flag`. */
typedef struct probe_transfer {
  size_t bytes;
  unsigned char* data;     /* own data */
  uint64_t* flag;          /* own flag */
  size_t peer_data_offset; /* peer's data and flag, from the start of its region */
  size_t peer_flag_offset;
  unsigned char* peer_data; /* for adapters that use addresses: set by probe_prepare() */
  uint64_t* peer_flag;
  uint64_t sent; /* last flag sent by this rank; the next is one more */
  uint64_t seen; /* last flag awaited by it; the value of its own flag */
} probe_transfer_t;

/**
 * A timed loop, made by loops.h: runs legs of the experiment in a row.
 *
 * @param first  the rank that takes the first leg
 * @param legs   how many; a repetition of a ping-pong has two, of a completion one
 * @return 0, or an error for probe_explain()
 */
typedef int probe_loop_t(probe_rank_t* rank, probe_transfer_t* transfer, int first, uint64_t legs);

/** The probe of one rank; the result is its exit status. */
typedef int probe_main_t(probe_rank_t* rank, const void* context);

/* ---- functions that an adapter defines ---- */

/** Name for the records: the file's name without "adapter_". */
extern const char probe_adapter_name[];

/** The size of what `rank->state` points to. Each cell gets a copy of it, made before probe_open(),
 * because several cells may be open at once. */
extern const size_t probe_state_bytes;

/** Joins, runs `main` once per rank (in the calling process, or in threads of it), leaves.
 *  @return exit status: that of `main`; the largest if several ran here */
int probe_launch(int argc, char** argv, probe_main_t* main, const void* context);

/** Both ranks give a note and receive the other's. Collective; implies nothing about regions.
 *  @return 0 or an error */
int probe_exchange(probe_rank_t* rank, const probe_note_t* mine, probe_note_t* theirs);

/** Prepares a cell and its region. Collective.
 *  @param region  out: own region of at least `bytes` bytes
 *  @return null, or the reason why not (static, or in `rank->explained`); then nothing stays open
 */
const char* probe_open(probe_rank_t* rank, const probe_cell_t* cell, size_t bytes, void** region);

/** Chooses the loop for a transfer of the open cell. Local. */
probe_loop_t* probe_prepare(probe_rank_t* rank, probe_transfer_t* transfer);

/** Collective. Makes the peer's earlier operations visible to plain loads, and earlier plain stores
 *  visible to the peer's later operations. Must serve the peer's operations while it waits, as a
 *  barrier of the library does.
 *  @return 0 or an error */
int probe_settle(probe_rank_t* rank);

/** Frees the objects of probe_open(). Collective. @return 0 or an error */
int probe_close(probe_rank_t* rank);

/** Text for an error of the calling rank (static, or in `rank->explained`). */
const char* probe_explain(probe_rank_t* rank, int error);

/** Ends both ranks at once with this exit status. */
__attribute__((noreturn)) void probe_abort(probe_rank_t* rank, int status);

#endif
