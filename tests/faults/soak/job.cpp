// SPDX-License-Identifier: BSD-3-Clause

// Setting up a job of the soak, its rounds, and the checks at its end.

#include "job.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace soak {

namespace {

// Slots that lie between bytes that nobody writes.
void fill_guards(unsigned char* area, size_t writers, size_t slot_bytes) {
  for (size_t i = 0; i <= writers; ++i) {
    std::fill_n(area + i * (slot_bytes + kGuardBytes), kGuardBytes, kGuard);
  }
}

unsigned char* map_pages(size_t bytes) {
  void* area = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return area == MAP_FAILED ? nullptr : static_cast<unsigned char*>(area);
}

}  // namespace

Job::Job(const Plan& plan) : plan_(plan), random_(plan.seed), rank_(mob_rank()), size_(mob_size()) {
  // Equal at all ranks.
  lanes_ = random_() % 3 == 0 ? 1 + static_cast<int>(random_() % kMostLanes) : 1;
  own_contexts_ = random_() % 2 == 0;
  rounds_ = 4 + static_cast<int>(random_() % 20);
  slot_bytes_ = random_() % 10 == 0 ? size_t{160} << 10 : size_t{6} << 10;
  for (mob_rank_t each = 0; each < size_; ++each) {
    elsewhere_.push_back(mob_is_host_mate(each) != 1);
  }
}

bool Job::may_fail(mob_rank_t target, bool needs_target) const {
  if (is_lenient()) return true;
  if (plan_.is_victim(target) &&
      (needs_target || is_elsewhere(target) || has_message_[static_cast<size_t>(target)])) {
    return true;
  }
  // Threads that share a context get the errors of each other.
  if (!shares_errors()) return false;
  return std::ranges::any_of(plan_.fates,
                             [&](const Fate& fate) { return plan_.is_victim(fate.rank); });
}

bool Job::may_lose(const Team& team) const {
  return is_lenient() || std::ranges::any_of(team.members, [&](mob_rank_t member) {
           return plan_.is_victim(member);
         });
}

bool Job::ok(mob_status_t status, const char* what) const {
  if (status == MOB_OK) return true;
  if (status != MOB_ERR_PEER || !is_lenient()) {
    complain("%s gave %s: %s", what, mob_status_name(status), mob_last_error());
  }
  return false;
}

unsigned char* Job::slot(mob_rank_t rank, size_t writer) const {
  return reinterpret_cast<unsigned char*>(blocks_[static_cast<size_t>(rank)] + 1) + kGuardBytes +
         writer * stride();
}

unsigned char* Job::exposed_slot(mob_rank_t rank, size_t writer) const {
  return privates_[static_cast<size_t>(rank)] + kGuardBytes + writer * stride();
}

unsigned char* Job::remapped_slot(mob_rank_t rank, size_t writer) const {
  return remappeds_[static_cast<size_t>(rank)] + kGuardBytes + writer * stride();
}

double* Job::exposed_doubles(mob_rank_t rank) const {
  return reinterpret_cast<double*>(privates_[static_cast<size_t>(rank)] +
                                   (area_bytes() + 63) / 64 * 64);
}

bool Job::make_team(std::vector<mob_rank_t> members) {
  const bool is_member = std::ranges::find(members, rank_) != members.end();
  Team team;
  if (!ok(mob_team_split(MOB_TEAM_WORLD, is_member ? 0 : -1, 0, &team.handle), "mob_team_split")) {
    return false;
  }
  team.members = std::move(members);
  teams_.push_back(std::move(team));
  return true;
}

bool Job::make_teams() {
  std::vector<mob_rank_t> all;
  std::vector<mob_rank_t> survivors;
  for (mob_rank_t each = 0; each < size_; ++each) {
    all.push_back(each);
    if (!plan_.is_victim(each)) survivors.push_back(each);
  }
  teams_.push_back({MOB_TEAM_WORLD, all, false});
  if (!survivors.empty() && !make_team(survivors)) return false;
  for (uint64_t left = random_() % 3; left > 0; --left) {
    std::vector<mob_rank_t> some;
    const uint64_t chosen = random_();
    for (const mob_rank_t each : all) {
      if ((chosen >> each & 1) != 0) some.push_back(each);
    }
    if (!some.empty() && !make_team(some)) return false;
  }
  return true;
}

