# SPDX-License-Identifier: BSD-3-Clause
"""The command line with a fake MPI, and synthetic results."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import numpy as np
from mobius_instrument.cells import EXPERIMENTS, PAPER1_EXPERIMENTS
from mobius_instrument.cli import main
from mobius_instrument.turns.board import FIRST_ROUND

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parents[1] / "tools" / "instrument"

Times = Callable[[int, int], float]


def call_main(
    arguments: tuple[str, ...], environment: dict[str, str], folder: Path, out: Path, err: Path
) -> None:
    """What `python -m mobius_instrument` does, in a process that is there for this only."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, path in ((1, out), (2, err)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    sys.argv = ["mobius", *arguments]
    main()


@dataclass
class FakeInstrument:
    """The command line with a fake MPI as its only library, in folders of its own."""

    folder: Path
    forks: ForkServerContext
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "report"

    @property
    def log(self) -> Path:
        return self.folder / "launches.log"

    def launches(self) -> list[list[str]]:
        return [line.split(",") for line in self.log.read_text().splitlines()]

    def behave(self, behaviour: dict[str, str]) -> None:
        self.environment["FAKE_PROGRAM"] = json.dumps(behaviour)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "mobius_instrument", *arguments]

    def bench_arguments(self, *experiments: str) -> list[str]:
        return [
            "bench", "--no-peers", "--libs", "mpicc1", "--mpicc", str(HERE / "fake" / "mpicc"),
            "--sizes", "1,2,1k", "--out", str(self.out), "--timeout", "60",
            *(experiments or PAPER1_EXPERIMENTS),
        ]  # fmt: skip

    def full_environment(self) -> dict[str, str]:
        # Compiling the instrument anew at each start would be a third of what starting it costs.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {
            **inherited,
            "PYTHONPATH": str(PACKAGES),
            # The fake program is in Python: this one, not a script that looks for one.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MOBIUS_HOME_BIN": str(self.folder / "bin"),
            "MOBIUS_SUITE_SOURCES": str(self.folder / "suite"),
            "MOBIUS_HOME_CACHE": str(self.folder / "cache"),
            "FAKE_LOG": str(self.log),
            **self.environment,
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What `command` would do, in a fork: half of what that costs is importing."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder) / "out", Path(folder) / "err"
            process = self.forks.Process(
                target=call_main,
                args=(arguments, self.full_environment(), self.folder, out, err),
            )
            process.start()
            process.join()
            code = process.exitcode
            assert code is not None
            said = [path.read_text(encoding="utf-8") for path in (out, err)]
        return subprocess.CompletedProcess(self.command(*arguments), code, *said)

    def bench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Measures the experiments that are named, else those of paper 1."""
        if any(word in EXPERIMENTS or word in ("--only", "--skip") for word in arguments):
            return self.run(*self.bench_arguments(*arguments))
        return self.run(*self.bench_arguments(), *arguments)

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.out / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return [record for line in lines if (record := json.loads(line))["type"] == kind]

    def outcomes(self) -> dict[str, list[tuple[str, int]]]:
        """Status and repeat of every outcome, per cell."""
        found: dict[str, list[tuple[str, int]]] = {}
        for record in self.records("outcome"):
            found.setdefault(record["cell"], []).append((record["status"], record["repeat"]))
        return found


def processes_of(folder: Path) -> list[str]:
    """Command lines of processes that inherited this test's environment."""
    needle = f"FAKE_LOG={folder / 'launches.log'}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found


