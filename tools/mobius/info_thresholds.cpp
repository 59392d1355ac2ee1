// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/settings.h"
#include "info.h"
#include "transport/shm/copy.h"

namespace mobius::command {
namespace {

// The size from which on copies work in some way: that of the setting, or the default, which
// `mobius tune` measures if `is_tuned`.
Fact threshold(const char* key, const char* label, base::SettingId setting, uint64_t standard,
               bool is_tuned, const char* gain) {
  const base::SettingInfo& info = base::setting_table()[static_cast<size_t>(setting)];
  const char* given = std::getenv(info.name);
  uint64_t bytes = base::kAutomatic;
  // A malformed value is shown among the settings.
  const bool usable = given != nullptr && base::parse_setting(info, given, &bytes) == MOB_OK;
  const bool chosen = usable && bytes != base::kAutomatic;
  if (!chosen) bytes = standard;
  constexpr uint64_t kNever = uint64_t{64} << 40;
  const std::string size = bytes >= kNever ? "never" : "from " + bytes_text(bytes) + " on";
  return {key,
          label,
          fmt::format("{}: {} ({}{})", size, gain,
                      chosen ? std::string("set by ") + info.name : "default",
                      is_tuned ? "; `mobius tune` measures" : ""),
          {{"bytes", bytes >= kNever ? Json(nullptr) : Json(bytes)},
           {"source", chosen ? "environment" : "default"}}};
}

Fact near_in_page() {
  const bool slow = transport::measure_near_in_page();
  return {
      "near_copies",
      "near copies",
      slow ? "by vector registers, because string instructions, which memcpy and the kernel use, "
             "crawl here where the target lies 1 to 31 bytes behind the source in their pages; "
             "the kernel's copies go by way of memory that does not (measured)"
           : "as all others: string instructions are as fast there (measured)",
      {{"string_instructions_crawl", slow}, {"source", "measured"}}};
}

}  // namespace

Section threshold_facts() {
  const transport::CopyTuning standard = transport::default_copy_tuning();
  return {
      "thresholds",
      "Thresholds",
      {threshold("copy_stream_bytes", "streaming copies", base::SettingId::kCopyStreamBytes,
                 standard.stream_from_bytes, true,
                 "stores past the caches, because a copy that does not fit into them would "
                 "read every line it writes"),
       threshold("copy_try_bytes", "tried copies", base::SettingId::kCopyTryBytes,
                 standard.try_from_bytes, false,
                 "what is written for a host-mate (puts of 16 KiB and more, parts of messages), "
                 "and gets that would stream, through the caches or past them, as was faster when "
                 "a few of about the size were timed both ways"),
       threshold("copy_rep_bytes", "string copies", base::SettingId::kCopyRepBytes,
                 standard.rep_movsb_from_bytes, true,
                 "one string instruction (rep movsb), which some processors do faster than "
                 "vector stores"),
       near_in_page()}};
}

}  // namespace mobius::command
