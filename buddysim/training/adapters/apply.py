"""Freezes a model's weights, quantises some, and puts adapters next to those of chosen modules."""

from __future__ import annotations

from buddysim.training.adapters.lora import FORMS
from buddysim.training.adapters.targets import linear_layers, replace, targets
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.gpt2 import Conv1D
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.module import Module
from buddysim.training.options.adapter_options import LoraRequest
from buddysim.training.quantized.linear import QuantizedLinear
from buddysim.training.quantized.nf4 import quantize


def adapt(model: Module, model_type: str, request: LoraRequest, *, fused: bool) -> None:
    """Train adapters alone.

    All weights of the model are frozen: those of norms, embeddings, biases and experts too. Quantised are, in both
    libraries, the linear layers of all blocks, with or without an adapter.

    Parameters
    ----------
    fused : what element-wise operators do is one kernel, as in compiled code

    Raises
    ------
    BuddysimError
        a module that the model doesn't have, weights that can't be quantised
    """
    paths = tuple(targets(model, model_type, request.modules))
    for parameter in model.parameters():
        parameter.requires_grad = False
    if request.quantized:
        _quantize_blocks(model, request.library, fused=fused)
    layers = linear_layers(model)
    for path in paths:
        replace(model, path, FORMS[request.library](layers[path], request.rank))


def _quantize_blocks(model: Module, library: str, *, fused: bool) -> None:
    blocks = tuple(f"{path}." for path, _ in blocks_of(model))
    for path, layer in linear_layers(model).items():
        if path.startswith(blocks):
            assert isinstance(layer, Linear | Conv1D)
            shape, dtype = layer.weight.shape, layer.weight.dtype
            if isinstance(layer, Conv1D):
                shape = shape[1], shape[0]
            weight = quantize(library, path, shape, dtype, fused=fused)
            replace(model, path, QuantizedLinear(weight, layer.bias))
