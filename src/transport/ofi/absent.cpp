// SPDX-License-Identifier: BSD-3-Clause

// The endpoint of a build without network. open() fails with a reason.

#include <cstdlib>

#include "base/status.h"
#include "transport/ofi/endpoint.h"

namespace mobius::transport::ofi {

struct Endpoint::State {};

Endpoint::Endpoint() = default;
Endpoint::~Endpoint() = default;

mob_status_t Endpoint::open(const Options&, const Callbacks&) {
  return base::fail(
      MOB_ERR_SYSTEM,
      "this build of Möbius has no network: a job on several hosts needs one that was "
      "configured with -DMOBIUS_NETWORK=ON, where libfabric's headers are installed "
      "(Debian: apt-get install libfabric-dev)");
}

// Nothing below is reached, because no endpoint is ever open.
void Endpoint::close() {}
std::vector<unsigned char> Endpoint::address() const { std::abort(); }
mob_status_t Endpoint::add_peer(std::span<const unsigned char>, PeerId*) { std::abort(); }
mob_status_t Endpoint::check_security(const char*, std::span<const unsigned char>) const {
  std::abort();
}
std::string Endpoint::peer_name(PeerId) const { std::abort(); }
int Endpoint::try_address(std::span<const unsigned char>, int) const { std::abort(); }
std::string Endpoint::text_of(std::span<const unsigned char>) const { std::abort(); }
std::string Endpoint::advice(PeerId) const { std::abort(); }
void Endpoint::fail_peer(PeerId, const char*) { std::abort(); }
Posted Endpoint::send(PeerId, std::span<const Piece>) { std::abort(); }
mob_status_t Endpoint::make_buffer(MessageBuffer*) { std::abort(); }
Posted Endpoint::send_buffer(PeerId, size_t, MessageBuffer*) { std::abort(); }
Posted Endpoint::send_in_place(PeerId, std::span<const Piece>, uint64_t) { std::abort(); }
Posted Endpoint::write(PeerId, const void*, size_t, uint64_t, uint64_t, uint64_t) { std::abort(); }
Posted Endpoint::write_ahead(PeerId, const void*, size_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  std::abort();
}
Posted Endpoint::read(PeerId, void*, size_t, uint64_t, uint64_t, uint64_t) { std::abort(); }
mob_status_t Endpoint::register_memory(void*, size_t, Registration*) { std::abort(); }
void Endpoint::unregister(Registration&) { std::abort(); }
bool Endpoint::poll() { std::abort(); }
int Endpoint::descriptor() const { std::abort(); }
bool Endpoint::ready_to_sleep() { std::abort(); }
size_t Endpoint::message_bytes() const { std::abort(); }
const Description& Endpoint::description() const { std::abort(); }

}  // namespace mobius::transport::ofi
