// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "engine/network/network.h"
#include "engine/progress/progress.h"
#include "os/sync/futex.h"

namespace mobius::engine {

using transport::ofi::Piece;
using transport::ofi::Posted;

namespace {

// The link whose accept() this thread runs, and whether the program has heard of what came.
struct Answering {
  const Link* link = nullptr;
  bool has_told = false;
};
thread_local Answering answering;

class AnsweringScope {
 public:
  explicit AnsweringScope(const Link& link) : before_(std::exchange(answering, {&link, false})) {}
  ~AnsweringScope() { answering = before_; }
  AnsweringScope(const AnsweringScope&) = delete;
  AnsweringScope& operator=(const AnsweringScope&) = delete;

 private:
  const Answering before_;
};

thread_local int joined = 0;  // how many Link::Joined the thread has

// Most times that settle() leaves a held answer alone while other frames come. Several polls lie
// between two such times.
constexpr uint32_t kMostHeldLooks = 4;

// A peer that answers is asked no more often than this, because many processes may wait for many.
constexpr uint64_t kAskAgainNs = 1'000'000'000;

}  // namespace

Link::Link(Network& network, mob_rank_t own, const Progress& progress,
           transport::ofi::Endpoint& endpoint, RecordSinks& sinks, mob_rank_t peer,
           transport::ofi::PeerId id)
    : network_(network),
      own_(own),
      progress_(progress),
      endpoint_(endpoint),
      peer_(peer),
      id_(id),
      record_bytes_((endpoint.message_bytes() - sizeof(FrameHeader) - sizeof(FrameRecord)) &
                    ~(os::kRingPayloadAlignment - 1)),
      incoming_{peer, 0, 0, 0, 0, 0, {}},
      sink_(sinks.make_sink(incoming_)) {
  if (endpoint.make_buffer(&stage_) != MOB_OK) throw std::bad_alloc();
}

// Needs mutex_. Has `send` send a frame; its header reports how far this process has read. False if
// the transport has no room.
template <typename Send>
bool Link::send_frame(bool has_records, const Send& send) {
  // The order mirrors accept(): a later frame answers a wish that comes later.
  const bool is_awaited = report_awaited_.load(std::memory_order_relaxed) &&
                          report_awaited_.exchange(false, std::memory_order_seq_cst);
  const bool reports = report_wanted_.exchange(false, std::memory_order_seq_cst);
  const uint32_t read = read_.load(std::memory_order_seq_cst);
  // The peer's report on this frame triggers the sending of records staged meanwhile, so ask for
  // it.
  const bool probe = probe_wanted_.load(std::memory_order_relaxed) &&
                     probe_wanted_.exchange(false, std::memory_order_seq_cst);
  const FrameHeader header{own_, read, incoming_.completed.load(std::memory_order_acquire),
                           probe         ? kReportAwaited
                           : has_records ? kReportWanted
                                         : kNoReport,
                           0,
                           // Read after `completed`: it covers at least those messages.
                           incoming_.unknown.load(std::memory_order_acquire)};
  // Send nothing to a lost peer, and keep the caller's own error.
  const Posted posted = has_failed() ? Posted::kDone : send(header);
  if (posted == Posted::kAgain) {
    if (probe) probe_wanted_.store(true, std::memory_order_seq_cst);
    if (reports) report_wanted_.store(true, std::memory_order_seq_cst);
    if (is_awaited) report_awaited_.store(true, std::memory_order_seq_cst);
    network_.note_stuck();
    return false;
  }
  if (posted == Posted::kFailed) fail(mob_last_error());
  if (has_records) sent_.fetch_add(1, std::memory_order_relaxed);
  reported_read_.store(read, std::memory_order_relaxed);
  return true;
}

// Needs mutex_. Sends a frame without records, which only reports.
bool Link::send_alone() {
  return send_frame(false, [this](const FrameHeader& header) {
    const Piece all{&header, sizeof header};
    return endpoint_.send(id_, std::span(&all, 1));
  });
}

// Needs mutex_. Returns whether nothing is staged any more.
bool Link::send_staged() {
  if (staged_bytes_ == 0) return true;
  const auto send = [this](const FrameHeader& header) {
    std::memcpy(stage_.message, &header, sizeof header);
    return endpoint_.send_buffer(id_, sizeof header + staged_bytes_, &stage_);
  };
  if (!has_room() || !send_frame(true, send)) return false;
  staged_bytes_ = 0;
  holding_ = nullptr;
  return true;
}

void* Link::reserve(size_t bytes, RecordKind kind) {
  if (bytes > record_bytes_ || !has_room()) return nullptr;
  std::unique_lock lock(mutex_);
  const size_t needed = sizeof(FrameRecord) + padded(bytes);
  if (staged_bytes_ + needed > record_bytes_ + sizeof(FrameRecord) && !send_staged()) {
    return nullptr;
  }
  const FrameRecord record{kind, static_cast<uint32_t>(bytes), 0};
  unsigned char* to = stage_.message + sizeof(FrameHeader) + staged_bytes_;
  std::memcpy(to, &record, sizeof record);
  reserved_bytes_ = needed;
  lock.release();  // commit() unlocks it
  return to + sizeof record;
}

Link::Joined::Joined() { ++joined; }
Link::Joined::~Joined() { --joined; }

void Link::note_told() { answering.has_told = true; }

void Link::commit() {
  const std::unique_lock lock(mutex_, std::adopt_lock);
  const bool is_answer = answering.link == this;
  const bool answers_only = is_answer && (staged_bytes_ == 0 || holding_ != nullptr);
  staged_bytes_ += reserved_bytes_;
  if (!is_answer) note_own();
  AckPiggyback& piggyback = piggybacks_[answering.has_told ? 1 : 0];
  // Without a network thread nobody would send a held answer if the program stops polling.
  if (answers_only && piggyback.waits() && !progress_.rests()) {
    if (holding_ == nullptr) {
      held_looks_ = 0;
      held_until_ns_ = os::now_ns() + AckPiggyback::kSoonNs;
      holding_ = &piggyback;
    }
    network_.note_held(held_until_ns_);
    return;
  }
  holding_ = nullptr;
  if (under_way() != 0 || joined != 0) {
    network_.note_unsettled();
  } else if (send_staged() && answers_only) {
    piggyback.note_alone(os::now_ns());
  }
}

// Needs mutex_. Notes that the program sends a record of its own.
void Link::note_own() {
  for (AckPiggyback& piggyback : piggybacks_) {
    const bool held = &piggyback == holding_;
    if (held) {
      piggyback.note_rode();
    } else if (piggyback.is_undecided()) {
      piggyback.note_own(os::now_ns());
    }
  }
}

// Needs mutex_. Whether the staged answers go on waiting for a record to share a frame with.
bool Link::holds(bool idle, bool is_due) {
  if (holding_ == nullptr) return false;
  // An idle poller may be faster than the program, which may be about to send, so wait until
  // held_until_ns_. If only the program polls from now on, nobody would come back to the answers.
  const bool may_wait = (!idle && !is_due) || os::now_ns() < held_until_ns_ ||
                        (!idle && ++held_looks_ < kMostHeldLooks);
  if (may_wait && !progress_.rests()) {
    network_.note_held(held_until_ns_);
    return true;
  }
  const uint64_t held_ns = held_until_ns_ - AckPiggyback::kSoonNs;
  std::exchange(holding_, nullptr)->note_missed(os::now_ns() - held_ns);
  return false;
}

bool Link::send_more(const unsigned char* part, size_t bytes) {
  return send_record(kMore, {}, {part, bytes}, false);
}

bool Link::send_in_place(RecordKind kind, std::span<const unsigned char> head, const void* rest,
                         size_t bytes) {
  return send_record(kind, {head.data(), head.size()}, {rest, bytes}, true);
}

// Sends a frame of one record.
bool Link::send_record(RecordKind kind, const Piece& head, const Piece& rest, bool in_place) {
  if (!has_room()) return false;
  const std::lock_guard lock(mutex_);
  if (!send_staged() || !has_room()) return false;
  const FrameRecord record{kind, static_cast<uint32_t>(head.count + rest.count), 0};
  return send_frame(true, [&](const FrameHeader& header) {
    const std::array<Piece, 4> pieces{Piece{&header, sizeof header}, Piece{&record, sizeof record},
                                      head, rest};
    return in_place ? endpoint_.send_in_place(id_, pieces, 0) : endpoint_.send(id_, pieces);
  });
}

void Link::probe() {
  probe_wanted_.store(true, std::memory_order_seq_cst);
  network_.note_unsettled();
  settle(true);
}

bool Link::settle(bool idle, bool is_due) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;  // the holder may leave something staged
  const bool is_urgent = probe_wanted_.load(std::memory_order_seq_cst) ||
                         report_awaited_.load(std::memory_order_relaxed);
  if (!is_urgent && holds(idle, is_due)) return false;
  bool sends = staged_bytes_ != 0;
  if (!send_staged()) {
    if (has_room()) return true;
    // With the window full this link waits for the peer's report, and the peer may wait for ours.
    sends = false;
    network_.note_unsettled();
  }
  // A probe must follow the records that it asks about.
  if (probe_wanted_.load(std::memory_order_seq_cst)) {
    if (!send_alone()) return true;
  } else if (report_wanted_.load(std::memory_order_relaxed)) {
    if (!idle && !is_report_due()) {
      network_.note_report();
    } else if (!send_alone()) {
      return true;
    }
  }
  return sends;
}

