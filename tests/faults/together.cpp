// SPDX-License-Identifier: BSD-3-Clause

// Joint operations: collective calls, locks, messages, notifications, epochs.

#include <algorithm>

#include "job.h"
#include "scenarios.h"

namespace faults {

void barrier(Job& job) {
  job.until_failure("mob_barrier", mob_barrier);
  job.finish();
}

void allocation(Job& job) {
  job.until_failure("mob_mem_alloc and mob_mem_free", [&] {
    mob_mem_t mem = nullptr;
    const mob_status_t status = mob_mem_alloc(1 << 16, &mem);
    if (status != MOB_OK) return status;
    std::memset(mob_mem_local(mem), 0x55, 1 << 16);
    return mob_mem_free(mem);
  });
  job.finish();
}

// Each rank allocates by itself, under a lock that all share.
void local_allocation(Job& job) {
  job.until_death([&] {
    void* memory = nullptr;
    expect(mob_local_alloc(size_t{3} << 20, 64, &memory), MOB_OK, "mob_local_alloc");
    expect(mob_local_free(memory), MOB_OK, "mob_local_free");
  });
  job.finish();
}

// Objects other than memory that the members of a team make and free together.
void objects(Job& job) {
  job.until_failure("making and freeing", [&] {
    mob_mutexes_t mutexes = nullptr;
    mob_access_t access = nullptr;
    mob_epoch_t epoch = nullptr;
    mob_status_t status = mob_mutexes_create(MOB_TEAM_WORLD, 3, &mutexes);
    if (status == MOB_OK) status = mob_mutexes_free(mutexes);
    if (status == MOB_OK) status = mob_access_create(MOB_TEAM_WORLD, &access);
    if (status == MOB_OK) status = mob_access_free(access);
    if (status == MOB_OK) status = mob_epoch_create(MOB_TEAM_WORLD, &epoch);
    if (status == MOB_OK) status = mob_epoch_free(epoch);
    return status;
  });
  job.finish();
}

void split(Job& job) {
  job.until_failure("mob_team_split and mob_team_free", [&] {
    mob_team_t team = MOB_TEAM_NONE;
    const mob_status_t status = mob_team_split(MOB_TEAM_WORLD, 0, -job.rank(), &team);
    return status != MOB_OK ? status : mob_team_free(team);
  });
  // A team of the survivors.
  mob_team_t team = MOB_TEAM_NONE;
  expect(mob_team_split(job.survivors(), 0, 0, &team), MOB_OK, "a split of the survivors");
  expect(mob_team_barrier(team), MOB_OK, "a barrier of the new team");
  job.finish();
}

namespace {

// The survivors have all got the same value. The victim takes no part.
void expect_same(Job& job, uint64_t value, const char* what) {
  if (job.is_victim()) return;
  std::vector<uint64_t> values(static_cast<size_t>(job.size()));
  expect(mob_allgather(job.survivors(), &value, values.data(), sizeof value), MOB_OK,
         "mob_allgather of the survivors");
  for (mob_rank_t i = 0; i + 1 < job.size(); ++i) {
    if (values[static_cast<size_t>(i)] != value) complain("the survivors differ in %s", what);
  }
}

}  // namespace

// Whenever the victim dies, the others get the same team and the same bits.
void shrink(Job& job) {
  uint32_t is_over = 0;
  mob_rank_t size = job.size();
  while (is_over == 0) {
    mob_team_t team = MOB_TEAM_NONE;
    expect(mob_team_shrink(MOB_TEAM_WORLD, &team), MOB_OK, "mob_team_shrink");
    const mob_rank_t living = mob_team_size(team);
    if (living > size || living < job.size() - 1) complain("%d members live", living);
    size = living;
    expect_same(job, static_cast<uint64_t>(living), "the size of the new team");
    const mob_status_t status = mob_team_free(team);
    if (living < job.size() || status != MOB_ERR_PEER) expect(status, MOB_OK, "mob_team_free");
    uint32_t bits = mob_rank_alive(job.victim()) == 0 ? 1 : 0;
    bits |= uint32_t{2} << job.rank();  // which nobody else sets
    expect(mob_team_agree(MOB_TEAM_WORLD, &bits), MOB_OK, "mob_team_agree");
    expect_same(job, bits, "the bits that all have set");
    if (job.size() > 2 && bits > 1) complain("bits %#x, which not all have set", bits);
    is_over = bits & 1;
  }
  mob_team_t rest = MOB_TEAM_NONE;
  expect(mob_team_shrink(MOB_TEAM_WORLD, &rest), MOB_OK, "mob_team_shrink");
  if (mob_team_size(rest) != job.size() - 1) complain("%d members live", mob_team_size(rest));
  for (mob_rank_t i = 0; i < mob_team_size(rest); ++i) {
    const mob_rank_t wanted = i < job.victim() ? i : i + 1;
    if (mob_team_number(rest, i) != wanted) complain("member %d is not rank %d", i, wanted);
  }
  mob_mem_t mem = nullptr;
  expect(mob_team_alloc(rest, 1 << 16, 0, &mem), MOB_OK, "mob_team_alloc of the living");
  expect(mob_mem_free(mem), MOB_OK, "mob_mem_free");
  // The world goes on to fail.
  expect(mob_barrier(), MOB_ERR_PEER, "mob_barrier");
  expect(mob_team_free(rest), MOB_OK, "mob_team_free of the living");
  job.finish();
}

// Every rank counts every rank's counter, and waits until all have counted its own.
void counters(Job& job) {
  const auto slot = static_cast<size_t>(job.rank());
  job.until_failure(
      "mob_counter_wait",
      [&] {
        mob_status_t to_victim = MOB_OK;
        for (mob_rank_t target = 0; target < job.size(); ++target) {
          Block& there = job.block(target);
          mob_transfer_t put{};
          put.kind = MOB_PUT;
          put.shape = MOB_CONTIGUOUS;
          put.rank = target;
          put.remote = there.slots[slot];
          put.local = job.here().slots[slot];
          put.bytes = 64;
          mob_status_t status =
              mob_get(target, &there.counter, &put.target_counter, sizeof there.counter);
          if (status == MOB_OK) status = mob_transfer(&put);
          if (!job.is_done(target, status, "mob_transfer")) to_victim = status;
        }
        const mob_status_t status =
            mob_counter_wait(job.here().counter, static_cast<uint64_t>(job.size()), nullptr);
        return status != MOB_OK ? status : to_victim;
      },
      false);
  job.finish();
}

namespace {

// Changes two words one after the other, under a lock that reports if its owner died in between.
template <typename Lock, typename Unlock>
void exclude(Job& job, Lock lock, Unlock unlock) {
  const mob_rank_t target = job.neighbour();
  Block& mine = job.here();
  Block& there = job.block(target);
  job.until_death([&] {
    int recovered = 0;
    uint64_t pair[2] = {0, 0};
    __atomic_store_n(&mine.started, mine.started + 1, __ATOMIC_SEQ_CST);
    expect(lock(target, &recovered), MOB_OK, "locking");
    expect(mob_get(target, there.pair, pair, sizeof pair), MOB_OK, "mob_get");
    if (pair[0] != pair[1] && recovered == 0) complain("two were in a lock at a time");
    ++pair[0];
    expect(mob_put(target, &there.pair[0], &pair[0], sizeof pair[0]), MOB_OK, "mob_put");
    expect(mob_put(target, &there.pair[1], &pair[0], sizeof pair[0]), MOB_OK, "mob_put");
    expect(unlock(target), MOB_OK, "unlocking");
    __atomic_store_n(&mine.finished, mine.finished + 1, __ATOMIC_SEQ_CST);
  });
  job.finish();
  job.check_bounds("locked", job.remote_word(target, there.pair[0]));
}

}  // namespace

void mutex(Job& job) {
  exclude(
      job,
      [&](mob_rank_t rank, int* recovered) {
        return mob_mutex_lock(job.mutexes(), 0, rank, recovered);
      },
      [&](mob_rank_t rank) { return mob_mutex_unlock(job.mutexes(), 0, rank); });
}

// A lock that lies in memory of the target.
void word_lock(Job& job) {
  void* lock = nullptr;
  expect(mob_ptr(job.neighbour(), &job.block(job.neighbour()).lock, &lock), MOB_OK, "mob_ptr");
  exclude(
      job,
      [&](mob_rank_t, int* recovered) {
        return mob_lock(static_cast<mob_lock_t*>(lock), recovered);
      },
      [&](mob_rank_t target) {
        expect(mob_flush(target), MOB_OK, "mob_flush");
        return mob_unlock(static_cast<mob_lock_t*>(lock));
      });
}

// Rank 0, on another host, holds a lock that the victim hosts when the victim dies. Rank 0 can no
// longer release it, and yet the victim's local peers get it.
template <typename Lock, typename Unlock>
void held(Job& job, Lock lock, Unlock unlock) {
  if (job.rank() == 0) expect(lock(true), MOB_OK, "the lock of a rank on another host");
  expect(mob_barrier(), MOB_OK, "mob_barrier");
  if (job.is_victim()) raise(SIGKILL);
  while (!job.is_over()) {
  }
  if (!job.is_elsewhere(job.victim())) {
    expect(lock(false), MOB_OK, "the lock of a dead local peer");
    expect(unlock(), MOB_OK, "the end of the lock of a dead local peer");
  }
  expect(mob_team_barrier(job.survivors()), MOB_OK, "mob_team_barrier of the survivors");
  if (job.rank() == 0) (void)unlock();
}

void held_mutex(Job& job) {
  held(
      job, [&](bool) { return mob_mutex_lock(job.mutexes(), 0, job.victim(), nullptr); },
      [&] { return mob_mutex_unlock(job.mutexes(), 0, job.victim()); });
}

void held_exclusive(Job& job) {
  held(
      job,
      [&](bool) { return mob_access_lock(job.access(), job.victim(), MOB_EXCLUSIVE, nullptr); },
      [&] { return mob_access_unlock(job.access(), job.victim()); });
}

void held_shared(Job& job) {
  held(
      job,
      [&](bool from_elsewhere) {
        return mob_access_lock(job.access(), job.victim(),
                               from_elsewhere ? MOB_SHARED : MOB_EXCLUSIVE, nullptr);
      },
      [&] { return mob_access_unlock(job.access(), job.victim()); });
}

// Fails for the victim, and keeps no access to the others.
void lock_all(Job& job) {
  expect(mob_barrier(), MOB_OK, "mob_barrier");
  if (job.is_victim()) raise(SIGKILL);
  while (!job.is_over()) {
  }
  if (job.rank() == 0) {
    expect(mob_access_lock_all(job.access(), nullptr), MOB_ERR_PEER, "mob_access_lock_all");
    expect(mob_access_unlock_all(job.access()), MOB_ERR_STATE, "mob_access_unlock_all");
  }
  expect(mob_team_barrier(job.survivors()), MOB_OK, "mob_team_barrier of the survivors");
  if (job.rank() != 0) {
    expect(mob_access_lock(job.access(), 0, MOB_EXCLUSIVE, nullptr), MOB_OK, "mob_access_lock");
    expect(mob_access_unlock(job.access(), 0), MOB_OK, "mob_access_unlock");
  }
  job.wait_for_other_hosts();
}

// Shared access in between, which the victim may hold when it dies.
void access_lock(Job& job) {
  exclude(
      job,
      [&](mob_rank_t rank, int* recovered) {
        const mob_status_t shared =
            mob_access_lock(job.access(), job.victim(), MOB_SHARED, nullptr);
        if (job.is_done(job.victim(), shared, "mob_access_lock for shared access")) {
          (void)job.is_done(job.victim(), mob_access_unlock(job.access(), job.victim()),
                            "mob_access_unlock");
        }
        return mob_access_lock(job.access(), rank, MOB_EXCLUSIVE, recovered);
      },
      [&](mob_rank_t rank) { return mob_access_unlock(job.access(), rank); });
}

namespace {

// Messages to all ranks, round after round; `payload` gives their contents.
template <typename Payload>
void send_to_all(Job& job, unsigned handler, size_t bytes, Payload payload) {
  unsigned round = 0;
  job.until_failure("a message", [&] {
    ++round;
    mob_status_t to_victim = MOB_OK;
    for (mob_rank_t target = 0; target < job.size(); ++target) {
      mob_status_t status =
          mob_message_send(target, handler, nullptr, 0, payload(round), bytes, nullptr);
      if (status == MOB_OK) status = mob_message_flush(target);
      if (target == job.victim()) {
        to_victim = status;
      } else {
        expect(status, MOB_OK, "a message to one who is alive");
      }
    }
    return to_victim;
  });
  job.finish();
  // Messages that the victim did not get are no errors of memory that the survivors share.
  mob_heap_t made = nullptr;
  mob_mem_t mem = nullptr;
  void* block = nullptr;
  expect(mob_heap_create(job.survivors(), 1 << 16, 8 << 20, &made), MOB_OK, "mob_heap_create");
  expect(mob_heap_malloc(made, 1000, &block), MOB_OK, "mob_heap_malloc");
  expect(mob_heap_realloc(made, block, 2000, &block), MOB_OK, "mob_heap_realloc");
  expect(mob_heap_free(made, block), MOB_OK, "mob_heap_free");
  expect(mob_heap_destroy(made), MOB_OK, "mob_heap_destroy");
  expect(mob_team_alloc(job.survivors(), 1000, 0, &mem), MOB_OK, "mob_team_alloc");
  expect(mob_mem_free(mem), MOB_OK, "mob_mem_free");
}

}  // namespace

void messages(Job& job) {
  const std::vector<unsigned char> payload(kSlotBytes, 1);
  send_to_all(job, kHandler, payload.size(), [&](unsigned) { return payload.data(); });
}

// Payloads that are copied in place, by the kernel or from shared memory.
void large_messages(Job& job) {
  std::vector<double> own(kAskedDoubles);
  void* allocated = nullptr;
  expect(mob_local_alloc(kAskedDoubles * sizeof(double), 0, &allocated), MOB_OK, "mob_local_alloc");
  auto* shared = static_cast<double*>(allocated);
  send_to_all(job, kLargeHandler, kAskedDoubles * sizeof(double), [&](unsigned round) {
    double* payload = round % 2 == 0 ? own.data() : shared;
    std::fill_n(payload, kAskedDoubles, static_cast<double>(round));
    return payload;
  });
  // Messages of the survivors have arrived whole.
  for (mob_rank_t sender = 0; sender < job.size(); ++sender) {
    const double* came = job.private_memory() + static_cast<size_t>(sender) * kAskedDoubles;
    for (size_t i = 0; sender != job.victim() && i < kAskedDoubles; ++i) {
      if (came[i] == came[0]) continue;
      complain("element %zu of a payload of rank %d is wrong", i, sender);
      break;
    }
  }
}

void heap(Job& job) {
  job.until_failure("a heap", [&] {
    mob_heap_t made = nullptr;
    void* block = nullptr;
    mob_status_t status = mob_heap_create(MOB_TEAM_WORLD, 1 << 16, 8 << 20, &made);
    if (status == MOB_OK) status = mob_heap_malloc(made, 1000, &block);
    if (status == MOB_OK) status = mob_heap_realloc(made, block, 1 << 20, &block);
    if (status == MOB_OK) status = mob_heap_free(made, block);
    if (status == MOB_OK) status = mob_heap_destroy(made);
    return status;
  });
  job.finish();
}

// Every rank notifies every rank. All wait for the victim first, so that the rounds of all end
// together.
void notify(Job& job) {
  job.until_failure(
      "mob_notify_wait",
      [&] {
        for (mob_rank_t target = 0; target < job.size(); ++target) {
          expect(mob_notify(target), MOB_OK, "mob_notify");
        }
        mob_status_t status = MOB_OK;
        for (mob_rank_t i = 0; i < job.size() && status == MOB_OK; ++i) {
          status = mob_notify_wait((job.victim() + i) % job.size(), nullptr);
        }
        return status;
      },
      false);
  job.finish();
}

// Rounds in which each rank tells the next one its round, and waits for the one before.
void wait_until(Job& job) {
  uint64_t round = 0;
  const mob_rank_t right = (job.rank() + 1) % job.size();
  job.until_failure(
      "mob_wait_until_u8",
      [&] {
        ++round;
        expect(mob_put8(right, &job.block(right).round, round), MOB_OK, "mob_put8");
        return mob_wait_until_u8(&job.here().round, MOB_GE, round);
      },
      false);
  job.finish();
}

void epochs(Job& job) {
  std::vector<mob_rank_t> others;
  for (mob_rank_t each = 0; each < job.size(); ++each) {
    if (each != job.rank()) others.push_back(each);
  }
  const auto count = static_cast<mob_rank_t>(others.size());
  job.until_failure(
      "an epoch",
      [&] {
        mob_status_t status = mob_epoch_post(job.epoch(), others.data(), count);
        if (status == MOB_OK) status = mob_epoch_start(job.epoch(), others.data(), count);
        if (status == MOB_OK) status = mob_epoch_complete(job.epoch());
        if (status == MOB_OK) status = mob_epoch_wait(job.epoch());
        return status;
      },
      false);
  job.finish();
}

void fence(Job& job) {
  job.until_failure("mob_epoch_fence", [&] { return mob_epoch_fence(job.epoch()); });
  job.finish();
}

}  // namespace faults
