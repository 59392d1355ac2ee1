// SPDX-License-Identifier: BSD-3-Clause
#include "os/process/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace mobius::os {
namespace {

// The number of a namespace is its inode in one kernel-wide file system.
uint64_t namespace_number(const char* path) {
  struct stat information{};
  return stat(path, &information) == 0 ? information.st_ino : 0;
}

int hexadecimal(int digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

void read_boot_id(unsigned char (&boot)[16]) {
  std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return;
  size_t digits = 0;
  for (int c = std::fgetc(file); c != EOF && digits < 32; c = std::fgetc(file)) {
    const int value = hexadecimal(c);
    if (value < 0) continue;  // skips the dashes
    unsigned char& byte = boot[digits / 2];
    byte = static_cast<unsigned char>(byte << 4 | value);
    ++digits;
  }
  std::fclose(file);
}

}  // namespace

Identity own_identity() {
  Identity identity{};
  read_boot_id(identity.boot);
  identity.user_namespace = namespace_number("/proc/self/ns/user");
  identity.network_namespace = namespace_number("/proc/self/ns/net");
  identity.user = geteuid();
  return identity;
}

}  // namespace mobius::os
