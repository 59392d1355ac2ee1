// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages with tags (armci_msg_snd() and armci_msg_rcv()), carried by active messages of Möbius.
// An arrived message is kept here until the program receives it.

#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "front.h"

namespace mobius::armci {

class Inbox {
 public:
  static constexpr int kAnyone = -1;

  void open(const char* function);
  void close();

  void send(int tag, const void* data, int bytes, int to, const char* function);

  // Waits for the oldest message with a tag, from one process or from any; returns the sender.
  int receive(int tag, void* buffer, int capacity, int* received, int from, const char* function);

 private:
  struct Arrival {
    Inbox* inbox;
    int tag;
    int from;
    bool is_here = false;
    std::vector<char> data;
  };

  static void on_header(const mob_message_t* message, void* inbox, mob_delivery_t* delivery);
  static void on_payload(mob_token_t token, void* arrival);
  // Removes the requested message if it has arrived.
  bool take(int tag, int from, Arrival* arrival);

  std::mutex mutex_;             // guards arrivals_
  std::list<Arrival> arrivals_;  // in order of arrival; an arrival stays at its address
  uint64_t arrived_ = 0;         // handlers change it, receivers wait for it
};

Inbox& inbox();

}  // namespace mobius::armci
