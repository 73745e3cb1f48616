"""A network from a PyTorch module (the optional extra ``torch``).

A module whose steps are all kinds of layers becomes a network of these: it is traced with ``torch.fx``, shapes are
those that PyTorch finds on its ``meta`` device, and the number of parameters is compared with PyTorch's own. Any other
module becomes a recorded network: PyTorch itself runs its training step, without data and by the rules of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.graph import Network

if TYPE_CHECKING:
    import torch
    from torch import nn

    from buddysim.training.networks.from_torch.cuda_rules import Attention
    from buddysim.training.networks.from_torch.traced_network import InputShapes
    from buddysim.training.networks.from_torch.traced_step import Recipe


def network_from_torch(
    module: nn.Module,
    input_shape: InputShapes,
    name: str | None = None,
    in_place_as_written: bool = False,
    *,
    recipe: Recipe = "fp32",
    attention: Attention = "flash",
    loss: Callable[[Any], torch.Tensor] | None = None,
) -> Network:
    """Return the network of a module.

    Parameters
    ----------
    input_shape : of one sample, for example ``(3, 224, 224)``; or by the names of the module's arguments their shapes,
        or tensors of one sample: then a training step is recorded in any case
    name : None: that of the module's class
    in_place_as_written : of kinds of layers: an activation runs in place only where the module says so; else wherever
        the graph allows it
    recipe, attention : of a recorded step: number formats (``"fp32"``, ``"amp-bf16"``, ``"bf16"``), and which of
        PyTorch's kernels scaled dot-product attention takes (``"flash"``, ``"efficient"``)
    loss : of a recorded step: from the module's output to a number; None: its ``loss``, or the sum of a tensor

    Raises
    ------
    BuddysimError
        a module that doesn't run on these inputs, or whose operations depend on values
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise BuddysimError("a PyTorch module needs PyTorch: pip install 'buddysim[torch]'") from None
    from collections.abc import Mapping

    from buddysim.training.networks.from_torch.functions import function_readers
    from buddysim.training.networks.from_torch.modules import module_readers
    from buddysim.training.networks.from_torch.reader import Reader
    from buddysim.training.networks.from_torch.traced_network import TracedNetwork

    name = name or type(module).__name__
    if not isinstance(input_shape, Mapping) and recipe == "fp32" and loss is None:
        try:
            readers = module_readers(), function_readers()
            return Reader(*readers, module, input_shape, name, in_place_as_written).read()
        except BuddysimError:
            pass  # no kind of layer
    network = TracedNetwork(module, input_shape, name, recipe, attention, loss)
    network.at(1)
    return network
