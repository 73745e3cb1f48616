"""Captures from within the own script: ``with buddysim.capture.training("out.bin"): ...``, and ``capture.triton``."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, cast


def training(output: str | os.PathLike[str], **options: Any) -> AbstractContextManager[None]:
    """Capture what PyTorch trains within the block of this context manager, as a trace file.

    Parameters
    ----------
    output : the trace file; OUT.graph.json (docs/reference/operator-graph.md) and OUT.maps
        (docs/reference/activations-format.md) are written next to it
    options : ``steps`` (optimizer steps of the training, where known), ``snapshots`` (points of the training),
        ``contents_bytes`` (bytes of the tensors to store at most), ``samples`` (samples of each feature map in
        OUT.maps), ``source`` (what is trained), ``compressor`` (compressor of the size maps)
    """
    context = import_module("buddysim.capture.torch").capture(os.fspath(output), **options)
    return cast("AbstractContextManager[None]", context)


def triton(output: str | os.PathLike[str], **options: Any) -> AbstractContextManager[None]:
    """Capture the Triton launches within the block of this context manager, as a trace file.

    Parameters
    ----------
    output : the trace file
    options : ``machine`` (for whose compute capability kernels are compiled), ``snapshots`` (of all tensors),
        ``launches`` (to trace: ``"3:5"``), ``grid_sample`` (trace one of so many thread blocks), ``torch_compile``
        (let ``torch.compile`` make Triton kernels), ``source`` (what is captured), ``compressor`` (of the size maps)
    """
    context = import_module("buddysim.capture.triton_kernels").capture(os.fspath(output), **options)
    return cast("AbstractContextManager[None]", context)
