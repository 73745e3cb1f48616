"""The measurement that the other tests compare with: against PyTorch's own tracker, and against itself."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from torch.distributed._tools.mem_tracker import MemTracker  # noqa: E402

from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.measured import measure  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]


def adamw(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """As on a GPU, where PyTorch takes the `foreach` variant by itself."""
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=True)


@pytest.mark.parametrize("name", configs.CONFIGS)
def test_the_peak_is_that_of_pytorchs_tracker(name: str):
    model, batch = configs.build(name), configs.inputs(name)
    measured = measure(model, batch, steps=1, in_mode=True)
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
    measured = measure(configs.build("LlamaForCausalLM"), configs.inputs("LlamaForCausalLM"), adamw, steps=3)
    second, third = (
        [(event.kind, event.operator, event.bytes) for event in measured.events if event.step == step]
        for step in (1, 2)
    )
    assert second == third
    assert measured.saved_bytes(1) == measured.saved_bytes(2)
