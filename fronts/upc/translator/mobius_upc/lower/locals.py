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
        if self.context.checks or self.context.may_spin:
            return ""
        row = self.expressions.accesses.row(cursor)
        if not row.is_array:
            return self.pointed(row)
        if cursors.kind_of(row.base) != Kind.DECL_REF_EXPR:
            return ""
        return self.static(cursor, row)

    def static(self, cursor: Cursor, row: Row) -> str:
        """As lvalue(), for an element of an array with static storage."""
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
        index = self.context.core(row.subscripts[0])
        is_name = cursors.kind_of(index) == Kind.DECL_REF_EXPR
        if rows == 1 and is_name and index.spelling == "MYTHREAD":
            # Nothing says that other threads leave it alone meanwhile: it is read each time.
            return self.element(row, "0", length, "volatile " if length == 1 else "")
        known = self.known_rows(row.subscripts[0], rows)
        if known is None:
            return ""
        if known.origin:
            known.guards[self.expressions.object_of(row.base).c_name] = f"{known.origin} == 0"
        return self.element(row, known.local, length)

    def known_rows(self, index: Cursor, rows: int) -> LocalRows | None:
        """The loop whose iterations have rows with this index, and as many in a block."""
        variable, shift = self.shifted(index)
        if variable is None:
            return None
        for known in reversed(self.context.rows):
            if (known.variable, known.shift, known.rows) == (variable, shift, rows):
                return known
        return None

    def variable(self, cursor: Cursor) -> Cursor | None:
        """The private variable that a pointer to shared is, if it points to no arrays."""
        inner = self.context.core(cursor)
        if cursors.kind_of(inner) != Kind.DECL_REF_EXPR or inner.referenced is None:
            return None
        kind = cursors.type_of(inner)
        if cursors.space_of(kind) or not cursors.is_pointer_to_shared(kind):
            return None
        target = cursors.pointee(kind)
        if cursors.is_array(target) or self.types.layout(target).block == 0:
            return None
        return inner

    def origin(self, variable: Cursor, block: int) -> str:
        """Where a pointer points to in the blocks of all threads, in elements."""
        name = self.expressions.value(variable)
        if block == 1:
            return f"(int64_t){name}.thread"
        return f"(int64_t){name}.thread * {block} + {name}.phase"

    def pointed(self, row: Row) -> str:
        """As lvalue(), for `p[i]` of a private variable `p`."""
        variable = self.variable(row.base)
        if variable is None or len(row.subscripts) != 1:
            return ""
        target = cursors.pointee(cursors.type_of(variable))
        block = self.types.layout(target).block
        known = self.known_rows(row.subscripts[0], block)
        if known is None or not known.is_fixed(variable.referenced):
            return ""
        name = self.expressions.value(variable)
        if name != known.base:
            known.guards[name] = f"{self.origin(variable, block)} == {known.origin or '0'}"
        kind = self.types.plain_type(target)
        offset = f"{name}.offset"
        if block > 1:
            offset += f" - {name}.phase * sizeof({kind})"
        return f"{self.pointer(name, offset, kind)}[{known.local}]"

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

    def element(self, row: Row, local: str, length: int, qualifier: str = "") -> str:
        """An element of a local row."""
        shared = self.expressions.object_of(row.base)
        kind = self.types.plain_type(cursors.ultimate(cursors.type_of(row.base)))
        if qualifier:
            pointer = f"(({qualifier}{kind} *){runtime.local_address(shared.c_name)})"
        else:
            pointer = self.pointer(shared.c_name, shared.c_name, kind)
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

    def pointer(self, base: str, offset: str, kind: str) -> str:
        """A private pointer to this thread's part of an array; loops keep it in a variable."""
        text = f"(({kind} *){runtime.local_address(offset)})"
        if not self.context.rows:
            return text
        outermost: LocalRows = self.context.rows[0]
        name = f"__upc_mine_{base}"
        outermost.used[name] = f"{kind} *const {name} = {text};"
        return name
