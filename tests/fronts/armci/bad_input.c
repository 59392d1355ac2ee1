/* SPDX-License-Identifier: BSD-3-Clause */

/* Invalid arguments: each in a job of one process, which must end with one line that names
 * function, rank and value. */

#include <armci.h>
#include <armcix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* part;
static int value = 1;
static double scale = 1;
static int stride[9];
static int count[10] = {8, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static ARMCI_Group world;

static void rank_of_nobody(void) { ARMCI_Put(&value, part, 4, 7); }
static void negative_rank(void) { ARMCI_Get(part, &value, 4, -1); }
static void null_remote(void) { ARMCI_Put(&value, NULL, 4, 0); }
static void null_local(void) { ARMCI_Get(part, NULL, 8, 0); }
static void not_allocated(void) { ARMCI_Put(&value, &value, 4, 0); }
static void negative_bytes(void) { ARMCI_Put(&value, part, -3, 0); }
static void past_the_end(void) { ARMCI_Put(part, part, 1 << 20, 0); }
static void levels(void) { ARMCI_PutS(part, stride, part, stride, count, 9, 0); }
static void negative_levels(void) { ARMCI_GetS(part, stride, part, stride, count, -1, 0); }
static void negative_count(void) {
  int wrong[] = {8, -2};
  ARMCI_AccS(ARMCI_ACC_DBL, &scale, part, stride, part, stride, wrong, 1, 0);
}
static void null_counts(void) { ARMCI_PutS(part, stride, part, stride, NULL, 1, 0); }
static void type(void) { ARMCI_Acc(99, &scale, &scale, part, 8, 0); }
static void null_scale(void) { ARMCI_Acc(ARMCI_ACC_DBL, NULL, &scale, part, 8, 0); }
static void half_element(void) { ARMCI_Acc(ARMCI_ACC_DBL, &scale, &scale, part, 7, 0); }
static void descriptors(void) { ARMCI_PutV(NULL, -1, 0); }
static void segments(void) {
  armci_giov_t wrong = {NULL, NULL, 8, -4};
  ARMCI_PutV(&wrong, 1, 0);
}
static void rmw(void) { ARMCI_Rmw(17, &value, part, 1, 0); }
static void rmw_null(void) { ARMCI_Rmw(ARMCI_SWAP, NULL, part, 1, 0); }
static void fence(void) { ARMCI_Fence(3); }
static void free_twice(void) {
  ARMCI_Free(part);
  ARMCI_Free(part);
}
static void free_inside(void) { ARMCI_Free((char*)part + 8); }
static void free_local(void) { ARMCI_Free_local(&value); }
static void negative_malloc(void) { ARMCI_Malloc(&part, -8); }
static void no_mutexes(void) { ARMCI_Lock(2, 0); }
static void no_such_mutex(void) {
  ARMCI_Create_mutexes(2);
  ARMCI_Lock(5, 0);
}
static void not_locked(void) {
  ARMCI_Create_mutexes(2);
  ARMCI_Unlock(1, 0);
}
static void mutexes_twice(void) {
  ARMCI_Create_mutexes(1);
  ARMCI_Create_mutexes(1);
}
static void group(void) {
  ARMCI_Group garbage;
  int rank;
  memset(&garbage, 1, sizeof garbage);
  ARMCI_Group_rank(&garbage, &rank);
}
static void group_freed(void) {
  int first = 0;
  ARMCI_Group made;
  ARMCI_Group copy;
  ARMCI_Group_create(1, &first, &made);
  copy = made;
  ARMCI_Group_free(&made);
  armci_msg_group_barrier(&copy);
}
static void group_of_strangers(void) {
  int stranger = 5;
  ARMCI_Group made;
  ARMCI_Group_create(1, &stranger, &made);
}
static void absolute(void) { ARMCI_Absolute_id(&world, 4); }
static void operation(void) { armci_msg_igop(&value, 1, (char*)"average"); }
static void bits_of_doubles(void) { armci_msg_dgop(&scale, 1, (char*)"band"); }
static void root(void) { armci_msg_brdcst(&value, 4, 6); }
static void scope(void) { armci_msg_bcast_scope(8, &value, 4, 0); }
static void to_nobody(void) { armci_msg_snd(1, &value, 4, 2); }
static void too_long(void) {
  armci_msg_snd(1, &scale, 8, 0);
  armci_msg_rcv(1, &value, 4, NULL, 0);
}
static void domain(void) { armci_domain_id(ARMCI_DOMAIN_SMP, 9); }
static void after_the_end(void) {
  ARMCI_Free(part);
  ARMCI_Finalize();
  ARMCI_Put(&value, part, 4, 0);
}
static void message_abort(void) { armci_msg_abort(1); }
static void own_words(void) { ARMCI_Error("as the program says", 9); }

static const struct {
  void (*run)(void);
  const char* text;
} cases[] = {
    {rank_of_nobody, "rank 0: ARMCI_Put: process 7: "},
    {negative_rank, "ARMCI_Get: process -1: "},
    {null_remote, "ARMCI_Put: process 0: "},
    {null_local, "ARMCI_Get: process 0: "},
    {not_allocated, "ARMCI_Put: process 0: "},
    {negative_bytes, "ARMCI_Put: process 0: the number of bytes is -3"},
    {past_the_end, "ARMCI_Put: process 0: "},
    {levels, "ARMCI_PutS: process 0: 9 stride levels; it must be 0 to 8"},
    {negative_levels, "ARMCI_GetS: process 0: -1 stride levels"},
    {negative_count, "ARMCI_AccS: process 0: count[1] is -2"},
    {null_counts, "ARMCI_PutS: process 0: the array of counts is a null pointer"},
    {type, "ARMCI_Acc: process 0: 99 is not an element type"},
    {null_scale, "ARMCI_Acc: process 0: the scale is a null pointer"},
    {half_element, "ARMCI_Acc: process 0: "},
    {descriptors, "ARMCI_PutV: process 0: the number of descriptors is -1"},
    {segments, "ARMCI_PutV: process 0: the number of segments of a descriptor is -4"},
    {rmw, "ARMCI_Rmw: process 0: 17 is not an operation"},
    {rmw_null, "ARMCI_Rmw: process 0: the place for the result is a null pointer"},
    {fence, "ARMCI_Fence: process 3: "},
    {free_twice, "ARMCI_Free: rank 0: 0x"},
    {free_inside, "is not an address from ARMCI_Malloc() in this process"},
    {free_local, "ARMCI_Free_local: process 0: "},
    {negative_malloc, "ARMCI_Malloc: process 0: the number of bytes is -8"},
    {no_mutexes, "ARMCI_Lock: process 0: no mutex 2; ARMCI_Create_mutexes() was not called"},
    {no_such_mutex, "ARMCI_Lock: process 0: "},
    {not_locked, "ARMCI_Unlock: process 0: "},
    {mutexes_twice, "ARMCI_Create_mutexes: rank 0: mutexes exist already"},
    {group, "ARMCI_Group_rank: rank 0: not a group"},
    {group_freed, "armci_msg_group_barrier: rank 0: group 2 was freed"},
    {group_of_strangers, "ARMCI_Group_create: "},
    {absolute, "ARMCI_Absolute_id: process 4: "},
    {operation, "armci_msg_igop: rank 0: 'average' is not an operation"},
    {bits_of_doubles, "armci_msg_dgop: rank 0: operation 'band' needs integers"},
    {root, "armci_msg_brdcst: process 6: "},
    {scope, "armci_msg_bcast_scope: rank 0: 8 is not a scope"},
    {to_nobody, "armci_msg_snd: process 2: "},
    {too_long, "armci_msg_rcv: process 0: its message with tag 1 has 8 bytes, the buffer 4"},
    {domain, "armci_domain_id: process 9 is not in 0 ... 0"},
    {after_the_end, "outside ARMCI_Init() ... ARMCI_Finalize(): ARMCI_Put: process 0: "},
    {message_abort, "rank 0: armci_msg_abort (code 1)"},
    {own_words, "rank 0: as the program says (code 9)"},
};

/* Runs one case in a process of its own; 1 if it did not end as expected. */
static int failed(size_t index) {
  char text[4096] = "";
  size_t length = 0;
  ssize_t got;
  int status = 0;
  int ends[2];
  pid_t child;
  if (pipe(ends) != 0) return 1;
  child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    ARMCI_Init();
    ARMCI_Group_get_world(&world);
    if (ARMCI_Malloc(&part, 4096) != 0) _exit(3);
    cases[index].run();
    _exit(0);
  }
  close(ends[1]);
  while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
  close(ends[0]);
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == (cases[index].run == own_words ? 9 : 1) &&
      strstr(text, cases[index].text) != NULL) {
    return 0;
  }
  fprintf(stderr, "case %zu: expected '%s', got wait status %d and: %s\n", index, cases[index].text,
          status, text);
  return 1;
}

