# SPDX-License-Identifier: BSD-3-Clause
"""The launcher's side of the protocol by which ranks join, spoken here without the engine."""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import resource
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from launch_tools import Launcher, python, wait_until

# src/job/bootstrap/local_protocol.h
LAYOUT = "=III4i16s16s100s"
MAGIC = 0x314D424F
HELLO, WELCOME, REFUSED, GOODBYE, CHALLENGE = 1, 2, 3, 4, 7

# Functions of the ranks below: join(), leave(), and say() for the tests.
RANK = (
    "import array, hmac, os, signal, socket, struct, sys, time",
    f"LAYOUT, MAGIC = {LAYOUT!r}, {MAGIC}",
    "folder, rank = os.environ['D'], int(os.environ['MOBIUS_RANK'])",
    "secret = bytes.fromhex(os.environ['MOBIUS_JOB'])",
    "def code(text): return hmac.digest(secret, text, 'sha256')[:16]",
    "def seal(data, other): return data[:44] + code(data + other) + data[60:]",
    "def message(type, rank=rank, version=3, magic=MAGIC, nonce=bytes(range(16))):",
    "    head = (magic, version, type, rank, 0, os.getpid(), 1)",
    "    return struct.pack(LAYOUT, *head, nonce, b'', b'')",
    "def connect():",
    "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "    s.connect('\\0mobius-' + code(b'address 0').hex())",
    "    return s",
    "def receive(s):",
    "    data, control, flags, address = s.recvmsg(200, 1000)",
    "    fds = array.array('i')",
    "    for level, kind, value in control: fds.frombytes(value)",
    f"    if data and data[8] != {CHALLENGE}:",
    "        bare = data[:44] + bytes(16) + data[60:]",
    "        assert data[44:60] == code(bare + bytes(range(16))), 'an impostor answers'",
    "    return (struct.unpack(LAYOUT, data) if data else None), list(fds)",
    "def challenge(s):",
    "    reply, fds = receive(s)",
    f"    assert reply[2] == {CHALLENGE} and not fds",
    "    return reply[7]",
    "def join(**changes):",
    "    s = connect()",
    f"    s.send(seal(message({HELLO}, **changes), challenge(s)))",
    "    return s, *receive(s)",
    f"def leave(s): s.send(message({GOODBYE}))",
    "def say(name, text='yes'):",
    "    with open(f'{folder}/new.{os.getpid()}', 'w') as f: f.write(f'{text}\\n')",
    "    os.rename(f'{folder}/new.{os.getpid()}', f'{folder}/{name}')",
    "def until(name):",
    "    while not os.path.exists(f'{folder}/{name}'): time.sleep(0.002)",
    "def text(reply): return reply[9].split(b'\\0')[0].decode()",
)


def rank_program(*lines: str) -> list[str]:
    return python(*RANK, *lines)


def test_welcome_brings_the_control_block(launcher: Launcher) -> None:
    done = launcher.run(
        *["-n", "3"],
        *rank_program(
            "s, reply, fds = join()",
            "header = os.pread(fds[0], 16, 0)",
            "size = os.fstat(fds[0]).st_size",
            "print(reply[:5], len(fds), header[:8], *struct.unpack('=Ii', header[8:]), size > 300)",
            "leave(s)",
        ),
    )
    assert done.returncode == 0
    assert sorted(done.stdout.decode().splitlines()) == [
        f"({MAGIC}, 3, {WELCOME}, {rank}, 3) 1 b'Mcontrol' 10 3 True" for rank in range(3)
    ]


def test_all_ranks_get_the_same_control_block(launcher: Launcher) -> None:
    program = rank_program(
        "s, reply, fds = join()",
        "i = os.fstat(fds[0])",
        "print(i.st_dev, i.st_ino)",
        "leave(s)",
    )
    lines = launcher.run("-n", "4", *program).stdout.splitlines()
    assert len(lines) == 4
    assert len(set(lines)) == 1


def test_sixty_four_ranks_join(launcher: Launcher) -> None:
    program = rank_program("s, reply, fds = join()", "print(reply[3])", "leave(s)")
    done = launcher.run("-n", "64", *program)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(map(int, done.stdout.split())) == list(range(64))


