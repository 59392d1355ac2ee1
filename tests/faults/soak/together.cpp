// SPDX-License-Identifier: BSD-3-Clause

// The ranks of the soak exchange messages, and make collective calls and joint objects.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "job.h"
#include "messages.h"

namespace soak {
namespace {

// The messages that a rank has received from one sender. Handlers run one at a time.
struct Inbox {
  Job* job = nullptr;
  uint32_t last = 0;
  MessageHeader header{};
  size_t bytes = 0;
  std::vector<unsigned char> payload;
  std::vector<unsigned char> expected;
};
std::vector<Inbox> inboxes;  // by writer

void take_payload(mob_token_t token, void* argument) {
  Inbox& inbox = *static_cast<Inbox*>(argument);
  fill_message(inbox.header, inbox.expected.data(), inbox.bytes);
  if (std::memcmp(inbox.payload.data(), inbox.expected.data(), inbox.bytes) != 0) {
    complain("message %u of writer %u, %zu bytes: wrong payload", inbox.header.number,
             inbox.header.writer, inbox.bytes);
  }
  if (inbox.header.wants_reply == 0) return;
  MessageHeader header = inbox.header;
  header.wants_reply = 0;
  const auto sender = inbox.job->rank_of_writer(header.writer);
  inbox.job->note_message(sender);
  const mob_status_t status =
      mob_message_reply(token, kReply, &header, sizeof header, inbox.payload.data(),
                        std::min<size_t>(inbox.bytes, 500), nullptr);
  if (status == MOB_OK || (status == MOB_ERR_PEER && inbox.job->may_fail(sender, true))) return;
  complain("a reply to rank %d gave %s: %s", sender, mob_status_name(status), mob_last_error());
}

void take_message(const mob_message_t* message, void*, mob_delivery_t* delivery) {
  MessageHeader header{};
  if (message->header_bytes == sizeof header) {
    std::memcpy(&header, message->header, sizeof header);
  }
  if (header.writer >= inboxes.size() || message->payload_bytes > inboxes[0].payload.size() ||
      inboxes[0].job->rank_of_writer(header.writer) != message->source) {
    return complain("a message of rank %d with a wrong header", message->source);
  }
  Inbox& inbox = inboxes[header.writer];
  if (header.number != inbox.last + 1) {
    complain("message %u of writer %u follows message %u", header.number, header.writer,
             inbox.last);
  }
  inbox.last = header.number;
  inbox.header = header;
  inbox.bytes = message->payload_bytes;
  delivery->payload = inbox.payload.data();
  delivery->handler = take_payload;
  delivery->argument = &inbox;
}

void take_reply(const mob_message_t* message, void*, mob_delivery_t*) {
  MessageHeader header{};
  std::memcpy(&header, message->header, std::min(message->header_bytes, sizeof header));
  std::vector<unsigned char> expected(message->payload_bytes);
  fill_message(header, expected.data(), expected.size());
  // A payload this short has always arrived.
  if (message->payload == nullptr
          ? !expected.empty()
          : std::memcmp(message->payload, expected.data(), expected.size()) != 0) {
    complain("a reply of rank %d: wrong payload", message->source);
  }
}

// A collective call of a team, with values that differ between rounds, members and places.
class Together {
 public:
  Together(Job& job, Team& team, uint64_t round)
      : job_(job),
        team_(team),
        random_(job.plan().seed * 7919 + round),
        size_(team.size()),
        own_(mob_team_rank(team.handle)) {}

  void run() {
    static constexpr size_t kCounts[] = {1, 8, 90, 700, 12000};
    count_ = kCounts[below(std::size(kCounts))];
    root_ = static_cast<mob_rank_t>(below(static_cast<uint64_t>(size_)));
    salt_ = random_();
    const auto all = static_cast<size_t>(size_) * count_;
    in_.assign(all, 0);
    out_.assign(all, 0);
    switch (below(15)) {
      case 0:
        return (void)done(mob_team_barrier(team_.handle), "mob_team_barrier");
      case 1:
        return broadcast();
      case 2:
        return gather();
      case 3:
        return scatter();
      case 4:
        return alltoall();
      case 5:
      case 6:
        return reduce(true);
      case 7:
        return reduce(false);
      case 8:
        return scan();
      case 9:
      case 10:
        return allocation();
      case 11:
        return heap();
      case 12:
        return split();
      default:
        return exposure();
    }
  }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  size_t bytes() const { return count_ * sizeof(uint64_t); }
  uint64_t value(mob_rank_t from, mob_rank_t to, size_t at) const {
    return salt_ + static_cast<uint64_t>(from) * 1009 + static_cast<uint64_t>(to) * 31 + at;
  }
  void fill(mob_rank_t block, mob_rank_t from, mob_rank_t to) {
    uint64_t* start = in_.data() + static_cast<size_t>(block) * count_;
    for (size_t i = 0; i < count_; ++i) start[i] = value(from, to, i);
  }
  void expect(const char* what, const uint64_t* start, mob_rank_t from, mob_rank_t to) const {
    for (size_t i = 0; i < count_; ++i) {
      if (start[i] == value(from, to, i)) continue;
      complain("%s of %zu words: word %zu from %d for %d is %lx, not %lx", what, count_, i, from,
               to, static_cast<unsigned long>(start[i]),
               static_cast<unsigned long>(value(from, to, i)));
      return;
    }
  }
  const uint64_t* out(mob_rank_t block) const {
    return out_.data() + static_cast<size_t>(block) * count_;
  }

