# SPDX-License-Identifier: BSD-3-Clause
"""The test-suite of blocks as a program: what it measures, verifies, refuses, and how it grows."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mobius_instrument.libraries import armci, mpi, upc
from mobius_instrument.libraries.base import as_two_jobs
from mobius_instrument.libraries.shmem import suite_sources

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "bench" / "suite"
BIN = Path(os.environ.get("MOBIUS_HOME_BIN") or ROOT / "build" / "release" / "bin")
Records = list[dict[str, Any]]


def can_include(compiler: str, header: str) -> bool:
    """Debian's openmpi-bin has compilers without the headers that they are for."""
    return shutil.which(compiler) is not None and (
        subprocess.run(
            [compiler, "-E", "-x", "c", "-"],
            input=f"#include <{header}>\n", capture_output=True, text=True,
        ).returncode == 0
    )  # fmt: skip


def run(
    tmp_path: Path,
    *cells: str,
    processes: int = 2,
    sizes: str = "8,4096",
    program: Path | None = None,
    environment: dict[str, str] | None = None,
    hosts: int = 1,
    more: tuple[str, ...] = (),
) -> tuple[int, Records, str]:
    """Exit code, records and messages of a launch."""
    out = tmp_path / "out.jsonl"
    done = subprocess.run(
        [
            str(BIN / "mobius"), "run", "-n", str(processes), "--bind", "none",
            "--virtual-hosts", str(hosts),
            str(program or BIN / "suite_mobius"), "--cells", ",".join(cells), "--sizes", sizes,
            "--out", str(out), "--min-samples", "5", "--max-seconds", "0", *more,
        ],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    lines = out.read_text().splitlines() if out.exists() else []
    return done.returncode, [json.loads(line) for line in lines], done.stderr


def of(records: Records, kind: str) -> Records:
    return [record for record in records if record["type"] == kind]


def measured(records: Records) -> dict[str, list[int]]:
    """Sizes of each cell that has samples."""
    found: dict[str, list[int]] = {}
    for record in of(records, "samples"):
        assert record["verified"] is True
        assert len(record["samples_ns"]) >= 3
        assert all(value >= 0 for value in record["samples_ns"])
        found.setdefault(record["cell"], []).append(record["bytes"])
    return found


@pytest.mark.parametrize(
    "sync", ["fence", "one-fence", "pscw", "lock", "lockx", "lock_all", "flush", "mutex"]
)
def test_every_transfer_and_memory_with_each_synchronisation(tmp_path: Path, sync: str) -> None:
    transfers = ("put", "get", "rput", "rget", "accumulate", "get_accumulate")
    memories = ("allocate", "alloc_mem", "create", "remap", "static")
    cells = [f"matrix:{transfer}:{sync}:{memory}" for transfer in transfers for memory in memories]
    code, records, errors = run(tmp_path, *cells)
    assert code == 0, errors
    assert measured(records) == {cell: [8, 4096] for cell in cells}
    assert records[-1] == {"type": "done"}


IN_PLACE_SIZES = "1,2,3,4,8,20,4096"


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_same_bytes_there_and_back(tmp_path: Path, hosts: int) -> None:
    cells = [
        f"pingpong:{transfer}:{sync}:{memory}"
        for transfer in ("put", "get", "rput")  # rput has no loops
        for sync in ("flush", "fence", "pscw", "lock")
        for memory in ("allocate", "create")
    ]
    cells += [
        f"completion:{transfer}:{sync}:allocate"
        for transfer in ("put", "get", "rget") for sync in ("flush", "lock")
    ]  # fmt: skip
    cells += [f"{experiment}:message:none:local" for experiment in ("pingpong", "latency")]
    refused = {
        "completion:put:fence:allocate": "there is no completion by one side",
        "pingpong:fetch_op:flush:allocate": "only transfers that move bytes",
        "pingpong:put:flush:allocate:n=2": "only bytes in a row, in one transfer",
        "pingpong:put:flush:allocate:type=vector:block=8": "only bytes in a row",
    }
    code, records, errors = run(tmp_path, *cells, *refused, sizes=IN_PLACE_SIZES, hosts=hosts)
    assert code == 0, errors
    sizes = [int(size) for size in IN_PLACE_SIZES.split(",")]
    assert measured(records) == dict.fromkeys(cells, sizes)
    reasons = {one["cell"]: one["reason"] for one in of(records, "refused")}
    assert list(reasons) == list(refused)
    assert all(part in reasons[cell] for cell, part in refused.items())
    code, records, errors = run(tmp_path, cells[0], processes=3)
    assert "between 2 ranks, there are 3" in of(records, "refused")[0]["reason"]


def test_the_limits() -> None:
    cells = ["pingpong:line:none:local", "completion:copy:none:local"]
    command = [
        str(BIN / "suite_limits"),
        "--cells",
        ",".join([*cells, "bandwidth:copy:none:local"]),
    ]
    done = subprocess.run(
        [*command, "--sizes", IN_PLACE_SIZES, "--max-seconds", "0"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(measured(records)) == cells
    assert "alone measure this" in of(records, "refused")[0]["reason"]
    wrong = subprocess.run([*command, "--sizes", "0"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.count("is not what it takes") == 1


def test_the_suite_for_lapi(tmp_path: Path) -> None:
    if not (BIN / "suite_lapi").exists():
        pytest.skip("LAPI was not built")
    cells = [f"pingpong:put:flush:{memory}" for memory in ("allocate", "create")]
    cells += [f"completion:{way}:flush:allocate" for way in ("put", "get")]
    code, records, errors = run(
        tmp_path, *cells, "pingpong:get:flush:create", sizes=IN_PLACE_SIZES,
        program=BIN / "suite_lapi",
    )  # fmt: skip
    assert code == 0, errors
    assert list(measured(records)) == cells
    assert "no such transfer there and back" in of(records, "refused")[0]["reason"]


def test_sizes_multiply_then_add(tmp_path: Path) -> None:
    cell = "sync-cost:put:flush:allocate"
    code, records, errors = run(tmp_path, cell, sizes="8..64*2,64..96+16")
    assert code == 0, errors
    assert measured(records) == {cell: [8, 16, 32, 64, 64, 80, 96]}
    for sizes in ("8..4*2", "8..64*1", "8..64", "8..64+0", "1..9999+1"):
        code, _, errors = run(tmp_path, cell, sizes=sizes)
        assert code == 2
        assert "is not what it takes" in errors


def test_words_are_refused_in_other_sizes(tmp_path: Path) -> None:
    code, records, errors = run(tmp_path, "matrix:fetch_op:flush:allocate", sizes="8")
    assert code == 0, errors
    assert measured(records) == {"matrix:fetch_op:flush:allocate": [8]}
    code, records, errors = run(tmp_path, "matrix:compare_swap:flush:allocate", sizes="4096")
    assert code == 0, errors
    assert "one word" in of(records, "refused")[0]["reason"]


def test_there_is_room_for_all_sizes_where_the_largest_is_refused(tmp_path: Path) -> None:
    cell = "protocols:accumulate:flush:allocate:type=patch"
    code, records, errors = run(tmp_path, cell, sizes="8,32768,65536")  # no square of doubles
    assert code == 0, errors
    assert measured(records) == {cell: [8, 32768]}


@pytest.mark.parametrize("partner", ["pair", "ring", "pairs", "all"])
@pytest.mark.parametrize("comm", ["world", "split", "reordered"])
def test_partners_and_communicators(tmp_path: Path, partner: str, comm: str) -> None:
    cells = [
        f"latency:{transfer}:{sync}:allocate:partner={partner}:comm={comm}"
        for transfer in ("put", "get") for sync in ("fence", "pscw", "flush")
    ]  # fmt: skip
    code, records, errors = run(tmp_path, *cells, processes=4, sizes="64")
    assert code == 0, errors
    assert measured(records) == {cell: [64] for cell in cells}


def test_datatypes_keep_their_gaps(tmp_path: Path) -> None:
    shapes = [
        "byte", "int", "double", "contiguous", "vector:block=8", "vector:block=64:stride=72",
        "indexed:block=4:stride=16", "struct:block=8", "subarray:block=16",
        "vector:block=8:pack=hand",
    ]  # fmt: skip
    cells = [f"datatypes:put:flush:allocate:type={shape}" for shape in shapes]
    cells += [f"datatypes:get:fence:create:type={shape}" for shape in shapes if "hand" not in shape]
    cells += [f"datatypes:accumulate:lock:allocate:type={shape}" for shape in shapes[1:9]]
    code, records, errors = run(tmp_path, *cells, sizes="64,4096")
    assert code == 0, errors
    assert measured(records) == {cell: [64, 4096] for cell in cells}


def test_counts_of_contention(tmp_path: Path) -> None:
    cells = [
        "atomics:fetch_op:flush:allocate:word=one", "atomics:fetch_op:flush:allocate:word=own",
        "atomics:compare_swap:flush:allocate", "accumulate:accumulate:lock:create",
        "locks:put:lockx:allocate", "locks:put:mutex:create",
    ]  # fmt: skip
    code, records, errors = run(tmp_path, *cells, processes=3, sizes="8")
    assert code == 0, errors
    assert measured(records) == {cell: [8] for cell in cells}


def test_a_lock_that_excludes_nobody_is_found(tmp_path: Path) -> None:
    """Shared locks let all read and write at once: updates are lost, and that is seen."""
    # A delay between get and put makes it certain that others come between.
    slow = {"MOBIUS_HOOKS": "delay:max_us=30:seed=1"}
    cell = "locks:put:lock:allocate"
    code, records, _ = run(tmp_path, cell, processes=4, sizes="8", environment=slow)
    wrong = of(records, "wrong")
    assert code == 1
    assert "updates" in wrong[0]["where"]
    assert of(records, "samples") == []
    assert of(records, "done") == []


def test_streams(tmp_path: Path) -> None:
    cells = [
        f"bandwidth:{transfer}:{sync}:allocate:dir={way}{touch}"
        for transfer in ("put", "get") for sync in ("flush", "fence", "pscw")
        for way in ("one", "two") for touch in ("", ":touch=1")
    ]  # fmt: skip
    code, records, errors = run(tmp_path, *cells, sizes="8,65536")
    assert code == 0, errors
    assert measured(records) == {cell: [8, 65536] for cell in cells}


def test_overlap_and_progress(tmp_path: Path) -> None:
    overlap = "overlap:put:pscw:allocate:side=target"
    progress = ["progress:put:flush:create:ms=20", "progress:get:pscw:allocate:ms=20"]
    code, records, errors = run(tmp_path, overlap, *progress, sizes="4096")
    assert code == 0, errors
    parts = [f"{overlap}:part={part}" for part in ("transfer", "compute", "both")]
    assert list(measured(records)) == parts
    facts = {(fact["cell"], fact["name"]): fact["value"] for fact in of(records, "fact")}
    assert (overlap, "hidden") in facts
    for cell in progress:
        assert facts[cell, "completes"] in ("yes", "on-return")
    assert (progress[0], "arrives") in facts
    assert (progress[1], "arrives") not in facts


@pytest.mark.parametrize("transfer", ["get", "load"])
def test_apex_sums_are_those_of_a_sequential_run(tmp_path: Path, transfer: str) -> None:
    cells = [f"apex:{transfer}:flush:allocate:m=262144:k={k}" for k in ("0.001", "0.1", "1")]
    code, records, errors = run(tmp_path, *cells, processes=3, sizes="8,1024,131072")
    assert code == 0, errors
    assert measured(records) == {cell: [8, 1024, 131072] for cell in cells}
    assert len(of(records, "fact")) == 9


def test_apex_in_upc_has_the_sums_of_a_sequential_run(tmp_path: Path) -> None:
    if importlib.util.find_spec("clang") is None:
        pytest.skip("the Python package libclang is not installed")
    program = tmp_path / "suite_upc"
    build = [str(BIN / "mobupcc"), "-std=gnu99", "-O0", "-I", str(SUITE), "-o", str(program)]
    files = [str(path) for path in upc.suite_sources(SUITE)]
    built = subprocess.run([*build, *files, "-lm"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    cells = [f"apex:{one}:flush:allocate:m=262144:k=0.1" for one in ("get", "load")]
    code, records, errors = run(
        tmp_path, *cells, processes=3, sizes="8,1024,131072", program=program
    )
    assert code == 0, errors
    assert measured(records) == {cell: [8, 1024, 131072] for cell in cells}
    code, records, errors = run(tmp_path, cells[0], sizes="1024", program=program, hosts=2)
    assert code == 0, errors
    assert measured(records) == {cells[0]: [1024]}
    moves = [
        f"matrix:{one}:{sync}:allocate" for one in ("put", "get") for sync in ("flush", "fence")
    ]
    code, records, errors = run(tmp_path, *moves, sizes="4096", program=program)
    assert code == 0, errors
    assert measured(records) == {cell: [4096] for cell in moves}


@pytest.mark.parametrize("hosts", [1, 2])
def test_policies_and_pieces_take_turns(tmp_path: Path, hosts: int) -> None:
    flush = "schedule:put:flush:allocate:what="
    policies = ("adaptive", "fifo", "interleave", "gets-first", "aggregate")
    turns = [
        f"{bare}:policy={policy}"
        for bare in (
            f"{flush}pieces:n=1", f"{flush}pieces:n=16", f"{flush}scattered",
            f"{flush}scattered:n=1", f"{flush}mixed", "schedule:rget:flush:allocate:what=behind",
            f"{flush}random", "schedule:put:pscw:allocate:what=one",
            "schedule:put:fence:allocate:what=one", "schedule:put:one-fence:allocate:what=one",
            "schedule:put:one-fence:allocate:what=scattered",
            "schedule:get:lockx:allocate:what=one",
        )
        for policy in policies
    ]  # fmt: skip
    cells = [*turns, "schedule:put:flush:create:what=one:policy=fifo", f"{flush}one"]
    code, records, errors = run(tmp_path, *cells, hosts=hosts, sizes="64,4096")
    assert code == 0, errors
    assert measured(records) == {cell: [64, 4096] for cell in [*turns, cells[-1]]}
    assert [record["cell"] for record in of(records, "end")] == [*turns, cells[-1]]
    refused = of(records, "refused")
    assert [record["cell"] for record in refused] == [cells[-2]]
    assert "of memory 'allocate'" in refused[0]["reason"]
    # Both of what takes turns are measured before the second's turn comes.
    kinds = [(record["type"], record.get("cell")) for record in records]
    assert kinds.index(("samples", turns[9])) < kinds.index(("end", turns[0]))
    assert kinds.index(("samples", turns[10])) > kinds.index(("end", turns[9]))


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_plain_socket_beside_the_library(tmp_path: Path, hosts: int) -> None:
    """Between the first two of any number of processes, and without a window."""
    cells = ["socket:put:none:none", "socket:put:none:none:depth=32"]
    refused = "socket:get:none:none"
    word = "schedule:put:flush:allocate:what=one:policy=adaptive"
    code, records, errors = run(
        tmp_path, *cells, refused, word, processes=2 * hosts, hosts=hosts, sizes="4,65537"
    )
    assert code == 0, errors
    assert measured(records) == {cell: [4, 65537] for cell in [*cells, word]}
    assert [record["reason"] for record in of(records, "refused")] == ["socket measures put"]
    assert records[-1] == {"type": "done"}


@pytest.mark.parametrize("interface", ["lo", "nowhere"])
def test_the_interface_of_a_plain_socket(tmp_path: Path, interface: str) -> None:
    cell = "socket:put:none:none"
    code, records, errors = run(tmp_path, cell, sizes="8", more=("--interface", interface))
    assert code == 0, errors
    if interface == "lo":
        assert measured(records) == {cell: [8]}
    else:
        assert "no place to listen" in of(records, "refused")[0]["reason"]


def test_policies_and_pieces_are_what_they_say(tmp_path: Path) -> None:
    cell = "schedule:put:flush:allocate:what=pieces:n={}:policy={}"
    for policy, merges in (("fifo", False), ("aggregate", True)):
        cells = [cell.format(n, policy) for n in (1, 16)]
        code, _, errors = run(
            tmp_path, *cells, hosts=2, sizes="4096", environment={"MOBIUS_STATS": "1"}
        )
        assert code == 0, errors
        merged = sum(int(count) for count in re.findall(r"(\d+) merged", errors))
        assert (merged > 0) == merges, errors
    code, records, errors = run(tmp_path, cell.format(16, "best"), hosts=2, sizes="4096")
    assert code == 0, errors
    assert "no such policy" in of(records, "refused")[0]["reason"]


def test_a_missing_feature_is_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    cells = [
        "nothing:put:flush:allocate", "matrix:put:flush:dynamic", "matrix:put:none:allocate",
        "matrix:sendrecv:none:local", "matrix:put:flush:allocate:comm=spawn",
        "matrix:put:flush:allocate:partner=nobody", "matrix:put:flush:allocate",
    ]  # fmt: skip
    code, records, errors = run(tmp_path, *cells)
    assert code == 0, errors
    refused = {record["cell"]: record["reason"] for record in of(records, "refused")}
    assert list(refused) == cells[:-1]
    assert "no memory 'dynamic'" in refused[cells[1]]
    assert measured(records) == {cells[-1]: [8, 4096]}


def test_an_error_in_the_middle_names_the_cell(tmp_path: Path) -> None:
    code, records, _ = run(
        tmp_path, "matrix:put:flush:allocate",
        environment={"MOBIUS_HOOKS": "fault:every=7:seed=1"},
    )  # fmt: skip
    assert code != 0
    assert of(records, "done") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cells", "a:b:c", "--sizes", "8"), "is no cell"),
        (("--cells", "a:b:c:d:e", "--sizes", "8"), "is no cell"),
        (("--cells", "matrix:put:flush:allocate", "--sizes", "0"), "--sizes"),
        (("--cells", "matrix:put:flush:allocate"), "--sizes is missing"),
        (("--sizes", "8"), "--cells is missing"),
        (("--colour", "red"), "is no option"),
    ],
)
def test_bad_arguments(arguments: tuple[str, ...], message: str) -> None:
    done = subprocess.run(
        [str(BIN / "suite_mobius"), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_blocks_are_listed() -> None:
    done = subprocess.run([str(BIN / "suite_mobius"), "--list"], capture_output=True, text=True)
    assert done.returncode == 0
    words = [line.split()[:2] for line in done.stdout.splitlines()]
    for block in (["transfer", "put"], ["datatype", "vector"], ["experiment", "apex"]):
        assert block in words


BROKEN = """
#include "loops.h"
#include "mobius_blocks.h"
/* Puts all but the last byte: a block in one short file, and what verification is for. */
static int broken(suite_window_t* window, const suite_type_t* type, int to, void* local,
                  size_t remote, void* result) {
  (void)result;
  return mob_put_nbi(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                     type->bytes - 1);
}
static suite_transfer_block_t block = {
    .head = {SUITE_TRANSFER, "broken", "put without its last byte", NULL},
    .effect = SUITE_PUTS, .start = broken};
SUITE_REGISTER(block)

/* A byte too many, in a loop. */
static SUITE_INLINE int spill(suite_spot_t* spot) {
  return mob_put(spot->peer, (void*)(uintptr_t)spot->far_data, spot->data, spot->bytes + 1);
}
SUITE_DEFINE_ONE_SIDE(spills, spill)
SUITE_REGISTER_LOOPS(spill_loops, "spill:flush", "mob_put", 0, NULL, spills)
static suite_transfer_block_t spilling = {
    .head = {SUITE_TRANSFER, "spill", "put with a byte too many", NULL}, .effect = SUITE_PUTS};
SUITE_REGISTER(spilling)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_block_is_one_file_and_wrong_data_are_found(tmp_path: Path) -> None:
    libraries = [folder for folder in (BIN.parent / "lib",) if (folder / "libmobius.so").exists()]
    if not libraries:
        pytest.skip("there is no libmobius.so beside the programs")
    (tmp_path / "broken.c").write_text(BROKEN)
    sources = [
        *SUITE.glob("*.c"), *SUITE.glob("blocks/*.c"), *SUITE.glob("mobius/*.c"),
        SUITE / "experiments" / "latency.c", SUITE.parent / "turns" / "turns.c",
        tmp_path / "broken.c",
    ]  # fmt: skip
    program = tmp_path / "suite_broken"
    includes = [ROOT / "include", BIN.parent / "include", SUITE, SUITE / "mobius"]
    subprocess.run(
        [
            "cc", "-std=gnu99", "-O1", *(f"-I{folder}" for folder in includes), "-o", str(program),
            *map(str, sources), f"-L{libraries[0]}", f"-Wl,-rpath,{libraries[0]}", "-lmobius",
            "-lm",
        ],
        check=True,
    )  # fmt: skip
    cells = (
        "matrix:broken:flush:allocate", "matrix:put:flush:allocate",
        "pingpong:broken:flush:allocate", "completion:spill:flush:create",
        "pingpong:spill:flush:create", "matrix:spill:flush:create",
    )  # fmt: skip
    code, records, _ = run(tmp_path, *cells, program=program)
    assert code == 1
    wrong = of(records, "wrong")
    assert [(one["cell"], one["bytes"], one["first_wrong_byte"]) for one in wrong] == [
        (cells[0], 8, 7), (cells[0], 4096, 4095), (cells[2], 8, 7), (cells[2], 4096, 4095),
        (cells[3], 8, 8), (cells[3], 4096, 4096),
    ]  # fmt: skip
    assert [one["where"] for one in wrong if one["cell"] == cells[3]] == [
        "rank 1: flag, before timing"
    ] * 2
    assert {one["cell"]: one["reason"] for one in of(records, "refused")} == {
        cells[4]: "4096 bytes: this library has no such transfer there and back",
        cells[5]: "pingpong and completion alone measure this transfer",
    }
    assert measured(records) == {cells[1]: [8, 4096]}


ARMCI_MOVES = [
    f"datatypes:{way}:flush:allocate:type={name}"
    for way in ("put", "get", "accumulate")
    for name in ("double", "patch", "vector", "indexed")
]
ARMCI_CELLS = [
    *ARMCI_MOVES,
    *(cell.replace("datatypes", "protocols") for cell in ARMCI_MOVES),
    "protocols:get:flush:allocate:cold=1",
    "matrix:put:fence:allocate",
]


@pytest.mark.parametrize("hosts", ["1", "2"])
def test_the_suite_for_armci(tmp_path: Path, hosts: str) -> None:
    """All its blocks give right data, by shared memory and by messages."""
    out = tmp_path / "out.jsonl"
    for cells, sizes in ((ARMCI_CELLS, [8, 2048]), (["protocols:fetch_op:flush:allocate"], [4])):
        done = subprocess.run(
            [str(BIN / "mobius"), "run", "-n", "2", "--virtual-hosts", hosts, "--bind", "none",
             str(BIN / "suite_armci"), "--cells", ",".join(cells), "--sizes",
             ",".join(map(str, sizes)), "--out", str(out), "--min-samples", "3", "--max-seconds",
             "0"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert measured(records) == dict.fromkeys(cells, sizes)


def test_one_sided_transfers_without_the_target(tmp_path: Path) -> None:
    cells = ("protocols:put:flush:allocate", "protocols:get:pscw:allocate",
             "protocols:get:flush:allocate:type=patch")  # fmt: skip
    code, records, errors = run(tmp_path, *cells, sizes="8,24,32")
    assert code == 0, errors
    assert measured(records) == {cells[0]: [8, 24, 32], cells[2]: [8, 32]}
    refused = {one["cell"]: one["reason"] for one in of(records, "refused")}
    assert "needs the target" in refused[cells[1]]
    code, records, _ = run(tmp_path, cells[2], sizes="24")
    (one,) = of(records, "refused")
    assert "doubles of a square" in one["reason"]


def _armci_mpi() -> tuple[str, Path] | None:
    """A compiler and the ARMCI-MPI that Debian has for it."""
    for family in ("mpich", "openmpi"):
        compiler = shutil.which(f"mpicc.{family}")
        archive = armci.archive_of(Path(compiler), family) if compiler else None
        if compiler and archive:
            return family, archive
    return None


@pytest.mark.skipif(_armci_mpi() is None, reason="there is no ARMCI-MPI on this machine")
def test_the_suite_for_armci_mpi(tmp_path: Path) -> None:
    found = _armci_mpi()
    assert found is not None
    family, archive = found
    program = tmp_path / "suite_armci"
    files = [str(path) for path in armci.suite_sources(SUITE)]
    build = [f"mpicc.{family}", "-std=gnu99", "-O1", "-I", str(SUITE), "-o", str(program), *files]
    built = subprocess.run(
        [*build, str(archive), "-lm", "-pthread"], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    out = tmp_path / "out.jsonl"
    done = subprocess.run(
        [f"mpiexec.{family}", "-n", "2", str(program), "--cells", ",".join(ARMCI_CELLS), "--sizes",
         "2048", "--out", str(out), "--min-samples", "3", "--max-seconds", "0"],
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert measured(records) == {key: [2048] for key in ARMCI_CELLS}


_SHMEM_LEGS = [
    f"{experiment}:{transfer}:flush:allocate"
    for experiment in ("pingpong", "completion") for transfer in ("put", "get")
]  # fmt: skip
_SHMEM_MOVES = _SHMEM_LEGS + [
    f"matrix:{transfer}:{sync}:{memory}"
    for transfer in ("put", "get", "rput", "rget")
    for sync, memory in (("flush", "allocate"), ("fence", "static"), ("lockx", "allocate"))
] + [f"datatypes:{way}:flush:allocate:type={name}:block=8"
     for way in ("put", "get") for name in ("vector", "indexed")]  # fmt: skip
_SHMEM_WORDS = _SHMEM_LEGS + [
    f"matrix:{name}:flush:{memory}"
    for name in ("accumulate", "fetch_op", "compare_swap")
    for memory in ("allocate", "static")
]


@pytest.mark.parametrize("hosts", ["1", "2"])
def test_the_suite_for_our_openshmem(tmp_path: Path, hosts: str) -> None:
    for cells, size in ((_SHMEM_MOVES, 4096), (_SHMEM_WORDS, 8)):
        out = tmp_path / "out.jsonl"
        done = subprocess.run(
            [str(BIN / "mobius"), "run", "-n", "2", "--virtual-hosts", hosts,
             str(BIN / "suite_shmem"), "--cells", ",".join(cells), "--sizes", str(size), "--out",
             str(out), "--min-samples", "3", "--max-seconds", "0"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert measured(records) == {cell: [size] for cell in cells}


@pytest.mark.skipif(
    not can_include("oshcc", "shmem.h"), reason="there is no oshcc with shmem.h on this machine"
)
def test_the_suite_for_openshmem(tmp_path: Path) -> None:
    """Builds with any oshcc, and all its blocks give right data."""
    files = [str(path) for path in suite_sources(SUITE)]
    program = tmp_path / "suite_shmem"
    build = ["oshcc", "-std=gnu99", "-O1", "-I", str(SUITE), "-o", str(program), *files]
    built = subprocess.run([*build, "-lm", "-pthread"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    environment = {
        **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }  # fmt: skip
    for cells, size in ((_SHMEM_MOVES, 4096), (_SHMEM_WORDS, 8)):
        out = tmp_path / "out.jsonl"
        # Its exit code tells nothing: Debian's Open MPI crashes in shmem_finalize().
        subprocess.run(
            ["oshrun", "--oversubscribe", "--bind-to", "none", "-n", "2", str(program), "--cells",
             ",".join(cells), "--sizes", str(size), "--out", str(out), "--min-samples", "3",
             "--max-seconds", "0"],
            env=environment, capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert measured(records) == {cell: [size] for cell in cells}
        assert records[-1] == {"type": "done"}


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def suite_mpi(tmp_path: Path, compiler: str, *flags: str) -> Path:
    """The test-suite built with an MPI."""
    program = tmp_path / "suite_mpi"
    files = [str(path) for path in mpi.suite_sources(SUITE)]
    build = [compiler, "-std=gnu99", "-O1", *flags, "-I", str(SUITE), "-o", str(program), *files]
    built = subprocess.run([*build, "-lm", "-pthread"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return program


@pytest.mark.slow
@pytest.mark.skipif(
    not can_include("mpicc.openmpi", "mpi.h") or shutil.which("ompi-server") is None,
    reason="there is no Open MPI with mpi.h and its server here",
)
def test_two_programs_meet_by_the_name_of_a_port(tmp_path: Path) -> None:
    program = suite_mpi(tmp_path, "mpicc.openmpi")
    job = ("mpiexec.openmpi", "-n", "1", "--bind-to", "none", "--ompi-server", "{server}",
           str(program))  # fmt: skip
    server = ("ompi-server", "--no-daemonize", "--report-uri")
    cell = "dynamic-comm:sendrecv:none:local:comm=applications"
    out = tmp_path / "out.jsonl"
    arguments = ["--cells", cell, "--sizes", "8,1024", "--out", str(out), "--min-samples", "3",
                 "--max-seconds", "0"]  # fmt: skip
    done = subprocess.run(
        [*as_two_jobs(job, job, server), *arguments], env={**os.environ, **AS_ROOT},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert measured(records) == {cell: [8, 1024]}


def test_two_jobs_get_their_part(tmp_path: Path) -> None:
    """Each its words, a common file, and the place of the server; a bad code of one counts."""
    script = tmp_path / "job"
    script.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/log.$1\n[ $1 != b ] || exit 5\n')
    server = tmp_path / "server"
    server.write_text('#!/bin/sh\necho here >"$1"\nexec sleep 1000\n')
    for program in (script, server):
        program.chmod(0o755)
    command = as_two_jobs(
        (str(script), "a", "{server}"), (str(script), "b", "{server}"), (str(server),)
    )
    done = subprocess.run([*command, "--cells", "x y"], capture_output=True, text=True)
    assert done.returncode == 5
    first, second = ((tmp_path / f"log.{name}").read_text().split() for name in "ab")
    assert first[1].startswith("file:")
    assert first[2:5] == ["--cells", "x", "y"]
    assert first[-4:-2] == second[-4:-2]
    assert (first[-2:], second[-2:]) == (["--joins", "no"], ["--joins", "yes"])
    assert not Path(first[-3]).parent.exists()
