# SPDX-License-Identifier: BSD-3-Clause
"""A run from the request to the last launch: prepare, plan, resume, launch, record."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from mobius_instrument import SCHEMA_VERSION
from mobius_instrument.cells import EXPERIMENTS, PROBE_EXPERIMENTS, Cell, format_bytes
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.experiments import BETWEEN_HOSTS, SUITE_MOST_BYTES, Job
from mobius_instrument.launch import Launch, LaunchReport
from mobius_instrument.libraries.base import Context, Library
from mobius_instrument.libraries.discover import choose
from mobius_instrument.locations import locate
from mobius_instrument.machine.distance import Distance, Ways, usual_band
from mobius_instrument.machine.host import allowed_cpus, choose_pins, describe_host
from mobius_instrument.machine.hosts import Hosts, opened
from mobius_instrument.plan import Plan, default_sizes
from mobius_instrument.progress import RunProgress, format_duration
from mobius_instrument.request import Request, find_candidates
from mobius_instrument.results import (
    RESULTS_NAME,
    Outcome,
    Record,
    Results,
    ResultsWriter,
    read_results,
    set_aside,
)

# The longest wait, in a whole run, for CPUs to return to their usual distance.
_MOST_WAIT_S: Final = 60.0
_WAIT_S: Final = 0.5


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def say(console: Console, text: str) -> None:
    """Prints a line as it is, without wrapping or colours."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


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
    libraries = _prepare(request, hosts, console)
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
        distance = Distance(locate().program("probe_limits"), choose_pins())
        _Session(request, plan, writer, earlier, console, distance).run()
    finally:
        writer.close()
    return path


