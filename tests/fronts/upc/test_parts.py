# SPDX-License-Identifier: BSD-3-Clause
"""The three parts of the translator, each alone: small texts and what becomes of them."""

# ruff: noqa: E402 - without libclang the translator cannot be imported

from __future__ import annotations

import re
from pathlib import Path

import pytest

clang = pytest.importorskip("clang", reason="the Python package libclang is not installed")

from mobius_upc import cursors
from mobius_upc.driver import internal_error
from mobius_upc.frontend import parse
from mobius_upc.layout import Layout, LayoutTable
from mobius_upc.lower import lower
from mobius_upc.options import UsageError, parse_command
from mobius_upc.printer import print_text
from mobius_upc.problems import Problems, TranslationError
from mobius_upc.rewrite import rewrite
from mobius_upc.source import Edit, SourceText
from mobius_upc.translate import translate


def rewritten(text: str, threads: int | None = None) -> tuple[str, LayoutTable, Problems]:
    """The text that Clang would parse, without the prologue."""
    layouts, problems = LayoutTable(), Problems()
    source = rewrite(text, layouts, problems, threads)
    return source.text[source.body[0].at :], layouts, problems


def translated(text: str, threads: int | None = None) -> str:
    """The C text of the last function, without its head and the table of the file."""
    result, _ = translate(f'# 1 "a.upc"\n{text}\n', "a.upc", threads)
    body = re.split(r"\bf\(", result, maxsplit=1)[1].partition("static const mob_upc_object_t")[0]
    return re.sub(r"\s+", " ", re.sub(r"^# .*$", "", body, flags=re.MULTILINE)).strip()


def problems_of(text: str, threads: int | None = None) -> list[tuple[int, str]]:
    """Lines and messages of the errors in a text."""
    with pytest.raises(TranslationError) as raised:
        translate(f'# 1 "a.upc"\n{text}\n', "a.upc", threads)
    return [(problem.place.line, problem.message) for problem in raised.value.problems]


# Parse: tokens


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("shared int x;", Layout(1)),
        ("shared [] int x;", Layout(0)),
        ("shared [2 * 3] int x;", Layout(6)),
        ("int shared [0x10] *p;", Layout(16)),
        ("shared[(7 / 2) << 1]char*p;", Layout(6)),
    ],
)
def test_layout_becomes_an_address_space(text: str, layout: Layout) -> None:
    result, layouts, problems = rewritten(text)
    space = re.search(r"address_space\((\d+)\)", result)
    assert space is not None
    assert layouts.layout(int(space[1])) == layout
    assert not problems.found


def test_equal_layouts_have_one_address_space() -> None:
    result, layouts, _ = rewritten("shared [4] int *p; shared [2+2] int *q; shared int *r;")
    spaces = re.findall(r"address_space\((\d+)\)", result)
    assert spaces[0] == spaces[1] != spaces[2]
    assert len(layouts.spaces) == 2


def test_words_in_strings_stay() -> None:
    result, _, _ = rewritten("char *s = \"shared [3] upc_barrier;\"; char c = '\\'';")
    assert "shared [3] upc_barrier;" in result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("upc_barrier;", "__upc_barrier();"),
        ("upc_notify f(a, b);", "__upc_notify( f(a, b));"),
        ("upc_forall (i = 0; i < n; i++; &a[i]) x;", "for (i = 0; i < n; i++,( &a[i])) x;"),
        ("upc_forall (;;;continue) x;", "for (;;) x;"),
        ("upc_forall (;;;) x;", "for (;;) x;"),
        ("upc_forall (;;;i) x;", "for (;;(void)0,(i)) x;"),
        ("n = upc_blocksizeof(a);", "n = sizeof(a);"),
        ("n = upc_elemsizeof a[i].b + 1;", "n = sizeof a[i].b + 1;"),
        ("n = sizeof(int) + sizeof x;", "n = sizeof(int) + sizeof x;"),
    ],
)
def test_constructs_become_c(text: str, result: str) -> None:
    assert rewritten(text)[0] == result


def test_edits_move_marks() -> None:
    source = SourceText.from_preprocessed('# 5 "a.upc"\nfirst second\nthird\n')
    source.edit([Edit(0, 5, "a longer first"), Edit(6, 6, "zero ")])
    assert source.text == "a longer first zero second\nthird\n"
    place = source.place(source.text.index("third"))
    assert (place.file, place.line) == ("a.upc", 6)


