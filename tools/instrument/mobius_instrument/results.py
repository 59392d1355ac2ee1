# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes `results.jsonl`: writing loses nothing, reading skips damaged lines and names
them."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mobius_instrument import SCHEMA_VERSION
from mobius_instrument.cells import Cell
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.machine.distance import Band, Ways, usual_band, ways_of
from mobius_instrument.turns.board import FIRST_ROUND

if TYPE_CHECKING:
    from mobius_instrument.stats import Floats

RESULTS_NAME: Final = "results.jsonl"

Record = dict[str, Any]

_NAMED_DAMAGE: Final = 3
# The exceptions that reading a damaged line can raise.
_DAMAGE: Final = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class LibraryRecord:
    """One column of the report."""

    library: str
    label: str
    version: str
    kind: str
    status: str
    detail: str = ""
    mpicc: str = ""
    launcher: str = ""
    flags: str = ""
    # The hosts of its processes, "a,b"; empty: all on the host of the run.
    hosts: str = ""

    def to_record(self) -> Record:
        """The line of the file."""
        return {"type": "library", **self.__dict__}

    @classmethod
    def from_record(cls, record: Record) -> LibraryRecord:
        """Reads a line of the file; KeyError or TypeError if it is damaged."""
        names = ("library", "label", "version", "kind", "status")
        optional = ("detail", "mpicc", "launcher", "flags", "hosts")
        return cls(
            **{name: _text(record[name]) for name in names},
            **{name: _text(record.get(name) or "") for name in optional},
        )


@dataclass(frozen=True)
class Outcome:
    """A cell without times, or without all of them, and the reason."""

    library: str
    cell: Cell
    repeat: int
    size_bytes: int | None
    status: str
    detail: str

    def to_record(self) -> Record:
        """The line of the file."""
        return {
            "type": "outcome",
            "library": self.library,
            "cell": str(self.cell),
            "repeat": self.repeat,
            "bytes": self.size_bytes,
            "status": self.status,
            "detail": self.detail,
        }

    @classmethod
    def from_record(cls, record: Record) -> Outcome:
        """Reads a line of the file; KeyError, TypeError or ValueError if it is damaged."""
        size = record.get("bytes")
        return cls(
            library=_text(record["library"]),
            cell=_cell(record["cell"]),
            repeat=int(record["repeat"]),
            size_bytes=None if size is None else int(size),
            status=_text(record["status"]),
            detail=_text(record.get("detail") or ""),
        )


