"""CUDA's device functions (``libdevice``) in Triton's interpreter, which has no bodies for them: NumPy's instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import scipy.special

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "div_rn": np.divide,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfinv": scipy.special.erfinv,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "fma": lambda x, y, z: x * y + z,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "lgamma": scipy.special.gammaln,
    "llrint": np.rint,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "nearbyint": np.rint,
    "pow": np.power,
    "rint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": scipy.special.gamma,
    "trunc": np.trunc,
}
_TESTS: Final[dict[str, Callable[[Any], Any]]] = {"isinf": np.isinf, "isnan": np.isnan, "signbit": np.signbit}


@contextmanager
def interpreted_functions() -> Iterator[None]:
    """Give the device functions bodies while a kernel is interpreted; it is compiled with CUDA's own."""
    from triton.language.extra import libdevice

    before = {name: getattr(libdevice, name) for name in (*_FUNCTIONS, *_TESTS) if hasattr(libdevice, name)}
    for name in before:
        setattr(libdevice, name, _function(name))
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(libdevice, name, value)


def _function(name: str) -> Callable[..., Any]:
    def of_tensors(*arguments: Any, **_: Any) -> Any:
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle, interpreter_semantic

        tensors = [interpreter_semantic.to_tensor(argument) for argument in arguments]
        values = [tensor.handle.data for tensor in tensors]
        with np.errstate(all="ignore"):
            if name in _TESTS:
                return _tensor(TensorHandle(np.asarray(_TESTS[name](*values)), tl.int1), tensors[0], tl.int1)
            result = np.asarray(_FUNCTIONS[name](*values)).astype(values[0].dtype)
        return _tensor(TensorHandle(result, tensors[0].dtype), tensors[0], tensors[0].dtype)

    return of_tensors


def _tensor(handle: Any, like: Any, dtype: Any) -> Any:
    import triton.language as tl

    shaped = tl.block_type(dtype, list(handle.data.shape)) if like.type.is_block() else dtype
    return tl.tensor(handle, shaped)
