# SPDX-License-Identifier: BSD-3-Clause
"""Which cells an experiment has, and runs of them with a fake MPI's test-suite."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby

import pytest
from instrument_tools import FakeInstrument
from mobius_instrument.cells import EXPERIMENTS, Cell
from mobius_instrument.errors import InstrumentError
from mobius_instrument.experiments import (
    APPLICATIONS,
    BETWEEN_HOSTS,
    POLICIES,
    SOCKET,
    Setting,
    jobs_of,
)
from mobius_instrument.libraries.base import Library, Start
from mobius_instrument.libraries.mobius import MOBIUS_CELLS
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.plan import DEFAULT_EFFORT, Plan
from mobius_instrument.results import LibraryRecord, read_results

SUITE = [
    name
    for name in EXPERIMENTS
    if name not in ("pingpong", "completion", *BETWEEN_HOSTS, *APPLICATIONS)
]
_SOCKET = Cell.parse(SOCKET)


def library(kind: str) -> Library:
    return Library(
        LibraryRecord(kind, kind, "1", kind, "ready"),
        suite=lambda how: ("start", str(how.processes)),
        suite_kind=kind,
    )


@pytest.mark.parametrize("kind", ["mpi", "mobius"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("cpus", [1, 2, 64])
def test_every_experiment_has_cells_of_its_own(kind: str, full: bool, cpus: int) -> None:
    setting = Setting(library(kind), full, cpus)
    jobs = jobs_of(setting, SUITE, (4, 8))
    named = {job.experiment for job in jobs}
    assert named == set(SUITE)
    texts = [str(cell) for job in jobs for cell in job.cells]
    # Results are kept by the name of a cell.
    assert len(texts) == len(set(texts))
    assert [str(Cell.parse(text)) for text in texts] == texts
    for job in jobs:
        assert job.sizes
        assert job.program == "suite"
        assert 1 <= job.processes <= job.together
        assert all(0 < size <= 1 << 28 for size in job.sizes)
        assert len(job.cells) <= 1024
        for cell in job.cells:
            assert len(str(cell)) < 192
            assert cell.option("procs", str(job.processes)) == str(job.processes)
            if job.program == "suite" and cell.option("n") and job.experiment == "multi-op":
                assert all(size % int(cell.option("n")) == 0 for size in job.sizes)


@pytest.mark.parametrize("full", [False, True])
def test_every_policy_is_measured_between_hosts(full: bool) -> None:
    assert jobs_of(Setting(library("mobius"), full, 2), BETWEEN_HOSTS, ()) == []
    hosts = Hosts(("hosta", "hostb"))
    ours, theirs = (
        jobs_of(Setting(replace(library(kind), hosts=hosts), full, 2), BETWEEN_HOSTS, ())
        for kind in ("mobius", "mpi")
    )
    # Beside a plain socket, which is measured once: in the launches that have one put of a word.
    (single,) = [job for job in ours if _SOCKET in job.cells]
    for sync in ("flush", "one-fence"):
        assert Cell.parse(f"schedule:put:{sync}:allocate:what=one:policy=adaptive") in single.cells
    assert 4 in single.sizes
    ours = [
        replace(job, cells=tuple(cell for cell in job.cells if cell != _SOCKET)) for job in ours
    ]
    bare = {str(cell.without("policy")) for job in ours for cell in job.cells}
    assert bare == {str(cell) for job in theirs for cell in job.cells}
    # The suite measures by turns what follows each other and differs in policy and n alone.
    for job in ours:
        assert not job.environment
        for first in range(0, len(job.cells), len(POLICIES)):
            turns = job.cells[first : first + len(POLICIES)]
            assert tuple(cell.option("policy") for cell in turns) == POLICIES
            assert len({str(cell.without("policy")) for cell in turns}) == 1
        # One put of as many bytes takes turns with those that are scattered.
        texts = [str(cell.without("policy").without("n")) for cell in job.cells]
        assert sorted(set(texts), key=texts.index) == [text for text, _ in groupby(texts)]
    texts = [str(cell) for job in ours for cell in job.cells]
    assert len(texts) == len(set(texts))
    for job in ours:
        for cell in job.cells:
            assert all(size % int(cell.option("n", "1")) == 0 for size in job.sizes)
            # Puts of a word each, in as many places as the program has.
            if cell.option("what") == "scattered":
                assert all(8 <= size <= 8 * 8192 for size in job.sizes)


def test_full_measures_more_than_quick() -> None:
    more = [name for name in SUITE if name != "matrix"]  # which is whole in both
    for kind in ("mpi", "mobius"):
        quick, full = (
            sum(len(job.cells) * len(job.sizes) for job in jobs_of(setting, more, (4,)))
            for setting in (Setting(library(kind), False, 2), Setting(library(kind), True, 2))
        )
        assert full > 2 * quick


def test_sizes_that_are_asked_for() -> None:
    setting = Setting(library("mpi"), False, 2, (64, 128))
    (job, *_) = jobs_of(setting, ["datatypes"], (64, 128))
    assert job.sizes == (64, 128)
    setting = Setting(library("mpi"), False, 2, (64, 1 << 29))
    (job, *_) = jobs_of(setting, ["datatypes"], (64, 1 << 29))
    assert job.sizes == (64,)
    assert jobs_of(Setting(library("mpi"), False, 2, (1 << 29,)), ["datatypes"], ()) == []
    # Table 2 is of four bytes whatever is asked for.
    (job,) = jobs_of(setting, ["sync-cost"], (64, 128))
    assert job.sizes == (4,)


def test_sizes_beyond_memory_are_left_out() -> None:
    plan = Plan(
        ("datatypes",), (64, 1 << 20, 1 << 24), DEFAULT_EFFORT, 1, (library("mpi"),),
        {"cores": 2, "memory_bytes": 16 << 20}, sizes_given=True,
    )  # fmt: skip
    assert plan.too_large == [1 << 24]
    assert {size for job in plan.jobs(plan.libraries[0]) for size in job.sizes} == {64, 1 << 20}
    assert replace(plan, sizes=(1 << 24,)).jobs(plan.libraries[0]) == []


@pytest.mark.parametrize("experiment", ["pingpong", "dynamic-comm"])
def test_messages_of_mobius_are_measured_in_programs_of_their_own(experiment: str) -> None:
    measured = replace(library("mobius"), cells=MOBIUS_CELLS, suite_kind="mobius")
    plan = Plan((experiment,), (8,), DEFAULT_EFFORT, 1, (measured,), {"cores": 2})
    kinds = [{cell.operation for cell in job.cells} for job in plan.jobs(measured)]
    assert {"message"} in kinds
    assert all(kind == {"message"} or "message" not in kind for kind in kinds)


def test_a_library_may_be_measured_in_some_experiments_only() -> None:
    measured = replace(library("mpi"), only=("atomics",))
    plan = Plan(("atomics", "locks"), (8,), DEFAULT_EFFORT, 1, (measured,), {"cores": 2})
    assert {job.experiment for job in plan.jobs(measured)} == {"atomics"}


@pytest.mark.parametrize("text", ["a:b:c", "a:b:c:d:e", "a:b:c:d:=x", "a:b:c:d:x=", "a::c:d"])
def test_malformed_cells(text: str) -> None:
    with pytest.raises(InstrumentError, match="malformed cell"):
        Cell.parse(text)


def test_options_of_a_cell() -> None:
    cell = Cell.parse("datatypes:put:flush:allocate:type=vector:block=8")
    assert cell.option("block") == "8"
    assert cell.option("stride", "16") == "16"
    assert str(cell.without("type")) == "datatypes:put:flush:allocate:block=8"
    assert str(cell.part("both")).endswith(":block=8:part=both")


def test_experiments_of_the_suite_are_measured(instrument: FakeInstrument) -> None:
    done = instrument.bench("sync-cost", "locks", "--repeats", "2")
    assert done.returncode == 0, done.stderr
    launches = instrument.records("launch")
    assert {launch["experiment"] for launch in launches} == {"sync-cost", "locks"}
    assert {launch["repeat"] for launch in launches} == {0, 1}
    (run,) = instrument.records("run")
    planned = run["plan"]["cells"]["mpicc1"]
    assert sorted({record["cell"] for record in instrument.records("samples")}) == sorted(planned)
    again = instrument.bench("sync-cost", "locks", "--repeats", "2")
    assert "everything is already measured" in again.stdout


def test_facts_and_parts_are_kept(instrument: FakeInstrument) -> None:
    instrument.behave({"*": "fact"})
    done = instrument.bench("overlap", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    results = read_results(instrument.out / "results.jsonl")
    assert results.warnings == []
    planned = results.plan["cells"]["mpicc1"]
    assert [str(fact.cell) for fact in results.facts] == planned
    assert {fact.value for fact in results.facts} == {"on-return"}
    parts = {str(cell) for _, cell in results.samples}
    assert parts == {f"{cell}:part=both" for cell in planned}
    assert all(launch["status"] == "ok" for launch in results.launches)


def test_many_crashes_in_a_row_do_not_end_the_matrix(instrument: FakeInstrument) -> None:
    """Elsewhere four launches without a result are enough; a matrix is there to find such cells."""
    crashing = [
        f"matrix:put:{sync}:{memory}" for sync in ("fence", "pscw")
        for memory in ("allocate", "alloc_mem", "create", "static", "shared", "dynamic")
    ]  # fmt: skip
    instrument.behave(dict.fromkeys(crashing, "crash"))
    done = instrument.bench("matrix", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    outcomes = instrument.outcomes()
    assert outcomes == {cell: [("crashed", 0)] for cell in crashing}
    measured = {record["cell"] for record in instrument.records("samples")}
    assert "matrix:put:flush:allocate" in measured


def test_an_mpi_without_spawn_is_measured_for_the_rest(instrument: FakeInstrument) -> None:
    (instrument.folder / "suite" / "mpi" / "dynamic.c").write_text("int unused;\n")
    instrument.environment["FAKE_MPICC"] = "no-spawn"
    done = instrument.bench("locks", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert "nothing that is spawned or connected is measured: mpicc failed" in done.stdout
    assert {launch["status"] for launch in instrument.records("launch")} == {"ok"}


def test_only_and_skip(instrument: FakeInstrument) -> None:
    done = instrument.bench("--only", "locks,atomics", "--skip", "atomics", "--repeats", "1")
    assert done.returncode == 2
    assert "both asked for and skipped" in done.stderr
    done = instrument.bench("--only", "locks,nothing")
    assert done.returncode == 2
    assert "no experiment 'nothing'" in done.stderr
    skipped = ",".join(name for name in EXPERIMENTS if name != "locks")
    done = instrument.bench("--skip", skipped, "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert {launch["experiment"] for launch in instrument.records("launch")} == {"locks"}


def test_a_time_budget_ends_a_run_that_goes_on_later(instrument: FakeInstrument) -> None:
    wanted = ("locks", "sync-cost", "--repeats", "2")
    done = instrument.bench(*wanted, "--time-budget", "0.000001s")
    assert done.returncode == 0, done.stderr
    assert "the time budget is used up" in done.stdout
    assert instrument.records("samples") == []
    done = instrument.bench(*wanted)
    assert done.returncode == 0, done.stderr
    assert instrument.records("samples") != []
    assert [run["resumed"] for run in instrument.records("run")] == [False, True]


@pytest.mark.parametrize("budget", ["soon", "-3s", "0", "5d", "nan"])
def test_a_time_budget_that_is_no_time(instrument: FakeInstrument, budget: str) -> None:
    done = instrument.bench(f"--time-budget={budget}")
    assert done.returncode == 2
    assert "is no time" in done.stderr


def test_protocols_by_messages_where_a_library_can() -> None:
    plain = library("mobius")
    told = replace(plain, by_messages=lambda processes: ("apart", str(processes)))
    for one, expected in ((plain, False), (told, True)):
        jobs = jobs_of(Setting(one, False, 2), ["protocols"], (4,))
        apart = [job for job in jobs if job.by_messages]
        assert bool(apart) == expected
        for job in jobs:
            assert all((cell.option("by") == "messages") == job.by_messages for cell in job.cells)


def application(name: str, how: Start) -> tuple[str, ...]:
    return (name, str(how.processes))


@pytest.mark.parametrize(
    ("kind", "names", "operations"),
    [
        ("mobius", ("lu", "lu-by-messages", "md", "md-by-messages"), {"factor", "step"}),
        ("mpi", ("lu", "md", "md-messages"), {"factor", "step", "sendrecv"}),
        (
            "armci",
            ("lu", "md", "global-arrays"),
            {"factor", "step", "product", "patches"},
        ),
        ("limit", ("lu",), {"factor"}),
    ],
)
def test_applications_that_a_library_has(
    kind: str, names: tuple[str, ...], operations: set[str]
) -> None:
    found = {name: partial(application, name) for name in names}
    setting = Setting(replace(library(kind), applications=found), False, 2)
    jobs = jobs_of(setting, APPLICATIONS, ())
    assert {job.program for job in jobs} == set(names)
    assert {cell.operation for job in jobs for cell in job.cells} == operations
    texts = [str(cell) for job in jobs for cell in job.cells]
    assert len(texts) == len(set(texts))
    for job in jobs:
        assert {cell.option("procs") for cell in job.cells} == {str(job.processes)}
        assert all(cell.option("by") == "" or "by" in job.program for cell in job.cells)
        memories = {cell.memory for cell in job.cells}
        assert (memories == {"threads"}) == (kind == "limit")
    assert jobs_of(Setting(library(kind), False, 2), APPLICATIONS, ()) == []


def test_upc_has_apex_map_with_two_columns() -> None:
    jobs = jobs_of(Setting(library("upc"), False, 2), SUITE, ())
    assert {job.experiment for job in jobs} == {"apex"}
    assert {cell.operation for job in jobs for cell in job.cells} == {"get", "load"}


def test_armci_has_one_experiment() -> None:
    jobs = jobs_of(Setting(library("armci"), False, 2), SUITE, (4,))
    assert {job.experiment for job in jobs} == {"protocols"}
    assert {cell.operation for job in jobs for cell in job.cells} == {
        "get", "accumulate", "put", "fetch_op",
    }  # fmt: skip
