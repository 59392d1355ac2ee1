// SPDX-License-Identifier: BSD-3-Clause

// Waiting for adjacent words.

#include <algorithm>
#include <cstring>
#include <thread>

#include "random/actor.h"

namespace random_program {

namespace {

mob_status_t wait_for_one(const Segment& segment, const void* word) {
  const mob_compare_t compare = segment.flags.compare;
  const uint64_t value = segment.flags.values[0];
  switch (segment.type) {
    case MOB_INT32:
      return mob_wait_until_i4(static_cast<const int32_t*>(word), compare,
                               static_cast<int32_t>(value));
    case MOB_UINT32:
      return mob_wait_until_u4(static_cast<const uint32_t*>(word), compare,
                               static_cast<uint32_t>(value));
    case MOB_INT64:
      return mob_wait_until_i8(static_cast<const int64_t*>(word), compare,
                               static_cast<int64_t>(value));
    default:
      return mob_wait_until_u8(static_cast<const uint64_t*>(word), compare, value);
  }
}

// The words that were found; all that count if `all`.
std::vector<size_t> wait_once(const mob_wait_set_t& set, WaitSet how) {
  std::vector<size_t> indices(set.count);
  size_t found = 0;
  int done = 0;
  switch (how) {
    case WaitSet::kAll:
      check(mob_wait_until_all(&set), "mob_wait_until_all");
      return {};
    case WaitSet::kTestAll:
      while (done == 0) {
        check(mob_test_until_all(&set, &done), "mob_test_until_all");
        std::this_thread::yield();
      }
      return {};
    case WaitSet::kAny:
      check(mob_wait_until_any(&set, indices.data()), "mob_wait_until_any");
      return {indices[0]};
    case WaitSet::kTestAny:
      for (indices[0] = set.count; indices[0] == set.count;) {
        check(mob_test_until_any(&set, indices.data()), "mob_test_until_any");
        std::this_thread::yield();
      }
      return {indices[0]};
    case WaitSet::kSome:
      check(mob_wait_until_some(&set, indices.data(), &found), "mob_wait_until_some");
      break;
    case WaitSet::kTestSome:
      while (found == 0) {
        check(mob_test_until_some(&set, indices.data(), &found), "mob_test_until_some");
        std::this_thread::yield();
      }
      break;
  }
  if (found == 0 || found > set.count) report("a wait for some words found none");
  indices.resize(found);
  return indices;
}

}  // namespace

void ActorRunner::await_flags(const Step& step, const Model& model) {
  const Segment& segment = round_->segments[step.segment];
  const Flags& flags = segment.flags;
  const size_t count = flags.senders.size();
  const size_t width = flag_width(segment);
  const unsigned char* words = at(rank_, segment.word);
  std::vector<unsigned char> values(count * width);
  for (size_t i = 0; i < count; ++i) std::memcpy(&values[i * width], &flags.values[i], width);
  const bool all = step.wait_set == WaitSet::kAll || step.wait_set == WaitSet::kTestAll;
  std::vector<int> excluded(count);
  size_t left = 0;
  for (size_t i = 0; i < count; ++i) {
    if (flags.senders[i] >= 0) ++left;
    excluded[i] = all && flags.senders[i] < 0 ? 1 : 0;
  }
  mob_wait_set_t set{words, count, segment.type, flags.compare, values.data(), 0, nullptr};
  set.one_value = flags.one_value ? 1 : 0;
  const auto exclude = [&] {
    const bool any = std::find(excluded.begin(), excluded.end(), 1) != excluded.end();
    set.excluded = any ? excluded.data() : nullptr;
  };
  exclude();
  if (all) {
    if (count == 1 && left == 1 && step.wait_set == WaitSet::kAll) {
      check(wait_for_one(segment, words), "mob_wait_until");
    } else {
      wait_once(set, step.wait_set);
    }
    for (size_t i = 0; i < count; ++i) {
      if (flags.senders[i] >= 0) check_flag(step, i, model);
    }
    return;
  }
  while (left > 0) {
    for (const size_t i : wait_once(set, step.wait_set)) {
      if (i >= count || flags.senders[i] < 0 || excluded[i] != 0) {
        report("a wait found word " + std::to_string(i) + ", for which it did not wait, of " +
               text_of(segment));
      }
      check_flag(step, i, model);
      excluded[i] = 1;
      --left;
    }
    exclude();
  }
  // No other actor changes the other words.
  size_t index = 0;
  check(mob_test_until_any(&set, &index), "mob_test_until_any");
  if (index != count) {
    report("word " + std::to_string(index) + " fulfils a condition in " + text_of(segment));
  }
}

void ActorRunner::check_flag(const Step& step, size_t word, const Model& model) const {
  const Segment& segment = round_->segments[step.segment];
  const size_t width = flag_width(segment);
  const Range slice = flag_slice(segment, word);
  const Bytes& awaited = model.awaited(self_).flags.at(step.segment);
  uint64_t held = 0;
  std::memcpy(&held, at(rank_, segment.word + word * width), width);
  if (held != segment.flags.last[word]) {
    report("word " + std::to_string(word) + " is " + std::to_string(held) + ", not " +
           std::to_string(segment.flags.last[word]) + ", after a wait for it in " +
           text_of(segment));
  }
  if (!std::equal(at(rank_, slice.start), at(rank_, slice.end()),
                  awaited.begin() + static_cast<ptrdiff_t>(slice.start - segment.range.start))) {
    report("what was put before word " + std::to_string(word) + " is not there in " +
           text_of(segment));
  }
}

}  // namespace random_program
