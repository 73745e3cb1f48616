"""What a model's configuration leaves open: sequence, number formats, attention, loss, compilation.

`network_from_config` takes the fields as keywords, ``train`` and ``networks show`` as arguments, sweeps as axes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Literal

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.option import field_options, option_field
from buddysim.base.signature import described
from buddysim.training import recipes
from buddysim.training.options.adapter_options import AdapterOptions
from buddysim.training.options.allocator_settings import AllocatorSettings
from buddysim.training.options.sharding_options import ShardingOptions

Attention = Literal["eager", "efficient", "flash", "sdpa"]
ATTENTIONS: tuple[Attention, ...] = ("eager", "efficient", "flash", "sdpa")
HEADS = ("causal", "masked", "sequence-to-sequence", "image-text", "classification", "base")
LARGEST_SEQUENCE = 1 << 24
LARGEST_ACCUMULATION = 1 << 20
_CHUNKED = re.compile(r"chunked:([1-9][0-9]{0,5})")
_GROUP = "networks from a config.json"


@described
@dataclass(frozen=True)
class ConfigOptions(AdapterOptions, ShardingOptions):
    """How a model that a configuration describes is trained; checked when made.

    Raises
    ------
    BuddysimError
        a value out of range or an unknown name
    """

    head: str | None = option_field(
        str,
        "what the model's head is for, base has none; that of the class which the configuration names if not given",
        None,
        metavar="NAME",
        group=_GROUP,
        choices=HEADS,
    )
    sequence: int | None = option_field(
        int,
        "tokens of a sequence; 2048, or the configuration's positions where these are fewer, if not given",
        None,
        metavar="N",
        group=_GROUP,
    )
    recipe: str | None = option_field(
        str,
        "number formats of weights, products and optimizer state; the configuration's if not given",
        None,
        metavar="NAME",
        group=_GROUP,
        choices=recipes.REGISTRY.names,
    )
    optimizer_variant: str | None = option_field(
        str,
        "implementation of the optimizer: foreach, fused or for-loop of PyTorch's; bitsandbytes, paged or torchao of "
        "quantised ones; the first one if not given",
        None,
        metavar="NAME",
        group=_GROUP,
    )
    optimizer_in_backward: bool = option_field(
        bool, "update each weight in the backward pass, once its gradient is there", False, group=_GROUP
    )
    accumulation: int = option_field(
        int, "micro-steps of a batch each, whose gradients add up to one update", 1, metavar="N", group=_GROUP
    )
    attention: Attention | None = option_field(
        str,
        "how attention is computed: eager (scores in memory), efficient or flash (PyTorch's fused kernels), sdpa (the "
        "kernel that PyTorch selects for the tensors and their mask); if not given, flash where the class has it, sdpa "
        "of a padded batch, else eager",
        None,
        metavar="NAME",
        group=_GROUP,
    )
    loss: str = option_field(
        str,
        "how the loss is computed: whole, chunked:N (the logits of a part of the tokens at a time), fused",
        "whole",
        metavar="NAME",
        group=_GROUP,
    )
    compile: bool = option_field(
        bool, "save what torch.compile's partitioner keeps, instead of what eager layers save", False, group=_GROUP
    )
    packed: int = option_field(
        int, "documents packed into each sequence, which attend to themselves alone", 1, metavar="N", group=_GROUP
    )
    padding: float = option_field(
        float,
        "part of a batch's tokens that is padding; above 0 the batch has a mask, and padding is computed as any token",
        0.0,
        metavar="FRACTION",
        group=_GROUP,
    )
    expert_skew: float = option_field(
        float,
        "how unevenly tokens go to experts: 0 uniformly, s by rank to the power of -s (Zipf)",
        0.0,
        metavar="S",
        group=_GROUP,
    )
    expert_capacity: float | None = option_field(
        float,
        "tokens that an expert takes at most, relative to a uniform distribution; no limit if not given",
        None,
        metavar="FACTOR",
        group=_GROUP,
    )

    alloc_conf: str | None = option_field(
        str,
        "settings of PyTorch's allocator, as PYTORCH_CUDA_ALLOC_CONF has them; its defaults if not given",
        None,
        metavar="NAME:VALUE[,..]",
        group=_GROUP,
    )

    def __post_init__(self) -> None:
        declared = field_options(type(self))
        for name, option in declared.items():
            if getattr(self, name) is not None:
                option.check(name, getattr(self, name))
        if self.sequence is not None and not 1 <= self.sequence <= LARGEST_SEQUENCE:
            raise BuddysimError(f"sequence {self.sequence}: expected 1 to {LARGEST_SEQUENCE} tokens")
        if self.recipe in ("fp16", "fp16-master"):
            raise BuddysimError(f"recipe {self.recipe}: fp16 gradients underflow without a scaler: expected amp-fp16")
        if self.recipe is not None:
            recipes.REGISTRY.find(self.recipe)
        if self.attention not in (*ATTENTIONS, None):
            raise BuddysimError(f"attention {shortened(self.attention)}: expected one of {', '.join(ATTENTIONS)}")
        if not 1 <= self.accumulation <= LARGEST_ACCUMULATION:
            raise BuddysimError(f"accumulation {self.accumulation}: expected 1 to {LARGEST_ACCUMULATION} micro-steps")
        if self.loss not in ("whole", "fused") and not _CHUNKED.fullmatch(self.loss):
            raise BuddysimError(f"loss {shortened(self.loss)}: expected whole, fused or chunked:N (chunked:8)")
        if self.packed < 1:
            raise BuddysimError(f"packed {self.packed}: expected 1 or more documents")
        if not 0 <= self.padding < 1:
            raise BuddysimError(f"padding {self.padding!r}: expected 0 or more, below 1")
        if self.padding and self.packed > 1:
            raise BuddysimError(f"padding {self.padding!r}: expected 0: packed documents have no padding")
        self.allocator_settings()
        if not 0 <= self.expert_skew <= 10:
            raise BuddysimError(f"expert_skew {self.expert_skew!r}: expected 0 to 10")
        if self.expert_capacity is not None and not 0 < self.expert_capacity <= 1000:
            raise BuddysimError(f"expert_capacity {self.expert_capacity!r}: expected above 0, at most 1000")
        _ = self.adapters, self.sharding

    @property
    def loss_chunks(self) -> int | None:
        """The number of parts of a chunked loss; None for another loss."""
        chunked = _CHUNKED.fullmatch(self.loss)
        return int(chunked[1]) if chunked else None

    def allocator_settings(self) -> AllocatorSettings:
        """Return the settings of PyTorch's allocator."""
        return AllocatorSettings.parse(self.alloc_conf or "")

    def changed(self) -> dict[str, Any]:
        """Return the values that are not the defaults, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
