"""vDNN's static policies (Section III-C): all X, those of CONV layers, or none, with slow or fast CONV algorithms."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.stash import Offload, Stash
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

_POLICIES = {
    "none": "no offload, feature maps freed layer by layer",
    "all": "offload of every feature-extraction layer's input",
    "conv": "offload of every CONV layer's input",
}
_ALGORITHMS = {"m": "CONV algorithms without workspace", "p": "the fastest CONV algorithms"}
SUMMARY = {
    f"vdnn-{policy}-{end}": f"{_POLICIES[policy]}; {_ALGORITHMS[end]}" for policy in _POLICIES for end in _ALGORITHMS
}
FAMILY = "vdnn"
ORDER = 100
FACTS = SchemeFacts(
    source="Rhu et al., vDNN, MICRO 2016, sections III and IV-A",
    moves="X of CONV layers, or of all feature-extraction layers, once no later layer reads it; state "
    "within layers stays",
    costs="copies that computations do not hide",
    applies="`all`: all networks; `conv`: CONV layers",
    check="`docs/validation/training-papers.md`; `tests/training/schemes/test_vdnn.py`; on transformers "
    "`test_vdnn_recorded.py`",
)
ACCURACY = UNCHANGED


def offloaded(network: Network, policy: str) -> frozenset[int]:
    """The layers that offload their X under ``"none"``, ``"conv"`` or ``"all"``.

    Layers that run in place read no X of their own, and the classification layers are untouched (Section IV-A).
    """
    return frozenset(
        layer.index
        for layer in network.layers[1:]
        if layer.part == "features"
        and not layer.in_place
        and (policy == "all" or (policy == "conv" and layer.kind == "conv"))
    )


def nothing_to_offload(network: Network, policy: str) -> str:
    """Return why a policy offloads nothing of a network."""
    layers = "CONV layers" if policy == "conv" else "feature-extraction layers"
    if not offloaded(network, policy):
        return f"nothing to offload: no {layers}"
    return f"nothing to offload: later layers read the inputs of all {layers}"


def moved_inputs(network: Network, layers: AbstractSet[int]) -> dict[int, Stash]:
    """Stashes of the feature maps that these layers offload: every X that no later layer reads (Fig. 3)."""
    return {
        owner: Stash(offload=Offload())
        for index in sorted(layers)
        for owner in map(network.buffer_of, network.layers[index].inputs)
        if network.last_consumer(owner) == index and owner != network.buffer_of(index)
    }


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """One of the static policies."""
    policy = name.split("-")[1]
    algorithms = _algorithms.for_variant(name, network, batch, cost)
    stash = moved_inputs(network, offloaded(network, policy))
    nothing = nothing_to_offload(network, policy) if policy != "none" and not stash else ""
    return Plan(name, algorithms, stash=stash, prefetch=options.prefetch, nothing_to_do=nothing)