@dataclass
class SyntheticRun:
    """Synthetic results: times are a function of size and repeat, with a little noise."""

    path: Path
    seed: int = 1
    libraries: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    cells: dict[str, list[str]] = field(default_factory=dict)

    def library(self, name: str, label: str, kind: str = "mpi", **more: str) -> None:
        record = {
            "type": "library", "library": name, "label": label, "version": "1", "kind": kind,
            "status": "ready", **more,
        }  # fmt: skip
        self.libraries.append(record)

    def series(
        self,
        library: str,
        cell: str,
        times: Times,
        *,
        sizes: tuple[int, ...] = (4, 8, 65536, 1048576),
        launches: int = 3,
        noise: float = 0.01,
    ) -> None:
        """`times(bytes, repeat)` is the one-way time in nanoseconds."""
        rng = np.random.default_rng(len(self.lines) + self.seed)
        self.cells.setdefault(library, []).append(cell)
        parts = 2 if cell.startswith("pingpong") else 1
        for repeat in range(launches):
            for size in sizes:
                middle = times(size, repeat) * parts
                samples = middle * (1 + noise * rng.standard_normal(40))
                self.lines.append(
                    {
                        "type": "samples", "library": library, "repeat": repeat, "cell": cell,
                        "bytes": size, "batch": 1, "samples_ns": samples.round(3).tolist(),
                        "verified": True,
                    }
                )  # fmt: skip

    def round(self, number: int, moved: bool = False, start: int = 0) -> None:
        """A round, of which all libraries had a turn; `start` is the first one of its start."""
        self.lines.append(
            {
                "type": "round", "round": FIRST_ROUND + number, "place": 0, "moved": int(moved),
                "turns": [["any", 70.0, 1000, 100]], "stopped": [], "start": FIRST_ROUND + start,
            }
        )  # fmt: skip

    def in_rounds(
        self,
        library: str,
        cell: str,
        time_ns: float,
        *,
        sizes: tuple[int, ...] = (8,),
        rounds: int = 12,
        luck: Sequence[float] = (1.0,),
    ) -> None:
        """A one-way time in each of some rounds, each of which has its own speed. `luck` is of
        as many starts, a factor each."""
        rng = np.random.default_rng(len(self.lines) + self.seed)
        self.cells.setdefault(library, []).append(cell)
        each = 8
        parts = 2 if cell.startswith("pingpong") else 1
        for size in sizes:
            speeds = np.repeat(1 + 0.5 * (np.arange(rounds) % 5), each)
            speeds = speeds * np.repeat(luck, rounds * each // len(luck))
            samples = time_ns * parts * speeds * (1 + 0.001 * rng.standard_normal(rounds * each))
            self.lines.append(
                {
                    "type": "samples", "library": library, "repeat": 0, "cell": cell,
                    "bytes": size, "batch": 1, "samples_ns": samples.round(3).tolist(),
                    "rounds": [[FIRST_ROUND + number, each] for number in range(rounds)],
                    "verified": True,
                }
            )  # fmt: skip

    def fact(
        self, library: str, cell: str, name: str, value: str, number: float, detail: str
    ) -> None:
        """What a cell found out."""
        self.lines.append(
            {
                "type": "fact", "library": library, "repeat": 0, "cell": cell, "name": name,
                "value": value, "number": number, "detail": detail,
            }
        )  # fmt: skip

    def launch(self, library: str, **more: object) -> None:
        """One start of the library's programs."""
        self.lines.append(
            {"type": "launch", "library": library, "repeat": 0, "status": "ok", **more}
        )

    def concert(self, **more: object) -> None:
        """Launches that took turns."""
        self.lines.append({"type": "concert", "repeat": 0, "index": 0, "programs": 2, **more})

    def outcome(self, library: str, cell: str, status: str, detail: str) -> None:
        self.cells.setdefault(library, []).append(cell)
        self.lines.append(
            {
                "type": "outcome", "library": library, "cell": cell, "repeat": 0, "bytes": None,
                "status": status, "detail": detail,
            }
        )  # fmt: skip

    def write(self) -> Path:
        run = {
            "type": "run", "schema": 1, "mobius_version": "0.1.0",
            "started": "2030-01-02T03:04:05+00:00", "plan_hash": "synthetic",
            "host": {"hostname": "synthetic", "cpu": "a CPU", "cores": 2, "kernel": "6.1"},
            "plan": {
                "experiments": ["pingpong", "completion"], "sizes": [4, 8, 65536, 1048576],
                "repeats": 3, "seed": self.seed, "cells": self.cells,
                "libraries": [library["library"] for library in self.libraries],
            },
        }  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in [run, *self.libraries, *self.lines])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text, encoding="utf-8")
        return self.path
