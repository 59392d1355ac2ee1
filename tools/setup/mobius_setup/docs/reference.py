# SPDX-License-Identifier: BSD-3-Clause
"""The reference of the public headers: a site that Doxygen makes, and a check of descriptions.

The check wants a description of every public function, type and constant, and of every parameter:
by @param, or in the description of a function that the text refers to ("as mob_put()").
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mobius_setup.docs.recording import DocsError

SITE: Final = Path("build/reference")
MISSING: Final = "Doxygen is not installed (Debian's package: doxygen)"
# Doxygen's own messages about wrong descriptions; we find missing descriptions ourselves.
_WRONG: Final = re.compile(
    r"not found in the argument list|unable to resolve|unknown command|multiple @param|Unexpected"
    r"|found documented|explicit link request"
)
_KINDS: Final = ("function", "typedef", "enum", "define", "variable")


def _version(root: Path) -> str:
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(mobius VERSION ([\d.]+)", text)
    return found[1] if found else ""


def _doxygen(root: Path, folder: Path, *settings: str) -> list[str]:
    """Runs Doxygen; its warnings."""
    program = shutil.which("doxygen")
    if program is None:
        raise DocsError(MISSING)
    text = (root / "docs/Doxyfile").read_text(encoding="utf-8")
    more = (
        f'OUTPUT_DIRECTORY="{folder}"', f"PROJECT_NUMBER={_version(root)}", "QUIET=YES", *settings
    )  # fmt: skip
    done = subprocess.run(
        [program, "-"], cwd=root, input="\n".join((text, *more)), capture_output=True, text=True
    )
    if done.returncode != 0:
        raise DocsError(f"Doxygen failed with exit code {done.returncode}: {done.stderr}")
    return done.stderr.splitlines()


def _text_of(member: ET.Element) -> str:
    parts = (member.find("briefdescription"), member.find("detaileddescription"))
    return "".join("".join(part.itertext()) for part in parts if part is not None).strip()


class _Headers:
    """What Doxygen's XML says of every member of the public headers."""

    def __init__(self, folder: Path) -> None:
        self.members: dict[str, ET.Element] = {}
        for path in sorted(folder.glob("*.xml")):
            for member in ET.parse(path).iter("memberdef"):
                self.members.setdefault(member.get("id", ""), member)

    def described(self, member: ET.Element, seen: frozenset[str] = frozenset()) -> set[str]:
        """Parameters that the description tells of, or one that it refers to."""
        names = {
            "".join(name.itertext()).strip()
            for one in member.iter("parameteritem")
            for name in one.iter("parametername")
        }
        for description in ("briefdescription", "detaileddescription"):
            part = member.find(description)
            for link in part.iter("ref") if part is not None else ():
                other = self.members.get(link.get("refid", ""))
                name = link.get("refid", "")
                if other is not None and name not in seen and other.get("kind") == "function":
                    names |= self.described(other, seen | {name})
        return names

    def problems(self) -> Iterator[str]:
        """A line for each thing that is not described."""
        for member in self.members.values():
            place = member.find("location")
            name = member.findtext("name") or ""
            if place is None or not _is_public(member, name):
                continue
            where = f"{place.get('file')}:{place.get('line')}"
            kind = member.get("kind")
            if kind == "enum" and not _text_of(member):
                for value in member.iter("enumvalue"):
                    if not _text_of(value):
                        yield f"{where}: constant {value.findtext('name')} is not described"
            elif not _text_of(member):
                yield f"{where}: {kind} {name} is not described"
            elif kind == "function":
                known = self.described(member) | _said(member)
                for parameter in member.findall("param"):
                    of = parameter.findtext("declname")
                    if of and of not in known:
                        yield f"{where}: {name}: parameter '{of}' is not described"


def _said(member: ET.Element) -> set[str]:
    """What the text names in code, which does where one sentence says all."""
    return {"".join(code.itertext()).strip() for code in member.iter("computeroutput")}


def _is_public(member: ET.Element, name: str) -> bool:
    """Not what only the headers themselves use, nor operators and special members of classes."""
    if member.get("kind") not in _KINDS or member.get("prot") == "private":
        return False
    arguments = (member.findtext("argsstring") or "").replace(" ", "")
    if name.startswith(("~", "operator")) or f"({name}&&" in arguments:
        return False
    if arguments.endswith(("=delete", "=default")):
        return False
    return not name.startswith(("MOBIUS_", "MOB_LIKELY", "MOB_UNLIKELY")) and name[-1:] != "_"


def _with_links(page: str) -> str:
    """A page of the site whose links to headers go to their pages in it, and those to other files
    of the checkout to these."""
    page = re.sub(r'href="(?:\.\./)+include/mobius/(\w+)\.(h|hpp)"', r'href="\1_8\2.html"', page)
    return re.sub(
        r'href="(?:\.\./)+(examples|src|bench|include|[A-Z]+\.md)', r'href="../../\1', page
    )


def problems(root: Path) -> list[str]:
    """What is missing or wrong in the descriptions of the public headers."""
    with tempfile.TemporaryDirectory() as folder:
        warnings = _doxygen(root, Path(folder), "GENERATE_HTML=NO", "GENERATE_XML=YES")
        lines = (line.replace(f"{root}/", "") for line in warnings if _WRONG.search(line))
        found = [line for line in lines if line.startswith("include/")]
        found += _Headers(Path(folder) / "xml").problems()
    return sorted(set(found))


def run(root: Path, check: bool) -> int:
    """Makes the site, or with `check` prints what is not described; the exit code."""
    if not check:
        site = root / SITE
        shutil.rmtree(site, ignore_errors=True)
        site.mkdir(parents=True)
        _doxygen(root, site)
        for page in site.glob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(_with_links(text), encoding="utf-8")
        print(f"{SITE / 'index.html'}: the reference of the public headers")
        return 0
    if shutil.which("doxygen") is None:
        print(f"skipped: {MISSING}")
        return 0
    found = problems(root)
    for problem in found:
        print(problem)
    if found:
        print(
            f"{len(found)} descriptions are missing or wrong in the public headers", file=sys.stderr
        )
    return 1 if found else 0
