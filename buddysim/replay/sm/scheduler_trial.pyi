from collections.abc import Sequence

from buddysim.replay.sm.scheduler.base import WarpSchedulerBase

def picks(policy: WarpSchedulerBase, cases: Sequence[tuple[Sequence[int], int | None, int]]) -> list[int | None]: ...
