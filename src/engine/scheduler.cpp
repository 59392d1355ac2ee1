// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/pack_wire.h"
#include "os/brief_lock.h"
#include "schedule/link_meter.h"
#include "schedule/plan.h"
#include "schedule/text.h"
#include "schedule/wire.h"
#include "transport/shm/element.h"

namespace mobius::engine {
namespace {

using base::fail;
using schedule::Issue;
using schedule::Kind;
using schedule::Policy;

// Most that a queue holds: operations, and bytes of them that are copies.
constexpr size_t kMostOperations = 2048;
constexpr size_t kMostStored = size_t{32} << 10;

// Most that is under way to a target before who records waits: messages, and bytes in them.
constexpr size_t kMostFlights = 64;

Kind kind_of(mob_kind_t kind) {
  switch (kind) {
    case MOB_PUT:
      return Kind::kPut;
    case MOB_GET:
      return Kind::kGet;
    case MOB_ACCUMULATE:
      return Kind::kAccumulate;
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return Kind::kFetch;
}

bool packs(Policy policy) { return policy == Policy::kAdaptive || policy == Policy::kAggregate; }

bool counts(const mob_transfer_t& transfer) {
  return transfer.origin_counter != nullptr || transfer.target_counter != nullptr ||
         transfer.completion_counter != nullptr || transfer.origin_word != nullptr ||
         transfer.completion_word != nullptr;
}

}  // namespace

// What was recorded together: completed when all its messages are answered.
struct Scheduler::Group {
  Pending* pending = nullptr;
  uint32_t parts = 1;            // who issues it is one
  bool is_complete_here = true;  // once issued: nothing of the user's is in use any more
  bool is_told = false;          // the above has been said
  mob_status_t status = MOB_OK;
  char text[512] = {};
};

// A packed message under way, and where its answer goes.
struct Scheduler::Flight {
  struct Place {
    char* to;
    size_t bytes;
  };
  uint64_t id = 0;
  Group* group = nullptr;
  size_t bytes = 0;
  size_t answer_bytes = 0;
  uint64_t begin_ns = 0;
  uint32_t operations = 0;
  std::vector<Place> places;
};

// Of one target.
struct Scheduler::Queue {
  explicit Queue(mob_rank_t target) : rank(target) {
    operations.reserve(kMostOperations);
    store = std::make_unique_for_overwrite<char[]>(kMostStored);
  }

  void empty() {
    operations.clear();
    stored = 0;
    is_urgent = false;
    has_any.store(false, std::memory_order_relaxed);
  }

  const mob_rank_t rank;
  schedule::Costs costs;
  std::atomic<uint32_t> epochs = 0;          // open
  std::atomic<uint32_t> waiting_epochs = 0;  // … to whose end puts may wait
  std::atomic<int> epochs_hint = -1;         // their policy, or none
  std::atomic<bool> has_any = false;         // operations, for who looks without the lock

  os::BriefLock mutex;  // guards what follows
  std::vector<schedule::Operation> operations;
  std::unique_ptr<char[]> store;
  size_t stored = 0;
  Group* group = nullptr;  // of what is recorded
  Policy policy{};         // likewise
  bool is_urgent = false;  // something recorded is to be there without a flush
  bool is_fenced = false;  // what is recorded next
  bool is_listed = false;  // in filled_
  uint64_t begin_ns = 0;   // of the first, where there is a timeline

  schedule::LinkMeter meter;
  schedule::Plan plan;
  std::unique_ptr<unsigned char[]> wire;
  uint64_t last_id = 0;
  std::deque<std::unique_ptr<Flight>> flights;  // in the order of their answers
  std::vector<std::unique_ptr<Flight>> spare;
  std::atomic<size_t> under_way = 0;

