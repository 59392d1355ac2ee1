# SPDX-License-Identifier: BSD-3-Clause
"""OpenSHMEM: our front, and others given their compiler `oshcc`, all with the blocks of
bench/suite/shmem."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from mobius_instrument.errors import system_reason
from mobius_instrument.libraries.base import (
    AS_ROOT,
    Candidate,
    Context,
    Library,
    Start,
    between_hosts,
    cells,
    hash_files,
    missing,
)
from mobius_instrument.libraries.building import (
    COMPILE_FLAGS,
    build,
    failure_of,
    find_compiler,
    made_nothing,
    no_launcher,
    run_tool,
    turns_source,
)
from mobius_instrument.libraries.own import absent, shared_libraries, started_by_mobius
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.results import LibraryRecord

SHMEM_CELLS: Final = (
    *cells("pingpong", ("put", "get"), ("flush",), ("allocate",)),
    *cells("completion", ("put", "get"), ("flush",), ("allocate",)),
)
_IDENTIFY_LIMIT_S: Final = 60.0
_IDENTIFY_SOURCE: Final = """\
#include <shmem.h>
#include <stdio.h>
#ifndef SHMEM_VENDOR_STRING
#define SHMEM_VENDOR_STRING ""
#endif
int main(void) {
  printf("%d.%d %s\\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING);
  return 0;
}
"""
_SANDIA: Final = "Sandia OpenSHMEM"
# On one host it copies by cross-memory attach, with the addresses of the PE that copies.
_SAME_ADDRESSES: Final = ("setarch", "--addr-no-randomize")
# Enough for many transfers of the largest size; the names are those of the implementations.
_HEAP: Final = dict.fromkeys(("SHMEM_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_HEAP_SIZE"), "1G")


def on_mobius(locations: Locations) -> list[Candidate]:
    """OpenSHMEM on this Möbius, built or not."""
    return [
        Candidate(
            name="mobius-shmem",
            description="OpenSHMEM on this Möbius",
            present=bool(locations.program("mobius") and locations.program("suite_shmem")),
            prepare=_prepare_ours,
        )
    ]


def _prepare_ours(context: Context) -> Library:
    locations = context.locations
    mobius, suite = locations.program("mobius"), locations.program("suite_shmem")
    if mobius is None or suite is None:
        program = "mobius" if mobius is None else "suite_shmem"
        return absent("mobius-shmem", "OpenSHMEM on Möbius", "front", program, locations)
    library = Library(
        record=LibraryRecord("mobius-shmem", "OpenSHMEM on Möbius", "", "front", "ready"),
        cells=SHMEM_CELLS,
        environment=_HEAP,
        fingerprint=hash_files(mobius, suite, *shared_libraries(suite, "libmobius*.so*")),
        suite_kind="shmem",
    )
    return started_by_mobius(library, mobius, suite)


def candidates(extra: tuple[Path, ...]) -> list[Candidate]:
    """The `oshcc` in PATH, and those named by `--oshcc`."""
    places = [("shmem", Path(path))] if (path := shutil.which("oshcc")) else []
    places += [(f"oshcc{number}", path) for number, path in enumerate(extra, start=1)]
    return [
        Candidate(
            name=name,
            description=f"OpenSHMEM of {oshcc}",
            present=True,
            prepare=lambda context, name=name, oshcc=oshcc: _prepare(name, oshcc, context),  # type: ignore[misc]
        )
        for name, oshcc in places
    ]


def check_oshcc(given: str) -> Path:
    """An `--oshcc` argument: a path, or a name to find in PATH."""
    return find_compiler(given, "--oshcc", "oshcc")


def _launcher(oshcc: Path) -> Path | None:
    suffix = oshcc.name.removeprefix("oshcc")
    for name in (f"oshrun{suffix}", "oshrun"):
        path = oshcc.parent / name
        if os.access(path, os.X_OK):
            return path
    return None


def suite_sources(folder: Path) -> list[Path]:
    """The sources of the test-suite for OpenSHMEM."""
    places = (folder, folder / "blocks", folder / "experiments", folder / "shmem")
    own = [path for place in places for path in sorted(place.glob("*.c"))]
    return own + turns_source(folder)


def _prepare(name: str, oshcc: Path, context: Context) -> Library:
    folder, launcher = context.locations.suite_sources, _launcher(oshcc)
    if folder is None or not (folder / "shmem").is_dir():
        return missing(name, "OpenSHMEM", "shmem", "the sources of the test-suite are missing")
    if launcher is None:
        return missing(name, "OpenSHMEM", "shmem", no_launcher("oshrun", oshcc))
    with tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as temporary:
        version, maker, failure = _identify(oshcc, launcher, Path(temporary))
    label = " ".join(part for part in ("OpenSHMEM", version, f"({maker or oshcc})") if part)
    record = LibraryRecord(
        library=name, label=label, version=version, kind="shmem", status="build-failed",
        mpicc=str(oshcc), flags=" ".join(COMPILE_FLAGS), detail=failure,
    )  # fmt: skip
    if failure:
        return Library(record)
    headers = [*sorted(folder.glob("*.h")), *sorted(folder.glob("shmem/*.h"))]
    program, key, failure = build(
        oshcc, {}, f"{version} {maker}", context, label,
        name="suite_shmem", files=suite_sources(folder), headers=headers, include=folder,
    )  # fmt: skip
    if failure:
        return Library(replace(record, detail=failure))
    open_mpi = maker.startswith("Open MPI")
    before = _SAME_ADDRESSES if maker == _SANDIA and shutil.which(_SAME_ADDRESSES[0]) else ()

    def start(how: Start) -> tuple[str, ...]:
        words = (*before, str(launcher), "-n", str(how.processes))
        crowd = ("--oversubscribe",) if open_mpi and context.cpus < how.processes else ()
        return (*words, "--bind-to", "none", *crowd) if open_mpi else words

    def start_between(hosts: Hosts, processes: int) -> tuple[str, ...]:
        where = ",".join(f"{host}:{count}" for host, count in hosts.blocks(processes))
        words = (str(launcher), "-n", str(processes), "--host", where, "--map-by", "slot")
        return (*words, "--oversubscribe", "--bind-to", "none", *(
            word for variable in _HEAP for word in ("-x", variable)
        ))  # fmt: skip

    variables = dict.fromkeys(AS_ROOT, "1") if open_mpi and os.geteuid() == 0 else {}
    library = Library(
        record=replace(record, status="ready", launcher=" ".join(start(Start()))),
        cells=SHMEM_CELLS,
        environment={**_HEAP, **variables},
        fingerprint=key,
        suite=lambda how: (*start(how), str(program)),
        suite_kind="shmem",
    )

    def between(hosts: Hosts) -> Library:
        return between_hosts(
            library,
            hosts,
            lambda how: start_between(hosts, how.processes),
            program,
            {"OMPI_MCA_plm_rsh_agent": hosts.agent},
        )

    return replace(library, between=between) if open_mpi else library


def _identify(oshcc: Path, launcher: Path, folder: Path) -> tuple[str, str, str]:
    """The version of the interface, its maker as far as the launcher tells, and the reason if
    neither is known."""
    (folder / "identify.c").write_text(_IDENTIFY_SOURCE, encoding="utf-8")
    try:
        command = [str(oshcc), "-o", "identify", "identify.c"]
        compiled = run_tool(command, {}, folder, _IDENTIFY_LIMIT_S)
        if failure := failure_of(oshcc.name, compiled, _IDENTIFY_LIMIT_S):
            return "", "", failure
        if not (folder / "identify").exists():
            return "", "", made_nothing(oshcc, "OpenSHMEM")
        said = run_tool([str(folder / "identify")], {}, folder, _IDENTIFY_LIMIT_S)
        if failure := failure_of("identify", said, _IDENTIFY_LIMIT_S):
            return "", "", failure
        told = run_tool([str(launcher), "--version"], {}, folder, _IDENTIFY_LIMIT_S)
    except OSError as error:
        return "", "", f"{oshcc} cannot be run: {system_reason(error)}"
    version, _, vendor = said.output.strip().partition(" ")
    if found := re.search(r"\((?:OpenRTE|Open MPI)\) v?([0-9][\w.]*)", told.output):
        return version, f"Open MPI {found[1]}", ""
    return version, _SANDIA if vendor.startswith(_SANDIA) else "", ""
