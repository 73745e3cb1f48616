"""The screen of `train`: which schemes fit and how fast they are, what limits the others, caveats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.report.caveats import assumption_lines, assumption_parts, caveat_section
from buddysim.report.fit_answer import AS_IS, fit_answer, in_use, is_lossy, makes_it_fit, shortfall_bytes
from buddysim.report.memory_table import MAX_SCHEMES, memory_parts
from buddysim.report.quantities import format_gib, format_significant, format_whole_percent
from buddysim.report.recorded_network import format_options
from buddysim.report.scheme_rows import SchemeRows, in_order, rows_of, simplicity
from buddysim.report.screen import (
    NOT_APPLICABLE,
    Column,
    Part,
    ScreenTable,
    Spanning,
    make_printable,
    print_screen,
)
from buddysim.report.training_caveats import training_caveats
from buddysim.training.cost.operators.model import OPERATORS, PREDICTED
from buddysim.training.schemes import UNCHANGED, family
from buddysim.training.schemes.vdnn_dyn import FASTER_WITH_LESS

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]
Cell = Callable[[Flat], str]

#: Of so many schemes, sections with a line for each are shown only on request.
_MANY_FROM = 10
#: Decisions of more schemes than these are shown only on request.
_MAX_WITH_DECISIONS = 3
_NAMES_WIDTH = 27

#: The end of an accuracy that was not measured on the simulated network.
#: What was trained, by how an accuracy says so.
_TRAINED = {", small network": "a small CNN", ", small transformer": "a small transformer"}
_POLICIES = {
    "none": "no layer offloads",
    "conv": "CONV layers offload",
    "all": "every feature-extraction layer offloads",
}
_ALGORITHMS = {"m": "memory-optimal algorithms", "p": "fastest algorithms"}


def training_parts(
    results: Results,
    saved: str = "",
    batches: Mapping[str, int] | None = None,
    beyond: Results | None = None,
    changed: Mapping[str, object] | None = None,
    *,
    not_simulated: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    keep_order: bool = False,
    every_row: bool = False,
    allow_lossy: bool = False,
    with_decisions: bool = False,
    with_assumptions: bool = False,
    answer: str = "",
) -> list[Part]:
    """Return the screen of the results of some schemes.

    Parameters
    ----------
    results : what `TrainingResult.to_dict` gives, by scheme name
    saved : where the full result is, and what else there is to request
    batches : the largest batch of each scheme that fits, if these were searched; 0 for none
    beyond : of these schemes, the counters ``oom.*`` of one sample more, which does not fit
    changed : settings of the machine that are not those of its name
    not_simulated : schemes without a result, and why
    columns : counters to show in place of the usual columns
    keep_order : whether schemes keep the order of `results`, a row each
    every_row : whether each scheme has a row
    allow_lossy : whether schemes that change the training's values may be first
    with_decisions : whether decisions are shown for any number of schemes
    with_assumptions : whether every assumption is listed
    answer : a line below the heading
    """
    names = list(results) if keep_order else in_order(results, allow_lossy)
    ordered = {name: results[name] for name in names}
    said = fit_answer(results, simplicity(results), allow_lossy) if batches is None else ""
    parts: list[Part] = [*_heading(results, batches, changed or {}), *filter(None, (answer, said)), ""]
    if columns:
        parts += [_counters(ordered, columns), *_legend(ordered)]
    else:
        comparison = _Comparison(ordered, batches)
        as_given = keep_order or every_row
        selected = SchemeRows(tuple(names)) if as_given else rows_of(results, comparison.cells, allow_lossy)
        named = {name: results[name] for shown in selected.shown for name in (shown, *selected.equal.get(shown, ()))}
        parts += [comparison.table(selected), *_row_notes(selected, results), *_legend(named, with_time=True)]
        parts += _not_simulated(not_simulated or {}, results)
        parts += memory_parts(_with_memory(ordered)) if is_recorded(results) else []
    in_detail = len(results) < _MANY_FROM or every_row
    sections = [
        ("out of memory", _reasons(ordered) if in_detail else []),
        ("out of memory with one sample more", _next_batches(ordered, beyond or {})),
        ("limits of the schemes that fit", _limits(ordered) if in_detail or with_decisions else []),
        ("decisions", _decisions(ordered, with_decisions)),
    ]
    shown = [(title, rows) for title, rows in sections if rows]
    for number, (title, rows) in enumerate(shown):
        table = ScreenTable([Column("", left=True, wrap_to=_NAMES_WIDTH), Column("", left=True, text=True)], rows)
        parts += [*([""] if not number else []), title, table]
    caveats = list(training_caveats(results))
    parts += caveat_section(caveats[:2] if len(results) >= _MANY_FROM else caveats, len(assumption_lines(results)))
    if with_assumptions:
        parts += assumption_parts(results)
    return [*parts, *(["", saved] if saved else [])]


def print_training(results: Results, saved: str, **options: Any) -> None:
    """Print the screen of `training_parts`."""
    print_screen(training_parts(results, saved, **options))


def format_out_of_memory(result: Flat) -> str:
    """Return why a result does not fit: the request that fails, and by how much the peak exceeds the memory."""
    return str(result["oom.message"])


def _with_memory(ordered: Results) -> Results:
    """The schemes whose memory is shown: of many, "as is" and the first one that makes it fit."""
    if len(ordered) <= MAX_SCHEMES:
        return ordered
    plain = [name for name in AS_IS if name in ordered][:1]
    best = [name for name, one in ordered.items() if makes_it_fit(one)][:1]
    names = dict.fromkeys([*plain, *best] or [next(iter(ordered))])
    return {name: ordered[name] for name in names}


def _family(name: str) -> str:
    try:
        return family(name)
    except BuddysimError:  # a saved result of a plug-in's scheme
        return ""


def _heading(results: Results, batches: Mapping[str, int] | None, changed: Mapping[str, object]) -> Iterator[str]:
    first = next(iter(results.values()))
    run = first["provenance"]
    capacities = [result["memory.capacity_bytes"] for result in results.values() if result["memory.capacity_bytes"]]
    memory = f"{capacities[0] / 2**30:,.1f} GiB, " if capacities else ""
    several = first.get("gpus", 1) > 1
    batch = f", batch {run['batch']}{' a GPU' if several else ''}," if batches is None else ""
    gpus = f"{first['gpus']} {run['machine']}" if several else run["machine"]
    yield make_printable(f"{run['network']}{batch} on {gpus}  ({memory}link {run['link']} {_link_rate(run)})")
    if changed:
        yield make_printable(f"changed: {', '.join(f'{key} = {value}' for key, value in changed.items())}")
    if run.get("network_options"):
        yield make_printable(format_options(run["network_options"]))
    what = "one iteration" if batches is None else "the largest batch that fits"
    prefetch = f"; prefetch {run['prefetch']}" if run["prefetch"] != "vdnn" else ""
    precision = "" if run.get("network_options") else f"{run['precision']}, "
    yield make_printable(f"{what}, {precision}{_optimizer(first)}; {_layer_times(run)}{prefetch}")


def _link_rate(run: Flat) -> str:
    to_host, to_gpu = (run[f"link_{way}_bytes_per_s"] / 1e9 for way in ("d2h", "h2d"))
    return f"{to_host:g} GB/s each way" if to_host == to_gpu else f"{to_host:g} GB/s to the host, {to_gpu:g} back"


def _optimizer(result: Flat) -> str:
    name = result["provenance"]["optimizer"]
    if name == "none":
        return "no optimizer"
    state = format_gib(result["memory.optimizer_state_bytes"])
    return f"optimizer {name} ({format_significant(result['update_ms'])} ms, state {state} GiB)"


def _layer_times(run: Flat) -> str:
    if run["calibration"].startswith(OPERATORS) and "buddysim calibrate" in run["calibration"]:
        return "times of operators fitted by buddysim calibrate"
    if run["calibration"] == OPERATORS:
        return "times of operators fitted to timings"
    if run["calibration"].startswith(PREDICTED):
        return f"times {run['calibration']}"
    library = re.sub(r"^cudnn(\d+)$", r"cuDNN \1", run["conv_library"])
    if "buddysim calibrate" in run["calibration"]:
        return f"layer times fitted by buddysim calibrate ({library})"
    return f"layer times fitted to {library} timings" if run["calibrated"] else f"layer times uncalibrated ({library})"


def _fits(result: Flat) -> str:
    if not result["memory.capacity_bytes"]:
        return NOT_APPLICABLE
    return "yes" if result["fits"] else "NO"


def _shortfall(result: Flat) -> str:
    """What is missing of a memory; of the host's, where the GPU's suffices."""
    if result["fits"]:
        return NOT_APPLICABLE
    where = " (host)" if result["oom.memory"] == "host" else ""
    return f"{format_gib(shortfall_bytes(result))}{where}"


def _performance(result: Flat) -> str:
    value = result["performance_vs_oracle"]
    return NOT_APPLICABLE if value is None else format_whole_percent(value)


def _ms(*keys: str) -> Cell:
    """A time; in parentheses where it is the time on a GPU with enough memory."""

    def text(result: Flat) -> str:
        total = sum(result[key] for key in keys)
        if not total:
            return NOT_APPLICABLE
        return format_significant(total) if result["fits"] else f"({format_significant(total)})"

    return text


def _rate(key: str) -> Cell:
    def text(result: Flat) -> str:
        value = result.get(key)
        return NOT_APPLICABLE if value is None or not result["fits"] else format_significant(value)

    return text


def _gib(*keys: str) -> Cell:
    def text(result: Flat) -> str:
        total = sum(result[key] for key in keys)
        return format_gib(total) if total else NOT_APPLICABLE

    return text


def _footprint_ratio(result: Flat) -> str:
    ratio = result["memory.footprint_ratio"]
    return NOT_APPLICABLE if ratio is None else f"{ratio:.2f}x"


def _link_gib(result: Flat) -> str:
    """Bytes over the link, where they are not those of the feature maps."""
    compressed = result["link.bytes"] != result["offload.bytes"] + result["prefetch.bytes"]
    return format_gib(result["link.bytes"]) if compressed else NOT_APPLICABLE


_COLUMNS: Sequence[tuple[Column, Cell]] = (
    (Column("fits\n"), _fits),
    (Column("short\nGiB"), _shortfall),
    (Column("performance\nvs oracle"), _performance),
    (Column("time\nms"), _ms("time_ms")),
    (Column("tokens\nper s", priority=1), _rate("tokens_per_s")),
    (Column("stalls\nms"), _ms("stall_ms")),
    (Column("peak\nGiB"), _gib("memory.peak_bytes")),
    (Column("offload\nGiB", priority=1), _gib("offload.bytes")),
    (Column("pinned\nGiB", priority=2), _gib("host.peak_pinned_bytes")),
    (Column("codec\nms", priority=4), _ms("encode_ms", "decode_ms")),
    (Column("Gist\nMFR", priority=3), _footprint_ratio),
    (Column("link GiB\n(compressed)", priority=5), _link_gib),
)


class _Comparison:
    """The table of schemes: a row for each, without the columns that have no number."""

    def __init__(self, results: Results, batches: Mapping[str, int] | None) -> None:
        active = {name: one for name, one in results.items() if not one["nothing_to_do"]}
        every = {name: [cell(one) for _, cell in _COLUMNS] for name, one in active.items()}
        self._used = [n for n in range(len(_COLUMNS)) if any(row[n] != NOT_APPLICABLE for row in every.values())]
        self._cells = {name: [row[n] for n in self._used] for name, row in every.items()}
        self._results, self._batches = results, batches

    def cells(self, name: str) -> list[str]:
        """What a scheme's row shows next to its name."""
        if self._results[name]["nothing_to_do"]:
            return [Spanning(self._results[name]["nothing_to_do"])]
        batch = [] if self._batches is None else [_batch(self._results[name], self._batches[name])]
        return [*batch, *self._cells[name]]

    def table(self, rows: SchemeRows) -> ScreenTable:
        """The rows of some schemes."""
        batch = [] if self._batches is None else [Column("batch\nsamples")]
        own = [replace(_COLUMNS[n][0], heading=_heading_of(_COLUMNS[n][0], self._results)) for n in self._used]
        columns = [Column("scheme", left=True, min_width=13), *batch, *own]
        return ScreenTable(columns, [(_marked(name, self._results[name]), *self.cells(name)) for name in rows.shown])


