// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "schedule/plan.h"
#include "schedule/wire.h"

namespace mobius::command {
namespace {

using schedule::Issue;
using schedule::Kind;
using schedule::Operation;
using schedule::Piece;
using schedule::Plan;
using schedule::Policy;

constexpr int kUsage = 2;

constexpr const char* kHelp =
    R"help(Prints how the scheduler issues the operations of an epoch, and why.

Usage: mobius explain [--policy POLICY] [FILE]

FILE (standard input if it is not named) describes what is recorded for one
target, a line each; # begins a comment:

  put  AT BYTES [FROM]   AT: where in the target's memory, FROM: where in the
  get  AT BYTES [TO]     caller's (behind what came before, if not named);
  acc  AT BYTES [FROM]   an accumulate
  x N  put …             the line N times, each behind the one before
  fence                  nothing passes

Numbers take a suffix K or M (powers of 1024). POLICY: adaptive (default), fifo,
interleave, gets-first, aggregate; docs/scheduler.md says what they do.

  $ printf 'x 16 put 0 64K\nx 16 get 16M 64K\n' | mobius explain

Exit codes: 0; 1 if FILE cannot be read; 2 for a wrong command line or line.
)help";

constexpr const char* kNames[] = {"put", "get", "accumulate", "fetch", "signal", "tell"};

bool parse_number(const std::string& word, uint64_t* number) {
  size_t used = 0;
  try {
    *number = std::stoull(word, &used);
  } catch (const std::exception&) {
    return false;
  }
  const std::string suffix = word.substr(used);
  if (suffix == "K") *number <<= 10;
  if (suffix == "M") *number <<= 20;
  return word[0] != '-' && (suffix.empty() || suffix == "K" || suffix == "M");
}

// The description as a queue.
class Reader {
 public:
  // False if the line makes no sense.
  bool add(const std::string& line) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) return true;
    if (word == "fence") {
      is_fenced_ = true;
      return !(words >> word);
    }
    uint64_t times = 1;
    if (word == "x" && (!(words >> word) || !parse_number(word, &times) || !(words >> word))) {
      return false;
    }
    Operation operation;
    if (word == "put" || word == "get" || word == "acc") {
      operation.kind = word == "put" ? Kind::kPut : word == "get" ? Kind::kGet : Kind::kAccumulate;
    } else {
      return false;
    }
    uint64_t bytes = 0;
    if (!(words >> word) || !parse_number(word, &operation.remote)) return false;
    if (!(words >> word) || !parse_number(word, &bytes) || bytes == 0) return false;
    uint64_t local = next_local_;
    if (words >> word && (!parse_number(word, &local) || words >> word)) return false;
    operation.bytes = bytes;
    constexpr uint64_t kMost = 1'000'000;
    if (times == 0 || times > kMost) return false;
    for (uint64_t i = 0; i < times; ++i) {
      // Only compared, never read.
      operation.local = reinterpret_cast<char*>(local);  // NOLINT(performance-no-int-to-ptr)
      operation.fenced = is_fenced_;
      is_fenced_ = false;
      queue.push_back(operation);
      operation.remote += bytes;
      local += bytes;
    }
    next_local_ = local;
    return true;
  }

  std::vector<Operation> queue;

 private:
  bool is_fenced_ = false;
  uint64_t next_local_ = uint64_t{1} << 40;
};

std::string piece_text(const std::vector<Operation>& queue, const Plan& plan, const Piece& piece) {
  const uint32_t index = plan.order[piece.first];
  const Operation& first = queue[index];
  std::string text = fmt::format("{} at {}, {} bytes", kNames[static_cast<size_t>(first.kind)],
                                 first.remote, piece.row_bytes);
  if (piece.rows > 1) text += fmt::format(", {} rows, {} apart", piece.rows, piece.stride);
  text += piece.count == 1 ? fmt::format("  (operation {})", index + 1)
                           : fmt::format("  (operations {} … {} merged)", index + 1,
                                         plan.order[piece.first + piece.count - 1] + 1);
  return text;
}

void print_issue(const std::vector<Operation>& queue, const Plan& plan, const Issue& issue,
                 size_t number) {
  const std::span pieces(plan.pieces.data() + issue.first, issue.count);
  if (!issue.packed) {
    fmt::print("{:4}  alone   {}\n", number, piece_text(queue, plan, pieces[0]));
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

void explain(const std::vector<Operation>& queue, Policy policy) {
  const schedule::Costs costs;
  Plan plan;
  schedule::make_plan(queue, costs, policy, &plan);
  fmt::print("{} operations, policy {}: {} messages\n", queue.size(),
             schedule::kPolicyNames[static_cast<size_t>(policy)], plan.issues.size());
  fmt::print("order: {} ({} overtaken)\n", plan.why, plan.savings.reordered);
  fmt::print("merged into another's transfer: {}, packed with others: {}\n", plan.savings.merged,
             plan.savings.packed);
  fmt::print("alone goes what is longer than {} bytes; a message holds {}\n\n",
             schedule::most_packed_bytes(costs), costs.message_bytes);
  for (size_t i = 0; i < plan.issues.size(); ++i) print_issue(queue, plan, plan.issues[i], i + 1);
}

int wrong(std::string_view text) {
  fmt::print(stderr, "mobius explain: {}; see mobius explain --help\n", text);
  return kUsage;
}

int read_and_explain(std::istream& input, Policy policy) {
  Reader reader;
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    if (!reader.add(line)) return wrong(fmt::format("line {} makes no sense: {}", number, line));
  }
  explain(reader.queue, policy);
  return 0;
}

}  // namespace

int explain_command(std::span<char*> arguments) {
  auto policy = Policy::kAdaptive;
  const char* file = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
    if (argument == "--policy" && i + 1 < arguments.size()) {
      const auto* found =
          std::ranges::find(schedule::kPolicyNames, std::string_view(arguments[++i]));
      if (found == std::end(schedule::kPolicyNames)) {
        return wrong(fmt::format("there is no policy '{}'", arguments[i]));
      }
      policy = static_cast<Policy>(found - std::begin(schedule::kPolicyNames));
    } else if (argument.starts_with('-') || file != nullptr) {
      return wrong(fmt::format("'{}' is not understood", argument));
    } else {
      file = arguments[i];
    }
  }
  if (file == nullptr) return read_and_explain(std::cin, policy);
  std::ifstream input(file);
  if (!input) {
    fmt::print(stderr, "mobius explain: {} cannot be read\n", file);
    return 1;
  }
  return read_and_explain(input, policy);
}

}  // namespace mobius::command
