// SPDX-License-Identifier: BSD-3-Clause

// Random shapes within given ranges.

#include <algorithm>

#include "model/elements.h"
#include "model/plan.h"

namespace mobius_test {
namespace {

// One side of a transfer: its permitted range and form.
struct Side {
  Range range;
  size_t alignment;
  bool written;  // if so, no two pieces may overlap

  size_t first() const { return (range.start + alignment - 1) / alignment * alignment; }
  size_t room() const { return first() < range.end() ? range.end() - first() : 0; }
  // A place for `bytes` bytes; often at one of the ends.
  size_t place(Random& random, size_t bytes) const {
    const size_t most = (room() - bytes) / alignment;
    const size_t which = random.below(4);
    const size_t step = which == 0 ? 0 : which == 1 ? most : random.below(most + 1);
    return first() + step * alignment;
  }
};

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Strides with which runs do not overlap (on a side that is read: any strides), in any order of
// sizes, some of them negative. False if the box does not fit.
bool place_box(Random& random, const Side& side, size_t run, const std::vector<size_t>& counts,
               size_t* base, std::vector<ptrdiff_t>* strides, Range* hull) {
  std::vector<size_t> order(counts.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  random.shuffle(order);
  strides->assign(counts.size(), 0);
  size_t extent = run;
  size_t before = 0;  // bytes of the hull before the first run
  for (const size_t d : order) {
    size_t stride = round_up(extent, side.alignment);
    if (random.chance(60)) stride += side.alignment * random.below(9);
    if (!side.written && random.chance(20)) stride = side.alignment * random.below(4);
    const size_t length = stride * (counts[d] - 1);
    extent += length;
    const bool back = random.chance(25);
    if (back) before += length;
    (*strides)[d] = back ? -static_cast<ptrdiff_t>(stride) : static_cast<ptrdiff_t>(stride);
  }
  if (extent > side.room()) return false;
  *hull = {side.place(random, extent), extent};
  *base = hull->start + before;
  return true;
}

// Places for pieces of the given lengths, in any order. False if they do not fit.
bool place_list(Random& random, const Side& side, const std::vector<size_t>& lengths,
                std::vector<size_t>* places, Range* hull) {
  places->assign(lengths.size(), 0);
  *hull = side.range;
  if (!side.written) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > side.room()) return false;
      (*places)[i] = side.place(random, lengths[i]);
    }
    return true;
  }
  size_t needed = 0;
  for (const size_t length : lengths) needed += round_up(length, side.alignment);
  if (needed > side.room()) return false;
  size_t slack = (side.room() - needed) / side.alignment;
  std::vector<size_t> order(lengths.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  random.shuffle(order);
  size_t at = side.first();
  for (const size_t i : order) {
    const size_t gap = random.chance(50) ? 0 : random.below(slack + 1);
    slack -= gap;
    at += gap * side.alignment;
    (*places)[i] = at;
    at += round_up(lengths[i], side.alignment);
  }
  return true;
}

std::vector<size_t> cut(Random& random, size_t units, size_t unit) {
  std::vector<size_t> lengths;
  while (units > 0) {
    const size_t part = random.between(1, units);
    lengths.push_back(part * unit);
    units -= part;
    if (random.chance(10)) lengths.push_back(0);
  }
  return lengths;
}

bool try_shape(Random& random, mob_shape_t shape, size_t size, const Side& remote,
               const Side& local, size_t unit, Plan* plan) {
  const size_t run = unit * random.between(1, size);
  switch (shape) {
    case MOB_CONTIGUOUS: {
      size_t bytes = unit * random.between(1, size * size);
      bytes = std::min(bytes, std::min(remote.room(), local.room()) / unit * unit);
      if (bytes == 0) return false;
      plan->bytes = plan->total_bytes = bytes;
      plan->remote_hull = {plan->remote = remote.place(random, bytes), bytes};
      plan->local_hull = {plan->local = local.place(random, bytes), bytes};
      return true;
    }
    case MOB_STRIDED: {
      const size_t dimensions = random.chance(5) ? MOB_MAX_DIMENSIONS - 1 : random.below(4);
      plan->counts.clear();
      plan->bytes = plan->total_bytes = run;
      for (size_t d = 0; d < dimensions; ++d) {
        plan->counts.push_back(random.between(1, dimensions > 3 ? 2 : std::min<size_t>(size, 9)));
        plan->total_bytes *= plan->counts.back();
      }
      return place_box(random, remote, run, plan->counts, &plan->remote, &plan->remote_strides,
                       &plan->remote_hull) &&
             place_box(random, local, run, plan->counts, &plan->local, &plan->local_strides,
                       &plan->local_hull);
    }
    case MOB_PIECES: {
      const std::vector<size_t> lengths(random.between(1, size), run);
      plan->bytes = run;
      plan->total_bytes = run * lengths.size();
      return place_list(random, remote, lengths, &plan->remotes, &plan->remote_hull) &&
             place_list(random, local, lengths, &plan->locals, &plan->local_hull);
    }
    case MOB_SPANS: {
      const size_t units = random.between(1, size * 3);
      plan->total_bytes = units * unit;
      const auto fill = [&](const Side& side, std::vector<Range>* spans, Range* hull) {
        const std::vector<size_t> lengths = cut(random, units, unit);
        std::vector<size_t> places;
        if (!place_list(random, side, lengths, &places, hull)) return false;
        spans->clear();
        for (size_t i = 0; i < lengths.size(); ++i) spans->push_back({places[i], lengths[i]});
        return true;
      };
      return fill(remote, &plan->remote_spans, &plan->remote_hull) &&
             fill(local, &plan->local_spans, &plan->local_hull);
    }
  }
  return false;
}

}  // namespace

bool shape_plan(Random& random, mob_shape_t shape, Range remote, Range local, Plan* plan) {
  const size_t unit = plan->accumulates() ? bytes_of(plan->type) : 1;
  const Side remote_side{remote, unit, plan->writes_remote()};
  const Side local_side{local, unit, plan->kind == MOB_GET};
  plan->shape = shape;
  for (size_t size : {size_t{24}, size_t{6}, size_t{2}, size_t{1}}) {
    if (try_shape(random, shape, size, remote_side, local_side, unit, plan)) return true;
  }
  return false;
}

}  // namespace mobius_test
