"""Which measured rows fit constants and which only check them. Committed before the first fit.

Rules, the same for every GPU and kind of operator:

1. A shape (all extents, without GPU and number format) whose SHA-256 is divisible by `HELD_OUT` is for checking, on all
   GPUs alike. So no constant is fitted to any row of that shape.
2. Two GPUs, `UNSHARED_GPUS`, take part in no constant that GPUs share, nor in the choice of the model's form. Their own
   constants come from their own rows for fitting, as a user's calibration would. (Broken once, for three parts of the
   form; docs/validation/operators.md names them.)
3. Of whole iterations, `FITTED_SOURCES` alone are fitted, without the two `CHECKED_MODELS`; all other sources check.
4. Leave-one-GPU-out repeats the fit without the GPU, and predicts it from the GPU that `neighbours` names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

HELD_OUT = 4
"""One shape in this many is for checking."""

UNSHARED_GPUS = ("l40s", "t4")
"""GPUs that no shared constant has seen: the only one of its generation with half precision, and an old one."""

FITTED_SOURCES = ("llmfoundry-a100-80", "llmfoundry-h100")
"""Sources of whole iterations that constants are fitted to: many lengths of sequence and sizes, two GPUs."""

CHECKED_MODELS = ("mpt-13b", "mpt-350m")
"""Models of these sources that only check: a large one and a small one."""


def number_of(*extents: object) -> int:
    """Return the number that decides about a shape, the same in every session."""
    return int(hashlib.sha256(",".join(map(str, extents)).encode()).hexdigest(), 16)


def checks(extents: Iterable[object]) -> bool:
    """Whether a shape is for checking."""
    return number_of(*extents) % HELD_OUT == 0
