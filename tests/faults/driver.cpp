// SPDX-License-Identifier: BSD-3-Clause

// One job in which one rank dies, stops or misbehaves: fault_driver SCENARIO SEED. The seed chooses
// the rank and the moment. The others check what failure.h promises. Each of them that found
// everything in order prints one line to standard output, and nothing to standard error.

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

namespace {

constexpr size_t kDoubles = 2048;
constexpr size_t kAskedDoubles = 16384;  // for each rank: as many as go in several pieces
constexpr size_t kSlotBytes = 4096;      // of each writer, in the memory of each rank
constexpr mob_rank_t kMostRanks = 16;
constexpr uint64_t kMostDelayNs = 15'000'000;

bool failed = false;

[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "rank %d: %s\n", mob_rank(), text);
  failed = true;
}

void expect(mob_status_t status, mob_status_t wanted, const char* what) {
  if (status == wanted) return;
  complain("%s gave %s, not %s: %s", what, mob_status_name(status), mob_status_name(wanted),
           mob_last_error());
}

// What each rank shares with the others.
struct Block {
  uint64_t started;  // accumulates or additions begun, and those completed
  uint64_t finished;
  uint64_t sum;      // target of fetch-and-add
  uint64_t pair[2];  // equal whenever a lock is free that protects them
  mob_counter_t counter;
  double* exposed;  // kAskedDoubles for each in the private memory of the rank
  uint64_t round;   // what its left neighbour has come to
  double doubles[kDoubles];
  uint64_t integers[kDoubles];
  unsigned char slots[kMostRanks][kSlotBytes];
};

constexpr unsigned kHandler = 7;

// Payloads go to the slot of their sender.
void take_message(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  delivery->payload = static_cast<unsigned char (*)[kSlotBytes]>(argument)[message->source];
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

  // Joins, with memory and a team of those who will survive.
  void start(bool kills) {
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
    expect(mob_counter_create(&here().counter), MOB_OK, "mob_counter_create");
    here().exposed = private_.data();
    expect(mob_expose(private_.data(), private_.size() * sizeof(double), 0, &exposed_), MOB_OK,
           "mob_expose");
    expect(mob_barrier(), MOB_OK, "mob_barrier");
    if (kills && is_victim()) arm();
  }

  // The survivors' end: they still have each other, unless the job ends, and they are ended one
  // after the other.
  void finish() {
    const char* on_death = std::getenv("MOBIUS_ON_DEATH");
    if (on_death == nullptr || std::strcmp(on_death, "error") != 0) {
      mob_team_barrier(survivors_);
      for (;;) pause();  // until it is this one's turn
    }
    if (mob_rank_alive(victim_) != 0) complain("rank %d counts as alive", victim_);
    for (mob_rank_t each = 0; each < size_; ++each) {
      if (each != victim_ && mob_rank_alive(each) != 1) complain("rank %d counts as dead", each);
    }
    expect(mob_team_barrier(survivors_), MOB_OK, "mob_team_barrier of the survivors");
  }

  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return size_; }
  mob_rank_t victim() const { return victim_; }
  bool is_victim() const { return rank_ == victim_; }
  mob_rank_t neighbour() const { return (victim_ + 1) % size_; }
  mob_team_t survivors() const { return survivors_; }
  mob_mutexes_t mutexes() const { return mutexes_; }
  mob_access_t access() const { return access_; }
  mob_epoch_t epoch() const { return epoch_; }
  Block& here() const { return *static_cast<Block*>(mob_mem_local(mem_)); }
  // In the address space of `rank`.
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

  // Repeats what never needs the victim's help until the victim is dead, and once more. The victim
  // does so until it dies.
  template <typename Step>
  void until_death(Step step) {
    while (is_victim() || mob_rank_alive(victim_) == 1) step();
    step();
  }

  // Repeats a call that needs the victim until it fails; from then on it fails for good, unless
  // the failure left it half done.
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

unsigned char pattern(mob_rank_t writer, size_t at, unsigned round) {
  return static_cast<unsigned char>(at * 7 + static_cast<size_t>(writer) * 31 + round * 13);
}

