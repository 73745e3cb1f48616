"""The time of a collective: steps from GPU to GPU, each with a latency, and bytes at the rate of a GPU's link.

As NCCL's own table of latencies and bandwidths (``src/graph/tuning.cc``): the algorithm (ring, tree, reduction in the
switch) and the protocol (for small, medium or large messages) that are fastest for a size are the ones that run. In a
ring of n GPUs, an all-gather or a reduce-scatter has n - 1 steps, and each GPU sends (n - 1)/n of the whole tensor; an
all-reduce is both. In a double binary tree an all-reduce has 2 log2 n steps, and each GPU sends twice the tensor. A
GPU's own part, one n-th, is copied within its memory.

Constants are fitted for each kind of link (docs/validation/collectives.md). Between nodes, every GPU has its part of
the network: a ring sends from node to node what it sends from GPU to GPU.
"""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.machine.training import gpu_links
from buddysim.machine.units import parse_bandwidth, parse_time
from buddysim.training.collectives.constants import LinkConstants, ProtocolConstants, link_constants

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine

_PS_PER_US = 10**6

#: For each kind: steps in a ring of n GPUs in units of n - 1; bytes sent, in units of (n - 1)/n of the tensor.
_RING = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2, "reduce": 1, "broadcast": 1}
KINDS = tuple(_RING)


class CollectiveTimes:
    """Times of collectives between GPUs of one kind.

    Parameters
    ----------
    machine : whose link between GPUs it is

    Attributes
    ----------
    link : name of the link
    constants : of the link

    Raises
    ------
    BuddysimError
        a machine whose file names no link to other GPUs
    """

    def __init__(self, machine: TrainingMachine) -> None:
        if machine.training.gpu_link is None:
            raise BuddysimError(f"{machine.name}: no link to other GPUs: expected a machine with training.gpu_link")
        self.link = machine.training.gpu_link
        self.constants = link_constants()[self.link]
        table = gpu_links()[self.link]
        self.node_gpus = int(table["node_gpus"])
        network = table.get("network_bandwidth")
        self._network_gb_per_s = None if network is None else float(parse_bandwidth(network).bytes_per_s({})) / 1e9
        self._network_us = 0.0 if network is None else float(parse_time(table["network_latency"]).picoseconds({})) / 1e6

    def time_ps(self, kind: str, byte_count: int, gpus: int) -> int:
        """Return the time of a collective, in picoseconds.

        Parameters
        ----------
        kind : one of `KINDS`
        byte_count : of the whole tensor
        gpus : that take part

        Raises
        ------
        BuddysimError
            more GPUs than a node of this machine has, where nothing links nodes
        """
        if gpus < 2:
            return 0
        if gpus <= self.node_gpus:
            return round(collective_us(self.constants, kind, byte_count, gpus) * _PS_PER_US)
        if self._network_gb_per_s is None:
            raise BuddysimError(
                f"{gpus} GPUs linked by {self.link}: expected at most {self.node_gpus}, or a machine with a network "
                "between nodes"
            )
        return round(self._between_nodes_us(kind, byte_count, gpus) * _PS_PER_US)

    def _between_nodes_us(self, kind: str, byte_count: int, gpus: int) -> float:
        assert self._network_gb_per_s is not None
        nodes = ceil(gpus / self.node_gpus)
        rate = min(self.constants.large.gb_per_s, self._network_gb_per_s * self.node_gpus)
        large = ProtocolConstants(self.constants.large.launch_us, self.constants.large.hop_us, rate)
        steps = _RING[kind] * (nodes - 1)
        return _ring_us(large, self.constants.own_gb_per_s, kind, byte_count, gpus) + steps * self._network_us


def collective_us(constants: LinkConstants, kind: str, byte_count: int, gpus: int) -> float:
    """Return the microseconds of a collective within a node: those of the fastest algorithm and protocol."""
    pairs = gpus / 2 if constants.shared else 1
    times_us = []
    for protocol in (constants.small, constants.medium, constants.large):
        shared = ProtocolConstants(protocol.launch_us, protocol.hop_us, protocol.gb_per_s / pairs)
        times_us.append(_ring_us(shared, constants.own_gb_per_s, kind, byte_count, gpus))
        if kind == "all_reduce":
            hops = 2 * log2(gpus)
            times_us.append(shared.launch_us + shared.hop_us * hops + 2 * byte_count / (shared.gb_per_s * 1e3))
    switch = constants.switch
    if kind == "all_reduce" and switch is not None and gpus >= switch.min_gpus:
        times_us.append(switch.launch_us + byte_count / (switch.gb_per_s * 1e3))
    return min(times_us)


def _ring_us(protocol: ProtocolConstants, own_gb_per_s: float, kind: str, byte_count: int, gpus: int) -> float:
    rounds = _RING[kind]
    sent = byte_count if kind in ("reduce", "broadcast") else rounds * byte_count * (gpus - 1) / gpus
    own = byte_count / gpus / (own_gb_per_s * 1e3)
    return protocol.launch_us + protocol.hop_us * rounds * (gpus - 1) + sent / (protocol.gb_per_s * 1e3) + own
