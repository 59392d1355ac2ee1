# SPDX-License-Identifier: BSD-3-Clause
"""A run from the request to the last launch: prepare, plan, resume, launch, record."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from mobius_instrument import SCHEMA_VERSION
from mobius_instrument.cells import PAPER1_EXPERIMENTS, Cell, format_bytes
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.experiments import APPLICATIONS, SUITE_MOST_BYTES, Job
from mobius_instrument.launch import Launch, LaunchReport
from mobius_instrument.libraries import global_arrays
from mobius_instrument.libraries.base import PROCESSES, Library
from mobius_instrument.locations import locate
from mobius_instrument.machine.distance import Distance
from mobius_instrument.machine.host import choose_pins, describe_host
from mobius_instrument.machine.hosts import Hosts, opened
from mobius_instrument.plan import Plan, default_sizes
from mobius_instrument.prepare import prepare_libraries
from mobius_instrument.progress import RunProgress, format_duration, say
from mobius_instrument.request import Request
from mobius_instrument.results import (
    RESULTS_NAME,
    Outcome,
    Record,
    Results,
    ResultsWriter,
    read_results,
    set_aside,
)
from mobius_instrument.steps import Step, plan_steps
from mobius_instrument.turns.board import FIRST_ROUND, PLACES_OF_GROUP
from mobius_instrument.turns.concert import Concert, Part

# Some experiments need an option or packages. The instrument says so when the user asks for such an
# experiment and no library here can be measured in it.
_NEEDS: Final = {
    "schedule": "schedule needs --hosts",
    global_arrays.NAME: (
        "global-arrays needs Debian's packages libglobalarrays-dev, libscalapack-mpich-dev and"
        " liblapack-dev, and for the ARMCI to compare with libarmci-mpi-dev"
    ),
}


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def check_writable(folder: Path) -> None:
    """Fails now, not after minutes of building and measuring."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InstrumentError(
            f"cannot write to {folder}: {system_reason(error)}; choose another folder with --out"
        ) from error


def run_bench(request: Request, console: Console) -> Path:
    """Measures what the request asks for and its results file does not have; returns the file."""
    check_writable(request.out)
    path = request.out / RESULTS_NAME
    if not request.fresh and path.exists() and path.stat().st_size:
        read_results(path)  # Fails before anything is built if the file has another schema.
    with opened(request.hosts, request.agent, request.interface) as hosts:
        return _run(request, path, hosts, console)


def _run(request: Request, path: Path, hosts: Hosts | None, console: Console) -> Path:
    libraries = prepare_libraries(request, hosts, console)
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
        full=request.full,
        sizes_given=bool(request.sizes),
        repeats_given=request.repeats is not None,
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


def _earlier(path: Path, plan: Plan, fresh: bool, console: Console) -> Results | None:
    """The results to continue with, if the file has some of this plan; other files are renamed."""
    if not path.exists() or not path.stat().st_size:
        return None
    why = "as asked"
    if not fresh:
        earlier = read_results(path)
        for warning in earlier.warnings:
            say(console, f"warning: {warning}")
        if earlier.run.get("plan_hash") == plan.hash:
            return earlier
        why = _why_other(earlier, plan)
    kept = set_aside(path)
    say(console, f"the earlier {path.name} is now {kept.name}: {why}")
    return None


def _why_other(earlier: Results, plan: Plan) -> str:
    """The difference between a run and the plan, in words."""
    if any(earlier.host.get(name) != plan.host.get(name) for name in ("hostname", "cpu", "cores")):
        return (
            f"it is of another machine ({earlier.host.get('hostname', '?')},"
            f" {earlier.host.get('cpu', '?')})"
        )
    if earlier.plan != json.loads(json.dumps(plan.to_record())):
        return "its plan was another one"
    return "the measured programs, libraries or the kernel have changed since"


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


class _BudgetSpentError(Exception):
    """The time budget was used up within a launch, whose measurements are kept."""


