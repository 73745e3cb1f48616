"""Operators under the names that models call them by (``torch`` and ``torch.nn.functional``)."""

from __future__ import annotations

from buddysim.training.autograd.operators.activations import gelu, relu, sigmoid, silu, softplus, tanh
from buddysim.training.autograd.operators.attention import scaled_dot_product_attention
from buddysim.training.autograd.operators.copies import cat, repeat, stack, to, zeros, zeros_like
from buddysim.training.autograd.operators.dropouts import dropout
from buddysim.training.autograd.operators.indexing import embedding, masked_fill, where
from buddysim.training.autograd.operators.losses import cross_entropy, nll_loss
from buddysim.training.autograd.operators.norms import layer_norm, rms_norm
from buddysim.training.autograd.operators.pointwise import cos, exp, rsqrt, sin
from buddysim.training.autograd.operators.products import addmm, bmm, linear, matmul, mm
from buddysim.training.autograd.operators.softmaxes import log_softmax, softmax

__all__ = [
    "addmm",
    "bmm",
    "cat",
    "cos",
    "cross_entropy",
    "dropout",
    "embedding",
    "exp",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "masked_fill",
    "matmul",
    "mm",
    "nll_loss",
    "relu",
    "repeat",
    "rms_norm",
    "rsqrt",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "softplus",
    "stack",
    "tanh",
    "to",
    "where",
    "zeros",
    "zeros_like",
]
