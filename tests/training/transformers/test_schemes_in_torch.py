"""Each scheme in PyTorch, on tiny models: gradients of the plain run bit by bit, and the tensors that were predicted.

What moves on a GPU is moved here between two parts of the CPU's memory, by the same hooks in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.autograd.graph import save_on_cpu, saved_tensors_hooks  # noqa: E402

from buddysim.training.autograd.offload import OffloadSettings  # noqa: E402
from buddysim.training.autograd.records import TracedOperation  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.options.offload_rule import OffloadRule  # noqa: E402
from buddysim.training.options.optimizer_offload import OptimizerOffload  # noqa: E402
from buddysim.training.options.saving_rules import SavingRules  # noqa: E402
from buddysim.training.options.weights_offload import WeightsOffload  # noqa: E402
from buddysim.training.recorded_step.from_config import network_from_config  # noqa: E402
from tests.training.transformers import configs  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

NAMES = ["LlamaForCausalLM", "GPT2LMHeadModel", "MixtralForCausalLM", "Qwen3ForCausalLM", "GPTNeoXForCausalLM"]
#: Save views that aren't dense: of their copies, which are, a product's kernel adds in another order.
RELAID = ("MixtralForCausalLM", "GPTNeoXForCausalLM")
Shapes = list[tuple[tuple[int, ...], int]]


def predicted(name: str, rules: SavingRules, operation: str) -> Shapes:
    """Shape and bytes of the tensors of copies, in order."""
    options: dict[str, Any] = {"sequence": configs.TOKENS, "recipe": "fp32", "attention": "eager"}
    network = network_from_config(configs.CONFIGS[name], **options)
    tape = network._recorded(configs.BATCH, "adamw", rules).tape
    copies: list[TracedOperation] = [one for one in tape.operations if one.name == operation]
    moved = [(one, (one.reads or one.writes)[0]) for one in copies]
    assert all(one.copy is not None and one.copy.bytes > 0 for one in copies)
    return [(operand.shape, one.copy.bytes) for one, operand in moved if one.copy is not None]


def gradients(
    name: str, around: Callable[[Any], Any] = lambda model: nullcontext(), prepare: Callable[[Any], None] | None = None
) -> dict[str, Any]:
    """Gradients of a step, by weight."""
    model: Any = configs.build(name)
    if prepare is not None:
        prepare(model)
    torch.manual_seed(2)
    with cuda_rules("flash"), around(model):
        loss = model(**configs.inputs(name)).loss
        loss.backward()
    return {weight: one.grad.clone() for weight, one in model.named_parameters() if one.grad is not None}


def assert_equal(one: dict[str, Any], other: dict[str, Any], is_relaid: bool = False) -> None:
    """The same weights have the same gradients, bit by bit; up to rounding where a copy has another layout."""
    assert one.keys() == other.keys()
    if is_relaid:
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
        return
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", list(configs.CONFIGS))
def test_recomputed_blocks_give_the_same_gradients(name: str):
    def prepare(model: Any) -> None:
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})

    assert_equal(gradients(name), gradients(name, prepare=prepare))


@pytest.mark.parametrize("name", NAMES)
def test_save_on_cpu_moves_every_saved_tensor(name: str):
    moved: Shapes = []

    class Noted(save_on_cpu):  # type: ignore[misc]
        """PyTorch's own hooks, that note what they get."""

        def __init__(self) -> None:
            super().__init__(pin_memory=True)
            pack = self.pack_hook

            def noted(tensor: Any) -> Any:
                moved.append((tuple(tensor.shape), tensor.numel() * tensor.element_size()))
                return pack(tensor)

            self.pack_hook = noted

    @contextmanager
    def around(model: Any) -> Iterator[None]:
        with Noted():
            yield

    everything = OffloadRule(OffloadSettings(0, 1, 0, blocking=True), outputs=True)
    assert_equal(gradients(name), gradients(name, around), is_relaid=True)  # copies are contiguous
    assert sorted(predicted(name, SavingRules((), everything), "offload")) == sorted(moved)


