# SPDX-License-Identifier: BSD-3-Clause
"""`mobupcc`: compiles and links UPC and C as gcc does."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from .options import Command, UsageError, parse_command
from .preprocess import Environment, PreprocessorError, command, preprocess
from .problems import TranslationError
from .translate import translate

HELP = """\
mobupcc: compiles and links UPC programs. Options are those of gcc, and:

  --threads=N, -fupc-threads-N  the number of threads; without it, what the program is started with
  -fsanitize=shared             checks indices, pointers and casts of shared objects at run time
  --save-c                      keeps the C text of a.upc as a.upc.c beside the output
  --static-mobius               links libmobius_upc.a and libmobius.a
  -show                         prints the commands for linking and for C; runs nothing

.upc files are UPC; so are files behind '-x upc'. Others go to the C compiler, cc or MOBIUS_CC.
Start the program with upcrun -n N, or mobius run -n N.
"""


# Exceptions that only a fault of the translator raises.
INTERNAL = (
    *(AssertionError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)


@dataclass
class Installation:
    """Where headers and libraries are."""

    includes: list[Path]
    libraries: list[str]
    compiler: list[str]

    @staticmethod
    def of_prefix(prefix: Path, *, static: bool) -> Installation:
        """An installed tree."""
        include = prefix / "include"
        lib = prefix / "lib"
        if static:
            libraries = [str(lib / "libmobius_upc.a"), str(lib / "libmobius.a")]
            libraries += ["-lstdc++", "-lm", "-pthread"]
        else:
            libraries = [f"-L{lib}", "-Xlinker", "-rpath", "-Xlinker", str(lib)]
            libraries += ["-lmobius_upc", "-lmobius"]
        compiler = shlex.split(os.environ.get("MOBIUS_CC", "cc"))
        return Installation([include / "mobius_upc", include], libraries, compiler)


@dataclass
class Driver:
    """One call of mobupcc."""

    parsed: Command
    installation: Installation
    folder: Path  # for what is in between
    temporaries: int = 0
    failed: int = 0
    linked: list[str] = field(default_factory=list)

    def run(self) -> int:
        """Does what the command says; the exit code."""
        parsed = self.parsed
        if not parsed.inputs():
            return self.call([*self.installation.compiler, *parsed.arguments()])
        if parsed.mode in ("-E", "-M", "-MM"):
            return self.preprocess_only()
        if parsed.output and parsed.mode and len(parsed.sources()) > 1:
            raise UsageError(f"-o with {parsed.mode} takes one source file")
        for entry in parsed.entries:
            if entry.kind == "upc":
                self.upc(Path(entry.text))
            elif entry.kind == "c":
                self.plain(entry.text)
            elif entry.kind == "link":
                self.linked.append(entry.text)
        if self.failed or parsed.mode:
            return self.failed
        return self.link()

    def environment(self) -> Environment:
        """For the translator."""
        return Environment(
            compiler=tuple(self.installation.compiler),
            includes=tuple(self.installation.includes),
            threads=self.parsed.threads,
            arguments=tuple(self.parsed.preprocessor),
        )

    def call(self, arguments: list[str]) -> int:
        """Runs a command, or shows it."""
        if self.parsed.show:
            print(shlex.join(arguments))
            return 0
        code = subprocess.run(arguments).returncode
        self.failed = self.failed or (code if code > 0 else 1 if code else 0)
        return code if code >= 0 else 1

    def temporary(self, suffix: str) -> Path:
        """A new file in between."""
        self.temporaries += 1
        return self.folder / f"{self.temporaries}{suffix}"

    def preprocess_only(self) -> int:
        """`-E`, `-M`."""
        parsed = self.parsed
        for entry in parsed.inputs():
            if entry.kind == "upc":
                arguments = command(Path(entry.text), self.environment(), for_user=True)
                if parsed.mode != "-E":
                    arguments = [a for a in arguments if a != "-E"]
                    arguments.append(parsed.mode)
            else:
                arguments = [*self.installation.compiler, parsed.mode, *parsed.preprocessor]
                arguments.append(entry.text)
            arguments += parsed.dependencies
            if parsed.output:
                arguments += ["-o", parsed.output]
            self.call(arguments)
        return self.failed

    def output_of(self, source: str, suffix: str) -> Path:
        """Where the result of compiling a file goes."""
        if not self.parsed.mode:
            return self.temporary(".o")
        if self.parsed.output:
            return Path(self.parsed.output)
        return Path(Path(source).with_suffix(suffix).name)

    def dependency_options(self, source: str, output: Path) -> list[str]:
        """-MD and its relatives, with the names that gcc would choose."""
        options = list(self.parsed.dependencies)
        if not options:
            return []
        final = output if self.parsed.mode else Path(self.parsed.output or "a.out")
        if "-MF" not in options:
            base = (
                final.with_suffix(".d") if self.parsed.mode else Path(source).with_suffix(".d").name
            )
            options += ["-MF", str(base)]
        if not {"-MT", "-MQ"} & set(options):
            options += ["-MT", str(final) if self.parsed.mode else f"{Path(source).stem}.o"]
        return options

    def upc(self, source: Path) -> None:
        """Translates and compiles one UPC file."""
        if not source.exists():
            raise UsageError(f"there is no file '{source}'")
        parsed = self.parsed
        output = self.output_of(str(source), ".s" if parsed.mode == "-S" else ".o")
        text = self.temporary(".i")
        if parsed.show:
            print(f"# {source} is translated to {text}")
        else:
            try:
                extra = tuple(self.dependency_options(str(source), output))
                preprocessed = preprocess(source, self.environment(), extra)
                result, problems = translate(
                    preprocessed, str(source), parsed.threads, checks=parsed.checks
                )
            except PreprocessorError as refused:
                self.failed = refused.code
                return
            except TranslationError as refused:
                print(refused, file=sys.stderr)
                self.failed = 1
                return
            except INTERNAL as fault:
                print(internal_error(source, fault), file=sys.stderr)
                self.failed = 1
                return
            for problem in problems.found:
                print(problem, file=sys.stderr)
            text.write_bytes(result.encode("latin-1"))
            if parsed.save_c:
                kept = output.parent if parsed.mode else Path(parsed.output or "a.out").parent
                (kept / f"{source.name}.c").write_bytes(result.encode("latin-1"))
        if parsed.mode == "-fsyntax-only":
            return
        mode = parsed.mode or "-c"
        arguments = [*self.installation.compiler, mode, *parsed.compiler, "-x", "cpp-output"]
        self.call([*arguments, str(text), "-o", str(output)])
        self.linked.append(str(output))

    def plain(self, source: str) -> None:
        """Compiles one file of another language."""
        parsed = self.parsed
        if parsed.mode == "-fsyntax-only":
            self.call([*self.installation.compiler, parsed.mode, *parsed.preprocessor, source])
            return
        output = self.output_of(source, ".s" if parsed.mode == "-S" else ".o")
        language = ["-x", parsed.languages[source]] if source in parsed.languages else []
        arguments = [*self.installation.compiler, parsed.mode or "-c"]
        arguments += [f"-I{folder}" for folder in self.installation.includes]
        arguments += parsed.preprocessor_for_c()
        arguments += [*parsed.compiler, *self.dependency_options(source, output), *language]
        self.call([*arguments, source, "-o", str(output)])
        self.linked.append(str(output))

    def link(self) -> int:
        """Links what was compiled."""
        parsed = self.parsed
        arguments = [*self.installation.compiler, *parsed.compiler, *self.linked]
        arguments += ["-o", parsed.output or "a.out", *self.installation.libraries]
        return self.call(arguments)


def internal_error(source: Path, fault: Exception) -> str:
    """What is told when the translator itself is wrong."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return (
        f"{source}:1: error: mobupcc cannot translate this file, and that is its own fault "
        f"({type(fault).__name__} at {where}: {fault}): please report it with the output of -E"
    )


def main(arguments: list[str], prefix: Path) -> int:
    """Runs mobupcc; returns the exit code."""
    try:
        parsed = parse_command(arguments)
    except UsageError as error:
        print(f"mobupcc: {error}", file=sys.stderr)
        return 1
    if parsed.help:
        print(HELP, end="")
        return 0
    installation = Installation.of_prefix(prefix, static=parsed.static)
    if parsed.includes:  # a build tree: the tests
        installation.includes = parsed.includes
    if parsed.libraries:
        installation.libraries = parsed.libraries
    with tempfile.TemporaryDirectory(prefix="mobupcc-") as folder:
        try:
            return Driver(parsed, installation, Path(folder)).run()
        except UsageError as error:
            print(f"mobupcc: {error}", file=sys.stderr)
            return 1
        except FileNotFoundError as error:
            print(f"mobupcc: cannot run '{error.filename}': {error.strerror}", file=sys.stderr)
            return 1
