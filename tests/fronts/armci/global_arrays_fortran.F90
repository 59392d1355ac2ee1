! SPDX-License-Identifier: BSD-3-Clause
!
! As global_arrays.c, in Fortran. Debian's Global Arrays uses integers of 8 bytes.
program global_arrays_fortran
  implicit none
#include "mafdecls.fh"
#include "global.fh"
  integer, parameter :: n = 60, tasks = 500
  integer :: a, b, c, counter, me, size, i, j, failures, done
  integer(4) :: error
  double precision :: block(n, n), other(n, n), product(n, n), one
  logical :: ok

  call mpi_init(error)
  call ga_initialize()
  ok = ma_init(MT_DBL, 1000000, 1000000)
  me = ga_nodeid()
  size = ga_nnodes()
  failures = 0
  one = 1
  if (.not. ga_create(MT_DBL, n, n, 'a', 0, 0, a)) call ga_error('no a', 1)
  if (.not. ga_create(MT_DBL, n, n, 'b', 0, 0, b)) call ga_error('no b', 1)
  if (.not. ga_create(MT_DBL, n, n, 'c', 0, 0, c)) call ga_error('no c', 1)
  if (.not. ga_create(MT_INT, 1, 1, 'counter', 0, 0, counter)) call ga_error('no counter', 1)

  do j = 1, n
    do i = 1, n
      block(i, j) = mod(i * 7 + j * 3, 11)
    end do
  end do
  do j = 1 + me, n, size
    call ga_put(a, 1, n, j, j, block(1, j), n)
    call ga_put(b, 1, n, j, j, block(1, j), n)
  end do
  call ga_sync()
  call ga_get(a, 1, n, 1, n, other, n)
  if (any(other /= block)) failures = failures + 1

  call ga_zero(c)
  call ga_acc(c, 1, n, 1, n, block, n, one)
  call ga_sync()
  call ga_get(c, 1, n, 1, n, other, n)
  if (any(other /= size * block)) failures = failures + 1
  call ga_sync()

  call ga_dgemm('n', 'n', n, n, n, 1d0, a, b, 0d0, c)
  call ga_get(c, 1, n, 1, n, other, n)
  product = matmul(block, block)
  if (any(other /= product)) failures = failures + 1

  call ga_zero(counter)
  done = 0
  do while (ga_read_inc(counter, 1, 1, 1) < tasks)
    done = done + 1
  end do
  call ga_igop(1, done, 1, '+')
  if (done /= tasks) failures = failures + 1
  call ga_igop(2, failures, 1, '+')
  if (me == 0 .and. failures == 0) print '(a)', 'global arrays: right'
  call ga_terminate()
  call mpi_finalize(error)
  if (failures /= 0) stop 1
end program