bool Job::expose() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes =
      ((area_bytes() + 63) / 64 * 64 + kElements * sizeof(double) + page - 1) / page * page;
  private_ = map_pages(bytes);
  remapped_ = map_pages(bytes);
  if (private_ == nullptr || remapped_ == nullptr) {
    complain("no memory for exposures");
    return false;
  }
  fill_guards(private_, writers(), slot_bytes_);
  fill_guards(remapped_, writers(), slot_bytes_);
  std::vector<void*> addresses(static_cast<size_t>(size_));
  const auto publish = [&](void* mine, std::vector<unsigned char*>& all) {
    const bool done = ok(mob_publish(MOB_TEAM_WORLD, mine, addresses.data()), "mob_publish");
    for (void* address : addresses) all.push_back(static_cast<unsigned char*>(address));
    return done;
  };
  return ok(mob_expose(private_, bytes, 0, &exposures_[0]), "mob_expose") &&
         ok(mob_expose(remapped_, bytes, MOB_EXPOSE_REMAP, &exposures_[1]),
            "mob_expose with MOB_EXPOSE_REMAP") &&
         publish(private_, privates_) && publish(remapped_, remappeds_);
}

bool Job::set_up() {
  if (!ok(mob_mem_alloc(sizeof(Block) + area_bytes(), &mem_), "mob_mem_alloc")) return false;
  own_ = static_cast<Block*>(mob_mem_local(mem_));
  for (mob_rank_t each = 0; each < size_; ++each) {
    void* address = nullptr;
    if (!ok(mob_mem_address(mem_, each, 0, &address), "mob_mem_address")) return false;
    blocks_.push_back(static_cast<Block*>(address));
  }
  fill_guards(reinterpret_cast<unsigned char*>(own_ + 1), writers(), slot_bytes_);
  return expose() && make_teams() &&
         ok(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes_), "mob_mutexes_create") &&
         ok(mob_access_create(MOB_TEAM_WORLD, &access_), "mob_access_create") &&
         ok(mob_epoch_create(MOB_TEAM_WORLD, &epoch_), "mob_epoch_create") &&
         register_handlers(*this) && meet_before_deaths();
}

// All ranks come, but one that was first to go on may have died before this one knows that.
bool Job::meet_before_deaths() {
  const mob_status_t status = mob_barrier();
  if (status != MOB_ERR_PEER || is_lenient() || !may_lose(teams_[0])) {
    return ok(status, "mob_barrier");
  }
  teams_[0].lost = true;
  return true;
}

void Job::run() {
  std::vector<Lane> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.emplace_back(*this, i, plan_.seed);
  Random operations(plan_.seed + 1);
  const uint64_t most = 1 + operations() % 12;
  // A victim goes on until it dies.
  for (int round = 0; round < rounds_ || plan_.is_victim(rank_); ++round) {
    const size_t count = operations() % (most + 1);
    std::vector<mob_context_t> contexts(static_cast<size_t>(lanes_), MOB_CONTEXT_DEFAULT);
    for (mob_context_t& context : contexts) {
      if (own_contexts_) (void)ok(mob_context_create(&context), "mob_context_create");
    }
    std::vector<std::thread> threads;
    for (int i = 1; i < lanes_; ++i) {
      const auto at = static_cast<size_t>(i);
      threads.emplace_back([&, at] { lanes[at].run(count, contexts[at]); });
    }
    lanes[0].run(count, contexts[0]);
    for (std::thread& thread : threads) thread.join();
    for (const mob_context_t context : contexts) {
      const mob_status_t status = mob_context_free(context);
      if (status != MOB_OK && status != MOB_ERR_PEER) (void)ok(status, "mob_context_free");
    }
    step_together(*this, static_cast<uint64_t>(round));
  }
  for (Lane& lane : lanes) lane.check_end();
}

void Job::await_deaths() {
  for (const Fate& fate : plan_.fates) {
    if (!plan_.is_victim(fate.rank)) continue;
    while (mob_rank_alive(fate.rank) != 0) {
      // A rank on another host finds out only by an operation on it.
      uint64_t value = 0;
      if (is_elsewhere(fate.rank)) {
        (void)mob_get(fate.rank, &block(fate.rank).round, &value, sizeof value);
      }
      usleep(200);
    }
  }
  (void)mob_flush_all();  // with the errors of puts to the dead
}

