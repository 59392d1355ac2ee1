/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_H
#define SUITE_H

/**
 * @file
 * The blocks of the test-suite (paper 3, §2). A measurement combines one of each kind:
 *
 *   communicator × memory × synchronisation × transfer × datatype × partner, used by an experiment.
 *
 * A transfer and a synchronisation can have loops of their own, too (loops.h), in which nothing is
 * called through a pointer.
 *
 * A block is a static structure in a file of its own, registered by SUITE_REGISTER(). Files in
 * blocks/ and experiments/ serve every library, those in other folders one library. A program
 * contains the shared files and the folder of one library. A cell with a block that the library
 * lacks is `refused`.
 *
 * Functions return 0 or an error of the library, which suite_library.explain() describes.
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
  /* The number of cells after this one in its array that differ from it only in policy= and n=, if
   * the library can change the policy. An experiment may measure all of them in turn; its calls for
   * the later ones then do nothing. */
  int turns;
} suite_cell_t;

/** The value of an option, or `fallback`. */
const char* suite_option(const suite_cell_t* cell, const char* name, const char* fallback);
/** The value as a number; `fallback` if it is no number. */
uint64_t suite_option_number(const suite_cell_t* cell, const char* name, uint64_t fallback);

/** The process and its program. */
typedef struct suite_job {
  int rank, size; /* among the processes that were started together */
  char library[64];
  char version[SUITE_TEXT_BYTES];
  int child;             /* it was spawned by another process of the suite, or joins another job */
  int argc;              /* arguments as given, for children */
  char** argv;           /* likewise */
  const char* spawn_on;  /* host for spawned processes; null: the library chooses */
  const char* port_file; /* through which two jobs meet; null: one job */
  const char* interface; /* of plain sockets; null: the first network interface */
  int joins;             /* this job connects to the other one */
} suite_job_t;

/** The processes of a cell. `rank` and `size` count all of them, even if the library's own object
 * has two groups. */
typedef struct suite_comm {
  suite_job_t* job;
  int rank, size;
  int leader;  /* rank that times and writes records: set by suite_path_open() */
  void* state; /* the library's */
} suite_comm_t;

/** A run of contiguous bytes. The runs of a type ascend and do not touch. */
typedef struct suite_run_of_bytes {
  size_t offset, bytes;
} suite_run_of_bytes_t;

/** A datatype: the layout of a transfer's bytes, and the library's object for it. */
typedef struct suite_type {
  size_t bytes;  /* bytes moved */
  size_t extent; /* from the first byte to the end of the last */
  suite_run_of_bytes_t* runs;
  size_t run_count;
  size_t element_bytes; /* 1, 4 or 8: the elements that accumulates add */
  int is_double;
  int is_regular;   /* equal blocks at a constant stride */
  const char* name; /* of the block */
  size_t block_bytes, stride_bytes;
  void* native;
  void* native_element;
} suite_type_t;

/**
 * Memory that other ranks transfer to and from. A transfer adds `bases[r]`, which the memory block
 * sets, to an offset to address rank r. `base` is at the start of a cache line.
 */
typedef struct suite_window {
  suite_comm_t* comm;
  size_t bytes;
  unsigned char* base;
  uint64_t* bases;
  /* Flags of 8 bytes: that of rank r is `flags + flag_step * r` bytes from each base. */
  size_t flags, flag_step;
  uint64_t* sent; /* last flag sent to each rank */
  uint64_t* seen; /* last flag awaited from each rank */
  void* state;    /* the memory block's or the library's */
  void* epoch;    /* the synchronisation's */
} suite_window_t;

/** The offset of the flag that a rank sets at others. */
static inline size_t suite_flag(const suite_window_t* window, int rank) {
  return window->flags + window->flag_step * (size_t)rank;
}

/** The beginning of every block. */
typedef enum suite_kind {
  SUITE_COMMUNICATOR,
  SUITE_MEMORY,
  SUITE_SYNC,
  SUITE_TRANSFER,
  SUITE_TYPE,
  SUITE_PARTNER,
  SUITE_EXPERIMENT,
  SUITE_LOOP,
  SUITE_ARRIVAL,
  SUITE_KINDS
} suite_kind_t;

typedef struct suite_block {
  suite_kind_t kind;
  const char* name;
  const char* summary;
  struct suite_block* next; /* the registry's */
} suite_block_t;

/** Makes a communicator. It needs `processes` processes that were started together; 0: any number.
 */
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

/** Orders transfers. The caller transfers to (or gets from) rank `to`, and rank `from` does so with
 * the caller; either may be SUITE_NOBODY. All ranks call enter and leave. */
