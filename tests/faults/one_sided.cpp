// SPDX-License-Identifier: BSD-3-Clause

// Operations that never need the victim's help: transfers, updates, accumulates.

#include <algorithm>

#include "job.h"
#include "scenarios.h"

namespace faults {
namespace {

constexpr size_t kRuns = 64;
constexpr size_t kFrame = kSlotBytes / kRuns;  // a run and the gap behind it
constexpr size_t kRun = 48;

using Slot = unsigned char[kSlotBytes];

// The contents that one rank writes to a slot, round after round, and reads back.
struct Contents {
  std::vector<unsigned char> mine;
  std::vector<unsigned char> back;
};

// Every rank writes its own slot in every rank's memory, in runs of so many bytes, and reads it
// back. `slots` gives the places, `there_and_back` the transfers. Counts the rounds in `finished`.
template <typename Slots, typename Copy>
void transfers(Job& job, size_t run, Slots slots, Copy there_and_back) {
  const auto own = static_cast<size_t>(job.rank());
  const size_t bytes = run * kRuns;
  unsigned round = 0;
  Contents contents{std::vector<unsigned char>(bytes), std::vector<unsigned char>(bytes)};
  job.until_death([&] {
    ++round;
    for (size_t i = 0; i < bytes; ++i) contents.mine[i] = pattern(job.rank(), i, round);
    for (mob_rank_t target = 0; target < job.size(); ++target) {
      const mob_status_t status = there_and_back(target, slots(target)[own], contents);
      if (job.is_done(target, status, "a transfer there and back") &&
          contents.mine != contents.back) {
        complain("what was put at rank %d is not there", target);
      }
    }
  });
  __atomic_store_n(&job.here().finished, round, __ATOMIC_SEQ_CST);
  job.finish();
  // The survivors' slots here are consistent: all of one round.
  for (mob_rank_t writer = 0; writer < job.size(); ++writer) {
    if (writer == job.victim()) continue;
    const unsigned char* written = slots(job.rank())[writer];
    const auto first = static_cast<unsigned char>(written[0] - pattern(writer, 0, 0));
    for (size_t i = 0; i < bytes; ++i) {
      const size_t at = i / run * kFrame + i % run;
      if (written[at] != static_cast<unsigned char>(pattern(writer, i, 0) + first)) {
        complain("byte %zu of what rank %d wrote is wrong", i, writer);
        break;
      }
    }
  }
}

auto allocated(Job& job) {
  return [&job](mob_rank_t rank) { return job.block(rank).slots; };
}

mob_status_t copy_all(mob_rank_t target, unsigned char* there, Contents& contents) {
  const size_t bytes = contents.mine.size();
  mob_status_t status = mob_put_nbi(target, there, contents.mine.data(), bytes);
  if (status == MOB_OK) status = mob_flush(target);
  return status != MOB_OK ? status : mob_get(target, there, contents.back.data(), bytes);
}

mob_status_t copy_rows(mob_rank_t target, unsigned char* there, Contents& contents) {
  constexpr ptrdiff_t kStride[] = {kFrame};
  constexpr ptrdiff_t kPacked[] = {kRun};
  constexpr size_t kCount[] = {kRuns};
  mob_status_t status =
      mob_put_strided(target, there, kStride, contents.mine.data(), kPacked, kRun, kCount, 1);
  if (status == MOB_OK) status = mob_flush(target);
  return status != MOB_OK ? status
                          : mob_get_strided(target, there, kStride, contents.back.data(), kPacked,
                                            kRun, kCount, 1);
}

mob_status_t copy_pieces(mob_rank_t target, unsigned char* there, Contents& contents) {
  void* remotes[kRuns];
  void* mine[kRuns];
  void* back[kRuns];
  for (size_t i = 0; i < kRuns; ++i) {
    remotes[i] = there + i * kFrame;
    mine[i] = contents.mine.data() + i * kRun;
    back[i] = contents.back.data() + i * kRun;
  }
  mob_status_t status = mob_put_pieces(target, remotes, mine, kRuns, kRun);
  if (status == MOB_OK) status = mob_flush(target);
  return status != MOB_OK ? status : mob_get_pieces(target, remotes, back, kRuns, kRun);
}

mob_status_t copy_spans(mob_rank_t target, unsigned char* there, Contents& contents) {
  mob_span_t remote[kRuns];
  for (size_t i = 0; i < kRuns; ++i) remote[i] = {there + i * kFrame, kRun};
  mob_span_t local = {contents.mine.data(), kRun * kRuns};
  mob_transfer_t transfer{};
  transfer.kind = MOB_PUT;
  transfer.shape = MOB_SPANS;
  transfer.rank = target;
  transfer.remote_spans = remote;
  transfer.remote_span_count = kRuns;
  transfer.local_spans = &local;
  transfer.local_span_count = 1;
  mob_status_t status = mob_transfer(&transfer);
  if (status == MOB_OK) status = mob_flush(target);
  if (status != MOB_OK) return status;
  transfer.kind = MOB_GET;
  local.address = contents.back.data();
  mob_handle_t handle = MOB_HANDLE_DONE;
  status = mob_transfer_nb(&transfer, &handle);
  return status != MOB_OK ? status : mob_wait(&handle);
}

// Pages that are moved into shared memory.
constexpr size_t kMovedBytes = sizeof(Slot) * kMostRanks;
alignas(1 << 16) unsigned char moved_area[kMovedBytes];

// Long accumulates, so that the victim mostly dies while it holds a lock, at two targets: a living
// rank and the victim itself.
template <typename T, typename Accumulate>
void accumulate_arrays(Job& job, T (Block::*array)[kDoubles], Accumulate accumulate) {
  std::vector<T> ones(kDoubles, 1);
  Block& mine = job.here();
  const mob_rank_t targets[] = {job.neighbour(), job.victim()};
  job.until_death([&] {
    __atomic_store_n(&mine.started, mine.started + 1, __ATOMIC_SEQ_CST);
    for (const mob_rank_t target : targets) {
      mob_status_t status = accumulate(target, job.block(target).*array, ones.data());
      if (status == MOB_OK) status = mob_flush(target);
      (void)job.is_done(target, status, "an accumulate");
    }
    __atomic_store_n(&mine.finished, mine.finished + 1, __ATOMIC_SEQ_CST);
  });
  job.finish();
  std::vector<T> sums(kDoubles);
  for (const mob_rank_t target : targets) {
    // An operation that failed there, as its origin was told, counts as completed.
    if (target == job.victim() && mob_host_size() != job.size()) continue;
    expect(mob_get(target, job.block(target).*array, sums.data(), kDoubles * sizeof(T)), MOB_OK,
           "mob_get");
    const auto [least, most] = std::ranges::minmax(sums);
    job.check_bounds("accumulate", static_cast<uint64_t>(least));
    job.check_bounds("accumulate", static_cast<uint64_t>(most));
  }
}

// Puts and accumulates on exposed memory of all ranks, once; returns the status of those on the
// victim's.
mob_status_t use_exposed(Job& job) {
  const std::vector<double> ones(kDoubles, 1.0);
  std::vector<double> back(kDoubles);
  mob_status_t to_victim = MOB_OK;
  for (mob_rank_t target = 0; target < job.size(); ++target) {
    double* there = nullptr;
    mob_status_t status = mob_get(target, &job.block(target).exposed, &there, sizeof there);
    if (status == MOB_OK) {
      status = mob_accumulate(target, there, ones.data(), kDoubles / 2, MOB_DOUBLE, MOB_SUM);
    }
    if (status == MOB_OK) status = mob_flush(target);
    if (status == MOB_OK) {
      status = mob_put(target, there + kDoubles / 2, ones.data(), kDoubles / 2 * sizeof(double));
    }
    if (status == MOB_OK) status = mob_flush(target);
    if (status == MOB_OK) status = mob_get(target, there, back.data(), kDoubles * sizeof(double));
    if (status == MOB_OK && (back[0] < 1.0 || back[kDoubles - 1] != 1.0)) {
      complain("what was done to exposed memory of rank %d is not there", target);
    }
    if (target == job.victim()) {
      to_victim = status;
      // Reports the errors of other operations begun there.
      if (status != MOB_OK) (void)mob_flush(target);
    } else {
      expect(status, MOB_OK, "operations on exposed memory of one who is alive");
    }
  }
  return to_victim;
}

// Repeats a step that fails at the victim's exposed memory once that is gone.
template <typename Step>
void until_memory_is_gone(Job& job, Step step) {
  mob_status_t status = MOB_OK;
  while (status == MOB_OK) status = step();
  expect(status, MOB_ERR_PEER, "operations on exposed memory");
  // Its memory disappears a little before it counts as dead.
  while (!job.is_over()) {
  }
  expect(step(), MOB_ERR_PEER, "operations on exposed memory of a dead rank");
  job.finish();
}

// Each rank puts and gets in a place of its own, on exposed memory of a rank that waits meanwhile.
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

}  // namespace

void contiguous(Job& job) { transfers(job, kFrame, allocated(job), copy_all); }
void strided(Job& job) { transfers(job, kRun, allocated(job), copy_rows); }
void pieces(Job& job) { transfers(job, kRun, allocated(job), copy_pieces); }
void spans(Job& job) { transfers(job, kRun, allocated(job), copy_spans); }

// With a signal after each put and each get: as many arrive as there were operations.
void signals(Job& job) {
  const auto own = static_cast<size_t>(job.rank());
  transfers(job, kFrame, allocated(job),
            [&](mob_rank_t target, unsigned char* there, Contents& contents) {
              const size_t bytes = contents.mine.size();
              uint64_t* signal = &job.block(target).told[own];
              mob_status_t status = mob_put_signal(target, there, contents.mine.data(), bytes,
                                                   signal, 1, MOB_SIGNAL_ADD);
              if (status == MOB_OK) status = mob_flush(target);
              return status != MOB_OK ? status
                                      : mob_get_signal(target, there, contents.back.data(), bytes,
                                                       signal, 1, MOB_SIGNAL_ADD);
            });
  for (mob_rank_t writer = 0; writer < job.size(); ++writer) {
    if (writer == job.victim()) continue;
    const uint64_t rounds = job.remote_word(writer, job.block(writer).finished);
    const uint64_t told = job.here().told[writer];
    if (told != 2 * rounds) {
      complain("%lu signals of rank %d, which gave %lu", static_cast<unsigned long>(told), writer,
               static_cast<unsigned long>(2 * rounds));
    }
  }
}

// Pages that are shared from now on, and known to the other ranks.
void move_pages(Job& job) {
  mob_exposed_t moved = nullptr;
  expect(mob_expose(moved_area, sizeof moved_area, MOB_EXPOSE_REMAP, &moved), MOB_OK,
         "mob_expose of moved pages");
  job.here().moved = moved_area;
}

// In memory whose pages were moved, which survives its owner as an allocation does.
void moved(Job& job) {
  std::vector<Slot*> areas(static_cast<size_t>(job.size()));
  for (mob_rank_t each = 0; each < job.size(); ++each) {
    expect(mob_get(each, &job.block(each).moved, &areas[static_cast<size_t>(each)], sizeof(void*)),
           MOB_OK, "mob_get");
  }
  const auto slots = [&](mob_rank_t rank) { return areas[static_cast<size_t>(rank)]; };
  transfers(job, kFrame, slots, copy_all);
}

void accumulate(Job& job) {
  accumulate_arrays(job, &Block::doubles, [](mob_rank_t target, double* there, double* ones) {
    return mob_accumulate(target, there, ones, kDoubles, MOB_DOUBLE, MOB_SUM);
  });
}

// At some time, different for each rank, the ranks also begin to update words of these arrays.
void accumulate_words(Job& job) {
  size_t steps = 0;
  accumulate_arrays(job, &Block::integers, [&](mob_rank_t target, uint64_t* there, uint64_t* ones) {
    const mob_status_t status = mob_accumulate(target, there, ones, kDoubles, MOB_UINT64, MOB_SUM);
    if (status != MOB_OK || ++steps < 200 * (1 + static_cast<size_t>(job.rank()))) return status;
    uint64_t old = 0;
    return mob_fetch_add8(target, there + steps % kDoubles, 0, &old);
  });
}

// In pieces, under one lock after the other.
void accumulate_pieces(Job& job) {
  constexpr size_t kPieces = 32;
  constexpr size_t kEach = kDoubles / kPieces;
  accumulate_arrays(job, &Block::doubles, [](mob_rank_t target, double* there, double* ones) {
    void* remotes[kPieces];
    void* locals[kPieces];
    for (size_t i = 0; i < kPieces; ++i) {
      remotes[i] = there + i * kEach;
      locals[i] = ones + i * kEach;
    }
    return mob_accumulate_pieces(target, remotes, locals, kPieces, kEach * sizeof(double),
                                 MOB_DOUBLE, MOB_SUM, nullptr);
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
  job.check_bounds("fetch and add", job.remote_word(target, job.block(target).sum));
}

// Additions by compare and swap, and a word that always holds a value that some rank swapped in.
void swaps(Job& job) {
  Block& mine = job.here();
  const mob_rank_t target = job.neighbour();
  Block& there = job.block(target);
  const auto own = static_cast<uint64_t>(job.rank()) + 1;
  job.until_death([&] {
    __atomic_store_n(&mine.started, mine.started + 1, __ATOMIC_SEQ_CST);
    uint64_t old = 0;
    uint64_t expected = 0;
    do {
      expected = old;
      expect(mob_compare_swap8(target, &there.sum, expected, expected + 1, &old), MOB_OK,
             "mob_compare_swap8");
    } while (old != expected);
    expect(mob_swap8(target, &there.last, own, &old), MOB_OK, "mob_swap8");
    if (old > static_cast<uint64_t>(job.size())) complain("nobody swapped in what was there");
    __atomic_store_n(&mine.finished, mine.finished + 1, __ATOMIC_SEQ_CST);
  });
  job.finish();
  job.check_bounds("compare and swap", job.remote_word(target, there.sum));
}

// By the kernel and by the targets themselves.
void exposed(Job& job) {
  until_memory_is_gone(job, [&] { return use_exposed(job); });
}

// Meanwhile all ranks expose and withdraw other memory, whose pages move every other time.
void exposing(Job& job) {
  unsigned char round = 0;
  until_memory_is_gone(job, [&] {
    ++round;
    std::memset(moved_area, round, sizeof moved_area);
    mob_exposed_t exposed = nullptr;
    expect(
        mob_expose(moved_area, sizeof moved_area, round % 2 == 0 ? MOB_EXPOSE_REMAP : 0, &exposed),
        MOB_OK, "mob_expose");
    const mob_status_t status = use_exposed(job);
    expect(mob_withdraw(exposed), MOB_OK, "mob_withdraw");
    if (moved_area[0] != round || moved_area[sizeof moved_area - 1] != round) {
      complain("what was exposed has changed");
    }
    return status;
  });
}

// Started operations need the victim, which soon serves no more, and are only tested.
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
  const mob_status_t asked =
      mob_get(job.victim(), &job.block(job.victim()).exposed, &transfer.remote, sizeof(void*));
  if (!job.is_done(job.victim(), asked, "mob_get")) return job.finish();
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

void asked_target(Job& job) {
  unsigned round = 0;
  if (job.is_victim()) mob_barrier();  // until it dies: the others do not enter this barrier
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

}  // namespace faults
