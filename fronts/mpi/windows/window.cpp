// SPDX-License-Identifier: BSD-3-Clause
#include "windows/window.h"

namespace mobius::mpi {

constinit Windows windows;

Window* Windows::find_again(uintptr_t handle) {
  if (!has_threads_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(mutex_);
  return find(handle);
}

Missed look_again(MPI_Win win) {
  Window* window = windows.find_again(number_of(win));
  const bool is_wrong = window == nullptr && windows.is_freed(win);
  return {window, is_wrong ? MPI_WIN_NULL : win};
}

Window* Windows::make() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return new Window;
  Window* window = free_.back();
  free_.pop_back();
  return window;
}

void Windows::insert(Window* window, MPI_Win carrier) {
  const std::lock_guard lock(mutex_);
  const uintptr_t handle = number_of(carrier);
  window->carrier = carrier;
  std::atomic<Window*>& first = slot(handle);
  if (window->has_threads) has_threads_.store(true, std::memory_order_relaxed);
  window->handle.store(handle, std::memory_order_relaxed);
  window->next.store(first.load(std::memory_order_relaxed), std::memory_order_relaxed);
  first.store(window, std::memory_order_release);  // pairs with the acquire in find()
  live_.push_back(window);
  note_made(carrier);
}

void Windows::remove(Window* window) {
  const std::lock_guard lock(mutex_);
  const uintptr_t handle = window->handle.load(std::memory_order_relaxed);
  std::atomic<Window*>* link = &slots_[hash(handle)];
  while (link->load(std::memory_order_relaxed) != window) {
    link = &link->load(std::memory_order_relaxed)->next;
  }
  link->store(window->next.load(std::memory_order_relaxed), std::memory_order_release);
  window->handle.store(0, std::memory_order_relaxed);
  std::erase(live_, window);
}

void Windows::give_back(Window* window) {
  const std::lock_guard lock(mutex_);
  window->targets.reset();
  window->started = {};
  window->posted = {};
  window->exposures.clear();
  window->info.clear();
  window->all_open = 0;
  window->access = Access::kNone;
  window->is_exposed = false;
  window->is_dynamic = false;
  window->orders_accumulates = true;
  window->is_changed = false;
  window->has_handler = false;
  window->first_name.reset();
  window->locks = 0;
  window->base = nullptr;
  window->own_locks = nullptr;
  window->members = nullptr;
  window->epoch = nullptr;
  window->locked = nullptr;
  window->mutexes = nullptr;
  window->memory = nullptr;
  window->schedule = MOB_SCHEDULE_DEFAULT;
  free_.push_back(window);
}

void Windows::note_freed(MPI_Win win) {
  const uintptr_t handle = number_of(win);
  freed_[hash(handle)].store(handle, std::memory_order_relaxed);
}

void Windows::note_made(MPI_Win win) {
  uintptr_t handle = number_of(win);
  freed_[hash(handle)].compare_exchange_strong(handle, 0, std::memory_order_relaxed);
}

bool Windows::is_freed(MPI_Win win) const {
  const uintptr_t handle = number_of(win);
  return freed_[hash(handle)].load(std::memory_order_relaxed) == handle;
}

Window* Windows::any() {
  const std::lock_guard lock(mutex_);
  return live_.empty() ? nullptr : live_.back();
}

}  // namespace mobius::mpi
