// SPDX-License-Identifier: BSD-3-Clause

#include "exercise.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace mobius_test {
namespace {

constexpr unsigned kAsk = 900;
constexpr unsigned kAnswer = 901;
constexpr unsigned kCount = 902;
constexpr unsigned kIgnored = 903;
constexpr size_t kBytes = size_t{1} << 20;

int wrong = 0;
std::atomic<uint64_t> answers = 0;
std::atomic<uint64_t> answered_sum = 0;
mob_counter_t arrived = nullptr;

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      ++wrong;                                                                                     \
      std::fprintf(stderr, "rank %d: %s:%d: %s: %s\n", mob_rank(), __FILE__, __LINE__, #condition, \
                   mob_last_error());                                                              \
    }                                                                                              \
  } while (false)
#define OK(call) EXPECT((call) == MOB_OK)

// Value that depends on the member that writes and the one that is written to.
uint64_t value_of(mob_rank_t from, mob_rank_t to) {
  return static_cast<uint64_t>(from + 1) * 1000 + static_cast<uint64_t>(to);
}

struct Members {
  explicit Members(mob_team_t all) : team(all), me(mob_team_rank(all)), size(mob_team_size(all)) {
    for (mob_rank_t i = 0; i < size; ++i) numbers.push_back(mob_team_number(all, i));
    EXPECT(numbers[static_cast<size_t>(me)] == mob_rank());
  }
  mob_rank_t number(mob_rank_t member) const { return numbers[static_cast<size_t>(member)]; }

  mob_team_t team;
  mob_rank_t me;
  mob_rank_t size;
  std::vector<mob_rank_t> numbers;
};

