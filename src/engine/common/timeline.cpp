// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/timeline.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "base/log.h"
#include "base/status.h"

namespace mobius::engine {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

}  // namespace

std::string Timeline::file_name(const std::string& name, mob_rank_t rank) {
  std::string result = name;
  const std::string number = std::to_string(rank);
  if (const size_t place = result.find("%r"); place != std::string::npos) {
    return result.replace(place, 2, number);
  }
  const size_t slash = result.rfind('/');
  const size_t dot = result.rfind('.');
  const size_t first = slash == std::string::npos ? 0 : slash + 1;
  const bool extends = dot != std::string::npos && dot > first;
  return result.insert(extends ? dot : result.size(), "." + number);
}

uint64_t Timeline::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

mob_status_t Timeline::open(const std::string& name, mob_rank_t rank, uint64_t most_bytes,
                            std::unique_ptr<Timeline>* timeline) {
  const std::string path = file_name(name, rank);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) {
    return base::fail_errno(MOB_ERR_SETTING, errno,
                            "mob_init: the timeline '%s' (MOBIUS_TRACE) cannot be written",
                            path.c_str());
  }
  timeline->reset(new Timeline(file, rank, most_bytes));
  return MOB_OK;
}

Timeline::Timeline(int file, mob_rank_t rank, uint64_t most_bytes)
    : file_(file), rank_(rank), most_bytes_(most_bytes) {
  buffer_.reserve(kBufferBytes);
  char text[160];
  const int length = std::snprintf(text, sizeof text,
                                   "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                                   "\"tid\":0,\"args\":{\"name\":\"rank %d\"}}",
                                   rank, rank);
  append(text, static_cast<size_t>(length));
  write_out();
}

Timeline::~Timeline() {
  buffer_ += "\n]\n";
  write_out();
  close(file_);
}

void Timeline::add(const char* name, const char* category, uint64_t begin, const char* arguments) {
  const uint64_t end = now();
  thread_local const auto thread = static_cast<long>(syscall(SYS_gettid));
  char head[320];
  const int length = std::snprintf(
      head, sizeof head,
      ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64
      ".%03u,\"pid\":%d,\"tid\":%ld,\"args\":{",
      name, category, begin / 1000, static_cast<unsigned>(begin % 1000), (end - begin) / 1000,
      static_cast<unsigned>((end - begin) % 1000), rank_, thread);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof head) return;
  const std::string text = std::string(head, static_cast<size_t>(length)) + arguments + "}}";
  const std::lock_guard lock(mutex_);
  append(text.data(), text.size());
}

void Timeline::append(const char* text, size_t bytes) {
  if (full_) return;
  bytes_ += bytes;
  if (bytes_ > most_bytes_) {
    base::log(base::LogLevel::kWarn,
              "the timeline of rank %d ends early: it has the %" PRIu64
              " bytes that MOBIUS_TRACE_BYTES allows",
              rank_, most_bytes_);
    full_ = true;
    return;
  }
  if (buffer_.size() + bytes > kBufferBytes) write_out();
  buffer_.append(text, bytes);
}

void Timeline::write_out() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t written = write(file_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      full_ = true;
      break;
    }
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
}

}  // namespace mobius::engine
