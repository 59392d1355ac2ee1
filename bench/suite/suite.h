/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_H
#define SUITE_H

/**
 * @file
 * The blocks of the test-suite (paper 3, §2), of which a measurement is put together:
 *
 *   communicator × memory × synchronisation × transfer × datatype × partner, used by an experiment.
 *
 * A block is one static structure in one file, made known by SUITE_REGISTER(). Files in blocks/ and
 * experiments/ serve every library, those in mpi/ and mobius/ one. A program holds the shared files
 * and the folder of one library; blocks that the library lacks make a cell `refused`.
 *
 * Functions return 0 or an error of the library, which suite_library.explain() puts into words.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
  SUITE_TEXT_BYTES = 384,
  SUITE_NAME_BYTES = 192,
  SUITE_WORD_BYTES = 24,
  SUITE_MAX_OPTIONS = 12,
  SUITE_GUARD_BYTES = 4096, /* on both sides of every area */
  SUITE_NOBODY = -1
};

/** One thing to measure: `experiment:transfer:sync:memory[:option=value]…`. */
typedef struct suite_cell {
  char name[SUITE_NAME_BYTES];
  char experiment[SUITE_WORD_BYTES];
  char transfer[SUITE_WORD_BYTES];
  char sync[SUITE_WORD_BYTES];
  char memory[SUITE_WORD_BYTES];
  struct {
    char name[SUITE_WORD_BYTES];
    char value[SUITE_WORD_BYTES];
  } options[SUITE_MAX_OPTIONS];
  int option_count;
  /* Cells behind this one in its array that differ from it in policy= and n= alone, where the
   * library can change the policy: an experiment may measure them all by turns. Its call for them
   * then has nothing left to do. */
  int turns;
} suite_cell_t;

/** Value of an option, or `fallback`. */
const char* suite_option(const suite_cell_t* cell, const char* name, const char* fallback);
/** The same as a number; what is no number is `fallback`. */
uint64_t suite_option_number(const suite_cell_t* cell, const char* name, uint64_t fallback);

/** The process and its program. */
typedef struct suite_job {
  int rank, size; /* among the processes that were started together */
  char library[64];
  char version[SUITE_TEXT_BYTES];
  int child;             /* it was spawned by another process of the suite, or joins another job */
  int argc;              /* arguments as given, for children */
  char** argv;           /* likewise */
  const char* spawn_on;  /* host for processes that are spawned; null: as the library likes */
  const char* port_file; /* by which two jobs meet; null: there is no other job */
  const char* interface; /* of plain sockets; null: the first that is one */
  int joins;             /* this one is the job that connects */
} suite_job_t;

/** Who takes part in a cell. `rank` and `size` count all of them, also where the library's own
 * object has two groups. */
typedef struct suite_comm {
  suite_job_t* job;
  int rank, size;
  int leader;  /* rank that times and writes records: set by suite_path_open() */
  void* state; /* the library's */
} suite_comm_t;

/** Bytes that are moved together: runs of bytes, ascending and apart. */
typedef struct suite_run_of_bytes {
  size_t offset, bytes;
} suite_run_of_bytes_t;

/** A datatype: how the bytes of one transfer lie, and the library's object for that. */
typedef struct suite_type {
  size_t bytes;  /* that move */
  size_t extent; /* from the first to behind the last */
  suite_run_of_bytes_t* runs;
  size_t run_count;
  size_t element_bytes; /* 1, 4 or 8: what accumulates add */
  int is_double;
  int is_regular;   /* blocks at one stride */
  const char* name; /* of the block */
  size_t block_bytes, stride_bytes;
  void* native;
  void* native_element;
} suite_type_t;

/**
 * Memory that others transfer to and from. It starts with one flag of 8 bytes per rank.
 * `bases[r]` is what a transfer adds to an offset to address rank r: set by the memory block.
 */
typedef struct suite_window {
  suite_comm_t* comm;
  size_t bytes;
  unsigned char* base;
  uint64_t* bases;
  uint64_t* sent; /* last flag sent to each rank */
  uint64_t* seen; /* last flag awaited from each rank */
  void* state;    /* the memory block's or the library's */
  void* epoch;    /* the synchronisation's */
} suite_window_t;

