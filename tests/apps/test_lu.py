# SPDX-License-Identifier: BSD-3-Clause
"""LU: every variant gives the same bits, and they are right."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from apps_tools import BIN, ROOT, mobius, mpich, result_of, run, run_any

# Blocks that do not divide the matrix.
SIZE = ("--size", "150", "--block", "16")


@pytest.fixture(scope="module")
def checksum() -> str:
    """That of one process alone."""
    result = result_of(run(BIN / "lu", *SIZE, "--json"))
    assert result["right"]
    return str(result["checksum"])


@pytest.mark.parametrize("program", ["lu", "lu-armci"])
@pytest.mark.parametrize(
    ("processes", "hosts", "options"),
    [
        (2, 1, ["--placement", "block"]),
        (3, 1, ["--placement", "cyclic", "--copy"]),
        (4, 1, ["--placement", "hybrid", "--per-host", "2"]),
        (4, 2, ["--placement", "hybrid"]),
        (4, 2, ["--placement", "hybrid", "--ranges", "1"]),
        (6, 2, ["--placement", "hybrid", "--ranges", "100"]),
    ],
)
def test_processes(
    checksum: str, program: str, processes: int, hosts: int, options: list[str]
) -> None:
    result = mobius(processes, program, *SIZE, *options, hosts=hosts)
    assert (result["right"], result["checksum"]) == (True, checksum)
    assert result["processes"] == processes


@pytest.mark.parametrize(("threads", "options"), [(1, []), (2, ["--bind"]), (3, ["--bind"])])
def test_threads(checksum: str, threads: int, options: list[str]) -> None:
    words = (BIN / "lu-threads", *SIZE, "--threads", threads, *options, "--json")
    result = result_of(run(*words))
    assert (result["right"], result["checksum"]) == (True, checksum)
    assert result["processes"] == threads


def test_mpi(checksum: str, tmp_path: Path) -> None:
    found = mpich()
    if found is None:
        pytest.skip("MPICH is not installed")
    compiler, launcher = found
    folder = ROOT / "apps" / "lu"
    program = tmp_path / "lu-mpi"
    run(compiler, "-O1", *folder.glob("*.c"), folder / "world/mpi.c", "-lm", "-o", program)
    result = result_of(run(launcher, "-n", 2, program, *SIZE, "--json"))
    assert (result["right"], result["checksum"]) == (True, checksum)


@pytest.mark.parametrize("block", [1, 5, 64, 500])
def test_any_block(block: int) -> None:
    assert mobius(2, "lu", "--size", 61, "--block", block)["right"]


def test_factors_multiply_to_the_matrix(tmp_path: Path) -> None:
    size, file = 40, tmp_path / "factors.npy"
    mobius(2, "lu", "--size", size, "--block", 7, "--write", file)
    factors = np.load(file)
    product = (np.tril(factors, -1) + np.eye(size)) @ np.triu(factors)
    # The matrix: `size` on its diagonal, and elements of [-1, 1) beside it.
    assert np.allclose(np.diag(product), size, rtol=1e-13)
    beside = (product - size * np.eye(size))[~np.eye(size, dtype=bool)]
    assert -1 <= beside.min() < -0.9
    assert 0.9 < beside.max() < 1
    assert abs(beside.mean()) < 0.1


def test_blas() -> None:
    done = run_any(BIN / "lu", *SIZE, "--kernel", "blas", "--json")
    if done.returncode == 2:
        assert "no BLAS: libblas.so.3" in done.stderr
        pytest.skip("no libblas.so.3")
    assert result_of(done)["right"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--size", "0", "a number from 1 to 200000 is wanted"),
        ("--block", "x", "a number from 1 to 4096 is wanted"),
        ("--ranges", "0", "a number from 1 to 1048576 is wanted"),
        ("--placement", "near", "cyclic, block or hybrid is wanted"),
        ("--kernel", "fast", "plain, blas or blas=FILE is wanted"),
        ("--threads", "2", "only lu-threads makes threads"),
    ],
)
def test_bad_options(option: str, value: str, message: str) -> None:
    done = run_any(BIN / "lu", option, value)
    assert done.returncode == 2
    assert f"lu: {option} {value}: {message}" in done.stderr


def test_only_threads_are_bound() -> None:
    assert "lu: --bind: only lu-threads makes threads" in run_any(BIN / "lu", "--bind").stderr


def test_output(tmp_path: Path) -> None:
    text = run(BIN / "lu", *SIZE).stdout
    assert "lu: 150 x 150 in blocks of 16, hybrid placement, plain kernel, 1 processes" in text
    assert text.endswith(": right\n")
    assert "--placement P" in run(BIN / "lu", "--help").stdout
    failed = run_any(BIN / "lu", *SIZE, "--write", tmp_path / "no" / "folder.npy")
    assert failed.returncode == 1
    assert "cannot write" in failed.stderr


HYBRID = 2  # PLACE_HYBRID of layout.h


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions of layout.c, which say which rank owns a block."""
    library = tmp_path_factory.mktemp("lu") / "layout.so"
    run("cc", "-O1", "-shared", "-fPIC", ROOT / "apps/lu/layout.c", "-o", library)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("ranges", [1, 4, 1000])
@pytest.mark.parametrize(
    ("hosts", "per_host", "grid"),
    [(2, 2, 2), (4, 4, 4), (2, 8, 4), (8, 2, 4), (1, 4, 2), (9, 1, 3)],
)
def test_the_grid_of_the_hybrid(
    layout: ctypes.CDLL, hosts: int, per_host: int, grid: int, ranges: int
) -> None:
    """As near to a square as can be, and every process has as many blocks."""
    ranks, blocks = hosts * per_host, 8 * grid
    leaders = (ctypes.c_int * ranks)(*(rank - rank % per_host for rank in range(ranks)))
    made = (ctypes.c_char * 256)()
    layout.layout_make.restype = ctypes.c_char_p
    assert layout.layout_make(made, blocks, 1, HYBRID, ranges, ranks, 0, leaders) is None
    owner = [[layout.layout_owner(made, i, j) for j in range(blocks)] for i in range(blocks)]
    layout.layout_free(made)
    assert all(len(set(row)) == ranks // grid for row in owner)
    assert all(len(set(column)) == grid for column in zip(*owner, strict=True))
    # With several ranges also in what is left when half of the rows are finished.
    for left in (owner, owner[blocks // 2 :])[: 1 if ranges == 1 else 2]:
        counts = Counter(rank for row in left for rank in row)
        assert set(counts.values()) == {len(left) * blocks // ranks}


def test_hybrid_needs_equal_hosts() -> None:
    words = (BIN / "mobius", "run", "-n", 3, BIN / "lu", *SIZE, "--per-host", 2)
    assert "the hosts have different numbers of processes" in run_any(*words).stderr