REFUSALS = {
    "a rank that is taken": (
        "s, reply, fds = join()\nt, again, fds = join()\nprint(text(again), fds)\nleave(s)",
        "rank 0 is already taken by process {pid}; a program that is a job of its own needs "
        "MOBIUS_JOB unset []",
    ),
    "a rank that has left": (
        "s, reply, fds = join()\nleave(s)\nt, again, fds = join()\nprint(text(again))",
        "rank 0 has left the job (process {pid}); a rank joins once per mobius run",
    ),
    "a rank too high": (
        "s, reply, fds = join(rank=1)\nprint(text(reply))",
        "rank 1 is not in 0 ... 0; leave MOBIUS_RANK as mobius run sets it",
    ),
    "a negative rank": (
        "s, reply, fds = join(rank=-7)\nprint(text(reply))",
        "rank -7 is not in 0 ... 0; leave MOBIUS_RANK as mobius run sets it",
    ),
    "another version": (
        "s, reply, fds = join(version=9)\nprint(text(reply))",
        "the launcher speaks protocol 3, this libmobius 9; use the mobius command that came with "
        "it",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_give_a_reason(launcher: Launcher, case: str) -> None:
    lines, said = REFUSALS[case]
    program = rank_program(*lines.splitlines(), "say('pid.0', os.getpid())")
    done = launcher.run(*program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().strip() == said.format(pid=launcher.ranks(1)[0])


GARBAGE = {
    "no Hello": f"s.send(seal(message({GOODBYE}), challenge(s)))",
    "no proof": f"s.send(message({HELLO}))",
    "the proof of another connection": f"s.send(seal(message({HELLO}), challenge(connect())))",
    "an abort without proof": "s.send(message(5))",
    "another magic": f"s.send(message({HELLO}, magic=7))",
    "too short": "s.send(b'hello')",
    "too long": f"s.send(message({HELLO}) + b'x')",
    "nothing": "s.shutdown(socket.SHUT_WR)",
    "an empty message": "s.send(b'')",
    "descriptors": (
        "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2]))])"
    ),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_is_dropped_and_harms_nobody(launcher: Launcher, case: str) -> None:
    program = rank_program(
        "s = connect()",
        GARBAGE[case],
        "try:",
        "    while more := s.recv(200): pass",
        "except ConnectionResetError: more = b''",
        "print(more)",
        "s, reply, fds = join()",
        "print(reply[2])",
        "leave(s)",
    )
    done = launcher.run("-n", "2", *program)
    assert done.returncode == 0
    assert sorted(done.stdout.split()) == [b"2", b"2", b"b''", b"b''"]
    # A process that sends nothing, or Goodbye before Hello, is not reported as a stranger.
    is_told = case not in ("no Hello", "nothing", "an empty message")
    assert done.stderr.count(b"and is not of this job\n") == 2 * is_told
    assert len(done.stderr.splitlines()) == 2 * is_told


def test_silent_strangers_do_not_keep_ranks_out(launcher: Launcher) -> None:
    # More connections, held by children of the rank, than the launcher has descriptors for.
    program = rank_program(
        "for child in range(10):",
        "    if os.fork() == 0:",
        "        silent = [connect() for i in range(20)]",
        "        say(f'silent.{child}')",
        "        time.sleep(1000)",
        "for child in range(10): until(f'silent.{child}')",
        "s, reply, fds = join()",
        "print(reply[2])",
        "leave(s)",
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))

    done = launcher.run(*program, preexec_fn=limit)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"2\n", b"")


def test_foreign_user_is_dropped(launcher: Launcher) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    program = rank_program(
        "child = os.fork()",
        "if child == 0:",
        "    os.setuid(54321)",
        "    try:",
        "        os._exit(0 if connect().recv(200) == b'' else 1)",
        "    except (ConnectionResetError, BrokenPipeError):",
        "        os._exit(0)",
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0",
        "s, reply, fds = join()",
        "leave(s)",
    )
    done = launcher.run(*program)
    assert done.returncode == 0
    assert done.stderr.count(b"is another user's\n") == len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("sys.exit(0)", "exited without mob_finalize()"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9 (Killed)"),
        ("os._exit(7)", "exited with code 7"),
        ("s.close(); time.sleep(1000)", "left the job without mob_finalize()"),
        ("os.execlp('sleep', 'sleep', '1000')", "left the job without mob_finalize()"),
    ],
)
def test_rank_that_leaves_without_goodbye(launcher: Launcher, ending: str, said: str) -> None:
    program = rank_program(
        "s, reply, fds = join()",
        "say(f'joined.{rank}')",
        "for other in range(3): until(f'joined.{other}')",
        f"if rank == 1: {ending}",
        "time.sleep(1000)",
    )
    done = launcher.run("-n", "3", *program)
    text = done.stderr.decode()
    assert text.count("\n") == 1, text
    assert f"{said}; the other 2 ranks were ended" in text
    assert "rank 1 (process " in text
    expected = {"was killed by signal 9 (Killed)": 137, "exited with code 7": 7}.get(said, 1)
    assert done.returncode == expected


def test_process_that_joined_is_named_not_its_wrapper(launcher: Launcher) -> None:
    program = rank_program(
        "s, reply, fds = join()", "say('pid.0', os.getpid())", "os.kill(os.getpid(), 9)"
    )
    done = launcher.run("sh", "-c", '"$@"; sleep 1000', "sh", *program)
    assert done.returncode == 1
    said = f"rank 0 (process {launcher.ranks(1)[0]}, sh) left the job without mob_finalize()"
    assert said in done.stderr.decode()


def test_goodbye_just_before_the_end_counts(launcher: Launcher) -> None:
    program = rank_program("s, reply, fds = join()", "leave(s)", "os._exit(0)")
    for _ in range(5):
        done = launcher.run("-n", "8", *program)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("first", ["joins", "ends"])
def test_rank_that_never_joins(launcher: Launcher, first: str) -> None:
    before = "until('ended')" if first == "ends" else "pass"
    wait = "until('joined')" if first == "joins" else "pass"
    program = rank_program(
        "if rank == 1:",
        f"    {wait}",
        "    say('pid.1', os.getpid())",
        "    sys.exit(0)",
        before,
        "s, reply, fds = join()",
        "say('joined')",
        "time.sleep(1000)",
    )
    process = launcher.start("-n", "2", *program)
    pid = int(launcher.file("pid.1"))
    # Reaped by the worker: only then is it certain that its end came first.
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "rank 1 has ended")
    (launcher.folder / "ended").touch()
    code, _, err = launcher.finish(process)
    assert code == 1
    assert err.count("\n") == 1
    assert f"rank 1 (process {pid}, " in err
    assert "exited without mob_init(), which another rank has called" in err


