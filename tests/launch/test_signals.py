# SPDX-License-Identifier: BSD-3-Clause
"""Signals, with and without a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from launch_tools import HANG_SECONDS, Launcher, command, python, state_of, wait_until

# Counts signals; SIGUSR2 ends it. Says when it is ready, and each time it counted.
COUNTER = python(
    "import os, signal, sys, time",
    "folder, rank = os.environ['D'], os.environ['MOBIUS_RANK']",
    "counts = {}",
    "def say(name, text):",
    "    with open(f'{folder}/new.{rank}', 'w') as file:",
    "        file.write(text + '\\n')",
    "    os.rename(f'{folder}/new.{rank}', f'{folder}/{name}.{rank}')",
    "def count(number, frame):",
    "    counts[number] = counts.get(number, 0) + 1",
    "    say('counts', ' '.join(f'{n}:{c}' for n, c in sorted(counts.items())))",
    "for name in 'HUP INT QUIT TERM USR1 WINCH'.split():",
    "    signal.signal(getattr(signal, 'SIG' + name), count)",
    "signal.signal(signal.SIGUSR2, lambda n, f: sys.exit(0))",
    "say('ready', str(os.getpid()))",
    "while True:",
    "    time.sleep(0.02)  # not pause(): it would miss a signal that comes right before",
)
SLEEP = 'echo $$ > "$D/new.$MOBIUS_RANK"; mv "$D/new.$MOBIUS_RANK" "$D/pid.$MOBIUS_RANK"; '


def has_counted(launcher: Launcher, rank: int, text: str) -> bool:
    path = launcher.folder / f"counts.{rank}"
    return path.exists() and path.read_text() == text + "\n"


def counted(launcher: Launcher, ranks: int, text: str) -> None:
    for rank in range(ranks):
        wait_until(partial(has_counted, launcher, rank, text), f"rank {rank} counts {text}")


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "USR1", "WINCH"])
def test_signals_reach_every_rank_once(launcher: Launcher, name: str) -> None:
    process = launcher.start("-n", "3", *COUNTER)
    for rank in range(3):
        launcher.file(f"ready.{rank}")
    number = signal.Signals[f"SIG{name}"]
    process.send_signal(number)
    counted(launcher, 3, f"{number.value}:1")
    process.send_signal(signal.SIGUSR2)
    assert launcher.finish(process) == (0, b"", "")
    counted(launcher, 3, f"{number.value}:1")


def test_signals_reach_descendants_in_the_ranks_group(launcher: Launcher) -> None:
    script = SLEEP + "sleep 1000 & wait"
    process = launcher.start("-n", "2", "sh", "-c", script)
    launcher.ranks(2)
    wait_until(lambda: len(launcher.named("sleep")) == 2, "the descendants run")
    process.send_signal(signal.SIGTERM)
    assert launcher.finish(process)[0] == 143


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_exit_code_after_an_interrupt(launcher: Launcher, number: signal.Signals) -> None:
    process = launcher.start("-n", "3", "sh", "-c", SLEEP + "exec sleep 1000")
    launcher.ranks(3)
    process.send_signal(number)
    assert launcher.finish(process) == (128 + number, b"", "")


WITHOUT_CORES = ["sh", "-c", 'ulimit -c 0; exec "$@"', "sh"]


@pytest.mark.parametrize("on_death", ["end", "error"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_hangup_and_quit_end_a_job_that_does_not_handle_them(
    launcher: Launcher, number: signal.Signals, on_death: str
) -> None:
    words = ["-n", "3", "--on-death", on_death, "sh", "-c", SLEEP + "exec sleep 1000"]
    process = launcher.start(*words, prefix=WITHOUT_CORES)
    launcher.ranks(3)
    process.send_signal(number)
    assert launcher.finish(process) == (128 + number, b"", "")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_ranks_may_take_their_time_after_a_hangup(
    launcher: Launcher, number: signal.Signals
) -> None:
    """They get no SIGTERM because another rank has ended first, nor SIGKILL soon."""
    name = number.name.removeprefix("SIG")
    script = f"""
        if [ $MOBIUS_RANK = 0 ]; then {SLEEP} exec sleep 1000; fi
        trap 'echo terminated' TERM
        trap 'sleep 1; echo saved; exit 0' {name}
        {SLEEP}
        while :; do sleep 0.01; done
    """
    process = launcher.start("-n", "2", "sh", "-c", script, prefix=WITHOUT_CORES)
    launcher.ranks(2)
    process.send_signal(number)
    code, out, err = launcher.finish(process)
    assert (code, out) == (128 + number, b"saved\n")
    assert "mobius run" not in err  # the shell itself may tell that its `sleep` was ended


def test_a_rank_that_survives_the_hangup_of_another_is_killed_after_a_while(
    launcher: Launcher,
) -> None:
    script = 'if [ $MOBIUS_RANK = 1 ]; then trap "" HUP TERM; fi; ' + SLEEP + "exec sleep 1000"
    process = launcher.start("-n", "2", "sh", "-c", script)
    launcher.ranks(2)
    process.send_signal(signal.SIGHUP)
    code, _, err = launcher.finish(process)
    assert code == 129
    assert re.fullmatch(
        r"mobius run: 1 of 2 ranks did not end within \d+ s of signal 1 \(Hangup\) "
        r"and were killed\n",
        err,
    )


def test_termination_after_a_hangup_lets_ranks_end(launcher: Launcher) -> None:
    """As services are ended: the second signal is no second request."""
    script = """
        if [ $MOBIUS_RANK = 0 ]; then exec sleep 1000; fi
        trap '' HUP
        trap 'sleep 0.5; echo saved; exit 0' TERM
    """
    script += SLEEP + "while :; do sleep 0.01; done"
    process = launcher.start("-n", "2", "sh", "-c", script)
    launcher.file("pid.1")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    code, out, _ = launcher.finish(process)
    assert code in (129, 143)  # rank 0 ends by whichever comes first
    assert out == b"saved\n"


def test_exit_code_that_a_handler_chose(launcher: Launcher) -> None:
    script = "trap 'exit 41' TERM; " + SLEEP + "while :; do sleep 0.01; done"
    process = launcher.start("-n", "2", "sh", "-c", script)
    launcher.ranks(2)
    process.send_signal(signal.SIGTERM)
    code, _, err = launcher.finish(process)
    assert code == 41
    assert "mobius run" not in err  # the shell itself may tell that its `sleep` was terminated


def test_second_interrupt_kills(launcher: Launcher) -> None:
    process = launcher.start("-n", "3", *COUNTER)
    for rank in range(3):
        launcher.file(f"ready.{rank}")
    process.send_signal(signal.SIGINT)
    counted(launcher, 3, "2:1")
    process.send_signal(signal.SIGINT)
    assert launcher.finish(process) == (130, b"", "")


def test_ranks_that_ignore_the_first_interrupt_are_killed_after_a_while(
    launcher: Launcher,
) -> None:
    process = launcher.start("-n", "2", *COUNTER)
    for rank in range(2):
        launcher.file(f"ready.{rank}")
    process.send_signal(signal.SIGTERM)
    code, _, err = launcher.finish(process)
    assert code == 143
    assert re.fullmatch(
        r"mobius run: 2 of 2 ranks did not end within \d+ s of signal 15 \(Terminated\) "
        r"and were killed\n",
        err,
    )


def test_hangup_that_was_ignored_stays_ignored(launcher: Launcher) -> None:
    process = launcher.start("-n", "2", "sh", "-c", SLEEP + "exec sleep 1000", prefix=["nohup"])
    pids = launcher.ranks(2)
    process.send_signal(signal.SIGHUP)
    for pid in pids:
        os.kill(pid, signal.SIGHUP)  # not blocked by us: the disposition arrived there
    process.send_signal(signal.SIGTERM)
    code, _, err = launcher.finish(process)
    assert code == 143
    assert "signal 1" not in err


def test_ranks_get_the_callers_signal_state(launcher: Launcher) -> None:
    def state() -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR2})

    words = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    done = launcher.run("-n", "2", *words, preexec_fn=state)
    masks = [line.split() for line in done.stdout.decode().splitlines()]
    usr1, usr2 = 1 << (signal.SIGUSR1 - 1), 1 << (signal.SIGUSR2 - 1)
    assert [int(mask, 16) for name, mask in masks if name == "SigBlk:"] == [usr2, usr2]
    # Python leaves other signals ignored or not as it likes.
    assert [int(mask, 16) & usr1 for name, mask in masks if name == "SigIgn:"] == [usr1, usr1]


def test_stop_and_continue(launcher: Launcher) -> None:
    process = launcher.start("-n", "2", "sh", "-c", SLEEP + "exec sleep 1000")
    pids = launcher.ranks(2)
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: all(state_of(p) == "T" for p in [*pids, process.pid]), "all are stopped")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: all(state_of(p) == "S" for p in [*pids, process.pid]), "all continue")
    process.send_signal(signal.SIGTERM)
    assert launcher.finish(process)[0] == 143


class Terminal:
    """The side of a terminal where a person sits."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self.master = master
        self.seen = b""

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def read_until(self, text: bytes) -> None:
        while text not in self.seen:
            self.seen += os.read(self.master, 4096)

    def exit_code(self) -> int:
        while True:
            try:
                more = os.read(self.master, 4096)
            except OSError:  # EIO: the other side is closed
                break
            if not more:
                break
            self.seen += more
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@contextmanager
def at_terminal(launcher: Launcher, *words: str) -> Iterator[Terminal]:
    pid, master = pty.fork()
    if pid == 0:
        signal.alarm(HANG_SECONDS)
        os.execve(command(), [command(), "run", *words], launcher.environment())
    try:
        yield Terminal(pid, master)
    finally:
        os.close(master)


