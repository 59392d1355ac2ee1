// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "job/bootstrap/join_by_address.h"
#include "job/bootstrap/join_by_directory.h"
#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/pmix/pmix.h"
#include "job/bootstrap/shm_directory.h"
#include "os/cpu/topology.h"
#include "os/process/identity.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

using base::fail;
using base::SettingId;
using base::Settings;

// Long enough for a change on another processor to be seen before the waiter yields, short enough
// not to matter when no change comes.
constexpr uint64_t kDefaultSpinNs = 20'000;
// The same where the answer takes a round trip over a network.
constexpr uint64_t kNetworkSpinNs = 100'000;
// Far longer than waking a thread takes, also on virtual processors (30 to 100 us).
constexpr uint64_t kYieldNs = 1'000'000;
// Between two attempts to reach a launcher that has dropped the connection.
constexpr timespec kPause{0, 2'000'000};
// A launcher drops the oldest connection when very many come at once.
constexpr int kMostGreetings = 100;

}  // namespace

os::WaitPolicy wait_policy(const Settings& settings, os::Room room, mob_rank_t hosts) {
  os::WaitPolicy policy;
  policy.spin_ns = settings.number(SettingId::kSpin);
  policy.yields = settings.number(SettingId::kYields);
  if (policy.spin_ns == base::kAutomatic) {
    const uint64_t spin_ns = hosts == 1 ? kDefaultSpinNs : kNetworkSpinNs;
    policy.spin_ns = room != os::Room::kCrowded ? spin_ns : 0;
  }
  policy.yield_ns = settings.number(SettingId::kYield);
  if (policy.yield_ns == base::kAutomatic) policy.yield_ns = policy.spin_ns != 0 ? kYieldNs : 0;
  policy.background_spin_ns = room == os::Room::kSpare ? policy.spin_ns : 0;
  return policy;
}

namespace {

// An estimate, made before the processors of the other processes are known.
os::Room room_alone(mob_rank_t processes) {
  const int processors = os::processors_allowed();
  if (processes > processors) return os::Room::kCrowded;
  return processes == processors ? os::Room::kOneEach : os::Room::kSpare;
}

bool parse_rank(const std::string& text, mob_rank_t* rank) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *rank);
  return error == std::errc() && rest == end && *rank >= 0;
}

}  // namespace

mob_status_t Job::join(const Settings& settings) {
  const bool has_key = settings.is_set(SettingId::kJob);
  const bool has_rank = settings.is_set(SettingId::kRank);
  if (!has_key && !has_rank) {
    const bool look = settings.launcher() == base::LauncherMode::kAuto;
    return look ? join_foreign(settings) : join_alone(settings);
  }
  mob_rank_t rank = -1;
  Secret secret;
  if (!has_key || !has_rank || !from_hex(settings.text(SettingId::kJob), &secret) ||
      !parse_rank(settings.text(SettingId::kRank), &rank)) {
    return fail(MOB_ERR_SETTING,
                "%s and %s are set by `mobius run` together and are not meant to be set by hand; "
                "unset both to start a job of one",
                kJobVariable, kRankVariable);
  }
  return join_launcher(settings, secret, rank);
}

mob_status_t Job::join_alone(const Settings& settings) {
  int segment = -1;
  if (const mob_status_t status = control_create(1, &segment)) return status;
  return enter(settings, segment, 0, true);
}

mob_status_t Job::join_mpi_launch(const Settings& settings, const MpiLaunch& launch) {
  int segment = -1;
  bool pid_is_shared = false;
  if (const mob_status_t status =
          join_by_address({launch.secret, launch.rank, launch.size}, &segment, &pid_is_shared)) {
    return status;
  }
  return enter(settings, segment, launch.rank, pid_is_shared);
}

