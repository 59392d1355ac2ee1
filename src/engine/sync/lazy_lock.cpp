// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/lazy_lock.h"

#include <vector>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/common/peers.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "engine/remote/remote_objects.h"
#include "engine/request/am_rma.h"
#include "engine/scheduler/append_run.h"
#include "engine/scheduler/scheduler.h"
#include "engine/sync/access.h"
#include "engine/transfer/router.h"
#include "schedule/text.h"
#include "schedule/wire.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;
using schedule::Kind;
using schedule::Policy;

// The most bytes that an operation takes in a message besides its data.
constexpr size_t kBeside = 48;

}  // namespace

// The deferred access of one thread. The thread reuses the object.
struct LazyLock::Kept {
  bool is_open = false;
  Access* access = nullptr;
  mob_rank_t member = 0;
  RemoteLock lock{};
  ClaimMode mode{};
  std::optional<Policy> hint;

  schedule::Costs costs;
  std::shared_ptr<Context> context;  // of the deferred operations
  std::vector<schedule::Operation> operations;
  std::unique_ptr<char[]> store;  // costs.message_bytes long
  size_t stored = 0;
  size_t out = 0;         // the most bytes that the message takes
  size_t in = 0;          // the most bytes that its answer takes
  uint64_t begin_ns = 0;  // of the first operation, if there is a timeline

  schedule::Plan plan;
  std::unique_ptr<unsigned char[]> wire;
};

LazyLock::LazyLock(const SyncServices& services) : services_(services) {}
LazyLock::~LazyLock() = default;

bool LazyLock::may_start(mob_rank_t rank, std::optional<Policy> hint) const {
  // A transfer that a hook holds back could come after the unlock.
  return !in_handler && !services_.router.reorders() &&
         hint.value_or(services_.scheduler.policy_for(rank, 0)) != Policy::kFifo;
}

LazyLock::Kept* LazyLock::find_own() {
  const std::lock_guard lock(mutex_);
  const auto found = by_thread_.find(services_.peers.lock_id());
  return found != by_thread_.end() && found->second->is_open ? found->second.get() : nullptr;
}

mob_status_t LazyLock::start(Access& access, mob_rank_t member, const RemoteLock& lock,
                             ClaimMode mode, std::optional<Policy> hint) {
  size_t bytes = 0;
  if (const mob_status_t status = services_.scheduler.message_bytes(lock.rank, &bytes)) {
    return status;
  }
  Kept* kept = nullptr;
  {
    const std::lock_guard guard(mutex_);
    std::unique_ptr<Kept>& own = by_thread_[services_.peers.lock_id()];
    if (own == nullptr) own = std::make_unique<Kept>();
    kept = own.get();
  }
  if (bytes != kept->costs.message_bytes || kept->store == nullptr) {
    kept->costs.message_bytes = bytes;
    kept->costs.message_ns = 1e9;  // keeps every operation in the message
    kept->store = std::make_unique_for_overwrite<char[]>(bytes);
    kept->wire =
        std::make_unique_for_overwrite<unsigned char[]>(schedule::most_wire_bytes(kept->costs));
  }
  kept->is_open = true;
  kept->access = &access;
  kept->member = member;
  kept->lock = lock;
  kept->mode = mode;
  kept->hint = hint;
  started_.fetch_add(1, std::memory_order_relaxed);
  leave_append_run();
  access.is_deferred();
  Completion::stay_out_of_line(true);  // flushes and fences must check for this access
  return MOB_OK;
}

void LazyLock::close(Kept& kept) {
  kept.is_open = false;
  kept.operations.clear();
  kept.stored = kept.out = kept.in = 0;
  kept.context.reset();
  started_.fetch_sub(1, std::memory_order_relaxed);
  Completion::stay_out_of_line(false);
}

bool LazyLock::may_keep(const Kept& kept, const Operation& operation) const {
  const mob_transfer_t& transfer = *operation.transfer;
  const transport::Shape& shape = operation.shape;
  const auto remote = reinterpret_cast<uintptr_t>(shape.remote);
  const Policy policy = kept.hint.value_or(services_.scheduler.policy_for(transfer.rank, remote));
  const size_t bytes = shape.total_bytes;
  if (policy == Policy::kFifo || shape.kind != MOB_CONTIGUOUS || bytes == 0 ||
      bytes > schedule::most_packed_bytes(kept.costs) || transfer.signal != nullptr ||
      counts(transfer) || operation.mode == Mode::kHandle ||
      services_.am_rma.is_bulk(transfer, shape, operation.mode)) {
    return false;
  }
  const bool is_get = transfer.kind == MOB_GET;
  const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
  const bool combines = fetches || transfer.kind == MOB_ACCUMULATE;
  if (combines && (transfer.scale != nullptr || transfer.op == MOB_NO_OP)) return false;
  if (kept.operations.empty()) return true;
  // An awaited get or fetch reports its error from its own call, so no other operation may travel
  // with it.
  if ((is_get || fetches) && operation.mode == Mode::kBlocking) return false;
  return services_.completion.is_current(*kept.context) &&
         kept.out + kBeside + (is_get ? 0 : bytes) <= kept.costs.message_bytes &&
         kept.in + (is_get || fetches ? bytes : 0) <= kept.costs.message_bytes;
}

