// SPDX-License-Identifier: BSD-3-Clause
#include "random/rank.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "model/elements.h"
#include "random/rank_board.h"

namespace random_program {

namespace {

constexpr size_t kMostPartBytes = 6144;
constexpr size_t kLocalBytes = 4096;
constexpr uint64_t kProgramsPerAllocation = 50;

// The settings that change a run, as a shell takes them.
std::string settings() {
  std::string text;
  for (const char* name : {"MOBIUS_ADDRESS_MODE", "MOBIUS_CMA", "MOBIUS_HOOKS", "MOBIUS_PROGRESS",
                           "MOBIUS_RMA_BYTES", "MOBIUS_SCHEDULE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) text += std::string(name) + "=" + value + " ";
  }
  return text;
}

// The switch with a name, or null.
bool* switch_of(const std::string& name, Options* options) {
  if (name == "--exposed") return &options->exposed;
  if (name == "--moved") return &options->moved;
  if (name == "--heap") return &options->heap;
  return name == "--verbose" ? &options->verbose : nullptr;
}

}  // namespace

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (bool* found = switch_of(name, options)) {
      *found = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    const uint64_t number = std::strtoull(value, nullptr, 0);
    if (name == "--seed") {
      options->seed = number;
    } else if (name == "--programs") {
      options->programs = number;
    } else if (name == "--threads" && number >= 1 && number <= kMostThreads) {
      options->threads = static_cast<int>(number);
    } else {
      std::fprintf(stderr,
                   "%s %s: not an option; they are --seed S, --programs N, --threads 1 to %d, "
                   "--exposed, --moved, --heap, --verbose\n",
                   name.c_str(), value, kMostThreads);
      return false;
    }
  }
  options->command = std::string(argv[0]) + (options->on_other_team ? " spawned" : "") +
                     " --threads " + std::to_string(options->threads) +
                     (options->exposed ? " --exposed" : "") + (options->moved ? " --moved" : "") +
                     (options->heap ? " --heap" : "") + " --programs 1 --verbose --seed ";
  return true;
}

RankRunner::RankRunner(const Options& options, mob_team_t team)
    : options_(options),
      team_(team),
      rank_(mob_rank()),
      shape_{mob_team_size(team), options.threads, kMostPartBytes, kLocalBytes,
             mobius_test::on_team.is_one_job},
      threads_(options.threads) {
  announce("(before the first program)");
  check(mob_team_alloc(team, sizeof(Board), 0, &board_), "mob_team_alloc");
  check(mob_counter_create(&sync_counter_), "mob_counter_create");
  check(mob_epoch_create(team_, &epoch_), "mob_epoch_create");
  check(mob_handler_register(kPlace, place_payload, nullptr), "mob_handler_register");
  const auto arrive = [](const mob_message_t*, void* count, mob_delivery_t*) {
    static_cast<std::atomic<uint64_t>*>(count)->fetch_add(1);
  };
  check(mob_handler_register(kArrive, arrive, &arrived_), "mob_handler_register");
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) all_ranks_.push_back(r);
  places_.parts.resize(static_cast<size_t>(shape_.ranks));
  places_.counters.resize(static_cast<size_t>(shape_.actors()));
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    void* address = nullptr;
    check(mob_mem_address(board_, r, 0, &address), "mob_mem_address");
    boards_.push_back(static_cast<Board*>(address));
  }
  make_lanes();
}

RankRunner::~RankRunner() {
  barrier();
  free_memory();
  check(mob_epoch_free(epoch_), "mob_epoch_free");
  free_lanes();
  check(mob_counter_free(sync_counter_), "mob_counter_free");
  check(mob_mem_free(board_), "mob_mem_free");
}

void RankRunner::barrier() { check(mob_team_barrier(team_), "mob_team_barrier"); }

bool RankRunner::is_on_one_host() const {
  return options_.on_other_team || mob_host_size() == shape_.ranks;
}

RankRunner::Board& RankRunner::own_board() const { return *boards_[static_cast<size_t>(rank_)]; }

void RankRunner::run() {
  std::vector<std::jthread> others;
  for (int t = 1; t < shape_.threads; ++t) {
    others.emplace_back([this, t] {
      if (options_.ranks_are_threads) check(mob_threads_act_for(rank_), "mob_threads_act_for");
      run_actor(t);
    });
  }
  run_actor(0);
}

