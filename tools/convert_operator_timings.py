"""Converts published timings of operators to the rows that ship: one file for each kind, thinned by shape.

python tools/convert_operator_timings.py FOLDER

FOLDER holds the tables of aiconfigurator (Apache-2.0), NeuSight (MIT), vidur (MIT), Liger (BSD-2) and LLMCompass
(BSD-3), as `../shared/data/llm` has them. The same shapes are kept on every GPU, so that one can be left out. Rows of
two frameworks become their geometric mean, but for those that the L2 cache shortens. The result is the same on every
machine.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, fsum, log
from pathlib import Path
from statistics import median

from buddysim.base.inputs import open_input
from buddysim.base.output import write_text
from buddysim.base.parsers.streams import UnpackedFile
from buddysim.base.textfile import csv_tables, decoded, parse_json
from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration.steps import FLASH_LOSS, NO_LOSS, UNTIMED_LOSS
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.rows import ATTENTION, ENGINES, EXPERTS, ITERATIONS, MEMORY, PRODUCTS
from buddysim.training.cost.operators.split import number_of

DATA = Path(__file__).parents[1] / "buddysim" / "training" / "cost" / "data" / "operators"

MACHINES = {
    "A100-SXM4": "a100-80",
    "H100-SXM5-80GB": "h100-sxm",
    "H200-SXM": "h200",
    "B200-SXM": "b200",
    "L40S": "l40s",
    "A100-PCIe-40GB": "a100-40",
    "A100-PCIe-80GB": "a100-80",
    "A100-SXM4-80GB": "a100-80",
    "A40": "a40",
    "L4": "l4",
    "T4": "t4",
    "P100-PCIe-16GB": "p100",
    "V100-PCIe-32GB": "v100",
    "NVIDIA A100-SXM4-80GB": "a100-80",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
}
"""Machine of each GPU of the tables. NeuSight's PCIe cards count as the SXM ones; its P4 is no machine here."""

SOURCES = {
    "a": "ai-dynamo/aiconfigurator systems/data (NVIDIA), Apache-2.0: replays of CUDA graphs, clocks locked",
    "n": "sitar-lab/NeuSight scripts/asplos/data/dataset, MIT: eager calls between events: the host is in short ones",
    "v": "microsoft/vidur data/profiling/compute, MIT: kernels of vLLM",
    "l": "linkedin/Liger-Kernel benchmark/data/all_benchmark_data.csv, BSD-2: rows of PyTorch's operators",
    "c": "PrincetonUniversity/LLMCompass ae/figure5, BSD-3",
    "i": "mosaicml/llm-foundry, pytorch/torchtune, pytorch/torchtitan, Lightning-AI/litgpt, karpathy/nanoGPT, "
    "sitar-lab/NeuSight, NVIDIA/DeepLearningExamples: READMEs and tables of benchmarks, Apache-2.0, BSD-3, MIT",
    "e": "IST-DASLab/llmq: tables of benchmarks, Apache-2.0",
}

THINNING = {"tensor-core": 5, "attention": 9, "experts": 7, "product": 3, "memory": 4, "small": 8, "vidur": 4}
"""One shape in this many is kept, by table."""

MIN_REPEATED = 20
"""Least shapes of which a spread is told."""

PASSES = {"add": 3, "mul": 3, "div": 3, "pow": 3}
"""Tensors that an element-wise operator reads and writes; two where it is not named."""