# Parse: types


def test_clang_types_shared_expressions() -> None:
    layouts, problems = LayoutTable(), Problems()
    text = "shared [3] int a[3*THREADS]; shared void *p; int f(void) { p = a; return a[1]; }"
    unit = parse(rewrite(text, layouts, problems, None), layouts, problems, None)
    found = [c for c in cursors.walk_declarations(unit.cursor) if c.spelling == "a"]
    assert layouts.layout(cursors.space_of(found[0].type)) == Layout(3)
    assert "__builtin_choose_expr(1,0,(a))" in unit.source.text  # one parse, and another


def test_block_of_star_is_that_of_the_array() -> None:
    layouts, problems = LayoutTable(), Problems()
    text = "shared [*] int a[5*THREADS]; shared [*] int b[2][THREADS];"
    parse(rewrite(text, layouts, problems, None), layouts, problems, None)
    assert list(layouts.stars.values()) == [5, 2]


# Lower


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (
            "shared int a[4*THREADS]; int f(int i) { return a[i]; }",
            "return mob_upc_get_int(mob_upc_element_cyclic(__upc_at_a, (i), sizeof(int)));",
        ),
        (
            "shared [2] char a[4*THREADS]; void f(int i) { a[i] = 3; }",
            "mob_upc_put_char(mob_upc_element_blocked(__upc_at_a, (i), sizeof(char), 2u), 3);",
        ),
        (
            "shared [] int *p; int f(void) { return *(p + 2); }",
            "mob_upc_get_int((mob_upc_add_indefinite(p, (2), sizeof(int))));",
        ),
        (
            "strict shared int x; void f(void) { x = 1; }",
            "mob_upc_put_strict_int(mob_upc_pointer(__upc_at_x, 0, 0), 1);",
        ),
        (
            "shared int a[THREADS]; void f(void) { a[MYTHREAD] = 1; }",
            "(((volatile int *)mob_upc_local(__upc_at_a))[0] = 1);",
        ),
        ("shared int *p; int f(void) { return p == 0; }", "return (!(!mob_upc_is_null(p)));"),
        ("shared int *p; void f(void) { p++; }", "(p = mob_upc_add_cyclic(p, 1, sizeof(int)));"),
        ("shared int *p; int *f(void) { return (int *)p; }", "((int *)mob_upc_to_private(p))"),
        ("shared int *p; int f(void) { return p ? 1 : 2; }", "((!mob_upc_is_null(p)) ? 1 : 2)"),
        (
            "struct s { int a, b; }; shared struct s x; int f(void) { return x.b; }",
            "mob_upc_get_int(mob_upc_member(mob_upc_pointer(__upc_at_x, 0, 0), "
            "__builtin_offsetof(struct s, b)));",
        ),
        ("int f(void) { upc_barrier 2; return MYTHREAD; }", 'mob_upc_barrier_value(2, "a.upc:1");'),
    ],
)
def test_lowering(text: str, result: str) -> None:
    assert result in translated(text)


def test_forall_without_a_test_in_each_iteration() -> None:
    text = (
        "shared [4] int a[8*THREADS]; "
        "void f(void) { upc_forall (int i = 0; i < 8*THREADS; i++; &a[i]) { a[i] = i; } }"
    )
    result = translated(text)
    assert "mob_upc_first_block" in result
    assert "mob_upc_is_mine" not in result
    assert re.search(r"\(__upc_mine___upc_at_a\[\(i\s+- __upc_row\d+\)\] = i\);", result)


def test_forall_over_what_pointers_point_to() -> None:
    text = (
        "shared [4] int *p, *q; void f(int n) "
        "{ upc_forall (int i = 0; i < n; i++; &p[i]) p[i] = q[i]; }"
    )
    result = translated(text)
    assert "(int64_t)p.thread * 4 + p.phase;" in result
    assert re.search(r"if \(!\w+ && \(int64_t\)q.thread \* 4 \+ q.phase == __upc_origin", result)
    assert re.search(r"__upc_mine_p\[\(i .*\)\] = __upc_mine_q\[\(i .*\)\]", result)


