# SPDX-License-Identifier: BSD-3-Clause
"""Records the applications, LU and water: the same program over several libraries, by turns.

Each round starts every program once, so that whatever changes on the machine from one minute to the
next changes for all. A ratio is the median of the ratios of the rounds. Processes and threads are
bound to processors: without that, a system may leave two of them on one processor for a while,
whatever the library.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mobius_setup.docs.recording import DocsError, Figure
from mobius_setup.docs.running import PROGRAMS

Result = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """One program in one setting."""

    name: str
    words: tuple[str, ...]
    # The programs whose times it is compared with, in the same round.
    beside: tuple[str, ...] = ()
    # So many run at once and know nothing of each other.
    copies: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


def _run(root: Path, program: Program, options: Sequence[str]) -> Result:
    """The result of a program; of several copies, that of the one that took longest."""
    words = [*program.words, *options, "--json"]
    running = [
        subprocess.Popen(
            words if program.copies == 1 else ["taskset", "-c", str(copy), *words],
            cwd=root, env={**os.environ, **program.environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for copy in range(program.copies)
    ]  # fmt: skip
    results = []
    for one in running:
        out, error = one.communicate()
        try:
            results.append(json.loads(out.splitlines()[-1]))
        except (IndexError, ValueError) as damaged:
            raise DocsError(f"'{' '.join(words)}' has no result: {error.strip()}") from damaged
    return max(results, key=lambda result: float(result["seconds"]))


def _seconds(results: Sequence[Result]) -> list[float]:
    return [float(result["seconds"]) for result in results]


def by_turns(
    root: Path, key: str, programs: Sequence[Program], options: Sequence[str], rounds: int,
    steps: int = 1,
) -> list[Figure]:  # fmt: skip
    """Figures of programs that solve the same problem, and must give the same bits. Times are those
    of a step, if there are several."""
    found: dict[str, list[Result]] = {program.name: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            found[program.name].append(_run(root, program, options))
    ends = {result["checksum"] for results in found.values() for result in results}
    if len(ends) != 1:
        raise DocsError(f"{key}: the programs give different results, so none is recorded")
    figures = []
    for program in programs:
        seconds = _seconds(found[program.name])
        figure: Figure = {
            "key": f"{key} {program.name}", "ns": round(1e9 * statistics.median(seconds) / steps),
            "low_ns": round(1e9 * min(seconds) / steps),
            "high_ns": round(1e9 * max(seconds) / steps),
            "launches": rounds,
        }  # fmt: skip
        for share in ("communication", "waiting", "between_hosts"):
            if share in found[program.name][0]:
                values = [float(result[share]) for result in found[program.name]]
                figure[share] = round(statistics.median(values), 4)
        for other in program.beside:
            ratios = [mine / its for mine, its in zip(seconds, _seconds(found[other]), strict=True)]
            middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
            figure.setdefault("ratios", {})[other] = [round(x, 4) for x in (middle, low, high)]
        figures.append(figure)
    return figures


@dataclass(frozen=True)
class _Mpi:
    """An MPI that compiles the applications: MPICH, for its messages between processes that share
    no memory can be asked for in one word."""

    compilers: Path
    suffix: str
    launcher: str
    label: str

    def build(self, root: Path, folder: Path, app: str, file: str) -> tuple[str, ...]:
        """The words that start an application in two processes."""
        language, flags = ("mpicc", ()) if app == "lu" else ("mpicxx", ("-std=c++20",))
        sources = [*sorted((root / "apps" / app).glob("*.c*")), root / "apps" / app / file]
        program = folder / f"{app}-{Path(file).stem}"
        command = [
            str(self.compilers / f"{language}{self.suffix}"), "-O3", *flags,
            *(str(path) for path in sources if path.suffix in (".c", ".cpp")),
            "-lm", "-ldl", "-o", str(program),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        if done.returncode != 0:
            raise DocsError(f"{command[0]} failed: {done.stderr.strip()}")
        return self.launcher, "-n", "2", "-bind-to", "hwthread", str(program)


def _mpich(root: Path) -> _Mpi | None:
    """The one from PyPI that the tests use, or else Debian's; none where neither is."""
    peers, system = root / ".mobius/peers/mpich/bin", shutil.which("mpiexec.mpich")
    if (peers / "mpicc").is_file():
        folder, suffix, launcher = peers, "", str(peers / "mpiexec")
    elif system is not None:
        folder, suffix, launcher = Path(system).parent, ".mpich", system
    else:
        return None
    told = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"Version:\s+(\S+)", told)
    return _Mpi(folder, suffix, launcher, f"MPICH {version[1]}" if version else "MPICH")


# Processes of MPICH that share no memory, over the network that Möbius' virtual hosts use.
_APART: Final = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp",
                 "FI_TCP_IFACE": "lo"}  # fmt: skip


def _mobius(processes: int, program: str, *options: str, hosts: int = 1) -> tuple[str, ...]:
    apart = ("--virtual-hosts", str(hosts)) if hosts > 1 else ()
    run = (str(PROGRAMS / "mobius"), "run", "-n", str(processes), *apart, "--bind", "core")
    return *run, str(PROGRAMS / program), *options


