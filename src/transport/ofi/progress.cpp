// SPDX-License-Identifier: BSD-3-Clause

// poll(): turns completions into callbacks, and gives receive buffers back to libfabric.

#include <rdma/fi_errno.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/log.h"
#include "transport/ofi/state.h"

namespace mobius::transport::ofi {
namespace {

constexpr size_t kAtOnce = 16;

Record* record_of(void* context) { return static_cast<Record*>(context); }

// Failures of one operation that say nothing about the connection to the peer.
bool concerns_operation_only(int error) {
  return error == FI_EACCES || error == FI_EPERM || error == FI_EINVAL || error == FI_ENOKEY ||
         error == FI_EKEYREJECTED || error == FI_EMSGSIZE;
}

// Records which thread polls, for the callbacks that it makes.
class Poller {
 public:
  explicit Poller(std::atomic<std::thread::id>& place) : place_(place) {
    place_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller() { place_.store({}, std::memory_order_relaxed); }

 private:
  std::atomic<std::thread::id>& place_;
};

}  // namespace

void Endpoint::State::drop(const char* why) {
  // One line for each power of two, so that a flood cannot fill the log.
  if (std::has_single_bit(++dropped)) {
    base::log(base::LogLevel::kWarn, "%s on %s: dropped a message: %s (%llu so far)",
              description.provider.c_str(), description.address.c_str(), why,
              static_cast<unsigned long long>(dropped));
  }
}

void Endpoint::State::post_receives() {
  while (Record* record = unposted.pop()) {
    const int64_t result = fi_recv(endpoint.get(), record->buffer.start, buffer_bytes,
                                   record->buffer.descriptor, FI_ADDR_UNSPEC, &record->context);
    if (result != 0) {
      unposted.push(record);
      return;
    }
    record->posted = true;
    record->posting = ++postings;
  }
}

void Endpoint::State::deliver(const Opened& opened) {
  if (callbacks.received != nullptr) {
    callbacks.received(callbacks.context, opened.peer, opened.message.data(),
                       opened.message.size());
  }
}

void Endpoint::State::receive(Record* record, size_t bytes) {
  record->posted = false;
  Opened opened;
  switch (senders->open_message({record->buffer.start, std::min(bytes, buffer_bytes)}, &opened)) {
    case Verdict::kGood:
      deliver(opened);
      unposted.push(record);
      if (!early.empty()) deliver_early(opened.sender);
      return;
    case Verdict::kGreeting:
      try {
        greeted(opened);
      } catch (const std::bad_alloc&) {
        base::log(base::LogLevel::kDebug, "%s: no memory for a greeting, which will be repeated",
                  description.provider.c_str());
      }
      unposted.push(record);
      return;
    case Verdict::kEarly:
      // Messages get their buffers in order, but a short one may be complete before a longer,
      // earlier one.
      record->early = opened;
      if (early.emplace(std::pair(opened.sender, opened.sequence), record).second) return;
      [[fallthrough]];
    case Verdict::kReplayed:
      drop("it came before");
      break;
    case Verdict::kStranger:
      drop("it was not made with the key of this job");
      break;
    case Verdict::kForged: {
      drop("its contents are not what its sender has sealed");
      const std::lock_guard lock(issue);
      fail_peer(opened.peer,
                "a message from it failed authentication: it was changed on the way, or somebody "
                "else made it (MOBIUS_SECURITY)");
      break;
    }
  }
  unposted.push(record);
}

void Endpoint::State::deliver_early(uint64_t sender) {
  while (true) {
    const auto first = early.lower_bound({sender, 0});
    if (first == early.end() || first->first.first != sender) return;
    Record* record = first->second;
    if (!senders->due(record->early)) return;
    early.erase(first);
    deliver(record->early);
    unposted.push(record);
  }
}

// Messages that precede an early message got their buffers before it. If libfabric holds none of
// those buffers any more, the connection broke and was made again: messages were lost, and their
// order with them.
void Endpoint::State::give_up_gaps() {
  uint64_t oldest = UINT64_MAX;
  for (const Record& record : receive_records) {
    if (record.posted) oldest = std::min(oldest, record.posting);
  }
  for (auto at = early.begin(); at != early.end();) {
    const auto [sender, sequence] = at->first;
    Record* record = at->second;
    if (record->posting > oldest) {
      ++at;
      continue;
    }
    drop("messages before it are missing");
    at = early.erase(at);
    unposted.push(record);
    const std::lock_guard lock(issue);
    const auto found = peers_by_name.find(sender);
    if (found != peers_by_name.end()) fail_peer(found->second, "messages from it were lost");
  }
}

void Endpoint::State::end(Record* record, mob_status_t status, const char* text) {
  uint64_t operation = 0;
  {
    const std::lock_guard lock(issue);
    operation = record->ended ? 0 : record->operation;
    give_back(record);
  }
  if (operation != 0 && callbacks.ended != nullptr) {
    callbacks.ended(callbacks.context, operation, status, text);
  }
}

void Endpoint::State::completed(Record* record) {
  {
    const std::lock_guard lock(issue);
    if (record->kind == Kind::kWrite && read_back && record->left == 0) {
      record->kind = Kind::kReadBack;
      waiting.push(record);
      something_waits.store(true, std::memory_order_release);
      return;
    }
    const bool transfer = record->kind == Kind::kWrite || record->kind == Kind::kRead;
    if (transfer && record->left != 0) {
      record->local += record->piece;
      record->remote += record->piece;
      record->piece = std::min(record->left, largest_transfer);
      record->left -= record->piece;
      waiting.push(record);
      something_waits.store(true, std::memory_order_release);
      return;
    }
  }
  end(record, MOB_OK, nullptr);
}

bool Endpoint::State::take_error() {
  fi_cq_err_entry error = {};
  const int64_t count = fi_cq_readerr(completions.get(), &error, 0);
  if (count < 0) return false;
  std::string text = library->text_of_error(error.err);
  const char* detail =
      fi_cq_strerror(completions.get(), error.prov_errno, error.err_data, nullptr, 0);
  if (detail != nullptr && text != detail) text = text + " (" + detail + ")";
  Record* record = record_of(error.op_context);
  if (record == nullptr) {
    base::log(base::LogLevel::kDebug, "%s: an operation without a callback failed: %s",
              description.provider.c_str(), text.c_str());
    return true;
  }
  if (record->kind == Kind::kReceive) {
    record->posted = false;
    if (error.err != FI_ECANCELED) drop(text.c_str());
    unposted.push(record);
    return true;
  }
  if (record->kind == Kind::kGreeting) {
    base::log(base::LogLevel::kDebug, "%s: a greeting did not arrive: %s",
              description.provider.c_str(), text.c_str());
    end(record, MOB_OK, nullptr);
    return true;
  }
  mob_status_t status = MOB_ERR_PEER;
  {
    const std::lock_guard lock(issue);
    if (record->kind != Kind::kSend && concerns_operation_only(error.err)) {
      status = MOB_ERR_RANGE;
      text = "provider " + description.provider + ": peer " + peers[record->peer].where +
             " refused a transfer: " + text;
    } else {
      fail_peer(record->peer, text);
      text = peers[record->peer].text;
    }
  }
  end(record, status, text.c_str());
  return true;
}

// Takes the next step of operations that had to wait, and reports those that failed or ended
// outside libfabric.
bool Endpoint::State::finish_waiting() {
  std::vector<PeerId> lost;
  RecordList ended_here;
  {
    const std::lock_guard lock(issue);
    lost.swap(failed);
    std::swap(ended_here, done);
    RecordList still;
    while (Record* record = waiting.pop()) {
      const int64_t result = peers[record->peer].failed ? -FI_ENOTCONN : post_next(record);
      if (result == -FI_EAGAIN) {
        still.push(record);
      } else if (result != 0) {
        fail_peer(record->peer, library->text_of_error(static_cast<int>(result)));
        record->status = MOB_ERR_PEER;
        record->text = peers[record->peer].text;
        ended_here.push(record);
      }
    }
    waiting = still;
    something_waits.store(!waiting.empty() || !failed.empty() || !done.empty(),
                          std::memory_order_release);
  }
  bool any = !lost.empty();
  while (Record* record = ended_here.pop()) {
    any = true;
    const std::string text = std::move(record->text);
    const mob_status_t status = record->status;
    end(record, status, status == MOB_OK ? nullptr : text.c_str());
  }
  for (const PeerId peer : lost) {
    std::vector<uint64_t> ended_operations;
    std::string text;
    {
      const std::lock_guard lock(issue);
      text = peers[peer].text;
      for (Record& record : records) {
        if (record.ended || record.peer != peer) continue;
        record.ended = true;
        if (record.operation != 0) ended_operations.push_back(record.operation);
      }
    }
    for (const uint64_t operation : ended_operations) {
      if (callbacks.ended != nullptr) {
        callbacks.ended(callbacks.context, operation, MOB_ERR_PEER, text.c_str());
      }
    }
    if (callbacks.peer_failed != nullptr) {
      callbacks.peer_failed(callbacks.context, peer, text.c_str());
    }
  }
  return any;
}

bool Endpoint::State::poll() {
  const std::unique_lock lock(polling, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const Poller self(poller);
  bool any = false;
  if (something_waits.load(std::memory_order_acquire)) any = finish_waiting();
  fi_cq_data_entry entries[kAtOnce];
  const int64_t count = fi_cq_read(completions.get(), entries, kAtOnce);
  if (count == -FI_EAVAIL) return take_error() || any;
  for (int64_t i = 0; i < count; ++i) {
    if ((entries[i].flags & FI_REMOTE_WRITE) != 0) {
      if (entries[i].data != 0 && callbacks.noted != nullptr) {
        callbacks.noted(callbacks.context, entries[i].data);
      }
      continue;
    }
    Record* record = record_of(entries[i].op_context);
    if (record == nullptr) continue;
    if (record->kind == Kind::kReceive) {
      receive(record, entries[i].len);
    } else {
      completed(record);
    }
  }
  if (owed != 0) answer_owed();
  if (!early.empty()) give_up_gaps();
  if (!unposted.empty()) post_receives();
  return any || count > 0;
}

}  // namespace mobius::transport::ofi