def test_programs_that_never_join_are_fine(launcher: Launcher) -> None:
    assert launcher.run("-n", "4", "true").returncode == 0


def test_launcher_is_not_disturbed_by_strangers_from_outside(launcher: Launcher) -> None:
    """Any process of the same user may connect; the launcher goes on."""
    ends = os.pipe()
    process = launcher.start("sh", "-c", 'echo $MOBIUS_JOB; read x; echo "got $x"', stdin=ends[0])
    os.close(ends[0])
    assert process.stdout is not None
    secret = bytes.fromhex(os.read(process.stdout.fileno(), 100).decode().strip())
    name = hmac.digest(secret, b"address 0", "sha256")[:16].hex()

    def shout() -> None:
        for number in range(100):
            stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stranger.connect(f"\0mobius-{name}")
            with contextlib.suppress(BrokenPipeError):  # closed, to make room for others
                stranger.send(struct.pack("=I", number) * (number + 1))
            stranger.close()

    shouters = [threading.Thread(target=shout) for _ in range(3)]
    for shouter in shouters:
        shouter.start()
    for shouter in shouters:
        shouter.join()
    os.write(ends[1], b"quiet\n")
    os.close(ends[1])
    code, out, err = launcher.finish(process)
    assert (code, out) == (0, b"got quiet\n")
    # Once for some of them, not for each.
    turned_away = f"turned away process {os.getpid()}, which connected to this job's socket"
    assert err.count(turned_away) == len(err.splitlines()) == 8
    assert err.endswith("is not of this job; more of this is not reported\n")


# Connects to the launcher over and over until it is told to end, as another user if it may.
FLOOD = python(
    "import os, socket, sys",
    "name, folder, user = sys.argv[1], sys.argv[2], int(sys.argv[3])",
    "if user: os.setuid(user)",
    "print('floods', flush=True)",
    "while True:",
    "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "    try: s.connect('\\0mobius-' + name)",
    "    except OSError: pass",
    "    s.close()",
)


