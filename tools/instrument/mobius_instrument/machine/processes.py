# SPDX-License-Identifier: BSD-3-Clause
"""Starting other people's programs so that nothing of them is left, whatever they do.

Launchers put their processes into groups and sessions of their own, and may die before them. A tree
is therefore found in three ways: its process group, descent, and a token in the environment that
every process of it inherits.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mobius_instrument.machine.crowd import Meter, own_seconds
from mobius_instrument.machine.host import allowed_cpus

_TOKEN_NAME: Final = "INSTRUMENT_LAUNCH_TOKEN"
_KEPT_OUTPUT_BYTES: Final = 64 * 1024
_TERM_GRACE_S: Final = 2.0
_LEFTOVER_GRACE_S: Final = 1.0
_KILL_WAIT_S: Final = 5.0
# Seldom enough not to disturb the measurement.
_POLL_S: Final = 0.1
# On a crowded machine a spinning process is slow without hanging: it may take so many times longer.
# After this much silence we check who else runs.
_MOST_PATIENCE: Final = 6.0
_SILENCE_S: Final = 1.0
_HELD_SIGNALS: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

# Variables of an outer MPI or Möbius job that would affect the launched one, and of our entry
# script, which the engine would report as unknown settings.
_JOB_PREFIXES: Final = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL", "MPIR_", "HYDI_", "HYDRA_")
_JOB_NAMES: Final = frozenset(
    (
        "MOBIUS_JOB",
        "MOBIUS_RANK",
        "MOBIUS_PARENT",
        "MOBIUS_TAG",
        "MOBIUS_HOME_BIN",
        "MOBIUS_HOME_CACHE",
        "MOBIUS_SUITE_SOURCES",
        "PYTHONPATH",
    )
)

_libc = ctypes.CDLL(None, use_errno=True)


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process without variables of an outer job, plus `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _JOB_NAMES and not name.startswith(_JOB_PREFIXES)
    }
    return {**kept, **extra}


@dataclass
class Ended:
    """How a program ended. `hung`: it was ended because it wrote nothing for too long."""

    exit_code: int
    output: str
    seconds: float
    hung: bool = False
    leftovers: list[str] = field(default_factory=list)

    @property
    def signal_name(self) -> str:
        """The signal that ended the program, also in the form of shells and launchers (128 +
        number)."""
        number = -self.exit_code if self.exit_code < 0 else self.exit_code - 128
        try:
            return signal.Signals(number).name if number > 0 else ""
        except ValueError:
            return ""


@dataclass(frozen=True)
class _Process:
    """A process, identified so that a later one with the same number is not mistaken for it."""

    pid: int
    started: str

    def alive(self) -> bool:
        state = _stat(self.pid)
        return state is not None and state[2] == self.started and state[0] not in "ZX"


def _stat(pid: int) -> tuple[str, int, str] | None:
    """State, parent and start time."""
    try:
        content = _read(f"/proc/{pid}/stat")
    except OSError:
        return None
    fields = content[content.rindex(b")") + 2 :].split(None, 20)
    return fields[0].decode(), int(fields[1]), fields[19].decode()


def _read(path: str) -> bytes:
    """Reads a file of /proc. Several are read per process of the machine, so this avoids pathlib
    and buffers, which take most of the time."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _descendants(root: int) -> set[_Process]:
    children: dict[int, list[_Process]] = {}
    for pid in _all_pids():
        if (state := _stat(pid)) is not None:
            children.setdefault(state[1], []).append(_Process(pid, state[2]))
    found: set[_Process] = set()
    pending = [root]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child.pid)
    return found


def _holders(token: str) -> set[_Process]:
    needle = f"{_TOKEN_NAME}={token}".encode()
    found = set()
    for pid in _all_pids():
        if pid == os.getpid():
            continue
        try:
            environment = _read(f"/proc/{pid}/environ")
        except OSError:
            continue
        held = needle in environment and needle in environment.split(b"\0")
        if held and (state := _stat(pid)) is not None:
            found.add(_Process(pid, state[2]))
    return found


