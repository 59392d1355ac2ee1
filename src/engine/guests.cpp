// SPDX-License-Identifier: BSD-3-Clause
#include "engine/guests.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/guest_making.h"
#include "os/sync/futex.h"

namespace mobius::engine {
namespace {

using base::fail;

std::mutex tags_mutex;                         // guards tags
std::array<bool, kMostGuests + 1> tags{true};  // those in use; 0 is the process' own job

// Held by a thread that polls for all engines, and by one that ends or pauses guests.
std::mutex polling;
thread_local bool polls = false;

// What the program has exposed, for jobs that are still to be joined.
struct ExposedRange {
  uintptr_t address;
  uint64_t bytes;
};
std::mutex exposing;  // guards exposed_ranges, and what each guest has exposed
std::map<uint64_t, ExposedRange> exposed_ranges;

mob_status_t expose_to(Guest& guest, uint64_t handle, const ExposedRange& range) {
  uint64_t inner = 0;
  const mob_status_t status = guest.engine->exposures().add(range.address, range.bytes, &inner);
  if (status == MOB_OK) guest.exposed[handle] = inner;
  return status;
}

bool poll_all_but(WaitLoop& except) {
  if (polls) return false;  // in a handler
  const std::unique_lock lock(polling, std::try_to_lock);
  if (!lock) return false;
  polls = true;
  bool found = false;
  const auto poll = [&](Engine& each) {
    if (&each.waiter() != &except) found = each.waiter().poll() || found;
  };
  poll(*process_engine.kept);
  for_each_guest(poll);
  polls = false;
  return found;
}

}  // namespace

constinit std::array<std::atomic<Guest*>, kMostGuests + 1> guests{};
constinit std::atomic<int> guests_live = 0;
constinit std::atomic<size_t> guests_end = 0;
constinit std::atomic<bool> guests_ever = false;
constinit std::atomic<uint64_t> parent_by_launcher = 0;

mob_status_t complete_in_others(const char* call, const Engine& here) {
  mob_status_t first = MOB_OK;
  std::string text;
  const auto complete = [&](Engine& each) {
    if (&each == &here) return;
    const mob_status_t status = each.completion().complete_all(call);
    if (status == MOB_OK || first != MOB_OK) return;
    first = status;
    text = mob_last_error();
  };
  complete(engine());
  for_each_guest(complete);
  return first != MOB_OK ? base::fail(first, "%s", text.c_str()) : MOB_OK;
}

ReservedTag::ReservedTag() {
  const std::lock_guard lock(tags_mutex);
  while (tag_ < tags.size() && tags[tag_]) ++tag_;
  if (tag_ < tags.size()) tags[tag_] = true;
}

ReservedTag::~ReservedTag() {
  if (!kept_ && tag_ < tags.size()) give_back(tag_);
}

void ReservedTag::give_back(size_t tag) {
  const std::lock_guard lock(tags_mutex);
  tags[tag] = false;
}

Guest::~Guest() = default;

bool Guest::names(mob_rank_t rank, mob_rank_t* inner) const {
  const auto place = static_cast<size_t>(static_cast<uint32_t>(rank - first));
  if (place >= others.size()) return false;
  *inner = others[place];
  return true;
}

bool Guest::holds(mob_rank_t rank, const void* address, mob_rank_t* inner) const {
  const auto place = static_cast<size_t>(static_cast<uint32_t>(rank));
  if (place >= inner_numbers.size() || inner_numbers[place] < 0) return false;
  *inner = inner_numbers[place];
  const WindowPlace& there = windows[static_cast<size_t>(*inner - own_first)];
  return reinterpret_cast<uintptr_t>(address) - there.base < there.bytes;
}

EngineOf find_engine_of(mob_rank_t rank, const void* address) {
  const size_t end = guests_end.load(std::memory_order_relaxed);
  for (size_t tag = 1; tag < end; ++tag) {
    // Acquire pairs with the release in connect_to_port().
    const Guest* const guest = guests[tag].load(std::memory_order_acquire);
    mob_rank_t inner = 0;
    if (guest == nullptr) continue;
    if (guest->names(rank, &inner) || guest->holds(rank, address, &inner)) {
      return {*guest->engine, inner};
    }
  }
  return {engine(), rank};
}

bool is_of_other_job(mob_rank_t rank) {
  return any_guests() && &find_engine_of(rank, nullptr).engine != &engine();
}

Engine& find_engine_of_handle(uint64_t handle) {
  const unsigned tag = tag_of_handle(handle);
  const Guest* const guest =
      tag < guests.size() ? guests[tag].load(std::memory_order_acquire) : nullptr;
  return guest != nullptr ? *guest->engine : engine();
}

Engine& find_engine_at(const void* address) {
  const size_t end = guests_end.load(std::memory_order_relaxed);
  for (size_t tag = 1; tag < end; ++tag) {
    const Guest* const guest = guests[tag].load(std::memory_order_acquire);
    if (guest != nullptr && guest->holds(address)) return *guest->engine;
  }
  return engine();
}

mob_status_t expose_all_to(Guest& guest) {
  const std::lock_guard lock(exposing);
  for (const auto& [handle, range] : exposed_ranges) {
    if (const mob_status_t status = expose_to(guest, handle, range)) return status;
  }
  return MOB_OK;
}

namespace {

// This process waits for processes of two jobs from now on.
void wait_with(Engine& home, const Guest& guest) {
  job::HostGroup& there = guest.engine->peers().host();
  there.crowding().link(home.peers().host().crowding());
  home.peers().host().crowding().link(there.crowding());
  home.peers().job().settle_waiting(home.settings(), &there.policy());
}

// The guest is off the list.
void wait_without(Engine& home, const Guest& guest) {
  job::HostGroup& there = guest.engine->peers().host();
  there.crowding().unlink(home.peers().host().crowding());
  home.peers().host().crowding().unlink(there.crowding());
  const os::WaitPolicy* others = nullptr;
  for_each_guest([&](Engine& each) { others = &each.peers().host().policy(); });
  home.peers().job().settle_waiting(home.settings(), others);
}

}  // namespace

mob_status_t Guest::find_windows() {
  const Window& own_window = engine->segment().window();
  base = own_window.base();
  bytes = own_window.bytes();
  windows.resize(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const mob_status_t status =
        engine->find_window(own_first + static_cast<mob_rank_t>(i), &windows[i]);
    if (status != MOB_OK) return status;
  }
  return MOB_OK;
}

void enlist(Engine& home, ReservedTag& tag, std::unique_ptr<Guest> guest) {
  wait_with(home, *guest);
  // Release pairs with the acquire in find_engine_of().
  guests[tag.get()].store(guest.release(), std::memory_order_release);
  tag.keep();
  size_t end = guests_end.load(std::memory_order_relaxed);
  while (end <= tag.get() && !guests_end.compare_exchange_weak(end, tag.get() + 1)) {
  }
  WaitLoop::poll_others = poll_all_but;
  guests_ever.store(true, std::memory_order_relaxed);
  guests_live.fetch_add(1, std::memory_order_relaxed);
}

mob_status_t expose_to_guests(uint64_t handle, uintptr_t address, uint64_t bytes) {
  const std::lock_guard lock(exposing);
  const auto [made, is_new] = exposed_ranges.insert_or_assign(handle, ExposedRange{address, bytes});
  for (const std::atomic<Guest*>& each : guests) {
    Guest* const guest = each.load(std::memory_order_acquire);
    if (guest == nullptr) continue;
    if (const mob_status_t status = expose_to(*guest, handle, made->second)) return status;
  }
  return MOB_OK;
}

void withdraw_from_guests(uint64_t handle) {
  const std::lock_guard lock(exposing);
  exposed_ranges.erase(handle);
  for (const std::atomic<Guest*>& each : guests) {
    Guest* const guest = each.load(std::memory_order_acquire);
    if (guest == nullptr) continue;
    const auto found = guest->exposed.find(handle);
    if (found == guest->exposed.end()) continue;
    static_cast<void>(guest->engine->exposures().remove(found->second));
    guest->exposed.erase(found);
  }
}

GuestsPause::GuestsPause() : lock_(polling) {
  for_each_guest([&](Engine& each) {
    pauses_.push_back(std::make_unique<ThreadPause>(each.network(), each.progress()));
  });
}

GuestsPause::~GuestsPause() {
  for (const std::unique_ptr<ThreadPause>& pause : pauses_) {
    if (pause->end() == MOB_OK) continue;
    base::log(base::LogLevel::kError, "%s", mob_last_error());
  }
}

mob_status_t disconnect_guest(const char* call, uint64_t handle) {
  Engine& engine = engine_of_handle(handle);
  const mob_status_t status = engine.bridges().disconnect(call, handle);
  const std::string text = status != MOB_OK ? mob_last_error() : "";
  engine.end_calls();
  const bool all_met = quiesce(engine);
  engine.start_leaving();
  remove_guest(engine, all_met);
  return status != MOB_OK ? fail(status, "%s", text.c_str()) : MOB_OK;
}

std::vector<Engine*> guest_engines() {
  std::vector<Guest*> found;
  for (const std::atomic<Guest*>& each : guests) {
    Guest* const guest = each.load(std::memory_order_relaxed);
    if (guest != nullptr) found.push_back(guest);
  }
  // Tags may differ between processes of a job; numbers of the others do not. Processes of a
  // meeting are of two jobs, and know it by its id.
  std::ranges::sort(found, {}, [](const Guest* guest) {
    return std::make_tuple(guest->is_meeting, guest->id,
                           guest->is_meeting ? mob_rank_t{0} : guest->first);
  });
  std::vector<Engine*> engines;
  for (const Guest* guest : found) engines.push_back(guest->engine.get());
  return engines;
}

void remove_guest(Engine& engine, bool all_met) {
  size_t tag = 1;
  const auto is_its = [&](const Guest* guest) {
    return guest != nullptr && guest->engine.get() == &engine;
  };
  while (!is_its(guests[tag].load(std::memory_order_relaxed))) ++tag;
  const std::unique_ptr<Guest> guest(guests[tag].load(std::memory_order_relaxed));
  {
    const std::scoped_lock lock(polling, exposing);
    guests[tag].store(nullptr, std::memory_order_relaxed);
    guests_live.fetch_sub(1, std::memory_order_relaxed);
    wait_without(*process_engine.kept, *guest);
  }
  // Inlined operations do not reach the window any more.
  for (const mob_rank_t rank : guest->public_numbers) {
    if (rank >= 0) target_forget_all(rank, guest->base, guest->bytes);
  }
  if (tag_of_handle(parent_by_launcher.load(std::memory_order_relaxed)) == tag) {
    parent_by_launcher.store(0, std::memory_order_relaxed);
  }
  engine.stop(all_met);
  ReservedTag::give_back(tag);
}

void forget_guests() {
  for (std::atomic<Guest*>& each : guests) each.store(nullptr, std::memory_order_relaxed);
  guests_live.store(0, std::memory_order_relaxed);
}

}  // namespace mobius::engine
