"""What the record of a training step assumes, by the options that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training import recipes

#: Assumptions of an option with another value than its neutral one: subject, neutral value, sentence.
_OF_OPTIONS: Mapping[str, tuple[str, Any, str]] = {
    "lora": ("adapters", None, "Adapters are those of torchtune's or PEFT's code, without dropout."),
    "qlora": (
        "quantised_weights",
        False,
        "Frozen weights are in NF4: blocks of 64, whose scales are in blocks of 256, as torchao or bitsandbytes has "
        "them.",
    ),
    "ddp": ("sharding", None, "DDP's buckets are those of its second step; the first GPU is simulated."),
    "fsdp": ("sharding", None, "FSDP2 of each block and of the model; the GPU with the largest parts is simulated."),
    "zero1": ("sharding", None, "DeepSpeed's stage 1 with its default limits; the GPU with the largest part."),
    "zero2": ("sharding", None, "DeepSpeed's stage 2 with its default limits; the GPU with the largest part."),
    "zero3": ("sharding", None, "DeepSpeed's stage 3 with its default limits; the GPU with the largest part."),
    "accumulation": (
        "accumulation",
        1,
        "Micro-steps between the first and the last one are equal; memory is that of three of them.",
    ),
    "optimizer_in_backward": (
        "optimizer_in_backward",
        False,
        "Each weight has an optimizer of its own, which runs when its gradient is there.",
    ),
    "compile": (
        "compile",
        False,
        "What compiled code saves follows rules read from torch.compile's partitioner, not its search: errors of "
        "either sign.",
    ),
    "dequantised": (
        "dequantised_weights",
        None,
        "Weights that the file has in 4 or 8 bits are trained in its dtype, as transformers dequantises them.",
    ),
    "padding": (
        "padding",
        0.0,
        "Padding is computed and saved as any token is: its fraction changes nothing.",
    ),
    "expert_skew": ("experts", 0.0, "Tokens go to experts by a power of their rank, the same in every layer."),
}
_UPDATE = (
    "The optimizer's step is that of torch.optim's kernels, or of the library that is named, in the recipe's formats."
)


def step_assumptions(options: Mapping[str, Any], optimizer: str) -> dict[str, str]:
    """Return the assumptions of a recorded step, by subject.

    Parameters
    ----------
    options : what a model's configuration leaves open, as it is simulated
    optimizer : its name
    """
    assumed = {
        subject: text for name, (subject, neutral, text) in _OF_OPTIONS.items() if options.get(name, neutral) != neutral
    }
    if optimizer != "none":
        assumed["optimizer"] = _UPDATE
    name = str(options.get("recipe"))
    if name in recipes.REGISTRY:
        recipe = recipes.REGISTRY.find(name)
        if recipe.scaler:
            assumed["scaler"] = "No gradient is infinite: no update is skipped."
        if recipe.masters:
            assumed["masters"] = (
                "Masters in fp32 are copies that each update writes back; shards are masters themselves."
            )
    return assumed
