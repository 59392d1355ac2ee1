// SPDX-License-Identifier: BSD-3-Clause

// Wrong arguments of collective calls. Each is wrong in every member, fails at once, and leaves no
// trace.

#include <algorithm>
#include <atomic>
#include <climits>

#include "errors.h"
#include "messages.h"
#include "team_fixture.h"

using mobius_test::expect_error;

namespace {

void keep(void*, const void*, size_t, void*) {}
constexpr mob_user_op_t kKeep = {&keep, nullptr, 8, 0};

// Used by the one test here with a handler; other tests use smaller identifiers.
constexpr unsigned kHandler = 200;

// Live objects on which the collective calls are made.
struct Objects {
  Objects() {
    EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, 0, &team), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_mem_alloc(64, &mem), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_heap_create(MOB_TEAM_WORLD, 0, 4096, &heap), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_heap_malloc(heap, 64, &block), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes), MOB_OK) << mob_last_error();
  }
  ~Objects() {
    EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_access_free(access), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_epoch_free(epoch), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_heap_destroy(heap), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_mem_free(mem), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  mob_team_t team = MOB_TEAM_NONE;
  mob_mem_t mem = nullptr;
  mob_heap_t heap = nullptr;
  void* block = nullptr;
  mob_epoch_t epoch = nullptr;
  mob_access_t access = nullptr;
  mob_mutexes_t mutexes = nullptr;
  std::vector<uint64_t> in = std::vector<uint64_t>(static_cast<size_t>(mob_size()), 1);
  std::vector<uint64_t> out = std::vector<uint64_t>(static_cast<size_t>(mob_size()), 2);
  std::vector<size_t> sizes = std::vector<size_t>(static_cast<size_t>(mob_size()), 8);
  std::vector<size_t> places = std::vector<size_t>(static_cast<size_t>(mob_size()), 0);
};

// Makes every collective call with valid arguments, but in a handler.
void expect_refused_in_handler(Objects& o) {
  const auto refused = [](const char* call, mob_status_t status) {
    expect_error(status, MOB_ERR_STATE, call, "handler");
  };
  const uint64_t* in = o.in.data();
  uint64_t* out = o.out.data();
  const size_t* sizes = o.sizes.data();
  const size_t* places = o.places.data();
  auto* const world = MOB_TEAM_WORLD;
  refused("mob_barrier", mob_barrier());
  refused("mob_team_barrier", mob_team_barrier(o.team));
  refused("mob_broadcast", mob_broadcast(world, 0, out, 8));
  refused("mob_reduce", mob_reduce(world, 0, MOB_SUM, MOB_UINT64, in, out, 1));
  refused("mob_allreduce", mob_allreduce(world, MOB_SUM, MOB_UINT64, in, out, 1));
  refused("mob_scan", mob_scan(world, MOB_SUM, MOB_UINT64, in, out, 1));
  refused("mob_exscan", mob_exscan(world, MOB_SUM, MOB_UINT64, in, out, 1));
  refused("mob_reduce_user", mob_reduce_user(world, 0, &kKeep, in, out, 1));
  refused("mob_allreduce_user", mob_allreduce_user(world, &kKeep, in, out, 1));
  refused("mob_scan_user", mob_scan_user(world, &kKeep, in, out, 1));
  refused("mob_exscan_user", mob_exscan_user(world, &kKeep, in, out, 1));
  refused("mob_gather", mob_gather(world, 0, in, out, 8));
  refused("mob_gatherv", mob_gatherv(world, 0, in, 8, out, sizes, places));
  refused("mob_allgather", mob_allgather(world, in, out, 8));
  refused("mob_allgatherv", mob_allgatherv(world, in, out, sizes, places));
  refused("mob_scatter", mob_scatter(world, 0, in, out, 8));
  refused("mob_alltoall", mob_alltoall(world, in, out, 8));
  refused("mob_alltoallv", mob_alltoallv(world, in, sizes, places, out, sizes, places));

  mob_team_t team = MOB_TEAM_NONE;
  const mob_rank_t first = 0;
  refused("mob_team_split", mob_team_split(world, 0, 0, &team));
  refused("mob_team_split_strided", mob_team_split_strided(world, 0, 1, 1, &team));
  refused("mob_team_split_list", mob_team_split_list(world, &first, 1, &team));
  refused("mob_team_free", mob_team_free(o.team));
  EXPECT_EQ(team, MOB_TEAM_NONE);

  mob_mem_t mem = nullptr;
  std::vector<void*> all(o.in.size());
  refused("mob_mem_alloc", mob_mem_alloc(8, &mem));
  refused("mob_team_alloc", mob_team_alloc(world, 8, 0, &mem));
  refused("mob_publish", mob_publish(world, nullptr, all.data()));
  refused("mob_mem_free", mob_mem_free(o.mem));
  refused("mob_mem_free", mob_mem_free(nullptr));
  EXPECT_EQ(mem, nullptr);

  mob_heap_t heap = nullptr;
  void* block = nullptr;
  refused("mob_heap_create", mob_heap_create(world, 0, 8, &heap));
  refused("mob_heap_malloc", mob_heap_malloc(o.heap, 8, &block));
  refused("mob_heap_calloc", mob_heap_calloc(o.heap, 1, 8, &block));
  refused("mob_heap_align", mob_heap_align(o.heap, 64, 8, &block));
  refused("mob_heap_realloc", mob_heap_realloc(o.heap, o.block, 128, &block));
  refused("mob_heap_free", mob_heap_free(o.heap, o.block));
  refused("mob_heap_destroy", mob_heap_destroy(o.heap));
  EXPECT_EQ(heap, nullptr);
  EXPECT_EQ(block, nullptr);

  mob_epoch_t epoch = nullptr;
  mob_access_t access = nullptr;
  mob_mutexes_t mutexes = nullptr;
  refused("mob_epoch_create", mob_epoch_create(world, &epoch));
  refused("mob_epoch_fence", mob_epoch_fence(o.epoch));
  refused("mob_epoch_free", mob_epoch_free(o.epoch));
  refused("mob_access_create", mob_access_create(world, &access));
  refused("mob_access_free", mob_access_free(o.access));
  refused("mob_mutexes_create", mob_mutexes_create(world, 1, &mutexes));
  refused("mob_mutexes_free", mob_mutexes_free(o.mutexes));
  EXPECT_EQ(epoch, nullptr);
  EXPECT_EQ(access, nullptr);
  EXPECT_EQ(mutexes, nullptr);
  refused("mob_finalize", mob_finalize());
}

}  // namespace

