# SPDX-License-Identifier: BSD-3-Clause
"""Where the kernel refuses cross-memory attach, as in some containers, all works without."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import subprocess
from pathlib import Path

import pytest
from launch_tools import HANG_SECONDS, command

SUITE = Path(command()).parent / "multi_tests"
# Those of moved memory by themselves, too: who was refused once does not try again.
CASES = ["Remap*:Lock*", "Exposed.*:Transfer*:Message*:Collective*:Remap*"]
# process_vm_readv and process_vm_writev.
CALLS = {"x86_64": (310, 311), "aarch64": (270, 271)}

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_CALL, IS_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000


def refuse_attach() -> None:
    """Has the kernel refuse both calls to this process and those it starts."""
    first, second = CALLS[platform.machine()]
    steps = [
        (LOAD_CALL, 0, 0, 0),
        (IS_EQUAL, 1, 0, first),
        (IS_EQUAL, 0, 1, second),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER)):
        words = [*arguments, ctypes.byref(header)] if len(arguments) == 2 else arguments
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture(autouse=True)
def _needs_filters() -> None:
    if platform.machine() not in CALLS:
        pytest.skip(f"the calls' numbers on {platform.machine()} are not known here")
    if not SUITE.exists():
        pytest.skip("the tests in C++ are not built")


@pytest.mark.parametrize("cases", CASES)
def test_all_works_without_cross_memory_attach(cases: str) -> None:
    done = subprocess.run(
        [command(), "run", "-n", "2", str(SUITE), f"--gtest_filter={cases}"],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        preexec_fn=refuse_attach,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout


def test_it_is_told() -> None:
    done = subprocess.run(
        [command(), "info"], capture_output=True, text=True, check=True, preexec_fn=refuse_attach
    )
    told = " ".join(done.stdout.split())
    assert "memory attach does not work" in told
