// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Carries out operations by loads and stores: on memory of a local peer that is mapped here, and on
// memory of this process for origins that sent a request.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/rma/completion_signals.h"
#include "engine/rma/operation.h"
#include "engine/segment/segment.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

// Any thread.
class LocalExecutor {
 public:
  LocalExecutor(Segment& segment, CompletionSignals& signals)
      : segment_(segment), signals_(signals) {}

  // Moves or combines the bytes of a checked transfer with a local peer, whose addresses plus
  // `delta` are addresses here. Announces nothing.
  void perform(const mob_transfer_t& transfer, const transport::Shape& shape, ptrdiff_t delta);

  // Carries out another process' transfer on exposed or allocated memory of this one, and announces
  // it to the counters and words of this process that it names.
  mob_status_t serve(const mob_transfer_t& transfer, const transport::Shape& shape);

  // Updates a word that is mapped here.
  void update(const WordUpdate& update) {
    segment_.accumulate_locks().admit_word(segment_.peers().host_index(update.rank),
                                           reinterpret_cast<uintptr_t>(update.remote));
    if (update.bytes == 8) {
      apply<uint64_t>(update);
    } else {
      apply<uint32_t>(update);
    }
  }

 private:
  template <typename T>
  static T changed(const WordUpdate& update, T* word) {
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
  static void apply(const WordUpdate& update) {
    const T old = changed(update, static_cast<T*>(update.word));
    std::memcpy(update.old, &old, sizeof old);
  }

  Segment& segment_;
  CompletionSignals& signals_;
};

}  // namespace mobius::engine
