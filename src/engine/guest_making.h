// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What guests.cpp offers to those who make guests, guests_connect.cpp and guests_meet.cpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/collective/collective.h"
#include "engine/guests.h"
#include "job/port.h"

namespace mobius::engine {

// A tag of this process, until keep() or the end of the scope.
class ReservedTag {
 public:
  ReservedTag();
  ~ReservedTag();
  ReservedTag(const ReservedTag&) = delete;
  ReservedTag& operator=(const ReservedTag&) = delete;

  explicit operator bool() const { return tag_ <= kMostGuests; }
  size_t get() const { return tag_; }
  void keep() { kept_ = true; }
  static void give_back(size_t tag);

 private:
  size_t tag_ = 1;
  bool kept_ = false;
};

// For a registry tag: those of the objects that a thread makes meanwhile.
class TagScope {
 public:
  explicit TagScope(uint64_t tag) { registry_tag = tag; }
  ~TagScope() { registry_tag = 0; }
  TagScope(const TagScope&) = delete;
  TagScope& operator=(const TagScope&) = delete;
};

mob_status_t too_many_guests(const char* call);

// How a member of the team waits for processes of another job.
job::PortWait wait_for_others(Engine& home, const Team& team, uint64_t seconds);

// Gives what the root has found out, or why it has not (`status`), to all members of the team. A
// root that failed keeps its error's text.
template <typename Told>
mob_status_t hear_root(const char* call, Team& team, mob_rank_t root, Told* told) {
  const mob_status_t own = told->status;
  const std::string text = own != MOB_OK ? mob_last_error() : "";
  if (const mob_status_t status = broadcast(team, root, told, sizeof *told)) return status;
  if (told->status == MOB_OK) return MOB_OK;
  if (team.rank() == root) return base::fail(own, "%s", text.c_str());
  return base::fail(told->status, "%s: it failed at rank %d, the root", call,
                    team.map().world_rank(root));
}

// Exposes all memory that the program has exposed so far to the processes of the guest's job, too.
mob_status_t expose_all_to(Guest& guest);

// From now on calls find the guest, whose engine has joined.
void enlist(Engine& home, ReservedTag& tag, std::unique_ptr<Guest> guest);

// The root has found that the port is to be reached by TCP. Collective over the team.
mob_status_t meet_at_port(const char* call, Engine& home, Team& team, mob_rank_t root,
                          const job::PortText& port, uint64_t seconds, ReservedTag& tag,
                          uint64_t* handle);

}  // namespace mobius::engine
