"""Networks in training: addresses of tensors, memory contents over an iteration, and the trace."""

from __future__ import annotations

import dataclasses
import shutil
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.replay import simulate
from buddysim.trace import open_trace, verify_trace
from buddysim.workloads import REGISTRY, make_trace_of
from buddysim.workloads.training.make_training import points
from buddysim.workloads.workload_comparison import class_counts, ratio
from buddysim.workloads.workload_registry import INPUTS, is_network

pytest.importorskip("torch")
DATA = Path("/usr/share/datasets/fashion-mnist")
QUICK = ("alexnet", "squeezenet", "vgg16")
NETWORKS = [name for name, workload in REGISTRY.items() if is_network(workload)]
needs_images = pytest.mark.skipif(not DATA.is_dir(), reason="dataset-fashion-mnist is not installed")


@pytest.fixture(scope="module")
def iterations() -> list[object]:
    """Return the trace of two iterations of a small SqueezeNet."""
    if not DATA.is_dir():
        pytest.skip("dataset-fashion-mnist is not installed")
    from buddysim.workloads.training.observe import ObservedIteration, train

    workload = REGISTRY.find("squeezenet")
    problem = dataclasses.replace(workload.PROBLEMS["small"]["profile"], batch=4, steps=3)
    return [
        observed for observed in train(workload.NETWORK, problem, (1, 2)) if isinstance(observed, ObservedIteration)
    ]


def test_what_lives_at_once_lies_apart(iterations) -> None:
    from buddysim.workloads.training.tensor_layout import lay_out

    graph = iterations[0].graph
    layout = lay_out(graph)
    assert len({one.base for one in layout.pool}) == len(layout.pool)
    for operator in range(0, len(graph.operators), 7):
        living = sorted(
            (layout.addresses[number], storage.bytes)
            for number, storage in enumerate(graph.storages)
            if storage.bytes
            and (storage.alloc_operator or 0)
            <= operator
            <= (storage.free_operator if storage.free_operator is not None else 10**9)
        )
        assert all(base + size <= other for (base, size), (other, _) in pairwise(living))
    transient = [
        number for number, storage in enumerate(graph.storages) if storage.alloc_operator is not None and storage.bytes
    ]
    addresses = {layout.addresses[number] for number in transient}
    assert len(addresses) < len(transient)  # memory is used again within the iteration
    assert lay_out(iterations[1].graph) == layout


def test_memory_holds_what_was_written_last(iterations) -> None:
    from buddysim.workloads.training.memory_layout import MemoryContents
    from buddysim.workloads.training.tensor_layout import lay_out

    observed = iterations[1]
    layout = lay_out(observed.graph)
    memory = MemoryContents(layout)
    memory.begin(observed)
    before = [segment.copy() for segment in memory.segments]
    changed: set[int] = set()
    for operator, segments in memory.run(observed):
        changed |= segments
        for write in observed.writes:
            if write.operator == operator and layout.addresses[write.storage] is not None:
                last = [w for w in observed.writes if w.operator == operator and w.storage == write.storage][-1]
                segment = layout.segments[write.storage]
                first = (layout.addresses[write.storage] - layout.pool[segment].base) // 128
                here = memory.segments[segment][:, first : first + write.classes.shape[1]]
                assert np.array_equal(here, last.classes)
    assert changed
    differing = sum(int((old != new).sum()) for old, new in zip(before, memory.segments, strict=True))
    assert differing > 0


def test_snapshots_are_early_and_late() -> None:
    for name in NETWORKS:
        for scale in ("small", "medium", "paper"):
            one, other = (REGISTRY.find(name).PROBLEMS[scale][which] for which in INPUTS)
            assert one != other
            assert (one.contents is not None) == (scale == "paper")
            alike = [dataclasses.replace(each.computed, seed=0, part=0) for each in (one, other)]
            assert alike[0] == alike[1]
            snapshots, traced = points(one)
            assert len(set(snapshots)) == 10
            assert (snapshots[0], snapshots[-1]) == (1, one.computed.steps - 1)
            assert snapshots[0] < traced < snapshots[-1]


@needs_images
def test_a_trace_of_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = REGISTRY.find("squeezenet")
    problem = dataclasses.replace(workload.PROBLEMS["small"]["profile"], batch=4, steps=12)
    monkeypatch.setitem(workload.PROBLEMS["small"], "profile", problem)
    monkeypatch.setattr(import_module("buddysim.workloads.training.make_training"), "_MAX_LOSS_RATIO", 10.0)
    path = tmp_path / "t.bin"
    assert not make_trace_of("squeezenet", "small", "profile", path).is_present
    assert make_trace_of("squeezenet", "small", "profile", path).is_present
    with open_trace(path) as trace:
        verify_trace(trace)
        assert "modelled" in trace.provenance.assumptions["accesses"]
        over_run = [one for one in trace.snapshots if not one.for_replay]
        assert len(over_run) == 10
        launch_indices = [kernel.launch_index for kernel in trace.kernels]
        assert launch_indices == list(range(launch_indices[0], launch_indices[0] + len(launch_indices)))
        in_the_iteration = {one.launch_index for one in trace.snapshots if one.for_replay}
        assert in_the_iteration <= {*launch_indices, launch_indices[-1] + 1}
        of_run = {(sizes.snapshot, sizes.compressor) for sizes in trace.size_maps}
        assert {name for at, name in of_run if at == over_run[0].index} == {"bpc", "bdi+fpc", "zvc"}
        assert {name for at, name in of_run if trace.snapshots[at].for_replay} == {"bpc"}
        # An entry's size changes within the iteration, as its block is used again.
        first: dict[int, np.ndarray] = {}
        changes = 0
        for sizes in trace.size_maps:
            if trace.snapshots[sizes.snapshot].for_replay:
                classes = sizes.read()
                changes += int((first.setdefault(sizes.allocation, classes) != classes).sum())
        assert changes > 1000
    assert simulate(path, "v100", "buddy").counters


