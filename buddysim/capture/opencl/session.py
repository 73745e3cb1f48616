"""One run of the program to capture, with PoCL and the capture's hooks as its OpenCL driver."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.capture.child_process import reporting_socket, signals_to
from buddysim.capture.launch_window import CapturePlan
from buddysim.capture.opencl.programs import compile_program
from buddysim.capture.opencl.toolchain import Toolchain, runtime_library
from buddysim.capture.opencl.wire import VERSION, MessageType, ReceivedMessage, answer, messages


@dataclass
class OpenclCaptureOutcome:
    """Outcome of a captured run.

    Parameters
    ----------
    returncode : the program's, negative for a signal
    answered : whether the program used OpenCL
    others : number of further processes that used OpenCL, which were not traced
    broken : error after which nothing was written any more; the program ran to its end
    """

    returncode: int = 0
    answered: bool = False
    others: int = 0
    seconds: float = 0.0
    broken: BuddysimError | None = None


def _environment(
    folder: Path, library: Path, toolchain: Toolchain, plan: CapturePlan, report_as_gpu: bool
) -> dict[str, str]:
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "capture.icd").write_text(f"{library}\n")
    own_variables = ("REPORT_AS_GPU", "CANDIDATES", "POINTS", "WINDOW")
    environment = {
        key: text for key, text in os.environ.items() if key.removeprefix("BUDDYSIM_CAPTURE_") not in own_variables
    }
    if report_as_gpu:
        environment["BUDDYSIM_CAPTURE_REPORT_AS_GPU"] = "1"
    if plan.points:
        environment["BUDDYSIM_CAPTURE_POINTS"] = ",".join(map(str, plan.points))
    if plan.window is not None:
        environment["BUDDYSIM_CAPTURE_WINDOW"] = str(plan.window)
    return environment | {
        "OCL_ICD_VENDORS": f"{vendors}/",
        "OCL_ICD_FILENAMES": "",
        "BUDDYSIM_CAPTURE_SOCKET": str(folder / "opencl"),
        "BUDDYSIM_CAPTURE_DRIVER": toolchain.pocl,
        "BUDDYSIM_CAPTURE_CANDIDATES": str(plan.candidates),
    }


def run_program(
    command: Sequence[str],
    executable: str,
    receive: Callable[[ReceivedMessage], None],
    toolchain: Toolchain,
    plan: CapturePlan,
    report_as_gpu: bool = False,
    emulate_gpu_compiler: bool = False,
) -> OpenclCaptureOutcome:
    """Run a program to its end.

    Parameters
    ----------
    command, executable : the program with its arguments, and its path
    receive : called with each message about its use of OpenCL
    toolchain : compilers of its kernels
    plan : launches to trace, and when snapshots are taken
    report_as_gpu : whether the device reports that it is a GPU
    emulate_gpu_compiler : whether kernels are compiled as for a GPU
    """
    outcome = OpenclCaptureOutcome()
    library = runtime_library(toolchain)
    start = time.perf_counter()
    with reporting_socket("opencl", backlog=16) as (listener, folder):
        environment = _environment(folder, library, toolchain, plan, report_as_gpu)
        try:
            process = subprocess.Popen(list(command), executable=executable, env=environment)
        except OSError as error:
            raise BuddysimError(f"{command[0]}: cannot be run: {error.strerror}") from None
        with signals_to(process):
            try:
                connection = _first_connection(listener, process)
                if connection is not None:
                    outcome.answered = True
                    with connection:
                        _serve(connection, listener, receive, toolchain, emulate_gpu_compiler, outcome)
                outcome.returncode = process.wait()
            except BaseException:
                process.kill()
                process.wait()
                raise
    outcome.seconds = time.perf_counter() - start
    return outcome


def _first_connection(listener: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket | None:
    """Return the program's connection; None if it ended without one."""
    ended = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select()}
        return listener.accept()[0] if listener in ready else None
    finally:
        os.close(ended)


def _serve(
    connection: socket.socket,
    listener: socket.socket,
    receive: Callable[[ReceivedMessage], None],
    toolchain: Toolchain,
    emulate_gpu_compiler: bool,
    outcome: OpenclCaptureOutcome,
) -> None:
    listener.setblocking(False)
    for message in messages(connection):
        if message.type == MessageType.COMPILE:
            try:
                answer(connection, False, str(compile_program(bytes(message.data), toolchain, emulate_gpu_compiler)))
            except (BuddysimError, OSError) as error:
                answer(connection, True, str(error))
            _refuse_others(listener, outcome)
            continue
        if message.type == MessageType.HELLO and message.numbers[0] != VERSION:
            raise ValueError(f"the runtime library sends messages of version {message.numbers[0]}: expected {VERSION}")
        if outcome.broken is None:
            try:
                receive(message)
            except BuddysimError as error:
                outcome.broken = error
    _refuse_others(listener, outcome)


def _refuse_others(listener: socket.socket, outcome: OpenclCaptureOutcome) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            outcome.others += 1
