// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::base {
class Settings;
}

namespace mobius::engine {

class AmRma;
class Completion;
class Delegation;
class Instrumentation;
class LazyLock;
class Network;
class Peers;
class RemoteObjects;
class Router;
class Scheduler;
class Segment;
class Waiter;

// The components of the folders above that this folder uses, and the lazy locks that its components
// share. Outlives all of them.
struct SyncServices {
  const base::Settings& settings;
  const Instrumentation& instrumentation;
  Peers& peers;
  Segment& segment;
  Waiter& waiter;
  Completion& completion;
  Network& network;
  Delegation& delegation;
  AmRma& am_rma;
  Scheduler& scheduler;
  Router& router;
  RemoteObjects& remote_objects;
  LazyLock& lazy_lock;
};

}  // namespace mobius::engine
