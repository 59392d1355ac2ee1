# SPDX-License-Identifier: BSD-3-Clause
"""The options of `bench`, `report` and `compare`, and the texts of their `--help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from mobius_instrument.cells import ALL_EXPERIMENTS, EXPERIMENTS, LONG, parse_integers
from mobius_instrument.errors import InstrumentError
from mobius_instrument.request import DEFAULT_STALL_S

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Options:
    """A command with the values of its options, and the options that were given, as spelt."""

    command: str
    values: Mapping[str, Any]
    given: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        """The value of an option, by its long name with underscores."""
        return self.values[name]


class _Help(argparse.RawDescriptionHelpFormatter):
    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Any,  # noqa: ANN401 # a class that argparse keeps to itself
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InstrumentError(f"{message}; see {self.prog} --help")


def _wrong(text: str) -> NoReturn:
    raise argparse.ArgumentTypeError(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if text and not names:
        _wrong("expected names separated by commas")
    return names


_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(text: str) -> float:
    unit = text[-1:] if text[-1:] in _UNITS_S else ""
    try:
        seconds = float(text.removesuffix(unit)) * _UNITS_S.get(unit, 1.0)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        _wrong(f"'{text}' is no time; write 90s, 5m or 1h")
    return seconds


def _experiment(text: str) -> str:
    if text not in (*EXPERIMENTS, ALL_EXPERIMENTS):
        _wrong(f"no experiment '{text}'; there are {', '.join(EXPERIMENTS)}")
    return text


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(parse_integers(text)) if text else ()


def _number(read: Callable[[str], Number], least: Number, most: Number) -> Callable[[str], Number]:
    kind = "whole number" if read is int else "number"

    def parse_number(text: str) -> Number:
        try:
            number = read(text)
        except ValueError:
            _wrong(f"'{text}' is no {kind}")
        if not least <= number <= most:
            limits = f"from {least} to {most}" if most < float("inf") else f"of at least {least}"
            _wrong(f"'{text}' is not a {kind} {limits}")
        return number

    return parse_number


# Options with their defaults, by the names that Options has them under. argparse leaves out what is
# not given (SUPPRESS), so that "given with the default" is still given.
_DEFAULTS: Mapping[str, Any] = {
    "experiments": [],
    "libs": (),
    "only": (),
    "skip": (),
    "mpicc": [],
    "oshcc": [],
    "library": [],
    "variants": False,
    "intel": False,
    "no_peers": False,
    "sizes": (),
    "repeats": None,
    "full": False,
    "out": Path("report"),
    "time_budget": None,
    "hosts": "",
    "agent": "",
    "interface": "",
    "fresh": False,
    "timeout": DEFAULT_STALL_S,
    "seed": 1,
    "list": False,
    "from": None,
    "compare": None,
    "all": False,
    "json": False,
}


def _parser(command: str, usage: str, description: str) -> _Parser:
    return _Parser(
        prog=f"mobius {command}",
        usage=f"mobius {command} {usage}",
        description=description,
        formatter_class=_Help,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "experiments", nargs="*", type=_experiment, metavar="EXPERIMENT",
        help="what to measure; all: everything (default: everything but"
        f" {', '.join(LONG)}, which --full has, too); bench --list names the experiments",
    )  # fmt: skip
    add(
        "--libs", type=_names, metavar="A,B",
        help="measure these libraries; all: all of this machine (default: Möbius, its OpenSHMEM,"
        " two MPIs and the same on Möbius)",
    )  # fmt: skip
    add("--only", type=_names, metavar="A,B", help="measure only these experiments")
    add("--skip", type=_names, metavar="A,B", help="leave out these libraries or experiments")
    add(
        "--mpicc", action="append", metavar="COMPILER",
        help="measure also the MPI with this compiler, a path or a name in PATH; may be repeated",
    )  # fmt: skip
    add(
        "--oshcc", action="append", metavar="COMPILER",
        help="measure also the OpenSHMEM with this compiler; may be repeated",
    )  # fmt: skip
    add(
        "--library", action="append", type=Path, metavar="FILE",
        help="measure also the library, or the variant of one, that FILE describes; may be"
        " repeated",
    )  # fmt: skip
    add(
        "--variants", action="store_true",
        help="measure also Open MPI and MPICH with other components, each as a column",
    )  # fmt: skip
    add("--intel", action="store_true", help="measure also Intel MPI, from PyPI")
    add("--no-peers", action="store_true", help="install nothing; measure what is already here")
    add(
        "--sizes", type=_sizes, metavar="SIZES",
        help="numbers of four-byte integers, as 1,2,4k,1m (k is 1,024, m its square), or of bytes"
        " with the suffix b; a range multiplies, as 1..64k*2, or adds, as 1k..2k+64",
    )  # fmt: skip
    add(
        "--repeats", type=_number(int, 1, 1000), metavar="N",
        help="how often libraries are started (default 1 to take turns, else 4)",
    )  # fmt: skip
    add("--full", action="store_true", help="more sizes, launches and samples")
    add("--out", type=Path, metavar="DIR", help="folder of the results (default report)")
    add(
        "--time-budget", type=_duration, metavar="TIME",
        help="stop after this time, as 90s, 5m or 1h; the same command continues later",
    )  # fmt: skip
    add(
        "--hosts", metavar="A,B",
        help="measure also between these hosts, of which the first is this one; testbed[:RATE]"
        " makes two on this machine",
    )  # fmt: skip
    add(
        "--agent", metavar="PROGRAM",
        help="the program that starts commands on the other hosts, called as ssh is (default ssh)",
    )  # fmt: skip
    add("--interface", metavar="NAME", help="network interface between the hosts")
    add("--fresh", action="store_true", help="measure everything again; keeps the old results")
    add(
        "--timeout", type=_number(float, 1, float("inf")), metavar="SECONDS",
        help=f"a launch that measures nothing for so long hangs, and is ended (default"
        f" {DEFAULT_STALL_S:.0f})",
    )  # fmt: skip
    add(
        "--seed", type=_number(int, 0, 2**31 - 1), metavar="N",
        help="decides data, order of libraries and resampling (default 1)",
    )  # fmt: skip


def _bench_parser() -> _Parser:
    parser = _parser(
        "bench",
        "[OPTIONS] [EXPERIMENT]...\n       mobius bench micro [OPTIONS] [NAME]...",
        "Measures experiments in Möbius and the other libraries of this machine, and keeps every\n"
        "sample in DIR/results.jsonl. A run that was interrupted continues where it stopped when\n"
        "the same command is given again.\n\n"
        "`bench micro` is another measurement: it sets Möbius against the bare machine, prints\n"
        "ratios and keeps nothing; see `mobius bench micro --help`.",
    )
    _add_measuring(parser)
    parser.add_argument(
        "--list", action="store_true", help="list the experiments and libraries; measure nothing"
    )
    return parser


def _report_parser() -> _Parser:
    parser = _parser(
        "report",
        "[OPTIONS] [EXPERIMENT]...",
        "Measures as `mobius bench` does, then writes DIR/index.html, results.csv and plots.",
    )
    _add_measuring(parser)
    parser.add_argument(
        "--from", type=Path, metavar="RESULTS",
        help="measure nothing: show the results in this file or folder",
    )  # fmt: skip
    parser.add_argument(
        "--compare", type=Path, metavar="OLD",
        help="mark what changed, beyond noise, since the results in this file or folder",
    )  # fmt: skip
    return parser


def _compare_parser() -> _Parser:
    parser = _parser(
        "compare",
        "[OPTIONS] A B...",
        "Says which differences between results are real. Compares each B with A.\n\n"
        "A difference is real when the 95 % interval of the ratio of medians excludes 1, the\n"
        "ratio is more than 3 % away from 1 and, with four launches or more in both, a rank test\n"
        "of the launches agrees.",
    )
    parser.add_argument("a", type=Path, metavar="A", help="results.jsonl, or a folder with one")
    parser.add_argument("others", type=Path, nargs="+", metavar="B", help="the same")
    parser.add_argument("--all", action="store_true", help="show also what is unchanged")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


_PARSERS = {"bench": _bench_parser, "report": _report_parser, "compare": _compare_parser}

_HELP = """Usage: mobius COMMAND [OPTIONS]

Measures one-sided communication on this machine, in Möbius and every MPI found.

  bench      measure, keep every sample
  report     measure, then write an HTML report
  compare    say which differences between two results are real

Each command has --help.
"""


def parse(arguments: Sequence[str]) -> Options | None:
    """The command that `arguments` say; None after a help text was printed."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(_HELP)
        return None
    command, *rest = arguments
    if command not in _PARSERS:
        raise InstrumentError(f"no command '{command}'; there are {', '.join(_PARSERS)}")
    parser = _PARSERS[command]()
    options = rest[: rest.index("--")] if "--" in rest else rest
    if "-h" in options or "--help" in options:
        sys.stdout.write(parser.format_help())
        return None
    found = vars(parser.parse_intermixed_args(rest))
    given = tuple(f"--{name}".replace("_", "-") for name in _DEFAULTS if name in found)
    return Options(command, {**_DEFAULTS, **found}, given)
