/* SPDX-License-Identifier: BSD-3-Clause */

/* A job in which the test that started it does something to a host, a process or the network:
 * `hosts_faults FOLDER WHAT`. Each rank repeats WHAT with the rank that is half the job away, until
 * a call fails or FOLDER/stop exists. It writes the result to FOLDER/rank.R: the name of the
 * status, a tab, and the error's text. FOLDER/ready.R says that it has begun. It uses files because
 * the launcher's output may be what is broken. Data are right with any status. */

#include <mobius/mobius.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)
#define HANDLER 3

typedef struct {
  uint64_t word;                     /* target of fetch-and-add */
  unsigned char fixed[BYTES];        /* pattern() of its owner, never changed */
  unsigned char landing[BYTES];      /* target of puts; bytes of one value each */
  unsigned char small_landing[1024]; /* target of small puts */
} memory_t;

static const char* folder;
static memory_t* mine;
static memory_t* theirs; /* an address in the partner */
static mob_rank_t partner;
static mob_mutexes_t mutexes;
static mob_access_t locks;
static unsigned char* buffer;
static uint64_t rounds;

static unsigned char pattern(mob_rank_t rank, size_t at) {
  return (unsigned char)((at * 131) ^ (at >> 8) ^ (size_t)(rank * 17));
}

static void write_file(const char* name, const char* text) {
  char path[600];
  char new_path[620];
  snprintf(path, sizeof path, "%s/%s.%d", folder, name, mob_rank());
  snprintf(new_path, sizeof new_path, "%s.new", path);
  FILE* file = fopen(new_path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(new_path, path) != 0) {
    perror(path);
    exit(3);
  }
}

static void need(mob_status_t status, const char* what) {
  if (status == MOB_OK) return;
  fprintf(stderr, "rank %d: %s: %s: %s\n", mob_rank(), what, mob_status_name(status),
          mob_last_error());
  exit(3);
}

static void wrong(const char* what) {
  char text[200];
  snprintf(text, sizeof text, "WRONG\t%s\n", what);
  write_file("rank", text);
  fprintf(stderr, "rank %d: wrong data: %s\n", mob_rank(), what);
  _exit(4);
}

static int is_told_to_stop(void) {
  char path[600];
  snprintf(path, sizeof path, "%s/stop", folder);
  return access(path, F_OK) == 0;
}

static void check_fixed(size_t bytes) {
  for (size_t i = 0; i < bytes; i += 509) {
    if (buffer[i] != pattern(partner, i)) wrong("what was got");
  }
}

static void take(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  (void)argument;
  (void)delivery;
  const unsigned char* payload = message->payload;
  if (payload == NULL || message->payload_bytes == 0) return;
  if (payload[0] != payload[message->payload_bytes - 1]) abort();
}

static mob_status_t get(size_t bytes) {
  memset(buffer, 0, bytes);
  const mob_status_t status = mob_get(partner, theirs->fixed, buffer, bytes);
  if (status == MOB_OK) check_fixed(bytes);
  return status;
}

static mob_status_t put(unsigned char* to, size_t bytes) {
  memset(buffer, (int)(rounds & 0xff), bytes);
  const mob_status_t status = mob_put(partner, to, buffer, bytes);
  return status != MOB_OK ? status : mob_flush(partner);
}

static mob_status_t send(void) {
  memset(buffer, (int)(rounds & 0xff), 5000);
  for (int i = 0; i < 10; ++i) {
    const mob_status_t status = mob_message_send(partner, HANDLER, NULL, 0, buffer, 5000, NULL);
    if (status != MOB_OK) return status;
  }
  return mob_message_flush(partner);
}

/* The flush must learn that both have ended, or that they never will. */
static mob_status_t put_beside_messages(void) {
  const mob_status_t status = mob_message_send(partner, HANDLER, NULL, 0, NULL, 0, NULL);
  return status != MOB_OK ? status : put(theirs->small_landing, 8);
}

static mob_status_t lock(void) {
  const mob_status_t status = mob_mutex_lock(mutexes, 0, partner, NULL);
  return status != MOB_OK ? status : mob_mutex_unlock(mutexes, 0, partner);
}

/* The lock, the operations under it, and its end in one message, or nearly. */
static mob_status_t access_nbi(void) {
  uint64_t old = 0;
  mob_status_t status = mob_access_lock_nbi(locks, partner, MOB_EXCLUSIVE);
  if (status == MOB_OK && rounds % 2 != 0) {
    status = mob_get8(partner, &theirs->word, &old);
    if (status == MOB_OK && old != 0) wrong("what was got with access");
  }
  memset(buffer, (int)(rounds & 0xff), 100);
  if (status == MOB_OK) status = mob_put(partner, theirs->small_landing, buffer, 100);
  return status != MOB_OK ? status : mob_access_unlock(locks, partner);
}

