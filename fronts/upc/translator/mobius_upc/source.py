# SPDX-License-Identifier: BSD-3-Clause
"""The text that Clang parses, and what must be remembered of places in it.

A text is bytes decoded as Latin-1, so that an index is Clang's byte offset. The markers of `gcc
-E` are taken out; `lines` remembers them. Everything else that is remembered of a place is a
*mark*, an object with offsets that `SourceText.edit` keeps up to date.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field, fields

from .problems import Place

MARKER = re.compile(r'^#(?:line)? +(\d+) +"((?:[^"\\]|\\.)*)"([ \d]*)$\n?', re.MULTILINE)


@dataclass
class LineMark:
    """From this offset on, lines count from `line` of `file`."""

    at: int
    file: str
    line: int
    system: bool


@dataclass
class Forall:
    """A `upc_forall` that was rewritten to `for (init; condition; step, (affinity))`."""

    at: int
    affinity: int  # after the parenthesis before the affinity; -1: none, or `continue`
    name: str = "upc_forall"


@dataclass
class SizeOf:
    """An `upc_…sizeof`, or a `sizeof` of a type, rewritten to `sizeof(*(__typeof__(X)*)0)`."""

    at: int
    operator: str


@dataclass
class Strictness:
    """Between two offsets, accesses that say nothing are strict (or relaxed)."""

    at: int
    end: int
    strict: bool


@dataclass(frozen=True)
class Edit:
    """Replaces the text between two offsets."""

    start: int
    end: int
    text: str


@dataclass
class SourceText:
    """The text, its lines and its marks."""

    text: str
    lines: list[LineMark]
    foralls: list[Forall] = field(default_factory=list)
    sizeofs: list[SizeOf] = field(default_factory=list)
    strictness: list[Strictness] = field(default_factory=list)
    relaxed: list[LineMark] = field(default_factory=list)  # where `relaxed` stood
    body: list[LineMark] = field(
        default_factory=list
    )  # one: where the program begins after the prologue

    @staticmethod
    def from_preprocessed(text: str) -> SourceText:
        """Takes the line markers out of the output of `gcc -E`."""
        lines: list[LineMark] = []
        parts: list[str] = []
        length = at = 0
        for marker in MARKER.finditer(text):
            part = text[at : marker.start()]
            parts.append(part)
            length += len(part)
            at = marker.end()
            name = re.sub(r"\\(.)", r"\1", marker[2])
            lines.append(LineMark(length, name, int(marker[1]), "3" in marker[3].split()))
        parts.append(text[at:])
        if not lines or lines[0].at > 0:
            lines.insert(0, LineMark(0, "<stdin>", 1, False))
        return SourceText("".join(parts), lines)

    def mark_at(self, offset: int) -> LineMark:
        """The marker that says which file an offset is in."""
        index = bisect.bisect_right(self.lines, offset, key=lambda mark: mark.at) - 1
        return self.lines[max(index, 0)]

    def place(self, offset: int) -> Place:
        """File and line of an offset."""
        mark = self.mark_at(offset)
        return Place(mark.file, mark.line + self.text.count("\n", mark.at, offset))

    def markers_between(self, start: int, end: int) -> list[LineMark]:
        """Markers at or after `start` and before `end`."""
        first = bisect.bisect_left(self.lines, start, key=lambda mark: mark.at)
        last = bisect.bisect_left(self.lines, end, key=lambda mark: mark.at)
        return self.lines[first:last]

    def is_strict(self, offset: int) -> bool:
        """Whether an access without a qualifier is strict here: the innermost pragma decides."""
        best: Strictness | None = None
        for region in self.strictness:
            if region.at <= offset < region.end and (best is None or region.at >= best.at):
                best = region
        return best is not None and best.strict

    def edit(self, edits: list[Edit]) -> None:
        """Applies edits that do not overlap; marks move with the token they stand before."""
        edits = sorted(edits, key=lambda edit: (edit.start, edit.end))
        parts: list[str] = []
        starts: list[int] = []
        shifts: list[int] = []
        at = shift = 0
        for edit in edits:
            if edit.start < at:
                raise ValueError(f"edits overlap at {edit.start}")
            parts += (self.text[at : edit.start], edit.text)
            at = edit.end
            # A replaced token keeps its offset; an insertion moves what it stands before.
            moved_from = edit.start if edit.start == edit.end else edit.start + 1
            shift += len(edit.text) - (edit.end - edit.start)
            starts.append(moved_from)
            shifts.append(shift)
        parts.append(self.text[at:])
        self.text = "".join(parts)

        def moved(offset: int) -> int:
            index = bisect.bisect_right(starts, offset) - 1
            return offset + (shifts[index] if index >= 0 else 0)

        groups: list[list[object]] = [
            [*self.lines],
            [*self.foralls],
            [*self.sizeofs],
            [*self.strictness],
            [*self.relaxed],
            [*self.body],
        ]
        for group in groups:
            for mark in group:
                for name in ("at", "affinity", "end"):
                    if any(entry.name == name for entry in fields(mark)):  # type: ignore[arg-type]
                        value: int = getattr(mark, name)
                        if value >= 0:
                            setattr(mark, name, moved(value))