  // Whether the call succeeded. If not, a member has died, and the team is lost.
  bool done(mob_status_t status, const char* what) {
    if (status == MOB_OK) return true;
    team_.lost = true;
    if (status != MOB_ERR_PEER || !job_.may_lose(team_)) {
      complain("%s gave %s: %s", what, mob_status_name(status), mob_last_error());
    } else if (!job_.is_lenient() && std::ranges::all_of(team_.members, [](mob_rank_t member) {
                 return mob_rank_alive(member) != 0;
               })) {
      complain("%s gave MOB_ERR_PEER while all members are alive: %s", what, mob_last_error());
    }
    return false;
  }

  void broadcast() {
    if (own_ == root_) fill(0, root_, 0);
    uint64_t* buffer = own_ == root_ ? in_.data() : out_.data();
    if (!done(mob_broadcast(team_.handle, root_, buffer, bytes()), "mob_broadcast")) return;
    expect("mob_broadcast", buffer, root_, 0);
  }

  void gather() {
    fill(0, own_, 0);
    const bool to_all = below(2) == 0;
    const mob_status_t status =
        to_all ? mob_allgather(team_.handle, in_.data(), out_.data(), bytes())
               : mob_gather(team_.handle, root_, in_.data(), out_.data(), bytes());
    if (!done(status, "mob_gather") || (!to_all && own_ != root_)) return;
    for (mob_rank_t from = 0; from < size_; ++from) expect("mob_gather", out(from), from, 0);
  }

  void scatter() {
    for (mob_rank_t to = 0; to < size_; ++to) fill(to, root_, to);
    if (done(mob_scatter(team_.handle, root_, in_.data(), out_.data(), bytes()), "mob_scatter")) {
      expect("mob_scatter", out_.data(), root_, own_);
    }
  }

  void alltoall() {
    for (mob_rank_t to = 0; to < size_; ++to) fill(to, own_, to);
    if (!done(mob_alltoall(team_.handle, in_.data(), out_.data(), bytes()), "mob_alltoall")) return;
    for (mob_rank_t from = 0; from < size_; ++from) expect("mob_alltoall", out(from), from, own_);
  }

  // The sum of the values of members 0 … last.
  void expect_sum(const char* what, mob_rank_t last) const {
    for (size_t i = 0; i < count_; ++i) {
      uint64_t sum = 0;
      for (mob_rank_t from = 0; from <= last; ++from) sum += value(from, from, i);
      if (out_[i] == sum) continue;
      complain("%s of %zu words: word %zu is wrong", what, count_, i);
      return;
    }
  }

  void reduce(bool at_all) {
    fill(0, own_, own_);
    const mob_status_t status =
        at_all
            ? mob_allreduce(team_.handle, MOB_SUM, MOB_UINT64, in_.data(), out_.data(), count_)
            : mob_reduce(team_.handle, root_, MOB_SUM, MOB_UINT64, in_.data(), out_.data(), count_);
    if (!done(status, "mob_reduce") || (!at_all && own_ != root_)) return;
    expect_sum("mob_reduce", size_ - 1);
  }

  void scan() {
    fill(0, own_, own_);
    if (done(mob_scan(team_.handle, MOB_SUM, MOB_UINT64, in_.data(), out_.data(), count_),
             "mob_scan")) {
      expect_sum("mob_scan", own_);
    }
  }

