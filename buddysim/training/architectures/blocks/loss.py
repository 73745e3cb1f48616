"""The loss of language models: of all logits at once, of parts of the tokens, or fused with the output product.

``whole``
    transformers: the logits, their fp32 copy, log-softmax in fp32.
``chunked:N``
    torchtune's `CEWithChunkedOutputLoss`, whose cross-entropy is compiled: the logits of all parts stay until the
    backward pass in their own dtype, the fp32 copy is never in memory, and the output matrix gets a gradient from each
    part.
``fused``
    Liger's `LigerFusedLinearCrossEntropyFunction`: forward computes the gradients of the features and of the matrix
    part by part, with the logits of one part in memory; backward multiplies them by the loss's gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


@dataclass(frozen=True)
class Head:
    """The output matrix.

    Attributes
    ----------
    logits : scores of all words, of features
    weight, bias : of its product
    """

    logits: Callable[[Tensor], Tensor]
    weight: Parameter
    bias: Parameter | None = None


def whole_loss(logits: Tensor, labels: Tensor, *, shift: bool, upcast: bool = True) -> Tensor:
    """Cross-entropy of all logits.

    Parameters
    ----------
    logits : of shape (batch, tokens, words)
    labels : the words to predict, of shape (batch, tokens)
    shift : each token predicts the next one's label
    upcast : the logits are cast to fp32 first, as transformers does for decoders
    """
    with active_tape().in_scope("loss"):
        if upcast:
            logits = logits.float()
        shift_labels = labels
        if shift:
            labels = F.pad(labels, (0, 1))
            shift_labels = labels[..., 1:].contiguous()
        logits = logits.view(-1, logits.shape[-1])
        shift_labels = shift_labels.view(-1)
        return F.cross_entropy(logits, shift_labels)


def parted_loss(options: ConfigOptions, head: Head, hidden_states: Tensor, labels: Tensor, *, shift: bool) -> Tensor:
    """Cross-entropy without all logits in fp32 at a time: ``chunked`` or ``fused``; see `whole_loss`."""
    with active_tape().in_scope("loss"):
        shift_labels = _shifted(labels) if shift else labels
        if options.loss_chunks is None:
            rows = hidden_states.reshape(-1, hidden_states.shape[-1])
            return FusedLinearCrossEntropy.apply(rows, head.weight, head.bias, shift_labels.reshape(-1))
        return _chunked(options.loss_chunks, head, hidden_states, shift_labels)


def _shifted(labels: Tensor) -> Tensor:
    labels = F.pad(labels, (0, 1))
    shift_labels = labels[..., 1:].contiguous()
    return shift_labels


def _chunked(chunks: int, head: Head, hidden_states: Tensor, labels: Tensor) -> Tensor:
    parts = [head.logits(part) for part in hidden_states.chunk(chunks, 1)]
    total_elements = F.ne(labels, -100).sum()
    targets = [part.reshape(-1) for part in labels.chunk(chunks, 1)]
    parts = [part.reshape(-1, part.shape[-1]) for part in parts]
    total_loss: Tensor | None = None
    for part, target in zip(parts, targets, strict=True):
        loss = CompiledCrossEntropy.apply(part, target)
        total_loss = 0.0 + loss if total_loss is None else total_loss.add_(loss)
    assert total_loss is not None
    return total_loss / total_elements


class CompiledCrossEntropy(Function):
    """Cross-entropy of logits as torch.compile makes it: fp32 inside the kernels alone.

    Saved are the logits and, of each row, the largest one and the logarithm of the sum, in fp32.
    """

    __slots__ = ()

    def compute(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the sum over rows."""
        tape, rows = logits.storage.tape, (logits.shape[0], 1)
        largest, log_sum = tape.empty(rows, float32, "cross_entropy"), tape.empty(rows, float32, "cross_entropy")
        result = tape.empty((), float32, "cross_entropy")
        tape.launch("cross_entropy", (logits, labels), (largest, log_sum, result))
        self.save_for_backward(logits, labels, largest, log_sum)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradient of the logits, in their dtype."""
        logits = self.saved[0]
        result = self.tape.empty(logits.shape, logits.dtype, "cross_entropy_backward")
        self.tape.launch("cross_entropy_backward", (gradient, *self.saved), (result,))
        return result, None


class FusedLinearCrossEntropy(Function):
    """The output product and cross-entropy together; forward leaves gradients alone.

    The parts have as many tokens as keep a part's logits about as large as the features.
    """

    __slots__ = ()
    kernel: ClassVar[str] = "liger_cross_entropy"

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> Tensor:
        """Return the mean over rows."""
        (rows, features), words = x.shape, weight.shape[0]
        part = min(_power_of_two(-(-rows // -(-words // features))), rows)
        grad_input = F.zeros_like(x)
        grad_weight = F.zeros_like(weight) if weight.requires_grad else None
        grad_bias = F.zeros_like(bias) if bias is not None else None
        loss = F.zeros((rows,), float32)
        F.ne(target, -100).sum()
        for start in range(0, rows, part):
            stop = min(start + part, rows)
            inputs, targets = x[start:stop], target[start:stop]
            logits = self._logits(inputs, weight, bias)
            active_tape().launch(self.kernel, (logits, targets), (logits, loss[start:stop]))
            F.copy_(grad_input[start:stop], F.mm(logits, weight))
            if grad_weight is not None:
                _add_product(grad_weight, logits, inputs)
            if grad_bias is not None:
                grad_bias.add_(logits.sum(0))
            del logits
        gradients = [one for one in (grad_input, grad_weight, grad_bias) if one is not None]
        self.save_for_backward(*gradients)
        return loss.sum()

    @staticmethod
    def _logits(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        logits = F.mm(inputs, weight.t())
        return logits if bias is None else logits + bias

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradients, which the loss's gradient multiplies in their own memory."""
        results: list[Tensor | None] = []
        saved = list(self.saved)
        for position in range(len(self.edges)):
            result = saved.pop(0) if saved and (position == 0 or self.needs(position)) else None
            if result is not None:
                self.tape.launch("element_mul", (result, gradient), (result,))
            results.append(result)
        return results


def _power_of_two(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _add_product(total: Tensor, logits: Tensor, inputs: Tensor) -> None:
    """Add the product of a part to the matrix's gradient: in one kernel where both have one half precision."""
    if total.dtype is not logits.dtype or total.dtype is float32:
        total.add_(F.mm(logits.t(), inputs).float())
        return
    if inputs.dtype is not logits.dtype:
        inputs = inputs.to(logits.dtype)
    (rows, words), features = logits.shape, inputs.shape[1]
    product = Product(words, features, rows, 1)
    total.storage.tape.launch("addmm", (total, logits, inputs), (total,), (product,))
