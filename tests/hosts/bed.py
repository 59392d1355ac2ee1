#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on one machine, for tests between hosts.

Each host is a network, UTS, IPC and mount namespace with a name (hosta, hostb, …), an address
(10.77.0.1, …), a /dev/shm and an /etc/hosts of its own. Links end at a bridge that is in a
namespace too, so nothing of this is visible on the machine's real network. Any number of beds with
different names may be up at a time. A host lives as long as a process that holds its namespaces.
One folder holds all facts about a bed. All hosts share files and process ids.

By hand:

    tests/hosts/bed.py up --hosts 2 --rate 1gbit
    tests/hosts/bed.py run hostb -- ip address
    tests/hosts/bed.py run -- mpirun.openmpi --mca plm_rsh_agent $(tests/hosts/bed.py agent) \\
        --host hosta:2,hostb:2 build/release/bin/example_ring
    tests/hosts/bed.py link hostb down
    tests/hosts/bed.py status
    tests/hosts/bed.py down

Needs root (root of a user namespace suffices: unshare --user --map-root-user --mount), iproute2 and
util-linux. Where a bed is not permitted, `up` prints one line with the reason and exits with 77.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

NAMES = ("hosta", "hostb", "hostc", "hostd")
NETWORK = "10.77.0"
INTERFACE = "v0"
KINDS = ("net", "uts", "ipc", "mnt")
SKIPPED = 77
# For a link with a rate (_shape()).
BUCKET_SECONDS = 131e-6
LEAST_BUCKET = 16 << 10
LATE_SECONDS = 524e-6
PEAK = 1.25
# Open MPI's mpirun needs these when root calls it.
MPIRUN_BY_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# A killed process is gone within milliseconds; one that is not needs a person.
SECONDS_TO_DIE = 20


class BedError(Exception):
    """An error, in one line for the user."""


@dataclass(frozen=True)
class Holder:
    """A process that keeps namespaces alive, with its start time, because ids are reused."""

    name: str
    pid: int
    started: int

    def lives(self) -> bool:
        """Tells whether the process is still this one."""
        return _start_time(self.pid) == self.started

    def enter(self) -> list[str]:
        """The words that, before a command, run it in these namespaces."""
        return ["nsenter", f"--target={self.pid}", "--net", "--uts", "--ipc", "--mount", "--"]


@dataclass(frozen=True)
class Bed:
    """A bed that is up."""

    name: str
    rate: str
    switch: Holder
    hosts: tuple[Holder, ...]

    @property
    def folder(self) -> Path:
        """The folder with all facts about the bed."""
        return _beds() / self.name

    @property
    def agent(self) -> Path:
        """The program that starts commands on hosts by name; called as ssh is."""
        return self.folder / "agent"

    def host(self, name: str) -> Holder:
        """The host of this name."""
        for host in self.hosts:
            if host.name == name:
                return host
        known = ", ".join(host.name for host in self.hosts)
        raise BedError(f"no host '{name}' in bed '{self.name}', which has {known}")

    def words(self, command: Sequence[str], host: str = NAMES[0]) -> list[str]:
        """The words that start `command` in the caller's folder on a host."""
        inside = ["sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", str(Path.cwd()), *command]
        return self.host(host).enter() + inside

    def set_link(self, host: str, state: str) -> None:
        """Plugs the cable of a host in ("up") or out ("down"), at the bridge."""
        _ip(self.switch.pid, "link", "set", self.host(host).name, state)


def why_not() -> str | None:
    """The reason why there can be no test bed here, or None."""
    for command, package in {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}.items():
        if shutil.which(command) is None:
            return f"there is no command '{command}' (package {package})"
    attempt = (
        "ip link add bridge type bridge && ip link add v0 type veth peer name v1 && "
        "tc qdisc add dev v0 root tbf rate 1gbit burst 64k latency 50ms && "
        "mount -t tmpfs none /dev/shm && nsenter --target=$$ --net true"
    )
    words = ["unshare", "--net", "--uts", "--ipc", "--mount", "sh", "-c", attempt]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"this user may not make namespaces, bridges and links here: {lines[-1]}"