  mob_rank_t world_rank(mob_rank_t member) const {
    return team_.members[static_cast<size_t>(member)];
  }
  // An operation on memory of a member: whether it succeeded.
  bool good(mob_status_t status, mob_rank_t member, const char* what) {
    const mob_rank_t target = world_rank(member);
    if (status == MOB_OK) return true;
    (void)mob_flush(target);
    if (status != MOB_ERR_PEER || !job_.may_fail(target, true)) {
      complain("%s at rank %d gave %s: %s", what, target, mob_status_name(status),
               mob_last_error());
    }
    return false;
  }

  // Each member puts into the part of the next one. Fresh memory holds zeros.
  void allocation() {
    mob_mem_t mem = nullptr;
    if (!done(mob_team_alloc(team_.handle, bytes(), 0, &mem), "mob_team_alloc")) return;
    const auto* mine = static_cast<const uint64_t*>(mob_mem_local(mem));
    if (std::any_of(mine, mine + count_, [](uint64_t word) { return word != 0; })) {
      complain("fresh memory of %zu bytes is not all zeros", bytes());
    }
    bool all_well = done(mob_team_barrier(team_.handle), "mob_team_barrier");
    const mob_rank_t next = (own_ + 1) % size_;
    void* there = nullptr;
    fill(0, own_, next);
    if (good(mob_mem_address(mem, world_rank(next), 0, &there), next, "mob_mem_address")) {
      mob_status_t status = mob_put(world_rank(next), there, in_.data(), bytes());
      if (status == MOB_OK) status = mob_flush(world_rank(next));
      (void)good(status, next, "mob_put");
    }
    all_well = all_well && done(mob_team_barrier(team_.handle), "mob_team_barrier");
    if (all_well) expect("mob_put", mine, (own_ + size_ - 1) % size_, own_);
    (void)done(mob_mem_free(mem), "mob_mem_free");
  }

  void heap() {
    mob_heap_t made = nullptr;
    void* block = nullptr;
    if (!done(mob_heap_create(team_.handle, 1 << 16, 4 << 20, &made), "mob_heap_create")) return;
    if (done(mob_heap_malloc(made, bytes(), &block), "mob_heap_malloc")) {
      fill(0, own_, own_);
      std::memcpy(block, in_.data(), bytes());
      if (done(mob_heap_realloc(made, block, 2 * bytes(), &block), "mob_heap_realloc")) {
        expect("mob_heap_realloc", static_cast<const uint64_t*>(block), own_, own_);
        (void)done(mob_heap_free(made, block), "mob_heap_free");
      }
    }
    (void)done(mob_heap_destroy(made), "mob_heap_destroy");
  }

  void split() {
    mob_team_t part = MOB_TEAM_NONE;
    const auto parts = 1 + static_cast<int>(below(3));
    if (!done(mob_team_split(team_.handle, own_ % parts, -own_, &part), "mob_team_split")) return;
    Team team{part, {}, false};
    for (mob_rank_t member = size_ - 1; member >= 0; --member) {
      if (member % parts == own_ % parts) team.members.push_back(world_rank(member));
    }
    if (mob_team_size(part) != team.size()) complain("a team of %d members", mob_team_size(part));
    Together there(job_, team, salt_);
    const mob_status_t status = mob_team_barrier(part);
    if (there.done(status, "mob_team_barrier of a part")) {
      there.count_ = count_;
      there.root_ = 0;
      there.salt_ = salt_;
      there.in_ = in_;
      there.out_ = out_;
      there.reduce(true);
    }
    (void)there.done(mob_team_free(part), "mob_team_free");
  }

  // Memory of one member that the others put into. Without a barrier at the end it stays exposed.
  void exposure() {
    const size_t page = 4096;
    const size_t all = (static_cast<size_t>(size_) * bytes() + page - 1) / page * page;
    const unsigned flags = below(2) == 0 ? 0 : MOB_EXPOSE_REMAP;
    void* memory = nullptr;
    mob_exposed_t exposed = nullptr;
    if (own_ == root_) {
      memory = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (!good(mob_expose(memory, all, flags, &exposed), own_, "mob_expose")) return;
    }
    void* there = memory;
    if (!done(mob_broadcast(team_.handle, root_, &there, sizeof there), "mob_broadcast")) return;
    fill(0, own_, root_);
    auto* place = static_cast<uint64_t*>(there) + static_cast<size_t>(own_) * count_;
    const mob_rank_t target = world_rank(root_);
    mob_status_t status = mob_put(target, place, in_.data(), bytes());
    if (status == MOB_OK) status = mob_flush(target);
    job_.note_message(target);
    if (status == MOB_OK) status = mob_get(target, place, out_.data(), bytes());
    if (good(status, root_, "a put and a get of exposed memory")) {
      expect("a put and a get of exposed memory", out_.data(), own_, root_);
    }
    if (!done(mob_team_barrier(team_.handle), "mob_team_barrier") || own_ != root_) return;
    if (!good(mob_withdraw(exposed), own_, "mob_withdraw")) return;
    for (mob_rank_t from = 0; from < size_; ++from) {
      const auto* part = static_cast<const uint64_t*>(memory) + static_cast<size_t>(from) * count_;
      expect("exposed memory", part, from, root_);
    }
    munmap(memory, all);
  }

