// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/threads.h>

#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "api/check.h"
#include "job/control.h"
#include "os/file/held_descriptor.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using base::fail;

namespace {

void run_seat(const engine::ThreadSeat& seat, void (*run)(void*), void* argument) {
  engine::take_seat(&seat);
  run(argument);
  engine::take_seat(nullptr);
}

// The threads that run would wait for the missing ones for ever, so the call cannot return.
void abort_if_any_runs(const std::vector<std::thread>& threads, const std::exception& error) {
  if (!threads.empty()) mob_abort(1, error.what());
}

mob_status_t run_seats(int segment, job::ControlBlock& control, mob_rank_t size, void (*run)(void*),
                       void* argument) {
  engine::Mappings mappings;
  std::vector<engine::ThreadSeat> seats(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(seats.size());
  try {
    for (mob_rank_t rank = 0; rank < size; ++rank) {
      engine::ThreadSeat& seat = seats[static_cast<size_t>(rank)];
      seat = {segment, &control, rank, size, &mappings};
      threads.emplace_back(run_seat, std::cref(seat), run, argument);
    }
  } catch (const std::bad_alloc& error) {
    abort_if_any_runs(threads, error);
    throw;
  } catch (const std::system_error& error) {
    abort_if_any_runs(threads, error);
    return fail(MOB_ERR_SYSTEM, "mob_threads_run: %s", error.what());
  }
  for (std::thread& thread : threads) thread.join();
  return MOB_OK;
}

}  // namespace

mob_status_t mob_threads_run(mob_rank_t size, void (*run)(void*), void* argument) {
  constexpr const char* kCall = "mob_threads_run";
  if (const mob_status_t status =
          api::check_not_null(kCall, reinterpret_cast<void*>(run), "the function to run")) {
    return status;
  }
  if (mob_size_ != 0) {
    return fail(MOB_ERR_STATE, "%s: called while this process takes part in a job", kCall);
  }
  if (size < 1 || size > job::kMostLocalPeers) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d ranks; there can be 1 to %d", kCall, size,
                job::kMostLocalPeers);
  }
  int segment = -1;
  if (const mob_status_t status = job::control_create(size, &segment)) return status;
  job::ControlBlock* control = nullptr;
  os::HeldDescriptor held(segment);
  mob_status_t status = job::control_map(segment, &control);
  if (status == MOB_OK) {
    status = api::without_exceptions(
        kCall, [&] { return run_seats(segment, *control, size, run, argument); });
    job::control_unmap(control);
  }
  return status;
}

mob_status_t mob_threads_act_for(mob_rank_t rank) { return engine::act_for(rank); }
