// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/process/environment.h"

#include "job/bootstrap/local_protocol.h"

namespace mobius::launch {
namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

Environment::Environment(char* const* inherited, const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    std::erase_if(changes_,
                  [&](const std::string& earlier) { return name_of(earlier) == name_of(change); });
    changes_.push_back(change);
  }
  for (char* const* entry = inherited; *entry != nullptr; ++entry) {
    const std::string_view name = name_of(*entry);
    bool dropped =
        name == job::kJobVariable || name == job::kRankVariable || name == job::kParentVariable;
    for (const std::string& change : changes_) dropped = dropped || name == name_of(change);
    if (!dropped) entries_.push_back(*entry);
  }
  for (std::string& change : changes_) entries_.push_back(change.data());
  entries_.push_back(nullptr);
}

const char* Environment::get(std::string_view name) const {
  for (const char* entry : entries_) {
    if (entry != nullptr && name_of(entry) == name) return entry + name.size() + 1;
  }
  return nullptr;
}

char* const* Environment::of_rank(std::string_view key, mob_rank_t rank) {
  job_ = std::string(job::kJobVariable) + "=" + std::string(key);
  rank_ = std::string(job::kRankVariable) + "=" + std::to_string(rank);
  if (of_rank_.empty()) {
    of_rank_ = entries_;
    of_rank_.resize(entries_.size() + 2, nullptr);
  }
  of_rank_[entries_.size() - 1] = job_.data();
  of_rank_[entries_.size()] = rank_.data();
  return of_rank_.data();
}

}  // namespace mobius::launch