// Memory of all members.
struct Memory {
  Memory(const Members& members, size_t bytes) { OK(mob_team_alloc(members.team, bytes, 0, &mem)); }
  ~Memory() { OK(mob_mem_free(mem)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <typename T = uint64_t>
  T* at(mob_rank_t number, size_t offset = 0) const {
    void* address = nullptr;
    OK(mob_mem_address(mem, number, offset, &address));
    return static_cast<T*>(address);
  }
  template <typename T = uint64_t>
  T* own() const {
    return static_cast<T*>(mob_mem_local(mem));
  }

  mob_mem_t mem = nullptr;
};

void words(const Members& all) {
  const Memory memory(all, static_cast<size_t>(all.size) * sizeof(uint64_t));
  for (mob_rank_t to = 0; to < all.size; ++to) {
    void* pointer = nullptr;
    const bool is_mapped = mob_ptr(all.number(to), memory.at(all.number(to)), &pointer) == MOB_OK;
    EXPECT(is_mapped == (mob_is_host_mate(all.number(to)) == 1));
  }
  // Twice: the second time inlined.
  for (int round = 0; round < 2; ++round) {
    for (mob_rank_t to = 0; to < all.size; ++to) {
      const size_t place = static_cast<size_t>(all.me) * sizeof(uint64_t);
      OK(mob_put8(all.number(to), memory.at(all.number(to), place),
                  value_of(all.me, to) + static_cast<uint64_t>(round)));
    }
    OK(mob_team_barrier(all.team));
    for (mob_rank_t from = 0; from < all.size; ++from) {
      EXPECT(memory.own()[from] == value_of(from, all.me) + static_cast<uint64_t>(round));
      uint64_t got = 0;
      const size_t place = static_cast<size_t>(all.me) * sizeof(uint64_t);
      OK(mob_get8(all.number(from), memory.at(all.number(from), place), &got));
      EXPECT(got == value_of(all.me, from) + static_cast<uint64_t>(round));
    }
    OK(mob_team_barrier(all.team));
  }
}

void blocks(const Members& all) {
  const Memory memory(all, kBytes);
  const mob_rank_t right = (all.me + 1) % all.size;
  const mob_rank_t left = (all.me + all.size - 1) % all.size;
  std::vector<unsigned char> out(kBytes, static_cast<unsigned char>(all.me + 1));
  OK(mob_put_nbi(all.number(right), memory.at<char>(all.number(right)), out.data(), kBytes));
  OK(mob_flush(all.number(right)));
  OK(mob_team_barrier(all.team));
  EXPECT(memory.own<unsigned char>()[kBytes - 1] == static_cast<unsigned char>(left + 1));
  std::vector<unsigned char> in(kBytes);
  OK(mob_get(all.number(right), memory.at<char>(all.number(right)), in.data(), kBytes));
  EXPECT(in == out);
  OK(mob_team_barrier(all.team));
  // 100 rows of 24 bytes, 64 bytes apart.
  const ptrdiff_t there = 64;
  const ptrdiff_t here = 24;
  const size_t rows = 100;
  std::vector<unsigned char> packed(rows * 24, 0x77);
  OK(mob_put_strided(all.number(right), memory.at<char>(all.number(right)), &there, packed.data(),
                     &here, 24, &rows, 1));
  OK(mob_team_barrier(all.team));
  EXPECT(memory.own<unsigned char>()[99 * 64 + 23] == 0x77);
  EXPECT(memory.own<unsigned char>()[99 * 64 + 24] == static_cast<unsigned char>(left + 1));
  uint64_t* const word = memory.at(all.number(right), kBytes - 8);
  *memory.own<uint64_t>() = 0;
  memory.own()[kBytes / 8 - 1] = 0;
  OK(mob_team_barrier(all.team));
  OK(mob_put_signal(all.number(right), memory.at<char>(all.number(right), 4096), out.data(), 4096,
                    word, 1, MOB_SIGNAL_ADD));
  OK(mob_wait_until_u8(memory.own() + (kBytes / 8 - 1), MOB_GE, 1));
  EXPECT(memory.own<unsigned char>()[4096] == static_cast<unsigned char>(left + 1));
  OK(mob_team_barrier(all.team));
}

void atomics(const Members& all) {
  const Memory memory(all, 4096);
  constexpr uint64_t kTimes = 100;
  const mob_rank_t home = all.number(all.size - 1);
  for (uint64_t i = 0; i < kTimes; ++i) {
    uint64_t old = 0;
    OK(mob_fetch_add8(home, memory.at(home), 1, &old));
    const double one = 1.0;
    OK(mob_accumulate(home, memory.at(home, 64), &one, 1, MOB_DOUBLE, MOB_SUM));
  }
  OK(mob_team_barrier(all.team));
  uint64_t sum = 0;
  double total = 0;
  OK(mob_get8(home, memory.at(home), &sum));
  OK(mob_get(home, memory.at<double>(home, 64), &total, sizeof total));
  EXPECT(sum == kTimes * static_cast<uint64_t>(all.size));
  EXPECT(total == static_cast<double>(sum));
  OK(mob_team_barrier(all.team));
}

void on_ask(const mob_message_t* message, void* /*argument*/, mob_delivery_t* /*delivery*/) {
  uint64_t asked = 0;
  std::memcpy(&asked, message->header, sizeof asked);
  ++asked;
  if (mob_message_reply(message->token, kAnswer, &asked, sizeof asked, nullptr, 0, nullptr) !=
      MOB_OK) {
    std::fprintf(stderr, "rank %d: reply: %s\n", mob_rank(), mob_last_error());
  }
}

void on_count(const mob_message_t* /*message*/, void* /*argument*/, mob_delivery_t* delivery) {
  delivery->counter = arrived;
}

void on_answer(const mob_message_t* message, void* /*argument*/, mob_delivery_t* /*delivery*/) {
  uint64_t answer = 0;
  std::memcpy(&answer, message->header, sizeof answer);
  answered_sum += answer;
  ++answers;
}

void messages(const Members& all) {
  answers = 0;
  answered_sum = 0;
  OK(mob_team_barrier(all.team));
  uint64_t expected = 0;
  const std::vector<char> payload(100'000, 'x');
  for (mob_rank_t to = 0; to < all.size; ++to) {
    const uint64_t asked = value_of(all.me, to);
    expected += asked + 1;
    OK(mob_message_send(all.number(to), kAsk, &asked, sizeof asked, payload.data(), payload.size(),
                        nullptr));
  }
  while (answers < static_cast<uint64_t>(all.size)) OK(mob_poll());
  EXPECT(answered_sum == expected);
  OK(mob_team_barrier(all.team));
}

// A handler's counter is the program's, whichever job the message came from.
void counted_messages(const Members& all) {
  OK(mob_counter_create(&arrived));
  OK(mob_team_barrier(all.team));
  for (mob_rank_t to = 0; to < all.size; ++to) {
    OK(mob_message_send(all.number(to), kCount, nullptr, 0, nullptr, 0, nullptr));
  }
  uint64_t left = 1;
  OK(mob_counter_wait(arrived, static_cast<uint64_t>(all.size), &left));
  EXPECT(left == 0);
  OK(mob_team_barrier(all.team));
  OK(mob_counter_free(arrived));
}

// Counters of both sides, of a transfer and of a message, whichever jobs the two are of.
void counters(const Members& all) {
  const Memory memory(all, 4096);
  std::array<mob_counter_t, 3> own{};
  for (mob_counter_t& counter : own) OK(mob_counter_create(&counter));
  auto [origin, target, completion] = own;
  std::vector<void*> targets(static_cast<size_t>(all.size));
  OK(mob_publish(all.team, target, targets.data()));
  for (mob_rank_t to = 0; to < all.size; ++to) {
    const mob_notify_t notify{origin, static_cast<mob_counter_t>(targets[static_cast<size_t>(to)]),
                              completion};
    uint64_t word = value_of(all.me, to);
    mob_transfer_t transfer{};
    transfer.rank = all.number(to);
    transfer.remote = memory.at(transfer.rank, 8 * static_cast<size_t>(all.me));
    transfer.local = &word;
    transfer.bytes = sizeof word;
    transfer.origin_counter = notify.origin_counter;
    transfer.target_counter = notify.target_counter;
    transfer.completion_counter = notify.completion_counter;
    OK(mob_transfer(&transfer));
    OK(mob_transfer_nbi(&transfer));
    OK(mob_flush(transfer.rank));
    OK(mob_message_send(transfer.rank, kIgnored, nullptr, 0, nullptr, 0, &notify));
  }
  for (mob_counter_t counter : own) {
    uint64_t left = 1;
    OK(mob_counter_wait(counter, 3 * static_cast<uint64_t>(all.size), &left));
    EXPECT(left == 0);
  }
  for (mob_rank_t from = 0; from < all.size; ++from) {
    EXPECT(*memory.at(all.number(all.me), 8 * static_cast<size_t>(from)) == value_of(from, all.me));
  }
  OK(mob_team_barrier(all.team));
  for (mob_counter_t counter : own) OK(mob_counter_free(counter));
}

void locks(const Members& all) {
  const Memory memory(all, 4096);
  mob_mutexes_t mutexes = nullptr;
  mob_access_t access = nullptr;
  OK(mob_mutexes_create(all.team, 1, &mutexes));
  OK(mob_access_create(all.team, &access));
  const mob_rank_t home = all.number(all.size - 1);
  constexpr int kTimes = 30;
  for (int i = 0; i < kTimes; ++i) {
    int recovered = 0;
    uint64_t word = 0;
    OK(mob_mutex_lock(mutexes, 0, home, &recovered));
    OK(mob_get8(home, memory.at(home), &word));
    OK(mob_put8(home, memory.at(home), word + 1));
    OK(mob_mutex_unlock(mutexes, 0, home));
    OK(mob_access_lock(access, home, MOB_EXCLUSIVE, &recovered));
    OK(mob_get8(home, memory.at(home, 8), &word));
    OK(mob_put8(home, memory.at(home, 8), word + 1));
    OK(mob_access_unlock(access, home));
  }
  OK(mob_team_barrier(all.team));
  for (const size_t place : {0, 8}) {
    uint64_t word = 0;
    OK(mob_get8(home, memory.at(home, place), &word));
    EXPECT(word == static_cast<uint64_t>(kTimes * all.size));
  }
  OK(mob_access_free(access));
  OK(mob_mutexes_free(mutexes));
}

void epochs(const Members& all) {
  const Memory memory(all, static_cast<size_t>(all.size) * sizeof(uint64_t));
  mob_epoch_t epoch = nullptr;
  OK(mob_epoch_create(all.team, &epoch));
  OK(mob_epoch_post(epoch, all.numbers.data(), all.size));
  OK(mob_epoch_start(epoch, all.numbers.data(), all.size));
  for (mob_rank_t to = 0; to < all.size; ++to) {
    const size_t place = static_cast<size_t>(all.me) * sizeof(uint64_t);
    OK(mob_put8(all.number(to), memory.at(all.number(to), place), value_of(all.me, to)));
  }
  OK(mob_epoch_complete(epoch));
  OK(mob_epoch_wait(epoch));
  for (mob_rank_t from = 0; from < all.size; ++from) {
    EXPECT(memory.own()[from] == value_of(from, all.me));
  }
  OK(mob_epoch_fence(epoch));
  OK(mob_epoch_free(epoch));
}

void collectives(const Members& all) {
  const auto count = static_cast<size_t>(all.size);
  std::vector<uint64_t> in(count);
  std::vector<uint64_t> out(count);
  for (mob_rank_t to = 0; to < all.size; ++to) in[static_cast<size_t>(to)] = value_of(all.me, to);
  OK(mob_alltoall(all.team, in.data(), out.data(), sizeof(uint64_t)));
  for (mob_rank_t from = 0; from < all.size; ++from) {
    EXPECT(out[static_cast<size_t>(from)] == value_of(from, all.me));
  }
  uint64_t mine = static_cast<uint64_t>(all.me);
  uint64_t sum = 0;
  OK(mob_allreduce(all.team, MOB_SUM, MOB_UINT64, &mine, &sum, 1));
  EXPECT(sum == count * (count - 1) / 2);
  std::vector<char> wide(300'000, static_cast<char>(all.me == all.size - 1 ? 5 : 0));
  OK(mob_broadcast(all.team, all.size - 1, wide.data(), wide.size()));
  EXPECT(wide.front() == 5 && wide.back() == 5);
  OK(mob_allgather(all.team, &mine, out.data(), sizeof mine));
  EXPECT(out.back() == count - 1);
}

// Memory that is not the library's.
void exposed_memory(const Members& all) {
  std::vector<uint64_t> exposed(1024, static_cast<uint64_t>(all.me));
  mob_exposed_t exposure = nullptr;
  OK(mob_expose(exposed.data(), exposed.size() * sizeof(uint64_t), 0, &exposure));
  std::vector<void*> addresses(static_cast<size_t>(all.size));
  OK(mob_publish(all.team, exposed.data(), addresses.data()));
  for (mob_rank_t member = 0; member < all.size; ++member) {
    uint64_t got = UINT64_MAX;
    OK(mob_get8(all.number(member), addresses[static_cast<size_t>(member)], &got));
    EXPECT(got == static_cast<uint64_t>(member));
  }
  OK(mob_team_barrier(all.team));
  OK(mob_withdraw(exposure));
}

// All members add to the same memory of each, its owner too, at once.
void exposed_sums(const Members& all) {
  constexpr uint64_t kTimes = 200;
  constexpr uint64_t kTimesOfOwner = 2000;  // takes about as long
  std::vector<double> exposed(2048, 0);
  const std::vector<double> ones(exposed.size(), 1);
  mob_exposed_t exposure = nullptr;
  OK(mob_expose(exposed.data(), exposed.size() * sizeof(double), 0, &exposure));
  std::vector<void*> addresses(static_cast<size_t>(all.size));
  OK(mob_publish(all.team, exposed.data(), addresses.data()));
  for (mob_rank_t member = 0; member < all.size; ++member) {
    OK(mob_team_barrier(all.team));
    const uint64_t times = member == all.me ? kTimesOfOwner : kTimes;
    for (uint64_t i = 0; i < times; ++i) {
      OK(mob_accumulate(all.number(member), addresses[static_cast<size_t>(member)], ones.data(),
                        ones.size(), MOB_DOUBLE, MOB_SUM));
    }
    OK(mob_flush(all.number(member)));
  }
  OK(mob_team_barrier(all.team));
  const uint64_t sum = static_cast<uint64_t>(all.size - 1) * kTimes + kTimesOfOwner;
  EXPECT(exposed == std::vector<double>(exposed.size(), static_cast<double>(sum)));
  OK(mob_withdraw(exposure));
}

// A barrier of the team completes what its members have under way in both jobs.
void barriers_complete(const Members& all) {
  constexpr int kTimes = 30;
  std::vector<double> exposed(1000, 0);
  const std::vector<double> ones(exposed.size(), 1);
  mob_exposed_t exposure = nullptr;
  OK(mob_expose(exposed.data(), exposed.size() * sizeof(double), 0, &exposure));
  std::vector<void*> addresses(static_cast<size_t>(all.size));
  OK(mob_publish(all.team, exposed.data(), addresses.data()));
  for (int i = 1; i <= kTimes; ++i) {
    for (mob_rank_t member = 0; member < all.size; ++member) {
      OK(mob_accumulate(all.number(member), addresses[static_cast<size_t>(member)], ones.data(),
                        ones.size(), MOB_DOUBLE, MOB_SUM));
    }
    OK(mob_team_barrier(all.team));
    EXPECT(exposed == std::vector<double>(exposed.size(), static_cast<double>(i * all.size)));
    OK(mob_team_barrier(all.team));
  }
  OK(mob_withdraw(exposure));
}

// The same, in pages that are moved into shared memory.
void remapped_memory(const Members& all) {
  constexpr size_t kSize = size_t{64} << 10;
  void* const own =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const words = static_cast<uint64_t*>(own);
  words[0] = static_cast<uint64_t>(all.me);
  words[1] = 0;
  mob_exposed_t exposure = nullptr;
  OK(mob_expose(own, kSize, MOB_EXPOSE_REMAP, &exposure));
  EXPECT(words[0] == static_cast<uint64_t>(all.me));
  std::vector<void*> addresses(static_cast<size_t>(all.size));
  OK(mob_publish(all.team, own, addresses.data()));
  // Twice: the second time inlined.
  for (int round = 0; round < 2; ++round) {
    for (mob_rank_t member = 0; member < all.size; ++member) {
      auto* const there = static_cast<uint64_t*>(addresses[static_cast<size_t>(member)]);
      uint64_t got = UINT64_MAX;
      uint64_t old = 0;
      OK(mob_get8(all.number(member), there, &got));
      EXPECT(got == static_cast<uint64_t>(member));
      OK(mob_put8(all.number(member), there + 2 + all.me, value_of(all.me, member)));
      OK(mob_fetch_add8(all.number(member), there + 1, 1, &old));
    }
    OK(mob_team_barrier(all.team));
    EXPECT(words[1] == static_cast<uint64_t>(all.size) * static_cast<uint64_t>(round + 1));
    for (mob_rank_t from = 0; from < all.size; ++from) {
      EXPECT(words[2 + from] == value_of(from, all.me));
    }
    OK(mob_team_barrier(all.team));
  }
  OK(mob_withdraw(exposure));
  EXPECT(words[0] == static_cast<uint64_t>(all.me));
  munmap(own, kSize);
}

void blocks_of_one_process(const Members& all) {
  std::vector<void*> addresses(static_cast<size_t>(all.size));
  void* block = nullptr;
  OK(mob_local_alloc(64, 0, &block));
  *static_cast<uint64_t*>(block) = 0;
  OK(mob_publish(all.team, block, addresses.data()));
  for (mob_rank_t member = 0; member < all.size; ++member) {
    uint64_t old = 0;
    OK(mob_fetch_add8(all.number(member), addresses[static_cast<size_t>(member)], 1, &old));
  }
  OK(mob_team_barrier(all.team));
  EXPECT(*static_cast<uint64_t*>(block) == static_cast<uint64_t>(all.size));
  OK(mob_team_barrier(all.team));
  OK(mob_local_free(block));
}

int exchange_over(const void* mine, size_t bytes, void* all, void* team) {
  return mob_allgather(*static_cast<mob_team_t*>(team), mine, all, bytes);
}

// Teams of a list of processes. Those of two jobs have no numbers that mean the same in both.
void gathered_teams(const Members& all, bool is_one_job) {
  mob_team_t meeting = all.team;
  mob_team_t team = MOB_TEAM_NONE;
  const mob_status_t status =
      mob_team_gather(all.numbers.data(), all.size, exchange_over, &meeting, &team);
  EXPECT(status == (is_one_job ? MOB_OK : MOB_ERR_RANK));
  if (status == MOB_OK) {
    EXPECT(mob_team_size(team) == all.size && mob_team_rank(team) == all.me);
    OK(mob_team_barrier(team));
    OK(mob_team_free(team));
  }
}

void teams(const Members& all) {
  mob_team_t part = MOB_TEAM_NONE;
  OK(mob_team_split(all.team, all.me % 2, -all.me, &part));
  OK(mob_team_barrier(part));
  mob_rank_t found = -2;
  OK(mob_team_translate(part, mob_team_rank(part), all.team, &found));
  EXPECT(found == all.me);
  OK(mob_team_free(part));
}

}  // namespace

uint64_t segment_bytes() {
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(descriptor, error) != "/memfd:mobius (deleted)") continue;
    struct stat information{};
    if (stat(descriptor.path().c_str(), &information) != 0) continue;
    return static_cast<uint64_t>(information.st_blocks) * 512;
  }
  EXPECT(!"the segment was not found");
  return 0;
}

Resources resources() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  file >> all >> resident >> shared;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  return {segment_bytes(), all * page, (resident - shared) * page,
          static_cast<uint64_t>(descriptors)};
}