/** What every block begins with. */
typedef enum suite_kind {
  SUITE_COMMUNICATOR,
  SUITE_MEMORY,
  SUITE_SYNC,
  SUITE_TRANSFER,
  SUITE_TYPE,
  SUITE_PARTNER,
  SUITE_EXPERIMENT,
  SUITE_KINDS
} suite_kind_t;

typedef struct suite_block {
  suite_kind_t kind;
  const char* name;
  const char* summary;
  struct suite_block* next; /* the registry's */
} suite_block_t;

/** Makes a communicator. `processes` is how many are to be started together for it, 0: any. */
typedef struct suite_communicator_block {
  suite_block_t head;
  int processes;
  int (*open)(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm);
  int (*close)(suite_comm_t* comm);
} suite_communicator_block_t;

/** Makes a window of `window->bytes` for `window->comm`; sets base, bases and state. Collective. */
typedef struct suite_memory_block {
  suite_block_t head;
  int (*open)(suite_window_t* window);
  int (*close)(suite_window_t* window);
} suite_memory_block_t;

/** Orders transfers. `to` is the rank that the caller transfers to (or gets from), `from` the one
 * that does so with the caller; either may be SUITE_NOBODY. All ranks call enter and leave. */
typedef struct suite_sync_block {
  suite_block_t head;
  int passive; /* targets take no part: who is to know gets a flag (suite_library.tell) */
  int (*open)(suite_window_t* window); /* the rest may be null */
  int (*enter)(suite_window_t* window, int to, int from);
  int (*leave)(suite_window_t* window, int to, int from); /* complete at the target */
  int (*close)(suite_window_t* window);
  /** Completes what was transferred to `to`, and stays in the epoch. Null where none can. */
  int (*complete)(suite_window_t* window, int to);
} suite_sync_block_t;

/** What a transfer does to memory, for verification. */
typedef enum suite_effect {
  SUITE_PUTS,
  SUITE_GETS,
  SUITE_ADDS,       /* target += local */
  SUITE_FETCH_ADDS, /* the same, and result := target before */
  SUITE_SWAPS,      /* target := local where it held `result`, which becomes what it held */
  SUITE_MESSAGES    /* two-sided */
} suite_effect_t;

/** Where one of several transfers lies, from where the first could begin at each side. */
typedef struct suite_place {
  size_t far, near;
} suite_place_t;

/**
 * Moves the bytes of a type. One-sided: `start`, whose buffers are in use until leave() (or, with
 * `wait`, until that), and `start_all`, which does the same in a loop, as a program would, of types
 * that are one run; or `reach`, a pointer to the target's memory (null: an error)
 * for loads. Two-sided: `exchange`, complete when it returns; or `post`, complete after `wait`.
 * `stream` moves `count` pieces that are `step` bytes apart, and `acknowledge` has those who
 * received tell.
 */
typedef struct suite_transfer_block {
  suite_block_t head;
  suite_effect_t effect;
  int (*start)(suite_window_t* window, const suite_type_t* type, int to, void* local,
               size_t remote_offset, void* result);
  int (*start_all)(suite_window_t* window, const suite_type_t* type, int to, unsigned char* local,
                   size_t remote_offset, const suite_place_t* places, size_t count, void* result);
  int (*wait)(suite_window_t* window);
  int (*exchange)(suite_window_t* window, const suite_type_t* type, int to, int from,
                  const void* out, void* in);
  int one_word; /* of 4 or 8 bytes only */
  int (*post)(suite_window_t* window, const suite_type_t* type, int to, int from, const void* out,
              void* in);
  int (*stream)(suite_window_t* window, const suite_type_t* type, int to, int from, int count,
                size_t step, const void* out, void* in);
  int (*acknowledge)(suite_window_t* window, int to, int from);
  void* (*reach)(suite_window_t* window, int to, size_t remote_offset);
} suite_transfer_block_t;

/** Whether both sides take part. */
static inline int suite_is_two_sided(const suite_transfer_block_t* transfer) {
  return transfer->exchange != NULL || transfer->post != NULL;
}

/** Lays out `bytes` bytes: fills runs, extent and element of `type`.
 *  @return null, or why that cannot be */
