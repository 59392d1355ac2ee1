# SPDX-License-Identifier: BSD-3-Clause
"""`./mobius test --soak MINUTES`: many short jobs, whose ranks are killed at random moments.

Each job makes a random mix of operations (tests/faults/soak), chosen by its seed. Afterwards every
byte must be right, the survivors must have got the errors that failure.h promises and no others,
and nothing may be left behind. Where this user may, all jobs run in namespaces of their own, so
that nothing else can be taken for something left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from mobius_setup.soak_plan import Plan, judge, make_plan
from mobius_setup.soak_progress import Progress

MARK = "SOAK_MARK"
# Far beyond what any job takes on a loaded machine.
HANG_S = 180.0
# Killed processes may need a moment to end.
SETTLE_S = 20.0
# After so many jobs none runs for a moment, and nothing may be left.
BATCH = 100
# Libraries that libfabric loads take the signals of crashes while they are loaded, and exit with 1.
NO_OTHER_HANDLERS = {"IPATH_NO_BACKTRACE": "1", "HFI_NO_BACKTRACE": "1"}
_INSIDE = "MOBIUS_SOAK_INSIDE"
# The value of _INSIDE where the jobs have a folder /tmp of their own, and where they have not.
_OWN_TMP, _COMMON_TMP = "own-tmp", "common-tmp"


@dataclass
class Tally:
    """What the jobs so far have come to."""

    jobs: int = 0
    on_hosts: int = 0
    failures: list[int] = field(default_factory=list)
    deaths: Counter[str] = field(default_factory=Counter)

    def add(self, plan: Plan, failed: bool) -> None:
        """Counts one job."""
        self.jobs += 1
        self.on_hosts += plan.hosts > 1
        self.deaths.update(fate.kind for fate in plan.fates)
        if plan.launcher is not None:
            self.deaths["launcher"] += 1
        if failed:
            self.failures.append(plan.seed)

    @property
    def kills(self) -> int:
        """Ranks and launchers that were ended."""
        return sum(count for kind, count in self.deaths.items() if kind != "stop")


@dataclass(frozen=True)
class Bed:
    """Where jobs run."""

    root: Path
    folder: Path
    is_private: bool
    has_own_tmp: bool
    # In the environment of all processes of all jobs; see MARK.
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    # What others had put into folders that jobs share with them.
    earlier: frozenset[Path] = field(default_factory=lambda: frozenset(_named_after_us()))

    @property
    def command(self) -> str:
        """Path of `mobius`."""
        return str(self.root / "build" / "release" / "bin" / "mobius")

    @property
    def driver(self) -> str:
        """Path of the program that the jobs run."""
        return str(self.root / "build" / "release" / "bin" / "soak_driver")

    def environment(self, plan: Plan, mark: str) -> dict[str, str]:
        """Ours without settings, and those of the plan."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
        changes = {"TMPDIR": str(self.folder), "LC_ALL": "C", **plan.settings}
        return {**inherited, **changes, **NO_OTHER_HANDLERS, MARK: mark}


def main(arguments: list[str]) -> int:
    """Runs jobs as the command line says; returns the exit code."""
    options = _parse(arguments)
    tmp = Path("/tmp")
    needs_tmp = any(path.is_relative_to(tmp) for path in (options.root, Path.cwd()))
    namespaces = _namespaces(not needs_tmp)
    if _INSIDE not in os.environ and _can_have(namespaces):
        words = [*namespaces, sys.executable, "-m", "mobius_setup.soak", *arguments]
        return _run_inside(words, _COMMON_TMP if needs_tmp else _OWN_TMP)
    is_private = _INSIDE in os.environ
    if is_private:
        _start_loopback()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="soak-", dir=options.root / ".mobius") as folder:
        has_own_tmp = os.environ.get(_INSIDE) == _OWN_TMP
        bed = Bed(options.root, Path(folder), is_private, has_own_tmp)
        return _soak(bed, options)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./mobius test", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--soak-seed", type=int, default=None, metavar="N")
    parser.add_argument("--soak-jobs", type=int, default=0, metavar="N")
    parser.add_argument("--soak-hosts", choices=("one", "virtual", "both"), default="both")
    at_once = 2 * (os.cpu_count() or 1)
    parser.add_argument("--soak-at-once", type=int, default=at_once, metavar="N")
    return parser.parse_args(arguments)


