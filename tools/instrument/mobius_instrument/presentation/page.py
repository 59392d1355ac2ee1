# SPDX-License-Identifier: BSD-3-Clause
"""The page: one self-contained HTML file, and the CSV and plots beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from mobius_instrument.cells import (
    ALL_EXPERIMENTS,
    DEFAULT_EXPERIMENTS,
    EXPERIMENTS,
    MESSAGES,
    PAPER1_EXPERIMENTS,
    format_bytes,
)
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.export import CSV_NAME, write_csv
from mobius_instrument.machine.crowd import DISTURBED, disturbance
from mobius_instrument.machine.host import host_warnings
from mobius_instrument.presentation import colours, first_screen, plots, tables
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.chapters import Book, Chapter, write_chapters
from mobius_instrument.presentation.chapters.hosts import divide, where
from mobius_instrument.presentation.charts import Charts
from mobius_instrument.presentation.colours import Look
from mobius_instrument.presentation.findings import (
    Finding,
    find,
    limit_sentences,
    most_important,
    trouble_sentence,
)
from mobius_instrument.presentation.first_screen import FirstScreen
from mobius_instrument.presentation.plots import Plot, Quantity
from mobius_instrument.presentation.selfcheck import (
    CLOSE,
    MOST,
    close,
    impossible,
    threshold,
    twice,
)
from mobius_instrument.results import Results
from mobius_instrument.stats import Summary

PAGE_NAME: Final = "index.html"
_HERE: Final = Path(__file__).resolve().parent
_QUANTITIES: Final[tuple[Quantity, ...]] = ("time", "bandwidth")
_PAIRS: Final = (
    ("pingpong", "put"), ("pingpong", "get"), ("completion", "put"), ("completion", "get"),
)  # fmt: skip
# Launch medians that differ by so much are named as noise.
_NOISY_SPREAD: Final = 1.25
_MOST_BANDWIDTH_SIZES: Final = 6
_LARGE_BYTES: Final = 1_024
# Sentences of each chapter on the first page.
_MOST_SENTENCES: Final = 4


@dataclass(frozen=True)
class Written:
    """The report's path, and its findings, the most important first."""

    path: Path
    sentences: list[str]


def write_report(results: Results, folder: Path, earlier: Results | None = None) -> Written:
    """Writes index.html, results.csv and plots/ into an existing folder; with an earlier run, also
    the changes since."""
    # Fails before everything is drawn.
    plots.make_folder(folder / "plots")
    here, apart = divide(results)
    if apart and not here.samples:  # Only experiments between hosts.
        here, apart = apart, None
    analysis, between = Analysis(here), Analysis(apart) if apart else None
    findings = find(analysis)
    looks = plots.library_looks(analysis)
    best = _best_plots(analysis)
    styles = _style_plots(analysis)
    drawn = [plot for group in (*best.values(), *styles.values()) for plot in group]
    plots.save(drawn, folder / "plots")
    write_csv(analysis, folder / CSV_NAME, between)
    screen = first_screen.look_at(analysis, looks)
    first_screen.save(screen, folder, _title(results), _machine(results))
    book = Book(analysis, looks, Charts(looks))
    other = None
    if between is not None:
        charts = Charts(looks, "Between hosts: ", book.charts.made)
        other = Book(between, looks, charts)
    chapters = write_chapters(book, earlier, other)
    book.charts.save(folder / "plots")
    page = _page(analysis, screen, findings, best, styles, folder, chapters, between)
    path = folder / PAGE_NAME
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InstrumentError(f"cannot write {path}: {system_reason(error)}") from error
    sentences = [*most_important(findings), *limit_sentences(analysis)]
    sentences += [chapter.sentences[0] for chapter in chapters if chapter.sentences]
    trouble = trouble_sentence(analysis)
    return Written(path, [*sentences, trouble] if trouble else sentences)


