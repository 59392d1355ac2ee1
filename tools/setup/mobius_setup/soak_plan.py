# SPDX-License-Identifier: BSD-3-Clause
"""The jobs of the soak: what each does, chosen by its seed, and what it must say at its end."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

MOST_DELAY_US = 15_000
MOST_EARLY_US = 4_000
MOST_LAUNCHER_DELAY_S = 0.08
# What the launcher says of a rank that dies so, and the exit code of the job.
ENDS = {
    "kill": ("was killed by signal 9", 137),
    "segv": ("was killed by signal 11", 139),
    "exit": ("exited without mob_finalize()", 1),
    "code": ("exited with code 7", 7),
    "abort": ("exited with code 42", 42),
}
# A rank that could not join because another one died.
NOT_JOINED = ("exited with code 3", 3)
LINE = re.compile(r"mobius run: rank (\d+) \(process \d+, .*?soak_driver\) (.*)")
SETTINGS = {
    "MOBIUS_ADDRESS_MODE": ["same", "table"],
    "MOBIUS_COLLECTIVES": ["attach", "copy"],
    "MOBIUS_CMA": ["off"],
    "MOBIUS_SPIN_NS": ["0", "20000", "1000000"],
    "MOBIUS_MEETING": ["flags", "grid", "count"],
    "MOBIUS_COPY_TRY_BYTES": ["64T"],
    "MOBIUS_RING_BYTES": ["256K", "1M"],
    "MOBIUS_WINDOW_BYTES": ["4G"],
}
HOST_SETTINGS = {
    "MOBIUS_SCHEDULE": ["fifo", "interleave", "gets-first", "aggregate", "adaptive"],
    "MOBIUS_RMA_BYTES": ["4K", "64K", "1M"],
    "MOBIUS_RMA_KEYS": ["off"],
}


@dataclass(frozen=True)
class Fate:
    """A rank that dies, or stops for a while."""

    rank: int
    kind: str
    after_us: int
    length_us: int = 0

    def __str__(self) -> str:
        words = [str(self.rank), self.kind, str(self.after_us)]
        return ":".join([*words, str(self.length_us)] if self.length_us else words)


@dataclass(frozen=True)
class LauncherFate:
    """The launcher, its worker, or both get a signal."""

    signal: str
    whom: str
    after_s: float


@dataclass(frozen=True)
class Plan:
    """One job."""

    seed: int
    ranks: int
    hosts: int
    on_death: str
    early: bool
    fates: list[Fate] = field(default_factory=list)
    launcher: LauncherFate | None = None
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def victims(self) -> dict[int, str]:
        """The ranks that die, and how."""
        return {fate.rank: fate.kind for fate in self.fates if fate.kind != "stop"}

    @property
    def survives(self) -> bool:
        """Whether the other ranks go on to the end."""
        ends = self.launcher is not None or "abort" in self.victims.values()
        return not ends and (self.on_death == "error" or not self.victims)

    def words(self, driver: str) -> list[str]:
        """The arguments of `mobius run`."""
        words = ["-n", str(self.ranks), "--on-death", self.on_death]
        if self.hosts > 1:
            words += ["--virtual-hosts", str(self.hosts)]
        fates = ",".join(str(fate) for fate in self.fates) or "-"
        moment = "early" if self.early else "late"
        ending = "survive" if self.survives else "end"
        return [*words, driver, str(self.seed), moment, ending, fates]


def make_plan(seed: int, on_hosts: bool | None = None) -> Plan:
    """The job that a seed stands for; `on_hosts` decides whether it has several hosts."""
    chance = random.Random(seed)
    ranks = chance.randint(2, 6)
    hosts = chance.randint(2, min(3, ranks)) if chance.random() < 1 / 6 else 1
    if on_hosts is not None:
        hosts = max(hosts, 2) if on_hosts else 1
    what = chance.random()
    on_death = "end" if chance.random() < 0.15 else "error"
    early = chance.random() < 0.1
    fates: list[Fate] = []
    launcher = None
    most = MOST_EARLY_US if early else MOST_DELAY_US * (4 if hosts > 1 else 1)
    if what < 0.07:
        launcher = LauncherFate(
            chance.choice(["SIGKILL", "SIGKILL", "SIGTERM", "SIGINT"]),
            chance.choice(["launcher", "worker", "both"]),
            chance.random() * MOST_LAUNCHER_DELAY_S,
        )
        early = False
    elif what < 0.12:
        early = False
    elif what < 0.15:
        early = False
        fates = [Fate(chance.randrange(ranks), "abort", chance.randrange(1, most))]
    else:
        count = 1 if chance.random() < 0.6 else chance.randint(1, ranks - 1)
        kinds = ["kill", "kill", "kill", "segv", "exit", "code"]
        fates = [
            Fate(rank, chance.choice(kinds), chance.randrange(1, most))
            for rank in chance.sample(range(ranks), count)
        ]
    if chance.random() < 0.15:
        stopped = chance.randrange(ranks)
        if stopped not in {fate.rank for fate in fates}:
            length = chance.randrange(1_000, 60_000)
            fates.append(Fate(stopped, "stop", chance.randrange(1, 40_000), length))
    choices = {**SETTINGS, **(HOST_SETTINGS if hosts > 1 else {})}
    settings = {
        name: chance.choice(values) for name, values in choices.items() if chance.random() < 0.2
    }
    if hosts > 1:
        settings["MOBIUS_LOG"] = "error"
    return Plan(seed, ranks, hosts, on_death, early, fates, launcher, settings)


def judge(plan: Plan, code: int, out: str, err: str) -> list[str]:
    """What a job's exit code and output say that they must not say."""
    problems = [line for line in err.splitlines() if line.startswith("WRONG")]
    said: list[tuple[int, str]] = []
    for line in err.splitlines():
        if match := LINE.fullmatch(line):
            said.append((int(match[1]), match[2]))
        elif not line.startswith("WRONG") and not _may_say(plan, line):
            problems.append(f"unexpected: {line}")
    survivors = [int(rank) for rank in re.findall(r"^rank (\d+) survived$", out, re.M)]
    if strange := re.sub(r"^rank \d+ survived\n", "", out, flags=re.M):
        problems.append(f"unexpected output: {strange}")
    if plan.launcher is not None:
        return problems
    problems += _judge_lines(plan, said, code)
    others = [rank for rank in range(plan.ranks) if rank not in plan.victims]
    if plan.survives and sorted(survivors) != others:
        problems.append(f"ranks {sorted(survivors)} survived, not {others}")
    if not plan.survives and not set(survivors) <= set(others):
        problems.append(f"ranks {sorted(survivors)} survived, of which some must die")
    return problems


