"""Trains the tiny model and captures its programs: ``python -m tools.transformer_traces [-o FOLDER] [--steps N]``."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from tools.transformer_traces import tensors
from tools.transformer_traces.tiny_model import TinyModel, read, trained

#: Program and the options of its capture.
PROGRAMS = {
    "attention": "--contents-every 16",
    "rms-norm": "--contents-every 16",
    "paged-decode": "--contents-every 8",
    "adamw": "--contents-every 64",
}
TENSORS = "transformer-tensors"
LICENCE = "BSD-3-Clause, as the package; the model learnt Python's help texts (PSF-2.0)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", default="traces", help="folder of the traces (default: traces)")
    parser.add_argument("--steps", type=int, default=60, help="steps of the training (default: 60)")
    parser.add_argument("--model", help="file of a trained model; without it, or where it is missing, one is trained")
    parser.add_argument("--only", default=",".join((*PROGRAMS, TENSORS)), help="traces (default: all)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(args.model or Path(folder, "model.pt"))
        if not model.exists():
            train(model, args.steps)
        for program in args.only.split(","):
            if program == TENSORS:
                write_tensors(model, Path(args.output), args.steps)
            else:
                capture(program, model, Path(args.output), args.steps)


def train(path: Path, steps: int) -> None:
    """Train the model and save it, with the optimizer's state of all weights of products."""
    torch.use_deterministic_algorithms(True)
    model, optimizer, loss = trained(steps)
    print(f"{steps} steps, {loss:.2f} nats per byte", file=sys.stderr)
    weights = [weight for weight in model.layers.parameters() if weight.dim() == 2]
    tensors = {
        "weight": [weight.detach() for weight in weights],
        "gradient": [weight.grad for weight in weights],
        "mean": [optimizer.state[weight]["exp_avg"] for weight in weights],
        "square": [optimizer.state[weight]["exp_avg_sq"] for weight in weights],
    }
    state = {name: torch.cat([one.flatten() for one in group]) for name, group in tensors.items()}
    torch.save({"model": model.state_dict(), "optimizer": state}, path)


def write_tensors(path: Path, folder: Path, steps: int) -> None:
    """Write the sizes of the model's tensors, by kind and number format."""
    saved, model = torch.load(path), TinyModel()
    model.load_state_dict(saved["model"])
    read(model, 16)
    state = saved["optimizer"]
    activations = ("x", "query", "attended", "hidden")
    kinds = {
        "weights": [state["weight"]],
        "kv-cache": [layer.seen[name] for layer in model.layers for name in ("key", "value")],
        "activations": [layer.seen[name] for layer in model.layers for name in activations],
        "gradients": [state["gradient"]],
        "optimizer-mean": [state["mean"]],
        "optimizer-square": [state["square"]],
    }
    tensors.write(folder / f"{TENSORS}.bin", kinds, f"tools/transformer_traces, {steps} steps", LICENCE)


def capture(program: str, model: Path, folder: Path, steps: int) -> None:
    """Capture one program for h100-sxm; h200 and gh200 have the same compute capability."""
    root = Path(__file__).parents[2]
    script = Path(__file__).with_name("launches.py").relative_to(root)
    source = f"tools/transformer_traces: {program} of a tiny model, {steps} steps"
    words = [sys.executable, "-m", "buddysim", "capture", "triton", *shlex.split(PROGRAMS[program])]
    words += ["--snapshots", "1", "--level", "19", "--source", source, "--licence", LICENCE]
    words += ["-o", os.path.relpath(folder / f"{program}.bin", root), "--", "python", str(script), program, str(model)]
    folders = os.pathsep.join([str(root), str(root / "docs" / "examples")])
    subprocess.run(words, check=True, cwd=root, env=os.environ | {"PYTHONPATH": folders})


main()
