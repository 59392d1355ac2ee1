// SPDX-License-Identifier: BSD-3-Clause
#include "mutexes.h"

#include <new>

#include "armcix.h"
#include "front.h"
#include "groups.h"

struct armcix_mutex_hdl_s {
  mob_mutexes_t mutexes;
};

namespace mobius::armci {
namespace {

mob_mutexes_t all_mutexes = nullptr;  // of ARMCI_Create_mutexes()

// False if there is no memory for them.
bool create(int count, mob_team_t team, mob_mutexes_t* mutexes, const char* function) {
  check_not_negative(count, "the number of mutexes", function, mob_rank());
  const mob_status_t status = mob_mutexes_create(team, static_cast<size_t>(count), mutexes);
  if (status == MOB_ERR_MEMORY || status == MOB_ERR_PEER) return false;
  check(status, function);
  return true;
}

void lock(mob_mutexes_t mutexes, int mutex, int proc, const char* function) {
  check_not_negative(mutex, "the mutex", function, proc);
  int recovered = 0;
  check(mob_mutex_lock(mutexes, static_cast<size_t>(mutex), proc, &recovered), function, proc);
  if (recovered != 0) {
    die(function, "process %d: the owner of mutex %d died while it held it", proc, mutex);
  }
}

void unlock(mob_mutexes_t mutexes, int mutex, int proc, const char* function) {
  check_not_negative(mutex, "the mutex", function, proc);
  check(mob_mutex_unlock(mutexes, static_cast<size_t>(mutex), proc), function, proc);
}

void check_created(const char* function, int mutex, int proc) {
  if (all_mutexes == nullptr) {
    die(function, "process %d: no mutex %d; ARMCI_Create_mutexes() was not called", proc, mutex);
  }
}

mob_mutexes_t of(armcix_mutex_hdl_t mutexes, const char* function) {
  check_not_null(mutexes, "the mutexes", function, mob_rank());
  return mutexes->mutexes;
}

}  // namespace

void mutexes_close() {
  if (all_mutexes != nullptr) check(mob_mutexes_free(all_mutexes), "ARMCI_Finalize");
  all_mutexes = nullptr;
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int PARMCI_Create_mutexes(int count) {
  constexpr const char* kName = "ARMCI_Create_mutexes";
  if (all_mutexes != nullptr) {
    die(kName, "rank %d: mutexes exist already; call ARMCI_Destroy_mutexes() first", mob_rank());
  }
  return create(count, MOB_TEAM_WORLD, &all_mutexes, kName) ? 0 : 1;
}

int PARMCI_Destroy_mutexes(void) {
  constexpr const char* kName = "ARMCI_Destroy_mutexes";
  if (all_mutexes == nullptr) die(kName, "rank %d: there are no mutexes", mob_rank());
  check(mob_mutexes_free(all_mutexes), kName);
  all_mutexes = nullptr;
  return 0;
}

void PARMCI_Lock(int mutex, int proc) {
  check_created("ARMCI_Lock", mutex, proc);
  lock(all_mutexes, mutex, proc, "ARMCI_Lock");
}

void PARMCI_Unlock(int mutex, int proc) {
  check_created("ARMCI_Unlock", mutex, proc);
  unlock(all_mutexes, mutex, proc, "ARMCI_Unlock");
}

armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group* group) {
  constexpr const char* kName = "ARMCIX_Create_mutexes_hdl";
  mob_mutexes_t mutexes = nullptr;
  if (!create(count, groups().get_mine(group, kName).team, &mutexes, kName)) return nullptr;
  auto* handle = new (std::nothrow) armcix_mutex_hdl_s{mutexes};
  if (handle == nullptr) die(kName, "rank %d: no memory for a handle", mob_rank());
  return handle;
}

int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t mutexes) {
  constexpr const char* kName = "ARMCIX_Destroy_mutexes_hdl";
  check(mob_mutexes_free(of(mutexes, kName)), kName);
  delete mutexes;
  return 0;
}

void ARMCIX_Lock_hdl(armcix_mutex_hdl_t mutexes, int mutex, int proc) {
  lock(of(mutexes, "ARMCIX_Lock_hdl"), mutex, proc, "ARMCIX_Lock_hdl");
}

int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t mutexes, int mutex, int proc) {
  constexpr const char* kName = "ARMCIX_Trylock_hdl";
  check_not_negative(mutex, "the mutex", kName, proc);
  int acquired = 0;
  int recovered = 0;
  check(mob_mutex_trylock(of(mutexes, kName), static_cast<size_t>(mutex), proc, &acquired,
                          &recovered),
        kName, proc);
  if (recovered != 0) {
    die(kName, "process %d: the owner of mutex %d died while it held it", proc, mutex);
  }
  return acquired != 0 ? 0 : 1;
}

void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t mutexes, int mutex, int proc) {
  unlock(of(mutexes, "ARMCIX_Unlock_hdl"), mutex, proc, "ARMCIX_Unlock_hdl");
}

void ARMCIX_Progress(void) { check(mob_poll(), "ARMCIX_Progress"); }

ARMCI_TWIN(Create_mutexes);
ARMCI_TWIN(Destroy_mutexes);
ARMCI_TWIN(Lock);
ARMCI_TWIN(Unlock);

}  // extern "C"
