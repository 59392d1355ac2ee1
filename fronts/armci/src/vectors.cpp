// SPDX-License-Identifier: BSD-3-Clause

// Segments at listed addresses.

#include "transfers.h"

namespace mobius::armci {
namespace {

void carry(mob_kind_t kind, const Combination& combination, const armci_giov_t* iov, int length,
           int proc, const Ending& ending, const char* function) {
  check_not_negative(length, "the number of descriptors", function, proc);
  if (length > 0) check_not_null(iov, "the list of descriptors", function, proc);
  for (int i = 0; i < length; ++i) {
    check_not_negative(iov[i].bytes, "the number of bytes of a descriptor", function, proc);
    check_not_negative(iov[i].ptr_array_len, "the number of segments of a descriptor", function,
                       proc);
  }
  const bool gets = kind == MOB_GET;
  for (int i = 0; i < length; ++i) {
    mob_transfer_t transfer{};
    transfer.kind = kind;
    transfer.shape = MOB_PIECES;
    transfer.rank = proc;
    transfer.remotes = gets ? iov[i].src_ptr_array : iov[i].dst_ptr_array;
    transfer.locals = gets ? iov[i].dst_ptr_array : iov[i].src_ptr_array;
    transfer.count = static_cast<size_t>(iov[i].ptr_array_len);
    transfer.bytes = static_cast<size_t>(iov[i].bytes);
    if (kind == MOB_ACCUMULATE) set_combination(&transfer, combination, function);
    issue(transfer, ending, function);
  }
}

}  // namespace
}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int PARMCI_PutV(armci_giov_t* iov, int length, int proc) {
  carry(MOB_PUT, {}, iov, length, proc, Ending::blocking(), "ARMCI_PutV");
  return 0;
}

int PARMCI_GetV(armci_giov_t* iov, int length, int proc) {
  carry(MOB_GET, {}, iov, length, proc, Ending::blocking(), "ARMCI_GetV");
  return 0;
}

int PARMCI_AccV(int datatype, void* scale, armci_giov_t* iov, int length, int proc) {
  carry(MOB_ACCUMULATE, {datatype, scale}, iov, length, proc, Ending::blocking(), "ARMCI_AccV");
  return 0;
}

int PARMCI_NbPutV(armci_giov_t* iov, int length, int proc, armci_hdl_t* handle) {
  carry(MOB_PUT, {}, iov, length, proc, Ending::nonblocking(handle), "ARMCI_NbPutV");
  return 0;
}

int PARMCI_NbGetV(armci_giov_t* iov, int length, int proc, armci_hdl_t* handle) {
  carry(MOB_GET, {}, iov, length, proc, Ending::nonblocking(handle), "ARMCI_NbGetV");
  return 0;
}

int PARMCI_NbAccV(int datatype, void* scale, armci_giov_t* iov, int length, int proc,
                  armci_hdl_t* handle) {
  carry(MOB_ACCUMULATE, {datatype, scale}, iov, length, proc, Ending::nonblocking(handle),
        "ARMCI_NbAccV");
  return 0;
}

ARMCI_TWIN(PutV);
ARMCI_TWIN(GetV);
ARMCI_TWIN(AccV);
ARMCI_TWIN(NbPutV);
ARMCI_TWIN(NbGetV);
ARMCI_TWIN(NbAccV);

}  // extern "C"
