# SPDX-License-Identifier: BSD-3-Clause
"""Lowers expressions. `VALUES` says which function lowers which kind of expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .. import cursors, messages, runtime
from ..cursors import Cursor, Kind, Type, TypeKind
from ..layout import Layout
from ..types import is_involved
from .accesses import Accesses
from .context import Context, SharedObject
from .locals import Locals
from .sizes import Sizes

ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")


class Statements(Protocol):
    """What expressions need of statements: those inside statement expressions."""

    def lower(self, cursor: Cursor) -> str:
        """A statement or a declaration."""


class Expressions:
    """Lowers expressions of one translation unit."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.types = context.types
        self.accesses = Accesses(self)
        self.locals = Locals(self)
        self.sizes = Sizes(self)
        self.statements: Statements | None = None

    # What an expression is

    def is_pointer(self, cursor: Cursor) -> bool:
        """Whether an expression is a pointer to shared, or a shared array, which decays."""
        inner = self.context.core(cursor)
        kind = cursors.type_of(inner)
        if cursors.is_pointer_to_shared(kind):
            return True
        return cursors.space_of(kind) != 0 and cursors.is_array(kind)

    def pointer_type(self, cursor: Cursor) -> Type:
        """The type of a pointer expression, below what Clang converts it to."""
        return cursors.type_of(self.context.core(cursor))

    def pointee_of(self, cursor: Cursor) -> Type:
        """What a pointer to shared points to; of an array, its element."""
        kind = self.pointer_type(cursor)
        if cursors.is_array(kind):
            return cursors.element(kind)
        return cursors.pointee(kind)

    def is_null(self, cursor: Cursor) -> bool:
        """Whether an expression is a null pointer constant."""
        inner = self.context.core(cursor)
        if cursors.kind_of(inner) == Kind.INTEGER_LITERAL:
            return self.context.text(inner).strip().rstrip("uUlL") in ("0", "0x0")
        if cursors.kind_of(inner) == Kind.CSTYLE_CAST_EXPR:
            kind = cursors.canonical(cursors.type_of(inner))
            is_void = kind.kind == TypeKind.POINTER and kind.get_pointee().kind == TypeKind.VOID
            return is_void and self.is_null(cursors.children(inner)[-1])
        return False

    def object_of(self, cursor: Cursor) -> SharedObject:
        """The shared object that a name means."""
        declaration = cursor.referenced
        key = self.context.key_of(declaration)
        found = self.context.objects.get(key)
        if found is None:
            raise KeyError(f"shared object {key} was used before its declaration was lowered")
        return found

    # Values

    def value(self, cursor: Cursor) -> str:
        """The text of an expression's value."""
        kind = cursors.kind_of(cursor)
        if self.accesses.is_shared(cursor):
            node = self.context.core(cursor)
            operation = VALUES.get(cursors.kind_of(node))
            if cursors.kind_of(node) == Kind.STRING_LITERAL:  # initialises an array of characters
                return self.context.text(node)
            if cursors.kind_of(node) not in LVALUES and operation is not None:
                return operation(self, node)
            # The value of a private object, which Clang converts to the type of a shared one.
            if not self.accesses.is_shared(node):
                return self.value(node)
            if cursors.is_array(cursors.type_of(node)):
                return self.accesses.place(node).pointer
            is_binary = cursors.kind_of(node) == Kind.BINARY_OPERATOR and operation is not None
            if is_binary and cursors.binary_operator(node) != ",":
                return self.binary(node)
            return self.accesses.read(self.accesses.target(node))
        operation = VALUES.get(kind)
        if operation is not None:
            return operation(self, cursor)
        return self.context.splice(cursor, self.child)

    def child(self, cursor: Cursor) -> str:
        """A child inside copied text: an expression, or something with expressions in it."""
        kind = cursors.kind_of(cursor)
        if kind is not None and (kind.is_statement() or kind.is_declaration()) and self.statements:
            return self.statements.lower(cursor)
        return self.value(cursor)

    def condition(self, cursor: Cursor) -> str:
        """An expression whose value is only compared with zero."""
        if self.is_pointer(cursor):
            return runtime.is_set(self.value(cursor))
        return self.value(cursor)

    def discarded(self, cursor: Cursor) -> str:
        """An expression whose value nobody uses."""
        inner = self.context.core(cursor)
        kind = cursors.kind_of(inner)
        if kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR):
            return self.binary(inner, needs_value=False)
        if kind == Kind.UNARY_OPERATOR:
            return self.unary(inner, needs_value=False)
        return self.value(cursor)

    def converted(self, cursor: Cursor, kind: Type) -> str:
        """A value converted to a type as assignment does."""
        if cursors.is_pointer_to_shared(kind):
            if self.is_pointer(cursor):
                return self.retargeted(cursor, kind)
            if self.is_null(cursor):
                return self.null()
            inner = cursors.canonical(self.pointer_type(cursor))
            if inner.kind in (TypeKind.POINTER, *cursors.ARRAYS):
                self.context.complain(
                    cursor,
                    messages.PRIVATE_TO_SHARED,
                )
                return self.null()
            return self.value(cursor)
        if self.is_pointer(cursor) and not cursors.space_of(kind):
            plain = cursors.canonical(kind)
            if plain.kind == TypeKind.POINTER:
                self.context.complain(
                    cursor,
                    messages.SHARED_TO_PRIVATE,
                )
            elif plain.kind == TypeKind.BOOL:
                return self.condition(cursor)
            elif plain.kind != TypeKind.VOID:
                self.context.complain(cursor, messages.SHARED_TO_NUMBER)
        return self.value(cursor)

    def retargeted(self, cursor: Cursor, kind: Type) -> str:
        """A pointer to shared as a pointer to shared of another type, without a cast."""
        before = self.accesses.pointer_layout(cursor)
        after = self.types.layout(cursors.pointee(kind))
        text = self.value(cursor)
        if after.generic:
            return text
        if before.generic:
            return runtime.reset_phase(text) if after.phaseless else text
        if before.block == after.block:
            return text
        # Clang's layout of a member of a record is that of the record.
        said = self.types.layout(self.pointee_of(cursor))
        if said.block != after.block:
            self.context.complain(
                cursor,
                messages.different_blocks(before, after),
            )
        return runtime.reset_phase(text)

    def null(self) -> str:
        """A null pointer to shared."""
        return runtime.NULL_INITIALISER if self.context.static_initialiser else runtime.NULL

    # Kinds of expressions

    def unexposed(self, cursor: Cursor) -> str:
        """An implicit conversion, a wrapper, or a form that libclang does not show."""
        children = cursors.children(cursor)
        if self.context.is_wrapped(cursor):
            return self.value(children[-1])
        if len(children) == 1 and cursors.extent(children[0]) == cursors.extent(cursor):
            kind = cursors.type_of(cursor)
            if cursors.is_pointer_to_shared(kind):
                if self.is_pointer(children[0]):
                    return self.value(children[0])
                if self.is_null(children[0]):
                    return self.null()
            if kind.kind == TypeKind.BOOL and self.is_pointer(children[0]):
                return self.condition(children[0])
            return self.value(children[0])
        return self.context.splice(cursor, self.child)

    def parenthesis(self, cursor: Cursor) -> str:
        """`(X)`."""
        return f"({self.value(cursors.children(cursor)[0])})"

    def name(self, cursor: Cursor) -> str:
        """A name: of a variable, a function, an enumerator."""
        text = str(cursor.spelling)
        if text == "THREADS" and self.context.threads is None:
            return runtime.THREADS
        if text == "MYTHREAD":
            return runtime.MYTHREAD
        declaration = cursor.referenced
        if declaration is not None and declaration.kind == Kind.VAR_DECL and self.context.renamed:
            renamed = self.context.renamed.get(cursors.name_at(declaration))
            if renamed and declaration.spelling == text:
                return renamed
        return self.context.text(cursor)

    def unary(self, cursor: Cursor, *, needs_value: bool = True) -> str:
        """`&`, `*`, `++`, `!` …."""
        operator, behind = cursors.unary_operator(cursor)
        operand = cursors.children(cursor)[0]
        inner = self.context.core(operand)
        if operator == "&" and self.accesses.is_shared(inner):
            target = self.accesses.place(inner)
            if self.accesses.whole_of(inner) is not None:
                self.context.complain(cursor, messages.NO_PART_ADDRESS)
            if target.field is not None:
                self.context.complain(cursor, messages.NO_BIT_ADDRESS)
            return target.pointer
        if operator == "!" and self.is_pointer(operand):
            return f"(!{self.condition(operand)})"
        if operator in ("++", "--"):
            if self.accesses.is_shared(inner):
                target = self.accesses.target(inner)
                return self.accesses.update(
                    target, operator[0], "1", old=behind, needs_value=needs_value
                )
            if self.is_pointer(operand):
                return self.step_pointer(operand, operator, behind=behind, needs_value=needs_value)
        return self.context.splice(cursor, self.child)

    def step_pointer(
        self, operand: Cursor, operator: str, *, behind: bool, needs_value: bool
    ) -> str:
        """`p++` and its relatives, of a private variable that is a pointer to shared."""
        count = "1" if operator == "++" else "-1"
        kind = self.pointer_type(operand)
        if cursors.kind_of(self.context.core(operand)) == Kind.DECL_REF_EXPR:
            text = self.value(self.context.core(operand))
            changed = self.advanced(text, kind, count)
            if not behind or not needs_value:
                return f"({text} = {changed})"
            old = self.context.fresh("o")
            return f"({{ {runtime.POINTER} {old} = {text}; {text} = {changed}; {old}; }})"
        where = self.context.fresh("w")
        old = self.context.fresh("o")
        changed = self.advanced(f"(*{where})", kind, count)
        result = old if behind else f"*{where}"
        return (
            f"({{ {runtime.POINTER} *{where} = &({self.value(operand)}), {old} = *{where}; "
            f"*{where} = {changed}; {result}; }})"
        )

    def advanced(self, text: str, kind: Type, count: str) -> str:
        """A pointer, of a pointer type, moved by a number of what it points to."""
        target = cursors.pointee(kind)
        layout = self.types.layout(target)
        number = scaled_count(count, self.types.elements(target))
        return runtime.add(text, number, self.types.element_size(target), layout.block)

    def binary(self, cursor: Cursor, *, needs_value: bool = True) -> str:
        """Assignments, arithmetic, comparisons, logic, commas."""
        operator = cursors.binary_operator(cursor)
        left, right = cursors.children(cursor)
        if operator == "=":
            return self.assignment(left, right, needs_value=needs_value)
        if operator in ASSIGNING:
            return self.compound(cursor, operator[:-1], left, right, needs_value=needs_value)
        if operator in ("&&", "||"):
            if self.is_pointer(left) or self.is_pointer(right):
                return f"({self.condition(left)} {operator} {self.condition(right)})"
        elif operator == ",":
            between = self.context.raw(cursors.end_of(left), cursors.start_of(right))
            last = self.value(right) if needs_value else self.discarded(right)
            return f"{self.discarded(left)}{between}{last}"
        elif self.is_pointer(left) or self.is_pointer(right):
            if operator in COMPARISONS:
                return self.comparison(operator, left, right)
            return self.arithmetic(cursor, operator, left, right)
        return self.context.splice(cursor, self.child)

    def assignment(self, left: Cursor, right: Cursor, *, needs_value: bool) -> str:
        """`left = right`."""
        inner = self.context.core(left)
        kind = cursors.type_of(inner)
        value = self.converted(right, kind)
        if self.accesses.is_shared(inner):
            target = self.accesses.target(inner)
            return self.accesses.write(target, value, needs_value=needs_value)
        between = self.context.raw(cursors.end_of(left), cursors.start_of(right))
        return f"{self.value(left)}{between}{value}"

    def compound(
        self, cursor: Cursor, operator: str, left: Cursor, right: Cursor, *, needs_value: bool
    ) -> str:
        """`left op= right`."""
        inner = self.context.core(left)
        if self.accesses.is_shared(inner):
            target = self.accesses.target(inner)
            value = self.value(right)
            return self.accesses.update(target, operator, value, old=False, needs_value=needs_value)
        if self.is_pointer(left):
            count = self.value(right)
            count = f"({count})" if operator == "+" else f"-(ptrdiff_t)({count})"
            kind = self.pointer_type(left)
            if cursors.kind_of(inner) == Kind.DECL_REF_EXPR:
                text = self.value(inner)
                return f"({text} = {self.advanced(text, kind, count)})"
            where = self.context.fresh("w")
            return (
                f"({{ {runtime.POINTER} *{where} = &({self.value(left)}); "
                f"*{where} = {self.advanced(f'(*{where})', kind, count)}; }})"
            )
        return self.context.splice(cursor, self.child)

    def comparison(self, operator: str, left: Cursor, right: Cursor) -> str:
        """A comparison of pointers to shared."""
        if operator in ("==", "!="):
            negation = "" if operator == "==" else "!"
            for one, other in ((left, right), (right, left)):
                if not self.is_pointer(one):
                    if not self.is_null(one):
                        self.context.complain(one, messages.COMPARED_WITH_PRIVATE)
                    is_set = runtime.is_set(self.value(other))
                    return f"(!{is_set})" if operator == "==" else f"({is_set})"
            self.check_comparable(left, right)
            return f"({negation}{runtime.equal(self.value(left), self.value(right))})"
        if not (self.is_pointer(left) and self.is_pointer(right)):
            self.context.complain(left, messages.COMPARED_WITH_PRIVATE)
            return "0"
        return f"({self.difference(left, right)} {operator} 0)"

    def check_comparable(self, left: Cursor, right: Cursor) -> None:
        """Complains about pointers with different block sizes."""
        # A member of a record lies on one thread; Clang says the record's layout.
        choices = [
            {self.accesses.pointer_layout(one).block, self.types.layout(self.pointee_of(one)).block}
            for one in (left, right)
        ]
        layouts = [self.accesses.pointer_layout(one) for one in (left, right)]
        if not choices[0] & choices[1] and not any(layout.generic for layout in layouts):
            self.context.complain(left, messages.different_order(*layouts))

    def difference(self, left: Cursor, right: Cursor) -> str:
        """The number of elements between two pointers."""
        target = self.pointee_of(left)
        layout = self.accesses.pointer_layout(left)
        other = self.accesses.pointer_layout(right)
        if layout.block != other.block and not layout.generic and not other.generic:
            self.context.complain(
                left,
                messages.different_order(layout, other),
            )
        count = runtime.difference(
            self.value(left), self.value(right), self.types.element_size(target), layout.block
        )
        number = self.types.elements(target)
        return count if number == "1" else f"({count} / (ptrdiff_t)({number}))"

    def arithmetic(self, cursor: Cursor, operator: str, left: Cursor, right: Cursor) -> str:
        """`p + i`, `i + p`, `p - i`, `p - q`."""
        if operator == "-" and self.is_pointer(left) and self.is_pointer(right):
            return self.difference(left, right)
        pointer, count = (left, right) if self.is_pointer(left) else (right, left)
        other = cursors.canonical(cursors.type_of(self.context.core(count))).kind
        if other in (TypeKind.POINTER, *cursors.ARRAYS):
            self.context.complain(cursor, messages.COMPARED_WITH_PRIVATE)
            return runtime.NULL
        target = self.pointee_of(pointer)
        layout = self.accesses.pointer_layout(pointer)
        if cursors.canonical(target).kind == TypeKind.VOID:
            self.context.complain(
                cursor,
                messages.GENERIC_ARITHMETIC,
            )
        text = self.value(count)
        text = f"({text})" if operator == "+" else f"-(ptrdiff_t)({text})"
        number = scaled_count(text, self.types.elements(target))
        inner = self.context.core(pointer)
        is_name = cursors.kind_of(inner) == Kind.DECL_REF_EXPR
        if is_name and operator == "+" and cursors.is_array(cursors.type_of(inner)):
            shared = self.object_of(inner)
            size = self.types.element_size(target)
            return runtime.element(shared.c_name, number, size, layout.block)
        return runtime.add(
            self.value(pointer), number, self.types.element_size(target), layout.block
        )

    def conditional(self, cursor: Cursor) -> str:
        """`a ? b : c`."""
        children = cursors.children(cursor)
        if len(children) != 3 or not any(map(self.is_pointer, children)):
            return self.context.splice(cursor, self.child)
        condition, first, second = children
        if self.is_pointer(first) or self.is_pointer(second):
            texts = [
                self.value(entry) if self.is_pointer(entry) else runtime.NULL
                for entry in (first, second)
            ]
        else:
            texts = [self.value(first), self.value(second)]
        return f"({self.condition(condition)} ? {texts[0]} : {texts[1]})"

    def cast(self, cursor: Cursor) -> str:
        """`(type)X`."""
        kind = cursors.type_of(cursor)
        operand = cursors.children(cursor)[-1]
        if cursors.is_pointer_to_shared(kind):
            return self.cast_to_pointer(cursor, kind, operand)
        if self.is_pointer(operand):
            plain = cursors.canonical(kind)
            value = self.value(operand)
            if plain.kind == TypeKind.POINTER:
                if self.context.checks:
                    value = runtime.checked_cast(value, self.context.where(cursor))
                return f"(({self.types.declare(kind, '')}){runtime.to_private(value)})"
            if plain.kind == TypeKind.VOID:
                return f"((void){value})"
            if plain.kind == TypeKind.BOOL:
                return runtime.is_set(value)
            return f"(({self.types.declare(kind, '')}){runtime.to_integer(value)})"
        if is_involved(kind):
            return f"(({self.types.plain_type(kind)}){self.value(operand)})"
        return self.context.splice(cursor, self.child)

    def cast_to_pointer(self, cursor: Cursor, kind: Type, operand: Cursor) -> str:
        """`(shared T *)X`."""
        if self.is_null(operand):
            return self.null()
        after = self.types.layout(cursors.pointee(kind))
        if not self.is_pointer(operand):
            plain = cursors.canonical(self.pointer_type(operand))
            if plain.kind in (TypeKind.POINTER, *cursors.ARRAYS):
                self.context.complain(
                    cursor,
                    messages.PRIVATE_TO_SHARED,
                )
                return self.null()
            return runtime.from_integer(self.value(operand))
        before = self.accesses.pointer_layout(operand)
        text = self.value(operand)
        if after.generic or self.keeps_phase(before, after, operand, kind):
            return text
        return runtime.reset_phase(text)

    def keeps_phase(self, before: Layout, after: Layout, operand: Cursor, kind: Type) -> bool:
        """Whether a cast keeps the phase: the same blocks of elements of the same size."""
        if before.generic:
            return not after.phaseless
        if before.block != after.block:
            return False
        if after.phaseless:
            return True
        sizes = [
            cursors.canonical(cursors.ultimate(entry)).get_size()
            for entry in (self.pointee_of(operand), cursors.pointee(kind))
        ]
        return bool(sizes[0] == sizes[1])

    def literal(self, cursor: Cursor) -> str:
        """`(type){…}`."""
        kind = cursors.type_of(cursor)
        if not is_involved(kind):
            return self.context.splice(cursor, self.child)
        return f"(({self.types.declare(kind, '')}){self.value(cursors.children(cursor)[-1])})"

    def initialiser_list(self, cursor: Cursor) -> str:
        """`{a, b, …}`."""
        return self.context.splice(cursor, self.child)

    def call(self, cursor: Cursor) -> str:
        """`f(a, b)`."""
        children = cursors.children(cursor)
        if not children:
            return self.context.text(cursor)
        callee, arguments = children[0], children[1:]
        name = self.context.core(callee).spelling
        if name in runtime.STATEMENTS and self.context.text(callee).startswith("__upc_"):
            return self.barrier(cursor, name, arguments)
        parameters = self.parameter_types(callee)
        texts: dict[int, str] = {}
        for index, argument in enumerate(arguments):
            if index < len(parameters):
                text = self.converted(argument, parameters[index])
            else:
                text = self.value(argument)
            texts[cursors.start_of(argument)] = text

        def lower(child: Cursor) -> str:
            known = texts.get(cursors.start_of(child))
            return known if known is not None and child != callee else self.child(child)

        return self.context.splice(cursor, lower)

    def parameter_types(self, callee: Cursor) -> list[Type]:
        """The types of the parameters of what is called."""
        kind = cursors.canonical(cursors.type_of(callee))
        if kind.kind == TypeKind.POINTER:
            kind = cursors.canonical(kind.get_pointee())
        if kind.kind != TypeKind.FUNCTIONPROTO:
            return []
        return list(kind.argument_types())

    def barrier(self, cursor: Cursor, name: str, arguments: list[Cursor]) -> str:
        """`upc_barrier`, `upc_notify`, `upc_wait`, `upc_fence`."""
        plain, valued = runtime.STATEMENTS[name]
        if name == "__upc_fence":
            return f"{plain}()"
        where = self.context.where(cursor)
        if not arguments:
            return f"{plain}({where})"
        return f"{valued}({self.value(arguments[0])}, {where})"

    def size_operator(self, cursor: Cursor) -> str:
        """`sizeof` and the three of UPC."""
        return self.sizes.lower(cursor)


