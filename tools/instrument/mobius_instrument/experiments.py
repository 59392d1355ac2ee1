# SPDX-License-Identifier: BSD-3-Clause
"""What each experiment measures of a library: its cells, sizes and processes, as jobs.

All but applications are measured by the test-suite (bench/suite). A job is what one launch is asked
to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mobius_instrument.cells import EXPERIMENTS, PAPER1_EXPERIMENTS, Cell
from mobius_instrument.libraries.base import PROCESSES, Library, Start

_KB: Final = 1 << 10
_MB: Final = 1 << 20

# How much slower the slower part of `trust` is made, in per cent.
KNOWN_PERCENT: Final = 5
# Experiments on the instrument itself, which are not measured between hosts.
ONE_HOST: Final = ("trust",)
# Experiments between hosts only.
BETWEEN_HOSTS: Final = ("schedule",)
# Applications (apps/), run through application.py.
APPLICATIONS: Final = ("lu", "md", "global-arrays")
# The policies of Möbius' scheduler, the default first (docs/scheduler.md).
POLICIES: Final = ("adaptive", "fifo", "interleave", "gets-first", "aggregate")
# References for transfers between hosts, in launches of Möbius: a transfer and 8 bytes back over a
# plain socket, and many in a row.
SOCKET: Final = "socket:put:none:none"
_SOCKET_ROW: Final = f"{SOCKET}:depth=32"
# The most launches in a quick report and in a full one, so that the quick one takes minutes and the
# full one less than an evening. Experiments not named here are launched as often as the plan says.
_REPEATS: Final = {
    "datatypes": (2, 3), "multi-op": (2, 3), "overlap": (2, 3), "message-rate": (2, 3),
    "atomics": (2, 3), "accumulate": (2, 3), "locks": (2, 3), "scaling": (2, 3),
    "bandwidth": (2, 3), "trust": (2, 3), "apex": (1, 1), "schedule": (2, 3), "spawn-cost": (1, 2),
    "dynamic-comm": (1, 2), "protocols": (2, 3), "lu": (2, 3), "md": (2, 3),
    "global-arrays": (2, 3),
}  # fmt: skip
# The most bytes of experiments with several areas for their data.
SUITE_MOST_BYTES: Final = 1 << 28
# How often spawn-cost spawns, including the first time (bench/suite/experiments/spawn_cost.c).
_SPAWNS: Final = 6


@dataclass(frozen=True)
class Effort:
    """How long and how often to measure."""

    repeats: int
    min_samples: int
    max_seconds: float


@dataclass(frozen=True)
class Job:
    """Cells that one launch measures, all with the same sizes."""

    experiment: str
    program: str
    cells: tuple[Cell, ...]
    sizes: tuple[int, ...]
    processes: int = PROCESSES
    # Processes that run in the end, including spawned ones.
    together: int = PROCESSES
    # Measured in the first repeats only: more repeats tell little more.
    most_repeats: int = 1_000
    # Launches in a row that may end without a measured cell.
    barren: int = 4
    # The longest time without output of a launch; 0: the command line's.
    stall_s: float = 0
    # The time of a cell and size, for estimates; 0: the effort's.
    seconds: float = 0
    environment: dict[str, str] = field(default_factory=dict)
    # Keep the processes from sharing memory (Library.by_messages).
    by_messages: bool = False
    # Processes that were not started together meet, possibly from two jobs.
    dynamic: bool = False
    two_jobs: bool = False

    @property
    def start(self) -> Start:
        """How to start a launch."""
        return Start(self.processes, self.together, self.dynamic, self.two_jobs)


@dataclass(frozen=True)
class Setting:
    """The facts that decide the jobs of a library: effort, sizes and the library's abilities."""

    library: Library
    full: bool
    cpus: int
    sizes: tuple[int, ...] = ()

    @property
    def mobius(self) -> bool:
        """Möbius' blocks if the library has them, else MPI's."""
        return self.library.suite_kind == "mobius"

    @property
    def apart(self) -> bool:
        """Whether the processes are on several hosts."""
        return self.library.hosts is not None

    def offered(self, job: Job) -> Job:
        """The cells that the interface can do, whoever implements it."""
        if self.library.suite_kind in ("lapi", "limits"):
            return replace(job, cells=())
        if self.library.suite_kind == "armci":
            return job if job.experiment == "protocols" else replace(job, cells=())
        if self.library.suite_kind == "upc" and job.experiment != "apex":
            return replace(job, cells=())
        if self.library.suite_kind not in ("shmem", "upc"):
            return job
        cells = tuple(cell for cell in job.cells if _shmem_has(cell))
        if not job.sizes:
            return job
        # Cells of one word only, left out where others are larger.
        others = tuple(cell for cell in cells if cell.operation != "accumulate")
        if cells and not others:
            return replace(job, cells=cells, sizes=(8,))
        return replace(job, cells=others if max(job.sizes) > _WORD_BYTES else cells)

    @property
    def partners(self) -> str:
        """Numbers of processes for pairs of more than two processes: across hosts if there are
        several."""
        return "hosts" if self.apart else "pairs"

    @property
    def many(self) -> tuple[int, ...]:
        """Numbers of processes that compete: as many as there are CPUs. In a full run up to twice
        as many, at least up to four: such processes share CPUs, and take long."""
        most = max(4, 2 * self.cpus) if self.full else max(PROCESSES, min(self.cpus, 8))
        counts = [2]
        while counts[-1] < most:
            counts.append(min(counts[-1] * 2, most))
        return tuple(counts)

    def pick(
        self, quick: Sequence[int], full: Sequence[int], processes: int = PROCESSES
    ) -> tuple[int, ...]:
        """The sizes of --sizes, else those of the preset; few if processes share CPUs."""
        if self.sizes:
            return tuple(size for size in self.sizes if size <= SUITE_MOST_BYTES)
        return tuple(full if self.full and processes <= max(self.cpus, PROCESSES) else quick)


