"""The operators of a model's step are measured once for each size, in the columns of the package's own timings."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.measure.operators import (
    MemorySize,
    ProductSize,
    RequestedOperators,
    measure_operators,
    open_torch,
    requested_operators,
)
from buddysim.training.cost.operators.rows import parse_rows
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import AttentionWork, Launcher
from buddysim.training.recorded_step.from_config import network_from_config

CONFIG = Path(__file__).parents[1] / "training" / "against" / "data" / "llama.json"


class HandDevice:
    """Stands for a device: a microsecond for each thousand of FLOPs, bytes or queries."""

    name, about = "by-hand", "arithmetic"
    files: tuple[str, ...] = ("products", "attention", "attention_backward", "memory", "launches")
    launchers: tuple[Launcher, ...] = ("forward", "backward", "optimizer")

    def number_format(self, name: str) -> str:
        return name

    def product_us(self, size: ProductSize) -> float:
        _, count, m, n, k = size
        return 2 * count * m * n * k / 1000

    def attention_us(self, work: AttentionWork) -> float:
        return work.batch * work.tokens / 1000

    def attention_backward_us(self, work: AttentionWork) -> float:
        return work.batch * work.tokens / 400

    def launch_us(self, launcher: str, operators: int) -> float:
        return {"forward": 16.0, "backward": 10.0, "optimizer": 200 / operators}[launcher]

    def memory_us(self, size: MemorySize) -> float:
        return size[1] / 1000


def network(recipe: str = "bf16") -> RecordedNetwork:
    return network_from_config(CONFIG, sequence=10, recipe=recipe, attention="flash").at(3, "adamw")


def test_sizes_come_once() -> None:
    requested = requested_operators(network())
    assert len(set(requested.products)) == len(requested.products) > 5
    assert ("bf16", 1, 30, 77, 32) in requested.products  # logits of 30 tokens
    assert [work.tokens for _, work in requested.attention] == [10]
    assert {"elementwise", "softmax", "gather"} & {kind for kind, _, _ in requested.memory}


def test_rows_are_those_that_the_package_reads(tmp_path: Path) -> None:
    lines: list[str] = []
    paths = measure_operators(tmp_path / "out", network(), HandDevice(), lines.append)
    names = ["products", "attention", "attention_backward", "memory", "launches"]
    assert [path.stem for path in paths] == names
    requested: RequestedOperators = requested_operators(network())
    expected = (requested.products, requested.attention, requested.attention, requested.memory, HandDevice.launchers)
    for path, sizes in zip(paths, expected, strict=True):
        rows = parse_rows(path.read_text(), path.stem, path.name)
        assert len(rows) == len(sizes)
        assert {row.gpu for row in rows} == {"by-hand"}
    products = parse_rows(paths[0].read_text(), "products", "products.csv")
    assert products[0].us == pytest.approx(HandDevice().product_us(requested.products[0]), rel=1e-4)
    launches = parse_rows(paths[4].read_text(), "launches", "launches.csv")
    assert [(row.name, row.extents, row.us) for row in launches] == [
        ("forward", (200,), 16), ("backward", (200,), 10), ("optimizer", (200,), 1),
    ]  # fmt: skip
    assert lines[0] == f"products: {len(requested.products)} sizes"


def test_on_the_cpu_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch isn't installed")
    arguments = ["--model", str(CONFIG), "--batch", "2", "--sequence", "8", "-o", str(tmp_path / "out")]
    assert main(["machines", "measure", *arguments, "--like", "a-cpu"]) == 0
    rows = parse_rows((tmp_path / "out" / "products.csv").read_text(), "products", "products.csv")
    assert rows
    assert all(row.us > 0 and row.gpu == "a-cpu" for row in rows)
    launches = parse_rows((tmp_path / "out" / "launches.csv").read_text(), "launches", "launches.csv")
    assert all(row.us > 0 for row in launches)
    device, work = open_torch("a-cpu"), AttentionWork(2, 64, 64, 4, 2, 32)
    assert min(device.attention_us(work), device.attention_backward_us(work)) > 0


def test_what_can_not_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "measure", "--model", "alexnet"]) == 2
    assert "alexnet has no recorded operations" in capsys.readouterr().err
    assert main(["machines", "v100", "--model", "alexnet"]) == 2
    assert "no measurement" in capsys.readouterr().err
