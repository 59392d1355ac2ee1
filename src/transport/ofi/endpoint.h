// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages and one-sided transfers between processes that share no memory, over libfabric.
//
// An Endpoint knows peers, not ranks: somebody else carries addresses between processes
// (address(), add_peer()), decides when to poll and when to sleep, and gives messages a meaning.
// libfabric is loaded when the first endpoint is opened (library.h); its provider and interface are
// chosen in provider.h. No header of libfabric is needed to include this one.
//
// What the caller may rely on, whatever the provider:
//  - Messages from one endpoint to another arrive once, whole and in the order of their sends. Each
//    is authenticated with the key of the job: what a stranger sends, or sends again, is dropped.
//  - Memory is bounded: a fixed pool of buffers for sending, one for receiving, and a fixed number
//  of
//    operations under way. Where there is no room a call answers kAgain; a peer that takes
//    nothing holds at most half of what is free, so that others can still be sent to. What one that
//    has failed still holds is replaced.
//  - Nothing blocks, and nothing progresses except in poll(): connections are made, messages
//    received and other processes' transfers served by it alone. Whoever waits must poll; whoever
//    sleeps must do so on descriptor(), after ready_to_sleep().
//
// Thread safety: any function from any thread, except open() and close(), which must not run beside
// another call of the same endpoint.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mobius::transport::ofi {

// How write() makes sure that bytes are visible to the target's processors when it ends.
enum class Visibility {
  kAuto,      // what the provider does itself if it can (FI_DELIVERY_COMPLETE), else kReadBack
  kReadBack,  // a write is followed by a read of one byte of it; for tests, and for providers
              // without
};

struct Options {
  std::string provider;   // as libfabric names it, e.g. "tcp;ofi_rxm"; "": the best that works
  std::string interface;  // interface or domain ("eth0", "mlx5_0"), address ("10.0.0.7", "fd00::7")
                          // or subnet ("10.0.0.0/24"); "": the fastest that is not a loopback
  size_t message_bytes = size_t{65} << 10;  // the largest message: 64 KiB and what is said of them
  size_t send_buffers = 64;                 // each of message_bytes, touched only when used
  size_t receive_buffers = 64;              // likewise
  size_t short_messages = 256;              // that the provider has copied and not sent yet
  size_t operations = 1024;                 // writes and reads under way at once
  bool allow_loopback = false;              // take 127.0.0.1 if nothing else is there, or if named
  bool prefer_loopback = false;             // … or if it is there
  unsigned char key[16] = {};               // secret of the job, the same in all its processes
  uint64_t card = 0;                        // what Callbacks::greeted() of peers gets
  Visibility visibility = Visibility::kAuto;
  bool asks_first = true;       // for tests: false sends before peers have answered, as strangers
  bool register_local = false;  // for tests: as if the provider demanded it (FI_MR_LOCAL)
};

using PeerId = uint32_t;  // counts from 0 in the order of add_peer()

struct Piece {
  const void* bytes;
  size_t count;
};

// Called by poll(), in the thread that polls, never two at a time. They may send, write, read,
// register and add peers, but neither poll() nor close().
struct Callbacks {
  void* context = nullptr;

  // A message arrived. It is aligned to 16 bytes and valid during the call.
  void (*received)(void* context, const unsigned char* message, size_t bytes) = nullptr;

  // The operation of a write(), read() or send_in_place() that gave a number other than 0 has
  // ended; `text` says why it failed and is null with MOB_OK. After a failed read its buffer holds
  // anything.
  void (*ended)(void* context, uint64_t operation, mob_status_t status, const char* text) = nullptr;

  // A peer has written here, with that note. Who sent it is not known, nor authenticated but by
  // what it takes to write: the key of registered memory, any.
  void (*noted)(void* context, uint64_t note) = nullptr;

  // One who has not been added has something to say, and is not answered before it has been. `card`
  // is what it gave open(), authenticated. Null: nobody is added for that.
  void (*greeted)(void* context, uint64_t card) = nullptr;

  // The peer cannot be reached any more; `text` names provider, address and reason. Once per peer,
  // which stays failed: what was under way to it ends with MOB_ERR_PEER, new calls give kFailed.
  void (*peer_failed)(void* context, PeerId peer, const char* text) = nullptr;
};

// Where a caller writes a message that is sent from there (make_buffer(), send_buffer()).
struct MessageBuffer {
  unsigned char* message = nullptr;  // message_bytes() of them, aligned to 16 bytes
  void* descriptor = nullptr;        // of libfabric
};

enum class Posted {
  kDone,   // under way; send(): the caller's bytes are its own again
  kAgain,  // no room, or not met yet: nothing happened; poll, then try again
  kFailed  // nothing happened; mob_last_error() of this thread says why
};

// Memory that peers may read and write. They reach the byte at `start + i` as remote address
// `base + i` with `key`: both numbers are what the owner hands to its peers.
struct Registration {
  void* start = nullptr;
  size_t bytes = 0;
  uint64_t base = 0;
  uint64_t key = 0;
  void* handle = nullptr;  // of libfabric; null: not registered
};

