// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Lets the tests of this folder, which are written for the world of a job, run on a team that a
// spawn, a connection or a join has made (main.cpp). The compiler includes this before each of them
// (CMakeLists.txt). On the world the calls below do what they always do. On another team, ranks are
// those in the team, which stands for the world.

#include <mobius/mobius.h>

#include <string>
#include <vector>

namespace mobius_test {

struct OnTeam {
  mob_team_t team = MOB_TEAM_WORLD;
  bool is_one_job = true;           // no member is of another job
  std::vector<mob_rank_t> numbers;  // of the members; empty: the ranks are those of the world
};
inline OnTeam on_team;

inline bool is_on_world() { return on_team.numbers.empty(); }

// The number by which calls name a member of the team. A rank that the team does not have becomes a
// number that no process has, so that tests of wrong ranks still pass wrong numbers.
inline mob_rank_t number_of(mob_rank_t rank) {
  if (is_on_world() || rank < 0) return rank;
  constexpr mob_rank_t kNone = 100'000;
  const auto member = static_cast<size_t>(rank);
  if (member < on_team.numbers.size()) return on_team.numbers[member];
  return rank < kNone ? rank + kNone : rank;
}
// The member with a number.
inline mob_rank_t member_of(mob_rank_t number) {
  if (is_on_world()) return number;
  for (size_t i = 0; i < on_team.numbers.size(); ++i) {
    if (on_team.numbers[i] == number) return static_cast<mob_rank_t>(i);
  }
  return -1;
}

// The call that errors name where a test calls `name`.
inline std::string name_on_team(const std::string& name) {
  if (is_on_world()) return name;
  if (name == "mob_mem_alloc") return "mob_team_alloc";
  return name == "mob_barrier" ? "mob_team_barrier" : name;
}

// Arguments with numbers in them, until the end of the call.
class Numbers {
 public:
  Numbers(const mob_rank_t* ranks, mob_rank_t count) : ranks_(ranks) {
    constexpr mob_rank_t kMost = 4096;
    if (is_on_world() || ranks == nullptr || count < 1 || count > kMost) return;
    for (mob_rank_t i = 0; i < count; ++i) numbers_.push_back(number_of(ranks[i]));
    ranks_ = numbers_.data();
  }
  operator const mob_rank_t*() const { return ranks_; }  // NOLINT(google-explicit-constructor)

