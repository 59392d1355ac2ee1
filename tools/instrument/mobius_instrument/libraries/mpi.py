# SPDX-License-Identifier: BSD-3-Clause
"""Any MPI, given its compiler: which one it is, its test-suite, and how to call its launcher."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mobius_instrument.errors import system_reason
from mobius_instrument.libraries.base import (
    AS_ROOT,
    ON_MOBIUS,
    Candidate,
    Context,
    Library,
    Start,
    application_command,
    as_two_jobs,
    between_hosts,
    cells,
    hash_files,
    missing,
)
from mobius_instrument.libraries.building import (
    COMPILE_FLAGS,
    COMPILE_LIMIT_S,
    build,
    failure_of,
    find_compiler,
    made_nothing,
    no_launcher,
    run_tool,
    turns_source,
)
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.results import LibraryRecord

_SYNCS: Final = ("flush", "fence", "pscw", "lock")
_MEMORIES: Final = ("allocate", "create")
MPI_CELLS: Final = (
    *cells("pingpong", ("put", "get"), _SYNCS, _MEMORIES),
    *cells("pingpong", ("sendrecv",), ("none",), ("local",)),
    # Active synchronisation needs the partner, which has no part in this experiment.
    *cells("completion", ("put", "get"), ("flush", "lock"), _MEMORIES),
)

_IDENTIFY_LIMIT_S: Final = 60.0

# MPI_Get_library_version may be called before MPI_Init, so this needs no launcher.
_IDENTIFY_SOURCE: Final = """\
#include <mpi.h>
#include <stdio.h>
int main(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return 1;
  printf("%s\\n", text);
  return 0;
}
"""

# Expanded by the preprocessor only: an MPI that does not link has a header, too.
_STANDARD_SOURCE: Final = """\
#include <mpi.h>
standard MPI_VERSION MPI_SUBVERSION
"""

_FAMILIES: Final = (
    # family, name in reports, how its version text begins
    ("openmpi", "Open MPI", r"Open MPI v?([0-9][\w.]*)"),
    ("intel", "Intel MPI", r"Intel\(R\) MPI Library ([0-9][\w. ]*?)(?= for|\s*$|\n)"),
    ("mpich", "MVAPICH", r"MVAPICH2? Version\s*:\s*(\S+)"),
    ("mpich", "MPICH", r"MPICH Version:\s*(\S+)"),
)


@dataclass(frozen=True)
class MpiPlace:
    """Where an MPI is: its compiler, its launcher, and what both need in the environment."""

    name: str
    mpicc: Path
    launcher: Path | None
    origin: str
    environment: Mapping[str, str]
    # Words before the launcher: those of `mobius mpirun`.
    before: tuple[str, ...] = ()


def describe_version(text: str) -> tuple[str, str, str]:
    """Family, name and version of what MPI_Get_library_version said."""
    for family, name, pattern in _FAMILIES:
        if found := re.search(pattern, text):
            return family, name, found.group(1).rstrip(",. ")
    first = text.strip().splitlines()[0][:40] if text.strip() else "unknown MPI"
    return "other", first, ""


def launcher_for(mpicc: Path) -> Path | None:
    """The launcher of the same installation: `mpiexec.mpich` beside `mpicc.mpich`."""
    suffix = mpicc.name.partition(".")[2]
    endings = [f".{suffix}", ""] if suffix else [""]
    for ending in endings:
        for stem in ("mpiexec", "mpirun"):
            path = mpicc.parent / f"{stem}{ending}"
            if os.access(path, os.X_OK):
                return path
    return None


def system_candidates(extra: tuple[Path, ...]) -> list[Candidate]:
    """Debian's MPIs, the `mpicc` in PATH unless it is one of them, and those named by `--mpicc`."""
    found: list[Candidate] = []
    seen: set[str] = set()

    def add(name: str, mpicc: Path, origin: str) -> None:
        found.append(
            Candidate(
                name=name,
                description=f"{mpicc}",
                present=True,
                prepare=lambda context: prepare_mpi(
                    MpiPlace(name, mpicc, launcher_for(mpicc), origin, {}), context
                ),
            )
        )

    for family in ("openmpi", "mpich", "lam"):
        if path := shutil.which(f"mpicc.{family}"):
            add(f"debian-{family}", Path(path), "Debian")
            seen.add(_identity(Path(path)))
    if (path := shutil.which("mpicc")) and _identity(Path(path)) not in seen:
        add("path", Path(path), "PATH")
        seen.add(_identity(Path(path)))
    for number, mpicc in enumerate(extra, start=1):
        add(f"mpicc{number}", mpicc, str(mpicc.parent.parent))
    return found


