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
     "How addresses of local peers are translated. 'same' maps the memory window at one address "
     "in all of them, and fails if that is impossible; 'table' keeps one base address per "
     "process; 'auto' tries 'same' and falls back to 'table'."},
    {"MOBIUS_CMA", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether the kernel copies to and from exposed memory of local peers (cross-memory attach). "
     "'auto': until the kernel refuses; 'off': the owner's progress thread makes all copies."},
    {"MOBIUS_COLLECTIVES", SettingType::kChoice, "", "auto", 0, 0, "auto|attach|copy",
     SettingRole::kUser,
     "How collective calls move 16 KiB and more of private memory between local peers. 'attach': "
     "in place, by cross-memory attach; 'copy': through memory of the team; 'auto': by the faster "
     "of the two. A team tries both in its first calls of each kind and size, and again now and "
     "then."},
    {"MOBIUS_COPY_REP_BYTES", SettingType::kBytes, "bytes", "auto", 0, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "Size from which on copies use one string instruction (rep movsb). `mobius tune` measures a "
     "good value. 'auto': never."},
    {"MOBIUS_COPY_STREAM_BYTES", SettingType::kBytes, "bytes", "auto", 0, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "Size from which on copies bypass the caches when they write, for copies that are not timed "
     "both ways (MOBIUS_COPY_TRY_BYTES). `mobius tune` measures a good value. 'auto': the default "
     "of this processor, which `mobius info` shows."},
    {"MOBIUS_COPY_TRY_BYTES", SettingType::kBytes, "bytes", "4K", 4 << 10, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "Size from which on copies for a local peer are timed both through the caches and past them. "
     "Each thread times a few copies of each size now and then, and uses the faster way. Applies "
     "to puts of 16 KiB and more, to parts of messages and of data that passes through shared "
     "memory, and to gets that would bypass the caches (MOBIUS_COPY_STREAM_BYTES). 64T: never."},
    {"MOBIUS_HOOKS", SettingType::kHooks, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Hooks between calls and transfers, outermost first. trace and stats record (MOBIUS_TRACE, "
     "MOBIUS_STATS); delay:max_us=50:seed=1 delays operations; reorder:seed=1 carries out started "
     "operations in random order; fault:every=100:seed=1 makes operations fail. With any hook, no "
     "operation is inlined."},
    {"MOBIUS_INTERFACE", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Network between hosts: an interface or domain (eth0, mlx5_0), an address of this host, or a "
     "subnet (10.0.0.0/24), which may be the same value on all hosts. Unset: the fastest that is "
     "not a loopback."},
    {"MOBIUS_JOIN_SECONDS", SettingType::kCount, "s", "300", 1, 1'000'000, nullptr,
     SettingRole::kUser,
     "Time that mob_init() waits for the other processes of a job that a PMIx launcher started, "
     "and mob_spawn() for the processes that it started."},
    {"MOBIUS_LAUNCHER", SettingType::kChoice, "", "auto", 0, 0, "auto|none", SettingRole::kUser,
     "Whether programs started together by another launcher than `mobius run` form one job. "
     "'auto': they do, on any number of hosts if the launcher speaks PMIx (mpirun, prterun, srun "
     "--mpi=pmix), otherwise on this host; 'none': each process is a job of one. Under `mobius "
     "run`, the job is always that of `mobius run`."},
    {"MOBIUS_LOG", SettingType::kChoice, "", "warn", 0, 0, "error|warn|info|debug",
     SettingRole::kUser, "The least severe level of messages that are written to standard error."},
    {"MOBIUS_MAX_PROCESSES", SettingType::kCount, "", "4096", 1, 4096, nullptr, SettingRole::kUser,
     "The most processes that a job on one host can have in its life, those that mob_spawn() adds "
     "and those that have ended included. mob_spawn() fails where it would exceed that."},
    {"MOBIUS_MEETING", SettingType::kChoice, "", "auto", 0, 0, "auto|flags|grid|count",
     SettingRole::kUser,
     "How the members of a team on one host meet, in barriers and many collective calls. 'flags': "
     "each member reads the flags of all others; 'grid': it reads those of its row, then one of "
     "each other row; 'count': the members count in one word. 'auto': flags up to 16 members, a "
     "grid beyond, a count where some members must share a processor. Must be the same in all "
     "processes."},
    {"MOBIUS_MESSAGE_NS", SettingType::kCount, "ns", "1500", 1, 1'000'000'000, nullptr,
     SettingRole::kUser,
     "Cost of one more message to another host, without its bytes, at the side where it costs "
     "more. It determines up to which size operations share a message. `mobius tune` measures it "
     "for two hosts."},
    {"MOBIUS_MPI_MOVE", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether memory of the program that an MPI window is made of (MPI_Win_create(), "
     "MPI_Win_attach()) moves into shared memory, at its own address, so that processes of the "
     "host reach it directly. 'off': the kernel copies to and from it."},
    {"MOBIUS_MPI_WINDOWS", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether Möbius serves the windows of an MPI program that is started with its library for "
     "MPI. 'off': all of them are left to the MPI."},
    {"MOBIUS_ON_DEATH", SettingType::kChoice, "", "end", 0, 0, "end|error", SettingRole::kUser,
     "What `mobius run` does when a rank dies. 'end': it ends the job; 'error': the other ranks "
     "continue, and their calls that need the dead rank fail with MOB_ERR_PEER."},
    {"MOBIUS_PEER_TIMEOUT_MS", SettingType::kCount, "ms", "20000", 0, 86'400'000, nullptr,
     SettingRole::kUser,
     "Time after which a silent process of another host is declared dead: calls that need it then "
     "fail with MOB_ERR_PEER. 0: never."},
    {"MOBIUS_PROGRESS", SettingType::kChoice, "", "thread", 0, 0, "thread|poll", SettingRole::kUser,
     "Which threads run the handlers of messages. 'thread': a thread of the library, which sleeps "
     "until messages arrive, and threads that wait in the library or call mob_poll(); 'poll': "
     "only the latter."},
    {"MOBIUS_PROVIDER", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "libfabric provider between hosts, as `fi_info -l` names it (tcp;ofi_rxm, net, "
     "verbs;ofi_rxm, efa, cxi, psm3, opx). Unset: the best one found on this host."},
    {"MOBIUS_RING_BYTES", SettingType::kChoice, "", "auto", 0, 0, "auto|256K|1M",
     SettingRole::kUser,
     "Size of the ring for messages from one process to a local peer once much has flowed between "
     "them; it lies in memory of the receiver. 'auto': 1 MiB where the second-level cache holds "
     "512 KiB or less, so that lines are found in the next cache; else 256 KiB, which fit into "
     "the second-level cache. A process has at most four rings of 1 MiB, for its first senders."},
    {"MOBIUS_RMA_BYTES", SettingType::kBytes, "bytes", "auto", 0, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "Size from which on contiguous puts and gets between hosts use remote memory access, from "
     "user memory to user memory, instead of messages; for other shapes, the average size of "
     "their rows, pieces or spans. 'auto': 128K; over TCP, the first blocking calls of more than "
     "256K, up to 2M, try both ways, and later ones use the faster."},
    {"MOBIUS_RMA_KEYS", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether a process gives the remote access keys of its allocations to processes of other "
     "hosts that put to them. 'auto': the answer to the first put carries the key, and the origin "
     "writes later puts without asking until the allocation is freed; 'off': the origin asks each "
     "time."},
    {"MOBIUS_SCHEDULE", SettingType::kChoice, "", "adaptive", 0, 0,
     "adaptive|fifo|interleave|gets-first|aggregate", SettingRole::kUser,
     "How small or only started operations on other hosts' memory may be scheduled. 'fifo': each "
     "is a message of its own; 'interleave': gets and puts alternate; 'gets-first': gets are sent "
     "before puts; 'aggregate': many share a message; 'adaptive': whichever of these pays."},
    {"MOBIUS_SECURITY", SettingType::kChoice, "", "messages", 0, 0, "full|messages|off",
     SettingRole::kUser,
     "What is encrypted and authenticated between hosts. 'messages': every message, header and "
     "contents, but not large transfers by remote memory access; 'full': everything, without "
     "remote memory access, so that large transfers go by messages; 'off': nothing is encrypted, "
     "and the headers of messages are authenticated. It needs OpenSSL 3 on every host: if the "
     "variable is unset and OpenSSL is missing, a warning says so and nothing is encrypted. Must "
     "be the same in all processes."},
    {"MOBIUS_SPIN_NS", SettingType::kTime, "ns", "auto", 0, 1'000'000'000, nullptr,
     SettingRole::kUser,
     "Time that a waiting call spins before it yields, and that the network thread, if it has a "
     "processor, spins before it sleeps. 'auto': 20000, in jobs of several hosts 100000, while "
     "there is a processor for each local peer among those they may use; 0 where some must share "
     "one."},
    {"MOBIUS_SPREAD", SettingType::kChoice, "", "auto", 0, 0, "auto|off", SettingRole::kUser,
     "Whether a waiting thread moves away from a processor that it shares with another waiting "
     "local peer. 'auto': while there is a processor for each local peer among those they may "
     "use. The thread's allowed processors (taskset) do not change."},
    {"MOBIUS_STATS", SettingType::kChoice, "", "0", 0, 0, "0|1", SettingRole::kUser,
     "1: each rank prints operations, bytes and paths per target when it ends. The counts are "
     "exact because no operation is inlined meanwhile, which makes small operations slower."},
    {"MOBIUS_TRACE", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "File for a timeline that Perfetto and Chrome open, one per rank. %r in its name becomes the "
     "rank; without it, the rank is inserted before the extension. No operation is inlined "
     "meanwhile."},
    {"MOBIUS_TRACE_BYTES", SettingType::kBytes, "bytes", "256M", kMiB, 64 * kTiB, nullptr,
     SettingRole::kUser, "Size at which the timeline of each rank ends."},
    {"MOBIUS_WINDOW_BYTES", SettingType::kBytes, "bytes", "8T", 64 * kMiB, 64 * kTiB, nullptr,
     SettingRole::kUser,
     "Address space reserved for shared memory in each process. It costs no memory. Where address "
     "space is limited (ulimit -v), the size is halved until it fits."},
    {"MOBIUS_YIELD_NS", SettingType::kTime, "ns", "auto", 0, 1'000'000'000, nullptr,
     SettingRole::kUser,
     "Time that a waiting call, after spinning, keeps yielding its processor before it sleeps. "
     "Waking up takes tens of microseconds, for which the other side waits in turn. 'auto': "
     "1000000; 0 where nothing spins."},
    {"MOBIUS_YIELDS", SettingType::kCount, "", "16", 0, 1'000'000, nullptr, SettingRole::kUser,
     "Smallest number of times that a waiting call, after spinning, yields its processor before "
     "it sleeps."},
    {"MOBIUS_JOB", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Key of the job; `mobius run` sets it for the processes that it starts."},
    {"MOBIUS_RANK", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Rank in the job; `mobius run` sets it for the processes that it starts."},
    {"MOBIUS_PARENT", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Where a process connects that mob_spawn() has started on real hosts; mob_spawn() sets it."},
    {"MOBIUS_TAG", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "The launcher marks the output of processes, also of those that are spawned; `mobius run "
     "--hosts` sets it."},
    {"MOBIUS_CC", SettingType::kText, "", "cc", 0, 0, nullptr, SettingRole::kUser,
     "C compiler that mobcc and moblapicc call, with arguments if needed."},
    {"MOBIUS_CXX", SettingType::kText, "", "c++", 0, 0, nullptr, SettingRole::kUser,
     "C++ compiler that mobc++ and moblapic++ call, with arguments if needed."},
    {"MOBIUS_FC", SettingType::kText, "", "gfortran", 0, 0, nullptr, SettingRole::kUser,
     "Fortran compiler that moblapifort calls, with arguments if needed."},
    {"MOBIUS_HOME_BIN", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Folder of the native programs, for the instrument."},
    {"MOBIUS_HOME_CACHE", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Folder in which the instrument keeps the MPI libraries it installed and the programs it "
     "built. Unset: .mobius in a checkout, otherwise mobius in $XDG_CACHE_HOME or ~/.cache."},
    {"MOBIUS_PYTHON", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kUser,
     "Python interpreter for the instrument of an installed tree; it must have the minor version "
     "that the tree was installed for. Unset: the first of that version in PATH."},
    {"MOBIUS_SUITE_SOURCES", SettingType::kText, "", "", 0, 0, nullptr, SettingRole::kInternal,
     "Folder of the test-suite's sources, for the instrument."},
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

// Parses a decimal number that is the whole of `text`.
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

// The Levenshtein distance, for suggesting the name that the user meant.
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
  size_t least = 4;  // names at this distance or more are different words, not misspellings
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

const char* name_of(Security security) {
  switch (security) {
    case Security::kFull:
      return "full";
    case Security::kMessages:
      return "messages";
    case Security::kOff:
      return "off";
  }
  return "unknown";
}

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
