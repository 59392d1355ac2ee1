/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MESSAGE_HPP
#define MOBIUS_MESSAGE_HPP

/**
 * @file
 * Active messages with typed headers, whose handlers are any callable objects (message.h). */

#include <mobius/message.h>
#include <mobius/types.hpp>
#include <mobius/wait.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace mob {

/** A message as its handler receives it. All of it is valid until the handler returns. */
template <Transferable Header>
struct Message {
  mob_rank_t source;    /**< the sender */
  const Header& header; /**< the header */
  size_t payload_bytes; /**< bytes of the payload */
  /** The whole payload, aligned to 16 bytes, if it has arrived, else null: mob_message_t. */
  const std::byte* payload;
  mob_token_t token; /**< for Handler::reply(), also later */
};

namespace detail {

/* Keeps functions until the process ends: messages on their way may still need a function that was
 * replaced. The list stays reachable and is never destroyed, because the library's thread may run
 * after main(). */
inline void keep(std::shared_ptr<void> object) {
  struct Kept {
    std::mutex mutex;
    std::vector<std::shared_ptr<void>> objects;
  };
  static Kept* const kept = new Kept;
  const std::lock_guard lock(kept->mutex);
  kept->objects.push_back(std::move(object));
}

}  // namespace detail

/**
 * An identifier of messages, with the type of their headers. A constant of every rank, also of
 * those that only send; it owns nothing.
 *
 * @code
 * constexpr mob::Handler<Insert> kInsert(7);
 * kInsert.set([&](const mob::Message<Insert>& message, mob_delivery_t& delivery) {
 *   delivery.payload = store.room_for(message.header.key, message.payload_bytes);
 * });
 * team.barrier();  // now every member has a handler
 * kInsert.send(rank, Insert{key}, values);
 * @endcode
 *
 * Sending throws mob::Error where mob_message_send() and related calls return an error. Completion,
 * order and blocking are those of the C calls. Thread safety: any.
 */
template <Transferable Header>
class Handler {
  static_assert(sizeof(Header) <= MOB_MAX_HEADER_BYTES, "a header has up to 1024 bytes");
  static_assert(alignof(Header) <= 16, "headers are aligned to 16 bytes at most");

 public:
  /** @param id  0 … MOB_MAX_HANDLERS - 1; the calls that use it check it */
  constexpr explicit Handler(unsigned id) noexcept : id_(id) {}

  /** @return the identifier, for the C interface */
  [[nodiscard]] constexpr unsigned id() const noexcept { return id_; }

  /**
   * Registers the function that messages with this identifier run in this process:
   * mob_handler_register(). Local.
   *
   * @param function  called with `const Message<Header>&` and, if it takes that, `mob_delivery_t&`,
   *                  which starts as zeros: then the payload is dropped. The function may change
   *                  its captures: the handlers of a rank run one at a time, but on any thread,
   *                  beside the program's. Everything that it refers to must live until
   *                  mob_finalize(). It must not wait (message.h), and must not throw: the program
   *                  ends if it does. A copy is kept until the process ends, also after another
   *                  function replaced it.
   * @throws Error    if mob_handler_register() fails
   *
   * A message whose header has another size, from another kind of sender, ends the job:
   * mob_abort().
   */
  template <typename Function>
    requires std::is_invocable_v<std::decay_t<Function>&, const Message<Header>&,
                                 mob_delivery_t&> ||
             std::is_invocable_v<std::decay_t<Function>&, const Message<Header>&>
  void set(Function&& function) const {
    auto kept = std::make_shared<std::decay_t<Function>>(std::forward<Function>(function));
    detail::keep(kept);
    check(mob_handler_register(id_, &run<std::decay_t<Function>>, kept.get()));
  }

  /**
   * Sends a message without payload: mob_message_send().
   * @param notify  counters to count; null for none; read during the call only
   */
  void send(mob_rank_t rank, const Header& header, const mob_notify_t* notify = nullptr) const {
    check(mob_message_send(rank, id_, &header, sizeof header, nullptr, 0, notify));
  }
  /** Sends a message: mob_message_send(). The caller may reuse the payload when it returns. */
  template <Buffer Payload>
  void send(mob_rank_t rank, const Header& header, const Payload& payload,
            const mob_notify_t* notify = nullptr) const {
    const std::span data(payload);
    check(mob_message_send(rank, id_, &header, sizeof header, data.data(), data.size_bytes(),
                           notify));
  }

  /**
   * Starts to send a message: mob_message_send_nb(). The payload must stay unchanged until the
   * handle is complete.
   */
  template <Buffer Payload>
  [[nodiscard]] Handle send_nb(mob_rank_t rank, const Header& header, const Payload& payload,
                               const mob_notify_t* notify = nullptr) const {
    const std::span data(payload);
    mob_handle_t handle = MOB_HANDLE_DONE;
    check(mob_message_send_nb(rank, id_, &header, sizeof header, data.data(), data.size_bytes(),
                              notify, &handle));
    return Handle(handle);
  }

  /**
   * Starts to send a message: mob_message_send_nbi(). The payload must stay unchanged until
   * mob_flush_local() or a flush.
   */
  template <Buffer Payload>
  void send_nbi(mob_rank_t rank, const Header& header, const Payload& payload,
                const mob_notify_t* notify = nullptr) const {
    const std::span data(payload);
    check(mob_message_send_nbi(rank, id_, &header, sizeof header, data.data(), data.size_bytes(),
                               notify));
  }

  /**
   * Answers a message without payload: mob_message_reply(). Does not block. A handler must catch an
   * error that this throws.
   */
  void reply(mob_token_t token, const Header& header, const mob_notify_t* notify = nullptr) const {
    check(mob_message_reply(token, id_, &header, sizeof header, nullptr, 0, notify));
  }
  /** Answers a message: mob_message_reply(). As above. */
  template <Buffer Payload>
  void reply(mob_token_t token, const Header& header, const Payload& payload,
             const mob_notify_t* notify = nullptr) const {
    const std::span data(payload);
    check(mob_message_reply(token, id_, &header, sizeof header, data.data(), data.size_bytes(),
                            notify));
  }

 private:
  template <typename Function>
  static void run(const mob_message_t* message, void* argument, mob_delivery_t* delivery) noexcept {
    if (message->header_bytes != sizeof(Header)) {
      mob_abort(1, "mob::Handler: a message has a header of another size than its handler's");
    }
    Function& function = *static_cast<Function*>(argument);
    const Message<Header> typed{message->source, *static_cast<const Header*>(message->header),
                                message->payload_bytes,
                                static_cast<const std::byte*>(message->payload), message->token};
    if constexpr (std::is_invocable_v<Function&, const Message<Header>&, mob_delivery_t&>) {
      function(typed, *delivery);
    } else {
      function(typed);
    }
  }

  unsigned id_;
};

}  // namespace mob

#endif
