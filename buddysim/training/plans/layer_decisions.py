"""Decisions about the layers of a network that isn't recorded anew, as tables of a plan file and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.cost import ConvAlgorithm
from buddysim.training.iteration.allocators import POOL, Allocator, LiveSetCounter, StaticGroups
from buddysim.training.iteration.plan import PREFETCHES, Plan
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.networks.graph import Network
from buddysim.training.plans.recorded_rules import optimizer_of, optimizer_table, weights_of, weights_table
from buddysim.training.plans.table import PlanTable

#: By their names in files.
ALLOCATORS: dict[str, Allocator] = {
    "pool": POOL,
    "live-bytes": LiveSetCounter(),
    "groups": StaticGroups(),
    "groups-of-others": StaticGroups(stashed_in_groups=False),
}
_STORED = ("keep", "offload", "compress", "compress and offload")
_READ = ("x", "y", "dy", "mask", "saved")
_PASSES = ("forward", "backward_data", "backward_filter")
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


def layer_plan(table: PlanTable, network: Network, scheme: str) -> Plan:
    """Return the plan that a file's tables describe.

    Raises
    ------
    BuddysimError
        a wrong value, or a layer that the network doesn't have
    """
    index_of = {layer.name: layer.index for layer in network.layers}
    prefetch, overlap = table.name("prefetch", "vdnn", PREFETCHES), table.switch("overlap", True)
    layerwise, unlimited = table.switch("layerwise", True), table.switch("unlimited", False)
    allocator = ALLOCATORS[table.name("allocator", "pool", ALLOCATORS)]
    ratio, factor = table.number("memory_ratio", 1.0, 0.01, 100), table.number("time_factor", 1.0, 0.01, 1000)
    segments = _segments(table, network)
    in_place = None
    if table.has("in_place"):
        in_place = frozenset(_index(table, "in_place", name, index_of) for name in table.texts("in_place"))
    else:
        table.texts("in_place")
    optimizer, weights = optimizer_of(table.table("optimizer")), weights_of(table.table("weights"))
    decisions = _Decisions()
    for row in table.tables("layer"):
        name = row.name("name", None)
        index = _index(row, "name", name, index_of)
        if index in decisions.seen:
            raise row.problem("name", name, "each layer once")
        decisions.add(index, row, len(network.layers))
        row.end()
    below = table.table("footprint_baseline")
    baseline = None if below is None else layer_plan(below, network, f"{scheme} baseline")
    if below is not None:
        below.end()
    if not layerwise and decisions.stash:
        raise BuddysimError("layerwise: false next to feature maps that are stored otherwise: expected true")
    return Plan(
        scheme, decisions.algorithms, decisions.stash, prefetch, overlap, layerwise,  # type: ignore[arg-type]
        unlimited=unlimited, allocator=allocator, in_place=in_place, separate_backward=frozenset(decisions.separate),
        segments=segments, backward_reads=decisions.reads, saved_bytes=decisions.saved_bytes,
        step_ps=decisions.step_ps, offload_saved_tensors=decisions.copied, host_optimizer=optimizer,
        host_weights=weights, memory_ratio=ratio, time_factor=factor, footprint_baseline=baseline,
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

    def add(self, index: int, row: PlanTable, layers: int) -> None:
        """Add those of one layer."""
        self.seen.add(index)
        if row.switch("separate_backward", False):
            self.separate.add(index)
        if row.has("backward_reads"):
            reads = row.texts("backward_reads")
            if not set(reads) <= set(_READ):
                raise row.problem("backward_reads", list(reads), f"some of {', '.join(_READ)}")
            self.reads[index] = frozenset(reads)
        if row.has("saved_bytes"):
            self.saved_bytes[index] = row.whole("saved_bytes", None)
        if copied := row.values("copied"):
            self.copied[index] = tuple(_copied(row, one) for one in copied)
        steps = row.table("step_ps")
        if steps is not None:
            self.step_ps |= {(index, pass_): steps.whole(pass_, None) for pass_ in _STEPS if steps.has(pass_)}
            steps.known += _STEPS
            steps.end()
        stored = row.name("feature_map", "keep", _STORED)
        if stored != "keep":
            self.stash[index] = _stash(row, stored, layers)
        algorithms = row.table("algorithms")
        if algorithms is not None:
            read = {pass_: _algorithm(algorithms, pass_) for pass_ in _PASSES if algorithms.has(pass_)}
            algorithms.known += _PASSES
            algorithms.end()
            missing = [pass_ for pass_ in _PASSES if pass_ not in read]
            if missing:
                raise row.problem("algorithms", list(read), f"{', '.join(missing)} too")
            self.algorithms[index] = read


def _index(table: PlanTable, key: str, name: str, index_of: Mapping[str, int]) -> int:
    if name not in index_of:
        raise table.problem(key, name, "a layer of the network")
    return index_of[name]


def _segments(table: PlanTable, network: Network) -> tuple[tuple[int, int], ...]:
    segments: list[tuple[int, int]] = []
    for one in table.values("segments"):
        is_pair = isinstance(one, list) and len(one) == 2 and all(type(number) is int for number in one)
        if not is_pair or not (segments[-1][1] if segments else 0) < one[0] <= one[1] < len(network.layers):
            raise table.problem("segments", one, "first and last layer of parts one after the other, as numbers")
        segments.append((one[0], one[1]))
    return tuple(segments)


def _copied(row: PlanTable, one: Any) -> tuple[str, int]:
    names = ("feature_map", "state", "weights")
    is_pair = isinstance(one, list) and len(one) == 2 and one[0] in names and type(one[1]) is int
    if not is_pair or not 0 < one[1] < 2**62:
        raise row.problem("copied", one, f"a name ({', '.join(names)}) and bytes")
    return one[0], one[1]


def _stash(row: PlanTable, stored: str, layers: int) -> Stash:
    encoding, offload = None, None
    decoded = row.switch("decode_before_use", True)
    if "compress" in stored:
        encoded = row.table("encoding")
        if encoded is None:
            raise row.problem("feature_map", stored, "a table encoding with byte_count, encode_ps and decode_ps")
        encoding = _encoding(encoded)
    if "offload" in stored:
        moved = row.table("offload")
        offload = Offload() if moved is None else _offload(moved, layers)
    return Stash(encoding, decoded, offload)


def _encoding(table: PlanTable) -> Encoding:
    read = Encoding(table.whole("byte_count", None, 1), table.whole("encode_ps", None), table.whole("decode_ps", None))
    table.end()
    return read


def _offload(table: PlanTable, layers: int) -> Offload:
    def whole(key: str, most: int) -> int | None:
        if not table.has(key):
            table.known.append(key)
            return None
        return table.whole(key, None, 0, most)

    host = table.table("host_encoding")
    largest = 2**62
    read = Offload(
        whole("link_bytes", largest), whole("offload_ps", largest), whole("prefetch_ps", largest),
        whole("offload_deadline", layers - 1), whole("prefetch_launch", layers - 1),
        None if host is None else _encoding(host), whole("host_encoding_deadline", layers - 1),
    )  # fmt: skip
    table.end()
    return read


def _algorithm(table: PlanTable, pass_: str) -> ConvAlgorithm:
    one = table.table(pass_)
    assert one is not None
    read = ConvAlgorithm(one.name("name", None), one.whole("workspace_bytes", None), one.whole("time_ps", None))
    one.end()
    return read
