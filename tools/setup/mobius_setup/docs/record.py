# SPDX-License-Identifier: BSD-3-Clause
"""Measures what the tables of the documents show and writes docs/results/PART.jsonl.

Each part runs programs of the release build, or `./mobius bench`, on this machine. It should have
nothing else to do meanwhile; a recording says how much of the processors other programs had.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mobius_setup.docs import applications, dynamic
from mobius_setup.docs.others import Others
from mobius_setup.docs.recording import FOLDER, DocsError, Figure, write
from mobius_setup.docs.running import LAUNCHES, PROGRAMS, launched, output

_SIZES: Final = "8b,4kb,64kb,1mb"


def _instructions(root: Path) -> list[Figure]:
    """Machine code of the inlined calls, as tests/codegen checks it."""
    text = output(
        root,
        [
            sys.executable,
            "tests/codegen/check_inline.py",
            "cc",
            "include",
            "tests/codegen/inlined.c",
        ],
    )
    found = re.findall(r"^ok +(\w+): (\d+) instructions(?:, (\d+) conditional)?", text, re.M)
    return [
        {"key": name, "instructions": int(count), **({"branches": int(jumps)} if jumps else {})}
        for name, count, jumps in found
    ]


def _micro(root: Path) -> list[Figure]:
    """Möbius against the bare machine: medians of interleaved rounds in one launch."""
    names = (
        "put8 get8 put8_flush one_way fetch_add8 copy_4k copy_64k copy_4m strided_512_1024"
        " accumulate_rows accumulate_integers barrier sync lock exposed_put8 exposed_strided"
        " exposed_fetch_add8 moved_put8 message_8 message_wake message_4k message_64k message_1m"
    ).split()
    figures = []
    for line in launched(root, "micro", "--json", "--rounds", "15", *names).splitlines():
        record = json.loads(line)
        ns = record["ns"]
        figures.append(
            {
                "key": f"{record['benchmark']}/{record['variant']}",
                "ns": record["median_ns"], "low_ns": min(ns), "high_ns": max(ns),
                "ratio": record["ratio_to_limit"],
            }
        )  # fmt: skip
    return figures


def _bench(
    root: Path, *arguments: str, facts: Callable[[Path], list[Figure]] = lambda _: []
) -> list[Figure]:
    """Medians of a run of the instrument, and what else `facts` finds in its folder."""
    with tempfile.TemporaryDirectory() as folder:
        output(
            root, [sys.executable, "-m", "mobius_instrument", "bench", *arguments, "--out", folder]
        )
        return figures_of(Path(folder)) + facts(Path(folder))


def figures_of(folder: Path) -> list[Figure]:
    """Medians of what `./mobius bench` left in a folder."""
    from mobius_instrument.presentation.analysis import Analysis
    from mobius_instrument.results import RESULTS_NAME, read_results

    results = read_results(folder / RESULTS_NAME)
    figures: list[Figure] = [
        {"key": f"label {one.library}", "label": one.label.removesuffix(" (PyPI)")}
        for one in results.libraries.values()
        if one.status == "ready"
    ]
    for series in Analysis(results).series:
        figures += [
            {
                "key": f"{series.library} {series.cell} {size}", "ns": round(s.median, 2),
                "low_ns": round(s.low, 2), "high_ns": round(s.high, 2), "launches": s.launches,
            }
            for size, s in series.summaries.items()
        ]  # fmt: skip
    return figures


def shares_of(folder: Path) -> list[Figure]:
    """APEX-Map: the share of its time that each rank works instead of waiting for the others."""
    from mobius_instrument.results import RESULTS_NAME, read_results

    found = {}
    for fact in read_results(folder / RESULTS_NAME).facts:
        size, _, shares = fact.detail.partition(": ")
        if fact.name == "working" and size.isdigit():
            key = f"working {fact.library} {fact.cell} {size}"
            found[key] = {"key": key, "shares": [float(one) for one in _PERCENT.findall(shares)]}
    return list(found.values())


_PERCENT: Final = re.compile(r"([\d.]+) %")


def _apex(root: Path) -> list[Figure]:
    """APEX-Map (paper 4) whole: ten K, nine L, each way to read."""
    libraries = "mobius,mobius-shmem,mobius-upc,mpich"
    return _bench(root, "apex", "--full", "--libs", libraries, facts=shares_of)


def _libraries(root: Path) -> list[Figure]:
    """Möbius beside Open MPI and MPICH: an operation with its completion, and synchronisation."""
    return _bench(
        root, "completion", "sync-cost", "--libs", "mobius,lapi,openmpi,mpich", "--sizes", _SIZES
    )


def _protocols(root: Path) -> list[Figure]:
    """ARMCI on Möbius beside what the MPIs offer for it."""
    return _bench(root, "protocols", "--libs", "armci,openmpi,mpich")


def _scheduler(root: Path, rate: str) -> list[Figure]:
    hosts = f"testbed:{rate}" if rate else "testbed"
    return _bench(root, "schedule", "--hosts", hosts, "--libs", "mobius,openmpi,mpich")


def _network(root: Path) -> list[Figure]:
    """Single operations between two virtual hosts, each beside a plain socket."""
    names = (
        "put get fetch-add put-one-way message-one-way put-sleeping put-computing put-64K get-64K"
        " strided-64K put-1M get-1M put-stream-1M get-stream-1M"
    ).split()
    times: dict[str, list[tuple[float, float]]] = {}
    for _ in range(LAUNCHES):
        options = ("-n", "2", "--virtual-hosts", "2")
        text = launched(root, "operations_bench", "7", *names, options=options)
        for line in text.splitlines():
            name, _, ours, socket, _ = line.split()
            times.setdefault(name, []).append((float(ours) * 1e3, float(socket) * 1e3))
    return [
        {
            "key": name, "ns": statistics.median(ours for ours, _ in launches),
            "socket_ns": statistics.median(socket for _, socket in launches),
            "ratio": statistics.median(ours / socket for ours, socket in launches),
            "low_ns": min(ours for ours, _ in launches),
            "high_ns": max(ours for ours, _ in launches), "launches": len(launches),
        }
        for name, launches in times.items()
    ]  # fmt: skip


def _scale(root: Path) -> list[Figure]:
    """Start-up and memory of jobs of 2 to 128 processes."""
    pattern = re.compile(
        r"mob_init ([\d.]+) ms, put to all and barrier ([\d.]+) ms,"
        r" private memory (\d+), then (\d+) KiB"
    )
    figures = []
    for hosts, sizes in ((1, (2, 8, 32, 64, 128)), (2, (2, 8, 32, 64)), (4, (32,))):
        for size in sizes:
            options = ["-n", str(size), *(["--virtual-hosts", str(hosts)] if hosts > 1 else [])]
            launches = []
            for _ in range(LAUNCHES):
                text = launched(root, "scale_bench", options=options)
                if (found := pattern.search(text)) is None:
                    raise DocsError(f"scale_bench said '{text}'")
                launches.append([float(value) for value in found.groups()])
            middle = [statistics.median(values) for values in zip(*launches, strict=True)]
            figures.append(
                {
                    "key": f"{size} on {hosts}", "init_ms": middle[0], "puts_ms": middle[1],
                    "first_kib": middle[2], "then_kib": middle[3], "launches": len(launches),
                }
            )  # fmt: skip
    return figures


def _beside_native(root: Path, program: str | Path) -> list[Figure]:
    """A front beside the native calls, by turns in one program."""
    pattern = re.compile(r"^(.+?) +([\d.]+) ns +([\d.]+) ns +ratio ([\d.]+)$", re.M)
    launches: dict[str, list[list[float]]] = {}
    for _ in range(LAUNCHES):
        for name, *values in pattern.findall(launched(root, program)):
            launches.setdefault(name, []).append([float(value) for value in values])
    figures = []
    for name, values in launches.items():
        native, front, ratio = (statistics.median(one) for one in zip(*values, strict=True))
        figures.append({"key": name, "native_ns": native, "ns": front, "ratio": ratio})
    return figures


def _upc(root: Path) -> list[Figure]:
    """UPC's library beside the native calls, its loops beside those of C, and the translator."""
    compiler = root / PROGRAMS / "mobupcc"
    with tempfile.TemporaryDirectory(prefix="mob-") as name:
        folder = Path(name)
        loops = folder / "upc_loops"
        output(root, [compiler, "-O2", "bench/fronts/upc_loops.upc", "-o", loops])
        figures = _beside_native(root, "micro_upc") + _beside_native(root, loops)
        text = "#include <upc.h>\nshared int a[8 * THREADS];\n"
        function = (
            "void f{0}(int i) {{\n  a[i] = a[i + {0}] * 2;\n  if (i > {0})\n    upc_fence;\n}}\n"
        )
        text += "".join(function.format(number) for number in range(200))
        (folder / "lines.upc").write_text(text, encoding="utf-8")
        translate: list[str | Path] = [compiler, "-fsyntax-only", folder / "lines.upc"]
        compiled: list[str | Path] = [
            compiler,
            "-O2",
            "--save-c",
            "-c",
            folder / "lines.upc",
            "-o",
            folder / "a.o",
        ]
        output(root, compiled)
        plain: list[str | Path] = [
            "cc",
            "-O2",
            "-x",
            "cpp-output",
            "-c",
            folder / "lines.upc.c",
            "-o",
            folder / "a.o",
        ]
        ratios = []
        for _ in range(5):
            times = []
            for command in (plain, translate):
                began = time.perf_counter_ns()
                output(root, command)
                times.append(time.perf_counter_ns() - began)
            ratios.append(times)
        native, front = (statistics.median(one) for one in zip(*ratios, strict=True))
        figures.append(
            {
                "key": "translation of 1,000 lines; cc -O2 of their C", "native_ns": native,
                "ns": front, "ratio": round(front / native, 2),
            }
        )  # fmt: skip
    return figures


