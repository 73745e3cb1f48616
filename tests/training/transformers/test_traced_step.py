"""A step traced without data against the same step on real tensors: saved tensors and events, one by one."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.training.autograd.records import CUDA_SCRATCH  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.networks.from_torch.traced_step import trace_step  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    differences_of,
    events_of_measured,
    events_of_tape,
    first_difference,
    peak_of_tape,
    saved_of_measured,
    saved_of_tape,
)
from tests.training.transformers.measured import measure  # noqa: E402
from tests.training.transformers.modules import MODULES  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

RECIPES = ("fp32", "bf16", "amp-bf16")
#: Classes of which the recorded step lacks a copy of a joined gradient, whose layout differs on `meta`; its saved
#: tensors and its peak are equal (`test_recorded_readers.py`).
OTHER_LAYOUT = ("Qwen3NextForCausalLM",)


def adamw(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=True)


def assert_equal(model: torch.nn.Module, batch: dict[str, torch.Tensor], recipe: Any, loss: Any, steps: int) -> None:
    """Compare a trace with a measurement; the model is in single precision, and is trained."""
    optimizer = adamw if steps > 1 else None
    tape = trace_step(model, batch, recipe, loss=loss, optimizer=optimizer, steps=steps)
    if recipe == "bf16":
        model = model.bfloat16()
        batch = {name: one.bfloat16() if one.is_floating_point() else one for name, one in batch.items()}
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "amp-bf16" else None
    with cuda_rules():
        measured = measure(model, batch, optimizer, steps, autocast, loss)
    assert list(differences_of(saved_of_measured(measured), saved_of_tape(tape))) == []
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""
    assert peak_of_tape(tape) == max(measured.curve())


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", [name for name in configs.CONFIGS if name not in OTHER_LAYOUT])
def test_eager_attention_is_as_measured(name: str, recipe: str):
    steps = 2 if name in ("LlamaForCausalLM", "MixtralForCausalLM") else 1
    assert_equal(configs.build(name), configs.inputs(name), recipe, lambda output: output.loss, steps)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", [name for name in configs.CONFIGS if name not in (*configs.EAGER_ONLY, *OTHER_LAYOUT)])
def test_fused_attention_is_as_measured(name: str, recipe: str):
    assert_equal(configs.build(name, "sdpa"), configs.inputs(name), recipe, lambda output: output.loss, 1)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_a_user_is_as_measured(name: str, recipe: str):
    make, batch = MODULES[name]
    torch.manual_seed(0)
    assert_equal(make().train(), batch(), recipe, lambda output: output.float().square().mean(), 2)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "BertForMaskedLM"])
def test_memory_of_cuda_kernels_alone_is_that_of_the_symbolic_record(name: str):
    """A product of gradient and result for each softmax of the attention; not of the loss, whose kernel has none."""
    model, batch = configs.build(name), configs.inputs(name)
    tape = trace_step(model, batch, "fp32", loss=lambda output: output.loss)
    scratch = [one for one in tape.storages if one.producer == CUDA_SCRATCH]
    softmaxes = [one for one in tape.operations if one.name == "_softmax_backward_data"]
    assert [one.bytes for one in scratch] == [one.writes[0].bytes for one in softmaxes]
    assert len(scratch) == model.config.num_hidden_layers
    assert all(one.freed is not None for one in scratch)


def test_a_module_on_the_meta_device_is_read():
    with torch.device("meta"):
        made = configs.build("LlamaForCausalLM")
    real = configs.build("LlamaForCausalLM")
    batch = configs.inputs("LlamaForCausalLM")
    expected, simulated = (events_of_tape(trace_step(model, batch)) for model in (real, made))
    assert first_difference(expected, simulated) == ""


def test_scopes_are_modules():
    tape = trace_step(configs.build("LlamaForCausalLM"), configs.inputs("LlamaForCausalLM"))
    products = [one for one in tape.operations if one.name == "mm" and one.scope == "model.layers.1.mlp.up_proj"]
    assert [one.phase for one in products] == ["forward", "backward", "backward"]
    assert {one.node for one in products[1:]} == {"MmBackward0"}
    assert [tuple(product) for one in products for product in one.products] == [
        (30, 56, 32, 1),
        (56, 32, 30, 1),
        (30, 32, 56, 1),
    ]


def test_the_module_stays_as_it_was():
    model = configs.build("GPT2LMHeadModel").eval()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    trace_step(model, configs.inputs("GPT2LMHeadModel"), "bf16", optimizer=adamw)
    assert not model.training
    assert all(one.grad is None for one in model.parameters())
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())


class Routed(torch.nn.Module):
    """Asks for a value that only data have."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.gate(x)
        return scores if scores.sum() > 0 else -scores


class Several(torch.nn.Linear):
    """Returns a loss under a name that isn't known."""

    def __init__(self) -> None:
        super().__init__(8, 2)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"cost": super().forward(x).sum()}


def test_a_module_that_asks_for_values_is_refused():
    with pytest.raises(BuddysimError, match=r"^Routed: .*_local_scalar_dense.* depends on values"):
        trace_step(Routed(), [torch.randn(4, 8)])


def test_wrong_inputs_are_named():
    with pytest.raises(BuddysimError, match=r"^Linear: the module doesn't run on these inputs: .*reduction dim"):
        trace_step(torch.nn.Linear(8, 2), [torch.randn(4, 7)])


def test_a_module_without_weights_is_refused():
    with pytest.raises(BuddysimError, match=r"^Identity: nothing is trained"):
        trace_step(torch.nn.Identity(), [torch.randn(4, 7)])


def test_a_module_that_returns_no_tensor_is_refused():
    with pytest.raises(BuddysimError, match=r"^Several: the module returns dict: expected a loss or a tensor"):
        trace_step(Several(), [torch.randn(4, 8)])
