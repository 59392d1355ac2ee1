// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/pmix/pmix.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/status.h"
#include "job/bootstrap/pmix/pmix_events.h"
#include "job/bootstrap/pmix/pmix_library.h"
#include "job/bootstrap/pmix/pmix_spawn.h"
#include "job/bootstrap/pmix/pmix_values.h"

namespace mobius::job::pmix {
namespace {

using base::fail;

// Set while this process is connected.
std::atomic<const Library*> connected{nullptr};

// State of one fence, shared by the waiter and PMIx.
struct Fence {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  pmix_status_t status = PMIX_SUCCESS;
};

void on_fence(pmix_status_t status, void* data) {
  const std::unique_ptr<std::shared_ptr<Fence>> fence(static_cast<std::shared_ptr<Fence>*>(data));
  const std::lock_guard lock((*fence)->mutex);
  (*fence)->ended = true;
  (*fence)->status = status;
  (*fence)->changed.notify_all();
}

// Interval between checks for deaths during a wait.
constexpr std::chrono::milliseconds kLook{50};
// Interval between the first two checks for a published value.
constexpr std::chrono::milliseconds kShortestPause{1};

// Several times the interval at which others check.
constexpr std::chrono::milliseconds kLinger{300};

// A value whose presence is the message.
constexpr unsigned char kMark[] = {1};
constexpr std::string_view kMarkKey = "mark";

class PmixDirectory final : public Directory {
 public:
  PmixDirectory(const Library& library, const pmix_proc_t& self, unsigned limit_s, bool others_left)
      : library_(library), self_(self), limit_s_(limit_s), server_counts_(!others_left) {}
  ~PmixDirectory() override {
    if (!left_) abandon();
    linger();
    finalize();
  }

  void listen(bool survive);
  mob_status_t find_out(Whereabouts* whereabouts);

  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override;
  mob_status_t fence() override;
  mob_status_t fetch(mob_rank_t rank, std::string_view key,
                     std::vector<unsigned char>* value) override;
  bool is_dead(mob_rank_t rank) override;
  bool has_left(mob_rank_t /*rank*/) override { return false; }
  void leave() override;
  bool launches() override { return true; }
  mob_status_t launch(const LaunchOrder& order, std::string_view parent,
                      std::unique_ptr<LaunchedJob>* launched) override {
    return pmix::launch(library_, self_, order, parent, launched);
  }
  std::string parent(std::string_view text, std::unique_ptr<JobTie>* tie) override {
    return program_ == 1 ? find_parent(library_, self_, text, tie) : std::string{};
  }

 private:
  mob_status_t fail_pmix(const char* what, pmix_status_t status) const;
  mob_status_t count_programs();
  mob_status_t wait_for(Fence& fence);
  mob_status_t meet_by_values();
  mob_status_t show(std::string_view key);
  mob_status_t wait_for_value(mob_rank_t rank, std::string_view key,
                              std::chrono::steady_clock::time_point end);
  mob_status_t not_all_came() const;
  // The time limit of a wait that begins now.
  std::chrono::steady_clock::time_point join_end() const {
    return std::chrono::steady_clock::now() + std::chrono::seconds(limit_s_);
  }
  mob_status_t job_size(mob_rank_t* size) const;
  mob_status_t neighbours(std::vector<mob_rank_t>* ranks) const;
  pmix_proc_t all() const;
  pmix_proc_t process(mob_rank_t rank) const;
  std::string full_key(std::string_view key) const;
  static void abandon();
  void linger() const;
  void finalize();

