// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfer/hooks/watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace mobius::engine {
namespace {

constexpr const char* kKinds[] = {"put", "get", "accumulate", "fetch_accumulate"};

Path path_of(const WordUpdate& update) {
  return update.word != nullptr ? Path::kDirect : Path::kMessage;
}

using Row = std::vector<std::string>;

Row header() {
  Row row = {"target",    "puts",  "put bytes", "gets",      "get bytes", "accumulates",
             "acc bytes", "words", "messages",  "msg bytes", "failed"};
  for (const char* path : kPathNames) row.emplace_back(path);
  return row;
}

Row row_of(const std::string& title, const TargetCounts& counts) {
  Row row = {title};
  const auto add = [&](uint64_t number) { row.push_back(std::to_string(number)); };
  add(counts.operations[MOB_PUT]);
  add(counts.bytes[MOB_PUT]);
  add(counts.operations[MOB_GET]);
  add(counts.bytes[MOB_GET]);
  add(counts.operations[MOB_ACCUMULATE] + counts.operations[MOB_FETCH_ACCUMULATE]);
  add(counts.bytes[MOB_ACCUMULATE] + counts.bytes[MOB_FETCH_ACCUMULATE]);
  add(counts.updates);
  add(counts.messages);
  add(counts.message_bytes);
  add(counts.failures);
  for (const uint64_t operations : counts.paths) add(operations);
  return row;
}

void add_up(const TargetCounts& counts, TargetCounts* sum) {
  for (size_t i = 0; i < counts.operations.size(); ++i) {
    sum->operations[i] += counts.operations[i];
    sum->bytes[i] += counts.bytes[i];
  }
  for (size_t i = 0; i < counts.paths.size(); ++i) sum->paths[i] += counts.paths[i];
  sum->updates += counts.updates;
  sum->failures += counts.failures;
  sum->messages += counts.messages;
  sum->message_bytes += counts.message_bytes;
}

}  // namespace

std::string stats_table(mob_rank_t rank, const std::map<mob_rank_t, TargetCounts>& targets) {
  std::vector<Row> rows = {header()};
  TargetCounts sum;
  for (const auto& [target, counts] : targets) {
    rows.push_back(row_of(std::to_string(target), counts));
    add_up(counts, &sum);
  }
  rows.push_back(row_of("all", sum));

  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = "mobius: rank " + std::to_string(rank) + ": operations by target\n";
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text.append(widths[i] - row[i].size() + 2, ' ');
      text += row[i];
    }
    text += '\n';
  }
  return text;
}

std::string calls_line(mob_rank_t rank, const std::map<std::string, uint64_t>& calls) {
  if (calls.empty()) return {};
  std::string text = "mobius: rank " + std::to_string(rank) + ": collective calls:";
  const char* separator = " ";
  for (const auto& [call, times] : calls) {
    text += separator + call + " " + std::to_string(times);
    separator = ", ";
  }
  return text + '\n';
}

mob_status_t StatsHook::carry(const Operation& operation) {
  const mob_status_t status = next_.carry(operation);
  const std::lock_guard lock(mutex_);
  TargetCounts& counts = targets_[operation.transfer->rank];
  if (status != MOB_OK) {
    ++counts.failures;
    return status;
  }
  ++counts.operations[operation.transfer->kind];
  counts.bytes[operation.transfer->kind] += operation.shape.total_bytes;
  ++counts.paths[static_cast<size_t>(operation.route.path)];
  return status;
}

mob_status_t StatsHook::update(const WordUpdate& update) {
  const mob_status_t status = next_.update(update);
  const std::lock_guard lock(mutex_);
  TargetCounts& counts = targets_[update.rank];
  if (status != MOB_OK) {
    ++counts.failures;
    return status;
  }
  ++counts.updates;
  ++counts.paths[static_cast<size_t>(path_of(update))];
  return status;
}

void StatsHook::count_message(mob_rank_t target, size_t bytes, mob_status_t status) {
  const std::lock_guard lock(mutex_);
  TargetCounts& counts = targets_[target];
  if (status != MOB_OK) {
    ++counts.failures;
    return;
  }
  ++counts.messages;
  counts.message_bytes += bytes;
}

void StatsHook::count_call(const char* call) {
  const std::lock_guard lock(mutex_);
  ++calls_[call];
}

void StatsHook::note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  notes_ += "mobius: rank " + std::to_string(rank_) + ": " + line + '\n';
}

// One write, so that the tables of several ranks do not mix.
void StatsHook::finish() {
  const std::string text = stats_table(rank_, targets_) + calls_line(rank_, calls_) + notes_;
  // An error is ignored: there is nowhere to report it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

mob_status_t TraceHook::carry(const Operation& operation) {
  const uint64_t begin = Timeline::now();
  const mob_status_t status = next_.carry(operation);
  const mob_transfer_t& transfer = *operation.transfer;
  char arguments[160];
  std::snprintf(arguments, sizeof arguments,
                R"("target":%d,"bytes":%zu,"kind":"%s","path":"%s","status":%d)", transfer.rank,
                operation.shape.total_bytes, kKinds[transfer.kind],
                kPathNames[static_cast<size_t>(operation.route.path)], status);
  timeline_.add(operation.call, "operation", begin, arguments);
  return status;
}

mob_status_t TraceHook::update(const WordUpdate& update) {
  const uint64_t begin = Timeline::now();
  const mob_status_t status = next_.update(update);
  char arguments[160];
  std::snprintf(arguments, sizeof arguments,
                R"("target":%d,"bytes":%u,"kind":"word","path":"%s","status":%d)", update.rank,
                update.bytes, kPathNames[static_cast<size_t>(path_of(update))], status);
  timeline_.add(update.call, "operation", begin, arguments);
  return status;
}

mob_status_t TraceHook::order() {
  const uint64_t begin = Timeline::now();
  const mob_status_t status = next_.order();
  timeline_.add("mob_fence", "operation", begin);
  return status;
}

}  // namespace mobius::engine