@needs_images
@pytest.mark.parametrize("name", ["squeezenet", pytest.param("biglstm", marks=pytest.mark.slow)])
def test_shapes_without_memory_are_those_of_a_training(name: str) -> None:
    from buddysim.workloads.training.observe import ObservedIteration, train
    from buddysim.workloads.training.scaled_network import graph_of

    workload = REGISTRY.find(name)
    problem = dataclasses.replace(workload.PROBLEMS["small"]["profile"], batch=4, steps=2)
    (observed,) = [one for one in train(workload.NETWORK, problem, (1,)) if isinstance(one, ObservedIteration)]
    graph = graph_of(workload.NETWORK, problem)
    assert graph.operators == observed.graph.operators
    assert graph.tensors == observed.graph.tensors
    assert graph.storages == observed.graph.storages


@needs_images
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS]
)
def test_the_original_has_the_operators_of_what_is_computed(name: str) -> None:
    """Contents can be repeated by layer only if the operators are the same."""
    from buddysim.workloads.training.scaled_network import _shape, graph_of

    workload = REGISTRY.find(name)
    problem = workload.PROBLEMS["paper"]["profile"]
    large, computed = graph_of(workload.NETWORK, problem), graph_of(workload.NETWORK, problem.contents)
    assert _shape(large) == _shape(computed)
    pool, of_computed = (
        sum(storage.bytes for storage in graph.storages if storage.alloc_operator is None)
        for graph in (large, computed)
    )
    assert pool > of_computed


@needs_images
@pytest.mark.slow
def test_contents_are_repeated_by_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = REGISTRY.find("squeezenet")
    small = dataclasses.replace(workload.PROBLEMS["small"]["profile"], batch=4, steps=12)
    large = dataclasses.replace(small, batch=6, size=48, width=0.75, contents=small)
    monkeypatch.setitem(workload.PROBLEMS["paper"], "profile", large)
    monkeypatch.setattr(import_module("buddysim.workloads.training.make_training"), "_MAX_LOSS_RATIO", 10.0)
    path = tmp_path / "t.bin"
    make_trace_of("squeezenet", "paper", "profile", path)
    observed = {}
    with open_trace(path) as trace:
        verify_trace(trace)
        assert "repeated by layer, not computed at this size: those of" in trace.provenance.assumptions["contents"]
        assert "4 samples of 32, width 0.5" in trace.provenance.assumptions["contents"]
        observed["repeated"] = class_counts(trace)[-1]
    # The same training computed at that size holds what its training made, which is something else.
    monkeypatch.setitem(workload.PROBLEMS["paper"], "profile", dataclasses.replace(large, contents=None))
    make_trace_of("squeezenet", "paper", "profile", path)
    with open_trace(path) as trace:
        observed["computed"] = class_counts(trace)[-1]
    assert observed["repeated"].keys() == observed["computed"].keys()
    assert any(not np.array_equal(observed["repeated"][at], observed["computed"][at]) for at in observed["repeated"])
    assert abs(ratio(observed["repeated"]) / ratio(observed["computed"]) - 1) < 0.15


def test_the_originals_size_is_refused_without_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = import_module("buddysim.workloads.needs")
    path = tmp_path / "t.bin"
    monkeypatch.setattr(needs, "memory_available", lambda: 64 << 20)
    with pytest.raises(BuddysimError, match=r"squeezenet at paper needs about \d+ MiB of memory, 64 MiB are available"):
        make_trace_of("squeezenet", "paper", "profile", path)
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1 << 30, 0, 1 << 20))
    with pytest.raises(BuddysimError, match=r"squeezenet at paper needs up to \d+ MiB of disk, .* has 1 MiB free"):
        make_trace_of("squeezenet", "paper", "profile", path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@needs_images
def test_a_training_that_does_not_learn_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = REGISTRY.find("squeezenet")
    problem = dataclasses.replace(workload.PROBLEMS["small"]["profile"], batch=4, steps=12, rate=0.0)
    monkeypatch.setitem(workload.PROBLEMS["small"], "profile", problem)
    with pytest.raises(
        BuddysimError, match=r"squeezenet: verification failed: loss at the end .* allowed 0\.5: no trace"
    ):
        make_trace_of("squeezenet", "small", "profile", tmp_path / "t.bin")
    assert not list(tmp_path.iterdir())


def test_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="--contents-every 8: a network's trace has sizes only, expected 0"):
        make_trace_of("squeezenet", "small", "profile", tmp_path / "t.bin", 8)


@needs_images
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_small_learns(name: str, tmp_path: Path) -> None:
    paths = [tmp_path / file for file in ("one.bin", "two.bin")]
    for path in paths:
        assert make_trace_of(name, "small", "profile", path).verification
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with open_trace(paths[0]) as trace:
        verify_trace(trace)