// Thread 0 does the work of the rank, while the others wait.
void RankRunner::run_actor(int thread) {
  ActorRunner actor(shape_, rank_ * shape_.threads + thread, places_);
  own_board().counters[thread] = actor.told();
  threads_.arrive_and_wait();
  if (thread == 0) gather();
  for (uint64_t number = 0; number < options_.programs; ++number) {
    if (thread == 0) prepare(number);
    threads_.arrive_and_wait();
    actor.start(program_);
    for (const Round& round : program_.rounds) run_round(thread, actor, round);
    actor.finish();
    threads_.arrive_and_wait();
  }
  if (thread == 0) barrier();  // no operation counts any more
  threads_.arrive_and_wait();
}

void RankRunner::run_round(int thread, ActorRunner& actor, const Round& round) {
  if (thread == 0) {
    write_initial(round);
    model_.run(round);
    synchronise(round.sync);
  }
  threads_.arrive_and_wait();
  actor.run(round, model_);
  std::memcpy(own_board().logs[thread], actor.log().data(), kLogWords * sizeof(uint64_t));
  threads_.arrive_and_wait();
  if (thread == 0) synchronise(round.sync);
  threads_.arrive_and_wait();
  actor.check_local(model_);
  threads_.arrive_and_wait();
  if (thread == 0) {
    check_part(round);
    check_chains(round);
    model_.clear_swaps(round);
    std::memcpy(own_part(), model_.part(rank_).data(), shape_.part_bytes);
  }
}

// Gets the counters of all actors.
void RankRunner::gather() {
  own_board().sync_counter = sync_counter_;
  barrier();
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    const auto rank = static_cast<size_t>(r);
    const auto threads = static_cast<size_t>(shape_.threads);
    Board board;
    check(mob_get(r, boards_[rank], &board, sizeof board), "mob_get");
    sync_counters_.push_back(board.sync_counter);
    for (size_t t = 0; t < threads; ++t) places_.counters[rank * threads + t] = board.counters[t];
  }
  barrier();
}

void RankRunner::announce(const std::string& seed) const {
  if (!options_.ranks_are_threads) {
    std::string launch = settings();
    const mob_rank_t first = options_.on_other_team ? shape_.ranks / 2 : shape_.ranks;
    if (first > 1) launch += "mobius run -n " + std::to_string(first) + " ";
    if (!is_on_one_host()) {
      const mob_rank_t near = mob_host_size();
      const mob_rank_t hosts = (shape_.ranks + near - 1) / near;
      launch += "--virtual-hosts " + std::to_string(hosts) + " ";
    }
    set_replay(launch + options_.command + seed);
  } else if (rank_ == 0) {
    set_replay(options_.command + seed);
  }
}

void RankRunner::prepare(uint64_t number) {
  const uint64_t seed = options_.seed + number;
  announce(std::to_string(seed));
  if (number % kProgramsPerAllocation == 0) make_memory();
  shape_.part_bytes = 64 + mobius_test::Random(seed).below(kMostPartBytes / 16 - 3) * 16;
  // The program's part ends where the target ends.
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    const auto rank = static_cast<size_t>(r);
    places_.parts[rank] = memories_[rank] + kMostPartBytes - shape_.part_bytes;
  }
  program_ = generate(seed, shape_);
  if (options_.verbose && rank_ == 0) print(program_);
  model_.start(program_);
  fill_part(program_, rank_, own_part());
}

void RankRunner::make_memory() {
  free_memory();
  make_heaps();
  unsigned char* own = nullptr;
  if (options_.exposed || options_.moved) {
    const size_t alignment = options_.moved ? 4096 : 64;  // pages of its own
    private_.resize(kMostPartBytes + 2 * alignment);
    own = private_.data() + alignment - reinterpret_cast<uintptr_t>(private_.data()) % alignment;
    const unsigned flags = options_.moved ? MOB_EXPOSE_REMAP : 0;
    check(mob_expose(own, kMostPartBytes, flags, &exposed_), "mob_expose");
  } else if (options_.heap) {
    check(mob_heap_create(team_, kMostPartBytes, 4 * kMostPartBytes, &heap_), "mob_heap_create");
    void* block = nullptr;
    check(mob_heap_malloc(heap_, 100, &block), "mob_heap_malloc");
    check(mob_heap_realloc(heap_, block, kMostPartBytes, &block), "mob_heap_realloc");
    own = static_cast<unsigned char*>(block);
  } else {
    check(mob_team_alloc(team_, kMostPartBytes, 0, &memory_), "mob_team_alloc");
    own = static_cast<unsigned char*>(mob_mem_local(memory_));
  }
  own_board().memory = own;
  barrier();
  memories_.resize(boards_.size());
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    const auto rank = static_cast<size_t>(r);
    check(mob_get(r, &boards_[rank]->memory, &memories_[rank], sizeof own), "mob_get");
  }
}