  const Library& library_;
  const pmix_proc_t self_;
  const unsigned limit_s_;
  pmix_status_t handler_ = -1;
  bool left_ = false;
  mob_rank_t size_ = 1;
  bool server_counts_;
  unsigned program_ = 1;  // number of this program among those that these processes run in turn
  unsigned meetings_ = 0;
  std::chrono::steady_clock::time_point told_all_;  // when rank 0 published that all have come
};

mob_status_t PmixDirectory::fail_pmix(const char* what, pmix_status_t status) const {
  return fail(MOB_ERR_SYSTEM, "mob_init: PMIx %s failed: %s (%d)", what,
              library_.error_string(status), status);
}

pmix_proc_t PmixDirectory::all() const {
  pmix_proc_t everybody = self_;
  everybody.rank = PMIX_RANK_WILDCARD;
  return everybody;
}

void PmixDirectory::listen(bool survive) {
  begin_events(self_, survive);
  pmix_status_t events[] = {PMIX_ERR_LOST_CONNECTION,    PMIX_ERR_PROC_ABORTED,
                            PMIX_ERR_PROC_TERM_WO_SYNC,  PMIX_ERR_PROC_ABORTED_BY_SIG,
                            PMIX_ERR_PROC_KILLED_BY_CMD, PMIX_EVENT_JOB_END};
  // Failure is no error: the launcher may end the job by itself.
  handler_ = library_.register_event_handler(events, std::size(events), nullptr, 0, on_event,
                                             nullptr, nullptr);
  connected.store(&library_, std::memory_order_release);
}

mob_status_t PmixDirectory::find_out(Whereabouts* whereabouts) {
  whereabouts->rank = static_cast<mob_rank_t>(self_.rank);
  if (const mob_status_t status = job_size(&size_)) return status;
  whereabouts->size = size_;
  if (const mob_status_t status = count_programs()) return status;
  if (const mob_status_t status = neighbours(&whereabouts->neighbours)) return status;
  // On one node the server's fence has no advantage.
  const bool one_node = whereabouts->neighbours.size() == static_cast<size_t>(size_);
  server_counts_ = server_counts_ && program_ == 1 && !one_node;
  return MOB_OK;
}

mob_status_t PmixDirectory::job_size(mob_rank_t* size) const {
  const pmix_proc_t job = all();
  Value value;
  const pmix_status_t status = library_.get(&job, PMIX_JOB_SIZE, nullptr, 0, value.out());
  if (status != PMIX_SUCCESS) return fail_pmix("lookup of the job's size", status);
  if (!value.is(PMIX_UINT32) || value->data.uint32 <= self_.rank ||
      value->data.uint32 > INT32_MAX) {
    return fail(MOB_ERR_SYSTEM, "mob_init: PMIx gave no sensible size of the job");
  }
  *size = static_cast<mob_rank_t>(value->data.uint32);
  return MOB_OK;
}

// "0,1,5"
mob_status_t PmixDirectory::neighbours(std::vector<mob_rank_t>* ranks) const {
  const pmix_proc_t job = all();
  Value value;
  const pmix_status_t status = library_.get(&job, PMIX_LOCAL_PEERS, nullptr, 0, value.out());
  if (status != PMIX_SUCCESS || !value.is(PMIX_STRING)) {
    return fail_pmix("lookup of the node's processes", status);
  }
  const char* text = value->data.string;
  const char* const end = text + std::strlen(text);
  while (text < end) {
    mob_rank_t rank = -1;
    const auto [rest, error] = std::from_chars(text, end, rank);
    if (error != std::errc() || rank < 0) {
      return fail(MOB_ERR_SYSTEM,
                  "mob_init: PMIx gave no sensible list of the node's processes: "
                  "'%s'",
                  value->data.string);
    }
    ranks->push_back(rank);
    text = rest < end ? rest + 1 : end;
  }
  std::ranges::sort(*ranks);
  return MOB_OK;
}

// To the server, programs that run in the same processes one after the other are one job, and it
// keeps the values that each published. So each program has its own keys, numbered by the marks
// that the earlier ones left. The marks were put for other nodes, too; without a scope some servers
// find no value that is older than the connection.
mob_status_t PmixDirectory::count_programs() {
  const pmix_info_t how[] = {instruction(PMIX_IMMEDIATE, value_of(true)),
                             instruction(PMIX_DATA_SCOPE, scope_value(PMIX_REMOTE))};
  while (true) {
    Value mark;
    const std::string key = full_key(kMarkKey);
    if (library_.get(&self_, key.c_str(), how, std::size(how), mark.out()) != PMIX_SUCCESS) break;
    ++program_;
  }
  return publish(kMarkKey, kMark);
}

pmix_proc_t PmixDirectory::process(mob_rank_t rank) const {
  pmix_proc_t who = self_;
  who.rank = static_cast<pmix_rank_t>(rank);
  return who;
}

std::string PmixDirectory::full_key(std::string_view key) const {
  return "mobius." + std::to_string(program_) + "." + std::string(key);
}

mob_status_t PmixDirectory::publish(std::string_view key, std::span<const unsigned char> value) {
  if (value.size() > kDirectoryValueBytes) {
    return fail(MOB_ERR_RANGE, "%zu bytes are too many for the job's directory", value.size());
  }
  pmix_value_t bytes{};
  bytes.type = PMIX_BYTE_OBJECT;
  // PMIx copies the value; its interface lacks a const.
  bytes.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(value.data()));
  bytes.data.bo.size = value.size();
  const pmix_status_t status = library_.put(PMIX_GLOBAL, full_key(key).c_str(), &bytes);
  return status == PMIX_SUCCESS ? MOB_OK : fail_pmix("publishing", status);
}

mob_status_t PmixDirectory::fence() {
  if (!server_counts_) return meet_by_values();
  pmix_status_t status = library_.commit();
  if (status != PMIX_SUCCESS) return fail_pmix("publishing", status);
  const pmix_proc_t everybody = all();
  const pmix_info_t collect = instruction(PMIX_COLLECT_DATA, value_of(true));
  const auto fence = std::make_shared<Fence>();
  auto for_pmix = std::make_unique<std::shared_ptr<Fence>>(fence);
  status = library_.fence_nb(&everybody, 1, &collect, 1, on_fence, for_pmix.get());
  if (status == PMIX_OPERATION_SUCCEEDED) return MOB_OK;
  if (status != PMIX_SUCCESS) return fail_pmix("fence", status);
  static_cast<void>(for_pmix.release());
  return wait_for(*fence);
}

mob_status_t PmixDirectory::wait_for(Fence& fence) {
  const auto end = join_end();
  std::unique_lock lock(fence.mutex);
  while (!fence.changed.wait_for(lock, kLook, [&] { return fence.ended; })) {
    if (const mob_status_t status = check_events()) return status;
    if (std::chrono::steady_clock::now() > end) return not_all_came();
  }
  if (fence.status == PMIX_SUCCESS) return MOB_OK;
  if (const mob_status_t status = check_events()) return status;
  return fail(MOB_ERR_PEER, "mob_init: waiting for all processes of the job failed: %s (%d)",
              library_.error_string(fence.status), fence.status);
}

// After an earlier program or an MPI in the same process has left PMIx, servers miscount the
// members of a fence and end it too early or never. (In 4.2 a process that closes its connection
// before its farewell is noted is not counted any more, and a connection that is closed late counts
// against the next program.) Published values stay in any case.
//
// Rank 0 waits for all ranks, and the others wait for rank 0's mark. If every rank waited for every
// other, 256 processes of one node would take 3 s longer to start on two processors.
mob_status_t PmixDirectory::meet_by_values() {
  const std::string number = std::to_string(++meetings_);
  if (const mob_status_t status = show("met" + number)) return status;
  const std::string all_met = "all_met" + number;
  const auto end = join_end();
  if (self_.rank != 0) return wait_for_value(0, all_met, end);
  for (mob_rank_t rank = 1; rank < size_; ++rank) {
    if (const mob_status_t status = wait_for_value(rank, "met" + number, end)) return status;
  }
  const mob_status_t status = show(all_met);
  told_all_ = std::chrono::steady_clock::now();
  return status;
}

// If rank 0 leaves while servers of other nodes ask for the value that it has just published, they
// may never get an answer (4.2). So it stays until they have asked. The server of its own node has
// the value at once.
void PmixDirectory::linger() const {
  std::vector<mob_rank_t> near;
  if (told_all_ == std::chrono::steady_clock::time_point{} || neighbours(&near) != MOB_OK ||
      near.size() == static_cast<size_t>(size_)) {
    return;
  }
  std::this_thread::sleep_until(told_all_ + kLinger);
}

// Publishes a mark, and makes it and everything before it visible.
mob_status_t PmixDirectory::show(std::string_view key) {
  if (const mob_status_t status = publish(key, kMark)) return status;
  const pmix_status_t status = library_.commit();
  return status == PMIX_SUCCESS ? MOB_OK : fail_pmix("publishing", status);
}

// For processes of its own node a server may wait until the value is published; for others it
// answers at once.
mob_status_t PmixDirectory::wait_for_value(mob_rank_t rank, std::string_view key,
                                           std::chrono::steady_clock::time_point end) {
  const pmix_proc_t who = process(rank);
  const std::string full = full_key(key);
  pmix_value_t second{};
  second.type = PMIX_INT;
  second.data.integer = 1;
  const pmix_info_t limit = instruction(PMIX_TIMEOUT, second);
  for (auto pause = kShortestPause;; pause = std::min(2 * pause, kLook)) {
    Value found;
    if (library_.get(&who, full.c_str(), &limit, 1, found.out()) == PMIX_SUCCESS) return MOB_OK;
    if (const mob_status_t status = check_events()) return status;
    if (std::chrono::steady_clock::now() > end) return not_all_came();
    std::this_thread::sleep_for(pause);
  }
}

mob_status_t PmixDirectory::not_all_came() const {
  return fail(MOB_ERR_PEER,
              "mob_init: not all processes of the job have called it within %u seconds "
              "(MOBIUS_JOIN_SECONDS): does each one call mob_init(), and is one stopped?",
              limit_s_);
}

mob_status_t PmixDirectory::fetch(mob_rank_t rank, std::string_view key,
                                  std::vector<unsigned char>* value) {
  const pmix_proc_t who = process(rank);
  if (!server_counts_) {
    // Without a server's fence, values of other nodes have to be fetched.
    if (const mob_status_t status = wait_for_value(rank, key, join_end())) return status;
  }
  const std::string full = full_key(key);
  const pmix_info_t at_once = instruction(PMIX_IMMEDIATE, value_of(true));
  Value found;
  pmix_status_t status = library_.get(&who, full.c_str(), &at_once, 1, found.out());
  // Values published before a fence should be here, but PRRTE's servers (3.0) leave them where they
  // are until they are asked for.
  if (status == PMIX_ERR_NOT_FOUND) {
    if (const mob_status_t came = wait_for_value(rank, key, join_end())) return came;
    status = library_.get(&who, full.c_str(), &at_once, 1, found.out());
  }
  if (status != PMIX_SUCCESS || !found.is(PMIX_BYTE_OBJECT)) {
    return fail(MOB_ERR_PEER, "rank %d has not published its %.*s: %s", rank,
                static_cast<int>(key.size()), key.data(), library_.error_string(status));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(found->data.bo.bytes);
  value->assign(bytes, bytes + found->data.bo.size);
  return MOB_OK;
}

bool PmixDirectory::is_dead(mob_rank_t rank) { return is_reported_dead(rank); }

void PmixDirectory::abandon() {
  report_end_of_job();
  abort(1, nullptr);
}

void PmixDirectory::leave() { left_ = true; }

// An MPI that starts later in this process could not use PMIx after it was finalized, so it stays
// initialized until the process ends.
bool has_mpi() {
  const auto look = [](dl_phdr_info* library, size_t /*bytes*/, void* /*data*/) {
    const std::string_view path = library->dlpi_name;
    return path.substr(path.rfind('/') + 1).starts_with("libmpi") ? 1 : 0;
  };
  return dl_iterate_phdr(look, nullptr) != 0;
}

// The last user of PMIx in this process disconnects from the server, which then forgets all
// handlers. The handler is deregistered only if other users remain, and after finalizing: it is a
// message without an answer, and the kernel would hold the next message, the farewell, back for 40
// ms until it is acknowledged.
void PmixDirectory::finalize() {
  connected.store(nullptr, std::memory_order_release);
  end_events();
  static const Library* last = nullptr;
  static pmix_status_t last_handler = -1;
  last = &library_;
  last_handler = handler_;
  const auto disconnect = [] {
    last->finalize(nullptr, 0);
    if (last_handler < 0 || last->initialized() == 0) return;
    last->deregister_event_handler(static_cast<size_t>(last_handler), nullptr, nullptr);
  };
  if (!has_mpi() || std::atexit(disconnect) != 0) disconnect();
}

}  // namespace

bool is_usable() {
  const Library* library = nullptr;
  return load(&library) == MOB_OK;
}

mob_status_t connect(unsigned limit_s, bool survive, bool others_left, Whereabouts* whereabouts,
                     std::unique_ptr<Directory>* directory) {
  const Library* library = nullptr;
  if (const mob_status_t status = load(&library)) return status;
  pmix_proc_t self{};
  const pmix_status_t status = library->init(&self, nullptr, 0);
  if (status != PMIX_SUCCESS) {
    return fail(MOB_ERR_SYSTEM,
                "mob_init: the PMIx server that started this process cannot be reached: %s (%d), "
                "%s; if the launcher has ended, MOBIUS_LAUNCHER=none starts a job of one",
                library->error_string(status), status, library->get_version());
  }
  auto made = std::make_unique<PmixDirectory>(*library, self, limit_s, others_left);
  made->listen(survive);
  const mob_status_t found = made->find_out(whereabouts);
  if (found == MOB_OK) *directory = std::move(made);
  return found;
}

void abort(int exit_code, const char* reason) {
  const Library* library = connected.load(std::memory_order_acquire);
  if (library != nullptr) library->abort(exit_code, reason, nullptr, 0);
}

}  // namespace mobius::job::pmix
