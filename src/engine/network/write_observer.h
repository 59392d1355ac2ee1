// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::engine {

// Hears of writes of peers that the transport reports (NetworkRma::can_note()). Called by the
// thread that polls.
class WriteObserver {
 public:
  // The write that was sent with this note is in the memory of this process.
  virtual void noted(uint64_t note) = 0;

 protected:
  ~WriteObserver() = default;
};

}  // namespace mobius::engine