def _over_mpi(
    root: Path, folder: Path, app: str, files: Iterable[tuple[str, str]], beside: str,
    options: tuple[str, ...] = (), environment: Mapping[str, str] | None = None,
) -> tuple[list[Figure], list[Program]]:  # fmt: skip
    """The application over MPI, where there is one: its label, and the programs."""
    mpi = _mpich(root)
    if mpi is None:
        return [], []
    programs = [
        Program(
            name, (*mpi.build(root, folder, app, file), *options), (beside,), 1, environment or {}
        )
        for name, file in files
    ]
    return [{"key": "label mpi", "label": mpi.label}], programs


_ORDERS: Final = ((512, 3, 5), (1024, 3, 5), (3072, 1, 3))  # repeats of a start, rounds


def lu(root: Path, kernel: str) -> list[Figure]:
    """LU on one host: processes beside threads."""

    def threads(count: int, placement: str) -> tuple[str, ...]:
        return (
            str(PROGRAMS / "lu-threads"),
            "--threads",
            str(count),
            "--bind",
            "--placement",
            placement,
        )

    programs = [
        Program("1 thread", threads(1, "cyclic")),
        Program("2 apart", threads(1, "cyclic"), ("1 thread",), 2),
    ]
    for name in ("block", "cyclic"):
        programs += [
            Program(f"threads {name}", threads(2, name), ("1 thread",)),
            Program(
                f"processes {name}", _mobius(2, "lu", "--placement", name),
                (f"threads {name}", "1 thread"),
            ),
        ]  # fmt: skip
    placed, beside = ("--placement", "cyclic"), ("threads cyclic",)
    programs += [
        Program("copying", _mobius(2, "lu", *placed, "--copy"), beside),
        Program("armci", _mobius(2, "lu-armci", *placed), beside),
    ]
    with tempfile.TemporaryDirectory(prefix="mob-") as folder:
        figures, others = _over_mpi(
            root, Path(folder), "lu", [("mpi", "world/mpi.c")], "threads cyclic", placed
        )
        for size, repeats, rounds in _ORDERS:
            options = ("--size", str(size), "--repeat", str(repeats), "--kernel", kernel)
            figures += by_turns(root, f"{size} {kernel}", [*programs, *others], options, rounds)
    return figures


def lu_hosts(root: Path) -> list[Figure]:
    """LU on two virtual hosts: the placements."""
    figures: list[Figure] = []
    for processes in (2, 4):
        programs = [
            Program(
                name, _mobius(processes, "lu", "--placement", name, hosts=2),
                () if name == "hybrid" else ("hybrid",),
            )
            for name in ("hybrid", "cyclic", "block")
        ]  # fmt: skip
        for kernel in ("plain", "blas"):
            for size, repeats, rounds in ((512, 3, 3), (1024, 3, 3), (3072, 1, 2)):
                options = ("--size", str(size), "--repeat", str(repeats), "--kernel", kernel)
                key = f"{size} {kernel} {processes}"
                figures += by_turns(root, key, programs, options, rounds)
    return figures


_MESSAGES: Final = [("messages", "processes/messages.cpp"), ("mpi", "processes/mpi.cpp")]
_MOLECULES: Final = ((216, 200, 7), (1000, 100, 5), (4096, 40, 3))  # steps, rounds


def _water(molecules: int, steps: int) -> tuple[str, ...]:
    return "--molecules", str(molecules), "--equilibrate", "20", "--steps", str(steps)


def md(root: Path) -> list[Figure]:
    """Water on one host: beside one process, and beside the same program with messages."""
    programs = [
        Program("1 process", _mobius(1, "md")),
        Program("2 apart", _mobius(1, "md"), ("1 process",), copies=2),
        Program("2 processes", _mobius(2, "md"), ("1 process",)),
        Program("armci", _mobius(2, "md-armci"), ("2 processes",)),
    ]
    with tempfile.TemporaryDirectory(prefix="mob-") as folder:
        figures, others = _over_mpi(root, Path(folder), "md", _MESSAGES, "2 processes")
        for molecules, steps, rounds in _MOLECULES:
            options = _water(molecules, steps)
            figures += by_turns(root, f"{molecules}", [*programs, *others], options, rounds, steps)
    return figures


def md_hosts(root: Path) -> list[Figure]:
    """Water on two virtual hosts: beside shared memory, and beside messages over the network."""
    programs = [
        Program("one host", _mobius(2, "md"), ("two hosts",)),
        Program("two hosts", _mobius(2, "md", hosts=2)),
        Program("armci", _mobius(2, "md-armci", hosts=2), ("two hosts",)),
    ]
    with tempfile.TemporaryDirectory(prefix="mob-") as folder:
        figures, others = _over_mpi(
            root, Path(folder), "md", _MESSAGES, "two hosts", environment=_APART
        )
        for molecules, steps, rounds in _MOLECULES:
            options = _water(molecules, steps)
            figures += by_turns(root, f"{molecules}", [*programs, *others], options, rounds, steps)
    return figures