// Joins by what the environment says of the launcher; there may be none.
mob_status_t Job::join_foreign(const Settings& settings) {
  std::string missing;
  if (pmix::started_us(environ)) {
    if (pmix::is_usable()) return join_pmix(settings);
    missing = mob_last_error();
  }
  // On one host the rank and size that some launchers set in the environment are enough.
  MpiLaunch launch;
  bool found = false;
  if (find_mpi_launch(environ, &launch, &found) != MOB_OK) {
    if (missing.empty()) missing = mob_last_error();
    found = false;
  }
  if (found) return launch.size > 1 ? join_mpi_launch(settings, launch) : join_alone(settings);
  if (mpi::is_up()) return join_mpi(settings, nullptr);
  return missing.empty() ? join_alone(settings) : fail(MOB_ERR_SYSTEM, "%s", missing.c_str());
}

mob_status_t Job::join_pmix(const Settings& settings) {
  const auto limit_s = static_cast<unsigned>(settings.number(SettingId::kJoinSeconds));
  const bool survive = settings.on_death() == base::OnDeath::kError;
  pmix::Whereabouts where;
  const mob_status_t status =
      pmix::connect(limit_s, survive, mpi::has_ended(), &where, &directory_);
  return status != MOB_OK ? status
                          : join_others(settings, where.rank, where.size, where.neighbours);
}

// The MPI that runs in this process names the other processes. All are tried as local peers.
mob_status_t Job::join_mpi(const Settings& settings, const mpi::Communicator* communicator) {
  mob_rank_t rank = 0;
  mob_rank_t size = 0;
  if (const mob_status_t status = mpi::connect(communicator, &rank, &size, &directory_))
    return status;
  std::vector<mob_rank_t> everybody(static_cast<size_t>(size));
  std::iota(everybody.begin(), everybody.end(), 0);
  return join_others(settings, rank, size, everybody);
}

mob_status_t Job::join_others(const Settings& settings, mob_rank_t rank, mob_rank_t size,
                              std::span<const mob_rank_t> neighbours) {
  const auto limit_s = static_cast<unsigned>(settings.number(SettingId::kJoinSeconds));
  Membership membership;
  JoinRequest request{rank, size, neighbours, limit_s};
  // If the user has named an interface on this host, the hosts do not choose a network.
  if (!settings.is_set(SettingId::kInterface)) {
    request.contacts = os::contacts(os::host_interfaces());
  }
  mob_status_t status = join_by_directory(*directory_, request, &membership);
  if (status == MOB_OK) {
    secret_ = membership.secret;
    status = enter(settings, membership.segment, rank, membership.pid_is_shared);
  }
  if (status != MOB_OK) abandon();
  return status;
}

mob_status_t Job::join_threads(const Settings& settings, int segment, ControlBlock& block,
                               mob_rank_t rank, std::unique_ptr<Directory> directory) {
  directory_ = std::move(directory);
  const int own = fcntl(segment, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "no descriptor for shared memory");
  }
  return enter(settings, own, rank, true, &block);
}

mob_status_t Job::join_as_guest(const Settings& settings, int segment, mob_rank_t number,
                                bool pid_is_shared) {
  const mob_status_t status = enter(settings, segment, number, pid_is_shared);
  is_guest_ = status == MOB_OK;
  return status;
}

namespace {

// Published first in a meeting.
struct Origin {
  os::Identity identity;
  int32_t virtual_host;
  int32_t is_virtual;
};
static_assert(std::has_unique_object_representations_v<Origin>);

mob_status_t exchange_origins(const MeetingSeat& seat, std::vector<Origin>* all) {
  static constexpr const char* kKey = "origin";
  const Origin mine{os::own_identity(), seat.virtual_host, seat.is_virtual ? 1 : 0};
  const auto* bytes = reinterpret_cast<const unsigned char*>(&mine);
  mob_status_t status = seat.directory->publish(kKey, {bytes, sizeof mine});
  if (status == MOB_OK) status = seat.directory->fence();
  for (mob_rank_t rank = 0; status == MOB_OK && rank < seat.size; ++rank) {
    std::vector<unsigned char> value;
    status = seat.directory->fetch(rank, kKey, &value);
    if (status == MOB_OK && value.size() != sizeof mine) {
      status = fail(MOB_ERR_SYSTEM, "the other job uses another version of libmobius");
    }
    if (status == MOB_OK) std::memcpy(&all->emplace_back(), value.data(), sizeof mine);
  }
  return status;
}

}  // namespace

