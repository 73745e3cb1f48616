"""Options that training schemes declare.

A scheme's file has ``OPTIONS``, an `Option` by name. The command line makes its arguments, their help and their checks
from these declarations; `buddysim.training.simulate` takes the same names as keywords. The user's choices reach the
scheme in `TrainingOptions.extra`; `values` checks them and fills in the defaults.
"""

from __future__ import annotations

from buddysim.base.option import Option, values

__all__ = ["Option", "values"]