 private:
  const mob_rank_t* ranks_;
  std::vector<mob_rank_t> numbers_;
};

class ByNumber {
 public:
  explicit ByNumber(const mob_transfer_t* transfer) : transfer_(transfer) {
    if (is_on_world() || transfer == nullptr) return;
    copy_ = *transfer;
    copy_.rank = number_of(copy_.rank);
    transfer_ = &copy_;
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const mob_transfer_t*() const { return transfer_; }

 private:
  const mob_transfer_t* transfer_;
  mob_transfer_t copy_{};
};

// The calls, without the prefix.
namespace on_team_calls {

inline mob_rank_t rank() { return is_on_world() ? mob_rank() : mob_team_rank(on_team.team); }
inline mob_rank_t size() { return is_on_world() ? mob_size() : mob_team_size(on_team.team); }
// All members are on one host.
inline mob_rank_t host_rank() { return is_on_world() ? mob_host_rank() : rank(); }
inline mob_rank_t host_size() { return is_on_world() ? mob_host_size() : size(); }
inline mob_status_t host_mate(mob_rank_t host_rank, mob_rank_t* rank) {
  if (is_on_world() || host_rank < 0 || host_rank >= size() || rank == nullptr) {
    return mob_host_mate(host_rank, rank);
  }
  *rank = host_rank;
  return MOB_OK;
}
inline mob_status_t mem_alloc(size_t bytes, mob_mem_t* mem) {
  return is_on_world() ? mob_mem_alloc(bytes, mem) : mob_team_alloc(on_team.team, bytes, 0, mem);
}
inline mob_status_t barrier() {
  return is_on_world() ? mob_barrier() : mob_team_barrier(on_team.team);
}
// The team is not to be freed, as the world is not.
inline mob_status_t team_free(mob_team_t team) {
  return mob_team_free(team == on_team.team ? MOB_TEAM_WORLD : team);
}
inline mob_status_t epoch_post(mob_epoch_t epoch, const mob_rank_t* origins, mob_rank_t count) {
  return mob_epoch_post(epoch, Numbers(origins, count), count);
}
inline mob_status_t epoch_start(mob_epoch_t epoch, const mob_rank_t* targets, mob_rank_t count) {
  return mob_epoch_start(epoch, Numbers(targets, count), count);
}
inline mob_status_t team_gather(const mob_rank_t* ranks, mob_rank_t count, mob_exchange_t exchange,
                                void* argument, mob_team_t* team) {
  return mob_team_gather(Numbers(ranks, count), count, exchange, argument, team);
}
inline mob_status_t transfer(const mob_transfer_t* args) { return mob_transfer(ByNumber(args)); }
inline mob_status_t transfer_nb(const mob_transfer_t* args, mob_handle_t* handle) {
  return mob_transfer_nb(ByNumber(args), handle);
}
inline mob_status_t transfer_nbi(const mob_transfer_t* args) {
  return mob_transfer_nbi(ByNumber(args));
}
inline int is_host_mate(mob_rank_t rank) { return mob_is_host_mate(number_of(rank)); }
inline int rank_alive(mob_rank_t rank) { return mob_rank_alive(number_of(rank)); }
inline mob_status_t ptr(mob_rank_t rank, const void* address, void** pointer) {
  return mob_ptr(number_of(rank), address, pointer);
}
inline mob_status_t flush(mob_rank_t rank) { return mob_flush(number_of(rank)); }
inline mob_status_t flush_local(mob_rank_t rank) { return mob_flush_local(number_of(rank)); }
inline mob_status_t message_send(mob_rank_t rank, unsigned id, const void* header,
                                 size_t header_bytes, const void* payload, size_t payload_bytes,
                                 const mob_notify_t* notify) {
  return mob_message_send(number_of(rank), id, header, header_bytes, payload, payload_bytes,
                          notify);
}
inline mob_status_t message_send_nb(mob_rank_t rank, unsigned id, const void* header,
                                    size_t header_bytes, const void* payload, size_t payload_bytes,
                                    const mob_notify_t* notify, mob_handle_t* handle) {
  return mob_message_send_nb(number_of(rank), id, header, header_bytes, payload, payload_bytes,
                             notify, handle);
}
inline mob_status_t message_send_nbi(mob_rank_t rank, unsigned id, const void* header,
                                     size_t header_bytes, const void* payload, size_t payload_bytes,
                                     const mob_notify_t* notify) {
  return mob_message_send_nbi(number_of(rank), id, header, header_bytes, payload, payload_bytes,
                              notify);
}
inline mob_status_t message_flush(mob_rank_t rank) { return mob_message_flush(number_of(rank)); }
inline mob_status_t notify(mob_rank_t rank) { return mob_notify(number_of(rank)); }
inline mob_status_t notify_wait(mob_rank_t rank, uint32_t* count) {
  return mob_notify_wait(number_of(rank), count);
}
inline mob_status_t put(mob_rank_t rank, void* remote, const void* local, size_t bytes) {
  return mob_put(number_of(rank), remote, local, bytes);
}
inline mob_status_t get(mob_rank_t rank, const void* remote, void* local, size_t bytes) {
  return mob_get(number_of(rank), remote, local, bytes);
}
inline mob_status_t put_nb(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                           mob_handle_t* handle) {
  return mob_put_nb(number_of(rank), remote, local, bytes, handle);
}
inline mob_status_t get_nb(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                           mob_handle_t* handle) {
  return mob_get_nb(number_of(rank), remote, local, bytes, handle);
}
inline mob_status_t put_nbi(mob_rank_t rank, void* remote, const void* here, size_t bytes) {
  return mob_put_nbi(number_of(rank), remote, here, bytes);
}
inline mob_status_t get_nbi(mob_rank_t rank, const void* remote, void* here, size_t bytes) {
  return mob_get_nbi(number_of(rank), remote, here, bytes);
}
inline mob_status_t put_signal(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                               uint64_t* signal, uint64_t value, mob_signal_op_t op) {
  return mob_put_signal(number_of(rank), remote, local, bytes, signal, value, op);
}
inline mob_status_t get_signal(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                               uint64_t* signal, uint64_t value, mob_signal_op_t op) {
  return mob_get_signal(number_of(rank), remote, local, bytes, signal, value, op);
}
inline mob_status_t put_counted(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                uint64_t* target_word, uint64_t* origin_word,
                                uint64_t* completion_word) {
  return mob_put_counted(number_of(rank), remote, local, bytes, target_word, origin_word,
                         completion_word);
}
inline mob_status_t get_counted(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                                uint64_t* target_word, uint64_t* origin_word,
                                uint64_t* completion_word) {
  return mob_get_counted(number_of(rank), remote, local, bytes, target_word, origin_word,
                         completion_word);
}
inline mob_status_t put8(mob_rank_t rank, void* remote, uint64_t value) {
  return mob_put8(number_of(rank), remote, value);
}
inline mob_status_t put4(mob_rank_t rank, void* remote, uint32_t value) {
  return mob_put4(number_of(rank), remote, value);
}
inline mob_status_t put2(mob_rank_t rank, void* remote, uint16_t value) {
  return mob_put2(number_of(rank), remote, value);
}
inline mob_status_t put1(mob_rank_t rank, void* remote, uint8_t value) {
  return mob_put1(number_of(rank), remote, value);
}
inline mob_status_t get8(mob_rank_t rank, const void* remote, uint64_t* value) {
  return mob_get8(number_of(rank), remote, value);
}
inline mob_status_t get4(mob_rank_t rank, const void* remote, uint32_t* value) {
  return mob_get4(number_of(rank), remote, value);
}
inline mob_status_t get2(mob_rank_t rank, const void* remote, uint16_t* value) {
  return mob_get2(number_of(rank), remote, value);
}
inline mob_status_t get1(mob_rank_t rank, const void* remote, uint8_t* value) {
  return mob_get1(number_of(rank), remote, value);
}
inline mob_status_t fetch_add8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_fetch_add8(number_of(rank), remote, value, old);
}
inline mob_status_t fetch_and8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_fetch_and8(number_of(rank), remote, value, old);
}
inline mob_status_t fetch_or8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_fetch_or8(number_of(rank), remote, value, old);
}
inline mob_status_t fetch_xor8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_fetch_xor8(number_of(rank), remote, value, old);
}
inline mob_status_t swap8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old) {
  return mob_swap8(number_of(rank), remote, value, old);
}
inline mob_status_t compare_swap8(mob_rank_t rank, void* remote, uint64_t expected,
                                  uint64_t desired, uint64_t* old) {
  return mob_compare_swap8(number_of(rank), remote, expected, desired, old);
}
inline mob_status_t fetch_add4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old) {
  return mob_fetch_add4(number_of(rank), remote, value, old);
}
inline mob_status_t fetch_and4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old) {
  return mob_fetch_and4(number_of(rank), remote, value, old);
}
inline mob_status_t fetch_or4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old) {
  return mob_fetch_or4(number_of(rank), remote, value, old);
}
inline mob_status_t fetch_xor4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old) {
  return mob_fetch_xor4(number_of(rank), remote, value, old);
}
inline mob_status_t swap4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old) {
  return mob_swap4(number_of(rank), remote, value, old);
}
inline mob_status_t compare_swap4(mob_rank_t rank, void* remote, uint32_t expected,
                                  uint32_t desired, uint32_t* old) {
  return mob_compare_swap4(number_of(rank), remote, expected, desired, old);
}
inline mob_status_t fetch_op(mob_rank_t rank, void* remote, mob_type_t type, mob_op_t op,
                             const void* operand, void* old) {
  return mob_fetch_op(number_of(rank), remote, type, op, operand, old);
}
inline mob_status_t accumulate(mob_rank_t rank, void* remote, const void* local, size_t count,
                               mob_type_t type, mob_op_t op) {
  return mob_accumulate(number_of(rank), remote, local, count, type, op);
}
inline mob_status_t accumulate_scaled(mob_rank_t rank, void* remote, const void* local,
                                      size_t count, mob_type_t type, const void* scale) {
  return mob_accumulate_scaled(number_of(rank), remote, local, count, type, scale);
}
inline mob_status_t fetch_accumulate(mob_rank_t rank, void* remote, const void* local, void* old,
                                     size_t count, mob_type_t type, mob_op_t op) {
  return mob_fetch_accumulate(number_of(rank), remote, local, old, count, type, op);
}
inline mob_status_t put_strided(mob_rank_t rank, void* remote, const ptrdiff_t* remote_strides,
                                const void* local, const ptrdiff_t* local_strides, size_t run_bytes,
                                const size_t* counts, int dimensions) {
  return mob_put_strided(number_of(rank), remote, remote_strides, local, local_strides, run_bytes,
                         counts, dimensions);
}
inline mob_status_t get_strided(mob_rank_t rank, const void* remote,
                                const ptrdiff_t* remote_strides, void* local,
                                const ptrdiff_t* local_strides, size_t run_bytes,
                                const size_t* counts, int dimensions) {
  return mob_get_strided(number_of(rank), remote, remote_strides, local, local_strides, run_bytes,
                         counts, dimensions);
}
inline mob_status_t accumulate_strided(mob_rank_t rank, void* remote,
                                       const ptrdiff_t* remote_strides, const void* local,
                                       const ptrdiff_t* local_strides, size_t run_bytes,
                                       const size_t* counts, int dimensions, mob_type_t type,
                                       mob_op_t op, const void* scale) {
  return mob_accumulate_strided(number_of(rank), remote, remote_strides, local, local_strides,
                                run_bytes, counts, dimensions, type, op, scale);
}
inline mob_status_t put_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                               size_t count, size_t bytes) {
  return mob_put_pieces(number_of(rank), remotes, locals, count, bytes);
}
inline mob_status_t get_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                               size_t count, size_t bytes) {
  return mob_get_pieces(number_of(rank), remotes, locals, count, bytes);
}
inline mob_status_t accumulate_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                                      size_t count, size_t bytes, mob_type_t type, mob_op_t op,
                                      const void* scale) {
  return mob_accumulate_pieces(number_of(rank), remotes, locals, count, bytes, type, op, scale);
}
inline mob_status_t access_lock(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode,
                                int* recovered) {
  return mob_access_lock(access, number_of(rank), mode, recovered);
}
inline mob_status_t access_lock_nbi(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode) {
  return mob_access_lock_nbi(access, number_of(rank), mode);
}
inline mob_status_t access_trylock(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode,
                                   int* acquired, int* recovered) {
  return mob_access_trylock(access, number_of(rank), mode, acquired, recovered);
}
inline mob_status_t access_unlock(mob_access_t access, mob_rank_t rank) {
  return mob_access_unlock(access, number_of(rank));
}
inline mob_status_t heap_address(mob_heap_t heap, mob_rank_t rank, const void* pointer,
                                 void** remote) {
  return mob_heap_address(heap, number_of(rank), pointer, remote);
}
inline mob_status_t mem_address(mob_mem_t mem, mob_rank_t rank, size_t offset, void** address) {
  return mob_mem_address(mem, number_of(rank), offset, address);
}
inline mob_status_t mem_bytes(mob_mem_t mem, mob_rank_t rank, size_t* bytes) {
  return mob_mem_bytes(mem, number_of(rank), bytes);
}
inline mob_status_t mutex_lock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank,
                               int* recovered) {
  return mob_mutex_lock(mutexes, index, number_of(rank), recovered);
}
inline mob_status_t mutex_trylock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank,
                                  int* acquired, int* recovered) {
  return mob_mutex_trylock(mutexes, index, number_of(rank), acquired, recovered);
}
inline mob_status_t mutex_unlock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank) {
  return mob_mutex_unlock(mutexes, index, number_of(rank));
}

}  // namespace on_team_calls

}  // namespace mobius_test