  uint64_t recorded = 0;  // ever
  schedule::Savings savings;
};

Scheduler::Scheduler(Engine& engine) : engine_(engine) {}
Scheduler::~Scheduler() = default;

mob_status_t Scheduler::open() {
  const base::Settings& settings = engine_.settings();
  policy_ = static_cast<Policy>(settings.number(base::SettingId::kSchedule));
  by_rank_ = std::make_unique<std::atomic<Queue*>[]>(static_cast<size_t>(engine_.size()));
  engine_.messages().register_internal(
      InternalHandler::kPacked,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        static_cast<Scheduler*>(self)->answered(*message, delivery);
      },
      this);
  is_open_ = true;
  return MOB_OK;
}

Scheduler::Queue* Scheduler::find(mob_rank_t rank) const {
  // Acquire pairs with the release in make_queue().
  return by_rank_ == nullptr ? nullptr
                             : by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
}

mob_status_t Scheduler::make_queue(mob_rank_t rank) {
  Link* link = nullptr;
  if (const mob_status_t status = engine_.network().link(rank, &link)) return status;
  const std::lock_guard lock(mutex_);
  if (find(rank) != nullptr) return MOB_OK;
  auto queue = std::make_unique<Queue>(rank);
  queue->costs.message_ns =
      static_cast<double>(engine_.settings().number(base::SettingId::kMessageNs));
  // A message with all that stands before its pieces is one record.
  constexpr size_t kBefore = 256;
  queue->costs.message_bytes = std::min(queue->costs.message_bytes, link->record_bytes() - kBefore);
  queue->wire =
      std::make_unique_for_overwrite<unsigned char[]>(schedule::most_wire_bytes(queue->costs));
  by_rank_[static_cast<size_t>(rank)].store(queue.get(), std::memory_order_release);
  queues_.push_back(std::move(queue));
  return MOB_OK;
}

Scheduler::Queue* Scheduler::queue_of(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue != nullptr) [[likely]] {
    return queue;
  }
  return make_queue(rank) == MOB_OK ? find(rank) : nullptr;
}

// The epoch's hint, the context's, the allocation's, or the job's policy.
Policy Scheduler::policy_for(mob_rank_t rank, uint64_t remote) const {
  if (hinted_epochs_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    const Queue* queue = find(rank);
    const int hint = queue == nullptr ? -1 : queue->epochs_hint.load(std::memory_order_relaxed);
    if (hint >= 0) return static_cast<Policy>(hint);
  }
  if (looks_at_contexts_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (const int hint = engine_.completion().schedule(); hint >= 0) {
      return static_cast<Policy>(hint);
    }
  }
  if (hints_.any()) [[unlikely]] {
    return hints_.find(rank, remote).value_or(policy_);
  }
  return policy_;
}

