/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TURNS_H
#define TURNS_H

/**
 * @file
 * Turns: programs of several libraries run on the same processors, one at a time, for milliseconds
 * each. When the machine becomes slower, it becomes so for all libraries alike.
 *
 * Every process of a program (or thread, if the ranks are threads) opens the board and gives its
 * tasks to turns_run(). A task measures one cell, and calls turns_slice() where it would take its
 * samples. The tasks run one after the other on stacks of their own, so they need not know of
 * each other. All processes of a program run the same tasks in the same order.
 */

#include <stdint.h>

typedef struct turns turns_t;

/** Measures something: calls turns_slice() until that returns 0, any number of times. */
typedef void turns_task_t(void* context, int index);

/** @param place      "FILE:NUMBER", the board and the number of this program in it
 *  @param processes  how many processes of this program take part
 *  @param rank       of this one
 *  @param problem    out: set where null is returned */
turns_t* turns_open(const char* place, int processes, int rank, const char** problem);

/** Runs tasks to their ends. `group` numbers the calls of a program; where several programs measure
 * the same group, they do so in the same rounds. */
void turns_run(turns_t* turns, int group, int count, turns_task_t* task, void* context);

/** Asks for so many turns in each round, at random places in it. All processes call it, and all
 * tasks of the group get the slices. */
void turns_want(turns_t* turns, int turns_in_round);

/** A slice of a turn: its round, which of the program's turns in it, from 0, and its length. The
 * same in all processes. */
typedef struct turns_slice {
  uint64_t round;
  int which;
  int64_t length_ns;
} turns_slice_t;

/** Called by a task: sleeps until it may measure again.
 *  @return 1: measure for a slice; 0: this was all, go on */
int turns_slice(turns_t* turns, turns_slice_t* slice);

/** The length of a slice, for a task that prepares: batches are chosen by it. */
int64_t turns_length_ns(const turns_t* turns);

void turns_close(turns_t* turns);

#endif
