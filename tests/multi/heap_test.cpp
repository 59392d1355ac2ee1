// SPDX-License-Identifier: BSD-3-Clause

// Symmetric heaps, and allocations on teams.

#include <random>

#include "errors.h"
#include "fixture.h"
#include "leaks.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::right_of;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Heap {
 public:
  explicit Heap(size_t initial, size_t maximum = 64 * kMiB, mob_team_t team = MOB_TEAM_WORLD) {
    EXPECT_EQ(mob_heap_create(team, initial, maximum, &heap_), MOB_OK) << mob_last_error();
  }
  ~Heap() { EXPECT_EQ(mob_heap_destroy(heap_), MOB_OK) << mob_last_error(); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  mob_heap_t handle() const { return heap_; }
  unsigned char* malloc(size_t bytes) const {
    void* pointer = nullptr;
    EXPECT_EQ(mob_heap_malloc(heap_, bytes, &pointer), MOB_OK) << mob_last_error();
    return static_cast<unsigned char*>(pointer);
  }
  void free(void* pointer) const {
    EXPECT_EQ(mob_heap_free(heap_, pointer), MOB_OK) << mob_last_error();
  }
  unsigned char* in(mob_rank_t rank, const void* pointer) const {
    void* remote = nullptr;
    EXPECT_EQ(mob_heap_address(heap_, rank, pointer, &remote), MOB_OK) << mob_last_error();
    return static_cast<unsigned char*>(remote);
  }
  size_t bytes() const {
    size_t result = 0;
    EXPECT_EQ(mob_heap_bytes(heap_, &result, nullptr), MOB_OK);
    return result;
  }
  size_t used() const {
    size_t result = 0;
    EXPECT_EQ(mob_heap_bytes(heap_, nullptr, &result), MOB_OK);
    return result;
  }

 private:
  mob_heap_t heap_ = nullptr;
};

// The ranks with one parity; every process is in one of the two teams.
mob_team_t half() {
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() % 2, 0, &team), MOB_OK);
  return team;
}

}  // namespace

TEST(Heap, BlocksLieAlikeInEveryMember) {
  const Heap heap(kMiB);
  size_t stride = 1;
  EXPECT_EQ(mob_heap_stride(heap.handle(), &stride), MOB_OK);
  for (const size_t bytes : {size_t{1}, size_t{24}, size_t{5000}, 3 * kMiB}) {
    unsigned char* block = heap.malloc(bytes);
    const mob_rank_t target = right_of(mob_rank());
    unsigned char* remote = heap.in(target, block);
    if (stride != 0) {
      EXPECT_EQ(remote, block + (target - mob_rank()) * static_cast<ptrdiff_t>(stride));
    }
    const auto sent = mobius_test::patterned(bytes, mob_rank(), 1);
    EXPECT_EQ(mob_put(target, remote, sent.data(), bytes), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_put1(target, remote + bytes - 1, sent[bytes - 1]), MOB_OK);
    barrier();
    const auto expected = mobius_test::patterned(bytes, mobius_test::left_of(mob_rank()), 1);
    EXPECT_TRUE(mobius_test::holds(block, expected, bytes));
    heap.free(block);
  }
  EXPECT_EQ(heap.used(), 0u);
}

// Earlier blocks keep their addresses, their contents and their bookkeeping.
TEST(Heap, GrowsWhileInUse) {
  const Heap heap(0, 40 * kMiB);
  const mob_rank_t target = right_of(mob_rank());
  unsigned char* first = heap.malloc(64);
  EXPECT_EQ(mob_put8(target, heap.in(target, first), 42), MOB_OK);
  EXPECT_EQ(mob_put8(target, heap.in(target, first), 43), MOB_OK);
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < 39; ++i) {
    unsigned char* block = heap.malloc(kMiB);
    unsigned char* end = heap.in(target, block) + kMiB;
    EXPECT_EQ(mob_put8(target, end - 8, static_cast<uint64_t>(i)), MOB_OK) << mob_last_error();
    blocks.push_back(block);
  }
  EXPECT_GE(heap.bytes(), 39 * kMiB);
  void* none = nullptr;
  expect_error(mob_heap_malloc(heap.handle(), 2 * kMiB, &none), MOB_ERR_MEMORY, "mob_heap_malloc",
               "may not grow");
  EXPECT_EQ(none, nullptr);
  barrier();
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(first), 43u);
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(blocks[i] + kMiB - 8), i);
  }
  // Memory that the heap does not have yet is refused, and so is memory beyond its maximum.
  EXPECT_EQ(mob_put8(target, heap.in(target, first) + heap.bytes(), 1), MOB_ERR_RANGE);
}

