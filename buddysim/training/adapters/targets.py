"""Which modules get adapters: those that are named, or those that the PEFT library adapts in such a model.

Names are those of the model's attributes, as in its state dict (``q_proj``); a name stands for all modules whose path
ends with it. ``all`` are the linear layers of all blocks, which leaves out the output matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.gpt2 import Conv1D
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.module import Module
from buddysim.training.quantized.linear import QuantizedLinear

#: By ``model_type`` (peft 0.19, ``utils/constants.py``: TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING). Of classes
#: that are not listed there, the projections of queries and values.
DEFAULTS = {
    "bert": ("query", "value"),
    "bloom": ("query_key_value",),
    "gpt2": ("c_attn",),
    "gpt_neox": ("query_key_value",),
    "mpt": ("Wqkv",),
    "phi3": ("qkv_proj",),
    "t5": ("q", "v"),
}
_QUERIES_AND_VALUES = ("q_proj", "v_proj")
ALL = "all"


def targets(model: Module, model_type: str, names: Sequence[str]) -> dict[str, Module]:
    """Return the modules that get adapters, by path.

    Parameters
    ----------
    names : of modules; the defaults of the class where there are none

    Raises
    ------
    BuddysimError
        a name that no linear layer has
    """
    linear = linear_layers(model)
    blocks = tuple(f"{path}." for path, _ in blocks_of(model))
    known = sorted({path.rpartition(".")[2] for path in linear})
    selected: set[str] = set()
    for name in names or DEFAULTS.get(model_type, _QUERIES_AND_VALUES):
        if name == ALL:
            selected |= {path for path in linear if path.startswith(blocks)}
            continue
        matches = {path for path in linear if path == name or path.endswith(f".{name}")}
        if not matches:
            raise BuddysimError(
                f"lora: no linear layer is named {shortened(name)}: "
                f"expected some of {', '.join([ALL, *known])}{hint(name, known)}"
            )
        selected |= matches
    return {path: module for path, module in linear.items() if path in selected}


def linear_layers(model: Module) -> dict[str, Module]:
    """Products with a weight, by path."""
    kinds = Linear | Conv1D | QuantizedLinear
    return {path: one for path, one in model.named_modules() if isinstance(one, kinds)}


def replace(model: Module, path: str, module: Module) -> None:
    """Make a module what a path of the model leads to, instead of another one."""
    *parents, name = path.split(".")
    owner: Module | list[Module] = model
    for part in parents:
        owner = owner[int(part)] if isinstance(owner, list) else getattr(owner, part)
    if isinstance(owner, list):
        owner[int(name)] = module
    else:
        setattr(owner, name, module)
