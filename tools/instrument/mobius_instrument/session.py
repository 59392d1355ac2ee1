# SPDX-License-Identifier: BSD-3-Clause
"""A run from the request to the last launch: prepare, plan, resume, launch, record."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from mobius_instrument import SCHEMA_VERSION
from mobius_instrument.cells import EXPERIMENTS, Cell, format_bytes
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.host import allowed_cpus, choose_pins, describe_host
from mobius_instrument.launch import Launch, LaunchReport
from mobius_instrument.libraries.base import Candidate, Context, Library
from mobius_instrument.libraries.discover import choose, discover
from mobius_instrument.locations import Locations, locate
from mobius_instrument.plan import DEFAULT_EFFORT, FULL_EFFORT, Effort, Plan, default_sizes
from mobius_instrument.progress import RunProgress, format_duration
from mobius_instrument.results import (
    RESULTS_NAME,
    Outcome,
    Record,
    Results,
    ResultsWriter,
    read_results,
    set_aside,
)

# A library of which so many launches in a row end no cell is not tried further.
_MOST_BARREN_LAUNCHES: Final = 4
DEFAULT_STALL_S: Final = 30.0


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    out: Path
    experiments: tuple[str, ...] = tuple(EXPERIMENTS)
    wanted: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    mpiccs: tuple[Path, ...] = ()
    install: bool = True
    intel: bool = False
    sizes: tuple[int, ...] = ()
    repeats: int | None = None
    full: bool = False
    fresh: bool = False
    stall_s: float = DEFAULT_STALL_S
    seed: int = 1

    @property
    def effort(self) -> Effort:
        """How long and how often to measure."""
        effort = FULL_EFFORT if self.full else DEFAULT_EFFORT
        if self.repeats is None:
            return effort
        return Effort(self.repeats, effort.min_samples, effort.max_seconds)


def say(console: Console, text: str) -> None:
    """Print a line as it is, never wrapped or coloured."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def find_candidates(request: Request, locations: Locations) -> list[Candidate]:
    """The libraries that the request may measure."""
    intel = request.intel or "intel" in request.wanted
    return discover(locations, request.mpiccs, request.install, intel)


