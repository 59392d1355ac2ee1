# SPDX-License-Identifier: BSD-3-Clause
"""The commands `bench`, `report` and `compare`."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from mobius_instrument.cells import (
    ALL_EXPERIMENTS,
    DEFAULT_EXPERIMENTS,
    EXPERIMENTS,
    format_bytes,
    format_ns,
)
from mobius_instrument.errors import InstrumentError
from mobius_instrument.libraries.described import read_description
from mobius_instrument.libraries.mpi import check_mpicc
from mobius_instrument.libraries.shmem import check_oshcc
from mobius_instrument.locations import locate
from mobius_instrument.micro import run_micro
from mobius_instrument.options import Options, parse
from mobius_instrument.output import ReaderGoneError, watch_output
from mobius_instrument.request import Request, find_candidates

# Modules that need more than the standard library are imported where they are used: `--help` and
# `bench --list` answer without them.
if TYPE_CHECKING:
    from rich.console import Console

    from mobius_instrument.compare import Comparison

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # the exit code of a program that SIGPIPE has ended
EXIT_TERMINATED = 143


class _Terminated(BaseException):
    """SIGTERM or SIGHUP: tidy up as after Ctrl-C."""


def _chosen_experiments(options: Options) -> tuple[str, ...]:
    """The experiments that the arguments, --only and --skip leave, in the usual order."""
    only = options["only"]
    for name in only:
        if name not in (*EXPERIMENTS, ALL_EXPERIMENTS):
            raise InstrumentError(
                f"--only: no experiment '{name}'; there are {', '.join(EXPERIMENTS)}"
            )
    named = (*options["experiments"], *only)
    usual = tuple(EXPERIMENTS) if options["full"] else DEFAULT_EXPERIMENTS
    wanted = tuple(EXPERIMENTS) if ALL_EXPERIMENTS in named else named or usual
    skipped = [name for name in options["skip"] if name in EXPERIMENTS]
    contradictory = [name for name in skipped if name in named]
    if contradictory:
        raise InstrumentError(
            f"{', '.join(contradictory)} is both asked for and skipped; leave one of the two out"
        )
    return tuple(name for name in EXPERIMENTS if name in wanted and name not in skipped)


def _request(options: Options) -> Request:
    return Request(
        out=options["out"],
        experiments=_chosen_experiments(options),
        wanted=options["libs"],
        skipped=tuple(name for name in options["skip"] if name not in EXPERIMENTS),
        mpiccs=tuple(check_mpicc(path) for path in options["mpicc"]),
        oshccs=tuple(check_oshcc(path) for path in options["oshcc"]),
        variants=options["variants"],
        install=not options["no_peers"],
        intel=options["intel"],
        sizes=options["sizes"],
        repeats=options["repeats"],
        full=options["full"],
        fresh=options["fresh"],
        stall_s=options["timeout"],
        seed=options["seed"],
        budget_s=options["time_budget"],
        hosts=options["hosts"],
        agent=options["agent"],
        interface=options["interface"],
        descriptions=tuple(read_description(path) for path in options["library"]),
    )


def _console() -> Console:
    from rich.console import Console

    # Where no terminal says how wide it is, wide enough for the tables.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _bench(options: Options) -> None:
    request = _request(options)
    if options["list"]:
        _list(request)
        return
    from mobius_instrument.progress import say
    from mobius_instrument.session import run_bench

    console = _console()
    path = run_bench(request, console)
    say(console, f"results: {path}; show them with: mobius report --from {path}")


def _list(request: Request) -> None:
    print("experiments")
    for name, meaning in EXPERIMENTS.items():
        print(f"  {name:<16} {meaning}")
    print("libraries")
    for candidate in find_candidates(request, locate()):
        state = "" if candidate.present else " (not installed or built yet)"
        print(f"  {candidate.name:<16} {candidate.description}{state}")


def _report(options: Options) -> None:
    from mobius_instrument.presentation import write_report
    from mobius_instrument.progress import say
    from mobius_instrument.results import find_results, read_results
    from mobius_instrument.session import check_writable, run_bench

    source, older = options["from"], options["compare"]
    if source is not None:
        _check_nothing_measured(options)
    console = _console()
    request = _request(options)
    # Read before minutes of measuring: if it cannot be read, the user learns so now.
    earlier = read_results(find_results(older)) if older is not None else None
    results_path = run_bench(request, console) if source is None else find_results(source)
    check_writable(request.out)
    results = read_results(results_path)
    for warning in results.warnings:
        say(console, f"warning: {warning}")
    say(console, "writing the report …")
    written = write_report(results, request.out, earlier)
    for sentence in written.sentences[:3]:
        say(console, f"  {sentence}")
    say(console, f"report: {written.path.resolve()}")


def _check_nothing_measured(options: Options) -> None:
    """Refuses --from beside an option that only a measurement could follow."""
    without_effect = [
        name for name in options.given if name not in ("--from", "--compare", "--out")
    ]
    if without_effect:
        raise InstrumentError(
            f"--from only shows what was measured, and {', '.join(without_effect)} would measure;"
            " leave one of the two out"
        )


def _compare(options: Options) -> None:
    from mobius_instrument.compare import caveats, compare
    from mobius_instrument.progress import say
    from mobius_instrument.results import find_results, read_results

    a: Path = options["a"]
    others: list[Path] = options["others"]
    first, *read = (read_results(find_results(place)) for place in (a, *others))
    found = []
    for place, results in zip(others, read, strict=True):
        warnings = [*first.warnings, *results.warnings, *caveats(first, results)]
        for warning in warnings:
            print(f"mobius: warning: {warning}", file=sys.stderr)
        found.append(compare(first, results))
        if not found[-1].differences:
            raise InstrumentError(f"{a} and {place} have no series at the same size in common")
    if options["json"]:
        parsed = [one.to_json() for one in found]
        shown = parsed[0] if len(parsed) == 1 else parsed
        print(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    console = _console()
    for place, comparison in zip(others, found, strict=True):
        if len(others) > 1:
            say(console, f"A is {a}, B is {place}")
        _show(comparison, options["all"], console)


def _show(comparison: Comparison, everything: bool, console: Console) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from mobius_instrument.compare import CLOSE, THRESHOLD
    from mobius_instrument.progress import say

    shown = [one for one in comparison.differences if one.real or everything]
    if shown:
        say(console, "time in B beside A; below 1, B is faster")
    colours = {"faster": "green", "slower": "red", "same": "dim"}
    for label in dict.fromkeys(one.label for one in shown):
        # A table per library keeps the columns narrow enough for a terminal.
        table = Table(title=label, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("cell", overflow="fold")
        for name in ("size", "A", "B", "B / A", "95 % interval"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("B is", no_wrap=True)
        for one in (one for one in shown if one.label == label):
            table.add_row(
                one.cell, format_bytes(one.bytes), format_ns(one.a_ns), format_ns(one.b_ns),
                f"{one.ratio:.3f}", f"{one.low:.3f} … {one.high:.3f}",
                f"[{colours[one.verdict]}]{one.verdict}[/]",
            )  # fmt: skip
        console.print(table)
    for title, names in (("only in A", comparison.only_a), ("only in B", comparison.only_b)):
        if names:
            say(console, f"{title}: {', '.join(names)}")
    verdicts = [one.verdict for one in comparison.differences]
    say(
        console,
        f"{len(verdicts)} times compared: {verdicts.count('faster')} faster,"
        f" {verdicts.count('slower')} slower, {verdicts.count('same')} without a real difference"
        f" (more than {THRESHOLD:.0%} and outside the interval)",
    )
    told = comparison.agreement
    if told.ratios:
        say(
            console,
            f"{told.ratios} ratios between libraries: {told.close / told.ratios:.0%} differ by less"
            f" than {CLOSE:.0%} between A and B",
        )


_COMMANDS = {"bench": _bench, "report": _report, "compare": _compare}


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Terminated


def main() -> None:
    """Runs the command; every error a user can cause is one line and exit code 2."""
    # A shell that starts us in the background leaves SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    watch_output()
    exit_code = 0
    try:
        if sys.argv[1:3] == ["bench", "micro"]:  # a program of its own, with its own options
            exit_code = run_micro(sys.argv[3:], locate())
        else:
            options = parse(sys.argv[1:])
            if options is not None:
                _COMMANDS[options.command](options)
        sys.stdout.flush()
    except InstrumentError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _interrupted(EXIT_INTERRUPTED)
    except _Terminated:
        _interrupted(EXIT_TERMINATED)
    except ReaderGoneError:  # what was measured is kept
        sys.exit(EXIT_READER_GONE)
    sys.exit(exit_code)


def _fail(text: str) -> NoReturn:
    print(f"mobius: error: {text}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def _interrupted(exit_code: int) -> NoReturn:
    arguments = " ".join(argument for argument in sys.argv[1:] if argument != "--fresh")
    print(
        f"\nmobius: interrupted; measured cells are kept, go on with: mobius {arguments}",
        file=sys.stderr,
    )
    sys.exit(exit_code)
