// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The messages between `mobius run` and the processes it starts.
//
// The launcher gives each process MOBIUS_JOB (the job's key, 32 hexadecimal digits) and
// MOBIUS_RANK. mob_init() connects to the launcher's socket, an abstract Unix address made from the
// key (so nothing exists in a file system), and sends Hello; the launcher answers Welcome, with the
// descriptor of the host's segment attached (SCM_RIGHTS), and, where the job is on virtual hosts,
// Directory with that of the job's directory (shm_directory.h). The connection stays open until
// mob_finalize() sends Goodbye: a process whose connection ends before has died. mob_abort(), which
// may be called at any time, sends Abort over a connection of its own. Both sides check that the
// other is the same user (SO_PEERCRED).
//
// Environment and sockets are used instead of inherited descriptors because wrappers between
// launcher and program (shells, Python's subprocess) may close those.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string_view>

namespace mobius::job {

inline constexpr uint32_t kProtocolMagic = 0x314d424f;  // "OBM1"
inline constexpr uint32_t kProtocolVersion = 2;
inline constexpr size_t kKeyDigits = 32;
inline constexpr const char* kJobVariable = "MOBIUS_JOB";
inline constexpr const char* kRankVariable = "MOBIUS_RANK";

enum class MessageType : uint32_t { kHello = 1, kWelcome, kRefused, kGoodbye, kAbort, kDirectory };

// One SOCK_SEQPACKET message. Fixed size, host byte order: both ends are on one host.
struct Message {
  uint32_t magic = kProtocolMagic;
  uint32_t version = kProtocolVersion;
  MessageType type{};
  int32_t rank = -1;
  int32_t size = 0;    // of the job, in kWelcome
  int32_t pid = 0;     // of the sender, in kHello; in kWelcome as the launcher knows it
  int32_t hosts = 1;   // virtual hosts, in kWelcome; if several, kDirectory follows
  char reason[100]{};  // in kRefused: one line, zero-terminated
};
static_assert(sizeof(Message) == 128);

// The launcher's abstract Unix address, "mobius-KEY".
socklen_t socket_address(std::string_view key, sockaddr_un* address);

}  // namespace mobius::job
