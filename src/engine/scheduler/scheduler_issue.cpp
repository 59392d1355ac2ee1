// SPDX-License-Identifier: BSD-3-Clause
// Issuing, and taking answers.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/request/am_rma.h"
#include "engine/request/batch_wire.h"
#include "engine/rma/local_access.h"
#include "engine/scheduler/scheduler_queue.h"
#include "schedule/text.h"
#include "schedule/wire.h"
#include "transport/shm/copy.h"

namespace mobius::engine {

using base::fail;
using schedule::Issue;
using schedule::Kind;

void Scheduler::issue(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  const Queue::Lock lock(*queue);
  issue(*queue);
}

void Scheduler::issue_for_fence(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  const Queue::Lock lock(*queue);
  schedule::Costs costs = costs_of(*queue);
  const schedule::Costs spared = schedule::without_answers(costs);
  size_t bytes = 0;
  bool only_puts = queue->alone.load(std::memory_order_relaxed) == 0;
  for (const schedule::Operation& each : queue->operations) {
    bytes += each.bytes;
    only_puts &= each.kind == Kind::kPut;
  }
  // Packing saves one answer, whatever the number of puts: that has to pay for all copies.
  if (only_puts && bytes <= schedule::most_packed_bytes(spared)) costs = spared;
  issue(*queue, costs, nullptr);
}

schedule::Costs Scheduler::costs_of(Queue& queue) {
  const std::lock_guard lock(queue.answers);
  return queue.costs;
}

// Needs the queue's lock. False if the caller has to send the last operation, a tell, by itself:
// alone in a packed message it would cost an answer.
bool Scheduler::issue(Queue& queue, std::vector<Move>* moves) {
  return queue.operations.empty() || issue(queue, costs_of(queue), moves);
}

void Scheduler::issue_recorded() {
  std::vector<Queue*> filled;
  {
    const std::lock_guard lock(mutex_);
    filled.swap(filled_);
    issuing_.fetch_add(1, std::memory_order_relaxed);
    recorded_.store(false, std::memory_order_release);  // pairs with the acquire in fence()
  }
  std::vector<Move> moves;
  for (Queue* queue : filled) {
    const Queue::Lock lock(*queue);
    queue->is_listed = false;
    issue(*queue, &moves);
  }
  issuing_.fetch_sub(1, std::memory_order_release);  // likewise
  // Starts the moves without the locks: registering memory waits for the thread that polls, and
  // that thread may wait for the locks. Puts first: for them the target only sends a request (to
  // read), which would otherwise wait behind its data for gets, and leave first one direction idle
  // and then the other. For the same reason puts whose bytes need no request come last.
  AmRma& requests = services_.requests;
  for (Move& move : moves) {
    if (move.transfer.kind == MOB_PUT) move.turn = requests.goes_unasked(move.transfer) ? 2 : 0;
  }
  for (const int turn : {0, 1, 2}) {
    for (const Move& move : moves) {
      if (move.turn == turn) requests.start_bulk(move.transfer, *move.pending);
    }
  }
}

bool Scheduler::issue(Queue& queue, const schedule::Costs& costs, std::vector<Move>* moves) {
  if (queue.operations.empty()) return true;
  const uint64_t begin = queue.begin_ns;
  // Cleared before anything is sent: an answer may arrive before this function returns.
  queue.is_urgent.store(false, std::memory_order_relaxed);
  Group& group = *std::exchange(queue.group, nullptr);
  if (queue.is_fenced) moves = nullptr;
  bool tells = queue.operations.back().kind != Kind::kTell;
  mob_status_t status = drop_unreadable(queue);
  size_t gone = kNoPlan;  // issues of the plan that were sent
  try {
    if (!queue.operations.empty()) tells |= issue_plan(queue, group, costs, moves, &gone);
    queue.savings.add(queue.plan.savings);
    if (services_.instrumentation.timeline() != nullptr) {
      trace_issue(queue, costs, begin, moves != nullptr);
    }
  } catch (const std::bad_alloc&) {
    status = fail(MOB_ERR_MEMORY, "no memory to send what was recorded for rank %d", queue.rank);
    end_waiting(queue, gone, status);
  }
  queue.empty();
  const std::lock_guard lock(queue.answers);
  group.error.keep(status);
  if (group.is_complete_here && group.error.status() == MOB_OK) {
    group.is_told = true;
    services_.completion.complete_locally(*group.pending, MOB_OK);
  }
  end_part(group, MOB_OK);
  return tells;
}

// Needs the queue's lock. Takes out the puts whose bytes the program may not read, or no longer:
// the issuing thread packs them, and may not be the one that recorded them.
mob_status_t Scheduler::drop_unreadable(Queue& queue) {
  mob_status_t status = MOB_OK;
  bool is_fenced = false;  // an operation that was taken out
  schedule::Operation* end = queue.operations.begin();
  for (schedule::Operation& each : queue.operations) {
    if (each.kept || each.kind != Kind::kPut ||
        LocalAccess::allows_reading(services_.segment, each.local, each.bytes)) [[likely]] {
      if (std::exchange(is_fenced, false)) each.fenced = true;
      if (end != &each) *end = each;
      ++end;
      continue;
    }
    if (status == MOB_OK) status = LocalAccess(services_.segment, false).refuse(each.local);
    is_fenced |= each.fenced;
  }
  queue.operations.end_at(end);
  return status;
}

// False if the last operation is a tell that is left to the caller.
bool Scheduler::issue_plan(Queue& queue, Group& group, const schedule::Costs& costs,
                           std::vector<Move>* moves, size_t* gone) {
  schedule::make_plan(queue.operations, costs, queue.policy, &queue.plan);
  const bool tells =
      queue.operations.back().kind != Kind::kTell || queue.plan.issues.back().count > 1;
  if (!tells) {
    queue.plan.issues.pop_back();
    --queue.plan.savings.messages;
  }
  *gone = 0;
  for (const Issue& each : queue.plan.issues) {
    if (each.packed) {
      issue_pack(queue, group, each);
    } else {
      issue_alone(queue, group, each, each.is_free ? moves : nullptr);
    }
    ++*gone;
  }
  return tells;
}

// Needs the queue's lock. Completes the operations that have waiters of their own and were not
// sent.
void Scheduler::end_waiting(const Queue& queue, size_t gone, mob_status_t status) {
  const auto end = [&](const schedule::Operation& operation) {
    if (operation.waiter() == nullptr) return;
    services_.completion.complete(*static_cast<Pending*>(operation.waiter()), status);
  };
  if (gone == kNoPlan) {
    for (const schedule::Operation& each : queue.operations) end(each);
    return;
  }
  for (size_t i = gone; i < queue.plan.issues.size(); ++i) {
    const Issue& issue = queue.plan.issues[i];
    for (uint32_t p = issue.first; p < issue.first + issue.count; ++p) {
      const schedule::Piece& piece = queue.plan.pieces[p];
      for (uint32_t place = piece.first; place < piece.first + piece.count; ++place) {
        end(queue.operations[queue.plan.order[place]]);
      }
    }
  }
}

void Scheduler::note(mob_rank_t rank, size_t operations, const schedule::Plan& plan) {
  Queue& queue = *find(rank);
  const Queue::Lock lock(queue);
  queue.recorded += operations;
  queue.savings.add(plan.savings);
}

void Scheduler::moved(mob_rank_t rank, size_t out, size_t in, uint64_t ns) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;  // there is no queue to plan for
  const std::lock_guard lock(queue->answers);
  queue->meter.answered(out, in, static_cast<double>(ns));
  queue->meter.update(&queue->costs);
}

