# SPDX-License-Identifier: BSD-3-Clause
"""Lowers `sizeof`, `upc_localsizeof`, `upc_blocksizeof` and `upc_elemsizeof`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import cursors, messages, runtime
from ..cursors import Cursor, Type, TypeKind
from ..layout import Layout
from ..types import is_involved

if TYPE_CHECKING:
    from .expressions import Expressions


class Sizes:
    """Lowers operators that give sizes."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.context = expressions.context
        self.types = expressions.context.types

    def lower(self, cursor: Cursor) -> str:
        """An operator and its operand."""
        start = cursors.start_of(cursor)
        operator = next(
            (m.operator for m in self.context.source.sizeofs if m.at == start), "sizeof"
        )
        children = cursors.children(cursor)
        if operator == "sizeof" and not self.context.text(cursor).startswith("sizeof"):
            return self.context.text(cursor)  # _Alignof
        if not children or not children[0].kind.is_expression():  # a type
            if operator == "sizeof":
                return self.context.text(cursor)
            named = cursors.type_of(children[0]) if children else None
            if named is None or not cursors.space_of(named):
                return self.not_shared(cursor, operator)
            return self.checked(cursor, operator, named, self.types.layout(named))
        expression = self.context.core(children[-1])
        kind = cursors.type_of(expression)
        if operator == "sizeof":
            if cursors.space_of(kind):
                return self.total(kind)
            if is_involved(kind):
                return f"sizeof({self.types.declare(kind, '')})"
            return self.context.splice(cursor, self.expressions.child)
        if not cursors.space_of(kind):
            return self.not_shared(cursor, operator)
        layout = self.expressions.accesses.lvalue_layout(expression)
        return self.checked(cursor, operator, kind, layout)

    def checked(self, cursor: Cursor, operator: str, kind: Type, layout: Layout) -> str:
        """As of_layout(), where void has no size."""
        if cursors.canonical(cursors.ultimate(kind)).kind == TypeKind.VOID:
            self.context.complain(cursor, messages.no_size(operator))
            return "(size_t)1"
        return self.of_layout(operator, kind, layout)

    def not_shared(self, cursor: Cursor, operator: str) -> str:
        """Complains about an operand that is not shared."""
        self.context.complain(cursor, messages.not_shared(operator))
        return "(size_t)1"

    def total(self, kind: Type) -> str:
        """The size of a whole shared object."""
        count, size = self.types.elements(kind), self.types.element_size(kind)
        return size if count == "1" else f"((size_t)({count}) * {size})"

    def of_layout(self, operator: str, kind: Type, layout: Layout) -> str:
        """One of UPC's own operators."""
        block = layout.block
        if operator == "upc_blocksizeof":
            return f"(size_t){block}"
        size = self.types.element_size(kind)
        if operator == "upc_elemsizeof":
            return size
        count = self.types.elements(kind)
        if count == "1":
            return size
        if block == 0:
            return self.total(kind)
        blocks = f"(((size_t)({count}) + {block - 1}u) / {block}u)"
        threads = f"(size_t){runtime.THREADS}"
        rows = f"(({blocks} + {threads} - 1) / {threads})"
        return f"({rows} * {block}u * {size})"
