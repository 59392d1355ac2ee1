# SPDX-License-Identifier: BSD-3-Clause
"""Command line, settings and limits: each bad input gives one line and an exit code."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from launch_tools import Launcher, command, refuse_calls

# getrlimit and prlimit64, by which the C library asks for limits.
PRLIMIT = {"x86_64": (97, 302), "aarch64": (163, 261)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "0", "true"], "-n '0': the number of processes must be a whole number from 1"),
        (["-n", "-3", "true"], "-n '-3'"),
        (["-n", "x", "true"], "-n 'x'"),
        (["-n", "2x", "true"], "-n '2x'"),
        (["-n", "", "true"], "-n ''"),
        (["-n"], "-n needs a value"),
        (["-n", "5000", "true"], "-n 5000 is more than the 4096 processes"),
        (["--hosts", "a,b", "true"], "say with -n how many processes there shall be"),
        (["--hosts", "a:2,b:2", "-n", "3", "true"], "the hosts take 4 processes together, not 3"),
        (["--hosts", "a", "--virtual-hosts", "2", "true"], "exclude each other"),
        (["-n", "2"], "no program given"),
        ([], "no program given"),
        (["--"], "no program given"),
        (["--fast", "true"], "unknown option --fast"),
        (["-x", "true"], "unknown option -x"),
        (["-np", "x", "true"], "-n 'x': the number of processes"),
        (["-np"], "-n needs a value"),
        (["-host", "a", "true"], "write --hosts HOST[:N],..."),
        (["-n", "2", "-hostfile", "f", "true"], "write --hosts HOST[:N],..."),
        (["-genv", "A", "1", "true"], "write --env NAME=VALUE"),
        (
            ["--bind-to=core", "true"],
            "unknown option --bind-to, as of another launcher; write --bind",
        ),
        (["-n", "1", "echo", "a", ":", "-n", "1", "echo", "b"], "':' separates programs"),
        (["echo", ":", "echo"], "write -- before the program"),
        (["--stdin", "all", "true"], "--stdin 'all': none, or a rank from 0 to 0"),
        (["-n", "2", "--stdin", "2", "true"], "--stdin '2': none, or a rank from 0 to 1"),
        (["--stdout", "file", "true"], "--stdout 'file': one of line, pipe"),
        (["--hosts", "a:1", "--stdin", "0", "true"], "exclude --hosts"),
        (["--bind", "socket", "true"], "--bind 'socket': must be core or none"),
        (["--tag=yes", "true"], "--tag"),
        (["--env", "NAME", "true"], "--env 'NAME': write NAME=VALUE"),
        (["--env", "=1", "true"], "--env '=1': write NAME=VALUE"),
        (["--env", "MOBIUS_RANK=1", "true"], "MOBIUS_RANK: mobius run sets this variable itself"),
        (["--env", "MOBIUS_LOG=loud", "true"], "MOBIUS_LOG='loud' is not allowed"),
    ],
)
def test_bad_command_lines(launcher: Launcher, words: list[str], said: str) -> None:
    done = launcher.run(*words)
    assert done.returncode == 2
    assert done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("mobius run: ")
    assert said in lines[0]


@pytest.mark.parametrize("words", [["-np", "3"], ["--np", "3"], ["-n3"], ["--processes=3"]])
def test_ways_to_say_how_many(launcher: Launcher, words: list[str]) -> None:
    assert launcher.run(*words, "echo", "-np", "5").stdout == b"-np 5\n" * 3


def test_words_after_the_program_are_its_own(launcher: Launcher) -> None:
    assert launcher.run("--", "echo", "a", ":", "-n", "1").stdout == b"a : -n 1\n"
    assert launcher.run("--env", "-np=1", "echo", "-host").stdout == b"-host\n"


@pytest.mark.parametrize("words", [["touch", "x"], ["--", "touch", "x"]])
def test_tune_starts_nothing_but_its_own(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run([command(), "tune", "-n", "2", *words], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"mobius tune: only options are possible, not 'touch'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_last_of_several_counts(launcher: Launcher) -> None:
    done = launcher.run("-n", "3", "--bind", "core", "-n", "2", "--bind", "none", "echo", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"x\nx\n", b"")


@pytest.mark.skipif(platform.machine() not in PRLIMIT, reason="the call's number is not known")
def test_limits_that_the_system_does_not_tell_are_none(launcher: Launcher) -> None:
    def refuse() -> None:
        refuse_calls(*PRLIMIT[platform.machine()])

    done = launcher.run("-n", "2", "echo", "x", preexec_fn=refuse)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"x\nx\n", b"")


@pytest.mark.parametrize("wanted", ["100000", "3000000000", "99999999999999999999999"])
def test_more_than_the_host_allows(launcher: Launcher, wanted: str) -> None:
    # With a limit of our own, so that it is known which one is the tightest.
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 340))

    done = launcher.run("-n", wanted, "touch", f"{launcher.folder}/started", preexec_fn=limit)
    text = done.stderr.decode()
    assert done.returncode == 2
    assert text.count("\n") == 1
    assert "more than the 100 processes that this host allows now" in text
    assert "ulimit -Hn" in text
    assert not (launcher.folder / "started").exists()


def test_descriptors_are_raised_for_the_launcher_only(launcher: Launcher) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (30, 4000))

    done = launcher.run("-n", "40", "sh", "-c", "ulimit -n", preexec_fn=limit)
    assert done.returncode == 0
    assert done.stdout.split() == [b"30"] * 40


def test_limit_on_the_users_processes(launcher: Launcher) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root, who has no such limit, can become somebody who has")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        copy = shutil.copy(command(), folder / "mobius")
        words = ["setpriv", "--reuid", "54321", "--clear-groups", "prlimit", "--nproc=12"]
        done = subprocess.run(
            [*words, copy, "run", "-n", "20", "true"],
            capture_output=True,
            env=launcher.environment(),
            check=False,
            cwd="/",
        )
    assert done.returncode == 2
    assert b"ulimit -u" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_program_not_found(launcher: Launcher) -> None:
    done = launcher.run("-n", "3", "no-such-program", env={"PATH": "/usr/bin:/opt/nowhere"})
    assert done.returncode == 127
    assert done.stderr.decode() == (
        "mobius run: program no-such-program was not found in PATH (/usr/bin:/opt/nowhere)\n"
    )


def test_program_in_the_current_folder(launcher: Launcher) -> None:
    program = launcher.folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = launcher.run("program", cwd=launcher.folder)
    assert done.returncode == 127
    assert b"did you mean ./program?" in done.stderr
    assert launcher.run("./program", cwd=launcher.folder).returncode == 0


@pytest.mark.parametrize(("kind", "code"), [("missing", 127), ("plain", 126), ("folder", 126)])
def test_program_by_path(launcher: Launcher, kind: str, code: int) -> None:
    path = launcher.folder / "thing"
    if kind == "plain":
        path.write_text("echo never\n")
    elif kind == "folder":
        path.mkdir()
    done = launcher.run("-n", "2", str(path))
    assert done.returncode == code
    assert str(path) in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_path_given_by_env_is_searched(launcher: Launcher) -> None:
    program = launcher.folder / "only-here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    done = launcher.run("--env", f"PATH={launcher.folder}:/usr/bin:/bin", "only-here")
    assert (done.returncode, done.stdout) == (0, b"found\n")


def test_script_without_interpreter_line_runs_in_sh(launcher: Launcher) -> None:
    program = launcher.folder / "script"
    program.write_text('echo "$1-$2"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    done = launcher.run("-n", "2", str(program), "a", "b c")
    assert (done.returncode, done.stdout) == (0, b"a-b c\n" * 2)


def test_missing_interpreter(launcher: Launcher) -> None:
    program = launcher.folder / "script"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    done = launcher.run("-n", "3", str(program))
    assert done.returncode == 127
    assert b"rank 0 of 3 could not be started" in done.stderr
    assert b"interpreter" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_start_that_fails_in_the_middle(launcher: Launcher) -> None:
    # The first rank that runs takes the program away, long before the last one is started.
    shell = shutil.which("sh")
    assert shell
    program = shutil.copy(shell, launcher.folder / "sh")
    done = launcher.run("-n", "400", str(program), "-c", 'rm -f "$D/sh"; exec sleep 1000')
    assert done.returncode == 127
    assert b"could not be started" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_options_after_the_program_are_its_own(launcher: Launcher) -> None:
    done = launcher.run("-n", "1", "echo", "-n", "5", "--tag", "--", "--bind")
    assert (done.returncode, done.stdout) == (0, b"5 --tag -- --bind")
    done = launcher.run("-n", "1", "--", "echo", "--", "x")
    assert (done.returncode, done.stdout) == (0, b"-- x\n")


def test_one_process_by_default(launcher: Launcher) -> None:
    assert launcher.run("echo", "one").stdout == b"one\n"


def test_environment_of_the_ranks(launcher: Launcher) -> None:
    script = 'printf "%s %s %s\\n" "$MOBIUS_RANK" "${#MOBIUS_JOB}" "$A"'
    words = ["-n", "3", "--env", "A=first", "--env", "A=last one", "sh", "-c", script]
    done = launcher.run(*words, env={"MOBIUS_RANK": "77", "MOBIUS_JOB": "outer", "A": "inherited"})
    assert sorted(done.stdout.splitlines()) == [f"{r} 32 last one".encode() for r in range(3)]


def test_keys_differ(launcher: Launcher) -> None:
    keys = {launcher.run("printenv", "MOBIUS_JOB").stdout for _ in range(5)}
    assert len(keys) == 5
    assert all(set(key.decode().strip()) <= set("0123456789abcdef") for key in keys)


def test_malformed_setting_is_refused_once(launcher: Launcher) -> None:
    done = launcher.run("-n", "8", "echo", env={"MOBIUS_SPIN_NS": "soon"})
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"MOBIUS_SPIN_NS") == 1


def test_unknown_setting_warns_once(launcher: Launcher) -> None:
    done = launcher.run("-n", "8", "true", env={"MOBIUS_SPIN_NZ": "1"})
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1
    assert b"did you mean MOBIUS_SPIN_NS?" in done.stderr


def test_binding(launcher: Launcher) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    count = 2 * len(allowed) + 1
    script = 'echo "$MOBIUS_RANK $(grep Cpus_allowed_list: /proc/self/status | cut -f2)"'
    bound = launcher.run("-n", str(count), "--bind", "core", "sh", "-c", script).stdout.decode()
    for line in bound.splitlines():
        rank, cpu = (int(word) for word in line.split())
        assert cpu == allowed[rank % len(allowed)]
    assert len(bound.splitlines()) == count

    free = launcher.run(
        "-n", "2", "--bind", "none", "grep", "Cpus_allowed_list", "/proc/self/status"
    )
    own = [x for x in Path("/proc/self/status").read_text().splitlines() if "allowed_list" in x]
    assert free.stdout.decode().splitlines() == [own[0]] * 2


def test_binding_stays_in_what_the_launcher_may_use(launcher: Launcher) -> None:
    last = max(os.sched_getaffinity(0))
    words = ["-n", "3", "--bind", "core", "grep", "Cpus_allowed_list", "/proc/self/status"]
    done = launcher.run(*words, preexec_fn=lambda: os.sched_setaffinity(0, {last}))
    assert [line.split()[1] for line in done.stdout.splitlines()] == [str(last).encode()] * 3


def test_help_and_version() -> None:
    text = subprocess.run([command(), "run", "--help"], capture_output=True, check=True).stdout
    for word in (b"--bind", b"--tag", b"--env", b"Examples", b"Exit codes"):
        assert word in text
    assert max(len(line) for line in text.decode().splitlines()) <= 80
    again = subprocess.run([command(), "help", "run"], capture_output=True, check=True).stdout
    assert again == text
    version = subprocess.run([command(), "--version"], capture_output=True, check=True).stdout
    assert version.startswith(b"mobius ")


def test_unknown_command() -> None:
    done = subprocess.run([command(), "ruin"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"'ruin'" in done.stderr


def test_instrument_that_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    copy = shutil.copy(command(), tmp_path / "bin" / "mobius")
    done = subprocess.run([copy, "bench"], capture_output=True, check=False)
    assert done.returncode == 127
    assert b"./mobius install" in done.stderr


def test_instrument_is_found_beside_the_command(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "libexec" / "mobius").mkdir(parents=True)
    instrument = tmp_path / "libexec" / "mobius" / "instrument"
    instrument.write_text('#!/bin/sh\necho "$@"\n')
    instrument.chmod(0o755)
    copy = shutil.copy(command(), tmp_path / "bin" / "mobius")
    done = subprocess.run([copy, "report", "--full", "x"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"report --full x\n")


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["help"], ["help", "help"], ["help", "--help"], ["--help", "-h"]]
)
def test_help_lists_every_subcommand(words: list[str]) -> None:
    done = subprocess.run([command(), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for subcommand in ("run", "info", "tune", "explain", "bench", "report", "compare", "help"):
        assert f"\n  {subcommand} " in done.stdout


@pytest.mark.parametrize("subcommand", ["run", "info", "tune", "explain"])
def test_every_subcommand_has_help(subcommand: str) -> None:
    texts = set()
    for words in (["help", subcommand], [subcommand, "--help"], [subcommand, "-h"]):
        done = subprocess.run([command(), *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Usage: mobius {subcommand}" in done.stdout
        texts.add(done.stdout)
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("word", "said"),
    [("install", "install is for a checkout: call ./mobius install"), ("fly", "no command 'fly'")],
)
def test_a_command_that_is_none(word: str, said: str) -> None:
    done = subprocess.run([command(), word], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
