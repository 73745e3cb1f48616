"""The tiny model's tensors by kind and number format: ``transformer-tensors.bin`` has sizes, and no kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import buddysim
from buddysim.compress import DEFAULT, ENTRY_BYTES, entry_classes
from buddysim.trace import Provenance, TraceWriter

FORMATS = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8-e4m3": torch.float8_e4m3fn,
}
#: Allocations of PyTorch on a GPU begin at multiples of this.
_ALIGNMENT = 512


def write(path: Path, kinds: dict[str, list[Tensor]], source: str, licence: str) -> None:
    """Write sizes of all entries of each kind of tensors in each format.

    Parameters
    ----------
    path : the trace
    kinds : tensors in single precision, by kind
    source, licence : for the provenance
    """
    provenance = Provenance("tools.transformer_traces", buddysim.__version__, source, licence, COMMAND, ASSUMED)
    with TraceWriter(path, provenance, compression_level=19) as writer:
        base, sizes = 1 << 40, []
        for kind, tensors in kinds.items():
            for name, number_format in FORMATS.items():
                data = np.concatenate([_bytes(_cast(tensor, number_format)) for tensor in tensors])
                allocation = writer.add_allocation(f"{kind}.{name}", base, len(data))
                base += -(-len(data) // _ALIGNMENT) * _ALIGNMENT
                sizes.append((allocation, entry_classes(data, DEFAULT)))
        snapshot = writer.add_snapshot(0, "after the training")
        for allocation, classes in sizes:
            writer.add_size_map(snapshot, allocation, classes, DEFAULT)


COMMAND = "python -m tools.transformer_traces"
ASSUMED = {
    "tensors": (
        "Tensors are those of a model of 3 million weights after a minute of training: a large model's differ. Values "
        "are cast from single precision; in fp8 each tensor's largest value is 448."
    )
}


def _cast(tensor: Tensor, number_format: torch.dtype) -> Tensor:
    """Return a tensor in a number format; fp8 has one scale for a tensor."""
    if number_format == torch.float8_e4m3fn:
        tensor = tensor * (torch.finfo(number_format).max / tensor.abs().max())
    return tensor.to(number_format)


def _bytes(tensor: Tensor) -> np.ndarray:
    data = tensor.contiguous().view(torch.uint8).numpy().reshape(-1)
    return np.pad(data, (0, -len(data) % ENTRY_BYTES))