bool Scheduler::takes(const Operation& operation) const {
  const mob_transfer_t& transfer = *operation.transfer;
  const transport::Shape& shape = operation.shape;
  if (!is_open_) return false;
  const Policy policy = policy_for(transfer.rank, reinterpret_cast<uintptr_t>(shape.remote));
  if (policy == Policy::kFifo || shape.kind != MOB_CONTIGUOUS || shape.total_bytes == 0 ||
      counts(transfer)) {
    return false;
  }
  // Its request is small, goes at once, and what is moved then is in nobody's way.
  if (engine_.served().is_bulk(transfer, shape)) return false;
  const bool is_small = shape.total_bytes <= kMostKept;
  const bool is_started = operation.mode == Mode::kImplicit;
  switch (transfer.kind) {
    case MOB_PUT:
      return (is_started && (transfer.signal == nullptr || is_small)) ||
             (packs(policy) && is_small);
    case MOB_GET: {
      // One that is waited for gains only where there is something that it can overtake.
      const Queue* queue = is_started || in_handler ? nullptr : find(transfer.rank);
      return transfer.signal == nullptr && (is_started || (queue != nullptr && queue->has_any));
    }
    case MOB_ACCUMULATE:
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return is_small && transfer.scale == nullptr && transfer.op != MOB_NO_OP &&
         transfer.signal == nullptr &&
         (is_started || (packs(policy) && transfer.kind == MOB_ACCUMULATE));
}

mob_status_t Scheduler::record(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  Queue* queue = queue_of(transfer.rank);
  if (queue == nullptr) return MOB_ERR_PEER;
  schedule::Operation made;
  made.kind = kind_of(transfer.kind);
  made.bytes = operation.shape.total_bytes;
  made.remote = reinterpret_cast<uintptr_t>(operation.shape.remote);
  made.local = operation.shape.local;
  const Policy policy = policy_for(transfer.rank, made.remote);
  const bool is_started = operation.mode == Mode::kImplicit;
  if (transfer.kind == MOB_ACCUMULATE || transfer.kind == MOB_FETCH_ACCUMULATE) {
    made.type = static_cast<uint8_t>(transfer.type);
    made.op = static_cast<uint8_t>(transfer.op);
    made.fetched = static_cast<char*>(transfer.fetched);
    made.kept = true;
  } else {
    made.kept = transfer.kind == MOB_PUT && !is_started;
  }
  if (made.kind == Kind::kGet && !is_started) return get(operation, *queue, made, policy);
  const mob_status_t status = add(*queue, made, policy, !is_started && transfer.signal == nullptr);
  if (status != MOB_OK || transfer.signal == nullptr) return status;
  made = {};
  made.kind = Kind::kSignal;
  made.bytes = sizeof(uint64_t);
  made.remote = reinterpret_cast<uintptr_t>(transfer.signal);
  made.op = static_cast<uint8_t>(transfer.signal_op);
  made.value = transfer.signal_value;
  return add(*queue, made, policy, true);
}

// A get with a handle, or one that is waited for here.
mob_status_t Scheduler::get(const Operation& operation, Queue& queue, schedule::Operation& made,
                            Policy policy) {
  uint64_t own_handle = 0;
  const bool waits = operation.mode == Mode::kBlocking;
  Pending* pending =
      engine_.completion().start(*operation.transfer, waits ? &own_handle : operation.handle);
  if (pending == nullptr) return MOB_ERR_MEMORY;
  made.waiter = pending;
  // From here on its error is the handle's.
  if (const mob_status_t status = add(queue, made, policy, true)) {
    engine_.completion().complete_locally(*pending, status);
    engine_.completion().complete_remotely(*pending, MOB_OK);
  }
  return waits ? engine_.completion().wait(operation.call, own_handle) : MOB_OK;
}

// What add() does with a put that is one of many: there is nothing else to look after. False if
// there is. Inlined into its one caller, since it is most of what a small put costs.
[[gnu::always_inline]] inline bool Scheduler::append(Queue& queue, void* remote, const void* local,
                                                     size_t bytes, Policy policy) {
  const std::lock_guard lock(queue.mutex);
  const auto& operations = queue.operations;
  if (operations.empty() || operations.size() == operations.capacity() ||
      queue.stored + bytes > kMostStored || queue.policy != policy || queue.is_fenced ||
      queue.under_way.load(std::memory_order_relaxed) > kMostFlights ||
      !engine_.completion().is_current(*queue.group->pending->context)) [[unlikely]] {
    return false;
  }
  char* copy = queue.store.get() + queue.stored;
  if (bytes == sizeof(uint64_t)) {
    std::memcpy(copy, local, sizeof(uint64_t));
  } else {
    std::memcpy(copy, local, bytes);
  }
  queue.stored += bytes;
  ++queue.recorded;
  schedule::Operation& made = queue.operations.emplace_back();
  made.kept = true;
  made.bytes = bytes;
  made.remote = reinterpret_cast<uintptr_t>(remote);
  made.local = copy;
  return true;
}

bool Scheduler::put(mob_rank_t rank, void* remote, const void* local, size_t bytes, bool is_urgent,
                    mob_status_t* status) {
  if (!is_open_) return false;
  const Policy policy =
      has_hints() ? policy_for(rank, reinterpret_cast<uintptr_t>(remote)) : policy_;
  if (!packs(policy)) return false;
  Queue* queue = find(rank);
  if (queue == nullptr && (queue = queue_of(rank)) == nullptr) return false;
  if (!is_urgent && append(*queue, remote, local, bytes, policy)) {
    *status = MOB_OK;
    return true;
  }
  schedule::Operation made;
  made.kept = true;
  made.bytes = bytes;
  made.remote = reinterpret_cast<uintptr_t>(remote);
  made.local = const_cast<char*>(static_cast<const char*>(local));
  *status = add(*queue, made, policy, is_urgent);
  return true;
}

// Needs the queue's lock.
mob_status_t Scheduler::begin_group(Queue& queue) {
  mob_transfer_t transfer{};
  transfer.rank = queue.rank;
  auto group = std::make_unique<Group>();
  group->pending = engine_.completion().start(transfer, nullptr);
  if (group->pending == nullptr) return MOB_ERR_MEMORY;
  queue.group = group.release();  // end_part() deletes it
  if (engine_.transfers().timeline() != nullptr) queue.begin_ns = Timeline::now();
  if (queue.is_listed) return MOB_OK;
  queue.is_listed = true;
  const std::lock_guard lock(mutex_);
  filled_.push_back(&queue);
  recorded_.store(true, std::memory_order_relaxed);
  // A thread that sleeps in a flush of the same context waits for this, too: it issues it.
  engine_.ring(engine_.rank());
  return MOB_OK;
}

bool Scheduler::is_full(const Queue& queue, const schedule::Operation& operation) const {
  return queue.operations.size() == kMostOperations ||
         (operation.kept && queue.stored + operation.bytes > kMostStored);
}

mob_status_t Scheduler::add(Queue& queue, schedule::Operation& operation, Policy policy,
                            bool is_urgent) {
  bool waits = false;
  {
    const std::lock_guard lock(queue.mutex);
    if (!queue.operations.empty() &&
        (queue.policy != policy || is_full(queue, operation) ||
         !engine_.completion().is_current(*queue.group->pending->context))) {
      issue(queue);
    }
    if (queue.operations.empty()) {
      if (const mob_status_t status = begin_group(queue)) return status;
      queue.policy = policy;
    }
    if (operation.kept) {
      char* copy = queue.store.get() + queue.stored;
      std::memcpy(copy, operation.local, operation.bytes);
      operation.local = copy;
      queue.stored += operation.bytes;
    }
    operation.fenced = queue.is_fenced && !queue.operations.empty();
    queue.is_fenced = false;
    queue.operations.push_back(operation);
    queue.has_any.store(true, std::memory_order_relaxed);
    ++queue.recorded;
    if (is_urgent && queue.waiting_epochs.load(std::memory_order_relaxed) == 0) {
      queue.is_urgent = true;
      if (queue.flights.empty()) issue(queue);
    }
    waits = queue.flights.size() > kMostFlights;
  }
  return waits && !in_handler ? wait_for_room(queue) : MOB_OK;
}

mob_status_t Scheduler::wait_for_room(Queue& queue) {
  // Who died answers nothing; the next flush says so.
  struct Finder final : os::Watch {
    Finder(Engine& owner, mob_rank_t target) : engine(owner), rank(target) {}
    mob_status_t look() override {
      return engine.has_gone(rank) ? fail(MOB_ERR_PEER, "rank %d died or left the job", rank)
                                   : MOB_OK;
    }
    Engine& engine;
    const mob_rank_t rank;
  } finder(engine_, queue.rank);
  return engine_.wait_until(
      [&] { return queue.under_way.load(std::memory_order_relaxed) <= kMostFlights / 2; }, &finder);
}

bool Scheduler::tell(mob_rank_t rank, const void* what, size_t bytes) {
  Queue* queue = find(rank);
  if (queue == nullptr) return false;
  const std::lock_guard lock(queue->mutex);
  if (queue->operations.empty()) return false;
  if (!packs(queue->policy)) {
    issue(*queue);
    return false;
  }
  schedule::Operation made;
  made.kind = Kind::kTell;
  made.kept = true;
  made.fenced = true;
  made.bytes = bytes;
  if (is_full(*queue, made)) {
    issue(*queue);
    return false;
  }
  made.local = queue->store.get() + queue->stored;
  std::memcpy(made.local, what, bytes);
  queue->operations.push_back(made);
  return issue(*queue);
}

void Scheduler::close() {
  is_open_ = false;
  if (engine_.settings().number(base::SettingId::kStats) == 0) return;
  const std::string text = report();
  // Nobody could be told that standard error is gone.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

void Scheduler::fence() {
  if (!any_recorded()) return;
  std::vector<Queue*> filled;
  {
    const std::lock_guard lock(mutex_);
    filled = filled_;
  }
  for (Queue* queue : filled) {
    const std::lock_guard lock(queue->mutex);
    queue->is_fenced = true;
  }
}

void Scheduler::issue(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  const std::lock_guard lock(queue->mutex);
  issue(*queue);
}

void Scheduler::issue_recorded() {
  std::vector<Queue*> filled;
  {
    const std::lock_guard lock(mutex_);
    filled.swap(filled_);
    recorded_.store(false, std::memory_order_relaxed);
  }
  for (Queue* queue : filled) {
    const std::lock_guard lock(queue->mutex);
    queue->is_listed = false;
    issue(*queue);
  }
}

// Needs the queue's lock. False if it leaves to the caller to tell what comes last: that would be a
// message by itself, and is one without an answer elsewhere.
bool Scheduler::issue(Queue& queue) {
  if (queue.operations.empty()) return true;
  const uint64_t begin = queue.begin_ns;
  Group& group = *std::exchange(queue.group, nullptr);
  schedule::make_plan(queue.operations, queue.costs, queue.policy, &queue.plan);
  const bool tells =
      queue.operations.back().kind != Kind::kTell || queue.plan.issues.back().count > 1;
  if (!tells) {
    queue.plan.issues.pop_back();
    --queue.plan.savings.messages;
  }
  for (const Issue& each : queue.plan.issues) {
    if (each.packed) {
      issue_pack(queue, group, each);
    } else {
      issue_alone(queue, group, each);
    }
  }
  const schedule::Savings& saved = queue.plan.savings;
  queue.savings.merged += saved.merged;
  queue.savings.packed += saved.packed;
  queue.savings.reordered += saved.reordered;
  queue.savings.messages += saved.messages;
  if (engine_.transfers().timeline() != nullptr) trace_issue(queue, begin);
  queue.empty();
  if (group.is_complete_here && group.status == MOB_OK) {
    group.is_told = true;
    engine_.completion().complete_locally(*group.pending, MOB_OK);
  }
  end_part(group, MOB_OK);
  return tells;
}

void Scheduler::issue_pack(Queue& queue, Group& group, const Issue& issue) {
  std::unique_ptr<Flight> flight;
  if (queue.spare.empty()) {
    flight = std::make_unique<Flight>();
  } else {
    flight = std::move(queue.spare.back());
    queue.spare.pop_back();
  }
  flight->group = &group;
  flight->id = ++queue.last_id;
  expect_answer(queue, *flight, issue);
  if (flight->answer_bytes != 0) group.is_complete_here = false;
  const schedule::Written written =
      schedule::write_pack(queue.operations, queue.plan, issue, queue.wire.get());
  const PackRequest request{flight->id, written.lowest, written.highest, flight->answer_bytes};
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kPack);
  message.header = &request;
  message.header_bytes = sizeof request;
  message.payload = queue.wire.get();
  message.payload_bytes = written.bytes;
  flight->begin_ns = Timeline::now();
  flight->bytes = written.bytes;
  ++group.parts;
  queue.flights.push_back(std::move(flight));
  queue.under_way.store(queue.flights.size(), std::memory_order_relaxed);
  const mob_status_t status = engine_.messages().post("an operation", queue.rank, message);
  if (status == MOB_OK) return;
  queue.spare.push_back(std::move(queue.flights.back()));
  queue.flights.pop_back();
  queue.under_way.store(queue.flights.size(), std::memory_order_relaxed);
  end_part(group, status);
}

// Where what comes back is to go.
void Scheduler::expect_answer(Queue& queue, Flight& flight, const Issue& issue) {
  flight.places.clear();
  flight.operations = issue.operations;
  flight.answer_bytes = issue.answer_bytes;
  if (issue.answer_bytes == 0) return;
  for (uint32_t i = issue.first; i < issue.first + issue.count; ++i) {
    const schedule::Piece& piece = queue.plan.pieces[i];
    for (uint32_t place = piece.first; place < piece.first + piece.count; ++place) {
      const schedule::Operation& each = queue.operations[queue.plan.order[place]];
      if (!is_answered_with_data(each.kind)) break;
      flight.places.push_back({each.kind == Kind::kGet ? each.local : each.fetched, each.bytes});
    }
  }
}

// One stretch, long enough to be sent from where it is.
void Scheduler::issue_alone(Queue& queue, Group& group, const Issue& issue) {
  const schedule::Piece& piece = queue.plan.pieces[issue.first];
  const schedule::Operation& first = queue.operations[queue.plan.order[piece.first]];
  mob_transfer_t transfer{};
  transfer.kind = first.kind == Kind::kPut ? MOB_PUT : MOB_GET;
  transfer.rank = queue.rank;
  transfer.remote = reinterpret_cast<void*>(first.remote);
  transfer.local = first.local;
  transfer.bytes = piece.bytes();
  const char* call = first.kind == Kind::kPut ? "mob_put_nbi" : "mob_get_nbi";
  auto* pending = static_cast<Pending*>(first.waiter);
  // What is only remembered belongs to who recorded it, whoever issues it.
  const ActingFor scope(group.pending->context);
  if (pending == nullptr) pending = engine_.completion().start(transfer, nullptr);
  transport::Shape shape;
  mob_status_t status = pending == nullptr ? MOB_ERR_MEMORY : MOB_OK;
  if (status == MOB_OK) status = transport::normalise(call, transfer, &shape);  // it was checked
  if (status == MOB_OK) return engine_.served().start(call, transfer, shape, *pending);
  ++group.parts;
  end_part(group, status);
}

// Keeps the first error; the last part completes the group.
void Scheduler::end_part(Group& group, mob_status_t status) {
  if (status != MOB_OK && group.status == MOB_OK) {
    group.status = status;
    std::strncpy(group.text, mob_last_error(), sizeof group.text - 1);
  }
  if (--group.parts != 0) return;
  const std::unique_ptr<Group> ended(&group);
  if (group.status != MOB_OK) fail(group.status, "%s", group.text);
  Completion& completion = engine_.completion();
  if (!group.is_told) completion.complete_locally(*group.pending, group.status);
  completion.complete_remotely(*group.pending, group.is_told ? group.status : MOB_OK);
}

void Scheduler::answered(const mob_message_t& message, mob_delivery_t* delivery) {
  PackReply reply{};
  std::memcpy(&reply, message.header, std::min(message.header_bytes, sizeof reply));
  if (reply.status != MOB_OK) {
    reply.text[sizeof reply.text - 1] = 0;
    fail(reply.status, "rank %d: %s", message.source, reply.text);
  }
  if (message.payload != nullptr || message.payload_bytes == 0) {
    take_answer(message.source, reply.id, static_cast<const unsigned char*>(message.payload),
                message.payload_bytes, reply.status);
    return;
  }
  struct Late {
    Scheduler* self;
    mob_rank_t rank;
    PackReply reply;
    size_t bytes;
    std::unique_ptr<unsigned char[]> data;
  };
  auto late = std::make_unique<Late>(
      Late{this, message.source, reply, message.payload_bytes,
           std::make_unique_for_overwrite<unsigned char[]>(message.payload_bytes)});
  delivery->payload = late->data.get();
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Late> all(static_cast<Late*>(argument));
    if (all->reply.status != MOB_OK) {
      fail(all->reply.status, "rank %d: %s", all->rank, all->reply.text);
    }
    all->self->take_answer(all->rank, all->reply.id, all->data.get(), all->bytes,
                           all->reply.status);
  };
  delivery->argument = late.release();
}