_WORD_BYTES: Final = 8
_SHMEM_OPERATIONS: Final = (
    "put", "get", "rput", "rget", "accumulate", "fetch_op", "compare_swap", "load", "timer", "call",
    "loop",
)  # fmt: skip


def _shmem_has(cell: Cell) -> bool:
    """Whether OpenSHMEM has what this cell needs: symmetric memory, barriers, quiet and locks, no
    messages. UPC's cells of APEX-Map need the same."""
    return (
        cell.operation in _SHMEM_OPERATIONS
        and cell.sync in ("flush", "fence", "lockx", "none")
        and cell.memory in ("allocate", "static", "none")
        and cell.option("comm", "world") == "world"
    )


def _cell(text: str) -> Cell:
    return Cell.parse(text)


def _cells(
    experiment: str,
    operations: Iterable[str],
    syncs: Iterable[str],
    memories: Iterable[str],
    *suffixes: str,
) -> list[Cell]:
    return [
        _cell(f"{experiment}:{operation}:{sync}:{memory}{suffix}")
        for operation in operations
        for sync in syncs
        for memory in memories
        for suffix in (suffixes or ("",))
    ]


def _messages(
    setting: Setting, experiment: str, *suffixes: str, kind: str = "sendrecv"
) -> list[Cell]:
    return [] if setting.mobius else _cells(experiment, [kind], ["none"], ["local"], *suffixes)


