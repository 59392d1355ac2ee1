/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Single operations between two processes of two hosts, each compared with a plain TCP socket that
 * carries as many bytes the same way and 8 back: rank 0 measures; rank 1 waits in a barrier, sleeps
 * outside the library ("sleeping"), or computes ("computing"). In the same three cases, the
 * socket's other end polls, sleeps in recv(), or sleeps in recv() beside a thread that computes.
 * With -DUSE_MPI the same with an MPI library's windows:
 *
 *   mpicc -O2 -DUSE_MPI bench/network/operations.c bench/suite/tcp.c -o operations_mpi
 *
 * Socket and operation take turns in blocks. Prints one line per operation and size: name, bytes,
 * the median of the blocks' means in microseconds, that of the socket, and the quotient. "One way"
 * is half a round trip, with both ends polling. A stream is STREAMED transfers to or from one
 * place, then one flush; for the socket, as many bytes in a row and one answer. Its time is per
 * transfer.
 *
 * Arguments: blocks, and names of operations (default: all).
 */

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "beside_socket.h"

#define BYTES ((size_t)4 << 20)
#define MOST_BLOCKS 1000
#define STREAMED 16

static char* window; /* this process' window */
static char* local;

#ifdef USE_MPI
#include <mpi.h>

static MPI_Win win;

