// SPDX-License-Identifier: BSD-3-Clause
#include "random/actor.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "model/elements.h"
#include "random/by_name.h"

namespace random_program {

void place_payload(const mob_message_t* message, void* /*argument*/, mob_delivery_t* delivery) {
  std::memcpy(&delivery->payload, message->header, sizeof delivery->payload);
}

ActorRunner::ActorRunner(const Shape& shape, Actor self, const Places& places)
    : shape_(shape),
      self_(self),
      rank_(shape.rank_of(self)),
      places_(places),
      together_(shape, self, places) {
  check(mob_counter_create(&told_), "mob_counter_create");
  check(mob_counter_create(&origin_), "mob_counter_create");
  check(mob_counter_create(&completion_), "mob_counter_create");
}

ActorRunner::~ActorRunner() {
  check(mob_counter_free(told_), "mob_counter_free");
  check(mob_counter_free(origin_), "mob_counter_free");
  check(mob_counter_free(completion_), "mob_counter_free");
}

void ActorRunner::start(const Program& program) {
  local_.resize(shape_.local_bytes);
  fill_local(program, self_, local_.data());
  if (!program.own_context[static_cast<size_t>(self_)]) return;
  check(mob_context_create(&context_), "mob_context_create");
  check(mob_context_use(context_), "mob_context_use");
}

void ActorRunner::finish() {
  together_.check_gone();
  check(mob_context_free(context_), "mob_context_free");
  context_ = MOB_CONTEXT_DEFAULT;
}

void ActorRunner::run(const Round& round, const Model& model) {
  log_.assign(kLogWords, 0);
  anything_.clear();
  round_ = &round;
  const ActorSteps& steps = round.actors[static_cast<size_t>(self_)];
  for (const Step& step : steps.before) run(step, model);
  for (const Step& step : steps.after) run(step, model);
}

void ActorRunner::check_local(const Model& model) const {
  together_.check_blocks(model);
  const Bytes& expected = model.local(self_);
  const auto [got, wanted] = std::mismatch(local_.begin(), local_.end(), expected.begin());
  if (got == local_.end()) return;
  report("memory of actor " + std::to_string(self_) + " differs at " +
         std::to_string(got - local_.begin()) + ": " + std::to_string(*got) + " instead of " +
         std::to_string(*wanted));
}

void ActorRunner::run(const Step& step, const Model& model) {
  switch (step.what) {
    case What::kTransfer:
      return transfer(step);
    case What::kPutValue: {
      void* remote = at(step.rank, step.remote, step.block);
      const mob_status_t status =
          step.width == 8   ? mob_put8(step.rank, remote, step.value)
          : step.width == 4 ? mob_put4(step.rank, remote, static_cast<uint32_t>(step.value))
          : step.width == 2 ? mob_put2(step.rank, remote, static_cast<uint16_t>(step.value))
                            : mob_put1(step.rank, remote, static_cast<uint8_t>(step.value));
      return check(status, "mob_put1/2/4/8");
    }
    case What::kGetValue: {
      const void* remote = at(step.rank, step.remote, step.block);
      uint64_t value = 0;
      const mob_status_t status =
          step.width == 8   ? mob_get8(step.rank, remote, &value)
          : step.width == 4 ? mob_get4(step.rank, remote, reinterpret_cast<uint32_t*>(&value))
          : step.width == 2 ? mob_get2(step.rank, remote, reinterpret_cast<uint16_t*>(&value))
                            : mob_get1(step.rank, remote, reinterpret_cast<uint8_t*>(&value));
      std::memcpy(&local_[step.local], &value, step.width);
      return check(status, "mob_get1/2/4/8");
    }
    case What::kUpdate:
      return update(step);
    case What::kChain:
      return chain(step);
    case What::kComplete:
      return complete(step);
    case What::kFlush:
      return check(step.rank < 0 ? mob_flush_all() : mob_flush(step.rank), "mob_flush");
    case What::kFlushLocal:
      return check(mob_flush_local_all(), "mob_flush_local_all");
    case What::kFence:
      return check(mob_fence(), "mob_fence");
    case What::kAwaitCompletion:
      return await_counter(completion_, step.count, "completion");
    case What::kAwait:
      return await(step, model);
    case What::kAwaitFlags:
      return await_flags(step, model);
    case What::kTogether: {
      const Lane& lane = round_->lanes[static_cast<size_t>(shape_.lane_of(self_))];
      return together_.run(lane.steps[step.together], model, local_.data());
    }
  }
}

void ActorRunner::transfer(const Step& step) {
  unsigned char* fetched = local_.data();
  if (step.fetches_anything) fetched = anything_.emplace_back(step.plan.total_bytes).data();
  // The library only reads an operand.
  unsigned char* local = step.operand.empty()
                             ? local_.data()
                             : const_cast<unsigned char*>(step.operand.data()) + step.skew;
  mobius_test::Description description(step.plan, at(step.plan.rank, 0, step.block), local,
                                       fetched);
  mob_transfer_t& transfer = description.transfer;
  if (step.counts_origin) transfer.origin_counter = origin_;
  if (step.counts_completion) transfer.completion_counter = completion_;
  if (step.told >= 0) transfer.target_counter = places_.counters[static_cast<size_t>(step.told)];
  if (step.has_signal) {
    transfer.signal = reinterpret_cast<uint64_t*>(at(step.plan.rank, step.signal));
    transfer.signal_value = step.signal_value;
    transfer.signal_op = step.signal_op;
  }
  start_transfer(step, transfer);
}

void ActorRunner::start_transfer(const Step& step, const mob_transfer_t& transfer) {
  mob_handle_t handle = MOB_HANDLE_DONE;
  mob_status_t status = MOB_OK;
  if (step.by_message) {
    status = send(step, transfer, &handle);
  } else if (!step.by_name || !call_by_name(transfer, step.mode, &handle, &status)) {
    status = step.mode == Mode::kBlocking ? mob_transfer(&transfer)
             : step.mode == Mode::kHandle ? mob_transfer_nb(&transfer, &handle)
                                          : mob_transfer_nbi(&transfer);
  }
  check(status, "a transfer");
  if (step.mode == Mode::kHandle) handles_.push_back(handle);
}

mob_status_t ActorRunner::send(const Step& step, const mob_transfer_t& transfer,
                               mob_handle_t* handle) {
  const mob_notify_t notify = {transfer.origin_counter, transfer.target_counter,
                               transfer.completion_counter};
  void* const header = transfer.remote;
  switch (step.mode) {
    case Mode::kBlocking:
      return mob_message_send(transfer.rank, kPlace, &header, sizeof header, transfer.local,
                              transfer.bytes, &notify);
    case Mode::kHandle:
      return mob_message_send_nb(transfer.rank, kPlace, &header, sizeof header, transfer.local,
                                 transfer.bytes, &notify, handle);
    case Mode::kImplicit:
      return mob_message_send_nbi(transfer.rank, kPlace, &header, sizeof header, transfer.local,
                                  transfer.bytes, &notify);
  }
  return MOB_ERR_ARGUMENT;
}

void ActorRunner::update(const Step& step) {
  unsigned char* old = &local_[step.local];
  if (step.update == Update::kFetchOp) {
    return check(
        mob_fetch_op(step.rank, at(step.rank, step.plan.remote, step.block), step.plan.type,
                     step.plan.op, &step.operand[step.skew + step.plan.local], old),
        "mob_fetch_op");
  }
  void* word = at(step.rank, step.remote, step.block);
  const auto run = [&](auto value, auto expected, auto add, auto conjoin, auto join, auto differ,
                       auto swap, auto compare_swap) {
    decltype(value) held = 0;
    const mob_status_t status =
        step.update == Update::kAdd    ? add(step.rank, word, value, &held)
        : step.update == Update::kAnd  ? conjoin(step.rank, word, value, &held)
        : step.update == Update::kOr   ? join(step.rank, word, value, &held)
        : step.update == Update::kXor  ? differ(step.rank, word, value, &held)
        : step.update == Update::kSwap ? swap(step.rank, word, value, &held)
                                       : compare_swap(step.rank, word, expected, value, &held);
    std::memcpy(old, &held, sizeof held);
    check(status, "an atomic update");
  };
  if (step.width == 8) {
    run(step.value, step.expected, mob_fetch_add8, mob_fetch_and8, mob_fetch_or8, mob_fetch_xor8,
        mob_swap8, mob_compare_swap8);
  } else {
    run(static_cast<uint32_t>(step.value), static_cast<uint32_t>(step.expected), mob_fetch_add4,
        mob_fetch_and4, mob_fetch_or4, mob_fetch_xor4, mob_swap4, mob_compare_swap4);
  }
}

uint64_t ActorRunner::chain_of_compare_swaps(const Step& step) {
  void* word = at(step.rank, step.remote);
  const bool sums = step.plan.op == MOB_SUM;
  const auto loop = [&](auto expected, auto compare_swap) {
    using Word = decltype(expected);
    for (;;) {
      const auto value = static_cast<Word>(sums ? expected + step.value : step.value);
      Word old = 0;
      check(compare_swap(step.rank, word, expected, value, &old), "mob_compare_swap");
      if (old == expected) return uint64_t{old};
      expected = old;
    }
  };
  return step.width == 8 ? loop(uint64_t{0}, mob_compare_swap8)
                         : loop(uint32_t{0}, mob_compare_swap4);
}

// Reads, adds and writes under a lock.
uint64_t ActorRunner::locked_update(const Step& step) {
  const LockPlace lock{step.lock, 0, step.rank};
  // For every other step, access is only started.
  const bool starts = step.lock == Lock::kAccess && !step.tries && step.value % 2 == 0;
  if (starts) {
    check(mob_access_lock_nbi(places_.access[0], step.rank, MOB_EXCLUSIVE), "mob_access_lock_nbi");
  } else if (!step.tries) {
    acquire(places_, lock);
  } else {
    while (!try_acquire(places_, lock, MOB_EXCLUSIVE)) std::this_thread::yield();
  }
  void* word = at(step.rank, step.remote);
  uint64_t old = 0;
  check(mob_get(step.rank, word, &old, step.width), "mob_get");
  uint64_t value = old + step.value;
  if (step.plan.type == MOB_DOUBLE) {
    double number = 0;
    std::memcpy(&number, &old, sizeof number);
    old = static_cast<uint64_t>(number);
    number += static_cast<double>(step.value);
    std::memcpy(&value, &number, sizeof value);
  }
  check(mob_put(step.rank, word, &value, step.width), "mob_put");
  if (!starts) check(mob_flush(step.rank), "mob_flush");
  release(places_, lock);
  return old;
}

void ActorRunner::chain(const Step& step) {
  void* word = at(step.rank, step.remote);
  uint64_t old = 0;
  auto* old4 = reinterpret_cast<uint32_t*>(&old);
  const auto value4 = static_cast<uint32_t>(step.value);
  mob_status_t status = MOB_OK;
  switch (step.update) {
    case Update::kLocked:
      old = locked_update(step);
      break;
    case Update::kCompareSwapLoop:
      old = chain_of_compare_swaps(step);
      break;
    case Update::kAdd:
      status = step.width == 8 ? mob_fetch_add8(step.rank, word, step.value, &old)
                               : mob_fetch_add4(step.rank, word, value4, old4);
      break;
    case Update::kSwap:
      status = step.width == 8 ? mob_swap8(step.rank, word, step.value, &old)
                               : mob_swap4(step.rank, word, value4, old4);
      break;
    default: {
      const auto number = static_cast<double>(step.value);
      double old_number = 0;
      const bool real = step.plan.type == MOB_DOUBLE;
      const void* operand = real ? static_cast<const void*>(&number) : &step.value;
      void* fetched = real ? static_cast<void*>(&old_number) : &old;
      status = mob_fetch_op(step.rank, word, step.plan.type, step.plan.op, operand, fetched);
      if (real) old = static_cast<uint64_t>(old_number);
    }
  }
  check(status, "an atomic update of a chain");
  log_[step.log] = old;
}

void ActorRunner::complete(const Step& step) {
  if (step.count > 0) await_counter(origin_, step.count, "origin");
  const size_t count = handles_.size();
  std::vector<size_t> indices(count);
  size_t completed = 0;
  switch (step.completion) {
    case Completion::kEach:
      for (mob_handle_t& handle : handles_) check(mob_wait(&handle), "mob_wait");
      break;
    case Completion::kReverse:
      for (size_t i = count; i-- > 0;) check(mob_wait(&handles_[i]), "mob_wait");
      break;
    case Completion::kAny:
      for (size_t index = 0; index < count;) {
        check(mob_wait_any(handles_.data(), count, &index), "mob_wait_any");
      }
      break;
    case Completion::kSome:
      do {
        check(mob_wait_some(handles_.data(), count, indices.data(), &completed), "mob_wait_some");
      } while (completed > 0);
      break;
    case Completion::kTest:
      for (mob_handle_t& handle : handles_) {
        for (int done = 0; done == 0;) check(mob_test(&handle, &done), "mob_test");
      }
      break;
    case Completion::kAll:
    case Completion::kOriginCounter:
      check(mob_wait_all(handles_.data(), count), "mob_wait_all");
      break;
  }
  for (const mob_handle_t handle : handles_) {
    if (handle != MOB_HANDLE_DONE) report("a handle is not done after it was waited for");
  }
  handles_.clear();
}

void ActorRunner::await_counter(mob_counter_t counter, uint64_t count, const char* which) {
  uint64_t left = 0;
  if (count > 1) check(mob_counter_wait(counter, 1, nullptr), "mob_counter_wait");
  check(mob_counter_wait(counter, count > 1 ? count - 1 : count, &left), "mob_counter_wait");
  if (left == 0) return;
  report("the " + std::string(which) + " counter of actor " + std::to_string(self_) + " counted " +
         std::to_string(left) + " too many");
}

void ActorRunner::await(const Step& step, const Model& model) {
  const Awaited& awaited = model.awaited(self_);
  if (step.count > 0) await_counter(told_, step.count, "target");
  for (size_t i = 0; i < step.words.size(); ++i) {
    const auto* word = reinterpret_cast<const uint64_t*>(at(rank_, step.words[i]));
    check(mob_wait_until_u8(word, MOB_EQ, awaited.words[i]), "mob_wait_until_u8");
  }
  for (size_t i = 0; i < step.regions.size(); ++i) {
    const Range& region = step.regions[i];
    if (std::memcmp(at(rank_, region.start), awaited.regions[i].data(), region.bytes) == 0)
      continue;
    report("rank " + std::to_string(rank_) + " was told, but what lies at [" +
           std::to_string(region.start) + ", " + std::to_string(region.end()) +
           ") is not what was put");
  }
}

}  // namespace random_program
