// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.h"

#include <unistd.h>

#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/scheduler/append_run.h"
#include "engine/segment/window/region.h"
#include "os/memory/memfd.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

constexpr const char* kWindowKey = "window";

}  // namespace

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
  // Ranks that are threads share the tuning and the settings. The first rank sets them before the
  // others can have joined.
  if (seat == nullptr || seat->rank == 0) apply_copy_settings();
  base::set_log(static_cast<base::LogLevel>(settings_.number(base::SettingId::kLog)), -1);
  // Under a launcher the launcher has already warned, once for all ranks.
  if (!settings_.is_set(base::SettingId::kJob) && (seat == nullptr || seat->rank == 0)) {
    for (const std::string& text : settings_.unknown()) {
      base::log(base::LogLevel::kWarn, "%s", text.c_str());
    }
  }
  mob_status_t status = MOB_OK;
  if (communicator != nullptr) {
    status = peers_.job().join_mpi(settings_, communicator);
  } else if (seat == nullptr) {
    status = peers_.job().join(settings_);
  } else {
    status = peers_.job().join_threads(settings_, seat->segment, *seat->control, seat->rank);
  }
  if (status != MOB_OK) return status;
  if (seat == nullptr) {
    base::set_log(static_cast<base::LogLevel>(settings_.number(base::SettingId::kLog)),
                  peers_.rank());
  }
  status = without_exceptions("mob_init", [&] { return open(seat); });
  if (status != MOB_OK) abandon();
  return status;
}

mob_status_t Engine::start_as_guest(const GuestSeat& seat) {
  mob_status_t status = settings_.load(environ);
  if (seat.meeting != nullptr) {
    if (status == MOB_OK) {
      status = peers_.job().join_meeting(settings_, std::move(*seat.meeting));
    }
  } else if (status == MOB_OK) {
    status = peers_.job().join_as_guest(settings_, seat.segment, seat.number, seat.pid_is_shared);
  } else {
    ::close(seat.segment);
  }
  if (status != MOB_OK) return status;
  peers_.set_public_numbers(seat.public_numbers);
  segment_.leave_remapped();
  status = without_exceptions("mob_connect", [&] { return open(nullptr, &seat); });
  if (status == MOB_OK) status = progress_.require();
  if (status != MOB_OK) abandon();
  return status;
}

void Engine::abandon() {
  progress_.stop();
  close();
  peers_.job().abandon();
}

// A process that fails reports it to its local peers when they next meet, and skips the meeting of
// all hosts.
mob_status_t Engine::open(const ThreadSeat* seat, const GuestSeat* guest) {
  Mappings own;
  Mappings& mappings = seat == nullptr ? own : *seat->mappings;
  if (const mob_status_t status = open_memory(seat, mappings)) return status;
  const mob_status_t status = teams_.open_world(without_exceptions("mob_init", [&] {
    open_parts(mappings);
    if (guest != nullptr) {
      if (const mob_status_t shared = share_with(*guest->home)) return shared;
    }
    if (const mob_status_t opened = open_network()) return opened;
    return guest != nullptr && guest->meeting != nullptr ? publish_window() : MOB_OK;
  }));
  if (status != MOB_OK) return status;
  if (const mob_status_t met = network_.meet()) return met;
  if (seat != nullptr) return MOB_OK;
  if (guest != nullptr && guest->meeting != nullptr) {
    return bridges_.open_meeting(guest->parents, guest->made);
  }
  return bridges_.open_parent(guest != nullptr ? guest->made : nullptr);
}

