// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::engine {

// Learns of writes of peers that the transport reports (NetworkRma::can_note()). The polling thread
// calls it.
class WriteObserver {
 public:
  // The write that was sent with this note has arrived in the memory of this process.
  virtual void noted(uint64_t note) = 0;

 protected:
  ~WriteObserver() = default;
};

}  // namespace mobius::engine
