// SPDX-License-Identifier: BSD-3-Clause

// Programs as text.

#include <cstdio>

#include "model/elements.h"
#include "random/program.h"

namespace random_program {

namespace {

std::string block_of(const Step& step) {
  return step.block < 0 ? "" : " in block " + std::to_string(step.block);
}

std::string place_of(const Step& step) {
  return std::to_string(step.width) + " bytes at " + std::to_string(step.remote) + " of rank " +
         std::to_string(step.rank) + block_of(step);
}

std::string text_of_transfer(const Step& step) {
  constexpr const char* kModes[] = {"", ", with handle", ", implicit"};
  std::string text = step.plan.text() + block_of(step) + kModes[static_cast<int>(step.mode)];
  if (step.by_message) {
    text += ", by message";
  } else if (step.by_name) {
    text += ", by name";
  }
  if (step.has_signal) {
    text += ", signal at " + std::to_string(step.signal) +
            (step.signal_op == MOB_SIGNAL_SET ? " := " : " += ") +
            std::to_string(step.signal_value);
  }
  if (step.told >= 0) text += ", tells actor " + std::to_string(step.told);
  if (step.counts_origin) text += ", origin counter";
  if (step.counts_completion) text += ", completion counter";
  return text;
}

}  // namespace

std::string text_of(const Step& step) {
  constexpr const char* kUpdates[] = {
      "add",      "and",       "or", "xor", "swap", "compare-swap", "compare-swap loop",
      "fetch-op", "locked add"};
  constexpr const char* kCompletions[] = {"each", "each, backwards", "all", "any", "some", "test",
                                          "all"};
  constexpr const char* kWaits[] = {"all", "any", "some", "test all", "test any", "test some"};
  const char* update = kUpdates[static_cast<int>(step.update)];
  switch (step.what) {
    case What::kTransfer:
      return text_of_transfer(step);
    case What::kPutValue:
      return "put " + place_of(step);
    case What::kGetValue:
      return "get " + place_of(step) + " to " + std::to_string(step.local);
    case What::kUpdate:
      return std::string(update) + " " +
             (step.update == Update::kFetchOp ? step.plan.text() : place_of(step)) + " to " +
             std::to_string(step.local);
    case What::kChain:
      return std::string(update) + " " + std::to_string(step.value) + " in the chain of " +
             place_of(step) + (step.tries ? ", trying" : "");
    case What::kComplete:
      return std::string("wait: ") + kCompletions[static_cast<int>(step.completion)] +
             ", origin counter " + std::to_string(step.count);
    case What::kFlush:
      return step.rank < 0 ? "flush all" : "flush " + std::to_string(step.rank);
    case What::kFlushLocal:
      return "flush local";
    case What::kFence:
      return "fence";
    case What::kAwaitCompletion:
      return "wait for completion counter " + std::to_string(step.count);
    case What::kAwait:
      return "wait to be told: counter " + std::to_string(step.count) + ", " +
             std::to_string(step.words.size()) + " words";
    case What::kAwaitFlags:
      return std::string("wait for flags, ") + kWaits[static_cast<int>(step.wait_set)] +
             ": segment " + std::to_string(step.segment);
    case What::kTogether:
      return "together " + std::to_string(step.together);
  }
  return "";
}

void print(const Program& program) {
  std::printf("seed %llu: %d ranks of %d threads, parts of %zu bytes\n",
              static_cast<unsigned long long>(program.seed), program.shape.ranks,
              program.shape.threads, program.shape.part_bytes);
  constexpr const char* kNames[] = {"barrier",   "signals",  "counters",    "notifications",
                                    "reduction", "messages", "epoch fence", "exposure"};
  for (const Round& round : program.rounds) {
    std::printf("round, by %s\n", kNames[static_cast<int>(round.sync)]);
    for (const Segment& segment : round.segments) std::printf("  %s\n", text_of(segment).c_str());
    for (size_t a = 0; a < round.actors.size(); ++a) {
      std::printf("  actor %zu\n", a);
      const auto lane = static_cast<size_t>(program.shape.lane_of(static_cast<Actor>(a)));
      for (const auto* steps : {&round.actors[a].before, &round.actors[a].after}) {
        for (const Step& step : *steps) {
          const std::string text = step.what == What::kTogether
                                       ? text_of(round.lanes[lane].steps[step.together])
                                       : text_of(step);
          std::printf("    %s\n", text.c_str());
        }
      }
    }
  }
  std::fflush(stdout);
}

}  // namespace random_program
