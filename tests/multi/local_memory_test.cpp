// SPDX-License-Identifier: BSD-3-Clause

// Memory that one process allocates by itself.

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "errors.h"
#include "fixture.h"
#include "leaks.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::Shared;

namespace {

constexpr size_t kSizes[] = {1,       8, 15, 16, 17, 100, 4096, 100'000, 1u << 20, (1u << 20) + 1,
                             5u << 20};

// Gives every rank the addresses of all other ranks' `mine`.
std::vector<unsigned char*> everyones(const Shared& board, void* mine) {
  const auto value = reinterpret_cast<uint64_t>(mine);
  barrier();
  EXPECT_EQ(mob_put8(mob_rank(), board.at(mob_rank()), value), MOB_OK);
  barrier();
  std::vector<unsigned char*> all;
  for (mob_rank_t r = 0; r < mob_size(); ++r) {
    uint64_t theirs = 0;
    EXPECT_EQ(mob_get8(r, board.at(r), &theirs), MOB_OK);
    all.push_back(reinterpret_cast<unsigned char*>(theirs));
  }
  return all;
}

unsigned char* allocate(size_t bytes, size_t alignment = 0) {
  void* pointer = nullptr;
  EXPECT_EQ(mob_local_alloc(bytes, alignment, &pointer), MOB_OK) << mob_last_error();
  return static_cast<unsigned char*>(pointer);
}

void free_block(void* pointer) { EXPECT_EQ(mob_local_free(pointer), MOB_OK) << mob_last_error(); }

// Leaves 32 MiB in one piece of the freed memory that is kept, so that amounts can be compared.
void settle_spares() { free_block(allocate(size_t{32} << 20)); }

}  // namespace

TEST(LocalMemory, LocalPeersReachBlocksOfAnySize) {
  const Shared board(8);
  for (const size_t bytes : kSizes) {
    // Ranks allocate different amounts, so that their blocks have different places.
    std::vector<unsigned char*> more;
    for (mob_rank_t i = 0; i < mob_rank(); ++i) more.push_back(allocate(200'000));
    unsigned char* mine = allocate(bytes);
    const auto all = everyones(board, mine);
    const mob_rank_t target = mobius_test::right_of(mob_rank());
    unsigned char* remote = all[static_cast<size_t>(target)];
    const auto sent = mobius_test::patterned(bytes, mob_rank(), 1);
    EXPECT_EQ(mob_put(target, remote, sent.data(), bytes), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_put1(target, remote + bytes - 1, sent[bytes - 1]), MOB_OK);
    barrier();
    const auto expected = mobius_test::patterned(bytes, mobius_test::left_of(mob_rank()), 1);
    EXPECT_TRUE(mobius_test::holds(mine, expected, bytes)) << bytes;
    if (mobius_test::same_host(target)) {
      void* pointer = nullptr;
      EXPECT_EQ(mob_ptr(target, remote, &pointer), MOB_OK);
      EXPECT_EQ(std::memcmp(pointer, sent.data(), bytes), 0);
    }
    barrier();
    free_block(mine);
    for (unsigned char* block : more) free_block(block);
  }
}

TEST(LocalMemory, BlocksAreAligned) {
  for (size_t alignment = 1; alignment <= size_t{2} << 20; alignment *= 2) {
    for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{3} << 20}) {
      unsigned char* block = allocate(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % std::max<size_t>(alignment, 16), 0u);
      std::memset(block, 1, bytes);
      free_block(block);
    }
  }
}

// A large block that was freed is given again for the same size, while not more than 32 MiB wait.
TEST(LocalMemory, LargeBlocksAreUsedAgain) {
  constexpr size_t kLarge = size_t{20} << 20;
  unsigned char* const first = allocate(kLarge);
  first[kLarge - 1] = 7;
  free_block(first);
  unsigned char* const again = allocate(kLarge);
  EXPECT_EQ(again, first);
  EXPECT_EQ(again[kLarge - 1], 7);
  unsigned char* const longer = allocate(kLarge + 16);
  EXPECT_TRUE(longer >= again + kLarge || longer + kLarge < again);
  longer[kLarge] = 8;
  free_block(again);
  free_block(longer);  // gives the memory of the other one back
  unsigned char* const anew = allocate(kLarge);
  EXPECT_EQ(anew[kLarge - 1], 0);
  free_block(anew);
}

TEST(LocalMemory, ReallocKeepsTheContents) {
  void* block = nullptr;
  EXPECT_EQ(mob_local_realloc(nullptr, 10, &block), MOB_OK);
  const auto content = mobius_test::patterned(size_t{6} << 20, mob_rank(), 3);
  std::memcpy(block, content.data(), 10);
  size_t valid = 10;
  for (const size_t bytes : {size_t{20}, size_t{5000}, size_t{300}, size_t{2} << 20,
                             size_t{6} << 20, size_t{3} << 20, size_t{40}, size_t{1}}) {
    EXPECT_EQ(mob_local_realloc(block, bytes, &block), MOB_OK) << mob_last_error();
    EXPECT_EQ(std::memcmp(block, content.data(), std::min(valid, bytes)), 0) << bytes;
    std::memcpy(block, content.data(), bytes);
    valid = bytes;
  }
  free_block(block);
}

