// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by all scenarios of driver.cpp: one job in which a rank, the victim, dies.

#include <mobius/mobius.h>

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace faults {

constexpr size_t kDoubles = 2048;
constexpr size_t kAskedDoubles = 16384;  // for each rank; as many as travel in several pieces
constexpr size_t kSlotBytes = 4096;      // for each writer, in the memory of each rank
constexpr mob_rank_t kMostRanks = 16;
constexpr uint64_t kMostDelayNs = 15'000'000;

inline bool failed = false;

[[gnu::format(printf, 1, 2)]] inline void complain(const char* format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "rank %d: %s\n", mob_rank(), text);
  failed = true;
}

inline void expect(mob_status_t status, mob_status_t wanted, const char* what) {
  if (status == wanted) return;
  complain("%s gave %s, not %s: %s", what, mob_status_name(status), mob_status_name(wanted),
           mob_last_error());
}

// The memory that each rank shares with the others.
struct Block {
  uint64_t started;  // number of accumulates or additions begun, and of those completed
  uint64_t finished;
  uint64_t sum;      // target of fetch-and-add
  uint64_t last;     // target of swaps: the last rank that swapped, plus one
  uint64_t pair[2];  // equal whenever the lock that protects them is free
  mob_lock_t lock;
  mob_counter_t counter;
  double* exposed;            // kAskedDoubles for each rank, in the owner's private memory
  unsigned char* moved;       // kSlotBytes for each rank, if its pages have been moved
  uint64_t round;             // the round that its left neighbour has reached
  uint64_t told[kMostRanks];  // signals of each rank
  double doubles[kDoubles];
  uint64_t integers[kDoubles];
  unsigned char slots[kMostRanks][kSlotBytes];
};

constexpr unsigned kHandler = 7;
constexpr unsigned kLargeHandler = 8;

// Puts payloads into the slot of their sender.
inline void take_message(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  delivery->payload = static_cast<unsigned char (*)[kSlotBytes]>(argument)[message->source];
}

// Puts kAskedDoubles into the place of their sender.
inline void take_large_message(const mob_message_t* message, void* argument,
                               mob_delivery_t* delivery) {
  delivery->payload =
      static_cast<double*>(argument) + static_cast<size_t>(message->source) * kAskedDoubles;
}

class Job {
 public:
  explicit Job(uint64_t seed) : random_(seed), seed_(seed) {}