void Scheduler::take_answer(mob_rank_t rank, uint64_t id, const unsigned char* data, size_t bytes,
                            mob_status_t status) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  const std::lock_guard lock(queue->mutex);
  // Answers come in the order of the questions; those before were given up.
  if (queue->flights.empty() || queue->flights.front()->id != id) return;
  std::unique_ptr<Flight> flight = std::move(queue->flights.front());
  queue->flights.pop_front();
  queue->under_way.store(queue->flights.size(), std::memory_order_relaxed);
  if (bytes == flight->answer_bytes) {
    for (const Flight::Place& place : flight->places) {
      std::memcpy(place.to, data, place.bytes);
      data += place.bytes;
    }
  } else if (status == MOB_OK) {
    status = fail(MOB_ERR_SYSTEM, "an answer of rank %d makes no sense", rank);
  }
  queue->meter.answered(flight->bytes, bytes,
                        static_cast<double>(Timeline::now() - flight->begin_ns));
  queue->meter.update(&queue->costs);
  if (Timeline* timeline = engine_.transfers().timeline()) {
    char arguments[96];
    std::snprintf(arguments, sizeof arguments, R"("target":%d,"operations":%u,"status":%d)", rank,
                  flight->operations, status);
    timeline->add("issued", "schedule", flight->begin_ns, arguments);
  }
  end_part(*flight->group, status);
  queue->spare.push_back(std::move(flight));
  if (queue->is_urgent && queue->flights.empty()) issue(*queue);
}

