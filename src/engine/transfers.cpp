// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfers.h"

#include <atomic>
#include <cstring>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/locks.h"
#include "transport/shm/move.h"

namespace mobius::engine {

using base::fail;
using transport::Shape;

namespace {

template <typename T>
T changed(const WordUpdate& update, T* word) {
  const auto value = static_cast<T>(update.value);
  switch (update.what) {
    case MOB_RMW_ADD_:
      return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_AND_:
      return __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_OR_:
      return __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_XOR_:
      return __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_SWAP_:
      return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_COMPARE_SWAP_:
      break;
  }
  auto held = static_cast<T>(update.expected);
  __atomic_compare_exchange_n(word, &held, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return held;
}

template <typename T>
void apply(const WordUpdate& update) {
  const T old = changed(update, static_cast<T*>(update.word));
  std::memcpy(update.old, &old, sizeof old);
}

}  // namespace

mob_status_t Transfers::run(const char* call, const mob_transfer_t& transfer, Mode mode,
                            uint64_t* handle) {
  Operation operation;
  operation.call = call;
  operation.transfer = &transfer;
  operation.mode = mode;
  operation.handle = handle;
  if (const mob_status_t status = transport::normalise(call, transfer, &operation.shape)) {
    return status;
  }
  if (const mob_status_t status = resolve_notice(call, transfer, &operation.notice)) return status;
  if (!reach_all(transfer.rank, operation.shape, &operation.route.delta)) {
    return explain(call, transfer.rank, operation.shape);
  }
  if (mode == Mode::kHandle) *handle = MOB_HANDLE_DONE;
  return first_->carry(operation);
}

mob_status_t Transfers::carry(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  if (transfer.kind == MOB_PUT || transfer.kind == MOB_GET) {
    transport::move(operation.shape, operation.route.delta, transfer.kind == MOB_PUT);
  } else {
    accumulate(transfer.rank, operation.shape, operation.route.delta,
               {transfer.type, transfer.op, transfer.scale,
                transfer.kind == MOB_FETCH_ACCUMULATE ? transfer.fetched : nullptr});
  }
  announce(transfer, operation.notice);
  return MOB_OK;
}

mob_status_t Transfers::update(const WordUpdate& update) {
  if (update.bytes == 8) {
    apply<uint64_t>(update);
  } else {
    apply<uint32_t>(update);
  }
  return MOB_OK;
}

mob_status_t Transfers::resolve_notice(const char* call, const mob_transfer_t& transfer,
                                       Notice* notice) {
  const mob_rank_t self = engine_.rank();
  const struct {
    mob_rank_t owner;
    mob_counter_t counter;
    mob_counter** found;
  } wanted[] = {{self, transfer.origin_counter, &notice->origin},
                {transfer.rank, transfer.target_counter, &notice->target},
                {self, transfer.completion_counter, &notice->completion}};
  for (const auto& each : wanted) {
    if (each.counter == nullptr) continue;
    *each.found = engine_.counters().find(call, each.owner, each.counter);
    if (*each.found == nullptr) return MOB_ERR_HANDLE;
  }
  if (transfer.signal == nullptr) return MOB_OK;
  if (reinterpret_cast<uintptr_t>(transfer.signal) % sizeof(uint64_t) != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the signal word at %p is not aligned to 8 bytes", call,
                static_cast<void*>(transfer.signal));
  }
  if (transfer.signal_op != MOB_SIGNAL_SET && transfer.signal_op != MOB_SIGNAL_ADD) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d is not a signal operation", call, transfer.signal_op);
  }
  notice->signal =
      static_cast<uint64_t*>(engine_.reach(transfer.rank, transfer.signal, sizeof(uint64_t)));
  if (notice->signal != nullptr) return MOB_OK;
  return engine_.explain_unreachable(call, transfer.rank, transfer.signal, sizeof(uint64_t));
}

