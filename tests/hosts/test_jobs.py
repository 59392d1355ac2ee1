# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on several hosts, started by foreign launchers and by `mobius run --hosts`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import bed as beds
import pytest
from hosts_tools import Ended, launcher, mpiexec, mpirun, program, run

DRIVER = program("hosts_driver")
MOBIUS = program("mobius")
SUITE = program("multi_tests")
RANDOM = program("random_programs")


def job(bed: beds.Bed, hosts: str, *words: str, options: Sequence[str] = (), **env: str) -> Ended:
    """Run the driver as a job of mpirun on hosts of a bed."""
    export = [word for name in env for word in ("-x", name)]
    return run(mpirun(bed, hosts, *options, *export, DRIVER, *words), env)


def ours(bed: beds.Bed, *words: str, **env: str) -> Ended:
    """Run `mobius run` on the first host of a bed."""
    launcher("mpirun.openmpi")
    return run(
        bed.words([MOBIUS, "run", *words]), {"OMPI_MCA_plm_rsh_agent": str(bed.agent), **env}
    )


def expected(*places: int) -> list[str]:
    """The lines of a job whose rank i is on host places[i]."""
    lines = []
    for rank, place in enumerate(places):
        index = places[:rank].count(place)
        lines.append(f"rank {rank} of {len(places)}, {index} of {places.count(place)} here")
    return sorted(lines)


def test_two_processes_on_each_of_two_hosts(bed: beds.Bed) -> None:
    done = job(bed, "hosta:2,hostb:2", "who")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == expected(0, 0, 1, 1)


# Its servers keep published values where they were published, fence or not, until asked for them.
def test_two_processes_on_each_of_two_hosts_under_prrte(bed: beds.Bed) -> None:
    words = [launcher("prterun"), "--allow-run-as-root", "--prtemca", "plm_ssh_agent"]
    words += [str(bed.agent), "--map-by", "node:OVERSUBSCRIBE", "--host", "hosta:2,hostb:2"]
    done = run(bed.words([*words, "-n", "4", DRIVER, "who"]))
    assert done.code == 0, done.err
    assert done.lines() == expected(0, 1, 0, 1)


# The server treats them as one job, and miscounts its processes once some have left.
def test_one_program_after_the_other(bed: beds.Bed) -> None:
    words = ["sh", "-c", '"$@" && "$@" && "$@" && "$@"', "sh", DRIVER, "who"]
    done = run(mpirun(bed, "hosta:2,hostb:2", *words))
    assert (done.code, done.err) == (0, "")
    assert done.lines() == sorted(4 * expected(0, 0, 1, 1))


# The same happens after an MPI in the same process has left.
@pytest.mark.parametrize("order", ["MMmm", "MsMmm"])
def test_after_an_mpi_in_the_same_process(bed: beds.Bed, order: str) -> None:
    done = job(bed, "hosta:2,hostb:2", "beside_mpi", "libmpi.so.40", order)
    if done.out.startswith("SKIP"):
        pytest.skip(done.out)
    assert done.code == 0, done.err
    assert done.lines() == sorted([*expected(0, 0, 1, 1), *4 * ["left"]])


def test_ranks_dealt_out_to_hosts_in_turn(bed: beds.Bed) -> None:
    done = job(bed, "hosta:3,hostb:2", "who", options=["--map-by", "node"])
    assert (done.code, done.err) == (0, "")
    assert done.lines() == expected(0, 1, 0, 1, 0)


def test_one_process_on_each_of_three_hosts(bed_of_three: beds.Bed) -> None:
    done = job(bed_of_three, "hosta,hostb,hostc", "who")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == expected(0, 1, 2)


def test_processes_that_share_nothing_are_on_two_hosts(bed: beds.Bed) -> None:
    """Odd ranks in a user namespace of their own, as in a container: one machine, two hosts."""
    if run(bed.words(["unshare", "--user", "--map-root-user", "true"])).code != 0:
        pytest.skip("user namespaces are not allowed")
    apart = 'exec unshare --user --map-root-user "$@"'
    script = f'if [ $((PMIX_RANK % 2)) = 1 ]; then {apart}; fi; exec "$@"'
    done = run(mpirun(bed, "hosta:2", "sh", "-c", script, "sh", DRIVER, "where"))
    assert (done.code, done.err) == (0, "")
    assert done.lines() == expected(0, 1)


def test_abort_on_one_host_ends_all(bed: beds.Bed) -> None:
    done = job(bed, "hosta:1,hostb:2", "abort", "7")
    assert done.code == 7
    assert "mob_abort(7): because the test wants it" in done.err