def up(name: str = "default", hosts: int = 2, rate: str = "") -> Bed:
    """Makes a bed, or finds an existing one."""
    if not 2 <= hosts <= len(NAMES):
        raise BedError(f"a bed has 2 to {len(NAMES)} hosts, not {hosts}")
    with _locked():
        bed = _load(name)
        if bed is not None:
            if (len(bed.hosts), bed.rate) == (hosts, rate):
                return bed
            raise BedError(
                f"bed '{name}' is up with {len(bed.hosts)} hosts and "
                f"{bed.rate or 'no'} rate; take it down first, or give another --name"
            )
        _remove(name)
        folder = _beds() / name
        folder.mkdir(mode=0o700)
        holders: list[Holder] = []
        try:
            for holder in ("switch", *NAMES[:hosts]):
                holders.append(_hold(holder))
                _write(folder / "holders.json", [asdict(one) for one in holders])
            bed = Bed(name, rate, holders[0], tuple(holders[1:]))
            _connect(bed)
            _write(folder / "bed.json", {"rate": rate})
        except BaseException:
            _remove(name)
            raise
        return bed


def down(name: str = "default") -> bool:
    """Removes a bed, with all processes on its hosts; False if there was none."""
    with _locked():
        return _remove(name)


def find(name: str = "default") -> Bed:
    """The bed of this name."""
    with _locked():
        bed = _load(name)
    if bed is None:
        raise BedError(f"no bed '{name}' is up; make it with: {sys.argv[0]} up --name {name}")
    return bed


def all_names() -> list[str]:
    """The names of all beds of this user, including broken ones."""
    return sorted(path.name for path in _beds().iterdir() if path.is_dir())


def processes_on(bed: Bed) -> dict[str, list[int]]:
    """By host: the processes there, except the one that holds it."""
    inside = _inside([_namespace(host.pid) for host in bed.hosts])
    return {
        host.name: [pid for pid, space in inside if space == _namespace(host.pid)]
        for host in bed.hosts
    }


def _beds() -> Path:
    folder = Path(f"/run/mobius-beds-{os.getuid()}")
    if not os.access(folder.parent, os.W_OK):
        folder = Path(tempfile.gettempdir()) / folder.name
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise BedError(f"'{folder}' belongs to somebody else")
    return folder


@contextmanager
def _locked() -> Iterator[None]:
    descriptor = os.open(_beds() / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, value: object) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.rename(path)


def _holders(name: str) -> list[Holder]:
    try:
        text = (_beds() / name / "holders.json").read_text()
        return [Holder(**one) for one in json.loads(text)]
    except (OSError, ValueError, TypeError):
        return []


def _load(name: str) -> Bed | None:
    holders = _holders(name)
    record = _beds() / name / "bed.json"
    if len(holders) < 2 or not record.exists() or not all(one.lives() for one in holders):
        return None
    return Bed(name, json.loads(record.read_text())["rate"], holders[0], tuple(holders[1:]))


