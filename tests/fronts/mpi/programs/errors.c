/* SPDX-License-Identifier: BSD-3-Clause */

/* Wrong calls: each error comes through the window's error handler, in the class of the standard.
 */

#include "check.h"

static int handled;

static void note(MPI_Win* win, int* code, ...) {
  (void)win;
  (void)code;
  ++handled;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Win win, dynamic, own;
  double *mine, values[4] = {1, 2, 3, 4}, result[4];
  MPI_Group all;
  MPI_Errhandler handler;
  int flag;
  MPI_Aint size;
  void* base;
  MPI(MPI_Win_allocate(80, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));

  /* Outside an epoch. */
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Get(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Accumulate(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Fetch_and_op(values, result, MPI_DOUBLE, 0, 0, MPI_SUM, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);

  /* Locks. */
  FAILS(MPI_Win_lock(12345, 0, 0, win), MPI_ERR_LOCKTYPE);
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, check_size, 0, win), MPI_ERR_RANK);
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, -77, 0, win), MPI_ERR_RANK);
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1 << 20, win), MPI_ERR_ASSERT);
  FAILS(MPI_Win_lock_all(1 << 20, win), MPI_ERR_ASSERT);
  FAILS(MPI_Win_fence(1 << 20, win), MPI_ERR_ASSERT);
  FAILS(MPI_Win_post(all, 1 << 20, win), MPI_ERR_ASSERT);
  FAILS(MPI_Win_start(all, 1 << 20, win), MPI_ERR_ASSERT);
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_start(all, 0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
  if (check_size > 1) {
    FAILS(MPI_Put(values, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(1, win), MPI_ERR_RMA_SYNC);
  }

  /* Arguments. */
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, check_size, 0, 1, MPI_DOUBLE, win), MPI_ERR_RANK);
  FAILS(MPI_Put(values, -1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_COUNT);
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, 0, 0, -1, MPI_DOUBLE, win), MPI_ERR_COUNT);
  FAILS(MPI_Put(values, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_TYPE);
  FAILS(MPI_Get(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, 0, -1, 1, MPI_DOUBLE, win), MPI_ERR_DISP);
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, 0, 10, 1, MPI_DOUBLE, win), MPI_ERR_RMA_RANGE);
  FAILS(MPI_Put(values, 4, MPI_DOUBLE, 0, 7, 4, MPI_DOUBLE, win), MPI_ERR_RMA_RANGE);
  FAILS(MPI_Get(values, 1, MPI_DOUBLE, 0, (MPI_Aint)1 << 60, 1, MPI_DOUBLE, win),
        MPI_ERR_RMA_RANGE);
  FAILS(MPI_Accumulate(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
  FAILS(MPI_Accumulate(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_OP_NULL, win), MPI_ERR_OP);
  FAILS(MPI_Accumulate(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_INT64_T, MPI_SUM, win), MPI_ERR_TYPE);
  FAILS(MPI_Compare_and_swap(values, values, result, MPI_DOUBLE, 0, 0, win), MPI_ERR_TYPE);
  MPI_Request request;
  FAILS(MPI_Rput(values, 1, MPI_DOUBLE, check_size, 0, 1, MPI_DOUBLE, win, &request), MPI_ERR_RANK);
  FAILS(MPI_Put(NULL, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_BUFFER);
  FAILS(MPI_Get(NULL, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_BUFFER);
  FAILS(MPI_Accumulate(NULL, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_BUFFER);
  FAILS(MPI_Get_accumulate(values, 1, MPI_DOUBLE, NULL, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM,
                           win),
        MPI_ERR_BUFFER);
  FAILS(MPI_Fetch_and_op(NULL, result, MPI_DOUBLE, 0, 0, MPI_SUM, win), MPI_ERR_BUFFER);
  FAILS(MPI_Fetch_and_op(values, NULL, MPI_DOUBLE, 0, 0, MPI_SUM, win), MPI_ERR_BUFFER);
  FAILS(MPI_Compare_and_swap(values, values, NULL, MPI_INT64_T, 0, 0, win), MPI_ERR_BUFFER);
  FAILS(MPI_Fetch_and_op(values, result, MPI_DOUBLE, check_size, 0, MPI_SUM, win), MPI_ERR_RANK);
  FAILS(MPI_Fetch_and_op(values, result, MPI_DOUBLE, 0, 10, MPI_SUM, win), MPI_ERR_RMA_RANGE);
  FAILS(MPI_Compare_and_swap(values, values, result, MPI_INT64_T, 0, 10, win), MPI_ERR_RMA_RANGE);
  FAILS(MPI_Raccumulate(values, 1, MPI_DOUBLE, 0, 10, 1, MPI_DOUBLE, MPI_SUM, win, &request),
        MPI_ERR_RMA_RANGE);
  FAILS(MPI_Rget_accumulate(values, 1, MPI_DOUBLE, result, -1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE,
                            MPI_SUM, win, &request),
        MPI_ERR_COUNT);
  FAILS(MPI_Rput(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win, NULL), MPI_ERR_REQUEST);
  MPI(MPI_Put(NULL, 0, MPI_DOUBLE, 0, 0, 0, MPI_DOUBLE, win));
  MPI(MPI_Put(values, 4, MPI_DOUBLE, MPI_PROC_NULL, 1000, 4, MPI_DOUBLE, win));
  MPI(MPI_Rget(values, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, 4, MPI_DOUBLE, win, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_Fetch_and_op(values, result, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_SUM, win));
  MPI(MPI_Win_unlock(0, win));
  FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);

  /* Active epochs. */
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(values, 1, MPI_DOUBLE, check_rank, 0, 1, MPI_DOUBLE, win));
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), MPI_ERR_RMA_SYNC);
  MPI_Group self;
  MPI(MPI_Group_incl(all, 1, &check_rank, &self));
  FAILS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
  FAILS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
  MPI(MPI_Win_post(self, 0, win));
  FAILS(MPI_Win_post(self, 0, win), MPI_ERR_RMA_SYNC);
  MPI(MPI_Win_start(self, 0, win));
  FAILS(MPI_Win_start(self, 0, win), MPI_ERR_RMA_SYNC);
  if (check_size > 1) {
    FAILS(MPI_Put(values, 1, MPI_DOUBLE, (check_rank + 1) % check_size, 0, 1, MPI_DOUBLE, win),
          MPI_ERR_RMA_SYNC);
  }
  FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
  MPI(MPI_Win_complete(win));
  MPI(MPI_Win_wait(win));
  MPI(MPI_Group_free(&self));

  /* Dynamic windows, and those that are not. */
  MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
  MPI(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
  FAILS(MPI_Win_attach(win, values, sizeof values), MPI_ERR_RMA_FLAVOR);
  FAILS(MPI_Win_attach(dynamic, values, -1), MPI_ERR_SIZE);
  MPI(MPI_Win_attach(dynamic, values, sizeof values));
  FAILS(MPI_Win_attach(dynamic, values + 1, sizeof *values), MPI_ERR_RMA_ATTACH);
  FAILS(MPI_Win_detach(dynamic, values + 1), MPI_ERR_RMA_ATTACH);
  MPI(MPI_Win_detach(dynamic, values));
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, dynamic));
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, check_rank, 0, 1, MPI_DOUBLE, dynamic), MPI_ERR_RMA_RANGE);
  MPI(MPI_Get_address(values, &size));
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, check_rank, size, 1, MPI_DOUBLE, dynamic),
        MPI_ERR_RMA_RANGE);
  MPI(MPI_Win_unlock(check_rank, dynamic));
  FAILS(MPI_Win_shared_query(dynamic, 0, &size, &flag, &base), MPI_ERR_RMA_FLAVOR);
  FAILS(MPI_Win_shared_query(win, check_size, &size, &flag, &base), MPI_ERR_RANK);
  MPI(MPI_Win_free(&dynamic));
  CHECK(dynamic == MPI_WIN_NULL);

  /* A handler of the program is called, and the call returns. */
  MPI(MPI_Win_create_errhandler(note, &handler));
  MPI(MPI_Win_set_errhandler(win, handler));
  FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
  CHECK(handled == 1);
  MPI(MPI_Errhandler_free(&handler));

  /* Errors that the MPI itself finds. */
  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  FAILS(MPI_Free_mem(mine), MPI_ERR_BASE);
  FAILS(MPI_Win_create(values, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &own), MPI_ERR_COMM);
  CHECK(MPI_Win_create(values, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own) != MPI_SUCCESS);
  CHECK(MPI_Win_create(values, 8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &own) != MPI_SUCCESS);
  MPI_Win none = MPI_WIN_NULL;
  FAILS(MPI_Win_free(&none), MPI_ERR_WIN);
  FAILS(MPI_Put(values, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, none), MPI_ERR_WIN);
  FAILS(MPI_Win_fence(0, none), MPI_ERR_WIN);
  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));

  MPI(MPI_Group_free(&all));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Win_free(&win));
  return check_end("errors");
}
