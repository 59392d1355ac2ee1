// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "info.h"
#include "job/bootstrap/local_protocol.h"
#include "job/launch/hosts.h"
#include "os/file/interfaces.h"
#include "os/memory/address_window.h"
#include "os/memory/memfd.h"
#include "transport/secure/secure.h"

namespace mobius::command {
namespace {

Fact verdict(std::string key, std::string label, bool works, std::string why,
             const Json& more = {}) {
  Json value{{"works", works}, {"detail", why}};
  if (!more.is_null()) value.update(more);
  return {std::move(key), std::move(label), (works ? "works; " : "does not work: ") + why,
          std::move(value)};
}

Fact probe_memfd() {
  constexpr size_t kBytes = 1 << 16;
  int descriptor = -1;
  if (os::memfd_create_sized("mobius-info", kBytes, &descriptor) != MOB_OK) {
    return verdict("memfd", "shared memory", false,
                   fmt::format("{}; no job begins, and windows of MPI programs are their MPI's",
                               mob_last_error()));
  }
  std::string problem;
  if (os::memfd_reserve(descriptor, 0, kBytes) != MOB_OK) problem = mob_last_error();
  if (problem.empty() && ftruncate(descriptor, 0) == 0) {
    problem = "a sealed memfd could be made smaller, which would crash those who map it";
  }
  void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (problem.empty() && mapped == MAP_FAILED) problem = std::strerror(errno);
  if (mapped != MAP_FAILED) munmap(mapped, kBytes);
  close(descriptor);
  if (!problem.empty()) return verdict("memfd", "shared memory", false, problem);
  return verdict("memfd", "shared memory", true,
                 "anonymous memfd, reserved before use, sealed against shrinking");
}

// The value of "key:" in /proc/self/smaps, in bytes, for the mapping that holds an address.
uint64_t bytes_in_smaps(const void* address, std::string_view key) {
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    uint64_t kib = 0;
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) {
      inside = start <= wanted && wanted < end;
    } else if (inside && line.starts_with(key) &&
               std::sscanf(line.c_str() + key.size(), ": %" SCNu64, &kib) == 1) {
      return kib * 1024;
    }
  }
  return 0;
}

// Shared memory that is reserved, mapped and written in the way of a job's memory.
class JobMemory {
 public:
  explicit JobMemory(size_t bytes) {
    constexpr size_t kAlignment = size_t{2} << 20;
    if (!window_.reserve_anywhere(bytes, kAlignment)) {
      problem_ = "no address space";
    } else if (os::memfd_create_sized("mobius-info", bytes, &descriptor_) != MOB_OK ||
               window_.attach(descriptor_, 0) != MOB_OK || window_.allow(0, bytes) != MOB_OK ||
               os::memfd_reserve(descriptor_, 0, bytes) != MOB_OK) {
      problem_ = mob_last_error();
    } else {
      std::memset(start(), 1, bytes);
    }
  }
  ~JobMemory() {
    window_.release();
    if (descriptor_ >= 0) close(descriptor_);
  }
  JobMemory(const JobMemory&) = delete;
  JobMemory& operator=(const JobMemory&) = delete;

  void* start() const { return reinterpret_cast<void*>(window_.base()); }
  const std::string& problem() const { return problem_; }  // empty on success

 private:
  int descriptor_ = -1;
  os::AddressWindow window_;
  std::string problem_;
};

Fact probe_huge_pages() {
  constexpr size_t kBytes = size_t{4} << 20;
  const char* key = "shared_huge_pages";
  const char* label = "huge pages";
  const std::string mode = os::shared_huge_pages();
  const JobMemory memory(kBytes);
  const bool is_there = memory.problem().empty();
  const uint64_t huge = is_there ? bytes_in_smaps(memory.start(), "ShmemPmdMapped") : 0;
  const Json more{{"mode", mode}, {"bytes", kBytes}, {"huge_bytes", huge}};
  if (!is_there) return verdict(key, label, false, memory.problem(), more);
  std::string why = fmt::format("{} of {} of shared memory are in huge pages", bytes_text(huge),
                                bytes_text(kBytes));
  if (mode == "advise") {
    why += "; the kernel makes them of the pages of a job in the background (khugepaged)";
  } else if (huge == 0) {
    why += fmt::format(
        "; shmem_enabled is {}: with within_size or advise in "
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled a job uses them",
        mode.empty() ? "missing" : "'" + mode + "'");
  }
  return verdict(key, label, huge != 0, why, more);
}

