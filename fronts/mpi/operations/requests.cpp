// SPDX-License-Identifier: BSD-3-Clause
#include "operations/requests.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"

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
  mob_rank_t target;
  Outcome* outcome;
};

struct PendingRequests {
  std::atomic<size_t> count = 0;
  std::mutex mutex;  // guards `all`
  std::vector<Pending> all;
};

constinit PendingRequests pending;

[[gnu::cold]] void complete_pending(std::span<const MPI_Request> requests) {
  std::vector<Pending> found;
  {
    const std::lock_guard lock(pending.mutex);
    const auto is_asked_for = [&](const Pending& each) {
      return std::ranges::find(requests, each.request) != requests.end();
    };
    std::ranges::copy_if(pending.all, std::back_inserter(found), is_asked_for);
    std::erase_if(pending.all, is_asked_for);
    pending.count.store(pending.all.size(), std::memory_order_relaxed);
  }
  if (found.empty()) return;
  const Progressing progressing;
  for (const Pending& each : found) {
    each.outcome->status = mob_flush_local(each.target);
    static_cast<void>(real::Grequest_complete(each.request));
  }
}

// Completes those of the requests that are the front's. A thread that has a request has seen it
// counted.
inline void settle(int count, const MPI_Request* requests) {
  if (pending.count.load(std::memory_order_relaxed) == 0) [[likely]] {
    return;
  }
  if (count > 0 && requests != nullptr) {
    complete_pending({requests, static_cast<size_t>(count)});
  }
}

}  // namespace

int make_pending_request(mob_rank_t target, MPI_Request* request) {
  auto* outcome = new Outcome;
  const int made =
      real::Grequest_start(answer_query, free_outcome, do_not_cancel, outcome, request);
  if (made != MPI_SUCCESS) {
    delete outcome;
    return made;
  }
  const std::lock_guard lock(pending.mutex);
  pending.all.push_back({*request, target, outcome});
  pending.count.store(pending.all.size(), std::memory_order_relaxed);
  return MPI_SUCCESS;
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Wait)(MPI_Request* request, MPI_Status* status) {
  settle(1, request);
  return real::Wait(request, status);
}

MOBIUS_MPI_TWIN(Test)(MPI_Request* request, int* flag, MPI_Status* status) {
  settle(1, request);
  return real::Test(request, flag, status);
}

MOBIUS_MPI_TWIN(Request_free)(MPI_Request* request) {
  settle(1, request);
  return real::Request_free(request);
}

MOBIUS_MPI_TWIN(Request_get_status)(MPI_Request request, int* flag, MPI_Status* status) {
  settle(1, &request);
  return real::Request_get_status(request, flag, status);
}

MOBIUS_MPI_TWIN(Waitall)(int count, MPI_Request* requests, MPI_Status* statuses) {
  settle(count, requests);
  return real::Waitall(count, requests, statuses);
}

MOBIUS_MPI_TWIN(Testall)(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  settle(count, requests);
  return real::Testall(count, requests, flag, statuses);
}

MOBIUS_MPI_TWIN(Waitany)(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  settle(count, requests);
  return real::Waitany(count, requests, index, status);
}

MOBIUS_MPI_TWIN(Testany)
(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  settle(count, requests);
  return real::Testany(count, requests, index, flag, status);
}

MOBIUS_MPI_TWIN(Waitsome)
(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  settle(count, requests);
  return real::Waitsome(count, requests, done, indices, statuses);
}

MOBIUS_MPI_TWIN(Testsome)
(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  settle(count, requests);
  return real::Testsome(count, requests, done, indices, statuses);
}

#ifdef MOBIUS_MPI_HAS_STATUS_OF_SEVERAL
MOBIUS_MPI_TWIN(Request_get_status_all)
(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  settle(count, requests);
  return real::Request_get_status_all(count, requests, flag, statuses);
}

MOBIUS_MPI_TWIN(Request_get_status_any)
(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  settle(count, requests);
  return real::Request_get_status_any(count, requests, index, flag, status);
}

MOBIUS_MPI_TWIN(Request_get_status_some)
(int count, const MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  settle(count, requests);
  return real::Request_get_status_some(count, requests, done, indices, statuses);
}
#endif
