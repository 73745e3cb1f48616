"""Trains ResNet-18 with the settings of an archive of real memory contents, and compares the tensors by kind.

``python tools/compare_resnet18.py``: trains (some two minutes of a core), and prints the table of
docs/explanation/workloads.md.
``python tools/compare_resnet18.py --summarise FOLDER``: writes resnet18_fmnist.json from the unpacked archive.

The archive has pages of 8 KB of all weights (w_), gradients (g_), momentum (m_), tensors saved for the backward pass
(act) and the input, at ten of 30 steps. The same pages of this training are compared.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from buddysim.base.textfile import parse_json
from buddysim.capture.torch.recorder import bytes_of
from buddysim.compress import DEFAULT, ENTRY_BYTES, STUDY_CLASSES, entry_classes
from buddysim.workloads.training import images
from buddysim.workloads.training.observe import step
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import TrainingProblem

SUMMARY: Final = Path(__file__).with_name("resnet18_fmnist.json")
PAGE: Final = 8192
KINDS: Final = {"w": "weights", "g": "gradients", "m": "momentum", "act": "activations", "input": "input"}
TOLERANCE: Final = 0.15
PROBLEM: Final = TrainingProblem(32, 64, 1.0, 30, 0.01, 1, 0, 120)
_SMALLEST: Final = 16 << 10  # of the archive's tensors
_MEAN, _DEVIATION = 0.45, 0.25  # of its input: black is -1.8
_STAGES: Final = ((64, 1), (128, 2), (256, 2), (512, 2))
_POINTS: Final = 10
Pages = NDArray[np.uint8]


class Block(nn.Module):  # type: ignore[misc]
    """A residual block: two convolutions of 3 x 3 and a shortcut (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = (
            None
            if stride == 1
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


def resnet18() -> nn.Module:
    """Return ResNet-18 with the original first convolution and pooling, weights after He et al. 2015; 10 classes."""
    layers: dict[str, nn.Module] = {
        "conv1": nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        "bn1": nn.BatchNorm2d(64),
        "relu": nn.ReLU(inplace=True),
        "maxpool": nn.MaxPool2d(3, 2, 1),
    }
    channels = 64
    for number, (outputs, stride) in enumerate(_STAGES, 1):
        layers[f"layer{number}"] = nn.Sequential(Block(channels, outputs, stride), Block(outputs, outputs, 1))
        channels = outputs
    layers |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "fc": nn.Linear(512, images.CLASSES)}
    network = nn.Sequential()
    for name, layer in layers.items():
        network.add_module(name, layer)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


def train(problem: TrainingProblem, pages: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Pages]]:
    """Yield the pages of every tensor at each of the equally spaced sampled steps.

    Parameters
    ----------
    pages : numbers of the pages of each tensor, by its name in the archive
    """
    torch.set_num_threads(1)
    torch.manual_seed(problem.seed)
    network = resnet18().train()
    optimizer = momentum(network.parameters(), problem)
    optimizer.param_groups[0]["weight_decay"] = 0.0
    batches = images.batches(problem)
    sampled_steps = {round(index * (problem.steps - 1) / (_POINTS - 1)) for index in range(_POINTS)}
    for number in range(problem.steps):
        data, labels = next(batches)
        data = (data * images.DEVIATION + images.MEAN - _MEAN) / _DEVIATION
        if number not in sampled_steps:
            step(network, optimizer, data, labels)
            continue
        saved: dict[int, torch.Tensor] = {}
        parameters = {parameter.data_ptr() for parameter in network.parameters()}
        tensors: dict[str, torch.Tensor] = {}

        def keep(tensor: torch.Tensor, saved: Any = saved, parameters: Any = parameters) -> torch.Tensor:
            if tensor.data_ptr() not in parameters and tensor.untyped_storage().nbytes() >= _SMALLEST:
                saved.setdefault(tensor.untyped_storage().data_ptr(), tensor.detach())
            return tensor

        def after(*_: Any, observed: Any = tensors) -> None:
            """Record the tensors before gradients are released."""
            for name, one in network.named_parameters():
                state = optimizer.state[one]["momentum_buffer"]
                assert one.grad is not None
                observed |= {f"w_{name}": one.detach(), f"g_{name}": one.grad.clone(), f"m_{name}": state}

        hook = optimizer.register_step_post_hook(after)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            step(network, optimizer, data, labels)
        hook.remove()
        acts = [f"act{at}_{'x'.join(map(str, one.shape))}" for at, one in enumerate(saved.values())]
        tensors |= dict(zip(acts, saved.values(), strict=True)) | {"input": data}
        tensors = {name: one for name, one in tensors.items() if one.untyped_storage().nbytes() >= _SMALLEST}
        if tensors.keys() != pages.keys():
            raise SystemExit(f"other tensors than the archive's: {sorted(tensors.keys() ^ pages.keys())}")
        yield {name: _pages(bytes_of(one.untyped_storage()), pages[name]) for name, one in tensors.items()}


