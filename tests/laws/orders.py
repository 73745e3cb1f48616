"""The reference model in the order of another run: is an order why a better resource slows a run?

A run notes when a kernel starts, and when a warp reads its code, takes issue slots, waits for
pages, issues or ends. Another run then
makes these steps in the same order, each as early as its warp and its scheduler allow: the steps of each scheduler, or
of all together.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from buddysim.machine import Machine
from buddysim.trace import open_trace
from tests.reference.replay.replay import replay
from tests.reference.replay.run import RefRun
from tests.reference.replay.sm.thread_blocks import RefRunningKernel, RefSm
from tests.reference.replay.sm.warps import RefWarp
from tests.replay.random_cases import Case, write_case

MAX_TRIES = 300  # of one step
CODE, SLOTS, WAIT, ISSUE = "reads its code", "takes issue slots", "waits for pages", "issues or ends"


class Step(NamedTuple):
    """A kernel starts, or a warp does something.

    Attributes
    ----------
    scheduler : SM and number; None for the start of a kernel
    kernel : its index
    warp : of the kernel's, in the order of dispatch
    does : `CODE`, `SLOTS`, `WAIT` or `ISSUE`
    """

    scheduler: tuple[int, int] | None
    kernel: int
    warp: int = 0
    does: str = ""


class OtherBlocksError(Exception):
    """A thread block is on another SM than in the other run."""


class NotingRun(RefRun):
    """A run that notes its steps.

    Attributes
    ----------
    steps : in order
    warps : of each kernel, in the order of dispatch
    """

    def __init__(self, *args: Any) -> None:
        self.steps: list[Step] = []
        self.warps: dict[int, list[RefWarp]] = defaultdict(list)
        self.acting: RefWarp | None = None
        parts = args[-1]
        for sm, schedulers in enumerate(parts.schedulers):
            for number, scheduler in enumerate(schedulers):
                self._watch(scheduler, (sm, number))
        self._watch_pages(parts.below)
        super().__init__(*args)

    def _note(self, scheduler: tuple[int, int], does: str) -> None:
        assert self.acting is not None
        kernel = self.acting.block.owner.kernel.index
        warp = next(number for number, warp in enumerate(self.warps[kernel]) if warp is self.acting)
        self.steps.append(Step(scheduler, kernel, warp, does))

    def _watch_pages(self, below: Any) -> None:
        wake = below.wake

        def watched_wake(sm: int, warp: RefWarp, at_end: bool, now: int) -> int:
            until: int = wake(sm, warp, at_end, now)
            if until > now:
                self._note((sm, warp.slot % len(self.parts.schedulers[sm])), WAIT)
            return until

        below.wake = watched_wake

    def _watch(self, scheduler: Any, owner: tuple[int, int]) -> None:
        candidate, choose, issued, ended = scheduler._candidate, scheduler.choose, scheduler.issued, scheduler.ended

        def watched_candidate(now: int) -> RefWarp:
            self.acting = self.candidate(candidate, now)
            before.append((self.acting.has_code, self.acting.slots_taken))
            return self.acting

        def watched_choose(now: int) -> RefWarp | None:
            warp: RefWarp | None = choose(now)
            assert self.acting is not None
            had_code, had_slots = before.pop()
            if self.acting.has_code and not had_code:
                self._note(owner, CODE)
            if self.acting.slots_taken and not had_slots:
                self._note(owner, SLOTS)
            return warp

        def watched_issued(warp: RefWarp, now: int, taken: int) -> None:
            issued(warp, now, taken)
            self._note(owner, ISSUE)

        def watched_ended(warp: RefWarp) -> None:
            self._note(owner, ISSUE)
            ended(warp)

        before: list[tuple[bool, bool]] = []
        scheduler._candidate, scheduler.choose = watched_candidate, watched_choose
        scheduler.issued, scheduler.ended = watched_issued, watched_ended

    def candidate(self, candidate: Any, now: int) -> RefWarp:
        """Return the warp that acts."""
        warp: RefWarp = candidate(now)
        return warp

    def _start(self, kernel: RefRunningKernel) -> None:
        self.steps.append(Step(None, kernel.kernel.index))
        super()._start(kernel)

    def _dispatch(self, kernel: RefRunningKernel, sm: RefSm) -> None:
        before = {id(warp) for scheduler in sm.schedulers for warp in scheduler.warps}
        super()._dispatch(kernel, sm)
        new = [warp for scheduler in sm.schedulers for warp in scheduler.warps if id(warp) not in before]
        self.warps[kernel.kernel.index] += sorted(new, key=lambda warp: warp.slot)


class OrderedRun(NotingRun):
    """A run in the order of another one.

    Parameters
    ----------
    order : the other run's steps
    together : whether in the order of all steps; else only each scheduler's are in order
    """

    def __init__(self, order: Sequence[Step], together: bool, *args: Any) -> None:
        self.queues: dict[Any, deque[Step]] = defaultdict(deque)
        for step in order:
            if together or step.scheduler:
                self.queues["all" if together else step.scheduler].append(step)
        self.together = together
        self.warp_of_step: RefWarp | None = None
        self.latest: dict[int, int] = defaultdict(int)  # end of a warp of each thread block and kernel, by id
        super().__init__(*args)

    def candidate(self, candidate: Any, now: int) -> RefWarp:
        """Return the warp of the step."""
        assert self.warp_of_step is not None
        return self.warp_of_step

    def _step(self) -> bool:
        able = []
        for queue in self.queues.values():
            while queue and queue[0].scheduler and (start := self._earliest(queue[0])) is not None:
                able.append((start, queue[0].scheduler, queue))
                break
        first = min(able, key=lambda one: one[:2], default=None)
        if self.together:
            queue = self.queues["all"]
            if queue and queue[0].scheduler is None:
                kernel = next(one for one in self.running if one.kernel.index == queue[0].kernel)
                queue.popleft()
                self.clock.now = kernel.starts
                self._start(kernel)
                return True
        else:
            kernel = min((one for one in self.running if not one.started), key=lambda one: one.starts, default=None)
            if kernel is not None and (first is None or kernel.starts <= first[0]):
                self.clock.now = kernel.starts
                self._start(kernel)
                return True
        if first is None:
            if any(self.queues.values()):
                raise OtherBlocksError
            return False
        self._make(first[2].popleft())
        return True

    def _earliest(self, step: Step) -> int | None:
        """Return when a step may be made; None if its warp is not there yet, or at a barrier."""
        warps = self.warps[step.kernel]
        if step.warp >= len(warps) or warps[step.warp].ready is None:
            return None
        sm, number = step.scheduler
        scheduler = self.parts.schedulers[sm][number]
        if not any(warp is warps[step.warp] for warp in scheduler.warps):
            raise OtherBlocksError
        return max(warps[step.warp].ready, scheduler.next_issue)

    def _make(self, step: Step) -> None:
        """Let the warp act until it has made the step."""
        self.warp_of_step = warp = self.warps[step.kernel][step.warp]
        (sm, number), done = step.scheduler, len(self.steps)
        scheduler = self.parts.schedulers[sm][number]
        for _ in range(MAX_TRIES):
            self.clock.now = self._earliest(step)
            if step.does == CODE:
                warp.ready = max(warp.ready, warp.wait_for_code(self.clock.now))
                return
            if self.parts.below.pages is not None:
                self.parts.below.pages.serve_what_is_due(self.clock.now)
            if step.does == WAIT:
                self.acting = warp
                warp.ready = self.parts.below.wake(sm, warp, warp.op is None, self.clock.now)
                return
            if step.does == SLOTS:
                scheduler.choose(self.clock.now)
            else:
                self._issue(sm, number)
            if step in self.steps[done:]:
                return
        raise OtherBlocksError

    def _warp_ended(self, sm: int, warp: RefWarp) -> None:
        """End a thread block, and a kernel, with the latest of its warps, which may be earlier in the order."""
        block, kernel = warp.block, warp.block.owner
        for one in (block, kernel):
            self.latest[id(one)] = max(self.latest[id(one)], self.clock.now)
        if block.left == 1:
            last = not kernel.waiting and kernel.running_blocks == 1
            self.clock.now = self.latest[id(kernel if last else block)]
        super()._warp_ended(sm, warp)


def slowdowns_in_order(case: Case, better: Callable[[Machine], Machine], orders: Sequence[bool]) -> list[float]:
    """Return slowdowns, less 1, of a better machine in the order of the case's run on its own machine.

    They are infinite where a thread block is on another SM.

    Parameters
    ----------
    better : gives the better machine
    orders : for each slowdown, whether all steps are in order together; else those of each scheduler alone
    """
    machine, noted = case.make_machine(), []
    with tempfile.TemporaryDirectory() as folder, open_trace(write_case(case, Path(folder) / "case.bin")) as trace:

        def time_ps(used: Machine, make_run: Callable[..., RefRun]) -> int:
            targets = case.make_targets(trace)
            return int(replay(trace, used, case.scheme, targets, make_run=make_run, **case.options)["time_ps"])

        def noting(*args: Any) -> RefRun:
            noted.append(NotingRun(*args))
            return noted[0]

        before, slowdowns = max(1, time_ps(machine, noting)), []
        for together in orders:
            try:
                after = time_ps(better(machine), partial(OrderedRun, noted[0].steps, together))
                slowdowns.append(after / before - 1)
            except OtherBlocksError:
                slowdowns.append(inf)
    return slowdowns
