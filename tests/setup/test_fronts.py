# SPDX-License-Identifier: BSD-3-Clause
"""The fronts of the installed, moved tree: by wrapper and pkg-config."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from setup_trees import ROOT, Installed

pytestmark = pytest.mark.slow

SAMPLES = ROOT / "examples" / "lapi"
SHMEM_SAMPLE = ROOT / "examples" / "shmem" / "ring.f90"

# Each process puts its rank into its right neighbour's part, and reads it there.
ARMCI_RING = r"""
#include <armci.h>
#include <armci_msg.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* parts[16];
  long mine, got = -1;
  int me, size, right;
  ARMCI_Init_args(&argc, &argv);
  me = armci_msg_me();
  size = armci_msg_nproc();
  right = (me + 1) % size;
  mine = me;
  if (ARMCI_Malloc(parts, sizeof mine) != 0) return 1;
  ARMCI_Put(&mine, parts[right], sizeof mine, right);
  ARMCI_Fence(right);
  ARMCI_Barrier();
  if (*(long*)parts[me] != (me + size - 1) % size) return 2;
  ARMCI_Get(parts[right], &got, sizeof got, right);
  if (got != me) return 3;
  ARMCI_Barrier();
  ARMCI_Free(parts[me]);
  ARMCI_Finalize();
  if (me == 0) puts("ring: right");
  return 0;
}
"""

SHMEM_RING = r"""
#include <shmem.h>
#include <stdio.h>
static long word;
int main(void) {
  int me, size;
  shmem_init();
  me = shmem_my_pe();
  size = shmem_n_pes();
  shmem_long_p(&word, 5 + me, (me + 1) % size);
  shmem_barrier_all();
  if (word != 5 + (me + size - 1) % size) return 1;
  shmem_finalize();
  if (me == 0) puts("ring: right");
  return 0;
}
"""

# In C, with a main() of its own.
UPC_RING = r"""
#include <mobius_upc/runtime.h>
#include <upc.h>
#include <stdio.h>
static uint64_t word;
static const mob_upc_object_t objects[] = {
  {"word", &word, sizeof(long), 1, 1, MOB_UPC_TIMES_THREADS, 0, NULL, 0, "ring.upc:1"}};
