/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls in the wrong order and jobs that cannot be joined, one case per process. */

#include <mobius/mobius.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;
static int skipped; /* this machine lacks something; a line has said so */

static void check(int ok, const char* what, int line) {
  if (ok) return;
  fprintf(stderr, "line %d: %s (last error: %s)\n", line, what, mob_last_error());
  ++failures;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

enum { MESSAGES = 300, HOPS = 20 };

static int hops_ended;

/* Passes the message on until it has made all its hops. */
static void hop(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  int left = *(const int*)message->header - 1;
  (void)delivery;
  if (left == 0) {
    __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELAXED);
  } else if (mob_message_send((mob_rank() + 1) % mob_size(), 0, &left, sizeof left, NULL, 0,
                              NULL) != MOB_OK) {
    mob_abort(1, mob_last_error());
  }
}

/* Every call returns MOB_ERR_STATE, and the text names the call and contains `when`. */
static void expect_state_errors(const char* when) {
  uint64_t word = 0;
  void* pointer = NULL;
  size_t bytes = 0;
  mob_mem_t mem = NULL;
  mob_rank_t rank = 0;
  CHECK(mob_initialized() == 0);
  CHECK(mob_rank() == MOB_ERR_STATE);
  CHECK(mob_size() == MOB_ERR_STATE);
  CHECK(mob_host_size() == MOB_ERR_STATE);
  CHECK(mob_host_rank() == MOB_ERR_STATE);
  CHECK(mob_is_host_mate(0) == MOB_ERR_STATE);
  CHECK(mob_host_mate(0, &rank) == MOB_ERR_STATE);
  CHECK(mob_mem_alloc(8, &mem) == MOB_ERR_STATE);
  CHECK(mob_mem_free(NULL) == MOB_ERR_STATE);
  CHECK(mob_mem_address(NULL, 0, 0, &pointer) == MOB_ERR_STATE);
  CHECK(mob_mem_bytes(NULL, 0, &bytes) == MOB_ERR_STATE);
  CHECK(mob_mem_local(NULL) == NULL);
  CHECK(mob_ptr(0, &word, &pointer) == MOB_ERR_STATE);
  CHECK(mob_put(0, &word, &bytes, 8) == MOB_ERR_STATE);
  CHECK(mob_get(0, &word, &bytes, 8) == MOB_ERR_STATE);
  CHECK(mob_put8(0, &word, 1) == MOB_ERR_STATE);
  CHECK(mob_put4(0, &word, 1) == MOB_ERR_STATE);
  CHECK(mob_put2(0, &word, 1) == MOB_ERR_STATE);
  CHECK(mob_put1(0, &word, 1) == MOB_ERR_STATE);
  CHECK(mob_get8(0, &word, &word) == MOB_ERR_STATE);
  CHECK(mob_flush(0) == MOB_ERR_STATE);
  CHECK(mob_flush_all() == MOB_ERR_STATE);
  CHECK(mob_fence() == MOB_ERR_STATE);
  CHECK(mob_handler_register(0, hop, NULL) == MOB_ERR_STATE);
  CHECK(mob_message_send(0, 0, NULL, 0, NULL, 0, NULL) == MOB_ERR_STATE);
  CHECK(mob_message_reply(0, 0, NULL, 0, NULL, 0, NULL) == MOB_ERR_STATE);
  CHECK(mob_message_flush(0) == MOB_ERR_STATE);
  CHECK(mob_poll() == MOB_ERR_STATE);
  CHECK(mob_finalize() == MOB_ERR_STATE);
  CHECK(mob_barrier() == MOB_ERR_STATE);
  CHECK(strstr(mob_last_error(), "mob_barrier: called ") != NULL);
  CHECK(strstr(mob_last_error(), when) != NULL);
  CHECK(word == 0);
}

/* Whether the page of an address is shared memory; -1 if it is not mapped. */
static int is_shared(const void* address) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  int result = -1;
  while (maps != NULL && result < 0 && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    char access[5] = "";
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, access) == 3 &&
        start <= (uintptr_t)address && (uintptr_t)address < end) {
      result = access[3] == 's';
    }
  }
  if (maps != NULL) fclose(maps);
  return result;
}

