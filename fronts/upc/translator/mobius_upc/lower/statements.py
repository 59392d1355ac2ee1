# SPDX-License-Identifier: BSD-3-Clause
"""Lowers statements. `STATEMENTS` says which function lowers which kind of statement."""

from __future__ import annotations

from collections.abc import Callable

from .. import cursors
from ..cursors import Cursor, Kind
from ..rewrite import TOKEN
from .context import Context
from .declarations import Declarations
from .expressions import Expressions
from .foralls import Foralls


class Statements:
    """Lowers statements of one translation unit."""

    def __init__(self, context: Context, expressions: Expressions) -> None:
        self.context = context
        self.expressions = expressions
        self.declarations = Declarations(context, expressions, self)
        self.foralls = Foralls(context, expressions, self)
        expressions.statements = self

    def lower(self, cursor: Cursor) -> str:
        """A statement, a declaration, or an expression that stands as a statement."""
        kind = cursors.kind_of(cursor)
        mark = self.context.sync(cursors.start_of(cursor))
        operation = STATEMENTS.get(kind)
        if operation is not None:
            return mark + operation(self, cursor)
        if kind is not None and kind.is_declaration():
            return self.declarations.lower(cursor)
        if kind is not None and kind.is_expression():
            return mark + self.expressions.discarded(cursor)
        return mark + self.context.splice(cursor, self.lower)

    def declaration(self, cursor: Cursor) -> str:
        """Declarations inside a function."""
        return self.declarations.lower(cursor)

    def condition(self, cursor: Cursor) -> str:
        """`if`, `while`, `do`: the expression among the children is a condition."""

        is_loop = cursors.kind_of(cursor) != Kind.IF_STMT

        def lower(child: Cursor) -> str:
            if child == condition:
                return self.loop_condition(child) if is_loop else self.expressions.condition(child)
            return self.lower(child)

        children = cursors.children(cursor)
        position = 1 if cursors.kind_of(cursor) == Kind.DO_STMT else 0
        condition = children[position] if len(children) > position else None
        return self.context.splice(cursor, lower)

    def loop_condition(self, cursor: Cursor) -> str:
        """The condition of a loop: what it reads may be what the loop waits for."""
        before = self.context.may_spin
        self.context.may_spin = True
        text = self.expressions.condition(cursor)
        self.context.may_spin = before
        return text

    def loop(self, cursor: Cursor) -> str:
        """`for`, and what was `upc_forall`."""
        start = cursors.start_of(cursor)
        for mark in self.context.source.foralls:
            if mark.at == start:
                return self.foralls.lower(cursor, mark)
        return self.plain_loop(cursor)

    def plain_loop(self, cursor: Cursor) -> str:
        """`for (start; condition; step) body`."""
        first, second = self.semicolons(cursor)

        def lower(child: Cursor) -> str:
            if first < cursors.start_of(child) <= second:
                return self.loop_condition(child)
            return self.lower(child)

        return self.context.splice(cursor, lower)

    def semicolons(self, cursor: Cursor) -> tuple[int, int]:
        """Where the two semicolons of a `for` are."""
        found: list[int] = []
        depth = 0
        for match in TOKEN.finditer(self.context.source.text, cursors.start_of(cursor)):
            depth += (match[0] in "([{") - (match[0] in ")]}")
            if match[0] == ";" and depth == 1:
                found.append(match.start())
                if len(found) == 2:
                    break
        return found[0], found[1]

    def return_statement(self, cursor: Cursor) -> str:
        """`return X`."""
        function = self.context.function

        def lower(child: Cursor) -> str:
            if function is None or function.result is None:
                return self.expressions.value(child)
            return self.expressions.converted(child, function.result)

        return self.context.splice(cursor, lower)

    def switch(self, cursor: Cursor) -> str:
        """`switch (X) body`."""
        return self.case(cursor)

    def case(self, cursor: Cursor) -> str:
        """A statement whose first expressions are values and whose last child is a statement."""
        children = cursors.children(cursor)

        def lower(child: Cursor) -> str:
            return self.lower(child) if child == children[-1] else self.expressions.value(child)

        return self.context.splice(cursor, lower)


STATEMENTS: dict[object, Callable[[Statements, Cursor], str]] = {
    Kind.DECL_STMT: Statements.declaration,
    Kind.IF_STMT: Statements.condition,
    Kind.WHILE_STMT: Statements.condition,
    Kind.DO_STMT: Statements.condition,
    Kind.FOR_STMT: Statements.loop,
    Kind.RETURN_STMT: Statements.return_statement,
    Kind.SWITCH_STMT: Statements.switch,
    Kind.CASE_STMT: Statements.case,
}
