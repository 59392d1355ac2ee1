# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with several networks: the job uses one that reaches all hosts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import bed as beds
import pytest
from hosts_tools import Ended, mpirun, program, run

DRIVER = program("hosts_driver")
MOBIUS = program("mobius")
# mpirun's own connections are not what is tested.
MPIRUN = {"OMPI_MCA_oob_tcp_if_include": "eth0"}


@pytest.fixture
def apart() -> Iterator[beds.Bed]:
    """Yield two hosts without addresses. All interfaces that are made there say 10 Gbit/s; then the
    order in which they were made decides.
    """
    reason = beds.why_not()
    if reason is not None:
        pytest.skip(reason)
    name = f"test-{os.getpid()}-7"
    try:
        bed = beds.up(name, 2)
        for host in bed.hosts:
            on(bed, host.name, "ip", "address", "flush", "dev", "v0")
        yield bed
    finally:
        beds.down(name)


def connect(bed: beds.Bed) -> None:
    """Give both hosts the interface eth0 in a network that connects them."""
    for index, host in enumerate(bed.hosts):
        on(bed, host.name, *"ip link add eth0 link v0 type macvlan mode bridge".split())
        address(bed, host.name, "eth0", f"{beds.NETWORK}.{1 + index}/24")


def on(bed: beds.Bed, host: str, *words: str) -> str:
    """Run a command on a host; return what it printed."""
    done = subprocess.run(
        bed.words(words, host),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def address(bed: beds.Bed, host: str, interface: str, text: str) -> None:
    """Give an interface an address and set it up."""
    on(bed, host, "ip", "address", "add", text, "dev", interface)
    on(bed, host, "ip", "link", "set", interface, "up")


def cable(bed: beds.Bed, host: str, interface: str, text: str) -> None:
    """Add an interface whose cable leads to nobody who answers."""
    on(bed, host, *f"ip link add {interface} type veth peer name far".split())
    on(bed, host, "ip", "link", "set", "far", "address", "02:00:00:00:00:01")
    address(bed, host, interface, text)
    on(bed, host, "ip", "link", "set", "far", "up")


def vpn(bed: beds.Bed, host: str, text: str) -> subprocess.Popen[bytes]:
    """Add tun0, with a program at its other end; beds.down() ends that."""
    lines = [
        "import fcntl, os, struct, sys, time",
        "tun = os.open('/dev/net/tun', os.O_RDWR)",
        "fcntl.ioctl(tun, 0x400454CA, struct.pack('16sH', b'tun0', 0x1001))",  # TUNSETIFF: a tun
        "print('ready', flush=True)",
        "time.sleep(1000)",
    ]
    process = subprocess.Popen(
        bed.words(["python3", "-c", "\n".join(lines)], host), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        pytest.skip("this machine has no /dev/net/tun")
    address(bed, host, "tun0", text)
    return process


def job(bed: beds.Bed, *words: str, **env: str) -> Ended:
    """Run a job of two processes, one on each host."""
    export = [word for name in env for word in ("-x", name)]
    return run(mpirun(bed, "hosta,hostb", *export, *words), {**MPIRUN, **env})


WHO = ["rank 0 of 2, 0 of 1 here", "rank 1 of 2, 0 of 1 here"]


@pytest.mark.parametrize("host", ["hosta", "hostb"])
@pytest.mark.parametrize("is_first", [True, False])
def test_vpn_of_one_host_is_not_the_network(apart: beds.Bed, host: str, is_first: bool) -> None:
    if not is_first:
        connect(apart)
    process = vpn(apart, host, "10.8.0.1/24")
    if is_first:
        connect(apart)
    done = job(apart, DRIVER, "who")
    assert (done.code, done.lines()) == (0, WHO), done.err
    told = " ".join(on(apart, host, MOBIUS, "info").split())
    assert f"eth0 ({beds.NETWORK}." in told
    assert "not tun0 (10.8.0.1/24): it is a tunnel" in told
    process.kill()
    process.communicate()


@pytest.mark.parametrize("is_first", [True, False])
def test_networks_that_one_host_alone_is_in_are_not_used(apart: beds.Bed, is_first: bool) -> None:
    if not is_first:
        connect(apart)
    cable(apart, "hosta", "eth1", "198.51.100.1/24")
    cable(apart, "hostb", "eth1", "203.0.113.1/24")
    # A bridge has the same address everywhere.
    for host in apart.hosts:
        on(apart, host.name, *"ip link add docker0 type bridge".split())
        address(apart, host.name, "docker0", "172.17.0.1/16")
    if is_first:
        connect(apart)
    done = job(apart, DRIVER, "who")
    assert (done.code, done.lines()) == (0, WHO), done.err


def test_network_that_does_not_reach_all_hosts_is_followed_by_the_next(apart: beds.Bed) -> None:
    # Two networks with the same numbers, which have nothing to do with each other.
    cable(apart, "hosta", "eth1", "198.51.100.1/24")
    cable(apart, "hostb", "eth1", "198.51.100.2/24")
    connect(apart)
    done = job(apart, DRIVER, "who", MOBIUS_LOG="info")
    assert (done.code, done.lines()) == (0, WHO), done.err
    assert "network 198.51.100.0/24 is not used: 198.51.100." in done.err
    assert "does not reach 198.51.100." in done.err


def test_error_of_a_named_network_names_the_others(apart: beds.Bed) -> None:
    cable(apart, "hosta", "eth1", "198.51.100.1/24")
    cable(apart, "hostb", "eth1", "198.51.100.2/24")
    connect(apart)
    done = job(apart, DRIVER, "who", MOBIUS_INTERFACE="198.51.100.0/24")
    assert done.code != 0
    assert "this process uses interface eth1 of eth1 (198.51.100." in done.err
    assert f"eth0 ({beds.NETWORK}." in done.err
    assert "MOBIUS_INTERFACE names a network that all hosts are in" in done.err


def test_host_without_any_network_says_so() -> None:
    if beds.why_not() is not None:
        pytest.skip(str(beds.why_not()))
    words = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    words += mpirun(None, "-n 2", "unshare", "--ipc", "--user", "--map-root-user", DRIVER, "who")
    done = run(words, {"OMPI_MCA_oob_tcp_if_include": "lo"})
    assert done.code != 0
    assert "has an interface to other hosts: this host has none, except the loopback" in done.err
