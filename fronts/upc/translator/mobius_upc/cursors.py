# SPDX-License-Identifier: BSD-3-Clause
"""The little of libclang that the translator uses, with types, and faster than `clang.cindex`.

Extents, kinds and children are asked often; each cursor keeps what it was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_int
from typing import Any

try:
    from clang import cindex
except ImportError as missing:  # the driver says what to install
    raise ImportError(
        "the package 'libclang' is missing: pip install libclang==18.1.1"
    ) from missing

Cursor = Any  # clang.cindex.Cursor; the package brings no types
Type = Any  # clang.cindex.Type
Index = Any
Tree = Any  # clang.cindex.TranslationUnit
Diagnostic = Any
NodeKind = Any  # clang.cindex.CursorKind
Library = Any
Kind = cindex.CursorKind
TypeKind = cindex.TypeKind
ERROR = cindex.Diagnostic.Error
ATTRIBUTED = TypeKind(163)  # a type with an address space; cindex 18 does not name it
INCLUDE_ATTRIBUTED_TYPES = 0x1000  # else libclang forgets qualifiers beside an address space

ARRAYS = (
    TypeKind.CONSTANTARRAY,
    TypeKind.INCOMPLETEARRAY,
    TypeKind.VARIABLEARRAY,
    TypeKind.DEPENDENTSIZEDARRAY,
)
DECLARATORS = (Kind.VAR_DECL, Kind.FIELD_DECL, Kind.PARM_DECL, Kind.TYPEDEF_DECL)


def library() -> Library:
    """The loaded libclang, with the functions that cindex 18 does not name."""
    loaded = cindex.conf.lib
    if not getattr(loaded, "mobius_ready", False):
        for name in ("clang_getCursorBinaryOperatorKind", "clang_getCursorUnaryOperatorKind"):
            function = getattr(loaded, name)
            function.argtypes = [cindex.Cursor]
            function.restype = c_int
        for name in ("clang_getBinaryOperatorKindSpelling", "clang_getUnaryOperatorKindSpelling"):
            function = getattr(loaded, name)
            function.argtypes = [c_int]
            function.restype = cindex._CXString
            function.errcheck = cindex._CXString.from_result
        loaded.clang_Type_getModifiedType.argtypes = [cindex.Type]
        loaded.clang_Type_getModifiedType.restype = cindex.Type
        loaded.clang_Type_getModifiedType.errcheck = cindex.Type.from_result
        loaded.mobius_ready = True
    return loaded


def new_index() -> Index:
    """A set of translation units."""
    return cindex.Index.create()


def parse(index: Index, name: str, text: str, arguments: list[str]) -> Tree:
    """Parses a text of Latin-1 characters as the file `name`."""
    # cindex encodes texts as UTF-8, but takes what has a read().
    return cindex.TranslationUnit.from_source(
        name,
        arguments,
        unsaved_files=[(name, _Bytes(text))],
        options=INCLUDE_ATTRIBUTED_TYPES,
        index=index,
    )


class _Bytes:
    """A file for cindex whose content is bytes."""

    def __init__(self, text: str) -> None:
        self.content = text.encode("latin-1")

    def read(self) -> bytes:
        """All of it."""
        return self.content


def children(cursor: Cursor) -> list[Cursor]:
    """The children of a cursor, kept."""
    kept: list[Cursor] | None = getattr(cursor, "mobius_children", None)
    if kept is None:
        kept = list(cursor.get_children())
        cursor.mobius_children = kept
    return kept


def extent(cursor: Cursor) -> tuple[int, int]:
    """Start and end offset of a cursor, kept."""
    kept: tuple[int, int] | None = getattr(cursor, "mobius_extent", None)
    if kept is None:
        span = cursor.extent
        kept = (span.start.offset, span.end.offset)
        cursor.mobius_extent = kept
    return kept


def start_of(cursor: Cursor) -> int:
    """Where a cursor begins."""
    return extent(cursor)[0]


def end_of(cursor: Cursor) -> int:
    """Where a cursor ends."""
    return extent(cursor)[1]


def name_at(cursor: Cursor) -> int:
    """Where a declaration has its name: what identifies it.

    Its extent does not: of a later declarator it begins with the name in the tree, and with the
    specifiers behind a reference.
    """
    kept: int | None = getattr(cursor, "mobius_name_at", None)
    if kept is None:
        kept = int(cursor.location.offset)
        cursor.mobius_name_at = kept
    return kept


def kind_of(cursor: Cursor) -> NodeKind:
    """The kind; None for one that this cindex does not know."""
    try:
        return cursor.kind
    except ValueError:
        return None


def type_of(cursor: Cursor) -> Type:
    """The type of an expression or a declaration, kept."""
    kept = getattr(cursor, "mobius_type", None)
    if kept is None:
        kept = cursor.type
        cursor.mobius_type = kept
    return kept


def canonical(kind: Type) -> Type:
    """A type without names, kept."""
    kept = getattr(kind, "mobius_canonical", None)
    if kept is None:
        kept = kind.get_canonical()
        kind.mobius_canonical = kept
    return kept


def without_attribute(kind: Type) -> Type:
    """A type without the address space that it names itself."""
    while kind.kind == ATTRIBUTED:
        kind = library().clang_Type_getModifiedType(kind)
    return kind


def space_of(kind: Type) -> int:
    """The address space of a type, of an array that of its elements; 0: not shared."""
    kept: int | None = getattr(kind, "mobius_space", None)
    if kept is None:
        plain = canonical(kind)
        kept = 0 if plain.kind == TypeKind.INVALID else int(plain.get_address_space())
        kind.mobius_space = kept
    return kept


def is_pointer_to_shared(kind: Type) -> bool:
    """Whether values of a type are pointers to shared."""
    kept: bool | None = getattr(kind, "mobius_shared_pointer", None)
    if kept is None:
        plain = canonical(kind)
        kept = plain.kind == TypeKind.POINTER and space_of(plain.get_pointee()) != 0
        kind.mobius_shared_pointer = kept
    return kept


def pointee(kind: Type) -> Type:
    """What a pointer type points to, with the names that the source uses."""
    plain = without_attribute(kind)
    if plain.kind == TypeKind.POINTER:
        return plain.get_pointee()
    return canonical(kind).get_pointee()


def is_array(kind: Type) -> bool:
    """Whether a type is an array."""
    return canonical(kind).kind in ARRAYS


def element(kind: Type) -> Type:
    """The element type of an array type."""
    plain = without_attribute(kind)
    if plain.kind in ARRAYS:
        return plain.element_type
    return canonical(kind).element_type


def dimensions(kind: Type) -> list[int]:
    """The dimensions of an array type; -1: not known here. Empty: no array."""
    result: list[int] = []
    while is_array(kind):
        plain = canonical(kind)
        known = plain.kind == TypeKind.CONSTANTARRAY
        result.append(int(plain.element_count) if known else -1)
        kind = element(kind)
    return result


def ultimate(kind: Type) -> Type:
    """The type of the elements of an array of any number of dimensions."""
    while is_array(kind):
        kind = element(kind)
    return kind


def declared_type(cursor: Cursor) -> Type:
    """The type of a declaration; of a typedef, what it names."""
    if cursor.kind == Kind.TYPEDEF_DECL:
        return cursor.underlying_typedef_type
    return type_of(cursor)


def binary_operator(cursor: Cursor) -> str:
    """`+`, `=`, `+=`, `,` … of a binary operation."""
    loaded = library()
    return str(
        loaded.clang_getBinaryOperatorKindSpelling(loaded.clang_getCursorBinaryOperatorKind(cursor))
    )


def unary_operator(cursor: Cursor) -> tuple[str, bool]:
    """`*`, `&`, `++` … of a unary operation, and whether it stands behind its operand."""
    loaded = library()
    number = loaded.clang_getCursorUnaryOperatorKind(cursor)
    return str(loaded.clang_getUnaryOperatorKindSpelling(number)), number in (1, 2)


def walk_declarations(cursor: Cursor) -> Iterator[Cursor]:
    """Every declaration of a variable, member, parameter or type, in functions, too."""
    pending = [cursor]
    while pending:
        current = pending.pop()
        for child in children(current):
            if kind_of(child) in DECLARATORS:
                yield child
            pending.append(child)
