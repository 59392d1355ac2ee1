/* SPDX-License-Identifier: BSD-3-Clause */

/* A process of another host stops and falls silent: `silence CASE`, as a job on virtual hosts with
 * a short MOBIUS_PEER_TIMEOUT_MS and MOBIUS_LOG=warn. No other process may wait for ever. The last
 * line names the case and says "right"; then the job ends, with the stopped process. In "busy" no
 * process stops, and none may be declared dead. */

#include <mobius/mobius.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BYTES ((size_t)4 << 20)
#define PART_BYTES ((size_t)256 << 10)

enum { PARTS = 600, MOST_RANKS = 16, BUSY_PUTS = 5000 };

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s: %s\n", mob_rank(), what, mob_last_error());
  _exit(3);
}

static void need(mob_status_t status, const char* what) {
  if (status != MOB_OK) fail(what);
}

static void need_lost(mob_status_t status, const char* who, const char* what) {
  if (status != MOB_ERR_PEER || strstr(mob_last_error(), who) == NULL) fail(what);
}

static void await_notify(mob_rank_t from) {
  uint32_t count = 0;
  need(mob_notify_wait(from, &count), "mob_notify_wait");
}

static void stop(void) {
  raise(SIGSTOP);
  _exit(3);
}

/* Virtual hosts are one machine. */
static void await_stop(int pid) {
  char path[64];
  char state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  while (state != 'T') {
    usleep(1000);
    FILE* file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) fail(path);
    fclose(file);
  }
}

static void end(const char* what) {
  printf("silence: %s: right\n", what);
  fflush(stdout);
  mob_abort(0, "the end of a test");
}

/* Reads this process's log until it says that another is lost. */
static void read_loss(FILE* log) {
  char line[1000];
  while (fgets(line, sizeof line, log) != NULL) {
    if (strstr(line, " is lost") != NULL) return;
  }
  fail("the log ended");
}

/* All but the first and the last rank make large requests to rank 0, together more than its
 * transport takes, and stop. A request of the last rank still succeeds, and rank 0, which does not
 * call the library meanwhile, finds out. */
static void bulk(void) {
  mob_mem_t memory = NULL;
  need(mob_mem_alloc(LARGE_BYTES, &memory), "mob_mem_alloc");
  memset(mob_mem_local(memory), mob_rank() + 1, LARGE_BYTES);
  void* there = NULL;
  need(mob_mem_address(memory, 0, 0, &there), "mob_mem_address");
  char* buffer = calloc(1, LARGE_BYTES);
  int ends[2];
  if (buffer == NULL || pipe(ends) != 0) fail("no memory");
  if (mob_rank() == 0 && dup2(ends[1], STDERR_FILENO) < 0) fail("dup2");
  need(mob_barrier(), "mob_barrier");
  if (mob_rank() != 0) need(mob_get(0, there, buffer, LARGE_BYTES), "mob_get");
  int64_t pid = getpid();
  int64_t pids[MOST_RANKS];
  need(mob_allgather(MOB_TEAM_WORLD, &pid, pids, sizeof pid), "mob_allgather");
  const mob_rank_t last = mob_size() - 1;
  if (mob_rank() != 0 && mob_rank() != last) {
    for (int i = 0; i < PARTS; ++i) {
      need(mob_get_nbi(0, there, buffer, PART_BYTES), "mob_get_nbi");
    }
    mob_poll();
    stop();
  }
  if (mob_rank() == last) {
    for (mob_rank_t rank = 1; rank < last; ++rank) await_stop((int)pids[rank]);
    memset(buffer, 0, LARGE_BYTES);
    need(mob_get(0, there, buffer, LARGE_BYTES), "mob_get");
    for (size_t i = 0; i < LARGE_BYTES; ++i) {
      if (buffer[i] != 1) fail("what was got");
    }
    need(mob_notify(0), "mob_notify");
    pause();
  }
  read_loss(fdopen(ends[0], "r"));
  await_notify(last);
  end("bulk");
}

/* Rank 3 stops, with which rank 0 has never communicated: rank 0's wait for any rank ends. */
static void counter(void) {
  mob_counter_t never = NULL;
  need(mob_counter_create(&never), "mob_counter_create");
  need(mob_barrier(), "mob_barrier");
  if (mob_rank() == 3) stop();
  if (mob_rank() != 0) pause();
  need_lost(mob_counter_wait(never, 1, NULL), "rank 3 is lost", "mob_counter_wait");
  end("counter");
}

