"""Twelve scripts of the kinds that people write, captured and compared with an independent tracker of PyTorch's memory.

The scripts were committed before any was tried. The command line names the batch of two: a batch of graphs is one
graph, and rollouts are many batches.
"""

from __future__ import annotations

import gc
import io
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")

from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from buddysim.capture import training  # noqa: E402
from buddysim.formats.operator_graph import OperatorGraph, load_operators  # noqa: E402
from buddysim.training import simulate  # noqa: E402
from buddysim.training.autograd.records import AllocationEvent, FreeEvent  # noqa: E402
from buddysim.training.autograd.tape import Tape  # noqa: E402
from buddysim.training.networks.captured.other_batch import OtherBatch  # noqa: E402
from buddysim.training.networks.captured.tape import tape_of_graph  # noqa: E402
from buddysim.training.networks.graph import Network  # noqa: E402
from tests.capture.torch.tracker import Tracker, rounded  # noqa: E402

ROOT = Path(__file__).parents[3]
SCRIPTS = Path(__file__).parent / "scripts"
#: Batch of each script; of the two whose batch the command line names, that one.
BATCHES = {
    "gpt": 12, "llama": 4, "bert": 8, "t5": 6, "resnet": 16, "diffusion": 8, "dlrm": 128, "gnn": 24, "policy": 64,
    "lstm": 10, "vae": 20, "experts": 6,
}  # fmt: skip
REQUESTED = ("gnn", "policy")
#: A script whose tensors PyTorch holds after its end, as it has a Function in Python: each run has its own process.
ALONE = "vae"
OF_TRANSFORMERS = ("llama", "bert", "t5")


def run(name: str, batch: int) -> str:
    """Run a script, and return what it prints."""
    printed, path, threads = io.StringIO(), SCRIPTS / f"{name}.py", torch.get_num_threads()
    arguments, sys.argv = sys.argv, [str(path), str(batch)]
    try:
        with redirect_stdout(printed):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = arguments
        torch.set_num_threads(threads)
    gc.collect()
    return printed.getvalue()


@contextmanager
def tracked() -> Iterator[Tracker]:
    tracker = Tracker()
    hook = register_optimizer_step_post_hook(tracker.step)
    try:
        with torch.autograd.graph.saved_tensors_hooks(tracker.pack, lambda held: held.tensor), tracker:
            yield tracker
    finally:
        hook.remove()


def captured(name: str, batch: int, folder: Path) -> tuple[OperatorGraph, str]:
    if name == ALONE:
        return captured_alone(name, batch, folder)
    gc.collect()
    output = folder / f"{name}-{batch}.graph.json"
    with training(output, batch=batch if name in REQUESTED else 0):
        printed = run(name, batch)
    return load_operators(output), printed


def tracked_run(name: str, batch: int) -> tuple[str, list[dict[str, Any]]]:
    """What a script prints, and the iterations that the tracker counts."""
    if name != ALONE:
        with tracked() as tracker:
            return run(name, batch), tracker.iterations
    command = [sys.executable, str(Path(__file__).with_name("tracker.py")), str(SCRIPTS / f"{name}.py"), str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    *printed, counted = done.stdout.splitlines(keepends=True)
    return "".join(printed), json.loads(counted)


def captured_alone(name: str, batch: int, folder: Path) -> tuple[OperatorGraph, str]:
    """The form of the command that other captures have too."""
    output = folder / f"{name}-{batch}.graph.json"
    command = [sys.executable, "-m", "buddysim", "capture", "torch", "-o", str(output), "--"]
    script = ["python", str(SCRIPTS / f"{name}.py"), str(batch)]
    done = subprocess.run([*command, *script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return load_operators(output), done.stdout


def rounded_peak(tape: Tape) -> int:
    live = peak = 0
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            live += rounded(event.bytes)
            peak = max(peak, live)
        elif isinstance(event, FreeEvent):
            live -= rounded(event.bytes)
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCHES)
def test_a_script_takes_the_memory_that_a_tracker_counts(name: str, tmp_path: Path) -> None:
    if name in OF_TRANSFORMERS:
        pytest.importorskip("transformers", reason="transformers isn't installed")
    batch = BATCHES[name]
    graph, printed = captured(name, batch, tmp_path)
    expected_print, iterations = tracked_run(name, batch)
    assert printed == expected_print  # bit for bit
    tracked_step = iterations[graph.iteration]
    tape = tape_of_graph(graph, OtherBatch(batch, batch))
    assert graph.batch == batch
    assert rounded_peak(tape) == pytest.approx(tracked_step["peak"], rel=0.02)
    roles = graph.bytes_by_role()
    assert roles["weight"] == pytest.approx(tracked_step["weights"], rel=0.001)
    assert roles.get("optimizer", 0) == pytest.approx(tracked_step["state"], rel=0.001)
    saved = [graph.tensors[one.tensor] for one in graph.saved_operands]
    assert [[list(one.shape), one.dtype] for one in saved] == tracked_step["saved"]
    twice, _ = captured(name, 2 * batch, tmp_path)
    expected = rounded_peak(tape_of_graph(twice, OtherBatch(2 * batch, 2 * batch)))
    assert rounded_peak(tape_of_graph(graph, OtherBatch(batch, 2 * batch))) == pytest.approx(expected, rel=0.05)
    network = Network.load(tmp_path / f"{name}-{batch}.graph.json")
    result = simulate(network, batch, "rtx-4090", "eager")
    assert result.counters["fits"]
    assert result.counters["memory.peak_bytes"] == tape.peak_bytes()


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