@pytest.mark.parametrize(
    "loop",
    [
        "for (i = 0; i < n; i++; i) { i += g(); }",
        "for (i = 0; i < n; i += 3; i) { g(); }",
        "for (i = 0; i < g(); i++; i) { }",
        "for (i = 0; i < n; i++; i / 4) { }",
        "for (i = 0; i < n; i++; p + i) { p = 0; }",
        "for (i = 0; i < n - i; i++; i) { }",
        "for (i = 0; i < d; i++; i) { }",
    ],
)
def test_forall_with_a_test(loop: str) -> None:
    declarations = "shared int *p; int g(void); int n; double d;"
    result = translated(f"{declarations} void f(int i) {{ upc_{loop.replace('for', 'forall')} }}")
    assert "mob_upc_is_my_turn" in result or "mob_upc_is_mine" in result


def test_parameter_that_is_an_array_is_a_pointer() -> None:
    text = "int f(shared [2] int a[4], shared int b[3][5]) { return a[1] + b[1][2]; }"
    result = translated(text)
    assert result.startswith("mob_upc_ptr_t a, mob_upc_ptr_t b)")
    assert "mob_upc_add_cyclic(b, (1)*(5) + (2), sizeof(int))" in result


def test_private_code_stays_as_it_is() -> None:
    text = "{ int a[3] = {1, 2, 3}; for (int i = 0; i < 3; i++) a[i] <<= a[2 - i]; return a[0]; }"
    assert translated(f"int f(void) {text}").startswith(f"void) {text}")


# Print


def test_lines_of_the_result_are_those_of_the_source() -> None:
    text = (
        '# 10 "a.upc"\nshared int x;\n\n\nint f(void) {\n  x = 1;\n\n  x = 2; }\n'
        '# 3 "b.h"\nint y;\n'
    )
    layouts, problems = LayoutTable(), Problems()
    source = rewrite(text, layouts, problems, None)
    unit = parse(source, layouts, problems, None)
    result = print_text(lower(unit, "a.upc"), source, "a.upc")
    lines: dict[str, int] = {}
    file, line = "", 0
    for one in result.splitlines():
        if marker := re.match(r'# (\d+) "(.*)"', one):
            file, line = marker[2], int(marker[1])
            continue
        for word in ("put_int", "int y", "int f"):
            if word in one and f"{word} {one[-3:]}" not in lines:
                lines[f"{file}:{one.strip()[:60]}"] = line
        line += 1
    numbers: dict[str, list[int]] = {re.sub(r":.*", "", key): [] for key in lines}
    for key, value in lines.items():
        numbers[re.sub(r":.*", "", key)].append(value)
    assert numbers == {"a.upc": [13, 14, 16], "b.h": [3]}


