"""The result of a simulated training iteration: flat counters, one row per layer (docs/reference/training-counters.md
defines each)."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.garbage import collection_paused
from buddysim.base.result import SchemeResult, software
from buddysim.base.textfile import read_text
from buddysim.training.collectives.assumptions import collective_assumptions
from buddysim.training.cost.time_error import time_error
from buddysim.training.networks.captured.remarks import remarks
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.optimizers import find_optimizer
from buddysim.training.outcome import format_size
from buddysim.training.schemes import accuracy
from buddysim.training.step.assumptions import step_assumptions
from buddysim.training.throughput import Throughput, per_second

if TYPE_CHECKING:
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network
    from buddysim.training.outcome import IterationOutcome, LayerScope, OutOfMemory

PS_PER_MS = 10**9
UNCALIBRATED = "uncalibrated"
#: Where a copy that lacks some of the sources has their checksum, as a file of the package.
CHECKSUM = "simulator.sha256"
SOURCES = (".py", ".pyx", ".pxd", ".h", ".toml", ".csv", ".json", ".maps")

MODEL = (
    "Layers run one after the other, the copy of the input batch and the framework's own overhead take no time: "
    "optimistic."
)
RECORDED_MODEL = (
    "Operators of a stream run one after the other, each once the host has launched it. Host times are those of the "
    "measured server CPUs; the copy of the input batch takes no time: errors of either sign."
)
#: The assumption about updates of the weights, without an optimizer and with one.
UPDATES = (
    "Weights are not updated and there is no optimizer state, as the papers count: optimistic.",
    "One update kernel per layer runs after the backward pass, as fast as its bytes pass at an activation's memory "
    "bandwidth; weights, gradients and state are in FP32 in every precision: pessimistic.",
)


@dataclass(frozen=True, repr=False)
class TrainingResult(SchemeResult):
    """The result of one iteration under one scheme.

    Attributes
    ----------
    per_layer : one dict per layer
    outcome : the simulated iteration itself: streams, stalls, memory over time
    """

    _KIND = "training"

    per_layer: list[dict[str, Any]]
    outcome: IterationOutcome = field(repr=False, compare=False)

    @classmethod
    @collection_paused()
    def from_outcome(cls, outcome: IterationOutcome) -> TrainingResult:
        """The result of a simulated iteration."""
        return cls(outcome.scheme, _counters(outcome), _provenance(outcome), _per_layer(outcome), outcome)

    def __repr__(self) -> str:
        """One line: the whole result is `to_dict`."""
        run, peak = self.provenance, self.counters["memory.peak_bytes"]
        fits = "" if self.counters["fits"] else ", does not fit"
        return (
            f"<TrainingResult {self.scheme}: {run['network']} x {run['batch']} on {run['machine']}, "
            f"{self.counters['time_ms']:.1f} ms, peak {peak / 2**30:.2f} GiB{fits}>"
        )

    def _more(self) -> dict[str, Any]:
        return {"per_layer": self.per_layer}


def _counters(outcome: IterationOutcome) -> dict[str, Any]:
    whole, features = outcome.all_layers, outcome.feature_layers
    peak = whole.usage.at_peak
    stalls = outcome.stall_ps_by_cause()
    reached = outcome.peak_memory
    error = time_error(outcome.network, outcome.cost)
    trained = Throughput.of(outcome.network.options, outcome.batch)
    return {
        "time_ms": _ms(whole.time_ps),
        "time_min_ms": _ms(round(whole.time_ps * error.low)),
        "time_max_ms": _ms(round(whole.time_ps * error.high)),
        "gpus": trained.gpus,
        "samples_per_s": per_second(trained.samples, whole.time_ps),
        "tokens_per_s": per_second(trained.tokens, whole.time_ps),
        "performance_vs_oracle": whole.performance_vs_oracle if outcome.fits else None,
        "oracle_ms": _ms(whole.baseline_ps),
        "compute_ms": _ms(whole.compute_ps),
        "encode_ms": _ms(outcome.pass_ps("encode")),
        "decode_ms": _ms(outcome.pass_ps("decode")),
        "update_ms": _ms(outcome.pass_ps("update")),
        "fits": outcome.fits,
        "nothing_to_do": outcome.plan.nothing_to_do or None,
        **oom_counters(outcome.out_of_memory),
        "memory.capacity_bytes": outcome.capacity,
        **_usage(whole),
        "memory.peak_allocated_bytes": outcome.peak_allocated_bytes,
        "memory.by_kind": outcome.bytes_by_kind,
        "memory.saved_by_layer_kind": reached.saved_by_layer_kind,
        "memory.saved_by_block": reached.saved_by_block,
        "memory.peak_start_ms": _ms(reached.start_ps),
        "memory.peak_phase": reached.phase,
        "memory.peak_module": reached.module,
        "memory.peak_operation": reached.operation,
        "memory.weights_bytes": peak["weights"],
        "memory.feature_map_bytes": peak["feature_maps"],
        "memory.gradient_bytes": peak["weight_gradients"] + peak["gradient_maps"],
        "memory.weight_gradient_bytes": peak["weight_gradients"],
        "memory.gradient_map_bytes": peak["gradient_maps"],
        "memory.workspace_bytes": peak["workspace"],
        "memory.encoded_map_bytes": peak["encoded_maps"],
        "memory.decoded_map_bytes": peak["decoded_maps"],
        "memory.optimizer_state_bytes": peak["optimizer_state"],
        "memory.stashed_bytes": outcome.stashed_bytes,
        "memory.footprint_bytes": outcome.footprint_bytes,
        "memory.footprint_ratio": outcome.footprint_ratio,
        "memory.peak_reserved_bytes": outcome.placement.high_water,
        "host.peak_pinned_bytes": outcome.pinned_bytes,
        "host.pinned_capacity_bytes": outcome.machine.max_pinned_bytes,
        "host.codec_ms": _ms(outcome.host_ps),
        "collectives_ms": _ms(outcome.collectives_ps),
        "offload.bytes": outcome.offload_bytes,
        "prefetch.bytes": outcome.prefetch_bytes,
        "link.bytes": outcome.moved_bytes,
        "stall_ms": _ms(whole.stall_ps),
        "stall.offload_ms": _ms(stalls.get("offload", 0)),
        "stall.prefetch_ms": _ms(stalls.get("prefetch", 0)),
        "stall.host_codec_ms": _ms(stalls.get("host", 0)),
        "stall.exposed_copy_ms": _ms(stalls.get("on-demand", 0) + stalls.get("copy-out", 0)),
        "stall.gather_ms": _ms(stalls.get("gather", 0)),
        "stall.reduce_ms": _ms(stalls.get("reduce", 0)),
        "stall.contention_ms": _ms(stalls.get("contention", 0)),
        "feature_layers.time_ms": _ms(features.time_ps),
        "feature_layers.performance_vs_oracle": features.performance_vs_oracle if outcome.fits else None,
        "feature_layers.oracle_ms": _ms(features.baseline_ps),
        "feature_layers.stall_ms": _ms(features.stall_ps),
        **{f"feature_layers.{key}": value for key, value in _usage(features).items()},
    }


def _usage(view: LayerScope) -> dict[str, int]:
    return {
        "memory.peak_bytes": view.usage.peak_bytes,
        "memory.time_mean_bytes": view.usage.time_mean_bytes,
        "memory.mean_over_steps_bytes": view.usage.mean_over_steps_bytes,
        "memory.baseline_bytes": view.baseline.peak_bytes,
        "memory.baseline_workspace_bytes": view.baseline.at_peak["workspace"],
    }


def oom_counters(shortage: OutOfMemory | None) -> dict[str, Any]:
    """The counters ``oom.*`` of an iteration; None: of one that fits."""
    if shortage is None:
        return {
            "oom.shortfall_bytes": 0, "oom.peak_excess_bytes": 0,
            "oom.memory": None, "oom.layer": None, "oom.message": None,
        }  # fmt: skip
    return {
        "oom.shortfall_bytes": shortage.failure.shortfall_bytes,
        "oom.peak_excess_bytes": shortage.peak_excess_bytes,
        "oom.memory": shortage.failure.memory,
        "oom.layer": shortage.layer,
        "oom.message": shortage.message,
    }


def _per_layer(outcome: IterationOutcome) -> list[dict[str, Any]]:
    network, batch, cost = outcome.network, outcome.batch, outcome.cost
    moved: Counter[int] = Counter()
    for task in outcome.program.tasks:
        if task.stream == "offload":
            moved[task.layer] += task.moved_bytes
    rows = []
    for row in outcome.per_layer():
        layer = network.layers[row.layer]
        is_input = layer.kind == "input"
        algorithms = outcome.plan.algorithms.get(row.layer, {})
        passes = _backward_passes(network, row.layer)
        rows.append(
            {
                "index": row.layer,
                "name": row.name,
                "kind": row.kind,
                "part": row.part,
                "input_bytes": network.input_bytes(row.layer, batch),
                "output_bytes": network.output_bytes(row.layer, batch),
                "weights_bytes": network.layer_parameter_bytes(row.layer),
                "in_place": layer.in_place,
                "workspace_bytes": row.workspace_bytes,
                "forward_workspace_bytes": algorithms["forward"].workspace_bytes if "forward" in algorithms else 0,
                "forward_memory_bytes": row.forward_memory_bytes,
                "backward_memory_bytes": row.backward_memory_bytes,
                "forward_ms": _ms(row.forward_ps),
                "recompute_ms": _ms(row.recompute_ps),
                "backward_ms": _ms(row.backward_ps),
                "encode_ms": _ms(row.encode_ps),
                "decode_ms": _ms(row.decode_ps),
                "update_ms": _ms(row.update_ps),
                "forward_stall_ms": _ms(row.forward_stall_ps),
                "backward_stall_ms": _ms(row.backward_stall_ps),
                "reuse_distance_ms": None if row.reuse_distance_ps is None else _ms(row.reuse_distance_ps),
                "offload_bytes": row.offload_bytes,
                "offload_link_bytes": moved[row.layer],
                "prefetch_bytes": row.prefetch_bytes,
                "forward_dram_bytes": 0 if is_input else cost.dram_bytes(layer, batch, "forward"),
                "backward_dram_bytes": 0 if is_input else sum(cost.dram_bytes(layer, batch, p) for p in passes),
                "algorithms": row.algorithms,
            }
        )
    return rows


def _backward_passes(network: Network, index: int) -> tuple[str, ...]:
    """The passes of a layer's backward step; nothing wants dX of the input."""
    layer = network.layers[index]
    if layer.kind != "conv":
        return ("backward",)
    wants_dx = any(network.layers[network.buffer_of(i)].kind != "input" for i in layer.inputs)
    return ("backward_data", "backward_filter") if wants_dx else ("backward_filter",)