bool Link::is_report_due() const {
  return report_awaited_.load(std::memory_order_relaxed) ||
         read_.load(std::memory_order_relaxed) - reported_read_.load(std::memory_order_relaxed) >=
             kWindow / 2;
}

void Link::note_report() {
  if (!report_wanted_.load(std::memory_order_relaxed)) return;
  if (is_report_due()) {
    network_.note_unsettled();
  } else {
    network_.note_report();
  }
}

// The transport vouches for the sender's identity; this check keeps a faulty sender from doing harm
// here.
bool Link::is_valid(const FrameRecord& record, const unsigned char* bytes) const {
  if (record.kind == kMore) {
    return record.bytes != 0 && record.bytes <= sink_->bytes_left();
  }
  if (record.kind != kFirst || sink_->bytes_left() != 0 || record.bytes < sizeof(WireMessage)) {
    return false;
  }
  WireMessage wire;
  std::memcpy(&wire, bytes, sizeof wire);
  size_t before =
      sizeof wire + ((wire.flags & kHasNotify) != 0 ? sizeof(WireNotify) : 0) + wire.header_bytes;
  if (wire.payload_bytes != 0) before = padded(before);
  return (wire.flags & kInPlace) == 0 && wire.header_bytes <= MOB_MAX_HEADER_BYTES &&
         before <= record.bytes && record.bytes - before <= wire.payload_bytes;
}

