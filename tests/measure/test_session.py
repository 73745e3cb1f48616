"""Measurements of a simulated GPU give a machine file with its keys."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.measure.benchmarks import make_benchmarks
from buddysim.measure.gpu import GpuProperties
from buddysim.measure.machine_file import nearest_preset
from buddysim.measure.session import MACHINE, TABLE, measure_gpu
from buddysim.validation.curve import curve_data, replays

#: Keys in which this machine differs from its preset; the measurement must recover them.
CHANGED = {
    "clock.core": "1200 MHz",
    "sm.count": "64",
    "l1.load_to_use": "41 core_cycles",
    "l2.load_to_use": "262 core_cycles",
    "dram.load_to_use": "391 ns",
    "crossbar.reply_bandwidth": "20 B/core_cycle",
    "link.load_to_use": "702 ns",
    "link.bandwidth": "61 GB/s",
}


@dataclass
class SimulatedGpu:
    """Replay on a machine instead of a GPU, with one footprint per level and the fewest threads of STREAM."""

    machine: Machine
    name: str = "Tesla V100-SXM2-32GB"
    calls: list[str] = field(default_factory=list)
    results: dict[tuple[object, ...], float] = field(default_factory=dict)

    @property
    def about(self) -> GpuProperties:
        m = self.machine
        pins = round(float(m.clock.dram.hz) / 1000)
        figures = {
            "multiProcessorCount": m.sm.count,
            "maxThreadsPerMultiProcessor": m.sm.threads,
            "regsPerMultiprocessor": m.sm.registers,
            "sharedMemPerMultiprocessor": m.sm.shared_memory,
            "l2CacheSize": m.l2.size,
            "totalGlobalMem": m.dram.capacity,
            "memoryClockRate": pins,
            "memoryBusWidth": round(m.dram_bytes_per_s * 8 / (2000 * pins)),
        }
        return GpuProperties(self.name, figures)

    def clock_mhz(self) -> float:
        return float(self.machine.clock.core.hz) / 1e6

    def chase_cycles(self, footprint: int, on_host: bool = False) -> float:
        if on_host:
            return self._once("host", replays.simulate_host_chase, self.machine)
        return self._once("chase", replays.simulate_chase, self.machine, self._typical(footprint), 128)

    def per_sm_gb_s(self, footprint: int) -> float:
        return self._once("per sm", replays.simulate_per_sm_loads, self.machine, self._typical(footprint))

    def shared_gb_s(self, footprint: int) -> float:
        return self._once("shared", replays.simulate_shared_loads, self.machine, max(self._typical(footprint), 2**20))

    def stream_gb_s(self, op: str, arrays: int, threads: int) -> float:
        if op != "read":
            return 1.0
        curve = curve_data.MeasuredCurve("card", "buddysim", "stream_read", (3.1,), (1.0,))
        return self._once("stream", replays.simulate_stream, self.machine, curve, 3.1)

    def stride_cycles(self, stride: int) -> float:
        return 1.0 + stride

    def copy_gb_s(self, to_host: bool, count: int) -> float:
        rate = float(self.machine.bytes_per_s(self.machine.link.bandwidth)) * (1.0 if to_host else 1.25)
        return count / (count / rate + 10e-6) / 1e9

    def kernel_us(self, name: str, n: int) -> float:
        return 1.0

    def _typical(self, footprint: int) -> int:
        l1, l2 = self.machine.l1.size, self.machine.l2.size
        return min((l1 // 4, 4 * l1, 6 * l2), key=lambda size: abs(math.log(size / footprint)))

    def _once(self, *call: object) -> float:
        key = tuple(part for part in call if isinstance(part, int | str))
        self.calls.append(str(call[0]))
        if key not in self.results:
            self.results[key] = call[1](*call[2:])  # type: ignore[operator]
        return self.results[key]


@pytest.fixture(scope="module")
def gpu() -> SimulatedGpu:
    return SimulatedGpu(Machine.load("v100").with_overrides(CHANGED))


@pytest.fixture(scope="module")
def folder(gpu: SimulatedGpu, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines: list[str] = []
    folder = tmp_path_factory.mktemp("parent") / "measured"
    assert measure_gpu(folder, None, lambda: gpu, lines.append) == [folder / TABLE, folder / MACHINE]
    assert len([text for text in lines if "points" in text]) == len(list(make_benchmarks(gpu.about)))
    assert not [text for text in lines if text.startswith("warning")]
    return folder


@pytest.mark.slow
def test_machine_file_has_the_memory_latency_of_the_gpu(folder: Path, gpu: SimulatedGpu) -> None:
    """The key is known only in steps of a ninth of the refresh interval, as the chase synchronizes with refreshes."""
    machine = Machine.load(str(folder / MACHINE))
    footprint = 6 * machine.l2.size
    assert replays.simulate_chase(machine, footprint, 128) == pytest.approx(gpu.chase_cycles(footprint), rel=0.02)
    assert number(machine, "dram.load_to_use") == pytest.approx(391, rel=0.1)


def number(machine: Machine, key: str) -> float:
    return float(machine.text(key).split()[0])


def test_machine_file_has_the_figures_of_the_gpu(folder: Path) -> None:
    machine = Machine.load(str(folder / MACHINE))
    assert machine.name == "tesla-v100-sxm2-32gb"
    assert machine.sm.count == 64
    assert machine.clock.core.hz == 1_200_000_000
    for key in ("l1.load_to_use", "l2.load_to_use", "link.load_to_use", "link.bandwidth"):
        assert number(machine, key) == pytest.approx(float(CHANGED[key].split()[0]), rel=0.02), key
    assert number(machine, "crossbar.reply_bandwidth") == pytest.approx(20, rel=0.05)
    assert "measured on Tesla V100-SXM2-32GB at 1200 MHz" in machine.source("dram.load_to_use")
    assert "CUDA" in machine.source("l2.size")
    assert machine.source("dram.timing.tRCD") == Machine.load("v100").source("dram.timing.tRCD")


def test_table_has_the_format_of_measured_curves(folder: Path, gpu: SimulatedGpu) -> None:
    curves = curve_data.load_curves(folder / TABLE)
    assert [curve.benchmark for curve in curves] == [benchmark.name for benchmark in make_benchmarks(gpu.about)]
    chase = next(curve for curve in curves if curve.benchmark == curve_data.CHASE)
    assert list(chase.x) == sorted(chase.x)
    assert chase.x[-1] > 4 * gpu.machine.l2.size / 1024  # the plateau of device memory is in it


def test_stored_curves_are_not_measured_again(folder: Path, gpu: SimulatedGpu, tmp_path: Path) -> None:
    complete = (folder / TABLE).read_text()
    lines = complete.splitlines(keepends=True)
    remaining = [line for line in lines if "chase" not in line or "host" in line]
    (tmp_path / TABLE).write_text("".join(remaining))
    gpu.calls.clear()
    measure_gpu(tmp_path, None, lambda: gpu, lambda _: None)
    assert set(gpu.calls) == {"chase"}
    assert sorted((tmp_path / TABLE).read_text().splitlines()) == sorted(complete.splitlines())
    assert (tmp_path / MACHINE).read_text() == (folder / MACHINE).read_text()


class Interrupted(Exception):
    """Stand-in for ctrl-C."""


def test_interrupted_run_leaves_complete_curves(gpu: SimulatedGpu, tmp_path: Path) -> None:
    class Cut(SimulatedGpu):
        def copy_gb_s(self, to_host: bool, count: int) -> float:
            raise Interrupted

        def _once(self, *call: object) -> float:
            return 100.0

    with pytest.raises(Interrupted):
        measure_gpu(tmp_path, None, lambda: Cut(gpu.machine), lambda _: None)
    names = [curve.benchmark for curve in curve_data.load_curves(tmp_path / TABLE)]
    assert names[-1] == curve_data.STRIDES
    assert not (tmp_path / MACHINE).exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [TABLE]


def test_table_of_another_gpu_is_refused_and_unchanged(gpu: SimulatedGpu, tmp_path: Path) -> None:
    row = ",".join(curve_data.COLUMNS) + "\nother,buddysim,stream_read,occupancy_percent,3,GB/s,5,1000\n"
    (tmp_path / TABLE).write_text(row)
    with pytest.raises(BuddysimError, match="curves of 'other': expected those of tesla-v100"):
        measure_gpu(tmp_path, None, lambda: gpu, lambda _: None)
    assert (tmp_path / TABLE).read_text() == row


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100-40"),
        ("Quadro GV100", "gv100"),
        ("Tesla V100-PCIE-16GB", "v100"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx-1080-ti"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
    ],
)
def test_nearest_preset_is_that_of_the_model(name: str, preset: str) -> None:
    assert nearest_preset(name) == preset


@pytest.mark.parametrize("name", ["NVIDIA RTX A1000", "NVIDIA L4", "NVIDIA GeForce GTX 1080"])
def test_model_without_a_preset_needs_like(name: str) -> None:
    with pytest.raises(BuddysimError, match="expected --like"):
        nearest_preset(name)
