"""The names of Triton that the capture uses; they are not public, so each is looked up before a capture starts."""

from __future__ import annotations

import importlib
from typing import Final

from buddysim.base.errors import BuddysimError

#: The version that the capture was written for and tested with.
TESTED_VERSION: Final = "3.9.0"

_NEEDED: Final = {
    "triton.runtime.interpreter": (
        "FunctionRewriter",
        "GridExecutor",
        "InterpretedFunction",
        "InterpreterBuilder",
        "_interpreter",
        "_patch_lang",
        "interpreter_builder",
    ),
    "triton.runtime.jit": ("JITFunction", "create_function_from_signature"),
    "triton.runtime.autotuner": ("Autotuner",),
    "triton.compiler.compiler": ("ASTSource", "make_backend"),
    "triton.backends.compiler": ("GPUTarget",),
    "triton.backends.nvidia.compiler": ("get_ptxas", "sm_arch_from_capability"),
    "triton._C.libtriton": ("gluon_ir", "ir", "nvidia"),
}
_METHODS: Final = (
    ("triton.runtime.interpreter", "InterpreterBuilder", "create_masked_load"),
    ("triton.runtime.interpreter", "InterpreterBuilder", "create_masked_store"),
    ("triton.runtime.interpreter", "InterpreterBuilder", "create_atomic_rmw"),
    ("triton.runtime.interpreter", "InterpreterBuilder", "create_atomic_cas"),
    ("triton.runtime.interpreter", "FunctionRewriter", "_transform_ast"),
    ("triton.runtime.interpreter", "InterpretedFunction", "run"),
    ("triton.runtime.interpreter", "InterpretedFunction", "rewrite"),
    ("triton.runtime.jit", "JITFunction", "run"),
    ("triton.runtime.jit", "JITFunction", "_pack_args"),
    ("triton.runtime.autotuner", "Autotuner", "prune_configs"),
)


def check_names() -> None:
    """Refuse a Triton without a name that the capture uses.

    Raises
    ------
    BuddysimError
        naming the first missing one
    """
    import triton

    for module, names in _NEEDED.items():
        try:
            imported = importlib.import_module(module)
        except ImportError:
            raise _missing(triton.__version__, module) from None
        for name in names:
            if not hasattr(imported, name):
                raise _missing(triton.__version__, f"{module}.{name}")
    for module, owner, name in _METHODS:
        if not hasattr(getattr(importlib.import_module(module), owner), name):
            raise _missing(triton.__version__, f"{module}.{owner}.{name}")


def _missing(version: str, name: str) -> BuddysimError:
    return BuddysimError(f"capture triton: Triton {version} has no {name}: expected Triton {TESTED_VERSION}")
