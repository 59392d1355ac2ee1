/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_STACK */
#endif

#include "turns.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>

#include "board.h"

enum {
  kStackBytes = 4 << 20, /* touched as far as it is used */
  kPlacesOfGroup = 4096, /* the most sizes and parts of a group */
  kLeastSliceNs = 300000,
  kMostSliceNs = 2000000
};

typedef struct task {
  ucontext_t context;
  void* stack;
  int started, ended;
} task_t;

struct turns {
  turns_board_t* board;
  size_t board_bytes;
  turns_program_t* program;
  uint32_t seen; /* the last turn */
  int leads;     /* this process tells which task runs */
  ucontext_t scheduler;
  task_t* tasks;
  int count, current, measures;
  turns_task_t* run;
  void* run_context;
  turns_slice_t slice;
};

turns_t* turns_open(const char* place, int processes, int rank, const char** problem) {
  char file[512];
  const char* colon = strrchr(place, ':');
  *problem = "--turns: expected FILE:NUMBER";
  if (colon == NULL || (size_t)(colon - place) >= sizeof file) return NULL;
  memcpy(file, place, (size_t)(colon - place));
  file[colon - place] = '\0';
  const unsigned long number = strtoul(colon + 1, NULL, 10);

  *problem = "--turns: the board cannot be mapped";
  const int descriptor = open(file, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return NULL;
  struct stat status;
  void* mapped = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && (size_t)status.st_size >= sizeof(turns_board_t))
    mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped == MAP_FAILED) return NULL;
  turns_board_t* board = mapped;
  turns_t* turns = NULL;
  *problem = "--turns: this is no board, or it has no such program";
  if (board->magic == TURNS_MAGIC && number < board->programs && processes > 0 &&
      processes <= TURNS_MOST_PROCESSES)
    turns = calloc(1, sizeof *turns);
  if (turns == NULL) {
    munmap(mapped, (size_t)status.st_size);
    return NULL;
  }
  turns->board = board;
  turns->board_bytes = (size_t)status.st_size;
  turns->program = &board->program[number];
  turns->seen = __atomic_load_n(&turns->program->turn, __ATOMIC_ACQUIRE);
  turns->leads = rank == 0;
  turns->program->pids[rank] = (int32_t)getpid();
  __atomic_store_n(&turns->program->processes, (uint32_t)processes, __ATOMIC_RELEASE);
  *problem = NULL;
  return turns;
}

/* Sleeps until the next turn of this program. */
static uint32_t await_turn(turns_t* turns) {
  turns_program_t* program = turns->program;
  const uint32_t processes = program->processes;
  if (__atomic_add_fetch(&program->waiting, 1, __ATOMIC_ACQ_REL) == processes) {
    __atomic_add_fetch(&turns->board->changed, 1, __ATOMIC_RELEASE);
    turns_wake(&turns->board->changed);
  }
  while (__atomic_load_n(&program->turn, __ATOMIC_ACQUIRE) == turns->seen)
    turns_sleep(&program->turn, turns->seen, 0);
  turns->seen++;
  return program->command;
}

/* makecontext() passes whole numbers only. */
static __thread turns_t* entering;

static void enter_task(void) {
  turns_t* turns = entering;
  const int index = turns->current;
  turns->run(turns->run_context, index);
  turns->tasks[index].ended = 1;
  swapcontext(&turns->tasks[index].context, &turns->scheduler);
}

static void start_task(turns_t* turns, task_t* task) {
  task->started = 1;
  task->stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (task->stack == MAP_FAILED) {
    fputs("no memory for the stack of a task\n", stderr);
    abort();
  }
  getcontext(&task->context);
  task->context.uc_stack.ss_sp = task->stack;
  task->context.uc_stack.ss_size = kStackBytes;
  task->context.uc_link = &turns->scheduler;
  makecontext(&task->context, enter_task, 0);
}

/* Each task that has not ended goes on until it waits for its next slice. Returns how many wait. */
static int run_all(turns_t* turns) {
  int left = 0;
  for (int i = 0; i < turns->count; i++) {
    task_t* task = &turns->tasks[i];
    if (task->ended) continue;
    turns->current = i;
    if (turns->leads) turns->program->task = (uint32_t)i;
    if (!task->started) start_task(turns, task);
    entering = turns;
    swapcontext(&turns->scheduler, &task->context);
    if (task->ended)
      munmap(task->stack, kStackBytes);
    else
      left++;
  }
  return left;
}

static void choose_length(turns_t* turns, int tasks) {
  int64_t length = (int64_t)turns->board->turn_ns / (tasks > 0 ? tasks : 1);
  if (length < kLeastSliceNs) length = kLeastSliceNs;
  turns->slice.length_ns = length < kMostSliceNs ? length : kMostSliceNs;
}

void turns_run(turns_t* turns, int group, int count, turns_task_t* task, void* context) {
  uint32_t place = (uint32_t)group * kPlacesOfGroup;
  turns->program->wanted = 1;
  turns->tasks = calloc((size_t)count, sizeof *turns->tasks);
  if (turns->tasks == NULL) abort();
  turns->count = count;
  turns->run = task;
  turns->run_context = context;
  choose_length(turns, count);
  int left = run_all(turns);
  while (left > 0) {
    choose_length(turns, left);
    if (turns->leads) {
      turns->program->tasks = (uint32_t)left;
      __atomic_store_n(&turns->program->place, place, __ATOMIC_RELEASE);
    }
    turns->measures = await_turn(turns) == TURNS_MEASURE;
    turns->slice.round = turns->program->round;
    turns->slice.which = (int)turns->program->which;
    if (!turns->measures) place++;
    left = run_all(turns);
  }
  free(turns->tasks);
  turns->tasks = NULL;
}

void turns_want(turns_t* turns, int turns_in_round) {
  turns->program->wanted = (uint32_t)turns_in_round;
}

int turns_slice(turns_t* turns, turns_slice_t* slice) {
  swapcontext(&turns->tasks[turns->current].context, &turns->scheduler);
  *slice = turns->slice;
  return turns->measures;
}

int64_t turns_length_ns(const turns_t* turns) { return turns->slice.length_ns; }

void turns_close(turns_t* turns) {
  munmap(turns->board, turns->board_bytes);
  free(turns);
}
