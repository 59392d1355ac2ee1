# SPDX-License-Identifier: BSD-3-Clause
"""Lowers `sizeof`, `upc_localsizeof`, `upc_blocksizeof` and `upc_elemsizeof`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import cursors, runtime
from ..cursors import Cursor, Type
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
        expression = children[-1] if children else None
        if expression is None or not expression.kind.is_expression():
            return self.context.text(cursor)
        kind = cursors.type_of(self.context.core(expression))
        if operator == "sizeof":
            if cursors.space_of(kind):
                return self.total(kind)
            if is_involved(kind):
                return f"sizeof({self.types.declare(kind, '')})"
            return self.context.splice(cursor, self.expressions.child)
        if not cursors.space_of(kind):
            self.context.complain(
                cursor, f"the operand of {operator} must be a shared object or type"
            )
            return "(size_t)1"
        return self.of_layout(operator, kind)

    def total(self, kind: Type) -> str:
        """The size of a whole shared object."""
        count, size = self.types.elements(kind), self.types.element_size(kind)
        return size if count == "1" else f"((size_t)({count}) * {size})"

    def of_layout(self, operator: str, kind: Type) -> str:
        """One of UPC's own operators."""
        block = self.types.layout(kind).block
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