void Scheduler::issue_pack(Queue& queue, Group& group, const Issue& issue) {
  std::unique_ptr<Flight> flight = std::exchange(queue.next_flight, nullptr);
  if (flight == nullptr) flight = std::make_unique<Flight>();
  flight->group = &group;
  flight->id = ++queue.last_id;
  expect_answer(queue, *flight, issue);
  if (flight->answer_bytes != 0) group.is_complete_here = false;
  const schedule::Written written =
      schedule::write_pack(queue.operations, queue.plan, issue, queue.wire.get());
  const BatchRequest request{flight->id, written.lowest, written.highest, flight->answer_bytes};
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kPack);
  message.header = &request;
  message.header_bytes = sizeof request;
  message.payload = queue.wire.get();
  message.payload_bytes = written.bytes;
  flight->begin_ns = Timeline::now();
  flight->bytes = written.bytes;
  flight->lowest = written.only_puts ? written.lowest : 0;
  flight->highest = written.only_puts ? written.highest : 0;
  {
    const std::lock_guard lock(queue.answers);
    queue.flights.push_back(std::move(flight));
    ++group.parts;
    queue.count_flights();
    if (!queue.spare.empty()) {
      queue.next_flight = std::move(queue.spare.back());
      queue.spare.pop_back();
    }
  }
  mob_status_t status = MOB_OK;
  try {
    status = services_.messages.post("an operation", queue.rank, message);
  } catch (const std::bad_alloc&) {
    status = fail(MOB_ERR_MEMORY,
                  "no memory to keep what there is no room for on the way to rank %d", queue.rank);
  }
  if (status == MOB_OK) return;
  const std::lock_guard lock(queue.answers);
  // Unless it was answered in spite of the error.
  if (queue.flights.empty() || queue.flights.back()->id != queue.last_id) return;
  spare(queue, std::move(queue.flights.back()));
  queue.flights.pop_back();
  queue.count_flights();
  end_part(group, status);
}

