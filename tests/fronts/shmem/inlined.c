/* SPDX-License-Identifier: BSD-3-Clause */

/* Which calls are inlined within a host: the program has its own functions in place of those that
 * the inlined calls fall back to, and counts them. */

#include "check.h"

enum { kCount = 20 };

static long word;
static double values[2 * kCount];
static int slow_calls;

void shmem_put_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                     const char* call) {
  (void)ctx, (void)dest, (void)source, (void)bytes, (void)pe, (void)call;
  ++slow_calls;
}
void shmem_get_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                     const char* call) {
  (void)ctx, (void)source, (void)pe, (void)call;
  memset(dest, 0, bytes);
  ++slow_calls;
}
void shmem_iput_slow_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t bytes, int pe, const char* call) {
  (void)ctx, (void)dest, (void)source, (void)dst, (void)sst;
  (void)nelems, (void)bytes, (void)pe, (void)call;
  ++slow_calls;
}
void shmem_iget_slow_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t bytes, int pe, const char* call) {
  shmem_iput_slow_(ctx, dest, source, dst, sst, nelems, bytes, pe, call);
}
uint64_t shmem_amo_slow_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                         uint64_t expected, unsigned bytes, int pe, const char* call) {
  (void)ctx, (void)what, (void)dest, (void)value, (void)expected, (void)bytes, (void)pe, (void)call;
  ++slow_calls;
  return 0;
}

static void check_object(long* object, double* strided) {
  double local[kCount];
  int i;
  const int me = shmem_my_pe();
  shmem_barrier_all();
  /* The first access makes the library look the memory up. */
  shmem_double_p(strided, 1, right_pe());
  shmem_long_p(object, me + 1, right_pe());
  CHECK(shmem_long_g(object, right_pe()) == me + 1);
  CHECK(shmem_long_atomic_fetch_add(object, 5, right_pe()) == me + 1);
  CHECK(shmem_long_atomic_swap(object, 3, right_pe()) == me + 6);
  shmem_long_put(object, &(long){7}, 1, right_pe());
  CHECK(shmem_long_g(object, right_pe()) == 7);
  for (i = 0; i < kCount; ++i) local[i] = me * 100 + i;
  /* Backwards, so that the first element of the target is the last in memory. */
  shmem_double_iput(strided + (2 * kCount - 2), local, -2, 1, kCount, right_pe());
  shmem_barrier_all();
  for (i = 0; i < kCount; ++i) {
    CHECK(strided[2 * (kCount - 1 - i)] == left_pe() * 100 + i);
  }
  memset(local, 0, sizeof local);
  shmem_double_iget(local, strided, 1, 2, kCount, right_pe());
  for (i = 0; i < kCount; ++i) CHECK(local[kCount - 1 - i] == me * 100 + i);
  shmem_iput32(strided, local, 1, 1, 0, right_pe());
  CHECK(slow_calls == 1); /* nothing to move */
  slow_calls = 0;
  shmem_barrier_all();
}

int main(void) {
  long* object;
  double* strided;
  shmem_init();
  object = shmem_calloc(1, sizeof *object);
  strided = shmem_calloc(2 * kCount, sizeof *strided);
  check_object(object, strided);
  check_object(&word, values);
  shmem_finalize();
  return 0;
}