// A block at the place of another rank's former memory is reached as the new owner's.
TEST(LocalMemory, OtherOwnersOfTheSamePlace) {
  const Shared board(8);
  for (int round = 0; round < 6; ++round) {
    const bool owner = mob_rank() == round % mob_size();
    unsigned char* mine =
        owner ? allocate(size_t{2 + static_cast<unsigned>(round) % 3} << 20) : nullptr;
    const auto all = everyones(board, mine);
    const mob_rank_t target = round % mob_size();
    unsigned char* remote = all[static_cast<size_t>(target)];
    const size_t last = (size_t{2 + static_cast<unsigned>(round) % 3} << 20) - 1;
    EXPECT_EQ(mob_put1(target, remote + last - static_cast<size_t>(mob_rank()), 7), MOB_OK)
        << mob_last_error();
    EXPECT_EQ(mob_put1(target, remote + static_cast<size_t>(mob_rank()), 7), MOB_OK);
    barrier();
    if (owner) {
      EXPECT_TRUE(mobius_test::all_are(mine, static_cast<size_t>(mob_size()), 7));
      EXPECT_TRUE(
          mobius_test::all_are(mine + last + 1 - mob_size(), static_cast<size_t>(mob_size()), 7));
      free_block(mine);
    }
    barrier();
    // All ranks allocate and free the same place; every rank closes it.
    const Shared between(size_t{1} << 20);
    EXPECT_EQ(mob_put8(target, between.at(target), 1), MOB_OK);
  }
}

TEST(LocalMemory, ThreadsAllocateAtOnce) {
  std::atomic<size_t> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      std::mt19937 random(t);
      std::vector<std::pair<unsigned char*, size_t>> blocks;
      for (int step = 0; step < 2000; ++step) {
        if (blocks.size() < 20 || random() % 2 == 0) {
          const size_t bytes = 1 + random() % (random() % 50 == 0 ? 2'000'000 : 3000);
          void* pointer = nullptr;
          if (mob_local_alloc(bytes, 0, &pointer) != MOB_OK) {
            ++wrong;
            continue;
          }
          auto* block = static_cast<unsigned char*>(pointer);
          block[0] = block[bytes - 1] = static_cast<unsigned char>(t);
          blocks.emplace_back(block, bytes);
        } else {
          const size_t victim = random() % blocks.size();
          const auto [block, bytes] = blocks[victim];
          if (block[0] != t || block[bytes - 1] != t) ++wrong;
          if (mob_local_free(block) != MOB_OK) ++wrong;
          blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(victim));
        }
      }
      for (const auto& [block, bytes] : blocks) {
        if (mob_local_free(block) != MOB_OK) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  barrier();
}

TEST(LocalMemory, ManyLeaveNothingBehind) {
  free_block(allocate(1));
  barrier();
  const size_t mappings = mobius_test::mappings();
  const size_t descriptors = mobius_test::descriptors();
  settle_spares();
  barrier();
  const size_t shared = mobius_test::shared_bytes();
  EXPECT_GT(shared, 0u);
  barrier();
  std::mt19937 random(7);
  std::vector<unsigned char*> blocks;
  const int rounds = mobius_test::rounds(10'000, 1'000);
  for (int i = 0; i < rounds; ++i) {
    if (blocks.size() == 100) {
      const size_t victim = random() % blocks.size();
      free_block(blocks[victim]);
      blocks[victim] = blocks.back();
      blocks.pop_back();
    }
    blocks.push_back(allocate(1 + random() % (random() % 100 == 0 ? 3'000'000 : 60'000)));
  }
  for (unsigned char* block : blocks) free_block(block);
  settle_spares();
  barrier();
  EXPECT_LE(mobius_test::mappings(), mappings + mobius_test::kMappingsOfOthers);
  EXPECT_LE(mobius_test::descriptors(), descriptors + mobius_test::watch_descriptors());
  // The table of chunks may have grown.
  EXPECT_LE(mobius_test::shared_bytes(), shared + (size_t{1} << 20));
  barrier();
}

TEST(LocalMemory, BadInput) {
  void* block = nullptr;
  expect_error(mob_local_alloc(8, 0, nullptr), MOB_ERR_ARGUMENT, "mob_local_alloc", "null");
  for (const size_t alignment : {size_t{3}, size_t{48}, size_t{4} << 20, SIZE_MAX}) {
    expect_error(mob_local_alloc(8, alignment, &block), MOB_ERR_ARGUMENT, "mob_local_alloc",
                 "alignment");
  }
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 14, size_t{1} << 60, size_t{1} << 45}) {
    EXPECT_EQ(mob_local_alloc(bytes, 0, &block), MOB_ERR_MEMORY) << bytes;
  }
  EXPECT_EQ(block, nullptr);
  int elsewhere = 0;
  expect_error(mob_local_free(&elsewhere), MOB_ERR_HANDLE, "mob_local_free", "not a live block");
  unsigned char* mine = allocate(100);
  expect_error(mob_local_free(mine + 16), MOB_ERR_HANDLE, "mob_local_free", "not a live block");
  expect_error(mob_local_realloc(mine + 16, 8, &block), MOB_ERR_HANDLE, "mob_local_realloc",
               "not a live block");
  expect_error(mob_local_realloc(mine, 8, nullptr), MOB_ERR_ARGUMENT, "mob_local_realloc", "null");
  EXPECT_EQ(mob_local_realloc(mine, SIZE_MAX, &block), MOB_ERR_MEMORY);
  std::memset(mine, 5, 100);
  free_block(mine);
  expect_error(mob_local_free(mine), MOB_ERR_HANDLE, "mob_local_free", "freed before");
  EXPECT_EQ(mob_local_free(nullptr), MOB_OK);
  const Shared collective(64);
  expect_error(mob_local_free(collective.local()), MOB_ERR_HANDLE, "mob_local_free", "not a live");
}