def _provenance(outcome: IterationOutcome) -> dict[str, Any]:
    machine, options, cost = outcome.machine, outcome.options, outcome.cost
    name = options.link or machine.link
    link = machine.links[name]
    optimizer = {"optimizer": UPDATES[find_optimizer(options.optimizer) is not None]}
    algorithms = [algorithm for passes in outcome.plan.algorithms.values() for algorithm in passes.values()]
    derived_times = cost.derived_times(algorithms)
    derived = {} if derived_times is None else {"derived_times": derived_times}
    pool = outcome.placement.pool_bytes
    smaller = pool is not None and outcome.capacity is not None and pool < outcome.capacity
    recorded = isinstance(outcome.network, RecordedNetwork)
    trained = Throughput.of(outcome.network.options, outcome.batch)
    collectives = collective_assumptions(machine, trained.gpus)
    notes = [f"pool of {format_size(pool)}: a larger one would be fragmented"] if smaller and pool else []
    return {
        **software(),
        "simulator_checksum": simulator_checksum(),
        "scheme": outcome.scheme,
        "network": outcome.network.name,
        "network_source": outcome.network.source,
        "network_checksum": network_checksum(outcome.network),
        "batch": outcome.batch,
        "network_options": dict(outcome.network.options),
        "machine": machine.name,
        "machine_checksum": machine.checksum,
        "link": name,
        "link_d2h_bytes_per_s": link.offload_bytes_per_s,
        "link_h2d_bytes_per_s": link.prefetch_bytes_per_s,
        "dram_bytes_per_s": machine.dram_bytes_per_s,
        "precision": cost.precision.name,
        "conv_library": cost.library,
        **_calibration(outcome.network, cost),
        "time_error": time_error(outcome.network, cost).text,
        "optimizer": outcome.network.options.get("optimizer", options.optimizer or "none"),
        "prefetch": outcome.plan.prefetch,
        "pool_policy": options.pool_policy,
        "accuracy": accuracy(outcome.scheme, outcome.network.recorded),
        "decisions": [*outcome.plan.notes, *notes],
        "assumptions": {
            **cost.assumptions,
            **derived,
            **outcome.plan.assumptions,
            **(step_assumptions(outcome.network.options, str(options.optimizer)) if recorded else optimizer),
            **collectives,
            **(remarks(outcome.network, cost.operation_ps) if isinstance(outcome.network, RecordedNetwork) else {}),
            "model": _model(outcome.network),
        },
    }


