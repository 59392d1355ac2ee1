# SPDX-License-Identifier: BSD-3-Clause
"""The bed itself: hosts share what real hosts share, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import bed as beds
import pytest
from hosts_tools import launcher, mpiexec, mpirun, run

BED = Path(beds.__file__)
LISTEN = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind("\\0mobius-bed-test")
s.listen()
print("listening", flush=True)
sys.stdin.read()
"""
REACH = """
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\\0mobius-bed-test")
    print("reached")
except ConnectionRefusedError:
    print("refused")
"""
SPEED = """
import socket, sys, time
if sys.argv[1] == "take":
    s = socket.create_server(("0.0.0.0", 4711))
    print("listening", flush=True)
    c, _ = s.accept()
    begin, got = time.monotonic(), 0
    while piece := c.recv(1 << 20):
        got += len(piece)
    print(got / (time.monotonic() - begin))
else:
    s = socket.create_connection(("hostb", 4711))
    s.sendall(bytes(8 << 20))
"""


BURST = """
import socket, sys, time
if sys.argv[1] == "take":
    s = socket.create_server(("0.0.0.0", 4711))
    print("listening", flush=True)
    c, _ = s.accept()
    while c.recv(65536, socket.MSG_WAITALL):
        c.send(b"x")
else:
    s = socket.create_connection(("hostb", 4711))
    times = []
    for _ in range(20):
        time.sleep(0.01)
        begin = time.monotonic()
        s.sendall(bytes(65536))
        s.recv(1)
        times.append(time.monotonic() - begin)
    print(min(times))
"""


def on(bed: beds.Bed, host: str, *words: str) -> str:
    done = run(bed.words(words, host))
    assert (done.code, done.err) == (0, "")
    return done.out.strip()


@pytest.fixture
def name() -> Iterator[str]:
    """Yield the name of a bed that is removed after the test."""
    reason = beds.why_not()
    if reason is not None:
        pytest.skip(reason)
    name = f"test-{uuid.uuid4().hex[:12]}"
    try:
        yield name
    finally:
        beds.down(name)


def test_each_host_has_its_name_and_address(bed: beds.Bed) -> None:
    for index, host in enumerate(bed.hosts):
        assert on(bed, host.name, "uname", "-n") == host.name
        shown = on(bed, host.name, "ip", "-4", "-o", "address", "show", "v0")
        assert f"10.77.0.{index + 1}/24" in shown
        assert on(bed, "hosta", "getent", "hosts", host.name).split() == [
            f"10.77.0.{index + 1}",
            host.name,
        ]


def test_a_host_sees_only_its_own_interfaces(bed: beds.Bed) -> None:
    assert on(bed, "hostb", "ls", "/sys/class/net").split() == ["lo", "v0"]


def test_this_machine_sees_none_of_it(bed: beds.Bed) -> None:
    assert on(bed, "hosta", "hostname") == "hosta"
    assert "10.77.0." not in run(["ip", "-4", "-o", "address"]).out
    assert os.uname().nodename not in ("hosta", "hostb")
    assert "hosta" not in Path("/etc/hosts").read_text()


def test_shared_memory_files_are_the_hosts_own(bed: beds.Bed) -> None:
    file = f"/dev/shm/mobius-bed-{os.getpid()}"
    on(bed, "hosta", "touch", file)
    assert on(bed, "hosta", "sh", "-c", f"ls {file}") == file
    assert on(bed, "hostb", "sh", "-c", f"test -e {file} || echo none") == "none"
    assert not Path(file).exists()


def test_abstract_sockets_end_at_the_host(bed: beds.Bed) -> None:
    words = bed.words([sys.executable, "-c", LISTEN], "hosta")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as listener:
        assert listener.stdin is not None
        assert listener.stdout is not None
        assert listener.stdout.readline() == b"listening\n"
        assert on(bed, "hosta", sys.executable, "-c", REACH) == "reached"
        assert on(bed, "hostb", sys.executable, "-c", REACH) == "refused"
        listener.stdin.close()


def test_commands_keep_folder_environment_and_exit_code(bed: beds.Bed, tmp_path: Path) -> None:
    words = [str(BED), "run", "--name", bed.name, "hostb", "--", "sh", "-c"]
    done = run([*words, 'echo "$PWD $WORD"; exit 7'], {"WORD": "kept"}, tmp_path)
    assert (done.code, done.out) == (7, f"{tmp_path} kept\n")


def test_agent_starts_a_shell_as_ssh_does(bed: beds.Bed) -> None:
    agent = str(bed.agent)
    done = run([agent, "-x", "-l", "root", "hostb", "uname -n;", "echo", "'a  b'", "$WORD"])
    assert (done.code, done.out, done.err) == (0, "hostb\na  b\n", "")
    assert run([agent, "root@10.77.0.2", "uname", "-n"]).out == "hostb\n"
    assert run([agent, "hosta", "exit", "3"]).code == 3
    unknown = run([agent, "elsewhere", "true"])
    assert unknown.code == 255
    assert "no host 'elsewhere'" in unknown.err
    assert run([agent, "hosta", "echo", "${WORD-none}"], {"WORD": "kept"}).out == "none\n"


def test_open_mpi_starts_programs_on_all_hosts(bed: beds.Bed) -> None:
    done = run(mpirun(bed, "hosta:2,hostb:2", "uname", "-n"))
    assert done.code == 0, done.err
    assert done.lines() == ["hosta", "hosta", "hostb", "hostb"]