// Processes of the two jobs that are on one host share memory; virtual hosts of the same number are
// one host.
mob_status_t Job::join_meeting(const Settings& settings, MeetingSeat seat) {
  std::vector<Origin> origins;
  Membership membership;
  JoinRequest request{
      seat.rank, seat.size, {}, static_cast<unsigned>(settings.number(SettingId::kJoinSeconds))};
  request.secret = &seat.secret;
  std::vector<mob_rank_t> neighbours;
  mob_status_t status = exchange_origins(seat, &origins);
  if (status == MOB_OK) {
    bool is_one_machine = true;
    for (mob_rank_t rank = 0; rank < seat.size; ++rank) {
      const Origin& origin = origins[static_cast<size_t>(rank)];
      if (origin.virtual_host == seat.virtual_host) neighbours.push_back(rank);
      is_one_machine = is_one_machine && origin.identity == origins[0].identity;
      is_virtual_ = is_virtual_ || origin.is_virtual != 0;
    }
    is_virtual_ = is_virtual_ && is_one_machine;
    request.neighbours = neighbours;
    if (!settings.is_set(SettingId::kInterface)) {
      request.contacts = os::contacts(os::host_interfaces());
    }
    status = join_by_directory(*seat.directory, request, &membership);
  }
  directory_ = std::move(seat.directory);
  is_meeting_ = true;
  if (status == MOB_OK) {
    secret_ = membership.secret;
    status = enter(settings, membership.segment, seat.rank, membership.pid_is_shared);
  }
  is_guest_ = status == MOB_OK;
  if (status != MOB_OK) abandon();
  return status;
}

// The last step of every way to join. Owns `segment` from now on.
mob_status_t Job::enter(const Settings& settings, int segment, mob_rank_t rank, bool pid_is_shared,
                        ControlBlock* block) {
  const auto find = [&](ControlBlock& mapped, mob_rank_t* index) {
    return find_place(mapped, rank, index);
  };
  if (const mob_status_t status = host_.open(segment, find, pid_is_shared, block)) return status;
  host_.set_policy(wait_policy(settings, room_alone(host_.size()), hosts_));
  rank_ = rank;
  return MOB_OK;
}

// Some launchers bind each process to processors of its own, others bind all to the same ones, so
// the processors of one process do not tell how many there are for all.
void Job::settle_waiting(const Settings& settings, const os::WaitPolicy* others) {
  std::vector<mob_rank_t> everybody;
  for (mob_rank_t index = 0; index < host_.bound(); ++index) {
    const ProcessState state = host_.slot(index).state.load(std::memory_order_acquire);
    if (state == ProcessState::kLive || host_.is_own(index)) everybody.push_back(index);
  }
  os::Room room = host_.room_for(everybody);
  const os::ProcessorSet& own = host_.slot(host_.index()).processors;
  // The other threads of this process run on what the processes that overlap with it leave free.
  const auto near = std::ranges::count_if(
      everybody, [&](mob_rank_t i) { return own.overlaps(host_.slot(i).processors); });
  if (room == os::Room::kSpare && own.count() <= near) room = os::Room::kOneEach;
  if (is_virtual_ && room_alone(size_) == os::Room::kCrowded) room = os::Room::kCrowded;
  os::WaitPolicy policy = wait_policy(settings, room, hosts_);
  if (others != nullptr) {
    policy.spin_ns = std::min(policy.spin_ns, others->spin_ns);
    policy.yield_ns = std::min(policy.yield_ns, others->yield_ns);
    policy.background_spin_ns = std::min(policy.background_spin_ns, others->background_spin_ns);
  }
  // The processors of processes on other virtual hosts are not known.
  const bool has_peers = everybody.size() > 1 || others != nullptr;
  host_.set_policy(policy, settings.spreads() && has_peers && !is_virtual_ && policy.spin_ns != 0 &&
                               room != os::Room::kCrowded);
}

