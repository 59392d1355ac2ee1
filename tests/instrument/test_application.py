# SPDX-License-Identifier: BSD-3-Clause
"""Applications run with the command line and the records of the instrument's own programs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mobius_instrument.libraries.base import application_command

# Prints its options as the checksum. What it does besides depends on the kernel and the size.
FAKE = """
import json, sys, time
words = sys.argv[1:]
if words[1] == "5":
    time.sleep(1.2)
if words[1] == "6":
    print("lu: 30 %\\nlu: 60 %", file=sys.stderr)
if "blas" in words:
    print("lu: no BLAS" if words[1] == "4" else "lu: no BLAS here", file=sys.stderr)
    sys.exit(2 if words[1] == "4" else 1)
print("progress")
print(json.dumps({"seconds_each": [0.5, 0.25], "communication": 0.1, "waiting": 0.2,
                  "checksum": " ".join(words), "right": words[1] not in ("1", "3")}))
"""
LU = "lu:factor:none:allocate:placement=block:kernel=plain:procs=2"
BLAS = LU.replace("plain", "blas")
MD = "md:step:none:allocate:balance=no:procs=2"


class Application:
    def __init__(self, folder: Path) -> None:
        self.program = folder / "fake.py"
        self.program.write_text(FAKE, encoding="utf-8")
        self.out = folder / "out.jsonl"

    def run(
        self, cells: list[str], size: int, build: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        words = application_command((sys.executable, str(self.program)), build)
        return subprocess.run(
            [*words, "--cells", ",".join(cells), "--sizes", str(size), "--out", str(self.out),
             "--min-samples", "5", "--seed", "1"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = self.out.read_text(encoding="utf-8").splitlines()
        return [one for line in lines if (one := json.loads(line))["type"] == kind]


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return Application(tmp_path)


def test_records(application: Application) -> None:
    done = application.run([LU, MD], 8 * 1000 * 1000)
    assert done.returncode == 0, done.stderr
    samples = application.records("samples")
    assert [(one["cell"], one["samples_ns"]) for one in samples] == [
        (LU, [5e8, 2.5e8]), (MD, [5e8, 2.5e8]),
    ]  # fmt: skip
    facts = {(one["cell"], one["name"]): one for one in application.records("fact")}
    assert facts[LU, "waiting"]["number"] == 0.2
    assert facts[LU, "communication"]["detail"] == str(8 * 1000 * 1000)
    assert facts[LU, "checksum"]["value"] == (
        "--size 1000 --repeat 5 --placement block --kernel plain --json"
    )
    molecules = "--molecules 111111 --equilibrate 100 --steps 200 --no-balance --json"
    assert facts[MD, "checksum"]["value"] == molecules
    assert [one["cell"] for one in application.records("end")] == [LU, MD]
    assert len(application.records("done")) == 1


def test_threads_and_copies(application: Application) -> None:
    cell = "lu:factor:none:threads:placement=cyclic:kernel=plain:copy=1:procs=3"
    assert application.run([cell], 8 * 16).returncode == 0
    value = application.records("fact")[-1]["value"]
    assert value.endswith("--placement cyclic --kernel plain --copy --threads 3 --json")


def test_global_arrays(application: Application) -> None:
    cells = [f"global-arrays:{name}:none:allocate:procs=2" for name in ("product", "patches")]
    assert application.run(cells, 8 * 16).returncode == 0
    found = [one["value"] for one in application.records("fact") if one["name"] == "checksum"]
    assert found == ["--size 4 --repeat 5 --json", "--size 4 --repeat 5 --patches --json"]


def test_a_cell_that_is_not_offered(application: Application) -> None:
    assert application.run([BLAS, LU], 8 * 16).returncode == 0
    assert application.records("refused") == [
        {"type": "refused", "cell": BLAS, "reason": "lu: no BLAS"}
    ]
    assert [one["cell"] for one in application.records("end")] == [LU]


def test_failures(application: Application) -> None:
    done = application.run([BLAS], 8 * 4)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "no BLAS here" in done.stderr
    assert application.records("done") == []


def test_a_wrong_result_has_no_time(application: Application) -> None:
    assert application.run([LU, MD], 8 * 9).returncode == 1
    assert [(one["cell"], one["bytes"]) for one in application.records("wrong")] == [(LU, 72)]
    # The energy of a short run drifts, which makes its result no wrong one.
    assert [one["cell"] for one in application.records("samples")] == [MD]
    assert [one["cell"] for one in application.records("end")] == [LU, MD]


@pytest.mark.parametrize(("order", "signs"), [(5, 0), (6, 2)])
def test_only_what_it_says_is_a_sign_of_life(
    application: Application, order: int, signs: int
) -> None:
    assert application.run([LU], 8 * order * order).returncode == 0
    assert len(application.records("alive")) == signs


def test_it_is_built_when_it_is_missing(application: Application, tmp_path: Path) -> None:
    program = tmp_path / "made" / "fake.py"
    copy = shlex.join(["cp", str(application.program)])
    compiler = ("sh", "-c", f'[ "$0" = -o ] && {copy} "$1"')
    application.program = program
    assert application.run([LU], 8 * 16, compiler).returncode == 0
    assert program.is_file()
    assert application.run([LU], 8 * 16, ("false",)).returncode == 0
    program.unlink()
    broken = ("sh", "-c", "echo 'a.c:1: error: no such thing' >&2; exit 1")
    assert application.run([LU], 8 * 16, broken).returncode == 0
    assert "no such thing" in application.records("refused")[0]["reason"]
