// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Encodes a list of spans for another host: the distances from one span to the next and, where they
// differ, the lengths, each in as few bytes as the largest needs. A scattered element of eight
// bytes takes one or two bytes of description instead of sixteen. Pure functions.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mobius::engine {

class SpanWire {
 public:
  // Analyses `count` ≥ 1 spans, which stay valid until write().
  SpanWire(const mob_span_t* spans, size_t count);

  // Size of the encoded list: a multiple of 16.
  size_t bytes() const { return bytes_; }
  void write(unsigned char* to) const;

  // Decodes a list from an untrusted process: false if it is malformed or has more than `most`
  // spans. Throws std::bad_alloc.
  static bool read(const unsigned char* from, size_t bytes, size_t most,
                   std::vector<mob_span_t>* spans);

 private:
  // Numbers that are multiples of 2^shift, in `width` bytes each. Width 0: all equal the first.
  struct Numbers {
    uint8_t shift = 0;
    uint8_t width = 0;
    static Numbers holding(uint64_t any);
  };
  struct Head {
    uint64_t address;  // of the first span
    uint64_t length;   // of the first span
    uint32_t count;
    Numbers distances;  // from start to start, modulo 2^64
    Numbers lengths;

    size_t distances_bytes() const { return size_t{count - 1} * distances.width; }
    size_t lengths_bytes() const { return size_t{count - 1} * lengths.width; }
    size_t bytes() const;  // of the whole encoding
  };

  const mob_span_t* spans_;
  Head head_{};
  size_t bytes_;
};

}  // namespace mobius::engine