// Whether all of the target's bytes are memory that this process has mapped, and by how much their
// addresses differ here.
bool Transfers::reach_all(mob_rank_t rank, const Shape& shape, ptrdiff_t* delta) {
  const auto reach = [&](const void* remote, size_t bytes) {
    auto* here = static_cast<char*>(engine_.reach(rank, remote, bytes));
    if (here == nullptr) return false;
    *delta = here - static_cast<const char*>(remote);
    return true;
  };
  if (shape.total_bytes == 0) return true;
  switch (shape.kind) {
    case MOB_CONTIGUOUS:
    case MOB_STRIDED:
      return reach(reinterpret_cast<void*>(shape.lowest), shape.highest - shape.lowest);
    case MOB_PIECES:
      for (size_t i = 0; i < shape.piece_count; ++i) {
        if (!reach(shape.remotes[i], shape.run_bytes)) return false;
      }
      return true;
    case MOB_SPANS:
      for (size_t i = 0; i < shape.remote_span_count; ++i) {
        const mob_span_t& span = shape.remote_spans[i];
        if (span.bytes != 0 && !reach(span.address, span.bytes)) return false;
      }
      return true;
  }
  return false;
}

mob_status_t Transfers::explain(const char* call, mob_rank_t rank, const Shape& shape) {
  const auto explain_one = [&](const void* remote, size_t bytes) {
    return engine_.reach(rank, remote, bytes) != nullptr
               ? MOB_OK
               : engine_.explain_unreachable(call, rank, remote, bytes);
  };
  if (shape.kind == MOB_PIECES) {
    for (size_t i = 0; i < shape.piece_count; ++i) {
      if (const mob_status_t status = explain_one(shape.remotes[i], shape.run_bytes)) return status;
    }
  } else if (shape.kind == MOB_SPANS) {
    for (size_t i = 0; i < shape.remote_span_count; ++i) {
      const mob_span_t& span = shape.remote_spans[i];
      if (const mob_status_t status = explain_one(span.address, span.bytes)) return status;
    }
  }
  return engine_.explain_unreachable(call, rank, reinterpret_cast<void*>(shape.lowest),
                                     shape.highest - shape.lowest);
}

void Transfers::accumulate(mob_rank_t rank, const Shape& shape, ptrdiff_t remote_delta,
                           const transport::Combination& combination) {
  struct Stripes {
    Engine* engine;
    ProcessBlock* process;
    uint32_t id;
  } stripes{&engine_, &engine_.process(Engine::host_index(rank)), engine_.lock_id()};
  const transport::LockTable table{&stripes,
                                   [](void* context, unsigned stripe) {
                                     const auto& self = *static_cast<Stripes*>(context);
                                     LivenessProbe probe(*self.engine);
                                     os::lock(self.process->stripes[stripe].lock, self.id,
                                              self.engine->host().policy(), &probe);
                                   },
                                   [](void* context, unsigned stripe) {
                                     const auto& self = *static_cast<Stripes*>(context);
                                     os::unlock(self.process->stripes[stripe].lock, self.id);
                                   }};
  transport::accumulate(shape, remote_delta, combination, table);
}

void Transfers::announce(const mob_transfer_t& transfer, const Notice& notice) {
  const mob_rank_t self = engine_.rank();
  if (notice.signal != nullptr) {
    // Both orders: the data before the signal, and the signal before the look at sleepers. Pairs
    // with the acquire of who waits for the word.
    if (transfer.signal_op == MOB_SIGNAL_SET) {
      __atomic_exchange_n(notice.signal, transfer.signal_value, __ATOMIC_SEQ_CST);
    } else {
      __atomic_fetch_add(notice.signal, transfer.signal_value, __ATOMIC_SEQ_CST);
    }
    engine_.ring_after_fence(transfer.rank);
  }
  if (notice.target != nullptr) engine_.counters().count(transfer.rank, *notice.target);
  if (notice.origin != nullptr) engine_.counters().count(self, *notice.origin);
  if (notice.completion != nullptr) engine_.counters().count(self, *notice.completion);
}

}  // namespace mobius::engine
