"""What a step must have so that the host can update its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.training import recipes
from buddysim.training.not_simulated import NotSimulatedError

if TYPE_CHECKING:
    from buddysim.training.networks.recorded.network import RecordedNetwork

_SEVERAL_GPUS = ("ddp", "fsdp", "zero1", "zero2", "zero3")


def check_host_updates(network: RecordedNetwork, scheme: str) -> None:
    """Refuse what the host's updates aren't simulated with.

    Raises
    ------
    NotSimulatedError
        several GPUs, updates in the backward pass, or a recipe with a scaler
    """
    options = network.options
    for name in _SEVERAL_GPUS:
        if int(str(options.get(name) or 1)) > 1:
            raise NotSimulatedError(scheme, f"not simulated with {name}", "one GPU")
    if options.get("optimizer_in_backward"):
        raise NotSimulatedError(scheme, "updates once per step, on the host", "no optimizer_in_backward")
    recipe = recipes.REGISTRY.find(str(options["recipe"]))
    if recipe.scaler:
        raise NotSimulatedError(scheme, f"recipe {recipe.name} scales gradients on the GPU", "bf16 or fp32")
