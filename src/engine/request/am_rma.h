// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Transfers that their target carries out: on memory that the origin has not mapped, where
// cross-memory attach is refused, has no such operation (accumulates, read-modify-write), or would
// be slower.
//
// Between host-mates the origin packs what the target needs into a block of its own shared memory,
// the stage, and sends a short message; the target's progress works straight from and to the stage
// and answers. No data passes through the rings.
//
// Between hosts the data are the payload of the request and of its answer, and go from and to the
// user's memory without being packed where they are contiguous there. The answer of a get that
// cannot be sent at once is read, and packed, when it can be, or before anything is done that the
// same origin asks for and that may show. What has large runs the target moves itself, by remote
// memory access (network_bulk.h).

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

  // Readies this process to serve, and to be answered. Also called by run().
  mob_status_t require() override;

  mob_status_t run(const char* call, const mob_transfer_t& transfer, const transport::Shape& shape,
                   Mode mode, uint64_t* handle) override;

  // mob_compare_swap8() and 4 on a word of the target.
  mob_status_t compare_swap(const char* call, mob_rank_t rank, void* remote, size_t bytes,
                            uint64_t expected, uint64_t desired, uint64_t* old);

  // Starts a checked transfer of one stretch to or from another host, which `pending` is told of.
  // Never waits; the data are the user's until the answer.
  void start(const char* call, const mob_transfer_t& transfer, const transport::Shape& shape,
             Pending& pending);
  // The same by remote memory access, of one that is_bulk() as one that is only started. May wait
  // for a thread that polls.
  void start_bulk(const mob_transfer_t& transfer, Pending& pending);
  // Whether its target would most likely not be asked, of a contiguous one.
  bool goes_unasked(const mob_transfer_t& transfer) const;

  // Ends what was asked of a rank that died, with MOB_ERR_PEER. Any thread.
  void give_up(mob_rank_t rank);

  // Whether a transfer goes by remote memory access: the target moves it, some time.
  bool is_bulk(const mob_transfer_t& transfer, const transport::Shape& shape, Mode mode) const;

  // The transport says that what a note was asked of has come.
  void noted(uint64_t note) override;

  // Whether bytes are this process' to serve: allocated, or exposed and there; the error if not.
  mob_status_t check_own(const void* address, size_t bytes, bool write) const;

 private:
  struct Request;
  struct Reply;
  struct Whole;
  struct Part;
  struct Arrival;
  // What comes back; as in Outgoing.
  struct Answer {
    const void* payload;
    size_t payload_bytes;
    const LatePayload* late;
    size_t described_bytes;
    const Rkeys::Key* key;
  };
  // Of a payload that is memory of this process, and of one that is a Request and its list.
  static const LatePayload kOwnMemory;
  static const LatePayload kOwnShape;

  mob_status_t send_parts(const char* call, const mob_transfer_t& transfer,
                          const transport::Shape& shape, Whole& whole);
  mob_status_t send_box(const char* call, const mob_transfer_t& transfer,
                        const transport::Shape& shape, Whole& whole, bool last);
  mob_status_t await_room(const char* call, mob_rank_t rank, bool in_bulk);
  bool is_told_by_note(const mob_transfer_t& transfer, const transport::Shape& shape) const;
  bool is_bare(const mob_transfer_t& transfer, const transport::Shape& shape) const;
  bool can_be_bare(const mob_transfer_t& transfer, const transport::Shape& shape) const;
  bool has_key_for(const mob_transfer_t& transfer) const;
  struct RkeyLoan;
  bool write_unasked(const mob_transfer_t& transfer, const transport::Shape& shape, Whole& whole);
  mob_status_t send_bulk(const char* call, const mob_transfer_t& transfer,
                         const transport::Shape& shape, Whole& whole);
  // Two lists of one sequence of bytes.
  struct Runs {
    std::span<const mob_span_t> remote;
    std::span<const mob_span_t> local;
    size_t bytes;
    size_t even_bytes;  // of each local span, or 0 where they differ
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

  // At the target.
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

  // At the origin.
  void answered(const mob_message_t& message, mob_delivery_t* delivery);
  void take_answer(std::unique_ptr<Part> part, const char* data);

  const RequestServices services_;
  std::once_flag registered_;
  std::mutex mutex_;  // guards what follows
  uint64_t last_id_ = 0;
  std::map<uint64_t, Part*> unanswered_;  // owned, by what the requests call them
  std::map<uint64_t, uint64_t> noted_;    // those of them that are answered by a note, by that
  std::set<Part*> arriving_;              // owned: a part of the answer is here
};

}  // namespace mobius::engine