/* Memory that was moved and never withdrawn belongs to the program again, with its contents. */
static void keep_moved_memory(void) {
  const size_t bytes = 50000;
  mob_exposed_t exposed = NULL;
  CHECK(mob_init() == MOB_OK);
  unsigned char* memory = malloc(bytes);
  CHECK(memory != NULL);
  memset(memory, 7, bytes);
  CHECK(mob_expose(memory, bytes, MOB_EXPOSE_REMAP, &exposed) == MOB_OK);
  CHECK(is_shared(memory) == (mob_size() > 1));
  memory[bytes - 1] = 8;
  CHECK(mob_finalize() == MOB_OK);
  CHECK(is_shared(memory) == 0);
  CHECK(memory[0] == 7 && memory[bytes - 2] == 7 && memory[bytes - 1] == 8);
  free(memory);
}

static int ended;

/* Counts the times that it has added to a word of the heap, in a variable of its own. */
static void* add_all_the_time(void* word) {
  uintptr_t added = 0;
  while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
    ++*(volatile uint64_t*)word;
    ++added;
  }
  return (void*)added;
}

/* A thread that writes to the heap at the end of the job loses nothing. If the thread cannot be
 * stopped, the heap stays shared, and children of fork() still have their own copy. */
static void keep_moved_heap(int stoppable) {
  mob_exposed_t exposed = NULL;
  pthread_t thread;
  sigset_t all;
  sigset_t before;
  void* added = NULL;
  int status = 0;
  CHECK(mob_init() == MOB_OK);
  if (mob_expose_heap(1 << 20, &exposed) == MOB_ERR_ARGUMENT) {
    printf("the heap is a sanitizer's\n");
    CHECK(mob_finalize() == MOB_OK);
    return;
  }
  CHECK(exposed != NULL);
  uint64_t* word = calloc(1, sizeof *word);
  CHECK(word != NULL);
  const int was_shared = is_shared(word);
  CHECK(was_shared == (mob_size() > 1));
  sigfillset(&all);
  if (!stoppable) pthread_sigmask(SIG_SETMASK, &all, &before);
  CHECK(pthread_create(&thread, NULL, add_all_the_time, word) == 0);
  if (!stoppable) pthread_sigmask(SIG_SETMASK, &before, NULL);
  CHECK(mob_finalize() == MOB_OK);
  CHECK(is_shared(word) == (was_shared && !stoppable));
  __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
  CHECK(pthread_join(thread, &added) == 0);
  CHECK(*word == (uintptr_t)added);
  const pid_t child = fork();
  if (child == 0) {
    *word = 1;
    _exit(is_shared(word));
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(*word == (uintptr_t)added);
  free(word);
}

static int init_fails_with(mob_status_t expected, const char* detail) {
  const mob_status_t status = mob_init();
  CHECK(status == expected);
  CHECK(strstr(mob_last_error(), detail) != NULL);
  expect_state_errors("before mob_init()");
  return failures != 0;
}

/* mob_finalize() completes all messages that were sent, and those that handlers send because of
 * them. */
static void messages_at_the_end(void) {
  const int hops = HOPS;
  int size = 0;
  CHECK(mob_init() == MOB_OK);
  CHECK(mob_handler_register(0, hop, &hops_ended) == MOB_OK);
  CHECK(mob_barrier() == MOB_OK);
  size = mob_size();
  for (int i = 0; i < MESSAGES; ++i) {
    CHECK(mob_message_send(i % size, 0, &hops, sizeof hops, NULL, 0, NULL) == MOB_OK);
  }
  CHECK(mob_finalize() == MOB_OK);
  /* Each process sends the same number to each target, and all make the same number of hops. */
  CHECK(hops_ended == MESSAGES);
}

/* Enough of the calls that need not wait for other ranks that they must wait at last. */
enum { MANY = 1000 };

/* The last rank leaves while the others are in a collective call: they get an error, and the rank's
 * messages at its end do not count as its part of the call. */
static void leaves(const char* during) {
  const int value = 7;
  int result = 0;
  int* all = NULL;
  mob_status_t status = MOB_OK;
  CHECK(mob_init() == MOB_OK);
  const mob_rank_t last = mob_size() - 1;
  CHECK(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT32, &value, &result, 1) == MOB_OK);
  CHECK(result == value * mob_size());
  all = malloc((size_t)mob_size() * sizeof *all);
  CHECK(all != NULL);
  for (int i = 0; i < MANY && mob_rank() != last && status == MOB_OK; ++i) {
    mob_mem_t mem = NULL;
    if (strcmp(during, "barrier") == 0) {
      status = mob_barrier();
    } else if (strcmp(during, "allreduce") == 0) {
      status = mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT32, &value, &result, 1);
    } else if (strcmp(during, "broadcast_from_it") == 0) {
      status = mob_broadcast(MOB_TEAM_WORLD, last, &result, sizeof result);
    } else if (strcmp(during, "broadcast_to_it") == 0) {
      status = mob_broadcast(MOB_TEAM_WORLD, 0, &result, sizeof result);
    } else if (strcmp(during, "gather") == 0) {
      status = mob_gather(MOB_TEAM_WORLD, 0, &value, all, sizeof value);
    } else {
      status = mob_mem_alloc(64, &mem);
    }
    /* Only calls in which some members merely give to, or take from, other ranks succeed at times.
     */
    if (strncmp(during, "broadcast_to", 12) != 0 && strcmp(during, "gather") != 0) {
      CHECK(status == MOB_ERR_PEER);
    }
  }
  CHECK(mob_rank() == last || status == MOB_ERR_PEER);
  /* A rank that has left may have caused others to leave, so the error may name any of them. */
  if (mob_rank() != last) {
    CHECK(strncmp(mob_last_error(), "mob_", 4) == 0 && strstr(mob_last_error(), ": rank ") != NULL);
    CHECK(mob_barrier() == MOB_ERR_PEER);
    CHECK(strstr(mob_last_error(), "mob_barrier: this team is of no use any more: rank ") != NULL);
  }
  free(all);
  CHECK(mob_finalize() == MOB_OK);
}

