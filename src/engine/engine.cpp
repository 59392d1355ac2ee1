// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.h"

#include <unistd.h>

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "engine/collective/inter_host.h"
#include "engine/common/out_of_memory.h"
#include "os/memfd.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;

// Small numbers for threads, used again when a thread ends.
class ThreadNumber {
 public:
  ThreadNumber() {
    const std::lock_guard lock(mutex());
    if (free_numbers().empty()) {
      value_ = next()++;
    } else {
      value_ = free_numbers().back();
      free_numbers().pop_back();
    }
  }
  ~ThreadNumber() {
    const std::lock_guard lock(mutex());
    free_numbers().push_back(value_);
  }
  ThreadNumber(const ThreadNumber&) = delete;
  ThreadNumber& operator=(const ThreadNumber&) = delete;

  uint32_t value() const { return value_; }

 private:
  // Never destroyed: threads may end after the process' static objects.
  static std::mutex& mutex() {
    static auto* const instance = new std::mutex;
    return *instance;
  }
  static std::vector<uint32_t>& free_numbers() {
    static auto* const instance = new std::vector<uint32_t>;
    return *instance;
  }
  static uint32_t& next() {
    static uint32_t instance = 0;
    return instance;
  }

  uint32_t value_;
};

}  // namespace

constinit thread_local uint32_t Engine::thread_number = 0;

uint32_t Engine::number_thread() {
  thread_local const ThreadNumber number;  // until the thread ends
  return thread_number = number.value() + 1;
}

void Engine::apply_copy_settings() const {
  using base::SettingId;
  transport::CopyTuning tuning = transport::default_copy_tuning();
  tuning.slow_near_in_page = transport::measure_near_in_page();
  const uint64_t stream = settings_.number(SettingId::kCopyStreamBytes);
  const uint64_t rep = settings_.number(SettingId::kCopyRepBytes);
  if (stream != base::kAutomatic) tuning.stream_from_bytes = stream;
  if (rep != base::kAutomatic) tuning.rep_movsb_from_bytes = rep;
  tuning.try_from_bytes = settings_.number(SettingId::kCopyTryBytes);
  transport::set_copy_tuning(tuning);
}

mob_status_t Engine::start(const char* const* environment, const ThreadSeat* seat,
                           const job::mpi::Communicator* communicator) {
  if (const mob_status_t status = settings_.load(environment)) return status;
  // Ranks that are threads share the tuning and the settings: the first sets it for all, before the
  // others can have joined.
  if (seat == nullptr || seat->rank == 0) apply_copy_settings();
  base::set_log(static_cast<base::LogLevel>(settings_.number(base::SettingId::kLog)), -1);
  // Under a launcher the launcher has warned, once for all.
  if (!settings_.is_set(base::SettingId::kJob) && (seat == nullptr || seat->rank == 0)) {
    for (const std::string& text : settings_.unknown()) {
      base::log(base::LogLevel::kWarn, "%s", text.c_str());
    }
  }
  mob_status_t status = MOB_OK;
  if (communicator != nullptr) {
    status = job_.join_mpi(settings_, communicator);
  } else if (seat == nullptr) {
    status = job_.join(settings_);
  } else {
    status = job_.join_threads(settings_, seat->segment, *seat->control, seat->rank);
  }
  if (status != MOB_OK) return status;
  if (seat == nullptr) {
    base::set_log(static_cast<base::LogLevel>(settings_.number(base::SettingId::kLog)), rank());
  }
  status = without_exceptions("mob_init", [&] { return open(seat); });
  if (status != MOB_OK) {
    progress_.stop();
    close();
    job_.abandon();
  }
  return status;
}

// Who cannot go on says so to its host-mates when they next meet, and does not come to the meeting
// of all hosts.
mob_status_t Engine::open(const ThreadSeat* seat) {
  Mappings own;
  Mappings& mappings = seat == nullptr ? own : *seat->mappings;
  if (const mob_status_t status = open_memory(seat, mappings)) return status;
  const mob_status_t status = teams_.open_world(without_exceptions("mob_init", [&] {
    open_parts(mappings);
    return open_network();
  }));
  return status == MOB_OK ? network_.meet() : status;
}

