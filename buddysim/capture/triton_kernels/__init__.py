"""``python -m buddysim capture triton``: the Triton kernels of a Python script as a trace file, without a GPU."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import buddysim
from buddysim.base.counted import counted
from buddysim.base.errors import BuddysimError
from buddysim.base.output import Output, check_output, write_text
from buddysim.base.terminal import say, warn
from buddysim.capture import script_process
from buddysim.capture.arguments import add_compressor, add_program, add_provenance, launch_window, snapshot_count
from buddysim.capture.child_process import signals_to
from buddysim.capture.messages import exit_code

if TYPE_CHECKING:
    from buddysim.capture.triton_kernels.session import TritonCaptureSettings, TritonCaptureSummary

NAME = "triton"
ORDER = 40
HELP = """the Triton kernels of a Python script, lane by lane, with the values of their tensors

Each launch runs in Triton's interpreter and is compiled for the GPU; no GPU is needed. Tensors lie on the CPU. The
script's exit code is passed on."""

_INSTALL = "pip install 'buddysim[triton]'"
_DEFAULT_MACHINE = "h100-sxm"


def _every(text: str) -> int:
    if not text.isdecimal() or int(text) >= 10**9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected an integer from 0")
    return int(text)


def _sample(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected an integer from 1")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="OUT.bin", help="the trace file to write (default: SCRIPT.bin)")
    parser.add_argument(
        "--machine",
        default=_DEFAULT_MACHINE,
        metavar="NAME",
        help="machine, or its file, for whose compute capability kernels are compiled (default: %(default)s)",
    )
    parser.add_argument(
        "--snapshots",
        type=snapshot_count,
        default=10,
        metavar="N",
        help="number of snapshots of all tensors to keep, at equal distances in launches (default: 10)",
    )
    parser.add_argument(
        "--contents-every",
        type=_every,
        default=1,
        metavar="N",
        help="period of the 8 KiB pages whose bytes are kept; 0: none, all sizes are kept (default: 1)",
    )
    parser.add_argument(
        "--launches",
        type=launch_window,
        metavar="FIRST:END",
        help="trace only these launches, by their number in the run: 750, 750:753, 750: or :3; the others are "
        "interpreted alone",
    )
    parser.add_argument(
        "--grid-sample",
        type=_sample,
        default=1,
        metavar="N",
        help="trace one of N thread blocks of each launch; all are interpreted (default: 1)",
    )
    parser.add_argument(
        "--workers",
        type=_sample,
        default=1,
        metavar="N",
        help="number of worker processes that interpret thread blocks; launches with atomics run in one (default: 1)",
    )
    parser.add_argument(
        "--torch-compile",
        action="store_true",
        help="let torch.compile make Triton kernels for tensors on the CPU, and trace those too (PyTorch 2.13)",
    )
    add_compressor(parser)
    add_provenance(parser, "script", level=1)
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Capture one run of a script; return its exit code."""
    executable = shutil.which(args.program)
    if executable is None:
        raise BuddysimError(f"{args.program}: not found, or not executable: expected python SCRIPT")
    script = Path(args.arguments[0] if args.arguments else "")
    if not Path(executable).name.startswith("python") or not script.is_file():
        raise BuddysimError(f"capture triton: {shlex.join([args.program, *args.arguments])}: expected python SCRIPT")
    output = Path(f"{script.stem}.bin") if args.output is None else args.output
    check_output(output, [executable, *args.arguments])
    settings = {
        "runner": "buddysim.capture.triton_kernels.script_program",
        "output": os.fspath(output),
        "command": shlex.join(["buddysim", *sys.argv[1:]]),
        "source": args.source or script.name,
        "licence": args.licence,
        "level": args.level,
        "architecture": architecture_of(args.machine),
        "snapshots": args.snapshots,
        "contents_every": args.contents_every,
        "window": None if args.launches is None else str(args.launches),
        "grid_sample": args.grid_sample,
        "torch_compile": args.torch_compile,
        "workers": args.workers,
        "compressor": args.compressor,
    }
    with tempfile.TemporaryDirectory(prefix="buddysim-") as folder:
        file = Path(folder, "settings.json")
        write_text(file, json.dumps(settings))
        process = subprocess.Popen([executable, script_process.__file__, str(file), *args.arguments])
        with signals_to(process):
            try:
                return exit_code(process.wait())
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()


def architecture_of(machine: str) -> int:
    """Return a machine's compute capability as the compiler names it: 90 for 9.0.

    Raises
    ------
    BuddysimError
        where the machine doesn't say it
    """
    from buddysim.machine.training import TrainingMachine

    capability = TrainingMachine.load(machine).training.compute_capability
    if capability is None:
        raise BuddysimError(f"{machine}: no training.compute_capability: expected one such as 9.0")
    return int(capability.replace(".", ""))


@contextmanager
def capture(
    output: str | os.PathLike[str],
    *,
    machine: str = _DEFAULT_MACHINE,
    snapshots: int = 10,
    contents_every: int = 1,
    launches: str | None = None,
    grid_sample: int = 1,
    torch_compile: bool = False,
    workers: int = 1,
    source: str = "",
    compressor: str | None = None,
) -> Iterator[None]:
    """Capture the Triton launches within the ``with`` block of this process.

    Parameters
    ----------
    output : the trace file
    machine : for whose compute capability kernels are compiled
    snapshots : of all tensors, at most
    contents_every : period of the 8 KiB pages whose bytes are kept; 0: none, all sizes are kept
    launches : those to trace, ``"750:753"``; None: all
    grid_sample : trace one of so many thread blocks
    torch_compile : let ``torch.compile`` make Triton kernels, and trace those too
    workers : processes that interpret thread blocks; launches with atomics run in one
    source : what is captured
    compressor : of the size maps; None: `buddysim.compress.DEFAULT`
    """
    from buddysim.capture.incomplete_output import settle
    from buddysim.capture.launch_window import LaunchWindow
    from buddysim.capture.triton_kernels.session import TritonCaptureSettings
    from buddysim.compress import DEFAULT

    require_triton()
    settings = TritonCaptureSettings(
        architecture_of(machine),
        snapshots,
        None if launches is None else LaunchWindow.parse(launches),
        grid_sample,
        compressor or DEFAULT,
        torch_compile,
        workers,
        contents_every,
    )
    part, ended = Output(output, keep_part=True), None
    try:
        with captured(part, settings, source or Path(output).stem, "with capture.triton(...)") as ended:
            try:
                yield
            except BaseException as error:
                ended.append(f"the block ended with {type(error).__name__}: the trace has what it did before")
                raise
    finally:
        if ended is not None:
            settle(part, len(ended), empty=False)


@contextmanager
def captured(
    part: Output, settings: TritonCaptureSettings, source: str, command: str, licence: str = "", level: int = 1
) -> Iterator[list[str]]:
    """Capture a block into the part of an output, and report it; the caller completes the output.

    Parameters
    ----------
    part : to write
    settings : of the capture
    source, command, licence : for the provenance
    level : of the compression

    Yields
    ------
    a list that receives how the block ended, where it didn't end well
    """
    from buddysim.capture.triton_kernels.assumptions import ASSUMED, NOT_A_GPU, NOT_A_GPU_COMPILED, TORCH_COMPILE
    from buddysim.capture.triton_kernels.inductor import compiled_by_inductor
    from buddysim.capture.triton_kernels.session import RESERVED_PROVENANCE_BYTES, TritonSession
    from buddysim.capture.triton_kernels.triton_names import check_names
    from buddysim.trace import Provenance
    from buddysim.trace.writer import TraceWriter

    check_names()
    by_inductor = settings.torch_compile
    assumed = {"not_a_gpu": NOT_A_GPU_COMPILED if by_inductor else NOT_A_GPU} | ASSUMED
    assumed |= TORCH_COMPILE if by_inductor else {}
    provenance = Provenance("buddysim capture triton", buddysim.__version__, source, licence, command, assumed)
    ended: list[str] = []
    start = time.monotonic()
    with TraceWriter(
        part, provenance, compression_level=level, reserved_provenance_bytes=RESERVED_PROVENANCE_BYTES
    ) as writer:
        session = TritonSession(writer, provenance, settings)
        compiled = compiled_by_inductor(session.add_product) if settings.torch_compile else nullcontext()
        try:
            with session.interpreter.installed(), compiled:
                yield ended
        finally:
            session.finish(ended[0] if ended else "none: the program ended")
            writer.close()
            report(part, session.summary, time.monotonic() - start)


def require_triton() -> None:
    """Refuse an environment without Triton or PyTorch."""
    for module in ("triton", "torch"):
        if importlib.util.find_spec(module) is None:
            raise BuddysimError(f"capture triton: {module} isn't installed: {_INSTALL}")


def report(output: Output, summary: TritonCaptureSummary, seconds: float) -> None:
    """Print the summary to standard error, as standard output belongs to the program."""
    counts = summary.accesses
    say(
        f"{output.path}: {counted(summary.kernels, 'kernel')} of {counted(summary.launches, 'launch', 'launches')}, "
        f"{counted(counts.operations, 'warp operation')} "
        f"({counted(counts.lane_accesses, 'lane access', 'lane accesses')}), "
        f"{counted(summary.allocations, 'allocation')}, {counted(summary.snapshots, 'snapshot')}; "
        f"{seconds:.1f} s"
    )
    if not summary.launches:
        warn("the program launched no Triton kernel")
    if counts.outside:
        warn(f"{counts.outside} lane accesses were outside of all tensors")