typedef struct suite_sync_block {
  suite_block_t head;
  int passive; /* targets take no part; a flag signals the data (suite_library.tell) */
  int (*open)(suite_window_t* window); /* the rest may be null */
  int (*enter)(suite_window_t* window, int to, int from);
  int (*leave)(suite_window_t* window, int to, int from); /* complete at the target */
  int (*close)(suite_window_t* window);
  /** Completes transfers to `to` without leaving the epoch. Null if impossible. */
  int (*complete)(suite_window_t* window, int to);
} suite_sync_block_t;

/** The effect of a transfer on memory, for verification. */
typedef enum suite_effect {
  SUITE_PUTS,
  SUITE_GETS,
  SUITE_ADDS,       /* target += local */
  SUITE_FETCH_ADDS, /* the same, and result := target before */
  SUITE_SWAPS,      /* target := local if it equals `result`; result := target before */
  SUITE_MESSAGES    /* two-sided */
} suite_effect_t;

/** The offsets of one of several transfers, from the first possible place at each side. */
typedef struct suite_place {
  size_t far, near;
} suite_place_t;

/**
 * Moves the bytes of a type.
 *
 * One-sided: `start`, which uses its buffers until leave() (or `wait`, if there is one), and
 * `start_all`, which starts several transfers of one run each in a loop, as a program would. Loads
 * have one of two others: `reach`, which returns a pointer to the target's memory (null: an error),
 * or `add_up`, which returns the sum of `words` doubles there, if the language has remote pointers.
 *
 * Two-sided: `exchange`, complete when it returns; or `post`, complete after `wait`. `stream` moves
 * `count` pieces that are `step` bytes apart; with `acknowledge` the receivers confirm them.
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
  int one_word; /* moves one word of 4 or 8 bytes only */
  int (*post)(suite_window_t* window, const suite_type_t* type, int to, int from, const void* out,
              void* in);
  int (*stream)(suite_window_t* window, const suite_type_t* type, int to, int from, int count,
                size_t step, const void* out, void* in);
  int (*acknowledge)(suite_window_t* window, int to, int from);
  void* (*reach)(suite_window_t* window, int to, size_t remote_offset);
  double (*add_up)(suite_window_t* window, int to, size_t remote_offset, size_t words);
} suite_transfer_block_t;

/** Whether the target's memory is read in place, and nothing is moved. */
static inline int suite_is_load(const suite_transfer_block_t* transfer) {
  return transfer->reach != NULL || transfer->add_up != NULL;
}

/** Whether both sides take part. */
static inline int suite_is_two_sided(const suite_transfer_block_t* transfer) {
  return transfer->effect == SUITE_MESSAGES;
}

/** Whether it has loops only (suite_loop_block_t). */
static inline int suite_has_loops_only(const suite_transfer_block_t* transfer) {
  return transfer->start == NULL && transfer->exchange == NULL && transfer->post == NULL &&
         !suite_is_load(transfer);
}

/** Lays out `bytes` bytes: fills runs, extent and element of `type`.
 *  @return null, or the reason why it cannot */
typedef struct suite_type_block {
  suite_block_t head;
  const char* (*lay_out)(const suite_cell_t* cell, size_t bytes, suite_type_t* type);
} suite_type_block_t;

/** The partners of each leg of a repetition. */
typedef struct suite_partner_block {
  suite_block_t head;
  int least; /* the fewest ranks */
  int (*legs)(int size);
  void (*partners)(int rank, int size, int leg, int* to, int* from);
} suite_partner_block_t;

struct suite_session;

/** Measures a cell at all sizes and writes its records. Collective.
 *  @return null, or the reason why the cell is refused (nothing stays open then) */
typedef struct suite_experiment_block {
  suite_block_t head;
  const char* (*measure)(struct suite_session* session, const suite_cell_t* cell);
} suite_experiment_block_t;

/** A transfer between two ranks with everything worked out: what the steps of a loop take. */
typedef struct suite_spot {
  suite_window_t* window;
  void* state; /* the window's */
  int peer, own;
  int remark; /* suite_library.prepare()'s */
  size_t bytes;
  unsigned char* data;  /* own: what a put reads, and where a get writes */
  uint64_t far_data;    /* the peer's: base and offset */
  const uint64_t* flag; /* own, set by the peer */
  uint64_t far_flag;
  uint64_t sent; /* last flag sent; the next is one more */
  uint64_t seen; /* last flag awaited */
} suite_spot_t;

/** Legs in a row. If the first is `mine`, this rank transfers and the peer waits; then they take
 * turns. A loop of one side is called there only. */
typedef int suite_loop_t(suite_spot_t* spot, int mine, uint64_t legs);

