"""A valid file of each type that commands read."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from buddysim.cli import main
from buddysim.formats.activations import (
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    TrainingPoint,
    payload_sizes,
)
from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.cost.operators.rows import FILES
from tests.fuzz.graphs import small_graph
from tests.importers.opencl.captures import write_bundle
from tests.trace.builders import write_small
from tests.training.caching_allocator.recorded import FORWARD, RecordedAllocator

ROOT = Path(__file__).parents[2]
AGAINST = ROOT / "tests" / "training" / "against" / "data"
COSTS = ROOT / "buddysim" / "training" / "cost" / "data"
OPERATORS = COSTS / "operators"

Files = dict[str, bytes]


@functools.cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="buddysim-fuzz-"))


def printed(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(arguments) == 0
    return out.getvalue()


@functools.cache
def small_trace() -> bytes:
    """Return a trace with every kind of section."""
    return write_small(folder() / "t.bin", 4).read_bytes()


@functools.cache
def trace_path() -> str:
    small_trace()
    return str(folder() / "t.bin")


@functools.cache
def machine(name: str) -> dict[str, Any]:
    return tomllib.loads(printed("machines", name, "--toml"))


@functools.cache
def targets() -> dict[str, Any]:
    printed("profile", trace_path(), "-o", str(folder() / "targets.toml"))
    return tomllib.loads((folder() / "targets.toml").read_text())


@functools.cache
def profiler_trace() -> Any:
    """A few hundred events of PyTorch's profiler."""
    content = json.loads(gzip.decompress((AGAINST / "llama_cpu.json.gz").read_bytes()))
    return {**content, "traceEvents": content["traceEvents"][:200]}


@functools.cache
def plan() -> dict[str, Any]:
    path = folder() / "plan.toml"
    printed("train", "alexnet", "--batch", "4", "--scheme", "gist-fp8", "--save-plan", str(path))
    content = tomllib.loads(path.read_text())
    for layer in content["layer"][1:4:2]:
        layer |= {"feature_map": "offload", "offload": {"offload_ps": 5, "prefetch_launch": 3}}
        layer.pop("encoding", None)
    return content


PLAN: dict[str, Any] = {
    "recorded": True,
    "blocks": [
        {"range": "0", "saved": "recompute", "together": 2, "stored": ["mm"], "every_second_product": True},
        {"range": "0", "saved": "offload", "modules": ["mlp"]},
        {"range": "0", "saved": "compress", "modules": ["self_attn"]},
    ],
    "copies": {"streams": 1, "stash": 2, "min_bytes": 0, "blocking": False},
    "compression": {"bits": 10},
    "optimizer": {"device": "nvme", "order": "deepspeed", "keep_gradients": False, "delayed": True},
    "weights": {"device": "nvme", "ahead": 2},
}


@functools.cache
def network() -> dict[str, Any]:
    return tomllib.loads(printed("networks", "show", "alexnet", "--toml"))


@functools.cache
def result(command: str) -> dict[str, Any]:
    train = ("train", "alexnet", "--batch", "4", "--scheme", "baseline-p,vdnn-dyn")
    what = ("run", trace_path(), "--scheme", "ideal,buddy") if command == "run" else train
    content: dict[str, Any] = json.loads(printed(*what, "--json", "-"))
    return content


@functools.cache
def timeline() -> dict[str, Any]:
    path = folder() / "timeline.json"
    printed("train", "alexnet", "--batch", "4", "--scheme", "baseline-p,vdnn-dyn", "--timeline", str(path))
    content: dict[str, Any] = json.loads(path.read_text())
    return content