TEST(CollectiveInput, RootsOutsideTheTeam) {
  uint64_t in = 1;
  std::vector<uint64_t> out(static_cast<size_t>(mob_size()));
  const size_t list[1] = {8};
  const std::string ranks = "0 to " + std::to_string(mob_size() - 1);
  for (const mob_rank_t root : {-1, mob_size(), INT_MAX, INT_MIN}) {
    expect_error(mob_broadcast(MOB_TEAM_WORLD, root, &in, 8), MOB_ERR_RANK, "mob_broadcast", ranks);
    expect_error(mob_reduce(MOB_TEAM_WORLD, root, MOB_SUM, MOB_UINT64, &in, out.data(), 1),
                 MOB_ERR_RANK, "mob_reduce", ranks);
    expect_error(mob_reduce_user(MOB_TEAM_WORLD, root, &kKeep, &in, out.data(), 1), MOB_ERR_RANK,
                 "mob_reduce_user", ranks);
    expect_error(mob_gather(MOB_TEAM_WORLD, root, &in, out.data(), 8), MOB_ERR_RANK, "mob_gather",
                 ranks);
    expect_error(mob_gatherv(MOB_TEAM_WORLD, root, &in, 8, out.data(), list, list), MOB_ERR_RANK,
                 "mob_gatherv", ranks);
    expect_error(mob_scatter(MOB_TEAM_WORLD, root, out.data(), &in, 8), MOB_ERR_RANK, "mob_scatter",
                 ranks);
  }
  mobius_test::barrier();
}