@dataclass(frozen=True)
class Fact:
    """A finding of a cell besides times: a word, a number, or both."""

    library: str
    cell: Cell
    repeat: int
    name: str
    value: str
    number: float
    detail: str

    @classmethod
    def from_record(cls, record: Record) -> Fact:
        """Reads a line of the file; KeyError, TypeError or ValueError if it is damaged."""
        return cls(
            library=_text(record["library"]),
            cell=_cell(record["cell"]),
            repeat=int(record["repeat"]),
            name=_text(record["name"]),
            value=_text(record.get("value") or ""),
            number=float(record.get("number") or 0.0),
            detail=_text(record.get("detail") or ""),
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


@dataclass(frozen=True)
class Round:
    """Turns of all libraries at one place: what the probes before the turns found."""

    shortest_ns: float
    longest_ns: float
    copy_ns: float
    # The machine changed within the round, so its times are not compared.
    moved: bool
    stopped: tuple[str, ...]
    # The first round after its programs were started, the same for all rounds of a start.
    start: int

    @classmethod
    def from_record(cls, record: Record) -> Round:
        """Reads a line of the file; KeyError, TypeError or ValueError if it is damaged."""
        lines = [float(turn[1]) for turn in record["turns"]]
        copies = [float(turn[2]) for turn in record["turns"]]
        stopped = tuple(_text(name) for name in record.get("stopped", ()))
        moved, start = bool(record["moved"]), int(record.get("start", FIRST_ROUND))
        return cls(min(lines), max(lines), min(copies), moved, stopped, start)


SeriesKey = tuple[str, Cell]


@dataclass
class Results:
    """The content of one results file.

    `samples[(library, cell)][bytes][repeat]` are raw times of a whole repetition in nanoseconds. A
    cell that a later launch of the same repeat measured again replaces the earlier one. What was
    measured in turns has the numbers of its rounds instead of repeats: from FIRST_ROUND on.
    """

    path: Path
    run: Record
    libraries: dict[str, LibraryRecord] = field(default_factory=dict)
    launches: list[Record] = field(default_factory=list)
    concerts: list[Record] = field(default_factory=list)  # launches that took turns, together
    samples: dict[SeriesKey, dict[int, dict[int, Floats]]] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    rounds: dict[int, Round] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def plan(self) -> Record:
        """The plan of the run; empty if the file has none."""
        plan = self.run.get("plan")
        return plan if isinstance(plan, dict) else {}

    @property
    def host(self) -> Record:
        """The host of the run; empty if the file does not have it."""
        host = self.run.get("host")
        return host if isinstance(host, dict) else {}

    @property
    def seed(self) -> int:
        """The plan's seed."""
        seed = self.plan.get("seed", 1)
        return seed if isinstance(seed, int) else 1

    def label(self, library: str) -> str:
        """The name of a library in reports."""
        known = self.libraries.get(library)
        return known.label if known else library

    def kind(self, library: str) -> str:
        """`mobius`, `mpi` or `limit`."""
        known = self.libraries.get(library)
        return known.kind if known else "mpi"

    def one_way(self, key: SeriesKey, size_bytes: int) -> list[Floats]:
        """The samples of each launch or round as one-way (pingpong) or whole (completion) times;
        only of those with their CPUs at the usual distance, if there are any."""
        return list(self.by_repeat(key, size_bytes).values())

    def by_repeat(self, key: SeriesKey, size_bytes: int) -> dict[int, Floats]:
        """The same, by the number of the launch or round."""
        parts = key[1].repetition_parts
        launches = sorted(self.samples[key][size_bytes].items())
        usual = [one for one in launches if not self._was_unusual(key, one[0])]
        return {repeat: launch / parts for repeat, launch in usual or launches}

    def by_start(self, key: SeriesKey, size_bytes: int) -> list[Floats]:
        """The same, of each start of the programs."""
        import numpy as np

        found: dict[int, list[Floats]] = {}
        for repeat, times in self.by_repeat(key, size_bytes).items():
            found.setdefault(self.start_of(repeat), []).append(times)
        return [np.concatenate(times) for times in found.values()]

    def start_of(self, repeat: int) -> int:
        """What the launches or rounds of one start of the programs have in common."""
        return self.rounds[repeat].start if repeat in self.rounds else repeat

    def is_unusual(self, key: SeriesKey, size_bytes: int) -> bool:
        """Whether no launch had its CPUs at the usual distance."""
        repeats = self.samples[key][size_bytes]
        return bool(repeats) and all(self._was_unusual(key, repeat) for repeat in repeats)

    def _was_unusual(self, key: SeriesKey, repeat: int) -> bool:
        if repeat >= FIRST_ROUND:
            found = self.rounds.get(repeat)
            band = self.usual_rounds
            return found is not None and (
                found.moved
                or (
                    band is not None
                    and not band.holds_both(Ways(found.shortest_ns, found.longest_ns))
                )
            )
        cell = str(key[1])
        return any(
            (key[0], repeat, name) in self.unusual for name in (cell, cell.partition(":part=")[0])
        )

    @cached_property
    def ways(self) -> list[Ways]:
        """The time of a cache line at each launch that has it (`distance`)."""
        return [ways for launch in self.launches if (ways := ways_of(launch))]

    @cached_property
    def usual_rounds(self) -> Band | None:
        """The usual distance in rounds, of which only those within the machine's two are known."""
        return usual_band(
            [Ways(one.shortest_ns, one.longest_ns) for one in self.rounds.values() if not one.moved]
        )

    @property
    def moved_rounds(self) -> int:
        """The number of rounds in which the machine changed."""
        return sum(one.moved for one in self.rounds.values())

    @cached_property
    def distance(self) -> Band | None:
        """The usual distance."""
        return usual_band(self.ways)

    @cached_property
    def unusual(self) -> set[tuple[str, int, str]]:
        """Library, repeat and cell of measurements at other distances."""
        found: set[tuple[str, int, str]] = set()
        for launch in self.launches:
            ways = ways_of(launch)
            cells = {
                (launch["library"], launch["repeat"], cell) for cell in launch.get("ended", ())
            }
            if ways and self.distance and not self.distance.holds_both(ways):
                found |= cells
            else:
                found -= cells  # Measured again.
        return found

    def ended_cells(self, library: str, repeat: int) -> set[str]:
        """Cells that need no further launch in this repeat."""
        ended: set[str] = set()
        for launch in self.launches:
            if launch["library"] == library and launch["repeat"] == repeat:
                ended.update(launch.get("ended", ()))
        return ended

    def given_up(self, library: str) -> set[str]:
        """Cells that are not launched again in later repeats."""
        return {
            str(outcome.cell)
            for outcome in self.outcomes
            if outcome.library == library and outcome.status in ("crashed", "hung", "refused")
        }


def find_results(place: Path) -> Path:
    """The results file that `place` is, or has as a report folder."""
    path = place / RESULTS_NAME if place.is_dir() else place
    if not path.exists():
        folder = (
            path.parent if path.suffix else path
        )  # `place` may be a folder that does not exist yet
        raise InstrumentError(
            f"no results at {path}; run `mobius bench --out {folder}` to measure some"
        )
    return path


def read_results(path: Path) -> Results:
    """Reads a results file.

    Damaged lines, as a full disk or a killed process leaves them, are skipped with a
    warning; a file without any run or of another schema is an InstrumentError.
    """
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise InstrumentError(f"cannot read {path}: {system_reason(error)}") from error
    reader = _Reader(path)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            reader.take(number, line)
    return reader.finish()


class _Reader:
    """Takes the lines of a results file one by one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: Results | None = None
        self._samples: dict[SeriesKey, dict[int, dict[int, Floats]]] = {}
        self._damaged: list[int] = []
        self._orphans = 0

    def take(self, number: int, line: str) -> None:
        try:
            record = json.loads(line)
            kind = record["type"]
            if kind == "run":
                _check_schema(self._path, record)
                self._results = self._results or Results(path=self._path, run=record)
            elif self._results is None:
                self._orphans += 1
            else:
                self._take_record(kind, record, self._results)
        except _DAMAGE:
            self._damaged.append(number)

    def _take_record(self, kind: str, record: Record, results: Results) -> None:
        if kind == "library":
            library = LibraryRecord.from_record(record)
            results.libraries[library.library] = library
        elif kind == "round":
            results.rounds[int(record["round"])] = Round.from_record(record)
        elif kind == "launch":
            results.launches.append(_checked_launch(record))
        elif kind == "concert":
            results.concerts.append(record)
        elif kind == "fact":
            results.facts.append(Fact.from_record(record))
        elif kind == "outcome":
            results.outcomes.append(Outcome.from_record(record))
        elif kind == "samples":
            self._take_samples(record)

    def _take_samples(self, record: Record) -> None:
        key = (_text(record["library"]), _cell(record["cell"]))
        # Imported only with measured times: it takes a third of the command line's start.
        import numpy as np

        values = np.asarray(record["samples_ns"], dtype=np.float64)
        size_bytes, repeat = int(record["bytes"]), int(record["repeat"])
        usable = values.ndim == 1 and values.size and np.all(np.isfinite(values))
        if not usable or values.min() < 0 or size_bytes <= 0:
            raise ValueError("samples")
        sizes = self._samples.setdefault(key, {})
        kept = sizes.setdefault(size_bytes, {})
        if not record.get("rounds"):
            kept[repeat] = values
            return
        first = 0
        for number, count in record["rounds"]:
            if count > 0 and len(values[first : first + count]) == count:
                kept[int(number)] = values[first : first + count]
            first += count

    def finish(self) -> Results:
        results = self._results
        if results is None:
            raise InstrumentError(
                f"{self._path} is not a results file of the instrument: it has no 'run' line"
                " (see docs/instrument-formats.md)"
            )
        results.samples = self._samples
        name, damaged = self._path.name, self._damaged
        if damaged:
            shown = ", ".join(str(number) for number in damaged[:_NAMED_DAMAGE])
            rest = len(damaged) - _NAMED_DAMAGE
            more = f" and {rest} more" if rest > 0 else ""
            plural = "s" if len(damaged) > 1 else ""
            results.warnings.append(f"{name}: damaged line{plural} {shown}{more} left out")
        if self._orphans:
            results.warnings.append(f"{name}: {self._orphans} lines before the 'run' line left out")
        return results


def _cell(value: object) -> Cell:
    try:
        return Cell.parse(_text(value))
    except InstrumentError as error:
        raise ValueError(str(error)) from error


def _check_schema(path: Path, record: Record) -> None:
    schema = record.get("schema")
    if schema != SCHEMA_VERSION:
        raise InstrumentError(
            f"{path} has results of schema {schema}, this instrument reads schema"
            f" {SCHEMA_VERSION}; use the version of Möbius that wrote it"
            f" ({record.get('mobius_version', 'unknown')}), or measure again"
        )


def _checked_launch(record: Record) -> Record:
    _text(record["library"])
    _text(record["status"])
    int(record["repeat"])
    if not isinstance(record.get("ended", []), list):
        raise TypeError("ended")
    return record


class ResultsWriter:
    """Appends records. A lock makes sure that only one process at a time writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise InstrumentError(
                f"cannot write {path}: {system_reason(error)}; choose another folder with --out"
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise InstrumentError(
                f"{path} is being written by another mobius bench or report; wait for it, or"
                " choose another folder with --out"
            ) from error
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            self._write(b"\n")

    def append(self, *records: Record) -> None:
        """Writes records at once; InstrumentError if the system refuses."""
        lines = (
            json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records
        )
        self._write("".join(line + "\n" for line in lines).encode())

    def _write(self, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise InstrumentError(
                f"cannot write {self.path}: {system_reason(error)}; measured cells are kept"
            ) from error

    def close(self) -> None:
        """Closes the file and releases its lock."""
        os.close(self._descriptor)


def set_aside(path: Path) -> Path:
    """Renames an older results file, so that a new plan starts with an empty one."""
    number = 1
    while (target := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    try:
        path.rename(target)
    except OSError as error:
        raise InstrumentError(
            f"cannot rename {path}: {system_reason(error)}; choose another folder with --out"
        ) from error
    return target
