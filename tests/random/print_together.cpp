// SPDX-License-Identifier: BSD-3-Clause

// Joint operations and segments as text.

#include "model/elements.h"
#include "random/together.h"

namespace random_program {

namespace {

constexpr const char* kLocks[] = {"mutex", "access", "lock word"};

std::string text_of(const Range& range) {
  return "[" + std::to_string(range.start) + ", " + std::to_string(range.end()) + ")";
}

template <typename T>
std::string text_of(const std::vector<T>& list) {
  std::string text = "(";
  for (const T& value : list) text += (text.size() > 1 ? " " : "") + std::to_string(value);
  return text + ")";
}

std::string text_of(const std::vector<Buffer>& buffers) {
  constexpr const char* kPlaces[] = {"private", "shared", "own"};
  std::string text;
  for (const Buffer& buffer : buffers) {
    text += std::string(" ") + kPlaces[buffer.place] + "+" + std::to_string(buffer.at);
  }
  return text;
}

std::string text_of_data(const Together& together) {
  std::string text;
  if (has_root(together.call)) text += " root " + std::to_string(together.root);
  text += " of " + std::to_string(together.count);
  if (reduces(together.call)) {
    text += together.user ? " elements of " + std::to_string(together.element) + " by the user's"
                          : std::string(" ") + mobius_test::name_of(together.type) + " by " +
                                mobius_test::name_of(together.op);
  } else {
    text += " bytes";
  }
  if (!together.counts.empty()) text += ", sizes " + text_of(together.counts);
  if (together.in_place) text += ", in place";
  return text + ", from" + text_of(together.in) + ", to" + text_of(together.out);
}

std::string text_of_split(const Together& together) {
  constexpr const char* kWays[] = {"colour", "stride", "lists"};
  std::string text = std::string(" by ") + kWays[static_cast<int>(together.by)] + ":";
  for (size_t i = 0; i < together.lists.size(); ++i) {
    text += " team " + std::to_string(together.made[i]) + " " + text_of(together.lists[i]);
  }
  return text;
}

std::string text_of_block(const Together& together) {
  constexpr const char* kMemories[] = {"heap", "local", "exposed", "allocated"};
  constexpr const char* kManners[] = {"", ", zeroed", ", aligned", ", by realloc"};
  std::string text =
      " " + std::to_string(together.block) + " (" + kMemories[static_cast<int>(together.memory)];
  if (together.heap >= 0) text += " " + std::to_string(together.heap);
  text += std::string(")") + kManners[static_cast<int>(together.manner)];
  if (together.call == Call::kAllocate || together.call == Call::kResize) {
    text += ", " + std::to_string(together.before) + " -> " + std::to_string(together.bytes) +
            " bytes behind " + std::to_string(together.lead) + ", alignment " +
            std::to_string(together.alignment);
  }
  for (const Segment& segment : together.segments) text += "\n        " + text_of(segment);
  return text;
}

std::string text_of_exclusion(const Together& together) {
  constexpr const char* kModes[] = {"shared", "exclusive"};
  return std::string(" by ") + kLocks[static_cast<int>(together.lock)] + " of rank " +
         std::to_string(together.host) + ": member " + std::to_string(together.holder) +
         " holds it " + kModes[together.held] + ", the others try " + kModes[together.tried];
}

}  // namespace

std::string text_of(const Segment& segment) {
  constexpr const char* kUses[] = {"untouched", "read only",    "private",    "elements",
                                   "shared",    "sum chain",    "swap chain", "locked chain",
                                   "message",   "read message", "flags"};
  constexpr const char* kCompares[] = {"==", "!=", ">", ">=", "<", "<="};
  std::string text = std::string(kUses[static_cast<int>(segment.use)]) + " " +
                     text_of(segment.range) + " of rank " + std::to_string(segment.rank);
  if (segment.block >= 0) text += " in block " + std::to_string(segment.block);
  if (segment.use == Use::kPrivate || segment.use == Use::kElements) {
    text += " of actor " + std::to_string(segment.owner);
  }
  if (segment.use == Use::kLockedChain) {
    text += std::string(" by ") + kLocks[static_cast<int>(segment.lock)];
  }
  if (segment.use == Use::kMessage || segment.use == Use::kReadMessage) {
    text += " from actor " + std::to_string(segment.owner) + " to " + std::to_string(segment.told) +
            ", word at " + std::to_string(segment.word);
  }
  if (segment.use == Use::kFlags) {
    const Flags& flags = segment.flags;
    text += " from actors " + text_of(flags.senders) + " to " + std::to_string(segment.told) +
            ", " + mobius_test::name_of(segment.type) + " words at " +
            std::to_string(segment.word) + " " + text_of(flags.first) + " -> " +
            text_of(flags.last) + " " + kCompares[flags.compare] + " " + text_of(flags.values);
    if (flags.one_value) text += ", one value";
  }
  const bool typed = segment.use == Use::kElements || segment.use == Use::kShared;
  if (!segment.initial.empty() || typed) {
    text += std::string(", ") + mobius_test::name_of(segment.type);
  }
  if (segment.use == Use::kShared) text += std::string(" ") + mobius_test::name_of(segment.op);
  return text;
}

std::string text_of(const Together& together) {
  constexpr const char* kCalls[] = {
      "barrier",       "broadcast",    "reduce",         "allreduce",    "scan",
      "exscan",        "gather",       "gatherv",        "allgather",    "allgatherv",
      "scatter",       "alltoall",     "alltoallv",      "split",        "free the team",
      "create heap",   "destroy heap", "allocate block", "resize block", "hand over block",
      "look at block", "drop block",   "exclude"};
  std::string text = std::string("together: ") + kCalls[static_cast<int>(together.call)];
  if (moves_data(together.call)) {
    text += text_of_data(together);
  } else if (together.call == Call::kSplit) {
    text += text_of_split(together);
  } else if (together.call == Call::kExclude) {
    text += text_of_exclusion(together);
  } else if (together.block >= 0) {
    text += text_of_block(together);
  } else if (together.heap >= 0) {
    text += " " + std::to_string(together.heap) + " of " + std::to_string(together.heap_bytes) +
            " bytes";
  }
  return text + ", team " + std::to_string(together.team) + " " + text_of(together.members);
}

}  // namespace random_program
