# SPDX-License-Identifier: BSD-3-Clause
"""Building a program with a library's own compiler, into the cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.libraries.base import Context
from mobius_instrument.machine.processes import Ended, clean_environment, run_watched

COMPILE_FLAGS: Final = ("-std=gnu99", "-O3")
COMPILE_LIMIT_S: Final = 180.0
# Packages without the compiler or launcher that they belong to: both are packages of their own.
_DEBIAN_PACKAGES: Final = {"mpi.h": "libopenmpi-dev or libmpich-dev", "shmem.h": "libopenmpi-dev"}
_MISSING_HEADER: Final = re.compile(r"fatal error: (\S+): No such file")


def find_compiler(given: str, option: str, usual: str) -> Path:
    """The compiler that `option` names: a path where it has a slash, else a name to find in PATH.

    `usual` is what such compilers are called. The text is taken as it is given: to pathlib `./x` is
    `x`, which is another program where there is an `x` in PATH.
    """
    found = shutil.which(given)
    if found is not None:
        return Path(found).absolute()
    path = Path(given)
    if not given:
        problem = f"no compiler is named; write for example {option} {usual}"
    elif "/" not in given:
        here = path.is_file() and os.access(path, os.X_OK)
        remedy = f"./{given} for the one in this folder" if here else f"its path, as /…/bin/{usual}"
        problem = f"there is no program '{given}' in PATH; write {remedy}"
    elif path.is_dir():
        places = [place for place in (path / usual, path / "bin" / usual) if place.is_file()]
        there = places[0] if places else f"{path}/{usual}"
        problem = f"'{given}' is a folder; name the compiler itself, as {there}"
    elif path.exists():
        problem = f"'{given}' may not be executed; chmod +x it, if it is the compiler"
    else:
        seen = "" if path.is_absolute() else f" (seen from '{Path.cwd()}')"
        problem = f"there is no file '{given}'{seen}; name the {usual} of an installed library"
    raise InstrumentError(f"{option}: {problem}")


def turns_source(folder: Path) -> list[Path]:
    """The part of every program that takes turns, beside the folder of the program."""
    return sorted((folder.parent / "turns").glob("turns.c"))


def no_launcher(launcher: str, compiler: Path) -> str:
    """The message about a compiler without the launcher of its library."""
    return (
        f"there is no {launcher} beside '{compiler}', so nothing can be started; install the"
        " library's launcher there, or name a compiler that has one beside it"
    )


def made_nothing(compiler: Path, kind: str) -> str:
    """The message about a compiler that exited with 0 and wrote no program."""
    return f"'{compiler}' made no program, and told no error: it is no compiler of {kind}"


def run_tool(
    command: list[str], environment: Mapping[str, str], folder: Path, limit_s: float
) -> Ended:
    """Runs a program to its end, for `limit_s` at most."""
    return run_watched(
        command,
        environment=clean_environment({**environment, "LC_ALL": "C"}),
        folder=folder,
        stall_s=limit_s,
        progress=lambda: False,
    )


def failure_of(what: str, ended: Ended, limit_s: float) -> str:
    """Why a program that was run has failed, in one line; empty on success."""
    if ended.hung:
        return f"{what} did not end within {limit_s:.0f} s"
    if ended.exit_code == 0:
        return ""
    lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|undefined|not found|cannot", line, re.I)]
    reason = (telling or lines or ["no message"])[0]
    return f"{what} failed (exit code {ended.exit_code}): {reason[:300]}{_remedy(reason)}"


def _remedy(reason: str) -> str:
    """The packages to install if a library's compiler is there without its headers."""
    missing = _MISSING_HEADER.search(reason)
    packages = _DEBIAN_PACKAGES.get(missing[1], "") if missing else ""
    return f"; its development files are missing: on Debian, install {packages}" if packages else ""


def build(
    compiler: Path,
    environment: Mapping[str, str],
    version_text: str,
    context: Context,
    label: str,
    *,
    name: str,
    files: list[Path],
    headers: list[Path],
    include: Path,
    libraries: tuple[Path, ...] = (),
) -> tuple[Path, str, str]:
    """A program of the cache, built if it is missing; its key, and the reason if it could not be
    built ("" on success)."""
    digest = hashlib.sha256()
    headers = [*headers, *sorted((include.parent / "turns").glob("*.h"))]
    for path in (*files, *headers, *libraries):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    parts = (str(compiler), version_text, *COMPILE_FLAGS)
    digest.update("\0".join(parts).encode())
    if compiler.is_file():
        digest.update(compiler.read_bytes())
    key = digest.hexdigest()[:16]
    program = context.locations.cache / "programs" / key / name
    if program.is_file():
        return program, key, ""
    context.announce(f"building {name} with {label} …")
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        partial = program.with_name(f"{name}.{os.getpid()}")
        command = [str(compiler), *COMPILE_FLAGS, "-I", str(include), "-o", str(partial)]
        command += [*map(str, (*files, *libraries)), "-lm", "-pthread"]
        ended = run_tool(command, environment, program.parent, COMPILE_LIMIT_S)
        failure = failure_of(f"{compiler.name}", ended, COMPILE_LIMIT_S)
        if not failure:
            partial.replace(program)
        return program, key, failure
    except OSError as error:
        return program, key, f"cannot build in {program.parent}: {system_reason(error)}"
