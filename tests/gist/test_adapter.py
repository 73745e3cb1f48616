"""Training through the encodings is lossless to the last bit, releases memory, and keeps PyTorch's errors."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.gist import dpr
from buddysim.gist.formats import FORMATS
from buddysim.gist.policy import StorageOrigin, choose_encoding

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional
from torch.utils.checkpoint import checkpoint  # noqa: E402

from buddysim.gist.adapter import Gist  # noqa: E402
from buddysim.gist.uniform import UniformPrecision  # noqa: E402


class Case(nn.Module):
    """Return the layers of a case, on images of 2 x 8 x 8."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.relu, self.pool = nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        self.dropout, self.last = nn.Dropout(0.4), nn.Linear(4 * 4 * 4, 3)

    def forward(self, images: Any) -> Any:
        maps = self.relu(self.first(images))
        if self.kind == "residual":
            maps = functional.relu(self.second(maps) + maps)
        elif self.kind == "residual in place":
            later = self.norm(self.second(maps))
            later += maps
            maps = functional.relu(later)
        elif self.kind == "pool and conv":
            return self.last((self.pool(maps) + self.pool(self.second(maps))).flatten(1))
        elif self.kind == "dropout":
            maps = self.dropout(maps)
        elif self.kind == "norm":
            maps = self.relu(self.norm(self.second(maps)))
        elif self.kind == "checkpoint":
            maps = checkpoint(lambda x: functional.relu(self.second(x)), maps, use_reentrant=False)
            maps = functional.relu(self.second(maps))
        elif self.kind == "large window":
            maps = functional.max_pool2d(maps, 5, 1, 2)
        return self.last(self.pool(maps).flatten(1))


KINDS = [
    "relu pool", "residual", "residual in place", "pool and conv", "dropout", "norm", "checkpoint", "large window",
]  # fmt: skip


def trained(kind: str, encoded: str, iterations: int = 3) -> tuple[Any, list[Any], Gist | None]:
    """Train, and return the module, all its gradients, and the adapter."""
    torch.manual_seed(3)
    module = Case(kind)
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    gist = None if encoded == "plain" else Gist(module, None if encoded == "lossless" else encoded)
    gradients = []
    for number in range(iterations):
        torch.manual_seed(50 + number)
        images, labels = torch.randn(6, 2, 8, 8), torch.randint(0, 3, (6,))
        optimizer.zero_grad()
        with gist or nullcontext():
            functional.cross_entropy(module(images), labels).backward()
        gradients += [None if p.grad is None else p.grad.clone() for p in module.parameters()]
        optimizer.step()
    return module, gradients, gist


def equal(one: Any, other: Any) -> bool:
    return (one is None and other is None) or (one.numpy().tobytes() == other.numpy().tobytes())


@pytest.mark.parametrize("kind", KINDS)
def test_lossless_encodings_change_no_bit(kind: str) -> None:
    plain, gradients, _ = trained(kind, "plain")
    module, others, gist = trained(kind, "lossless")
    assert all(map(equal, gradients, others))
    assert all(map(equal, plain.state_dict().values(), module.state_dict().values()))
    assert gist is not None
    assert gist.report.stored_bytes < gist.report.raw_bytes
    assert {"bits", "ssdc", "positions"} & set(gist.report.encoded)


