// SPDX-License-Identifier: BSD-3-Clause
#include "inbox.h"

#include <atomic>
#include <cstring>

namespace mobius::armci {
namespace {

// The identifier of ARMCI's active messages; programs use identifiers from 0 on.
constexpr unsigned kHandler = MOB_MAX_HANDLERS - 1;

}  // namespace

Inbox& inbox() {
  static Inbox instance;
  return instance;
}

void Inbox::open(const char* function) {
  check(mob_handler_register(kHandler, on_header, this), function);
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  arrivals_.clear();
}

void Inbox::send(int tag, const void* data, int bytes, int to, const char* function) {
  check_not_negative(bytes, "the number of bytes", function, to);
  check(mob_message_send(to, kHandler, &tag, sizeof tag, data, static_cast<size_t>(bytes), nullptr),
        function, to);
}

void Inbox::on_header(const mob_message_t* message, void* inbox, mob_delivery_t* delivery) {
  auto* self = static_cast<Inbox*>(inbox);
  const std::lock_guard lock(self->mutex_);
  Arrival& arrival = self->arrivals_.emplace_back();
  arrival.inbox = self;
  std::memcpy(&arrival.tag, message->header, sizeof arrival.tag);
  arrival.from = message->source;
  arrival.data.resize(message->payload_bytes);
  delivery->payload = arrival.data.data();
  delivery->handler = on_payload;
  delivery->argument = &arrival;
}

void Inbox::on_payload(mob_token_t, void* argument) {
  auto* arrival = static_cast<Arrival*>(argument);
  Inbox* self = arrival->inbox;
  const std::lock_guard lock(self->mutex_);
  arrival->is_here = true;
  // Release pairs with the acquire of receive(): a receiver that sees the number sees the message.
  std::atomic_ref(self->arrived_).fetch_add(1, std::memory_order_release);
}

bool Inbox::take(int tag, int from, Arrival* arrival) {
  const std::lock_guard lock(mutex_);
  for (auto at = arrivals_.begin(); at != arrivals_.end(); ++at) {
    if (at->tag != tag || (from != kAnyone && at->from != from)) continue;
    // A later message from the same process must not overtake this one.
    if (!at->is_here && from != kAnyone) return false;
    if (!at->is_here) continue;
    *arrival = std::move(*at);
    arrivals_.erase(at);
    return true;
  }
  return false;
}

int Inbox::receive(int tag, void* buffer, int capacity, int* received, int from,
                   const char* function) {
  check_initialised(function);
  check_not_negative(capacity, "the size of the buffer", function, from);
  if (from != kAnyone && (from < 0 || from >= mob_size())) {
    die(function, "process %d is not in 0 ... %d", from, mob_size() - 1);
  }
  Arrival arrival{};
  while (true) {
    const uint64_t seen = std::atomic_ref(arrived_).load(std::memory_order_acquire);
    if (take(tag, from, &arrival)) break;
    check(mob_wait_until_u8(&arrived_, MOB_NE, seen), function, from);
  }
  if (arrival.data.size() > static_cast<size_t>(capacity)) {
    die(function, "process %d: its message with tag %d has %zu bytes, the buffer %d", arrival.from,
        tag, arrival.data.size(), capacity);
  }
  if (!arrival.data.empty()) {
    check_not_null(buffer, "the buffer", function, arrival.from);
    std::memcpy(buffer, arrival.data.data(), arrival.data.size());
  }
  if (received != nullptr) *received = static_cast<int>(arrival.data.size());
  return arrival.from;
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void armci_msg_snd(int tag, void* buffer, int bytes, int to) {
  inbox().send(tag, buffer, bytes, to, "armci_msg_snd");
}

void armci_msg_rcv(int tag, void* buffer, int capacity, int* received, int from) {
  if (from < 0) die("armci_msg_rcv", "process %d is not in 0 ... %d", from, mob_size() - 1);
  inbox().receive(tag, buffer, capacity, received, from, "armci_msg_rcv");
}

int armci_msg_rcvany(int tag, void* buffer, int capacity, int* received) {
  return inbox().receive(tag, buffer, capacity, received, Inbox::kAnyone, "armci_msg_rcvany");
}

int armci_notify(int proc) {
  check(mob_notify(proc), "armci_notify", proc);
  static std::mutex mutex;
  static std::vector<int> sent;
  const std::lock_guard lock(mutex);
  sent.resize(static_cast<size_t>(mob_size()));
  return ++sent[static_cast<size_t>(proc)];
}

int armci_notify_wait(int proc, int* count) {
  uint32_t waited = 0;
  check(mob_notify_wait(proc, &waited), "armci_notify_wait", proc);
  if (count != nullptr) *count = static_cast<int>(waited);
  return 0;
}

}  // extern "C"
