# SPDX-License-Identifier: BSD-3-Clause
"""Output: whole lines, nothing lost, nothing invented, no memory without bound."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from launch_tools import Launcher, command, python, state_of, wait_until

WRITER = python(
    "import os, random",
    "rank = os.environ['MOBIUS_RANK']",
    "random.seed(rank)",
    "text = ''.join(f'<{rank}:{i}:{rank * random.randint(0, 300)}>\\n' for i in range(1500))",
    "data = text.encode()",
    "while data:",
    "    n = random.randint(1, 3000)",
    "    os.write(1, data[:n])",
    "    data = data[n:]",
)


@pytest.mark.parametrize("tag", [False, True])
def test_lines_of_ranks_are_not_mixed(launcher: Launcher, tag: bool) -> None:
    options = ["--tag"] if tag else []
    done = launcher.run("-n", "6", *options, *WRITER)
    assert done.returncode == 0
    following = Counter[str]()
    for line in done.stdout.decode().splitlines():
        pattern = r"\[(\d)\] <(\d):(\d+):(\d*)>" if tag else r"()<(\d):(\d+):(\d*)>"
        match = re.fullmatch(pattern, line)
        assert match, line[:200]
        label, rank, number, filling = match.groups()
        assert label in ("", rank)
        assert set(filling) <= {rank}
        assert int(number) == following[rank]
        following[rank] += 1
    assert following == {str(rank): 1500 for rank in range(6)}


def test_streams_stay_apart(launcher: Launcher) -> None:
    script = "echo out$MOBIUS_RANK; echo err$MOBIUS_RANK >&2"
    done = launcher.run("-n", "3", "--tag", "sh", "-c", script)
    assert sorted(done.stdout.splitlines()) == [f"[{r}] out{r}".encode() for r in range(3)]
    assert sorted(done.stderr.splitlines()) == [f"[{r}] err{r}".encode() for r in range(3)]


def test_both_streams_to_one_file(launcher: Launcher) -> None:
    script = "i=0; while [ $i -lt 300 ]; do echo out; echo err >&2; i=$((i+1)); done"
    path = launcher.folder / "both"
    with path.open("wb") as file:
        process = launcher.start("-n", "4", "sh", "-c", script, stdout=file, stderr=file)
        assert launcher.finish(process)[0] == 0
    assert Counter(path.read_bytes().splitlines()) == {b"out": 1200, b"err": 1200}


def test_last_line_without_newline(launcher: Launcher) -> None:
    assert launcher.run("printf", "no newline").stdout == b"no newline"
    done = launcher.run("-n", "3", "printf", "end")
    assert done.stdout == b"end\nend\nend"
    done = launcher.run("-n", "2", "--tag", "sh", "-c", "printf $MOBIUS_RANK")
    assert done.stdout in (b"[0] 0\n[1] 1", b"[1] 1\n[0] 0")


def test_empty_output(launcher: Launcher) -> None:
    done = launcher.run("-n", "4", "--tag", "true")
    assert (done.stdout, done.stderr) == (b"", b"")


def test_empty_lines_are_tagged(launcher: Launcher) -> None:
    done = launcher.run("-n", "1", "--tag", "printf", "\\n\\nx\\n\\n")
    assert done.stdout == b"[0] \n[0] \n[0] x\n[0] \n"


def test_any_byte_passes(launcher: Launcher) -> None:
    data = bytes(range(256)) * 2000
    assert launcher.run("cat", data=data).stdout == data
    assert launcher.run("-n", "2", "cat", data=data).stdout == data


def test_very_long_lines(launcher: Launcher) -> None:
    length = 5_000_000
    program = python(
        "import os, sys",
        "rank = os.environ['MOBIUS_RANK']",
        f"sys.stdout.write(rank * {length} + '\\n')",
    )
    assert launcher.run(*program).stdout == b"0" * length + b"\n"
    done = launcher.run("-n", "2", *program)
    pieces = done.stdout.splitlines()
    assert Counter(done.stdout)[ord("0")] == length
    assert Counter(done.stdout)[ord("1")] == length
    assert all(len(set(piece)) == 1 for piece in pieces), "a piece holds bytes of both ranks"
    # Pieces are a mebibyte or more, so there cannot be many.
    assert len(pieces) <= 2 * (length // 2**20 + 1)


def test_prompt_of_a_single_rank_is_seen_at_once(launcher: Launcher) -> None:
    process = launcher.start(
        "sh", "-c", "printf 'name? '; read name; echo hello $name", stdin=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert os.read(process.stdout.fileno(), 100) == b"name? "
    process.stdin.write(b"you\n")
    assert launcher.finish(process)[:2] == (0, b"hello you\n")


def test_output_of_a_rank_comes_before_its_failure(launcher: Launcher) -> None:
    script = 'if [ $MOBIUS_RANK = 1 ]; then echo "my own words" >&2; exit 5; fi; sleep 1000'
    done = launcher.run("-n", "2", "sh", "-c", script)
    assert done.returncode == 5
    first, second = done.stderr.decode().splitlines()
    assert first == "my own words"
    assert "exited with code 5" in second


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def resident_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert match
    return int(match[1])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_slow_reader_holds_the_ranks_back(launcher: Launcher, stream: str) -> None:
    size = 60_000_000
    redirect = ">&2" if stream == "stderr" else ""
    script = f"yes 0123456 | head -c {size} {redirect}; echo > $D/done.$MOBIUS_RANK"
    process = launcher.start("-n", "2", "sh", "-c", script)
    worker = launcher.worker(process)

    def blocked() -> bool:
        writers = launcher.named("head")
        return len(writers) == 2 and all(state_of(pid) == "S" for pid in writers)

    # Blocked at every one of many looks: nothing moves any more.
    calm = 0

    def settled() -> bool:
        nonlocal calm
        calm = calm + 1 if blocked() and state_of(worker) == "S" else 0
        return calm == 50

    wait_until(settled, "the ranks wait for the reader")
    # Far less than what the ranks want to write; a sanitizer alone takes 30 MB.
    assert resident_kib(worker) < size // 1000
    before = cpu_ticks(worker)
    calm = 0
    wait_until(settled, "the ranks still wait")
    assert cpu_ticks(worker) == before, "the launcher is busy while nothing happens"
    assert not (launcher.folder / "done.0").exists()

    code, out, err = launcher.finish(process)
    assert code == 0
    text = out if stream == "stdout" else err.encode()
    assert len(text) == 2 * size
    assert set(text.splitlines()) == {b"0123456"}


def test_reader_that_goes_away_ends_the_job_quietly(launcher: Launcher) -> None:
    process = launcher.start("-n", "3", "sh", "-c", "yes; sleep 1000")
    assert process.stdout is not None
    os.read(process.stdout.fileno(), 4096)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait() == 128 + signal.SIGPIPE


def test_full_device(launcher: Launcher) -> None:
    with Path("/dev/full").open("wb") as full:
        process = launcher.start("-n", "2", "sh", "-c", "echo x; sleep 1000", stdout=full)
        code, _, err = launcher.finish(process)
    assert code == 1
    assert err.count("\n") == 1
    assert "writing standard output failed: No space left on device" in err


SUBCOMMANDS = ["help", "--version", "run --help", "info", "info --json", "tune", "explain FILE"]


@pytest.mark.parametrize("words", SUBCOMMANDS)
def test_full_device_and_other_subcommands(tmp_path: Path, words: str) -> None:
    """Exit code and one line, for those that the user and scripts read the output of."""
    operations = tmp_path / "operations"
    operations.write_text("put 0 8\n")
    arguments = [str(operations) if word == "FILE" else word for word in words.split()]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [command(), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "mobius: writing standard output failed: No space left on device\n"


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("words", ["help", "info"])
def test_reader_of_another_subcommand_goes_away(words: str, ignored: bool) -> None:
    """As SIGPIPE would end it, also where that is ignored, as under Python or in a service."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [command(), words], stdout=writer, stderr=subprocess.PIPE, check=False,
        restore_signals=not ignored,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == (128 + signal.SIGPIPE if ignored else -signal.SIGPIPE)
    assert done.stderr == b""