  Job& job_;
  Team& team_;
  Random random_;
  const mob_rank_t size_;
  const mob_rank_t own_;
  size_t count_ = 0;
  mob_rank_t root_ = 0;
  uint64_t salt_ = 0;
  std::vector<uint64_t> in_;
  std::vector<uint64_t> out_;
};

// Each rank tells the next one its round, and waits for the one before.
void wait_for_neighbour(Job& job, uint64_t round) {
  const mob_rank_t right = (job.rank() + 1) % job.size();
  const mob_rank_t left = (job.rank() + job.size() - 1) % job.size();
  mob_status_t status = mob_put8(right, &job.block(right).round, round + 1);
  if (status == MOB_OK) status = mob_flush(right);
  if (status != MOB_OK && (status != MOB_ERR_PEER || !job.may_fail(right, false))) {
    complain("mob_put8 gave %s: %s", mob_status_name(status), mob_last_error());
  }
  for (;;) {
    status = mob_wait_until_u8(&job.here().round, MOB_GE, round + 1);
    if (status == MOB_OK) return;
    if (status != MOB_ERR_PEER) {
      return complain("mob_wait_until_u8 gave %s: %s", mob_status_name(status), mob_last_error());
    }
    // Any rank's death may end the wait; only that of the left one matters.
    if (mob_rank_alive(left) == 0) return;
    if (job.is_lenient()) return;
  }
}

void notify_neighbour(Job& job) {
  const mob_rank_t right = (job.rank() + 1) % job.size();
  const mob_rank_t left = (job.rank() + job.size() - 1) % job.size();
  const auto look = [&](mob_status_t status, mob_rank_t rank, const char* what) {
    if (status == MOB_OK || (status == MOB_ERR_PEER && job.may_fail(rank, true))) return;
    complain("%s of rank %d gave %s: %s", what, rank, mob_status_name(status), mob_last_error());
  };
  look(mob_notify(right), right, "mob_notify");
  look(mob_notify_wait(left, nullptr), left, "mob_notify_wait");
}

}  // namespace

void fill_message(const MessageHeader& header, unsigned char* payload, size_t bytes) {
  uint64_t bits = header.seed;
  for (size_t i = 0; i < bytes; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    payload[i] = static_cast<unsigned char>(bits >> 56);
  }
}

bool register_handlers(Job& job) {
  inboxes.resize(job.writers());
  for (Inbox& inbox : inboxes) {
    inbox.job = &job;
    inbox.payload.resize(job.slot_bytes());
    inbox.expected.resize(job.slot_bytes());
  }
  const mob_status_t first = mob_handler_register(kMessage, take_message, nullptr);
  const mob_status_t second = mob_handler_register(kReply, take_reply, nullptr);
  if (first == MOB_OK && second == MOB_OK) return true;
  complain("mob_handler_register: %s", mob_last_error());
  return false;
}

void step_together(Job& job, uint64_t round) {
  Random random(job.plan().seed * 104729 + round);
  const uint64_t which = random() % 8;
  Team& team = job.teams()[random() % job.teams().size()];
  Team& world = job.teams()[0];
  // What has failed at the dead is no error of the collective call, which would tell it otherwise.
  (void)mob_flush_all();
  if (which == 0) return wait_for_neighbour(job, round);
  if (which == 1) return notify_neighbour(job);
  if (which == 2) {
    if (world.lost) return;
    const mob_status_t status = mob_epoch_fence(job.epoch());
    if (status == MOB_OK) return;
    world.lost = true;
    if (status == MOB_ERR_PEER && job.may_lose(world)) return;
    return complain("mob_epoch_fence gave %s: %s", mob_status_name(status), mob_last_error());
  }
  if (team.handle == MOB_TEAM_NONE || team.lost) return;
  Together(job, team, round).run();
}

}  // namespace soak
