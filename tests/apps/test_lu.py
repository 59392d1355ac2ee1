# SPDX-License-Identifier: BSD-3-Clause
"""LU: every variant gives the same bits, and they are right."""

from __future__ import annotations

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
    ],
)
def test_processes(
    checksum: str, program: str, processes: int, hosts: int, options: list[str]
) -> None:
    result = mobius(processes, program, *SIZE, *options, hosts=hosts)
    assert (result["right"], result["checksum"]) == (True, checksum)
    assert result["processes"] == processes


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(checksum: str, threads: int) -> None:
    result = result_of(run(BIN / "lu-threads", *SIZE, "--threads", threads, "--json"))
    assert (result["right"], result["checksum"]) == (True, checksum)


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
        ("--placement", "near", "cyclic, block or hybrid is wanted"),
        ("--kernel", "fast", "plain, blas or blas=FILE is wanted"),
        ("--threads", "2", "only lu-threads makes threads"),
    ],
)
def test_bad_options(option: str, value: str, message: str) -> None:
    done = run_any(BIN / "lu", option, value)
    assert done.returncode == 2
    assert f"lu: {option} {value}: {message}" in done.stderr


def test_output(tmp_path: Path) -> None:
    text = run(BIN / "lu", *SIZE).stdout
    assert "lu: 150 x 150 in blocks of 16, hybrid placement, plain kernel, 1 processes" in text
    assert text.endswith(": right\n")
    assert "--placement P" in run(BIN / "lu", "--help").stdout
    failed = run_any(BIN / "lu", *SIZE, "--write", tmp_path / "no" / "folder.npy")
    assert failed.returncode == 1
    assert "cannot write" in failed.stderr


def test_hybrid_needs_equal_hosts() -> None:
    words = (BIN / "mobius", "run", "-n", 3, BIN / "lu", *SIZE, "--per-host", 2)
    assert "the hosts have different numbers of processes" in run_any(*words).stderr
