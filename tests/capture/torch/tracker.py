"""An independent tracker of a script's memory on PyTorch's dispatcher: ``tracker.py SCRIPT ARGS`` prints JSON.

It shares nothing with the capture. Each storage counts once, rounded to 512 B, from its first appearance as an
operator's operand to its end; the noise of dropout counts a byte an element, as on a GPU. An iteration reaches from the
end of a step of the first optimizer to the end of its next one; the first begins with the script.
"""

import json
import math
import runpy
import sys
from pathlib import Path

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Tracker(TorchDispatchMode):
    """Live bytes, their peak in each iteration, and what autograd saves."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, tuple[StorageWeakRef, int]] = {}
        self.bytes, self.peak, self.iterations, self.saved = 0, 0, [], []
        self.first, self.state = None, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._drop_ended()
        self._note(args, kwargs)
        result = func(*args, **(kwargs or {}))
        self._note(result)
        if func.overloadpacket.__name__ == "bernoulli_":
            storage = result.untyped_storage()
            reference, size = self.live[storage._cdata]
            self.live[storage._cdata] = reference, rounded(result.numel())
            self.bytes += rounded(result.numel()) - size
        self.peak = max(self.peak, self.bytes)
        return result

    def _drop_ended(self) -> None:
        ended = torch.UntypedStorage._expired
        for key in [key for key, (reference, _) in self.live.items() if ended(reference.cdata)]:
            self.bytes -= self.live.pop(key)[1]

    def _note(self, *values) -> None:
        for one in tree_leaves(values):
            if isinstance(one, torch.Tensor) and one.layout == torch.strided and one.device.type == "cpu":
                storage = one.untyped_storage()
                if storage._cdata not in self.live and storage.nbytes():
                    self.live[storage._cdata] = StorageWeakRef(storage), rounded(storage.nbytes())
                    self.bytes += rounded(storage.nbytes())

    def pack(self, tensor):
        self.saved.append([list(tensor.shape), str(tensor.dtype)[6:]])
        return Held(tensor)

    def step(self, optimizer, args, kwargs) -> None:
        self.first = self.first or optimizer
        self.state[id(optimizer)] = optimizer
        if optimizer is not self.first:
            return
        groups = [group for one in self.state.values() for group in one.param_groups]
        weights = {id(one): one for group in groups for one in group["params"]}
        self.iterations.append(
            {
                "peak": self.peak,
                "weights": sum(one.untyped_storage().nbytes() for one in weights.values()),
                "state": sum(
                    value.untyped_storage().nbytes()
                    for one in self.state.values()
                    for state in one.state.values()
                    for value in state.values()
                    if isinstance(value, torch.Tensor)
                ),
                "saved": self.saved,
            }
        )
        self._drop_ended()
        self.peak, self.saved = self.bytes, []


class Held:
    """A saved tensor."""

    def __init__(self, tensor) -> None:
        self.tensor = tensor


def rounded(size: int) -> int:
    return math.ceil(size / 512) * 512


def main() -> None:
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).resolve().parent)
    tracker = Tracker()
    register_optimizer_step_post_hook(tracker.step)
    with torch.autograd.graph.saved_tensors_hooks(tracker.pack, lambda held: held.tensor), tracker:
        runpy.run_path(script, run_name="__main__")
    print(json.dumps(tracker.iterations))


if __name__ == "__main__":
    main()
