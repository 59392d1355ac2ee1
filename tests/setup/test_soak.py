# SPDX-License-Identifier: BSD-3-Clause
"""./mobius test --soak: its jobs pass, and it notices each kind of failure."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from launch_tools import state_of, wait_until
from mobius_setup import soak
from mobius_setup.soak_plan import Fate, LauncherFate, Plan, judge, make_plan
from setup_trees import ROOT

KILLED = "mobius run: rank 1 (process 12, /a b/soak_driver) was killed by signal 9 (Killed); the "
ONE_DIES = Plan(1, 3, 1, "error", False, [Fate(1, "kill", 5000)])
OTHERS = "rank 2 survived\nrank 0 survived\n"


def test_ten_jobs_pass() -> None:
    words = [str(ROOT / "mobius"), "test", "--soak-seed", "11", "--soak-jobs", "10"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n10 jobs in " in done.stdout
    assert done.stdout.endswith("\n10 passed, 0 failed, 0 skipped\n")


def test_a_seed_always_gives_the_same_job() -> None:
    assert [make_plan(seed) for seed in range(300)] == [make_plan(seed) for seed in range(300)]
    assert all(make_plan(seed, True).hosts > 1 for seed in range(50))
    assert all(make_plan(seed, False).hosts == 1 for seed in range(50))


def test_every_kind_of_death_is_planned() -> None:
    plans = [make_plan(seed) for seed in range(1000)]
    kinds = {fate.kind for plan in plans for fate in plan.fates}
    assert kinds == {"kill", "segv", "exit", "code", "abort", "stop"}
    assert {plan.launcher.whom for plan in plans if plan.launcher} == {"launcher", "worker", "both"}
    assert any(plan.hosts > 1 for plan in plans)
    assert any(plan.early for plan in plans)
    assert all(len(plan.victims) < plan.ranks for plan in plans)


def test_a_job_in_order() -> None:
    assert judge(ONE_DIES, 137, OTHERS, KILLED + "others go on (MOBIUS_ON_DEATH=error)\n") == []
    nobody = Plan(1, 3, 1, "end", False)
    assert judge(nobody, 0, OTHERS + "rank 1 survived\n", "") == []
    ended = Plan(1, 3, 1, "end", False, [Fate(1, "kill", 5000)])
    assert judge(ended, 137, "", KILLED + "other 2 ranks were ended\n") == []


@pytest.mark.parametrize(
    ("code", "out", "err", "problem"),
    [
        (
            137,
            OTHERS,
            KILLED + "others go on\nWRONG at rank 0: a byte\n",
            "WRONG at rank 0: a byte",
        ),
        (137, "rank 0 survived\n", KILLED, "ranks [0] survived, not [0, 2]"),
        (137, OTHERS, KILLED + "others go on\nhelp\n", "unexpected: help"),
        (137, OTHERS + "help\n", KILLED, "unexpected output: help"),
        (0, OTHERS, KILLED, "exit code 0, not 137"),
        (0, OTHERS, "", "ranks [1] must die, but [] did"),
        (137, OTHERS, KILLED + "\n" + KILLED, "a rank died twice"),
        (137, OTHERS, KILLED.replace("rank 1", "rank 2"), "rank 2 was killed by signal 9"),
        (137, OTHERS, KILLED.replace("signal 9", "signal 11"), "rank 1 was killed by signal 11"),
    ],
)
def test_wrong_results_are_noticed(code: int, out: str, err: str, problem: str) -> None:
    assert any(each.startswith(problem) for each in judge(ONE_DIES, code, out, err))


def bed_of(folder: Path, script: str) -> soak.Bed:
    programs = folder / "build" / "release" / "bin"
    programs.mkdir(parents=True)
    program = programs / "mobius"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    scratch = folder / "scratch"
    scratch.mkdir()
    return soak.Bed(folder, scratch, False, has_own_tmp=False)


NOBODY_DIES = Plan(1, 1, 1, "end", False)


def test_a_job_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "HANG_S", 0.5)
    report = soak.run_job(bed_of(tmp_path, "sleep 1000"), NOBODY_DIES)
    assert report.startswith("hangs: still running")
    assert "sleep 1000" in report  # the stacks name the process


def test_a_process_that_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "SETTLE_S", 0.5)
    script = 'setsid sleep 1000 >/dev/null 2>&1 & echo $! > "$TMPDIR/pid"; echo rank 0 survived'
    bed = bed_of(tmp_path, script)
    report = soak.run_job(bed, NOBODY_DIES)
    assert report.startswith("process left behind: ")
    assert "sleep 1000" in report
    left = int((bed.folder / "pid").read_text())
    wait_until(lambda: state_of(left) in ("", "Z"), "it is ended")
    assert f"file {bed.folder / 'pid'}" in soak._left_behind(bed)


def test_files_that_were_there_before_are_not_of_the_jobs(tmp_path: Path) -> None:
    with NamedTemporaryFile(prefix="mobius-before-", dir="/dev/shm") as before:
        bed = bed_of(tmp_path, "true")
        with NamedTemporaryFile(prefix="mobius-since-", dir="/dev/shm") as since:
            left = soak._left_behind(bed)
            assert f"file {since.name}" in left
            assert f"file {before.name}" not in left


def test_the_launcher_is_killed(tmp_path: Path) -> None:
    plan = Plan(1, 1, 1, "end", False, launcher=LauncherFate("SIGTERM", "launcher", 0.1))
    assert soak.run_job(bed_of(tmp_path, "exec sleep 1000"), plan) == ""


def test_a_report_says_how_to_repeat_the_job(tmp_path: Path) -> None:
    bed = bed_of(tmp_path, "echo WRONG at rank 0: a byte >&2; kill -KILL $$")
    report = soak.run_job(bed, NOBODY_DIES)
    assert report.startswith("WRONG at rank 0: a byte\n")
    assert f"{bed.command} run -n 1 --on-death end {bed.driver} 1 late survive -" in report
    assert f"exit code {-signal.SIGKILL}" in report
