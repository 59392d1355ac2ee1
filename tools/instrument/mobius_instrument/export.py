# SPDX-License-Identifier: BSD-3-Clause
"""`results.csv`: one row per series and size, for spreadsheets and gnuplot."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

from mobius_instrument.cells import INTEGER_BYTES, Cell, bandwidth_mb_s
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.presentation.analysis import Analysis
from mobius_instrument.stats import PERCENTILES

CSV_NAME: Final = "results.csv"

_HEAD: Final = (
    "library", "label", "hosts", "experiment", "operation", "sync", "memory", "options",
    "bytes", "integers", "launches", "samples", "median_ns", "low_ns", "high_ns", "minimum_ns",
    "average_ns", "maximum_ns", "deviation_ns", *(f"percentile_{one}_ns" for one in PERCENTILES),
    "bandwidth_mb_s", "status", "detail",
)  # fmt: skip


def write_csv(analysis: Analysis, path: Path, between: Analysis | None = None) -> None:
    """Times are one-way in ping-pong. Cells without times follow with their status and detail.
    Series between hosts have `between` in the column `hosts`."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(_HEAD)
            _write(rows, analysis, "one")
            if between is not None:
                _write(rows, between, "between")
    except OSError as error:
        raise InstrumentError(f"cannot write {path}: {system_reason(error)}") from error


def _options(cell: Cell) -> str:
    return " ".join(f"{name}={value}" for name, value in cell.options)


def _write(rows: Any, analysis: Analysis, hosts: str) -> None:  # noqa: ANN401
    for series in analysis.series:
        label = analysis.results.label(series.library)
        cell = series.cell
        for size, s in series.summaries.items():
            rows.writerow(
                [
                    series.library, label, hosts, cell.experiment, cell.operation,
                    cell.sync, cell.memory, _options(cell), size,
                    size // INTEGER_BYTES, s.launches, s.samples,
                    *(
                        f"{value:.2f}"
                        for value in (
                            s.median, s.low, s.high, s.minimum, s.average, s.maximum,
                            s.deviation, *s.percentiles, bandwidth_mb_s(size, s.median),
                        )
                    ),
                    "ok", "",
                ]
            )  # fmt: skip
    for outcome in analysis.results.outcomes:
        cell = outcome.cell
        size_text = outcome.size_bytes if outcome.size_bytes is not None else ""
        rows.writerow(
            [
                outcome.library, analysis.results.label(outcome.library), hosts,
                cell.experiment, cell.operation, cell.sync, cell.memory, _options(cell),
                size_text, *[""] * (11 + len(PERCENTILES)), outcome.status, outcome.detail,
            ]
        )  # fmt: skip
