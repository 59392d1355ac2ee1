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
#include "engine/rma/exposed_batch.h"
#include "engine/rma/exposed_tuning.h"
#include "engine/rma/path_costs.h"
#include "engine/scheduler/append_run.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/message_wire.h"
#include "engine/segment/ring_size.h"
#include "engine/team/rounds.h"
#include "info.h"
#include "job/job.h"
#include "os/topology.h"
#include "schedule/plan.h"
#include "transport/cma/cma.h"
#include "transport/shm/accumulate.h"
#include "transport/shm/copy_peer.h"

namespace mobius::command {
namespace {

using base::SettingId;
using base::Settings;

// Where a value comes from, for people, and for programs.
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

// `when` says with {} what the value bounds: "from {} on".
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

// What `mobius tune` measures has a default of its own.
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
      slow ? "by vector registers, because string instructions, which memcpy and the kernel use, "
             "crawl here where the target lies 1 to 31 bytes behind the source in their pages; "
             "the kernel's copies go by way of memory that does not"
           : "as all others: string instructions are as fast where the target lies 1 to 31 bytes "
             "behind the source in their pages",
      {"measured now", "measured"});
  fact.value["string_instructions_crawl"] = slow;
  return fact;
}

std::vector<Fact> copies(const Settings& settings) {
  const transport::CopyTuning standard = transport::default_copy_tuning();
  return {
      copy_size("copy_stream_bytes", "streaming copies", settings, SettingId::kCopyStreamBytes,
                standard.stream_from_bytes,
                "stores past the caches, because a copy that does not fit into them would "
                "read every line it writes"),
      copy_size("copy_try_bytes", "tried copies", settings, SettingId::kCopyTryBytes,
                standard.try_from_bytes,
                "what is written for a host-mate, and gets that would stream, through the caches "
                "or past them, as was faster when a few of about the size were timed both ways"),
      bytes("put_try_bytes", "tried puts", "of these, from {} on",
            transport::detail::kLeastTriedBytes, "to look at what is to be done costs less"),
      bytes("part_try_bytes", "tried parts", "of messages, from {} on",
            transport::detail::kLeastTriedPart, "their reader takes one while the next is written"),
      bytes("get_try_bytes", "tried gets", "of these, from {} on",
            transport::detail::kLeastTriedGet,
            "who gets something mostly reads it next, in the caches"),
      copy_size("copy_rep_bytes", "string copies", settings, SettingId::kCopyRepBytes,
                standard.rep_movsb_from_bytes,
                "one string instruction (rep movsb), which some processors do faster than "
                "vector stores"),
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
               fits.spin_ns, "others have processors of their own, and most waits are short", spin),
          time("spin_network_ns", "", "{} of them in jobs of several hosts", far.spin_ns,
               "an answer crosses the network twice", spin),
          time("spin_crowded_ns", "", fmt::format("{{}} with more than {} here", processors),
               crowded.spin_ns, "who is waited for may need the processor", spin),
          time("yield_ns", "yielding", "{} behind that", fits.yield_ns,
               "to be woken takes tens of microseconds, for which the other side waits", yield),
          time("yield_crowded_ns", "", fmt::format("{{}} with more than {} here", processors),
               crowded.yield_ns, "as nothing spins", yield),
          threshold("yields", "", "{} times in any case", std::to_string(fits.yields),
                    {{"count", fits.yields}}, "then the waiter sleeps",
                    source_of(settings, SettingId::kYields))};
}

// Exposed memory of a host-mate.
std::vector<Fact> exposed() {
  using engine::Delegation;
  using engine::ExposedBatch;
  return {
      bytes("desk_stretch_bytes", "a waiting target", "up to {}", Delegation::kMostBytes,
            "it puts and gets one stretch of its exposed memory itself: a few cache lines instead "
            "of a system call; beyond, the kernel, which copies once, is as fast"),
      bytes("desk_try_bytes", "", "from {} on", engine::ExposedTuning::kLeastBytes,
            "by it or by the kernel, as was faster in the last few of about the size that each "
            "process tried both ways"),
      bytes("desk_list_bytes", "", "lists and accumulates up to {}", Delegation::kMostAtOnce,
            "so much has room on its desk at once"),
      bytes("desk_fetch_bytes", "", "accumulates that fetch up to {}", engine::kFetchedAt,
            "what was there needs as much room again"),
      count("desk_spans", "", "lists up to {} pieces", engine::kMostSpans,
            "so many have room beside the bytes"),
      time("desk_patience_ns", "", "for {}", Delegation::kPatienceNs,
           "who is not at it by then is no faster than the kernel"),
      time("desk_call_patience_ns", "", "for {} if it is called", Delegation::kCallPatienceNs,
           "a thread takes as long to wake up"),
      count("call_pieces", "a called target", "from {} pieces on",
            engine::kCallNs / engine::kPieceNs + 1,
            "a waiting target is woken for a list, because the kernel's way takes longer"),
      bytes("call_bytes", "", "from {} on", engine::kCallNs * engine::kKernelBytesPerNs,
            "the same for lists of few pieces: so much takes the kernel as long"),
      count("kernel_pieces", "by the kernel", "lists up to {} pieces",
            engine::kServiceNs / engine::kPieceNs,
            fmt::format("and one more for each {} bytes: more of them the target's progress thread "
                        "carries out sooner, though it copies twice",
                        engine::kPieceNs * engine::kStageBytesPerNs)),
      bytes("kernel_gap_bytes", "", "gets of rows with gaps up to {}",
            transport::kWorthwhileGapBytes, "gaps are read, too, which costs less than a piece"),
      bytes("batch_put_bytes", "batches of puts", "up to {}", ExposedBatch::kMostBytes,
            "puts that are only started wait to share a call of the kernel"),
      count("batch_puts", "", "of {} puts", ExposedBatch::kMost,
            "so many pieces the kernel is given at once"),
      count("batch_alone", "", "{} at once behind one that waited alone", ExposedBatch::kAlone,
            "to wait costs half a call of the kernel"),
      bytes("stage_bytes", "served", "in parts of {}", engine::kStageBytes,
            "one is packed while the other is carried out")};
}

