# SPDX-License-Identifier: BSD-3-Clause
"""`mobius explain`: the plan of an epoch, from a description of it."""

from __future__ import annotations

import subprocess

from launch_tools import command


def explain(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "explain", *words], input=text, capture_output=True, text=True, check=False
    )


def test_gets_alternate_with_puts() -> None:
    done = explain("x 16 put 0 64K 0\nx 16 get 16M 64K 1024M\n")
    assert done.returncode == 0
    assert done.stdout.startswith("32 operations, policy adaptive: 32 messages\n")
    assert "both directions are busy" in done.stdout


def test_a_fence_and_a_conflict_keep_the_order() -> None:
    done = explain("put 0 100\nget 50 8\nfence\nput 200 8\n", "--policy", "gets-first")
    assert done.returncode == 0
    assert "as they came (0 overtaken)" in done.stdout


def test_scattered_puts_share_a_message() -> None:
    done = explain("".join(f"put {i * i * 7919 % 100003 * 64} 8\n" for i in range(1000)))
    assert "1000 operations, policy adaptive: 1 messages" in done.stdout
    assert "pieces more" in done.stdout


def test_what_makes_no_sense_is_named() -> None:
    done = explain("put 0\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "line 1 makes no sense: put 0" in done.stderr
    assert explain("", "--policy", "best").returncode == 2
