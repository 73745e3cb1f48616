"""HiGHS compiled for the browser, as the solver of `fit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from buddysim.base.parsers.json_text import loads
from buddysim.training.fitting.mixed_program import GAP, NODES, MixedProgram, MixedSolution


def lp_text(program: MixedProgram) -> str:
    """Return a program in the LP format of CPLEX: variables `x0`, `x1`, .., the last of which is not an integer."""
    size = program.groups * program.choices
    lines = ["Minimize", f" obj: {_terms(program.objective)}", "Subject To"]
    for number, (row, limit) in enumerate(zip(program.rows, program.limits, strict=True)):
        lines.append(f" r{number}: {_terms(row) or '0 x0'} <= {limit!r}")
    for group in range(program.groups):
        members = range(group * program.choices, (group + 1) * program.choices)
        lines.append(f" g{group}: {' + '.join(f'x{one}' for one in members)} = 1")
    lines += ["Bounds", f" 0 <= x{size}", "Binaries", *(f" x{one}" for one in range(size)), "End"]
    return "\n".join(lines)


def _terms(row: Sequence[float]) -> str:
    return "\n  ".join(
        f"{'-' if value < 0 else '+'} {abs(value)!r} x{column}" for column, value in enumerate(row) if value
    )


def solver(run: Callable[[str, int, float], str]) -> Callable[[MixedProgram], MixedSolution]:
    """Return a solver of programs.

    Parameters
    ----------
    run : takes a program's text, the most nodes and the tolerance; returns ``{"values": .., "bound": ..}`` as JSON,
        each None where there is none; values by the variables' names
    """

    def solved(program: MixedProgram) -> MixedSolution:
        answer = loads(run(lp_text(program), NODES, GAP), "the answer of HiGHS")
        values = answer["values"]
        columns = range(program.groups * program.choices + 1)
        return MixedSolution(
            None if values is None else [values.get(f"x{one}", 0.0) for one in columns], answer["bound"]
        )

    return solved
