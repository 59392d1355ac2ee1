/* SPDX-License-Identifier: BSD-3-Clause */

/* `hosts_tampered CASE BYTES`: rank 0 puts BYTES bytes into the memory of rank 1, on another
 * virtual host, and somebody on the path sees or changes what it sends. libfabric calls the
 * sendmsg() of this program, so all that leaves the process passes here.
 *
 * look: whether the contents can be read on the path. change: one byte of them arrives changed. The
 * ranks print what became of it, one line each. */

#include <mobius/mobius.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define TEXT "what nobody on the path may read"

/* Sends that are smaller are no contents: requests, reports. */
enum { LEAST_BYTES = 8192 };

static int is_armed, is_changing, was_seen, was_changed;

static ssize_t pass_on(int descriptor, const struct msghdr* message, int flags) {
  static ssize_t (*real)(int, const struct msghdr*, int);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "sendmsg");
  return real(descriptor, message, flags);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int descriptor, const struct msghdr* message,
                                                       int flags) {
  size_t bytes = 0;
  for (size_t i = 0; i < (size_t)message->msg_iovlen; ++i) bytes += message->msg_iov[i].iov_len;
  if (!__atomic_load_n(&is_armed, __ATOMIC_ACQUIRE) || bytes < LEAST_BYTES) {
    return pass_on(descriptor, message, flags);
  }
  char* all = malloc(bytes);
  if (all == NULL) abort();
  size_t at = 0;
  for (size_t i = 0; i < (size_t)message->msg_iovlen; ++i) {
    memcpy(all + at, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    at += message->msg_iov[i].iov_len;
  }
  if (memmem(all, bytes, TEXT, strlen(TEXT)) != NULL) was_seen = 1;
  /* Far behind all headers. */
  const size_t place = LEAST_BYTES / 2;
  const int changes = is_changing && !was_changed;
  if (changes) all[place] = (char)(all[place] ^ 1);
  struct iovec whole = {all, bytes};
  struct msghdr changed = *message;
  changed.msg_iov = &whole;
  changed.msg_iovlen = 1;
  const ssize_t sent = pass_on(descriptor, &changed, flags);
  if (changes && sent > (ssize_t)place) was_changed = 1;
  free(all);
  return sent;
}

static void need(mob_status_t status) {
  if (status != MOB_OK) mob_abort(3, mob_last_error());
}

static void fill(char* to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to[i] = TEXT[i % strlen(TEXT)];
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t bytes = strtoul(argv[2], NULL, 10);
  char* expected = malloc(bytes);
  if (expected == NULL) return 2;
  fill(expected, bytes);
  mob_mem_t mem;
  void* remote;
  need(mob_init());
  need(mob_mem_alloc(bytes, &mem));
  need(mob_barrier());
  if (mob_rank() == 0) {
    need(mob_mem_address(mem, 1, 0, &remote));
    is_changing = strcmp(argv[1], "change") == 0;
    __atomic_store_n(&is_armed, 1, __ATOMIC_RELEASE);
    /* The first put of an allocation may be a request that the target answers with a key. A second
     * put would repair what is changed. */
    for (int i = 0; i < (is_changing ? 1 : 3); ++i) {
      need(mob_put(1, remote, expected, bytes));
      need(mob_flush(1));
    }
    __atomic_store_n(&is_armed, 0, __ATOMIC_RELEASE);
    need(mob_notify(1));
    printf("rank 0: the contents were %s on the path\n", was_seen ? "seen" : "not seen");
  } else {
    uint32_t count = 0;
    need(mob_notify_wait(0, &count));
    const int is_same = memcmp(mob_mem_local(mem), expected, bytes) == 0;
    printf("rank 1: the bytes are %s\n", is_same ? "right" : "wrong");
  }
  need(mob_barrier());
  need(mob_mem_free(mem));
  need(mob_finalize());
  free(expected);
  return 0;
}
