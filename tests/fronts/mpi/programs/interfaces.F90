! SPDX-License-Identifier: BSD-3-Clause
! Windows from Fortran, by the interface that is defined: MPIF_H, USE_MPI or USE_MPI_F08.
! "windows of N processes are right".
program interfaces
#if defined(USE_MPI_F08)
  use mpi_f08
  implicit none
  type(MPI_Win) :: window
#else
#if defined(USE_MPI)
  use mpi
#endif
  implicit none
#if defined(MPIF_H)
  include 'mpif.h'
#endif
  integer :: window
#endif
  integer :: rank, processes, error, i
  integer(kind=MPI_ADDRESS_KIND) :: bytes, place, base
  logical :: there
  integer, target :: own(100), out(100)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, processes, error)
  own = -1
  do i = 1, 100
    out(i) = 1000 * rank + i
  end do
  bytes = 400
  call MPI_Win_create(own, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
  call MPI_Win_get_attr(window, MPI_WIN_SIZE, base, there, error)
  if (.not. there .or. base /= 400) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  call MPI_Win_fence(0, window, error)
  place = 0
  call MPI_Put(out, 100, MPI_INTEGER, mod(rank + 1, processes), place, 100, MPI_INTEGER, window, error)
  call MPI_Win_fence(0, window, error)
  if (own(100) /= 1000 * mod(rank + processes - 1, processes) + 100) call MPI_Abort(MPI_COMM_WORLD, 4, error)
  call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window, error)
  out = 0
  call MPI_Get(out, 100, MPI_INTEGER, rank, place, 100, MPI_INTEGER, window, error)
  call MPI_Win_unlock(rank, window, error)
  if (any(out /= own)) call MPI_Abort(MPI_COMM_WORLD, 5, error)
  call MPI_Win_free(window, error)
  if (rank == 0) print '(A,I0,A)', 'windows of ', processes, ' processes are right'
  call MPI_Finalize(error)
end program
