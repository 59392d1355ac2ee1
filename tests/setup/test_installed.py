# SPDX-License-Identifier: BSD-3-Clause
"""The installed tree after it was moved: it must not know where it was built or installed first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from setup_trees import ROOT, Installed

pytestmark = pytest.mark.slow

# Each process puts its rank into its right neighbour and checks what its left one put.
BODY = r"""
#include <mobius/mobius.h>
#include <stdio.h>
int main(void) {
  mob_mem_t mem;
  void* remote;
  uint64_t value = 0;
  mob_rank_t rank, size;
  if (mob_init() != MOB_OK) { fprintf(stderr, "%s\n", mob_last_error()); return 1; }
  rank = mob_rank();
  size = mob_size();
  if (mob_mem_alloc(4096, &mem) != MOB_OK) return 2;
  if (mob_mem_address(mem, (rank + 1) % size, 0, &remote) != MOB_OK) return 3;
  if (mob_put8((rank + 1) % size, remote, (uint64_t)rank + 7) != MOB_OK) return 4;
  if (mob_barrier() != MOB_OK) return 5;
  if (mob_get8(rank, mob_mem_local(mem), &value) != MOB_OK) return 6;
  if (value != (uint64_t)((rank + size - 1) % size) + 7) return 7;
  if (mob_mem_free(mem) != MOB_OK) return 8;
  printf("rank %d of %d: good\n", (int)rank, (int)size);
  return mob_finalize() == MOB_OK ? 0 : 9;
}
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "ring.c").write_text(BODY, encoding="utf-8")
    (tmp_path / "ring.cpp").write_text(BODY, encoding="utf-8")
    return tmp_path


def check_alone_and_together(installed: Installed, program: Path) -> None:
    alone = installed.run(program, cwd=program.parent)
    assert (alone.returncode, alone.stdout) == (0, "rank 0 of 1: good\n"), alone.stderr
    launcher = installed.prefix / "bin" / "mobius"
    both = installed.run(launcher, "run", "-n", "2", program, cwd=program.parent)
    assert both.returncode == 0, both.stderr
    assert sorted(both.stdout.splitlines()) == ["rank 0 of 2: good", "rank 1 of 2: good"]


@pytest.mark.parametrize(
    ("wrapper", "source", "flags"),
    [
        ("mobcc", "ring.c", ["-std=c99", "-pedantic-errors"]),
        ("mobcc", "ring.c", ["-std=c99", "--mobius-static"]),
        ("mobc++", "ring.cpp", ["-std=c++20", "-pedantic-errors"]),
        ("mobc++", "ring.cpp", ["-std=c++20", "--mobius-static"]),
    ],
)
def test_wrappers(
    installed: Installed, sources: Path, wrapper: str, source: str, flags: list[str]
) -> None:
    compiler = installed.prefix / "bin" / wrapper
    done = installed.run(compiler, *flags, "-Wall", "-Werror", source, "-o", "ring", cwd=sources)
    assert done.returncode == 0, done.stderr
    check_alone_and_together(installed, sources / "ring")


def test_pkg_config(installed: Installed, sources: Path) -> None:
    # The shell, since pkg-config quotes the spaces of the path for one.
    command = (
        'set -e; rpath=$1; eval "set -- $(pkg-config --cflags --libs mobius)"; '
        'cc -std=c99 ring.c -o ring "$@" "-Wl,-rpath,$rpath"'
    )
    lib = installed.prefix / "lib"
    done = installed.run("sh", "-c", command, "sh", lib, cwd=sources)
    assert done.returncode == 0, done.stderr
    check_alone_and_together(installed, sources / "ring")


CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C CXX)
find_package(mobius {version} REQUIRED)
add_executable(shared_c ring.c)
target_link_libraries(shared_c PRIVATE mobius::mobius)
add_executable(static_c ring.c)
target_link_libraries(static_c PRIVATE mobius::static)
add_executable(shared_cxx ring.cpp)
target_link_libraries(shared_cxx PRIVATE mobius::mobius)
foreach(name shmem shmem_static)
  add_executable(${{name}} shmem.c)
  target_link_libraries(${{name}} PRIVATE mobius::${{name}})
