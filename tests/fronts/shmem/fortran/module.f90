! SPDX-License-Identifier: BSD-3-Clause
!
! The module: collective calls of active sets, and functions of later versions.

program calls
  use shmem
  use, intrinsic :: iso_c_binding
  implicit none

  integer, parameter :: quad = selected_real_kind(30)
  integer, save :: sync(shmem_sync_size), i4(16), o4(64)
  integer*8, save :: i8(16), o8(64)
  integer*2, save :: i2(3), o2(3)
  real*4, save :: r4(4), q4(4)
  real*8, save :: r8(4), q8(4)
  real(quad), save :: r16(4), q16(4)
  complex, save :: c4(4), d4(4)
  complex(kind(0d0)), save :: c8(4), d8(4)
  integer*8, save :: word
  integer, save :: work(64)
  integer :: me, n, i, provided, first, set_size
  type(c_ptr) :: place, team
  real(c_double), pointer :: heap(:)
  character(len=8) :: short

  i = shmem_init_thread(shmem_thread_multiple, provided)
  call check(provided == shmem_thread_multiple, 1)
  me = shmem_my_pe()
  n = shmem_n_pes()
  call shmem_info_get_name(short)
  call check(short == 'Moebius', 2)

  ! All PEs; then those from PE 1 on, whose pSync is not at a multiple of 8 bytes.
  do first = 0, min(1, n - 1)
    set_size = n - first
    sync = shmem_sync_value
    call shmem_barrier_all()
    if (me < first) cycle
    i4 = [(me * 100 + i, i=1, 16)]
    i8 = i4
    o4 = 0
    o8 = 0
    call shmem_broadcast4(o4, i4, 16, 0, first, 0, set_size, sync)
    if (me /= first) call check(all(o4(:16) == [(first * 100 + i, i=1, 16)]), 3)
    call shmem_broadcast64(o8, i8, 16, set_size - 1, first, 0, set_size, sync)
    if (me /= n - 1) call check(all(o8(:16) == [((n - 1) * 100 + i, i=1, 16)]), 4)
    call shmem_barrier(first, 0, set_size, sync)
    call shmem_fcollect32(o4, i4, 2, first, 0, set_size, sync)
    call check(all(o4(:2 * set_size) == [(i / 2 * 100 + mod(i, 2) + 1, i=2 * first, 2 * n - 1)]), 5)
    call shmem_collect8(o8, i8, 1, first, 0, set_size, sync)
    call check(all(o8(:set_size) == [(i * 100 + 1, i=first, n - 1)]), 6)
    call shmem_barrier(first, 0, set_size, sync)
    i4(:n) = [(me * 10 + i, i=0, n - 1)]
    i8(:n) = i4(:n)
    call shmem_alltoall32(o4, i4, 1, first, 0, set_size, sync)
    call check(all(o4(:set_size) == [(i * 10 + me - first, i=first, n - 1)]), 7)
    o8 = 0
    call shmem_alltoalls64(o8, i8, 2, 1, 1, first, 0, set_size, sync)
    call check(all(o8(:2 * set_size - 1:2) == [(i * 10 + me - first, i=first, n - 1)]), 8)

    i4 = me + 1
    i8 = 2 ** me
    i2 = int(me + 1, kind(i2))
    r4 = me + 0.5
    r8 = me
    r16 = me + 1
    r16 = r16 / 3
    c4 = cmplx(me, 1)
    c8 = cmplx(1, me)
    call shmem_int4_sum_to_all(o4, i4, 3, first, 0, set_size, work, sync)
    call check(all(o4(:3) == sum([(i + 1, i=first, n - 1)])), 9)
    call shmem_int2_sum_to_all(o2, i2, 3, first, 0, set_size, work, sync)
    call check(all(o2 == sum([(i + 1, i=first, n - 1)])), 50)
    call shmem_int8_or_to_all(o8, i8, 3, first, 0, set_size, work, sync)
    call check(all(o8(:3) == 2 ** n - 2 ** first), 10)
    call shmem_int8_xor_to_all(o8, i8, 3, first, 0, set_size, work, sync)
    call check(all(o8(:3) == 2 ** n - 2 ** first), 11)
    call shmem_int4_and_to_all(o4, i4, 1, first, 0, set_size, work, sync)
    call check(o4(1) == iall([(i + 1, i=first, n - 1)]), 12)
    call shmem_int4_prod_to_all(o4, i4, 1, first, 0, set_size, work, sync)
    call check(o4(1) == product([(i + 1, i=first, n - 1)]), 13)
    call shmem_real4_max_to_all(q4, r4, 4, first, 0, set_size, work, sync)
    call check(all(q4 == n - 0.5), 14)
    call shmem_real8_min_to_all(q8, r8, 4, first, 0, set_size, work, sync)
    call check(all(q8 == first), 15)
    call shmem_real16_sum_to_all(q16, r16, 4, first, 0, set_size, work, sync)
    call check(all(abs(3 * q16 - sum([(i + 1, i=first, n - 1)])) < 1e-28_quad), 16)
    call shmem_real16_max_to_all(q16, r16, 4, first, 0, set_size, work, sync)
    call check(all(abs(3 * q16 - n) < 1e-28_quad), 17)
    call shmem_comp4_sum_to_all(d4, c4, 4, first, 0, set_size, work, sync)
    call check(all(d4 == cmplx(sum([(i, i=first, n - 1)]), set_size)), 18)
    call shmem_comp8_prod_to_all(d8, c8, 4, first, 0, set_size, work, sync)
    if (set_size == 1) call check(all(d8 == c8), 19)
  end do
  call shmem_barrier_all()

  ! Functions of C.
  place = shmem_malloc(80_c_size_t)
  call c_f_pointer(place, heap, [10])
  heap = me
  call shmem_sync_all()
  call shmem_double_get(r8, heap, 4, mod(me + 1, n))
  call check(all(r8 == mod(me + 1, n)), 20)
  call shmem_sync_all()
  r8 = me + 10
  call shmem_putmem_signal(heap, r8, 32_c_size_t, word, 5_8, shmem_signal_set, mod(me + 1, n))
  call check(shmem_signal_wait_until(word, shmem_cmp_eq, 5_8) == 5, 21)
  call check(all(heap(:4) == mod(me + n - 1, n) + 10), 22)
  call check(shmem_team_n_pes(shmem_team_world()) == n, 23)
  i = shmem_team_split_strided(shmem_team_world(), 0, 1, n, c_null_ptr, 0_c_long, team)
  call check(i == 0 .and. shmem_team_my_pe(team) == me, 24)
  r8 = me + 1
  i = shmem_double_sum_reduce(team, q8, r8, 4_c_size_t)
  call check(all(q8 == n * (n + 1) / 2), 25)
  call shmem_team_destroy(team)
  call shmem_free(place)
  if (me == 0) print '(a)', 'fortran: right'
  call shmem_finalize()

contains

  subroutine check(is_right, number)
    logical, intent(in) :: is_right
    integer, intent(in) :: number
    if (.not. is_right) then
      print *, 'PE', shmem_my_pe(), ': check', number, 'failed'
      call shmem_global_exit(1)
    end if
  end subroutine check

end program calls