def test_closed_standard_descriptors(launcher: Launcher) -> None:
    # Descriptors 0 to 2 must not become the launcher's own sockets and pipes.
    process = launcher.start(
        *["-n", "2", "sh", "-c", "cat; echo out; echo err >&2; echo > $D/ran.$MOBIUS_RANK"],
        prefix=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"],
    )
    assert launcher.finish(process) == (0, b"", "")
    assert (launcher.folder / "ran.0").exists()
    assert (launcher.folder / "ran.1").exists()


LOST_WORDS = python(
    "import ctypes, os",
    "libc = ctypes.CDLL(None)",
    "libc.printf(b'words of %d\\n', int(os.environ['MOBIUS_RANK']))",
    "open(os.environ['D'] + '/said.' + os.environ['MOBIUS_RANK'], 'w').close()",
    "while len([n for n in os.listdir(os.environ['D']) if n.startswith('said')]) < 2: pass",
    "os.kill(os.getpid(), 9)",
)


@pytest.mark.parametrize("options", [[], ["--tag"]])
def test_lines_that_a_rank_printed_survive_its_crash(
    launcher: Launcher, options: list[str]
) -> None:
    """The C library of a rank writes each line, as it does at a terminal."""
    done = launcher.run("-n", "2", *options, *LOST_WORDS)
    assert done.returncode == 137
    tags = [b"[0] ", b"[1] "] if options else [b"", b""]
    lines = [tag + b"words of %d" % rank for rank, tag in enumerate(tags)]
    assert sorted(done.stdout.splitlines()) == lines


