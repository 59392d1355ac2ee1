# SPDX-License-Identifier: BSD-3-Clause
"""`mobius explain`: the plan of an epoch, from a description of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from launch_tools import command


def explain(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "explain", *words], input=text, capture_output=True, text=True, check=False
    )


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
    assert "there is no epoch 2; the timeline has 1" in done.stderr
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


def test_what_goes_alone_says_how() -> None:
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


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        done = explain("", str(path))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{path} cannot be read" in done.stderr
    empty = tmp_path / "empty"
    empty.write_text("")
    done = explain("", str(empty))
    assert done.returncode == 0
    assert done.stdout.startswith("0 operations")


def test_what_makes_no_sense_is_named() -> None:
    for line in ("put 0 18446744073709551615K", "put +5 8"):
        done = explain(f"{line}\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"line 1 makes no sense: {line}" in done.stderr
    done = explain("put 0\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "line 1 makes no sense: put 0" in done.stderr
    assert explain("", "--policy", "best").returncode == 2
