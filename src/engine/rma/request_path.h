// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Interface to transfers that a handler of the target carries out (request/am_rma.h).

#include <mobius/transfer.h>

#include <cstdint>

#include "engine/rma/operation.h"

namespace mobius::engine {

class RequestPath {
 public:
  RequestPath() = default;
  virtual ~RequestPath() = default;
  RequestPath(const RequestPath&) = delete;
  RequestPath& operator=(const RequestPath&) = delete;

  // Readies this process to serve requests. Called before memory is exposed: an origin that finds
  // the memory may ask for operations that only this process can carry out. Any thread.
  virtual mob_status_t require() = 0;

  // Starts a checked transfer, or runs it up to local completion in mode kBlocking.
  virtual mob_status_t run(const char* call, const mob_transfer_t& transfer,
                           const transport::Shape& shape, Mode mode, uint64_t* handle) = 0;
};

}  // namespace mobius::engine
