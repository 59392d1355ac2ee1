// SPDX-License-Identifier: BSD-3-Clause
#include "api/rma/transfer.h"

#include <mobius/transfer.h>

#include <algorithm>
#include <span>

#include "api/check.h"
#include "engine/progress/peer_watch.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using engine::Completion;
using engine::Mode;

namespace {

// An address in the target, or null.
const void* first_address(const mob_transfer_t& transfer) {
  switch (transfer.shape) {
    case MOB_PIECES:
      return transfer.remotes != nullptr && transfer.count != 0 ? transfer.remotes[0]
                                                                : transfer.signal;
    case MOB_SPANS:
      return transfer.remote_spans != nullptr && transfer.remote_span_count != 0
                 ? transfer.remote_spans[0].address
                 : transfer.signal;
    default:
      return transfer.remote != nullptr ? transfer.remote : transfer.signal;
  }
}

// `rank` is the number that the program passed.
mob_status_t run_in(engine::Engine& engine, const char* call, mob_rank_t rank,
                    const mob_transfer_t& transfer, Mode mode, mob_handle_t* handle) {
  if (engine.router().run_rows(transfer)) {
    if (mode == Mode::kHandle) *handle = MOB_HANDLE_DONE;
    return MOB_OK;
  }
  if (const mob_status_t status = api::check_rank(call, rank)) return status;
  return api::without_exceptions(call,
                                 [&] { return engine.router().run(call, transfer, mode, handle); });
}

}  // namespace

mob_status_t api::run_transfer(const char* call, const mob_transfer_t& transfer, Mode mode,
                               mob_handle_t* handle) {
  if (mob_size_ == 0) return check_rank(call, transfer.rank);
  const engine::EngineOf at = engine::engine_of(transfer.rank, first_address(transfer));
  if (at.rank != transfer.rank) [[unlikely]] {
    mob_transfer_t inner = transfer;
    inner.rank = at.rank;
    return run_in(at.engine, call, transfer.rank, inner, mode, handle);
  }
  return run_in(at.engine, call, transfer.rank, transfer, mode, handle);
}

namespace {

mob_status_t run(const char* call, const mob_transfer_t* transfer, Mode mode,
                 mob_handle_t* handle) {
  if (const mob_status_t status = check_live(call)) return status;
  if (const mob_status_t status = check_not_null(call, transfer, "the description")) return status;
  return api::run_transfer(call, *transfer, mode, handle);
}

Completion& completion_of(mob_handle_t handle) {
  return engine::engine_of_handle(handle).completion();
}

mob_status_t check_list(const char* call, const mob_handle_t* handles, size_t count) {
  if (const mob_status_t status = check_live(call)) return status;
  if (count > SIZE_MAX / sizeof *handles) {
    return base::fail(MOB_ERR_RANGE, "%s: %zu handles are more than any memory has", call, count);
  }
  return count == 0 ? MOB_OK : check_not_null(call, handles, "the list of handles");
}

mob_status_t wait_one(const char* call, mob_handle_t* handle) {
  if (*handle == MOB_HANDLE_DONE) return MOB_OK;
  return api::without_exceptions(call, [&] {
    bool done = false;
    const mob_status_t status = completion_of(*handle).wait(call, *handle, &done);
    if (done) *handle = MOB_HANDLE_DONE;
    return status;
  });
}

// Tests each handle; `indices` gets those that became complete.
mob_status_t test_each(const char* call, std::span<mob_handle_t> handles, size_t most,
                       size_t* indices, size_t* completed) {
  *completed = 0;
  mob_status_t first_error = MOB_OK;
  for (size_t i = 0; i < handles.size() && *completed < most; ++i) {
    if (handles[i] == MOB_HANDLE_DONE) continue;
    bool done = false;
    const mob_status_t status = completion_of(handles[i]).test(call, handles[i], &done);
    if (first_error == MOB_OK) first_error = status;
    if (status == MOB_ERR_HANDLE && !done) return status;
    if (!done) continue;
    handles[i] = MOB_HANDLE_DONE;
    indices[(*completed)++] = i;
  }
  return first_error;
}

// Waits until test_each() finds a complete one, or fails.
mob_status_t wait_each(const char* call, std::span<mob_handle_t> handles, size_t most,
                       size_t* indices, size_t* completed) {
  *completed = 0;
  if (std::ranges::all_of(handles, [](mob_handle_t h) { return h == MOB_HANDLE_DONE; })) {
    return MOB_OK;
  }
  return api::without_exceptions(call, [&] {
    mob_status_t outcome = MOB_OK;
    engine::AnyPeerWatch watch(engine::engine().peers(), call);
    const mob_status_t status = engine::engine().waiter().wait_until(
        [&] {
          outcome = test_each(call, handles, most, indices, completed);
          return outcome != MOB_OK || *completed > 0;
        },
        &watch);
    return status != MOB_OK ? status : outcome;
  });
}

}  // namespace