def _prepare(request: Request, hosts: Hosts | None, console: Console) -> list[Library]:
    locations = locate()
    candidates = find_candidates(request, locations)
    given = tuple(one.name for one in request.descriptions)
    chosen = choose(candidates, list(request.wanted), list(request.skipped), given)
    context = Context(locations, lambda text: say(console, text), len(allowed_cpus()))
    libraries = []
    for candidate in chosen:
        library = candidate.prepare(context)
        libraries.append(library)
        if not library.ready:
            record = library.record
            say(console, f"{record.label}: {record.status.replace('-', ' ')}: {record.detail}")
    if hosts is None:
        return libraries
    ready = [library for library in libraries if library.ready]
    between = [library.between(hosts) for library in ready if library.between is not None]
    if not between:
        raise InstrumentError("--hosts: none of the libraries can be started on several hosts")
    return [*libraries, *between]


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
    """The launches of one run, without those that an earlier, interrupted run has made."""

    def __init__(
        self,
        request: Request,
        plan: Plan,
        writer: ResultsWriter,
        earlier: Results | None,
        console: Console,
        distance: Distance,
    ) -> None:
        self._request = request
        self._plan = plan
        self._writer = writer
        self._earlier = earlier
        self._console = console
        self._pins = choose_pins()
        self._distance = distance
        # For each library and job; lives as long as the session. Used before and after each launch.
        self._ways: dict[tuple[str, int], list[Ways]] = {}
        self._began = time.monotonic()
        self._told: set[tuple[str, str]] = set()
        self._given_up = {
            library.name: earlier.given_up(library.name) if earlier else set()
            for library in plan.libraries
        }

    def run(self) -> None:
        plan = self._plan
        work = [
            (repeat, library, job) for repeat, library, job in self._order()
            if self._remaining(repeat, library, job)
        ]  # fmt: skip
        cells = sum(len(self._remaining(*launch)) for launch in work)
        if not work and not any(plan.jobs(library) for library in plan.libraries):
            raise InstrumentError(
                "there is nothing to measure: these libraries have none of the experiments"
                f" ({', '.join(BETWEEN_HOSTS)} needs --hosts), or the sizes are above"
                f" {format_bytes(SUITE_MOST_BYTES)} or beyond this machine's memory"
            )
        if not work:
            say(
                self._console,
                f"everything is already measured in {self._writer.path}; --fresh measures it again",
            )
            return
        estimate_s = sum(
            plan.estimate_s(job, len(self._remaining(repeat, library, job)))
            for repeat, library, job in work
        )
        most = max(self._request.sizes, default=0)
        if most > SUITE_MOST_BYTES and any(one.program == "suite" for _, _, one in work):
            say(
                self._console,
                f"sizes above {format_bytes(SUITE_MOST_BYTES)} are measured in"
                f" {' and '.join(PROBE_EXPERIMENTS)} only",
            )
        if plan.too_large:
            memory = plan.host.get("memory_bytes")
            say(
                self._console,
                f"sizes from {format_bytes(min(plan.too_large))} on are left out: with several"
                " copies in each process they are beyond this machine's memory"
                f" ({format_bytes(memory if isinstance(memory, int) else 0)})",
            )
        resumed = " (the rest of an interrupted run)" if self._earlier else ""
        say(
            self._console,
            f"measuring {_count(len(plan.libraries), 'library', 'libraries')},"
            f" {_count(len(plan.experiments), 'experiment', 'experiments')}:"
            f" {_count(cells, 'cell', 'cells')} in {_count(len(work), 'launch', 'launches')},"
            f" about {format_duration(estimate_s)}{resumed}",
        )
        with RunProgress(self._console, cells, estimate_s) as self._progress:
            try:
                for launch in work:
                    self._spend()
                    self._measure(*launch)
                self._measure_at_usual_distance(work)
            except _BudgetSpentError:
                left = self._progress.left
                self._progress.note(
                    f"the time budget is used up; {_count(left, 'cell', 'cells')} left: the"
                    " same command goes on with them"
                )

    def _order(self) -> Iterator[tuple[int, Library, Job]]:
        """Launches in turn: repeats, in each of them experiments, in each of them libraries, so
        that changes of the machine affect all libraries alike."""
        plan = self._plan
        jobs = {library.name: plan.jobs(library) for library in plan.libraries}
        names = dict.fromkeys(job.experiment for found in jobs.values() for job in found)
        order = [name for name in EXPERIMENTS if name in names]
        for repeat in range(plan.effort.repeats):
            for name in order:
                for library in plan.order(repeat):
                    for job in jobs[library.name]:
                        if job.experiment == name and repeat < plan.effort_of(job).repeats:
                            yield repeat, library, job

    def _spend(self) -> None:
        budget_s = self._request.budget_s
        if budget_s is not None and time.monotonic() - self._began > budget_s:
            raise _BudgetSpentError

    def _tick(self, cell: str | None) -> None:
        """Called while a launch runs, and after each of its cells."""
        if cell is None:
            self._progress.tick()
            return
        self._progress.advance(1)
        self._spend()

    def _remaining(self, repeat: int, library: Library, job: Job) -> list[str]:
        done = self._given_up[library.name]
        if self._earlier:
            done = done | self._earlier.ended_cells(library.name, repeat)
        return [str(cell) for cell in job.cells if str(cell) not in done]

    def _measure(self, repeat: int, library: Library, job: Job) -> None:
        cells = self._remaining(repeat, library, job)
        repeats = self._plan.effort_of(job).repeats
        index = 0
        barren = 0
        stall_s = self._request.stall_s
        if job.stall_s:
            stall_s = min(stall_s, job.stall_s)
        while cells:
            self._progress.begin_launch(
                f"launch {repeat + 1} of {repeats}, {job.experiment}, {library.record.label}"
            )
            launch = Launch(
                library,
                self._plan,
                job,
                self._pins,
                stall_s,
                lambda records: self._writer.append(*records),
                self._tick,
                self._distance,
            )
            report = launch.run(cells, repeat, index)
            if report.ways is not None:
                self._ways.setdefault((library.name, id(job)), []).append(report.ways)
            failed = self._note(library, report)
            remaining = [cell for cell in cells if cell not in report.ended and cell not in failed]
            barren = 0 if report.ended else barren + 1
            if remaining and (len(remaining) == len(cells) or barren == job.barren):
                self._give_up(library, repeat, remaining, report, barren, job.barren)
                remaining = []
            self._progress.advance(len(cells) - len(remaining) - len(report.ended))
            cells = remaining
            index += 1

    def _measure_at_usual_distance(self, work: Sequence[tuple[int, Library, Job]]) -> None:
        """Launches that had their CPUs at other distances in every repeat are made once more at the
        usual distance, if the CPUs return to it."""
        band = usual_band([ways for some in self._ways.values() for ways in some])
        if band is None:
            return
        last: dict[tuple[str, int], tuple[int, Library, Job]] = {}
        for repeat, library, job in work:
            last[library.name, id(job)] = repeat, library, job
        again = [
            launch for key, launch in last.items()
            if (met := self._ways.get(key)) and not any(map(band.holds_both, met))
        ]  # fmt: skip
        waited_s = 0.0
        for index, launch in enumerate(again):
            while (way := self._distance.measure()) is not None and not band.holds(way):
                if waited_s >= _MOST_WAIT_S:
                    some = _count(len(again) - index, "launch was", "launches were")
                    self._progress.note(f"{some} only made with the CPUs at unusual distances")
                    return
                if waited_s == 0:
                    self._progress.note("waiting for the CPUs to be at their usual distance again")
                self._progress.tick()
                time.sleep(_WAIT_S)
                waited_s += _WAIT_S
            self._spend()
            self._progress.add(len(launch[2].cells))
            self._measure(*launch)

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
            detail = f"no cell was begun: {report.detail or 'the probe measured nothing'}"
        outcomes = [
            Outcome(library.name, Cell.parse(cell), repeat, None, status, detail) for cell in cells
        ]
        self._writer.append(*(outcome.to_record() for outcome in outcomes))
        self._given_up[library.name].update(cells)
        if barren >= most:
            self._progress.note(f"{library.record.label}: {len(cells)} cells {detail}")