bool has_not_grown(const Resources& before, int cycles) {
  constexpr uint64_t kOfANumber = uint64_t{24} << 10;
  // A process watches a peer by a descriptor, from the first long wait for it until it watches the
  // next one that comes: those of the last time, and not one for each time.
  constexpr uint64_t kWatches = 3;
  constexpr uint64_t kNoise = uint64_t{8} << 20;
  constexpr uint64_t kMap = uint64_t{1} << 30;  // less than a window, more than heaps of threads
  const Resources now = resources();
  const uint64_t numbers = static_cast<uint64_t>(cycles) * kOfANumber;
  const bool is_same = now.segment_bytes < before.segment_bytes + numbers + kNoise &&
                       now.address_space_bytes < before.address_space_bytes + kMap &&
                       now.private_bytes < before.private_bytes + kNoise &&
                       now.descriptors <= before.descriptors + kWatches;
  if (!is_same) {
    std::fprintf(stderr,
                 "rank %d, in %d cycles: segment %+lld, address space %+lld, private %+lld bytes, "
                 "descriptors %+lld\n",
                 mob_rank(), cycles,
                 static_cast<long long>(now.segment_bytes - before.segment_bytes),
                 static_cast<long long>(now.address_space_bytes - before.address_space_bytes),
                 static_cast<long long>(now.private_bytes - before.private_bytes),
                 static_cast<long long>(now.descriptors - before.descriptors));
  }
  return is_same;
}

void register_exercise() {
  OK(mob_handler_register(kAsk, on_ask, nullptr));
  OK(mob_handler_register(kAnswer, on_answer, nullptr));
  OK(mob_handler_register(kCount, on_count, nullptr));
  OK(mob_handler_register(kIgnored, [](const mob_message_t*, void*, mob_delivery_t*) {}, nullptr));
}

int exercise(mob_team_t team, bool is_one_job) {
  wrong = 0;
  const Members all(team);
  words(all);
  blocks(all);
  atomics(all);
  messages(all);
  counted_messages(all);
  counters(all);
  locks(all);
  epochs(all);
  collectives(all);
  exposed_memory(all);
  exposed_sums(all);
  barriers_complete(all);
  remapped_memory(all);
  if (is_one_job) blocks_of_one_process(all);
  teams(all);
  gathered_teams(all, is_one_job);
  OK(mob_team_barrier(team));
  return wrong;
}

}  // namespace mobius_test
