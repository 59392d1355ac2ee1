# SPDX-License-Identifier: BSD-3-Clause
"""`mobius mpirun`: which front it chooses, how it hands it on, and what it refuses.

The MPIs are stand-ins: libraries with the names and the symbols by which they are recognised, and
launchers that print how they were called. The command is copied beside stand-ins of the fronts, so
that no MPI is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from launch_tools import HANG_SECONDS, command

FRONTS = ("ompi", "mpich", "mpiabi")
PROGRAM = "int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n"
LIBRARY = "int MPI_Init(void) { return 0; }\nint PMPI_Init(void) { return 0; }\n"
OPEN_MPI = LIBRARY + "int ompi_mpi_comm_world;\nint ompi_mpi_init;\n"
# Each launcher prints this, and then the words of its call.
VERSIONS = {
    "openmpi4": "mpirun.openmpi (OpenRTE) 4.1.4",
    "openmpi5": "mpirun (Open MPI) 5.0.11",
    "hydra": "HYDRA build details:\n    Version:                                 5.0.2",
    "intel": "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626",
}


@dataclass(frozen=True)
class Tree:
    """A copy of the command with stand-ins of all fronts, and programs of stand-in MPIs."""

    folder: Path

    def run(
        self, *words: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        unset = ("LD_PRELOAD", "LD_LIBRARY_PATH")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
        return subprocess.run(
            [str(self.folder / "bin" / "mobius"), "mpirun", *words],
            cwd=self.folder,
            env={**{k: v for k, v in kept.items() if k not in unset}, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )

    def refused(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """The one line that says why nothing was started."""
        done = self.run(*words, env=env)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("mobius mpirun: ")
        return lines[0]

    def front(self, name: str) -> str:
        return str(self.folder / "lib" / f"libmobius_{name}.so")

    def launcher(self, name: str, version: str) -> str:
        path = self.folder / name
        said = VERSIONS[version]
        path.write_text(
            f"#!/bin/sh\n[ \"$1\" != --version ] || {{ echo '{said}'; exit; }}\n"
            'echo "preloaded: $LD_PRELOAD"\nfor word; do echo "word: $word"; done\nexit 7\n'
        )
        path.chmod(0o755)
        return f"./{name}"

    def compile(self, output: Path, source: str, *options: str) -> None:
        text = output.with_suffix(".c")
        text.write_text(source)
        subprocess.run(["cc", "-o", str(output), str(text), *options], check=True)

    def library(self, soname: str, source: str) -> Path:
        folder = self.folder / f"of {soname}"
        folder.mkdir(exist_ok=True)
        path = folder / soname
        self.compile(path, source, "-shared", "-fPIC", f"-Wl,-soname,{soname}")
        return path

    def program(self, name: str, soname: str, source: str, *options: str) -> str:
        library = self.library(soname, source)
        self.compile(
            self.folder / name, PROGRAM, *options, str(library), f"-Wl,-rpath,{library.parent}"
        )
        return f"./{name}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    tree = Tree(tmp_path_factory.mktemp("mpirun"))
    for folder in ("bin", "lib", "share/mobius"):
        (tree.folder / folder).mkdir(parents=True)
    shutil.copy2(command(), tree.folder / "bin" / "mobius")
    for name in FRONTS:
        tree.compile(
            Path(tree.front(name)), "int front;\n", "-shared", "-fPIC",
            f"-Wl,-soname,libmobius_{name}.so",
        )  # fmt: skip
    for version in VERSIONS:
        tree.launcher(f"mpiexec.{version}", version)
    tree.program("of_open_mpi", "libmpi.so.40", OPEN_MPI)
    tree.program("of_mpich", "libmpi.so.12", LIBRARY)
    tree.program("of_debian_mpich", "libmpich.so.12", LIBRARY)
    tree.program("of_standard", "libmpi_abi.so.1", LIBRARY)
    return tree


@pytest.mark.parametrize(
    ("launcher", "program", "front", "words"),
    [
        ("openmpi4", "of_open_mpi", "ompi", ["-x", "LD_PRELOAD={}"]),
        ("openmpi5", "of_open_mpi", "ompi", ["-x", "LD_PRELOAD={}"]),
        ("hydra", "of_mpich", "mpich", ["-genv", "LD_PRELOAD", "{}"]),
        ("hydra", "of_debian_mpich", "mpich", ["-genv", "LD_PRELOAD", "{}"]),
        ("hydra", "of_standard", "mpiabi", ["-genv", "LD_PRELOAD", "{}"]),
        ("intel", "of_mpich", "mpich", ["-genv", "LD_PRELOAD", "{}"]),
    ],
)
def test_the_program_decides_and_the_launcher_hands_on(
    tree: Tree, launcher: str, program: str, front: str, words: list[str]
) -> None:
    done = tree.run(f"./mpiexec.{launcher}", "-n", "4", f"./{program}", "more words")
    assert done.returncode == 7, done.stderr
    expected = [*(word.format(tree.front(front)) for word in words), "-n", "4", f"./{program}"]
    assert done.stdout.splitlines() == [
        "preloaded: ",  # the launcher itself needs no front
        *(f"word: {word}" for word in [*expected, "more words"]),
    ]
    assert done.stderr.count("\n") == 1
    assert f"./{program}, linked with" in done.stderr
    assert f"windows by libmobius_{front}" in done.stderr


def test_scripts_get_the_front_of_their_launcher(tree: Tree) -> None:
    for launcher, front in (("openmpi5", "ompi"), ("hydra", "mpich")):
        done = tree.run(f"./mpiexec.{launcher}", "-n", "2", "sh", "-c", ":")
        assert done.returncode == 7
        assert tree.front(front) in done.stdout
        assert f"windows by libmobius_{front}" in done.stderr


def test_a_program_alone_is_preloaded(tree: Tree) -> None:
    printing = "./printing"
    source = OPEN_MPI + (
        "#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void tell(void)"
        '{ puts(getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "nothing"); }\n'
    )
    tree.program("printing", "libmpi.so.40", source)
    done = tree.run(printing)
    assert (done.returncode, done.stdout) == (0, tree.front("ompi") + "\n"), done.stderr
    tree.program("of_open_mpi", "libmpi.so.40", OPEN_MPI)


def test_preloaded_libraries_stay(tree: Tree) -> None:
    other = str(tree.library("libtool.so", "int tool;\n"))
    done = tree.run("./mpiexec.hydra", "./of_mpich", env={"LD_PRELOAD": other.replace(" ", "")})
    assert f"word: {tree.front('mpich')}:{other.replace(' ', '')}" in done.stdout.splitlines()


def test_settings_reach_other_hosts(tree: Tree) -> None:
    done = tree.run(
        "--stats", "./mpiexec.openmpi5", "./of_open_mpi", ":", "./of_open_mpi",
        env={"MOBIUS_LOG": "info"},
    )  # fmt: skip
    words = [line.removeprefix("word: ") for line in done.stdout.splitlines()]
    colon = words.index(":")
    for part in (words[:colon], words[colon:]):  # of two programs Open MPI takes options twice
        named = {part[i + 1] for i, word in enumerate(part) if word == "-x"}
        assert {"MOBIUS_LOG", "MOBIUS_STATS", f"LD_PRELOAD={tree.front('ompi')}"} == named


def test_show_starts_nothing(tree: Tree) -> None:
    done = tree.run("--show", "--stats", "./mpiexec.hydra", "-n", "2", "./of_mpich", "a b")
    assert (done.returncode, done.stderr) == (0, "")
    front = tree.front("mpich")
    assert done.stdout == (
        f"MOBIUS_STATS=1 ./mpiexec.hydra -genv LD_PRELOAD {front} -n 2 ./of_mpich 'a b'\n"
    )


@pytest.mark.parametrize(
    ("launcher", "program", "right"),
    [
        ("hydra", "of_open_mpi", "start it with Open MPI's mpirun"),
        ("openmpi5", "of_mpich", "start it with the mpiexec of that MPI"),
        ("openmpi4", "of_standard", "start it with the mpiexec of that MPI"),
    ],
)
def test_a_launcher_of_another_mpi(tree: Tree, launcher: str, program: str, right: str) -> None:
    words = (f"./mpiexec.{launcher}", "-n", "2", f"./{program}")
    assert right in tree.refused(*words)
    assert tree.run("--front", "mpich", *words).returncode == 7  # who insists may


def test_two_fronts_at_once(tree: Tree) -> None:
    words = ("./mpiexec.hydra", "./of_mpich")
    wrong = tree.refused(*words, env={"LD_PRELOAD": tree.front("ompi")})
    assert "libmobius_ompi is in LD_PRELOAD" in wrong
    assert "libmobius_mpich is what ./of_mpich needs" in wrong
    same = tree.run(*words, env={"LD_PRELOAD": tree.front("mpich")})
    assert same.returncode == 7
    assert f"word: {tree.front('mpich')}" in same.stdout.splitlines()
    assert "in LD_PRELOAD already" in same.stderr


def test_a_program_that_is_linked_with_its_front(tree: Tree) -> None:
    folder = str(tree.folder / "lib")
    link = ("-Wl,--no-as-needed", tree.front("mpich"), f"-Wl,-rpath,{folder}")
    tree.program("linked", "libmpi.so.12", LIBRARY, *link)
    done = tree.run("./mpiexec.hydra", "-n", "2", "./linked")
    assert done.stdout.splitlines() == ["preloaded: ", "word: -n", "word: 2", "word: ./linked"]
    assert "which it is linked with" in done.stderr


def test_an_mpi_inside_the_program_cannot_be_preloaded(tree: Tree) -> None:
    tree.compile(tree.folder / "whole", LIBRARY + "int main(void) { return 0; }\n", "-rdynamic")
    said = tree.refused("./mpiexec.hydra", "./whole")
    assert "linked statically" in said
    assert "its MPI as a shared library" in said


def test_a_launcher_option_that_would_replace_the_front(tree: Tree) -> None:
    for words in (["-x", "LD_PRELOAD=a.so"], ["-x", "LD_PRELOAD"]):
        assert "sets LD_PRELOAD" in tree.refused("./mpiexec.openmpi5", *words, "./of_open_mpi")
    assert "sets LD_PRELOAD" in tree.refused(
        "./mpiexec.hydra", "-env", "LD_PRELOAD", "a.so", "./of_mpich"
    )


def test_a_front_that_was_not_made(tree: Tree) -> None:
    (tree.folder / "share/mobius/mpi-fronts").write_text(
        "ompi|made|with something\nmpich|missing|no header of MPICH was found\n"
    )
    front = Path(tree.front("mpich"))
    front.rename(front.with_suffix(".away"))
    try:
        said = tree.refused("./mpiexec.hydra", "./of_mpich")
    finally:
        front.with_suffix(".away").rename(front)
    assert said.endswith("no header of MPICH was found")
    command = str(tree.folder / "bin" / "mobius")
    shown = subprocess.run([command, "info"], capture_output=True, text=True, check=True).stdout
    assert "libmobius_ompi, with something" in shown
    assert "no libmobius_mpich: no header of MPICH was found" in shown
    told = subprocess.run([command, "info", "--json"], capture_output=True, check=True).stdout
    assert json.loads(told)["mpi"]["mpich"] == {
        "made": False,
        "reason": "no header of MPICH was found",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no launcher given"),
        (["-n", "2", "./of_mpich"], "-n belongs to the launcher"),
        (["--front"], "--front needs a value"),
        (["--front", "lam", "x"], "one of ompi, mpich, mpiabi"),
        (["--sats", "x"], "unknown option --sats"),
        (["sh", "-c", ":"], "name its front: --front"),
    ],
)
def test_contradictory_words(tree: Tree, words: list[str], said: str) -> None:
    assert said in tree.refused(*words)


def test_a_launcher_that_is_not_there(tree: Tree) -> None:
    done = tree.run("./nowhere", "-n", "2", "./of_mpich")
    assert done.returncode == 127
    assert "nowhere" in done.stderr


def test_help(tree: Tree) -> None:
    done = tree.run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("--stats", "--front", "--quiet", "--show"):
        assert f"  {option}" in done.stdout