// Every rank writes its own slot in everybody's memory, and reads back what it wrote.
void transfers(Job& job, bool strided) {
  constexpr size_t kRun = 48;
  constexpr size_t kRuns = kSlotBytes / 64;
  constexpr ptrdiff_t kStride[] = {64};
  constexpr size_t kCount[] = {kRuns};
  const auto slot = static_cast<size_t>(job.rank());
  const size_t bytes = strided ? kRun * kRuns : kSlotBytes;
  const ptrdiff_t packed[] = {kRun};
  unsigned round = 0;
  std::vector<unsigned char> mine(bytes);
  std::vector<unsigned char> back(bytes);
  const auto step = [&] {
    ++round;
    for (size_t i = 0; i < bytes; ++i) mine[i] = pattern(job.rank(), i, round);
    for (mob_rank_t target = 0; target < job.size(); ++target) {
      unsigned char* there = job.block(target).slots[slot];
      if (strided) {
        expect(mob_put_strided(target, there, kStride, mine.data(), packed, kRun, kCount, 1),
               MOB_OK, "mob_put_strided");
        expect(mob_get_strided(target, there, kStride, back.data(), packed, kRun, kCount, 1),
               MOB_OK, "mob_get_strided");
      } else {
        expect(mob_put_nbi(target, there, mine.data(), bytes), MOB_OK, "mob_put_nbi");
        expect(mob_flush(target), MOB_OK, "mob_flush");
        expect(mob_get(target, there, back.data(), bytes), MOB_OK, "mob_get");
      }
      if (mine != back) complain("what was put at rank %d is not there", target);
    }
  };
  job.until_death(step);
  job.finish();
  // What the survivors wrote here is whole: all of one round.
  for (mob_rank_t writer = 0; writer < job.size(); ++writer) {
    if (writer == job.victim()) continue;
    const unsigned char* written = job.here().slots[writer];
    const auto first = static_cast<unsigned char>(written[0] - pattern(writer, 0, 0));
    for (size_t i = 0; i < bytes; ++i) {
      const size_t at = strided ? i / kRun * 64 + i % kRun : i;
      if (written[at] != static_cast<unsigned char>(pattern(writer, i, 0) + first)) {
        complain("byte %zu of what rank %d wrote is wrong", i, writer);
        break;
      }
    }
  }
}

void contiguous(Job& job) { transfers(job, false); }
void strided(Job& job) { transfers(job, true); }

// What all have begun and what all have completed bound what is there.
void check_bounds(Job& job, const char* what, uint64_t value) {
  uint64_t least = 0;
  uint64_t most = 0;
  for (mob_rank_t each = 0; each < job.size(); ++each) {
    const Block& block = job.block(each);
    least += job.remote_word(each, block.finished);
    most += job.remote_word(each, block.started);
  }
  if (value < least || value > most) {
    complain("%s: %lu, but between %lu and %lu were added", what, static_cast<unsigned long>(value),
             static_cast<unsigned long>(least), static_cast<unsigned long>(most));
  }
}

// Long accumulates, so that the victim mostly dies while it holds a lock, at two targets: one that
// lives and the victim itself. Between two of them `beside(target)`.
template <typename T, typename Beside>
void accumulate_arrays(Job& job, T (Block::*array)[kDoubles], mob_type_t type, Beside beside) {
  const std::vector<T> ones(kDoubles, 1);
  Block& mine = job.here();
  const mob_rank_t targets[] = {job.neighbour(), job.victim()};
  job.until_death([&] {
    __atomic_store_n(&mine.started, mine.started + 1, __ATOMIC_SEQ_CST);
    for (const mob_rank_t target : targets) {
      expect(mob_accumulate(target, job.block(target).*array, ones.data(), kDoubles, type, MOB_SUM),
             MOB_OK, "mob_accumulate");
      beside(target);
    }
    __atomic_store_n(&mine.finished, mine.finished + 1, __ATOMIC_SEQ_CST);
  });
  job.finish();
  std::vector<T> sums(kDoubles);
  for (const mob_rank_t target : targets) {
    expect(mob_get(target, job.block(target).*array, sums.data(), kDoubles * sizeof(T)), MOB_OK,
           "mob_get");
    for (const T sum : sums) check_bounds(job, "accumulate", static_cast<uint64_t>(sum));
  }
}

