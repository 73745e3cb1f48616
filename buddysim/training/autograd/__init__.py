"""A symbolic PyTorch: tensors without data, autograd, autocast, and the record of what a training step allocates.

Models are written as in PyTorch, and traced within a `Tape`::

    from buddysim.training.autograd import Module, Parameter, Tape, functional

Nothing here needs numpy or PyTorch. Results are those of PyTorch 2.13 on a CUDA GPU.
"""

from buddysim.training.autograd import functional
from buddysim.training.autograd.autocast import Autocast
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tape import Tape, active_tape
from buddysim.training.autograd.tensor import Tensor, TensorStorage

__all__ = ["Autocast", "Module", "Parameter", "Tape", "Tensor", "TensorStorage", "active_tape", "functional"]
