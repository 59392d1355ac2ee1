// SPDX-License-Identifier: BSD-3-Clause

// Put, get and their completion, where shmem/inline.h does not do it.

#include "front.h"

namespace mobius::shmem {
namespace {

// A transfer of bytes between the caller and PE `pe` of a context.
struct Target {
  int pe;  // in the world
  char* place;
};

Target find_target(shmem_ctx_t ctx, const void* symmetric, int pe, const char* call,
                   const char* argument) {
  const int world = world_pe(ctx, pe, call);
  return {world, place_in(symmetric, world, call, argument)};
}

void check_overlap(const void* dest, const void* source, size_t bytes, int pe, const char* call) {
  const auto a = reinterpret_cast<uintptr_t>(dest);
  const auto b = reinterpret_cast<uintptr_t>(source);
  if (pe == shmem_state_.me && a != b && (a - b < bytes || b - a < bytes)) {
    die(call, "dest %p and source %p overlap: %zu bytes", dest, source, bytes);
  }
}

bool is_empty(shmem_ctx_t ctx, size_t bytes, int pe, const char* call) {
  if (bytes != 0) return false;
  if (debugs()) world_pe(ctx, pe, call);
  return true;
}

// Elements, or blocks of them, at strides. Strides count elements.
struct Strided {
  ptrdiff_t dest;
  ptrdiff_t source;
  size_t block_bytes;
  size_t blocks;
};

Strided strided(ptrdiff_t dst, ptrdiff_t sst, size_t element, size_t in_block, size_t blocks) {
  const auto bytes = static_cast<ptrdiff_t>(element);
  return {dst * bytes, sst * bytes, element * in_block, blocks};
}

// Elements without gaps; others may lie between each other.
void check_dense_overlap(const void* dest, const void* source, const Strided& shape, int pe,
                         const char* call) {
  const auto each = static_cast<ptrdiff_t>(shape.block_bytes);
  if (shape.dest != each || shape.source != each) return;
  check_overlap(dest, source, shape.block_bytes * shape.blocks, pe, call);
}

void put_strided(shmem_ctx_t ctx, void* dest, const void* source, const Strided& shape, int pe,
                 const char* call) {
  if (is_empty(ctx, shape.block_bytes * shape.blocks, pe, call)) return;
  const Target to = find_target(ctx, dest, pe, call, "dest");
  if (debugs()) check_dense_overlap(dest, source, shape, to.pe, call);
  const InContext in(ctx);
  check(mob_put_strided(to.pe, to.place, &shape.dest, source, &shape.source, shape.block_bytes,
                        &shape.blocks, 1),
        call);
}

void get_strided(shmem_ctx_t ctx, void* dest, const void* source, const Strided& shape, int pe,
                 const char* call) {
  if (is_empty(ctx, shape.block_bytes * shape.blocks, pe, call)) return;
  const Target from = find_target(ctx, source, pe, call, "source");
  if (debugs()) check_dense_overlap(dest, source, shape, from.pe, call);
  const InContext in(ctx);
  check(mob_get_strided(from.pe, from.place, &shape.source, dest, &shape.dest, shape.block_bytes,
                        &shape.blocks, 1),
        call);
}

void put_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                uint64_t signal, int sig_op, int pe, bool blocks, const char* call) {
  if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD) {
    die(call, "sig_op is %d; it must be SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD", sig_op);
  }
  const Target word = find_target(ctx, sig_addr, pe, call, "sig_addr");
  char* const place = bytes != 0 ? place_in(dest, word.pe, call, "dest") : nullptr;
  auto* const remote_signal = reinterpret_cast<uint64_t*>(word.place);
  const InContext in(ctx);
  if (blocks) {
    check(mob_put_signal(word.pe, place, source, bytes, remote_signal, signal,
                         static_cast<mob_signal_op_t>(sig_op)),
          call);
    return;
  }
  mob_transfer_t transfer = {};
  transfer.kind = MOB_PUT;
  transfer.shape = MOB_CONTIGUOUS;
  transfer.rank = word.pe;
  transfer.remote = place;
  transfer.local = const_cast<void*>(source);
  transfer.bytes = bytes;
  transfer.signal = remote_signal;
  transfer.signal_value = signal;
  transfer.signal_op = static_cast<mob_signal_op_t>(sig_op);
  check(mob_transfer_nbi(&transfer), call);
}

void quiet(shmem_ctx_t ctx, const char* call) {
  if (!is_valid(ctx, call)) return;
  const InContext in(ctx);
  check(mob_flush_all(), call);
}

void quiet_of(shmem_ctx_t ctx, const int* target_pes, size_t npes, const char* call) {
  if (!is_valid(ctx, call)) return;
  const InContext in(ctx);
  for (size_t i = 0; i < npes; ++i) {
    check(mob_flush(world_pe(ctx, target_pes[i], call)), call);
  }
}

}  // namespace
}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void shmem_put_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                     const char* call) {
  if (is_empty(ctx, bytes, pe, call)) return;
  const Target to = find_target(ctx, dest, pe, call, "dest");
  if (debugs()) check_overlap(dest, source, bytes, to.pe, call);
  const InContext in(ctx);
  check(mob_put(to.pe, to.place, source, bytes), call);
}

