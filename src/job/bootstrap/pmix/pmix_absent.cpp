// SPDX-License-Identifier: BSD-3-Clause
//
// In place of pmix.cpp in builds without network.

#include "base/status.h"
#include "job/bootstrap/pmix/pmix.h"

namespace mobius::job::pmix {

namespace {

mob_status_t say_why() {
  return base::fail(MOB_ERR_SYSTEM,
                    "mob_init: a PMIx launcher started this process, and this libmobius was built "
                    "without PMIx (MOBIUS_NETWORK=OFF); start the job with `mobius run`, or each "
                    "process as a job of one with MOBIUS_LAUNCHER=none");
}

}  // namespace

bool is_usable() { return say_why() == MOB_OK; }

mob_status_t connect(unsigned /*limit_s*/, bool /*survive*/, bool /*others_left*/,
                     Whereabouts* /*whereabouts*/, std::unique_ptr<Directory>* /*directory*/) {
  return say_why();
}

void abort(int /*exit_code*/, const char* /*reason*/) {}

}  // namespace mobius::job::pmix