def test_exit_codes_pass_through(bed: beds.Bed) -> None:
    assert job(bed, "hosta:1,hostb:1", "exit", "9").code == 9


@pytest.mark.parametrize(
    ("words", "places"),
    [
        (["-n", "4", "--hosts", "hosta,hostb"], (0, 0, 1, 1)),
        (["-n", "3", "--hosts", "hosta,hostb"], (0, 0, 1)),
        (["-n", "3", "--hosts", "hosta:1,hostb:2"], (0, 1, 1)),
        (["-n", "3", "--hosts", "hosta:1,hostb"], (0, 1, 1)),
        (["-n", "2", "--hosts", "hostb"], (0, 0)),
    ],
)
def test_our_launcher_on_hosts(bed: beds.Bed, words: list[str], places: tuple[int, ...]) -> None:
    done = ours(bed, *words, DRIVER, "who")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == expected(*places)


def test_our_launcher_passes_settings_and_exit_codes(bed: beds.Bed) -> None:
    script = 'echo "$MOBIUS_LOG $WORD"; exit 5'
    words = ["-n", "2", "--hosts", "hosta,hostb", "--env", "WORD=there"]
    done = ours(bed, *words, "sh", "-c", script, MOBIUS_LOG="error")
    assert done.code == 5
    assert "error there" in done.lines()


def test_our_launcher_says_what_to_install(tmp_path: Path) -> None:
    words = [MOBIUS, "run", "-n", "2", "--hosts", "a,b", "true"]
    done = run(words, {"PATH": str(tmp_path)})
    assert done.code == 2
    assert "apt-get install openmpi-bin" in done.err
    assert "srun --mpi=pmix" in done.err
    # Another MPI's mpirun cannot start such jobs.
    (tmp_path / "mpirun").symlink_to(shutil.which("true") or "/bin/true")
    assert run(words, {"PATH": str(tmp_path)}).err == done.err


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("prterun", "--runtime-options recoverable"),
        ("mpirun.openmpi", "--enable-recovery"),
    ],
)
def test_our_launcher_has_others_survive(tmp_path: Path, name: str, option: str) -> None:
    (tmp_path / name).write_text('#!/bin/sh\necho "$*"\n')
    (tmp_path / name).chmod(0o755)
    words = [MOBIUS, "run", "-n", "2", "--hosts", "a,b"]
    env = {"PATH": str(tmp_path)}
    assert option in run([*words, "--on-death", "error", "true"], env).out
    assert option in run([*words, "true"], {**env, "MOBIUS_ON_DEATH": "error"}).out
    assert option not in run([*words, "true"], env).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "1", "--hosts", "a,b"], "1 processes are too few for 2 hosts"),
        (["-n", "4", "--hosts", "a:1,b:2"], "the hosts take 3 processes together, not 4"),
        (["-n", "2", "--hosts", "a,,b"], "'' is no host"),
        (["-n", "2", "--hosts", "a:x"], "'a:x' is no host"),
        (["-n", "2", "--hosts", "a:0,b"], "'a:0' is no host"),
        (["-n", "2", "--hosts", "--x"], "'--x' is no host"),
        (["-n", "2", "--hosts", "a,b", "--virtual-hosts", "2"], "exclude each other"),
    ],
)
def test_bad_lists_of_hosts(words: list[str], said: str) -> None:
    done = run([MOBIUS, "run", *words, "true"])
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_info_knows_the_launcher() -> None:
    path = launcher("mpirun.openmpi")
    assert f"{path}, for mobius run --hosts" in run([MOBIUS, "info"]).out


# Also not the tests that are left out between virtual hosts (tests/multi/CMakeLists.txt gives the
# reasons), nor those that take seconds for their many barriers alone.
NOT_ON_TWO_HOSTS = (
    "Threads.* Remap.* CountedWords.BadInput* Exposed.MemoryThatIsNotExposed* "
    "Heap.GrowsWhileInUse Heap.ManyLeaveNothingBehind Hooks.StartedTransfers* "
    "Message.ProgressCanBeChanged WrongCounters.* WrongTransfer.* WrongWords.* "
    "Collective.TeamBarrierSeparatesPhases TeamMemory.TenThousandLeaveNothingBehind"
).split()


@pytest.mark.parametrize("name", ["halo", "histogram", "producer", "workqueue"])
def test_examples_find_their_results_right(bed: beds.Bed, name: str) -> None:
    done = run(mpirun(bed, "hosta:2,hostb:2", "--bind-to", "none", program(f"example_{name}")))
    assert done.code == 0, done.err
    assert re.fullmatch(rf"{name}: .*: right\n", done.out)


