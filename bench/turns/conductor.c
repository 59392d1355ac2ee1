/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The conductor: wakes one program of the board after the other, each for a turn.
 *
 *     conductor BOARD ROUNDS FIRST SEED CPU,CPU >FILE
 *
 * The programs that are at the lowest place measure in rounds: each has one turn in a round, or as
 * many as it wants, in an order that is shuffled anew. Then each of them goes on to its next place.
 * Before every turn two threads exchange cache lines and copy memory for some microseconds. A round
 * in which these times differ between turns is repeated, for as many rounds more at the most.
 *
 * A program that uses a processor while it waits is stopped by SIGSTOP for the turns of others.
 *
 * Writes a JSON line for each round: {"type":"round","round":N,"place":P,"moved":0|1,
 * "turns":[[program,line_ns,copy_ns,turn_us],…],"stopped":[program,…]}.
 *
 * Ends when all programs are gone, or on SIGTERM; no program is stopped then.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "board.h"

enum {
  kMostPrograms = 64,
  kExchanges = 24,    /* of a cache line, in a burst */
  kBursts = 6,        /* the shortest counts: others may have a processor for a while */
  kCopyBytes = 65536, /* stays in a second-level cache */
  kCheckNs = 5000000, /* how often to see whether a program has ended */
  kMostWanted = 4     /* turns of one program in a round */
};

typedef struct turn {
  uint32_t number, which;
} turn_t;

/* Times of a probe that differ by more than this factor are of a machine that has changed. */
static const double kMoved = 1.35;
/* The part of a processor from which a waiting program counts as spinning. */
static const double kSpins = 0.05;

static turns_board_t* board;
static volatile sig_atomic_t stop_asked;
static int spins[kMostPrograms], is_stopped[kMostPrograms];
static int64_t slept_since_ns[kMostPrograms], used_before_ns[kMostPrograms];

