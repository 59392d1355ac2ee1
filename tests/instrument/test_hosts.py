# SPDX-License-Identifier: BSD-3-Clause
"""`--hosts`: its values, where processes start, and the pair of curves in the report."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from instrument_tools import FakeInstrument, SyntheticRun
from mobius_instrument.cells import EXPERIMENTS
from mobius_instrument.errors import InstrumentError
from mobius_instrument.experiments import APPLICATIONS, ONE_HOST, Setting, jobs_of
from mobius_instrument.libraries.base import Library, Start, between_hosts
from mobius_instrument.machine import hosts as hosts_module
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.presentation import write_report
from mobius_instrument.results import LibraryRecord, read_results

Make = Callable[[str], SyntheticRun]
SUITE = [name for name in EXPERIMENTS if name not in ("pingpong", "completion", *APPLICATIONS)]


def agent(folder: Path, text: str) -> Path:
    """A program that stands in for ssh."""
    path = folder / "agent"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_ranks_are_dealt_out_in_blocks() -> None:
    hosts = Hosts(("a", "b", "c"))
    assert hosts.blocks(2) == [("a", 1), ("b", 1)]
    assert hosts.blocks(8) == [("a", 3), ("b", 3), ("c", 2)]
    assert hosts.words == "a, b and c"


@pytest.mark.parametrize(
    ("text", "agent_name", "message"),
    [
        ("a", "", "at least two different hosts"),
        ("a,a", "", "at least two different hosts"),
        ("a,-oProxyCommand=x", "true", "no name of a host"),
        ("a,b", "no-such-program", "there is no program"),
        ("a,b", "false", "b cannot be reached: exit code 1"),
        ("", "false", "--agent is of use with --hosts only"),
        ("testbed", "false", "has an agent"),
    ],
)
def test_wrong_hosts(text: str, agent_name: str, message: str) -> None:
    with (
        pytest.raises(InstrumentError, match=message),
        hosts_module.opened(text, agent_name, ""),
    ):
        pass


@pytest.mark.parametrize("kind", ["mpi", "mobius"])
def test_experiments_between_hosts(kind: str) -> None:
    hosts = Hosts(("a", "b"), "agent")
    here = Library(
        LibraryRecord(kind, kind, "1", kind, "ready"),
        suite=lambda how: ("start", str(how.processes)),
        suite_kind=kind,
    )
    library = between_hosts(
        here,
        hosts,
        lambda how: ("launch", str(how.processes)),
        Path("suite"),
        {"NAME": "value"},
    )
    assert library.name == f"{kind}@hosts"
    assert library.suite is not None
    assert library.suite(Start(4, 4)) == ("launch", "4", "suite")
    assert library.suite(Start(1, 2)) == ("launch", "1", "suite", "--spawn-on", "b")
    jobs = jobs_of(Setting(library, False, 4), SUITE, (8,))
    assert {job.experiment for job in jobs} == set(SUITE) - set(ONE_HOST) - (
        {"spawn-cost"} if kind == "mobius" else set()
    )
    for job in jobs:
        for cell in job.cells:
            assert cell.operation != "load"
            # Of more than two processes, all that are partners are on different hosts.
            if cell.option("partner"):
                assert cell.option("partner") == "hosts"
            assert cell.memory not in ("shared", "remap")
    # A plain socket is measured in launches of Möbius.
    rows = [job.experiment for job in jobs for cell in job.cells if cell.experiment == "socket"]
    assert rows == (["bandwidth", "schedule"] if kind == "mobius" else [])
    on_link = between_hosts(
        here, Hosts(("a", "b"), interface="v0"), lambda _how: ("launch",), Path("suite"), {}
    )
    assert on_link.suite is not None
    assert on_link.suite(Start(2, 2)) == ("launch", "suite", "--interface", "v0")


def test_libraries_are_measured_on_one_host_and_between(instrument: FakeInstrument) -> None:
    place = agent(instrument.folder, 'echo "$@" >>"$(dirname "$0")/agent.log"; exit 0')
    done = instrument.bench(
        "pingpong", "sync-cost", "--repeats", "1", "--hosts", "a,b", "--agent", str(place)
    )
    assert done.returncode == 0, done.stderr
    assert (instrument.folder / "agent.log").read_text() == "b true\n"
    here, between = instrument.records("library")
    assert (here["library"], between["library"]) == ("mpicc1", "mpicc1@hosts")
    assert (here["hosts"], between["hosts"]) == ("", "a,b")
    assert "--host a:1,b:1" in between["launcher"]
    measured = {record["library"] for record in instrument.records("samples")}
    assert measured == {"mpicc1", "mpicc1@hosts"}
    again = instrument.bench(
        "pingpong", "sync-cost", "--repeats", "1", "--hosts", "a,b", "--agent", str(place)
    )
    assert "everything is already measured" in again.stdout


def test_processes_that_stayed_on_one_host_are_no_result(instrument: FakeInstrument) -> None:
    place = agent(instrument.folder, "exit 0")
    instrument.behave({"hostnames": "a,a"})
    done = instrument.bench("sync-cost", "--repeats", "1", "--hosts", "a,b", "--agent", str(place))
    assert done.returncode == 0, done.stderr
    assert {record["library"] for record in instrument.records("samples")} == {"mpicc1"}
    details = {record["detail"] for record in instrument.records("outcome")}
    assert details == {"all processes were started on a"}


def test_experiments_between_hosts_alone_are_a_report(synthetic: Make) -> None:
    run = synthetic("apart")
    run.library("mobius", "Möbius 1", "mobius")
    run.library("mobius@hosts", "Möbius 1, between hosts", "mobius", hosts="a,b")
    for policy in ("adaptive", "fifo"):
        run.series("mobius@hosts", f"schedule:put:flush:allocate:what=mixed:policy={policy}",
                   lambda *_: 100.0)  # fmt: skip
    path = run.write()
    page = write_report(read_results(path), path.parent).path.read_text(encoding="utf-8")
    assert page.count('id="schedule"') == 1
    assert "both directions together" in page


def test_both_curves_are_in_the_report(synthetic: Make) -> None:
    run = synthetic("hosts")
    for name, label, kind in (("mobius", "Möbius 1", "mobius"), ("mpi", "MPI 1", "mpi")):
        run.library(name, label, kind)
        run.library(f"{name}@hosts", f"{label}, between hosts", kind, hosts="a,b")
        factor = 1 if kind == "mobius" else 2
        for side, base in (("", 100.0), ("@hosts", 20_000.0)):
            for cell in ("completion:put:flush:allocate", "pingpong:put:flush:allocate",
                         "datatypes:put:flush:allocate:type=byte"):  # fmt: skip
                run.series(
                    name + side, cell,
                    lambda size, _repeat, base=base, factor=factor: base * factor + size / 10,  # type: ignore[misc]
                )  # fmt: skip
            run.series(
                name + side, "sync-cost:put:flush:allocate",
                lambda _size, _repeat, base=base, factor=factor: base * factor,  # type: ignore[misc]
                sizes=(4,),
            )  # fmt: skip
    run.series("mobius@hosts", "socket:put:none:none", lambda *_: 12_000.0)
    path = run.write()
    written = write_report(read_results(path), path.parent)
    page = written.path.read_text(encoding="utf-8")
    assert 'id="hosts"' in page
    # Beside the one transfer and its completion, and beside nothing else.
    with_socket = [
        found.group(1)
        for found in re.finditer(r'"title":"([^"]*)","x"[^<]*"name":"plain socket"', page)
    ]
    assert with_socket == [
        f"Put and its completion: {what} on one host and between" for what in ("time", "bandwidth")
    ]
    assert "on one host: flush, allocated memory" in page
    assert "between hosts: flush, allocated memory" in page
    # The library that is nearer comes first; 20,000 ns beside 100 ns.
    text = "20.0 µs in Möbius, flush, allocated memory (200 times as long as on one host)"
    assert text in page
    # Sentences about one host do not use times between hosts.
    assert "Möbius completes a put 1.99 to 2.0 times faster" in " ".join(written.sentences)
    assert "Between hosts: for small transfers use Möbius" in page
    with (path.parent / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    assert {row["hosts"] for row in rows} == {"one", "between"}
    assert {row["library"] for row in rows} == {"mobius", "mpi"}
    assert any(row["options"] == "type=byte" for row in rows)
    assert list((path.parent / "plots").glob("*between*.dat"))
