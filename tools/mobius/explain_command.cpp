// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/status.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "commands.h"
#include "help_texts.h"
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
constexpr int kUnreadable = 1;

// The default of MOBIUS_RMA_BYTES.
constexpr size_t kRmaBytes = size_t{128} << 10;

// Far beyond the size of any message: a larger number in a trace is an error.
constexpr size_t kMostMessageBytes = size_t{1} << 40;

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

// How an operation that shares no message moves its bytes.
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

// `rma_bytes`: as in schedule::write_recorded().
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

// Reports an error of the command line.
int usage_error(std::string_view text) {
  fmt::print(stderr, "mobius explain: {}; see mobius explain --help\n", text);
  return kUsage;
}

// Reports an error in the input.
int wrong(std::string_view text) {
  fmt::print(stderr, "mobius explain: {}\n", text);
  return kUsage;
}

int unreadable(const char* file, int error) {
  fmt::print(stderr, "mobius explain: '{}' cannot be read: {}\n", file, std::strerror(error));
  return kUnreadable;
}

// The beginning of a line of input, without control characters.
std::string shown(const std::string& line) {
  constexpr size_t kMostShown = 100;
  std::string text = line.substr(0, kMostShown);
  for (char& each : text) {
    if (static_cast<unsigned char>(each) < ' ' || each == 0x7f) each = '?';
  }
  return line.size() > kMostShown ? text + "…" : text;
}

// The value of the member `name` in a line of JSON: a string without its quotes, or a number.
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

std::string policy_names() { return fmt::format("{}", fmt::join(schedule::kPolicyNames, ", ")); }

struct Request {
  std::optional<Policy> policy;
  uint64_t epoch = 0;  // from 1 on; 0: none
  const char* file = nullptr;

  const char* name() const { return file != nullptr ? file : "standard input"; }
};

bool read_costs(const std::string& text, Costs* costs) {
  std::istringstream numbers(text);
  numbers >> costs->latency_ns >> costs->message_ns >> costs->out_bytes_per_ns >>
      costs->in_bytes_per_ns >> costs->copy_bytes_per_ns >> costs->message_bytes;
  return numbers && costs->latency_ns >= 0 && costs->message_ns >= 0 &&
         costs->out_bytes_per_ns > 0 && costs->in_bytes_per_ns > 0 &&
         costs->copy_bytes_per_ns > 0 && costs->message_bytes > 0 &&
         costs->message_bytes <= kMostMessageBytes;
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
  if (!is_sound) {
    const std::string why = reader.problem.empty() ? "" : ": " + shown(reader.problem);
    return wrong(fmt::format("epoch {} of the timeline in '{}' cannot be understood{}",
                             request.epoch, request.name(), why));
  }
  fmt::print("epoch {}: rank {} to rank {}, recorded from {} µs on for {} µs\n", request.epoch,
             member(line, "pid"), member(line, "target"), member(line, "ts"), member(line, "dur"));
  explain(reader.queue, costs, request.policy.value_or(policy_of(named)), rma_bytes);
  return 0;
}

int read_trace(std::istream& input, const Request& request) {
  uint64_t count = 0;
  bool is_timeline = false;
  for (std::string line; std::getline(input, line);) {
    is_timeline = is_timeline || line.starts_with(R"({"name":)");
    if (!line.starts_with(R"({"name":"recorded")")) continue;
    ++count;
    if (count == request.epoch) return explain_event(line, request);
    if (request.epoch != 0) continue;
    fmt::print("{:6}  rank {} to {}: {} operations in {} messages, {} merged; {}: {}\n", count,
               member(line, "pid"), member(line, "target"), member(line, "operations"),
               member(line, "messages"), member(line, "merged"), member(line, "policy"),
               member(line, "why"));
  }
  if (count == 0 && !is_timeline) {
    return wrong(
        fmt::format("'{}' is neither a timeline of MOBIUS_TRACE nor a description of operations",
                    request.name()));
  }
  if (request.epoch != 0) {
    return wrong(fmt::format("there is no epoch {} in '{}'; the timeline has {}", request.epoch,
                             request.name(), count));
  }
  if (count == 0) fmt::print("the timeline has no operations for other hosts\n");
  return 0;
}