def _identity(mpicc: Path) -> str:
    """The same for all names of one installation: compilers of Open MPI are links to a wrapper that
    looks at its name, so the place counts, not the file."""
    alternatives = mpicc
    while alternatives.is_symlink() and not alternatives.name.startswith("mpicc."):
        alternatives = alternatives.parent / alternatives.readlink()
    return os.path.normpath(alternatives)


def check_mpicc(given: str, option: str = "--mpicc") -> Path:
    """An `--mpicc` argument: a path, or a name to find in PATH."""
    return find_compiler(given, option, "mpicc")


def prepare_mpi(place: MpiPlace, context: Context) -> Library:
    """Identifies the MPI, builds its program when the cache has none, and says how to launch it."""
    name = place.name
    record = LibraryRecord(
        library=name,
        label=f"{name} ({place.origin})",
        version="",
        kind="mpi",
        status="build-failed",
        mpicc=str(place.mpicc),
        launcher=str(place.launcher or ""),
        flags=" ".join(COMPILE_FLAGS),
    )
    sources = context.locations.suite_sources
    if sources is None:
        return missing(
            name, record.label, "mpi",
            "the sources of the test-suite are missing; set MOBIUS_SUITE_SOURCES to bench/suite",
        )  # fmt: skip
    if place.launcher is None:
        return Library(
            replace(record, status="missing", detail=no_launcher("mpiexec", place.mpicc))
        )
    version_text, failure = identify(place)
    if failure:
        return Library(replace(record, detail=failure))
    family, family_name, version = describe_version(version_text)
    label = " ".join(part for part in (family_name, version, f"({place.origin})") if part)
    record = replace(record, label=label, version=version)

    suite, key, failure = _build_suite(place, version_text, sources, context, label)
    if failure:
        return Library(replace(record, detail=_without_rma(failure)))
    launcher = place.launcher
    before = place.before
    launch, environment = launch_rules(family, launcher, context.cpus, Start(), before)

    server = _server(family, launcher, version)

    def start_suite(how: Start) -> tuple[str, ...]:
        start, _ = launch_rules(family, launcher, context.cpus, how, before)
        if not how.two_jobs:
            return *start, str(suite)
        job = (*start, *(_TO_SERVER if server else ()), str(suite))
        return as_two_jobs(job, job, server)

    def by_messages(processes: int) -> tuple[str, ...]:
        return start_suite(Start(processes, processes))

    library = Library(
        record=replace(record, status="ready", launcher=" ".join(launch)),
        cells=MPI_CELLS,
        environment={**place.environment, **environment},
        fingerprint=key,
        suite=start_suite,
        suite_kind="mpi",
        # The front shares memory whatever the MPI is told.
        by_messages=by_messages if family in MESSAGES and not before else None,
        messages_environment=MESSAGES.get(family, {}),
        fronted=None if before else lambda: _fronted(place, family, label, context),
        applications=_applications(
            place,
            version_text,
            context,
            lambda how: launch_rules(family, launcher, context.cpus, how, before)[0],
        ),
    )

    def between(hosts: Hosts) -> Library:
        _, variables = rules_on_hosts(family, place, version, hosts, Start())
        return between_hosts(
            library,
            hosts,
            lambda how: (
                *rules_on_hosts(family, place, version, hosts, how)[0],
                *(_TO_SERVER if server and how.two_jobs else ()),
            ),
            suite,
            variables,
            server,
        )

    return replace(library, between=between) if family in ACROSS else library


# Families of MPI and the front that they use.
FRONTS: Final = {"openmpi": "ompi", "mpich": "mpich", "intel": "mpich"}


