// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message/message.h"

#include <mobius/message.h>

#include "api/check.h"
#include "engine/message/send_inline.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_rank;
using base::fail;
using engine::BareSent;

namespace {

mob_status_t check_id(const char* call, unsigned id) {
  if (id < MOB_MAX_HANDLERS) return MOB_OK;
  return fail(MOB_ERR_ARGUMENT, "%s: handler %u is out of bounds; identifiers are 0 to %d", call,
              id, MOB_MAX_HANDLERS - 1);
}

mob_status_t check_content(const char* call, const engine::Outgoing& message) {
  if (!api::kChecks) return MOB_OK;
  if (const mob_status_t status = check_id(call, message.id)) return status;
  if (message.header_bytes > MOB_MAX_HEADER_BYTES) {
    return fail(MOB_ERR_ARGUMENT,
                "%s: a header of %zu bytes; the largest has %d, put the rest into the payload",
                call, message.header_bytes, MOB_MAX_HEADER_BYTES);
  }
  if (message.header == nullptr && message.header_bytes != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the header is null, but has %zu bytes", call,
                message.header_bytes);
  }
  if (message.payload == nullptr && message.payload_bytes != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the payload is null, but has %zu bytes", call,
                message.payload_bytes);
  }
  constexpr size_t kMostBytes = size_t{1} << 48;
  if (message.payload_bytes > kMostBytes) {
    return fail(MOB_ERR_RANGE, "%s: a payload of %zu bytes is more than any memory has", call,
                message.payload_bytes);
  }
  return MOB_OK;
}

// False before mob_init() and after mob_finalize().
bool is_job_rank(mob_rank_t rank) {
  return static_cast<uint32_t>(rank) < static_cast<uint32_t>(mob_size_) ||
         (mob_size_ != 0 && engine::is_of_other_job(rank));
}

engine::Outgoing outgoing(unsigned id, const void* header, size_t header_bytes, const void* payload,
                          size_t payload_bytes, const mob_notify_t* notify) {
  return {id,      header,        header_bytes,
          payload, payload_bytes, notify != nullptr ? *notify : mob_notify_t{}};
}

[[gnu::always_inline]] inline bool send_plain_to(engine::EngineOf to, unsigned id,
                                                 const void* header, size_t header_bytes,
                                                 const void* payload, size_t payload_bytes) {
  return to.engine.messages().send_plain(to.rank, id, header, header_bytes, payload, payload_bytes);
}

// Sends the message if it is one of the many that need nothing else; returns whether it did.
[[gnu::always_inline]] inline bool send_plain(mob_rank_t rank, unsigned id, const void* header,
                                              size_t header_bytes, const void* payload,
                                              size_t payload_bytes, const mob_notify_t* notify) {
  return is_job_rank(rank) && id < MOB_MAX_HANDLERS && header_bytes <= MOB_MAX_HEADER_BYTES &&
         notify == nullptr && (header != nullptr || header_bytes == 0) &&
         (payload != nullptr || payload_bytes == 0) &&
         send_plain_to(engine::engine_of(rank), id, header, header_bytes, payload, payload_bytes);
}

// The same for most messages without payload, where latency matters most.
[[gnu::always_inline]] inline BareSent send_bare(mob_rank_t rank, unsigned id, const void* header,
                                                 size_t header_bytes, size_t payload_bytes,
                                                 const mob_notify_t* notify) {
  const bool is_bare = is_job_rank(rank) && id < MOB_MAX_HANDLERS && payload_bytes == 0 &&
                       notify == nullptr && (header != nullptr || header_bytes == 0);
  if (!is_bare) return BareSent::kUnsent;
  const engine::EngineOf to = engine::engine_of(rank);
  return to.engine.messages().send_bare(to.rank, id, header, header_bytes);
}

mob_status_t start(const char* call, mob_rank_t rank, const engine::Outgoing& message,
                   mob_handle_t* handle) {
  if (const mob_status_t status = check_content(call, message)) return status;
  const engine::EngineOf to = engine::engine_of(rank);
  return api::without_exceptions(
      call, [&] { return to.engine.messages().start(call, to.rank, message, handle); });
}