bool LazyLock::keep(const Operation& operation, mob_status_t* status) {
  const mob_transfer_t& transfer = *operation.transfer;
  Kept* kept = in_handler ? nullptr : find_own();
  if (kept == nullptr || kept->lock.rank != transfer.rank) return false;
  if (!may_keep(*kept, operation)) {
    *status = send(operation.call, *kept, false);
    return *status != MOB_OK;
  }
  const size_t bytes = operation.shape.total_bytes;
  schedule::Operation made;
  made.kind = schedule::kind_of(transfer.kind);
  made.bytes = bytes;
  made.remote = reinterpret_cast<uintptr_t>(operation.shape.remote);
  made.local = operation.shape.local;
  made.kept = true;  // also for gets: all travel in the message
  if (carries_data(made.kind)) {
    made.local = kept->store.get() + kept->stored;
    transport::copy(made.local, operation.shape.local, bytes);
    kept->stored += bytes;
    kept->out += bytes;
  }
  if (made.kind == Kind::kAccumulate || made.kind == Kind::kFetch) {
    made.type = static_cast<uint8_t>(transfer.type);
    made.op = static_cast<uint8_t>(transfer.op);
    made.set_fetched(transfer.fetched);
  }
  const bool reads = is_answered_with_data(made.kind);
  if (reads) kept->in += bytes;
  kept->out += kBeside;
  if (kept->operations.empty()) {
    kept->context = services_.completion.current();
    if (services_.instrumentation.timeline() != nullptr) kept->begin_ns = Timeline::now();
  }
  kept->operations.push_back(made);
  const bool is_awaited = reads && operation.mode == Mode::kBlocking;
  *status = is_awaited ? send(operation.call, *kept, false, true) : MOB_OK;
  return true;
}

mob_status_t LazyLock::gain_own(const char* call) {
  Kept* kept = in_handler ? nullptr : find_own();
  return kept == nullptr ? MOB_OK : send(call, *kept, false);
}

mob_status_t LazyLock::complete_own(const char* call, mob_rank_t rank) {
  Kept* kept = in_handler ? nullptr : find_own();
  const bool is_due = kept != nullptr && !kept->operations.empty() &&
                      (rank == Completion::kAll || rank == kept->lock.rank);
  return is_due ? send(call, *kept, false) : MOB_OK;
}

bool LazyLock::end_own(const char* call, const Access& access, mob_rank_t member,
                       mob_status_t* status) {
  Kept* kept = in_handler ? nullptr : find_own();
  if (kept == nullptr || kept->access != &access || kept->member != member) return false;
  *status = send(call, *kept, true);
  return true;
}

// After success the thread has the access, unless this ends it. An operation's error is reported by
// the next flush, or by the call that awaits it.
mob_status_t LazyLock::send(const char* call, Kept& kept, bool ends, bool is_awaited) {
  Access& access = *kept.access;
  RemoteLocks& claims = services_.remote_objects.locks();
  const std::shared_ptr<Context> context = kept.context;
  RemoteLockBatch batch;
  batch.ends = ends;
  mob_status_t status = MOB_OK;
  if (kept.operations.empty() && !ends) {
    close(kept);
    status = claims.acquire(call, kept.lock, kept.mode, nullptr);
  } else {
    const size_t operations = kept.operations.size();
    if (operations != 0) write(kept, &batch);
    const uint64_t begin = Timeline::now();
    close(kept);
    status = claims.acquire_for(call, kept.lock, kept.mode, &batch);
    const mob_status_t worst = status != MOB_OK ? status : batch.status;
    if (operations != 0) services_.scheduler.trace_answer(kept.lock.rank, operations, begin, worst);
  }
  access.is_not_deferred();
  if (status != MOB_OK) return status;
  if (!ends) access.gained(kept.member, kept.mode, kept.hint);
  if (batch.status == MOB_OK) return MOB_OK;
  fail(batch.status, "%s", batch.text);
  if (is_awaited || context == nullptr) return batch.status;
  Completion::keep_for_flush(*context, batch.status);
  return MOB_OK;
}

// The operations fit one message: keep() checked that.
void LazyLock::write(Kept& kept, RemoteLockBatch* batch) {
  schedule::make_plan(kept.operations, kept.costs, Policy::kAggregate, &kept.plan);
  for (const uint32_t index : kept.plan.order) {
    const schedule::Operation& each = kept.operations[index];
    if (!is_answered_with_data(each.kind)) continue;
    batch->places.push_back({each.kind == Kind::kGet ? each.local : each.fetched(), each.bytes});
  }
  const schedule::Issue& issue = kept.plan.issues.front();
  const schedule::Written written =
      schedule::write_pack(kept.operations, kept.plan, issue, kept.wire.get());
  batch->request = {0, written.lowest, written.highest, issue.answer_bytes};
  batch->pieces = kept.wire.get();
  batch->piece_bytes = written.bytes;
  services_.scheduler.note(kept.lock.rank, kept.operations.size(), kept.plan);
  if (Timeline* timeline = services_.instrumentation.timeline()) {
    const std::string text = schedule::write_recorded(kept.lock.rank, kept.operations, kept.costs,
                                                      Policy::kAggregate, kept.plan, 0);
    timeline->add("recorded", "schedule", kept.begin_ns, text.c_str());
  }
}

}  // namespace mobius::engine