int read_description(std::istream& input, const Request& request) {
  // A program started here would have these settings, and would refuse a malformed one, too.
  base::Settings settings;
  if (settings.load(environ) != MOB_OK) return wrong(mob_last_error());
  for (const std::string& warning : settings.unknown()) {
    fmt::print(stderr, "mobius explain: warning: {}\n", warning);
  }
  QueueReader reader;
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    if (!reader.add(line)) {
      return wrong(fmt::format("line {} cannot be understood: {} ({})", number, shown(line),
                               shown(reader.problem)));
    }
  }
  Costs costs;
  costs.message_ns = static_cast<double>(settings.number(base::SettingId::kMessageNs));
  const uint64_t rma_bytes = settings.number(base::SettingId::kRma);
  const auto policy = static_cast<Policy>(settings.number(base::SettingId::kSchedule));
  explain(reader.queue, costs, request.policy.value_or(policy),
          rma_bytes == base::kAutomatic ? kRmaBytes : std::max<uint64_t>(rma_bytes, 1));
  return 0;
}

int read_and_explain(std::istream& input, const Request& request) {
  // A timeline begins with an array of JSON.
  if (input.peek() == '[') return read_trace(input, request);
  if (request.epoch != 0) {
    return wrong(
        fmt::format("--epoch needs a timeline (MOBIUS_TRACE), and '{}' is none", request.name()));
  }
  return read_description(input, request);
}

// Reports a wrong command line and returns its exit code; otherwise returns nothing.
std::optional<int> parse(std::span<char*> arguments, Request* request) {
  bool has_file = false;
  bool ended = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (ended || !argument.starts_with('-') || argument == "-") {
      if (has_file)
        return usage_error(fmt::format("only one FILE can be read, not also '{}'", argument));
      has_file = true;
      if (ended || argument != "-") request->file = arguments[i];
      continue;
    }
    if (argument == "--") {
      ended = true;
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view option = argument.substr(0, equals);
    if (option != "--policy" && option != "--epoch") {
      return usage_error(fmt::format("unknown option {}", argument));
    }
    std::string_view value;
    if (equals < argument.size()) {
      value = argument.substr(equals + 1);
    } else if (++i < arguments.size()) {
      value = arguments[i];
    } else {
      return usage_error(fmt::format("{} needs a value", option));
    }
    if (option == "--epoch") {
      if (!parse_number(value, &request->epoch) || request->epoch == 0) {
        return usage_error(fmt::format("--epoch '{}': must be a whole number from 1", value));
      }
      continue;
    }
    const std::string_view* found = find_policy(value);
    if (found == nullptr) {
      return usage_error(fmt::format("--policy '{}': must be one of {}", value, policy_names()));
    }
    request->policy = policy_of(found);
  }
  return std::nullopt;
}

}  // namespace

int explain_command(std::span<char*> arguments) {
  for (const char* argument : arguments) {
    const std::string_view word = argument;
    if (word == "--") break;
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kExplainHelp);
      return 0;
    }
  }
  Request request;
  if (const std::optional<int> code = parse(arguments, &request)) return *code;
  errno = 0;
  if (request.file == nullptr) {
    std::cin.peek();
    if (std::ferror(stdin) != 0) return unreadable("standard input", errno);
    return read_and_explain(std::cin, request);
  }
  std::ifstream input(request.file);
  input.peek();  // a folder can be opened, but not read
  if (!input.is_open() || input.bad()) return unreadable(request.file, errno);
  return read_and_explain(input, request);
}

}  // namespace mobius::command