def _model(network: Network) -> str:
    return RECORDED_MODEL if isinstance(network, RecordedNetwork) else MODEL


def _calibration(network: Network, cost: CostModel) -> dict[str, Any]:
    """Whether the GPU's own timings are behind its times, and which timings are."""
    number_format = cost.precision.name
    if isinstance(network, RecordedNetwork):
        own = cost.operators.origin(number_format) == cost.machine.name
        return {"calibrated": own, "calibration": cost.operators.source(number_format)}
    by_operators = cost.calibrated or cost.described is not None
    return {"calibrated": cost.calibrated, "calibration": cost.source if by_operators else _uncalibrated(cost.source)}


def _uncalibrated(source: str) -> str:
    return source if source.startswith(UNCALIBRATED) else f"{UNCALIBRATED}: {source}"


@cache
def simulator_checksum() -> str:
    """SHA-256 over the sources and data that a result of this engine depends on, in hex."""
    package = Path(__file__).parents[1]
    if (package / CHECKSUM).is_file():
        return read_text(package / CHECKSUM, "checksum", 100).strip()
    digest = hashlib.sha256()
    for part in ("base", "compress", "formats", "machine", "training"):
        for path in sorted((package / part).rglob("*")):
            if path.suffix in SOURCES:
                digest.update(path.relative_to(package).as_posix().encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def network_checksum(network: Network) -> str:
    """SHA-256 over the layers, in hex; their names play no part."""
    digest = hashlib.sha256()
    for layer in network.layers:
        fields = [
            f"{name}={sorted(layer.backward_reads) if name == 'backward_reads' else getattr(layer, name)!r}"
            for name in layer.__dataclass_fields__
            if name != "name"
        ]
        digest.update(";".join(fields).encode())
    return digest.hexdigest()


def _ms(ps: int) -> float:
    return ps / PS_PER_MS
