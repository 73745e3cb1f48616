"""Contracts of training schemes: a plan, whose iteration fits in what it says and takes a possible time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, not_a_word
from buddysim.training import schemes
from buddysim.training.driver import simulate_outcome
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.outcome import IterationOutcome
from buddysim.training.result import TrainingResult

_NETWORK, _BATCH, _MACHINE = "alexnet-cifar10", 64, "titan-x"
#: Memory of later trials, as fractions of what the first one takes.
_FRACTIONS = (0.9,)
#: Values of options that a scheme requires; a text is a file, which no trial has.
_VALUES: Mapping[type, Any] = {float: 1.5, int: 2, bool: True}


def _required(subject: Subject) -> Mapping[str, Any] | None:
    """A value for one of the options that the scheme requires; None where each names a file."""
    names = schemes.required_options(subject.name)
    values = {name: _VALUES.get(subject.member.OPTIONS[name].type) for name in names}
    usable = [(name, value) for name, value in values.items() if value is not None]
    return dict(usable[:1]) if usable or not names else None


def is_tried(subject: Subject) -> bool:
    """Whether an iteration of the scheme can be tried: it needs no file of the user."""
    return _required(subject) is not None


def _outcome(subject: Subject, **options: Any) -> IterationOutcome | None:
    """An iteration; None for a scheme that can't be tried without a file of the user."""
    required = _required(subject)
    if required is None:
        return None
    return simulate_outcome(_NETWORK, _BATCH, _MACHINE, subject.name, **required, **options)


@lru_cache(maxsize=1)
def _usual(subject: Subject) -> IterationOutcome | None:
    """The iteration that all contracts look at, simulated once."""
    return _outcome(subject)


def _misstated(subject: Subject) -> Iterator[str]:
    yield from not_a_word("its name", subject.name)
    yield from not_a_line("SUMMARY", subject.member.SUMMARY[subject.name])
    declared = getattr(subject.member, "OPTIONS", {})
    for name in sorted(set(declared) & set(TrainingOptions.__dataclass_fields__)):
        yield f"option {name!r} is one of every training already"
    for name, option in declared.items():
        if option.default is not None:
            option.check(name, option.default)
    for name in sorted(set(schemes.required_options(subject.name)) - set(declared)):
        yield f"REQUIRES_ONE_OF has {name!r}, which OPTIONS lacks"
    schemes.options()  # refuses an option that another scheme declares differently


def _misplanned(subject: Subject) -> Iterator[str]:
    outcome = _usual(subject)
    if outcome is None:
        return
    if outcome.plan.scheme != subject.name:
        yield f"its plan is of {outcome.plan.scheme!r}: expected {subject.name}"
    if (outcome.capacity is None) != bool(getattr(subject.member, "UNLIMITED", False)):
        yield "UNLIMITED isn't what its plan says of the GPU's memory"
    known = range(len(outcome.network.layers))
    for what, layers in (("stash", outcome.plan.stash), ("algorithms", outcome.plan.algorithms)):
        if wrong := sorted(set(layers) - set(known)):
            yield f"{what} has layers {wrong}: expected numbers below {len(known)}"
    said = TrainingResult.from_outcome(outcome).provenance
    for text in said["assumptions"].values():
        if any(text in note for note in said["decisions"]):
            yield f"a note repeats an assumption: {text!r}"


def _unfit(subject: Subject) -> Iterator[str]:
    first = _usual(subject)
    if first is None:
        return
    yield from _more_than_said(first)
    if first.capacity is not None:
        for fraction in _FRACTIONS:
            limited = _outcome(subject, memory_bytes=int(fraction * first.placement.high_water))
            assert limited is not None
            yield from _more_than_said(limited)


def _more_than_said(outcome: IterationOutcome) -> Iterator[str]:
    peak, high_water = outcome.all_layers.usage.peak_bytes, outcome.placement.high_water
    capacity = outcome.capacity
    if outcome.fits and capacity is not None and high_water > capacity:
        yield f"it fits in {capacity} B and takes {high_water} B"
    if high_water < peak:
        yield f"its addresses end at {high_water} B, its tensors take {peak} B"
    kinds = sum(outcome.all_layers.usage.at_peak.values())
    if kinds != peak:
        yield f"kinds of tensors take {kinds} B at the peak of {peak} B"


def _impossible_time(subject: Subject) -> Iterator[str]:
    outcome = _usual(subject)
    if outcome is None:
        return
    computed = sum(step.compute_ps for step in outcome.program.steps)
    in_sequence = computed + sum(task.duration_ps for task in outcome.program.tasks)
    if not outcome.baseline.time_ps <= outcome.time_ps <= in_sequence:
        yield (
            f"an iteration takes {outcome.time_ps} ps: expected from {outcome.baseline.time_ps} (the oracle's) "
            f"to {in_sequence} (all computation and copies in sequence)"
        )
    if outcome.time_ps < computed:
        yield f"an iteration takes {outcome.time_ps} ps, its computation alone {computed} ps"


def _different(subject: Subject) -> Iterator[str]:
    outcomes = (_usual(subject), _outcome(subject))
    one, other = ({} if each is None else TrainingResult.from_outcome(each).to_dict() for each in outcomes)
    for key in sorted(one.keys() - {"provenance"}):
        if one[key] != other[key]:
            yield f"{key}: {one[key]} and {other[key]}"


CONTRACTS = {
    "training scheme": (
        Contract("it has a name, a summary, options of its own", _misstated, safe=True),
        Contract("it plans each layer of a network, under its name", _misplanned, safe=True),
        Contract("an iteration that fits takes no more memory than there is", _unfit),
        Contract("an iteration takes from the oracle's time to that of all work in sequence", _impossible_time),
        Contract("two iterations alike give the same result", _different),
    )
}
