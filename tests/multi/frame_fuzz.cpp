// SPDX-License-Identifier: BSD-3-Clause

// Malformed frames of a process on another host that has the key of the job, in a job of two ranks
// on two virtual hosts, neither of which serves by a thread (MOBIUS_PROGRESS=poll).
//
//   frame_fuzz [SEED [FRAMES [FOLDER]]]   random frames
//   frame_fuzz record FOLDER              writes a file for each kind of message
//   frame_fuzz replay FOLDER...           the frames of files or folders, whole and cut off
//   frame_fuzz guided FOLDER [OPTIONS]    frames by libFuzzer, with its options (preset fuzz)
//
// Both ranks make some operations of every kind on each other, and rank 0 keeps copies of the
// library's messages. Then rank 0 processes frames of changed copies, and of the files, as if they
// came from rank 1, each at the end of memory that an inaccessible page follows. They must have no
// effects that valid messages could not have: no access outside the frame, no write outside memory
// of the job.
//
// The last line names the seed and says "right". The job ends then without finalising, because its
// state no longer matches the other rank's.

#include <mobius/mobius.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "frame_files.h"

namespace {

using mobius::engine::Engine;
using mobius::engine::FrameHeader;
using mobius::engine::FrameRecord;
using mobius::engine::Handler;
using mobius::engine::kFirst;
using mobius::engine::kHandlers;
using mobius::engine::kMore;
using mobius::engine::kPublicHandlers;
using mobius::engine::Link;
using mobius::engine::padded;
using mobius::engine::WireMessage;
using mobius::engine::WireNotify;

using frame_files::Bytes;
using frame_files::Files;

constexpr unsigned kUserHandler = 5;
constexpr size_t kWords = 512;
constexpr size_t kMostBytes = (size_t{1} << 16) - sizeof(FrameHeader);  // bytes that a frame holds

void need(mob_status_t status, const char* what) {
  if (status == MOB_OK) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", mob_rank(), what, mob_last_error());
  std::exit(3);
}

// Whether the secret is in the job's name, which every user of the machine can read.
bool is_told_by_name(const std::array<unsigned char, 16>& secret) {
  std::string digits;
  for (const unsigned char byte : secret) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits == std::getenv("MOBIUS_JOB") || secret == std::array<unsigned char, 16>{};
}

// Memory that ends at an inaccessible page.
class Fenced {
 public:
  explicit Fenced(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t all = (bytes + page - 1) / page * page;
    void* start =
        mmap(nullptr, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(static_cast<char*>(start) + all, page, PROT_NONE) != 0) {
      std::perror("mmap");
      std::exit(3);
    }
    end_ = static_cast<unsigned char*>(start) + all;
  }
  // The address from which so many bytes end at the page.
  unsigned char* last(size_t bytes) const { return end_ - bytes; }