def test_output_of_the_ranks_may_be_a_pipe(launcher: Launcher) -> None:
    script = "test -p /dev/stdout && test -p /dev/stderr && echo pipes"
    assert launcher.run("-n", "2", "--stdout", "pipe", "sh", "-c", script).stdout == b"pipes\n" * 2
    script = "test -t 1 && test -p /dev/stderr && echo $TERM"
    done = launcher.run("-n", "2", "sh", "-c", script, env={"TERM": "xterm"})
    assert done.stdout == b"dumb\n" * 2
    done = launcher.run("--env", "TERM=vt100", "sh", "-c", script, env={"TERM": "xterm"})
    assert done.stdout == b"vt100\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("tag", [b"", b"[0] "])
def test_beginning_of_a_line_is_seen_before_its_end(
    launcher: Launcher, tag: bytes, stream: str
) -> None:
    """Among several ranks, too; a tag stands before it once."""
    redirect = "exec >&2; " if stream == "stderr" else ""
    script = redirect + (
        "if [ $MOBIUS_RANK = 1 ]; then exec sleep 1000; fi; "
        "printf 'name? '; until [ -e $D/go ]; do sleep 0.01; done; "
        "printf '\\r10 %%'; until [ -e $D/on ]; do sleep 0.01; done; "
        "printf '\\r20 %%\\n'; exit 3"
    )
    process = launcher.start("-n", "2", *(["--tag"] if tag else []), "sh", "-c", script)
    seen = b""
    source = getattr(process, stream).fileno()
    for expected, signal_file in [(tag + b"name? ", "go"), (b"\r10 %", "on"), (b"\r20 %\n", "")]:
        piece = b""
        while len(piece) < len(expected):
            piece += os.read(source, len(expected) - len(piece))
        seen += piece
        if signal_file:
            (launcher.folder / signal_file).touch()
    assert seen == tag + b"name? \r10 %\r20 %\n"
    assert launcher.finish(process)[0] == 3


def test_descriptors_beyond_the_standard_ones_go_to_rank_0(launcher: Launcher) -> None:
    script = "for fd in /proc/self/fd/*; do readlink $fd | grep -q $D/kept && echo $fd; done; true"
    kept = os.open(launcher.folder / "kept", os.O_RDONLY | os.O_CREAT)
    name = f"/proc/self/fd/{kept}".encode()
    done = launcher.run("-n", "3", "--tag", "sh", "-c", script, pass_fds=[kept])
    assert done.stdout.splitlines() == [b"[0] " + name]
    done = launcher.run("-n", "3", "--tag", "--stdin", "2", "sh", "-c", script, pass_fds=[kept])
    assert done.stdout.splitlines() == [b"[2] " + name]
    done = launcher.run("-n", "3", "--keep-fds", "sh", "-c", script, pass_fds=[kept])
    assert done.stdout.splitlines() == [name] * 3
    os.close(kept)


def test_process_substitution(launcher: Launcher) -> None:
    inner = '"$0" run -n 1 cat <(echo first) <(echo second)'
    done = subprocess.run(
        ["bash", "-c", inner, command()],
        capture_output=True,
        env=launcher.environment(),
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"first\nsecond\n", b"", 0)


def test_a_pipe_that_a_rank_inherits_ends_with_the_rank(launcher: Launcher) -> None:
    """Neither the launcher nor another rank holds it open."""
    reader, writer = os.pipe()
    script = f"if [ $MOBIUS_RANK = 0 ]; then echo word >&{writer}; exit 0; fi; exec sleep 1000"
    process = subprocess.Popen(
        [command(), "run", "-n", "2", "bash", "-c", script],
        env=launcher.environment(),
        pass_fds=[writer],
    )
    os.close(writer)
    with os.fdopen(reader) as end:
        assert end.read() == "word\n"
    process.terminate()
    assert process.wait() == 143


def test_output_that_a_descendant_holds_open_does_not_hold_the_job(launcher: Launcher) -> None:
    done = launcher.run("-n", "2", "sh", "-c", "(setsid sleep 1000 &); echo said")
    assert (done.returncode, done.stdout) == (0, b"said\nsaid\n")