void accumulate(Job& job) {
  accumulate_arrays(job, &Block::doubles, MOB_DOUBLE, [](mob_rank_t) {});
}

// Some time, a different one for each, they begin to update words of these arrays, too.
void accumulate_words(Job& job) {
  size_t steps = 0;
  accumulate_arrays(job, &Block::integers, MOB_UINT64, [&](mob_rank_t target) {
    if (++steps < 200 * (1 + static_cast<size_t>(mob_rank()))) return;
    uint64_t old = 0;
    expect(mob_fetch_add8(target, &job.block(target).integers[steps % kDoubles], 0, &old), MOB_OK,
           "mob_fetch_add8");
  });
}

void fetch_add(Job& job) {
  Block& mine = job.here();
  const mob_rank_t target = job.neighbour();
  job.until_death([&] {
    __atomic_store_n(&mine.started, mine.started + 1, __ATOMIC_SEQ_CST);
    uint64_t old = 0;
    expect(mob_fetch_add8(target, &job.block(target).sum, 1, &old), MOB_OK, "mob_fetch_add8");
    __atomic_store_n(&mine.finished, mine.finished + 1, __ATOMIC_SEQ_CST);
  });
  job.finish();
  check_bounds(job, "fetch and add", job.remote_word(target, job.block(target).sum));
}

void barrier(Job& job) {
  job.until_failure("mob_barrier", mob_barrier);
  job.finish();
}

// As barrier(), for a death that comes from outside.
void patient(Job& job) {
  std::printf("rank %d ready\n", job.rank());
  std::fflush(stdout);
  barrier(job);
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

// Each allocates by itself, which takes a lock that all share.
void local_allocation(Job& job) {
  job.until_death([&] {
    void* memory = nullptr;
    expect(mob_local_alloc(size_t{3} << 20, 64, &memory), MOB_OK, "mob_local_alloc");
    expect(mob_local_free(memory), MOB_OK, "mob_local_free");
  });
  job.finish();
}

void split(Job& job) {
  job.until_failure("mob_team_split and mob_team_free", [&] {
    mob_team_t team = MOB_TEAM_NONE;
    const mob_status_t status = mob_team_split(MOB_TEAM_WORLD, 0, -job.rank(), &team);
    return status != MOB_OK ? status : mob_team_free(team);
  });
  // A team that the survivors make of themselves.
  mob_team_t team = MOB_TEAM_NONE;
  expect(mob_team_split(job.survivors(), 0, 0, &team), MOB_OK, "a split of the survivors");
  expect(mob_team_barrier(team), MOB_OK, "a barrier of the new team");
  job.finish();
}

// Everybody counts everybody's counter, and waits until all have counted the own one.
void counters(Job& job) {
  const auto slot = static_cast<size_t>(job.rank());
  job.until_failure(
      "mob_counter_wait",
      [&] {
        for (mob_rank_t target = 0; target < job.size(); ++target) {
          Block& there = job.block(target);
          mob_transfer_t put{};
          put.kind = MOB_PUT;
          put.shape = MOB_CONTIGUOUS;
          put.rank = target;
          put.remote = there.slots[slot];
          put.local = job.here().slots[slot];
          put.bytes = 64;
          expect(mob_get(target, &there.counter, &put.target_counter, sizeof there.counter), MOB_OK,
                 "mob_get");
          expect(mob_transfer(&put), MOB_OK, "mob_transfer");
        }
        return mob_counter_wait(job.here().counter, static_cast<uint64_t>(job.size()), nullptr);
      },
      false);
  job.finish();
}

// Changes two words one after the other, under a lock that says when its owner died in between.
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
  check_bounds(job, "locked", job.remote_word(target, there.pair[0]));
}

void mutex(Job& job) {
  exclude(
      job,
      [&](mob_rank_t rank, int* recovered) {
        return mob_mutex_lock(job.mutexes(), 0, rank, recovered);
      },
      [&](mob_rank_t rank) { return mob_mutex_unlock(job.mutexes(), 0, rank); });
}

