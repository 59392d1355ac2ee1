! SPDX-License-Identifier: BSD-3-Clause
!
! Every subroutine of lapif.h, between each task and its right neighbour. Prints "fortran: right".
module handlers
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), save, target :: landed(8) = 0
  integer(c_int), save :: header_seen = 0

contains

  ! A header handler: the data goes to `landed`, and no completion handler runs.
  function take(handle, uhdr, uhdr_len, msg_len, completion, argument) result(buffer) bind(c)
    type(c_ptr), value :: handle, uhdr, uhdr_len, msg_len, completion, argument
    type(c_ptr) :: buffer
    integer(c_int), pointer :: header
    type(c_ptr), pointer :: handler
    call c_f_pointer(uhdr, header)
    call c_f_pointer(completion, handler)
    header_seen = header
    handler = c_null_ptr
    buffer = merge(c_loc(landed), c_null_ptr, c_associated(handle) .and. c_associated(uhdr_len) &
                   .and. c_associated(msg_len) .and. c_associated(argument))
  end function take
end module handlers

program calls
  use handlers
  implicit none
  include 'lapif.h'
  ! Processes have the handler at different addresses; an index names it in all of them.
  integer, parameter :: kTake = 5
  type(lapi_info_t) :: info
  type(lapi_cntr_t), save :: arrived, sent, completed
  type(lapi_addr_t) :: mine
  type(lapi_vec_t) :: near, far
  type(lapi_msg_info_t) :: news
  integer(kind=LAPI_ADDR_TYPE) :: places(0:63), counters(0:63), wide(0:63), word(0:63)
  integer(kind=LAPI_ADDR_TYPE) :: address, handler
  integer(kind=8) :: at(1), there(1), lengths(1), add64(2), old64
  integer(kind=LAPI_LONG_TYPE) :: bytes
  integer, save :: received(8), counted
  integer(kind=8), save :: counted64
  integer, save :: targets(1), states(1)
  integer :: handle, task, tasks, right, left, numbers(8), back(8), value, old, code
  character(len=LAPI_MAX_ERR_STRING) :: text

  info = lapi_info_t(0, LAST_LIB, 0, 0, 0, 0, 0_8, 0_8, 0_8, 0_8)
  call lapi_init(handle, info, code)
  call check(code, 'lapi_init')
  call lapi_qenv(handle, TASK_ID, task, code)
  call lapi_qenv(handle, NUM_TASKS, tasks, code)
  call lapi_senv(handle, TIMEOUT, 300, code)
  call check(code, 'lapi_senv')
  call lapi_qenv(handle, TIMEOUT, value, code)
  call expect(value == 300, 'lapi_senv')
  right = mod(task + 1, tasks)
  left = mod(task + tasks - 1, tasks)

  call lapi_setcntr(handle, arrived, 0, code)
  call lapi_setcntr(handle, sent, 0, code)
  call lapi_setcntr(handle, completed, 3, code)
  call lapi_getcntr(handle, completed, value, code)
  call expect(code == LAPI_SUCCESS .and. value == 3, 'lapi_getcntr')
  call lapi_waitcntr(handle, completed, 3, value, code)
  call expect(code == LAPI_SUCCESS .and. value == 0, 'lapi_waitcntr')
  call lapi_address(received, address, code)
  call expect(code == LAPI_SUCCESS .and. address == loc(received), 'lapi_address')
  mine%addr = loc(received)
  call lapi_address_init(handle, mine, places, code)
  call check(code, 'lapi_address_init')
  mine%addr = loc(arrived)
  call lapi_address_init64(handle, mine, counters, code)
  call check(code, 'lapi_address_init64')
  mine%addr = loc(counted)
  call lapi_address_init(handle, mine, word, code)
  mine%addr = loc(counted64)
  call lapi_address_init(handle, mine, wide, code)
  received = 0
  counted = 10
  counted64 = 100
  call lapi_gfence(handle, code)
  call check(code, 'lapi_gfence')

  ! put, and get the data back
  numbers = [(100 * task + value, value = 1, 8)]
  bytes = 32
  call lapi_put(handle, right, bytes, places(right), numbers, counters(right), sent, completed, code)
  call check(code, 'lapi_put')
  call lapi_waitcntr(handle, completed, 1, value, code)
  call lapi_waitcntr(handle, sent, 1, value, code)
  call lapi_waitcntr(handle, arrived, 1, value, code)
  call expect(all(received == [(100 * left + value, value = 1, 8)]), 'lapi_put')
  call lapi_get(handle, right, bytes, places(right), back, LAPI_ADDR_NULL, sent, code)
  call check(code, 'lapi_get')
  call lapi_waitcntr(handle, sent, 1, value, code)
  call expect(all(back == numbers), 'lapi_get')
  call lapi_gfence(handle, code)

  ! vectors of one piece
  numbers = -numbers
  lengths = 32
  at = loc(numbers)
  there = places(right)
  near = lapi_vec_t(LAPI_GEN_IOVECTOR, 1, loc(at), loc(lengths))
  far = lapi_vec_t(LAPI_GEN_IOVECTOR, 1, loc(there), loc(lengths))
  call lapi_putv(handle, right, far, near, counters(right), LAPI_ADDR_NULL, completed, code)
  call check(code, 'lapi_putv')
  call lapi_waitcntr(handle, completed, 1, value, code)
  call lapi_waitcntr(handle, arrived, 1, value, code)
  back = 0
  at = loc(back)
  call lapi_getv(handle, right, far, near, LAPI_ADDR_NULL, sent, code)
  call check(code, 'lapi_getv')
  call lapi_waitcntr(handle, sent, 1, value, code)
  call expect(all(back == numbers), 'lapi_putv and lapi_getv')
  call lapi_gfence(handle, code)

  ! read-modify-write: each word is that of one left neighbour
  call lapi_rmw(handle, FETCH_AND_ADD, right, word(right), 5, old, sent, code)
  call check(code, 'lapi_rmw')
  call lapi_waitcntr(handle, sent, 1, value, code)
  call expect(old == 10, 'lapi_rmw')
  add64 = [7_8, 0_8]
  call lapi_rmw64(handle, FETCH_AND_ADD, right, wide(right), add64, old64, sent, code)
  call check(code, 'lapi_rmw64')
  call lapi_waitcntr(handle, sent, 1, value, code)
  call expect(old64 == 100, 'lapi_rmw64')
  call lapi_gfence(handle, code)
  call expect(counted == 15 .and. counted64 == 107, 'lapi_rmw and lapi_rmw64')

  ! active messages
  call lapi_addr_set(handle, take, kTake, code)
  call check(code, 'lapi_addr_set')
  call lapi_addr_get(handle, handler, kTake, code)
  call expect(code == LAPI_SUCCESS .and. handler == transfer(c_funloc(take), handler), &
              'lapi_addr_get')
  targets = right
  call lapi_setcntr_wstatus(handle, completed, 1, targets, states, code)
  call check(code, 'lapi_setcntr_wstatus')
  call lapi_gfence(handle, code)
  call lapi_amsend(handle, right, %val(int(kTake, 8)), task + 1, 4, numbers, bytes, counters(right), sent, &
                   completed, code)
  call check(code, 'lapi_amsend')
  call lapi_nopoll_wait(handle, completed, 1, value, code)
  call check(code, 'lapi_nopoll_wait')
  call expect(states(1) == LAPI_MSG_RECVD, 'lapi_setcntr_wstatus')
  call lapi_waitcntr(handle, sent, 1, value, code)
  call lapi_waitcntr(handle, arrived, 1, value, code)
  call expect(header_seen == left + 1 .and. landed(2) == -(100 * left + 2), 'lapi_amsend')
  call lapi_probe(handle, code)
  call check(code, 'lapi_probe')
  call lapi_msgpoll(handle, 1, news, code)
  call check(code, 'lapi_msgpoll')
  call lapi_fence(handle, code)
  call check(code, 'lapi_fence')
  call lapi_gfence(handle, code)

  ! errors, and purged tasks
  call lapi_put(handle, tasks, bytes, places(right), numbers, LAPI_ADDR_NULL, LAPI_ADDR_NULL, &
                LAPI_ADDR_NULL, code)
  call expect(code == LAPI_ERR_TGT, 'a target that is not there')
  call lapi_msg_string(code, text, value)
  call expect(value == LAPI_SUCCESS .and. index(text, 'LAPI_ERR_TGT') > 0, 'lapi_msg_string')
  if (tasks > 1) then
    call lapi_purge_totask(handle, right, code)
    call check(code, 'lapi_purge_totask')
    call lapi_get(handle, right, bytes, places(right), back, LAPI_ADDR_NULL, sent, code)
    call expect(code == LAPI_ERR_TGT_PURGED, 'a target that was given up')
    call lapi_resume_totask(handle, right, code)
    call check(code, 'lapi_resume_totask')
  end if
  call lapi_gfence(handle, code)
  call lapi_term(handle, code)
  call check(code, 'lapi_term')
  if (task == 0) print '(a)', 'fortran: right'

contains

  subroutine check(code, call)
    integer, intent(in) :: code
    character(len=*), intent(in) :: call
    integer :: ignored
    if (code == LAPI_SUCCESS) return
    call lapi_msg_string(code, text, ignored)
    print '(3a)', call, ': ', trim(text)
    error stop 1
  end subroutine check

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(2a)', 'wrong: ', what
    error stop 1
  end subroutine expect
end program calls
