// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The sending side of a stream of records from one process to another: through a ring in shared
// memory or a link of the network.

#include <mobius/message.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "engine/message/message_services.h"
#include "engine/segment/message_wire.h"
#include "os/sync/hybrid_lock.h"
#include "os/sync/ring.h"

namespace mobius::engine {

class Link;
struct Pending;
struct ProcessBlock;

// The payload of an answer that need not be copied while there is no room for it. It is read once
// there is room, or when MessageSender::read_late() is called.
struct LatePayload {
  // Reads `bytes` bytes of the payload, if that is allowed now. `owner` is Outgoing::late_owner.
  mob_status_t (*read)(void* owner, const void* payload, size_t bytes, void* to);
  // Called if read() fails: makes the header report that status and mob_last_error(). Returns the
  // header's new length.
  size_t (*refuse)(void* header, mob_status_t status);
  size_t header_room;  // the most that refuse() needs
};

// A message to send. The memory that it points to belongs to the caller.
struct Outgoing {
  unsigned id = 0;
  const void* header = nullptr;
  size_t header_bytes = 0;
  const void* payload = nullptr;
  size_t payload_bytes = 0;
  mob_notify_t notify = {};
  const LatePayload* late = nullptr;  // only in messages posted to another host
  void* late_owner = nullptr;
  // If not 0, `payload` points to so many bytes that describe the payload to LatePayload::read().
  // If 0, it points to the payload itself.
  size_t described_bytes = 0;
  // The payload does not change until the target has answered.
  bool stays = false;
};

// Whose messages a flush waits for. The library's own messages are requests that get answers
// anyway; waiting for their completion, too, takes another round trip between hosts.
enum class Whose { kProgram, kEveryones };

// The outcome for a message without payload. kNoRoom: this thread knows of no room and still has
// the turn to write. The caller ends the turn, so that the sending code itself needs no calls.
enum class BareSent { kSent, kUnsent, kNoRoom };

class MessageSender {
 public:
  // `ring` is the ring at `index` of the target's inbox. Counts itself in `senders_with_queue`
  // while its queue is not empty.
  MessageSender(const MessageServices& services, mob_rank_t target, MessageRing& ring,
                uint32_t index, std::atomic<uint32_t>& senders_with_queue);
  // Tells the target that a ring that was vacant is this sender's now. Before all else.
  void announce();
  // To a process of another host.
  MessageSender(const MessageServices& services, mob_rank_t target, Link& link,
                std::atomic<uint32_t>& senders_with_queue);
  ~MessageSender() { give_queue_up(); }
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  // Sends the message if that is possible at once, as a whole and without waiting for the target.
  // Returns whether it was sent. Most are; the calls below send the others. Never blocks.
  bool send_now(const Outgoing& message);

  // As send_now(), for a message of the program without counters; also false if the target is not a
  // local peer with such a handler.
  bool send_plain(unsigned id, const void* header, size_t header_bytes, const void* payload,
                  size_t payload_bytes);

  // As send_plain(), for most messages without payload. kUnsent at least until send_bare_from_now()
  // was called, and if the header and the bytes in front of it do not fit into a line. After
  // kNoRoom the caller must call look_for_room() before anything else.
  BareSent send_bare(unsigned id, const void* header, size_t header_bytes);
  void send_bare_from_now();
  void look_for_room();

  // Blocks until local completion. Not in a handler.
  mob_status_t send(const Outgoing& message);

  // Never blocks. Copies what the ring does not take now; of a LatePayload it copies only the
  // description until it is read.
  mob_status_t post(const Outgoing& message);
  // Reads all queued LatePayloads.
  void read_late();

  // Never blocks. The payload is the caller's until `pending` is told of its local completion,
  // which reports both completions. Does not throw; it reports errors to `pending`, too.
  void start(const Outgoing& message, Pending& pending) noexcept;

  // Writes queued messages as far as there is room; returns whether it wrote any.
  bool pump();

  // The target has died: ends the queued messages with an error.
  void give_up() {
    set_broken();
    pump();
  }

  // Waits until all messages sent and posted so far are complete. The caller adds the fence.
  mob_status_t flush(Whose whose);

  bool is_here() const { return link_ == nullptr; }
  // Number of messages written as a whole.
  uint64_t written() const { return written_.load(std::memory_order_acquire); }

