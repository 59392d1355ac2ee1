# SPDX-License-Identifier: BSD-3-Clause
"""Lowers `upc_forall`.

A loop inside another that distributes iterations, in the same function or around a call,
distributes nothing itself; the run time counts those around. Where the affinity is the
loop's variable, or an element that it counts, only this thread's iterations are visited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import cursors, messages, runtime
from ..cursors import Cursor, Kind, TypeKind
from ..source import Forall
from .context import Context, LocalRows
from .expressions import ASSIGNING, Expressions

if TYPE_CHECKING:
    from .statements import Statements

JUMP_TARGETS = (Kind.FOR_STMT, Kind.WHILE_STMT, Kind.DO_STMT)


@dataclass(frozen=True)
class Parts:
    """The parts of a upc_forall; None: empty."""

    start: Cursor | None
    condition: Cursor | None
    step: Cursor | None
    affinity: Cursor | None
    body: Cursor


# What is added to the variable, iterations in a row of one thread, and the pointer they start from.
Counted = tuple[str, int, "Cursor | None"]


@dataclass(frozen=True)
class Affine:
    """A loop `for (…; v < bound; v++)` whose affinity counts with v."""

    name: str
    variable: int  # name_at() of the variable
    c_type: str
    declared: bool  # in the loop itself
    first: str  # the value it starts with; "": it has it already
    bound: Cursor
    inclusive: bool
    shift: str  # what is added to it: "", "+ 1"
    rows: int  # iterations in a row that belong to one thread
    base: str  # as in LocalRows
    origin: str


class Foralls:
    """Lowers upc_forall loops."""

    def __init__(self, context: Context, expressions: Expressions, statements: Statements) -> None:
        self.context = context
        self.expressions = expressions
        self.statements = statements
        self.depth = 0

    def lower(self, cursor: Cursor, mark: Forall) -> str:
        """One loop."""
        parts = self.parts(cursor, mark)
        self.check_jumps(parts.body)
        if parts.affinity is not None:
            self.check_affinity(parts.affinity)
        if parts.affinity is None or self.depth:
            return self.closed(cursor, self.plain(parts, parts.body))
        self.depth += 1
        affine = self.affine(parts)
        text = self.tested(parts) if affine is None else self.visited(parts, affine)
        self.depth -= 1
        return self.closed(cursor, text)

    def closed(self, cursor: Cursor, text: str) -> str:
        """A block for a loop; if its body is none, a semicolon of the source follows."""
        if self.context.source.text[cursors.end_of(cursor) - 1] in "};":
            return text
        return f"do {text if text.startswith('{') else '{ ' + text + ' }'} while (0)"

    def parts(self, cursor: Cursor, mark: Forall) -> Parts:
        """Tells the parts of the rewritten loop apart."""
        first, second = self.statements.semicolons(cursor)
        children = cursors.children(cursor)
        body = children[-1]
        start = condition = step = affinity = None
        for child in children[:-1]:
            at = cursors.start_of(child)
            if at < first:
                start = child
            elif at < second:
                condition = child
            else:
                step = child
        if mark.affinity >= 0 and step is not None:
            before, last = cursors.children(step)
            step, affinity = before, last
            if self.context.text(step).strip() == "(void)0":
                step = None
        return Parts(start, condition, step, affinity, body)

    # Texts

    def start_text(self, start: Cursor | None) -> str:
        """The first part, with its semicolon."""
        if start is None:
            return ";"
        text = self.statements.lower(start).strip()
        return text if text.endswith(";") else f"{text};"

    def plain(self, parts: Parts, body: Cursor, guard: str = "") -> str:
        """The loop over all iterations, each done if `guard` holds."""
        condition = "" if parts.condition is None else self.expressions.condition(parts.condition)
        step = "" if parts.step is None else self.expressions.discarded(parts.step)
        lowered = self.statements.lower(body)
        terminated = lowered if lowered.rstrip().endswith(("}", ";")) else f"{lowered};"
        head = f"for ({self.start_text(parts.start)} {condition}; {step}) {guard}"
        return head + self.braced(body, terminated)

    def braced(self, body: Cursor, text: str) -> str:
        """The body as a block, so that an else behind it finds its own if."""
        if cursors.kind_of(body) == Kind.COMPOUND_STMT:
            return text
        return f"{{ {text} }}"

    def guard(self, affinity: Cursor) -> str:
        """The test whether an iteration is this thread's."""
        if self.expressions.is_pointer(affinity):
            return runtime.is_mine(self.expressions.value(affinity))
        return runtime.is_my_turn(self.expressions.value(affinity))

    def tested(self, parts: Parts) -> str:
        """The loop with a test in each iteration."""
        assert parts.affinity is not None
        nested = self.context.fresh("nested")
        guard = f"if ({nested} || {self.guard(parts.affinity)}) "
        loop = self.plain(parts, parts.body, guard)
        return (
            f"{{ const int {nested} = {runtime.FORALL_DEPTH}++; {loop} --{runtime.FORALL_DEPTH}; }}"
        )

    def visited(self, parts: Parts, affine: Affine) -> str:
        """The loop that visits this thread's iterations alone, beside one for nested calls."""
        nested = self.context.fresh("nested")
        origin = self.context.fresh("origin") if affine.origin else ""
        mine, guards = self.own_iterations(parts, affine, origin)
        resume = self.context.sync(cursors.start_of(parts.body))
        condition = " && ".join([f"!{nested}", *guards])
        if guards:  # an array elsewhere is met with a test in each iteration
            assert parts.affinity is not None
            guard = f"if ({nested} || {self.guard(parts.affinity)}) "
            all_of_them = self.plain(parts, parts.body, guard)
        else:
            all_of_them = self.plain(parts, parts.body)
        start = f"const int64_t {origin} = {affine.origin}; " if origin else ""
        return (
            f"{{ const int {nested} = {runtime.FORALL_DEPTH}++; {start}"
            f"if ({condition}) {{ {mine} }} else {{ {resume}{all_of_them} }} "
            f"--{runtime.FORALL_DEPTH}; }}"
        )

    def own_iterations(self, parts: Parts, affine: Affine, origin: str) -> tuple[str, list[str]]:
        """The loop over this thread's iterations, and tests that all that it needs is there."""
        name, rows = affine.name, affine.rows
        row, low, high = (self.context.fresh(word) for word in ("row", "low", "high"))
        shift = f"{affine.shift} + {origin}" if origin else affine.shift
        local = row if rows == 1 else f"({name} {shift} - {row})"

        def is_fixed(declaration: Cursor) -> bool:
            return self.keeps_value(declaration, parts.body)

        self.context.rows.append(
            LocalRows(affine.variable, affine.shift, rows, local, affine.base, origin, is_fixed)
        )
        body = self.statements.lower(parts.body)
        if not body.rstrip().endswith(("}", ";")):
            body += ";"
        found = self.context.rows.pop()
        used = " ".join(found.used.values())
        bound = self.expressions.value(affine.bound)
        more = " + 1" if affine.inclusive else ""
        start = f"{affine.c_type} {name} = {affine.first};" if affine.declared else ""
        if not affine.declared and affine.first:
            start = f"{name} = {affine.first};"
        text = (
            f"{start} const int64_t {low} = (int64_t){name} {shift}, "
            f"{high} = (int64_t)({bound}){more} {shift}; {used} "
        )
        back = self.opposite(shift)
        if rows == 1:
            text += (
                f"for (int64_t {row} = {runtime.first_row(low)}, "
                f"{row}_end = {runtime.first_row(high)}; "
                f"{row} < {row}_end; ++{row}) {{ {name} = ({affine.c_type})"
                f"({row} * {runtime.THREADS} + {runtime.MYTHREAD}{back}); {body} }}"
            )
        else:
            block, stop = self.context.fresh("block"), self.context.fresh("stop")
            text += (
                f"for (int64_t {block} = {runtime.first_block(low, rows)}; {block} < {high}; "
                f"{block} += (int64_t){rows}u * {runtime.THREADS}) {{ "
                f"const int64_t {row} = {runtime.block_distance(block, rows)}; "
                f"const {affine.c_type} {stop} = ({affine.c_type})(({block} + {rows} < {high} ? "
                f"{block} + {rows} : {high}){back}); "
                f"for ({name} = ({affine.c_type})(({block} < {low} ? {low} : {block}){back}); "
                f"{name} < {stop}; ++{name}) {{ {body} }} }}"
            )
        if not affine.declared:
            text += f" {name} = ({affine.c_type})(({low} < {high} ? {high} : {low}){back});"
        return text, list(found.guards.values())

    @staticmethod
    def opposite(shift: str) -> str:
        """What undoes a shift."""
        if not shift:
            return ""
        return " " + shift.translate(str.maketrans("+-", "-+"))

    # Analysis

    def affine(self, parts: Parts) -> Affine | None:
        """The loop as one whose own iterations can be counted; None: it must be tested."""
        declaration = self.loop_variable(parts)
        if declaration is None or parts.condition is None or parts.affinity is None:
            return None
        at = cursors.name_at(declaration)
        bound = self.bound(parts.condition, at)
        first = self.first_value(parts.start, at)
        counted = self.counted(parts.affinity, at)
        if bound is None or first is None or counted is None:
            return None
        if not self.is_fixed(bound[0], parts.body) or self.needs_one_copy(parts.body):
            return None
        shift, rows, pointer = counted
        base = origin = ""
        if pointer is not None:
            if not self.keeps_value(pointer.referenced, parts.body):
                return None
            base = self.expressions.value(pointer)
            origin = self.expressions.locals.origin(pointer, rows)
        c_type = self.context.types.plain_type(cursors.type_of(declaration))
        return Affine(
            *(declaration.spelling, at, c_type, first[1], first[0], *bound),
            *(shift, rows, base, origin),
        )

    def loop_variable(self, parts: Parts) -> Cursor | None:
        """The variable that the step of a loop counts up, if nothing else changes it."""
        variable = None if parts.step is None else self.stepped(parts.step)
        declaration = None if variable is None else variable.referenced
        if declaration is None or declaration.kind not in (Kind.VAR_DECL, Kind.PARM_DECL):
            return None
        if not self.is_simple_variable(declaration):
            return None
        return None if self.may_change(parts.body, cursors.name_at(declaration)) else declaration

    def stepped(self, step: Cursor) -> Cursor | None:
        """The variable of `v++`, `++v` or `v += 1`."""
        step = self.context.core(step)
        kind = cursors.kind_of(step)
        children = [self.context.core(child) for child in cursors.children(step)]
        if (kind == Kind.UNARY_OPERATOR and cursors.unary_operator(step)[0] == "++") or (
            kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR
            and cursors.binary_operator(step) == "+="
            and self.context.text(children[1]).strip() == "1"
        ):
            variable = children[0]
        else:
            return None
        return variable if cursors.kind_of(variable) == Kind.DECL_REF_EXPR else None

    def is_simple_variable(self, declaration: Cursor) -> bool:
        """Whether a variable is a private integer of this function, and not volatile."""
        kind = cursors.type_of(declaration)
        plain = cursors.canonical(kind)
        if plain.kind not in INTEGERS or cursors.space_of(kind) or plain.is_volatile_qualified():
            return False
        return declaration.semantic_parent.kind == Kind.FUNCTION_DECL and (
            declaration.storage_class.name in ("NONE", "AUTO", "REGISTER")
        )

    def refers(self, cursor: Cursor, variable: int) -> bool:
        """Whether an expression is the variable itself."""
        inner = self.context.core(cursor)
        if cursors.kind_of(inner) != Kind.DECL_REF_EXPR or inner.referenced is None:
            return False
        return cursors.name_at(inner.referenced) == variable

    def bound(self, condition: Cursor, variable: int) -> tuple[Cursor, bool] | None:
        """The bound of `v < X` or `v <= X`, an integer without `v`, and whether it is included."""
        condition = self.context.core(condition)
        if cursors.kind_of(condition) != Kind.BINARY_OPERATOR:
            return None
        operator = cursors.binary_operator(condition)
        left, right = cursors.children(condition)
        found = None
        if operator in ("<", "<=") and self.refers(left, variable):
            found = right, operator == "<="
        elif operator in (">", ">=") and self.refers(right, variable):
            found = left, operator == ">="
        if found is None or self.mentions(found[0], variable):
            return None
        # The bound is converted to an integer once: 2.5 would lose an iteration.
        kind = cursors.canonical(cursors.type_of(self.context.core(found[0]))).kind
        return found if kind in WHOLE_NUMBERS else None

    def mentions(self, cursor: Cursor, variable: int) -> bool:
        """Whether the variable stands anywhere in an expression."""
        return self.refers(cursor, variable) or any(
            self.mentions(child, variable) for child in cursors.children(cursor)
        )

    def first_value(self, start: Cursor | None, variable: int) -> tuple[str, bool] | None:
        """The value that the variable starts with, and whether the loop declares it."""
        if start is None:
            return "", False
        children = cursors.children(start)
        if cursors.kind_of(start) == Kind.DECL_STMT:
            if len(children) != 1 or cursors.name_at(children[0]) != variable:
                return None
            values = [c for c in cursors.children(children[0]) if c.kind.is_expression()]
            return (self.expressions.value(values[-1]), True) if values else None
        start = self.context.core(start)
        if cursors.kind_of(start) == Kind.BINARY_OPERATOR and cursors.binary_operator(start) == "=":
            left, right = cursors.children(start)
            if self.refers(left, variable):
                return self.expressions.value(right), False
        return None

    def counted(self, affinity: Cursor, variable: int) -> Counted | None:
        """How the affinity counts with the variable."""
        inner = self.context.core(affinity)
        if not self.expressions.is_pointer(affinity):
            found, shift = self.expressions.locals.shifted(inner)
            return (shift, 1, None) if found == variable else None
        if (
            cursors.kind_of(inner) == Kind.UNARY_OPERATOR
            and cursors.unary_operator(inner)[0] == "&"
        ):
            return self.counted_element(self.context.core(cursors.children(inner)[0]), variable)
        if cursors.kind_of(inner) == Kind.ARRAY_SUBSCRIPT_EXPR:  # a row, which decays
            return self.counted_element(inner, variable)
        if cursors.kind_of(inner) == Kind.BINARY_OPERATOR and cursors.binary_operator(inner) == "+":
            left, right = (self.context.core(child) for child in cursors.children(inner))
            if self.is_static_array(left):
                return self.of_array(left, right, variable)
            return self.of_pointer(left, right, variable)
        return None

    def is_static_array(self, cursor: Cursor) -> bool:
        """Whether an expression names a shared array."""
        kind = cursors.type_of(cursor)
        return (
            cursors.kind_of(cursor) == Kind.DECL_REF_EXPR
            and cursors.is_array(kind)
            and cursors.space_of(kind) != 0
        )

    def counted_element(self, element: Cursor, variable: int) -> Counted | None:
        """As counted(), for `&a[v]`, `&a[v][0]`, `a[v]` of a shared array `a`."""
        chain: list[Cursor] = []
        while cursors.kind_of(element) == Kind.ARRAY_SUBSCRIPT_EXPR:
            base, index = self.expressions.accesses.subscript_parts(element)
            chain.insert(0, index)
            element = self.context.core(base)
        if len(chain) == 1 and not self.is_static_array(element):
            return self.of_pointer(element, chain[0], variable)
        if not chain or not self.is_static_array(element):
            return None
        for index in chain[1:]:
            inner = self.context.core(index)
            if cursors.kind_of(inner) not in (Kind.INTEGER_LITERAL, Kind.DECL_REF_EXPR):
                return None
            if self.refers(index, variable):
                return None
        return self.of_array(element, chain[0], variable)

    def of_pointer(self, pointer: Cursor, index: Cursor, variable: int) -> Counted | None:
        """As counted(), for an element that a private variable points to."""
        name = self.expressions.locals.variable(pointer)
        found, shift = self.expressions.locals.shifted(index)
        if name is None or found != variable:
            return None
        block = self.context.types.layout(cursors.pointee(cursors.type_of(name))).block
        return shift, block, name

    def of_array(self, array: Cursor, index: Cursor, variable: int) -> Counted | None:
        """As counted(), for an index of the first dimension of a shared array."""
        found, shift = self.expressions.locals.shifted(index)
        if found != variable:
            return None
        kind = cursors.type_of(array)
        length = 1
        for count in cursors.dimensions(kind)[1:]:
            if count < 0:
                return None
            length *= count
        block = self.context.types.layout(kind).block
        if block == 0 or block % length:
            return None
        return shift, block // length, None

    def may_change(self, cursor: Cursor, variable: int) -> bool:
        """Whether something in a body assigns a variable or takes its address."""
        kind = cursors.kind_of(cursor)
        children = cursors.children(cursor)
        if kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR):
            if cursors.binary_operator(cursor) in ASSIGNING and self.refers(children[0], variable):
                return True
        elif kind == Kind.UNARY_OPERATOR:
            operator = cursors.unary_operator(cursor)[0]
            if operator in ("++", "--", "&") and self.refers(children[0], variable):
                return True
        return any(self.may_change(child, variable) for child in children)

    def needs_one_copy(self, cursor: Cursor) -> bool:
        """Whether a body cannot be written twice: labels, static variables."""
        kind = cursors.kind_of(cursor)
        if kind in (Kind.LABEL_STMT, Kind.ADDR_LABEL_EXPR):
            return True
        if kind == Kind.VAR_DECL and cursor.storage_class.name == "STATIC":
            return True
        if kind in (Kind.STRUCT_DECL, Kind.UNION_DECL):
            return True
        return any(map(self.needs_one_copy, cursors.children(cursor)))

    def is_fixed(self, bound: Cursor, body: Cursor) -> bool:
        """Whether a bound has no effects, and one value while the loop runs."""
        names = self.names_of_pure(bound)
        if names is None:
            return False
        return all(self.keeps_value(declaration, body) for declaration in names)

    def keeps_value(self, declaration: Cursor, body: Cursor) -> bool:
        """Whether a name means one value while a body runs."""
        if declaration.kind == Kind.ENUM_CONSTANT_DECL or declaration.spelling == "MYTHREAD":
            return True
        at = cursors.name_at(declaration)
        begins, ends = cursors.extent(body)
        if begins <= at < ends or self.may_change(body, at):
            return False
        is_global = declaration.semantic_parent.kind != Kind.FUNCTION_DECL
        is_constant = cursors.type_of(declaration).is_const_qualified()
        return is_constant or not (is_global and self.has_calls(body))

    def names_of_pure(self, expression: Cursor) -> list[Cursor] | None:
        """The names in an expression of private values without effects; None: it is none."""
        names: list[Cursor] = []
        pending = [expression]
        while pending:
            current = pending.pop()
            kind = cursors.kind_of(current)
            if kind == Kind.DECL_REF_EXPR:
                if self.expressions.accesses.is_shared(current) or current.referenced is None:
                    return None
                names.append(current.referenced)
            elif kind not in PURE or self.has_effect(current):
                return None
            pending += cursors.children(current)
        return names

    @staticmethod
    def has_effect(cursor: Cursor) -> bool:
        """Whether an operation changes its operand or reads memory."""
        kind = cursors.kind_of(cursor)
        if kind == Kind.BINARY_OPERATOR:
            return cursors.binary_operator(cursor) in ASSIGNING
        return bool(
            kind == Kind.UNARY_OPERATOR and cursors.unary_operator(cursor)[0] not in ("-", "+", "~")
        )

    def has_calls(self, cursor: Cursor) -> bool:
        """Whether a body calls functions."""
        if cursors.kind_of(cursor) == Kind.CALL_EXPR:
            return True
        return any(map(self.has_calls, cursors.children(cursor)))

    def check_affinity(self, affinity: Cursor) -> None:
        """Complains about an affinity that is no integer and no pointer to shared."""
        kind = cursors.canonical(cursors.type_of(self.context.core(affinity))).kind
        if not self.expressions.is_pointer(affinity) and kind not in WHOLE_NUMBERS:
            self.context.complain(affinity, messages.FORALL_AFFINITY)

    def check_jumps(self, body: Cursor) -> None:
        """Complains about jumps out of a upc_forall."""
        labels: set[str] = set()
        targets: list[Cursor] = []
        pending = [(body, False)]
        while pending:
            current, in_loop = pending.pop()
            kind = cursors.kind_of(current)
            if kind == Kind.RETURN_STMT:
                self.context.complain(current, messages.FORALL_RETURN)
            elif kind == Kind.BREAK_STMT and not in_loop:
                self.context.complain(current, messages.FORALL_BREAK)
            elif kind == Kind.LABEL_STMT:
                labels.add(current.spelling)
            elif kind == Kind.LABEL_REF:
                targets.append(current)
            inner = in_loop or kind in JUMP_TARGETS or kind == Kind.SWITCH_STMT
            pending += [(child, inner) for child in cursors.children(current)]
        for target in targets:
            if target.spelling not in labels:
                self.context.complain(target, messages.FORALL_GOTO)


INTEGERS = (
    TypeKind.SHORT,
    TypeKind.INT,
    TypeKind.UINT,
    TypeKind.LONG,
    TypeKind.ULONG,
    TypeKind.LONGLONG,
    TypeKind.ULONGLONG,
)
WHOLE_NUMBERS = (
    *INTEGERS,
    TypeKind.BOOL,
    TypeKind.CHAR_S,
    TypeKind.CHAR_U,
    TypeKind.SCHAR,
    TypeKind.UCHAR,
    TypeKind.USHORT,
    TypeKind.ENUM,
    TypeKind.INT128,
    TypeKind.UINT128,
)
PURE = (
    Kind.UNEXPOSED_EXPR,
    Kind.PAREN_EXPR,
    Kind.BINARY_OPERATOR,
    Kind.UNARY_OPERATOR,
    Kind.INTEGER_LITERAL,
    Kind.CSTYLE_CAST_EXPR,
    Kind.CXX_UNARY_EXPR,
    Kind.TYPE_REF,
)