def _best_plots(analysis: Analysis) -> dict[tuple[str, str], list[Plot]]:
    found = {}
    for experiment, operation in _PAIRS:
        lines = plots.best_lines(analysis, experiment, operation)
        if lines:
            found[experiment, operation] = [
                plots.draw(
                    f"{experiment}-{operation}-{quantity}",
                    f"{tables.words(experiment, operation)}: {quantity}",
                    lines,
                    quantity,
                )
                for quantity in _QUANTITIES
            ]
    return found


def _style_plots(analysis: Analysis) -> dict[str, list[Plot]]:
    found: dict[str, list[Plot]] = {}
    for library in analysis.libraries:
        if analysis.results.kind(library) == "limit":
            continue
        drawn = []
        for experiment, operation in _PAIRS:
            lines = plots.style_lines(analysis, library, experiment, operation)
            if lines:
                title = f"{analysis.results.label(library)}: {tables.words(experiment, operation)}"
                name = f"{library}-{experiment}-{operation}-time"
                drawn.append(plots.draw(name, title, lines, "time"))
        found[library] = drawn
    return found


def _figures(drawn: list[Plot]) -> str:
    parts = [
        f"<figure>{plot.svg}<figcaption><a href='plots/{plot.name}.svg'>SVG</a>"
        f" <a href='plots/{plot.name}.png'>PNG</a></figcaption></figure>"
        for plot in drawn
    ]
    return f'<div class="figures">{"".join(parts)}</div>'


def _title(results: Results) -> str:
    return f"One-sided communication on {results.host.get('hostname', '')}"


def _machine(results: Results) -> str:
    """The machine, the version and the date in one line."""
    cores = results.host.get("cores")
    when = str(results.run.get("started", ""))[:16].replace("T", " ")
    parts = [
        str(results.host.get("cpu", "unknown CPU")),
        f"{cores} CPUs" if cores else "",
        f"Möbius {results.run.get('mobius_version') or ''}",
        f"measured {when}",
    ]
    return " · ".join(part for part in parts if part)


def _page(
    analysis: Analysis,
    screen: FirstScreen,
    findings: list[Finding],
    best: dict[tuple[str, str], list[Plot]],
    styles: dict[str, list[Plot]],
    folder: Path,
    chapters: list[Chapter],
    between: Analysis | None,
) -> str:
    results, looks = analysis.results, screen.looks
    lead = [*most_important(findings), *limit_sentences(analysis)]
    if not findings and len(analysis.libraries) < 2:
        lead.append("Only one library was measured, so there is nothing to compare it with.")
    template = Template((_HERE / "template.html").read_text(encoding="utf-8"))
    first = any(series.cell.experiment in PAPER1_EXPERIMENTS for series in analysis.series)
    links = [(chapter.identifier, chapter.title) for chapter in chapters]
    if first:
        links += [("lead", "Ping-pong: who leads"), ("latency", "Latency")]
    cells = _cells(analysis)
    if cells:
        links.append(("cells", "Cells"))
    return template.substitute(
        style=_style(),
        script=(_HERE / "sort.js").read_text(encoding="utf-8"),
        charts_script=(_HERE / "charts.js").read_text(encoding="utf-8"),
        first=first_screen.html(screen),
        doubts=_doubts_box(_doubts(analysis)),
        executive=_executive(chapters, lead),
        chapters="".join(
            f'<section id="{chapter.identifier}"><h2>{escape(chapter.title)}</h2>{chapter.html}'
            "</section>"
            for chapter in chapters
        ),
        links="".join(f'<a href="#{where}">{escape(title)}</a>' for where, title in links),
        choice=_choice(analysis, looks) if chapters else "",
        pingpong=_pingpong(analysis, findings, looks, best, styles, lead) if first else "",
        host=escape(str(results.host.get("hostname", ""))),
        machine=escape(_machine(results)),
        trouble=_paragraph(trouble_sentence(analysis), "trouble"),
        cells=cells,
        libraries=tables.library_table(analysis, looks)
        + (f"<h3>Between hosts</h3>{tables.library_table(between, looks)}" if between else ""),
        host_facts=_host_facts(analysis),
        warnings=_warnings(analysis, between),
        reproduce=escape(_command(results)),
        plan_hash=escape(str(results.run.get("plan_hash", ""))),
        seed=results.seed,
        downloads=_downloads(results, folder),
    )


