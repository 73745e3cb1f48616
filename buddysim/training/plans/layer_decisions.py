"""Decisions about the layers of a network that isn't recorded anew, as tables of a plan file and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.cost import ConvAlgorithm
from buddysim.training.iteration.allocators import POOL, Allocator, LiveSetCounter, StaticGroups
from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.networks.graph import Network
from buddysim.training.plans.recorded_rules import optimizer_of, optimizer_table, weights_of, weights_table
from buddysim.training.plans.schema import DecisionFields, LayerPlanFields, OffloadFields, refuse_others, wrong

#: By their names in files.
ALLOCATORS: dict[str, Allocator] = {
    "pool": POOL,
    "live-bytes": LiveSetCounter(),
    "groups": StaticGroups(),
    "groups-of-others": StaticGroups(stashed_in_groups=False),
}
_STORED = ("keep", "offload", "compress", "compress and offload")
_STEPS = ("forward", "backward", "backward_data", "backward_filter")


# Writing


def tables_of(plan: Plan, network: Network) -> dict[str, Any]:
    """Return the tables of a plan for the layers of a network."""
    allocator = next(name for name, one in ALLOCATORS.items() if one == plan.allocator)
    tables: dict[str, Any] = {
        "prefetch": plan.prefetch,
        "overlap": plan.overlap,
        "layerwise": plan.layerwise,
        "unlimited": plan.unlimited,
        "allocator": allocator,
        "memory_ratio": plan.memory_ratio,
        "time_factor": plan.time_factor,
        "segments": [list(one) for one in plan.segments],
    }
    if plan.in_place is not None:
        tables["in_place"] = [network.layers[index].name for index in sorted(plan.in_place)]
    if plan.host_optimizer is not None:
        tables["optimizer"] = optimizer_table(plan.host_optimizer)
    if plan.host_weights is not None:
        tables["weights"] = weights_table(plan.host_weights)
    rows = [_layer_table(plan, layer.index, layer.name) for layer in network.layers]
    tables["layer"] = [row for row in rows if len(row) > 1]
    if plan.footprint_baseline is not None:
        tables["footprint_baseline"] = tables_of(plan.footprint_baseline, network)
    return tables


def _layer_table(plan: Plan, index: int, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name}
    if index in plan.separate_backward:
        row["separate_backward"] = True
    if index in plan.backward_reads:
        row["backward_reads"] = sorted(plan.backward_reads[index])
    if index in plan.saved_bytes:
        row["saved_bytes"] = plan.saved_bytes[index]
    if plan.offload_saved_tensors.get(index):
        row["copied"] = [list(one) for one in plan.offload_saved_tensors[index]]
    steps = {pass_: plan.step_ps[index, pass_] for pass_ in _STEPS if (index, pass_) in plan.step_ps}
    if steps:
        row["step_ps"] = steps
    stash = plan.stash.get(index)
    if stash is not None and (stash.encoding is not None or stash.offload is not None):
        row["feature_map"] = _STORED[(stash.offload is not None) + 2 * (stash.encoding is not None)]
        row["decode_before_use"] = stash.decode_before_use
        if stash.encoding is not None:
            row["encoding"] = asdict(stash.encoding)
        if stash.offload is not None:
            details = {key: value for key, value in asdict(stash.offload).items() if value is not None}
            if details:
                row["offload"] = details
    algorithms = plan.algorithms.get(index)
    if algorithms:
        row["algorithms"] = {
            pass_: {"name": one.name, "workspace_bytes": one.workspace_bytes, "time_ps": one.time_ps}
            for pass_, one in algorithms.items()
        }
    return row


# Reading


def layer_plan(plan: DecisionFields, network: Network, scheme: str, where: str = "") -> Plan:
    """Return the plan that a file's tables describe.

    Parameters
    ----------
    where : what names of fields in errors begin with

    Raises
    ------
    BuddysimError
        a layer that the network doesn't have, or a value that doesn't fit it
    """
    index_of = {layer.name: layer.index for layer in network.layers}

    def index(name: str, field: str) -> int:
        if name not in index_of:
            raise wrong(f"{where}{field}", name, "a layer of the network")
        return index_of[name]

    in_place = None
    if plan.in_place is not None:
        in_place = frozenset(index(name, f"in_place[{number}]") for number, name in enumerate(plan.in_place))
    decisions = _Decisions()
    for number, row in enumerate(plan.layer):
        at = index(row.name, f"layer[{number}].name")
        if at in decisions.seen:
            raise wrong(f"{where}layer[{number}].name", row.name, "each layer once")
        decisions.add(at, row, len(network.layers), f"{where}layer[{number}]")
    baseline, below = None, plan.footprint_baseline
    if below is not None:
        baseline = layer_plan(below, network, f"{scheme} baseline", f"{where}footprint_baseline.")
    if not plan.layerwise and decisions.stash:
        raise BuddysimError("layerwise: false next to feature maps that are stored otherwise: expected true")
    return Plan(
        scheme, decisions.algorithms, decisions.stash, plan.prefetch, plan.overlap, plan.layerwise,
        unlimited=plan.unlimited, allocator=ALLOCATORS[plan.allocator], in_place=in_place,
        separate_backward=frozenset(decisions.separate), segments=_segments(plan, network, where),
        backward_reads=decisions.reads, saved_bytes=decisions.saved_bytes, step_ps=decisions.step_ps,
        offload_saved_tensors=decisions.copied, host_optimizer=optimizer_of(plan.optimizer),
        host_weights=weights_of(plan.weights), memory_ratio=plan.memory_ratio, time_factor=plan.time_factor,
        footprint_baseline=baseline,
    )  # fmt: skip


class _Decisions:
    """Decisions of the tables read so far, by layer."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.algorithms: dict[int, Mapping[str, ConvAlgorithm]] = {}
        self.stash: dict[int, Stash] = {}
        self.separate: set[int] = set()
        self.reads: dict[int, frozenset[str]] = {}
        self.saved_bytes: dict[int, int] = {}
        self.step_ps: dict[tuple[int, str], int] = {}
        self.copied: dict[int, tuple[tuple[str, int], ...]] = {}

    def add(self, index: int, row: LayerPlanFields, layers: int, where: str) -> None:
        """Add those of one layer."""
        self.seen.add(index)
        if row.separate_backward:
            self.separate.add(index)
        if row.backward_reads is not None:
            self.reads[index] = frozenset(row.backward_reads)
        if row.saved_bytes is not None:
            self.saved_bytes[index] = row.saved_bytes
        if row.copied:
            self.copied[index] = tuple(row.copied)
        if row.step_ps is not None:
            self.step_ps |= {(index, pass_): time for pass_, time in row.step_ps if time is not None}
        stash = _stash(row, layers, where)
        if stash is not None:
            self.stash[index] = stash
        if row.algorithms is not None:
            self.algorithms[index] = {pass_: ConvAlgorithm(**dict(one)) for pass_, one in row.algorithms}


