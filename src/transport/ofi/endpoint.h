// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages and one-sided transfers between processes that share no memory, over libfabric.
//
// An Endpoint knows peers, not ranks. Its caller carries addresses between processes (address(),
// add_peer()), decides when to poll and when to sleep, and gives messages a meaning. libfabric is
// loaded when the first endpoint is opened (library.h); provider.h chooses its provider and
// interface. This header needs no header of libfabric.
//
// Guarantees, whatever the provider:
// - Messages from one endpoint to another arrive once, whole and in the order of their sends. Each
//   is authenticated with the key of the job; messages of strangers and repeated messages are
//   dropped.
// - With Options::security other than off, messages are encrypted and authenticated as a whole,
//   with keys that the two endpoints alone know. A peer one of whose messages was changed on the
//   way is lost: what it sends next cannot be trusted to be complete.
// - Memory is bounded: a fixed pool of buffers for sending, one for receiving, and a fixed number
//   of operations under way. A call without room returns kAgain. A peer that accepts nothing holds
//   at most half of the free resources, so that others can still be sent to. Resources that a
//   failed peer holds are replaced.
// - No call blocks, and only poll() makes progress: it makes connections, receives messages and
//   serves transfers of other processes. A caller that waits must poll; a caller that sleeps must
//   do so on descriptor(), after ready_to_sleep().
//
// Thread safety: any function from any thread, except open() and close(), which must not run at the
// same time as another call of the same endpoint.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/settings.h"

namespace mobius::transport::ofi {

// How write() ensures that its bytes are visible to the target's processors when it ends.
enum class Visibility {
  kAuto,  // the provider ensures it if it can (FI_DELIVERY_COMPLETE), else kReadBack
  // A read of one byte follows each write; for tests, and for providers without
  // FI_DELIVERY_COMPLETE.
  kReadBack,
};

struct Options {
  std::string provider;  // as libfabric names it, e.g. "tcp;ofi_rxm"; "": the best that works
  // Interface or domain ("eth0", "mlx5_0"), address ("10.0.0.7", "fd00::7") or subnet
  // ("10.0.0.0/24"); "": the fastest that is not a loopback.
  std::string interface;
  // Subnet that is preferred to faster ones if no interface is named; "": none.
  std::string network;
  size_t message_bytes = size_t{65} << 10;  // size of the largest message: 64 KiB and its headers
  size_t send_buffers = 64;                 // each of message_bytes, touched only when used
  size_t receive_buffers = 64;              // each of message_bytes
  size_t short_messages = 256;              // copied by the provider and not sent yet
  size_t operations = 1024;                 // writes and reads under way at once
  bool allow_loopback = false;   // use 127.0.0.1 if there is no other address, or if it is named
  bool prefer_loopback = false;  // use it in any case if it exists
  unsigned char key[16] = {};    // secret of the job, the same in all its processes
  // Must be the same at all endpoints of a job. kFull: no remote memory access: write(), read() and
  // register_memory() fail.
  base::Security security = base::Security::kOff;
  uint64_t card = 0;  // Callbacks::greeted() of peers gets this
  Visibility visibility = Visibility::kAuto;
  bool asks_first = true;  // for tests: false sends before peers have answered, as strangers do
  // For tests: registers local memory as if the provider demanded it (FI_MR_LOCAL).
  bool register_local = false;
};

using PeerId = uint32_t;  // counts from 0 in the order of add_peer()
inline constexpr PeerId kNobody = UINT32_MAX;

struct Piece {
  const void* bytes;
  size_t count;
};

// poll() calls these in the thread that polls, one at a time. They may send, write, read, register
// memory and add peers, but must call neither poll() nor close().
struct Callbacks {
  void* context = nullptr;

  // A message arrived. It is aligned to 16 bytes and valid during the call. `from` is its sender;
  // without security (kOff) any process of the job may have sent it in that name, and it is kNobody
  // for one that was not added.
  void (*received)(void* context, PeerId from, const unsigned char* message,
                   size_t bytes) = nullptr;

  // The operation of a write(), read() or send_in_place() with a number other than 0 has ended.
  // `text` is the reason of a failure, null with MOB_OK. After a failed read the contents of its
  // buffer are undefined.
  void (*ended)(void* context, uint64_t operation, mob_status_t status, const char* text) = nullptr;

