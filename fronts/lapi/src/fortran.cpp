// SPDX-License-Identifier: BSD-3-Clause

// The Fortran bindings (lapif.h): every argument is passed by reference, the return code comes
// last. Addresses of other tasks are integers of 8 bytes. LAPI_ADDR_NULL stands for a missing
// argument of any type.

#include <lapi.h>

#include <cstring>

extern "C" {

// The common block that lapif.h declares; its address is LAPI_ADDR_NULL.
int64_t lapi_null_ = 0;

}  // extern "C"

namespace {

template <typename T>
T* present(T* argument) {
  return static_cast<const void*>(argument) == &lapi_null_ ? nullptr : argument;
}

void* address(const int64_t* value) {
  return present(value) != nullptr ? reinterpret_cast<void*>(*value) : nullptr;
}
lapi_cntr_t* counter_at(const int64_t* value) { return static_cast<lapi_cntr_t*>(address(value)); }

using Handle = const int*;
using Task = const int*;

lapi_handle_t handle_of(Handle hndl) { return static_cast<lapi_handle_t>(*hndl); }
unsigned task_of(Task task) { return static_cast<unsigned>(*task); }
unsigned long length_of(const int64_t* length) { return static_cast<unsigned long>(*length); }

}  // namespace

// Pads with blanks, as Fortran's strings are.
#define LAPI_FORTRAN(name, NAME, parameters, arguments)                            \
  extern "C" void plapi_##name##_ parameters;                                      \
  extern "C" void lapi_##name##_ parameters;                                       \
  extern "C" void plapi_##name##_ parameters { *ierror = PLAPI_##NAME arguments; } \
  extern "C" void lapi_##name##_ parameters { *ierror = LAPI_##NAME arguments; }

LAPI_FORTRAN(term, Term, (Handle hndl, int* ierror), (handle_of(hndl)))
LAPI_FORTRAN(qenv, Qenv, (Handle hndl, const int* query, int* ret_val, int* ierror),
             (handle_of(hndl), static_cast<lapi_query_t>(*query), present(ret_val)))
LAPI_FORTRAN(senv, Senv, (Handle hndl, const int* query, const int* set_val, int* ierror),
             (handle_of(hndl), static_cast<lapi_query_t>(*query), *set_val))
LAPI_FORTRAN(probe, Probe, (Handle hndl, int* ierror), (handle_of(hndl)))
LAPI_FORTRAN(msgpoll, Msgpoll, (Handle hndl, const int* cnt, lapi_msg_info_t* info, int* ierror),
             (handle_of(hndl), static_cast<unsigned>(*cnt), present(info)))
LAPI_FORTRAN(util, Util, (Handle hndl, lapi_util_t* util_cmd, int* ierror),
             (handle_of(hndl), present(util_cmd)))
LAPI_FORTRAN(put, Put,
             (Handle hndl, Task tgt, const int64_t* len, const int64_t* tgt_addr, void* org_addr,
              const int64_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr, int* ierror),
             (handle_of(hndl), task_of(tgt), length_of(len), address(tgt_addr), present(org_addr),
              counter_at(tgt_cntr), present(org_cntr), present(cmpl_cntr)))
LAPI_FORTRAN(get, Get,
             (Handle hndl, Task tgt, const int64_t* len, const int64_t* tgt_addr, void* org_addr,
              const int64_t* tgt_cntr, lapi_cntr_t* org_cntr, int* ierror),
             (handle_of(hndl), task_of(tgt), length_of(len), address(tgt_addr), present(org_addr),
              counter_at(tgt_cntr), present(org_cntr)))
LAPI_FORTRAN(putv, Putv,
             (Handle hndl, Task tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
              const int64_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr, int* ierror),
             (handle_of(hndl), task_of(tgt), present(tgt_vec), present(org_vec),
              counter_at(tgt_cntr), present(org_cntr), present(cmpl_cntr)))
LAPI_FORTRAN(getv, Getv,
             (Handle hndl, Task tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
              const int64_t* tgt_cntr, lapi_cntr_t* org_cntr, int* ierror),
             (handle_of(hndl), task_of(tgt), present(tgt_vec), present(org_vec),
              counter_at(tgt_cntr), present(org_cntr)))
LAPI_FORTRAN(rmw, Rmw,
             (Handle hndl, const int* op, Task tgt, const int64_t* tgt_var, int* in_val,
              int* prev_tgt_val, lapi_cntr_t* org_cntr, int* ierror),
             (handle_of(hndl), static_cast<RMW_ops_t>(*op), task_of(tgt),
              static_cast<int*>(address(tgt_var)), present(in_val), present(prev_tgt_val),
              present(org_cntr)))
LAPI_FORTRAN(rmw64, Rmw64,
             (Handle hndl, const int* op, Task tgt, const int64_t* tgt_var, long long* in_val,
              long long* prev_tgt_val, lapi_cntr_t* org_cntr, int* ierror),
             (handle_of(hndl), static_cast<RMW_ops_t>(*op), task_of(tgt),
              static_cast<long long*>(address(tgt_var)), present(in_val), present(prev_tgt_val),
              present(org_cntr)))
LAPI_FORTRAN(amsend, Amsend,
             (Handle hndl, Task tgt, void* hdr_hdl, void* uhdr, const int* uhdr_len, void* udata,
              const int64_t* udata_len, const int64_t* tgt_cntr, lapi_cntr_t* org_cntr,
              lapi_cntr_t* cmpl_cntr, int* ierror),
             (handle_of(hndl), task_of(tgt), hdr_hdl, present(uhdr),
              static_cast<unsigned>(*uhdr_len), present(udata), length_of(udata_len),
              counter_at(tgt_cntr), present(org_cntr), present(cmpl_cntr)))