// Finds the slot of this process. The block stays mapped while the job lives.
mob_status_t Job::find_place(ControlBlock& block, mob_rank_t rank, mob_rank_t* index) {
  const ControlHeader& header = block.header;
  const mob_rank_t numbers = header.hosts == 1 ? header.numbers.load(std::memory_order_acquire)
                                               : header.job_numbers.load(std::memory_order_acquire);
  if (rank < 0 || rank >= numbers) {
    return fail(MOB_ERR_SYSTEM, "rank %d is not in a job of %d", rank, header.job_size);
  }
  size_ = header.job_size;
  hosts_ = header.hosts;
  own_host_ = header.host;
  *index = rank;
  if (hosts_ > 1) {
    places_ = block.places();
    ranks_ = block.ranks();
    const Place place = decode(places_[rank]);
    if (place.host != own_host_) {
      return fail(MOB_ERR_SYSTEM, "rank %d is on host %d of the job, not here", rank, place.host);
    }
    *index = place.index;
  }
  const bool is_spawned = rank >= header.job_size;
  const mob_status_t status = is_spawned ? find_world(block, rank, *index) : MOB_OK;
  if (status == MOB_OK && hosts_ > 1) find_leaders();
  return status;
}

void Job::find_leaders() {
  leaders_.assign(static_cast<size_t>(hosts_), -1);
  for (mob_rank_t each = first_; each < first_ + size_; ++each) {
    mob_rank_t& leader = leaders_[static_cast<size_t>(decode(places_[each]).host)];
    if (leader < 0) leader = each;
  }
}

// Of a process that was spawned. Waits until it is known how many were.
mob_status_t Job::find_world(ControlBlock& block, mob_rank_t rank, mob_rank_t index) {
  constexpr uint64_t kLookNs = 100'000'000;
  const mob_rank_t first_here = block.slot(index).world;
  World& world = block.world(first_here);
  WorldState state = world.state.load(std::memory_order_acquire);
  while (state == WorldState::kAsked) {
    os::futex_wait(&world.state, static_cast<uint32_t>(state), kLookNs);
    state = world.state.load(std::memory_order_acquire);
  }
  if (state != WorldState::kStarted || index >= first_here + world.size) {
    return fail(MOB_ERR_PEER, "mob_init: the spawn of this process, rank %d, was given up", rank);
  }
  first_ = hosts_ == 1 ? first_here : world.number;
  size_ = hosts_ == 1 ? world.size : world.total;
  return MOB_OK;
}

// On virtual hosts the launcher sends the descriptor of the job's directory after the segment.
mob_status_t Job::receive_directory(const Settings& settings, const Secret& secret,
                                    const Nonce& nonce, bool pid_is_shared) {
  Message message;
  int descriptor = -1;
  mob_status_t status = launcher_.receive(&message, sizeof message, &descriptor);
  if (status != MOB_OK) return status;
  if (!is_proven(message, secret, nonce) || message.type != MessageType::kDirectory ||
      descriptor < 0) {
    if (descriptor >= 0) ::close(descriptor);
    return fail(MOB_ERR_SYSTEM, "the launcher did not send the directory of the job");
  }
  auto directory = std::make_unique<ShmDirectory>();
  const os::WaitPolicy policy = wait_policy(settings, room_alone(size_), hosts_);
  status = directory->open(descriptor, rank_, policy, pid_is_shared);
  host_.set_policy(policy);
  if (status == MOB_OK) secret_ = directory->secret();
  directory_ = std::move(directory);
  is_virtual_ = true;
  return status;
}

