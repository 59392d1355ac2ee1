// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/endpoint.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "os/file/interfaces.h"
#include "os/sync/futex.h"
#include "transport/ofi/state.h"

namespace mobius::transport::ofi {
namespace {

using base::fail;

// libfabric's interface for both directions lacks const; this memory is only read.
unsigned char* source(const void* local) {
  return const_cast<unsigned char*>(static_cast<const unsigned char*>(local));
}

// The start of address(); the provider's name, libfabric's address and the host's name follow. All
// hosts of a job have one byte order and one version of Möbius; otherwise `magic` differs.
struct AddressHeader {
  uint64_t magic = kMagic;
  uint64_t name = 0;
  uint32_t format = 0;
  uint8_t provider_bytes = 0;
  uint8_t host_bytes = 0;
  uint16_t address_bytes = 0;
  Protection protection;
  uint8_t unused[6] = {};
  size_t bytes() const {
    return sizeof *this + provider_bytes + address_bytes + size_t{host_bytes};
  }
  static constexpr uint64_t kMagic = 0x34'6966'6f2e'626f'6d;  // "mob.ofi4" in memory
};
static_assert(sizeof(AddressHeader) == 64);

std::string host_name() {
  utsname names = {};
  return uname(&names) == 0 ? names.nodename : "";
}

constexpr size_t kPageBytes = 4096;
constexpr size_t kMostAddressBytes = 512;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// All addresses at which other hosts might reach this one.
std::string list_of_addresses() {
  std::string list;
  const std::vector<os::Interface> interfaces = os::host_interfaces();
  for (const os::Contact& contact : os::contacts(interfaces)) {
    for (const os::Interface& each : interfaces) {
      if (!os::same_ip(each.address, contact.address())) continue;
      list += (list.empty() ? "" : ", ") + each.name + " (" + os::ip_text(each.address) + ")";
      break;
    }
  }
  return list;
}

// Connects and closes the connection. `from`: the source's address, whose port is not used.
int connect_once(sockaddr_storage from, const sockaddr_storage& to, int limit_ms) {
  const bool v4 = to.ss_family == AF_INET;
  const socklen_t bytes = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int socket = ::socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  (v4 ? reinterpret_cast<sockaddr_in&>(from).sin_port
      : reinterpret_cast<sockaddr_in6&>(from).sin6_port) = 0;
  int error = 0;
  if (bind(socket, reinterpret_cast<const sockaddr*>(&from), bytes) != 0 ||
      connect(socket, reinterpret_cast<const sockaddr*>(&to), bytes) != 0) {
    error = errno;
  }
  if (error == EINPROGRESS) {
    pollfd connected = {socket, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (::poll(&connected, 1, limit_ms) <= 0) {
      error = ETIMEDOUT;
    } else {
      getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  ::close(socket);
  return error;
}

bool random_bytes(void* start, size_t bytes) {
  return getrandom(start, bytes, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

Endpoint::State::Arena::~Arena() {
  if (start != nullptr) munmap(start, bytes);
}

// Closing an ofi_rxm endpoint (libfabric 1.17) may crash if transfers were under way to lost peers.
// Then it is left open until the process ends.
bool Endpoint::State::closes() const {
  const bool is_rxm = description.provider.ends_with(";ofi_rxm");
  return !is_rxm || std::ranges::none_of(peers, &Peer::failed);
}

Endpoint::State::~State() {
  // In libfabric's order: objects that use others are closed first.
  endpoint.reset();
  for (const Record& record : records) {
    if (record.temporary != nullptr) fi_close(&record.temporary->fid);
  }
  for (const auto& [registration, uses] : registrations) fi_close(&registration->fid);
  for (Arena& arena : arenas) arena.registration.reset();
  completions.reset();
  wait_set.reset();
  addresses.reset();
  domain.reset();
  fabric.reset();
}

mob_status_t Endpoint::State::refused(const char* what, int64_t error) const {
  return fail(MOB_ERR_SYSTEM,
              "provider %s on %s refused %s: %s (MOBIUS_PROVIDER names another one)",
              info->fabric_attr->prov_name, info->domain_attr->name, what,
              library->text_of_error(static_cast<int>(error)).c_str());
}

mob_status_t Endpoint::State::open() {
  if (const mob_status_t status = load_library(&library)) return status;
  Choice choice;
  if (const mob_status_t status = choose(*library, options, &choice)) return status;
  info = std::move(choice.info);
  if (!random_bytes(&name, sizeof name)) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "getrandom for an endpoint's name");
  }
  if (const mob_status_t status = keys.open(options.security, options.key)) return status;
  if (keys.is_on()) header_bytes = sizeof(SealedHeader);
  senders = std::make_unique<Senders>(keys.code_key(), name, keys.is_on(),
                                      [this](uint64_t sender) { return find_sender(sender); });

  read_back = options.visibility == Visibility::kReadBack || !choice.delivery_complete;
  if (const mob_status_t status = take_over_limits()) return status;
  if (const mob_status_t status = open_fabric()) return status;
  if (const mob_status_t status = make_queue()) return status;
  if (const mob_status_t status = open_endpoint()) return status;
  if (const mob_status_t status = make_buffers()) return status;
  describe();
  return MOB_OK;
}

mob_status_t Endpoint::State::take_over_limits() {
  const int modes = info->domain_attr->mr_mode;
  local_registration = options.register_local || (modes & FI_MR_LOCAL) != 0;
  virtual_addresses = (modes & FI_MR_VIRT_ADDR) != 0;
  bind_registrations = (modes & FI_MR_ENDPOINT) != 0;
  choose_keys = (modes & FI_MR_PROV_KEY) == 0;
  largest_transfer = info->ep_attr->max_msg_size;
  inject_bytes = info->tx_attr->inject_size;
  const std::string_view provider = info->fabric_attr->prov_name;
  over_tcp = provider.starts_with("tcp") || provider.starts_with("net") || provider == "sockets";
  buffer_bytes = round_up(header_bytes + options.message_bytes, 64);
  if (buffer_bytes > largest_transfer) {
    return fail(MOB_ERR_SYSTEM, "provider %s carries messages of %zu bytes at most, %zu are needed",
                info->fabric_attr->prov_name, largest_transfer, buffer_bytes);
  }
  return MOB_OK;
}

mob_status_t Endpoint::State::open_fabric() {
  fid_fabric* new_fabric = nullptr;
  if (const int error = library->fabric(info->fabric_attr, &new_fabric, nullptr)) {
    return refused("its fabric", error);
  }
  fabric.reset(new_fabric);
  fid_domain* new_domain = nullptr;
  if (const int error = fi_domain(fabric.get(), info.get(), &new_domain, nullptr)) {
    return refused("its domain", error);
  }
  domain.reset(new_domain);

  fi_av_attr av = {};
  av.type = FI_AV_UNSPEC;
  if (info->domain_attr->av_type != FI_AV_UNSPEC) av.type = info->domain_attr->av_type;
  fid_av* new_av = nullptr;
  if (const int error = fi_av_open(domain.get(), &av, &new_av, nullptr)) {
    return refused("an address vector", error);
  }
  addresses.reset(new_av);
  return MOB_OK;
}

mob_status_t Endpoint::State::open_endpoint() {
  fid_ep* new_endpoint = nullptr;
  int error = fi_endpoint(domain.get(), info.get(), &new_endpoint, nullptr);
  if (error != 0) return refused("an endpoint", error);
  endpoint.reset(new_endpoint);
  error = fi_ep_bind(endpoint.get(), &addresses->fid, 0);
  if (error == 0) error = fi_ep_bind(endpoint.get(), &completions->fid, FI_TRANSMIT | FI_RECV);
  if (error == 0) error = fi_enable(endpoint.get());
  if (error != 0) return refused("to enable its endpoint", error);

  own_address.resize(kMostAddressBytes);
  size_t address_bytes = own_address.size();
  if (fi_getname(&endpoint->fid, own_address.data(), &address_bytes) != 0) address_bytes = 0;
  own_address.resize(std::min(address_bytes, own_address.size()));
  return MOB_OK;
}

void Endpoint::State::describe() {
  const int modes = info->domain_attr->mr_mode;
  const std::string_view provider = info->fabric_attr->prov_name;
  description.library = library->version_text();
  description.provider = info->fabric_attr->prov_name;
  description.interface = info->domain_attr->name;
  sockaddr_storage own = {};
  std::memcpy(&own, own_address.data(), std::min(own_address.size(), sizeof own));
  if (over_tcp && !os::is_loopback(own)) description.interfaces = list_of_addresses();
  description.memory = modes == 0 ? "" : library->text_of(&modes, FI_TYPE_MR_MODE);
  description.pins_memory = (modes & FI_MR_ALLOCATED) != 0;
  description.delivery_complete = !read_back;
  description.sleeps = descriptor >= 0;
  description.is_stream = provider == "net" || provider == "tcp";
  // All data of a stream arrives in order, also data of different kinds.
  description.ahead_bytes = description.is_stream ? largest_transfer : 0;
  // A target that serves a stream would sleep through writes that do not report themselves. A
  // network adapter needs no such reports.
  tells_of_writes = description.is_stream && info->domain_attr->cq_data_size != 0;
  description.notes_writes = description.is_stream && choose_keys &&
                             info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
                             info->domain_attr->mr_key_size >= sizeof(uint64_t);
  description.inject_bytes = inject_bytes < header_bytes ? 0 : inject_bytes - header_bytes;
  if (keys.is_on()) description.cipher = secure::name_of(secure::preferred_cipher());
}

mob_status_t Endpoint::State::make_queue() {
  fi_cq_attr attributes = {};
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.size =
      options.send_buffers + options.receive_buffers + options.short_messages + options.operations;
  attributes.wait_obj = FI_WAIT_FD;
  // Before libfabric 1.20, fi_trywait() of these providers does nothing, and their descriptor stays
  // readable after the first event. A wait set around the queue behaves correctly.
  const std::string_view provider = info->fabric_attr->prov_name;
  if ((provider == "net" || provider == "tcp") &&
      FI_VERSION_LT(library->version, FI_VERSION(1, 20))) {
    fi_wait_attr wait = {};
    wait.wait_obj = FI_WAIT_FD;
    fid_wait* set = nullptr;
    if (const int error = fi_wait_open(fabric.get(), &wait, &set)) {
      return refused("a wait set", error);
    }
    wait_set.reset(set);
    attributes.wait_obj = FI_WAIT_SET;
    attributes.wait_set = set;
  }
  fid_cq* queue = nullptr;
  int error = fi_cq_open(domain.get(), &attributes, &queue, nullptr);
  if (error != 0) {
    wait_set.reset();
    attributes.wait_obj = FI_WAIT_NONE;
    attributes.wait_set = nullptr;
    error = fi_cq_open(domain.get(), &attributes, &queue, nullptr);
  }
  if (error != 0) return refused("a completion queue", error);
  completions.reset(queue);
  if (attributes.wait_obj == FI_WAIT_NONE) return MOB_OK;
  fid* waits = wait_set != nullptr ? &wait_set->fid : &completions->fid;
  if (fi_control(waits, FI_GETWAIT, &descriptor) != FI_SUCCESS) descriptor = -1;
  return MOB_OK;
}

bool Endpoint::State::ready_to_sleep() {
  if (descriptor < 0 || something_waits.load(std::memory_order_acquire)) return false;
  // Checking the wait set consumes events as poll() does.
  const std::unique_lock lock(polling, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (wait_set != nullptr) return fi_wait(wait_set.get(), 0) == -FI_ETIMEDOUT;
  fid* waits = &completions->fid;
  return fi_trywait(fabric.get(), &waits, 1) == FI_SUCCESS;
}

// The new arena is the last one.
mob_status_t Endpoint::State::add_arena(size_t bytes) {
  bytes = round_up(bytes, kPageBytes);
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    return base::fail_errno(MOB_ERR_MEMORY, errno, "%zu bytes for buffers of the network", bytes);
  }
  Arena& arena = arenas.emplace_back();
  arena.start = static_cast<unsigned char*>(start);
  arena.bytes = bytes;
  if (!local_registration) return MOB_OK;
  fid_mr* registration = nullptr;
  const mob_status_t status =
      register_range(start, bytes, FI_SEND | FI_RECV | FI_READ | FI_WRITE, &registration);
  if (status != MOB_OK) {
    arenas.pop_back();
    return status;
  }
  arena.registration.reset(registration);
  return MOB_OK;
}

mob_status_t Endpoint::State::make_buffers() {
  const size_t count = options.send_buffers + options.receive_buffers;
  if (const mob_status_t status = add_arena(kPageBytes + count * buffer_bytes)) return status;
  void* const arena_descriptor = arenas.front().descriptor();
  unsigned char* buffer = arenas.front().start + kPageBytes;
  for (size_t i = 0; i < options.send_buffers; ++i, buffer += buffer_bytes) {
    free_buffers.push_back({buffer, arena_descriptor});
  }
  receive_records = std::vector<Record>(options.receive_buffers);
  for (size_t i = 0; i < options.receive_buffers; ++i, buffer += buffer_bytes) {
    Record& record = receive_records[i];
    record.kind = Kind::kReceive;
    record.buffer = {buffer, arena_descriptor};
    unposted.push(&record);
  }
  free_of[kBuffers] = options.send_buffers;
  free_of[kShort] = options.short_messages;
  free_of[kTransfers] = options.operations;
  post_receives();
  return MOB_OK;
}

bool Endpoint::State::check_peer(PeerId peer, const char* call) {
  if (peer >= peers.size()) {
    fail(MOB_ERR_ARGUMENT, "%s: there is no peer %u; %zu were added", call, peer, peers.size());
    return false;
  }
  if (peers[peer].failed) {
    fail(MOB_ERR_PEER, "%s: %s", call, peers[peer].text.c_str());
    return false;
  }
  return true;
}

void Endpoint::State::fail_peer(PeerId peer, const std::string& reason) {
  Peer& lost = peers[peer];
  if (lost.failed) return;
  lost.failed = true;
  lost.text = "provider " + description.provider + " lost peer " + lost.where + ": " + reason +
              advice(lost);
  replace_what_is_held(peer);
  failed.push_back(peer);
  something_waits.store(true, std::memory_order_release);
}

std::string Endpoint::State::advice(const Peer& peer) const {
  if (!over_tcp || peer.met || description.interfaces.empty()) return "";
  return "; this process uses interface " + description.interface + " of " +
         description.interfaces + ": MOBIUS_INTERFACE names a network that all hosts are in";
}

// libfabric may take very long to give up a connection to a stopped host. Resources that come back
// then stay in the pool, for the next peer that is lost.
void Endpoint::State::replace_what_is_held(PeerId lost) {
  const bool has_buffers = add_buffers(free_of[kBuffers] + peers[lost].held[kBuffers]);
  for (Record& record : records) {
    if (record.ended || record.peer != lost) continue;
    if (record.scarce == kBuffers && !has_buffers) continue;
    record.replaced = true;
    ++free_of[record.scarce];
    --peers[lost].held[record.scarce];
  }
}

// Whether there are that many free buffers now.
bool Endpoint::State::add_buffers(size_t count) {
  if (count <= free_buffers.size()) return true;
  const size_t more = count - free_buffers.size();
  if (add_arena(more * buffer_bytes) != MOB_OK) return false;
  const Arena& arena = arenas.back();
  for (size_t i = 0; i < more; ++i) {
    free_buffers.push_back({arena.start + i * buffer_bytes, arena.descriptor()});
  }
  return true;
}

// A peer may hold as much as is free for others: a peer that accepts nothing gets half of all, a
// second such peer half of the rest (Choudhury, Hahne 1998). Once they have failed there is room
// for another, however many they were.
Record* Endpoint::State::take_record(Kind kind, Scarce scarce, PeerId peer, uint64_t operation) {
  size_t& held = peers[peer].held[scarce];
  if (held >= free_of[scarce]) return nullptr;
  Record* record = free_records.pop();
  if (record == nullptr) record = &records.emplace_back();
  ++held;
  --free_of[scarce];
  record->kind = kind;
  record->scarce = scarce;
  record->ended = false;
  record->replaced = false;
  record->peer = peer;
  record->operation = operation;
  record->status = MOB_OK;
  if (scarce == kBuffers) {
    record->buffer = free_buffers.back();
    free_buffers.pop_back();
  }
  return record;
}

void Endpoint::State::give_back(Record* record) {
  if (!record->replaced) {
    ++free_of[record->scarce];
    --peers[record->peer].held[record->scarce];
  }
  if (record->buffer.start != nullptr) free_buffers.push_back(std::exchange(record->buffer, {}));
  if (record->borrowed != nullptr) return_borrowed(std::exchange(record->borrowed, nullptr));
  if (record->temporary != nullptr) {
    fi_close(&record->temporary->fid);
    record->temporary = nullptr;
  }
  record->ended = true;
  free_records.push(record);
}

Posted Endpoint::State::posted(int64_t result, PeerId peer_id, const char* call) {
  Peer& peer = peers[peer_id];
  if (result == 0) {
    peer.reachability.accepted();
    return Posted::kDone;
  }
  if (result == -FI_EAGAIN) {
    if (!over_tcp) return Posted::kAgain;
    const int error = peer.reachability.refused(peer.ip, os::now_ns());
    if (error == 0) return Posted::kAgain;
    result = error;
  }
  fail_peer(peer_id, library->text_of_error(static_cast<int>(result)));
  fail(MOB_ERR_PEER, "%s: %s", call, peer.text.c_str());
  return Posted::kFailed;
}

Endpoint::Endpoint() = default;
Endpoint::~Endpoint() { close(); }

mob_status_t Endpoint::open(const Options& options, const Callbacks& callbacks) {
  if (state_ != nullptr) return fail(MOB_ERR_STATE, "this endpoint is open already");
  if (options.message_bytes == 0 || options.send_buffers == 0 || options.receive_buffers == 0 ||
      options.short_messages == 0 || options.operations == 0) {
    return fail(MOB_ERR_ARGUMENT,
                "the sizes of messages and the numbers of buffers and operations of an endpoint "
                "must not be 0");
  }
  auto state = std::make_unique<State>();
  state->options = options;
  state->callbacks = callbacks;
  if (const mob_status_t status = state->open()) return status;
  state_ = std::move(state);
  const std::vector<unsigned char> own = address();
  AddressHeader header;
  std::memcpy(&header, own.data(), sizeof header);
  state_->description.address =
      address_text(*state_->library, header.format,
                   own.data() + sizeof header + header.provider_bytes, header.address_bytes);
  return MOB_OK;
}

void Endpoint::close() {
  if (state_ == nullptr || state_->closes()) return state_.reset();
  // Reachable from a static variable, so leak checkers do not report it.
  static auto* const kept = new std::vector<std::unique_ptr<State>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(state_));
}

std::vector<unsigned char> Endpoint::address() const {
  AddressHeader header;
  const std::vector<unsigned char>& own = state_->own_address;
  const std::string& provider = state_->description.provider;
  header.name = state_->name;
  header.protection = state_->keys.own();
  header.format = state_->info->addr_format;
  const std::string host = host_name();
  header.provider_bytes = static_cast<uint8_t>(provider.size());
  header.host_bytes = static_cast<uint8_t>(host.size());
  header.address_bytes = static_cast<uint16_t>(own.size());
  std::vector<unsigned char> address(header.bytes());
  unsigned char* to = address.data();
  const auto append = [&to](const void* from, size_t count) {
    std::memcpy(to, from, count);
    to += count;
  };
  append(&header, sizeof header);
  append(provider.data(), header.provider_bytes);
  append(own.data(), own.size());
  append(host.data(), header.host_bytes);
  return address;
}

// libfabric reads as many bytes of an address as its family has, and is not given the length.
bool Endpoint::State::is_like_own(std::span<const unsigned char> address) const {
  if (address.size() != own_address.size() || address.size() < sizeof(sa_family_t)) return false;
  const uint32_t format = info->addr_format;
  if (format != FI_SOCKADDR && format != FI_SOCKADDR_IN && format != FI_SOCKADDR_IN6) return true;
  return std::memcmp(address.data(), own_address.data(), sizeof(sa_family_t)) == 0;
}

std::string Endpoint::text_of(std::span<const unsigned char> address) const {
  AddressHeader header;
  if (address.size() < sizeof header) return "unknown";
  std::memcpy(&header, address.data(), sizeof header);
  if (address.size() != header.bytes()) return "unknown";
  const unsigned char* bytes = address.data() + sizeof header + header.provider_bytes;
  const char* host = reinterpret_cast<const char*>(bytes) + header.address_bytes;
  return address_text(*state_->library, header.format, bytes, header.address_bytes) +
         (header.host_bytes != 0 ? " on " + std::string(host, header.host_bytes) : "");
}

namespace {

mob_status_t read_header(std::span<const unsigned char> address, AddressHeader* header) {
  const bool whole = address.size() >= sizeof *header;
  if (whole) std::memcpy(header, address.data(), sizeof *header);
  if (!whole || header->magic != AddressHeader::kMagic || header->address_bytes == 0 ||
      address.size() != header->bytes()) {
    return fail(MOB_ERR_ARGUMENT,
                "%zu bytes are not the address of an endpoint of this version of Möbius; all hosts "
                "of a job need the same version and byte order",
                address.size());
  }
  return MOB_OK;
}

}  // namespace

mob_status_t Endpoint::check_security(const char* who,
                                      std::span<const unsigned char> address) const {
  AddressHeader header;
  if (const mob_status_t status = read_header(address, &header)) return status;
  return state_->keys.check(header.protection, std::string(who) + ", " + text_of(address));
}

mob_status_t Endpoint::add_peer(std::span<const unsigned char> address, PeerId* peer) {
  AddressHeader header;
  if (const mob_status_t status = read_header(address, &header)) return status;
  State& state = *state_;
  const std::string provider(reinterpret_cast<const char*>(address.data()) + sizeof header,
                             header.provider_bytes);
  if (provider != state.description.provider || header.format != state.info->addr_format) {
    return fail(MOB_ERR_SETTING,
                "this host uses provider %s, a peer uses %s: set MOBIUS_PROVIDER, and "
                "MOBIUS_INTERFACE where hosts have several networks, the same on all hosts",
                state.description.provider.c_str(), provider.c_str());
  }
  const unsigned char* bytes = address.data() + sizeof header + header.provider_bytes;
  if (!state.is_like_own({bytes, header.address_bytes})) {
    return fail(MOB_ERR_ARGUMENT, "%u bytes are not an address of provider %s",
                unsigned{header.address_bytes}, provider.c_str());
  }
  const std::string where = text_of(address);
  std::unique_ptr<Channel> channel;
  if (const mob_status_t status = state.keys.make_channel(header.protection, state.name,
                                                          header.name, "peer " + where, &channel)) {
    return status;
  }
  const std::lock_guard lock(state.issue);
  Peer& added = state.peers.emplace_back();
  const int count = fi_av_insert(state.addresses.get(), bytes, 1, &added.address, 0, nullptr);
  if (count != 1) {
    state.peers.pop_back();
    return state.refused("the address of a peer", count < 0 ? count : -FI_EINVAL);
  }
  added.name = header.name;
  added.met = !state.options.asks_first;
  added.where = where;
  added.channel = std::move(channel);
  if (state.over_tcp) {
    std::memcpy(&added.ip, bytes, std::min<size_t>(header.address_bytes, sizeof added.ip));
  }
  *peer = static_cast<PeerId>(state.peers.size() - 1);
  state.peers_by_name.emplace(added.name, *peer);
  return MOB_OK;
}

std::string Endpoint::peer_name(PeerId peer) const {
  const std::lock_guard lock(state_->issue);
  const std::string where = peer < state_->peers.size() ? state_->peers[peer].where : "unknown";
  return "provider " + state_->description.provider + ", peer " + where;
}

std::string Endpoint::advice(PeerId peer) const {
  const std::lock_guard lock(state_->issue);
  return peer < state_->peers.size() ? state_->advice(state_->peers[peer]) : "";
}

int Endpoint::try_address(std::span<const unsigned char> address, int limit_ms) const {
  AddressHeader header;
  if (!state_->over_tcp || address.size() < sizeof header) return 0;
  std::memcpy(&header, address.data(), sizeof header);
  if (address.size() != header.bytes() || header.address_bytes > sizeof(sockaddr_storage)) return 0;
  sockaddr_storage to = {};
  sockaddr_storage from = {};
  std::memcpy(&to, address.data() + sizeof header + header.provider_bytes, header.address_bytes);
  std::memcpy(&from, state_->own_address.data(), std::min(state_->own_address.size(), sizeof from));
  if (to.ss_family != from.ss_family) return EAFNOSUPPORT;
  return to.ss_family == AF_INET || to.ss_family == AF_INET6 ? connect_once(from, to, limit_ms) : 0;
}

void Endpoint::fail_peer(PeerId peer, const char* reason) {
  const std::lock_guard lock(state_->issue);
  if (peer < state_->peers.size()) state_->fail_peer(peer, reason);
}

Posted Endpoint::send(PeerId peer, std::span<const Piece> pieces) {
  return state_->send(peer, pieces, false, 0);
}

mob_status_t Endpoint::make_buffer(MessageBuffer* buffer) { return state_->make_buffer(buffer); }

Posted Endpoint::send_buffer(PeerId peer, size_t bytes, MessageBuffer* buffer) {
  return state_->send_buffer(peer, bytes, buffer);
}

Posted Endpoint::send_in_place(PeerId peer, std::span<const Piece> pieces, uint64_t operation) {
  return state_->send(peer, pieces, true, operation);
}

Posted Endpoint::write(PeerId peer, const void* local, size_t bytes, uint64_t remote, uint64_t key,
                       uint64_t operation) {
  return state_->transfer(Kind::kWrite, peer, source(local), bytes, remote, key, operation);
}

Posted Endpoint::write_ahead(PeerId peer, const void* local, size_t bytes, uint64_t remote,
                             uint64_t key, uint64_t operation, uint64_t note) {
  return state_->transfer(Kind::kWriteAhead, peer, source(local), bytes, remote, key, operation,
                          note);
}

Posted Endpoint::read(PeerId peer, void* local, size_t bytes, uint64_t remote, uint64_t key,
                      uint64_t operation) {
  return state_->transfer(Kind::kRead, peer, static_cast<unsigned char*>(local), bytes, remote, key,
                          operation);
}

bool Endpoint::poll() { return state_->poll(); }

int Endpoint::descriptor() const { return state_->descriptor; }

bool Endpoint::ready_to_sleep() { return state_->ready_to_sleep(); }

size_t Endpoint::message_bytes() const { return state_->options.message_bytes; }
const Description& Endpoint::description() const { return state_->description; }

}  // namespace mobius::transport::ofi
