/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MESSAGE_H
#define MOBIUS_MESSAGE_H

/**
 * @file
 * Active messages: a message names a function of its target, which says where the payload goes.
 *
 * A message has an identifier, a small header and a payload of any size. When it arrives, the
 * target runs the *header handler* registered for the identifier. It sees the header and answers
 * with a mob_delivery_t: where the payload goes, and which *completion handler* to run when it is
 * there.
 *
 * - **Who runs handlers.** With MOBIUS_PROGRESS=thread (the default) a thread of the library, which
 *   sleeps until messages come and is started by the first mob_handler_register(), so that a target
 *   that computes is served; also any thread that waits in a call of the library or calls
 *   mob_poll(), and while one does, the thread sleeps on. With MOBIUS_PROGRESS=poll only the
 * latter.
 * - **What handlers may do.** The handlers of one rank run one at a time, on any thread. They may
 *   put, get, use atomics, counters and locks of their own that are held briefly, send and reply
 *   (which do not block there), register handlers, and change memory of the program. They must not
 *   wait: a collective call, or a call that would have to wait, returns MOB_ERR_STATE.
 * - **Ordering.** Header handlers of messages that one thread sends to one target start in the
 * order of the sends, and each message is complete before the next one starts. What the sender
 * wrote or put before is visible to the handler: to a target on another host the sends of this
 * file, outside of handlers, wait for long transfers of the calling thread (MOBIUS_RMA_BYTES) that
 * are only started, which the message would overtake. Nothing is said of messages to different
 * targets.
 * - **Completion.** Local: the header and the payload may be reused. Remote: the completion handler
 *   has returned; mob_message_flush() waits for it, the completion counter tells of it.
 * - **Waking.** After handlers ran, calls of the target that wait for local memory look again.
 *
 * Compare LAPI_Amsend, LAPI_Addr_set (paper 1, §2), and GASNet-EX, AM.
 */

#include <mobius/counter.h>
#include <mobius/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MOB_MAX_HANDLERS = 1024,    /**< identifiers are 0 … MOB_MAX_HANDLERS - 1 */
  MOB_MAX_HEADER_BYTES = 1024 /**< largest header of a message */
};

/** Names the message that a handler runs for, for mob_message_reply(). Valid until mob_finalize().
 */
typedef uint64_t mob_token_t;

/** A message as its header handler sees it. Everything is valid until the handler returns. */
typedef struct mob_message {
  mob_rank_t source;  /**< who sent it */
  const void* header; /**< aligned to 16 bytes */
  size_t header_bytes;
  size_t payload_bytes;
  const void* payload; /**< the whole payload, aligned to 16 bytes, if it is here already; else
                            null. Short payloads are (up to a few thousand bytes). */
  mob_token_t token;   /**< for mob_message_reply() */
} mob_message_t;

/**
 * Runs when the payload is in its place.
 *
 * @param token     of the message
 * @param argument  as the header handler said
 */
typedef void (*mob_completion_handler_t)(mob_token_t token, void* argument);

/** A header handler's answer; zeros when the handler is called. */
typedef struct mob_delivery {
  void* payload; /**< where the payload goes, any memory of the target with room for it that nobody
                      else uses until completion; null: it is dropped */
  mob_completion_handler_t handler; /**< to run then; may be null */
  void* argument;                   /**< passed to it */
  mob_counter_t counter; /**< of this process: + 1 after the completion handler; may be null */
} mob_delivery_t;

/**
 * Runs when a message arrives.
 *
 * @param message   the message
 * @param argument  as registered
 * @param delivery  out: what to do with the payload
 */
typedef void (*mob_header_handler_t)(const mob_message_t* message, void* argument,
                                     mob_delivery_t* delivery);

/** Who is told of a message. Each may be null. */
typedef struct mob_notify_args {
  mob_counter_t origin_counter;     /**< the sender's: + 1 at local completion */
  mob_counter_t target_counter;     /**< the target's: + 1 after the completion handler */
  mob_counter_t completion_counter; /**< the sender's: + 1 after the completion handler */
} mob_notify_t;

/**
 * Says which function messages with an identifier run in this process. Registering again replaces
 * the handler; messages that have started keep theirs.
 *
 * @param id        0 … MOB_MAX_HANDLERS - 1
 * @param handler   the function; stays registered until mob_finalize()
 * @param argument  passed to it; the caller's
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (`id` out of bounds, `handler` null),
 *         MOB_ERR_MEMORY, MOB_ERR_SYSTEM (the progress thread cannot be started)
 *
 * Local, does not block. Others may send from when it has returned: let them know, for example with
 * a barrier. Thread safety: any.
 */
MOB_API mob_status_t mob_handler_register(unsigned id, mob_header_handler_t handler,
                                          void* argument);