// What was opened, for `mobius info` and messages.
struct Description {
  std::string library;       // "libfabric 1.17"
  std::string provider;      // "tcp;ofi_rxm"
  std::string interface;     // "eth0"
  std::string address;       // "192.0.2.2:38473", as the provider writes it
  std::string memory;        // mr_mode in words of libfabric; "" if it demands nothing
  bool pins_memory = false;  // registered memory must exist, and stays in place (FI_MR_ALLOCATED)
  bool delivery_complete = false;  // the provider reports visibility itself
  bool sleeps = false;             // descriptor() is there
  bool is_stream = false;          // messages and transfers are written to TCP as they are
  bool notes_writes = false;       // write_ahead() with a note; and keys of memory are random
  size_t ahead_bytes = 0;          // most that write_ahead() takes; 0: there is no such order
  size_t inject_bytes = 0;         // messages up to this go without a buffer
};

class Endpoint {
 public:
  Endpoint();
  ~Endpoint();  // closes
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Loads libfabric, chooses provider and interface, and listens. Fails with MOB_ERR_SETTING if
  // what was asked for is not there, MOB_ERR_SYSTEM if nothing usable is, MOB_ERR_MEMORY; the text
  // says which provider was refused, why, and what to install. Closed again after a failure.
  mob_status_t open(const Options& options, const Callbacks& callbacks);

  // Drops what is under way (no callback is called) and frees everything but registrations that the
  // caller still holds, which are gone all the same. May be called when closed.
  void close();

  bool is_open() const { return state_ != nullptr; }

  // Up to 1 KiB, for peers' add_peer(). Valid until close().
  std::vector<unsigned char> address() const;

  // Makes a peer known. No connection is made, and nothing is sent, before it is first used. It has
  // to poll, and to know us or to be told of us (Callbacks::greeted), before anything goes to it.
  // MOB_ERR_ARGUMENT if the address is malformed or of another provider than ours.
  mob_status_t add_peer(std::span<const unsigned char> address, PeerId* peer);

  // "provider tcp;ofi_rxm, peer 192.0.2.3:41233 on hostb": as errors name it.
  std::string peer_name(PeerId peer) const;

  // Gives a peer up that others know to be dead, as if the network had said so: the next poll()
  // ends what is under way to it with MOB_ERR_PEER and calls peer_failed(). Local memory of reads
  // that were under way may still be written until close(), should the peer be alive after all.
  void fail_peer(PeerId peer, const char* reason);

  // Sends the pieces as one message of at most message_bytes() bytes, copying them.
  Posted send(PeerId peer, std::span<const Piece> pieces);

  // Memory for one message, the caller's until close(). MOB_ERR_MEMORY if there is none.
  mob_status_t make_buffer(MessageBuffer* buffer);
  // Sends the first `bytes` of a buffer, copying them only if they are few, and leaves the caller
  // another buffer in its place.
  Posted send_buffer(PeerId peer, size_t bytes, MessageBuffer* buffer);

  // As send(), but without a copy of the last piece where the provider allows it: that stays as it
  // is until ended(operation), or the receiver is known to have it. That a send has ended says
  // nothing of its receiver. `operation` 0: nobody is told of the end.
  Posted send_in_place(PeerId peer, std::span<const Piece> pieces, uint64_t operation);

  // Writes to, or reads from, memory that the peer registered. `local` stays as it is until
  // ended(operation); then bytes written are visible to the target's processors, and bytes read are
  // here. (Over TCP the target's poll() then says that something happened, once per write.) Not
  // ordered with one another or with messages. `operation` 0: nobody is told of success;
  // a failure still fails the peer. A range or key that the peer did not register is an error, and
  // with some providers costs the connection and thereby the peer.
  Posted write(PeerId peer, const void* local, size_t bytes, uint64_t remote, uint64_t key,
               uint64_t operation);
  // Writes before any message that is sent to the peer from then on comes there. When it has ended
  // `local` is the caller's again, which says nothing of the peer.
  // `note` is not 0, where Description::notes_writes: the peer's Callbacks::noted gets it when the
  // bytes are there.
  Posted write_ahead(PeerId peer, const void* local, size_t bytes, uint64_t remote, uint64_t key,
                     uint64_t operation, uint64_t note = 0);
  Posted read(PeerId peer, void* local, size_t bytes, uint64_t remote, uint64_t key,
              uint64_t operation);

  // Lets peers read and write [start, start + bytes). Keys are random where we may choose them.
  // Memory may be registered more than once. MOB_ERR_MEMORY when the provider has no room.
  mob_status_t register_memory(void* start, size_t bytes, Registration* registration);

  // From now on accesses fail; none may be under way. Clears `registration`. Where the provider
  // wants local memory registered, what transfers of this endpoint use goes when they have ended.
  void unregister(Registration& registration);

  // Makes progress and calls the callbacks of what ended or arrived, a bounded amount at a time.
  // One thread at a time does it; to others it returns false at once. True if anything happened:
  // then there may be more.
  bool poll();

  // Becomes readable (poll(2), epoll) when poll() may find something. -1: the provider has none.
  int descriptor() const;

  // Whether a thread may now sleep on descriptor(): false if something waits for poll() already. To
  // be called after each poll() that found nothing, before each sleep, else wake-ups are lost.
  // Other threads that poll meanwhile take events away from the sleeper, and must wake it.
  bool ready_to_sleep();

  size_t message_bytes() const;
  const Description& description() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mobius::transport::ofi
