# SPDX-License-Identifier: BSD-3-Clause
"""Starts the test-suite twice, as two jobs that meet by the name of a port in a file.

    python two_jobs.py [--server "PROGRAM"] "FIRST COMMAND" "SECOND COMMAND" ARGUMENT...

Both commands get the arguments; the second one connects to the first. The server is what a library
needs to bring jobs of two launchers together: started before them as `PROGRAM FILE`, it writes into
FILE where it is to be found, which replaces `{server}` in both commands. A program by itself, with
nothing of the instrument, so that it starts at once. Ends with the first bad exit code of the two.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SERVER_LIMIT_S = 10.0
_POLL_S = 0.02


def _where_is(server: subprocess.Popen[bytes], file: Path) -> str:
    """What launchers call the server by, from the file that it writes; "" if it ends or writes
    nothing for too long, and then the jobs report what is missing."""
    end = time.monotonic() + _SERVER_LIMIT_S
    while time.monotonic() < end and server.poll() is None:
        if file.is_file() and file.read_text(encoding="utf-8").endswith("\n"):
            return f"file:{file}"
        time.sleep(_POLL_S)
    return ""


def main(words: list[str]) -> int:
    """Runs both jobs; returns their exit code."""
    with tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as folder:
        place, server = "", None
        if words[0] == "--server":
            file = Path(folder) / "server"
            server = subprocess.Popen([*shlex.split(words[1]), str(file)])
            place, words = _where_is(server, file), words[2:]
        first, second, *arguments = words
        arguments += ["--port-file", str(Path(folder) / "port")]
        jobs = [
            subprocess.Popen(
                [*shlex.split(command.replace("{server}", place)), *arguments, *more],
                stdin=subprocess.DEVNULL,
            )
            for command, more in ((first, ["--joins", "no"]), (second, ["--joins", "yes"]))
        ]
        codes = [job.wait() for job in jobs]
        if server is not None:
            server.kill()
            server.wait()
    bad = next((code for code in codes if code), 0)
    return 128 - bad if bad < 0 else bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
