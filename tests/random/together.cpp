// SPDX-License-Identifier: BSD-3-Clause
#include "random/together.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "model/elements.h"
#include "random/report.h"

namespace random_program {

using mobius_test::Random;

namespace {

// Eight bytes at a time, because some inputs are long.
void fill(Random& random, unsigned char* to, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = random.next();
    std::memcpy(to + at, &word, std::min<size_t>(8, bytes - at));
  }
}

// Sums and products of these depend on the order, which is documented.
template <typename T>
void fill_with_numbers(Random& random, Bytes* bytes) {
  for (size_t at = 0; at + sizeof(T) <= bytes->size(); at += sizeof(T)) {
    const auto size = static_cast<T>(1 + static_cast<double>(random.next() >> 12) * 0x1p-52);
    const T value = random.chance(50) ? size : -size;
    std::memcpy(bytes->data() + at, &value, sizeof value);
  }
}

void fold(const Together& together, Bytes* accumulated, const Bytes& in) {
  if (together.user) {
    size_t element = together.element;
    return compose(accumulated->data(), in.data(), together.count, &element);
  }
  for (size_t i = 0; i < together.count; ++i) {
    const size_t at = i * together.element;
    mobius_test::combine(together.type, together.op, accumulated->data() + at, in.data() + at,
                         nullptr);
  }
}

void reduce_all(const Together& together, const std::vector<Bytes>& inputs,
                std::vector<Bytes>* outputs) {
  Bytes accumulated;
  for (size_t m = 0; m < together.size(); ++m) {
    if (m == 0) {
      accumulated = inputs[m];
    } else {
      if (together.call == Call::kExscan) (*outputs)[m] = accumulated;
      fold(together, &accumulated, inputs[m]);
    }
    if (together.call == Call::kScan) (*outputs)[m] = accumulated;
  }
  if (together.call == Call::kReduce) {
    (*outputs)[static_cast<size_t>(together.root)] = accumulated;
  } else if (together.call == Call::kAllreduce) {
    for (Bytes& output : *outputs) output = accumulated;
  }
}

// Moves the bytes of `from` for `to`.
void move_block(const Together& together, size_t from, size_t to, const std::vector<Bytes>& inputs,
                std::vector<Bytes>* outputs) {
  const size_t size = together.size();
  size_t bytes = together.count;
  size_t source = 0;
  size_t place = 0;
  switch (together.call) {
    case Call::kGather:
    case Call::kAllgather:
      place = from * bytes;
      break;
    case Call::kGatherv:
    case Call::kAllgatherv:
      bytes = together.counts[from];
      place = displacements(together, to, true)[from];
      break;
    case Call::kScatter:
      source = to * bytes;
      break;
    case Call::kAlltoall:
      source = to * bytes;
      place = from * bytes;
      break;
    case Call::kAlltoallv:
      bytes = together.counts[from * size + to];
      source = displacements(together, from, false)[to];
      place = displacements(together, to, true)[from];
      break;
    default:
      break;
  }
  if (bytes > 0) std::memcpy((*outputs)[to].data() + place, inputs[from].data() + source, bytes);
}

size_t extent(const Together& together, size_t member, bool output) {
  const std::vector<size_t> places = displacements(together, member, output);
  const std::vector<size_t> counts = counts_of(together, member, output);
  size_t end = 0;
  for (size_t i = 0; i < places.size(); ++i) end = std::max(end, places[i] + counts[i]);
  return end;
}

uint64_t load(const unsigned char* from, size_t width) {
  uint64_t value = 0;
  std::memcpy(&value, from, width);
  return value;
}

}  // namespace

mob_rank_t Together::member(mob_rank_t rank) const {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<mob_rank_t>(found - members.begin());
}

bool moves_data(Call call) { return call >= Call::kBroadcast && call <= Call::kAlltoallv; }

bool reduces(Call call) { return call >= Call::kReduce && call <= Call::kExscan; }

bool may_be_in_place(Call call) { return moves_data(call) && call != Call::kBroadcast; }

bool has_root(Call call) {
  return call == Call::kBroadcast || call == Call::kReduce || call == Call::kGather ||
         call == Call::kGatherv || call == Call::kScatter;
}

std::vector<size_t> counts_of(const Together& together, size_t member, bool output) {
  if (together.call != Call::kAlltoallv) return together.counts;
  const size_t size = together.size();
  std::vector<size_t> counts;
  for (size_t i = 0; i < size; ++i) {
    counts.push_back(together.counts[output ? i * size + member : member * size + i]);
  }
  return counts;
}

