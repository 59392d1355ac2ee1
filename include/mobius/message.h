/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MESSAGE_H
#define MOBIUS_MESSAGE_H

/**
 * @file
 * Active messages: a message names a function of its target, and that function says where the
 * payload goes.
 *
 * A message has an identifier, a small header and a payload of any size. When it arrives, the
 * target runs the *header handler* that it registered for the identifier. The handler reads the
 * header and answers with a mob_delivery_t: the place for the payload, and the *completion handler*
 * to run once the payload is there.
 *
 * - **Threads that run handlers.** Any thread that waits in a call of the library or calls
 *   mob_poll(). With MOBIUS_PROGRESS=thread (the default) also a thread of the library, so that a
 *   target that computes is served. The first mob_handler_register() starts that thread. It sleeps
 *   until messages come, and sleeps on while another thread runs handlers. With
 *   MOBIUS_PROGRESS=poll there is no such thread.
 * - **Permitted calls in handlers.** The handlers of one rank run one at a time, on any thread; in
 *   a process that connected to another job, those of each job do. They may put, get, use atomics,
 *   counters, and locks of their own that are held briefly, send and reply (neither blocks in a
 *   handler), register handlers, and change memory of the program. They must not wait: a collective
 *   call, or any call that would have to wait, returns MOB_ERR_STATE.
 * - **Ordering.** Header handlers of messages that one thread sends to one target start in the
 *   order of the sends, and each message is complete before the next one starts. The handler sees
 *   everything that the sender wrote or put before. For this, a send of this file to another host,
 *   outside of handlers, waits for long transfers (MOBIUS_RMA_BYTES) that the calling thread has
 *   only started, because the message would overtake them. Messages to different targets are not
 *   ordered.
 * - **Completion.** Local: the header and the payload may be reused. Remote: the completion handler
 *   has returned; mob_message_flush() waits for that, and the completion counter counts it.
 * - **Waking.** After handlers have run, calls of the target that wait for local memory check their
 *   condition again.
 *
 * Compare LAPI_Amsend, LAPI_Addr_set (paper 1, §2), and GASNet-EX, AM. */

#include <mobius/counter.h>
#include <mobius/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MOB_MAX_HANDLERS = 1024,    /**< identifiers are 0 … MOB_MAX_HANDLERS - 1 */
  MOB_MAX_HEADER_BYTES = 1024 /**< largest header of a message */
};

/**
 * Names the message that a handler runs for, for mob_message_reply(). Valid until mob_finalize().
 */
typedef uint64_t mob_token_t;

/** A message as its header handler receives it. All of it is valid until the handler returns. */
typedef struct mob_message {
  mob_rank_t source;    /**< the sender */
  const void* header;   /**< aligned to 16 bytes */
  size_t header_bytes;  /**< of the header */
  size_t payload_bytes; /**< of the payload, whether it has arrived or not */
  /**
   * The whole payload, aligned to 16 bytes, if it has arrived; else null. A short payload (up to a
   * few thousand bytes) always has.
   */
  const void* payload;
  mob_token_t token; /**< for mob_message_reply() */
} mob_message_t;

/**
 * Runs when the payload is in its place.
 *
 * @param token     token of the message
 * @param argument  from the header handler's mob_delivery_t
 */
typedef void (*mob_completion_handler_t)(mob_token_t token, void* argument);

/** A header handler's answer. All members are zero when the handler is called. */
typedef struct mob_delivery {
  /**
   * Where the payload goes: any memory of the target with room for it, used by nothing else until
   * completion; null: the payload is dropped.
   */
  void* payload;
  mob_completion_handler_t handler; /**< runs when the payload is in its place; may be null */
  void* argument;                   /**< passed to the completion handler */
  mob_counter_t counter; /**< of this process: + 1 after the completion handler; may be null */
} mob_delivery_t;

/**
 * Runs when a message arrives.
 *
 * @param message   the message
 * @param argument  the argument given when the handler was registered
 * @param delivery  out: what to do with the payload
 */
typedef void (*mob_header_handler_t)(const mob_message_t* message, void* argument,
                                     mob_delivery_t* delivery);

/** Counters that a message counts. Each may be null. */
typedef struct mob_notify_args {
  mob_counter_t origin_counter;     /**< the sender's: + 1 at local completion */
  mob_counter_t target_counter;     /**< the target's: + 1 after the completion handler */
  mob_counter_t completion_counter; /**< the sender's: + 1 after the completion handler */
} mob_notify_t;

