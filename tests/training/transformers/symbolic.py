"""A training step of the package's own symbolic models, as the command line runs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.read_config import read_config
from buddysim.training.autograd import Autocast, Tape
from buddysim.training.autograd.dtypes import DTYPES, bfloat16, float32
from buddysim.training.options.config_options import Attention, ConfigOptions


def symbolic_step(
    config: dict[str, Any],
    batch: int,
    sequence: int | None,
    recipe: str,
    attention: Attention,
    prepare: Callable[[TracedModel], None] = lambda model: None,
) -> Tape:
    """Forward, loss and backward of a configuration; `sequence`: None for images.

    Parameters
    ----------
    prepare : changes the model before the first step
    """
    read = read_config(config)
    own = bfloat16 if recipe == "bf16" else float32
    with Tape(default_dtype=own) as tape:
        options = ConfigOptions(sequence=sequence, recipe=recipe, attention=attention)
        model = read.architecture.model(read.keys, options)
        prepare(model)
        tape.settle()
        inputs = {
            name: tape.input(one.shape, own if one.dtype == "float" else DTYPES[one.dtype], label=name)
            for name, one in model.input_shapes(batch).items()
        }
        with tape.in_phase("forward"), Autocast(tape, bfloat16) if recipe == "amp-bf16" else nullcontext():
            loss = model(**inputs)
        loss.backward()
        del loss
    return tape