static mob_upc_unit_t unit = {MOB_UPC_UNIT_VERSION, 0, "ring.upc", objects, 1, NULL, NULL};
__attribute__((constructor)) static void join(void) { mob_upc_register(&unit); }
int main(void) {
  int me, size;
  mob_upc_start();
  me = mob_upc_mythread();
  size = mob_upc_threads();
  mob_upc_put_long(mob_upc_pointer(word, (unsigned)((me + 1) % size), 0), 5 + me);
  mob_upc_barrier(NULL);
  if (*(long*)mob_upc_local(word) != 5 + (me + size - 1) % size) return 1;
  if (mob_upc_is_null(upc_all_alloc(10, 8))) return 2;
  if (me == 0) puts("ring: right");
  return 0;
}
"""


def check_runs(installed: Installed, program: Path, says: str) -> None:
    launcher = installed.prefix / "bin" / "mobius"
    done = installed.run(launcher, "run", "-n", "2", program, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


@pytest.mark.parametrize("flags", [[], ["--mobius-static"]])
@pytest.mark.parametrize(
    ("wrapper", "sample"), [("moblapicc", "producer.c"), ("moblapifort", "ring.f90")]
)
def test_lapi_by_wrapper(
    installed: Installed, tmp_path: Path, wrapper: str, sample: str, flags: list[str]
) -> None:
    if wrapper == "moblapifort" and shutil.which("gfortran") is None:
        pytest.skip("there is no gfortran")
    compiler = installed.prefix / "bin" / wrapper
    done = installed.run(compiler, *flags, SAMPLES / sample, "-o", "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_runs(installed, tmp_path / "program", ": right")


@pytest.mark.parametrize("flags", [[], ["--mobius-static"]])
@pytest.mark.parametrize(("wrapper", "suffix"), [("oshcc", "c"), ("oshc++", "cpp")])
def test_shmem_by_wrapper(
    installed: Installed, tmp_path: Path, wrapper: str, suffix: str, flags: list[str]
) -> None:
    source = tmp_path / f"ring.{suffix}"
    source.write_text(SHMEM_RING, encoding="utf-8")
    compiler = installed.prefix / "bin" / wrapper
    done = installed.run(compiler, *flags, source, "-o", "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    launcher = installed.prefix / "bin" / "oshrun"
    done = installed.run(launcher, "-n", "2", tmp_path / "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ring: right\n"


@pytest.mark.parametrize("flags", [[], ["--mobius-static"]])
def test_shmem_fortran_by_wrapper(installed: Installed, tmp_path: Path, flags: list[str]) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("there is no gfortran")
    compiler = installed.prefix / "bin" / "oshfort"
    done = installed.run(compiler, *flags, SHMEM_SAMPLE, "-o", "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_runs(installed, tmp_path / "program", "ring: right\n")


def test_fortran_names_the_same_values(tmp_path: Path) -> None:
    """The parameters of lapif.h are the constants of lapi.h."""
    headers = ROOT / "fronts" / "lapi" / "include"
    found = re.findall(
        r"integer, parameter :: (\w+) = (-?\d+)", (headers / "lapif.h").read_text("utf-8")
    )
    checks = [
        f'_Static_assert((long)({name}) == {value}, "{name}");'
        for name, value in found
        if not name.endswith("_TYPE")
    ]
    assert len(checks) > 100
    source = tmp_path / "values.c"
    source.write_text("\n".join(["#include <lapi.h>", "#include <lapi_util.h>", *checks]), "utf-8")
    done = subprocess.run(
        ["cc", "-std=c11", "-fsyntax-only", f"-I{headers}", str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", ["lapi", "armci", "shmem", "upc"])
@pytest.mark.parametrize("static", [False, True])
def test_by_pkg_config(installed: Installed, tmp_path: Path, package: str, static: bool) -> None:
    source = tmp_path / "program.c"
    producer = (SAMPLES / "producer.c").read_text("utf-8")
    bodies = {"lapi": producer, "armci": ARMCI_RING, "shmem": SHMEM_RING, "upc": UPC_RING}
    body = bodies[package]
    source.write_text(body, encoding="utf-8")
    # The shell, since pkg-config quotes the spaces of the path for one. Only Möbius is linked
    # statically: the C library has no static form that loads other libraries.
    flags = "--static" if static else ""
    ours = "-Wl,-Bstatic -l\\1 -Wl,-Bdynamic" if static else "-l\\1"
    command = (
        f"set -e; flags=$(pkg-config --cflags --libs {flags} {package} | "
        f"sed -E 's/-l(mobius_shmem|mobius_upc|mobius|lapi_r|armci)/{ours}/g'); rpath=$1; "
        'eval "set -- $flags"; cc -DARMCI_NO_MPI program.c -o program "$@" "-Wl,-rpath,$rpath"'
    )
    done = installed.run("sh", "-c", command, "sh", installed.prefix / "lib", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_runs(installed, tmp_path / "program", ": right")


@pytest.mark.parametrize(
    ("folder", "interface", "own"),
    [("", "mobius/mobius.h", "message.h"), ("mobius_lapi", "lapi.h", "armci.h")],
)
def test_programs_find_their_own_headers(
    installed: Installed, tmp_path: Path, folder: str, interface: str, own: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / own).write_text("#define OWN 1\n", "utf-8")
    (tmp_path / "program.c").write_text(
        f"#include <{own}>\n#include <{interface}>\n#if !OWN\n#error\n#endif\n", "utf-8"
    )
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    include = installed.prefix / "include" / folder
    done = installed.run("cc", *flags, f"-I{include}", "-Iown", "-c", "program.c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_upc_program(installed: Installed, tmp_path: Path) -> None:
    wrapper = installed.prefix / "bin" / "mobupcc"
    source = installed.prefix / "share" / "doc" / "mobius" / "examples" / "matmul.upc"
    done = installed.run(wrapper, "-O2", source, "-o", "matmul", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    launcher = installed.prefix / "bin" / "upcrun"
    done = installed.run(launcher, "-n", "2", tmp_path / "matmul", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "96 x 40 by 2 threads: right\n"), done.stderr


def test_layout(installed: Installed) -> None:
    for name in (
        "bin/moblapicc",
        "bin/moblapic++",
        "bin/moblapifort",
        "bin/oshcc",
        "bin/oshc++",
        "bin/oshfort",
        "bin/oshrun",
        "bin/mobupcc",
        "bin/upcrun",
        "include/mobius_upc/upc.h",
        "include/mobius_upc/mobius_upc/runtime.h",
        "include/lapi.h",
        "include/lapif.h",
        "include/mobius_lapi/lapi.h",
        "include/mobius_lapi/lapif.h",
        "include/armci/armci.h",
        "include/armci/message.h",
        "include/armci.h",
        "include/armci_msg.h",
        "include/armcix.h",
        "include/message.h",
        *(
            f"lib/lib{library}.{kind}"
            for library in ("lapi_r", "lapi", "armci", "mobius_shmem", "mobius_upc")
            for kind in ("so", "a")
        ),
        "lib/pkgconfig/lapi.pc",
        "lib/pkgconfig/armci.pc",
        "lib/pkgconfig/shmem.pc",
        "lib/pkgconfig/upc.pc",
        "include/mobius_upc/upc.h",
        "include/mobius_upc/mobius_upc/runtime.h",
        "include/mobius_shmem/shmem.h",
        "include/mobius_shmem/mpp/shmem.h",
        "include/mobius_shmem/mpp/shmem.fh",
        "include/mobius_shmem/shmem.fh",
        "include/mobius_shmem/shmem.f90",
    ):
        assert (installed.prefix / name).exists(), name
