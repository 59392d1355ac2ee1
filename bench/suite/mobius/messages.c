/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of Möbius. A message brings its data into the memory that its header names, and a
 * handler counts it there. The receiver waits for the count, and runs handlers meanwhile: what an
 * MPI's MPI_Send and MPI_Recv are to its programs.
 */

#include "../loops.h"
#include "mobius_blocks.h"

/* The identifier of the handler; the suite has no other one. */
enum { kArrives = 1 };

/* Both are addresses at the target. */
typedef struct header {
  uint64_t data, count;
} header_t;

/* Only one thread runs handlers of a process at a time. */
static void has_arrived(mob_token_t token, void* argument) {
  uint64_t* count = argument;
  (void)token;
  __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

static void arrives(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  const header_t* header = message->header;
  (void)argument;
  delivery->payload = (void*)(uintptr_t)header->data;
  delivery->handler = has_arrived;
  delivery->argument = (void*)(uintptr_t)header->count;
}

static SUITE_INLINE int send_to(mob_rank_t rank, const void* data, size_t bytes, uint64_t far_data,
                                uint64_t far_count) {
  const header_t header = {far_data, far_count};
  return mob_message_send(rank, kArrives, &header, sizeof header, data, bytes, NULL);
}

static SUITE_INLINE int await_count(const uint64_t* count, uint64_t expected) {
  return mob_wait_until_u8(count, MOB_GE, expected);
}

static int listen_open(suite_window_t* window) {
  (void)window;
  return mob_handler_register(kArrives, arrives, NULL);
}

static int exchange(suite_window_t* window, const suite_type_t* type, int to, int from,
                    const void* out, void* in) {
  if (type->run_count > 1) return MOB_ERR_ARGUMENT; /* its cells are of bytes in a row */
  if (to != SUITE_NOBODY) {
    /* The receiver's memory is laid out as this rank's. */
    size_t offset = (size_t)((unsigned char*)in - window->base);
    window->sent[to]++;
    TRY(send_to(mobius_rank_of(window, to), out, type->bytes, window->bases[to] + offset,
                window->bases[to] + suite_flag(window, window->comm->rank)));
  }
  if (from == SUITE_NOBODY) return MOB_OK;
  const void* count = window->base + suite_flag(window, from);
  return await_count(count, ++window->seen[from]);
}

static SUITE_INLINE int turn(suite_spot_t* spot) {
  spot->sent++;
  return send_to(spot->peer, spot->data, spot->bytes, spot->far_data, spot->far_flag);
}

static SUITE_INLINE int await(suite_spot_t* spot) { return await_count(spot->flag, ++spot->seen); }

SUITE_DEFINE_THERE_AND_BACK(messages, turn, await)
SUITE_REGISTER_LOOPS(loops, "message:none", "mob_message_send, a handler that counts", 0, messages,
                     NULL)

static suite_transfer_block_t message_block = {
    .head = {SUITE_TRANSFER, "message", "mob_message_send, a handler that counts", NULL},
    .effect = SUITE_MESSAGES,
    .exchange = exchange};
static suite_sync_block_t none_block = {
    {SUITE_SYNC, "none", "nothing: messages", NULL}, 0, listen_open, NULL, NULL, NULL, NULL};
SUITE_REGISTER(message_block)
SUITE_REGISTER(none_block)