def test_control_c_reaches_each_rank_once(launcher: Launcher) -> None:
    with at_terminal(launcher, "-n", "3", *COUNTER) as terminal:
        for rank in range(3):
            launcher.file(f"ready.{rank}")
        terminal.type(b"\x03")
        counted(launcher, 3, "2:1")
        os.kill(terminal.pid, signal.SIGUSR2)
        assert terminal.exit_code() == 0
        counted(launcher, 3, "2:1")


def test_control_c_ends_a_job_quietly(launcher: Launcher) -> None:
    # Often: the signal and the death of the rank at the terminal come in any order.
    for _ in range(20):
        with at_terminal(launcher, "-n", "2", "sh", "-c", SLEEP + "exec sleep 1000") as terminal:
            launcher.ranks(2)
            terminal.type(b"\x03")
            assert terminal.exit_code() == 130
            assert b"mobius run" not in terminal.seen
        for rank in range(2):
            (launcher.folder / f"pid.{rank}").unlink()


def test_typed_input_goes_to_rank_0(launcher: Launcher) -> None:
    script = 'read word; echo "<$MOBIUS_RANK got $word>"'
    with at_terminal(launcher, "-n", "2", "sh", "-c", script) as terminal:
        terminal.type(b"hello\n")
        terminal.read_until(b"<0 got hello>")
        terminal.read_until(b"<1 got >")
        assert terminal.exit_code() == 0


