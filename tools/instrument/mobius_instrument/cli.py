# SPDX-License-Identifier: BSD-3-Clause
"""The command line: `bench`, `report`, `compare`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mobius_instrument.cells import EXPERIMENTS, format_bytes, format_ns, parse_integers
from mobius_instrument.errors import InstrumentError
from mobius_instrument.libraries.described import read_description
from mobius_instrument.libraries.mpi import check_mpicc
from mobius_instrument.libraries.shmem import check_oshcc
from mobius_instrument.locations import locate
from mobius_instrument.micro import run_micro
from mobius_instrument.output import ReaderGoneError, watch_output
from mobius_instrument.results import find_results, read_results
from mobius_instrument.session import (
    DEFAULT_STALL_S,
    Request,
    check_writable,
    find_candidates,
    run_bench,
    say,
)

if TYPE_CHECKING:
    from mobius_instrument.compare import Comparison

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # as of a program that SIGPIPE ended
EXIT_TERMINATED = 143

Command = TypeVar("Command", bound=Callable[..., Any])


class _Terminated(BaseException):
    """SIGTERM or SIGHUP: tidy up as after Ctrl-C."""


def _names(_context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if value and not names:
        raise click.BadParameter("expected names separated by commas", param=parameter)
    return names


_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(_context: click.Context, parameter: click.Parameter, value: str) -> float | None:
    if not value:
        return None
    unit = value[-1] if value[-1] in _UNITS_S else ""
    try:
        seconds = float(value.removesuffix(unit)) * _UNITS_S.get(unit, 1.0)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise click.BadParameter(f"'{value}' is no time; write 90s, 5m or 1h", param=parameter)
    return seconds


def _chosen_experiments(options: dict[str, Any]) -> tuple[str, ...]:
    """Arguments, --only and --skip together; UsageError for what contradicts itself."""
    named, only = options["experiments"], options["only"]
    for name in only:
        if name not in EXPERIMENTS:
            raise InstrumentError(
                f"--only: no experiment '{name}'; there are {', '.join(EXPERIMENTS)}"
            )
    wanted = [*named, *only] or list(EXPERIMENTS)
    skipped = [name for name in options["skip"] if name in EXPERIMENTS]
    contradictory = [name for name in skipped if name in (*named, *only)]
    if contradictory:
        raise InstrumentError(
            f"{', '.join(contradictory)} is both asked for and skipped; leave one of the two out"
        )
    return tuple(name for name in EXPERIMENTS if name in wanted and name not in skipped)


def _experiments(
    _context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    for name in value:
        if name not in EXPERIMENTS:
            raise click.BadParameter(
                f"no experiment '{name}'; there are {', '.join(EXPERIMENTS)}", param=parameter
            )
    return tuple(name for name in EXPERIMENTS if name in value)


_MEASURING_OPTIONS = (
    click.argument("experiments", nargs=-1, callback=_experiments, metavar="[EXPERIMENT]..."),
    click.option("--libs", default="", callback=_names, help="Measure only these, as a,b."),
    click.option(
        "--only", default="", callback=_names, help="Only these experiments, as a,b: as arguments."
    ),
    click.option(
        "--skip", default="", callback=_names,
        help="Leave these libraries or experiments out, as a,b.",
    ),
    click.option(
        "--mpicc", multiple=True, metavar="COMPILER",
        help="Also the MPI with this compiler, a path or a name in PATH (repeatable).",
    ),
    click.option(
        "--oshcc", multiple=True, metavar="COMPILER",
        help="Also the OpenSHMEM with this compiler, likewise (repeatable).",
    ),
    click.option(
        "--library", "descriptions", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
        help="Also the library, or variant of one, that this file describes (repeatable).",
    ),
    click.option(
        "--variants", is_flag=True,
        help="Also Open MPI and MPICH with other components, each as a column.",
    ),
    click.option("--intel", is_flag=True, help="Also Intel MPI from PyPI."),
    click.option("--no-peers", is_flag=True, help="Install nothing; use what is already here."),
    click.option(
        "--sizes", default="",
        help="Numbers of four-byte integers, as 1,2,4k,1m (k, m: 1,024 and its square), or bytes"
        " with suffix b; ranges multiply, as 1..64k*2, or add, as 1k..2k+64.",
    ),
    click.option(
        "--repeats", type=click.IntRange(1, 1000), help="Launches of each library (default 4)."
    ),
    click.option("--full", is_flag=True, help="More sizes, launches and samples."),
    click.option(
        "--out", default="report", type=click.Path(path_type=Path), show_default=True,
        help="Folder for the results.",
    ),
    click.option(
        "--time-budget", default="", callback=_duration, metavar="TIME",
        help="Stop after so long, as 90s, 5m or 1h; the same command goes on later.",
    ),
    click.option(
        "--hosts", default="", metavar="A,B",
        help="Also between these hosts, of which the first is this one; testbed[:RATE] makes two"
        " on this machine.",
    ),
    click.option(
        "--agent", default="", metavar="PROGRAM",
        help="Starts commands on the other hosts, called as ssh is (default ssh).",
    ),
    click.option(
        "--interface", default="", metavar="NAME", help="Network interface between the hosts."
    ),
    click.option("--fresh", is_flag=True, help="Measure everything again; keeps the old results."),
    click.option(
        "--timeout", type=click.FloatRange(min=1), default=DEFAULT_STALL_S, show_default=True,
        help="A launch that measures nothing for so many seconds hangs and is ended.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True,
        help="Decides data, order of libraries and resampling.",
    ),
)  # fmt: skip


def _measuring(command: Command) -> Command:
    for option in reversed(_MEASURING_OPTIONS):
        command = option(command)
    return command


def _request(options: dict[str, Any]) -> Request:
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
        sizes=tuple(parse_integers(options["sizes"])) if options["sizes"] else (),
        repeats=options["repeats"],
        full=options["full"],
        fresh=options["fresh"],
        stall_s=options["timeout"],
        seed=options["seed"],
        budget_s=options["time_budget"],
        hosts=options["hosts"],
        agent=options["agent"],
        interface=options["interface"],
        descriptions=tuple(read_description(path) for path in options["descriptions"]),
    )


def _console() -> Console:
    # Where no terminal says how wide it is, wide enough for the tables.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Measures one-sided communication on this machine, in Möbius and every MPI found."""