 private:
  unsigned char* end_ = nullptr;
};

struct Message {
  unsigned id;
  Bytes header;
  Bytes payload;
};
std::vector<Message> recorded;
bool records = true;  // until there are enough

// Placed before each handler of the library: copies its message, and passes it on.
void record_messages(Engine& engine) {
  static std::vector<std::unique_ptr<std::pair<unsigned, Handler>>> originals;
  for (unsigned id = kPublicHandlers; id < kHandlers; ++id) {
    const Handler* known = engine.messages().handlers().find(id);
    if (known == nullptr) continue;
    originals.push_back(std::make_unique<std::pair<unsigned, Handler>>(id, *known));
    const auto record = [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
      const auto& [name, original] = *static_cast<std::pair<unsigned, Handler>*>(self);
      if (!records) return original.function(message, original.argument, delivery);
      const auto bytes = [](const void* from, size_t count) {
        const auto* start = static_cast<const unsigned char*>(from);
        return start == nullptr ? Bytes() : Bytes(start, start + count);
      };
      recorded.push_back({name, bytes(message->header, message->header_bytes),
                          bytes(message->payload, message->payload_bytes)});
      original.function(message, original.argument, delivery);
    };
    engine.messages().register_internal(static_cast<mobius::engine::InternalHandler>(id), record,
                                        originals.back().get());
  }
}

void take_user_message(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  static_cast<void>(message);
  static_cast<void>(argument);
  static_cast<void>(delivery);
}

// Makes operations of every kind on another rank.
void do_everything(mob_rank_t target, uint64_t* words, mob_counter_t counter, mob_mutexes_t mutexes,
                   mob_access_t access) {
  uint64_t local[64] = {1, 2, 3};
  uint64_t old[64] = {};
  const size_t counts[] = {4, 2};
  const ptrdiff_t remote_strides[] = {32, 512};
  const ptrdiff_t local_strides[] = {16, 128};
  const mob_span_t remote_spans[] = {{words + 8, 16}, {words + 40, 32}};
  const mob_span_t local_spans[] = {{local, 48}};
  for (const mob_kind_t kind : {MOB_PUT, MOB_GET, MOB_ACCUMULATE, MOB_FETCH_ACCUMULATE}) {
    mob_transfer_t transfer{};
    transfer.kind = kind;
    transfer.rank = target;
    transfer.remote = words;
    transfer.local = local;
    transfer.type = MOB_UINT64;
    transfer.op = MOB_SUM;
    transfer.fetched = old;
    transfer.bytes = 64;
    need(mob_transfer(&transfer), "a transfer");
    transfer.signal = words + 100;
    transfer.signal_op = MOB_SIGNAL_ADD;
    transfer.target_counter = counter;
    need(mob_transfer(&transfer), "a transfer that tells");
    transfer.shape = MOB_STRIDED;
    transfer.bytes = 16;
    transfer.dimensions = 2;
    transfer.counts = counts;
    transfer.remote_strides = remote_strides;
    transfer.local_strides = local_strides;
    need(mob_transfer(&transfer), "a strided transfer");
    transfer.shape = MOB_SPANS;
    transfer.remote_spans = remote_spans;
    transfer.remote_span_count = 2;
    transfer.local_spans = local_spans;
    transfer.local_span_count = 1;
    need(mob_transfer(&transfer), "a transfer of spans");
  }
  need(mob_compare_swap8(target, words, 1, 2, old), "mob_compare_swap8");
  need(mob_put_signal(target, words, local, 8, words + 3, 1, MOB_SIGNAL_SET), "mob_put_signal");
  need(mob_notify(target), "mob_notify");
  need(mob_message_send(target, kUserHandler, local, 8, local, 100, nullptr), "mob_message_send");
  need(mob_mutex_lock(mutexes, 0, target, nullptr), "mob_mutex_lock");
  need(mob_mutex_unlock(mutexes, 0, target), "mob_mutex_unlock");
  need(mob_access_lock(access, target, MOB_SHARED, nullptr), "mob_access_lock");
  need(mob_access_unlock(access, target), "mob_access_unlock");
  need(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), "mob_access_lock_nbi");
  need(mob_get8(target, words, old), "mob_get8");
  need(mob_access_unlock(access, target), "mob_access_unlock");
  need(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), "mob_access_lock_nbi");
  need(mob_put8(target, words, *old), "mob_put8");
  need(mob_access_unlock(access, target), "mob_access_unlock");
  need(mob_flush(target), "mob_flush");
}

// Transfers by remote memory access, whose permission ends with the memory.
void put_much(mob_rank_t target) {
  constexpr size_t kBytes = size_t{1} << 20;
  const std::vector<unsigned char> local(kBytes, 1);
  mob_mem_t mem = nullptr;
  void* there = nullptr;
  need(mob_mem_alloc(kBytes, &mem), "mob_mem_alloc");
  need(mob_mem_address(mem, target, 0, &there), "mob_mem_address");
  for (int i = 0; i < 2; ++i) {
    need(mob_put(target, there, local.data(), kBytes), "mob_put");
    need(mob_flush(target), "mob_flush");
  }
  need(mob_mem_free(mem), "mob_mem_free");
}

