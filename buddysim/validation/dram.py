"""Device memory under load: fractions of peak bandwidth, compared with those of DRAMsim3 at the same timings."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from buddysim.base.textfile import parse_toml
from buddysim.machine import Machine
from buddysim.replay import simulate
from buddysim.synthetic import make_trace
from buddysim.validation.comparison import ComparedQuantity, ValidationOptions, ValidationReport, Value

SUMMARY = "fraction of device memory's peak bandwidth, compared with DRAMsim3's on the same streams"
ORDER = 40

NAME = "dram"
COLUMNS = (
    "machine",
    "stream",
    "simulated_fraction",
    "dramsim3_short_queues_fraction",
    "dramsim3_long_queues_fraction",
    "error_fraction",
)
TOLERANCE, TOLERANCE_IN_ORDER = 0.1, 0.05
IN_ORDER = ("read", "write")
_SETS = 8
"""Sets of each slice of the L2: dirty lines are evicted soon, and no sector is read twice."""
_EVICTING = "_evicting"
"""Ending of the streams of the reference with an L2 full of dirty lines, which tests compare kernels with."""
_PS_PER_S = 10**12


@dataclass(frozen=True)
class StreamBandwidth:
    """The bandwidth of a stream on a machine, as fractions of the peak.

    Attributes
    ----------
    machine, stream : preset, and name of the stream
    simulated : the replay's fraction
    reference : DRAMsim3's fractions, with short and with long queues
    """

    machine: str
    stream: str
    simulated: float
    reference: tuple[float, float]

    @property
    def nearest(self) -> float:
        """The fraction in DRAMsim3's range that is nearest to the simulated one."""
        return min(max(self.simulated, min(self.reference)), max(self.reference))

    @property
    def error(self) -> float:
        return self.simulated / self.nearest - 1

    @property
    def tolerance(self) -> float:
        return TOLERANCE_IN_ORDER if self.stream in IN_ORDER else TOLERANCE


def load_reference() -> dict[str, dict[str, tuple[float, float]]]:
    """Return DRAMsim3's fractions of peak bandwidth, by preset and stream."""
    text = (resources.files("buddysim.validation") / "data" / "dramsim3.toml").read_text(encoding="utf-8")
    return {
        machine: {stream: tuple(fractions) for stream, fractions in streams.items()}
        for machine, streams in parse_toml(text, "dramsim3.toml").items()
    }


def compare(options: ValidationOptions) -> ValidationReport:
    """Replay every stream of the reference on its machine."""
    if options.machine is not None:
        Machine.load(options.machine)  # reports what is wrong with the name
    presets = Machine.presets() if options.machine is None else [options.machine]
    every = load_reference()
    selected = {name: streams for name, streams in every.items() if name in presets}
    bandwidths = []
    for name, streams in selected.items():
        machine = Machine.load(name)
        for stream, fractions in streams.items():
            if not stream.endswith(_EVICTING):
                bandwidths.append(StreamBandwidth(name, stream, bandwidth_fraction(machine, stream), fractions))
        worst = max((entry for entry in bandwidths if entry.machine == name), key=lambda entry: abs(entry.error))
        options.progress(f"{name}: largest error {worst.error:+.1%} ({worst.stream})")
    quantities = [
        ComparedQuantity(
            NAME, entry.machine, entry.stream, "fraction of peak bandwidth", "", simulated=entry.simulated,
            reference=entry.nearest, error=entry.error, tolerance=entry.tolerance,
            note=f"DRAMsim3: {entry.reference[0]:.3f} and {entry.reference[1]:.3f}",
        )
        for entry in bandwidths
    ]  # fmt: skip
    quantities += [
        ComparedQuantity(NAME, name, "every stream", "all", note="DRAMsim3 was not run")
        for name in presets
        if name not in selected
    ]
    points = [point_row(entry) for entry in bandwidths]
    return ValidationReport(quantities, COLUMNS, points, machines=list(every))


