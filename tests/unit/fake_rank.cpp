// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <utility>

#include "base/settings.h"
#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/common/peers.h"
#include "engine/common/thread_entry.h"
#include "engine/message/send_gate.h"
#include "engine/network/network.h"
#include "engine/progress/completion.h"
#include "engine/progress/counters.h"
#include "engine/progress/progress.h"
#include "engine/progress/request_activity.h"
#include "engine/request/am_rma.h"
#include "engine/rma/completion_signals.h"
#include "engine/rma/deferred_access.h"
#include "engine/rma/exposed/exposed_batch.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/rma/local_execute.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/segment.h"
#include "engine/segment/segment_layout.h"
#include "engine/segment/window/local_heap.h"
#include "engine/segment/window/region.h"
#include "engine/segment/window/window.h"
#include "engine/transfer/router.h"
#include "fake_hosts.h"
#include "fake_job.h"
#include "job/bootstrap/directory.h"
#include "job/control.h"
#include "job/layout.h"

namespace mobius::engine {
namespace {

class FakeDirectory final : public job::Directory {
 public:
  FakeDirectory(FakeHosts& hosts, mob_rank_t rank) : hosts_(hosts), rank_(rank) {}
  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override {
    hosts_.directory()[{rank_, std::string(key)}].assign(value.begin(), value.end());
    return MOB_OK;
  }
  mob_status_t fence() override { return MOB_OK; }
  mob_status_t fetch(mob_rank_t rank, std::string_view key,
                     std::vector<unsigned char>* value) override {
    const auto found = hosts_.directory().find({rank, std::string(key)});
    value->clear();  // networks of a host, of which nobody tells here
    if (found != hosts_.directory().end()) *value = found->second;
    return MOB_OK;
  }
  bool is_dead(mob_rank_t rank) override { return hosts_.is_dead(rank); }
  bool has_left(mob_rank_t /*rank*/) override { return false; }
  void leave() override {}

 private:
  FakeHosts& hosts_;
  const mob_rank_t rank_;
};

class NoThreads final : public ThreadEntry {
 public:
  void enter() override { ADD_FAILURE() << "no thread is started"; }
};

class NothingDeferred final : public DeferredAccess {
  bool keep(const Operation& /*operation*/, mob_status_t* /*status*/) override { return false; }
  mob_status_t gain_own(const char* /*call*/) override { return MOB_OK; }
  mob_status_t complete_own(const char* /*call*/, mob_rank_t /*rank*/) override { return MOB_OK; }
};

class OpenGate final : public SendGate {
 public:
  const std::atomic<bool>& puts_wait() const override { return never_; }
  void issue_puts() override {}
  void issue_to(const char* /*call*/, mob_rank_t /*rank*/) override {}

 private:
  const std::atomic<bool> never_ = false;
};

class NoCounts final : public RemoteCounts {
 public:
  mob_status_t count(mob_rank_t /*owner*/, mob_counter_t /*counter*/) override { return MOB_OK; }
};

class AllIsAllocated final : public AllocatedMemory {
 public:
  bool holds(mob_rank_t /*rank*/, uint64_t lowest, uint64_t highest) const override {
    return lowest < highest;
  }
};

class Tells final : public TellSink {
 public:
  void serve(const mob_message_t& message) override {
    texts.emplace_back(static_cast<const char*>(message.header), message.header_bytes);
  }
  std::vector<std::string> texts;
};

// Has all ranks poll until the condition holds.
class DrivenWaiter final : public Waiter {
 public:
  DrivenWaiter(Peers& peers, Segment& segment, FakeHosts& hosts, Scheduler& scheduler,
               Messages& messages)
      : Waiter(peers, segment), hosts_(hosts), scheduler_(scheduler), messages_(messages) {}
  void issue_recorded() override { scheduler_.issue_all(); }
  bool poll() override { return messages_.serve(true); }

 private:
  Start start() override { return Start::kServe; }
  mob_status_t wait_long(Condition done, os::Watch* watch, os::Wakeup /*wakeup*/) override {
    for (int idle = 0; !done();) {
      if (hosts_.poll()) {
        idle = 0;
        continue;
      }
      // Some polls without anything: the network counts as idle only then.
      constexpr int kMostIdle = 10'000;
      if (++idle % 64 == 0 && hosts_.act_when_stuck()) idle = 0;
      if (idle % 64 == 0 && watch != nullptr) {
        if (const mob_status_t status = watch->look()) return status;
      }
      if (idle != kMostIdle) continue;
      ADD_FAILURE() << "rank " << peers_.rank() << " waits for what nobody does";
      return base::fail(MOB_ERR_SYSTEM, "the test is stuck");
    }
    return MOB_OK;
  }