def _may_say(plan: Plan, line: str) -> bool:
    if plan.launcher is not None:
        return line.startswith(("mobius run: ", "mobius: "))
    return "abort" in plan.victims.values() and "mob_abort(42): because" in line


def _judge_lines(plan: Plan, said: list[tuple[int, str]], code: int) -> list[str]:
    problems: list[str] = []
    codes: list[int] = []
    for rank, words in said:
        ends = [ENDS[plan.victims[rank]]] if rank in plan.victims else []
        if plan.early:
            ends += [("exited without mob_init()", 1)]
            ends += [] if rank in plan.victims else [NOT_JOINED]
        found = [each for text, each in ends if words.startswith(text)]
        if found:
            codes.append(found[0])
        else:
            problems.append(f"rank {rank} {words}: must not end so")
    ranks = [rank for rank, _ in said]
    if len(set(ranks)) != len(ranks):
        problems.append("a rank died twice")
    if plan.survives and not set(plan.victims) <= set(ranks):
        problems.append(f"ranks {sorted(plan.victims)} must die, but {sorted(ranks)} did")
    if not plan.survives and len(said) != 1:
        problems.append(f"{len(said)} ranks ended the job, not 1")
    wanted = codes[0] if codes else 0
    if code != wanted:
        problems.append(f"exit code {code}, not {wanted}")
    return problems
