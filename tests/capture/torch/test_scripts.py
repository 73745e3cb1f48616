"""Scripts of the kinds that people write, captured and compared with an independent tracker of PyTorch's memory.

The scripts were committed before any was tried: twelve in `scripts`, and ten more in `controls` when the capture was
finished for these. The command line names the batch of two: a batch of graphs is one graph, and rollouts are many
batches.
"""

from __future__ import annotations

import gc
import io
import json
import runpy
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")

from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from buddysim.capture import training  # noqa: E402
from buddysim.formats.operator_graph import OperatorGraph, load_operators  # noqa: E402
from buddysim.training import simulate  # noqa: E402
from buddysim.training.autograd.records import AllocationEvent, FreeEvent  # noqa: E402
from buddysim.training.autograd.tape import Tape  # noqa: E402
from buddysim.training.named_network import load_network  # noqa: E402
from buddysim.training.networks.captured.network import CapturedNetwork  # noqa: E402
from buddysim.training.networks.captured.other_batch import OtherBatch  # noqa: E402
from buddysim.training.networks.captured.remarks import generic_fractions  # noqa: E402
from buddysim.training.networks.captured.tape import tape_of_graph  # noqa: E402
from buddysim.training.result import TrainingResult  # noqa: E402
from tests.capture.torch.table import PAGE, ScriptFigures  # noqa: E402
from tests.capture.torch.tracker import Tracker, rounded  # noqa: E402

FOLDER = Path(__file__).parent
#: Batch of each script; of the two whose batch the command line names, that one.
BATCHES = {
    "gpt": 12, "llama": 4, "bert": 8, "t5": 6, "resnet": 16, "diffusion": 8, "dlrm": 128, "gnn": 24, "policy": 64,
    "lstm": 10, "vae": 20, "experts": 6,
    "mixtral": 4, "whisper": 5, "segmentation": 6, "gan": 10, "contrastive": 14, "equation": 200, "speech": 8,
    "points": 7, "adapters": 4, "values": 32,
}  # fmt: skip
REQUESTED = ("gnn", "policy")
#: Frozen weights, or those of a second network, are no optimizer's: the tracker doesn't know them.
WITH_OTHER_WEIGHTS = ("adapters", "values")
OF_TRANSFORMERS = {
    "llama": "LlamaForCausalLM", "bert": "BertForSequenceClassification", "t5": "T5ForConditionalGeneration",
    "mixtral": "MixtralForCausalLM", "whisper": "WhisperForConditionalGeneration", "adapters": "GPT2LMHeadModel",
}  # fmt: skip


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own: nothing of one script is there when the next one runs.

    It is forked from a process that has imported what each script's first step imports, and computed nothing: one that
    is forked from a process whose OpenMP threads have computed stands still at its first product.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo", __name__])
    with context.Pool(1) as pool:
        return pool.apply(_uncollected, (function, *arguments))


def _uncollected(function: Callable[..., Any], *arguments: Any) -> Any:
    """Without Python's search for cycles, whose time depends on what ran before: what it frees counts differently."""
    gc.disable()
    return function(*arguments)


def run(name: str, batch: int) -> str:
    """Run a script, and return what it prints."""
    printed, (path,) = io.StringIO(), FOLDER.glob(f"*/{name}.py")
    sys.argv = [str(path), str(batch)]
    with redirect_stdout(printed):
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()


def tracked_runs(name: str, batch: int) -> tuple[str, list[dict[str, Any]], list[dict[str, Any]]]:
    """What a script prints at its batch, and the iterations that the tracker counts, there and at twice the batch."""
    runs = []
    for each in (batch, 2 * batch):
        tracker = Tracker()
        hook = register_optimizer_step_post_hook(tracker.step)
        with torch.autograd.graph.saved_tensors_hooks(tracker.pack, lambda held: held.tensor), tracker:
            runs.append((run(name, each), tracker.iterations))
        hook.remove()
    (printed, iterations), (_, twice) = runs
    return printed, iterations, twice


def captured_run(name: str, batch: int, output: Path) -> str:
    """What a script prints while it is captured."""
    with training(output, batch=batch if name in REQUESTED else 0):
        return run(name, batch)


