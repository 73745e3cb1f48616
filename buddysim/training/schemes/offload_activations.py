"""Offload of saved activations to pinned host memory, next to the computations.

A model of a configuration is recorded with hooks that copy what autograd saves, as torchtune's `OffloadActivations`
does it (`training.autograd.offload`): one stream of copies, which waits for the computations and is waited for, tensor
by tensor. With two streams each direction has its own. Megatron's fine-grained offload has that too, and names the
modules; it also fetches a group of tensors ahead and leaves the last layer's on the GPU, which isn't simulated. Without
streams it is PyTorch's `save_on_cpu` for tensors of a least size. Recomputed blocks offload their inputs alone, or what
they store of their results, as torchtitan's graph trainer (`training.autograd.stored_offload`).
Other networks offload the feature maps that a backward step reads, and fetch them just in time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option, values
from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.iteration.allocators import POOL, LiveSetCounter
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.stash import Offload, Stash
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.torch_saves import saved_by_torch
from buddysim.training.not_simulated import NotSimulatedError
from buddysim.training.options.block_range import BlockRange
from buddysim.training.options.checkpoint_rule import CheckpointRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.saving.largest_results import with_offloaded_results
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, eager
from buddysim.training.schemes.activation_checkpointing import CHECKPOINT, rules_and_notes

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"offload-activations": "saved tensors to pinned host memory and back, next to the computations"}
FAMILY = "pytorch"
ORDER = 505
FACTS = SchemeFacts(
    source="torchtune, `training/_activation_offloading.py`, `OffloadActivations`",
    moves="saved tensors from a least size on, but weights and those of the output",
    costs="copies that computations do not hide",
    applies="all networks; recomputed blocks: their inputs",
    check="as save-on-cpu; every move of `--offload-results` in PyTorch "
    "(`tests/training/transformers/test_stored_offload_in_torch.py`); ten timelines by hand "
    "(`tests/training/saving/test_two_blocks.py`); `docs/validation/llm.md`",
)
ACCURACY = UNCHANGED
#: Blocks by which torchtitan fetches stored results ahead, by default.
FETCHED_AHEAD = 1
_GROUP = "scheme offload-activations"
OPTIONS = {
    "checkpoint": CHECKPOINT,
    "offload_streams": Option(
        int, "streams of copies: 0 (between the computations), 1 (both directions in turn) or 2", "N", 1, _GROUP
    ),
    "offload_stash": Option(
        int, "offloaded tensors that the GPU holds until a later one is offloaded", "N", 5, _GROUP
    ),
    "offload_min_bytes": Option(int, "least size of an offloaded tensor", "BYTES", 1024, _GROUP),
    "offload_results": Option(
        float, "pinned host memory, in GiB, for results that recomputed blocks store (--checkpoint selective or "
        "operators:..), the largest first, as torchtitan; the inputs of blocks then stay", "GIB", None, _GROUP,
    ),
    "offload_defer": Option(
        int, "blocks behind its own with whose end such a result leaves the GPU", "N", 1, _GROUP
    ),
    "offload_modules": Option(
        str, "modules of blocks whose saved tensors are offloaded, by name; all but the output's if not given",
        "NAME[,NAME..]", None, _GROUP,
    ),
}  # fmt: skip


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """All that is saved moves, of recomputed blocks the inputs; the fastest CONV algorithms.

    Raises
    ------
    NotSimulatedError
        all that compiled code saves
    BuddysimError
        options out of range, or modules and recomputation of a network that has neither
    """
    selected = values(OPTIONS, options.extra)
    settings = _settings(selected["offload_streams"], selected["offload_stash"], selected["offload_min_bytes"])
    choice, modules = selected["checkpoint"], _names(selected["offload_modules"])
    if isinstance(network, RecordedNetwork) and network.record_with is not None:
        rules, notes = rules_and_notes(choice, network)
        if network.options.get("compile") and choice != "block":
            raise NotSimulatedError(
                name,
                "not simulated with compile: offloads what eager code saves",
                "--checkpoint block too (then it offloads the inputs of blocks)",
            )
        if selected["offload_results"] is not None:
            rules = _on_the_host(rules, network, selected["offload_results"], selected["offload_defer"])
            return Plan(
                name, {}, as_recorded=True, allocator=LiveSetCounter(), saving=SavingRules(rules), notes=notes,
                assumptions={"memory": eager.MEMORY},
            )  # fmt: skip
        ranges = (BlockRange(0, network.blocks - 1, modules),) if modules else ()
        return Plan(
            name, {}, as_recorded=True, allocator=LiveSetCounter(),
            saving=SavingRules(rules, OffloadRule(settings, ranges)),
            notes=notes, assumptions={"memory": eager.MEMORY},
        )  # fmt: skip
    if choice or modules:
        option = "checkpoint" if choice else "offload_modules"
        raise BuddysimError(f"{option}: expected none: {network.name} isn't described by a model's configuration")
    read = {network.buffer_of(index) for saved in saved_by_torch(network, batch) for index in saved.feature_maps}
    stash = {
        owner: Stash(offload=Offload())
        for owner in sorted(read)
        if owner and network.output_bytes(owner, batch) >= settings.min_bytes
    }
    return replace(
        eager.as_autograd_saves(network, batch, cost, name),
        allocator=POOL,
        stash=stash,
        overlap=settings.streams > 0,
        prefetch="just-in-time" if settings.streams else "on-demand",
        nothing_to_do="nothing to offload: no backward step reads a feature map of that size" * (not stash),
    )


def _on_the_host(
    rules: tuple[CheckpointRule, ...], network: RecordedNetwork, gib: float, defer: int
) -> tuple[CheckpointRule, ...]:
    """Return rules whose stored results are offloaded, within so much host memory."""
    if len(rules) != 1 or rules[0].stored is None:
        raise BuddysimError("offload_results: no block stores results: expected checkpoint selective or operators:..")
    for name, value, least, most in (("offload_results", gib, 0, 1 << 20), ("offload_defer", defer, 0, 1 << 20)):
        if not least <= value <= most:
            raise BuddysimError(f"{name} {value:g}: expected {least} to {most}")
    return (with_offloaded_results(rules[0], network.tape, int(gib * (1 << 30)), defer, FETCHED_AHEAD),)


def _settings(streams: int, stash: int, min_bytes: int) -> OffloadSettings:
    for name, value, least, most in (
        ("offload_streams", streams, 0, 2),
        ("offload_stash", stash, 1, 1 << 20),
        ("offload_min_bytes", min_bytes, 0, 1 << 60),
    ):
        if not least <= value <= most:
            raise BuddysimError(f"{name} {value}: expected {least} to {most}")
    return OffloadSettings(streams, stash, min_bytes)


def _names(modules: str | None) -> tuple[str, ...]:
    return () if modules is None else tuple(name.strip() for name in modules.split(",") if name.strip())
