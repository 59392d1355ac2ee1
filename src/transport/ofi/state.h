// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The members of an open endpoint. endpoint.cpp opens and closes it, introduction.cpp meets peers,
// sending.cpp and transfers.cpp start operations, progress.cpp ends them.
//
// Two locks. `issue` guards everything that starting or ending an operation changes: peers,
// records, buffers, registrations. `polling` lets one thread at a time poll, and guards the
// completion queue and received data. Callbacks run with `polling` alone. A thread takes `issue`
// while it holds `polling`, never the other way round.

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "transport/ofi/channel.h"
#include "transport/ofi/endpoint.h"
#include "transport/ofi/library.h"
#include "transport/ofi/provider.h"
#include "transport/ofi/reachability.h"
#include "transport/ofi/wire.h"

namespace mobius::transport::ofi {

// Closes an object of libfabric.
struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Fid = std::unique_ptr<Object, CloseFid>;

enum class Kind : uint8_t { kReceive, kGreeting, kSend, kWrite, kWriteAhead, kRead, kReadBack };

// Scarce resources, each with a share per peer: buffers for sending, short messages that libfabric
// has copied and still holds, transfers.
enum Scarce : uint8_t { kBuffers, kShort, kTransfers, kScarce };

// A buffer of the send or receive pool.
struct Buffer {
  unsigned char* start = nullptr;
  void* descriptor = nullptr;  // of the registration that contains it, FI_MR_LOCAL
};

// An operation, or a receive buffer. libfabric holds its address while it is under way, and writes
// into `context`.
struct Record {
  fi_context2 context = {};  // first member: its address is the record's
  Kind kind = Kind::kSend;
  Scarce scarce = kBuffers;  // the resource of which it takes one
  bool ended = false;        // the caller has been told; only libfabric still holds the record
  bool replaced = false;     // its peer has failed, and its resource has been replaced
  PeerId peer = 0;
  uint64_t operation = 0;
  Buffer buffer;
  // A transfer that is larger than the provider's limit goes piece after piece; this is the piece
  // under way.
  unsigned char* local = nullptr;
  uint64_t remote = 0;
  uint64_t key = 0;
  uint64_t note = 0;
  size_t piece = 0;
  size_t left = 0;              // bytes after the piece
  fid_mr* temporary = nullptr;  // registration of `local` for this operation alone
  fid_mr* borrowed = nullptr;   // one of `registrations` instead, whose use it counts
  // Receive buffers: the count at which libfabric got it, and a message that waits for earlier
  // ones.
  uint64_t posting = 0;
  bool posted = false;
  Opened early;
  mob_status_t status = MOB_OK;
  std::string text;        // reason of a failure
  Record* next = nullptr;  // in a list of free or waiting records
};

// Linked through Record::next; first in, first out.
class RecordList {
 public:
  bool empty() const { return first_ == nullptr; }
  void push(Record* record) {
    record->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = record;
    last_ = record;
  }
  Record* pop() {
    Record* record = first_;
    if (record != nullptr) first_ = record->next;
    return record;
  }

 private:
  Record* first_ = nullptr;
  Record* last_ = nullptr;
};

struct Peer {
  fi_addr_t address = FI_ADDR_UNSPEC;
  uint64_t name = 0;          // random name of its endpoint
  uint64_t sequence = 0;      // of the last message sent to it
  size_t held[kScarce] = {};  // resources that operations to it hold
  std::string where;          // its address as text
  sockaddr_storage ip = {};   // its address, if the provider works over TCP
  Reachability reachability;
  std::unique_ptr<Channel> channel;  // null without security
  bool met = false;                  // has answered: both ends use the same connection
  bool owed = false;                 // waits for an answer that could not be sent yet
  uint64_t asks_next_ns = 0;         // when to ask it again if it has not answered
  uint64_t asks_pause_ns = 0;        // pause before the question after that
  uint64_t tries_since_ns = 0;       // since when there has been no connection to ask on, or 0
  bool failed = false;
  bool reported = false;  // peer_failed() was called
  std::string text;       // the reason of its failure
};

struct Endpoint::State {
  const Library* library = nullptr;
  Options options;
  Callbacks callbacks;
  Description description;
  uint64_t name = 0;  // random: distinguishes this endpoint from every other
  Keys keys;

  Info info;
  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_av> addresses;
  // For providers whose fi_trywait() does nothing; null for all others, whose completion queue can
  // be waited on directly.
  Fid<fid_wait> wait_set;
  Fid<fid_cq> completions;
  // Destroyed before the objects that it uses; `arenas` after all of them.
  int descriptor = -1;
  // FI_MR_LOCAL: all memory that libfabric reads or writes is registered
  bool local_registration = false;
  bool virtual_addresses = false;   // FI_MR_VIRT_ADDR
  bool bind_registrations = false;  // FI_MR_ENDPOINT
  bool choose_keys = false;         // not FI_MR_PROV_KEY
  bool read_back = false;
  bool tells_of_writes = false;  // the peer's queue reports that a write has come
  bool over_tcp = false;
  size_t largest_transfer = 0;
  size_t inject_bytes = 0;                      // including the header
  size_t header_bytes = sizeof(MessageHeader);  // of messages, not of greetings

