"""Contracts of architectures: their keys, and recorded steps of a small model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.trial_model import BATCH, operations_of
from buddysim.training import recipes
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.model_config import ModelConfig
from buddysim.training.architectures.read_config import ReadConfig, UnreadConfig, parse_config
from buddysim.training.autograd import Tape
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.recorded_step.run import record_step

#: Values of required keys whose names have these words, the first of them; other sizes are `_WIDTH`.
_VALUES = {"layer": 2, "num_heads": 16, "head": 32, "per_tok": 2, "vocab": 40_000}
_WIDTH = 256
_CLASS_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


def _misstated(subject: Subject) -> Iterator[str]:
    architecture: Architecture = subject.member
    for what, text in (("name", architecture.name), ("model_type", architecture.model_type)):
        if not isinstance(text, str) or not _CLASS_NAME.fullmatch(text.replace("_", "").replace("-", "")):
            yield f"{what} {text!r}: expected what a config.json can have there"
    for what, kind, base in (("config", architecture.config, ModelConfig), ("model", architecture.model, TracedModel)):
        if not (isinstance(kind, type) and issubclass(kind, base)):
            yield f"{what} is {kind!r}: expected a class derived from {base.__name__}"


def _content(subject: Subject) -> dict[str, Any]:
    """The content of a config.json of a small model: the keys that have no default."""
    content: dict[str, Any] = {"architectures": [subject.name]}
    for name, field in subject.member.config.model_fields.items():
        if field.is_required():
            content[name] = next((value for word, value in _VALUES.items() if word in name), _WIDTH)
    return content


def _config(subject: Subject) -> ReadConfig:
    return parse_config(UnreadConfig(_content(subject), "trial", "trial"))


def _step(subject: Subject, batch: int = BATCH, iterations: int = 1) -> Tape:
    recipe = recipes.REGISTRY.find("fp32")
    return record_step(_config(subject), ConfigOptions(), recipe, batch, "sgd", iterations)


def _damaged(subject: Subject) -> Iterator[str]:
    content = _content(subject)
    if len(content) == 1:
        yield "every key has a default: expected sizes without one, since a file without them is damaged"
    _config(subject)
    for name in list(content)[1:]:
        for wrong in ({name: 0}, {name: "many"}):
            try:
                parse_config(UnreadConfig({**content, **wrong}, "trial", "trial"))
                yield f"{wrong} is read: expected an error"
            except BuddysimError:
                pass


def _untrained(subject: Subject) -> Iterator[str]:
    tape = _step(subject)
    written = {one.storage for op in tape.operations if op.phase == "optimizer" for one in op.writes}
    for record in tape.storages:
        if record.kind == "parameter" and record.number not in written:
            yield f"weight {record.label} gets no gradient"


def _left(subject: Subject) -> Iterator[str]:
    once, twice = (list(_step(subject, iterations=number).live_bytes())[-1] for number in (1, 2))
    if once != twice:
        yield f"{twice - once} B more live after a second iteration than after the first"


def _by_batch(subject: Subject) -> Iterator[str]:
    one, two = (
        sum(product.flops for op in _step(subject, batch).operations for product in op.products) for batch in (2, 4)
    )
    if two != 2 * one:
        yield f"products of a batch of 2 take {one} FLOPs, of 4 {two}: expected twice as many"


def _different(subject: Subject) -> Iterator[str]:
    if operations_of(_step(subject)) != operations_of(_step(subject)):
        yield "two steps recorded alike differ"


CONTRACTS = {
    "architecture": (
        Contract("it names a class, its keys and its model", _misstated, safe=True),
        Contract("its sizes have no defaults, a wrong one is refused in one line", _damaged, safe=True),
        Contract("every weight gets a gradient, and is updated", _untrained, safe=True),
        Contract("an iteration leaves the memory that it found", _left),
        Contract("twice the batch takes twice the FLOPs of products", _by_batch),
        Contract("two steps recorded alike are equal", _different),
    )
}
