// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The stream of records between this process and a process of another host, in both directions. It
// plays the part of a pair of rings between local peers.
//
// Records travel in frames. A frame is one message of the transport, which has already verified
// that the message comes from the job and is whole and in order. The frame header names the sender
// and reports how far the sender has read the other direction.
//
// A record is sent at once when no frame is under way to the peer. Otherwise the link stages it and
// sends all staged records in one frame: when that frame is full, when a thread polls, at the
// latest when the peer reports on the frames under way. A thread that waits for a record polls, so
// only records that nobody waits for yet are held back.
//
// A sender has at most kWindow frames under way that the receiver has not reported as read. This
// bounds the memory that frames take at both ends and in between. Reports ride on frames that go
// the other way anyway. A report takes a frame of its own when half of the window is unreported,
// when nothing else has come for a while (the next request reports an answer that a thread waited
// for), and at once when the peer waits for it (probe()).

#include <mobius/job.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "engine/network/ack_piggyback.h"
#include "engine/network/record_sink.h"
#include "engine/segment/message_wire.h"
#include "transport/ofi/endpoint.h"

namespace mobius::engine {

class Network;
class Progress;

// Whether a frame asks the receiver to report: with its next frame, or at once.
enum ReportWish : uint32_t { kNoReport, kReportWanted, kReportAwaited };

struct FrameHeader {
  int32_t source;
  uint32_t read;          // frames of the other direction that the source has read; wraps
  uint64_t completed;     // messages of the other direction that the source has completed
  uint32_t wants_report;  // ReportWish
  uint32_t reserved;
  uint64_t unknown;  // of the other direction: StreamHead::unknown
};
static_assert(sizeof(FrameHeader) % os::kRingPayloadAlignment == 0);

// Precedes each record of a frame; records start at multiples of kRingPayloadAlignment.
struct FrameRecord {
  uint32_t kind;  // RecordKind
  uint32_t bytes;
  uint64_t reserved;
};
static_assert(sizeof(FrameRecord) == os::kRingPayloadAlignment);

class Link {
 public:
  // `own` is the rank of this process.
  Link(Network& network, mob_rank_t own, const Progress& progress,
       transport::ofi::Endpoint& endpoint, RecordSinks& sinks, mob_rank_t peer,
       transport::ofi::PeerId id);

  mob_rank_t peer() const { return peer_; }
  transport::ofi::PeerId peer_id() const { return id_; }

  // Sending records. Only the thread that has the turn of the MessageSender calls these.
  StreamHead& outgoing_head() { return outgoing_; }
  size_t record_bytes() const { return record_bytes_; }
  // Returns the address of the next record, which may have up to record_bytes() bytes; null while
  // there is no room. If it is not null, commit() must follow soon, because other senders wait for
  // it. Records sent while accept() runs are answers; they may wait for another record to share a
  // frame with.
  void* reserve(size_t bytes, RecordKind kind);
  void commit();
  // While an object of this class lives, the records of its thread are staged so that they share a
  // frame with later ones. Its owner must send more afterwards, or poll.
  class Joined;
  // A handler that accept() runs calls this if the program waits for such messages, or may.
  static void note_told();
  // Sends one record kMore, copied only once; false while there is no room.
  bool send_more(const unsigned char* part, size_t bytes);
  // Sends one record: a head, which may be empty, and a payload that stays in place until the peer
  // has answered.
  bool send_in_place(RecordKind kind, std::span<const unsigned char> head, const void* rest,
                     size_t bytes);

  // Asks the peer to report. Any thread.
  void probe();

  // Takes the next frame of the peer. Only the polling thread calls it. False if the frame has an
  // invalid record; the rest of the frame was dropped then. Drops all frames once the peer has
  // failed.
  bool accept(const FrameHeader& header, const unsigned char* records, size_t bytes);
  // Called after accept(): has settle() send the report that the peer wants, unless another frame
  // has carried it.
  void note_report();
  // Sends staged records, and a report if one is due: when nothing comes (`idle`), or when much has
  // come. Returns whether it did something that may have consequences here, or must be tried again.
  // `is_due`: also decides on records that wait for others to share a frame with.
  bool settle(bool idle, bool is_due = true);

