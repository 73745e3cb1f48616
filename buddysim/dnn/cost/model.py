"""Times of layers: a roofline whose efficiency depends on the class of layer, the pass, the GPU and the library."""

from __future__ import annotations

import os
from dataclasses import dataclass

from buddysim.dnn.cost.algorithms import Algorithm, available
from buddysim.dnn.cost.traffic import moved_elements
from buddysim.dnn.cost.work import ConvWork, Pass
from buddysim.dnn.graph import ELEMENT_BYTES, Layer
from buddysim.machine.training import TrainingMachine

PS_PER_S = 10**12

_GENERIC = {"first": 0.35, "1x1": 0.45, "3x3": 0.55, "large": 0.55, "strided": 0.4}
_FACTORS = {
    "implicit_gemm": 0.5,
    "implicit_precomp_gemm": 1.0,
    "gemm": 0.7,
    "fft": 1.2,
    "fft_tiling": 1.3,
    "winograd": 1.6,
    "winograd_nonfused": 1.5,
}
_BANDWIDTH = 0.75


@dataclass(frozen=True)
class ConvAlgorithm:
    """A way to compute one pass of a CONV: its workspace in bytes, its time in picoseconds."""

    name: str
    workspace_bytes: int
    time_ps: int


class CostModel:
    """Times and traffic of layers on one machine with one library version.

    Attributes
    ----------
    calibrated : whether the efficiencies were fitted to timings of this GPU and library
    library : version of the CONV library
    source : where the efficiencies come from
    assumptions : what is not measured, by topic
    """

    def __init__(self, machine: TrainingMachine, library: str) -> None:
        self.machine = machine
        self.library = library
        self.calibrated = False
        self.source = "assumed"
        self.assumptions: dict[str, str] = {"efficiencies": "uncalibrated: generic shares of the peak rates"}

    @classmethod
    def load(cls, machine: TrainingMachine | str | os.PathLike[str], library: str | None = None) -> CostModel:
        """The model of a machine; without `library`, of the version that the machine names."""
        loaded = TrainingMachine.load(machine)
        return cls(loaded, library or loaded.library)

    @property
    def _version(self) -> int:
        digits = self.library.removeprefix("cudnn")
        return int(digits) if digits.isdecimal() else 7

    def conv_algorithms(self, layer: Layer, batch: int, pass_: Pass) -> tuple[ConvAlgorithm, ...]:
        """The algorithms of a CONV's pass, fastest first; of equally fast ones, that with less workspace first."""
        if layer.conv is None:
            raise ValueError(f"layer {layer.name!r} is no CONV")
        work = ConvWork(layer.conv, batch)
        found = [
            ConvAlgorithm(algorithm.name, algorithm.workspace(work), self._conv_ps(algorithm, work))
            for algorithm in available(work, pass_, self._version)
        ]
        return tuple(sorted(found, key=lambda algorithm: (algorithm.time_ps, algorithm.workspace_bytes)))

    def time_ps(self, layer: Layer, batch: int, pass_: str) -> int:
        """Time of a layer that is no CONV, ``"forward"`` or ``"backward"``."""
        return self._roofline(self._flops(layer, batch, pass_), self.dram_bytes(layer, batch, pass_), 0.6)

    def dram_bytes(self, layer: Layer, batch: int, pass_: str) -> int:
        """Bytes that a pass of a layer moves to and from device memory, at least."""
        if layer.conv is not None:
            return ConvWork(layer.conv, batch).bytes
        if layer.gemms:
            moved = 0
            for gemm in layer.gemms:
                rows = gemm.m * (batch if gemm.per_sample and gemm.weights else 1)
                each = rows * gemm.k + gemm.k * gemm.n + rows * gemm.n
                moved += each * gemm.count * (1 if gemm.weights else batch)
            return moved * ELEMENT_BYTES * (2 if pass_ == "backward" else 1)
        forward, backward = moved_elements(layer)
        return round((backward if pass_ == "backward" else forward) * ELEMENT_BYTES) * batch

    def _flops(self, layer: Layer, batch: int, pass_: str) -> int:
        return 2 * sum(gemm.multiply_adds for gemm in layer.gemms) * batch * (2 if pass_ == "backward" else 1)

    def _conv_ps(self, algorithm: Algorithm, work: ConvWork) -> int:
        return self._roofline(work.flops, work.bytes, _GENERIC[work.conv_class] * _FACTORS[algorithm.name])

    def _roofline(self, flops: int, moved: int, efficiency: float) -> int:
        if not flops and not moved:
            return 0
        compute = flops / (self.machine.fp32_flops * efficiency)
        memory = moved / (self.machine.dram_bytes_per_s * _BANDWIDTH)
        return self.machine.launch_ps + round(max(compute, memory) * PS_PER_S)
