"""The measurement that the other tests compare with: against PyTorch's own tracker, and against itself."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from torch.distributed._tools.mem_tracker import MemTracker  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.measured import measure  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]


def adamw(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """As on a GPU, where PyTorch takes the `foreach` variant by itself."""
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=True)


class Watched(TorchDispatchMode):
    """Does nothing, but as PyTorch's tracker it is a mode: autograd adds gradients out of place while one is active."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", configs.CONFIGS)
def test_the_peak_is_that_of_pytorchs_tracker(name: str):
    model, batch = configs.build(name), configs.inputs(name)
    with Watched():
        measured = measure(model, batch, steps=1)
    model, batch = configs.build(name), configs.inputs(name)
    tracker = MemTracker()
    tracker.track_external(model, *batch.values())
    with tracker:
        model(**batch).loss.backward()
    peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    assert max(measured.curve()) == peak


@pytest.mark.parametrize("name", configs.CONFIGS)
def test_losses_by_cudas_rules_are_the_cpus(name: str):
    model, batch = configs.build(name).eval(), configs.inputs(name)
    expected = model(**batch).loss
    with cuda_rules():
        torch.testing.assert_close(model(**batch).loss, expected)


def test_later_steps_repeat_each_other():
    measured = measure(configs.build("LlamaForCausalLM"), configs.inputs("LlamaForCausalLM"), adamw, steps=4)
    second, third = (
        [(event.kind, event.operator, event.bytes) for event in measured.events if event.step == step]
        for step in (1, 2)
    )
    assert second == third
    assert measured.saved_bytes(1) == measured.saved_bytes(2)
