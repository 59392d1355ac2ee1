# SPDX-License-Identifier: BSD-3-Clause
"""The documents: every link in them leads somewhere, in the checkout and in an installed tree."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
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
    folders = (ROOT / name for name in ("bench", "docs", "examples", "fronts", "src", "tools"))
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
