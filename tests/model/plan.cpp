// SPDX-License-Identifier: BSD-3-Clause
#include "model/plan.h"

#include <cstring>

#include "model/elements.h"

namespace mobius_test {
namespace {

struct Run {
  unsigned char* remote;
  unsigned char* local;
  size_t bytes;
};

unsigned char* bytes_at(void* address) { return static_cast<unsigned char*>(address); }

void add_box(const mob_transfer_t& transfer, std::vector<Run>* runs) {
  size_t index[MOB_MAX_DIMENSIONS] = {};
  for (int d = 0; d < transfer.dimensions; ++d) {
    if (transfer.counts[d] == 0) return;
  }
  for (;;) {
    ptrdiff_t remote = 0;
    ptrdiff_t local = 0;
    for (int d = 0; d < transfer.dimensions; ++d) {
      remote += static_cast<ptrdiff_t>(index[d]) * transfer.remote_strides[d];
      local += static_cast<ptrdiff_t>(index[d]) * transfer.local_strides[d];
    }
    runs->push_back(
        {bytes_at(transfer.remote) + remote, bytes_at(transfer.local) + local, transfer.bytes});
    int d = 0;
    while (d < transfer.dimensions && ++index[d] == transfer.counts[d]) index[d++] = 0;
    if (d == transfer.dimensions) return;
  }
}

// Byte by byte: slow and simple.
std::vector<unsigned char*> spread(const mob_span_t* spans, size_t count) {
  std::vector<unsigned char*> result;
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < spans[i].bytes; ++b) result.push_back(bytes_at(spans[i].address) + b);
  }
  return result;
}

std::vector<Run> runs_of(const mob_transfer_t& transfer) {
  std::vector<Run> runs;
  switch (transfer.shape) {
    case MOB_CONTIGUOUS:
      runs.push_back({bytes_at(transfer.remote), bytes_at(transfer.local), transfer.bytes});
      break;
    case MOB_STRIDED:
      add_box(transfer, &runs);
      break;
    case MOB_PIECES:
      for (size_t i = 0; i < transfer.count; ++i) {
        runs.push_back(
            {bytes_at(transfer.remotes[i]), bytes_at(transfer.locals[i]), transfer.bytes});
      }
      break;
    case MOB_SPANS: {
      const auto remote = spread(transfer.remote_spans, transfer.remote_span_count);
      const auto local = spread(transfer.local_spans, transfer.local_span_count);
      const bool elements =
          transfer.kind == MOB_ACCUMULATE || transfer.kind == MOB_FETCH_ACCUMULATE;
      const size_t unit = elements ? bytes_of(transfer.type) : 1;
      for (size_t i = 0; i + unit <= remote.size(); i += unit) {
        runs.push_back({remote[i], local.empty() ? nullptr : local[i], unit});
      }
      break;
    }
  }
  return runs;
}

}  // namespace

Description::Description(const Plan& plan, unsigned char* remote, unsigned char* local,
                         unsigned char* fetched) {
  for (const size_t at : plan.remotes) remotes_.push_back(remote + at);
  for (const size_t at : plan.locals) locals_.push_back(local + at);
  for (const Range& span : plan.remote_spans)
    remote_spans_.push_back({remote + span.start, span.bytes});
  for (const Range& span : plan.local_spans)
    local_spans_.push_back({local + span.start, span.bytes});
  transfer.kind = plan.kind;
  transfer.shape = plan.shape;
  transfer.rank = plan.rank;
  transfer.remote = remote + plan.remote;
  transfer.local = local + plan.local;
  transfer.bytes = plan.bytes;
  transfer.dimensions = static_cast<int>(plan.counts.size());
  transfer.counts = plan.counts.data();
  transfer.remote_strides = plan.remote_strides.data();
  transfer.local_strides = plan.local_strides.data();
  transfer.count = plan.remotes.size();
  transfer.remotes = remotes_.data();
  transfer.locals = locals_.data();
  transfer.remote_spans = remote_spans_.data();
  transfer.remote_span_count = remote_spans_.size();
  transfer.local_spans = local_spans_.data();
  transfer.local_span_count = local_spans_.size();
  transfer.type = plan.type;
  transfer.op = plan.op;
  transfer.scale = plan.scale.empty() ? nullptr : plan.scale.data();
  transfer.fetched = plan.fetches() ? fetched + plan.fetched : nullptr;
}

void carry_out(const mob_transfer_t& transfer) {
  auto* fetched = static_cast<unsigned char*>(transfer.fetched);
  for (const Run& run : runs_of(transfer)) {
    if (transfer.kind == MOB_PUT) {
      std::memcpy(run.remote, run.local, run.bytes);
    } else if (transfer.kind == MOB_GET) {
      std::memcpy(run.local, run.remote, run.bytes);
    } else {
      if (transfer.kind == MOB_FETCH_ACCUMULATE) {
        std::memcpy(fetched, run.remote, run.bytes);
        fetched += run.bytes;
      }
      const size_t element = bytes_of(transfer.type);
      for (size_t at = 0; at < run.bytes; at += element) {
        combine(transfer.type, transfer.op, run.remote + at, run.local + at, transfer.scale);
      }
    }
  }
}

std::string Plan::text() const {
  std::string result =
      std::string(name_of(kind)) + " " + name_of(shape) + " of " + std::to_string(total_bytes) +
      " bytes, rank " + std::to_string(rank) + " [" + std::to_string(remote_hull.start) + ", " +
      std::to_string(remote_hull.end()) + "), local [" + std::to_string(local_hull.start) + ", " +
      std::to_string(local_hull.end()) + ")";
  if (accumulates()) result += std::string(" ") + name_of(op) + " " + name_of(type);
  if (!scale.empty()) result += " scaled";
  if (shape == MOB_STRIDED) {
    result += " runs of " + std::to_string(bytes) + " at " + std::to_string(remote) + ", " +
              std::to_string(local);
    for (size_t d = 0; d < counts.size(); ++d) {
      result += " x " + std::to_string(counts[d]) + " (" + std::to_string(remote_strides[d]) +
                ", " + std::to_string(local_strides[d]) + ")";
    }
  }
  return result;
}

}  // namespace mobius_test
