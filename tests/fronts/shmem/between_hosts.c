/* SPDX-License-Identifier: BSD-3-Clause */

/* Which single elements are not inlined between hosts, because the inlined call would break a
 * promise: puts of a context, which its shmem_ctx_quiet() has to complete, and atomic sets and
 * fetches, which have to be atomic beside updates. The program has its own functions in place of
 * the calls that do them, and sees what these get. */

#include "check.h"

static long word;
static shmem_ctx_t context_seen;
static int updates_seen;
static int fetches_seen;

void shmem_put_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                     const char* call) {
  (void)source, (void)pe, (void)call;
  CHECK(dest == &word && bytes == sizeof word);
  context_seen = ctx;
}
void shmem_update_slow_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                        unsigned bytes, int pe, const char* call) {
  (void)ctx, (void)dest, (void)pe, (void)call;
  CHECK(what == SHMEM_AMO_SWAP_ && value == 7 && bytes == sizeof word);
  ++updates_seen;
}
uint64_t shmem_fetch_slow_(shmem_ctx_t ctx, const void* source, unsigned bytes, int pe,
                           const char* call) {
  (void)ctx, (void)source, (void)pe, (void)call;
  CHECK(bytes == sizeof word);
  ++fetches_seen;
  return 40;
}

int main(void) {
  shmem_ctx_t ctx;
  long fetched = 0;
  shmem_init();
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  shmem_ctx_long_p(ctx, &word, 1, right_pe());
  CHECK(context_seen == ctx);
  context_seen = SHMEM_CTX_INVALID;
  shmem_ctx_long_put(ctx, &word, &(long){1}, 1, right_pe());
  CHECK(context_seen == ctx);
  shmem_long_atomic_set(&word, 7, right_pe());
  shmem_ctx_long_atomic_set(ctx, &word, 7, right_pe());
  CHECK(updates_seen == 2);
  shmem_long_atomic_fetch_nbi(&fetched, &word, right_pe());
  CHECK(fetched == 40);
  shmem_ctx_long_atomic_fetch_nbi(ctx, &fetched, &word, right_pe());
  CHECK(fetches_seen == 2);
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
