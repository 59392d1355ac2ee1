/* SPDX-License-Identifier: BSD-3-Clause */

/* A job that foreign launchers start; the first argument selects the processes' actions. An MPI is
 * loaded at run time, so that any can be tested and none is needed to build this program. */

#include <mobius/mobius.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "%s failed: %s\n", what, mob_last_error());
  exit(3);
}

static void join(void) { need(mob_init() == MOB_OK, "mob_init"); }
static void leave(void) { need(mob_finalize() == MOB_OK, "mob_finalize"); }

/* Writes one line with one write(), so that lines of several processes do not mix. */
static void say(const char* line) {
  char text[256];
  const int length = snprintf(text, sizeof text, "%s\n", line);
  need(write(STDOUT_FILENO, text, (size_t)length) == length, "writing");
}

/* Every rank puts its rank to every rank. */
static void talk(void) {
  const mob_rank_t size = mob_size();
  mob_mem_t memory = NULL;
  need(mob_mem_alloc((size_t)size * sizeof(uint64_t), &memory) == MOB_OK, "mob_mem_alloc");
  for (mob_rank_t rank = 0; rank < size; ++rank) {
    void* words = NULL;
    need(mob_mem_address(memory, rank, 0, &words) == MOB_OK, "mob_mem_address");
    const uint64_t value = 1 + (uint64_t)mob_rank();
    need(mob_put8(rank, (uint64_t*)words + mob_rank(), value) == MOB_OK, "mob_put8");
  }
  need(mob_barrier() == MOB_OK, "mob_barrier");
  const uint64_t* mine = mob_mem_local(memory);
  for (mob_rank_t rank = 0; rank < size; ++rank) {
    need(mine[rank] == 1 + (uint64_t)rank, "comparing what others put");
  }
  need(mob_mem_free(memory) == MOB_OK, "mob_mem_free");
}

static void who(void) {
  char line[128];
  snprintf(line, sizeof line, "rank %d of %d, %d of %d here", mob_rank(), mob_size(),
           mob_host_rank(), mob_host_size());
  say(line);
}

static void* library;

static int (*mpi(const char* name))(void*, void*) {
  void* found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "no %s: %s\n", name, dlerror());
    exit(3);
  }
  int (*function)(void*, void*);
  memcpy(&function, &found, sizeof function);
  return function;
}

static void mpi_start(void) { need(mpi("MPI_Init")(NULL, NULL) == 0, "MPI_Init"); }

static void give_mpi_up(int number) {
  static const char text[] = "MPI_Finalize given up\n";
  (void)number;
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(0);
}

/* MPICH 4.0 over UCX now and then never returns, also in programs that do not use Möbius: some
 * processes wait at the launcher's barrier, and another process waits for one of them. `last`:
 * nothing testable follows; how the launcher treats ending processes is not Möbius's concern. */
static void mpi_end(int last) {
  if (last) {
    signal(SIGALRM, give_mpi_up);
    alarm(5);
  }
  need(mpi("MPI_Finalize")(NULL, NULL) == 0, "MPI_Finalize");
  alarm(0);
}

/* The rank that the launcher gave to this process, before it has joined. */
static int launched_rank(void) {
  static const char* const names[] = {"PMIX_RANK", "PMI_RANK", "MOBIUS_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char* text = getenv(names[i]);
    if (text != NULL) return atoi(text);
  }
  return 0;
}

static int staggers = 0;

/* Overrides libpmix's function for an MPI. */
__attribute__((visibility("default"))) int PMIx_Finalize(const void* info, size_t count);
int PMIx_Finalize(const void* info, size_t count) {
  int (*function)(const void*, size_t);
  void* found = dlsym(dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD), "PMIx_Finalize");
  memcpy(&function, &found, sizeof function);
  if (staggers) usleep(100000u * (unsigned)launched_rank());
  return function(info, count);
}

static void load_mpi(const char* name) {
  library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (library != NULL) return;
  printf("SKIP: %s\n", dlerror());
  exit(77);
}

/* Both in one process. `order` is a list of M (MPI) and m (Möbius), first starts, then ends; with
 * s, MPI finalizes PMIx in one rank after the other from then on. */