def _name(process: _Process) -> str:
    try:
        return Path(f"/proc/{process.pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return str(process.pid)


def _kill(processes: set[_Process]) -> None:
    for process in processes:
        if process.alive():
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


class _Tail:
    """The last part of a program's output."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._dropped = False

    def add(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > 2 * _KEPT_OUTPUT_BYTES:
            del self._data[:-_KEPT_OUTPUT_BYTES]
            self._dropped = True

    def text(self) -> str:
        text = self._data.decode("utf-8", errors="replace")
        return f"[…]{text}" if self._dropped else text


def run_watched(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    stall_s: float,
    progress: Callable[[], bool],
) -> Ended:
    """Runs a program to its end, or ends it when `progress` was false for `stall_s` seconds, up to
    six times longer where other programs have the CPUs.

    `progress` is called about ten times a second and says whether something new was measured. It
    may raise to stop the program (KeyboardInterrupt included); nothing of the program is left when
    this returns or raises. OSError when the program cannot be started.
    """
    token = secrets.token_hex(16)
    parent = os.getpid()
    # Orphans become our children: found by descent, and reaped if there is no init that does it.
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def in_child() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_SIGNALS)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    began = time.monotonic()
    process: subprocess.Popen[bytes] | None = None
    tail = _Tail()
    hung = False
    leftovers: list[str] = []
    try:
        # An interrupt between start and assignment would leave a process that nobody knows.
        with _signals_held():
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**environment, _TOKEN_NAME: token},
                cwd=folder,
                start_new_session=True,
                # Safe: no other thread of ours runs while libraries are launched.
                preexec_fn=in_child,  # noqa: PLW1509
            )
        hung = _watch(process, tail, stall_s, progress)
    finally:
        if process is not None:
            with _signals_held():
                leftovers = _end_tree(process, token)
                _read_rest(process, tail)
    progress()
    return Ended(
        exit_code=process.returncode,
        output=tail.text(),
        seconds=time.monotonic() - began,
        hung=hung,
        leftovers=[] if hung else leftovers,
    )


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(
    process: subprocess.Popen[bytes], tail: _Tail, stall_s: float, progress: Callable[[], bool]
) -> bool:
    """Waits for the end; returns true if nothing was measured for `stall_s` seconds."""
    tree = functools.partial(_tree_seconds, process.pid)
    silence: Meter | None = None
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        last_progress = time.monotonic()
        while not _has_ended(process):
            if not selector.get_map():
                time.sleep(_POLL_S)
            for key, _ in selector.select(_POLL_S):
                if data := os.read(key.fd, 65536):
                    tail.add(data)
                else:
                    selector.unregister(key.fileobj)
            if progress():
                last_progress, silence = time.monotonic(), None
                continue
            waited_s = time.monotonic() - last_progress
            if silence is None and waited_s > min(_SILENCE_S, stall_s / 2):
                silence = Meter(tree)
            if silence is not None and waited_s > stall_s:
                patience = silence.taken().patience(len(allowed_cpus()), _MOST_PATIENCE)
                if waited_s > stall_s * patience:
                    return True
    return False


def _tree_seconds(root: int) -> float:
    """The CPU time of this process, of a program and of all its descendants."""
    ticks = 0
    for pid in (root, *(one.pid for one in _descendants(root))):
        with contextlib.suppress(OSError):
            content = _read(f"/proc/{pid}/stat")
            # utime, stime, and those of children that were waited for.
            ticks += sum(map(int, content[content.rindex(b")") + 2 :].split()[11:15]))
    return own_seconds() + ticks / os.sysconf("SC_CLK_TCK")


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended. Does not reap it, so that its number is not reused."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _read_rest(process: subprocess.Popen[bytes], tail: _Tail) -> None:
    assert process.stdout is not None
    with contextlib.suppress(BlockingIOError):
        while data := os.read(process.stdout.fileno(), 65536):
            tail.add(data)
    process.stdout.close()


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(_POLL_S / 5)
    return met


def _end_tree(process: subprocess.Popen[bytes], token: str) -> list[str]:
    """Ends everything that `process` started; names what outlived it on its own.

    SIGTERM goes to the launcher's group first, so that a launcher can tidy up (files, other hosts).
    """
    tree = _descendants(process.pid)
    if not _has_ended(process):
        _signal_group(process.pid, signal.SIGTERM)
        if not _wait(lambda: _has_ended(process), _TERM_GRACE_S):
            tree |= _descendants(process.pid)
            process.send_signal(signal.SIGKILL)
    tree |= _holders(token)
    # Processes that the launcher has just ended may still be exiting.
    _wait(lambda: not any(one.alive() for one in tree), _LEFTOVER_GRACE_S)
    left = {one for one in tree | _holders(token) if one.alive() and one.pid != process.pid}
    names = sorted({_name(one) for one in left})
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    _kill(left)
    _wait(lambda: not _still_alive(left, token), _KILL_WAIT_S)
    _reap_orphans()
    return names


def _reap_orphans() -> None:
    for pid in _all_pids():
        state = _stat(pid)
        if state is not None and state[:2] == ("Z", os.getpid()):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _still_alive(left: set[_Process], token: str) -> bool:
    alive = {one for one in left | _holders(token) if one.alive()}
    _kill(alive)
    return bool(alive)
