"""One thread, as these networks are tiny; what sees PyTorch's operators is installed once for a file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _installed() -> Iterator[None]:
    torch = pytest.importorskip("torch")
    from buddysim.training.networks.from_torch.below_autograd import handlers_installed

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with handlers_installed():
        yield
    torch.set_num_threads(threads)
