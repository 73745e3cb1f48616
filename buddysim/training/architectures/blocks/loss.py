"""The loss of language models: of all logits at once, of parts of the tokens, or fused with the output product.

``whole``
    transformers: the logits, their fp32 copy, log-softmax in fp32.
``chunked:N``
    torchtune's `CEWithChunkedOutputLoss`, whose cross-entropy is compiled: the logits of all parts stay until
    backward in their own dtype, the fp32 copy is never in memory, and the output matrix gets a gradient from each part.
``fused``
    Liger's `LigerFusedLinearCrossEntropy`: forward computes the gradients of the features and of the matrix part by
    part, with the logits of one part in memory; backward multiplies them by the loss's gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.networks.config_options import ConfigOptions


def head_loss(
    options: ConfigOptions, head: Callable[[Tensor], Tensor], hidden_states: Tensor, labels: Tensor, *, shift: bool
) -> Tensor:
    """Compute the loss of features.

    Parameters
    ----------
    options : decide the kind of loss
    head : returns the logits of features
    hidden_states : features of shape (batch, tokens, features)
    labels : the words to predict, of shape (batch, tokens)
    shift : each token predicts the next one's label
    """
    if options.loss == "whole":
        logits = head(hidden_states)
        return whole_loss(logits, labels, shift=shift)
    raise NotImplementedError(options.loss)


def whole_loss(logits: Tensor, labels: Tensor, *, shift: bool) -> Tensor:
    """Cross-entropy of all logits in fp32."""
    logits = logits.float()
    if shift:
        labels = F.pad(labels, (0, 1))
        labels = labels[..., 1:].contiguous()
    logits = logits.view(-1, logits.shape[-1])
    labels = labels.view(-1)
    return F.cross_entropy(logits, labels)
