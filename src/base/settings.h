// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The one table of MOBIUS_* settings: every name, type, unit, default, range and help text. The
// parser, `mobius info` and the check for unknown names use it; nothing else reads the environment.

#include <mobius/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mobius::base {

enum class SettingId : unsigned {
  kAddressMode,
  kCma,
  kCollectives,
  kCopyRepBytes,
  kCopyStreamBytes,
  kCopyTryBytes,
  kHooks,
  kInterface,
  kJoinSeconds,
  kLauncher,
  kLog,
  kMaxProcesses,
  kMeeting,
  kMessageNs,
  kMpiMove,
  kMpiWindows,
  kOnDeath,
  kPeerTimeout,
  kProgress,
  kProvider,
  kRing,
  kRma,
  kRmaKeys,
  kSchedule,
  kSecurity,
  kSpin,
  kSpread,
  kStats,
  kTrace,
  kTraceBytes,
  kWindowBytes,
  kYield,
  kYields,
  kJob,
  kRank,
  kParent,
  kTag,
  kCc,
  kCxx,
  kFc,
  kHomeBin,
  kHomeCache,
  kProbeSources,
  kPython,
  kCount
};

enum class SettingType {
  kCount,   // a decimal number
  kTime,    // a decimal number of nanoseconds, or "auto"
  kBytes,   // "auto" only where that is the default
            // where that is the default
  kChoice,  // one word of a list
  kHooks,   // any text: names that the tools use and the engine does not interpret
  kText     // anything; for names that the tools use and the engine does not interpret
};

// A user sets a setting, or one part of Möbius sets it for another.
enum class SettingRole { kUser, kInternal };

struct SettingInfo {
  const char* name;
  SettingType type;
  const char* unit;
  const char* default_text;
  uint64_t minimum;
  uint64_t maximum;
  const char* choices;  // words separated by '|', for kChoice
  SettingRole role;
  const char* help;
};

inline constexpr uint64_t kAutomatic = UINT64_MAX;  // the value of a setting left at "auto"

// These enumerations have the order of the table's choices.
enum class AddressMode : uint64_t { kAuto, kSame, kTable };
enum class Collectives : uint64_t { kAuto, kAttach, kCopy };
enum class LauncherMode : uint64_t { kAuto, kNone };
enum class MeetBy : uint64_t { kAuto, kFlags, kGrid, kCount };
enum class OnDeath : uint64_t { kEnd, kError };
enum class ProgressMode : uint64_t { kThread, kPoll };
enum class RingBytes : uint64_t { kAuto, k256K, k1M };
enum class Security : uint64_t { kFull, kMessages, kOff };
const char* name_of(Security security);  // "unknown" for a number of none

std::span<const SettingInfo> setting_table();

// The settings of one process. Filled once, then only read.
class Settings {
 public:
  // Parses one environment (environ in a process). A malformed value fails with MOB_ERR_SETTING;
  // the text names the variable, its value, the allowed values and the default. Unknown MOBIUS_*
  // names do not fail: unknown() has one warning for each.
  mob_status_t load(const char* const* environment);

  uint64_t number(SettingId id) const { return values_[index(id)].number; }
  const std::string& text(SettingId id) const { return values_[index(id)].text; }
  bool is_set(SettingId id) const { return values_[index(id)].from_environment; }
  bool cma_allowed() const { return number(SettingId::kCma) == 0; }
  bool spreads() const { return number(SettingId::kSpread) == 0; }
  Collectives collectives() const {
    return static_cast<Collectives>(number(SettingId::kCollectives));
  }
  AddressMode address_mode() const {
    return static_cast<AddressMode>(number(SettingId::kAddressMode));
  }
  LauncherMode launcher() const { return static_cast<LauncherMode>(number(SettingId::kLauncher)); }
  MeetBy meet_by() const { return static_cast<MeetBy>(number(SettingId::kMeeting)); }
  OnDeath on_death() const { return static_cast<OnDeath>(number(SettingId::kOnDeath)); }
  ProgressMode progress_mode() const {
    return static_cast<ProgressMode>(number(SettingId::kProgress));
  }
  RingBytes ring_bytes() const { return static_cast<RingBytes>(number(SettingId::kRing)); }
  Security security() const { return static_cast<Security>(number(SettingId::kSecurity)); }
  std::span<const std::string> unknown() const;

 private:
  struct Value {
    uint64_t number = 0;
    std::string text;
    bool from_environment = false;
  };
  static constexpr size_t index(SettingId id) { return static_cast<size_t>(id); }

  Value values_[static_cast<size_t>(SettingId::kCount)];
  std::string unknown_[8];  // only the first few are reported
  size_t unknown_count_ = 0;
};

// Writes a number of bytes as settings of type kBytes are written: "64M".
std::string setting_bytes_text(uint64_t bytes);

// Parses `text` as a value of `info`'s type and range.
mob_status_t parse_setting(const SettingInfo& info, std::string_view text, uint64_t* number);

}  // namespace mobius::base