def bandwidth_fraction(machine: Machine, stream: str) -> float:
    """Return the fraction of device memory's peak bandwidth that L2 misses and write-backs of a stream reach."""
    dram = machine.dram
    bare = machine.with_overrides(
        {
            "l1.enabled": False,
            "l2.partitions": 1,  # eight sets have no capacity for replicas of remote lines
            "l2.fetch_granularity": "32 B",  # DRAMsim3's streams consist of single bursts, too
            "l2.writeback_buffer": 0,  # and come to the channel as it accepts them
            "dram.refresh": "all_bank",
            "dram.write_high_watermark": 64,  # Accel-Sim's watermarks are those of another controller
            "dram.write_low_watermark": 16,
            "dram.write_drain": "interleaved",
            "crossbar.input_queued": False,
            # DRAMsim3's streams have the lines of one pseudo-channel, whichever these are.
            "l2.interleave_granularity": "128 B",
            "l2.size": f"{_SETS * 128 * machine.l2.slices * machine.l2.ways} B",
            "kernel.launch_latency": "0 ns",
        }
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stream.bin"
        make_trace("dram-streams", path, {"kind": stream})
        (kernel,) = simulate(path, bare, "ideal").per_kernel
    sectors = int(kernel["device_read_sectors"]) + int(kernel["device_write_sectors"])
    burst_ps = -(-32 * _PS_PER_S // machine.bytes_per_s(dram.pseudo_channel_bandwidth))
    return float(sectors / (dram.channels * dram.pseudo_channels) * burst_ps / int(kernel["time_ps"]))


def point_row(one: StreamBandwidth) -> tuple[Value, ...]:
    """Return a row of the CSV file."""
    fraction, error = float(f"{one.simulated:.4g}"), float(f"{one.error:.3g}")
    return (one.machine, one.stream, fraction, *one.reference, error)


def page_notes() -> str:
    """Return the causes of errors."""
    return _NOTES


PAGE_HEAD = """
## Streams

Tolerances: 5 % for reads or writes in order, 10 % for all other streams. Values
are fractions of peak bandwidth; the note has DRAMsim3's with short and with long queues. The error is relative to the
nearer end of DRAMsim3's range ([method](method.md#device-memory)). `random_64`: runs of 64 B in randomly chosen
lines. `mixed`: a third are writes. `stride_4`: one sector of every 4th line.
""".strip()

_NOTES = """
All presets drain writes here from 64 bursts to 16, interleaved with reads. With reads blocked during a drain
(`dram.write_drain = "exclusive"`), as in DRAMsim3, streams in order have errors of -4 to 0 %. Random mixes have errors
of -17 to 0 % (`p100-nvlink2`, `a100-40`, `gh200`).

## Causes of errors outside tolerance

- **Strides**: the lines of a stride fall into few banks, about two to a row. They arrive from different warps at
  different times. A simulated bank retains its open row and the last three closed rows. A line of any other row opens
  its row again, however many requests to that row wait. DRAMsim3 gets the stream in order, so lines of a row are
  neighbours in its queue.
- **Check**: `p100-nvlink2` moves one sector for each activation at `stride_256`. That gives 2.286 ns / (tRC 48 ns / 4
  banks), less refresh, or 0.173. The simulated fraction is 0.171.
- **Sixteen rows per bank** (an experiment): `rtx-2080-ti` would meet two more tolerances (`stride_2` 0.910, `stride_64`
  0.291). `p100-nvlink2` would reach 0.698 at `stride_4` and stay at 0.171 at `stride_256`. The row memory explains 22
  to 55 % of the error on `rtx-2080-ti` and at most 31 % elsewhere. The order of arrival explains the rest.
- DRAMsim3 was not run with strides on `v100`, `a100-40`, `h100-sxm`, `h200` and `qv100-accelsim`.
""".strip()
