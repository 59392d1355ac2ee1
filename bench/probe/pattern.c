/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include <string.h>

static uint64_t mix(uint64_t value) { /* the finaliser of splitmix64 */
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

static uint64_t key_of(const probe_pattern_t* pattern) {
  uint64_t key = mix(pattern->seed);
  key = mix(key ^ pattern->bytes);
  key = mix(key ^ pattern->direction);
  return mix(key ^ pattern->repetition);
}

static unsigned char byte_of(uint64_t key, uint64_t index) {
  return (unsigned char)(mix(key + index / 8) >> (index % 8 * 8));
}

static uint64_t frame_key_of(const probe_frame_t* frame) {
  return mix(mix(mix(frame->seed) ^ frame->bytes) ^ ~frame->rank);
}

uint64_t probe_first_flag(const probe_frame_t* frame) { return mix(frame_key_of(frame)); }

size_t probe_data_offset(const void* region) {
  size_t past = (size_t)((uintptr_t)region % PROBE_GUARD_BYTES);
  return 2 * PROBE_GUARD_BYTES - past;
}

size_t probe_flag_distance(size_t bytes) { return (bytes + 7) / 8 * 8; }

void probe_pattern_fill(const probe_pattern_t* pattern, int inverted, probe_transfer_t* transfer) {
  uint64_t key = key_of(pattern), flip = inverted ? ~(uint64_t)0 : 0;
  size_t whole = transfer->bytes / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    uint64_t word = mix(key + i / 8) ^ flip;
    memcpy(transfer->data + i, &word, sizeof word);
  }
  for (size_t i = whole; i < transfer->bytes; i++)
    transfer->data[i] = (unsigned char)(byte_of(key, i) ^ flip);
}

void probe_frame_fill(const probe_frame_t* frame, probe_transfer_t* transfer) {
  uint64_t key = frame_key_of(frame);
  size_t flag = probe_flag_distance(transfer->bytes);
  unsigned char* below = transfer->data - PROBE_GUARD_BYTES;
  unsigned char* above = transfer->data + flag + sizeof *transfer->flag;
  for (size_t i = 0; i < PROBE_GUARD_BYTES; i++) {
    below[i] = byte_of(key, i);
    above[i] = byte_of(~key, i);
  }
  for (size_t i = transfer->bytes; i < flag; i++) transfer->data[i] = byte_of(key, i);
  *transfer->flag = probe_first_flag(frame);
}

static int differs(int64_t at, unsigned char expected, unsigned char got, const char* where,
                   probe_fault_t* fault) {
  if (expected == got) return 0;
  fault->byte = at;
  fault->expected = expected;
  fault->got = got;
  fault->where = where;
  return 1;
}

int probe_region_check(const probe_pattern_t* pattern, const probe_frame_t* frame,
                       const probe_transfer_t* transfer, probe_fault_t* fault) {
  uint64_t key = key_of(pattern), frame_key = frame_key_of(frame);
  const unsigned char* data = transfer->data;
  int64_t bytes = (int64_t)transfer->bytes;
  int64_t flag = (int64_t)probe_flag_distance(transfer->bytes);

  int64_t right = 0;
  for (uint64_t word, want; right + 8 <= bytes; right += 8) { /* by words: there may be millions */
    memcpy(&word, data + right, sizeof word);
    want = mix(key + (uint64_t)right / 8);
    if (word != want) break;
  }
  for (int64_t i = right; i < bytes; i++)
    if (differs(i, byte_of(key, (uint64_t)i), data[i], "data", fault)) return 1;
  for (int64_t i = -PROBE_GUARD_BYTES; i < 0; i++)
    if (differs(i, byte_of(frame_key, (uint64_t)(i + PROBE_GUARD_BYTES)), data[i], "guard below",
                fault))
      return 1;
  for (int64_t i = bytes; i < flag; i++)
    if (differs(i, byte_of(frame_key, (uint64_t)i), data[i], "pad before the flag", fault))
      return 1;
  unsigned char seen[sizeof transfer->seen];
  memcpy(seen, &transfer->seen, sizeof seen);
  for (int64_t i = 0; i < 8; i++)
    if (differs(flag + i, seen[i], data[flag + i], "flag", fault)) return 1;
  for (int64_t i = 0; i < PROBE_GUARD_BYTES; i++)
    if (differs(flag + 8 + i, byte_of(~frame_key, (uint64_t)i), data[flag + 8 + i], "guard above",
                fault))
      return 1;
  return 0;
}
