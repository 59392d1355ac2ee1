# SPDX-License-Identifier: BSD-3-Clause
"""./mobius: what it says, what it installs and when, what the second call costs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from setup_trees import ROOT, Checkout, Installed

LIBRARY_PACKAGES = "libcli11-dev libfabric-dev libfmt-dev libgtest-dev nlohmann-json3-dev"
ALL_HEADERS_MISSING = "printf '%s\\n' " + LIBRARY_PACKAGES


def test_unknown_subcommand_names_the_nearest(checkout: Checkout) -> None:
    done = checkout.run("reprot")
    assert done.returncode == 2
    assert "unknown subcommand 'reprot'; did you mean 'report'?" in done.stderr
    assert done.stdout == ""


def test_unknown_subcommand_unlike_any_names_the_help(checkout: Checkout) -> None:
    done = checkout.run("frobnicate")
    assert done.returncode == 2
    assert "did you mean" not in done.stderr
    assert "./mobius --help" in done.stderr


def test_no_subcommand_shows_help_and_fails(checkout: Checkout) -> None:
    done = checkout.run()
    assert done.returncode == 2
    assert "Usage: ./mobius SUBCOMMAND" in done.stderr


SUBCOMMANDS = (
    "build test run mpirun bench report compare info tune explain docs install lint setup"
).split()


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_help_needs_no_setup(checkout: Checkout, subcommand: str) -> None:
    checkout.use_python()
    before = checkout.files()
    direct = checkout.run(subcommand, "--help")
    assert (direct.returncode, direct.stderr) == (0, "")
    assert re.search(f"^Usage: (./)?mobius {subcommand}", direct.stdout, re.M)
    assert checkout.run("help", subcommand).stdout == direct.stdout
    assert checkout.calls() == []
    assert checkout.files() == before


@pytest.mark.parametrize(
    "call",
    [
        "install --prefix DIR --help",
        "build -j 2 -h",
        "test --quick --help",
        "lint --fix -h",
        "bench --full locks --help",
        "bench micro --rounds 3 --help",
        "report --from DIR -h",
    ],
)
def test_help_behind_other_options(checkout: Checkout, call: str) -> None:
    checkout.use_python()
    done = checkout.run(*call.split())
    assert done.returncode == 0
    assert re.search(f"^Usage: (./)?mobius {call.split()[0]}", done.stdout, re.M)
    assert checkout.calls() == []


def test_every_subcommand_has_a_text_that_needs_no_python(checkout: Checkout) -> None:
    folder = checkout.root / "tools"
    sections = re.findall("^@(.*)$", (folder / "setup" / "help.txt").read_text("utf-8"), re.M)
    files = [path.stem for path in (folder / "mobius" / "help").iterdir()]
    assert sorted(sections + files) == sorted(["mobius", "help", *SUBCOMMANDS])


@pytest.mark.parametrize("call", ["bench --list", "bench --no-peers --libs mobius --list"])
def test_list_needs_no_setup(checkout: Checkout, call: str) -> None:
    """Answered by the system's Python with its standard library alone."""
    checkout.use_python()
    before = checkout.files()
    done = checkout.run(*call.split(), extra={"PYTHONPATH": "/nowhere"})
    assert (done.returncode, done.stderr) == (0, "")
    for line in ("  pingpong ", "  mobius ", "(not installed or built yet)"):
        assert line in done.stdout
    assert checkout.calls() == []
    assert checkout.files() == before


@pytest.mark.parametrize("call", ["bench micro --list", "bench micro --json --list put8"])
def test_list_of_micro_needs_no_setup(checkout: Checkout, call: str) -> None:
    checkout.use_python()
    before = checkout.files()
    done = checkout.run(*call.split(), extra={"PYTHONPATH": "/nowhere"})
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search("^put8 +one 8-byte put", done.stdout, re.M)
    assert re.search("^startup +a job", done.stdout, re.M)
    assert checkout.calls() == []
    assert checkout.files() == before


def test_list_of_micro_is_that_of_the_program(installed: Installed) -> None:
    mobius = installed.prefix / "bin" / "mobius"
    program = installed.prefix / "libexec" / "mobius" / "micro"
    native = installed.run(mobius, "run", "-n", "2", program, "--list", cwd=installed.prefix)
    shown = installed.run(mobius, "bench", "micro", "--list", cwd=installed.prefix)
    lists = [
        [line.split(maxsplit=1) for line in done.stdout.splitlines()] for done in (native, shown)
    ]
    assert len(lists[0]) > 30
    assert lists[1] == [*lists[0], ["startup", "a job from its command to its end"]]


