# SPDX-License-Identifier: BSD-3-Clause
"""Makes the Fortran bindings of OpenSHMEM 1.4, the last version that has them.

`shmem.fh` is for old programs, which include it; `shmem.f90` is the module `shmem`. Lines of both
are right in fixed and in free source form.

    make_bindings.py FOLDER"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

LICENCE = "! SPDX-License-Identifier: BSD-3-Clause"
WIDTH = 72
ANY = "type(*), dimension(*)"

CONSTANTS = {
    "shmem_major_version": 1,
    "shmem_minor_version": 6,
    "shmem_max_name_len": 256,
    "shmem_sync_value": 0,
    "shmem_reduce_min_wrkdata_size": 1,
    "shmem_cmp_eq": 0,
    "shmem_cmp_ne": 1,
    "shmem_cmp_gt": 2,
    "shmem_cmp_ge": 3,
    "shmem_cmp_lt": 4,
    "shmem_cmp_le": 5,
}
# C's 32 words of 8 bytes, and room to align them: elements of pSync are default integers.
SYNC_SIZE = 66
SYNC_SIZES = ("", "_barrier", "_bcast", "_collect", "_reduce", "_alltoall", "_alltoalls")
# Of the module only.
C_CONSTANTS = {
    "shmem_thread_single": 0,
    "shmem_thread_funneled": 1,
    "shmem_thread_serialized": 2,
    "shmem_thread_multiple": 3,
    "shmem_signal_set": 0,
    "shmem_signal_add": 1,
}


@dataclass
class Routine:
    """An argument is `NAME`, a buffer of any type, or `NAME: TYPE`."""

    name: str
    arguments: list[str] = field(default_factory=list)
    result: str = ""
    symbol: str = ""  # the name in C; none: the one that compilers make of `name`
    uses: str = ""

    def text(self, bind: bool) -> list[str]:
        """Returns its interface body; with `bind`, names the symbol."""
        names = [argument.split(":")[0] for argument in self.arguments]
        kind = "function" if self.result else "subroutine"
        head = f"{kind} {self.name}({', '.join(names)})"
        if bind:
            head += f" bind(c, name='{self.symbol or self.name + '_'}')"
        lines = wrapped(head)
        if self.uses:
            lines += wrapped(f"use, intrinsic :: iso_c_binding, only: {self.uses}")
            lines += wrapped("implicit none")
        if self.result:
            lines += wrapped(f"{self.result} {self.name}")
        of_type: dict[str, list[str]] = {}
        for argument in self.arguments:
            name, _, type_name = argument.partition(": ")
            of_type.setdefault(type_name or ANY, []).append(name)
        for type_name, alike in of_type.items():
            all_names = ", ".join(alike)
            if type_name == ANY:
                lines += [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {all_names}"]
                lines += [f"!DEC$ ATTRIBUTES NO_ARG_CHECK :: {all_names}"]
                lines += [f"!DIR$ IGNORE_TKR {all_names}"]
            lines += wrapped(f"{type_name} :: {all_names}")
        return [*lines, *wrapped(f"end {kind}")]


def wrapped(statement: str) -> list[str]:
    """A statement that begins in column 7 and is continued in both source forms."""
    lines = []
    indent = " " * 6
    while len(indent) + len(statement) > WIDTH:
        cut = statement.rfind(" ", 0, WIDTH - len(indent)) + 1
        lines.append((indent + statement[:cut]).ljust(WIDTH) + "&")
        indent, statement = "     & ", statement[cut:]
    return [*lines, indent + statement]


PE = "pe: integer"
SET = ["pe_start: integer", "logpe_stride: integer", "pe_size: integer"]


def standard_subroutines() -> list[Routine]:
    """Those with buffers of any type: the interfaces let programs pass each."""
    made = []
    kinds = ["character", "complex", "double", "integer", "logical", "real"]
    names = [f"{kind}_{{}}" for kind in kinds]
    names += ["{}4", "{}8", "{}32", "{}64", "{}128", "{}mem", "{}"]
    moved = ["dest", "source", "nelems: integer", PE]
    strided = ["dest", "source", "dst: integer", "sst: integer", "nelems: integer", PE]
    for name in names:
        for what in ("put", "get"):
            made.append(Routine("shmem_" + name.format(what), moved))
            if name != "{}":
                made.append(Routine("shmem_" + name.format(what) + "_nbi", moved))
            if name not in ("{}mem", "character_{}"):
                made.append(Routine("shmem_" + name.format("i" + what), strided))
    sized = ["4", "8", "32", "64"]
    moved = ["dest", "source", "nelems: integer"]
    made += [
        Routine(f"shmem_broadcast{size}", [*moved, "pe_root: integer", *SET, "psync"])
        for size in sized
    ]
    made += [
        Routine(f"shmem_{what}collect{size}", [*moved, *SET, "psync"])
        for what in ("", "f")
        for size in sized
    ]
    made += [Routine(f"shmem_alltoall{size}", [*moved, *SET, "psync"]) for size in sized[2:]]
    strided = ["dest", "source", "dst: integer", "sst: integer", "nelems: integer"]
    made += [Routine(f"shmem_alltoalls{size}", [*strided, *SET, "psync"]) for size in sized[2:]]
    integers, reals = ["int2", "int4", "int8"], ["real4", "real8", "real16"]
    complexes = ["comp4", "comp8"]
    for names, operations in (
        (integers, ("and", "or", "xor", "max", "min", "sum", "prod")),
        (reals, ("max", "min", "sum", "prod")),
        (complexes, ("sum", "prod")),
    ):
        made += [
            Routine(
                f"shmem_{name}_{operation}_to_all",
                ["dest", "source", "nreduce: integer", *SET, "pwrk", "psync"],
            )
            for name in names
            for operation in operations
        ]
    made.append(Routine("shmem_barrier", [*SET, "psync"]))
    made += [
        Routine(f"shmem_{line}", ["dest"])
        for line in ("set_cache_line_inv", "clear_cache_line_inv", "udcflush_line")
    ]
    return made


def standard_others() -> list[Routine]:
    """The rest: programs may declare the functions themselves, as the standard shows it."""
    made = [
        Routine(name)
        for name in (
            "shmem_init", "shmem_finalize", "shmem_barrier_all", "shmem_fence", "shmem_quiet",
            "shmem_clear_cache_inv", "shmem_set_cache_inv", "shmem_udcflush",
        )
    ]  # fmt: skip
    made.append(Routine("start_pes", ["npes: integer"]))
    made.append(Routine("shmem_global_exit", ["status: integer"]))
    made.append(Routine("shmem_info_get_version", ["major: integer", "minor: integer"]))
    made += [
        Routine(name, [], "integer") for name in ("shmem_my_pe", "shmem_n_pes", "my_pe", "num_pes")
    ]
    made += [Routine(f"shmem_{what}_lock", ["lock: integer"]) for what in ("set", "clear")]
    made.append(Routine("shmem_test_lock", ["lock: integer"], "integer"))
    made.append(Routine("shmem_swap", ["dest: integer", "value: integer", PE], "integer"))
    types = {"int4": "integer*4", "int8": "integer*8", "real4": "real*4", "real8": "real*8"}
    for name, kind in types.items():
        word, value = f"dest: {kind}", f"value: {kind}"
        made.append(Routine(f"shmem_{name}_swap", [word, value, PE], kind))
        made.append(Routine(f"shmem_{name}_set", [word, value, PE]))
        made.append(Routine(f"shmem_{name}_fetch", [f"source: {kind}", PE], kind))
        if name.startswith("real"):
            continue
        made.append(Routine(f"shmem_{name}_cswap", [word, f"cond: {kind}", value, PE], kind))
        made.append(Routine(f"shmem_{name}_fadd", [word, value, PE], kind))
        made.append(Routine(f"shmem_{name}_finc", [word, PE], kind))
        made.append(Routine(f"shmem_{name}_add", [word, value, PE]))
        made.append(Routine(f"shmem_{name}_inc", [word, PE]))
    for name, kind in (("int4_", "integer*4"), ("int8_", "integer*8"), ("", "integer")):
        word, value = f"ivar: {kind}", f"cmp_value: {kind}"
        made.append(Routine(f"shmem_{name}wait", [word, value]))
        made.append(Routine(f"shmem_{name}wait_until", [word, "cmp: integer", value]))
    # The address of a block is a Cray pointer, or an integer of its size.
    made.append(
        Routine("shpalloc", ["addr", "length: integer", "errcode: integer", "abort: integer"])
    )
    made.append(Routine("shpdeallc", ["addr", "errcode: integer", "abort: integer"]))
    made.append(
        Routine("shpclmove", ["addr", "length: integer", "status: integer", "abort: integer"])
    )
    return made


def functions_of_addresses() -> list[Routine]:
    """Those that programs cannot declare, since they take a buffer or return an address."""
    return [
        Routine("shmem_pe_accessible", [PE], "logical"),
        Routine("shmem_addr_accessible", ["addr", PE], "logical"),
        Routine("shmem_ptr", ["dest", PE], "integer*8"),
    ]


SIZE, INT, POINTER = "integer(c_size_t), value", "integer(c_int), value", "type(c_ptr), value"


def newer_functions() -> list[Routine]:
    """Functions of C that the standard's Fortran has not, called as C calls them."""

    def c(name: str, arguments: list[str], result: str = "") -> Routine:
        text = " ".join([result, *arguments])
        kinds = [kind for kind in ("c_int", "c_size_t", "c_int64_t", "c_ptr", "c_long")
                 if f"({kind})" in text]  # fmt: skip
        return Routine(name, arguments, result, name, ", ".join(kinds))

    team, size, hints = f"team: {POINTER}", f"size: {SIZE}", "hints: integer(c_long), value"
    word, signal = "sig_addr", "signal: integer(c_int64_t), value"
    made = [
        c("shmem_init_thread", [f"requested: {INT}", "provided: integer(c_int)"], "integer(c_int)"),
        c("shmem_query_thread", ["provided: integer(c_int)"]),
        c("shmem_query_initialized", ["initialized: integer(c_int)"]),
        c("shmem_malloc", [size], "type(c_ptr)"),
        c("shmem_calloc", [f"count: {SIZE}", size], "type(c_ptr)"),
        c("shmem_align", [f"alignment: {SIZE}", size], "type(c_ptr)"),
        c("shmem_malloc_with_hints", [size, hints], "type(c_ptr)"),
        c("shmem_realloc", [f"ptr: {POINTER}", size], "type(c_ptr)"),
        c("shmem_free", [f"ptr: {POINTER}"]),
        c("shmem_sync_all", []),
        c("shmem_putmem_signal",
          ["dest", "source", f"nelems: {SIZE}", word, signal, f"sig_op: {INT}", f"pe: {INT}"]),
        c("shmem_signal_fetch", [word], "integer(c_int64_t)"),
        c("shmem_signal_wait_until",
          [word, f"cmp: {INT}", "cmp_value: integer(c_int64_t), value"], "integer(c_int64_t)"),
        c("shmem_team_my_pe", [team], "integer(c_int)"),
        c("shmem_team_n_pes", [team], "integer(c_int)"),
        c("shmem_team_translate_pe",
          [f"src_team: {POINTER}", f"src_pe: {INT}", f"dest_team: {POINTER}"], "integer(c_int)"),
        c("shmem_team_split_strided",
          [f"parent_team: {POINTER}", f"start: {INT}", f"stride: {INT}", f"size: {INT}",
           f"config: {POINTER}", "config_mask: integer(c_long), value", "new_team: type(c_ptr)"],
          "integer(c_int)"),
        c("shmem_team_sync", [team], "integer(c_int)"),
        c("shmem_team_destroy", [team]),
    ]  # fmt: skip
    for name in ("team_world", "team_shared"):
        made.append(c(f"shmem_{name}", [], "type(c_ptr)"))
        made[-1].symbol = f"shmem_{name}_handle_"
    moved = [team, "dest", "source", f"nelems: {SIZE}"]
    made.append(c("shmem_broadcastmem", [*moved, f"pe_root: {INT}"], "integer(c_int)"))
    made += [
        c(f"shmem_{what}mem", moved, "integer(c_int)")
        for what in ("collect", "fcollect", "alltoall")
    ]
    made += [
        c(f"shmem_{kind}_{operation}_reduce", moved, "integer(c_int)")
        for kind in ("int32", "int64", "float", "double")
        for operation in ("sum", "prod", "min", "max")
    ]
    return made