  // A peer has written to memory of this process, with this note. The writer is unknown, and
  // authenticated only by the fact that it has the key of some registered memory.
  void (*noted)(void* context, uint64_t note) = nullptr;

  // A process that has not been added wants to send; it gets no answer until it is added. `card` is
  // the value that it gave to open(), authenticated. Null: such processes are ignored.
  void (*greeted)(void* context, uint64_t card) = nullptr;

  // The peer cannot be reached any more; `text` names provider, address and reason. Called once per
  // peer, which stays failed: operations under way to it end with MOB_ERR_PEER, and new calls
  // return kFailed.
  void (*peer_failed)(void* context, PeerId peer, const char* text) = nullptr;
};

// A buffer in which a caller writes a message, to be sent without a copy (make_buffer(),
// send_buffer()).
struct MessageBuffer {
  unsigned char* message = nullptr;  // message_bytes() bytes, aligned to 16
  void* descriptor = nullptr;        // libfabric's
};

enum class Posted {
  kDone,   // under way; send(): the caller may reuse its bytes
  kAgain,  // no room, or the peer has not answered yet: nothing happened; poll, then try again
  kFailed  // nothing happened; mob_last_error() of this thread has the reason
};

// Memory that peers may read and write. They reach the byte at `start + i` as remote address `base
// + i` with `key`; the owner gives both numbers to its peers.
struct Registration {
  void* start = nullptr;
  size_t bytes = 0;
  uint64_t base = 0;
  uint64_t key = 0;
  void* handle = nullptr;  // libfabric's; null: not registered
};

// Facts about the open endpoint, for `mobius info` and messages.
struct Description {
  std::string library;       // "libfabric 1.17"
  std::string provider;      // "tcp;ofi_rxm"
  std::string interface;     // "eth0"
  std::string interfaces;    // "eth0 (192.0.2.2), tun0 (10.8.0.1)": all that it might use
  std::string address;       // "192.0.2.2:38473", in the provider's notation
  std::string memory;        // mr_mode in libfabric's words; "" if the provider demands nothing
  bool pins_memory = false;  // registered memory must exist, and stays in place (FI_MR_ALLOCATED)
  bool delivery_complete = false;  // the provider itself reports visibility
  bool sleeps = false;             // descriptor() exists
  bool is_stream = false;          // messages and transfers are written to TCP directly
  bool notes_writes = false;       // write_ahead() can carry a note, and keys of memory are random
  size_t ahead_bytes = 0;          // most bytes that write_ahead() takes; 0: it is not available
  size_t inject_bytes = 0;         // messages up to this size need no buffer
  std::string cipher;              // "AES-256-GCM": what this processor seals best; "" with kOff
};

class Endpoint {
 public:
  Endpoint();
  ~Endpoint();  // closes
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Loads libfabric, chooses provider and interface, and listens. Fails with MOB_ERR_SETTING if a
  // requested provider or interface does not exist, MOB_ERR_SYSTEM if none is usable, or
  // MOB_ERR_MEMORY; the text says which provider was refused, why, and what to install. After a
  // failure the endpoint is closed.
  mob_status_t open(const Options& options, const Callbacks& callbacks);

  // Drops all operations under way (without callbacks) and frees everything; registrations that the
  // caller still holds become invalid. May be called when closed.
  void close();

  bool is_open() const { return state_ != nullptr; }

  // At most 1 KiB, for peers' add_peer(). It holds the public key of this endpoint, so whatever
  // carries it must not let one process publish an address in another's name. Valid until close().
  std::vector<unsigned char> address() const;

  // Makes a peer known. No connection is made, and nothing is sent, before the peer is first used.
  // Nothing is sent to it either before it polls, and knows this endpoint or is told of it
  // (Callbacks::greeted). MOB_ERR_ARGUMENT if the address is malformed or belongs to another
  // provider.
  // MOB_ERR_SETTING if it has another Options::security.
  mob_status_t add_peer(std::span<const unsigned char> address, PeerId* peer);
  // The check of Options::security alone; `who` is the peer's name in the text.
  mob_status_t check_security(const char* who, std::span<const unsigned char> address) const;

