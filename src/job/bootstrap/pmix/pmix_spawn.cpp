// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/pmix/pmix_spawn.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/pmix/pmix_events.h"
#include "job/bootstrap/pmix/pmix_values.h"
#include "os/sync/futex.h"

namespace mobius::job::pmix {
namespace {

using base::fail;

// The launcher tells within milliseconds that a job has ended which it was told to end.
constexpr uint64_t kEndNs = 10'000'000'000;
constexpr uint64_t kTellNs = 500'000'000;
// Launchers report a process that ended by signal N as one that exited with this and N.
constexpr int kSignalled = 128;

// PMIx may change or extend the lists of an application: all of their memory is of malloc().
char* copy(const std::string& text) {
  char* const copied = strdup(text.c_str());
  if (copied == nullptr) throw std::bad_alloc();
  return copied;
}

char** copy_list(const std::vector<std::string>& words) {
  auto** const list = static_cast<char**>(std::calloc(words.size() + 1, sizeof(char*)));
  if (list == nullptr) throw std::bad_alloc();
  std::ranges::transform(words, list, copy);
  return list;
}

void free_list(char** list) {
  for (char** word = list; list != nullptr && *word != nullptr; ++word) std::free(*word);
  std::free(list);
}

// Consecutive processes on one host.
struct Group {
  std::string host;
  mob_rank_t count = 0;
};

// One request to PMIx, which it answers in a thread of its own.
struct Request {
  Request(const Library& to_use, std::vector<Group> wanted, std::string name)
      : library(to_use), groups(std::move(wanted)), program(std::move(name)) {}
  ~Request() {
    for (const pmix_app_t& app : apps) {
      std::free(app.cmd);
      free_list(app.argv);
      free_list(app.env);
      std::free(app.cwd);
    }
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const Library& library;
  const std::vector<Group> groups;
  const std::string program;
  std::vector<pmix_app_t> apps;     // of malloc() inside
  std::vector<pmix_info_t> places;  // of the apps

  std::mutex mutex;  // guards what follows
  bool is_answered = false;
  uint64_t answered_ns = 0;
  bool is_given_up = false;
  pmix_status_t status = PMIX_SUCCESS;
  std::string job;  // the name of the new one

  std::string host_of(mob_rank_t process) const {
    for (const Group& group : groups) {
      if (process < group.count) return group.host;
      process -= group.count;
    }
    return {};
  }
  mob_rank_t size() const {
    mob_rank_t sum = 0;
    for (const Group& group : groups) sum += group.count;
    return sum;
  }
  // "process 1 of 3, /bin/program on hostb", or of all of them.
  std::string describe(mob_rank_t process) const {
    std::string text = program;
    if (process >= 0 && process < size()) {
      return "process " + std::to_string(process) + " of " + std::to_string(size()) + ", " + text +
             " on " + host_of(process);
    }
    std::string last;
    for (const Group& group : groups) {
      if (group.host != last) text += (last.empty() ? " on " : ", ") + group.host;
      last = group.host;
    }
    return text;
  }
};

// Open MPI 4 names jobs by numbers, of which all that one mpirun has started share the upper bits.
bool is_of_open_mpi(const std::string& job, uint64_t* number) {
  const char* const end = job.data() + job.size();
  const auto [rest, error] = std::from_chars(job.data(), end, *number);
  return error == std::errc() && rest == end;
}

// Open MPI 4 would end the parents' job, too, and does not report the end.
bool can_end(const std::string& job) {
  uint64_t number = 0;
  return !job.empty() && !is_of_open_mpi(job, &number);
}

void end_job(const Library& library, const std::string& job) {
  pmix_proc_t all{};
  std::strncpy(all.nspace, job.c_str(), PMIX_MAX_NSLEN);
  all.rank = PMIX_RANK_WILDCARD;
  const pmix_info_t how = instruction(PMIX_JOB_CTRL_KILL, value_of(true));
  const auto ignore = [](pmix_status_t, pmix_info_t*, size_t, void*, pmix_release_cbfunc_t release,
                         void* data) {
    if (release != nullptr) release(data);
  };
  library.job_control_nb(&all, 1, &how, 1, ignore, nullptr);
}

// In PMIx' thread.
void on_answer(pmix_status_t status, char* job, void* data) {
  const std::unique_ptr<std::shared_ptr<Request>> held(
      static_cast<std::shared_ptr<Request>*>(data));
  Request& request = **held;
  const std::lock_guard lock(request.mutex);
  request.is_answered = true;
  request.answered_ns = os::now_ns();
  request.status = status;
  if (job != nullptr) request.job.assign(job, strnlen(job, PMIX_MAX_NSLEN));
  if (request.is_given_up && can_end(request.job)) end_job(request.library, request.job);
}

class PmixTie final : public JobTie {
 public:
  explicit PmixTie(std::string job) : job_(std::move(job)) { tie_to(job_.c_str()); }
  ~PmixTie() override { untie(job_.c_str()); }

