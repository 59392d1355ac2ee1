// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mobius_test {

inline mob_rank_t right_of(mob_rank_t rank) { return (rank + 1) % mob_size(); }
inline mob_rank_t left_of(mob_rank_t rank) { return (rank + mob_size() - 1) % mob_size(); }

// Whether a rank shares memory with the caller, so that mob_ptr() and locks in memory reach it.
inline bool same_host(mob_rank_t rank) { return mob_is_host_mate(rank) == 1; }
// Whether all ranks share memory.
inline bool one_host() { return mob_host_size() == mob_size(); }
// The rank at a position among the caller's local peers, modulo their number.
inline mob_rank_t local_peer(mob_rank_t place) {
  mob_rank_t rank = -1;
  EXPECT_EQ(mob_host_mate((place + mob_host_size()) % mob_host_size(), &rank), MOB_OK)
      << mob_last_error();
  return rank;
}
inline mob_rank_t first_of_host() { return local_peer(0); }

// The final status of a transfer to `target` whose start returned `status`: on another host the
// target detects errors, and the next flush reports them.
inline mob_status_t outcome(mob_rank_t target, mob_status_t status) {
  return status != MOB_OK || same_host(target) ? status : mob_flush(target);
}

// Whether a hook carries out started operations in any order.
inline bool reorders() {
  const char* hooks = std::getenv("MOBIUS_HOOKS");
  return hooks != nullptr && std::string_view(hooks).find("reorder") != std::string_view::npos;
}

// The number of rounds of a test with very many: all of them in the mode for such tests (`many`),
// at most `few` in each other mode.
inline int rounds(int all, int few) {
  const char* const most = std::getenv("MULTI_TEST_ROUNDS");
  if (most == nullptr) return std::min(all, few);
  return std::string_view(most) == "all" ? all : std::min(all, std::max(few, std::atoi(most)));
}
// Whether a test covers all its variants; in most modes it covers a sample of each kind.
inline bool takes_all() { return std::getenv("MULTI_TEST_ROUNDS") != nullptr; }

// Bytes that differ by place, writer and round.
inline unsigned char pattern(size_t at, int writer, int round) {
  return static_cast<unsigned char>((at * 131) ^ (at >> 8) ^ static_cast<size_t>(writer * 17) ^
                                    static_cast<size_t>(round * 71));
}

// `bytes` bytes of pattern(), starting at place `from`. Compare with memcmp(): sanitized builds
// compare single bytes too slowly.
inline std::vector<unsigned char> patterned(size_t bytes, int writer, int round, size_t from = 0) {
  // Long payloads are made and compared all the time. 256 bytes from a multiple of 256 on differ
  // from any other such bytes by one value.
  constexpr size_t kPiece = 256;
  static const auto first = [] {
    std::array<unsigned char, kPiece> piece{};
    for (size_t i = 0; i < kPiece; ++i) piece[i] = pattern(i, 0, 0);
    return piece;
  }();
  std::vector<unsigned char> result(bytes);
  for (size_t i = 0; i < bytes;) {
    const unsigned char here = pattern(from + i, writer, round);
    if ((from + i) % kPiece != 0 || bytes - i < kPiece) {
      result[i++] = here;
      continue;
    }
    const uint64_t difference = here * uint64_t{0x0101010101010101};
    for (size_t at = 0; at < kPiece; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, &first[at], sizeof word);
      word ^= difference;
      std::memcpy(&result[i + at], &word, sizeof word);
    }
    i += kPiece;
  }
  return result;
}

inline bool holds(const unsigned char* memory, const std::vector<unsigned char>& expected,
                  size_t bytes) {
  return bytes == 0 || std::memcmp(memory, expected.data(), bytes) == 0;
}

// Whether all `bytes` (> 0) bytes have one value.
inline bool all_are(const unsigned char* memory, size_t bytes, unsigned char value) {
  return memory[0] == value && std::memcmp(memory, memory + 1, bytes - 1) == 0;
}

// An allocation of the same size in every rank, freed at the end of the scope.
class Shared {
 public:
  explicit Shared(size_t bytes) {
    EXPECT_EQ(mob_mem_alloc(bytes, &mem_), MOB_OK) << mob_last_error();
  }
  ~Shared() { EXPECT_EQ(mob_mem_free(mem_), MOB_OK) << mob_last_error(); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  mob_mem_t handle() const { return mem_; }
  unsigned char* local() const { return static_cast<unsigned char*>(mob_mem_local(mem_)); }
  unsigned char* at(mob_rank_t rank, size_t offset = 0) const {
    void* address = nullptr;
    EXPECT_EQ(mob_mem_address(mem_, rank, offset, &address), MOB_OK) << mob_last_error();
    return static_cast<unsigned char*>(address);
  }

 private:
  mob_mem_t mem_ = nullptr;
};

// Expects that this thread's last error names a call, and contains a text.
inline void expect_text(const std::string& call, const std::string& detail) {
  const std::string text = mob_last_error();
  EXPECT_EQ(text.rfind(call + ":", 0), 0u) << text;
  EXPECT_NE(text.find(detail), std::string::npos) << text;
}

inline void barrier() { EXPECT_EQ(mob_barrier(), MOB_OK) << mob_last_error(); }

// Gives the left neighbour an address of this rank, and returns the right neighbour's.
inline void* exchange_address(void* mine) {
  const Shared mail(sizeof(uint64_t));
  EXPECT_EQ(mob_put8(left_of(mob_rank()), mail.at(left_of(mob_rank())),
                     reinterpret_cast<uintptr_t>(mine)),
            MOB_OK);
  barrier();
  uint64_t value = 0;
  std::memcpy(&value, mail.local(), sizeof value);
  barrier();
  return reinterpret_cast<void*>(value);
}

}  // namespace mobius_test