TEST(CollectiveInput, NullPointers) {
  const auto members = static_cast<size_t>(mob_size());
  std::vector<uint64_t> buffer(members);
  const std::vector<size_t> sizes(members, 8);
  std::vector<size_t> places(members);
  for (size_t i = 0; i < members; ++i) places[i] = 8 * i;
  uint64_t one = 1;
  void* all = buffer.data();
  const mob_rank_t me = mob_rank();
  auto* const world = MOB_TEAM_WORLD;
  const auto expect_null = [](mob_status_t status, const char* call) {
    expect_error(status, MOB_ERR_ARGUMENT, call, "null");
  };
  expect_null(mob_broadcast(world, 0, nullptr, 1), "mob_broadcast");
  expect_null(mob_reduce(world, me, MOB_SUM, MOB_INT8, nullptr, all, 1), "mob_reduce");
  expect_null(mob_reduce(world, me, MOB_SUM, MOB_INT8, all, nullptr, 1), "mob_reduce");
  expect_null(mob_allreduce(world, MOB_SUM, MOB_INT8, nullptr, all, 1), "mob_allreduce");
  expect_null(mob_allreduce(world, MOB_SUM, MOB_INT8, all, nullptr, 1), "mob_allreduce");
  expect_null(mob_scan(world, MOB_SUM, MOB_INT8, all, nullptr, 1), "mob_scan");
  expect_null(mob_exscan(world, MOB_SUM, MOB_INT8, nullptr, all, 1), "mob_exscan");
  expect_null(mob_reduce_user(world, me, nullptr, all, all, 1), "mob_reduce_user");
  expect_null(mob_allreduce_user(world, &kKeep, all, nullptr, 1), "mob_allreduce_user");
  expect_null(mob_scan_user(world, &kKeep, nullptr, all, 1), "mob_scan_user");
  expect_null(mob_exscan_user(world, nullptr, all, all, 1), "mob_exscan_user");
  expect_null(mob_gather(world, me, nullptr, all, 8), "mob_gather");
  expect_null(mob_gather(world, me, &one, nullptr, 8), "mob_gather");
  expect_null(mob_gatherv(world, me, nullptr, 8, all, sizes.data(), places.data()), "mob_gatherv");
  expect_null(mob_gatherv(world, me, &one, 8, nullptr, sizes.data(), places.data()), "mob_gatherv");
  expect_null(mob_gatherv(world, me, &one, 8, all, nullptr, places.data()), "mob_gatherv");
  expect_null(mob_gatherv(world, me, &one, 8, all, sizes.data(), nullptr), "mob_gatherv");
  expect_null(mob_allgather(world, nullptr, all, 8), "mob_allgather");
  expect_null(mob_allgather(world, &one, nullptr, 8), "mob_allgather");
  expect_null(mob_allgatherv(world, nullptr, all, sizes.data(), places.data()), "mob_allgatherv");
  expect_null(mob_allgatherv(world, &one, all, nullptr, places.data()), "mob_allgatherv");
  expect_null(mob_scatter(world, me, nullptr, &one, 8), "mob_scatter");
  expect_null(mob_scatter(world, me, all, nullptr, 8), "mob_scatter");
  expect_null(mob_alltoall(world, nullptr, all, 8), "mob_alltoall");
  expect_null(mob_alltoall(world, all, nullptr, 8), "mob_alltoall");
  expect_null(
      mob_alltoallv(world, nullptr, sizes.data(), places.data(), all, sizes.data(), places.data()),
      "mob_alltoallv");
  expect_null(mob_alltoallv(world, all, sizes.data(), places.data(), all, sizes.data(), nullptr),
              "mob_alltoallv");
  // Buffers of 0 bytes may be null.
  EXPECT_EQ(mob_broadcast(world, 0, nullptr, 0), MOB_OK);
  EXPECT_EQ(mob_allreduce(world, MOB_SUM, MOB_INT8, nullptr, nullptr, 0), MOB_OK);
  EXPECT_EQ(mob_allgather(world, nullptr, nullptr, 0), MOB_OK);
  EXPECT_EQ(mob_alltoall(world, nullptr, nullptr, 0), MOB_OK);
  mobius_test::barrier();
}

