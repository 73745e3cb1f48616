"""Times of layers: a roofline whose efficiency depends on the class of layer, the pass, the GPU and the library.

docs/explanation/layer-times.md has the source of each number and the errors of the times, in and out of sample.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import parse_toml, read_text
from buddysim.machine.training import TrainingMachine
from buddysim.training.autograd.records import Collective
from buddysim.training.collectives import CollectiveTimes
from buddysim.training.cost.algorithms import FFTS, MEMORY_OPTIMAL, Algorithm, available, fft_frequencies
from buddysim.training.cost.calibration import (
    LARGEST_FILE,
    Calibration,
    SharedConstants,
    check_version,
    common,
    parse_calibration,
    shipped,
    version_of,
)
from buddysim.training.cost.curve import PassTimeModel, PeakRates, curve_name
from buddysim.training.cost.operators.constants import OPERATOR_PARTS, OperatorConstants, parse_constants
from buddysim.training.cost.operators.described import HALF, DescribedOperators
from buddysim.training.cost.operators.host import host_ps
from buddysim.training.cost.operators.model import OperatorModel
from buddysim.training.cost.precision import MATRIX_FRACTION, PRECISIONS, Precision, find_precision
from buddysim.training.cost.traffic import layer_elements
from buddysim.training.cost.work import GROUPED, WINOGRAD_CLASSES, ConvWork, MatmulWork, Pass
from buddysim.training.networks.graph import ELEMENT_BYTES, Gemm, Layer
from buddysim.training.networks.kinds import rules_of
from buddysim.training.networks.recorded.layer import RecordedLayer
from buddysim.training.networks.recorded.work import OperationWork

PS_PER_S = 10**12
GENERIC = "generic"
NEWEST = 7
"""Version of cuDNN whose algorithms are used if the library's name contains no version."""

TIMED_WORKSPACE_BYTES = 8 << 20
"""Maximum workspace of a CONV in the timings with limited workspace, in bytes: Caffe gives cuDNN no more."""

LARGEST_TIMED_FFT = 112
"""Rows and columns of the largest feature maps that the rates of FFTs were fitted to (VGG-A's ``conv2_1``)."""

_DIRECT = "implicit_precomp_gemm"
_ON_TENSOR_CORES = (MEMORY_OPTIMAL, _DIRECT, "gemm")
_COMPLEX_FLOPS = 4
"""A complex multiply-add is eight operations, four times a real one."""

_FFT_BANDWIDTH = 0.7
"""Fraction of the peak bandwidth at which transforms move their data, that of other memory-bound layers."""

_DEPTHWISE_RATE = 0.25
"""Fraction of the peak rate that a depthwise kernel, without matrix products, reaches."""

_STATE_TRAFFIC = 2
"""Accesses to each byte of a recurrent layer's saved states: written forward, read backward."""


@dataclass(frozen=True)
class ConvAlgorithm:
    """An algorithm for one pass of a CONV: its workspace in bytes, its time in picoseconds."""

    name: str
    workspace_bytes: int
    time_ps: int