/* Notifies the sender of the message. */
static void notify_back(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  (void)argument;
  (void)delivery;
  if (mob_notify(message->source) != MOB_OK) mob_abort(1, mob_last_error());
}

static void expect_end_of_job(mob_status_t status) {
  CHECK(status == MOB_ERR_PEER);
  CHECK(strstr(mob_last_error(), "has come to the end of the job (mob_finalize)") != NULL);
}

/* The last rank answers each of the others once and leaves. They find the answer, however late they
 * wait, and get an error for a second one, unless one of the rank's handlers may still give it. */
static void awaited_at_the_end(const char* what) {
  mob_epoch_t epoch = NULL;
  mob_rank_t others[16];
  uint32_t count = 0;
  CHECK(mob_init() == MOB_OK);
  CHECK(mob_handler_register(0, notify_back, NULL) == MOB_OK);
  CHECK(mob_epoch_create(MOB_TEAM_WORLD, &epoch) == MOB_OK);
  const mob_rank_t last = mob_size() - 1;
  for (mob_rank_t rank = 0; rank < last; ++rank) others[rank] = rank;
  const int leaves_now = mob_rank() == last;
  if (strcmp(what, "notify") == 0) {
    for (mob_rank_t rank = 0; leaves_now && rank < last; ++rank) CHECK(mob_notify(rank) == MOB_OK);
    if (!leaves_now) {
      CHECK(mob_notify_wait(last, &count) == MOB_OK && count == 1);
      /* It serves requests until all ranks have reached their ends, so the others wait for it. */
      CHECK(mob_message_send(last, 0, NULL, 0, NULL, 0, NULL) == MOB_OK);
      CHECK(mob_notify_wait(last, &count) == MOB_OK && count == 2);
    }
  } else if (strcmp(what, "epoch_start") == 0) {
    if (leaves_now) {
      CHECK(mob_epoch_post(epoch, others, last) == MOB_OK);
      CHECK(mob_epoch_wait(epoch) == MOB_OK);
    } else {
      CHECK(mob_epoch_start(epoch, &last, 1) == MOB_OK);
      CHECK(mob_epoch_complete(epoch) == MOB_OK);
      expect_end_of_job(mob_epoch_start(epoch, &last, 1));
      CHECK(mob_epoch_complete(epoch) == MOB_ERR_STATE); /* none was begun */
    }
  } else {
    if (leaves_now) {
      CHECK(mob_epoch_start(epoch, others, last) == MOB_OK);
      CHECK(mob_epoch_complete(epoch) == MOB_OK);
    } else {
      for (int round = 0; round < 2; ++round) {
        CHECK(mob_epoch_post(epoch, &last, 1) == MOB_OK);
        const mob_status_t status = mob_epoch_wait(epoch);
        if (round != 0) {
          expect_end_of_job(status);
        } else {
          CHECK(status == MOB_OK);
        }
      }
      CHECK(mob_epoch_wait(epoch) == MOB_ERR_STATE); /* it has ended */
    }
  }
  CHECK(mob_finalize() == MOB_OK);
}