_SHMEM_LINE: Final = re.compile(r"^(.+?) {2,}([\d.]+) ns$", re.M)
_SHMEM_START: Final = "start and end of 64 PEs"
_SHMEM_START_ONCE_NS: Final = 1e9  # a peer that takes longer is started once only


def _shmem(root: Path) -> list[Figure]:
    """OpenSHMEM beside the bare machine, and by turns beside the `oshcc` in PATH and, if it was
    built for that, Sandia OpenSHMEM in .mobius/peers/sos."""
    found: dict[str, dict[str, list[float]]] = {}

    def note(library: str, start: Callable[..., str]) -> None:
        for name, value in _SHMEM_LINE.findall(start("2")):
            found.setdefault(name, {}).setdefault(library, []).append(float(value))
        starts = found.setdefault(_SHMEM_START, {}).setdefault(library, [])
        if sum(starts) > _SHMEM_START_ONCE_NS:
            return
        began = time.monotonic_ns()
        start("64", "start")
        starts.append(float(time.monotonic_ns() - began))

    def ours(pes: str, *arguments: str) -> str:
        return launched(root, "micro_shmem", *arguments, options=("-n", pes))

    with tempfile.TemporaryDirectory(prefix="mob-") as folder:
        peers = _other_shmems(root, Path(folder))
        for _ in range(LAUNCHES):
            note("ns", ours)
            for library, start in peers.items():
                note(library, start)
    figures: list[Figure] = []
    for name, values in found.items():
        if name.startswith("bare: "):
            continue
        medians = {key: statistics.median(one) for key, one in values.items()}
        bare = found.get(f"bare: {name}", {}).get("ns")
        figures.append(
            {"key": name, **medians, **({"bare_ns": statistics.median(bare)} if bare else {})}
        )
    return figures


