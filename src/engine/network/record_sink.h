// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include "engine/segment/message_wire.h"
#include "os/sync/ring.h"

namespace mobius::engine {

// Takes the records that one peer sends through a link, in their order. The message layer
// implements it. One thread at a time calls it.
class RecordSink {
 public:
  RecordSink() = default;
  virtual ~RecordSink() = default;
  RecordSink(const RecordSink&) = delete;
  RecordSink& operator=(const RecordSink&) = delete;

  // The link has validated the record against bytes_left().
  virtual void accept(os::RingRecord record) = 0;
  // Payload bytes of the current message that have not come yet. 0 between messages; only a record
  // kFirst may come then.
  virtual size_t bytes_left() const = 0;
};

// Makes the sink of each link. `incoming` outlives the sink, which reports its progress there.
class RecordSinks {
 public:
  virtual std::unique_ptr<RecordSink> make_sink(StreamHead& incoming) = 0;

 protected:
  ~RecordSinks() = default;
};

}  // namespace mobius::engine
