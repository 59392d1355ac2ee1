# SPDX-License-Identifier: BSD-3-Clause
"""Types of Clang's tree as types of the C that is written.

A shared object becomes what one thread holds of it, a pointer to shared the run time's structure.
"""

from __future__ import annotations

import re

from . import cursors
from .cursors import Cursor, Kind, Type, TypeKind
from .frontend import ADDRESS_SPACE
from .layout import THREADS_STAND_IN, Layout, LayoutTable
from .runtime import POINTER, THREADS

QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict)\b")


def is_involved(kind: Type) -> bool:
    """Whether a declarator of this type cannot be written as the source has it.

    A record is not looked into: its definition is rewritten where it stands.
    """
    kept: bool | None = getattr(kind, "mobius_involved", None)
    if kept is None:
        kept = _is_involved(kind)
        kind.mobius_involved = kept
    return kept


def _is_involved(kind: Type) -> bool:
    if cursors.space_of(kind):
        return True
    plain = cursors.canonical(kind)
    if plain.kind == TypeKind.POINTER:
        return is_involved(plain.get_pointee())
    if plain.kind in cursors.ARRAYS:
        return is_involved(plain.element_type)
    if plain.kind == TypeKind.FUNCTIONPROTO:
        return is_involved(plain.get_result()) or any(map(is_involved, plain.argument_types()))
    if plain.kind == TypeKind.FUNCTIONNOPROTO:
        return is_involved(plain.get_result())
    return False


def count_text(count: int, threads: int | None) -> str:
    """The text of a dimension: with the run time's number of threads if it contains THREADS."""
    if count < 0:
        return ""
    if threads is None and count and count % THREADS_STAND_IN == 0:
        factor = count // THREADS_STAND_IN
        return THREADS if factor == 1 else f"{factor}*{THREADS}"
    return str(count)


