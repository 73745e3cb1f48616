"""An optimizer whose state and updates are the host's: plain data, in a plan's rules of saving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.layout import Shape
from buddysim.training.optimizers.optimizer import Optimizer

Library = Literal["torchao", "deepspeed"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
HostDevice = Literal["host", "nvme"]
DEVICES: tuple[HostDevice, ...] = get_args(HostDevice)


class HostUpdate(NamedTuple):
    """What an update of one weight needs.

    Attributes
    ----------
    moved : bytes that it reads and writes in host memory
    gradient : bytes of the gradient in host memory
    state : bytes that the drives may hold: the optimizer's state, and the weight as it is updated
    result : bytes of the weight that goes back to the GPU
    """

    moved: int
    gradient: int
    state: int
    result: int


@dataclass(frozen=True)
class OptimizerOffload:
    """How the host updates weights.

    Attributes
    ----------
    library : whose order. ``"torchao"``: gradients leave weight by weight on a stream of their own, and weights go back
        one by one as they are updated. ``"deepspeed"``: gradients leave in single precision between the computations,
        and all weights go back in single precision once all are updated
    keep_gradients : gradients stay on the GPU until the update, as torchao leaves them if not told otherwise
    delayed : the host updates with the gradients of the iteration before, next to the computations (ZeRO-Offload,
        section 5.2); results change
    device : where the state lies
    """

    library: Library = "torchao"
    keep_gradients: bool = False
    delayed: bool = False
    device: HostDevice = "host"

    def smallest(self) -> int:
        """Elements from which on a weight is the host's: torchao's ``minimal_size``."""
        return 4096 if self.library == "torchao" else 0

    def gradient_dtype(self, dtype: DType) -> DType:
        """Return the format in which a gradient leaves the GPU."""
        return dtype if self.library == "torchao" else float32

    def update(self, optimizer: Optimizer, shape: Shape, dtype: DType, masters: bool, back: bool) -> HostUpdate:
        """Return what an update of a weight needs.

        Parameters
        ----------
        dtype : of the weight that the model computes with
        masters : the recipe has weights in single precision next to those
        back : the weight goes back to the GPU
        """
        elements = 1
        for extent in shape:
            elements *= extent
        own = float32 if masters or self.library == "deepspeed" else dtype
        gradient = elements * self.gradient_dtype(dtype).size
        state = sum(one.bytes for one in optimizer.state(shape, own, optimizer.VARIANTS[0]))
        moved = 2 * (elements * own.size + state) + gradient
        if self.library == "deepspeed":
            moved += 2 * gradient  # `unscale_and_clip_grads` multiplies all gradients
        result = elements * (own.size if self.library == "deepspeed" else dtype.size)
        if own is not dtype and self.library == "torchao":
            moved += result  # a copy in the format of the model
        return HostUpdate(moved, gradient, state + elements * own.size, result if back else 0)