/**
 * Registers the function that messages with an identifier run in this process. A second
 * registration replaces the handler; messages that have started keep the former one.
 *
 * @param id        0 … MOB_MAX_HANDLERS - 1
 * @param handler   the function; stays registered until mob_finalize()
 * @param argument  passed to it; the caller owns it
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (`id` out of bounds, `handler` null),
 *         MOB_ERR_MEMORY, MOB_ERR_SYSTEM (the progress thread cannot be started)
 *
 * Local, does not block. Other processes may send once the call has returned; inform them of that,
 * for example by a barrier. Thread safety: any.
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
 * @param notify         counters to count; null for none; read during the call only
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_RANK;
 *         MOB_ERR_ARGUMENT  null with bytes, or an identifier or header size out of bounds;
 *         MOB_ERR_RANGE     a payload of more bytes than any memory has;
 *         MOB_ERR_HANDLE    the target has not registered `id`, or a counter of `notify` is not
 *                           live; if the target is on another host, mob_message_flush() returns
 *                           this error;
 *         MOB_ERR_MEMORY    no memory for the queue between the two;
 *         MOB_ERR_PEER      the target died, or has left the job.
 *         After an error the message was not delivered, except that a target that died may have
 *         received it. MOB_OK does not prove delivery: until the death of a target is known, sends
 *         to it may return MOB_OK. mob_message_flush() finds out.
 *
 * Blocks until local completion: with a short payload while the queue to the target is full, with a
 * large payload until the target has taken it. Makes progress meanwhile. In a handler it does not
 * block: the library copies the part of the message that the queue cannot take at once. Thread
 * safety: any.
 */
MOB_API mob_status_t mob_message_send(mob_rank_t rank, unsigned id, const void* header,
                                      size_t header_bytes, const void* payload,
                                      size_t payload_bytes, const mob_notify_t* notify);

/**
 * Starts to send a message, as mob_message_send(), without waiting for local completion.
 *
 * @param payload  must not be changed or freed before local completion; the header may be reused
 *                 when the call returns
 * @param handle   out: complete it with mob_wait(), mob_test() or a related call (transfer.h),
 *                 which is local completion; MOB_HANDLE_DONE if the payload may be reused already
 * @return as mob_message_send(); MOB_ERR_ARGUMENT also if `handle` is null. The call that completes
 *         the handle returns an error that is found later.
 *
 * Does not block, not even in a handler, except for the transfers that *Ordering* names. The
 * progress thread, or calls that make progress, send the part that the queue cannot take at once.
 * Messages that the thread sends to the target later stay behind this one. Thread safety: any.
 */
MOB_API mob_status_t mob_message_send_nb(mob_rank_t rank, unsigned id, const void* header,
                                         size_t header_bytes, const void* payload,
                                         size_t payload_bytes, const mob_notify_t* notify,
                                         mob_handle_t* handle);

/**
 * Starts to send a message, as mob_message_send_nb(). The next mob_flush_local(), mob_flush() or
 * mob_flush_all() of the calling thread's context (context.h) completes it locally, and returns an
 * error that is found later.
 *
 * @return as mob_message_send()
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_message_send_nbi(mob_rank_t rank, unsigned id, const void* header,
                                          size_t header_bytes, const void* payload,
                                          size_t payload_bytes, const mob_notify_t* notify);

/**
 * Sends a message to the sender of another, usually from that message's handler. As
 * mob_message_send(), but never blocks: the library copies the part that the queue cannot take at
 * once, and sends it later.
 *
 * @param token  token of the message to answer
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
 *         MOB_ERR_HANDLE, once, if a target on another host has dropped messages since the last
 *         flush, because it had no such handler or no such target counter
 *
 * Blocks, makes progress. A full memory fence: the caller sees everything that the handlers wrote.
 * Thread safety: any.
 */
MOB_API mob_status_t mob_message_flush(mob_rank_t rank);

/**
 * Which threads run handlers, and serve requests of other processes, while no thread of the program
 * is in the library.
 */
typedef enum mob_progress {
  MOB_PROGRESS_THREAD, /**< the library's thread, at once */
  MOB_PROGRESS_POLL    /**< none: requests wait until a thread waits in the library or polls */
} mob_progress_t;

/**
 * Changes the setting MOBIUS_PROGRESS for the calling process from now on.
 *
 * After a change to MOB_PROGRESS_POLL has returned, handlers run only in calls of the program's
 * threads. Requests that come meanwhile are served when it is changed back.
 *
 * @param progress  the new mode
 * @param before    out: the former mode; may be null
 * @return MOB_OK, MOB_ERR_STATE (also in a handler), MOB_ERR_ARGUMENT, MOB_ERR_SYSTEM (the thread
 *         cannot be started; everything is as before)
 *
 * Local. Waits for the handler that the library's thread is running, if any. Thread safety: any.
 * Compare LAPI_Senv(INTERRUPT_SET).
 */
MOB_API mob_status_t mob_progress_set(mob_progress_t progress, mob_progress_t* before);

/**
 * Makes progress: runs the handlers of messages that have arrived, serves other requests to this
 * process, and sends recorded operations. Returns at once if there is nothing to do, or if another
 * thread is doing it.
 *
 * @return MOB_OK, MOB_ERR_STATE
 *
 * Does not block. Does nothing in a handler. Thread safety: any.
 */
MOB_API mob_status_t mob_poll(void);

#ifdef __cplusplus
}
#endif
#endif