// The NUMA node of the page at an address, from the first of two system calls that tells; or -1 and
// the reasons of both.
int node_of_page(void* address, std::string* problem) {
  int node = -1;
  long result = syscall(SYS_move_pages, 0, 1L, &address, nullptr, &node, 0);
  if (result == 0 && node >= 0) return node;
  *problem = std::string("move_pages: ") + std::strerror(result == 0 ? -node : errno);
  node = -1;
  result = syscall(SYS_get_mempolicy, &node, nullptr, 0L, address, MPOL_F_NODE | MPOL_F_ADDR);
  if (result == 0 && node >= 0) return node;
  *problem += std::string("; get_mempolicy: ") + std::strerror(errno);
  return -1;
}

int own_node() {
  unsigned node = 0;
  return syscall(SYS_getcpu, nullptr, &node, nullptr) == 0 ? static_cast<int>(node) : -1;
}

// Whether the kernel takes the memory that a rank reserves from the rank's node. The scheduler may
// move this thread meanwhile, so the node before and the node after both count.
Fact probe_first_touch() {
  const char* key = "first_touch";
  const char* label = "first touch";
  const int before = own_node();
  const JobMemory memory(size_t{2} << 20);
  const int after = own_node();
  const size_t nodes = memory_node_count();
  Json more{{"node", nullptr}, {"nodes", nodes}, {"own_node", after}};
  std::string problem = memory.problem();
  const int node = problem.empty() ? node_of_page(memory.start(), &problem) : -1;
  if (node < 0) {
    return verdict(key, label, false, "the kernel does not tell where pages are (" + problem + ")",
                   more);
  }
  more["node"] = node;
  if (nodes == 1) {
    return verdict(key, label, true,
                   fmt::format("a page reserved here is on node {}: there is one node", node),
                   more);
  }
  const bool is_own = node == before || node == after;
  return verdict(key, label, is_own,
                 fmt::format("a page reserved here is on node {} of {}, by a process on node {}",
                             node, nodes, is_own ? node : after),
                 more);
}

// Tries one process only; a job learns when it starts whether all its processes get the same place.
Fact probe_window() {
  constexpr uintptr_t kFirstChoice = 0x600000000000;
  constexpr size_t kLeast = size_t{64} << 20;
  constexpr size_t kAlignment = size_t{2} << 20;
  base::Settings settings;
  // The list of settings shows malformed ones; this probe then uses the defaults.
  if (settings.load(environ) != MOB_OK) settings.load(nullptr);
  const uint64_t wanted = settings.number(base::SettingId::kWindowBytes);
  os::AddressWindow window;
  size_t bytes = wanted;
  bool first_choice = false;
  while (true) {
    first_choice = window.reserve_at(kFirstChoice, bytes);
    if (first_choice || window.reserve_anywhere(bytes, kAlignment) || bytes / 2 < kLeast) break;
    bytes /= 2;
  }
  if (window.bytes() == 0) {
    return verdict("window", "address window", false,
                   fmt::format("not even {} of address space can be reserved; see ulimit -v",
                               bytes_text(kLeast)));
  }
  const Json more{{"address", fmt::format("{:#x}", window.base())},
                  {"bytes", window.bytes()},
                  {"wanted_bytes", wanted}};
  std::string why = fmt::format("{} at {:#x}", bytes_text(window.bytes()), window.base());
  if (window.bytes() < wanted) {
    why += fmt::format(", less than the {} wanted (ulimit -v?)", bytes_text(wanted));
  }
  if (!first_choice) {
    why += fmt::format(
        "; the first choice, {:#x}, is taken, so a job tries others and, where no "
        "address is free in all its processes, translates with a table",
        kFirstChoice);
  }
  return verdict("window", "address window", true, why, more);
}

// One child process reads the memory of another, as ranks do. Returns 0 or the errno of the read.
int attach_between_siblings(bool allowed_by_target) {
  static volatile int word = 0;
  word = 0;
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return errno;
  const pid_t target = fork();
  if (target == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    word = 0x5eed;
    if (allowed_by_target) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    const ssize_t told = write(ready[1], "", 1);
    for (bool waiting = told == 1; waiting; waiting = pause() == -1) {
    }
    _exit(1);
  }
  char byte = 0;
  int result = target < 0 || read(ready[0], &byte, 1) != 1 ? EAGAIN : 0;
  const pid_t origin = result == 0 ? fork() : -1;
  if (origin == 0) {
    int got = 0;
    const iovec here{&got, sizeof got};
    const iovec there{const_cast<int*>(&word), sizeof word};
    const ssize_t bytes = process_vm_readv(target, &here, 1, &there, 1, 0);
    _exit(bytes < 0 ? errno : got == 0x5eed ? 0 : EIO);
  }
  int status = 0;
  if (origin > 0 && waitpid(origin, &status, 0) == origin) {
    result = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
  }
  if (target > 0) {
    kill(target, SIGKILL);
    waitpid(target, nullptr, 0);
  }
  close(ready[0]);
  close(ready[1]);
  return result;
}

