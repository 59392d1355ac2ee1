# SPDX-License-Identifier: BSD-3-Clause
"""`mobius explain`: the plan of an epoch, from a description of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from launch_tools import command


def explain(text: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
    return subprocess.run(
        [command(), "explain", *words],
        input=text, capture_output=True, text=True, check=False, env={**inherited, **settings},
    )  # fmt: skip


def test_gets_go_first_or_alternate_with_puts() -> None:
    puts = "".join(f"put {i}M 64K\n" for i in range(16))
    gets = "".join(f"get {i}M 64K\n" for i in range(16, 32))
    done = explain(puts + gets)
    assert done.returncode == 0
    assert done.stdout.startswith("32 operations, policy adaptive: 32 messages\n")
    assert "gets first" in done.stdout
    done = explain(puts + gets, "--policy", "interleave")
    assert "order: gets and the others alternate (16 overtaken)" in done.stdout
    small = "".join(f"{kind} {i * i}K 999\n" for kind in ("put", "get") for i in range(100, 300))
    done = explain(small.replace("get ", "get 1"))
    assert "their messages are full both ways" in done.stdout


def test_neighbours_are_merged() -> None:
    neighbours = "x 16 put 0 64K 0\nx 16 get 16M 64K 1024M\n"
    done = explain(neighbours)
    assert "32 operations, policy adaptive: 2 messages\n" in done.stdout
    done = explain(neighbours, "--policy", "interleave")
    assert "32 operations, policy interleave: 32 messages\n" in done.stdout


def test_a_fence_and_a_conflict_keep_the_order() -> None:
    done = explain("put 0 100\nget 50 8\nfence\nput 200 8\n", "--policy", "gets-first")
    assert done.returncode == 0
    assert "as they came (0 overtaken)" in done.stdout


def test_scattered_puts_share_a_message() -> None:
    done = explain("".join(f"put {i * i * 7919 % 100003 * 64} 8\n" for i in range(1000)))
    assert "1000 operations, policy adaptive: 1 messages" in done.stdout
    assert "put at 1000 places from 0 on, 8 bytes each  (operations 1 … 1000)" in done.stdout
    done = explain("".join(f"put {i * i * 7919 % 100003 * 64} {8 + i % 2}\n" for i in range(1000)))
    assert "1000 operations, policy adaptive: 1 messages" in done.stdout
    assert "992 pieces more" in done.stdout


def test_a_timeline_has_its_epochs_and_their_plans(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(
        "[\n"
        '{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0"}},\n'
        '{"name":"recorded","cat":"schedule","ph":"X","ts":5.100,"dur":1.200,"pid":0,"tid":7,'
        '"args":{"target":1,"operations":2,"messages":1,"merged":0,"why":"as they came",'
        '"policy":"aggregate","costs":"10000 1500 1.0 1.0 5.0 49152","rma_bytes":0,'
        '"queue":"put 0x1000 8 0x2000 copied;fence;get 0x3000 8 0x4000"}},\n'
        '{"name":"issued","cat":"schedule","ph":"X","ts":6.000,"dur":1.000,"pid":0,"tid":7,'
        '"args":{}}\n]\n'
    )
    done = explain("", str(trace))
    assert done.returncode == 0
    assert "1  rank 0 to 1: 2 operations in 1 messages, 0 merged; aggregate: as they" in done.stdout
    done = explain("", "--epoch", "1", str(trace))
    assert done.returncode == 0
    assert done.stdout.startswith("epoch 1: rank 0 to rank 1, recorded from 5.100 µs on for 1.200")
    assert "2 operations, policy aggregate: 1 messages" in done.stdout
    assert "get at 12288, 8 bytes  (operation 2)" in done.stdout
    done = explain("", "--epoch", "1", "--policy", "interleave", str(trace))
    assert "2 operations, policy interleave: 2 messages" in done.stdout
    done = explain("", "--epoch", "2", str(trace))
    assert done.returncode == 2
    assert f"there is no epoch 2 in '{trace}'; the timeline has 1" in done.stderr
    assert explain("put 0 8\n", "--epoch", "1").returncode == 2
    assert explain("", "--epoch", "none", str(trace)).returncode == 2


def test_a_program_is_explained(tmp_path: Path) -> None:
    """What a program has recorded between hosts is a timeline that can be explained."""
    program = Path(command()).parent / "example_halo"
    if not program.exists():
        pytest.skip("the examples are not built")
    trace = tmp_path / "trace.%r.json"
    subprocess.run(
        [command(), "run", "-n", "4", "--virtual-hosts", "2", str(program)],
        env={**os.environ, "MOBIUS_TRACE": str(trace)}, check=True, capture_output=True,
    )  # fmt: skip
    done = explain("", str(tmp_path / "trace.0.json"))
    assert done.returncode == 0, done.stderr
    assert "  rank 0 to " in done.stdout
    done = explain("", "--epoch", "1", str(tmp_path / "trace.0.json"))
    assert done.returncode == 0, done.stderr
    assert "operations, policy adaptive: " in done.stdout


def test_operations_issued_alone_say_how() -> None:
    done = explain("put 0 64K\nget 1M 64K\n")
    assert "alone   put at 0, 65536 bytes  (operation 1), from where it lies\n" in done.stdout
    assert "alone   get at 1048576, 65536 bytes  (operation 2), to where it" in done.stdout
    done = explain("x 4 put 0 64K\n")
    assert "(operations 1 … 4 merged), by remote memory access\n" in done.stdout
    done = explain("x 4 put 0 64K\nfence\nput 1M 8\n")
    assert "(operations 1 … 4 merged), from where it lies\n" in done.stdout
    # A get of what is put, in the order of the calls.
    done = explain("x 4 put 0 64K\nget 8 8\n", "--policy", "aggregate")
    assert "(operations 1 … 4 merged), from where it lies\n" in done.stdout


def test_unreadable_lines_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        done = explain("", str(path))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"'{path}' cannot be read: " in done.stderr
    empty = tmp_path / "empty"
    empty.write_text("")
    done = explain("", str(empty))
    assert done.returncode == 0
    assert done.stdout.startswith("0 operations")


def test_senseless_operations_are_named() -> None:
    for line in ("put 0 18446744073709551615K", "put +5 8"):
        done = explain(f"{line}\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"line 1 cannot be understood: {line}" in done.stderr
    done = explain("put 0\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "line 1 cannot be understood: put 0" in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("put", "AT is missing"),
        ("put 0", "BYTES is missing"),
        ("put 0 1G", "BYTES '1G' is no number"),
        ("put 0 0", "BYTES is at least 1"),
        ("put 0xffffffffffffffff 8", "beyond the last address"),
        ("put 0 8 9 more", "'more' is not understood there"),
        ("signal 0 8", "'8' is not understood there"),
        ("move 0 8", "'move' is none of put, get, acc, fetch, signal, tell, x, fence"),
        ("x 9999999 put 0 8", "x goes from 1 to 1000000"),
        ("x 3 fence", "x repeats an operation"),
        ("fence 2", "nothing follows fence"),
        ("put 0 8 merged 0", "merged goes from 1 to 65535"),
    ],
)
def test_why_a_line_makes_no_sense(line: str, said: str) -> None:
    done = explain(f"# first\n{line}\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mobius explain: line 2 cannot be understood: {line} (")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy"], "--policy needs a value"),
        (["--epoch"], "--epoch needs a value"),
        (["--policy", "best"], "--policy 'best': must be one of adaptive, fifo, "),
        (["--policy="], "--policy '': must be one of"),
        (["--epoch", "0"], "--epoch '0': must be a whole number from 1"),
        (["--epoch=1x"], "--epoch '1x': must be a whole number from 1"),
        (["--fast"], "unknown option --fast"),
        (["-p", "fifo"], "unknown option -p"),
        (["a", "b"], "only one FILE can be read, not also 'b'"),
    ],
)
def test_wrong_command_line(words: list[str], said: str) -> None:
    done = explain("put 0 8\n", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mobius explain: {said}")
    assert done.stderr.endswith("; see mobius explain --help\n")


def test_options_in_their_other_forms(tmp_path: Path) -> None:
    (tmp_path / "-odd").write_text("put 0 8\n")
    fifo = explain("put 0 8\n", "--policy", "fifo").stdout
    assert fifo.startswith("1 operations, policy fifo")
    assert explain("put 0 8\n", "--policy=fifo", "-").stdout == fifo
    done = subprocess.run(
        [command(), "explain", "--policy=fifo", "--", "-odd"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == fifo


def test_help_names_every_option() -> None:
    done = explain("", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("--policy POLICY", "--epoch N", "-h, --help", "MOBIUS_MESSAGE_NS"):
        assert word in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_settings_count_for_a_description() -> None:
    done = explain("put 0 8\n", MOBIUS_SCHEDULE="fifo", MOBIUS_MESSAGE_NS="3000")
    assert done.stdout.startswith("1 operations, policy fifo")
    assert "alone goes what is longer than 15000 bytes" in done.stdout
    put = "x 4 put 0 8K\n"
    assert "from where it lies" in explain(put, MOBIUS_RMA_BYTES="64K").stdout
    assert "by remote memory access" in explain(put, MOBIUS_RMA_BYTES="32K").stdout


def test_a_malformed_setting_is_an_error_and_an_unknown_one_a_warning(tmp_path: Path) -> None:
    done = explain("put 0 8\n", MOBIUS_SPIN_NS="abc")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mobius explain: MOBIUS_SPIN_NS='abc' is not allowed; it takes")
    done = explain("put 0 8\n", MOBIUS_SPIN="abc")
    assert done.returncode == 0
    assert "unknown setting MOBIUS_SPIN ignored; did you mean MOBIUS_SPIN_NS?" in done.stderr
    # A recording has its own settings, wherever it is explained.
    trace = tmp_path / "trace.json"
    trace.write_text('[\n{"name":"process_name","ph":"M","pid":0,"tid":0}\n]\n')
    done = explain("", str(trace), MOBIUS_SPIN_NS="abc")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_timeline_that_is_none_or_is_damaged(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text('["JSON of something else"]\n')
    done = explain("", str(trace))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is neither a timeline of MOBIUS_TRACE nor a description" in done.stderr
    event = (
        '[\n{"name":"recorded","args":{"policy":"fifo","costs":"COSTS","rma_bytes":0,"queue":'
        '"QUEUE"}}\n'
    )
    for costs, queue, said in (
        ("10000 1500 1.0 1.0 5.0 49152", "put 0 8;hop", ": 'hop' is none of put"),
        ("10000 1500 0 1.0 5.0 49152", "put 0 8", "cannot be understood\n"),
        ("10000 1500 1.0 1.0 5.0 -1", "put 0 8", "cannot be understood\n"),
        ("10000", "put 0 8", "cannot be understood\n"),
    ):
        trace.write_text(event.replace("COSTS", costs).replace("QUEUE", queue))
        done = explain("", "--epoch", "1", str(trace))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"epoch 1 of the timeline in '{trace}' cannot be understood" in done.stderr
        assert said in done.stderr