TEST(CollectiveInput, OperationsThatAreNotDefined) {
  double in[2] = {1, 2};
  double out[2] = {5, 5};
  auto* const world = MOB_TEAM_WORLD;
  for (const int op : {-1, int{MOB_OP_COUNT}, INT_MAX}) {
    expect_error(mob_allreduce(world, static_cast<mob_op_t>(op), MOB_DOUBLE, in, out, 1),
                 MOB_ERR_ARGUMENT, "mob_allreduce", "not defined");
  }
  for (const int type : {-1, int{MOB_TYPE_COUNT}, INT_MIN}) {
    expect_error(mob_scan(world, MOB_SUM, static_cast<mob_type_t>(type), in, out, 1),
                 MOB_ERR_ARGUMENT, "mob_scan", "not a type");
  }
  expect_error(mob_reduce(world, 0, MOB_BXOR, MOB_DOUBLE, in, out, 1), MOB_ERR_ARGUMENT,
               "mob_reduce", "not defined");
  expect_error(mob_exscan(world, MOB_MAX, MOB_COMPLEX_FLOAT, in, out, 1), MOB_ERR_ARGUMENT,
               "mob_exscan", "MOB_MAX) is not defined on MOB_COMPLEX_FLOAT");
  const mob_user_op_t no_function = {nullptr, nullptr, 8, 0};
  expect_error(mob_allreduce_user(world, &no_function, in, out, 1), MOB_ERR_ARGUMENT,
               "mob_allreduce_user", "no function");
  const mob_user_op_t no_bytes = {&keep, nullptr, 0, 0};
  expect_error(mob_scan_user(world, &no_bytes, in, out, 1), MOB_ERR_ARGUMENT, "mob_scan_user",
               "no bytes");
  EXPECT_EQ(out[0], 5);
  mobius_test::barrier();
}

TEST(CollectiveInput, ElementsThatAreNotAligned) {
  alignas(16) char in[64] = {};
  alignas(16) char out[64] = {};
  auto* const world = MOB_TEAM_WORLD;
  const mob_rank_t me = mob_rank();
  expect_error(mob_allreduce(world, MOB_SUM, MOB_DOUBLE, in + 4, out, 1), MOB_ERR_ARGUMENT,
               "mob_allreduce", "the input");
  expect_error(mob_allreduce(world, MOB_SUM, MOB_INT32, in, out + 2, 1), MOB_ERR_ARGUMENT,
               "mob_allreduce", "not aligned to the 4 bytes of its type");
  expect_error(mob_reduce(world, me, MOB_SUM, MOB_INT16, in, out + 1, 1), MOB_ERR_ARGUMENT,
               "mob_reduce", "the output");
  expect_error(mob_scan(world, MOB_SUM, MOB_COMPLEX_FLOAT, in + 2, out, 1), MOB_ERR_ARGUMENT,
               "mob_scan", "not aligned to the 4 bytes of its type");
  expect_error(mob_exscan(world, MOB_SUM, MOB_UINT64, in + 1, out, 1), MOB_ERR_ARGUMENT,
               "mob_exscan", "the input");
  // Complex elements need the alignment of one real; bytes need none; a buffer of 0 elements may be
  // anywhere.
  EXPECT_EQ(mob_allreduce(world, MOB_SUM, MOB_COMPLEX_DOUBLE, in + 8, out + 8, 2), MOB_OK);
  EXPECT_EQ(mob_allreduce(world, MOB_SUM, MOB_INT8, in + 1, out + 3, 5), MOB_OK);
  EXPECT_EQ(mob_allreduce(world, MOB_SUM, MOB_DOUBLE, in + 1, out + 1, 0), MOB_OK);
  mobius_test::barrier();
}

TEST(CollectiveInput, SizesThatOverflow) {
  double in = 1;
  double out = 5;
  auto* const world = MOB_TEAM_WORLD;
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 8 + 1, size_t{1} << 61}) {
    expect_error(mob_allreduce(world, MOB_SUM, MOB_DOUBLE, &in, &out, count), MOB_ERR_RANGE,
                 "mob_allreduce", "times");
    expect_error(mob_reduce_user(world, 0, &kKeep, &in, &out, count), MOB_ERR_RANGE,
                 "mob_reduce_user", "times");
  }
  EXPECT_EQ(mob_broadcast(world, 0, &in, SIZE_MAX), MOB_ERR_RANGE);
  EXPECT_EQ(mob_gather(world, 0, &in, &out, SIZE_MAX), MOB_ERR_RANGE);
  EXPECT_EQ(mob_allgather(world, &in, &out, SIZE_MAX), MOB_ERR_RANGE);
  EXPECT_EQ(mob_scatter(world, 0, &in, &out, SIZE_MAX), MOB_ERR_RANGE);
  EXPECT_EQ(mob_alltoall(world, &in, &out, SIZE_MAX), MOB_ERR_RANGE);
  const std::vector<size_t> huge(static_cast<size_t>(mob_size()), SIZE_MAX - 8);
  EXPECT_EQ(mob_gatherv(world, mob_rank(), &in, 8, &out, huge.data(), huge.data()), MOB_ERR_RANGE);
  EXPECT_EQ(mob_allgatherv(world, &in, &out, huge.data(), huge.data()), MOB_ERR_RANGE);
  EXPECT_EQ(mob_alltoallv(world, &in, huge.data(), huge.data(), &out, huge.data(), huge.data()),
            MOB_ERR_RANGE);
  EXPECT_EQ(out, 5);
  mobius_test::barrier();
}