def _pingpong(
    analysis: Analysis,
    findings: list[Finding],
    looks: dict[str, Look],
    best: dict[tuple[str, str], list[Plot]],
    styles: dict[str, list[Plot]],
    lead: list[str],
) -> str:
    """The sections on paper 1's two experiments. What the first screen and the summary have is
    not repeated: their pictures, and the sentences in `lead`."""
    return Template((_HERE / "pingpong.html").read_text(encoding="utf-8")).substitute(
        lead_table=tables.lead_table(findings, analysis),
        least=f"{100 * threshold(analysis):.0f}",
        sentences=_in_words(findings, lead),
        best_plots=_best_section(analysis, best, looks),
        style_plots=_style_section(analysis, styles, looks),
        latency=_latency_section(analysis, looks),
        bandwidth=_bandwidth_section(analysis, looks),
    )


def _in_words(findings: list[Finding], lead: list[str]) -> str:
    more = [finding.sentence for finding in findings if finding.sentence not in lead]
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in more)
    title = "More, size range by size range"
    return f"<details><summary>{title}</summary><ul>{items}</ul></details>" if more else ""


def _cells(analysis: Analysis) -> str:
    matrix = tables.outcome_matrix(analysis)
    if not matrix:
        return ""
    return (
        '<section id="cells"><h2>Every cell, and its outcome</h2><p>✓ means that its data were '
        "verified at all sizes, before and after timing. Of the experiments with a chapter, only "
        f"cells are listed that were not measured whole.</p>{matrix}</section>"
    )


def _executive(chapters: list[Chapter], lead: list[str]) -> str:
    """What to use here and why: the chapters' first sentences, behind the way to each."""
    items = [f"<li>{escape(' '.join(lead))}</li>"] if lead else []
    items += [
        f'<li><a href="#{chapter.identifier}">{escape(chapter.title)}</a> '
        f"{'<br>'.join(map(escape, chapter.sentences[:_MOST_SENTENCES]))}</li>"
        for chapter in chapters
        if chapter.sentences
    ]
    if not items:
        return ""
    return (
        '<section id="executive"><h2>What to use here, and why</h2>'
        f"<ul>{''.join(items)}</ul></section>"
    )


def _doubts_box(doubts: list[str]) -> str:
    """A light, and behind it what makes this run doubtful."""
    if not doubts:
        return '<p class="light calm">Nothing was noticed that disturbed this measurement.</p>'
    items = "".join(f"<li>{escape(text)}</li>" for text in doubts)
    reasons = "1 reason" if len(doubts) == 1 else f"{len(doubts)} reasons"
    return (
        f'<details class="light"><summary>Take small differences with care: {reasons}</summary>'
        f"<ul>{items}</ul></details>"
    )


def _doubts(analysis: Analysis) -> list[str]:
    """Reasons why differences in this run may come from the machine."""
    results = analysis.results
    found = [
        f"An error of the instrument: {results.label(pair.library)} passed"
        f" {format_bytes(pair.size)} ({pair.cell.operation}, {pair.cell.style}) in"
        f" {100 * pair.ratio.value:.0f} % of the time that the bare machine needed in the same"
        " rounds."
        for pair in impossible(analysis)
    ]
    same = twice(analysis)
    if close(same) < MOST * len(same):
        found.append(
            f"A program differed from itself by {CLOSE:.0%} or more in {len(same) - close(same)} of"
            f" {len(same)} times."
        )
    lost, sentences = _disturbance(analysis)
    if lost > DISTURBED:
        found.append(
            f"Take what follows with care. {' '.join(sentences)} Ratios of processes that take"
            " turns for a CPU tell how a library waits, not how fast it is. Measure on a quiet"
            " machine."
        )
    lines = [
        summary.spread
        for series in analysis.of("pingpong", "line")
        for size, summary in series.summaries.items()
        if size == 8 and summary.launches > 1 and not analysis.in_turns(series)
    ]
    if lines and max(lines) > _NOISY_SPREAD:
        found.append(
            "The machine itself changed meanwhile: the time in which two threads exchange a cache"
            f" line differed {max(lines):.1f} times between launches, as where a virtual machine's"
            " CPUs are moved. Compare libraries within this run, not times of this run with those"
            " of others."
        )
    found += _unusual(analysis)
    repeated = _repeated(analysis)
    noisy = sum(summary.spread > _NOISY_SPREAD for _, _, summary in repeated)
    if noisy > len(repeated) / 4:
        found.append(
            f"{100 * noisy / len(repeated):.0f} % of the medians of several launches differ by more"
            " than a quarter between them."
        )
    return found