def _start_time(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _namespace(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return None


def _inside(spaces: Sequence[str | None]) -> list[tuple[int, str]]:
    """The processes in these network namespaces, except those that were started to hold one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        space = _namespace(int(entry.name))
        if space is not None and space in spaces and not _is_holder(entry):
            found.append((int(entry.name), space))
    return sorted(found)


def _is_holder(entry: Path) -> bool:
    try:
        return entry.joinpath("cmdline").read_bytes() == b"sleep\0infinity\0"
    except OSError:
        return False


def _hold(name: str) -> Holder:
    words = ["unshare", "--net", "--uts", "--ipc", "--mount", "--propagation", "private", "--"]
    words += ["sh", "-c", "echo ready && exec sleep infinity >/dev/null 2>&1"]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    ready = process.stdout.readline()
    process.stdout.close()
    reason = b"" if ready else process.stderr.read()
    process.stderr.close()
    started = _start_time(process.pid)
    if not ready or started is None:
        process.wait()
        raise BedError(f"no namespaces for {name}: {reason.decode().strip()}")
    return Holder(name, process.pid, started)


def _call(*words: str, data: str = "") -> None:
    done = subprocess.run(words, input=data, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BedError(f"{' '.join(words[:8])}: {done.stderr.strip() or done.returncode}")


def _ip(pid: int, *words: str) -> None:
    _call("nsenter", f"--target={pid}", "--net", "ip", *words)


# Run in a host's namespaces, after their creation. /sys is mounted again because it shows the
# network of the process that mounted it, and keeps the control groups that were below the old one.
# TCP's congestion control is the one that most systems have, not this machine's: BBR paces its
# packets by timers, and now and then delays them to measure.
_FURNISH = """
set -e
hostname "$name"
mount -t tmpfs -o mode=1777 shm /dev/shm
mount --bind "$folder/hosts" /etc/hosts
mount --rbind /sys/fs/cgroup "$folder/cgroup" 2>/dev/null && cgroup=yes
if mount -t sysfs sysfs /sys 2>/dev/null && [ -n "$cgroup" ]; then
  mount --move "$folder/cgroup" /sys/fs/cgroup 2>/dev/null || true
fi
echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/all/disable_ipv6 || true
ip link set lo up
ip address add "$address/24" dev v0
ip link set v0 up
for control in cubic reno; do
  echo "$control" 2>/dev/null >/proc/sys/net/ipv4/tcp_congestion_control && break
done
if [ -n "$rate" ]; then
  ip link set v0 gso_max_size "$packet"
  tc qdisc add dev v0 root tbf latency 50ms \\
    rate "$rate" burst "$late" peakrate "$peak" mtu "$bucket"
fi
"""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def bits_per_second(rate: str) -> float:
    """Parses a rate in tc's notation."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt]?i?)(bit|bps)", rate.lower())
    unit = (_UNITS | _BINARY_UNITS).get(found[2]) if found else None
    if found is None or unit is None or float(found[1]) == 0:
        raise BedError(f"'{rate}' is not a rate in tc's notation, such as 100mbit or 1gbit")
    return float(found[1]) * unit * (8 if found[3] == "bps" else 1)


def _shape(rate: str) -> dict[str, str]:
    """tc's words for a rate limit that also slows down a short burst after a pause.

    The kernel lets packets pass as long as there are tokens in a bucket. A real link has no
    spare tokens, but a small bucket loses rate: the timer that lets the next packet pass is late
    on a busy machine, and tokens that would have gone into a full bucket meanwhile are lost. (A
    bucket of 32 KB lost a fifth of 1 Gbit/s in one direction, and half in both. One of 256 KB
    lost none, but then twice 64 KB pass at once, and no packet waits.) So there are two buckets.
    The small one is filled faster than the rate, and limits a burst. The large one is filled at
    the rate, and its tokens make up for late timers. Packets are small compared with the small
    bucket (the kernel would hand over 64 KB in one), and no more than it holds passes at once.
    """
    if not rate:
        return {"rate": ""}
    bits = bits_per_second(rate)
    bucket = max(LEAST_BUCKET, int(bits / 8 * BUCKET_SECONDS))
    return {
        "rate": f"{bits:.0f}bit",
        "peak": f"{bits * PEAK:.0f}bit",
        "bucket": str(bucket),
        "late": str(max(2 * bucket, int(bits / 8 * LATE_SECONDS))),
        "packet": str(min(bucket // 2, 65536)),
    }


def _connect(bed: Bed) -> None:
    addresses = {host.name: f"{NETWORK}.{1 + index}" for index, host in enumerate(bed.hosts)}
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    (bed.folder / "hosts").write_text("\n".join(lines) + "\n")
    (bed.folder / "cgroup").mkdir()
    _ip(bed.switch.pid, "link", "add", "bridge", "type", "bridge")
    _ip(bed.switch.pid, "link", "set", "bridge", "up")
    for host in bed.hosts:
        link = ["link", "add", host.name, "type", "veth", "peer", "name", INTERFACE]
        _ip(bed.switch.pid, *link, "netns", str(host.pid))
        _ip(bed.switch.pid, "link", "set", host.name, "master", "bridge", "up")
        values = {"name": host.name, "folder": str(bed.folder)}
        values |= {"address": addresses[host.name], "cgroup": "", **_shape(bed.rate)}
        setting = [f"{key}={value}" for key, value in values.items()]
        _call(*host.enter(), "env", *setting, "sh", data=_FURNISH)
    bed.agent.write_text(_agent_text(bed, addresses))
    bed.agent.chmod(0o700)


def _agent_text(bed: Bed, addresses: dict[str, str]) -> str:
    cases = [f"  {name} | {ip}) pid={bed.host(name).pid} ;;" for name, ip in addresses.items()]
    return "\n".join(
        [
            "#!/bin/sh",
            "# Called as ssh is: options, host, words of a command that a shell there puts",
            "# together. As behind ssh, the environment is not that of the caller.",
            "while :; do",
            "  case $1 in",
            "    -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;",
            "    -*) shift ;;",
            "    *) break ;;",
            "  esac",
            "done",
            "host=${1#*@}",
            "shift",
            "case $host in",
            *cases,
            f"  *) echo \"agent: no host '$host' in test bed '{bed.name}'\" >&2; exit 255 ;;",
            "esac",
            'exec nsenter --target="$pid" --net --uts --ipc --mount -- env -i HOME="$HOME" \\',
            '  USER="$(id -un)" LOGNAME="$(id -un)" SHELL=/bin/sh \\',
            "  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\",
            """  sh -c 'cd; eval "$1"' sh "$*\"""",
            "",
        ]
    )


def _remove(name: str) -> bool:
    folder = _beds() / name
    if not folder.exists():
        return False
    holders = [holder for holder in _holders(name) if holder.lives()]
    spaces = [_namespace(holder.pid) for holder in holders]
    _kill(lambda: [pid for pid, _ in _inside(spaces)], f"on the hosts of bed '{name}'")
    _kill(lambda: [one.pid for one in holders if one.lives()], f"holding bed '{name}'")
    shutil.rmtree(folder)
    return True


def _kill(find_them: Callable[[], list[int]], what: str) -> None:
    """Kills processes until there are none, including those that they start meanwhile."""
    deadline = time.monotonic() + SECONDS_TO_DIE
    while left := [pid for pid in find_them() if _start_time(pid) is not None]:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        if time.monotonic() > deadline:
            raise BedError(f"processes {what} do not end: {' '.join(map(str, left))}")
        time.sleep(0.005)
    _reap()


def _reap() -> None:
    """Reaps dead holders, which are children of the process that called up(), perhaps this one."""
    for name in all_names():
        for holder in _holders(name):
            with suppress(ChildProcessError):
                os.waitpid(holder.pid, os.WNOHANG)


def _print_status() -> None:
    for name in all_names():
        bed = _load(name)
        if bed is None:
            print(f"{name}: broken; remove it with: {sys.argv[0]} down --name {name}")
            continue
        print(f"{name}: {len(bed.hosts)} hosts, {bed.rate or 'no limit of rate'}; {bed.agent}")
        for index, (host, pids) in enumerate(processes_on(bed).items()):
            processes = " ".join(map(str, pids)) or "no processes"
            print(f"  {host} {NETWORK}.{1 + index}  {processes}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=about, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    command = {
        word: commands.add_parser(word, help=text)
        for word, text in {
            "up": "make a bed",
            "down": "remove it, with all processes on its hosts",
            "run": "run a command on a host, in this folder and environment",
            "agent": "print the path of the program that stands in for ssh",
            "link": "plug the cable of a host in or out",
            "status": "show all beds",
        }.items()
    }
    for word in ("up", "down", "run", "agent", "link"):
        command[word].add_argument("--name", default="default", help="of the bed")
    command["up"].add_argument("--hosts", type=int, default=2, help="2 (default), 3 or 4")
    command["up"].add_argument("--rate", default="", help="speed of each link, as tc takes it")
    command["down"].add_argument("--all", action="store_true", help="all beds of this user")
    command["run"].add_argument("host", nargs="?", default=NAMES[0], help="default: hosta")
    command["link"].add_argument("host")
    command["link"].add_argument("state", choices=("up", "down"))
    after: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, after = arguments[:cut], arguments[cut + 1 :]
    parsed = parser.parse_args(arguments)
    if (parsed.command == "run") != bool(after):
        parser.error("`run` takes a command after --, and nothing else does")
    parsed.words = after
    return parsed


def main(arguments: list[str]) -> int:
    """Runs the command line."""
    asked = _parse(arguments)
    if asked.command == "status":
        _print_status()
    elif asked.command == "down":
        for name in all_names() if asked.all else [asked.name]:
            down(name)
    elif asked.command == "up":
        reason = why_not()
        if reason is not None:
            print(f"SKIP: {reason}", file=sys.stderr)
            return SKIPPED
        up(asked.name, asked.hosts, asked.rate)
    elif asked.command == "agent":
        print(find(asked.name).agent)
    elif asked.command == "link":
        find(asked.name).set_link(asked.host, asked.state)
    else:
        words = find(asked.name).words(asked.words, asked.host)
        os.execvpe(words[0], words, {**os.environ, **MPIRUN_BY_ROOT})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BedError as problem:
        print(f"{sys.argv[0]}: {problem}", file=sys.stderr)
        sys.exit(1)