class TypeWriter:
    """Writes types and declarators of one translation unit."""

    def __init__(self, layouts: LayoutTable, threads: int | None) -> None:
        self.layouts = layouts
        self.threads = threads
        self.tags: dict[int, str] = {}  # start of an unnamed record → the tag it was given

    def declare(self, kind: Type, name: str, sizes: list[str] | None = None) -> str:
        """A declarator with its specifiers: `int *name[4]`.

        `sizes` are the texts of dimensions that only run time knows, from the outermost.
        """
        base, declarator = self.parts(kind, name, sizes)
        return f"{base} {declarator}" if declarator else base

    def parts(self, kind: Type, name: str, sizes: list[str] | None = None) -> tuple[str, str]:
        """Specifiers and declarator of a declaration."""
        if not cursors.is_pointer_to_shared(kind):
            kind = cursors.without_attribute(kind)
        if kind.kind == TypeKind.ELABORATED:
            declaration = kind.get_declaration()
            if declaration.kind == Kind.TYPEDEF_DECL:
                return self.named(kind, declaration), name
            return self.base(kind), name
        if cursors.is_pointer_to_shared(kind):
            return POINTER + self.own_qualifiers(kind), name
        plain = kind if kind.kind in STRUCTURED else cursors.canonical(kind)
        if plain.kind == TypeKind.POINTER:
            return self.pointer_parts(plain, name, sizes)
        if plain.kind in cursors.ARRAYS:
            return self.array_parts(plain, name, list(sizes or []))
        if plain.kind in FUNCTIONS:
            return self.parts(plain.get_result(), f"{name}({self.parameters(plain)})", sizes)
        return self.base(plain), name

    def pointer_parts(self, kind: Type, name: str, sizes: list[str] | None) -> tuple[str, str]:
        """As parts(), of a pointer to something private."""
        target = cursors.without_attribute(kind.get_pointee())
        qualifiers = self.own_qualifiers(kind)
        inner = f"*{qualifiers} {name}".rstrip() if qualifiers else f"*{name}"
        plain = cursors.canonical(target).kind
        if plain in (*cursors.ARRAYS, *FUNCTIONS) and target.kind != TypeKind.ELABORATED:
            inner = f"({inner})"
        return self.parts(target, inner, sizes)

    def array_parts(self, kind: Type, name: str, sizes: list[str]) -> tuple[str, str]:
        """As parts(), of an array."""
        size = ""
        if kind.kind == TypeKind.CONSTANTARRAY:
            size = count_text(int(kind.element_count), self.threads)
        elif kind.kind == TypeKind.VARIABLEARRAY and sizes:
            size = sizes.pop(0)
        return self.parts(kind.element_type, f"{name}[{size}]", sizes)

    def parameters(self, kind: Type) -> str:
        """The parameter list of a function type."""
        if kind.kind != TypeKind.FUNCTIONPROTO:
            return ""
        texts = [self.declare(entry, "") for entry in kind.argument_types()]
        if kind.is_function_variadic():
            texts.append("...")
        return ", ".join(texts) or "void"

    def named(self, kind: Type, declaration: Cursor) -> str:
        """A typedef's name with the qualifiers that stand beside it."""
        found = QUALIFIERS.findall(self.without_spaces(kind.spelling))
        if cursors.space_of(kind):
            found = [entry for entry in found if entry != "volatile"]
        return " ".join([*found, declaration.spelling])

    def own_qualifiers(self, kind: Type) -> str:
        """`const`, `volatile` and `restrict` of a pointer itself."""
        text = ""
        if kind.is_const_qualified():
            text += " const"
        if kind.is_volatile_qualified() and not cursors.space_of(kind):
            text += " volatile"
        if kind.is_restrict_qualified() and not cursors.is_pointer_to_shared(kind):
            text += " restrict"
        return text

    def base(self, kind: Type) -> str:
        """A type without declarators: a number, a record, an enumeration."""
        kind = cursors.without_attribute(kind)
        plain = cursors.canonical(kind)
        if plain.kind in (TypeKind.RECORD, TypeKind.ENUM):
            declaration = plain.get_declaration()
            text = declaration.spelling
            if not text or "(" in text:
                if plain.kind == TypeKind.ENUM:
                    return str(declaration.enum_type.spelling)
                word = {Kind.UNION_DECL: "union"}.get(declaration.kind, "struct")
                at = cursors.start_of(declaration)
                tag = self.tags.setdefault(at, f"__upc_tag_{len(self.tags)}")
                text = f"{word} {tag}"
                return ("const " if plain.is_const_qualified() else "") + text
        text = self.without_spaces(kind.spelling)
        if "typeof" in text or kind.kind == TypeKind.UNEXPOSED:
            text = self.without_spaces(plain.spelling)
        if cursors.space_of(kind):
            text = re.sub(r"\bvolatile\b", "", text)
        return " ".join(text.split())

    @staticmethod
    def without_spaces(text: str) -> str:
        """A spelling of Clang without address spaces."""
        return ADDRESS_SPACE.sub("", text).strip()

    # Shared types

    def plain_type(self, kind: Type) -> str:
        """The unqualified C type of an object: what a variable that holds its value has."""
        if cursors.is_pointer_to_shared(kind):
            return POINTER
        text = self.declare(kind, "")
        if not cursors.is_array(kind) and cursors.canonical(kind).kind != TypeKind.POINTER:
            text = re.sub(r"\b(?:const|volatile)\b ?", "", text)
        text = re.sub(r"(\*) ?(?:const|volatile|restrict)$", r"\1", text).strip()
        # So that a name can follow.
        return f"__typeof__({text})" if text.endswith((")", "]")) else text

    def layout(self, kind: Type) -> Layout:
        """The layout of a shared type."""
        layout = self.layouts.layout(cursors.space_of(kind))
        if cursors.canonical(kind).kind == TypeKind.VOID:
            return Layout(layout.block, layout.relaxed, generic=True)
        return layout

    def elements(self, kind: Type) -> str:
        """How many ultimate elements an object of a type has, as C text; '1' for no array."""
        factors = [count_text(count, self.threads) for count in cursors.dimensions(kind)]
        factors = [factor for factor in factors if factor not in ("", "1")]
        return "*".join(factors) if factors else "1"

    def element_size(self, kind: Type) -> str:
        """The size of the ultimate elements, as C text."""
        last = cursors.ultimate(kind)
        if cursors.canonical(last).kind == TypeKind.VOID:
            return "1"
        return f"sizeof({self.plain_type(last)})"


FUNCTIONS = (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO)
STRUCTURED = (TypeKind.POINTER, *cursors.ARRAYS, *FUNCTIONS)
