// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A TCP connection between two processes of a meeting, after both have proved to know its key.
//
// Each frame is sealed with a key that both ends have derived from the meeting's key and from their
// nonces, and with the number of the frame: a frame that somebody else has changed, left out,
// repeated or made ends the connection. Frames are not encrypted: nothing secret is sent.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "job/bootstrap/proof.h"
#include "os/file/held_descriptor.h"

namespace mobius::job {

using Frame = std::vector<unsigned char>;

// The key of one connection. Both ends call it with the same values.
Secret channel_key(const Secret& key, const Nonce& listener, const Nonce& visitor);

// Not thread-safe. Nothing blocks.
class Channel {
 public:
  // The largest frame that is taken, and sent.
  static constexpr size_t kMostBytes = size_t{256} << 20;

  Channel() = default;
  // `is_listener` tells the two ends apart.
  Channel(os::HeldDescriptor socket, const Secret& key, bool is_listener)
      : socket_(std::move(socket)), key_(key), is_listener_(is_listener) {}

  // To be sent by pump().
  void queue(std::span<const unsigned char> frame);
  // Sends and receives as much as can be now. False once the connection is over.
  bool pump();
  // The next frame that has come, in order.
  bool take(Frame* frame);

  bool is_open() const { return socket_.is_held(); }
  bool has_unsent() const { return sent_ < unsent_.size(); }
  void close() { socket_.close(); }
  int descriptor() const { return socket_.get(); }

 private:
  bool send_all();
  bool receive_all();
  bool take_frames();

  os::HeldDescriptor socket_;
  Secret key_{};
  bool is_listener_ = false;
  uint64_t frames_sent_ = 0;
  uint64_t frames_received_ = 0;
  std::vector<unsigned char> unsent_;
  size_t sent_ = 0;  // bytes of it
  std::vector<unsigned char> received_;
  std::deque<Frame> frames_;
};

}  // namespace mobius::job
