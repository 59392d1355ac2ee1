// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/pmix/pmix_events.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace mobius::job::pmix {
namespace {

using base::fail;

// The launcher reports the ends of all jobs that it has started, and so many are kept.
constexpr size_t kMostEnds = 1024;
struct NamedEnd {
  std::string job;
  JobEnd end;
};

struct Events {
  std::mutex mutex;
  bool listening = false;  // connected, and not leaving
  bool survive = false;
  bool server_is_gone = false;
  std::vector<mob_rank_t> dead;
  std::deque<NamedEnd> ends;
  std::vector<std::string> tied;  // names of jobs
  pmix_nspace_t job{};
};

// Never destroyed: PMIx's thread runs on.
Events& events() {
  static auto* const instance = new Events;
  return *instance;
}

bool is_death(pmix_status_t event) {
  return event == PMIX_ERR_PROC_ABORTED || event == PMIX_ERR_PROC_TERM_WO_SYNC ||
         event == PMIX_ERR_PROC_ABORTED_BY_SIG || event == PMIX_ERR_PROC_KILLED_BY_CMD;
}

// The process that an event is about: by default its source.
const pmix_proc_t* affected(const pmix_proc_t* source, const pmix_info_t* info, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (std::strncmp(info[i].key, PMIX_EVENT_AFFECTED_PROC, PMIX_MAX_KEYLEN) == 0 &&
        info[i].value.type == PMIX_PROC) {
      return info[i].value.data.proc;
    }
  }
  return source;
}

bool is_of(const pmix_proc_t& process, const pmix_nspace_t& job) {
  return std::strncmp(process.nspace, job, PMIX_MAX_NSLEN) == 0;
}

// Ends this process if the end of the other job is an error and it is tied to it. The caller holds
// the mutex.
void follow(const Events& known, const NamedEnd& other) {
  if (other.end.code == 0 || known.survive || !known.listening) return;
  if (std::ranges::find(known.tied, other.job) == known.tied.end()) return;
  base::log(base::LogLevel::kError,
            "a job that a spawn has connected with this one has ended by an error (%d), so this "
            "process ends, too (MOBIUS_ON_DEATH=error: it would go on)",
            other.end.code);
  _exit(other.end.code > 0 && other.end.code < 256 ? other.end.code : 1);
}

// The caller holds the mutex.
void note_end(Events& known, const pmix_proc_t& who, const pmix_info_t* info, size_t info_count) {
  NamedEnd found{std::string(who.nspace, strnlen(who.nspace, PMIX_MAX_NSLEN)), {}};
  if (who.rank <= INT32_MAX) found.end.rank = static_cast<mob_rank_t>(who.rank);
  for (size_t i = 0; i < info_count; ++i) {
    if (std::strncmp(info[i].key, PMIX_JOB_TERM_STATUS, PMIX_MAX_KEYLEN) == 0) {
      found.end.code = info[i].value.data.status;
    }
  }
  if (known.ends.size() >= kMostEnds) known.ends.pop_front();
  known.ends.push_back(std::move(found));
  follow(known, known.ends.back());
}

// The caller holds the mutex.
void note(Events& known, pmix_status_t event, const pmix_proc_t* source, const pmix_info_t* info,
          size_t info_count) {
  if (!known.listening) return;
  // Servers report a lost connection also for a process that died, and sometimes for one that left.
  const bool of_process = source != nullptr && is_of(*source, known.job);
  if (event == PMIX_ERR_LOST_CONNECTION && !of_process) {
    known.server_is_gone = true;
    if (!known.survive) {
      base::log(base::LogLevel::kError,
                "the launcher that started this process is gone (its PMIx server closed the "
                "connection): the process ends");
      _exit(1);
    }
  }
  const pmix_proc_t* who = affected(source, info, info_count);
  if (event == PMIX_EVENT_JOB_END && who != nullptr) note_end(known, *who, info, info_count);
  if (is_death(event) && who != nullptr && is_of(*who, known.job) && who->rank <= INT32_MAX) {
    known.dead.push_back(static_cast<mob_rank_t>(who->rank));
  }
}

}  // namespace

void begin_events(const pmix_proc_t& self, bool survive) {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  std::memcpy(known.job, self.nspace, sizeof known.job);
  known.survive = survive;
  known.server_is_gone = false;
  known.dead.clear();
  known.ends.clear();
  known.tied.clear();
  known.listening = true;
}

void end_events() {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  known.listening = false;
}

void on_event(size_t /*handler*/, pmix_status_t event, const pmix_proc_t* source, pmix_info_t* info,
              size_t info_count, pmix_info_t* /*results*/, size_t /*result_count*/,
              pmix_event_notification_cbfunc_fn_t done, void* data) {
  {
    Events& known = events();
    const std::lock_guard lock(known.mutex);
    note(known, event, source, info, info_count);
  }
  // Lets PMIx call the next handler.
  if (done != nullptr) done(PMIX_SUCCESS, nullptr, 0, nullptr, nullptr, data);
}

mob_status_t check_events() {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  if (known.server_is_gone) {
    return fail(MOB_ERR_PEER, "mob_init: the launcher that started this process is gone");
  }
  if (!known.dead.empty()) {
    return fail(MOB_ERR_PEER, "mob_init: rank %d died before all had joined", known.dead.front());
  }
  return MOB_OK;
}

bool is_reported_dead(mob_rank_t rank) {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  return std::ranges::find(known.dead, rank) != known.dead.end();
}

bool has_ended(const char* job, JobEnd* end) {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  const auto found = std::ranges::find(known.ends, job, &NamedEnd::job);
  if (found == known.ends.end()) return false;
  *end = found->end;
  return true;
}

void tie_to(const char* job) {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  known.tied.emplace_back(job);
  for (const NamedEnd& each : known.ends) {
    if (each.job == job) follow(known, each);
  }
}

void untie(const char* job) {
  Events& known = events();
  const std::lock_guard lock(known.mutex);
  const auto found = std::ranges::find(known.tied, job);
  if (found != known.tied.end()) known.tied.erase(found);
}

}  // namespace mobius::job::pmix
