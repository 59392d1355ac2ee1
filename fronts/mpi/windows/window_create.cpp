// SPDX-License-Identifier: BSD-3-Clause
#include "windows/window_create.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"
#include "windows/carriers.h"
#include "windows/info.h"
#include "windows/program_memory.h"

namespace mobius::mpi {
namespace {

int exchange_over(const void* mine, size_t bytes, void* all, void* comm) {
  const int count = static_cast<int>(bytes);
  return real::Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE,
                         *static_cast<MPI_Comm*>(comm));
}

}  // namespace

Making::~Making() {
  if (window_ == nullptr) {
    static_cast<void>(mob_local_free(locks_));
    if (spare_owner_ != nullptr) spare_owner_->spares.push_back(std::move(spare_));
    return;
  }
  if (spare_owner_ != nullptr) {
    static_cast<void>(real::Win_free(&spare_.carrier));
    if (spare_.memory != nullptr) static_cast<void>(mob_mem_free(spare_.memory));
  }
  release_parts(window_);
  windows.give_back(window_);
}

bool Making::begin(Offer offer, bool can_serve, const char* why_not) {
  // The MPI itself reports that an intercommunicator has no windows.
  if (is_intercommunicator(comm_)) return false;
  const bool has_job = join_job(comm_);
  Members* const kept = has_job ? kept_members(comm_) : nullptr;
  std::vector<mob_rank_t> found;
  if (has_job && kept == nullptr) found = job_ranks(comm_);
  const std::vector<mob_rank_t>& ranks = kept != nullptr ? kept->ranks : found;
  // Every member finds a process outside of its job, and so all decide alike without a message. A
  // process of another MPI_COMM_WORLD, which may have no front, would not answer one.
  if (ranks.empty()) {
    count_left(has_job ? "with processes that were not there at MPI_Init()" : why_not_joined());
    return false;
  }
  int size = 0;
  static_cast<void>(real::Comm_size(comm_, &size));
  offer.rank = mob_rank();
  offer.has_info = info_ != MPI_INFO_NULL ? 1 : 0;
  static std::atomic<uint64_t> numbers = 0;
  offer.number = numbers.fetch_add(1, std::memory_order_relaxed);
  if (kept != nullptr && !kept->spares.empty()) {
    spare_owner_ = kept;
    spare_ = std::move(kept->spares.back());
    kept->spares.pop_back();
  }
  void* locks = nullptr;
  if (spare_owner_ != nullptr) {
    offer.locks = spare_.own_locks;
  } else if (mob_local_alloc(sizeof(MemberLocks), alignof(MemberLocks), &locks) == MOB_OK) {
    offer.locks = locks_ = new (locks) MemberLocks{};
  }
  offer.can_serve = can_serve && offer.locks != nullptr ? 1 : 0;
  int level = MPI_THREAD_MULTIPLE;
  static_cast<void>(real::Query_thread(&level));
  offer.has_one_caller = level != MPI_THREAD_MULTIPLE ? 1 : 0;
  offers_.resize(static_cast<size_t>(size));
  if (!exchange(kept, offer)) return false;
  if (!std::ranges::all_of(offers_, [](const Offer& each) { return each.can_serve != 0; })) {
    count_left(can_serve ? "another process cannot serve it" : why_not);
    return false;
  }
  window_ = windows.make();
  Window& window = *window_;
  window.has_threads =
      std::ranges::any_of(offers_, [](const Offer& each) { return each.has_one_caller == 0; });
  keeps_members_ = kept == nullptr && !window.has_threads;
  window.own_locks = spare_owner_ != nullptr ? spare_.own_locks : std::exchange(locks_, nullptr);
  window.flavor = flavor_;
  window.size = size;
  static_cast<void>(real::Comm_rank(comm_, &window.rank));
  window.targets = std::make_unique<Target[]>(static_cast<size_t>(size));
  for (size_t i = 0; i < offers_.size(); ++i) {
    Target& target = window.targets[i];
    target.rank = ranks[i];
    target.owner = offers_[i].owner >= 0 ? offers_[i].owner : ranks[i];
    target.base = static_cast<char*>(offers_[i].base);
    target.bytes = offers_[i].bytes;
    target.unit = static_cast<uint64_t>(offers_[i].unit);
    target.is_here = mob_is_host_mate(ranks[i]) == 1;
    target.is_copied = offers_[i].is_copied != 0;
  }
  window.bytes = static_cast<MPI_Aint>(offer.bytes);
  window.unit = static_cast<int>(offer.unit);
  window.base = offer.base;
  window.members = kept != nullptr ? kept : new Members{ranks};
  if (kept == nullptr) window.members->name = {offers_[0].rank, offers_[0].number};
  ++window.members->windows;
  if (make_parts()) return true;
  count_left("Möbius could not make what belongs to it");
  return false;
}