static void beside_mpi(const char* name, const char* order) {
  int mpi_is_up = 0;
  load_mpi(name);
  for (; *order != '\0'; ++order) {
    if (*order == 'M') {
      if (mpi_is_up) {
        mpi_end(order[1] == '\0');
      } else {
        mpi_start();
      }
      mpi_is_up = !mpi_is_up;
    } else if (*order == 's') {
      staggers = 1;
    } else if (mob_initialized()) {
      talk();
      leave();
      say("left");
    } else {
      join();
      who();
    }
  }
}

/* The linker makes this copy in a program that is linked with Open MPI; the library uses it instead
 * of its own. */
__attribute__((visibility("default"), aligned(64))) char ompi_mpi_comm_null[4096];

/* A handle of MPI: a pointer in Open MPI, a number in MPICH. */
static void* mpi_handle(const char* name, uintptr_t number) {
  return dlsym(library, name) != NULL ? dlsym(RTLD_DEFAULT, name) : (void*)number;
}

static void refused(mob_status_t status, mob_status_t expected, const char* what) {
  if (status == expected && !mob_initialized()) return;
  fprintf(stderr, "%s: %s: %s\n", what, mob_status_name(status), mob_last_error());
  exit(3);
}

/* A job for each half of the processes, in reverse order; and handles from which no job can be
 * made. */
static void in_communicators(const char* name) {
  load_mpi(name);
  void* const world = mpi_handle("ompi_mpi_comm_world", 0x44000000);
  void* const none = mpi_handle("ompi_mpi_comm_null", 0x04000000);
  refused(mob_init_mpi(world), MOB_ERR_STATE, "before MPI_Init");
  mpi_start();
  const int rank = launched_rank();
  void* half = NULL;
  void* halves = NULL;
  int (*split)(void*, int, int, void**);
  int (*join_halves)(void*, int, void*, int, int, void**);
  int (*function)(void*, void*) = mpi("MPI_Comm_split");
  memcpy(&split, &function, sizeof split);
  need(split(world, rank % 2, -rank, &half) == 0, "MPI_Comm_split");
  function = mpi("MPI_Intercomm_create");
  memcpy(&join_halves, &function, sizeof join_halves);
  /* Of four ranks, the leaders are the last two. */
  need(join_halves(half, 0, world, rank % 2 == 0 ? 3 : 2, 1, &halves) == 0, "MPI_Intercomm_create");
  refused(mob_init_mpi(NULL), MOB_ERR_ARGUMENT, "NULL");
  refused(mob_init_mpi(none), MOB_ERR_ARGUMENT, "MPI_COMM_NULL");
  refused(mob_init_mpi(halves), MOB_ERR_ARGUMENT, "an intercommunicator");
  need(mob_init_mpi(half) == MOB_OK, "mob_init_mpi");
  need(mpi("MPI_Comm_free")(&half, NULL) == 0, "MPI_Comm_free");
  who();
  talk();
  leave();
  refused(mob_init_mpi(world), MOB_ERR_STATE, "a second time");
  mpi_end(1);
}

static void wait_for_the_end(void) {
  while (1) pause();
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (strcmp(what, "who") == 0) {
    join();
    who();
    talk();
    leave();
  } else if (strcmp(what, "where") == 0) {
    join();
    who();
    leave();
  } else if (strcmp(what, "beside_mpi") == 0 && count == 4) {
    beside_mpi(words[2], words[3]);
  } else if (strcmp(what, "in_communicators") == 0 && count == 3) {
    in_communicators(words[2]);
  } else if (strcmp(what, "exit") == 0 && count == 3) {
    join();
    const int rank = mob_rank();
    leave();
    return rank == 1 ? atoi(words[2]) : 0;
  } else if (strcmp(what, "abort") == 0 && count == 3) {
    join();
    if (mob_rank() == 1) mob_abort(atoi(words[2]), "because the test wants it");
    need(mob_barrier() == MOB_OK, "mob_barrier");
    leave();
  } else if (strcmp(what, "wait") == 0) {
    join();
    who();
    wait_for_the_end();
  } else if (strcmp(what, "stay_away") == 0) {
    if (launched_rank() == 1) wait_for_the_end();
    join();
  } else if (strcmp(what, "die") == 0) {
    if (launched_rank() == 1) kill(getpid(), SIGKILL);
    join();
    who();
    wait_for_the_end();
  } else {
    fprintf(stderr, "unknown case '%s'\n", what);
    return 2;
  }
  return 0;
}
