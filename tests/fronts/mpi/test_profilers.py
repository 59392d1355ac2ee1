# SPDX-License-Identifier: BSD-3-Clause
"""Profilers before and behind the front: each sees each call of the program once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("mpi_tools")

if TYPE_CHECKING:
    from pathlib import Path

    from mpi_tools import Finished, Mpi

SEEN = "seen: Init 1, Win 2, Put 3, Rput 4, Wait 4, fence 2, Barrier 2, free 2\n"


@pytest.fixture(scope="module")
def profiled(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mpi.compile("profiled.c", tmp_path_factory.mktemp("profiled") / "profiled")


@pytest.fixture(scope="module")
def profiler(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of its own, linked with the MPI as such libraries are."""
    library = tmp_path_factory.mktemp("profiler") / "libmpiprofiler.so"
    return mpi.compile("profiler.c", library, "-shared", "-fPIC")


def check(done: Finished) -> None:
    assert done.code == 0, done.told
    assert "profiled passed" in done.out, done.told
    assert done.err.count(SEEN) == done.err.count("seen: ") == 2, done.told
    assert done.err.count(": 2 MPI windows served\n") == 2, done.told


def test_behind_as_mobius_mpirun_preloads_it(mpi: Mpi, profiled: Path, profiler: Path) -> None:
    check(mpi.by_mobius(2, profiled, stats=True, env={"LD_PRELOAD": str(profiler)}))


@pytest.mark.full
@pytest.mark.parametrize("order", ["before", "behind"])
def test_preloaded_by_hand(mpi: Mpi, profiled: Path, profiler: Path, order: str) -> None:
    preloads = [str(profiler), str(mpi.library)]
    if order == "behind":
        preloads.reverse()
    check(mpi.start(2, profiled, env={"LD_PRELOAD": ":".join(preloads), "MOBIUS_STATS": "1"}))


@pytest.mark.full
@pytest.mark.parametrize("order", ["before", "behind"])
def test_linked(mpi: Mpi, profiler: Path, tmp_path: Path, order: str) -> None:
    words = [str(profiler), str(mpi.library)]
    if order == "behind":
        words.reverse()
    paths = [f"-Wl,-rpath,{library.parent}" for library in (profiler, mpi.library)]
    binary = mpi.compile("profiled.c", tmp_path / "linked", "-Wl,--no-as-needed", *words, *paths)
    check(mpi.start(2, binary, env={"MOBIUS_STATS": "1"}))


@pytest.mark.full
def test_linked_and_the_front_preloaded(mpi: Mpi, profiler: Path, tmp_path: Path) -> None:
    path = f"-Wl,-rpath,{profiler.parent}"
    binary = mpi.compile("profiled.c", tmp_path / "linked", str(profiler), path)
    check(mpi.by_mobius(2, binary, stats=True))


def test_within_the_program_with_the_front(mpi: Mpi, tmp_path: Path) -> None:
    """Both define MPI_X(); the linker takes the profiler's, as with an MPI's archive."""
    archives = [mpi.library.with_suffix(".a"), mpi.library.with_name("libmobius.a")]
    for archive in archives:
        if not archive.is_file():
            pytest.skip(f"{archive.name} was not built")
    profiler = mpi.compile("profiler.c", tmp_path / "profiler.o", "-c")
    words = [str(profiler), *map(str, archives), "-lstdc++"]
    check(mpi.start(2, mpi.compile("profiled.c", tmp_path / "holds", *words),
                    env={"MOBIUS_STATS": "1"}))  # fmt: skip


@pytest.mark.full
def test_within_the_program_and_the_front_preloaded(mpi: Mpi, tmp_path: Path) -> None:
    profiler = mpi.compile("profiler.c", tmp_path / "profiler.o", "-c")
    check(mpi.by_mobius(2, mpi.compile("profiled.c", tmp_path / "holds", str(profiler)),
                        stats=True))  # fmt: skip
