! SPDX-License-Identifier: BSD-3-Clause
!
! Each PE puts its number into its right neighbour's memory and raises a flag there; the neighbour waits
! for the flag. Then all add up what they got.
!
!   oshfort ring.f90 -o ring && oshrun -n 4 ./ring

program ring
  use shmem
  implicit none

  ! Saved variables are symmetric: every PE has them, and others can reach them.
  integer, save :: neighbour = -1, total = 0, work(shmem_reduce_min_wrkdata_size)
  integer*8, save :: flag = 0
  integer, save :: sync(shmem_sync_size) = shmem_sync_value
  integer :: me, n, right

  call shmem_init()
  me = shmem_my_pe()
  n = shmem_n_pes()
  right = mod(me + 1, n)

  call shmem_integer_put(neighbour, me, 1, right)
  call shmem_fence()
  call shmem_int8_set(flag, 1_8, right)
  call shmem_int8_wait_until(flag, shmem_cmp_eq, 1_8)

  call shmem_int4_sum_to_all(total, neighbour, 1, 0, 0, n, work, sync)
  if (neighbour /= mod(me + n - 1, n) .or. total /= n * (n - 1) / 2) then
    print '(a, i0, a, i0, a, i0)', 'PE ', me, ': got ', neighbour, ', total ', total
    call shmem_global_exit(1)
  end if
  if (me == 0) print '(a)', 'ring: right'
  call shmem_finalize()
end program ring