/* Rank 1 dies with a mutex of its own; rank 0 waits for it. */
static int dead_owner(void) {
  ARMCI_Init();
  ARMCI_Create_mutexes(1);
  if (armci_msg_me() == 1) {
    ARMCI_Lock(0, 1);
    armci_notify(0);
    armci_notify_wait(0, NULL); /* operations under way when a rank dies may be lost */
    _exit(5);
  }
  armci_notify_wait(1, NULL);
  armci_notify(1);
  ARMCI_Lock(0, 1);
  return 0;
}

/* The last rank dies with a mutex of rank 0, for which rank 0 waits already. */
static int owner_dies(void) {
  int last;
  ARMCI_Init();
  last = armci_msg_nproc() - 1;
  ARMCI_Create_mutexes(1);
  if (armci_msg_me() == last) {
    ARMCI_Lock(0, 0);
    armci_notify(0);
    usleep(200000); /* rank 0 very likely waits in ARMCI_Lock() by then */
    _exit(5);
  }
  if (armci_msg_me() == 0) {
    armci_notify_wait(last, NULL);
    ARMCI_Lock(0, 0);
  }
  pause();
  return 0;
}

int main(int argc, char** argv) {
  int failures = 0;
  size_t i;
  if (argc > 1 && strcmp(argv[1], "dead_owner") == 0) return dead_owner();
  if (argc > 1 && strcmp(argv[1], "owner_dies") == 0) return owner_dies();
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) failures += failed(i);
  printf("%zu cases, %d failed\n", i, failures);
  return failures == 0 ? 0 : 1;
}
