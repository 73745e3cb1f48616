"""Codec times for schemes that compress on the GPU: from our own kernels, simulated, or from the CSWAP paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import Option, values
from buddysim.gpu_codecs import LAYOUTS, REGISTRY, is_installed, not_installed_text
from buddysim.training.contents.activation_options import check_arrays
from buddysim.training.iteration.stash import Encoding

if TYPE_CHECKING:
    from buddysim.gpu_codecs.opencl_device import LaunchShape
    from buddysim.gpu_codecs.times import CodecTimeTable
    from buddysim.machine.training import TrainingMachine

_GROUP = "codec on the GPU, for schemes cswap*"
SIMULATED, PAPER = "simulated", "paper"
AUTO = "auto"
#: A tensor whose best launch is every tensor's: the one of the paper's Fig. 5.
_TYPICAL = (500 * 2**20, 0.5)

OPTIONS = {
    "codec": Option(
        str, f"compressor that the codec on the GPU implements; {AUTO}: for each feature map the one with the lowest "
        "cost", "NAME", "zvc", _GROUP,
    ),
    "codec_times": Option(
        str, f"source of the codec's times: {SIMULATED}, buddysim's OpenCL kernels; {PAPER}, a curve through three "
        "points of the paper", "SOURCE", SIMULATED, _GROUP,
    ),
    "codec_kernels": Option(
        str, f"distribution of work in the codec's kernels: {', '.join(LAYOUTS)}", "LAYOUT", LAYOUTS[0], _GROUP
    ),
    "codec_grid": Option(
        int, "work-groups of a codec launch, 1 to 4096 (default: the fastest of those simulated)", "N", group=_GROUP
    ),
    "codec_block": Option(
        int, "work-items of the codec's work-groups, 64 or 128 (default: the faster)", "N", group=_GROUP
    ),
}  # fmt: skip


@dataclass(frozen=True)
class GpuCodec:
    """A codec on a machine.

    Attributes
    ----------
    launch : launch parameters of its kernels
    slower : factor of its times relative to the machine on which they were simulated
    source : source of its times, for results
    """

    name: str
    times: CodecTimeTable
    launch: LaunchShape
    slower: float
    source: str

    def encoding(self, byte_count: int, sparsity: float, encoded_bytes: int) -> Encoding:
        """The encoding of a feature map, with its times."""
        timing = self.times.sample_at(byte_count, sparsity, self.launch)
        return Encoding(encoded_bytes, round(timing.compress_ps * self.slower), round(timing.decode_ps * self.slower))


def gpu_codecs(machine: TrainingMachine, options: Mapping[str, Any]) -> tuple[GpuCodec, ...]:
    """The codecs that the options leave to choose from; one where they name it.

    Raises
    ------
    BuddysimError
        where an option is out of range, or a codec wasn't simulated
    """
    check_arrays()
    from buddysim.gpu_codecs.times import simulated_machines

    selected = values(OPTIONS, options)
    layout = selected["codec_kernels"]
    if layout not in LAYOUTS:
        raise BuddysimError(f"codec_kernels {shortened(layout)}: expected one of {', '.join(LAYOUTS)}")
    if selected["codec"] != AUTO:
        REGISTRY.find(selected["codec"])
        return (_gpu_codec(machine, selected),)
    names = [name for name in REGISTRY.names() if simulated_machines(name, layout) and is_installed(name)]
    return tuple(_gpu_codec(machine, {**selected, "codec": name}) for name in names)


def missing_codecs_text(options: Mapping[str, Any]) -> str:
    """Codecs that ``codec=auto`` leaves out because their library is not installed; empty if none is left out."""
    return not_installed_text(REGISTRY.names()) if values(OPTIONS, options)["codec"] == AUTO else ""


def _gpu_codec(machine: TrainingMachine, selected: Mapping[str, Any]) -> GpuCodec:
    from buddysim.gpu_codecs.paper_times import PaperTimes
    from buddysim.gpu_codecs.times import codec_times

    source = selected["codec_times"]
    if source not in (SIMULATED, PAPER):
        raise BuddysimError(
            f"codec_times {shortened(source)}: expected {SIMULATED} or {PAPER}{hint(source, (SIMULATED, PAPER))}"
        )
    if source == PAPER:
        return _with_launch(
            selected, PaperTimes(), 1.0, "those of a curve through three points of the CSWAP paper's Fig. 5"
        )
    simulated_on, slower = _measured_machine(machine, selected["codec"], selected["codec_kernels"])
    times = codec_times(simulated_on, selected["codec"], selected["codec_kernels"])
    text = f"those of buddysim's OpenCL kernels, {selected['codec_kernels']}, simulated on {simulated_on}"
    if slower != 1:
        text += f" and multiplied by {slower:.2f}, the ratio of memory bandwidths"
    return _with_launch(selected, times, slower, text)


def _with_launch(selected: Mapping[str, Any], times: CodecTimeTable, slower: float, text: str) -> GpuCodec:
    from buddysim.gpu_codecs.opencl_device import LaunchShape
    from buddysim.gpu_codecs.paper_times import LAUNCH as PAPER_LAUNCH
    from buddysim.gpu_codecs.paper_times import PaperTimes

    best = PAPER_LAUNCH if isinstance(times, PaperTimes) else times.best_launch(*_TYPICAL)
    launch = LaunchShape(
        best.grid if selected["codec_grid"] is None else selected["codec_grid"],
        best.block if selected["codec_block"] is None else selected["codec_block"],
    )
    launch.check()
    return GpuCodec(
        selected["codec"], times, launch, slower, f"{text}; grid {launch.grid}, work-groups of {launch.block}"
    )


def _measured_machine(machine: TrainingMachine, codec: str, layout: str) -> tuple[str, float]:
    """The machine whose times are taken, and how much longer this one takes."""
    from buddysim.gpu_codecs.times import simulated_machines
    from buddysim.machine.training import TrainingMachine as Machines

    names = simulated_machines(codec, layout)
    if machine.name in names or not names:
        return machine.name, 1.0
    like = "v100" if "v100" in names else names[0]
    return like, Machines.load(like).dram_bytes_per_s / machine.dram_bytes_per_s
