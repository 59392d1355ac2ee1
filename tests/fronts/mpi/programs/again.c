/* SPDX-License-Identifier: BSD-3-Clause */

/* Windows made and freed again and again over the same communicators. A window is as new, whatever
 * the program gave to the one before it. */

#include "check.h"

static int deleted;

static int count_deleted(MPI_Win win, int keyval, void* value, void* extra) {
  (void)win;
  (void)keyval;
  (void)value;
  (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static int statics[4];

static MPI_Win make(MPI_Comm comm, int kind, int** mine) {
  MPI_Win win;
  *mine = statics;
  if (kind == 0) {
    MPI(MPI_Win_create(statics, sizeof statics, sizeof(int), MPI_INFO_NULL, comm, &win));
  } else {
    MPI(MPI_Win_allocate(sizeof statics, sizeof(int), MPI_INFO_NULL, comm, mine, &win));
  }
  return win;
}

/* Each kind of synchronisation leaves the parts of a window as they were. */
static void use(MPI_Comm comm, int round) {
  int rank, size, *mine, got = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const int value = 1000 * round + rank;
  MPI_Win win = make(comm, round % 2, &mine);
  /* Given to most windows by mpi4py, for example. */
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Errhandler handler;
  MPI(MPI_Win_get_name(win, name, &length));
  CHECK(strcmp(name, "used") != 0);
  MPI(MPI_Win_set_name(win, "used"));
  MPI(MPI_Win_get_errhandler(win, &handler));
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  MPI(MPI_Errhandler_free(&handler));
  MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  mine[0] = mine[1] = -1;
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, win));
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(mine[0] == 1000 * round + left);
  MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
  MPI(MPI_Put(&value, 1, MPI_INT, right, 1, 1, MPI_INT, win));
  MPI(MPI_Win_flush(right, win));
  MPI(MPI_Get(&got, 1, MPI_INT, right, 1, 1, MPI_INT, win));
  MPI(MPI_Win_unlock(right, win));
  CHECK(got == value);
  MPI(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);
}

static void check_as_new(MPI_Comm comm) {
  int *mine, flag, keyval, length;
  char name[MPI_MAX_OBJECT_NAME], value[16];
  void* found;
  MPI_Info info;
  MPI_Errhandler handler;
  MPI(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deleted, &keyval, NULL));
  for (int what = 0; what < 5; ++what) {
    MPI_Win win = make(comm, what % 2, &mine);
    deleted = 0;
    if (what == 0) MPI(MPI_Win_set_name(win, "given"));
    if (what == 1) MPI(MPI_Win_set_attr(win, keyval, statics));
    if (what == 2) MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (what == 3) {
      MPI(MPI_Info_create(&info));
      MPI(MPI_Info_set(info, "same_size", "true"));
      MPI(MPI_Win_set_info(win, info));
      MPI(MPI_Info_free(&info));
    }
    MPI_Win copy = win;
    MPI(MPI_Win_free(&win));
    CHECK(deleted == (what == 1));
    /* Whether the next window takes its parts, or the MPI has freed them. */
    if (what == 1 || what == 4) {
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
      FAILS(MPI_Win_fence(0, copy), MPI_ERR_WIN);
      FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, copy), MPI_ERR_WIN);
      FAILS(MPI_Put(statics, 1, MPI_INT, 0, 0, 1, MPI_INT, copy), MPI_ERR_WIN);
      FAILS(MPI_Win_free(&copy), MPI_ERR_WIN);
      CHECK(copy == MPI_WIN_NULL);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
      MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    }
    win = make(comm, what % 2, &mine);
    MPI(MPI_Win_get_name(win, name, &length));
    CHECK(strcmp(name, "given") != 0);
    MPI(MPI_Win_get_attr(win, keyval, &found, &flag));
    CHECK(!flag);
    MPI(MPI_Win_get_errhandler(win, &handler));
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    MPI(MPI_Errhandler_free(&handler));
    MPI(MPI_Win_get_info(win, &info));
    MPI(MPI_Info_get(info, "same_size", sizeof value - 1, value, &flag));
    CHECK(!flag || strcmp(value, "true") != 0);
    MPI(MPI_Info_free(&info));
    MPI(MPI_Win_free(&win));
  }
  /* One member asks for something, the others do not. */
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "accumulate_ordering", "none"));
  MPI_Win win;
  MPI(MPI_Win_create(statics, sizeof statics, sizeof(int), check_rank == 0 ? info : MPI_INFO_NULL,
                     comm, &win));
  MPI(MPI_Info_free(&info));
  MPI(MPI_Win_free(&win));
  MPI(MPI_Win_free_keyval(&keyval));
}

