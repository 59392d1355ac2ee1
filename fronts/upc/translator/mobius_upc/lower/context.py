# SPDX-License-Identifier: BSD-3-Clause
"""What all parts of the lowering share: the unit, names, copied text, complaints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .. import cursors
from ..cursors import Cursor, Kind, Type
from ..frontend import BEFORE, Unit
from ..printer import quoted
from ..problems import Problem
from ..types import TypeWriter

# In lowered text, "\x01<offset>\x02" says from which offset of the source what follows comes.
SYNC, SYNC_END = "\x01", "\x02"


@dataclass
class SharedObject:
    """A shared variable of the program, and how the C text names it."""

    name: str  # in the source
    c_name: str  # the variable that holds its offset
    cursor: Cursor  # the declaration that says most about its type
    linkage: str  # "external", "internal" (of the file or a function)
    defined: bool = False
    image: str = ""  # the name of its constant initial value; "": zeros
    startup: str = ""  # statements that initialise it when the program starts


@dataclass
class LocalRows:
    """Inside a upc_forall: rows of shared arrays that are this thread's own.

    In an iteration with the loop's variable `index` and the constant `shift`, row
    `index + shift` of an array whose blocks are `rows` rows long lies here; its local number is
    `local`.
    """

    variable: int  # name_at() of the loop's variable
    shift: str
    rows: int
    local: str
    base: str  # the array or the pointer whose elements the affinity names; "": a number
    origin: str  # where in the blocks of all threads the base points to; "": to their start
    is_fixed: Callable[[Cursor], bool]  # whether a variable has one value while the loop runs
    used: dict[str, str] = field(default_factory=dict)  # pointer variable → its declaration
    guards: dict[str, str] = field(default_factory=dict)  # other base → a test that it fits


@dataclass
class FunctionState:
    """The function whose body is lowered."""

    name: str
    result: Type | None
    forall_depth: int = 0


class Context:
    """One translation unit while it is lowered."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.source = unit.source
        self.layouts = unit.layouts
        self.threads = unit.threads
        self.checks = unit.checks
        self.types = TypeWriter(unit.layouts, unit.threads)
        self.objects: dict[str, SharedObject] = {}  # by key_of() of the declaration
        self.renamed: dict[int, str] = {}  # name_at() of a declaration → name of what was hoisted
        self.hoisted: list[str] = []  # text to stand before the current top-level declaration
        self.startup: list[str] = []  # statements to run before main
        self.function: FunctionState | None = None
        self.rows: list[LocalRows] = []
        self.static_initialiser = False
        self.may_spin = False  # in the condition of a loop, which may wait for another thread
        self._count = 0

    def fresh(self, word: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"__upc_{word}{self._count}"

    def complain(self, cursor: Cursor, message: str, severity: str = "error") -> None:
        """Notes a problem at a cursor."""
        place = self.source.place(cursors.start_of(cursor))
        self.unit.problems.add(Problem(place, message, severity))

    def where(self, cursor: Cursor) -> str:
        """The string literal that says where a cursor is, for messages at run time."""
        place = self.source.place(cursors.start_of(cursor))
        return quoted(f"{place.file}:{place.line}")

    # Text

    def raw(self, start: int, end: int) -> str:
        """The source text between two offsets, with the places where its lines jump."""
        text = self.source.text
        parts: list[str] = []
        at = start
        for mark in self.source.markers_between(start, end):
            parts += (text[at : mark.at], f"{SYNC}{mark.at}{SYNC_END}")
            at = mark.at
        parts.append(text[at:end])
        return "".join(parts)

    def text(self, cursor: Cursor) -> str:
        """The source text of a cursor."""
        start, end = cursors.extent(cursor)
        return self.raw(start, end)

    @staticmethod
    def sync(offset: int) -> str:
        """The mark that the following text comes from an offset."""
        return f"{SYNC}{offset}{SYNC_END}"

    def splice(
        self,
        cursor: Cursor,
        lower: Callable[[Cursor], str],
        start: int | None = None,
        end: int | None = None,
    ) -> str:
        """The text of a cursor with each child replaced by its lowering."""
        own_start, own_end = cursors.extent(cursor)
        at = own_start if start is None else start
        stop = own_end if end is None else end
        parts: list[str] = []
        for child in sorted(cursors.children(cursor), key=cursors.start_of):
            child_start, child_end = cursors.extent(child)
            if child_start < at or child_end > stop or child_start == child_end:
                continue
            parts += (self.raw(at, child_start), lower(child))
            at = child_end
        parts.append(self.raw(at, stop))
        return "".join(parts)

    # Cursors

    def is_wrapped(self, cursor: Cursor) -> bool:
        """Whether a cursor is the `__builtin_choose_expr` put around a conversion."""
        children = cursors.children(cursor)
        return (
            len(children) == 3
            and cursors.kind_of(children[0]) == Kind.INTEGER_LITERAL
            and self.source.text.startswith(BEFORE, cursors.start_of(cursor))
        )

    def core(self, cursor: Cursor, *, through_parentheses: bool = True) -> Cursor:
        """The expression below implicit conversions, wrappers and parentheses."""
        while True:
            kind = cursors.kind_of(cursor)
            children = cursors.children(cursor)
            if kind == Kind.UNEXPOSED_EXPR and children:
                if len(children) == 1 and not self.is_builtin(cursor, children[0]):
                    cursor = children[0]
                    continue
                if self.is_wrapped(cursor):
                    cursor = children[-1]
                    continue
            if kind == Kind.PAREN_EXPR and children and through_parentheses:
                cursor = children[0]
                continue
            return cursor

    @staticmethod
    def is_builtin(cursor: Cursor, child: Cursor) -> bool:
        """Whether an unexposed cursor writes more than its child: va_arg, offsetof …"""
        return cursors.extent(cursor) != cursors.extent(child)

    @contextmanager
    def inside(self, function: FunctionState) -> Iterator[None]:
        """While the body of a function is lowered."""
        before = self.function
        self.function = function
        try:
            yield
        finally:
            self.function = before

    def are_together(self, group: list[Cursor], following: Cursor) -> bool:
        """Whether a declaration has its specifiers in common with those before it."""
        end = max(map(cursors.end_of, group))
        start = cursors.start_of(following)
        if start < end:
            return True
        between = self.source.text[end:start].strip()
        return between.startswith(",") and ";" not in between

    # Shared objects

    def key_of(self, declaration: Cursor) -> str:
        """What identifies a shared object: its name, or its place if a function owns it."""
        parent = declaration.semantic_parent
        in_function = parent is not None and parent.kind == Kind.FUNCTION_DECL
        if in_function and declaration.storage_class.name != "EXTERN":
            return f"{declaration.spelling}@{cursors.name_at(declaration)}"
        return str(declaration.spelling)
