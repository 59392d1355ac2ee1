# SPDX-License-Identifier: BSD-3-Clause
"""The documents: every link in them leads somewhere, in the checkout and in an installed tree; what
they show is what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mobius_setup.docs import figures, reference
from setup_trees import ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"#+ +(.*)")


def lines_of(document: Path) -> list[str]:
    """Without blocks of code."""
    parts = re.split(r"^```.*$", document.read_text(encoding="utf-8"), flags=re.M)
    return "\n".join(parts[::2]).splitlines()


def anchors_of(document: Path) -> set[str]:
    """The names that headings have in links: as GitHub makes them."""
    titles = [found[1] for line in lines_of(document) if (found := HEADING.fullmatch(line))]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(root: Path, documents: list[Path]) -> list[str]:
    dead = []
    for document in documents:
        for link in LINK.findall("\n".join(lines_of(document))):
            if re.match(r"https?:|mailto:", link):
                continue
            place, _, anchor = link.partition("#")
            # As browsers do: without a look at what is a symbolic link.
            target = Path(os.path.normpath(document.parent / place)) if place else document
            found = target.is_relative_to(root) and target.exists()
            if not found or (anchor and anchor not in anchors_of(target)):
                dead.append(f"{document.relative_to(root)}: {link}")
    return dead


def test_links_of_the_checkout() -> None:
    folders = (
        ROOT / name for name in ("apps", "bench", "docs", "examples", "fronts", "src", "tools")
    )
    documents = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    assert dead_links(ROOT, documents) == []


def test_links_of_the_installed_documents(tmp_path: Path) -> None:
    build = ROOT / "build" / "release"
    if not (build / "cmake_install.cmake").exists():
        pytest.skip("build/release is not configured")
    # The documents alone, and the headers that they lead to.
    (tmp_path / "include").symlink_to(ROOT / "include")
    done = subprocess.run(
        ["cmake", "--install", build, "--component", "documents", "--prefix", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    documents = sorted((tmp_path / "share").rglob("*.md"))
    pages = {str(page.relative_to(tmp_path / "share" / "doc" / "mobius")) for page in documents}
    assert {"README.md", "CHANGELOG.md", "docs/hosts.md", "docs/guide/index.md"} <= pages
    assert dead_links(tmp_path, documents) == []


def test_tables_are_those_of_the_recordings() -> None:
    assert [str(page) for page in figures.stale(ROOT)] == []


@pytest.mark.parametrize("page", ["README.md", "docs/guide/index.md"])
def test_the_first_program_is_the_example(page: str) -> None:
    program = (ROOT / "examples" / "ring.c").read_text(encoding="utf-8").partition("#include")
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"```c\n{program[1]}{program[2]}```" in text


def test_public_headers_are_described() -> None:
    if shutil.which("doxygen") is None:
        pytest.skip(reference.MISSING)
    assert reference.problems(ROOT) == []


def test_the_reference_lists_every_header() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\(\.\./include/mobius/(\w+\.h)\)", page))
    there = {path.name for path in (ROOT / "include" / "mobius").glob("*.h")}
    assert listed == there - {"mobius.h"}


def test_every_name_of_the_interface_exists() -> None:
    name = re.compile(r"\b(?:mob|MOB)_\w*\w")
    headers = [
        *(ROOT / "include" / "mobius").rglob("*.h*"),
        *(ROOT / "fronts" / "upc" / "include").rglob("*.h"),
    ]
    known = {word for path in headers for word in name.findall(path.read_text(encoding="utf-8"))}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    unknown = {
        f"{page.relative_to(ROOT)}: {word}"
        for page in pages
        for word in name.findall(page.read_text(encoding="utf-8"))
        if word not in known
    }
    assert unknown == set()
