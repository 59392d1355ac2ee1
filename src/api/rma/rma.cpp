// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/rma.h>

#include <cstring>
#include <string>

#include "api/check.h"
#include "api/rma/transfer.h"
#include "engine/rma/exposed/remap_cache.h"
#include "engine/scheduler/append_run.h"
#include "engine/segment/window/translation_cache.h"
#include "transport/shm/copy_peer.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using api::check_rank;
using api::run_transfer;
using engine::Mode;

namespace {

// Out of line, for addresses that the inlined check does not know: the part used before, moved
// memory, or any other part. Null if the bytes are not mapped here or may not be used at once; the
// router finds out why.
void* reach(mob_rank_t rank, const void* remote, size_t bytes) {
  if (engine::target_recall(rank, remote, bytes)) return const_cast<void*>(remote);
  const auto address = reinterpret_cast<uintptr_t>(remote);
  if (void* moved = engine::find_remapped_again(rank, address, bytes)) return moved;
  if (static_cast<uint32_t>(rank) >= static_cast<uint32_t>(mob_size_) &&
      (mob_size_ == 0 || !engine::is_of_other_job(rank))) {
    return nullptr;
  }
  const engine::EngineOf at = engine::engine_of(rank, remote);
  return at.engine.router().reach(at.rank, remote, bytes);
}

// Returns where the bytes are on this host if they may be copied at once; null if further checks
// are needed.
void* at_hand(mob_rank_t rank, const void* remote, const void* local, size_t bytes) {
  if (bytes == 0 || local == nullptr) return nullptr;
  return engine::target_covers(rank, remote, bytes) ? const_cast<void*>(remote)
                                                    : reach(rank, remote, bytes);
}

// One of many transfers with another host that are only started.
bool one_more(mob_kind_t kind, mob_rank_t rank, const void* remote, const void* local,
              size_t bytes) {
  if (mob_size_ == 0) return false;
  engine::Scheduler& scheduler = engine::engine().scheduler();
  return scheduler.any_recorded() && scheduler.try_append(schedule::kind_of(kind), rank,
                                                          const_cast<void*>(remote), local, bytes);
}

// Calls `route(router, rank)`, with the rank's number there, if the rank is one of the job.
template <typename Route>
mob_status_t route(const char* call, mob_rank_t rank, const void* remote, Route route) {
  if (const mob_status_t status = check_rank(call, rank)) return status;
  const engine::EngineOf at = engine::engine_of(rank, remote);
  return api::without_exceptions(call, [&] { return route(at.engine.router(), at.rank); });
}

// The cases that the calls below do not handle themselves. Out of line, so that these need not save
// registers.
[[gnu::noinline]] mob_status_t put_nbi(mob_rank_t rank, void* remote, const void* local,
                                       size_t bytes) {
  if (void* target = at_hand(rank, remote, local, bytes)) {
    transport::copy_to_peer(target, local, bytes);
    return MOB_OK;
  }
  return route("mob_put_nbi", rank, remote, [&](engine::Router& router, mob_rank_t at) {
    return router.put_unmapped_nbi("mob_put_nbi", at, remote, local, bytes);
  });
}

[[gnu::noinline]] mob_status_t get_nbi(mob_rank_t rank, const void* remote, void* local,
                                       size_t bytes) {
  if (const void* target = at_hand(rank, remote, local, bytes)) {
    transport::copy_from_peer(local, target, bytes);
    return MOB_OK;
  }
  return route("mob_get_nbi", rank, remote, [&](engine::Router& router, mob_rank_t at) {
    return router.get_unmapped_nbi("mob_get_nbi", at, remote, local, bytes);
  });
}

// These and append_put() are out of line, so that the first checks of the calls need not save
// registers.
[[gnu::noinline]] mob_status_t copy_out(void* remote, const void* local, size_t bytes) {
  transport::copy_to_peer(remote, local, bytes);
  return MOB_OK;
}

[[gnu::noinline]] mob_status_t copy_in(const void* remote, void* local, size_t bytes) {
  transport::copy_from_peer(local, remote, bytes);
  return MOB_OK;
}

mob_status_t put_anew(mob_rank_t rank, void* remote, const void* local, size_t bytes) {
  return one_more(MOB_PUT, rank, remote, local, bytes) ? MOB_OK
                                                       : put_nbi(rank, remote, local, bytes);
}

[[gnu::noinline]] mob_status_t get_anew(mob_rank_t rank, const void* remote, void* local,
                                        size_t bytes) {
  return one_more(MOB_GET, rank, remote, local, bytes) ? MOB_OK
                                                       : get_nbi(rank, remote, local, bytes);
}

[[gnu::noinline]] mob_status_t put_anywhere(mob_rank_t rank, void* remote, const void* local,
                                            size_t bytes) {
  if (bytes == 0 && !engine::target_covers(rank, remote, bytes)) {
    return check_rank("mob_put", rank);
  }
  void* target = local == nullptr ? nullptr : reach(rank, remote, bytes);
  if (target == nullptr) [[unlikely]] {
    return route("mob_put", rank, remote, [&](engine::Router& router, mob_rank_t at) {
      return router.put_unmapped("mob_put", at, remote, local, bytes);
    });
  }
  transport::copy_to_peer(target, local, bytes);
  return MOB_OK;
}

[[gnu::noinline]] mob_status_t get_anywhere(mob_rank_t rank, const void* remote, void* local,
                                            size_t bytes) {
  if (bytes == 0 && !engine::target_covers(rank, remote, bytes)) {
    return check_rank("mob_get", rank);
  }
  const void* target = local == nullptr ? nullptr : reach(rank, remote, bytes);
  if (target == nullptr) [[unlikely]] {
    return route("mob_get", rank, remote, [&](engine::Router& router, mob_rank_t at) {
      return router.get_unmapped("mob_get", at, remote, local, bytes);
    });
  }
  transport::copy_from_peer(local, target, bytes);
  return MOB_OK;
}

// Aligned values stay single-copy atomic on every path.
template <typename T>
mob_status_t put_value(const char* call, mob_rank_t rank, void* remote, T value) {
  void* target = reach(rank, remote, sizeof value);
  if (target == nullptr) [[unlikely]] {
    return route(call, rank, remote, [&](engine::Router& router, mob_rank_t at) {
      return router.put_unmapped_value(call, at, remote, &value, sizeof value);
    });
  }
  if (reinterpret_cast<uintptr_t>(target) % sizeof value == 0) [[likely]] {
    __atomic_store_n(static_cast<T*>(target), value, MOB_PUT_ORDER_);
  } else {
    std::memcpy(target, &value, sizeof value);
  }
  return MOB_OK;
}

template <typename T>
mob_status_t get_value(const char* call, mob_rank_t rank, const void* remote, void* result) {
  if (result == nullptr) [[unlikely]] {
    if (const mob_status_t status = check_rank(call, rank)) return status;
    return api::check_not_null(call, result, "the result");
  }
  const void* target = reach(rank, remote, sizeof(T));
  if (target == nullptr) [[unlikely]] {
    const mob_status_t status =
        route(call, rank, remote, [&](engine::Router& router, mob_rank_t at) {
          return router.get_unmapped_value(call, at, remote, result, sizeof(T));
        });
    std::atomic_thread_fence(std::memory_order_acquire);
    return status;
  }
  T value;
  if (reinterpret_cast<uintptr_t>(target) % sizeof value == 0) [[likely]] {
    value = __atomic_load_n(static_cast<const T*>(target), __ATOMIC_ACQUIRE);
  } else {
    std::memcpy(&value, target, sizeof value);
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  std::memcpy(result, &value, sizeof value);
  return MOB_OK;
}

// For a process of this job that is also in others, and is reached there by memory of theirs.
mob_status_t flush_shared(const char* call, mob_rank_t rank, bool remote) {
  mob_status_t first = MOB_OK;
  const auto own = static_cast<size_t>(static_cast<uint32_t>(rank));
  for (const std::atomic<engine::Guest*>& each : engine::guests) {
    const engine::Guest* const guest = each.load(std::memory_order_acquire);
    if (guest == nullptr || own >= guest->inner_numbers.size()) continue;
    const mob_rank_t inner = guest->inner_numbers[own];
    if (inner < 0) continue;
    const mob_status_t status = guest->engine->completion().flush(call, inner, remote);
    if (first == MOB_OK) first = status;
  }
  return first;
}

// For one rank, or Completion::kAll.
mob_status_t flush(const char* call, mob_rank_t rank, bool remote) {
  return api::without_exceptions(call, [&] {
    if (engine::any_guests()) [[unlikely]] {
      if (const mob_status_t status = flush_shared(call, rank, remote)) return status;
    }
    const engine::EngineOf at = engine::engine_of(rank);
    engine::Engine& engine = at.engine;
    const engine::TraceScope trace(engine.instrumentation().timeline(), call);
    const bool idle = engine::Completion::none_under_way();
    const mob_status_t status = idle ? MOB_OK : engine.completion().flush(call, at.rank, remote);
    engine::Messages& messages = engine.messages();
    if (!remote || !messages.sent_by_program()) {
      std::atomic_thread_fence(std::memory_order_seq_cst);  // as in the inlined call
      return status;
    }
    constexpr auto kProgram = engine::Whose::kProgram;
    const mob_status_t sent = rank == engine::Completion::kAll ? messages.flush_all(kProgram)
                                                               : messages.flush(at.rank, kProgram);
    return status != MOB_OK ? status : sent;
  });
}

// For all ranks of the jobs that this process has joined by ports.
mob_status_t flush_guests(const char* call, bool remote) {
  mob_status_t first = MOB_OK;
  std::string text;
  engine::for_each_guest([&](engine::Engine& engine) {
    mob_status_t status = api::without_exceptions(
        call, [&] { return engine.completion().flush(call, engine::Completion::kAll, remote); });
    if (status == MOB_OK && remote && engine.messages().sent_by_program()) {
      status = api::without_exceptions(
          call, [&] { return engine.messages().flush_all(engine::Whose::kProgram); });
    }
    if (status == MOB_OK || first != MOB_OK) return;
    first = status;
    text = mob_last_error();
  });
  return first != MOB_OK ? base::fail(first, "%s", text.c_str()) : MOB_OK;
}

}  // namespace

mob_status_t mob_put(mob_rank_t rank, void* remote, const void* local, size_t bytes) {
  return local != nullptr && engine::target_covers(rank, remote, bytes)
             ? copy_out(remote, local, bytes)
             : put_anywhere(rank, remote, local, bytes);
}

mob_status_t mob_get(mob_rank_t rank, const void* remote, void* local, size_t bytes) {
  return local != nullptr && engine::target_covers(rank, remote, bytes)
             ? copy_in(remote, local, bytes)
             : get_anywhere(rank, remote, local, bytes);
}

mob_status_t mob_put_nb(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                        mob_handle_t* handle) {
  if (const mob_status_t status = check_not_null("mob_put_nb", handle, "the handle")) return status;
  if (void* target = at_hand(rank, remote, local, bytes)) {
    transport::copy_to_peer(target, local, bytes);
    *handle = MOB_HANDLE_DONE;
    return MOB_OK;
  }
  return run_transfer("mob_put_nb", engine::contiguous(MOB_PUT, rank, remote, local, bytes),
                      Mode::kHandle, handle);
}

mob_status_t mob_get_nb(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                        mob_handle_t* handle) {
  if (const mob_status_t status = check_not_null("mob_get_nb", handle, "the handle")) return status;
  if (const void* target = at_hand(rank, remote, local, bytes)) {
    transport::copy_from_peer(local, target, bytes);
    *handle = MOB_HANDLE_DONE;
    return MOB_OK;
  }
  return run_transfer("mob_get_nb", engine::contiguous(MOB_GET, rank, remote, local, bytes),
                      Mode::kHandle, handle);
}

mob_status_t mob_put_nbi_out_of_line_(mob_rank_t rank, void* remote, const void* local,
                                      size_t bytes) {
  return bytes != 0 && local != nullptr && engine::target_covers(rank, remote, bytes)
             ? copy_out(remote, local, bytes)
             : engine::Scheduler::append_put(rank, remote, local, bytes, put_anew);
}

mob_status_t mob_get_nbi_out_of_line_(mob_rank_t rank, const void* remote, void* local,
                                      size_t bytes) {
  return bytes != 0 && local != nullptr && engine::target_covers(rank, remote, bytes)
             ? copy_in(remote, local, bytes)
             : get_anew(rank, remote, local, bytes);
}

namespace {

const void* address_of(const engine::Telling& telling) {
  return telling.bytes != 0 ? telling.remote : telling.signal;
}

bool is_signal_op(mob_signal_op_t op) { return op == MOB_SIGNAL_SET || op == MOB_SIGNAL_ADD; }

mob_status_t run_telling(const char* call, const engine::Telling& telling, Mode mode) {
  const auto is_done = [&] {
    if (mob_size_ == 0) return false;
    const engine::EngineOf at = engine::engine_of(telling.rank, address_of(telling));
    if (at.rank == telling.rank) [[likely]] {
      return at.engine.router().copy_and_tell(telling);
    }
    engine::Telling inner = telling;
    inner.rank = at.rank;
    return at.engine.router().copy_and_tell(inner);
  };
  if (is_done()) [[likely]] {
    return MOB_OK;
  }
  mob_transfer_t transfer = engine::contiguous(telling.is_put ? MOB_PUT : MOB_GET, telling.rank,
                                               telling.remote, telling.local, telling.bytes);
  transfer.signal = telling.signal;
  transfer.signal_value = telling.signal_value;
  transfer.signal_op = telling.signal_op;
  transfer.origin_word = telling.origin_word;
  transfer.completion_word = telling.completion_word;
  return run_transfer(call, transfer, mode);
}

mob_status_t run_signalling(const char* call, bool is_put, mob_rank_t rank, const void* remote,
                            const void* local, size_t bytes, uint64_t* signal, uint64_t value,
                            mob_signal_op_t op) {
  if (const mob_status_t status = check_not_null(call, signal, "the signal word")) return status;
  const engine::Telling telling = {
      is_put, op,      rank,   const_cast<void*>(remote), const_cast<void*>(local), bytes, signal,
      value,  nullptr, nullptr};
  if (is_signal_op(op)) return run_telling(call, telling, Mode::kBlocking);
  mob_transfer_t refused =
      engine::contiguous(is_put ? MOB_PUT : MOB_GET, rank, remote, local, bytes);
  refused.signal = signal;
  refused.signal_value = value;
  refused.signal_op = op;
  return run_transfer(call, refused);
}

}  // namespace

mob_status_t mob_put_signal(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                            uint64_t* signal, uint64_t value, mob_signal_op_t op) {
  return run_signalling("mob_put_signal", true, rank, remote, local, bytes, signal, value, op);
}

mob_status_t mob_get_signal(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                            uint64_t* signal, uint64_t value, mob_signal_op_t op) {
  return run_signalling("mob_get_signal", false, rank, remote, local, bytes, signal, value, op);
}

mob_status_t mob_put_counted(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                             uint64_t* target_word, uint64_t* origin_word,
                             uint64_t* completion_word) {
  return run_telling("mob_put_counted",
                     {true, MOB_SIGNAL_ADD, rank, remote, const_cast<void*>(local), bytes,
                      target_word, 1, origin_word, completion_word},
                     Mode::kImplicit);
}

mob_status_t mob_get_counted(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                             uint64_t* target_word, uint64_t* origin_word,
                             uint64_t* completion_word) {
  return run_telling("mob_get_counted",
                     {false, MOB_SIGNAL_ADD, rank, const_cast<void*>(remote), local, bytes,
                      target_word, 1, origin_word, completion_word},
                     Mode::kImplicit);
}

mob_status_t mob_put_value_(mob_rank_t rank, void* remote, uint64_t value, unsigned log2_bytes) {
  switch (log2_bytes) {
    case 0:
      return put_value("mob_put1", rank, remote, static_cast<uint8_t>(value));
    case 1:
      return put_value("mob_put2", rank, remote, static_cast<uint16_t>(value));
    case 2:
      return put_value("mob_put4", rank, remote, static_cast<uint32_t>(value));
    default:
      return put_value("mob_put8", rank, remote, value);
  }
}

mob_status_t mob_get_value_(mob_rank_t rank, const void* remote, void* value, unsigned log2_bytes) {
  switch (log2_bytes) {
    case 0:
      return get_value<uint8_t>("mob_get1", rank, remote, value);
    case 1:
      return get_value<uint16_t>("mob_get2", rank, remote, value);
    case 2:
      return get_value<uint32_t>("mob_get4", rank, remote, value);
    default:
      return get_value<uint64_t>("mob_get8", rank, remote, value);
  }
}

mob_status_t mob_flush_rank_(mob_rank_t rank, int remote) {
  const char* call = remote != 0 ? "mob_flush" : "mob_flush_local";
  if (const mob_status_t status = check_rank(call, rank)) return status;
  return flush(call, rank, remote != 0);
}

mob_status_t mob_flush_ranks_(int remote) {
  const char* call = remote != 0 ? "mob_flush_all" : "mob_flush_local_all";
  if (const mob_status_t status = check_live(call)) return status;
  const mob_status_t guests = engine::any_guests() ? flush_guests(call, remote != 0) : MOB_OK;
  const mob_status_t status = flush(call, engine::Completion::kAll, remote != 0);
  return status != MOB_OK ? status : guests;
}

mob_status_t mob_fence_out_of_line_() {
  if (const mob_status_t status = check_live("mob_fence")) return status;
  return api::without_exceptions("mob_fence", [] {
    mob_status_t status = engine::engine().router().fence();
    engine::for_each_guest([&](engine::Engine& engine) {
      const mob_status_t its = engine.router().fence();
      if (status == MOB_OK) status = its;
    });
    std::atomic_thread_fence(std::memory_order_release);  // as in the inlined call
    return status;
  });
}

mob_status_t mob_barrier() {
  if (const mob_status_t status = check_live("mob_barrier")) return status;
  if (const mob_status_t status = api::check_may_wait("mob_barrier")) return status;
  engine::Engine& engine = engine::engine();
  const engine::TraceScope trace(engine.instrumentation().timeline(), "mob_barrier");
  engine.instrumentation().count_call("mob_barrier");
  return api::together("mob_barrier", engine.teams().world(), [&] {
    const mob_status_t others = engine::complete_elsewhere("mob_barrier", engine);
    const mob_status_t status = engine.teams().world().complete_and_meet("mob_barrier");
    return status != MOB_OK ? status : others;
  });
}