#undef MOB_TEAM_WORLD
#define MOB_TEAM_WORLD (mobius_test::on_team.team)
#define mob_rank mobius_test::on_team_calls::rank
#define mob_size mobius_test::on_team_calls::size
#define mob_host_rank mobius_test::on_team_calls::host_rank
#define mob_host_size mobius_test::on_team_calls::host_size
#define mob_host_mate mobius_test::on_team_calls::host_mate
#define mob_mem_alloc mobius_test::on_team_calls::mem_alloc
#define mob_barrier mobius_test::on_team_calls::barrier
#define mob_team_free mobius_test::on_team_calls::team_free
#define mob_epoch_post mobius_test::on_team_calls::epoch_post
#define mob_epoch_start mobius_test::on_team_calls::epoch_start
#define mob_team_gather mobius_test::on_team_calls::team_gather
#define mob_transfer mobius_test::on_team_calls::transfer
#define mob_transfer_nb mobius_test::on_team_calls::transfer_nb
#define mob_transfer_nbi mobius_test::on_team_calls::transfer_nbi
#define mob_is_host_mate mobius_test::on_team_calls::is_host_mate
#define mob_rank_alive mobius_test::on_team_calls::rank_alive
#define mob_ptr mobius_test::on_team_calls::ptr
#define mob_flush mobius_test::on_team_calls::flush
#define mob_flush_local mobius_test::on_team_calls::flush_local
#define mob_message_send mobius_test::on_team_calls::message_send
#define mob_message_send_nb mobius_test::on_team_calls::message_send_nb
#define mob_message_send_nbi mobius_test::on_team_calls::message_send_nbi
#define mob_message_flush mobius_test::on_team_calls::message_flush
#define mob_notify mobius_test::on_team_calls::notify
#define mob_notify_wait mobius_test::on_team_calls::notify_wait
#define mob_put mobius_test::on_team_calls::put
#define mob_get mobius_test::on_team_calls::get
#define mob_put_nb mobius_test::on_team_calls::put_nb
#define mob_get_nb mobius_test::on_team_calls::get_nb
#define mob_put_nbi mobius_test::on_team_calls::put_nbi
#define mob_get_nbi mobius_test::on_team_calls::get_nbi
#define mob_put_signal mobius_test::on_team_calls::put_signal
#define mob_get_signal mobius_test::on_team_calls::get_signal
#define mob_put_counted mobius_test::on_team_calls::put_counted
#define mob_get_counted mobius_test::on_team_calls::get_counted
#define mob_put8 mobius_test::on_team_calls::put8
#define mob_put4 mobius_test::on_team_calls::put4
#define mob_put2 mobius_test::on_team_calls::put2
#define mob_put1 mobius_test::on_team_calls::put1
#define mob_get8 mobius_test::on_team_calls::get8
#define mob_get4 mobius_test::on_team_calls::get4
#define mob_get2 mobius_test::on_team_calls::get2
#define mob_get1 mobius_test::on_team_calls::get1
#define mob_fetch_add8 mobius_test::on_team_calls::fetch_add8
#define mob_fetch_and8 mobius_test::on_team_calls::fetch_and8
#define mob_fetch_or8 mobius_test::on_team_calls::fetch_or8
#define mob_fetch_xor8 mobius_test::on_team_calls::fetch_xor8
#define mob_swap8 mobius_test::on_team_calls::swap8
#define mob_compare_swap8 mobius_test::on_team_calls::compare_swap8
#define mob_fetch_add4 mobius_test::on_team_calls::fetch_add4
#define mob_fetch_and4 mobius_test::on_team_calls::fetch_and4
#define mob_fetch_or4 mobius_test::on_team_calls::fetch_or4
#define mob_fetch_xor4 mobius_test::on_team_calls::fetch_xor4
#define mob_swap4 mobius_test::on_team_calls::swap4
#define mob_compare_swap4 mobius_test::on_team_calls::compare_swap4
#define mob_fetch_op mobius_test::on_team_calls::fetch_op
#define mob_accumulate mobius_test::on_team_calls::accumulate
#define mob_accumulate_scaled mobius_test::on_team_calls::accumulate_scaled
#define mob_fetch_accumulate mobius_test::on_team_calls::fetch_accumulate
#define mob_put_strided mobius_test::on_team_calls::put_strided
#define mob_get_strided mobius_test::on_team_calls::get_strided
#define mob_accumulate_strided mobius_test::on_team_calls::accumulate_strided
#define mob_put_pieces mobius_test::on_team_calls::put_pieces
#define mob_get_pieces mobius_test::on_team_calls::get_pieces
#define mob_accumulate_pieces mobius_test::on_team_calls::accumulate_pieces
#define mob_access_lock mobius_test::on_team_calls::access_lock
#define mob_access_lock_nbi mobius_test::on_team_calls::access_lock_nbi
#define mob_access_trylock mobius_test::on_team_calls::access_trylock
#define mob_access_unlock mobius_test::on_team_calls::access_unlock
#define mob_heap_address mobius_test::on_team_calls::heap_address
#define mob_mem_address mobius_test::on_team_calls::mem_address
#define mob_mem_bytes mobius_test::on_team_calls::mem_bytes
#define mob_mutex_lock mobius_test::on_team_calls::mutex_lock
#define mob_mutex_trylock mobius_test::on_team_calls::mutex_trylock
#define mob_mutex_unlock mobius_test::on_team_calls::mutex_unlock
