"""Tensors that PyTorch's autograd saves for a module on the CPU, each storage once."""

from __future__ import annotations

import torch
from torch import nn

from buddysim.training.networks.from_torch import network_from_torch
from buddysim.training.networks.torch_saves import saved_by_torch, saved_bytes


def measured(module: nn.Module, images: torch.Tensor) -> tuple[int, int]:
    """Return the bytes of storages saved for the backward pass: of activations, and of parameters and buffers."""
    own = {one.untyped_storage().data_ptr() for one in (*module.parameters(), *module.buffers())}
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()  # held, so that none is used again
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.backends.mkldnn.flags(enabled=False),
    ):
        module(images)
    byte_counts = [
        sum(one.nbytes() for key, one in storages.items() if (key in own) == is_own) for is_own in (False, True)
    ]
    return byte_counts[0], byte_counts[1]


def example(shape: tuple[int, ...], batch: int, words: int | None = None) -> torch.Tensor:
    """Return a batch of tokens if there are `words`, else of values."""
    generator = torch.Generator().manual_seed(0)
    if words is not None:
        return torch.randint(0, words, (batch, *shape), generator=generator)
    return torch.randn(batch, *shape, generator=generator)


def assert_as_measured(module: nn.Module, shape: tuple[int, ...], batch: int = 3, words: int | None = None) -> None:
    """Check that the bytes predicted for a module are those that PyTorch saves."""
    network = network_from_torch(module, shape, in_place_as_written=True)
    activations, weights = measured(module, example(shape, batch, words))
    saved_tensors = [(network.layers[i].name, one) for i, one in enumerate(saved_by_torch(network, batch, "cpu"))]
    assert saved_bytes(network, batch, "cpu") == activations, saved_tensors
    assert weights == sum(one.weight_bytes for _, one in saved_tensors), saved_tensors
