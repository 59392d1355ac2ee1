# SPDX-License-Identifier: BSD-3-Clause
"""Recorded results: docs/results/NAME.jsonl.

The first line describes the run: `command`, `date`, `version`, `commit`, `host`, and `others`, the
processors that other programs used meanwhile, on average. Every other line is one figure: `key`,
its name within the file, and numbers: `ns` (the median) and, by part, `low_ns` and `high_ns` (its
95 % interval, or the least and the most of all rounds), `ratio` and what else the part measures.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path("docs/results")
SCHEMA: Final = 1

Figure = dict[str, Any]


class DocsError(Exception):
    """What the caller must correct; the text says how."""


@dataclass(frozen=True)
class Recording:
    """One file: what it was measured on, and its figures by key."""

    path: Path
    run: dict[str, Any]
    figures: dict[str, Figure]

    def find(self, key: str) -> Figure | None:
        """A figure, or None if the run has none of that name."""
        return self.figures.get(key)

    def need(self, key: str) -> Figure:
        """A figure that a table cannot do without."""
        if key not in self.figures:
            raise DocsError(
                f"{self.path} has no figure '{key}': record it again, or correct"
                " tools/setup/mobius_setup/docs/tables.py"
            )
        return self.figures[key]

    def compiler(self) -> str:
        """One line for below a table of machine code: compiler, version, date and command."""
        run = self.run
        return (
            f"*x86-64, -O2, {run['host']['compiler']}; Möbius {run['version']} ({run['commit']}),"
            f" {run['date']}; recorded by `{run['command']}`.*"
        )

    def source(self) -> str:
        """One line for below a table: machine, version, date and command."""
        host = self.run["host"]
        kind = "virtual machine" if host.get("virtual") else "machine"
        # A processor's name may be padded with words that tell nothing.
        cpu = " ".join(str(host["cpu"]).split()).replace("(R)", "").replace("(TM)", "")
        busy = float(self.run["others"])
        others = f" Other programs used {busy:.1f} processors meanwhile." if busy >= 0.05 else ""
        return (
            f"*{cpu}, {kind} with {host['cores']} processors, Linux {host['kernel']}; Möbius"
            f" {self.run['version']} ({self.run['commit']}), {self.run['date']};"
            f" recorded by `{self.run['command']}`.{others}*"
        )


def read(path: Path) -> Recording:
    """Reads a recording; DocsError when it is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        hint = f"make it with: ./mobius docs record {path.stem}"
        raise DocsError(f"cannot read {path}: {error}; {hint}") from error
    try:
        records = [json.loads(line) for line in lines if line.strip()]
        run = records[0]
        if run["type"] != "run" or run["schema"] != SCHEMA:
            raise DocsError(f"{path}: its first line is not a run of schema {SCHEMA}")
        figures = {record["key"]: record for record in records[1:]}
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DocsError(f"{path} is not a recording: {error!r}") from error
    if len(figures) != len(records) - 1:
        raise DocsError(f"{path}: two figures have one key")
    return Recording(path, run, figures)


def write(path: Path, run: dict[str, Any], figures: list[Figure]) -> None:
    """Writes a recording at once, so that a reader never finds half of one."""
    lines = [{"type": "run", "schema": SCHEMA, **run}, *figures]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
