// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Transfers that a handler of the target carries out: on memory that the origin has not mapped,
// where cross-memory attach is refused, has no such operation (accumulates, read-modify-write), or
// would be slower.
//
// Between local peers the origin packs the data into a block of its own shared memory, the stage,
// and sends a short message. The target reads from and writes to the stage directly, and answers.
// No data passes through the rings.
//
// Between hosts the data are the payload of the request and of its answer. Contiguous data go from
// and to the user's memory without packing. If the answer of a get cannot be sent at once, the
// target reads and packs the data when it can, or before it carries out any operation of the same
// origin that could change them. If a transfer has large runs, the target moves them itself by
// remote memory access (network/network_rma.h).

#include <mobius/message.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "engine/network/write_observer.h"
#include "engine/progress/completion.h"
#include "engine/request/request_services.h"
#include "engine/request/rkeys.h"
#include "engine/rma/operation.h"
#include "engine/rma/request_path.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

struct LatePayload;

class AmRma final : public RequestPath, public WriteObserver {
 public:
  explicit AmRma(const RequestServices& services) : services_(services) {}

  // Readies this process to serve requests and to receive answers. Also called by run().
  mob_status_t require() override;

  mob_status_t run(const char* call, const mob_transfer_t& transfer, const transport::Shape& shape,
                   Mode mode, uint64_t* handle) override;

  // mob_compare_swap8() and mob_compare_swap4() on a word of the target.
  mob_status_t compare_swap(const char* call, mob_rank_t rank, void* remote, size_t bytes,
                            uint64_t expected, uint64_t desired, uint64_t* old);

  // Starts a checked transfer of one contiguous range to or from another host, and completes
  // `pending` in the end. Never waits; the data are the user's until the answer.
  void start(const char* call, const mob_transfer_t& transfer, const transport::Shape& shape,
             Pending& pending);
  // The same by remote memory access, for a transfer for which is_bulk() holds in a mode that does
  // not wait. May wait for a thread that polls.
  void start_bulk(const mob_transfer_t& transfer, Pending& pending);
  // Whether a contiguous transfer most likely needs no request to the target.
  bool goes_unasked(const mob_transfer_t& transfer) const;

  // Ends all requests to a dead rank with MOB_ERR_PEER. Any thread.
  void give_up(mob_rank_t rank);

  // Whether the target (or this process with a key) moves the data by remote memory access.
  bool is_bulk(const mob_transfer_t& transfer, const transport::Shape& shape, Mode mode) const;

  // Called by the transport when the bytes that `note` stands for have arrived.
  void noted(uint64_t note) override;

  // Whether bytes of this process may be accessed: they are allocated, or exposed and mapped.
  // Returns the error if not.
  mob_status_t check_own(const void* address, size_t bytes, bool write) const;

 private:
  struct Request;
  struct Reply;
  struct Whole;
  struct Part;
  struct Arrival;
  // Contents of an answer; members as in Outgoing.
  struct Answer {
    const void* payload;
    size_t payload_bytes;
    const LatePayload* late;
    size_t described_bytes;
    const Rkeys::Key* key;
  };
  // For a payload that is memory of this process, and for one that is a Request and its list.
  static const LatePayload kOwnMemory;
  static const LatePayload kOwnShape;

  mob_status_t send_parts(const char* call, const mob_transfer_t& transfer,
                          const transport::Shape& shape, Whole& whole);
  mob_status_t send_box(const char* call, const mob_transfer_t& transfer,
                        const transport::Shape& shape, Whole& whole, bool last);
  mob_status_t check_local(const char* call, const mob_transfer_t& transfer,
                           const transport::Shape& shape) const;
  mob_status_t await_room(const char* call, mob_rank_t rank, bool in_bulk);
  bool is_told_by_note(const mob_transfer_t& transfer, const transport::Shape& shape) const;
  bool is_bare(const mob_transfer_t& transfer, const transport::Shape& shape) const;
  bool can_be_bare(const mob_transfer_t& transfer, const transport::Shape& shape) const;
  bool has_key_for(const mob_transfer_t& transfer) const;
  struct RkeyLoan;
  bool write_unasked(const mob_transfer_t& transfer, const transport::Shape& shape, Whole& whole);
  mob_status_t send_bulk(const char* call, const mob_transfer_t& transfer,
                         const transport::Shape& shape, Whole& whole);
  // Two lists of the same sequence of bytes.
  struct Runs {
    std::span<const mob_span_t> remote;
    std::span<const mob_span_t> local;
    size_t bytes;
    size_t even_bytes;  // of each local span; 0 if they differ
  };
  mob_status_t send_runs(const char* call, const mob_transfer_t& transfer, const Runs& runs,
                         Whole& whole, bool last);
  mob_status_t make_stage(Part& part, size_t list_bytes, size_t data_bytes, size_t fetched_bytes);
  mob_status_t make_buffer(Part& part, size_t list_bytes, size_t data_bytes);
  void release_stage(Part& part);
  mob_status_t send_word(const char* call, mob_rank_t rank, Request& request, uint64_t* old,
                         Whole& whole);
  mob_status_t send(const char* call, mob_rank_t rank, std::unique_ptr<Part> part, Request& request,
                    const void* payload, size_t payload_bytes);
  void finish_part(Whole& whole, mob_status_t status);
  std::unique_ptr<Part> take_unanswered(uint64_t id);

  // Target.
  void serve(const mob_message_t& message, mob_delivery_t* delivery);
  void serve_staged(mob_rank_t origin, const Request& request);
  void serve_payload(const mob_message_t& message, const Request& request,
                     mob_delivery_t* delivery);
  void serve_arrival(Arrival& arrival);
  const Rkeys::Key* give_key(mob_rank_t origin, const Request& request, const void* first,
                             size_t bytes, Rkeys::Key* key);
  void serve_bulk(const mob_message_t& message, const Request& request, mob_delivery_t* delivery);
  void move_runs(const Arrival& arrival);
  void serve_get(const Arrival& arrival);
  mob_status_t check_late(const void* payload, size_t bytes) const;
  static mob_status_t read_late(void* owner, const void* payload, size_t bytes, void* to);
  static mob_status_t read_shape(void* owner, const void* payload, size_t bytes, void* to);
  static size_t refuse_late(void* header, mob_status_t status);
  mob_status_t carry_out(const Request& request, const char* list, char* data, char* fetched);
  mob_status_t carry_out_with_memory(const Request& request, const char* list, char* data,
                                     char* fetched);
  mob_status_t check_remote(const Request& request, const transport::Shape& shape) const;
  mob_status_t tell(const Request& request);
  void answer(mob_rank_t origin, const Request& request, mob_status_t status,
              const Answer& whole = {});
  void compare_swap_here(const Request& request, void* old);

  // Origin.
  void answered(const mob_message_t& message, mob_delivery_t* delivery);
  void take_answer(std::unique_ptr<Part> part, const char* data);

  const RequestServices services_;
  std::once_flag registered_;
  std::mutex mutex_;  // guards the members below
  uint64_t last_id_ = 0;
  std::map<uint64_t, Part*> unanswered_;  // owned; by request number
  std::map<uint64_t, uint64_t> noted_;    // request numbers by the note that answers them
  std::set<Part*> arriving_;              // owned: parts whose answer has begun to arrive
};

}  // namespace mobius::engine
