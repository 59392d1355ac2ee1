// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::base {
class Settings;
}

namespace mobius::engine {

class Completion;
class Instrumentation;
class KernelCopy;
class Network;
class Peers;
class RemoteObjects;
class Router;
class Scheduler;
class Segment;
class TeamMessages;
class Waiter;

// The services of other folders that teams and their collective calls use. Outlives every team.
struct TeamServices {
  const base::Settings& settings;
  const Instrumentation& instrumentation;
  Peers& peers;
  Segment& segment;
  KernelCopy& kernel_copy;
  Waiter& waiter;
  Completion& completion;
  Network& network;
  Scheduler& scheduler;
  Router& router;
  RemoteObjects& remote_objects;
  TeamMessages& messages;
};

}  // namespace mobius::engine
