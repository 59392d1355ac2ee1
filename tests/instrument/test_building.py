# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a program that could not be built."""

from __future__ import annotations

from pathlib import Path

import pytest
from instrument_tools import HERE, FakeInstrument
from mobius_instrument.errors import InstrumentError
from mobius_instrument.libraries.building import failure_of, find_compiler
from mobius_instrument.machine.processes import Ended


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("mpi.h", "; its development files are missing: on Debian, install libopenmpi-dev or"),
        ("shmem.h", "; its development files are missing: on Debian, install libopenmpi-dev"),
        ("other.h", ""),
    ],
)
def test_a_compiler_without_its_headers(header: str, remedy: str) -> None:
    line = f"identify.c:1:10: fatal error: {header}: No such file or directory"
    said = failure_of("mpicc", Ended(1, f"{line}\ncompilation terminated.\n", 0.1), 1.0)
    assert said.startswith(f"mpicc failed (exit code 1): {line}{remedy}")
    assert bool(remedy) == ("install" in said)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_path_is_a_path_and_a_name_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./cc` is the one here, also where PATH has another."""
    here, other = program(tmp_path / "here" / "cc"), program(tmp_path / "bin" / "cc")
    monkeypatch.chdir(here.parent)
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_compiler("./cc", "--mpicc", "mpicc") == here
    assert find_compiler("../here/cc", "--mpicc", "mpicc").samefile(here)
    assert find_compiler(str(here), "--mpicc", "mpicc") == here
    assert find_compiler("cc", "--mpicc", "mpicc") == other


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "no compiler is named; write for example --mpicc mpicc"),
        ("cc", "there is no program 'cc' in PATH; write ./cc for the one in this folder"),
        ("plain", "there is no program 'plain' in PATH; write its path, as /…/bin/mpicc"),
        ("none", "there is no program 'none' in PATH; write its path, as /…/bin/mpicc"),
        ("./none", "there is no file './none' (seen from '{here}'); name the mpicc of an"),
        ("/nowhere/x", "there is no file '/nowhere/x'; name the mpicc of an installed library"),
        ("./plain", "'./plain' may not be executed; chmod +x it, if it is the compiler"),
        ("./tree", "'./tree' is a folder; name the compiler itself, as tree/bin/mpicc"),
        ("./tree/bin/", "'./tree/bin/' is a folder; name the compiler itself, as tree/bin/mpicc"),
        ("./empty", "'./empty' is a folder; name the compiler itself, as empty/mpicc"),
    ],
)
def test_a_file_that_is_no_compiler_is_named_with_the_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    program(tmp_path / "cc")
    program(tmp_path / "tree" / "bin" / "mpicc")
    (tmp_path / "empty").mkdir()
    (tmp_path / "plain").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(InstrumentError) as error:
        find_compiler(given, "--mpicc", "mpicc")
    assert str(error.value).startswith("--mpicc: " + said.format(here=tmp_path))


@pytest.mark.parametrize(("option", "launcher"), [("--mpicc", "mpiexec"), ("--oshcc", "oshrun")])
def test_a_program_that_is_no_compiler(
    instrument: FakeInstrument, option: str, launcher: str
) -> None:
    (instrument.folder / "suite" / "shmem").mkdir()
    compiler = program(instrument.folder / "bin" / "cc")
    words = ["bench", "--no-peers", "--libs", f"{option[2:]}1", option, str(compiler)]
    done = instrument.run(*words, "--out", str(instrument.out))
    assert done.returncode == 2
    assert f"there is no {launcher} beside '{compiler}'" in done.stderr
    program(compiler.with_name(launcher))
    done = instrument.run(*words, "--out", str(instrument.out))
    assert done.returncode == 2
    assert f"'{compiler}' made no program, and told no error" in done.stderr


def test_a_compiler_in_the_current_folder(instrument: FakeInstrument) -> None:
    for name in ("mpicc", "mpiexec", "program"):
        (instrument.folder / name).symlink_to(HERE / "fake" / name)
    done = instrument.run("bench", "--no-peers", "--list", "--mpicc", "./mpicc")
    assert done.returncode == 0, done.stderr
    assert str(instrument.folder / "mpicc") in done.stdout