// Says Hello and receives the answer. `*dropped`: the launcher closed the connection without one,
// as it does with the oldest when very many connect at once.
mob_status_t Job::greet_launcher(const Secret& secret, mob_rank_t rank, Nonce* nonce,
                                 Message* answer, int* descriptor, bool* dropped) {
  *dropped = false;
  Nonce challenge;
  mob_status_t status = make_random(*nonce);
  if (status == MOB_OK) status = connect_to_job(secret, &launcher_, &challenge);
  if (status != MOB_OK) {
    const std::string reason = mob_last_error();
    *dropped = launcher_.is_open();
    return fail(MOB_ERR_SYSTEM,
                "the launcher of this job cannot be reached (%s); if it has ended, unset %s and %s "
                "to start a job of one",
                reason.c_str(), kJobVariable, kRankVariable);
  }
  Message hello;
  hello.type = MessageType::kHello;
  hello.rank = rank;
  hello.pid = getpid();
  hello.nonce = *nonce;
  seal(hello, secret, challenge);
  status = launcher_.send(&hello, sizeof hello);
  if (status == MOB_OK) status = launcher_.receive(answer, sizeof *answer, descriptor);
  *dropped = status != MOB_OK;
  return status;
}

mob_status_t Job::join_launcher(const Settings& settings, const Secret& secret, mob_rank_t rank) {
  Nonce nonce;
  Message answer;
  int descriptor = -1;
  bool dropped = false;
  mob_status_t status = MOB_OK;
  for (int i = 0; i < kMostGreetings; ++i) {
    status = greet_launcher(secret, rank, &nonce, &answer, &descriptor, &dropped);
    if (!dropped) break;
    nanosleep(&kPause, nullptr);
  }
  if (status == MOB_OK) {
    answer.reason[sizeof answer.reason - 1] = '\0';
    if (!is_proven(answer, secret, nonce)) {
      status = fail(MOB_ERR_SYSTEM,
                    "the process that answers at the job's address does not know the job's secret: "
                    "it is not the launcher");
    } else if ((answer.type != MessageType::kWelcome && answer.type != MessageType::kAdopted) ||
               descriptor < 0) {
      status = fail(MOB_ERR_SYSTEM, "the launcher refused rank %d: %s", rank,
                    answer.type == MessageType::kRefused ? answer.reason
                    : descriptor == os::kDescriptorLost
                        ? "no descriptor is left for its shared memory (ulimit -n)"
                        : "it sent no shared memory");
    }
  }
  if (status == MOB_OK) {
    // Behind a wrapper that made a pid namespace, the ids seen here differ from those of others.
    const bool pid_is_shared = answer.pid == getpid();
    status = enter(settings, descriptor, rank, pid_is_shared);
    if (status == MOB_OK && answer.hosts > 1) {
      status = receive_directory(settings, secret, nonce, pid_is_shared);
    }
  } else if (descriptor >= 0) {
    ::close(descriptor);
  }
  if (status != MOB_OK) abandon();
  if (status == MOB_OK && answer.type == MessageType::kWelcome) launcher_secret_ = secret;
  // Until now this process ended with the thread that started it, from now on with its process.
  if (status == MOB_OK && answer.type == MessageType::kAdopted) {
    prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  }
  // Behind a wrapper, the end of the launcher reaches this process in no other way.
  if (status == MOB_OK) launcher_.kill_on_close(true);
  return status;
}

void Job::start_leaving() {
  // Release pairs with the acquire in Liveness: a process that sees the state sees everything that
  // this process wrote before.
  host_.slot(host_.index()).state.store(ProcessState::kLeaving, std::memory_order_release);
  if (directory_ != nullptr) directory_->start_leaving();
}

void Job::leave() {
  host_.slot(host_.index()).state.store(ProcessState::kLeft, std::memory_order_release);
  if (directory_ != nullptr) directory_->leave();
  tell_launcher(MessageType::kGoodbye);
  close();
}

void Job::abandon() {
  // The process goes on in its own job, so nobody would see it end.
  if (is_guest_) declare_dead(host_.slot(host_.index()));
  tell_launcher(MessageType::kGivesUp);
  close();
}

void Job::tell_launcher(MessageType type) {
  if (!launcher_.is_open()) return;
  launcher_.kill_on_close(false);
  Message message;
  message.type = type;
  message.rank = rank_;
  message.pid = getpid();
  // If the launcher is gone, the job has ended already. If the program has closed the connection,
  // the slot tells.
  static_cast<void>(launcher_.send(&message, sizeof message));
}

