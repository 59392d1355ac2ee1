/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TURNS_BOARD_H
#define TURNS_BOARD_H

/**
 * @file
 * The board: a file that the conductor and all programs that take turns map. The instrument makes
 * it (mobius_instrument/turns/board.py knows the offsets).
 *
 * A process that waits for a turn of its program sleeps in a futex of `turn`. The conductor changes
 * the words of a program only while all processes of that program wait.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS_MAGIC = 0x6d627475, TURNS_MOST_PROCESSES = 64 };

/** What a program does in a turn. */
enum {
  TURNS_MEASURE = 1, /* measures each task for a slice */
  TURNS_GO_ON = 2    /* ends this place, and prepares the next one */
};

typedef struct turns_program {
  uint32_t turn;      /* the number of the last turn */
  uint32_t processes; /* how many processes the program has; 0: not started yet */
  uint32_t waiting;   /* how many of them wait for a turn */
  uint32_t command;   /* of the current turn */
  uint32_t place;     /* where the program is: programs at the same place measure the same thing */
  uint32_t gone;      /* the program has ended: set by the instrument */
  uint32_t task;      /* the task that runs, from 0 */
  uint32_t tasks;     /* tasks that measure at this place */
  uint64_t round;     /* of the current turn */
  uint32_t wanted;    /* turns in each round; 0: one */
  uint32_t which;     /* of them is the current turn, from 0 */
  unsigned char unused[16];
  int32_t pids[TURNS_MOST_PROCESSES];
  unsigned char unused_end[192];
} turns_program_t; /* 512 bytes */

typedef struct turns_board {
  uint32_t magic;
  uint32_t programs;
  uint32_t changed; /* raised when the last process of a program begins to wait */
  uint32_t current; /* the program whose turn it is, from 1; 0: none */
  uint64_t turn_ns; /* the length of a turn */
  unsigned char unused[40];
  turns_program_t program[];
} turns_board_t; /* begins with 64 bytes */

/** Sleeps while `*word` is `value`, for `limit_ns` at most unless that is 0. */
static inline void turns_sleep(uint32_t* word, uint32_t value, int64_t limit_ns) {
  struct timespec limit = {limit_ns / 1000000000, limit_ns % 1000000000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, limit_ns > 0 ? &limit : NULL, NULL, 0);
}

static inline void turns_wake(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