def _unusual(analysis: Analysis) -> list[str]:
    """Series that were only measured with the CPUs closer together or farther apart than usual."""
    results = analysis.results
    only: dict[str, dict[str, None]] = {}
    for series in analysis.series:
        if any(results.is_unusual(series.key, size) for size in series.summaries):
            only.setdefault(results.label(series.library), {})[series.cell.experiment] = None
    if not only or results.distance is None:
        return []
    each = "; ".join(f"{label}: {', '.join(names)}" for label, names in only.items())
    ways = [way for both in results.ways for way in both]
    return [
        f"A cache line took {min(ways):.0f} ns from one CPU to the other in some launches and up to"
        f" {max(ways):.0f} ns in others. So did all data between the processes. The findings"
        f" compare series that were measured at {results.distance.shortest_ns:.0f} to"
        f" {results.distance.longest_ns:.0f} ns, and leave out series that were only measured at"
        f" other distances: {each}. Tables and plots show all of them. Measure again, or with more"
        " --repeats."
    ]


def _repeated(analysis: Analysis) -> list[tuple[Series, int, Summary]]:
    """Series of more than one launch: only their medians can differ between launches."""
    return [
        (series, size, summary)
        for series in analysis.series
        for size, summary in series.summaries.items()
        if summary.launches > 1 and not analysis.in_turns(series)
    ]


def _disturbance(analysis: Analysis) -> tuple[float, list[str]]:
    results = analysis.results
    cores = results.host.get("cores")
    return disturbance(
        [*results.launches, *results.concerts], cores if isinstance(cores, int) else 0
    )


def _choice(analysis: Analysis, looks: dict[str, Look]) -> str:
    """Lets readers choose the libraries that the chapters' plots show."""
    boxes = "".join(
        f'<label><input type="checkbox" value="{escape(name, quote=True)}" checked>'
        f"{tables.dot(looks.get(name))}{escape(analysis.results.label(name))}</label>"
        for name in analysis.libraries
    )
    return (
        f'<div id="choice">{boxes}<span>Drag in a plot to zoom, double-click to see all, select a'
        " key to hide a line.</span></div>"
    )


def _style() -> str:
    def variables(pick: str) -> str:
        return "".join(f"--{paint.role}:{getattr(paint, pick)};" for paint in colours.ALL)

    sheet = Template((_HERE / "style.css").read_text(encoding="utf-8"))
    return sheet.substitute(light=variables("light"), dark=variables("dark"))


