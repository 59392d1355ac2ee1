! SPDX-License-Identifier: BSD-3-Clause
!
! Each task puts a number into its right neighbour, which waits for its counter.
!
!   moblapifort ring.f90 -o ring && mobius run -n 4 ring
program ring
  implicit none
  include 'lapif.h'
  type(lapi_info_t) :: info
  type(lapi_cntr_t), save :: arrived
  type(lapi_addr_t) :: mine
  integer(kind=LAPI_ADDR_TYPE) :: places(0:63), counters(0:63)
  integer(kind=LAPI_LONG_TYPE) :: bytes
  integer, save :: received
  integer :: handle, task, tasks, right, sent, left, code

  info = lapi_info_t(0, 0, 0, 0, 0, 0, 0_8, 0_8, 0_8, 0_8)
  call lapi_init(handle, info, code)
  call check(code, 'lapi_init')
  call lapi_qenv(handle, TASK_ID, task, code)
  call lapi_qenv(handle, NUM_TASKS, tasks, code)
  call lapi_setcntr(handle, arrived, 0, code)
  mine%addr = loc(received)
  call lapi_address_init(handle, mine, places, code)
  call check(code, 'lapi_address_init')
  mine%addr = loc(arrived)
  call lapi_address_init(handle, mine, counters, code)
  right = mod(task + 1, tasks)
  sent = 100 + task
  bytes = 4
  call lapi_put(handle, right, bytes, places(right), sent, counters(right), LAPI_ADDR_NULL, &
                LAPI_ADDR_NULL, code)
  call check(code, 'lapi_put')
  call lapi_waitcntr(handle, arrived, 1, left, code)
  call check(code, 'lapi_waitcntr')
  if (received /= 100 + mod(task + tasks - 1, tasks) .or. left /= 0) error stop 'wrong number'
  call lapi_gfence(handle, code)
  call lapi_term(handle, code)
  call check(code, 'lapi_term')
  if (task == 0) print '(a)', 'ring: right'

contains

  subroutine check(code, call)
    integer, intent(in) :: code
    character(len=*), intent(in) :: call
    character(len=LAPI_MAX_ERR_STRING) :: text
    integer :: ignored
    if (code == LAPI_SUCCESS) return
    call lapi_msg_string(code, text, ignored)
    print '(3a)', call, ': ', trim(text)
    error stop 1
  end subroutine check
end program ring
