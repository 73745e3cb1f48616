"""Contracts of analyses: a table of plain values, the same again, that depends on the options it reads alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from buddysim.analyses import AnalysisOptions, AnalysisResult, analyse
from buddysim.base.errors import BuddysimError
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line
from buddysim.contracts.trial_trace import trial_trace
from buddysim.trace import open_trace

_PLAIN = (str, int, float, type(None))
#: Options with which results may differ; files of other traces, and whether half a trace is enough, aside.
_OTHERS: Mapping[str, Any] = {
    "compressors": ("bdi", "fpc"),
    "machine": "v100",
    "threshold": 0.05,
    "thresholds": (0.15, 0.25),
    "metadata_sizes": (2048,),
    "metadata_lines": (64,),
}
#: Few points, so that a trial is quick.
_OPTIONS = AnalysisOptions(thresholds=(0.1, 0.3), metadata_sizes=(1024, 4096), metadata_lines=(32,))


def _result(subject: Subject, options: AnalysisOptions = _OPTIONS) -> AnalysisResult:
    path = subject.folder / "trial.bin"
    with open_trace(path if path.exists() else trial_trace(path)) as trace:
        return analyse(trace, subject.name, options)


def _misstated(subject: Subject) -> Iterator[str]:
    yield from not_a_line("SUMMARY", subject.member.SUMMARY)
    known = {field.name for field in fields(AnalysisOptions)}
    for name in getattr(subject.member, "READS", ()):
        if name not in known:
            yield f"READS has {name!r}: expected names of {', '.join(sorted(known))}"


def _no_table(subject: Subject) -> Iterator[str]:
    result = _result(subject)
    yield from not_a_line("its title", result.title)
    if tuple(getattr(subject.member, "COLUMNS", result.columns)) != result.columns:
        yield f"columns {', '.join(result.columns)}: expected those of COLUMNS"
    if not result.rows:
        yield "no rows"
    for number, row in enumerate(result.rows):
        if len(row) != len(result.columns):
            yield f"row {number}: {len(row)} values: expected {len(result.columns)}, one for each column"
            continue
        for name, value in zip(result.columns, row, strict=True):
            if type(value) not in _PLAIN:
                yield f"row {number}: {name} is a {type(value).__name__}: expected a plain text or number, or None"
            elif isinstance(value, int | float) and not _in_range(name, value):
                yield f"row {number}: {name} = {value}: expected {'0 to 1' if _is_fraction(name) else '0 or more'}"


def _is_fraction(name: str) -> bool:
    return name.endswith("_fraction")


def _in_range(name: str, value: float) -> bool:
    if _is_fraction(name):
        return 0 <= value <= 1
    return value >= 0 or not name.endswith(("_bytes", "_ps"))


def _other_rows(subject: Subject) -> Iterator[str]:
    if _result(subject) != _result(subject):
        yield "two analyses of the same trace differ"


def _read(subject: Subject) -> Iterator[str]:
    usual = _result(subject)
    for name, other in _OTHERS.items():
        is_read = name in getattr(subject.member, "READS", _OTHERS)
        if not is_read and _result(subject, replace(_OPTIONS, **{name: other})) != usual:
            yield f"its result depends on {name}, which READS lacks"


def _without_contents(subject: Subject) -> Iterator[str]:
    with open_trace(trial_trace(subject.folder / "empty.bin", with_contents=False)) as trace:
        try:
            analyse(trace, subject.name, _OPTIONS)
        except BuddysimError:
            pass
        except Exception as error:
            yield f"{type(error).__name__}: {error}: expected a table or a BuddysimError"


CONTRACTS = {
    "analysis": (
        Contract("its summary is a line, it reads options that there are", _misstated),
        Contract("its result is a table of plain values, fractions from 0 to 1", _no_table, safe=True),
        Contract("two analyses of the same trace give the same", _other_rows),
        Contract("options that it does not read do not change it", _read),
        Contract("a trace without memory contents gives a table or an error of one line", _without_contents),
    )
}
