"""``python -m buddysim capture torch``: captures a PyTorch training script in a trace file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base import plugins
from buddysim.base.counted import counted
from buddysim.base.errors import BuddysimError
from buddysim.base.extras import INSTALL_TORCH
from buddysim.base.output import check_outputs
from buddysim.base.terminal import say, warn
from buddysim.capture import script_process
from buddysim.capture.arguments import add_compressor, add_provenance, size_or_all
from buddysim.capture.child_process import signals_to
from buddysim.capture.messages import exit_code, signal_text

if TYPE_CHECKING:
    from buddysim.capture.torch.assemble import TorchCaptureSummary
    from buddysim.capture.torch.spool import Spool

NAME = "torch"
ORDER = 30
HELP = """weights, gradients and feature maps of a PyTorch script over its training

Next to OUT.bin: OUT.graph.json, the operators of one iteration with their tensors and lifetimes
(docs/reference/operator-graph.md), and OUT.maps, densities and code sizes of the feature maps
(docs/reference/activations-format.md)."""


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected an integer from 1")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT.bin",
        help="the trace file, or the operator graph alone: OUT.graph.json (default: SCRIPT.bin)",
    )
    parser.add_argument(
        "--steps",
        type=_count,
        metavar="N",
        help="optimizer steps of the training: snapshots are taken at just the right ones; without, more than are kept",
    )
    parser.add_argument(
        "--snapshots", type=_count, default=10, metavar="N", help="number of snapshots over the training (default: 10)"
    )
    parser.add_argument(
        "--contents",
        type=partial(size_or_all, least=0),
        default=32 << 20,
        metavar="SIZE",
        help="bytes of tensors to keep in the file, the same for each snapshot; sampled pages of large tensors; "
        "all; 0B: sizes only (default: 32MiB)",
    )
    parser.add_argument(
        "--batch",
        type=_count,
        metavar="N",
        help="samples of the script's batch; found from its data loader, or from what its modules take, if not given",
    )
    parser.add_argument(
        "--samples", type=int, default=1, metavar="N", help="samples of each feature map in OUT.maps (default: 1)"
    )
    parser.add_argument(
        "--access-model",
        choices=("kernels", "one-pass"),
        default="kernels",
        help="memory accesses of an operator; kernels: models of the kernels that PyTorch launches; one-pass: each "
        "operand read once, each result written once (default: %(default)s)",
    )
    parser.add_argument("--no-activations", action="store_true", help="write no OUT.maps")
    add_compressor(parser)
    add_provenance(parser, "script", level=3)
    parser.add_argument("script", metavar="SCRIPT", help="script to run, with its arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Capture one training; return the script's exit code."""
    from buddysim.capture.torch.spool import Spool

    if args.script == "--":
        args.script, args.arguments = (args.arguments[0] if args.arguments else ""), args.arguments[1:]
    if args.script in ("python", "python3") and args.arguments:
        args.script, args.arguments = args.arguments[0], args.arguments[1:]
    script = Path(args.script)
    if not script.is_file():
        raise BuddysimError(f"capture torch: {args.script}: expected a Python script")
    if importlib.util.find_spec("torch") is None:
        raise BuddysimError(f"capture torch: PyTorch isn't installed: {INSTALL_TORCH}")
    output = Path(f"{script.stem}.bin") if args.output is None else _output_path(args.output)
    _check_outputs(output, [script, *args.arguments], maps=not args.no_activations)
    if args.samples < 0:
        raise BuddysimError(f"capture torch: --samples {args.samples}: expected 0 or more")
    source = args.source or script.name
    spool = Spool.for_trace(output)
    start = time.monotonic()
    code = _run_script(args, spool, output, source)
    seconds = time.monotonic() - start
    end = end_of(code, spool)
    if code and output.exists():
        warn(f"{output}: unchanged: {end.partition(':')[0]}; the captured part is {spool.folder}")
        return exit_code(code)
    if _is_graph(output):
        _keep_graph(spool, output, seconds, end)
        spool.remove()
        return exit_code(code)
    summary = _finish(spool, output, source, shlex.join(["buddysim", *sys.argv[1:]]), end, args)
    _report(output, summary, seconds, end, spool)
    spool.remove()
    return exit_code(code)


def _keep_graph(spool: Spool, output: Path, seconds: float, end: str) -> None:
    """Write the operator graph of a capture that takes no contents."""
    from buddysim.base.output import write_bytes

    graph, problem = spool.graph(), spool.progress().problem
    for one in (end, problem):
        if one and not one.startswith("none:"):
            warn(one)
    if graph is None:
        warn("no training iteration was seen: expected a module in training mode and an optimizer that steps")
        return
    write_bytes(output, graph.to_json())
    batch = f"batch {graph.batch}" if graph.batch else "batch unknown (--batch N)"
    say(
        f"{output}: {len(graph.operators)} operators of iteration {graph.iteration}, {batch}, "
        f"peak {graph.peak_bytes / (1 << 20):,.1f} MiB; {seconds:.1f} s"
    )


def _output_path(output: str) -> Path:
    if not output:
        raise BuddysimError("an empty name: expected a file to write")
    return Path(output)


def _is_graph(output: Path) -> bool:
    """Whether the operator graph is all that is to be written."""
    return output.name.endswith(".graph.json")


