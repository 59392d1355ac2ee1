// SPDX-License-Identifier: BSD-3-Clause

// Every call that takes a place of a target, with each common argument wrong: all refuse it alike,
// under their own name, and nothing is transferred.

#include <climits>
#include <functional>
#include <string>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::outcome;
using mobius_test::Shared;

namespace {

constexpr size_t kCallBytes = 64;
// 24 bytes, as rows, pieces or words: no other object of that size is involved.
constexpr size_t kEach = 8;
constexpr size_t kCount = 3;
constexpr ptrdiff_t kStride = kEach;

struct Buffers {
  alignas(16) unsigned char local[kCallBytes] = {};
  alignas(16) unsigned char fetched[kCallBytes] = {};
  mob_handle_t handle = MOB_HANDLE_DONE;
  uint64_t word = 0;           // a word that is counted
  uint64_t* signal = nullptr;  // of the target
};

struct Call {
  std::string name;
  size_t bytes;  // bytes that the access covers
  std::function<mob_status_t(mob_rank_t, unsigned char*, void*, Buffers&)> run;
};

template <typename T>
Call value_put(const char* name, mob_status_t (*put)(mob_rank_t, void*, T)) {
  return {name, sizeof(T), [put](mob_rank_t rank, unsigned char* remote, void*, Buffers&) {
            return put(rank, remote, T{1});
          }};
}

template <typename T>
Call value_get(const char* name, mob_status_t (*get)(mob_rank_t, const void*, T*)) {
  return {name, sizeof(T), [get](mob_rank_t rank, unsigned char* remote, void* local, Buffers&) {
            return get(rank, remote, static_cast<T*>(local));
          }};
}

std::vector<Call> calls() {
  using Bytes = unsigned char*;
  constexpr size_t kAll = kEach * kCount;
  const auto pieces = [](Bytes remote, void* local, const auto& body) {
    void* remotes[kCount];
    void* locals[kCount];
    for (size_t i = 0; i < kCount; ++i) {
      remotes[i] = remote == nullptr ? nullptr : remote + i * kEach;
      locals[i] = local == nullptr ? nullptr : static_cast<Bytes>(local) + i * kEach;
    }
    return body(remotes, locals);
  };
  return {
      value_put("mob_put8", mob_put8),
      value_put("mob_put4", mob_put4),
      value_put("mob_put2", mob_put2),
      value_put("mob_put1", mob_put1),
      value_get("mob_get8", mob_get8),
      value_get("mob_get4", mob_get4),
      value_get("mob_get2", mob_get2),
      value_get("mob_get1", mob_get1),
      {"mob_put", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers&) { return mob_put(r, to, from, kAll); }},
      {"mob_get", kAll,
       [](mob_rank_t r, Bytes from, void* to, Buffers&) { return mob_get(r, from, to, kAll); }},
      {"mob_put_nb", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers& b) {
         const mob_status_t status = mob_put_nb(r, to, from, kAll, &b.handle);
         return status == MOB_OK ? mob_wait(&b.handle) : status;
       }},
      {"mob_get_nb", kAll,
       [](mob_rank_t r, Bytes from, void* to, Buffers& b) {
         const mob_status_t status = mob_get_nb(r, from, to, kAll, &b.handle);
         return status == MOB_OK ? mob_wait(&b.handle) : status;
       }},
      {"mob_put_nbi", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers&) { return mob_put_nbi(r, to, from, kAll); }},
      {"mob_get_nbi", kAll,
       [](mob_rank_t r, Bytes from, void* to, Buffers&) { return mob_get_nbi(r, from, to, kAll); }},
      {"mob_put_signal", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers& b) {
         return mob_put_signal(r, to, from, kAll, b.signal, 1, MOB_SIGNAL_ADD);
       }},
      {"mob_get_signal", kAll,
       [](mob_rank_t r, Bytes from, void* to, Buffers& b) {
         return mob_get_signal(r, from, to, kAll, b.signal, 1, MOB_SIGNAL_ADD);
       }},
      {"mob_put_counted", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers& b) {
         return mob_put_counted(r, to, from, kAll, nullptr, &b.word, nullptr);
       }},
      {"mob_get_counted", kAll,
       [](mob_rank_t r, Bytes from, void* to, Buffers& b) {
         return mob_get_counted(r, from, to, kAll, nullptr, &b.word, nullptr);
       }},
      {"mob_put_strided", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers&) {
         return mob_put_strided(r, to, &kStride, from, &kStride, kEach, &kCount, 1);
       }},
      {"mob_get_strided", kAll,
       [](mob_rank_t r, Bytes from, void* to, Buffers&) {
         return mob_get_strided(r, from, &kStride, to, &kStride, kEach, &kCount, 1);
       }},
      {"mob_accumulate_strided", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers&) {
         return mob_accumulate_strided(r, to, &kStride, from, &kStride, kEach, &kCount, 1,
                                       MOB_UINT64, MOB_BOR, nullptr);
       }},
      {"mob_put_pieces", kAll,
       [=](mob_rank_t r, Bytes to, void* from, Buffers&) {
         return pieces(to, from, [&](void* const* remotes, void* const* locals) {
           return mob_put_pieces(r, remotes, locals, kCount, kEach);
         });
       }},
      {"mob_get_pieces", kAll,
       [=](mob_rank_t r, Bytes from, void* to, Buffers&) {
         return pieces(from, to, [&](void* const* remotes, void* const* locals) {
           return mob_get_pieces(r, remotes, locals, kCount, kEach);
         });
       }},
      {"mob_accumulate_pieces", kAll,
       [=](mob_rank_t r, Bytes to, void* from, Buffers&) {
         return pieces(to, from, [&](void* const* remotes, void* const* locals) {
           return mob_accumulate_pieces(r, remotes, locals, kCount, kEach, MOB_UINT64, MOB_BOR,
                                        nullptr);
         });
       }},
      {"mob_accumulate", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers&) {
         return mob_accumulate(r, to, from, kCount, MOB_UINT64, MOB_BOR);
       }},
      {"mob_accumulate_scaled", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers&) {
         const uint64_t two = 2;
         return mob_accumulate_scaled(r, to, from, kCount, MOB_UINT64, &two);
       }},
      {"mob_fetch_accumulate", kAll,
       [](mob_rank_t r, Bytes to, void* from, Buffers& b) {
         return mob_fetch_accumulate(r, to, from, b.fetched, kCount, MOB_UINT64, MOB_BOR);
       }},
      {"mob_fetch_op", kEach,
       [](mob_rank_t r, Bytes to, void* from, Buffers& b) {
         return mob_fetch_op(r, to, MOB_UINT64, MOB_BOR, from, b.fetched);
       }},
  };
}

