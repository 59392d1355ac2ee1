# SPDX-License-Identifier: BSD-3-Clause
"""An ordinary mpi4py program: "windows of N processes are right"."""

from __future__ import annotations

import array

from mpi4py import MPI  # type: ignore[import-not-found]

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size

for window in (
    MPI.Win.Allocate(800, 8, comm=world),
    MPI.Win.Create(bytearray(800), 8, comm=world),
    MPI.Win.Allocate_shared(800, 8, comm=world),
):
    own = memoryview(window.tomemory()).cast("B").cast("q")
    window.Fence()
    window.Put(array.array("q", range(1000 * rank, 1000 * rank + 100)), right)
    window.Fence()
    assert own[99] == 1000 * left + 99, own[99]
    got = array.array("q", [0] * 100)
    window.Lock(right, MPI.LOCK_SHARED)
    window.Get(got, right)
    window.Unlock(right)
    assert got[99] == 1000 * rank + 99, got[99]
    world.Barrier()
    own[0] = 0
    world.Barrier()
    window.Lock_all()
    found = array.array("q", [0])
    window.Fetch_and_op(array.array("q", [1]), found, 0, 0, MPI.SUM)
    window.Flush(0)
    window.Unlock_all()
    assert 0 <= found[0] < size, found[0]
    world.Barrier()
    assert rank != 0 or own[0] == size, own[0]
    own.release()
    window.Free()

if rank == 0:
    print(f"windows of {size} processes are right", flush=True)