def _check_outputs(output: Path, inputs: Sequence[str | Path], *, maps: bool = True) -> None:
    """Check before the script runs that the trace file and the files next to it can be written."""
    if _is_graph(output):
        check_outputs([output], inputs)
        return
    graph, activations = output.with_suffix(".graph.json"), output.with_suffix(".maps")
    check_outputs([output, graph, activations if maps else None], inputs)


def _run_script(args: argparse.Namespace, spool: Spool, output: Path, source: str) -> int:
    maps = None if args.no_activations or _is_graph(output) else str(output.with_suffix(".maps").resolve())
    settings = {
        "spool": str(spool.folder.resolve()),
        "runner": "buddysim.capture.torch.script",
        "plugins": [str(file) for file in plugins.loaded_files()],
        "settings": {
            "snapshots": args.snapshots,
            "steps": args.steps,
            "contents_bytes": args.contents // args.snapshots,
            "maps_path": maps,
            "stored_samples": args.samples,
            "source": source,
            "compressor": args.compressor,
            "batch": args.batch or 0,
            "graph_only": _is_graph(output),
        },
    }
    file = spool.folder / "settings.json"
    file.write_text(json.dumps(settings))
    process = subprocess.Popen([sys.executable, script_process.__file__, str(file), args.script, *args.arguments])
    with signals_to(process):
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def end_of(code: int, spool: Spool) -> str:
    """Return the end of the script for the provenance; the text begins with "none:" after a normal end."""
    progress = spool.progress()
    after = f"in iteration {progress.iterations}"
    if code == 0 and progress.finished:
        return f"none: the script ended with exit code 0 after {progress.iterations} iterations"
    if code >= 0:
        return f"the script ended with exit code {code} {after}: the file holds everything up to then"
    return f"the script was killed by {signal_text(code)} {after}: the file holds everything up to then"


def _finish(
    spool: Spool, output: Path, source: str, command: str, end: str, args: argparse.Namespace
) -> TorchCaptureSummary:
    from buddysim.base.output import write_bytes
    from buddysim.capture.torch.assemble import assemble

    summary = assemble(
        spool, output, args.snapshots, source, command, end, args.licence, args.level, args.contents, args.access_model
    )
    graph = spool.folder / "graph.json"
    if graph.exists():
        write_bytes(output.with_suffix(".graph.json"), graph.read_bytes())
    return summary


def _report(output: Path, summary: TorchCaptureSummary, seconds: float, end: str, spool: Spool) -> None:
    """Print to the standard error: the standard output belongs to the script."""
    say(
        f"{output}: {summary.snapshots} snapshots of {summary.allocations} allocations, "
        f"{summary.bytes_seen / (1 << 20):,.1f} MiB read; {counted(summary.kernels, 'kernel')}; {seconds:.1f} s"
    )
    if not end.startswith("none:"):
        warn(end)
    problem = spool.progress().problem
    if problem:
        warn(problem)
    if not summary.kernels:
        warn("no training iteration was seen: expected a module in training mode and an optimizer that steps")


@contextmanager
def capture(
    output: str | Path,
    *,
    steps: int | None = None,
    snapshots: int = 10,
    contents_bytes: int = 32 << 20,
    samples: int = 1,
    source: str = "",
    compressor: str | None = None,
    batch: int = 0,
) -> Iterator[None]:
    """Captures the training that runs within the ``with`` block of this process.

    Parameters
    ----------
    output : the trace file; OUT.graph.json and OUT.maps are written next to it. Or OUT.graph.json, which is all then
    steps : optimizer steps of the training, where known
    snapshots : points of the training
    contents_bytes : keep at most so many bytes of the tensors in the file, as much in every snapshot
    samples : samples of each feature map in OUT.maps
    source : what is trained
    compressor : of the size maps; None: `buddysim.compress.DEFAULT`
    batch : samples of the batch; 0: found
    """
    if importlib.util.find_spec("torch") is None:
        raise BuddysimError(f"capture: PyTorch isn't installed: {INSTALL_TORCH}")
    from buddysim.capture.torch.observer import Observer, ObserverSettings
    from buddysim.capture.torch.spool import Spool
    from buddysim.compress import DEFAULT
    from buddysim.compress.compressors import find_for_size_maps

    output, compressor = Path(output), compressor or DEFAULT
    find_for_size_maps(compressor)
    _check_outputs(output, [])
    spool = Spool.for_trace(output)
    maps = None if _is_graph(output) else str(output.with_suffix(".maps").resolve())
    snapshot_bytes = contents_bytes // snapshots
    settings = ObserverSettings(
        snapshots, steps, snapshot_bytes, maps, samples, source, compressor, batch, _is_graph(output)
    )
    observer, start = Observer(spool, settings), time.monotonic()
    observer.start()
    end, finished = "none: the block ended", True
    try:
        yield
    except BaseException as error:
        end, finished = f"the block ended with {type(error).__name__}: the file holds everything up to then", False
        raise
    finally:
        observer.stop("finished" if finished else end, finished=finished)
        if _is_graph(output):
            _keep_graph(spool, output, time.monotonic() - start, end)
        else:
            args = argparse.Namespace(
                licence="", level=3, snapshots=snapshots, contents=contents_bytes, access_model="kernels"
            )
            _finish(spool, output, source or output.stem, "with capture(...)", end, args)
        spool.remove()
