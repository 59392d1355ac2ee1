# SPDX-License-Identifier: BSD-3-Clause
"""Lowers declarations.

Shared objects leave the C text; declarations with pointers to shared are written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from .. import cursors, messages, runtime
from ..cursors import Cursor, Kind, Type, TypeKind
from ..layout import THREADS_STAND_IN
from ..printer import quoted
from ..types import is_involved
from .context import Context, FunctionState, SharedObject
from .expressions import Expressions

RECORDS = (Kind.STRUCT_DECL, Kind.UNION_DECL, Kind.ENUM_DECL)
SPECIFIERS = re.compile(
    r"\b(?:static|inline|__inline|__inline__|_Noreturn|extern|register|_Thread_local|__thread)\b"
)
ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\((?!address_space)(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)"
)


class Lowers(Protocol):
    """What declarations need of statements: bodies."""

    def lower(self, cursor: Cursor) -> str:
        """A statement or a declaration."""


class Declarations:
    """Lowers declarations of one translation unit."""

    def __init__(self, context: Context, expressions: Expressions, statements: Lowers) -> None:
        self.context = context
        self.expressions = expressions
        self.statements = statements
        self.types = context.types

    def lower(self, cursor: Cursor) -> str:
        """One declaration, or a DECL_STMT with several."""
        kind = cursors.kind_of(cursor)
        if kind == Kind.DECL_STMT:
            start, end = cursors.extent(cursor)
            return self.context.sync(start) + self.group(cursors.children(cursor), start, end, ";")
        if kind in RECORDS:
            return self.record(cursor)
        if kind == Kind.FUNCTION_DECL:
            return self.function(cursor)
        start, end = cursors.extent(cursor)
        return self.group([cursor], start, end, "")

    def group(self, declarations: list[Cursor], start: int, end: int, stop: str) -> str:
        """Declarations that share their specifiers, in the text from `start` to `end`."""
        for declaration in declarations:
            self.check_private(declaration)
        if not any(map(self.is_rewritten, declarations)):
            return self.copied(declarations, start, end)
        texts: list[str] = []
        for declaration in declarations:
            kind = cursors.kind_of(declaration)
            if kind in RECORDS:
                texts.append(self.tagged(declaration))
            elif kind == Kind.TYPEDEF_DECL:
                texts.append(self.typedef(declaration))
            elif kind == Kind.VAR_DECL:
                texts.append(self.variable(declaration))
            elif kind == Kind.FIELD_DECL:
                texts.append(self.member(declaration))
            elif kind == Kind.FUNCTION_DECL:
                texts.append(self.prototype(declaration))
        text = "; ".join(entry for entry in texts if entry)
        return self.joined(texts, text) + (stop or "")

    def check_private(self, cursor: Cursor) -> None:
        """What is not automatic has a size that the C compiler knows."""
        kind = cursors.kind_of(cursor)
        is_kept = (
            kind == Kind.FIELD_DECL
            or (kind == Kind.TYPEDEF_DECL and self.context.function is None)
            or (kind == Kind.VAR_DECL and self.is_static(cursor))
        )
        if not is_kept or self.context.threads is not None:
            return
        declared = cursors.declared_type(cursor)
        if cursors.space_of(declared) or not cursors.is_array(declared):
            return
        if any(count and count % THREADS_STAND_IN == 0 for count in cursors.dimensions(declared)):
            self.context.complain(cursor, messages.threads_in_private(str(cursor.spelling)))

    def joined(self, texts: list[str], text: str) -> str:
        """Declarations of one type as one declaration, which a `for` needs."""
        bases = {entry.split(" ", 1)[0] for entry in texts}
        if len(texts) > 1 and bases == {runtime.POINTER} and "*" not in text:
            return f"{runtime.POINTER} " + ", ".join(entry.split(" ", 1)[1] for entry in texts)
        return text

    def copied(self, declarations: list[Cursor], start: int, end: int) -> str:
        """Declarations as they stand, with their expressions lowered."""
        parts: list[str] = []
        at = start
        for declaration in declarations:
            own_start, own_end = cursors.extent(declaration)
            if cursors.kind_of(declaration) in RECORDS:
                if own_start >= at:
                    parts += (self.context.raw(at, own_start), self.record(declaration))
                    at = own_end
                continue
            for child in sorted(cursors.children(declaration), key=cursors.start_of):
                child_start, child_end = cursors.extent(child)
                if child_start < at or child_end > end or child_start == child_end:
                    continue
                parts += (self.context.raw(at, child_start), self.part(child, declaration))
                at = child_end
        parts.append(self.context.raw(at, end))
        return "".join(parts)

    def part(self, child: Cursor, declaration: Cursor) -> str:
        """A child of a declaration that is copied."""
        kind = cursors.kind_of(child)
        if kind in RECORDS:
            return self.record(child)
        if kind == Kind.PARM_DECL:
            return (
                self.lower(child)
                if is_involved(cursors.type_of(child))
                else self.context.text(child)
            )
        if kind is not None and kind.is_expression():
            return self.initialiser(declaration, child)
        return self.context.text(child)

    def is_rewritten(self, declaration: Cursor) -> bool:
        """Whether a declaration cannot be copied."""
        kind = cursors.kind_of(declaration)
        if kind not in (Kind.VAR_DECL, Kind.TYPEDEF_DECL, Kind.FIELD_DECL, Kind.FUNCTION_DECL):
            return kind == Kind.PARM_DECL and is_involved(cursors.type_of(declaration))
        if is_involved(cursors.declared_type(declaration)):
            return True
        return kind == Kind.VAR_DECL and self.starts_late(declaration)

    # Records

    def record(self, cursor: Cursor) -> str:
        """A structure, union or enumeration, where it stands."""
        if not cursors.children(cursor) or cursors.kind_of(cursor) == Kind.ENUM_DECL:
            return self.context.text(cursor)
        start, end = cursors.extent(cursor)
        parts: list[str] = []
        at = start
        tag = self.tag_of(cursor)
        if tag:
            word = self.context.source.text[start:].split("{", 1)[0]
            keyword = re.match(r"\w+", word)
            at = start + (keyword.end() if keyword else 0)
            parts.append(self.context.raw(start, at) + f" {tag} ")
        members = [
            c for c in cursors.children(cursor) if cursors.kind_of(c) in (*RECORDS, Kind.FIELD_DECL)
        ]
        index = 0
        while index < len(members):
            first = members[index]
            same = [first]
            while index + len(same) < len(members) and self.context.are_together(
                same, members[index + len(same)]
            ):
                same.append(members[index + len(same)])
            if any(cursors.kind_of(member) == Kind.FIELD_DECL for member in same):
                self.name_records(same)
            group_start = min(map(cursors.start_of, same))
            group_end = max(map(cursors.end_of, same))
            index += len(same)
            if group_start < at:
                continue
            parts.append(self.context.raw(at, group_start))
            parts.append(self.context.sync(group_start))
            parts.append(self.group(same, group_start, group_end, ""))
            at = group_end
        parts.append(self.context.raw(at, end))
        return "".join(parts)

    def name_records(self, group: list[Cursor]) -> None:
        """Gives tags to unnamed records that a member is declared with: its type may be needed."""
        for cursor in group:
            is_record = cursors.kind_of(cursor) in (Kind.STRUCT_DECL, Kind.UNION_DECL)
            if is_record and (not cursor.spelling or "(" in cursor.spelling):
                tag = f"__upc_tag_{len(self.types.tags)}"
                self.types.tags.setdefault(cursors.start_of(cursor), tag)

    def tag_of(self, cursor: Cursor) -> str:
        """The tag that an unnamed record was given; "": none."""
        return self.types.tags.get(cursors.start_of(cursor), "")

    def tagged(self, cursor: Cursor) -> str:
        """A record whose name is used by a declaration that is written anew."""
        if not cursor.is_definition():
            return ""
        name = cursor.spelling
        if not name or "(" in name:
            self.types.tags.setdefault(
                cursors.start_of(cursor), f"__upc_tag_{len(self.types.tags)}"
            )
        return self.record(cursor)

    def member(self, cursor: Cursor) -> str:
        """A member with a pointer to shared in its type, or beside one that has."""
        text = self.types.declare(cursors.type_of(cursor), cursor.spelling)
        if cursor.is_bitfield():
            text += f" : {cursor.get_bitfield_width()}"
        return text

    # Types

    def typedef(self, cursor: Cursor) -> str:
        """A typedef that names a pointer to shared or a shared type."""
        kind = cursor.underlying_typedef_type
        if cursors.space_of(kind) and cursors.is_array(kind):
            if any(map(measures_pointer, cursors.children(cursor))):
                self.context.complain(cursor, messages.size_of_pointer(str(cursor.spelling)))
            # No private object is ever of this type; its size may contain THREADS.
            return f"typedef {self.types.plain_type(cursors.ultimate(kind))} {cursor.spelling}"
        if not is_involved(kind):
            return f"typedef {self.types.declare(kind, cursor.spelling, self.sizes(cursor))}"
        return f"typedef {self.types.declare(kind, cursor.spelling)}"

    def sizes(self, cursor: Cursor) -> list[str]:
        """The texts of array sizes that only run time knows."""
        kind = cursors.declared_type(cursor)
        variable: list[bool] = []
        while cursors.is_array(kind):
            plain = cursors.canonical(kind)
            variable.append(plain.kind == TypeKind.VARIABLEARRAY)
            kind = cursors.element(kind)
        expressions = [c for c in cursors.children(cursor) if c.kind.is_expression()]
        texts: list[str] = []
        for is_variable, expression in zip(variable, expressions, strict=False):
            if is_variable:
                texts.append(self.expressions.value(expression))
        return texts

    # Variables

    def variable(self, cursor: Cursor) -> str:
        """A variable: shared, with a pointer to shared in its type, or initialised late."""
        kind = cursors.type_of(cursor)
        if cursors.space_of(kind):
            return self.shared(cursor)
        storage = cursor.storage_class.name.lower()
        specifier = f"{storage} " if storage in ("static", "extern", "register") else ""
        name = str(cursor.spelling)
        value = self.value_of(cursor)
        text = self.types.declare(kind, name, self.sizes(cursor))
        if value is None:
            return f"{specifier}{text}"
        if self.starts_late(cursor):
            return self.late(cursor, specifier, value)
        return f"{specifier}{text} = {self.initialiser(cursor, value)}"

    def value_of(self, cursor: Cursor) -> Cursor | None:
        """The expression that initialises a variable."""
        children = cursors.children(cursor)
        if not children or not children[-1].kind.is_expression():
            return None
        last = children[-1]
        between = self.context.source.text[cursors.start_of(cursor) : cursors.start_of(last)]
        return last if between.rstrip().endswith("=") else None

    def initialiser(self, declaration: Cursor, value: Cursor) -> str:
        """The text of an initialiser or of an array size."""
        if cursors.kind_of(declaration) != Kind.VAR_DECL:
            return self.expressions.value(value)
        before = self.context.static_initialiser
        self.context.static_initialiser = self.is_static(declaration)
        kind = cursors.type_of(declaration)
        if cursors.kind_of(value) == Kind.INIT_LIST_EXPR:
            text = self.expressions.value(value)
        elif (initial := self.value_of(declaration)) is not None and value == initial:
            text = self.expressions.converted(value, kind)
        else:
            text = self.expressions.value(value)
        self.context.static_initialiser = before
        return text

    def is_static(self, cursor: Cursor) -> bool:
        """Whether a variable lives as long as the program."""
        parent = cursor.semantic_parent
        in_function = parent is not None and parent.kind == Kind.FUNCTION_DECL
        return not in_function or cursor.storage_class.name == "STATIC"

    def starts_late(self, cursor: Cursor) -> bool:
        """Whether a static private variable needs what only the start of the program knows."""
        if cursors.space_of(cursors.type_of(cursor)) or not self.is_static(cursor):
            return False
        value = self.value_of(cursor)
        if value is None:
            return False
        if cursors.is_pointer_to_shared(cursors.type_of(cursor)) and calls(value):
            return True  # no constant of C is a pointer to shared
        return self.needs_start(value)

    def needs_start(self, value: Cursor) -> bool:
        """Whether an initialiser is not constant in C: it names shared objects, or THREADS."""
        kind = cursors.kind_of(value)
        if kind == Kind.DECL_REF_EXPR:
            if value.spelling == "MYTHREAD":
                return True
            if value.spelling == "THREADS" and self.context.threads is None:
                return True
            if cursors.space_of(cursors.type_of(value)):
                return True
        if kind == Kind.CXX_UNARY_EXPR and self.context.threads is not None:
            return False
        return any(map(self.needs_start, cursors.children(value)))

    def late(self, cursor: Cursor, specifier: str, value: Cursor) -> str:
        """A static variable that is initialised before main by code."""
        name = str(cursor.spelling)
        kind = cursors.type_of(cursor)
        parent = cursor.semantic_parent
        hoisted = parent is not None and parent.kind == Kind.FUNCTION_DECL
        if hoisted:
            name = self.context.fresh(f"static_{name}_")
            self.context.renamed[cursors.name_at(cursor)] = name
            specifier = "static "
        text = f"{specifier}{self.types.declare(kind, name)}"
        if cursors.canonical(cursors.ultimate(kind)).is_const_qualified():  # it is written once
            text = re.sub(r"\bconst\b ?", "", text, count=1)
        before = self.context.static_initialiser
        self.context.static_initialiser = False
        if cursors.kind_of(value) == Kind.INIT_LIST_EXPR or cursors.is_array(kind):
            image = self.types.declare(kind, "__upc_image")
            lowered = self.expressions.value(value)
            start = (
                f"{{ {image} = {lowered}; "
                f"__builtin_memcpy((void *)&{name}, &__upc_image, sizeof __upc_image); }}"
            )
        else:
            lowered = self.expressions.converted(value, kind)
            plain = self.types.plain_type(kind)
            start = f"*({plain} *)&{name} = {lowered};"
        self.context.static_initialiser = before
        self.context.startup.append(start)
        if hoisted:
            self.context.hoisted.append(f"{text};")
            return ""
        return text

    # Shared objects

    def shared(self, cursor: Cursor) -> str:
        """A shared variable: a place for its offset, and an entry in the table of the file."""
        name = str(cursor.spelling)
        key = self.context.key_of(cursor)
        in_function = self.context.function is not None  # of an extern one, Clang says the file
        storage = cursor.storage_class.name
        self.check_shared(cursor)
        known = self.context.objects.get(key)
        if known is None:
            c_name = self.context.fresh(f"at_{name}_") if "@" in key else f"__upc_at_{name}"
            linkage = "internal" if storage == "STATIC" else "external"
            known = SharedObject(name, c_name, cursor, linkage)
            self.context.objects[key] = known
            declaration = f"static uint64_t {c_name};"
            if in_function:
                self.context.hoisted.append(declaration)
                declaration = ""
        else:
            declaration = ""
        value = self.value_of(cursor)
        if storage != "EXTERN" or value is not None:
            known.defined = True
        if -1 in cursors.dimensions(cursors.type_of(known.cursor)) or value is not None:
            known.cursor = cursor
        if value is not None:
            image = self.image(cursor, known, value)
            if in_function:
                self.context.hoisted.append(image)
            elif image:
                declaration = f"{declaration} {image}".strip()
        return declaration.rstrip(";")

    def check_shared(self, cursor: Cursor) -> None:
        """UPC's constraints on a shared object."""
        kind = cursors.type_of(cursor)
        counts = cursors.dimensions(kind)
        block = self.types.layout(kind).block
        is_strict = cursors.canonical(cursors.ultimate(kind)).is_volatile_qualified()
        sizes = cursors.children(cursor)[: -1 if self.value_of(cursor) is not None else None]
        if any(map(measures_pointer, sizes)):
            self.context.complain(cursor, messages.size_of_pointer(str(cursor.spelling)))
        if is_strict and self.says_relaxed(cursor):
            self.context.complain(cursor, messages.STRICT_AND_RELAXED)
        if self.context.threads is not None or not counts:
            return
        name = str(cursor.spelling)
        with_threads = [count for count in counts if count > 0 and count % THREADS_STAND_IN == 0]
        if any((count // THREADS_STAND_IN) % THREADS_STAND_IN == 0 for count in with_threads) or (
            len(with_threads) > 1
        ):
            self.context.complain(cursor, messages.threads_twice(cursor.spelling))
        if any(count > THREADS_STAND_IN // 2 and count % THREADS_STAND_IN for count in counts):
            self.context.complain(
                cursor,
                messages.threads_no_factor(cursor.spelling),
            )
        elif not block and with_threads:
            self.context.complain(cursor, messages.threads_in_indefinite(name))
        elif block and not with_threads and -1 not in counts:
            self.context.complain(
                cursor,
                messages.no_threads(cursor.spelling),
            )

    def says_relaxed(self, cursor: Cursor) -> bool:
        """Whether `relaxed` stood in a declaration; nothing of it is left in the text."""
        end = cursors.name_at(cursor)
        text = self.context.source.text
        return any(
            mark.at < end and not re.search(r"[;{}]", text[mark.at : end])
            for mark in self.context.source.relaxed
        )

    def image(self, cursor: Cursor, known: SharedObject, value: Cursor) -> str:
        """The initial value of a shared object: a constant, or statements that run at the start."""
        kind = cursors.type_of(cursor)
        plain_kind = self.private_declarator(kind)
        if self.needs_start(value):
            before = self.context.static_initialiser
            self.context.static_initialiser = False
            lowered = self.initial_value(kind, value)
            self.context.static_initialiser = before
            size = self.types.element_size(kind)
            layout = self.types.layout(kind)
            each = runtime.element(known.c_name, "__upc_i", size, layout.block)
            put = runtime.put_bytes(
                each, f"(char *)__upc_image + __upc_i * {size}", size, strict=False
            )
            pointer = plain_kind("__upc_values")
            known.startup = (
                f"if ({runtime.MYTHREAD} == 0) {{ {pointer} = {lowered}; "
                f"void *__upc_image = (void *)&__upc_values; "
                f"for (uint64_t __upc_i = 0; __upc_i < sizeof __upc_values / {size}; ++__upc_i) "
                f"{put}; }}"
            )
            self.context.startup.append(known.startup)
            return ""
        known.image = self.context.fresh(f"image_{known.name}_")
        before = self.context.static_initialiser
        self.context.static_initialiser = True
        text = f"static const {plain_kind(known.image)} = {self.initial_value(kind, value)};"
        self.context.static_initialiser = before
        return text

    def initial_value(self, kind: Type, value: Cursor) -> str:
        """The text of a shared object's initialiser."""
        if cursors.kind_of(value) == Kind.INIT_LIST_EXPR:
            return self.expressions.value(value)
        if cursors.is_pointer_to_shared(kind):
            return self.expressions.converted(value, kind)
        return self.expressions.value(value)

    def private_declarator(self, kind: Type) -> Callable[[str], str]:
        """Declares a private copy of a shared object, as long as the value it is given."""
        counts = cursors.dimensions(kind)
        base = self.types.plain_type(cursors.ultimate(kind))

        def declare(name: str) -> str:
            inner = "".join(f"[{count}]" for count in counts[1:])
            return f"{base} {name}[]{inner}" if counts else f"{base} {name}"

        return declare

    # Functions

    def function(self, cursor: Cursor) -> str:
        """A function, with or without a body."""
        body = next(
            (c for c in cursors.children(cursor) if cursors.kind_of(c) == Kind.COMPOUND_STMT), None
        )
        if body is None:
            return self.prototype(cursor)
        head = self.head(cursor, cursors.start_of(body))
        result = cursors.type_of(cursor).get_result()
        with self.context.inside(FunctionState(cursor.spelling, result)):
            text = self.statements.lower(body)
        if cursor.spelling == "main":
            return self.as_main(cursor, head, text)
        return head + text

    def as_main(self, cursor: Cursor, head: str, body: str) -> str:
        """The program's main under a name of its own, called by the run time."""
        head = re.sub(r"\bmain\b(?=\s*\()", "__upc_main", head, count=1)
        count = sum(1 for c in cursors.children(cursor) if cursors.kind_of(c) == Kind.PARM_DECL)
        arguments = ", ".join(("argc", "argv", "environment")[:count])
        is_void = cursors.canonical(cursors.type_of(cursor).get_result()).kind == TypeKind.VOID
        if is_void:
            call = f"__upc_main({arguments}); return 0;"
        else:
            closing = body.rindex("}")
            body = f"{body[:closing]} return 0; {body[closing:]}"
            call = f"return __upc_main({arguments});"
        return (
            f"static {head}{body} "
            f"int {runtime.MAIN}(int argc, char **argv, char **environment) "
            f"{{ (void)argc; (void)argv; (void)environment; {call} }}"
        )

    def prototype(self, cursor: Cursor) -> str:
        """A function declaration."""
        return self.head(cursor, cursors.end_of(cursor)).rstrip()

    def head(self, cursor: Cursor, end: int) -> str:
        """A function's declarator, up to its body or its end."""
        kind = cursors.type_of(cursor)
        if cursors.space_of(kind.get_result()):
            self.context.complain(cursor, messages.RESULT)
        start = cursors.start_of(cursor)
        parameters = [c for c in cursors.children(cursor) if cursors.kind_of(c) == Kind.PARM_DECL]
        if not is_involved(kind):
            return self.context.raw(start, end)
        at = cursor.location.offset  # the name
        if not is_involved(kind.get_result()):
            parts = [self.context.raw(start, at)]
        else:
            before = self.context.source.text[start:at]
            kept = ATTRIBUTE.findall(before) + SPECIFIERS.findall(before)
            parts = [" ".join([*kept, self.types.plain_type(kind.get_result())]) + " "]
        for parameter in parameters:
            own_start, own_end = cursors.extent(parameter)
            if own_start < at:
                continue
            parts.append(self.context.raw(at, own_start))
            if is_involved(cursors.type_of(parameter)):
                parts.append(self.types.declare(cursors.type_of(parameter), parameter.spelling))
            else:
                parts.append(self.context.text(parameter))
            at = own_end
        parts.append(self.context.raw(at, end))
        return "".join(parts)

    # The table of the file

    def table(self, file: str) -> str:
        """The registration of all shared objects, behind everything else."""
        entries = [self.entry(shared) for shared in self.context.objects.values()]
        startup = " ".join(self.context.startup)
        lines: list[str] = []
        objects = f"(const {runtime.OBJECT} *)0"
        if entries:
            objects = "__upc_objects"
            lines.append(
                f"static const {runtime.OBJECT} {objects}[] = {{" + ",\n  ".join(entries) + "};"
            )
        set_up = "0"
        if startup:
            set_up = "__upc_set_up"
            lines.append(f"static void {set_up}(void) {{ {startup} }}")
        threads = self.context.threads or 0
        lines.append(
            runtime.unit("__upc_unit", threads, quoted(file), objects, len(entries), set_up)
        )
        return "\n".join(lines)

    def entry(self, shared: SharedObject) -> str:
        """One shared object."""
        kind = cursors.type_of(shared.cursor)
        count = 1
        for dimension in cursors.dimensions(kind):
            count *= max(dimension, 0)
        flags: list[str] = []
        if self.context.threads is None and count and count % THREADS_STAND_IN == 0:
            count //= THREADS_STAND_IN
            flags.append(runtime.TIMES_THREADS)
        if not shared.defined:
            flags.append(runtime.EXTERN)
        elif shared.linkage == "internal":
            flags.append(runtime.STATIC)
        elif not shared.image and not shared.startup:
            flags.append(runtime.COMMON)
        element = self.types.plain_type(cursors.ultimate(kind))
        image = (f"&{shared.image}", f"sizeof {shared.image}") if shared.image else ("0", "0")
        place = self.context.source.place(cursors.start_of(shared.cursor))
        return (
            f"{{{quoted(shared.name)}, &{shared.c_name}, sizeof({element}), "
            f"{self.types.layout(kind).block}u, {count}u, {' | '.join(flags) or '0'}, "
            f"_Alignof({element}), {image[0]}, {image[1]}, {quoted(f'{place.file}:{place.line}')}}}"
        )


def calls(value: Cursor) -> bool:
    """Whether an expression calls a function."""
    return cursors.kind_of(value) == Kind.CALL_EXPR or any(map(calls, cursors.children(value)))


def measures_pointer(value: Cursor) -> bool:
    """Whether an expression contains a `sizeof` of something in which a pointer to shared is.

    Clang's pointers are shorter than those of the run time.
    """
    kind = cursors.kind_of(value)
    if kind == Kind.CXX_UNARY_EXPR:
        return any(holds_pointer(cursors.type_of(c)) for c in cursors.children(value))
    if kind is None or not kind.is_expression():
        return False
    return any(map(measures_pointer, cursors.children(value)))


def holds_pointer(kind: Type) -> bool:
    """Whether objects of a type have a pointer to shared in them."""
    plain = cursors.canonical(cursors.ultimate(kind))
    if plain.kind == TypeKind.RECORD:
        return any(holds_pointer(member.type) for member in plain.get_fields())
    return cursors.is_pointer_to_shared(plain)
