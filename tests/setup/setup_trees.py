# SPDX-License-Identifier: BSD-3-Clause
"""The trees that the tests of the set-up work on: one installed, and a stand-in for a checkout.

The stand-in has the real entry script and its parts, and programs in its PATH that record how they
were called: what ./mobius does is seen without minutes of downloading and building.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Finished = subprocess.CompletedProcess[str]

# The commands of every POSIX system, for PATHs that must not offer more.
BASICS = (
    "sh awk basename cat chmod cp cut dirname env false find grep head id ls mkdir mv nproc pwd "
    "readlink rm sed sort tail touch tr true uname wc flock"
).split()

# Stand-ins. Each records its call in $CALLS.
FAKES = {
    "c++": "",
    "cc": "",
    "objdump": "",
    "pkg-config": "",
    "ip": "",
    "tc": "",
    "mpirun.openmpi": "",
    "git": "",
    "cmake": """
case $1 in
  --version) echo 'cmake version 3.25.1' ;;
  --preset)
    mkdir -p "build/$2/bin"
    touch "build/$2/build.ninja"
    rm -f "build/$2/bin/mobius"
    ;;
esac
""",
    "ninja": """
[ "$1" = -C ] || exit 1
case " $* " in
  *' -n '*) [ ! -x "$2/bin/mobius" ] || echo 'ninja: no work to do.' ;;
  *)
    if [ -n "${GATE-}" ]; then read -r _ <"$GATE"; fi
    printf '#!/bin/sh\\necho native "$@"\\n' >"$2/bin/mobius"
    chmod +x "$2/bin/mobius"
    ;;
esac
""",
    "python3": "exit 1",
}


@dataclass(frozen=True)
class Checkout:
    """A stand-in checkout and the only folder in its PATH."""

    root: Path
    programs: Path
    calls_file: Path

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        base = {"PATH": str(self.programs), "HOME": str(self.programs.parent)}
        return {**base, "CALLS": str(self.calls_file), "LC_ALL": "C.UTF-8", **(extra or {})}

    def run(
        self, *arguments: str, extra: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Finished:
        return subprocess.run(
            [str(self.root / "mobius"), *arguments],
            env=self.environment(extra),
            cwd=cwd or self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def fake(self, name: str, body: str) -> None:
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$CALLS"\n{body}\n', encoding="utf-8")
        path.chmod(0o755)

    def use_python(self) -> None:
        """Puts the interpreter of this test in the place of the stand-in."""
        (self.programs / "python3").unlink()
        (self.programs / "python3").symlink_to(sys.executable)

    def files(self) -> dict[str, int]:
        """Every file and folder of the checkout and of its user's home, but the tests' own."""
        home = self.programs.parent
        found = (path for path in home.rglob("*") if path != self.calls_file)
        return {str(path.relative_to(home)): path.lstat().st_mtime_ns for path in found}

    def remove(self, *names: str) -> None:
        for name in names:
            (self.programs / name).unlink()

    def calls(self) -> list[str]:
        return self.calls_file.read_text(encoding="utf-8").splitlines()

    def forget_calls(self) -> None:
        self.calls_file.write_text("", encoding="utf-8")


@dataclass(frozen=True)
class Installed:
    """A tree that was installed in `first_prefix` and then moved to `prefix`."""

    prefix: Path
    first_prefix: Path

    @property
    def environment(self) -> dict[str, str]:
        """The caller's, without anything that would point into the checkout."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MOBIUS_", "PYTHON"))}
        return kept | {"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}

    def run(self, *command: str | Path, cwd: Path) -> Finished:
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