std::vector<Fact> accumulates() {
  return {bytes("lock_block_bytes", "accumulates", "up to {}", transport::kLockBlockBytes,
                "by one lock without a description, if they lie in one block of so many bytes"),
          bytes("word_zone_bytes", "", "of integers, within {} of an updated word",
                transport::kWordZoneBytes,
                "by atomic instructions, one per element, because words are updated without a "
                "lock")};
}

std::vector<Fact> messages(const Settings& settings) {
  const engine::RingSize& wider = engine::wanted_ring_size(settings.ring_bytes());
  const bool is_large = wider.capacity == engine::kLargeRing.capacity;
  const Source ring = source_of(settings, SettingId::kRing);
  return {
      bytes("message_in_place_bytes", "messages", "payloads from {} on", engine::kInPlaceFromBytes,
            "in memory that the target reaches, it takes them from there: a wait of their sender "
            "for one copy less"),
      bytes("message_attach_bytes", "", "private ones from {} on", engine::attach_from_bytes(),
            "while the sender waits, by the kernel where its copies are quick enough beside a "
            "memcpy, else through the ring",
            {"measured now", "measured"}),
      bytes("message_attach_nb_bytes", "", "private ones from {} on if nobody waits",
            engine::kAttachFromBytes,
            "by the kernel, which costs the target a system call and the sender nothing"),
      bytes("message_shared_bytes", "", "private ones from {} on, both ends copy",
            engine::kSharedFromBytes, "a sender that waits has nothing better to do"),
      bytes("message_mapped_shared_bytes", "", "shared ones from {} on, both ends copy",
            engine::kMappedSharedFromBytes,
            "the target copies these faster than it hands over parts"),
      bytes("message_ring_bytes", "message rings", "of {} for each pair", engine::kRingCapacity,
            "four records, so that a payload is written and read at the same time"),
      bytes("message_wide_ring_bytes", "", "of {} later", wider.capacity,
            is_large ? "what is written anew there is in neither processor's second-level cache, "
                       "but in the one behind, which both reach"
                     : "what is written anew there has left the first-level cache of who read it, "
                       "and fits into a second-level cache",
            ring),
      bytes("message_wide_after_bytes", "", "later: after {}", wider.after_bytes,
            "not every pair is worth the memory", ring),
      count("message_polled_rings", "", "{} looked at one by one", engine::kPolledRings,
            "rings of further senders say in a bitmap that there is something")};
}

std::vector<Fact> collectives() {
  return {bytes("collective_inline_bytes", "collective calls", "up to {}", engine::kInlineBytes,
                "beside the flag, in its cache line"),
          bytes("collective_redundant_bytes", "", "reductions of up to {} by all",
                engine::kRedundantBytes,
                "everyone combines all of it: less than a second round would cost"),
          bytes("collective_bulk_bytes", "", "in rounds of up to {}", engine::kBulkBytes,
                "through memory of the team"),
          bytes("collective_direct_bytes", "", "from {} on", engine::kDirectBytes,
                "straight to where it shall be: memory of allocations, and private memory by the "
                "kernel, if that was faster in the first calls of the team of that kind and size "
                "(MOBIUS_COLLECTIVES)")};
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
            "operations share messages where copying them twice takes less than a message more: "
            "MOBIUS_MESSAGE_NS by the bandwidth of copies",
            source_of(settings, SettingId::kMessageNs)),
      bytes("packed_message_bytes", "", "messages of up to {}", costs.message_bytes,
            "so much has room in one record"),
      bytes("kept_put_bytes", "", "blocking puts up to {}", engine::Scheduler::kMostKept,
            "copied, and recorded without a description: the call returns at once"),
      bytes("copied_put_bytes", "", "started puts up to {}", engine::Scheduler::kMostCopied,
            "copied, which costs less than to remember where they are"),
      bytes("stretch_bytes", "", "started ones up to {}", engine::AppendRun::kMostBytes,
            "inlined where they go on where the one before ended"),
      bytes("rma_bytes", "remote access", "from {} on", automatic ? NetworkRma::kLeastBytes : rma,
            "by remote memory access, from memory to memory: to ask for it and to be answered "
            "costs less than two copies",
            source_of(settings, SettingId::kRma))};
  if (automatic) {
    facts.push_back(bytes("rma_try_bytes", "", "over TCP, of more than {}", NetworkRma::kRushBytes,
                          "each process tries messages, too, in the first that a call waits for"));
    facts.push_back(bytes("rma_try_most_bytes", "", "… up to {}", NetworkRma::kMostTriedBytes,
                          "longer ones do not stay in caches on their way"));
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
