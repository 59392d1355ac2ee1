// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::engine {

class Completion;
class Messages;
class Peers;
class Rkeys;
class Scheduler;
class Segment;
class Teams;

// The components of the folders above that allocations use.
struct AllocationServices {
  Peers& peers;
  Segment& segment;
  Completion& completion;
  Messages& messages;
  Rkeys& rkeys;
  Scheduler& scheduler;
  Teams& teams;
};

}  // namespace mobius::engine
