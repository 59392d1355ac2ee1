/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * LAPI and an MPI in one process of two tasks. The heap moves into shared memory while other
 * libraries, such as UCX, watch the calls that map memory, and must stay whole.
 *
 * Both count the same processes, or LAPI says that they do not.
 *
 * beside_mpi ORDER: 0: LAPI begins and ends last; 1: MPI does; 2: LAPI begins and ends first;
 * 3: as 2, but does nothing else than fence, and looks at no code
 */

#include <lapi.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(call)                                 \
  do {                                             \
    if ((call) != 0) {                             \
      fprintf(stderr, "this failed: " #call "\n"); \
      exit(1);                                     \
    }                                              \
  } while (0)

enum { BLOCKS = 400, WORDS = 1000 };

static void need_lapi(int code) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

/* Blocks of many sizes, freed in another order. */
static void use_the_heap(void) {
  static void* blocks[BLOCKS];
  int i;
  for (i = 0; i < BLOCKS; i++) {
    const size_t bytes = (size_t)(i * 7919 % 100000 + 1);
    blocks[i] = malloc(bytes);
    NEED(blocks[i] == NULL);
    memset(blocks[i], i, bytes);
  }
  for (i = 0; i < BLOCKS; i++) free(blocks[i * 37 % BLOCKS]);
}

int main(int argc, char** argv) {
  const int order = argc > 1 ? atoi(argv[1]) : 0;
  lapi_handle_t handle;
  lapi_info_t info;
  lapi_cntr_t arrived;
  int task, tasks, rank, size, i;
  void* places[2];
  long* memory;
  long words[WORDS];
  double mine, sum = -1;
  memset(&info, 0, sizeof info);
  if (order == 1) NEED(MPI_Init(&argc, &argv));
  need_lapi(LAPI_Init(&handle, &info));
  NEED(LAPI_Qenv(handle, TASK_ID, &task));
  NEED(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  if (order != 1) NEED(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (order == 3) {
    LAPI_Gfence(handle);
    LAPI_Term(handle);
    MPI_Finalize();
    return 3;
  }
  use_the_heap();
  memory = calloc(WORDS, sizeof *memory);
  need_lapi(LAPI_Address_init(handle, memory, places));
  NEED(tasks != 2 || size != 2 || rank != task);
  for (i = 0; i < WORDS; i++) words[i] = 1000L * task + i;
  NEED(LAPI_Setcntr(handle, &arrived, 0));
  NEED(LAPI_Put(handle, 1 - task, sizeof words, places[1 - task], words, NULL, NULL, &arrived));
  NEED(LAPI_Waitcntr(handle, &arrived, 1, NULL));
  NEED(LAPI_Gfence(handle));
  for (i = 0; i < WORDS; i++) NEED(memory[i] != 1000L * (1 - task) + i);
  mine = task;
  NEED(MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  NEED(sum != 1);
  use_the_heap();
  free(memory);
  NEED(LAPI_Gfence(handle));
  if (order == 0) MPI_Finalize();
  NEED(LAPI_Term(handle));
  if (order != 0) MPI_Finalize();
  use_the_heap();
  printf("task %d: right\n", task);
  return 0;
}