static void ask_to_stop(int number) {
  (void)number;
  stop_asked = 1;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t random_next(uint64_t* state) { /* splitmix64 */
  uint64_t value = *state += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/* ---- the probe ---- */

static struct {
  uint32_t line __attribute__((aligned(128)));
  uint32_t awake __attribute__((aligned(128)));
} probed;
static int cpus[2], has_second;
static unsigned char *copy_from, *copy_to;

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/* The second thread: sleeps, or answers each odd number with the next one. */
static void* answer(void* unused) {
  (void)unused;
  pin(cpus[1]);
  for (uint32_t seen = 0;;) {
    while (__atomic_load_n(&probed.awake, __ATOMIC_ACQUIRE) == seen)
      turns_sleep(&probed.awake, seen, 0);
    seen++;
    for (uint32_t expected = 1; expected < 2 * kExchanges * kBursts; expected += 2) {
      while (__atomic_load_n(&probed.line, __ATOMIC_ACQUIRE) != expected) continue;
      __atomic_store_n(&probed.line, expected + 1, __ATOMIC_RELEASE);
    }
  }
  return NULL;
}

/* Nanoseconds that a line takes from one processor to the other; 0 without a second one. */
static double probe_line(void) {
  if (!has_second) return 0;
  double best = 1e18;
  __atomic_store_n(&probed.line, 0, __ATOMIC_RELEASE);
  __atomic_add_fetch(&probed.awake, 1, __ATOMIC_RELEASE);
  turns_wake(&probed.awake);
  uint32_t next = 1;
  for (int burst = 0; burst < kBursts; burst++) {
    int64_t begin = now_ns();
    for (int i = 0; i < kExchanges; i++, next += 2) {
      if (i == 1) begin = now_ns(); /* the first one waits for the thread */
      __atomic_store_n(&probed.line, next, __ATOMIC_RELEASE);
      while (__atomic_load_n(&probed.line, __ATOMIC_ACQUIRE) != next + 1) continue;
    }
    const double each = (double)(now_ns() - begin) / (2 * (kExchanges - 1));
    if (each < best) best = each;
  }
  return best;
}

/* Nanoseconds of a copy. */
static double probe_copy(void) {
  double best = 1e18;
  for (int i = 0; i < kBursts; i++) {
    const int64_t begin = now_ns();
    memcpy(copy_to, copy_from, kCopyBytes);
    __asm__ __volatile__("" ::: "memory");
    const double time = (double)(now_ns() - begin);
    if (i > 0 && time < best) best = time;
  }
  return best;
}

/* ---- programs ---- */

static int is_gone(uint32_t number) {
  return __atomic_load_n(&board->program[number].gone, __ATOMIC_ACQUIRE) != 0;
}

static int waits(uint32_t number) {
  const turns_program_t* program = &board->program[number];
  const uint32_t processes = __atomic_load_n(&program->processes, __ATOMIC_ACQUIRE);
  return processes > 0 && __atomic_load_n(&program->waiting, __ATOMIC_ACQUIRE) == processes;
}

/* Sends a signal to the processes of a program. Ranks that are threads have one process. */
static void signal_all(uint32_t number, int what) {
  const turns_program_t* program = &board->program[number];
  for (uint32_t i = 0; i < program->processes; i++)
    if (program->pids[i] > 0 && !is_gone(number)) kill(program->pids[i], what);
}

/* Processor time of a program's processes. */
static int64_t used_ns(uint32_t number) {
  const turns_program_t* program = &board->program[number];
  int64_t total = 0;
  for (uint32_t i = 0; i < program->processes; i++) {
    clockid_t clock;
    struct timespec time;
    if (i > 0 && program->pids[i] == program->pids[0]) break;
    if (clock_getcpuclockid(program->pids[i], &clock) != 0 || clock_gettime(clock, &time) != 0)
      continue;
    total += (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  }
  return total;
}

/* Returns 0 when the program waits again, 1 when it has ended or the conductor is to stop. */
static int await_end_of_turn(uint32_t number) {
  for (;;) {
    const uint32_t changed = __atomic_load_n(&board->changed, __ATOMIC_ACQUIRE);
    if (waits(number)) return 0;
    if (is_gone(number) || stop_asked) return 1;
    turns_sleep(&board->changed, changed, kCheckNs);
  }
}

static int give_turn(uint32_t number, uint32_t which, uint32_t command, uint64_t round) {
  turns_program_t* program = &board->program[number];
  if (is_stopped[number]) signal_all(number, SIGCONT);
  if (!is_stopped[number] && slept_since_ns[number] != 0) {
    const double slept = (double)(now_ns() - slept_since_ns[number]);
    const double used = (double)(used_ns(number) - used_before_ns[number]);
    if (slept > 2e6 && used > kSpins * slept) spins[number] = 1;
  }
  is_stopped[number] = 0;
  program->command = command;
  program->which = which;
  program->round = round;
  __atomic_store_n(&program->waiting, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&board->current, number + 1, __ATOMIC_RELEASE);
  __atomic_add_fetch(&program->turn, 1, __ATOMIC_RELEASE);
  turns_wake(&program->turn);
  const int ended = await_end_of_turn(number);
  __atomic_store_n(&board->current, 0, __ATOMIC_RELEASE);
  if (ended) return 1;
  if (spins[number]) {
    signal_all(number, SIGSTOP);
    is_stopped[number] = 1;
  }
  slept_since_ns[number] = now_ns();
  used_before_ns[number] = used_ns(number);
  return 0;
}

/* ---- rounds ---- */

static void widen(double value, double* least, double* most) {
  if (value < *least) *least = value;
  if (value > *most) *most = value;
}

/* The turns of a round, in a random order. */
static int list_turns(const uint32_t* members, int count, turn_t* turns, uint64_t* state) {
  int listed = 0;
  for (int i = 0; i < count; i++) {
    const uint32_t wanted = board->program[members[i]].wanted;
    for (uint32_t which = 0; which < (wanted > 0 ? wanted : 1) && which < kMostWanted; which++) {
      const turn_t turn = {members[i], which};
      const int at = (int)(random_next(state) % (uint64_t)(listed + 1));
      turns[listed++] = turns[at];
      turns[at] = turn;
    }
  }
  return listed;
}

/* Returns whether the machine changed meanwhile. */
static int measure_round(const turn_t* turns, int count, uint64_t round) {
  double lines[2] = {1e18, 0}, copies[2] = {1e18, 0};
  const uint32_t place = board->program[turns[0].number].place;
  printf("{\"type\":\"round\",\"round\":%llu,\"place\":%u,\"turns\":[", (unsigned long long)round,
         place);
  for (int i = 0; i < count; i++) {
    const double line = probe_line(), copy = probe_copy();
    widen(line, &lines[0], &lines[1]);
    widen(copy, &copies[0], &copies[1]);
    const int64_t begin = now_ns();
    give_turn(turns[i].number, turns[i].which, TURNS_MEASURE, round);
    printf("%s[%u,%.1f,%.0f,%.0f]", i > 0 ? "," : "", turns[i].number, line, copy,
           (double)(now_ns() - begin) / 1e3);
    if (stop_asked) break;
  }
  widen(probe_line(), &lines[0], &lines[1]);
  widen(probe_copy(), &copies[0], &copies[1]);
  const int moved = lines[1] > kMoved * lines[0] || copies[1] > kMoved * copies[0];
  printf("],\"moved\":%d,\"stopped\":[", moved);
  for (int i = 0, told = 0; i < count; i++)
    if (spins[turns[i].number] && turns[i].which == 0)
      printf(told++ > 0 ? ",%u" : "%u", turns[i].number);
  puts("]}");
  fflush(stdout);
  return moved;
}

/* The programs at the lowest place, all of which wait; 0: none is left. */
static int find_members(uint32_t* members) {
  uint32_t lowest = UINT32_MAX;
  int count = 0;
  for (uint32_t i = 0; i < board->programs; i++)
    if (!is_gone(i) && waits(i) && board->program[i].place < lowest)
      lowest = board->program[i].place;
  for (uint32_t i = 0; i < board->programs; i++)
    if (!is_gone(i) && waits(i) && board->program[i].place == lowest) members[count++] = i;
  return count;
}

static void conduct(int rounds, uint64_t first, uint64_t seed) {
  uint32_t members[kMostPrograms];
  turn_t turns[kMostPrograms * kMostWanted];
  int count;
  while (!stop_asked && (count = find_members(members)) > 0) {
    int left = rounds, more = rounds;
    while (left > 0 && !stop_asked) {
      const int listed = list_turns(members, count, turns, &seed);
      if (!measure_round(turns, listed, first++) || more-- <= 0) left--;
      int here = 0;
      for (int i = 0; i < count; i++)
        if (!is_gone(members[i])) members[here++] = members[i];
      count = here;
      if (count == 0) break;
    }
    for (int i = 0; i < count && !stop_asked; i++) give_turn(members[i], 0, TURNS_GO_ON, first);
  }
  for (uint32_t i = 0; i < board->programs; i++)
    if (is_stopped[i]) signal_all(i, SIGCONT);
}

static int map_board(const char* name) {
  struct stat status;
  const int descriptor = open(name, O_RDWR | O_CLOEXEC);
  if (descriptor < 0 || fstat(descriptor, &status) != 0) return 0;
  void* mapped =
      mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return 0;
  board = mapped;
  return board->magic == TURNS_MAGIC && board->programs <= kMostPrograms;
}

int main(int argc, char** argv) {
  struct sigaction action;
  pthread_t second;
  if (argc != 6 || !map_board(argv[1])) {
    fputs("Usage: conductor BOARD ROUNDS FIRST SEED CPU,CPU (started by the instrument)\n", stderr);
    return 2;
  }
  memset(&action, 0, sizeof action);
  action.sa_handler = ask_to_stop;
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  copy_from = calloc(2, kCopyBytes);
  if (copy_from == NULL) return 1;
  copy_to = copy_from + kCopyBytes;
  memset(copy_from, 1, kCopyBytes);
  if (sscanf(argv[5], "%d,%d", &cpus[0], &cpus[1]) == 2 && cpus[0] != cpus[1]) {
    pin(cpus[0]);
    has_second = pthread_create(&second, NULL, answer, NULL) == 0;
  }
  conduct((int)strtol(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
  return stop_asked ? 1 : 0;
}
