// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "schedule/plan.h"
#include "schedule/text.h"

namespace mobius::command {
namespace {

using schedule::Costs;
using schedule::Issue;
using schedule::Operation;
using schedule::Piece;
using schedule::Plan;
using schedule::Policy;
using schedule::QueueReader;

constexpr int kUsage = 2;

// MOBIUS_RMA_BYTES by default.
constexpr size_t kRmaBytes = size_t{128} << 10;

constexpr const char* kExplainHelp =
    R"help(Prints how the scheduler issues the operations of an epoch, and why.

Usage: mobius explain [--policy POLICY] [FILE]
       mobius explain [--policy POLICY] [--epoch N] TRACE

TRACE is the timeline of a rank, as MOBIUS_TRACE=FILE makes it: lists what was
recorded there before it was issued, stretch by stretch, or with --epoch the
plan of one of them, by the policy and the costs that it had there. What goes
alone goes by itself from where it lies, or by remote memory access if it is
long and nothing behind it waits for it.

FILE (standard input if it is not named) describes what is recorded for one
target, a line each; # begins a comment:

  put    AT BYTES [FROM] [copied]  AT: where in the target's memory; FROM, TO: in
  get    AT BYTES [TO] [waited]    the caller's (behind what came before, if not
  acc    AT BYTES [FROM]           named). copied: the library has the bytes;
  fetch  AT BYTES [FROM [TO]]      waited: somebody waits for this get; packed
  signal AT                        (get): it goes with others; merged N (put,
  tell   BYTES                     get): N calls that became one at once. acc
                                   and fetch accumulate; tell is for the library
                                   at the target.
  x N put ...                      N times, each behind the one before
  fence                            nothing passes

Numbers are decimal, or hexadecimal with 0x, and take a suffix K or M (powers of
1024). POLICY: adaptive (default), fifo, interleave, gets-first, aggregate;
docs/scheduler.md says what they do.

  $ printf 'x 16 put 0 64K\nx 16 get 16M 64K\n' | mobius explain

Exit codes: 0; 1 if FILE cannot be read; 2 for a wrong command line or line.
)help";

// In the order of schedule::Kind.
constexpr const char* kNames[] = {"put", "get", "accumulate", "fetch", "signal", "tell"};

std::string piece_text(const std::vector<Operation>& queue, const Plan& plan, const Piece& piece) {
  const uint32_t index = plan.order[piece.first];
  const Operation& first = queue[index];
  const uint32_t last = plan.order[piece.first + piece.count - 1];
  const char* name = kNames[static_cast<size_t>(first.kind)];
  if (piece.is_scattered()) {
    return fmt::format("{} at {} places from {} on, {} bytes each  (operations {} … {})", name,
                       piece.rows, piece.lowest, piece.row_bytes, index + 1, last + 1);
  }
  std::string text = fmt::format("{} at {}, {} bytes", name, first.remote, piece.row_bytes);
  if (piece.rows > 1) text += fmt::format(", {} rows, {} apart", piece.rows, piece.stride);
  if (piece.calls == 1) return text + fmt::format("  (operation {})", index + 1);
  if (piece.count == 1) {
    return text + fmt::format("  (operation {}: {} calls merged)", index + 1, piece.calls);
  }
  return text + fmt::format("  (operations {} … {} merged)", index + 1, last + 1);
}

// Of what goes alone.
const char* way_text(const Operation& operation, const Issue& issue, size_t bytes,
                     size_t rma_bytes) {
  if (issue.is_free && rma_bytes != 0 && bytes >= rma_bytes) return "by remote memory access";
  return operation.kind == schedule::Kind::kPut ? "from where it lies" : "to where it belongs";
}

void print_issue(const std::vector<Operation>& queue, const Plan& plan, const Issue& issue,
                 size_t number, size_t rma_bytes) {
  const std::span pieces(plan.pieces.data() + issue.first, issue.count);
  if (!issue.packed) {
    const Piece& piece = pieces[0];
    const Operation& first = queue[plan.order[piece.first]];
    fmt::print("{:4}  alone   {}, {}\n", number, piece_text(queue, plan, piece),
               way_text(first, issue, piece.bytes(), rma_bytes));
    return;
  }
  constexpr size_t kMostLines = 8;
  for (size_t i = 0; i < std::min(pieces.size(), kMostLines); ++i) {
    fmt::print("{:>4}  {}  {}\n", i == 0 ? std::to_string(number) : "",
               i == 0 ? "packed" : "      ", piece_text(queue, plan, pieces[i]));
  }
  if (pieces.size() > kMostLines) {
    fmt::print("              … and {} pieces more\n", pieces.size() - kMostLines);
  }
}

// `rma_bytes` as schedule::write_recorded() has it.
void explain(const std::vector<Operation>& queue, const Costs& costs, Policy policy,
             size_t rma_bytes) {
  Plan plan;
  schedule::make_plan(queue, costs, policy, &plan);
  size_t calls = 0;
  for (const Operation& each : queue) calls += each.calls;
  fmt::print("{} operations, policy {}: {} messages\n", calls,
             schedule::kPolicyNames[static_cast<size_t>(policy)], plan.issues.size());
  fmt::print("order: {} ({} overtaken)\n", plan.why, plan.savings.reordered);
  fmt::print("merged into another's transfer: {}, packed with others: {}\n", plan.savings.merged,
             plan.savings.packed);
  fmt::print("alone goes what is longer than {} bytes; a message holds {}\n\n",
             schedule::most_packed_bytes(costs), costs.message_bytes);
  for (size_t i = 0; i < plan.issues.size(); ++i) {
    print_issue(queue, plan, plan.issues[i], i + 1, rma_bytes);
  }
}