class Fuzz {
 public:
  // `frames`: of files, taken now and then.
  Fuzz(Engine& engine, uint64_t seed, std::vector<Bytes> frames = {})
      : engine_(engine), frames_(std::move(frames)), random_(seed), frame_(kMostBytes) {
    mobius::transport::ofi::Options options;
    options.interface = "127.0.0.1";
    options.allow_loopback = true;
    need(endpoint_.open(options, {}), "an endpoint");
  }

  // Processes a frame of one to three messages, changed or not.
  void take_frame() {
    Bytes frame;
    if (!frames_.empty() && one_in(4)) {
      frame = frames_[below(frames_.size())];
      change(frame, 0);
    } else {
      for (uint64_t left = 1 + below(3); left > 0; --left) append(any_message(), frame);
    }
    if (one_in(4)) change(frame, 0);
    if (one_in(8)) frame.resize(below(frame.size() + 1));
    FrameHeader header{1, 0, below(3), static_cast<uint32_t>(below(2)), 0, 0};
    if (one_in(16)) header.read = static_cast<uint32_t>(random_());
    take(header, std::move(frame));
  }

  // Processes each recorded message with each word of its header set to each boundary value, whole
  // and halved, and without its payload: sizes, counts, strides and lengths of lists among them.
  void take_each_word() {
    std::vector<Message> tried;
    for (const Message& message : recorded) {
      const bool is_new = std::ranges::none_of(tried, [&](const Message& other) {
        return other.id == message.id && other.header == message.header;
      });
      if (!is_new) continue;
      tried.push_back(message);
      take_whole({message.id, message.header, {}});
      for (size_t at = 0; at + 4 <= message.header.size(); at += 4) {
        for (const uint64_t value : {uint64_t{0}, uint64_t{64}, uint64_t{UINT32_MAX},
                                     uint64_t{INT32_MAX}, UINT64_MAX, uint64_t{INT64_MAX}}) {
          const size_t bytes = value <= UINT32_MAX ? 4 : 8;
          if (at % bytes != 0 || at + bytes > message.header.size()) continue;
          Message changed = message;
          std::memcpy(changed.header.data() + at, &value, bytes);
          take_whole(changed);
        }
      }
    }
  }

  // Processes a frame of these records, and the rest of its last message.
  void take(const FrameHeader& header, Bytes frame) {
    frame.resize(std::min(frame.size(), kMostBytes));
    Link link(engine_.network(), engine_.peers().rank(), engine_.progress(), endpoint_,
              engine_.messages(), 1, 0);
    accept(link, header, frame);
    end_message(link, header);
  }

  void take_whole(const Message& message) {
    const Bytes frame = whole(message);
    if (frame.size() <= kMostBytes) take({1, 0, 1, 0, 0, 0}, frame);
  }

  // A message as the only one of a frame.
  Bytes whole(const Message& message) {
    WireMessage wire{message.payload.size(), static_cast<uint16_t>(message.id),
                     static_cast<uint16_t>(message.header.size()), 0};
    Bytes frame;
    append_record(kFirst, with_payload(wire, message, message.payload.size()), frame);
    return frame;
  }

  // Changes the bytes from a place on: bits, bytes, or words that are boundary values.
  void change(Bytes& bytes, size_t from) {
    static constexpr uint64_t kLimits[] = {0,
                                           1,
                                           2,
                                           8,
                                           16,
                                           64,
                                           UINT32_MAX,
                                           INT32_MAX,
                                           UINT64_MAX,
                                           INT64_MAX,
                                           1ull << 63,
                                           1ull << 31,
                                           1ull << 20,
                                           1ull << 16,
                                           (1 << 20) + 1,
                                           UINT64_MAX - 15};
    if (bytes.size() <= from) return;
    for (uint64_t changes = 1 + below(3); changes > 0; --changes) {
      const size_t at = from + below(bytes.size() - from);
      const size_t word = at & ~size_t{7};
      switch (below(5)) {
        case 0:
          bytes[at] ^= static_cast<unsigned char>(1 << below(8));
          break;
        case 1:
          bytes[at] = static_cast<unsigned char>(random_());
          break;
        case 2:
          bytes[at] = static_cast<unsigned char>(bytes[at] + (one_in(2) ? 1 : -1));
          break;
        case 3:
          if (word >= from && word + 8 <= bytes.size()) {
            std::memcpy(bytes.data() + word, &kLimits[below(std::size(kLimits))], 8);
          }
          break;
        default: {
          const size_t half = at & ~size_t{3};
          const auto value = static_cast<uint32_t>(kLimits[below(std::size(kLimits))]);
          if (half >= from && half + 4 <= bytes.size()) std::memcpy(bytes.data() + half, &value, 4);
        }
      }
    }
  }