def test_end_of_typing(launcher: Launcher) -> None:
    with at_terminal(launcher, "-n", "1", "sh", "-c", "echo ready; wc -l") as terminal:
        terminal.read_until(b"ready")
        terminal.type(b"a\nb\n\x04")
        terminal.read_until(b"2\r\n")
        assert terminal.exit_code() == 0


@contextmanager
def at_shell(launcher: Launcher, script: str) -> Iterator[Terminal]:
    """Run a shell's script at a terminal, "$0" in it being the command."""
    pid, master = pty.fork()
    if pid == 0:
        signal.alarm(HANG_SECONDS)
        os.execve("/bin/bash", ["bash", "-c", script, command()], launcher.environment())
    try:
        yield Terminal(pid, master)
    finally:
        os.close(master)


def test_input_that_no_rank_reads_is_left_for_the_shell(launcher: Launcher) -> None:
    rank = "echo > $D/runs.$MOBIUS_RANK; until [ -e $D/go ]; do sleep 0.01; done"
    script = f'"$0" run -n 2 sh -c \'{rank}\'; read line; echo "shell got <$line>"'
    with at_shell(launcher, script) as terminal:
        for rank_number in range(2):
            launcher.file(f"runs.{rank_number}")
        terminal.type(b"next command\n")
        terminal.read_until(b"next command\r\n")  # the terminal shows what it has taken
        (launcher.folder / "go").touch()
        terminal.read_until(b"shell got <next command>")
        assert terminal.exit_code() == 0