def check_writable(folder: Path) -> None:
    """Now, and not after minutes of building and measuring."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InstrumentError(
            f"cannot write to {folder}: {system_reason(error)}; choose another folder with --out"
        ) from error


def run_bench(request: Request, console: Console) -> Path:
    """Measures what the request asks for and is not yet in its results file; returns the file."""
    check_writable(request.out)
    path = request.out / RESULTS_NAME
    if not request.fresh and path.exists() and path.stat().st_size:
        read_results(path)  # Of another schema? Better known before anything is built.
    libraries = _prepare(request, console)
    ready = tuple(library for library in libraries if library.ready)
    if not ready:
        raise InstrumentError(
            "no library can be measured: "
            + "; ".join(f"{library.record.label}: {library.record.detail}" for library in libraries)
        )
    plan = Plan(
        experiments=request.experiments,
        sizes=request.sizes or tuple(default_sizes(request.full)),
        effort=request.effort,
        seed=request.seed,
        libraries=ready,
        host=describe_host(),
    )
    earlier = _earlier(path, plan, request.fresh, console)
    writer = ResultsWriter(path)
    try:
        writer.append(_run_record(plan, libraries, earlier is not None))
        writer.append(*(library.record.to_record() for library in libraries))
        _Session(request, plan, writer, earlier, console).run()
    finally:
        writer.close()
    return path


def _prepare(request: Request, console: Console) -> list[Library]:
    locations = locate()
    candidates = find_candidates(request, locations)
    chosen = choose(candidates, list(request.wanted), list(request.skipped))
    context = Context(locations, lambda text: say(console, text), len(allowed_cpus()))
    libraries = []
    for candidate in chosen:
        library = candidate.prepare(context)
        libraries.append(library)
        if not library.ready:
            record = library.record
            say(console, f"{record.label}: {record.status.replace('-', ' ')}: {record.detail}")
    return libraries


def _earlier(path: Path, plan: Plan, fresh: bool, console: Console) -> Results | None:
    """The results to go on with, if the file has any of this plan; others are renamed."""
    if not path.exists() or not path.stat().st_size:
        return None
    if not fresh:
        earlier = read_results(path)
        for warning in earlier.warnings:
            say(console, f"warning: {warning}")
        if earlier.run.get("plan_hash") == plan.hash:
            return earlier
    kept = set_aside(path)
    why = "as asked" if fresh else "it is of another plan, machine or version"
    say(console, f"the earlier {path.name} is now {kept.name}: {why}")
    return None


def _run_record(plan: Plan, libraries: Sequence[Library], resumed: bool) -> Record:
    versions = [one.record.version for one in libraries if one.record.kind == "mobius"]
    return {
        "type": "run",
        "schema": SCHEMA_VERSION,
        "mobius_version": versions[0] if versions else "",
        "started": datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds"),
        "resumed": resumed,
        "host": plan.host,
        "plan": plan.to_record(),
        "plan_hash": plan.hash,
    }


class _Session:
    """The launches of one run, those that an earlier interrupted one made left out."""

    def __init__(
        self,
        request: Request,
        plan: Plan,
        writer: ResultsWriter,
        earlier: Results | None,
        console: Console,
    ) -> None:
        self._request = request
        self._plan = plan
        self._writer = writer
        self._earlier = earlier
        self._console = console
        self._pins = choose_pins()
        self._given_up = {
            library.name: earlier.given_up(library.name) if earlier else set()
            for library in plan.libraries
        }

    def run(self) -> None:
        plan = self._plan
        repeats = range(plan.effort.repeats)
        work = [
            (repeat, library) for repeat in repeats for library in plan.order(repeat)
            if self._remaining(repeat, library)
        ]  # fmt: skip
        cells = sum(len(self._remaining(*launch)) for launch in work)
        if not work:
            say(
                self._console,
                f"everything is already measured in {self._writer.path}; --fresh measures it again",
            )
            return
        estimate_s = plan.estimate_s(cells, len(work))
        resumed = " (the rest of an interrupted run)" if self._earlier else ""
        say(
            self._console,
            f"measuring {len(plan.libraries)} libraries, {len(plan.sizes)} sizes from"
            f" {format_bytes(plan.sizes[0])} to {format_bytes(plan.sizes[-1])},"
            f" {plan.effort.repeats} launches each: {cells} cells,"
            f" about {format_duration(estimate_s)}{resumed}",
        )
        with RunProgress(self._console, cells, estimate_s) as self._progress:
            for repeat, library in work:
                self._measure(repeat, library)

    def _remaining(self, repeat: int, library: Library) -> list[str]:
        done = self._given_up[library.name]
        if self._earlier:
            done = done | self._earlier.ended_cells(library.name, repeat)
        return [str(cell) for cell in self._plan.cells(library) if str(cell) not in done]

    def _measure(self, repeat: int, library: Library) -> None:
        cells = self._remaining(repeat, library)
        index = 0
        barren = 0
        while cells:
            self._progress.begin_launch(
                f"launch {repeat + 1} of {self._plan.effort.repeats}, {library.record.label}"
            )
            launch = Launch(
                library,
                self._plan,
                self._pins,
                self._request.stall_s,
                lambda records: self._writer.append(*records),
                lambda cell: self._progress.advance(1) if cell else self._progress.tick(),
            )
            report = launch.run(cells, repeat, index)
            failed = self._note(library, report)
            remaining = [cell for cell in cells if cell not in report.ended and cell not in failed]
            barren = 0 if report.ended else barren + 1
            if remaining and (len(remaining) == len(cells) or barren == _MOST_BARREN_LAUNCHES):
                self._give_up(library, repeat, remaining, report, barren)
                remaining = []
            self._progress.advance(len(cells) - len(remaining) - len(report.ended))
            cells = remaining
            index += 1

    def _note(self, library: Library, report: LaunchReport) -> set[str]:
        """Tells what went wrong; returns the cells that are not to be launched again."""
        given_up = self._given_up[library.name]
        failed: set[str] = set()
        for outcome in report.outcomes:
            cell = str(outcome.cell)
            if outcome.status in ("crashed", "hung"):
                failed.add(cell)
            if outcome.status != "wrong":
                given_up.add(cell)
            if outcome.status != "refused":
                self._progress.note(
                    f"{library.record.label}, {cell}: {outcome.status}: {outcome.detail}"
                )
        wrong = any(outcome.status == "wrong" for outcome in report.outcomes)
        if report.status != "ok" and not failed and not wrong:
            self._progress.note(f"{library.record.label}: {report.status}: {report.detail}")
        return failed

    def _give_up(
        self, library: Library, repeat: int, cells: list[str], report: LaunchReport, barren: int
    ) -> None:
        """The launch gave no cell to blame, or too many in a row: all that is left is marked."""
        status = "hung" if report.status == "hung" else "crashed"
        if barren >= _MOST_BARREN_LAUNCHES:
            detail = f"not tried after {barren} launches in a row without a result"
        else:
            detail = f"no cell was begun: {report.detail or 'the probe measured nothing'}"
        outcomes = [
            Outcome(library.name, Cell.parse(cell), repeat, None, status, detail) for cell in cells
        ]
        self._writer.append(*(outcome.to_record() for outcome in outcomes))
        self._given_up[library.name].update(cells)
        if barren >= _MOST_BARREN_LAUNCHES:
            self._progress.note(f"{library.record.label}: {len(cells)} cells {detail}")