endforeach()
"""
SHMEM = r"""
#include <shmem.h>
#include <stdio.h>
int main(void) {
  shmem_init();
  printf("rank %d of %d: good\n", shmem_my_pe(), shmem_n_pes());
  shmem_finalize();
  return 0;
}
"""


def test_cmake_package(installed: Installed, sources: Path) -> None:
    version = installed.run("pkg-config", "--modversion", "mobius", cwd=sources).stdout.strip()
    project = CMAKE_PROJECT.format(version=version)
    (sources / "CMakeLists.txt").write_text(project, encoding="utf-8")
    (sources / "shmem.c").write_text(SHMEM, encoding="utf-8")
    prefix = f"-DCMAKE_PREFIX_PATH={installed.prefix}"
    configured = installed.run(
        "cmake", "-G", "Ninja", "-S", ".", "-B", "build", prefix, cwd=sources
    )
    assert configured.returncode == 0, configured.stderr
    made = installed.run("cmake", "--build", "build", cwd=sources)
    assert made.returncode == 0, made.stdout + made.stderr
    for program in ("shared_c", "static_c", "shared_cxx", "shmem", "shmem_static"):
        check_alone_and_together(installed, sources / "build" / program)


@pytest.mark.parametrize(
    ("name", "compiler", "source", "options"),
    [
        ("lu", "mobcc", "world/mobius.c", ["-n", "80"]),
        ("md", "mobc++", "processes/mobius.cpp", ["-m", "64", "-e", "0", "-s", "0"]),
    ],
)
def test_applications_build_outside_the_tree(
    installed: Installed,
    tmp_path: Path,
    name: str,
    compiler: str,
    source: str,
    options: list[str],
) -> None:
    copy = shutil.copytree(installed.prefix / "share/doc/mobius/apps" / name, tmp_path / name)
    files = [str(file) for file in copy.glob("*.c*") if file.name != "CMakeLists.txt"]
    flags = ["-std=c++20"] if name == "md" else ["-lm"]
    wrapper = installed.prefix / "bin" / compiler
    done = installed.run(wrapper, *files, source, *flags, "-o", "alone", cwd=copy)
    assert done.returncode == 0, done.stderr
    for words in (
        ("-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={installed.prefix}"),
        ("--build", "build", "--target", name),
    ):
        done = installed.run("cmake", *words, cwd=copy)
        assert done.returncode == 0, done.stdout + done.stderr
    mobius = installed.prefix / "bin" / "mobius"
    for program in (copy / "alone", copy / "build" / name, installed.prefix / "bin" / name):
        done = installed.run(mobius, "run", "-n", "2", program, *options, cwd=copy)
        assert done.stdout.endswith(": right\n"), done.stderr


def test_cmake_package_refuses_another_version(installed: Installed, sources: Path) -> None:
    project = CMAKE_PROJECT.format(version="99.0")
    (sources / "CMakeLists.txt").write_text(project, encoding="utf-8")
    prefix = f"-DCMAKE_PREFIX_PATH={installed.prefix}"
    done = installed.run("cmake", "-G", "Ninja", "-S", ".", "-B", "build", prefix, cwd=sources)
    assert done.returncode != 0
    assert "99.0" in done.stderr


def test_nothing_tells_where_it_was_built_or_first_installed(installed: Installed) -> None:
    telling = []
    for path in installed.prefix.rglob("*"):
        if path.is_symlink():
            assert not path.readlink().is_absolute(), f"'{path}' is an absolute link"
        elif path.is_file():
            content = path.read_bytes()
            places = [p for p in (ROOT, installed.first_prefix) if os.fsencode(p) in content]
            telling += [f"{path.relative_to(installed.prefix)} names {p}" for p in places]
    assert telling == []


def test_install_builds_what_it_copies_and_no_test(installed: Installed) -> None:
    commands = subprocess.run(
        ["ninja", "-C", str(ROOT / "build" / "release"), "-t", "commands", "mobius_installed"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    made = {
        re.sub(r"\.so[.0-9]*$", ".so", Path(name).name)
        for name in re.findall(r"\b(?:bin|lib)/[\w.-]+", commands)
    }
    copied = [
        re.sub(r"\.so[.0-9]*$", ".so", path.name)
        for folder in ("bin", "lib", "libexec/mobius")
        for path in (installed.prefix / folder).iterdir()
        if not path.is_symlink() and is_native(path)
    ]
    assert len(copied) > 8
    assert [name for name in copied if name not in made] == []
    assert re.findall(r" -o (tests/\S+)", commands) == []


def is_native(path: Path) -> bool:
    return path.is_file() and path.read_bytes()[:8].startswith((b"\x7fELF", b"!<arch>"))


def test_instrument_starts(installed: Installed, tmp_path: Path) -> None:
    for subcommand in ("bench", "report", "compare"):
        done = installed.run(
            installed.prefix / "bin" / "mobius", subcommand, "--help", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout


def test_instrument_uses_the_libraries_of_the_tree(installed: Installed) -> None:
    version = (installed.prefix / "lib" / "mobius" / "python" / "PYTHON").read_text().strip()
    names = "numpy scipy.stats matplotlib.figure rich.progress".split()
    program = "; ".join(
        ["import sys", "sys.path.insert(0, sys.argv[1])"] + [f"import {n}" for n in names]
    )
    program += (
        "; assert all(sys.modules[n].__file__.startswith(sys.argv[1]) for n in ('numpy', 'rich'))"
    )
    done = installed.run(
        find_python(version),
        "-I",
        "-c",
        program,
        installed.prefix / "lib" / "mobius" / "python",
        cwd=installed.prefix,
    )
    assert done.returncode == 0, done.stderr


def find_python(version: str) -> str:
    """As libexec/mobius/instrument finds it; this test's own interpreter has that version."""
    return shutil.which(f"python{version}") or shutil.which("python3") or "python3"


