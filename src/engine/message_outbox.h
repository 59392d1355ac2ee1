// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The sending side of the ring between two processes.

#include <mobius/message.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "engine/message_wire.h"
#include "os/hybrid_lock.h"
#include "os/ring.h"

namespace mobius::engine {

class Engine;

// A message to be sent; what it points to is the caller's.
struct Outgoing {
  unsigned id = 0;
  const void* header = nullptr;
  size_t header_bytes = 0;
  const void* payload = nullptr;
  size_t payload_bytes = 0;
  mob_notify_t notify = {};
};

class Outbox {
 public:
  // `ring` is the ring at `index` of the target's inbox. `boxes_with_queue` is counted while there
  // is a queue here.
  Outbox(Engine& engine, mob_rank_t target, MessageRing& ring, uint32_t index,
         std::atomic<uint32_t>& boxes_with_queue);

  // Blocks until local completion. Not in a handler.
  mob_status_t send(const Outgoing& message);

  // Never blocks. What the ring does not take now is copied.
  mob_status_t post(const Outgoing& message);

  // Writes what was queued as far as there is room; whether anything was written.
  bool pump();

  // Waits until everything sent and posted so far is complete.
  mob_status_t flush();

 private:
  // How far the writing of a message has come.
  struct Cursor {
    bool started = false;
    size_t sent = 0;
  };
  // A message of the queue, with all it points to.
  struct Parcel {
    Outgoing message;
    Cursor cursor;
    std::unique_ptr<unsigned char[]> bytes;
  };
  class TargetWatch;

  // The right to write to the ring, by one thread at a time. A handler may ask for it on a thread
  // that has it, and is told no.
  class Turn {
   public:
    explicit Turn(Outbox& box);
    ~Turn() {
      if (has_) give_up();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    void take();
    bool try_take();
    void give_up();
    bool has() const { return has_; }

   private:
    Outbox& box_;
    const uint32_t id_;
    bool has_ = false;
  };

  bool write(const Outgoing& message, Cursor& cursor, bool in_place);
  bool write_first(const Outgoing& message, Cursor& cursor, bool in_place);
  void* reserve(size_t bytes, RecordKind kind);
  void commit();
  bool write_queue();
  void write_queue_and_give_up(Turn& turn);
  Parcel* front();
  void enqueue(const Outgoing& message, Cursor cursor);
  void pop();
  mob_status_t broken() const;

  Engine& engine_;
  const mob_rank_t target_;
  MessageRing& ring_;
  const uint32_t index_;
  std::atomic<uint32_t>& boxes_with_queue_;

  os::HybridLockWord turn_{};  // taken for the whole of a message
  os::RingWriter writer_;
  std::atomic<bool> broken_ = false;   // a message was given up halfway: the target is gone
  std::atomic<uint64_t> written_ = 0;  // messages, wholly

  // Those who may not wait for their turn add to the queue; only who has it takes from there.
  std::mutex queue_mutex_;  // guards queue_
  std::deque<Parcel> queue_;
  std::atomic<uint64_t> queued_ = 0;    // parcels ever
  std::atomic<uint64_t> unqueued_ = 0;  // … and those of them that are written
};

}  // namespace mobius::engine
