"""Facts of a recorded network as JSON has them: parameters by tensor, saved tensors, bytes by kind, layer by layer."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

from buddysim.training.networks.captured.known_operators import is_generic
from buddysim.training.networks.graph import Network
from buddysim.training.networks.recorded.network import RecordedNetwork

FLOPS_RULE = "a multiplication and its addition are two FLOPs; backward: as recorded, recomputation within kernels too"
MEMORY_RULE = (
    "saved: storages that autograd holds from forward to backward, each once, without weights; peak: bytes that live "
    "at once during forward and backward, with every gradient, without an optimizer; rounded by no allocator"
)


def recorded_facts(network: Network, batch: int) -> dict[str, Any]:
    """Return the content of ``networks show --json`` for one recorded step without an optimizer."""
    at = network.at(batch)
    assert isinstance(at, RecordedNetwork)
    storages, saved = at.tape.storages, at.tape.saved
    held = {one.storage for one in saved if storages[one.storage].kind not in ("parameter", "buffer", "input")}
    weights = [one for one in storages if one.kind == "parameter"]
    backward = [sum(work.flops for work in run.backward) for run in at.runs]
    return {
        "name": at.name,
        "description": at.description,
        "source": at.source,
        "options": dict(at.options),
        "batch": batch,
        "layers": len(at.layers) - 1,
        "parameters": network.parameters,
        "forward_flops": sum(layer.flops for layer in at.layers),
        "backward_flops": sum(backward),
        "memory": {
            "weights_bytes": sum(one.bytes for one in weights),
            "buffer_bytes": sum(one.bytes for one in storages if one.kind == "buffer" and one.phase == "setup"),
            "saved_bytes": sum(storages[number].bytes for number in held),
            "peak_bytes": at.tape.peak_bytes(),
        },
        "assumptions": {"flops": FLOPS_RULE, "memory": MEMORY_RULE},
        "parameters_by_tensor": {name: list(shape) for name, shape in at.parameter_shapes.items()},
        "saved_by_kind": dict(_saved_by_kind(at, held)),
        "saved_tensors": [
            {
                "layer": one.scope,
                "node": one.node,
                "name": one.name,
                "shape": list(one.shape),
                "dtype": one.dtype.name,
                "storage": one.storage,
                "bytes": storages[one.storage].bytes,
                "producer": one.producer,
            }
            for one in saved
        ],
        "per_layer": [
            {
                "index": layer.index,
                "name": layer.name,
                "inputs": list(layer.inputs),
                "output_shape": list(layer.output_shape),
                "output_bytes": at.output_bytes(layer.index, batch),
                "parameters": layer.parameters,
                "parameter_bytes": at.layer_parameter_bytes(layer.index),
                "saved_state_bytes": layer.saved_bytes(batch),
                "saved_inputs": list(at.saved_inputs(layer.index)),
                "saves_output": "y" in layer.backward_reads,
                "forward_temporary_bytes": at.temporary_bytes(layer.index, "forward"),
                "backward_temporary_bytes": at.temporary_bytes(layer.index, "backward"),
                "forward_flops": layer.flops,
                "backward_flops": backward[layer.index - 1] if layer.index else 0,
                "products": [list(product) for work in at.layer_work(layer.index) for product in work.products],
                **(_generic_bytes(at, layer.index) if at.captured is not None else {}),
            }
            for layer in at.layers
        ],
    }


def _generic_bytes(network: RecordedNetwork, index: int) -> dict[str, int]:
    """Bytes that a captured layer's forward operators read and write, all of them and the generic ones."""
    moved = generic = 0
    for operation in network.runs[index - 1].forward if index else ():
        size = sum(prod(one.shape) * one.dtype.size for one in (*operation.reads, *operation.writes))
        moved += size
        generic += size if is_generic(operation.name) else 0
    return {"operand_bytes": moved, "generic_operand_bytes": generic}


def _saved_by_kind(network: RecordedNetwork, held: set[int]) -> Counter[str]:
    """Bytes that autograd holds by module that saves them first, the last part of its name; the largest first."""
    first: dict[int, str] = {}
    for one in network.tape.saved:
        if one.storage in held:
            first.setdefault(one.storage, one.scope)
    total: Counter[str] = Counter()
    for number, scope in first.items():
        parts = [part for part in scope.split(".") if not part.isdigit()]
        total[parts[-1] if parts else "loss"] += network.tape.storages[number].bytes
    return Counter(dict(total.most_common()))