def captured(name: str, batch: int, folder: Path) -> tuple[OperatorGraph, str]:
    output = folder / f"{name}-{batch}.graph.json"
    printed = apart(captured_run, name, batch, output)
    return load_operators(output), printed


def rounded_peak(tape: Tape) -> int:
    live = peak = 0
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            live += rounded(event.bytes)
            peak = max(peak, live)
        elif isinstance(event, FreeEvent):
            live -= rounded(event.bytes)
    return peak


class ScriptRun(NamedTuple):
    """A script's capture and its tracked iterations."""

    graph: OperatorGraph
    printed: tuple[str, str]
    tracked: dict[str, Any]
    result: TrainingResult
    figures: ScriptFigures


def figures_of(name: str, folder: Path) -> ScriptRun:
    """Capture a script and track it at its batch and at twice the batch."""
    batch = BATCHES[name]
    graph, printed = captured(name, batch, folder)
    expected_print, iterations, twice = apart(tracked_runs, name, batch)
    once, double = (iterations[graph.iteration], twice[graph.iteration])
    peaks = [
        rounded_peak(tape_of_graph(graph, OtherBatch(batch, each), own_kernels=False)) for each in (batch, 2 * batch)
    ]
    network = load_network(folder / f"{name}-{batch}.graph.json")
    assert isinstance(network, CapturedNetwork)
    result = simulate(network, batch, "rtx-4090", "eager")
    figures = ScriptFigures(
        *(name, batch, (peaks[0], once["peak"]), (peaks[1], double["peak"])),
        generic_fractions(network.at(batch).tape, result.outcome.cost.operation_ps),
    )
    return ScriptRun(graph, (printed, expected_print), once, result, figures)


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCHES)
def test_a_script_takes_the_memory_that_a_tracker_counts(name: str, tmp_path: Path) -> None:
    if name in OF_TRANSFORMERS:
        transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
        assert getattr(transformers, OF_TRANSFORMERS[name])  # imported here, once for all processes
    batch = BATCHES[name]
    graph, (printed, expected_print), tracked_step, result, figures = figures_of(name, tmp_path)
    assert printed == expected_print  # bit for bit
    assert graph.batch == batch
    assert figures.peaks[0] == pytest.approx(figures.peaks[1], rel=0.02)
    assert figures.twice[0] == pytest.approx(figures.twice[1], rel=0.05)
    roles = graph.bytes_by_role()
    if name not in WITH_OTHER_WEIGHTS:
        assert roles["weight"] == pytest.approx(tracked_step["weights"], rel=0.001)
    assert roles.get("optimizer", 0) == pytest.approx(tracked_step["state"], rel=0.001)
    saved = [graph.tensors[one.tensor] for one in graph.saved_operands]
    assert [[list(one.shape), one.dtype] for one in saved] == tracked_step["saved"]
    assert result.counters["fits"]
    assert result.counters["memory.peak_bytes"] == tape_of_graph(graph, OtherBatch(batch, batch)).peak_bytes()
    assert figures.row in PAGE.read_text(encoding="utf-8").splitlines()  # python -m tests.capture.torch.table


@pytest.mark.slow
def test_a_graph_alone_is_captured(tmp_path: Path) -> None:
    """The quickest of the scripts: a batch of the command line, no trace next to the graph, twice the batch."""
    graph, _ = captured("policy", 64, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["policy-64.graph.json"]
    assert (graph.batch, graph.iteration, graph.provenance) == (64, 1, {"optimizer": "RMSprop"})
    without_gradient = [one for one in graph.storages if " without gradient: tanh" in one.name]
    assert len(without_gradient) == 12 * 2  # the rollouts' operators are there
    logits = [one for one in graph.tensors if graph.storages[one.storage].name == "actor: addmm"]
    assert {(one.shape, one.doubled) for one in logits} == {((12 * 64, 6), (12 * 128, 6))}
    weights = [one for one in graph.tensors if graph.storages[one.storage].role == "weight"]
    assert all(one.doubled is None for one in weights)
    assert json.loads((tmp_path / "policy-64.graph.json").read_text())["version"] == 2
