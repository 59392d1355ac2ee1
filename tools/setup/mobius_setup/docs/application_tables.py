# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the applications' recordings (applications.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from mobius_setup.docs.markdown import NONE, count_text, ratio_text, table, time_text
from mobius_setup.docs.recording import DocsError, Figure, Recording

_KERNELS: Final = (("plain", "loops"), ("blas", "BLAS"))
_ORDERS: Final = (512, 1024, 3072)
_MOLECULES: Final = (216, 1000, 4096)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _ratio(of: Recording, key: str, other: str) -> tuple[float, float, float]:
    """The median, least and most of the ratios of a figure to another program."""
    ratios = of.need(key).get("ratios", {})
    if other not in ratios:
        raise DocsError(f"{of.path}: figure '{key}' has no ratio to '{other}'")
    middle, low, high = (float(value) for value in ratios[other])
    return middle, low, high


def _ratio_cell(of: Recording, key: str, other: str) -> str:
    """A ratio with the span of the rounds; a dash if the program was not there."""
    if of.find(key) is None:
        return NONE
    middle, low, high = _ratio(of, key, other)
    return f"{ratio_text(middle)} ({ratio_text(low)}–{ratio_text(high)})"


def _speed_up(of: Recording, key: str, alone: str, copies: int = 1) -> str:
    return ratio_text(copies / _ratio(of, key, alone)[0])


def _mpi(of: Recording) -> str:
    return str((of.find("label mpi") or {"label": "MPI"})["label"])


def _matrices(of: Recording, ending: str) -> Iterable[tuple[str, str]]:
    """The beginnings of keys and of rows."""
    for kernel, words in _KERNELS:
        for order in _ORDERS:
            if of.find(f"{order} {kernel} {ending}") is not None:
                yield f"{order} {kernel}", f"{count_text(order)} rows, {words}"


def _lu(of: Recording) -> str:
    rows = []
    for key, label in _matrices(of, "threads cyclic"):
        rows.append(
            [
                label,
                time_text(of.need(f"{key} threads cyclic")["ns"]),
                time_text(of.need(f"{key} processes cyclic")["ns"]),
                _ratio_cell(of, f"{key} processes cyclic", "threads cyclic"),
                _ratio_cell(of, f"{key} processes block", "threads block"),
                *(
                    _ratio_cell(of, f"{key} {name}", "threads cyclic")
                    for name in ("copying", "armci", "mpi")
                ),
            ]
        )
    head = (
        "matrix", "2 threads", "2 processes", "ratio", "ratio, block placement",
        "copying blocks", "over ARMCI", f"over {_mpi(of)}",
    )  # fmt: skip
    return table(head, rows, of.source())


def _lu_scaling(of: Recording) -> str:
    rows = []
    for key, label in _matrices(of, "threads cyclic"):
        limit, ours = f"{key} 2 apart", f"{key} processes cyclic"
        rows.append(
            [
                label,
                time_text(of.need(f"{key} 1 thread")["ns"]),
                _speed_up(of, ours, "1 thread"),
                _speed_up(of, f"{key} threads cyclic", "1 thread"),
                _speed_up(of, f"{key} threads block", "1 thread"),
                _speed_up(of, limit, "1 thread", copies=2),
                _share(of.need(ours)["communication"]),
                _share(of.need(ours)["waiting"]),
            ]
        )
    head = (
        "matrix", "1 thread", "2 processes", "2 threads", "2 threads, block placement",
        "2 programs apart", "communication", "waiting",
    )  # fmt: skip
    return table(head, rows, of.source())


def _lu_hosts(of: Recording) -> str:
    rows = []
    for processes in (2, 4):
        for key, label in _matrices(of, f"{processes} hybrid"):
            hybrid = of.need(f"{key} {processes} hybrid")
            rows.append(
                [
                    f"{label}, {processes} processes",
                    time_text(hybrid["ns"]),
                    _ratio_cell(of, f"{key} {processes} cyclic", "hybrid"),
                    _ratio_cell(of, f"{key} {processes} block", "hybrid"),
                    _share(hybrid["communication"]),
                    _share(hybrid["waiting"]),
                ]
            )
    head = ("matrix", "hybrid", "cyclic", "block", "communication", "waiting")
    return table(head, rows, of.source())


def _molecules(row: Callable[[str], list[str]]) -> list[list[str]]:
    return [[count_text(molecules), *row(str(molecules))] for molecules in _MOLECULES]


def _step(figure: Figure) -> str:
    return time_text(figure["ns"])


def _md(of: Recording) -> str:
    def row(key: str) -> list[str]:
        ours = of.need(f"{key} 2 processes")
        return [
            _step(of.need(f"{key} 1 process")),
            _step(ours),
            _share(ours["communication"]),
            _share(ours["waiting"]),
            _speed_up(of, f"{key} 2 processes", "1 process"),
            _speed_up(of, f"{key} 2 apart", "1 process", copies=2),
            *(
                _ratio_cell(of, f"{key} {name}", "2 processes")
                for name in ("armci", "messages", "mpi")
            ),
        ]

    head = (
        "molecules", "1 process", "2 processes", "communication", "waiting", "speed-up",
        "speed-up, 2 programs apart", "over ARMCI", f"messages, {_mpi(of)}",
        f"one-sided, {_mpi(of)}",
    )  # fmt: skip
    return table(head, _molecules(row), of.source())


def _md_hosts(of: Recording) -> str:
    def row(key: str) -> list[str]:
        ours = of.need(f"{key} two hosts")
        return [
            _step(ours),
            _share(ours["communication"]),
            _share(ours["waiting"]),
            *(
                _ratio_cell(of, f"{key} {name}", "two hosts")
                for name in ("one host", "armci", "messages", "mpi")
            ),
        ]

    head = (
        "molecules", "2 processes", "communication", "waiting", "on one host", "over ARMCI",
        f"messages, {_mpi(of)}", f"one-sided, {_mpi(of)}",
    )  # fmt: skip
    return table(head, _molecules(row), of.source())


TABLES: Final[dict[str, tuple[str, Callable[[Recording], str]]]] = {
    "lu": ("lu", _lu),
    "lu-scaling": ("lu", _lu_scaling),
    "lu-blas": ("lu-blas", _lu),
    "lu-blas-scaling": ("lu-blas", _lu_scaling),
    "lu-hosts": ("lu-hosts", _lu_hosts),
    "md": ("md", _md),
    "md-hosts": ("md-hosts", _md_hosts),
}
