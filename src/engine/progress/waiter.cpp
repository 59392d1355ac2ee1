// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/waiter.h"

namespace mobius::engine {

mob_status_t Waiter::refuse_to_wait() {
  return base::fail(
      MOB_ERR_STATE,
      "a handler must not wait, and this call would have to; send a message and go on in "
      "the handler of the reply");
}

}  // namespace mobius::engine