def test_rank_0_has_the_terminal_itself(launcher: Launcher) -> None:
    """It may switch off what is shown, and reads one line, not what follows."""
    rank = 'if [ -t 0 ]; then stty -echo; printf "word? "; read word; echo got $word; fi'
    script = f'"$0" run -n 2 sh -c \'{rank}\'; stty echo; read line; echo "shell got <$line>"'
    with at_shell(launcher, script) as terminal:
        terminal.read_until(b"word? ")
        terminal.type(b"secret\nfor the shell\n")
        terminal.read_until(b"got secret")
        terminal.read_until(b"shell got <for the shell>")
        assert terminal.seen.count(b"secret") == 1
        assert terminal.exit_code() == 0


@pytest.mark.parametrize(
    ("end", "code", "is_restored"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139, True),
        ("sys.exit(3)", 3, True),
        ("os.kill(os.getppid(), signal.SIGKILL)", 137, True),  # the launcher's worker
        ("sys.exit(0)", 0, False),  # as stty does
    ],
)
def test_terminal_modes_that_a_rank_changed(
    launcher: Launcher, end: str, code: int, is_restored: bool
) -> None:
    rank = python(
        "import os, signal, sys, time, tty",
        "if os.environ['MOBIUS_RANK'] == '0':",
        "    while not os.path.exists(os.environ['D'] + '/go'):",
        "        time.sleep(0.01)",
        "    tty.setraw(0)",
        f"    {end}",
    )
    with at_terminal(launcher, "-n", "2", *rank) as terminal:
        # Keeps the terminal and its modes when all processes of the job have closed it.
        tiocgptn = 0x80045430  # which Python does not name
        number = fcntl.ioctl(terminal.master, tiocgptn, b"----")
        name = f"/dev/pts/{int.from_bytes(number, sys.byteorder)}"
        kept = os.open(name, os.O_RDWR | os.O_NOCTTY)
        before = termios.tcgetattr(kept)
        (launcher.folder / "go").touch()
        assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == code
        assert (termios.tcgetattr(kept) == before) is is_restored
        os.close(kept)


def test_signals_reach_descendants_of_the_rank_at_the_terminal(launcher: Launcher) -> None:
    script = SLEEP + "sleep 1000 & wait"
    with at_terminal(launcher, "-n", "2", "sh", "-c", script) as terminal:
        launcher.ranks(2)
        wait_until(lambda: len(launcher.named("sleep")) == 2, "the descendants run")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.exit_code() == 143


def test_terminal_that_disappears_ends_the_job(launcher: Launcher) -> None:
    with at_terminal(launcher, "-n", "2", "sh", "-c", SLEEP + "exec sleep 1000") as terminal:
        launcher.ranks(2)
    wait_until(lambda: launcher.marked() == [], "the job has ended")
    os.waitpid(terminal.pid, 0)