def _segments(plan: DecisionFields, network: Network, where: str) -> tuple[tuple[int, int], ...]:
    before = 0
    for number, (first, last) in enumerate(plan.segments):
        if not before < first <= last < len(network.layers):
            expected = "first and last layer of parts one after the other, as numbers"
            raise wrong(f"{where}segments[{number}]", [first, last], expected)
        before = last
    return tuple(plan.segments)


def _stash(row: LayerPlanFields, layers: int, where: str) -> Stash | None:
    stored, because = row.feature_map, f"feature_map = {row.feature_map}"
    if stored == "keep":
        refuse_others(row, where, {"decode_before_use"}, because)
    encoding, offload = None, None
    if "compress" not in stored:
        refuse_others(row, where, {"encoding"}, because)
    elif row.encoding is None:
        raise wrong(f"{where}.feature_map", stored, "a table encoding with byte_count, encode_ps and decode_ps")
    else:
        encoding = Encoding(**dict(row.encoding))
    if "offload" not in stored:
        refuse_others(row, where, {"offload"}, because)
    else:
        offload = _offload(row.offload or OffloadFields(), layers, f"{where}.offload")
    return None if stored == "keep" else Stash(encoding, row.decode_before_use, offload)


def _offload(fields: OffloadFields, layers: int, where: str) -> Offload:
    for name in ("offload_deadline", "prefetch_launch", "host_encoding_deadline"):
        layer = getattr(fields, name)
        if layer is not None and layer >= layers:
            raise wrong(f"{where}.{name}", layer, f"a layer from 0 to {layers - 1}")
    host = fields.host_encoding
    return Offload(**{**dict(fields), "host_encoding": None if host is None else Encoding(**dict(host))})
