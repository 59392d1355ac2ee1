// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The messages between `mobius run` and the processes it starts.
//
// The launcher gives each process MOBIUS_JOB (the job's secret, 32 hexadecimal digits) and
// MOBIUS_RANK. The launcher listens at an abstract Unix address derived from the secret, so nothing
// exists in a file system, and a reader of the address cannot find the secret.
//
//   launcher → process   Challenge  a nonce; only to processes of the same user (SO_PEERCRED)
//   process → launcher   Hello      proves that the process knows the secret (proof.h)
//   launcher → process   Welcome    proves the same; carries the descriptor of the host's segment
//                                   (SCM_RIGHTS), or Refused with a reason
//   launcher → process   Directory  on virtual hosts: the descriptor of the job's directory
//                                   (shm_directory.h)
//   process → launcher   Goodbye    from mob_finalize(), or GivesUp from a mob_init() that fails
//
// The connection stays open until then: a process whose connection ends before has died, or has
// closed descriptors that are not its own. The launcher sees the difference by whether the process
// still maps the segment. From then on the process goes without the connection: its slot in the
// control block tells whether it has left.
//
// Where there is no launcher, a process that spawns others listens in its place until they have
// joined, and answers Hello by Adopted in place of Welcome (child_starter.h).
//
// mob_abort(), which may be called at any time, connects and sends Abort in place of Hello.
// mob_spawn() sends Spawn in the same way: the record of the world whose number it names, in the
// segment, has changed (control.h). The launcher answers by changing the record.
//
// Environment and sockets are used instead of inherited descriptors because wrappers between
// launcher and program (shells, Python's subprocess) may close those.

#include <mobius/status.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string_view>

#include "job/bootstrap/proof.h"
#include "os/file/unix_socket.h"

namespace mobius::job {

inline constexpr uint32_t kProtocolMagic = 0x314d424f;  // "OBM1"
inline constexpr uint32_t kProtocolVersion = 3;
inline constexpr const char* kJobVariable = "MOBIUS_JOB";
inline constexpr const char* kRankVariable = "MOBIUS_RANK";
inline constexpr const char* kParentVariable = "MOBIUS_PARENT";

enum class MessageType : uint32_t {
  kHello = 1,
  kWelcome,
  kRefused,
  kGoodbye,
  kAbort,
  kDirectory,
  kChallenge,
  kGivesUp,
  kSpawn,
  kAdopted,
  // Of ports (job/port.h).
  kKey,
  kConnect,
  kMember,
  kAccepted
};

// One SOCK_SEQPACKET message. Fixed size, host byte order: both ends are on one host.
struct Message {
  uint32_t magic = kProtocolMagic;
  uint32_t version = kProtocolVersion;
  MessageType type{};
  int32_t rank = -1;
  int32_t size = 0;    // of the job, in kWelcome; the number of the world, in kSpawn
  int32_t pid = 0;     // of the sender, in kHello; in kWelcome as the launcher knows it
  int32_t hosts = 1;   // virtual hosts, in kWelcome; if several, kDirectory follows
  Nonce nonce{};       // the sender's
  Proof proof{};       // answers the receiver's nonce
  char reason[100]{};  // in kRefused: one line, zero-terminated
};
static_assert(sizeof(Message) == 160);

// The abstract Unix address of the job with this secret, "mobius-" and 32 digits. There are several
// for jobs whose secret others might guess: `attempt` numbers them.
socklen_t job_address(const Secret& secret, sockaddr_un* address, unsigned attempt = 0);

// Connects to the process that listens there and receives its Challenge. The error text ends in the
// reason alone: the caller says which process should have been there.
mob_status_t connect_to_job(const Secret& secret, os::UnixSocket* connection, Nonce* challenge);

}  // namespace mobius::job
