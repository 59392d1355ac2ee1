// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Standard output and standard error of the ranks, passed on by whole lines. The beginning of a
// line, such as a prompt or a progress bar, is passed on too when the rest does not follow soon.
//
// Memory is bounded: while the launcher's reader is slow, the ranks are not read, so that their
// write() waits as it would without a launcher.

#include <mobius/job.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "job/launch/output/sink.h"
#include "job/launch/poller.h"

namespace mobius::launch {

class Output {
 public:
  enum class Channel : uint32_t { kOut, kErr };
  using Clock = std::chrono::steady_clock;
  static constexpr auto kNever = Clock::time_point::max();

  // `poller` outlives this object. Its events are passed to the two functions below.
  Output(Poller& poller, mob_rank_t ranks, bool tag);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // There are so many ranks from now on; they never become fewer.
  void grow(mob_rank_t ranks);

  // Owns the reading end of a rank's pipe or pseudo-terminal from now on; it must be non-blocking.
  void add(mob_rank_t rank, Channel channel, int descriptor);

  void on_streams(uint32_t sink);  // Source::kStreams
  void on_room(uint32_t sink);     // Source::kSink
  // Passes on the beginnings of lines that have waited for their rest for long enough at `now`.
  void on_time(Clock::time_point now);
  // When to call on_time().
  Clock::time_point deadline() const { return partial_.empty() ? kNever : partial_.front().at; }
  // Gives the ranks' pseudo-terminals the size of the launcher's terminal.
  void on_resize();

  // Reads what a rank that has ended left unread, so that the launcher's message about it follows.
  void drain(mob_rank_t rank);
  // One line of the launcher itself on standard error.
  void say(std::string_view line);

  // Writes what may be written and decides which ranks are read next. Call once per turn.
  void flush();

  // Everything that was read is written.
  bool empty() const;
  // Whether nothing is left to read now. Once all writers have ended, nothing will come any more.
  bool exhausted();
  // Queues the unfinished lines of streams that a process outside the job holds open.
  void finish();
  // errno of standard output, or else of standard error; 0 while both work.
  int error() const;
  bool standard_output_failed() const { return sinks_[0]->sink.error() != 0; }
  // Drops what the reader does not take now, and everything after it.
  void abandon_blocked();

 private:
  struct Stream {
    int descriptor = -1;
    std::string line;                       // the beginning of a line whose end has not been read
    Clock::time_point pass_on_at = kNever;  // when `line` is passed on without its end
  };
  struct Route {
    explicit Route(int descriptor) : sink(descriptor) {}
    Sink sink;
    Poller streams;  // those that go to the sink; paused as a whole
    bool reading = false;
    bool waiting_for_room = false;
  };

  uint32_t route_of(uint32_t stream) const { return (stream & 1) < routes_ ? (stream & 1) : 0; }
  bool read_once(uint32_t stream);
  void forward(uint32_t stream, std::string_view text);
  void put(uint32_t stream, std::string_view text);
  void put_partial(uint32_t stream);
  bool may_have_more(uint32_t stream) const;
  void end(uint32_t stream);

  Poller& poller_;
  mob_rank_t ranks_;
  const bool tag_;
  uint32_t routes_;  // 1 when standard output and standard error are the same file
  std::array<std::unique_ptr<Route>, 2> sinks_;
  std::vector<Stream> streams_;  // 2 * rank + channel
  // Streams whose lines were unfinished, in the order of time. An entry counts only if its time is
  // still that of the stream.
  struct Partial {
    Clock::time_point at;
    uint32_t stream;
  };
  std::deque<Partial> partial_;
  std::vector<char> chunk_;
};

}  // namespace mobius::launch
