// SPDX-License-Identifier: BSD-3-Clause

// Plain TCP: no header, no completion queue, one socket with the kernel's buffer sizes. The limit
// for the transport.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "../suite/tcp.h"
#include "network.h"

namespace network {
namespace {

class PlainSocket : public Way {
 public:
  explicit PlainSocket(const Setup& setup) : left_(setup.left), large_(kLargeBytes, 1) {
    in_addr address = {};
    if (inet_pton(AF_INET, setup.address.c_str(), &address) != 1) {
      give_up("not an IPv4 address: " + setup.address);
    }
    sockaddr_in where = {};
    if (left_) {
      setup.link->get(&where, sizeof where);
      socket_ = tcp_connect(&where);
      if (socket_ < 0) give_up("connect");
    } else {
      const int listener = tcp_listen(address, &where);
      if (listener < 0) give_up("cannot listen on " + setup.address);
      setup.link->put(&where, sizeof where);
      socket_ = tcp_accept(listener);
      if (socket_ < 0) give_up("accept");
    }
  }
  ~PlainSocket() override { ::close(socket_); }

  double ping_pong(int turns, bool sleeping) override {
    uint64_t word = 1;
    const int flags = sleeping ? 0 : MSG_DONTWAIT;
    return time_turns(turns,
                      [&](int) {
                        if (left_) send_all(&word, sizeof word);
                        receive_all(&word, sizeof word, flags);
                        if (!left_) send_all(&word, sizeof word);
                      }) /
           2;
  }

  // A put or a get of 8 bytes with plain sockets: there and back.
  double small_write(int turns) override { return 2 * ping_pong(turns, false); }
  double small_read(int turns) override { return 2 * ping_pong(turns, false); }

  double large_write(int turns, int window) override { return stream(turns, window, left_); }
  double large_read(int turns, int window) override { return stream(turns, window, !left_); }

 private:
  // One byte back for each large piece; sends `window` pieces before it waits for the first.
  // The left side measures, in both directions.
  double stream(int turns, int window, bool sends) {
    char byte = 1;
    return time_turns(turns,
                      [&](int) {
                        if (left_ && !sends) {
                          const std::vector<char> requests(static_cast<size_t>(window), 1);
                          send_all(requests.data(), requests.size());
                        }
                        for (int i = 0; i < window; ++i) {
                          if (sends) {
                            if (!left_) receive_all(&byte, 1, MSG_DONTWAIT);
                            send_all(large_.data(), large_.size());
                          } else {
                            receive_all(large_.data(), large_.size(), MSG_DONTWAIT);
                            if (!left_) send_all(&byte, 1);
                          }
                        }
                        if (left_ && sends) {
                          for (int i = 0; i < window; ++i) receive_all(&byte, 1, MSG_DONTWAIT);
                        }
                      }) /
           window;
  }

  void send_all(const void* bytes, size_t count) {
    if (tcp_send(socket_, bytes, count) != 0) give_up("send");
  }

  void receive_all(void* bytes, size_t count, int flags) {
    if (tcp_receive(socket_, bytes, count, flags) != 0) give_up("recv");
  }

  bool left_;
  int socket_ = -1;
  std::vector<char> large_;
};

}  // namespace

std::unique_ptr<Way> plain_socket(const Setup& setup) {
  return std::make_unique<PlainSocket>(setup);
}

}  // namespace network