/** Loops of a transfer and a synchronisation, `transfer:sync`, made by loops.h; null: impossible.
 */
typedef struct suite_loop_block {
  suite_block_t head;
  size_t bytes; /* for this size; 0: for any that no other block has */
  suite_loop_t *there_and_back, *one_side;
} suite_loop_block_t;

/** Whole pages of ordinary memory, for free(); null if there is none. */
void* suite_pages(size_t bytes);

void suite_register(suite_block_t* block);
const suite_block_t* suite_find(suite_kind_t kind, const char* name);
/** The block of a size if there is one, else that of any size. */
const suite_loop_block_t* suite_find_loops(const char* transfer, const char* sync, size_t bytes);
const suite_block_t* suite_blocks(suite_kind_t kind);

#define SUITE_REGISTER(block)                                       \
  __attribute__((constructor)) static void register_##block(void) { \
    suite_register((suite_block_t*)&(block));                       \
  }

/** For a library in which all processes of the job are the only communicator: suite_library.world,
 * and the two functions of the block that SUITE_REGISTER_WHOLE_JOB() makes. */
int suite_whole_job(suite_job_t* job, suite_comm_t* comm);
int suite_whole_job_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm);
int suite_whole_job_close(suite_comm_t* comm);

#define SUITE_REGISTER_WHOLE_JOB(summary)                                                      \
  static suite_communicator_block_t whole_job = {{SUITE_COMMUNICATOR, "world", summary, NULL}, \
                                                 0,                                            \
                                                 suite_whole_job_open,                         \
                                                 suite_whole_job_close};                       \
  SUITE_REGISTER(whole_job)

/* Defines a transfer from a function that starts it and one that waits for it (or null): its name,
 * its effect (SUITE_PUTS …), its description, the two functions, and whether it moves one word. */
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

/* The same with identifier_all(), which starts several. */
#define SUITE_REGISTER_TRANSFERS(identifier, does, summary, waits, word) \
  static suite_transfer_block_t identifier##_block = {                   \
      .head = {SUITE_TRANSFER, #identifier, summary, NULL},              \
      .effect = does,                                                    \
      .start = identifier,                                               \
      .start_all = identifier##_all,                                     \
      .wait = waits,                                                     \
      .one_word = word};                                                 \
  SUITE_REGISTER(identifier##_block)

/** When processes that came later were there, and when all of them had answered. */
typedef struct suite_arrival_times {
  int64_t begin, there, alive;
} suite_arrival_times_t;

enum { SUITE_MOST_CHILDREN = 64 };

/** A way in which processes come later (experiments/spawn_cost.c). */
typedef struct suite_arrival_block {
  suite_block_t head;
  int one_process; /* of one process at each side */
  /** Returns after they have parted again. `children` is the number of those that come. */
  int (*come)(suite_job_t* job, const suite_cell_t* cell, int children,
              suite_arrival_times_t* times);
  /** What a spawned process does. Null: another job comes, which does the same as this one. */
  int (*answer)(void);
} suite_arrival_block_t;

/** The functions of a library besides its blocks. One per program. */
typedef struct suite_library {
  const char* name;
  int (*init)(int* argc, char*** argv, suite_job_t* job);
  int (*leave)(suite_job_t* job);
  void (*abort)(suite_job_t* job, int status);
  /** The communicator of all processes started together, for the suite's own messages. */
  int (*world)(suite_job_t* job, suite_comm_t* comm);
  int (*barrier)(suite_comm_t* comm);
  int (*share)(suite_comm_t* comm, int root, void* data, size_t bytes);
  int (*gather)(suite_comm_t* comm, const void* mine, void* all, size_t bytes); /* at every rank */
  const char* (*explain)(int error);
  int (*make_type)(suite_type_t* type); /* may be null, as free_type */
  void (*free_type)(suite_type_t* type);
  /** Collective. Makes earlier transfers visible to plain loads, and plain stores to transfers. */
  int (*settle)(suite_window_t* window);
  /** After leave() of a passive synchronisation: signals `to` that the data has arrived. */
  int (*tell)(suite_window_t* window, const suite_sync_block_t* sync, int to);
  int (*await)(suite_window_t* window, int from);
  /** Names the ranks of a spot as the library does, for its loops. May be null. */
  void (*prepare)(suite_spot_t* spot);
  /** Sets the scheduling policy of this process' transfers to the window. Null if there are no
   * policies, or if they are chosen when the program is started. */
  int (*rule)(suite_window_t* window, const char* policy);
  /** Opens a file for records through the library; one process calls it. Returns null with errno
   * set. May be null. */
  FILE* (*open_file)(const char* name);
} suite_library_t;

extern const suite_library_t suite_library;

#endif