mob_status_t mob_transfer(const mob_transfer_t* transfer) {
  return run("mob_transfer", transfer, Mode::kBlocking, nullptr);
}

mob_status_t mob_transfer_nb(const mob_transfer_t* transfer, mob_handle_t* handle) {
  if (const mob_status_t status = check_not_null("mob_transfer_nb", handle, "the handle")) {
    return status;
  }
  return run("mob_transfer_nb", transfer, Mode::kHandle, handle);
}

mob_status_t mob_transfer_nbi(const mob_transfer_t* transfer) {
  return run("mob_transfer_nbi", transfer, Mode::kImplicit, nullptr);
}

mob_status_t mob_wait(mob_handle_t* handle) {
  if (const mob_status_t status = check_live("mob_wait")) return status;
  if (const mob_status_t status = check_not_null("mob_wait", handle, "the handle")) return status;
  return wait_one("mob_wait", handle);
}

mob_status_t mob_test(mob_handle_t* handle, int* done) {
  if (const mob_status_t status = check_live("mob_test")) return status;
  if (const mob_status_t status = check_not_null("mob_test", handle, "the handle")) return status;
  if (const mob_status_t status = check_not_null("mob_test", done, "the result")) return status;
  bool complete = *handle == MOB_HANDLE_DONE;
  if (!complete) {
    const mob_status_t status = api::without_exceptions("mob_test", [&] {
      engine::engine().waiter().issue_recorded();
      engine::engine_of_handle(*handle).waiter().poll();
      return completion_of(*handle).test("mob_test", *handle, &complete);
    });
    if (complete) *handle = MOB_HANDLE_DONE;
    if (status != MOB_OK) return status;
  }
  *done = complete ? 1 : 0;
  return MOB_OK;
}

mob_status_t mob_wait_all(mob_handle_t* handles, size_t count) {
  if (const mob_status_t status = check_list("mob_wait_all", handles, count)) return status;
  mob_status_t first_error = MOB_OK;
  for (size_t i = 0; i < count; ++i) {
    const mob_status_t status = wait_one("mob_wait_all", &handles[i]);
    if (first_error == MOB_OK) first_error = status;
  }
  return first_error;
}

mob_status_t mob_wait_any(mob_handle_t* handles, size_t count, size_t* index) {
  if (const mob_status_t status = check_list("mob_wait_any", handles, count)) return status;
  if (const mob_status_t status = check_not_null("mob_wait_any", index, "the result")) {
    return status;
  }
  size_t found = count;
  size_t completed = 0;
  const mob_status_t status = wait_each("mob_wait_any", {handles, count}, 1, &found, &completed);
  if (status == MOB_OK || completed > 0) *index = found;
  return status;
}

mob_status_t mob_wait_some(mob_handle_t* handles, size_t count, size_t* indices,
                           size_t* completed) {
  if (const mob_status_t status = check_list("mob_wait_some", handles, count)) return status;
  if (const mob_status_t status = check_not_null("mob_wait_some", completed, "the number")) {
    return status;
  }
  if (count > 0) {
    const mob_status_t status = check_not_null("mob_wait_some", indices, "the list of indices");
    if (status != MOB_OK) return status;
  }
  return wait_each("mob_wait_some", {handles, count}, count, indices, completed);
}
