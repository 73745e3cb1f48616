"""Mixed-integer programs, solved by HiGHS, which comes with SciPy."""

from __future__ import annotations

from typing import Any

from buddysim.base.parsers.refusal import refusal


def solve(objective: Any, constraints: Any, integrality: Any, bounds: Any, options: dict[str, Any]) -> Any:
    """Return the solution of `scipy.optimize.milp`; a BuddysimError where the solver fails."""
    from scipy.optimize import milp

    try:
        return milp(objective, constraints=constraints, integrality=integrality, bounds=bounds, options=options)
    except Exception as error:
        raise refusal(error, "the solver of integer programs fails") from None