mob_status_t Engine::open_memory(const ThreadSeat* seat, Mappings& mappings) {
  mob_status_t status = MOB_OK;
  if (seat == nullptr || seat->rank == 0) {
    mappings.window = std::make_shared<Window>();
    mappings.notifications = std::make_shared<NotificationMemory>();
    Window& window = *mappings.window;
    if (seat != nullptr) {
      status = window.open_for_threads(host(), settings_);
    } else if ((status = window.open(host(), settings_))) {
      return status;  // everywhere
    }
    if (status == MOB_OK) {
      status = mappings.host_memory.map(host().segment(), window.bytes() >> kChunkShift);
    }
  }
  if (seat != nullptr) {
    status = host().agree(status, "mob_init");
    if (status != MOB_OK) return status;
  }
  window_ = mappings.window;
  segment_layout_ = mappings.host_memory;
  if (status == MOB_OK) status = SegmentLayout::reserve(host().segment(), host().index());
  if (status == MOB_OK) status = router_.open();
  return host().agree(status, "mob_init");
}

void Engine::open_parts(const Mappings& mappings) {
  job_.settle_waiting(settings_);
  own_ = &segment_layout_.process(host().index());
  progress_.open(own_->doorbell);
  messages_.open(*own_);
  exposures_.open();
  delegation_.open(*own_);
  remaps_.open();
  chunks_.open(segment_layout_, host().segment(), window_->bytes() >> kChunkShift, *this);
  notifications_.open(*this, mappings.notifications);
  gets_messages_only_ = job_.hosts() == 1 && !router_.hooked();
}

// Before the others can ask for anything, everything is there to answer.
mob_status_t Engine::open_network() {
  if (job_.hosts() == 1) return MOB_OK;
  remote_objects_.open();
  team_messages_.open();
  batch_server_.open();
  if (const mob_status_t status = scheduler_.open()) return status;
  if (const mob_status_t status = am_rma_.require()) return status;
  if (const mob_status_t status = network_.open(messages_.handlers())) return status;
  return network_.start();
}

mob_status_t Engine::make_team_area(mob_rank_t size, uint64_t* offset) {
  const uint64_t chunks = chunks_of(Team::area_bytes(size));
  uint64_t first = 0;
  if (const mob_status_t status = chunks_.claim(chunks, &first)) return status;
  *offset = first << kChunkShift;
  const mob_status_t status = reserve_memory(*offset, Team::area_bytes(size));
  if (status != MOB_OK) chunks_.release(first, chunks);
  return status;
}

// The area is that of the members of this host.
mob_status_t Engine::adopt_team(TeamMap map, mob_rank_t team_rank, uint64_t area_offset,
                                uint64_t id, std::unique_ptr<Team>* team, Series series) {
  std::vector<mob_rank_t> mates;
  const bool all_here = InterHost::find_mates(*this, map, &mates);
  const uint64_t chunks = chunks_of(Team::area_bytes(static_cast<mob_rank_t>(mates.size())));
  if (const mob_status_t status = window_->allow(area_offset, chunks)) return status;
  if (!all_here) {
    TeamMap here = TeamMap::of(mates);
    const mob_rank_t place = here.rank_of(rank());
    auto local = std::make_unique<Team>(*this, std::move(here), place, local_address(area_offset),
                                        area_offset, series);
    *team = std::make_unique<Team>(*this, std::move(map), team_rank, id, std::move(local));
    return MOB_OK;
  }
  *team = std::make_unique<Team>(*this, std::move(map), team_rank, local_address(area_offset),
                                 area_offset, series);
  return MOB_OK;
}

void Engine::release_team_area(uint64_t offset, mob_rank_t size) {
  const uint64_t chunks = chunks_of(Team::area_bytes(size));
  release_memory(offset, chunks << kChunkShift);
  chunks_.release(offset >> kChunkShift, chunks);
}

mob_status_t Engine::refuse_to_wait() {
  return fail(MOB_ERR_STATE,
              "a handler must not wait, and this call would have to; send a message and go on in "
              "the handler of the reply");
}

void Engine::end_calls() { process(host().index()).is_ending.store(1, std::memory_order_release); }

void Engine::stop(bool all_met) {
  progress_.stop();
  // Nobody may still be using what goes away now.
  await_others();
  // Who is lost does not come, and who has lost it does not wait; others know by the last meeting.
  const bool all_come = !network_.has_lost_any() && all_met;
  if (job_.hosts() > 1 && all_come) {
    network_.note_all_met();
    static_cast<void>(job_.directory()->fence());
  }
  network_.close();
  messages_.close();
  scheduler_.close();
  router_.close(true);
  remaps_.take_back();
  remap_views_.close();
  close();
  job_.leave();
}