// mob_message_send() of any message.
[[gnu::noinline]] mob_status_t send_any(mob_rank_t rank, unsigned id, const void* header,
                                        size_t header_bytes, const void* payload,
                                        size_t payload_bytes, const mob_notify_t* notify) {
  if (send_plain(rank, id, header, header_bytes, payload, payload_bytes, notify)) [[likely]] {
    return MOB_OK;
  }
  constexpr const char* kCall = "mob_message_send";
  if (const mob_status_t status = check_rank(kCall, rank)) return status;
  const engine::Outgoing message =
      outgoing(id, header, header_bytes, payload, payload_bytes, notify);
  if (const mob_status_t status = check_content(kCall, message)) return status;
  const engine::EngineOf to = engine::engine_of(rank);
  return api::without_exceptions(
      kCall, [&] { return to.engine.messages().send(kCall, to.rank, message); });
}

// mob_message_reply() of any message to that rank.
[[gnu::noinline]] mob_status_t reply_any(mob_rank_t rank, unsigned id, const void* header,
                                         size_t header_bytes, const void* payload,
                                         size_t payload_bytes, const mob_notify_t* notify) {
  constexpr const char* kCall = "mob_message_reply";
  if (send_plain(rank, id, header, header_bytes, payload, payload_bytes, notify)) [[likely]] {
    return MOB_OK;
  }
  const engine::Outgoing message =
      outgoing(id, header, header_bytes, payload, payload_bytes, notify);
  if (const mob_status_t status = check_content(kCall, message)) return status;
  const engine::EngineOf to = engine::engine_of(rank);
  return api::without_exceptions(
      kCall, [&] { return to.engine.messages().post(kCall, to.rank, message); });
}

// The continuation after BareSent::kNoRoom.
template <mob_status_t (*kGoOn)(mob_rank_t, unsigned, const void*, size_t, const void*, size_t,
                                const mob_notify_t*)>
[[gnu::noinline]] mob_status_t look_for_room_and(mob_rank_t rank, unsigned id, const void* header,
                                                 size_t header_bytes, const void* payload,
                                                 size_t payload_bytes, const mob_notify_t* notify) {
  const engine::EngineOf to = engine::engine_of(rank);
  to.engine.messages().look_for_room(to.rank);
  return kGoOn(rank, id, header, header_bytes, payload, payload_bytes, notify);
}

// mob_poll() where there may be more than messages of local peers.
[[gnu::noinline]] mob_status_t poll_all(engine::Engine& engine) {
  return api::without_exceptions("mob_poll", [&] {
    engine.waiter().issue_recorded();
    if (engine.messages().in_use()) engine.progress().note_poll();
    engine.waiter().poll();
    if (engine.network().is_open()) engine.network().leave();
    return MOB_OK;
  });
}

}  // namespace

mob_status_t mob_handler_register(unsigned id, mob_header_handler_t handler, void* argument) {
  constexpr const char* kCall = "mob_handler_register";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (const mob_status_t status = check_id(kCall, id)) return status;
  if (const mob_status_t status =
          api::check_not_null(kCall, reinterpret_cast<const void*>(handler), "the handler")) {
    return status;
  }
  return api::without_exceptions(kCall, [&] {
    engine::Engine& engine = engine::engine();
    if (const mob_status_t status = engine.progress().require()) return status;
    engine.messages().register_handler(id, handler, argument);
    engine::for_each_guest(
        [&](engine::Engine& guest) { guest.messages().register_handler(id, handler, argument); });
    return MOB_OK;
  });
}

mob_status_t mob_message_send(mob_rank_t rank, unsigned id, const void* header, size_t header_bytes,
                              const void* payload, size_t payload_bytes,
                              const mob_notify_t* notify) {
  const BareSent sent = send_bare(rank, id, header, header_bytes, payload_bytes, notify);
  if (sent == BareSent::kSent) [[likely]] {
    return MOB_OK;
  }
  if (sent == BareSent::kNoRoom) [[unlikely]] {
    return look_for_room_and<send_any>(rank, id, header, header_bytes, payload, payload_bytes,
                                       notify);
  }
  return send_any(rank, id, header, header_bytes, payload, payload_bytes, notify);
}