// Shared access in between, which the victim may die with, too.
void access_lock(Job& job) {
  exclude(
      job,
      [&](mob_rank_t rank, int* recovered) {
        expect(mob_access_lock(job.access(), job.victim(), MOB_SHARED, nullptr), MOB_OK,
               "mob_access_lock for shared access");
        expect(mob_access_unlock(job.access(), job.victim()), MOB_OK, "mob_access_unlock");
        return mob_access_lock(job.access(), rank, MOB_EXCLUSIVE, recovered);
      },
      [&](mob_rank_t rank) { return mob_access_unlock(job.access(), rank); });
}

void messages(Job& job) {
  const std::vector<unsigned char> payload(kSlotBytes, 1);
  job.until_failure("a message", [&] {
    mob_status_t to_victim = MOB_OK;
    for (mob_rank_t target = 0; target < job.size(); ++target) {
      mob_status_t status =
          mob_message_send(target, kHandler, nullptr, 0, payload.data(), payload.size(), nullptr);
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
}

// By the kernel and by the targets themselves.
void exposed(Job& job) {
  const std::vector<double> ones(kDoubles, 1.0);
  std::vector<double> back(kDoubles);
  const auto step = [&] {
    mob_status_t to_victim = MOB_OK;
    for (mob_rank_t target = 0; target < job.size(); ++target) {
      double* there = nullptr;
      expect(mob_get(target, &job.block(target).exposed, &there, sizeof there), MOB_OK, "mob_get");
      mob_status_t status =
          mob_accumulate(target, there, ones.data(), kDoubles / 2, MOB_DOUBLE, MOB_SUM);
      if (status == MOB_OK) status = mob_flush(target);
      if (status == MOB_OK) {
        status = mob_put(target, there + kDoubles / 2, ones.data(), kDoubles / 2 * sizeof(double));
      }
      if (status == MOB_OK) status = mob_get(target, there, back.data(), kDoubles * sizeof(double));
      if (status == MOB_OK && (back[0] < 1.0 || back[kDoubles - 1] != 1.0)) {
        complain("what was done to exposed memory of rank %d is not there", target);
      }
      if (target == job.victim()) {
        to_victim = status;
      } else {
        expect(status, MOB_OK, "operations on exposed memory of one who is alive");
      }
    }
    return to_victim;
  };
  mob_status_t status = MOB_OK;
  while (status == MOB_OK) status = step();
  expect(status, MOB_ERR_PEER, "operations on exposed memory");
  // Its memory goes a little before it counts as dead.
  while (mob_rank_alive(job.victim()) == 1) {
  }
  expect(step(), MOB_ERR_PEER, "operations on exposed memory of a dead rank");
  job.finish();
}

// What is started needs the victim, which soon serves nobody any more, and is only tested.
void tested(Job& job) {
  if (job.is_victim()) {
    expect(mob_progress_set(MOB_PROGRESS_POLL, nullptr), MOB_OK, "mob_progress_set");
    while (true) mob_rank();
  }
  const uint64_t more = 1;
  uint64_t before = 0;
  mob_transfer_t transfer{};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.rank = job.victim();
  expect(mob_get(job.victim(), &job.block(job.victim()).exposed, &transfer.remote, sizeof(void*)),
         MOB_OK, "mob_get");
  transfer.local = const_cast<uint64_t*>(&more);
  transfer.bytes = sizeof more;
  transfer.type = MOB_UINT64;
  transfer.fetched = &before;
  job.until_failure("mob_transfer_nb, then mob_test", [&] {
    mob_handle_t handle = MOB_HANDLE_DONE;
    mob_status_t status = mob_transfer_nb(&transfer, &handle);
    for (int done = 0; status == MOB_OK && done == 0;) status = mob_test(&handle, &done);
    if (status != MOB_OK && handle != MOB_HANDLE_DONE) complain("a failed handle is left over");
    return status;
  });
  job.finish();
}

// Puts and gets, by each in a place of its own, on exposed memory of one who waits meanwhile.
void ask(Job& job, mob_rank_t target, unsigned* round, mob_status_t expected) {
  double* theirs = nullptr;
  expect(mob_get(target, &job.block(target).exposed, &theirs, sizeof theirs), MOB_OK, "mob_get");
  theirs += static_cast<size_t>(job.rank()) * kAskedDoubles;
  ++*round;
  const size_t count = 1 + *round * 31 % (*round % 2 == 0 ? 64 : kAskedDoubles);
  const std::vector<double> mine(count, *round);
  std::vector<double> back(count);
  mob_status_t status = mob_put(target, theirs, mine.data(), count * sizeof(double));
  if (status == MOB_OK) status = mob_get(target, theirs, back.data(), count * sizeof(double));
  if (status != expected) expect(status, MOB_OK, "mob_put or mob_get of exposed memory");
  if (status == MOB_OK && mine != back) complain("what was put at rank %d is not there", target);
}

void asked_target(Job& job) {
  unsigned round = 0;
  if (job.is_victim()) mob_barrier();  // until it dies: the others do not come
  job.until_death([&] { ask(job, job.victim(), &round, MOB_ERR_PEER); });
  job.finish();
}

void asking_origin(Job& job) {
  unsigned round = 0;
  const mob_rank_t target = job.neighbour();
  if (job.rank() == target) {
    expect(mob_barrier(), MOB_ERR_PEER, "mob_barrier");
  } else {
    job.until_death([&] { ask(job, target, &round, MOB_OK); });
  }
  job.finish();
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

// Everybody notifies everybody. The victim is the first that all wait for: what ends somebody's
// rounds ends everybody's.
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

// Rounds in which each tells the next one how far it is, and waits for the one before.
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

// Vectors of many rounds.
void allreduce(Job& job) {
  const std::vector<double> ones(5 * kDoubles, 1.0);
  std::vector<double> sums(ones.size());
  job.until_failure("mob_allreduce", [&] {
    const mob_status_t status =
        mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_DOUBLE, ones.data(), sums.data(), ones.size());
    for (const double sum : sums) {
      if (status == MOB_OK && sum != job.size()) complain("mob_allreduce gave a wrong sum");
    }
    return status;
  });
  job.finish();
}

// The survivors wait in mob_finalize() while the victim is still at work.
void finalize(Job& job) {
  while (job.is_victim()) expect(mob_flush_all(), MOB_OK, "mob_flush_all");
}

// Ends without a word, and with a code that claims success.
void leave_early(Job& job) {
  if (job.is_victim()) _exit(0);
  job.until_failure("mob_barrier", mob_barrier);
  job.finish();
}

void abort_job(Job& job) {
  if (job.is_victim()) mob_abort(42, "because");
  while (true) {
    mob_barrier();
    mob_rank_alive(job.victim());
  }
}

// The victim stops; what others do to its memory completes, and what needs it waits.
void stop(Job& job) {
  Block& there = job.block(job.victim());
  const auto slot = static_cast<size_t>(job.rank());
  const std::vector<unsigned char> mine(kSlotBytes, static_cast<unsigned char>(job.rank() + 1));
  const std::vector<double> ones(kDoubles, 1.0);
  if (job.is_victim()) raise(SIGSTOP);
  uint64_t old = 0;
  expect(mob_put(job.victim(), there.slots[slot], mine.data(), kSlotBytes), MOB_OK, "mob_put");
  expect(mob_fetch_add8(job.victim(), &there.sum, 1, &old), MOB_OK, "mob_fetch_add8");
  expect(mob_accumulate(job.victim(), there.doubles, ones.data(), kDoubles, MOB_DOUBLE, MOB_SUM),
         MOB_OK, "mob_accumulate");
  expect(mob_flush(job.victim()), MOB_OK, "mob_flush");
  if (mob_rank_alive(job.victim()) != 1) complain("a stopped rank counts as dead");
  std::printf("rank %d done\n", job.rank());
  std::fflush(stdout);
  expect(mob_barrier(), MOB_OK, "mob_barrier with a rank that was stopped");
  if (!job.is_victim()) return;
  const Block& own = job.here();
  if (own.sum != static_cast<uint64_t>(job.size())) complain("additions are missing");
  if (own.doubles[kDoubles - 1] != job.size()) complain("accumulates are missing");
  for (mob_rank_t each = 0; each < job.size(); ++each) {
    if (own.slots[each][kSlotBytes - 1] != each + 1) complain("what rank %d put is missing", each);
  }
}

// More memory than there is: an error, and everything works as before.
void memory(Job&) {
  mob_mem_t mem = nullptr;
  expect(mob_mem_alloc(size_t{1} << 42, &mem), MOB_ERR_MEMORY, "an allocation of 4 TiB");
  expect(mob_mem_alloc(size_t{8} << 20, &mem), MOB_OK, "an allocation of 8 MiB");
  std::memset(mob_mem_local(mem), 1, size_t{8} << 20);
  expect(mob_mem_free(mem), MOB_OK, "mob_mem_free");
}

// Where there is little memory, or little room for addresses.
void limited(Job&) {
  mob_mem_t mem = nullptr;
  expect(mob_mem_alloc(size_t{1} << 30, &mem), MOB_ERR_MEMORY, "an allocation of 1 GiB");
  expect(mob_mem_alloc(size_t{8} << 20, &mem), MOB_OK, "an allocation of 8 MiB");
  std::memset(mob_mem_local(mem), 1, size_t{8} << 20);
  expect(mob_mem_free(mem), MOB_OK, "mob_mem_free");
}

struct Scenario {
  const char* name;
  void (*run)(Job& job);
  bool kills;
};

constexpr Scenario kScenarios[] = {{"contiguous", contiguous, true},
                                   {"strided", strided, true},
                                   {"accumulate", accumulate, true},
                                   {"accumulate_words", accumulate_words, true},
                                   {"fetch_add", fetch_add, true},
                                   {"barrier", barrier, true},
                                   {"allocation", allocation, true},
                                   {"local_allocation", local_allocation, true},
                                   {"split", split, true},
                                   {"counters", counters, true},
                                   {"mutex", mutex, true},
                                   {"access", access_lock, true},
                                   {"messages", messages, true},
                                   {"exposed", exposed, true},
                                   {"tested", tested, true},
                                   {"asked_target", asked_target, true},
                                   {"asking_origin", asking_origin, true},
                                   {"heap", heap, true},
                                   {"notify", notify, true},
                                   {"wait_until", wait_until, true},
                                   {"epochs", epochs, true},
                                   {"fence", fence, true},
                                   {"allreduce", allreduce, true},
                                   {"finalize", finalize, true},
                                   {"leave_early", leave_early, false},
                                   {"abort", abort_job, false},
                                   {"patient", patient, false},
                                   {"stop", stop, false},
                                   {"memory", memory, false},
                                   {"limited", limited, false}};

// Killed at any point of joining: the others join, or hear of it.
int joining(Job& job, mob_rank_t rank, mob_rank_t size) {
  job.choose(size);
  if (rank == job.victim()) job.arm();
  const mob_status_t status = mob_init();
  while (rank == job.victim()) mob_rank();
  if (status == MOB_OK) {
    expect(mob_finalize(), MOB_OK, "mob_finalize");
  } else {
    expect(status, MOB_ERR_PEER, "mob_init");
  }
  if (!failed) std::printf("rank %d survived\n", rank);
  return status == MOB_OK ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Job job(std::strtoull(argv[2], nullptr, 10));
  if (std::strcmp(argv[1], "joining") == 0 && argc == 4) {
    return joining(job, std::atoi(std::getenv("MOBIUS_RANK")), std::atoi(argv[3]));
  }
  for (const Scenario& scenario : kScenarios) {
    if (std::strcmp(scenario.name, argv[1]) != 0) continue;
    job.start(scenario.kills);
    scenario.run(job);
    const mob_rank_t rank = job.rank();
    expect(mob_finalize(), MOB_OK, "mob_finalize");
    if (!failed) std::printf("rank %d survived\n", rank);
    return failed ? 99 : 0;
  }
  std::fprintf(stderr, "no scenario %s\n", argv[1]);
  return 2;
}