 private:
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }

  Message any_message() {
    Message message = recorded[below(recorded.size())];
    if (one_in(16)) message.id = static_cast<unsigned>(below(2 * kHandlers));
    if (!one_in(4)) change(message.header, 0);
    if (one_in(4)) change(message.payload, 0);
    if (one_in(8)) message.payload.resize(below(70'000));
    if (one_in(8)) message.header.resize(below(MOB_MAX_HEADER_BYTES + 1));
    return message;
  }

  void append(const Message& message, Bytes& frame) {
    const bool notify = one_in(8);
    WireMessage wire{message.payload.size(), static_cast<uint16_t>(message.id),
                     static_cast<uint16_t>(message.header.size()), notify ? 1u : 0u};
    if (one_in(32)) wire.payload_bytes = random_() >> below(64);
    if (one_in(32)) wire.header_bytes = static_cast<uint16_t>(random_());
    if (one_in(32)) wire.flags = static_cast<uint32_t>(random_());
    // Some come in two records.
    const size_t now = one_in(4) ? below(message.payload.size() + 1) : message.payload.size();
    append_record(kFirst, with_payload(wire, message, now, notify), frame);
    if (now == message.payload.size()) return;
    const auto middle = message.payload.begin() + static_cast<ptrdiff_t>(now);
    append_record(kMore, Bytes(middle, message.payload.end()), frame);
  }

  // The record of a message with the first bytes of its payload.
  Bytes with_payload(const WireMessage& wire, const Message& message, size_t bytes,
                     bool notify = false) {
    Bytes record(sizeof wire);
    std::memcpy(record.data(), &wire, sizeof wire);
    if (notify) record.resize(record.size() + sizeof(WireNotify), one_in(2) ? 0 : 0x55);
    record.insert(record.end(), message.header.begin(), message.header.end());
    if (!message.payload.empty()) record.resize(padded(record.size()));
    const auto end = message.payload.begin() + static_cast<ptrdiff_t>(bytes);
    record.insert(record.end(), message.payload.begin(), end);
    return record;
  }

  void append_record(uint32_t kind, const Bytes& bytes, Bytes& frame) {
    const FrameRecord head{kind, static_cast<uint32_t>(bytes.size()), 0};
    const auto* start = reinterpret_cast<const unsigned char*>(&head);
    frame.insert(frame.end(), start, start + sizeof head);
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    frame.resize(padded(frame.size()));
  }

  // Only valid frames have a multiple of 16 bytes: the frame ends where the memory ends, aligned as
  // arriving frames are.
  void accept(Link& link, const FrameHeader& header, const Bytes& frame) {
    unsigned char* place = frame_.last(padded(frame.size()));
    if (!frame.empty()) std::memcpy(place, frame.data(), frame.size());
    static_cast<void>(link.accept(header, place, frame.size()));
  }

  // A link keeps one message of which only the beginning has come. This link ends with its frame,
  // so nothing would free what the message's handler has allocated: the missing bytes, up to 2 MiB,
  // come now. A record of more bytes than are missing is invalid and has no effect.
  void end_message(Link& link, FrameHeader header) {
    constexpr size_t kMostAtOnce = size_t{1} << 15;
    static const std::vector<Bytes> rests = [this] {
      std::vector<Bytes> made;
      for (size_t bytes = kMostAtOnce; bytes != 0; bytes /= 2) {
        append_record(kMore, Bytes(bytes, 0x5a), made.emplace_back());
      }
      return made;
    }();
    header.wants_report = 0;
    int left = 64;
    for (const Bytes& rest : rests) {
      while (left > 0 && link.accept(header, rest.data(), rest.size())) --left;
    }
  }

  Engine& engine_;
  const std::vector<Bytes> frames_;
  std::mt19937_64 random_;
  Fenced frame_;
  mobius::transport::ofi::Endpoint endpoint_;
};

FrameHeader plain_header(uint32_t wants_report) { return {1, 0, 0, wants_report, 0, 0}; }

// One file for each kind and size of message.
void record(Fuzz& fuzz, const Files& files, const char* folder) {
  for (const Message& message : recorded) {
    files.write(std::string(folder) + "/message-" + std::to_string(message.id) + "-" +
                    std::to_string(message.header.size()) + "-" +
                    std::to_string(message.payload.size()),
                fuzz.whole(message));
  }
}

void replay(Fuzz& fuzz, const Bytes& frame) {
  for (const uint32_t wants_report : {0, 1, 2}) fuzz.take(plain_header(wants_report), frame);
  for (size_t parts = 1; parts < 16; ++parts) {
    fuzz.take(
        plain_header(0),
        Bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(frame.size() * parts / 16)));
  }
}