  // Memory of buffers. The first has a byte for reads back and both pools; the others replace
  // buffers that lost peers hold.
  struct Arena {
    unsigned char* start = nullptr;
    size_t bytes = 0;
    Fid<fid_mr> registration;  // FI_MR_LOCAL
    ~Arena();
    void* descriptor() const { return registration ? fi_mr_desc(registration.get()) : nullptr; }
  };
  std::deque<Arena> arenas;  // references stay valid
  size_t buffer_bytes = 0;   // header and message
  std::vector<unsigned char> own_address;
  Fid<fid_ep> endpoint;

  std::mutex issue;
  std::deque<Peer> peers;  // references stay valid
  std::unordered_map<uint64_t, PeerId> peers_by_name;
  std::deque<Record> records;  // all records for sending and transfers
  RecordList free_records;
  std::vector<Buffer> free_buffers;  // at least free_of[kBuffers]
  size_t free_of[kScarce] = {};
  RecordList waiting;                        // libfabric had no room for their next step
  RecordList done;                           // ended without libfabric
  std::vector<PeerId> failed;                // to be reported
  std::atomic<bool> something_waits{false};  // one of the three above is not empty
  // Uses of registrations by register_memory().
  struct Uses {
    size_t operations = 0;   // operations whose local side uses it
    bool is_closed = false;  // close it when they have ended
  };
  std::unordered_map<fid_mr*, Uses> registrations;
  std::map<const unsigned char*, std::pair<size_t, fid_mr*>> registered_ranges;  // FI_MR_LOCAL

  std::mutex polling;
  std::atomic<std::thread::id> poller;  // the thread that holds it
  std::unique_ptr<Senders> senders;
  std::vector<Record> receive_records;
  RecordList unposted;  // receive buffers that libfabric had no room for
  uint64_t postings = 0;
  std::map<std::pair<uint64_t, uint64_t>, Record*> early;  // by sender and sequence
  uint64_t dropped = 0;
  size_t owed = 0;  // number of peers with `owed` set

  ~State();

  // endpoint.cpp
  std::string advice(const Peer& peer) const;
  bool closes() const;  // whether closing it is safe
  mob_status_t open();
  mob_status_t take_over_limits();  // the provider's demands and limits
  mob_status_t open_fabric();       // fabric, domain and address vector
  mob_status_t open_endpoint();     // binds and enables it, and reads its address
  void describe();
  mob_status_t make_queue();
  mob_status_t make_buffers();
  mob_status_t add_arena(size_t bytes);
  bool is_like_own(std::span<const unsigned char> address) const;
  bool ready_to_sleep();
  // Locks `polling`, unless the caller is a callback. Must be called before locking `issue`.
  std::unique_lock<std::mutex> apart_from_polling();
  mob_status_t refused(const char* what, int64_t error) const;
  bool check_peer(PeerId peer, const char* call);  // false: the error is recorded

  // Ends all operations to a peer with `text`; under `issue`.
  void fail_peer(PeerId peer, const std::string& reason);

  // Returns a free record with its resource, or null if the peer has its share; under `issue`.
  Record* take_record(Kind kind, Scarce scarce, PeerId peer, uint64_t operation);
  void give_back(Record* record);
  // Gives other peers as much as a lost peer holds, which comes back late or never; under `issue`.
  void replace_what_is_held(PeerId lost);
  bool add_buffers(size_t count);

  // Turns the result of a libfabric call that started an operation into a Posted; under `issue`.
  Posted posted(int64_t result, PeerId peer, const char* call);

  // introduction.cpp
  Posted meet(PeerId peer, const char* call);
  int64_t greet(PeerId peer, uint64_t says);
  void greeted(const Opened& opened);
  void answer(PeerId peer);
  void answer_owed();
  std::optional<PeerId> find_peer(uint64_t name);
  Senders::Known find_sender(uint64_t name);

  // sending.cpp
  Posted send(PeerId peer, std::span<const Piece> pieces, bool in_place, uint64_t operation);
  Posted send_buffer(PeerId peer, size_t bytes, MessageBuffer* buffer);
  mob_status_t make_buffer(MessageBuffer* buffer);
  bool check_message(PeerId peer, size_t bytes, const char* call);
  bool is_short(size_t bytes) const;  // including the header
  int64_t inject(const Record& record, unsigned char* packed, size_t bytes);
  int64_t post(Record& record, const MessageHeader& header, std::span<const Piece> pieces,
               bool in_place);
  Posted send_sealed(PeerId peer, std::span<const Piece> pieces, size_t bytes, uint64_t operation,
                     const char* call);

  // transfers.cpp
  Posted transfer(Kind kind, PeerId peer, unsigned char* local, size_t bytes, uint64_t remote,
                  uint64_t key, uint64_t operation, uint64_t note = 0);
  int64_t post_piece(Record* record);  // 0 or an error of libfabric
  uint64_t flags_of_write(const Record& record) const;
  int64_t post_read_back(Record* record);
  int64_t post_next(Record* record);
  fid_mr* find_registration(const unsigned char* start, size_t bytes);
  void return_borrowed(fid_mr* registration);
  mob_status_t register_range(void* start, size_t bytes, uint64_t access, fid_mr** registration);
  void forget_registration(fid_mr* registration);

  // progress.cpp
  bool poll();
  bool finish_waiting();
  void post_receives();
  void receive(Record* record, size_t bytes);
  void deliver(const Opened& opened);
  void deliver_early(uint64_t sender);
  void give_up_gaps();
  void completed(Record* record);
  void end(Record* record, mob_status_t status, const char* text);
  bool take_error();
  void drop(const char* why);
};

}  // namespace mobius::transport::ofi
