// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A list of spans as it travels to another host: the distances from one to the next and, where they
// differ, the lengths, each in as few bytes as the largest needs. Eight bytes here and there take
// one or two bytes of description instead of sixteen. Pure functions.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mobius::engine {

class SpanWire {
 public:
  // Looks at `count` ≥ 1 spans, which stay until write().
  SpanWire(const mob_span_t* spans, size_t count);

  // What write() takes: a multiple of 16.
  size_t bytes() const { return bytes_; }
  void write(unsigned char* to) const;

  // What write() wrote, from someone who is not trusted: false, if it makes no sense or names more
  // than `most` spans. Throws std::bad_alloc.
  static bool read(const unsigned char* from, size_t bytes, size_t most,
                   std::vector<mob_span_t>* spans);

 private:
  // Numbers that are multiples of 2^shift, with `width` bytes each; 0: all are as the first.
  struct Numbers {
    uint8_t shift = 0;
    uint8_t width = 0;
    static Numbers holding(uint64_t any);
  };
  struct Head {
    uint64_t address;  // of the first span
    uint64_t length;   // of the first span
    uint32_t count;
    Numbers distances;  // from start to start, less than 0 as 2^64 less
    Numbers lengths;

    size_t distances_bytes() const { return size_t{count - 1} * distances.width; }
    size_t lengths_bytes() const { return size_t{count - 1} * lengths.width; }
    size_t bytes() const;  // of all
  };

  const mob_span_t* spans_;
  Head head_{};
  size_t bytes_;
};

}  // namespace mobius::engine
