// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Endpoints over the loopback interface, for tests, and a record of their callbacks.

#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "transport/ofi/endpoint.h"

namespace mobius_test {

namespace ofi = mobius::transport::ofi;

inline ofi::Options loopback(const char* provider) {
  ofi::Options options;
  options.provider = provider;
  options.interface = "127.0.0.1";
  options.allow_loopback = true;
  std::memcpy(options.key, "a secret of tests", sizeof options.key);
  // The same tests run once more with sealed messages (CMakeLists.txt).
  const char* const security = std::getenv("MOBIUS_SECURITY");
  if (security != nullptr && std::strcmp(security, "messages") == 0) {
    options.security = mobius::base::Security::kMessages;
  }
  return options;
}

// The reason why a provider cannot be tested here; "" if it can.
inline std::string missing(const char* provider) {
  ofi::Endpoint endpoint;
  if (endpoint.open(loopback(provider), {}) == MOB_OK) return "";
  return std::string("SKIP: ") + mob_last_error();
}

// The port on which an endpoint over TCP listens; 0 if unknown.
inline uint16_t port_of(const ofi::Endpoint& endpoint) {
  const std::string& address = endpoint.description().address;
  uint16_t port = 0;
  std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
  return port;
}

// Bytes that differ from place to place and from seed to seed.
inline std::vector<unsigned char> pattern(size_t bytes, uint64_t seed) {
  std::vector<unsigned char> made(bytes);
  uint64_t state = seed * 2654435761 + 1;
  for (unsigned char& byte : made) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<unsigned char>(state >> 56);
  }
  return made;
}

// An endpoint that records its callbacks.
struct End {
  struct Ended {
    uint64_t operation;
    mob_status_t status;
    std::string text;
  };

  ofi::Endpoint endpoint;
  std::vector<std::vector<unsigned char>> received;
  std::vector<Ended> ended;
  std::vector<uint64_t> notes;
  std::vector<std::pair<ofi::PeerId, std::string>> failed;
  bool aligned = true;
  ofi::PeerId last_sender = ofi::kNobody;
  // Called instead of storing the message.
  std::function<void(const unsigned char*, size_t)> on_message;
  std::function<void(uint64_t)> on_greeting;  // called for a sender that is unknown

  mob_status_t open(const ofi::Options& options) {
    ofi::Callbacks callbacks;
    callbacks.context = this;
    callbacks.received = [](void* context, ofi::PeerId from, const unsigned char* message,
                            size_t bytes) {
      End& end = *static_cast<End*>(context);
      end.last_sender = from;
      end.aligned = end.aligned && reinterpret_cast<uintptr_t>(message) % 16 == 0;
      if (end.on_message) {
        end.on_message(message, bytes);
      } else {
        end.received.emplace_back(message, message + bytes);
      }
    };
    callbacks.noted = [](void* context, uint64_t note) {
      static_cast<End*>(context)->notes.push_back(note);
    };
    callbacks.greeted = [](void* context, uint64_t card) {
      const End& end = *static_cast<End*>(context);
      if (end.on_greeting) end.on_greeting(card);
    };
    callbacks.ended = [](void* context, uint64_t operation, mob_status_t status, const char* text) {
      static_cast<End*>(context)->ended.push_back({operation, status, text != nullptr ? text : ""});
    };
    callbacks.peer_failed = [](void* context, ofi::PeerId lost, const char* text) {
      static_cast<End*>(context)->failed.emplace_back(lost, text);
    };
    return endpoint.open(options, callbacks);
  }

  ofi::PeerId add(const End& other) {
    ofi::PeerId added = 0;
    EXPECT_EQ(endpoint.add_peer(other.endpoint.address(), &added), MOB_OK) << mob_last_error();
    return added;
  }

  ofi::PeerId peer = 0;  // the other end of a pair
};

struct Pair {
  End left, right;

  explicit Pair(const char* provider) : Pair(loopback(provider)) {}
  explicit Pair(const ofi::Options& options) {
    EXPECT_EQ(left.open(options), MOB_OK) << mob_last_error();
    EXPECT_EQ(right.open(options), MOB_OK) << mob_last_error();
    left.peer = left.add(right);
    right.peer = right.add(left);
  }

  void poll() {
    left.endpoint.poll();
    right.endpoint.poll();
  }
  void until(const std::function<bool()>& done) {
    while (!done() && left.failed.empty() && right.failed.empty()) poll();
    EXPECT_TRUE(done());
    for (const End* end : {&left, &right}) {
      for (const auto& [lost, text] : end->failed) ADD_FAILURE() << text;
    }
  }
  // Polls both ends until the call has room.
  template <typename Call>
  ofi::Posted insist(Call call) {
    while (true) {
      const ofi::Posted posted = call();
      if (posted != ofi::Posted::kAgain) {
        EXPECT_EQ(posted, ofi::Posted::kDone) << mob_last_error();
        return posted;
      }
      poll();
    }
  }
  void send(End& from, std::vector<ofi::Piece> pieces) {
    insist([&] { return from.endpoint.send(from.peer, pieces); });
  }
};

}  // namespace mobius_test