/**
 * Sends a message.
 *
 * @param rank           the target; may be the caller
 * @param id             a handler that the target has registered
 * @param header         may be null if `header_bytes` is 0
 * @param header_bytes   0 … MOB_MAX_HEADER_BYTES
 * @param payload        may be null if `payload_bytes` is 0
 * @param payload_bytes  any size
 * @param notify         who is told; null for nobody; read during the call only
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_RANK;
 *         MOB_ERR_ARGUMENT  null with bytes, an identifier or header size out of bounds;
 *         MOB_ERR_RANGE     a payload of more bytes than any memory has;
 *         MOB_ERR_HANDLE    the target has not registered `id`, or a counter of `notify` is not
 *                           live; of a target on another host mob_message_flush() returns that;
 *         MOB_ERR_MEMORY    no memory for the queue between the two;
 *         MOB_ERR_PEER      the target died, or has left the job.
 *         After an error the message was not delivered, except that a target that died may have got
 *         it. Nor does MOB_OK say that it was: of a target that died it may be returned until that
 *         is known; mob_message_flush() finds out.
 *
 * Blocks until local completion: with a short payload as long as the queue to the target is full,
 * with a large one until the target has taken it; makes progress meanwhile. Does not block in a
 * handler, where what the queue does not take at once is copied. Thread safety: any.
 */
MOB_API mob_status_t mob_message_send(mob_rank_t rank, unsigned id, const void* header,
                                      size_t header_bytes, const void* payload,
                                      size_t payload_bytes, const mob_notify_t* notify);

/**
 * Starts to send a message, as mob_message_send(), without waiting for local completion.
 *
 * @param payload  not to be changed or freed before local completion; the header may be reused when
 *                 the call returns
 * @param handle   out: to be completed with mob_wait(), mob_test() or their kin (transfer.h), which
 *                 is local completion; MOB_HANDLE_DONE if the payload may be reused already
 * @return as mob_message_send(); MOB_ERR_ARGUMENT also if `handle` is null. An error found later is
 *         returned by the call that completes the handle.
 *
 * Does not block, also not in a handler, but for the transfers that *Ordering* names. What the
 * queue does not take at once is sent by the progress thread, or by calls that make progress;
 * messages that the thread sends to the target later come after it. Thread safety: any.
 */
MOB_API mob_status_t mob_message_send_nb(mob_rank_t rank, unsigned id, const void* header,
                                         size_t header_bytes, const void* payload,
                                         size_t payload_bytes, const mob_notify_t* notify,
                                         mob_handle_t* handle);

/**
 * As mob_message_send_nb(), completed locally by the next mob_flush_local(), mob_flush() or
 * mob_flush_all() of the calling thread's context (context.h), which also returns an error found
 * later.
 *
 * @return as mob_message_send()
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_message_send_nbi(mob_rank_t rank, unsigned id, const void* header,
                                          size_t header_bytes, const void* payload,
                                          size_t payload_bytes, const mob_notify_t* notify);

/**
 * Sends a message to who sent one, usually from its handler. As mob_message_send(), but never
 * blocks: what the queue does not take at once is copied and sent later.
 *
 * @param token  of the message that is answered
 * @return as mob_message_send(); MOB_ERR_HANDLE also if `token` is not one
 *
 * Thread safety: any.
 */
MOB_API mob_status_t mob_message_reply(mob_token_t token, unsigned id, const void* header,
                                       size_t header_bytes, const void* payload,
                                       size_t payload_bytes, const mob_notify_t* notify);

/**
 * Waits until every message that this process has sent to a target is complete: its completion
 * handler has returned.
 *
 * @param rank  the target
 * @return MOB_OK, MOB_ERR_STATE (also in a handler), MOB_ERR_RANK, MOB_ERR_PEER (the target died);
 *         MOB_ERR_HANDLE, once, if since the last flush a target on another host has dropped
 *         messages to a handler that it has not registered, or had no such target counter
 *
 * A full memory fence: what the handlers wrote is visible. Makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_message_flush(mob_rank_t rank);

/** Who runs handlers, and does what others ask for, while no thread of the program is in the
 *  library. */
typedef enum mob_progress {
  MOB_PROGRESS_THREAD, /**< the library's thread, at once */
  MOB_PROGRESS_POLL    /**< nobody: it waits until a thread waits in the library or polls */
} mob_progress_t;

/**
 * Changes what the setting MOBIUS_PROGRESS says, for the calling process from now on.
 *
 * After a change to MOB_PROGRESS_POLL has returned, no handler runs but in calls of the program's
 * threads. What came meanwhile is done when it is changed back.
 *
 * @param progress  one of the two
 * @param before    out: what it was; may be null
 * @return MOB_OK, MOB_ERR_STATE (also in a handler), MOB_ERR_ARGUMENT, MOB_ERR_SYSTEM (the thread
 *         cannot be started; everything is as before)
 *
 * Local. Waits for the handler that the library's thread runs, if any. Thread safety: any. Compare
 * LAPI_Senv(INTERRUPT_SET).
 */
MOB_API mob_status_t mob_progress_set(mob_progress_t progress, mob_progress_t* before);

/**
 * Runs the handlers of messages that have arrived, and whatever else others asked this process to
 * do. Returns at once if there is nothing, or if another thread is doing it.
 *
 * @return MOB_OK, MOB_ERR_STATE
 *
 * Does not block. Thread safety: any. Does nothing in a handler.
 */
MOB_API mob_status_t mob_poll(void);

#ifdef __cplusplus
}
#endif
#endif
