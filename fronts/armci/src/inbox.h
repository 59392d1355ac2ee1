// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages with tags (armci_msg_snd() and armci_msg_rcv()), carried by Möbius' active messages:
// what arrives is kept here until somebody receives it.

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

  // Waits for the oldest message with a tag, from a process or anyone; returns who sent it.
  int receive(int tag, void* buffer, int capacity, int* received, int from, const char* function);

 private:
  struct Letter {
    Inbox* inbox;
    int tag;
    int from;
    bool is_here = false;
    std::vector<char> data;
  };

  static void on_header(const mob_message_t* message, void* inbox, mob_delivery_t* delivery);
  static void on_payload(mob_token_t token, void* letter);
  // Takes out the letter that was asked for, if it is here.
  bool take(int tag, int from, Letter* letter);

  std::mutex mutex_;           // guards letters_
  std::list<Letter> letters_;  // in order of arrival; a letter does not move
  uint64_t arrived_ = 0;       // changed by handlers, waited for
};

Inbox& inbox();

}  // namespace mobius::armci