# Errors


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("void f(void) {\n  shared int x; }", 2, "cannot be automatic"),
        ("struct s {\n  shared int x; };", 2, "member of a structure cannot be shared"),
        ("void f(\n  shared int x) {}", 2, "parameter cannot be shared"),
        ("shared int a[10];", 1, "must have THREADS as a factor"),
        ("shared int a[THREADS + 1];", 1, "product with THREADS"),
        ("shared [THREADS] int a[THREADS];", 1, "compile with --threads=N"),
        ("\nshared [sizeof(shared int *)] int a[THREADS];", 2, "write the number"),
        ("\nshared int a[sizeof(shared int *) * THREADS];", 2, "size of 'a'"),
        (
            "struct s { shared int *p; };\ntypedef shared int a[sizeof(struct s) * THREADS];",
            2,
            "size of 'a'",
        ),
        ("shared [-1] int a[THREADS];", 1, "UPC_MAX_BLOCK_SIZE"),
        ("shared [2] int *p; shared [3] int *q;\nvoid f(void) { p = q; }", 2, "block sizes differ"),
        (
            "shared [2] int *shared p; shared [3] int *q;\nvoid f(void) { p = q; }",
            2,
            "block sizes differ",
        ),
        ("shared [2] int *p; shared int *q;\nint f(void) { return p < q; }", 2, "block sizes"),
        ("shared int *p; int *q;\nvoid f(void) { p = q; }", 2, "cannot become a pointer to shared"),
        ("shared int *p; int *q;\nvoid f(void) { q = p; }", 2, "write the cast"),
        ("shared int *p; int *q;\nvoid f(void) { p = (shared int *)q; }", 2, "private memory"),
        ("shared void *p;\nvoid f(void) { p = p + 1; }", 2, "cannot be counted from"),
        ("void f(int i) {\n  upc_forall (;i;i--;i) { if (i == 3)\n break; } }", 3, "break leaves"),
        ("void f(int i) { upc_forall (;i;i--;i)\n return; }", 2, "return leaves"),
        ("void f(int i) {\n  upc_forall (;i;i--) i++; }", 2, "four parts"),
        ("int n = upc_blocksizeof(int);\n", 1, "must be a shared object or type"),
        ("void f(void) {\n  upc_barrier\n}", 2, "';' is missing"),
        ("void f(void) {\n  undeclared++; }", 2, "undeclared"),
        ("void f(int i) {\n  upc_forall (;i;i--; 1.5) i++; }", 2, "must be an integer"),
        ("void f(int i) { upc_forall (;i;i--;i)\n goto end;\n end: ; }", 2, "goto leaves"),
        ("shared [] int a[THREADS];", 1, "lies on one thread"),
        ("\nstatic int a[2][THREADS];", 2, "allocate it in main()"),
        ("\ntypedef int t[4 * THREADS];", 2, "allocate it in main()"),
        ("struct s {\n  int n, a[THREADS];\n};", 2, "allocate it in main()"),
        ("void f(void) {\n  static int a[THREADS]; a[0] = 1; }", 2, "allocate it in main()"),
        ("shared [*] int *p;", 1, "a pointer needs a number"),
        ("strict relaxed shared int x;", 1, "either strict or relaxed"),
        ("typedef strict shared int s;\nrelaxed s x;", 2, "either strict or relaxed"),
        ("int n; shared [n] int a[THREADS];", 1, "integer constant"),
        ("\nshared [4] void *p;", 2, "void has no elements"),
        ("\nconst void shared [2 * 4] *p;", 2, "void has no elements"),
        ("void f(shared int *p) {\n  p = (relaxed shared [3] const void *)p; }", 2, "no elements"),
        ("shared double _Complex z;\ndouble *p = &__real__ z;", 2, "no address"),
        ("shared [2] int *p; shared int *q;\nint f(void) { return p == q; }", 2, "differ"),
        ("shared int *p; int *q;\nlong f(void) { return p - q; }", 2, "compared with"),
        ("int n = upc_elemsizeof(shared void);", 1, "without a size"),
        ("relaxed int x;", 1, "write shared, too"),
        ("shared int f(void);", 1, "return a pointer to shared"),
        ("shared int *p; int *q;\nint f(void) { return p == q; }", 2, "compared with"),
    ],
)
def test_error(text: str, line: int, words: str) -> None:
    found = problems_of(text)
    assert any(at == line and words in message for at, message in found), found


def test_what_is_wrong_without_threads_is_right_with_them() -> None:
    translate('# 1 "a.upc"\nshared [8 / 4] int a[10];\n', "a.upc", 4)


# The command line


def test_command_line() -> None:
    parsed = parse_command(
        "-O2 -g -Ifolder -D A=1 -c a.upc b.c -lm -L x -MD -MF a.d -fupc-threads-4 -o out".split()
    )
    assert parsed.threads == 4
    assert (parsed.mode, parsed.output) == ("-c", "out")
    assert [(entry.kind, entry.text) for entry in parsed.entries] == [
        ("upc", "a.upc"),
        ("c", "b.c"),
        ("link", "-lm"),
        ("link", "-L"),
        ("link", "x"),
    ]
    assert parsed.preprocessor == ["-O2", "-Ifolder", "-D", "A=1"]
    assert parsed.dependencies == ["-MD", "-MF", "a.d"]
    assert parsed.compiler == ["-O2", "-g"]


@pytest.mark.parametrize("wrong", ["--threads=0", "--threads=many", "-o", "--threads=99999"])
def test_wrong_command_line(wrong: str) -> None:
    with pytest.raises(UsageError):
        parse_command([wrong])


def test_fault_of_the_translator_is_told_as_such() -> None:
    try:
        raise KeyError("no such object")
    except KeyError as fault:
        text = internal_error(Path("a.upc"), fault)
    assert text.startswith("a.upc:1: error: ")
    assert "KeyError at test_parts.py" in text