Fact probe_attach() {
  const char* key = "cross_memory_attach";
  const char* label = "memory attach";
  const int plain = attach_between_siblings(false);
  if (plain == 0) {
    return verdict(key, label, true, "process_vm_readv between two processes");
  }
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (attach_between_siblings(true) == 0) {
    return verdict(key, label, true,
                   fmt::format("process_vm_readv, once the target allows it (PR_SET_PTRACER; "
                               "kernel.yama.ptrace_scope is {})",
                               scope));
  }
  std::string why = fmt::format("process_vm_readv gives \"{}\"", std::strerror(plain));
  if (plain == EPERM && !scope.empty() && scope != "0") {
    why +=
        fmt::format("; kernel.yama.ptrace_scope is {} (sysctl kernel.yama.ptrace_scope=0)", scope);
  } else if (plain == EPERM || plain == ENOSYS) {
    why += "; in a container, its seccomp profile may forbid it (--cap-add SYS_PTRACE)";
  }
  why +=
      "; a thread of the target, which has to be woken, copies instead to and from memory that is "
      "not shared (a stack, memory that is exposed where it is)";
  return verdict(key, label, false, why);
}

Fact probe_pidfd() {
#ifdef SYS_pidfd_open
  const long descriptor = syscall(SYS_pidfd_open, getpid(), 0U);
  if (descriptor >= 0) {
    close(static_cast<int>(descriptor));
    return verdict("pidfd", "pidfd", true, "processes can be waited for without races");
  }
  return verdict(
      "pidfd", "pidfd", false,
      fmt::format("pidfd_open gives \"{}\" (kernels from 5.3 have it)", std::strerror(errno)));
#else
  return verdict("pidfd", "pidfd", false, "not known where this was built");
#endif
}

Fact probe_sockets() {
  const char* key = "abstract_sockets";
  const char* label = "abstract sockets";
  sockaddr_un address;
  job::Secret secret{};
  static_cast<void>(job::make_secret(&secret));  // without randomness any other will do
  const socklen_t length = job::job_address(secret, &address);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const int server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  std::string problem;
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  if (server < 0 || client < 0 || bind(server, generic, length) != 0 || listen(server, 1) != 0 ||
      connect(client, generic, length) != 0 ||
      getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0) {
    problem = std::strerror(errno);
  } else if (peer.uid != getuid()) {
    problem = fmt::format("SO_PEERCRED names user {} instead of {}", peer.uid, getuid());
  }
  if (server >= 0) close(server);
  if (client >= 0) close(client);
  if (!problem.empty()) return verdict(key, label, false, problem);
  return verdict(key, label, true,
                 "message sockets without a file; the kernel names the peer's user");
}

#ifdef MOBIUS_NETWORK
Fact library(const char* key, const char* label, const char* file, const char* function,
             std::string (*version)(void*)) {
  void* handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    const bool missing = error == nullptr || std::strstr(error, "No such file") != nullptr;
    return {key, label, missing ? fmt::format("{} was not found", file) : std::string(error),
            Json{{"found", false}, {"detail", missing ? "not found" : error}}};
  }
  void* symbol = dlsym(handle, function);
  const std::string text = symbol != nullptr ? version(symbol) : "of unknown version";
  // Stays open: some such libraries start threads, which would crash after dlclose().
  return {key, label, fmt::format("{} found; loaded when a job needs it", text),
          Json{{"found", true}, {"version", text}}};
}

Fact libfabric() {
  return library("libfabric", "libfabric", "libfabric.so.1", "fi_version", [](void* symbol) {
    const uint32_t version = reinterpret_cast<uint32_t (*)()>(symbol)();
    return fmt::format("{}.{}", version >> 16, version & 0xffff);
  });
}

Fact pmix() {
  return library("pmix", "PMIx", "libpmix.so.2", "PMIx_Get_version", [](void* symbol) {
    const std::string text = reinterpret_cast<const char* (*)()>(symbol)();
    // "OpenPMIx 4.2.2 (PMIx Standard: 4.2, Stable ABI: ...)"
    return text.substr(0, std::min(text.find(" ("), text.find(',')));
  });
}
#else
Fact not_built(const char* key, const char* label) {
  return {key, label, "not looked for: built without network (MOBIUS_NETWORK=OFF)",
          Json{{"found", nullptr}, {"detail", "built without network"}}};
}
Fact libfabric() { return not_built("libfabric", "libfabric"); }
Fact pmix() { return not_built("pmix", "PMIx"); }
#endif