  FakeHosts& hosts_;
  Scheduler& scheduler_;
  Messages& messages_;
};

}  // namespace

struct FakeRank::Parts {
  class Reports final : public PeerReports {
   public:
    explicit Reports(Parts& parts) : parts_(parts) {}
    bool has_lost(mob_rank_t rank) override { return parts_.network.is_dead(rank); }
    void watch(mob_rank_t rank) override { parts_.network.watch(rank); }
    void watch_more() override {}
    std::string fate(mob_rank_t rank) override { return parts_.network.fate(rank); }
    bool is_ending(mob_rank_t /*rank*/) override { return false; }
    bool is_at_end(mob_rank_t /*rank*/) override { return false; }

   private:
    Parts& parts_;
  };

  class Dependents final : public TransferDependents {
   public:
    explicit Dependents(Parts& parts) : parts_(parts) {}
    mob_status_t before_flush(const char* /*call*/, mob_rank_t /*target*/) override {
      return MOB_OK;
    }
    void context_changed() override {}
    void give_up(mob_rank_t rank) override {
      parts_.requests.give_up(rank);
      parts_.scheduler.give_up(rank);
      parts_.messages.give_up(rank);
    }

   private:
    Parts& parts_;
  };

  explicit Parts(FakeHosts& all) : hosts(all) {}

  FakeHosts& hosts;
  int segment_descriptor = -1;
  job::ControlBlock* control = nullptr;
  std::map<unsigned char*, Region> allocations;
  Tells tells;