@pytest.mark.parametrize("user", [0, 54321])
def test_a_flood_of_connections_holds_nothing_up(launcher: Launcher, user: int) -> None:
    """Ranks join, a rank's death is noticed and signals arrive while outsiders connect for ever."""
    if user and os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    program = rank_program(
        "if rank == 0: say('secret', os.environ['MOBIUS_JOB'])",
        "until('flooded')",
        "s, reply, fds = join()",
        "say(f'joined.{rank}')",
        "until('joined.0'); until('joined.1'); until('joined.2')",
        "if rank == 1: os.kill(os.getpid(), 9)",
        "time.sleep(1000)",
    )
    process = launcher.start("-n", "3", *program)
    secret = bytes.fromhex(launcher.file("secret"))
    name = hmac.digest(secret, b"address 0", "sha256")[:16].hex()
    words = [*FLOOD, name, str(launcher.folder), str(user)]
    flooders = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for flooder in flooders:
            assert flooder.stdout is not None
            assert flooder.stdout.read(6) == b"floods"
        (launcher.folder / "flooded").touch()
        code, _, err = launcher.finish(process)
        assert all(flooder.poll() is None for flooder in flooders), "the flood has gone on"
    finally:
        for flooder in flooders:
            flooder.kill()
            flooder.communicate()
    assert code == 137
    assert "rank 1 (process " in err
    assert "was killed by signal 9 (Killed); the other 2 ranks were ended" in err


def preload(launcher: Launcher, text: str) -> str:
    """The name of a library to preload, compiled from the text."""
    source = launcher.folder / "preload.c"
    library = launcher.folder / "preload.so"
    source.write_text(text)
    words = ["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(words, check=True)
    return str(library)


# Another connection waits whenever accept4() is called, as in a flood faster than the launcher.
ENDLESS_FLOOD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
int accept4(int socket, struct sockaddr* address, socklen_t* length, int flags) {
  int (*real)(int, struct sockaddr*, socklen_t*, int) = dlsym(RTLD_NEXT, "accept4");
  const int result = real(socket, address, length, flags);
  int both[2];
  if (result >= 0 || errno != EAGAIN) return result;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | flags, 0, both) != 0) return -1;
  close(both[1]);
  return both[0];
}
"""


def test_a_flood_that_never_pauses_holds_nothing_up(launcher: Launcher) -> None:
    """Each turn of the launcher accepts a bounded number of connections."""
    flood = {"LD_PRELOAD": preload(launcher, ENDLESS_FLOOD)}
    program = rank_program(
        "s, reply, fds = join()",
        "say(f'joined.{rank}')",
        "until('joined.0'); until('joined.1'); until('joined.2')",
        "if rank == 1: os.kill(os.getpid(), 9)",
        "time.sleep(1000)",
    )
    done = launcher.run("-n", "3", *program, env=flood)
    assert done.returncode == 137
    assert b"was killed by signal 9 (Killed); the other 2 ranks were ended" in done.stderr


# Lets accept4() fail from its second call on with the error named in the environment.
FAILING_ACCEPT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
int accept4(int socket, struct sockaddr* address, socklen_t* length, int flags) {
  static int calls;
  int (*real)(int, struct sockaddr*, socklen_t*, int) = dlsym(RTLD_NEXT, "accept4");
  const char* failures = getenv("ACCEPT_FAILURES");
  if (failures == NULL) return real(socket, address, length, flags);
  const int result = calls == 0 ? real(socket, address, length, flags) : -1;
  if (result >= 0) ++calls;
  if (result >= 0 || calls == 0) return result;
  if (calls > atoi(failures)) return real(socket, address, length, flags);
  ++calls;
  errno = atoi(getenv("ACCEPT_ERROR"));
  return -1;
}
"""


def accept_that_fails(launcher: Launcher, error: int, failures: int) -> dict[str, str]:
    return {
        "LD_PRELOAD": preload(launcher, FAILING_ACCEPT),
        "ACCEPT_FAILURES": str(failures),
        "ACCEPT_ERROR": str(error),
    }


@pytest.mark.parametrize(("error", "failures"), [(errno.EMFILE, 3), (errno.ECONNABORTED, 3)])
def test_accept_that_fails_for_a_while(launcher: Launcher, error: int, failures: int) -> None:
    program = rank_program("s, reply, fds = join()", "print(reply[2])", "leave(s)")
    failing = accept_that_fails(launcher, error, failures)
    done = launcher.run("-n", "3", *program, env=failing)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"2\n2\n2\n", b"")


@pytest.mark.parametrize("error", [errno.EPERM, errno.EMFILE])
def test_accept_that_fails_for_good_ends_the_job(launcher: Launcher, error: int) -> None:
    program = rank_program("s, reply, fds = join()", "time.sleep(1000)")
    failing = accept_that_fails(launcher, error, 10**6)
    done = launcher.run("-n", "3", *program, env=failing)
    assert done.returncode == 1
    said = "ranks cannot join, because accepting their connections fails: " + os.strerror(error)
    assert said in done.stderr.decode()
