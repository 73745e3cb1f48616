"""Reference model of `schedule`: a program on the clock, step by step, with the time at which each stream is free."""

from __future__ import annotations

from dataclasses import dataclass, field

from buddysim.training.iteration.program import CopyTiming, Program, Step


@dataclass
class RefSchedule:
    """When each step and each task started and ended, in picoseconds."""

    steps: list[tuple[int, int]] = field(default_factory=list)
    tasks: dict[int, tuple[int, int]] = field(default_factory=dict)


def ref_schedule(program: Program) -> RefSchedule:
    """Reference model of `buddysim.training.iteration.schedule.schedule`."""
    result = RefSchedule()
    free: dict[str, int] = {}  # when a stream has done all that it was given so far

    def launch(step: Step, timing: CopyTiming, earliest: int) -> list[int]:
        """Launches the step's tasks of that timing, and says when each is over."""
        ends = []
        for task in (program.tasks[number] for number in step.tasks):
            if task.timing == timing:
                start = max([earliest, free.get(task.stream, 0), *(result.tasks[other][1] for other in task.after)])
                free[task.stream] = start + task.duration_ps
                result.tasks[task.number] = start, start + task.duration_ps
                ends.append(start + task.duration_ps)
        return ends

    now = 0
    for step in program.steps:
        begin = now
        fetched = launch(step, "before", begin)
        launch(step, "overlapped", begin)
        computed = max([begin, *fetched]) + step.compute_ps
        launch(step, "after", computed)
        awaited = [end for number, (_, end) in result.tasks.items() if program.tasks[number].until == step.index]
        now = max([computed, *awaited])
        result.steps.append((begin, now))
    return result