// Waits until every process of the host that is alive has come to its end.
void Engine::await_others() {
  job_.start_leaving();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between the change and looks for sleepers
  const mob_rank_t mates = host().size();
  for (mob_rank_t index = 0; index < mates; ++index) {
    if (index != host().index()) ring_after_fence(job_.rank_at(index));
  }
  mob_rank_t next = 0;  // those before it are known not to come, or to have come
  const auto all_came = [&] {
    for (; next < mates; ++next) {
      if (next == host().index()) continue;
      const job::ProcessState state = host().slot(next).state.load(std::memory_order_acquire);
      if (state == job::ProcessState::kLive || state == job::ProcessState::kAbsent) return false;
    }
    return true;
  };
  // Finds who died; never gives up.
  struct Finder final : os::Watch {
    explicit Finder(Engine& owner) : engine(owner) {}
    mob_status_t look() override {
      for (mob_rank_t index = 0; index < engine.host().size(); ++index) {
        static_cast<void>(engine.liveness().is_dead(index));
      }
      return MOB_OK;
    }
    Engine& engine;
  } finder(*this);
  static_cast<void>(wait_until(all_came, &finder));
}

bool Engine::is_dead(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  if (index >= 0) return liveness().is_dead(index);
  return network_.is_dead(rank) || job_.directory()->is_dead(rank);
}

bool Engine::is_leaving(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  return index >= 0 ? liveness().is_leaving(index) : job_.directory()->has_left(rank);
}

bool Engine::is_ending(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  if (index < 0) {
    // The first letter of a leader's end says that all of its host have come to theirs, and that
    // what they had sent before has arrived.
    const mob_rank_t leader = job_.leader_of(job_.place_of(rank).host);
    return team_messages_.has_come(kEndOfJob, leader) || is_leaving(rank);
  }
  // Acquire pairs with the release in end_calls(): who sees it sees what it did before.
  return process(index).is_ending.load(std::memory_order_acquire) != 0;
}

bool Engine::has_left(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  return index >= 0 ? liveness().has_left(index) : job_.directory()->has_left(rank);
}

void Engine::close() {
  exposures_.close();
  network_.close();
  router_.close(false);
  teams_.close();
  notifications_.close();
  segment_layout_.close();
  window_.reset();
}

void Engine::close_chunks(uint64_t offset, uint64_t chunks) {
  if (window_->same_address()) {
    for (mob_rank_t rank = 0; rank < size(); ++rank) {
      target_forget_all(rank, window_->base() + offset, chunks << kChunkShift);
    }
  }
  window_->deny(offset, chunks);
}

mob_status_t Engine::reserve_memory(uint64_t offset, size_t bytes) {
  return os::memfd_reserve(host().segment(), job::kWindowOffset + offset, bytes);
}

void Engine::release_memory(uint64_t offset, size_t bytes) {
  os::memfd_release(host().segment(), job::kWindowOffset + offset, bytes);
}

mob_status_t Engine::explain_unreachable(const char* call, mob_rank_t rank, const void* remote,
                                         size_t bytes) const {
  const mob_rank_t index = host_index(rank);
  if (index < 0) {
    return fail(MOB_ERR_RANK,
                "%s: rank %d is on another host; its memory cannot be reached by a pointer", call,
                rank);
  }
  const uint64_t offset = reinterpret_cast<uintptr_t>(remote) - window_->base_of(index);
  Region part{};
  if (!chunks_.find(offset, &part) || part.owner != index) {
    if (bytes == 0) {
      return fail(MOB_ERR_RANGE, "%s: %p is not in any allocation of rank %d", call, remote, rank);
    }
    return fail(MOB_ERR_RANGE, "%s: %zu bytes at %p are not in any allocation of rank %d", call,
                bytes, remote, rank);
  }
  return fail(MOB_ERR_RANGE,
              "%s: %zu bytes at offset %zu do not fit into the %zu bytes that rank %d allocated "
              "there",
              call, bytes, static_cast<size_t>(offset - part.offset),
              static_cast<size_t>(part.bytes), rank);
}

}  // namespace mobius::engine
