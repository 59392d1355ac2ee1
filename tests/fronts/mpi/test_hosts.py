# SPDX-License-Identifier: BSD-3-Clause
"""Windows between hosts: user namespaces, whose processes share no memory with those of others."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("mpi_tools")

if TYPE_CHECKING:
    from pathlib import Path

    from mpi_tools import Finished, Mpi

_NETWORK = (
    "ip link set lo up && ip link add host0 type veth peer name host1 && "
    "ip addr add 10.77.0.1/24 dev host0 && ip link set host0 up && ip link set host1 up"
)
_IN_NETWORK = ["unshare", "--net", "sh", "-c", f'{_NETWORK} && exec "$@"', "sh"]
_IN_HOST = ["unshare", "--user", "--map-root-user"]
# Two hosts for several processes each: namespaces that a sleeping process keeps.
_KEEP_HOSTS = """
unshare --user --map-root-user sleep 1000 & host0=$!
unshare --user --map-root-user sleep 1000 & host1=$!
export host0 host1
trap 'kill $host0 $host1' EXIT
for holder in $host0 $host1; do
  until grep -q ' 1$' /proc/$holder/uid_map; do sleep 0.05; done
done
"$@"
"""
_WITH_TWO_HOSTS = ["sh", "-c", _KEEP_HOSTS, "sh"]
_ON_ONE_OF_TWO = [
    "sh", "-c", 'eval "holder=\\$host$((PMI_RANK % 2))"; exec nsenter --user '
    '--preserve-credentials --target="$holder" "$@"', "sh",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    done = subprocess.run(
        [*_IN_NETWORK, *_IN_HOST, "true"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"needs root, iproute2 and namespaces: {done.stderr.strip()}")


def between_hosts(mpi: Mpi, binary: Path, *, count: int = 2, of_two: bool = False) -> Finished:
    """Each process on a host of its own, or all on two hosts, neighbours on different ones."""
    if "mpich" not in mpi.name:
        pytest.skip("only Hydra starts processes that share no memory with it")
    preload = ["-genv", "LD_PRELOAD", str(mpi.library)]
    settings = {"MOBIUS_INTERFACE": "host0", "UCX_POSIX_USE_PROC_LINK": "n"}
    if mpi.name == "debian-mpich" or of_two:
        # Hydra names both the same host, so a shared window stays with the MPI. There MPICH 4.0.2
        # hangs in MPI_Win_start() or gets wrong values, without Möbius as well, and MPICH 5.0.2
        # gets wrong values with four processes.
        settings["CHECK_WITHOUT_SHARED"] = "1"
    if of_two:
        # MPICH would read the memory of processes on the other host, which the kernel refuses.
        settings["MPIR_CVAR_CH4_CMA_ENABLE"] = "0"
    before = [*_IN_NETWORK, *(_WITH_TWO_HOSTS if of_two else [])]
    on_host = _ON_ONE_OF_TWO if of_two else _IN_HOST
    return mpi.start(count, *on_host, binary, before=before, words=preload, env=settings)


@pytest.mark.parametrize("program", ["basics", "errors", "communicators", "later"])
def test_program(mpi: Mpi, program: str, tmp_path: Path) -> None:
    binary = mpi.compile(f"{program}.c", tmp_path / program)
    done = between_hosts(mpi, binary)
    assert done.code == 0, done.told
    assert f"{program} passed" in done.out, done.told


@pytest.mark.full
@pytest.mark.parametrize("program", ["basics", "errors", "communicators"])
def test_program_with_two_processes_on_each_host(mpi: Mpi, program: str, tmp_path: Path) -> None:
    """Windows have members on this host and on another one."""
    binary = mpi.compile(f"{program}.c", tmp_path / program)
    done = between_hosts(mpi, binary, count=4, of_two=True)
    assert done.code == 0, done.told
    assert f"{program} passed" in done.out, done.told
