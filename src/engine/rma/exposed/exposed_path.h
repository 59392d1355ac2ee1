// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Puts and gets on exposed memory of local peers that this process has not mapped. The kernel
// copies (cross-memory attach), or the target while one of its threads waits (delegation.h), or a
// handler of the target (request_path.h).

#include <mobius/job.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "engine/rma/delegation.h"
#include "engine/rma/exposed/exposed_tuning.h"
#include "engine/rma/operation.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class CompletionSignals;
class Exposures;
class KernelCopy;
class RequestPath;
class Segment;

// Any thread.
class ExposedPath {
 public:
  ExposedPath(Segment& segment, KernelCopy& kernel_copy, Exposures& exposures,
              Delegation& delegation, CompletionSignals& signals, RequestPath& requests)
      : segment_(segment),
        kernel_copy_(kernel_copy),
        exposures_(exposures),
        delegation_(delegation),
        signals_(signals),
        requests_(requests) {}

  // Whether all of the target's bytes are exposed, or mapped here.
  bool is_exposed(mob_rank_t rank, const transport::Shape& shape);

  // Chooses the cheapest path to exposed memory that is not all mapped here.
  void find_route(const mob_transfer_t& transfer, const transport::Shape& shape,
                  const Notice& notice, Route* route);

  // Copies one contiguous range of exposed memory without a description. False: nothing was done,
  // take another path.
  bool copy_covered(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes, bool put);

  // Carries out an operation whose path is Path::kCma.
  mob_status_t carry(const Operation& operation);

  // Asks the target to carry it out while it waits, and announces it when it is done.
  Delegation::Outcome ask_waiting_target(const Operation& operation);

  // Has the kernel copy, and announces the operation. If the kernel refuses, a handler of the
  // target carries it out.
  mob_status_t carry_by_kernel(const Operation& operation);

  // Puts `count` contiguous ranges, each of them even if another fails. Returns the first error.
  mob_status_t put(mob_rank_t rank, const mob_span_t* remote, const mob_span_t* local,
                   size_t count);

 private:
  static size_t kernel_time(mob_kind_t kind, const transport::Shape& shape, bool may_read_gaps);
  bool copy_attended(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes, bool put);
  bool is_attended_range(const Operation& operation);

  Segment& segment_;
  KernelCopy& kernel_copy_;
  Exposures& exposures_;
  Delegation& delegation_;
  CompletionSignals& signals_;
  RequestPath& requests_;
  ExposedTuning tuning_;
};

}  // namespace mobius::engine
