// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::engine {

class BatchServer;
class Counters;
class Messages;
class Peers;
class Scheduler;
class Segment;
class Waiter;

// The services of other folders that the components of this folder use.
struct RemoteServices {
  Peers& peers;
  Segment& segment;
  Waiter& waiter;
  Counters& counters;
  Messages& messages;
  Scheduler& scheduler;
  BatchServer& batch_server;
};

}  // namespace mobius::engine