  // Kills the calling process at a moment that the seed chooses, whatever it is doing then.
  void arm() {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t timer{};
    itimerspec at{};
    at.it_value.tv_nsec = static_cast<long>(1 + random_() % kMostDelayNs);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &at, nullptr) != 0) {
      complain("no timer");
    }
  }

  void choose(mob_rank_t size) { victim_ = static_cast<mob_rank_t>(seed_ % size); }

  // Joins, with memory and a team of the survivors, and does what `prepare` does besides.
  void start(bool kills, void (*prepare)(Job& job)) {
    expect(mob_init(), MOB_OK, "mob_init");
    rank_ = mob_rank();
    size_ = mob_size();
    choose(size_);
    expect(mob_mem_alloc(sizeof(Block), &mem_), MOB_OK, "mob_mem_alloc");
    expect(mob_team_split(MOB_TEAM_WORLD, is_victim() ? 1 : 0, rank_, &survivors_), MOB_OK,
           "mob_team_split");
    expect(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes_), MOB_OK, "mob_mutexes_create");
    expect(mob_access_create(MOB_TEAM_WORLD, &access_), MOB_OK, "mob_access_create");
    expect(mob_epoch_create(MOB_TEAM_WORLD, &epoch_), MOB_OK, "mob_epoch_create");
    expect(mob_handler_register(kHandler, take_message, here().slots), MOB_OK,
           "mob_handler_register");
    expect(mob_handler_register(kLargeHandler, take_large_message, private_.data()), MOB_OK,
           "mob_handler_register");
    expect(mob_counter_create(&here().counter), MOB_OK, "mob_counter_create");
    here().exposed = private_.data();
    expect(mob_expose(private_.data(), private_.size() * sizeof(double), 0, &exposed_), MOB_OK,
           "mob_expose");
    if (prepare != nullptr) prepare(*this);
    expect(mob_barrier(), MOB_OK, "mob_barrier");
    if (kills && is_victim()) arm();
  }

  // The end of a survivor: the survivors still have each other, unless the launcher ends the job
  // and kills them one after the other.
  void finish() {
    const char* on_death = std::getenv("MOBIUS_ON_DEATH");
    if (on_death == nullptr || std::strcmp(on_death, "error") != 0) {
      mob_team_barrier(survivors_);
      for (;;) pause();  // until the launcher kills this one
    }
    // Puts to the victim may have failed; no later call is to report that.
    if (is_elsewhere(victim_)) (void)mob_flush_all();
    if (mob_rank_alive(victim_) != 0) complain("rank %d counts as alive", victim_);
    for (mob_rank_t each = 0; each < size_; ++each) {
      if (each != victim_ && mob_rank_alive(each) != 1) complain("rank %d counts as dead", each);
    }
    expect(mob_team_barrier(survivors_), MOB_OK, "mob_team_barrier of the survivors");
  }

  // A rank at its end waits for its local peers, and for other hosts only while no rank is lost:
  // they may still read its memory.
  void wait_for_other_hosts() {
    if (mob_host_size() == size_) return;
    expect(mob_team_barrier(survivors_), MOB_OK, "mob_team_barrier of the survivors");
  }

  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return size_; }
  mob_rank_t victim() const { return victim_; }
  bool is_victim() const { return rank_ == victim_; }
  // Whether a rank is on another host, so that its memory is out of reach once it is dead.
  bool is_elsewhere(mob_rank_t rank) const { return mob_is_host_mate(rank) != 1; }
  mob_rank_t neighbour() const { return (victim_ + 1) % size_; }
  mob_team_t survivors() const { return survivors_; }
  mob_mutexes_t mutexes() const { return mutexes_; }
  mob_access_t access() const { return access_; }
  mob_epoch_t epoch() const { return epoch_; }
  double* private_memory() { return private_.data(); }
  Block& here() const { return *static_cast<Block*>(mob_mem_local(mem_)); }
  // An address in `rank`.
  Block& block(mob_rank_t rank) const {
    void* address = nullptr;
    expect(mob_mem_address(mem_, rank, 0, &address), MOB_OK, "mob_mem_address");
    return *static_cast<Block*>(address);
  }
  uint64_t remote_word(mob_rank_t rank, const uint64_t& word) const {
    uint64_t value = 0;
    expect(mob_get(rank, &word, &value, sizeof value), MOB_OK, "mob_get of a word");
    return value;
  }

  // Whether an operation on memory of `target` succeeded, as it must unless the target is the
  // victim on another host.
  bool is_done(mob_rank_t target, mob_status_t status, const char* what) const {
    if (status == MOB_ERR_PEER && target == victim_ && is_elsewhere(target)) {
      // The next flush reports the errors of other operations begun there, and not a later flush of
      // another target.
      (void)mob_flush(target);
      return false;
    }
    expect(status, MOB_OK, what);
    return status == MOB_OK;
  }

  // Whether the victim is dead. A rank on another host finds out only by an operation on it.
  bool is_over() const {
    if (is_elsewhere(victim_)) {
      uint64_t value = 0;
      (void)mob_get(victim_, &block(victim_).started, &value, sizeof value);
    }
    return mob_rank_alive(victim_) == 0;
  }

  // The value must lie between the sums of completed and of begun operations.
  void check_bounds(const char* what, uint64_t value) const {
    uint64_t least = 0;
    uint64_t most = 0;
    for (mob_rank_t each = 0; each < size_; ++each) {
      if (each == victim_ && is_elsewhere(each)) {
        most = UINT64_MAX / 2;  // unknown
        continue;
      }
      least += remote_word(each, block(each).finished);
      most += remote_word(each, block(each).started);
    }
    if (value >= least && value <= most) return;
    complain("%s: %lu, but between %lu and %lu were added", what, static_cast<unsigned long>(value),
             static_cast<unsigned long>(least), static_cast<unsigned long>(most));
  }

  // Repeats a step that never needs the victim's help until the victim is dead, and once more. The
  // victim repeats it until it dies.
  template <typename Step>
  void until_death(Step step) {
    while (is_victim() || !is_over()) step();
    step();
  }

  // Repeats a call that needs the victim until it fails; from then on it always fails, unless the
  // failure left it half done.
  template <typename Call>
  void until_failure(const char* what, Call call, bool can_be_repeated = true) {
    mob_status_t status = MOB_OK;
    while (status == MOB_OK) status = call();
    expect(status, MOB_ERR_PEER, what);
    if (is_victim()) complain("%s failed in the one who had not died yet", what);
    if (mob_rank_alive(victim_) != 0) complain("%s failed while all were alive", what);
    if (can_be_repeated) expect(call(), MOB_ERR_PEER, what);
  }

 private:
  std::mt19937_64 random_;
  const uint64_t seed_;
  mob_rank_t rank_ = -1;
  mob_rank_t size_ = 0;
  mob_rank_t victim_ = -1;
  mob_mem_t mem_ = nullptr;
  mob_team_t survivors_ = MOB_TEAM_NONE;
  mob_mutexes_t mutexes_ = nullptr;
  mob_access_t access_ = nullptr;
  mob_epoch_t epoch_ = nullptr;
  mob_exposed_t exposed_ = nullptr;
  std::vector<double> private_ = std::vector<double>(kMostRanks * kAskedDoubles);
};

inline unsigned char pattern(mob_rank_t writer, size_t at, unsigned round) {
  return static_cast<unsigned char>(at * 7 + static_cast<size_t>(writer) * 31 + round * 13);
}

}  // namespace faults
