// SPDX-License-Identifier: BSD-3-Clause
#include "engine/request/rkeys.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "engine/message/message.h"
#include "engine/progress/peer_watch.h"
#include "engine/progress/waiter.h"

namespace mobius::engine {

using transport::ofi::Registration;

void Rkeys::open(const base::Settings& settings) {
  if (settings.text(base::SettingId::kRmaKeys) == "off" ||
      settings.security() == base::Security::kFull) {
    return;
  }
  messages_.register_internal(
      InternalHandler::kKeys,
      [](const mob_message_t* message, void* self, mob_delivery_t*) {
        Notice notice{};
        if (message->header_bytes != sizeof notice) return;
        std::memcpy(&notice, message->header, sizeof notice);
        static_cast<Rkeys*>(self)->serve(message->source, notice);
      },
      this);
  is_open_.store(true, std::memory_order_release);
}

void Rkeys::allow(uint64_t start, size_t bytes) {
  if (!is_open_.load(std::memory_order_acquire) || bytes == 0) return;
  const std::lock_guard lock(mutex_);
  try {
    own_[start].bytes = bytes;
  } catch (const std::bad_alloc&) {
    return;  // origins then ask each time
  }
}

// Finds a key that exists and gives it to `origin`. Otherwise sets `wanted` to the memory to
// register, or to no bytes if there can be no key. Needs the mutex.
bool Rkeys::share(mob_rank_t origin, uint64_t address, size_t bytes, Key* key, Key* wanted) {
  *wanted = {};
  auto found = own_.upper_bound(address);
  if (found == own_.begin()) return false;
  --found;
  Own& own = found->second;
  const uint64_t end = address + bytes;
  if (!holds({0, found->first, own.bytes, 0, 0}, address, end) || own.is_refused) return false;
  for (auto& [id, given] : own.given) {
    const Registration& at = given.registration;
    *key = {id, found->first, at.bytes, at.base, at.key};
    if (!holds(*key, address, end)) continue;
    given.holders.insert(origin);
    return true;
  }
  wanted->start = found->first;
  wanted->bytes = own.bytes;
  return false;
}

bool Rkeys::give(mob_rank_t origin, uint64_t address, size_t bytes, Key* key) {
  if (!is_open_.load(std::memory_order_acquire)) return false;
  Registration made;
  bool is_given = false;
  try {
    Key wanted{};
    {
      const std::lock_guard lock(mutex_);
      if (share(origin, address, bytes, key, &wanted)) return true;
    }
    if (wanted.bytes == 0) return false;
    const bool is_made = endpoint_.register_memory(reinterpret_cast<void*>(wanted.start),
                                                   wanted.bytes, &made) == MOB_OK;
    const std::lock_guard lock(mutex_);
    // Another thread may have made a key meanwhile, or forbidden it.
    Key now{};
    is_given = share(origin, address, bytes, key, &now);
    if (!is_given && now.start == wanted.start && now.bytes == wanted.bytes) {
      Own& own = own_[wanted.start];
      own.is_refused = !is_made;
      if (is_made) {
        own.given[++last_id_].registration = made;
        made = {};
        is_given = share(origin, address, bytes, key, &now);
      }
    }
  } catch (const std::bad_alloc&) {
    is_given = false;
  }
  if (made.handle != nullptr) endpoint_.unregister(made);
  return is_given;
}

void Rkeys::forbid(const char* call, uint64_t start) {
  if (!is_open_.load(std::memory_order_acquire)) return;
  std::map<uint64_t, Own>::node_type own;
  {
    const std::lock_guard lock(mutex_);
    own = own_.extract(start);
  }
  if (own.empty()) return;
  std::map<uint64_t, Given>& given = own.mapped().given;
  while (!given.empty()) withdraw(call, given.extract(given.begin()));
}

void Rkeys::withdraw(const char* call, std::map<uint64_t, Given>::node_type given) {
  const uint64_t id = given.key();
  Registration registration = given.mapped().registration;
  {
    const std::lock_guard lock(mutex_);
    withdrawn_.insert(std::move(given));
  }
  for (mob_rank_t rank = holder_after(id, -1); rank >= 0; rank = holder_after(id, rank)) {
    while (!tell(rank, {id, What::kWithdrawn})) waiter_.poll();
  }
  for (mob_rank_t rank = holder_after(id, -1); rank >= 0; rank = holder_after(id, rank)) {
    PeerWatch watch(peers_, call, rank);
    const auto has_let_go = [&] { return holder_after(id, rank - 1) != rank; };
    if (waiter_.wait_until(has_let_go, &watch) != MOB_OK) drop_holder(id, rank);
  }
  {
    const std::lock_guard lock(mutex_);
    withdrawn_.erase(id);
  }
  endpoint_.unregister(registration);
}

// The holder of a withdrawn key with the next higher rank; -1: none.
mob_rank_t Rkeys::holder_after(uint64_t id, mob_rank_t rank) {
  const std::lock_guard lock(mutex_);
  const std::set<mob_rank_t>& holders = withdrawn_.find(id)->second.holders;
  const auto next = holders.upper_bound(rank);
  return next != holders.end() ? *next : -1;
}

void Rkeys::drop_holder(uint64_t id, mob_rank_t rank) {
  const std::lock_guard lock(mutex_);
  const auto found = withdrawn_.find(id);
  if (found != withdrawn_.end()) found->second.holders.erase(rank);
}

void Rkeys::keep(mob_rank_t target, const Key& key) {
  const std::lock_guard lock(mutex_);
  std::map<uint64_t, Held>& of_target = held_[target];
  const auto [held, is_new] = of_target.try_emplace(key.id);
  if (held->second.is_withdrawn) {
    of_target.erase(held);
  } else {
    held->second.key = key;
  }
}

// Needs the mutex.
Rkeys::Held* Rkeys::find(mob_rank_t target, uint64_t lowest, uint64_t highest) {
  const auto of_target = held_.find(target);
  if (of_target == held_.end()) return nullptr;
  const auto fits = [&](const auto& each) {
    return !each.second.is_withdrawn && holds(each.second.key, lowest, highest);
  };
  const auto found = std::ranges::find_if(of_target->second, fits);
  return found != of_target->second.end() ? &found->second : nullptr;
}

bool Rkeys::has(mob_rank_t target, uint64_t lowest, uint64_t highest) {
  const std::lock_guard lock(mutex_);
  return find(target, lowest, highest) != nullptr;
}

bool Rkeys::borrow(mob_rank_t target, uint64_t lowest, uint64_t highest, Key* key) {
  const std::lock_guard lock(mutex_);
  Held* const held = find(target, lowest, highest);
  if (held == nullptr) return false;
  ++held->uses;
  *key = held->key;
  return true;
}

void Rkeys::let_go(mob_rank_t target, uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    const auto of_target = held_.find(target);
    if (of_target == held_.end()) return;  // the target is lost
    const auto found = of_target->second.find(id);
    if (found == of_target->second.end()) return;
    Held& held = found->second;
    if (--held.uses != 0 || !held.is_withdrawn) return;
    const bool has_come = held.key.bytes != 0;
    if (has_come) of_target->second.erase(found);
  }
  while (!tell(target, {id, What::kLetGo})) std::this_thread::yield();
}

void Rkeys::give_up(mob_rank_t rank) {
  if (!is_open_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  held_.erase(rank);
  for (auto& [start, own] : own_) {
    for (auto& [id, given] : own.given) given.holders.erase(rank);
  }
  for (auto& [id, given] : withdrawn_) given.holders.erase(rank);
}

void Rkeys::serve(mob_rank_t from, const Notice& notice) {
  if (notice.what == What::kLetGo) {
    drop_holder(notice.id, from);
    return waiter_.ring(peers_.rank());
  }
  {
    const std::lock_guard lock(mutex_);
    Held& held = held_[from][notice.id];
    held.is_withdrawn = true;
    ++held.uses;
  }
  let_go(from, notice.id);
}

// False if there is no memory for the message. Any other failure means that the rank is lost.
bool Rkeys::tell(mob_rank_t rank, const Notice& notice) {
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kKeys);
  message.header = &notice;
  message.header_bytes = sizeof notice;
  try {
    static_cast<void>(messages_.post("the key of an allocation", rank, message));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace mobius::engine
