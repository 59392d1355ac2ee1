// SPDX-License-Identifier: BSD-3-Clause
#include "job/host_group.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "base/status.h"
#include "job/local_protocol.h"

namespace mobius::job {
namespace {

using base::fail;

// The datagram that accompanies a descriptor. The key keeps a process of another job of the same
// user from passing one to us by mistake.
struct DescriptorMessage {
  uint32_t magic = kProtocolMagic;
  char key[kKeyDigits] = {};
};

}  // namespace

mob_status_t HostGroup::open(ControlBlock* block, mob_rank_t index, const std::string& key,
                             const os::WaitPolicy& policy) {
  block_ = block;
  index_ = index;
  key_ = key;
  policy_ = policy;
  if (size() > 1) {
    sockaddr_un address{};
    const socklen_t length = socket_address(key_, index_, &address);
    if (const mob_status_t status = socket_.bind_datagram(address, length)) {
      close();
      return status;
    }
  }
  block_->slot(index_).pid.store(getpid(), std::memory_order_relaxed);
  return MOB_OK;
}

void HostGroup::close() {
  socket_.close();
  if (block_ != nullptr) control_unmap(block_);
  block_ = nullptr;
}

void HostGroup::barrier() {
  if (size() == 1) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  BarrierBlock& shared = block_->barrier;
  const uint32_t generation = shared.generation.load(std::memory_order_relaxed);
  const uint32_t before = shared.arrived.fetch_add(1, std::memory_order_seq_cst);
  if (before + 1 == static_cast<uint32_t>(size())) {
    shared.arrived.store(0, std::memory_order_relaxed);
    // Release pairs with the acquire in wait_while_equal(): the reset above and everything that any
    // process wrote before arriving is visible to those who leave.
    shared.generation.store(generation + 1, std::memory_order_release);
    os::wake_all(shared.generation, shared.sleepers);
  } else {
    os::wait_while_equal(shared.generation, generation, shared.sleepers, policy_);
  }
}

mob_status_t HostGroup::agree(mob_status_t mine, const char* what) {
  const std::vector<mob_status_t> all = exchange(mine);
  if (mine != MOB_OK) return mine;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != MOB_OK) {
      return fail(MOB_ERR_PEER, "%s failed here because it failed at host-mate %zu with %s", what,
                  i, mob_status_name(all[i]));
    }
  }
  return MOB_OK;
}

mob_status_t HostGroup::share_descriptor(int mine, int* received) {
  DescriptorMessage message;
  key_.copy(message.key, kKeyDigits);
  if (index_ == 0) {
    for (mob_rank_t i = 1; i < size(); ++i) {
      sockaddr_un address{};
      const socklen_t length = socket_address(key_, i, &address);
      const mob_status_t status = socket_.send_to(address, length, &message, sizeof message, mine);
      if (status != MOB_OK) return status;
    }
    return MOB_OK;
  }
  while (true) {
    DescriptorMessage got;
    int descriptor = -1;
    if (const mob_status_t status = socket_.receive(&got, sizeof got, &descriptor)) return status;
    const bool ours = got.magic == message.magic && std::string_view(got.key, kKeyDigits) ==
                                                        std::string_view(message.key, kKeyDigits);
    if (ours && descriptor >= 0) {
      *received = descriptor;
      return MOB_OK;
    }
    if (descriptor >= 0) ::close(descriptor);
  }
}

}  // namespace mobius::job
