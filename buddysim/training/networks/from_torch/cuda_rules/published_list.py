"""CUDA's list of autocast operators, as the installed PyTorch publishes it in a header of its C++ interface."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

from buddysim.base.errors import BuddysimError

HEADER = "include/ATen/autocast_mode.h"

#: What becomes of an operator's floating-point arguments.
Policy = Literal["lower_precision", "fp32", "fp32_set_dtype", "fp32_append_dtype", "promote"]

_MACROS: dict[str, Policy] = {
    "AT_FORALL_LOWER_PRECISION_FP": "lower_precision",
    "AT_FORALL_FP32": "fp32",
    "AT_FORALL_FP32_SET_OPT_DTYPE": "fp32_set_dtype",
    "AT_FORALL_PROMOTE": "promote",
}


@cache
def cuda_autocast_list() -> dict[str, Policy]:
    """The policy of every operator of the list, by name and overload: ``{"softmax.int": "fp32_set_dtype"}``."""
    import torch

    path = Path(torch.__file__).parent / HEADER
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BuddysimError(f"{path}: {error.strerror}: expected PyTorch's header with the autocast list") from None
    policies: dict[str, Policy] = {}
    for macro, policy in _MACROS.items():
        for name, overload in re.findall(r"_\((\w+)(?:, (\w+))?\)", _body(text, macro)):
            policies[f"{name}.{overload}" if overload else name] = policy
    for name in re.findall(r'"([\w.]+)"', _body(text, "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE")):
        policies[name] = "fp32_append_dtype"
    return policies


def _body(text: str, macro: str) -> str:
    """The lines of a macro, which end in a backslash but for the last."""
    match = re.search(rf"#define {macro}\(_\)((?:.*\\\n)*.*)\n", text)
    if match is None:
        raise BuddysimError(f"{HEADER}: no {macro}: expected PyTorch 2.13's autocast list")
    return match[1]
