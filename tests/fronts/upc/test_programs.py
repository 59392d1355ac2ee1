# SPDX-License-Identifier: BSD-3-Clause
"""Programs that check themselves, compiled by mobupcc and run on 1, 2 and 4 threads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from upc_tools import ROOT, binaries, mobupcc, run, start

PROGRAMS = Path(__file__).parent / "programs"
SINGLE = ["arrays.upc", "pointers.upc", "records.upc", "loops.upc", "headers.upc", "libraries.upc"]


def built(folder: Path, *arguments: str | Path) -> Path:
    """Compiles and links; the program."""
    program = folder / "program"
    done = mobupcc(folder, "-O1", "-Wall", "-Werror", "-o", program, *arguments, "-lm")
    assert done.code == 0, done.told
    return program


def check(program: Path, threads: int, *options: str) -> None:
    """Runs a program that prints `ok` once."""
    done = start(program, threads, *options)
    assert (done.code, done.out) == (0, "ok\n"), done.told


@pytest.mark.parametrize("name", SINGLE)
def test_program_with_any_number_of_threads(name: str, tmp_path: Path) -> None:
    program = built(tmp_path, PROGRAMS / name)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], ""),
        (["1"], "checked.upc:14: thread 0: index 20 of shared array 'a' is out of range"),
        (["1", "2"], "checked.upc:15: thread 0: the pointer is a null pointer-to-shared"),
        (["1", "2", "3"], "checked.upc:16: thread 0: cast of a pointer with affinity to thread 1"),
    ],
)
def test_checks_at_run_time(checked: Path, arguments: list[str], message: str) -> None:
    done = run([binaries() / "mobius", "run", "-n", "2", checked, *arguments], checked.parent)
    assert (done.code == 0) == (message == ""), done.told
    assert message in done.err, done.told


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with mistakes, compiled with checks."""
    folder = tmp_path_factory.mktemp("checked")
    return built(folder, "-fsanitize=shared", PROGRAMS / "checked.upc")


def test_separate_compilation_as_a_makefile_does(tmp_path: Path) -> None:
    options = ("-fupc-threads-2", "-D", "COUNT=2", "-MD", "-c")
    done = mobupcc(tmp_path, *options, PROGRAMS / "parts.upc")
    assert (done.code, "THREADS is a number" in done.err) == (1, True), done.told
    for name in ("parts_other", "parts_plain"):
        suffix = ".c" if name == "parts_plain" else ".upc"
        done = mobupcc(tmp_path, *options, PROGRAMS / f"{name}{suffix}")
        assert done.code == 0, done.told
        assert (tmp_path / f"{name}.o").exists()
    words = (tmp_path / "parts_other.d").read_text(encoding="utf-8").replace("\\\n", " ").split()
    assert words[0] == "parts_other.o:"
    assert {"parts.h", "upc_strict.h"} <= {Path(word).name for word in words}


def test_main_in_c(tmp_path: Path) -> None:
    plain = tmp_path / "plain.c"
    plain.write_text(
        "#include <mobius_upc/runtime.h>\n#include <upc.h>\nvoid f(void);\n"
        "int main(void) {\n  mob_upc_start();\n  f();\n  return upc_threadof(mob_upc_null());\n}\n"
    )
    other = tmp_path / "other.upc"
    other.write_text(
        '#include "check.h"\nshared int a[THREADS];\nvoid f(void) {\n'
        "  a[MYTHREAD] = 1;\n  upc_barrier;\n  CHECK(a[THREADS - 1] == 1);\n  DONE();\n}\n"
    )
    check(built(tmp_path, f"-I{PROGRAMS}", plain, other), 2)


def test_errors_are_at_lines_of_the_source(tmp_path: Path) -> None:
    source = tmp_path / "wrong.upc"
    source.write_text("#include <stdio.h>\nshared int a[THREADS];\nint f(void) {\n  return a;\n}\n")
    done = mobupcc(tmp_path, "-c", source)
    assert done.code == 1
    assert "wrong.upc:4: error:" in done.err, done.told
    source.write_text("#include <stdio.h>\nint f(void) {\n  int unused;\n  return 0;\n}\n")
    done = mobupcc(tmp_path, "-Wall", "-c", source)
    assert done.code == 0
    assert "wrong.upc:3:" in done.err, done.told
    done = mobupcc(tmp_path, "-E", source)
    assert (done.code, "int unused;" in done.out) == (0, True), done.told
    done = mobupcc(tmp_path, tmp_path / "missing.upc")
    assert (done.code, "there is no file" in done.err) == (1, True), done.told
