"""``capture torch``: results of the script, the trace, the graph, the activations file, and failing scripts."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress.compressors import tensor_algorithms
from buddysim.formats.activations import load_activations
from buddysim.formats.operator_graph import load_operators
from buddysim.trace import open_trace, verify_trace

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")

ROOT = Path(__file__).parents[2]
SCRIPT = """
    import os, signal, sys
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(True), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 10), nn.Dropout(0.5),
    )
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    for step in range(int(sys.argv[1])):
        x, y = torch.randn(6, 1, 8, 8), torch.randint(0, 10, (6,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)
        net.eval()
        with torch.no_grad():
            print(net(x).sum().item().hex(), flush=True)
        net.train()
        if sys.argv[2:] == ["raise", str(step)]:
            raise ValueError("no more")
        if sys.argv[2:] == ["exit", str(step)]:
            sys.exit(7)
        if sys.argv[2:] == ["kill", str(step)]:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def capture(output: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "buddysim", "capture", "torch", "-o", str(output), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=output.parent)


@pytest.fixture(scope="module")
def captured(script: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    output = tmp_path_factory.mktemp("captured") / "out.bin"
    done = capture(output, "--steps", "25", script, "25")
    assert done.returncode == 0, done.stderr
    return output, done.stdout


def test_results_are_the_same_bit_for_bit(script: Path, captured: tuple[Path, str]) -> None:
    threads, printed = torch.get_num_threads(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(script), "25"])
            runpy.run_path(str(script))
    finally:
        torch.set_num_threads(threads)
    assert captured[1] == printed.getvalue()
    assert not (captured[0].parent / "out.bin.incomplete").exists()


def test_the_trace_is_valid_and_has_ten_snapshots(captured: tuple[Path, str]) -> None:
    with open_trace(captured[0]) as trace:
        verify_trace(trace)
        iterations = [0, 3, 5, 8, 11, 13, 16, 19, 21, 24]
        assert [snapshot.label.split(",")[0] for snapshot in trace.snapshots] == [f"iteration {i}" for i in iterations]
        named = {allocation.name: allocation for allocation in trace.allocations}
        assert named["weight: 0.weight"].bytes == 4 * 9 * 4
        assert {"gradient: 4.weight", "optimizer: 7.bias momentum_buffer", "5: relu", "input"} <= set(named)
        assert "(outside): _log_softmax" in named  # the loss is computed after the last module
        assert named["5: relu"].free_event is None
        assert named["4 backward: convolution_backward"].free_event is not None
        kernels = len(trace.kernels)
        assert [kernel.launch_index for kernel in trace.kernels] == [3 * kernels + number for number in range(kernels)]
        # The snapshot of the kernels' own iteration lies within it, after its last backward kernel.
        before = sum(not kernel.name.startswith("optimizer") for kernel in trace.kernels)
        assert trace.snapshots[1].launch_index == 3 * kernels + before
        assert {"accesses", "compute_gaps", "dependencies", "contents", "allocations", "end"} <= set(
            trace.provenance.assumptions
        )
        assert trace.provenance.assumptions["end"].startswith("none:")


def test_run_replays_a_native_capture(captured: tuple[Path, str]) -> None:
    from buddysim.replay import simulate

    result = simulate(captured[0])
    assert result.to_dict()


def test_values_in_the_trace_are_the_scripts(captured: tuple[Path, str]) -> None:
    """The ReLU's feature map has the zeros that the activations file counted."""
    maps = load_activations(captured[0].with_suffix(".maps"))
    number = next(n for n, feature_map in enumerate(maps.feature_maps) if feature_map.name == "5 relu")
    with open_trace(captured[0]) as trace:
        relu = next(a for a in trace.allocations if a.name == "5: relu")
        for snapshot, point in zip(trace.snapshots, maps.points, strict=True):
            _, data = snapshot.read(relu.index)
            nonzero = np.count_nonzero(data.view(np.uint32))
            statistics = point.statistics(number)
            assert statistics is not None
            assert (statistics.nonzero, statistics.elements) == (nonzero, data.size // 4)


def test_feature_maps_name_the_layer_before(captured: tuple[Path, str]) -> None:
    maps = load_activations(captured[0].with_suffix(".maps"))
    assert maps.state == "finished"
    by_name = {m.name: m for m in maps.feature_maps}
    assert (by_name["2 relu"].kind, by_name["2 relu"].follows, by_name["2 relu"].depth) == ("relu", "batchnorm", 0.0)
    assert (by_name["5 relu"].follows, by_name["5 relu"].depth, by_name["5 relu"].part) == ("conv", 1.0, "features")
    assert (by_name["7 fc"].part, by_name["7 fc"].weight_layers) == ("classifier", 3)
    assert by_name["8 dropout"].kind == "dropout"
    assert [point.iteration for point in maps.points] == [0, 3, 5, 8, 11, 13, 16, 19, 21, 24]
    assert all(point.loss for point in maps.points)
    assert {(r.algorithm, r.layout) for r in maps.points[0].maps[0].ratios()} == {
        (algorithm, layout) for algorithm in tensor_algorithms() for layout in ("NCHW", "NHWC", "CHWN")
    }


def test_the_graph_of_an_iteration(captured: tuple[Path, str]) -> None:
    graph = load_operators(captured[0].with_suffix(".graph.json"))
    assert graph.iteration == 3
    *_, convolution, second = (n for n, o in enumerate(graph.operators) if o.name == "aten.convolution.default")
    assert (graph.operators[convolution].module, graph.operators[second].module) == ("0", "4")
    # per output element and filter weight a multiplication and an addition
    assert graph.operators[second].flops == 2 * 6 * 8 * 4 * 4 * (4 * 9)
    backward = next(o for o in graph.operators if o.name.startswith("aten.convolution_backward"))
    assert (backward.phase, backward.forward, backward.module) == ("backward", second, "4")
    relu = next(n for n, s in enumerate(graph.storages) if s.name == "5: relu")
    assert relu in graph.saved
    assert graph.storages[relu].bytes == 6 * 8 * 4 * 4 * 4
    idle = graph.idle(relu)
    assert idle is not None
    assert idle[1] - idle[0] > 3
    alive = graph.live_bytes(["feature_map"])
    last = max(n for n, o in enumerate(graph.operators) if o.phase == "forward")
    assert alive[last] == max(alive)
    assert graph.live_bytes(["weight"])[0] == graph.bytes_by_role()["weight"]
    assert "optimizer: 0.weight momentum_buffer" in {s.name for s in graph.storages if s.role == "optimizer"}


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        pytest.param("raise", 1, marks=pytest.mark.slow),
        pytest.param("exit", 7, marks=pytest.mark.slow),
        pytest.param("kill", 128 + signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_script_that_ends_early(script: Path, tmp_path: Path, ending: str, code: int) -> None:
    done = capture(tmp_path / "x.bin", "--no-activations", script, "40", ending, "11")
    assert done.returncode == code
    assert "everything up to then" in done.stderr
    with open_trace(tmp_path / "x.bin") as trace:
        verify_trace(trace)
        assert len(trace.snapshots) == 10
        assert (
            "iteration 11" in trace.provenance.assumptions["end"]
            or "iteration 12" in trace.provenance.assumptions["end"]
        )
        assert trace.kernels


@pytest.mark.slow
def test_a_script_that_never_trains(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print('hello')")
    done = capture(tmp_path / "x.bin", tmp_path / "x.py")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "no training iteration was seen" in done.stderr
    with open_trace(tmp_path / "x.bin") as trace:
        verify_trace(trace)


def test_a_block_is_captured(tmp_path: Path) -> None:
    from buddysim.capture import training

    torch.manual_seed(1)
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(net.parameters())

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.relu(net(torch.randn(8, 4))).sum().backward()
        optimizer.step()

    class StopHereError(Exception):
        pass

    with pytest.raises(StopHereError), training(tmp_path / "x.bin", samples=0):  # noqa: PT012
        for _ in range(3):
            step()
        raise StopHereError
    with open_trace(tmp_path / "x.bin") as trace:
        verify_trace(trace)
        assert [s.label.split(",")[0] for s in trace.snapshots] == [f"iteration {i}" for i in range(3)]
        assert "StopHereError" in trace.provenance.assumptions["end"]
        named = {allocation.name for allocation in trace.allocations}
        assert {"weight: weight", "optimizer: bias exp_avg_sq"} <= named
    step()  # the observer has ended
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["x.bin", "x.graph.json", "x.maps"]


def test_an_optimizer_that_calls_a_closure(tmp_path: Path) -> None:
    from buddysim.capture import training

    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.5)

    def closure() -> object:
        optimizer.zero_grad()
        loss = net(torch.randn(8, 4)).square().sum()
        loss.backward()
        return loss

    with training(tmp_path / "x.bin"):
        for _ in range(3):
            optimizer.step(closure)
    graph = load_operators(tmp_path / "x.graph.json")
    assert {operator.phase for operator in graph.operators} == {"forward", "backward", "optimizer"}
    with open_trace(tmp_path / "x.bin") as trace:
        verify_trace(trace)
        named = {allocation.name: allocation.index for allocation in trace.allocations}
        assert {"weight: weight", "gradient: bias", "optimizer: weight momentum_buffer"} <= set(named)
        assert all(snapshot.contents_of(named["gradient: bias"]) for snapshot in trace.snapshots)


def test_killed_capture_is_recovered(captured: tuple[Path, str], tmp_path: Path) -> None:
    from buddysim import cli
    from buddysim.capture.torch.observer import Observer, ObserverSettings
    from buddysim.capture.torch.spool import Spool

    spool = Spool.for_trace(tmp_path / "x.bin")
    observer = Observer(spool, ObserverSettings())
    observer.start()
    try:
        net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(2):
            net(torch.randn(8, 4)).sum().backward()
            optimizer.step()
    finally:
        for hook in observer._hooks:
            hook.remove()  # and no end
        if observer._recorder is not None:
            observer._recorder.__exit__(None, None, None)
    assert cli.main(["recover", str(spool.folder), "-o", str(tmp_path / "x.bin")]) == 0
    with open_trace(tmp_path / "x.bin") as trace:
        verify_trace(trace)
        assert len(trace.snapshots) == 2
        assert trace.provenance.assumptions["end"].startswith("Recovered")


@pytest.mark.slow
def test_script_imports_its_own_modules(tmp_path: Path) -> None:
    """The script and a spawned process may have modules named as this project's folders."""
    names = ("tools", "plots", "tests", "benchmarks", "capture", "spool", "feature_maps")
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"OWNER = 'the script: {name}'\n")
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
            import importlib, multiprocessing, sys

            NAMES = sys.argv[1:]

            def owners(names):
                return [importlib.import_module(name).OWNER for name in names]

            if __name__ == "__main__":
                print(owners(NAMES))
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.apply(owners, (NAMES,)))
                print([folder for folder in sys.path if folder.endswith(("torch", "buddysim"))])
        """)
    )
    command = [sys.executable, "-m", "buddysim", "capture", "torch", "-o", str(tmp_path / "x.bin")]
    command += [str(tmp_path / "train.py"), *names]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    expected_paths = str([f"the script: {name}" for name in names])
    assert done.stdout.splitlines() == [expected_paths, expected_paths, "[]"]


@pytest.mark.slow
def test_a_compressor_of_the_users(script: Path, tmp_path: Path) -> None:
    plugin = ROOT / "docs" / "examples" / "plugins" / "base_delta.py"
    options = ("--plugin", plugin, "--compressor", "base-delta", "--no-activations", "--steps", "2")
    done = capture(tmp_path / "x.bin", *options, script, "2")
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "x.bin") as trace:
        assert {size_map.compressor for size_map in trace.size_maps} == {"base-delta"}


def test_another_compressor(tmp_path: Path) -> None:
    from buddysim.capture import training
    from buddysim.compress import entry_classes

    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with training(tmp_path / "x.bin", compressor="zvc"):
        net(torch.relu(torch.randn(8, 64))).sum().backward()
        optimizer.step()
    with open_trace(tmp_path / "x.bin") as trace:
        assert {size_map.compressor for size_map in trace.size_maps} == {"zvc"}
        for size_map in trace.size_maps:
            pages, data = trace.snapshots[size_map.snapshot].read(size_map.allocation)
            assert pages is None
            assert np.array_equal(size_map.read(), entry_classes(data, "zvc"))


def test_a_compressor_that_needs_a_profile(tmp_path: Path) -> None:
    from buddysim.capture import training

    with (
        pytest.raises(BuddysimError, match="fvc: needs a profile of all data"),
        training(tmp_path / "x.bin", compressor="fvc"),
    ):
        raise AssertionError("nothing is captured")
    assert not [*tmp_path.iterdir()]
