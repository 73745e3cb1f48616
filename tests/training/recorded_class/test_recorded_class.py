"""Forward passes of PyTorch's modules on a tape: the step is PyTorch's own, and equal blocks run once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.training.autograd import Tape  # noqa: E402
from buddysim.training.autograd.autocast import Autocast  # noqa: E402
from buddysim.training.autograd.dtypes import int64  # noqa: E402
from buddysim.training.autograd.module import Module  # noqa: E402
from buddysim.training.networks.from_torch.below_autograd import handlers_installed  # noqa: E402
from buddysim.training.networks.from_torch.traced_step import trace_step  # noqa: E402
from buddysim.training.recorded_class.model import RecordedClass  # noqa: E402
from buddysim.training.recorded_class.modules import Mirror, RecordedModule  # noqa: E402
from tests.training.transformers.compared import differences_of, peak_of_tape, saved_of_tape  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
_RUNS: list[int] = []


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x + x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * ctx.saved_tensors[0]


class Block(nn.Module):
    """Dropout, a function of its own, a view that is written in place, and a graph that nothing depends on."""

    def __init__(self, position: int, wide: int = 8) -> None:
        super().__init__()
        self.position = position
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, wide), nn.Linear(wide, 8)

    def forward(self, x: Any) -> tuple[Any, Any]:
        _RUNS.append(self.position)
        y = nn.functional.dropout(torch.softmax(self.up(self.norm(x)), -1), 0.1)
        out = torch.zeros_like(x)
        out[:, 1:3] = self.down(Doubled.apply(y))[:, 1:3]
        unused = self.down(y) * out
        return x + out, unused


class Model(nn.Module):
    def __init__(self, wides: tuple[int, ...] = (8, 8, 8)) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.blocks = nn.ModuleList(Block(number, wide) for number, wide in enumerate(wides))
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        for block in self.blocks:
            x, _ = block(x)
        return nn.functional.cross_entropy(self.head(x).view(-1, 11), ids.view(-1))


class Root(RecordedModule):
    def __init__(self, source: RecordedClass) -> None:
        Module.__init__(self)
        self.source, self.isolation = source, source.isolation
        Mirror(source.isolation, source.trained).fill(self, source.module)


@pytest.fixture(scope="module", autouse=True)
def _handlers() -> Iterator[None]:
    with handlers_installed():
        yield


def recorded(model: Callable[[], nn.Module], *, autocast: bool = False) -> Tape:
    """Return the tape of a step with a batch of 2 samples of 5 tokens."""
    with torch.device("meta"):
        module = model()
    source = RecordedClass(module, {"ids": torch.zeros(5, dtype=torch.long)}, lambda loss: loss, "flash")
    with source.isolation.active(), Tape() as tape:
        root = Root(source)
        ids = tape.input((2, 5), int64, "ids")
        dtype = torch.bfloat16 if autocast else None
        program = source.program(2, dtype, frozenset())
        with tape.in_phase("forward"):
            if autocast:
                with Autocast(tape):
                    loss = root(ids=ids, program=program)
            else:
                loss = root(ids=ids, program=program)
        loss.backward()
    return tape


@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16"])
def test_a_step_is_as_pytorch_runs_it(recipe: Any) -> None:
    expected = trace_step(Model(), {"ids": torch.zeros((2, 5), dtype=torch.long)}, recipe)
    tape = recorded(Model, autocast=recipe != "fp32")
    assert list(differences_of(saved_of_tape(expected), saved_of_tape(tape))) == []
    assert peak_of_tape(tape) == peak_of_tape(expected)


@pytest.mark.parametrize(
    ("wides", "run"),
    [((8, 8, 8), [0]), ((8, 16, 8, 16), [0, 1]), ((8, 16, 24), [0, 1, 2])],
    ids=["one", "two", "three"],
)
def test_blocks_of_one_structure_run_once(wides: tuple[int, ...], run: list[int]) -> None:
    _RUNS.clear()
    tape = recorded(lambda: Model(wides))
    assert run == _RUNS
    assert sum(one.scope == f"blocks.{len(wides) - 1}.up" for one in tape.operations) > 0


def test_what_a_switch_changes_runs_by_itself() -> None:
    class Switched(Model):
        def __init__(self) -> None:
            super().__init__()
            self.blocks[1].scale = 0.5

    _RUNS.clear()
    recorded(Switched)
    assert _RUNS == [0, 1]


def test_what_depends_on_values_is_one_line() -> None:
    class Depending(Model):
        def forward(self, ids: Any) -> Any:
            x = self.table(ids)
            return x[x > 0].sum()

    with pytest.raises(BuddysimError, match=r"Depending: .* depends on values that only a real run has"):
        recorded(Depending)


def test_an_operator_that_pytorch_refuses_is_one_line() -> None:
    class Attending(Model):
        def forward(self, ids: Any) -> Any:
            x = self.table(ids).view(2, 5, 4, 2).transpose(1, 2)
            keys = torch.cat((x, x), 1)
            return nn.functional.scaled_dot_product_attention(x, keys, keys, enable_gqa=True).sum()

    with pytest.raises(BuddysimError, match=r"aten::scaled_dot_product_attention can't be run by itself: "):
        recorded(Attending, autocast=True)
