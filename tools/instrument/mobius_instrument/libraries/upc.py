# SPDX-License-Identifier: BSD-3-Clause
"""UPC on this Möbius: the blocks of bench/suite/upc, compiled by mobupcc."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mobius_instrument.libraries.base import (
    Candidate,
    Context,
    Library,
    hash_files,
    missing,
)
from mobius_instrument.libraries.building import COMPILE_FLAGS, build, turns_source
from mobius_instrument.libraries.own import absent, started_by_mobius
from mobius_instrument.locations import Locations
from mobius_instrument.results import LibraryRecord

_NAME = "mobius-upc"
_LABEL = "UPC on Möbius"


def candidates(locations: Locations) -> list[Candidate]:
    """UPC on this Möbius, built or not."""
    return [
        Candidate(
            name=_NAME,
            description="UPC on this Möbius",
            present=bool(locations.program("mobius") and locations.program("mobupcc")),
            prepare=_prepare,
        )
    ]


def suite_sources(folder: Path) -> list[Path]:
    """The sources of the test-suite for UPC."""
    shared = (folder, folder / "blocks", folder / "experiments")
    return [
        *(path for place in shared for path in sorted(place.glob("*.c"))),
        *sorted((folder / "upc").glob("*.upc")),
        *turns_source(folder),
    ]


def _parts(compiler: Path) -> list[Path]:
    """What programs are made of besides their sources: the translator, headers and libraries, where
    they are beside the compiler of a build tree or an installed one."""
    prefix = compiler.parents[1]
    trees = (prefix, *prefix.parents[1:2])  # the prefix, or the checkout above build/release
    places = (
        *(f"{tree}/mobius_upc" for tree in ("share/mobius/upc", "fronts/upc/translator")),
        *("fronts/upc/include", "include/mobius_upc", "include/mobius"),
    )
    found = [
        path
        for tree in trees
        for place in places
        for path in sorted((tree / place).rglob("*"))
        if path.suffix in (".py", ".h")
    ]
    return found + sorted(prefix.glob("lib*/libmobius*.so"))


def _prepare(context: Context) -> Library:
    locations = context.locations
    mobius, compiler = locations.program("mobius"), locations.program("mobupcc")
    if mobius is None or compiler is None:
        absentee = "mobius" if mobius is None else "mobupcc"
        return absent(_NAME, _LABEL, "front", absentee, locations)
    folder = locations.suite_sources
    if folder is None or not (folder / "upc").is_dir():
        return missing(_NAME, _LABEL, "front", "the sources of the test-suite are missing")
    record = LibraryRecord(
        library=_NAME, label=_LABEL, version="", kind="front", status="build-failed",
        mpicc=str(compiler), flags=" ".join(COMPILE_FLAGS),
    )  # fmt: skip
    parts = hash_files(*_parts(compiler))
    headers = [*sorted(folder.glob("*.h")), *sorted(folder.glob("upc/*.h"))]
    program, key, failure = build(
        compiler, {}, parts, context, _LABEL,
        name="suite_upc", files=suite_sources(folder), headers=headers, include=folder,
    )  # fmt: skip
    if failure:
        return Library(replace(record, detail=failure))

    library = Library(record=record, fingerprint=f"{key}|{hash_files(mobius)}", suite_kind="upc")
    return started_by_mobius(library, mobius, program)
