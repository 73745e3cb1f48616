"""Rules of a step that is recorded anew, as tables of a plan file and back: blocks, copies, optimizer, weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.options.block_range import BlockRange
from buddysim.training.options.checkpoint_rule import CheckpointRule, OffloadedStores, StoredOperators
from buddysim.training.options.compression_rule import CompressionRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.optimizer_offload import OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.options.weights_offload import WeightsOffload
from buddysim.training.plans.schema import (
    BlockFields,
    CompressionFields,
    CopiesFields,
    OptimizerFields,
    RecordedPlanFields,
    WeightsFields,
    refuse_others,
    wrong,
)

_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
#: Fields of blocks that are computed again.
_RECOMPUTED = {
    "together", "stored", "every_second_product", "early_stop", "offloaded_results", "defer", "ahead",
}  # fmt: skip
_RESULT = re.compile(r"([0-9]{1,6}):([0-9]{1,6})")


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
    if rule.offloaded is not None:
        on_host = rule.offloaded
        row["offloaded_results"] = [f"{block}:{number}" for block, number in on_host.results]
        row |= {"defer": on_host.defer, "ahead": on_host.ahead}
    return row | {"early_stop": rule.early_stop}


def _ranged(saved: str, one: BlockRange, blocks: int) -> dict[str, Any]:
    last = blocks - 1 if one.last is None else one.last
    row: dict[str, Any] = {"range": f"{one.first}-{max(one.first, last)}", "saved": saved}
    return row | ({"modules": list(one.modules)} if one.modules else {})


# Reading


def rules_of(plan: RecordedPlanFields, blocks: int) -> SavingRules:
    """Return the rules that a file's tables describe.

    Raises
    ------
    BuddysimError
        blocks that the model doesn't have, or that are computed again twice
    """
    checkpoints: list[CheckpointRule] = []
    ranges: dict[str, list[BlockRange]] = {"offload": [], "compress": []}
    for number, row in enumerate(plan.blocks):
        where, because = f"blocks[{number}]", f"saved = {row.saved}"
        first, last = _range_of(row.range, where, blocks)
        if row.saved == "recompute":
            refuse_others(row, where, {"modules"}, because)
            checkpoints.append(_checkpoint(row, where, first, last))
            continue
        refuse_others(row, where, _RECOMPUTED, because)
        if row.saved == "keep":
            refuse_others(row, where, {"modules"}, because)
        else:
            ranges[row.saved].append(BlockRange(first, last, tuple(row.modules)))
    _refuse_overlaps(checkpoints)
    return SavingRules(
        tuple(checkpoints),
        _offload(plan.copies, ranges["offload"]),
        _compression(plan.compression, ranges["compress"]),
        optimizer_of(plan.optimizer),
        weights_of(plan.weights),
    )


def optimizer_of(fields: OptimizerFields | None) -> OptimizerOffload | None:
    """Return how the host updates the weights."""
    if fields is None:
        return None
    return OptimizerOffload(fields.order, fields.keep_gradients, fields.delayed, fields.device)


def weights_of(fields: WeightsFields | None) -> WeightsOffload | None:
    """Return how weights are fetched from the host."""
    return None if fields is None else WeightsOffload(fields.ahead, fields.device)


def _range_of(text: str, where: str, blocks: int) -> tuple[int, int]:
    matched = _RANGE.fullmatch(text)
    first = int(matched[1]) if matched else 0
    last = int(matched[2] or matched[1]) if matched else -1
    if not first <= last < blocks:
        expected = f"two numbers of blocks from 0 to {blocks - 1}, for example 0-{blocks - 1}"
        raise wrong(f"{where}.range", text, expected)
    return first, last


def _checkpoint(row: BlockFields, where: str, first: int, last: int) -> CheckpointRule:
    stored = None
    if row.stored is not None:
        stored = StoredOperators(tuple(row.stored), row.every_second_product)
    else:
        refuse_others(row, where, {"every_second_product", "offloaded_results"}, "no stored")
    return CheckpointRule(
        first, last, row.together, stored, row.early_stop, _on_the_host(row, where, first, last)
    )  # fmt: skip


def _on_the_host(row: BlockFields, where: str, first: int, last: int) -> OffloadedStores | None:
    if row.offloaded_results is None:
        refuse_others(row, where, {"defer", "ahead"}, "no offloaded_results")
        return None
    if row.together != 1:
        raise wrong(f"{where}.together", row.together, "1 next to offloaded_results")
    results = []
    for text in row.offloaded_results:
        matched = _RESULT.fullmatch(text)
        if not matched or not first <= int(matched[1]) <= last:
            raise wrong(f"{where}.offloaded_results", text, f"BLOCK:NUMBER of blocks {first} to {last}")
        results.append((int(matched[1]), int(matched[2])))
    return OffloadedStores(tuple(results), row.defer, row.ahead)


def _refuse_overlaps(checkpoints: Sequence[CheckpointRule]) -> None:
    seen: dict[int, int] = {}
    for rule in checkpoints:
        for number in range(rule.first, rule.last + 1):
            if number in seen:
                raise BuddysimError(f"blocks: block {number} is computed again by two tables: expected one")
            seen[number] = number


def _offload(fields: CopiesFields | None, ranges: Sequence[BlockRange]) -> OffloadRule | None:
    if fields is None:
        return OffloadRule(ranges=tuple(ranges)) if ranges else None
    settings = OffloadSettings(fields.streams, fields.stash, fields.min_bytes, fields.blocking)
    if fields.of != "blocks" and ranges:
        raise BuddysimError(f"copies.of: {fields.of} next to blocks that are offloaded: expected one of them")
    if fields.of == "blocks" and not ranges:
        raise BuddysimError('copies: no block is offloaded: expected blocks with saved = "offload", or of = "model"')
    return OffloadRule(settings, tuple(ranges), fields.of == "all")


def _compression(fields: CompressionFields | None, ranges: Sequence[BlockRange]) -> CompressionRule | None:
    if fields is None:
        return CompressionRule(ranges=tuple(ranges)) if ranges else None
    if fields.of == "model" and ranges:
        raise BuddysimError("compression.of: model next to blocks that are compressed: expected one of them")
    if fields.of == "blocks" and not ranges:
        raise BuddysimError(
            'compression: no block is compressed: expected blocks with saved = "compress", or of = "model"'
        )
    return CompressionRule(fields.bits, tuple(ranges))