std::vector<size_t> displacements(const Together& together, size_t member, bool output) {
  const std::vector<size_t> counts = counts_of(together, member, output);
  // In place both lists are the same.
  Random random(together.seed * 8191 + member * 2 + (output && !together.in_place ? 1 : 0));
  std::vector<size_t> order(counts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (random.chance(60)) random.shuffle(order);
  std::vector<size_t> places(counts.size());
  size_t at = random.chance(50) ? 0 : random.below(9);
  for (const size_t i : order) {
    places[i] = at;
    at += counts[i] + (random.chance(50) ? 0 : random.below(20));
  }
  return places;
}

size_t input_bytes(const Together& together, size_t member) {
  const bool root = static_cast<size_t>(together.root) == member;
  switch (together.call) {
    case Call::kBroadcast:
      return root ? together.count : 0;
    case Call::kGatherv:
    case Call::kAllgatherv:
      return together.counts[member];
    case Call::kScatter:
      return root ? together.count * together.size() : 0;
    case Call::kAlltoall:
      return together.count * together.size();
    case Call::kAlltoallv:
      return extent(together, member, false);
    default:
      return moves_data(together.call) ? together.count * together.element : 0;
  }
}

size_t output_bytes(const Together& together, size_t member) {
  const bool gets = !has_root(together.call) || together.call == Call::kBroadcast ||
                    together.call == Call::kScatter || static_cast<size_t>(together.root) == member;
  if (!gets) return 0;
  switch (together.call) {
    case Call::kGather:
    case Call::kAllgather:
    case Call::kAlltoall:
      return together.count * together.size();
    case Call::kGatherv:
    case Call::kAllgatherv:
    case Call::kAlltoallv:
      return extent(together, member, true);
    default:
      return moves_data(together.call) ? together.count * together.element : 0;
  }
}

size_t place_in_output(const Together& together, size_t member) {
  switch (together.call) {
    case Call::kGather:
    case Call::kAllgather:
      return member * together.count;
    case Call::kGatherv:
    case Call::kAllgatherv:
      return displacements(together, member, true)[member];
    default:
      return 0;
  }
}

Bytes made_input(const Together& together, size_t member) {
  Random random(together.seed * 1000003 + member);
  Bytes input(input_bytes(together, member));
  if (!reduces(together.call) || together.user || !mobius_test::is_real_or_complex(together.type)) {
    fill(random, input.data(), input.size());
  } else if (together.type == MOB_FLOAT) {
    fill_with_numbers<float>(random, &input);
  } else if (together.type == MOB_DOUBLE) {
    fill_with_numbers<double>(random, &input);
  } else {
    // A compiler may round products of complex numbers in more than one way.
    for (size_t at = 0; at < input.size(); at += together.element) {
      mobius_test::write_exact(random, together.type, &input[at]);
    }
  }
  return input;
}

void fill_block(const Together& together, mob_rank_t rank, unsigned char* bytes) {
  Random random(together.seed * 1000003 + static_cast<uint64_t>(rank));
  Bytes all(together.bytes);
  if (together.call != Call::kAllocate || together.manner != Manner::kZeroed) {
    fill(random, all.data(), all.size());
  }
  // A block that was resized keeps its contents.
  const size_t kept = together.call == Call::kResize ? std::min(together.before, all.size()) : 0;
  if (kept < all.size()) std::memcpy(bytes + kept, all.data() + kept, all.size() - kept);
}

void combine_all(const Together& together, const std::vector<Bytes>& inputs,
                 std::vector<Bytes>* outputs) {
  if (reduces(together.call)) return reduce_all(together, inputs, outputs);
  const auto root = static_cast<size_t>(together.root);
  const size_t size = together.size();
  if (together.call == Call::kBroadcast) {
    for (Bytes& output : *outputs) output = inputs[root];
    return;
  }
  for (size_t from = 0; from < size; ++from) {
    for (size_t to = 0; to < size; ++to) {
      const bool gathers = together.call == Call::kGather || together.call == Call::kGatherv;
      if (gathers && to != root) continue;
      if (together.call == Call::kScatter && from != root) continue;
      move_block(together, from, to, inputs, outputs);
    }
  }
}

void compose(void* accumulated, const void* in, size_t count, void* argument) {
  const size_t element = *static_cast<const size_t*>(argument);
  const size_t alignment = std::min<size_t>(16, element & -element);
  if (reinterpret_cast<uintptr_t>(accumulated) % alignment != 0 ||
      reinterpret_cast<uintptr_t>(in) % alignment != 0) {
    report("an operation of the user's got elements that are not aligned");
  }
  const size_t width = element >= 16 ? 8 : element >= 8 ? 4 : element >= 4 ? 2 : 1;
  auto* a = static_cast<unsigned char*>(accumulated);
  const auto* b = static_cast<const unsigned char*>(in);
  for (size_t i = 0; i < count; ++i, a += element, b += element) {
    if (element == 1) {  // the last value that is not 0
      if (*b != 0) *a = *b;
      continue;
    }
    // x → factor × x + sum.
    const uint64_t factor = load(b, width);
    const uint64_t product = load(a, width) * factor;
    const uint64_t sum = load(a + width, width) * factor + load(b + width, width);
    std::memcpy(a, &product, width);
    std::memcpy(a + width, &sum, width);
    for (size_t at = 2 * width; at < element; ++at) a[at] ^= b[at];
  }
}

}  // namespace random_program