 private:
  // How much of a message is written.
  struct Cursor {
    bool started = false;
    bool asked = false;  // the target must take the payload itself and has not answered yet
    size_t sent = 0;
  };
  // A queued message with all that it points to, except a payload that its caller keeps (start())
  // or that is still to be read.
  struct Parcel {
    Outgoing message;
    Cursor cursor;
    std::unique_ptr<unsigned char[]> bytes;
    Pending* pending = nullptr;  // told when the message is written
    bool in_place = false;
    uint64_t number = 0;  // in the order in which messages are queued
  };
  class TargetWatch;
  static constexpr size_t kNever = SIZE_MAX;

  // The right to write to the ring; one thread at a time has it. A handler that asks for it on a
  // thread that has it already does not get it.
  class Turn {
   public:
    explicit Turn(MessageSender& sender);
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
    MessageSender& sender_;
    const uint32_t id_;  // of the thread
    bool has_ = false;
  };

  bool is_taken_in_place(const Outgoing& message, bool waits);
  bool is_answered(Cursor& cursor, size_t payload_bytes);
  bool write(const Outgoing& message, Cursor& cursor, bool in_place);
  bool write_on(const Outgoing& message, Cursor& cursor, bool in_place);
  size_t most_bytes() const;
  bool write_first(const Outgoing& message, Cursor& cursor, bool in_place);
  bool write_whole(const Outgoing& message);
  bool write_bare(unsigned id, const void* header, size_t header_bytes);
  bool knows_handler(unsigned id) const;
  void finish_bare();
  void give_up_turn();
  void set_broken();
  void note_written(unsigned id);
  bool write_more(const unsigned char* part, size_t bytes, bool last, bool stays);
  void* reserve(size_t bytes, RecordKind kind);
  void commit(bool tell);
  void tell_target();
  void tell_target_after_fence();
  bool has_queue() const {
    return queued_.load(std::memory_order_seq_cst) != unqueued_.load(std::memory_order_relaxed);
  }
  // Whether the pair has moved so many bytes that it should change to a larger ring.
  bool widens() const { return streamed_bytes_ >= widens_after_; }
  void widen();
  bool help(const Outgoing& message);
  bool write_queue();
  bool await_answer(Parcel& parcel);
  void give_queue_up();
  void write_queue_and_give_up(Turn& turn);
  Parcel* front();
  Parcel& front_to_write();
  void read_late(Parcel& parcel);
  void read(Parcel& parcel, const LatePayload& late);
  void keep(Parcel& parcel);
  void enqueue(Parcel parcel);
  void pop(mob_status_t status);
  void end(Pending& pending, mob_status_t status);
  mob_status_t broken() const;
  mob_status_t tell_unknown();

  const MessageServices& services_;
  const mob_rank_t target_;
  ProcessBlock* const target_block_;  // null if the target is on another host
  StreamHead& head_;
  const uint32_t index_ = 0;
  Link* const link_ = nullptr;
  std::atomic<uint32_t>& senders_with_queue_;

  os::HybridLockWord turn_{};  // held for the whole of a message
  os::RingWriter writer_;
  bool untold_ = false;               // the target was not woken since the last commit
  size_t streamed_bytes_ = 0;         // of payloads, in this ring
  size_t widens_after_ = kNever;      // bytes; kNever once the pair has changed, or between hosts
  std::atomic<bool> broken_ = false;  // the target is gone: a message was given up halfway
  std::atomic<bool> sends_bare_ =
      false;  // send_bare() may be tried; false once the sender is broken
  std::once_flag attach_allowed_;
  std::atomic<bool> attaches_ =
      true;  // the target takes payloads from memory that it has not mapped
  std::atomic<uint64_t> written_ = 0;          // messages, as a whole
  std::atomic<uint64_t> own_written_ = 0;      // … up to the last message of the program
  std::atomic<uint64_t> known_completed_ = 0;  // of written_, as a flush has found
  std::atomic<uint64_t> told_unknown_ =
      0;  // the part of StreamHead::unknown that a flush has reported

  // Threads that may not wait for the turn add to the queue; only the thread with the turn removes.
  std::mutex queue_mutex_;  // guards queue_ and late_
  std::deque<Parcel> queue_;
  size_t late_ = 0;                     // parcels with a LatePayload to be read
  std::atomic<uint64_t> queued_ = 0;    // parcels ever
  std::atomic<uint64_t> unqueued_ = 0;  // … up to this number all are written
};

}  // namespace mobius::engine