def _paragraph(text: str, kind: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def _best_section(
    analysis: Analysis, best: dict[tuple[str, str], list[Plot]], looks: dict[str, Look]
) -> str:
    parts: list[str] = []
    for (experiment, operation), drawn in best.items():
        chosen = []
        for name in analysis.libraries:
            series = analysis.best(experiment, operation, name)
            if series:
                text = escape(f"{analysis.results.label(name)}: {series.cell.style}")
                chosen.append(f"<span>{tables.dot(looks.get(name))}{text}</span>")
        # The first screen has the times of these.
        again = "time" if experiment == "completion" else ""
        more = [plot for plot in drawn if not again or not plot.name.endswith(again)]
        parts.append(
            f"<h3>{escape(tables.words(experiment, operation))}</h3>"
            f'<p class="legend">{"".join(chosen)}</p>{_figures(more)}'
        )
    return "".join(parts)


def _style_section(
    analysis: Analysis, styles: dict[str, list[Plot]], looks: dict[str, Look]
) -> str:
    return "".join(
        f"<details><summary>{tables.dot(looks.get(name))}{escape(analysis.results.label(name))}"
        f"</summary>{_figures(drawn)}</details>"
        for name, drawn in styles.items()
        if drawn
    )


def _latency_sizes(analysis: Analysis) -> list[int]:
    """One integer and two, if measured; else the smallest size."""
    return [size for size in (4, 8) if size in analysis.sizes] or analysis.sizes[:1]


def _latency_section(analysis: Analysis, looks: dict[str, Look]) -> str:
    parts: list[str] = []
    for experiment, operation in _PAIRS:
        limit = "line" if experiment == "pingpong" else "copy"
        series = [
            one
            for one in analysis.of(experiment)
            if one.cell.operation in (operation, *MESSAGES, limit)
        ]
        if not any(one.cell.operation == operation for one in series):
            continue
        for size in reversed(_latency_sizes(analysis)):
            opened = " open" if not parts else ""
            title = f"{tables.words(experiment, operation)}, {format_bytes(size)}"
            table = tables.latency_table(series, size, analysis, looks)
            parts.append(f"<details{opened}><summary>{escape(title)}</summary>{table}</details>")
    return "".join(parts)


def _bandwidth_section(analysis: Analysis, looks: dict[str, Look]) -> str:
    sizes = [size for size in analysis.sizes if size >= _LARGE_BYTES][-_MOST_BANDWIDTH_SIZES:]
    if not sizes:
        return ""
    parts: list[str] = []
    for experiment, operation in _PAIRS:
        series = [
            one
            for name in analysis.libraries
            if (one := analysis.best(experiment, operation, name)) is not None
        ]
        limit = "line" if experiment == "pingpong" else "copy"
        if series:
            series += analysis.of(experiment, limit)
            title = escape(tables.words(experiment, operation))
            table = tables.bandwidth_table(series, sizes, analysis, looks)
            opened = " open" if not parts else ""
            parts.append(f"<details{opened}><summary>{title}</summary>{table}</details>")
    return "".join(parts)


def _host_facts(analysis: Analysis) -> str:
    host, plan = analysis.results.host, analysis.results.plan
    memory = host.get("memory_bytes")
    environments = [
        launch["environment"] for launch in analysis.results.launches if launch.get("environment")
    ]
    facts: list[tuple[str, Any]] = [
        ("CPU", f"{host.get('cpu', '')}, {host.get('cores', '?')} CPUs allowed"),
        ("Memory", f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) else ""),
        ("System", f"{host.get('os', '')}, Linux {host.get('kernel', '')}"),
        ("Frequency governor", host.get("governor") or "not told by the system"),
        ("C compiler", host.get("compiler")),
        ("Hosts", where(analysis) if plan.get("hosts") else ""),
        ("Pinning", _pinning(environments)),
        ("Timer", _timer(environments)),
        ("Sizes", ", ".join(format_bytes(size) for size in plan.get("sizes", []))),
        ("Launches", _launches(analysis)),
    ]
    facts += [
        ("Experiment " + name, EXPERIMENTS.get(name, "")) for name in plan.get("experiments", [])
    ]
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts if value
    )
    return f"<dl>{rows}</dl>"


def _launches(analysis: Analysis) -> str:
    alone = [series for series in analysis.series if not analysis.in_turns(series)]
    rounds = (
        f"{len(analysis.results.rounds):,} rounds in turns"
        if len(alone) < len(analysis.series)
        else ""
    )
    summaries = [one for series in alone for one in series.summaries.values()]
    if not summaries:
        return rounds

    def span(counts: list[int]) -> str:
        low, high = min(counts), max(counts)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    return (
        (f"{rounds}; of other cells " if rounds else "")
        + f"{span([one.launches for one in summaries])} of each cell, libraries in turn; with"
        f" {span([one.samples for one in summaries])} samples of each size together"
    )