def _marked(name: str, result: Flat) -> str:
    return f"{name} *" if is_lossy(result) else name


def _row_notes(rows: SchemeRows, results: Results) -> Iterator[str]:
    """What stands for the schemes without a row of their own."""
    for name, others in rows.equal.items():
        yield f"as {name}: {_join_names(others, results)}"
    if rows.idle:
        yield f"nothing to do on this network (why: --all): {_join_names(rows.idle, results)}"
    fitting = sum(bool(results[name]["fits"]) for name in rows.left_out)
    failing = len(rows.left_out) - fitting
    texts = [f"{fitting} more that fit"] * bool(fitting) + [f"{failing} more that do not fit"] * bool(failing)
    if texts:
        yield f"not shown: {', '.join(texts)} (--all)"


def _not_simulated(reasons: Mapping[str, str], results: Results) -> Iterator[str]:
    """A line for each reason for which schemes have no result, with their names."""
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, its in reasons.items() if its == reason]
        yield f"{reason}: {_join_names(names, {**results, **{key: {} for key in reasons}})}"


def _heading_of(column: Column, results: Results) -> str:
    """A column's heading; what others are measured with is `eager` where the network is recorded."""
    return column.heading.replace("vs oracle", "vs eager") if is_recorded(results) else column.heading


def is_recorded(results: Results) -> bool:
    """Whether the network is one of today's, recorded operation by operation."""
    return any(result["provenance"].get("network_options") for result in results.values())


