# SPDX-License-Identifier: BSD-3-Clause
"""Windows between hosts: each process in a user namespace of its own, which share no memory."""

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


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    done = subprocess.run(
        [*_IN_NETWORK, *_IN_HOST, "true"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"needs root, iproute2 and namespaces: {done.stderr.strip()}")


def between_hosts(mpi: Mpi, binary: Path, *, count: int = 2) -> Finished:
    """Each process on a host of its own."""
    if "mpich" not in mpi.name:
        pytest.skip("only Hydra starts processes that share no memory with it")
    preload = ["-genv", "LD_PRELOAD", str(mpi.library)]
    settings = {"MOBIUS_INTERFACE": "host0", "UCX_POSIX_USE_PROC_LINK": "n"}
    if mpi.name == "debian-mpich":
        # Hydra names both the same host, so a shared window stays with the MPI. There MPICH 4.0.2
        # hangs in MPI_Win_start() or gets wrong values, without Möbius as well.
        settings["CHECK_WITHOUT_SHARED"] = "1"
    return mpi.start(count, *_IN_HOST, binary, before=_IN_NETWORK, words=preload, env=settings)


@pytest.mark.parametrize("program", ["basics", "errors", "communicators", "later"])
def test_program(mpi: Mpi, program: str, tmp_path: Path) -> None:
    binary = mpi.compile(f"{program}.c", tmp_path / program)
    done = between_hosts(mpi, binary)
    assert done.code == 0, done.told
    assert f"{program} passed" in done.out, done.told
