// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Small numbers that identify threads of this process, for locks. A number is used again when its
// thread has ended.

#include <cstdint>

namespace mobius::engine {

// The number of the calling thread, plus 1; 0: none yet. Every lock reads it.
extern constinit thread_local uint32_t thread_number [[gnu::tls_model("initial-exec")]];
[[gnu::cold]] uint32_t number_thread();

// The number of the calling thread, which gets one at its first call; never 0.
inline uint32_t thread_id() { return thread_number != 0 ? thread_number : number_thread(); }
// The same, or 0 if the thread has never called thread_id().
inline uint32_t known_thread_id() { return thread_number; }

}  // namespace mobius::engine
