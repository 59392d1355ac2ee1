// SPDX-License-Identifier: BSD-3-Clause

// The endpoint of programs that link this file: one of a FakeFabric.

#include <cstdlib>
#include <cstring>
#include <memory>

#include "fake_fabric.h"
#include "transport/ofi/endpoint.h"

namespace mobius::transport::ofi {

struct Endpoint::State {
  FakeFabric::Node* node;
};

Endpoint::Endpoint() = default;
Endpoint::~Endpoint() { close(); }

mob_status_t Endpoint::open(const Options& options, const Callbacks& callbacks) {
  state_ = std::make_unique<State>();
  state_->node = &FakeFabric::current().attach(options.card, options, callbacks);
  return MOB_OK;
}

void Endpoint::close() {
  if (state_ == nullptr) return;
  FakeFabric::current().detach(state_->node->id);
  state_.reset();
}

std::vector<unsigned char> Endpoint::address() const {
  std::vector<unsigned char> bytes(sizeof state_->node->id);
  std::memcpy(bytes.data(), &state_->node->id, bytes.size());
  return bytes;
}

mob_status_t Endpoint::add_peer(std::span<const unsigned char> address, PeerId* peer) {
  FakeFabric::Id id = 0;
  std::memcpy(&id, address.data(), sizeof id);
  *peer = static_cast<PeerId>(state_->node->peers.size());
  state_->node->peers.push_back(id);
  return MOB_OK;
}

mob_status_t Endpoint::check_security(const char*, std::span<const unsigned char>) const {
  return MOB_OK;
}

std::string Endpoint::peer_name(PeerId peer) const {
  return "endpoint " + std::to_string(state_->node->peers[peer]) + " of the fake fabric";
}

int Endpoint::try_address(std::span<const unsigned char>, int) const { return 0; }
std::string Endpoint::text_of(std::span<const unsigned char>) const { return ""; }
std::string Endpoint::advice(PeerId) const { return ""; }

void Endpoint::fail_peer(PeerId peer, const char* reason) {
  FakeFabric::current().fail_peer(*state_->node, peer, reason);
}

Posted Endpoint::send(PeerId peer, std::span<const Piece> pieces) {
  return FakeFabric::current().send(*state_->node, peer, pieces, false, 0);
}

Posted Endpoint::send_in_place(PeerId peer, std::span<const Piece> pieces, uint64_t operation) {
  return FakeFabric::current().send(*state_->node, peer, pieces, true, operation);
}

mob_status_t Endpoint::make_buffer(MessageBuffer* buffer) {
  const size_t bytes = (message_bytes() + 15) / 16 * 16;
  state_->node->buffers.emplace_back(static_cast<unsigned char*>(std::aligned_alloc(16, bytes)));
  buffer->message = state_->node->buffers.back().get();
  return MOB_OK;
}

Posted Endpoint::send_buffer(PeerId peer, size_t bytes, MessageBuffer* buffer) {
  const Piece all{buffer->message, bytes};
  const Posted posted = send(peer, std::span(&all, 1));
  // The caller gets another buffer, and must not find its bytes in it.
  if (posted == Posted::kDone) std::memset(buffer->message, 0xee, bytes);
  return posted;
}

Posted Endpoint::write(PeerId peer, const void* local, size_t bytes, uint64_t remote, uint64_t key,
                       uint64_t operation) {
  return FakeFabric::current().transfer(
      *state_->node, {peer, false, const_cast<void*>(local), bytes, remote, key, operation});
}

Posted Endpoint::write_ahead(PeerId peer, const void* local, size_t bytes, uint64_t remote,
                             uint64_t key, uint64_t operation, uint64_t note) {
  return FakeFabric::current().write_ahead(
      *state_->node, {peer, false, const_cast<void*>(local), bytes, remote, key, operation}, note);
}

Posted Endpoint::read(PeerId peer, void* local, size_t bytes, uint64_t remote, uint64_t key,
                      uint64_t operation) {
  return FakeFabric::current().transfer(*state_->node,
                                        {peer, true, local, bytes, remote, key, operation});
}

mob_status_t Endpoint::register_memory(void* start, size_t bytes, Registration* registration) {
  static uint64_t keys = 1000;
  const uint64_t key = ++keys;
  state_->node->memory[key] = {static_cast<unsigned char*>(start), bytes};
  *registration = {start, bytes, reinterpret_cast<uintptr_t>(start), key, state_->node};
  return MOB_OK;
}

void Endpoint::unregister(Registration& registration) {
  state_->node->memory.erase(registration.key);
  registration = {};
}

bool Endpoint::poll() { return state_ != nullptr && FakeFabric::current().poll(*state_->node); }
int Endpoint::descriptor() const { return -1; }
bool Endpoint::ready_to_sleep() { return false; }
size_t Endpoint::message_bytes() const { return state_->node->options.message_bytes; }
const Description& Endpoint::description() const {
  static const Description closed;
  return state_ != nullptr ? state_->node->description : closed;
}

}  // namespace mobius::transport::ofi