def test_mpich_starts_programs_on_all_hosts(bed: beds.Bed) -> None:
    done = run(mpiexec(bed, "hosta,hostb", 4, "uname", "-n"))
    assert done.code == 0, done.err
    assert done.lines() == ["hosta", "hosta", "hostb", "hostb"]


def test_three_hosts_reach_each_other(bed_of_three: beds.Bed) -> None:
    done = run(mpirun(bed_of_three, "hosta,hostb,hostc", "uname", "-n"))
    assert done.code == 0, done.err
    assert done.lines() == ["hosta", "hostb", "hostc"]


def test_four_hosts(name: str) -> None:
    bed = beds.up(name, 4)
    assert [on(bed, host.name, "uname", "-n") for host in bed.hosts] == list(beds.NAMES)


def test_up_again_finds_the_hosts(name: str) -> None:
    first = beds.up(name, 2)
    assert beds.up(name, 2) == first
    with pytest.raises(beds.BedError, match="is up with 2 hosts"):
        beds.up(name, 3)
    assert beds.down(name)
    assert not beds.down(name)
    second = beds.up(name, 2)
    assert second.hosts[0].pid != first.hosts[0].pid


def test_down_ends_processes_on_the_hosts(name: str) -> None:
    bed = beds.up(name, 2)
    words = bed.words(["sh", "-c", "trap '' TERM HUP INT; echo up; sleep 1000 & wait"], "hostb")
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert process.pid in beds.processes_on(bed)["hostb"]
        beds.down(name)
        assert process.wait() == -signal.SIGKILL
    assert not bed.folder.exists()
    assert not any(host.lives() for host in (*bed.hosts, bed.switch))


def test_a_broken_bed_is_made_anew(name: str) -> None:
    bed = beds.up(name, 2)
    os.kill(bed.hosts[1].pid, signal.SIGKILL)
    os.waitpid(bed.hosts[1].pid, 0)
    again = beds.up(name, 2)
    assert all(host.lives() for host in again.hosts)
    assert not bed.hosts[0].lives()


def test_a_failed_start_is_removed(name: str) -> None:
    with pytest.raises(beds.BedError, match="rate"):
        beds.up(name, 2, "fast")
    assert name not in beds.all_names()


def test_a_link_can_be_cut_and_mended(bed: beds.Bed) -> None:
    state = ["cat", "/sys/class/net/v0/carrier"]
    assert on(bed, "hostb", *state) == "1"
    bed.set_link("hostb", "down")
    assert on(bed, "hostb", *state) == "0"
    bed.set_link("hostb", "up")
    assert on(bed, "hostb", *state) == "1"


@contextmanager
def taking(bed: beds.Bed, program: str) -> Iterator[IO[str]]:
    """The text of the receiving end, on the second host, after it has begun to listen."""
    words = bed.words([sys.executable, "-c", program, "take"], "hostb")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "listening\n"
        yield taker.stdout


def test_a_rate_holds(name: str) -> None:
    bed = beds.up(name, 2, "100mbit")
    with taking(bed, SPEED) as taker:
        on(bed, "hosta", sys.executable, "-c", SPEED, "give")
        bytes_per_second = float(taker.readline())
    # Headers take a part of it; without a limit it would be 100 times as much.
    assert bytes_per_second < 1.1 * 100e6 / 8


def test_a_burst_after_a_pause_takes_its_time(name: str) -> None:
    bed = beds.up(name, 2, "1gbit")
    with taking(bed, BURST):
        seconds = float(on(bed, "hosta", sys.executable, "-c", BURST, "give"))
    # 524 µs at the rate; 16 KB may pass at once, the rest a quarter faster. A bucket that held all
    # of it would give 75 µs.
    assert seconds > 300e-6


@pytest.mark.parametrize(
    ("rate", "bits"), [("100mbit", 1e8), ("1gbit", 1e9), ("1.5Gbit", 1.5e9), ("1mibps", 8 << 20)]
)
def test_rates_are_those_of_tc(rate: str, bits: float) -> None:
    assert beds.bits_per_second(rate) == bits


@pytest.mark.parametrize("rate", ["fast", "1", "0gbit", "gbit", "-1gbit", "1xbit"])
def test_malformed_rates(rate: str) -> None:
    with pytest.raises(beds.BedError, match="is not a rate"):
        beds.bits_per_second(rate)


def test_the_command_line(name: str) -> None:
    words = [str(BED)]
    assert run([*words, "up", "--name", name]).code == 0
    assert f"{name}: 2 hosts, no limit of rate" in run([*words, "status"]).out
    agent = run([*words, "agent", "--name", name]).out.strip()
    assert run([agent, "hostb", "uname", "-n"]).out == "hostb\n"
    assert run([*words, "run", "--name", name, "--", "uname", "-n"]).out == "hosta\n"
    wrong = run([*words, "run", "--name", name, "hostz", "--", "true"])
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err.endswith(f"no host 'hostz' in bed '{name}', which has hosta, hostb\n")
    assert run([*words, "down", "--name", name]).code == 0
    gone = run([*words, "run", "--name", name, "--", "true"])
    assert gone.code == 1
    assert f"no bed '{name}' is up" in gone.err


def test_a_user_without_the_right_is_told_why() -> None:
    launcher("setpriv")
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", str(BED), "up", "--name", "x"]
    done = run(words)
    assert done.code == beds.SKIPPED
    assert done.err.startswith("SKIP: this user may not make namespaces")