// Takes over how far the peer has come. False if that goes back, or beyond what was sent.
bool Link::take_reports(const FrameHeader& header) {
  const uint32_t reported = reported_.load(std::memory_order_relaxed);
  // The peer may report a frame before its sender has counted it.
  if (header.read - reported > sent_.load(std::memory_order_relaxed) + 1 - reported ||
      header.completed < outgoing_.completed.load(std::memory_order_relaxed)) {
    return false;
  }
  outgoing_.unknown.store(header.unknown, std::memory_order_relaxed);
  // Release pairs with the acquire in under_way() and, for `completed`, in MessageSender::flush().
  reported_.store(header.read, std::memory_order_release);
  outgoing_.completed.store(header.completed, std::memory_order_release);
  return true;
}

bool Link::accept(const FrameHeader& header, const unsigned char* records, size_t bytes) {
  const std::lock_guard lock(receiving_);
  if (has_failed()) return true;
  heard_.fetch_add(1, std::memory_order_relaxed);
  if (!take_reports(header)) return false;
  // Count the frame first: answers of handlers then report it as read.
  if (bytes != 0) read_.store(read_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  if (header.wants_report != kNoReport) report_wanted_.store(true, std::memory_order_seq_cst);
  if (!accept_records(records, bytes)) return false;
  // After the records: a report that handlers have sent meanwhile does not cover their completion.
  if (header.wants_report == kReportAwaited) {
    report_awaited_.store(true, std::memory_order_relaxed);
    report_wanted_.store(true, std::memory_order_seq_cst);
  }
  return true;
}

bool Link::accept_records(const unsigned char* records, size_t bytes) {
  if (bytes == 0) return true;
  for (AckPiggyback& piggyback : piggybacks_) piggyback.note_heard();
  const AnsweringScope scope(*this);
  for (size_t at = 0; at < bytes;) {
    FrameRecord record;
    if (bytes - at < sizeof record) return false;
    std::memcpy(&record, records + at, sizeof record);
    at += sizeof record;
    if (record.bytes > bytes - at || !is_valid(record, records + at)) return false;
    sink_->accept({records + at, record.bytes, record.kind});
    at += padded(record.bytes);
  }
  return true;
}

void Link::fail(const std::string& why) {
  {
    const std::lock_guard lock(why_mutex_);
    if (has_failed()) return;
    why_ = why;
    failed_.store(true, std::memory_order_release);
  }
  const bool matters = !network_.have_all_met() && !network_.has_left(peer_);
  base::log(matters ? base::LogLevel::kWarn : base::LogLevel::kDebug, "rank %d is lost: %s", peer_,
            why.c_str());
}

std::string Link::why() const {
  const std::lock_guard lock(why_mutex_);
  return why_;
}

void Link::cut(const std::string& why) {
  fail(why);
  const std::lock_guard lock(receiving_);  // waits for a running accept() to end
}

bool Link::is_silent(uint64_t timeout_ns) {
  const std::lock_guard lock(silence_mutex_);
  const uint64_t heard = heard_.load(std::memory_order_relaxed);
  const uint64_t now = os::now_ns();
  if (asked_ns_ == 0 || heard != heard_when_asked_) {
    if (asked_ns_ != 0 && now - asked_ns_ < std::min(kAskAgainNs, timeout_ns / 4)) return false;
    heard_when_asked_ = heard;
    asked_ns_ = now;
    probe();
    return false;
  }
  return now - asked_ns_ > timeout_ns;
}

}  // namespace mobius::engine