def test_the_first_example_on_two_hosts(bed: beds.Bed) -> None:
    done = run(mpirun(bed, "hosta:2,hostb:2", "--bind-to", "none", program("example_ring")))
    assert done.code == 0, done.err
    assert done.lines() == [f"rank {rank} got {100 + (rank + 3) % 4}" for rank in range(4)]


# What depends on the network; tests/multi runs the rest on virtual hosts.
NETWORK = "Access*:Counters*:Epoch*:Flush*:LargeRows*:Lock*:Message*:*Rkeys*:Schedule*:Signals*"


@pytest.mark.slow
@pytest.mark.parametrize("names", [NETWORK, pytest.param("*", marks=pytest.mark.full)])
def test_conformance_on_two_hosts(bed: beds.Bed, names: str) -> None:
    words = ["--bind-to", "none", SUITE]
    words += [f"--gtest_filter={names}-" + ":".join(NOT_ON_TWO_HOSTS)]
    done = run(mpirun(bed, "hosta:2,hostb:2", *words))
    failures = re.findall(r"^.*(?:Failure|FAILED).*$", done.out + done.err, re.MULTILINE)
    assert done.code == 0, "\n".join(failures) or done.err
    passed = re.search(r"PASSED.*?(\d+) tests", done.out)
    assert passed is not None
    assert int(passed[1]) >= (200 if names == "*" else 100)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [[], ["--exposed"], ["--heap"]])
@pytest.mark.parametrize("programs", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_random_programs_on_two_hosts(bed: beds.Bed, programs: int, memory: list[str]) -> None:
    words = ["--bind-to", "none", RANDOM, "--programs", str(programs), "--seed", "900001", *memory]
    done = run(mpirun(bed, "hosta:2,hostb:2", *words))
    assert done.code == 0, done.out[-2000:] + done.err[-2000:]
    assert f"{programs} programs" in done.out


# Hydra's messages about processes that end without MPI_Finalize, on standard output.
HYDRAS = re.compile(
    r"=+$|=   |YOUR APPLICATION TERMINATED WITH|This typically refers to|Please see the FAQ page"
)


def said(done: Ended) -> list[str]:
    """The lines of the processes."""
    gave_up = "MPI_Finalize given up" in done.err
    return [line for line in done.lines() if line and not (gave_up and HYDRAS.match(line))]


@pytest.mark.parametrize(
    ("hosts", "places"), [("hosta,hostb", (0, 1, 0, 1)), ("hostb", (0, 0, 0, 0))]
)
def test_through_an_mpi_whose_launcher_speaks_no_pmix(
    bed: beds.Bed, hosts: str, places: tuple[int, ...]
) -> None:
    done = run(mpiexec(bed, hosts, 4, DRIVER, "beside_mpi", "libmpich.so.12", "MmmM"))
    if done.out.startswith("SKIP"):
        pytest.skip(done.out)
    # Hydra may fail because of processes that end without MPI_Finalize; driver.c explains that.
    assert done.code == 0 or "MPI_Finalize given up" in done.err, done.err
    assert said(done) == ["left"] * 4 + expected(*places)


def in_communicators(bed: beds.Bed, name: str, **env: str) -> Ended:
    """Run jobs of the processes of an MPI's communicators, with its launcher."""
    words = [DRIVER, "in_communicators", name]
    if name.startswith("libmpich"):
        done = run(mpiexec(bed, "hosta:2,hostb:2", 4, *words), env)
    else:
        export = [word for name in env for word in ("-x", name)]
        done = run(mpirun(bed, "hosta:2,hostb:2", *export, *words), env)
    if done.out.startswith("SKIP"):
        pytest.skip(done.out)
    return done


# Ranks 0 and 2, and ranks 1 and 3, which are on two hosts.
@pytest.mark.parametrize("name", ["libmpi.so.40", "libmpich.so.12"])
def test_jobs_of_communicators(bed: beds.Bed, name: str) -> None:
    done = in_communicators(bed, name)
    assert done.code == 0 or "MPI_Finalize given up" in done.err, done.err
    assert said(done) == sorted(2 * expected(0, 1))


@pytest.mark.parametrize("name", ["libmpi.so.40", "libmpich.so.12"])
def test_jobs_of_communicators_end_with_a_reason(bed: beds.Bed, name: str) -> None:
    done = in_communicators(bed, name, MOBIUS_PROVIDER="nosuch")
    assert done.code != 0
    assert "mob_init() failed on host host" in done.err
    assert "MOBIUS_PROVIDER='nosuch'" in done.err


def test_hydra_alone_is_not_enough_for_several_hosts(bed: beds.Bed) -> None:
    done = run(mpiexec(bed, "hosta,hostb", 2, DRIVER, "who"))
    assert done.code != 0
    assert "here" not in done.out
