// SPDX-License-Identifier: BSD-3-Clause
#include "engine/request/batch_server.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "engine/message/message.h"
#include "engine/network/link.h"
#include "engine/request/am_rma.h"
#include "engine/rma/local_execute.h"
#include "schedule/wire.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;
using schedule::Arrived;
using schedule::Kind;

mob_status_t makes_no_sense() { return fail(MOB_ERR_SYSTEM, "a packed message makes no sense"); }

// Writes one row. Aligned values are written whole (see mob_put8()), and after everything written
// before (for a fence between two of them).
void write_row(unsigned char* to, const unsigned char* from, size_t bytes) {
  const auto store = [&]<typename T>(T value) {
    std::memcpy(&value, from, sizeof value);
    if (reinterpret_cast<uintptr_t>(to) % sizeof value == 0) [[likely]] {
      __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELEASE);
    } else {
      std::memcpy(to, &value, sizeof value);
    }
  };
  switch (bytes) {
    case 8:
      return store(uint64_t{});
    case 4:
      return store(uint32_t{});
    case 2:
      return store(uint16_t{});
    case 1:
      return store(uint8_t{});
    default:
      transport::copy(to, from, bytes);
  }
}

void read_row(unsigned char* to, const unsigned char* from, size_t bytes) {
  const auto load = [&]<typename T>(T value) {
    if (reinterpret_cast<uintptr_t>(from) % sizeof value == 0) [[likely]] {
      value = __atomic_load_n(reinterpret_cast<const T*>(from), __ATOMIC_ACQUIRE);
    } else {
      std::memcpy(&value, from, sizeof value);
    }
    std::memcpy(to, &value, sizeof value);
  };
  switch (bytes) {
    case 8:
      return load(uint64_t{});
    case 4:
      return load(uint32_t{});
    case 2:
      return load(uint16_t{});
    case 1:
      return load(uint8_t{});
    default:
      transport::copy(to, from, bytes);
  }
}

// Whether all rows lie between two addresses. Strides come from the network, so their sums may
// overflow.
bool lies_between(const Arrived& piece, uint64_t lowest, uint64_t highest) {
  const auto row_does = [&](uint64_t row) {
    return row >= lowest && row <= highest && piece.row_bytes <= highest - row;
  };
  if (piece.offsets != nullptr) {
    bool all_do = true;
    piece.for_rows([&](uint64_t row) { all_do &= row_does(row); });
    return all_do;
  }
  int64_t reach = 0;
  uint64_t last = 0;
  return !__builtin_mul_overflow(piece.stride, int64_t{piece.rows} - 1, &reach) &&
         !__builtin_add_overflow(piece.remote, reach, &last) && row_does(piece.remote) &&
         row_does(last);
}

}  // namespace

// A batch whose pieces arrive in several records.
struct BatchServer::Whole {
  BatchServer* self;
  mob_rank_t origin;
  BatchRequest request;
  size_t count;
  std::unique_ptr<unsigned char[]> bytes;
};

void BatchServer::open() {
  services_.messages.register_internal(
      InternalHandler::kPack,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        static_cast<BatchServer*>(self)->serve(*message, delivery);
      },
      this);
}

void BatchServer::serve(const mob_message_t& message, mob_delivery_t* delivery) {
  BatchRequest request{};
  if (message.header_bytes != sizeof request) return;
  std::memcpy(&request, message.header, sizeof request);
  if (message.payload != nullptr || message.payload_bytes == 0) {
    serve_pieces(message.source, request, static_cast<const unsigned char*>(message.payload),
                 message.payload_bytes);
    return;
  }
  // Without memory to keep it, the batch is refused like a malformed one.
  std::unique_ptr<unsigned char[]> kept = make_batch_buffer(message.payload_bytes);
  if (kept == nullptr) {
    request.answer_bytes = UINT64_MAX;
    return serve_pieces(message.source, request, nullptr, 0);
  }
  auto whole = std::make_unique<Whole>(
      Whole{this, message.source, request, message.payload_bytes, std::move(kept)});
  delivery->payload = whole->bytes.get();
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Whole> all(static_cast<Whole*>(argument));
    all->self->serve_pieces(all->origin, all->request, all->bytes.get(), all->count);
  };
  delivery->argument = whole.release();
}

void BatchServer::serve_pieces(mob_rank_t origin, const BatchRequest& request,
                               const unsigned char* bytes, size_t count) {
  const Done done = carry_out(origin, request, bytes, count, true);
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kPacked);
  message.header = &done.reply;
  message.header_bytes = BatchReply::bytes(done.reply.status);
  message.payload = done.data.get();
  message.payload_bytes = done.bytes;
  // If the origin is lost, nobody needs the answer.
  static_cast<void>(services_.messages.post("an answer", origin, message));
}