/* Rank 0 stops, and all other ranks enter a barrier: each gets the error. */
static void barrier(void) {
  need(mob_barrier(), "mob_barrier");
  /* Its messages in that barrier may still wait for a connection, and go first. */
  if (mob_rank() == 0) usleep(300000);
  if (mob_rank() == 0) stop();
  need_lost(mob_barrier(), "rank 0 is lost", "mob_barrier");
  if (mob_rank() != 1) {
    need(mob_notify(1), "mob_notify");
    pause();
  }
  for (mob_rank_t rank = 2; rank < mob_size(); ++rank) await_notify(rank);
  end("barrier");
}

/* The last rank stops, which is not the first of its host. The ranks of the other host learn of it,
 * while its local peers wait until it continues. */
static void local_peer(void) {
  const mob_rank_t last = mob_size() - 1;
  need(mob_barrier(), "mob_barrier");
  if (mob_rank() == last) stop();
  const mob_status_t status = mob_barrier();
  if (mob_is_host_mate(last) == 1) fail("a barrier ended without its local peer");
  need_lost(status, "rank 3 ", "mob_barrier");
  if (mob_rank() != 0) {
    need(mob_notify(0), "mob_notify");
    pause();
  }
  await_notify(1);
  end("local_peer");
}

/* Rank 1 stops. It may write to memory of rank 0 although it is not in the team, which still frees
 * the memory once rank 1 is lost. */
static void holder(void) {
  mob_team_t alone = NULL;
  mob_mem_t memory = NULL;
  void** there = NULL;
  need(mob_team_split(MOB_TEAM_WORLD, mob_rank(), 0, &alone), "mob_team_split");
  need(mob_team_alloc(alone, LARGE_BYTES, 0, &memory), "mob_team_alloc");
  there = calloc((size_t)mob_size(), sizeof *there);
  char* data = calloc(1, LARGE_BYTES);
  if (there == NULL || data == NULL) fail("no memory");
  need(mob_publish(MOB_TEAM_WORLD, mob_mem_local(memory), there), "mob_publish");
  for (int i = 0; i < 3 && mob_rank() == 1; ++i) {
    memset(data, i + 1, LARGE_BYTES);
    need(mob_put(0, there[0], data, LARGE_BYTES), "mob_put");
    need(mob_flush(0), "mob_flush");
  }
  need(mob_barrier(), "mob_barrier");
  if (mob_rank() == 1) stop();
  const char* mine = mob_mem_local(memory);
  if (mine[0] != 3 || mine[LARGE_BYTES - 1] != 3) fail("what was put");
  need(mob_mem_free(memory), "mob_mem_free");
  need_lost(mob_put(1, there[1], data, LARGE_BYTES), "rank 1 is lost", "mob_put");
  end("holder");
}

/* No process is silent, but both have so many large transfers at once that these take longer than
 * the time-out. Their other messages must not wait for all of them, and a process with many
 * transfers must be heard of. */
static void busy(void) {
  const mob_rank_t other = 1 - mob_rank();
  mob_mem_t mem = NULL;
  void* there = NULL;
  need(mob_mem_alloc(LARGE_BYTES, &mem), "mob_mem_alloc");
  need(mob_mem_address(mem, other, 0, &there), "mob_mem_address");
  char* data = malloc(LARGE_BYTES);
  if (data == NULL) fail("malloc");
  memset(data, mob_rank() + 1, LARGE_BYTES);
  need(mob_barrier(), "mob_barrier");
  for (int i = 0; i < BUSY_PUTS; ++i) {
    need(mob_put_nbi(other, there, data, LARGE_BYTES / 4), "mob_put_nbi");
  }
  need(mob_flush(other), "mob_flush");
  need(mob_barrier(), "mob_barrier");
  const char* mine = mob_mem_local(mem);
  for (size_t i = 0; i < LARGE_BYTES / 4; ++i) {
    if (mine[i] != other + 1) fail("what was put");
  }
  need(mob_mem_free(mem), "mob_mem_free");
  free(data);
  need(mob_barrier(), "mob_barrier");
  if (mob_rank() == 0) printf("silence: busy: right\n");
  need(mob_finalize(), "mob_finalize");
  exit(0);
}

int main(int count, char** words) {
  if (count != 2) return 2;
  need(mob_init(), "mob_init");
  if (strcmp(words[1], "bulk") == 0) bulk();
  if (strcmp(words[1], "counter") == 0) counter();
  if (strcmp(words[1], "barrier") == 0) barrier();
  if (strcmp(words[1], "local_peer") == 0) local_peer();
  if (strcmp(words[1], "holder") == 0) holder();
  if (strcmp(words[1], "busy") == 0) busy();
  fprintf(stderr, "unknown case '%s'\n", words[1]);
  return 2;
}