def _other_shmems(root: Path, folder: Path) -> dict[str, Callable[..., str]]:
    """What runs the same program over other OpenSHMEMs, by the name of their figures."""
    found: dict[str, Callable[..., str] | None] = {}
    compiler, launcher = shutil.which("oshcc"), shutil.which("oshrun")
    if compiler is not None and launcher is not None:
        words = [launcher, "--oversubscribe", "-n"]
        found["peer_ns"] = _other_shmem(root, folder / "peer", compiler, words, ("5",))
    sos = root / ".mobius" / "peers" / "sos" / "bin"
    mpich = root / ".mobius" / "peers" / "mpich" / "bin"
    hydra = shutil.which("mpiexec.hydra", path=f"{mpich}:{os.environ.get('PATH', os.defpath)}")
    if (sos / "oshcc").is_file() and hydra is not None:
        # It is built with the PMI of Hydra. The kernel copies, with the addresses of the PE that
        # copies. A collective call may take 10 ms.
        words = ["setarch", "--addr-no-randomize", hydra, "-n"]
        found["sos_ns"] = _other_shmem(root, folder / "sos", str(sos / "oshcc"), words, ("1000",))
    return {name: start for name, start in found.items() if start is not None}


def _other_shmem(
    root: Path, program: Path, compiler: str, launcher: list[str], usual: tuple[str, ...]
) -> Callable[..., str] | None:
    command = [compiler, "-O2", "-w", "bench/fronts/shmem.c", "-o", str(program)]
    if subprocess.run(command, cwd=root, capture_output=True).returncode != 0:
        return None
    as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")

    # The exit code tells nothing: Debian's Open MPI crashes in shmem_finalize().
    def start(pes: str, *arguments: str) -> str:
        return subprocess.run(
            [*launcher, pes, str(program), *(arguments or usual)], cwd=root,
            env={**os.environ, **as_root}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ).stdout  # fmt: skip

    return start


_MPI_LINE: Final = re.compile(r"^(\w.+?): +(\S.*?) +([\d.]+) ns$", re.M)
_MPI_WORDS: Final = {
    "openmpi": ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"),
    "mpich": (),
}
# Two processes in user namespaces of their own, which share no memory, over a network of theirs.
_MPI_NETWORK: Final = (
    "ip link set lo up && ip link add host0 type veth peer name host1 && "
    "ip addr add 10.77.0.1/24 dev host0 && ip link set host0 up && ip link set host1 up"
)