// After an error the other operations are still carried out, because they are independent. Merged
// operations count as one.
BatchServer::Done BatchServer::carry_out(mob_rank_t origin, const BatchRequest& request,
                                         const unsigned char* bytes, size_t count, bool may_tell) {
  Done done;
  BatchReply& reply = done.reply;
  std::unique_ptr<unsigned char[]>& answer = done.data;
  reply.id = request.id;
  const auto note = [&](mob_status_t status) {
    if (status != MOB_OK && reply.status == MOB_OK) reply.refuse(status);
  };
  size_t answered = 0;
  const bool is_sane = request.answer_bytes <= kMostBatchBytes && request.highest >= request.lowest;
  if (is_sane && request.answer_bytes != 0) {
    answer.reset(new (std::nothrow) unsigned char[request.answer_bytes]());
  }
  if (!is_sane) {
    note(makes_no_sense());
  } else if (request.answer_bytes != 0 && answer == nullptr) {
    note(fail(MOB_ERR_MEMORY, "it has no memory left"));
  } else {
    // Most batches lie within one region: one check instead of one per piece.
    const bool is_one = request.highest != request.lowest &&
                        am_rma_.check_own(reinterpret_cast<void*>(request.lowest),
                                          request.highest - request.lowest, true) == MOB_OK;
    schedule::PackReader reader({bytes, count});
    Arrived piece;
    while (reader.next(&piece)) {
      if (piece.kind == Kind::kTell && !may_tell) {
        note(makes_no_sense());
        break;
      }
      const size_t data = is_answered_with_data(piece.kind) ? piece.bytes() : 0;
      if (data > request.answer_bytes - answered) {
        note(makes_no_sense());
        break;
      }
      const bool is_checked = is_one && lies_between(piece, request.lowest, request.highest);
      if (is_checked || piece.rows == 1) {
        note(carry_out(origin, piece, is_checked, answer.get() + answered));
      } else {
        // Rows are independent operations, too.
        for (uint32_t row = 0; row < piece.rows; ++row) {
          note(carry_out(origin, piece.only(row), false,
                         answer.get() + answered + (data != 0 ? row * piece.row_bytes : 0)));
        }
      }
      answered += data;
    }
    if (!reader.is_whole()) note(makes_no_sense());
  }
  if (answer != nullptr) done.bytes = request.answer_bytes;
  return done;
}

mob_status_t BatchServer::carry_out(mob_rank_t origin, const Arrived& piece, bool is_checked,
                                    unsigned char* answer) {
  switch (piece.kind) {
    case Kind::kPut:
    case Kind::kGet:
      return move(piece, is_checked, answer);
    case Kind::kAccumulate:
    case Kind::kFetch:
      return combine(piece, answer);
    case Kind::kSignal: {
      auto* word = reinterpret_cast<void*>(piece.remote);
      if (const mob_status_t status = am_rma_.check_own(word, sizeof(uint64_t), true)) {
        return status;
      }
      mob_transfer_t transfer{};
      transfer.kind = MOB_PUT;
      transfer.rank = services_.peers.rank();
      transfer.signal = reinterpret_cast<uint64_t*>(piece.remote);
      transfer.signal_value = piece.value;
      transfer.signal_op = static_cast<mob_signal_op_t>(piece.op);
      Link::note_told();
      return services_.executor.serve(transfer, transport::Shape{});
    }
    case Kind::kTell: {
      mob_message_t message{};
      message.source = origin;
      message.header = piece.data;
      message.header_bytes = piece.bytes();
      Link::note_told();
      tells_.serve(message);
      return MOB_OK;
    }
  }
  return makes_no_sense();
}

mob_status_t BatchServer::move(const Arrived& piece, bool is_checked, unsigned char* answer) const {
  if (!is_checked) {
    auto* at = reinterpret_cast<void*>(piece.remote);
    if (const mob_status_t status =
            am_rma_.check_own(at, piece.row_bytes, piece.kind == Kind::kPut)) {
      return status;
    }
  }
  const auto move_rows = [&](auto row_bytes) {
    const unsigned char* from = piece.data;
    if (piece.kind == Kind::kPut) {
      piece.for_rows([&](uint64_t row) {
        write_row(reinterpret_cast<unsigned char*>(row), from, row_bytes);
        from += row_bytes;
      });
    } else {
      piece.for_rows([&](uint64_t row) {
        read_row(answer, reinterpret_cast<const unsigned char*>(row), row_bytes);
        answer += row_bytes;
      });
    }
  };
  // Most batches of many rows move words: a constant size avoids a test for each row.
  if (piece.row_bytes == sizeof(uint64_t)) {
    move_rows(std::integral_constant<size_t, sizeof(uint64_t)>{});
  } else {
    move_rows(piece.row_bytes);
  }
  return MOB_OK;
}

mob_status_t BatchServer::combine(const Arrived& piece, unsigned char* answer) {
  if (piece.bytes() == 0) return MOB_OK;
  // Aligned for every type; the elements in the message are not.
  alignas(16) unsigned char small[256];
  std::unique_ptr<unsigned char[]> large;
  unsigned char* operands = small;
  unsigned char* fetched = nullptr;
  const bool fetches = piece.kind == Kind::kFetch;
  const size_t needed = piece.bytes() * (fetches ? 2 : 1);
  if (needed > sizeof small) {
    large = std::make_unique_for_overwrite<unsigned char[]>(needed);
    operands = large.get();
  }
  if (fetches) fetched = operands + piece.bytes();
  std::memcpy(operands, piece.data, piece.bytes());
  mob_transfer_t transfer{};
  transfer.kind = fetches ? MOB_FETCH_ACCUMULATE : MOB_ACCUMULATE;
  transfer.rank = services_.peers.rank();
  transfer.remote = reinterpret_cast<void*>(piece.remote);
  transfer.local = operands;
  transfer.bytes = piece.bytes();
  transfer.type = static_cast<mob_type_t>(piece.type);
  transfer.op = static_cast<mob_op_t>(piece.op);
  transfer.fetched = fetched;
  transport::Shape shape;
  if (const mob_status_t status = transport::normalise("a served transfer", transfer, &shape)) {
    return status;
  }
  if (const mob_status_t status = am_rma_.check_own(transfer.remote, piece.bytes(), true)) {
    return status;
  }
  const mob_status_t status = services_.executor.serve(transfer, shape);
  if (fetches && status == MOB_OK) std::memcpy(answer, fetched, piece.bytes());
  return status;
}

}  // namespace mobius::engine
