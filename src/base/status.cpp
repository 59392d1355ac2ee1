// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace mobius::base {

constinit thread_local bool acts_for_others = false;
constinit thread_local bool in_handler = false;

namespace {

constexpr size_t kMostBytes = 512;

// The texts of a thread. In a page of their own instead of thread-local storage, of which a library
// that a running program loads gets little; and not from malloc(), as errors are also reported
// while other threads are stopped, which may hold its locks.
struct Texts {
  char own[kMostBytes];
  char others[kMostBytes];
};
constinit thread_local Texts* texts_of_thread [[gnu::tls_model("initial-exec")]] = nullptr;
// For threads for which the system has no page. Several share it, so their texts may mix.
constinit Texts texts_of_poor_threads{};

void free_texts(void* texts) {
  texts_of_thread = nullptr;
  munmap(texts, sizeof(Texts));
}

// Keeps errno, which callers may report next.
[[gnu::noinline]] Texts& make_texts() {
  const int error = errno;
  static const struct Key {
    Key() : is_made(pthread_key_create(&key, &free_texts) == 0) {}
    pthread_key_t key{};
    bool is_made;
  } key;
  void* const page =
      mmap(nullptr, sizeof(Texts), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = error;
  if (page == MAP_FAILED) return texts_of_poor_threads;
  if (!key.is_made || pthread_setspecific(key.key, page) != 0) {
    munmap(page, sizeof(Texts));
    return texts_of_poor_threads;
  }
  return *(texts_of_thread = static_cast<Texts*>(page));
}

char* last_error() {
  Texts& texts = texts_of_thread != nullptr ? *texts_of_thread : make_texts();
  return acts_for_others || in_handler ? texts.others : texts.own;
}

}  // namespace

mob_status_t fail(mob_status_t status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error(), kMostBytes, format, arguments);
  va_end(arguments);
  return status;
}

mob_status_t fail_errno(mob_status_t status, int error_number, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char* const text = last_error();
  const int length = std::vsnprintf(text, kMostBytes, format, arguments);
  va_end(arguments);
  if (length >= 0 && static_cast<size_t>(length) < kMostBytes) {
    char buffer[128];
    std::snprintf(text + length, kMostBytes - static_cast<size_t>(length), ": %s",
                  strerror_r(error_number, buffer, sizeof buffer));
  }
  return status;
}

mob_status_t name_call(const char* call, mob_status_t status) {
  char* const text = last_error();
  if (std::strncmp(text, "mob_", 4) == 0) return status;
  const size_t name = std::strlen(call) + 2;  // with ": "
  std::memmove(text + name, text, kMostBytes - name - 1);
  std::memcpy(text, call, name - 2);
  std::memcpy(text + name - 2, ": ", 2);
  text[kMostBytes - 1] = '\0';
  return status;
}

}  // namespace mobius::base

const char* mob_last_error() { return mobius::base::last_error(); }

const char* mob_status_name(mob_status_t status) {
  switch (status) {
    case MOB_OK:
      return "MOB_OK";
    case MOB_ERR_STATE:
      return "MOB_ERR_STATE";
    case MOB_ERR_ARGUMENT:
      return "MOB_ERR_ARGUMENT";
    case MOB_ERR_RANK:
      return "MOB_ERR_RANK";
    case MOB_ERR_RANGE:
      return "MOB_ERR_RANGE";
    case MOB_ERR_HANDLE:
      return "MOB_ERR_HANDLE";
    case MOB_ERR_MEMORY:
      return "MOB_ERR_MEMORY";
    case MOB_ERR_SETTING:
      return "MOB_ERR_SETTING";
    case MOB_ERR_SYSTEM:
      return "MOB_ERR_SYSTEM";
    case MOB_ERR_PEER:
      return "MOB_ERR_PEER";
  }
  return "MOB_ERR_UNKNOWN";
}