def _mpi(root: Path) -> list[Figure]:
    """Windows of each MPI alone and with its front, by turns."""
    found: dict[str, list[float]] = {}
    as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    # MPICH would copy through shared memory: to it both processes are on one host.
    between = {
        "MOBIUS_INTERFACE": "host0",
        "MPIR_CVAR_NOLOCAL": "1",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "host0",
    }

    def note(library: str, command: list[str], settings: dict[str, str]) -> None:
        done = subprocess.run(
            command, cwd=root, env={**os.environ, **as_root, **settings},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        for memory, name, value in _MPI_LINE.findall(done.stdout):
            found.setdefault(f"{library} {memory}: {name}", []).append(float(value))

    with tempfile.TemporaryDirectory(prefix="mob-") as folder:
        for mpi, words in _MPI_WORDS.items():
            programs = root / ".mobius" / "peers" / mpi / "bin"
            windows = f"{folder}/{mpi}"
            build = [str(programs / "mpicc"), "-O2", "bench/fronts/mpi.c", "-o", windows]
            if not Path(build[0]).is_file() or subprocess.run(build, cwd=root).returncode != 0:
                continue
            launcher = [str(programs / "mpiexec"), "-n", "2", *words]
            mobius = [str(root / PROGRAMS / "mobius"), "mpirun", "--quiet"]
            network = ["unshare", "--net", "sh", "-c", f'{_MPI_NETWORK} && exec "$@"', "sh"]
            hosts = [*launcher, "unshare", "--user", "--map-root-user", windows, "two hosts"]
            preload = {"LD_PRELOAD": str(root / "build/release/lib/libmobius_mpich.so")}
            for _ in range(LAUNCHES):
                note(mpi, [*launcher, windows], {})
                note(f"{mpi}+mobius", [*mobius, *launcher, windows], {})
                if mpi == "mpich":  # the other one starts no processes that share no memory with it
                    note(mpi, [*network, *hosts], between)
                    note(f"{mpi}+mobius", [*network, *hosts], {**between, **preload})
    return [
        {"key": key, "ns": statistics.median(all_), "low_ns": min(all_), "high_ns": max(all_),
         "launches": len(all_)}
        for key, all_ in found.items()
    ]  # fmt: skip


PARTS: Final[dict[str, Callable[[Path], list[Figure]]]] = {
    "instructions": _instructions,
    "micro": _micro,
    "libraries": _libraries,
    "network": _network,
    "scheduler-1gbit": lambda root: _scheduler(root, "1gbit"),
    "scheduler": lambda root: _scheduler(root, ""),
    "scale": _scale,
    "dynamic": dynamic.figures,
    "lapi": lambda root: _beside_native(root, "micro_lapi"),
    "armci": _protocols,
    "shmem": _shmem,
    "upc": _upc,
    "apex": _apex,
    "mpi": _mpi,
    "lu": lambda root: applications.lu(root, "plain"),
    "lu-blas": lambda root: applications.lu(root, "blas"),
    "lu-hosts": applications.lu_hosts,
    "md": applications.md,
    "md-hosts": applications.md_hosts,
}


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.strip()


def _commit(root: Path) -> str:
    """The commit that was measured; with a + where files of it were changed since."""
    name = _git(root, "rev-parse", "--short=10", "HEAD") or "unknown"
    changed = _git(root, "status", "--porcelain", "-uno", "--", ".", ":!docs", ":!*.md")
    return name + ("+" if changed else "")


def _version(root: Path) -> str:
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(mobius VERSION ([\d.]+)", text)
    if found is None:
        raise DocsError("CMakeLists.txt does not say which version this is")
    return found[1]


def run(root: Path, parts: list[str]) -> int:
    """Records the parts that are named, or all."""
    from mobius_instrument.machine.host import describe_host

    if unknown := [part for part in parts if part not in PARTS]:
        raise DocsError(f"there is no part '{unknown[0]}'; there are: {' '.join(PARTS)}")
    host = describe_host()
    host["kernel"] = str(host["kernel"]).partition("-")[0]
    for part in parts or PARTS:
        print(f"mobius docs: recording {part}", file=sys.stderr)
        others = Others()
        figures = PARTS[part](root)
        if not figures:
            raise DocsError(f"part '{part}' measured nothing")
        about = {
            "command": f"./mobius docs record {part}",
            "date": datetime.date.today().isoformat(),
            "version": _version(root),
            "commit": _commit(root),
            "others": round(others.average(), 2),
            "host": {name: value for name, value in host.items() if name != "hostname"},
        }
        write(root / FOLDER / f"{part}.jsonl", about, figures)
    return 0