void Job::check_slots(const char* what, const unsigned char* area) const {
  for (size_t writer = 0; writer <= writers(); ++writer) {
    const unsigned char* guard = area + writer * stride();
    if (std::any_of(guard, guard + kGuardBytes, [](unsigned char b) { return b != kGuard; })) {
      complain("%s: bytes beside the slot of writer %zu were written", what, writer);
    }
    if (writer == writers()) return;
    const unsigned char* slot = guard + kGuardBytes;
    const auto* wrong = std::find_if_not(
        slot, slot + slot_bytes_, [&](unsigned char byte) { return is_byte_of(writer, byte); });
    if (wrong != slot + slot_bytes_) {
      complain("%s: byte %zu of the slot of writer %zu is %u", what,
               static_cast<size_t>(wrong - slot), writer, *wrong);
    }
  }
}

void Job::check_bounds(const char* what, Kind kind, uint64_t least, uint64_t most) const {
  uint64_t ended = 0;
  uint64_t begun = 0;
  for (mob_rank_t each = 0; each < size_; ++each) {
    if (plan_.is_victim(each) && is_elsewhere(each)) {
      begun = UINT64_MAX / 2;  // unknown
      continue;
    }
    uint64_t value = 0;
    if (!ok(mob_get8(each, &block(each).ended[kind][rank_], &value), "mob_get8")) return;
    ended += value;
    if (!ok(mob_get8(each, &block(each).begun[kind][rank_], &value), "mob_get8")) return;
    begun += value;
  }
  if (least >= ended && most <= begun) return;
  complain("%s: %lu to %lu, but %lu updates have ended of %lu begun", what,
           static_cast<unsigned long>(least), static_cast<unsigned long>(most),
           static_cast<unsigned long>(ended), static_cast<unsigned long>(begun));
}

void Job::check_end() {
  if (is_lenient() && !plan_.fates.empty()) {
    // Others may end this rank any moment, or may be gone; the bytes are right all the same.
    check_slots("allocated", reinterpret_cast<const unsigned char*>(own_ + 1));
    check_slots("exposed", private_);
    check_slots("remapped", remapped_);
    return;
  }
  await_deaths();
  const Team& survivors = teams_[1];
  if (!ok(mob_team_barrier(survivors.handle), "mob_team_barrier of the survivors")) return;
  for (mob_rank_t each = 0; each < size_; ++each) {
    const int wanted = plan_.is_victim(each) ? 0 : 1;
    if (mob_rank_alive(each) != wanted) {
      complain("rank %d counts as %s", each, wanted == 0 ? "alive" : "dead");
    }
  }
  check_slots("allocated", reinterpret_cast<const unsigned char*>(own_ + 1));
  check_slots("exposed", private_);
  check_slots("remapped", remapped_);
  check_bounds("additions", kSum, here().sum, here().sum);
  const auto range = [](const auto* array) {
    const auto [least, most] = std::minmax_element(array, array + kElements);
    return std::pair(static_cast<uint64_t>(*least), static_cast<uint64_t>(*most));
  };
  const auto doubles = range(here().doubles);
  check_bounds("accumulates of doubles", kDoubles, doubles.first, doubles.second);
  const auto integers = range(here().integers);
  check_bounds("accumulates of integers", kIntegers, integers.first, integers.second);
  const auto exposed = range(exposed_doubles(rank_));
  check_bounds("accumulates in exposed memory", kExposed, exposed.first, exposed.second);
  for (const Kind kind : {kMutex, kLock, kAccess}) {
    check_bounds("changes under a lock", kind, here().pairs[kind][0], here().pairs[kind][0]);
  }
  if (!ok(mob_team_barrier(survivors.handle), "mob_team_barrier of the survivors")) return;
  if (plan_.seed % 2 == 0) free_all();
}

void Job::free_all() {
  const bool all_live = survivors_are_all();
  const auto freed = [&](mob_status_t status, const char* what) {
    if (status == MOB_ERR_PEER && !all_live) return;
    (void)ok(status, what);
  };
  freed(mob_withdraw(exposures_[0]), "mob_withdraw");
  freed(mob_withdraw(exposures_[1]), "mob_withdraw");
  freed(mob_mutexes_free(mutexes_), "mob_mutexes_free");
  freed(mob_access_free(access_), "mob_access_free");
  freed(mob_epoch_free(epoch_), "mob_epoch_free");
  for (size_t i = 1; i < teams_.size(); ++i) {
    freed(mob_team_free(teams_[i].handle), "mob_team_free");
  }
  freed(mob_mem_free(mem_), "mob_mem_free");
}

}  // namespace soak
