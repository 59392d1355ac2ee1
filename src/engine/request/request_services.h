// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The components that requests and their servers use; put together by the engine.

namespace mobius::engine {

class Completion;
class Exposures;
class Instrumentation;
class LinkObserver;
class LocalExecutor;
class LocalHeap;
class Messages;
class Network;
class Peers;
class Progress;
class Rkeys;
class Segment;
class Waiter;

struct RequestServices {
  Peers& peers;
  Segment& segment;
  LocalHeap& local_heap;
  Waiter& waiter;
  Completion& completion;
  Progress& progress;
  Network& network;
  Messages& messages;
  const Instrumentation& instrumentation;
  Exposures& exposures;
  LocalExecutor& executor;
  Rkeys& rkeys;
  LinkObserver& links;
};

}  // namespace mobius::engine