@pytest.mark.parametrize("name", NAMES)
def test_offloaded_activations_are_those_of_the_body(name: str):
    moved: Shapes = []

    @contextmanager
    def around(model: Any) -> Iterator[None]:
        weights = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}

        def pack(tensor: Any) -> Any:
            size = tensor.numel() * tensor.element_size()
            if size < 1024 or tensor.untyped_storage().data_ptr() in weights:
                return tensor
            moved.append((tuple(tensor.shape), size))
            return tensor.detach().clone()

        hooks = saved_tensors_hooks(pack, lambda packed: packed)
        body = model.base_model
        handles = [
            body.register_forward_pre_hook(lambda *_: hooks.__enter__()),
            body.register_forward_hook(lambda *_: hooks.__exit__(None, None, None)),
        ]
        yield
        for handle in handles:
            handle.remove()

    assert_equal(gradients(name), gradients(name, around), name in RELAID)
    rules = SavingRules((), OffloadRule(OffloadSettings(1, 5, 1024)))
    assert sorted(predicted(name, rules, "offload")) == sorted(moved)


@pytest.mark.parametrize("name", NAMES)
def test_an_optimizer_on_the_host_updates_to_the_same_weights(name: str):
    """torchao's order: gradients leave from hooks; each weight is updated alone, in the order of its gradient."""
    settings: dict[str, Any] = {"lr": 0.01, "fused": True}
    smallest = OptimizerOffload().smallest()

    def trained(on_host: bool) -> tuple[dict[str, Any], Shapes]:
        model: Any = configs.build(name)
        moved: Shapes = []
        arrived: dict[Any, Any] = {}
        hosts = {one: one.detach().clone() for one in model.parameters() if on_host and one.numel() >= smallest}
        optimizers = {one: torch.optim.AdamW([host], **settings) for one, host in hosts.items()}
        rest = torch.optim.AdamW([one for one in model.parameters() if one not in hosts], **settings)

        def leaves(weight: Any) -> None:
            moved.append((tuple(weight.shape), weight.grad.numel() * weight.grad.element_size()))
            arrived[weight] = weight.grad.detach().clone()
            weight.grad = None

        for one in hosts:
            one.register_post_accumulate_grad_hook(leaves)
        for _ in range(2):
            moved.clear()
            arrived.clear()
            with cuda_rules("flash"):
                model(**configs.inputs(name)).loss.backward()
            rest.step()
            for weight, gradient in arrived.items():
                hosts[weight].grad = gradient
                optimizers[weight].step()
                weight.data.copy_(hosts[weight])
            rest.zero_grad()
        return {weight: one.detach() for weight, one in model.named_parameters()}, moved

    plain, _ = trained(on_host=False)
    offloaded, moved = trained(on_host=True)
    assert_equal(plain, offloaded)
    assert predicted(name, SavingRules(optimizer=OptimizerOffload()), "offload") == moved


@pytest.mark.parametrize("name", NAMES)
def test_fetched_weights_give_the_same_gradients(name: str):
    """As FSDP2: the storage of a block's weights is empty but around its passes."""
    fetched: Shapes = []

    def prepare(model: Any) -> None:
        blocks = next(one for one in model.modules() if isinstance(one, torch.nn.ModuleList))
        for block in blocks:
            _fetch_around(block, fetched)

    assert_equal(gradients(name), gradients(name, prepare=prepare))
    rules = SavingRules(optimizer=OptimizerOffload(), weights=WeightsOffload(0))
    outside = len(predicted(name, rules, "prefetch")) - len(fetched)
    assert predicted(name, rules, "prefetch")[outside:] == fetched


def _fetch_around(block: Any, fetched: Shapes) -> None:
    weights = list(block.parameters())
    stored = [one.detach().clone() for one in weights]
    is_resident = True

    def give_back(*_: Any) -> None:
        nonlocal is_resident
        is_resident = False
        for one in weights:
            one.untyped_storage().resize_(0)

    def fetch(*_: Any) -> None:
        nonlocal is_resident
        if is_resident:
            return
        is_resident = True
        for one, content in zip(weights, stored, strict=True):
            fetched.append((tuple(one.shape), one.numel() * one.element_size()))
            one.untyped_storage().resize_(content.untyped_storage().nbytes())
            with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(one):
                one.copy_(content)

    give_back()
    block.register_forward_pre_hook(fetch)
    block.register_forward_hook(give_back)
    block.register_full_backward_pre_hook(fetch)
    block.register_full_backward_hook(give_back)