def _pages(data: Pages, numbers: Sequence[int]) -> Pages:
    """Return some pages, the last one padded with zeros."""
    padded = np.zeros(-(-len(data) // PAGE) * PAGE, np.uint8)
    padded[: len(data)] = data
    return padded.reshape(-1, PAGE)[list(numbers)].reshape(-1)


def counts(tensors: Mapping[str, Pages]) -> dict[str, list[int]]:
    """Count by kind: entries of each size class, then 4 B values that are zero."""
    by_kind: dict[str, list[int]] = {}
    for name, data in tensors.items():
        kind = KINDS["act" if name.startswith("act") else name.partition("_")[0]]
        classes = np.bincount(entry_classes(data, DEFAULT), minlength=len(STUDY_CLASSES))[: len(STUDY_CLASSES)]
        row = [*classes.tolist(), int((data.view(np.uint32) & 0x7FFFFFFF == 0).sum())]
        by_kind[kind] = [a + b for a, b in zip(by_kind.get(kind, [0] * len(row)), row, strict=True)]
    return by_kind


def figures(row: Sequence[int]) -> tuple[float, float]:
    """Return the ratio with a size per entry, and the fraction of zeros."""
    *classes, zeros = row
    stored = sum(count * size for count, size in zip(classes, STUDY_CLASSES, strict=True))
    return sum(classes) * ENTRY_BYTES / stored, zeros / (sum(classes) * ENTRY_BYTES / 4)


def compare(seed: int = PROBLEM.seed) -> list[tuple[str, str, float, float]]:
    """Return kind, figure, the archive's value and the simulated one: means over the ten steps."""
    summary = parse_json(SUMMARY.read_text(), SUMMARY.name)
    simulated = [counts(tensors) for tensors in train(replace(PROBLEM, seed=seed), summary["pages"])]
    rows = []
    for kind in KINDS.values():
        sides = [np.mean([figures(point[kind]) for point in side], axis=0) for side in (summary["counts"], simulated)]
        rows += [
            (kind, what, float(sides[0][index]), float(sides[1][index]))
            for index, what in enumerate(("ratio", "zeros"))
        ]
    return rows


def agree(reference: float, simulated: float) -> bool:
    """Whether two values agree within `TOLERANCE`; fractions of zeros below 0.001 agree."""
    return abs(simulated - reference) <= max(TOLERANCE * reference, 0.001)


def summarise(folder: Path) -> dict[str, Any]:
    """Return the part of the unpacked archive that the comparison needs."""
    snapshots = parse_json((folder / "meta.json").read_text(), "meta.json")["snapshots"]
    snapshot_counts = []
    for snapshot in snapshots:
        data, offset, tensors = np.frombuffer((folder / f"{snapshot['name']}.bin").read_bytes(), np.uint8), 0, {}
        for one in snapshot["allocations"]:
            size = len(one["pages"]) * PAGE
            tensors[one["name"]] = data[offset : offset + size]
            offset += size
        snapshot_counts.append(counts(tensors))
    return {"pages": {one["name"]: one["pages"] for one in snapshots[0]["allocations"]}, "counts": snapshot_counts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summarise", type=Path, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=PROBLEM.seed)
    args = parser.parse_args()
    if args.summarise is not None:
        SUMMARY.write_text(json.dumps(summarise(args.summarise)) + "\n")
        return
    print("| kind | ratio: archive, trained here | zeros: archive, trained here | within 15 % |\n|---|---|---|---|")
    rows = compare(args.seed)
    for (kind, _, *ratios), (_, _, *zeros) in zip(rows[::2], rows[1::2], strict=True):
        within = " and ".join("yes" if agree(*pair) else "no" for pair in (ratios, zeros))
        print(f"| {kind} | {ratios[0]:.3f}, {ratios[1]:.3f} | {zeros[0]:.4f}, {zeros[1]:.4f} | {within} |")


if __name__ == "__main__":
    main()
