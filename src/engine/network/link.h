// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The stream of records between this process and one of another host, in both directions: what a
// pair of rings is between local peers.
//
// Records travel in frames, which are messages of the transport: that has proved by then that they
// come from the job, whole and in order. A frame's header says who sent it and how far the sender
// has read the other direction.
//
// A record goes at once when no frame is under way to the peer. Otherwise it is collected with
// others into one, until that is full, or somebody polls, at the latest when the peer reports on
// what is under way: who waits for a record polls, so that only those are held back that nobody
// waits for yet.
//
// A sender has at most kWindow frames under way that the receiver has not reported as read, which
// bounds the memory that they take wherever they are. Reports ride on what goes the other way
// anyway. One goes on a frame of its own when half of the window is not reported, when nothing else
// has come for a while (an answer that a thread waited for is so reported by its next request), and
// at once where somebody waits for it (probe()).

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

// Whether a frame asks how far it was read: with what goes back anyway, or at once.
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

// In front of each record of a frame; records start at multiples of kRingPayloadAlignment.
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

  // Sending records; called by the thread that has the turn of the MessageSender.
  StreamHead& outgoing_head() { return outgoing_; }
  size_t record_bytes() const { return record_bytes_; }
  // Where the next record goes, up to record_bytes(); null while there is no room. If not, commit()
  // follows soon: what others want to send waits for it. What is sent while accept() runs are
  // answers, which may wait for something to ride on.
  void* reserve(size_t bytes, RecordKind kind);
  void commit();
  // While one lives what its thread sends waits for what it sends after that, or for somebody to
  // poll, so that they share a frame. Who makes one sends more, or polls.
  class Joined;
  // In a handler of what accept() has read: the program waits for such things, or may.
  static void note_told();
  // One record kMore, not copied twice; false while there is no room.
  bool send_more(const unsigned char* part, size_t bytes);
  // One record: what stands in front, if anything, and what stays where it is until the peer has
  // answered.
  bool send_in_place(RecordKind kind, std::span<const unsigned char> head, const void* rest,
                     size_t bytes);

  // Asks the peer to report. Any thread.
  void probe();

  // The next frame of the peer, by the one thread that polls; false if it has something that may
  // not come, and what follows it was dropped. All are dropped once the peer has failed.
  bool accept(const FrameHeader& header, const unsigned char* records, size_t bytes);
  // After that: has settle() send the report that the peer wants, unless it has gone with
  // something.
  void note_report();
  // Sends what could not be sent before, and reports if it is time: when nothing comes (`idle`), or
  // much has. Whether it did something that may have consequences here, or has to try again.
  // `is_due`: it is also time to look at what waits for something to ride on.
  bool settle(bool idle, bool is_due = true);

  // The peer is gone, as the transport or its silence says. Any thread.
  void fail(const std::string& why);
  // The same, and when it returns nothing that the peer has sent is written anywhere any more. Not
  // called in handlers.
  void cut(const std::string& why);
  std::string why() const;
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // Asked by those who wait for the peer, again and again: whether it has not been heard of for
  // `timeout_ns` although it was asked to report.
  bool is_silent(uint64_t timeout_ns);
  // Something came of it that is no frame. Any thread.
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
  mutable std::mutex why_mutex_;  // guards what follows
  std::atomic<bool> failed_ = false;
  std::string why_;

  // Sending.
  StreamHead outgoing_{};
  std::mutex mutex_;                    // guards the order of what is sent, and the stage
  std::atomic<uint32_t> sent_ = 0;      // frames with records, ever
  std::atomic<uint32_t> reported_ = 0;  // … that the peer has read
  // A frame: room for its header, then the records that are collected.
  transport::ofi::MessageBuffer stage_;
  size_t staged_bytes_ = 0;    // of records
  size_t reserved_bytes_ = 0;  // … and of the one that is being written
  // Of answers to what tells the program nothing, and to what tells it something: it may well be
  // about to send, then.
  std::array<AckPiggyback, 2> ridings_;
  AckPiggyback* holding_ =
      nullptr;                  // has what is staged wait, which are answers; null: nothing waits
  uint32_t held_looks_ = 0;     // how often settle() has found them so
  uint64_t held_until_ns_ = 0;  // at least
  std::atomic<bool> probe_wanted_ = false;

  // Receiving.
  StreamHead incoming_{};
  std::mutex receiving_;  // held by accept(); guards the sink
  const std::unique_ptr<RecordSink> sink_;
  std::atomic<uint32_t> read_ = 0;           // frames with records, ever
  std::atomic<uint32_t> reported_read_ = 0;  // … that the peer knows of
  std::atomic<bool> report_wanted_ = false;
  std::atomic<bool> report_awaited_ = false;  // … by somebody who waits for it
  std::atomic<uint64_t> heard_ = 0;           // frames and transfers, ever
  uint64_t heard_when_asked_ = 0;             // as all below, guarded by silence_mutex_
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