@cli.command()
@_measuring
@click.option("--list", "listed", is_flag=True, help="List experiments and libraries, and end.")
def bench(listed: bool, **options: Any) -> None:  # noqa: ANN401
    """Measure, and keep every sample in DIR/results.jsonl.

    A run that was interrupted goes on where it stopped when the same command is given again.

    `bench micro [NAME]...` is another thing: it sets Möbius against the bare machine, prints
    ratios, and keeps nothing; see `bench micro --help`.
    """
    console = _console()
    request = _request(options)
    if listed:
        _list(request, console)
        return
    path = run_bench(request, console)
    say(console, f"results: {path}; show them with: mobius report --from {path}")


def _list(request: Request, console: Console) -> None:
    say(console, "experiments")
    for name, meaning in EXPERIMENTS.items():
        say(console, f"  {name:<16} {meaning}")
    say(console, "libraries")
    for candidate in find_candidates(request, locate()):
        state = "" if candidate.present else " (not installed or built yet)"
        say(console, f"  {candidate.name:<16} {candidate.description}{state}")


@cli.command()
@_measuring
@click.option(
    "--from", "source", type=click.Path(path_type=Path),
    help="Only show the results in this file or folder.",
)  # fmt: skip
@click.option(
    "--compare", "older", type=click.Path(path_type=Path), metavar="OLD",
    help="Mark what changed since the results in this file or folder, beyond noise.",
)  # fmt: skip
def report(source: Path | None, older: Path | None, **options: Any) -> None:  # noqa: ANN401
    """Measure as bench does, then write DIR/index.html, results.csv and plots."""
    from mobius_instrument.presentation import write_report

    console = _console()
    _check_source(source)
    request = _request(options)
    # Better known before minutes of measuring.
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


def _check_source(source: Path | None) -> None:
    """UsageError where --from comes with what only a measurement could follow."""
    context = click.get_current_context()
    without_effect = [
        option.opts[0]
        for option in context.command.params
        if option.name not in ("source", "older", "out")
        and option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if source is not None and without_effect:
        raise InstrumentError(
            f"--from only shows what was measured, and {', '.join(without_effect)} would measure;"
            " leave one of the two out"
        )


@cli.command(name="compare")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("others", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="B...")
@click.option("--all", "everything", is_flag=True, help="Show also what is unchanged.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare_command(a: Path, others: tuple[Path, ...], everything: bool, as_json: bool) -> None:
    """Which differences between results files (or report folders) are real: each B beside A.

    A difference is real when the 95 % interval of the ratio of medians excludes 1, the ratio is
    more than 3 % away from 1 and, with four launches or more in both, a rank test of the
    launches agrees.
    """
    from mobius_instrument.compare import caveats, compare

    console = _console()
    first, *read = (read_results(find_results(place)) for place in (a, *others))
    found = []
    for place, results in zip(others, read, strict=True):
        warnings = [*first.warnings, *results.warnings, *caveats(first, results)]
        for warning in warnings:
            print(f"mobius: warning: {warning}", file=sys.stderr)
        found.append(compare(first, results))
        if not found[-1].differences:
            raise InstrumentError(f"{a} and {place} have no series at the same size in common")
    if as_json:
        parsed = [one.to_json() for one in found]
        shown = parsed[0] if len(parsed) == 1 else parsed
        print(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    for place, comparison in zip(others, found, strict=True):
        if len(others) > 1:
            say(console, f"A is {a}, B is {place}")
        _show(comparison, everything, console)


def _show(comparison: Comparison, everything: bool, console: Console) -> None:
    from mobius_instrument.compare import THRESHOLD

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
            cli(prog_name="mobius", standalone_mode=False)
        sys.stdout.flush()
    except InstrumentError as error:
        _fail(str(error))
    except click.ClickException as error:
        _fail(error.format_message().replace("\n", " "))
    except (KeyboardInterrupt, click.Abort):
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
        f"\nmobius: interrupted; what was measured is kept, go on with: mobius {arguments}",
        file=sys.stderr,
    )
    sys.exit(exit_code)
