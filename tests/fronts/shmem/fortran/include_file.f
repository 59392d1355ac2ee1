! SPDX-License-Identifier: BSD-3-Clause
!
! The Fortran bindings as programs of the nineties use them: fixed source form, mpp/shmem.fh, common
! blocks, Cray pointers, functions that the program declares.

      program calls
      implicit none
      include 'mpp/shmem.fh'
      integer my_pe, num_pes, shmem_my_pe, shmem_n_pes
      integer shmem_test_lock, shmem_swap
      integer*4 shmem_int4_cswap, shmem_int4_fadd, shmem_int4_finc
      integer*4 shmem_int4_swap, shmem_int4_fetch
      integer*8 shmem_int8_cswap, shmem_int8_fadd, shmem_int8_finc
      integer*8 shmem_int8_swap, shmem_int8_fetch
      real*4 shmem_real4_swap, shmem_real4_fetch
      real*8 shmem_real8_swap, shmem_real8_fetch
      integer, parameter :: most = 64
      integer me, n, left, right, i, code, major, minor
      character*40 name
      integer psync(shmem_sync_size)
      integer is(most), ir(most), lock, counter
      integer*4 i4, n4
      integer*8 i8, n8
      real*4 r4
      real*8 r8, ds(most), dr(most)
      complex cs(most), cr(most)
      logical ls(most), lr(most)
      character*8 ts, tr
      common /symmetric/ i8, n8, r8, ds, dr, cs, cr, psync, is, ir,
     &  lock, counter, i4, n4, r4, ls, lr, ts, tr
      integer block(*), theirs(*)
      pointer (address, block)
      pointer (remote, theirs)
      integer*8 before

      call start_pes(0)
      me = my_pe()
      n = num_pes()
      call check(me .eq. shmem_my_pe() .and. n .eq. shmem_n_pes(), 1)
      right = mod(me + 1, n)
      left = mod(me + n - 1, n)
      call shmem_info_get_version(major, minor)
      call check(major .eq. shmem_major_version, 2)
      call check(minor .eq. shmem_minor_version, 3)
      name = 'x'
      call shmem_info_get_name(name)
      call check(name .eq. shmem_vendor_string, 4)
      call check(shmem_pe_accessible(right), 5)
      call check(.not. shmem_pe_accessible(n), 6)
      call check(shmem_addr_accessible(ir, right), 7)
      call check(.not. shmem_addr_accessible(right, right), 8)