def test_instrument_refuses_another_python(installed: Installed, tmp_path: Path) -> None:
    other = tmp_path / "python-other"
    other.write_text("#!/bin/sh\necho 3.1\n", encoding="utf-8")
    other.chmod(0o755)
    done = subprocess.run(
        [str(installed.prefix / "libexec" / "mobius" / "instrument"), "report"],
        env=installed.environment | {"MOBIUS_PYTHON": str(other)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Python 3.1," in done.stderr
    assert "installed for Python" in done.stderr


def test_fronts_for_mpi_are_there_or_said_to_be_missing(installed: Installed) -> None:
    lines = (installed.prefix / "share/mobius/mpi-fronts").read_text(encoding="utf-8").splitlines()
    parts = [line.split("|") for line in lines]
    assert [abi for abi, _, _ in parts] == ["ompi", "mpich", "mpiabi"]
    for abi, state, reason in parts:
        there = (installed.prefix / "lib" / f"libmobius_{abi}.so").is_file()
        assert state == ("made" if there else "missing")
        assert reason


def test_layout(installed: Installed) -> None:
    for name in (
        "bin/mobius",
        "bin/mobcc",
        "bin/mobc++",
        "bin/lu",
        "bin/md",
        "include/mobius/mobius.h",
        "include/mobius/mobius.hpp",
        "lib/libmobius.so",
        "lib/libmobius.a",
        "lib/pkgconfig/mobius.pc",
        "lib/cmake/mobius/mobius-config.cmake",
        "lib/cmake/mobius/mobius-config-version.cmake",
        "libexec/mobius/mobius",
        "libexec/mobius/suite_mobius",
        "libexec/mobius/conductor",
        "libexec/mobius/suite_limits",
        "libexec/mobius/instrument",
        "share/mobius/suite/main.c",
        "share/mobius/turns/turns.c",
        "share/doc/mobius/LICENSE",
        "share/doc/mobius/docs/guide/index.md",
        "share/doc/mobius/include/mobius/mobius.h",
    ):
        assert (installed.prefix / name).exists(), name
