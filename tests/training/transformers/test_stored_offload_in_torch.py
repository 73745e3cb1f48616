"""`--offload-results` in PyTorch: gradients of the plain run bit by bit, and every move in the predicted order.

PyTorch's selective checkpointing stores the results. A result's memory is given back for real: its storage is empty
between the end of the forward pass of the block ``defer`` behind, and the backward pass of the block ``ahead`` of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from buddysim.training.autograd.blocks import divide_path  # noqa: E402
from buddysim.training.autograd.records import FreeEvent, TracedOperation  # noqa: E402
from buddysim.training.autograd.tape import Tape  # noqa: E402
from buddysim.training.options.checkpoint_rule import CheckpointRule, StoredOperators  # noqa: E402
from buddysim.training.options.saving_rules import SavingRules  # noqa: E402
from buddysim.training.recorded_step.from_config import network_from_config  # noqa: E402
from buddysim.training.saving.largest_results import with_offloaded_results  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.test_checkpoint import contexts_of  # noqa: E402
from tests.training.transformers.test_schemes_in_torch import assert_equal, gradients  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

BLOCKS = 4
STORED = StoredOperators(("mm", "addmm", "bmm"))
#: What happens: a block's pass begins, or bytes leave, are given back, come back.
Move = tuple[str, int]


class OffloadInTorch:
    """torchtitan's hooks on the blocks of a model."""

    def __init__(self, rule: CheckpointRule) -> None:
        assert rule.offloaded is not None
        self.selected, self.defer, self.ahead = set(rule.offloaded.results), rule.offloaded.defer, rule.offloaded.ahead
        self.stored: dict[int, list[tuple[Any, Any]]] = {}
        self.moves: list[Move] = []
        self.block = 0

    def prepare(self, model: Any) -> None:
        keywords = {"use_reentrant": False, "context_fn": self.contexts}
        model.activation_checkpointing_enable(activation_checkpointing_kwargs=keywords)
        blocks = next(one for one in model.modules() if isinstance(one, torch.nn.ModuleList))
        for number, block in enumerate(blocks):
            block.register_forward_pre_hook(lambda *_, number=number: self.begins("forward", number))
            block.register_forward_hook(lambda *_, number=number: self.forward_ends(number))
            block.register_full_backward_pre_hook(lambda *_, number=number: self.begins("backward", number))

    def contexts(self) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        first, second = contexts_of(STORED)
        return self.stores(self.block, first), second

    @contextmanager
    def stores(self, block: int, context: Any) -> Iterator[None]:
        with _Results(self, block), context:
            yield

    def store(self, block: int, number: int, result: Any) -> None:
        if (block, number) in self.selected:
            storage = result.untyped_storage()
            self.stored.setdefault(block, []).append((storage, storage.clone()))
            self.moves.append(("offload", storage.nbytes()))

    def begins(self, pass_: str, number: int) -> None:
        if pass_ == "forward":
            self.block = number
        else:
            for one in range(number, number - self.ahead - 1, -1):
                for storage, on_host in self.stored.pop(one, ()):
                    storage.resize_(on_host.nbytes())
                    storage.copy_(on_host)
                    self.moves.append(("prefetch", on_host.nbytes()))
        self.moves.append((pass_, number))

    def forward_ends(self, number: int) -> None:
        for earlier, stored in self.stored.items():
            if number == BLOCKS - 1 or earlier + self.defer <= number:
                for storage, on_host in stored:
                    if storage.nbytes():
                        self.moves.append(("give back", on_host.nbytes()))
                        storage.resize_(0)


class _Results(TorchDispatchMode):  # type: ignore[misc]
    """Sees the operators of a block below its checkpointing."""

    def __init__(self, offload: OffloadInTorch, block: int) -> None:
        super().__init__()
        self.offload, self.block = offload, block
        self.keeps, self.count = STORED.policy(), 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if self.keeps(function.overloadpacket.__name__):
            self.offload.store(self.block, self.count, result)
            self.count += 1
        return result


def moves_of(tape: Tape) -> list[Move]:
    """What happens in a recorded step."""
    moves: list[Move] = []
    moved: set[int] = set()
    block: tuple[str, int] | None = None
    for event in tape.events:
        if isinstance(event, FreeEvent):
            if event.storage in moved:
                moves.append(("give back", event.bytes))
                moved.remove(event.storage)
        elif isinstance(event, TracedOperation):
            if event.name == "offload":
                moved.add(event.reads[0].storage)
            if event.copy is not None:
                moves.append((event.name, event.copy.bytes))
            path = divide_path(event.scope)[0]
            if event.stream == "compute" and event.name != "wait" and path.rpartition(".")[2].isdigit():
                pass_ = "backward" if event.phase == "recompute" else event.phase
                if (pass_, int(path.rpartition(".")[2])) != block:
                    block = pass_, int(path.rpartition(".")[2])
                    moves.append(block)
    return moves


@pytest.mark.parametrize(("defer", "ahead"), [(0, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize(("name", "key"), [("LlamaForCausalLM", "num_hidden_layers"), ("GPT2LMHeadModel", "n_layer")])
def test_moves_are_as_predicted_and_gradients_equal(
    name: str, key: str, defer: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(configs.CONFIGS, name, {**configs.CONFIGS[name], key: BLOCKS})
    options: dict[str, Any] = {"sequence": configs.TOKENS, "recipe": "fp32", "attention": "eager"}
    network = network_from_config(configs.CONFIGS[name], **options)
    plain = network._recorded(configs.BATCH, "adamw", SavingRules()).tape
    rule = with_offloaded_results(CheckpointRule(0, BLOCKS - 1, 1, STORED), plain, 60_000, defer, ahead)
    tape = network._recorded(configs.BATCH, "adamw", SavingRules((rule,))).tape
    offload = OffloadInTorch(rule)
    assert_equal(gradients(name), gradients(name, prepare=offload.prepare))
    assert sum(one == "offload" for one, _ in offload.moves) > 3
    assert offload.moves == moves_of(tape)
