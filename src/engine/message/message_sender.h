// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The sending side of the stream of records from one process to another: a ring in shared memory,
// or a link of the network.

#include <mobius/message.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "engine/message/message_services.h"
#include "engine/segment/message_wire.h"
#include "os/hybrid_lock.h"
#include "os/ring.h"

namespace mobius::engine {

class Link;
struct Pending;
struct ProcessBlock;

// Of an answer whose payload need not be kept while there is no room for it: it is read once there
// is, or somebody calls MessageSender::read_late().
struct LatePayload {
  // Reads its `bytes` bytes, if that may be done now. `owner` is Outgoing::late_owner.
  mob_status_t (*read)(void* owner, const void* payload, size_t bytes, void* to);
  // If not: has the header say so, with that status and mob_last_error(); its length then.
  size_t (*refuse)(void* header, mob_status_t status);
  size_t header_room;  // for that
};

// A message to be sent; what it points to is the caller's.
struct Outgoing {
  unsigned id = 0;
  const void* header = nullptr;
  size_t header_bytes = 0;
  const void* payload = nullptr;
  size_t payload_bytes = 0;
  mob_notify_t notify = {};
  const LatePayload* late = nullptr;  // of one that is posted to another host
  void* late_owner = nullptr;
  // Not 0: `payload` points to so many bytes, which describe it to LatePayload::read(). Else it is
  // the payload itself.
  size_t described_bytes = 0;
  // The payload stays as it is until the target has answered.
  bool stays = false;
};

// Whose messages a flush waits for. Those of the library are requests with answers of their own,
// and to know of their completion as well takes another round trip between hosts.
enum class Whose { kProgram, kEveryones };

// What became of a message without payload. kNoRoom: none that is known of, and the thread has the
// turn to write; it is left to the caller to end that, so that the code to send needs no calls.
enum class BareSent { kSent, kUnsent, kNoRoom };

class MessageSender {
 public:
  // `ring` is the ring at `index` of the target's inbox. `boxes_with_queue` is counted while there
  // is a queue here.
  MessageSender(const MessageServices& services, mob_rank_t target, MessageRing& ring,
                uint32_t index, std::atomic<uint32_t>& boxes_with_queue);
  // To a process of another host.
  MessageSender(const MessageServices& services, mob_rank_t target, Link& link,
                std::atomic<uint32_t>& boxes_with_queue);
  ~MessageSender() { give_queue_up(); }
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  // Whether the message could be sent at once, as a whole and without being waited for. Most are;
  // what follows is for those that were not. Never blocks.
  bool send_now(const Outgoing& message);

  // The same for one without counters, of the program's; false also where the target is not a
  // local peer that has such a handler.
  bool send_plain(unsigned id, const void* header, size_t header_bytes, const void* payload,
                  size_t payload_bytes);

  // The same without payload, for most of these: kUnsent at least until send_bare_from_now() was
  // called, and where the header does not fit into a line with what is in front of it. After
  // kNoRoom, look_for_room() is to be called before anything else.
  BareSent send_bare(unsigned id, const void* header, size_t header_bytes);
  void send_bare_from_now();
  void look_for_room();

  // Blocks until local completion. Not in a handler.
  mob_status_t send(const Outgoing& message);

  // Never blocks. What the ring does not take now is copied, a LatePayload later. What describes
  // one is the caller's again.
  mob_status_t post(const Outgoing& message);
  // Copies what was to be read later.
  void read_late();

  // Never blocks. The payload is the caller's until `pending` is told of its local completion; both
  // completions are reported then. Throws nothing; an error is reported, too.
  void start(const Outgoing& message, Pending& pending) noexcept;

  // Writes what was queued as far as there is room; whether anything was written.
  bool pump();

  // The target has died: tells those who wait for what is queued.
  void give_up() {
    set_broken();
    pump();
  }

  // Waits until what was sent and posted so far is complete; the fence of a flush is the caller's.
  mob_status_t flush(Whose whose);

  bool is_here() const { return link_ == nullptr; }
  // How many messages were wholly written.
  uint64_t written() const { return written_.load(std::memory_order_acquire); }

 private:
  // How far the writing of a message has come.
  struct Cursor {
    bool started = false;
    bool asked = false;  // the target to take the payload itself; it has not answered yet
    size_t sent = 0;
  };
  // A message of the queue, with all it points to but the payload of one that was started, or that
  // is still to be read.
  struct Parcel {
    Outgoing message;
    Cursor cursor;
    std::unique_ptr<unsigned char[]> bytes;
    Pending* pending = nullptr;  // told when it is written
    bool in_place = false;
    uint64_t number = 0;  // in the order of coming to the queue
  };
  class TargetWatch;
  static constexpr size_t kNever = SIZE_MAX;

  // The right to write to the ring, by one thread at a time. A handler may ask for it on a thread
  // that has it, and is told no.
  class Turn {
   public:
    explicit Turn(MessageSender& box);
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
    MessageSender& box_;
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
  // Whether so much has flowed that the next message goes to a wider ring, if there can be one.
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
  ProcessBlock* const target_block_;  // null on another host
  StreamHead& head_;
  const uint32_t index_ = 0;
  Link* const link_ = nullptr;
  std::atomic<uint32_t>& boxes_with_queue_;

  os::HybridLockWord turn_{};  // taken for the whole of a message
  os::RingWriter writer_;
  bool untold_ = false;                   // the target has not been told of what was committed last
  size_t streamed_bytes_ = 0;             // of payloads, in this ring
  size_t widens_after_ = kNever;          // bytes, that is: once it has, or on another host
  std::atomic<bool> broken_ = false;      // a message was given up halfway: the target is gone
  std::atomic<bool> sends_bare_ = false;  // send_bare() may be tried; not once it is broken
  std::once_flag attach_allowed_;
  std::atomic<bool> attaches_ =
      true;  // the target takes payloads from memory that it has not mapped
  std::atomic<uint64_t> written_ = 0;       // messages, wholly
  std::atomic<uint64_t> own_written_ = 0;   // … up to the last one of the program
  std::atomic<uint64_t> told_unknown_ = 0;  // of StreamHead::unknown

  // Those who may not wait for their turn add to the queue; only who has it takes from there.
  std::mutex queue_mutex_;  // guards queue_ and late_
  std::deque<Parcel> queue_;
  size_t late_ = 0;                     // … of which so many have a LatePayload to be read
  std::atomic<uint64_t> queued_ = 0;    // parcels ever
  std::atomic<uint64_t> unqueued_ = 0;  // … up to this one all are written
};

}  // namespace mobius::engine