// What encrypts messages to other hosts.
Fact encryption() {
  const base::Security security = usable_settings().security();
  const char* const name = base::name_of(security);
  Json value{{"setting", name}, {"works", false}, {"cipher", nullptr}};
  if (security == base::Security::kOff) {
    return {"encryption", "encryption", "off: nothing is encrypted between hosts", value};
  }
  if (transport::secure::load() != MOB_OK) {
    value["detail"] = mob_last_error();
    return {"encryption", "encryption", std::string("does not work: ") + mob_last_error(), value};
  }
  const char* const cipher = transport::secure::name_of(transport::secure::preferred_cipher());
  value["works"] = true;
  value["cipher"] = cipher;
  value["library"] = transport::secure::library_text();
  return {"encryption", "encryption",
          fmt::format("{}, by {} (MOBIUS_SECURITY={})", cipher, transport::secure::library_text(),
                      name),
          value};
}

// Variables that a batch system or a PMIx launcher sets for its processes.
Fact batch_environment() {
  std::vector<std::string> names;
  for (char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    for (const std::string_view prefix : {"PMIX_", "SLURM_", "PMI_", "PBS_", "LSB_"}) {
      if (variable.starts_with(prefix)) names.emplace_back(variable.substr(0, variable.find('=')));
    }
  }
  std::sort(names.begin(), names.end());
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (text.empty() ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return {"batch_environment", "batch system",
          names.empty() ? "no variables of PMIx, Slurm, PBS or LSF are set" : text + " set", names};
}

// The interface that a job of several hosts would use here, and why not the others.
Fact network_interface() {
  base::Settings settings;
  const bool is_known = settings.load(environ) == MOB_OK;
  const std::string name = is_known ? settings.text(base::SettingId::kInterface) : "";
  const bool is_named = !name.empty();
  const std::vector<os::Interface> listed = os::host_interfaces();
  std::vector<const os::Interface*> all;
  for (const os::Interface& each : listed) all.push_back(&each);
  std::ranges::sort(all, [](const os::Interface* a, const os::Interface* b) {
    return os::better(*a, *b) || (!os::better(*b, *a) && a < b);
  });
  os::Subnet subnet;
  const bool is_subnet = is_named && os::parse_subnet(name, &subnet);
  const os::Interface* chosen = nullptr;
  for (const os::Interface* each : all) {
    const bool fits = !is_named   ? each->running && !each->loopback
                      : is_subnet ? subnet.contains(each->address)
                                  : each->name == name;
    if (fits && chosen == nullptr) chosen = each;
  }
  if (chosen == nullptr) {
    return {"interface", "interface",
            is_named ? fmt::format("none: MOBIUS_INTERFACE={} names none of this host", name)
                     : "none: no interface but the loopback is up and has a carrier and an address",
            nullptr};
  }
  const auto title = [](const os::Interface& each) {
    return fmt::format("{} ({}/{})", each.name, os::ip_text(each.address), each.bits);
  };
  std::string text = title(*chosen);
  if (is_named) {
    text += ", named by MOBIUS_INTERFACE";
  } else if (const char* reason = os::drawback(*chosen)) {
    text += fmt::format(", for want of another one ({})", reason);
  } else {
    text += ", unless all hosts of a job have another subnet in common";
  }
  for (const os::Interface* each : all) {
    if (is_named || each->loopback || each->name == chosen->name) continue;
    const char* reason = os::drawback(*each);
    const bool slower = each->speed < chosen->speed;
    text += fmt::format("; not {}: {}", title(*each),
                        reason != nullptr ? reason
                        : slower          ? "it is slower"
                                          : "it is not faster");
  }
  return {"interface", "interface", text,
          Json{{"name", chosen->name}, {"address", os::ip_text(chosen->address)}}};
}

// The kernel's settings for sending, which matter to providers over TCP.
Fact congestion_control() {
  const std::string name = first_line("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string text = name.empty() ? "cannot be read" : name;
  if (name.starts_with("bbr")) {
    text +=
        ": paces what is sent, so that large transfers take several times as long on fast "
        "links; cubic and reno do not (net.ipv4.tcp_congestion_control)";
  }
  return {"tcp_congestion_control", "TCP congestion", text, name};
}

// The launcher that `mobius run --hosts` would use.
Fact host_launcher() {
  const launch::HostLauncher found = launch::find_host_launcher(std::getenv("PATH"));
  const bool is_there = found.kind != launch::HostLauncher::Kind::kNone;
  return {"host_launcher", "launcher",
          is_there ? found.path + ", for mobius run --hosts" : found.problem,
          Json{{"found", is_there}, {"detail", is_there ? found.path : found.problem}}};
}

}  // namespace

Section probe_facts() {
  return {"probes",
          "Tried out here",
          {probe_memfd(), probe_huge_pages(), probe_first_touch(), probe_window(), probe_attach(),
           probe_pidfd(), probe_sockets()}};
}

Section network_facts() {
  return {"network",
          "Beyond this host",
          {libfabric(), encryption(), network_interface(), congestion_control(), pmix(),
           host_launcher(), batch_environment()}};
}

}  // namespace mobius::command