def _batch(result: Flat, batch: int) -> str:
    if not result["memory.capacity_bytes"]:
        return "any"
    return f"{batch:,}" if batch else "none"


def _counters(results: Results, names: Sequence[str]) -> ScreenTable:
    """The counters that the user names, a column each."""
    columns = [Column(name.replace(".", ".\n")) for name in names]
    return ScreenTable(
        [Column("scheme", left=True), *columns],
        [(name, *(_format_counter(result[key]) for key in names)) for name, result in results.items()],
    )


def _format_counter(value: Any) -> str:
    if value is None:
        return NOT_APPLICABLE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_significant(value)
    return f"{value:,}" if isinstance(value, int) else make_printable(str(value))


def shown_counters(results: Results, text: str) -> list[str]:
    """Return the counters that ``--columns`` names.

    Raises
    ------
    BuddysimError : no such counter
    """
    known = counter_columns(results)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            problem = f"--columns: {shortened(name)}: unknown counter: expected one that --columns list names"
            raise BuddysimError(problem + hint(name, known))
    return names


def counter_columns(results: Results) -> list[str]:
    """Return the counters that can be columns: those that are a single value."""
    first = next(iter(results.values()))
    return [key for key, value in first.items() if not isinstance(value, (dict, list))]


def _legend(results: Results, with_time: bool = False) -> Iterator[str]:
    """What signs in the table mean, and what lossy schemes do to the accuracy."""
    texts = []
    if any(not result["memory.capacity_bytes"] for result in results.values()):
        texts.append("oracle: unlimited GPU memory.")
    if with_time and any(not result["fits"] for result in results.values()):
        texts.append("( ): what it would be with enough memory.")
    if texts:
        yield " ".join(texts)
    for name, result in results.items():
        for note in result["provenance"]["decisions"]:
            if note.startswith(FASTER_WITH_LESS):
                yield f"{name}: {note}"
    lossy: dict[str, list[str]] = {}
    for name, result in results.items():
        accuracy = result["provenance"].get("accuracy", UNCHANGED)
        if accuracy != UNCHANGED:
            lossy.setdefault(accuracy, []).append(name)
    if lossy:
        trained = [network for end, network in _TRAINED.items() if any(points.endswith(end) for points in lossy)]
        where = f"; measured on {trained[0]}, Fashion-MNIST" if trained else ""
        for end in _TRAINED:
            lossy = {points.removesuffix(end): names for points, names in lossy.items()}
        texts = [f"{', '.join(names)} {points}" for points, names in lossy.items()]
        yield f"* lossy, accuracy: {'; '.join(texts)}{where}"