def test_help_of_native_subcommands_is_that_of_the_program(installed: Installed) -> None:
    for subcommand in ("run", "mpirun", "info", "tune", "explain"):
        program = installed.run(
            installed.prefix / "bin" / "mobius", subcommand, "--help", cwd=installed.prefix
        )
        text = (ROOT / "tools" / "mobius" / "help" / f"{subcommand}.txt").read_text("utf-8")
        assert program.stdout == text


@pytest.mark.parametrize("call", ["run -n 1 true", "info", "tune", "explain"])
def test_programs_are_built_without_the_tests(checkout: Checkout, call: str) -> None:
    assert checkout.run(*call.split()).returncode == 0
    built = [name for name in checkout.calls() if name.startswith("ninja") and " -n" not in name]
    assert built
    assert all(name.endswith(" mobius_installed") for name in built)
    # `build` makes the rest.
    checkout.fake("ninja", "")
    checkout.forget_calls()
    assert checkout.run("build").returncode == 0
    assert not checkout.calls()[-1].endswith(" mobius_installed")


def test_help_about_help(checkout: Checkout) -> None:
    for call in (["help", "help"], ["help", "--help"]):
        done = checkout.run(*call)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Usage: ./mobius help" in done.stdout


def test_help_names_every_option_that_is_taken(checkout: Checkout) -> None:
    """Options as the parts that parse them spell them."""
    commands = (checkout.root / "tools" / "setup" / "commands.sh").read_text(encoding="utf-8")
    parts = re.findall(r"^command_(\w+)\(\) \{\n(.*?)^\}", commands, re.M | re.S)
    for subcommand, body in parts:
        shown = checkout.run(subcommand, "--help").stdout
        for option in re.findall(r"^ +(-[-a-z]+)\)", body, re.M):
            assert f"  {option}" in shown, subcommand


def test_options_with_their_value_attached(checkout: Checkout) -> None:
    done = checkout.run("build", "--preset=dev", "-j3")
    assert done.returncode == 0, done.stderr
    assert "build/dev is up to date" in done.stderr
    assert any("-j 3" in call for call in checkout.calls())
    assert "no preset 'none'" in checkout.run("build", "--preset=none").stderr
    assert "-j needs a number of jobs" in checkout.run("build", "-jx").stderr


def test_main_help_lists_every_subcommand(checkout: Checkout) -> None:
    shown = checkout.run("--help").stdout
    for subcommand in SUBCOMMANDS:
        assert f"\n  {subcommand} " in shown


