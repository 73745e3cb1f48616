"""Simulates the codecs' kernels by capture and replay: writes buddysim/gpu_codecs/data/times.csv of the package.

python tools/measure_codecs.py --key         simulates the most important missing points
python tools/measure_codecs.py               simulates all missing points
python tools/measure_codecs.py --list        lists the missing points
python tools/measure_codecs.py --anew FILE -o NEW    simulates the points of FILE again, for a changed machine
python tools/measure_codecs.py --checks      simulates the results of the CSWAP figures' searches: data/checks.csv

It may be interrupted: simulated points remain. Every run writes the file's derived rows again. A point takes about
half a second on each machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.gpu_codecs import BLOCKS, LAYOUTS, REGISTRY  # noqa: E402
from buddysim.gpu_codecs.derived_samples import with_derived_samples  # noqa: E402
from buddysim.gpu_codecs.opencl_device import LaunchShape  # noqa: E402
from buddysim.gpu_codecs.samples import CodecSample, read_samples, write_samples  # noqa: E402
from buddysim.gpu_codecs.simulate_codec import CodecExperiment, simulate_codec  # noqa: E402
from buddysim.papers.cswap.codec_models import CODEC, searches  # noqa: E402

FILE, CHECKS = (ROOT / "buddysim" / "gpu_codecs" / "data" / name for name in ("times.csv", "checks.csv"))
MACHINES = ("v100", "rtx-2080-ti")
MIB = 2**20
#: Grids, evenly spaced in the logarithm, with those of the paper's Fig. 5 and 12 (10, 197, 199, 1024, 2024).
GRIDS = (1, 2, 4, 6, 10, 16, 24, 40, 64, 80, 100, 136, 160, 197, 256, 320, 512, 768, 1024, 1448, 2024, 2896, 4096)
KEY_GRIDS = (1, 4, 10, 40, 80, 197, 512, 1024, 2024, 4096)
FEW_GRIDS = (10, 197, 1024, 4096)
SPARSITIES = (0.5, 0.2, 0.8, 0.35, 0.65)
KEY_SPARSITIES = SPARSITIES[:3]
SIZE = 8 * MIB
#: Sizes for the growth of times, at some grids.
LARGER = (16 * MIB, 32 * MIB, 64 * MIB)
LARGER_GRIDS = (10, 64, 197, 512, 1024, 4096)
#: Points that are held out of every fit.
HELD_OUT = ((6 * MIB, 0.42), (12 * MIB, 0.58), (24 * MIB, 0.28), (48 * MIB, 0.73))
HELD_OUT_GRIDS = (197, 1024)
#: Sizes between two powers of two, at which work-items have runs of equal length.
BETWEEN = (10 * MIB, 14 * MIB)
#: Numbers of independent LZ4 blocks: one for each work-group, and several as a check.
BLOCK_GRIDS = (1, 8, 64, 256)


def key_experiments() -> Iterator[CodecExperiment]:
    """Yield the points from which the others can be derived, codec by codec, with the slow ones of LZ4 last."""
    for codec in sorted(REGISTRY.names(), key=lambda name: "chunked" not in REGISTRY.find(name).LAYOUTS):
        yield from _key_blocks(codec) if "chunked" not in REGISTRY.find(codec).LAYOUTS else _key_streams(codec)


def _key_streams(codec: str) -> Iterator[CodecExperiment]:
    for layout in REGISTRY.find(codec).LAYOUTS:
        first, second = (partial(_launches, block=block) for block in BLOCKS)
        yield CodecExperiment(codec, layout, SIZE, KEY_SPARSITIES[0], (*first(KEY_GRIDS), *second(FEW_GRIDS)))
        for sparsity in KEY_SPARSITIES[1:]:
            yield CodecExperiment(codec, layout, SIZE, sparsity, first(FEW_GRIDS))
        yield CodecExperiment(codec, layout, LARGER[0], KEY_SPARSITIES[0], first(HELD_OUT_GRIDS))
        yield CodecExperiment(codec, layout, LARGER[1], KEY_SPARSITIES[0], first(FEW_GRIDS))
        yield CodecExperiment(codec, layout, *HELD_OUT[1], first(HELD_OUT_GRIDS))
        if layout == "chunked" and hasattr(REGISTRY.find(codec), "chunks"):
            for byte_count in BETWEEN:
                yield CodecExperiment(codec, layout, byte_count, KEY_SPARSITIES[0], first(HELD_OUT_GRIDS))


def _key_blocks(codec: str) -> Iterator[CodecExperiment]:
    few, size = BLOCK_GRIDS[1], REGISTRY.find(codec).STORED_AS["window"]
    for layout in REGISTRY.find(codec).LAYOUTS:
        for sparsity in KEY_SPARSITIES:
            yield CodecExperiment(
                codec, layout, few * size, sparsity, tuple(LaunchShape(few, block) for block in BLOCKS)
            )
        for grid in BLOCK_GRIDS[:-1]:
            yield CodecExperiment(codec, layout, grid * size, KEY_SPARSITIES[0], _launches((grid,)))
        yield CodecExperiment(codec, layout, 4 * few * size, KEY_SPARSITIES[0], _launches((few,)))
        yield CodecExperiment(codec, layout, BLOCK_GRIDS[-1] * size, KEY_SPARSITIES[0], _launches(BLOCK_GRIDS[-1:]))


def experiments() -> Iterator[CodecExperiment]:
    """Yield all experiments, the most important first."""
    yield from key_experiments()
    for codec in REGISTRY.names():
        layouts = REGISTRY.find(codec).LAYOUTS
        if "chunked" not in layouts:
            continue
        for sparsity in SPARSITIES:
            for block in BLOCKS:
                for layout in layouts:
                    yield CodecExperiment(codec, layout, SIZE, sparsity, _launches(GRIDS, block))
            if sparsity == SPARSITIES[0]:
                for byte_count in LARGER:
                    for layout in layouts:
                        yield CodecExperiment(codec, layout, byte_count, sparsity, _launches(LARGER_GRIDS))
        for byte_count, sparsity in HELD_OUT:
            for layout in layouts:
                yield CodecExperiment(codec, layout, byte_count, sparsity, _launches(HELD_OUT_GRIDS))


def _launches(grids: Sequence[int], block: int = BLOCKS[0]) -> tuple[LaunchShape, ...]:
    return tuple(LaunchShape(grid, block) for grid in grids)


def check_experiments() -> Iterator[CodecExperiment]:
    """Yield the launches of the searches with the base tensor, and the best launches also with a larger tensor."""
    for layout in LAYOUTS:
        by_search = searches(layout)
        every = {point.launch for search in by_search.values() for point in search}
        yield CodecExperiment(CODEC, layout, SIZE, SPARSITIES[0], tuple(sorted(every, key=str)))
        best = {point.launch for point in by_search["BO"]}
        yield CodecExperiment(CODEC, layout, LARGER[1], SPARSITIES[0], tuple(sorted(best, key=str)))


def experiments_of(samples: Sequence[CodecSample]) -> Iterator[CodecExperiment]:
    """Yield the experiments whose launches were simulated, tensor by tensor."""
    launches: dict[tuple[str, str, int, float], set[LaunchShape]] = {}
    for one in samples:
        if one.origin == "simulated":
            tensor = (one.codec, one.layout, one.byte_count, one.sparsity)
            launches.setdefault(tensor, set()).add(LaunchShape(one.grid, one.block))
    for tensor, of_tensor in sorted(launches.items()):
        yield CodecExperiment(*tensor, tuple(sorted(of_tensor, key=str)))


def missing_part(experiment: CodecExperiment, samples: Sequence[CodecSample]) -> CodecExperiment | None:
    """Return the part of an experiment that is not simulated yet; None if it is complete."""
    simulated = [sample for sample in samples if sample.origin == "simulated"]
    known = {(s.codec, s.layout, s.byte_count, s.sparsity, s.grid, s.block) for s in simulated}
    one = (experiment.codec, experiment.layout, experiment.byte_count, experiment.sparsity)
    launches = tuple(launch for launch in experiment.launches if (*one, launch.grid, launch.block) not in known)
    return replace(experiment, launches=launches) if launches else None


ALL_LAUNCHES = tuple(launch for block in BLOCKS for launch in _launches(GRIDS, block))


def _measure(
    path: Path, requested: Iterable[CodecExperiment], only_list: bool, known: Sequence[CodecSample] | None = None
) -> None:
    """Simulate the experiments that a file lacks; `known` samples of another file give no derived samples."""
    samples = read_samples(path) if path.exists() else []

    def write() -> None:
        rows = with_derived_samples(samples, ALL_LAUNCHES, _launches(FEW_GRIDS)) if known is None else samples
        write_samples(path, rows)

    if not only_list:
        write()
    for experiment in requested:
        rest = missing_part(experiment, [*samples, *(known or ())])
        if rest is None:
            continue
        start = time.perf_counter()
        if not only_list:
            samples += simulate_codec(rest, MACHINES)
            write()
        print(
            f"{rest.codec} {rest.layout} {rest.byte_count // MIB} MiB, {rest.sparsity:.0%} zeros, "
            f"{len(rest.launches)} launches{'' if only_list else f': {time.perf_counter() - start:.0f} s'}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiments, and write the file after each."""
    parser = argparse.ArgumentParser(prog="measure_codecs.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="measure nothing, list the missing points")
    parser.add_argument("--key", action="store_true", help="measure the most important points alone")
    parser.add_argument("--anew", type=Path, metavar="FILE", help="measure the points of FILE again")
    parser.add_argument("-o", "--output", type=Path, default=FILE, metavar="FILE", help="default: the bundled file")
    parser.add_argument("--checks", action="store_true", help="measure the results of searches, into checks.csv")
    args = parser.parse_args(arguments)
    try:
        if args.checks:
            _measure(CHECKS, check_experiments(), args.list, known=read_samples(FILE))
        elif args.anew:
            if args.anew.resolve() == args.output.resolve():
                raise BuddysimError(f"--anew {args.anew}: expected another file after -o")
            _measure(args.output, experiments_of(read_samples(args.anew)), args.list)
        else:
            _measure(args.output, key_experiments() if args.key else experiments(), args.list)
    except (BuddysimError, OSError) as error:
        print(f"measure_codecs.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