@pytest.mark.parametrize("kind", ["relu pool", "norm", "dropout"])
def test_reduced_precision_changes_gradients_slightly_and_stores_less(kind: str) -> None:
    _, gradients, lossless = trained(kind, "lossless", 2)
    stored = [lossless.report.stored_bytes] if lossless else []
    for name in ("fp16", "fp8"):
        _, others, gist = trained(kind, name, 2)
        pairs = [(a, b) for a, b in zip(gradients, others, strict=True) if a is not None]
        assert not all(equal(a, b) for a, b in pairs)
        first = pairs[: len(pairs) // 2]  # of the recorded iteration, in which nothing is encoded yet
        assert all(equal(a, b) for a, b in first)
        apart = sum(float((a - b).square().sum()) for a, b in pairs[len(first) :])
        assert apart < 0.05 * sum(float(a.square().sum()) for a, _ in pairs[len(first) :])
        assert gist is not None
        stored.append(gist.report.stored_bytes)
    assert stored[0] >= stored[1] >= stored[2]


def test_feature_map_read_only_by_relu_and_pool_is_stored_as_bits_and_positions() -> None:
    _, _, gist = trained("relu pool", "lossless", 2)
    assert gist is not None
    # The ReLU's 6 x 4 x 8 x 8 elements in bits, the 6 x 4 x 4 x 4 windows' positions in half a byte each; raw:
    # the images, the pooled feature map that the last layer reads, and what the loss saves.
    assert {name: gist.report.encoded[name] for name in ("bits", "positions")} == {"bits": 1, "positions": 1}
    raw_bytes = 6 * 2 * 64 * 4 + 6 * 64 * 4 + 6 * 3 * 4 + 6 * 8 + 4
    assert gist.report.stored_bytes == 6 * 4 * 64 // 8 + 6 * 4 * 16 // 2 + raw_bytes


def test_format_rounds_only_what_backward_steps_read() -> None:
    """The weight gradient of a second FC layer is dY^T times the rounded feature map; the output is unrounded."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))
    gist, images = Gist(module, "fp8"), torch.randn(16, 64)
    for _ in range(2):
        module.zero_grad()
        with gist:
            output = module(images)
            output.sum().backward()
    hidden = module[0](images).detach()
    assert equal(output.detach(), module(images).detach())
    rounded = torch.from_numpy(dpr.rounded(hidden.numpy(), "fp8").reshape(16, 64))
    assert torch.allclose(module[1].weight.grad, torch.ones(8, 16) @ rounded, rtol=1e-5)
    assert not torch.allclose(module[1].weight.grad, torch.ones(8, 16) @ hidden, rtol=1e-5)


def test_feature_maps_are_released_between_the_passes() -> None:
    """An encoded storage is freed when its last forward reader is done."""
    from torch.multiprocessing.reductions import StorageWeakRef

    torch.manual_seed(0)
    module, gist = Case("norm"), Gist(module := Case("norm"))
    references: list[Any] = []
    module.second.register_forward_pre_hook(
        lambda _, inputs: references.append(StorageWeakRef(inputs[0].untyped_storage()))
    )
    gone = []
    for _ in range(2):
        with gist:
            loss = module(torch.randn(6, 2, 8, 8)).sum()
            gone.append(references[-1].expired())
            loss.backward()
    assert gone == [False, True]


def test_changed_operator_sequence_is_recorded_again() -> None:
    torch.manual_seed(1)
    module, reference = Case("norm"), Case("norm")
    reference.load_state_dict(module.state_dict())
    gist = Gist(module)
    for kind in ("norm", "norm", "residual", "residual", "residual"):
        module.kind = reference.kind = kind
        images = torch.randn(4, 2, 8, 8)
        with gist:
            module(images).square().sum().backward()
        reference(images).square().sum().backward()
        assert all(equal(a.grad, b.grad) for a, b in zip(module.parameters(), reference.parameters(), strict=True))
    assert gist.report.stored_bytes < gist.report.raw_bytes


@pytest.mark.parametrize("iterations", [1, 3])
def test_in_place_change_of_a_saved_tensor_is_refused(iterations: int) -> None:
    """The sigmoid's output is saved and then changed in place."""

    class Changes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.wrong = False

        def forward(self, values: Any) -> Any:
            saved = torch.sigmoid(self.layer(values))
            if self.wrong:
                saved.add_(1)
            return saved.sum()

    module = Changes()
    gist = Gist(module)
    for number in range(iterations):
        module.wrong = number == iterations - 1
        if not module.wrong:
            with gist:
                module(torch.ones(2, 4)).backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        module(torch.ones(2, 4)).backward()
    message = r"add_: changes a tensor of \(2, 4\) that sigmoid made and that was saved for a backward step"
    with pytest.raises(BuddysimError, match=message), gist:
        module(torch.ones(2, 4)).backward()


def test_unrecorded_backward_pass_cannot_read_bits() -> None:
    """The first iteration has no backward pass through the second CONV layer, which needs the feature map's values."""
    torch.manual_seed(2)
    first, second, pool = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3), nn.MaxPool2d(2)
    gist = Gist(nn.ModuleList([first, second]))
    images = torch.randn(2, 2, 8, 8)
    for both in (False, False, True):
        expected = pytest.raises(BuddysimError, match="convolution_backward: reads what relu made") if both else None
        with expected or nullcontext(), gist:
            maps = functional.relu(first(images))
            pooled, convolved = pool(maps).sum(), second(maps).sum()
            (pooled + convolved if both else pooled).backward()
    assert gist.report.encoded["bits"] == 1


def test_statistics_and_masks_are_not_encoded() -> None:
    readers, float32 = {"mul"}, "torch.float32"
    assert choose_encoding(StorageOrigin("sigmoid", 0, None, float32), readers, FORMATS["fp8"]).name == "values"
    for operator, position in (("mean", 0), ("rsqrt", 0), ("bernoulli_", 0), ("native_batch_norm", 1), ("", 0)):
        assert choose_encoding(StorageOrigin(operator, position, None, float32), readers, FORMATS["fp8"]).name == "raw"
    assert choose_encoding(StorageOrigin("gt", 0, None, "torch.bool"), readers, FORMATS["fp8"]).name == "raw"


def test_bad_input_is_one_line() -> None:
    with pytest.raises(
        BuddysimError, match=r"format 'fp12': unknown: expected one of fp16, fp10, fp8 \(nearest: fp1\d\)"
    ):
        Gist(nn.Linear(1, 1), "fp12")
    gist = Gist(nn.Linear(1, 1))
    with gist, pytest.raises(BuddysimError, match="an iteration is under way"), gist:
        pass


def test_uniform_precision_rounds_weights_feature_maps_gradients_and_updates() -> None:
    torch.manual_seed(0)
    module = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    with UniformPrecision(module, "fp8"):
        output = module(torch.randn(8, 16))
        output.square().sum().backward()
        optimizer.step()
    for tensor in (output.detach(), module.weight.grad, module.weight.detach(), module.bias.detach()):
        values = np.ascontiguousarray(tensor.numpy())
        assert dpr.rounded(values, "fp8").tobytes() == values.tobytes()
