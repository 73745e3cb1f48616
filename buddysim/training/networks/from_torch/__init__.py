"""A network from a PyTorch module (the optional extra ``torch``).

The module is traced with ``torch.fx``: its forward step must not depend on values. Shapes are those that PyTorch finds
on its ``meta`` device, so nothing is computed; every layer's shape and the number of parameters are compared with
PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.graph import Network

if TYPE_CHECKING:
    from torch import nn


def network_from_torch(
    module: nn.Module, input_shape: Sequence[int], name: str | None = None, in_place_as_written: bool = False
) -> Network:
    """The network of a module.

    Parameters
    ----------
    input_shape : of one sample, for example ``(3, 224, 224)``
    name : None: that of the module's class
    in_place_as_written : an activation runs in place only where the module says so; else wherever the graph allows it
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise BuddysimError("a PyTorch module needs PyTorch: pip install 'buddysim[torch]'") from None
    from buddysim.training.networks.from_torch.reader import Reader

    return Reader(module, input_shape, name or type(module).__name__, in_place_as_written).read()