  base::Settings settings;
  Reports reports{*this};
  Dependents dependents{*this};
  NoThreads threads;
  NothingDeferred deferred;
  NothingRemapped remapped;
  OpenGate gate;
  NoCounts counts;
  AllIsAllocated allocated;
  Instrumentation instrumentation;
  RequestActivity activity;
  Peers peers{reports};
  KernelCopy kernel_copy{peers};
  Segment segment{peers, remapped};
  DrivenWaiter waiter{peers, segment, hosts, scheduler, messages};
  LocalHeap local_heap{segment};
  Counters counters{segment, waiter};
  Completion completion{peers, waiter, counters, dependents};
  CompletionSignals signals{segment, waiter, counters, exposures};
  LocalExecutor executor{segment, signals};
  Exposures exposures{segment, local_heap, untouched<Delegation>(), untouched<Remaps>(), requests,
                      network, progress};
  ExposedBatch exposed_batch{completion, untouched<ExposedPath>()};
  Router router{
      {segment, kernel_copy, completion, progress, signals, exposures, untouched<Delegation>(),
       executor, untouched<ExposedPath>(), exposed_batch, deferred, requests, scheduler},
      instrumentation};
  const RequestServices request_services{peers,    segment, local_heap, waiter,          completion,
                                         progress, network, messages,   instrumentation, exposures,
                                         executor, rkeys,   scheduler};
  AmRma requests{request_services};
  Messages messages{{peers, segment, waiter, completion, counters, progress, network, kernel_copy,
                     instrumentation, activity, messages}};
  Progress progress{waiter, network, threads};
  Network network{settings, peers, waiter, progress, threads};
  Rkeys rkeys{peers, waiter, messages, network.endpoint()};
  Scheduler scheduler{{settings, peers, segment, waiter, completion, progress, network, messages,
                       instrumentation, requests, deferred, allocated}};
  BatchServer batch_server{request_services, requests, tells};
};

FakeRank::FakeRank(FakeHosts& hosts, mob_rank_t rank, std::vector<std::string> settings)
    : parts_(std::make_unique<Parts>(hosts)) {
  Parts& parts = *parts_;
  settings.insert(settings.end(),
                  {"MOBIUS_PROGRESS=poll", "MOBIUS_WINDOW_BYTES=256M", "MOBIUS_PEER_TIMEOUT_MS=0"});
  std::vector<const char*> environment;
  for (const std::string& each : settings) environment.push_back(each.c_str());
  environment.push_back(nullptr);
  const auto is_done = [](mob_status_t status) { ASSERT_EQ(status, MOB_OK) << mob_last_error(); };
  is_done(parts.settings.load(environment.data()));
  // Each rank is a host.
  std::vector<int32_t> hosts_of_ranks(static_cast<size_t>(mob_size_));
  std::iota(hosts_of_ranks.begin(), hosts_of_ranks.end(), 0);
  is_done(job::control_create(job::Layout(hosts_of_ranks), rank, &parts.segment_descriptor));
  is_done(job::control_map(parts.segment_descriptor, &parts.control));
  is_done(parts.peers.job().join_threads(parts.settings, parts.segment_descriptor, *parts.control,
                                         rank, std::make_unique<FakeDirectory>(hosts, rank)));
  auto window = std::make_shared<Window>();
  is_done(window->open_for_threads(parts.peers.host(), parts.settings));
  SegmentLayout layout;
  is_done(layout.map(parts.segment_descriptor, window->bytes() >> kChunkShift));
  is_done(SegmentLayout::reserve(parts.segment_descriptor, 0));
  parts.segment.adopt(window, layout);
  parts.segment.open_chunks();
  ProcessBlock& own = parts.segment.own_process();
  parts.progress.open(own.doorbell, parts.settings.progress_mode());
  parts.messages.open(own, parts.settings.ring_bytes(), parts.gate, parts.counts);
  parts.batch_server.open();
  is_done(parts.scheduler.open());
  is_done(parts.requests.require());
  is_done(parts.network.open(parts.messages, parts.requests));
  parts.rkeys.open(parts.settings);
}

FakeRank::~FakeRank() {
  parts_->network.close();
  parts_->messages.close();
  parts_->scheduler.close();
  parts_->segment.close();
  parts_->peers.job().abandon();
  job::control_unmap(parts_->control);
  ::close(parts_->segment_descriptor);
}

Scheduler& FakeRank::scheduler() { return parts_->scheduler; }
AmRma& FakeRank::requests() { return parts_->requests; }
Messages& FakeRank::messages() { return parts_->messages; }
Completion& FakeRank::completion() { return parts_->completion; }
Network& FakeRank::network() { return parts_->network; }
Peers& FakeRank::peers() { return parts_->peers; }
std::vector<std::string>& FakeRank::told() { return parts_->tells.texts; }
void FakeRank::poll() { parts_->waiter.poll(); }

mob_status_t FakeRank::transfer(const mob_transfer_t& transfer, Mode mode, uint64_t* handle) {
  return parts_->router.run("the test", transfer, mode, handle);
}
mob_status_t FakeRank::put(mob_rank_t to, void* remote, const void* local, size_t bytes) {
  return parts_->router.put_unmapped("the test", to, remote, local, bytes);
}
mob_status_t FakeRank::put_nbi(mob_rank_t to, void* remote, const void* local, size_t bytes) {
  return parts_->router.put_unmapped_nbi("the test", to, remote, local, bytes);
}
mob_status_t FakeRank::get(mob_rank_t from, const void* remote, void* local, size_t bytes) {
  return parts_->router.get_unmapped("the test", from, remote, local, bytes);
}
mob_status_t FakeRank::get_nbi(mob_rank_t from, const void* remote, void* local, size_t bytes) {
  return parts_->router.get_unmapped_nbi("the test", from, remote, local, bytes);
}
mob_status_t FakeRank::get_nb(mob_rank_t from, const void* remote, void* local, size_t bytes,
                              uint64_t* handle) {
  return transfer(contiguous(MOB_GET, from, remote, local, bytes), Mode::kHandle, handle);
}
mob_status_t FakeRank::wait(uint64_t handle) {
  bool done = false;
  return handle == MOB_HANDLE_DONE ? MOB_OK : parts_->completion.wait("the test", handle, &done);
}
mob_status_t FakeRank::fence() { return parts_->router.fence(); }
mob_status_t FakeRank::flush(mob_rank_t rank) {
  return parts_->completion.flush("the test", rank, true);
}

unsigned char* FakeRank::allocate(size_t bytes) {
  Region region{};
  EXPECT_EQ(make_region(parts_->segment, bytes, RegionMemory::kReserved, &region), MOB_OK)
      << mob_last_error();
  auto* const memory = static_cast<unsigned char*>(parts_->segment.local_address(region.offset));
  parts_->allocations[memory] = region;
  parts_->rkeys.allow(reinterpret_cast<uintptr_t>(memory), bytes);
  return memory;
}

void FakeRank::free(unsigned char* memory) {
  parts_->rkeys.forbid("the test", reinterpret_cast<uintptr_t>(memory));
  drop_region(parts_->segment, parts_->allocations.at(memory));
  parts_->allocations.erase(memory);
}

}  // namespace mobius::engine