def _fronted(place: MpiPlace, family: str, label: str, context: Context) -> Library:
    """The same MPI started by `mobius mpirun`: its windows are on this Möbius."""
    name, label = place.name + ON_MOBIUS, _label_on_mobius(label)
    mobius = context.locations.program("mobius")
    front = FRONTS.get(family)
    if mobius is None or front is None:
        what = "there is no front for this MPI" if mobius else "run `mobius build`"
        return missing(name, label, "front", what)
    tree = mobius.resolve().parents[1]
    shared = [tree / "lib" / f"libmobius_{front}.so", tree / "lib" / "libmobius.so"]
    if not shared[0].is_file():
        return missing(name, label, "front", _why_no_front(tree, front) or f"no {shared[0]}")
    words = (str(mobius), "mpirun", "--quiet", "--front", front)
    library = prepare_mpi(replace(place, name=name, before=words), context)
    return replace(
        library,
        record=replace(library.record, kind="front", label=label),
        fingerprint=f"{library.fingerprint}|{hash_files(mobius, *shared)}",
    )


def _label_on_mobius(label: str) -> str:
    """Before the origin, which is left out where the rest tells enough."""
    what, bracket, origin = label.partition(" (")
    return f"{what} on Möbius{bracket}{origin}"


def _why_no_front(tree: Path, front: str) -> str:
    """What the build has recorded of a front that it did not make."""
    try:
        lines = (tree / "share" / "mobius" / "mpi-fronts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    for line in lines:
        abi, _, told = line.partition("|")
        state, _, reason = told.partition("|")
        if abi == front and state != "made":
            return f"libmobius_{front} was not built: {reason}"
    return ""


def on_mobius(known: list[Candidate], locations: Locations) -> list[Candidate]:
    """For each MPI the same on Möbius, behind it; none where no front was built."""
    mobius = locations.program("mobius")
    if mobius is None or not any((mobius.resolve().parents[1] / "lib").glob("libmobius_*.so")):
        return known
    found = []
    for candidate in known:
        found += [
            candidate,
            Candidate(
                name=candidate.name + ON_MOBIUS,
                description=f"{candidate.description}, with its windows on this Möbius",
                present=candidate.present,
                prepare=lambda context, base=candidate: _prepare_fronted(base, context),  # type: ignore[misc]
            ),
        ]
    return found


def _prepare_fronted(base: Candidate, context: Context) -> Library:
    library = base.prepare(context)
    name, label = library.name + ON_MOBIUS, _label_on_mobius(library.record.label)
    if library.fronted is None:
        return missing(name, label, "front", library.record.detail)
    return library.fronted()


# Settings that keep processes of one host from sharing memory: in MPICH itself, and in UCX where
# MPICH uses it. Open MPI's one-sided components share memory whatever its transports are told.
MESSAGES: Final[dict[str, dict[str, str]]] = {
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "^shm"},
    "intel": {"I_MPI_FABRICS": "ofi"},
}
# Families whose launchers are known to start processes on other hosts.
ACROSS: Final = ("openmpi", "mpich", "intel")


# Connects jobs of different launchers, where the launchers need it.
_TO_SERVER: Final = ("--ompi-server", "{server}")


def _server(family: str, launcher: Path, version: str) -> tuple[str, ...]:
    """Of Open MPI up to 4; later ones have none, and those of MPICH's family need none."""
    program = launcher.parent / "ompi-server"
    if family != "openmpi" or _major(version) >= 5 or not os.access(program, os.X_OK):
        return ()
    return str(program), "--no-daemonize", "--report-uri"


