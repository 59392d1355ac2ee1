# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a program, and how to write it right."""

from __future__ import annotations

AUTOMATIC = "a shared variable cannot be automatic: declare it static or outside of all functions"
MEMBER = (
    "a member of a structure cannot be shared: declare the whole object shared, or make the member "
    "a pointer to shared"
)
PARAMETER = "a parameter cannot be shared: pass a pointer to shared"
RESULT = "a function cannot return a shared object: return a pointer to shared"
PRIVATE_TO_SHARED = (
    "a pointer to private memory cannot become a pointer to shared: only the address of a shared "
    "object, or what an allocation returned, can"
)
SHARED_TO_PRIVATE = (
    "a pointer to shared becomes a pointer to private memory only by a cast, and only where it has "
    "affinity to MYTHREAD: write the cast"
)
SHARED_TO_NUMBER = (
    "a pointer to shared is no value of this type: write *p for what it points to, or a cast"
)
NO_BIT_ADDRESS = "a bit field has no address"
VOID_BLOCK = (
    "void has no elements that blocks could have: write shared void *, or shared [] void *, or the "
    "type of the elements"
)
NO_PART_ADDRESS = "a part of a shared complex number has no address of its own here"
GENERIC_ARITHMETIC = (
    "a 'shared void *' cannot be counted from: cast it to the type of the elements first"
)
THREADS_IN_BLOCK = (
    "a block size with THREADS needs a number of threads that is known at compile time: compile "
    "with --threads=N, or write shared [*]"
)
POINTER_IN_BLOCK = (
    "a block size cannot be computed from the size of a pointer to shared: write the number"
)
THREADS_IN_STAR = (
    "shared [*] of an array without THREADS in its size needs a number of threads that is known at "
    "compile time: compile with --threads=N"
)
FUNCTION = "a function cannot be shared"
BLOCK_NOT_CONSTANT = "a block size must be an integer constant"
STAR_POINTER = "shared [*] says how an array is laid out: a pointer needs a number, or []"
STAR_SIZES = "arrays of different sizes need a shared [*] declaration each"
FORALL_PARTS = "upc_forall has four parts: upc_forall (start; condition; step; affinity)"
FORALL_RETURN = (
    "return leaves a upc_forall: all threads must finish the loop; set a variable, and return "
    "behind the loop"
)
FORALL_BREAK = (
    "break leaves a upc_forall: all threads must finish the loop; put the condition around the "
    "body instead"
)
FORALL_GOTO = (
    "goto leaves or enters a upc_forall: all threads must do all of the loop; put the condition "
    "around the body instead"
)
FORALL_AFFINITY = (
    "the affinity of a upc_forall must be an integer, a pointer to shared, or continue"
)


STRICT_AND_RELAXED = "an object is either strict or relaxed"
STRICT_PRIVATE = "strict and relaxed say how shared objects are accessed: write shared, too"
COMPARED_WITH_PRIVATE = (
    "a pointer to shared can be compared with a pointer to shared, or with NULL: cast it to a "
    "pointer to private memory if its object has affinity to MYTHREAD"
)


def not_shared(operator: str) -> str:
    """An operand of one of UPC's size operators that is not shared."""
    return f"the operand of {operator} must be a shared object or type"


def size_of_pointer(name: str) -> str:
    """A dimension of a shared array that depends on the size of a pointer to shared."""
    return (
        f"the size of '{name}' cannot be computed from the size of a pointer to shared, or of a "
        "structure with one: allocate it with upc_all_alloc(), or write the number"
    )


def different_blocks(before: object, after: object) -> str:
    """An implicit conversion between layouts."""
    return (
        f"a pointer to '{before}' cannot become a pointer to '{after}': the block sizes differ; "
        "write a cast if that is meant"
    )


def no_size(operator: str) -> str:
    """A size of void or of a function."""
    return f"the operand of {operator} has a type without a size"


def different_order(left: object, right: object) -> str:
    """A subtraction or comparison between layouts."""
    return (
        f"pointers to '{left}' and '{right}' cannot be compared or subtracted: the block sizes "
        "differ"
    )


def threads_twice(name: str) -> str:
    """An array size with THREADS more than once."""
    return f"'{name}': THREADS may be a factor of the size only once"


def threads_no_factor(name: str) -> str:
    """An array size like THREADS + 1."""
    return (
        f"'{name}': while the number of threads is not known at compile time, a size with THREADS "
        "must be a product with THREADS as one factor; or compile with --threads=N"
    )


def no_threads(name: str) -> str:
    """An array without THREADS in its size."""
    return (
        f"'{name}': while the number of threads is not known at compile time, the size of a shared "
        "array must have THREADS as a factor, or its layout be []; or compile with --threads=N"
    )


def threads_in_private(name: str) -> str:
    """`int a[THREADS]` outside of functions, or inside a structure."""
    return (
        f"'{name}': while the number of threads is not known at compile time, only shared arrays "
        "and automatic ones can have THREADS in their size: allocate it in main(), or compile with "
        "--threads=N"
    )


def threads_in_indefinite(name: str) -> str:
    """`shared [] int a[THREADS]`."""
    return (
        f"'{name}': the size of an array that lies on one thread, shared [], cannot contain "
        "THREADS while the number of threads is not known at compile time; or compile with "
        "--threads=N"
    )