def _namespaces(with_own_tmp: bool) -> tuple[str, ...]:
    """A command that runs the words after it in namespaces of their own."""
    mounts = "mount --bind /dev/null /proc/kallsyms; mount -t tmpfs tmpfs /dev/shm; "
    if with_own_tmp:
        mounts += "mount -t tmpfs tmpfs /tmp; "
    return (
        "unshare",
        *("--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc"),
        *("sh", "-c", mounts + '"$@"; exit $?', "sh"),
    )


def _can_have(namespaces: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run(
            [*namespaces, "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run_inside(words: list[str], inside: str) -> int:
    process = subprocess.Popen(words, env={**os.environ, _INSIDE: inside})
    while process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt):  # the process inside has it, too, and sums up
            process.wait()
    return process.returncode


def _start_loopback() -> None:
    """Sets the loopback interface of a new network namespace up (SIOCSIFFLAGS)."""
    import fcntl
    import socket
    import struct

    up_and_running = 0x1 | 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", up_and_running))


def _soak(bed: Bed, options: argparse.Namespace) -> int:
    tally = Tally()
    first = options.soak_seed if options.soak_seed is not None else int(time.time() * 1000) % 10**9
    where = {"one": False, "virtual": True, "both": None}[options.soak_hosts]
    deadline = time.monotonic() + options.soak * 60 if options.soak else None
    most = options.soak_jobs or (None if deadline else 1)
    repeats = options.soak_seed is not None and not options.soak_jobs
    print(f"seeds from {first} on; repeat one with --soak-seed SEED", flush=True)
    logs = bed.root / ".mobius" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    seeds = (first if repeats else first + at for at in range(10**9))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    begin = time.monotonic()
    with Progress(deadline, most) as progress:
        while not stop.is_set() and not _is_over(tally, deadline, most):
            try:
                count = BATCH if most is None else min(BATCH, most - tally.jobs)
                with ThreadPoolExecutor(options.soak_at_once) as pool:
                    _run_batch(pool, bed, seeds, count, where, deadline, tally, logs, progress)
            except KeyboardInterrupt:
                stop.set()
            if left := _left_behind(bed):
                tally.failures.append(-1)
                text = "\n".join(left)
                (logs / "soak-left.log").write_text(text + "\n", encoding="utf-8")
                progress.say(f"left behind by one of the last {BATCH} jobs: {text}")
    _end_marked(f"{MARK}={bed.mark}")
    seconds = time.monotonic() - begin
    _sum_up(tally, seconds)
    return 1 if tally.failures or tally.jobs == 0 else 0


def _is_over(tally: Tally, deadline: float | None, most: int | None) -> bool:
    if most is not None and tally.jobs >= most:
        return True
    return deadline is not None and time.monotonic() >= deadline


def _run_batch(
    pool: ThreadPoolExecutor,
    bed: Bed,
    seeds: Iterator[int],
    count: int,
    where: bool | None,
    deadline: float | None,
    tally: Tally,
    logs: Path,
    progress: Progress,
) -> None:
    lock = threading.Lock()

    def run_one(seed: int) -> None:
        if deadline is not None and time.monotonic() >= deadline:
            return
        plan = make_plan(seed, where)
        report = run_job(bed, plan)
        with lock:
            tally.add(plan, bool(report))
            if report:
                log = logs / f"soak-{seed}.log"
                log.write_text(report, encoding="utf-8")
                progress.say(f"seed {seed} failed: {log}\n{_beginning(report)}")
            progress.show(tally.jobs, tally.on_hosts, tally.kills, len(tally.failures))

    for done in [pool.submit(run_one, next(seeds)) for _ in range(count)]:
        done.result()


def _beginning(report: str) -> str:
    return "\n".join(f"  {line}" for line in report.splitlines()[:6])


def run_job(bed: Bed, plan: Plan) -> str:
    """Runs a job; returns "" if everything was right, else a report."""
    mark = f"{bed.mark}-{uuid.uuid4().hex}"
    words = [bed.command, "run", *plan.words(bed.driver)]
    environment = bed.environment(plan, mark)
    process = subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    problems: list[str] = []
    stacks = ""
    if plan.launcher is not None:
        time.sleep(plan.launcher.after_s)
        _meet(process.pid, plan)
    try:
        out, err = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        stacks = _stacks(mark)
        problems.append(f"hangs: still running after {HANG_S:.0f} s")
        _end_marked(f"{MARK}={mark}")
        out, err = process.communicate()
    else:
        problems += judge(
            plan, process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
        )
    if left := _settled(mark):
        stacks = stacks or _stacks(mark)
        problems += [f"process left behind: {_describe(pid)}" for pid in left]
        _end_marked(f"{MARK}={mark}")
    if not problems:
        return ""
    changes = [f"{name}={value}" for name, value in plan.settings.items()]
    parts = [
        *problems,
        "",
        str(plan),
        " ".join([*changes, *words]),
        f"exit code {process.returncode}",
        f"--- output\n{out.decode(errors='replace')}",
        f"--- errors\n{err.decode(errors='replace')}",
        f"--- stacks\n{stacks}",
    ]
    return "\n".join(parts) + "\n"


def _meet(front: int, plan: Plan) -> None:
    assert plan.launcher is not None
    number = signal.Signals[plan.launcher.signal]
    workers = _children(front) if plan.launcher.whom != "launcher" else []
    targets = [] if plan.launcher.whom == "worker" else [front]
    for pid in [*targets, *workers]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _children(parent: int) -> list[int]:
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _marked(mark: str) -> list[int]:
    """The processes, none of them ended, that have this in their environment."""
    wanted = mark.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted not in (entry / "environ").read_bytes():
                continue
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if stat[stat.rindex(")") + 2] not in "ZX":
            found.append(int(entry.name))
    return found


def _settled(mark: str) -> list[int]:
    deadline = time.monotonic() + SETTLE_S
    while (left := _marked(f"{MARK}={mark}")) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _end_marked(mark: str) -> None:
    for pid in _marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _describe(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return str(pid)
    return f"{pid} {words.decode(errors='replace')}"


def _stacks(mark: str) -> str:
    """What each process of a job is doing, by gdb where it is installed."""
    parts = []
    for pid in _marked(f"{MARK}={mark}"):
        parts.append(_describe(pid))
        if shutil.which("gdb"):
            words = ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    words, capture_output=True, text=True, errors="replace", timeout=60
                )
                parts.append(done.stdout)
                continue
        for task in Path(f"/proc/{pid}/task").glob("*"):
            for name in ("wchan", "syscall", "stack"):
                with contextlib.suppress(OSError):
                    parts.append(f"{task.name} {name}: {(task / name).read_text()}")
    return "\n".join(parts)


def _named_after_us() -> list[Path]:
    """Files in the folders of all programs that may be of jobs."""
    found: list[Path] = []
    for folder in ("/dev/shm", "/tmp"):
        with contextlib.suppress(OSError):
            found += [path for path in Path(folder).iterdir() if "mobius" in path.name]
    return found


def _left_behind(bed: Bed) -> list[str]:
    """What is left while no job runs."""
    left = [f"process {_describe(pid)}" for pid in _marked(f"{MARK}={bed.mark}")]
    left += [f"file {path}" for path in bed.folder.iterdir()]
    for folder, is_own in (("/dev/shm", bed.is_private), ("/tmp", bed.has_own_tmp)):
        if is_own:
            with contextlib.suppress(OSError):
                left += [f"file {path}" for path in Path(folder).iterdir()]
    left += [
        f"file {path}"
        for path in _named_after_us()
        if path not in bed.earlier and f"file {path}" not in left
    ]
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]:
            name = line.split()[-1]
            if name.startswith("@") and bed.is_private:
                left.append(f"socket {name}")
    return left


def _sum_up(tally: Tally, seconds: float) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.deaths.items()))
    print(
        f"{tally.jobs} jobs in {seconds:.0f} s ({tally.jobs / max(seconds, 0.001):.1f}/s): "
        f"{tally.jobs - tally.on_hosts} on one host, {tally.on_hosts} on virtual hosts; "
        f"{kinds or 'nothing was killed'}"
    )
    seeds = [str(seed) for seed in tally.failures if seed >= 0]
    if seeds:
        print(f"failed seeds: {' '.join(seeds)}")
    failed = len(tally.failures)
    print(f"{tally.jobs - len(seeds)} passed, {failed} failed, 0 skipped", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