def rules_on_hosts(
    family: str, place: MpiPlace, version: str, hosts: Hosts, how: Start
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Words and environment that start processes on hosts, in blocks and unbound; what they spawn
    is for the second host."""
    start = (*place.before, str(place.launcher), "-n", str(how.processes))
    blocks = hosts.blocks(how.processes)
    if how.host is not None:
        blocks = [(hosts.names[how.host], how.processes)]
    elif how.together > how.processes:
        blocks = [(hosts.names[0], how.processes), (hosts.names[1], how.together - how.processes)]
    if family == "openmpi":
        # An installation that is not where it was made for: daemons on other hosts are told.
        prefix = ("--prefix", str(place.mpicc.parent.parent)) if place.environment else ()
        where = ",".join(f"{name}:{count}" for name, count in blocks)
        variables = {
            "OMPI_MCA_plm_rsh_agent": hosts.agent,
            "PRTE_MCA_plm_ssh_agent": hosts.agent,
            **(dict.fromkeys(AS_ROOT, "1") if os.geteuid() == 0 else {}),
        }
        if hosts.interface:
            variables["OMPI_MCA_btl_tcp_if_include"] = hosts.interface
            variables |= {"MOBIUS_INTERFACE": hosts.interface} if place.before else {}
        # mpirun of version 4 hands on OMPI_MCA_ variables, that of version 5 too.
        slots = ("--map-by", "slot:OVERSUBSCRIBE" if _major(version) >= 5 else "slot")
        crowd = () if _major(version) >= 5 else ("--oversubscribe",)
        return (*start, *prefix, "--host", where, *slots, *crowd, "--bind-to", "none"), variables
    names = ("-hosts", ",".join(name for name, _ in blocks), "-ppn", str(blocks[0][1]))
    interface = ("-iface", hosts.interface) if hosts.interface else ()
    ours = {"MOBIUS_INTERFACE": hosts.interface} if hosts.interface and place.before else {}
    if family == "intel":
        agent = ("-bootstrap", "ssh", "-bootstrap-exec", hosts.agent)
        return (*start, *agent, *interface, *names), {
            **_INTEL, "I_MPI_FABRICS": "shm:ofi", **ours,
        }  # fmt: skip
    agent = ("-launcher", "ssh", "-launcher-exec", hosts.agent)
    binding = () if how.dynamic else ("-bind-to", "none")
    return (*start, *agent, *interface, *names, *binding), ours


# It does not bind, and without a fabric's hardware its network is TCP.
_INTEL: Final = {"I_MPI_PIN": "0", "FI_PROVIDER": "tcp"}


def _major(version: str) -> int:
    number = version.partition(".")[0]
    return int(number) if number.isdigit() else 0


def launch_rules(
    family: str, launcher: Path, cpus: int, how: Start, before: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Programs pin themselves, so launchers must not. `before`: as in MpiPlace."""
    start = (*before, str(launcher), "-n", str(how.processes))
    if family == "openmpi":
        as_root = dict.fromkeys(AS_ROOT, "1")
        crowd = ("--oversubscribe",) if cpus < how.together else ()
        return (*start, "--bind-to", "none", *crowd), as_root if os.geteuid() == 0 else {}
    if family == "mpich":
        # Hydra of MPICH 5.0 loses the connection to what is spawned when it is told how to bind; it
        # does not bind without being told.
        return (*start, "-bind-to", "none") if how.together == how.processes else start, {}
    if family == "intel":
        # On one host its shared memory is enough, but for processes that come later.
        later = ("-genv", "I_MPI_FABRICS", "shm:ofi") if how.dynamic else ()
        return (*start, *later), {**_INTEL, "I_MPI_FABRICS": "shm"}
    return start, {}


def identify(place: MpiPlace) -> tuple[str, str]:
    """What the library says of itself, or why it says nothing."""
    with tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        (folder / "identify.c").write_text(_IDENTIFY_SOURCE, encoding="utf-8")
        try:
            compiled = run_tool(
                [str(place.mpicc), "-o", "identify", "identify.c"],
                place.environment, folder, COMPILE_LIMIT_S,
            )  # fmt: skip
            if failure := failure_of(f"{place.mpicc.name}", compiled, COMPILE_LIMIT_S):
                return "", _too_old(place, folder) or failure
            if not (folder / "identify").exists():
                return "", made_nothing(place.mpicc, "an MPI")
            said = run_tool(
                [str(folder / "identify")], place.environment, folder, _IDENTIFY_LIMIT_S
            )
        except OSError as error:
            return "", f"{place.mpicc} cannot be run: {system_reason(error)}"
        failure = failure_of("MPI_Get_library_version", said, _IDENTIFY_LIMIT_S)
        return said.output.strip(), failure


def _too_old(place: MpiPlace, folder: Path) -> str:
    """That an MPI is older than MPI-3, in words; "" where that is not why it cannot be used."""
    (folder / "standard.c").write_text(_STANDARD_SOURCE, encoding="utf-8")
    told = run_tool(
        [str(place.mpicc), "-E", "-P", "standard.c"], place.environment, folder, _IDENTIFY_LIMIT_S
    )
    found = re.search(r"^standard (\d+) (\d+)", told.output, re.MULTILINE)
    if found is None or int(found[1]) >= 3:
        return ""
    return (
        f"it is an MPI-{found[1]}.{found[2]}: the programs of the instrument need MPI-3, of 2012"
        " (MPI_Win_allocate, MPI_Win_flush and what goes with them)"
    )


def _without_rma(failure: str) -> str:
    """What a compiler or linker said, with what it means where one-sided calls are missing."""
    if re.search(r"\bMPI_(Win|Put|Get|R?(put|get)|Accumulate|Fetch_and_op)\w*", failure):
        return f"it has no one-sided communication as of MPI-3: {failure}"
    return failure


def suite_sources(folder: Path) -> list[Path]:
    """The sources of the test-suite for MPI: everything but other libraries' blocks."""
    places = (folder, folder / "blocks", folder / "experiments", folder / "mpi")
    own = [path for place in places for path in sorted(place.glob("*.c"))]
    return own + turns_source(folder)


# Which sources are of processes that come later, and how the lack of what they need is reported.
_DYNAMIC: Final = ("dynamic.c", "arrival.c")
_NO_SPAWN: Final = re.compile(
    r"\bMPI_(Comm_(spawn|accept|connect|disconnect|get_parent)|(Open|Close)_port)\b"
)


def _build_suite(
    place: MpiPlace, version_text: str, folder: Path, context: Context, label: str
) -> tuple[Path, str, str]:
    """The test-suite, its key, and why it could not be built ("" when it was)."""
    headers = [*sorted(folder.glob("*.h")), *sorted(folder.glob("mpi/*.h"))]

    def built(files: list[Path]) -> tuple[Path, str, str]:
        return build(
            place.mpicc, place.environment, version_text, context, label,
            name="suite_mpi", files=files, headers=headers, include=folder,
        )  # fmt: skip

    files = suite_sources(folder)
    program, key, failure = built(files)
    if _NO_SPAWN.search(failure):
        context.announce(f"{label}: nothing that is spawned or connected is measured: {failure}")
        program, key, failure = built([path for path in files if path.name not in _DYNAMIC])
    return program, key, failure


# The compiler, the file that is of this library, and flags.
_APPLICATIONS: Final = {
    "lu": ("lu", "mpicc", "world/mpi.c", COMPILE_FLAGS),
    "md": ("md", "mpicxx", "processes/mpi.cpp", ("-std=c++20", "-O3")),
    "md-messages": ("md", "mpicxx", "processes/messages.cpp", ("-std=c++20", "-O3")),
}


def _applications(
    place: MpiPlace,
    version_text: str,
    context: Context,
    start: Callable[[Start], tuple[str, ...]],
) -> dict[str, Callable[[Start], tuple[str, ...]]]:
    """The applications with this MPI. Each is compiled when it is launched for the first time."""
    found: dict[str, Callable[[Start], tuple[str, ...]]] = {}
    for name, (folder_name, kind, own, flags) in _APPLICATIONS.items():
        compiler = place.mpicc.with_name(place.mpicc.name.replace("mpicc", kind))
        folder = context.locations.app_sources
        if folder is None or not os.access(compiler, os.X_OK):
            continue
        folder /= folder_name
        files = [*sorted(folder.glob("*.c*")), folder / own]
        files = [path for path in files if path.suffix in (".c", ".cpp")]
        key = hashlib.sha256(f"{compiler}\0{version_text}\0{flags}".encode())
        for path in (*files, *sorted(folder.rglob("*.h"))):
            key.update(path.read_bytes())
        program = context.locations.cache / "applications" / key.hexdigest()[:16] / name
        build_it = (str(compiler), *flags, *map(str, files), "-lm", "-ldl")

        def command(
            how: Start, program: Path = program, build_it: tuple[str, ...] = build_it
        ) -> tuple[str, ...]:
            return application_command((*start(how), str(program)), build_it)

        found[name] = command
    return found
