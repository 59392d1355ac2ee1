# SPDX-License-Identifier: BSD-3-Clause
"""Describes the host of the measurements, chooses CPUs for the programs, and names disturbances."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

_CPUS = Path("/sys/devices/system/cpu")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _cpu_model() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor() or platform.machine()


def _os_name() -> str:
    for line in _read(Path("/etc/os-release")).splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip('"')
    return platform.system()


def _compiler() -> str:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return ""
    try:
        done = subprocess.run(
            [*compiler.split(), "--version"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout else ""


def _virtualised() -> str:
    if "hypervisor" in _read(Path("/proc/cpuinfo")).split():
        return _read(Path("/sys/class/dmi/id/sys_vendor")) or "yes"
    return ""


def allowed_cpus() -> list[int]:
    """CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def describe_host() -> dict[str, Any]:
    """The `host` of a run record; empty or null if the system does not tell."""
    governor = _read(_CPUS / f"cpu{allowed_cpus()[0]}" / "cpufreq" / "scaling_governor")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "hostname": socket.gethostname(),
        "cpu": _cpu_model(),
        "cores": len(allowed_cpus()),
        "kernel": platform.release(),
        "memory_bytes": memory,
        "governor": governor or None,
        "os": _os_name(),
        "compiler": _compiler(),
        "virtual": _virtualised() or None,
    }


def choose_pins() -> list[int]:
    """Two CPUs of different cores of one package, or none if there is only one CPU. Two hardware
    threads of one core share execution units, so they are the second choice."""
    cpus = allowed_cpus()
    if len(cpus) < 2:
        return []

    def topology(cpu: int) -> tuple[str, str]:
        folder = _CPUS / f"cpu{cpu}" / "topology"
        return _read(folder / "physical_package_id"), _read(folder / "core_id") or str(cpu)

    first = cpus[0]
    package, core = topology(first)
    for same_package in (True, False):
        for cpu in cpus[1:]:
            other_package, other_core = topology(cpu)
            same = other_package == package
            if same == same_package and (not same or other_core != core):
                return [first, cpu]
    return cpus[:2]


def host_warnings(host: dict[str, Any]) -> list[str]:
    """Reasons why times on this host are less certain, in words for the report."""
    warnings = []
    cores = host.get("cores") or 0
    if cores == 1:
        warnings.append(
            "Only one CPU may be used: both processes share it, so times are those of the"
            " operating system's scheduler. Measure on two CPUs or more."
        )
    governor = host.get("governor")
    if governor is None:
        warnings.append(
            "The system does not say how it sets the CPU frequency (no governor), as usual in"
            " virtual machines; it may have changed during the run."
        )
    elif governor != "performance":
        warnings.append(
            f"The CPU frequency governor was '{governor}'; with 'performance' times vary less"
            " (cpupower frequency-set -g performance)."
        )
    if host.get("virtual"):
        warnings.append(
            "This is a virtual machine: other guests of its host may have taken CPU time."
        )
    return warnings
