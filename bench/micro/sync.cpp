// SPDX-License-Identifier: BSD-3-Clause

// The cost of knowing that a put has arrived: half a round trip of 4 bytes with each kind of
// synchronisation, compared with a receiver that polls the word.

#include <functional>
#include <memory>

#include "micro.h"

namespace micro {
namespace {

constexpr uint32_t kTurns = 5'000;
constexpr mob_rank_t kLeft = 0;
constexpr mob_rank_t kRight = 1;

// Each turn is a put to the right and one back; `send` and `receive` are one half.
double ping_pong(const std::function<void(uint32_t)>& send,
                 const std::function<void(uint32_t)>& receive) {
  static uint32_t last_turn = 0;  // words keep their values from round to round
  if (mob_rank() > kRight) return 0;
  bind_to_processor(mob_rank());
  double start = 0;
  for (uint32_t turn = last_turn + 1; turn <= last_turn + kTurns; ++turn) {
    if (turn == last_turn + kTurns / 10) start = now_ns();  // the first turns only warm up
    if (mob_rank() == kLeft) send(turn);
    receive(turn);
    if (mob_rank() == kRight) send(turn);
  }
  const double end = now_ns();
  last_turn += kTurns;
  return (end - start) / (kTurns - kTurns / 10 + 1) / 2;
}

class PingPong {
 public:
  PingPong() {
    to_right_ = static_cast<unsigned char*>(shared_memory(4096, kRight));
    to_left_ = static_cast<unsigned char*>(shared_memory(4096, kLeft));
    require(mob_epoch_create(MOB_TEAM_WORLD, &epoch_), "mob_epoch_create");
    peer_ = mob_rank() == kLeft ? kRight : kLeft;
    theirs_ = mob_rank() == kLeft ? to_right_ : to_left_;
    own_ = mob_rank() == kLeft ? to_left_ : to_right_;
  }

  double by_word() const {
    return ping_pong([this](uint32_t turn) { require(mob_put4(peer_, theirs_, turn), "mob_put4"); },
                     [this](uint32_t turn) {
                       require(mob_wait_until_u4(reinterpret_cast<uint32_t*>(own_), MOB_EQ, turn),
                               "wait");
                     });
  }

  double by_notify() const {
    return ping_pong(
        [this](uint32_t turn) {
          require(mob_put4(peer_, theirs_ + 64, turn), "mob_put4");
          require(mob_notify(peer_), "mob_notify");
        },
        [this](uint32_t) { require(mob_notify_wait(peer_, nullptr), "mob_notify_wait"); });
  }

  // As in programs, the next exposure begins as soon as the own access has ended.
  double by_epoch() const {
    if (mob_rank() <= kRight) require(mob_epoch_post(epoch_, &peer_, 1), "mob_epoch_post");
    const double result = ping_pong(
        [this](uint32_t turn) {
          require(mob_epoch_start(epoch_, &peer_, 1), "mob_epoch_start");
          require(mob_put4(peer_, theirs_ + 128, turn), "mob_put4");
          require(mob_epoch_complete(epoch_), "mob_epoch_complete");
        },
        [this](uint32_t) {
          require(mob_epoch_wait(epoch_), "mob_epoch_wait");
          require(mob_epoch_post(epoch_, &peer_, 1), "mob_epoch_post");
        });
    if (mob_rank() <= kRight) {
      require(mob_epoch_start(epoch_, &peer_, 1), "mob_epoch_start");
      require(mob_epoch_complete(epoch_), "mob_epoch_complete");
      require(mob_epoch_wait(epoch_), "mob_epoch_wait");
    }
    return result;
  }

  // Every process takes part in every fence.
  double by_fence() const {
    const double start = now_ns();
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      if (mob_rank() == kLeft) require(mob_put4(peer_, theirs_ + 192, turn), "mob_put4");
      require(mob_epoch_fence(epoch_), "mob_epoch_fence");
      if (mob_rank() == kRight) require(mob_put4(peer_, theirs_ + 192, turn), "mob_put4");
      require(mob_epoch_fence(epoch_), "mob_epoch_fence");
    }
    return (now_ns() - start) / kTurns / 2;
  }

 private:
  mob_epoch_t epoch_ = nullptr;
  mob_rank_t peer_;
  unsigned char* to_right_;
  unsigned char* to_left_;
  unsigned char* theirs_;
  unsigned char* own_;
};

}  // namespace

std::vector<Benchmark> sync_benchmarks() {
  if (mob_size() < 2) return {};
  const auto pair = std::make_shared<PingPong>();
  return {{"sync",
           "a 4-byte put until its target knows of it: half a round trip",
           {{"mob_put4, mob_wait_until_u4", [=] { return pair->by_word(); }},
            {"mob_put4, mob_notify, mob_notify_wait", [=] { return pair->by_notify(); }},
            {"post, start, mob_put4, complete, wait", [=] { return pair->by_epoch(); }},
            {"mob_put4, mob_epoch_fence", [=] { return pair->by_fence(); }}}}};
}

}  // namespace micro
