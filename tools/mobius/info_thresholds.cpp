// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "engine/collective/collective.h"
#include "engine/collective/collective_tuning.h"
#include "engine/message/message_payload.h"
#include "engine/network/network_rma.h"
#include "engine/request/am_rma_wire.h"
#include "engine/rma/delegation_slots.h"
#include "engine/rma/exposed/exposed_batch.h"
#include "engine/rma/exposed/exposed_tuning.h"
#include "engine/rma/exposed/path_costs.h"
#include "engine/scheduler/append_run.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/message_wire.h"
#include "engine/segment/ring_size.h"
#include "engine/team/rounds.h"
#include "info.h"
#include "job/job.h"
#include "os/cpu/topology.h"
#include "schedule/plan.h"
#include "transport/cma/cma.h"
#include "transport/shm/accumulate.h"
#include "transport/shm/copy_peer.h"

namespace mobius::command {
namespace {

using base::SettingId;
using base::Settings;

// Where a value comes from, in words for people and for programs.
struct Source {
  std::string text;
  const char* key;
};

Source built_in() { return {"built in", "built-in"}; }

Source source_of(const Settings& settings, SettingId id) {
  const std::string name = base::setting_table()[static_cast<size_t>(id)].name;
  const bool chosen = settings.is_set(id) && settings.number(id) != base::kAutomatic;
  return chosen ? Source{"set by " + name, "environment"} : Source{"default of " + name, "default"};
}

// `when` is the condition with the value as {}: "from {} on".
Fact threshold(const char* key, const char* label, std::string_view when, const std::string& shown,
               Json value, const std::string& why, const Source& source) {
  value["source"] = source.key;
  value["why"] = why;
  return {key, label,
          fmt::format("{}: {} ({})", fmt::format(fmt::runtime(when), shown), why, source.text),
          value};
}

Fact bytes(const char* key, const char* label, std::string_view when, uint64_t size,
           const std::string& why, const Source& source = built_in()) {
  constexpr uint64_t kNever = uint64_t{64} << 40;
  if (size >= kNever) return threshold(key, label, "never", "", {{"bytes", nullptr}}, why, source);
  return threshold(key, label, when, bytes_text(size), {{"bytes", size}}, why, source);
}

Fact count(const char* key, const char* label, std::string_view when, uint64_t number,
           const std::string& why) {
  return threshold(key, label, when, std::to_string(number), {{"count", number}}, why, built_in());
}

Fact time(const char* key, const char* label, std::string_view when, uint64_t ns,
          const std::string& why, const Source& source = built_in()) {
  return threshold(key, label, when, fmt::format("{} ns", ns), {{"ns", ns}}, why, source);
}

// A threshold that `mobius tune` measures; `standard` is its default.
Fact copy_size(const char* key, const char* label, const Settings& settings, SettingId id,
               uint64_t standard, const std::string& why) {
  Source source = source_of(settings, id);
  const uint64_t given = settings.number(id);
  if (id != SettingId::kCopyTryBytes) source.text += "; `mobius tune` measures";
  return bytes(key, label, "from {} on", given != base::kAutomatic ? given : standard, why, source);
}

Fact near_in_page() {
  const bool slow = transport::measure_near_in_page();
  Fact fact = bytes(
      "near_copies", "near copies", "from {} on", transport::kNearBytes,
      slow ? "copied with vector registers, because this processor's string instructions, which "
             "memcpy and the kernel use, are very slow when the target's offset in its page is 1 "
             "to 31 bytes above the source's; copies by the kernel go through other memory"
           : "copied like all others: string instructions are not slower here when the target's "
             "offset in its page is 1 to 31 bytes above the source's",
      {"measured now", "measured"});
  fact.value["string_instructions_crawl"] = slow;
  return fact;
}

std::vector<Fact> copies(const Settings& settings) {
  const transport::CopyTuning standard = transport::default_copy_tuning();
  return {
      copy_size("copy_stream_bytes", "streaming copies", settings, SettingId::kCopyStreamBytes,
                standard.stream_from_bytes,
                "stores bypass the caches, because a copy that does not fit into them would read "
                "every line that it writes"),
      copy_size("copy_try_bytes", "tried copies", settings, SettingId::kCopyTryBytes,
                standard.try_from_bytes,
                "copies to a local peer, and gets that would stream, go through the caches or past "
                "them, whichever was faster in a few timed copies of about this size"),
      bytes("put_try_bytes", "tried puts", "of these, from {} on",
            transport::detail::kLeastTriedBytes,
            "for smaller puts, choosing costs more than it saves"),
      bytes("part_try_bytes", "tried parts", "of messages, from {} on",
            transport::detail::kLeastTriedPart,
            "the receiver copies one part while the sender writes the next"),
      bytes("get_try_bytes", "tried gets", "of these, from {} on",
            transport::detail::kLeastTriedGet,
            "a program usually reads next what it got, from the caches"),
      copy_size("copy_rep_bytes", "string copies", settings, SettingId::kCopyRepBytes,
                standard.rep_movsb_from_bytes,
                "one string instruction (rep movsb), which is faster than vector stores on some "
                "processors"),
      near_in_page()};
}

std::vector<Fact> waiting(const Settings& settings) {
  const auto processors = static_cast<mob_rank_t>(os::processors_allowed());
  const os::WaitPolicy fits = job::wait_policy(settings, os::Room::kOneEach, 1);
  const os::WaitPolicy crowded = job::wait_policy(settings, os::Room::kCrowded, 1);
  const os::WaitPolicy far = job::wait_policy(settings, os::Room::kOneEach, 2);
  const Source spin = source_of(settings, SettingId::kSpin);
  const Source yield = source_of(settings, SettingId::kYield);
  return {time("spin_ns", "spinning", fmt::format("{{}} with up to {} processes here", processors),
               fits.spin_ns, "every process has a processor, and most waits are short", spin),
          time("spin_network_ns", "", "{} of them in jobs of several hosts", far.spin_ns,
               "request and answer cross the network", spin),
          time("spin_crowded_ns", "", fmt::format("{{}} with more than {} here", processors),
               crowded.spin_ns, "the process that is waited for may need this processor", spin),
          time("yield_ns", "yielding", "then {}", fits.yield_ns,
               "waking a sleeper takes tens of microseconds", yield),
          time("yield_crowded_ns", "", fmt::format("{{}} with more than {} here", processors),
               crowded.yield_ns, "instead of spinning", yield),
          threshold("yields", "", "at least {} times", std::to_string(fits.yields),
                    {{"count", fits.yields}}, "then the waiter sleeps",
                    source_of(settings, SettingId::kYields))};
}

// Exposed memory of a local peer.
std::vector<Fact> exposed() {
  using engine::Delegation;
  using engine::ExposedBatch;
  return {
      bytes("delegation_bytes", "a waiting target", "up to {}", Delegation::kMostBytes,
            "a target that waits in the library copies one range of its exposed memory itself, "
            "for a few cache misses instead of a system call; for larger ranges the kernel, which "
            "copies once, is as fast"),
      bytes("delegation_try_bytes", "", "from {} on", engine::ExposedTuning::kLeastBytes,
            "by the target or by the kernel, whichever was faster in the last timed transfers of "
            "about this size"),
      bytes("delegation_list_bytes", "", "lists and accumulates up to {}", Delegation::kMostAtOnce,
            "its slots have room for so much"),
      bytes("delegation_fetch_bytes", "", "accumulates that fetch up to {}", engine::kFetchedAt,
            "the fetched values need the same room again"),
      count("delegation_spans", "", "lists up to {} pieces", engine::kMostSpans,
            "a slot has room for so many beside the bytes"),
      time("delegation_patience_ns", "", "for {}", Delegation::kPatienceNs,
           "if the target has not begun by then, the kernel is as fast"),
      time("delegation_call_patience_ns", "", "for {} if it must be woken",
           Delegation::kCallPatienceNs, "a thread takes so long to wake up"),
      count("call_pieces", "a woken target", "from {} pieces on",
            engine::kCallNs / engine::kPieceNs + 1,
            "a sleeping target is woken for a list, because the kernel takes longer"),
      bytes("call_bytes", "", "from {} on", engine::kCallNs * engine::kKernelBytesPerNs,
            "also for lists of few pieces: the kernel takes as long for so many bytes"),
      count("kernel_pieces", "by the kernel", "lists up to {} pieces",
            engine::kServiceNs / engine::kPieceNs,
            fmt::format("and one more for each {} bytes: the target's progress thread is faster "
                        "with longer lists, although it copies twice",
                        engine::kPieceNs * engine::kStageBytesPerNs)),
      bytes("kernel_gap_bytes", "", "gets of rows with gaps up to {}",
            transport::kWorthwhileGapBytes,
            "the gaps are read, too, which costs less than another piece"),
      bytes("batch_put_bytes", "batches of puts", "up to {}", ExposedBatch::kMostBytes,
            "nonblocking puts wait to share a system call"),
      count("batch_puts", "", "of {} puts", ExposedBatch::kMost,
            "one system call takes so many pieces"),
      count("batch_alone", "", "{} not delayed after one that waited alone", ExposedBatch::kAlone,
            "a wait without company costs half a system call"),
      bytes("stage_bytes", "served", "in parts of {}", engine::kStageBytes,
            "the origin packs one part while the target works on the other")};
}

std::vector<Fact> accumulates() {
  return {bytes("lock_block_bytes", "accumulates", "up to {}", transport::kLockBlockBytes,
                "under one lock, if the target lies in one block of so many bytes"),
          bytes("word_zone_bytes", "", "of integers, within {} of an updated word",
                transport::kWordZoneBytes,
                "one atomic instruction per element, because atomic updates take no lock")};
}

std::vector<Fact> messages(const Settings& settings) {
  const engine::RingSize& wider = engine::wanted_ring_size(settings.ring_bytes());
  const bool is_large = wider.capacity == engine::kLargeRing.capacity;
  const Source ring = source_of(settings, SettingId::kRing);
  return {
      bytes("message_in_place_bytes", "messages", "payloads from {} on", engine::kInPlaceFromBytes,
            "the target copies payloads from memory that it can reach: one copy less, and the "
            "sender waits"),
      bytes("message_attach_bytes", "", "private ones from {} on", engine::attach_from_bytes(),
            "while the sender waits: copied by the kernel if it is fast enough compared with "
            "memcpy, else through the ring",
            {"measured now", "measured"}),
      bytes("message_attach_nb_bytes", "", "private ones from {} on, nonblocking",
            engine::kAttachFromBytes, "copied by the kernel, for a system call of the target"),
      bytes("message_shared_bytes", "", "private ones from {} on, both ends copy",
            engine::kSharedFromBytes, "the sender would only wait"),
      bytes("message_mapped_shared_bytes", "", "shared ones from {} on, both ends copy",
            engine::kMappedSharedFromBytes,
            "the target copies smaller ones faster than it shares the work"),
      bytes("message_ring_bytes", "message rings", "of {} for each pair", engine::kRingCapacity,
            "four records, so that sender and receiver work on a payload at the same time"),
      bytes("message_wide_ring_bytes", "", "of {} later", wider.capacity,
            is_large ? "larger than a second-level cache, so that a line written again is in the "
                       "last-level cache, which both processors share"
                     : "larger than a first-level cache, so that a line written again has left the "
                       "reader's, and fits into a second-level cache",
            ring),
      bytes("message_wide_after_bytes", "", "later means after {}", wider.after_bytes,
            "few pairs are worth the memory", ring),
      count("message_polled_rings", "", "{} polled one by one", engine::kPolledRings,
            "further senders set a bit in a bitmap when their ring has a message")};
}

std::vector<Fact> collectives() {
  return {bytes("collective_inline_bytes", "collective calls", "up to {}", engine::kInlineBytes,
                "the data shares the flag's cache line"),
          bytes("collective_redundant_bytes", "", "reductions of up to {}, redundantly",
                engine::kRedundantBytes,
                "each member combines everything, which costs less than another round"),
          bytes("collective_bulk_bytes", "", "in rounds of up to {}", engine::kBulkBytes,
                "data passes through the team's memory"),
          bytes("collective_direct_bytes", "", "from {} on", engine::kDirectBytes,
                "copied directly between the members' buffers, private ones by the kernel, if this "
                "was faster in the team's first calls of that kind and size (MOBIUS_COLLECTIVES)")};
}

// Between hosts.
std::vector<Fact> network(const Settings& settings) {
  using engine::NetworkRma;
  schedule::Costs costs;
  costs.message_ns = static_cast<double>(settings.number(SettingId::kMessageNs));
  const uint64_t rma = settings.number(SettingId::kRma);
  const bool automatic = rma == base::kAutomatic;
  std::vector<Fact> facts = {
      bytes("packed_bytes", "between hosts", "up to {}", schedule::most_packed_bytes(costs),
            "operations share messages if copying them twice takes less time than another message: "
            "MOBIUS_MESSAGE_NS times the bandwidth of copies",
            source_of(settings, SettingId::kMessageNs)),
      bytes("packed_message_bytes", "", "messages of up to {}", costs.message_bytes,
            "a record has room for so much"),
      bytes("kept_put_bytes", "", "blocking puts up to {}", engine::Scheduler::kMostKept,
            "copied into the recorded data: the call returns at once"),
      bytes("copied_put_bytes", "", "nonblocking puts up to {}", engine::Scheduler::kMostCopied,
            "copied, which costs less than keeping track of the source"),
      bytes("append_run_bytes", "", "nonblocking ones up to {}", engine::AppendRun::kMostBytes,
            "appended inline if they begin where the one before ended")};
  if (settings.security() == base::Security::kFull) {
    facts.push_back({"rma_bytes", "remote access",
                     "never: it cannot be authenticated (MOBIUS_SECURITY=full)",
                     Json{{"bytes", nullptr}}});
    return facts;
  }
  facts.push_back(
      bytes("rma_bytes", "remote access", "from {} on", automatic ? NetworkRma::kLeastBytes : rma,
            "remote memory access, from memory to memory: request and answer cost less than two "
            "copies",
            source_of(settings, SettingId::kRma)));
  if (automatic) {
    facts.push_back(bytes("rma_try_bytes", "", "over TCP, of more than {}", NetworkRma::kRushBytes,
                          "each process times messages, too, in its first blocking transfers"));
    facts.push_back(bytes("rma_try_most_bytes", "", "... up to {}", NetworkRma::kMostTriedBytes,
                          "larger ones do not stay in the caches on their way"));
  }
  return facts;
}

}  // namespace

Section threshold_facts() {
  const Settings settings = usable_settings();
  Section section{"thresholds", "Thresholds", {}};
  for (const std::vector<Fact>& part :
       {copies(settings), waiting(settings), exposed(), accumulates(), messages(settings),
        collectives(), network(settings)}) {
    section.facts.insert(section.facts.end(), part.begin(), part.end());
  }
  return section;
}

}  // namespace mobius::command
