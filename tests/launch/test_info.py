# SPDX-License-Identifier: BSD-3-Clause
"""`mobius info`: complete, readable, and honest about what it finds."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
from launch_tools import ROOT, command


def info(*words: str, settings: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
    return subprocess.run(
        [command(), "info", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**inherited, **(settings or {})},
    )


def facts(**settings: str) -> dict[str, Any]:
    done = info("--json", settings=settings)
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


def setting(name: str, **settings: str) -> dict[str, Any]:
    found = [entry for entry in facts(**settings)["settings"] if entry["name"] == name]
    assert len(found) == 1
    return dict(found[0])


def test_text_fits_a_terminal() -> None:
    done = info()
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for title in ("Host", "Tried out here", "Beyond this host", "Thresholds", "Settings"):
        assert title in done.stdout.splitlines()


def test_json_has_every_section() -> None:
    sections = {
        "build", "host", "probes", "network", "mpi", "shmem", "thresholds", "settings", "warnings",
    }  # fmt: skip
    assert set(facts()) == sections


def test_shmem_and_its_settings() -> None:
    settings = {"SHMEM_SYMMETRIC_SIZE": "12M"}
    told = json.loads(info("--json", "--shmem", settings=settings).stdout)
    assert told["SHMEM_SYMMETRIC_SIZE"] == "12M"
    assert told["SHMEM_DEBUG"] is None
    text = info("--shmem", settings=settings).stdout
    assert "12M; room for the symmetric heap" in text
    assert "Settings" not in text
    page = (ROOT / "docs/fronts/shmem.md").read_text()
    assert all(f"`{name}" in page for name in told if name.startswith("SHMEM_"))


def test_encryption_is_named_with_its_cipher() -> None:
    found = facts()["network"]["encryption"]
    assert found["setting"] == "messages"
    assert found["cipher"] in ("AES-256-GCM", "ChaCha20-Poly1305") or not found["works"]
    assert facts(MOBIUS_SECURITY="off")["network"]["encryption"]["cipher"] is None
    assert facts(MOBIUS_SECURITY="full")["thresholds"]["rma_bytes"]["bytes"] is None


def test_every_setting_is_listed() -> None:
    table = (ROOT / "src/base/settings.cpp").read_text()
    names = set(re.findall(r'\{"(MOBIUS_[A-Z_]+)"', table))
    assert len(names) > 5
    text = info().stdout
    entries = facts()["settings"]
    assert {entry["name"] for entry in entries} == names
    for entry in entries:
        assert entry["name"] in text
        assert entry["help"]
        assert entry["source"] == "default"
        assert entry["value"] == entry["default"]


def test_every_setting_is_documented() -> None:
    """With its default, and nothing that is no setting."""
    page = (ROOT / "docs/settings.md").read_text()
    entries = {entry["name"]: entry for entry in facts()["settings"]}
    assert set(re.findall(r"`(MOBIUS_[A-Z_]+)`", page)) == set(entries)
    rows = dict(re.findall(r"^\| `(MOBIUS_[A-Z_]+)` \| (?:`([^`]+)`)? ?\|", page, re.M))
    users = {name: entry for name, entry in entries.items() if entry["role"] == "user"}
    assert rows == {name: entry["default"] for name, entry in users.items()}


def test_setting_from_the_environment() -> None:
    entry = setting("MOBIUS_YIELDS", MOBIUS_YIELDS="99")
    assert (entry["value"], entry["source"], entry["default"]) == ("99", "environment", "16")


def test_malformed_setting_is_shown() -> None:
    done = info(settings={"MOBIUS_YIELDS": "many", "MOBIUS_YELDS": "1"})
    assert done.returncode == 1
    assert "MALFORMED" in done.stdout
    assert "MOBIUS_YIELDS='many'" in done.stdout
    assert "did you mean MOBIUS_YIELDS?" in done.stdout
    assert "MOBIUS_YIELDS='many'" in setting("MOBIUS_YIELDS", MOBIUS_YIELDS="many")["problem"]


def test_unknown_setting_is_shown() -> None:
    assert any("MOBIUS_YELDS" in text for text in facts(MOBIUS_YELDS="1")["warnings"])


def test_host_is_this_one() -> None:
    host = facts()["host"]
    assert host["name"] == os.uname().nodename
    assert os.uname().release in host["kernel"]
    assert host["processors"]["allowed"] == sorted(os.sched_getaffinity(0))
    total = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    assert total
    assert host["memory"]["total_bytes"] == int(total[1]) * 1024
    assert host["memory"]["available_bytes"] > 0
    assert host["largest_job"]["processes"] > 0


def test_probes_tell_what_was_found() -> None:
    probes = facts()["probes"]
    assert set(probes) == {
        "memfd",
        "shared_huge_pages",
        "first_touch",
        "window",
        "cross_memory_attach",
        "pidfd",
        "abstract_sockets",
    }
    for probe in probes.values():
        assert isinstance(probe["works"], bool)
        assert probe["detail"]
    assert probes["window"]["wanted_bytes"] == 8 << 40


def test_shared_huge_pages_are_what_the_kernel_says() -> None:
    found = facts()
    probe = found["probes"]["shared_huge_pages"]
    choices = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    chosen = re.search(r"\[(\w+)\]", choices.read_text()) if choices.exists() else None
    assert probe["mode"] == (chosen[1] if chosen else "")
    assert 0 <= probe["huge_bytes"] <= probe["bytes"] == 4 << 20
    assert probe["works"] == (probe["huge_bytes"] > 0)
    if probe["mode"] in ("never", "deny", ""):
        assert probe["huge_bytes"] == 0


def test_memory_nodes_are_counted() -> None:
    nodes = facts()["host"]["memory_nodes"]
    folders = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    assert nodes["count"] <= len(folders)
    assert (nodes["count"] > 0) == bool(nodes["list"])


def test_first_touch_says_where_a_page_is() -> None:
    probe = facts()["probes"]["first_touch"]
    assert probe["nodes"] == facts()["host"]["memory_nodes"]["count"]
    if probe["node"] is None:
        assert not probe["works"]
        assert "move_pages: " in probe["detail"]
        return
    assert f"on node {probe['node']}" in probe["detail"]
    if probe["nodes"] == 1:
        assert probe["works"]
        assert "there is one node" in probe["detail"]
    else:
        assert f"of {probe['nodes']}" in probe["detail"]


def test_window_follows_its_setting() -> None:
    window = facts(MOBIUS_WINDOW_BYTES="128M")["probes"]["window"]
    assert window["bytes"] == window["wanted_bytes"] == 128 << 20


def test_window_under_a_limit_on_address_space() -> None:
    if facts()["build"]["sanitizers"]:
        pytest.skip("a sanitizer needs more address space than the limit of this test")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    done = subprocess.run(
        [command(), "info", "--json"], capture_output=True, check=True, preexec_fn=limit
    )
    window = json.loads(done.stdout)["probes"]["window"]
    assert window["works"]
    assert window["bytes"] < 1 << 30
    assert "ulimit -v" in window["detail"]


def test_wrong_argument() -> None:
    done = info("--xml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_batch_variables_are_seen() -> None:
    names = facts(SLURM_JOB_ID="1", PMIX_RANK="0")["network"]["batch_environment"]
    assert {"SLURM_JOB_ID", "PMIX_RANK"} <= set(names)


def test_congestion_control_is_told_and_what_bbr_means() -> None:
    name = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert facts()["network"]["tcp_congestion_control"] == name
    lines = " ".join(info().stdout.split())
    assert f"TCP congestion {name}" in lines
    assert ("paces what is sent" in lines) == name.startswith("bbr")


def value_of(threshold: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in threshold.items() if key != "why"}


def test_thresholds_follow_their_settings() -> None:
    standard = facts()["thresholds"]
    assert standard["copy_stream_bytes"]["source"] == "default"
    assert value_of(standard["copy_try_bytes"]) == {"bytes": 4 << 10, "source": "default"}
    chosen = facts(
        MOBIUS_COPY_STREAM_BYTES="3M",
        MOBIUS_COPY_TRY_BYTES="64T",
        MOBIUS_SPIN_NS="77",
        MOBIUS_YIELDS="5",
        MOBIUS_RMA_BYTES="1M",
    )["thresholds"]
    assert value_of(chosen["copy_stream_bytes"]) == {"bytes": 3 << 20, "source": "environment"}
    assert value_of(chosen["copy_try_bytes"]) == {"bytes": None, "source": "environment"}
    for key in ("spin_ns", "spin_network_ns", "spin_crowded_ns"):
        assert value_of(chosen[key]) == {"ns": 77, "source": "environment"}
    assert value_of(chosen["yields"]) == {"count": 5, "source": "environment"}
    assert value_of(chosen["rma_bytes"]) == {"bytes": 1 << 20, "source": "environment"}
    # A chosen value needs no trial.
    assert "rma_try_bytes" in standard
    assert "rma_try_bytes" not in chosen


def test_every_threshold_says_where_it_comes_from_and_why() -> None:
    thresholds = facts()["thresholds"]
    for threshold in thresholds.values():
        assert threshold["source"] in ("built-in", "default", "measured")
        assert threshold["why"]
        assert len({"bytes", "count", "ns"} & set(threshold)) == 1
    assert {
        "message_in_place_bytes",
        "message_attach_bytes",
        "message_attach_nb_bytes",
        "message_ring_bytes",
        "collective_direct_bytes",
        "delegation_bytes",
        "delegation_try_bytes",
        "batch_put_bytes",
        "kernel_pieces",
        "call_bytes",
        "spin_ns",
        "yield_ns",
        "rma_bytes",
        "rma_try_bytes",
        "packed_bytes",
    } <= set(thresholds)


def test_packed_size_follows_from_what_a_message_costs() -> None:
    standard = facts()["thresholds"]["packed_bytes"]
    dearer = facts(MOBIUS_MESSAGE_NS="3000")["thresholds"]["packed_bytes"]
    assert dearer["bytes"] == 2 * standard["bytes"]
    assert (standard["source"], dearer["source"]) == ("default", "environment")
    text = (ROOT / "docs/scheduler.md").read_text()
    assert f"{standard['bytes']:,} bytes by default" in text


def test_a_malformed_setting_leaves_thresholds_of_others() -> None:
    done = info("--json", settings={"MOBIUS_YIELDS": "many", "MOBIUS_SPIN_NS": "77"})
    thresholds = json.loads(done.stdout)["thresholds"]
    assert value_of(thresholds["spin_ns"]) == {"ns": 77, "source": "environment"}
    assert value_of(thresholds["yields"]) == {"count": 16, "source": "default"}


def test_tune_prints_settings_that_are_accepted() -> None:
    done = subprocess.run([command(), "tune"], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"^export (MOBIUS_COPY_[A-Z]+_BYTES)=(\w+)$", done.stdout, re.M))
    assert set(found) == {"MOBIUS_COPY_STREAM_BYTES", "MOBIUS_COPY_REP_BYTES"}
    assert len(done.stdout.splitlines()) == 2
    assert info(settings=found).returncode == 0


def test_tune_takes_no_other_arguments() -> None:
    done = subprocess.run([command(), "tune", "now"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_tune_measures_what_a_message_to_another_host_costs() -> None:
    hosts = ["--virtual-hosts", "2", "-n", "2"]
    none = subprocess.run([command(), "run", *hosts, "true"], capture_output=True, check=False)
    if none.returncode != 0:
        pytest.skip("this build has no network")
    words = [command(), "tune", *hosts]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, setting = done.stdout.splitlines()
    assert re.fullmatch(
        r"# rank 0 to rank 1: latency [\d.]+ us, one more message [\d.]+ us, out \d+ MB/s,"
        r" in \d+ MB/s",
        said,
    )
    found = re.fullmatch(r"export MOBIUS_MESSAGE_NS=(\d+)", setting)
    assert found
    assert info(settings={"MOBIUS_MESSAGE_NS": found[1]}).returncode == 0


def test_tune_says_that_a_link_needs_two_hosts() -> None:
    words = [command(), "tune", "-n", "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "on one host" in done.stderr
