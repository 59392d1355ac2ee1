// SPDX-License-Identifier: BSD-3-Clause

// Arriving messages: header handlers and completion handlers.

#include "messages/messages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "context/context.h"
#include "messages/programs.h"
#include "synchronisation/counters.h"
#include "transfers/vectors.h"

namespace lapi {
namespace {

// A message whose header handler has run, or will run when the message has arrived completely.
struct Arrival {
  Context* context;
  Wire wire;
  WireCounters counters;
  mob_token_t token;
  unsigned source;
  unsigned session;  // of the context
  compl_hndlr_t* handler = nullptr;
  void* argument = nullptr;
  lapi_ret_flags_t where = LAPI_NORMAL;
  // Data to be unpacked, and its destination.
  std::unique_ptr<char[]> staged;
  unsigned long staged_bytes = 0;
  void* buffer = nullptr;
  void* program = nullptr;
  unsigned long program_offset = 0;
  std::unique_ptr<char[]> header;  // the user header of a vector message
};

// Finishes a message: all data has arrived, and no handler is left to run.
void finish(const Arrival& arrival) {
  Context& context = *arrival.context;
  // LAPI_Term() does not wait for ever for a handler.
  if (!context.serving.load(std::memory_order_acquire) || context.session != arrival.session) {
    return;
  }
  count(reinterpret_cast<lapi_cntr_t*>(arrival.counters.target), arrival.source);
  Statistics::add(context.receives_completed, 1);
  if (arrival.counters.completion == 0) return;
  struct {
    Wire wire;
    WireCounters counters;
  } answer{};
  answer.wire = Wire(0, {Form::kCompleted, arrival.wire.handle(), true, 0, 0});
  answer.counters.completion = arrival.counters.completion;
  // If the origin is gone, there is no task to inform.
  static_cast<void>(
      mob_message_reply(arrival.token, kMessageId, &answer, sizeof answer, nullptr, 0, nullptr));
}

void run_handler(const Arrival& arrival) {
  lapi_handle_t handle = arrival.context->handle;
  if (arrival.handler != nullptr) arrival.handler(&handle, arrival.argument);
  finish(arrival);
}

void run_in_thread(void* argument) {
  const std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(argument));
  run_handler(*arrival);
}

void discard(void* argument) { delete static_cast<Arrival*>(argument); }

// The data is in its place.
void complete(std::unique_ptr<Arrival> arrival) {
  if (arrival->handler == nullptr || arrival->where != LAPI_NORMAL) {
    const InHandler inside;
    run_handler(*arrival);
    return;
  }
  CompletionThreads& threads = arrival->context->completions;
  threads.add({run_in_thread, discard, arrival.release()});
}

template <typename Function>
Function* function_of(const Context& context, uint64_t handler) {
  void* found = reinterpret_cast<void*>(handler);
  if (handler < context.addresses.size())
    found = context.addresses[handler].load(std::memory_order_acquire);
  return reinterpret_cast<Function*>(found);
}

// Whether this task has memory at the address of a handler. A system call for each new address.
bool is_mapped(const void* function) {
  static std::array<std::atomic<const void*>, 8> found{};
  const auto address = reinterpret_cast<uintptr_t>(function);
  std::atomic<const void*>& last = found[address / 16 % found.size()];
  if (last.load(std::memory_order_relaxed) == function) return true;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  void* page = reinterpret_cast<void*>(address - address % page_bytes);
  if (mincore(page, 1, &resident) != 0 && errno == ENOMEM) return false;
  last.store(function, std::memory_order_relaxed);
  return true;
}

bool is_missing(Context& context, const void* function, unsigned source) {
  if (function == nullptr) {
    report(context, LAPI_ERR_HDR_HNDLR_NOTSET, INT_ERR, source,
           "a message names a header handler that LAPI_Addr_set() did not set here");
    return true;
  }
  if (is_mapped(function)) return false;
  char text[LAPI_MAX_ERR_STRING];
  std::snprintf(text, sizeof text,
                "a message names a header handler at %p, where this task has no memory: send the "
                "target's address (LAPI_Address_init()), or link the program with -no-pie",
                function);
  report(context, LAPI_ERR_HDR_HNDLR_NOTSET, INT_ERR, source, text);
  return true;
}

// Calls the header handler of a plain message; its answer goes into `info` and `arrival`.
void* call_header_handler(hdr_hndlr_t* function, Arrival& arrival, const void* header,
                          lapi_return_info_t* info) {
  const InHandler inside;
  lapi_handle_t handle = arrival.context->handle;
  unsigned header_bytes = arrival.wire.header_bytes();
  return function(&handle, header_bytes != 0 ? const_cast<void*>(header) : nullptr, &header_bytes,
                  &info->msg_len, &arrival.handler, &arrival.argument);
}

void place_staged(Arrival& arrival, const char* data) {
  if (arrival.program == nullptr) {
    std::memcpy(arrival.buffer, data, arrival.staged_bytes);
  } else {
    scatter(arrival.program, data, arrival.staged_bytes, arrival.program_offset, arrival.buffer);
  }
}

void plain_arrived(mob_token_t, void* argument) {
  std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(argument));
  if (arrival->staged != nullptr) place_staged(*arrival, arrival->staged.get());
  arrival->staged.reset();
  complete(std::move(arrival));
}

