# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `mobius run` share: starting it, waiting on conditions, seeing processes."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

ROOT = Path(__file__).resolve().parents[2]
HANG_SECONDS = 120  # far beyond what anything here takes: only a hang gets there
MARK = "LAUNCH_TEST_MARK"
T = TypeVar("T")


def command() -> str:
    """Path of the command under test."""
    folder = os.environ.get("MOBIUS_HOME_BIN") or str(ROOT / "build" / "release" / "bin")
    return str(Path(folder) / "mobius")


def wait_until(condition: Callable[[], T], what: str) -> T:
    """Poll `condition` until it gives something true, and return that."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (result := condition()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.002)
    return result


def state_of(pid: int) -> str:
    """State letter of a process ('Z' ended, 'T' stopped), '' when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2]


def parent_of(pid: int) -> int:
    """Parent of a process, 0 when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat[stat.rindex(")") + 2 :].split()[1])


def name_of(pid: int) -> str:
    """Name of a process, '' when there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def variables_of(pid: int) -> list[bytes]:
    """Environment of a process as it was started, nothing when there is none."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def all_processes() -> list[int]:
    """Every process of the host."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def children_of(parent: int) -> list[int]:
    """Children of a process that have not ended."""
    return [p for p in all_processes() if parent_of(p) == parent and state_of(p) not in ("Z", "")]


def python(*lines: str) -> list[str]:
    """Words that run a Python program given as lines."""
    return [sys.executable, "-c", "\n".join(lines)]


PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_CALL, IS_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000


def refuse_calls(*calls: int) -> None:
    """Has the kernel refuse these calls to this process and those it starts."""
    steps = [(LOAD_CALL, 0, 0, 0)]
    for left, call in zip(reversed(range(len(calls))), calls, strict=True):
        steps.append((IS_EQUAL, left + 1, 0, call))
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER)):
        words = [*arguments, ctypes.byref(header)] if len(arguments) == 2 else arguments
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


class Launcher:
    """Starts `mobius run`, and knows every process that came of it by a variable it inherits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.started: list[subprocess.Popen[bytes]] = []

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Build the environment for the command: ours without settings, and the mark."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
        return {**inherited, MARK: self.mark, "D": str(self.folder), **(changes or {})}

    def run(
        self,
        *words: str,
        data: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        preexec_fn: Callable[[], None] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `mobius run WORDS` to its end."""
        return subprocess.run(
            [command(), "run", *words],
            input=data,
            capture_output=True,
            env=self.environment(env),
            timeout=HANG_SECONDS,
            check=False,
            cwd=cwd,
            pass_fds=pass_fds,
            preexec_fn=preexec_fn,
        )

    def start(
        self,
        *words: str,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        prefix: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start `mobius run WORDS` and return at once."""
        process = subprocess.Popen(
            [*prefix, command(), "run", *words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=self.environment(),
        )
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen[bytes]) -> tuple[int, bytes, str]:
        """Wait for the end: exit code, standard output, standard error."""
        out, err = process.communicate(timeout=HANG_SECONDS)
        return process.returncode, out or b"", (err or b"").decode()

    def marked(self) -> list[int]:
        """Processes that were started by this object, directly or not, and have not ended."""
        wanted = f"{MARK}={self.mark}".encode()
        return [
            pid
            for pid in all_processes()
            if wanted in variables_of(pid) and state_of(pid) not in ("Z", "")
        ]

    def named(self, name: str) -> list[int]:
        """Those of them whose program is `name`."""
        return [pid for pid in self.marked() if name_of(pid) == name]

    def worker(self, process: subprocess.Popen[bytes]) -> int:
        """Process id of the launcher's second process."""
        children = wait_until(lambda: children_of(process.pid), "the worker starts")
        assert len(children) == 1
        return children[0]

    def file(self, name: str) -> str:
        """Wait for a file that a rank writes in one piece, and return its text."""
        path = self.folder / name
        wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{name} is written")
        return path.read_text().strip()

    def ranks(self, count: int) -> list[int]:
        """Process ids that ranks wrote to pid.RANK."""
        return [int(self.file(f"pid.{rank}")) for rank in range(count)]

    def clean_up(self) -> list[str]:
        """End processes that were left behind, and name them.

        Those of a job that still runs do not count: its test failed and gave up.
        """
        running = any(process.poll() is None for process in self.started)
        left = [] if running else [f"{pid} {self._command_line(pid)}" for pid in self._settled()]
        for pid in self.marked():
            os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.communicate()
        return left

    def _settled(self) -> list[int]:
        # Killed processes may need a moment to end.
        deadline = time.monotonic() + 10
        while (left := self.marked()) and time.monotonic() < deadline:
            time.sleep(0.002)
        return left

    @staticmethod
    def _command_line(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            return ""
