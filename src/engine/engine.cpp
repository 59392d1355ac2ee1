// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.h"

#include <unistd.h>

#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "engine/targets.h"

int32_t mob_size_ = 0;

namespace mobius::engine {
namespace {

using base::fail;

std::optional<Engine> instance;
std::atomic<State> current_state = State::kBefore;

}  // namespace

mob_status_t Engine::start(const char* const* environment) {
  base::Settings settings;
  if (const mob_status_t status = settings.load(environment)) return status;
  base::set_log(static_cast<base::LogLevel>(settings.number(base::SettingId::kLog)), -1);
  // Under a launcher the launcher has warned, once for all.
  if (!settings.is_set(base::SettingId::kJob)) {
    for (const std::string& text : settings.unknown()) {
      base::log(base::LogLevel::kWarn, "%s", text.c_str());
    }
  }
  if (const mob_status_t status = job_.join(settings)) return status;
  base::set_log(static_cast<base::LogLevel>(settings.number(base::SettingId::kLog)), rank());
  mob_status_t status = window_.open(host(), settings);
  if (status == MOB_OK) status = slabs_.open(host(), window_);
  if (status != MOB_OK) {
    window_.close();
    job_.abandon();
    return status;
  }
  return MOB_OK;
}

void Engine::stop() {
  host().barrier();  // nobody may still be using what goes away now
  slabs_.for_each([this](const Slab& slab) { forget(slab); });
  slabs_.close();
  window_.close();
  job_.leave();
}

mob_status_t Engine::allocate(size_t bytes, bool valid_call, Slab** slab) {
  return slabs_.allocate(bytes, valid_call, slab);
}

mob_status_t Engine::release(Slab* slab) {
  forget(*slab);
  return slabs_.release(slab);
}

void Engine::forget(const Slab& slab) const {
  for (const Part& part : slab.parts) target_forget(part.host_index, owner_address(part));
}

mob_status_t Engine::explain_unreachable(const char* call, mob_rank_t rank, const void* remote,
                                         size_t bytes) const {
  const mob_rank_t index = host_index(rank);
  const uint64_t offset = reinterpret_cast<uintptr_t>(remote) - window_.base_of(index);
  const Part* part = slabs_.find(offset);
  if (part == nullptr || part->host_index != index) {
    return fail(MOB_ERR_RANGE, "%s: %zu bytes at %p are not in any allocation of rank %d", call,
                bytes, remote, rank);
  }
  return fail(MOB_ERR_RANGE,
              "%s: %zu bytes at offset %zu do not fit into the %zu bytes that rank %d allocated "
              "there",
              call, bytes, static_cast<size_t>(offset - part->offset),
              static_cast<size_t>(part->bytes), rank);
}

State state() { return current_state.load(std::memory_order_relaxed); }

Engine& engine() { return *instance; }

mob_status_t engine_start() {
  instance.emplace();
  if (const mob_status_t status = instance->start(environ)) {
    instance.reset();
    return status;
  }
  mob_size_ = instance->size();
  current_state.store(State::kLive, std::memory_order_relaxed);
  return MOB_OK;
}

void engine_stop() {
  mob_size_ = 0;
  current_state.store(State::kAfter, std::memory_order_relaxed);
  instance->stop();
  instance.reset();
}

}  // namespace mobius::engine
