"""Results of each engine at its model version: ``python -m tests.sweep.golden`` rewrites golden.json.

They show whether results changed since the version was raised, not whether they are right.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from buddysim.analyses import REGISTRY as ANALYSES
from buddysim.machine import Machine
from buddysim.replay import simulate as replay
from buddysim.replay.schemes import REGISTRY as REPLAY_SCHEMES
from buddysim.sweep.engines import NAMES, find
from buddysim.synthetic import make_trace
from buddysim.trace import TraceWriter
from buddysim.trace.format import REPLAY_LABEL
from buddysim.training import simulate as train
from buddysim.training.schemes import REGISTRY as TRAINING_SCHEMES
from tests.replay.events import BASE, provenance
from tests.replay.test_lazy_allocations import write_lazy_ranges

FILE = Path(__file__).with_name("golden.json")
TRACES = Path(__file__).parents[2] / "traces"
#: Traces of analyses that replay a whole trace, some of them several times.
SHORTER = {"metadata": "attention", "accesses": "paged-decode"}
#: Parts of a result that may differ from run to run, or from installation to installation.
VOLATILE = ("provenance",)


def digest(result: dict[str, Any]) -> str:
    """Return the hash of a result without its date and its computer."""
    stable = {key: value for key, value in result.items() if key not in VOLATILE}
    return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:20]


def replays() -> Iterator[tuple[str, str]]:
    """Yield every scheme on a real trace and on synthetic ones with misses, other machines, and further parameters."""
    lud = TRACES / "lud256.bin"
    for scheme in REPLAY_SCHEMES.names():
        yield f"lud256 {scheme}", digest(replay(lud, scheme=scheme).to_dict())
    for machine in ("v100", "a100-40", "qv100-accelsim"):
        yield f"backprop16k {machine}", digest(replay(TRACES / "backprop16k.bin", machine).to_dict())
    options: list[dict[str, Any]] = [
        {"threshold": 0.01},
        {"compute_gap_scale": 3},
        {"queueing": True},
        {"kernels": slice(3, 9)},
        {"profile_until_launch": 2},
        {"sensitivity": "all"},
    ]
    for option in options:
        (name,) = option
        yield f"lud256 {name}", digest(replay(lud, **option).to_dict())
    for compressor in ("bpc", "zvc"):  # of real contents
        result = replay(TRACES / "jacobi2d.bin", compressor=compressor, kernels=slice(0, 2))
        yield f"jacobi2d {compressor}", digest(result.to_dict())
    small = Machine.load("p100-nvlink2").with_overrides({"l2.size": "512 KiB"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.bin"
        make_trace("stream", path, {"footprint": "1 MiB", "op": "copy", "laps": "3", "sizes": "32 B:3, 128 B:1"})
        for scheme in REPLAY_SCHEMES.names():
            yield f"stream {scheme}", digest(replay(path, small, scheme).to_dict())
        yield "stream seed", digest(replay(path, small, seed=5).to_dict())
        roomy = Machine.load("p100-nvlink2").with_overrides({"dram.capacity": "64 GiB"})
        lazy = write_lazy_ranges(Path(folder) / "lazy.bin", 20 << 30)  # sizes that are not counted singly
        yield "20 GiB synthetic", digest(replay(lazy, roomy, "buddy").to_dict())


def trainings() -> Iterator[tuple[str, str]]:
    """Yield every scheme on a network, other networks, and further parameters."""
    for scheme in (name for name in TRAINING_SCHEMES.names() if name != "plan"):  # which needs a file
        ratio = {"buddy_ratio": 1.5} if scheme.startswith("buddy-scaled") else {}
        yield f"alexnet {scheme}", digest(train("alexnet", 64, scheme=scheme, **ratio).to_dict())
    for network in ("vgg16", "googlenet", "resnet50"):
        yield network, digest(train(network, 32).to_dict())
    options: list[dict[str, Any]] = [
        {"link": "pcie4"},
        {"prefetch": "on-demand"},
        {"conv_library": "cudnn5"},
        {"pool_policy": "first-fit"},
        {"memory_bytes": 2**31},
    ]
    for option in options:
        (name,) = option
        yield f"alexnet {name}", digest(train("alexnet", 128, **option).to_dict())
    yield "alexnet precision", digest(train("alexnet", 128, "h100-sxm", precision="bf16").to_dict())
    yield "alexnet density", digest(train("alexnet", 64, scheme="cdma-zv", synthetic_density=0.3).to_dict())


def analyses() -> Iterator[tuple[str, str]]:
    """Yield every analysis of a real trace with values, and the analysis of sizes between launches."""
    engine = find("analysis")
    for name in sorted(set(ANALYSES.names()) - {"launches"}):
        trace = SHORTER.get(name, "jacobi2d")
        settings = {"analysis": name, "trace": str(TRACES / f"{trace}.bin"), "analysis_metadata_sizes": "1024,4096"}
        yield f"{trace} {name}", digest(engine.simulate(settings).to_dict())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.bin"
        write_sizes_between_launches(path)
        for threshold in (0.1, 0.3):
            settings = {"analysis": "launches", "trace": str(path), "threshold": threshold}
            yield f"sizes between launches {threshold:g}", digest(engine.simulate(settings).to_dict())


def write_sizes_between_launches(path: Path) -> None:
    """Write a trace of three allocations, two of which have sampled sizes after each of five launches."""
    chance = np.random.default_rng(1)
    with TraceWriter(path, provenance()) as writer:
        allocations = [writer.add_allocation(name, BASE + (n << 24), 256 * 128) for n, name in enumerate("abc")]
        for point in range(6):
            snapshot = writer.add_snapshot(point, f"{REPLAY_LABEL} {point}")
            for allocation in allocations[: 3 if point == 0 else 2]:
                writer.add_size_map(snapshot, allocation, chance.integers(0, 8, 256, dtype=np.uint8))


CASES = {"analysis": analyses, "replay": replays, "training": trainings}


def golden() -> dict[str, Any]:
    """Return the content of golden.json for these sources."""
    return {name: {"model_version": find(name).model_version(), "results": dict(CASES[name]())} for name in NAMES}


if __name__ == "__main__":
    FILE.write_text(json.dumps(golden(), indent=1) + "\n")
