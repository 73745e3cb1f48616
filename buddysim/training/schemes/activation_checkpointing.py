"""Activation checkpointing as `torch.utils.checkpoint` does it without re-entry: parts run again in the backward pass.

A model of a configuration is recorded with blocks that are recomputed (`training.saving`), operator by operator as
PyTorch runs it. Other networks are cut where all that later layers read is one feature map. As in
`checkpoint_sequential`, segments have the same number of pieces. Each but the last saves only its input and is
recomputed before its backward steps, up to the last tensor that those read, and the last segment saves everything.
Layers save what PyTorch's do. Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), choose sqrt(n).
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.option import Option, values
from buddysim.training.iteration.allocators import POOL, LiveSetCounter
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.checkpoint_rule import CHOICES, CheckpointRule, checkpoint_rules
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, eager

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"activation-checkpointing": "recomputation of blocks or segments from their saved inputs, as PyTorch does"}
FAMILY = "pytorch"
ORDER = 510
FACTS = SchemeFacts(
    source="PyTorch 2.13, `torch/utils/checkpoint.py`, without re-entry; torchtitan, `activation_checkpoint.py`",
    moves="nothing: saved tensors of blocks are dropped",
    costs="forward work, once more",
    applies="all networks with blocks or a cut",
    check="gradients, events and saved tensors of 15 classes equal to PyTorch "
    "(`tests/training/transformers/test_checkpoint.py`)",
)
ACCURACY = UNCHANGED
#: Shared with `offload-activations`.
CHECKPOINT = Option(
    str,
    f"what is recomputed: {CHOICES}; every block of a model's configuration, about the square root of n segments of "
    "another network, if not given",
    "NAME",
)
OPTIONS = {
    "checkpoint": CHECKPOINT,
    "early_stop": Option(bool, "end a recomputation with the last tensor that is needed", default=True),
}


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Nothing moves; the fastest CONV algorithms.

    Raises
    ------
    BuddysimError
        a choice that the network doesn't have
    """
    selected = values(OPTIONS, options.extra)
    choice, early_stop = selected["checkpoint"], bool(selected["early_stop"])
    if isinstance(network, RecordedNetwork) and network.record_with is not None:
        rules = checkpoint_rules(choice or "block", network.blocks, early_stop)
        return Plan(
            name, {}, as_recorded=True, allocator=LiveSetCounter(), saving=SavingRules(rules),
            nothing_to_do="nothing to recompute: the model has no blocks" * (not rules),
            notes=(checkpoint_note(rules, network.blocks),), assumptions={"memory": eager.MEMORY},
        )  # fmt: skip
    parts = segments(network, choice)
    return replace(
        eager.as_autograd_saves(network, batch, cost, name),
        allocator=POOL,
        segments=parts,
        nothing_to_do="nothing to recompute: no point at which one feature map divides the network" * (not parts),
        notes=(f"{len(parts)} segments recomputed",),
    )


def rules_and_notes(choice: str | None, network: RecordedNetwork) -> tuple[tuple[CheckpointRule, ...], tuple[str, ...]]:
    """Return the rules of a scheme that recomputes nothing by itself, and what is recomputed."""
    rules = checkpoint_rules(choice, network.blocks) if choice else ()
    return rules, (checkpoint_note(rules, network.blocks),) if rules else ()


def checkpoint_note(rules: tuple[CheckpointRule, ...], blocks: int) -> str:
    """Return what is recomputed, in one line."""
    regions = [region for rule in rules for region in rule.regions()]
    recomputed = sum(map(len, regions))
    text = f"{recomputed} of {blocks} blocks recomputed"
    if len(regions) != recomputed:
        text += f" in {len(regions)} segments"
    if rules and rules[0].stored is not None:
        every = "every second " if rules[0].stored.every_second_product else ""
        text += f", but for the results of {every}{', '.join(rules[0].stored.names[:2])} and others"
    return text


def split_points(network: Network) -> tuple[tuple[int, int], ...]:
    """First and last layer of the smallest parts that the network can be cut into, the input left out.

    A cut follows a layer whose output alone is read by the layers after it, and never divides an in-place chain.
    Outputs of a recorded network that need no gradient don't count.
    """
    last_reader = [max(network.consumers(layer.index), default=layer.index) for layer in network.layers]
    if network.recorded:  # positions, masks and labels are arguments of every segment
        for layer in network.layers:
            if not network.has_gradient(layer.index):
                last_reader[layer.index] = layer.index
    parts = []
    first, reach = 1, last_reader[0]
    for layer in network.layers[1:]:
        cuts_before = reach <= layer.index  # nothing but this layer's output is read later on
        reach = max(reach, last_reader[layer.index])
        following = layer.index + 1
        chained = following < len(network.layers) and network.layers[following].in_place
        if cuts_before and not chained:
            parts.append((first, layer.index))
            first = following
    if first < len(network.layers):
        parts.append((first, len(network.layers) - 1))
    return tuple(parts)


def segments(network: Network, choice: str | None = None) -> tuple[tuple[int, int], ...]:
    """First and last layer of each part that is recomputed.

    Parameters
    ----------
    choice : ``block``: every smallest part; ``every:K``: the K-th, 2K-th, ..; ``segments:N``: N of equally many, the
        last of which takes the remainder and isn't recomputed, as `checkpoint_sequential`; None: about sqrt(n) of these

    Raises
    ------
    BuddysimError
        a choice by operators, which the layers of such networks don't have
    """
    parts = split_points(network)
    if len(parts) < 2:
        return ()
    if choice is None:
        choice = f"segments:{max(1, isqrt(len(parts)))}"
    if choice == "selective" or choice.startswith("operators:"):
        raise BuddysimError(
            f"checkpoint {shortened(choice)}: expected block, every:K or segments:N: {network.name} has no operators"
        )
    last = parts[-1][1]
    return tuple(
        (parts[region[0]][0], min(parts[region[-1]][1], last))
        for rule in checkpoint_rules(choice, len(parts))
        for region in rule.regions()
    )