void deliver_plain(const mob_message_t& message, const void* header, Arrival& arrival,
                   mob_delivery_t* delivery) {
  Context& context = *arrival.context;
  auto* function = function_of<hdr_hndlr_t>(context, arrival.wire.handler());
  if (is_missing(context, reinterpret_cast<void*>(function), arrival.source)) return;
  lapi_return_info_t info{};
  info.msg_len = message.payload_bytes;
  info.src = arrival.source;
  info.udata_one_pkt_ptr =
      message.payload_bytes != 0 ? const_cast<void*>(message.payload) : nullptr;
  void* buffer = call_header_handler(function, arrival, header, &info);
  arrival.where = info.ret_flags;
  unsigned long bytes = message.payload_bytes;
  if (info.ctl_flags != LAPI_CTL_NORMAL) {
    bytes = 0;
  } else if (bytes != 0 && buffer == nullptr) {
    report(context, LAPI_ERR_HDR_HNDLR_NO_BUFFER, INT_ERR, arrival.source,
           "the data of a message was discarded");
    bytes = 0;
  }
  const bool whole = info.dgsp_handle == nullptr && (info.bytes == 0 || info.bytes >= bytes);
  arrival.buffer = buffer;
  arrival.program = info.dgsp_handle;
  arrival.program_offset = info.recv_offset_dgsp_bytes;
  arrival.staged_bytes = info.bytes != 0 && info.bytes < bytes ? info.bytes : bytes;
  if (bytes == 0 || message.payload != nullptr) {
    if (bytes != 0) place_staged(arrival, static_cast<const char*>(message.payload));
    if (arrival.handler == nullptr || arrival.where != LAPI_NORMAL) {
      const InHandler inside;
      run_handler(arrival);
    } else {
      complete(std::make_unique<Arrival>(std::move(arrival)));
    }
    return;
  }
  auto kept = std::make_unique<Arrival>(std::move(arrival));
  if (whole) {
    delivery->payload = buffer;
  } else {
    kept->staged = std::make_unique<char[]>(message.payload_bytes);
    delivery->payload = kept->staged.get();
  }
  delivery->handler = plain_arrived;
  delivery->argument = kept.release();
}

