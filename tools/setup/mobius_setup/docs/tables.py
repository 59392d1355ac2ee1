# SPDX-License-Identifier: BSD-3-Clause
"""The tables of recorded figures, by the names that pages call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from mobius_setup.docs import application_tables, cray_x1, dynamic
from mobius_setup.docs.markdown import NONE, count_text, ratio_text, table, time_text
from mobius_setup.docs.recording import FOLDER, DocsError, Figure, Recording, read

_PEERS: Final = ("openmpi", "mpich")


def _instructions(of: Recording) -> str:
    rows = []
    for label, name, loop in (
        ("`mob_put8`, `mob_put4`", "put8", "loop8"),
        ("`mob_put2`, `mob_put1`", "put2", None),
        ("`mob_get8` … `mob_get1`", "get8", "loop_get8"),
        ("`mob_fetch_add8`, `mob_swap8` and the like", "fetch_add8", "loop_add8"),
        ("`mob_compare_swap8`", "compare_swap8", "loop_compare_swap8"),
        ("`mob_flush`, `mob_flush_all`", "flush", None),
        ("`mob_fence`", "fence", None),
        ("`mob_put_nbi`, `mob_get_nbi` that continue a transfer to another host", "put_nbi", None),
    ):
        alone = of.need(name)
        in_loop = of.find(loop) if loop else None
        rows.append(
            [
                label,
                str(alone["instructions"]),
                str(alone.get("branches", NONE)),
                str(in_loop["instructions"]) if in_loop else NONE,
            ]
        )
    head = (
        "call", "instructions to the return", "conditional branches",
        "per turn of a loop, which has 3 itself",
    )  # fmt: skip
    return table(head, rows, of.compiler())


def _one_host(of: Recording) -> str:
    rows = []
    for label, key, limit in (
        ("`mob_put8` in a loop", "put8/mob_put8", "store"),
        ("`mob_get8` in a loop", "get8/mob_get8", "load"),
        ("`mob_put` of 8 bytes in a loop", "put8/mob_put (any size)", "store"),
        ("`mob_put8` + `mob_flush`", "put8_flush/mob_put8 + mob_flush", "store and full fence"),
        ("`mob_put8` until a polling peer sees it", "one_way/mob_put8, two processes",
         "two threads exchange a cache line"),
        ("`mob_fetch_add8`", "fetch_add8/mob_fetch_add8", "the atomic instruction"),
        ("put of 4 KiB", "copy_4k/mob_put", "memcpy"),
        ("put of 64 KiB", "copy_64k/mob_put", "memcpy"),
        ("put of 4 MiB", "copy_4m/mob_put", "memcpy"),
        ("get of 4 MiB", "copy_4m/mob_get", "memcpy"),
        ("put of 128 rows of 512 bytes", "strided_512_1024/mob_put_strided", "128 calls of memcpy"),
        ("128 rows of 512 bytes of doubles accumulated", "accumulate_rows/mob_accumulate_strided",
         "plain loops"),
        ("64 KiB of 32-bit integers accumulated", "accumulate_integers/mob_accumulate",
         "plain loop"),
        ("barrier of 2", "barrier/mob_barrier", "two flags"),
        ("`mob_lock` + `mob_unlock`", "lock/mob_lock", "pthread mutex"),
        ("exclusive access, locked and unlocked", "lock/mob_access_lock, exclusive",
         "pthread mutex"),
        ("message of 8 bytes to a polling peer", "message_8/mob_message_send",
         "two threads exchange two cache lines"),
        ("message and its reply, target computes", "message_wake/target computes",
         "two wake-ups by a futex"),
        ("exposed memory: put of 8 bytes, target computes", "exposed_put8/mob_put, target computes",
         "`process_vm_writev`"),
        ("remapped memory: put of 8 bytes", "moved_put8/mob_put, moved", "the same, allocated"),
    ):  # fmt: skip
        figure = of.need(key)
        rows.append([label, time_text(figure["ns"]), ratio_text(figure["ratio"]), limit])
    return table(("operation", "time", "ratio", "limit"), rows, of.source())


def _labels(of: Recording, libraries: Sequence[str]) -> list[str]:
    return [str((of.find(f"label {name}") or {"label": name})["label"]) for name in libraries]


def _best(of: Recording, library: str, ends: Sequence[str]) -> Figure | None:
    found = [figure for end in ends if (figure := of.find(f"{library} {end}")) is not None]
    return min(found, key=lambda figure: float(figure["ns"])) if found else None


def _beside(
    of: Recording, rows: Iterable[tuple[str, str | None, Sequence[str]]], libraries: Sequence[str]
) -> str:
    """Rows of (label, Möbius' cell, the others' cells, of which the fastest counts)."""
    lines = []
    for label, ours, theirs in rows:
        own = of.need(f"mobius {ours}") if ours else None
        others = [_best(of, library, theirs) for library in libraries]
        times = [time_text(one["ns"]) if one else NONE for one in others]
        least = min((float(one["ns"]) for one in others if one), default=0.0)
        ratio = ratio_text(own["ns"] / least) if own and least else NONE
        lines.append([label, time_text(own["ns"]) if own else NONE, *times, ratio])
    head = ("operation", *_labels(of, ("mobius", *libraries)), "ratio to the faster")
    return table(head, lines, of.source())


def _completion(label: str, operation: str, memory: str, size: int) -> tuple[str, str, list[str]]:
    cell = f"completion:{operation}:flush:{memory} {size}"
    locked = f"completion:{operation}:lock:{memory} {size}"
    return label, cell, [cell, locked]


def _sync(label: str, sync: str, memory: str) -> tuple[str, str, list[str]]:
    cell = f"sync-cost:put:{sync}:{memory} 4"
    return label, cell, [cell]


def _beside_mpi(of: Recording) -> str:
    messages = ["sync-cost:sendrecv:none:local 4", "sync-cost:isendrecv:none:local 4"]
    rows: list[tuple[str, str | None, Sequence[str]]] = [
        _completion("put of 8 bytes, complete", "put", "allocate", 8),
        _completion("get of 8 bytes", "get", "allocate", 8),
        _completion("put of 4 KiB, complete", "put", "allocate", 4096),
        _completion("put of 64 KiB, complete", "put", "allocate", 65536),
        _completion("put of 1 MiB, complete", "put", "allocate", 1 << 20),
        _sync("put of 4 bytes until both know: flush", "flush", "allocate"),
        _sync("the same: fence", "fence", "allocate"),
        _sync("the same: post, start, complete, wait", "pscw", "allocate"),
        _sync("the same: exclusive lock", "lockx", "allocate"),
        _completion("exposed: put of 8 bytes, complete", "put", "create", 8),
        _completion("exposed: get of 8 bytes", "get", "create", 8),
        _completion("exposed: put of 64 KiB, complete", "put", "create", 65536),
        _completion("exposed: put of 1 MiB, complete", "put", "create", 1 << 20),
        _sync("exposed: put of 4 bytes until both know: flush", "flush", "create"),
        _sync("exposed: the same: fence", "fence", "create"),
        ("send and receive of 4 bytes, one way", None, messages),
    ]
    return _beside(of, rows, _PEERS)


def _readme(of: Recording) -> str:
    rows = [
        _completion("put of 8 bytes", "put", "allocate", 8),
        _completion("get of 8 bytes", "get", "allocate", 8),
        _completion("put of 64 KiB", "put", "allocate", 65536),
        _completion("put of 8 bytes to `malloc()` memory", "put", "create", 8),
        _sync("put of 4 bytes, and the target knows (epochs)", "pscw", "allocate"),
    ]
    return _beside(of, rows, _PEERS)


def _lapi_memory(of: Recording) -> str:
    lines = []
    for label, library, own, other in (
        ("LAPI on Möbius", "lapi", "allocate", "create"),
        ("Open MPI", "openmpi", "allocate", "create"),
        ("MPICH", "mpich", "allocate", "create"),
    ):
        times = []
        for memory in (own, other):
            ends = [f"completion:put:{sync}:{memory} 8" for sync in ("flush", "lock")]
            figure = _best(of, library, ends)
            times.append(time_text(figure["ns"]) if figure else NONE)
        lines.append([_labels(of, [library])[0] or label, *times])
    head = ("library", "its own memory, or static variables", "`malloc()` memory")
    return table(head, lines, of.source())


def _beside_native(of: Recording, front: str, operation: str) -> str:
    lines = [
        [name, time_text(one["native_ns"]), time_text(one["ns"]), ratio_text(one["ratio"])]
        for name, one in of.figures.items()
    ]
    return table((operation, "native", front, "ratio"), lines, of.source())


_SHMEM_COLUMNS: Final = {
    "bare_ns": "bare machine",
    "ns": "Möbius",
    "peer_ns": "the machine's `oshcc`",
    "sos_ns": "Sandia OpenSHMEM",
}


def _shmem(of: Recording) -> str:
    columns = {
        key: title
        for key, title in _SHMEM_COLUMNS.items()
        if any(key in one for one in of.figures.values())
    }
    lines = [
        [name, *(time_text(one[key]) if key in one else NONE for key in columns)]
        for name, one in of.figures.items()
    ]
    return table(("operation", *columns.values()), lines, of.source())


def _mpi(of: Recording) -> str:
    rows = []
    names = dict.fromkeys(key.partition(" ")[2] for key in of.figures)
    for name in names:
        row = [name]
        for library in _PEERS:
            own, fronted = of.find(f"{library} {name}"), of.find(f"{library}+mobius {name}")
            row += [time_text(one["ns"]) if one else NONE for one in (own, fronted)]
            row.append(ratio_text(fronted["ns"] / own["ns"]) if own and fronted else NONE)
        rows.append(row)
    head = ["memory: operation"]
    for label in ("Open MPI", "MPICH"):
        head += [label, "with the front", "ratio"]
    return table(head, rows, of.source())


def _armci(of: Recording) -> str:
    lines = []
    libraries = ("armci", *_PEERS)
    square = 512 << 10
    for label, cell in (
        ("put of 8 bytes and fence", "protocols:put:flush:allocate:type=double 8"),
        ("get of 8 bytes", "protocols:get:flush:allocate:type=double 8"),
        ("get of 512 KiB", f"protocols:get:flush:allocate:type=double {square}"),
        ("get of a square of 512 KiB", f"protocols:get:flush:allocate:type=patch {square}"),
        ("accumulate of 8 bytes and fence", "protocols:accumulate:flush:allocate:type=double 8"),
        ("accumulate of 512 KiB and fence",
         f"protocols:accumulate:flush:allocate:type=double {square}"),
        ("accumulate of a square of 512 KiB and fence",
         f"protocols:accumulate:flush:allocate:type=patch {square}"),
        ("read-modify-write", "protocols:fetch_op:flush:allocate:type=int 4"),
    ):  # fmt: skip
        figures = [of.find(f"{library} {cell}") for library in libraries]
        lines.append([label, *(time_text(one["ns"]) if one else NONE for one in figures)])
    return table(("operation", *_labels(of, libraries)), lines, of.source())


def _between_hosts(of: Recording) -> str:
    rows = []
    for label, name in (
        ("put of 8 bytes, complete", "put"),
        ("get of 8 bytes", "get"),
        ("fetch-and-add", "fetch-add"),
        ("put of 8 bytes until a polling target sees it", "put-one-way"),
        ("message of 8 bytes, one way", "message-one-way"),
        ("put of 8 bytes, target sleeps", "put-sleeping"),
        ("put of 8 bytes, target computes", "put-computing"),
        ("put of 64 KiB, complete", "put-64K"),
        ("get of 64 KiB", "get-64K"),
        ("put of 64 KiB in rows with gaps", "strided-64K"),
        ("put of 1 MiB, complete", "put-1M"),
        ("get of 1 MiB", "get-1M"),
        ("16 puts of 1 MiB in a row, each", "put-stream-1M"),
        ("16 gets of 1 MiB in a row, each", "get-stream-1M"),
    ):
        one = of.need(name)
        rows.append(
            [label, time_text(one["ns"]), time_text(one["socket_ns"]), ratio_text(one["ratio"])]
        )
    return table(("operation", "Möbius", "plain socket", "ratio"), rows, of.source())


def _schedule(of: Recording) -> str:
    kib = 1024
    rows = []
    for label, cell, size in (
        ("16 puts, then 16 gets of 1 KiB", "put:flush:allocate:what=mixed", kib),
        ("16 puts, then 16 gets of 16 KiB", "put:flush:allocate:what=mixed", 16 * kib),
        ("a get of 16 KiB behind a put of as much", "rget:flush:allocate:what=behind", 16 * kib),
        ("put of 4 bytes, flush", "put:flush:allocate:what=one", 4),
        ("start, put of 4 bytes, complete", "put:pscw:allocate:what=one", 4),
        ("exclusive lock, put of 4 bytes, unlock", "put:lockx:allocate:what=one", 4),
        ("64 KiB in 1,024 puts", "put:flush:allocate:what=pieces:n=1024", 64 * kib),
        ("64 KiB in one put", "put:flush:allocate:what=pieces:n=1", 64 * kib),
        ("1,000 puts of 8 bytes to scattered places", "put:flush:allocate:what=scattered", 8000),
        ("random puts and gets, 64,000 bytes in all", "put:flush:allocate:what=random", 64000),
    ):
        ours = [
            of.need(f"mobius@hosts schedule:{cell}:policy={policy} {size}")
            for policy in ("adaptive", "fifo", "interleave", "gets-first", "aggregate")
        ]
        theirs = [of.find(f"{library}@hosts schedule:{cell} {size}") for library in _PEERS]
        rows.append(
            [
                label,
                *(time_text(one["ns"]) for one in ours),
                *(time_text(one["ns"]) if one else NONE for one in theirs),
            ]
        )
    policies = ("adaptive", "fifo", "interleave", "gets-first", "aggregate")
    head = ("epoch", *policies, *_labels(of, _PEERS))
    return table(head, rows, of.source())


def _scale(of: Recording, hosts: Sequence[int]) -> str:
    rows = []
    for key, one in of.figures.items():
        processes, _, on = key.partition(" on ")
        if int(on) not in hosts:
            continue
        rows.append(
            [
                processes if hosts == (1,) else f"{processes} on {on} hosts",
                time_text(one["init_ms"] * 1e6),
                time_text(one["puts_ms"] * 1e6),
                f"{count_text(one['first_kib'])} KiB, then {count_text(one['then_kib'])} KiB",
            ]
        )
    head = ("processes", "`mob_init()`", "put to all and barrier", "private memory of a process")
    return table(head, rows, of.source())


_WORD_BYTES: Final = 8
_PROCESSES: Final = 2
# The columns of APEX-Map, as cells begin.
_UPC_GET: Final = "mobius-upc apex:get:flush:allocate"
_UPC_LOADS: Final = "mobius-upc apex:load:flush:allocate"
_SHMEM_GET: Final = "mobius-shmem apex:get:flush:allocate"
_MESSAGES: Final = "mpich apex:isendrecv:none:local"


def _apex_ns(of: Recording, cell: str, k: str, words: int) -> float:
    """The time of one access."""
    return float(of.need(f"{cell}:k={k} {_WORD_BYTES * words}")["ns"])


def _apex_grid(of: Recording, text: Callable[[str, int], str]) -> str:
    """A table with K to the right and L downwards."""
    rows = [
        [f"L = {words:,}", *(text(k, words) for k in cray_x1.KS)]
        for words in cray_x1.UPC_GET_OVER_SHMEM
    ]
    return table(["", *(f"K = {k}" for k in cray_x1.KS)], rows, of.source())


def _apex_surface(of: Recording, cell: str) -> str:
    """The bandwidth of all processes in MB/s."""

    def rate(k: str, words: int) -> str:
        return count_text(_PROCESSES * words * _WORD_BYTES * 1e3 / _apex_ns(of, cell, k, words))

    return _apex_grid(of, rate)


def _apex_ratio(
    of: Recording, first: str, second: str, papers: dict[int, tuple[float, ...]] | None = None
) -> str:
    """The bandwidth of the first over that of the second, and in brackets the paper's."""

    def ratio(k: str, words: int) -> str:
        ours = _apex_ns(of, second, k, words) / _apex_ns(of, first, k, words)
        cray = f" ({papers[words][cray_x1.KS.index(k)]:.2f})" if papers else ""
        return f"{ratio_text(ours)}{cray}"

    return _apex_grid(of, ratio)