void Scheduler::trace_issue(const Queue& queue, uint64_t begin) const {
  const schedule::Plan& plan = queue.plan;
  const schedule::Costs& costs = queue.costs;
  char arguments[384];
  std::snprintf(arguments, sizeof arguments,
                R"("target":%d,"operations":%zu,"messages":%zu,"merged":%zu,"why":"%s",)"
                R"("policy":"%s","costs":"%.0f %.0f %.4f %.4f %.4f %zu","queue":")",
                queue.rank, queue.operations.size(), plan.issues.size(),
                static_cast<size_t>(plan.savings.merged), plan.why,
                schedule::kPolicyNames[static_cast<size_t>(queue.policy)].data(), costs.latency_ns,
                costs.message_ns, costs.out_bytes_per_ns, costs.in_bytes_per_ns,
                costs.copy_bytes_per_ns, costs.message_bytes);
  const std::string text = arguments + schedule::write_queue(queue.operations, ';') + '"';
  engine_.transfers().timeline()->add("recorded", "schedule", begin, text.c_str());
}

void Scheduler::open_epoch(mob_rank_t rank, std::optional<Policy> hint, Epoch epoch) {
  if (!is_open_ || engine_.is_here(rank)) return;
  Queue* queue = queue_of(rank);
  if (queue == nullptr) return;
  if (epoch == Epoch::kWaits) queue->waiting_epochs.fetch_add(1, std::memory_order_relaxed);
  queue->epochs.fetch_add(1, std::memory_order_relaxed);
  if (!hint) return;
  if (queue->epochs_hint.exchange(static_cast<int>(*hint), std::memory_order_relaxed) < 0) {
    hinted_epochs_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Scheduler::close_epoch(mob_rank_t rank, Epoch epoch) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  if (epoch == Epoch::kWaits) queue->waiting_epochs.fetch_sub(1, std::memory_order_relaxed);
  if (queue->epochs.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (queue->epochs_hint.exchange(-1, std::memory_order_relaxed) >= 0) {
    hinted_epochs_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Scheduler::give_up(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  const std::lock_guard lock(queue->mutex);
  const auto lost = [&] {
    return fail(MOB_ERR_PEER, "rank %d %s; it has not answered", rank,
                engine_.network().fate(rank).c_str());
  };
  while (!queue->flights.empty()) {
    const std::unique_ptr<Flight> flight = std::move(queue->flights.front());
    queue->flights.pop_front();
    end_part(*flight->group, lost());
  }
  queue->under_way.store(0, std::memory_order_relaxed);
  if (queue->group == nullptr) return;
  Group& group = *std::exchange(queue->group, nullptr);
  for (const schedule::Operation& operation : queue->operations) {
    if (operation.waiter == nullptr) continue;
    auto& pending = *static_cast<Pending*>(operation.waiter);
    engine_.completion().complete_locally(pending, lost());
    engine_.completion().complete_remotely(pending, MOB_OK);
  }
  queue->empty();
  end_part(group, lost());
}

std::string Scheduler::report() const {
  std::string text;
  for (mob_rank_t rank = 0; by_rank_ != nullptr && rank < engine_.size(); ++rank) {
    Queue* queue = find(rank);
    if (queue == nullptr) continue;
    const std::lock_guard lock(queue->mutex);
    if (queue->recorded == 0) continue;
    const schedule::Savings& saved = queue->savings;
    char line[256];
    std::snprintf(line, sizeof line,
                  "mobius: rank %d: schedule to %d: %zu recorded, %zu merged, %zu packed, %zu "
                  "re-ordered, %zu messages, %zu saved\n",
                  engine_.rank(), queue->rank, static_cast<size_t>(queue->recorded),
                  static_cast<size_t>(saved.merged), static_cast<size_t>(saved.packed),
                  static_cast<size_t>(saved.reordered), static_cast<size_t>(saved.messages),
                  static_cast<size_t>(queue->recorded - saved.messages));
    text += line;
    const schedule::Costs& costs = queue->costs;
    std::snprintf(line, sizeof line,
                  "mobius: rank %d: link to %d: latency %.1f us, out %.0f MB/s, in %.0f MB/s, one "
                  "more message %.1f us\n",
                  engine_.rank(), queue->rank, costs.latency_ns / 1000,
                  costs.out_bytes_per_ns * 1000, costs.in_bytes_per_ns * 1000,
                  costs.message_ns / 1000);
    text += line;
  }
  return text;
}

}  // namespace mobius::engine
