# SPDX-License-Identifier: BSD-3-Clause
"""Molecular dynamics: forces are those of the model, and the trajectory is the same bit for bit
whatever the processes, their number and the library between them."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest
from apps_tools import BIN, ROOT, mobius, mpich, result_of, run, run_any
from water_reference import forces_by_numpy, relative_difference

MOLECULES = 216
SIDE = (MOLECULES * 18.0154 / (0.997 * 602.214076)) ** (1 / 3)
CUTOFF = SIDE / 2 - 0.2
ATTRACTION_BAR = 181  # of Lennard-Jones beyond 0.9 nm, switched off from 0.75 nm on
SHORT = ("--molecules", MOLECULES, "--equilibrate", 20, "--steps", 20)


@pytest.fixture(scope="module")
def checksum() -> str:
    """That of one process alone."""
    return str(result_of(run_any(BIN / "md", *SHORT, "--json"))["checksum"])


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Positions, velocities and forces some steps after the start."""
    file = tmp_path_factory.mktemp("md") / "state.txt"
    words = ("--molecules", MOLECULES, "--equilibrate", 50, "--steps", 0, "--state", file)
    run(BIN / "mobius", "run", "-n", 2, BIN / "md", *words)
    return file


@pytest.mark.parametrize(
    ("program", "processes", "hosts", "options"),
    [
        ("md", 2, 1, []),
        ("md", 3, 1, ["--no-balance"]),
        ("md", 4, 2, []),
        ("md", 4, 2, ["--no-permute"]),
        ("md-armci", 2, 1, []),
        ("md-armci", 4, 2, []),
    ],
)
def test_same_trajectory(
    checksum: str, program: str, processes: int, hosts: int, options: list[str]
) -> None:
    start = (BIN / "mobius", "run", "-n", processes, "--virtual-hosts", hosts, BIN / program)
    result = result_of(run_any(*start, *SHORT, *options, "--json"))
    assert result["checksum"] == checksum
    assert result["processes"] == processes


@pytest.mark.full
def test_same_trajectory_of_eight(checksum: str) -> None:
    start = (BIN / "mobius", "run", "-n", 8, BIN / "md")
    assert result_of(run_any(*start, *SHORT, "--json"))["checksum"] == checksum


@pytest.mark.full
@pytest.mark.parametrize("library", ["mpi", "messages"])
def test_same_trajectory_over_mpi(checksum: str, library: str, tmp_path: Path) -> None:
    found = mpich()
    if found is None:
        pytest.skip("MPICH is not installed")
    compiler, launcher = found
    folder, program = ROOT / "apps" / "md", tmp_path / f"md-{library}"
    sources = (*folder.glob("*.cpp"), folder / f"processes/{library}.cpp")
    run(compiler.replace("mpicc", "mpicxx"), "-std=c++20", "-O1", *sources, "-o", program)
    result = result_of(run_any(launcher, "-n", 2, program, *SHORT, "--json"))
    assert result["checksum"] == checksum


def test_forces(state: Path) -> None:
    table = np.loadtxt(state)
    _, expected = forces_by_numpy(table[:, :3], SIDE, CUTOFF)
    assert relative_difference(table[:, 6:9], expected) < 1e-9


@pytest.mark.full
def test_forces_by_openmm(state: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "numpy", "openmm")
    if subprocess.run(install, check=False, capture_output=True).returncode != 0:
        pytest.skip("OpenMM cannot be installed from PyPI here")
    reference = Path(__file__).parent / "water_reference.py"
    assert float(run(python, reference, state, SIDE, CUTOFF).stdout) < 1e-6


def test_shape_and_motion(state: Path) -> None:
    atoms = np.loadtxt(state).reshape(MOLECULES, 3, 9)
    position, velocity, force = atoms[..., :3], atoms[..., 3:6], atoms[..., 6:]
    for a, b, length in ((0, 1, 0.1), (0, 2, 0.1), (1, 2, 0.16329808618)):
        side = position[:, b] - position[:, a]
        assert np.allclose(np.linalg.norm(side, axis=1), length, rtol=1e-10)
        change = ((velocity[:, b] - velocity[:, a]) * side).sum(axis=1)
        assert np.abs(change).max() < 1e-12
    assert np.abs(force.sum(axis=(0, 1))).max() < 1e-8  # action and reaction
    momentum = (velocity * np.array([15.9994, 1.008, 1.008])[None, :, None]).sum(axis=(0, 1))
    assert np.abs(momentum).max() < 1e-6


@pytest.mark.full
def test_water_as_published() -> None:
    """SPC/E at 300 K: energy -46.7 kJ/mol without the correction for polarisation, g(r) highest at
    0.275 nm with about 3.0 (Ewald sums; the cut-off changes the last digits), and 998 kg/m³."""
    words = ("--molecules", 512, "--equilibrate", 15000, "--steps", 10000)
    result = mobius(2, "md", *words)
    assert result["right"]
    assert abs(result["drift"]) < 1e-4  # over 10 ps
    assert 290 < result["temperature"] < 310
    assert -48 < result["potential"] < -45.5
    assert 0.27 <= result["peak_at"] <= 0.28
    assert 2.8 < result["peak"] < 3.2
    # With the attraction beyond the cut-off, 2πρ² times the integral of r²(1 - S)U, nothing
    # presses on the box, but for as much as changes the density of 997 kg/m³ by 1 %.
    assert abs(result["pressure"] - ATTRACTION_BAR) < 220


def test_files(tmp_path: Path) -> None:
    frames, plot, rdf = (tmp_path / name for name in ("water.xyz", "plot.svg", "rdf.txt"))
    done = run_any(
        BIN / "mobius", "run", "-n", 2, BIN / "md", *SHORT,
        "--every", 10, "--xyz", frames, "--plot", plot, "--rdf", rdf,
    )  # fmt: skip
    assert "md: 20 steps of 1 fs" in done.stdout
    lines = frames.read_text().splitlines()
    assert len(lines) == 2 * (2 + 3 * MOLECULES)
    assert lines[0] == str(3 * MOLECULES)
    assert lines[2].startswith("O ")
    assert lines[3].startswith("H ")
    assert plot.read_text().count("<polyline") == 3
    table = np.loadtxt(rdf)
    assert table[:20, 1].max() == 0  # nothing nearer than 0.1 nm


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--molecules", "10", "a number from 64 to 1000000 is wanted"),
        ("--steps", "1.5", "a whole number is wanted"),
        ("--cutoff", "2", "the box of 2.486 nm allows 1.043 nm"),
    ],
)
def test_bad_options(option: str, value: str, message: str) -> None:
    done = run_any(BIN / "md", option, value)
    assert done.returncode == 2
    assert f"md: {option} {value}: {message}" in done.stderr


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    done = run_any(BIN / "md", *SHORT, "--xyz", tmp_path / "no" / "folder")
    assert done.returncode == 1
    assert "cannot write" in done.stderr


def test_help() -> None:
    assert "--molecules N" in run(BIN / "md", "--help").stdout
