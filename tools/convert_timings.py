"""Converts published tables of layer times to the files that ship, with calibration and validation in separate files.

python tools/convert_timings.py FOLDER

FOLDER holds ``deepbench_conv.csv`` and ``deepbench_gemm.csv`` (baidu-research/DeepBench, Apache-2.0),
``caffe_per_layer_titanx.csv`` and ``torch_cudnn_versions_titanx.csv`` (soumith/convnet-benchmarks, MIT).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from buddysim.base.output import write_text
from buddysim.base.textfile import LARGEST_TABLE, read_csv
from buddysim.training import Layer, Network
from buddysim.training.cost.split import split
from buddysim.training.cost.timings import MeasuredPass, timings_text
from buddysim.training.named_network import load_network

DATA = Path(__file__).parents[1] / "buddysim" / "training" / "cost" / "data"

MACHINES = {
    "TitanX": ("titan-x", "cudnn5"),
    "M40": ("m40", "cudnn5"),
    "TitanX_Pascal": ("titan-x-pascal", "cudnn5"),
    "TitanXp": ("titan-xp", "cudnn5"),
    "1080Ti": ("gtx-1080-ti", "cudnn5"),
    "P100": ("p100", "cudnn5"),
    "V100": ("v100", "cudnn7"),
    "T4": ("t4", "cudnn7"),
}
SINGLE_PRECISION = ("Results - FP32", "Results FP32", "FP32")
ALGORITHMS = {
    "IMPLICIT_GEMM": "implicit_gemm",
    "IMPLICIT_PRECOMP_GEMM": "implicit_precomp_gemm",
    "LICIT_PRECOMP_GEMM": "implicit_precomp_gemm",  # cut short in the source
    "FFT": "fft",
    "FFT_TILING": "fft_tiling",
    "WINOGRAD": "winograd",
    "WINOGRAD_NONFUSED": "winograd_nonfused",
}
CAFFE_NETWORKS = {  # name in the table -> (zoo, batch)
    "alexnet": ("alexnet", 128),
    "overfeat": ("overfeat", 128),
    "vgg_a": ("vgg11", 64),
    "googlenet": ("googlenet", 128),
}
TORCH_NETWORKS = {
    "AlexNet": "alexnet",
    "OverFeat[fast]": "overfeat",
    "VGG Model-A": "vgg11",
    "GoogleNet": "googlenet",
}
TORCH_LIBRARIES = {"cudnnR2_20150415": "cudnn2", "cudnnR3rc1_autotune": "cudnn3", "cudnnR4": "cudnn4"}
TORCH_PASSES = {
    "updateOutput": "forward",
    "updateGradInput": "backward_data",
    "accGradParameters": "backward_filter",
}

DEEPBENCH_SOURCE = (
    "source: github.com/baidu-research/DeepBench, results (single precision), Apache-2.0, copyright Baidu Research",
    "the library version is not in the tables at hand: cuDNN 5 at least, since Winograd is used; 7 at least on Volta "
    "and Turing, whose tensor cores the other sheets use; the label takes the least",
    "times of the fastest algorithm; the algorithm is named for forward passes only",
)
CAFFE_SOURCE = (
    "source: github.com/soumith/convnet-benchmarks, caffe/output_*.log of 2016-02-28 (Titan X Maxwell), MIT, "
    "copyright 2014 Soumith Chintala",
    "Caffe with cuDNN 4, which lets a CONV have at most 8 MiB of workspace: no FFT",
)


def deepbench(folder: Path) -> Iterator[tuple[str, MeasuredPass]]:
    """Yield every single-precision row of the DeepBench tables, with its GPU."""
    for row in read_csv(folder / "deepbench_conv.csv", "table", LARGEST_TABLE):
        if row["sheet"] in SINGLE_PRECISION:
            for pass_, column in (
                ("forward", "fwd_ms"),
                ("backward_data", "bwd_data_ms"),
                ("backward_filter", "bwd_filter_ms"),
            ):
                if row[column] and float(row[column]) > 0:
                    yield row["gpu"], _deepbench_conv(row, pass_, float(row[column]))
    for row in read_csv(folder / "deepbench_gemm.csv", "table", LARGEST_TABLE):
        if row["sheet"] in SINGLE_PRECISION:
            rows, outputs, inputs = int(row["N"]), int(row["M"]), int(row["K"])
            transposed = {"N": "gemm", "T": "gemm_transposed"}[row["A"]]
            yield row["gpu"], _fc(rows, inputs, outputs, "forward", float(row["ms"]), algorithm=transposed)


def _deepbench_conv(row: dict[str, str], pass_: str, ms: float) -> MeasuredPass:
    count = {name: int(float(row[name])) for name in ("W", "H", "C", "N", "K", "R", "S")}
    return MeasuredPass(
        kind="conv",
        batch=count["N"],
        in_channels=count["C"],
        in_h=count["H"],
        in_w=count["W"],
        out_channels=count["K"],
        kernel_h=count["S"],  # the table's R lies along W, its S along H
        kernel_w=count["R"],
        stride_h=int(row["stride_h"]),
        stride_w=int(row["stride_w"]),
        pad_h=int(row["pad_h"]),
        pad_w=int(row["pad_w"]),
        pass_=pass_,
        algorithm=ALGORITHMS[row["fwd_algo"]] if pass_ == "forward" else "",
        ms=round(ms, 6),
    )


def _fc(
    rows: int, inputs: int, outputs: int, pass_: str, ms: float, algorithm: str = "", network: str = "", layer: str = ""
) -> MeasuredPass:
    shape = (rows, inputs, 1, 1, outputs, 1, 1, 1, 1, 0, 0)
    return MeasuredPass("fc", *shape, pass_, algorithm, round(ms, 6), network, layer)


def caffe(folder: Path) -> Iterator[MeasuredPass]:
    """Yield every layer of the four networks of the zoo, matched by its index among the layers of its kind."""
    times: dict[str, dict[str, dict[str, float]]] = {}
    for row in read_csv(folder / "caffe_per_layer_titanx.csv", "table", LARGEST_TABLE):
        times.setdefault(row["net"], {}).setdefault(row["layer"], {})[row["pass"]] = float(row["ms"])
    for table, (zoo, batch) in CAFFE_NETWORKS.items():
        network = load_network(zoo)
        for kind in ("conv", "fc", "relu", "maxpool", "avgpool", "concat"):
            zoo_layers = [layer for layer in network.layers if layer.kind == kind]
            names = [name for name in times[table] if _caffe_kind(name) == kind]
            if kind == "relu":  # Caffe's tables have none behind fully connected layers but GoogLeNet's last
                names = [name for name in names if not name.startswith("fc")]
                zoo_layers = zoo_layers[: len(names)]
            if len(zoo_layers) != len(names):
                raise SystemExit(f"{table}: {len(names)} {kind} layers in the table, {len(zoo_layers)} in {zoo}")
            for layer, name in zip(zoo_layers, names, strict=True):
                for pass_, ms in times[table][name].items():
                    yield _caffe_timing(network, layer, batch, pass_, ms)


def _caffe_kind(name: str) -> str:
    if "split" in name or name == "input":
        return ""
    if "relu" in name:
        return "relu"
    if name == "pool5/7x7_s1":
        return "avgpool"
    if name.startswith("pool") or name.endswith("/pool"):
        return "maxpool"
    if name.endswith("/output"):
        return "concat"
    return "fc" if name.startswith("fc") else "conv"


def _caffe_timing(network: Network, layer: Layer, batch: int, pass_: str, ms: float) -> MeasuredPass:
    if layer.kind == "fc":
        gemm = layer.gemms[0]
        return _fc(batch, gemm.k, gemm.n, pass_, ms, network=network.name, layer=layer.name)
    inner = network.layers[layer.inputs[0]].output_shape
    conv, pool = layer.conv, layer.pool
    if layer.kind == "concat":
        inner = layer.output_shape
    window = (1, 1, 1, 1, 0, 0)
    if conv is not None:
        window = (conv.kernel_h, conv.kernel_w, conv.stride_h, conv.stride_w, conv.pad_h, conv.pad_w)
    elif pool is not None:
        window = (pool.kernel_h, pool.kernel_w, pool.stride_h, pool.stride_w, pool.pad_h, pool.pad_w)
    channels, height, width = inner
    outputs = conv.out_channels if conv is not None else 0
    shape = (batch, channels, height, width, outputs, *window)
    return MeasuredPass(layer.kind, *shape, pass_, "", round(ms, 6), network.name, layer.name)


def torch_totals(folder: Path) -> str:
    """Return the times of whole networks under three library versions."""
    lines = [
        "# source: github.com/soumith/convnet-benchmarks, torch7/imagenet_winners/output_*.log (Titan X Maxwell), MIT, "
        "copyright 2014 Soumith Chintala",
        "# whole networks in Torch; kernels: cudnn (no bound on workspace) or nn (the matrix of windows written out)",
        "library,kernels,network,batch,pass,ms",
    ]
    for row in read_csv(folder / "torch_cudnn_versions_titanx.csv", "table", LARGEST_TABLE):
        if row["log"] in TORCH_LIBRARIES and row["phase"] in TORCH_PASSES:
            library = TORCH_LIBRARIES[row["log"]]
            batch = row["input"].partition("x")[0]
            network, pass_ = TORCH_NETWORKS[row["net"]], TORCH_PASSES[row["phase"]]
            lines.append(f"{library},{row['kernels']},{network},{batch},{pass_},{row['ms']}")
    return "\n".join(lines) + "\n"


def write(name: str, timings: list[MeasuredPass], source: tuple[str, ...]) -> None:
    """Write the calibration and the validation file of one GPU and library."""
    for part, selected in zip(("calibration", "validation"), split(timings), strict=True):
        text = timings_text(selected, source)
        write_text(DATA / part / f"{name}.csv", text)
        print(f"{part}/{name}.csv: {len(selected)} rows, {len({timing.shape for timing in selected})} shapes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert every table."""
    parser = argparse.ArgumentParser(prog="convert_timings.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the published tables")
    folder: Path = parser.parse_args(arguments).folder
    by_gpu: dict[str, list[MeasuredPass]] = {}
    for gpu, timing in deepbench(folder):
        by_gpu.setdefault(gpu, []).append(timing)
    for gpu, timings in by_gpu.items():
        write("-".join(MACHINES[gpu]), timings, DEEPBENCH_SOURCE)
    write("titan-x-cudnn4", list(caffe(folder)), CAFFE_SOURCE)
    write_text(DATA / "networks-titan-x.csv", torch_totals(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
