// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Where every operation that is not done inline is decided: by loads and stores, by the kernel, by
// a waiting target, by a request, or over the network.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "base/settings.h"
#include "engine/common/instrumentation.h"
#include "engine/rma/completion_signals.h"
#include "engine/rma/deferred_access.h"
#include "engine/rma/delegation.h"
#include "engine/rma/exposed_batch.h"
#include "engine/rma/exposed_path.h"
#include "engine/rma/exposures.h"
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

// One stretch and the words that it changes: what a short transfer needs of mob_transfer_t, which
// is long enough for its zeros to be felt. Words may be null.
struct Telling {
  bool is_put;
  mob_signal_op_t signal_op;
  mob_rank_t rank;
  void* remote;
  void* local;
  size_t bytes;
  uint64_t* signal;  // the target's
  uint64_t signal_value;
  uint64_t* origin_word;
  uint64_t* completion_word;
};

// The description of one stretch.
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

// Checks and routes operations, and is the last carrier of the chain: the one that moves bytes.
class Router final : private Carrier {
 public:
  // The paths that an operation may take, and what the router asks to choose one.
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

  // Puts the hooks of the settings in front; before anything is carried. close() lets them report
  // if there was a job at all; nothing is carried any more.
  mob_status_t open(const base::Settings& settings);
  void close(bool report);

  // Runs one transfer. `*handle` is written in mode kHandle only.
  mob_status_t run(const char* call, const mob_transfer_t& transfer, Mode mode, uint64_t* handle);

  // Where bytes of a rank of the job are here, if a caller may copy them at once; else null.
  void* reach(mob_rank_t rank, const void* remote, size_t bytes) {
    return hooked() || !paths_.segment.peers().is_here(rank)
               ? nullptr
               : paths_.segment.reach(rank, remote, bytes);
  }

  // Puts or gets one stretch that reach() does not find: by the scheduler to another host, by the
  // kernel or a waiting target on this one, and else as run(). A value is one of 1 to 16 bytes that
  // is not split. With "nbi" it is only started.
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

  // Runs one update of a word that is the target's, on the way that its members say.
  mob_status_t run(const WordUpdate& update) { return first_->update(update); }

  // Puts or gets one stretch of exposed memory on the shortest way, without a description. False if
  // that is not how it goes; run() knows why.
  bool copy_exposed(mob_rank_t rank, const void* remote, const void* local, size_t bytes,
                    bool put) {
    paths_.exposed_batch.issue();
    const auto start = reinterpret_cast<uintptr_t>(remote);
    return paths_.kernel_copy.allowed() && !hooked() && local != nullptr &&
           paths_.exposed.copy_covered(rank, start, local, bytes, put);
  }

  // Whether such a put that is only started goes like one that is not.
  bool puts_go_alone() { return paths_.exposed_batch.lets_go_alone(); }

  // Issues puts to exposed memory that were only recorded. Any thread; never waits.
  void issue_exposed() { paths_.exposed_batch.issue(); }

  // Puts or gets one stretch that is mapped here, and tells who is to be told: words, no counters.
  // All of it or nothing; false if that is not how it goes, and run() knows why.
  bool copy_and_tell(const Telling& telling);

  // Puts, gets or accumulates a box of one dimension, and not too many bytes, that is mapped here
  // and of which nobody is told. False if that is not what it is, or anything is wrong; run() knows
  // why.
  bool run_rows(const mob_transfer_t& transfer);

  // Accumulates a few elements that lie in one piece and are mapped here, without a description.
  // False if that is not how it goes; run() knows why.
  bool accumulate_few(mob_rank_t rank, void* remote, const void* local, size_t count,
                      const transport::Combination& what);

  // mob_fence() where it is not a fence of this processor alone.
  mob_status_t fence();

  // The transfers that the calling thread has started come, at every target of another host, before
  // what it sends to that target next. Waits for nothing that goes the same way.
  mob_status_t order_transfers() {
    if (Completion::none_under_way()) [[likely]] {
      return MOB_OK;
    }
    return fence();
  }

  // Pushes on what is under way; whether there was anything to do.
  bool poll() { return hooked() && first_->progress(); }

  // Whether operations must come here rather than be done on the spot by their callers.
  bool hooked() const { return first_ != this; }
  // Whether they may be carried out in another order, and by another thread.
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
