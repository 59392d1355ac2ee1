// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

namespace mobius::schedule {
namespace {

// In the order of Kind.
constexpr std::string_view kNames[] = {"put", "get", "acc", "fetch", "signal", "tell"};
constexpr uint64_t kMostTimes = 1'000'000;

// Whether "x N" can repeat `first` up to `next`.
bool continues(const Operation& first, const Operation& before, const Operation& next) {
  return next.kind == first.kind && !next.fenced && next.bytes == first.bytes &&
         next.calls == first.calls && next.kept == first.kept && next.waiter() == nullptr &&
         first.waiter() == nullptr && first.kind != Kind::kFetch && first.kind != Kind::kTell &&
         first.kind != Kind::kSignal && next.remote == before.remote + before.bytes &&
         next.local == before.local + before.bytes;
}

bool read_number(std::string_view word, uint64_t* number) {
  const bool is_hexadecimal = word.starts_with("0x");
  if (is_hexadecimal) word.remove_prefix(2);
  const auto read =
      std::from_chars(word.data(), word.data() + word.size(), *number, is_hexadecimal ? 16 : 10);
  if (read.ec != std::errc()) return false;
  const std::string_view suffix(read.ptr, word.data() + word.size());
  if (!suffix.empty() && suffix != "K" && suffix != "M") return false;
  const unsigned bits = suffix.empty() ? 0 : suffix == "K" ? 10 : 20;
  const bool fits = *number <= UINT64_MAX >> bits;
  *number <<= bits;
  return fits;
}

// Reads the next word as a number; `name` is its name in `problem` if it is none.
bool next_number(std::istringstream& words, const char* name, uint64_t* number,
                 std::string* problem) {
  std::string word;
  if (!(words >> word)) {
    *problem = std::string(name) + " is missing";
    return false;
  }
  if (read_number(word, number)) return true;
  *problem = std::string(name) + " '" + word +
             "' is no number of 64 bits (decimal, or 0x…; K or M behind it)";
  return false;
}

// Whether `times` ranges of `bytes` bytes from `place` on lie within 64 bits.
bool fits(uint64_t place, uint64_t bytes, uint64_t times) {
  return bytes <= (UINT64_MAX - place) / times;
}

std::string hexadecimal(uint64_t number) {
  char digits[17] = {};
  std::to_chars(std::begin(digits), std::end(digits) - 1, number, 16);
  return std::string(" 0x") + digits;
}

char* place(uint64_t number) {
  return reinterpret_cast<char*>(number);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

std::string write_queue(std::span<const Operation> queue, char separator) {
  std::string text;
  for (size_t i = 0; i < queue.size();) {
    const Operation& first = queue[i];
    size_t times = 1;
    while (i + times < queue.size() && continues(first, queue[i + times - 1], queue[i + times])) {
      ++times;
    }
    if (!text.empty()) text += separator;
    if (first.fenced) (text += "fence") += separator;
    if (times > 1) text += "x " + std::to_string(times) + ' ';
    text += kNames[static_cast<size_t>(first.kind)];
    const bool has_place = first.kind != Kind::kTell;
    const bool has_bytes = first.kind != Kind::kSignal;
    if (has_place) text += hexadecimal(first.remote);
    if (has_bytes) text += ' ' + std::to_string(first.bytes);
    if (has_place && has_bytes) text += hexadecimal(reinterpret_cast<uintptr_t>(first.local));
    if (first.kind == Kind::kFetch) {
      text += hexadecimal(reinterpret_cast<uintptr_t>(first.fetched()));
    }
    if (first.calls > 1) text += " merged " + std::to_string(first.calls);
    if (first.kind == Kind::kPut && first.kept) text += " copied";
    if (first.kind == Kind::kGet && first.kept) text += " packed";
    if (first.waiter() != nullptr) text += " waited";
    i += times;
  }
  return text;
}

std::string write_recorded(int target, std::span<const Operation> queue, const Costs& costs,
                           Policy policy, const Plan& plan, size_t rma_bytes) {
  size_t calls = 0;
  for (const Operation& each : queue) calls += each.calls;
  char text[384];
  std::snprintf(text, sizeof text,
                R"("target":%d,"operations":%zu,"messages":%zu,"merged":%zu,"why":"%s",)"
                R"("policy":"%s","costs":"%.0f %.0f %.4f %.4f %.4f %zu","rma_bytes":%zu,)"
                R"("queue":")",
                target, calls, plan.issues.size(), static_cast<size_t>(plan.savings.merged),
                plan.why, kPolicyNames[static_cast<size_t>(policy)].data(), costs.latency_ns,
                costs.message_ns, costs.out_bytes_per_ns, costs.in_bytes_per_ns,
                costs.copy_bytes_per_ns, costs.message_bytes, rma_bytes);
  return text + write_queue(queue, ';') + '"';
}

bool QueueReader::wrong(std::string text) {
  problem = std::move(text);
  return false;
}

bool QueueReader::add(const std::string& line) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string word;
  if (!(words >> word)) return true;
  if (word == "fence") {
    is_fenced_ = true;
    return !(words >> word) || wrong("nothing follows fence");
  }
  uint64_t times = 1;
  if (word == "x") {
    if (!next_number(words, "N", &times, &problem)) return false;
    if (times == 0 || times > kMostTimes) {
      return wrong("x goes from 1 to " + std::to_string(kMostTimes));
    }
    if (!(words >> word) || word == "fence") return wrong("x repeats an operation");
  }
  const auto* name = std::ranges::find(kNames, word);
  if (name == std::end(kNames)) {
    return wrong("'" + word + "' is none of put, get, acc, fetch, signal, tell, x, fence");
  }
  Operation operation;
  operation.kind = static_cast<Kind>(std::distance(std::begin(kNames), name));
  operation.bytes = sizeof(uint64_t);
  uint64_t bytes = operation.bytes;
  const bool has_place = operation.kind != Kind::kTell;
  const bool has_bytes = operation.kind != Kind::kSignal;
  if (has_place && !next_number(words, "AT", &operation.remote, &problem)) return false;
  if (has_bytes && !next_number(words, "BYTES", &bytes, &problem)) return false;
  if (bytes == 0) return wrong("BYTES is at least 1");
  if (!fits(operation.remote, bytes, times)) return wrong("it goes beyond the last address");
  operation.bytes = bytes;
  operation.kept = operation.kind == Kind::kAccumulate || operation.kind == Kind::kFetch ||
                   operation.kind == Kind::kTell;
  uint64_t places[2] = {next_local_, 0};
  const int most_given = operation.kind == Kind::kFetch ? 2 : has_place && has_bytes ? 1 : 0;
  int given = 0;
  while (words >> word) {
    uint64_t calls = 0;
    if (word == "merged" && (operation.kind == Kind::kPut || operation.kind == Kind::kGet)) {
      if (!next_number(words, "N", &calls, &problem)) return false;
      if (calls == 0 || calls > UINT16_MAX) return wrong("merged goes from 1 to 65535");
      operation.calls = static_cast<uint16_t>(calls);
    } else if ((word == "copied" && operation.kind == Kind::kPut) ||
               (word == "packed" && operation.kind == Kind::kGet)) {
      operation.kept = true;
    } else if (word == "waited" && operation.kind == Kind::kGet) {
      operation.set_waiter(this);
    } else if (given == most_given || !read_number(word, &places[given])) {
      return wrong("'" + word + "' is not understood there");
    } else if (!fits(places[given], bytes, times)) {
      return wrong("it goes beyond the last address");
    } else {
      ++given;
    }
  }
  if (operation.kind == Kind::kFetch) operation.set_fetched(place(places[1]));
  for (uint64_t i = 0; i < times; ++i) {
    operation.local = operation.kind == Kind::kSignal ? nullptr : place(places[0]);
    operation.fenced = is_fenced_;
    is_fenced_ = false;
    queue.push_back(operation);
    operation.remote += bytes;
    places[0] += bytes;
  }
  next_local_ = places[0];
  return true;
}

}  // namespace mobius::schedule
