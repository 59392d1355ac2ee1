// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/link_meter.h"

#include <algorithm>

namespace mobius::schedule {
namespace {

// Messages up to this size measure latency. Messages from kLargeBytes on measure the bandwidth of
// one direction …
constexpr size_t kSmallBytes = 1024;
// … if the other direction has this many times less.
constexpr size_t kLess = 4;

// From this size on a message measures bandwidth even before any small one has measured the
// latency, which is short beside its time.
constexpr size_t kTellingBytes = size_t{32} << 10;

// Hardly any link passes this much at once after a pause.
constexpr size_t kLongBytes = size_t{64} << 10;

// A message that takes no longer than a small one does not measure bandwidth.
constexpr double kLeastNs = 1000;

double better(double a, double b, bool less) {
  if (a == 0 || b == 0) return a + b;
  return less ? std::min(a, b) : std::max(a, b);
}

}  // namespace

void LinkMeter::Best::add(double value, bool is_better_if_less) {
  less_ = is_better_if_less;
  now_ = better(now_, value, less_);
  if (++count_ < window_) return;
  before_ = now_;
  now_ = 0;
  count_ = 0;
}

double LinkMeter::Best::value() const { return better(now_, before_, less_); }

void LinkMeter::Bandwidth::add(size_t bytes, double ns) {
  (bytes >= kLongBytes ? of_long_ : of_large_).add(static_cast<double>(bytes) / ns, false);
}

void LinkMeter::answered(size_t out, size_t in, double ns) {
  if (out <= kSmallBytes && in <= kSmallBytes) {
    round_trip_ns_.add(ns, true);
    return;
  }
  const double moving_ns = ns - round_trip_ns_.value();
  if (round_trip_ns_.value() == 0 && std::max(out, in) < kTellingBytes) return;
  if (moving_ns < kLeastNs) return;
  if (out >= kLargeBytes && in <= out / kLess) {
    out_.add(out, moving_ns);
  } else if (in >= kLargeBytes && out <= in / kLess) {
    in_.add(in, moving_ns);
  }
}

void LinkMeter::update(Costs* costs) const {
  if (const double ns = round_trip_ns_.value(); ns != 0) costs->latency_ns = ns / 2;
  if (const double rate = out_.bytes_per_ns(); rate != 0) costs->out_bytes_per_ns = rate;
  if (const double rate = in_.bytes_per_ns(); rate != 0) costs->in_bytes_per_ns = rate;
}

}  // namespace mobius::schedule