void shmem_put_nbi_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                         const char* call) {
  if (is_empty(ctx, bytes, pe, call)) return;
  const Target to = find_target(ctx, dest, pe, call, "dest");
  if (debugs()) check_overlap(dest, source, bytes, to.pe, call);
  const InContext in(ctx);
  check(mob_put_nbi(to.pe, to.place, source, bytes), call);
}

void shmem_get_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                     const char* call) {
  if (is_empty(ctx, bytes, pe, call)) return;
  const Target from = find_target(ctx, source, pe, call, "source");
  if (debugs()) check_overlap(dest, source, bytes, from.pe, call);
  const InContext in(ctx);
  check(mob_get(from.pe, from.place, dest, bytes), call);
}

void shmem_get_nbi_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                         const char* call) {
  if (is_empty(ctx, bytes, pe, call)) return;
  const Target from = find_target(ctx, source, pe, call, "source");
  if (debugs()) check_overlap(dest, source, bytes, from.pe, call);
  const InContext in(ctx);
  check(mob_get_nbi(from.pe, from.place, dest, bytes), call);
}

void shmem_iput_slow_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t bytes, int pe, const char* call) {
  put_strided(ctx, dest, source, strided(dst, sst, bytes, 1, nelems), pe, call);
}

void shmem_iget_slow_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t bytes, int pe, const char* call) {
  get_strided(ctx, dest, source, strided(dst, sst, bytes, 1, nelems), pe, call);
}

void shmem_quiet_failed_(const char* call) {
  check_started(call);
  die_of(call);
}

void shmem_fence_slow_(shmem_ctx_t ctx, const char* call) {
  if (!is_valid(ctx, call)) return;
  const InContext in(ctx);
  check(mob_fence(), call);
}

}  // extern "C"

// The forms with and without a context: `ctx` and `call` are theirs.
#define DEFINE_BOTH(name, parameters, ctx_parameters, body) \
  SHMEM_TWIN(void, name, parameters) {                      \
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                    \
    const char* const call = "shmem_" #name;                \
    body;                                                   \
  }                                                         \
  SHMEM_TWIN(void, ctx_##name, ctx_parameters) {            \
    const char* const call = "shmem_ctx_" #name;            \
    body;                                                   \
  }
// Blocks at strides; single elements at strides are in shmem/inline.h.
#define DEFINE_STRIDED(IB, T, BYTES, DO)                                                 \
  DEFINE_BOTH(IB,                                                                        \
              (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
               size_t nblocks, int pe),                                                  \
              (shmem_ctx_t ctx, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, \
               size_t bsize, size_t nblocks, int pe),                                    \
              DO(ctx, dest, source, strided(dst, sst, BYTES, bsize, nblocks), pe, call))
#define DEFINE_SIGNAL(NAME, T, BYTES, BLOCKS)                                                     \
  DEFINE_BOTH(                                                                                    \
      NAME,                                                                                       \
      (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, \
       int pe),                                                                                   \
      (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, uint64_t* sig_addr,             \
       uint64_t signal, int sig_op, int pe),                                                      \
      put_signal(ctx, dest, source, nelems*(BYTES), sig_addr, signal, sig_op, pe, BLOCKS, call))
#define DEFINE_TYPED(A, N, T)                          \
  DEFINE_STRIDED(N##_ibput, T, sizeof(T), put_strided) \
  DEFINE_STRIDED(N##_ibget, T, sizeof(T), get_strided) \
  DEFINE_SIGNAL(N##_put_signal, T, sizeof(T), true)    \
  DEFINE_SIGNAL(N##_put_signal_nbi, T, sizeof(T), false)
#define DEFINE_SIZED(A, BITS, BYTES)                    \
  DEFINE_STRIDED(ibput##BITS, void, BYTES, put_strided) \
  DEFINE_STRIDED(ibget##BITS, void, BYTES, get_strided) \
  DEFINE_SIGNAL(put##BITS##_signal, void, BYTES, true)  \
  DEFINE_SIGNAL(put##BITS##_signal_nbi, void, BYTES, false)
SHMEM_LIST_RMA_(DEFINE_TYPED, )
SHMEM_LIST_SIZES_(DEFINE_SIZED, )
DEFINE_SIGNAL(putmem_signal, void, 1, true)
DEFINE_SIGNAL(putmem_signal_nbi, void, 1, false)

DEFINE_BOTH(signal_set, (uint64_t* sig_addr, uint64_t signal, int pe),
            (shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe),
            put_signal(ctx, nullptr, nullptr, 0, sig_addr, signal, SHMEM_SIGNAL_SET, pe, true,
                       call))
DEFINE_BOTH(signal_add, (uint64_t* sig_addr, uint64_t signal, int pe),
            (shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe),
            put_signal(ctx, nullptr, nullptr, 0, sig_addr, signal, SHMEM_SIGNAL_ADD, pe, true,
                       call))
DEFINE_BOTH(pe_quiet, (const int* target_pes, size_t npes),
            (shmem_ctx_t ctx, const int* target_pes, size_t npes),
            quiet_of(ctx, target_pes, npes, call))

SHMEM_TWIN(void, ctx_quiet, (shmem_ctx_t ctx)) { quiet(ctx, "shmem_ctx_quiet"); }
SHMEM_TWIN(void, ctx_fence, (shmem_ctx_t ctx)) { shmem_fence_slow_(ctx, "shmem_ctx_fence"); }
