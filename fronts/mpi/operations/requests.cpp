// SPDX-License-Identifier: BSD-3-Clause
#include "operations/requests.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"
#include "synchronisation/pause.h"

namespace mobius::mpi {
namespace {

// The MPI keeps one of these with each request.
struct Outcome {
  mob_status_t status = MOB_OK;
};

int answer_query(void* extra, MPI_Status* status) {
  static_cast<void>(real::Status_set_elements(status, MPI_BYTE, 0));
  static_cast<void>(real::Status_set_cancelled(status, 0));
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  const mob_status_t outcome = static_cast<const Outcome*>(extra)->status;
  return outcome == MOB_OK ? MPI_SUCCESS : class_of(outcome);
}

int free_outcome(void* extra) {
  delete static_cast<Outcome*>(extra);
  return MPI_SUCCESS;
}

int do_not_cancel(void* /*extra*/, int /*is_complete*/) { return MPI_SUCCESS; }

struct Pending {
  MPI_Request request;
  mob_handle_t transfer;
  Outcome* outcome;
};

using Requests = std::span<const MPI_Request>;

// The requests whose transfers are not known to be complete.
class PendingRequests {
 public:
  // A thread that has a request has seen it counted.
  static bool has_any() { return count_.load(std::memory_order_relaxed) != 0; }

  void add(const Pending& pending) {
    const std::lock_guard lock(mutex_);
    all_.emplace(number_of(pending.request), pending);
    count_.store(all_.size() + abandoned_.size(), std::memory_order_relaxed);
  }

  // Takes out those of the requests that are here and that `is_due(pending)` accepts.
  template <typename IsDue>
  std::vector<Pending> take(Requests requests, IsDue is_due) {
    std::vector<Pending> taken;
    const std::lock_guard lock(mutex_);
    for (const MPI_Request request : requests) {
      const auto found = all_.find(number_of(request));
      if (found == all_.end() || !is_due(found->second)) continue;
      taken.push_back(found->second);
      all_.erase(found);
    }
    count_.store(all_.size() + abandoned_.size(), std::memory_order_relaxed);
    return taken;
  }

  // The program has freed the request, whose transfer goes on. The MPI frees it when it is
  // complete: MPICH 4.0 would not know its handle any more then.
  void abandon(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(number_of(request));
    if (found == all_.end()) return;
    abandoned_.push_back(found->second);
    all_.erase(found);
    count_.store(all_.size() + abandoned_.size(), std::memory_order_relaxed);
  }

  // Takes out those that were abandoned and that `is_due(pending)` accepts.
  template <typename IsDue>
  std::vector<Pending> take_abandoned(IsDue is_due) {
    std::vector<Pending> taken;
    const std::lock_guard lock(mutex_);
    std::erase_if(abandoned_, [&](Pending& pending) {
      if (!is_due(pending)) return false;
      taken.push_back(pending);
      return true;
    });
    count_.store(all_.size() + abandoned_.size(), std::memory_order_relaxed);
    return taken;
  }

  bool holds_any(Requests requests) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        requests, [this](MPI_Request request) { return all_.contains(number_of(request)); });
  }

 private:
  static constinit std::atomic<size_t> count_;  // of both below
  std::mutex mutex_;                            // guards them
  std::unordered_map<uintptr_t, Pending> all_;
  std::vector<Pending> abandoned_;
};

constinit std::atomic<size_t> PendingRequests::count_ = 0;

PendingRequests& pending_requests() {
  static PendingRequests instance;
  return instance;
}

Requests requests_of(int count, const MPI_Request* requests) {
  if (count <= 0 || requests == nullptr) return {};
  return {requests, static_cast<size_t>(count)};
}

void complete(const Pending& pending, mob_status_t status) {
  pending.outcome->status = status;
  static_cast<void>(real::Grequest_complete(pending.request));
}

void complete_and_free(Pending* pending, mob_status_t status) {
  complete(*pending, status);
  static_cast<void>(real::Request_free(&pending->request));
}

bool is_done(Pending& pending) {
  int done = 0;
  const mob_status_t status = mob_test(&pending.transfer, &done);
  // An error of the transfer completes it, too.
  if (pending.transfer == MOB_HANDLE_DONE) pending.outcome->status = status;
  return pending.transfer == MOB_HANDLE_DONE;
}

// Completes those of the requests that are the front's and whose transfers are complete, and such
// that the program has freed.
[[gnu::cold]] void look_after(Requests requests) {
  for (const Pending& each : pending_requests().take(requests, is_done)) {
    complete(each, each.outcome->status);
  }
  for (Pending& each : pending_requests().take_abandoned(is_done)) {
    complete_and_free(&each, each.outcome->status);
  }
}

