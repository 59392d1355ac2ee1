# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the run time in translated code (include/mobius_upc/runtime.h).

No other module names them.
"""

from __future__ import annotations

from . import cursors
from .cursors import Type, TypeKind

POINTER = "mob_upc_ptr_t"
THREADS = "mob_upc_threads()"
MYTHREAD = "mob_upc_mythread_"
NULL = "((mob_upc_ptr_t){0, 0, 0})"
NULL_INITIALISER = "{0, 0, 0}"
MAIN = "mob_upc_main"
FORALL_DEPTH = "mob_upc_forall_depth_"
OBJECT = "mob_upc_object_t"
TIMES_THREADS = "MOB_UPC_TIMES_THREADS"
EXTERN = "MOB_UPC_EXTERN"
STATIC = "MOB_UPC_STATIC"
COMMON = "MOB_UPC_COMMON"

# Statement of UPC → the call without a value, the call with one; `where` follows.
STATEMENTS = {
    "__upc_barrier": ("mob_upc_barrier", "mob_upc_barrier_value"),
    "__upc_notify": ("mob_upc_notify", "mob_upc_notify_value"),
    "__upc_wait": ("mob_upc_wait", "mob_upc_wait_value"),
    "__upc_fence": ("mob_upc_fence", "mob_upc_fence"),
}

SCALARS = {
    TypeKind.BOOL: "bool",
    TypeKind.CHAR_S: "char",
    TypeKind.CHAR_U: "char",
    TypeKind.SCHAR: "schar",
    TypeKind.UCHAR: "uchar",
    TypeKind.SHORT: "short",
    TypeKind.USHORT: "ushort",
    TypeKind.INT: "int",
    TypeKind.UINT: "uint",
    TypeKind.LONG: "long",
    TypeKind.ULONG: "ulong",
    TypeKind.LONGLONG: "llong",
    TypeKind.ULONGLONG: "ullong",
    TypeKind.FLOAT: "float",
    TypeKind.DOUBLE: "double",
    TypeKind.LONGDOUBLE: "ldouble",
    TypeKind.INT128: "int128",
    TypeKind.UINT128: "uint128",
    TypeKind.ENUM: "uint",
}
COMPLEX = {TypeKind.FLOAT: "cfloat", TypeKind.DOUBLE: "cdouble", TypeKind.LONGDOUBLE: "cldouble"}
CLASSES = {0: "indefinite", 1: "cyclic"}


def scalar_name(kind: Type) -> str:
    """The run time's name of a scalar type; "": it has none."""
    if cursors.is_pointer_to_shared(kind):
        return "shared"
    plain = cursors.canonical(kind)
    if plain.kind == TypeKind.POINTER:
        return "pointer"
    if plain.kind == TypeKind.ENUM and plain.get_size() != 4:
        return ""
    if plain.kind == TypeKind.COMPLEX:
        return COMPLEX.get(plain.element_type.kind, "")
    return SCALARS.get(plain.kind, "")


def getter(kind: Type, strict: bool) -> str:
    """The function that reads a scalar; "": none."""
    name = scalar_name(kind)
    return f"mob_upc_get_{'strict_' if strict else ''}{name}" if name else ""


def putter(kind: Type, strict: bool) -> str:
    """The function that writes a scalar; "": none."""
    name = scalar_name(kind)
    return f"mob_upc_put_{'strict_' if strict else ''}{name}" if name else ""


def typed(text: str, c_type: str, kind: Type) -> str:
    """A read value with its type in the program, where the run time's differs."""
    plain = cursors.canonical(kind)
    if plain.kind in (TypeKind.ENUM, TypeKind.POINTER) and not cursors.is_pointer_to_shared(kind):
        return f"(({c_type}){text})"
    return text


def get_bytes(to: str, pointer: str, count: str, strict: bool) -> str:
    """Reads bytes."""
    return f"mob_upc_get_{'strict_' if strict else ''}bytes({to}, {pointer}, {count})"


def put_bytes(pointer: str, data: str, count: str, strict: bool) -> str:
    """Writes bytes."""
    return f"mob_upc_put_{'strict_' if strict else ''}bytes({pointer}, {data}, {count})"


