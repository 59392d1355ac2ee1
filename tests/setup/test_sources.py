# SPDX-License-Identifier: BSD-3-Clause
"""What `./mobius lint` says of source files."""

from __future__ import annotations

from pathlib import Path

from mobius_setup import sources

LICENCE = "// SPDX-License-Identifier: BSD-3-Clause\n"


def problems(root: Path, name: str, text: str) -> list[str]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return sources.problems(path)


def test_components_do_not_know_the_engine(tmp_path: Path) -> None:
    text = LICENCE + "class Window {\n  explicit Window(Engine& engine);\n};\n"
    (found,) = problems(tmp_path, "src/engine/segment/window/window.h", text)
    assert "window.h:3: a component must not know the Engine" in found
    assert problems(tmp_path, "src/engine/engine.h", text) == []
    included = LICENCE + '#include "engine/engine.h"\n'
    assert len(problems(tmp_path, "src/engine/team/team.cpp", included)) == 1


def test_length_and_licence(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "a.h", LICENCE + "\n" * sources.MOST_LINES)
    assert "801 lines" in found
    (found,) = problems(tmp_path, "b.h", "int b;\n")
    assert "SPDX" in found