// Needs `answers`. Keeps a flight for reuse if there is room, without allocating.
void Scheduler::spare(Queue& queue, std::unique_ptr<Flight> flight) {
  if (queue.spare.size() < queue.spare.capacity()) queue.spare.push_back(std::move(flight));
}

bool Scheduler::puts_surely(mob_rank_t rank) const {
  Queue* queue = find(rank);
  if (queue == nullptr) return false;
  const Queue::Lock lock(*queue);
  const std::lock_guard nothing_comes(queue->answers);
  uint64_t groups = 0;
  const Group* last = nullptr;
  for (const auto& flight : queue->flights) {
    if (!services_.completion.is_current(*flight->group->pending->context) ||
        !services_.allocated.holds(rank, flight->lowest, flight->highest)) {
      return false;
    }
    if (std::exchange(last, flight->group) != flight->group) ++groups;
  }
  return queue->operations.empty() && services_.completion.all_at(rank) == groups;
}

// Lists the destinations of the answer's data.
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
      flight.places.push_back({each.kind == Kind::kGet ? each.local : each.fetched(), each.bytes});
    }
  }
}

bool Scheduler::add_move(std::vector<Move>& moves, const Move& move) {
  try {
    moves.push_back(move);
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // without a list it goes alone
  }
}

// Issues one contiguous range that is long enough to be sent from the user's memory. If merging
// made it so long, and `moves` is not null, it is moved by remote memory access.
void Scheduler::issue_alone(Queue& queue, Group& group, const Issue& issue,
                            std::vector<Move>* moves) {
  const schedule::Piece& piece = queue.plan.pieces[issue.first];
  const schedule::Operation& first = queue.operations[queue.plan.order[piece.first]];
  mob_transfer_t transfer{};
  transfer.kind = first.kind == Kind::kPut ? MOB_PUT : MOB_GET;
  transfer.rank = queue.rank;
  transfer.remote = reinterpret_cast<void*>(first.remote);
  transfer.local = first.local;
  transfer.bytes = piece.bytes();
  const char* call = first.kind == Kind::kPut ? "mob_put_nbi" : "mob_get_nbi";
  auto* pending = static_cast<Pending*>(first.waiter());
  // An operation without a handle belongs to the recording context, whichever thread issues it.
  const ActingFor scope(group.pending->context);
  if (pending == nullptr) pending = services_.completion.start(transfer, nullptr);
  transport::Shape shape;
  mob_status_t status = pending == nullptr ? MOB_ERR_MEMORY : MOB_OK;
  if (status == MOB_OK) status = transport::normalise(call, transfer, &shape);  // it was checked
  if (status == MOB_OK) {
    if (moves != nullptr && services_.requests.is_bulk(transfer, shape, Mode::kImplicit) &&
        add_move(*moves, {transfer, pending})) {
      Completion::let_overtake(*pending);
      return;
    }
    queue.alone.fetch_add(1, std::memory_order_relaxed);
    return services_.requests.start(call, transfer, shape, *pending);
  }
  const std::lock_guard lock(queue.answers);
  ++group.parts;
  end_part(group, status);
}

