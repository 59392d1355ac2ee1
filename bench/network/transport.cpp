// SPDX-License-Identifier: BSD-3-Clause

// The same with an Endpoint. The right side polls or sleeps like the left one: its progress serves
// the left side's writes and reads.

#include <poll.h>

#include <vector>

#include "network.h"
#include "transport/ofi/endpoint.h"

namespace network {
namespace {

namespace ofi = mobius::transport::ofi;

class Transport : public Way {
 public:
  Transport(const Setup& setup, const std::string& provider)
      : left_(setup.left), link_(setup.link), large_(kLargeBytes, 1) {
    ofi::Options options;
    options.provider = provider;
    options.interface = setup.address;
    options.allow_loopback = true;
    ofi::Callbacks callbacks;
    callbacks.context = this;
    callbacks.received = [](void* self, ofi::PeerId, const unsigned char*, size_t) {
      ++static_cast<Transport*>(self)->received_;
    };
    callbacks.ended = [](void* self, uint64_t, mob_status_t status, const char* text) {
      if (status != MOB_OK) give_up(text);
      ++static_cast<Transport*>(self)->ended_;
    };
    callbacks.peer_failed = [](void* self, ofi::PeerId, const char* text) {
      if (!static_cast<Transport*>(self)->closing_) give_up(text);
    };
    if (endpoint_.open(options, callbacks) != MOB_OK) give_up(mob_last_error());
    if (endpoint_.register_memory(large_.data(), large_.size(), &registration_) != MOB_OK) {
      give_up(mob_last_error());
    }
    std::vector<unsigned char> address = endpoint_.address();
    size_t bytes = address.size();
    link_->put(&bytes, sizeof bytes);
    link_->put(address.data(), bytes);
    link_->put(&registration_.base, sizeof registration_.base);
    link_->put(&registration_.key, sizeof registration_.key);
    link_->get(&bytes, sizeof bytes);
    address.resize(bytes);
    link_->get(address.data(), bytes);
    link_->get(&remote_, sizeof remote_);
    link_->get(&key_, sizeof key_);
    if (endpoint_.add_peer(address, &peer_) != MOB_OK) give_up(mob_last_error());
  }
  ~Transport() override {
    closing_ = true;
    endpoint_.unregister(registration_);
  }

  double ping_pong(int turns, bool sleeping) override {
    return time_turns(turns,
                      [&](int) {
                        if (left_) send();
                        wait(received_, ++awaited_, sleeping);
                        if (!left_) send();
                      }) /
           2;
  }
  double small_write(int turns) override { return transfers(turns, 1, sizeof(uint64_t), true); }
  double small_read(int turns) override { return transfers(turns, 1, sizeof(uint64_t), false); }
  double large_write(int turns, int window) override {
    return transfers(turns, window, kLargeBytes, true);
  }
  double large_read(int turns, int window) override {
    return transfers(turns, window, kLargeBytes, false);
  }
  void progress() override { endpoint_.poll(); }

 private:
  void send() {
    const uint64_t word = 1;
    const ofi::Piece piece = {&word, sizeof word};
    while (true) {
      const ofi::Posted posted = endpoint_.send(peer_, {&piece, 1});
      if (posted == ofi::Posted::kDone) return;
      if (posted == ofi::Posted::kFailed) give_up(mob_last_error());
      endpoint_.poll();
    }
  }

  void wait(const uint64_t& counter, uint64_t value, bool sleeping) {
    while (counter < value) {
      if (endpoint_.poll() || !sleeping || !endpoint_.ready_to_sleep()) continue;
      pollfd wait_for = {endpoint_.descriptor(), POLLIN, 0};
      ::poll(&wait_for, 1, -1);
    }
  }

  // The left side transfers and signals the end; the right side serves it until then.
  double transfers(int turns, int window, size_t bytes, bool write) {
    if (!left_) {
      wait(received_, ++awaited_, false);
      return 0;
    }
    const double ns = time_turns(turns, [&](int) {
      for (int i = 0; i < window; ++i) {
        while (true) {
          const ofi::Posted posted =
              write ? endpoint_.write(peer_, large_.data(), bytes, remote_, key_, 1)
                    : endpoint_.read(peer_, large_.data(), bytes, remote_, key_, 1);
          if (posted == ofi::Posted::kDone) break;
          if (posted == ofi::Posted::kFailed) give_up(mob_last_error());
          endpoint_.poll();
        }
      }
      wait(ended_, awaited_ends_ += static_cast<uint64_t>(window), false);
    });
    send();
    return ns / window;
  }

  bool left_;
  Link* link_;
  std::vector<unsigned char> large_;
  ofi::Endpoint endpoint_;
  ofi::Registration registration_;
  ofi::PeerId peer_ = 0;
  uint64_t remote_ = 0, key_ = 0;
  uint64_t received_ = 0, awaited_ = 0, ended_ = 0, awaited_ends_ = 0;
  bool closing_ = false;
};

}  // namespace

std::unique_ptr<Way> transport(const Setup& setup, const std::string& provider) {
  return std::make_unique<Transport>(setup, provider);
}

}  // namespace network
