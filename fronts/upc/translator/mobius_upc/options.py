# SPDX-License-Identifier: BSD-3-Clause
"""The command line of `mobupcc`: gcc's options, sorted by whom they are for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

# Options whose value may be the next argument, by whom they are for.
PREPROCESSOR = (
    "-I",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
)
DEPENDENCY = ("-MF", "-MT", "-MQ")
LINKER = ("-L", "-l", "-Xlinker", "-u", "-z", "-e")
COMPILER = ("--param", "-Xassembler", "-B", "-aux-info")
MODES = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only")
THREADS = re.compile(r"(?:--threads=|-fupc-threads-|-fupc-threads=|-T=?)(\d+)")
MOST_THREADS = 1 << 15
FLAGS = {
    **dict.fromkeys(("-show", "-showme", "--showme"), "show"),
    **dict.fromkeys(("--static-mobius", "--mobius-static"), "static"),
    **dict.fromkeys(("--save-c", "-save-temps"), "save_c"),
    "--help": "help",
}
SOURCES = (".c", ".s", ".S", ".i", ".cc", ".cpp", ".cxx", ".C", ".f", ".f90")


class UsageError(Exception):
    """The command line is wrong."""


@dataclass(frozen=True)
class Entry:
    """A file or an option of the linker, in the order of the command line."""

    kind: str  # "upc", "c", "link"
    text: str


@dataclass
class Command:
    """A parsed command line."""

    entries: list[Entry] = field(default_factory=list)
    preprocessor: list[str] = field(default_factory=list)
    compiler: list[str] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)
    languages: dict[str, str] = field(default_factory=dict)
    mode: str = ""
    output: str = ""
    threads: int | None = None
    show: bool = False
    static: bool = False
    save_c: bool = False
    checks: bool = False
    help: bool = False
    includes: list[Path] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)

    def sources(self) -> list[Entry]:
        """Files that are compiled."""
        return [entry for entry in self.entries if entry.kind != "link"]

    def inputs(self) -> list[Entry]:
        """Files of any kind."""
        return [entry for entry in self.entries if entry.kind != "link" or entry.text[0] != "-"]

    def arguments(self) -> list[str]:
        """What goes to the compiler when there is no file: --version."""
        return [*self.compiler, *self.preprocessor, *(entry.text for entry in self.entries)]

    def preprocessor_for_c(self) -> list[str]:
        """For C files; -std= and -O are the compiler's."""
        return [option for option in self.preprocessor if option not in self.compiler]


def parse_command(arguments: list[str]) -> Command:
    """Sorts a command line; raises UsageError."""
    return _Parser(arguments).parse()


class _Parser:
    """Goes through the arguments."""

    def __init__(self, arguments: list[str]) -> None:
        self.pending = list(arguments)
        self.result = Command()
        self.language = ""

    def parse(self) -> Command:
        """All arguments."""
        while self.pending:
            argument = self.pending.pop(0)
            if argument == "-" or not argument.startswith("-"):
                self.file(argument)
            elif not self.own(argument) and not self.with_value(argument):
                self.plain(argument)
        return self.result

    def value(self, option: str) -> str:
        """The next argument."""
        if not self.pending:
            raise UsageError(f"{option} needs a value")
        return self.pending.pop(0)

    def file(self, name: str) -> None:
        """An input file."""
        suffix = Path(name).suffix
        if self.language in ("upc", "") and (self.language == "upc" or suffix in (".upc", ".uph")):
            self.result.entries.append(Entry("upc", name))
        elif self.language or suffix in SOURCES or name == "-":
            if self.language:
                self.result.languages[name] = self.language
            self.result.entries.append(Entry("c", name))
        else:
            self.result.entries.append(Entry("link", name))

    def own(self, argument: str) -> bool:
        """Options of mobupcc, and those that say what is made."""
        result = self.result
        if argument in MODES:
            result.mode = argument
        elif argument in FLAGS:
            setattr(result, FLAGS[argument], True)
        elif argument == "-o":
            result.output = self.value(argument)
        elif argument.startswith("-o"):
            result.output = argument[2:]
        elif argument.startswith("--mobius-include="):
            result.includes.append(Path(argument.partition("=")[2]))
        elif argument.startswith("--mobius-library="):
            result.libraries.append(argument.partition("=")[2])
        elif argument.startswith("-fsanitize=") and "shared" in argument[11:].split(","):
            result.checks = True
            others = [name for name in argument[11:].split(",") if name != "shared"]
            if others:
                self.plain(f"-fsanitize={','.join(others)}")
        elif argument == "-x":
            language = self.value(argument)
            self.language = "" if language == "none" else language
        else:
            return self.threads(argument)
        return True

    def threads(self, argument: str) -> bool:
        """The options that give a number of threads."""
        if argument == "--threads":
            argument = f"--threads={self.value(argument)}"
        if match := THREADS.fullmatch(argument):
            self.result.threads = int(match[1])
            if not 0 < self.result.threads <= MOST_THREADS:
                raise UsageError(
                    f"{argument}: the number of threads must be between 1 and {MOST_THREADS}"
                )
            return True
        if argument.startswith("--threads="):
            raise UsageError(f"{argument}: the number of threads must be a number")
        return False

    def with_value(self, argument: str) -> bool:
        """Options of gcc that take a value."""
        groups = (
            (PREPROCESSOR, "preprocessor"),
            (DEPENDENCY, "dependencies"),
            (COMPILER, "compiler"),
        )
        for names, target in groups:
            for name in names:
                if argument == name:
                    getattr(self.result, target).extend([argument, self.value(argument)])
                    return True
                if len(name) == 2 and argument.startswith(name):
                    getattr(self.result, target).append(argument)
                    return True
        for name in LINKER:
            if argument == name:
                self.result.entries.append(Entry("link", argument))
                self.result.entries.append(Entry("link", self.value(argument)))
                return True
            if len(name) == 2 and name in ("-L", "-l") and argument.startswith(name):
                self.result.entries.append(Entry("link", argument))
                return True
        return False

    def plain(self, argument: str) -> None:
        """Other options."""
        if argument.startswith("-Wl,") or argument in (
            "-static",
            "-shared",
            "-rdynamic",
            "-pie",
            "-no-pie",
        ):
            self.result.entries.append(Entry("link", argument))
        elif argument in ("-MD", "-MMD", "-MP", "-MG"):
            self.result.dependencies.append(argument)
        elif argument.startswith("-Wp,"):
            self.result.preprocessor.append(argument)
        else:
            self.result.compiler.append(argument)
            if re.match(r"-(std=|ansi|O|m|pthread|fopenmp|pedantic|fPIC|fpic|trigraphs)", argument):
                self.result.preprocessor.append(argument)