def _without_messages(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Möbius' messages apart from the rest: a flush also completes what the program's messages
    have begun, so that it costs more in a program that has sent one."""
    every = list(cells)
    messages = [cell for cell in every if cell.operation == "message"]
    others = [cell for cell in every if cell.operation != "message"]
    return [part for part in (others, messages) if part]


def _socket(setting: Setting, text: str) -> list[Cell]:
    return [_cell(text)] if setting.mobius and setting.apart else []


def _job(
    experiment: str, cells: Iterable[Cell], sizes: Sequence[int], processes: int = PROCESSES
) -> Job:
    return Job(experiment, "suite", tuple(cells), tuple(sizes), processes, processes)


_SYNCS: Final = ("fence", "pscw", "lock", "lockx", "lock_all", "flush")


def _sync_cost(s: Setting) -> list[Job]:
    cells = _cells("sync-cost", ("put", "get"), _SYNCS, ("allocate", "alloc_mem", "create"))
    cells += _messages(s, "sync-cost") + _messages(s, "sync-cost", kind="isendrecv")
    # Table 2 is of four bytes, whatever --sizes says.
    return [_job("sync-cost", cells, (4,))]


def _bandwidth(s: Setting) -> list[Job]:
    few, many = (_KB, 16 * _KB, 256 * _KB, _MB), [256 << step for step in range(0, 15, 2)]
    ways = (":dir=one:touch=1", ":dir=two:touch=1")
    cells = _cells("bandwidth", ("put", "get"), ("flush",), ("allocate", "create"), *ways)
    cells += _cells("bandwidth", ("put",), ("fence", "pscw"), ("allocate",), *ways)
    cells += _messages(s, "bandwidth", *ways)
    # Typical use: the same place again and again, which no process reads.
    cells += _cells("bandwidth", ("put", "get"), ("flush",), ("allocate",), ":dir=one")
    cells += _messages(s, "bandwidth", ":dir=one") + _socket(s, _SOCKET_ROW)
    jobs = [_job("bandwidth", cells, s.pick(few, many))]
    for processes in s.many[1:]:
        pairs = f":partner={s.partners}:touch=1:procs={processes}"
        cells = _cells("bandwidth", ("put", "get"), ("flush",), ("allocate",), pairs)
        cells += _messages(s, "bandwidth", pairs)
        jobs.append(_job("bandwidth", cells, s.pick(few, many, processes), processes))
    return jobs


def _message_rate(s: Setting) -> list[Job]:
    jobs = []
    for processes in s.many:
        pairs = f":depth=64:partner={s.partners}:procs={processes}"
        cells = _cells("message-rate", ("put", "get"), ("flush", "pscw"), ("allocate",), pairs)
        if processes == PROCESSES:
            cells += _cells("message-rate", ("put",), ("flush",), ("create",), pairs)
        cells += _messages(s, "message-rate", pairs)
        jobs.append(_job("message-rate", cells, (8,), processes))
    return jobs


def _datatypes(s: Setting) -> list[Job]:
    sizes = s.pick((_KB, 16 * _KB, 256 * _KB), [_KB << step for step in range(0, 11, 2)])
    shapes = [":type=byte"]
    for block in (8, 64, 1024) if not s.full else (4, 8, 16, 64, 256, 1024):
        shapes += [f":type=vector:block={block}", f":type=vector:block={block}:pack=hand"]
    shapes += [f":type={name}:block=8" for name in ("indexed", "struct", "subarray")]
    shapes += [":type=vector:block=8:stride=512"]
    cells = _cells("datatypes", ("put",), ("flush",), ("allocate",), *shapes)
    cells += _cells("datatypes", ("get",), ("flush",), ("allocate",), *[
        shape for shape in shapes if "hand" not in shape
    ])  # fmt: skip
    cells += _messages(s, "datatypes", *shapes)
    return [_job("datatypes", cells, sizes)]


def _multi_op(s: Setting) -> list[Job]:
    sizes = s.pick((256, 4 * _KB, 64 * _KB, _MB), [256 << step for step in range(0, 15, 2)])
    parts = (1, 2, 8, 32) if not s.full else (1, 2, 4, 8, 16, 32, 64)
    suffixes = [f":n={n}" for n in parts]
    cells = _cells("multi-op", ("put", "get"), ("pscw",), ("allocate",), *suffixes)
    cells += _cells("multi-op", ("put",), ("fence", "flush"), ("allocate",), *suffixes)
    return [_job("multi-op", cells, sizes)]


def _overlap(s: Setting) -> list[Job]:
    sizes = s.pick((16 * _KB, 256 * _KB), [_KB << step for step in range(0, 12, 2)])
    target, origin = ":side=target", ":side=origin"
    cells = _cells("overlap", ("put", "get"), ("pscw", "flush"), ("allocate", "create"), target)
    cells += _cells("overlap", ("put",), ("fence",), ("allocate",), target)
    cells += _cells("overlap", ("put", "rput", "rget"), ("flush",), ("allocate",), origin)
    cells += _messages(s, "overlap", target, origin, kind="isendrecv")
    return [_job("overlap", cells, sizes)]


def _progress(s: Setting) -> list[Job]:
    # A crowded machine delays operations by tens of milliseconds, which is no waiting.
    ms = 1000 if s.full else 400
    memories = ["allocate", "create"]
    if s.full:
        memories += ["static", *(() if s.mobius else ("dynamic",))]
    operations = ("put", "get", "accumulate", "fetch_op")
    suffix = f":ms={ms}"
    passive = _cells("progress", operations, ("flush", "lock"), memories, suffix)
    pairs = _cells("progress", ("put",), ("pscw",), ("allocate", "create"), suffix)
    jobs = [_job("progress", passive + pairs, (8,))]
    large = _cells("progress", operations[:3], ("flush",), memories, suffix + ":large=1")
    jobs.append(_job("progress", large, (256 * _KB,)))
    # Three brief trials, and one cell in four needs the long one.
    return [replace(job, most_repeats=1, seconds=0.15 + 0.25 * ms / 1e3) for job in jobs]


def _contention(experiment: str, s: Setting) -> list[Job]:
    jobs = []
    for processes in s.many:
        suffix = f":procs={processes}"
        if experiment == "atomics":
            words = (f":word=one{suffix}", f":word=own{suffix}")
            operations = ("fetch_op", "compare_swap", "get_accumulate")
            cells = _cells("atomics", operations, ("flush",), ("allocate",), *words)
            cells += _cells("atomics", ("fetch_op",), ("flush",), ("create",), words[0])
            sizes: Sequence[int] = (8,)
        elif experiment == "accumulate":
            cells = _cells(
                "accumulate", ("accumulate",), ("flush",), ("allocate", "create"), suffix
            )
            every = [8 << step for step in range(0, 18, 2)]
            sizes = s.pick((8, _KB, 64 * _KB), every, processes)
        else:
            syncs = ("lockx", "mutex") if s.mobius else ("lockx",)
            cells = _cells("locks", ("put",), syncs, ("allocate", "create"), suffix)
            sizes = (8,)
        jobs.append(_job(experiment, cells, sizes, processes))
    return jobs


def _scaling(s: Setting) -> list[Job]:
    most = max(s.many[-1], 8 if s.full else PROCESSES)
    jobs = []
    # Between hosts, whole pairs, which all use the network.
    counts = range(2, most + 1, 2) if s.apart else range(2, most + 1)
    for processes in counts:
        if processes > 4 and processes % 2:
            continue  # whose neighbours tell as much
        suffix = f":partner={'hosts' if s.apart else 'ring'}:procs={processes}"
        cells = _cells("scaling", ("put",), ("flush", "fence"), ("allocate",), suffix)
        cells += _messages(s, "scaling", suffix)
        sizes = s.pick((8, 64 * _KB), (8, _KB, 64 * _KB, _MB), processes)
        jobs.append(_job("scaling", cells, sizes, processes))
    return jobs


def _apex(s: Setting) -> list[Job]:
    places = (0.001, 0.01, 0.1, 1) if not s.full else (
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
    )  # fmt: skip
    words = (1, 16, 256, 4096, 65536) if not s.full else [1 << step for step in range(0, 17, 2)]
    suffixes = [f":k={k:g}" for k in places]
    cells = _cells("apex", ("get",), ("flush",), ("allocate",), *suffixes)
    # Load instructions reach no other host, and UPC's take a message for each word.
    if not s.apart:
        memory = "shared" if s.library.suite_kind == "mpi" else "allocate"
        cells += _cells("apex", ("load",), ("flush",), (memory,), *suffixes)
    if not s.mobius:
        cells += _messages(s, "apex", *suffixes, kind="isendrecv")
    return [_job("apex", cells, [8 * count for count in words])]


def _spawn_cost(s: Setting) -> list[Job]:
    if s.mobius and s.apart:
        return []  # it spawns on one host
    # Open MPI's launcher never reuses the slots of processes that have ended.
    jobs = [
        replace(
            _job("spawn-cost", [_cell(f"spawn-cost:spawn:none:local:n={n}")], (n,), 1),
            together=1 + _SPAWNS * n, most_repeats=2, seconds=2.0, dynamic=True, stall_s=6,
        )
        for n in (1, 2, 3, 4)
    ]  # fmt: skip
    # Two jobs of n processes each, or two processes with a socket between them. MPI's find each
    # other through a file, and some never do.
    meetings = [("connect", 1), ("connect", 2)]
    if s.mobius:
        meetings.append(("join", 1))
    elif s.library.hosts is not None and not s.library.hosts.shared_files:
        meetings = []
    for how, n in meetings:
        job = _job("spawn-cost", [_cell(f"spawn-cost:{how}:none:local:n={n}")], (n,), n)
        jobs.append(replace(
            job, together=n, most_repeats=2, seconds=2.0, dynamic=True, two_jobs=True, stall_s=6,
            barren=job.barren if s.mobius else 1,
        ))  # fmt: skip
    return jobs


def _comm_cells(s: Setting, *names: str) -> list[Cell]:
    windows = [("put", "fence", "create"), ("put", "flush", "allocate")]
    found = []
    for name in names:
        suffix = f":comm={name}{':partner=hosts' if s.apart else ''}"
        if s.mobius:
            found.append(_cell(f"dynamic-comm:message:none:local{suffix}"))
        found += _messages(s, "dynamic-comm", suffix)
        if name != "spawn-inter":
            found += [_cell(f"dynamic-comm:{':'.join(one)}{suffix}") for one in windows]
    return found


def _launches_of_mobius(s: Setting) -> list[tuple[list[Cell], Start]]:
    launches: list[tuple[tuple[str, ...], Start]] = [(("world", "split", "reordered"), Start())]
    if not s.apart:
        launches.append((("spawn",), Start(1, 2, dynamic=True)))
        launches.append((("applications", "join"), Start(1, 1, dynamic=True, two_jobs=True)))
    return [
        (part, start)
        for names, start in launches
        for part in _without_messages(_comm_cells(s, *names))
    ]


def _launches_of_mpi(s: Setting) -> list[tuple[list[Cell], Start]]:
    """One each: a library that fails here often takes the rest of the launch with it. One launch
    spawns once: Open MPI never reuses the slot of a child that has ended."""
    launches = [
        (_comm_cells(s, "world", "split", "reordered"), Start()),
        (_comm_cells(s, "connect"), Start(2, 2, dynamic=True)),
    ]
    for name in ("spawn", "spawn-inter"):
        launches += [([cell], Start(1, 2, dynamic=True)) for cell in _comm_cells(s, name)]
    # Two jobs find each other through a file.
    if s.full and (s.library.hosts is None or s.library.hosts.shared_files):
        two = Start(1, 1, dynamic=True, two_jobs=True)
        launches.append((_comm_cells(s, "applications"), two))
    return launches


def _dynamic_comm(s: Setting) -> list[Job]:
    sizes = s.pick((8, _KB, 64 * _KB, _MB), [8 << step for step in range(0, 18, 2)])
    jobs = []
    for cells, start in _launches_of_mobius(s) if s.mobius else _launches_of_mpi(s):
        job = _job("dynamic-comm", cells, sizes, start.processes)
        if start.dynamic:
            job = replace(
                job, together=start.together, dynamic=True, two_jobs=start.two_jobs, stall_s=6,
                barren=1 if start.two_jobs and not s.mobius else job.barren,
            )  # fmt: skip
        jobs.append(job)
    return jobs


def _schedule(s: Setting) -> list[Job]:
    # 124 KB is the largest size that is moved by remote memory access only if the origin has the
    # target's key.
    large = s.pick(
        (_KB, 16 * _KB, 64 * _KB, 124 * _KB, _MB),
        sorted([124 * _KB, *(_KB << step for step in range(11))]),
    )
    # 8,000 bytes are a thousand words.
    small = s.pick((4, _KB, 8_000, 64_000), (4, 64, _KB, 4 * _KB, 8_000, 64_000))
    whole = s.pick((64 * _KB, _MB), (64 * _KB, 256 * _KB, _MB, 4 * _MB))
    parts = (1, 16, 128, 1024) if not s.full else tuple(1 << step for step in range(11))

    def cells(operations: Sequence[str], syncs: Sequence[str], *suffixes: str) -> list[Cell]:
        return _cells("schedule", operations, syncs, ("allocate",), *suffixes)

    mixed = cells(("put",), ("flush",), ":what=mixed") + cells(
        ("rget",), ("flush",), ":what=behind"
    )
    single = cells(("put",), ("one-fence", "flush", "fence", "pscw", "lockx"), ":what=one") + cells(
        ("get",), ("flush", "pscw", "lockx"), ":what=one"
    )
    buffers = cells(("put",), ("flush",), *[f":what=pieces:n={n}" for n in parts])
    many = cells(("put",), ("flush", "one-fence"), ":what=scattered", ":what=scattered:n=1")
    many += cells(("put",), ("flush",), ":what=random")

    # In one job: the suite measures cells in turn if only policy and n differ.
    def turns(cells: list[Cell]) -> list[Cell]:
        if not s.mobius:
            return cells
        return [
            replace(cell, options=(*cell.options, ("policy", policy)))
            for cell in cells
            for policy in POLICIES
        ]

    return [
        _job("schedule", turns(mixed), large),
        _job("schedule", _socket(s, SOCKET) + turns(single), small),
        _job("schedule", turns(buffers), [size for size in whole if size % max(parts) == 0]),
        _job("schedule", turns(many), [size for size in small if size >= 8_000]),
    ]


def _matrix(s: Setting) -> list[Job]:
    memories = ["allocate", "alloc_mem", "create", "static"]
    if not s.apart:
        memories += ["remap"] if s.mobius else ["shared", "dynamic"]
    syncs = [*_SYNCS, *(["mutex"] if s.mobius else [])]
    operations = ["put", "get", "rput", "rget", "accumulate", "get_accumulate"]
    operations += [] if s.mobius else ["raccumulate"]
    jobs = []
    for operation in [*operations, "fetch_op", "compare_swap"]:
        word = operation in ("fetch_op", "compare_swap")
        # MPI-4 §12.3.5: request-based operations are for passive epochs only.
        requests = not s.mobius and operation in ("rput", "rget", "raccumulate")
        allowed = [sync for sync in syncs if not requests or sync not in ("fence", "pscw")]
        cells = _cells("matrix", (operation,), allowed, memories)
        sizes = (8,) if word or not s.full else (8, 64 * _KB)
        job = _job("matrix", cells, sizes)
        jobs.append(replace(job, most_repeats=1, barren=40, stall_s=8, seconds=0.004))
    return jobs


def _protocols(s: Setting) -> list[Job]:
    # Squares of doubles with 2^n rows and columns, whatever --sizes says.
    sizes = [8 << 2 * step for step in range(0, 9, 1 if s.full else 2)]
    shapes = (":type=double", ":type=patch")
    operations = ("get", "accumulate")
    cells = _cells("protocols", operations, ("flush",), ("allocate",), *shapes)
    cells += _cells("protocols", ("put",), ("flush",), ("allocate",), shapes[0])
    jobs = [_job("protocols", cells, sizes)]
    # Table 1: one byte and 512 KB.
    cells = _cells("protocols", ("get",), ("flush",), ("allocate",), ":cold=1")
    if s.library.suite_kind == "mpi":
        cells += _cells("protocols", ("sendrecv",), ("none",), ("local",), ":cold=1")
    jobs.append(_job("protocols", cells, (1, 512 * _KB)))
    update = _cells("protocols", ("fetch_op",), ("flush",), ("allocate",), ":type=int")
    jobs.append(_job("protocols", update, (4,)))
    if s.library.by_messages is not None:
        by = [f"{shape}:by=messages" for shape in shapes]
        cells = _cells("protocols", operations, ("flush",), ("allocate",), *by)
        jobs.append(replace(_job("protocols", cells, sizes), by_messages=True))
    return jobs


# What the sizes of applications count.
MATRIX_ELEMENT_BYTES: Final = 8
MOLECULE_BYTES: Final = 72  # positions of a molecule
# The suffix of applications whose processes share no memory.
_BY_MESSAGES: Final = "-by-messages"


def _counts(s: Setting) -> tuple[int, ...]:
    """Numbers of processes of an application."""
    most = max(PROCESSES, s.cpus)
    alone = () if s.apart else (1,)
    return (*alone, *(count for count in s.many if count <= most))


# Seconds of a run with the usual size, and with the average one of --full.
_RUN_S: Final = {"lu": (1.0, 4.0), "md": (2.0, 4.0), "global-arrays": (0.7, 4.0)}


def _application(
    s: Setting, experiment: str, program: str, cells: Iterable[Cell], sizes: Sequence[int],
    processes: int,
) -> Job:  # fmt: skip
    job = _job(experiment, cells, sizes, processes)
    return replace(job, program=program, seconds=_RUN_S[experiment][s.full], stall_s=120)


def _lu(s: Setting) -> list[Job]:
    orders = (1024, 3072) if s.full else (1024,)
    sizes = [MATRIX_ELEMENT_BYTES * order * order for order in orders]
    memory = "threads" if s.library.record.kind == "limit" else "allocate"
    placements = ("block", "cyclic", "hybrid") if s.apart else ("block", "cyclic")
    copies = ("", ":copy=1") if s.mobius and not s.apart else ("",)
    jobs = []
    for processes in _counts(s):
        shapes = [
            f":placement={placement}:kernel={kernel}{copy}:procs={processes}"
            for kernel in ("plain", "blas")
            for placement in placements
            for copy in copies
        ]
        cells = _cells("lu", ("factor",), ("none",), (memory,), *shapes)
        jobs.append(_application(s, "lu", "lu", cells, sizes, processes))
        if f"lu{_BY_MESSAGES}" in s.library.applications and processes > 1:
            apart = [f"{shape}:by=messages" for shape in shapes if "copy" not in shape]
            cells = _cells("lu", ("factor",), ("none",), (memory,), *apart)
            jobs.append(_application(s, "lu", f"lu{_BY_MESSAGES}", cells, sizes, processes))
    return jobs


def _md(s: Setting) -> list[Job]:
    molecules = (216, 1000, 4096) if s.full else (216, 1000)
    sizes = [MOLECULE_BYTES * count for count in molecules]
    jobs = []
    for processes in _counts(s):
        ending = f":procs={processes}"
        shapes = [ending]
        if processes > 1:
            shapes.append(f":balance=no{ending}")
        if s.apart and processes > PROCESSES:
            shapes.append(f":permute=no{ending}")
        cells = _cells("md", ("step",), ("none",), ("allocate",), *shapes)
        jobs.append(_application(s, "md", "md", cells, sizes, processes))
        if processes == 1:
            continue
        cells = _cells("md", ("sendrecv",), ("none",), ("local",), ending)
        jobs.append(_application(s, "md", "md-messages", cells, sizes, processes))
        cells = _cells("md", ("step",), ("none",), ("allocate",), f"{ending}:by=messages")
        jobs.append(_application(s, "md", f"md{_BY_MESSAGES}", cells, sizes, processes))
    return [job for job in jobs if job.program in s.library.applications]


def _global_arrays(s: Setting) -> list[Job]:
    orders = (512, 2048) if s.full else (512,)
    sizes = [MATRIX_ELEMENT_BYTES * order * order for order in orders]
    return [
        _application(
            s, "global-arrays", "global-arrays",
            _cells("global-arrays", ("product", "patches"), ("none",), ("allocate",),
                   f":procs={processes}"),
            sizes, processes,
        )
        for processes in _counts(s)
    ]  # fmt: skip


def _trust(s: Setting) -> list[Job]:
    jobs = [
        _job("trust", [_cell(f"self:{what}:none:none") for what in ("timer", "call", "loop")], (1,))
    ]
    if s.library.record.kind not in ("mobius", "mpi"):
        return jobs
    # The same twice and once slower in one program, and again in a second one.
    runs = (f":run=first:slower={KNOWN_PERCENT}", ":run=again")
    syncs = ("flush", "lockx", "fence", "pscw")
    return jobs + [
        _job("trust", _cells("trust", ("put", "get"), syncs, ("allocate",), run),
             (8, 4 * _KB, 64 * _KB))
        for run in runs
    ]  # fmt: skip


_JOBS: Final[dict[str, Callable[[Setting], list[Job]]]] = {
    "sync-cost": _sync_cost,
    "bandwidth": _bandwidth,
    "message-rate": _message_rate,
    "datatypes": _datatypes,
    "multi-op": _multi_op,
    "overlap": _overlap,
    "progress": _progress,
    "atomics": lambda s: _contention("atomics", s),
    "accumulate": lambda s: _contention("accumulate", s),
    "locks": lambda s: _contention("locks", s),
    "scaling": _scaling,
    "apex": _apex,
    "lu": _lu,
    "md": _md,
    "global-arrays": _global_arrays,
    "spawn-cost": _spawn_cost,
    "dynamic-comm": _dynamic_comm,
    "schedule": _schedule,
    "matrix": _matrix,
    "protocols": _protocols,
    "trust": _trust,
}


def jobs_of(setting: Setting, experiments: Sequence[str], sizes: Sequence[int]) -> list[Job]:
    """All jobs of a library, in the order of experiments. Those of paper 1 are one job, and
    Möbius' messages another."""
    library = setting.library
    first = _without_messages(cell for cell in library.cells if cell.experiment in experiments)
    jobs = [_job("pingpong", cells, sizes) for cells in first]
    for name in APPLICATIONS:
        if name in experiments and name in library.applications:
            jobs += _JOBS[name](setting)
    if library.suite is not None:
        for name in EXPERIMENTS:
            if name in experiments and name not in (*PAPER1_EXPERIMENTS, *APPLICATIONS):
                if name in (ONE_HOST if setting.apart else BETWEEN_HOSTS):
                    continue
                made = map(setting.offered, _JOBS[name](setting))
                jobs += [job for job in made if job.cells and job.sizes]
    # Between hosts, where a launch is slow, two are enough for a quick report.
    few = {"pingpong": 2, "sync-cost": 2} if setting.apart and not setting.full else {}

    def most(job: Job) -> int:
        counts = _REPEATS.get(job.experiment, (job.most_repeats, job.most_repeats))
        # Processes that share a CPU show how a library waits: one launch is enough.
        taking_turns = 1 if job.processes > setting.cpus else job.most_repeats
        return min(
            job.most_repeats,
            counts[setting.full],
            few.get(job.experiment, job.most_repeats),
            taking_turns,
        )

    return [replace(job, most_repeats=most(job)) for job in jobs]