mob_status_t mob_message_send_nb(mob_rank_t rank, unsigned id, const void* header,
                                 size_t header_bytes, const void* payload, size_t payload_bytes,
                                 const mob_notify_t* notify, mob_handle_t* handle) {
  constexpr const char* kCall = "mob_message_send_nb";
  if (const mob_status_t status = check_rank(kCall, rank)) return status;
  if (const mob_status_t status = api::check_not_null(kCall, handle, "the handle")) return status;
  return start(kCall, rank, outgoing(id, header, header_bytes, payload, payload_bytes, notify),
               handle);
}

mob_status_t mob_message_send_nbi(mob_rank_t rank, unsigned id, const void* header,
                                  size_t header_bytes, const void* payload, size_t payload_bytes,
                                  const mob_notify_t* notify) {
  constexpr const char* kCall = "mob_message_send_nbi";
  if (const mob_status_t status = check_rank(kCall, rank)) return status;
  return start(kCall, rank, outgoing(id, header, header_bytes, payload, payload_bytes, notify),
               nullptr);
}

mob_status_t mob_message_reply(mob_token_t token, unsigned id, const void* header,
                               size_t header_bytes, const void* payload, size_t payload_bytes,
                               const mob_notify_t* notify) {
  constexpr const char* kCall = "mob_message_reply";
  if (const mob_status_t status = check_live(kCall)) return status;
  const mob_rank_t rank = engine::token_source(token);
  if (rank < 0 || api::check_rank(kCall, rank) != MOB_OK) {
    return fail(MOB_ERR_HANDLE, "%s: %#llx is not the token of a message", kCall,
                static_cast<unsigned long long>(token));
  }
  const BareSent sent = send_bare(rank, id, header, header_bytes, payload_bytes, notify);
  if (sent == BareSent::kSent) [[likely]] {
    return MOB_OK;
  }
  if (sent == BareSent::kNoRoom) [[unlikely]] {
    return look_for_room_and<reply_any>(rank, id, header, header_bytes, payload, payload_bytes,
                                        notify);
  }
  return reply_any(rank, id, header, header_bytes, payload, payload_bytes, notify);
}

mob_status_t mob_message_flush(mob_rank_t rank) {
  if (const mob_status_t status = check_rank("mob_message_flush", rank)) return status;
  const engine::EngineOf to = engine::engine_of(rank);
  return api::without_exceptions("mob_message_flush", [&] {
    return to.engine.messages().flush(to.rank, engine::Whose::kProgram);
  });
}

mob_status_t mob_poll() {
  if (const mob_status_t status = check_live("mob_poll")) return status;
  engine::Engine& engine = engine::engine();
  engine::for_each_guest([](engine::Engine& guest) { guest.waiter().poll(); });
  return engine.waiter().poll_messages() ? MOB_OK : poll_all(engine);
}

mob_status_t mob_progress_set(mob_progress_t progress, mob_progress_t* before) {
  constexpr const char* kCall = "mob_progress_set";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (progress != MOB_PROGRESS_THREAD && progress != MOB_PROGRESS_POLL) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d is neither MOB_PROGRESS_THREAD nor MOB_PROGRESS_POLL",
                kCall, static_cast<int>(progress));
  }
  using base::ProgressMode;
  const auto wanted = progress == MOB_PROGRESS_POLL ? ProgressMode::kPoll : ProgressMode::kThread;
  auto old = ProgressMode::kThread;
  const mob_status_t status = api::without_exceptions(
      kCall, [&] { return engine::engine().progress().set_mode(wanted, &old); });
  if (status == MOB_OK && before != nullptr) {
    *before = old == ProgressMode::kPoll ? MOB_PROGRESS_POLL : MOB_PROGRESS_THREAD;
  }
  return status;
}
