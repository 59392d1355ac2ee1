// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Chooses the path of every operation that is not inlined: loads and stores, the kernel, a waiting
// target, a request, or the network.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "base/settings.h"
#include "engine/common/instrumentation.h"
#include "engine/rma/completion_signals.h"
#include "engine/rma/deferred_access.h"
#include "engine/rma/delegation.h"
#include "engine/rma/exposed/exposed_batch.h"
#include "engine/rma/exposed/exposed_path.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/rma/local_execute.h"
#include "engine/rma/operation.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/segment.h"
#include "engine/transfer/hooks/chain.h"
#include "transport/shm/accumulate.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class AmRma;
class Completion;
class Progress;
class Scheduler;

// One contiguous range and the words to notify: the fields of mob_transfer_t that a short transfer
// needs. Zeroing all of mob_transfer_t would take noticeable time. Words may be null.
struct Telling {
  bool is_put;
  mob_signal_op_t signal_op;
  mob_rank_t rank;
  void* remote;
  void* local;
  size_t bytes;
  uint64_t* signal;  // in the target
  uint64_t signal_value;
  uint64_t* origin_word;
  uint64_t* completion_word;
};

// The description of one contiguous range.
inline mob_transfer_t contiguous(mob_kind_t kind, mob_rank_t rank, const void* remote,
                                 const void* local, size_t bytes) {
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.rank = rank;
  transfer.remote = const_cast<void*>(remote);
  transfer.local = const_cast<void*>(local);
  transfer.bytes = bytes;
  return transfer;
}

// Checks and routes operations. It is also the last carrier of the chain, which moves the bytes.
class Router final : private Carrier {
 public:
  // The paths of operations, and the components that the router asks to choose one.
  struct Paths {
    Segment& segment;
    KernelCopy& kernel_copy;
    Completion& completion;
    Progress& progress;
    CompletionSignals& signals;
    Exposures& exposures;
    Delegation& delegation;
    LocalExecutor& local;
    ExposedPath& exposed;
    ExposedBatch& exposed_batch;
    DeferredAccess& deferred;
    AmRma& requests;
    Scheduler& scheduler;
  };

  Router(const Paths& paths, Instrumentation& instrumentation)
      : paths_(paths), hooks_(instrumentation) {}

  // open() puts the hooks of the settings in front, before anything is carried. close() lets them
  // report if there was a job; nothing may be carried afterwards.
  mob_status_t open(const base::Settings& settings);
  void close(bool report);

  // Runs one transfer. `*handle` is written in mode kHandle only.
  mob_status_t run(const char* call, const mob_transfer_t& transfer, Mode mode, uint64_t* handle);

  // Pointer here to bytes of a rank of the job, if the caller may copy them at once; else null.
  void* reach(mob_rank_t rank, const void* remote, size_t bytes) {
    return hooked() || !paths_.segment.peers().is_here(rank)
               ? nullptr
               : paths_.segment.reach(rank, remote, bytes);
  }

  // Put or get one contiguous range that reach() does not find: through the scheduler to another
  // host, by the kernel or a waiting target on this host, or else as run(). A value has 1 to 16
  // bytes and is not split. "nbi" starts an implicit operation.
  mob_status_t put_unmapped(const char* call, mob_rank_t rank, void* remote, const void* local,
                            size_t bytes);
  mob_status_t get_unmapped(const char* call, mob_rank_t rank, const void* remote, void* local,
                            size_t bytes);
  mob_status_t put_unmapped_nbi(const char* call, mob_rank_t rank, void* remote, const void* local,
                                size_t bytes);
  mob_status_t get_unmapped_nbi(const char* call, mob_rank_t rank, const void* remote, void* local,
                                size_t bytes);
  mob_status_t put_unmapped_value(const char* call, mob_rank_t rank, void* remote,
                                  const void* value, size_t bytes);
  mob_status_t get_unmapped_value(const char* call, mob_rank_t rank, const void* remote,
                                  void* value, size_t bytes);

  // Runs one update of a target's word; its members tell the path.
  mob_status_t run(const WordUpdate& update) { return first_->update(update); }

  // Puts or gets one contiguous range of exposed memory on the shortest path, without a
  // description. False: nothing was done; run() finds out why.
  bool copy_exposed(mob_rank_t rank, const void* remote, const void* local, size_t bytes,
                    bool put) {
    paths_.exposed_batch.issue();
    const auto start = reinterpret_cast<uintptr_t>(remote);
    return paths_.kernel_copy.allowed() && !hooked() && local != nullptr &&
           paths_.exposed.copy_covered(rank, start, local, bytes, put);
  }

  // Whether the next implicit put of that kind is to be carried out like a blocking one.
  bool puts_go_alone() { return paths_.exposed_batch.lets_go_alone(); }

  // Issues recorded puts to exposed memory. Any thread; never waits.
  void issue_exposed() { paths_.exposed_batch.issue(); }

  // Puts or gets one contiguous range that is mapped here, and notifies words (no counters). False:
  // nothing was done; run() finds out why.
  bool copy_and_tell(const Telling& telling);

  // Puts, gets or accumulates a box of one dimension and moderate size that is mapped here, without
  // notification. False: nothing was done, because it is no such box or is erroneous; run() finds
  // out why.
  bool run_rows(const mob_transfer_t& transfer);

  // Accumulates a few contiguous elements that are mapped here, without a description. False:
  // nothing was done; run() finds out why.
  bool accumulate_few(mob_rank_t rank, void* remote, const void* local, size_t count,
                      const transport::Combination& what);

  // mob_fence() in cases where a processor fence is not enough.
  mob_status_t fence();

  // At every target of another host, orders the transfers that the calling thread has started
  // before anything that it sends to that target next. Does not wait for transfers that use the
  // same path.
  mob_status_t order_transfers() {
    if (Completion::none_under_way()) [[likely]] {
      return MOB_OK;
    }
    return fence();
  }

  // Advances pending operations; true if there was anything to do.
  bool poll() { return hooked() && first_->progress(); }

  // Whether callers must pass operations to the router instead of carrying them out themselves.
  bool hooked() const { return first_ != this; }
  // Whether operations may be carried out in another order, and by another thread.
  bool reorders() const { return hooks_.reorders(); }

 private:
  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;
  mob_status_t order() override { return order_for("mob_fence"); }
  bool progress() override { return false; }

  mob_status_t order_for(const char* call);
  mob_status_t update_by_target(const WordUpdate& update);
  bool reach_all(mob_rank_t rank, const transport::Shape& shape, ptrdiff_t* delta);
  mob_status_t prepare(const char* call, const mob_transfer_t& transfer, Operation* operation);
  mob_status_t explain(const char* call, mob_rank_t rank, const transport::Shape& shape);

  const Paths paths_;
  HookChain hooks_;
  Carrier* first_ = this;
};

}  // namespace mobius::engine