bool Making::exchange(const Members* kept, const Offer& mine) {
  if (kept != nullptr) {
    return mob_allgather(kept->team, &mine, offers_.data(), sizeof mine) == MOB_OK;
  }
  auto comm = comm_;
  return exchange_over(&mine, sizeof mine, offers_.data(), &comm) == MPI_SUCCESS;
}

bool Making::make_parts() {
  Window& window = *window_;
  Members& members = *window.members;
  if (spare_owner_ != nullptr) {
    window.epoch = spare_.epoch;
    for (int i = 0; i < window.size; ++i) {
      window.targets[i].locks = spare_.locks[static_cast<size_t>(i)];
    }
    return true;
  }
  auto comm = comm_;
  // Each of these fails at all members or at none.
  if (members.team == MOB_TEAM_NONE &&
      mob_team_gather(members.ranks.data(), window.size, exchange_over, &comm, &members.team) !=
          MOB_OK) {
    return false;
  }
  if (mob_epoch_create(members.team, &window.epoch) != MOB_OK) return false;
  const bool all_here = std::all_of(window.targets.get(), window.targets.get() + window.size,
                                    [](const Target& target) { return target.is_here; });
  // A lock of mob_access_create() travels to another host with the operations under it.
  if (!all_here) {
    for (int i = 0; i < window.size; ++i) window.targets[i].is_copied = false;
    return mob_access_create(members.team, &window.locked) == MOB_OK &&
           mob_mutexes_create(members.team, 1, &window.mutexes) == MOB_OK;
  }
  are_locks_found_ = find_locks();
  return true;
}

bool Making::find_locks() {
  for (size_t i = 0; i < offers_.size(); ++i) {
    void* here = nullptr;
    if (mob_ptr(offers_[i].rank, offers_[i].locks, &here) != MOB_OK) return false;
    window_->targets[i].locks = static_cast<MemberLocks*>(here);
  }
  return true;
}

// No member gave an info.
bool Making::is_plain() const {
  return std::ranges::all_of(offers_, [](const Offer& each) { return each.has_info == 0; });
}

mob_mem_t Making::take_spare_memory() {
  const bool suits = spare_.memory != nullptr && spare_.flavor == flavor_ && is_plain() &&
                     std::ranges::equal(offers_, spare_.bytes, {}, &Offer::bytes);
  return suits ? std::exchange(spare_.memory, nullptr) : nullptr;
}

int Making::make_handle(MPI_Win* carrier) {
  if (spare_owner_ != nullptr) {
    spare_owner_ = nullptr;
    if (spare_.memory != nullptr) static_cast<void>(mob_mem_free(spare_.memory));
    if (is_plain()) {
      *carrier = spare_.carrier;
      return MPI_SUCCESS;
    }
    static_cast<void>(real::Win_free(&spare_.carrier));
  }
  return make_carrier(*window_, info_, comm_, carrier);
}

bool Making::finish(bool is_ready, MPI_Win* win, int* result) {
  const int32_t mine = is_ready && are_locks_found_ ? 1 : 0;
  int32_t all = 0;
  if (mob_allreduce(window_->members->team, MOB_MIN, MOB_INT32, &mine, &all, 1) != MOB_OK ||
      all == 0) {
    count_left("Möbius could not make its memory");
    return false;
  }
  MPI_Win carrier = MPI_WIN_NULL;
  *result = make_handle(&carrier);
  if (*result != MPI_SUCCESS) return true;
  read_info(info_, window_);
  if (keeps_members_) keep_members(comm_, window_->members);
  windows.insert(std::exchange(window_, nullptr), carrier);
  *win = carrier;
  count_served();
  return true;
}

void release_memory(Window* window) {
  if (window->memory != nullptr) {
    if (void* mine = mob_mem_local(window->memory)) remove_own_memory(mine);
    static_cast<void>(mob_mem_free(window->memory));
  }
  withdraw_memory(&window->exposures);
  window->attached.detach_all();
}

void release_parts(Window* window) {
  const mob_team_t team = window->members != nullptr ? window->members->team : MOB_TEAM_NONE;
  // After this barrier nobody looks at the memory and locks of others any more.
  if (team != MOB_TEAM_NONE) static_cast<void>(mob_team_barrier(team));
  release_memory(window);
  if (window->mutexes != nullptr) static_cast<void>(mob_mutexes_free(window->mutexes));
  if (window->locked != nullptr) static_cast<void>(mob_access_free(window->locked));
  if (window->epoch != nullptr) static_cast<void>(mob_epoch_free(window->epoch));
  static_cast<void>(mob_local_free(window->own_locks));
  if (window->members != nullptr) leave_members(window->members);
}

}  // namespace mobius::mpi
