"""The launches of a run, in order, for the choice of ``--launches``."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.capture.opencl.wire import MessageType, ReceivedMessage


class LaunchListing:
    """Collect a run's launches; consecutive equal launches share a line."""

    def __init__(self) -> None:
        self.launches = 0
        self._runs: list[tuple[str, tuple[int, ...], int]] = []  # kernel, sizes, first launch

    def receive(self, message: ReceivedMessage) -> None:
        """Handle one message."""
        if message.type == MessageType.NATIVE:
            number, *sizes = message.numbers
            if not self._runs or self._runs[-1][:2] != (message.text, tuple(sizes)):
                self._runs.append((message.text, tuple(sizes), number))
            self.launches = number + 1

    def lines(self) -> Iterator[str]:
        """Yield a heading, and for each group of launches its numbers, kernel, work-items and work-group."""
        yield f"{'launches':>17}  {'work-items':>22}  {'work-group':>14}  kernel"
        ends = [*(first for _, _, first in self._runs[1:]), self.launches]
        for (kernel, sizes, first), end in zip(self._runs, ends, strict=False):
            numbers = f"{first}:{end}" if end > first + 1 else f"{first}"
            group = "x".join(map(str, sizes[3:])) if sizes[3] else "PoCL's choice"
            yield f"{numbers:>17}  {'x'.join(map(str, sizes[:3])):>22}  {group:>14}  {kernel}"