def parameters(values: dict[str, int]) -> list[str]:
    """Declares constants."""
    lines = []
    for name, value in values.items():
        lines += wrapped(f"integer {name}") + wrapped(f"parameter ({name} = {value})")
    return lines


def constants() -> list[str]:
    """The constants of the standard's Fortran."""
    values = dict(CONSTANTS)
    values |= {f"shmem{kind}_sync_size": SYNC_SIZE for kind in SYNC_SIZES}
    return [
        *parameters(values),
        *wrapped("character*17 shmem_vendor_string"),
        *wrapped("parameter (shmem_vendor_string = 'Moebius OpenSHMEM')"),
    ]


def interface(routines: list[Routine], bind: bool) -> list[str]:
    """An interface block."""
    lines = wrapped("interface")
    for routine in routines:
        lines += routine.text(bind)
    return [*lines, *wrapped("end interface")]


def include_file() -> str:
    """The text of shmem.fh."""
    lines = [
        LICENCE,
        "!",
        "! The Fortran bindings of OpenSHMEM 1.4, for programs in fixed or free source form.",
        "! The program declares the functions (integer shmem_my_pe), except shmem_ptr,",
        "! shmem_pe_accessible and shmem_addr_accessible.",
        "!",
        *constants(),
    ]
    routines = [*functions_of_addresses(), *standard_subroutines()]
    return "\n".join([*lines, *interface(routines, False), ""])


def module() -> str:
    """The text of shmem.f90."""
    get_name = [
        *wrapped("interface"),
        *wrapped("subroutine shmem_info_get_name(name)"),
        *wrapped("character(len=*) :: name"),
        *wrapped("end subroutine"),
        *wrapped("end interface"),
    ]
    routines = [*functions_of_addresses(), *standard_subroutines(), *standard_others()]
    lines = [
        LICENCE,
        "!",
        "! The Fortran bindings of OpenSHMEM 1.4 with explicit interfaces, and functions of later",
        "! versions, which are called as in C (docs/fronts/shmem.md).",
        "!",
        *wrapped("module shmem"),
        *wrapped("implicit none"),
        *constants(),
        *parameters(C_CONSTANTS),
        *interface([*routines, *newer_functions()], True),
        *get_name,
        *wrapped("end module shmem"),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Writes both."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shmem.fh").write_text(include_file(), encoding="utf-8")
    (folder / "shmem.f90").write_text(module(), encoding="utf-8")


main()