class EveryCall : public testing::Test {
 protected:
  EveryCall() : memory_(kCallBytes), target_(mobius_test::right_of(mob_rank())) {
    buffers_.signal = reinterpret_cast<uint64_t*>(memory_.at(target_, kCallBytes - 8));
    barrier();
  }
  ~EveryCall() override {
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    barrier();
    // A process on another host refuses a request part by part, after the origin has given it away.
    if (!mobius_test::one_host()) return;
    EXPECT_TRUE(mobius_test::all_are(memory_.local(), kCallBytes, 0)) << "a refused call wrote";
    EXPECT_TRUE(mobius_test::all_are(buffers_.fetched, kCallBytes, 0)) << "a refused call fetched";
    EXPECT_EQ(buffers_.word, 0u) << "a refused call counted";
  }

  const Shared memory_;
  const mob_rank_t target_;
  Buffers buffers_;
};

}  // namespace

TEST_F(EveryCall, RanksOutsideTheJob) {
  for (const Call& c : calls()) {
    for (const mob_rank_t rank : {-1, mob_size(), INT_MAX, INT_MIN}) {
      expect_error(c.run(rank, memory_.at(target_), buffers_.local, buffers_), MOB_ERR_RANK, c.name,
                   "rank " + std::to_string(mobius_test::number_of(rank)));
    }
  }
}

TEST_F(EveryCall, PlacesOutsideTheAllocation) {
  uint64_t own[3] = {};
  for (const Call& c : calls()) {
    unsigned char* const end = memory_.at(target_, kCallBytes);
    for (unsigned char* remote : {end, end - c.bytes + (c.bytes < kEach ? 1 : kEach),
                                  reinterpret_cast<unsigned char*>(own)}) {
      if (remote + c.bytes == end) continue;
      const mob_status_t status = c.run(target_, remote, buffers_.local, buffers_);
      if (mobius_test::same_host(target_)) {
        expect_error(status, MOB_ERR_RANGE, c.name, "rank " + std::to_string(target_));
      } else {
        EXPECT_EQ(outcome(target_, status), MOB_ERR_RANGE) << c.name;
      }
    }
  }
}

TEST_F(EveryCall, NullPlaces) {
  for (const Call& c : calls()) {
    expect_error(c.run(target_, nullptr, buffers_.local, buffers_), MOB_ERR_ARGUMENT, c.name,
                 "null");
    const bool has_local = c.name.rfind("mob_put", 0) != 0 || c.name.size() != 8;
    if (!has_local) continue;
    // The inlined get does not check: atomic.h and rma.h say so.
    if (c.name.rfind("mob_get", 0) == 0 && c.name.size() == 8) continue;
    expect_error(c.run(target_, memory_.at(target_), nullptr, buffers_), MOB_ERR_ARGUMENT, c.name,
                 "null");
  }
}

TEST(EveryHeapCall, OfAHeapThatIsNotLive) {
  mob_heap_t freed = nullptr;
  EXPECT_EQ(mob_heap_create(MOB_TEAM_WORLD, 4096, 1 << 20, &freed), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_heap_destroy(freed), MOB_OK);
  uint64_t elsewhere[8] = {};
  for (mob_heap_t heap : {freed, mob_heap_t{nullptr}, reinterpret_cast<mob_heap_t>(elsewhere)}) {
    void* pointer = elsewhere;
    size_t bytes = 5;
    size_t used = 5;
    const auto refused = [](mob_status_t status, const char* call) {
      expect_error(status, MOB_ERR_HANDLE, call, "not a live heap");
    };
    refused(mob_heap_malloc(heap, 8, &pointer), "mob_heap_malloc");
    refused(mob_heap_calloc(heap, 1, 8, &pointer), "mob_heap_calloc");
    refused(mob_heap_align(heap, 64, 8, &pointer), "mob_heap_align");
    refused(mob_heap_realloc(heap, nullptr, 8, &pointer), "mob_heap_realloc");
    refused(mob_heap_free(heap, elsewhere), "mob_heap_free");
    refused(mob_heap_address(heap, 0, elsewhere, &pointer), "mob_heap_address");
    refused(mob_heap_stride(heap, &bytes), "mob_heap_stride");
    refused(mob_heap_bytes(heap, &bytes, &used), "mob_heap_bytes");
    if (heap != nullptr) refused(mob_heap_destroy(heap), "mob_heap_destroy");
    EXPECT_EQ(pointer, elsewhere);
    EXPECT_EQ(bytes, 5u);
    EXPECT_EQ(used, 5u);
  }
  barrier();
}