class _Session:
    """The steps of one run, without what an earlier, interrupted run has measured."""

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
        self._distance = Distance(locate().program("suite_limits"), self._pins)
        self._conductor = locate().program("conductor")
        known = earlier.rounds if earlier else {}
        self._next_round = max(known, default=FIRST_ROUND - 1) + 1
        self._began = time.monotonic()
        self._told: set[tuple[str, str]] = set()
        self._given_up = {
            library.name: earlier.given_up(library.name) if earlier else set()
            for library in plan.libraries
        }
        # Cells that are done in this run, by library and repeat.
        self._done: dict[tuple[str, int], set[str]] = {}

    def run(self) -> None:
        plan = self._plan
        steps = plan_steps(plan, self._remaining, self._conductor is not None)
        cells = sum(step.cells for step in steps)
        if not steps and not any(plan.jobs(library) for library in plan.libraries):
            raise InstrumentError(
                "there is nothing to measure: these libraries have none of the experiments"
                f" ({'; '.join(_NEEDS.values())}), or the sizes are above"
                f" {format_bytes(SUITE_MOST_BYTES)} or beyond this machine's memory"
            )
        if not steps:
            say(
                self._console,
                f"everything is already measured in {self._writer.path}; --fresh measures it again",
            )
            return
        self._say_what_is_left_out(steps)
        planned_s = sum(step.seconds for step in steps)
        resumed = " (the rest of an interrupted run)" if self._earlier else ""
        say(
            self._console,
            f"measuring {_count(len(plan.libraries), 'library', 'libraries')},"
            f" {_count(len(plan.experiments), 'experiment', 'experiments')}:"
            f" {_count(cells, 'cell', 'cells')} in {_count(len(steps), 'step', 'steps')},"
            f" about {format_duration(planned_s)}{resumed}",
        )
        with RunProgress(self._console, planned_s) as self._progress:
            try:
                for step in steps:
                    self._spend()
                    self._measure(step)
            except _BudgetSpentError:
                left = sum(
                    len(self._remaining(step.repeat, part.library, part.job))
                    for step in steps
                    for part in step.parts
                )
                self._progress.note(
                    f"the time budget is used up; {_count(left, 'cell', 'cells')} left: the"
                    " same command goes on with them"
                )

    def _say_what_is_left_out(self, steps: Sequence[Step]) -> None:
        measured = {job.experiment for one in self._plan.libraries for job in self._plan.jobs(one)}
        if global_arrays.NAME in {*self._plan.experiments} - measured:
            say(self._console, f"not measured: {_NEEDS[global_arrays.NAME]}")
        most = max(self._request.sizes, default=0)
        asked = {part.job.experiment for step in steps for part in step.parts}
        if most > SUITE_MOST_BYTES and asked.difference(PAPER1_EXPERIMENTS, APPLICATIONS):
            say(
                self._console,
                f"sizes above {format_bytes(SUITE_MOST_BYTES)} are measured in"
                f" {' and '.join(PAPER1_EXPERIMENTS)} only",
            )
        if self._plan.too_large:
            memory = self._plan.host.get("memory_bytes")
            say(
                self._console,
                f"sizes from {format_bytes(min(self._plan.too_large))} on are left out: with"
                " several copies in each process they are beyond this machine's memory"
                f" ({format_bytes(memory if isinstance(memory, int) else 0)})",
            )

    def _spend(self) -> None:
        budget_s = self._request.budget_s
        if budget_s is not None and time.monotonic() - self._began > budget_s:
            raise _BudgetSpentError

    def _remaining(self, repeat: int, library: Library, job: Job) -> list[str]:
        done = self._given_up[library.name] | self._done.get((library.name, repeat), set())
        if self._earlier:
            done = done | self._earlier.ended_cells(library.name, repeat)
        return [str(cell) for cell in job.cells if str(cell) not in done]

    def _stall_s(self, job: Job) -> float:
        return min(self._request.stall_s, job.stall_s) if job.stall_s else self._request.stall_s

    def _measure(self, step: Step) -> None:
        parts = [
            replace(part, groups={cell: part.groups[cell] for cell in cells})
            for part in step.parts
            if (cells := [
                cell for cell in self._remaining(step.repeat, part.library, part.job)
                if cell in part.groups
            ])
        ]  # fmt: skip
        if not parts:
            return
        if step.rounds:
            self._measure_in_turns(replace(step, parts=tuple(parts)))
            return
        (part,) = parts
        self._progress.begin(
            f"{step.experiment}, {part.library.record.label}{_again(step.repeat)}", step.seconds
        )
        self._measure_alone(step.repeat, part.library, part.job, list(part.groups))
        self._progress.end()

    def _measure_alone(
        self, repeat: int, library: Library, job: Job, cells: list[str], index: int = 0
    ) -> None:
        """Launches until each cell was measured or has failed."""
        barren = 0
        total = len(cells)
        ended = 0

        def tick(cell: str | None) -> None:
            nonlocal ended
            if cell is None:
                self._progress.tick()
                return
            ended += 1
            self._progress.advance_to(ended / total)
            self._spend()

        while cells:
            launch = Launch(
                library,
                self._plan,
                job,
                self._pins,
                self._stall_s(job),
                lambda records: self._writer.append(*records),
                tick,
                self._distance,
            )
            try:
                report = launch.run(cells, repeat, index)
            except _BudgetSpentError:
                self._finished(library, repeat, launch.ended)
                raise
            self._finished(library, repeat, report.ended)
            failed = self._note(library, report)
            remaining = [cell for cell in cells if cell not in report.ended and cell not in failed]
            barren = 0 if report.ended else barren + 1
            if remaining and (len(remaining) == len(cells) or barren == job.barren):
                self._give_up(library, repeat, remaining, report, barren, job.barren)
                remaining = []
            if report.status == "hung" and job.dynamic:
                self._give_up_alike(library, job)
            cells = remaining
            index += 1

    def _give_up_alike(self, library: Library, job: Job) -> None:
        """What hangs when processes come later hangs every time, and each wait is long."""
        alike = [one for one in self._plan.jobs(library)
                 if one.dynamic and one.experiment == job.experiment]  # fmt: skip
        cells = {str(cell) for one in alike for cell in one.cells}
        cells -= self._given_up[library.name] | self._done.get((library.name, 0), set())
        if cells:
            outcomes = [
                Outcome(library.name, Cell.parse(cell), 0, None, "hung",
                        "not tried after another cell of this experiment hung")
                for cell in sorted(cells)
            ]  # fmt: skip
            self._writer.append(*(outcome.to_record() for outcome in outcomes))
            self._given_up[library.name].update(cells)

    def _measure_in_turns(self, step: Step) -> None:
        what = f"{step.experiment}, {_count(len(step.parts), 'program', 'programs')} in turns"
        if step.parts[0].job.processes != PROCESSES:
            what += f" of {step.parts[0].job.processes} processes"
        self._progress.begin(what + _again(step.repeat), step.seconds)
        places = _Places(step)
        parts = list(step.parts)
        barren: Counter[object] = Counter()
        index = 0
        while parts:
            reports = self._concert(step, parts, index, places)
            parts = self._go_on_with(step, parts, reports, barren)
            index += 1
        self._progress.end()

    def _concert(
        self, step: Step, parts: Sequence[Part], index: int, places: _Places
    ) -> list[LaunchReport]:
        def listen(record: Record) -> None:
            self._writer.append(record)
            self._next_round = max(self._next_round, int(record["round"]) + 1)
            if index == 0:
                self._progress.advance_to(places.share(int(record["place"])))

        def tick(cell: str | None) -> None:
            self._progress.tick()
            if cell is not None:
                self._spend()

        assert self._conductor is not None
        concert = Concert(
            parts,
            self._plan,
            self._pins,
            max(self._stall_s(part.job) for part in parts),
            self._conductor,
            lambda records: self._keep(step.repeat, records),
            tick,
            listen,
        )
        return concert.run(step.repeat, index, step.rounds, self._next_round)

    def _keep(self, repeat: int, records: Sequence[Record]) -> None:
        self._writer.append(*records)
        for record in records:
            if record["type"] == "launch":
                self._done.setdefault((record["library"], repeat), set()).update(record["ended"])

    def _go_on_with(
        self,
        step: Step,
        parts: Sequence[Part],
        reports: Sequence[LaunchReport],
        barren: Counter[object],
    ) -> list[Part]:
        """The launches to make again: the cells that a failed one has kept from being measured,
        beside Möbius, with which they are compared. `barren` counts the launches of each part that
        had no result, in a row."""
        again: list[Part] = []
        for part, report in zip(parts, reports, strict=True):
            self._finished(part.library, step.repeat, report.ended)
            failed = self._note(part.library, report)
            left = [cell for cell in part.cells if cell not in report.ended and cell not in failed]
            given_up = self._given_up[part.library.name]
            left = [cell for cell in left if cell not in given_up]
            this, most = (part.library.name, part.job.cells), part.job.barren
            barren[this] = 0 if report.ended else barren[this] + 1
            if not left:
                continue
            if (not report.ended and not failed) or barren[this] == most:
                self._give_up(part.library, step.repeat, left, report, barren[this], most)
                continue
            again.append(replace(part, groups={cell: part.groups[cell] for cell in left}))
        names = {part.library.name for part in again}
        beside = [
            part for part in step.parts
            if part.library.record.kind in ("mobius", "limit") and part.library.name not in names
        ]  # fmt: skip
        return [*beside, *again] if again else []

    def _finished(self, library: Library, repeat: int, ended: Sequence[str]) -> None:
        self._done.setdefault((library.name, repeat), set()).update(ended)

    def _note(self, library: Library, report: LaunchReport) -> set[str]:
        """Reports problems; returns the cells that must not be launched again."""
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
        told = (library.name, report.detail)
        if report.status != "ok" and not failed and not wrong and told not in self._told:
            self._told.add(
                told
            )  # Reported once: a library behaves alike at the end of every launch.
            self._progress.note(f"{library.record.label}: {report.status}: {report.detail}")
        return failed

    def _give_up(
        self,
        library: Library,
        repeat: int,
        cells: list[str],
        report: LaunchReport,
        barren: int,
        most: int,
    ) -> None:
        """No cell of the launch can be blamed, or too many in a row failed: marks all remaining
        cells."""
        status = "hung" if report.status == "hung" else "crashed"
        if barren >= most:
            detail = f"not tried after {barren} launches in a row without a result"
        else:
            detail = f"no cell was begun: {report.detail or 'the program measured nothing'}"
        outcomes = [
            Outcome(library.name, Cell.parse(cell), repeat, None, status, detail) for cell in cells
        ]
        self._writer.append(*(outcome.to_record() for outcome in outcomes))
        self._given_up[library.name].update(cells)
        if barren >= most:
            self._progress.note(f"{library.record.label}: {len(cells)} cells {detail}")


def _again(repeat: int) -> str:
    return f", time {repeat + 1}" if repeat else ""


class _Places:
    """How far a concert is: places are sizes, in groups."""

    def __init__(self, step: Step) -> None:
        sizes = max(len(part.job.sizes) for part in step.parts)
        self._parts = 3 if step.experiment == "overlap" else 1
        self._each = sizes * self._parts
        groups = {number for part in step.parts for number in part.groups.values()}
        self._total = max(len(groups), 1) * self._each

    def share(self, place: int) -> float:
        """The share of the work before a place."""
        group, at = divmod(place, PLACES_OF_GROUP)
        return (group * self._each + min(at, self._each)) / self._total
