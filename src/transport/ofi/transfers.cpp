// SPDX-License-Identifier: BSD-3-Clause

// Writes to and reads of memory of peers, and registration of local memory.

#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "transport/ofi/state.h"

namespace mobius::transport::ofi {

using base::fail;

namespace {

mob_status_t no_remote_access(const char* call) {
  return fail(MOB_ERR_STATE, "%s: MOBIUS_SECURITY=full keeps remote memory access off", call);
}

}  // namespace

Posted Endpoint::State::transfer(Kind kind, PeerId peer_id, unsigned char* local, size_t bytes,
                                 uint64_t remote, uint64_t remote_key, uint64_t operation,
                                 uint64_t note) {
  const char* call = kind == Kind::kRead ? "read" : "write";
  if (kind == Kind::kWriteAhead && bytes > description.ahead_bytes) {
    fail(MOB_ERR_RANGE, "write_ahead: %zu bytes; provider %s keeps %zu in order with messages",
         bytes, description.provider.c_str(), description.ahead_bytes);
    return Posted::kFailed;
  }
  if (options.security == base::Security::kFull) {
    no_remote_access(call);
    return Posted::kFailed;
  }
  const std::lock_guard lock(issue);
  if (!check_peer(peer_id, call)) return Posted::kFailed;
  if (!peers[peer_id].met) return meet(peer_id, call);
  Record* record = take_record(kind, kTransfers, peer_id, operation);
  if (record == nullptr) return Posted::kAgain;
  if (bytes == 0) {
    done.push(record);
    something_waits.store(true, std::memory_order_release);
    return Posted::kDone;
  }
  record->local = local;
  record->remote = remote;
  record->key = remote_key;
  record->note = note;
  record->piece = std::min(bytes, largest_transfer);
  record->left = bytes - record->piece;
  if (local_registration) {
    const uint64_t access = kind == Kind::kRead ? FI_READ : FI_WRITE;
    record->borrowed = find_registration(local, bytes);
    if (record->borrowed != nullptr) {
      ++registrations[record->borrowed].operations;
    } else if (register_range(local, bytes, access, &record->temporary) != MOB_OK) {
      give_back(record);
      return Posted::kFailed;
    }
  }
  const int64_t result = post_piece(record);
  if (result != 0) give_back(record);
  return posted(result, peer_id, call);
}

fid_mr* Endpoint::State::find_registration(const unsigned char* start, size_t bytes) {
  auto range = registered_ranges.upper_bound(start);
  while (range != registered_ranges.begin()) {
    --range;
    if (start + bytes <= range->first + range->second.first) return range->second.second;
  }
  return nullptr;
}

int64_t Endpoint::State::post_piece(Record* record) {
  fid_mr* const registration = record->temporary != nullptr ? record->temporary : record->borrowed;
  void* descriptor_of_local = registration != nullptr ? fi_mr_desc(registration) : nullptr;
  const fi_addr_t address = peers[record->peer].address;
  if (record->kind == Kind::kRead) {
    return fi_read(endpoint.get(), record->local, record->piece, descriptor_of_local, address,
                   record->remote, record->key, &record->context);
  }
  const iovec local = {record->local, record->piece};
  const fi_rma_iov remote = {record->remote, record->piece, record->key};
  fi_msg_rma message = {};
  message.msg_iov = &local;
  message.desc = &descriptor_of_local;
  message.iov_count = 1;
  message.addr = address;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &record->context;
  message.data = record->note;
  return fi_writemsg(endpoint.get(), &message, FI_COMPLETION | flags_of_write(*record));
}

uint64_t Endpoint::State::flags_of_write(const Record& record) const {
  // For TCP providers too, every stronger completion needs an answer of the peer.
  if (record.kind == Kind::kWriteAhead) {
    return record.note != 0 ? FI_INJECT_COMPLETE | FI_REMOTE_CQ_DATA : FI_INJECT_COMPLETE;
  }
  const uint64_t told = tells_of_writes ? FI_REMOTE_CQ_DATA : 0;
  return told | (read_back ? FI_TRANSMIT_COMPLETE : FI_DELIVERY_COMPLETE);
}

// Follows the write, which ends when its bytes have left for good. The answer of the read passes
// the place of those bytes and cannot overtake them.
int64_t Endpoint::State::post_read_back(Record* record) {
  const Arena& arena = arenas.front();
  return fi_read(endpoint.get(), arena.start, 1, arena.descriptor(), peers[record->peer].address,
                 record->remote + record->piece - 1, record->key, &record->context);
}

int64_t Endpoint::State::post_next(Record* record) {
  return record->kind == Kind::kReadBack ? post_read_back(record) : post_piece(record);
}

mob_status_t Endpoint::State::register_range(void* start, size_t bytes, uint64_t access,
                                             fid_mr** registration) {
  const size_t key_bytes = info->domain_attr->mr_key_size;
  int error = 0;
  // Long keys rarely collide; providers with short keys may need more attempts.
  for (int attempt = 0; attempt < 64; ++attempt) {
    uint64_t wanted = 0;
    if (choose_keys && getrandom(&wanted, sizeof wanted, 0) != sizeof wanted) {
      return base::fail_errno(MOB_ERR_SYSTEM, errno, "getrandom for the key of registered memory");
    }
    if (key_bytes < sizeof wanted) wanted &= (uint64_t{1} << (8 * key_bytes)) - 1;
    fid_mr* made = nullptr;
    error = fi_mr_reg(domain.get(), start, bytes, access, 0, wanted, 0, &made, nullptr);
    if (error == -FI_ENOKEY && choose_keys) continue;
    if (error != 0) break;
    if (bind_registrations) {
      error = fi_mr_bind(made, &endpoint->fid, 0);
      if (error == 0) error = fi_mr_enable(made);
      if (error != 0) {
        fi_close(&made->fid);
        break;
      }
    }
    *registration = made;
    return MOB_OK;
  }
  return fail(MOB_ERR_MEMORY,
              "provider %s on %s cannot register %zu bytes at %p: %s (is there a limit on locked "
              "memory? see `ulimit -l`)",
              info->fabric_attr->prov_name, info->domain_attr->name, bytes, start,
              library->text_of_error(error).c_str());
}

void Endpoint::State::forget_registration(fid_mr* registration) {
  std::erase_if(registered_ranges,
                [&](const auto& range) { return range.second.second == registration; });
  const auto found = registrations.find(registration);
  found->second.is_closed = true;
  if (found->second.operations != 0) return;
  registrations.erase(found);
  fi_close(&registration->fid);
}

void Endpoint::State::return_borrowed(fid_mr* registration) {
  const auto found = registrations.find(registration);
  if (--found->second.operations != 0 || !found->second.is_closed) return;
  registrations.erase(found);
  fi_close(&registration->fid);
}

// The TCP provider changes its table of keys without the lock that it holds when it looks up a key
// for a peer that reads or writes (net of libfabric 1.17 always; tcp before 1.18.1 when it removes
// a key). A look-up then missed a key that was there, and the connection broke. So registrations
// change only while no thread polls.
std::unique_lock<std::mutex> Endpoint::State::apart_from_polling() {
  std::unique_lock lock(polling, std::defer_lock);
  if (poller.load(std::memory_order_relaxed) != std::this_thread::get_id()) lock.lock();
  return lock;
}

mob_status_t Endpoint::register_memory(void* start, size_t bytes, Registration* registration) {
  State& state = *state_;
  if (start == nullptr || bytes == 0) {
    return fail(MOB_ERR_ARGUMENT, "register_memory: no memory (%zu bytes at %p)", bytes, start);
  }
  if (state.options.security == base::Security::kFull) return no_remote_access("register_memory");
  const std::unique_lock polling = state.apart_from_polling();
  const std::lock_guard lock(state.issue);
  fid_mr* made = nullptr;
  const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE |
                          (state.local_registration ? FI_SEND | FI_RECV | FI_READ | FI_WRITE : 0);
  if (const mob_status_t status = state.register_range(start, bytes, access, &made)) return status;
  const uint64_t key = fi_mr_key(made);
  if (key == FI_KEY_NOTAVAIL) {
    fi_close(&made->fid);
    return fail(MOB_ERR_SYSTEM,
                "provider %s makes keys of more than 8 bytes, which Möbius cannot use",
                state.description.provider.c_str());
  }
  state.registrations.emplace(made, State::Uses{});
  if (state.local_registration) {
    auto& range = state.registered_ranges[static_cast<unsigned char*>(start)];
    if (range.first < bytes) range = {bytes, made};
  }
  *registration = {start, bytes, state.virtual_addresses ? reinterpret_cast<uint64_t>(start) : 0,
                   key, made};
  return MOB_OK;
}

void Endpoint::unregister(Registration& registration) {
  if (registration.handle == nullptr) return;
  const std::unique_lock polling = state_->apart_from_polling();
  const std::lock_guard lock(state_->issue);
  state_->forget_registration(static_cast<fid_mr*>(registration.handle));
  registration = {};
}

}  // namespace mobius::transport::ofi