  // Marks the peer as lost, by the word of the transport or after its silence. Any thread.
  void fail(const std::string& why);
  // As fail(); when it returns, nothing that the peer has sent is written to memory any more. Not
  // called in handlers.
  void cut(const std::string& why);
  std::string why() const;
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // Whether the peer has stayed silent for `timeout_ns` although this link asked it to report.
  // Threads that wait for the peer call it again and again.
  bool is_silent(uint64_t timeout_ns);
  // Notes a sign of life from the peer other than a frame. Any thread.
  void note_heard() { heard_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kWindow = 64;

  uint32_t under_way() const {
    // Acquire pairs with the release in accept().
    return sent_.load(std::memory_order_relaxed) - reported_.load(std::memory_order_acquire);
  }
  bool has_room() const { return under_way() < kWindow; }
  template <typename Send>
  bool send_frame(bool has_records, const Send& send);
  bool send_record(RecordKind kind, const transport::ofi::Piece& head,
                   const transport::ofi::Piece& rest, bool in_place);
  bool send_alone();
  bool send_staged();
  void note_own();
  bool holds(bool idle, bool is_due);
  bool accept_records(const unsigned char* records, size_t bytes);
  bool is_valid(const FrameRecord& record, const unsigned char* bytes) const;
  bool take_reports(const FrameHeader& header);
  bool is_report_due() const;

  Network& network_;
  const mob_rank_t own_;
  const Progress& progress_;
  transport::ofi::Endpoint& endpoint_;
  const mob_rank_t peer_;
  const transport::ofi::PeerId id_;
  const size_t record_bytes_;
  mutable std::mutex why_mutex_;  // guards failed_ and why_
  std::atomic<bool> failed_ = false;
  std::string why_;

  // Sending.
  StreamHead outgoing_{};
  std::mutex mutex_;                    // guards the order of frames, and the stage
  std::atomic<uint32_t> sent_ = 0;      // frames with records, ever
  std::atomic<uint32_t> reported_ = 0;  // … that the peer has read
  // A frame: room for its header, then the staged records.
  transport::ofi::MessageBuffer stage_;
  size_t staged_bytes_ = 0;    // of records
  size_t reserved_bytes_ = 0;  // … and of the record that is being written
  // The first decides on answers to records that tell the program nothing, the second on answers to
  // records that tell it something: the program may well be about to send then.
  std::array<AckPiggyback, 2> piggybacks_;
  AckPiggyback* holding_ =
      nullptr;               // holds the staged records, all of them answers; null: nothing is held
  uint32_t held_looks_ = 0;  // how often settle() has found them held
  uint64_t held_until_ns_ = 0;  // the earliest time at which they are sent
  std::atomic<bool> probe_wanted_ = false;

  // Receiving.
  StreamHead incoming_{};
  std::mutex receiving_;  // held by accept(); guards the sink
  const std::unique_ptr<RecordSink> sink_;
  std::atomic<uint32_t> read_ = 0;           // frames with records, ever
  std::atomic<uint32_t> reported_read_ = 0;  // … that the peer knows of
  std::atomic<bool> report_wanted_ = false;
  std::atomic<bool> report_awaited_ = false;  // … and a thread of the peer waits for it
  std::atomic<uint64_t> heard_ = 0;           // frames and transfers, ever
  uint64_t heard_when_asked_ = 0;             // like asked_ns_, guarded by silence_mutex_
  uint64_t asked_ns_ = 0;
  std::mutex silence_mutex_;
};

class Link::Joined {
 public:
  Joined();
  ~Joined();
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;
};

}  // namespace mobius::engine
