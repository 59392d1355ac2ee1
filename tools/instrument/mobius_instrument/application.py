# SPDX-License-Identifier: BSD-3-Clause
"""Runs an application (apps/) as the instrument runs its own programs: with the command line and
the records of docs/instrument-formats.md.

    application.py START BUILD --cells … --sizes … --out FILE …

START has the words that start the application in processes. BUILD is empty, or the command that
compiles the last word of START where it does not exist yet. For each cell the application runs once
per size.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

# Factorisations of one start; steps of one start and before it.
_REPEATS: Final = 5
_STEPS: Final = 200
_EQUILIBRATE: Final = 100
_ELEMENT_BYTES: Final = 8  # of a matrix
_MOLECULE_BYTES: Final = 72  # positions of a molecule
_BAD_OPTIONS: Final = 2  # the exit code of an application for them: it does not offer the cell


def options_of(cell: str, size: int) -> list[str]:
    """The application's options for a cell; `size` as bytes of the matrix, or of all positions."""
    experiment, operation, _, memory, *pairs = cell.split(":")
    given = dict(pair.split("=", 1) for pair in pairs)
    if experiment == "lu":
        words = ["--size", str(math.isqrt(size // _ELEMENT_BYTES)), "--repeat", str(_REPEATS)]
        words += ["--placement", given["placement"], "--kernel", given["kernel"]]
        words += ["--copy"] if "copy" in given else []
        words += ["--threads", given["procs"]] if memory == "threads" else []
        return words
    if experiment == "global-arrays":
        words = ["--size", str(math.isqrt(size // _ELEMENT_BYTES)), "--repeat", str(_REPEATS)]
        return words + (["--patches"] if operation == "patches" else [])
    words = ["--molecules", str(size // _MOLECULE_BYTES)]
    words += ["--equilibrate", str(_EQUILIBRATE), "--steps", str(_STEPS)]
    return words + [f"--no-{name}" for name in ("balance", "permute") if name in given]


class Output:
    """The file of records."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, kind: str, **fields: object) -> None:
        """One record."""
        self._file.write(json.dumps({"type": kind, **fields}) + "\n")
        self._file.flush()

    def result(self, cell: str, size: int, found: dict[str, Any]) -> None:
        """The records of one run."""
        self.write(
            "samples", cell=cell, bytes=size, batch=1, verified=True,
            samples_ns=[1e9 * seconds for seconds in found["seconds_each"]],
        )  # fmt: skip
        for name in {"communication", "waiting"} & found.keys():
            share = float(found[name])
            self.write(
                "fact", cell=cell, name=name, value=f"{share:.1%}", number=share, detail=str(size)
            )
        checksum = found.get("checksum", "")
        self.write("fact", cell=cell, name="checksum", value=checksum, number=0, detail=str(size))


def run(words: Sequence[str], output: Output) -> tuple[int, str, str]:
    """Exit code and both outputs of a command. A line of its error output, where the applications
    tell how far they are, is a sign of life. Time that passes is none: the program may hang."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
            encoding="utf-8", errors="replace",
        ) as running,
    ):  # fmt: skip
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            output.write("alive")
        code = running.wait()
        out.seek(0)
        return code, out.read(), "".join(said)


def measure(start: Sequence[str], cell: str, sizes: Sequence[int], output: Output) -> bool:
    """One cell; whether its results are right."""
    right = True
    output.write("start", cell=cell)
    for size in sizes:
        code, out, error = run([*start, *options_of(cell, size), "--json"], output)
        last = (error.strip().splitlines() or [f"exit code {code}"])[-1]
        if code == _BAD_OPTIONS:
            output.write("refused", cell=cell, reason=last)
            return right
        try:
            found = json.loads(out.strip().splitlines()[-1])
        except (IndexError, ValueError):
            sys.exit(f"error: {last}")
        # The energy of a run of water as short as this one drifts. The report compares checksums.
        if not cell.startswith("md:") and not found["right"]:
            right = False
            output.write("wrong", cell=cell, bytes=size, reason="it found its result wrong")
            continue
        output.result(cell, size, found)
    output.write("end", cell=cell)
    return right


def build(command: Sequence[str], program: Path, output: Output) -> str:
    """Compiles a program that does not exist; the reason if that fails."""
    if not command or program.exists():
        return ""
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_name(f"{program.name}.{time.monotonic_ns()}")
    code, _, error = run([*command, "-o", str(partial)], output)
    if code != 0:
        found = [line for line in error.splitlines() if "error" in line]
        return f"{command[0]} failed: {(found or ['no reason'])[0]}"
    partial.replace(program)
    return ""


def main() -> int:
    """Measures as the command line says. Returns the exit code: 1 if a result was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("start")
    parser.add_argument("build")
    parser.add_argument("--cells", required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--out", required=True, type=Path)
    arguments, _ = parser.parse_known_args()
    start = shlex.split(arguments.start)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    right = True
    with arguments.out.open("w", encoding="utf-8") as file:
        output = Output(file)
        failure = build(shlex.split(arguments.build), Path(start[-1]), output)
        for cell in arguments.cells.split(","):
            if failure:
                output.write("refused", cell=cell, reason=failure)
            else:
                right &= measure(start, cell, sizes, output)
        output.write("done")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
