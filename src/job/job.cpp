// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "base/status.h"
#include "job/local_protocol.h"
#include "os/topology.h"

namespace mobius::job {
namespace {

using base::fail;
using base::SettingId;
using base::Settings;

// Long enough that a waiter on another processor sees a change before it yields, short enough that
// it does not matter when it never comes.
constexpr uint64_t kDefaultSpinNs = 20'000;

os::WaitPolicy wait_policy(const Settings& settings, mob_rank_t processes) {
  os::WaitPolicy policy;
  policy.spin_ns = settings.number(SettingId::kSpin);
  policy.yields = settings.number(SettingId::kYields);
  if (policy.spin_ns == base::kAutomatic) {
    policy.spin_ns = processes <= os::processors_allowed() ? kDefaultSpinNs : 0;
  }
  return policy;
}

bool is_key(const std::string& text) {
  return text.size() == kKeyDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
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
  if (!has_key && !has_rank) return join_alone(settings);
  mob_rank_t rank = -1;
  if (!has_key || !has_rank || !is_key(settings.text(SettingId::kJob)) ||
      !parse_rank(settings.text(SettingId::kRank), &rank)) {
    return fail(MOB_ERR_SETTING,
                "%s and %s are set by `mobius run` together and are not meant to be set by hand; "
                "unset both to start a job of one",
                kJobVariable, kRankVariable);
  }
  return join_launcher(settings, rank);
}

mob_status_t Job::join_alone(const Settings& settings) {
  int segment = -1;
  if (const mob_status_t status = control_create(1, &segment)) return status;
  return enter(settings, segment, 0, 1, true);
}

mob_status_t Job::join_threads(const Settings& settings, int segment, mob_rank_t rank,
                               mob_rank_t size) {
  const int own = fcntl(segment, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "no descriptor for shared memory");
  }
  return enter(settings, own, rank, size, true);
}

// The last step of joining, in whatever way; takes over `segment`.
mob_status_t Job::enter(const Settings& settings, int segment, mob_rank_t rank, mob_rank_t size,
                        bool pid_is_shared) {
  if (const mob_status_t status = host_.open(segment, rank, pid_is_shared)) return status;
  host_.set_policy(wait_policy(settings, size));
  rank_ = rank;
  size_ = size;
  return MOB_OK;
}

mob_status_t Job::join_launcher(const Settings& settings, mob_rank_t rank) {
  const std::string& key = settings.text(SettingId::kJob);
  sockaddr_un address{};
  const socklen_t length = socket_address(key, &address);
  if (launcher_.connect(address, length) != MOB_OK) {
    const std::string reason = mob_last_error();
    return fail(MOB_ERR_SYSTEM,
                "the launcher of this job cannot be reached (%s); if it has ended, unset %s and %s "
                "to start a job of one",
                reason.c_str(), kJobVariable, kRankVariable);
  }
  Message hello;
  hello.type = MessageType::kHello;
  hello.rank = rank;
  hello.pid = getpid();
  Message answer;
  int descriptor = -1;
  mob_status_t status = launcher_.send(&hello, sizeof hello);
  if (status == MOB_OK) status = launcher_.receive(&answer, sizeof answer, &descriptor);
  if (status == MOB_OK) {
    answer.reason[sizeof answer.reason - 1] = '\0';
    if (answer.magic != kProtocolMagic || answer.version != kProtocolVersion) {
      status = fail(MOB_ERR_SYSTEM,
                    "the launcher speaks another version of the protocol; use the `mobius` command "
                    "that came with this library");
    } else if (answer.type != MessageType::kWelcome || descriptor < 0) {
      status = fail(MOB_ERR_SYSTEM, "the launcher refused rank %d: %s", rank, answer.reason);
    }
  }
  if (status == MOB_OK) {
    // Behind a wrapper that made a namespace of process ids, ids mean nothing to the others.
    status = enter(settings, descriptor, rank, answer.size, answer.pid == getpid());
  } else if (descriptor >= 0) {
    close(descriptor);
  }
  if (status != MOB_OK) launcher_.close();
  return status;
}

void Job::start_leaving() {
  // Release pairs with Liveness: who sees this sees all that this process did before.
  host_.slot(host_.index()).state.store(ProcessState::kLeaving, std::memory_order_release);
}

void Job::leave() {
  host_.slot(host_.index()).state.store(ProcessState::kLeft, std::memory_order_release);
  if (launcher_.is_open()) {
    Message goodbye;
    goodbye.type = MessageType::kGoodbye;
    goodbye.rank = rank_;
    goodbye.pid = getpid();
    // A launcher that is gone has ended the job already.
    static_cast<void>(launcher_.send(&goodbye, sizeof goodbye));
  }
  abandon();
}

void Job::abandon() {
  launcher_.close();
  host_.close();
}

void request_abort(const char* const* environment) {
  Settings settings;
  Message abort;
  abort.type = MessageType::kAbort;
  abort.pid = getpid();
  if (settings.load(environment) != MOB_OK || !is_key(settings.text(SettingId::kJob)) ||
      !parse_rank(settings.text(SettingId::kRank), &abort.rank)) {
    return;
  }
  sockaddr_un address{};
  const socklen_t length = socket_address(settings.text(SettingId::kJob), &address);
  os::UnixSocket launcher;
  // A launcher that is gone has ended the job already.
  if (launcher.connect(address, length) == MOB_OK) {
    static_cast<void>(launcher.send(&abort, sizeof abort));
  }
}

}  // namespace mobius::job
