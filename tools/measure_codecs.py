"""Measures the codecs' kernels by capture and replay: buddysim/gpu_codecs/data/times.csv, which ships.

python tools/measure_codecs.py               measures what the file lacks, and adds it as it goes
python tools/measure_codecs.py --list        only names what is lacking

It may be interrupted: what is measured stays. Everything takes about an hour on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.gpu_codecs import BLOCKS, LAYOUTS, REGISTRY  # noqa: E402
from buddysim.gpu_codecs.gpu import Launch  # noqa: E402
from buddysim.gpu_codecs.measure import Experiment, measure  # noqa: E402
from buddysim.gpu_codecs.samples import Sample, read_samples, write_samples  # noqa: E402

FILE = ROOT / "buddysim" / "gpu_codecs" / "data" / "times.csv"
MACHINES = ("v100", "2080-ti")
MIB = 2**20
#: Spaced evenly in the logarithm, with those of the paper's Fig. 5 and 12 (10, 197, 199, 1024, 2024) among them.
GRIDS = (1, 2, 4, 6, 10, 16, 24, 40, 64, 80, 100, 136, 160, 197, 256, 320, 512, 768, 1024, 1448, 2024, 2896, 4096)
SPARSITIES = (0.5, 0.2, 0.8, 0.35, 0.65)
SIZE = 8 * MIB
#: Sizes that show how times grow, at some grids.
LARGER = (16 * MIB, 32 * MIB, 64 * MIB)
LARGER_GRIDS = (10, 64, 197, 512, 1024, 4096)
#: Points that no fit sees.
HELD_OUT = ((6 * MIB, 0.42), (12 * MIB, 0.58), (24 * MIB, 0.28), (48 * MIB, 0.73))
HELD_OUT_GRIDS = (197, 1024)


def experiments() -> Iterator[Experiment]:
    """All of them, the most telling first."""
    for codec in REGISTRY.names():
        for sparsity in SPARSITIES:
            for block in BLOCKS:
                for layout in LAYOUTS:
                    yield Experiment(codec, layout, SIZE, sparsity, tuple(Launch(grid, block) for grid in GRIDS))
            if sparsity == SPARSITIES[0]:
                yield from _larger(codec)
        for byte_count, sparsity in HELD_OUT:
            for layout in LAYOUTS:
                launches = tuple(Launch(grid, BLOCKS[0]) for grid in HELD_OUT_GRIDS)
                yield Experiment(codec, layout, byte_count, sparsity, launches)


def _larger(codec: str) -> Iterator[Experiment]:
    for byte_count in LARGER:
        for layout in LAYOUTS:
            launches = tuple(Launch(grid, BLOCKS[0]) for grid in LARGER_GRIDS)
            yield Experiment(codec, layout, byte_count, SPARSITIES[0], launches)


def lacking(experiment: Experiment, samples: Sequence[Sample]) -> Experiment | None:
    """What of an experiment is not there yet."""
    known = {(s.codec, s.layout, s.byte_count, s.sparsity, s.grid, s.block) for s in samples}
    one = (experiment.codec, experiment.layout, experiment.byte_count, experiment.sparsity)
    launches = tuple(launch for launch in experiment.launches if (*one, launch.grid, launch.block) not in known)
    return replace(experiment, launches=launches) if launches else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, and writes after each experiment."""
    parser = argparse.ArgumentParser(prog="measure_codecs.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="measure nothing, name what is lacking")
    parser.add_argument("-o", "--output", type=Path, default=FILE, metavar="FILE", help="default: the one that ships")
    args = parser.parse_args(arguments)
    try:
        samples = read_samples(args.output) if args.output.exists() else []
        for experiment in experiments():
            rest = lacking(experiment, samples)
            if rest is None:
                continue
            start = time.perf_counter()
            if not args.list:
                samples += measure(rest, MACHINES)
                write_samples(args.output, samples)
            print(
                f"{rest.codec} {rest.layout} {rest.byte_count // MIB} MiB, {rest.sparsity:.0%} zeros, "
                f"{len(rest.launches)} launches{'' if args.list else f': {time.perf_counter() - start:.0f} s'}",
                flush=True,
            )
    except (BuddysimError, OSError) as error:
        print(f"measure_codecs.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
