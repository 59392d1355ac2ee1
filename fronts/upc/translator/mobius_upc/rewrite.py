# SPDX-License-Identifier: BSD-3-Clause
"""Turns the tokens that C does not have into C that Clang parses.

`shared [B]` becomes an address space, `strict` becomes `volatile`, `upc_forall` a `for` whose
step ends with the affinity, barriers calls, `upc_…sizeof` a `sizeof` with a mark.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from . import messages
from .layout import FIRST_COMPUTED, THREADS_STAND_IN, Layout, LayoutTable
from .preprocess import MAX_BLOCK_SIZE
from .problems import Problem, Problems
from .source import Edit, Forall, LineMark, SizeOf, SourceText, Strictness

STRING = r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'"
TOKEN = re.compile(
    STRING + r"|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|->|\+\+|--|<<|>>|[<>=!]=|&&|\|\||[^\s]"
)
SIZE_OPERATORS = ("upc_localsizeof", "upc_blocksizeof", "upc_elemsizeof")
KEYWORD = re.compile(
    STRING
    + r"|^[ \t]*#[ \t]*pragma[ \t]+upc[ \t]+\w+[^\n]*"
    + r"|\b(?:shared|strict|relaxed|upc_forall|upc_barrier|upc_notify|upc_wait|upc_fence|sizeof"
    + r"|upc_localsizeof|upc_blocksizeof|upc_elemsizeof)\b",
    re.MULTILINE,
)
DYNAMIC_PROLOGUE = (
    f"enum {{ __upc_low = -1L, THREADS = {THREADS_STAND_IN}L, __upc_high = 0x7fffffffffffffffL }}; "
)
PROLOGUE = (
    "extern const int MYTHREAD; "
    "void __upc_barrier(); void __upc_notify(); void __upc_wait(); void __upc_fence(void);\n"
)
SPECIFIER_START = re.compile(r"[;{}(),=]")
SPECIFIER_END = re.compile(r"[;{}(),=]")
NO_FUNCTIONS = ("__attribute__", "_Alignas", "__typeof__", "typeof", "__declspec", "_Atomic")
C_TYPES = set(
    "int char short long unsigned signed float double void const volatile static extern".split()
)
INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
OPERATORS = {"+", "-", "*", "/", "%", "(", ")", "<<", ">>", "&", "|", "^", "==", "!=", "<", ">"}


class Token(NamedTuple):
    """A token and where it is."""

    text: str
    start: int
    end: int


class Rewriter:
    """Rewrites one text."""

    def __init__(
        self, source: SourceText, layouts: LayoutTable, problems: Problems, threads: int | None
    ) -> None:
        self.source = source
        self.text = source.text
        self.layouts = layouts
        self.problems = problems
        self.threads = threads
        self.edits: list[Edit] = []
        self.replaced_to = 0  # keywords before this offset are in text that an edit replaces
        # A `relaxed` is remembered only where something else may be strict by default.
        self.keeps_relaxed = re.search(r"#\s*pragma\s+upc\s+strict", self.text) is not None

    def run(self) -> None:
        """Rewrites the text and adds the marks."""
        for match in KEYWORD.finditer(self.text):
            word = match[0]
            if word[0] in "\"'" or match.start() < self.replaced_to:
                continue
            if "pragma" in word:
                self.pragma(match.start(), match.end(), word.split("upc")[1].split()[0])
            elif word in ("shared", "strict", "relaxed"):
                self.qualifier(word, match.start(), match.end())
            elif word == "upc_forall":
                self.forall(match.start(), match.end())
            elif word.endswith("sizeof"):
                self.size_operator(word, match.start(), match.end())
            else:
                self.barrier(word, match.start(), match.end())
        self.source.edit(self.edits)
        prologue = PROLOGUE if self.threads is not None else DYNAMIC_PROLOGUE + PROLOGUE
        self.source.edit([Edit(0, 0, prologue)])
        self.source.body = [LineMark(len(prologue), "", 0, False)]

    # Tokens

    def token_at(self, offset: int) -> Token:
        """The next token at or after an offset; an empty one at the end of the text."""
        match = TOKEN.search(self.text, offset)
        if match is None:
            return Token("", len(self.text), len(self.text))
        return Token(match[0], match.start(), match.end())

    def tokens(self, start: int, end: int) -> list[Token]:
        """The tokens between two offsets."""
        return [Token(m[0], m.start(), m.end()) for m in TOKEN.finditer(self.text, start, end)]

    def closing(self, opening: int) -> int:
        """The offset of the bracket that closes the one at `opening`; -1: none."""
        depth = 0
        for match in TOKEN.finditer(self.text, opening):
            if match[0] in "([{":
                depth += 1
            elif match[0] in ")]}":
                depth -= 1
                if depth == 0:
                    return match.start()
        return -1

    def complain(self, offset: int, message: str) -> None:
        """Notes an error."""
        self.problems.add(Problem(self.source.place(offset), message))

    # Constructs

    def pragma(self, start: int, end: int, word: str) -> None:
        """`#pragma upc strict|relaxed`: up to the end of the block, or of the file."""
        self.edits.append(Edit(start, end, ""))
        if word not in ("strict", "relaxed"):
            if word != "upc_code":
                message = f"unknown '#pragma upc {word}': write strict or relaxed"
                self.problems.add(Problem(self.source.place(start), message, "warning"))
            return
        depth = 0
        region_end = len(self.text)
        for match in TOKEN.finditer(self.text, end):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                depth -= 1
                if depth < 0:
                    region_end = match.start()
                    break
        self.source.strictness.append(Strictness(start, region_end, word == "strict"))

    def qualifier(self, word: str, start: int, end: int) -> None:
        """One of `shared [B]`, `strict`, `relaxed`."""
        if word != "shared":
            self.check_strictness(word, start, end)
            if word == "relaxed":
                self.source.relaxed.append(LineMark(start, "", 0, False))
            self.edits.append(Edit(start, end, "volatile" if word == "strict" else ""))
            return
        after = self.token_at(end)
        relaxed = self.keeps_relaxed and self.says_relaxed(start, end)
        if after.text != "[":
            space: str | None = self.one(relaxed)
        else:
            closing = self.closing(after.start)
            if closing < 0:
                self.complain(start, "']' is missing after the block size of 'shared ['")
                return
            inside = self.tokens(after.end, closing)
            end = closing + 1
            space = self.space_of_block(start, inside, relaxed)
            if inside and space != self.one(relaxed) and self.is_void_at(start, end):
                self.complain(start, messages.VOID_BLOCK)
        # Behind `f(a, b)` Clang would take it for an attribute of the function.
        before = "register " if self.follows_parameter_names(start) else ""
        opening = f"{before}__attribute__((address_space("
        if space is None:  # Clang computes it, from an expression that may need edits itself
            self.edits.append(Edit(start, after.end, f"{opening}{FIRST_COMPUTED} + ("))
            self.edits.append(Edit(end - 1, end, "))))"))
        else:
            self.edits.append(Edit(start, end, f"{opening}{space})))"))
            self.replaced_to = end

    def one(self, relaxed: bool) -> str:
        """The address space of blocks of one element."""
        return str(self.layouts.space(Layout(1, relaxed)))

    def is_void_at(self, start: int, end: int) -> bool:
        """Whether what is said to be shared between `start` and `end` is void."""
        before = SPECIFIER_START.split(self.text[max(0, start - 200) : start])[-1]
        return re.search(r"\bvoid\s*$|\bvoid\s+(?:const|volatile)\s*$", before) is not None or (
            re.match(r"\s*(?:(?:const|volatile|strict|relaxed)\b\s*)*void\b", self.text[end:])
            is not None
        )

    def check_strictness(self, word: str, start: int, end: int) -> None:
        """Complains about `strict relaxed`, and about either where nothing can be shared."""
        other = "relaxed" if word == "strict" else "strict"
        before = SPECIFIER_START.split(self.text[max(0, start - 200) : start])[-1]
        after = SPECIFIER_END.split(self.text[end : end + 200])[0]
        words = re.findall(r"\w+", before) + re.findall(r"\w+", after)
        if other in words:
            self.complain(start, messages.STRICT_AND_RELAXED)
        elif "shared" not in words and all(entry in C_TYPES for entry in words[:-1]):
            self.complain(start, messages.STRICT_PRIVATE)

    def follows_parameter_names(self, start: int) -> bool:
        """Whether a declaration begins the parameters of a function of the style of 1978."""
        text = self.text[max(0, start - 400) : start].rstrip()
        depth = 0
        for offset in range(len(text) - 1, -1, -1):
            if offset == len(text) - 1 and text[offset] != ")":
                return False
            depth += (text[offset] == ")") - (text[offset] == "(")
            if depth == 0:
                name = re.search(r"(\w+)\s*$", text[max(0, offset - 80) : offset])
                return name is not None and name[1] not in NO_FUNCTIONS
        return False

    def says_relaxed(self, start: int, end: int) -> bool:
        """Whether `relaxed` stands beside this `shared`."""
        before = self.text[max(0, start - 80) : start].split()
        if before and before[-1] == "relaxed":
            return True
        after = self.token_at(end)
        if after.text == "[":
            closing = self.closing(after.start)
            after = self.token_at(closing + 1)
        return after.text == "relaxed"

    def space_of_block(self, start: int, inside: list[Token], relaxed: bool) -> str | None:
        """The address space of `shared [inside]`; None: Clang has to compute the block size."""
        texts = [token.text for token in inside]
        if not texts:
            return str(self.layouts.space(Layout(0, relaxed)))
        if texts == ["*"]:
            return str(self.layouts.new_star(relaxed))
        if "THREADS" in texts and self.threads is None:
            self.complain(
                start,
                messages.THREADS_IN_BLOCK,
            )
            return str(self.layouts.space(Layout(1, relaxed)))
        value = self.value(texts)
        if value is None:
            if "sizeof" in texts and "shared" in texts:
                self.complain(start, messages.POINTER_IN_BLOCK)
            return None
        if value < 0 or value > MAX_BLOCK_SIZE:
            self.complain(start, f"block size {value} is not between 0 and UPC_MAX_BLOCK_SIZE")
            value = 1
        return str(self.layouts.space(Layout(value, relaxed)))

    def value(self, texts: list[str]) -> int | None:
        """The value of an expression of integers; None: Clang has to compute it."""
        words: list[str] = []
        for text in texts:
            if match := INTEGER.fullmatch(text):
                number = match[1]
                octal = len(number) > 1 and number.isdigit() and number[0] == "0"
                words.append(str(int(number, 8 if octal else 0)))
            elif text in OPERATORS:
                words.append("//" if text == "/" else text)
            else:
                return None
        try:
            result = eval(" ".join(words), {"__builtins__": {}})  # digits and operators only
        except (SyntaxError, ZeroDivisionError, TypeError, ValueError):
            return None
        return int(result)

    def forall(self, start: int, end: int) -> None:
        """`upc_forall (init; condition; step; affinity)`."""
        opening = self.token_at(end)
        closing = self.closing(opening.start) if opening.text == "(" else -1
        if closing < 0:
            self.complain(start, "'(' … ')' is missing after upc_forall")
            return
        semicolons: list[Token] = []
        depth = 0
        for token in self.tokens(opening.start, closing):
            depth += (token.text in "([{") - (token.text in ")]}")
            if token.text == ";" and depth == 1:
                semicolons.append(token)
        if len(semicolons) != 3:
            self.complain(start, messages.FORALL_PARTS)
            self.edits.append(Edit(start, end, "for"))
            return
        last = semicolons[2]
        affinity = [token.text for token in self.tokens(last.end, closing)]
        self.edits.append(Edit(start, end, "for"))
        mark = Forall(start, -1)
        if affinity in ([], ["continue"]):
            self.edits.append(Edit(last.start, closing, ""))
        else:
            has_step = self.text[semicolons[1].end : last.start].strip() != ""
            self.edits.append(Edit(last.start, last.end, "," if has_step else "(void)0,"))
            self.edits.append(Edit(last.end, last.end, "("))
            self.edits.append(Edit(closing, closing + 1, "))"))
            mark.affinity = last.end
        self.source.foralls.append(mark)

    def barrier(self, word: str, start: int, end: int) -> None:
        """`upc_barrier`, `upc_notify`, `upc_wait` with or without a value, `upc_fence`."""
        depth = 0
        for match in TOKEN.finditer(self.text, end):
            depth += (match[0] in "([{") - (match[0] in ")]}")
            if (match[0] == ";" and depth <= 0) or depth < 0:
                self.edits.append(Edit(start, end, f"__{word}("))
                if match[0] == ";":
                    self.edits.append(Edit(match.start(), match.end(), ");"))
                else:
                    self.complain(start, f"';' is missing after {word}")
                return
        self.complain(start, f"';' is missing after {word}")

    def size_operator(self, word: str, start: int, end: int) -> None:
        """`upc_…sizeof X`, and `sizeof`; a shared type becomes an expression of that type."""
        first = self.token_at(end)
        stop = self.closing(first.start) + 1 if first.text == "(" else 0
        is_shared_type = re.search(r"\bshared\b", self.text[first.start : stop]) is not None
        if word == "sizeof" and not is_shared_type:
            return
        self.source.sizeofs.append(SizeOf(start, word))
        if word != "sizeof":
            self.edits.append(Edit(start, end, "sizeof"))
        if is_shared_type:
            self.edits.append(Edit(first.start, first.start, "(*(__typeof__"))
            self.edits.append(Edit(stop, stop, "*)0)"))


def rewrite(text: str, layouts: LayoutTable, problems: Problems, threads: int | None) -> SourceText:
    """The text that Clang parses, of the output of the preprocessor."""
    source = SourceText.from_preprocessed(text)
    Rewriter(source, layouts, problems, threads).run()
    return source
