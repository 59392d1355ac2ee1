# SPDX-License-Identifier: BSD-3-Clause
"""What somebody on the path between two hosts can see and do, with each MOBIUS_SECURITY."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from hosts_tools import Ended, program, run

SMALL = 32768  # goes by messages, whatever is measured
LARGE = 4 << 20  # goes by remote memory access, where that is allowed


def needs_openssl() -> None:
    """Skip the test where encryption is impossible."""
    try:
        ctypes.CDLL("libcrypto.so.3")
    except OSError:
        pytest.skip("libcrypto.so.3 is not installed (Debian: libssl3)")
    library = Path(program("mobius")).parents[1] / "lib" / "libmobius.so"
    if b"EVP_aes_256_gcm" not in library.read_bytes():
        pytest.skip("this build was made without OpenSSL's headers (Debian: libssl-dev)")


def pair(*words: str, **env: str) -> Ended:
    """Run a command as two ranks on two virtual hosts."""
    start = [program("mobius"), "run", "--virtual-hosts", "2", "-n", "2"]
    return run([*start, *words], env=env)


def tampered(case: str, size: int, **env: str) -> Ended:
    return pair(program("hosts_tampered"), case, str(size), **env)


@pytest.mark.parametrize("security", ["messages", "full"])
def test_a_changed_byte_ends_the_job_and_names_the_peer(security: str) -> None:
    needs_openssl()
    done = tampered("change", SMALL, MOBIUS_SECURITY=security)
    assert done.code != 0
    assert "the bytes are" not in done.out
    assert re.search(
        r"peer 127\.0\.0\.1:\d+ on .*: a message from it failed authentication", done.err
    ), done.err


def test_without_security_a_changed_byte_arrives() -> None:
    """Shows that the change of the other tests happens, and is what they find."""
    done = tampered("change", SMALL, MOBIUS_SECURITY="off")
    assert done.code == 0, done.err
    assert "rank 1: the bytes are wrong" in done.out


@pytest.mark.parametrize(
    ("security", "size", "seen"),
    [
        ("off", SMALL, "seen"),
        ("off", LARGE, "seen"),
        ("messages", SMALL, "not seen"),
        ("messages", LARGE, "seen"),
        ("full", SMALL, "not seen"),
        ("full", LARGE, "not seen"),
    ],
)
def test_what_can_be_read_on_the_path(security: str, size: int, seen: str) -> None:
    if security != "off":
        needs_openssl()
    done = tampered("look", size, MOBIUS_SECURITY=security)
    assert done.code == 0, done.err
    assert done.lines() == [
        f"rank 0: the contents were {seen} on the path",
        "rank 1: the bytes are right",
    ]


@pytest.mark.parametrize(("first", "second"), [("messages", "off"), ("full", "messages")])
def test_ranks_with_different_settings_are_told_both(first: str, second: str) -> None:
    needs_openssl()
    choose = f'[ "$MOBIUS_RANK" = 0 ] && s={first} || s={second}; MOBIUS_SECURITY=$s exec "$@"'
    done = pair("sh", "-c", choose, "sh", program("hosts_tampered"), "look", "100")
    assert done.code != 0
    # The launcher ends the job at the first error that it sees, of whichever rank.
    mine = f"MOBIUS_SECURITY is {first} in this process and {second} in rank 1, 127.0.0.1:"
    others = f"MOBIUS_SECURITY is {second} in this process and {first} in rank 0, 127.0.0.1:"
    assert mine in done.err or others in done.err, done.err


@pytest.fixture
def without_openssl(tmp_path: Path) -> dict[str, str]:
    """An environment in which libcrypto cannot be loaded."""
    (tmp_path / "libcrypto.so.3").write_bytes(b"")
    return {"LD_LIBRARY_PATH": str(tmp_path)}


@pytest.mark.parametrize("security", ["messages", "full"])
def test_encryption_that_is_asked_for_needs_openssl(
    security: str, without_openssl: dict[str, str]
) -> None:
    done = tampered("look", SMALL, MOBIUS_SECURITY=security, **without_openssl)
    assert done.code != 0
    assert "libssl" in done.err  # libssl3 to run, libssl-dev to build
    assert "MOBIUS_SECURITY=off" in done.err


def test_by_default_a_host_without_openssl_is_warned_of(without_openssl: dict[str, str]) -> None:
    done = tampered("look", SMALL, **without_openssl)
    assert done.code == 0, done.err
    assert "messages to other hosts are not encrypted" in done.err
    assert "libssl" in done.err
    assert "rank 0: the contents were seen on the path" in done.out


def test_off_does_not_ask_for_openssl(without_openssl: dict[str, str]) -> None:
    done = tampered("look", SMALL, MOBIUS_SECURITY="off", **without_openssl)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("security", "text"),
    [("messages", "messages, (AES-256-GCM|ChaCha20-Poly1305)"), ("off", "off, not encrypted")],
)
def test_statistics_name_setting_and_cipher(security: str, text: str) -> None:
    if security != "off":
        needs_openssl()
    done = tampered("look", 100, MOBIUS_SECURITY=security, MOBIUS_STATS="1")
    assert done.code == 0, done.err
    for rank in (0, 1):
        line = f"mobius: rank {rank}: messages to other hosts: MOBIUS_SECURITY={text}\n"
        assert re.search(line, done.err), done.err
