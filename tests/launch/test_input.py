# SPDX-License-Identifier: BSD-3-Clause
"""Standard input: for one rank, and only what it reads."""

from __future__ import annotations

from launch_tools import Launcher


def test_rank_0_gets_it_the_others_nothing(launcher: Launcher) -> None:
    data = b"words\n" * 1000
    done = launcher.run("-n", "3", "--tag", "sh", "-c", "wc -c", data=data)
    counts = {tuple(line.split()) for line in done.stdout.splitlines()}
    assert counts == {(b"[0]", b"6000"), (b"[1]", b"0"), (b"[2]", b"0")}


def test_large_input_arrives_whole(launcher: Launcher) -> None:
    data = b"0123456789abcdef" * 300_000
    assert launcher.run("-n", "2", "cat", data=data).stdout == data


def test_input_that_rank_0_does_not_read_stays(launcher: Launcher) -> None:
    # `read` takes one line byte by byte; the shell around the launcher must find the second.
    path = launcher.folder / "lines"
    path.write_text("first\nsecond\n")
    rank = 'read x; echo "rank got $x"'
    outer = f"""exec < "$D/lines"; "$@" sh -c '{rank}'; read y; echo "shell got $y\""""
    with path.open("rb") as lines:
        process = launcher.start("-n", "2", "--", stdin=lines, prefix=["sh", "-c", outer, "sh"])
        code, out, _ = launcher.finish(process)
    assert code == 0
    assert sorted(out.splitlines()) == [b"rank got ", b"rank got first", b"shell got second"]


def test_another_rank_or_none_may_get_it(launcher: Launcher) -> None:
    done = launcher.run("-n", "3", "--tag", "--stdin", "2", "wc", "-c", data=b"words\n")
    assert sorted(done.stdout.splitlines()) == [b"[0] 0", b"[1] 0", b"[2] 6"]
    done = launcher.run("-n", "2", "--stdin", "none", "wc", "-c", data=b"words\n")
    assert done.stdout == b"0\n0\n"
