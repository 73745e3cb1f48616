"""Lets ``torch.compile`` make Triton kernels for tensors on the CPU, and launch them like any other kernel.

Fusions and block sizes are those that Inductor takes for a CPU, with a GPU's properties where it asks for them; of
several configurations the first runs. Products stay calls of PyTorch's operators, which are
handed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from buddysim.base.errors import BuddysimError

#: The version that this was tested with; none of the names is public.
TESTED_VERSION: Final = "2.13.0"
_INTERPRET: Final = "TRITON_INTERPRET"
#: Properties of an H100 (132 SMs), for Inductor's choices.
_PROPERTIES: Final = {
    "multi_processor_count": 132,
    "warp_size": 32,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
}


#: Products that Inductor calls by these names.
PRODUCTS: Final = ("mm", "addmm", "bias_addmm", "bmm", "baddbmm")


def _handed_over(name: str, product: Any, on_product: Callable[[str, list[Any], Any], None]) -> Any:
    def called(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = product(*args, **kwargs) if out is None else product(*args, out=out, **kwargs)
        on_product(name, [each for each in args if hasattr(each, "untyped_storage")], result)
        return result

    return called


@contextmanager
def compiled_by_inductor(on_product: Callable[[str, list[Any], Any], None]) -> Iterator[None]:
    """Make ``torch.compile`` use Triton for the CPU's tensors.

    Parameters
    ----------
    on_product : called after each product, with its name, the tensors that it read, and its result

    Raises
    ------
    BuddysimError
        where PyTorch lacks a name that this needs
    """
    import torch

    try:
        import torch._inductor.config as config
        from torch._inductor.runtime.hints import DeviceProperties
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
        from torch._inductor.select_algorithm import extern_kernels

        for module in ("mm", "bmm"):  # they register their products
            import_module(f"torch._inductor.kernel.{module}")
        products = {name: getattr(extern_kernels, name) for name in PRODUCTS}
        triton_runtime = import_module("triton.knobs").runtime
        create, run, backend = DeviceProperties.create, CachingAutotuner.run, config.cpu_backend
        threads, caches = config.compile_threads, config.force_disable_caches
        interpret_grid = CachingAutotuner._interpret_args_grid
    except (ImportError, AttributeError) as error:
        raise BuddysimError(
            f"capture triton: --torch-compile: PyTorch {torch.__version__}: {error}: expected {TESTED_VERSION}"
        ) from None

    def launch(tuner: Any, *args: Any, stream: Any, benchmark_run: bool = False, **kwargs: Any) -> Any:
        first = tuner.configs[0]
        args, grid = interpret_grid(tuner, args, first)
        options = {"num_warps": first.num_warps, "num_stages": first.num_stages}
        names = [name for name in tuner.fn.arg_names if name not in first.kwargs]
        return tuner.fn[grid](**dict(zip(names, args, strict=False)), **kwargs, **first.kwargs, **options)

    before = os.environ.get(_INTERPRET)
    triton_runtime.interpret = False  # kernels stay functions that can be compiled, whatever the variable says
    os.environ[_INTERPRET] = "1"  # Inductor then compiles nothing itself
    config.cpu_backend, config.compile_threads, config.force_disable_caches = "triton", 1, True
    DeviceProperties.create = classmethod(lambda _, device: create(device)._replace(**_PROPERTIES))
    CachingAutotuner.run = launch
    for name, product in products.items():
        setattr(extern_kernels, name, _handed_over(name, product, on_product))
    try:
        yield
    finally:
        for name, product in products.items():
            setattr(extern_kernels, name, product)
        DeviceProperties.create, CachingAutotuner.run = create, run
        config.cpu_backend, config.compile_threads, config.force_disable_caches = backend, threads, caches
        if before is None:
            del os.environ[_INTERPRET]
        else:
            os.environ[_INTERPRET] = before