mob_status_t Engine::open_memory(const ThreadSeat* seat, Mappings& mappings) {
  mob_status_t status = MOB_OK;
  if (seat == nullptr || seat->rank == 0) {
    mappings.window = std::make_shared<Window>();
    mappings.notifications = std::make_shared<NotificationMemory>();
    Window& window = *mappings.window;
    if (seat != nullptr) {
      status = window.open_for_threads(peers_.host(), settings_);
    } else if ((status = window.open(peers_.host(), settings_))) {
      return status;  // all processes of the host fail here
    }
    if (status == MOB_OK) {
      status = mappings.layout.map(peers_.host().segment(), window.bytes() >> kChunkShift);
    }
  }
  if (seat != nullptr) {
    status = peers_.host().agree(status, "mob_init");
    if (status != MOB_OK) return status;
  }
  segment_.adopt(mappings.window, mappings.layout);
  if (status == MOB_OK)
    status = SegmentLayout::reserve(peers_.host().segment(), peers_.host().index());
  kernel_copy_.open(settings_);
  if (status == MOB_OK) status = router_.open(settings_);
  segment_.let_inlined(!instrumentation_.hooked());
  return peers_.host().agree(status, "mob_init");
}

void Engine::open_parts(const Mappings& mappings) {
  peers_.job().settle_waiting(settings_);
  ProcessBlock& own = segment_.own_process();
  // A program that polls does so in its own job.
  progress_.open(own.doorbell,
                 peers_.is_guest() ? base::ProgressMode::kThread : settings_.progress_mode());
  messages_.open(own, settings_.ring_bytes(), send_gate_, remote_objects_);
  exposures_.open();
  delegation_.open(own);
  remaps_.open();
  segment_.open_chunks();
  notifications_.open(mappings.notifications);
  waiter_.open();
}

// A guest runs the handlers that the program has registered, counts the program's counters, and
// excludes accumulates of the process' own job.
mob_status_t Engine::share_with(Engine& home) {
  for (unsigned id = 0; id < MOB_MAX_HANDLERS; ++id) {
    const Handler* const handler = home.messages().handlers().find(id);
    if (handler != nullptr) messages_.register_handler(id, handler->function, handler->argument);
  }
  counters_.share(home.counters());
  segment_.accumulate_locks().share(home.segment().accumulate_locks());
  remote_objects_.open(notifications_);  // which processes of the other job ask to count
  return home.counters().any() ? serve_counters() : MOB_OK;
}

// Opens everything that answers requests before another host can send one.
mob_status_t Engine::open_network() {
  if (peers_.job().hosts() == 1) return MOB_OK;
  remote_objects_.open(notifications_);
  team_messages_.open();
  batch_server_.open();
  if (const mob_status_t status = scheduler_.open()) return status;
  if (const mob_status_t status = am_rma_.require()) return status;
  if (const mob_status_t status = network_.open(messages_, am_rma_)) return status;
  instrumentation_.note("messages to other hosts: MOBIUS_SECURITY=" + network_.security_text());
  rkeys_.open(settings_);
  return network_.start();
}

// In a meeting: by its address a process tells the memory of one that is on another host from what
// that one has in its own job.
mob_status_t Engine::publish_window() {
  if (peers_.job().hosts() == 1) return MOB_OK;
  const WindowPlace place{segment_.window().base(), segment_.window().bytes()};
  const auto* bytes = reinterpret_cast<const unsigned char*>(&place);
  return peers_.job().directory()->publish(kWindowKey, {bytes, sizeof place});
}

mob_status_t Engine::find_window(mob_rank_t rank, WindowPlace* place) {
  if (peers_.is_here(rank)) {
    const Window& window = segment_.window();
    *place = {window.base_of(peers_.host_index(rank)), window.bytes()};
    return MOB_OK;
  }
  std::vector<unsigned char> value;
  const mob_status_t status = peers_.job().directory()->fetch(rank, kWindowKey, &value);
  if (status != MOB_OK) return status;
  if (value.size() != sizeof *place) {
    return base::fail(MOB_ERR_SYSTEM, "the other job uses another version of libmobius");
  }
  std::memcpy(place, value.data(), sizeof *place);
  return MOB_OK;
}

void Engine::OperationsFirst::issue_to(const char* call, mob_rank_t rank) {
  engine_.scheduler_.issue(rank);
  // Waits for transfers on other paths that the message could overtake.
  if (!in_handler) engine_.completion_.await_unordered(call, rank);
}

void Engine::end_calls() {
  segment_.process(peers_.host().index()).is_ending.store(1, std::memory_order_release);
}

