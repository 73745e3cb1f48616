"""Weights that lie in host memory or on NVMe drives: plain data, in a plan's rules of saving."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.options.optimizer_offload import HostDevice


@dataclass(frozen=True)
class WeightsOffload:
    """How weights are fetched, block by block.

    Attributes
    ----------
    ahead : blocks whose weights are fetched ahead, on a stream of their own; 0: fetched between the computations
    device : where the weights lie
    """

    ahead: int = 1
    device: HostDevice = "host"