/* The memory of a freed window is that of the next one, and as new. */
static void check_memory(MPI_Comm comm) {
  const MPI_Aint bytes = 4 << 20;
  for (int round = 0; round < 3; ++round) {
    MPI_Win win;
    char* mine;
    MPI_Aint nonzero = 0;
    MPI(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &mine, &win));
    for (MPI_Aint i = 0; i < bytes; ++i) nonzero += mine[i] != 0;
    CHECK(nonzero == 0);
    memset(mine, 1, (size_t)bytes);
    MPI(MPI_Win_free(&win));
  }
}

static long sum_of(const char* memory, size_t bytes) {
  long sum = 0;
  for (size_t i = 0; i < bytes; i += 1024) sum += memory[i];
  return sum;
}

/* Windows of the same memory from malloc(), which the program writes, frees, gets back at the same
 * address, and lets grow in between. */
static void check_own_memory(MPI_Comm comm) {
  const size_t bytes = 1 << 20;
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  char* got = malloc(bytes);
  char* mine = malloc(bytes);
  memset(mine, 1, bytes);
  for (int round = 0; round < 12; ++round) {
    MPI_Win win;
    if (round % 4 == 1) mine[round * 1024] = 9;
    if (round % 4 == 2) mine = realloc(mine, round == 2 ? 2 * bytes : bytes);
    if (round % 4 == 3) {
      free(mine);
      mine = calloc(bytes, 1);
      CHECK(sum_of(mine, bytes) == 0);
    }
    long sum = sum_of(mine, bytes), theirs = 0;
    MPI(MPI_Sendrecv(&sum, 1, MPI_LONG, (rank + size - 1) % size, 0, &theirs, 1, MPI_LONG,
                     (rank + 1) % size, 0, comm, MPI_STATUS_IGNORE));
    MPI(MPI_Win_create(mine, (MPI_Aint)bytes, 1, MPI_INFO_NULL, comm, &win));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Get(got, (int)bytes, MPI_BYTE, (rank + 1) % size, 0, (int)bytes, MPI_BYTE, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(sum_of(got, bytes) == theirs);
    memset(got, round + 2, bytes);
    MPI(MPI_Put(got, (int)bytes, MPI_BYTE, (rank + 1) % size, 0, (int)bytes, MPI_BYTE, win));
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(sum_of(mine, bytes) == (round + 2L) * (long)(bytes / 1024));
    MPI(MPI_Win_free(&win));
    CHECK(sum_of(mine, bytes) == (round + 2L) * (long)(bytes / 1024));
  }
  free(mine);
  free(got);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Comm half, kept;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half));
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &kept));
  for (int round = 0; round < 50; ++round) {
    use(MPI_COMM_WORLD, round);
    use(half, round);
    use(kept, round);
  }
  int* mine;
  MPI_Win several[8];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) several[i] = make(MPI_COMM_WORLD, i % 2, &mine);
    for (int i = 0; i < 8; ++i) MPI(MPI_Win_free(&several[(3 * i) % 8]));
  }
  MPI(MPI_Comm_free(&half));
  if (argc > 1) {
    check_as_new(MPI_COMM_WORLD);
    check_memory(MPI_COMM_WORLD);
    check_own_memory(MPI_COMM_WORLD);
  }
  /* The communicator `kept` and MPI_COMM_WORLD end with the MPI. */
  return check_end("again");
}
