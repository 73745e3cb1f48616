"""Time of the host: of each operator that it launches, in eager mode and compiled.

The host runs ahead of the GPU. A kernel starts when the one before it has ended and the host has launched it, so a step
takes the later of both lines, kernel by kernel (`iteration.recorded_program`). Constants hold for the server CPUs of
the measured machines; each has its rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import prod

from buddysim.training.autograd.records import TracedOperation
from buddysim.training.networks.recorded.work import OperationWork

PS_PER_US = 10**6
#: Entries of a stream that haven't run: a launch beyond waits for the oldest one. A program that launches kernels of
#: 190 us takes 4 to 5 us for each of the first 1,000, and 190 us from then on (question 53970187 of Stack Overflow,
#: "about 1000"); the power of two is assumed.
MAX_ENTRIES = 1024
#: Entries of an operator in hundredths, where it isn't one kernel: kernels, memsets and events. Means over the six
#: profiles of trainings on V100 and A100 with all their launches in Meta's HolisticTraceAnalysis (``tests/data``; 1,399
#: `mm`, 798 `addmm`, 252 `native_layer_norm_backward`, 424 convolutions): products are split among several kernels. Of
#: attention: FlashAttention 2's kernels (``flash_bwd_launch_template.h``).
ENTRIES = {
    "mm": 156,
    "addmm": 166,
    "native_layer_norm_backward": 200,
    "convolution": 366,
    "convolution_backward": 804,
    "_scaled_dot_product_flash_attention_backward": 300,
}
ONE_ENTRY = 100
#: Values that a result of a sum gathers from which on several blocks share it, whose semaphores a memset clears
#: (``Reduce.cuh``: 256 of a thread, in blocks that are 16 high).
_SHARED_SUM = 4096


@dataclass(frozen=True)
class HostConstants:
    """Microseconds of the host's thread.

    Attributes
    ----------
    forward_us : of an operator of the forward pass with its views, Python's part included: a call between two events
        takes 21 us on the host of an H100 without work (NeuSight, linear and element-wise, `calls_us`), of which 5 us
        are the events
    backward_us : of an operator that autograd runs, without Python: 0.65 of a forward one, measured with PyTorch 2.13
        on a CPU, models of four hidden sizes of 64 (OPT, 12.5 and 8.1 us)
    optimizer_us : of a tensor of a foreach operator: lists of tensors are built, and launched in chunks
    compiled_us : of a kernel that compiled code launches (assumed: a launch of 4 us and its arguments)
    launch_us : from a launch to the start of its kernel on an idle GPU
    """

    forward_us: float = 16.0
    backward_us: float = 10.4
    optimizer_us: float = 1.0
    compiled_us: float = 5.0
    launch_us: float = 4.0


HOST = HostConstants()


def host_ps(work: OperationWork, constants: HostConstants = HOST) -> int:
    """Return the host's time of an operator, in picoseconds."""
    if work.launcher == "optimizer":
        spent = constants.forward_us + constants.optimizer_us * work.tensors
    else:
        spent = getattr(constants, f"{work.launcher}_us")
    return round(spent * PS_PER_US)


def entries_of(operation: TracedOperation) -> int:
    """Return the entries that an operator takes in its stream, in hundredths."""
    if operation.name == "sum" and operation.reads and operation.writes:
        values, results = prod(operation.reads[0].shape), prod(operation.writes[0].shape)
        return 2 * ONE_ENTRY if values >= _SHARED_SUM * results else ONE_ENTRY
    return ENTRIES.get(operation.name, ONE_ENTRY)


class LaunchQueue:
    """The lines of host and GPU: the host runs ahead, and a kernel waits for the later of both.

    The host is at most `MAX_ENTRIES` ahead: then it waits for the end of the oldest kernel.
    """

    __slots__ = ("_ends", "_gpu_ps", "_held", "_host_ps", "_launch_ps")

    def __init__(self, constants: HostConstants = HOST) -> None:
        self._gpu_ps = self._host_ps = 0
        self._launch_ps = round(constants.launch_us * PS_PER_US)
        self._ends: deque[tuple[int, int]] = deque()  # of operators: when they end, and their entries
        self._held = 0

    @property
    def host_ps(self) -> int:
        """When the host has launched all so far."""
        return self._host_ps

    @property
    def launch_ps(self) -> int:
        """From a launch to the start of its kernel on an idle GPU."""
        return self._launch_ps

    @property
    def gpu_ps(self) -> int:
        """When the GPU has run all so far."""
        return self._gpu_ps

    def wait(self) -> None:
        """Let the host wait until the GPU has run all so far."""
        self._host_ps = max(self._host_ps, self._gpu_ps)

    def launch(self, host_ps: int, gpu_ps: int, entries: int = ONE_ENTRY) -> int:
        """Return by how much later the GPU ends: the operator's time, and what it waits for the host.

        Parameters
        ----------
        entries : in the stream, in hundredths
        """
        self._hold(entries)
        self._host_ps += host_ps
        end = max(self._gpu_ps, self._host_ps + self._launch_ps) + gpu_ps
        longer, self._gpu_ps = end - self._gpu_ps, end
        self._ends.append((end, entries))
        return longer

    def record_event(self) -> None:
        """Hold an event behind the last kernel, for another stream to wait for."""
        self._hold(ONE_ENTRY)
        self._ends.append((self._gpu_ps, ONE_ENTRY))

    def _hold(self, entries: int) -> None:
        """Let the host wait until the stream can hold them."""
        self._held += entries
        while self._held > MAX_ENTRIES * ONE_ENTRY and self._ends:
            end, left = self._ends.popleft()
            self._held -= left
            self._host_ps = max(self._host_ps, end)