void RankRunner::free_memory() {
  free_heaps();
  check(mob_mem_free(memory_), "mob_mem_free");  // waits for all, also if there is none
  if (options_.on_other_team) barrier();         // all of the world, that is
  check(mob_withdraw(exposed_), "mob_withdraw");
  if (heap_ != nullptr) check(mob_heap_destroy(heap_), "mob_heap_destroy");
  heap_ = nullptr;
  memory_ = nullptr;
  exposed_ = nullptr;
}

void RankRunner::synchronise(Sync sync) {
  switch (sync) {
    case Sync::kBarrier:
      return barrier();
    case Sync::kSignals:
      return synchronise_by_signals();
    case Sync::kCounters:
      return synchronise_by_counters();
    case Sync::kNotifications:
      return synchronise_by_notifications();
    case Sync::kReduction:
      return synchronise_by_reduction();
    case Sync::kMessages:
      return synchronise_by_messages();
    case Sync::kEpochFence:
      return check(mob_epoch_fence(epoch_), "mob_epoch_fence");
    case Sync::kExposure:
      return synchronise_by_exposure();
  }
}

void RankRunner::synchronise_by_signals() {
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    uint64_t* signals = &boards_[static_cast<size_t>(r)]->signals;
    check(mob_put_signal(r, nullptr, nullptr, 0, signals, 1, MOB_SIGNAL_ADD), "mob_put_signal");
  }
  signalled_ += static_cast<uint64_t>(shape_.ranks);
  check(mob_wait_until_u8(&own_board().signals, MOB_GE, signalled_), "mob_wait_until_u8");
}

void RankRunner::synchronise_by_notifications() {
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) check(mob_notify(r), "mob_notify");
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    check(mob_notify_wait(r, nullptr), "mob_notify_wait");
  }
}

void RankRunner::synchronise_by_reduction() {
  int32_t sum = -1;
  const int32_t own = rank_ + 1;
  check(mob_allreduce(team_, MOB_SUM, MOB_INT32, &own, &sum, 1), "mob_allreduce");
  if (sum != shape_.ranks * (shape_.ranks + 1) / 2) report("a reduction gave a wrong sum");
}

void RankRunner::synchronise_by_messages() {
  for (const mob_rank_t r : all_ranks_) {
    check(mob_message_send(r, kArrive, nullptr, 0, nullptr, 0, nullptr), "mob_message_send");
  }
  awaited_ += all_ranks_.size();
  while (arrived_.load() < awaited_) {
    check(mob_poll(), "mob_poll");
    std::this_thread::yield();
  }
}

void RankRunner::synchronise_by_exposure() {
  check(mob_epoch_post(epoch_, all_ranks_.data(), shape_.ranks), "mob_epoch_post");
  check(mob_epoch_start(epoch_, all_ranks_.data(), shape_.ranks), "mob_epoch_start");
  check(mob_epoch_complete(epoch_), "mob_epoch_complete");
  check(mob_epoch_wait(epoch_), "mob_epoch_wait");
}

void RankRunner::synchronise_by_counters() {
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    mob_transfer_t nothing{};
    nothing.rank = r;
    nothing.target_counter = sync_counters_[static_cast<size_t>(r)];
    check(mob_transfer(&nothing), "mob_transfer");
  }
  check(mob_counter_wait(sync_counter_, static_cast<uint64_t>(shape_.ranks), nullptr),
        "mob_counter_wait");
}