int wrong(std::string_view text) {
  fmt::print(stderr, "mobius explain: {}; see mobius explain --help\n", text);
  return kUsage;
}

// What of the line of an event stands behind "name":, up to the end of the string or number.
std::string member(const std::string& line, std::string_view name) {
  const size_t found = line.find(fmt::format("\"{}\":", name));
  if (found == std::string::npos) return "";
  size_t begin = found + name.size() + 3;
  const bool is_text = begin < line.size() && line[begin] == '"';
  if (is_text) ++begin;
  return line.substr(begin, line.find_first_of(is_text ? "\"" : ",}", begin) - begin);
}

const std::string_view* find_policy(std::string_view name) {
  const auto* found = std::ranges::find(schedule::kPolicyNames, name);
  return found == std::end(schedule::kPolicyNames) ? nullptr : found;
}

Policy policy_of(const std::string_view* name) {
  return static_cast<Policy>(std::distance(std::begin(schedule::kPolicyNames), name));
}

struct Request {
  std::optional<Policy> policy;
  uint64_t epoch = 0;  // from 1 on; 0: none
  const char* file = nullptr;
};

bool read_costs(const std::string& text, Costs* costs) {
  std::istringstream numbers(text);
  return static_cast<bool>(numbers >> costs->latency_ns >> costs->message_ns >>
                           costs->out_bytes_per_ns >> costs->in_bytes_per_ns >>
                           costs->copy_bytes_per_ns >> costs->message_bytes);
}

template <typename Number>
bool parse_number(std::string_view text, Number* number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

int explain_event(const std::string& line, const Request& request) {
  const std::string_view* named = find_policy(member(line, "policy"));
  Costs costs;
  size_t rma_bytes = 0;
  QueueReader reader;
  bool is_sound = named != nullptr && read_costs(member(line, "costs"), &costs) &&
                  parse_number(member(line, "rma_bytes"), &rma_bytes);
  std::istringstream operations(member(line, "queue"));
  for (std::string each; is_sound && std::getline(operations, each, ';');) {
    is_sound = reader.add(each);
  }
  if (!is_sound)
    return wrong(fmt::format("epoch {} of the timeline makes no sense", request.epoch));
  fmt::print("epoch {}: rank {} to rank {}, recorded from {} µs on for {} µs\n", request.epoch,
             member(line, "pid"), member(line, "target"), member(line, "ts"), member(line, "dur"));
  explain(reader.queue, costs, request.policy.value_or(policy_of(named)), rma_bytes);
  return 0;
}

int read_trace(std::istream& input, const Request& request) {
  uint64_t count = 0;
  for (std::string line; std::getline(input, line);) {
    if (!line.starts_with(R"({"name":"recorded")")) continue;
    ++count;
    if (count == request.epoch) return explain_event(line, request);
    if (request.epoch != 0) continue;
    fmt::print("{:6}  rank {} to {}: {} operations in {} messages, {} merged; {}: {}\n", count,
               member(line, "pid"), member(line, "target"), member(line, "operations"),
               member(line, "messages"), member(line, "merged"), member(line, "policy"),
               member(line, "why"));
  }
  if (request.epoch != 0) {
    return wrong(fmt::format("there is no epoch {}; the timeline has {}", request.epoch, count));
  }
  if (count == 0) fmt::print("nothing was recorded for other hosts\n");
  return 0;
}

int read_and_explain(std::istream& input, const Request& request) {
  // The timeline begins as an array of JSON.
  if (input.peek() == '[') return read_trace(input, request);
  if (request.epoch != 0) return wrong("--epoch is for a timeline (MOBIUS_TRACE)");
  QueueReader reader;
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    if (!reader.add(line)) return wrong(fmt::format("line {} makes no sense: {}", number, line));
  }
  explain(reader.queue, {}, request.policy.value_or(Policy::kAdaptive), kRmaBytes);
  return 0;
}

}  // namespace

int explain_command(std::span<char*> arguments) {
  Request request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kExplainHelp);
      return 0;
    }
    if (argument == "--policy" && has_value) {
      const std::string_view* found = find_policy(arguments[++i]);
      if (found == nullptr) return wrong(fmt::format("there is no policy '{}'", arguments[i]));
      request.policy = policy_of(found);
    } else if (argument == "--epoch" && has_value) {
      if (!parse_number(std::string_view(arguments[++i]), &request.epoch) || request.epoch == 0) {
        return wrong(fmt::format("--epoch: '{}' is no number from 1 on", arguments[i]));
      }
    } else if (argument.starts_with('-') || request.file != nullptr) {
      return wrong(fmt::format("'{}' is not understood", argument));
    } else {
      request.file = arguments[i];
    }
  }
  if (request.file == nullptr) return read_and_explain(std::cin, request);
  std::ifstream input(request.file);
  input.peek();  // a folder can be opened, but not read
  if (!input.is_open() || input.bad()) {
    fmt::print(stderr, "mobius explain: {} cannot be read\n", request.file);
    return 1;
  }
  return read_and_explain(input, request);
}

}  // namespace mobius::command
