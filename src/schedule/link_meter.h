// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Measures a link by the messages that use it anyway; nothing is sent for the measurement.
//
// For each quantity the best of the last messages counts, since other work of the machine only
// makes messages slower. Older messages do not count, since links change.

#include <cstddef>

#include "schedule/plan.h"

namespace mobius::schedule {

class LinkMeter {
 public:
  // Messages of at least this size measure bandwidth.
  static constexpr size_t kLargeBytes = size_t{8} << 10;

  // Records that a message of `out` bytes was answered with `in` bytes, `ns` after it was sent.
  void answered(size_t out, size_t in, double ns);

  // Sets the measured quantities; the others stay.
  void update(Costs* costs) const;

 private:
  // The best of the last `window` values, or of up to twice as many.
  class Best {
   public:
    explicit Best(int window) : window_(window) {}
    void add(double value, bool is_better_if_less);
    double value() const;  // 0: none yet

   private:
    const int window_;
    double now_ = 0;
    double before_ = 0;
    int count_ = 0;
    bool less_ = false;
  };

  // Small messages between large ones wait for them. The window is large, so that it holds some
  // that did not wait and show the latency.
  static constexpr int kSmallWindow = 1024;
  static constexpr int kLargeWindow = 64;

  // Bandwidth of one direction. After a pause many links pass data up to some size at once, so
  // longer messages measure better; where there are any, they alone count.
  class Bandwidth {
   public:
    void add(size_t bytes, double ns);
    double bytes_per_ns() const {  // 0: unknown
      return of_long_.value() != 0 ? of_long_.value() : of_large_.value();
    }

   private:
    Best of_large_{kLargeWindow};
    Best of_long_{kLargeWindow};
  };

  Best round_trip_ns_{kSmallWindow};
  Bandwidth out_;
  Bandwidth in_;
};

}  // namespace mobius::schedule
