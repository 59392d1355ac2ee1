// SPDX-License-Identifier: BSD-3-Clause
#include "handles.h"

#include <algorithm>

namespace mobius::armci {

Handles& handles() {
  static Handles instance;
  return instance;
}

void Handles::collected(armci_hdl_t* handle, int proc) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(handle->target);
    const auto is_alike = [&](const Operation& operation) {
      return operation.proc == proc && operation.handle == MOB_HANDLE_DONE;
    };
    if (found != pending_.end() && std::ranges::any_of(found->second, is_alike)) return;
  }
  keep(handle, proc, MOB_HANDLE_DONE);
}

void Handles::complete(Operation& operation, const char* function) {
  const bool is_collected = operation.handle == MOB_HANDLE_DONE;
  check(is_collected ? mob_flush_local(operation.proc) : mob_wait(&operation.handle), function,
        operation.proc);
}

void Handles::keep(armci_hdl_t* handle, int proc, mob_handle_t operation) {
  const std::lock_guard lock(mutex_);
  auto found = pending_.find(handle->target);
  if (found == pending_.end()) {
    do {
      last_ = last_ == INT32_MAX ? 1 : last_ + 1;
    } while (pending_.count(last_) != 0);
    found = pending_.emplace(last_, std::vector<Operation>()).first;
    handle->target = last_;
  }
  found->second.push_back({proc, operation});
  any_.store(true, std::memory_order_release);
}

std::vector<Handles::Operation> Handles::take(armci_hdl_t* handle) {
  std::vector<Operation> taken;
  if (!any_.load(std::memory_order_acquire)) return taken;
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(handle->target);
  if (found == pending_.end()) return taken;
  taken = std::move(found->second);
  pending_.erase(found);
  any_.store(!pending_.empty(), std::memory_order_release);
  handle->target = kNoOperation;
  return taken;
}

void Handles::wait(armci_hdl_t* handle, const char* function) {
  for (Operation& operation : take(handle)) complete(operation, function);
}

bool Handles::test(armci_hdl_t* handle, const char* function) {
  bool complete = true;
  for (Operation& operation : take(handle)) {
    int done = 0;
    if (operation.handle == MOB_HANDLE_DONE) {
      Handles::complete(operation, function);
      continue;
    }
    check(mob_test(&operation.handle, &done), function, operation.proc);
    if (done != 0) continue;
    complete = false;
    keep(handle, operation.proc, operation.handle);
  }
  return complete;
}

void Handles::wait_process(int proc, const char* function) {
  std::vector<Operation> waited;
  if (any_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    for (auto& [number, operations] : pending_) {
      std::erase_if(operations, [&](const Operation& operation) {
        if (operation.proc != proc) return false;
        waited.push_back(operation);
        return true;
      });
    }
  }
  for (Operation& operation : waited) complete(operation, function);
  check(mob_flush_local(proc), function, proc);
}

void Handles::wait_all(const char* function) {
  std::map<int, std::vector<Operation>> waited;
  if (any_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    waited.swap(pending_);
    any_.store(false, std::memory_order_release);
  }
  for (auto& [number, operations] : waited) {
    for (Operation& operation : operations) complete(operation, function);
  }
  check(mob_flush_local_all(), function);
}

void issue(const mob_transfer_t& transfer, const Ending& ending, const char* function) {
  switch (ending.kind) {
    case Ending::kBlocking:
      check(mob_transfer(&transfer), function, transfer.rank);
      break;
    case Ending::kImplicit:
      check(mob_transfer_nbi(&transfer), function, transfer.rank);
      break;
    case Ending::kHandle: {
      if (ending.is_collected(transfer.rank)) {
        check(mob_transfer_nbi(&transfer), function, transfer.rank);
        handles().collected(ending.handle, transfer.rank);
        break;
      }
      mob_handle_t operation = MOB_HANDLE_DONE;
      check(mob_transfer_nb(&transfer, &operation), function, transfer.rank);
      handles().started(ending.handle, transfer.rank, operation);
      break;
    }
  }
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void PARMCI_INIT_HANDLE(armci_hdl_t* handle) {
  check_not_null(handle, "the handle", "ARMCI_INIT_HANDLE", -1);
  handle->target = kNoOperation;
  handle->aggregate = 0;
}

void PARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t* handle) {
  check_not_null(handle, "the handle", "ARMCI_SET_AGGREGATE_HANDLE", -1);
  handle->aggregate = 1;
}

void PARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t* handle) {
  check_not_null(handle, "the handle", "ARMCI_UNSET_AGGREGATE_HANDLE", -1);
  handle->aggregate = 0;
}

int PARMCI_Wait(armci_hdl_t* handle) {
  if (handle == nullptr) return PARMCI_WaitAll();
  handles().wait(handle, "ARMCI_Wait");
  return 0;
}

int PARMCI_Test(armci_hdl_t* handle) {
  check_not_null(handle, "the handle", "ARMCI_Test", -1);
  return handles().test(handle, "ARMCI_Test") ? 0 : 1;
}

int PARMCI_WaitProc(int proc) {
  handles().wait_process(proc, "ARMCI_WaitProc");
  return 0;
}

int PARMCI_WaitAll(void) {
  handles().wait_all("ARMCI_WaitAll");
  return 0;
}

void PARMCI_Fence(int proc) { check(mob_flush(proc), "ARMCI_Fence", proc); }
void PARMCI_AllFence(void) { check(mob_flush_all(), "ARMCI_AllFence"); }
void PARMCI_Barrier(void) { check(mob_barrier(), "ARMCI_Barrier"); }

ARMCI_TWIN(INIT_HANDLE);
ARMCI_TWIN(SET_AGGREGATE_HANDLE);
ARMCI_TWIN(UNSET_AGGREGATE_HANDLE);
ARMCI_TWIN(Wait);
ARMCI_TWIN(Test);
ARMCI_TWIN(WaitProc);
ARMCI_TWIN(WaitAll);
ARMCI_TWIN(Fence);
ARMCI_TWIN(AllFence);
ARMCI_TWIN(Barrier);

}  // extern "C"