! Puts and gets of each type, plain, without waiting and at strides.
      do i = 1, most
        is(i) = me * 1000 + i
        ds(i) = me + i / 100d0
        cs(i) = cmplx(me, i)
        ls(i) = mod(i + me, 3) .eq. 0
      end do
      ts = 'PE ' // char(ichar('0') + mod(me, 10)) // ' put'
      call shmem_barrier_all
      call shmem_integer_put(ir, is, 8, right)
      call shmem_put4(ir(9), is(9), 8, right)
      call shmem_put32(ir(17), is(17), 8, right)
      call shmem_putmem(ir(25), is(25), 32, right)
      call shmem_integer_put_nbi(ir(33), is(33), 8, right)
      call shmem_real_put(ir(41), is(41), 8, right)
      call shmem_integer_iput(ir(49), is(49), 2, 2, 4, right)
      call shmem_iput4(ir(50), is(50), 2, 2, 4, right)
      call shmem_put64(ir(57), is(57), 2, right)
      call shmem_put128(ir(61), is(61), 1, right)
      call shmem_double_put(dr, ds, 16, right)
      call shmem_put8(dr(17), ds(17), 16, right)
      call shmem_double_iput(dr(33), ds(33), 2, 2, 8, right)
      call shmem_iput8(dr(34), ds(34), 2, 2, 8, right)
      call shmem_put(dr(49), ds(49), 16, right)
      call shmem_complex_put(cr, cs, 32, right)
      call shmem_complex_iput(cr(33), cs(33), 1, 1, 32, right)
      call shmem_logical_put(lr, ls, most, right)
      call shmem_character_put(tr, ts, 8, right)
      call shmem_fence
      call shmem_quiet
      call shmem_barrier_all
      do i = 1, most
        call check(ir(i) .eq. left * 1000 + i, 100 + i)
        call check(dr(i) .eq. left + i / 100d0, 200 + i)
        call check(cr(i) .eq. cmplx(left, i), 300 + i)
        call check(lr(i) .eqv. mod(i + left, 3) .eq. 0, 400 + i)
      end do
      call check(tr .eq. 'PE ' // char(ichar('0') + mod(left, 10))
     &  // ' put', 9)
      ir = 0
      dr = 0
      tr = ' '
      call shmem_integer_get(ir, is, 8, right)
      call shmem_get32(ir(9), is(9), 24, right)
      call shmem_iget32(ir(33), is(33), 1, 1, 16, right)
      call shmem_getmem_nbi(ir(49), is(49), 64, right)
      call shmem_get8(dr, ds, 32, right)
      call shmem_get64_nbi(dr(33), ds(33), 16, right)
      call shmem_double_iget(dr(49), ds(49), 1, 1, 16, right)
      call shmem_character_get(tr, ts, 8, right)
      call shmem_quiet
      do i = 1, most
        call check(ir(i) .eq. right * 1000 + i, 500 + i)
        call check(dr(i) .eq. right + i / 100d0, 600 + i)
      end do
      call check(tr .eq. 'PE ' // char(ichar('0') + mod(right, 10))
     &  // ' put', 10)

! Atomic operations: each PE changes the words of its right neighbour alone.
      i4 = 10
      i8 = 20
      r4 = 1.5
      r8 = 2.5
      call shmem_barrier_all
      call check(shmem_int4_fadd(i4, 5, right) .eq. 10, 11)
      call check(shmem_int4_finc(i4, right) .eq. 15, 12)
      call shmem_int4_add(i4, 4, right)
      call shmem_int4_inc(i4, right)
      call check(shmem_int4_fetch(i4, right) .eq. 21, 13)
      call check(shmem_int4_cswap(i4, 21, 30, right) .eq. 21, 14)
      call check(shmem_int4_swap(i4, 31, right) .eq. 30, 15)
      call check(shmem_swap(i4, 32, right) .eq. 31, 16)
      call shmem_int4_set(i4, 33, right)
      call check(shmem_int4_fetch(i4, right) .eq. 33, 17)
      call check(shmem_int8_fadd(i8, 5_8, right) .eq. 20, 18)
      call check(shmem_int8_finc(i8, right) .eq. 25, 19)
      call shmem_int8_add(i8, 4_8, right)
      call shmem_int8_inc(i8, right)
      call check(shmem_int8_cswap(i8, 31_8, 2_8**40, right) .eq. 31, 20)
      call check(shmem_int8_swap(i8, 7_8, right) .eq. 2_8**40, 21)
      call shmem_int8_set(i8, 8_8, right)
      call check(shmem_int8_fetch(i8, right) .eq. 8, 22)
      call check(shmem_real4_swap(r4, 3.5, right) .eq. 1.5, 23)
      call shmem_real4_set(r4, 4.5, right)
      call check(shmem_real4_fetch(r4, right) .eq. 4.5, 24)
      call check(shmem_real8_swap(r8, 3.5d0, right) .eq. 2.5d0, 25)
      call shmem_real8_set(r8, 4.5d0, right)
      call check(shmem_real8_fetch(r8, right) .eq. 4.5d0, 26)

! Waits: a token goes round.
      n4 = 0
      n8 = 0
      call shmem_barrier_all
      if (me .ne. 0) call shmem_int4_wait_until(n4, shmem_cmp_ge, me)
      call shmem_int4_set(n4, me + 1, right)
      if (me .ne. 0) call shmem_int8_wait(n8, 0_8)
      call shmem_int8_set(n8, int(me + 1, 8), right)
      if (me .eq. 0) then
        call shmem_wait_until(n4, shmem_cmp_eq, n)
        call shmem_int8_wait_until(n8, shmem_cmp_gt, int(n - 1, 8))
      end if
      call shmem_wait(n4, 0)
      call shmem_int4_wait(n4, 0)

! A lock: additions that are not atomic are complete all the same.
      lock = 0
      counter = 0
      call shmem_barrier_all
      do i = 1, 50
        if (mod(i, 2) .eq. 0) then
          call shmem_set_lock(lock)
        else
          do while (shmem_test_lock(lock) .ne. 0)
          end do
        end if
        call shmem_integer_get(code, counter, 1, 0)
        call shmem_integer_put(counter, code + 1, 1, 0)
        call shmem_clear_lock(lock)
      end do
      call shmem_barrier_all
      if (me .eq. 0) call check(counter .eq. 50 * n, 27)

! The heap.
      call shpalloc(address, 1000, code, 1)
      call check(code .eq. 0, 28)
      do i = 1, 1000
        block(i) = me + i
      end do
      call shmem_barrier_all
      call shmem_integer_get(ir, block(901), 50, right)
      call check(ir(50) .eq. right + 950, 29)
      remote = shmem_ptr(block, me)
      call check(theirs(7) .eq. me + 7, 30)
      call shmem_barrier_all
      before = address
      call shpclmove(address, 500000, code, 0)
      call check(code .eq. merge(0, 1, before .eq. address), 31)
      call check(block(1000) .eq. me + 1000, 32)
      call shpdeallc(address, code, 1)
      call check(code .eq. 0, 33)
      call shpalloc(address, 0, code, 0)
      call check(code .eq. -1, 34)
      call shpalloc(address, 8, code, 0)
      address = address + 8
      call shpdeallc(address, code, 0)
      call check(code .eq. -5, 35)
      address = loc(ir)
      call shpdeallc(address, code, 0)
      call check(code .eq. -3, 36)
      call shpclmove(address, 10, code, 0)
      call check(code .eq. -3, 37)
      call shmem_barrier_all
      if (me .eq. 0) print '(a)', 'fortran: right'
      call shmem_finalize
      end

      subroutine check(is_right, number)
      logical is_right
      integer number, my_pe
      if (.not. is_right) then
        print *, 'PE', my_pe(), ': check', number, 'failed'
        call shmem_global_exit(1)
      end if
      end
