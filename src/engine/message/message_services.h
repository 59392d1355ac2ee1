// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::engine {

class Completion;
class Counters;
class Instrumentation;
class KernelCopy;
class Messages;
class Network;
class Peers;
class Progress;
class RequestActivity;
class Segment;
class Waiter;

// The services of other folders that the components of this folder use, and the Messages object
// that they belong to.
struct MessageServices {
  Peers& peers;
  Segment& segment;
  Waiter& waiter;
  Completion& completion;
  Counters& counters;
  Progress& progress;
  Network& network;
  KernelCopy& kernel_copy;
  const Instrumentation& instrumentation;
  RequestActivity& request_activity;
  Messages& messages;
};

}  // namespace mobius::engine
