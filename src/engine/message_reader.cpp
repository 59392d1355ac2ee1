// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message_reader.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/message.h"
#include "engine/remote.h"
#include "transport/cma/cma.h"
#include "transport/shm/copy.h"

namespace mobius::engine {

constinit thread_local bool in_handler = false;

namespace {

constexpr int kRecordsPerTurn = 64;

class HandlerScope {
 public:
  HandlerScope() { in_handler = true; }
  ~HandlerScope() { in_handler = false; }
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;
};

}  // namespace

bool MessageReader::drain(bool* more) {
  int records = 0;
  for (; records < kRecordsPerTurn; ++records) {
    const os::RingRecord record = reader_.peek();
    if (!record) break;
    accept(record);
    if (!reader_.release()) continue;
    // Pairs with the fence in Outbox::reserve(): the sender sees the room, or we that it starves.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (head_.starved.load(std::memory_order_relaxed) != 0) {
      head_.starved.store(0, std::memory_order_relaxed);
      Progress::wake_after_fence(engine_.process(engine_.host_index(source_)).doorbell);
    }
  }
  if (records == 0) return false;
  *more |= records == kRecordsPerTurn;
  engine_.ring(source_);  // it may wait for completion
  return true;
}

void MessageReader::begin(const os::RingRecord& record) {
  WireMessage wire;
  std::memcpy(&wire, record.data, sizeof wire);
  const unsigned char* next = record.data + sizeof wire;
  notify_ = {};
  if ((wire.flags & kHasNotify) != 0) {
    std::memcpy(&notify_, next, sizeof notify_);
    next += sizeof notify_;
  }
  const unsigned char* header = next;
  const unsigned char* payload = header + padded(wire.header_bytes);
  const bool in_place = (wire.flags & kInPlace) != 0;
  const size_t part =
      in_place || wire.payload_bytes == 0 ? 0 : record.bytes - (payload - record.data);

  ++messages_;
  payload_bytes_ = wire.payload_bytes;
  stored_ = 0;
  delivery_ = {};
  const mob_message_t message{source_,
                              header,
                              wire.header_bytes,
                              wire.payload_bytes,
                              part == wire.payload_bytes ? payload : nullptr,
                              token_of(source_)};
  if (const Handler* handler = handlers_.find(wire.id)) [[likely]] {
    const HandlerScope scope;
    const TraceScope trace(engine_.transfers().timeline(), "header handler");
    handler->function(&message, handler->argument, &delivery_);
  } else {
    base::log(base::LogLevel::kError, "a message of rank %d names handler %u, which is not there",
              source_, static_cast<unsigned>(wire.id));
  }
  if (in_place) {
    uintptr_t address = 0;
    std::memcpy(&address, payload, sizeof address);
    take_in_place(address);
  } else {
    store(payload, part);
  }
}

void MessageReader::go_on(const os::RingRecord& record) { store(record.data, record.bytes); }

void MessageReader::store(const unsigned char* part, size_t bytes) {
  if (delivery_.payload != nullptr && bytes != 0) {
    std::memcpy(static_cast<unsigned char*>(delivery_.payload) + stored_, part, bytes);
  }
  stored_ += bytes;
  if (stored_ == payload_bytes_) finish();
}

// From the sender, which may not free or change the memory before we have answered.
bool MessageReader::copy_in_place(uintptr_t address) {
  auto* to = static_cast<unsigned char*>(delivery_.payload);
  if (to == nullptr) return true;
  const void* from = reinterpret_cast<const void*>(address);
  if (!engine_.is_same_process(source_)) from = engine_.reach(source_, from, payload_bytes_);
  if (from != nullptr) {
    transport::copy(to, from, payload_bytes_);
    return true;
  }
  if (!engine_.transfers().uses_cma()) return false;
  // The kernel stops silently at 2 GiB less a page.
  constexpr size_t kMost = size_t{1} << 30;
  for (size_t done = 0; done < payload_bytes_; done += kMost) {
    const size_t part = std::min(kMost, payload_bytes_ - done);
    if (!transport::cma_copy(engine_.pid_of(source_), address + done, to + done, part, false)) {
      return false;
    }
  }
  return true;
}

void MessageReader::take_in_place(uintptr_t address) {
  const bool taken = copy_in_place(address);
  // Release pairs with the acquire in Outbox::is_answered(): we are done reading.
  (taken ? head_.taken : head_.refused).store(messages_, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Pairs with the fence in Outbox::await_answer().
  if (head_.starved.load(std::memory_order_relaxed) != 0) {
    head_.starved.store(0, std::memory_order_relaxed);
    Progress::wake_after_fence(engine_.process(engine_.host_index(source_)).doorbell);
  } else {
    engine_.ring_after_fence(source_);
  }
  if (taken) finish();
}

void MessageReader::finish() {
  if (delivery_.handler != nullptr) {
    const HandlerScope scope;
    const TraceScope trace(engine_.transfers().timeline(), "completion handler");
    delivery_.handler(token_of(source_), delivery_.argument);
  }
  if (delivery_.counter != nullptr) count(engine_.rank(), delivery_.counter);
  if (notify_.target_counter != nullptr) count(engine_.rank(), notify_.target_counter);
  // Release pairs with the acquire in Outbox::flush(): what the handlers wrote comes before.
  head_.completed.store(messages_, std::memory_order_release);
  if (notify_.completion_counter != nullptr) count(source_, notify_.completion_counter);
}

void MessageReader::count(mob_rank_t owner, mob_counter_t counter) {
  if (!engine_.is_here(owner)) {
    // Nobody is left to tell if it is gone.
    static_cast<void>(engine_.remote().count(owner, counter));
    return;
  }
  // Senders' counters were looked at when they sent; one that was freed since is counted nowhere.
  mob_counter* found = engine_.counters().find("a message", owner, counter);
  if (found != nullptr) engine_.counters().count(owner, *found);
}

}  // namespace mobius::engine
