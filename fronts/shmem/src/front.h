// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the parts of the OpenSHMEM front: errors, twins, symmetric addresses, teams and
// contexts. The front is thin: it translates symmetric addresses and PE numbers, and calls Möbius.

#include <mobius/mobius.h>

#define SHMEM_LIBRARY_  // the C functions alone
#include <pshmem.h>
#include <shmemx.h>

#include <cstddef>
#include <cstdint>

// Defines pshmem_NAME, and shmem_NAME as its weak alias.
#define SHMEM_TWIN(result, name, parameters)                                               \
  extern "C" result shmem_##name parameters __attribute__((weak, alias("pshmem_" #name))); \
  extern "C" result pshmem_##name parameters

// The whole of a team. It may have a stride (`pes` is null), or list its PEs.
struct shmem_team_ {
  mob_team_t engine;  // null: the team is not live
  int rank;           // of the calling PE
  int size;
  int start;   // PE in the world of its PE 0
  int stride;  // from PE to PE
  int* pes;    // PEs in the world, where there is no stride
  shmem_team_config_t config;

  int world_pe(int pe) const { return pes != nullptr ? pes[pe] : start + pe * stride; }
};

namespace mobius::shmem {

// The rest of a context (shmem_context_::more).
struct ContextRest {
  mob_context_t engine;
  shmem_team_t team;
};

// Ends the job: "CALL: PE n: text".
[[noreturn, gnu::format(printf, 2, 3), gnu::cold]] void die(const char* call, const char* format,
                                                            ...);
// Ends the job because a call of Möbius failed.
[[noreturn, gnu::cold]] void die_of(const char* call);

inline void check(mob_status_t status, const char* call) {
  if (__builtin_expect(status != MOB_OK, 0)) die_of(call);
}

// Ends the job outside shmem_init() ... shmem_finalize().
void check_started(const char* call);

// Returns whether SHMEM_DEBUG asks for the checks that cost time.
bool debugs();

// Returns the address that an object of the caller has in PE `pe` of the world. Ends the job if the
// object is not symmetric; messages call it `argument`.
char* place_in(const void* here, int pe, const char* call, const char* argument);
// The same, but null if the object is not symmetric, or `pe` does not have it.
char* find_in(const void* here, int pe);
// Returns the offset of an object in the heap or in its static data: the same in all PEs.
size_t offset_of(const void* here, const char* call, const char* argument);

// Converts a PE number of a context to one of the world. Ends the job if there is no such PE.
int world_pe(shmem_ctx_t ctx, int pe, const char* call);

// Makes the calling thread use a context until the end of the block.
class InContext {
 public:
  explicit InContext(shmem_ctx_t ctx) {
    if (__builtin_expect(ctx == SHMEM_CTX_DEFAULT || ctx == nullptr, 1)) return;
    before_ = mob_context_current();
    static_cast<void>(mob_context_use(static_cast<ContextRest*>(ctx->more)->engine));
    is_other_ = true;
  }
  ~InContext() {
    if (is_other_) static_cast<void>(mob_context_use(before_));
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  mob_context_t before_ = nullptr;
  bool is_other_ = false;
};

// Ends the job unless a team is live.
void check_team(shmem_team_t team, const char* call);
// The same of a context that is not the default one.
void check_context(shmem_ctx_t ctx, const char* call);
// For calls that do nothing with an invalid team or context: false for one of these. With
// SHMEM_DEBUG=1, ends the job if it was destroyed or never made.
bool is_valid(shmem_team_t team, const char* call);
bool is_valid(shmem_ctx_t ctx, const char* call);

// Parts of set-up and its end, each collective.
void open_heap(const char* call);
void close_heap();
void open_statics(const char* call);
void open_teams(const char* call);
void close_contexts(const char* call);
void close_teams();

}  // namespace mobius::shmem