void Job::close() {
  // Processes that go on after mob_bridge_disconnect() end with this process, not before.
  static auto* const kept = new std::vector<std::unique_ptr<ChildStarter>>;
  for (auto& [world, starter] : starters_) {
    if (!starter->have_ended()) kept->push_back(std::move(starter));
  }
  starters_.clear();
  launcher_secret_.reset();
  launcher_.close();
  directory_.reset();
  host_.close();
}

mob_status_t Job::tell_launcher_of(mob_rank_t world) {
  Message message;
  message.type = MessageType::kSpawn;
  message.rank = rank_;
  message.pid = getpid();
  message.size = world;
  mob_status_t status = MOB_OK;
  for (int i = 0; i < kMostGreetings; ++i) {
    os::UnixSocket launcher;
    Nonce challenge;
    status = connect_to_job(*launcher_secret_, &launcher, &challenge);
    if (status == MOB_OK) {
      seal(message, *launcher_secret_, challenge);
      if ((status = launcher.send(&message, sizeof message)) == MOB_OK) return MOB_OK;
    }
    nanosleep(&kPause, nullptr);
  }
  return status;
}

mob_status_t Job::start_world(mob_rank_t world, const SpawnRequest& request, std::string* reason) {
  if (has_launcher()) {
    const mob_status_t status = tell_launcher_of(world);
    if (status != MOB_OK) {
      *reason = std::string("the launcher cannot be reached (") + mob_last_error() + ")";
    }
    return status;
  }
  auto made = std::make_unique<ChildStarter>(host_.control(), host_.segment(), world);
  ChildStarter& starter = *made;
  {
    const std::lock_guard lock(starters_mutex_);
    // Those of earlier worlds whose processes have ended.
    std::erase_if(starters_, [](const auto& each) {
      const WorldState state = each.second->state();
      return state != WorldState::kAsked && state != WorldState::kStarted &&
             each.second->is_settled() && each.second->have_ended();
    });
    starters_[world] = std::move(made);
  }
  return starter.start(request, reason);
}

void Job::settle_world(mob_rank_t world) {
  const std::lock_guard lock(starters_mutex_);
  if (const auto found = starters_.find(world); found != starters_.end()) found->second->settle();
}

mob_status_t Job::end_world(mob_rank_t world) {
  constexpr uint64_t kLookNs = 100'000'000;
  if (!has_launcher()) {
    const std::lock_guard lock(starters_mutex_);
    if (const auto found = starters_.find(world); found != starters_.end()) {
      found->second->cancel();
      starters_.erase(found);
    }
    return MOB_OK;
  }
  if (const mob_status_t status = tell_launcher_of(world)) return status;
  const std::atomic<WorldState>& state = this->world(world).state;
  for (WorldState now; (now = state.load(std::memory_order_acquire)) != WorldState::kEnded;) {
    os::futex_wait(&state, static_cast<uint32_t>(now), kLookNs);
  }
  return MOB_OK;
}

void request_abort(const char* const* environment, int exit_code, const char* reason) {
  pmix::abort(exit_code, reason);
  Settings settings;
  Secret secret;
  Message abort;
  abort.type = MessageType::kAbort;
  abort.pid = getpid();
  if (settings.load(environment) != MOB_OK || !from_hex(settings.text(SettingId::kJob), &secret) ||
      !parse_rank(settings.text(SettingId::kRank), &abort.rank)) {
    return;
  }
  for (int i = 0; i < kMostGreetings; ++i) {
    os::UnixSocket launcher;
    Nonce challenge;
    if (connect_to_job(secret, &launcher, &challenge) == MOB_OK) {
      seal(abort, secret, challenge);
      if (launcher.send(&abort, sizeof abort) == MOB_OK) return;
    }
    // If the launcher is gone, the job has ended already. Otherwise it has dropped the connection,
    // as in greet_launcher().
    if (!launcher.is_open()) return;
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace mobius::job
