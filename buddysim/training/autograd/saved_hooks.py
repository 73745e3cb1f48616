"""What happens to a tensor from when autograd saves it to its use (``torch.autograd.graph``).

Hooks replace a saved tensor by something else: a number, a copy on the host, the promise to compute it again. The
innermost ones count, as in PyTorch.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from buddysim.training.autograd.tape import Tape
    from buddysim.training.autograd.tensor import Tensor


class SavedTensorHooks:
    """``torch.autograd.graph.saved_tensors_hooks``."""

    #: Whether what they get counts as saved by its node.
    records: ClassVar[bool] = True

    def pack(self, tensor: Tensor, before: bool) -> Any:
        """Return what is saved instead of a tensor.

        Parameters
        ----------
        before : PyTorch saves it before the last operation of the tape runs, not after it
        """
        raise NotImplementedError

    def unpack(self, packed: Any) -> Tensor:
        """Return the tensor again, right before its node runs."""
        raise NotImplementedError


class FirstThatSelects(SavedTensorHooks):
    """Hooks for some modules each, of which the first that selects a module counts.

    Parameters
    ----------
    hooks : with what says, by a scope, whether they are for it
    """

    def __init__(self, tape: Tape, hooks: Sequence[tuple[Callable[[str], bool], SavedTensorHooks]]) -> None:
        self.tape, self.hooks = tape, hooks

    def pack(self, tensor: Tensor, before: bool) -> Any:
        for selects, hooks in self.hooks:
            if selects(self.tape.scope):
                return PackedTensor(hooks, hooks.pack(tensor, before))
        return tensor if before else tensor.detach()

    def unpack(self, packed: Any) -> Tensor:
        result: Tensor = unpacked(packed)
        return result


class PackedTensor:
    """What hooks made of a saved tensor."""

    __slots__ = ("content", "hooks")

    def __init__(self, hooks: SavedTensorHooks, content: Any) -> None:
        self.hooks, self.content = hooks, content

    def unpack(self) -> Tensor:
        """Return the tensor again."""
        return self.hooks.unpack(self.content)


def packed(tape: Tape, tensor: Tensor, before: bool) -> Any:
    """Return what a tape's hooks make of a tensor: the tensor itself where there are none."""
    hooks = tape.saved_hooks
    return tensor if hooks is None else PackedTensor(hooks, hooks.pack(tensor, before))


def unpacked(content: Any) -> Any:
    """Return a tensor again that may have been packed."""
    return content.unpack() if isinstance(content, PackedTensor) else content


@contextmanager
def saving_with(tape: Tape, hooks: SavedTensorHooks | None) -> Iterator[None]:
    """Save with hooks within; None: as autograd does by itself."""
    before, tape.saved_hooks = tape.saved_hooks, hooks
    try:
        yield
    finally:
        tape.saved_hooks = before
