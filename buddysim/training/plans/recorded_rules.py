"""Rules of a step that is recorded anew, as tables of a plan file and back: blocks, copies, optimizer, weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.compressed import CODE_BYTES
from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.host.optimizer_offload import DEVICES, LIBRARIES, HostDevice, Library, OptimizerOffload
from buddysim.training.host.weights_offload import WeightsOffload
from buddysim.training.plans.table import PlanTable
from buddysim.training.saving.block_range import BlockRange
from buddysim.training.saving.checkpoint_rule import CheckpointRule, StoredOperators
from buddysim.training.saving.compression_rule import CompressionRule
from buddysim.training.saving.offload_rule import OffloadRule
from buddysim.training.saving.rules import SavingRules

SAVED = ("keep", "recompute", "offload", "compress")
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
MAX_COUNT = 1 << 20


# Writing


def tables_of(rules: SavingRules, blocks: int) -> dict[str, Any]:
    """Return the tables of rules, by name.

    Parameters
    ----------
    blocks : of the model
    """
    tables: dict[str, Any] = {}
    rows = [_recomputed(rule) for rule in rules.checkpoints]
    for saved, rule in (("compress", rules.compression), ("offload", rules.offload)):
        if rule is not None:
            rows += [_ranged(saved, one, blocks) for one in rule.ranges]
    if rows:
        tables["blocks"] = rows
    offload, compression = rules.offload, rules.compression
    if offload is not None:
        settings = offload.settings
        tables["copies"] = {
            "streams": settings.streams,
            "stash": settings.stash,
            "min_bytes": settings.min_bytes,
            "blocking": settings.blocking,
        }
        if not offload.ranges:
            tables["copies"]["of"] = "all" if offload.outputs else "model"
    if compression is not None:
        tables["compression"] = {"bits": compression.bits} | ({} if compression.ranges else {"of": "model"})
    optimizer, weights = rules.optimizer, rules.weights
    if optimizer is not None:
        tables["optimizer"] = optimizer_table(optimizer)
    if weights is not None:
        tables["weights"] = weights_table(weights)
    return tables


def optimizer_table(optimizer: OptimizerOffload) -> dict[str, Any]:
    """Return the table of an optimizer on the host."""
    return {
        "device": optimizer.device,
        "order": optimizer.library,
        "keep_gradients": optimizer.keep_gradients,
        "delayed": optimizer.delayed,
    }


def weights_table(weights: WeightsOffload) -> dict[str, Any]:
    """Return the table of weights on the host."""
    return {"device": weights.device, "ahead": weights.ahead}


def _recomputed(rule: CheckpointRule) -> dict[str, Any]:
    row: dict[str, Any] = {"range": f"{rule.first}-{rule.last}", "saved": "recompute", "together": rule.together}
    if rule.stored is not None:
        row |= {"stored": list(rule.stored.names), "every_second_product": rule.stored.every_second_product}
    return row | {"early_stop": rule.early_stop}


def _ranged(saved: str, one: BlockRange, blocks: int) -> dict[str, Any]:
    last = blocks - 1 if one.last is None else one.last
    row: dict[str, Any] = {"range": f"{one.first}-{max(one.first, last)}", "saved": saved}
    return row | ({"modules": list(one.modules)} if one.modules else {})


# Reading


def rules_of(table: PlanTable, blocks: int) -> SavingRules:
    """Return the rules that a file's tables describe.

    Raises
    ------
    BuddysimError
        a wrong value, blocks that the model doesn't have, or that are computed again twice
    """
    checkpoints: list[CheckpointRule] = []
    ranges: dict[str, list[BlockRange]] = {"offload": [], "compress": []}
    for row in table.tables("blocks"):
        first, last = _range_of(row, blocks)
        saved = row.name("saved", None, SAVED)
        if saved == "recompute":
            checkpoints.append(_checkpoint(row, first, last))
        elif saved != "keep":
            ranges[saved].append(BlockRange(first, last, row.texts("modules")))
        row.end()
    _refuse_overlaps(checkpoints)
    return SavingRules(
        tuple(checkpoints),
        _offload(table.table("copies"), ranges["offload"]),
        _compression(table.table("compression"), ranges["compress"]),
        optimizer_of(table.table("optimizer")),
        weights_of(table.table("weights")),
    )


def optimizer_of(table: PlanTable | None) -> OptimizerOffload | None:
    """Return how the host updates the weights."""
    if table is None:
        return None
    device: HostDevice = table.name("device", "host", DEVICES)  # type: ignore[assignment]
    order: Library = table.name("order", "torchao", LIBRARIES)  # type: ignore[assignment]
    rule = OptimizerOffload(order, table.switch("keep_gradients", False), table.switch("delayed", False), device)
    table.end()
    return rule


def weights_of(table: PlanTable | None) -> WeightsOffload | None:
    """Return how weights are fetched from the host."""
    if table is None:
        return None
    device: HostDevice = table.name("device", "host", DEVICES)  # type: ignore[assignment]
    rule = WeightsOffload(table.whole("ahead", 1, 0, MAX_COUNT), device)
    table.end()
    return rule


def _range_of(row: PlanTable, blocks: int) -> tuple[int, int]:
    text = row.name("range", None)
    matched = _RANGE.fullmatch(text)
    first = int(matched[1]) if matched else 0
    last = int(matched[2] or matched[1]) if matched else -1
    if not first <= last < blocks:
        raise row.problem("range", text, f"two numbers of blocks from 0 to {blocks - 1}, for example 0-{blocks - 1}")
    return first, last


def _checkpoint(row: PlanTable, first: int, last: int) -> CheckpointRule:
    stored = None
    if row.has("stored"):
        stored = StoredOperators(row.texts("stored"), row.switch("every_second_product", False))
    return CheckpointRule(first, last, row.whole("together", 1, 1, MAX_COUNT), stored, row.switch("early_stop", True))


def _refuse_overlaps(checkpoints: Sequence[CheckpointRule]) -> None:
    seen: dict[int, int] = {}
    for rule in checkpoints:
        for number in range(rule.first, rule.last + 1):
            if number in seen:
                raise BuddysimError(f"blocks: block {number} is computed again by two tables: expected one")
            seen[number] = number


def _offload(table: PlanTable | None, ranges: Sequence[BlockRange]) -> OffloadRule | None:
    if table is None:
        return OffloadRule(ranges=tuple(ranges)) if ranges else None
    settings = OffloadSettings(
        table.whole("streams", 1, 0, 2), table.whole("stash", 5, 1, MAX_COUNT), table.whole("min_bytes", 1024),
        table.switch("blocking", False),
    )  # fmt: skip
    of = table.name("of", "blocks", ("blocks", "model", "all"))
    table.end()
    if of != "blocks" and ranges:
        raise BuddysimError(f"copies: of: {of} next to blocks that are offloaded: expected one of them")
    if of == "blocks" and not ranges:
        raise BuddysimError('copies: no block is offloaded: expected blocks with saved = "offload", or of = "model"')
    return OffloadRule(settings, tuple(ranges), of == "all")


def _compression(table: PlanTable | None, ranges: Sequence[BlockRange]) -> CompressionRule | None:
    if table is None:
        return CompressionRule(ranges=tuple(ranges)) if ranges else None
    bits = table.whole("bits", 8)
    if bits not in CODE_BYTES:
        raise table.problem("bits", bits, f"one of {', '.join(map(str, CODE_BYTES))}")
    of = table.name("of", "blocks", ("blocks", "model"))
    table.end()
    if of == "model" and ranges:
        raise BuddysimError("compression: of: model next to blocks that are compressed: expected one of them")
    if of == "blocks" and not ranges:
        raise BuddysimError(
            'compression: no block is compressed: expected blocks with saved = "compress", or of = "model"'
        )
    return CompressionRule(bits, tuple(ranges))


def is_lossy(rules: Mapping[str, Any]) -> bool:
    """Whether a file's tables change results."""
    optimizer = rules.get("optimizer")
    return "compression" in rules or (isinstance(optimizer, Mapping) and optimizer.get("delayed") is True)