LAPI_FORTRAN(amsendv, Amsendv,
             (Handle hndl, Task tgt, void* hdr_hdl, void* uhdr, const int* uhdr_len,
              lapi_vec_t* org_vec, const int64_t* tgt_cntr, lapi_cntr_t* org_cntr,
              lapi_cntr_t* cmpl_cntr, int* ierror),
             (handle_of(hndl), task_of(tgt), hdr_hdl, present(uhdr),
              static_cast<unsigned>(*uhdr_len), present(org_vec), counter_at(tgt_cntr),
              present(org_cntr), present(cmpl_cntr)))
LAPI_FORTRAN(xfer, Xfer, (Handle hndl, lapi_xfer_t* xfer_cmd, int* ierror),
             (handle_of(hndl), present(xfer_cmd)))
LAPI_FORTRAN(setcntr, Setcntr, (Handle hndl, lapi_cntr_t* cntr, const int* val, int* ierror),
             (handle_of(hndl), present(cntr), *val))
LAPI_FORTRAN(getcntr, Getcntr, (Handle hndl, lapi_cntr_t* cntr, int* val, int* ierror),
             (handle_of(hndl), present(cntr), present(val)))
LAPI_FORTRAN(waitcntr, Waitcntr,
             (Handle hndl, lapi_cntr_t* cntr, const int* val, int* cur_cntr_val, int* ierror),
             (handle_of(hndl), present(cntr), *val, present(cur_cntr_val)))
LAPI_FORTRAN(setcntr_wstatus, Setcntr_wstatus,
             (Handle hndl, lapi_cntr_t* cntr, const int* num_dest, int* dest_list, int* dest_status,
              int* ierror),
             (handle_of(hndl), present(cntr), *num_dest,
              reinterpret_cast<unsigned*>(present(dest_list)), present(dest_status)))
LAPI_FORTRAN(nopoll_wait, Nopoll_wait,
             (Handle hndl, lapi_cntr_t* cntr, const int* val, int* cur_cntr_val, int* ierror),
             (handle_of(hndl), present(cntr), *val, present(cur_cntr_val)))
LAPI_FORTRAN(fence, Fence, (Handle hndl, int* ierror), (handle_of(hndl)))
LAPI_FORTRAN(gfence, Gfence, (Handle hndl, int* ierror), (handle_of(hndl)))
LAPI_FORTRAN(address, Address, (void* my_addr, unsigned long* ret_addr, int* ierror),
             (present(my_addr), present(ret_addr)))
LAPI_FORTRAN(address_init, Address_init,
             (Handle hndl, const int64_t* my_addr, int64_t* add_tab, int* ierror),
             (handle_of(hndl), address(my_addr), reinterpret_cast<void**>(present(add_tab))))
LAPI_FORTRAN(address_init64, Address_init64,
             (Handle hndl, const int64_t* my_addr, int64_t* add_tab, int* ierror),
             (handle_of(hndl), reinterpret_cast<lapi_long_t>(address(my_addr)),
              reinterpret_cast<lapi_long_t*>(present(add_tab))))
LAPI_FORTRAN(addr_set, Addr_set, (Handle hndl, void* addr, const int* addr_hndl, int* ierror),
             (handle_of(hndl), present(addr), *addr_hndl))
LAPI_FORTRAN(addr_get, Addr_get, (Handle hndl, void** addr, const int* addr_hndl, int* ierror),
             (handle_of(hndl), present(addr), *addr_hndl))
LAPI_FORTRAN(purge_totask, Purge_totask, (Handle hndl, Task dest, int* ierror),
             (handle_of(hndl), task_of(dest)))
LAPI_FORTRAN(resume_totask, Resume_totask, (Handle hndl, Task dest, int* ierror),
             (handle_of(hndl), task_of(dest)))

namespace {

int init(int* hndl, lapi_info_t* info) {
  lapi_handle_t handle = 0;
  const int code = LAPI_Init(present(hndl) != nullptr ? &handle : nullptr, present(info));
  if (code == LAPI_SUCCESS) *hndl = static_cast<int>(handle);
  return code;
}

// Fortran's strings are padded with blanks.
int message(int code, char* buffer) {
  const int result = LAPI_Msg_string(code, present(buffer));
  if (present(buffer) != nullptr) {
    const size_t length = std::strlen(buffer);
    std::memset(buffer + length, ' ', LAPI_MAX_ERR_STRING - length);
  }
  return result;
}

}  // namespace

extern "C" {
void lapi_init_(int* hndl, lapi_info_t* info, int* ierror);
void plapi_init_(int* hndl, lapi_info_t* info, int* ierror);
void lapi_msg_string_(const int* code, char* buffer, int* ierror, size_t length);
void plapi_msg_string_(const int* code, char* buffer, int* ierror, size_t length);

void lapi_init_(int* hndl, lapi_info_t* info, int* ierror) { *ierror = init(hndl, info); }
void plapi_init_(int* hndl, lapi_info_t* info, int* ierror) { *ierror = init(hndl, info); }
void lapi_msg_string_(const int* code, char* buffer, int* ierror, size_t) {
  *ierror = message(*code, buffer);
}
void plapi_msg_string_(const int* code, char* buffer, int* ierror, size_t) {
  *ierror = message(*code, buffer);
}
}
