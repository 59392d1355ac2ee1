// SPDX-License-Identifier: BSD-3-Clause

// Each thread of a rank works on memory of any rank, independently of the others.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "job.h"
#include "messages.h"

namespace soak {

namespace {

constexpr uint64_t kUnknown = UINT64_MAX;  // of a word whose target has failed

}  // namespace

Lane::Lane(Job& job, int index, uint64_t seed)
    : job_(job),
      index_(index),
      writer_(job.writer(index)),
      random_(seed * 1000 + writer_),
      word_(static_cast<size_t>(job.size())),
      signalled_(static_cast<size_t>(job.size())),
      sent_(static_cast<size_t>(job.size())),
      mine_(job.slot_bytes()),
      back_(job.slot_bytes()) {
  for (auto& copies : copies_) {
    copies.assign(static_cast<size_t>(job.size()), std::vector<unsigned char>(job.slot_bytes()));
  }
}

bool Lane::good(mob_status_t status, mob_rank_t target, bool needs_target, const char* what) {
  if (status == MOB_OK) return true;
  if (status != MOB_ERR_PEER || !job_.may_fail(target, needs_target)) {
    complain("%s at rank %d gave %s: %s", what, target, mob_status_name(status), mob_last_error());
  }
  // The next flush reports the errors of other operations begun there.
  (void)mob_flush(target);
  return false;
}

Lane::Place Lane::any_place(mob_rank_t target) {
  const uint64_t which = below(8);
  const auto at = static_cast<size_t>(target);
  if (which < 2) job_.note_message(target);  // the target may be asked to do what is done there
  if (which == 0) return {job_.exposed_slot(target, writer_), &copies_[1][at], true};
  if (which == 1) return {job_.remapped_slot(target, writer_), &copies_[2][at], true};
  return {job_.slot(target, writer_), &copies_[0][at], false};
}

void Lane::fill(unsigned char* bytes, size_t count) {
  uint64_t bits = random_();
  for (size_t i = 0; i < count; ++i) {
    bits = bits * 6364136223846793005u + 1;
    bytes[i] = byte_of(writer_, bits >> 60);
  }
}

void Lane::run(size_t operations, mob_context_t context) {
  (void)mob_context_use(context);
  for (size_t i = 0; i < operations; ++i) step();
  (void)mob_flush_all();  // may report what failed at the dead; each step has looked at its own
  (void)mob_context_use(MOB_CONTEXT_DEFAULT);
}

void Lane::step() {
  switch (below(18)) {
    case 0:
    case 1:
      return contiguous();
    case 2:
    case 3:
      return handles();
    case 4:
    case 5:
      return boxes();
    case 6:
      return fetch_add();
    case 7:
      return swap();
    case 8:
      return accumulate();
    case 9:
      return accumulate_exposed();
    case 10:
      return words();
    case 11:
      return signal();
    case 12:
      return mutex();
    case 13:
      return lock_word();
    case 14:
      return access();
    case 15:
      return message();
    case 16:
      return own_memory();
    default:
      return own_exposure();
  }
}

// Puts some bytes, and gets them back with others around them.
void Lane::contiguous() {
  const mob_rank_t target = any_rank();
  const auto [address, copy, needs_target] = any_place(target);
  if (copy->empty()) return;
  const size_t start = below(copy->size());
  const size_t bytes =
      1 + below(below(4) == 0 ? copy->size() - start : std::min<size_t>(64, copy->size() - start));
  fill(mine_.data(), bytes);
  mob_status_t status = mob_put(target, address + start, mine_.data(), bytes);
  if (status == MOB_OK) status = mob_flush(target);
  const size_t before = std::min<size_t>(start, below(100));
  const size_t all = std::min(before + bytes + below(100), copy->size() - start + before);
  if (status == MOB_OK) status = mob_get(target, address + start - before, back_.data(), all);
  if (!good(status, target, needs_target, "mob_put and mob_get")) return copy->clear();
  std::copy_n(mine_.data(), bytes, copy->data() + start);
  if (std::memcmp(back_.data(), copy->data() + start - before, all) != 0) {
    complain("mob_put and mob_get of %zu bytes at %zu of rank %d: wrong bytes", bytes, start,
             target);
  }
}

// Several operations at a time, to several ranks, which complete by handles or by one flush.
void Lane::handles() {
  struct Started {
    mob_rank_t target;
    Place place;
    size_t start, bytes, local;
    mob_handle_t handle = MOB_HANDLE_DONE;
    mob_status_t status = MOB_OK;
  };
  std::vector<Started> all;
  const bool by_handle = below(2) == 0;
  // A flush reports the first error of any operation, whatever its target.
  const auto may_fail = [&] {
    return std::ranges::any_of(all, [&](const Started& each) {
      return job_.may_fail(each.target, each.place.needs_target);
    });
  };
  size_t local = 0;
  for (uint64_t left = 1 + below(6); left > 0 && local < mine_.size(); --left) {
    const mob_rank_t target = any_rank();
    const Place place = any_place(target);
    const bool again = std::ranges::any_of(
        all, [&](const Started& other) { return other.place.copy == place.copy; });
    if (place.copy->empty() || again) continue;
    const size_t bytes =
        1 + below(std::min<size_t>(mine_.size() - local, below(3) == 0 ? mine_.size() : 200));
    const size_t start = below(mine_.size() - bytes + 1);
    fill(mine_.data() + local, bytes);
    all.push_back({target, place, start, bytes, local});
    local += bytes;
  }
  // Phase 0 puts, phase 1 gets.
  for (const bool gets : {false, true}) {
    for (Started& each : all) {
      each.status = MOB_OK;
      if (each.place.copy->empty()) continue;
      unsigned char* remote = each.place.address + each.start;
      unsigned char* bytes = (gets ? back_.data() : mine_.data()) + each.local;
      const mob_status_t status =
          by_handle ? (gets ? mob_get_nb(each.target, remote, bytes, each.bytes, &each.handle)
                            : mob_put_nb(each.target, remote, bytes, each.bytes, &each.handle))
                    : (gets ? mob_get_nbi(each.target, remote, bytes, each.bytes)
                            : mob_put_nbi(each.target, remote, bytes, each.bytes));
      each.status = status;
      if (status != MOB_OK) each.handle = MOB_HANDLE_DONE;
    }
    for (Started& each : all) {
      // Waiting comes first, for all: an error makes good() flush the others, too.
      if (each.status == MOB_OK) each.status = mob_wait(&each.handle);
    }
    for (Started& each : all) {
      if (each.status == MOB_OK) each.status = mob_flush(each.target);
      if (each.status == MOB_OK) continue;
      if (each.status != MOB_ERR_PEER || !may_fail()) {
        (void)good(each.status, each.target, each.place.needs_target, "puts or gets");
      }
      for (const Started& other : all) other.place.copy->clear();
    }
  }
  for (const Started& each : all) {
    if (each.place.copy->empty()) continue;
    if (job_.shares_errors() && job_.may_fail(each.target, each.place.needs_target)) {
      each.place.copy->clear();
      continue;
    }
    std::copy_n(mine_.data() + each.local, each.bytes, each.place.copy->data() + each.start);
    if (std::memcmp(mine_.data() + each.local, back_.data() + each.local, each.bytes) != 0) {
      complain("%zu bytes at %zu of rank %d, %s: wrong bytes", each.bytes, each.start, each.target,
               by_handle ? "with a handle" : "with a flush");
    }
  }
}

// Strided boxes, lists of pieces and lists of spans.
void Lane::boxes() {
  const mob_rank_t target = any_rank();
  const auto [address, copy, needs_target] = any_place(target);
  if (copy->empty()) return;
  const size_t run = 1 + below(below(2) == 0 ? 16 : 300);
  const size_t runs = 1 + below(std::min<size_t>(40, mine_.size() / run / 2));
  const size_t apart = run + below(mine_.size() / runs - run + 1);
  fill(mine_.data(), run * runs);
  mob_transfer_t transfer{};
  transfer.rank = target;
  transfer.bytes = run;
  const size_t counts[] = {runs};
  const ptrdiff_t there[] = {static_cast<ptrdiff_t>(apart)};
  const ptrdiff_t mine[] = {static_cast<ptrdiff_t>(run)};
  std::vector<void*> remotes;
  std::vector<void*> locals;
  std::vector<mob_span_t> spans;
  for (size_t i = 0; i < runs; ++i) {
    remotes.push_back(address + i * apart);
    spans.push_back({address + i * apart, run});
  }
  const uint64_t shape = below(3);
  mob_status_t status = MOB_OK;
  for (const mob_kind_t kind : {MOB_PUT, MOB_GET}) {
    unsigned char* local = kind == MOB_PUT ? mine_.data() : back_.data();
    const mob_span_t whole = {local, run * runs};
    transfer.kind = kind;
    locals.clear();
    for (size_t i = 0; i < runs; ++i) locals.push_back(local + i * run);
    if (shape == 0) {
      transfer.shape = MOB_STRIDED;
      transfer.remote = address;
      transfer.local = local;
      transfer.dimensions = 1;
      transfer.counts = counts;
      transfer.remote_strides = there;
      transfer.local_strides = mine;
    } else if (shape == 1) {
      transfer.shape = MOB_PIECES;
      transfer.count = runs;
      transfer.remotes = remotes.data();
      transfer.locals = locals.data();
    } else {
      transfer.shape = MOB_SPANS;
      transfer.remote_spans = spans.data();
      transfer.remote_span_count = runs;
      transfer.local_spans = &whole;
      transfer.local_span_count = 1;
    }
    if (status == MOB_OK) status = mob_transfer(&transfer);
    if (status == MOB_OK) status = mob_flush(target);
  }
  if (!good(status, target, needs_target, "a transfer of several runs")) return copy->clear();
  for (size_t i = 0; i < runs; ++i) {
    std::copy_n(mine_.data() + i * run, run, copy->data() + i * apart);
  }
  if (std::memcmp(mine_.data(), back_.data(), run * runs) != 0) {
    complain("%zu runs of %zu bytes at rank %d, shape %d: wrong bytes", runs, run, target,
             transfer.shape);
  }
}

void Lane::fetch_add() {
  const mob_rank_t target = any_rank();
  uint64_t old = 0;
  for (uint64_t left = 1 + below(5); left > 0; --left) {
    job_.begin(kSum, target);
    if (!good(mob_fetch_add8(target, &job_.block(target).sum, 1, &old), target, false,
              "mob_fetch_add8")) {
      return;
    }
    job_.end(kSum, target);
  }
}

void Lane::swap() {
  const mob_rank_t target = any_rank();
  uint64_t old = 0;
  uint64_t expected = 0;
  job_.begin(kSum, target);
  do {
    expected = old;
    if (!good(mob_compare_swap8(target, &job_.block(target).sum, expected, expected + 1, &old),
              target, false, "mob_compare_swap8")) {
      return;
    }
  } while (old != expected);
  job_.end(kSum, target);
}

void Lane::accumulate() {
  const mob_rank_t target = any_rank();
  const bool doubles = below(2) == 0;
  const std::vector<double> ones(kElements, 1.0);
  const std::vector<uint64_t> units(kElements, 1);
  const Kind kind = doubles ? kDoubles : kIntegers;
  Block& there = job_.block(target);
  job_.begin(kind, target);
  mob_status_t status =
      doubles
          ? mob_accumulate(target, there.doubles, ones.data(), kElements, MOB_DOUBLE, MOB_SUM)
          : mob_accumulate(target, there.integers, units.data(), kElements, MOB_UINT64, MOB_SUM);
  if (status == MOB_OK) status = mob_flush(target);
  if (good(status, target, false, "mob_accumulate")) job_.end(kind, target);
}

void Lane::accumulate_exposed() {
  const mob_rank_t target = any_rank();
  const std::vector<double> ones(kElements, 1.0);
  job_.note_message(target);
  job_.begin(kExposed, target);
  mob_status_t status = mob_accumulate(target, job_.exposed_doubles(target), ones.data(), kElements,
                                       MOB_DOUBLE, MOB_SUM);
  if (status == MOB_OK) status = mob_flush(target);
  if (good(status, target, true, "mob_accumulate in exposed memory")) job_.end(kExposed, target);
}

// A word that only this lane puts.
void Lane::words() {
  const mob_rank_t target = any_rank();
  uint64_t& last = word_[static_cast<size_t>(target)];
  if (last == kUnknown) return;
  uint64_t* word = &job_.block(target).words[writer_];
  uint64_t value = 0;
  if (!good(mob_get8(target, word, &value), target, false, "mob_get8")) return;
  if (value != last) {
    complain("word of rank %d is %lu, not %lu", target, static_cast<unsigned long>(value),
             static_cast<unsigned long>(last));
  }
  const uint64_t next = random_() >> 1;
  mob_status_t status = mob_put8(target, word, next);
  if (status == MOB_OK) status = mob_flush(target);
  last = good(status, target, false, "mob_put8") ? next : kUnknown;
}

// Bytes and a signal, in that order.
void Lane::signal() {
  const mob_rank_t target = any_rank();
  auto& copy = copies_[0][static_cast<size_t>(target)];
  if (copy.empty()) return;
  const size_t bytes = 1 + below(copy.size());
  uint64_t& told = signalled_[static_cast<size_t>(target)];
  uint64_t* word = &job_.block(target).signals[writer_];
  fill(mine_.data(), bytes);
  mob_status_t status = mob_put_signal(target, job_.slot(target, writer_), mine_.data(), bytes,
                                       word, 1, MOB_SIGNAL_ADD);
  if (status == MOB_OK) status = mob_flush(target);
  uint64_t seen = 0;
  if (status == MOB_OK) status = mob_get8(target, word, &seen);
  if (!good(status, target, false, "mob_put_signal")) return copy.clear();
  std::copy_n(mine_.data(), bytes, copy.data());
  if (seen != ++told) {
    complain("%lu signals at rank %d, which got %lu", static_cast<unsigned long>(seen), target,
             static_cast<unsigned long>(told));
  }
}

// Under a lock: two words that are equal, unless the former owner died between them.
template <typename Unlock>
void Lane::change_pair(Kind kind, mob_rank_t target, int recovered, Unlock unlock) {
  uint64_t pair[2] = {};
  uint64_t* there = job_.block(target).pairs[kind];
  mob_status_t status = mob_get(target, there, pair, sizeof pair);
  if (status == MOB_OK && pair[0] != pair[1] && recovered == 0) {
    complain("two were in lock %d of rank %d at a time: %lu, %lu", kind, target,
             static_cast<unsigned long>(pair[0]), static_cast<unsigned long>(pair[1]));
  }
  if (status == MOB_OK) status = mob_put8(target, &there[0], pair[0] + 1);
  if (status == MOB_OK) status = mob_fence();
  if (status == MOB_OK) status = mob_put8(target, &there[1], pair[0] + 1);
  if (!good(status, target, false, "puts under a lock")) {
    (void)unlock();
    return;
  }
  if (good(unlock(), target, false, "unlocking")) job_.end(kind, target);
}

void Lane::mutex() {
  const mob_rank_t target = any_rank();
  int recovered = 0;
  job_.begin(kMutex, target);
  if (!good(mob_mutex_lock(job_.mutexes(), 0, target, &recovered), target, false,
            "mob_mutex_lock")) {
    return;
  }
  change_pair(kMutex, target, recovered,
              [&] { return mob_mutex_unlock(job_.mutexes(), 0, target); });
}

void Lane::lock_word() {
  const mob_rank_t target = any_rank();
  if (job_.is_elsewhere(target)) return;
  int recovered = 0;
  void* pointer = nullptr;
  if (!good(mob_ptr(target, &job_.block(target).lock, &pointer), target, false, "mob_ptr")) return;
  auto* lock = static_cast<mob_lock_t*>(pointer);
  job_.begin(kLock, target);
  if (!good(mob_lock(lock, &recovered), target, false, "mob_lock")) return;
  change_pair(kLock, target, recovered, [&] { return mob_unlock(lock); });
}

void Lane::access() {
  // Shared access is counted per process, which must not ask for exclusive access meanwhile.
  if (index_ != 0) return;
  const mob_rank_t target = any_rank();
  if (below(2) == 0) {
    if (!good(mob_access_lock(job_.access(), target, MOB_SHARED, nullptr), target, false,
              "mob_access_lock")) {
      return;
    }
    uint64_t pair[2] = {};
    (void)good(mob_get(target, job_.block(target).pairs[kAccess], pair, sizeof pair), target, false,
               "mob_get");
    (void)good(mob_access_unlock(job_.access(), target), target, false, "mob_access_unlock");
    return;
  }
  int recovered = 0;
  job_.begin(kAccess, target);
  if (!good(mob_access_lock(job_.access(), target, MOB_EXCLUSIVE, &recovered), target, false,
            "mob_access_lock")) {
    return;
  }
  change_pair(kAccess, target, recovered, [&] { return mob_access_unlock(job_.access(), target); });
}

void Lane::message() {
  const mob_rank_t target = any_rank();
  uint32_t& sent = sent_[static_cast<size_t>(target)];
  job_.note_message(target);
  for (uint64_t left = 1 + below(8); left > 0; --left) {
    const size_t bytes = below(2) == 0 ? below(200) : below(mine_.size());
    MessageHeader header{static_cast<uint32_t>(writer_), ++sent, random_(), below(4) == 0};
    fill_message(header, mine_.data(), bytes);
    mob_status_t status =
        mob_message_send(target, kMessage, &header, sizeof header, mine_.data(), bytes, nullptr);
    if (status == MOB_OK && left == 1) status = mob_message_flush(target);
    if (!good(status, target, true, "a message")) return;
  }
}

// Memory of this rank alone, which grows and shrinks.
void Lane::own_memory() {
  const size_t bytes = 1 + below(below(8) == 0 ? size_t{3} << 20 : 20'000);
  const auto mark = static_cast<unsigned char>(1 + below(255));
  void* memory = nullptr;
  const mob_rank_t own = job_.rank();
  if (!good(mob_local_alloc(bytes, below(2) * 4096, &memory), own, false, "mob_local_alloc")) {
    return;
  }
  std::memset(memory, mark, bytes);
  const size_t more = 1 + below(2 * bytes);
  if (good(mob_local_realloc(memory, more, &memory), own, false, "mob_local_realloc")) {
    const auto* start = static_cast<const unsigned char*>(memory);
    const size_t kept = std::min(bytes, more);
    if (std::any_of(start, start + kept, [&](unsigned char byte) { return byte != mark; })) {
      complain("mob_local_realloc from %zu to %zu bytes changed them", bytes, more);
    }
  }
  (void)good(mob_local_free(memory), own, false, "mob_local_free");
}

// Memory of this rank is exposed for a while, or its pages are moved, and it stays as it is.
void Lane::own_exposure() {
  const mob_rank_t own = job_.rank();
  const size_t bytes = (1 + below(8)) * 4096;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* start = static_cast<unsigned char*>(memory);
  fill(start, bytes);
  const std::vector<unsigned char> before(start, start + bytes);
  mob_exposed_t exposed = nullptr;
  const unsigned flags = below(2) == 0 ? 0 : MOB_EXPOSE_REMAP;
  if (!good(mob_expose(memory, bytes, flags, &exposed), own, false, "mob_expose")) return;
  const size_t changed = below(bytes);
  const auto value = byte_of(writer_, below(8));
  (void)good(mob_put1(own, start + changed, value), own, false, "mob_put1");
  (void)good(mob_flush(own), own, false, "mob_flush");
  (void)good(mob_withdraw(exposed), own, false, "mob_withdraw");
  for (size_t i = 0; i < bytes; ++i) {
    if (start[i] == (i == changed ? value : before[i])) continue;
    complain("byte %zu of exposed memory has changed", i);
    break;
  }
  munmap(memory, bytes);
}

void Lane::check_end() {
  for (mob_rank_t target = 0; target < job_.size(); ++target) {
    const auto at = static_cast<size_t>(target);
    unsigned char* const places[] = {job_.slot(target, writer_), job_.exposed_slot(target, writer_),
                                     job_.remapped_slot(target, writer_)};
    for (size_t i = 0; i < 3; ++i) {
      const auto& copy = copies_[i][at];
      if (copy.empty()) continue;
      if (!good(mob_get(target, places[i], back_.data(), copy.size()), target, i != 0,
                "mob_get at the end")) {
        continue;
      }
      if (copy != back_)
        complain("place %zu of rank %d has changed since it was written", i, target);
    }
  }
}

}  // namespace soak
