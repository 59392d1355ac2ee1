! SPDX-License-Identifier: BSD-3-Clause
! Windows from Fortran: mpif.h's calls (use mpi), attributes among them.
program fortran_windows
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, size, ierr, win, right, left, i
  integer(kind=MPI_ADDRESS_KIND) :: bytes, value, address, nowhere
  logical :: flag
  integer, parameter :: words = 100
  integer :: values(words)
  integer, volatile :: mine(words)  ! other processes change it
  type(c_ptr) :: base
  double precision, pointer :: reals(:)
  double precision :: one

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)
  nowhere = 0

  mine = 0
  values = [(1000 * rank + i, i = 1, words)]
  bytes = 4 * words
  call MPI_Win_create(mine, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call check(ierr == MPI_SUCCESS, 'MPI_Win_create')
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call check(flag .and. value == bytes, 'MPI_WIN_SIZE')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
  call MPI_Get_address(mine, address, ierr)
  call check(flag .and. value == address, 'MPI_WIN_BASE')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
  call MPI_Win_get_attr(win, MPI_WIN_MODEL, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_UNIFIED, 'MPI_WIN_MODEL')
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(values, words, MPI_INTEGER, right, nowhere, words, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  do i = 1, words
    call check(mine(i) == 1000 * left + i, 'MPI_Put')
  end do
  call MPI_Win_free(win, ierr)

  bytes = 8 * words
  call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
  call c_f_pointer(base, reals, [words])
  reals = 0
  one = 1
  call MPI_Win_fence(0, win, ierr)
  call MPI_Accumulate(one, 1, MPI_DOUBLE_PRECISION, 0, nowhere, 1, MPI_DOUBLE_PRECISION, MPI_SUM, &
                      win, ierr)
  call MPI_Win_fence(0, win, ierr)
  if (rank == 0) call check(reals(1) == size, 'MPI_Accumulate')
  call MPI_Win_free(win, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print '(a)', 'fortran_windows passed'

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    integer :: error
    if (holds) return
    print '(a,i0,2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine

end program