/* A child of fork() is in no job, and its calls do nothing to its parent's job. */
static void forked(void) {
  mob_mem_t mem = NULL;
  void* there = NULL;
  uint64_t word = 0;
  CHECK(mob_init() == MOB_OK);
  const mob_rank_t right = (mob_rank() + 1) % mob_size();
  CHECK(mob_mem_alloc(8, &mem) == MOB_OK);
  CHECK(mob_mem_address(mem, right, 0, &there) == MOB_OK);
  CHECK(mob_put8(right, there, 1) == MOB_OK); /* inlined from now on */
  CHECK(mob_barrier() == MOB_OK);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(mob_put8(right, there, 2) == MOB_ERR_STATE);
    CHECK(mob_get8(right, there, &word) == MOB_ERR_STATE);
    expect_state_errors("in a child of fork()");
    CHECK(mob_init() == MOB_ERR_STATE);
    CHECK(mob_finalize() == MOB_ERR_STATE);
    _exit(failures);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(mob_barrier() == MOB_OK);
  CHECK(mob_rank_alive(right) == 1);
  CHECK(mob_get8(right, there, &word) == MOB_OK);
  CHECK(word == 1);
  CHECK(mob_barrier() == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
}

/* Files that the library opens do not become the standard output of a program that has closed it.
 */
static void closed_descriptors(void) {
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  CHECK(mob_init() == MOB_OK);
  mob_mem_t mem = NULL;
  CHECK(mob_mem_alloc(4096, &mem) == MOB_OK);
  memset(mob_mem_local(mem), 7, 4096);
  for (int i = 0; i < 500; ++i) printf("a line of a program that has closed its output\n");
  fflush(stdout);
  CHECK(mob_barrier() == MOB_OK);
  const unsigned char* bytes = mob_mem_local(mem);
  for (int i = 0; i < 4096; ++i) CHECK(bytes[i] == 7);
  CHECK(mob_mem_free(mem) == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
}

/* A program that closes descriptors which are not its own, as daemons do, and then opens a file
 * that gets a number of the library's: the file stays as it is, and calls that need the descriptor
 * say why they fail. */
static void descriptors_closed_later(void) {
  enum { PIECES = 1300, PIECE = 4096 };
  const off_t distance = (off_t)1 << 20;
  static unsigned char piece[PIECE];
  CHECK(mob_init() == MOB_OK);
  mob_mem_t mem = NULL;
  CHECK(mob_mem_alloc((size_t)4 << 20, &mem) == MOB_OK);
  for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
  int files[3];
  for (int file = 0; file < 3; ++file) {
    char name[] = "/tmp/mobius-lifecycle-XXXXXX";
    CHECK((files[file] = mkstemp(name)) >= 0);
    unlink(name);
    memset(piece, 0xff, PIECE);
    for (int i = 0; i < PIECES; ++i)
      CHECK(pwrite(files[file], piece, PIECE, i * distance) == PIECE);
  }
  mob_mem_t more = NULL;
  CHECK(mob_mem_alloc((size_t)4 << 20, &more) == MOB_ERR_STATE);
  CHECK(strstr(mob_last_error(), "was closed by the program") != NULL);
  CHECK(mob_mem_free(mem) == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
  for (int file = 0; file < 3; ++file) {
    CHECK(lseek(files[file], 0, SEEK_END) == (PIECES - 1) * distance + PIECE);
    for (int i = 0; i < PIECES; ++i) {
      memset(piece, 0, PIECE);
      CHECK(pread(files[file], piece, PIECE, i * distance) == PIECE && piece[0] == 0xff &&
            memcmp(piece, piece + 1, PIECE - 1) == 0);
    }
    close(files[file]);
  }
}

/* One rank closes all its descriptors but the standard ones, as daemons do, and the job goes on:
 * the launcher does not take it for dead, and it leaves in order. Memory that exists is used as
 * before; only new memory needs a descriptor. */
static void rank_without_descriptors(void) {
  CHECK(mob_init() == MOB_OK);
  const mob_rank_t size = mob_size();
  const mob_rank_t last = size - 1;
  mob_mem_t mem = NULL;
  CHECK(mob_mem_alloc((size_t)1 << 20, &mem) == MOB_OK);
  int files[2] = {-1, -1};
  if (mob_rank() == last) {
    for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
    /* These get numbers that the library used, and bytes sent to the launcher would be read here.
     */
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, files) == 0);
  }
  for (uint64_t round = 1; round <= 300; ++round) { /* the launcher notices meanwhile */
    void* there = NULL;
    CHECK(mob_mem_address(mem, (mob_rank() + 1) % size, 0, &there) == MOB_OK);
    CHECK(mob_put8((mob_rank() + 1) % size, there, round) == MOB_OK);
    CHECK(mob_barrier() == MOB_OK);
    CHECK(*(uint64_t*)mob_mem_local(mem) == round);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK(mob_barrier() == MOB_OK);
  }
  for (mob_rank_t rank = 0; rank < size; ++rank) CHECK(mob_rank_alive(rank) == 1);
  CHECK(mob_mem_free(mem) == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
  if (mob_rank() == last) {
    char bytes[8];
    for (int i = 0; i < 2; ++i) {
      CHECK(fcntl(files[i], F_GETFD) >= 0);
      CHECK(recv(files[i], bytes, sizeof bytes, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    }
  }
}

/* The first rank of a host, which finds room for the others, has closed its descriptors: each rank
 * is told what is wrong, and nobody that the window is full. */
static void leader_without_descriptors(void) {
  CHECK(mob_init() == MOB_OK);
  if (mob_rank() == 0) {
    for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
  }
  mob_mem_t mem = NULL;
  const mob_status_t status = mob_mem_alloc((size_t)4 << 20, &mem);
  CHECK(status == (mob_rank() == 0 ? MOB_ERR_STATE : MOB_ERR_PEER));
  const char* reason =
      mob_rank() == 0 ? "was closed by the program" : "at rank 0 with MOB_ERR_STATE";
  CHECK(strstr(mob_last_error(), reason) != NULL);
  CHECK(mob_barrier() == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
}

/* Memory of the caller that the kernel cannot copy to is an error of the caller, not of the target.
 * The target waits outside the library meanwhile, so that the kernel copies. */
static void forbidden_buffer(void) {
  enum { BYTES = 1 << 16 };
  struct place {
    char* memory;
    int pid;
    volatile int is_done;
  };
  CHECK(mob_init() == MOB_OK);
  mob_mem_t mem = NULL;
  CHECK(mob_mem_alloc(sizeof(struct place), &mem) == MOB_OK);
  struct place* mine = mob_mem_local(mem);
  char* target = malloc(BYTES);
  char* constant = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mob_exposed_t exposed = NULL;
  CHECK(target != NULL && constant != MAP_FAILED);
  CHECK(mob_expose(target, BYTES, 0, &exposed) == MOB_OK);
  mine->memory = target;
  mine->pid = getpid();
  CHECK(mob_barrier() == MOB_OK);
  const mob_rank_t other = 1 - mob_rank();
  void* there = NULL;
  struct place theirs;
  CHECK(mob_mem_address(mem, other, 0, &there) == MOB_OK);
  CHECK(mob_get(other, there, &theirs, sizeof theirs) == MOB_OK);
  CHECK(mob_barrier() == MOB_OK);
  if (mob_rank() == 1) {
    while (!mine->is_done) usleep(1000);
  } else {
    struct iovec here = {target, 8}, far = {theirs.memory, 8};
    if (process_vm_readv(theirs.pid, &here, 1, &far, 1, 0) != 8) {
      printf("SKIP: the kernel copies nothing between processes here\n");
      skipped = 1;
    } else {
      CHECK(mob_get(1, theirs.memory, constant, 64) == MOB_ERR_ARGUMENT);
      CHECK(strstr(mob_last_error(), "the caller's memory at ") != NULL);
      CHECK(strstr(mob_last_error(), "may not be written") != NULL);
      CHECK(mob_get(1, theirs.memory + BYTES, target, 64) == MOB_ERR_RANGE);
    }
    const int done = 1;
    CHECK(mob_put(1, (char*)there + offsetof(struct place, is_done), &done, sizeof done) == MOB_OK);
  }
  CHECK(mob_barrier() == MOB_OK);
  CHECK(mob_withdraw(exposed) == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
}

/* How many huge pages the kernel makes while they are mapped, beyond those that it keeps; -1: not
   known. */
static long spare_huge_pages(void) {
  long count = -1;
  FILE* file = fopen("/proc/sys/vm/nr_overcommit_hugepages", "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%ld", &count) != 1) count = -1;
  fclose(file);
  return count;
}

/* Only root may; others map huge pages where the kernel keeps some. */
static void allow_huge_pages(long count) {
  FILE* file = fopen("/proc/sys/vm/nr_overcommit_hugepages", "w");
  if (file == NULL) return;
  fprintf(file, "%ld", count);
  fclose(file);
}

/* Huge pages of hugetlbfs cannot move: that is an error of the argument, as the header says. */
static void moved_huge_pages(void) {
  const size_t bytes = (size_t)2 << 20;
  CHECK(mob_init() == MOB_OK);
  const long spare = mob_rank() == 0 ? spare_huge_pages() : -1;
  if (spare >= 0) allow_huge_pages(spare + mob_size());
  CHECK(mob_barrier() == MOB_OK);
  void* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  CHECK(mob_barrier() == MOB_OK);
  if (spare >= 0) allow_huge_pages(spare);
  mob_exposed_t exposed = NULL;
  if (memory == MAP_FAILED) {
    printf("SKIP: no huge pages (vm.nr_hugepages), and no right to allow some\n");
    skipped = 1;
  } else {
    memset(memory, 1, bytes);
    CHECK(mob_expose(memory, bytes, MOB_EXPOSE_REMAP, &exposed) == MOB_ERR_ARGUMENT);
    CHECK(strstr(mob_last_error(), "MAP_HUGETLB") != NULL);
    CHECK(*(char*)memory == 1);
    CHECK(mob_expose(memory, bytes, 0, &exposed) == MOB_OK);
    CHECK(mob_withdraw(exposed) == MOB_OK);
    CHECK(munmap(memory, bytes) == 0);
  }
  CHECK(mob_barrier() == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
}

static long mapping_count(void) {
  long lines = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  if (maps == NULL) return -1;
  for (int c = getc(maps); c != EOF; c = getc(maps)) lines += c == '\n';
  fclose(maps);
  return lines;
}

static void* do_nothing(void* argument) { return argument; }

/* Freed allocations between others take mappings, of which the kernel allows a process so many: the
   program keeps half of them. */
static void freed_in_between(void) {
  enum { COUNT = 67000 };
  long most = 0;
  FILE* limit = fopen("/proc/sys/vm/max_map_count", "r");
  CHECK(limit != NULL && fscanf(limit, "%ld", &most) == 1);
  if (limit != NULL) fclose(limit);
  CHECK(mob_init() == MOB_OK);
  mob_mem_t* blocks = calloc(COUNT, sizeof *blocks);
  CHECK(blocks != NULL);
  int made = 0;
  while (made < COUNT && mob_mem_alloc(64, &blocks[made]) == MOB_OK) ++made;
  if (made < COUNT || most > COUNT) {
    printf("SKIP: %d allocations of %d, %ld mappings allowed: %s\n", made, COUNT, most,
           mob_last_error());
    skipped = 1;
  }
  for (int i = 0; i < made; i += 2) CHECK(mob_mem_free(blocks[i]) == MOB_OK);
  CHECK(skipped || mapping_count() < most / 2);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, do_nothing, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  for (int i = 1; i < made; i += 2) CHECK(mob_mem_free(blocks[i]) == MOB_OK);
  free(blocks);
  CHECK(mob_finalize() == MOB_OK);
}

static pthread_t first_thread;

/* Continues after the main() of a program has ended. */
static void* outlive_main(void* whether_main_ends) {
  const size_t bytes = (size_t)4 << 20;
  char* buffer = malloc(bytes);
  char* target = malloc(bytes);
  char* moved = malloc(bytes);
  void* targets[2];
  void* moved_targets[2];
  mob_exposed_t exposed[2] = {NULL, NULL};
  const mob_rank_t peer = 1 - mob_rank();
  memset(buffer, 1 + mob_rank(), bytes);
  CHECK(mob_broadcast(MOB_TEAM_WORLD, 0, buffer, bytes) == MOB_OK);
  if (whether_main_ends != NULL) pthread_join(first_thread, NULL);
  CHECK(mob_barrier() == MOB_OK);
  CHECK(mob_expose(target, bytes, 0, &exposed[0]) == MOB_OK);
  CHECK(mob_expose(moved, bytes, MOB_EXPOSE_REMAP, &exposed[1]) == MOB_OK);
  CHECK(mob_publish(MOB_TEAM_WORLD, target, targets) == MOB_OK);
  CHECK(mob_publish(MOB_TEAM_WORLD, moved, moved_targets) == MOB_OK);
  for (int i = 0; i < 5; ++i) {
    memset(buffer, 10 + mob_rank() + i, bytes);
    CHECK(mob_put(peer, targets[peer], buffer, bytes) == MOB_OK);
    CHECK(mob_put(peer, moved_targets[peer], buffer, bytes) == MOB_OK);
    CHECK(mob_flush_all() == MOB_OK);
    CHECK(mob_barrier() == MOB_OK);
    CHECK(target[0] == 10 + peer + i && target[bytes - 1] == 10 + peer + i);
    CHECK(moved[0] == 10 + peer + i && moved[bytes - 1] == 10 + peer + i);
    memset(buffer, 20 + mob_rank(), bytes);
    CHECK(mob_broadcast(MOB_TEAM_WORLD, i % 2, buffer, bytes) == MOB_OK);
    CHECK(buffer[0] == 20 + i % 2 && buffer[bytes - 1] == 20 + i % 2);
  }
  CHECK(mob_rank_alive(peer) == 1);
  for (int i = 0; i < 2; ++i) CHECK(mob_withdraw(exposed[i]) == MOB_OK);
  CHECK(mob_finalize() == MOB_OK);
  free(buffer);
  free(target);
  free(moved);
  if (whether_main_ends != NULL) exit(failures == 0 ? 0 : 1);
  return NULL;
}

/* main() of one rank ends with pthread_exit() while another thread continues: the kernel no longer
 * finds memory under the process's own id, but the process lives. */
static void main_thread_ends(void) {
  static int ends = 1;
  pthread_t worker;
  CHECK(mob_init() == MOB_OK);
  CHECK(mob_size() == 2);
  first_thread = pthread_self();
  CHECK(pthread_create(&worker, NULL, outlive_main, mob_rank() == 1 ? &ends : NULL) == 0);
  if (mob_rank() == 1) pthread_exit(NULL);
  pthread_join(worker, NULL);
}

/* One rank becomes a process to which others may not attach, and a root changes its user, as
 * servers do. Collective calls with much private memory continue, by copies that need no
 * permission. */
static void privileges_dropped(void) {
  const size_t bytes = (size_t)8 << 20;
  char* in = malloc(bytes);
  char* out = malloc(bytes);
  CHECK(mob_init() == MOB_OK);
  for (int round = 0; round < 3; ++round) {
    for (int root = 0; root < 2; ++root) {
      memset(in, mob_rank() == root ? 1 + round : 0, bytes);
      CHECK(mob_broadcast(MOB_TEAM_WORLD, root, in, bytes) == MOB_OK);
      CHECK(in[0] == 1 + round && in[bytes - 1] == 1 + round);
    }
    memset(in, 10 + mob_rank(), bytes);
    CHECK(mob_allgather(MOB_TEAM_WORLD, in, out, bytes / 2) == MOB_OK);
    CHECK(out[0] == 10 && out[bytes / 2] == 11 && out[bytes - 1] == 11);
    CHECK(mob_gather(MOB_TEAM_WORLD, 0, in, out, bytes / 2) == MOB_OK);
    CHECK(mob_scatter(MOB_TEAM_WORLD, 0, in, out, bytes / 2) == MOB_OK);
    CHECK(out[0] == 10 && out[bytes / 2 - 1] == 10);
    CHECK(mob_alltoall(MOB_TEAM_WORLD, in, out, bytes / 2) == MOB_OK);
    CHECK(out[0] == 10 && out[bytes - 1] == 11);
    CHECK(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT8, in, out, bytes) == MOB_OK);
    CHECK(out[0] == 21 && out[bytes - 1] == 21);
    if (round == 0 && mob_rank() == 1) CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    if (round == 1 && mob_rank() == 0 && geteuid() == 0)
      CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    CHECK(mob_barrier() == MOB_OK);
  }
  CHECK(mob_finalize() == MOB_OK);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  const char* test = argc > 1 ? argv[1] : "";
  if (strcmp(test, "unused") == 0) {
    expect_state_errors("before mob_init()");
    CHECK(mob_version()[0] != '\0');
  } else if (strcmp(test, "twice") == 0) {
    CHECK(mob_init() == MOB_OK);
    CHECK(mob_init() == MOB_ERR_STATE);
    CHECK(strstr(mob_last_error(), "twice") != NULL);
    CHECK(mob_rank() == 0);
    CHECK(mob_finalize() == MOB_OK);
  } else if (strcmp(test, "after_finalize") == 0) {
    mob_mem_t mem = NULL;
    CHECK(mob_init() == MOB_OK);
    CHECK(mob_mem_alloc(64, &mem) == MOB_OK); /* left for mob_finalize() to free */
    CHECK(mob_put8(0, mob_mem_local(mem), 1) == MOB_OK);
    CHECK(mob_finalize() == MOB_OK);
    expect_state_errors("after mob_finalize()");
    CHECK(mob_init() == MOB_ERR_STATE);
  } else if (strcmp(test, "forked") == 0) {
    forked();
  } else if (strcmp(test, "forbidden_buffer") == 0) {
    forbidden_buffer();
  } else if (strcmp(test, "moved_huge_pages") == 0) {
    moved_huge_pages();
  } else if (strcmp(test, "freed_in_between") == 0) {
    freed_in_between();
  } else if (strcmp(test, "rank_without_descriptors") == 0) {
    rank_without_descriptors();
  } else if (strcmp(test, "leader_without_descriptors") == 0) {
    leader_without_descriptors();
  } else if (strcmp(test, "closed_descriptors") == 0) {
    closed_descriptors();
  } else if (strcmp(test, "descriptors_closed_later") == 0) {
    descriptors_closed_later();
  } else if (strcmp(test, "main_thread_ends") == 0) {
    main_thread_ends();
  } else if (strcmp(test, "privileges_dropped") == 0) {
    privileges_dropped();
  } else if (strcmp(test, "moved_memory") == 0) {
    keep_moved_memory();
  } else if (strcmp(test, "moved_heap") == 0) {
    keep_moved_heap(1);
  } else if (strcmp(test, "moved_heap_stays") == 0) {
    keep_moved_heap(0);
  } else if (strcmp(test, "malformed_setting") == 0) {
    setenv("MOBIUS_SPIN_NS", "fast", 1);
    return init_fails_with(MOB_ERR_SETTING, "MOBIUS_SPIN_NS='fast'");
  } else if (strcmp(test, "window_too_small") == 0) {
    setenv("MOBIUS_WINDOW_BYTES", "1M", 1);
    return init_fails_with(MOB_ERR_SETTING, "MOBIUS_WINDOW_BYTES='1M'");
  } else if (strcmp(test, "launcher_gone") == 0) {
    setenv("MOBIUS_JOB", "00000000000000000000000000000000", 1);
    setenv("MOBIUS_RANK", "0", 1);
    return init_fails_with(MOB_ERR_SYSTEM, "cannot be reached");
  } else if (strcmp(test, "half_a_job") == 0) {
    unsetenv("MOBIUS_JOB");
    setenv("MOBIUS_RANK", "0", 1);
    return init_fails_with(MOB_ERR_SETTING, "MOBIUS_JOB and MOBIUS_RANK");
  } else if (strcmp(test, "messages_at_the_end") == 0) {
    messages_at_the_end();
  } else if (strcmp(test, "leaves") == 0 && argc == 3) {
    leaves(argv[2]);
  } else if (strcmp(test, "awaited_at_the_end") == 0 && argc == 3) {
    awaited_at_the_end(argv[2]);
  } else {
    fprintf(stderr, "usage: lifecycle CASE\n");
    return 2;
  }
  return failures != 0 ? 1 : skipped ? 77 : 0;
}
