# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that the user describes in a small file: another MPI, or a variant of a known one.

    [library]
    name = openmpi-pt2pt
    label = Open MPI without osc/rdma
    of = openmpi
    [environment]
    OMPI_MCA_osc = ^rdma

`name` is what --libs takes; `label`, for reports, may lack; `of` is a library of this machine,
instead of which `mpicc` may name the compiler of another MPI; the environment is that of launches.
"""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass, replace
from pathlib import Path

from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.libraries.base import Candidate, Context, Library
from mobius_instrument.libraries.mpi import MpiPlace, check_mpicc, launcher_for, prepare_mpi

_KEYS = {"name", "label", "of", "mpicc"}
_SECTIONS = {"library", "environment"}
# Often wanted selections of components, for --variants.
_VARIANTS = Path(__file__).resolve().parents[1] / "variants"


@dataclass(frozen=True)
class Description:
    """The content of a description. One of `of` and `mpicc` is set."""

    path: Path
    name: str
    label: str
    of: str
    mpicc: Path | None
    environment: dict[str, str]


def read_description(path: Path) -> Description:
    """Reads a description; InstrumentError says what is wrong with it."""

    def wrong(what: str) -> InstrumentError:
        return InstrumentError(f"--library: {path}: {what}")

    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise wrong(system_reason(error)) from error
    except (configparser.Error, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise wrong(f"cannot be understood: {first}") from error
    sections = {name: dict(parser[name]) for name in parser.sections()}
    found = sections.get("library", {})
    unknown = sorted((set(sections) - _SECTIONS) | (set(found) - _KEYS))
    if unknown:
        raise wrong(
            f"unknown {', '.join(unknown)}; there are [library] with {', '.join(sorted(_KEYS))},"
            " and [environment]"
        )
    name = found.get("name", "")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise wrong("name must be of lower-case letters, digits, dots and hyphens")
    of, mpicc = found.get("of", ""), found.get("mpicc", "")
    if bool(of) == bool(mpicc):
        raise wrong("either of (a library of this machine) or mpicc (a compiler) must be there")
    return Description(
        path=path,
        name=name,
        label=found.get("label", ""),
        of=of,
        mpicc=check_mpicc(mpicc, f"--library: {path}: mpicc") if mpicc else None,
        environment=sections.get("environment", {}),
    )


def shipped_variants(known: list[Candidate]) -> tuple[Description, ...]:
    """The instrument's own descriptions, of libraries that are on this machine."""
    names = [candidate.name for candidate in known]
    found = (read_description(path) for path in sorted(_VARIANTS.glob("*.ini")))
    return tuple(one for one in found if one.of in names)


def described(descriptions: tuple[Description, ...], known: list[Candidate]) -> list[Candidate]:
    """A candidate for each description."""
    found: list[Candidate] = []
    for one in descriptions:
        names = [candidate.name for candidate in [*known, *found]]
        if one.name in names:
            raise InstrumentError(
                f"--library: {one.path}: there is a library '{one.name}' already; use another name"
            )
        if one.of and one.of not in names:
            raise InstrumentError(
                f"--library: {one.path}: no library '{one.of}' here; there are {', '.join(names)}"
            )
        base = next((candidate for candidate in known if candidate.name == one.of), None)
        found.append(
            Candidate(
                name=one.name,
                asked=True,
                description=f"{one.of or one.mpicc}, described by {one.path}",
                present=base.present if base else True,
                prepare=lambda context, one=one, base=base: _prepare(one, base, context),  # type: ignore[misc]
            )
        )
    return found


def _prepare(one: Description, base: Candidate | None, context: Context) -> Library:
    if base is not None:
        library = base.prepare(context)
    else:
        assert one.mpicc is not None
        place = MpiPlace(one.name, one.mpicc, launcher_for(one.mpicc), str(one.path.stem), {})
        library = prepare_mpi(place, context)
    label = one.label or f"{library.record.label} – {one.name}"
    shown = " ".join(f"{key}={value}" for key, value in one.environment.items())
    record = replace(
        library.record, library=one.name, label=label,
        launcher=" ".join(part for part in (shown, library.record.launcher) if part),
    )  # fmt: skip
    return replace(
        library,
        record=record,
        environment={**library.environment, **one.environment},
        fingerprint=f"{library.fingerprint}|{shown}",
    )