@pytest.mark.parametrize("arguments", ["--help", "--version", "help", "help run", "build --help"])
def test_help_to_a_full_disk_fails(checkout: Checkout, arguments: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [str(checkout.root / "mobius"), *arguments.split()],
            env=checkout.environment(), stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr


def test_version(checkout: Checkout) -> None:
    done = checkout.run("--version")
    assert done.stdout.startswith("mobius ")
    assert done.stdout.split()[1].count(".") == 2


def test_missing_packages_are_named_to_a_user_who_may_not_install(checkout: Checkout) -> None:
    checkout.fake("id", "echo 1000")
    checkout.fake("sudo", "exit 1")
    checkout.fake("apt-get", "exit 1")
    checkout.fake("c++", ALL_HEADERS_MISSING)
    checkout.remove("objdump")
    done = checkout.run("build")
    assert done.returncode == 2
    assert f"missing packages: binutils {LIBRARY_PACKAGES}" in done.stderr
    assert f"sudo apt-get update && sudo apt-get install binutils {LIBRARY_PACKAGES}" in done.stderr
    assert not any(call.startswith("apt-get") for call in checkout.calls())


def test_a_missing_compiler_is_a_missing_package(checkout: Checkout) -> None:
    checkout.fake("id", "echo 1000")
    checkout.fake("apt-get", "exit 1")
    checkout.remove("c++", "cc")
    done = checkout.run("build")
    assert done.returncode == 2
    assert "missing packages: g++" in done.stderr


def test_without_apt_packages_are_named(checkout: Checkout) -> None:
    checkout.fake("c++", ALL_HEADERS_MISSING)
    done = checkout.run("run", "-n", "1", "true")
    assert done.returncode == 2
    assert "no apt-get" in done.stderr
    assert "libfmt-dev" in done.stderr


def test_root_installs_what_is_missing_after_fetching_lists(checkout: Checkout) -> None:
    """A fresh machine: no package lists yet, so the first attempt finds nothing."""
    checkout.fake("id", "echo 0")
    checkout.fake("c++", f'[ -e "$CALLS.installed" ] || {ALL_HEADERS_MISSING}')
    checkout.fake(
        "apt-get",
        'case $1 in update) touch "$CALLS.lists" ;; install)\n'
        '[ -e "$CALLS.lists" ] || { echo "E: Unable to locate package"; exit 100; }\n'
        'touch "$CALLS.installed" ;; esac',
    )
    done = checkout.run("build")
    assert done.returncode == 0, done.stderr
    apt = [call.split()[1] for call in checkout.calls() if call.startswith("apt-get")]
    assert apt == ["install", "update", "install"]
    assert "Unable to locate" not in done.stderr


def test_sudo_without_password_is_used(checkout: Checkout) -> None:
    checkout.fake("id", "echo 1000")
    checkout.fake("c++", f'[ -e "$CALLS.installed" ] || {ALL_HEADERS_MISSING}')
    checkout.fake("sudo", '[ "$1" = -n ] || exit 1\nshift\nexec "$@"')
    checkout.fake("apt-get", 'touch "$CALLS.installed"')
    done = checkout.run("build")
    assert done.returncode == 0, done.stderr
    assert any(call.startswith("sudo -n env") for call in checkout.calls())


def test_a_failing_installation_is_shown_with_the_way_on(checkout: Checkout) -> None:
    checkout.fake("id", "echo 0")
    checkout.fake("c++", ALL_HEADERS_MISSING)
    checkout.fake("apt-get", "echo 'E: mirror unreachable'; exit 100")
    done = checkout.run("build")
    assert done.returncode == 2
    assert "E: mirror unreachable" in done.stderr
    assert "install them by hand (apt-get install" in done.stderr
    assert (checkout.root / ".mobius" / "logs" / "apt.log").is_file()


def test_packages_that_do_not_help_are_reported(checkout: Checkout) -> None:
    checkout.fake("id", "echo 0")
    checkout.fake("c++", ALL_HEADERS_MISSING)
    checkout.fake("apt-get", "")
    done = checkout.run("build")
    assert done.returncode == 2
    assert "still missing although apt-get" in done.stderr


def test_a_failing_build_is_shown_and_not_taken_for_built(checkout: Checkout) -> None:
    checkout.fake("ninja", "echo 'error: expected unqualified-id'; exit 1")
    done = checkout.run("info")
    assert done.returncode == 2
    assert "error: expected unqualified-id" in done.stderr
    assert "build-release.log" in done.stderr
    checkout.forget_calls()
    again = checkout.run("info")
    assert again.returncode == 2
    assert any(call.startswith("ninja") for call in checkout.calls())


def test_second_run_starts_no_program_at_all(checkout: Checkout) -> None:
    first = checkout.run("run", "-n", "2", "prog", "two words")
    assert first.returncode == 0, first.stderr
    assert first.stdout == "native run -n 2 prog two words\n"
    checkout.forget_calls()
    before = sorted((p, p.stat().st_mtime_ns) for p in (checkout.root / ".mobius").rglob("*"))
    # The stand-in's own interpreter is all that an empty PATH leaves to start.
    second = checkout.run("run", "-n", "2", "prog", extra={"PATH": ""})
    assert (second.returncode, second.stdout) == (0, "native run -n 2 prog\n")
    assert second.stderr == ""
    assert checkout.calls() == []
    after = sorted((p, p.stat().st_mtime_ns) for p in (checkout.root / ".mobius").rglob("*"))
    assert after == before


def test_build_again_does_nothing_and_says_so(checkout: Checkout) -> None:
    assert checkout.run("build").returncode == 0
    checkout.forget_calls()
    done = checkout.run("build")
    assert done.returncode == 0
    assert done.stderr == "mobius: build/release is up to date\n"
    assert not any(call.startswith("cmake --preset") for call in checkout.calls())


def test_changed_presets_are_configured_again(checkout: Checkout) -> None:
    assert checkout.run("build").returncode == 0
    checkout.forget_calls()
    stamp = checkout.root / ".mobius" / "configure-release.stamp"
    later = stamp.stat().st_mtime + 10
    os.utime(checkout.root / "CMakePresets.json", (later, later))
    assert checkout.run("build").returncode == 0
    assert "cmake --preset release" in checkout.calls()


def test_an_mpi_that_comes_or_goes_is_configured_for(checkout: Checkout) -> None:
    assert checkout.run("build").returncode == 0
    for comes in (True, False):
        checkout.forget_calls()
        if comes:
            checkout.fake("mpicc.mpich", "")
        else:
            checkout.remove("mpicc.mpich")
        assert checkout.run("build").returncode == 0
        assert checkout.calls().count("cmake --preset release") == 1
        checkout.forget_calls()
        assert checkout.run("build").returncode == 0
        assert "cmake --preset release" not in checkout.calls()


def test_a_moved_checkout_is_set_up_again(checkout: Checkout) -> None:
    assert checkout.run("info").returncode == 0
    checkout.forget_calls()
    moved = Checkout(
        checkout.root.rename(checkout.root.with_name("moved")),
        checkout.programs,
        checkout.calls_file,
    )
    done = moved.run("info")
    assert (done.returncode, done.stdout) == (0, "native info\n")
    assert "cmake --preset release --fresh" in checkout.calls()


def test_called_through_a_link_from_elsewhere(checkout: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "bin" / "mobius"
    link.parent.mkdir()
    link.symlink_to(checkout.root / "mobius")
    for _ in range(2):
        done = subprocess.run(
            [str(link), "info"],
            cwd=tmp_path,
            env=checkout.environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, "native info\n"), done.stderr
    assert not (tmp_path / ".mobius").exists()


@pytest.mark.parametrize("home", [None, "/nonexistent"])
def test_without_a_usable_home(checkout: Checkout, home: str | None) -> None:
    environment = checkout.environment()
    del environment["HOME"]
    if home:
        environment["HOME"] = home
    done = subprocess.run(
        [str(checkout.root / "mobius"), "build"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_checkout_that_cannot_be_written(checkout: Checkout) -> None:
    """A file in the place of the folder: permissions would not stop root."""
    (checkout.root / ".mobius").touch()
    done = checkout.run("build")
    assert done.returncode == 2
    assert "cannot write to" in done.stderr
    assert "make it writable" in done.stderr


def test_two_builds_at_once_take_turns(checkout: Checkout, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = [str(checkout.root / "mobius"), "build"]
    held = checkout.environment({"GATE": str(gate)})
    with subprocess.Popen(command, env=held, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        for line in first.stderr:
            if "building build/release" in line:
                break
        environment = checkout.environment()
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, text=True
        ) as second:
            assert second.stderr is not None
            assert "waiting for another ./mobius" in second.stderr.readline()
            with gate.open("w") as opened:
                opened.write("go\n")
            assert "build/release is up to date" in second.stderr.read()
            assert second.wait() == 0
        assert first.wait() == 0
    builds = [call for call in checkout.calls() if call.startswith("ninja") and " -n" not in call]
    assert len(builds) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["build", "--preset", "fast"], "no preset 'fast'; there are: asan-ubsan dev"),
        (["build", "--preset"], "--preset needs a value"),
        (["build", "-j", "many"], "-j needs a number of jobs"),
        (["build", "everything"], "unexpected argument 'everything'"),
        (["install"], "install needs a folder: ./mobius install --prefix DIR"),
        (["install", "--prefix", "/dev/null/x"], "cannot install in '/dev/null/x'"),
        (["install", "--prefix", "/proc/x"], "cannot install in '/proc/x'"),
        (["lint", "--fiks"], "unexpected argument '--fiks'"),
    ],
)
def test_bad_arguments_are_named_before_any_work(
    checkout: Checkout, arguments: list[str], complaint: str
) -> None:
    done = checkout.run(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert checkout.calls() == []


def test_test_that_cannot_be_set_up_still_sums_up(checkout: Checkout) -> None:
    checkout.fake("c++", ALL_HEADERS_MISSING)
    done = checkout.run("test")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_script_is_accepted_by_other_shells(checkout: Checkout) -> None:
    for shell in filter(None, map(shutil.which, ("dash", "bash"))):
        done = subprocess.run(
            [shell, str(checkout.root / "mobius"), "--version"],
            env=checkout.environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
