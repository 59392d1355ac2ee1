// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Making windows, whatever their kind: who decides whether Möbius serves one, and what all have.

#include "binding/abi.h"
#include "windows/window.h"

namespace mobius::mpi {

// A member's part of a window.
struct Offer {
  void* base = nullptr;
  uint64_t bytes = 0;
  int64_t unit = 1;
  mob_rank_t owner = -1;  // whose memory it is; -1: that of the member
  mob_rank_t rank = -1;   // of the member in the job
  int32_t can_serve = 0;
  int32_t is_copied = 0;       // as Placed::is_copied
  int32_t has_one_caller = 0;  // no two threads of the member call the MPI at once
  int32_t has_info = 0;
  uint64_t number = 0;  // no other window of the member has it
  MemberLocks* locks = nullptr;
};

// Makes a window: begin() decides together with the others, the parts of it that Möbius keeps are
// made by kind, and finish() makes the handle. One per call.
class Making {
 public:
  Making(MPI_Comm comm, MPI_Info info, int flavor) : comm_(comm), info_(info), flavor_(flavor) {}
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  ~Making();

  // False where the MPI's own window is to be made, by all members alike.
  bool begin(Offer offer, bool can_serve, const char* why_not);

  // The memory of an allocated window that was freed, if it suits all members; else null, for all.
  mob_mem_t take_spare_memory();

  Window& window() { return *window_; }
  const std::vector<Offer>& offers() const { return offers_; }

  // Gives the window to the program, if all members come here with true; false as begin().
  bool finish(bool is_ready, MPI_Win* win, int* result);

 private:
  bool exchange(const Members* kept, const Offer& mine);
  bool is_plain() const;
  bool make_parts();
  bool find_locks();
  int make_handle(MPI_Win* carrier);

  MPI_Comm comm_;
  MPI_Info info_;
  int flavor_;
  Window* window_ = nullptr;
  std::vector<Offer> offers_;
  MemberLocks* locks_ = nullptr;    // until the window has them
  Members* spare_owner_ = nullptr;  // those that the spare is of
  Spare spare_;                     // until the window has its parts
  bool are_locks_found_ = true;
  bool keeps_members_ = false;
};

// Frees what Möbius keeps of a window. Collective over it.
void release_parts(Window* window);
// Of that, its memory; no member looks at it any more.
void release_memory(Window* window);

}  // namespace mobius::mpi
