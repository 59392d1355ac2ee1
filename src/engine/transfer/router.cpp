// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfer/router.h"

#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/rma/path_costs.h"
#include "schedule/operation.h"
#include "transport/cma/cma.h"
#include "transport/shm/copy_peer.h"
#include "transport/shm/element.h"
#include "transport/shm/kernels.h"
#include "transport/shm/move.h"

namespace mobius::engine {

using base::fail;
using transport::Shape;

namespace {

template <typename T>
T changed(const WordUpdate& update, T* word) {
  const auto value = static_cast<T>(update.value);
  switch (update.what) {
    case MOB_RMW_ADD_:
      return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_AND_:
      return __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_OR_:
      return __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_XOR_:
      return __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_SWAP_:
      return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
    case MOB_RMW_COMPARE_SWAP_:
      break;
  }
  auto held = static_cast<T>(update.expected);
  __atomic_compare_exchange_n(word, &held, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return held;
}

template <typename T>
void apply(const WordUpdate& update) {
  const T old = changed(update, static_cast<T*>(update.word));
  std::memcpy(update.old, &old, sizeof old);
}

// Calls visit(address, bytes) for what must lie in one piece of the target's memory: a box with its
// gaps, each piece, each span. Stops, with false, when visit() says so.
template <typename Visit>
bool for_each_part(const Shape& shape, Visit visit) {
  switch (shape.kind) {
    case MOB_CONTIGUOUS:
    case MOB_STRIDED:
      return visit(reinterpret_cast<const void*>(shape.lowest), shape.highest - shape.lowest);
    case MOB_PIECES:
      for (size_t i = 0; i < shape.piece_count; ++i) {
        if (!visit(shape.remotes[i], shape.run_bytes)) return false;
      }
      return true;
    case MOB_SPANS:
      for (size_t i = 0; i < shape.remote_span_count; ++i) {
        const mob_span_t& span = shape.remote_spans[i];
        if (span.bytes != 0 && !visit(span.address, span.bytes)) return false;
      }
      return true;
  }
  return false;
}

}  // namespace

mob_status_t Router::open() {
  if (const mob_status_t status = hooks_.open(engine_, *this)) return status;
  if (hooks_.empty()) return MOB_OK;
  first_ = &hooks_.first();
  Completion::stay_out_of_line(true);
  return MOB_OK;
}

void Router::close(bool report) {
  if (!hooked()) return;
  first_ = this;
  Completion::stay_out_of_line(false);
  hooks_.close(report);
}

mob_status_t Router::run(const char* call, const mob_transfer_t& transfer, Mode mode,
                            uint64_t* handle) {
  Operation operation;
  operation.mode = mode;
  operation.handle = handle;
  if (const mob_status_t status = prepare(call, transfer, &operation)) return status;
  if (mode == Mode::kHandle) *handle = MOB_HANDLE_DONE;
  return first_->carry(operation);
}

// Checks it and finds the way that it goes.
mob_status_t Router::prepare(const char* call, const mob_transfer_t& transfer,
                                Operation* operation) {
  operation->call = call;
  operation->transfer = &transfer;
  if (const mob_status_t status = transport::normalise(call, transfer, &operation->shape)) {
    return status;
  }
  if (const mob_status_t status = completion_signals_.resolve(call, transfer, &operation->notice)) {
    return status;
  }
  if (!engine_.is_here(transfer.rank)) {
    operation->route.path = Path::kNetwork;  // what is wrong with the target's side it finds out
  } else if (operation->notice.by_target ||
             !reach_all(transfer.rank, operation->shape, &operation->route.delta)) {
    if (!is_exposed(transfer.rank, operation->shape)) {
      return explain(call, transfer.rank, operation->shape);
    }
    find_route(transfer, operation->shape, operation->notice, &operation->route);
  }
  return MOB_OK;
}

bool Router::copy_and_tell(const Telling& telling) {
  const mob_rank_t rank = telling.rank;
  if (static_cast<uint32_t>(rank) >= static_cast<uint32_t>(mob_size_) || hooked()) return false;
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(telling.signal) |
                               reinterpret_cast<uintptr_t>(telling.origin_word) |
                               reinterpret_cast<uintptr_t>(telling.completion_word);
  if (misaligned % sizeof(uint64_t) != 0) return false;
  const auto find = [&](void* remote, size_t bytes) {
    return target_covers(rank, remote, bytes) ? remote : engine_.reach(rank, remote, bytes);
  };
  uint64_t* word = nullptr;
  if (telling.signal != nullptr) {
    word = static_cast<uint64_t*>(find(telling.signal, sizeof(uint64_t)));
    if (word == nullptr) return false;
  }
  if (telling.bytes != 0) {
    void* here = find(telling.remote, telling.bytes);
    if (here == nullptr || telling.local == nullptr) return false;
    if (telling.is_put) {
      transport::copy_to_peer(here, telling.local, telling.bytes);
    } else {
      transport::copy_from_peer(telling.local, here, telling.bytes);
    }
  }
  if (word != nullptr) completion_signals_.signal(rank, word, telling.signal_value, telling.signal_op);
  completion_signals_.count_own(telling.origin_word, telling.completion_word);
  return true;
}

bool Router::run_rows(const mob_transfer_t& transfer) {
  // So that no size overflows, and nothing would be gained by streaming.
  constexpr size_t kMostBytes = size_t{64} << 10;
  constexpr size_t kLongestStride = size_t{1} << 24;
  if (transfer.shape != MOB_STRIDED || transfer.dimensions != 1 || counts(transfer) ||
      transfer.signal != nullptr || hooked() || transfer.counts == nullptr ||
      transfer.remote_strides == nullptr || transfer.local_strides == nullptr ||
      transfer.local == nullptr ||
      static_cast<uint32_t>(transfer.rank) >= static_cast<uint32_t>(mob_size_)) {
    return false;
  }
  const size_t bytes = transfer.bytes;
  const size_t count = *transfer.counts;
  const auto remote_stride = static_cast<size_t>(*transfer.remote_strides);
  const auto local_stride = static_cast<size_t>(*transfer.local_strides);
  if (bytes - 1 >= transport::kRowBytesMax || count - 1 >= kMostBytes / bytes ||
      remote_stride - bytes > kLongestStride || local_stride - bytes > kLongestStride) {
    return false;
  }
  const size_t reach = (count - 1) * remote_stride + bytes;
  void* const there = target_covers(transfer.rank, transfer.remote, reach)
                          ? transfer.remote
                          : engine_.reach(transfer.rank, transfer.remote, reach);
  if (there == nullptr) return false;
  auto* const remote = static_cast<char*>(there);
  auto* const local = static_cast<char*>(transfer.local);
  const auto far = static_cast<ptrdiff_t>(remote_stride);
  const auto near = static_cast<ptrdiff_t>(local_stride);
  switch (transfer.kind) {
    case MOB_PUT:
      transport::kernels().move_rows({remote, local, far, near, count}, bytes);
      return true;
    case MOB_GET:
      transport::kernels().move_rows({local, remote, near, far, count}, bytes);
      return true;
    case MOB_ACCUMULATE: {
      transport::ElementOp element;
      if (!transport::find_element_op(transfer.op, transfer.type, &element) ||
          bytes % element.bytes != 0 || remote_stride % element.alignment != 0 ||
          (transfer.scale != nullptr && transfer.op != MOB_SUM)) {
        return false;
      }
      return engine_.accumulate_locks().accumulate_few(
          engine_.host_index(transfer.rank), reinterpret_cast<uintptr_t>(transfer.remote), reach,
          {remote, local, far, near, count}, bytes / element.bytes,
          {transfer.type, transfer.op, transfer.scale, nullptr}, element);
    }
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return false;
}

bool Router::accumulate_few(mob_rank_t rank, void* remote, const void* local, size_t count,
                               const transport::Combination& what) {
  transport::ElementOp element;
  if (static_cast<uint32_t>(rank) >= static_cast<uint32_t>(mob_size_) || hooked() ||
      local == nullptr || count - 1 >= transport::kLockBlockBytes ||
      !transport::find_element_op(what.op, what.type, &element)) {
    return false;
  }
  const size_t bytes = count * element.bytes;
  void* here = target_covers(rank, remote, bytes) ? remote : engine_.reach(rank, remote, bytes);
  return here != nullptr && engine_.accumulate_locks().accumulate_few(
                                engine_.host_index(rank), reinterpret_cast<uintptr_t>(remote),
                                bytes, transport::one_row(here, local), count, what, element);
}

void Router::perform(const mob_transfer_t& transfer, const Shape& shape, ptrdiff_t delta) {
  if (transfer.kind == MOB_PUT || transfer.kind == MOB_GET) {
    transport::move(shape, delta, transfer.kind == MOB_PUT);
  } else {
    const mob_rank_t host_index = engine_.host_index(transfer.rank);
    const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
    // One fetched integer is an update of a word.
    if (fetches && shape.kind == MOB_CONTIGUOUS && transport::is_integer(transfer.type) &&
        shape.total_bytes == transport::element_bytes(transfer.type)) {
      engine_.accumulate_locks().admit_word(host_index, shape.lowest);
    }
    engine_.accumulate_locks().accumulate(
        host_index, shape, delta,
        {transfer.type, transfer.op, transfer.scale, fetches ? transfer.fetched : nullptr});
  }
}

// The way to memory of a target that this process has not mapped, or not all of it.
void Router::find_route(const mob_transfer_t& transfer, const Shape& shape, const Notice& notice,
                           Route* route) {
  if (engine_.is_same_process(transfer.rank)) {
    route->delta = 0;
    return;
  }
  const bool is_box = shape.kind == MOB_CONTIGUOUS || shape.kind == MOB_STRIDED;
  route->may_read_gaps = is_box && engine_.exposures().covers(transfer.rank, shape.lowest,
                                                              shape.highest - shape.lowest);
  const size_t cma_ns = notice.by_target || !kernel_copy_.allowed(transfer.rank)
                            ? SIZE_MAX
                            : cma_time(transfer.kind, shape, route->may_read_gaps);
  route->path =
      cma_ns <= kServiceNs + shape.total_bytes / kStageBytesPerNs ? Path::kCma : Path::kMessage;
  // Where the kernel reads gaps, it copies those as well.
  const bool reads_gaps = transfer.kind == MOB_GET && shape.kind == MOB_STRIDED &&
                          cma_ns < transport::cma_put_pieces(shape) * kPieceNs;
  const size_t copied = reads_gaps ? shape.highest - shape.lowest : shape.total_bytes;
  route->calls = cma_ns > kCallNs || cma_ns + copied / kKernelBytesPerNs > kCallNs;
}

mob_status_t Router::carry(const Operation& operation) {
  using enum Delegation::Outcome;
  switch (operation.route.path) {
    case Path::kDirect:
      perform(*operation.transfer, operation.shape, operation.route.delta);
      completion_signals_.announce(*operation.transfer, operation.notice);
      return MOB_OK;
    case Path::kCma: {
      if (exposed_batch_.takes(operation)) return exposed_batch_.record(operation);
      issue_exposed();
      const Delegation::Stay stay(engine_.delegation());
      if (is_attended_stretch(operation)) {
        const Shape& shape = operation.shape;
        const mob_transfer_t& transfer = *operation.transfer;
        if (copy_attended(transfer.rank, shape.lowest, shape.local, shape.total_bytes,
                          transfer.kind == MOB_PUT)) {
          completion_signals_.announce(transfer, operation.notice);
          return MOB_OK;
        }
      }
      return ask_waiting_target(operation) == kDone ? MOB_OK : carry_by_cma(operation);
    }
    case Path::kMessage: {
      issue_exposed();
      // Behind what the target was asked to do by message and has not done: a get would not see
      // what was put there before it.
      if (engine_.completion().is_awaited(operation.transfer->rank)) break;
      const Delegation::Stay stay(engine_.delegation());
      const Delegation::Outcome outcome = ask_waiting_target(operation);
      if (outcome == kDone) return MOB_OK;
      const bool copies =
          operation.transfer->kind == MOB_PUT || operation.transfer->kind == MOB_GET;
      if (outcome == kNobodyCame && copies && kernel_copy_.allowed(operation.transfer->rank)) {
        return carry_by_cma(operation);
      }
      break;
    }
    case Path::kNetwork:
      if (mob_status_t status{}; engine_.lazy_lock().takes(operation, &status)) {
        return status;
      }
      if (engine_.scheduler().takes(operation)) return engine_.scheduler().record(operation);
      if (mob_status_t status{}; engine_.scheduler().fetch(operation, &status)) return status;
      engine_.scheduler().issue(operation.transfer->rank);
      engine_.progress().note_start();
      break;
  }
  return engine_.am_rma().run(operation.call, *operation.transfer, operation.shape, operation.mode,
                              operation.handle);
}

mob_status_t Router::fence() {
  constexpr const char* kCall = "mob_fence";
  if (const mob_status_t status = engine_.lazy_lock().complete(kCall, Completion::kAll)) {
    return status;
  }
  return first_->order();
}

// What is done on the spot is in order as it is, and so is what goes to other hosts, all of it in
// one stream. What a host-mate was asked to do is waited for: a later put on another way would
// overtake it.
mob_status_t Router::order_for(const char* call) {
  issue_exposed();
  engine_.scheduler().fence();
  return engine_.completion().order(call);
}

bool Router::copy_covered(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes,
                             bool put) {
  if (static_cast<uint32_t>(rank) >= static_cast<uint32_t>(mob_size_) ||
      !engine_.exposures().covers(rank, remote, bytes) || engine_.is_same_process(rank) ||
      !kernel_copy_.allowed(rank)) {
    return false;
  }
  const Delegation::Stay stay(engine_.delegation());
  if (bytes <= Delegation::kMostBytes && engine_.delegation().is_attended(rank)) {
    return copy_attended(rank, remote, local, bytes, put);
  }
  return transport::cma_copy(engine_.pid_of(rank), remote, local, bytes, put) == 0;
}

// By the target, or by the kernel, if that has been faster for about as many bytes.
bool Router::copy_attended(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes,
                              bool put) {
  ExposedTuning::Turn turn;
  if (bytes >= ExposedTuning::kLeastBytes) turn = exposed_ways_.begin(put, bytes);
  const uint64_t begin_ns = turn.is_timed ? os::now_ns() : 0;
  const bool by_desk = turn.by_desk && engine_.delegation().copy(rank, remote, local, bytes, put);
  if (!by_desk && transport::cma_copy(engine_.pid_of(rank), remote, local, bytes, put) != 0) {
    return false;
  }
  if (turn.is_timed && by_desk == turn.by_desk) {
    exposed_ways_.add(put, bytes, by_desk, os::now_ns() - begin_ns);
  }
  return true;
}

// Whether copy_attended() may do it.
bool Router::is_attended_stretch(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  return (transfer.kind == MOB_PUT || transfer.kind == MOB_GET) &&
         operation.shape.kind == MOB_CONTIGUOUS &&
         operation.shape.total_bytes - 1 < Delegation::kMostBytes && !operation.notice.by_target &&
         engine_.delegation().is_attended(transfer.rank);
}

// About how long the kernel's way takes beside the bytes, in nanoseconds; SIZE_MAX if there is
// none.
size_t Router::cma_time(mob_kind_t kind, const Shape& shape, bool may_read_gaps) {
  if (kind == MOB_PUT) return transport::cma_put_pieces(shape) * kPieceNs;
  if (kind == MOB_GET) return transport::cma_get_pieces(shape, may_read_gaps) * kPieceNs;
  return SIZE_MAX;
}

// What the target does itself while it waits.
Delegation::Outcome Router::ask_waiting_target(const Operation& operation) {
  using enum Delegation::Outcome;
  const mob_transfer_t& transfer = *operation.transfer;
  const bool put = transfer.kind == MOB_PUT;
  if (operation.notice.by_target || operation.shape.total_bytes == 0) return kNotForDesk;
  const Delegation::Outcome outcome =
      put || transfer.kind == MOB_GET
          ? engine_.delegation().move(transfer.rank, operation.shape, put, operation.route.calls)
          : engine_.delegation().combine(transfer, operation.shape);
  if (outcome == kDone) completion_signals_.announce(transfer, operation.notice);
  return outcome;
}

mob_status_t Router::carry_by_cma(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  const pid_t pid = engine_.pid_of(transfer.rank);
  const int error = transfer.kind == MOB_PUT
                        ? transport::cma_put(pid, operation.shape)
                        : transport::cma_get(pid, operation.shape, operation.route.may_read_gaps);
  switch (error) {
    case 0:
      completion_signals_.announce(transfer, operation.notice);
      return MOB_OK;
    case EPERM:
    case ENOSYS:
      kernel_copy_.refuse();
      return engine_.am_rma().run(operation.call, transfer, operation.shape, operation.mode,
                                  operation.handle);
    case ESRCH:
      return fail(MOB_ERR_PEER, "%s: rank %d died", operation.call, transfer.rank);
    case EFAULT:
      return fail(MOB_ERR_RANGE,
                  "%s: rank %d exposed memory at %p, but it is not mapped, or may not be %s",
                  operation.call, transfer.rank, static_cast<const void*>(operation.shape.remote),
                  transfer.kind == MOB_PUT ? "written" : "read");
    default:
      return base::fail_errno(MOB_ERR_SYSTEM, error,
                              "%s: the kernel did not copy from or to rank %d", operation.call,
                              transfer.rank);
  }
}

mob_status_t Router::put_exposed(mob_rank_t rank, const mob_span_t* remote,
                                    const mob_span_t* local, size_t count) {
  if (kernel_copy_.allowed(rank)) {
    const auto first = reinterpret_cast<uintptr_t>(remote->address);
    if (count == 1 && copy_covered(rank, first, local->address, remote->bytes, true)) {
      return MOB_OK;
    }
    Shape all;
    all.kind = MOB_SPANS;
    all.remote_spans = remote;
    all.local_spans = local;
    all.remote_span_count = all.local_span_count = count;
    for (size_t i = 0; i < count; ++i) all.total_bytes += remote[i].bytes;
    if (engine_.delegation().move(rank, all, true, false) == Delegation::Outcome::kDone) return MOB_OK;
    if (transport::cma_put(engine_.pid_of(rank), all) == 0) return MOB_OK;
  }
  // Again one by one, which shows whose fault it is and does the others.
  mob_status_t first = MOB_OK;
  for (size_t i = 0; i < count; ++i) {
    mob_transfer_t transfer{};
    transfer.kind = MOB_PUT;
    transfer.rank = rank;
    transfer.remote = remote[i].address;
    transfer.local = local[i].address;
    transfer.bytes = remote[i].bytes;
    Operation operation;
    operation.call = "a put that was only started";  // by whichever call
    operation.transfer = &transfer;
    operation.mode = Mode::kImplicit;
    mob_status_t status = transport::normalise(operation.call, transfer, &operation.shape);
    if (status == MOB_OK) status = carry_by_cma(operation);
    if (first == MOB_OK) first = status;
  }
  return first;
}

bool Router::is_exposed(mob_rank_t rank, const Shape& shape) {
  ListedRange known{};  // most lists stay in one range
  const auto covered = [&](const void* remote, size_t bytes) {
    return engine_.exposures().covers(rank, reinterpret_cast<uintptr_t>(remote), bytes, &known) ||
           engine_.reach(rank, remote, bytes) != nullptr;
  };
  if (shape.total_bytes == 0) return true;
  return for_each_part(shape, covered);
}

mob_status_t Router::run_on_own_memory(const mob_transfer_t& transfer, const Shape& shape) {
  Notice notice;
  const mob_status_t status = completion_signals_.resolve("a served transfer", transfer, &notice);
  if (status != MOB_OK) return status;
  if (notice.by_target) notice.signal = transfer.signal;
  perform(transfer, shape, 0);
  completion_signals_.announce(transfer, notice);
  return MOB_OK;
}

// A word that only the target's process has mapped. Whoever sees it changed finds there what came
// before.
mob_status_t Router::update_by_target(const WordUpdate& update) {
  if (const mob_status_t status = order_for(update.call)) return status;
  if (update.what == MOB_RMW_COMPARE_SWAP_) {
    if (!engine_.is_here(update.rank)) {
      const mob_status_t status = engine_.lazy_lock().gain(update.call);
      if (status != MOB_OK) return status;
      engine_.scheduler().issue(update.rank);
    }
    uint64_t held = 0;
    if (engine_.is_here(update.rank) &&
        engine_.delegation().compare_swap(update.rank, update.remote, update.bytes, update.expected,
                                    update.value, &held) == Delegation::Outcome::kDone) {
      std::memcpy(update.old, &held, update.bytes);
      return MOB_OK;
    }
    const mob_status_t status =
        engine_.am_rma().compare_swap(update.call, update.rank, update.remote, update.bytes,
                                      update.expected, update.value, &held);
    if (status == MOB_OK) std::memcpy(update.old, &held, update.bytes);
    return status;
  }
  constexpr mob_op_t kOps[] = {MOB_SUM, MOB_BAND, MOB_BOR, MOB_BXOR, MOB_REPLACE};
  uint64_t operand = update.value;  // its low bytes come first
  mob_transfer_t transfer{};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.rank = update.rank;
  transfer.remote = update.remote;
  transfer.local = &operand;
  transfer.bytes = update.bytes;
  transfer.type = update.bytes == 8 ? MOB_UINT64 : MOB_UINT32;
  transfer.op = kOps[update.what];
  transfer.fetched = update.old;
  // It has met the hooks as an update.
  Operation operation;
  if (const mob_status_t status = prepare(update.call, transfer, &operation)) return status;
  return carry(operation);
}

mob_status_t Router::update(const WordUpdate& update) {
  if (update.word == nullptr) return update_by_target(update);
  engine_.accumulate_locks().admit_word(engine_.host_index(update.rank),
                               reinterpret_cast<uintptr_t>(update.remote));
  if (update.bytes == 8) {
    apply<uint64_t>(update);
  } else {
    apply<uint32_t>(update);
  }
  return MOB_OK;
}

// Whether all of the target's bytes are memory that this process has mapped, and by how much their
// addresses differ here.
bool Router::reach_all(mob_rank_t rank, const Shape& shape, ptrdiff_t* delta) {
  if (shape.total_bytes == 0) return true;
  const auto reaches = [&](const void* remote, size_t bytes) {
    // Lists name one part again and again: what is remembered of it is less than half the work.
    if (target_covers(rank, remote, bytes)) {
      *delta = 0;
      return true;
    }
    auto* here = static_cast<char*>(engine_.reach(rank, remote, bytes));
    if (here == nullptr) return false;
    *delta = here - static_cast<const char*>(remote);
    return true;
  };
  const bool is_list = shape.kind == MOB_PIECES || shape.kind == MOB_SPANS;
  // Mostly all that a list names lies in one part: one look instead of one per piece.
  if (is_list && shape.highest != 0 &&
      reaches(reinterpret_cast<const void*>(shape.lowest), shape.highest - shape.lowest)) {
    return true;
  }
  return for_each_part(shape, reaches);
}

mob_status_t Router::explain(const char* call, mob_rank_t rank, const Shape& shape) {
  mob_status_t status = MOB_OK;
  for_each_part(shape, [&](const void* remote, size_t bytes) {
    if (engine_.reach(rank, remote, bytes) != nullptr ||
        engine_.exposures().covers(rank, reinterpret_cast<uintptr_t>(remote), bytes)) {
      return true;
    }
    status = engine_.explain_unreachable(call, rank, remote, bytes);
    return false;
  });
  return status;
}

}  // namespace mobius::engine
