// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a link costs, learnt from the messages that go over it anyway: nothing is sent to find out.
//
// Of each quantity the best of the last messages counts, since other work of the machine only ever
// makes things slower; and only of the last ones, since links change.

#include <cstddef>

#include "schedule/plan.h"

namespace mobius::schedule {

class LinkMeter {
 public:
  // A message of this many bytes tells what they take.
  static constexpr size_t kLargeBytes = size_t{8} << 10;

  // A message of `out` bytes was answered with `in` bytes, `ns` after it was handed over.
  void answered(size_t out, size_t in, double ns);

  // Sets what is known by now; the rest stays.
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

  // Where small messages come between large ones, all of many wait for those; latency is what one
  // takes that does not.
  static constexpr int kSmallWindow = 1024;
  static constexpr int kLargeWindow = 64;

  // Of one direction. Links let through at once what comes after a pause, up to some size: what is
  // longer tells more, and where there is such a thing it alone counts.
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
