// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Carries out batches of other hosts' schedulers at the target: many operations on this process'
// memory in one message, in order, with one answer.

#include <mobius/message.h>

#include <memory>

#include "engine/request/batch_wire.h"
#include "engine/request/request_services.h"

namespace mobius::schedule {
struct Arrived;
}  // namespace mobius::schedule

namespace mobius::engine {

class AmRma;

// Receives the tells of a batch: messages of an origin to the engine of this process, ordered
// behind the batch's earlier operations.
class TellSink {
 public:
  // The message is in the header. Any thread that carries out messages.
  virtual void serve(const mob_message_t& message) = 0;

 protected:
  ~TellSink() = default;
};

class BatchServer {
 public:
  BatchServer(const RequestServices& services, AmRma& am_rma, TellSink& tells)
      : services_(services), am_rma_(am_rma), tells_(tells) {}

  // Readies this process to receive batches.
  void open();

  // Outcome of a batch: the first error, and the data read.
  struct Done {
    BatchReply reply;
    std::unique_ptr<unsigned char[]> data;
    size_t bytes = 0;
  };
  // Carries out a batch. With `may_tell` it also serves tells, which may take any lock of the
  // engine.
  Done carry_out(mob_rank_t origin, const BatchRequest& request, const unsigned char* pieces,
                 size_t bytes, bool may_tell);

 private:
  struct Whole;

  void serve(const mob_message_t& message, mob_delivery_t* delivery);
  void serve_pieces(mob_rank_t origin, const BatchRequest& request, const unsigned char* bytes,
                    size_t count);
  mob_status_t carry_out(mob_rank_t origin, const schedule::Arrived& piece, bool is_checked,
                         unsigned char* answer);
  // For an unchecked piece: one row.
  mob_status_t move(const schedule::Arrived& piece, bool is_checked, unsigned char* answer) const;
  mob_status_t combine(const schedule::Arrived& piece, unsigned char* answer);

  const RequestServices services_;
  AmRma& am_rma_;
  TellSink& tells_;
};

}  // namespace mobius::engine
