# SPDX-License-Identifier: BSD-3-Clause
"""Shared lvalues: where they are, how they are read and written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import cursors, runtime
from ..cursors import Cursor, Kind, Type, TypeKind
from ..layout import INDEFINITE, Layout
from ..printer import quoted
from ..types import count_text

if TYPE_CHECKING:
    from .expressions import Expressions


@dataclass(frozen=True)
class Target:
    """A shared object in memory: a pointer to it, or an lvalue if it is this thread's own."""

    pointer: str
    kind: Type
    layout: Layout
    strict: bool
    local: str = ""
    field: Cursor | None = None  # a bit field: `pointer` is that of its record

    def at(self, pointer: str) -> Target:
        """The same object, named by another text."""
        return replace(self, pointer=pointer, local="")


@dataclass(frozen=True)
class Row:
    """A chain of subscripts: an array or a pointer, and an index in ultimate elements."""

    base: Cursor  # the array's lvalue, or the pointer's value
    is_array: bool
    index: str
    subscripts: tuple[Cursor, ...]


PARTS = ("__real", "__imag")


def scaled(index: str, factor: str) -> str:
    """An index times the ultimate elements of what it counts."""
    return f"({index})" if factor == "1" else f"({index})*({factor})"


class Accesses:
    """Lowers shared lvalues."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.context = expressions.context
        self.types = expressions.context.types

    def is_shared(self, cursor: Cursor) -> bool:
        """Whether an expression denotes a shared object."""
        return cursors.space_of(cursors.type_of(cursor)) != 0 or self.whole_of(cursor) is not None

    def whole_of(self, cursor: Cursor) -> Cursor | None:
        """The shared complex number of which `__real__ z` or `__imag__ z` is a part."""
        if cursors.kind_of(cursor) != Kind.UNARY_OPERATOR:
            return None
        if cursors.unary_operator(cursor)[0] not in PARTS:
            return None
        operand = self.context.core(cursors.children(cursor)[0])
        return operand if cursors.space_of(cursors.type_of(operand)) else None

    # Layouts

    def lvalue_layout(self, cursor: Cursor) -> Layout:
        """The layout of a shared lvalue; a member of a record lies on one thread."""
        cursor = self.context.core(cursor)
        kind = cursors.kind_of(cursor)
        if kind == Kind.MEMBER_REF_EXPR:
            return INDEFINITE
        if kind == Kind.ARRAY_SUBSCRIPT_EXPR:
            return self.pointer_layout(self.subscript_parts(cursor)[0])
        if kind == Kind.UNARY_OPERATOR and cursors.unary_operator(cursor)[0] == "*":
            return self.pointer_layout(cursors.children(cursor)[0])
        return self.types.layout(cursors.type_of(cursor))

    def pointer_layout(self, cursor: Cursor) -> Layout:
        """The layout behind a pointer to shared, or of an array that decays to one."""
        cursor = self.context.core(cursor)
        kind = cursors.type_of(cursor)
        if cursors.space_of(kind) and not cursors.is_pointer_to_shared(kind):
            return self.lvalue_layout(cursor)
        children = cursors.children(cursor)
        node = cursors.kind_of(cursor)
        if node == Kind.UNARY_OPERATOR and cursors.unary_operator(cursor)[0] == "&":
            return self.lvalue_layout(children[0])
        if node == Kind.BINARY_OPERATOR:
            operator = cursors.binary_operator(cursor)
            if operator == ",":
                return self.pointer_layout(children[1])
            if operator in ("+", "-"):
                return self.pointer_layout(self.pointer_operand(cursor))
        if cursors.is_pointer_to_shared(kind):
            return self.types.layout(cursors.pointee(kind))
        return INDEFINITE

    def pointer_operand(self, cursor: Cursor) -> Cursor:
        """The operand of `+` or `-` that is a pointer to shared."""
        left, right = cursors.children(cursor)
        return left if self.expressions.is_pointer(left) else right

    # Places

    def target(self, cursor: Cursor) -> Target:
        """Where a shared lvalue is, to be read or written."""
        found = self.place(cursor)
        if not self.context.checks or cursors.is_array(found.kind):
            return found
        kind = found.kind if found.field is None else cursors.type_of(found.field.semantic_parent)
        size = f"sizeof({self.types.plain_type(kind)})"
        return found.at(runtime.checked(found.pointer, size, self.context.where(cursor)))

    def place(self, cursor: Cursor) -> Target:
        """Where a shared lvalue is."""
        cursor = self.context.core(cursor)
        kind = cursors.type_of(cursor)
        whole = self.whole_of(cursor)
        if whole is not None:
            return self.part(cursor, self.place(whole))
        strict = self.is_strict(cursor)
        node = cursors.kind_of(cursor)
        layout = self.lvalue_layout(cursor)
        if node == Kind.MEMBER_REF_EXPR:
            return self.member(cursor, strict)
        if node == Kind.ARRAY_SUBSCRIPT_EXPR:
            local = "" if strict else self.expressions.locals.lvalue(cursor)
            pointer = self.row_pointer(self.row(cursor), layout)
            return Target(pointer, kind, layout, strict, local)
        if node == Kind.DECL_REF_EXPR:
            shared = self.expressions.object_of(cursor)
            return Target(runtime.object_pointer(shared.c_name), kind, layout, strict)
        if node == Kind.UNARY_OPERATOR:
            return Target(self.expressions.value(cursors.children(cursor)[0]), kind, layout, strict)
        if node == Kind.BINARY_OPERATOR:  # a comma, an assignment
            before, last = cursors.children(cursor)
            inner = self.place(last)
            pointer = f"({self.expressions.discarded(before)}, {inner.pointer})"
            return Target(pointer, kind, inner.layout, strict, "", inner.field)
        self.context.complain(cursor, "this form of a shared object is not supported")
        return Target(runtime.NULL, kind, layout, strict)

    def is_strict(self, cursor: Cursor) -> bool:
        """Whether an access to this lvalue is strict."""
        kind = cursors.type_of(cursor)
        if cursors.canonical(cursors.ultimate(kind)).is_volatile_qualified():
            return True
        if self.types.layout(kind).relaxed:
            return False
        return self.context.source.is_strict(cursors.start_of(cursor))

    def subscript_parts(self, cursor: Cursor) -> tuple[Cursor, Cursor]:
        """Array or pointer, and index, of `a[i]` or `i[a]`."""
        left, right = cursors.children(cursor)
        return (left, right) if self.expressions.is_pointer(left) else (right, left)

    def row(self, cursor: Cursor) -> Row:
        """The base and the whole index of a chain of subscripts."""
        base, index = self.subscript_parts(cursor)
        inner = self.context.core(base)
        value = self.checked_index(inner, index)
        text = scaled(value, self.types.elements(cursors.type_of(cursor)))
        if not cursors.is_array(cursors.type_of(inner)):
            return Row(base, False, text, (index,))
        if cursors.kind_of(inner) == Kind.ARRAY_SUBSCRIPT_EXPR:
            outer = self.row(inner)
            return Row(
                outer.base, outer.is_array, f"{outer.index} + {text}", (*outer.subscripts, index)
            )
        return Row(inner, True, text, (index,))

    def checked_index(self, array: Cursor, index: Cursor) -> str:
        """The value of an index, checked if that was asked for and the array's size is known."""
        text = self.expressions.value(index)
        counts = cursors.dimensions(cursors.type_of(array))
        if not self.context.checks or not counts or counts[0] < 0:
            return text
        count = count_text(counts[0], self.context.threads)
        name = quoted(self.context.source.text[slice(*cursors.extent(array))])
        return runtime.checked_index(text, count, name, self.context.where(index))

    def row_pointer(self, row: Row, layout: Layout) -> str:
        """A pointer to an element."""
        if row.is_array and cursors.kind_of(row.base) == Kind.DECL_REF_EXPR:
            shared = self.expressions.object_of(row.base)
            size = self.types.element_size(cursors.type_of(row.base))
            return runtime.element(shared.c_name, row.index, size, layout.block)
        if row.is_array:
            pointer = self.place(row.base).pointer
            size = self.types.element_size(cursors.type_of(row.base))
        else:
            pointer = self.expressions.value(row.base)
            size = self.types.element_size(self.expressions.pointee_of(row.base))
        return runtime.add(pointer, row.index, size, layout.block)

    def part(self, cursor: Cursor, whole: Target) -> Target:
        """`__real__ z` or `__imag__ z`: two numbers in a row."""
        operator = cursors.unary_operator(cursor)[0]
        kind = cursors.type_of(cursor)
        offset = "0" if operator == "__real" else f"sizeof({self.types.plain_type(kind)})"
        local = f"({operator}__ {whole.local})" if whole.local else ""
        return Target(runtime.member(whole.pointer, offset), kind, INDEFINITE, whole.strict, local)

    def member(self, cursor: Cursor, strict: bool) -> Target:
        """`record.member` or `pointer->member`."""
        base = cursors.children(cursor)[0]
        while self.is_unnamed_member(base):  # its members count as those of the record around it
            base = cursors.children(self.context.core(base))[0]
        if self.expressions.is_pointer(base):
            record = cursors.pointee(self.expressions.pointer_type(base))
            pointer = self.expressions.value(base)
            local = ""
        else:
            record = cursors.type_of(self.context.core(base))
            inner = self.place(base)
            pointer, local = inner.pointer, inner.local
        declaration = cursor.referenced
        name = cursor.spelling
        kind = cursors.type_of(cursor)
        if local:
            local = f"{local}.{name}"
        if declaration is not None and declaration.is_bitfield():
            return Target(pointer, kind, INDEFINITE, strict, local, declaration)
        offset = f"__builtin_offsetof({self.types.plain_type(record)}, {name})"
        return Target(runtime.member(pointer, offset), kind, INDEFINITE, strict, local)

    def is_unnamed_member(self, cursor: Cursor) -> bool:
        """Whether an expression is an unnamed record inside a record."""
        inner = self.context.core(cursor)
        return cursors.kind_of(inner) == Kind.MEMBER_REF_EXPR and not inner.spelling

    # Reads and writes

    def read(self, target: Target) -> str:
        """The value of a shared object."""
        if target.local:
            return target.local
        kind = self.types.plain_type(target.kind)
        if target.field is not None:
            return self.read_field(target)
        function = runtime.getter(target.kind, target.strict)
        if function:
            return runtime.typed(f"{function}({target.pointer})", kind, target.kind)
        name = self.context.fresh("v")
        get = runtime.get_bytes(f"&{name}", target.pointer, f"sizeof {name}", target.strict)
        return f"({{ {kind} {name}; {get}; {name}; }})"

    def write(self, target: Target, value: str, *, needs_value: bool) -> str:
        """Writes a shared object; the result is the value written."""
        if target.local:
            return f"({target.local} = {value})"
        kind = self.types.plain_type(target.kind)
        if target.field is not None:
            return self.write_field(target, value, needs_value=needs_value)
        function = runtime.putter(target.kind, target.strict)
        if runtime.scalar_name(target.kind) == "pointer":
            value = f"(void *)({value})"
        if function and not needs_value:
            return f"{function}({target.pointer}, {value})"
        name = self.context.fresh("v")
        if function:
            put = f"{function}({target.pointer}, {name})"
        else:
            put = runtime.put_bytes(target.pointer, f"&{name}", f"sizeof {name}", target.strict)
        result = f" {name};" if needs_value else ""
        return f"({{ {kind} {name} = {value}; {put};{result} }})"

    def update(
        self, target: Target, operator: str, operand: str, *, old: bool, needs_value: bool
    ) -> str:
        """`object op= operand`; `old`: the result is the value before."""
        if target.local:
            if old:
                return f"({target.local}{operator * 2})"
            return f"({target.local} {operator}= {operand})"
        pointer = self.context.fresh("p")
        before = self.context.fresh("o")
        after = self.context.fresh("n")
        kind = self.types.plain_type(target.kind)
        here = target.at(pointer)
        if cursors.is_pointer_to_shared(target.kind):
            count = f"({operand})" if operator == "+" else f"-(ptrdiff_t)({operand})"
            changed = self.expressions.advanced(before, target.kind, count)
        else:
            changed = f"{before} {operator} ({operand})"
        write = self.write(here, after, needs_value=False)
        if target.field is not None:  # which may hold less than was computed
            write = f"{after} = {self.write(here, after, needs_value=True)}"
        result = before if old else after
        return (
            f"({{ {runtime.POINTER} {pointer} = {target.pointer}; "
            f"{kind} {before} = {self.read(here)}; {kind} {after} = {changed}; {write}; "
            + (f"{result}; }})" if needs_value else "})")
        )

    def read_field(self, target: Target) -> str:
        """The value of a bit field."""
        assert target.field is not None
        kind = cursors.type_of(target.field)
        signed = cursors.canonical(kind).kind in SIGNED
        first, width = field_bits(target.field)
        text = runtime.get_bits(target.pointer, first, width, signed)
        c_type = self.types.plain_type(kind)
        if not target.strict:
            return f"(({c_type}){text})"
        name, fence = self.context.fresh("v"), runtime.fence()
        return f"({{ {fence}; {c_type} {name} = ({c_type}){text}; {fence}; {name}; }})"

    def write_field(self, target: Target, value: str, *, needs_value: bool) -> str:
        """Writes a bit field; the result is what it holds then."""
        assert target.field is not None
        kind = self.types.plain_type(cursors.type_of(target.field))
        first, width = field_bits(target.field)
        name = self.context.fresh("v")
        # A private bit field cuts the value as the shared one does.
        held = f"struct {{ {kind} cut : {width}; }} {name} = {{ {value} }};"
        put = runtime.put_bits(target.pointer, first, width, f"{name}.cut")
        fence = f" {runtime.fence()};" if target.strict else ""
        result = f" ({kind}){name}.cut;" if needs_value else ""
        return f"({{ {held}{fence} {put};{fence}{result} }})"


def field_bits(field: Cursor) -> tuple[int, int]:
    """The first bit of a bit field in its record, and its width."""
    return int(field.get_field_offsetof()), int(field.get_bitfield_width())


SIGNED = (
    TypeKind.CHAR_S,
    TypeKind.SCHAR,
    TypeKind.SHORT,
    TypeKind.INT,
    TypeKind.LONG,
    TypeKind.LONGLONG,
)
