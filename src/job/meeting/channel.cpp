// SPDX-License-Identifier: BSD-3-Clause
#include "job/meeting/channel.h"

#include <algorithm>
#include <cstring>

#include "os/file/tcp_socket.h"

namespace mobius::job {
namespace {

struct Head {
  uint32_t bytes;  // of what follows
  uint32_t reserved;
  Proof proof;
};

// Frames are received by parts of this size.
constexpr size_t kPart = size_t{64} << 10;

// Stands for the nonce: the direction and the number of the frame.
Nonce place_of(bool from_listener, uint64_t number) {
  Nonce place{};
  std::memcpy(place.data(), &number, sizeof number);
  place.back() = from_listener ? 1 : 2;
  return place;
}

}  // namespace

Secret channel_key(const Secret& key, const Nonce& listener, const Nonce& visitor) {
  std::vector<unsigned char> text(listener.begin(), listener.end());
  text.insert(text.end(), visitor.begin(), visitor.end());
  return prove(derive(key, "channel"), text, Nonce{});
}

void Channel::queue(std::span<const unsigned char> frame) {
  const Head head{static_cast<uint32_t>(frame.size()), 0,
                  prove(key_, frame, place_of(is_listener_, frames_sent_++))};
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(&head);
  unsent_.insert(unsent_.end(), bytes, bytes + sizeof head);
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
}

bool Channel::take(Frame* frame) {
  if (frames_.empty()) return false;
  *frame = std::move(frames_.front());
  frames_.pop_front();
  return true;
}

bool Channel::pump() {
  if (!is_open()) return false;
  const bool is_sent = send_all();
  // What the other side sent before it closed is taken all the same.
  if (receive_all() && is_sent) return true;
  close();
  return false;
}

bool Channel::send_all() {
  while (sent_ < unsent_.size()) {
    const ssize_t now =
        os::send_some(socket_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (now < 0) return false;
    if (now == 0) return true;
    sent_ += static_cast<size_t>(now);
  }
  return true;
}

bool Channel::receive_all() {
  while (true) {
    const size_t before = received_.size();
    received_.resize(before + kPart);
    const ssize_t now = os::receive_some(socket_.get(), received_.data() + before, kPart);
    received_.resize(before + static_cast<size_t>(std::max<ssize_t>(now, 0)));
    if (!take_frames() || now < 0) return false;
    if (now == 0) return true;
  }
}

// Checks the frames that are complete. False if one is not sound.
bool Channel::take_frames() {
  size_t at = 0;
  while (received_.size() - at >= sizeof(Head)) {
    Head head{};
    std::memcpy(&head, received_.data() + at, sizeof head);
    if (head.bytes > kMostBytes) return false;
    if (received_.size() - at - sizeof head < head.bytes) break;
    const std::span<const unsigned char> frame(received_.data() + at + sizeof head, head.bytes);
    const Nonce place = place_of(!is_listener_, frames_received_++);
    if (!is_same(head.proof, prove(key_, frame, place))) return false;
    frames_.emplace_back(frame.begin(), frame.end());
    at += sizeof head + head.bytes;
  }
  received_.erase(received_.begin(), received_.begin() + static_cast<ptrdiff_t>(at));
  return true;
}

}  // namespace mobius::job
