"""Contracts of synthetic workloads: parameters, and a sound trace that they determine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, not_a_word
from buddysim.trace import open_trace, verify_trace

_WRONG = ("-1", "0", "1.5", "10000000000000000000000", "mumble", "")


def _undescribed(subject: Subject) -> Iterator[str]:
    yield from not_a_word("name", subject.name)
    yield from not_a_line("the docstring's first line", (subject.member.__doc__ or "").partition("\n")[0])
    for name, _, description in subject.member.parameters():
        if not description:
            yield f"parameter {name}: expected a description"


def _other_settings(subject: Subject) -> Iterator[str]:
    defaults = {name: default for name, default, _ in subject.member.parameters()}
    if subject.member.from_settings(defaults) != subject.member():
        yield "its defaults as text are another workload"
    trial = _trial(subject)
    settings = dict(setting.split("=", 1) for setting in trial.settings())
    if subject.member.from_settings(settings) != trial:
        yield f"the settings that its trace states, {settings}, are another workload"


def _taken(subject: Subject) -> Iterator[str]:
    for name in subject.member.model_fields:
        for text in _WRONG:
            try:
                subject.member.from_settings({name: text})
            except BuddysimError:
                continue
            except Exception as error:
                yield f"{name} = {text!r}: {type(error).__name__}: {error}: expected a BuddysimError"


def _trial(subject: Subject) -> Any:
    return subject.member.from_settings(subject.member.trial)


def _written(subject: Subject, name: str) -> Path:
    path = subject.folder / f"{subject.name}-{name}.bin"
    if not path.exists():
        _trial(subject).save(path)
    return path


def _unsound(subject: Subject) -> Iterator[str]:
    with open_trace(_written(subject, "sound")) as trace:
        verify_trace(trace)
        if not trace.kernels or not any(kernel.memory_instructions for kernel in trace.kernels):
            yield "its trace has no kernel that accesses memory"
        if not trace.provenance.assumptions.get("contents"):
            yield "its trace doesn't state where its contents come from (assumptions)"


def _different(subject: Subject) -> Iterator[str]:
    one, other = (_written(subject, name).read_bytes() for name in ("sound", "again"))
    if one != other:
        yield "two files of the same settings have different bytes"


CONTRACTS = {
    "synthetic workload": (
        Contract("its name is a word, it and its parameters are described", _undescribed),
        Contract("its settings as text make the same workload", _other_settings),
        Contract("a wrong value of a parameter is refused in one line", _taken),
        Contract("its trace is sound: each access lies within an allocation", _unsound),
        Contract("the same settings make the same file", _different),
    )
}