TEST(Heap, CallocAlignRealloc) {
  const Heap heap(kMiB);
  unsigned char* dirty = heap.malloc(100'000);
  std::memset(dirty, 0xFF, 100'000);
  heap.free(dirty);
  void* pointer = nullptr;
  EXPECT_EQ(mob_heap_calloc(heap.handle(), 1000, 100, &pointer), MOB_OK);
  EXPECT_TRUE(mobius_test::all_are(static_cast<unsigned char*>(pointer), 100'000, 0));
  for (size_t alignment = 1; alignment <= 2 * kMiB; alignment *= 2) {
    void* aligned = nullptr;
    EXPECT_EQ(mob_heap_align(heap.handle(), alignment, 100, &aligned), MOB_OK) << alignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % alignment, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(heap.in(right_of(mob_rank()), aligned)) % alignment, 0u);
    heap.free(aligned);
  }
  const auto content = mobius_test::patterned(4 * kMiB, mob_rank(), 2);
  std::memcpy(pointer, content.data(), 100'000);
  size_t valid = 100'000;
  for (const size_t bytes : {size_t{200'000}, size_t{50}, 4 * kMiB, size_t{16}}) {
    EXPECT_EQ(mob_heap_realloc(heap.handle(), pointer, bytes, &pointer), MOB_OK);
    EXPECT_EQ(std::memcmp(pointer, content.data(), std::min(bytes, valid)), 0);
    std::memcpy(pointer, content.data(), bytes);
    valid = bytes;
  }
  EXPECT_EQ(heap.used(), 16u);
  EXPECT_EQ(mob_heap_realloc(heap.handle(), pointer, 0, &pointer), MOB_OK);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(mob_heap_realloc(heap.handle(), nullptr, 8, &pointer), MOB_OK);
  heap.free(pointer);
  EXPECT_EQ(mob_heap_malloc(heap.handle(), 0, &pointer), MOB_OK);
  EXPECT_EQ(pointer, nullptr);
  heap.free(nullptr);
  EXPECT_EQ(heap.used(), 0u);
}

TEST(Heap, RandomCallsOfATeam) {
  mob_team_t team = half();
  {
    const Heap heap(0, 128 * kMiB, team);
    std::mt19937 random(static_cast<unsigned>(mob_rank() % 2));  // one per team
    const mob_rank_t size = mob_team_size(team);
    mob_rank_t target = -1;
    EXPECT_EQ(mob_team_translate(team, (mob_team_rank(team) + 1) % size, MOB_TEAM_WORLD, &target),
              MOB_OK);
    std::vector<std::pair<unsigned char*, size_t>> blocks;
    for (uint64_t step = 0; step < 10'000; ++step) {
      if (blocks.size() < 30 || (blocks.size() < 90 && random() % 2 == 0)) {
        const size_t bytes = 8 + random() % (random() % 100 == 0 ? 2'000'000 : 4000);
        unsigned char* block = heap.malloc(bytes);
        EXPECT_EQ(mob_put8(target, heap.in(target, block), step), MOB_OK);
        EXPECT_EQ(mob_put1(target, heap.in(target, block) + bytes - 1, 1), MOB_OK);
        blocks.emplace_back(block, bytes);
      } else {
        const size_t victim = random() % blocks.size();
        heap.free(blocks[victim].first);
        blocks[victim] = blocks.back();
        blocks.pop_back();
      }
    }
    for (const auto& [block, bytes] : blocks) heap.free(block);
    EXPECT_EQ(heap.used(), 0u);
    expect_error(mob_team_free(team), MOB_ERR_STATE, "mob_team_free", "live");
  }
  EXPECT_EQ(mob_team_free(team), MOB_OK);
}

TEST(Heap, ManyLeaveNothingBehind) {
  {
    const Heap warm_up(kMiB);
  }
  barrier();
  const size_t mappings = mobius_test::mappings();
  const size_t descriptors = mobius_test::descriptors();
  const size_t shared = mobius_test::shared_bytes();
  barrier();
  const int heaps = mobius_test::rounds(200, 20);
  for (int i = 0; i < heaps; ++i) {
    const Heap heap(0, 16 * kMiB);
    heap.malloc(static_cast<size_t>(i) * 20'000);
  }
  barrier();
  EXPECT_LE(mobius_test::mappings(), mappings + mobius_test::kMappingsOfOthers);
  EXPECT_LE(mobius_test::descriptors(), descriptors + mobius_test::watch_descriptors());
  EXPECT_LE(mobius_test::shared_bytes(), shared + kMiB);
  barrier();
}

TEST(Heap, BadInput) {
  mob_heap_t none = nullptr;
  expect_error(mob_heap_create(MOB_TEAM_WORLD, 0, 0, &none), MOB_ERR_ARGUMENT, "mob_heap_create",
               "maximum");
  expect_error(mob_heap_create(MOB_TEAM_WORLD, 9, 8, &none), MOB_ERR_ARGUMENT, "mob_heap_create",
               "maximum");
  expect_error(mob_heap_create(MOB_TEAM_WORLD, 0, SIZE_MAX, &none), MOB_ERR_RANGE,
               "mob_heap_create", "window");
  EXPECT_EQ(mob_heap_create(MOB_TEAM_NONE, 0, 8, &none), MOB_ERR_HANDLE);
  const bool last = mob_rank() == mob_size() - 1;
  EXPECT_EQ(mob_heap_create(MOB_TEAM_WORLD, 0, 8, last ? nullptr : &none),
            last ? MOB_ERR_ARGUMENT : MOB_ERR_PEER);
  const std::string said = mob_last_error();
  EXPECT_NE(said.find("rank " + std::to_string(mob_size() - 1) + " passed null for the result"),
            std::string::npos)
      << said;
  EXPECT_EQ(none, nullptr);

  const Heap heap(kMiB);
  void* pointer = nullptr;
  void* block = heap.malloc(100);
  const size_t used = heap.used();
  for (const size_t alignment : {size_t{3}, 4 * kMiB}) {
    expect_error(mob_heap_align(heap.handle(), alignment, 8, &pointer), MOB_ERR_ARGUMENT,
                 "mob_heap_align", "alignment");
  }
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 14, size_t{1} << 60}) {
    EXPECT_EQ(mob_heap_malloc(heap.handle(), bytes, &pointer), MOB_ERR_MEMORY) << bytes;
    EXPECT_EQ(mob_heap_realloc(heap.handle(), block, bytes, &pointer), MOB_ERR_MEMORY) << bytes;
  }
  EXPECT_EQ(mob_heap_calloc(heap.handle(), size_t{1} << 33, size_t{1} << 33, &pointer),
            MOB_ERR_MEMORY);
  expect_error(mob_heap_free(heap.handle(), static_cast<char*>(block) + 16), MOB_ERR_HANDLE,
               "mob_heap_free", "not a live block");
  expect_error(mob_heap_free(heap.handle(), &none), MOB_ERR_HANDLE, "mob_heap_free", "not a live");
  if (mob_size() > 1) {
    // Only one member makes the mistake: all get an error, and nothing changes.
    EXPECT_EQ(mob_heap_malloc(heap.handle(), last ? 8 : 9, &pointer), MOB_ERR_ARGUMENT);
    EXPECT_EQ(mob_heap_malloc(heap.handle(), 8, last ? nullptr : &pointer),
              last ? MOB_ERR_ARGUMENT : MOB_ERR_PEER);
    EXPECT_EQ(mob_heap_free(heap.handle(), last ? &none : block),
              last ? MOB_ERR_HANDLE : MOB_ERR_PEER);
    EXPECT_EQ(mob_heap_free(heap.handle(), last ? nullptr : block), MOB_ERR_ARGUMENT);
  }
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(heap.used(), used);
  expect_error(mob_heap_address(heap.handle(), mob_size(), block, &pointer), MOB_ERR_RANK,
               "mob_heap_address", "team");
  expect_error(mob_heap_address(heap.handle(), 0, &none, &pointer), MOB_ERR_RANGE,
               "mob_heap_address", "not in the caller's part");
  EXPECT_EQ(mob_heap_address(heap.handle(), 0, block, nullptr), MOB_ERR_ARGUMENT);
  // The first block of an empty heap is the start of the part.
  EXPECT_EQ(mob_heap_address(heap.handle(), mob_rank(), nullptr, &pointer), MOB_OK);
  EXPECT_EQ(pointer, block);
  EXPECT_EQ(mob_heap_stride(heap.handle(), nullptr), MOB_ERR_ARGUMENT);
  expect_error(mob_heap_malloc(nullptr, 8, &pointer), MOB_ERR_HANDLE, "mob_heap_malloc", "heap");
  EXPECT_EQ(mob_heap_bytes(nullptr, nullptr, nullptr), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_heap_destroy(reinterpret_cast<mob_heap_t>(&none)), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_heap_destroy(nullptr), MOB_OK);
  heap.free(block);
}

TEST(Heap, MembersThatDestroyDifferentHeapsKeepThem) {
  if (mob_size() == 1) GTEST_SKIP() << "one process";
  const Heap a(kMiB);
  const Heap b(kMiB);
  const bool last = mob_rank() == mob_size() - 1;
  expect_error(mob_heap_destroy(last ? b.handle() : a.handle()), MOB_ERR_ARGUMENT,
               "mob_heap_destroy", "different");
  const mob_rank_t target = right_of(mob_rank());
  for (const Heap* heap : {&a, &b}) {
    unsigned char* block = heap->malloc(8);
    EXPECT_EQ(mob_put8(target, heap->in(target, block), 7), MOB_OK) << mob_last_error();
    barrier();
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(block), 7u);
    heap->free(block);
  }
}

// Also operations that a hook delays: the calls that follow them are not flushes.
TEST(Heap, StartedTransfersComeToNoLaterBlock) {
  const Heap heap(kMiB);
  const mob_rank_t target = right_of(mob_rank());
  const uint64_t late = 0xDEAD;
  for (int round = 0; round < 20; ++round) {
    unsigned char* block = heap.malloc(8);
    EXPECT_EQ(mob_put_nbi(target, heap.in(target, block), &late, 8), MOB_OK) << mob_last_error();
    heap.free(block);
    unsigned char* later = heap.malloc(8);
    EXPECT_EQ(later, block);
    std::memset(later, 1, 8);
    unsigned char* other = heap.malloc(8);  // all have written
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    barrier();
    EXPECT_TRUE(mobius_test::all_are(later, 8, 1)) << "round " << round;
    heap.free(later);
    heap.free(other);
  }
}

TEST(Heap, StartedTransfersMoveWithTheBlock) {
  const Heap heap(kMiB);
  const mob_rank_t target = right_of(mob_rank());
  for (uint64_t round = 1; round <= 20; ++round) {
    unsigned char* block = heap.malloc(64);
    EXPECT_EQ(mob_put_nbi(target, heap.in(target, block), &round, 8), MOB_OK) << mob_last_error();
    void* moved = nullptr;
    EXPECT_EQ(mob_heap_realloc(heap.handle(), block, 4096, &moved), MOB_OK) << mob_last_error();
    EXPECT_NE(moved, block);
    EXPECT_EQ(std::memcmp(moved, &round, 8), 0) << "round " << round;
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    heap.free(moved);
  }
}

TEST(Heap, StartedTransfersEndBeforeTheHeap) {
  const mob_rank_t target = right_of(mob_rank());
  const uint64_t late = 0xDEAD;
  for (int round = 0; round < 5; ++round) {
    mob_heap_t first = nullptr;
    void* block = nullptr;
    void* remote = nullptr;
    EXPECT_EQ(mob_heap_create(MOB_TEAM_WORLD, kMiB, kMiB, &first), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_heap_malloc(first, 8, &block), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_heap_address(first, target, block, &remote), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_put_nbi(target, remote, &late, 8), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_heap_destroy(first), MOB_OK) << mob_last_error();
    const Heap second(kMiB, kMiB);
    unsigned char* later = second.malloc(8);
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    barrier();
    EXPECT_TRUE(mobius_test::all_are(later, 8, 0)) << "round " << round;
    barrier();
  }
}

TEST(TeamMemory, EachTeamHasItsOwn) {
  mob_team_t team = half();
  const mob_rank_t me = mob_team_rank(team);
  const mob_rank_t size = mob_team_size(team);
  mob_mem_t mem = nullptr;
  const auto bytes = static_cast<size_t>(me) * 1000;
  EXPECT_EQ(mob_team_alloc(team, bytes, 4096, &mem), MOB_OK) << mob_last_error();
  for (mob_rank_t i = 0; i < size; ++i) {
    mob_rank_t rank = -1;
    EXPECT_EQ(mob_team_translate(team, i, MOB_TEAM_WORLD, &rank), MOB_OK);
    size_t theirs = 1;
    EXPECT_EQ(mob_mem_bytes(mem, rank, &theirs), MOB_OK);
    EXPECT_EQ(theirs, static_cast<size_t>(i) * 1000);
    void* address = nullptr;
    EXPECT_EQ(mob_mem_address(mem, rank, 0, &address), MOB_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % 4096, 0u);
    if (i > 0) {
      EXPECT_EQ(mob_put1(rank, static_cast<char*>(address) + me, 1), MOB_OK) << mob_last_error();
    }
  }
  // All addresses of a team; then processes outside the team use them too.
  std::vector<void*> all(static_cast<size_t>(mob_size()));
  void* mine = bytes > 0 ? mob_mem_local(mem) : nullptr;
  EXPECT_EQ(mob_publish(MOB_TEAM_WORLD, mine, all.data()), MOB_OK) << mob_last_error();
  EXPECT_EQ(all[static_cast<size_t>(mob_rank())], mine);
  for (mob_rank_t r = 0; r < mob_size(); ++r) {
    auto* theirs = static_cast<char*>(all[static_cast<size_t>(r)]);
    if (theirs == nullptr) continue;
    EXPECT_EQ(mob_put1(r, theirs + 500 + mob_rank(), 2), MOB_OK) << mob_last_error();
  }
  barrier();
  if (bytes > 0) {
    EXPECT_TRUE(
        mobius_test::all_are(static_cast<unsigned char*>(mine), static_cast<size_t>(size), 1));
    EXPECT_TRUE(mobius_test::all_are(static_cast<unsigned char*>(mine) + 500,
                                     static_cast<size_t>(mob_size()), 2));
  }
  barrier();
  expect_error(mob_team_free(team), MOB_ERR_STATE, "mob_team_free", "live");
  EXPECT_EQ(mob_mem_free(mem), MOB_OK);
  EXPECT_EQ(mob_team_free(team), MOB_OK);
}

TEST(TeamMemory, TenThousandLeaveNothingBehind) {
  mob_team_t team = half();
  barrier();
  const size_t mappings = mobius_test::mappings();
  const size_t descriptors = mobius_test::descriptors();
  const size_t shared = mobius_test::shared_bytes();
  barrier();
  const int rounds = mobius_test::rounds(10'000 / mob_size(), 200);
  for (int i = 0; i < rounds; ++i) {
    mob_mem_t mem = nullptr;
    EXPECT_EQ(mob_team_alloc(team, static_cast<size_t>(i % 9000), 0, &mem), MOB_OK);
    EXPECT_EQ(mob_mem_free(mem), MOB_OK);
  }
  barrier();
  EXPECT_LE(mobius_test::mappings(), mappings + mobius_test::kMappingsOfOthers);
  EXPECT_LE(mobius_test::descriptors(), descriptors + mobius_test::watch_descriptors());
  EXPECT_LE(mobius_test::shared_bytes(), shared + kMiB);
  barrier();
  EXPECT_EQ(mob_team_free(team), MOB_OK);
}

TEST(TeamMemory, BadInput) {
  mob_mem_t mem = nullptr;
  const bool last = mob_rank() == mob_size() - 1;
  EXPECT_EQ(mob_team_alloc(MOB_TEAM_NONE, 8, 0, &mem), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_team_alloc(MOB_TEAM_WORLD, 8, last ? 3 : 4, &mem),
            last ? MOB_ERR_ARGUMENT : MOB_ERR_PEER);
  EXPECT_EQ(mob_team_alloc(MOB_TEAM_WORLD, 8, size_t{4} << 20, &mem), MOB_ERR_ARGUMENT);
  expect_error(mob_team_alloc(MOB_TEAM_WORLD, SIZE_MAX, 0, &mem), MOB_ERR_RANGE, "mob_team_alloc",
               "window");
  EXPECT_EQ(mem, nullptr);
  std::vector<void*> all(static_cast<size_t>(mob_size()));
  EXPECT_EQ(mob_publish(MOB_TEAM_NONE, nullptr, all.data()), MOB_ERR_HANDLE);
  expect_error(mob_publish(MOB_TEAM_WORLD, nullptr, last ? nullptr : all.data()),
               last ? MOB_ERR_ARGUMENT : MOB_ERR_PEER, "mob_publish", "null");
}