  // "provider tcp;ofi_rxm, peer 192.0.2.3:41233 on hostb": the name for error texts.
  std::string peer_name(PeerId peer) const;

  // Asks the kernel whether a process listens at an address of another endpoint: 0, or an errno.
  // Waits for the answer. Always 0 for providers that do not work over TCP.
  int try_address(std::span<const unsigned char> address, int limit_ms) const;

  // An address of another endpoint as an error text names it: "192.0.2.3:41233 on hostb".
  std::string text_of(std::span<const unsigned char> address) const;

  // The end of an error text about a peer that has never answered, which tells the user how to
  // mend it: "; this process uses interface ...". "" for all other peers.
  std::string advice(PeerId peer) const;

  // Declares a peer dead, as if the network had reported it: the next poll() ends its operations
  // with MOB_ERR_PEER and calls peer_failed(). If the peer is alive after all, it may still write
  // to local memory of reads under way until close().
  void fail_peer(PeerId peer, const char* reason);

  // Sends the pieces as one message of at most message_bytes() bytes. Copies them.
  Posted send(PeerId peer, std::span<const Piece> pieces);

  // Gives the caller a buffer for one message, owned by the caller until close(). MOB_ERR_MEMORY if
  // there is none.
  mob_status_t make_buffer(MessageBuffer* buffer);
  // Sends the first `bytes` of a buffer, copying them only if they are few, and replaces the
  // caller's buffer by another.
  Posted send_buffer(PeerId peer, size_t bytes, MessageBuffer* buffer);

  // As send(), but without a copy of the last piece if the provider permits: that piece must stay
  // unchanged until ended(operation), or until the receiver is known to have it. The end of a send
  // says nothing about its receiver. `operation` 0: no callback.
  Posted send_in_place(PeerId peer, std::span<const Piece> pieces, uint64_t operation);

  // Writes to, or reads from, memory that the peer registered. `local` must stay until
  // ended(operation); then the bytes written are visible to the target's processors, or the bytes
  // read have arrived. (Over TCP the target's poll() then returns true once per write.) Not ordered
  // with one another or with messages. `operation` 0: no callback for a success; a failure still
  // fails the peer. A range or key that the peer did not register is an error; with some providers
  // it breaks the connection and thereby fails the peer.
  Posted write(PeerId peer, const void* local, size_t bytes, uint64_t remote, uint64_t key,
               uint64_t operation);
  // Writes, ordered before every message that is sent to the peer later. When it has ended, the
  // caller may reuse `local`; this says nothing about the peer. A `note` other than 0 needs
  // Description::notes_writes: the peer's Callbacks::noted gets it when the bytes have arrived.
  Posted write_ahead(PeerId peer, const void* local, size_t bytes, uint64_t remote, uint64_t key,
                     uint64_t operation, uint64_t note = 0);
  Posted read(PeerId peer, void* local, size_t bytes, uint64_t remote, uint64_t key,
              uint64_t operation);

  // Lets peers read and write [start, start + bytes). Keys are random if the provider lets us
  // choose them. Memory may be registered more than once. MOB_ERR_MEMORY when the provider has no
  // room.
  mob_status_t register_memory(void* start, size_t bytes, Registration* registration);

  // From now on accesses fail; none may be under way. Clears `registration`. If the provider
  // requires registered local memory, the registration stays until this endpoint's transfers that
  // use it have ended.
  void unregister(Registration& registration);

  // Makes progress and calls the callbacks of ended operations and arrived messages, a bounded
  // number per call. One thread at a time polls; for others it returns false at once. True if
  // anything happened: then there may be more.
  bool poll();

  // Becomes readable (poll(2), epoll) when poll() may find something. -1: the provider has no
  // descriptor.
  int descriptor() const;

  // Whether a thread may now sleep on descriptor(): false if something waits for poll() already.
  // Call it before each sleep, after a poll() that found nothing; otherwise wake-ups are lost. A
  // thread that polls meanwhile takes events away from the sleeper, and must wake it.
  bool ready_to_sleep();

  size_t message_bytes() const;
  const Description& description() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mobius::transport::ofi