def _apex_working(of: Recording) -> str:
    rows = []
    for label, cell in (
        ("messages, MPICH", _MESSAGES),
        ("get, OpenSHMEM", _SHMEM_GET),
        ("`upc_memget`", _UPC_GET),
        ("loads, UPC", _UPC_LOADS),
    ):
        for k in ("0.001", "1"):
            shares = [
                of.need(f"working {cell}:k={k} {_WORD_BYTES * words}")["shares"]
                for words in (1, 256, 65536)
            ]
            texts = [" and ".join(f"{share:.0f} %" for share in both) for both in shares]
            rows.append([label, k, *texts])
    return table(("how blocks are read", "K", "L = 1", "L = 256", "L = 65,536"), rows, of.source())


TABLES: Final[dict[str, tuple[str, Callable[[Recording], str]]]] = {
    "instructions": ("instructions", _instructions),
    "one-host": ("micro", _one_host),
    "beside-mpi": ("libraries", _beside_mpi),
    "readme": ("libraries", _readme),
    "between-hosts": ("network", _between_hosts),
    "schedule-1gbit": ("scheduler-1gbit", _schedule),
    "schedule": ("scheduler", _schedule),
    "scale-one-host": ("scale", lambda of: _scale(of, (1,))),
    "scale-between-hosts": ("scale", lambda of: _scale(of, (2, 4))),
    "spawning": ("dynamic", dynamic.spawning),
    "connecting": ("dynamic", dynamic.connecting),
    "with-spawned": ("dynamic", dynamic.with_later),
    "lapi": ("lapi", lambda of: _beside_native(of, "LAPI", "operation: native call; LAPI")),
    "lapi-memory": ("libraries", _lapi_memory),
    "armci": ("armci", _armci),
    "shmem": ("shmem", _shmem),
    "upc": ("upc", lambda of: _beside_native(of, "UPC", "operation: UPC; native call")),
    "mpi": ("mpi", _mpi),
    "apex-messages": ("apex", lambda of: _apex_surface(of, _MESSAGES)),
    "apex-shmem": ("apex", lambda of: _apex_surface(of, _SHMEM_GET)),
    "apex-upc": ("apex", lambda of: _apex_surface(of, _UPC_LOADS)),
    "apex-figure-4": ("apex", lambda of: _apex_ratio(of, _SHMEM_GET, _MESSAGES)),
    "apex-table-3": (
        "apex",
        lambda of: _apex_ratio(of, _UPC_GET, _SHMEM_GET, cray_x1.UPC_GET_OVER_SHMEM),
    ),
    "apex-table-4": (
        "apex",
        lambda of: _apex_ratio(of, _UPC_LOADS, _UPC_GET, cray_x1.UPC_LOADS_OVER_GET),
    ),
    "apex-working": ("apex", _apex_working),
    **application_tables.TABLES,
}


def make(name: str, root: Path) -> str:
    """The Markdown of a table."""
    if name not in TABLES:
        raise DocsError(f"there is no table '{name}'; there are: {' '.join(TABLES)}")
    part, function = TABLES[name]
    recording = read(root / FOLDER / f"{part}.jsonl")
    try:
        return function(recording)
    except (KeyError, TypeError, ValueError) as error:
        raise DocsError(
            f"{recording.path}: a figure of table '{name}' is damaged: {error!r}"
        ) from error
