// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages whose calls must succeed.

#include <mobius/mobius.h>

#include <gtest/gtest.h>
#include <sched.h>

#include <cstddef>

namespace mobius_test {

template <typename Condition>
void poll_until(Condition condition) {
  while (!condition()) {
    EXPECT_EQ(mob_poll(), MOB_OK);
    sched_yield();
  }
}

inline void register_handler(unsigned id, mob_header_handler_t handler, void* argument = nullptr) {
  EXPECT_EQ(mob_handler_register(id, handler, argument), MOB_OK) << mob_last_error();
}

inline void send(mob_rank_t rank, unsigned id, const void* header = nullptr,
                 size_t header_bytes = 0, const void* payload = nullptr, size_t payload_bytes = 0) {
  EXPECT_EQ(mob_message_send(rank, id, header, header_bytes, payload, payload_bytes, nullptr),
            MOB_OK)
      << mob_last_error();
}

inline void flush_all() {
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    EXPECT_EQ(mob_message_flush(rank), MOB_OK) << mob_last_error();
  }
}

}  // namespace mobius_test