#ifdef MOBIUS_GUIDED

Fuzz* guided_fuzz = nullptr;
const Files* guided_files = nullptr;

int take_input(const uint8_t* data, size_t size) {
  // A byte that no record uses.
  const uint32_t wants_report = size > 8 ? data[8] % 3 : 0;
  guided_fuzz->take(plain_header(wants_report), guided_files->to_memory({data, data + size}));
  // Sends the answers, which otherwise take all memory in some minutes. The other rank may be busy,
  // or take no more of them: then they wait for the next input.
  const auto& messages = mobius::engine::engine().messages();
  static unsigned inputs = 0;
  if (++inputs % 16 == 0) need(mob_poll(), "mob_poll");
  for (int polls = 0; polls < 1000 && messages.has_queued(); ++polls) need(mob_poll(), "mob_poll");
  return 0;
}

#endif

}  // namespace

#ifdef MOBIUS_GUIDED

// Of libFuzzer, which has no header for them.
extern "C" int LLVMFuzzerRunDriver(int* count, char*** words,
                                   int (*take)(const uint8_t* data, size_t size));
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

// Every other time as libFuzzer changes bytes; else as random frames are changed, so that the sizes
// of records stay valid more often.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 2 == 0 || size < 2) return LLVMFuzzerMutate(data, size, most);
  Bytes bytes(data, data + size);
  guided_fuzz->change(bytes, seed % 4 == 1 && size > 32 ? 16 : 0);
  std::copy(bytes.begin(), bytes.end(), data);
  return size;
}

static int guide(Fuzz& fuzz, const Files& files, int count, char** words) {
  guided_fuzz = &fuzz;
  guided_files = &files;
  // libFuzzer ends by exit(), and this job cannot be finalised.
  std::atexit([] {
    std::fflush(nullptr);
    _exit(0);
  });
  return LLVMFuzzerRunDriver(&count, &words, take_input);
}

#else

static int guide(Fuzz&, const Files&, int, char**) {
  std::fprintf(stderr, "frame_fuzz guided needs the preset fuzz\n");
  return 2;
}