def layout_class(block: int, verb: str, arguments: list[str]) -> str:
    """A call of one of the three functions for classes of layout."""
    if block > 1:
        arguments = [*arguments, f"{block}u"]
    return f"mob_upc_{verb}_{CLASSES.get(block, 'blocked')}({', '.join(arguments)})"


def element(offset: str, index: str, size: str, block: int) -> str:
    """An element of an array with static storage."""
    return layout_class(block, "element", [offset, index, size])


def add(pointer: str, count: str, size: str, block: int) -> str:
    """`pointer + count`."""
    return layout_class(block, "add", [pointer, count, size])


def difference(left: str, right: str, size: str, block: int) -> str:
    """`left - right`."""
    return layout_class(block, "subtract", [left, right, size])


def object_pointer(offset: str) -> str:
    """A pointer to the start of an object with static storage."""
    return f"mob_upc_pointer({offset}, 0, 0)"


def member(pointer: str, offset: str) -> str:
    """A member of a record."""
    return f"mob_upc_member({pointer}, {offset})"


def is_set(pointer: str) -> str:
    """Whether a pointer is not null."""
    return f"(!mob_upc_is_null({pointer}))"


def equal(left: str, right: str) -> str:
    """Whether two pointers point to the same object."""
    return f"mob_upc_equal({left}, {right})"


def reset_phase(pointer: str) -> str:
    """The pointer with phase 0."""
    return f"mob_upc_resetphase({pointer})"


def to_private(pointer: str) -> str:
    """The address of an object of this thread."""
    return f"mob_upc_to_private({pointer})"


def to_integer(pointer: str) -> str:
    """A pointer as a number."""
    return f"mob_upc_addrfield({pointer})"


def from_integer(value: str) -> str:
    """A number as a pointer: an address in the caller's own area."""
    return f"mob_upc_pointer((uint64_t)({value}) - mob_upc_origins_[{MYTHREAD}], {MYTHREAD}, 0)"


def local_address(offset: str) -> str:
    """Where this thread's part of an object is."""
    return f"mob_upc_local({offset})"


def is_mine(pointer: str) -> str:
    """Whether an object has affinity to this thread."""
    return f"mob_upc_is_mine({pointer})"


def first_row(index: str) -> str:
    """The local number of this thread's first row that is not before an index."""
    return f"mob_upc_first_row({index})"


def first_block(index: str, rows: int) -> str:
    """The first index of this thread's first block that is not before an index."""
    return f"mob_upc_first_block({index}, {rows}u)"


def block_distance(first: str, rows: int) -> str:
    """How far the index in the whole array is ahead of that in this thread's part."""
    return f"mob_upc_block_distance({first}, {rows}u)"


def fence() -> str:
    """`upc_fence`."""
    return "mob_upc_fence()"


def unit(name: str, threads: int, file: str, objects: str, count: int, set_up: str) -> str:
    """What a file tells the library, and the constructor that registers it."""
    return (
        f"static mob_upc_unit_t {name} = {{MOB_UPC_UNIT_VERSION, {threads}, {file}, {objects}, "
        f"{count}, {set_up}, 0}};"
        "\n__attribute__((constructor)) static void __upc_join(void) "
        f"{{ mob_upc_register(&{name}); }}"
    )


def is_my_turn(number: str) -> str:
    """Whether this thread takes an iteration with a number as affinity."""
    return f"mob_upc_is_my_turn({number})"


def checked(pointer: str, size: str, where: str) -> str:
    """The pointer, after a check that an object of a size is there."""
    return f"mob_upc_checked({pointer}, {size}, {where})"


def checked_index(index: str, count: str, name: str, where: str) -> str:
    """The index, after a check that it is one of an array."""
    return f"mob_upc_checked_index({index}, {count}, {name}, {where})"


def checked_cast(pointer: str, where: str) -> str:
    """The pointer, after a check that its object is this thread's."""
    return f"mob_upc_checked_cast({pointer}, {where})"


def get_bits(pointer: str, first: int, width: int, is_signed: bool) -> str:
    """Reads a bit field."""
    word = "signed_bits" if is_signed else "bits"
    return f"mob_upc_get_{word}({pointer}, {first}, {width})"


def put_bits(pointer: str, first: int, width: int, value: str) -> str:
    """Writes a bit field."""
    return f"mob_upc_put_bits({pointer}, {first}, {width}, (uint64_t)({value}))"