def scaled_count(count: str, factor: str) -> str:
    """A number of what a pointer points to, in ultimate elements."""
    return count if factor == "1" else f"({count})*({factor})"


LVALUES = (
    Kind.DECL_REF_EXPR,
    Kind.ARRAY_SUBSCRIPT_EXPR,
    Kind.MEMBER_REF_EXPR,
    Kind.UNARY_OPERATOR,
    Kind.BINARY_OPERATOR,
)
VALUES: dict[object, Callable[[Expressions, Cursor], str]] = {
    Kind.UNEXPOSED_EXPR: Expressions.unexposed,
    Kind.PAREN_EXPR: Expressions.parenthesis,
    Kind.DECL_REF_EXPR: Expressions.name,
    Kind.UNARY_OPERATOR: Expressions.unary,
    Kind.BINARY_OPERATOR: Expressions.binary,
    Kind.COMPOUND_ASSIGNMENT_OPERATOR: Expressions.binary,
    Kind.CONDITIONAL_OPERATOR: Expressions.conditional,
    Kind.CSTYLE_CAST_EXPR: Expressions.cast,
    Kind.COMPOUND_LITERAL_EXPR: Expressions.literal,
    Kind.INIT_LIST_EXPR: Expressions.initialiser_list,
    Kind.CALL_EXPR: Expressions.call,
    Kind.CXX_UNARY_EXPR: Expressions.size_operator,
}