// Completes those of the requests that are the front's, and waits for their transfers.
[[gnu::cold]] void wait_for(Requests requests) {
  const Progressing progressing;
  for (Pending& each : pending_requests().take(requests, [](const Pending&) { return true; })) {
    complete(each, mob_wait(&each.transfer));
  }
}

// MPI's calls that test begin with look(), those that wait for all requests with await().
inline void look(int count, const MPI_Request* requests) {
  if (PendingRequests::has_any()) [[unlikely]] {
    look_after(requests_of(count, requests));
  }
}
inline void await(int count, const MPI_Request* requests) {
  if (PendingRequests::has_any()) [[unlikely]] {
    wait_for(requests_of(count, requests));
  }
}

// Whether the MPI cannot wait for some of the requests, as none of its threads completes them.
inline bool has_some(int count, const MPI_Request* requests) {
  return PendingRequests::has_any() && pending_requests().holds_any(requests_of(count, requests));
}

// Tests until `test()` fails or `is_done()`.
template <typename Test, typename IsDone>
int test_until(int count, const MPI_Request* requests, Test test, IsDone is_done) {
  Pause pause;
  for (;;) {
    look(count, requests);
    const int result = test();
    if (result != MPI_SUCCESS || is_done()) return result;
    pause.once();
  }
}

}  // namespace

void finish_requests() {
  const auto is_any = [](const Pending&) { return true; };
  for (Pending& each : pending_requests().take_abandoned(is_any)) {
    complete_and_free(&each, mob_wait(&each.transfer));
  }
}

int make_request(mob_handle_t transfer, MPI_Request* request) {
  if (transfer == MOB_HANDLE_DONE) return make_done_request(request);
  auto* outcome = new Outcome;
  const int made =
      real::Grequest_start(answer_query, free_outcome, do_not_cancel, outcome, request);
  if (made != MPI_SUCCESS) {
    delete outcome;
    static_cast<void>(mob_wait(&transfer));
    return made;
  }
  look(0, nullptr);
  pending_requests().add({*request, transfer, outcome});
  return MPI_SUCCESS;
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Wait)(MPI_Request* request, MPI_Status* status) {
#if defined(MOBIUS_MPI_OMPI)
  if (request != nullptr && *request == done_request && done_request != nullptr &&
      status == MPI_STATUS_IGNORE) {
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
#endif
  await(1, request);
  return real::Wait(request, status);
}

MOBIUS_MPI_TWIN(Test)(MPI_Request* request, int* flag, MPI_Status* status) {
  look(1, request);
  return real::Test(request, flag, status);
}

MOBIUS_MPI_TWIN(Request_free)(MPI_Request* request) {
  look(1, request);
  if (request == nullptr || !has_some(1, request)) return real::Request_free(request);
  pending_requests().abandon(*request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

MOBIUS_MPI_TWIN(Request_get_status)(MPI_Request request, int* flag, MPI_Status* status) {
  look(1, &request);
  return real::Request_get_status(request, flag, status);
}

MOBIUS_MPI_TWIN(Waitall)(int count, MPI_Request* requests, MPI_Status* statuses) {
  await(count, requests);
  return real::Waitall(count, requests, statuses);
}

MOBIUS_MPI_TWIN(Testall)(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  look(count, requests);
  return real::Testall(count, requests, flag, statuses);
}

MOBIUS_MPI_TWIN(Waitany)(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (has_some(count, requests)) {
    int flag = 0;
    return test_until(
        count, requests, [&] { return real::Testany(count, requests, index, &flag, status); },
        [&] { return flag != 0; });
  }
  return real::Waitany(count, requests, index, status);
}

MOBIUS_MPI_TWIN(Testany)
(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  look(count, requests);
  return real::Testany(count, requests, index, flag, status);
}

MOBIUS_MPI_TWIN(Waitsome)
(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (has_some(count, requests)) {
    return test_until(
        count, requests, [&] { return real::Testsome(count, requests, done, indices, statuses); },
        [&] { return *done != 0; });
  }
  return real::Waitsome(count, requests, done, indices, statuses);
}

MOBIUS_MPI_TWIN(Testsome)
(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  look(count, requests);
  return real::Testsome(count, requests, done, indices, statuses);
}

#ifdef MOBIUS_MPI_HAS_STATUS_OF_SEVERAL
MOBIUS_MPI_TWIN(Request_get_status_all)
(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  look(count, requests);
  return real::Request_get_status_all(count, requests, flag, statuses);
}

MOBIUS_MPI_TWIN(Request_get_status_any)
(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  look(count, requests);
  return real::Request_get_status_any(count, requests, index, flag, status);
}

MOBIUS_MPI_TWIN(Request_get_status_some)
(int count, const MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  look(count, requests);
  return real::Request_get_status_some(count, requests, done, indices, statuses);
}
#endif
