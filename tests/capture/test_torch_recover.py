"""Recovery of a killed training's capture treats its graph and its folder as untrusted input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import buddysim.trace as bt
from buddysim.formats.operator_graph import load_operators
from tests.fuzz import good_files
from tests.fuzz.case import write_files
from tests.fuzz.promise import keeps_its_promise

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    part = tmp_path / "t.bin.incomplete"
    write_files(part, good_files.spool())
    return part


def changed(folder: Path, change: Change) -> None:
    graph = json.loads((folder / "graph.json").read_text())
    change(graph)
    (folder / "graph.json").write_text(json.dumps(graph))


def recovered(folder: Path, output: Path) -> int:
    return keeps_its_promise(["recover", str(folder), "-o", str(output)])[0]


def large(graph: dict[str, Any], number: int, *shape: int) -> None:
    """Give a tensor of the graph another shape."""
    tensor = graph["tensors"][number]
    size = 4
    tensor["shape"], tensor["strides"] = list(shape), []
    for length in reversed(shape):
        tensor["strides"].insert(0, size // 4)
        size *= length
    tensor["extent"] = graph["storages"][tensor["storage"]]["bytes"] = size


def of(graph: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in graph["operators"] if one["name"] == f"aten.{name}.default")


def test_a_graph_with_every_model_becomes_a_valid_trace(folder: Path, tmp_path: Path) -> None:
    assert recovered(folder, tmp_path / "t.bin") == 0
    with bt.open_trace(tmp_path / "t.bin") as trace:
        bt.verify_trace(trace)
        names = " ".join(kernel.name for kernel in trace.kernels)
        assert all(
            each in names for each in ("implicit_gemm_wgrad", "bn_bw", "_fused_sgd_", "Cat", "avg_pool2d_backward")
        )
    assert load_operators(tmp_path / "t.graph.json") == load_operators(folder / "graph.json")


CHANGES: dict[str, Change] = {
    "no bias": lambda graph: of(graph, "convolution")["inputs"].pop(),
    "one input": lambda graph: of(graph, "convolution_backward").update(inputs=[0]),
    "no outputs": lambda graph: of(graph, "cat").update(outputs=[]),
    "too many": lambda graph: of(graph, "max_pool2d_with_indices_backward")["inputs"].append(0),
    "a window of text": lambda graph: of(graph, "avg_pool2d").update(arguments={"kernel_size": "x"}),
    "another operator": lambda graph: of(graph, "relu").update(name="aten.max_pool2d_with_indices_backward.default"),
    "strides beyond the extent": lambda graph: graph["tensors"][0].update(strides=[1 << 40, 1, 1, 1]),
    "addresses beyond those of a GPU": lambda graph: graph["storages"][0].update(bytes=1 << 61),
    "a window that is everything": lambda graph: of(graph, "avg_pool2d")["arguments"].update(kernel_size=[1 << 15] * 2),
    "a tensor of 4 TiB": lambda graph: [large(graph, number, 1 << 40) for number in of(graph, "relu")["inputs"]],
    "a product of k without end": lambda graph: [
        large(graph, number, *shape)
        for number, shape in zip(of(graph, "mm")["inputs"], ((2, 1 << 34), (1 << 34, 8)), strict=True)
    ],
}


@pytest.mark.parametrize("what", CHANGES)
def test_impossible_graph_is_a_one_line_error(folder: Path, tmp_path: Path, what: str) -> None:
    changed(folder, CHANGES[what])
    assert recovered(folder, tmp_path / "t.bin") == (0 if what == "no bias" else 2)
    assert (tmp_path / "t.bin").exists() == (what == "no bias")


@pytest.mark.parametrize("name", ["graph.json", "snapshot-0.npz", "progress.json"])
@pytest.mark.parametrize("link", [False, True])
def test_nothing_of_the_folder_is_written_over(folder: Path, tmp_path: Path, name: str, link: bool) -> None:
    before = (folder / name).read_bytes()
    output = folder / name
    if link:
        output = tmp_path / "out.bin"
        output.hardlink_to(folder / name)
    assert recovered(folder, output) == 2
    assert (folder / name).read_bytes() == before


def test_both_outputs_are_looked_at_first(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.graph.json").mkdir()
    monkeypatch.setattr("buddysim.capture.torch.recover.assemble", lambda *_: pytest.fail("it has begun to work"))
    assert recovered(folder, tmp_path / "t.bin") == 2
    assert not (tmp_path / "t.bin").exists()