typedef struct suite_type_block {
  suite_block_t head;
  const char* (*lay_out)(const suite_cell_t* cell, size_t bytes, suite_type_t* type);
} suite_type_block_t;

/** Who transfers to whom in each leg of a repetition. */
typedef struct suite_partner_block {
  suite_block_t head;
  int least; /* ranks that it needs */
  int (*legs)(int size);
  void (*partners)(int rank, int size, int leg, int* to, int* from);
} suite_partner_block_t;

struct suite_session;

/** Measures a cell at all sizes and writes its records. Collective.
 *  @return null, or why the cell was refused (nothing stays open then) */
typedef struct suite_experiment_block {
  suite_block_t head;
  const char* (*measure)(struct suite_session* session, const suite_cell_t* cell);
} suite_experiment_block_t;

/** Whole pages of plain memory, for free(); null if there are none. */
void* suite_pages(size_t bytes);

void suite_register(suite_block_t* block);
const suite_block_t* suite_find(suite_kind_t kind, const char* name);
const suite_block_t* suite_blocks(suite_kind_t kind);

#define SUITE_REGISTER(block)                                       \
  __attribute__((constructor)) static void register_##block(void) { \
    suite_register((suite_block_t*)&(block));                       \
  }

/* … and a transfer that one function starts and, if not null, one waits for: its name, what it does
 * (SUITE_PUTS …), what it is called there, how it is waited for, and whether it moves one word. */
#define SUITE_REGISTER_TRANSFER(identifier, does, summary, waits, word)                           \
  static int identifier##_all(suite_window_t* window, const suite_type_t* type, int to,           \
                              unsigned char* local, size_t remote_offset,                         \
                              const suite_place_t* places, size_t count, void* result) {          \
    int error = 0;                                                                                \
    for (size_t i = 0; i < count && error == 0; i++)                                              \
      error = identifier(window, type, to, local + places[i].near, remote_offset + places[i].far, \
                         result);                                                                 \
    return error;                                                                                 \
  }                                                                                               \
  SUITE_REGISTER_TRANSFERS(identifier, does, summary, waits, word)

/* … and that identifier_all() starts several of. */
#define SUITE_REGISTER_TRANSFERS(identifier, does, summary, waits, word) \
  static suite_transfer_block_t identifier##_block = {                   \
      .head = {SUITE_TRANSFER, #identifier, summary, NULL},              \
      .effect = does,                                                    \
      .start = identifier,                                               \
      .start_all = identifier##_all,                                     \
      .wait = waits,                                                     \
      .one_word = word};                                                 \
  SUITE_REGISTER(identifier##_block)

/** What a library gives besides its blocks. One per program. */
typedef struct suite_library {
  const char* name;
  int (*init)(int* argc, char*** argv, suite_job_t* job);
  int (*leave)(suite_job_t* job);
  void (*abort)(suite_job_t* job, int status);
  /** Communicator of all processes started together, for what the suite itself tells them. */
  int (*world)(suite_job_t* job, suite_comm_t* comm);
  int (*barrier)(suite_comm_t* comm);
  int (*share)(suite_comm_t* comm, int root, void* data, size_t bytes);
  int (*gather)(suite_comm_t* comm, const void* mine, void* all, size_t bytes); /* at every rank */
  const char* (*explain)(int error);
  int (*make_type)(suite_type_t* type); /* may be null, as free_type */
  void (*free_type)(suite_type_t* type);
  /** Collective. Plain loads then see what transfers wrote before, and the other way round. */
  int (*settle)(suite_window_t* window);
  /** After leave() of a passive synchronisation: tells `to` that the data are there. */
  int (*tell)(suite_window_t* window, const suite_sync_block_t* sync, int to);
  int (*await)(suite_window_t* window, int from);
  /** Has what this process transfers to the window go by a policy, from now on. Null where there
   * are none, or who starts the program chooses. */
  int (*rule)(suite_window_t* window, const char* policy);
  /** Opens a file for records, by one process, through the library; null with errno set. May lack.
   */
  FILE* (*open_file)(const char* name);
} suite_library_t;

extern const suite_library_t suite_library;

#endif