void RankRunner::write_initial(const Round& round) {
  for (const Segment& segment : round.segments) {
    if (segment.rank != rank_) continue;
    const auto write = [this](size_t at, const std::vector<unsigned char>& bytes) {
      if (!bytes.empty()) std::memcpy(own_part() + at, bytes.data(), bytes.size());
    };
    write(segment.range.start, segment.initial);
    write(segment.word, first_words(segment));
  }
}

void RankRunner::check_part(const Round& round) {
  const Bytes& expected = model_.part(rank_);
  Bytes seen(own_part(), own_part() + shape_.part_bytes);
  for (const Segment& segment : round.segments) {
    if (segment.rank != rank_ || segment.range.bytes == 0) continue;
    unsigned char* start = &seen[segment.range.start];
    const unsigned char* wanted = &expected[segment.range.start];
    const bool elements = segment.use == Use::kElements || segment.use == Use::kShared;
    const bool same =
        elements && mobius_test::equal(segment.type, start, wanted, segment.range.bytes);
    if (!same && segment.use != Use::kSwapChain) continue;
    std::memcpy(start, wanted, segment.range.bytes);
  }
  for (size_t at = 0; at < seen.size(); ++at) {
    if (seen[at] == expected[at]) continue;
    std::string text = "its memory differs at " + std::to_string(at) + " of " +
                       std::to_string(seen.size()) + ": " + std::to_string(seen[at]) +
                       " instead of " + std::to_string(expected[at]);
    for (const Segment& segment : round.segments) {
      if (segment.rank != rank_ || at < segment.range.start || at >= segment.range.end()) continue;
      text += ", in " + text_of(segment);
    }
    report(text);
  }
}

// Exactly one actor has fetched each value of a chain, or it is the word's last value.
void RankRunner::check_chains(const Round& round) {
  std::vector<std::vector<uint64_t>> logs;
  for (const Segment& segment : round.segments) {
    const bool chain = segment.use == Use::kSumChain || segment.use == Use::kSwapChain ||
                       segment.use == Use::kLockedChain;
    if (!chain || segment.rank != rank_) continue;
    for (Actor a = 0; logs.size() < static_cast<size_t>(shape_.actors()); ++a) {
      std::vector<uint64_t>& log = logs.emplace_back(kLogWords);
      const mob_rank_t rank = shape_.rank_of(a);
      const auto& board = *boards_[static_cast<size_t>(rank)];
      check(mob_get(rank, board.logs[a % shape_.threads], log.data(), kLogWords * 8), "mob_get");
    }
    const size_t width = mobius_test::bytes_of(segment.type);
    for (size_t word = segment.range.start; word < segment.range.end(); word += width) {
      check_word(round, segment, word, logs);
    }
  }
}

void RankRunner::check_word(const Round& round, const Segment& segment, size_t word,
                            const std::vector<std::vector<uint64_t>>& logs) {
  struct Link {
    uint64_t fetched;
    uint64_t produced;
  };
  std::vector<Link> links;
  for (size_t a = 0; a < round.actors.size(); ++a) {
    for (const auto* steps : {&round.actors[a].before, &round.actors[a].after}) {
      for (const Step& step : *steps) {
        if (step.what != What::kChain || step.rank != rank_ || step.remote != word) continue;
        const uint64_t fetched = logs[a][step.log];
        const bool sums = segment.use != Use::kSwapChain;
        links.push_back({fetched, sums ? fetched + step.value : step.value});
      }
    }
  }
  uint64_t value = 0;
  while (!links.empty()) {
    const auto next =
        std::find_if(links.begin(), links.end(), [&](const Link& l) { return l.fetched == value; });
    if (next == links.end()) {
      report("nobody fetched " + std::to_string(value) + " from the word at " +
             std::to_string(word) + " in " + text_of(segment));
    }
    value = next->produced;
    links.erase(next);
  }
  uint64_t held = 0;
  std::memcpy(&held, own_part() + word, mobius_test::bytes_of(segment.type));
  if (segment.type == MOB_DOUBLE) {
    double number = 0;
    std::memcpy(&number, &held, sizeof number);
    held = static_cast<uint64_t>(number);
  }
  if (held == value) return;
  report("the word at " + std::to_string(word) + " holds " + std::to_string(held) + ", not " +
         std::to_string(value) + ", in " + text_of(segment));
}

}  // namespace random_program
