# SPDX-License-Identifier: BSD-3-Clause
"""ARMCI: our front, and ARMCI-MPI over Debian's MPIs, both with the blocks of bench/suite/armci."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from mobius_instrument.libraries import global_arrays
from mobius_instrument.libraries.base import (
    AS_ROOT,
    Candidate,
    Context,
    Library,
    Start,
    between_hosts,
    hash_files,
    missing,
)
from mobius_instrument.libraries.building import COMPILE_FLAGS, build, no_launcher, turns_source
from mobius_instrument.libraries.mpi import (
    ACROSS,
    MESSAGES,
    MpiPlace,
    describe_version,
    identify,
    launch_rules,
    launcher_for,
    rules_on_hosts,
)
from mobius_instrument.libraries.own import absent, shared_libraries, started_by_mobius
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.results import LibraryRecord

_FIND_LIMIT_S: Final = 20
_PACKAGE: Final = "libarmci-mpi-dev"
# Every ARMCI that may be here.
NAMES: Final = ("armci", *(f"armci-{family}" for family in global_arrays.FAMILIES))


def candidates(locations: Locations) -> list[Candidate]:
    """ARMCI on this Möbius, built or not."""
    return [
        Candidate(
            name="armci",
            description="ARMCI on this Möbius",
            present=bool(locations.program("mobius") and locations.program("suite_armci")),
            prepare=_prepare,
        )
    ]


def _prepare(context: Context) -> Library:
    locations = context.locations
    mobius, suite = locations.program("mobius"), locations.program("suite_armci")
    if mobius is None or suite is None:
        program = "mobius" if mobius is None else "suite_armci"
        return absent("armci", "ARMCI on Möbius", "front", program, locations)
    apps = {name: locations.program(f"{name}-armci") for name in ("lu", "md")}
    parts = shared_libraries(suite, "libarmci*.so*", "libmobius*.so*")
    library = Library(
        record=LibraryRecord("armci", "ARMCI on Möbius", "", "front", "ready"),
        fingerprint=hash_files(mobius, suite, *parts, *filter(None, apps.values())),
        suite_kind="armci",
        applications=global_arrays.on_mobius(mobius, context),
        # Open MPI's launcher, under which a program of Global Arrays may be started.
        environment=dict.fromkeys(AS_ROOT, "1") if os.geteuid() == 0 else {},
    )
    return started_by_mobius(library, mobius, suite, apps)


def beside_mpi() -> list[Candidate]:
    """Debian's ARMCI-MPI, which has a library for each of Debian's MPIs."""
    found = []
    for family in ("openmpi", "mpich"):
        compiler = shutil.which(f"mpicc.{family}")
        archive = archive_of(Path(compiler), family) if compiler else None
        if compiler and archive:
            place = MpiPlace(
                f"armci-{family}", Path(compiler), launcher_for(Path(compiler)), "Debian", {}
            )
            found.append(
                Candidate(
                    name=place.name,
                    description=f"ARMCI-MPI, {archive}",
                    present=True,
                    prepare=lambda context, place=place, archive=archive: _prepare_beside(  # type: ignore[misc]
                        place, archive, context
                    ),
                )
            )
    return found


def archive_of(compiler: Path, family: str) -> Path | None:
    """The library's path, found as the compiler finds it."""
    try:
        said = subprocess.run(
            [str(compiler), f"-print-file-name=libarmci-{family}.a"],
            capture_output=True, text=True, check=False, timeout=_FIND_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    path = Path(said.stdout.strip())
    return path if path.is_absolute() and path.is_file() else None


def suite_sources(folder: Path) -> list[Path]:
    """The sources of the test-suite for ARMCI."""
    places = (folder, folder / "blocks", folder / "experiments", folder / "armci")
    own = [path for place in places for path in sorted(place.glob("*.c"))]
    return own + turns_source(folder)


def _prepare_beside(place: MpiPlace, archive: Path, context: Context) -> Library:
    name, folder = place.name, context.locations.suite_sources
    if folder is None or not (folder / "armci").is_dir():
        return missing(name, "ARMCI-MPI", "armci", "the sources of the test-suite are missing")
    if place.launcher is None:
        return missing(name, "ARMCI-MPI", "armci", no_launcher("mpiexec", place.mpicc))
    launcher = place.launcher
    text, failure = identify(place)
    unknown = ("", name.removeprefix("armci-"), "")
    family, mpi_name, version = unknown if failure else describe_version(text)
    label = " ".join(part for part in ("ARMCI-MPI over", mpi_name, version) if part)
    record = LibraryRecord(
        library=name, label=label, version=version, kind="armci", status="build-failed",
        mpicc=str(place.mpicc), flags=" ".join(COMPILE_FLAGS), detail=failure,
    )  # fmt: skip
    if failure:
        return Library(record)
    headers = [*sorted(folder.glob("*.h")), *sorted(folder.glob("armci/*.h"))]
    program, key, failure = build(
        place.mpicc, {}, text, context, label,
        name="suite_armci", files=suite_sources(folder), headers=headers, include=folder,
        libraries=(archive,),
    )  # fmt: skip
    if failure:
        detail = f"{failure}; its headers are in {_PACKAGE}"
        return Library(replace(record, detail=detail))

    def start(how: Start) -> tuple[str, ...]:
        rules, _ = launch_rules(family, launcher, context.cpus, how)
        return *rules, str(program)

    command, environment = launch_rules(family, launcher, context.cpus, Start())
    library = Library(
        record=replace(record, status="ready", launcher=" ".join(command)),
        environment=environment,
        fingerprint=key,
        suite=start,
        suite_kind="armci",
        applications=global_arrays.application(
            place, family, (str(archive),), context, global_arrays.settings_for(family, version)
        ),
        by_messages=(lambda count: start(Start(count, count))) if family in MESSAGES else None,
        messages_environment=MESSAGES.get(family, {}),
    )

    def between(hosts: Hosts) -> Library:
        _, variables = rules_on_hosts(family, place, version, hosts, Start())
        return between_hosts(
            library,
            hosts,
            lambda how: rules_on_hosts(family, place, version, hosts, how)[0],
            program,
            variables,
        )

    return replace(library, between=between) if family in ACROSS else library
