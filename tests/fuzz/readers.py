"""The function that reads a type of file, without the command around it: a fraction of a millisecond to some."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from buddysim.buddy.targets import Targets
from buddysim.figures.shared.memory_over_time import read_memory
from buddysim.formats.activations import load_activations
from buddysim.formats.operator_graph import load_operators
from buddysim.importers.opencl.bundle import read_bundle
from buddysim.machine import Machine
from buddysim.machine.training import TrainingMachine
from buddysim.sweep.differences import load_item
from buddysim.sweep.jobs import read_jobs
from buddysim.sweep.store import Store
from buddysim.sweep.study_file import read_study
from buddysim.trace import open_trace, verify_trace
from buddysim.training.against.trace_file import read_trace
from buddysim.training.architectures.read_config import read_config
from buddysim.training.caching_allocator.snapshot.read import read_snapshot
from buddysim.training.contents.density_table import TableContents
from buddysim.training.cost.model import read_own
from buddysim.training.cost.timings import read_timings
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Network
from buddysim.training.plans.plan_file import read_plan
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.validation.curve.curve_data import load_curves
from buddysim.validation.kernel.counter_data import load_measured_kernels
from buddysim.validation.kernel.replays import load_replays
from tests.fuzz import good_files


@functools.cache
def _alexnet() -> Network:
    return load_network("alexnet")


@functools.cache
def _llama() -> Network:
    return network_from_config(good_files.AGAINST / "llama.json", sequence=8).at(1, "adamw")


def _verified(path: Path) -> None:
    with open_trace(path) as trace:
        verify_trace(trace)


def _targets(path: Path) -> Targets:
    with open_trace(good_files.trace_path()) as trace:
        return Targets.load(path, trace)


#: By the name of a type; the function gets the folder of the files.
READERS: dict[str, Callable[[Path], object]] = {
    "trace": lambda folder: _verified(folder / "x.bin"),
    "trace-grammar": lambda folder: _verified(folder / "x.bin"),
    "machine": lambda folder: Machine.load(folder / "x.toml"),
    "training-machine": lambda folder: TrainingMachine.load(folder / "x.toml"),
    "targets": lambda folder: _targets(folder / "x.toml"),
    "study": lambda folder: read_study(folder / "x.toml"),
    "jobs": lambda folder: read_jobs(folder / "x.toml"),
    "network": lambda folder: load_network(folder / "x.toml"),
    "plan": lambda folder: read_plan(folder / "x.toml", _alexnet(), "plan"),
    "plan-of-blocks": lambda folder: read_plan(folder / "x.toml", _llama(), "plan"),
    "calibration": lambda folder: read_own(folder / "x.toml"),
    "calibration-tree": lambda folder: read_own(folder / "x.toml"),
    "operator-constants": lambda folder: read_own(folder / "x.toml"),
    "timings": lambda folder: read_timings(folder / "x.csv"),
    "densities": lambda folder: TableContents.read(folder / "x.toml"),
    "densities-csv": lambda folder: TableContents.read(folder / "x.csv"),
    "activations": lambda folder: load_activations(folder / "x.maps"),
    "activations-part": lambda folder: load_activations(folder / "x.incomplete", incomplete=True),
    "operator-graph": lambda folder: load_operators(folder / "x.json"),
    "config": lambda folder: read_config(folder / "x.json"),
    "snapshot": lambda folder: read_snapshot(folder / "x.pickle"),
    "profiler-trace": lambda folder: read_trace(folder / "x.json"),
    "replay-result": lambda folder: load_item(f"{folder}/x.json:ideal", Store.at(folder / "store")),
    "training-result": lambda folder: load_item(f"{folder}/x.json:vdnn-dyn", Store.at(folder / "store")),
    "timeline": lambda folder: read_memory(folder / "x.json"),
    "curves": lambda folder: load_curves(folder / "x.csv"),
    "kernels": lambda folder: load_measured_kernels(folder / "x.csv"),
    "replays": lambda folder: load_replays(folder / "x.csv"),
    "opencl": read_bundle,
}
