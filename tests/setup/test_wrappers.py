# SPDX-License-Identifier: BSD-3-Clause
"""The compilers mobcc, oshfort and so on: the commands they build. That these work is tested in
test_installed.py and test_fronts.py."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from setup_trees import ROOT, Finished

# Of each front's compiler: the compiler, its flags before the folders, the front's own folder of
# headers, the front's library, and what comes behind the libraries.
FRONTS: dict[str, tuple[str, list[str], list[str], str, list[str]]] = {
    "moblapicc": ("cc", [], ["/include/mobius_lapi"], "lapi_r", ["-pthread"]),
    "moblapic++": ("c++", [], ["/include/mobius_lapi"], "lapi_r", ["-pthread"]),
    "moblapifort": ("gfortran", [], ["/include/mobius_lapi"], "lapi_r", ["-pthread"]),
    "oshcc": ("cc", [], ["/include/mobius_shmem"], "mobius_shmem", []),
    "oshc++": ("c++", [], ["/include/mobius_shmem"], "mobius_shmem", []),
    "oshfort": (
        "gfortran", ["-fcray-pointer"], ["/include/mobius_shmem"], "mobius_shmem", []
    ),
}  # fmt: skip


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a, prefix"
    (folder / "bin").mkdir(parents=True)
    for name in ("mobcc", "mobc++", *FRONTS):
        shutil.copy2(ROOT / "tools" / "wrappers" / "mobcc", folder / "bin" / name)
    return folder


def run(program: Path, *arguments: str, **extra: str) -> Finished:
    return subprocess.run(
        [str(program), *arguments],
        env={"PATH": "/usr/bin:/bin", **extra},
        capture_output=True,
        text=True,
    )


def shown(program: Path, *arguments: str, **extra: str) -> list[str]:
    done = run(program, "-show", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)


def link_words(prefix: Path) -> list[str]:
    lib = str(prefix / "lib")
    return [f"-L{lib}", "-Xlinker", "-rpath", "-Xlinker", lib, "-lmobius"]


def test_compile_and_link(prefix: Path) -> None:
    words = shown(prefix / "bin" / "mobcc", "a b.c", "-o", "x")
    assert words == ["cc", f"-I{prefix}/include", "a b.c", "-o", "x", *link_words(prefix)]


@pytest.mark.parametrize("flag", ["-c", "-S", "-E", "-M"])
def test_no_link_flags_when_nothing_is_linked(prefix: Path, flag: str) -> None:
    words = shown(prefix / "bin" / "mobcc", flag, "a.c")
    assert words == ["cc", f"-I{prefix}/include", flag, "a.c"]


def test_cxx(prefix: Path) -> None:
    assert shown(prefix / "bin" / "mobc++", "a.cpp")[0] == "c++"


def test_other_compilers(prefix: Path) -> None:
    words = shown(prefix / "bin" / "mobcc", "a.c", MOBIUS_CC="gcc-12 -m64", MOBIUS_CXX="no")
    assert words[:2] == ["gcc-12", "-m64"]
    assert (
        shown(prefix / "bin" / "mobc++", "a.c", MOBIUS_CC="no", MOBIUS_CXX="g++-12")[0] == "g++-12"
    )


def test_static(prefix: Path) -> None:
    words = shown(prefix / "bin" / "mobcc", "--mobius-static", "a.c")
    assert words[-4:] == [f"{prefix}/lib/libmobius.a", "-lstdc++", "-lm", "-pthread"]
    assert "-lmobius" not in words


@pytest.mark.parametrize("name", FRONTS)
def test_fronts(prefix: Path, name: str) -> None:
    compiler, flags, headers, library, behind = FRONTS[name]
    start = [compiler, *flags, *(f"-I{prefix}{folder}" for folder in [*headers, "/include"])]
    *folders, last = link_words(prefix)
    assert shown(prefix / "bin" / name, "a.x") == [
        *start, "a.x", *folders, f"-l{library}", last, *behind,
    ]  # fmt: skip
    assert shown(prefix / "bin" / name, "--mobius-static", "a.x") == [
        *start, "a.x", f"{prefix}/lib/lib{library}.a", f"{prefix}/lib/libmobius.a",
        "-lstdc++", "-lm", "-pthread",
    ]  # fmt: skip
    assert shown(prefix / "bin" / name, "-c", "a.x") == [*start, "-c", "a.x"]


def test_another_fortran_compiler(prefix: Path) -> None:
    words = shown(prefix / "bin" / "oshfort", "a.f90", MOBIUS_FC="flang -O1")
    assert words[:3] == ["flang", "-O1", f"-I{prefix}/include/mobius_shmem"]


def test_questions_to_the_compiler_link_nothing(prefix: Path) -> None:
    done = run(prefix / "bin" / "mobcc", "--version")
    assert done.returncode == 0, done.stderr
    assert "Free Software Foundation" in done.stdout or "clang" in done.stdout


def test_through_a_link(prefix: Path, tmp_path: Path) -> None:
    link = tmp_path / "mycc"
    link.symlink_to(prefix / "bin" / "mobc++")
    assert shown(link, "a.cpp")[:2] == ["c++", f"-I{prefix}/include"]


def test_exit_code_is_the_compilers(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int f(void) { return }\n", encoding="utf-8")
    assert run(prefix / "bin" / "mobcc", "-c", str(source), "-o", "/dev/null").returncode == 1