TEST(CollectiveInput, SizesThatDoNotMatch) {
  const auto members = static_cast<size_t>(mob_size());
  std::vector<uint64_t> buffer(2 * members);
  std::vector<size_t> sizes(members, 8);
  std::vector<size_t> places(members);
  for (size_t i = 0; i < members; ++i) places[i] = 16 * i;
  std::vector<size_t> others = sizes;
  others[static_cast<size_t>(mob_rank())] = 4;
  expect_error(mob_alltoallv(MOB_TEAM_WORLD, buffer.data(), sizes.data(), places.data(),
                             buffer.data(), others.data(), places.data()),
               MOB_ERR_ARGUMENT, "mob_alltoallv", "must match");
  // The root detects the error, and the team continues.
  sizes.back() = 16;
  const mob_status_t status =
      mob_gatherv(MOB_TEAM_WORLD, 0, places.data(), 8, buffer.data(), sizes.data(), places.data());
  if (mob_rank() == 0) {
    expect_error(status, MOB_ERR_ARGUMENT, "mob_gatherv", "expects 16");
  } else {
    EXPECT_EQ(status, MOB_OK);
  }
  mobius_test::barrier();
}

TEST(CollectiveInput, TeamsThatAreNotLive) {
  mob_team_t freed = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, 0, &freed), MOB_OK);
  EXPECT_EQ(mob_team_free(freed), MOB_OK);
  uint64_t a = 1;
  uint64_t b = 2;
  size_t list = 8;
  for (mob_team_t team : {freed, mob_team_t{MOB_TEAM_NONE}, reinterpret_cast<mob_team_t>(&a)}) {
    EXPECT_EQ(mob_team_barrier(team), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_broadcast(team, 0, &a, 8), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_reduce(team, 0, MOB_SUM, MOB_INT8, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_allreduce(team, MOB_SUM, MOB_INT8, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_scan(team, MOB_SUM, MOB_INT8, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_exscan(team, MOB_SUM, MOB_INT8, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_reduce_user(team, 0, &kKeep, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_allreduce_user(team, &kKeep, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_scan_user(team, &kKeep, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_exscan_user(team, &kKeep, &a, &b, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_gather(team, 0, &a, &b, 8), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_gatherv(team, 0, &a, 8, &b, &list, &list), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_allgather(team, &a, &b, 8), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_allgatherv(team, &a, &b, &list, &list), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_scatter(team, 0, &a, &b, 8), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_alltoall(team, &a, &b, 8), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_alltoallv(team, &a, &list, &list, &b, &list, &list), MOB_ERR_HANDLE);
  }
  EXPECT_EQ(b, 2u);
  mobius_test::barrier();
}

// Only one rank makes the calls; the others' next call waits for its own.
TEST(CollectiveInput, InAMessageHandler) {
  Objects objects;
  static std::atomic<bool> handled;
  handled = false;
  mobius_test::register_handler(
      kHandler,
      [](const mob_message_t*, void* argument, mob_delivery_t*) {
        expect_refused_in_handler(*static_cast<Objects*>(argument));
        handled = true;
      },
      &objects);
  mobius_test::barrier();
  if (mob_rank() == 0) {
    mobius_test::send(0, kHandler);
    mobius_test::poll_until([] { return handled.load(); });
  }
  uint64_t mark = mob_rank() == 0 ? 5 : 0;
  EXPECT_EQ(mob_broadcast(MOB_TEAM_WORLD, 0, &mark, 8), MOB_OK) << mob_last_error();
  EXPECT_EQ(mark, 5u);
  EXPECT_EQ(mob_team_barrier(objects.team), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_epoch_fence(objects.epoch), MOB_OK) << mob_last_error();
  EXPECT_TRUE(std::ranges::all_of(objects.out, [](uint64_t value) { return value == 2; }));
  mobius_test::barrier();
}
