# SPDX-License-Identifier: BSD-3-Clause
"""Lowers a translation unit, declaration by declaration."""

from __future__ import annotations

from .. import cursors
from ..cursors import Cursor, Kind
from ..frontend import Unit
from ..types import is_involved
from .context import Context
from .declarations import RECORDS
from .expressions import Expressions
from .statements import Statements


class UnitLowering:
    """Lowers one translation unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.context = Context(unit)
        self.statements = Statements(self.context, Expressions(self.context))
        self.declarations = self.statements.declarations

    def lower(self, file: str) -> str:
        """The C text of the unit, with marks for the printer."""
        context = self.context
        at = self.unit.source.body[0].at if self.unit.source.body else 0
        parts: list[str] = []
        for group in self.groups(at):
            start = min(map(cursors.start_of, group))
            end = max(map(cursors.end_of, group))
            parts.append(context.raw(at, start))
            if self.is_copied(group, start, end):
                parts.append(context.raw(start, end))
            else:
                text = self.top_level(group, start, end)
                parts.append(context.sync(start))
                if context.hoisted:
                    parts += [
                        " ".join(entry for entry in context.hoisted if entry),
                        context.sync(start),
                    ]
                    context.hoisted.clear()
                parts.append(text)
                parts.append(context.sync(end))
            at = end
        parts.append(context.raw(at, len(self.unit.source.text)))
        parts += ["\n", self.declarations.table(file), "\n"]
        self.unit.problems.raise_errors()
        return "".join(parts)

    def groups(self, first: int) -> list[list[Cursor]]:
        """Top-level declarations; those that share specifiers together."""
        result: list[list[Cursor]] = []
        for cursor in cursors.children(self.unit.cursor):
            start, stop = self.whole_extent(cursor)
            if start < first or start == stop:
                continue
            if result and self.context.are_together(result[-1], cursor):
                result[-1].append(cursor)
            else:
                result.append([cursor])
        return result

    def whole_extent(self, cursor: Cursor) -> tuple[int, int]:
        """The extent of a declaration. Clang ends a shared pointer to a function at its name: the
        rest are a bracket for each open one, and what the function takes."""
        start, stop = cursors.extent(cursor)
        text = self.unit.source.text
        if cursors.kind_of(cursor) != Kind.VAR_DECL or "(" not in text[start:stop]:
            return start, stop
        depth = text.count("(", start, stop) - text.count(")", start, stop)
        while stop < len(text) and (depth > 0 or text[stop].isspace() or text[stop] == "("):
            depth += (text[stop] == "(") - (text[stop] == ")")
            stop += 1
        stop = start + len(text[start:stop].rstrip())
        cursor.mobius_extent = (start, stop)
        return start, stop

    def is_copied(self, group: list[Cursor], start: int, end: int) -> bool:
        """Whether declarations of a system header have nothing of UPC in them."""
        if not self.unit.source.mark_at(start).system:
            return False
        for cursor in group:
            kind = cursors.kind_of(cursor)
            is_typed = kind in (Kind.VAR_DECL, Kind.TYPEDEF_DECL, Kind.FUNCTION_DECL)
            if is_typed and is_involved(cursors.declared_type(cursor)):
                return False
            if kind in RECORDS and "address_space" in self.unit.source.text[start:end]:
                return False
        return True

    def top_level(self, group: list[Cursor], start: int, end: int) -> str:
        """One group of declarations."""
        if len(group) == 1:
            return self.declarations.lower(group[0])
        return self.declarations.group(group, start, end, "")


def lower(unit: Unit, file: str) -> str:
    """The C text of a unit, with marks for the printer; errors raise TranslationError."""
    return UnitLowering(unit).lower(file)
