// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/mpi_launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/status.h"
#include "os/process/process.h"

namespace mobius::job {
namespace {

using base::fail;

// The variables of one family of launchers.
struct Dialect {
  const char* rank;
  const char* size;
  const char* local_size;  // the number of them on this host
  const char* job;         // tells the jobs of one launcher apart; or null
};

constexpr Dialect kDialects[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr},
};

// A random number that Open MPI's launchers hand to the processes of a job.
constexpr const char* kTransportKey = "OMPI_MCA_orte_precondition_transports";

const char* find(const char* const* environment, const char* name) {
  const size_t length = std::strlen(name);
  for (; *environment != nullptr; ++environment) {
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
      return *environment + length + 1;
    }
  }
  return nullptr;
}

bool parse(const char* text, mob_rank_t* number) {
  if (text == nullptr) return false;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, *number);
  return error == std::errc() && rest == end && rest != text && *number >= 0;
}

bool holds(std::string_view environment, const std::string& entry) {
  // A 0 follows every entry and so precedes every entry but the first.
  const std::string whole = entry + '\0';
  for (size_t at = environment.find(whole); at != std::string_view::npos;
       at = environment.find(whole, at + 1)) {
    if (at == 0 || environment[at - 1] == '\0') return true;
  }
  return false;
}

// The nearest ancestor whose environment lacks this rank and size. Those below it are wrappers:
// shells, debuggers, interpreters.
pid_t launcher_process(const std::string& rank_entry, const std::string& size_entry) {
  pid_t pid = getppid();
  while (pid > 1) {
    const std::string environment = os::process_environment(pid);
    if (!holds(environment, rank_entry) || !holds(environment, size_entry)) break;
    pid = os::process_parent(pid);
  }
  return pid;
}

Secret secret_from(const std::string& facts, const std::string& hidden) {
  const auto bytes = [](const std::string& text) {
    return std::span(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  };
  const std::array<unsigned char, 32> code = hmac_sha256(bytes(hidden), bytes(facts));
  Secret secret;
  std::copy_n(code.begin(), secret.size(), secret.begin());
  return secret;
}

mob_status_t read(const char* const* environment, const Dialect& dialect, MpiLaunch* launch) {
  const char* size = find(environment, dialect.size);
  const char* rank = find(environment, dialect.rank);
  if (!parse(size, &launch->size) || !parse(rank, &launch->rank) || launch->rank >= launch->size) {
    return fail(MOB_ERR_SETTING,
                "%s is '%s' and %s is '%s', which no MPI launcher sets together; unset both to "
                "start a job of one, or set MOBIUS_LAUNCHER=none",
                dialect.rank, rank, dialect.size, size != nullptr ? size : "not set");
  }
  const char* local = find(environment, dialect.local_size);
  mob_rank_t local_size = 0;
  if (launch->size > 1 && (!parse(local, &local_size) || local_size != launch->size)) {
    return fail(MOB_ERR_SYSTEM,
                "the MPI launcher started %d processes, and on this host %s; start all of them on "
                "one host, or set MOBIUS_LAUNCHER=none for jobs of one",
                launch->size, local != nullptr ? local : "nobody knows how many");
  }
  const std::string rank_entry = std::string(dialect.rank) + '=' + rank;
  const std::string size_entry = std::string(dialect.size) + '=' + size;
  const pid_t launcher = launcher_process(rank_entry, size_entry);
  const char* job = dialect.job != nullptr ? find(environment, dialect.job) : nullptr;
  const char* transports = find(environment, kTransportKey);
  launch->secret =
      secret_from(std::to_string(geteuid()) + ' ' + std::to_string(launcher) + ' ' +
                      std::to_string(os::process_start_time(launcher)) + ' ' + size_entry + ' ' +
                      (job != nullptr ? job : ""),
                  os::process_private_bytes(launcher) + (transports != nullptr ? transports : ""));
  return MOB_OK;
}

}  // namespace

mob_status_t find_mpi_launch(const char* const* environment, MpiLaunch* launch, bool* found) {
  for (const Dialect& dialect : kDialects) {
    if (find(environment, dialect.rank) == nullptr) continue;
    *found = true;
    return read(environment, dialect, launch);
  }
  *found = false;
  return MOB_OK;
}

}  // namespace mobius::job
