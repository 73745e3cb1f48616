"""Simulated times of codecs: one `CodecSample` for each launch and tensor, and the file of all bundled samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from importlib import resources
from pathlib import Path

from buddysim.base.budget import within_budget
from buddysim.base.csvfile import csv_text
from buddysim.base.output import write_text
from buddysim.base.textfile import csv_rows, read_text

SHIPPED = resources.files("buddysim.gpu_codecs") / "data" / "times.csv"
#: Direct simulations of the launches that searches selected; nothing is interpolated from them.
CHECKS = resources.files("buddysim.gpu_codecs") / "data" / "checks.csv"
MAX_FILE_BYTES = 2**20
HEAD = (
    "Kernels of codecs on simulated GPUs, written by tools/measure_codecs.py. Times are picoseconds: encode_ps of the "
    "passes over the data, sums_ps of the sums between them, decode_ps of decoding. origin: simulated, a replay of the "
    "captured kernels; extrapolated, from the two largest sizes (buddysim/gpu_codecs/times.py)."
)


@dataclass(frozen=True, order=True)
class CodecSample:
    """Times of a codec for one tensor and launch.

    Attributes
    ----------
    sparsity : fraction of zeros
    encode_ps, sums_ps, decode_ps : times of the encoding passes, of the prefix sums between them, of decoding
    origin : ``"simulated"``, ``"interpolated"`` or ``"extrapolated"``
    """

    machine: str
    codec: str
    layout: str
    grid: int
    block: int
    byte_count: int
    sparsity: float
    payload_bytes: int
    encode_ps: int
    sums_ps: int
    decode_ps: int
    origin: str = "simulated"

    @property
    def compress_ps(self) -> int:
        """Return the time of compression: encoding and prefix sums."""
        return self.encode_ps + self.sums_ps

    @property
    def total_ps(self) -> int:
        """Return the time of compression and decompression."""
        return self.compress_ps + self.decode_ps


NAMES = tuple(field.name for field in fields(CodecSample))


@within_budget
def read_samples(path: str | Path) -> list[CodecSample]:
    """Read the samples of a file."""
    rows = csv_rows(read_text(Path(path), "times of codecs", MAX_FILE_BYTES), str(path))
    next(rows)
    kinds = (str, str, str, int, int, int, float, int, int, int, int, str)
    return [CodecSample(*(kind(cell) for kind, cell in zip(kinds, cells, strict=True))) for _, cells in rows]


def write_samples(path: Path, samples: Iterable[CodecSample]) -> None:
    """Write samples, sorted."""
    write_text(path, f"# {HEAD}\n" + csv_text([NAMES, *map(astuple, sorted(samples))]))