#endif

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "1";
  const uint64_t seed = std::strtoull(what.c_str(), nullptr, 0);
  const uint64_t frames = count > 2 ? std::strtoull(words[2], nullptr, 0) : 4'000;
  need(mob_init(), "mob_init");
  if (mob_size() != 2 || mob_host_size() != 1) {
    std::fprintf(stderr, "this needs two ranks on two hosts\n");
    return 2;
  }
  mob_mem_t memory = nullptr;
  need(mob_mem_alloc(kWords * sizeof(uint64_t), &memory), "mob_mem_alloc");
  void* there = nullptr;
  const mob_rank_t other = 1 - mob_rank();
  need(mob_mem_address(memory, other, 0, &there), "mob_mem_address");
  auto* beside = static_cast<uint64_t*>(mob_mem_local(memory)) + kWords;
  mob_mutexes_t mutexes = nullptr;
  need(mob_mutexes_create(MOB_TEAM_WORLD, 2, &mutexes), "mob_mutexes_create");
  mob_access_t access = nullptr;
  need(mob_access_create(MOB_TEAM_WORLD, &access), "mob_access_create");
  need(mob_handler_register(kUserHandler, take_user_message, nullptr), "mob_handler_register");
  mob_counter_t counter = nullptr;
  mob_counter_t counters[2] = {};
  need(mob_counter_create(&counter), "mob_counter_create");
  need(mob_allgather(MOB_TEAM_WORLD, &counter, counters, sizeof counter), "mob_allgather");
  Engine& engine = mobius::engine::engine();
  if (is_told_by_name(engine.peers().job().secret())) {
    std::fprintf(stderr, "who knows the name of the launcher's socket has the key of the job\n");
    return 3;
  }
  if (mob_rank() == 0) record_messages(engine);
  need(mob_barrier(), "mob_barrier");
  for (const mob_rank_t rank : {1, 0}) {
    if (mob_rank() == rank) {
      do_everything(other, static_cast<uint64_t*>(there), counters[other], mutexes, access);
    }
    need(mob_barrier(), "mob_barrier");
  }
  put_much(other);
  if (mob_rank() == 0) {
    uint64_t value = 0;
    for (int i = 0; i < 3; ++i) {
      void* elsewhere = nullptr;
      need(mob_mem_address(memory, 1, 0, &elsewhere), "mob_mem_address");
      need(mob_get(1, elsewhere, &value, sizeof value), "mob_get");
    }
  }
  need(mob_barrier(), "mob_barrier");
  if (mob_rank() == 1) {
    while (mob_rank_alive(0) == 1) {
      if (what == "guided") need(mob_poll(), "mob_poll");
      usleep(what == "guided" ? 100 : 10'000);
    }
    _exit(0);
  }
  // The rest of the page behind the allocation belongs to no object.
  for (size_t i = 0; i < kWords; ++i) {
    if (beside[i] != 0) need(MOB_ERR_SYSTEM, "memory behind an allocation");
  }
  records = false;
  const Files files(mob_mem_local(memory), kWords * sizeof(uint64_t));
  uint64_t taken = 0;
  if (what == "guided") {
    Fuzz fuzz(engine, seed);
    _exit(guide(fuzz, files, count - 1, words + 1));
  } else if (what == "record" && count == 3) {
    Fuzz fuzz(engine, seed);
    record(fuzz, files, words[2]);
  } else if (what == "replay") {
    Fuzz fuzz(engine, seed);
    for (int i = 2; i < count; ++i) {
      for (const Bytes& frame : files.read(words[i])) {
        replay(fuzz, frame);
        ++taken;
      }
    }
    if (taken == 0) need(MOB_ERR_SYSTEM, "no frames");
  } else {
    Fuzz fuzz(engine, seed, count > 3 ? files.read(words[3]) : std::vector<Bytes>());
    fuzz.take_each_word();
    for (; taken < frames; ++taken) fuzz.take_frame();
  }
  for (size_t i = 0; i < kWords; ++i) {
    if (beside[i] == 0) continue;
    std::fprintf(stderr, "written outside: word %zu, seed %llu\n", i,
                 static_cast<unsigned long long>(seed));
    _exit(4);
  }
  std::printf("frame_fuzz: %s, %llu frames of %zu messages: right\n", what.c_str(),
              static_cast<unsigned long long>(taken), recorded.size());
  std::fflush(stdout);
  _exit(0);
}