def _pinning(environments: list[dict[str, Any]]) -> str:
    cpus = {tuple(one["cpus"]) for one in environments if isinstance(one.get("cpus"), list)}
    words = []
    for pair in sorted(cpus):
        unpinned = any(cpu == -1 for cpu in pair)
        words.append(
            "not pinned" if unpinned else f"the two ranks on CPUs {pair[0]} and {pair[-1]}"
        )
    return "; ".join(words)


def _timer(environments: list[dict[str, Any]]) -> str:
    timers = [one["timer"] for one in environments if isinstance(one.get("timer"), dict)]
    costs = [timer["overhead_ns"] for timer in timers if "overhead_ns" in timer]
    if not costs:
        return ""
    spread = (
        f"{min(costs):.0f}" if min(costs) == max(costs) else f"{min(costs):.0f} to {max(costs):.0f}"
    )
    return (
        f"{timers[0].get('name', '')}, one read costs {spread} ns; batches are long enough that"
        " it is below 2 % of a sample"
    )


def _warnings(analysis: Analysis, between: Analysis | None) -> str:
    warnings = [*analysis.results.warnings, *host_warnings(analysis.results.host)]
    warnings += _disturbance(analysis)[1]
    repeated = _repeated(analysis)
    noisy = [
        (series, size, summary.spread)
        for series, size, summary in repeated
        if summary.spread > _NOISY_SPREAD
    ]
    if noisy:
        series, size, spread = max(noisy, key=lambda one: one[2])
        warnings.append(
            f"{len(noisy)} of {len(repeated)} medians of several launches differ by more than a"
            " quarter between them; most"
            f" {analysis.results.label(series.library)}, {series.cell}, {format_bytes(size)}:"
            f" {spread:.1f} times."
        )
    few = {summary.launches for series in analysis.series for summary in series.summaries.values()}
    if few and min(few) < 3:
        warnings.append(
            "Some series have fewer than three launches, so their intervals cannot show how much"
            " launches differ."
        )
    launches = [(analysis.results, one, "") for one in analysis.results.launches]
    if between is not None:
        launches += [(between.results, one, ", between hosts") for one in between.results.launches]
    remarks: dict[tuple[str, str], int] = {}
    for found, launch, side in launches:
        detail = str(launch.get("detail") or "")
        if detail and (launch["status"] == "ok" or detail.startswith("measured everything")):
            key = found.label(launch["library"]) + side, detail
            remarks[key] = remarks.get(key, 0) + 1
    for (label, detail), times in remarks.items():
        warnings.append(f"{label}, {times} launch{'es' if times > 1 else ''}: {detail}")
    items = "".join(f"<li>{escape(text)}</li>" for text in warnings)
    return f'<ul class="warnings">{items}</ul>' if items else ""


def _command(results: Results) -> str:
    """The command that repeats this measurement."""
    plan = results.plan
    experiments = plan.get("experiments", [])
    full = bool(plan.get("full"))
    usual = list(EXPERIMENTS if full else DEFAULT_EXPERIMENTS)
    if experiments == usual:
        experiments = []
    elif experiments == list(EXPERIMENTS):
        experiments = [ALL_EXPERIMENTS]
    parts = ["./mobius report", *experiments, *(["--full"] if full else [])]
    libraries = [name for name in plan.get("libraries", []) if "@" not in name]
    if libraries:
        parts.append(f"--libs {','.join(libraries)}")
    if plan.get("hosts"):
        parts.append(f"--hosts {','.join(plan['hosts'])}")
    if plan.get("sizes") and plan.get("sizes_given", True):
        parts.append(f"--sizes {','.join(f'{size}b' for size in plan['sizes'])}")
    if plan.get("repeats_given", True):
        parts.append(f"--repeats {plan.get('repeats', 3)}")
    return " ".join([*parts, f"--seed {results.seed}"])


def _downloads(results: Results, folder: Path) -> str:
    source = os.path.relpath(results.path, folder)
    return (
        f'<a href="{escape(source, quote=True)}">results.jsonl</a> (every sample),'
        f' <a href="{CSV_NAME}">{CSV_NAME}</a> (statistics)'
    )