// Needs `answers`. Keeps the first error; the last part completes the group.
void Scheduler::end_part(Group& group, mob_status_t status) {
  group.error.keep(status);
  if (--group.parts != 0) return;
  const std::unique_ptr<Group> ended(&group);
  const mob_status_t first = group.error.tell();
  Completion& completion = services_.completion;
  if (group.is_told) {
    completion.complete_remotely(*group.pending, first);
  } else {
    completion.complete(*group.pending, first);
  }
}

void Scheduler::answered(const mob_message_t& message, mob_delivery_t* delivery) {
  const BatchReply reply = BatchReply::from(message.header, message.header_bytes);
  if (reply.status != MOB_OK) {
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
    BatchReply reply;
    size_t bytes;
    std::unique_ptr<unsigned char[]> data;
  };
  // An answer of an untrusted size: if there is no memory for it, it counts as one without data.
  std::unique_ptr<unsigned char[]> data = make_batch_buffer(message.payload_bytes);
  const size_t kept = data != nullptr ? message.payload_bytes : 0;
  auto late = std::make_unique<Late>(Late{this, message.source, reply, kept, std::move(data)});
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
  {
    const std::lock_guard lock(queue->answers);
    // Answers come in the order of the messages; give_up() has ended any before.
    if (queue->flights.empty() || queue->flights.front()->id != id) return;
    std::unique_ptr<Flight> flight = std::move(queue->flights.front());
    queue->flights.pop_front();
    queue->count_flights();
    if (bytes == flight->answer_bytes) {
      LocalAccess access(services_.segment, true);
      for (const Flight::Place& place : flight->places) {
        if (access.allows(place.to, place.bytes)) {
          transport::copy(place.to, data, place.bytes);
        } else if (status == MOB_OK) {
          status = access.refuse(place.to);
        }
        data += place.bytes;
      }
    } else if (status == MOB_OK) {
      status = fail(MOB_ERR_SYSTEM, "an answer of rank %d makes no sense", rank);
    }
    queue->meter.answered(flight->bytes, bytes,
                          static_cast<double>(Timeline::now() - flight->begin_ns));
    queue->meter.update(&queue->costs);
    trace_answer(rank, flight->operations, flight->begin_ns, status);
    end_part(*flight->group, status);
    spare(*queue, std::move(flight));
    if (!queue->is_urgent.load(std::memory_order_seq_cst) || !queue->flights.empty()) return;
  }
  const Queue::Lock lock(*queue);
  if (queue->is_urgent.load(std::memory_order_relaxed)) issue(*queue);
}

void Scheduler::trace_answer(mob_rank_t rank, size_t operations, uint64_t begin,
                             mob_status_t status) const {
  Timeline* timeline = services_.instrumentation.timeline();
  if (timeline == nullptr) return;
  char arguments[96];
  std::snprintf(arguments, sizeof arguments, R"("target":%d,"operations":%zu,"status":%d)", rank,
                operations, status);
  timeline->add("issued", "schedule", begin, arguments);
}

void Scheduler::trace_issue(const Queue& queue, const schedule::Costs& costs, uint64_t begin,
                            bool moves) const {
  const size_t rma_bytes = moves ? services_.network.rma().least_bytes() : 0;
  const std::string text = schedule::write_recorded(queue.rank, queue.operations, costs,
                                                    queue.policy, queue.plan, rma_bytes);
  services_.instrumentation.timeline()->add("recorded", "schedule", begin, text.c_str());
}

}  // namespace mobius::engine
