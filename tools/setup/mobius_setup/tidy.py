# SPDX-License-Identifier: BSD-3-Clause
"""clang-tidy over the files given, with the commands of a configured build.

A file that was found clean is not looked at again until it, a header of ours, its command, the
configuration or clang-tidy changes: clang-tidy takes seconds per file, a commit touches a few.
Those are looked at each for itself, as build/dev compiles them, so that each has to include what it
uses. Where all files that build/release compiles together are to be looked at, they are together,
too: most of what one costs is the headers that it includes.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SINGLE = Path("build/dev/compile_commands.json")
UNITED = Path("build/release/compile_commands.json")
CACHE = Path(".mobius/cache/tidy")
CLANG_TIDY = Path(".mobius/venv/bin/clang-tidy")
# The folders of headers that a translation unit may include.
HEADER_FOLDERS = ("include", "src", "tools", "bench", "tests")
# The file that CMake writes to compile several files together has such lines.
INCLUDED = re.compile(r'^#include "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Job:
    """One run of clang-tidy: a translation unit, and the files in it that are to be checked."""

    unit: Path
    commands: Path
    files: list[Path]


def headers_digest() -> str:
    """A digest of all our headers: any change of one means that every file is checked again."""
    digest = hashlib.sha256()
    for folder in HEADER_FOLDERS:
        for pattern in ("*.h", "*.hpp"):
            for path in sorted(Path(folder).rglob(pattern)):
                digest.update(str(path).encode() + b"\0" + path.read_bytes())
    digest.update(Path(".clang-tidy").read_bytes())
    version = subprocess.run([str(CLANG_TIDY), "--version"], stdout=subprocess.PIPE, check=True)
    digest.update(version.stdout)
    return digest.hexdigest()


def read_commands(path: Path) -> dict[Path, str]:
    """The compile command of each translation unit of a build."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {
        Path(entry["directory"], entry["file"]).resolve(): entry["command"] for entry in entries
    }


def united() -> dict[Path, list[Path]]:
    """The translation units of build/release that have several files, with their files."""
    units = [unit for unit in read_commands(UNITED) if unit.parent.name == "Unity"]
    return {unit: [Path(name) for name in INCLUDED.findall(unit.read_text())] for unit in units}


def plan(waiting: list[Path]) -> list[Job]:
    """The runs that check each of the files once; the longest runs first."""
    left = {path.resolve(): path for path in waiting}
    jobs = []
    for unit, members in united().items():
        if len(members) > 1 and all(member in left for member in members):
            jobs.append(Job(unit, UNITED.parent, [left.pop(member) for member in members]))
    jobs += [Job(path, SINGLE.parent, [path]) for path in left.values()]
    return sorted(jobs, key=lambda job: -len(job.files))


def check(job: Job) -> tuple[int, str]:
    """Runs clang-tidy on one translation unit; returns its exit code and its findings."""
    # Correct when files are separate: names at the top of one are visible in those after it.
    together = ["--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-shadow"]
    done = subprocess.run(
        [
            str(CLANG_TIDY), "--quiet", "--warnings-as-errors=*", "-p", str(job.commands),
            # The commands are for the compiler in use, which has options that Clang does not know.
            "--extra-arg=-Wno-ignored-optimization-argument",
            "--extra-arg=-Wno-unknown-warning-option",
            "--removed-arg=-mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign",
            *(together if len(job.files) > 1 else []), job.unit,
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    # Standard error has the counts of suppressed warnings; it matters only if stdout is empty.
    return done.returncode, done.stdout or done.stderr


def main(arguments: list[str]) -> int:
    """Checks those of the files that build/dev compiles; the exit code."""
    for path in (SINGLE, UNITED):
        if not path.is_file():
            print(f"no '{path}': configure with ./mobius lint")
            return 1
    commands = read_commands(SINGLE)
    shared = headers_digest()
    marks: dict[Path, Path] = {}
    for argument in arguments:
        path = Path(argument)
        command = commands.get(path.resolve())
        if command is not None:
            key = hashlib.sha256(f"{shared}\0{command}\0".encode() + path.read_bytes()).hexdigest()
            marks[path] = CACHE / key
    CACHE.mkdir(parents=True, exist_ok=True)
    jobs = plan([path for path, mark in marks.items() if not mark.exists()])
    status = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for job, (code, text) in zip(jobs, pool.map(check, jobs), strict=True):
            if code == 0:
                for path in job.files:
                    marks[path].touch()
            else:
                print(f"{', '.join(map(str, job.files))}:\n{text}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
