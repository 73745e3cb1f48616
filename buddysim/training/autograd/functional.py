"""Operators under the names that models call them by (``torch`` and ``torch.nn.functional``)."""

from __future__ import annotations

from buddysim.training.autograd.operators.activations import gelu, relu, sigmoid, silu, softplus, tanh
from buddysim.training.autograd.operators.arithmetic import add, div, mul, sub
from buddysim.training.autograd.operators.attention import scaled_dot_product_attention
from buddysim.training.autograd.operators.copies import cat, pad, stack
from buddysim.training.autograd.operators.dropouts import dropout
from buddysim.training.autograd.operators.fills import ones, ones_like, zeros, zeros_like
from buddysim.training.autograd.operators.functions import clamp, cos, erf, exp, log, rsqrt, sin, sqrt, square
from buddysim.training.autograd.operators.indexing import embedding, where
from buddysim.training.autograd.operators.losses import cross_entropy, nll_loss
from buddysim.training.autograd.operators.norms import layer_norm, rms_norm
from buddysim.training.autograd.operators.products import addmm, baddbmm, bmm, linear, matmul, mm
from buddysim.training.autograd.operators.softmaxes import log_softmax, softmax

__all__ = [
    "add",
    "addmm",
    "baddbmm",
    "bmm",
    "cat",
    "clamp",
    "cos",
    "cross_entropy",
    "div",
    "dropout",
    "embedding",
    "erf",
    "exp",
    "gelu",
    "layer_norm",
    "linear",
    "log",
    "log_softmax",
    "matmul",
    "mm",
    "mul",
    "nll_loss",
    "ones",
    "ones_like",
    "pad",
    "relu",
    "rms_norm",
    "rsqrt",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "softplus",
    "sqrt",
    "square",
    "stack",
    "sub",
    "tanh",
    "where",
    "zeros",
    "zeros_like",
]