static void setup(void) {
  CHECK(MPI_Init(NULL, NULL));
  CHECK(MPI_Win_allocate((MPI_Aint)BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
  memset(window, 0, BYTES);
  CHECK(MPI_Win_lock_all(0, win));
}
static int rank(void) {
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  return me;
}
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void gather(const void* mine, void* all, size_t bytes) {
  CHECK(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD));
}
static void start_put(size_t bytes) {
  MPI_Put(local, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win);
}
static void start_get(size_t bytes) {
  MPI_Get(local, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win);
}
static void flush(void) { MPI_Win_flush(1, win); }
static void put(size_t bytes) {
  start_put(bytes);
  flush();
}
static void get(size_t bytes) {
  start_get(bytes);
  flush();
}
static void fetch_add(size_t bytes) {
  (void)bytes;
  const uint64_t one = 1;
  MPI_Fetch_and_op(&one, local, MPI_UINT64_T, 1, 0, MPI_SUM, win);
  flush();
}
static void finish(void) {
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Finalize();
}
#else
#include <mobius/mobius.h>

static mob_mem_t mem;
static char* there;     /* the peer's window */
static uint64_t* heard; /* changed by the peer, in `window`; and the same word in `there` */
static uint64_t* told;
static uint64_t said;              /* signals sent */
static uint64_t sent;              /* messages sent */
static volatile uint64_t messages; /* messages received */

static void count_message(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  (void)message;
  (void)argument;
  (void)delivery;
  ++messages;
}

static void setup(void) {
  CHECK(mob_init());
  CHECK(mob_mem_alloc(BYTES + 64, &mem));
  void* address = NULL;
  CHECK(mob_mem_address(mem, 1 - mob_rank(), 0, &address));
  there = address;
  window = mob_mem_local(mem);
  heard = (uint64_t*)(void*)(window + BYTES);
  told = (uint64_t*)(void*)(there + BYTES);
  CHECK(mob_handler_register(1, count_message, NULL));
  CHECK(mob_barrier());
}
static int rank(void) { return mob_rank(); }
static void barrier(void) { CHECK(mob_barrier()); }
static void gather(const void* mine, void* all, size_t bytes) {
  CHECK(mob_allgather(MOB_TEAM_WORLD, mine, all, bytes));
}
static void start_put(size_t bytes) { CHECK(mob_put_nbi(1, there, local, bytes)); }
static void start_get(size_t bytes) { CHECK(mob_get_nbi(1, there, local, bytes)); }
static void flush(void) { CHECK(mob_flush(1)); }
static void put(size_t bytes) {
  CHECK(mob_put(1, there, local, bytes));
  flush();
}
static void get(size_t bytes) { CHECK(mob_get(1, there, local, bytes)); }
static void fetch_add(size_t bytes) {
  (void)bytes;
  uint64_t old = 0;
  CHECK(mob_fetch_add8(1, there, 1, &old));
}
/* 128 runs of bytes / 128, with gaps of the same size at the target. */
static void put_strided(size_t bytes) {
  const mob_transfer_t transfer = {
      .kind = MOB_PUT,
      .rank = 1,
      .remote = there,
      .local = local,
      .bytes = bytes / 128,
      .shape = MOB_STRIDED,
      .dimensions = 1,
      .counts = (const size_t[]){128},
      .remote_strides = (const ptrdiff_t[]){(ptrdiff_t)bytes / 64},
      .local_strides = (const ptrdiff_t[]){(ptrdiff_t)bytes / 64},
  };
  CHECK(mob_transfer(&transfer));
  CHECK(mob_flush(1));
}
static void tell(void) { CHECK(mob_put8(1 - mob_rank(), told, ++said)); }
static void hear(void) { CHECK(mob_wait_until_u8(heard, MOB_EQ, said + (mob_rank() == 1))); }
static void send_message(void) {
  ++sent;
  CHECK(mob_message_send(1 - mob_rank(), 1, NULL, 0, NULL, 0, NULL));
}
static void message(size_t bytes) {
  (void)bytes;
  send_message();
  flush();
}
static void take_message(void) {
  const uint64_t wanted = sent + (mob_rank() == 1);
  while (messages < wanted) CHECK(mob_poll());
}
static void put_there_and_back(size_t bytes) {
  (void)bytes;
  tell();
  hear();
}
static void put_back(void) {
  hear();
  tell();
}
static void message_there_and_back(size_t bytes) {
  (void)bytes;
  send_message();
  take_message();
}
static void message_back(void) {
  take_message();
  send_message();
}
static void finish(void) {
  CHECK(mob_mem_free(mem));
  CHECK(mob_finalize());
}
#endif

static void put_stream(size_t bytes) {
  for (int i = 0; i < STREAMED; ++i) start_put(bytes);
  flush();
}
static void get_stream(size_t bytes) {
  for (int i = 0; i < STREAMED; ++i) start_get(bytes);
  flush();
}

static int tcp = -1;

/* The state of rank 1. */
enum there { kWaits, kSleeps, kComputes, kAnswers };

static const struct operation {
  const char* name;
  void (*run)(size_t);
  size_t bytes, back; /* bytes that the socket carries there and back */
  enum there there;
  void (*answer)(void); /* kAnswers */
  int streamed;         /* the number of transfers, or 0: one */
} kOperations[] = {
    {"put", put, 8, 8, kWaits, NULL, 0},
    {"get", get, 8, 8, kWaits, NULL, 0},
    {"fetch-add", fetch_add, 8, 8, kWaits, NULL, 0},
#ifndef USE_MPI
    {"put-one-way", put_there_and_back, 8, 8, kAnswers, put_back, 0},
    {"message-one-way", message_there_and_back, 8, 8, kAnswers, message_back, 0},
    {"message", message, 8, 8, kWaits, NULL, 0},
    {"put-sleeping", put, 8, 8, kSleeps, NULL, 0},
    {"get-sleeping", get, 8, 8, kSleeps, NULL, 0},
    {"put-computing", put, 8, 8, kComputes, NULL, 0},
    {"get-computing", get, 8, 8, kComputes, NULL, 0},
#endif
    {"put-64K", put, 65536, 8, kWaits, NULL, 0},
    {"get-64K", get, 8, 65536, kWaits, NULL, 0},
#ifndef USE_MPI
    {"strided-64K", put_strided, 65536, 8, kWaits, NULL, 0},
#endif
    {"put-256K", put, 262144, 8, kWaits, NULL, 0},
    {"get-256K", get, 8, 262144, kWaits, NULL, 0},
    {"put-1M", put, 1048576, 8, kWaits, NULL, 0},
    {"get-1M", get, 8, 1048576, kWaits, NULL, 0},
    {"put-2M", put, 2097152, 8, kWaits, NULL, 0},
    {"get-2M", get, 8, 2097152, kWaits, NULL, 0},
    {"put-4M", put, 4194304, 8, kWaits, NULL, 0},
    {"get-4M", get, 8, 4194304, kWaits, NULL, 0},
    {"put-stream-64K", put_stream, 65536, 8, kWaits, NULL, STREAMED},
    {"get-stream-64K", get_stream, 8, 65536, kWaits, NULL, STREAMED},
    {"put-stream-1M", put_stream, 1048576, 8, kWaits, NULL, STREAMED},
    {"get-stream-1M", get_stream, 8, 1048576, kWaits, NULL, STREAMED},
};

#define OPERATIONS (sizeof kOperations / sizeof kOperations[0])

static int turns_of(const struct operation* which) {
  if (which->streamed != 0) return which->bytes + which->back > 1000000 ? 10 : 100;
  return which->bytes + which->back > 1000000 ? 40
         : which->bytes + which->back > 10000 ? 200
                                              : 1000;
}

/* Streamed data needs one answer of 8 bytes. */
static int times_of(const struct operation* which, size_t bytes) {
  return which->streamed != 0 && bytes > 8 ? which->streamed : 1;
}

static void send_all(const struct operation* which, size_t bytes) {
  for (int i = 0; i < times_of(which, bytes); ++i) CHECK(tcp_send(tcp, local, bytes));
}

static void receive_all(const struct operation* which, size_t bytes, int flags) {
  for (int i = 0; i < times_of(which, bytes); ++i) CHECK(tcp_receive(tcp, local, bytes, flags));
}

/* Rank 1's side; `flags` as in tcp_receive(). */
static void answer_socket(const struct operation* which, int turns, int flags) {
  for (int i = 0; i < turns; ++i) {
    receive_all(which, which->bytes, flags);
    send_all(which, which->back);
  }
}

static void compute_a_while(void) {
  volatile uint64_t state = 1;
  for (int i = 0; i < 100000; ++i) state = state * 6364136223846793005u + 1;
}

struct reader {
  const struct operation* which;
  int turns;
  int done; /* atomic */
};

static void* read_socket(void* argument) {
  struct reader* reader = argument;
  answer_socket(reader->which, reader->turns, 0);
  __atomic_store_n(&reader->done, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* A thread that sleeps in recv() answers, beside this one, which computes. */
static void answer_computing(const struct operation* which, int turns) {
  struct reader reader = {which, turns, 0};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, read_socket, &reader));
  while (!__atomic_load_n(&reader.done, __ATOMIC_ACQUIRE)) compute_a_while();
  CHECK(pthread_join(thread, NULL));
}

static double socket_block(const struct operation* which, int turns) {
  const double begin = now_us();
  if (rank() == 1) {
    if (which->there == kComputes) {
      answer_computing(which, turns);
    } else {
      answer_socket(which, turns, which->there == kSleeps ? 0 : MSG_DONTWAIT);
    }
    return 0;
  }
  for (int i = 0; i < turns; ++i) {
    send_all(which, which->bytes);
    receive_all(which, which->back, MSG_DONTWAIT);
  }
  return (now_us() - begin) / turns;
}

/* Until the socket has the signal to stop. */
static void be_busy(enum there how) {
  char byte = 0;
  if (how == kSleeps) {
    CHECK(tcp_receive(tcp, &byte, 1, 0));
    return;
  }
  do {
    compute_a_while();
  } while (recv(tcp, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static double block(const struct operation* which, int turns) {
  const size_t bytes = which->bytes > which->back ? which->bytes : which->back;
  barrier();
  const int is_busy = which->there == kSleeps || which->there == kComputes;
  if (rank() == 1 && is_busy) be_busy(which->there);
  const double begin = now_us();
  for (int i = 0; i < turns && (rank() == 0 || which->there == kAnswers); ++i) {
    if (rank() == 0) {
      which->run(bytes);
    } else {
      which->answer();
    }
  }
  const double mean = (now_us() - begin) / turns;
  if (rank() == 0 && is_busy) CHECK(tcp_send(tcp, local, 1));
  barrier();
  return mean;
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare_times);
  return values[count / 2];
}

static void measure(const struct operation* which, int blocks) {
  static double ours[MOST_BLOCKS];
  static double theirs[MOST_BLOCKS];
  const int turns = turns_of(which);
  for (int i = -1; i < blocks; ++i) { /* the first block does not count */
    const double socket_us = socket_block(which, turns);
    const double us = block(which, turns);
    if (i >= 0) ours[i] = us, theirs[i] = socket_us;
  }
  if (rank() != 0) return;
  const double parts = which->there == kAnswers ? 2 : which->streamed != 0 ? which->streamed : 1;
  const double us = median(ours, blocks) / parts;
  const double socket_us = median(theirs, blocks) / parts;
  printf("%-16s %8zu %9.2f %9.2f %6.2f\n", which->name,
         which->bytes > which->back ? which->bytes : which->back, us, socket_us, us / socket_us);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? atoi(argv[1]) : 9;
  if (blocks < 1 || blocks > MOST_BLOCKS) {
    fprintf(stderr, "'%s' is no number of blocks, 1 to %d; usage: %s [BLOCKS [NAME...]]\n", argv[1],
            MOST_BLOCKS, argv[0]);
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    size_t e = 0;
    while (e < OPERATIONS && strcmp(argv[i], kOperations[e].name) != 0) ++e;
    if (e < OPERATIONS) continue;
    fprintf(stderr, "'%s' is none of the operations:", argv[i]);
    for (e = 0; e < OPERATIONS; ++e) fprintf(stderr, " %s", kOperations[e].name);
    fprintf(stderr, "\n");
    return 2;
  }
  local = malloc(BYTES);
  if (local == NULL) return 1;
  memset(local, 1, BYTES);
  setup();
  tcp = tcp_open(rank(), gather);
  for (size_t e = 0; e < OPERATIONS; ++e) {
    int wanted = argc <= 2;
    for (int i = 2; i < argc; ++i) wanted |= strcmp(argv[i], kOperations[e].name) == 0;
    if (wanted) measure(&kOperations[e], blocks);
  }
  barrier();
  close(tcp);
  finish();
  free(local);
  return 0;
}