// A vector message has arrived completely: lengths, then data.
void vector_arrived(std::unique_ptr<Arrival> arrival, const char* packed, const void* header) {
  Context& context = *arrival->context;
  auto* function = function_of<vhdr_hndlr_t>(context, arrival->wire.handler());
  if (is_missing(context, reinterpret_cast<void*>(function), arrival->source)) return;
  std::vector<unsigned long> lengths(arrival->wire.vectors() + 1);
  std::memcpy(lengths.data(), packed, arrival->wire.vectors() * sizeof lengths[0]);
  unsigned long left = 0;
  for (const unsigned long each : lengths) left += each;
  lapi_vec_t* vector = nullptr;
  {
    const InHandler inside;
    lapi_handle_t handle = context.handle;
    unsigned header_bytes = arrival->wire.header_bytes();
    unsigned long* list = lengths.data();
    vector = function(&handle, header_bytes != 0 ? const_cast<void*>(header) : nullptr,
                      &header_bytes, &list, &arrival->handler, &arrival->argument);
  }
  if (vector == nullptr && left != 0) {
    report(context, LAPI_ERR_HDR_HNDLR_NO_BUFFER, INT_ERR, arrival->source,
           "the vectors of a message were discarded");
  } else if (vector != nullptr) {
    if (const int error = check_vector("LAPI_Amsendv", vector, Side::kTarget)) {
      report(context, error, INT_ERR, arrival->source,
             "the vector that a header handler returned is invalid");
    } else {
      const char* from = packed + arrival->wire.vectors() * sizeof lengths[0];
      for (const mob_span_t& span : spans_of(*vector)) {
        const size_t now = span.bytes < left ? span.bytes : left;
        std::memcpy(span.address, from, now);
        from += now;
        left -= now;
      }
    }
  }
  complete(std::move(arrival));
}

void staged_vector_arrived(mob_token_t, void* argument) {
  std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(argument));
  const std::unique_ptr<char[]> packed = std::move(arrival->staged);
  const std::unique_ptr<char[]> header = std::move(arrival->header);
  vector_arrived(std::move(arrival), packed.get(), header.get());
}

void deliver_vector(const mob_message_t& message, const void* header, Arrival& arrival,
                    mob_delivery_t* delivery) {
  auto kept = std::make_unique<Arrival>(std::move(arrival));
  if (message.payload != nullptr || message.payload_bytes == 0) {
    vector_arrived(std::move(kept), static_cast<const char*>(message.payload), header);
    return;
  }
  kept->header = std::make_unique<char[]>(kept->wire.header_bytes() + 1);
  std::memcpy(kept->header.get(), header, kept->wire.header_bytes());
  kept->staged = std::make_unique<char[]>(message.payload_bytes);
  delivery->payload = kept->staged.get();
  delivery->handler = staged_vector_arrived;
  delivery->argument = kept.release();
}

void message_arrived(const mob_message_t* message, void*, mob_delivery_t* delivery) {
  Wire wire;
  WireCounters counters{};
  const char* header = static_cast<const char*>(message->header);
  std::memcpy(&wire, header, sizeof wire);
  header += sizeof wire;
  if (wire.has_counters()) {
    std::memcpy(&counters, header, sizeof counters);
    header += sizeof counters;
  }
  const auto source = static_cast<unsigned>(message->source);
  Context& context = contexts[wire.handle()];
  if (!context.serving.load(std::memory_order_acquire)) return;  // it was terminated
  if (wire.form() == Form::kCompleted) {
    Statistics::add(context.sends_completed, 1);
    count(reinterpret_cast<lapi_cntr_t*>(counters.completion), source);
    return;
  }
  Statistics& statistics = context.statistics_of(source);
  Statistics::add(statistics.received, 1);
  Statistics::add(statistics.bytes_received, message->payload_bytes);
  Arrival arrival{};
  arrival.context = &context;
  arrival.wire = wire;
  arrival.counters = counters;
  arrival.token = message->token;
  arrival.source = source;
  arrival.session = context.session.load(std::memory_order_relaxed);
  try {
    if (wire.form() == Form::kPlain) {
      deliver_plain(*message, header, arrival, delivery);
    } else {
      deliver_vector(*message, header, arrival, delivery);
    }
  } catch (const std::bad_alloc&) {
    report(context, LAPI_ERR_MEMORY_EXHAUSTED, INT_ERR, source, "a message was discarded");
  }
}

}  // namespace

mob_status_t register_messages() {
  return mob_handler_register(kMessageId, message_arrived, nullptr);
}

}  // namespace lapi
