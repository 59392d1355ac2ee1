# SPDX-License-Identifier: BSD-3-Clause
"""Accesses that have affinity to MYTHREAD for certain: plain loads and stores.

The loops of `foralls` say which rows of arrays are this thread's own in an iteration;
`a[MYTHREAD]` and `a[MYTHREAD][j]` are its own everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import cursors, runtime
from ..cursors import Cursor, Kind
from .context import LocalRows

if TYPE_CHECKING:
    from .accesses import Row
    from .expressions import Expressions


class Locals:
    """Finds this thread's own elements."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.context = expressions.context
        self.types = expressions.context.types

    def lvalue(self, cursor: Cursor) -> str:
        """The text of a plain lvalue for an element; "": it may be another thread's."""
        row = self.expressions.accesses.row(cursor)
        if not row.is_array or cursors.kind_of(row.base) != Kind.DECL_REF_EXPR:
            return ""
        array = cursors.type_of(row.base)
        layout = self.types.layout(array)
        if layout.block == 0 or cursors.is_array(cursors.type_of(cursor)):
            return ""
        inner = cursors.dimensions(array)[1:]
        if any(count < 0 for count in inner) or len(row.subscripts) != len(inner) + 1:
            return ""
        length = 1
        for count in inner:
            length *= count
        if layout.block % length:
            return ""
        rows = layout.block // length
        local = self.local_row(row.subscripts[0], rows)
        if local is None:
            return ""
        return self.element(row, local, length)

    def local_row(self, index: Cursor, rows: int) -> str | None:
        """The local number of the row with an index, if it is this thread's for certain."""
        inner = self.context.core(index)
        is_name = cursors.kind_of(inner) == Kind.DECL_REF_EXPR
        if rows == 1 and is_name and inner.spelling == "MYTHREAD":
            return "0"
        variable, shift = self.expressions.locals.shifted(index)
        if variable is None:
            return None
        for known in reversed(self.context.rows):
            if (known.variable, known.shift, known.rows) == (variable, shift, rows):
                return known.local
        return None

    def shifted(self, index: Cursor) -> tuple[int | None, str]:
        """The variable of an index, and what is added to it: `i`, `i + 1`, `i - n`."""
        inner = self.context.core(index)
        if cursors.kind_of(inner) == Kind.DECL_REF_EXPR and inner.referenced is not None:
            return cursors.name_at(inner.referenced), ""
        if cursors.kind_of(inner) == Kind.BINARY_OPERATOR:
            operator = cursors.binary_operator(inner)
            left, right = cursors.children(inner)
            if operator in ("+", "-"):
                core = self.context.core(left)
                constant = self.context.core(right)
                if (
                    cursors.kind_of(core) == Kind.DECL_REF_EXPR
                    and cursors.kind_of(constant) == Kind.INTEGER_LITERAL
                    and core.referenced is not None
                ):
                    text = self.context.text(constant)
                    return cursors.name_at(core.referenced), f"{operator} {text}"
        return None, ""

    def element(self, row: Row, local: str, length: int) -> str:
        """An element of a local row."""
        shared = self.expressions.object_of(row.base)
        kind = self.types.plain_type(cursors.ultimate(cursors.type_of(row.base)))
        pointer = self.pointer(shared.c_name, kind)
        inside = self.inner_index(row)
        index = local if length == 1 else f"({local})*{length} + {inside}"
        return f"{pointer}[{index}]"

    def inner_index(self, row: Row) -> str:
        """The index behind the first subscript, in ultimate elements."""
        array = cursors.element(cursors.type_of(row.base))
        parts: list[str] = []
        for subscript in row.subscripts[1:]:
            array = cursors.element(array)
            number = self.types.elements(array)
            text = f"({self.expressions.value(subscript)})"
            parts.append(text if number == "1" else f"{text}*{number}")
        return " + ".join(parts)

    def pointer(self, offset: str, kind: str) -> str:
        """A private pointer to this thread's part of an array; loops keep it in a variable."""
        text = f"(({kind} *){runtime.local_address(offset)})"
        if not self.context.rows:
            return text
        outermost: LocalRows = self.context.rows[0]
        name = f"__upc_mine_{offset}"
        outermost.used[name] = f"{kind} *const {name} = {text};"
        return name