static mob_status_t reduce(void) {
  int64_t one = 1;
  int64_t sum = 0;
  const mob_status_t status = mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT64, &one, &sum, 1);
  if (status == MOB_OK && sum != mob_size()) wrong("a sum");
  return status;
}

/* Many operations of all kinds, rarely waited for: the data for a stopped partner must be bounded
 * in memory, and must arrive when it continues. */
static mob_status_t flood(void) {
  uint64_t old = 0;
  mob_status_t status = MOB_OK;
  memset(buffer, (int)(rounds & 0xff), 40000);
  for (int i = 0; status == MOB_OK && i < 100; ++i) {
    status = mob_put_nbi(partner, theirs->landing, buffer, 40000);
    if (status == MOB_OK) status = mob_put(partner, theirs->small_landing, buffer, 100);
    if (status == MOB_OK) {
      status = mob_message_send(partner, HANDLER, NULL, 0, buffer, 5000, NULL);
    }
    if (status == MOB_OK) {
      status = mob_get_nbi(partner, theirs->fixed, buffer + BYTES / 2 + i * 1000, 1000);
    }
  }
  const mob_status_t flushed = status == MOB_OK ? mob_flush(partner) : MOB_OK;
  if (status != MOB_OK || flushed != MOB_OK) return status != MOB_OK ? status : flushed;
  for (size_t i = 0; i < 100000; ++i) {
    if (buffer[BYTES / 2 + i] != pattern(partner, i % 1000)) wrong("what was got in a flood");
  }
  return mob_fetch_add8(partner, &theirs->word, 1, &old);
}

static mob_status_t step(const char* what) {
  uint64_t old = 0;
  if (strcmp(what, "small_put") == 0) return put(theirs->small_landing, 8);
  if (strcmp(what, "put") == 0) return put(theirs->landing, 100000);
  if (strcmp(what, "large_put") == 0) return put(theirs->landing, BYTES);
  if (strcmp(what, "get") == 0) return get(100000);
  if (strcmp(what, "large_get") == 0) return get(BYTES);
  if (strcmp(what, "fetch_add") == 0) return mob_fetch_add8(partner, &theirs->word, 1, &old);
  if (strcmp(what, "messages") == 0) return send();
  if (strcmp(what, "put_beside_messages") == 0) return put_beside_messages();
  if (strcmp(what, "lock") == 0) return lock();
  if (strcmp(what, "access_nbi") == 0) return access_nbi();
  if (strcmp(what, "barrier") == 0) return mob_barrier();
  if (strcmp(what, "allreduce") == 0) return reduce();
  if (strcmp(what, "flood") == 0) return flood();
  fprintf(stderr, "unknown case '%s'\n", what);
  exit(2);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  folder = words[1];
  const char* what = words[2];
  need(mob_init(), "mob_init");
  const mob_rank_t rank = mob_rank();
  partner = (rank + (mob_size() + 1) / 2) % mob_size();
  mob_mem_t memory = NULL;
  need(mob_mem_alloc(sizeof(memory_t), &memory), "mob_mem_alloc");
  mine = mob_mem_local(memory);
  void* address = NULL;
  need(mob_mem_address(memory, partner, 0, &address), "mob_mem_address");
  theirs = address;
  for (size_t i = 0; i < BYTES; ++i) mine->fixed[i] = pattern(rank, i);
  buffer = malloc(BYTES);
  if (buffer == NULL) return 3;
  need(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes), "mob_mutexes_create");
  need(mob_access_create(MOB_TEAM_WORLD, &locks), "mob_access_create");
  need(mob_handler_register(HANDLER, take, NULL), "mob_handler_register");
  need(mob_barrier(), "mob_barrier");
  mob_status_t status = step(what);
  need(status, what);
  write_file("ready", "");
  const int is_collective = strcmp(what, "barrier") == 0 || strcmp(what, "allreduce") == 0;
  while (status == MOB_OK && (is_collective || !is_told_to_stop())) {
    ++rounds;
    status = step(what);
  }
  char text[1200];
  snprintf(text, sizeof text, "%s\t%s\n", mob_status_name(status),
           status == MOB_OK ? "" : mob_last_error());
  write_file("rank", text);
  /* Returns whichever rank is gone. */
  (void)mob_finalize();
  return 0;
}