 private:
  const std::string job_;
};

class PmixJob final : public LaunchedJob {
 public:
  explicit PmixJob(std::shared_ptr<Request> request) : request_(std::move(request)) {}
  mob_status_t look(const char* call, mob_rank_t* failed) override;
  bool has_answered() override {
    const std::lock_guard lock(request_->mutex);
    return request_->is_answered;
  }
  void end(const std::function<void()>& work) override;
  std::unique_ptr<JobTie> tie() override;

 private:
  mob_status_t explain(const char* call, pmix_status_t status, mob_rank_t failed) const;

  const std::shared_ptr<Request> request_;
};

mob_status_t PmixJob::explain(const char* call, pmix_status_t status, mob_rank_t failed) const {
  if (status == PMIX_ERR_NOT_SUPPORTED || status == PMIX_ERR_NOT_AVAILABLE) {
    return fail(MOB_ERR_STATE,
                "%s: the launcher of this job starts no more processes (its PMIx server says so, "
                "as Slurm's does): start the job with `mobius run --hosts`, prterun or Open MPI's "
                "mpirun, or start another job and connect with it (mob_port_open)",
                call);
  }
  return fail(MOB_ERR_SYSTEM,
              "%s: the launcher could not start %s: %s (%d); its own message says more", call,
              request_->describe(failed).c_str(), request_->library.error_string(status), status);
}

mob_status_t PmixJob::look(const char* call, mob_rank_t* failed) {
  *failed = -1;
  const std::lock_guard lock(request_->mutex);
  if (!request_->is_answered) return MOB_OK;
  JobEnd end;
  const bool is_over = !request_->job.empty() && has_ended(request_->job.c_str(), &end);
  if (is_over) *failed = end.rank;
  if (request_->status != PMIX_SUCCESS) {
    // Which process it was the launcher tells a little later.
    const bool may_tell = !request_->job.empty() && !is_over;
    if (may_tell && os::now_ns() < request_->answered_ns + kTellNs) return MOB_OK;
    return explain(call, request_->status, *failed);
  }
  if (!is_over) return MOB_OK;
  if (end.code < 0) return explain(call, end.code, *failed);
  const std::string who = request_->describe(*failed);
  if (end.code == 0) {
    return fail(MOB_ERR_PEER, "%s: %s exited without mob_init()", call, who.c_str());
  }
  if (end.code > kSignalled && end.code < kSignalled + NSIG) {
    const int signal = end.code - kSignalled;
    return fail(MOB_ERR_PEER, "%s: %s was killed by signal %d (%s) before all had joined", call,
                who.c_str(), signal, strsignal(signal));
  }
  return fail(MOB_ERR_PEER, "%s: %s exited with code %d before all had joined", call, who.c_str(),
              end.code);
}

void PmixJob::end(const std::function<void()>& work) {
  constexpr timespec kPause{0, 1'000'000};
  {
    const std::lock_guard lock(request_->mutex);
    request_->is_given_up = true;
    if (request_->is_answered) {
      if (request_->status != PMIX_SUCCESS || !can_end(request_->job)) return;
      end_job(request_->library, request_->job);
    }
  }
  for (const uint64_t end_ns = os::now_ns() + kEndNs; os::now_ns() < end_ns;) {
    {
      const std::lock_guard lock(request_->mutex);
      JobEnd end;
      if (request_->is_answered &&
          (request_->status != PMIX_SUCCESS || has_ended(request_->job.c_str(), &end))) {
        return;
      }
    }
    work();
    nanosleep(&kPause, nullptr);
  }
}

std::unique_ptr<JobTie> PmixJob::tie() {
  std::string job;
  {
    const std::lock_guard lock(request_->mutex);
    job = request_->job;
  }
  return std::make_unique<PmixTie>(std::move(job));
}

mob_status_t find_host(const Library& library, const pmix_proc_t& self, mob_rank_t rank,
                       std::string* host) {
  pmix_proc_t who = self;
  who.rank = static_cast<pmix_rank_t>(rank);
  Value value;
  const pmix_status_t status = library.get(&who, PMIX_HOSTNAME, nullptr, 0, value.out());
  if (status != PMIX_SUCCESS || !value.is(PMIX_STRING)) {
    return fail(MOB_ERR_SYSTEM, "PMIx does not tell on which host rank %d is: %s (%d)", rank,
                library.error_string(status), status);
  }
  *host = value->data.string;
  return MOB_OK;
}

// Whether a launcher has set this variable to tell a process its rank and its job. A spawned
// process gets its own from the launcher that starts it, and must not inherit the root's.
bool is_of_launch(std::string_view entry) {
  for (const std::string_view prefix :
       {"PMIX_", "PMI_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "OMPI_APP_CTX_NUM_PROCS=",
        "OMPI_FIRST_RANKS=", "OMPI_NUM_APP_CTX=", "OMPI_FILE_LOCATION=", "OMPI_ARGV=",
        "OMPI_COMMAND=", "OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_MCA_pmix=", "PRTE_"}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

pmix_app_t make_app(const LaunchOrder& order, mob_rank_t count, const std::string& parent) {
  std::vector<std::string> environment;
  for (const std::string& entry : order.request.environment) {
    if (!is_of_launch(entry)) environment.push_back(entry);
  }
  environment.push_back(std::string(kParentVariable) + "=" + parent);
  pmix_app_t app{};
  app.cmd = copy(order.request.path);
  app.argv = copy_list(order.request.arguments);
  app.env = copy_list(environment);
  app.cwd = copy(order.request.folder);
  app.maxprocs = count;
  return app;
}

// Whether one mpirun of Open MPI 4 has started both jobs. Its servers do not tell who spawned a
// job.
bool is_sibling_of_open_mpi(const std::string& own, const std::string& other) {
  constexpr unsigned kBitsInOneLaunch = 16;
  uint64_t first = 0;
  uint64_t second = 0;
  return is_of_open_mpi(own, &first) && is_of_open_mpi(other, &second) && first != second &&
         first >> kBitsInOneLaunch == second >> kBitsInOneLaunch;
}

}  // namespace

mob_status_t launch(const Library& library, const pmix_proc_t& self, const LaunchOrder& order,
                    std::string_view parent, std::unique_ptr<LaunchedJob>* launched) {
  std::vector<Group> groups;
  for (const mob_rank_t rank : order.beside) {
    std::string host;
    if (const mob_status_t status = find_host(library, self, rank, &host)) return status;
    if (groups.empty() || groups.back().host != host) groups.push_back({std::move(host), 0});
    ++groups.back().count;
  }
  auto request = std::make_shared<Request>(library, std::move(groups), order.request.path);
  const std::string whole = std::string(self.nspace) + "/" + std::string(parent);
  for (const Group& group : request->groups) {
    request->places.push_back(instruction(PMIX_HOST, text_value(group.host.c_str())));
  }
  for (size_t i = 0; i < request->groups.size(); ++i) {
    pmix_app_t app = make_app(order, request->groups[i].count, whole);
    app.info = &request->places[i];
    app.ninfo = 1;
    request->apps.push_back(app);
  }
  // As the first processes: in the order of the hosts, and several may share a processor.
  std::vector<pmix_info_t> how = {instruction(PMIX_MAPBY, text_value("slot:OVERSUBSCRIBE")),
                                  instruction(PMIX_BINDTO, text_value("none"))};
  if (order.survive) how.push_back(instruction(PMIX_RUNTIME_OPTIONS, text_value("recoverable")));
  if (order.tags) how.push_back(instruction(PMIX_IOF_TAG_OUTPUT, value_of(true)));
  auto for_pmix = std::make_unique<std::shared_ptr<Request>>(request);
  const pmix_status_t status = library.spawn_nb(how.data(), how.size(), request->apps.data(),
                                                request->apps.size(), on_answer, for_pmix.get());
  if (status == PMIX_SUCCESS) {
    static_cast<void>(for_pmix.release());
  } else {
    request->is_answered = true;
    request->status = status;
  }
  *launched = std::make_unique<PmixJob>(std::move(request));
  return MOB_OK;
}

std::string find_parent(const Library& library, const pmix_proc_t& self, std::string_view text,
                        std::unique_ptr<JobTie>* tie) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string parent(text.substr(0, slash));
  Value value;
  const bool is_told = library.get(&self, PMIX_PARENT_ID, nullptr, 0, value.out()) == PMIX_SUCCESS;
  const bool is_child = is_told ? value.is(PMIX_PROC) && parent == value->data.proc->nspace
                                : is_sibling_of_open_mpi(self.nspace, parent);
  if (!is_child) return {};
  *tie = std::make_unique<PmixTie>(parent);
  return std::string(text.substr(slash + 1));
}

}  // namespace mobius::job::pmix
