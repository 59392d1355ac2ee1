// SPDX-License-Identifier: BSD-3-Clause

// Collective calls that move data.

#include <algorithm>

#include "model/elements.h"
#include "random/lane.h"

namespace random_program {

namespace {

// Mostly some cache lines; sometimes as much as is moved in place, or in several pieces.
size_t some_bytes(mobius_test::Random& random) {
  const size_t die = random.below(100);
  if (die < 3) return 0;
  if (die < 75) return random.between(1, 600);
  if (die < 93) return random.between(1, 6000);
  if (die < 98) return random.between(16000, 70000);
  return random.between(60000, 250000);
}

}  // namespace

void LaneBuilder::add_data() {
  const Team& team = random_.pick(teams_);
  const size_t size = team.members.size();
  const auto calls = static_cast<size_t>(Call::kAlltoallv) + 1;
  Together data = start(static_cast<Call>(random_.below(calls)), team);
  if (data.call == Call::kBarrier) return push(std::move(data));
  if (has_root(data.call)) data.root = static_cast<mob_rank_t>(random_.below(size));
  data.in_place = may_be_in_place(data.call) && random_.chance(25);
  size_t bytes = some_bytes(random_);
  if (!reduces(data.call) && data.call != Call::kBroadcast && bytes > 6000) bytes /= size;
  if (reduces(data.call)) {
    data.user = random_.chance(40);
    data.type = static_cast<mob_type_t>(random_.below(MOB_TYPE_COUNT));
    data.element = mobius_test::bytes_of(data.type);
    const std::vector<size_t> elements = {1, 2, 3, 4, 6, 8, 12, 16, 24, 40, 100};
    if (data.user) data.element = random_.pick(elements);
    do {
      data.op = static_cast<mob_op_t>(random_.below(MOB_OP_COUNT));
    } while (!mobius_test::is_defined(data.op, data.type));
    data.count = (bytes + data.element - 1) / data.element;
  } else {
    data.count = bytes;
  }
  choose_counts(&data, bytes);
  choose_buffers(&data);
  push(std::move(data));
}

void LaneBuilder::choose_counts(Together* data, size_t bytes) {
  const size_t size = data->size();
  const auto some = [&] { return random_.chance(20) ? 0 : random_.below(bytes + 1); };
  if (data->call == Call::kGatherv || data->call == Call::kAllgatherv) {
    for (size_t m = 0; m < size; ++m) data->counts.push_back(some());
  } else if (data->call == Call::kAlltoallv) {
    for (size_t i = 0; i < size * size; ++i) data->counts.push_back(some());
    if (!data->in_place) return;
    for (size_t from = 0; from < size; ++from) {
      for (size_t to = 0; to < from; ++to) {
        data->counts[from * size + to] = data->counts[to * size + from];
      }
    }
  }
}

void LaneBuilder::choose_buffers(Together* data) {
  const size_t alignment =
      reduces(data->call) && !data->user ? mobius_test::alignment_of(data->type) : 1;
  const auto choose = [&](size_t bytes, bool may_be_own) {
    Buffer buffer;
    buffer.place = random_.chance(40) ? Buffer::kShared : Buffer::kPrivate;
    buffer.at = random_.chance(50) ? 0 : alignment * random_.below(9);
    if (!may_be_own || bytes == 0 || bytes > shape_.local_bytes / 2) return buffer;
    buffer.place = Buffer::kItsOwn;
    buffer.at = random_.below((shape_.local_bytes - bytes) / alignment + 1) * alignment;
    return buffer;
  };
  // An actor's own memory does not hold numbers, and elements in it are not aligned.
  const bool own = !reduces(data->call) || data->user;
  for (size_t m = 0; m < data->size(); ++m) {
    data->in.push_back(choose(input_bytes(*data, m), own && !data->in_place && random_.chance(40)));
    Buffer out;
    for (int tries = 0; tries < 8; ++tries) {
      out = choose(output_bytes(*data, m), !data->in_place && random_.chance(40));
      const Buffer& in = data->in.back();
      const Range from{in.at, input_bytes(*data, m)};
      const Range to{out.at, output_bytes(*data, m)};
      if (in.place != Buffer::kItsOwn || out.place != Buffer::kItsOwn || !from.overlaps(to)) break;
      out = {};
    }
    data->out.push_back(out);
  }
  // The single buffer of a broadcast.
  const auto root = static_cast<size_t>(data->root);
  if (data->call == Call::kBroadcast) data->in[root] = data->out[root];
}

}  // namespace random_program
