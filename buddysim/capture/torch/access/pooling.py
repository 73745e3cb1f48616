"""Pooling by PyTorch's native kernels: a thread for each written element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from buddysim.capture.torch.access.launch import LANES, OFF, Access, Addresses, ModelledKernel, load, store, threads
from buddysim.capture.torch.access.tensors import TensorView

_WARPS: Final = 8


@dataclass(frozen=True)
class PoolingWindow:
    """Windows of a pooling layer, along height and width."""

    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]


def pool(name: str, data: TensorView, outputs: tuple[TensorView, ...], window: PoolingWindow) -> ModelledKernel:
    """Return the forward kernel: each thread reads its window of (N, C, H, W) and writes its element of each output."""
    elements = outputs[0].elements

    def program(blocks: Addresses) -> Iterator[Access]:
        number = blocks * LANES * _WARPS + threads(_WARPS)
        inside = number < elements
        plane, rest = np.divmod(np.where(inside, number, 0), outputs[0].shape[2] * outputs[0].shape[3])
        p, q = np.divmod(rest, outputs[0].shape[3])
        image, channel = np.divmod(plane, data.shape[1])
        for r in range(window.size[0]):
            for s in range(window.size[1]):
                h, w = p * window.stride[0] - window.padding[0] + r, q * window.stride[1] - window.padding[1] + s
                is_inside = inside & (h >= 0) & (h < data.shape[2]) & (w >= 0) & (w < data.shape[3])
                yield load(np.where(is_inside, data.element_address(image, channel, h, w), OFF))
        for view in outputs:
            yield store(np.where(inside, view.flat_address(np.where(inside, number, 0)), OFF), view.element_bytes)

    steps = window.size[0] * window.size[1] + len(outputs)
    return ModelledKernel(name, -(-elements // (LANES * _WARPS)), _WARPS, steps, program)


def pool_backward(name: str, inputs: tuple[TensorView, ...], out: TensorView, window: PoolingWindow) -> ModelledKernel:
    """Return the backward kernel: each thread reads the inputs of all windows over its pixel and writes its gradient.

    Parameters
    ----------
    name : of the kernel
    inputs : of the outputs' shape (N, C, P, Q): gradients and, for max pooling, indices
    out : (N, C, H, W)
    """
    elements, (height, width) = out.elements, inputs[0].shape[2:]
    across = [-(-size // stride) for size, stride in zip(window.size, window.stride, strict=True)]

    def program(blocks: Addresses) -> Iterator[Access]:
        number = blocks * LANES * _WARPS + threads(_WARPS)
        inside = number < elements
        plane, rest = np.divmod(np.where(inside, number, 0), out.shape[2] * out.shape[3])
        h, w = np.divmod(rest, out.shape[3])
        image, channel = np.divmod(plane, out.shape[1])
        first_p, first_q = (
            np.maximum(-(-(at + pad - size + 1) // stride), 0)
            for at, size, stride, pad in zip((h, w), window.size, window.stride, window.padding, strict=True)
        )
        end_p = np.minimum((h + window.padding[0]) // window.stride[0] + 1, height)
        end_q = np.minimum((w + window.padding[1]) // window.stride[1] + 1, width)
        for r in range(across[0]):
            for s in range(across[1]):
                is_inside = inside & (first_p + r < end_p) & (first_q + s < end_q)
                for view in reversed(inputs):  # the index tells whether the gradient is requested
                    addresses = view.element_address(
                        image, channel, np.minimum(first_p + r, height - 1), np.minimum(first_q + s, width - 1)
                    )
                    yield load(np.where(is_inside, addresses, OFF), view.element_bytes)
        yield store(np.where(inside, out.flat_address(np.where(inside, number, 0)), OFF))

    steps = across[0] * across[1] * len(inputs) + 1
    return ModelledKernel(name, -(-elements // (LANES * _WARPS)), _WARPS, steps, program)