void Engine::stop(bool all_met) {
  progress_.stop();
  // Other processes may still use what this one is about to remove.
  await_others();
  // Meets the other hosts only if no process was lost: a lost process does not come, and a process
  // that lost one does not wait. The others know it from the last meeting.
  const bool all_come = !network_.has_lost_any() && all_met;
  if (peers_.job().hosts() > 1 && all_come) {
    await_connected();
    network_.note_all_met();
    static_cast<void>(peers_.job().directory()->fence());
  }
  network_.close();
  messages_.close();
  scheduler_.close();
  router_.close(true);
  remaps_.take_back();
  remap_views_.close();
  if (peers_.first() != 0) give_memory_back();
  close();
  peers_.job().leave();
}

// The job may go on long after processes that were spawned have left, and spawn others.
void Engine::give_memory_back() {
  teams_.leave_world();
  drop_own_regions(segment_);
}

void Engine::start_leaving() {
  peers_.job().start_leaving();
  // Orders the change before the loads of sleepers.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  job::HostGroup& host = peers_.host();
  for (mob_rank_t index = 0; index < host.bound(); ++index) {
    if (index != host.index() && host.is_connected(index)) {
      waiter_.ring_after_fence(peers_.job().rank_at(index));
    }
  }
}

// Waits until every live process of the host that is connected with this one is leaving.
void Engine::await_others() {
  job::HostGroup& host = peers_.host();
  mob_rank_t next = 0;  // processes before it have come or will not come
  const auto all_came = [&] {
    for (; next < host.bound(); ++next) {
      if (next == host.index() || !host.is_connected(next)) continue;
      const job::ProcessState state = host.slot(next).state.load(std::memory_order_acquire);
      if (state == job::ProcessState::kLive || state == job::ProcessState::kAbsent) return false;
    }
    return true;
  };
  // Detects processes that died; never ends the wait.
  struct Finder final : os::Watch {
    explicit Finder(Engine& owner) : engine(owner) {}
    mob_status_t look() override {
      for (mob_rank_t index = 0; index < engine.peers_.host().bound(); ++index) {
        static_cast<void>(engine.peers_.liveness().is_dead(index));
      }
      return MOB_OK;
    }
    Engine& engine;
  } finder(*this);
  static_cast<void>(waiter_.wait_until(all_came, &finder));
}

// Waits for the worlds that bridges connect with this one, on all hosts: they may still await that
// this process reports what has arrived.
void Engine::await_connected() {
  constexpr timespec kPause{0, 100'000};
  job::Directory& directory = *peers_.job().directory();
  while (!directory.have_connected_come()) {
    if (!waiter_.poll()) nanosleep(&kPause, nullptr);
  }
}

bool Engine::Reports::is_ending(mob_rank_t rank) {
  Peers& peers = engine_.peers_;
  const mob_rank_t index = peers.host_index(rank);
  if (index < 0) {
    // A leader sends its first message of the end only after all members of its host have come to
    // their end, so everything that they sent before has arrived.
    const job::Job& job = peers.job();
    if (rank < peers.first() || rank >= peers.first() + peers.size()) return peers.is_leaving(rank);
    const mob_rank_t leader = job.leader_of(job.place_of(rank).host);
    return engine_.team_messages_.has_come(kEndOfJob, leader) || peers.is_leaving(rank);
  }
  // Acquire pairs with the release in end_calls(): a process that sees the flag sees all that this
  // one did before.
  return engine_.segment_.process(index).is_ending.load(std::memory_order_acquire) != 0;
}

void Engine::Dependents::context_changed() { leave_append_run(); }

void Engine::Dependents::give_up(mob_rank_t rank) {
  engine_.am_rma_.give_up(rank);
  engine_.scheduler_.give_up(rank);
  engine_.messages_.give_up(rank);
}

// Handlers that a guest's thread runs are the program's: their calls find the engine by themselves.
void Engine::Threads::enter() { engine::enter(engine_.peers_.is_guest() ? nullptr : &engine_); }

void Engine::close() {
  exposures_.close();
  network_.close();
  router_.close(false);
  bridges_.close();
  teams_.close();
  notifications_.close();
  segment_.close();
}

}  // namespace mobius::engine