class CostModel:
    """Times and traffic of layers on one machine with one library version.

    Attributes
    ----------
    calibrated : whether constants were fitted to timings of this GPU in this precision, and of this library where
        CONV was timed
    borrowed : whether the efficiencies are those of another GPU, named in the machine file
    library : version of the CONV library
    source : origin of the efficiencies
    assumptions : sentences about what is not measured, by topic
    largest_fft : rows and columns of the largest feature maps for which FFTs are offered
    described : times of described layers by operators; None: by efficiencies and fractions of the bandwidth alone
    """

    def __init__(
        self,
        machine: TrainingMachine,
        library: str,
        calibration: Calibration | None,
        shared: SharedConstants,
        precision: Precision = PRECISIONS["fp32"],
        largest_fft: int = LARGEST_TIMED_FFT,
        channels_last: bool = False,
        own_operators: OperatorConstants | None = None,
    ) -> None:
        self.machine = machine
        self.library = library
        self.calibration = calibration
        self.shared = shared
        self.largest_fft = largest_fft
        self.borrowed = calibration is not None and calibration.machine == machine.training.calibrate_as
        known = calibration is not None and calibration.library == library and not self.borrowed
        self.calibrated = known and precision.name == "fp32"
        self.precision = precision
        single = PeakRates.of(machine)
        self._peak = replace(single, bytes_per_s=single.bytes_per_s * ELEMENT_BYTES / precision.element_bytes)
        self._matrix_peak = replace(self._peak, flops=precision.matrix_flops(machine))
        self._efficiency = shared.efficiency if calibration is None else calibration.efficiency
        self._version = version_of(library) or NEWEST
        fitted = None if calibration is None else version_of(calibration.library)
        self._winograd_fitted = (fitted or NEWEST) >= 5
        self._limited_workspace = calibration is not None and calibration.limited_workspace
        self._bytes_per_s, self._launch_ps = machine.dram_bytes_per_s, machine.launch_ps
        self._elements: dict[Layer, tuple[float, float]] = {}
        self.operators = OperatorModel(machine, precision.name == "tf32", own=own_operators)
        by_operators = precision.name != "fp32" or (calibration is None and _on_tensor_cores(machine))
        self.described = DescribedOperators(self.operators, precision.name, channels_last) if by_operators else None
        if self.described is not None:
            self.calibrated = self.operators.origin(precision.name) == machine.name
        self._algorithms: dict[tuple[object, int, Pass], tuple[ConvAlgorithm, ...]] = {}
        self._products: dict[MatmulWork, int] = {}  # of `described`: blocks of a model have the same ones
        self.source, self.assumptions = _provenance(self)

    def derived_times(self, algorithms: Iterable[ConvAlgorithm]) -> str | None:
        """Return the assumption about algorithms with more workspace than any timed one; None if there are none."""
        if not self._limited_workspace:
            return None
        largest = max((one.workspace_bytes for one in algorithms), default=0)
        if largest <= TIMED_WORKSPACE_BYTES:
            return None
        timed = f"{TIMED_WORKSPACE_BYTES >> 20} MiB"
        return (
            f"Times of CONV algorithms with more than {timed} of workspace (here up to {largest / 2**30:.2f} GiB) are "
            f"derived from timings with at most {timed} and no FFT: probably too short (optimistic)."
        )

    @classmethod
    def load(
        cls,
        machine: TrainingMachine | str | os.PathLike[str],
        conv_library: str | None = None,
        calibration: Calibration | OperatorConstants | str | os.PathLike[str] | None = None,
        precision: str = "fp32",
        channels_last: bool = False,
    ) -> CostModel:
        """Load the model of a machine.

        Parameters
        ----------
        machine : a machine, its name, or the path of its file
        conv_library : for example ``"cudnn4"``; None: the version that the calibration or the machine names
        calibration : a calibration of layers, constants of operators, or the path of either's file; None: the bundled
            ones, if there are any
        precision : a name of `PRECISIONS`; the machine must have a rate for it
        channels_last : whether feature maps lie in memory as CONV kernels of tensor cores read them

        Raises
        ------
        BuddysimError
            if the machine, library, calibration or precision is unknown or invalid
        """
        loaded, computed = TrainingMachine.load(machine), find_precision(precision)
        if isinstance(calibration, str | os.PathLike):
            calibration = read_own(calibration)
        if isinstance(calibration, Calibration):
            library = conv_library or calibration.library
            check_version(library)
            return cls(loaded, library, calibration, common(), computed, channels_last=channels_last)
        requested = conv_library or loaded.library
        if requested != GENERIC and version_of(requested) is None:
            known = sorted({GENERIC, "cudnn2", "cudnn3", *(name for _, name in shipped())})
            raise BuddysimError(
                f"conv_library {shortened(requested)} is unknown: expected one of {', '.join(known)}"
                f"{hint(requested, known)}"
            )
        check_version(requested)
        fitted = _nearest(loaded.name, requested)
        if fitted is None and loaded.training.calibrate_as is not None:
            fitted = _nearest(loaded.training.calibrate_as, loaded.library if requested == GENERIC else requested, True)
        return cls(
            loaded, requested, fitted, common(), computed, channels_last=channels_last, own_operators=calibration
        )

    def conv_algorithms(self, layer: Layer, batch: int, pass_: Pass) -> tuple[ConvAlgorithm, ...]:
        """Return the algorithms of a CONV's pass, fastest first; equally fast ones by workspace.

        Libraries and papers find the fastest algorithm of each layer by trying all of them on the GPU
        (``cudnnFindConvolution...``; Rhu et al., vDNN, Section V-C). So an algorithm is left out if its workspace does
        not fit in the GPU's memory together with the layer's X, Y and filters.

        Raises
        ------
        ValueError
            if the layer is no CONV
        """
        if layer.conv is None:
            raise ValueError(f"layer {layer.name!r} is no CONV")
        key = (layer.conv, batch, pass_)
        if key not in self._algorithms:
            work = ConvWork(layer.conv, batch)
            most = self.machine.memory_bytes - work.bytes
            self._algorithms[key] = tuple(
                one for one in self.algorithms(work, pass_) if not one.workspace_bytes or one.workspace_bytes <= most
            )
        return self._algorithms[key]

    def algorithms(self, work: ConvWork, pass_: Pass) -> tuple[ConvAlgorithm, ...]:
        """Return the algorithms of a CONV outside of any network, without a limit on workspace, in the same order.

        FFTs are offered for feature maps up to the largest timed size; their rates are not extrapolated.
        """
        large = max(work.conv.in_h, work.conv.in_w) > self.largest_fft
        alike = [self._conv_times(one, pass_) for one in work.with_paddings]
        offered = [
            ConvAlgorithm(
                algorithm.name,
                algorithm.workspace(work),
                _ps(min(self._algorithm_s(algorithm, times, pass_) for times in alike)),
            )
            for algorithm in available(work, pass_, self._version)
            if (self.precision.name == "fp32" or algorithm.name in _ON_TENSOR_CORES)
            and not (large and algorithm.name in FFTS)
        ]
        return tuple(sorted(offered, key=lambda one: (one.time_ps, one.workspace_bytes, one.name)))

    def time_ps(self, layer: Layer, batch: int, pass_: str) -> int:
        """Return the time of a layer that is no CONV, in picoseconds.

        Parameters
        ----------
        batch : samples
        pass_ : ``"forward"`` or ``"backward"``; for layers with products also ``"backward_data"`` and
            ``"backward_filter"``, whose sum is ``"backward"``
        """
        if isinstance(layer, RecordedLayer):
            return self.operations_ps(layer.work(pass_))
        if layer.gemms and rules_of(layer).fused:
            return self._fused_ps(layer, batch, pass_)
        if layer.gemms:
            return sum(self._gemm_ps(layer, gemm, batch, part) for gemm in layer.gemms for part in _parts(pass_))
        if pass_ == "backward_filter":
            return 0
        moved = self.dram_bytes(layer, batch, pass_)
        if not moved:
            return 0
        return self.moving_ps(moved, layer.kind, "forward" if pass_ == "forward" else "backward")

    def operation_ps(self, work: OperationWork) -> int:
        """Return the time of a recorded operation on the GPU, in picoseconds."""
        return self.operators.time_ps(work)

    def launch_ps(self, work: OperationWork) -> int:
        """Return the host's time to launch a recorded operation, in picoseconds."""
        return host_ps(work, self.operators.host)

    def collective_ps(self, collective: Collective) -> int:
        """Return the time of a collective between GPUs like this one, alone on their link, in picoseconds.

        Raises
        ------
        BuddysimError
            nothing links the GPUs, or not so many of them
        """
        return self._collectives.time_ps(collective.kind, collective.bytes, collective.gpus)

    @cached_property
    def _collectives(self) -> CollectiveTimes:
        return CollectiveTimes(self.machine)

    def operations_ps(self, works: Sequence[OperationWork]) -> int:
        """Return the time of recorded operations: the longer of the GPU's and the host's."""
        return max(sum(map(self.operation_ps, works)), sum(map(self.launch_ps, works)))

    def moving_ps(self, moved: float, kind: str, pass_: str) -> int:
        """Return the time that a memory-bound layer takes to move `moved` bytes, in picoseconds."""
        fraction = self.bandwidth_fraction(kind, pass_)
        if self.described is not None:
            return _ps(self.described.moving_s(moved, fraction / self.shared.bandwidth["relu"][pass_]))
        return self._launch_ps + _ps(moved / (self._bytes_per_s * fraction))

    def product_ps(self, product: MatmulWork, pass_: Pass) -> int:
        """Return the time of a pass of a fully connected layer with this product, in picoseconds."""
        if self.described is not None:
            if product not in self._products:
                self._products[product] = _ps(self.described.product_s(product))
            return self._products[product]
        efficiency = self._efficiency[pass_]["fc"]
        return _ps(self.shared.curves["fc"].seconds(product, product.bytes, efficiency, self._matrix_peak))

    def dram_bytes(self, layer: Layer, batch: int, pass_: str) -> int:
        """Return the bytes that a pass of a layer moves to and from device memory, at least."""
        if isinstance(layer, RecordedLayer):
            return sum(work.bytes for work in layer.work(pass_))
        return self._single_bytes(layer, batch, pass_) * self.precision.element_bytes // ELEMENT_BYTES

    def _single_bytes(self, layer: Layer, batch: int, pass_: str) -> int:
        """As `dram_bytes`, in single precision."""
        if layer.conv is not None:
            return ConvWork(layer.conv, batch).bytes * len(_parts(pass_))
        if layer.gemms and rules_of(layer).fused:
            return round(_fused_elements(layer) * ELEMENT_BYTES * batch * len(_parts(pass_)))
        if layer.gemms:
            parts = _parts(pass_)
            moved = sum(round(_product(gemm, batch, part).bytes) for gemm in layer.gemms for part in parts)
            return moved + (_STATE_TRAFFIC * layer.saved_bytes(batch) if rules_of(layer).recurrent else 0)
        if layer not in self._elements:
            self._elements[layer] = layer_elements(layer)
        forward, backward = self._elements[layer]
        return round((forward if pass_ == "forward" else backward) * ELEMENT_BYTES) * batch

    def bandwidth_fraction(self, kind: str, pass_: str) -> float:
        """Return the fraction of the peak bandwidth that layers of a kind reach: measured, else that of a ReLU."""
        own = {} if self.calibration is None else self.calibration.bandwidth
        for table in (own, self.shared.bandwidth):
            if pass_ in table.get(kind, {}):
                return table[kind][pass_]
        return self.shared.bandwidth["relu"][pass_]

    def _gemm_ps(self, layer: Layer, gemm: Gemm, batch: int, pass_: Pass) -> int:
        """Time of one product in ps; in a recurrent layer, products run one after the other."""
        product = _product(gemm, batch, pass_)
        times = 1
        if rules_of(layer).recurrent and product.count > 1:
            times, product = product.count, MatmulWork(product.rows, product.cols, product.inner)
        return self.product_ps(product, pass_) * times

    def _fused_ps(self, layer: Layer, batch: int, pass_: str) -> int:
        """Time of products in one kernel in ps: one launch, and the longer of computing all and moving their operands.

        The backward pass computes the first product again, as its result is not stored.
        """
        if pass_ == "backward_filter":
            return 0
        if self.described is not None and self.precision.name in HALF:
            return _ps(self.described.attention_s(layer.gemms[0], batch, backward=pass_ != "forward"))
        curve, efficiency = self.shared.curves["fc"], self._efficiency
        parts: list[tuple[Gemm, Pass]] = [(gemm, part) for gemm in layer.gemms for part in _parts(pass_)]
        if pass_ == "backward_data":
            parts = [(gemm, part) for gemm in layer.gemms for part in _parts("backward")]
        if pass_ != "forward":
            parts.append((layer.gemms[0], "forward"))
        compute = sum(
            curve.compute_s(_product(gemm, batch, part), self._matrix_peak) / efficiency[part]["fc"]
            for gemm, part in parts
        )
        moved = curve.memory_s(self._single_bytes(layer, batch, pass_), self._peak)
        return _ps(curve.launch_s + max(compute, moved))

    def _conv_times(self, work: ConvWork, pass_: Pass) -> _ConvTimes:
        curve = self._curve(work, pass_)
        moved = curve.memory_s(work.bytes, self._peak)
        if work.conv_class == GROUPED:
            moved = work.bytes / (self._peak.bytes_per_s * self.shared.bandwidth["relu"]["forward"])
        return _ConvTimes(work, curve, moved, *self.compute_s(work, pass_))

    def _algorithm_s(self, algorithm: Algorithm, times: _ConvTimes, pass_: Pass) -> float:
        """Seconds of one algorithm, without paddings."""
        work, curve, moved, direct, winograd = times
        ratio = self.shared.ratio[pass_]
        if algorithm.name == _DIRECT:
            spent = max(direct, moved)
        elif algorithm.name == MEMORY_OPTIMAL:
            spent = max(direct * ratio[MEMORY_OPTIMAL], moved)
        elif algorithm.name == "gemm":
            written = curve.memory_s(2.0 * algorithm.workspace(work), self._peak)
            spent = max(direct * ratio["gemm"], moved + written)
        elif algorithm.name == "winograd":
            spent = max(winograd, moved)
        elif algorithm.name == "winograd_nonfused":
            spent = max(winograd * ratio["winograd_nonfused"], moved)
        else:
            spent = self._fft_s(algorithm, work, pass_)
            if not self._limited_workspace:
                spent = max(spent, min(direct, winograd), moved)
        if self.described is not None and self.precision.name != "fp32":
            spent += self.described.layout_s(work.bytes * self.precision.element_bytes / ELEMENT_BYTES)
        return curve.launch_s + spent

    def _curve(self, work: ConvWork, pass_: Pass) -> PassTimeModel:
        return self.shared.curves[curve_name(pass_, work.conv_class, self._winograd_fitted)]

    def compute_s(self, work: ConvWork, pass_: Pass) -> tuple[float, float]:
        """Return the seconds of multiplications by the direct method and by Winograd's, without moves and launch."""
        if work.conv_class == GROUPED:
            grouped = self._grouped_s(work, pass_)
            return grouped, grouped
        curve, efficiency = self._curve(work, pass_), self._efficiency[pass_][work.conv_class]
        peak = self._matrix_peak
        direct = curve.compute_s(work.product(pass_), peak) / efficiency
        least = work.flops / peak.flops
        if work.conv_class not in WINOGRAD_CLASSES:
            return max(direct, least), direct
        winograd = curve.compute_s(work.tiled_product(pass_), peak) / efficiency
        gain = self.shared.ratio[pass_]["winograd"]
        if self._winograd_fitted:
            return max(direct / gain, least), winograd
        return max(direct, least), winograd * gain

    def _grouped_s(self, work: ConvWork, pass_: Pass) -> float:
        """The faster of adjacent products, one per group, and a kernel without products, in seconds."""
        group = "1x1" if work.window == 1 else "strided"
        compute = self._curve(work, pass_).compute_s(work.product(pass_), self._peak)
        least = work.flops / self._peak.flops
        return max(least, min(compute / self._efficiency[pass_][group], least / _DEPTHWISE_RATE))

    def _fft_s(self, algorithm: Algorithm, work: ConvWork, pass_: Pass) -> float:
        """Seconds of memory-bound transforms, followed by compute-bound products of spectra.

        Every frequency of every tile is a complex product over batch, input and output channels (Mathieu et al., Fast
        training of convolutional networks through FFTs, 2014). Spectra are written once and read once.
        """
        conv = work.conv
        tiles, frequencies = fft_frequencies(work, algorithm.name)
        pairs = conv.out_channels * (conv.in_channels // conv.groups)
        flops = 2.0 * _COMPLEX_FLOPS * tiles * frequencies * work.batch * pairs
        moved = work.bytes + 2.0 * algorithm.workspace(work)
        compute = flops / (self._peak.flops * self.shared.fft[pass_])
        return compute + moved / (self._peak.bytes_per_s * _FFT_BANDWIDTH)


class _ConvTimes(NamedTuple):
    """Of one pass of a CONV, seconds of operands and multiplications, which all its algorithms have in common."""

    work: ConvWork
    curve: PassTimeModel
    moved: float
    direct: float
    winograd: float


def _ps(seconds: float) -> int:
    return round(seconds * PS_PER_S)


def _parts(pass_: str) -> tuple[Pass, ...]:
    if pass_ == "backward":
        return ("backward_data", "backward_filter")
    if pass_ == "forward":
        return ("forward",)
    return ("backward_data",) if pass_ == "backward_data" else ("backward_filter",)


def _product(gemm: Gemm, batch: int, pass_: Pass) -> MatmulWork:
    """Product of a batch: rows of all samples together if the other operand is a parameter."""
    rows, count = gemm.m * (batch if gemm.per_sample else 1), gemm.count
    if not gemm.weights:
        rows, count = gemm.m, gemm.count * batch
    return MatmulWork(rows, gemm.n, gemm.k, count).of_pass(pass_)


def _fused_elements(layer: Layer) -> int:
    """Elements that two fused products read and write forward, per sample, without the intermediate result.

    Backward it is twice as many: queries, keys, values, the output and four gradients.
    """
    first, second = layer.gemms
    return first.count * (first.m * first.k + first.n * first.k + second.k * second.n + second.m * second.n)


@within_budget
def read_own(path: str | os.PathLike[str]) -> Calibration | OperatorConstants:
    """Read what `buddysim calibrate` wrote: a calibration of layers, or constants of operators.

    Raises
    ------
    BuddysimError
        if the file cannot be read or is neither
    """
    text = read_text(path, "calibration", LARGEST_FILE)
    of_operators = any(name in parse_toml(text, os.fspath(path)) for name in OPERATOR_PARTS)
    return (parse_constants if of_operators else parse_calibration)(text, os.fspath(path))


def _on_tensor_cores(machine: TrainingMachine) -> bool:
    """Return whether a GPU has tensor cores and no timings of CONV, neither own nor named ones."""
    own = machine.library != GENERIC or machine.training.calibrate_as is not None
    return machine.training.fp16 is not None and not own


def _nearest(machine: str, library: str, generic: bool = False) -> Calibration | None:
    """Return the bundled calibration of a machine and library; if there is none, the nearest version's.

    With `generic`, the library may be any: the newest calibration is used.
    """
    calibrations = {name: calibration for (owner, name), calibration in shipped().items() if owner == machine}
    if (library == GENERIC and not generic) or not calibrations:
        return None
    requested = version_of(library) or NEWEST
    nearest = min(calibrations, key=lambda name: (abs((version_of(name) or NEWEST) - requested), name))
    return calibrations.get(library, calibrations[nearest])


def _provenance(model: CostModel) -> tuple[str, dict[str, str]]:
    """Return the source of the efficiencies, and the assumptions by topic."""
    assumptions = {
        "conv_algorithms": "Only the fastest algorithm of each class was timed on each GPU: times of the others follow "
        "from ratios and FFT rates fitted to whole networks on a Titan X (Maxwell), with errors of either sign.",
        "grouped": "No grouped or depthwise CONV was timed: they take their bytes at an activation's fraction of the "
        "bandwidth and compute at 25 % of the peak rate or as adjacent products, with errors of either sign.",
        "workspace": "Workspace follows one formula for each algorithm, compared with published cuDNN logs; algorithms "
        "whose workspace does not fit the GPU next to the layer's feature maps, and FFTs of feature maps above "
        f"{LARGEST_TIMED_FFT} x {LARGEST_TIMED_FFT}, are not offered, which is pessimistic.",
    }
    if model.precision.name != "fp32":
        assumptions["precision"] = (
            f"CONV in {model.precision.name} reach {MATRIX_FRACTION:g} of their FP32 efficiency (DeepBench, FP16, "
            "V100 and T4) of the tensor cores' peak; casts take no time, which is optimistic. Grouped and depthwise "
            "CONV run at FP32's rates, workspace is as in FP32, weights, their gradients and statistics are in FP32."
        )
    calibration = model.calibration
    if model.described is not None:
        layout = "have channels last" if model.described.channels_last else "have channels first: CONV copies them"
        origin = model.operators.origin(model.precision.name)
        assumptions["efficiencies"] = (
            f"Products and kernels bound by memory have the constants of {origin}; CONV has not been timed on tensor "
            "cores of today's GPUs: its efficiencies are those of GPUs of 2015 to 2018. The host launches one operator "
            "for each layer and pass."
        )
        assumptions["layout"] = f"Feature maps of CONV {layout}."
        return model.operators.source(model.precision.name), assumptions
    uncalibrated = (
        "fractions of the peak bandwidth are those measured on a Titan X (Maxwell), with errors of either sign."
    )
    if calibration is None:
        assumptions["efficiencies"] = "Uncalibrated: efficiencies are means of the GPUs with timings."
        assumptions["bandwidth"] = f"Uncalibrated: {uncalibrated}"
        return "uncalibrated: no timings of this GPU", assumptions
    if model.borrowed:
        named = f"{calibration.machine} with {calibration.library}"
        assumptions["efficiencies"] = (
            f"Uncalibrated: efficiencies are those of the {named}, whose multiprocessors are most similar."
        )
        assumptions["bandwidth"] = f"Uncalibrated: {uncalibrated}"
        return f"uncalibrated: no timings of this GPU, those of {named}", assumptions
    if calibration.library != model.library:
        assumptions["efficiencies"] = (
            f"Uncalibrated: there are no timings with {model.library}; efficiencies are those with "
            f"{calibration.library}."
        )
    if not calibration.bandwidth:
        assumptions["bandwidth"] = uncalibrated[0].upper() + uncalibrated[1:]
    few = [
        f"{pass_} {group}"
        for pass_, counts in calibration.measured.items()
        for group, count in counts.items()
        if count == 0
    ]
    if few:
        assumptions["groups"] = f"There are no timings of {', '.join(few)}: their efficiencies follow from other GPUs."
    return "; ".join(calibration.source) or "a calibration file", assumptions
