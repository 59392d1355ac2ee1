// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/output/output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "job/launch/output/pseudo_terminal.h"
#include "job/launch/output/say.h"

namespace mobius::launch {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 10;
// After a shorter piece nothing more is likely to be there.
constexpr ssize_t kLeastOfMore = 1024;
// Longer lines are written in pieces.
constexpr size_t kLongestLine = size_t{1} << 20;
// How long the beginning of a line waits for its rest: short enough for a person, long enough for a
// program that writes a line in several pieces.
constexpr std::chrono::milliseconds kPartialLineWait{60};

bool same_file(int first, int second) {
  struct stat a{};
  struct stat b{};
  return fstat(first, &a) == 0 && fstat(second, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

// With two queues for one file, lines of the two could mix.
Output::Output(Poller& poller, mob_rank_t ranks, bool tag)
    : poller_(poller),
      ranks_(ranks),
      tag_(tag),
      routes_(same_file(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2),
      streams_(2 * static_cast<size_t>(ranks)),
      chunk_(kChunkBytes) {
  sinks_[0] = std::make_unique<Route>(STDOUT_FILENO);
  if (routes_ == 2) sinks_[1] = std::make_unique<Route>(STDERR_FILENO);
}

Output::~Output() {
  for (const Stream& stream : streams_) {
    if (stream.descriptor >= 0) close(stream.descriptor);
  }
}

void Output::grow(mob_rank_t ranks) {
  if (ranks <= ranks_) return;
  streams_.resize(2 * static_cast<size_t>(ranks));
  ranks_ = ranks;
}

void Output::add(mob_rank_t rank, Channel channel, int descriptor) {
  const uint32_t stream = 2 * static_cast<uint32_t>(rank) + static_cast<uint32_t>(channel);
  streams_[stream].descriptor = descriptor;
  sinks_[route_of(stream)]->streams.add(descriptor, EPOLLIN, {Source::kStreams, stream});
}

void Output::on_streams(uint32_t sink) {
  Route& route = *sinks_[sink];
  std::array<epoll_event, 64> events;
  const size_t count = route.streams.wait(events, 0);
  for (size_t i = 0; i < count && !route.sink.full(); ++i) {
    read_once(Poller::tag(events[i]).index);
    route.sink.flush();
  }
}

void Output::on_room(uint32_t sink) { sinks_[sink]->sink.flush(); }

// True when there may be more.
bool Output::read_once(uint32_t stream) {
  const int descriptor = streams_[stream].descriptor;
  if (descriptor < 0) return false;
  ssize_t got = read(descriptor, chunk_.data(), chunk_.size());
  if (got > 0) {
    auto filled = static_cast<size_t>(got);
    // A pseudo-terminal gives 4 KiB at most, however much has been written. An end or an error that
    // comes now comes again.
    while (got >= kLeastOfMore && filled < chunk_.size() &&
           (got = read(descriptor, chunk_.data() + filled, chunk_.size() - filled)) > 0) {
      filled += static_cast<size_t>(got);
    }
    forward(stream, {chunk_.data(), filled});
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  end(stream);
  return false;
}

void Output::forward(uint32_t stream, std::string_view text) {
  // Output of a single rank mixes with no other and is passed on as it comes.
  if (ranks_ == 1 && !tag_) {
    sinks_[route_of(stream)]->sink.put(0, text);
    return;
  }
  std::string& line = streams_[stream].line;
  const size_t last_newline = text.rfind('\n');
  if (last_newline != std::string_view::npos) {
    if (!line.empty()) {
      line += text.substr(0, text.find('\n') + 1);
      put_partial(stream);
      text.remove_prefix(text.find('\n') + 1);
    }
    const size_t whole = text.rfind('\n') + 1;  // npos + 1 == 0: none is left
    put(stream, text.substr(0, whole));
    text.remove_prefix(whole);
  }
  if (text.empty()) return;
  line += text;
  // The beginning of this line is out already, and nothing has come in between.
  const bool continues = sinks_[route_of(stream)]->sink.continues(static_cast<int>(stream));
  if (continues || line.size() >= kLongestLine) {
    put_partial(stream);
  } else if (streams_[stream].pass_on_at == kNever) {
    streams_[stream].pass_on_at = Clock::now() + kPartialLineWait;
    partial_.push_back({streams_[stream].pass_on_at, stream});
  }
}

void Output::put_partial(uint32_t stream) {
  Stream& unfinished = streams_[stream];
  put(stream, unfinished.line);
  unfinished.line.clear();
  unfinished.pass_on_at = kNever;
}

void Output::on_time(Clock::time_point now) {
  while (!partial_.empty() && partial_.front().at <= now) {
    const Partial next = partial_.front();
    partial_.pop_front();
    Stream& stream = streams_[next.stream];
    if (stream.pass_on_at != next.at) continue;
    if (may_have_more(next.stream)) {
      stream.pass_on_at = now + kPartialLineWait;
      partial_.push_back({stream.pass_on_at, next.stream});
    } else {
      put_partial(next.stream);
    }
  }
}

// Whether the rest of a line may have been written but not read: where our own reader is slow, the
// ranks are not read either. A beginning that went out then could be torn from its rest by another
// rank's line.
bool Output::may_have_more(uint32_t stream) const {
  const Route& route = *sinks_[route_of(stream)];
  pollfd readable{streams_[stream].descriptor, POLLIN, 0};
  return !route.sink.empty() || !route.reading || poll(&readable, 1, 0) > 0;
}

void Output::on_resize() {
  for (uint32_t stream = 0; stream < streams_.size(); stream += 2) {
    if (streams_[stream].descriptor >= 0) copy_terminal_size(streams_[stream].descriptor);
  }
}

void Output::put(uint32_t stream, std::string_view text) {
  Sink& sink = sinks_[route_of(stream)]->sink;
  const int writer = static_cast<int>(stream);
  if (!tag_) {
    sink.put(writer, text);
    return;
  }
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!sink.continues(writer)) sink.put(writer, fmt::format("[{}] ", stream / 2));
    sink.put(writer, text.substr(0, length));
    text.remove_prefix(length);
  }
}

void Output::end(uint32_t stream) {
  Stream& ended = streams_[stream];
  put_partial(stream);
  ended.line = {};
  close(ended.descriptor);  // which takes it out of epoll as well
  ended.descriptor = -1;
}

void Output::drain(mob_rank_t rank) {
  // A descendant of the rank may go on writing for ever.
  constexpr int kMostChunks = 16;
  for (uint32_t channel = 0; channel < 2; ++channel) {
    const uint32_t stream = 2 * static_cast<uint32_t>(rank) + channel;
    for (int i = 0; i < kMostChunks && read_once(stream); ++i) {
    }
    put_partial(stream);
  }
}

void Output::say(std::string_view line) {
  Sink& sink = sinks_[routes_ - 1]->sink;
  sink.put(kOwnWriter, fmt::format("{}{}\n", kPrefix, line));
  sink.flush();
}

void Output::flush() {
  for (uint32_t i = 0; i < routes_; ++i) {
    Route& route = *sinks_[i];
    route.sink.flush();
    if (route.reading == route.sink.full()) {
      if (route.reading) {
        poller_.remove(route.streams.descriptor());
      } else {
        poller_.add(route.streams.descriptor(), EPOLLIN, {Source::kStreams, i});
      }
      route.reading = !route.reading;
    }
    if (route.waiting_for_room == route.sink.empty()) {
      if (route.waiting_for_room) {
        poller_.remove(route.sink.descriptor());
        route.waiting_for_room = false;
      } else {
        route.waiting_for_room = poller_.add(route.sink.descriptor(), EPOLLOUT, {Source::kSink, i});
      }
    }
  }
}

bool Output::empty() const {
  for (uint32_t i = 0; i < routes_; ++i) {
    if (!sinks_[i]->sink.empty()) return false;
  }
  return true;
}

bool Output::exhausted() {
  std::array<epoll_event, 1> event;
  for (uint32_t i = 0; i < routes_; ++i) {
    if (sinks_[i]->streams.wait(event, 0) > 0) return false;
  }
  return true;
}

int Output::error() const {
  for (uint32_t i = 0; i < routes_; ++i) {
    if (sinks_[i]->sink.error() != 0) return sinks_[i]->sink.error();
  }
  return 0;
}

void Output::finish() {
  for (uint32_t stream = 0; stream < streams_.size(); ++stream) {
    if (streams_[stream].descriptor >= 0) end(stream);
  }
}

void Output::abandon_blocked() {
  for (uint32_t i = 0; i < routes_; ++i) {
    sinks_[i]->sink.flush();
    if (!sinks_[i]->sink.empty()) sinks_[i]->sink.abandon();
  }
}

}  // namespace mobius::launch
