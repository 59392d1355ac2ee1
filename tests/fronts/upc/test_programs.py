# SPDX-License-Identifier: BSD-3-Clause
"""Programs that check themselves, compiled by mobupcc and run on 1, 2 and 4 threads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from upc_tools import ROOT, mobupcc, start

PROGRAMS = Path(__file__).parent / "programs"
SINGLE = ["arrays.upc", "pointers.upc", "records.upc", "loops.upc", "headers.upc"]


def built(folder: Path, *arguments: str | Path) -> Path:
    """Compiles and links; the program."""
    program = folder / "program"
    done = mobupcc(folder, "-O1", "-Wall", "-Werror", "-o", program, *arguments)
    assert done.code == 0, done.told
    return program


def check(program: Path, threads: int, *options: str) -> None:
    """Runs a program that prints `ok` once."""
    done = start(program, threads, *options)
    assert (done.code, done.out) == (0, "ok\n"), done.told


@pytest.mark.parametrize("name", SINGLE)
def test_program_with_any_number_of_threads(name: str, tmp_path: Path) -> None:
    libraries = ["-lm"] if name == "headers.upc" else []
    program = built(tmp_path, PROGRAMS / name, *libraries)
    for threads in (1, 2, 4):
        check(program, threads)


def test_program_of_several_files_with_threads_known_at_compile_time(tmp_path: Path) -> None:
    files = [PROGRAMS / name for name in ("parts.upc", "parts_other.upc", "parts_plain.c")]
    program = built(tmp_path, "--threads=3", *files)
    check(program, 3)
    done = start(program, 2)
    assert done.code != 0
    assert "3" in done.err, done.told


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.full
def test_program_with_threads_known_at_compile_time(name: str, tmp_path: Path) -> None:
    for threads in (1, 4, 7):
        check(built(tmp_path, f"-fupc-threads-{threads}", PROGRAMS / name), threads)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.full
def test_program_on_two_virtual_hosts(name: str, tmp_path: Path) -> None:
    check(built(tmp_path, PROGRAMS / name), 4, "--virtual-hosts", "2")


def test_example(tmp_path: Path) -> None:
    program = built(tmp_path, ROOT / "examples" / "matmul.upc")
    done = start(program, 4)
    assert done.code == 0, done.told
    assert "right" in done.out, done.told