def rows_of(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table, compressed or not."""
    path = folder / name
    with UnpackedFile(open_input(path, "table"), str(path), "xz" if path.suffix == ".xz" else "") as file:
        yield from csv_tables(decoded(file.read(), str(path)), str(path))


def in_sample(table: str, *shape: object) -> bool:
    """Whether a shape is kept: by a hash of its own, so that the split does not depend on it."""
    return number_of("thinned", *shape) % THINNING[table] == 0


def means(measured: Iterable[tuple[tuple[object, ...], float]]) -> list[tuple[object, ...]]:
    """Return each key with the geometric mean of its times in microseconds, sorted."""
    logarithms: dict[tuple[object, ...], list[float]] = {}
    for key, ms in measured:
        if ms > 0:
            logarithms.setdefault(key, []).append(log(ms * 1e3))
    averaged = ((*key, float(f"{exp(fsum(values) / len(values)):.4g}")) for key, values in logarithms.items())
    return sorted(averaged, key=lambda row: tuple((isinstance(cell, str), cell) for cell in row))


def spreads(measured: Iterable[tuple[tuple[object, ...], float]]) -> Iterator[tuple[object, object, list[float]]]:
    """Yield GPU, name, and by how much times of one shape differ, in order, where rows were measured twice."""
    times: dict[tuple[object, ...], list[float]] = {}
    for key, ms in measured:
        times.setdefault(key, []).append(ms)
    apart: dict[tuple[object, object], list[float]] = {}
    for key, some in times.items():
        if len(some) > 1 and min(some) > 0:
            apart.setdefault(key[:2], []).append(max(some) / min(some) - 1)
    for (gpu, name), values in apart.items():
        if len(values) >= MIN_REPEATED:
            yield gpu, name, sorted(values)


def products(folder: Path) -> Iterator[tuple[tuple[object, ...], float]]:
    """Yield products: GPU, number format, batch, m, n, k, source."""
    caches = {name: GpuFigures.of(TrainingMachine.load(name)).l2_bytes for name in set(MACHINES.values())}
    for row in rows_of(folder, "operator_timings_gemm_bf16.csv.xz"):
        shape = (1, int(row["m_tokens"]), int(row["n_out"]), int(row["k_in"]))
        machine = MACHINES[row["gpu"]]
        if row["dtype"] == "bf16" and in_sample("tensor-core", *shape) and not fills_cache(row, caches[machine]):
            yield (machine, "bf16", *shape, "a"), float(row["ms"])
    for row in rows_of(folder, "operator_timings_neusight_fp32.csv.xz"):
        if row["op"] in ("linear", "bmm") and row["gpu"] in MACHINES:
            shape = tuple(int(row[name]) for name in ("batch", "m", "k_out", "n_inner"))
            if in_sample("product", *shape):
                yield (MACHINES[row["gpu"]], "fp32", *shape, "n"), float(row["ms"])
    for row in rows_of(folder, "operator_timings_vidur_fp16.csv.xz"):
        extents = _projection(row)
        if extents is not None and in_sample("vidur", *extents):
            yield (MACHINES[row["gpu"]], "fp16", *extents, "v"), float(row["ms"])
    for row in rows_of(folder, "operator_timings_llmcompass_a100.csv"):
        if row["op"].startswith("product"):
            m, k, n = (int(float(row[name])) for name in ("a", "b", "c"))
            yield ("a100-80", "fp16", 1, m, n, k, "c"), float(row["value"])


def fills_cache(row: Mapping[str, str], l2_bytes: float) -> bool:
    """Whether sets of weights that just fill the L2 cache, and are found there in part, shorten a row of products.

    TensorRT-LLM's rows use so many sets of weights in turn as the cache holds, at most five
    (`collector/trtllm/collect_gemm.py`); vLLM's use six.
    """
    weights = 2 * int(row["n_out"]) * int(row["k_in"])
    return row["framework"].startswith("trtllm") and l2_bytes / 5 < weights <= 1.5 * l2_bytes


def _projection(row: dict[str, str]) -> tuple[int, int, int, int] | None:
    """Extents of a product of vidur's: what one of its GPUs has."""
    tokens, hidden, inner = int(row["tokens"]), int(row["hidden"]), int(row["inner"])
    heads, kv_heads, ranks = int(row["heads"]), int(row["kv_heads"]), int(row["tensor_parallel"])
    size = hidden // heads
    own, own_kv = heads // ranks, max(1, kv_heads // ranks)
    extents = {
        "attn_pre_proj": ((own + 2 * own_kv) * size, hidden),
        "attn_post_proj": (hidden, own * size),
        "mlp_up_proj": (2 * inner // ranks, hidden),
        "mlp_down_proj": (hidden, inner // ranks),
    }.get(row["op"])
    return None if extents is None else (1, tokens, *extents)


def attention(folder: Path) -> Iterator[tuple[tuple[object, ...], float]]:
    """Yield attention kernels: GPU, kernel, batch, tokens, heads, heads of keys, size of head, window."""
    names = {"vllm_flash_attn": "flash2", "vllm_flash_attn_fa2": "flash2", "vllm_flash_attn_fa3": "flash3",
             "vllm_flashinfer_trtllmprefill": "trtllm"}  # fmt: skip
    for row in rows_of(folder, "operator_timings_attention_forward.csv.xz"):
        shape = tuple(int(row[name]) for name in ("batch", "tokens", "heads", "kv_heads", "head_dim", "window"))
        if row["kernel"] in names and in_sample("attention", *shape):
            yield (MACHINES[row["gpu"]], names[row["kernel"]], *shape), float(row["ms_forward"])


def memory(folder: Path) -> Iterator[tuple[tuple[object, ...], float]]:
    """Yield kernels that memory bounds: GPU, kind, bytes, elements of a row, source."""
    kinds = {"softmax": "softmax", "ln": "norm"}
    for table, name in (("memory", "fp32"), ("small", "small_fp32")):
        for row in rows_of(folder, f"operator_timings_neusight_{name}.csv.xz"):
            operator = row["op"]
            if operator in ("linear", "bmm") or row["gpu"] not in MACHINES:
                continue
            rows, columns = int(row["rows"]), int(row["columns"])
            if in_sample(table, operator, rows, columns):
                moved = 4 * rows * columns * PASSES.get(operator, 2)
                yield (MACHINES[row["gpu"]], kinds.get(operator, "elementwise"), moved, columns, "n"), float(row["ms"])
    for row in rows_of(folder, "operator_timings_vidur_fp16.csv.xz"):
        if row["op"] == "add" and in_sample("vidur", row["op"], row["tokens"], row["hidden"]):
            moved = 3 * 2 * int(row["tokens"]) * int(row["hidden"])
            yield (MACHINES[row["gpu"]], "elementwise", moved, int(row["hidden"]), "v"), float(row["ms"])
    yield from liger(folder)


def liger(folder: Path) -> Iterator[tuple[tuple[object, ...], float]]:
    """Yield PyTorch's own kernels of Liger's benchmarks; backward is both passes without the forward one."""
    times: dict[tuple[str, str, int], dict[str, float]] = {}
    settings: dict[tuple[str, str, int], dict[str, object]] = {}
    for row in rows_of(folder, "operator_timings_liger_bf16.csv"):
        if row["gpu"] in MACHINES and row["metric"] == "speed" and row["provider"] in ("huggingface", "torch"):
            key = (MACHINES[row["gpu"]], row["kernel"], int(float(row["x_value"])))
            times.setdefault(key, {})[row["mode"]] = float(row["median"])
            settings[key] = parse_json(row["config"], "operator_timings_liger_bf16.csv")
    for (gpu, kernel, extent), by_mode in times.items():
        forward = by_mode["forward"]
        backward = by_mode.get("backward", by_mode.get("full", forward) - forward)
        if kernel == "layer_norm":
            tensor = 4 * 4096 * extent
            yield (gpu, "norm", 2 * tensor, extent, "l"), forward
            yield (gpu, "norm_backward", 3 * tensor, extent, "l"), backward
        elif kernel == "relu_squared":  # a ReLU and a square, in bf16: a row is of one of these two kernels
            yield (gpu, "elementwise", 2 * 2 * 4096 * extent, extent, "l"), forward / 2
        elif kernel == "cross_entropy":
            tensor = 4 * 8 * 2048 * extent
            yield (gpu, "long_softmax" if extent > 8192 else "softmax", 2 * tensor, extent, "l"), forward
        elif kernel == "embedding":
            config = settings[gpu, kernel, extent]
            tensor = 4 * int(str(config["B"])) * int(str(config["T"])) * int(str(config["D"]))
            yield (gpu, "gather", 2 * tensor, int(str(config["D"])), "l"), forward


def experts(folder: Path) -> Iterator[tuple[tuple[object, ...], float]]:
    """Yield layers of experts: GPU, kernel, tokens, hidden, inner, experts a token, experts, GPUs of one group."""
    for row in rows_of(folder, "operator_timings_moe_forward.csv.xz"):
        names = ("tokens", "hidden", "expert_inner", "experts_per_token", "experts", "expert_parallel")
        shape = tuple(int(row[name]) for name in names)
        if row["distribution"] == "balanced" and in_sample("experts", *shape):
            kernel = next(name for name in ("trtllm", "cutlass", "triton") if name in row["kernel"])
            yield (MACHINES[row["gpu"]], kernel, *shape), float(row["ms"])


GPUS_OF_ITERATIONS = {
    "H100-SXM5-80GB": "h100-sxm",
    "A100-SXM4-40GB": "a100-40",
    "A100-SXM-40GB": "a100-40",
    "A100-SXM-80GB": "a100-80",
    "A100 (80 GB": "a100-80",
    "H100 96GB": "h100-96",
    "H100 80GB HBM3": "h100-sxm",
    "H100 (variant not stated)": "h100-sxm",
    "RTX 4090": "rtx-4090",
    "RTX 5060 Ti": "rtx-5060-ti",
    "A100-PCIE-40GB": "a100-40",
    "V100-PCIE-32GB": "v100",
    "P100-PCIE-16GB": "p100",
}
SHARDINGS = {"FSDP": "fsdp", "ZeRO-3": "fsdp", "DDP": "ddp", "none": "none"}
"""How GPUs share a step, by the beginning of what is stated."""

COMPILED = ("yes", "Thunder", "own C++/CUDA engine")
"""What is stated where kernels are joined."""

OWN_ENGINES = ("llmq", "llm.c")
"""Sources with an engine of their own: no operators of PyTorch."""


def iterations(folder: Path) -> Iterator[tuple[object, ...]]:
    """Yield whole iterations and networks that PyTorch ran, in the columns of `ITERATIONS`."""
    yield from _training_rows(folder, engines=False)
    outside = (DATA.parent / "iterations-outside.csv").read_text(encoding="utf-8")
    for number, row in enumerate(csv_tables(outside, "iterations-outside.csv")):
        model, _, tokens = row["network"].partition(":tokens=")
        if tokens:
            recipe = "fp32" if row["precision"] == "fp32" else f"amp-{row['precision']}"
            yield (
                row["by"], f"{row['by']}-{number:03}", row["machine"], model, recipe, "eager", "eager", "whole",
                int(tokens), int(row["batch"]), 1, "none", 1, "none", "step", f"{float(row['ms']):.5g}",
            )  # fmt: skip
    for number, row in enumerate(rows_of(folder, "networks_measured_fp32.csv")):
        gpu, model = _gpu_of_iteration(row["gpu"]), row["model"]
        if gpu is None or row["variant"] not in ("eager", "torch.compile (fusion)") or model.startswith("Switch"):
            continue
        for part in ("forward", "backward"):
            if row[f"{part}_ms"]:
                yield (
                    "neusight", f"neusight-{number:03}", gpu, "gpt3-xl" if "gpt3_xl" in model else model, "fp32",
                    "eager", "eager" if row["variant"] == "eager" else "compiled",
                    UNTIMED_LOSS if row["backward_ms"] else NO_LOSS, int(row["seq_tokens"]), int(row["batch"]), 1,
                    "none", 1, "none", part, f"{float(row[f'{part}_ms']):.5g}",
                )  # fmt: skip


def engines(folder: Path) -> Iterator[tuple[object, ...]]:
    """Yield iterations of engines with kernels and CUDA graphs of their own, as if compiled code ran them."""
    yield from _training_rows(folder, engines=True)


def _training_rows(folder: Path, engines: bool) -> Iterator[tuple[object, ...]]:
    """Yield whole iterations in the columns of `ITERATIONS`.

    Left out are rows with what this model of operators doesn't have: offload, adapters, fp8, GPUs without a machine,
    other ways to share a step.
    """
    for row in rows_of(folder, "training_measured.csv"):
        gpu = _gpu_of_iteration(row["gpu"])
        sharding = next((name for prefix, name in SHARDINGS.items() if row["sharding"].startswith(prefix)), None)
        special = row["offload"] not in ("", "none") or row["lora"] or "fp8" in row["precision"]
        special = special or row["recompute"].startswith("--")
        if row["usable_time"] != "yes" or None in (gpu, sharding) or special:
            continue
        if row["source_set"].startswith(OWN_ENGINES) != engines:
            continue
        tokens, batch = int(row["seq_tokens"]), int(row["micro_batch"])
        stated = row["tokens_per_s_per_gpu"]
        ms = 1e3 * tokens * batch / float(stated) if stated else float(row["iteration_ms"])
        accumulation = int(row["accumulation"]) if row["accumulation"].isdigit() else 1
        attention = "flash1" if "1/2" in row["attention"] else "flash"
        if row["attention"].startswith("eager"):
            attention = "eager"
        yield (
            row["source_set"], row["id"], gpu, row["model"], "amp-bf16" if "amp" in row["precision"] else "bf16",
            attention, "compiled" if row["compile"].startswith(COMPILED) else "eager",
            _loss_of(row), tokens, batch, accumulation,
            row["recompute"].partition(" ")[0] or "none", row["gpus"], sharding, "step", f"{ms:.5g}",
        )  # fmt: skip


def _loss_of(row: Mapping[str, str]) -> str:
    """Return how a measured iteration computes its loss."""
    if row["source_set"].startswith("llmfoundry"):
        return FLASH_LOSS
    return "chunked:8" if "chunk" in row["loss"] else "whole"


def _gpu_of_iteration(text: str) -> str | None:
    return next((name for prefix, name in GPUS_OF_ITERATIONS.items() if text.startswith(prefix)), None)


def text_of(columns: Sequence[str], rows: Iterable[Sequence[object]], sources: str) -> str:
    """Return the text of a file of rows, with its sources as comments."""
    out = io.StringIO()
    for letter in sources:
        out.write(f"# source: github.com/{SOURCES[letter]} (rows {letter})\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert every table."""
    parser = argparse.ArgumentParser(prog="convert_operator_timings.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the published tables")
    folder: Path = parser.parse_args(arguments).folder
    for name, columns, read, sources in (
        ("products", PRODUCTS, products, "anvc"),
        ("attention", ATTENTION, attention, "a"),
        ("memory", MEMORY, memory, "nvl"),
        ("experts", EXPERTS, experts, "a"),
    ):
        rows = means(read(folder))
        text = text_of(columns, rows, sources)
        write_text(DATA / f"{name}.csv", text)
        print(f"{name}.csv: {len(rows)} rows, {len(text)} bytes")
        for gpu, kind, apart in spreads(read(folder)):
            print(f"  {gpu} {kind}: times of a shape differ by {median(apart):.1%}, {apart[9 * len(apart) // 10]:.0%}")
    for name, read_steps, source in (("iterations", iterations, "i"), (ENGINES, engines, "e")):
        text = text_of(ITERATIONS, read_steps(folder), source)
        write_text(DATA / f"{name}.csv", text)
        print(f"{name}.csv: {text.count(chr(10)) - 2} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