def _join_names(names: Sequence[str], results: Results) -> str:
    """Names of schemes; all of a family's in one word."""
    joined: list[str] = []
    for name in names:
        members = [other for other in results if _family(other) == _family(name)]
        prefix = _family(name)
        if len(members) > 2 and set(members) <= set(names) and all(member.startswith(prefix) for member in members):
            joined.append(f"{prefix}*")
        else:
            joined.append(name)
    return ", ".join(dict.fromkeys(joined))


def _grouped(texts: Mapping[str, str], results: Results) -> list[Sequence[str]]:
    """A row for each text, with the names that have it."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    return [(f"  {_join_names(names, results)}", text) for text, names in groups.items()]


_AMOUNT = re.compile(r"[\d.,]+ GiB$")


def _reasons(results: Results) -> list[Sequence[str]]:
    """Why each scheme that does not fit runs out of memory; of many schemes the failing request alone."""
    reasons = {
        name: format_out_of_memory(result)
        for name, result in results.items()
        if not (result["fits"] or result["nothing_to_do"])
    }
    if len(results) < _MANY_FROM:
        return _grouped(reasons, results)
    short = {name: reason.partition(", largest free block")[0] for name, reason in reasons.items()}
    return _grouped(_with_ranges(short), results)


def _with_ranges(texts: Mapping[str, str]) -> dict[str, str]:
    """The same texts, where those that differ only in their amount have the range of amounts."""
    amounts: dict[str, list[float]] = {}
    for text in texts.values():
        amount = _AMOUNT.search(text)
        if amount:
            amounts.setdefault(text[: amount.start()], []).append(float(amount[0].split()[0].replace(",", "")))
    ranges = {}
    for name, text in texts.items():
        stem = _AMOUNT.sub("", text)
        values = amounts.get(stem, []) if stem != text else []
        several = len(set(values)) > 1
        ranges[name] = f"{stem}{min(values):,.2f} - {max(values):,.2f} GiB" if several else text
    return ranges


def _next_batches(results: Results, beyond: Results) -> list[Sequence[str]]:
    return [(f"  {name}", format_out_of_memory(beyond[name])) for name in results if name in beyond]


def _limits(results: Results) -> list[Sequence[str]]:
    """How full the memories are under each scheme that fits."""
    limits = {
        name: _fullness(result) for name, result in results.items() if result["fits"] and not result["nothing_to_do"]
    }
    return _grouped({name: text for name, text in limits.items() if text}, results)


def _fullness(result: Flat) -> str:
    texts = []
    if result["memory.capacity_bytes"]:
        held = in_use(result) if result["provenance"].get("network_options") else result["memory.peak_bytes"]
        texts.append((held / result["memory.capacity_bytes"], "GPU memory", ""))
    pinned, capacity = result["host.peak_pinned_bytes"], result["host.pinned_capacity_bytes"]
    if pinned and capacity:
        texts.append((pinned / capacity, "pinned host memory", f" of {capacity / 2**30:,.0f} GiB"))
    ordered = sorted(texts, key=lambda text: -text[0])
    shown = [f"{memory} {format_whole_percent(fraction)}{of}" for fraction, memory, of in ordered]
    others = sum(result.get(f"stall.{cause}_ms", 0) for cause in ("gather", "reduce", "contention"))
    if others:
        shown.append(f"other GPUs take {format_whole_percent(others / result['time_ms'])} of the time")
    return ", ".join(shown)


def _decisions(results: Results, requested: bool) -> list[Sequence[str]]:
    """What each scheme decided, for a few schemes or on request."""
    texts = {
        name: _decision_text(result["provenance"]["decisions"])
        for name, result in results.items()
        if result["provenance"]["decisions"] and not result["nothing_to_do"]
    }
    return _grouped(texts, results) if requested or len(texts) <= _MAX_WITH_DECISIONS else []


def _decision_text(decisions: Sequence[str]) -> str:
    """Decisions as one text; the passes of vDNN's dynamic policy as the choice and what does not fit."""
    decisions = [decision for decision in decisions if not decision.startswith(FASTER_WITH_LESS)]
    passes = [re.fullmatch(r"((none|conv|all)\(([mp])\)): (fits|out of .*)", decision) for decision in decisions]
    if not all(passes):
        return "; ".join(decisions)
    outcomes = [match.groups() for match in passes if match]
    fitting = [outcome for outcome in outcomes if outcome[3] == "fits"]
    failing = [name for name, *_, outcome in outcomes if outcome != "fits"]
    if not fitting:
        return f"{' and '.join(failing)} do not fit"
    name, policy, algorithms, _ = fitting[-1]
    verb = "does" if len(failing) == 1 else "do"
    rest = f"; {' and '.join(failing)} {verb} not fit" if failing else ""
    return f"{name}: {_POLICIES[policy]}, {_ALGORITHMS[algorithms]}{rest}"
