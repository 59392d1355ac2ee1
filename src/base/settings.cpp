// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/hook_list.h"
#include "base/status.h"

namespace mobius::base {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kTiB = uint64_t{1} << 40;

// In the order of SettingId.
constexpr SettingInfo kTable[] = {
    {"MOBIUS_ADDRESS_MODE", SettingType::kChoice, "", "auto", 0, 0, "auto|same|table",
     SettingRole::kUser,
     "How addresses of host-mates are translated: 'same' needs the memory window at one address in "
     "all of them and fails otherwise, 'table' keeps one base per process, 'auto' tries the first "
     "and falls back to the second."},
    {"MOBIUS_CMA", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether the kernel copies to and from exposed memory of host-mates (cross-memory attach): "
     "'auto' until it refuses, 'off' leaves all of it to the owner's progress thread."},
    {"MOBIUS_COLLECTIVES", SettingType::kChoice, "", "auto", 0, 0, "auto|attach|copy",
     SettingRole::kUser,
     "How collective calls move 16 KiB and more of private memory between host-mates: 'attach' by "
     "cross-memory attach, where it lies, 'copy' through memory of the team, 'auto' what was "
     "faster in the first calls of the team of that kind and size, which try both by turns; so do "
     "a few now and then."},
    {"MOBIUS_COPY_REP_BYTES", SettingType::kBytes, "bytes", "auto", 0, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "From which size on copies use one string instruction (rep movsb); `mobius tune` measures a "
     "good value. 'auto': never."},
    {"MOBIUS_COPY_STREAM_BYTES", SettingType::kBytes, "bytes", "auto", 0, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "From which size on copies write past the caches, unless they are tried "
     "(MOBIUS_COPY_TRY_BYTES); `mobius tune` measures a good value. 'auto': the default of this "
     "processor, which `mobius info` shows."},
    {"MOBIUS_COPY_TRY_BYTES", SettingType::kBytes, "bytes", "4K", 4 << 10, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "From which size on what is written for a host-mate is tried both through the caches and past "
     "them: puts of 16 KiB and more, parts of messages and of what is moved through shared memory, "
     "and gets that would go past them otherwise (MOBIUS_COPY_STREAM_BYTES). Each thread times a "
     "few of each size both ways, now and then, and takes the faster one. 64T: never."},
    {"MOBIUS_HOOKS", SettingType::kHooks, "", "", 0, 0, nullptr, SettingRole::kUser,
     "What stands between calls and transfers, outermost first: trace and stats watch "
     "(MOBIUS_TRACE, MOBIUS_STATS), delay:max_us=50:seed=1 makes operations late, reorder:seed=1 "
     "carries out in random order what was only started, fault:every=100:seed=1 lets operations "
     "fail. While there is a hook, no operation is inlined."},
    {"MOBIUS_INTERFACE", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Network between hosts: interface or domain (eth0, mlx5_0), address of this host, or subnet "
     "(10.0.0.0/24), which is the same on all hosts. Unset: the fastest that is not a loopback."},
    {"MOBIUS_JOIN_SECONDS", SettingType::kCount, "s", "300", 1, 1'000'000, nullptr,
     SettingRole::kUser,
     "How long mob_init() waits for the other processes of a job that a PMIx launcher started."},
    {"MOBIUS_LAUNCHER", SettingType::kChoice, "", "auto", 0, 0, "auto|none", SettingRole::kUser,
     "Whether a program that another launcher than `mobius run` started joins the others that it "
     "started: 'auto' it does, on any number of hosts where the launcher speaks PMIx (mpirun, "
     "prterun, srun --mpi=pmix), otherwise on this host; 'none' makes each process a job of one. "
     "Under `mobius run` it is that job that counts."},
    {"MOBIUS_LOG", SettingType::kChoice, "", "warn", 0, 0, "error|warn|info|debug",
     SettingRole::kUser, "The least severe messages written to standard error."},
    {"MOBIUS_MEETING", SettingType::kChoice, "", "auto", 0, 0, "auto|flags|grid|count",
     SettingRole::kUser,
     "How the members of a team on one host meet, in barriers and many collective calls: 'flags' "
     "everyone looks at everyone's, 'grid' at those of a row, then at one of each other row, "
     "'count' they count themselves. 'auto': flags up to 16 members, beyond a grid, a count where "
     "some must share a processor. The same in all processes."},
    {"MOBIUS_MESSAGE_NS", SettingType::kCount, "ns", "1500", 1, 1'000'000'000, nullptr,
     SettingRole::kUser,
     "What one more message to another host costs beside its bytes, to the side that has more of "
     "it: from it follows up to which size operations share a message. `mobius tune` measures it "
     "for two hosts."},
    {"MOBIUS_ON_DEATH", SettingType::kChoice, "", "end", 0, 0, "end|error", SettingRole::kUser,
     "What `mobius run` does when a rank dies: 'end' ends the job, 'error' lets the others go on, "
     "whose calls that need the dead rank fail with MOB_ERR_PEER."},
    {"MOBIUS_PEER_TIMEOUT_MS", SettingType::kCount, "ms", "20000", 0, 86'400'000, nullptr,
     SettingRole::kUser,
     "How long a process of another host that is waited for may be silent before calls that need "
     "it fail with MOB_ERR_PEER. 0: for ever."},
    {"MOBIUS_PROGRESS", SettingType::kChoice, "", "thread", 0, 0, "thread|poll", SettingRole::kUser,
     "Who runs the handlers of messages that arrive: 'thread' also a thread of the library that "
     "sleeps until they do, 'poll' only threads that wait in the library or call mob_poll()."},
    {"MOBIUS_PROVIDER", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Provider of libfabric between hosts, as `fi_info -l` names it (tcp;ofi_rxm, net, "
     "verbs;ofi_rxm, efa, cxi, psm3, opx). Unset: the best that is found here."},
    {"MOBIUS_RING_BYTES", SettingType::kChoice, "", "auto", 0, 0, "auto|256K|1M",
     SettingRole::kUser,
     "Room for messages from one process to a host-mate once much has flowed between them, in the "
     "memory of who receives them: 'auto' 1 MiB where a second-level cache holds 512 KiB or less, "
     "so that lines are found in the cache behind it, else 256 KiB, which fit into it. Of 1 MiB "
     "each process has four, for the first senders; the others have 256 KiB."},
    {"MOBIUS_RMA_BYTES", SettingType::kBytes, "bytes", "auto", 0, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "From which size on contiguous puts and gets between hosts go by remote memory access, from "
     "user's memory to user's memory, instead of in messages; of other shapes, what their rows, "
     "pieces or spans have on average. auto: 128K; but over TCP the first of more than 256K, up to "
     "2M, that calls wait for try both, and the others go as was faster."},
    {"MOBIUS_RMA_KEYS", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether a process tells those of other hosts that put to its allocations by remote memory "
     "access the keys of these: 'auto' it does, with its answer to the first put, and they write "
     "the next ones by themselves until the allocation is freed, 'off' they ask each time."},
    {"MOBIUS_SCHEDULE", SettingType::kChoice, "", "adaptive", 0, 0,
     "adaptive|fifo|interleave|gets-first|aggregate", SettingRole::kUser,
     "What may be done with operations on other hosts' memory that are small, or only started: "
     "'fifo' each is a message of its own, 'interleave' gets and puts alternate, 'gets-first' gets "
     "do not wait behind puts, 'aggregate' many share a message, 'adaptive' what pays of these."},
    {"MOBIUS_SPIN_NS", SettingType::kTime, "ns", "auto", 0, 1'000'000'000, nullptr,
     SettingRole::kUser,
     "How long a waiting call spins before it yields, and the network's thread, if there is a "
     "processor for it, before it sleeps. 'auto': 20000, in jobs of several hosts 100000, while "
     "each host-mate can have one of the processors that they may use; 0 where some must share "
     "one."},
    {"MOBIUS_SPREAD", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether a waiting thread that shares its processor with a host-mate that waits, too, goes on "
     "on another one. 'auto': while each host-mate can have one of the processors they may use. "
     "What the thread is allowed (taskset) stays as it is."},
    {"MOBIUS_STATS", SettingType::kChoice, "", "0", 0, 0, "0|1", SettingRole::kUser,
     "1: each rank prints at its end, per target, operations, bytes and paths. Counts are exact "
     "because nothing is inlined meanwhile, which makes small operations slower."},
    {"MOBIUS_TRACE", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "File for a timeline that Perfetto and Chrome open, one per rank: %r in its name becomes the "
     "rank, otherwise the rank stands before the extension. Nothing is inlined meanwhile."},
    {"MOBIUS_TRACE_BYTES", SettingType::kBytes, "bytes", "256M", kMiB, 64 * kTiB, nullptr,
     SettingRole::kUser, "Where the timeline of each rank ends."},
    {"MOBIUS_WINDOW_BYTES", SettingType::kBytes, "bytes", "8T", 64 * kMiB, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "Address space reserved for shared memory in each process. Costs no memory; halved until it "
     "fits where address space is limited (ulimit -v)."},
    {"MOBIUS_YIELD_NS", SettingType::kTime, "ns", "auto", 0, 1'000'000'000, nullptr,
     SettingRole::kUser,
     "How long a waiting call that has spun gives its processor away, again and again, before it "
     "sleeps: to be woken takes tens of microseconds, for which the other side waits in turn. "
     "'auto': 1000000; 0 where nothing spins."},
    {"MOBIUS_YIELDS", SettingType::kCount, "", "16", 0, 1'000'000, nullptr, SettingRole::kUser,
     "How often a waiting call gives its processor away, after spinning, before it sleeps, however "
     "short that takes."},
    {"MOBIUS_JOB", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Key of the job, set by `mobius run` for the processes it starts."},
    {"MOBIUS_RANK", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Rank in the job, set by `mobius run` for the processes it starts."},
    {"MOBIUS_CC", SettingType::kText, "", "cc", 0, 0, nullptr, SettingRole::kUser,
     "C compiler that mobcc and moblapicc call, with arguments if need be."},
    {"MOBIUS_CXX", SettingType::kText, "", "c++", 0, 0, nullptr, SettingRole::kUser,
     "C++ compiler that mobc++ and moblapic++ call, likewise."},
    {"MOBIUS_FC", SettingType::kText, "", "gfortran", 0, 0, nullptr, SettingRole::kUser,
     "Fortran compiler that moblapifort calls, likewise."},
    {"MOBIUS_HOME_BIN", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Folder of the native programs, for the instrument."},
    {"MOBIUS_HOME_CACHE", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Folder where the instrument keeps the MPI libraries it installed and the probes it built. "
     "Unset: .mobius in a checkout, otherwise mobius in $XDG_CACHE_HOME or ~/.cache."},
    {"MOBIUS_PROBE_SOURCES", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Folder of the probes' sources, for the instrument."},
    {"MOBIUS_PYTHON", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Python interpreter that the instrument of an installed tree runs with, of the minor version "
     "that it was installed for. Unset: the first of that version in PATH."},
};
static_assert(std::size(kTable) == static_cast<size_t>(SettingId::kCount));

std::vector<std::string_view> split_choices(const char* choices) {
  std::vector<std::string_view> words;
  std::string_view rest = choices;
  while (true) {
    const size_t bar = rest.find('|');
    words.push_back(rest.substr(0, bar));
    if (bar == std::string_view::npos) return words;
    rest.remove_prefix(bar + 1);
  }
}

bool takes_auto(const SettingInfo& info) {
  return info.type == SettingType::kTime || std::string_view(info.default_text) == "auto";
}

std::string allowed_values(const SettingInfo& info) {
  switch (info.type) {
    case SettingType::kCount:
      return "a whole number from " + std::to_string(info.minimum) + " to " +
             std::to_string(info.maximum);
    case SettingType::kTime:
      return "'auto' or a whole number of nanoseconds from " + std::to_string(info.minimum) +
             " to " + std::to_string(info.maximum);
    case SettingType::kBytes:
      return (takes_auto(info) ? "'auto' or a" : "a") +
             std::string(" number of bytes with an optional suffix K, M, G or T, from ") +
             setting_bytes_text(info.minimum) + " to " + setting_bytes_text(info.maximum);
    case SettingType::kChoice: {
      std::string words;
      for (std::string_view word : split_choices(info.choices)) {
        if (!words.empty()) words += ", ";
        words += word;
      }
      return "one of " + words;
    }
    case SettingType::kHooks:
      return "a list of trace, stats, delay[:max_us=N][:seed=N], reorder[:seed=N] and "
             "fault[:every=N][:seed=N]";
    case SettingType::kText:
      break;
  }
  return "any text";
}

// Parses a decimal number that fills `text` up to its `suffix_length` last characters.
bool parse_decimal(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parse_bytes(std::string_view text, uint64_t* number) {
  static constexpr char kSuffixes[] = "KMGT";
  unsigned shift = 0;
  if (!text.empty()) {
    const char last = static_cast<char>(text.back() & ~0x20);
    const char* suffix = last != '\0' ? std::strchr(kSuffixes, last) : nullptr;
    if (suffix != nullptr) {
      shift = 10 * static_cast<unsigned>(suffix - kSuffixes + 1);
      text.remove_suffix(1);
    }
  }
  uint64_t value = 0;
  if (!parse_decimal(text, &value) || value > (UINT64_MAX >> shift)) return false;
  *number = value << shift;
  return true;
}

// Levenshtein distance, to suggest the name that was meant.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string unknown_warning(std::string_view name) {
  const SettingInfo* nearest = nullptr;
  size_t least = 4;  // further away than this is another word, not a slip
  for (const SettingInfo& info : kTable) {
    const size_t d = distance(name, info.name);
    if (info.role == SettingRole::kUser && d < least) {
      least = d;
      nearest = &info;
    }
  }
  std::string text = "unknown setting " + std::string(name) + " ignored; ";
  if (nearest != nullptr) return text + "did you mean " + nearest->name + "?";
  return text + "`mobius info` lists the settings";
}

}  // namespace

std::string setting_bytes_text(uint64_t bytes) {
  static constexpr const char* kSuffixes[] = {"", "K", "M", "G", "T"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kSuffixes)) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kSuffixes[unit];
}

std::span<const SettingInfo> setting_table() { return kTable; }

mob_status_t parse_setting(const SettingInfo& info, std::string_view text, uint64_t* number) {
  bool ok = false;
  uint64_t value = 0;
  const bool measured = info.type == SettingType::kTime || info.type == SettingType::kBytes;
  if (measured && takes_auto(info) && text == "auto") {
    *number = kAutomatic;
    return MOB_OK;
  }
  switch (info.type) {
    case SettingType::kCount:
    case SettingType::kTime:
      ok = parse_decimal(text, &value);
      break;
    case SettingType::kBytes:
      ok = parse_bytes(text, &value);
      break;
    case SettingType::kChoice: {
      const auto words = split_choices(info.choices);
      const auto found = std::find(words.begin(), words.end(), text);
      if (found != words.end()) {
        *number = static_cast<uint64_t>(found - words.begin());
        return MOB_OK;
      }
      break;
    }
    case SettingType::kHooks: {
      std::vector<HookSpec> hooks;
      std::string problem;
      *number = 0;
      if (parse_hooks(text, &hooks, &problem)) return MOB_OK;
      return fail(MOB_ERR_SETTING, "%s='%.*s' is not allowed: %s; it takes %s (default none)",
                  info.name, static_cast<int>(std::min<size_t>(text.size(), 100)), text.data(),
                  problem.c_str(), allowed_values(info).c_str());
    }
    case SettingType::kText:
      *number = 0;
      return MOB_OK;
  }
  if (!ok || value < info.minimum || value > info.maximum) {
    return fail(MOB_ERR_SETTING, "%s='%.*s' is not allowed; it takes %s (default %s)", info.name,
                static_cast<int>(std::min<size_t>(text.size(), 100)), text.data(),
                allowed_values(info).c_str(), info.default_text);
  }
  *number = value;
  return MOB_OK;
}

mob_status_t Settings::load(const char* const* environment) {
  for (size_t i = 0; i < std::size(kTable); ++i) {
    values_[i].text = kTable[i].default_text;
    values_[i].from_environment = false;
    if (const mob_status_t status =
            parse_setting(kTable[i], kTable[i].default_text, &values_[i].number)) {
      return status;
    }
  }
  unknown_count_ = 0;
  for (const char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const size_t equals = pair.find('=');
    if (!pair.starts_with("MOBIUS_") || equals == std::string_view::npos) continue;
    const std::string_view name = pair.substr(0, equals);
    const std::string_view text = pair.substr(equals + 1);
    const auto* found = std::find_if(std::begin(kTable), std::end(kTable),
                                     [&](const SettingInfo& info) { return name == info.name; });
    if (found == std::end(kTable)) {
      if (unknown_count_ < std::size(unknown_)) unknown_[unknown_count_++] = unknown_warning(name);
      continue;
    }
    Value& value = values_[found - std::begin(kTable)];
    if (const mob_status_t status = parse_setting(*found, text, &value.number)) return status;
    value.text = text;
    value.from_environment = true;
  }
  return MOB_OK;
}

std::span<const std::string> Settings::unknown() const { return {unknown_, unknown_count_}; }

}  // namespace mobius::base
