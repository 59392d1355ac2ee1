// SPDX-License-Identifier: BSD-3-Clause

// One job in which one rank dies, stops or misbehaves: fault_driver SCENARIO SEED. The seed chooses
// the rank and the moment. The other ranks check the promises of failure.h. Each rank that found
// everything in order prints one line to standard output, and nothing to standard error.

#include <sys/mman.h>

#include "job.h"
#include "scenarios.h"

namespace faults {
namespace {

// As barrier(), for a rank that is killed from outside.
void patient(Job& job) {
  std::printf("rank %d ready\n", job.rank());
  std::fflush(stdout);
  barrier(job);
}

// The survivors wait in mob_finalize() while the victim still runs.
void finalize(Job& job) {
  while (job.is_victim()) expect(mob_flush_all(), MOB_OK, "mob_flush_all");
}

// Ends without mob_finalize(), with an exit code that claims success.
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

// The job has succeeded, whatever the others do.
void end_job(Job& job) {
  if (job.is_victim()) mob_abort(0, "done");
  while (true) mob_barrier();
}

// The victim stops. Operations of others on its memory complete; calls that need the victim wait.
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

// More memory than the host has: an error, and everything works as before.
void memory(Job&) {
  mob_mem_t mem = nullptr;
  expect(mob_mem_alloc(size_t{1} << 42, &mem), MOB_ERR_MEMORY, "an allocation of 4 TiB");
  expect(mob_mem_alloc(size_t{8} << 20, &mem), MOB_OK, "an allocation of 8 MiB");
  std::memset(mob_mem_local(mem), 1, size_t{8} << 20);
  expect(mob_mem_free(mem), MOB_OK, "mob_mem_free");
}

// With little memory, or little address space.
void limited(Job&) {
  mob_mem_t mem = nullptr;
  expect(mob_mem_alloc(size_t{1} << 30, &mem), MOB_ERR_MEMORY, "an allocation of 1 GiB");
  expect(mob_mem_alloc(size_t{8} << 20, &mem), MOB_OK, "an allocation of 8 MiB");
  std::memset(mob_mem_local(mem), 1, size_t{8} << 20);
  expect(mob_mem_free(mem), MOB_OK, "mob_mem_free");
}

// Calls `get` in all ranks at once, with too little memory for two: at least one gets it, and the
// others an error. Without a lock around check and reservation the kernel kills ranks here.
template <typename Get, typename GiveBack>
void at_once(const char* what, Get get, GiveBack give_back) {
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    expect(mob_barrier(), MOB_OK, "mob_barrier");
    const mob_status_t status = get();
    if (status != MOB_OK) expect(status, MOB_ERR_MEMORY, what);
    int64_t got = status == MOB_OK ? 1 : 0;
    int64_t all = 0;
    expect(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT64, &got, &all, 1), MOB_OK,
           "mob_allreduce");
    if (all == 0) complain("nobody got the memory in round %d", round);
    for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {  // one at a time: this may take memory
      if (rank == mob_rank() && status == MOB_OK) give_back();
      expect(mob_barrier(), MOB_OK, "mob_barrier");
    }
  }
}

// 140 MiB for each rank where there are less than 256 MiB.
void limited_at_once(Job&) {
  void* memory = nullptr;
  at_once(
      "mob_local_alloc", [&] { return mob_local_alloc(size_t{140} << 20, 64, &memory); },
      [&] { expect(mob_local_free(memory), MOB_OK, "mob_local_free"); });
}

// Each rank has 70 MiB, and as much again is needed while its pages move.
void moved_at_once(Job&) {
  constexpr size_t kBytes = size_t{70} << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(memory, 1, kBytes);
  mob_exposed_t exposed = nullptr;
  at_once(
      "mob_expose", [&] { return mob_expose(memory, kBytes, MOB_EXPOSE_REMAP, &exposed); },
      [&] { expect(mob_withdraw(exposed), MOB_OK, "mob_withdraw"); });
  for (size_t at = 0; at < kBytes; at += 4096) {
    if (static_cast<char*>(memory)[at] != 1) complain("byte %zu is lost", at);
  }
  munmap(memory, kBytes);
}

struct Scenario {
  const char* name;
  void (*run)(Job& job);
  bool kills = true;
  void (*prepare)(Job& job) = nullptr;
};

constexpr Scenario kScenarios[] = {
    {"contiguous", contiguous},
    {"strided", strided},
    {"pieces", pieces},
    {"spans", spans},
    {"signals", signals},
    {"moved", moved, true, move_pages},
    {"accumulate", accumulate},
    {"accumulate_words", accumulate_words},
    {"accumulate_pieces", accumulate_pieces},
    {"fetch_add", fetch_add},
    {"swaps", swaps},
    {"exposed", exposed},
    {"exposing", exposing},
    {"tested", tested},
    {"asked_target", asked_target},
    {"asking_origin", asking_origin},
    {"barrier", barrier},
    {"allocation", allocation},
    {"local_allocation", local_allocation},
    {"objects", objects},
    {"split", split},
    {"shrink", shrink},
    {"counters", counters},
    {"mutex", mutex},
    {"word_lock", word_lock},
    {"access", access_lock},
    {"messages", messages},
    {"large_messages", large_messages},
    {"heap", heap},
    {"notify", notify},
    {"wait_until", wait_until},
    {"epochs", epochs},
    {"fence", fence},
    {"broadcast", broadcast},
    {"gather", gather},
    {"scatter", scatter},
    {"alltoall", alltoall},
    {"alltoallv", alltoallv},
    {"reduce", reduce},
    {"scan", scan},
    {"allreduce", allreduce},
    {"finalize", finalize},
    {"leave_early", leave_early, false},
    {"abort", abort_job, false},
    {"end", end_job, false},
    {"patient", patient, false},
    {"stop", stop, false},
    {"held_mutex", held_mutex, false},
    {"held_exclusive", held_exclusive, false},
    {"held_shared", held_shared, false},
    {"lock_all", lock_all, false},
    {"memory", memory, false},
    {"limited", limited, false},
    {"limited_at_once", limited_at_once, false},
    {"moved_at_once", moved_at_once, false},
};

// Killed at any point of joining: the others join, or get an error.
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
}  // namespace faults

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  using namespace faults;
  Job job(std::strtoull(argv[2], nullptr, 10));
  if (std::strcmp(argv[1], "joining") == 0 && argc == 4) {
    return joining(job, std::atoi(std::getenv("MOBIUS_RANK")), std::atoi(argv[3]));
  }
  for (const Scenario& scenario : kScenarios) {
    if (std::strcmp(scenario.name, argv[1]) != 0) continue;
    job.start(scenario.kills, scenario.prepare);
    scenario.run(job);
    if (scenario.kills && scenario.run != finalize) job.wait_for_other_hosts();
    const mob_rank_t rank = job.rank();
    expect(mob_finalize(), MOB_OK, "mob_finalize");
    if (!failed) std::printf("rank %d survived\n", rank);
    return failed ? 99 : 0;
  }
  std::fprintf(stderr, "no scenario %s\n", argv[1]);
  return 2;
}