@functools.cache
def stored() -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a stored result: its key, its row, the rest."""
    trace_path()
    (folder() / "study.toml").write_text('[set]\ntrace = "t.bin"\nscheme = "ideal"\n')
    printed("sweep", str(folder() / "study.toml"), "--store", str(folder() / "store"), "--workers", "1")
    path = next(path for path in sorted((folder() / "store").rglob("*")) if path.is_file() and len(path.stem) > 30)
    row, rest = zstandard.ZstdDecompressor().decompress(path.read_bytes().partition(b"\n")[2]).split(b"\n")[:2]
    return str(path.relative_to(folder() / "store")), json.loads(row), json.loads(rest)


def store_head() -> bytes:
    return (folder() / "store" / "STORE").read_bytes()


@functools.cache
def maps() -> bytes:
    values = np.maximum(np.random.default_rng(0).normal(size=(2, 8, 4, 4)), 0).astype(np.float32)
    from buddysim.compress.tensors import tensor_ratios

    sizes = payload_sizes(tensor_ratios(values))
    infos = (FeatureMapInfo("input", "input", (1, 4, 4)), FeatureMapInfo("relu1", "relu", (8, 4, 4), "conv", 1, 0.0))
    path = folder() / "good.maps"
    with ActivationsWriter(path, {"tool": "fuzz"}, infos) as writer:
        seen = FeatureMapStatistics(1, values.size, int(np.count_nonzero(values)), sizes, values.size)
        writer.add_point(TrainingPoint(0, 0.0, 2, (seen,), loss=2.5, accuracy=0.5, learning_rate=0.1))
        writer.add_values(0, 1, values)
        writer.add_point(TrainingPoint(10, 0.5, 2, (seen,), loss=1.5))
    return path.read_bytes()


@functools.cache
def bundle() -> Files:
    path = write_bundle(folder() / "bundle")
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@functools.cache
def spool() -> Files:
    from buddysim.capture.torch.spool import Progress, Spool, SpooledSnapshot, storage_contents

    path = folder() / "spool"
    path.mkdir()
    made = Spool(path)
    graph = small_graph()
    made.keep_graph(graph)
    storages = tuple(
        storage_contents(each.name, each.role, np.zeros(each.bytes, np.uint8), 8192)
        for each in graph.storages[:12]
        if 0 < each.bytes < 1 << 20
    )
    made.keep(SpooledSnapshot(0, 2.5, storages))
    made.write_progress(Progress(1))
    return {file.name: file.read_bytes() for file in path.iterdir()}


@functools.cache
def timings() -> str:
    lines = (COSTS / "calibration" / "titan-x-cudnn5.csv").read_text().splitlines()
    return "\n".join(lines[:60])


DENSITIES = {
    "feature_maps": [
        {"kind": "relu", "depth": 0.0, "density": 0.5},
        {"kind": "relu", "depth": 1.0, "density": 0.25},
        {"kind": "fc-relu", "ratio": 2.5},
        {"kind": "pool", "density": 0.5},
        {"layer": "relu*", "density": 0.75},
    ]
}
DENSITIES_CSV = (
    "layer,kind,depth,density,ratio\n,relu,0,0.5,\n,relu,1,0.25,\n,fc-relu,,,2.5\n,pool,,0.5,\nrelu*,,,0.75,\n"
)
JOBS = {
    "system": "local", "jobs": 2, "workers": 1, "memory": "4 GB", "walltime": "00:10:00", "queue": "q", "account": "a",
    "prologue": ["module load x"], "directives": ["--exclusive"], "interface": "lo", "log_folder": "logs",
}  # fmt: skip


def study() -> dict[str, Any]:
    return {
        "title": "s",
        "set": {"trace": trace_path(), "machine": "p100-nvlink2"},
        "grid": {"link.bandwidth": ["25 GB/s", "150 GB/s"], "scheme": ["buddy", "pinned-host"]},
        "baseline": {"link.bandwidth": "150 GB/s"},
    }


@functools.cache
def operator_graph() -> Any:
    """Return the operator graph of a small network with layers."""
    return json.loads((ROOT / "traces" / "fashion-cnn.graph.json").read_text())


CONFIGS = (
    *("LlamaForCausalLM", "Qwen3MoeForCausalLM", "GPT2LMHeadModel", "T5ForConditionalGeneration", "MptForCausalLM"),
    *("ViTForImageClassification", "Gemma2ForCausalLM", "BertForMaskedLM", "GPTNeoXForCausalLM", "OPTForCausalLM"),
)
"""Classes of which a configuration is changed."""


@functools.cache
def config(name: str) -> dict[str, Any]:
    """Return the configuration of a tiny model."""
    configs = json.loads((ROOT / "tests" / "training" / "transformers" / "configs.json").read_text())
    return {"architectures": [name], **configs[name]}


@functools.cache
def snapshot() -> dict[str, Any]:
    """Return a memory snapshot with some events of each kind."""
    recorded = RecordedAllocator(AllocatorSettings.parse("max_split_size_mb:32"), 200 << 20)
    addresses = [recorded.serve(number << 20, number % 2 * 5, FORWARD) for number in range(1, 6)]
    for number, address in enumerate(addresses[::2]):
        assert address is not None
        recorded.give(address, complete=number != 1)
    recorded.serve(300 << 20)
    recorded.release()
    return recorded.snapshot(2)


CURVES = """gpu,source,benchmark,x_unit,x,y_unit,y,clock_mhz
v100,own,stream_init,occupancy_percent,3,GB/s,153,1380
v100,own,stream_init,occupancy_percent,25,GB/s,640,1380
v100,own,stream_triad,occupancy_percent,25,GB/s,700,1380
v100,own,pointer_chase_latency,kiB,16,cycle,28,1380
v100,own,pointer_chase_latency,kiB,20000,cycle,430,1380
"""


@functools.cache
def kernels(name: str) -> str:
    """Return the first rows of a bundled table about kernels."""
    text = (ROOT / "buddysim" / "validation" / "data" / name).read_text()
    return "\n".join([line for line in text.splitlines() if not line.startswith("#")][:40]) + "\n"


@functools.cache
def calibration() -> str:
    """Return a bundled calibration."""
    return (COSTS / "fitted" / "titan-x-cudnn5.toml").read_text()


@functools.cache
def operator_constants() -> dict[str, Any]:
    """Return a GPU's constants of every kind of operator."""
    content = tomllib.loads((OPERATORS / "a100-80.toml").read_text())
    other = tomllib.loads((OPERATORS / "h200.toml").read_text())
    rates = {"attention_backward": 0.5, "launch_us": {"forward": 9.5, "backward": 7.0}}
    return {**rates, **content, "experts": other["experts"]}


@functools.cache
def operator_rows() -> tuple[str, ...]:
    """Return rows of measured operators of each kind."""
    head = {"launches": "gpu,launcher,operators,us\nmine,forward,200,9.5\nmine,backward,200,7\n"}
    for file in FILES:
        lines = [line for line in (OPERATORS / f"{file}.csv").read_text().splitlines() if line[0] != "#"]
        gpu = lines[-1].partition(",")[0]
        head[file] = "\n".join([lines[0], *[line for line in lines if line.startswith(f"{gpu},")][:12]])
    return tuple(f"{text}\n" for text in head.values())
